"""Fit ``agents/hand_value.json``, what a dealt hand is worth, and measure by how much `agents.luck` cuts variances.

A hand's value is what its features add to the edge of ``heuristic`` among its like: ridge regression over all seats
of many deals, once on all features and once on the cards alone.

    python benchmarks/fit_hand_value.py            # a minute or two, writes agents/hand_value.json
    python benchmarks/fit_hand_value.py --measure  # prints factors, with the file as it is
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agents import luck
from agents.files import write_text
from agents.referee import play_last_cards
from dnfh_env.agent import Agent, FusedAgent, StochasticAgent, ask, make_agent
from dnfh_env.cards import CARD_NAMES, NUM_CARDS, NUM_SEATS
from dnfh_env.engine import OVER, apply_all, keys_of, new_games
from dnfh_env.objective import EDGE, POINTS, standings_of
from dnfh_env.rules import Rules, compile_rules
from dnfh_env.view import views_of

AGENT = "heuristic"
RULES = Rules(max_deals=1)
DECISIONS = 65
"""Of a deal under these rules."""
SEED = 6_000_000
"""Of the deals that are fitted; evaluations have others."""
MEASURE_SEED = 6_500_000
DEALS, CHUNK = 400_000, 20_000
RIDGE = 50.0


def self_play(deals: int, seed: int) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.float64]]]:
    """Hands ``uint64[n]`` and edges ``float64[n]`` of all seats, in chunks."""
    agent, compiled = make_agent(AGENT, RULES), compile_rules(RULES)
    assert isinstance(agent, FusedAgent)
    for first in range(0, deals, CHUNK):
        games = new_games(RULES, seed, np.arange(first, min(first + CHUNK, deals)))
        hands = games["hand"].copy()
        agent.play_fused(games, compiled, DECISIONS - 1)  # with the last one it would begin the next game
        play_last_cards(games, compiled)
        yield hands.ravel(), EDGE * standings_of(games, compiled, POINTS).ravel()


def fit(deals: int, seed: int) -> dict[str, Any]:
    """What goes into the file."""
    names = luck.hand_feature_names()
    products, sums = np.zeros((len(names), len(names))), np.zeros(len(names))
    for hands, edges in self_play(deals, seed):
        x = luck.hand_covariates(hands)
        products += np.einsum("ij,ik->jk", x, x)
        sums += np.einsum("ij,i->j", x, edges)  # edges sum to 0 over the seats: no constant
    return {
        "format": luck.HAND_VALUE_FORMAT,
        "agent": AGENT,
        "rules": RULES.digest(),
        "seed": seed,
        "deals": deals,
        "ridge": RIDGE,
        "features": solved(products, sums, names),
        "cards": solved(products[:NUM_CARDS, :NUM_CARDS], sums[:NUM_CARDS], CARD_NAMES),
    }


def solved(products: NDArray[np.float64], sums: NDArray[np.float64], names: Any) -> dict[str, float]:
    """Coefficients of a ridge regression by name, in points of edge a deal."""
    found = np.linalg.solve(products + RIDGE * np.eye(len(sums)), sums)
    return {name: round(float(x), 4) for name, x in zip(names, found, strict=True)}


def save(content: dict[str, Any], path: Path) -> None:
    """Write all of it or nothing."""
    write_text(path, json.dumps(content, indent=1) + "\n")


class Blocks(NamedTuple):
    """Deals with a contestant in each seat in turn; the second axis is its seat."""

    hands: NDArray[np.uint64]
    edges: NDArray[np.float64]
    kitty: NDArray[np.float64]
    draws: NDArray[np.float64]


def played(contestant: str, others: str, rules: Rules, deals: int) -> Blocks:
    compiled = compile_rules(rules)
    games = new_games(rules, MEASURE_SEED, np.repeat(np.arange(deals), NUM_SEATS))
    hands = games["hand"][::NUM_SEATS].copy()
    own = np.tile(np.arange(NUM_SEATS), deals)
    draws = np.zeros(len(games))
    agents = make_agent(contestant, rules), make_agent(others, rules)
    live = np.arange(len(games))
    while len(live):
        live = decided(games, live, own, agents, rules, draws)
    by_block = (deals, NUM_SEATS)
    rows = np.arange(len(games))
    edges = EDGE * standings_of(games, compiled, POINTS)[rows, own]
    kitty = luck.kitty_covariates(games)[rows, own]
    return Blocks(hands, edges.reshape(by_block), kitty.reshape(by_block), draws.reshape(by_block))


def decided(
    games: NDArray[Any],
    live: NDArray[np.int64],
    own: NDArray[np.int64],
    agents: tuple[Agent, Agent],
    rules: Rules,
    draws: NDArray[np.float64],
) -> NDArray[np.int64]:
    """One decision in each game that is live; the contestant's draws are added up. Returns those still live."""
    now, compiled = games.take(live), compile_rules(rules)
    views, keys = views_of(now, compiled, now["seat"].astype(np.int64)), keys_of(now)
    actions = np.empty(len(live), np.int64)
    for agent, turn in zip(agents, (now["seat"] == own[live], now["seat"] != own[live]), strict=True):
        asked = views[turn]
        actions[turn] = ask(agent, asked, keys[turn])
        if agent is agents[0] and isinstance(agent, StochasticAgent) and len(asked):
            draws[live[turn]] += luck.policy_covariates(asked, agent.probabilities(asked), actions[turn], rules)
    apply_all(now, compiled, actions)
    games.put(live, now)
    still: NDArray[np.int64] = live[now["phase"] != OVER]
    return still


KITTY_ONLY = RULES.replace(calls=("kitty",))
MATCHES = (
    ("heuristic", "greedy-v1", RULES),
    ("greedy-v1", "heuristic", RULES),
    ("heuristic", "heuristic", RULES),
    ("random", "greedy-v1", RULES),
    ("learned:sample=true", "heuristic", RULES),
    ("heuristic", "greedy-v1", KITTY_ONLY),
    ("greedy-v1", "heuristic", KITTY_ONLY),
    ("heuristic", "heuristic", KITTY_ONLY),
    ("random", "greedy-v1", KITTY_ONLY),
)


def measure(deals: int) -> None:
    """Print the factors: of one seat by hand, kitty and draws, of blocks by deal, kitty, draws, and all three."""
    print(f"{deals} deals, seed {MEASURE_SEED}")
    print(f"{'':42}one seat             block")
    print(f"{'contestant':20} {'others':10} {'calls':8}  {'hand   kitty  draws':22}{'deal   kitty  draws  all'}")
    for contestant, others, rules in MATCHES:
        factors = factors_of(played(contestant, others, rules, deals))
        calls = "kitty" if rules == KITTY_ONLY else "any"
        print(f"{contestant:20} {others:10} {calls:8} {' '.join(f'{x:6.3f}' for x in factors)}", flush=True)


def factors_of(b: Blocks) -> list[float]:
    one_seat, blocks = b.edges[:, 0], b.edges.mean(axis=1).round(9)  # equals come out at 0, not at rounding errors
    deal, kitty, draws = luck.deal_covariates(b.hands), b.kitty.mean(axis=1), b.draws.mean(axis=1)
    return [
        luck.single_seat(one_seat, b.hands[:, 0]).factor,
        *(luck.cross_fitted(one_seat, x).factor for x in (b.kitty[:, 0], b.draws[:, 0])),
        *(luck.cross_fitted(blocks, x).factor for x in (deal, kitty, draws, np.column_stack([deal, kitty, draws]))),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", action="store_true", help="print factors instead")
    parser.add_argument("--deals", type=int, help=f"how many; else {DEALS}, or 10000 with --measure")
    options = parser.parse_args()
    if options.measure:
        measure(options.deals or 10_000)
    else:
        save(fit(options.deals or DEALS, SEED), luck.HAND_VALUE)


if __name__ == "__main__":
    main()
