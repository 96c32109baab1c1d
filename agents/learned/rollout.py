"""Self-play: every decision of every learning seat becomes a sample. Needs neither torch nor SB3.

A *transition* opens with a seat's decision and closes at that seat's next one, or with its game, however many tricks
end in between; what the seat earns meanwhile is its reward. So discount and GAE count a seat's own decisions, and the
value of a view is only ever asked for where its seat is to move. What is still open at the end of a rollout stays open
and closes in a later one.

All chance is counted from seed, game and deal, see `dnfh_env.batch`: who sits where, the cards, and what is drawn from
a policy. A collector is therefore no more than its games and its open transitions, and goes on from them bit by bit.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from agents.learned.policy import draw
from agents.learned.settings import PAST, SELF, Settings
from dnfh_env._bits import U0, plain, popcount
from dnfh_env._random import GOLDEN, LINEUP, below, mix, stream, unit
from dnfh_env.agent import Agent, are_legal, ask_each, make_agents
from dnfh_env.batch import Batch, Mode
from dnfh_env.cards import DECK, NUM_CARDS, NUM_SEATS
from dnfh_env.engine import CALL, GAME, NO_CALL, NO_CARD, NUM_ACTIONS, PICK, PICKS, PLAY, legal
from dnfh_env.errors import ArgumentError
from dnfh_env.objective import SHOT_VALUE, rules_of
from dnfh_env.observation import LAYOUTS, STATE, pack_state
from dnfh_env.rules import FIRST_CALL, KITTY, Rules
from dnfh_env.seat_env import drawn_seats

REWARD_SCALE = {"points": 1 / SHOT_VALUE, "win": 4.0, "equity": 4.0}
"""Factors that bring what an episode pays to the size of 1, which suits the value network."""

OPEN, END = -2, -1
"""Instead of the index of the transition that follows: not known yet; none, since the game ended."""

LEARNER = 0
"""The policy that learns, among the players."""

Decide = Callable[[NDArray[np.uint64]], tuple[NDArray[np.float32], NDArray[np.float32]]]
"""Packed observations ``uint64[B, words]`` to logits ``float32[B, 64]`` and values ``float32[B]``."""


@dataclasses.dataclass
class Samples:
    """Transitions, an entry of each array for one."""

    words: NDArray[np.uint64]
    """``[N, words]``: what was seen, packed; `STATE` if the critic sees it, and then the view comes first."""
    legal: NDArray[np.uint64]
    """``[N]``: legal actions as masks."""
    actions: NDArray[np.int64]
    """``[N]``: what was done."""
    log_probs: NDArray[np.float32]
    """``[N]``: its logarithmic probability then."""
    values: NDArray[np.float32]
    """``[N]``: what the critic said."""
    rewards: NDArray[np.float32]
    """``[N]``: what the seat earned up to its next decision, times `REWARD_SCALE`."""
    following: NDArray[np.int64]
    """``[N]``: index of the seat's next transition, `OPEN` or `END`."""

    def __len__(self) -> int:
        """How many."""
        return len(self.actions)

    def columns(self) -> dict[str, NDArray[Any]]:
        """The arrays by name."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    def take(self, rows: NDArray[np.int64]) -> Samples:
        """Copies of some of them; ``following`` still counts in the old numbers."""
        return Samples(**{name: array[rows] for name, array in self.columns().items()})

    def put(self, rows: Any, columns: Mapping[str, Any]) -> None:
        """Overwrite some of them."""
        for name, array in self.columns().items():
            array[rows] = columns[name]

    @classmethod
    def empty(cls, count: int, words: int) -> Samples:
        """Room for ``count``."""
        return cls(
            words=np.empty((count, words), np.uint64),
            legal=np.empty(count, np.uint64),
            actions=np.empty(count, np.int64),
            log_probs=np.empty(count, np.float32),
            values=np.empty(count, np.float32),
            rewards=np.empty(count, np.float32),
            following=np.empty(count, np.int64),
        )


class Collector:
    """Tables of the learner and its opponents, and the transitions that are open at them."""

    def __init__(self, settings: Settings, rules: Rules, seed: int, decide: Decide, past: list[Agent]) -> None:
        """Seat everyone.

        Args:
            settings: checked.
            rules: of whole games, which ``settings.episode`` may cut down to deals.
            seed: what cards, line-ups and draws are counted from.
            decide: the policy that learns.
            past: its snapshots; they may be replaced at any time, games under way then go on with the new ones.
        """
        self.settings = settings
        self.decide = decide
        self.layout = LAYOUTS[settings.observation]
        played = rules_of(rules, settings.episode, None)
        obs: Mode | None = "packed" if settings.critic == "view" else None
        self.batch = Batch(settings.tables, played, seed, settings.reward, obs=obs, observation=settings.observation)
        self._seen = self.batch.look()
        self.past = past
        if not past and any(PAST in names for names in settings.lineups()):
            raise ArgumentError("past: there has to be a snapshot where opponents name 'past'")
        self.bots = list(zip(settings.bots(), make_agents(settings.bots(), rules), strict=True))
        self._lineups, self._limits = _numbered(settings), np.cumsum(settings.chances())
        self.occupants = np.empty((settings.tables, NUM_SEATS), np.int64)
        """Who sits where, ``[B, 4]``: `LEARNER`, then snapshots, then bots."""
        words = STATE.words if settings.critic == "state" else self.layout.words
        self._samples = Samples.empty(settings.rollout + 5 * settings.tables, words)
        self._count = 0  # transitions noted, open ones included
        self._open = np.full(
            (settings.tables, NUM_SEATS), -1, np.int64
        )  # index of each seat's open transition, if there is one
        self._earned = np.zeros((settings.tables, NUM_SEATS), np.float32)  # since it opened
        self.begin(np.arange(settings.tables))

    def begin(self, rows: NDArray[np.int64]) -> None:
        """Draw who plays the games that have begun in these rows."""
        games = self.batch.records(rows)
        occupants = np.empty((len(rows), NUM_SEATS), np.int64)
        draw_lineups(games, drawn_seats(games), self._lineups, self._limits, len(self.past), occupants)
        self.occupants[rows] = occupants

    def collect(self) -> tuple[Samples, NDArray[np.float32]]:
        """Play until enough transitions have closed; they, and their advantages ``float32[N]``."""
        while self._count - np.count_nonzero(self._open >= 0) < self.settings.rollout:
            self._play_round()
        every = self._samples.take(np.arange(self._count))
        advantages = np.empty(len(every), np.float32)
        discount, trace = float(self.settings.gamma), float(self.settings.gae_lambda)
        gae(every.values, every.rewards, every.following, discount, trace, advantages)
        closed = np.flatnonzero(every.following != OPEN)
        self._carry_over(np.sort(self._open[self._open >= 0]))
        return every.take(closed), advantages[closed]

    # --- one decision at every table ----------------------------------------------------------------------------

    def _play_round(self) -> None:
        batch = self.batch
        movers = self.occupants[np.arange(len(batch)), self._seen.seats]
        keys = batch.keys()
        actions = np.empty(len(batch), np.int64)
        mine, others = np.flatnonzero(movers == LEARNER), np.flatnonzero(movers != LEARNER)
        if len(mine):
            actions[mine] = self._learn_from(mine, keys[mine])
        if len(others):
            players = [*(("snapshot", agent) for agent in self.past), *self.bots]
            actions[others] = ask_each(players, movers[others] - 1, batch.views(others), keys[others])
        step = batch.step(actions)
        self._earned += step.rewards
        ended = np.flatnonzero(step.ended)
        if len(ended):
            where, at = np.nonzero(self._open[ended] >= 0)
            self._close(ended[where], at, END)
            self.begin(ended)

    def _learn_from(self, rows: NDArray[np.int64], keys: NDArray[np.uint64]) -> NDArray[np.int64]:
        """The learner's decisions, each of which closes the seat's transition and opens its next one."""
        seats, legal_sets = self._seen.seats[rows], self._seen.legal[rows]
        words = self._packed(rows, seats)
        logits, values = self.decide(words)
        actions, log_probs = draw(logits, legal_sets, keys)
        new = np.arange(self._count, self._count + len(rows))
        had = self._open[rows, seats] >= 0
        self._close(rows[had], seats[had], new[had])
        self._samples.put(
            new,
            {
                "words": words,
                "legal": legal_sets,
                "actions": actions,
                "log_probs": log_probs,
                "values": values,
                "rewards": 0,
                "following": OPEN,
            },
        )
        self._count += len(rows)
        self._open[rows, seats] = new
        self._earned[rows, seats] = 0
        return actions

    def _packed(self, rows: NDArray[np.int64], seats: NDArray[np.int64]) -> NDArray[np.uint64]:
        if self.settings.critic == "state":
            return pack_state(self.batch.records(rows), self.batch.compiled, seats)
        assert self._seen.obs is not None
        return self._seen.obs.take(rows, axis=0)

    def _close(self, rows: NDArray[np.int64], seats: NDArray[np.int64], following: Any) -> None:
        """Pay the open transitions of these seats and say what follows them."""
        index = self._open[rows, seats]
        self._samples.rewards[index] = self._earned[rows, seats] * np.float32(REWARD_SCALE[self.settings.reward])
        self._samples.following[index] = following
        self._open[rows, seats] = -1

    # --- what stays open ----------------------------------------------------------------------------------------

    def _carry_over(self, still_open: NDArray[np.int64]) -> None:
        """Move the open transitions to the front."""
        self._count = len(still_open)
        self._samples.put(slice(self._count), self._samples.take(still_open).columns())
        held = self._open >= 0
        self._open[held] = np.searchsorted(still_open, self._open[held])

    def state(self) -> dict[str, NDArray[Any]]:
        """What `restore` goes on from, between two rollouts: games, open transitions and whose they are."""
        transitions = self._samples.take(np.arange(self._count)).columns()
        games = self.batch.games.view(np.uint8).reshape(len(self.batch), -1).copy()
        return {"games": games, "open": self._open.copy(), "earned": self._earned.copy(), **transitions}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Go on from a `state`. Raises ``KeyError`` or ``ValueError`` if it is none, or not of these settings."""
        self._check(state)
        self.batch.games[:] = state["games"].view(GAME).reshape(-1)
        self.batch.look()
        self._open[:], self._earned[:] = state["open"], state["earned"]
        self._samples.put(slice(len(state["actions"])), state)
        self.begin(np.arange(len(self.batch)))
        self._open[self.occupants != LEARNER] = -1  # if the run goes on with other opponents
        self._carry_over(np.sort(self._open[self._open >= 0]))

    def _check(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Nothing of a state is believed that kernels would take for an index."""
        games, opened = state["games"], state["open"]
        if games.shape != (len(self.batch), GAME.itemsize) or games.dtype != np.uint8:
            raise ValueError(f"it has {len(games) if games.ndim else 0} tables, expected {len(self.batch)}")
        if not are_sound(plain(games.view(GAME).reshape(-1)), self.batch.compiled):
            raise ValueError("one of its games is none of these rules")
        expected = {"open": (opened.shape, np.dtype(np.int64)), "earned": (self._open.shape, np.dtype(np.float32))}
        columns = self._samples.take(np.arange(len(state["actions"]))).columns()
        expected |= {name: (column.shape, column.dtype) for name, column in columns.items()}
        for name, (shape, dtype) in expected.items():
            if (state[name].shape, state[name].dtype) != (shape, dtype):
                raise ValueError(
                    f"{name} is {state[name].dtype}{list(state[name].shape)}, expected {dtype}{list(shape)}"
                )
        known = np.array_equal(np.sort(opened[opened >= 0]), np.arange(len(state["actions"])))
        if not known or opened.shape != self._open.shape or (state["following"] != OPEN).any():
            raise ValueError("its open decisions are not those of its tables")
        if not are_legal(state["legal"], state["actions"]).all():
            raise ValueError("one of its open decisions is illegal")


def _numbered(settings: Settings) -> NDArray[np.int64]:
    """The line-ups, ``[entry, place - 1]``: `LEARNER`, 1 for a snapshot, or 2 and more for one of the bots."""
    numbers = {SELF: LEARNER, PAST: 1, **{name: 2 + i for i, name in enumerate(settings.bots())}}
    return np.array([[numbers[name] for name in names] for names in settings.lineups()], np.int64)


@njit(cache=True)
def draw_lineups(games: Any, learners: Any, lineups: Any, limits: Any, snapshots: Any, occupants: Any) -> None:
    """Who sits at each seat, into ``int64[B, 4]``: a function of the game's seed and number.

    ``learners``, ``int64[B]``, are the seats that are sure to be the learner's, the others are filled by one of
    ``lineups`` (see `_numbered`), entry ``e`` with probability ``limits[e] - limits[e - 1]``, and by one snapshot.
    """
    for i in range(games.shape[0]):
        state = stream(games[i].seed, games[i].game, 0, LINEUP)
        chance = unit(mix(state + GOLDEN))
        snapshot = below(snapshots, mix(state + GOLDEN + GOLDEN))
        entry = np.int64(0)
        while chance >= limits[entry] and entry < limits.shape[0] - 1:
            entry += 1
        occupants[i, learners[i]] = LEARNER
        for place in range(1, 4):
            who = lineups[entry, place - 1]
            if who == 1:
                who = 1 + snapshot
            elif who > 1:
                who += snapshots - 1
            occupants[i, (learners[i] + place) & 3] = who


@njit(cache=True)
def are_sound(games: Any, rules: Any) -> Any:
    """Whether kernels can go on with these records: counts and seats in range, each card in one place, a legal act."""
    sound = True
    for i in range(games.shape[0]):
        g = games[i]
        sound &= g.seat < 4 and g.dealer < 4 and g.best_seat < 4 and g.num_picks <= PICKS and g.num_plays < NUM_CARDS
        sound &= g.phase == CALL or (g.phase == PICK and FIRST_CALL <= g.call <= KITTY) or g.phase == PLAY
        sound &= g.call == NO_CALL or FIRST_CALL <= g.call < NUM_ACTIONS
        sound &= g.num_plays & 3 == 0 or g.best_card < NUM_CARDS
        if not sound:
            return False
        for k in range(NUM_CARDS):
            sound &= g.plays[k] < NUM_CARDS if k < g.num_plays else g.plays[k] == NO_CARD
        for t in range(13):
            sound &= g.leaders[t] < 4 if 4 * t < g.num_plays else g.leaders[t] == NO_CARD
        count = 0
        cards = U0
        for s in range(4):
            picked = g.given[s, 0] | g.given[s, 1] | g.given[s, 2] if g.num_picks < PICKS else U0
            count += popcount(g.hand[s]) + popcount(g.played[s]) + popcount(picked)
            cards |= g.hand[s] | g.played[s] | picked
        sound &= count == NUM_CARDS and cards == DECK
        if not sound or legal(g, rules[0]) == U0:
            return False
    return True


@njit(cache=True)
def gae(values: Any, rewards: Any, following: Any, gamma: Any, gae_lambda: Any, advantages: Any) -> None:
    """Generalised advantage estimates (Schulman et al. 2016) along ``following``, into ``float32[N]``.

    A transition stands before the one that follows it. Where that is still open the estimate ends with its value.
    """
    for i in range(values.shape[0] - 1, -1, -1):
        j = following[i]
        target = np.float64(rewards[i])
        if j >= 0:
            target += gamma * (values[j] + gae_lambda * advantages[j])
        advantages[i] = 0.0 if j == OPEN else target - values[i]
