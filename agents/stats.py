"""Means with 95 % intervals, from numpy and the standard library alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Interval:
    """A mean of ``n`` observations and the bounds that hold the true one in 95 of 100 such experiments."""

    mean: float
    low: float
    """``-inf`` where one observation cannot say."""
    high: float
    n: int

    @property
    def margin(self) -> float:
        """Half the width."""
        return (self.high - self.low) / 2

    def to_dict(self) -> dict[str, float | int | None]:
        """As JSON values; an infinite bound is null."""
        low, high = (bound if math.isfinite(bound) else None for bound in (self.low, self.high))
        return {"mean": self.mean, "low": low, "high": high, "n": self.n}

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Interval:
        """The inverse of `to_dict`."""
        low = -math.inf if fields["low"] is None else fields["low"]
        high = math.inf if fields["high"] is None else fields["high"]
        return cls(fields["mean"], low, high, fields["n"])


def mean_interval(values: ArrayLike) -> Interval:
    """Student's t-interval of independent observations, such as the scores of blocks; ``ValueError`` without any."""
    sample = np.asarray(values, np.float64)
    n = len(sample)
    if n == 0:
        raise ValueError("mean_interval: expected at least one observation, got none")
    mean = float(sample.mean())
    if n == 1:
        return Interval(mean, -math.inf, math.inf, n)
    margin = t_quantile((1 + CONFIDENCE) / 2, n - 1) * float(sample.std(ddof=1)) / math.sqrt(n)
    return Interval(mean, mean - margin, mean + margin, n)


def rate_interval(count: int, n: int) -> Interval:
    """Wilson's score interval of ``count`` successes in ``n`` independent trials; it stays within 0 and 1.

    Unlike a t-interval it has a width when nothing happened at all, which is common for shots. Raises ``ValueError``
    unless ``0 <= count <= n`` and ``n > 0``.
    """
    if not 0 <= count <= n or n == 0:
        raise ValueError(f"rate_interval: {count} successes in {n} trials cannot be")
    z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    rate = count / n
    centre = (rate + z * z / (2 * n)) / (1 + z * z / n)
    margin = z / (1 + z * z / n) * math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    return Interval(rate, max(0.0, min(rate, centre - margin)), min(1.0, max(rate, centre + margin)), n)


def t_quantile(p: float, df: int) -> float:
    """The ``p`` quantile of Student's t with ``df`` degrees of freedom, within 0.2 % for ``0.9 <= p <= 0.975``.

    Exact for one and two degrees; else the expansion in powers of ``1 / df`` about the normal quantile (Abramowitz and
    Stegun 26.7.5). Raises ``ValueError`` for ``p`` outside (0, 1) or ``df`` below 1.
    """
    if not 0 < p < 1 or df < 1:
        raise ValueError(f"t_quantile: expected 0 < p < 1 and df >= 1, got p={p}, df={df}")
    if df == 1:
        return math.tan(math.pi * (p - 0.5))
    if df == 2:
        return (2 * p - 1) / math.sqrt(2 * p * (1 - p))
    x = NormalDist().inv_cdf(p)
    terms = (
        x,
        (x**3 + x) / 4,
        (5 * x**5 + 16 * x**3 + 3 * x) / 96,
        (3 * x**7 + 19 * x**5 + 17 * x**3 - 15 * x) / 384,
        (79 * x**9 + 776 * x**7 + 1482 * x**5 - 1920 * x**3 - 945 * x) / 92160,
    )
    return sum(term / float(df) ** power for power, term in enumerate(terms))
