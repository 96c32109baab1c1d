"""Ratings against strengths that are known, and against the equations that define them."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest
from numpy.typing import NDArray

from agents.ratings import ratings
from agents.stats import Interval
from dnfh_env.errors import ArgumentError, DnfhError

pytest.importorskip("choix")

NAMES = ("greedy-v1", "b", "c", "d")
STRENGTHS = np.array([0.0, 0.5, -0.7, 1.5])
ELO = 400 / math.log(10)


def played(blocks: int, seed: int, strengths: NDArray[np.float64] = STRENGTHS) -> NDArray[np.int64]:
    """Finishing orders of Plackett and Luce, two in a block, where the last two often tie.

    They tie more often when the weaker one was ahead, so that half a win for each is what the strengths promise.
    """
    rng = np.random.default_rng(seed)
    n = len(strengths)
    wins = np.zeros((blocks, n, n), np.int64)
    orders = np.argsort(-(strengths + rng.gumbel(size=(blocks, 2, n))), axis=2)
    for block, pair_of_orders in enumerate(orders):
        for order in pair_of_orders:
            for place, ahead in enumerate(order):
                wins[block, ahead, order[place + 1 :]] += 2
            better, worse = order[-2:]
            if rng.random() < 0.5 * min(1.0, math.exp(strengths[worse] - strengths[better])):
                wins[block, better, worse] -= 1
                wins[block, worse, better] += 1
    return wins


def values(wins: NDArray[np.int64], names: tuple[str, ...] = NAMES) -> NDArray[np.float64]:
    return np.array([rating.value.mean for rating in ratings(wins, names, draws=1)])


def test_known_strengths_come_back_with_intervals_that_hold_them() -> None:
    wins = played(3000, seed=1)
    assert (wins % 2).any()
    found = ratings(wins, NAMES)
    assert [rating.name for rating in found] == list(NAMES)
    for rating, truth in zip(found, 1000 + ELO * STRENGTHS, strict=True):
        assert rating.value.low <= truth <= rating.value.high
        assert rating.value.high - rating.value.low < 30
        assert rating.value.n == 3000
    assert found[0].value == Interval(1000.0, 1000.0, 1000.0, 3000)


@pytest.mark.slow
def test_intervals_hold_the_strength_as_often_as_they_say() -> None:
    truth = 1000 + ELO * STRENGTHS
    found = [ratings(played(100, seed), NAMES, draws=100)[1:] for seed in range(40)]
    held = [[at.value.low <= own <= at.value.high for at, own in zip(row, truth[1:], strict=True)] for row in found]
    assert 0.87 <= np.mean(held) <= 1


def test_ratings_expect_the_wins_that_there_were() -> None:
    wins = played(50, seed=2)
    halves = wins.sum(axis=0) / 2 + (1 - np.eye(4)) / 2  # a tie of each two
    strengths = values(wins)
    ahead = 1 / (1 + 10 ** ((strengths - strengths[:, None]) / 400))
    expected = ahead * (halves + halves.T) * (1 - np.eye(4))
    np.testing.assert_allclose(expected.sum(axis=1), halves.sum(axis=1), rtol=1e-6)


def test_order_of_blocks_and_of_names_changes_nothing() -> None:
    wins = played(200, seed=3)
    mixed = np.random.default_rng(1).permutation(200)
    np.testing.assert_array_equal(values(wins), values(wins[mixed]))
    places = np.array([2, 0, 3, 1])
    again = ratings(wins[:, places][:, :, places], [NAMES[i] for i in places], draws=50)
    for before, after in zip(np.array(ratings(wins, NAMES, draws=50), object)[places], again, strict=True):
        assert before.name == after.name
        for bound in ("mean", "low", "high"):
            assert getattr(before.value, bound) == pytest.approx(getattr(after.value, bound), abs=1e-3)


def test_ratings_are_seeded() -> None:
    wins = played(50, seed=3)
    first, again, other = (ratings(wins, NAMES, seed=seed, draws=20) for seed in (1, 1, 2))
    assert first == again != other


def test_a_symmetric_field_is_rated_alike() -> None:
    for wins in (np.zeros((9, 3, 3), np.int64), np.full((9, 3, 3), 4)):
        for names in (("a", "b", "c"), ("a", "greedy-v1", "c")):
            np.testing.assert_allclose(values(wins, names), 1000)


def test_one_that_won_everything_has_a_finite_rating_and_a_wide_interval() -> None:
    wins = np.zeros((500, 2, 2), np.int64)
    wins[:, 0, 1] = 2
    winner, loser = ratings(wins, ("a", "b"))
    assert winner.value.mean - loser.value.mean == pytest.approx(400 * math.log10(500.5 / 0.5))
    assert winner.value.mean + loser.value.mean == pytest.approx(2000)
    assert 200 < winner.value.high - winner.value.low < 1000
    ladder = np.tile(np.triu(np.full((10, 10), 40), 1), (250, 1, 1))  # each always beats all below it
    rated = values(ladder, tuple("abcdefghij"))
    assert np.isfinite(rated).all()
    assert (np.diff(rated) < -100).all()


def test_two_groups_that_never_met_and_a_field_of_one() -> None:
    wins = played(100, seed=4)
    wins[:, :2, 2:] = wins[:, 2:, :2] = 0
    assert np.isfinite(values(wins)).all()
    assert ratings(wins[:, :1, :1], ["a"])[0].value.mean == 1000


def test_one_block_cannot_say() -> None:
    anchor, other, *_ = ratings(played(1, seed=1), NAMES, draws=5)
    assert anchor.value.margin == 0
    assert other.value.margin == math.inf


def test_wins_that_cannot_be() -> None:
    wins = played(5, seed=1)
    for wrong in (wins[0], wins[:0], wins[:, :3], wins / 2, -wins):
        with pytest.raises(ArgumentError, match="wins"):
            ratings(wrong, NAMES)
    with pytest.raises(ArgumentError, match="different names"):
        ratings(wins, "abca")


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "choix", None)
    with pytest.raises(DnfhError, match="choix, which is not installed"):
        ratings(played(2, seed=1), NAMES)
