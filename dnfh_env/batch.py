"""`Batch`: many games stepped together."""

from __future__ import annotations

import copy
import dataclasses
import threading
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dnfh_env._bits import bit, spread, spread_each, zeros_in_lines
from dnfh_env._crew import claim, regions, together
from dnfh_env.agent import Agent, FusedAgent, ask, is_fused, legal_rows, make_agent
from dnfh_env.engine import (
    GAME,
    NUM_ACTIONS,
    OVER,
    copied_games,
    keys_of,
    legal,
    legal_masks,
    new_games,
    next_game,
)
from dnfh_env.errors import IllegalActionError, one_of, shown, whole
from dnfh_env.notation import check_counter, describe_illegal, whole_numbers
from dnfh_env.objective import apply_and_pay, check_reward, compile_objective, copied_objective
from dnfh_env.observation import (
    COMPACT,
    COMPACT_WORDS,
    LAYOUTS,
    Layout,
    check_observation,
    compact_words,
    encode_full,
    features,
    pack,
    state_features,
)
from dnfh_env.rules import Rules, checked_rules, compile_rules
from dnfh_env.view import VIEW, look, look_at_present, views_of

Mode = Literal["packed", "bytes"]

_PARTS_A_THREAD = 4
"""Into how many `Batch.play` cuts the rows, for whoever is free."""

_BLOCK = 512
"""Rows that a kernel goes through at once: 180 KiB of records, which the second cache holds, and so many that handing
on all the arrays, half a microsecond a time, costs little."""

_WORTH_A_THREAD = 512
"""Decisions that each thread is to have at least: as many as are made while a helper wakes up, or more."""

_BEYOND_CACHES = 1 << 21
"""Words of features, 16 MiB, beyond which those of a batch go straight to memory."""

_DECISIONS_A_CALL = 1 << 22
"""What `Batch.play` gives a kernel at once: a second or so, after which Ctrl-C is heard."""


class Decisions(NamedTuple):
    """What a step is to do, as the kernels take it."""

    rows: NDArray[np.int64]
    actions: NDArray[np.int64]
    """For each of the rows, or none at all: then nothing is done but to look."""
    claims: NDArray[np.int64]
    """What of it is still to be done, see `dnfh_env._crew.regions`."""
    place: int
    """The region that this thread begins with."""


class Buffers(NamedTuple):
    """What a step writes, as the kernels take it, with an entry or row of each array for every decision.

    What is not asked for has rows of length 0.
    """

    rewards: NDArray[np.float32]
    ended: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    scores: NDArray[np.int32]
    final: NDArray[Any]
    """The `GAME` where one ended, elsewhere whatever was there."""
    seats: NDArray[np.int64]
    legal: NDArray[np.uint64]
    known: NDArray[np.uint64]
    """``legal`` again, where nobody else writes."""
    words: NDArray[np.uint64]
    """Packed observations, one word for 64 features."""
    features: NDArray[np.uint64]
    """The same as bytes, eight of them in a word."""
    masks: NDArray[np.uint64]
    """``legal`` as bytes, likewise."""

    @classmethod
    def empty(cls, count: int, obs: Mode | None = None, layout: Layout = COMPACT) -> Buffers:
        """Room for ``count`` decisions."""
        packed, spread_out = layout.words * (obs == "packed"), 8 * layout.words * (obs == "bytes")
        return cls(
            rewards=np.zeros((count, 4), np.float32),
            ended=np.zeros(count, np.bool_),
            truncated=np.zeros(count, np.bool_),
            scores=np.zeros((count, 4), np.int32),
            final=np.zeros(count, GAME),
            seats=np.zeros(count, np.int64),
            legal=np.zeros(count, np.uint64),
            known=np.zeros(count, np.uint64),
            words=zeros_in_lines(count, packed),
            features=zeros_in_lines(count, spread_out),
            masks=zeros_in_lines(count, 8 * (obs == "bytes")),
        )


@dataclasses.dataclass(frozen=True, eq=False)
class Step:
    """What one step of a batch brought, and what the seats to move see now; arrays by row.

    A batch has one of these, and its next step overwrites the arrays: copy what you keep.
    """

    rewards: NDArray[np.float32]
    """``[B, 4]``: what the decision paid, by seat."""
    ended: NDArray[np.bool_]
    """``[B]``: whether the row's game ended with this decision; its next game has begun already."""
    truncated: NDArray[np.bool_]
    """``[B]``: whether ``max_deals`` cut it off without a winner."""
    scores: NDArray[np.int32]
    """``[B, 4]``: totals in the game that the decision was made in, the final ones where it ended."""
    seats: NDArray[np.int64]
    """``[B]``: the seat to move now."""
    legal: NDArray[np.uint64]
    """``[B]``: its legal actions as a mask."""
    masks: NDArray[np.int8] | None
    """``[B, 64]``: the same as 0 and 1, in mode ``"bytes"``."""
    obs: NDArray[Any] | None
    """What it sees: ``uint64[B, layout.words]`` in mode ``"packed"``, ``uint8[B, layout.bits]`` of 0 and 1 in mode
    ``"bytes"``."""
    _final: NDArray[Any]

    @property
    def final(self) -> NDArray[Any]:
        """The `GAME` records of the ended games, in rising order of row; a copy."""
        return self._final.take(np.flatnonzero(self.ended))

    @classmethod
    def over(cls, buffers: Buffers, obs: Mode | None) -> Step:
        """The arrays of ``buffers`` as users want them."""
        words = {"packed": buffers.words, "bytes": buffers.features.view(np.uint8), None: None}
        return cls(
            buffers.rewards,
            buffers.ended,
            buffers.truncated,
            buffers.scores,
            buffers.seats,
            buffers.legal,
            buffers.masks.view(np.int8) if obs == "bytes" else None,
            words[obs],
            buffers.final,
        )


class Batch:
    """``num_games`` games under the same rules, advanced together.

    >>> batch = Batch(1024, seed=1, obs="bytes")
    >>> now = batch.look()
    >>> for _ in range(100):
    ...     now = batch.step(now.masks.argmax(axis=1))  # your policy: now.obs, now.masks -> int64[1024]

    Row ``i`` plays the games ``i``, ``i + 2**32``, ``i + 2 * 2**32`` … of ``seed``, so what a row plays does not
    depend on how many others there are, and row ``i`` is ``Game(rules, seed, game=i)`` at first. A game that ends is
    replaced by the row's next one in the same step. Threads that step, look, play or reset wait for each other.
    """

    def __init__(
        self,
        num_games: int,
        rules: Rules | None = None,
        seed: int = 0,
        reward: str = "points",
        *,
        obs: Mode | None = None,
        observation: str = "compact",
        threads: int = 1,
    ) -> None:
        """Start the first game of every row.

        Args:
            num_games: rows.
            rules: `Rules()` if not given.
            seed: a whole number below 2**64.
            reward: ``"points"``, ``"win"`` or ``"equity"``, see `dnfh_env.objective`.
            obs: what `step` writes beside rewards: nothing, packed observations, or bytes and masks, see `Step`.
            observation: ``"compact"`` or ``"full"``, see `dnfh_env.observation`.
            threads: how many share the rows in `step`, `look` and `play`; what comes out does not depend on it. A
                second one pays from about a thousand rows.

        Raises `ArgumentError` that names the argument at fault.
        """
        whole("num_games", num_games, 1)
        self.rules = checked_rules(rules)
        self.compiled = compile_rules(self.rules)
        self.reward = check_reward(reward)
        self.objective = compile_objective(self.reward, self.rules)
        self.obs = None if obs is None else one_of("obs", obs, get_args(Mode))
        self.layout = LAYOUTS[check_observation(observation)]
        self.threads = int(whole("threads", threads, 1))
        self._games = np.zeros(int(num_games), GAME)
        self._lent = False
        self._set_up()
        self.reset(seed)

    def _set_up(self) -> None:
        """Make the buffers, and cut the rows into a region for each thread."""
        size = len(self._games)
        self._buffers = Buffers.empty(size, self.obs, self.layout)
        self._step = Step.over(self._buffers, self.obs)
        self._known = self._buffers.known
        self._is_known = False  # whether these are the legal actions of the records as they stand
        self._rows = np.arange(size, dtype=np.int64)
        self._regions = regions(size, _BLOCK, self.threads)
        self._alone = threading.RLock()

    def __getstate__(self) -> dict[str, Any]:
        """Without the buffers, which are views of one another."""
        public = {name: value for name, value in vars(self).items() if not name.startswith("_")}
        return public | {"_games": self._games, "_lent": self._lent}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        # a copy, since a pickle may lie in memory that nobody may write to; and of the very types that kernels are
        # compiled for, since others, though equal, take them four times as long to recognise
        self._games, self.compiled = copied_games(self._games), compile_rules(self.rules)
        self.objective = copied_objective(self.objective)
        self._set_up()
        self.look()

    def __copy__(self) -> Batch:
        """An independent batch at the same point."""
        return copy.deepcopy(self)

    def reset(self, seed: int = 0) -> Step:
        """Start the first game of every row under ``seed``, a whole number below 2**64; what `look` returns."""
        games = new_games(self.rules, check_counter("seed", seed), np.arange(len(self)))
        with self._alone:
            self._is_known = False
            self._games[:] = games
            return self.look()

    def __len__(self) -> int:
        """Number of rows."""
        return len(self._games)

    @property
    def games(self) -> NDArray[Any]:
        """The records themselves, to be changed: everything, hidden cards too. Call `look` after a change of yours.

        Once they have been asked for, every `step` judges actions by the records and no longer by what it found there
        before, which takes longer. `records` gives copies.
        """
        self._lent = True  # from now on anybody may change them at any time
        self._is_known = False
        return self._games

    # --- looking, in fresh arrays -------------------------------------------------------------------------------

    @property
    def seats(self) -> NDArray[np.int64]:
        """The seat to move in each row, ``int64[B]``."""
        return self._games["seat"].astype(np.int64)

    def legal(self) -> NDArray[np.uint64]:
        """Legal actions of the seats to move as masks, ``uint64[B]``."""
        out = np.empty(len(self._games), np.uint64)
        legal_masks(self._games, self.compiled, out)
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
        """The records of all rows, or copies of some."""
        return self._games if rows is None else self.records(rows)

    def records(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """Copies of the `GAME` records of some rows: everything, hidden cards too."""
        chosen = whole_numbers("rows", rows)
        if len(chosen) and not (chosen.min() >= 0 and chosen.max() < len(self)):
            raise IllegalActionError(f"rows: expected numbers from 0 to {len(self) - 1}, got {shown(rows)}")
        return self._games.take(chosen)

    def packed(self, observation: str = "compact") -> NDArray[np.uint64]:
        """Features of the seats to move as bits, ``uint64[B, layout.words]``."""
        return pack(self.views(), self.rules.target, _layout(observation))

    def observe(self, observation: str = "compact") -> NDArray[np.float32]:
        """Features of the seats to move, ``float32[B, layout.bits]`` of 0 and 1."""
        return features(self.views(), self.rules.target, _layout(observation))

    def states(self) -> NDArray[np.float32]:
        """Everything, from the place of the seats to move, ``float32[B, STATE.bits]``: for critics only."""
        return state_features(self._games, self.compiled, self.seats)

    # --- moving -------------------------------------------------------------------------------------------------

    def step(self, actions: Sequence[int] | NDArray[np.integer[Any]]) -> Step:
        """Make one decision in every row.

        Args:
            actions: ``B`` actions, each legal in its row.

        Returns:
            The batch's `Step`, the same object each time, whose arrays the next step overwrites.

        Raises `IllegalActionError` that names the row, before any game is changed.
        """
        chosen = whole_numbers("actions", actions, len(self)).copy()  # checked first and read later
        with self._alone:
            if not self._is_known or find_outside(self._known, chosen) >= 0:
                self._check(self._rows, chosen)
            self._is_known = False
            self._advance(chosen)
            self._is_known = not self._lent
        return self._step

    def look(self) -> Step:
        """Fill the batch's `Step` from the games as they stand: nothing has been paid, none has ended."""
        with self._alone:
            self._advance(self._rows[:0])
            self._is_known = not self._lent
        return self._step

    def _advance(self, actions: NDArray[np.int64]) -> None:
        """Make these decisions, if there are any, and fill the batch's `Step`."""
        claims = self._regions.copy()

        def advance(number: int) -> None:
            decisions = Decisions(self._rows, actions, claims, number % len(claims))
            advance_rows(self._games, self.compiled, decisions, self.objective, self._buffers)

        together(advance, self._threads_for(len(self)))

    def step_rows(self, rows: NDArray[np.int64], actions: Sequence[int] | NDArray[np.integer[Any]]) -> Step:
        """`step` for some rows, each at most once: fresh arrays with one entry for each, in their order, no ``obs``.

        The batch's own `Step` does not follow: call `look` for that.
        """
        rows = whole_numbers("rows", rows).copy()
        chosen = whole_numbers("actions", actions, len(rows)).copy()
        decisions, buffers = Decisions(rows, chosen, regions(len(rows), _BLOCK, 1), 0), Buffers.empty(len(rows))
        with self._alone:
            self._check(rows, chosen)
            self._is_known = False
            advance_rows(self._games, self.compiled, decisions, self.objective, buffers)
        return Step.over(buffers, None)

    def _check(self, rows: NDArray[np.int64], actions: NDArray[np.int64]) -> None:
        """Raise for an illegal action, by the records: what the last step knew holds unless they were changed since."""
        fault = find_fault(self._games, self.compiled, rows, actions)
        if fault >= 0:
            raise IllegalActionError(self._describe_fault(int(rows[fault]), int(actions[fault]), rows[:fault]))

    def _describe_fault(self, row: int, action: int, before: NDArray[np.int64]) -> str:
        if not 0 <= row < len(self) or row in before:
            return f"row {row} is not one of 0 to {len(self) - 1}, each at most once"
        mask = np.empty(1, np.uint64)
        legal_masks(self._games[row : row + 1], self.compiled, mask)
        return f"row {row}, seat {self._games['seat'][row]}: {describe_illegal(action, int(mask[0]))}"

    def play(self, agent: str | Agent, decisions: int) -> int:
        """Let one agent decide at all four seats: ``decisions`` times in every row, with the seeds of `keys`.

        Args:
            agent: a name or an object, see `make_agent`. A `FusedAgent`, as ``"random"``, ``"greedy-v1"`` and
                ``"heuristic"`` are, plays within one kernel; another is asked anew for each decision.
            decisions: how many.

        Returns:
            How many games ended. Call `look` for what the seats see then.

        Raises `AgentError` when an agent that is asked errs.
        """
        player = make_agent(agent, self.rules)
        left, ended = whole("decisions", decisions, 0), 0
        with self._alone:
            self._is_known = False
            if not is_fused(player):
                return sum(self._ask_all(player) for _ in range(left))
            try:
                while left > 0:
                    now = min(left, max(1, _DECISIONS_A_CALL // len(self)))
                    ended += self._play_fused(player, now)
                    left -= now
            finally:
                self._is_known = False  # once more: somebody may have looked in between
        return ended

    def _ask_all(self, agent: Agent) -> int:
        """One decision in every row; how many games ended."""
        step = self.step(ask(agent, self.views(), self.keys(), type(agent).__name__))
        return int(np.count_nonzero(step.ended))

    def _play_fused(self, agent: FusedAgent, decisions: int) -> int:
        """So many decisions in every row; how many games ended."""
        ended: list[int] = []
        threads = self._threads_for(decisions * len(self))
        parts = 1 if threads == 1 else min(_PARTS_A_THREAD * threads, len(self))
        unclaimed = iter([*pairwise(len(self) * k // parts for k in range(parts + 1))])

        def play_parts(number: int) -> None:
            for start, stop in unclaimed:  # each goes to one thread
                ended.append(agent.play_fused(self._games[start:stop], self.compiled, decisions))

        together(play_parts, threads)
        return sum(ended)

    def _threads_for(self, decisions: int) -> int:
        """How many are of use."""
        return max(1, min(self.threads, decisions // _WORTH_A_THREAD))


def _layout(observation: str) -> Layout:
    return LAYOUTS[check_observation(observation)]


# --- kernels ----------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def find_outside(legal_sets: Any, actions: Any) -> Any:
    """Index of the first action that is not in its set; -1 if there is none."""
    for i in range(actions.shape[0]):
        action = actions[i]
        if action < 0 or action >= NUM_ACTIONS or not legal_sets[i] & bit(action):
            return i
    return -1


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def advance_rows(games: Any, rules: Any, decisions: Any, objective: Any, out: Any) -> None:
    """Make `Decisions`, all of them legal, start anew what ended, and write all of it into ``out``, `Buffers`.

    Several threads may be at it together. Each begins in a region of its own, so that rows stay near a core, and then
    does what others have left.
    """
    rows, actions, claims = decisions.rows, decisions.actions, decisions.claims
    block = claims[0, 2]
    room = np.empty((block, out.features.shape[1] // 8), np.uint64)
    for turn in range(claims.shape[0]):
        region = (decisions.place + turn) % claims.shape[0]
        start = claim(claims, region, block)
        while start < claims[region, 1]:
            stop = min(start + block, claims[region, 1])
            if actions.shape[0]:
                move(games, rules[0], rows, actions, objective[0], out, start, stop)
            else:
                stand(games, rows, out, start, stop)
            show(games, rules[0], rows, out, room, start, stop)
            start = claim(claims, region, block)


# The three that follow work on the rows of a block, from ``start`` up to ``stop``. Arrays are not handed on within the
# loops, where references would be counted.


@njit
def move(games: Any, r: Any, rows: Any, actions: Any, objective: Any, out: Any, start: Any, stop: Any) -> None:
    """Apply actions, write what they brought, and start the next game where one ended."""
    rewards, ended, truncated, scores, final = out.rewards, out.ended, out.truncated, out.scores, out.final
    for i in range(start, stop):
        g = games[rows[i]]
        paid = apply_and_pay(g, r, actions[i], objective)
        over = g.phase == OVER
        for s in range(4):
            rewards[i, s] = paid[s]
            scores[i, s] = g.scores[s]
        ended[i] = over
        truncated[i] = over and g.winners == 0
        if over:
            final[i] = g
            next_game(g, r)


@njit
def stand(games: Any, rows: Any, out: Any, start: Any, stop: Any) -> None:
    """Write that nothing was brought."""
    rewards, ended, truncated, scores = out.rewards, out.ended, out.truncated, out.scores
    for i in range(start, stop):
        for s in range(4):
            rewards[i, s] = 0.0
            scores[i, s] = games[rows[i]].scores[s]
        ended[i] = False
        truncated[i] = False


@njit
def show(games: Any, r: Any, rows: Any, out: Any, room: Any, start: Any, stop: Any) -> None:
    """Write what the seats to move see; ``room`` holds their words where only the bytes are wanted."""
    rows, seats, legal_sets = rows[start:stop], out.seats[start:stop], out.known[start:stop]
    if out.words.shape[1]:
        encode_rows(games, r, rows, seats, legal_sets, out.words[start:stop])
    elif room.shape[1]:
        words = room[: stop - start]
        encode_rows(games, r, rows, seats, legal_sets, words)
        spread(words, out.features[start:stop], out.features.size > _BEYOND_CACHES)
        spread_each(legal_sets, out.masks[start:stop])
    else:
        for i in range(rows.shape[0]):
            g = games[rows[i]]
            seats[i] = g.seat
            legal_sets[i] = legal(g, r)
    out.legal[start:stop] = legal_sets


@njit
def encode_rows(games: Any, r: Any, rows: Any, seats: Any, legal_sets: Any, words: Any) -> None:
    """Write who is to move, its legal actions and its packed observation, in the layout with as many words."""
    if words.shape[1] == COMPACT_WORDS:
        encode_compact_rows(games, r, rows, seats, legal_sets, words)
    else:
        encode_full_rows(games, r, rows, seats, legal_sets, words)


@njit
def encode_compact_rows(games: Any, r: Any, rows: Any, seats: Any, legal_sets: Any, words: Any) -> None:
    """`encode_rows` in ``compact``."""
    per_target = 1.0 / r.target
    for i in range(rows.shape[0]):
        g = games[rows[i]]
        seats[i] = g.seat
        present = look_at_present(g, r, np.int64(g.seat))
        legal_sets[i] = present.legal
        encoded = compact_words(present, per_target)
        for k in range(COMPACT_WORDS):
            words[i, k] = encoded[k]


@njit
def encode_full_rows(games: Any, r: Any, rows: Any, seats: Any, legal_sets: Any, words: Any) -> None:
    """`encode_rows` in ``full``."""
    view = np.zeros(1, VIEW)
    for i in range(rows.shape[0]):
        g = games[rows[i]]
        seats[i] = g.seat
        look(g, r, np.int64(g.seat), view[0])
        legal_sets[i] = view[0].legal
        encode_full(view[0], r.target, words[i])
