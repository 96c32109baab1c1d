"""What searches have in common: strengths by name, rules, what worlds are worth, and threads that share the views."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from agents import heuristic
from agents.beliefs import BeliefError
from agents.search.equal import alike_cards
from agents.search.playout import search_rules
from agents.search.settings import Playout, changed, compile_settings
from dnfh_env._bits import plain
from dnfh_env._crew import claim, regions, together
from dnfh_env.agent import describe_view
from dnfh_env.equity import equity_table
from dnfh_env.errors import ArgumentError, one_of, whole
from dnfh_env.objective import compile_objective
from dnfh_env.rules import Rules, checked_rules

NO_GAME = -1
"""In place of an action for a view that no game comes to."""
_VIEWS_A_THREAD = 32
"""In a call of the kernel; between calls Ctrl-C is heard."""
_MOST_THREADS = 1024


class Setup(NamedTuple):
    """What is the same for all decisions, for kernels."""

    rules: Any
    """One `RULES` record, of `search_rules`."""
    objective: Any
    """One `OBJECTIVE` record: what worlds are worth."""
    rule_player: Any
    """One `PARAMETERS` record of ``heuristic``."""
    alike: Any
    """``uint64[52]``, see `alike_cards`."""
    settings: Any
    """One record of `compile_settings`."""


class Task(NamedTuple):
    """Views to be decided, which threads claim one by one."""

    views: Any
    """`VIEW` ``[B]``."""
    keys: Any
    """``uint64[B]``."""
    actions: Any
    """``int64[B]``, to be filled."""
    claims: Any
    """See `dnfh_env._crew.regions`."""


@njit(inline="always")  # since it takes functions, or it could not be cached
def decide_all(task: Any, setup: Any, room: Any, decide: Any, choose: Any, arguments: Any) -> None:
    """Let ``decide(view, key, setup, room, choose, arguments)`` answer views one by one until all are claimed."""
    i = claim(task.claims, 0, 1)
    while i < task.claims[0, 1]:
        task.actions[i] = decide(task.views[i], task.keys[i], setup, room, choose, arguments)
        i = claim(task.claims, 0, 1)


class Search(ABC):
    """An agent that tries actions in worlds; what a subclass adds are its settings, a kernel and the room for it."""

    name: ClassVar[str]
    strengths: ClassVar[Mapping[str, Any]]
    """Settings by name, as in ``pimc:strong``."""
    kernels: ClassVar[Mapping[Playout, Callable[[Task, Setup, Any], None]]]
    """By who plays on: decides what its thread claims of a task."""

    def __init__(self, strength: str = "fast", *, rules: Rules | None = None, threads: int = 0, **changes: Any) -> None:
        """Play under ``rules``, `Rules()` if not given.

        Args:
            strength: one of `strengths`.
            rules: those that are played. Worlds are worth card points where they have no table of equity.
            threads: how many decide views side by side, one a core if 0. No answer depends on it.
            changes: settings that differ from those of the strength.

        Raises `ArgumentError` for what is none of these, or out of bounds.
        """
        rules = checked_rules(rules)
        settings = self.strengths[one_of(self.name, strength, self.strengths)]
        if not _has_equity(rules):
            settings = replace(settings, utility="points")
        self.parameters = changed(self.name, settings, changes)
        self.threads = whole("threads", threads, 0, _MOST_THREADS) or os.cpu_count() or 1
        self._decide = self.kernels[self.parameters.playout]
        self._setup = Setup(
            search_rules(rules),
            compile_objective(self.parameters.utility, rules),
            heuristic.compile_parameters(heuristic.Parameters(), rules),
            alike_cards(rules).copy(),
            compile_settings(self.parameters),
        )

    def act(self, views: NDArray[Any], rng: NDArray[np.uint64]) -> NDArray[np.int64]:
        """See `dnfh_env.agent.Agent.act`; raises `BeliefError` for a view that no game comes to."""
        views, keys, actions = plain(views), plain(rng, np.uint64), np.empty(len(views), np.int64)
        for start in range(0, len(views), _VIEWS_A_THREAD * self.threads):
            part = slice(start, start + _VIEWS_A_THREAD * self.threads)
            self._share(Task(views[part], keys[part], actions[part], regions(len(views[part]), 1, 1)))
        for i in np.flatnonzero(actions == NO_GAME)[:1]:
            raise BeliefError(f"{self.name}: view {i} is of no game ({describe_view(views[i])})")
        return actions

    def _share(self, task: Task) -> None:
        together(lambda number: self._decide(task, self._setup, self._new_room()), min(self.threads, len(task.views)))

    @abstractmethod
    def _new_room(self) -> Any:
        """What a thread needs for one view at a time."""


def _has_equity(rules: Rules) -> bool:
    """Whether there is a table of equity for the rules."""
    try:
        equity_table(rules)
    except ArgumentError:
        return False
    return True
