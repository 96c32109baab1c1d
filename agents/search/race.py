"""A race of candidates over worlds: all meet the same ones, and who falls clearly behind is tried no more.

Common random numbers make differences of candidates far less noisy than their values, so all that is decided rests on
paired differences. After each round of worlds a candidate is dropped that is behind the best by more than so many
standard errors of their difference; what it would have cost goes to the others (Maron, Moore: Hoeffding Races, 1993;
with paired differences: Moore, Lee: Efficient Algorithms for Minimizing Cross Validation Error, 1994).

The errors are those of a single look. Looking again after each round drops more: of two candidates that are equal, one
is dropped within 144 worlds in a quarter of all races at two errors, and not in one of twenty. So dropping spends the
budget well, and vouches for nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from agents.search.playout import draw_world

ROUND = 8
"""Worlds of the first round, and of each until twice as many have been seen; then half as many as have been."""


@njit(inline="always")  # since it takes functions, or it could not be cached
def race(v: Any, count: Any, budget: Any, s: Any, x: Any, attempt: Any, choose: Any, arguments: Any) -> Any:
    """Try ``count`` candidates in common worlds of a view, ``budget`` times in all; which of them to choose.

    The budget is to be twice the candidates or more, since one world says nothing about how sure a difference is.
    ``attempt(v, c, s, x, choose, arguments)`` is what candidate ``c`` comes to in ``x.world[0]``; ``x.values``,
    ``float64[candidates, worlds]``, keeps it and bounds the worlds, ``s.settings[0]`` has ``drop`` and ``depart``.
    """
    q = s.settings[0]
    alive = np.ones(count, np.bool_)
    left = count
    seen = 0
    while left > 1 and seen < x.values.shape[1] and budget >= left:
        stop = min(seen + round_size(seen), x.values.shape[1], seen + budget // left)
        for w in range(seen, stop):
            draw_world(v, s.rules[0], x, choose, arguments)
            for c in range(count):
                if alive[c]:
                    x.values[c, w] = attempt(v, c, s, x, choose, arguments)
        budget -= left * (stop - seen)
        seen = stop
        left = drop_losers(x.values, alive, seen, q.drop, q.depart)
    return winner(x.values, alive, seen, q.depart)


@njit(inline="always")
def round_size(seen: Any) -> Any:
    """How many worlds to try next, when so many have been seen."""
    return max(ROUND, seen // 2)


@njit
def best_of(values: Any, alive: Any, seen: Any) -> Any:
    """The candidate alive of the greatest mean over the worlds seen, the first of equal ones."""
    found = 0
    most = -np.inf
    for i in range(alive.shape[0]):
        if alive[i]:
            mean = values[i, :seen].mean()
            if mean > most:
                found, most = i, mean
    return found


@njit
def behind(values: Any, one: Any, other: Any, seen: Any) -> Any:
    """By how much candidate ``other`` is behind ``one`` in the mean, and its standard error; two worlds at least."""
    total = squares = 0.0
    for w in range(seen):
        gap = values[one, w] - values[other, w]
        total += gap
        squares += gap * gap
    mean = total / seen
    return mean, np.sqrt(max(0.0, squares / seen - mean * mean) / (seen - 1))


@njit
def drop_losers(values: Any, alive: Any, seen: Any, drop: Any, depart: Any) -> Any:
    """Drop who is behind the best by more than ``drop`` standard errors; returns how many are left.

    Candidate 0 has to be behind by more than ``depart`` as well, as in `winner`.
    """
    best = best_of(values, alive, seen)
    left = 0
    for i in range(alive.shape[0]):
        if alive[i] and i != best:
            gap, error = behind(values, best, i, seen)
            alive[i] = gap <= error * (drop if i else max(drop, depart))
        left += alive[i]
    return left


@njit
def winner(values: Any, alive: Any, seen: Any, errors: Any) -> Any:
    """The best, or candidate 0 unless it has been dropped or the best is ahead of it by so many standard ``errors``."""
    best = best_of(values, alive, seen)
    if best == 0 or not alive[0]:
        return best
    gap, error = behind(values, best, 0, seen)
    return best if gap > errors * error else 0
