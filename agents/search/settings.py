"""Settings of searches: dataclasses of names and bounded numbers, and the record of the numbers for the kernels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from math import isfinite
from numbers import Real
from typing import Any, Literal, NamedTuple, TypeVar, get_args, get_type_hints

import numpy as np
from numpy.typing import NDArray

from dnfh_env.errors import ArgumentError, one_of, shown, whole

Utility = Literal["equity", "points"]
"""What a world is worth: the chance to win the game after it, or card points; see `dnfh_env.objective`."""
Playout = Literal["heuristic", "greedy-v1"]
"""Who plays worlds to their end."""

S = TypeVar("S")


class Bounds(NamedTuple):
    """Of a number, as in ``Annotated[int, Bounds(1, 10)]``."""

    low: float
    high: float


def changed(name: str, settings: S, changes: Mapping[str, Any]) -> S:
    """``settings`` with some changes; raises `ArgumentError`, which begins with the ``name`` of the search."""
    kinds = get_type_hints(type(settings), include_extras=True)
    unknown = sorted(changes.keys() - kinds.keys())
    if unknown:
        raise ArgumentError(f"{name}: {unknown[0]!r} is no setting; they are {', '.join(kinds)}")
    kept = {key: _checked(f"{name}: {key}", kinds[key], value) for key, value in changes.items()}
    return replace(settings, **kept)  # type: ignore[type-var]


def _checked(name: str, kind: Any, value: Any) -> Any:
    """A value of one of the kinds that a field may have: a ``Literal`` of words, or a number with `Bounds`."""
    if not hasattr(kind, "__metadata__"):
        return one_of(name, value, get_args(kind))
    low, high = kind.__metadata__[0]
    if kind.__origin__ is int:
        return whole(name, value, low, high)
    if isinstance(value, bool) or not isinstance(value, Real) or not isfinite(value) or not low <= value <= high:
        raise ArgumentError(f"{name}: {shown(value)} is not a number from {low:g} to {high:g}")
    return float(value)


def compile_settings(settings: Any) -> NDArray[Any]:
    """The numbers among the settings as an array of one record, ``int64`` and ``float64``."""
    kinds = get_type_hints(type(settings))  # without their bounds
    numbers = [(each.name, kinds[each.name]) for each in fields(settings) if kinds[each.name] in (int, float)]
    record = np.zeros(1, np.dtype((np.record, np.dtype(numbers, align=True))))
    for name, _ in numbers:
        record[name] = getattr(settings, name)
    return record
