"""What a search tries at a decision: calls, whole passes, and plays of which no two are equal.

A candidate is a row of `PLANS`: the action to be made now and, where the seat has more cards to pick, those that
complete its pass. The first candidate is what the rule player would do.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from agents import heuristic
from agents.search.equal import equal_cards, representatives
from dnfh_env._bits import U0, U1, bit, lowest, popcount
from dnfh_env.engine import EACH, PICK, PLAY, pick_direction

MOST = 512
"""Candidates at most; a pool of nine cards makes 84 passes of three, each in up to six orders."""
POOL = 9
"""Cards from which passes are made, at most."""


def new_plans() -> Any:
    """Room for candidates, ``int64[MOST, EACH]``."""
    return np.zeros((MOST, EACH), np.int64)


@njit
def list_candidates(v: Any, r: Any, p: Any, alike: Any, pool: Any, view: Any, plans: Any) -> Any:
    """Fill ``plans`` for a view with a choice; returns how many there are. ``view`` is room for one `VIEW`."""
    if v.phase == PICK:
        return list_passes(v, r, p, alike, pool, view, plans)
    plans[0, 0] = heuristic.choose(v, r, p)
    others = (tried_plays(v, plans[0, 0], alike) if v.phase == PLAY else v.legal) & ~bit(plans[0, 0])
    count = 1
    while others:
        plans[count, 0] = lowest(others)
        others &= others - U1
        count += 1
    return count


@njit
def tried_plays(v: Any, favoured: Any, alike: Any) -> Any:
    """One of each class of equal cards that may be played, and ``favoured`` for its class."""
    gone = gone_cards(v)
    others = v.legal & ~equal_cards(favoured, v.hand, gone, alike)
    return bit(favoured) | representatives(v.hand, others, gone, alike)


@njit
def gone_cards(v: Any) -> Any:
    """The cards that can take no trick any more: all played ones but the one that takes the trick under way."""
    gone = v.played[0] | v.played[1] | v.played[2] | v.played[3]
    return gone & ~bit(v.best_card) if v.num_plays & 3 else gone


# --- passes -----------------------------------------------------------------------------------------------------


@njit
def list_passes(v: Any, r: Any, p: Any, alike: Any, pool: Any, view: Any, plans: Any) -> Any:
    """The rule player's pass, its pass for a shot, and all that can be made of the cards it would soonest part with."""
    left = EACH - np.int64(v.num_picks) % EACH
    plans[0] = rule_pass(v, r, p, view, False)
    plans[1] = rule_pass(v, r, p, view, True)
    count = 1 if same_pass(v, plans[0], plans[1], left) else 2
    cards = np.empty(POOL, np.int64)
    size = list_pool(v, r, p, min(pool, POOL), cards)
    for code in range(size**left):
        if write_pass(v, alike, cards, size, code, left, plans[count]):
            known = False
            for i in range(min(count, 2)):
                known |= same_pass(v, plans[i], plans[count], left)
            count += not known
    return count


@njit
def rule_pass(v: Any, r: Any, p: Any, view: Any, for_shot: Any) -> Any:
    """The cards that the rule player picks one after the other, or those that it would pass to shoot."""
    view[0] = v
    u = view[0]
    plan = np.zeros(EACH, np.int64)
    for k in range(EACH - np.int64(v.num_picks) % EACH):
        plan[k] = heuristic.best(u.legal, u, r, p, None, heuristic.shot_pass) if for_shot else heuristic.pick(u, r, p)
        u.given[direction(v, k)] |= bit(plan[k])
        u.hand &= ~bit(plan[k])
        u.legal = u.hand
        u.num_picks += 1
    return plan


@njit(inline="always")
def direction(v: Any, k: Any) -> Any:
    """Where the ``k``-th card that is still to be picked goes."""
    return pick_direction(v.call, np.int64(v.num_picks) + k)


@njit
def same_pass(v: Any, one: Any, other: Any, left: Any) -> Any:
    """Whether two passes give the same cards to the same seats."""
    for k in range(left):
        found = False
        for i in range(left):
            found |= one[k] == other[i] and direction(v, k) == direction(v, i)
        if not found:
            return False
    return True


@njit
def list_pool(v: Any, r: Any, p: Any, pool: Any, cards: Any) -> Any:
    """Into ``cards`` those of the hand that the rule player would soonest pass; returns how many."""
    facts = heuristic.pass_of(v, r, p)
    hand = v.hand
    size = min(pool, popcount(hand))
    for i in range(size):
        cards[i] = heuristic.best(hand, v, r, p, facts, heuristic.pass_worth)
        hand &= ~bit(cards[i])
    return size


@njit
def write_pass(v: Any, alike: Any, cards: Any, size: Any, code: Any, left: Any, plan: Any) -> Any:
    """Into ``plan`` the cards that the digits of ``code`` name; False for what is left out.

    For the same seat the earlier cards of the pool come first, or a pass came up twice. Of equal cards the earlier
    goes first, to save worlds: it does matter who gets the higher, but that is left to the rule player.
    """
    chosen = U0
    before = -1
    for k in range(left):
        i = code % size
        code //= size
        card = cards[i]
        if chosen & bit(card) or (k and direction(v, k) == direction(v, k - 1) and i < before):
            return False
        equal = equal_cards(card, v.hand, U0, alike) & ~chosen
        for j in range(i):
            if equal & bit(cards[j]):
                return False
        chosen |= bit(card)
        plan[k] = card
        before = i
    return True
