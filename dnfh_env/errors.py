"""The errors this package raises. Each says what was wrong, where, and what is allowed."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral
from typing import Any

_LONGEST = 80


def shown(value: object) -> str:
    """A value as an error message shows it: its `repr`, cut short; never an error itself."""
    try:
        text = repr(value)
    except Exception:  # an int of thousands of digits has no decimal form, and foreign types may do anything
        text = f"<{type(value).__name__}>"
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def described(error: BaseException) -> str:
    """The type and the words of an error; never an error itself."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # others' errors may do anything, even here
        return type(error).__name__


class DnfhError(ValueError):
    """Base of every error that dnfh raises for bad input."""


class ArgumentError(DnfhError):
    """An argument that nothing can be made with or asked for."""


class RulesError(DnfhError):
    """A field of `Rules` has a value that is not allowed."""


class IllegalActionError(DnfhError):
    """An action outside the legal set of the seat to move."""


class DealError(ArgumentError):
    """A set position that no shuffled deck can give: wrong hand sizes, a card twice, an unknown seat."""


class NotationError(DnfhError):
    """Text that is not a position or a record; the message says at which token."""


class AgentError(DnfhError):
    """An unknown agent, or one whose answer is not a legal action for every view."""


class CheckpointError(DnfhError):
    """A checkpoint that is broken, or belongs to other rules or another observation layout."""


def one_of(name: str, value: Any, allowed: Iterable[str], error: type[DnfhError] = ArgumentError) -> Any:
    """``value``, or an error that lists what is allowed."""
    choices = tuple(allowed)
    if not isinstance(value, str) or value not in choices:
        raise error(f"{name}: {shown(value)} is not one of {', '.join(map(repr, choices))}")
    return value


def is_whole(value: Any, low: int, high: int | None = None) -> bool:
    """Whether ``value`` is a whole number, of Python or numpy but no bool, within the bounds."""
    return (
        isinstance(value, Integral)
        and not isinstance(value, bool)
        and low <= int(value)
        and (high is None or int(value) <= high)
    )


def whole(name: str, value: Any, low: int, high: int | None = None, error: type[DnfhError] = ArgumentError) -> int:
    """``value`` as an int, or an error that says from where to where it may lie."""
    if not is_whole(value, low, high):
        raise error(f"{name}: {shown(value)} is not a whole number from {low} {'up' if high is None else f'to {high}'}")
    return int(value)
