"""`PIMC`, registered as ``pimc``: try each candidate in worlds that agree with the view, and play on by a rule player.

Perfect Information Monte Carlo (Ginsberg, GIB, JAIR 14, 2001; Long, Sturtevant, Buro, Furtak: Understanding the Success
of Perfect Information Monte Carlo Sampling, AAAI 2010), with playouts in place of solved deals: a policy that sees
views alone decides at all four seats, so that nobody in a playout uses what it could not know. Worlds are those of
`agents.beliefs`, exactly uniform over histories. All candidates meet the same worlds in an `agents.search.race`. What a
world is worth is the change of the chance to win the game, or card points; the action of the rule player stands unless
another is clearly better.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
from numba import njit

from agents import greedy, heuristic, worlds
from agents.search.base import NO_GAME, Search, decide_all
from agents.search.candidates import MOST, POOL, list_candidates, new_plans
from agents.search.playout import finish, worth
from agents.search.race import race
from agents.search.settings import Bounds, Playout, Utility
from dnfh_env._bits import U0, U1, lowest
from dnfh_env.engine import EACH, GAME, PICK, apply
from dnfh_env.view import VIEW


@dataclass(frozen=True)
class Settings:
    """How a search spends its budget."""

    worlds: Annotated[int, Bounds(2, 10_000)] = 24
    """Worlds a candidate, on average."""
    spread: Annotated[int, Bounds(1, 10)] = 6
    """How many times as many the last candidates may see, of what those that were dropped leave."""
    pool: Annotated[int, Bounds(0, POOL)] = 6
    """Cards of a hand from which passes are made."""
    drop: Annotated[float, Bounds(0, 100)] = 2.0
    """Paired standard errors behind the best beyond which a candidate is dropped."""
    depart: Annotated[float, Bounds(0, 100)] = 1.0
    """Paired standard errors by which the best must be ahead of what the rule player does."""
    utility: Utility = "equity"
    playout: Playout = "heuristic"


class Room(NamedTuple):
    """What a thread needs for one view at a time."""

    scratch: Any
    """`worlds.Scratch`."""
    world: Any
    """`GAME` ``[1]``."""
    game: Any
    """`GAME` ``[1]``: the world in which a candidate is tried."""
    seen: Any
    """`VIEW` ``[1]``."""
    plans: Any
    """``int64[MOST, EACH]``."""
    values: Any
    """``float64[MOST, worlds * spread]``."""
    state: Any
    """``uint64[1]``."""


@njit(cache=True, nogil=True)
def decide_by_heuristic(task: Any, s: Any, x: Any) -> None:
    """Decide what this thread claims of a `Task`, with ``heuristic`` playing on."""
    decide_all(task, s, x, decide, heuristic.choose, (s.rules[0], s.rule_player[0]))


@njit(cache=True, nogil=True)
def decide_by_greedy(task: Any, s: Any, x: Any) -> None:
    """Decide what this thread claims of a `Task`, with ``greedy-v1`` playing on."""
    decide_all(task, s, x, decide, greedy.choose, (s.rules[0],))


# In what follows ``s`` is a `Setup`, ``x`` a `Room`, ``r`` the rules, ``v`` a view.


@njit(inline="always")
def decide(v: Any, key: Any, s: Any, x: Any, choose: Any, arguments: Any) -> Any:
    """The action for one view, or `NO_GAME`."""
    if v.legal & (v.legal - U1) == U0:
        return lowest(v.legal)
    r, q = s.rules[0], s.settings[0]
    if worlds.prepare(v, r, x.scratch) == 0.0:
        return NO_GAME
    count = list_candidates(v, r, s.rule_player[0], s.alike, q.pool, x.seen, x.plans)
    if count == 1:
        return x.plans[0, 0]
    x.state[0] = key
    best = race(v, count, q.worlds * count, s, x, tried, choose, arguments)
    return x.plans[best, 0]


@njit(inline="always")
def tried(v: Any, c: Any, s: Any, x: Any, choose: Any, arguments: Any) -> Any:
    """What the world is worth after candidate ``c``."""
    x.game[0] = x.world[0]
    g, r = x.game[0], s.rules[0]
    apply(g, r, x.plans[c, 0])
    if v.phase == PICK:
        for k in range(1, EACH - np.int64(v.num_picks) % EACH):
            apply(g, r, x.plans[c, k])
    finish(g, r, x.seen, choose, arguments)
    return worth(g, r, s.objective[0])[0]


class PIMC(Search):
    """Search by playouts in worlds that agree with the view; see `Search` for how one is made."""

    name = "pimc"
    strengths = {"fast": Settings(), "strong": Settings(worlds=128, pool=8)}
    kernels = {"heuristic": decide_by_heuristic, "greedy-v1": decide_by_greedy}

    def _new_room(self) -> Room:
        most = self.parameters.worlds * self.parameters.spread
        state = np.zeros(1, np.uint64)
        world, game, view = np.zeros(1, GAME), np.zeros(1, GAME), np.zeros(1, VIEW)
        return Room(worlds.new_scratch(), world, game, view, new_plans(), np.empty((MOST, most)), state)
