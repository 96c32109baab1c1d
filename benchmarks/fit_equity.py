"""Fit a table of `dnfh_env.equity`, the chance of winning from scores and dealer, and measure how good it is.

Tables of four equal agents play whole games. What their deals brought, relative to the dealer, is drawn again and again
in made-up games, from scores as games have them and from scores of all kinds, which gives the chances that the network
is fitted to. Then other games, played and not made up, are compared with it.

    python benchmarks/fit_equity.py                       # some minutes; the table of Rules(), and the plot in docs/
    python benchmarks/fit_equity.py --rules my_rules.json --out my_table.json --agents heuristic

``my_rules.json`` holds `Rules.to_dict`. A preset's name does too: ``dnfh``, ``standard_hearts``, ``omnibus``.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numba import njit
from numpy.typing import NDArray

from agents.files import write_text
from dnfh_env._random import GOLDEN, below, mix
from dnfh_env.agent import ask, make_agent
from dnfh_env.cards import NUM_SEATS
from dnfh_env.engine import NO_SEAT, OVER, apply_all, keys_of, new_games
from dnfh_env.equity import FORMAT, PACKAGED, WEIGHTS, table_of, use_equity, win_chances
from dnfh_env.rules import Rules, compile_rules
from dnfh_env.view import views_of

ROOT = Path(__file__).resolve().parent.parent
PLOT = ROOT / "docs" / "equity.png"
PRESETS = {"dnfh": Rules, "standard_hearts": Rules.standard_hearts, "omnibus": Rules.omnibus}

SEED = 7_000_000
"""Of the games that are fitted; those that are compared have the next one, and evaluations others."""
GAMES = {"heuristic": 8000, "learned": 3000, "greedy-v1": 3000}
"""How many are played with each agent, to be fitted and to be compared; for an agent not named, `OTHER_GAMES`."""
OTHER_GAMES = 2000
STATES, MADE_UP = 200_000, 400
"""Scores that the network is fitted to, and made-up games from each."""
HELD_OUT, MADE_UP_THERE = 2000, 20_000
"""The same for scores that it is compared at."""
BATCH, EPOCHS, STEP = 1024, 100, 1e-2
LONGEST = 200
"""Deals after which a made-up game is given up; the lowest share it."""
SEATS = np.arange(NUM_SEATS)


# --- games that are played --------------------------------------------------------------------------------------


class Deals(NamedTuple):
    """Deals of whole games; seats are counted from the deal's dealer, who is 0."""

    game: NDArray[np.int64]
    scores: NDArray[np.int64]
    """``[N, 4]``: before the deal."""
    entered: NDArray[np.int64]
    """``[N, 4]``."""
    shooter: NDArray[np.int64]
    """``[N]``: who has won the game by this deal's shot, or `NO_SEAT`."""
    won: NDArray[np.float64]
    """``[N, 4]``: share of the win, at the game's end."""


def played(name: str, rules: Rules, count: int, seed: int) -> Deals:
    """All deals of so many games, in which the agent sits at all four seats."""
    agent, compiled = make_agent(name, rules), compile_rules(rules)
    games, live = new_games(rules, seed, np.arange(count)), np.arange(count)
    parts = []
    while len(live):
        now = games[live]
        before, dealers = now["scores"].astype(np.int64), now["dealer"].astype(np.int64)
        deal = now["deal"].copy()
        under_way = np.arange(len(now))
        while len(under_way):
            some = now[under_way]
            views = views_of(some, compiled, some["seat"].astype(np.int64))
            apply_all(some, compiled, ask(agent, views, keys_of(some), name))
            now[under_way] = some
            under_way = under_way[(some["deal"] == deal[under_way]) & (some["phase"] != OVER)]
        games[live] = now
        shooter = np.where(rules.shot == "game", now["shooter"].astype(np.int64), NO_SEAT)
        parts.append((live, dealers, before, now["entered"].astype(np.int64), shooter))
        live = live[now["phase"] != OVER]
    game, dealers, before, entered, shooter = (np.concatenate(part) for part in zip(*parts, strict=True))
    wins = games["winners"][:, None] >> SEATS & 1
    shares = (wins / np.maximum(wins.sum(axis=1, keepdims=True), 1))[game]
    shooter = np.where(shooter == NO_SEAT, NO_SEAT, (shooter - dealers) % NUM_SEATS)
    every = Deals(game, *(turned(x, dealers) for x in (before, entered)), shooter, turned(shares, dealers))
    return Deals(*(x[every.won.sum(axis=1) > 0] for x in every))  # without games that were cut off


def turned(values: NDArray[Any], dealers: NDArray[np.int64]) -> NDArray[Any]:
    """``[N, 4]`` by seat, counted from the dealer."""
    return np.take_along_axis(values, (dealers[:, None] + SEATS) % NUM_SEATS, axis=1)


# --- games that are made up -------------------------------------------------------------------------------------


@njit(cache=True)
def make_up(scores: Any, outcomes: Any, rules: Any, count: Any, seed: Any, out: Any) -> None:
    """Shares of the win, means of ``count`` games from each of ``scores``, ``int64[N, 4]``, into ``float64[N, 4]``.

    Seat 0 deals first. ``outcomes`` are ``int16[agents, M, 5]``: what the seats enter, counted from the dealer, and who
    has shot. Each game belongs to one of the agents.
    """
    totals = np.zeros(4, np.int64)
    for i in range(scores.shape[0]):
        state = mix(seed + np.uint64(i) * GOLDEN)
        for n in range(count):
            for s in range(4):
                totals[s] = scores[i, s]
            state = play_on(totals, outcomes[n % outcomes.shape[0]], rules[0], state, out[i])
        for s in range(4):
            out[i, s] /= count


@njit
def play_on(totals: Any, outcomes: Any, r: Any, state: Any, shares: Any) -> Any:
    """One game to its end (R16, R17); adds to ``shares``, and returns the state of the random numbers."""
    latched = False
    for dealer in range(LONGEST):
        state += GOLDEN
        brought = outcomes[below(outcomes.shape[0], mix(state))]
        for place in range(4):
            s = (dealer + place) & 3
            totals[s] += brought[place]
            latched |= totals[s] >= r.target
        if brought[4] >= 0:
            shares[(dealer + brought[4]) & 3] += 1.0
            return state
        if latched and (lowest_of(totals)[1] == 1 or not r.play_on):
            break
    low, count = lowest_of(totals)
    for s in range(4):
        if totals[s] == low:
            shares[s] += 1.0 / count
    return state


@njit
def lowest_of(totals: Any) -> Any:
    """The lowest total, and how many have it."""
    low, count = min(totals[0], totals[1], totals[2], totals[3]), 0
    for s in range(4):
        count += totals[s] == low
    return low, count


def outcomes_of(fields: list[Deals], rng: np.random.Generator) -> NDArray[np.int16]:
    """See `make_up`; as many of each agent's deals as there are of the fewest."""
    fewest = min(len(deals.game) for deals in fields)
    columns = [np.column_stack([deals.entered, deals.shooter]) for deals in fields]
    return np.stack([rng.permutation(x)[:fewest] for x in columns]).astype(np.int16)


def scores_to_fit(count: int, fields: list[Deals], rules: Rules, rng: np.random.Generator) -> NDArray[np.int64]:
    """``int64[count, 4]``: half as games had them, moved a little, and half from all that can be."""
    own = rng.permutation(np.concatenate([deals.scores for deals in fields]))
    own = np.resize(own, (count // 2, NUM_SEATS)) + np.rint(rng.normal(0, 0.02 * rules.target, (count // 2, 4)))
    size = 2 * count
    level, spread = rng.uniform(-0.2, 1.05, (size, 1)), rng.uniform(0, 0.45, (size, 1))
    wide = np.rint(rules.target * (level + spread * rng.normal(size=(size, NUM_SEATS))))
    wide = wide[(wide.max(axis=1) < rules.target) & (wide.min(axis=1) > -0.5 * rules.target)]
    both = np.concatenate([np.minimum(own, rules.target - 1), wide[: count - len(own)]])
    return rng.permutation(both).astype(np.int64)


# --- the network ------------------------------------------------------------------------------------------------


class Network(torch.nn.Module):
    """`dnfh_env.equity.speaks_for` and `chances`, for many scores at once; seat 0 deals."""

    def __init__(self) -> None:
        super().__init__()
        sizes = {"places": 0.5, "own": 0.7, "table": 0.7, "out": 0.1}
        drawn = {name: torch.nn.Parameter(size * torch.randn(WEIGHTS[name])) for name, size in sizes.items()}
        self.weights = torch.nn.ParameterDict(drawn)

    def forward(self, totals: torch.Tensor) -> torch.Tensor:
        """Logarithms of the chances, ``[N, 4]``, at totals in parts of the target."""
        w, rising = self.weights, totals.sort(dim=1).values
        togo = 1 - rising[:, 3:]
        scale = 1 / torch.sqrt(togo + 0.1)
        all_see = torch.cat([(rising[:, 1:] - rising[:, :1]) * scale, togo], dim=1) @ w["table"].T
        own = torch.nn.functional.pad((totals - rising[:, :1]) * scale, (0, 1))
        hidden = all_see[:, None, :] + own[:, :, None] * w["own"] + w["places"].T
        found = torch.log_softmax(torch.relu(hidden) @ w["out"], dim=1)
        return torch.logaddexp(found[:, :4], found[:, 4:] - np.log(4))


def fitted(scores: NDArray[np.int64], shares: NDArray[np.float64], rules: Rules, seed: int) -> dict[str, Any]:
    """Weights by name, as lists of rounded numbers."""
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    x = torch.tensor(scores / rules.target, dtype=torch.float32)
    y = torch.tensor(shares, dtype=torch.float32)
    network, steps = Network(), EPOCHS * (len(x) // BATCH)
    optimiser = torch.optim.Adam(network.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, STEP, total_steps=steps + 1)
    for _ in range(EPOCHS):
        order = torch.randperm(len(x))
        for start in range(0, len(x) - BATCH + 1, BATCH):
            rows = order[start : start + BATCH]
            loss = -(y[rows] * network(x[rows])).sum(dim=1).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
    return {name: np.round(w.detach().double().numpy(), 5).tolist() for name, w in network.weights.items()}


# --- how far it can be trusted ----------------------------------------------------------------------------------


def calibration(found: NDArray[np.float64], deals: Deals) -> dict[str, Any]:
    """Deciles of the chances of all seats: mean chance, share won and the half width of its 95 % interval, by games.

    ``error`` is the mean distance between the two, weighted by how often; ``noise`` what it would be by luck alone.
    """
    chance, won, game = found.ravel(), deals.won.ravel(), np.repeat(deals.game, NUM_SEATS)
    edges = np.quantile(chance, np.linspace(0.1, 0.9, 9))
    decile, rows = np.searchsorted(edges, chance), []
    for k in range(10):
        inside = decile == k
        mean, share = chance[inside].mean(), won[inside].mean()
        by_game = np.bincount(game[inside], won[inside] - chance[inside] - (share - mean))
        rows.append([mean, share, 1.96 * np.sqrt((by_game**2).sum()) / inside.sum()])
    table = np.array(rows)
    by_luck = np.sqrt(2 / np.pi) / 1.96
    return {
        "deals": len(deals.game),
        "games": len(np.unique(deals.game)),
        "error": round(float(np.abs(table[:, 0] - table[:, 1]).mean()), 5),
        "noise": round(float(by_luck * table[:, 2].mean()), 5),
        "deciles": np.round(table, 4).tolist(),
    }


def log_loss(found: NDArray[np.float64], won: NDArray[np.float64]) -> float:
    """Nats a deal."""
    return round(float(-(won * np.log(found)).sum(axis=1).mean()), 5)


def logistic(deals: Deals, rules: Rules, steepness: float) -> NDArray[np.float64]:
    """The plain alternative: a softmax of the scores alone."""
    numbers = -steepness * deals.scores / rules.target
    shares = np.exp(numbers - numbers.max(axis=1, keepdims=True))
    found: NDArray[np.float64] = shares / shares.sum(axis=1, keepdims=True)
    return found


def best_logistic(fields: list[Deals], rules: Rules) -> float:
    """The steepness with the least loss in the games that are fitted."""
    grid = np.arange(0.5, 15, 0.25)
    losses = [sum(log_loss(logistic(deals, rules, steepness), deals.won) for deals in fields) for steepness in grid]
    return float(grid[np.argmin(losses)])


def together(fields: list[Deals]) -> Deals:
    """As many games of each, in one."""
    games = min(len(np.unique(deals.game)) for deals in fields)
    parts = []
    for n, deals in enumerate(fields):
        number = np.unique(deals.game, return_inverse=True)[1]
        inside = number < games
        parts.append((number[inside] + n * games, *(column[inside] for column in deals[1:])))
    return Deals(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def compared(deals: Deals, rules: Rules, steepness: float) -> dict[str, Any]:
    """All figures of some games, under the table in use; a tie that is played on leaves it nothing to estimate."""
    open_games = deals.scores.max(axis=1) < rules.target
    deals = Deals(*(column[open_games] for column in deals))
    found = win_chances(deals.scores, 0, rules)
    return calibration(found, deals) | {
        "log_loss": log_loss(found, deals.won),
        "log_loss_logistic": log_loss(logistic(deals, rules, steepness), deals.won),
        "log_loss_uniform": log_loss(np.full_like(found, 1 / NUM_SEATS), deals.won),
    }


def draw(path: Path, figures: dict[str, Any]) -> None:
    """The calibration plot."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], color="grey", linewidth=0.8)
    for name, found in figures.items():
        chance, won, half = np.array(found["deciles"]).T
        axes.errorbar(chance, won, yerr=half, marker="o", markersize=4, linewidth=0.8, capsize=2, label=name)
    axes.set(xlabel="chance of winning by the table", ylabel="share of the win", xlim=(0, 1), ylim=(0, 1))
    axes.legend(title="games of")
    figure.savefig(path, dpi=90)


# --- all of it --------------------------------------------------------------------------------------------------


def fit(rules: Rules, names: list[str], others: list[str], scale: float) -> dict[str, Any]:
    """What goes into the file."""
    rng = np.random.default_rng(SEED)
    counts = {name: max(2, round(scale * GAMES.get(name, OTHER_GAMES))) for name in names + others}
    fields = [played(name, rules, counts[name], SEED) for name in names]
    outcomes, compiled = outcomes_of(fields, rng), compile_rules(rules)
    scores, shares = scores_to_fit(STATES, fields, rules, rng), np.zeros((STATES, NUM_SEATS))
    make_up(scores, outcomes, compiled, MADE_UP, np.uint64(SEED), shares)
    content: dict[str, Any] = {
        "format": FORMAT,
        "rules": rules.to_dict(),
        "recipe": {
            "agents": names,
            "games": [counts[name] for name in names],
            "deals": [len(deals.game) for deals in fields],
            "seed": SEED,
            "states": STATES,
            "made_up": MADE_UP,
            "epochs": EPOCHS,
        },
        "weights": fitted(scores, shares, rules, SEED),
    }
    use_equity(table_of(content))
    there, expected = scores_to_fit(HELD_OUT, fields, rules, rng), np.zeros((HELD_OUT, NUM_SEATS))
    make_up(there, outcomes, compiled, MADE_UP_THERE, np.uint64(SEED + 1), expected)
    content["rms_error_of_the_fit"] = round(float(np.sqrt(((win_chances(there, 0, rules) - expected) ** 2).mean())), 5)
    fresh = {name: played(name, rules, counts[name], SEED + 1) for name in names + others}
    if len(names) > 1:
        fresh = {" and ".join(names): together([fresh[name] for name in names])} | fresh
    steepness = best_logistic(fields, rules)
    content["calibration"] = {name: compared(deals, rules, steepness) for name, deals in fresh.items()}
    return content


def rules_named(name: str) -> Rules:
    """A preset, or the rules in a JSON file."""
    return PRESETS[name]() if name in PRESETS else Rules.from_dict(json.loads(Path(name).read_text(encoding="utf-8")))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rules", default="dnfh", help="a preset, or a JSON file")
    parser.add_argument("--agents", nargs="+", default=["heuristic", "learned"], help="whose games are fitted")
    parser.add_argument("--others", nargs="*", default=["greedy-v1"], help="whose games are only compared")
    parser.add_argument("--scale", type=float, default=1.0, help="play so many times the games")
    parser.add_argument("--out", type=Path, help="the file; else that of the packaged table")
    parser.add_argument("--plot", type=Path, help=f"the plot; else {PLOT.relative_to(ROOT)}, if --out is not given")
    options = parser.parse_args()
    rules = rules_named(options.rules)
    content = fit(rules, options.agents, options.others, options.scale)
    for name, figures in content["calibration"].items():
        print(name, {key: value for key, value in figures.items() if key != "deciles"})
    print("root mean square error of the fit", content["rms_error_of_the_fit"])
    path = options.out or PACKAGED / f"{rules.play_digest()}.json"
    write_text(path, json.dumps(content, indent=1, allow_nan=False) + "\n")
    plot = options.plot or (None if options.out or options.rules != "dnfh" else PLOT)
    if plot:
        draw(plot, content["calibration"])


if __name__ == "__main__":
    main()
