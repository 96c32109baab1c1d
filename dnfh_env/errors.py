"""The errors this package raises. Each says what was wrong, where, and what is allowed."""

from __future__ import annotations

_LONGEST = 80


def shown(value: object) -> str:
    """A value as an error message shows it: its `repr`, cut short; never an error itself."""
    try:
        text = repr(value)
    except Exception:  # an int of thousands of digits has no decimal form, and foreign types may do anything
        text = f"<{type(value).__name__}>"
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


class DnfhError(ValueError):
    """Base of every error that dnfh raises for bad input."""


class RulesError(DnfhError):
    """A field of `Rules` has a value that is not allowed."""


class IllegalActionError(DnfhError):
    """An action outside the legal set of the seat to move."""


class DealError(DnfhError):
    """A set position that no shuffled deck can give: wrong hand sizes, a card twice, an unknown seat."""


class NotationError(DnfhError):
    """Text that is not a position or a record; the message says at which token."""


class AgentError(DnfhError):
    """An unknown agent, or one whose answer is not a legal action for every view."""


class CheckpointError(DnfhError):
    """A checkpoint that is broken, or belongs to other rules or another observation layout."""
