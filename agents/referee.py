"""Playing games out: agents are asked, what they answer is checked, and what they do wrong is counted against them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agents.results import Fault
from dnfh_env._bits import U1
from dnfh_env.agent import Agent, RandomAgent, answer, are_legal, ask_each, describe_view
from dnfh_env.engine import OVER, apply_all, keys_of, legal_masks
from dnfh_env.errors import AgentError
from dnfh_env.notation import describe_illegal
from dnfh_env.view import views_of

Player = tuple[str, Agent]
"""An agent and what to call it."""

Decide = Callable[[NDArray[Any], NDArray[np.int64]], NDArray[np.int64]]
"""The actions for the `GAME` records of games under way, given these and which of all games they are."""


class Moment(NamedTuple):
    """The decisions that games under way wait for, arrays by game."""

    now: NDArray[Any]
    """`GAME` records."""
    rows: NDArray[np.int64]
    """Which of all games they are."""
    blocks: NDArray[np.int64]
    seats: NDArray[np.int64]
    views: NDArray[Any]
    keys: NDArray[np.uint64]
    actions: NDArray[np.int64]
    """What is decided: at first by chance."""


BINS_A_DECADE = 32
"""Of the times of decisions, which are counted in bins of equal ratio from `SHORTEST` on."""
SHORTEST = 1e-8
NUM_BINS = 12 * BINS_A_DECADE


def play_by(games: NDArray[Any], compiled: NDArray[Any], decide: Decide) -> None:
    """Play `GAME` records, shape ``(B,)`` and none of them over, to their ends, in place."""
    live = np.arange(len(games))
    while len(live):
        now = games.take(live)  # with put much faster than indexing, which copies records field by field
        apply_all(now, compiled, decide(now, live))
        games.put(live, now)
        live = live[now["phase"] != OVER]


def play_out(games: NDArray[Any], compiled: NDArray[Any], lineup: NDArray[np.int64], players: Sequence[Player]) -> None:
    """Play `GAME` records to their ends, in place.

    Args:
        games: shape ``(B,)``, none of them over.
        compiled: of `compile_rules`.
        lineup: ``int64[B, 4]``, who sits at each seat, as an index into ``players``.
        players: those that are one and the same object are asked together.

    Raises `AgentError` when an agent errs.
    """
    lineup = first_of_each(players)[lineup]

    def decide(now: NDArray[Any], live: NDArray[np.int64]) -> NDArray[np.int64]:
        views = views_of(now, compiled, now["seat"].astype(np.int64))
        return ask_each(players, lineup[live, now["seat"]], views, keys_of(now))

    play_by(games, compiled, decide)


def play_last_cards(games: NDArray[Any], compiled: NDArray[Any]) -> None:
    """Make the decision of games, `GAME` records ``[B]``, in which a single one is possible."""
    left = np.empty(len(games), np.uint64)
    legal_masks(games, compiled, left)
    apply_all(games, compiled, np.log2(left.astype(np.float64)).astype(np.int64))


def first_of_each(players: Sequence[Player]) -> NDArray[np.int64]:
    """For each player the first that is the same object."""
    first = {id(agent): index for index, (_, agent) in reversed(list(enumerate(players)))}
    return np.array([first[id(agent)] for _, agent in players])


class Referee:
    """Asks the players of some blocks for their decisions, of those that have more than one choice.

    A player that raises, or whose action is illegal, acts at random for the rest of that block: the block counts, and
    the `faults` say what happened. Who errs depends on nothing but the block.
    """

    def __init__(
        self,
        players: Sequence[Player],
        lineup: NDArray[np.int64],
        compiled: NDArray[Any],
        blocks: NDArray[np.int64],
        warm: set[int],
    ) -> None:
        """Watch over games of which ``blocks``, ``int64[B]``, is the block; ``lineup`` as in `play_out`.

        ``warm`` holds the players that have been asked before, and is added to.
        """
        self.players = players
        self.lineup = first_of_each(players)[lineup]
        self.compiled = compiled
        self.blocks = blocks
        self.faults: list[tuple[int, int, str, str, int | None]] = []
        """Player, block, message, view, action; the first of each player and block."""
        self.times = np.zeros((len(players), NUM_BINS), np.int64)
        """Decisions by time, see `bin_of`."""
        self.seconds = np.zeros(len(players))
        self._warm = warm
        self._excluded: set[tuple[int, int]] = set()

    def decide(self, now: NDArray[Any], live: NDArray[np.int64]) -> NDArray[np.int64]:
        """See `Decide`."""
        seats = now["seat"].astype(np.int64)
        views, keys = views_of(now, self.compiled, seats), keys_of(now)
        actions = RandomAgent().act(views, keys)  # what is forced, and what the excluded do
        moment = Moment(now, live, self.blocks[live], seats, views, keys, actions)
        movers = self.lineup[live, seats]
        choices = views["legal"] & (views["legal"] - U1) != 0
        answered = [np.empty(0, np.int64)]
        for index in range(len(self.players)):
            asked = self._allowed(index, np.flatnonzero(choices & (movers == index)), moment.blocks)
            if len(asked):
                answered += self._ask(index, moment, asked)
        self.note(moment, np.concatenate(answered))
        return actions

    def note(self, moment: Moment, answered: NDArray[np.int64]) -> None:
        """For those who keep more: called with every decision, and which of them the players themselves have made."""

    def _allowed(self, index: int, asked: NDArray[np.int64], blocks: NDArray[np.int64]) -> NDArray[np.int64]:
        """Without the views of blocks that the player is excluded from."""
        if not self._excluded:
            return asked
        out = [(index, block) in self._excluded for block in blocks[asked].tolist()]
        return asked[~np.array(out, np.bool_)]

    def _ask(self, index: int, moment: Moment, asked: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Put a player's answers for the ``asked`` views among the actions, or leave the random ones where it errs.

        Returns for which they are its own.
        """
        name, agent = self.players[index]
        views, blocks = moment.views.take(asked), moment.blocks[asked]
        legal_sets = views["legal"].copy()
        start = time.perf_counter()
        try:
            answers = answer(agent, views, moment.keys[asked], name)
        except AgentError as error:
            if (blocks == blocks[0]).all():
                self.blame(index, int(blocks[0]), str(error), moment.views[asked[0]], None)
                return []
            apart = [asked[blocks == block] for block in np.unique(blocks)]  # it shows whose fault it is
            return [part for each in apart for part in self._ask(index, moment, each)]
        self._clock(index, len(asked), time.perf_counter() - start)
        legal = are_legal(legal_sets, answers)
        moment.actions[asked[legal]] = answers[legal]
        for i in np.flatnonzero(~legal):
            action = int(answers[i])
            said = f"{name}: {describe_illegal(action, int(legal_sets[i]))}"
            self.blame(index, int(blocks[i]), said, moment.views[asked[i]], action)
        return [asked[legal]]

    def blame(self, index: int, block: int, message: str, view: Any, action: int | None) -> None:
        """Note what a player did wrong, and ask it no more in this block."""
        if (index, block) not in self._excluded:
            self._excluded.add((index, block))
            self.faults.append((index, block, message, describe_view(view), action))

    def _clock(self, index: int, decisions: int, seconds: float) -> None:
        """Count the time of a call, but for a player's first one, in which it may still compile and load."""
        if index in self._warm:
            self.times[index, bin_of(seconds / decisions)] += decisions
            self.seconds[index] += seconds
        self._warm.add(index)


def bin_of(seconds: float) -> int:
    """The bin of a time: they begin at `SHORTEST`, `BINS_A_DECADE` to each factor of ten."""
    return min(max(int(np.log10(max(seconds, SHORTEST) / SHORTEST) * BINS_A_DECADE), 0), NUM_BINS - 1)


def quantile_of(times: NDArray[np.int64], p: float) -> float:
    """The ``p`` quantile of binned times in seconds, to the upper edge of its bin; 0 without any."""
    total = times.sum()
    reached = np.flatnonzero(np.cumsum(times) >= p * total)
    return float(SHORTEST * 10 ** ((reached[0] + 1) / BINS_A_DECADE)) if total else 0.0


def faults_of(referee: Referee, unit: str, names: Sequence[str]) -> list[Fault]:
    """What went wrong, in order of player and block."""
    return [
        Fault(names[index], unit, block, message, view, action)
        for index, block, message, view, action in sorted(referee.faults, key=lambda fault: fault[:2])
    ]
