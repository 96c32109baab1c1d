"""Do the intervals hold what they promise? ``make coverage-test``.

Two kinds of block scores whose true mean is known: made-up ones, skewed by rare shots; and those of a careless
``greedy-v1`` against three careful ones, where the truth is the mean of a far larger run under seeds of its own. Each
is evaluated many times over. An interval for a fixed number of blocks has to hold the truth in 95 +- 3 % of
evaluations; the running one may leave it out at any time in 5 + 2 % at most. Prints a table; the status is 1 if a bound
is missed.

The large run is kept in ``results/interval_coverage.json``, part by part, so that a rerun is quick. It is played anew
when the first blocks of it would come out otherwise today.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agents.arena import Match
from agents.files import write_text
from agents.greedy import Greedy
from agents.stats import mean_interval, running_bounds
from dnfh_env.agent import RandomAgent
from dnfh_env.rules import Rules

BLOCKS = 500
"""Of an evaluation."""

FIXED = (0.92, 0.98)
"""How often an interval for a fixed number of blocks may hold the truth."""

MOST_MISSED = 0.07
"""How often the running interval may leave it out at any time."""

EPSILON = 0.1
"""Share of decisions that the careless player makes at random."""

OPPONENT = "greedy-v1"
PART = 100_000
"""Blocks of the large run that are played, and kept, at a time."""

TRUTH_SEED = 41_000_000
"""Of the first part of the large run; the others follow."""

EVALUATION_SEED = 42_000_000
"""Of the first evaluation; the others follow."""

SYNTHETIC_SEED = 43_000_000
SYNTHETIC_EVALUATIONS = 4000
HORIZON = 2000
"""Blocks over which the running interval of made-up scores is watched."""

PROBE = 1000
"""First blocks of the large run that are replayed to see whether it still holds."""

TRUTH = Path(__file__).resolve().parent.parent / "results" / "interval_coverage.json"


# Made-up scores

Scores = NDArray[Any]
"""``float64``, of blocks, in points."""


@dataclass(frozen=True)
class Made:
    """Block scores: a normal deviate, with rare shots on top; in points."""

    name: str
    sd: float
    """Of the deviate."""
    own: float
    """Shots of one's own, for each seat of a block."""
    others: float
    """Shots of others."""
    seats: int = 4
    """Times that a block is played; its score is the mean."""
    gain: float = 208.0
    """What a shot of one's own is worth: thrice 4/3 of 52."""
    loss: float = 208.0 / 3

    @property
    def mean(self) -> float:
        """The truth."""
        return self.gain * self.own - self.loss * self.others

    def draw(self, rng: np.random.Generator, count: int) -> Scores:
        """Scores of so many blocks."""
        luck = rng.random((count, self.seats))
        shots = self.gain * (luck < self.own) - self.loss * (luck > 1 - self.others)
        scores: Scores = rng.normal(0, self.sd, count) + shots.mean(axis=1)
        return scores


MADE = (
    Made("normal, SD 8", 8, 0, 0),
    Made("SD 8, blocks of +200 (2 %), -200 (1 %)", 8, 0.02, 0.01, seats=1, gain=200, loss=200),
    Made("SD 20, blocks of +200 (2 %), -200 (1 %)", 20, 0.02, 0.01, seats=1, gain=200, loss=200),
    Made("SD 20, blocks of +200 (1 %)", 20, 0.01, 0, seats=1, gain=200, loss=200),
    Made("SD 4, seats shoot 1 %, others 0.5 %", 4, 0.01, 0.005),
    Made("SD 6, seats shoot 0.5 %, others 0.5 %", 6, 0.005, 0.005),
    Made("SD 10, seats shoot 5 %, others 1 %", 10, 0.05, 0.01),
)


KNOWN_TO_FAIL = Made("SD 8, blocks of +200 (1 %)", 8, 0.01, 0, seats=1, gain=200, loss=200)
"""Shots of one sign alone beside a small spread: where many samples hold none, none of them can know of any."""


def made_evaluations(made: Made, index: int, evaluations: int) -> Iterator[Scores]:
    """Scores of so many evaluations, `HORIZON` blocks each."""
    rng = np.random.default_rng([SYNTHETIC_SEED, index])
    for _ in range(evaluations):
        yield made.draw(rng, HORIZON)


# Scores of games


class Sloppy:
    """``greedy-v1`` that makes some of its decisions at random."""

    def __init__(self, rules: Rules | None = None) -> None:
        self._careful = Greedy(rules)
        self._careless = RandomAgent(rules)

    def act(self, views: NDArray[Any], rng: NDArray[np.uint64]) -> NDArray[np.int64]:
        actions = self._careful.act(views, rng)
        lapses = np.flatnonzero(units(rng) < EPSILON)
        actions[lapses] = self._careless.act(views.take(lapses), rng[lapses])
        return actions


def units(seeds: NDArray[np.uint64]) -> Scores:
    """A number from 0 to 1 for each seed, by SplitMix64, unlike what the random player makes of it."""
    x = seeds + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (x >> np.uint64(11)).astype(np.float64) * 2.0**-53


def played(seed: int, blocks: int) -> Scores:
    """Edges of a careless player against three careful ones, ``float64[blocks]``."""
    match = Match(Sloppy(), OPPONENT, seed=seed)
    for _ in match.play("deal", blocks):
        pass
    scores: Scores = match.scores("deal")[:, 0]
    return scores


def part_of_truth(seed: int, blocks: int) -> dict[str, int | str]:
    """Blocks of the large run summed up in twelfths of a point: an edge is a whole number of them, so this is exact."""
    twelfths = np.rint(12 * played(seed, blocks)).astype(np.int64)
    digest = hashlib.sha256(twelfths.astype("<i8").tobytes()).hexdigest()
    return {"seed": seed, "blocks": blocks, "twelfths": int(twelfths.sum()), "sha256": digest}


def truth(pool: ProcessPoolExecutor, blocks: int, path: Path) -> float:
    """The mean of the large run, of which whatever is not kept at ``path`` is played."""
    probe = part_of_truth(TRUTH_SEED, PROBE)
    setup = {"epsilon": EPSILON, "opponent": OPPONENT, "probe": probe}
    wanted = [(TRUTH_SEED + k, min(PART, blocks - k * PART)) for k in range(-(-blocks // PART))]
    parts = [part for part in kept_parts(path, setup) if (part["seed"], part["blocks"]) in wanted]
    missing = [at for at in wanted if at not in [(part["seed"], part["blocks"]) for part in parts]]
    for part in pool.map(part_of_truth, *zip(*missing, strict=True)) if missing else ():
        parts.append(part)
        write(path, {**setup, "parts": sorted(parts, key=lambda part: part["seed"])})
        report(f"truth: {sum(part['blocks'] for part in parts):,} of {blocks:,} blocks")
    return float(sum(part["twelfths"] for part in parts) / 12 / blocks)


def kept_parts(path: Path, setup: dict[str, Any]) -> list[dict[str, Any]]:
    """Parts played before under the same setup."""
    kept: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    parts: list[dict[str, Any]] = kept.pop("parts", [])
    return parts if kept == setup else []


def write(path: Path, content: dict[str, Any]) -> None:
    write_text(path, json.dumps(content, indent=1) + "\n")


def played_evaluations(pool: ProcessPoolExecutor, evaluations: int) -> Iterator[Scores]:
    """Edges of so many evaluations under seeds of their own, `BLOCKS` blocks each."""
    seeds = range(EVALUATION_SEED, EVALUATION_SEED + evaluations)
    for number, scores in enumerate(pool.map(played, seeds, [BLOCKS] * evaluations, chunksize=10), 1):
        if number % 50 == 0:
            report(f"played: {number} of {evaluations} evaluations")
        yield scores


# What is asked of them


@dataclass(frozen=True)
class Row:
    """How the intervals of one kind of scores did."""

    name: str
    evaluations: int
    held: float
    """Share of evaluations whose interval over the first `BLOCKS` blocks holds the truth."""
    missed: float
    """Share of evaluations whose running interval leaves it out at any time."""

    @property
    def passes(self) -> bool:
        return FIXED[0] <= self.held <= FIXED[1] and self.missed <= MOST_MISSED

    def text(self) -> str:
        verdict = "" if self.passes else "  MISSED"
        return f"{self.name:44} {self.evaluations:11,} {self.held:8.1%} {self.missed:12.1%}{verdict}"


def judged(name: str, mean: float, evaluations: Iterator[Scores]) -> Row:
    """The row of evaluations whose true mean is known."""
    found = [(holds(scores, mean), ever_missed(scores, mean)) for scores in evaluations]
    held, missed = np.mean(found, axis=0)
    return Row(name, len(found), float(held), float(missed))


def holds(scores: Scores, mean: float) -> bool:
    interval = mean_interval(scores[:BLOCKS])
    return interval.low <= mean <= interval.high


def ever_missed(scores: Scores, mean: float) -> bool:
    _, lows, highs = running_bounds(scores)
    return bool(((mean < lows) | (mean > highs)).any())


def synthetic_rows() -> Iterator[Row]:
    for index, made in enumerate(MADE):
        yield judged(made.name, made.mean, made_evaluations(made, index, SYNTHETIC_EVALUATIONS))


def played_row(pool: ProcessPoolExecutor, blocks: int, evaluations: int, path: Path) -> Row:
    mean = truth(pool, blocks, path)
    name = f"{EPSILON:.0%} random {OPPONENT}, truth {mean:+.3f}"
    return judged(name, mean, played_evaluations(pool, evaluations))


def report(line: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {line}", file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--truth-blocks", type=int, default=2_000_000, help="of the large run")
    parser.add_argument("--evaluations", type=int, default=400, help="of the careless player")
    parser.add_argument("--workers", type=int, default=min(2, os.cpu_count() or 1), help="processes that play")
    parser.add_argument("--truth-file", type=Path, default=TRUTH, help="where the large run is kept")
    asked = parser.parse_args(arguments)
    print(f"{'scores':44} {'evaluations':>11} {'held':>8} {'ever missed':>12}")
    rows = list(map(shown, synthetic_rows()))
    with ProcessPoolExecutor(asked.workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        rows.append(shown(played_row(pool, asked.truth_blocks, asked.evaluations, asked.truth_file)))
    known = made_evaluations(KNOWN_TO_FAIL, len(MADE), SYNTHETIC_EVALUATIONS)
    shown(judged(f"{KNOWN_TO_FAIL.name}, known to fail", KNOWN_TO_FAIL.mean, known))
    print(f"asked for: held {FIXED[0]:.0%} to {FIXED[1]:.0%} at {BLOCKS} blocks, ever missed {MOST_MISSED:.0%} at most")
    return 0 if all(row.passes for row in rows) else 1


def shown(row: Row) -> Row:
    print(row.text(), flush=True)
    return row


if __name__ == "__main__":
    sys.exit(main())
