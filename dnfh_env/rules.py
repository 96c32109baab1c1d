"""The rules of a table as data: `Rules`, its presets, and the record that the kernels read.

Numbers such as R9 refer to ``docs/rules.md``.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from dnfh_env.cards import (
    CARD_NAMES,
    CLUBS,
    HEARTS,
    JACK_OF_DIAMONDS,
    NUM_CARDS,
    QUEEN_OF_SPADES,
    TWO_OF_CLUBS,
    card_id,
    mask_of,
)
from dnfh_env.errors import RulesError, one_of, shown, whole

FIRST_CALL = 52
"""Action id of the first call; call ``i`` of `CALLS` is action ``FIRST_CALL + i`` (R3)."""

SPLITS = ("300", "210", "201", "120", "111", "102", "030", "021", "012", "003")
"""The ten ways to split three cards over left, across and right."""

CALLS = (*SPLITS, "kitty", "hold")
KITTY = FIRST_CALL + CALLS.index("kitty")
HOLD = FIRST_CALL + CALLS.index("hold")

MAX_ROTATION = 16
MAX_POINTS = 100
MAX_SCORE = 16_000
MAX_DEALS = 1000

FirstLead = Literal["2C", "any club"]
FirstTrick = Literal["no scoring", "jack free", "any"]
HeartsBrokenBy = Literal["heart or QS", "heart", "no need"]
CallBy = Literal["dealer", "rotation"]
Shot = Literal["game", "others", "shooter", "none"]
Ties = Literal["share", "play on"]
TableDealer = Literal["random", "next"]
Leaver = Literal["leaves", "rejoins"]
EmptyLine = Literal["stay", "end"]

_CHOICES: dict[str, tuple[str, ...]] = {
    "call_by": get_args(CallBy),
    "first_lead": get_args(FirstLead),
    "first_trick": get_args(FirstTrick),
    "hearts_broken_by": get_args(HeartsBrokenBy),
    "shot": get_args(Shot),
    "ties": get_args(Ties),
    "table_dealer": get_args(TableDealer),
    "leaver": get_args(Leaver),
    "empty_line": get_args(EmptyLine),
}


def card_points(*, hearts: int = 1, **cards: int) -> tuple[int, ...]:
    """Points of the 52 cards by id: ``hearts`` for each heart, named cards as given, 0 for the rest.

    >>> card_points(hearts=1, QS=13)[card_id("QS")]
    13
    """
    points = [hearts if 1 << card & HEARTS else 0 for card in range(NUM_CARDS)]
    for name, value in cards.items():
        try:
            points[card_id(name)] = value
        except ValueError as error:
            raise RulesError(f"points: {error}") from None
    return tuple(points)


@dataclasses.dataclass(frozen=True)
class Rules:
    """The rules of one table. `Rules()` is Dirty Nasty Filthy Hearts; every field is an option of ``docs/rules.md``.

    Raises `RulesError` when a field has a value that is not allowed, or when a game could go on for ever.
    """

    points: tuple[int, ...] = card_points(QH=13, QS=26, QC=13, QD=13, JD=-10)
    """Points of each card by id, see `card_points`; a card with points is a *scoring card* (R9, R13)."""
    calls: tuple[str, ...] = CALLS[:-1]
    """What the dealer may call, or the rotation in its order: names of `CALLS` (R3)."""
    call_by: CallBy = "dealer"
    """``"dealer"``: the dealer decides after seeing the hand. ``"rotation"``: deal ``k`` takes call ``k`` (R3)."""
    first_lead: FirstLead = "2C"
    """What the holder of the two of clubs leads (R7)."""
    first_trick: FirstTrick = "no scoring"
    """Which cards a player void in the led suit may throw on the first trick (R9)."""
    hearts_broken_by: HeartsBrokenBy = "heart or QS"
    """What must have been played before a heart is led (R10)."""
    hearts_with_qs: bool = False
    """Whether a leader with nothing but hearts and the queen of spades may lead an unbroken heart (R10)."""
    shot: Shot = "game"
    """What taking all scoring cards of a deal does (R14)."""
    shot_needs_jack: bool = True
    """Whether the jack of diamonds is among the cards a shooter must take (R14)."""
    target: int = 300
    """The game ends when a total reaches this at a deal's end (R16)."""
    ties: Ties = "share"
    """Players tied for lowest share the win, or play on until one leads (R16)."""
    max_deals: int | None = None
    """A game not ended after this many deals is cut off without a winner; ``None``: no limit."""
    table_dealer: TableDealer = "random"
    """Who deals first in a table's next game: drawn at random, or the deal moves on (R18)."""
    leaver: Leaver = "leaves"
    """Whether a player sent from the table is gone or joins the end of the line (R18)."""
    empty_line: EmptyLine = "stay"
    """When a player is sent away and nobody waits: all stay, or the table ends (R18)."""

    def __post_init__(self) -> None:
        for field, allowed in _CHOICES.items():
            one_of(field, getattr(self, field), allowed, RulesError)
        object.__setattr__(self, "points", _points(self.points))
        object.__setattr__(self, "calls", _calls(self.calls, self.call_by))
        for field in ("hearts_with_qs", "shot_needs_jack"):
            if not isinstance(getattr(self, field), bool):
                raise RulesError(f"{field}: {shown(getattr(self, field))} is not True or False")
        object.__setattr__(self, "target", whole("target", self.target, 1, MAX_SCORE, RulesError))
        if self.max_deals is not None:
            object.__setattr__(self, "max_deals", whole("max_deals", self.max_deals, 1, MAX_DEALS, RulesError))
        if not self.shot_cards and self.shot != "none":
            raise RulesError("points: no card has points, so there is nothing to shoot; set shot to 'none'")
        _check_that_games_end(self)

    @classmethod
    def standard_hearts(cls, **changes: Any) -> Rules:
        """Ordinary Hearts: hearts 1, queen of spades 13, a fixed rotation of passes, the others take 26, target 100."""
        standard: dict[str, Any] = {
            "points": card_points(QS=13),
            "calls": ("300", "003", "030", "hold"),
            "call_by": "rotation",
            "shot": "others",
            "target": 100,
        }
        return cls(**(standard | changes))

    @classmethod
    def omnibus(cls, **changes: Any) -> Rules:
        """`standard_hearts` with a jack of diamonds worth -10: free on the first trick, not needed for a shot."""
        omnibus: dict[str, Any] = {
            "points": card_points(QS=13, JD=-10),
            "first_trick": "jack free",
            "shot_needs_jack": False,
        }
        return cls.standard_hearts(**(omnibus | changes))

    def replace(self, **changes: Any) -> Rules:
        """These rules with some fields changed."""
        return dataclasses.replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """The fields as JSON values; points by card name, cards without points left out."""
        fields = dataclasses.asdict(self)
        fields["points"] = {CARD_NAMES[card]: value for card, value in enumerate(self.points) if value}
        fields["calls"] = list(self.calls)
        return fields

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Rules:
        """The inverse of `to_dict`; fields left out keep their defaults. Raises `RulesError` for anything else."""
        if not isinstance(fields, Mapping):
            raise RulesError(f"rules: expected a mapping of fields, got {type(fields).__name__}")
        known = {field.name for field in dataclasses.fields(cls)}
        unknown = sorted(set(fields) - known, key=str)
        if unknown:
            raise RulesError(f"rules: unknown field {shown(unknown[0])}, the fields are {', '.join(sorted(known))}")
        values = dict(fields)
        if "points" in values:
            points = values["points"]
            if not isinstance(points, Mapping) or not all(isinstance(name, str) for name in points):
                raise RulesError(f"points: expected card names with points, got {shown(points)}")
            values["points"] = card_points(**({"hearts": 0} | dict(points)))
        if "calls" in values:
            if not isinstance(values["calls"], list | tuple):
                raise RulesError(f"calls: expected a list of names, got {shown(values['calls'])}")
            values["calls"] = tuple(values["calls"])
        return cls(**values)

    def digest(self) -> str:
        """16 hexadecimal digits that name these rules: equal rules, equal digest, on every machine and version."""
        return _digest(self.to_dict())

    def play_digest(self) -> str:
        """`digest` of what decides within a deal and about winning: binds a trained policy to its rules.

        How long games may go on and how a table is filled are left out.
        """
        neutral = Rules()
        outside = ("max_deals", "table_dealer", "leaver", "empty_line")
        fields = self.to_dict() | {name: getattr(neutral, name) for name in outside}
        return _digest(fields)

    def __repr__(self) -> str:
        """Only the fields that differ from the default; evaluates to equal rules."""
        changed = [
            f"{field.name}={_points_repr(self.points) if field.name == 'points' else repr(getattr(self, field.name))}"
            for field in dataclasses.fields(self)
            if getattr(self, field.name) != field.default
        ]
        return f"Rules({', '.join(changed)})"

    @property
    def scoring_cards(self) -> int:
        """Mask of the cards with points (R9)."""
        return mask_of(card for card, value in enumerate(self.points) if value)

    @property
    def shot_cards(self) -> int:
        """Mask of the cards a shooter must take (R14)."""
        return self.scoring_cards if self.shot_needs_jack else self.scoring_cards & ~(1 << JACK_OF_DIAMONDS)

    @property
    def deal_total(self) -> int:
        """Card points of a whole deal: 67 by default."""
        return sum(self.points)

    @property
    def positive_total(self) -> int:
        """The sum of all positive points: 77 by default."""
        return sum(value for value in self.points if value > 0)

    @property
    def longest_game(self) -> int:
        """How many deals a game takes at most."""
        bounds = [] if self.max_deals is None else [self.max_deals]
        if self.deal_total > 0 and self.shot != "shooter" and self.ties == "share":  # every deal adds to the sum
            bounds.append(4 * (self.target - 1) // self.deal_total + 1)
        return min(bounds)

    @property
    def score_limit(self) -> int:
        """A bound that no total of a game, begun at 0, can leave to either side."""
        return self.longest_game * (sum(map(abs, self.points)) + self.positive_total)


def checked_rules(rules: Rules | None) -> Rules:
    """``rules``, or the default ones for ``None``; raises `RulesError` for what is no `Rules`."""
    if rules is None:
        return _DEFAULT
    if not isinstance(rules, Rules):
        raise RulesError(f"rules: expected a Rules object, got {shown(rules)}; Rules.from_dict makes one of a mapping")
    return rules


def _digest(fields: Mapping[str, Any]) -> str:
    canonical = json.dumps(fields, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


def _points_repr(points: tuple[int, ...]) -> str:
    """As a call of `card_points`."""
    hearts = points[card_id("2H")]
    usual = card_points(hearts=hearts)
    named = {CARD_NAMES[card]: value for card, value in enumerate(points) if value != usual[card]}
    if all(name.isidentifier() for name in named):
        return f"card_points({', '.join(f'{name}={value}' for name, value in ({'hearts': hearts} | named).items())})"
    return f"card_points(hearts={hearts}, **{named})"


def _points(points: Any) -> tuple[int, ...]:
    if not isinstance(points, list | tuple) or len(points) != NUM_CARDS:
        raise RulesError(
            f"points: expected {NUM_CARDS} whole numbers, one for each card (see card_points), got {shown(points)}"
        )
    return tuple(
        whole(f"points of {CARD_NAMES[card]}", value, -MAX_POINTS, MAX_POINTS, RulesError)
        for card, value in enumerate(points)
    )


def _calls(calls: Any, call_by: str) -> tuple[str, ...]:
    if not isinstance(calls, list | tuple) or not calls:
        raise RulesError(f"calls: expected at least one of {', '.join(CALLS)}, got {shown(calls)}")
    for call in calls:
        one_of("calls", call, CALLS, RulesError)
    if call_by == "rotation":
        if len(calls) > MAX_ROTATION:
            raise RulesError(f"calls: a rotation has at most {MAX_ROTATION} calls, got {len(calls)}")
        return tuple(calls)
    if len(set(calls)) < len(calls):
        raise RulesError(f"calls: a call is named twice in {shown(calls)}; only a rotation may repeat one")
    return tuple(call for call in CALLS if call in calls)


def _check_that_games_end(rules: Rules) -> None:
    """Scores must rise deal by deal towards the target, or ``max_deals`` must cut the game off, within `MAX_SCORE`."""
    gain = rules.deal_total
    if rules.max_deals is None:
        if gain <= 0:
            raise RulesError(
                f"points: a deal's points sum to {gain}, so a game might never end; "
                "let them sum to more than 0 or set max_deals"
            )
        if rules.shot == "shooter":
            raise RulesError("shot: 'shooter' lowers the scores, so a game might never end; set max_deals")
        if rules.ties == "play on":
            raise RulesError("ties: 'play on' might never end; set max_deals")
    if rules.score_limit > MAX_SCORE:
        raise RulesError(
            f"target: scores might leave ±{MAX_SCORE} in the {rules.longest_game} deals of a game; "
            "lower target, points or max_deals"
        )


SHOT_CODES = {shot: code for code, shot in enumerate(get_args(Shot))}

_RULES_FIELDS: list[Any] = [
    ("scoring", np.uint64),
    ("shot_cards", np.uint64),
    ("first_leads", np.uint64),  # what may open the first trick
    ("first_ban", np.uint64),  # what may not be thrown on the first trick
    ("breakers", np.uint64),  # what breaks hearts
    ("unbroken_ban", np.uint64),  # what may not be led until they are broken
    ("free_hand", np.uint64),  # a hand within this set may lead any of its cards
    ("calls", np.uint64),  # the legal calls as actions
    ("points", np.int16, (NUM_CARDS,)),
    ("rotation", np.uint8, (MAX_ROTATION,)),  # calls as actions
    ("rotation_length", np.int32),  # 0: the dealer calls
    ("positive_total", np.int32),
    ("target", np.int32),
    ("max_deals", np.int32),  # 0: no limit
    ("shot", np.uint8),  # SHOT_CODES
    ("play_on", np.uint8),
]
RULES: np.dtype[Any] = np.dtype((np.record, np.dtype(_RULES_FIELDS, align=True)))
"""What the kernels read of `Rules`: one record, so that no kernel is compiled for a preset."""


@lru_cache(maxsize=256)
def compile_rules(rules: Rules) -> NDArray[Any]:
    """`Rules` as an array of one `RULES` record, shared by all who ask for it, so that nobody writes to it.

    It is not marked read-only, since the mark gets lost in pickling, and numba compiles anew for arrays without it.
    """
    record = np.zeros(1, RULES)
    r = record[0]
    r.scoring = rules.scoring_cards
    r.shot_cards = rules.shot_cards
    r.first_leads = CLUBS if rules.first_lead == "any club" else 1 << TWO_OF_CLUBS
    r.first_ban = {
        "no scoring": rules.scoring_cards,
        "jack free": rules.scoring_cards & ~(1 << JACK_OF_DIAMONDS),
        "any": 0,
    }[rules.first_trick]
    r.breakers = HEARTS | (1 << QUEEN_OF_SPADES if rules.hearts_broken_by == "heart or QS" else 0)
    r.unbroken_ban = 0 if rules.hearts_broken_by == "no need" else HEARTS
    r.free_hand = HEARTS | (1 << QUEEN_OF_SPADES if rules.hearts_with_qs else 0)
    actions = [FIRST_CALL + CALLS.index(call) for call in rules.calls]
    if rules.call_by == "rotation":
        r.rotation[: len(actions)] = actions
        r.rotation_length = len(actions)
    else:
        r.calls = mask_of(actions)
    r.points[:] = rules.points
    r.positive_total = rules.positive_total
    r.target = rules.target
    r.max_deals = rules.max_deals or 0
    r.shot = SHOT_CODES[rules.shot]
    r.play_on = rules.ties == "play on"
    return record


_DEFAULT = Rules()
"""Frozen, so one will do for all; checking the fields takes longer than dealing."""
