"""Two reports: one with every part and names that are hard to show, one with as little as can be."""

from __future__ import annotations

import math

import numpy as np

from agents.behaviour import COUNTS
from agents.report import Report
from agents.results import (
    AgentCard,
    Behaviour,
    Difference,
    Fault,
    HeadToHead,
    Pace,
    Race,
    Rating,
    Result,
    Setup,
)
from agents.stats import Interval
from dnfh_env import Rules

MARKUP = "<script>alert('&')</script>[bold]\"$x$"
BROKEN = "two\nlines\udce9\u202e\x1b[31m"
LONG = "ppo:/home/somebody/experiments/2024-05-hearts/with a rather long name/" + "deeper/" * 12 + "best"
NAMES = (LONG, "heuristic:shot_try=3", "greedy-v1", MARKUP, BROKEN, "random")


def around(mean: float, margin: float, n: int = 2000) -> Interval:
    return Interval(mean, mean - margin, mean + margin, n)


def minimal() -> Report:
    """One contestant, one block."""
    setup = Setup(("greedy",), Rules.omnibus(), 3, against=("random",) * 3, deals=1)
    result = Result("greedy", ("random",) * 3, edge=Interval(1.0, -math.inf, math.inf, 1))
    return Report(setup, (result,), complete=False)


def everything() -> Report:
    """All parts, six names."""
    rng = np.random.default_rng(1)
    setup = Setup(NAMES, Rules(target=200), 7_000_000, "field", deals=2000, games=500)
    return Report(
        setup,
        tuple(_result(name, 6.0 - 3 * index) for index, name in enumerate(NAMES)),
        differences=tuple(_difference(index) for index in range(4)),
        head_to_head=_square(),
        ratings=tuple(Rating(name, around(150.0 - 61 * i, 22.0 + i)) for i, name in enumerate(NAMES)),
        races=(_race("edge", 40, rng), _race("win_share", 20, rng)),
        behaviour=tuple(_behaviour(name, rng) for name in NAMES[1:4]),
        paces=(Pace(LONG, 1_234_567, 0.00321, 0.5), Pace("random", 99, 12.0, 88.25)),
        faults=(
            Fault(MARKUP, "deal", 17, "action 62 (kitty) is illegal, allowed are: 2C", "trick <1>\nhand 2C & 3D", 62),
            Fault(BROKEN, "game", 4, "ValueError: no such card\nsee above", "hand: 2C 3C 4C", None),
            Fault(BROKEN, "game", 5, "not an action", "hand: 2C", 4_000),
        ),
        agents=(
            AgentCard("heuristic:shot_try=3", {"shot_try": 3, "weights": [0.5, 1.25], "<b>": "</b>"}),
            AgentCard(LONG, {}, "0123456789abcdef" * 4),
        ),
        seconds=12.5,
    )


def _result(name: str, edge: float) -> Result:
    others = tuple(other for other in NAMES if other != name)
    return Result(
        name,
        others,
        around(edge, 0.5),
        around(16.75 - edge, 0.4),
        Interval(0.02, 0.01, 0.04, 8000),
        None if name == "random" else around(0.25 + edge / 60, 0.03, 500),
        around(edge, 0.2),
        None if name == "random" else 4.5,
    )


def _difference(index: int) -> Difference:
    figure = "win_share" if index % 2 else "edge"
    value = around(0.031 if index % 2 else 2.9, 0.02)
    running = Interval(value.mean, value.low - 0.02, math.inf if index == 3 else value.high + 0.02, value.n)
    return Difference(NAMES[index], NAMES[index + 1], figure, value, running, None if index == 2 else 1.5 + index)


def _square() -> HeadToHead:
    count = len(NAMES)
    cells = tuple(
        tuple(None if i == j else around(0.25 + (j - i) / 25, 0.02) for j in range(count)) for i in range(count)
    )
    return HeadToHead("win share, one against three", NAMES, 0.25, cells)


def _race(figure: str, points: int, rng: np.random.Generator) -> Race:
    """Six random walks that settle."""
    blocks = tuple(int(block) for block in np.linspace(20, 2000, points))
    scale = 1.0 if figure == "edge" else 1 / 60
    ends = [scale * (6.0 - 3 * index) + (0.0 if figure == "edge" else 0.25) for index in range(len(NAMES))]
    means = [[end + scale * 15 * rng.normal() / block**0.5 for block in blocks] for end in ends]
    margins = [scale * 40 / block**0.5 for block in blocks]
    lows = [[None, *(mean - margin for mean, margin in zip(row[1:], margins[1:], strict=True))] for row in means]
    highs = [[None, *(mean + margin for mean, margin in zip(row[1:], margins[1:], strict=True))] for row in means]
    return Race(figure, NAMES, blocks, *(tuple(map(tuple, part)) for part in (means, lows, highs)))


def _behaviour(name: str, rng: np.random.Generator) -> Behaviour:
    """Counters that could be, more or less."""
    counts = {count: int(rng.integers(0, 900)) for count in COUNTS}
    edges = {count: int(rng.integers(-40_000, 40_000)) for count in COUNTS if count.startswith("edge:")}
    whole = {count: 4000 for count in COUNTS if count.startswith(("held:", "deals"))}
    return Behaviour(name, counts | edges | whole)
