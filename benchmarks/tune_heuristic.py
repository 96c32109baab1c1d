"""Tune `agents.heuristic.Parameters`, and confirm what was found on fresh deals.

A step changes one to three parameters at random and plays blocks of one deal in four seatings, the old and the new in
one seat against the same others on the same cards. What is promising on a few blocks is played again on many others,
and kept if it is better by more than two standard errors. The aim is the sum of `AIMS`. Ctrl-C ends the search. The
best so far is on file at any time, with the number of steps made, and the next run goes on from there: every step has
deals of its own, so nothing is learned by heart.

The parameters in the code came from such searches, and from a choice by hand of ``shot_pick``, ``shot_try``,
``shot_held``, ``shot_rank``, ``shot_points``, ``pick_void`` and ``feed``, to keep the points taken against random
players below 1.

    python benchmarks/tune_heuristic.py --minutes 10
    python benchmarks/tune_heuristic.py --confirm
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from agents import greedy, heuristic
from agents.files import write_text
from agents.heuristic import Parameters, compile_parameters
from agents.stats import mean_interval, rate_interval
from dnfh_env.engine import NO_SEAT, OVER, apply, key_of, keys_of_deal, legal, new_games, random_action
from dnfh_env.objective import EDGE, POINTS, standings_of
from dnfh_env.rules import Rules, compile_rules
from dnfh_env.view import VIEW, look

ROOT = Path(__file__).resolve().parent.parent
RULES = Rules(max_deals=1)

RANDOM, GREEDY = -1, -2
"""Who sits at a seat; 0 and 1 are the heuristic with the first or second parameters."""

AIMS: tuple[tuple[str, str, float], ...] = (
    ("greedy-v1", "edge", 0.3),
    ("itself", "edge", 0.45),
    ("random", "card_points", -1.2),
)
"""Against whom, what, and its weight. Three of itself defend against shots, which greedy-v1 does not; random players,
whose high cards make shots fail, keep the tries few."""

SEARCH_SEEDS = 10_000_000
"""A search takes its deals from here on, two seeds a step; `--confirm-seed` must lie below."""
STEPS = 1_000_000
"""The most steps of a search, so that searches of other ``--seed`` have other deals."""
FEW, MANY = 1_000, 10_000
"""Blocks of a first and of a second look."""
PROMISING, BETTER = 0.5, 2.0
"""Standard errors that the first and the second look ask for."""


@dataclass(frozen=True)
class Figures:
    """Of a match, by block; ``shots`` and ``others_shots`` count deals."""

    edge: NDArray[np.float64]
    card_points: NDArray[np.float64]
    shots: int
    others_shots: int


@njit
def play_out(games: Any, rules: Any, parameters: Any, lineup: Any, views: Any) -> None:
    """Play `GAME` records to their ends; ``lineup`` is ``int64[B, 4]``, ``views`` room for one view."""
    r = rules[0]
    for i in range(games.shape[0]):
        g = games[i]
        keys = keys_of_deal(g)
        while g.phase != OVER:
            player = lineup[i, g.seat]
            if player == RANDOM:
                action = random_action(legal(g, r), key_of(g, keys))
            else:
                look(g, r, np.int64(g.seat), views[0])
                if player == GREEDY:
                    action = greedy.choose(views[0], r)
                else:
                    action = heuristic.choose(views[0], r, parameters[player])
            apply(g, r, action)


def match(mine: Parameters, others: Parameters | int, blocks: int, seed: int) -> Figures:
    """One against three on ``blocks`` deals of ``seed``, each in all four seatings, as `agents.arena` does it."""
    known = isinstance(others, int)
    table = np.concatenate([compile_parameters(each, RULES) for each in ((mine,) if known else (mine, others))])
    lineup = np.full((4, 4), others if known else 1)
    np.fill_diagonal(lineup, 0)
    games = new_games(RULES, seed, np.repeat(np.arange(blocks), 4))
    play_out(games, compile_rules(RULES), table, np.tile(lineup, (blocks, 1)), np.zeros(1, VIEW))
    own = np.arange(4)  # the player's seat in each of the four rows of a block
    standing = standings_of(games, compile_rules(RULES), POINTS).reshape(-1, 4, 4)[:, own, own]
    card_points = games["points"].reshape(-1, 4, 4)[:, own, own]
    shots = games["shooter"].reshape(-1, 4) == own
    return Figures(
        edge=EDGE * standing.mean(axis=1),
        card_points=card_points.mean(axis=1),
        shots=int(shots.sum()),
        others_shots=int((games["shooter"] != NO_SEAT).sum() - shots.sum()),
    )


def opponents(name: str, itself: Parameters) -> Parameters | int:
    return {"random": RANDOM, "greedy-v1": GREEDY}.get(name, itself)


def aim(mine: Parameters, best: Parameters, blocks: int, seed: int) -> NDArray[np.float64]:
    """The sum of `AIMS` by block; three of ``best`` are "itself"."""
    return np.sum(
        [w * getattr(match(mine, opponents(name, best), blocks, seed), what) for name, what, w in AIMS], axis=0
    )


def gain(mine: Parameters, best: Parameters, blocks: int, seed: int) -> tuple[float, float]:
    """How much better than ``best``, and its standard error."""
    difference = aim(mine, best, blocks, seed) - aim(best, best, blocks, seed)
    return float(difference.mean()), float(difference.std(ddof=1)) / blocks**0.5 + 1e-12


def changed(parameters: Parameters, names: Sequence[str], step: float, rng: random.Random) -> Parameters:
    """One to three of these parameters moved, by about ``step`` of their size; none below 0."""
    moved = {name: getattr(parameters, name) for name in rng.sample(names, min(len(names), rng.choice((1, 1, 2, 3))))}
    return replace(
        parameters, **{k: max(0.0, round(x + rng.gauss(0, step) * max(x, 0.3), 3)) for k, x in moved.items()}
    )


def difference(new: Parameters, old: Parameters) -> str:
    before = asdict(old)
    return ", ".join(f"{name} {before[name]:g} -> {x:g}" for name, x in asdict(new).items() if x != before[name])


@dataclass
class Found:
    """What searches with one ``seed`` have come to in some number of ``steps``."""

    parameters: Parameters
    seed: int
    steps: int = 0

    def save(self, path: Path) -> None:
        """Write all of it or nothing."""
        write_text(path, json.dumps(asdict(self), indent=2))

    @classmethod
    def load(cls, path: Path) -> Found:
        """What `save` wrote."""
        fields = json.loads(path.read_text())
        return cls(Parameters(**fields["parameters"]), fields["seed"], fields["steps"])


def search(found: Found, options: argparse.Namespace) -> None:
    """Improve what was found until the time or the steps are up or Ctrl-C; it is on file after each success."""
    start, first = time.monotonic(), found.steps
    try:
        while time.monotonic() - start < 60 * options.minutes and found.steps - first < options.steps:
            if found.steps == STEPS:
                raise SystemExit(f"all {STEPS} steps of seed {found.seed} are made; give another --file and --seed")
            if news := step(found, options):
                print(f"{time.monotonic() - start:5.0f} s, step {found.steps}: {news}", flush=True)
                found.save(options.file)
    except KeyboardInterrupt:
        print("broken off")
    found.save(options.file)
    print(f"{found.steps - first} steps; best: {found.parameters}")


def step(found: Found, options: argparse.Namespace) -> str:
    """Try one change, and keep it in ``found`` if it is better: what was gained, in words, or nothing."""
    rng, seed = random.Random(f"{found.seed}, {found.steps}"), SEARCH_SEEDS + 2 * (STEPS * found.seed + found.steps)
    found.steps += 1
    best, new = found.parameters, changed(found.parameters, options.only, options.step, rng)
    for blocks, errors in ((FEW, PROMISING), (MANY, BETTER)):
        mean, error = gain(new, best, blocks, seed)
        if mean <= errors * error:
            return ""
        seed += 1
    found.parameters = new
    return f"{mean:+.3f} ± {error:.3f}, {difference(new, best)}"


def confirm(found: Parameters, before: Parameters, blocks: int, seed: int) -> None:
    """Print figures with 95 % intervals on deals that no search has seen."""
    print(f"{blocks} deals in four seatings, seed {seed}; ± is a 95 % interval")
    known: dict[str, Parameters | int] = {"random": RANDOM, "greedy-v1": GREEDY, "itself": found}
    for name, others in known.items() if found == before else (*known.items(), ("before", before)):
        figures = match(found, others, blocks, seed)
        edge, points = mean_interval(figures.edge), mean_interval(figures.card_points)
        shots, theirs = (rate_interval(n, 4 * blocks).mean for n in (figures.shots, figures.others_shots))
        print(
            f"against three {name:10} edge {edge.mean:+6.2f} ± {edge.margin:.2f}   card points {points.mean:5.2f} "
            f"± {points.margin:.2f}   deals shot {shots:.2%}, by others {theirs:.2%}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=5, help="time of the search")
    parser.add_argument("--steps", type=int, default=STEPS, help="steps of the search, if the time allows them")
    parser.add_argument("--step", type=float, default=0.3, help="size of a change, as a share of the parameter")
    names = list(asdict(Parameters()))
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="NAME", help="what to change")
    parser.add_argument("--seed", type=int, default=0, help="what changes and deals of a new search come from")
    parser.add_argument(
        "--file", type=Path, default=ROOT / "runs" / "heuristic.json", help="what the search goes on from and leaves"
    )
    parser.add_argument("--confirm", action="store_true", help="no search: figures of --file on fresh deals")
    parser.add_argument("--before", type=Path, help="file to compare with when confirming; else the code's parameters")
    parser.add_argument("--deals", type=int, default=20_000, help="blocks when confirming")
    parser.add_argument("--confirm-seed", type=int, default=9_100_000, help=f"their seed, below {SEARCH_SEEDS}")
    options = parser.parse_args()
    known = options.file.exists()
    if options.confirm:
        if not 0 <= options.confirm_seed < SEARCH_SEEDS:
            parser.error(f"--confirm-seed: expected 0 to {SEARCH_SEEDS - 1}, got {options.confirm_seed}")
        if not known:
            print(f"{options.file} does not exist: these are the parameters in the code")
        found = Found.load(options.file).parameters if known else Parameters()
        before = Found.load(options.before).parameters if options.before else Parameters()
        confirm(found, before, options.deals, options.confirm_seed)
    else:
        search(Found.load(options.file) if known else Found(Parameters(), options.seed), options)


if __name__ == "__main__":
    main()
