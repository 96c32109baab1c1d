"""A view as bits: the layouts ``compact`` and ``full``, and ``state`` for critics that see everything.

A layout is a list of `Field`, and drives encoding, `describe`, the docs and the tests. Each 64-bit word holds one set
of 52 cards and 12 further bits, so that encoding is a few shifts. Everything is relative to the observing seat.

``compact`` leaves out the order of past tricks. ``full`` adds it and the exact scores: two situations have the same
bytes if and only if the seat has the same information about the deal. ``state`` is ``full`` and the hidden cards.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from typing import Any, Literal

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dnfh_env._bits import U0, bit, plain, unpack
from dnfh_env.cards import CARD_NAMES, SUITS
from dnfh_env.engine import CALL, NO_CALL, OVER, PICK, PICK_DIRECTION, PLAY
from dnfh_env.errors import one_of
from dnfh_env.rules import CALLS, FIRST_CALL
from dnfh_env.view import VIEW, checked_seats, look, table_cards

Observation = Literal["compact", "full"]

PLACES = ("me", "left", "across", "right")
_NEIGHBOURS = PLACES[1:]

NUM_SCORE_STEPS = 24
NUM_LEAD_STEPS = 12
_LOWEST_STEP = 6
_TARGET_STEPS = 18
"""A score bit ``k`` says: score >= target * (k - 6) / 18. Sixths of the target are three steps."""
_LOWEST_LEAD = 6
_LEAD_STEPS = 12
"""A lead bit ``k`` says: the neighbour's score minus mine >= target * (2 * k - 11) / 24."""


@dataclasses.dataclass(frozen=True)
class Field:
    """A run of bits: one per label."""

    name: str
    labels: tuple[str, ...]
    meaning: str

    @property
    def bits(self) -> int:
        """Width of the field."""
        return len(self.labels)


@dataclasses.dataclass(frozen=True)
class Layout:
    """A versioned list of fields; ``digest`` binds weights to it."""

    name: str
    version: int
    fields: tuple[Field, ...]

    @functools.cached_property
    def bits(self) -> int:
        """Number of features; always a multiple of 64."""
        return sum(field.bits for field in self.fields)

    @property
    def words(self) -> int:
        """Number of ``uint64`` words when packed."""
        return self.bits // 64

    def digest(self) -> str:
        """16 hexadecimal digits; any change of order, name, label or meaning changes them."""
        return hashlib.sha256(repr((self.name, self.version, self.fields)).encode()).hexdigest()[:16]

    def describe(self, index: int) -> str:
        """What feature ``index`` says when it is 1, for example ``"taken by left: QS"``."""
        if not 0 <= index < self.bits:
            raise IndexError(f"feature {index} is outside layout {self.name!r}, which has 0 to {self.bits - 1}")
        for field in self.fields:
            if index < field.bits:
                return f"{field.name}: {field.labels[index]}"
            index -= field.bits
        raise AssertionError("unreachable")

    def offset(self, name: str) -> int:
        """Index of a field's first bit."""
        start = 0
        for field in self.fields:
            if field.name == name:
                return start
            start += field.bits
        raise KeyError(f"no field {name!r} in layout {self.name!r}")


def _cards(name: str, meaning: str) -> Field:
    return Field(name, CARD_NAMES, meaning)


def _unused(width: int, number: int) -> Field:
    return Field(f"unused {number}", tuple(f"always 0 ({k})" for k in range(width)), "always 0")


def _score(place: str) -> tuple[Field, Field]:
    """A thermometer of a total, in two runs of 12."""
    steps = [f">= {k - _LOWEST_STEP}/{_TARGET_STEPS} of the target" for k in range(NUM_SCORE_STEPS)]
    meaning = f"total of {place} at the last deal's end, in steps of 1/{_TARGET_STEPS} of the target"
    return (
        Field(f"low score of {place}", tuple(steps[:12]), meaning),
        Field(f"high score of {place}", tuple(steps[12:]), meaning),
    )


def _lead(place: str) -> Field:
    steps = tuple(f">= {2 * k - 11}/24 of the target" for k in range(NUM_LEAD_STEPS))
    return Field(f"lead over {place}", steps, f"total of {place} minus mine, in steps of 1/{_LEAD_STEPS} of the target")


def _by_place(name: str) -> tuple[str, ...]:
    return tuple(f"{name} {place}" for place in PLACES)


def _compact_fields() -> tuple[Field, ...]:
    cards = [
        _cards("hand", "cards I hold"),
        _cards("table", "cards of the current trick"),
        *(_cards(f"played by {place}", f"cards that {place} has played in this deal") for place in _NEIGHBOURS),
        *(_cards(f"taken by {place}", f"cards in tricks that {place} has taken in this deal") for place in PLACES),
        *(
            _cards(f"given to {place}", f"cards I picked for {place}, or that may reach it through the kitty")
            for place in _NEIGHBOURS
        ),
        *(
            _cards(f"got from {place}", f"cards I got from {place}, or that may come from it through the kitty")
            for place in _NEIGHBOURS
        ),
    ]
    scores = [field for place in PLACES for field in _score(place)]
    twelves: list[tuple[Field, ...]] = [
        (Field("call", CALLS, "how cards are passed in this deal; none before the call"),),
        (
            Field("dealer", _by_place("dealer is"), "who deals"),
            Field("to move", _by_place("to move is"), "whose decision it is; none when over"),
            Field("leader", _by_place("leader is"), "who led, or leads, the current trick; none before play"),
        ),
        (
            Field("phase", ("call", "pick", "play"), "what is decided now; none when over"),
            Field("pick goes to", _NEIGHBOURS, "where the next card I pick goes; all three for a kitty"),
            Field("led suit", tuple(SUITS), "suit of the current trick's first card"),
            Field("hearts broken", ("hearts may be led",), "whether a heart or what else breaks them has been played"),
            Field("target reached", ("a total has reached the target",), "at any deal's end so far"),
        ),
        (
            Field(
                "voids",
                tuple(f"{place} void in {suit}" for place in _NEIGHBOURS for suit in SUITS),
                "suits a seat has failed to follow",
            ),
        ),
        *((field,) for field in scores),
        *((_lead(place),) for place in _NEIGHBOURS),
    ]
    return tuple(field for word, rest in zip(cards, twelves, strict=True) for field in (word, *rest))


def _full_fields() -> tuple[Field, ...]:
    score_bytes = [(place, half) for place in PLACES for half in ("low", "high")]
    extras = [
        Field(
            f"{half} byte of the score of {place}",
            tuple(f"bit {k}" for k in range(8)),
            f"{half} byte of the total of {place}, 16 bits, two's complement",
        )
        for place, half in score_bytes
    ]
    extras += [
        Field(
            f"{half} byte of the deal",
            tuple(f"bit {k}" for k in range(8)),
            f"{half} byte of the number of this deal in its game",
        )
        for half in ("low", "high")
    ]
    extras.append(Field("picks made", tuple(f"bit {k}" for k in range(8)), "by the whole table, 0 to 12"))
    extras += [_unused(8, number) for number in range(2)]
    fields = list(_compact_fields())
    for t, extra in enumerate(extras):
        fields.append(_cards(f"trick {t + 1}", f"cards of trick {t + 1}; who played each stands in the words above"))
        fields.append(Field(f"leader of trick {t + 1}", PLACES, "who led it; none before"))
        fields.append(extra)
    return tuple(fields)


def _state_fields() -> tuple[Field, ...]:
    fields = list(_full_fields())
    words = [_cards(f"hand of {place}", f"cards {place} holds") for place in _NEIGHBOURS]
    words += [
        _cards(f"given by {giver} to its {taker}", f"cards {giver} picked for its {taker} neighbour, or for the kitty")
        for giver in _NEIGHBOURS
        for taker in _NEIGHBOURS
    ]
    for number, word in enumerate(words, start=2):
        fields += [word, _unused(12, number)]
    return tuple(fields)


COMPACT = Layout("compact", 1, _compact_fields())
FULL = Layout("full", 1, _full_fields())
STATE = Layout("state", 1, _state_fields())
LAYOUTS: dict[str, Layout] = {layout.name: layout for layout in (COMPACT, FULL)}

COMPACT_WORDS = COMPACT.words
_HIGH = 52
"""Where the 12 further bits of a word begin."""
_DIRECTION_OF_PICK = np.vstack([1 << PICK_DIRECTION, np.full((2, 3), 7)]).astype(np.uint64)
"""[call, pick]: bits of "pick goes to"."""


@njit(inline="always")
def at(value: Any, place: Any) -> Any:
    """``value`` as bits from ``place`` on."""
    return np.uint64(value) << np.uint64(place)


@njit
def encode(v: Any, target: Any, words: Any) -> None:
    """Write a view in the layout with as many words, ``uint64[15]`` or ``uint64[28]``."""
    if words.shape[0] == COMPACT_WORDS:
        encode_compact(v, target, words)
    else:
        encode_full(v, target, words)


@njit
def encode_compact(v: Any, target: Any, words: Any) -> None:
    """Write the ``compact`` layout of a view into ``uint64[15]``."""
    encoded = compact_words(v, 1.0 / target)
    for k in range(COMPACT_WORDS):
        words[k] = encoded[k]


@njit(inline="always")
def compact_words(v: Any, per_target: Any) -> Any:
    """The fifteen words of the ``compact`` layout, of a view or a `dnfh_env.view.Present`; ``per_target`` inverts it.

    Made in registers: what is read back soon after it was written, in wider pieces, makes the processor wait.
    """
    # in steps, scores are whole multiples of 1 / target and leads of half of that: a quarter more crosses no step, and
    # keeps them off the edges, whichever way they were rounded
    nudge = 0.25 * per_target
    share, left_share = v.scores[0] * per_target, v.scores[1] * per_target
    across_share, right_share = v.scores[2] * per_target, v.scores[3] * per_target
    mine, left = score_bits(share, nudge), score_bits(left_share, nudge)
    across, right = score_bits(across_share, nudge), score_bits(right_share, nudge)
    return (
        v.hand | at(call_bits(v), _HIGH),
        table_cards(v) | at(seat_bits(v), _HIGH),
        v.played[1] | at(situation_bits(v), _HIGH),
        v.played[2] | at(void_bits(v), _HIGH),
        v.played[3] | at(mine & 0xFFF, _HIGH),
        v.taken[0] | at(mine >> 12, _HIGH),
        v.taken[1] | at(left & 0xFFF, _HIGH),
        v.taken[2] | at(left >> 12, _HIGH),
        v.taken[3] | at(across & 0xFFF, _HIGH),
        v.given[0] | at(across >> 12, _HIGH),
        v.given[1] | at(right & 0xFFF, _HIGH),
        v.given[2] | at(right >> 12, _HIGH),
        v.received[0] | at(lead_bits(left_share - share, nudge), _HIGH),
        v.received[1] | at(lead_bits(across_share - share, nudge), _HIGH),
        v.received[2] | at(lead_bits(right_share - share, nudge), _HIGH),
    )


@njit(inline="always")
def call_bits(v: Any) -> Any:
    """The call in force."""
    return 0 if v.call == NO_CALL else 1 << (np.int64(v.call) - FIRST_CALL)


@njit(inline="always")
def void_bits(v: Any) -> Any:
    """Suits that left, across and right have failed to follow, four bits each."""
    return np.int64(v.voids[1]) | np.int64(v.voids[2]) << 4 | np.int64(v.voids[3]) << 8


@njit(inline="always")
def seat_bits(v: Any) -> Any:
    """Dealer, seat to move and leader of the current trick, four bits each."""
    bits: Any = 1 << np.int64(v.dealer)
    if v.phase != OVER:
        bits |= 16 << np.int64(v.seat)
    if v.phase == PLAY:
        bits |= 256 << ((np.int64(v.seat) - np.int64(v.num_plays)) & 3)  # as many places back as cards lie
    return bits


@njit(inline="always")
def situation_bits(v: Any) -> Any:
    """Phase, destination of my next pick, led suit, hearts broken, target reached."""
    bits: Any = 0
    if v.phase == CALL:
        bits |= 1
    elif v.phase == PICK:
        bits |= 2
        if v.seat == 0:
            bits |= np.int64(_DIRECTION_OF_PICK[np.int64(v.call) - FIRST_CALL, v.num_picks % 3]) << 3
    elif v.phase == PLAY:
        bits |= 4
        if v.num_plays & 3:
            bits |= 64 << (np.int64(v.best_card) // 13)
    return bits | np.int64(v.broken) << 10 | np.int64(v.latched) << 11


@njit(inline="always")
def score_bits(share: Any, nudge: Any) -> Any:
    """Thermometer of a total, given as a share of the target."""
    return thermometer(share * _TARGET_STEPS + (_LOWEST_STEP + 1 + nudge), NUM_SCORE_STEPS)


@njit(inline="always")
def lead_bits(share: Any, nudge: Any) -> Any:
    """Thermometer of a difference of totals, given as a share of the target."""
    return thermometer(share * _LEAD_STEPS + (_LOWEST_LEAD + 0.5 + nudge), NUM_LEAD_STEPS)


@njit(inline="always")
def thermometer(reached: Any, steps: Any) -> Any:
    """As many ones as whole steps have been reached, at most ``steps``; ``reached`` is a float, maybe negative."""
    ones = np.int64(min(max(reached, 0.0), np.float64(steps)))
    return (np.int64(1) << ones) - 1


@njit
def encode_full(v: Any, target: Any, words: Any) -> None:
    """Write the ``full`` layout of a view into ``uint64[28]``."""
    encode_compact(v, target, words)
    for t in range(13):
        word = U0
        for k in range(4 * t, 4 * t + 4):
            if k < v.num_plays:
                word |= bit(v.plays[k])
        if 4 * t < v.num_plays:
            word |= at(1, _HIGH + np.int64(v.leaders[t]))
        words[15 + t] = word
    for i in range(4):
        score = np.int64(v.scores[i])
        words[15 + 2 * i] |= at(score & 0xFF, _HIGH + 4)
        words[16 + 2 * i] |= at(score >> 8 & 0xFF, _HIGH + 4)
    words[23] |= at(v.deal & 0xFF, _HIGH + 4)
    words[24] |= at(v.deal >> 8 & 0xFF, _HIGH + 4)
    words[25] |= at(v.num_picks, _HIGH + 4)


@njit
def encode_state(g: Any, v: Any, seat: Any, target: Any, words: Any) -> None:
    """Write the ``state`` layout into ``uint64[40]``: the full one for ``seat``, whose view is ``v``, and all else."""
    encode_full(v, target, words)
    for i in range(3):
        s = (seat + 1 + i) & 3
        words[28 + i] = g.hand[s]
        for d in range(3):
            words[31 + 3 * i + d] = g.given[s, d]


@njit(cache=True)
def encode_views(views: Any, target: Any, out: Any) -> None:
    """Encode each view into the rows of ``out``, ``uint64[B, words]``."""
    for i in range(views.shape[0]):
        encode(views[i], target, out[i])


@njit(cache=True)
def encode_states(games: Any, rules: Any, seats: Any, views: Any, out: Any) -> None:
    """The state of each game from the place of ``seats[i]`` into ``out``, ``uint64[B, 40]``; ``views`` is scratch."""
    for i in range(games.shape[0]):
        look(games[i], rules[0], seats[i], views[0])
        encode_state(games[i], views[0], seats[i], rules[0].target, out[i])


def check_observation(observation: str) -> Observation:
    """The name of a layout, or `ArgumentError` that lists them."""
    name: Observation = one_of("observation", observation, LAYOUTS)
    return name


def pack(views: NDArray[Any], target: int, layout: Layout = COMPACT) -> NDArray[np.uint64]:
    """Views as packed features, ``uint64[B, layout.words]``; `dnfh_env._bits.unpack` gives the bits.

    ``layout`` is `COMPACT` or `FULL`; another raises `ArgumentError`, since `STATE` needs `pack_state`.
    """
    check_observation(layout.name)
    words = np.empty((len(views), layout.words), np.uint64)
    encode_views(plain(views), int(target), words)
    return words


def features(views: NDArray[Any], target: int, layout: Layout = COMPACT) -> NDArray[np.float32]:
    """Views as features, ``float32[B, layout.bits]`` of 0 and 1."""
    return unpack(pack(views, target, layout)).astype(np.float32)


def state_features(games: NDArray[Any], rules: NDArray[Any], seats: NDArray[np.int64]) -> NDArray[np.float32]:
    """`pack_state` as features, ``float32[B, STATE.bits]`` of 0 and 1."""
    return unpack(pack_state(games, rules, seats)).astype(np.float32)


def pack_state(games: NDArray[Any], rules: NDArray[Any], seats: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Games with nothing hidden, seen from the place of ``seats[i]``: ``uint64[B, STATE.words]``."""
    words = np.empty((len(games), STATE.words), np.uint64)
    encode_states(plain(games), rules, checked_seats(seats, len(games)), np.zeros(1, VIEW), words)
    return words
