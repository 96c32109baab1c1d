"""What a rule player asks of a view beside what stands in it: sets of cards, later seats, and where points lie.

Points are those of the rules, as *levels*: for each number of points above 0 that cards of a suit have, those of the
suit that have as many or more, and likewise below 0. The few levels say what is asked of the points of a set of cards,
without a walk through its cards.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dnfh_env._bits import U0, U1, bit, highest, popcount
from dnfh_env.cards import DECK, NUM_CARDS, SUIT_MASKS, cards_in, mask_of
from dnfh_env.engine import SUIT_SETS
from dnfh_env.rules import Rules

_DECK = np.uint64(DECK)
_ROOM = NUM_CARDS + 1
_SUM_BITS = 16
_SUM = (1 << _SUM_BITS) - 1

LEVELS: list[Any] = [
    ("rising", np.uint64, (_ROOM,)),  # the levels above 0, suit by suit, the lowest first; after the last of them 0
    ("steps", np.int64, (_ROOM,)),  # by how much each is above the one below it, at its suit's place in `sums_of_suits`
    ("falling", np.uint64, (_ROOM,)),  # the levels below 0
]
"""Fields of a record for the kernels, which `set_levels` fills."""


def set_levels(records: NDArray[Any], rules: Rules) -> None:
    """Write the levels of ``rules`` into an array of records that have the fields `LEVELS`, all 0."""
    for i, (suit, level, step) in enumerate(_levels(rules.points)):
        records["rising"][:, i] = level
        records["steps"][:, i] = step << _SUM_BITS * suit
    for i, (_, level, _) in enumerate(_levels([-points for points in rules.points])):
        records["falling"][:, i] = level


def _levels(points: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """The suit of each level above 0, its cards as a mask, and by how many points it is above the one below it."""
    for suit, cards in enumerate(SUIT_MASKS):
        before = 0
        for reached in sorted({points[card] for card in cards_in(cards) if points[card] > 0}):
            yield suit, mask_of(card for card in cards_in(cards) if points[card] >= reached), reached - before
            before = reached


class Outside(NamedTuple):
    """The cards in other hands, as masks."""

    cards: Any
    """All of them."""
    rises: Any
    """Those with more points than 0 and than each lower one of their suit."""
    falls: Any
    """Those with fewer."""


@njit
def outside(v: Any, p: Any) -> Any:
    """The `Outside` of a view, by the levels in ``p``."""
    cards = unseen(v)
    return Outside(cards, lowest_of_each(p.rising, cards), lowest_of_each(p.falling, cards))


@njit
def lowest_of_each(levels: Any, cards: Any) -> Any:
    """The lowest card of a set in each of the levels that it reaches."""
    found = U0
    i = 0
    while levels[i]:
        there = cards & levels[i]
        found |= there & (~there + U1)
        i += 1
    return found


@njit
def dearest(r: Any, o: Any) -> Any:
    """The most points of one card outside, at least 0."""
    most = 0
    for suit in range(4):
        most = max(most, points_of_highest(r, o.rises & SUIT_SETS[suit]))
    return most


@njit
def sums_of_suits(p: Any, cards: Any) -> Any:
    """The points of a set of cards added up by suit, negative ones left out: 16 bits for each, see `sum_of_suit`."""
    sums = i = 0
    while p.rising[i]:
        sums += p.steps[i] * popcount(cards & p.rising[i])
        i += 1
    return sums


@njit
def sum_of_suit(sums: Any, suit: Any) -> Any:
    """The one of a suit."""
    return sums >> _SUM_BITS * suit & _SUM


@njit
def negative(p: Any, cards: Any) -> Any:
    """The cards of a set that have negative points."""
    found = U0
    i = 0
    while p.falling[i]:
        found |= cards & p.falling[i]
        i += 1
    return found


@njit(inline="always")
def theirs(o: Any, card: Any) -> Any:
    """The cards outside of the suit of ``card``."""
    return o.cards & suit_of(card)


@njit(inline="always")
def lower(o: Any, card: Any) -> Any:
    """Those of them below ``card``."""
    return theirs(o, card) & below(card)


@njit
def higher(o: Any, card: Any) -> Any:
    """Those of them above ``card``."""
    return theirs(o, card) & above(card)


@njit
def dearest_lower(r: Any, o: Any, card: Any) -> Any:
    """The most points of one card outside that ``card`` beats, at least 0."""
    return points_of_highest(r, o.rises & lower(o, card))


@njit
def cheapest_lower(r: Any, o: Any, card: Any) -> Any:
    """The fewest points of one card outside that ``card`` beats, at most 0."""
    return points_of_highest(r, o.falls & lower(o, card))


@njit
def points_of_highest(r: Any, cards: Any) -> Any:
    """Points of the highest card of a set, 0 for an empty one."""
    points = np.int64(r.points[max(0, highest(cards))])
    return points if cards else 0


@njit(inline="always")
def unseen(v: Any) -> Any:
    """The cards in other hands."""
    return _DECK & ~(v.hand | v.played[0] | v.played[1] | v.played[2] | v.played[3])


@njit(inline="always")
def suit_of(card: Any) -> Any:
    """All cards of the suit of one."""
    return SUIT_SETS[card // 13]


@njit(inline="always")
def below(card: Any) -> Any:
    """All cards of lower id."""
    return bit(card) - U1


@njit(inline="always")
def above(card: Any) -> Any:
    """All cards of higher id."""
    return ~(bit(card) | below(card))


@njit(inline="always")
def later_seats(v: Any) -> Any:
    """How many play to the trick after this seat: the places 1, 2, … at its left."""
    return 3 - (np.int64(v.num_plays) & 3)


@njit(inline="always")
def is_void(v: Any, seat: Any, suit: Any) -> Any:
    """Whether a seat has failed to follow a suit."""
    return np.int64(v.voids[seat]) >> suit & 1 == 1


@njit(inline="always")
def holders(v: Any, suit: Any) -> Any:
    """How many other seats may hold cards of a suit."""
    count = 0
    for s in range(1, 4):
        count += not is_void(v, s, suit)
    return count


@njit(inline="always")
def may_win(v: Any, seat: Any) -> Any:
    """Whether another seat leads the trick so far, or has yet to play to it."""
    return seat <= later_seats(v) or v.best_seat == seat


@njit(inline="always")
def winners(v: Any) -> Any:
    """The legal cards that beat what lies in a trick that has been led."""
    return v.legal & suit_of(v.best_card) & above(v.best_card)
