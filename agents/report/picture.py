"""The picture of a report: means, intervals and par, ratings, head-to-head and races, as far as there are any."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from agents.report.figures import (
    RATING,
    Figure,
    fair,
    figure_about,
    figure_of,
    headline,
    shortened,
    shown_figures,
    span_of,
)
from agents.results import HeadToHead, Race, Rating
from agents.stats import Interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import SubFigure

    from agents.report.document import Report

    Part = tuple[float, Callable[[SubFigure], None]]
    """Inches high, and what draws it."""

WIDTH = 13.0
NAME = 36
"""Characters of a name, longer ones are cut."""


def plot(report: Report, path: str | Path) -> None:
    """Draw a report into a PNG file; needs matplotlib, but no display."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    parts = _parts(report)
    canvas = Canvas(figsize=(WIDTH, sum(height for height, _ in parts)), layout="constrained")
    FigureCanvasAgg(canvas)
    rows = canvas.subfigures(len(parts), height_ratios=[height for height, _ in parts], squeeze=False)[:, 0]
    for row, (_, draw) in zip(rows, parts, strict=True):
        draw(row)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # a box stands for it
        canvas.savefig(path, dpi=150, format="png")


def _parts(report: Report) -> list[Part]:
    """What there is to draw, from the top down."""
    parts: list[Part] = [(1.6 + 0.4 * len(report.results), lambda row: _results(row, report))]
    if report.ratings:
        parts.append((1.2 + 0.35 * len(report.ratings), lambda row: _ratings(row, report.ratings)))
    if report.head_to_head is not None:
        square = report.head_to_head
        parts.append((1.4 + 0.6 * len(square.names), lambda row: _head_to_head(row, square)))
    races = [race for race in report.races if race.blocks]
    if races:
        parts.append((3.6, lambda row: _races(row, races, fair(report.setup.rules))))
    return parts


def _results(row: SubFigure, report: Report) -> None:
    figures, shares = shown_figures(report.results), fair(report.setup.rules)
    title = f"{headline(report.setup)}: means with 95 % intervals, dashed what is fair"
    row.suptitle(shortened(title, 150), fontsize=11, parse_math=False)
    panels = row.subplots(1, max(1, len(figures)), sharey=True, squeeze=False)[0]
    for ax, figure in zip(panels, figures, strict=False):
        _whiskers(ax, figure, [getattr(result, figure.name) for result in report.results], shares.get(figure.name))
    _names(panels[0], [result.contestant for result in report.results])


def _ratings(row: SubFigure, ratings: Sequence[Rating]) -> None:
    ordered = sorted(ratings, key=lambda rating: -rating.value.mean)
    ax = row.subplots()
    _whiskers(ax, RATING, [rating.value for rating in ordered], None)
    ax.set_title("ratings, Elo within the field", fontsize=10)
    _names(ax, [rating.name for rating in ordered])


def _whiskers(ax: Axes, figure: Figure, intervals: Sequence[Interval | None], par: float | None) -> None:
    """One figure of all names: means, intervals as whiskers, par as a dashed line."""
    if par is not None:
        ax.axvline(figure.scale * par, color="0.6", linestyle="--", linewidth=1)
    for row, interval in enumerate(intervals):
        if interval is not None:
            mean, low, high = (figure.scale * x for x in (interval.mean, interval.low, interval.high))
            whiskers = [[mean - low], [high - mean]] if np.isfinite([low, high]).all() else None
            ax.errorbar([mean], [row], xerr=whiskers, fmt="o", color="C0", markersize=3.5, capsize=4)
    ax.set_title(figure.title, fontsize=10)
    ax.locator_params(axis="x", nbins=5)
    ax.grid(axis="x", alpha=0.3)


def _names(ax: Axes, names: Sequence[str]) -> None:
    """Names at the left, the first at the top."""
    ax.set_yticks(range(len(names)), [shortened(name, NAME) for name in names], parse_math=False)
    ax.set_ylim(len(names) - 0.5, -0.5)


def _head_to_head(row: SubFigure, square: HeadToHead) -> None:
    """The square in colours, with its numbers."""
    figure = figure_about(square.par)
    means: Any = [[np.nan if cell is None else cell.mean for cell in line] for line in square.cells]
    reach = max(np.nanmax(np.abs(np.array(means) - square.par), initial=0.0), 1e-9)
    ax = row.subplots()
    ax.imshow(means, "RdBu", vmin=square.par - 2 * reach, vmax=square.par + 2 * reach, aspect="auto")
    for i, line in enumerate(square.cells):
        for j, cell in enumerate(line):
            ax.text(j, i, figure.text(cell).replace(" ", "\n", 1), ha="center", va="center", fontsize=8)
    ax.set_title(
        f"{shortened(square.title, 100)}; row against column, {figure.short(square.par)} is par",
        fontsize=10,
        parse_math=False,
    )
    ax.set_xticks(range(len(square.names)), [shortened(name, 18) for name in square.names], parse_math=False)
    _names(ax, square.names)


def _races(row: SubFigure, races: Sequence[Race], shares: Mapping[str, float]) -> None:
    panels = row.subplots(1, len(races), squeeze=False)[0]
    for ax, race in zip(panels, races, strict=True):
        _race(ax, race, shares.get(race.figure))


def _race(ax: Axes, race: Race, par: float | None) -> None:
    """Means as lines, running intervals as bands."""
    figure = figure_of(race.figure)
    for index, name in enumerate(race.names):
        means, lows, highs = (
            figure.scale * np.array(part[index], float) for part in (race.means, race.lows, race.highs)
        )
        (line,) = ax.plot(race.blocks, means)
        ax.fill_between(race.blocks, lows, highs, color=line.get_color(), alpha=0.12, linewidth=0)
        ax.annotate(
            shortened(name, 18),
            (race.blocks[-1], means[-1]),
            (4, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
            parse_math=False,
        )
    if par is not None:
        ax.axhline(figure.scale * par, color="0.6", linestyle="--", linewidth=1)
    low, high = span_of(race, par)
    ax.set_ylim(figure.scale * low, figure.scale * high)
    ax.set_title(f"{shortened(figure.title, 60)} as blocks came in, with the running interval", fontsize=10)
    ax.set_xlim(race.blocks[0], race.blocks[-1] + 0.3 * (race.blocks[-1] - race.blocks[0]) + 1)  # room for names
    ax.set_xlabel("blocks")
    ax.grid(alpha=0.3)
