"""`ISMCTS`, registered as ``ismcts``: one tree over all worlds that agree with the view, its first moves in a race.

Single-observer information-set tree search (Cowling, Powley, Whitehouse: Information Set Monte Carlo Tree Search, 2012;
for a trick game Whitehouse et al.: Integrating MCTS with Knowledge-Based Methods, 2013). Each iteration goes through
one sampled world: what is legal there is what may be chosen, and a node gathers what sequences of actions came to in
all worlds. The four seats each look to their own mean (max^n, as in Sturtevant: An Analysis of UCT in Multi-Player
Games, 2008). In a node PUCT chooses (Rosin 2011; Silver et al. 2017): the rule player's action for the mover's view
of that world has most of the prior. After a new node the rule player decides at all seats.

At the root nothing is left to PUCT: its actions share their worlds in an `agents.search.race`, since differences in
the same worlds are far less noisy than means over others. The rule player's action stands there unless another is
clearly better. The pass is widened progressively (Coulom: Computing Elo Ratings of Move Patterns in the Game of Go,
2007): cards come in as the rule player would part with them. Other seats' picks are hidden, so they belong to the
world, and the tree of a call or a pass ends at the exchange, from which each world goes on with cards of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
from numba import njit

from agents import greedy, heuristic, worlds
from agents.search.base import NO_GAME, Search, decide_all
from agents.search.candidates import list_pool, tried_plays
from agents.search.playout import finish, worth
from agents.search.race import race
from agents.search.settings import Bounds, Playout, Utility
from dnfh_env._bits import U0, U1, bit, lowest, nth_set, popcount
from dnfh_env._random import below
from dnfh_env.cards import HAND_SIZE, NUM_CARDS, NUM_SEATS
from dnfh_env.engine import CALL, GAME, NUM_ACTIONS, OVER, PICK, PLAY, apply
from dnfh_env.view import VIEW, look_at_present, write_present


@dataclass(frozen=True)
class Settings:
    """How a search spends its budget."""

    iterations: Annotated[int, Bounds(1, 100_000)] = 400
    """Playouts a decision, each in a world and along a path of the tree."""
    explore: Annotated[float, Bounds(0, 100)] = 2.0
    """Weight of the prior against means, in standard deviations of what iterations come to."""
    prior: Annotated[float, Bounds(0, 1)] = 0.9
    """Share of the prior that the rule player's action has; the others share the rest."""
    depth: Annotated[int, Bounds(0, NUM_CARDS)] = NUM_CARDS
    """Decisions in the tree beyond the one at the root."""
    pool: Annotated[int, Bounds(1, HAND_SIZE)] = 6
    """Cards tried for the next pick."""
    widen: Annotated[float, Bounds(0, 100)] = 2.0
    """Cards tried for a later pick at a node's first visit."""
    power: Annotated[float, Bounds(0, 1)] = 0.4
    """They grow with this power of the visits."""
    drop: Annotated[float, Bounds(0, 100)] = 2.0
    """Paired standard errors behind the best beyond which an action at the root is dropped."""
    depart: Annotated[float, Bounds(0, 100)] = 1.0
    """Paired standard errors by which the best must be ahead of what the rule player does."""
    utility: Utility = "equity"
    playout: Playout = "heuristic"


class Tree(NamedTuple):
    """Nodes, by number; 0 is the root, and no node's child. ``N`` is one more than the iterations."""

    first_child: Any
    """``int32[N]``, 0 for none."""
    next_sibling: Any
    """``int32[N]``, 0 for none."""
    action: Any
    """``uint8[N]``, by which a node is reached from its parent."""
    visits: Any
    """``int32[N]``, iterations that went through it."""
    available: Any
    """``int32[N]``, iterations that went through its parent and could have chosen it."""
    sums: Any
    """``float64[N, 4]``, what those through it came to, by seat."""
    path: Any
    """``int64[MOST_PLIES]``: the nodes of an iteration, from the root on."""
    size: Any
    """``int64[1]``, nodes in use."""
    squares: Any
    """``float64[1]``, the sum over iterations and seats of what they came to, squared."""


MOST_PLIES = 1 + NUM_CARDS
"""Nodes of a path at most: the root, and all cards."""


class Room(NamedTuple):
    """What a thread needs for one view at a time."""

    scratch: Any
    """`worlds.Scratch`."""
    world: Any
    """`GAME` ``[1]``."""
    game: Any
    """`GAME` ``[1]``: the world on the path of an iteration."""
    seen: Any
    """`VIEW` ``[1]``."""
    state: Any
    """``uint64[1]``."""
    tree: Any
    """`Tree`."""
    actions: Any
    """``int64[NUM_ACTIONS]``: those tried at the root."""
    values: Any
    """``float64[NUM_ACTIONS, iterations // 2]``: by action of the root and world, for the seat that searches."""


def new_tree(iterations: int) -> Tree:
    """Room for a tree, with nothing in it but what was there before; see `clear`."""
    size = iterations + 1
    return Tree(
        first_child=np.zeros(size, np.int32),
        next_sibling=np.zeros(size, np.int32),
        action=np.zeros(size, np.uint8),
        visits=np.zeros(size, np.int32),
        available=np.zeros(size, np.int32),
        sums=np.zeros((size, NUM_SEATS)),
        path=np.zeros(MOST_PLIES, np.int64),
        size=np.zeros(1, np.int64),
        squares=np.zeros(1),
    )


@njit(cache=True, nogil=True)
def decide_by_heuristic(task: Any, s: Any, x: Any) -> None:
    """Decide what this thread claims of a `Task`, with ``heuristic`` playing on."""
    decide_all(task, s, x, decide, heuristic.choose, (s.rules[0], s.rule_player[0]))


@njit(cache=True, nogil=True)
def decide_by_greedy(task: Any, s: Any, x: Any) -> None:
    """Decide what this thread claims of a `Task`, with ``greedy-v1`` playing on."""
    decide_all(task, s, x, decide, greedy.choose, (s.rules[0],))


# In what follows ``s`` is a `Setup`, ``x`` a `Room`, ``t`` its `Tree`, ``r`` the rules, ``v`` a view; ``choose`` is the
# policy of playouts, which ``favoured`` actions are of.


@njit(inline="always")
def decide(v: Any, key: Any, s: Any, x: Any, choose: Any, arguments: Any) -> Any:
    """The action for one view, or `NO_GAME`."""
    if v.legal & (v.legal - U1) == U0:
        return lowest(v.legal)
    r, q = s.rules[0], s.settings[0]
    if worlds.prepare(v, r, x.scratch) == 0.0:
        return NO_GAME
    count = list_actions(v, s, x.actions)
    if count == 1 or q.iterations < 2 * count:
        return x.actions[0]
    x.state[0] = key
    clear(x.tree)
    return x.actions[race(v, count, q.iterations, s, x, iterate, choose, arguments)]


@njit
def list_actions(v: Any, s: Any, actions: Any) -> Any:
    """Fill ``actions`` with what is tried at the root, the rule player's first; returns how many there are."""
    actions[0] = heuristic.choose(v, s.rules[0], s.rule_player[0])
    others = tried_actions(v, actions[0], s.settings[0].pool, s) & ~bit(actions[0])
    count = 1
    while others:
        actions[count] = lowest(others)
        others &= others - U1
        count += 1
    return count


@njit
def tried_actions(v: Any, favoured: Any, width: Any, s: Any) -> Any:
    """The actions that are tried in a view as a mask, one of equal cards, and ``favoured`` among them.

    Of picks those that the rule player would soonest make, ``width`` of them, and the first for a shot.
    """
    if v.phase == CALL:
        return v.legal
    if v.phase == PICK:
        return bit(favoured) | soonest_picks(v, width, s)
    return tried_plays(v, favoured, s.alike)


@njit
def soonest_picks(v: Any, width: Any, s: Any) -> Any:
    """Cards that the rule player would soonest part with, and the one that it would for a shot."""
    r, p = s.rules[0], s.rule_player[0]
    cards = np.empty(HAND_SIZE, np.int64)
    found = bit(heuristic.best(v.legal, v, r, p, None, heuristic.shot_pass))
    for i in range(list_pool(v, r, p, min(width, HAND_SIZE), cards)):
        found |= bit(cards[i])
    return found


# --- an iteration -----------------------------------------------------------------------------------------------


@njit(inline="always")
def iterate(v: Any, c: Any, s: Any, x: Any, choose: Any, arguments: Any) -> Any:
    """Make action ``c`` in the world, go down the tree and one node beyond, play on; what seat 0 gets."""
    x.game[0] = x.world[0]
    g, t, r, action = x.game[0], x.tree, s.rules[0], x.actions[c]
    playing = g.phase == PLAY
    node, plies, inside = 0, 0, True
    while inside:
        if not is_hidden(g):
            child = find_child(t, node, action)
            inside = child != 0
            node = child if inside else add_child(t, node, action)
            plies += 1
            t.path[plies] = node
        apply(g, r, action)
        inside = inside and g.phase != OVER and (g.phase == PLAY) == playing and plies <= s.settings[0].depth
        if inside:
            write_present(look_at_present(g, r, np.int64(g.seat)), x.seen[0])
            action = choose(x.seen[0], *arguments)
            if not is_hidden(g):
                action = select(x.seen[0], np.int64(g.seat), node, action, s, x)
    finish(g, r, x.seen, choose, arguments)
    values = worth(g, r, s.objective[0])
    back_up(t, plies, values)
    return values[0]


@njit(inline="always")
def is_hidden(g: Any) -> Any:
    """Whether seat 0 never sees what is decided now."""
    return g.phase == PICK and g.seat != 0


@njit
def back_up(t: Any, plies: Any, values: Any) -> None:
    """Into the nodes of the path goes what the four seats got."""
    for k in range(plies + 1):
        t.visits[t.path[k]] += 1
        for seat in range(4):
            t.sums[t.path[k], seat] += values[seat]
    for seat in range(4):
        t.squares[0] += values[seat] * values[seat]


@njit
def select(v: Any, mover: Any, node: Any, favoured: Any, s: Any, x: Any) -> Any:
    """The action of greatest mean and prior in a node, for the seat ``mover`` with the view ``v``, by PUCT.

    Of those that were never chosen here, which count with the mean of the node, the policy's comes first.
    """
    t, q = x.tree, s.settings[0]
    tried = tried_actions(v, favoured, width_of(t.visits[node], q), s)
    shared = (1.0 - q.prior) / max(1, popcount(tried) - 1)
    weight = q.explore * spread(t)
    fresh, most, found = tried, -np.inf, favoured
    child = np.int64(t.first_child[node])
    while child:
        action = np.int64(t.action[child])
        if tried & bit(action):
            fresh &= ~bit(action)
            t.available[child] += 1
            prior = q.prior if action == favoured else shared
            bonus = weight * prior * np.sqrt(t.available[child]) / (1 + t.visits[child])
            score = t.sums[child, mover] / t.visits[child] + bonus
            if score > most:
                most, found = score, action
        child = np.int64(t.next_sibling[child])
    if fresh:
        prior = q.prior if fresh & bit(favoured) else shared
        if t.sums[node, mover] / t.visits[node] + weight * prior * np.sqrt(t.visits[node]) > most:
            return favoured if fresh & bit(favoured) else any_of(fresh, x.state)
    return found


@njit(inline="always")
def width_of(visits: Any, q: Any) -> Any:
    """How many picks are tried in a node of so many visits."""
    return np.int64(np.ceil(q.widen * visits**q.power))


@njit
def any_of(actions: Any, state: Any) -> Any:
    """One of a set, drawn."""
    return nth_set(actions, below(popcount(actions), worlds.number(state)))


@njit
def spread(t: Any) -> Any:
    """The standard deviation of what iterations came to, about each seat's mean; so no utility's scale matters."""
    visits = t.visits[0]
    total = t.squares[0]
    for seat in range(4):
        total -= t.sums[0, seat] * t.sums[0, seat] / visits
    return np.sqrt(max(0.0, total / (4 * visits)))


# --- nodes ------------------------------------------------------------------------------------------------------


@njit
def clear(t: Any) -> None:
    """Leave nothing but the root."""
    t.size[0] = 0
    t.squares[0] = 0.0
    new_node(t, 0)


@njit
def new_node(t: Any, action: Any) -> Any:
    """The next node, with nothing in it; its number."""
    node = t.size[0]
    t.size[0] += 1
    t.first_child[node] = t.next_sibling[node] = 0
    t.action[node] = action
    t.visits[node] = 0
    t.available[node] = 1
    t.sums[node] = 0.0
    return node


@njit
def add_child(t: Any, node: Any, action: Any) -> Any:
    """A new first child of a node; its number."""
    child = new_node(t, action)
    t.next_sibling[child] = t.first_child[node]
    t.first_child[node] = child
    return child


@njit
def find_child(t: Any, node: Any, action: Any) -> Any:
    """The child of a node by an action, or 0."""
    child = np.int64(t.first_child[node])
    while child and t.action[child] != action:
        child = np.int64(t.next_sibling[child])
    return child


class ISMCTS(Search):
    """Search by a tree over worlds that agree with the view; see `Search` for how one is made."""

    name = "ismcts"
    strengths = {"fast": Settings(), "strong": Settings(iterations=1600)}
    kernels = {"heuristic": decide_by_heuristic, "greedy-v1": decide_by_greedy}

    def _new_room(self) -> Room:
        iterations = self.parameters.iterations
        world, game, view = np.zeros(1, GAME), np.zeros(1, GAME), np.zeros(1, VIEW)
        state, actions = np.zeros(1, np.uint64), np.zeros(NUM_ACTIONS, np.int64)
        values = np.empty((NUM_ACTIONS, iterations // 2))
        return Room(worlds.new_scratch(), world, game, view, state, new_tree(iterations), actions, values)
