"""What one seat knows: `look` writes a `VIEW` of a game, and nothing else of a game reaches an agent.

A view is relative: place 0 is the seat that looks, 1 its left, 2 across, 3 its right. Turning the table changes no
byte of it. Hidden cards, random streams and other seats' picks are not in the record, so no agent can read them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dnfh_env._bits import U0, plain
from dnfh_env.cards import NUM_CARDS
from dnfh_env.engine import NO_CARD, PICKS, legal
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


class Present(NamedTuple):
    """A view but for the order of play, as values that a kernel holds in registers; the fields of `VIEW`."""

    hand: Any
    legal: Any
    given: Any
    received: Any
    played: Any
    taken: Any
    scores: Any
    deal: Any
    points: Any
    voids: Any
    phase: Any
    seat: Any
    dealer: Any
    call: Any
    num_picks: Any
    num_plays: Any
    best_card: Any
    best_seat: Any
    broken: Any
    latched: Any


@njit(inline="always")
def look_at_present(g: Any, r: Any, seat: Any) -> Any:
    """All that ``seat`` knows of ``g`` but the order of play, `look_at_order`, which much can do without."""
    between_tricks = g.num_plays & 3 == 0
    # numba takes so many keywords only if nothing branches among them
    mine = legal(g, r) if seat == g.seat else U0
    best_card = np.int64(NO_CARD if between_tricks else g.best_card)
    best_seat = np.int64(0) if between_tricks else relative(g.best_seat, seat)
    return Present(
        hand=g.hand[seat],
        legal=mine,
        given=(g.given[seat, 0], g.given[seat, 1], g.given[seat, 2]),
        received=received_by(g, seat),
        played=from_seat(g.played, seat),
        taken=from_seat(g.taken, seat),
        scores=from_seat(g.scores, seat),
        deal=g.deal,
        points=from_seat(g.points, seat),
        voids=from_seat(g.voids, seat),
        phase=np.int64(g.phase),
        seat=relative(g.seat, seat),
        dealer=relative(g.dealer, seat),
        call=np.int64(g.call),
        num_picks=np.int64(g.num_picks),
        num_plays=np.int64(g.num_plays),
        best_card=best_card,
        best_seat=best_seat,
        broken=np.int64(g.broken),
        latched=np.int64(g.latched),
    )


@njit(inline="always")
def from_seat(by_seat: Any, seat: Any) -> Any:
    """What belongs to each seat, by place."""
    return by_seat[seat], by_seat[(seat + 1) & 3], by_seat[(seat + 2) & 3], by_seat[(seat + 3) & 3]


@njit(inline="always")
def received_by(g: Any, seat: Any) -> Any:
    """What left, across and right gave, known only after the exchange, and of a kitty never from whom (R4, R5)."""
    if g.num_picks < PICKS:
        return U0, U0, U0
    if g.call == KITTY:
        return g.kitty[seat], g.kitty[seat], g.kitty[seat]
    # the neighbour in direction d gave it in the opposite one
    return g.given[(seat + 1) & 3, 2], g.given[(seat + 2) & 3, 1], g.given[(seat + 3) & 3, 0]


@njit
def look(g: Any, r: Any, seat: Any, v: Any) -> None:
    """Write into ``v`` all that ``seat`` knows of ``g``."""
    write_present(look_at_present(g, r, seat), v)
    look_at_order(g, seat, v)


@njit(inline="always")
def write_present(p: Any, v: Any) -> None:
    """A `Present` into a `VIEW`."""
    v.hand = p.hand
    v.legal = p.legal
    for i in range(3):
        v.given[i] = p.given[i]
        v.received[i] = p.received[i]
    for i in range(4):
        v.played[i] = p.played[i]
        v.taken[i] = p.taken[i]
        v.scores[i] = p.scores[i]
        v.points[i] = p.points[i]
        v.voids[i] = p.voids[i]
    v.deal = p.deal
    v.phase = p.phase
    v.seat = p.seat
    v.dealer = p.dealer
    v.call = p.call
    v.num_picks = p.num_picks
    v.num_plays = p.num_plays
    v.best_card = p.best_card
    v.best_seat = p.best_seat
    v.broken = p.broken
    v.latched = p.latched


@njit(inline="always")
def look_at_order(g: Any, seat: Any, v: Any) -> None:
    """Which card was played when, and who led each trick."""
    for k in range(NUM_CARDS):
        v.plays[k] = g.plays[k]
    for t in range(13):
        v.leaders[t] = NO_CARD if g.leaders[t] == NO_CARD else relative(g.leaders[t], seat)


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
