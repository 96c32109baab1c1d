"""Means and their 95 % intervals, from numpy and the standard library alone.

For a number of blocks that was fixed beforehand there is `mean_interval`, for shares `share_interval`, for rates
`rate_interval`; for looking while blocks come in, and stopping when it is enough, `confidence_sequence`; for what is
no mean, such as a rating, `bootstrap`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dnfh_env.errors import ArgumentError, shown, whole

CONFIDENCE = 0.95

START = 200
"""Blocks before which a confidence sequence says nothing.

The promise of `running_bounds` is kept in the limit, and broken early by rare large scores: before the first shots are
seen, mean and variance both lack them. In simulation, the mean over four seats of a normal deviate, with shots of one's
own (+208) in 0.25 to 5 % and of others' (-69) in none to 2.5 % of the seats, left the bounds at some time within 2,000
blocks in up to 16 of 100 runs when they began at 50, 10 at 100, 7.5 at 150, and 6.5 at 200 (2 to 6 mostly): seven is
what is allowed. Bounded scores without rare events leave them in about 3.
"""

BEST_AT = 500
"""Blocks at which a confidence sequence is narrowest, unless asked otherwise."""


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


def mean_interval(values: ArrayLike) -> Interval:
    """Student's t-interval of independent observations, such as the scores of blocks.

    For a number of them that was fixed beforehand; see `confidence_sequence` for one that was not. Raises
    `ArgumentError` without any.
    """
    sample = _sample("mean_interval", values)
    n = len(sample)
    mean = float(sample.mean())
    if n == 1:
        return Interval(mean, -math.inf, math.inf, n)
    margin = t_quantile((1 + CONFIDENCE) / 2, n - 1) * float(sample.std(ddof=1)) / math.sqrt(n)
    return Interval(mean, mean - margin, mean + margin, n)


def share_interval(values: ArrayLike) -> Interval:
    """The interval of block means that lie within 0 and 1, such as win shares; it stays within 0 and 1.

    Student's, about what the mean would be with a block at 0 and a block at 1 added, in the manner of Agresti and
    Coull (1998, The American Statistician 52, 119-126, who add successes and failures). So it has a width when all
    blocks are equal. ``mean`` is the plain mean, which is not in the middle. Simulated with true means of 0.02, 0.25
    and 0.5, it held them in 93.9 to 100 % of samples of 5 blocks, in 95.7 to 99.9 % of 20 and in 94.3 to 99.6 % of 100,
    whether all seats of a block win together or each by itself; a plain t-interval held them in 10, 33 and 86 % at
    worst. Raises `ArgumentError` without any block, or for one outside 0 and 1.
    """
    sample = _sample("share_interval", values)
    if sample.min() < 0 or sample.max() > 1:
        raise ArgumentError(f"share_interval: blocks from {sample.min()} to {sample.max()}, expected within 0 and 1")
    mean = min(1.0, float(sample.mean()))  # which may round to more
    padded = mean_interval(np.append(sample, [0.0, 1.0]))
    return Interval(mean, max(0.0, min(mean, padded.low)), min(1.0, max(mean, padded.high)), len(sample))


def gap_interval(values: ArrayLike) -> Interval:
    """`share_interval` for differences of two shares, which lie from -1 to 1: one block at each end is added.

    The interval of the negated values is the negated interval to the last bit. Raises `ArgumentError` without any.
    """
    sample = _sample("gap_interval", values)
    n = len(sample)
    mean, centre = float(sample.mean()), float(sample.sum()) / (n + 2)
    squares = float(((sample - centre) ** 2).sum()) + ((1 - centre) ** 2 + (1 + centre) ** 2)
    margin = t_quantile((1 + CONFIDENCE) / 2, n + 1) * math.sqrt(squares / (n + 1) / (n + 2))
    return Interval(mean, max(-1.0, min(mean, centre - margin)), min(1.0, max(mean, centre + margin)), n)


def rate_interval(count: int, n: int) -> Interval:
    """Wilson's score interval of ``count`` successes in ``n`` independent trials; it stays within 0 and 1.

    Unlike a t-interval it has a width when nothing happened at all, which is common for shots. Raises `ArgumentError`
    unless ``0 <= count <= n`` and ``n > 0``.
    """
    if not 0 <= count <= n or n == 0:
        raise ArgumentError(f"rate_interval: {count} successes in {n} trials cannot be")
    z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    rate = count / n
    centre = (rate + z * z / (2 * n)) / (1 + z * z / n)
    margin = z / (1 + z * z / n) * math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    return Interval(rate, max(0.0, min(rate, centre - margin)), min(1.0, max(rate, centre + margin)), n)


def confidence_sequence(values: ArrayLike, best_at: int = BEST_AT) -> Interval:
    """The last of `running_bounds`: an interval one may look at after every block, to stop when it is narrow enough.

    Raises `ArgumentError` without any observation.
    """
    sample = _sample("confidence_sequence", values)
    means, lows, highs = running_bounds(sample, best_at)
    return Interval(float(means[-1]), float(lows[-1]), float(highs[-1]), len(sample))


def running_bounds(
    values: ArrayLike, best_at: int = BEST_AT
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Means and bounds after each of ``n`` independent observations, such that all bounds hold at once.

    The true mean is outside at *any* time with a probability of 5 % in the limit, while t-intervals that are looked at
    again and again will leave it out some time for certain. An asymptotic confidence sequence, the Gaussian mixture of
    Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas, "Time-uniform central limit theory and asymptotic confidence
    sequences", Annals of Statistics 52 (2024), arXiv 2103.06476, with the variance of what has been seen so far. At
    ``best_at`` it is 1.55 times as wide as a t-interval.

    The bounds are infinite before `START` observations, which says why, and while all are equal, since those say
    nothing about how large a rare other one may be. The first k depend on nothing that comes after them.

    Args:
        values: the observations in the order they came, shape ``(n,)``.
        best_at: after how many the bounds shall be narrowest, compared with other sequences of this kind.

    Returns:
        Means, lows and highs, ``float64[n]`` each.
    """
    sample = np.asarray(values, np.float64)
    counts = np.arange(1, len(sample) + 1)
    means, squares = _running_moments(sample, counts)
    says = (counts >= START) & (squares > 0)
    spread = np.sqrt(squares / np.maximum(counts - 1, 1))
    margins = np.where(says, spread * _running_factor(counts, whole("best_at", best_at, 1)), np.inf)
    return means, means - margins, means + margins


def _running_moments(
    sample: NDArray[np.float64], counts: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Means of the first 1, 2, ... and their sums of squared deviations, by Welford's (1962) recurrence.

    Sums are of differences from the first observation, so that a large offset costs no digits.
    """
    shifted = sample - sample[:1]
    means = np.cumsum(shifted) / counts
    before = np.concatenate([np.zeros(min(1, len(sample))), means[:-1]])
    squares = np.cumsum((counts - 1) / counts * (shifted - before) ** 2)
    return means + sample[:1], squares


def _running_factor(counts: NDArray[np.int64], best_at: int) -> NDArray[np.float64]:
    """Margin of the sequence in standard deviations, ``float64`` of the shape of ``counts``."""
    scaled = counts * (_BEST_SCALED / best_at)  # t rho^2 in the paper's letters
    factor: NDArray[np.float64] = np.sqrt((1 + 1 / scaled) / counts * (np.log1p(scaled) + _SURPRISE))
    return factor


_SURPRISE = -2 * math.log(1 - CONFIDENCE)


def _best_scaled() -> float:
    """The ``x = t rho^2`` at which `_running_factor` is least over rho: the root of ``x = log(1 + x) + _SURPRISE``."""
    x = _SURPRISE
    for _ in range(50):  # each step leaves about a tenth of the error
        x = math.log1p(x) + _SURPRISE
    return x


_BEST_SCALED = _best_scaled()


def sample_size(sd: float, difference: float, power: float = 0.8) -> int:
    """Blocks for a two-sided 95 % t-interval to leave out 0 with probability ``power``; two at least.

    By the normal approximation with the correction of Guenther (1981, The American Statistician 35, 243-244).

    Args:
        sd: standard deviation of a block, of the paired difference where two are compared.
        difference: the true mean, of either sign, in the same unit.
        power: between 0 and 1.

    Raises `ArgumentError` for a negative or infinite ``sd``, a ``difference`` of 0, or another ``power``.
    """
    if not (0 <= sd < math.inf and 0 < abs(difference) < math.inf and 0 < power < 1):
        raise ArgumentError(
            f"sample_size: expected sd >= 0, a difference other than 0 and 0 < power < 1, "
            f"got {shown(sd)}, {shown(difference)} and {shown(power)}"
        )
    z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    needed = max(0.0, z + NormalDist().inv_cdf(power)) * sd / abs(difference)
    return max(2, math.ceil(needed**2 + z * z / 2))


def pairing_factor(first: ArrayLike, second: ArrayLike) -> float | None:
    """How many times the variance of a difference would be without the pairing of blocks.

    ``(var first + var second) / var (first - second)``, which is also how many times the blocks one would need: 1 if
    the cards have nothing to do with the scores, large for near twins. None where the difference does not vary, or for
    fewer than two blocks.

    Args:
        first: scores of one contestant, shape ``(n,)``.
        second: of another in the same blocks.

    Raises `ArgumentError` if there are not as many of both.
    """
    a, b = np.asarray(first, np.float64), np.asarray(second, np.float64)
    if a.shape != b.shape or a.ndim != 1:
        raise ArgumentError(f"pairing_factor: expected scores of the same blocks, got shapes {a.shape} and {b.shape}")
    apart, together = (a - b).var() if len(a) else 0.0, a.var() + b.var() if len(a) else 0.0
    return float(together / apart) if apart > ROUNDING * together else None


ROUNDING = 1e-24
"""Part of a variance that rounding alone may make."""

DRAWS = 500
"""Resamplings of a bootstrap, unless asked otherwise."""


def bootstrap(
    count: int,
    statistic: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    draws: int = DRAWS,
    seed: int = 0,
) -> NDArray[np.float64]:
    """What a statistic might as well have been, by weighing whole blocks at random: the Bayesian bootstrap.

    Rubin (1981, Annals of Statistics 9, 130-134). Weights are exponential, with a mean of 1, where the bootstrap of
    Efron counts how often each block is drawn; the spread is the same, but no block is ever lost, so that what can be
    worked out from all blocks can be from every draw. Meant for some dozens of blocks and more.

    Args:
        count: blocks, one at least.
        statistic: a figure, or an array of them, from the weights of the blocks, ``float64[count]``, which sum to
            ``count``. Sums over blocks become weighted sums.
        draws: how many times.
        seed: the same one gives the same draws.

    Returns:
        ``float64[draws, ...]``, for `percentile_interval`.
    """
    rng = np.random.default_rng(whole("seed", seed, 0))
    whole("count", count, 1)

    def drawn() -> NDArray[np.float64]:
        weights = rng.standard_exponential(count)
        return statistic(weights * (count / weights.sum()))

    return np.stack([drawn() for _ in range(whole("draws", draws, 1))])


def percentile_interval(value: float, draws: NDArray[np.float64], n: int) -> Interval:
    """The middle 95 % of a figure's `bootstrap`, ``float64[draws]``, widened where that leaves out ``value`` itself.

    ``n`` is the number of blocks; a single one cannot say.
    """
    if n == 1:
        return Interval(value, -math.inf, math.inf, n)
    low, high = np.quantile(draws, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Interval(value, min(value, float(low)), max(value, float(high)), n)


def _sample(where: str, values: ArrayLike) -> NDArray[np.float64]:
    """Observations as ``float64[n]``, ``n > 0``, or an error that begins with ``where``."""
    sample = np.asarray(values, np.float64)
    if sample.ndim != 1 or len(sample) == 0:
        raise ArgumentError(f"{where}: expected at least one observation in a row, got shape {sample.shape}")
    if not np.isfinite(sample).all():
        raise ArgumentError(f"{where}: expected finite observations, got {shown(sample[~np.isfinite(sample)][0])}")
    return sample


def t_quantile(p: float, df: int) -> float:
    """The ``p`` quantile of Student's t with ``df`` degrees of freedom, within 0.2 % for ``0.9 <= p <= 0.975``.

    Exact for one and two degrees; else the expansion in powers of ``1 / df`` about the normal quantile (Abramowitz and
    Stegun 26.7.5). Raises `ArgumentError` for ``p`` outside (0, 1) or ``df`` below 1.
    """
    if not 0 < p < 1 or df < 1:
        raise ArgumentError(f"t_quantile: expected 0 < p < 1 and df >= 1, got p={p}, df={df}")
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
