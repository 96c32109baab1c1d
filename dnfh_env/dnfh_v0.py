"""PettingZoo: Dirty Nasty Filthy Hearts as an AEC environment. An episode is a game, a deal, or a table of many games.

| | |
|---|---|
| Agents | ``player_0`` to ``player_3``, clockwise; further ones wait at a table |
| Actions | ``Discrete(64)``: 0-51 play or pick a card, 52-61 the splits, 62 kitty, 63 hold |
| Observations | ``{"observation": float32[960], "action_mask": int8[64]}``, of 0 and 1; 1792 features if ``"full"`` |
| State | ``float32[2560]`` from the place of seat 0, nothing hidden |
| Rewards | ``"win"``: share of the win minus 1/4; ``"points"``: mean of the card points minus one's own, by trick; |
| | ``"equity"``: change of the chance of winning the game, by deal |
| Ends | terminated by target or shot, or with the deal; truncated by ``max_deals``; a table after ``games`` games |

A reward is paid to all seats at once and reaches each by ``last()`` at its next turn. The mask of a seat that is not to
move is all zeros. Numbers such as R15 refer to ``docs/rules.md``.

Version history: v0, the first.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any, Literal, TypedDict, get_args

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete
from gymnasium.utils import seeding
from numba import njit
from numpy.typing import NDArray
from pettingzoo import AECEnv
from pettingzoo.utils.wrappers import OrderEnforcingWrapper

from dnfh_env._bits import U1, bit
from dnfh_env.cards import NUM_SEATS
from dnfh_env.engine import GAME, NEXT_GAME, NO_SEAT, NUM_ACTIONS, OVER, copied_games, legal, new_games
from dnfh_env.errors import ArgumentError, RulesError, one_of, shown, whole
from dnfh_env.notation import check_counter, refusal, set_options
from dnfh_env.objective import (
    Reward,
    apply_and_pay,
    check_episode,
    compile_objective,
    copied_objective,
    illegal_reward,
    reward_of,
    rules_of,
)
from dnfh_env.observation import LAYOUTS, STATE, Observation, check_observation, encode, state_features
from dnfh_env.render.text import table
from dnfh_env.rules import Rules, checked_rules, compile_rules
from dnfh_env.table import follow_on, leavers_of
from dnfh_env.view import VIEW, look, views_of

Episode = Literal["game", "deal", "table"]
Illegal = Literal["raise", "terminate"]
RenderMode = Literal["human", "ansi"]

TABLE_GAMES = 100
"""Games of a table, unless said otherwise."""

_FINISHED, _PAID, _ILLEGAL = 4, 8, -1
"""What `advance` answers beside the seat to move, as bits; `_ILLEGAL` has all of them."""
_FLOAT, _BYTE = np.dtype(np.float32), np.dtype(np.int8)
"""Ready-made: from the types numpy would make them anew for each array."""


class SeatObservation(TypedDict):
    """What one agent sees."""

    observation: NDArray[np.float32]
    """Features of the layout, ``[bits]``, each 0 or 1."""
    action_mask: NDArray[np.int8]
    """``[64]``, 1 for each legal action; all zeros unless the agent is to move."""


Turn = tuple[SeatObservation | None, float, bool, bool, dict[str, Any]]
"""What ``last()`` returns."""


def env(*args: Any, **options: Any) -> OrderEnforced:
    """`raw_env` with the same arguments, in the wrapper that catches calls before ``reset``."""
    return OrderEnforced(raw_env(*args, **options))


class OrderEnforced(OrderEnforcingWrapper[str, SeatObservation, int]):
    """PettingZoo's wrapper, which hands the two calls of every turn straight on where it has nothing to object to.

    Otherwise each looks up several attributes of the environment, at twice the price of the step itself.
    """

    def last(self, observe: bool = True) -> Turn:
        """What the agent in turn sees, its reward since its last turn, whether it is terminated or truncated, info."""
        turn: Turn = self.env.last(observe) if self._has_reset else super().last(observe)
        return turn

    def step(self, action: int | None) -> None:
        """See `raw_env.step`; after the end it warns and does nothing."""
        if self._has_reset and self.env.agents:
            self._has_updated = True
            self.env.step(action)
        else:
            super().step(action)

    def __str__(self) -> str:
        """The name of the environment, as with the plain wrapper."""
        return str(self.env)


class raw_env(AECEnv[str, SeatObservation, int]):
    """The environment itself, see the module for its data sheet.

    ``agents`` holds the four at the table in the order of their seats, and ``possible_agents`` all players. Game ``n``
    under a seed is that of row 0 of `dnfh_env.batch.Batch`. Infos are empty.
    """

    metadata = {"name": "dnfh_v0", "render_modes": ["human", "ansi"], "is_parallelizable": False, "render_fps": 2}

    def __init__(
        self,
        rules: Rules | None = None,
        *,
        episode: Episode = "game",
        games: int | None = None,
        max_deals: int | None = None,
        reward: Reward | None = None,
        players: int = NUM_SEATS,
        illegal: Illegal = "raise",
        observation: Observation = "compact",
        render_mode: RenderMode | None = None,
    ) -> None:
        """Set up; `reset` deals.

        Args:
            rules: the rules, `Rules()` if not given.
            episode: a whole game, one deal, or a table: a series of games with a line of waiting players (R18).
            games: how many games a table plays, `TABLE_GAMES` if not given; for ``episode="table"`` alone.
            max_deals: cuts every game off after so many deals; the same as that field of the rules.
            reward: ``"win"``, ``"points"`` or ``"equity"``, see `dnfh_env.objective`. If not given, ``"points"`` for
                ``episode="deal"`` and else ``"win"``, which needs whole games.
            players: 4, or more at a table, where the others wait.
            illegal: what an illegal action does: raise `IllegalActionError` and change nothing, or end the episode at a
                reward for the culprit that leaves less than any legal game can bring (it ends a whole table too).
            observation: ``"compact"`` or ``"full"``, see `dnfh_env.observation`.
            render_mode: ``"human"`` prints the open table after each step, with ``"ansi"`` `render` returns it as text.

        Raises `ArgumentError` that names the argument at fault.
        """
        super().__init__()
        self.episode: Episode = check_episode(episode, get_args(Episode))
        self.rules = rules_of(_for_names_that_stay(checked_rules(rules), self.episode), self.episode, max_deals)
        self.games = _games_of(self.episode, games)
        self.reward = reward_of(self.episode, reward)
        self.illegal: Illegal = one_of("illegal", illegal, get_args(Illegal))
        self.layout = LAYOUTS[check_observation(observation)]
        self.render_mode = None if render_mode is None else one_of("render_mode", render_mode, get_args(RenderMode))
        self.possible_agents = [f"player_{number}" for number in range(_players_of(self.episode, players))]
        self.observation_spaces = {agent: self._observation_space() for agent in self.possible_agents}
        self.action_spaces = {agent: Discrete(NUM_ACTIONS) for agent in self.possible_agents}
        self.state_space = Box(0, 1, (STATE.bits,), np.float32)
        self._compiled = compile_rules(self.rules)
        self._objective = compile_objective(self.reward, self.rules)
        self._game = np.zeros(1, GAME)
        self._view = np.zeros(1, VIEW)  # room for `see`
        self._paid = np.zeros(NUM_SEATS)  # by the last decision
        self._next: tuple[int, int] | None = None  # seed and number of the game to come

    def _observation_space(self) -> Dict:
        bits = Box(0, 1, (self.layout.bits,), np.float32)
        return Dict({"observation": bits, "action_mask": Box(0, 1, (NUM_ACTIONS,), np.int8)})

    def observation_space(self, agent: str) -> gymnasium.Space[Any]:
        """The space of what ``agent`` observes: always the same object."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> gymnasium.Space[Any]:
        """The space of what ``agent`` may do: always the same object."""
        return self.action_spaces[agent]

    def __setstate__(self, state: dict[str, Any]) -> None:
        """With the dtypes that the kernels recognise at once; those that a pickle brings take them microseconds."""
        self.__dict__.update(state)
        self._compiled, self._objective = compile_rules(self.rules), copied_objective(self._objective)
        self._game, self._view, self._paid = copied_games(self._game), np.zeros(1, VIEW), self._paid.copy()

    # --- starting -----------------------------------------------------------------------------------------------

    def reset(self, seed: int | None = None, options: Mapping[str, Any] | None = None) -> None:
        """Start an episode.

        Args:
            seed: start with the first game of this seed; ``None``: the next game, of a random seed if there was none.
            options: a set position for the episode's first game, see `dnfh_env.notation.set_options`. Options that name
                nothing of a position are left to others.

        Raises `DealError` or `NotationError` for a position that cannot be, and leaves the environment as it was.
        """
        key = self._next or (_random_seed(), 0) if seed is None else (check_counter("seed", seed), 0)
        game = self._dealt(key)
        if options:
            set_options(game, self.rules, options)
        self._seated, self._waiting = self.possible_agents[:NUM_SEATS], self.possible_agents[NUM_SEATS:]
        self._games_left = self.games
        self.agents: list[str] = []
        self.rewards: dict[str, float] = {}
        self._was_paid = 0  # whether `rewards` may be other than 0
        self._cumulative_rewards: dict[str, float] = {}
        self.terminations: dict[str, bool] = {}
        self.truncations: dict[str, bool] = {}
        self.infos: dict[str, dict[str, Any]] = {}
        for seat, agent in enumerate(self._seated):
            self._sit_down(seat, agent)
        self._begin(game)
        self._show()

    def _dealt(self, key: tuple[int, int]) -> NDArray[Any]:
        """The game with this seed and number at its start, a `GAME` array of length 1."""
        seed, number = key
        return new_games(self.rules, np.uint64(seed), np.array([number], np.uint64))

    def _begin(self, game: NDArray[Any]) -> None:
        self._game = game
        self._next = int(game["seed"][0]), int(game["game"][0] + NEXT_GAME)
        self.agent_selection = self.agents[game["seat"][0]]

    def _sit_down(self, seat: int, agent: str) -> None:
        self._seated[seat] = agent
        self.agents.insert(seat, agent)
        self.rewards[agent] = self._cumulative_rewards[agent] = 0.0
        self.terminations[agent] = self.truncations[agent] = False
        self.infos[agent] = {}

    # --- playing ------------------------------------------------------------------------------------------------

    def step(self, action: int | None) -> None:
        """Make the decision of `agent_selection`: an action 0 to 63, or ``None`` for an agent whose time has ended.

        Raises `IllegalActionError` that names the seat, the action and the legal set, and changes nothing.
        """
        agent = self.agent_selection
        if self._is_dead(agent):
            self._step_of_the_dead(action)
        else:
            follows = advance(self._game, self._compiled, _whole(action), self._objective, self._paid)
            if follows == _ILLEGAL:
                self._punish(action)
            self._cumulative_rewards[agent] = 0.0
            if follows & _PAID or self._was_paid:
                self._pay()
            self._was_paid = follows & _PAID
            if follows & _FINISHED:
                self._end_game(cut_short=follows == _ILLEGAL)
            else:
                self.agent_selection = self.agents[follows & 3]
        self._show()

    def _pay(self) -> None:
        self.rewards = dict(zip(self.agents, self._paid.tolist(), strict=True))
        self._accumulate_rewards()

    def _punish(self, action: Any) -> None:
        """Raise for an illegal action, or end the game at the cost of the seat to move."""
        if self.illegal == "raise":
            raise refusal(self._game, self._compiled, action)
        self._paid[:] = 0
        self._paid[self._game["seat"][0]] = illegal_reward(self.rules, self.reward)
        self._game["phase"] = OVER

    def _end_game(self, cut_short: bool) -> None:
        """End the episode, send the leaver away, or go on to the next game."""
        self._games_left -= 1
        leaver = self._leaver()
        if leaver is not None and not self._waiting:  # R18
            cut_short |= self.rules.empty_line == "end"
            leaver = None
        if cut_short or not self._games_left:
            truncated = self.episode == "game" and not self._game["winners"][0] and not cut_short
            ending = self.truncations if truncated else self.terminations
            ending.update(dict.fromkeys(self.agents, True))
            self.agent_selection = self.agents[0]
        elif leaver is None:
            self._begin_next_game()
        else:
            self.terminations[leaver] = True
            self.agent_selection = leaver

    def _leaver(self) -> str | None:
        """Who has to leave after a game that a shot has won: the player at the shooter's left (R15)."""
        if self.episode != "table":
            return None
        seat = leavers_of(self._game, self.rules)[0]
        return None if seat == NO_SEAT else self._seated[seat]

    def _step_of_the_dead(self, action: int | None) -> None:
        """Remove an agent whose time has ended; into the place of a leaver steps the first of the line (R18)."""
        agent = self.agent_selection
        self._was_dead_step(action)
        if self.agents and not self._is_dead(self.agents[0]):
            self._sit_down(self._seated.index(agent), self._waiting.pop(0))
            self._begin_next_game()

    def _begin_next_game(self) -> None:
        """The table's next game; its dealer is drawn, or follows the last one (R18)."""
        assert self._next is not None
        game = self._dealt(self._next)
        follow_on(game, self.rules, self._game["dealer"].astype(np.int64))
        self._begin(game)

    def _is_dead(self, agent: str) -> bool:
        return self.terminations[agent] or self.truncations[agent]

    # --- looking ------------------------------------------------------------------------------------------------

    def observe(self, agent: str) -> SeatObservation:
        """What an agent sees, at any time and in fresh arrays; all zeros for one who waits or has left the table."""
        try:
            seat = self._seated.index(agent)
        except ValueError:
            return self._nothing(agent)
        observation, mask = np.empty(self.layout.bits, _FLOAT), np.empty(NUM_ACTIONS, _BYTE)
        see(self._game, self._compiled, seat, self._view, observation, mask)
        return {"observation": observation, "action_mask": mask}

    def view(self, agent: str) -> Any:
        """All that an agent at the table knows, as a `VIEW` record in memory of its own.

        Raises `ArgumentError` for one who is not at the table.
        """
        if agent not in self._seated:
            raise ArgumentError(f"view: {shown(agent)} is not at the table; there are {', '.join(self._seated)}")
        return views_of(self._game, self._compiled, np.array([self._seated.index(agent)]))[0]

    def _nothing(self, agent: str) -> SeatObservation:
        if agent not in self.possible_agents:
            raise ArgumentError(f"agent: {shown(agent)} is not one of {', '.join(self.possible_agents)}")
        mask = np.zeros(NUM_ACTIONS, np.int8)
        return {"observation": np.zeros(self.layout.bits, np.float32), "action_mask": mask}

    def state(self) -> NDArray[np.float32]:
        """Everything, hidden cards too, from the place of seat 0, ``float32[2560]``: for centralised critics."""
        state: NDArray[np.float32] = state_features(self._game, self._compiled, np.zeros(1, np.int64))[0]
        return state

    def render(self) -> str | None:
        """The table with all hands open: returned as text in mode ``"ansi"``, printed in mode ``"human"``."""
        if self.render_mode is None:
            gymnasium.logger.warn("render: no render_mode was given when the environment was made")
            return None
        text = table(self._game, self.rules, self._seated)
        if self._waiting:
            text += f"\n\nwaiting  {' '.join(self._waiting)}"
        if self.render_mode == "ansi":
            return text
        print(text, end="\n\n")
        return None

    def _show(self) -> None:
        if self.render_mode == "human":
            self.render()

    def close(self) -> None:
        """Nothing is held open."""


# --- kernels ----------------------------------------------------------------------------------------------------


@njit(cache=True)
def advance(games: Any, rules: Any, action: Any, objective: Any, rewards: Any) -> Any:
    """Make a decision of the first game, write what it pays the four seats, ``float64[4]``, and return who is to move.

    Answers `_FINISHED` if nobody is, with `_PAID` on top of either if `rewards` have news; and `_ILLEGAL`, with nothing
    changed, for an action that is not legal.
    """
    g = games[0]
    r = rules[0]
    if action < 0 or not legal(g, r) & bit(action):
        return _ILLEGAL
    paid = apply_and_pay(g, r, action, objective[0])
    for s in range(NUM_SEATS):
        rewards[s] = paid[s]
    if g.phase == OVER:
        return _FINISHED | _PAID  # the last rewards are a dict of their own, since agents get removed from it
    return np.int64(g.seat) | (0 if paid == (0.0, 0.0, 0.0, 0.0) else _PAID)


@njit(cache=True)
def see(games: Any, rules: Any, seat: Any, views: Any, observation: Any, mask: Any) -> None:
    """Write what ``seat`` of the first game sees: ``float32[bits]`` of a layout and ``int8[64]``; ``views`` is room."""
    r = rules[0]
    v = views[0]
    look(games[0], r, seat, v)
    words = np.empty(observation.shape[0] >> 6, np.uint64)
    encode(v, r.target, words)
    for k in range(words.shape[0]):
        write_bits(words[k], observation, 64 * k)
    write_bits(v.legal, mask, 0)


@njit(inline="always")
def write_bits(word: Any, out: Any, start: Any) -> None:
    """The 64 bits of a word as 0 and 1 into ``out`` from ``start`` on."""
    for i in range(64):
        out[start + i] = (word >> np.uint64(i)) & U1


# --- arguments --------------------------------------------------------------------------------------------------


def _whole(action: Any) -> int:
    """An action of any integer type as an int, or -1 for what is no action."""
    try:
        number = operator.index(action)
    except TypeError:
        return _ILLEGAL
    return number if 0 <= number < NUM_ACTIONS and not isinstance(action, bool) else _ILLEGAL


def _random_seed() -> int:
    return int(seeding.np_random()[0].integers(2**64, dtype=np.uint64))


def _for_names_that_stay(rules: Rules, episode: Episode) -> Rules:
    if episode == "table" and rules.leaver == "rejoins":
        raise RulesError("leaver: 'rejoins' is not for this environment, where the name of an agent never comes back")
    return rules


def _games_of(episode: Episode, games: int | None) -> int:
    if episode == "table":
        return TABLE_GAMES if games is None else whole("games", games, 1)
    if games is not None:
        raise ArgumentError(f"games: {shown(games)} is for episode='table' alone, not for {episode!r}")
    return 1


def _players_of(episode: Episode, players: int) -> int:
    if whole("players", players, NUM_SEATS) > NUM_SEATS and episode != "table":
        raise ArgumentError(f"players: {shown(players)} are for episode='table' alone, {episode!r} has {NUM_SEATS}")
    return int(players)
