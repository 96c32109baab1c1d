"""A `Report` of an evaluation: what was asked for and what came out, as files and read back."""

from __future__ import annotations

import csv
import io
import json
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numba
import numpy as np

from agents.files import put
from agents.plain import decoded, encoded
from agents.report.figures import one_line, shown_figures
from agents.report.page import write_page
from agents.report.picture import plot
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
from dnfh_env import __version__
from dnfh_env.errors import ArgumentError, DnfhError, shown

FILE_NAME = "report.json"
PLOT_NAME = "report.png"
CSV_NAME = "report.csv"
PAGE_NAME = "report.html"

_NO_FIGURES = ("versions", "seconds", "paces")
"""Parts of a report that differ from run to run."""


def versions() -> dict[str, str]:
    """What results may depend on beside the seed."""
    return {
        "dnfh": __version__,
        "numpy": np.__version__,
        "numba": numba.__version__,
        "python": platform.python_version(),
    }


@dataclass(frozen=True)
class Report:
    """What was asked for and what came out. The same setup gives the same one, but for paces, seconds and versions.

    Raises `ArgumentError` without a result, and for tables of which rows and names do not agree.
    """

    setup: Setup
    results: tuple[Result, ...]
    """At least one."""
    differences: tuple[Difference, ...] = ()
    head_to_head: HeadToHead | None = None
    ratings: tuple[Rating, ...] = ()
    races: tuple[Race, ...] = ()
    behaviour: tuple[Behaviour, ...] = ()
    paces: tuple[Pace, ...] = ()
    faults: tuple[Fault, ...] = ()
    agents: tuple[AgentCard, ...] = ()
    complete: bool = True
    """False if it was broken off."""
    seconds: float | None = None
    """How long it took."""
    versions: Mapping[str, str] = field(default_factory=versions)

    def __post_init__(self) -> None:
        if not self.results:
            raise ArgumentError("report: results: expected at least one, got none")
        if self.head_to_head is not None:
            _check_table("head_to_head", [self.head_to_head.cells], self.head_to_head.names, self.head_to_head.names)
        for index, race in enumerate(self.races):
            _check_table(f"races[{index}]", [race.means, race.lows, race.highs], race.names, race.blocks)

    def to_dict(self) -> dict[str, Any]:
        """As JSON values, all numbers finite: an infinite bound is null."""
        values: dict[str, Any] = encoded(self)
        values["setup"]["rules_digest"] = self.setup.rules.digest()
        return values

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Report:
        """The inverse of `to_dict`; raises `DnfhError` for anything else."""
        setup = values.get("setup") if isinstance(values, Mapping) else None
        if not isinstance(setup, Mapping):
            raise ArgumentError(f"report: expected what `to_dict` writes, with a setup, got {shown(values)}")
        setup = dict(setup)
        digest = setup.pop("rules_digest", None)
        report: Report = decoded(cls, {**values, "setup": setup}, "report")
        if digest != report.setup.rules.digest():
            raise ArgumentError(
                f"report: its rules have the digest {report.setup.rules.digest()}, not {shown(digest)}, so they or it "
                "were changed"
            )
        return report

    def save(self, folder: str | Path) -> None:
        """Write `FILE_NAME`, `CSV_NAME`, `PLOT_NAME` and `PAGE_NAME` into ``folder``, which is made if need be.

        Each is written beside and put into place when it is whole. Needs matplotlib.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(self.to_dict(), indent=2, allow_nan=False)
        put(folder / FILE_NAME, lambda path: path.write_text(text + "\n", encoding="utf-8"))
        put(folder / CSV_NAME, lambda path: path.write_text(csv_of(self), encoding="utf-8", newline=""))
        put(folder / PAGE_NAME, lambda path: write_page(self, path))
        put(folder / PLOT_NAME, lambda path: plot(self, path))

    @classmethod
    def load(cls, path: str | Path) -> Report:
        """Read what `save` wrote, from its folder or its JSON file.

        Raises ``OSError`` if it is not there, `DnfhError` if it is something else.
        """
        path = Path(path)
        path = path / FILE_NAME if path.is_dir() else path
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:  # of the text, its encoding, or numbers of thousands of digits
            raise ArgumentError(f"{path}: not JSON: {error}") from error
        try:
            return cls.from_dict(values)
        except DnfhError as error:
            raise type(error)(f"{path}: {error}") from error


def same_figures(first: Report, second: Report) -> list[str]:
    """Where two reports of one setup differ, a line for each number or text; none if one is a rerun of the other.

    Versions, seconds and paces are left out, and so are the messages of faults, which may name places in memory.
    """
    old, new = dict(_leaves(_comparable(first), "")), dict(_leaves(_comparable(second), ""))
    absent = object()
    return [
        f"{place}: {_told(old, place)}, then {_told(new, place)}"
        for place in dict.fromkeys([*old, *new])
        if old.get(place, absent) != new.get(place, absent)
    ]


def _comparable(report: Report) -> dict[str, Any]:
    values = {name: part for name, part in report.to_dict().items() if name not in _NO_FIGURES}
    faults = [{name: part for name, part in fault.items() if name != "message"} for fault in values["faults"]]
    return values | {"faults": faults}


def _leaves(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    """Each number or text within JSON values, and where it is."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield from _leaves(part, f"{place}.{name}" if place else name)
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from _leaves(part, f"{place}[{index}]")
    else:
        yield place, value


def _told(leaves: Mapping[str, Any], place: str) -> str:
    return shown(leaves[place]) if place in leaves else "nothing"


def csv_of(report: Report) -> str:
    """The results as CSV: a line for each result and figure, with no text where there is no number."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("contestant", "against", "figure", "mean", "low", "high", "n"))
    for result in report.results:
        who = (one_line(result.contestant), "; ".join(map(one_line, result.against)))
        for figure in shown_figures([result]):
            interval = encoded(getattr(result, figure.name))
            writer.writerow((*who, figure.name, *interval.values()))
        if result.luck_factor is not None:
            writer.writerow((*who, "luck_factor", encoded(result.luck_factor), None, None, None))
    return text.getvalue()


def _check_table(where: str, tables: Sequence[Sequence[Sequence[Any]]], rows: Sequence[Any], columns: Any) -> None:
    for table in tables:
        if len(table) != len(rows) or any(len(row) != len(columns) for row in table):
            raise ArgumentError(f"report: {where}: expected {len(rows)} rows of {len(columns)}")
