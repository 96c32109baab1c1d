"""Dataclasses as JSON values and back, checked on the way by the types of their fields."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np

from agents.stats import Interval
from dnfh_env.errors import ArgumentError, shown
from dnfh_env.rules import Rules

_NAMES: Mapping[Any, str] = {str: "text", bool: "true or false", int: "a whole number", float: "a finite number"}
_UNBOUNDED = {"low": -math.inf, "high": math.inf}
"""The bounds of an `Interval` that null stands for."""


def encoded(value: Any) -> Any:
    """As JSON values: numbers that are not finite become null, what JSON does not know its `repr`."""
    if isinstance(value, Rules):
        return value.to_dict()
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: encoded(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): encoded(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [encoded(item) for item in value]
    if isinstance(value, np.generic | np.ndarray):
        return encoded(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, str | int | NoneType) else repr(value)


def decoded(kind: Any, value: Any, where: str) -> Any:
    """A value of this type, from what `encoded` made of one; raises `ArgumentError` that says where it is not.

    Known are records, ``X | None``, ``tuple[X, ...]``, mappings by text, `Rules`, plain values, and `Any`. An
    `Interval` takes a null bound as an infinite one.
    """
    if kind is Any:
        return value
    if kind is Rules:
        return Rules.from_dict(value)
    if is_dataclass(kind):
        return _record(kind, value, where)
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        return None if value is None else decoded(get_args(kind)[0], value, where)
    if origin is tuple:
        _check(isinstance(value, list), where, value, "a list")
        return tuple(decoded(get_args(kind)[0], item, f"{where}[{index}]") for index, item in enumerate(value))
    if origin is not None:
        _check(isinstance(value, Mapping), where, value, "a mapping")
        return {name: decoded(get_args(kind)[1], item, f"{where}.{name}") for name, item in value.items()}
    return _single(kind, value, where)


def _record(kind: Any, value: Any, where: str) -> Any:
    """A dataclass: all fields without a default, and no others than its own."""
    _check(isinstance(value, Mapping), where, value, f"the fields of a {kind.__name__}")
    known = {field.name: field for field in fields(kind)}
    for name in value:
        _check(name in known, where, name, f"a field of {kind.__name__}: {', '.join(known)}")
    for name, field in known.items():
        needed = field.default is MISSING and field.default_factory is MISSING
        _check(name in value or not needed, where, list(value), f"a {kind.__name__} with {name!r}")
    hints = get_type_hints(kind)
    if kind is Interval:
        hints |= dict.fromkeys(_UNBOUNDED, float | None)
    made = {name: decoded(hints[name], item, f"{where}.{name}") for name, item in value.items()}
    if kind is Interval:
        made |= {name: bound for name, bound in _UNBOUNDED.items() if made[name] is None}
    return kind(**made)


def _single(kind: Any, value: Any, where: str) -> Any:
    """Text, a truth value, or a number; no truth value is a number."""
    if kind is float:
        fits = isinstance(value, int | float) and not isinstance(value, bool)
        _check(fits and abs(value) <= sys.float_info.max, where, value, _NAMES[kind])
        return float(value)
    _check(type(value) is kind, where, value, _NAMES[kind])
    return value


def _check(fits: bool, where: str, value: Any, expected: str) -> None:
    if not fits:
        raise ArgumentError(f"{where}: {shown(value)} is not {expected}")
