"""Gymnasium: one seat that learns, three that are agents.

`SeatBatch` does the work for many games at once. `SeatEnv` is its row 0 as ``dnfh_env/Seat-v0``, `SeatVectorEnv` what
``gymnasium.make_vec`` returns, and `dnfh_env.sb3.SeatVecEnv` the same for Stable-Baselines3.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict, Unpack, get_args

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numba import njit
from numpy.typing import NDArray

from dnfh_env._bits import U0
from dnfh_env._random import SEAT, below, mix, stream
from dnfh_env.agent import Agent, are_legal, ask_each, legal_rows, make_agents, three_others
from dnfh_env.batch import Batch
from dnfh_env.cards import NUM_SEATS
from dnfh_env.engine import GAME, NEXT_GAME, NO_SEAT, NUM_ACTIONS, OVER, key_of, keys_of_deal, new_games
from dnfh_env.errors import ArgumentError, one_of
from dnfh_env.notation import check_counter, check_seat, set_options, whole_numbers
from dnfh_env.objective import Reward, check_episode, illegal_reward, reward_of, rules_of
from dnfh_env.observation import LAYOUTS, PLACES, Layout, Observation, check_observation, features
from dnfh_env.rules import Rules, checked_rules
from dnfh_env.view import VIEW, look, relative, views_of

Episode = Literal["game", "deal"]

FACTS: dict[str, type] = {
    "illegal": np.int64,
    "seat": np.int64,
    "deals": np.int64,
    "card_points": np.int64,
    "score": np.int64,
    "won": np.float64,
    "shot": np.int64,
}
"""What is said about an episode at its end, for the learner, and the type of each number.

``illegal``: 1 if an illegal action ended it. ``seat``: the learner's, 0 to 3. ``deals``: how many were finished.
``card_points``: of the tricks it took in the last deal. ``score``: its total. ``won``: its share of the win, 0 to 1.
``shot``: 1 if it shot the last finished deal, -1 if it was shot.
"""


NO_FACTS: dict[str, Any] = {name: dtype(0).item() for name, dtype in FACTS.items()}


class SeatOptions(TypedDict, total=False):
    """The keyword arguments of every environment for one seat."""

    rules: Rules | None
    """The rules; `Rules()` if not given."""
    opponents: str | Agent | Sequence[str | Agent]
    """One for all three, or one each for the places left, across and right of the learner, see `make_agent`."""
    seat: int | None
    """The learner's seat; drawn anew for every episode if not given."""
    episode: Episode
    """``"game"``, the default, or ``"deal"``: one deal from level scores."""
    max_deals: int | None
    """Cut a game off after so many deals, as in the rules, whose own number stands if this is not given."""
    reward: Reward | None
    """``"win"``, the default for games, ``"points"``, that for deals, or ``"equity"``; see `dnfh_env.objective`."""
    observation: Observation
    """``"compact"``, the default, or ``"full"``; see `dnfh_env.observation`."""


@dataclasses.dataclass(frozen=True)
class SeatStep:
    """What one step of a `SeatBatch` brought; the first three by row, the others by episode that ended."""

    rewards: NDArray[np.float32]
    """``[B]``: all that the learner earned up to its next decision."""
    terminated: NDArray[np.bool_]
    """``[B]``: the episode ended; the row's next one has begun."""
    truncated: NDArray[np.bool_]
    """``[B]``: ``max_deals`` cut it off without a winner."""
    rows: NDArray[np.int64]
    """``[K]``: where an episode ended, rising."""
    views: NDArray[Any]
    """``VIEW[K]``: what the learner saw in the end."""
    facts: dict[str, NDArray[Any]]
    """``[K]`` for each of `FACTS`."""


class SeatBatch:
    """``num_envs`` games, in each of which one seat, the learner's, waits for a decision from outside.

    Row ``i`` plays the games of row ``i`` of a `Batch`, whatever the number of rows. The other seats are asked in
    between, each agent once for all rows in which it is to move. An illegal action does not raise: it ends the
    episode, at the reward `illegal_reward`, which leaves less than any legal episode can return.
    """

    def __init__(self, num_envs: int, **options: Unpack[SeatOptions]) -> None:
        """Set up; `reset` starts. Raises `ArgumentError` for what does not fit, ``TypeError`` for unknown names."""
        unknown = sorted(set(options) - set(SeatOptions.__annotations__), key=str)
        if unknown:
            raise TypeError(f"unknown option {unknown[0]!r}, the options are {', '.join(SeatOptions.__annotations__)}")
        rules = checked_rules(options.get("rules"))
        self.episode: Episode = check_episode(options.get("episode", "game"), get_args(Episode))
        self.reward = reward_of(self.episode, options.get("reward"))
        self.observation = check_observation(options.get("observation", "compact"))
        self.layout = LAYOUTS[self.observation]
        seat = options.get("seat")
        self.seat = None if seat is None else check_seat("seat", seat)
        self.opponents = make_agents(three_others("opponents", options.get("opponents", "random")), rules)
        self._players, self._who = players_of(self.opponents)
        self.batch = Batch(num_envs, rules_of(rules, self.episode, options.get("max_deals")), 0, self.reward)
        self.illegal_reward = illegal_reward(self.batch.rules, self.reward)
        self.seats = np.zeros(num_envs, np.int64)
        """The learner's seat in each row, ``int64[B]``."""
        self._ready = False
        self.views = self.batch.views()
        """What the learner knows in each row, a `VIEW` array; a new one with each step."""

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.batch)

    # --- what the learner sees ----------------------------------------------------------------------------------

    def observe(self, views: NDArray[Any] | None = None) -> NDArray[np.float32]:
        """Features, ``float32[B, layout.bits]`` of 0 and 1, of the current views or of others."""
        return features(self.views if views is None else views, self.batch.rules.target, self.layout)

    def action_masks(self) -> NDArray[np.int8]:
        """Legal actions, ``int8[B, 64]``."""
        return legal_rows(self.views["legal"])

    # --- starting -----------------------------------------------------------------------------------------------

    def reset(
        self,
        seed: int | None = None,
        options: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
        advance: bool = True,
    ) -> None:
        """Start an episode in every row.

        Args:
            seed: begin with the first game of every row under this seed; ``None``: go on to each row's next game.
            options: a position for this one episode, see `dnfh_env.notation.set_options`; or one for each row.
            advance: without a seed, whether the games the rows are at now are left behind rather than begun again.

        Raises `DealError` or `NotationError` for a position that cannot be, before anything is changed.
        """
        old = self.batch.games
        if seed is None:
            games = new_games(self.batch.rules, old["seed"], old["game"] + (NEXT_GAME if advance else U0))
        else:
            games = new_games(self.batch.rules, check_counter("seed", seed), np.arange(len(self)))
        for row, position in enumerate(each_row(options, len(self))):
            if position:
                set_options(games[row : row + 1], self.batch.rules, position)
        self._ready = False
        self.batch.games[:] = games
        self._seat(np.arange(len(self)))
        self._play_on(Tally(len(self)))
        self._ready = True

    def _seat(self, rows: NDArray[np.int64]) -> None:
        """Give the learner its seat in games just begun; in a new array, since a step still needs the old one."""
        self.seats = self.seats.copy()
        self.seats[rows] = drawn_seats(self.batch.games[rows]) if self.seat is None else self.seat

    # --- stepping -----------------------------------------------------------------------------------------------

    def step(self, actions: Any) -> SeatStep:
        """Make the learner's decision in every row and play on to its next one.

        Args:
            actions: ``B`` whole numbers; one that is not legal in its row ends that episode.

        Raises `IllegalActionError` if they are not ``B`` whole numbers, ``ResetNeeded`` before the first `reset`, and
        `AgentError` if an opponent errs, after which a `reset` is needed too.
        """
        if not self._ready:
            raise ResetNeeded("step: no episode is under way, call reset first")
        chosen = whole_numbers("actions", actions, len(self))
        self._ready = False  # until all have decided: an opponent that errs leaves games half way
        seats, tally, rows = self.seats, Tally(len(self)), np.arange(len(self))
        legal = are_legal(self.views["legal"], chosen)
        self._apply(rows[legal], chosen[legal], tally)
        self._abandon(rows[~legal], tally)
        self._play_on(tally)
        self._ready = True
        return self._settle(seats, tally)

    def _apply(self, rows: NDArray[np.int64], actions: NDArray[np.int64], tally: Tally) -> None:
        """Make a decision, of whatever seat, in some rows."""
        step = self.batch.step_rows(rows, actions)
        tally.rewards[rows] += step.rewards[np.arange(len(rows)), self.seats[rows]]
        if step.ended.any():
            ended = rows[step.ended]
            tally.end(ended, step.final, step.truncated[step.ended])
            self._seat(ended)

    def _abandon(self, rows: NDArray[np.int64], tally: Tally) -> None:
        """End the episodes in which the action was illegal."""
        if len(rows):
            games = self.batch.games[rows]
            self.batch.games[rows] = new_games(self.batch.rules, games["seed"], games["game"] + NEXT_GAME)
            games["phase"] = OVER  # nobody is to move in what is last seen
            tally.end(rows, games, False)
            tally.illegal[rows] = True
            tally.rewards[rows] = self.illegal_reward
            self._seat(rows)

    def _play_on(self, tally: Tally) -> None:
        """Let the opponents decide until the learner is to move in every row.

        A game that begins on the way earns the learner nothing yet, since no trick ends before it has played a card.
        """
        rows, *questions = self._waiting()
        while len(rows):
            self._apply(rows, self._ask(*questions), tally)
            rows, *questions = self._waiting()
        self.views = views_of(self.batch.games, self.batch.compiled, self.seats)

    def _waiting(self) -> tuple[NDArray[Any], ...]:
        """Where an opponent is to move: rows, its place in the learner's view, its view, the seed of its decision."""
        size = len(self)
        out = np.empty(size, np.int64), np.empty(size, np.int64), np.zeros(size, VIEW), np.empty(size, np.uint64)
        count = find_waiting(self.batch.games, self.batch.compiled, self.seats, out)
        return tuple(array[:count] for array in out)

    def _ask(self, places: NDArray[Any], views: NDArray[Any], keys: NDArray[Any]) -> NDArray[np.int64]:
        """The opponents' decisions; each agent is asked once."""
        return ask_each(self._players, self._who[places], views, keys)

    def _settle(self, seats: NDArray[np.int64], tally: Tally) -> SeatStep:
        """Sum up a step; ``seats`` were the learner's in the episodes that ended with it."""
        rows = np.flatnonzero(tally.ended)
        final, seats = tally.final[rows], seats[rows]
        truncated = tally.truncated & (self.episode == "game")
        return SeatStep(
            tally.rewards,
            tally.ended & ~truncated,
            truncated,
            rows,
            views_of(final, self.batch.compiled, seats),
            facts_of(final, seats, tally.illegal[rows]),
        )


class Tally:
    """What a step has brought so far, by row."""

    def __init__(self, num_envs: int) -> None:
        """Nothing has happened."""
        self.rewards = np.zeros(num_envs, np.float32)
        self.ended = np.zeros(num_envs, np.bool_)
        self.truncated = np.zeros(num_envs, np.bool_)
        self.illegal = np.zeros(num_envs, np.bool_)
        self.final = np.empty(num_envs, GAME)

    def end(self, rows: NDArray[np.int64], final: NDArray[Any], truncated: NDArray[np.bool_] | bool) -> None:
        """Note that games ended in some rows."""
        self.ended[rows] = True
        self.final[rows] = final
        self.truncated[rows] = truncated


@njit(cache=True)
def find_waiting(games: Any, rules: Any, seats: Any, out: Any) -> Any:
    """Into ``out = (rows, places, views, keys)`` what is asked where another than ``seats`` is to move; how many."""
    rows, places, views, keys = out
    n = 0
    for i in range(games.shape[0]):
        g = games[i]
        if g.seat != seats[i]:
            rows[n] = i
            places[n] = relative(g.seat, seats[i])
            look(g, rules[0], np.int64(g.seat), views[n])
            keys[n] = key_of(g, keys_of_deal(g))
            n += 1
    return n


@njit(cache=True)
def draw_seats(games: Any, seats: Any) -> None:
    """A random seat for each record, a function of its seed and number, into ``seats``, ``int64[B]``."""
    for i in range(games.shape[0]):
        seats[i] = below(NUM_SEATS, mix(stream(games[i].seed, games[i].game, 0, SEAT)))


def drawn_seats(games: NDArray[Any]) -> NDArray[np.int64]:
    """The learner's seats in games, where they are drawn."""
    seats = np.empty(len(games), np.int64)
    draw_seats(games, seats)
    return seats


def facts_of(final: NDArray[Any], seats: NDArray[np.int64], illegal: NDArray[np.bool_]) -> dict[str, NDArray[Any]]:
    """`FACTS` about episodes that ended at these records."""
    mine = np.arange(len(final)), seats
    wins = final["winners"][:, None] >> np.arange(NUM_SEATS) & 1
    shot = np.where(final["shooter"] == seats, 1, np.where(final["shooter"] == NO_SEAT, 0, -1))
    facts = {
        "illegal": illegal,
        "seat": seats,
        "deals": final["deal"] + ~illegal,
        "card_points": final["points"][mine],
        "score": final["scores"][mine],
        "won": wins[mine] / np.maximum(wins.sum(axis=1), 1),
        "shot": shot,
    }
    return {name: facts[name].astype(dtype) for name, dtype in FACTS.items()}


def players_of(opponents: list[Agent]) -> tuple[list[tuple[str, Agent]], NDArray[np.int64]]:
    """Each distinct agent with a name for errors, and by place, ``int64[4]``, which of them plays there."""
    distinct = list({id(agent): agent for agent in opponents}.values())
    who = np.array([-1, *(next(i for i, other in enumerate(distinct) if other is agent) for agent in opponents)])
    places = [", ".join(PLACES[place] for place in np.flatnonzero(who == i)) for i in range(len(distinct))]
    names = [f"opponent {type(agent).__name__} ({where})" for agent, where in zip(distinct, places, strict=True)]
    return list(zip(names, distinct, strict=True)), who


def each_row(
    options: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None, count: int
) -> Sequence[Mapping[str, Any]]:
    """The options of ``reset`` row by row."""
    if options is None or isinstance(options, Mapping):
        return [options or {}] * count
    if len(options) != count:
        raise ArgumentError(f"options: expected one mapping or {count}, one for each row, got {len(options)}")
    return options


def spaces_of(layout: Layout) -> tuple[gymnasium.Space[NDArray[np.float32]], gymnasium.Space[np.int64]]:
    """The spaces of one seat: ``float32[layout.bits]`` of 0 and 1, and 64 actions."""
    features: Any = Box(0.0, 1.0, (layout.bits,), np.float32)
    return features, Discrete(NUM_ACTIONS)


class SeatEnv(gymnasium.Env[NDArray[np.float32], np.int64]):
    """``dnfh_env/Seat-v0``: one seat against three agents.

    Observations are ``float32[bits]`` of 0 and 1, what `dnfh_env.observation` says; actions 0 to 63, see
    `dnfh_env.engine`. A step returns at the seat's next decision, with all it has earned until then. An action that
    is not legal ends the episode: ``terminated``, ``info["illegal"]`` 1, and a reward below any legal result.

    ``info`` always holds ``action_mask``, ``int8[64]``, and the numbers `FACTS`: 0 before the end, but for the seat.

    ``reset(seed=…)`` begins with the seed's first game, and every further ``reset()`` takes its next one. The
    ``options`` of ``reset`` are a position for that episode, see `dnfh_env.notation.set_options`.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi", "human"], "render_fps": 1}

    def __init__(self, *, render_mode: str | None = None, **options: Unpack[SeatOptions]) -> None:
        """``render_mode`` is ``None``, ``"ansi"`` or ``"human"``; the other arguments are `SeatOptions`."""
        self.render_mode = check_render_mode(render_mode, self.metadata["render_modes"])
        self.batch = SeatBatch(1, **options)
        self.observation_space, self.action_space = spaces_of(self.batch.layout)
        self._view = self.batch.views
        self._state: Literal["new", "playing", "over"] = "new"

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Start an episode; see the class."""
        super().reset(seed=seed)
        if seed is None and self._state == "new":
            seed = int(self.np_random.integers(2**63))
        # after an episode's end the next game is waiting already
        self.batch.reset(seed, options, advance=self._state == "playing")
        self._state = "playing"
        self._view = self.batch.views
        return self._seen(self._no_facts())

    def _no_facts(self) -> dict[str, Any]:
        """`FACTS` before the end."""
        return NO_FACTS | {"seat": int(self.batch.seats[0])}

    def step(self, action: Any) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Make the seat's decision and play on to its next one; see the class."""
        if self._state != "playing":
            raise ResetNeeded("step: no episode is under way, call reset first")
        step = self.batch.step(np.asarray(action)[None])
        ended = len(step.rows) > 0
        self._view = step.views if ended else self.batch.views
        self._state = "over" if ended else "playing"
        facts = {name: values[0].item() for name, values in step.facts.items()} if ended else self._no_facts()
        observation, info = self._seen(facts)
        return observation, float(step.rewards[0]), bool(step.terminated[0]), bool(step.truncated[0]), info

    def _seen(self, facts: dict[str, Any]) -> tuple[NDArray[np.float32], dict[str, Any]]:
        if self.render_mode == "human":
            self.render()
        return self.batch.observe(self._view)[0], {"action_mask": self.action_masks(), **facts}

    def view(self) -> Any:
        """All that the seat knows, as a `VIEW` record in memory of its own."""
        return self._view.copy()[0]

    def action_masks(self) -> NDArray[np.int8]:
        """Legal actions, ``int8[64]``, a new array at each call; all 0 once the episode is over."""
        mask: NDArray[np.int8] = legal_rows(self._view["legal"])[0]
        return mask

    def render(self) -> str | None:
        """What the seat sees, as text: returned in the mode ``"ansi"``, printed in ``"human"``."""
        if self.render_mode is None:
            return None
        text = seen_as_text(self._view, self.batch)
        if self.render_mode == "ansi":
            return text
        print(text)
        return None


class SeatVectorEnv(VectorEnv[NDArray[np.float32], NDArray[np.int64], NDArray[Any]]):
    """Many games of ``dnfh_env/Seat-v0`` at once, as ``gymnasium.make_vec`` returns it.

    Row ``i`` plays the games of row ``i`` of a `Batch`. An episode that ends is followed by the row's next one in the
    same step; what was last seen and said is then in ``final_obs`` and ``final_info``, as Gymnasium has it.
    """

    metadata: dict[str, Any] = {
        "render_modes": ["ansi"],
        "render_fps": 1,
        "autoreset_mode": AutoresetMode.SAME_STEP,
    }

    def __init__(self, num_envs: int = 1, *, render_mode: str | None = None, **options: Unpack[SeatOptions]) -> None:
        """Arguments as for `SeatEnv`, whose mode ``"human"`` is left out."""
        self.render_mode = check_render_mode(render_mode, self.metadata["render_modes"])
        self.num_envs = num_envs
        self.batch = SeatBatch(num_envs, **options)
        self.single_observation_space, self.single_action_space = spaces_of(self.batch.layout)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._new = True

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Start an episode in every row; ``options`` hold for all of them."""
        super().reset(seed=seed)
        if seed is None and self._new:
            seed = int(self.np_random.integers(2**63))
        self.batch.reset(seed, options)
        self._new = False
        return self.batch.observe(), self._infos()

    def step(
        self, actions: NDArray[np.int64]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Make the seat's decision in every row and play on to its next one."""
        step = self.batch.step(actions)
        infos = self._infos()
        if len(step.rows):
            infos |= self._final(step)
        return self.batch.observe(), step.rewards, step.terminated, step.truncated, infos

    def _infos(self) -> dict[str, Any]:
        """The infos of episodes under way, in Gymnasium's form: a key, and under ``_key`` which rows have it."""
        everywhere = np.ones(self.num_envs, np.bool_)
        facts: dict[str, NDArray[Any]] = {name: np.zeros(self.num_envs, dtype) for name, dtype in FACTS.items()}
        facts["seat"] = self.batch.seats.copy()
        return with_masks({"action_mask": self.action_masks(), **facts}, everywhere)

    def _final(self, step: SeatStep) -> dict[str, Any]:
        """What was last seen and said in the episodes that ended."""
        ended = step.terminated | step.truncated
        seen = np.full(self.num_envs, None, object)
        for row, observation in zip(step.rows, self.batch.observe(step.views), strict=True):
            seen[row] = observation
        said: dict[str, NDArray[Any]] = {"action_mask": np.zeros((self.num_envs, NUM_ACTIONS), np.int8)}
        said["action_mask"][step.rows] = legal_rows(step.views["legal"])
        for name, values in step.facts.items():
            said[name] = np.zeros(self.num_envs, values.dtype)
            said[name][step.rows] = values
        return with_masks({"final_obs": seen, "final_info": with_masks(said, ended)}, ended)

    def action_masks(self) -> NDArray[np.int8]:
        """Legal actions of every row, ``int8[num_envs, 64]``."""
        return self.batch.action_masks()

    def render(self) -> tuple[str, ...] | None:
        """In the mode ``"ansi"`` what the seat sees in each row, as text."""
        if self.render_mode is None:
            return None
        return tuple(seen_as_text(self.batch.views[row : row + 1], self.batch) for row in range(self.num_envs))


def with_masks(infos: dict[str, Any], rows: NDArray[np.bool_]) -> dict[str, Any]:
    """``infos`` with ``_key`` beside each key: which rows have it."""
    return infos | {f"_{name}": rows.copy() for name in infos}


def seen_as_text(view: NDArray[Any], batch: SeatBatch) -> str:
    """What a seat sees; ``view`` is a `VIEW` array of length 1."""
    from dnfh_env.render.text import seat_view

    return seat_view(view[0], batch.batch.rules)


def check_render_mode(render_mode: str | None, modes: Sequence[str]) -> str | None:
    """A render mode or ``None``, or `ArgumentError` that lists the modes."""
    return None if render_mode is None else str(one_of("render_mode", render_mode, modes))
