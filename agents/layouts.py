"""What a view tells of the hidden cards: who may hold them, in how many ways, and with which chances, all exact.

A hidden card may be with some of the three other seats, and surely is not with the rest:

- a seat that failed to follow a suit has none of it (R8);
- a seat that threw a banned card on the first trick had no other (R9), one that led an unbroken heart likewise (R10);
- who led the first trick, or is to lead it, holds the two of clubs until it is played (R7);
- what I passed to a neighbour is there until it is played (R4).

So hidden cards fall into at most seven classes by the seats that may hold them. Their layouts are counted by *splits*:
how many cards of each class go where, which three numbers say, since the hands have to be filled. Each layout has as
many histories as any other, but after a kitty (R5): my cards that did not come back are among the three that others
got, so a hand of 13 that has ``j`` of them may have come about by ``C(13 - j, 3 - j)`` kitties. Places are those of the
view: 0 is the seat that looks, 1 its left, 2 across, 3 its right.
"""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np
from numba import njit

from dnfh_env._bits import U0, U1, bit, lowest, popcount
from dnfh_env.cards import DECK, HAND_SIZE, NUM_CARDS, TWO_OF_CLUBS
from dnfh_env.engine import CALL, EACH, OVER, PICK, PICKS, PLAY, SUIT_SETS
from dnfh_env.rules import FIRST_CALL, HOLD, KITTY, SPLITS

PASSED = np.array([[int(digit) for digit in split] for split in SPLITS])
"""[split, direction]: how many cards a seat passes there."""
_DECK = np.uint64(DECK)
_TWO_OF_CLUBS = np.uint64(1 << TWO_OF_CLUBS)
_HIDDEN = 39
"""Cards of the other three seats at most."""
_BINOMIALS = np.array([[comb(n, k) for k in range(_HIDDEN + 1)] for n in range(_HIDDEN + 1)], np.float64)
_KITTIES = np.array([comb(HAND_SIZE - j, EACH - j) for j in range(EACH + 1)], np.float64)
"""[j]: which three of a hand may have come from the kitty, ``j`` of them being known."""
_MOST_SPLITS = 3**EACH * (1 + (_HIDDEN - EACH) // 3) ** 3
"""Three lost cards have 27 places, and the product of what three classes allow is greatest where they are equal."""

_LAYOUTS_FIELDS: list[Any] = [
    ("cumulated", np.float64, (_MOST_SPLITS,)),  # how many histories the splits so far have
    ("split", np.uint8, (_MOST_SPLITS, 4)),  # who has which lost card, as base-3 digits; how many cards that places
    # 1 and 2, 1 and 3, 2 and 3 may hold go to the first of the two
    ("count", np.int64),  # of splits
    ("sizes", np.int64, (4,)),  # cards in each hand now; what is picked counts with who picked it until the exchange
    ("may", np.uint64, (4,)),  # the hidden cards that each place may hold, one by one
    ("classes", np.uint64, (8,)),  # the hidden cards that may be at these places and no others, but for the lost ones;
    # bit 0 of the index is for place 1
    ("lost", np.uint64, (EACH,)),  # my cards that the kitty kept and that are still hidden, one by one, 0 for none
]
LAYOUTS: np.dtype[Any] = np.dtype((np.record, np.dtype(_LAYOUTS_FIELDS, align=True)))
"""How the hidden cards of a view can be split over the hands. One record, for arrays cost a call 15 ns each."""


@njit
def count_layouts(v: Any, r: Any, t: Any) -> Any:
    """Fill the `LAYOUTS` record ``t`` for a view; returns how many layouts of the hidden hands agree, a float.

    After a kitty a layout counts once for each way in which it may have come out of the kitty. Times a constant this
    is the number of histories. It is 0.0 for a view that nothing agrees with.
    """
    t.count = 0
    return count_splits(v, t) if is_sound(v) and set_classes(v, r, t) else 0.0


# --- what fits together -------------------------------------------------------------------------------------------


@njit
def is_sound(v: Any) -> Any:
    """Whether a view's sets and counters fit together so far that the rest is safe to work out."""
    if v.num_plays > NUM_CARDS or v.num_picks > PICKS or v.phase > OVER or v.seat > 3 or v.dealer > 3:
        return False
    for k in range(v.num_plays):
        if v.plays[k] >= NUM_CARDS or v.leaders[k >> 2] > 3:
            return False
    own = own_cards(v)
    together = own
    size = popcount(own)
    for s in range(4):
        size += popcount(v.played[s])
        together |= v.played[s]
    return (
        popcount(own) + popcount(v.played[0]) == HAND_SIZE
        and popcount(together) == size
        and together & ~_DECK == U0
        and size - popcount(own) == v.num_plays
        and is_passed(v) == (v.phase >= PLAY)
        and are_picks_sound(v)
        and are_actions_sound(v)
    )


@njit(inline="always")
def is_passed(v: Any) -> Any:
    """Whether cards have changed hands, or never will in this deal."""
    return v.num_picks == PICKS or v.call == HOLD


@njit(inline="always")
def own_cards(v: Any) -> Any:
    """What I hold, and what I have picked until it is exchanged."""
    return v.hand if is_passed(v) else v.hand | v.given[0] | v.given[1] | v.given[2]


@njit
def are_picks_sound(v: Any) -> Any:
    """Whether as many cards were given and received as the call says."""
    call = np.int64(v.call)
    if v.num_picks < PICKS:
        return v.phase != PICK or FIRST_CALL <= call <= KITTY
    if not FIRST_CALL <= call <= KITTY:
        return False
    mine = v.hand | v.played[0]
    for d in range(3):
        there = EACH if call == KITTY else PASSED[call - FIRST_CALL, d]
        back = EACH if call == KITTY else PASSED[call - FIRST_CALL, 2 - d]
        if popcount(v.given[d]) != there or popcount(v.received[d]) != back or v.received[d] & ~mine:
            return False
    return True


@njit
def are_actions_sound(v: Any) -> Any:
    """Whether the seat to move, and no other, has actions, of its phase and of its hand."""
    of_phase = v.hand if v.phase == PICK or v.phase == PLAY else ~_DECK if v.phase == CALL else U0
    return v.legal & ~of_phase == U0 and (v.legal == U0 or v.seat == 0)


# --- classes ----------------------------------------------------------------------------------------------------


@njit
def set_classes(v: Any, r: Any, t: Any) -> Any:
    """Sort the hidden cards by who may hold them; False if there is one that nobody may hold, or has to but may not."""
    hidden = _DECK & ~(own_cards(v) | v.played[0] | v.played[1] | v.played[2] | v.played[3])
    t.may[0] = U0
    for s in range(4):
        t.sizes[s] = HAND_SIZE - popcount(v.played[s])
        if t.sizes[s] < 0:
            return False
        if s:
            t.may[s] = hidden & suits_left(v, s)
    if v.num_plays:
        narrow_by_first_trick(v, r, t.may)
        narrow_by_first_heart(v, r, t.may)
    if not place_known(v, t.may):
        return False
    open_cards = set_lost(v, hidden, t.lost)
    for places in range(8):
        cards = hidden & ~open_cards
        for s in range(1, 4):
            cards &= t.may[s] if places >> (s - 1) & 1 else ~t.may[s]
        t.classes[places] = cards
    return t.classes[0] == U0


@njit
def suits_left(v: Any, place: Any) -> Any:
    """The cards of suits that a seat has not failed to follow (R8)."""
    cards = _DECK
    for suit in range(4):
        if np.int64(v.voids[place]) >> suit & 1:
            cards &= ~SUIT_SETS[suit]
    return cards


@njit
def narrow_by_first_trick(v: Any, r: Any, may: Any) -> None:
    """Who threw a banned card on the first trick had nothing else (R9)."""
    led = np.int64(v.plays[0]) // 13
    for k in range(1, 4):
        card = np.int64(v.plays[k])
        if k < v.num_plays and card // 13 != led and bit(card) & r.first_ban:
            may[(np.int64(v.leaders[0]) + k) & 3] &= r.first_ban


@njit
def narrow_by_first_heart(v: Any, r: Any, may: Any) -> None:
    """Who broke hearts by a lead that would else be banned had nothing else (R10)."""
    for k in range(v.num_plays):
        card = bit(v.plays[k])
        if card & r.breakers:
            if k & 3 == 0 and card & r.unbroken_ban:
                may[v.leaders[k >> 2]] &= r.free_hand
            return


@njit
def place_known(v: Any, may: Any) -> Any:
    """Leave known cards to their holders alone; False if some holder cannot have them."""
    for s in range(4):
        known = known_cards(v, s)
        if known & ~(may[s] if s else v.hand):
            return False
        for other in range(1, 4):
            if other != s:
                may[other] &= ~known
    return True


@njit
def known_cards(v: Any, place: Any) -> Any:
    """What a seat holds for certain, whatever others hold: what I passed to it (R4), the two of clubs (R7)."""
    known = U0
    if v.phase == PLAY:
        leader = v.seat if v.num_plays == 0 else v.leaders[0]
        if place == leader and not (v.played[0] | v.played[1] | v.played[2] | v.played[3]) & _TWO_OF_CLUBS:
            known |= _TWO_OF_CLUBS
    if place and is_passed(v) and v.call != KITTY:
        known |= v.given[place - 1] & ~v.played[place]
    return known


@njit
def set_lost(v: Any, hidden: Any, lost: Any) -> Any:
    """List my cards that the kitty gave to others and that are still hidden; returns them as a set."""
    cards = lost_cards(v) & hidden
    left = cards
    for k in range(EACH):
        lost[k] = left & (~left + U1)
        left &= left - U1 if left else U0
    return cards


@njit(inline="always")
def lost_cards(v: Any) -> Any:
    """My cards that the kitty gave to others (R5)."""
    return v.given[0] & ~v.received[0] if v.call == KITTY and v.num_picks == PICKS else U0


# --- counting ---------------------------------------------------------------------------------------------------


@njit
def count_splits(v: Any, t: Any) -> Any:
    """List the splits of lost cards and classes over the hands, with their histories cumulated; returns the sum."""
    kitty = v.call == KITTY and v.num_picks == PICKS
    lost = lost_cards(v)
    open_cards = popcount(t.lost[0] | t.lost[1] | t.lost[2])
    for placing in range(3**open_cards):
        one, two, three = holders(placing, open_cards, t)
        if one < 0:
            continue
        ways = 1.0
        if kitty:
            ways = (
                _KITTIES[popcount(lost & v.played[1]) + one]
                * _KITTIES[popcount(lost & v.played[2]) + two]
                * _KITTIES[popcount(lost & v.played[3]) + three]
            )
        add_splits(placing, room(t, 1) - one, room(t, 2) - two, room(t, 3) - three, ways, t)
    count = t.count
    return t.cumulated[count - 1] if count else 0.0


@njit
def holders(placing: Any, open_cards: Any, t: Any) -> Any:
    """How many lost cards places 1, 2 and 3 hold, a base-3 digit for each card; -1 if one is where it cannot be."""
    one = two = three = 0
    for k in range(open_cards):
        place = 1 + placing % 3
        placing //= 3
        if not t.lost[k] & t.may[place]:
            return -1, -1, -1
        one += place == 1
        two += place == 2
        three += place == 3
    return one, two, three


@njit(inline="always")
def room(t: Any, place: Any) -> Any:
    """Cards in a hand beyond those that only this place may hold."""
    return t.sizes[place] - popcount(t.classes[1 << (place - 1)])


@njit
def add_splits(placing: Any, one: Any, two: Any, three: Any, ways: Any, t: Any) -> None:
    """The splits of the classes over room for so many cards at places 1, 2 and 3, each ``ways`` times."""
    n12 = popcount(t.classes[3])
    n13 = popcount(t.classes[5])
    n23 = popcount(t.classes[6])
    n123 = popcount(t.classes[7])
    count = t.count
    total = t.cumulated[count - 1] if count else 0.0
    for a in range(max(0, n12 - two), min(n12, one) + 1):
        for b in range(max(0, n13 - three, one - a - n123), min(n13, one - a) + 1):
            left = one - a - b  # of the class of all three to place 1
            before = ways * _BINOMIALS[n12, a] * _BINOMIALS[n13, b] * _BINOMIALS[n123, left]
            for c in range(max(0, n23 + n13 - b - three), min(n23, two - n12 + a) + 1):
                total += before * _BINOMIALS[n23, c] * _BINOMIALS[n123 - left, two - n12 + a - c]
                t.split[count, 0] = placing
                t.split[count, 1] = a
                t.split[count, 2] = b
                t.split[count, 3] = c
                t.cumulated[count] = total
                count += 1
    t.count = count


# --- chances ----------------------------------------------------------------------------------------------------


@njit(cache=True)
def find_places(views: Any, rules: Any, layouts: Any, chances: Any, possible: Any) -> Any:
    """Into ``chances``, ``float64[52, 4]``, how likely each card is to be at each place, for the first view.

    Into ``possible``, ``uint64[4]``, go the cards that each place has in some layout; both are zeros before. What is
    picked counts with who picked it until the exchange. Returns `count_layouts`, for which ``layouts`` is filled.
    """
    v = views[0]
    t = layouts[0]
    total = count_layouts(v, rules[0], t)
    if total > 0.0:
        possible[0] = own_cards(v)
        add_chances(possible[0], 0, 1.0, chances)
        expected = np.zeros((8, 4))
        before = 0.0
        for i in range(t.count):
            add_split(t, i, (t.cumulated[i] - before) / total, expected, chances, possible)
            before = t.cumulated[i]
        for places in range(1, 8):
            for s in range(1, 4):
                size = max(1, popcount(t.classes[places]))
                add_chances(t.classes[places], s, expected[places, s] / size, chances)
    return total


@njit
def add_chances(cards: Any, place: Any, chance: Any, chances: Any) -> None:
    """Each of the cards is at a place with this chance more."""
    while cards:
        chances[lowest(cards), place] += chance
        cards &= cards - U1


@njit
def add_split(t: Any, i: Any, weight: Any, expected: Any, chances: Any, possible: Any) -> None:
    """What one split adds: how many cards of each class are ``expected`` where, and where lost cards are."""
    left = np.zeros(4, np.int64)
    left[1:] = t.sizes[1:]
    placing = np.int64(t.split[i, 0])
    for k in range(EACH):
        place = 1 + placing % 3
        placing //= 3
        left[place] -= popcount(t.lost[k])
        add_chances(t.lost[k], place, weight, chances)
        possible[place] |= t.lost[k]
    for places in range(1, 7):
        first, second = ends(places)
        size = popcount(t.classes[places])
        number = size if first == second else np.int64(t.split[i, first + second - 2])
        add_expected(t, places, first, number, weight, expected, possible)
        add_expected(t, places, second, size - number, weight, expected, possible)
        left[first] -= number
        left[second] -= size - number
    for s in range(1, 4):
        add_expected(t, 7, s, left[s], weight, expected, possible)


@njit
def ends(places: Any) -> Any:
    """The first and the last place of a class."""
    first = 1 if places & 1 else 2 if places & 2 else 3
    return first, 3 if places & 4 else 2 if places & 2 else 1


@njit
def add_expected(t: Any, places: Any, place: Any, number: Any, weight: Any, expected: Any, possible: Any) -> None:
    """So many cards of a class are at a place with this chance; however small it is, they may be there."""
    expected[places, place] += weight * number
    if number > 0:
        possible[place] |= t.classes[places]
