"""Strengths of a field on the scale of Elo, fitted to who finished ahead of whom.

A Bradley-Terry model (Bradley and Terry 1952, Biometrika 39, 324-345) over the pairs of every finishing order: one
contestant finishes ahead of another with probability ``1 / (1 + 10 ** ((other - own) / 400))``, and a tie is half a win
for each. Pairs of one order, and orders of one block, are not independent; the intervals are therefore taken by
resampling whole blocks. Plackett-Luce over whole orders would have no place for ties, which are common here.

The fit is choix's iterative Luce spectral ranking (Maystre and Grossglauser 2015, "Fast and accurate inference of
Plackett-Luce models"): it takes a matrix with half wins, arrives at the likelihood's maximum in some ten steps, however
lopsided the matrix, and is kept. Its own regularisation is left at 0, since that is no likelihood of anything and its
strength depends on the number of games; instead each two contestants have one tie added, after which ratings are finite
even for one that won or lost everything, and for those that never met.

Ratings are **relative to the field**: another field, or another mixture of line-ups, gives other numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agents.results import Rating
from agents.stats import DRAWS, Interval, bootstrap, percentile_interval
from dnfh_env.errors import ArgumentError, DnfhError, shown

ANCHOR = "greedy-v1"
"""Whose rating is `ANCHOR_RATING`, where it is in the field."""

ANCHOR_RATING = 1000.0
"""Of the anchor, or else of the field's mean."""

_ELO = 400 / math.log(10)
"""Points of Elo for a factor of e in the odds."""


def ratings(
    wins: ArrayLike, names: Sequence[str], anchor: str = ANCHOR, seed: int = 0, draws: int = DRAWS
) -> tuple[Rating, ...]:
    """Ratings with 95 % intervals, in the order of ``names``.

    One that won everything is as high as the added tie lets it be, which is less than it may deserve; its interval,
    in which the weight of that tie varies, is wide.

    Args:
        wins: half-points by block, whole numbers of shape ``(blocks, N, N)``: at ``[b, i, j]`` two for each time that
            ``i`` finished ahead of ``j`` and one for each tie, so that ``[b, j, i]`` has the rest. The diagonal counts
            for nothing.
        names: ``N`` different names.
        anchor: whose rating is set to 1000, and has no interval; the field's mean is, where this is not in the field.
        seed: of the resampling of blocks.
        draws: how many times blocks are resampled.

    Raises `ArgumentError` for no blocks, another shape, negative numbers or a name twice, and `DnfhError` where the
    library choix is missing.
    """
    flat = _checked(wins, names)
    blocks = len(flat) - 1
    fit = _fitter(len(names))
    strengths = fit(flat.sum(axis=0))
    drawn = bootstrap(len(flat), lambda weights: fit(weights @ flat, strengths), draws, seed)
    values, samples = _anchored(strengths, names, anchor), _anchored(drawn, names, anchor)
    intervals = [percentile_interval(float(values[i]), samples[:, i], blocks) for i in range(len(names))]
    if anchor in names:
        intervals[list(names).index(anchor)] = Interval(ANCHOR_RATING, ANCHOR_RATING, ANCHOR_RATING, blocks)
    return tuple(Rating(name, interval) for name, interval in zip(names, intervals, strict=True))


def _checked(wins: ArrayLike, names: Sequence[str]) -> NDArray[np.float64]:
    """Half-points by block, with a last block in which each two tie once: ``float64[blocks + 1, N * N]``."""
    halves = np.asarray(wins)
    n = len(names)
    if len(set(names)) < max(n, 1):
        raise ArgumentError(f"ratings: expected different names, got {shown(list(names))}")
    if halves.ndim != 3 or len(halves) == 0 or halves.shape[1:] != (n, n):
        raise ArgumentError(f"ratings: expected wins of shape (blocks, {n}, {n}), got {halves.shape}")
    if not np.issubdtype(halves.dtype, np.integer) or halves.min() < 0:
        raise ArgumentError(
            f"ratings: expected wins in whole half-points from 0 up, not {halves.dtype} from {halves.min()}"
        )
    tied = np.concatenate([halves, np.ones((1, n, n))]) * ~np.eye(n, dtype=bool)
    return tied.reshape(len(tied), n * n)


def check_fitter() -> None:
    """Raise `DnfhError` if the library that fits strengths is not there."""
    if find_spec("choix") is None:
        raise DnfhError("ratings need choix, which is not installed: pip install 'dnfh[evaluate]'")


def _fitter(n: int) -> Any:
    """A function that fits log-strengths, ``float64[n]``, to wins, ``float64[n * n]`` in any unit, from a guess."""
    check_fitter()
    import choix

    def fit(wins: NDArray[np.float64], guess: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        try:
            return choix.ilsr_pairwise_dense(wins.reshape(n, n), initial_params=guess)
        except RuntimeError as error:
            raise DnfhError(f"ratings: no strengths could be fitted: {error}") from error

    return fit if n > 1 else lambda wins, guess=None: np.zeros(n)


def _anchored(strengths: NDArray[np.float64], names: Sequence[str], anchor: str) -> NDArray[np.float64]:
    """Log-strengths ``[..., N]`` on the scale of Elo."""
    zero = strengths[..., [list(names).index(anchor)]] if anchor in names else strengths.mean(axis=-1, keepdims=True)
    return ANCHOR_RATING + _ELO * (strengths - zero)
