"""The facts at the end of ``docs/rules.md``: by counting, by simulation with fixed seeds, and at their extremes."""

from __future__ import annotations

import itertools
import math
import random
from typing import Any

import numpy as np
import pytest

from dnfh_env.agent import RandomAgent
from dnfh_env.batch import Batch
from dnfh_env.cards import CARD_NAMES, DECK, card_id, cards_in, mask_of
from dnfh_env.engine import PLAY
from dnfh_env.game import Game
from dnfh_env.notation import mask_union
from dnfh_env.rules import CALLS, FIRST_CALL, Rules, card_points
from dnfh_env.view import VIEW
from positions import (
    ALL_BUT_THE_JACK,
    ANY_CALL,
    HEARTS,
    SCORING,
    decisions,
    entered,
    held,
    legal,
    play_deal,
    turn,
)

ALL_RULES = {
    "default": Rules(),
    "standard": Rules.standard_hearts(),
    "omnibus": Rules.omnibus(),
    "kitty": Rules(calls=("kitty",), first_lead="any club", first_trick="any", target=150),
    "odd": Rules(
        calls=CALLS,
        first_trick="jack free",
        hearts_broken_by="heart",
        hearts_with_qs=True,
        shot="shooter",
        ties="play on",
        target=80,
        max_deals=6,
    ),
}
EACH_RULES = pytest.mark.parametrize("name", ALL_RULES)


# --- by counting ------------------------------------------------------------------------------------------------


@pytest.mark.small
def test_sums_of_points() -> None:
    fourteen = Rules(points=card_points(QH=14, QS=26, QC=13, QD=13, JD=-10))
    assert len(cards_in(Rules().scoring_cards)) == 17
    assert (Rules().deal_total, fourteen.deal_total) == (67, 68)
    assert (Rules().positive_total, fourteen.positive_total) == (77, 78)


@pytest.mark.small
def test_66_other_captures_also_total_67() -> None:
    values = [Rules().points[card_id(name)] for name in SCORING]
    found = [
        {name for name, taken in zip(SCORING, chosen, strict=True) if taken}
        for chosen in itertools.product((0, 1), repeat=17)
        if sum(itertools.compress(values, chosen)) == 67
    ]
    others = [capture for capture in found if capture != set(SCORING)]
    assert (len(found), len(others)) == (67, 66)
    for capture in others:
        assert {"QS", "QC", "QD", "QH"} <= capture and "JD" not in capture and len(capture) == 6


@pytest.mark.small
def test_560_hands_throw_a_scoring_card_on_trick_one() -> None:
    """Thirteen of the sixteen scoring cards that are no clubs; `Game` lets each of them throw any."""
    no_clubs = [name for name in SCORING if name != "QC"]
    hands = list(itertools.combinations(no_clubs, 13))
    assert len(hands) == math.comb(16, 13) == 560
    for hand in random.Random(1).sample(hands, 20):
        rest = [name for name in CARD_NAMES if name not in hand]
        game = Game.from_deal([rest[:13], hand, rest[13:26], rest[26:]], dealer=0, call="hold", rules=ANY_CALL)
        assert game.seat == 0 and rest[0] == "2C"
        game.push("2C")
        assert legal(game) == set(hand)


@pytest.mark.small
def test_a_kitty_returns_own_cards_in_84_108_27_1_ways() -> None:
    returned = [len({0, 1, 2} & set(three)) for three in itertools.combinations(range(12), 3)]
    assert [returned.count(k) for k in range(4)] == [84, 108, 27, 1] and len(returned) == 220


@pytest.mark.small
def test_18_deals_and_scores_from_minus_120_to_376() -> None:
    assert 67 * 17 <= 4 * 299 < 67 * 18
    assert Rules().longest_game == 18
    assert 77 * 11 <= 3 * 299 < 77 * 12  # all but the jack to three seats for eleven deals, then the twelfth
    game = play_deal(held(*ALL_BUT_THE_JACK, scores=(299, -110, 299, 249)), first=SCORING[:-1], last="AS KS JD")
    assert (entered(game), game.scores) == ([77, -10, 0, 0], (376, -120, 299, 249))
    assert sum(game.scores[s] for s in (0, 2, 3)) == 77 * 12 and game.winners == (1,)


# --- by simulation ----------------------------------------------------------------------------------------------


@pytest.mark.small
@EACH_RULES
def test_points_and_places_at_every_moment(name: str) -> None:
    """Sums of points, one place for each card, sizes of hands, and legal sets within the hand."""
    rules = ALL_RULES[name]
    game = Game(rules, seed=21)
    for moment in decisions(game, random.Random(4)):
        check_places(moment)
        check_legal(moment)
        if moment.deal and not moment.record["num_plays"][0]:
            shots = 0 if moment.shooter is None else {"others": 2, "shooter": -2}.get(rules.shot, 0)
            assert sum(entered(moment)) == rules.deal_total + shots * rules.positive_total


def check_places(game: Game) -> None:
    record = game.record[0]
    picked = [int(mask) for mask in record.given[:, 0] | record.given[:, 1] | record.given[:, 2]]
    table = [1 << int(card) for card in record.plays[int(record.num_plays) & ~3 : int(record.num_plays)]]
    places = [*map(int, record.hand), *map(int, record.taken), *table, *(picked if game.phase == "pick" else [])]
    assert sum(mask.bit_count() for mask in places) == 52 and mask_union(places) == DECK
    sizes = [len(hand) for hand in game.hands]
    assert max(sizes) - min(sizes) <= (3 if game.phase == "pick" else 1)
    assert mask_union(record.played) == mask_union(record.taken) | sum(table)


def check_legal(game: Game) -> None:
    actions = game.legal_actions()
    assert bool(actions) != game.is_over
    if game.phase in ("pick", "play"):
        assert game.seat is not None and legal(game) <= set(game.hands[game.seat])
    if game.phase == "call":
        assert legal(game) == set(game.rules.calls)


@pytest.mark.small
@pytest.mark.parametrize(
    ("rules", "counts"),
    [
        (Rules(), {65}),
        (Rules(calls=("hold",)), {53}),
        (Rules(calls=("210",)), {65}),
        (Rules(calls=("kitty",), call_by="rotation"), {64}),
        (Rules.standard_hearts(target=60), {64, 52}),
        (Rules(calls=("hold",), call_by="rotation", target=100), {52}),
    ],
)
def test_decisions_a_deal(rules: Rules, counts: set[int]) -> None:
    made: dict[int, int] = {}
    game = Game(rules, seed=1)
    for moment in decisions(game, random.Random(1)):
        if not moment.is_over:
            made[moment.deal] = made.get(moment.deal, 0) + 1
    assert set(made.values()) == counts


def test_random_play_shoots_19_deals_in_10000() -> None:
    deals, batch = 0, Batch(20_000, Rules(max_deals=1), seed=32)
    shots = 0
    agent = RandomAgent()
    for _ in range(65 * 3):
        step = batch.step(agent.act(batch.views(), batch.keys()))
        deals += len(step.final)
        shots += int((step.final["shooter"] >= 0).sum())
    assert deals == 60_000
    assert abs(shots / deals - 0.0019) < 4 * math.sqrt(0.0019 / deals)


def test_random_games_take_13_8_deals_and_end_within_bounds() -> None:
    """The first game of each row: at most 18 deals of 65 decisions."""
    batch = Batch(3_000, seed=33)
    agent = RandomAgent()
    deals: list[int] = []
    for _ in range(65 * 18):
        step = batch.step(agent.act(batch.views(), batch.keys()))
        for final in step.final:
            if final.game < 3_000:
                deals.append(int(final.deal) + 1)
            assert final.scores.min() >= -120 and final.scores.max() <= 376
            assert final.scores.sum() == 67 * (final.deal + 1)
            assert final.scores.max() >= 300 or final.shooter >= 0
    assert len(deals) == 3_000
    assert abs(np.mean(deals) - 13.8) < 4 * np.std(deals) / math.sqrt(3_000)


def prefer(masks: np.ndarray[Any, Any], order: list[str]) -> np.ndarray[Any, Any]:
    """The first legal action of each row in an order of cards; calls as they come."""
    ids = [card_id(name) for name in order] + list(range(FIRST_CALL, 64))
    legal = np.array([[int(mask) >> action & 1 for action in ids] for mask in masks], bool)
    return np.array(ids)[legal.argmax(axis=1)]


HOARDING = [name for name in CARD_NAMES if name[1] != "H" and name != "QS"] + [*HEARTS, "QS"]
DUMPING = [*SCORING, *(name for name in CARD_NAMES if name not in SCORING)]


@pytest.mark.parametrize("order", [HOARDING, DUMPING, CARD_NAMES], ids=["hoarding", "dumping", "low cards"])
def test_hearts_are_broken_before_the_lead_of_trick_11(order: list[str]) -> None:
    """Only 38 cards are neither hearts nor QS, so even seats that hoard them play one within ten tricks."""
    assert 52 - 13 - 1 == 38 < 40
    batch, latest = Batch(200, seed=34), 0
    for _ in range(65 * 3):
        games = batch.games[batch.games["phase"] == PLAY]
        assert (games["broken"][games["num_plays"] >= 40] == 1).all()
        latest = max(latest, int(games["num_plays"][games["broken"] == 0].max(initial=0)))
        batch.step(prefer(batch.legal(), list(order)))
    assert latest >= 24 if order is HOARDING else latest >= 4


@pytest.mark.parametrize("order", [DUMPING, CARD_NAMES], ids=["dumping", "low cards"])
def test_only_qc_of_the_scoring_cards_appears_in_trick_one(order: list[str]) -> None:
    """But for a forced throw, which no dealt hand of these games makes."""
    batch, seen = Batch(500, seed=35), 0
    for _ in range(65 * 3):
        games = batch.games[(batch.games["phase"] == PLAY) & (batch.games["num_plays"] == 4)]
        scoring = games["taken"][:, :, None] & np.uint64(Rules().scoring_cards)
        assert set(scoring.ravel().tolist()) <= {0, 1 << card_id("QC")}
        seen += int((scoring != 0).sum())
        batch.step(prefer(batch.legal(), list(order)))
    assert seen > 50


# --- turning the seats ------------------------------------------------------------------------------------------


@pytest.mark.small
@pytest.mark.parametrize("places", [1, 2, 3])
@EACH_RULES
def test_turning_the_seats_commutes_with_everything(name: str, places: int) -> None:
    """The turned table plays the turned game: kitties and deals to come, masks, views, points, winners."""
    rules = ALL_RULES[name]
    start = Game(rules, seed=40 + places)
    scores = (7, -5, 30, 12)
    hands = [int(mask) for mask in start.record["hand"][0]]
    one = Game.from_deal(hands, dealer=start.dealer, scores=scores, rules=rules, seed=9)
    two = Game.from_deal(
        turn(hands, places), dealer=(start.dealer + places) % 4, scores=turn(scores, places), rules=rules, seed=9
    )
    rng = random.Random(places)
    while not one.is_over and one.deal < 4:
        assert_turned(one, two, places)
        action = rng.choice(one.legal_actions())
        one.push(action)
        two.push(action)
    assert_turned(one, two, places)


def assert_turned(one: Game, two: Game, places: int) -> None:
    assert one.legal_actions() == two.legal_actions()
    assert (one.phase, one.call, one.deal, one.is_over) == (two.phase, two.call, two.deal, two.is_over)
    assert (one.dealer + places) % 4 == two.dealer
    assert one.seat is None or (one.seat + places) % 4 == two.seat
    for what in ("hands", "scores", "points"):
        assert turn(getattr(one, what), places) == list(getattr(two, what))
    assert {(seat + places) % 4 for seat in one.winners} == set(two.winners)
    assert [((seat + places) % 4, card) for seat, card in one.trick] == two.trick
    views = [game.views(range(4)) for game in (one, two)]
    assert np.array(turn(list(views[0]), places), VIEW).tobytes() == views[1].tobytes()


# --- equal cards ------------------------------------------------------------------------------------------------


def equal_pairs(game: Game) -> list[tuple[int, int]]:
    """Pairs of the mover's cards, neighbours in rank once dead cards are left out, that the facts call equal."""
    assert game.seat is not None
    record = game.record[0]
    hand = cards_in(int(record.hand[game.seat]))
    live = set(cards_in(mask_union(record.hand))) | {card_id(card) for _, card in game.trick}
    points = game.rules.points
    return [
        (low, high)
        for low, high in itertools.pairwise(hand)
        if low // 13 == high // 13
        and points[low] == points[high]
        and low != card_id("2C")
        and not any(card in live for card in range(low + 1, high))
    ]


@pytest.mark.parametrize("name", ["default", "standard", "odd"])
def test_equal_cards_are_equal_for_all_that_follows(name: str) -> None:
    """Playing the one for the other, now and for the rest of the deal, changes no option, taker or point."""
    rng, tried = random.Random(5), 0
    for seed in range(12):
        game = Game(ALL_RULES[name], seed=seed)
        for moment in decisions(game, rng):
            if moment.phase == "play" and rng.random() < 0.1 and equal_pairs(moment):
                low, high = rng.choice(equal_pairs(moment))
                check_equal(moment, low, high, rng)
                tried += 1
            if moment.deal == 2:
                break
    assert tried > 50


def check_equal(game: Game, low: int, high: int, rng: random.Random) -> None:
    def swapped(card: int) -> int:
        return {low: high, high: low}.get(card, card)

    one, two, deal = game.copy(), game.copy(), game.deal
    while not one.is_over and one.deal == deal:
        options = one.legal_actions()
        both = one.seat == game.seat and {low, high} & set(options)
        assert {*map(swapped, options)} == set(two.legal_actions()) and one.seat == two.seat
        action = low if low in options and both and one.history == game.history else rng.choice(options)
        one.push(action)
        two.push(swapped(action))
        if one.deal == deal:
            assert one.points == two.points
    assert (one.scores, one.winners, entered(one)) == (two.scores, two.winners, entered(two))


@pytest.mark.small
def test_cards_that_are_not_equal() -> None:
    """The facts' own exceptions: other points, a live card between, and 2C."""
    game = held("23456789TJQKA", "..23456789TJQKA", "...23456789TJQKA", ".23456789TJQKA")
    assert game.seat == 0
    game.push("2C")
    found = equal_pairs(game)  # of seat 1, all hearts: QH differs from its neighbours
    assert [CARD_NAMES[high] for _, high in found] == ["3H", "4H", "5H", "6H", "7H", "8H", "9H", "TH", "JH", "AH"]
    assert mask_of(card for pair in found for card in pair) & 1 << card_id("QH") == 0
