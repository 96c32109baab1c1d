"""The engine against its slow twin: random games under random rules, compared at every decision.

``make differential`` plays 10,000 games and prints how often each branch of the rules was taken; `GAMES` sets the
number. A difference is shrunk to one line of notation, whose last action is the one after which the two disagree;
`replay` plays such a line.
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import numba
import numpy as np
import pytest

from dnfh_env import notation
from dnfh_env.engine import GAME, NO_CALL, NO_CARD, OVER, apply_all, begin_deals, start_games
from dnfh_env.objective import POINTS, SHOT_VALUE, WIN, standings_of
from dnfh_env.rules import Rules, compile_rules
from dnfh_env.view import views_of
from oracle import ALL_BRANCHES, CALLS, DECK, SEATS, SUITS, Oracle, suit_of, taker_of
from random_rules import random_plan, random_rules, random_start

pytestmark = pytest.mark.small

GAMES = int(os.environ.get("DNFH_DIFFERENTIAL_GAMES", "60" if numba.config.DISABLE_JIT else "150"))
EVERY_BRANCH_FROM = 1000
"""From this many games on every branch of the rules has to be taken; in fewer, seven in eight."""

ACTIONS = [*DECK, *CALLS]
NUMBER = {name: number for number, name in enumerate(ACTIONS)}
BIT = {name: 1 << number for name, number in NUMBER.items()}
PHASES = ("call", "pick", "play", "game over")
DIRECTIONS = ("left", "across", "right")


def mask(names: Iterable[str]) -> int:
    return sum(BIT[name] for name in names)


def names(mask: int) -> set[str]:
    return {name for name, bit in BIT.items() if int(mask) & bit}


# --- the same facts from both -----------------------------------------------------------------------------------


def plays_of(oracle: Oracle) -> list[tuple[int, str]]:
    return [play for trick in (*oracle.history, oracle.trick) for play in trick]


def voids_of(oracle: Oracle) -> list[int]:
    """Per seat a bit for each suit that it failed to follow."""
    voids = [0] * 4
    for trick in (*oracle.history, oracle.trick):
        for seat, card in trick[1:]:
            if suit_of(card) != suit_of(trick[0][1]):
                voids[seat] |= 1 << SUITS.index(suit_of(trick[0][1]))
    return voids


def oracle_facts(oracle: Oracle, entered: list[int], shooter: int | None) -> dict[str, Any]:
    """What both must agree on; ``entered`` and ``shooter`` are those of the last finished deal."""
    plays = plays_of(oracle)
    tricks = [trick for trick in (*oracle.history, oracle.trick) if trick]
    over = oracle.phase == "game over"
    return {
        "phase": oracle.phase,
        "seat": None if over else oracle.seat,
        "legal": mask(oracle.legal()),
        "dealer": oracle.dealer,
        "deal": oracle.deal,
        "call": NO_CALL if oracle.call is None else NUMBER[oracle.call],
        "hand": [mask(hand) for hand in oracle.hands],
        "given": [[mask(given[way] | given["kitty"]) for way in DIRECTIONS] for given in oracle.given],
        "num_picks": sum(len(cards) for given in oracle.given for cards in given.values()),
        "played": [mask(card for player, card in plays if player == seat) for seat in SEATS],
        "taken": [mask(cards) for cards in oracle.taken],
        "points": [sum(oracle.value[card] for card in cards) for cards in oracle.taken],
        "plays": [NUMBER[card] for _, card in plays] + [NO_CARD] * (52 - len(plays)),
        "leaders": [trick[0][0] for trick in tricks] + [NO_CARD] * (13 - len(tricks)),
        "num_plays": len(plays),
        "taker": taker_of(oracle.trick) if oracle.trick else None,
        "voids": voids_of(oracle),
        "broken": oracle.hearts_broken,
        "scores": oracle.scores,
        "entered": entered,
        "shooter": shooter,
        "latched": oracle.latched,
        "winners": sum(1 << seat for seat in oracle.winners),
        "truncated": oracle.truncated,
    }


SAME = "call deal dealer hand given num_picks played taken points plays leaders num_plays voids scores entered winners"


def engine_facts(game: Any, rules: Rules) -> dict[str, Any]:
    facts = {field: game[field][0].tolist() for field in SAME.split()}
    over = game["phase"][0] == OVER
    shooter = int(game["shooter"][0])
    return facts | {
        "phase": PHASES[game["phase"][0]],
        "seat": None if over else int(game["seat"][0]),
        "legal": notation.legal_of(game, compile_rules(rules)),
        "taker": int(game["best_seat"][0]) if facts["num_plays"] % 4 else None,
        "broken": bool(game["broken"][0]),
        "shooter": None if shooter < 0 else shooter,
        "latched": bool(game["latched"][0]),
        "truncated": bool(over and not facts["winners"]),
    }


TURNED = "played taken scores points voids"
COMMON = "deal plays phase call num_picks num_plays broken latched"


def oracle_view(oracle: Oracle, facts: dict[str, Any], me: int) -> dict[str, Any]:
    """What seat ``me`` knows (R4, R5, R6, R11), seats counted from it."""

    def place(seat: int | None) -> int | None:
        return None if seat is None else (seat - me) % 4

    got = oracle.received[me]
    return {
        **{field: facts[field][me:] + facts[field][:me] for field in TURNED.split()},
        **{field: facts[field] for field in COMMON.split()},
        "hand": facts["hand"][me],
        "legal": facts["legal"] if oracle.seat == me else 0,
        "given": facts["given"][me],
        "received": [mask(got[way] | got["kitty"]) for way in DIRECTIONS],
        "leaders": [seat if seat == NO_CARD else place(seat) for seat in facts["leaders"]],
        "seat": place(facts["seat"]),
        "dealer": place(oracle.dealer),
        "taker": place(facts["taker"]),
    }


VIEWED = f"{TURNED} {COMMON} hand legal given received leaders seat dealer"


def engine_view(game: Any, compiled: Any, me: int) -> dict[str, Any]:
    view = views_of(game, compiled, np.array([me], np.int64))
    facts = {field: view[field][0].tolist() for field in VIEWED.split()}
    return facts | {
        "phase": PHASES[facts["phase"]],
        "seat": None if facts["phase"] == OVER else facts["seat"],
        "taker": None if view["best_card"][0] == NO_CARD else int(view["best_seat"][0]),
        "broken": bool(facts["broken"]),
        "latched": bool(facts["latched"]),
    }


def oracle_standings(oracle: Oracle, points: list[int]) -> list[list[float]]:
    """What the seats play for, as `dnfh_env.objective` defines it: the points, and the win."""
    over = oracle.phase == "game over"
    totals = [oracle.scores[seat] + (0 if over else points[seat]) for seat in SEATS]
    shot = over and oracle.shooter is not None and oracle.rules.shot == "game"
    if shot:
        totals = [oracle.scores[seat] - oracle.entered[seat] for seat in SEATS]
    by_points = [sum(totals) / 4 - total for total in totals]
    if shot:
        by_points = [by_points[s] + (3 * SHOT_VALUE if s == oracle.shooter else -SHOT_VALUE) for s in SEATS]
    won = [(seat in oracle.winners) / len(oracle.winners) - 0.25 if oracle.winners else 0.0 for seat in SEATS]
    return [by_points, won]


def engine_standings(game: Any, compiled: Any) -> list[list[float]]:
    return [standings_of(game, compiled, objective)[0].tolist() for objective in (POINTS, WIN)]


# --- both side by side ------------------------------------------------------------------------------------------


class DifferenceError(Exception):
    """Engine and oracle disagree; ``line`` leads there, the last action included."""

    def __init__(self, line: str, what: str) -> None:
        super().__init__(f"{what}\n{line}")
        self.line = line
        self.what = what


class Twins:
    """One game, played by the engine and by the oracle, which are compared after every step."""

    def __init__(self, rules: Rules, game: Any) -> None:
        """``game`` is a `GAME` array of length 1 at the start of a deal; both play on from there."""
        self.rules = rules
        self.compiled = compile_rules(rules)
        self.game = game
        self.steps = 0
        facts = engine_facts(game, rules)
        self.entered, self.shooter = facts["entered"], facts["shooter"]
        before = facts["dealer"], facts["scores"], facts["deal"], facts["latched"]
        try:
            number = int(game["game"][0] % 2**32 + game["game"][0] // 2**32)
            self.oracle = Oracle(rules, self.hands(), *before, number)
            self.compare()
        except ValueError as error:
            raise DifferenceError(notation.position_to_string(game, rules), str(error)) from None

    @property
    def over(self) -> bool:
        return self.oracle.phase == "game over"

    def hands(self) -> list[set[str]]:
        return [names(hand) for hand in self.game["hand"][0]]

    def step(self, action: str) -> None:
        """Make one decision in both; a disagreement is raised as `DifferenceError`."""
        if action not in self.oracle.legal():
            raise ValueError(f"{action} is illegal by all accounts")
        before = self.game.copy()
        try:
            apply_all(self.game, self.compiled, np.array([NUMBER[action]], np.int64))
            self.step_oracle(action)
            self.compare()
        except (ValueError, IndexError, OverflowError) as error:
            head, tail = notation.position_to_string(before, self.rules).split(";")
            raise DifferenceError(f"{head}{action} ;{tail}", str(error)) from None

    def step_oracle(self, action: str) -> None:
        """Chance is the engine's: the oracle takes its kitties and its next deals, and refuses what cannot be."""
        self.oracle.act(action)
        if self.oracle.phase == "kitty":
            self.oracle.kitty([names(cards) for cards in self.game["kitty"][0]])
        if self.oracle.entered is not None:
            self.entered, self.shooter = self.oracle.entered, self.oracle.shooter
        if self.oracle.phase == "deal over":
            self.oracle.next_deal(self.hands())

    def compare(self) -> None:
        """Raise ``ValueError`` that names the first facts that differ."""
        facts = oracle_facts(self.oracle, self.entered, self.shooter)
        same(engine_facts(self.game, self.rules), facts)
        me = self.steps % 4
        same(engine_view(self.game, self.compiled, me), oracle_view(self.oracle, facts, me), f"view of seat {me}: ")
        if not self.oracle.trick:
            found, expected = engine_standings(self.game, self.compiled), oracle_standings(self.oracle, facts["points"])
            same({"standings": found}, {"standings": expected})
        self.steps += 1


def same(engine: dict[str, Any], oracle: dict[str, Any], where: str = "") -> None:
    if engine == oracle:
        return
    for field in [*oracle, *engine]:
        if engine.get(field) != oracle.get(field):
            raise ValueError(f"{where}{field}: engine {engine.get(field)}, oracle {oracle.get(field)}")


def stacked(game: Any, rules: Rules, hands: list[set[str]]) -> Any:
    """The game at the start of a deal, with these hands instead."""
    game = game.copy()
    game["hand"][0] = [mask(hand) for hand in hands]
    begin_deals(game, compile_rules(rules))
    return game


def first_deal(rng: random.Random, rules: Rules, number: int) -> Any:
    """A new game, or one under way at the start of a deal."""
    game = np.zeros(1, GAME)
    start_games(game, compile_rules(rules), np.array([rng.getrandbits(64)], np.uint64), np.array([number], np.uint64))
    if rng.random() < 0.5:
        start = random_start(rng, rules)
        hands = game["hand"][0].tolist()
        game["deal"] = start.deal
        notation.set_deal(game, rules, hands, start.dealer, start.scores)
        game["latched"] = start.latched
    return game


def play_game(number: int) -> int:
    """Play random game ``number`` to its end; how many decisions it had."""
    rng = random.Random(number)
    rules = random_rules(rng)
    twins = Twins(rules, first_deal(rng, rules, number))
    decisions = 0
    while not twins.over:
        plan = random_plan(rng)
        if plan.hands is not None:
            twins = Twins(rules, stacked(twins.game, rules, plan.hands))
        deal = twins.oracle.deal
        while not twins.over and twins.oracle.deal == deal:
            twins.step(plan.choose(twins.oracle, rng))
            decisions += 1
    return decisions


# --- shrinking --------------------------------------------------------------------------------------------------


def replay(line: str) -> None:
    """Play a line of notation in both; raises `DifferenceError` where they part, ``ValueError`` for a bad line."""
    head, facts = line.split(";")
    dealer, scores, hands, *moves = head.split()
    game, rules = notation.string_to_position(f"{dealer} {scores} {hands} ;{facts}")
    twins = Twins(rules, game)
    if rules.call_by == "rotation" and moves and moves.pop(0) != twins.oracle.call:
        raise ValueError(f"the call of the line is not {twins.oracle.call}, as the rotation has it")
    for move in moves:
        if not move.startswith("="):  # a kitty, which follows from the seed
            twins.step(move)


def difference_in(line: str) -> DifferenceError | None:
    try:
        replay(line)
    except DifferenceError as difference:
        return difference
    except ValueError:
        return None
    return None


def simpler(line: str) -> Iterator[str]:
    """The line with one field of the rules back at its default, or with level scores."""
    head, facts = line.split(";")
    plain = [fact for fact in facts.split() if not fact.startswith("rules=")]
    rules = notation.string_to_position(f"{' '.join(head.split()[:3])} ;{facts}")[1]
    changed = {name: value for name, value in rules.to_dict().items() if value != Rules().to_dict()[name]}
    for dropped in changed:
        kept = {name: value for name, value in changed.items() if name != dropped}
        text = json.dumps(kept, separators=(",", ":")).replace(" ", "\\u0020")
        yield f"{head}; {' '.join([*plain, f'rules={text}'] if kept else plain)}"
    dealer, scores, *rest = head.split()
    if scores != "0,0,0,0":
        yield f"{dealer} 0,0,0,0 {' '.join(rest)} ;{facts}"


def shrink(difference: DifferenceError) -> DifferenceError:
    """A difference that stands alone: one deal, rules as plain as possible. The game that led there is left out."""
    for line in simpler(difference.line):
        smaller = difference_in(line)
        if smaller is not None:
            return shrink(smaller)
    return difference


def compare_games(numbers: Iterable[int]) -> int:
    """Play these games; the number of decisions. A difference fails with one line of notation."""
    decisions = 0
    for number in numbers:
        try:
            decisions += play_game(number)
        except DifferenceError as difference:
            smallest = shrink(difference)
            pytest.fail(f"game {number}: {smallest.what}\n{smallest.line}", pytrace=False)
    return decisions


def table_of_branches() -> str:
    return "\n".join(f"{Oracle.branches[name]:>10,}  {name}" for name in ALL_BRANCHES)


# --- the tests --------------------------------------------------------------------------------------------------


def test_engine_and_oracle_agree() -> None:
    Oracle.branches.clear()
    decisions = compare_games(range(GAMES))
    print(f"\n{GAMES:,} games, {decisions:,} decisions, no difference. How often each branch was taken:")
    print(table_of_branches())
    missing = [name for name in ALL_BRANCHES if not Oracle.branches[name]]
    assert len(missing) <= (len(ALL_BRANCHES) // 8 if GAMES < EVERY_BRANCH_FROM else 0), missing


def first_difference(numbers: Iterable[int]) -> DifferenceError:
    for number in numbers:
        try:
            play_game(number)
        except DifferenceError as difference:
            return difference
    raise AssertionError("no difference in these games")


def test_a_difference_shrinks_to_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine in which the queen of spades breaks nothing is found out, in a line that shows this and little else."""
    compiled_rightly = compile_rules

    def faulty(rules: Rules) -> Any:
        by_queen = rules.hearts_broken_by == "heart or QS"
        return compiled_rightly(rules.replace(hearts_broken_by="heart") if by_queen else rules)

    with monkeypatch.context() as patch:
        patch.setattr(sys.modules[__name__], "compile_rules", faulty)
        found = first_difference(range(40))
        smallest = shrink(found)
        assert len(smallest.line) < len(found.line)
        with pytest.raises(DifferenceError) as again:
            replay(smallest.line)
    assert str(again.value) == str(smallest)
    assert smallest.what == "broken: engine False, oracle True"
    assert smallest.line.split(" ; ")[0].endswith(" QS")
    assert " 0,0,0,0 " in smallest.line and "points" not in smallest.line and "target" not in smallest.line
    replay(smallest.line)


def test_an_illegal_line_is_no_difference() -> None:
    line = notation.position_to_string(first_deal(random.Random(0), Rules(), 0), Rules())
    with pytest.raises(ValueError, match="2C is illegal"):
        replay(line.replace(" ;", " 2C ;"))
    assert difference_in(line.replace(" ;", " 2C ;")) is None and difference_in(line) is None
