"""`Batch`: many games stepped together."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dnfh_env._bits import bit
from dnfh_env.agent import legal_rows
from dnfh_env.engine import (
    GAME,
    NUM_ACTIONS,
    OVER,
    keys_of,
    legal,
    legal_masks,
    new_games,
    next_game,
    play_random,
)
from dnfh_env.errors import IllegalActionError, shown, whole
from dnfh_env.notation import check_counter, describe_illegal, whole_numbers
from dnfh_env.objective import REWARDS, apply_and_pay, check_reward
from dnfh_env.observation import LAYOUTS, Layout, check_observation, features, pack, state_features
from dnfh_env.rules import Rules, checked_rules, compile_rules
from dnfh_env.view import views_of


@dataclasses.dataclass(frozen=True)
class Step:
    """What one step of a batch brought; arrays by row."""

    rewards: NDArray[np.float32]
    """``[B, 4]``, by seat."""
    ended: NDArray[np.bool_]
    """Whether the row's game ended with this decision; its next game has begun already."""
    truncated: NDArray[np.bool_]
    """Whether ``max_deals`` cut it off without a winner."""
    final: NDArray[Any]
    """The `GAME` records of the ended games, in rising order of row."""


class Batch:
    """``num_games`` games under the same rules, advanced together.

    Row ``i`` plays the games ``i``, ``i + 2**32``, ``i + 2 * 2**32`` … of ``seed``, so what a row plays does not
    depend on how many others there are, and row ``i`` is ``Game(rules, seed, game=i)`` at first. A game that ends is
    replaced by the row's next one in the same step.
    """

    def __init__(self, num_games: int, rules: Rules | None = None, seed: int = 0, reward: str = "points") -> None:
        """Start the first game of every row. ``reward`` is ``"points"`` or ``"win"``, see `dnfh_env.objective`."""
        whole("num_games", num_games, 1)
        self.rules = checked_rules(rules)
        self.compiled = compile_rules(self.rules)
        self.objective = REWARDS[check_reward(reward)]
        self.games = np.zeros(int(num_games), GAME)
        """The records themselves: everything, hidden cards too."""
        self.reset(seed)

    def reset(self, seed: int = 0) -> None:
        """Start the first game of every row under ``seed``, a whole number below 2**64."""
        self.games[:] = new_games(self.rules, check_counter("seed", seed), np.arange(len(self.games)))

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.games)

    @property
    def seats(self) -> NDArray[np.int64]:
        """The seat to move in each row, ``int64[B]``."""
        return self.games["seat"].astype(np.int64)

    def legal(self) -> NDArray[np.uint64]:
        """Legal actions of the seats to move as masks, ``uint64[B]``."""
        out = np.empty(len(self.games), np.uint64)
        legal_masks(self.games, self.compiled, out)
        return out

    def action_masks(self) -> NDArray[np.int8]:
        """Legal actions of the seats to move, ``int8[B, 64]`` of 0 and 1."""
        return legal_rows(self.legal())

    def views(self, rows: NDArray[np.int64] | None = None) -> NDArray[Any]:
        """What the seats to move know: `VIEW` records of all rows, or of some."""
        games = self._of(rows)
        return views_of(games, self.compiled, games["seat"].astype(np.int64))

    def keys(self, rows: NDArray[np.int64] | None = None) -> NDArray[np.uint64]:
        """A seed for each decision to be made, ``uint64[B]``: a function of seed, game, deal and decision."""
        return keys_of(self._of(rows))

    def _of(self, rows: NDArray[np.int64] | None) -> NDArray[Any]:
        """The records of some rows, or of all."""
        if rows is None:
            return self.games
        chosen = whole_numbers("rows", rows)
        if len(chosen) and not (chosen.min() >= 0 and chosen.max() < len(self)):
            raise IllegalActionError(f"rows: expected numbers from 0 to {len(self) - 1}, got {shown(rows)}")
        return self.games.take(chosen)

    def packed(self, observation: str = "compact") -> NDArray[np.uint64]:
        """Features of the seats to move as bits, ``uint64[B, layout.words]``."""
        return pack(self.views(), self.rules.target, _layout(observation))

    def observe(self, observation: str = "compact") -> NDArray[np.float32]:
        """Features of the seats to move, ``float32[B, layout.bits]`` of 0 and 1."""
        return features(self.views(), self.rules.target, _layout(observation))

    def states(self) -> NDArray[np.float32]:
        """Everything, from the place of the seats to move, ``float32[B, STATE.bits]``: for critics only."""
        return state_features(self.games, self.compiled, self.seats)

    def step(self, actions: Sequence[int] | NDArray[np.integer[Any]]) -> Step:
        """Make one decision in every row.

        Args:
            actions: ``B`` actions, each legal in its row.

        Raises `IllegalActionError` that names the row, before any game is changed.
        """
        rows = np.arange(len(self.games), dtype=np.int64)
        return self.step_rows(rows, actions)

    def step_rows(self, rows: NDArray[np.int64], actions: Sequence[int] | NDArray[np.integer[Any]]) -> Step:
        """`step` for some rows, each at most once; the answer has one entry for each of them, in their order."""
        rows = whole_numbers("rows", rows)
        chosen = whole_numbers("actions", actions, len(rows))
        fault = find_fault(self.games, self.compiled, rows, chosen)
        if fault >= 0:
            raise IllegalActionError(self._describe_fault(int(rows[fault]), int(chosen[fault]), rows[:fault]))
        rewards = np.empty((len(rows), 4), np.float32)
        ended = np.zeros(len(rows), np.bool_)
        final = np.zeros(len(rows), GAME)
        step_rows(self.games, self.compiled, rows, chosen, (self.objective, rewards, ended, final))
        final = final[ended]
        truncated = ended.copy()
        truncated[ended] = final["winners"] == 0
        return Step(rewards, ended, truncated, final)

    def _describe_fault(self, row: int, action: int, before: NDArray[np.int64]) -> str:
        if not 0 <= row < len(self) or row in before:
            return f"row {row} is not one of 0 to {len(self) - 1}, each at most once"
        mask = np.empty(1, np.uint64)
        legal_masks(self.games[row : row + 1], self.compiled, mask)
        return f"row {row}, seat {self.games['seat'][row]}: {describe_illegal(action, int(mask[0]))}"

    def play_random(self, decisions: int) -> int:
        """Make ``decisions`` random decisions in every row, fused in one kernel; returns how many games ended.

        The choices are those of the agent ``"random"`` with the seeds of `keys`.
        """
        return int(play_random(self.games, self.compiled, whole("decisions", decisions, 0)))


def _layout(observation: str) -> Layout:
    return LAYOUTS[check_observation(observation)]


@njit(cache=True)
def find_fault(games: Any, rules: Any, rows: Any, actions: Any) -> Any:
    """Index of the first row that is not there or named twice, or whose action is illegal; -1 if there is none."""
    seen = np.zeros(games.shape[0], np.bool_)
    for i in range(rows.shape[0]):
        row, action = rows[i], actions[i]
        if row < 0 or row >= games.shape[0] or seen[row]:
            return i
        if action < 0 or action >= NUM_ACTIONS or not legal(games[row], rules[0]) & bit(action):
            return i
        seen[row] = True
    return -1


@njit(cache=True)
def step_rows(games: Any, rules: Any, rows: Any, actions: Any, out: Any) -> None:
    """Apply legal actions, write ``out = (objective, rewards, ended, final)``, start anew what ended."""
    objective, rewards, ended, final = out
    r = rules[0]
    scratch = np.empty(4, np.float32)
    for i in range(rows.shape[0]):
        g = games[rows[i]]
        apply_and_pay(g, r, actions[i], objective, rewards[i], scratch)
        if g.phase == OVER:
            ended[i] = True
            final[i] = g
            next_game(g, r)
