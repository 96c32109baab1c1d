"""Luck taken out: the adjustment, chances against counting, kitties and draws by enumeration, logs against games."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from agents import luck
from agents.greedy import Greedy
from agents.learned.policy import learned
from agents.luck import (
    Adjusted,
    cross_fitted,
    deal_covariates,
    dealt_hands,
    hand_covariates,
    hand_feature_names,
    hand_luck,
    kitty_covariates,
    logged_deals,
    policy_covariates,
    single_seat,
)
from agents.stats import mean_interval
from dnfh_env import ArgumentError, Game, NotationError, Rules, notation
from dnfh_env.agent import Agent, RandomAgent, StochasticAgent, legal_rows
from dnfh_env.cards import CARD_NAMES, DECK, NUM_SEATS, card_id, cards_in, mask_of
from dnfh_env.engine import GAME, OVER, PICK, PLAY, apply_all, keys_of, new_games
from dnfh_env.objective import SHOT_VALUE
from dnfh_env.rules import CALLS, KITTY, compile_rules
from dnfh_env.view import VIEW, views_of

sys.path.append(str(Path(__file__).resolve().parent.parent / "benchmarks"))
import fit_hand_value

ALL_HANDS = comb(52, 13)
DEAL = Rules(max_deals=1)
KITTY_ONLY = Rules(max_deals=1, calls=("kitty",))
RNG = np.random.default_rng


def random_hands(count: int, seed: int = 0) -> NDArray[np.uint64]:
    """Dealt hands ``uint64[count, 4]``, shuffled by numpy."""
    order = RNG(seed).permuted(np.tile(np.arange(52, dtype=np.uint64), (count, 1)), axis=1)
    return np.bitwise_or.reduce(np.uint64(1) << order.reshape(count, 4, 13), axis=2)


def near_zero(columns: NDArray[np.float64], errors: float = 4.5) -> bool:
    """Whether the means of columns are 0 within so many standard errors, or 0 where nothing varies."""
    return bool((abs(columns.mean(axis=0)) <= errors * columns.std(axis=0) / len(columns) ** 0.5 + 1e-12).all())


def played_at_random(rules: Rules, count: int, decisions: int, seed: int = 1) -> NDArray[Any]:
    """Games after so many random decisions, or at their ends."""
    games, compiled, agent = new_games(rules, seed, np.arange(count)), compile_rules(rules), RandomAgent()
    for _ in range(decisions):
        live = np.flatnonzero(games["phase"] != OVER)
        now = games.take(live)
        apply_all(now, compiled, agent.act(views_of(now, compiled, now["seat"].astype(np.int64)), keys_of(now)))
        games.put(live, now)
    return games


# --- the adjustment ---------------------------------------------------------------------------------------------


def sample(rows: int, columns: int, seed: int, share: float = 0.9) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Scores with mean 5, of which the covariates explain a share; skewed, and wilder where the first one is large."""
    rng = RNG(seed)
    x = rng.exponential(1, (rows, columns)) - 1
    noise = (rng.exponential(1, rows) - 1) * (1 + x[:, 0]) / 2**0.5
    return 5 + x.sum(axis=1) * (share / columns) ** 0.5 + noise * (1 - share) ** 0.5, x


def taken_off(values: NDArray[np.float64], adjusted: Adjusted) -> NDArray[np.float64]:
    return values - adjusted.values


def test_what_is_taken_off_is_linear_in_own_covariates_and_blind_to_own_scores() -> None:
    """So its expectation is 0 whatever was estimated: this is the proof that the mean is unbiased."""
    y, x = sample(300, 3, 1)
    fold = np.arange(300) % 10 == 4
    before = taken_off(y, cross_fitted(y, x))
    assert abs(before).min() > 0
    wild = taken_off(y + 50 * fold * x[:, 0], cross_fitted(y + 50 * fold * x[:, 0], x))
    np.testing.assert_allclose(wild[fold], before[fold], atol=1e-9)
    assert abs(wild - before)[~fold].max() > 1
    for factor in (-1, 7):
        other = np.where(fold[:, None], factor * x, x)
        np.testing.assert_allclose(taken_off(y, cross_fitted(y, other))[fold], factor * before[fold], atol=1e-9)


def test_the_mean_stays() -> None:
    found = [cross_fitted(*sample(60, 2, seed)) for seed in range(400)]
    assert near_zero(np.array([[adjusted.interval.mean - 5] for adjusted in found]))
    assert np.median([adjusted.factor for adjusted in found]) > 5


def test_the_interval_holds_the_mean_as_often_as_it_says() -> None:
    """Of normal scores: a t-interval of 60 that are as skewed as those of `sample` falls short, adjusted or not."""
    rng, held = RNG(12), 0
    for _ in range(600):
        x = rng.normal(size=(60, 2))
        interval = cross_fitted(5 + 2 * x[:, 0] + x[:, 1] + rng.normal(size=60), x).interval
        held += interval.low <= 5 <= interval.high
    assert held / 600 == pytest.approx(0.95, abs=0.027)  # three standard errors


def test_a_strong_covariate_gives_its_factor_and_noise_gives_one() -> None:
    y, x = sample(5000, 4, 2)
    assert cross_fitted(y, x).factor == pytest.approx(10, rel=0.1)
    rng = RNG(3)
    noise = cross_fitted(rng.normal(size=2000), rng.normal(size=(2000, 30)))
    assert noise.factor == pytest.approx(1, abs=0.01)


def naive_slopes(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    """The slopes with the least generalised cross-validation score, by matrices of the whole size."""
    z, target = (x - x.mean(axis=0)) / x.std(axis=0), y - y.mean()
    best = (target.var() / (1 - 1 / len(y)) ** 2, np.zeros(x.shape[1]))  # nothing taken off
    for strength in luck.STRENGTHS[:-1]:
        hat = np.linalg.solve(z.T @ z + strength * len(y) * np.eye(z.shape[1]), z.T)
        trace = 1 + np.trace(z @ hat)
        score = ((target - z @ hat @ target) ** 2).mean() / (1 - trace / len(y)) ** 2
        best = min(best, (score, hat @ target), key=lambda pair: pair[0])
    return best[1] / x.std(axis=0)


@pytest.mark.parametrize("share", [0.9, 0.05])
def test_slopes_are_those_of_plain_ridge_regression(share: float) -> None:
    y, x = sample(90, 3, 4, share)
    fold = np.arange(90) % 3
    expected = np.array([x[i] @ naive_slopes(x[fold != fold[i]], y[fold != fold[i]]) for i in range(90)])
    np.testing.assert_allclose(taken_off(y, cross_fitted(y, x, folds=3)), expected, atol=1e-6)


@pytest.mark.small
def test_where_nothing_can_be_adjusted() -> None:
    rng = RNG(5)
    y = rng.normal(size=29)
    for x in (rng.normal(size=(29, 3)), np.zeros((29, 0)), np.zeros((29, 2)), np.full((29, 1), 0.3)):
        adjusted = cross_fitted(y, x)
        np.testing.assert_allclose(adjusted.values, y, atol=1e-12)
        assert adjusted.factor == pytest.approx(1.0)
        assert adjusted.interval.n == 29
    assert cross_fitted(np.zeros(50), rng.normal(size=50)).factor == 1.0
    assert cross_fitted([3.0], [1.0]).interval == mean_interval([3.0])


def test_idle_covariates_do_no_harm() -> None:
    y, x = sample(400, 2, 6)
    idle = np.column_stack([x, np.zeros(400), np.full(400, 0.1), x[:, 0]])
    assert cross_fitted(y, idle).factor == pytest.approx(cross_fitted(y, x).factor, rel=0.02)


def test_features_that_hardly_ever_vary() -> None:
    """What only one fold has is a constant elsewhere: rounding errors of its variance must not become a slope."""
    covariates = deal_covariates(new_games(DEAL, 14, np.arange(8000))["hand"]).reshape(20, 400, -1)
    fold = np.arange(400) % 10
    assert any(
        (part[fold != f].std(axis=0) < 1e-9).any() and part.std(axis=0).all() for part in covariates for f in range(10)
    )
    scores = RNG(14).normal(size=(20, 400))
    factors = [cross_fitted(y, x).factor for y, x in zip(scores, covariates, strict=True)]
    assert min(factors) > 0.9


@pytest.mark.small
@pytest.mark.parametrize(
    ("values", "covariates", "folds"),
    [
        ([], [], 10),
        ([1.0, 2.0], [1.0], 10),
        ([[1.0]], [[1.0]], 10),
        ([1.0], [[[1.0]]], 10),
        ([np.nan], [1.0], 10),
        ([1.0], [np.inf], 10),
        ([1.0], [1.0], 1),
    ],
)
def test_samples_that_cannot_be(values: Any, covariates: Any, folds: int) -> None:
    with pytest.raises(ArgumentError, match=r"cross_fitted|folds"):
        cross_fitted(values, covariates, folds)


# --- features of a hand -----------------------------------------------------------------------------------------


def by_name() -> dict[str, float]:
    """The chance of each feature."""
    names, features = hand_feature_names()[52:], luck._hand_features()
    return dict(zip(names, features.chances.tolist(), strict=True))


def chance(*drawn: tuple[int, int]) -> float:
    """That a hand has ``(k of n)`` cards of each of some disjoint sets."""
    rest, others = 13 - sum(k for k, _ in drawn), 52 - sum(n for _, n in drawn)
    ways = comb(others, rest)
    for k, n in drawn:
        ways *= comb(n, k)
    return ways / ALL_HANDS


def test_chances_are_those_of_counting() -> None:
    chances = by_name()
    for suit in "CDHS":
        for length in range(8):
            assert chances[f"length {suit}: {length}-{length}"] == pytest.approx(chance((length, 13)), rel=1e-14)
        assert chances[f"length {suit}: 8-13"] == pytest.approx(sum(chance((k, 13)) for k in range(8, 14)))
        for lower in range(5):
            assert chances[f"below Q{suit}: {lower + 1}-{lower + 1}"] == pytest.approx(chance((1, 1), (lower, 10)))
        assert chances[f"below Q{suit}: 6-6"] == pytest.approx(sum(chance((1, 1), (k, 10)) for k in range(5, 11)))
    for higher in range(4):
        assert chances[f"above JD: {higher + 1}-{higher + 1}"] == pytest.approx(chance((1, 1), (higher, 3)))
    for lower in range(5):
        expected = sum(chance((0, 1), (k, 2), (lower, 10)) for k in (1, 2))
        assert chances[f"below KS, AS without QS: {lower + 1}-{lower + 1}"] == pytest.approx(expected)
    for tops in range(1, 7):
        assert chances[f"aces, kings, queens: {tops}-{tops}"] == pytest.approx(chance((tops, 12)))
    two_voids = 6 * (comb(26, 13) - 2) / ALL_HANDS
    three_voids = 4 / ALL_HANDS
    one_void = 4 * chance((0, 13)) - 2 * two_voids - 3 * three_voids
    assert chances["voids: 1-1"] == pytest.approx(one_void)
    assert chances["voids: 2-3"] == pytest.approx(two_voids + three_voids)
    both = chance((6, 13), (6, 13))
    assert chances["a suit of 6, 0 of A K Q J: 1-2"] == pytest.approx(
        4 * sum(chance((k, 13)) for k in range(6, 14)) - 6 * (both + 2 * chance((6, 13), (7, 13)))
    )
    assert [int(luck.hands_by_number(s.tables).sum()) for s in luck._hand_features().statistics[:3]] == [ALL_HANDS] * 3


def suit_sets(hand: int) -> dict[str, list[int]]:
    """Ranks held by suit, the highest first."""
    return {
        suit: sorted((c % 13 for c in cards_in(hand) if c // 13 == i), reverse=True) for i, suit in enumerate("CDHS")
    }


def sure_tricks(ranks: list[int]) -> int:
    run = sum(1 for i, rank in enumerate(ranks) if rank == 12 - i)
    return len(ranks) if 3 * run >= 13 - len(ranks) else run


NUMBERS: dict[str, Callable[[dict[str, list[int]]], int]] = {
    "voids": lambda s: sum(not ranks for ranks in s.values()),
    "aces, kings, queens": lambda s: sum(rank >= 10 for ranks in s.values() for rank in ranks),
    "sure tricks": lambda s: sum(map(sure_tricks, s.values())),
    "above JD": lambda s: (1 + sum(rank > 9 for rank in s["D"])) if 9 in s["D"] else 0,
    "below KS, AS without QS": lambda s: (
        (1 + min(5, sum(rank < 10 for rank in s["S"]))) if max(s["S"], default=0) > 10 and 10 not in s["S"] else 0
    ),
} | {
    f"a suit of {n}, {tops} of A K Q J": lambda s, n=n, tops=tops: sum(
        len(ranks) >= n and sum(rank > 8 for rank in ranks) >= tops for ranks in s.values()
    )
    for tops, n in itertools.product((0, 2, 3, 4), (5, 6, 7))
}
for _suit in "CDHS":
    NUMBERS[f"length {_suit}"] = lambda s, suit=_suit: len(s[suit])
    NUMBERS[f"below Q{_suit}"] = lambda s, suit=_suit: (
        (1 + min(5, sum(rank < 10 for rank in s[suit]))) if 10 in s[suit] else 0
    )


def test_features_are_what_they_are_called() -> None:
    hands = random_hands(100).ravel()
    found = hand_covariates(hands)
    names = hand_feature_names()
    assert found.shape == (400, len(names))
    assert len(set(names)) == len(names)
    chances = by_name()
    for hand, row in zip(hands.tolist(), found, strict=True):
        held, suits = set(cards_in(hand)), suit_sets(hand)
        np.testing.assert_array_equal(row[:52], [(card in held) - 0.25 for card in range(52)])
        numbers = {name: number(suits) for name, number in NUMBERS.items()}
        for name, value in zip(names[52:], row[52:], strict=True):
            what, _, bounds = name.rpartition(": ")
            low, high = map(int, bounds.split("-"))
            assert value == (low <= numbers[what] <= high) - chances[name], name


def test_features_of_shuffled_hands_have_mean_zero() -> None:
    dealt = new_games(DEAL, 8, np.arange(20_000))["hand"]
    chances = np.concatenate([np.full(52, 0.25), luck._hand_features().chances])
    errors = (chances * (1 - chances) / len(dealt)) ** 0.5
    for hands in (random_hands(20_000, 7)[:, 0], *dealt.T):
        scores = hand_covariates(hands).mean(axis=0) / errors
        assert abs(scores).max() < 4.5
        assert 0.7 < (scores**2).mean() < 1.3  # no larger than chance makes them, all taken together
    wholes = deal_covariates(dealt)
    assert (abs(wholes.mean(axis=0)) < 4.5 * wholes.std(axis=0) / len(dealt) ** 0.5 + 2 / len(dealt)).all()
    assert near_zero(hand_luck(dealt[:, 0])[:, None])


def test_a_deal_is_the_sum_of_its_hands_in_any_order() -> None:
    hands = random_hands(200, 9)
    names = hand_feature_names()
    wanted = [names.index(name) for name in luck._deal_features().names()]
    expected = sum(hand_covariates(hands[:, seat])[:, wanted] for seat in range(NUM_SEATS))
    np.testing.assert_allclose(deal_covariates(hands), expected, atol=1e-12)
    np.testing.assert_allclose(deal_covariates(hands[:, [2, 0, 3, 1]]), expected, atol=1e-12)


@pytest.mark.small
@pytest.mark.parametrize(
    "hands",
    [
        np.zeros(3, np.uint64),
        np.array([mask_of(range(12))]),
        np.array([mask_of([*range(12), 60])]),
        np.array([-1]),
        np.array([[mask_of(range(13))] * 4]),
        np.array([1.5]),
    ],
)
def test_hands_that_cannot_be(hands: NDArray[Any]) -> None:
    with pytest.raises(ArgumentError, match="hands"):
        hand_covariates(hands)


@pytest.mark.small
def test_deals_that_cannot_be() -> None:
    with pytest.raises(ArgumentError, match="twice"):
        deal_covariates(np.array([[mask_of(range(13))] * 4]))
    with pytest.raises(ArgumentError, match=r"\[n, 4\]"):
        deal_covariates(np.array([mask_of(range(13))]))


# --- hand values ------------------------------------------------------------------------------------------------


def hand_of(names: str) -> NDArray[np.uint64]:
    return np.array([notation.string_to_hand(names)], np.uint64)


def test_low_hearts_are_better_than_high_clubs() -> None:
    good, bad = hand_of("32.32.5432.65432"), hand_of("KQJT98.JT9.T9.QJ")
    assert hand_luck(good)[0] > 5 > -5 > hand_luck(bad)[0]


def test_a_file_for_other_features_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = fit_hand_value.fit(200, fit_hand_value.SEED)
    content["features"].pop("QS")
    fit_hand_value.save(content, tmp_path / "hand_value.json")
    monkeypatch.setattr(luck, "HAND_VALUE", tmp_path / "hand_value.json")
    luck._hand_value.cache_clear()
    with pytest.raises(ArgumentError, match="fit_hand_value"):
        hand_luck(random_hands(1)[:, 0])
    luck._hand_value.cache_clear()


def test_a_single_seat() -> None:
    hands, edges = next(fit_hand_value.self_play(12_000, 123))
    hands, edges = hands[::4], edges[::4]
    few, many = single_seat(edges[:2000], hands[:2000]), single_seat(edges, hands)
    assert len(hand_feature_names()) * luck.MANY < len(edges)
    assert 1.0 < few.factor < 1.1
    assert 1.01 < many.factor < 1.1
    assert abs(many.interval.mean - edges.mean()) < mean_interval(edges).margin
    assert many.interval.margin < mean_interval(edges).margin


@pytest.mark.slow
def test_the_file_is_what_the_script_writes() -> None:
    """A tenth of the deals come to nearly the same values, and the recorded facts are those of the script."""
    content = fit_hand_value.fit(fit_hand_value.DEALS // 10, fit_hand_value.SEED)
    hands = random_hands(2000, 10)[:, 0]
    again = hand_covariates(hands) @ np.array([*content["features"].values()])
    assert np.corrcoef(again, hand_luck(hands))[0, 1] > 0.9
    recorded = fit_hand_value.json.loads(luck.HAND_VALUE.read_text(encoding="utf-8"))
    facts = ("format", "agent", "rules", "seed", "ridge")
    assert {fact: recorded[fact] for fact in facts} == {fact: content[fact] for fact in facts}
    assert recorded["deals"] == fit_hand_value.DEALS


@pytest.mark.slow
def test_factors_of_blocks() -> None:
    """By how much the deal's shapes help a contestant with all four hands: see the module's table."""
    blocks = fit_hand_value.played("heuristic", "greedy-v1", DEAL, 4000)
    seat, kitty, draws, deal, *_ = fit_hand_value.factors_of(blocks)
    assert (draws, kitty) == (1.0, pytest.approx(1.0, abs=0.01))
    assert 1.03 < deal < 1.15
    assert 1.03 < seat < 1.15


# --- the kitty --------------------------------------------------------------------------------------------------


def test_every_way_to_deal_out_a_kitty() -> None:
    """A seat's three are each of the 220 threes equally often: over all of them its luck sums to 0."""
    pile = [card_id(name) for name in ["QS", "KS", "AS", "2C", "3H", "9H", "JD", "QD", "TD", "4C", "QH", "AC"]]
    games = np.zeros(220, GAME)
    games["call"], games["num_picks"] = KITTY, 12
    for game, three in zip(games, itertools.combinations(pile, 3), strict=True):
        rest = [card for card in pile if card not in three]
        game["kitty"] = [mask_of(three), *(mask_of(rest[i : i + 3]) for i in (0, 3, 6))]
    found = kitty_covariates(games)
    assert abs(found[:, 0]).max() > 1
    assert abs(found[:, 0].sum()) < 1e-9
    np.testing.assert_allclose(found.sum(axis=1), 0, atol=1e-12)
    values = dict(zip(CARD_NAMES, luck._hand_value().cards, strict=True))
    names = ["QS", "KS", "AS", "2C", "3H", "9H", "JD", "QD", "TD", "4C", "QH", "AC"]
    expected = sum(values[name] for name in names[:3]) - 3 / 12 * sum(values[name] for name in names)
    assert found[0, 0] == pytest.approx(expected)


def test_kitties_as_the_engine_deals_them_out() -> None:
    found = kitty_covariates(played_at_random(KITTY_ONLY, 4000, 13))
    assert found.any(axis=1).all()
    for seat in range(NUM_SEATS):
        assert near_zero(found[:, [seat]])
    others = played_at_random(Rules(max_deals=1, calls=("300", "hold")), 50, 65)
    assert not kitty_covariates(others).any()


def test_a_kitty_that_is_not_dealt_out_yet() -> None:
    with pytest.raises(ArgumentError, match="dealt out"):
        kitty_covariates(played_at_random(KITTY_ONLY, 2, 5))


# --- an agent's own draws ---------------------------------------------------------------------------------------


def positions(decisions: int, count: int = 40) -> NDArray[Any]:
    """Views of seats to move."""
    games = played_at_random(Rules(), count, decisions)
    return views_of(games, compile_rules(Rules()), games["seat"].astype(np.int64))


@pytest.mark.parametrize("decisions", [0, 4, 20, 40, 57])
@pytest.mark.parametrize("agent", [RandomAgent(), learned(sample=True), learned()], ids=["random", "sample", "best"])
def test_draws_sum_to_zero_over_all_actions(agent: StochasticAgent, decisions: int) -> None:
    views = positions(decisions)
    shares = agent.probabilities(views)
    assert isinstance(agent, StochasticAgent)
    assert shares.shape == (len(views), 64)
    np.testing.assert_allclose(shares.sum(axis=1), 1, atol=1e-12)
    assert not shares[~legal_rows(views["legal"]).view(bool)].any()
    sums = np.zeros(len(views))
    for action in range(64):
        can = shares[:, action] > 0
        actions = np.full(can.sum(), action)
        sums[can] += shares[can, action] * policy_covariates(views[can], shares[can], actions)
    np.testing.assert_allclose(sums, 0, atol=1e-12)


@pytest.mark.parametrize("agent", [RandomAgent(), learned(sample=True), learned()], ids=["random", "sample", "best"])
def test_probabilities_are_those_of_the_draws(agent: Agent) -> None:
    draws = 4000
    assert isinstance(agent, StochasticAgent)
    for view in (*positions(0)[:1], *positions(8)[:1], *positions(35)[:2]):
        views = np.repeat(np.array([view], VIEW), draws)
        keys = RNG(11).integers(0, 2**64, draws, np.uint64)
        shares = agent.probabilities(views[:1])[0]
        found = np.bincount(agent.act(views, keys), minlength=64) / draws
        assert (abs(found - shares) <= 4.5 * (shares * (1 - shares) / draws) ** 0.5 + 2 * (shares > 0) / draws).all()


@pytest.mark.small
def test_who_is_stochastic() -> None:
    assert isinstance(RandomAgent(), StochasticAgent)
    assert not isinstance(Greedy(), StochasticAgent)


def test_the_worth_of_actions() -> None:
    view = np.zeros(1, VIEW)
    view["phase"], view["num_plays"] = PLAY, 22
    view["played"][0, 2:] = [1 << card_id("9D"), 1 << card_id("QD")]
    view["best_card"] = card_id("QD")
    found = dict(zip(CARD_NAMES, luck.worth(view)[0], strict=False))
    assert found["KD"] == -13
    assert found["JD"] == pytest.approx((13 - 10) / 3)
    assert found["QS"] == pytest.approx((13 + 26) / 3)
    ordinary = dict(zip(CARD_NAMES, luck.worth(view, Rules.standard_hearts())[0], strict=False))
    assert ordinary["KD"] == 0
    assert ordinary["QS"] == pytest.approx(13 / 3)
    view["num_plays"] = 20
    assert not luck.worth(view).any()  # a lead
    view["phase"] = PICK
    np.testing.assert_array_equal(luck.worth(view)[0, :52], -luck._hand_value().cards)


def test_draws_that_cannot_be() -> None:
    views = positions(20, 3)
    shares = RandomAgent().probabilities(views)
    actions = RandomAgent().act(views, np.arange(3, dtype=np.uint64))
    illegal = np.array([np.flatnonzero(row == 0)[0] for row in shares])
    for p, a in (
        (shares[:2], actions),
        (shares, actions[:2]),
        (shares * 0.9, actions),
        (-shares, actions),
        (np.full((3, 64), 1 / 64), actions),
        (shares, illegal),
        (shares, np.full(3, 64)),
        (shares, actions.astype(float)),
    ):
        with pytest.raises(ArgumentError, match="policy_covariates"):
            policy_covariates(views, p, a)


# --- logs -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("decisions", [0, 1, 5, 12, 13, 14, 40, 65])
def test_dealt_hands_of_any_moment(decisions: int) -> None:
    rules = Rules(max_deals=1, calls=CALLS)
    games = played_at_random(rules, 60, decisions)
    found = dealt_hands(games)
    np.testing.assert_array_equal(found, new_games(rules, 1, np.arange(60))["hand"])
    assert [notation.dealt_hands(games[i : i + 1]) for i in range(60)] == found.tolist()


def whole_game(seed: int, agent: Agent | str = "random", rules: Rules | None = None) -> Game:
    game = Game(rules, seed)
    while not game.is_over:
        game.push(game.choose(agent))
    return game


def deal_by_deal(game: Game) -> tuple[list[list[int]], list[list[float]]]:
    """Hands and edges by definition, for a game from its start."""
    replay, hands, edges = Game(game.rules, int(game.record["seed"][0])), [], []
    hands.append([mask_of(map(card_id, hand)) for hand in replay.hands])
    for action in game.history:
        deal = replay.deal
        replay.push(action)
        if replay.is_over or replay.deal != deal:
            points = [-3 * SHOT_VALUE if s == replay.shooter else SHOT_VALUE for s in range(4)]
            if replay.shooter is None:
                points = replay.record["entered"][0].tolist()
            edges.append([(sum(points) - mine) / 3 - mine for mine in points])
            hands.append([mask_of(map(card_id, hand)) for hand in replay.hands])
    return hands[:-1], edges


def test_a_log_holds_each_finished_deal() -> None:
    games = [whole_game(1), whole_game(15, "greedy"), whole_game(2, "greedy"), whole_game(0, "heuristic")]
    assert any(game.shooter is not None for game in games)
    log = logged_deals([games[0], "\n", *(game.to_json() + "\n" for game in games[1:])])
    hands, edges = zip(*map(deal_by_deal, games), strict=True)
    np.testing.assert_array_equal(log.hands, np.concatenate(hands))
    np.testing.assert_allclose(log.edges, np.concatenate(edges), atol=1e-9)
    assert (np.bitwise_or.reduce(log.hands, axis=1) == DECK).all()
    assert len(games[0].history) > 65  # and the log leaves the games as they were
    assert single_seat(log.edges[:, 0], log.hands[:, 0]).interval.n == len(log.edges)


def test_a_log_of_unfinished_games() -> None:
    game = whole_game(1)
    for _ in range(30):
        game.pop()
    hands, edges = deal_by_deal(game)
    middle = Game.from_notation(whole_game(3, rules=DEAL).copy().to_notation())
    assert middle.is_over
    np.testing.assert_array_equal(logged_deals([game]).hands, np.array(hands, np.uint64))
    np.testing.assert_allclose(logged_deals([game]).edges, edges, atol=1e-9)
    for empty in ([], [middle], [Game()], ["", " \n"]):
        assert logged_deals(empty).hands.shape == logged_deals(empty).edges.shape == (0, 4)
    with pytest.raises(NotationError):
        logged_deals(["{}"])


def test_a_game_that_begins_in_the_middle_of_a_deal() -> None:
    ended = whole_game(4, rules=DEAL)
    late = ended.copy()
    for _ in range(20):
        late.pop()
    resumed = Game.from_notation(late.to_notation())
    for action in ended.history[-20:]:
        resumed.push(action)
    expected, found = logged_deals([ended]), logged_deals([resumed])
    np.testing.assert_array_equal(found.hands, expected.hands)
    np.testing.assert_allclose(found.edges, expected.edges)
