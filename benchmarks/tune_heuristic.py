"""Tune `agents.heuristic.Parameters`, and confirm what was found on fresh deals.

A step changes one to three parameters at random and plays blocks of one deal in four seatings, the old and the new in
one seat against the same others on the same cards. What is promising on a few blocks is played again on many others,
and kept if it is better by more than two standard errors. Every step has deals of its own, so nothing is learned by
heart. The aim is the sum of `AIMS`. Ctrl-C ends the search; the best so far is on file at any time.

    python benchmarks/tune_heuristic.py --minutes 10
    python benchmarks/tune_heuristic.py --confirm
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from agents import greedy, heuristic
from agents.heuristic import Parameters, compile_parameters
from agents.stats import mean_interval, rate_interval
from dnfh_env.engine import OVER, apply, key_of, keys_of_deal, legal, new_games, random_action
from dnfh_env.objective import POINTS, standings_of
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

SEARCH_SEED, CONFIRM_SEED = 1_000_000, 9_100_000
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
    table = np.concatenate([compile_parameters(each) for each in ((mine,) if known else (mine, others))])
    lineup = np.full((4, 4), others if known else 1)
    np.fill_diagonal(lineup, 0)
    games = new_games(RULES, seed, np.repeat(np.arange(blocks), 4))
    play_out(games, compile_rules(RULES), table, np.tile(lineup, (blocks, 1)), np.zeros(1, VIEW))
    shot = games["shooter"].reshape(blocks, 4)
    mine_shot = shot == np.arange(4)
    return Figures(
        edge=4 / 3 * own(standings_of(games, compile_rules(RULES), POINTS)),
        card_points=own(games["points"]),
        shots=int(mine_shot.sum()),
        others_shots=int(((shot >= 0) & ~mine_shot).sum()),
    )


def own(by_seat: NDArray[Any]) -> NDArray[np.float64]:
    """The mean over the four seatings of a block of what the one against three scored."""
    means: NDArray[np.float64] = by_seat.reshape(-1, 4, 4).diagonal(axis1=1, axis2=2).mean(axis=1)
    return means


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


def search(best: Parameters, options: argparse.Namespace) -> Parameters:
    """Improve ``best`` until the time is up or Ctrl-C; each success goes on file."""
    rng, start, number = random.Random(options.seed), time.monotonic(), 0
    try:
        while time.monotonic() - start < 60 * options.minutes:
            number += 1
            new, seed = changed(best, options.only, options.step, rng), SEARCH_SEED * (options.seed + 1) + 2 * number
            mean, error = gain(new, best, FEW, seed)
            if mean > PROMISING * error:
                mean, error = gain(new, best, MANY, seed + 1)
                if mean > BETTER * error:
                    print(f"{time.monotonic() - start:5.0f} s, step {number}: {mean:+.3f} ± {error:.3f}, ", end="")
                    print(difference(new, best), flush=True)
                    best = new
                    save(options.file, best)
    except KeyboardInterrupt:
        print("broken off")
    print(f"{number} steps; best: {best}")
    return best


def confirm(found: Parameters, before: Parameters, blocks: int) -> None:
    """Print figures with 95 % intervals on deals that no search has seen."""
    print(f"{blocks} deals in four seatings, seed {CONFIRM_SEED}; ± is a 95 % interval")
    for name, others in {"random": RANDOM, "greedy-v1": GREEDY, "itself": found, "before": before}.items():
        figures = match(found, others, blocks, CONFIRM_SEED)
        edge, points = mean_interval(figures.edge), mean_interval(figures.card_points)
        shots, theirs = (rate_interval(n, 4 * blocks).mean for n in (figures.shots, figures.others_shots))
        print(
            f"against three {name:10} edge {edge.mean:+6.2f} ± {edge.margin:.2f}   card points {points.mean:5.2f} "
            f"± {points.margin:.2f}   deals shot {shots:.2%}, by others {theirs:.2%}",
            flush=True,
        )


def save(path: Path, parameters: Parameters) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(asdict(parameters), indent=2))


def load(path: Path | None) -> Parameters:
    fields: Mapping[str, float] = json.loads(path.read_text()) if path else {}
    return Parameters(**fields)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=5, help="time of the search")
    parser.add_argument("--step", type=float, default=0.3, help="size of a change, as a share of the parameter")
    names = list(asdict(Parameters()))
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="NAME", help="what to change")
    parser.add_argument("--seed", type=int, default=0, help="what changes and deals come from")
    parser.add_argument("--start", type=Path, help="file to begin with; by default the parameters in the code")
    parser.add_argument("--file", type=Path, default=ROOT / "runs" / "heuristic.json", help="where the best goes")
    parser.add_argument("--confirm", action="store_true", help="no search: figures of --start on fresh deals")
    parser.add_argument("--before", type=Path, help="file of the parameters to compare with when confirming")
    parser.add_argument("--deals", type=int, default=20_000, help="blocks when confirming")
    options = parser.parse_args()
    start = load(options.start)
    if not options.confirm:
        save(options.file, search(start, options))
    else:
        confirm(start, load(options.before), options.deals)


if __name__ == "__main__":
    main()
