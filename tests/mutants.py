"""Break the rules on purpose, one edit at a time, and see that a test fails each time: ``make mutants``.

Each mutant is a text that is replaced in one file of a copy of the package; then the small suites run there, with the
JIT off, up to their first failure. A mutant that survives is a rule that no test holds. One whose text no longer stands
exactly once in its file fails as well: bring it up to date. Words as arguments choose mutants by file or title.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NEEDED = ("dnfh_env", "agents", "tests", "pyproject.toml")
"""What the suites need of the repository."""
SUITES = ("test_rules.py", "test_kernels.py", "test_observation.py", "test_differential.py")
WORKERS = 2
TIMEOUT = 300
"""Seconds for one run of the suites; a mutant that needs more has made them hang, and is not counted as caught."""


@dataclasses.dataclass(frozen=True)
class Mutant:
    """A planted fault: in ``dnfh_env/<file>`` the one place that reads ``old`` is made to read ``new``."""

    file: str
    what: str
    old: str
    new: str


MUTANTS = (
    # --- dealing, calling and passing (R1 to R5)
    Mutant(
        "engine.py",
        "R2 the deal moves right",
        "g.dealer = (g.dealer + 1) & 3\n    deal_cards",
        "g.dealer = (g.dealer + 3) & 3\n    deal_cards",
    ),
    Mutant("engine.py", "R2 every deal of a game is the same", "g.deal, SHUFFLE)", "0, SHUFFLE)"),
    Mutant("engine.py", "R2 seat 0 always deals first", "g.dealer = below(4,", "g.dealer = 0 * below(4,"),
    Mutant("engine.py", "R3 the dealer's left calls", "g.seat = g.dealer\n", "g.seat = (g.dealer + 1) & 3\n"),
    Mutant(
        "engine.py",
        "R3 the rotation leaves out its last call",
        "% r.rotation_length])",
        "% max(1, r.rotation_length - 1)])",
    ),
    Mutant("engine.py", "R3 hold passes", "if call == HOLD:", "if call == NO_CALL:"),
    Mutant("rules.py", "R3 two splits are swapped", '"120", "111"', '"111", "120"'),
    Mutant(
        "engine.py",
        "R4 the dealer picks first",
        "g.phase = PICK\n        g.seat = (g.dealer + 1) & 3",
        "g.phase = PICK\n        g.seat = np.int64(g.dealer)",
    ),
    Mutant(
        "engine.py",
        "R4 picks go right, across, left",
        "[d for d in range(3) for _ in range(int(split[d]))]",
        "[d for d in (2, 1, 0) for _ in range(int(split[d]))]",
    ),
    Mutant("engine.py", "R4 a picked card stays in the hand", "g.hand[s] &= ~bit(card)", "g.hand[s] &= ~U0"),
    Mutant("engine.py", "R4 left and right are swapped", "g.hand[(s + 1 + d) & 3] |=", "g.hand[(s + 3 - d) & 3] |="),
    Mutant(
        "engine.py",
        "R4 two picks each, then the next seat",
        "if g.num_picks % EACH == 0:",
        "if g.num_picks % EACH == 2:",
    ),
    Mutant("engine.py", "R5 the kitty goes back as it came", "j = k + below(PICKS - k, mix(state))", "j = k"),
    Mutant(
        "engine.py",
        "R5 a kitty is passed as well",
        "            shuffle_kitty(g)\n",
        "            shuffle_kitty(g)\n            exchange(g)\n",
    ),
    # --- leading and following (R7 to R10)
    Mutant(
        "engine.py",
        "R7 the dealt two of clubs leads, not the passed one",
        "            exchange(g)\n        begin_play(g)",
        "            begin_play(g)\n            exchange(g)\n            return\n        begin_play(g)",
    ),
    Mutant("engine.py", "R7 any card opens", "return hand & r.first_leads", "return hand"),
    Mutant("rules.py", "R7 any club opens", 'if rules.first_lead == "any club" else', "if rules.first_lead else"),
    Mutant("engine.py", "R8 nobody has to follow", "if follow:  # R8", "if follow == hand:  # R8"),
    Mutant("engine.py", "R8 the lowest takes", "card > g.best_card", "card < g.best_card"),
    Mutant(
        "engine.py",
        "R8 the ace is low",
        "card > g.best_card",
        "(card + 1) % 13 > (np.int64(g.best_card) + 1) % 13",
    ),
    Mutant("engine.py", "R8 a throw may take the trick", "beats = follows and card >", "beats = card >"),
    Mutant("engine.py", "R8 the taker's left leads", "    g.seat = taker\n", "    g.seat = (taker + 1) & 3\n"),
    Mutant(
        "engine.py",
        "R8 play goes counter-clockwise",
        "    else:\n        g.seat = (s + 1) & 3",
        "    else:\n        g.seat = (s + 3) & 3",
    ),
    Mutant("engine.py", "R9 the ban lasts two tricks", "if g.num_plays < 4:  # R9", "if g.num_plays < 8:  # R9"),
    Mutant("engine.py", "R9 no ban on the last to play", "if g.num_plays < 4:  # R9", "if g.num_plays < 3:  # R9"),
    Mutant(
        "engine.py",
        "R9 the ban restricts following",
        "follow = hand & ",
        "follow = hand & ~(r.first_ban if g.num_plays < 4 else U0) & ",
    ),
    Mutant("engine.py", "R9 nothing but scoring cards: no legal card", "if harmless:", "if harmless or hand:"),
    Mutant("rules.py", "R9 the jack is no scoring card", "(self.points) if value)", "(self.points) if value > 0)"),
    Mutant(
        "rules.py",
        "R9 the jack is never free",
        '"jack free": rules.scoring_cards & ~(1 << JACK_OF_DIAMONDS)',
        '"jack free": rules.scoring_cards',
    ),
    Mutant("rules.py", "R9 the ban cannot be lifted", '"any": 0,', '"any": rules.scoring_cards,'),
    Mutant(
        "engine.py",
        "R10 only a throw breaks hearts",
        "b & r.breakers != U0",
        "b & r.breakers != U0 and n != led_at",
    ),
    Mutant(
        "engine.py",
        "R10 the first trick breaks nothing",
        "b & r.breakers != U0",
        "b & r.breakers != U0 and n > 3",
    ),
    Mutant("rules.py", "R10 QS breaks nothing", 'if rules.hearts_broken_by == "heart or QS"', "if False"),
    Mutant("rules.py", "R10 QS always breaks", 'if rules.hearts_broken_by == "heart or QS"', "if True"),
    Mutant("rules.py", "R10 QD breaks too", "r.breakers = HEARTS |", 'r.breakers = HEARTS | 1 << card_id("QD") |'),
    Mutant(
        "rules.py", "R10 hearts always need breaking", '0 if rules.hearts_broken_by == "no need" else HEARTS', "HEARTS"
    ),
    Mutant("rules.py", "R10 QS must not be led unbroken", "else HEARTS\n", "else HEARTS | 1 << QUEEN_OF_SPADES\n"),
    Mutant(
        "rules.py",
        "R10 hearts beside QS: turned round",
        "if rules.hearts_with_qs else",
        "if not rules.hearts_with_qs else",
    ),
    Mutant("engine.py", "R10 hearts stay broken in the next deal", "    g.broken = 0\n", ""),
    # --- scoring and the end (R12 to R17)
    Mutant(
        "engine.py",
        "R12 no score below 0",
        "g.scores[s] += g.entered[s]",
        "g.scores[s] = max(0, g.scores[s] + g.entered[s])",
    ),
    Mutant(
        "engine.py",
        "R12 the last trick does not count",
        "        points += r.points[g.plays[k]]\n",
        "        points += r.points[g.plays[k]] if led_at < 48 else 0\n",
    ),
    Mutant("rules.py", "R13 QH counts 14", "= card_points(QH=13,", "= card_points(QH=14,"),
    Mutant("rules.py", "R13 the jack counts +10", "QD=13, JD=-10)\n", "QD=13, JD=10)\n"),
    Mutant(
        "engine.py",
        "R14 a shot is known by its points",
        "if r.shot_cards & ~g.taken[s] == U0:",
        "if g.points[s] == r.points.sum():",
    ),
    Mutant("rules.py", "R14 the jack is always needed", "if self.shot_needs_jack else", "if self.points else"),
    Mutant("rules.py", "R14 the jack is never needed", "if self.shot_needs_jack else", "if not self.points else"),
    Mutant(
        "engine.py",
        "R14 the shooter keeps the points",
        "-r.positive_total if s == g.shooter else",
        "0 if s == g.shooter else",
    ),
    Mutant("engine.py", "R14 the shooter subtracts P once", "-= 2 * r.positive_total", "-= r.positive_total"),
    Mutant(
        "rules.py", "R14 P is the deal's sum", "for value in self.points if value > 0)", "for value in self.points)"
    ),
    Mutant("engine.py", "R16 the target must be passed", ">= r.target:", "> r.target:"),
    Mutant(
        "engine.py",
        "R16 no latch",
        "g.shooter = find_shooter(g, r)\n",
        "g.shooter = find_shooter(g, r)\n    g.latched = 0\n",
    ),
    Mutant("engine.py", "R16 the highest wins", "low = min(", "low = max("),
    Mutant("engine.py", "R16 one of those tied for lowest wins", "winners |= 1 << s", "winners = 1 << s"),
    Mutant("engine.py", "R16 ties always play on", "if r.play_on and count > 1:", "if count > 1:"),
    Mutant("rules.py", "R16 ties never play on", 'r.play_on = rules.ties == "play on"', "r.play_on = 0"),
    Mutant("engine.py", "R16 one deal too many", "g.deal + 1 == r.max_deals", "g.deal == r.max_deals"),
    Mutant(
        "engine.py",
        "R16 max_deals takes a proper win away",
        "    if g.winners or g.deal + 1 == r.max_deals:\n",
        "    if g.deal + 1 == r.max_deals:\n        g.winners = 0\n    if g.winners or g.deal + 1 == r.max_deals:\n",
    ),
    Mutant(
        "engine.py",
        "R17 the target goes before the shot",
        "if g.shooter != NO_SEAT and r.shot == _SHOT_GAME:",
        "if g.shooter != NO_SEAT and r.shot == _SHOT_GAME and g.latched == 0:",
    ),
    # --- what a seat knows (R4 to R6, R11)
    Mutant("view.py", "R6 another's legal set is seen", "if seat == g.seat else U0", "if seat != NO_CARD else U0"),
    Mutant("view.py", "R4 passed cards are seen before the exchange", "if g.num_picks < PICKS:", "if g.num_picks < 0:"),
    Mutant(
        "view.py",
        "R4 the giver is mistaken",
        "(seat + 1) & 3, 2], g.given[(seat + 2) & 3, 1], g.given[(seat + 3) & 3, 0]",
        "(seat + 1) & 3, 0], g.given[(seat + 2) & 3, 1], g.given[(seat + 3) & 3, 2]",
    ),
    Mutant(
        "view.py",
        "R5 the kitty tells who gave",
        "return g.kitty[seat], g.kitty",
        "return g.kitty[seat] & g.given[(seat + 1) & 3, 0], g.kitty",
    ),
    Mutant(
        "view.py",
        "R11 seats are mirrored",
        "return by_seat[seat], by_seat[(seat + 1) & 3]",
        "return by_seat[seat], by_seat[(seat + 3) & 3]",
    ),
    Mutant("view.py", "R11 leaders are not relative", "else relative(g.leaders[t], seat)", "else g.leaders[t]"),
    # --- what a seat plays for
    Mutant("objective.py", "a shooter earns one share", "3.0 * SHOT_VALUE if", "1.0 * SHOT_VALUE if"),
    Mutant("objective.py", "a shared win is a whole one", "/ winners - 0.25", "- 0.25"),
    Mutant(
        "objective.py", "the last deal counts twice", "centred(g.scores, g.points, 0)", "centred(g.scores, g.points, 1)"
    ),
    # --- what an observation says
    Mutant(
        "observation.py",
        "score steps are one late",
        "(_LOWEST_STEP + 1 + nudge)",
        "(_LOWEST_STEP + nudge)",
    ),
    Mutant(
        "observation.py", "leads are turned round", "lead_bits(left_share - share,", "lead_bits(share - left_share,"
    ),
    Mutant(
        "observation.py",
        "voids of left and right are swapped",
        "np.int64(v.voids[1]) | np.int64(v.voids[2]) << 4 | np.int64(v.voids[3])",
        "np.int64(v.voids[3]) | np.int64(v.voids[2]) << 4 | np.int64(v.voids[1])",
    ),
    Mutant(
        "observation.py",
        "the leader is always the seat to move",
        "((np.int64(v.seat) - np.int64(v.num_plays)) & 3)",
        "np.int64(v.seat)",
    ),
    Mutant("observation.py", "what I took stands at my left", "v.taken[0] | at(mine", "v.taken[3] | at(mine"),
    Mutant(
        "observation.py",
        "a trick shows its first three cards",
        "range(4 * t, 4 * t + 4)",
        "range(4 * t, 4 * t + 3)",
    ),
    Mutant(
        "observation.py",
        "the state shows hands one seat on",
        "s = (seat + 1 + i) & 3\n        words[28",
        "s = (seat + 2 + i) & 3\n        words[28",
    ),
)


def fault_of(mutant: Mutant) -> str | None:
    """Why the mutant cannot be planted, if so."""
    count = (ROOT / "dnfh_env" / mutant.file).read_text(encoding="utf-8").count(mutant.old)
    return None if count == 1 else f"its text stands {count} times in {mutant.file}"


def plant(mutant: Mutant | None, root: Path) -> None:
    """A copy of what the suites need under ``root``, with the fault in it."""
    for name in NEEDED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, root / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, root / name)
    if mutant is not None:
        path = root / "dnfh_env" / mutant.file
        path.write_text(path.read_text(encoding="utf-8").replace(mutant.old, mutant.new), encoding="utf-8")


def run_suites(root: Path) -> tuple[int | None, str]:
    """Pytest's exit code there, 0 if all passes and 1 if a test fails, and what it printed; None if the suites hang."""
    suites = [str(root / "tests" / suite) for suite in SUITES if (root / "tests" / suite).exists()]
    options = ["-x", "-q", "-m", "small", "-p", "no:cacheprovider", "-p", "no:xdist"]
    command = [sys.executable, "-m", "pytest", *options, *suites]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DNFH_")}
    environment |= {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        return None, ""
    return done.returncode, done.stdout + done.stderr


OUTCOMES = {0: "SURVIVED", 1: "caught", None: "HANGS"}


def try_mutant(mutant: Mutant) -> bool:
    """Plant one mutant, run the suites, print what came of it; whether a test failed."""
    start = time.perf_counter()
    fault = fault_of(mutant)
    outcome = f"STALE ({fault})"
    if fault is None:
        with tempfile.TemporaryDirectory() as folder:
            plant(mutant, Path(folder))
            code, _ = run_suites(Path(folder))
        outcome = OUTCOMES.get(code, f"BROKEN (pytest ended with {code})")
    print(f"{outcome:9} {time.perf_counter() - start:5.1f} s  {mutant.file}: {mutant.what}", flush=True)
    return outcome == "caught"


def check_unbroken() -> None:
    """Exit with what pytest printed unless the suites pass without a mutant, since otherwise a failure says nothing."""
    with tempfile.TemporaryDirectory() as folder:
        plant(None, Path(folder))
        code, printed = run_suites(Path(folder))
    if code != 0:
        sys.exit(f"{printed}\nThe suites fail without any mutant.")


def main(words: list[str]) -> int:
    """Try all mutants, or those that one of the words names."""
    chosen = [m for m in MUTANTS if not words or any(word in f"{m.file} {m.what}" for word in words)]
    check_unbroken()
    with ThreadPoolExecutor(WORKERS) as pool:
        caught = sum(pool.map(try_mutant, chosen))
    print(f"{caught} of {len(chosen)} mutants caught")
    return 0 if caught == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
