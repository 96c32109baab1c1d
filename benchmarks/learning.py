"""Learning speed beside stock sb3-contrib, and where the time goes: ``make bench-learning``.

Samples learned from a second, whole updates: playing, and all epochs of gradient steps. Both sides train the same
network for the same epochs on rollouts of the same size; each first finds its own best minibatch and number of torch
threads, then they are measured in turn. Writes ``results/learning.json``.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import torch
from measuring import ROOT, Measure, in_turn, origin, summary, write
from stable_baselines3.common.vec_env import DummyVecEnv

import dnfh_env  # noqa: F401  registers the environment
from agents.learned import rollout, self_play
from agents.learned.self_play import SelfPlay, build
from agents.learned.settings import Settings

ENVS = 8
MINIBATCHES = (256, 1024, 4096)
THREADS = (1, 2)
BEST = (4096, 2)
"""Minibatch and threads at which both were quickest on two cores; `main` looks anew."""


class Stock:
    """`MaskablePPO` as its documentation shows it: single environments in a `DummyVecEnv`."""

    def __init__(self, minibatch: int, rollout: int = Settings.rollout) -> None:
        settings = Settings(batch_size=minibatch, rollout=rollout)
        envs = DummyVecEnv([functools.partial(make_seat, seed) for seed in range(ENVS)])
        self.samples = settings.rollout
        self.model = build("MlpPolicy", envs, settings, n_steps=settings.rollout // ENVS)

    def update(self) -> int:
        """One rollout and the epochs on it; how many samples."""
        self.model.learn(self.samples, reset_num_timesteps=False)
        return self.samples


def make_seat(seed: int) -> gymnasium.Env[Any, Any]:
    env = gymnasium.make("dnfh_env/Seat-v0", opponents="greedy", episode="deal")
    env.reset(seed=seed)
    return env


class Ours:
    """`SelfPlay` with its default settings."""

    def __init__(self, minibatch: int, rollout: int = Settings.rollout) -> None:
        self.learner = SelfPlay(Settings(batch_size=minibatch, rollout=rollout, decisions=10**9))

    def update(self) -> int:
        before = self.learner.decisions
        self.learner.update()
        return self.learner.decisions - before


def speed(threads: int, learner: Stock | Ours) -> float:
    """Samples a second over one update."""
    torch.set_num_threads(threads)
    start = time.perf_counter()
    return learner.update() / (time.perf_counter() - start)


def side_by_side(minibatch: int, threads: int, rollout: int = Settings.rollout) -> dict[str, Measure]:
    """`speed` of both with the same minibatch and torch threads."""
    return {kind.__name__: functools.partial(speed, threads, kind(minibatch, rollout)) for kind in (Ours, Stock)}


def best(kind: type[Stock | Ours]) -> tuple[int, int, Stock | Ours]:
    """The quickest minibatch and number of threads, and the learner with that minibatch."""
    found = []
    for minibatch in MINIBATCHES:
        learner = kind(minibatch)
        speed(1, learner)  # warm
        for threads in THREADS:
            found.append((max(speed(threads, learner) for _ in range(2)), minibatch, threads, learner))
            print(f"{kind.__name__:6} minibatch {minibatch:5} threads {threads}: {found[-1][0]:9,.0f} samples/s")
    _, minibatch, threads, learner = max(found, key=lambda entry: entry[0])
    return minibatch, threads, learner


class Clock:
    """Seconds spent in functions that are wrapped, each without those it calls."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._inside = 0.0  # time of wrapped calls within the present one
        self._undo: list[Callable[[], None]] = []

    def wrap(self, label: str, owner: Any, name: str) -> None:
        wrapped = getattr(owner, name)
        self.seconds[label] = 0.0

        def timed(*args: Any, **kwargs: Any) -> Any:
            outer, self._inside = self._inside, 0.0
            start = time.perf_counter()
            try:
                return wrapped(*args, **kwargs)
            finally:
                spent = time.perf_counter() - start
                self.seconds[label] += spent - self._inside
                self._inside = outer + spent

        setattr(owner, name, timed)
        self._undo.append(lambda: setattr(owner, name, wrapped))

    def unwrap(self) -> None:
        for undo in self._undo:
            undo()


def where_time_goes(learner: SelfPlay, updates: int) -> dict[str, float]:
    """Shares of the time of some updates."""
    clock = Clock()
    collector, model = learner.collector, learner.model
    for label, owner, name in (
        ("play: the rest of the round", collector, "collect"),
        ("play: rules, rewards, packing", collector.batch, "step"),
        ("play: views for bots", collector.batch, "views"),
        ("play: bots and snapshots", rollout, "ask_each"),
        ("play: taking the learner's rows", collector, "_packed"),
        ("play: policy and value", collector, "decide"),
        ("play: drawing actions", rollout, "draw"),
        ("play: advantages", rollout, "gae"),
        ("learn: the rest of PPO", model, "train"),
        ("learn: the rollout as tensors", self_play, "Rollout"),
        ("both: unpacking", self_play, "unpack"),
        ("learn: forward", model.policy, "evaluate_actions"),
        ("learn: backward", torch.Tensor, "backward"),
        ("learn: Adam", model.policy.optimizer, "step"),
    ):
        clock.wrap(label, owner, name)
    start = time.perf_counter()
    for _ in range(updates):
        learner.update()
    total = time.perf_counter() - start
    clock.unwrap()
    clock.seconds["all else"] = total - sum(clock.seconds.values())
    return {label: seconds / total for label, seconds in clock.seconds.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "learning.json")
    options = parser.parse_args()
    source = origin(("dnfh", "numpy", "numba", "torch", "stable_baselines3", "sb3_contrib"))
    chosen = {kind.__name__: best(kind) for kind in (Ours, Stock)}
    speeds = in_turn(
        {name: functools.partial(speed, threads, learner) for name, (_, threads, learner) in chosen.items()},
        options.repeats,
    )
    for name, values in speeds.items():
        minibatch, threads, _ = chosen[name]
        s = summary(values)
        print(
            f"{name:6} at its best, minibatch {minibatch}, threads {threads}: "
            f"{s['median']:,.0f} samples/s ({s['low']:,.0f} to {s['high']:,.0f})"
        )
    ratio = statistics.median(speeds["Ours"]) / statistics.median(speeds["Stock"])
    print(f"ratio of the medians: {ratio:.1f}")
    _, threads, ours = chosen["Ours"]
    torch.set_num_threads(threads)
    shares = where_time_goes(ours.learner, 5)  # type: ignore[union-attr]
    for label, share in shares.items():
        print(f"{label:34}{share:7.1%}")
    report = {
        "samples a second": {name: summary(values) for name, values in speeds.items()},
        "ratio": ratio,
        "minibatch, threads": {name: (minibatch, threads) for name, (minibatch, threads, _) in chosen.items()},
        "where the time goes": shares,
    }
    write(options.out, source | report)


if __name__ == "__main__":
    main()
