"""`Greedy`, registered as ``greedy-v1``: a rule player that ducks, and the yardstick of all strength figures.

One sentence of advice, one helper. Points are read from the rules, so every preset can be played; no randomness is
used. The behaviour is frozen: a better player gets another name.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dnfh_env._bits import U0, U1, bit, lowest, plain
from dnfh_env.agent import play_with
from dnfh_env.engine import PICK, PLAY, SUIT_SETS
from dnfh_env.rules import Rules, checked_rules, compile_rules
from dnfh_env.view import table_cards

_LEAST = np.iinfo(np.int64).min
"""Less than any card is worth."""


class Greedy:
    """Pass and throw what is dangerous, duck what costs, take what does not."""

    def __init__(self, rules: Rules | None = None) -> None:
        """Play under ``rules``, `Rules()` if not given."""
        self._rules = compile_rules(checked_rules(rules))

    def act(self, views: NDArray[Any], rng: NDArray[np.uint64]) -> NDArray[np.int64]:
        """See `dnfh_env.agent.Agent.act`; ``rng`` is not used."""
        actions = np.empty(len(views), np.int64)
        choose_all(plain(views), self._rules, actions)
        return actions

    def play_fused(self, games: NDArray[Any], rules: NDArray[Any], decisions: int) -> int:
        """See `dnfh_env.agent.FusedAgent.play_fused`."""
        return int(play_all(games, rules, self._rules, decisions))


@njit(cache=True)
def choose_all(views: Any, rules: Any, actions: Any) -> None:
    """`choose` for each record of a `VIEW` array into ``actions``, ``int64[B]``."""
    for i in range(views.shape[0]):
        actions[i] = choose(views[i], rules[0])


@njit(cache=True, nogil=True)
def play_all(games: Any, rules: Any, own: Any, decisions: Any) -> Any:
    """`play_with` this player, which was made for the rules ``own``."""
    return play_with(games, rules, decisions, choose, (own[0],))


@njit
def choose(v: Any, r: Any) -> Any:
    """The action for one view of a seat that is to move."""
    if v.phase == PICK:
        return most_dangerous(v.legal, r)
    if v.phase == PLAY:
        if v.num_plays & 3 == 0:
            return lead(v.legal, r)
        if v.legal & SUIT_SETS[v.best_card // 13]:
            return follow(v, r)
        return most_dangerous(v.legal, r)  # void in the led suit: throw it
    return lowest(v.legal)  # a call: the first that is allowed, by default all three to the left


@njit
def follow(v: Any, r: Any) -> Any:
    """Take the trick when last to play and it costs nothing, else duck it with the most dangerous card that can."""
    under = v.legal & (bit(v.best_card) - U1)
    over = v.legal & ~under
    if v.num_plays & 3 == 3 and over:
        card = bargain(over, r)
        if under == U0 or points_of(table_cards(v), r) + r.points[card] <= 0:
            return card
    return most_dangerous(under, r) if under else least_dangerous(over, r)


@njit
def lead(cards: Any, r: Any) -> Any:
    """The lowest rank, the fewest points among equal ones."""
    return foremost(cards, r, -256, -1)


@njit
def most_dangerous(cards: Any, r: Any) -> Any:
    """The most by rank and points added up, the higher of equal ones: QS 36, QH 23, AH 13, AS 12, JD -1."""
    return foremost(cards, r, 17, 16)


@njit
def least_dangerous(cards: Any, r: Any) -> Any:
    """The least by rank and points added up, the lower of equal ones."""
    return foremost(cards, r, -17, -16)


@njit
def bargain(cards: Any, r: Any) -> Any:
    """To take a trick with: the fewest points, the highest rank among equal ones, to be rid of it."""
    return foremost(cards, r, 1, -16)


@njit
def foremost(cards: Any, r: Any, per_rank: Any, per_point: Any) -> Any:
    """The card of a non-empty set that is worth most at these weights, the last by id of equal ones."""
    best = -1
    most = _LEAST
    while cards:
        card = lowest(cards)
        cards &= cards - U1
        worth = per_rank * (card % 13) + per_point * np.int64(r.points[card])
        best = card if worth >= most else best
        most = max(worth, most)
    return best


@njit
def points_of(cards: Any, r: Any) -> Any:
    """Sum of the points of a set of cards."""
    total = np.int64(0)
    while cards:
        total += np.int64(r.points[lowest(cards)])
        cards &= cards - U1
    return total
