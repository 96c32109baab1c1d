"""Charts of a report's page: HTML with SVG in it.

Coordinates along a chart are percentages, so that it takes the width there is and its text keeps its size.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape

from agents.report.figures import Figure, escaped, shortened, span_of
from agents.results import Race
from agents.stats import Interval

NAME = 36
"""Characters of a name, longer ones are cut."""
COLOURS = 8
"""Of the lines of a race, ``--s0`` on in the template."""
HEIGHT = 280
"""Of a race, in pixels."""
LABEL = 15
"""Pixels between the labels of two lines."""


def whiskers(figure: Figure, rows: Sequence[tuple[str, Interval]], par: float | None) -> str:
    """A line for each name: mean and interval, and the numbers in words."""
    ends = [end for _, interval in rows for end in (interval.mean, interval.low, interval.high)]
    held = [end for end in [*ends, *([] if par is None else [par])] if math.isfinite(end)]
    margin = 0.06 * (max(held) - min(held)) or 1.0
    span = min(held) - margin, max(held) + margin
    dashes = "" if par is None else _upright(_at(par, span), "0", "100%", "par")
    lines = [
        f'<div class="row"><span class="who" title="{escaped(name)}">{escape(shortened(name, NAME))}</span>'
        f'<svg class="whisker" aria-hidden="true">{dashes}{_whisker(interval, span)}</svg>'
        f'<span class="number">{figure.text(interval)}</span></div>'
        for name, interval in rows
    ]
    texts = "".join(
        f'<text class="middle" x="{_at(tick, span):.2f}%" y="13">{figure.short(tick)}</text>'
        for tick in _ticks(figure, span)
    )
    axis = f'<div class="row"><span></span><svg class="ticks" aria-hidden="true">{texts}</svg><span></span></div>'
    return "".join([*lines, axis])


def _whisker(interval: Interval, span: tuple[float, float]) -> str:
    """In a frame of its own, of which 0 is the middle of the row."""
    low, mean, high = (_at(value, span) for value in (interval.low, interval.mean, interval.high))
    return (
        f'<svg y="50%"><line class="reach" x1="{low:.2f}%" x2="{high:.2f}%"/>'
        f"{_upright(low, '-5', '5', 'reach')}{_upright(high, '-5', '5', 'reach')}"
        f'<circle class="mean" cx="{mean:.2f}%" r="4.5"/></svg>'
    )


def _upright(x: float, top: str, bottom: str, kind: str) -> str:
    return f'<line class="{kind}" x1="{x:.2f}%" x2="{x:.2f}%" y1="{top}" y2="{bottom}"/>'


def _at(value: float, span: tuple[float, float]) -> float:
    """How far into the span, in percent; what lies outside is put just outside."""
    low, high = span
    return 100 * min(max((value - low) / (high - low), -0.1), 1.1)


def _ticks(figure: Figure, span: tuple[float, float]) -> list[float]:
    """Round numbers, three to six of them, off the very ends."""
    low, high = span
    width = figure.scale * (high - low)
    power = 10.0 ** math.floor(math.log10(width / 4))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= width / 5) / figure.scale
    ticks = (step * index for index in range(math.ceil(low / step), math.floor(high / step) + 1))
    return [tick for tick in ticks if 4 < _at(tick, span) < 96]


def race_lines(race: Race, figure: Figure, par: float | None, label: str) -> str:
    """The lines with their bands, what they are called at the right, and both axes."""
    span = span_of(race, par)
    dashes = (
        "" if par is None else f'<line class="par" x1="0" x2="1000" y1="{_y(par, span):.1f}" y2="{_y(par, span):.1f}"/>'
    )
    drawn = "".join(f'<g class="s{index % COLOURS}">{_line(race, index, span)}</g>' for index in range(len(race.names)))
    sides = "".join(
        f'<text class="end" x="100%" y="{_y(tick, span) + 4:.1f}">{figure.short(tick)}</text>'
        for tick in _ticks(figure, span)
    )
    first, last = race.blocks[0], race.blocks[-1]
    return (
        f'<div class="race" role="img" aria-label="{label}"><svg>{sides}</svg>'
        f'<svg class="lines" viewBox="0 0 1000 {HEIGHT}" preserveAspectRatio="none">{dashes}{drawn}</svg>'
        f"<svg>{_labels(race, span)}</svg>"
        f'<svg class="ticks"><text x="0" y="14">{first:,}</text>'
        f'<text class="end" x="100%" y="14">{last:,} blocks</text></svg></div>'
    )


def _line(race: Race, index: int, span: tuple[float, float]) -> str:
    """A mean's line and its band."""
    across = [1000 * (block - race.blocks[0]) / ((race.blocks[-1] - race.blocks[0]) or 1) for block in race.blocks]
    known = [
        (x, low, high)
        for x, low, high in zip(across, race.lows[index], race.highs[index], strict=True)
        if low is not None and high is not None and math.isfinite(high - low)
    ]
    border = [*((x, high) for x, _, high in known), *((x, low) for x, low, _ in reversed(known))]
    band = f'<path class="band" d="{_path(border, span)}Z"/>' if known else ""
    mean = zip(across, race.means[index], strict=True)
    return f'{band}<path class="line" d="{_path(mean, span)}"/>'


def _path(points: Iterable[tuple[float, float]], span: tuple[float, float]) -> str:
    return "M" + "L".join(f"{x:.1f} {_y(value, span):.1f}" for x, value in points)


def _y(value: float, span: tuple[float, float]) -> float:
    return HEIGHT * (1 - _at(value, span) / 100)


def _labels(race: Race, span: tuple[float, float]) -> str:
    """Names at the ends of their lines, pushed apart where they would overlap."""
    order = sorted(range(len(race.names)), key=lambda index: -race.means[index][-1])
    heights = _apart([_y(race.means[index][-1], span) for index in order])
    return "".join(
        f'<text class="label s{index % COLOURS}" y="{height + 4:.1f}"><title>{escaped(race.names[index])}</title>'
        f"{escape(shortened(race.names[index], 12))}</text>"
        for index, height in zip(order, heights, strict=True)
    )


def _apart(heights: Sequence[float]) -> list[float]:
    """Rising heights moved as little as needed to lie `LABEL` apart, within the chart while that holds them."""
    moved: list[float] = []
    for height in heights:
        moved.append(max(height, moved[-1] + LABEL if moved else LABEL / 2))
    ceiling = HEIGHT - LABEL / 2
    for index in reversed(range(len(moved))):
        moved[index] = min(moved[index], ceiling)
        ceiling = moved[index] - LABEL
    return moved
