"""What an evaluation found: plain values that a report shows, saves and reads back."""

from __future__ import annotations

import hashlib
import math
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, is_dataclass, replace
from pathlib import Path
from typing import Any

from agents.stats import Interval
from dnfh_env.agent import Agent
from dnfh_env.rules import Rules


@dataclass(frozen=True)
class Setup:
    """What was asked for: the same setup gives the same figures."""

    contestants: tuple[str, ...]
    """Those that are measured, by name."""
    rules: Rules
    seed: int
    format: str = "ab"
    """``"ab"``: each in one seat against the same three others; ``"1v3"``: each in one seat against three of each other
    contestant; ``"2v2"``: two of one against two of another; ``"field"``: all line-ups and seatings of the field."""
    against: tuple[str, ...] = ()
    """In ``"ab"`` the three others, left, across and right."""
    deals: int = 0
    """Blocks of one deal."""
    games: int = 0
    """Blocks of one whole game."""
    isolated: bool = False
    """Whether agents ran in processes of their own."""


@dataclass(frozen=True)
class Result:
    """What a contestant scored against some others; None for what was not played."""

    contestant: str
    against: tuple[str, ...]
    """Three others at the contestant's left, across and right; or the field, or the opposing pair."""
    edge: Interval | None = None
    """In points a deal, t-interval over blocks of one deal."""
    card_points: Interval | None = None
    """A deal, t-interval over blocks of one deal."""
    shots: Interval | None = None
    """Rate of deals the contestant shot, over blocks of one deal, within 0 and 1."""
    win_share: Interval | None = None
    """A game, over blocks of one game, within 0 and 1."""
    adjusted_edge: Interval | None = None
    """`edge` with luck taken out, see `agents.luck`."""
    luck_factor: float | None = None
    """By how much that cut the variance of a block; 1 is not at all."""
    running: Interval | None = None
    """Of `edge`, or without deals of `win_share`: holds at every moment of a run at once, so that one may look and
    stop; see `agents.stats.confidence_sequence`."""


@dataclass(frozen=True)
class Difference:
    """``first`` minus ``second`` in one figure, paired over blocks of the same cards."""

    first: str
    second: str
    figure: str
    """``"edge"`` or ``"win_share"``."""
    value: Interval
    running: Interval
    """Holds at every moment of a run at once, so that one may look and stop; see `agents.stats.confidence_sequence`."""
    pairing_factor: float | None
    """How many times the variance would be if each had been dealt cards of its own; None where both sit at one table,
    or the difference does not vary."""


@dataclass(frozen=True)
class HeadToHead:
    """A square of comparisons: ``cells[i][j]`` is ``names[i]`` against ``names[j]``; None where there is none."""

    title: str
    names: tuple[str, ...]
    par: float
    """What equals score."""
    cells: tuple[tuple[Interval | None, ...], ...]


@dataclass(frozen=True)
class Rating:
    """A strength on the scale of Elo, relative to the field that was played."""

    name: str
    value: Interval


@dataclass(frozen=True)
class Race:
    """How a figure and its running interval went as blocks came in, thinned out to some points."""

    figure: str
    """``"edge"`` or ``"win_share"``."""
    names: tuple[str, ...]
    blocks: tuple[int, ...]
    """After how many, ``[P]``."""
    means: tuple[tuple[float, ...], ...]
    """``[names][P]``."""
    lows: tuple[tuple[float | None, ...], ...]
    highs: tuple[tuple[float | None, ...], ...]


@dataclass(frozen=True)
class Behaviour:
    """How a contestant played: counts over the deals of its seats, of which `agents.behaviour` makes rates."""

    name: str
    counts: Mapping[str, int]
    """By name, see `agents.behaviour.COUNTS`."""


@dataclass(frozen=True)
class Pace:
    """Time a decision, in milliseconds: that of a call shared by the views it was asked about."""

    name: str
    decisions: int
    mean: float
    p99: float


@dataclass(frozen=True)
class Fault:
    """A contestant erred: it played at random for the rest of the block."""

    name: str
    unit: str
    """``"deal"`` or ``"game"``."""
    block: int
    message: str
    """What was wrong: the error that was raised, or the illegal action and the legal ones."""
    view: str
    """The position in words."""
    action: int | None
    """What it chose; None if it raised."""


@dataclass(frozen=True)
class AgentCard:
    """Who played, so that it can be told from another of the same name."""

    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    weights: str | None = None
    """SHA-256 of its weights."""

    source: str | None = None
    """SHA-256 of the file of its class, where that is not one of this project."""

    @classmethod
    def of(cls, name: str, agent: Agent) -> AgentCard:
        """What an agent says of itself by its attributes ``parameters``, a dataclass or a mapping, and ``weights``.

        Nothing that these do can raise; an agent with an `AgentCard` as its attribute ``card`` has that one.
        """
        try:
            card = getattr(agent, "card", None)
            if isinstance(card, AgentCard):
                return replace(card, name=name)
            found, weights = getattr(agent, "parameters", None), getattr(agent, "weights", None)
            if is_dataclass(found) and not isinstance(found, type):
                found = asdict(found)
            known = _simple(found) if isinstance(found, Mapping) else {}
            return cls(name, known, weights if isinstance(weights, str) else None, _source_of(agent))
        except Exception:  # foreign code, or more than can be told
            return cls(name)


def _simple(value: Any, depth: int = 4) -> Any:
    """JSON values that are the same in every run; of what JSON does not know, and of what lies too deep, the type."""
    if value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if depth and isinstance(value, Mapping):
        return {str(key): _simple(item, depth - 1) for key, item in value.items()}
    if depth and isinstance(value, list | tuple):
        return [_simple(item, depth - 1) for item in value]
    return str(value) if isinstance(value, float) else type(value).__name__


def _source_of(agent: Agent) -> str | None:
    if type(agent).__module__.partition(".")[0] in ("agents", "dnfh_env"):
        return None
    file = getattr(sys.modules.get(type(agent).__module__), "__file__", None)
    return hashlib.sha256(Path(file).read_bytes()).hexdigest() if file else None
