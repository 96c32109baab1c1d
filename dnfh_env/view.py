"""What one seat knows: `look` writes a `VIEW` of a game, and nothing else of a game reaches an agent.

A view is relative: place 0 is the seat that looks, 1 its left, 2 across, 3 its right. Turning the table changes no
byte of it. Hidden cards, random streams and other seats' picks are not in the record, so no agent can read them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dnfh_env._bits import U0, plain
from dnfh_env.cards import NUM_CARDS
from dnfh_env.engine import NO_CARD, legal
from dnfh_env.errors import ArgumentError, shown
from dnfh_env.rules import KITTY

_VIEW_FIELDS: list[Any] = [
    ("hand", np.uint64),
    ("legal", np.uint64),  # legal actions; 0 for a seat that is not to move
    ("given", np.uint64, (3,)),  # [direction]: cards I picked for left, across, right; see GAME
    ("received", np.uint64, (3,)),  # [direction]: cards I got from left, across, right; a kitty's under all three
    ("played", np.uint64, (4,)),
    ("taken", np.uint64, (4,)),
    ("scores", np.int32, (4,)),
    ("deal", np.int32),
    ("points", np.int16, (4,)),  # card points taken so far in this deal
    ("plays", np.uint8, (NUM_CARDS,)),  # in order, NO_CARD for what is to come
    ("leaders", np.uint8, (13,)),  # place of each trick's leader, NO_CARD for what is to come
    ("voids", np.uint8, (4,)),  # bit per suit that a seat has failed to follow
    ("phase", np.uint8),
    ("seat", np.uint8),  # place of the seat to move; without meaning when over
    ("dealer", np.uint8),
    ("call", np.uint8),  # as an action, NO_CALL before it
    ("num_picks", np.uint8),  # made by the whole table
    ("num_plays", np.uint8),
    ("best_card", np.uint8),  # that takes the current trick so far, NO_CARD before a lead
    ("best_seat", np.uint8),
    ("broken", np.uint8),
    ("latched", np.uint8),
    ("spare", np.uint8, (5,)),  # always 0, see GAME
]
VIEW: np.dtype[Any] = np.dtype((np.record, np.dtype(_VIEW_FIELDS, align=True)))
"""The information of one seat, its own past in the deal included."""


@njit(inline="always")
def relative(seat: Any, to: Any) -> Any:
    """The place of ``seat`` in the view of ``to``."""
    return (np.int64(seat) - np.int64(to)) & 3


@njit
def look(g: Any, r: Any, seat: Any, v: Any) -> None:
    """Write into ``v`` all that ``seat`` knows of ``g``."""
    v.hand = g.hand[seat]
    v.legal = legal(g, r) if seat == g.seat else U0
    look_at_pass(g, seat, v)
    for i in range(4):
        s = (seat + i) & 3
        v.played[i] = g.played[s]
        v.taken[i] = g.taken[s]
        v.scores[i] = g.scores[s]
        v.points[i] = g.points[s]
        v.voids[i] = g.voids[s]
    for k in range(NUM_CARDS):
        v.plays[k] = g.plays[k]
    for t in range(13):
        v.leaders[t] = NO_CARD if g.leaders[t] == NO_CARD else relative(g.leaders[t], seat)
    v.deal = g.deal
    v.phase = g.phase
    v.seat = relative(g.seat, seat)
    v.dealer = relative(g.dealer, seat)
    v.call = g.call
    v.num_picks = g.num_picks
    v.num_plays = g.num_plays
    between_tricks = g.num_plays & 3 == 0
    v.best_card = NO_CARD if between_tricks else g.best_card
    v.best_seat = 0 if between_tricks else relative(g.best_seat, seat)
    v.broken = g.broken
    v.latched = g.latched


@njit(inline="always")
def look_at_pass(g: Any, seat: Any, v: Any) -> None:
    """One's own picks at once; what others gave only after the exchange, and of a kitty never from whom (R4, R5)."""
    exchanged = g.num_picks == 12
    for d in range(3):
        v.given[d] = g.given[seat, d]
        if not exchanged:
            v.received[d] = U0
        elif g.call == KITTY:
            v.received[d] = g.kitty[seat]
        else:  # the neighbour in direction d gave it in the opposite one
            v.received[d] = g.given[(seat + 1 + d) & 3, 2 - d]


@njit(inline="always")
def table_cards(v: Any) -> Any:
    """The cards of the current trick as a mask."""
    return (v.played[0] | v.played[1] | v.played[2] | v.played[3]) & ~(
        v.taken[0] | v.taken[1] | v.taken[2] | v.taken[3]
    )


@njit(cache=True)
def look_all(games: Any, rules: Any, seats: Any, views: Any) -> None:
    """`look` for each record; ``seats`` is ``int64[B]``, ``views`` a `VIEW` array of the same length."""
    for i in range(games.shape[0]):
        look(games[i], rules[0], seats[i], views[i])


@njit(cache=True)
def are_seats(seats: Any) -> Any:
    """Whether ``int64[B]`` are all 0 to 3."""
    good = True
    for i in range(seats.shape[0]):
        good &= 0 <= seats[i] < 4
    return good


def checked_seats(seats: Any, count: int) -> NDArray[np.int64]:
    """``count`` seats as the kernels take them; raises `ArgumentError` unless each is a whole number from 0 to 3."""
    found = np.asarray(seats)
    if found.shape == (count,) and found.dtype.kind in "iu":
        array: NDArray[np.int64] = plain(found, np.int64)
        if are_seats(array):
            return array
    raise ArgumentError(f"seats: expected {count} whole numbers from 0 to 3, got {shown(seats)}")


def views_of(games: NDArray[Any], rules: NDArray[Any], seats: NDArray[np.int64]) -> NDArray[Any]:
    """A fresh `VIEW` array: what ``seats[i]`` knows of ``games[i]``; raises `ArgumentError` for what is no seat."""
    views = np.zeros(len(games), VIEW)
    look_all(plain(games), rules, checked_seats(seats, len(games)), views)
    return views
