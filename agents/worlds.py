"""Worlds: games that agree with a view, drawn exactly, each history as likely as any other.

A *history* is what a seat does not see of a deal: the hands as dealt, everybody's picks, the kitty's shuffle. `prepare`
counts the layouts of the hidden hands, `agents.layouts`; `draw` draws a split of them by its count, shuffles the cards
within each class, and then draws who passed what to whom, all that agree being equally likely given the hands.
`rewound` and `retraced` go through the decisions of a world's deal again.

Exact is the method; counts are doubles, and a choice among n cards is uneven by at most n in 2**32, see
`dnfh_env._random.below`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from agents.layouts import LAYOUTS, PASSED, count_layouts
from dnfh_env._bits import U0, bit, lowest, nth_set, popcount
from dnfh_env._random import GOLDEN, below, mix, unit
from dnfh_env.cards import NUM_CARDS
from dnfh_env.engine import (
    CALL,
    EACH,
    GAME,
    NO_SEAT,
    OVER,
    PICK,
    PICKS,
    PLAY,
    apply,
    begin_deal,
    begin_play,
    end_deal,
    find_winners,
    pick_direction,
)
from dnfh_env.rules import FIRST_CALL, KITTY

# --- random choices ---------------------------------------------------------------------------------------------


@njit(inline="always")
def number(state: Any) -> Any:
    """The next 64 random bits; ``state`` is ``uint64[1]``."""
    state[0] += GOLDEN
    return mix(state[0])


@njit
def choice(cards: Any, count: Any, state: Any) -> Any:
    """A uniform choice of ``count`` cards of a set."""
    size = popcount(cards)
    taken = min(count, size - count)
    rest = cards
    for k in range(taken):
        rest &= ~bit(nth_set(rest, below(size - k, number(state))))
    return cards & ~rest if taken == count else rest


# --- what all worlds of a view have in common ---------------------------------------------------------------------


class Scratch(NamedTuple):
    """What `prepare` fills for `draw`, one for each thread; see `new_scratch`."""

    game: Any
    """`GAME` ``[1]``: what all worlds of the view have in common."""
    layouts: Any
    """`LAYOUTS` ``[1]``."""


def new_scratch() -> Scratch:
    """Room for the worlds of one view at a time."""
    return Scratch(np.zeros(1, GAME), np.zeros(1, LAYOUTS))


@njit
def prepare(v: Any, r: Any, scratch: Scratch) -> Any:
    """Get ready to `draw` worlds of a view; returns `count_layouts`, 0.0 for a view of which there are none."""
    count = count_layouts(v, r, scratch.layouts[0])
    if count > 0.0:
        set_common(v, r, scratch.game[0])
    return count


@njit
def set_common(v: Any, r: Any, g: Any) -> None:
    """Into a `GAME` what all worlds have in common: the view's seat is seat 0, hidden cards are with nobody."""
    if v.phase == OVER:
        set_end(v, r, g)
    else:
        set_public(v, r, g)


@njit
def set_public(v: Any, r: Any, g: Any) -> None:
    """All of a `GAME` but hidden cards and how a deal ended."""
    g.seed = U0
    g.game = np.uint64(game_with_call(v, r))
    for s in range(4):
        g.hand[s] = v.hand if s == 0 else U0
        g.kitty[s] = v.received[0] if s == 0 and v.call == KITTY else U0
        g.played[s] = v.played[s]
        g.taken[s] = v.taken[s]
        g.scores[s] = v.scores[s]
        g.points[s] = v.points[s]
        g.entered[s] = 0
        g.voids[s] = v.voids[s]
        for d in range(3):
            g.given[s, d] = v.given[d] if s == 0 else U0
    if v.call != KITTY:
        for d in range(3):
            g.given[d + 1, 2 - d] = v.received[d]
    for k in range(NUM_CARDS):
        g.plays[k] = v.plays[k]
    for t in range(13):
        g.leaders[t] = v.leaders[t]
    g.deal = v.deal
    g.phase = v.phase
    g.seat = v.seat
    g.dealer = v.dealer
    g.call = v.call
    g.num_picks = v.num_picks
    g.num_plays = v.num_plays
    g.best_card = v.best_card
    g.best_seat = v.best_seat
    g.broken = v.broken
    g.latched = v.latched
    g.shooter = NO_SEAT
    g.winners = 0


@njit
def set_end(v: Any, r: Any, g: Any) -> None:
    """A game that is over, with what its last deal entered, who shot it and who won."""
    set_public(v, r, g)
    for s in range(4):
        g.scores[s] = 0
    end_deal(g, r)  # for these two alone
    shooter = g.shooter
    entered = (g.entered[0], g.entered[1], g.entered[2], g.entered[3])
    set_public(v, r, g)
    g.shooter = shooter
    for s in range(4):
        g.entered[s] = entered[s]
    g.winners = find_winners(g, r)


@njit
def game_with_call(v: Any, r: Any) -> Any:
    """A number for the game, where the rotation takes its call by that; 0 where any will do."""
    if r.max_deals == 1:
        for k in range(r.rotation_length):
            if r.rotation[k] == v.call:
                return k
    return 0


# --- drawing ----------------------------------------------------------------------------------------------------


@njit
def draw(scratch: Scratch, state: Any, games: Any, i: Any) -> None:
    """One world of the view that was prepared, with at least one history, into ``games[i]``, a `GAME` record.

    It stands at the view's decision; the view's seat is seat 0. What comes by chance later, the next deals, is fresh.
    ``state``, ``uint64[1]``, is all the randomness and is advanced.
    """
    games[i] = scratch.game[0]  # numba assigns a record to an element, but not to a record
    g = games[i]
    g.seed = number(state)
    draw_hands(scratch.layouts[0], state, g)
    if g.num_picks == PICKS:
        if g.call == KITTY:
            draw_kitty(state, g)
        else:
            draw_passes(state, g)
    elif g.phase == PICK:
        draw_picks(state, g)


@njit
def draw_hands(t: Any, state: Any, g: Any) -> None:
    """The hands of places 1 to 3: a split by its count, then the cards."""
    i = draw_split(t, state)
    g.hand[1] = t.classes[1]
    g.hand[2] = t.classes[2]
    g.hand[3] = t.classes[4]
    placing = np.int64(t.split[i, 0])
    for k in range(EACH):
        g.hand[1 + placing % 3] |= t.lost[k]
        placing //= 3
    share(t.classes[3], np.int64(t.split[i, 1]), 1, 2, state, g)
    share(t.classes[5], np.int64(t.split[i, 2]), 1, 3, state, g)
    share(t.classes[6], np.int64(t.split[i, 3]), 2, 3, state, g)
    one = choice(t.classes[7], t.sizes[1] - popcount(g.hand[1]), state)
    g.hand[1] |= one
    share(t.classes[7] & ~one, t.sizes[2] - popcount(g.hand[2]), 2, 3, state, g)


@njit
def share(cards: Any, count: Any, one: Any, two: Any, state: Any, g: Any) -> None:
    """So many of the cards to the first of two places, the rest to the second."""
    chosen = choice(cards, count, state)
    g.hand[one] |= chosen
    g.hand[two] |= cards & ~chosen


@njit
def draw_split(t: Any, state: Any) -> Any:
    """The index of a split, drawn by its histories."""
    low = 0
    high = t.count - 1
    if high == 0:
        return low
    target = unit(number(state)) * t.cumulated[high]
    while low < high:
        middle = (low + high) >> 1
        if t.cumulated[middle] > target:
            high = middle
        else:
            low = middle + 1
    return low


@njit
def draw_picks(state: Any, g: Any) -> None:
    """What the other seats have picked so far of their hands as dealt: any of their cards."""
    picks = g.num_picks
    g.num_picks = 0
    while g.num_picks < picks:
        s = (np.int64(g.dealer) + 1 + g.num_picks // EACH) & 3
        if s:
            card = choice(g.hand[s], 1, state)
            g.hand[s] &= ~card
            for d in range(3):
                if g.call == KITTY or d == pick_direction(g.call, g.num_picks):
                    g.given[s, d] |= card
        g.num_picks += 1


@njit
def draw_passes(state: Any, g: Any) -> None:
    """Which cards the other seats passed to each other: any that their takers had after the exchange (R4)."""
    for taker in range(1, 4):
        cards = (g.hand[taker] | g.played[taker]) & ~g.given[0, taker - 1]
        for giver in range(1, 4):
            if giver != taker:
                d = (taker - giver - 1) & 3
                got = choice(cards, PASSED[np.int64(g.call) - FIRST_CALL, d], state)
                g.given[giver, d] = got
                cards &= ~got


@njit
def draw_kitty(state: Any, g: Any) -> None:
    """What each other seat got from the kitty, my lost cards among it, and then who put in what (R5)."""
    lost = g.given[0, 0] & ~g.kitty[0]
    put = g.kitty[0] & ~g.given[0, 0]
    for s in range(1, 4):
        hand = g.hand[s] | g.played[s]
        back = hand & lost
        got = choice(hand & ~lost, EACH - popcount(back), state)
        g.kitty[s] = back | got
        put |= got
    for s in range(1, 4):
        cards = choice(put, EACH, state)
        put &= ~cards
        for d in range(3):
            g.given[s, d] = cards


@njit(cache=True, nogil=True)
def draw_worlds(views: Any, rules: Any, seeds: Any, scratch: Scratch, games: Any, layouts: Any) -> None:
    """As many worlds of each view as ``games``, `GAME` ``[B * n]``, has room for, view after view.

    ``seeds`` is ``uint64[B]``. Into ``layouts``, ``float64[B]``, goes what `prepare` says; where that is 0.0 the games
    stay as they are.
    """
    each = games.shape[0] // views.shape[0]
    state = np.zeros(1, np.uint64)
    for i in range(views.shape[0]):
        layouts[i] = prepare(views[i], rules[0], scratch)
        state[0] = seeds[i]
        for k in range(each if layouts[i] > 0.0 else 0):
            draw(scratch, state, games, i * each + k)


# --- the deal again ---------------------------------------------------------------------------------------------


def rewound(worlds: NDArray[Any], rules: NDArray[Any]) -> NDArray[Any]:
    """Worlds at the start of their deal: `GAME` records of their own, ``[B]``."""
    games = np.zeros(len(worlds), GAME)
    rewind_all(worlds, rules, games)
    return games


def retraced(worlds: NDArray[Any], games: NDArray[Any], rules: NDArray[Any], seed: int) -> Iterator[NDArray[np.int64]]:
    """Take ``games``, of `rewound`, to where the worlds of one view are, through all decisions.

    Yields the actions, ``int64[B]``, of each decision before it is made; -1 where a world has none that could be. Which
    of the cards for one neighbour was picked first no seat is ever shown: an order is drawn.
    """
    state = np.array([seed], np.uint64)
    actions = np.zeros(len(worlds), np.int64)
    while next_actions(worlds, games, state, actions):
        yield actions
        take_actions(worlds, games, rules, actions)


@njit(cache=True)
def rewind_all(worlds: Any, rules: Any, games: Any) -> None:
    """Into ``games`` go the worlds at the start of their deals."""
    for i in range(worlds.shape[0]):
        games[i] = worlds[i]
        w = worlds[i]
        g = games[i]
        g.winners = 0
        g.shooter = NO_SEAT
        for s in range(4):
            g.scores[s] -= w.entered[s]
            g.entered[s] = 0
            g.hand[s] = dealt_hand(w, s)
        begin_deal(g, rules[0])


@njit
def dealt_hand(w: Any, seat: Any) -> Any:
    """The hand that a seat was dealt."""
    hand = w.hand[seat] | w.played[seat]
    if w.num_picks == PICKS:
        hand &= ~(
            w.kitty[seat]
            if w.call == KITTY
            else w.given[(seat + 1) & 3, 2] | w.given[(seat + 2) & 3, 1] | w.given[(seat + 3) & 3, 0]
        )
    return hand | w.given[seat, 0] | w.given[seat, 1] | w.given[seat, 2]


@njit(cache=True)
def next_actions(worlds: Any, games: Any, state: Any, actions: Any) -> Any:
    """What comes next for each game on the way to its world; False where they have arrived."""
    for i in range(worlds.shape[0]):
        w = worlds[i]
        g = games[i]
        if g.num_plays == w.num_plays and g.num_picks == w.num_picks and g.call == w.call:
            return False
        actions[i] = next_action(w, g, state)
    return True


@njit
def next_action(w: Any, g: Any, state: Any) -> Any:
    """What comes next for a game on the way to a world, -1 if that cannot be."""
    if g.phase == CALL:
        return np.int64(w.call)
    if g.phase == PLAY:
        return np.int64(w.plays[g.num_plays]) if g.num_plays < w.num_plays else -1
    if g.phase == OVER or g.num_picks >= w.num_picks:
        return -1
    left = w.given[g.seat, pick_direction(g.call, g.num_picks)] & g.hand[g.seat]
    return lowest(choice(left, 1, state)) if left else -1


@njit(cache=True)
def take_actions(worlds: Any, games: Any, rules: Any, actions: Any) -> None:
    """Make the decisions, all legal; a kitty gives what it gave in the world."""
    for i in range(games.shape[0]):
        g = games[i]
        picking = g.phase == PICK
        apply(g, rules[0], actions[i])
        if picking and g.num_picks == PICKS and g.call == KITTY:
            for s in range(4):
                g.hand[s] = (g.hand[s] & ~g.kitty[s]) | worlds[i].kitty[s]
                g.kitty[s] = worlds[i].kitty[s]
            begin_play(g)
