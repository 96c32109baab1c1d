"""Intervals against tables, worked examples and simulation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from agents.stats import (
    START,
    Interval,
    bootstrap,
    confidence_sequence,
    gap_interval,
    mean_interval,
    pairing_factor,
    percentile_interval,
    rate_interval,
    running_bounds,
    sample_size,
    share_interval,
    t_quantile,
)
from dnfh_env.errors import ArgumentError

T_TABLE = {  # df: quantiles at 0.90, 0.95, 0.975, as printed in tables
    1: (3.078, 6.314, 12.706),
    2: (1.886, 2.920, 4.303),
    3: (1.638, 2.353, 3.182),
    4: (1.533, 2.132, 2.776),
    5: (1.476, 2.015, 2.571),
    9: (1.383, 1.833, 2.262),
    29: (1.311, 1.699, 2.045),
    120: (1.289, 1.658, 1.980),
    10**9: (1.282, 1.645, 1.960),
}


@pytest.mark.parametrize("df", T_TABLE)
def test_t_quantiles_are_those_of_the_tables(df: int) -> None:
    for p, tabled in zip((0.90, 0.95, 0.975), T_TABLE[df], strict=True):
        assert t_quantile(p, df) == pytest.approx(tabled, rel=2e-3)
        assert t_quantile(1 - p, df) == pytest.approx(-t_quantile(p, df))


def test_t_quantiles_that_cannot_be() -> None:
    for p, df in ((0.0, 5), (1.0, 5), (0.9, 0)):
        with pytest.raises(ValueError, match="t_quantile"):
            t_quantile(p, df)


def test_mean_interval_of_a_worked_example() -> None:
    interval = mean_interval([1, 2, 3, 4])  # sd sqrt(5/3), standard error 0.6455, t(3) 3.182
    assert interval.mean == 2.5
    assert interval.n == 4
    assert interval.margin == pytest.approx(3.182 * 0.645497, rel=2e-3)
    assert interval.low == pytest.approx(2.5 - interval.margin)
    assert interval.high == pytest.approx(2.5 + interval.margin)


def test_mean_interval_without_spread_or_sense() -> None:
    assert mean_interval(np.zeros(10)) == Interval(0.0, 0.0, 0.0, 10)
    assert mean_interval([7.0]) == Interval(7.0, -math.inf, math.inf, 1)
    with pytest.raises(ValueError, match="at least one"):
        mean_interval([])


@pytest.mark.parametrize("n", [3, 5, 30])
def test_intervals_hold_the_mean_as_often_as_they_say(n: int) -> None:
    rng = np.random.default_rng(n)
    intervals = [mean_interval(rng.normal(10, 3, n)) for _ in range(4000)]
    held = np.mean([interval.low <= 10 <= interval.high for interval in intervals])
    assert held == pytest.approx(0.95, abs=0.011)  # three standard errors


def test_wilson_intervals() -> None:
    interval = rate_interval(5, 100)
    assert (interval.mean, interval.n) == (0.05, 100)
    assert (interval.low, interval.high) == (pytest.approx(0.02154, abs=1e-5), pytest.approx(0.11175, abs=1e-5))
    nothing, always = rate_interval(0, 100), rate_interval(100, 100)
    assert (nothing.low, nothing.high) == (0.0, pytest.approx(0.03699, abs=1e-5))
    assert (always.low, always.high) == (pytest.approx(1 - 0.03699, abs=1e-5), 1.0)
    for count, n in ((-1, 5), (6, 5), (0, 0)):
        with pytest.raises(ValueError, match="cannot be"):
            rate_interval(count, n)


def naive_bounds(values: list[float], best_at: int) -> list[tuple[float, float, float]]:
    """Formula of the paper, block by block, with rho found by trying many."""

    def margin(t: int, rho: float) -> float:
        x = t * rho**2 + 1
        return math.sqrt(x / (t * rho) ** 2 * math.log(x / 0.05**2))

    rho = min(np.geomspace(1e-3, 1, 20_001), key=lambda rho: margin(best_at, rho))
    found = []
    for t in range(1, len(values) + 1):
        mean = sum(values[:t]) / t
        spread = math.sqrt(sum((value - mean) ** 2 for value in values[:t]) / max(1, t - 1))
        width = spread * margin(t, rho) if t >= START and spread else math.inf
        found.append((mean, mean - width, mean + width))
    return found


@pytest.mark.parametrize("best_at", [300, 5000])
def test_running_bounds_are_those_of_the_paper(best_at: int) -> None:
    values = np.random.default_rng(1).normal(2, 3, START + 100)
    np.testing.assert_allclose(
        np.transpose(running_bounds(values, best_at)), naive_bounds(list(values), best_at), rtol=1e-4
    )


def test_running_bounds_are_narrowest_where_asked() -> None:
    values = np.random.default_rng(1).normal(2, 3, 3000)
    margins = {best_at: confidence_sequence(values, best_at).margin for best_at in (1000, 2500, 3000, 3500, 9000)}
    assert min(margins, key=margins.__getitem__) == 3000


def test_running_bounds_do_not_know_what_comes_later_and_keep_their_digits() -> None:
    values = np.random.default_rng(1).normal(0, 3, 2 * START)
    early, late = running_bounds(values[: START + 7]), running_bounds(values)
    for before, after in zip(early, late, strict=True):
        np.testing.assert_array_equal(before, after[: START + 7])
    _, lows, highs = running_bounds(values + 1e9)
    np.testing.assert_allclose((highs - lows)[START:], (late[2] - late[1])[START:], rtol=1e-6)


def test_confidence_sequence_is_the_last_of_the_running_bounds() -> None:
    values = np.random.default_rng(1).normal(2, 3, START)
    assert confidence_sequence(values[:-1]).margin == math.inf
    interval = confidence_sequence(values)
    assert (interval.mean, interval.low, interval.high) == tuple(bounds[-1] for bounds in running_bounds(values))
    assert interval.n == START
    assert interval.mean == pytest.approx(values.mean())
    assert interval.margin > mean_interval(values).margin
    assert confidence_sequence(np.zeros(2 * START)).margin == math.inf  # a rare other value may be yet to come
    assert all(len(bounds) == 0 for bounds in running_bounds([]))
    with pytest.raises(ArgumentError, match="at least one"):
        confidence_sequence([])
    with pytest.raises(ArgumentError, match="best_at"):
        confidence_sequence(values, 0)


def test_running_bounds_are_seldom_ever_left_and_running_t_intervals_often() -> None:
    rng = np.random.default_rng(3)
    sequences = [rng.normal(0, 1, 1000) for _ in range(400)]
    bounds = [running_bounds(values) for values in sequences]
    left = np.mean([(lows > 0).any() or (highs < 0).any() for _, lows, highs in bounds])
    narrow = [(np.abs(means) > 1.96 / np.sqrt(np.arange(1, 1001)))[START:].any() for means, _, _ in bounds]
    assert left <= 0.05
    assert np.mean(narrow) > 0.1


def test_share_intervals_stay_within_bounds_and_have_a_width() -> None:
    for share in (0.0, 0.25, 1.0):
        interval = share_interval(np.full(50, share))
        assert 0 <= interval.low <= interval.mean == share <= interval.high <= 1
        assert 0.01 < interval.high - interval.low < 0.2
        assert interval.n == 50
    assert share_interval([1.0]).high == 1.0
    assert share_interval([0.1] * 3).mean == pytest.approx(0.1)
    for wrong in ([], [0.5, 1.1], [-0.1]):
        with pytest.raises(ArgumentError, match="share_interval"):
            share_interval(wrong)


@pytest.mark.parametrize("n", [5, 20, 100])
@pytest.mark.parametrize("share", [0.02, 0.25, 0.5])
def test_share_intervals_hold_the_mean_as_often_as_they_say(n: int, share: float) -> None:
    rng = np.random.default_rng(n)
    intervals = [share_interval(rng.random(n) < share) for _ in range(2000)]
    assert np.mean([interval.low <= share <= interval.high for interval in intervals]) >= 0.925
    plain = [mean_interval(rng.random(n) < 0.02) for _ in range(2000)]  # which do not
    assert np.mean([interval.low <= 0.02 <= interval.high for interval in plain]) < 0.9


@pytest.mark.parametrize("power", [0.5, 0.8, 0.95])
@pytest.mark.parametrize("difference", [-1.0, 0.4])
def test_sample_size_has_the_power_it_says(difference: float, power: float) -> None:
    n = sample_size(2.0, difference, power)
    rng = np.random.default_rng(n)
    intervals = [mean_interval(rng.normal(difference, 2.0, n)) for _ in range(3000)]
    assert np.mean([not interval.low <= 0 <= interval.high for interval in intervals]) == pytest.approx(power, abs=0.03)


def test_sample_size_of_a_worked_example_and_of_nonsense() -> None:
    assert sample_size(1.0, 0.5) == 34  # (1.95996 + 0.84162)^2 * 4 = 31.4, and 1.92 for not knowing the spread
    assert sample_size(0.0, 1.0) == 2
    assert sample_size(1.0, 0.5, 0.001) == 2
    for wrong in ((-1.0, 1.0, 0.8), (1.0, 0.0, 0.8), (1.0, 1.0, 1.0), (math.nan, 1.0, 0.8), (1.0, math.inf, 0.8)):
        with pytest.raises(ArgumentError, match="sample_size"):
            sample_size(*wrong)


def test_pairing_factor() -> None:
    rng = np.random.default_rng(1)
    cards, first, second = rng.normal(0, [[3], [1], [1]], (3, 20_000))
    assert pairing_factor(cards + first, cards + second) == pytest.approx((10 + 10) / 2, rel=0.05)
    assert pairing_factor(first, second) == pytest.approx(1, rel=0.05)
    assert pairing_factor([1, 2, 4], [3, 2, 1]) == pytest.approx((7 / 3 + 1) / (19 / 3))
    assert pairing_factor(cards, cards) is None
    assert pairing_factor([1.0], [2.0]) is None
    with pytest.raises(ArgumentError, match="same blocks"):
        pairing_factor([1.0, 2.0], [1.0])


def test_bootstrap_spreads_as_the_theory_says() -> None:
    values = np.random.default_rng(1).exponential(2, 400)
    draws = bootstrap(400, lambda weights: np.array([weights @ values, weights.sum()]) / 400, draws=4000)
    assert draws.shape == (4000, 2)
    assert draws[:, 0].mean() == pytest.approx(values.mean(), rel=0.01)
    assert draws[:, 0].std() == pytest.approx(values.std() / 20, rel=0.05)
    np.testing.assert_allclose(draws[:, 1], 1)
    interval, usual = percentile_interval(values.mean(), draws[:, 0], 400), mean_interval(values)
    assert (interval.low, interval.high) == (pytest.approx(usual.low, abs=0.05), pytest.approx(usual.high, abs=0.05))


def test_bootstrap_is_seeded() -> None:
    def first(seed: int) -> list[float]:
        return list(bootstrap(30, lambda weights: weights[0], draws=5, seed=seed))

    assert first(1) == first(1) != first(2)
    for wrong in ({"count": 0}, {"draws": 0}, {"seed": -1}):
        with pytest.raises(ArgumentError, match=next(iter(wrong))):
            bootstrap(**{"count": 3, "statistic": np.sum, **wrong})


def test_percentile_interval() -> None:
    draws = np.arange(1001.0)
    interval = percentile_interval(400.0, draws, 9)
    assert (interval.mean, interval.n) == (400.0, 9)
    assert (interval.low, interval.high) == (pytest.approx(25), pytest.approx(975))
    assert percentile_interval(5.0, draws, 9).low == 5.0
    assert percentile_interval(990.0, draws, 9).high == 990.0
    assert percentile_interval(5.0, draws, 1) == Interval(5.0, -math.inf, math.inf, 1)


def test_gaps_of_shares() -> None:
    rng = np.random.default_rng(5)
    values = rng.integers(-12, 13, 40) / 12
    here, there = gap_interval(values), gap_interval(-values)
    assert (here.mean, here.low, here.high) == (-there.mean, -there.high, -there.low)
    padded = mean_interval([*values, -1.0, 1.0])
    assert here.mean == pytest.approx(values.mean())
    assert (here.low, here.high) == (pytest.approx(padded.low), pytest.approx(padded.high))
    certain = gap_interval(np.ones(10))
    assert certain.mean == certain.high == 1.0 and 0 < certain.low < 1
    assert gap_interval([0.0]).low == -1.0
    with pytest.raises(ArgumentError, match="gap_interval: expected at least one"):
        gap_interval([])


@pytest.mark.parametrize("interval", [mean_interval, share_interval, gap_interval, confidence_sequence])
@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_what_is_no_number_has_no_interval(interval: Any, wrong: float) -> None:
    with pytest.raises(ArgumentError, match="finite"):
        interval([0.5, wrong])
