"""A `Report` of results: one JSON file that says all, one table for the eye, one plot."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from agents.arena import Result
from agents.stats import Interval
from dnfh_env import __version__
from dnfh_env.errors import DnfhError
from dnfh_env.rules import Rules

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from rich.table import Table

FILE_NAME = "report.json"
PLOT_NAME = "report.png"


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

    def text(self, interval: Interval | None) -> str:
        """Mean and interval."""
        if interval is None:
            return "–"
        mean, low, high = (format(self.scale * x, self.format) for x in (interval.mean, interval.low, interval.high))
        return f"{mean} [{low}, {high}]"


FIGURES = (
    Figure("edge", "edge", 1, "+.2f"),
    Figure("card_points", "card points", 1, ".2f"),
    Figure("shots", "shots, % of deals", 100, ".2f"),
    Figure("win_share", "win share, % of games", 100, ".1f"),
)
INTERVALS = tuple(figure.name for figure in FIGURES)

CAPTION = (
    "Means with 95 % intervals; every deal and game is played in all four seatings. Edge: mean of the other three "
    "minus mine, a shot game at its worth instead of the points taken. A fair share is edge {edge:g}, {card_points:g} "
    "card points, {win_share:g} % of games."
)


def fair(rules: Rules) -> dict[str, float]:
    """What each of four equal players scores, by name of `Result`'s fields; there is none for shots."""
    return {"edge": 0.0, "card_points": rules.deal_total / 4, "win_share": 1 / 4}


def versions() -> dict[str, str]:
    """What results may depend on beside the seed."""
    return {"dnfh": __version__, "numpy": np.__version__}


@dataclass(frozen=True)
class Report:
    """Contestants against the same three others, under what, and what came out. The same command gives the same one."""

    rules: Rules
    seed: int
    deals: int
    """Blocks of one deal asked for; each interval's ``n`` says how much there is."""
    games: int
    """Blocks of one whole game asked for."""
    results: tuple[Result, ...]
    """At least one."""
    complete: bool = True
    """False if it was broken off."""
    versions: dict[str, str] = field(default_factory=versions)

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "versions": self.versions,
            "rules": self.rules.to_dict(),
            "rules_digest": self.rules.digest(),
            "seed": self.seed,
            "deals": self.deals,
            "games": self.games,
            "complete": self.complete,
            "results": [_result_to_dict(result) for result in self.results],
        }

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Report:
        """The inverse of `to_dict`; raises `DnfhError` for anything else."""
        try:
            rules = Rules.from_dict(fields["rules"])
            results = tuple(map(_result_from_dict, fields["results"]))
            if fields["rules_digest"] != rules.digest():
                raise DnfhError(f"report: its rules have the digest {rules.digest()}, not {fields['rules_digest']!r}")
            plain = {name: value for name, value in fields.items() if name != "rules_digest"}
            return cls(**plain | {"rules": rules, "results": results})
        except (KeyError, TypeError, AttributeError) as error:
            raise DnfhError(f"report: not made of what `to_dict` writes: {type(error).__name__} {error}") from error

    def save(self, folder: str | Path) -> None:
        """Write ``report.json`` and ``report.png`` into ``folder``, which is made if need be."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        new = folder / f"{FILE_NAME}.new"
        new.write_text(json.dumps(self.to_dict(), indent=2) + "\n", encoding="utf-8")
        new.replace(folder / FILE_NAME)
        plot(self, folder / PLOT_NAME)

    @classmethod
    def load(cls, folder: str | Path) -> Report:
        """Read what `save` wrote; raises ``OSError`` if it is not there, `DnfhError` if it is something else."""
        path = Path(folder) / FILE_NAME
        try:
            return cls.from_dict(json.loads(path.read_text(encoding="utf-8")))
        except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
            raise DnfhError(f"{path}: not JSON: {error}") from error


def _result_to_dict(result: Result) -> dict[str, Any]:
    fields: dict[str, Any] = {"contestant": result.contestant, "against": list(result.against)}
    for name in INTERVALS:
        interval = getattr(result, name)
        fields[name] = interval and interval.to_dict()
    return fields


def _result_from_dict(fields: dict[str, Any]) -> Result:
    left, across, right = fields["against"]
    intervals = {name: fields[name] and Interval.from_dict(fields[name]) for name in INTERVALS}
    return Result(fields["contestant"], (left, across, right), **intervals)


def against(report: Report) -> str:
    """The other three in words: one name if they are alike."""
    others = report.results[0].against
    return "against " + (others[0] if len(set(others)) == 1 else ", ".join(others))


def _plain(text: str) -> str:
    """Text in which matplotlib finds no formula."""
    return text.replace("$", r"\$")


def table(report: Report) -> Table:
    """The report for a terminal; needs rich."""
    from rich.table import Table

    shares = fair(report.rules)
    caption = CAPTION.format(**(shares | {"win_share": 100 * shares["win_share"]}))
    table = Table(title=against(report), caption=caption, caption_justify="left")
    table.add_column("contestant", overflow="fold")
    for figure in FIGURES:
        table.add_column(figure.title, justify="right")
    for result in report.results:
        table.add_row(result.contestant, *(figure.text(getattr(result, figure.name)) for figure in FIGURES))
    return table


def plot(report: Report, path: str | Path) -> None:
    """Draw means, intervals and fair shares into a PNG file; needs matplotlib, but no display."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    canvas = Canvas(figsize=(2.8 * len(FIGURES), 1.6 + 0.4 * len(report.results)), layout="constrained")
    FigureCanvasAgg(canvas)
    canvas.suptitle(
        f"{against(report).replace('$', chr(92) + '$')}: means with 95 % intervals, dashed what is fair", fontsize=11
    )
    axes = canvas.subplots(1, len(FIGURES), sharey=True)
    for ax, figure in zip(axes, FIGURES, strict=True):
        _panel(ax, figure, report)
    axes[0].set_yticks(range(len(report.results)), [_plain(result.contestant) for result in report.results])
    axes[0].set_ylim(len(report.results) - 0.5, -0.5)
    canvas.savefig(path, dpi=150)


def _panel(ax: Axes, figure: Figure, report: Report) -> None:
    """One figure of all contestants: means, intervals as whiskers, the fair share as a dashed line."""
    share = fair(report.rules).get(figure.name)
    if share is not None:
        ax.axvline(figure.scale * share, color="0.6", linestyle="--", linewidth=1)
    for row, result in enumerate(report.results):
        interval = getattr(result, figure.name)
        if interval is not None:
            mean, low, high = (figure.scale * x for x in (interval.mean, interval.low, interval.high))
            bounded = np.isfinite([low, high]).all()
            whiskers = [[mean - low], [high - mean]] if bounded else None
            ax.errorbar([mean], [row], xerr=whiskers, fmt="o", color="C0", markersize=3.5, capsize=4)
    ax.set_title(figure.title, fontsize=10)
    ax.locator_params(axis="x", nbins=5)
    ax.grid(axis="x", alpha=0.3)
