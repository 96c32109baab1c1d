"""Playing a world to the end of its deal, and what that is worth to the seat that searches.

A world is a `GAME` in which that seat is seat 0 and the deal is the first. Its rules, see `search_rules`, end a game
with the deal, so that no cards are dealt which nobody looks at.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from agents import worlds
from dnfh_env._bits import U0, U1, lowest
from dnfh_env.engine import OVER, PICK, PLAY, apply, end_deal, legal, make_call, pick_direction
from dnfh_env.objective import EQUITY, equity_standing, standing
from dnfh_env.rules import Rules, compile_rules
from dnfh_env.view import look, look_at_present, write_present


def search_rules(rules: Rules) -> NDArray[Any]:
    """``rules`` for worlds: one `RULES` record under which a game is one deal."""
    return compile_rules(rules.replace(max_deals=1))


@njit
def worth(g: Any, r: Any, objective: Any) -> Any:
    """The standing of the four seats by an `OBJECTIVE` record when a deal has ended."""
    if objective.kind == EQUITY:
        return equity_standing(g, objective.equity)
    return standing(g, r, objective.kind)


@njit(inline="always")  # as all that takes ``choose``, or it could not be cached
def finish(g: Any, r: Any, view: Any, choose: Any, arguments: Any) -> None:
    """Let ``choose(view, *arguments)`` decide at all seats until the deal has ended.

    ``view`` is room for one `VIEW`. The order of past plays is not written into it.
    """
    while g.phase != OVER:
        actions = legal(g, r)
        if actions & (actions - U1) == U0:
            apply(g, r, lowest(actions))
        elif is_decided(g, r):
            end_deal(g, r)
        else:
            write_present(look_at_present(g, r, np.int64(g.seat)), view[0])
            apply(g, r, choose(view[0], *arguments))


@njit
def is_decided(g: Any, r: Any) -> Any:
    """Whether a trick is to be led and all cards that count have been taken."""
    taken = g.taken[0] | g.taken[1] | g.taken[2] | g.taken[3]
    return g.phase == PLAY and g.num_plays & 3 == 0 and (r.scoring | r.shot_cards) & ~taken == U0


@njit(inline="always")
def pick_again(v: Any, r: Any, g: Any, view: Any, choose: Any, arguments: Any) -> None:
    """Let the other seats of a world pick anew, as the policy does, up to the decision of ``v``, one of seat 0."""
    for s in range(4):
        for d in range(3):
            g.hand[s] |= g.given[s, d]
            g.given[s, d] = U0
    g.num_picks = 0
    make_call(g, np.int64(v.call))
    while g.num_picks < v.num_picks:
        if g.seat == 0:
            apply(g, r, lowest(v.given[pick_direction(v.call, g.num_picks)] & g.hand[0]))
        else:
            look(g, r, np.int64(g.seat), view[0])
            apply(g, r, choose(view[0], *arguments))


@njit(inline="always")
def draw_world(v: Any, r: Any, x: Any, choose: Any, arguments: Any) -> None:
    """A world at the view's decision, in which other seats have picked as the policy does."""
    worlds.draw(x.scratch, x.state, x.world, 0)
    g = x.world[0]
    g.deal = 0
    if v.phase == PICK:
        pick_again(v, r, g, x.seen, choose, arguments)
