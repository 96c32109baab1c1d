"""Intervals against tables, worked examples and simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest

from agents.stats import Interval, mean_interval, rate_interval, t_quantile

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


def test_intervals_as_json_values() -> None:
    for interval in (mean_interval([1.0, 2.5]), mean_interval([1.0])):
        assert Interval.from_dict(interval.to_dict()) == interval
    assert mean_interval([1.0]).to_dict() == {"mean": 1.0, "low": None, "high": None, "n": 1}
