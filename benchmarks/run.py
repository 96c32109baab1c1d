"""Speed beside the peers, in one run: ``make bench``.

Each figure is measured in turn with its peers, several times over; what counts is the ratio of the medians. Needs the
``bench`` extra. Writes ``bench.json`` and plots into ``results``; `docs/performance.md` explains the figures.
"""

from __future__ import annotations

import argparse
import dataclasses
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import ours
import peers
import plots
from measuring import ROOT, Measure, Work, cores, in_turn, measures, origin, ratio, summary, write

from dnfh_env.engine import GAME

Found = dict[str, list[float]]
"""What each repeat gave, by name of the figure: decisions a second, unless the name says otherwise."""

LOOP = "OpenSpiel, Python loop (Y)"
ROLLOUTS = "OpenSpiel, C++ rollouts, no dealing"
BOTS = "OpenSpiel, C++ loop over bots"
ROUNDS = 5
"""Of which a repeat is the median."""

FUSED, FUSED_2 = "fused random play", "fused random play, two threads"
HEURISTIC = "heuristic against itself"
STEP, PACKED, BYTES, BYTES_2 = "step", "step, packed", "step, bytes", "step, bytes, two threads"
GAME_LOOP = "Game, Python loop"
FOUR, FOUR_WRAPPED = "connect_four, raw AEC", "connect_four, wrapped AEC"
AEC, AEC_WRAPPED = "AEC, raw", "AEC, wrapped"
LEARNING, STOCK = "learning, samples", "stock MaskablePPO, samples"
WORLDS = "worlds that agree with a view, thousands"
PIMC, PIMC_2 = "pimc:fast, 256 views", "pimc:fast, 256 views, two threads"
STATE = "state of a game, bytes"

ROWS = 4096
"""Games in a batch, unless sizes are compared."""
SIZES = [4**k for k in range(9)]

KINDS: dict[str, Callable[[int, int], Work]] = {
    FUSED: lambda size, threads: ours.fused(size, threads=threads),
    STEP: lambda size, threads: ours.stepped(size, None, threads=threads),
    PACKED: lambda size, threads: ours.stepped(size, "packed", threads=threads),
    BYTES: lambda size, threads: ours.stepped(size, "bytes", threads=threads),
}
"""What is compared over sizes and threads."""
MODES: dict[str, tuple[ours.Mode | None, str]] = {
    "rewards alone": (None, "compact"),
    "packed": ("packed", "compact"),
    "bytes": ("bytes", "compact"),
    "packed, full": ("packed", "full"),
    "bytes, full": ("bytes", "full"),
}
"""What a step writes, and in which layout."""
AREAS = {"256 KiB": 1 << 18, "16 MiB": 1 << 24, "512 MiB": 1 << 29}
"""How much memory is copied, and written, to see what it can do."""


def sized(kind: str, size: int) -> str:
    return f"{kind}, {size:,} games"


def threaded(kind: str, threads: int) -> str:
    return f"{kind}, threads: {threads}"


def touched(how: str, area: str, threads: int = 1) -> str:
    return f"{how} {area}, threads: {threads}, bytes"


@dataclasses.dataclass(frozen=True)
class Goal:
    """A ratio that we want: at least, or at most, so much; and what we aim for."""

    what: str
    ours: str
    peer: str | None
    """None for a figure that stands by itself."""
    bound: float | None = None
    aim: float | None = None
    at_most: bool = False

    def ratio(self, found: Found) -> dict[str, float]:
        """Of the medians, and the lowest and highest of any repeat."""
        values = found[self.ours]
        return ratio(values, [1.0] * len(values) if self.peer is None else found[self.peer])

    def verdict(self, value: float) -> str:
        """``"aim"`` if that is reached, ``"met"`` if the bound is, ``"missed"`` if not; nothing without a bound."""

        def reached(limit: float | None) -> bool:
            return limit is not None and (value <= limit if self.at_most else value >= limit)

        if self.bound is None:
            return ""
        return "aim" if reached(self.aim) else "met" if reached(self.bound) else "missed"


GOALS = (
    Goal("fused random play over OpenSpiel's Python loop", FUSED, LOOP, 55, 70),
    Goal("fused random play over OpenSpiel's C++ rollouts", FUSED, ROLLOUTS, 5, 7),
    Goal("fused random play over OpenSpiel's C++ bots", FUSED, BOTS),
    Goal("fused random play, two threads over one", FUSED_2, FUSED, 1.8, 1.95),
    Goal("step, bytes, over OpenSpiel's Python loop", BYTES, LOOP, 14, 20),
    Goal("step, packed, over OpenSpiel's Python loop", PACKED, LOOP, 30, 40),
    Goal("step, bytes, two threads over one", BYTES_2, BYTES, 1.4, 1.7),
    Goal("raw AEC loop over connect_four's", AEC, FOUR, 3, 6),
    Goal("wrapped AEC loop over connect_four's", AEC_WRAPPED, FOUR_WRAPPED, 1.8, 3),
    Goal("Game over OpenSpiel, both in a Python loop", GAME_LOOP, LOOP, 0.7, 1),
    Goal("heuristic against itself over OpenSpiel's Python loop", HEURISTIC, LOOP, 5, 10),
    Goal("state of a game, bytes", STATE, None, 512, 384, True),
    Goal(
        "cost of a decision, fused, 65,536 games over 1,024", sized(FUSED, 1024), sized(FUSED, 65536), 1.3, None, True
    ),
    Goal(
        "cost of a decision, bytes, 65,536 games over 1,024", sized(BYTES, 1024), sized(BYTES, 65536), 1.6, None, True
    ),
    Goal("thousand worlds of a view a second", WORLDS, None, 1000),
    Goal("pimc:fast about 256 views, two threads over one", PIMC_2, PIMC, 1.8),
    Goal("learning over stock MaskablePPO, samples", LEARNING, STOCK),
)


# --- what is measured, group by group ---------------------------------------------------------------------------


def beside_peers() -> dict[str, Work]:
    """Ours and the peers."""
    return {
        LOOP: peers.openspiel_loop(),
        ROLLOUTS: peers.openspiel_rollouts(),
        BOTS: peers.openspiel_bots(),
        FUSED: ours.fused(1024, deals=16),
        FUSED_2: ours.fused(1024, deals=16, threads=2),
        HEURISTIC: ours.fused(1024, "heuristic"),
        STEP: ours.stepped(ROWS, None),
        PACKED: ours.stepped(ROWS, "packed"),
        BYTES: ours.stepped(ROWS, "bytes"),
        BYTES_2: ours.stepped(ROWS, "bytes", threads=2),
        GAME_LOOP: ours.game_loop(),
        AEC: ours.aec(wrapped=False),
        FOUR: peers.connect_four(wrapped=False),
        AEC_WRAPPED: ours.aec(wrapped=True),
        FOUR_WRAPPED: peers.connect_four(wrapped=True),
    }


def searching() -> dict[str, Work]:
    """What searches stand on."""
    return {WORLDS: ours.worlds(), PIMC: ours.searched(threads=1), PIMC_2: ours.searched(threads=2)}


def over_sizes(sizes: Iterable[int]) -> dict[str, Work]:
    return {sized(kind, size): make(size, 1) for kind, make in KINDS.items() for size in sizes}


def over_threads(threads: Iterable[int], size: int = ROWS) -> dict[str, Work]:
    return {threaded(kind, count): make(size, count) for kind, make in KINDS.items() for count in threads}


def over_modes(size: int = ROWS) -> dict[str, Work]:
    return {mode: ours.stepped(size, obs, observation) for mode, (obs, observation) in MODES.items()}


def over_areas(threads: Iterable[int]) -> dict[str, Work]:
    kinds = {"copying": ours.copying, "writing": ours.writing}
    return {
        touched(how, area, count): make(size, count)
        for how, make in kinds.items()
        for area, size in AREAS.items()
        for count in threads
    }


def side_by_side() -> dict[str, Measure]:
    """Learning, with the settings that `learning` found to be the best of both on two cores."""
    import learning  # brings torch, whose threads had better not be there before

    both = learning.side_by_side(*learning.BEST)
    return {LEARNING: both["Ours"], STOCK: both["Stock"]}


def some_threads(most: int) -> list[int]:
    """1, 2, 4 and so on, and the most there are."""
    return sorted({1 << k for k in range(most.bit_length()) if 1 << k <= most} | {most})


def measure_all(seconds: float, repeats: int) -> Found:
    """Every figure but those of starting."""
    threads, share = some_threads(cores()), seconds / ROUNDS
    groups: dict[str, Callable[[], dict[str, Measure]]] = {
        "ours and the peers": lambda: measures(beside_peers(), share),
        "search": lambda: measures(searching(), share),
        "batch sizes": lambda: measures(over_sizes(SIZES), share),
        "threads": lambda: measures(over_threads(threads), share),
        "observations": lambda: measures(over_modes(), share),
        "memory bandwidth": lambda: measures(over_areas(sorted({1, cores()})), share),
        "learning": side_by_side,
    }
    found: Found = {STATE: [float(GAME.itemsize)] * repeats}
    for title, group in groups.items():
        start = time.perf_counter()
        found |= in_turn(group(), repeats, 1 if title == "learning" else ROUNDS)
        print(f"measured: {title}, {time.perf_counter() - start:.0f} s", flush=True)
    return found


# --- what is reported -------------------------------------------------------------------------------------------


def judged(found: Found) -> list[dict[str, object]]:
    """The goals with their ratios and verdicts."""
    rows = []
    for goal in GOALS:
        result = goal.ratio(found)
        rows.append(dataclasses.asdict(goal) | result | {"verdict": goal.verdict(result["ratio"])})
    return rows


def memory() -> dict[str, dict[str, float]]:
    """Bytes a game, by what a step writes: its record, and all else that the batch holds for it."""
    found = {}
    for mode, (obs, observation) in MODES.items():
        total = ours.allocated(obs, observation)
        found[mode] = {"state": GAME.itemsize, "buffers": total - GAME.itemsize, "all": total}
    return found


def limits(found: Found) -> dict[str, dict[str, float]]:
    """The memory traffic of a step, and what shares it is of what copying and writing reach in the same run."""
    medians = {name: summary(values)["median"] for name, values in found.items()}
    rows = {}
    for kind, mode in {STEP: "rewards alone", PACKED: "packed", BYTES: "bytes"}.items():
        for size in (ROWS, SIZES[-1]):
            speed, moved, written = medians[sized(kind, size)], ours.moved(*MODES[mode]), ours.written(*MODES[mode])
            rows[sized(kind, size)] = {
                "nanoseconds a decision": 1e9 / speed,
                "bytes moved a decision": moved,
                "bytes written a decision": written,
                **{f"share of copying {area}": moved * speed / medians[touched("copying", area)] for area in AREAS},
                **{f"share of writing {area}": written * speed / medians[touched("writing", area)] for area in AREAS},
            }
    return rows


def report_of(found: Found, starts: dict[str, dict[str, float]]) -> dict[str, object]:
    """Everything that goes into the file, less machine, versions and commit."""
    summaries = {name: summary(values) for name, values in found.items()}
    threads = some_threads(cores())
    return {
        "goals": judged(found),
        "figures": {name: summaries[name] | {"values": values} for name, values in found.items()},
        "by batch size": {kind: {size: summaries[sized(kind, size)] for size in SIZES} for kind in KINDS},
        "by threads": {kind: {count: summaries[threaded(kind, count)] for count in threads} for kind in KINDS},
        "by observation": {mode: summaries[mode] for mode in MODES},
        "bytes a game": memory(),
        "limits": limits(found),
        "seconds to start": starts,
        "OpenSpiel's steps a decision, chance's included": peers.STEPS_A_DECISION,
    }


def show(report: dict, found: Found) -> None:
    """The tables, for people."""
    print(f"\n{'a second':40}{'median':>17}{'low':>17}{'high':>17}")
    for name in (*dict.fromkeys(name for goal in GOALS for name in (goal.peer, goal.ours) if name), STEP):
        print(line(name, summary(found[name]), ",.0f"))
    steps = {key: value * peers.STEPS_A_DECISION for key, value in summary(found[LOOP]).items()}
    print(line("(Y as steps, chance's 53 a game too)", steps, ",.0f"))
    for name in report["figures"]:
        if name.startswith(("copying", "writing")):
            print(line(name, summary(found[name]), ",.0f"))
    print(f"\n{'seconds':40}{'median':>17}{'low':>17}{'high':>17}")
    for name, found_start in report["seconds to start"].items():
        print(line(name, found_start, ".2f"))
    print(f"\n{'of a step':26}{'ns':>8}{'moved':>8}{'written':>8}  share of copying, of writing {', '.join(AREAS)}")
    for name, limit in report["limits"].items():
        ns, moved, written, *shares = limit.values()
        print(f"{name:26}{ns:8.1f}{moved:8,}{written:8,}  {' '.join(f'{share:5.0%}' for share in shares)}")
    print(f"\n{'ratio of medians':54}{'':9}{'any repeat':>19}{'bound':>8}{'aim':>8}")
    for row in report["goals"]:
        spread = f"{row['low']:.2f} to {row['high']:.2f}"
        bound, aim = ("" if row[key] is None else f"{row[key]:g}" for key in ("bound", "aim"))
        print(f"{row['what']:54}{row['ratio']:9.2f}{spread:>19}{bound:>8}{aim:>8}  {row['verdict']}")


def line(name: str, values: dict[str, float], form: str) -> str:
    return f"{name:40}" + "".join(f"{values[key]:17{form}}" for key in ("median", "low", "high"))


PACKAGES = ("dnfh", "numpy", "numba", "open_spiel", "pettingzoo", "torch", "stable_baselines3", "sb3_contrib")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5, help="how often everything is measured")
    parser.add_argument("--seconds", type=float, default=0.5, help="for how long at least, each repeat")
    parser.add_argument("--out", type=Path, default=ROOT / "results", help="folder for bench.json and the plots")
    options = parser.parse_args()
    source = origin(PACKAGES)
    print(*(f"{name}: {value}" for name, value in source.items()), sep="\n")
    found = measure_all(options.seconds, options.repeats)
    report = report_of(found, ours.start_up(options.repeats))
    show(report, found)
    write(options.out / "bench.json", source | report)
    print("plots:", *plots.draw(options.out, report))


if __name__ == "__main__":
    main()
