"""The figures of a `Result`: what they are called, what they mean, what is fair, how they are written."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from agents.results import Race, Result, Setup
from agents.stats import Interval
from dnfh_env.rules import Rules

NONE = "–"
"""Stands for what there is not."""


@dataclass(frozen=True)
class Figure:
    """How one figure of a `Result` is shown."""

    name: str
    """The field of `Result`."""
    title: str
    scale: float
    """What it is multiplied by: 100 for percent."""
    format: str
    """Of one number, as in `format`."""
    meaning: str

    def number(self, value: float) -> str:
        """One value, scaled."""
        return format(self.scale * value, self.format).replace("inf", "∞")

    def short(self, value: float) -> str:
        """One value, scaled, without digits that say nothing: for ticks and par."""
        return f"{self.scale * value:.6g}"

    def bounds(self, interval: Interval | None) -> str:
        """The interval alone, if there is one already."""
        return (
            NONE
            if interval is None or math.isinf(interval.margin)
            else f"[{self.number(interval.low)}, {self.number(interval.high)}]"
        )

    def brief(self, interval: Interval | None) -> str:
        """Mean and margin where the interval lies evenly about the mean, else as `text`."""
        if interval is None or not math.isfinite(interval.margin):
            return self.text(interval)
        even = math.isclose(interval.mean - interval.low, interval.high - interval.mean, rel_tol=1e-6, abs_tol=1e-12)
        margin = format(self.scale * interval.margin, self.format.lstrip("+"))
        return f"{self.number(interval.mean)} ± {margin}" if even else self.text(interval)

    def text(self, interval: Interval | None) -> str:
        """Mean and interval."""
        return NONE if interval is None else f"{self.number(interval.mean)} {self.bounds(interval)}"


FIGURES = (
    Figure(
        "edge",
        "edge",
        1,
        "+.2f",
        "points a deal: mean of the other three minus mine, a shot game at its worth instead of the points taken",
    ),
    Figure("adjusted_edge", "edge, luck out", 1, "+.2f", "the same with the luck of the cards taken out"),
    Figure("card_points", "card points", 1, ".2f", "points of the cards taken in a deal; fewer is better"),
    Figure("shots", "shots, % of deals", 100, ".2f", "deals in which the contestant took all shot cards"),
    Figure("win_share", "win share, % of games", 100, ".1f", "share of the win in whole games"),
)
EDGE = FIGURES[0]
SHARE = Figure("", "share, %", 100, ".1f", "")
"""A rate that is no figure of a result."""
RATING = Figure("", "rating", 1, ".0f", "")

_TITLES = {
    "1v3": "one against three of each other",
    "2v2": "two against two",
    "field": "all line-ups of the field",
}


def fair(rules: Rules) -> dict[str, float]:
    """What each of four equal players scores, by name of `Result`'s fields; there is none for shots."""
    return {"edge": 0.0, "adjusted_edge": 0.0, "card_points": rules.deal_total / 4, "win_share": 1 / 4}


def shown_figures(results: Sequence[Result]) -> list[Figure]:
    """Those that any of the results has."""
    return [figure for figure in FIGURES if any(getattr(result, figure.name) is not None for result in results)]


def opponents_differ(results: Sequence[Result]) -> bool:
    """Whether a contestant has results against several others, so that a table has to say which."""
    return len({result.contestant for result in results}) < len(results)


def figure_of(name: str, *, signed: bool = False) -> Figure:
    """A figure by name, for differences with a sign; one of a name that nobody knows is shown as a plain number."""
    found = next((figure for figure in FIGURES if figure.name == name), Figure(name, name, 1, ".2f", ""))
    spec = "+" + found.format.lstrip("+") if signed else found.format
    return Figure(name, found.title, found.scale, spec, found.meaning)


def figure_about(par: float) -> Figure:
    """How numbers are written of which only what equals score is known: shares of 1 in percent, others as points."""
    return SHARE if 0 < par < 1 else EDGE


def span_of(race: Race, par: float | None) -> tuple[float, float]:
    """From where to where a race is drawn: all that its second half holds, since the first bounds are far out."""
    half = len(race.blocks) // 2
    rows = (row[half:] for part in (race.means, race.lows, race.highs) for row in part)
    held = [value for row in rows for value in row if value is not None and math.isfinite(value)]
    held += [] if par is None else [par]
    low, high = min(held, default=0.0), max(held, default=0.0)
    margin = 0.05 * (high - low) or 1.0
    return low - margin, high + margin


def headline(setup: Setup) -> str:
    """Against whom, in words: one name if the three others are alike."""
    if not setup.against:
        return _TITLES.get(setup.format, setup.format)
    others = setup.against[:1] if len(set(setup.against)) == 1 else setup.against
    return "against " + ", ".join(map(one_line, others))


def opponents(result: Result) -> str:
    """The others of a result in words, a name once."""
    return ", ".join(map(one_line, dict.fromkeys(result.against)))


def asked(setup: Setup) -> str:
    """How much was asked for."""
    return f"blocks of one deal: {setup.deals}, of one whole game: {setup.games}"


def one_line(text: str) -> str:
    """A name in one line: what cannot be printed, and what turns the direction of writing, as an escape."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def escaped(text: str) -> str:
    """A name in one line as HTML, within an attribute as well."""
    return escape(one_line(text))


def shortened(text: str, length: int) -> str:
    """A name in one line of at most ``length`` characters, cut in the middle, since the end of a path tells most."""
    text = one_line(text)
    head = (length - 1) // 3
    return text if len(text) <= length else f"{text[:head]}…{text[head + 1 - length :]}"


def pairs(values: Mapping[str, object]) -> str:
    """Names and values in a line."""
    return ", ".join(f"{one_line(name)}={one_line(str(value))}" for name, value in values.items())


def times(factor: float | None) -> str:
    """A factor."""
    return NONE if factor is None else f"×{factor:.2f}"
