"""Behaviour is counted as docs/evaluation.md defines it: against a recount decision by decision, and by hand."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numba
import numpy as np
import pytest

from agents.behaviour import COUNTS, Group, Rate, by_name, count_deals, count_players, rates
from dnfh_env import ArgumentError, Game, Rules
from dnfh_env.rules import CALLS, compile_rules
from oracle import DECK, SEATS, taker_of
from random_rules import random_plan, random_rules

pytestmark = pytest.mark.small

DEALS = 60 if numba.config.DISABLE_JIT else 250
PAGE = (Path(__file__).resolve().parent.parent / "docs" / "evaluation.md").read_text(encoding="utf-8")
PLACES = ("dealer", "left", "across", "right")
QUEENS = ("QC", "QD", "QH", "QS")
HOLD = Rules(calls=("hold",), max_deals=1)


# --- the naive twin ---------------------------------------------------------------------------------------------


class Witness:
    """Watches one deal, decision by decision, and counts by the page's words."""

    def __init__(self, game: Game) -> None:
        self.game, self.rules = game, game.rules
        self.before, self.dealer = game.scores, game.dealer
        self.dealt = [set(hand) for hand in game.hands]
        self.calls: list[tuple[int, str]] = []
        self.picked: list[set[str]] = [set() for _ in SEATS]
        self.tricks: list[list[tuple[int, str]]] = []

    def push(self, action: str) -> None:
        phase, seat = self.game.phase, self.game.seat
        if phase == "call":
            self.calls.append((seat, action))
        elif phase == "pick":
            self.picked[seat].add(action)
        elif self.game.trick:
            self.tricks[-1].append((seat, action))
        else:
            self.tricks.append([(seat, action)])
        self.game.push(action)

    def counts(self, me: int) -> Counter[str]:
        count: Counter[str] = Counter({"deals": 1})
        self.count_seats(me, count)
        self.count_passes(me, count)
        self.count_honours(me, count)
        self.count_shots(me, count)
        return count

    def count_seats(self, me: int, count: Counter[str]) -> None:
        place = PLACES[(me - self.dealer) % 4]
        count[f"deals:{place}"] += 1
        count[f"points:{place}"] += sum(
            self.rules.points[DECK.index(card)] for trick in self.tricks if taker_of(trick) == me for _, card in trick
        )
        if self.rules.shot == "game" and self.game.shooter is not None:
            edge = 3 * 52 * 4 / 3 if self.game.shooter == me else -52 * 4 / 3
        else:
            entered = [after - before for after, before in zip(self.game.scores, self.before, strict=True)]
            edge = (sum(entered) - entered[me]) / 3 - entered[me]
        count[f"edge:{place}"] += round(12 * edge)

    def count_passes(self, me: int, count: Counter[str]) -> None:
        count.update(f"call:{call}" for seat, call in self.calls if seat == me)
        if self.game.call != "hold":
            count.update(f"held:{card}" for card in self.dealt[me])
            count.update(f"passed:{card}" for card in self.picked[me])

    def count_honours(self, me: int, count: Counter[str]) -> None:
        lowest = [seat for seat in SEATS if self.before[seat] == min(self.before)]
        for trick in self.tricks:
            taker = taker_of(trick)
            for seat, card in trick:
                if card in ("JD", *QUEENS) and taker == me:
                    count[f"taken:{card}"] += 1
                if card not in QUEENS or seat != me:
                    continue
                count[f"kept:{card}" if taker == me else f"given:{card}"] += 1
                if taker != me and len(lowest) == 1 and lowest != [me]:
                    count[f"given_under_leader:{card}"] += 1
                    count[f"given_to_leader:{card}"] += [taker] == lowest

    def count_shots(self, me: int, count: Counter[str]) -> None:
        needed = {DECK[i] for i in range(52) if self.rules.points[i]}
        needed -= set() if self.rules.shot_needs_jack else {"JD"}
        taken: list[set[str]] = [set() for _ in SEATS]
        tries = stops = None
        for trick in self.tricks:
            cards = {card for _, card in trick} & needed
            taker = taker_of(trick)
            taken[taker] |= cards
            out = set().union(*taken)
            if tries is not None and stops is None and cards and taker != tries:
                stops = taker
            if cards and 2 * len(out - cards) < len(needed) <= 2 * len(out) and out == taken[taker]:
                tries = taker
        if tries is not None:
            count["shots_tried"] += tries == me
            count["shots_landed"] += tries == me and taken[me] == needed
            count["shots_broken"] += tries == me and taken[me] != needed
            count["shots_faced"] += tries != me
            count["shots_stopped"] += stops == me


def seen_by(game: Game) -> Any:
    """What the tastes of `random_rules` look at."""
    scoring = {DECK[i] for i in range(52) if game.rules.points[i]}
    legal = {game.action_to_string(action) for action in game.legal_actions()}
    return SimpleNamespace(phase=game.phase, seat=game.seat, trick=game.trick, scoring=scoring, legal=lambda: legal)


def watched_deal(rng: random.Random, rules: Rules, number: int) -> Witness:
    """A deal played by a plan drawn at random, from scores drawn at random."""
    plan = random_plan(rng)
    hands = plan.hands or Game(rules, seed=3, game=number).hands
    low = rng.randint(-20, 20)
    scores = [low + rng.choice((0, 0, 3, 9)) for _ in SEATS]
    witness = Witness(
        Game.from_deal([sorted(hand) for hand in hands], dealer=rng.randrange(4), scores=scores, rules=rules)
    )
    while not witness.game.is_over:
        witness.push(plan.choose(seen_by(witness.game), rng))
    return witness


def test_counts_are_those_of_a_recount_under_random_rules() -> None:
    rng = random.Random(1)
    total: Counter[str] = Counter()
    for number in range(DEALS):
        rules = random_rules(rng).replace(max_deals=1, target=1000)
        witness = watched_deal(rng, rules, number)
        counted = count_deals(witness.game.record, compile_rules(rules))
        assert counted.shape == (1, 4, len(COUNTS)) and counted.dtype == np.int64
        for me in SEATS:
            expected = witness.counts(me)
            assert by_name(counted[0, me]) == {name: expected[name] for name in COUNTS}, (number, me)
            assert set(expected) <= set(COUNTS)
            total.update({name: abs(value) for name, value in expected.items()})
    kinds = {name: name.partition(":")[0] for name in COUNTS}
    assert {kinds[name] for name in COUNTS if total[name]} == set(kinds.values())


# --- by hand ----------------------------------------------------------------------------------------------------

SUITS = (".".join(["AKQJT98765432", "", "", ""]), ".AKQJT98765432..", "..AKQJT98765432.", "...AKQJT98765432")


def played(rules: Rules = HOLD, scores: tuple[int, ...] = (0, 0, 0, 0), dealer: int = 3) -> dict[str, dict[int, int]]:
    """Counters other than 0, by name and seat, of the deal in which seat 0 has all clubs, 1 all diamonds, and so on."""
    game = Game.from_deal(SUITS, dealer=dealer, scores=scores, rules=rules)
    while not game.is_over:
        game.push(game.legal_actions()[-1])
    counts = count_deals(game.record, compile_rules(rules))[0]
    return {name: {s: int(counts[s, i]) for s in SEATS if counts[s, i]} for i, name in enumerate(COUNTS)}


def test_a_seat_that_takes_all_has_shot() -> None:
    counts = played()
    assert counts["shots_tried"] == counts["shots_landed"] == {0: 1}
    assert counts["shots_faced"] == {1: 1, 2: 1, 3: 1}
    assert counts["shots_broken"] == counts["shots_stopped"] == {}
    assert counts["points:left"] == {0: 67}
    assert {counts[f"edge:{place}"][seat] for seat, place in ((1, "across"), (2, "right"), (3, "dealer"))} == {-832}
    assert counts["edge:left"] == {0: 3 * 832}
    assert counts["call:hold"] == {3: 1}
    assert all(not counts[f"held:{card}"] and not counts[f"passed:{card}"] for card in DECK)


def test_queens_are_kept_or_given_and_the_leader_is_alone_at_the_lowest() -> None:
    counts = played(scores=(-1, 0, 5, 5))
    assert [counts[f"taken:{card}"] for card in ("JD", *QUEENS)] == [{0: 1}] * 5
    assert [counts[f"kept:{card}"] for card in QUEENS] == [{0: 1}, {}, {}, {}]
    assert [counts[f"given:{card}"] for card in QUEENS] == [{}, {1: 1}, {2: 1}, {3: 1}]
    assert [counts[f"given_to_leader:{card}"] for card in QUEENS] == [{}, {1: 1}, {2: 1}, {3: 1}]
    tied = played(scores=(0, 0, 5, 5))
    assert not any(tied[f"given_under_leader:{card}"] for card in QUEENS)
    second = played(scores=(4, -1, 5, 5))  # the queen of diamonds is the leader's own
    assert [second[f"given_under_leader:{card}"] for card in QUEENS] == [{}, {}, {2: 1}, {3: 1}]
    assert not any(second[f"given_to_leader:{card}"] for card in QUEENS)


def test_a_rotation_has_no_caller_and_its_passes_count() -> None:
    counts = played(Rules(calls=("300",), call_by="rotation", max_deals=1))
    assert not any(counts[f"call:{call}"] for call in CALLS)
    assert counts["held:2C"] == {0: 1} and counts["passed:AC"] == {0: 1} and counts["passed:2C"] == {}


def broken_after(cards: int, jack: bool = True) -> dict[str, dict[int, int]]:
    """Seat 0 leads clubs and gets ``cards`` scoring cards from seat 2, then leads a heart that seat 1 takes.

    If the jack is not among the shot cards, seat 0 soon gets it as well.
    """
    clubs, hearts, spades, diamonds = ([rank + suit for rank in "AKQJT98765432"] for suit in "CHSD")
    hands = [
        [*(card for card in clubs if card != "3C"), "2H"],
        [*(card for card in spades if card != "QS"), "AH"],
        ["3C", *hearts[1:-1], "QS"],
        diamonds,
    ]
    rules = HOLD.replace(first_lead="any club", shot_needs_jack=jack)
    game = Game.from_deal(hands, dealer=3, call="hold", rules=rules)
    led = [*[card for card in clubs if card not in ("3C", "QC")][: cards + 1], "2H"]
    kept = {"QC", "QD", "AH"} | ({"JD"} if jack else set())
    while not game.is_over:
        legal = [game.action_to_string(action) for action in game.legal_actions()]
        game.push(
            led.pop(0) if led and game.seat == 0 else min(legal, key=lambda card: (card in kept, card != "JD", card))
        )
    counts = count_deals(game.record, compile_rules(rules))[0]
    return {name: {s: int(counts[s, i]) for s in SEATS if counts[s, i]} for i, name in enumerate(COUNTS)}


@pytest.mark.parametrize(("half", "jack"), [(9, True), (8, False)])
def test_a_try_begins_with_half_of_the_shot_cards(half: int, jack: bool) -> None:
    early, late = broken_after(half - 1, jack), broken_after(half, jack)
    assert (0 in early["taken:JD"]) == (0 in late["taken:JD"]) == (not jack)
    assert not any(early[f"shots_{what}"] for what in ("tried", "landed", "broken", "faced", "stopped"))
    assert late["shots_tried"] == late["shots_broken"] == {0: 1}
    assert late["shots_stopped"] == {1: 1}


# --- many at once -----------------------------------------------------------------------------------------------


def some_deals(count: int) -> tuple[Any, Any]:
    rng = random.Random(2)
    rules = Rules(max_deals=1)
    return np.concatenate([watched_deal(rng, rules, n).game.record for n in range(count)]), compile_rules(rules)


def test_players_get_the_sums_over_their_seats() -> None:
    games, rules = some_deals(12)
    lineup = np.random.default_rng(0).integers(0, 3, (12, 4))
    each = count_deals(games, rules)
    sums = count_players(games, rules, lineup, 5)
    assert sums.shape == (5, len(COUNTS))
    for player in range(5):
        np.testing.assert_array_equal(sums[player], each[lineup == player].sum(axis=0))


def test_wrong_arguments_are_refused() -> None:
    games, rules = some_deals(2)
    with pytest.raises(ArgumentError, match="lineup"):
        count_players(games, rules, np.zeros((1, 4), np.int64), 2)
    with pytest.raises(ArgumentError, match="lineup"):
        count_players(games, rules, np.full((2, 4), 2), 2)
    with pytest.raises(ArgumentError, match="ended"):
        count_deals(Game().record, rules)
    assert count_deals(games[:0], rules).shape == (0, 4, len(COUNTS))


# --- rates ------------------------------------------------------------------------------------------------------


def group(counts: dict[str, int], name: str) -> dict[str, Rate]:
    (found,) = (each for each in rates(dict.fromkeys(COUNTS, 0) | counts) if each.name == name)
    assert isinstance(found, Group)
    return {rate.label: rate for rate in found.rates}


def test_rates_are_counts_over_cases() -> None:
    calls = group({"call:300": 3, "call:kitty": 1, "deals:dealer": 4}, "calls")
    assert list(calls) == list(CALLS) and calls["300"] == Rate("300", 3, 4, 0.75, "percent")
    queens = group({"deals": 10, "taken:QS": 2, "given:QS": 6, "kept:QS": 2, "given_under_leader:QS": 4}, "queens")
    assert queens["QS taken"].value == 0.2
    assert queens["QS given, of those played"] == Rate("QS given, of those played", 6, 8, 0.75, "percent")
    assert queens["QS given to the leader"].value == 0
    assert queens["QH given to the leader"].value is None
    shots = group({"deals": 8, "shots_tried": 4, "shots_landed": 1, "shots_faced": 5, "shots_stopped": 2}, "shots")
    assert [rate.value for rate in shots.values()] == [0.5, 0.25, 0, 0.4]
    seats = group({"deals:left": 2, "points:left": 7, "edge:left": -12}, "seats")
    assert seats["card points, left"] == Rate("card points, left", 7, 2, 3.5, "points")
    assert seats["edge, left"] == Rate("edge, left", -12, 2, -0.5, "points")
    assert group({"deals": 4, "taken:JD": 1}, "jack")["JD taken"].value == 0.25


def test_the_ten_cards_most_often_passed_come_first() -> None:
    counts = {f"held:{card}": 100 for card in DECK} | {f"passed:{card}": n for n, card in enumerate(DECK)}
    assert list(group(counts | {"held:AS": 0, "passed:AS": 0}, "passes")) == DECK[50:40:-1]


def test_groups_are_json_and_empty_where_nothing_was_counted() -> None:
    groups = rates(dict.fromkeys(COUNTS, 0))
    assert [each.name for each in groups] == ["calls", "passes", "jack", "queens", "shots", "seats"]
    assert [len(each.rates) for each in groups] == [0, 0, 1, 12, 4, 8]
    assert json.loads(json.dumps([asdict(each) for each in groups]))[2]["rates"][0]["value"] is None
    with pytest.raises(ArgumentError, match="'deals' is missing"):
        rates({})


def test_the_page_defines_every_counter() -> None:
    named = {card for card in DECK}
    for counter in COUNTS:
        kind, _, of = counter.partition(":")
        word = "XX" if of in named else "PLACE" if of in PLACES else "NAME" if of in CALLS else ""
        assert f"`{kind}{':' * bool(word)}{word}`" in PAGE, counter
