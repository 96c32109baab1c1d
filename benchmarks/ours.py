"""Our own work, for `measuring.rate`, what it costs in memory, and what the memory can do."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from measuring import ROOT, Work, summary
from numba import njit
from numpy.typing import NDArray
from peers import aec_loop

from agents.worlds import draw_worlds, new_scratch
from dnfh_env import Batch, Game, dnfh_v0, make_agent
from dnfh_env._bits import nth_set, popcount
from dnfh_env._random import GOLDEN, below, mix
from dnfh_env.batch import Mode
from dnfh_env.cards import NUM_CARDS
from dnfh_env.engine import GAME

DEAL = 65
"""Decisions of a deal under the default rules. All games begin together, so work is whole deals."""

FIRST_GAME = """
import time
start = time.perf_counter()
import dnfh_env
imported = time.perf_counter() - start
from dnfh_env import dnfh_v0
env = dnfh_v0.env()
env.reset(seed=1)
for agent in env.agent_iter():
    observation, _, terminated, truncated, _ = env.last()
    env.step(None if terminated or truncated else int(observation["action_mask"].argmax()))
print(imported, time.perf_counter() - start - imported)
"""


def fused(size: int, agent: str = "random", deals: int = 1, threads: int = 1) -> Work:
    """`Batch.play`: so many deals in each row, with calls, passes, kitties, scoring and new games."""
    batch, player = Batch(size, seed=1, threads=threads), make_agent(agent)

    def work() -> int:
        batch.play(player, decisions=deals * DEAL)
        return deals * DEAL * size

    return work


def stepped(size: int, obs: Mode | None, observation: str = "compact", threads: int = 1) -> Work:
    """`Batch.step`: a deal in each row, with random actions by a second kernel from the legal sets."""
    batch = Batch(size, seed=1, obs=obs, observation=observation, threads=threads)
    actions = np.empty(size, np.int64)
    step = batch.look()
    count = 0

    def work() -> int:
        nonlocal count
        for _ in range(DEAL):
            count += 1
            choose(step.legal, count, actions)
            batch.step(actions)
        return DEAL * size

    return work


@njit(cache=True)
def choose(legal: Any, count: Any, actions: Any) -> None:
    """A random action out of each legal set; the ``count`` of the step is the seed."""
    start = mix(np.uint64(count) * GOLDEN)
    for i in range(legal.shape[0]):
        actions[i] = nth_set(legal[i], below(popcount(legal[i]), mix(start + np.uint64(i) * GOLDEN)))


def game_loop() -> Work:
    """A game by `Game.legal_actions` and `Game.push` in a plain Python loop."""
    seed = 0

    def work() -> int:
        nonlocal seed
        seed += 1
        decisions = 0
        game = Game(seed=seed)
        while not game.is_over:
            game.push(random.choice(game.legal_actions()))
            decisions += 1
        return decisions

    return work


def aec(wrapped: bool) -> Work:
    """Our AEC loop."""
    return aec_loop(dnfh_v0.env() if wrapped else dnfh_v0.raw_env())


# --- search -----------------------------------------------------------------------------------------------------

TRICKS = 6
"""After which a view is one of mid-deal: half of the cards that others hold have been played."""


def in_mid_deal(size: int) -> Batch:
    """As many games, after six tricks of their first deal as ``heuristic`` plays it."""
    batch = Batch(size, seed=1)
    batch.play("heuristic", DEAL - NUM_CARDS + 4 * TRICKS)
    return batch


def worlds(size: int = 64, each: int = 1000) -> Work:
    """Thousands of worlds that agree with views of mid-deal, `agents.worlds.draw_worlds`."""
    batch, scratch = in_mid_deal(size), new_scratch()
    views, keys, games, layouts = batch.views(), batch.keys(), np.zeros(size * each, GAME), np.zeros(size)

    def work() -> int:
        draw_worlds(views, batch.compiled, keys, scratch, games, layouts)
        return len(games) // 1000

    return work


def searched(threads: int, size: int = 256) -> Work:
    """Decisions of ``pimc:fast`` about views of mid-deal, all in one call."""
    batch, agent = in_mid_deal(size), make_agent(f"pimc:fast,threads={threads}")
    views, keys = batch.views(), batch.keys()

    def work() -> int:
        return len(agent.act(views, keys))

    return work


# --- memory -----------------------------------------------------------------------------------------------------


def written(obs: Mode | None, observation: str = "compact") -> int:
    """Bytes of a row that each `Batch.step` writes for the user; the record of an ended game is rare and left out."""
    step = Batch(1, obs=obs, observation=observation).look()
    arrays = (step.rewards, step.ended, step.truncated, step.scores, step.seats, step.legal, step.masks, step.obs)
    return sum(array.nbytes for array in arrays if array is not None)


def moved(obs: Mode | None, observation: str = "compact") -> int:
    """Bytes that a decision of `Batch.step` moves at least: the record read and written, and what is `written`."""
    return 2 * GAME.itemsize + written(obs, observation)


def allocated(obs: Mode | None, observation: str = "compact", size: int = 4096) -> float:
    """Bytes a game that a batch holds, as Python's own count of allocations has it."""
    Batch(1, obs=obs, observation=observation)  # what is set up once and for all
    tracemalloc.start()
    try:
        batch = Batch(size, obs=obs, observation=observation)
        return tracemalloc.get_traced_memory()[0] / len(batch)
    finally:
        tracemalloc.stop()


def copying(size: int, threads: int = 1) -> Work:
    """Bytes read and written by copying one array to another, ``size`` bytes together, a part in each thread."""
    source, target = (np.ones(size // 16, np.uint64) for _ in range(2))
    return in_parts(np.copyto, [target, source], size, threads)


def writing(size: int, threads: int = 1) -> Work:
    """Bytes written by filling an array with a word, by ordinary stores, as the kernels do but for large outputs."""
    return in_parts(lambda part: part.fill(3), [np.ones(size // 8, np.uint64)], size, threads)


def in_parts(touch: Callable[..., None], arrays: list[NDArray[np.uint64]], size: int, threads: int) -> Work:
    """``touch`` a part of the arrays in each thread, often enough that handing it over does not count."""
    parts = [np.array_split(array, threads) for array in arrays]
    pool = ThreadPoolExecutor(threads)
    times = max(1, (1 << 26) // size)

    def touch_often(*part: NDArray[np.uint64]) -> None:
        for _ in range(times):
            touch(*part)

    def work() -> int:
        list(pool.map(touch_often, *parts))
        return times * size

    return work


# --- starting ---------------------------------------------------------------------------------------------------


def first_game(cache: str) -> tuple[float, float]:
    """Seconds to import, and to play a first AEC game after that, in a new interpreter with this kernel cache."""
    environment = os.environ | {"NUMBA_CACHE_DIR": cache}
    command = [sys.executable, "-c", FIRST_GAME]
    out = subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True).stdout
    imported, played = map(float, out.split())
    return imported, played


def start_up(repeats: int) -> dict[str, dict[str, float]]:
    """Seconds of import and first game, with an empty cache and from cache."""
    with tempfile.TemporaryDirectory() as cache:
        _, compiling = first_game(cache)
        runs = [first_game(cache) for _ in range(repeats)]
    return {
        "import": summary([imported for imported, _ in runs]),
        "first game, empty cache": summary([compiling]),
        "first game, from cache": summary([played for _, played in runs]),
    }
