"""A report for a terminal: tables of what there is, and what to beware of in bold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from agents.ratings import ANCHOR, ANCHOR_RATING
from agents.report.figures import (
    RATING,
    Figure,
    fair,
    figure_of,
    headline,
    one_line,
    opponents,
    opponents_differ,
    shown_figures,
    times,
)
from agents.results import Difference, Fault, Rating, Result
from agents.stats import START

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

    from agents.report.document import Report

NAME = 16
"""Columns that a name has at least, of which it takes as many lines as it needs."""
CAPTION = (
    "Means with 95 % intervals over blocks played on the same cards. Edge: mean of the other three minus mine, a shot "
    "game at its worth instead of the points taken. Par is edge 0, {card_points:g} card points, {win_share:g} % of "
    "games.{luck}"
)
LUCK = " Luck out: with the luck of the cards taken out, which cuts the variance of a block by the factor behind it."


def table(report: Report) -> Group:
    """The report for a terminal, of what there is: results, differences, ratings, faults in bold; needs rich."""
    from rich.console import Group
    from rich.text import Text

    parts: list[Any] = [_results_table(report)]
    if report.differences:
        parts.append(_differences_table(report.differences))
    if report.ratings:
        parts.append(_ratings_table(report.ratings))
    if report.faults:
        parts.append(Text(_faults_line(report.faults), style="bold"))
    return Group(*(piece for part in parts for piece in (part, "")))


def _results_table(report: Report) -> Table:
    shares = fair(report.setup.rules)
    figures = shown_figures(report.results)
    differ = opponents_differ(report.results)
    lucky = any(result.luck_factor is not None for result in report.results)
    made = _table(
        headline(report.setup),
        ["contestant", *["against"] * differ],
        [figure.title for figure in figures],
        CAPTION.format(**(shares | {"win_share": 100 * shares["win_share"]}), luck=LUCK if lucky else ""),
    )
    for result in report.results:
        cells = [one_line(result.contestant), *[opponents(result)] * differ]
        cells += [_cell(figure, result) for figure in figures]
        _add(made, cells)
    return made


def _cell(figure: Figure, result: Result) -> str:
    """One figure; behind the one with luck out how much that gained."""
    gained = f" {times(result.luck_factor)}" if figure.name == "adjusted_edge" and result.luck_factor else ""
    return figure.brief(getattr(result, figure.name)) + gained


def _differences_table(differences: Sequence[Difference]) -> Table:
    made = _table(
        "differences, paired on the same cards",
        ["first", "second", "figure"],
        ["first minus second", "running", "pairing"],
        f"Running: holds at every moment of the run, from {START} blocks on, so that one may look and stop. Pairing: "
        "how many times the variance would be on cards of their own.",
    )
    for difference in differences:
        figure = figure_of(difference.figure, signed=True)
        names = [one_line(difference.first), one_line(difference.second), figure.title]
        numbers = [figure.brief(difference.value), figure.bounds(difference.running), times(difference.pairing_factor)]
        _add(made, names + numbers)
    return made


def _ratings_table(ratings: Sequence[Rating]) -> Table:
    caption = f"Relative to the field: {ANCHOR} is put at {ANCHOR_RATING:.0f}, or without it the mean."
    made = _table("ratings", ["name"], ["Elo"], caption)
    for rating in sorted(ratings, key=lambda rating: -rating.value.mean):
        _add(made, [one_line(rating.name), RATING.text(rating.value)])
    return made


def _faults_line(faults: Sequence[Fault]) -> str:
    """How many there are, and of whom."""
    names = [one_line(fault.name) for fault in faults]
    counts = ", ".join(f"{name} {names.count(name)}" for name in dict.fromkeys(names))
    first = faults[0]
    return (
        f"Faults: {counts}. Each played at random for the rest of its block, so its figures are not its own. "
        f"The first: {names[0]}, {first.unit} {first.block}: {one_line(first.message)}"
    )


def _table(title: str, left: Sequence[str], right: Sequence[str], caption: str) -> Table:
    """An empty one, with columns of text and columns of numbers."""
    from rich.table import Table
    from rich.text import Text

    made = Table(title=Text(title, style="table.title"), caption=caption, caption_justify="left")
    for name in left:
        made.add_column(name, overflow="fold", min_width=NAME)
    for name in right:
        made.add_column(name, justify="right")
    return made


def _add(made: Table, cells: Sequence[str]) -> None:
    """A row in which no name is taken for markup."""
    from rich.text import Text

    made.add_row(*map(Text, cells))
