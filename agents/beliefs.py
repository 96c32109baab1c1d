"""Beliefs: from a view alone, what is certain, exact chances of where each card is, and worlds drawn exactly.

All histories that agree with a view count the same: the hands as dealt, everybody's picks, the kitty's shuffle. What
others' choices say beyond their being legal is used by `Beliefs.weighted` alone. How it is counted stands in
`agents.layouts`, how worlds are drawn in `agents.worlds`, whose kernels a search calls.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from agents.layouts import find_places
from agents.worlds import draw_worlds, new_scratch, retraced, rewound
from dnfh_env.agent import Agent, StochasticAgent, make_agent, name_of
from dnfh_env.cards import NUM_CARDS, NUM_SEATS
from dnfh_env.engine import GAME, NUM_ACTIONS
from dnfh_env.errors import AgentError, ArgumentError, described, shown, whole
from dnfh_env.notation import action_to_string, check_counter, legal_of
from dnfh_env.rules import Rules, checked_rules, compile_rules
from dnfh_env.view import VIEW, views_of


class BeliefError(ArgumentError):
    """A view that no game comes to, or one that an agent would never have let come about."""


class Beliefs:
    """What the seat of one view can know of the hidden cards.

    >>> from dnfh_env import Game
    >>> beliefs = Beliefs(Game(seed=1).view())
    >>> beliefs.places().sum(axis=0).round(9)
    array([13., 13., 13., 13.])

    Places are those of the view: 0 is the seat that looks, 1 its left, 2 across, 3 its right. Cards that are picked and
    not yet exchanged count with who picked them.
    """

    def __init__(self, view: Any, rules: Rules | None = None) -> None:
        """From a `VIEW` record, of a game under ``rules``, `Rules()` if not given.

        Raises `BeliefError` for a view that no game under these rules comes to, saying what cannot be.
        """
        self._view = _one_view(view)
        self._rules = checked_rules(rules)
        self._compiled = compile_rules(self._rules)
        self._scratch = new_scratch()
        self._places = np.zeros((NUM_CARDS, NUM_SEATS))
        self._possible = np.zeros(NUM_SEATS, np.uint64)
        self._layouts = float(
            find_places(self._view, self._compiled, self._scratch.layouts, self._places, self._possible)
        )
        if not self._layouts:
            raise BeliefError("view: no hands of the other seats agree with what was passed, played and not followed")
        self._check()

    def _check(self) -> None:
        """One world says for all whether a game comes to this view: what is public is the same in each."""
        world = self.worlds(1, 0)
        games = rewound(world, self._compiled)
        for action in map(int, (actions[0] for actions in retraced(world, games, self._compiled, 0))):
            legal = legal_of(games, self._compiled)
            if action < 0 or not legal >> action & 1:
                what = action_to_string(action) if action >= 0 else "what follows"
                done = f"after {games['num_picks'][0]} picks and {games['num_plays'][0]} plays"
                raise BeliefError(f"view: {what} at place {games['seat'][0]} {done} cannot be legal")
        seen = views_of(games, self._compiled, np.zeros(1, np.int64))
        wrong = [name for name in VIEW.names or () if (seen[name] != self._view[name]).any()]
        if wrong:
            raise BeliefError(f"view: {', '.join(wrong)}: not what the deal's decisions lead to")

    @property
    def layouts(self) -> float:
        """How many layouts of the hidden hands agree with the view.

        After a kitty a layout counts once for each way in which it may have come out of the kitty. Times a constant
        that the view gives this is the number of histories.
        """
        return self._layouts

    def places(self) -> NDArray[np.float64]:
        """The chance of each card to be in the hand at each place now, ``float64[52, 4]``.

        A row sums to 1, that of a card already played to 0; a column sums to the size of the hand.
        """
        return self._places.copy()

    def possible(self) -> NDArray[np.uint64]:
        """The cards that each place may hold, in one layout at least, as masks ``uint64[4]``."""
        return self._possible.copy()

    def certain(self) -> NDArray[np.uint64]:
        """The cards that each place holds in every layout, as masks ``uint64[4]``."""
        a, b, c, d = self._possible
        others: NDArray[np.uint64] = np.array([b | c | d, a | c | d, a | b | d, a | b | c])
        return self._possible & ~others

    def worlds(self, count: int, seed: int) -> NDArray[Any]:
        """Games that agree with the view, each history equally likely, `GAME` records ``[count]``.

        They stand at the view's decision, with the view's seat as seat 0; what comes by chance later is fresh. The same
        view and ``seed`` give the same worlds, and fewer of them the first ones.
        """
        games = np.zeros(whole("count", count, 0), GAME)
        seeds = np.array([check_counter("seed", seed)], np.uint64)
        draw_worlds(self._view, self._compiled, seeds, self._scratch, games, np.zeros(1))
        return games

    def weighted(self, count: int, seed: int, agent: str | Agent) -> tuple[NDArray[Any], NDArray[np.float64], float]:
        """`worlds`, each weighted by how likely ``agent`` was to decide as the other three seats did in it.

        The decisions are those of the deal so far: the call, picks, plays. By importance sampling a weighted mean over
        the worlds is one over histories in which ``agent`` sits at the other three seats.

        Args:
            count: how many worlds, at least 1.
            seed: see `worlds`.
            agent: a `StochasticAgent`, or the name of one.

        Returns:
            The worlds, weights ``float64[count]`` that sum to 1, and the effective sample size ``1 / sum(w**2)``
            (Kish, Survey Sampling, 1965): how many worlds of equal weight would say as much.

        Raises `AgentError` for an agent that does not say how likely its actions are, and `BeliefError` if it would
        have let none of these worlds come about.
        """
        worlds = self.worlds(whole("count", count, 1), seed)
        name, built = name_of(agent), make_agent(agent, self._rules)
        if not isinstance(built, StochasticAgent):
            raise AgentError(
                f"{name}: {type(built).__name__} has no method probabilities(views), as random and learned have"
            )
        logs = np.zeros(count)
        games = rewound(worlds, self._compiled)
        for actions in retraced(worlds, games, self._compiled, seed):
            if seat := int(games["seat"][0]):  # my own decisions are the same in all worlds
                views = views_of(games, self._compiled, np.full(count, seat))
                logs += _log_chances(built, name, views, actions)
        if logs.max() == -np.inf:
            raise BeliefError(
                f"weighted: {name} would have let none of {count} worlds come about; draw more of "
                "them, or ask an agent that leaves more to chance, such as learned:sample=true"
            )
        weights = np.exp(logs - logs.max())
        weights /= weights.sum()
        return worlds, weights, float(1.0 / np.square(weights).sum())


def _one_view(view: Any) -> NDArray[Any]:
    """A `VIEW` array of length 1 with one record."""
    found = np.asarray(view)
    if found.dtype != VIEW or found.size != 1:
        raise ArgumentError(
            f"view: expected one VIEW record, as Game.view() and the environments' view() give it, got {shown(view)}"
        )
    one = np.zeros(1, VIEW)
    one[:] = found.reshape(1)
    return one


def _log_chances(
    agent: StochasticAgent, name: str, views: NDArray[Any], actions: NDArray[np.int64]
) -> NDArray[np.float64]:
    """The logarithms of how likely an agent is to take these actions, ``float64[B]``."""
    try:
        found = np.asarray(agent.probabilities(views), np.float64)
    except AgentError:
        raise  # it says all itself
    except Exception as error:
        raise AgentError(f"{name}: probabilities raised {described(error)}") from error
    if found.shape != (len(views), NUM_ACTIONS) or not (found >= 0.0).all():
        raise AgentError(f"{name}: probabilities are not numbers from 0 up of shape [{len(views)}, {NUM_ACTIONS}]")
    with np.errstate(divide="ignore"):
        logs: NDArray[np.float64] = np.log(found[np.arange(len(views)), actions])
    return logs
