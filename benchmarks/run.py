"""Speed beside the peers, in one run: ``make bench``.

Each figure is measured in turn with its peer, several times over; what counts is the ratio of the medians. Needs the
``interop`` extra for OpenSpiel. Writes ``results/bench.json``.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from dnfh_env import Batch, Game

ROOT = Path(__file__).resolve().parent.parent

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


def fused_random(decisions: int) -> float:
    """Decisions a second of `Batch.play_random`: default rules, deals, calls, passes and kitties included."""
    batch = Batch(1024, seed=1)
    each = decisions // len(batch)
    start = time.perf_counter()
    batch.play_random(each)
    return each * len(batch) / (time.perf_counter() - start)


def openspiel_loop(decisions: int) -> float:
    """Decisions a second of OpenSpiel's hearts in a plain Python loop; dealing takes time too and counts as none."""
    import pyspiel

    game = pyspiel.load_game("hearts")
    done = 0
    start = time.perf_counter()
    while done < decisions:
        state = game.new_initial_state()
        while not state.is_terminal():
            state.apply_action(random.choice(state.legal_actions()))
        done += state.move_number() - 53  # drawing the pass, and dealing card by card
    return done / (time.perf_counter() - start)


def python_loop(decisions: int) -> float:
    """Decisions a second of `Game.legal_actions` and `Game.push` in a plain Python loop."""
    done = 0
    start = time.perf_counter()
    while done < decisions:
        game = Game(seed=done)
        while not game.is_over:
            game.push(random.choice(game.legal_actions()))
            done += 1
    return done / (time.perf_counter() - start)


def first_game(cache: str) -> tuple[float, float]:
    """Seconds to import, and to play a first AEC game after that, in a new interpreter with this kernel cache."""
    environment = os.environ | {"NUMBA_CACHE_DIR": cache}
    command = [sys.executable, "-c", FIRST_GAME]
    out = subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True).stdout
    imported, played = map(float, out.split())
    return imported, played


def in_turn(measures: dict[str, Callable[[], float]], repeats: int) -> dict[str, list[float]]:
    """Every measure ``repeats`` times, one after the other, so that a busy moment hits all alike."""
    for measure in measures.values():
        measure()  # warm
    found: dict[str, list[float]] = {name: [] for name in measures}
    for _ in range(repeats):
        for name, measure in measures.items():
            found[name].append(measure())
    return found


def summary(values: list[float]) -> dict[str, float]:
    """Median and spread."""
    return {"median": statistics.median(values), "low": min(values), "high": max(values)}


def start_up(repeats: int) -> dict[str, dict[str, float]]:
    """Import and first game, with an empty cache and from cache."""
    with tempfile.TemporaryDirectory() as cache:
        _, compiling = first_game(cache)
        runs = [first_game(cache) for _ in range(repeats)]
    return {
        "import, s": summary([imported for imported, _ in runs]),
        "first game, empty cache, s": summary([compiling]),
        "first game, from cache, s": summary([played for _, played in runs]),
    }


def write(path: Path, report: dict[str, object], packages: tuple[str, ...]) -> None:
    """The figures as JSON, with the machine and the versions that they come from."""
    machine = {"processor": platform.processor(), "python": platform.python_version(), "cores": os.cpu_count()}
    path.parent.mkdir(parents=True, exist_ok=True)
    versions = {name: version(name) for name in packages}
    path.write_text(json.dumps(report | {"machine": machine, "versions": versions}, indent=2))
    print(f"written: {path}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "bench.json")
    options = parser.parse_args()
    speeds = in_turn(
        {
            "fused random": lambda: fused_random(20_000_000),
            "Game in a Python loop": lambda: python_loop(30_000),
            "OpenSpiel in a Python loop (Y)": lambda: openspiel_loop(200_000),
        },
        options.repeats,
    )
    peer = statistics.median(speeds["OpenSpiel in a Python loop (Y)"])
    print(f"{'decisions a second, one core':34}{'median':>14}{'low':>14}{'high':>14}{'/ Y':>8}")
    for name, values in speeds.items():
        s = summary(values)
        print(f"{name:34}{s['median']:14,.0f}{s['low']:14,.0f}{s['high']:14,.0f}{s['median'] / peer:8.2f}")
    starts = start_up(options.repeats)
    for name, s in starts.items():
        print(f"{name:34}{s['median']:14.2f}{s['low']:14.2f}{s['high']:14.2f}")
    report = {
        "decisions a second": {name: summary(values) for name, values in speeds.items()},
        "start-up": starts,
    }
    write(options.out, report, ("dnfh", "numpy", "numba", "open_spiel"))


if __name__ == "__main__":
    main()
