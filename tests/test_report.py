"""Reports as values and files: what is written is read back, what is broken is refused, reruns are told from others."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from agents.report import CSV_NAME, FILE_NAME, PAGE_NAME, PLOT_NAME, Report, csv_of, fair, plot, same_figures, table
from agents.report.figures import one_line, shortened
from agents.results import AgentCard, HeadToHead, Race
from agents.stats import Interval
from dnfh_env import Rules
from dnfh_env.errors import ArgumentError, DnfhError
from reports import BROKEN, LONG, MARKUP, NAMES, around, everything, minimal

REPORTS = pytest.mark.parametrize("make", [everything, minimal])


def printed(report: Report, width: int = 160) -> str:
    console = Console(width=width, file=io.StringIO(), color_system=None)
    console.print(table(report))
    return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]


@REPORTS
def test_it_goes_round_through_json(make: Callable[[], Report], tmp_path: Path) -> None:
    report = make()
    text = json.dumps(report.to_dict(), allow_nan=False)
    assert Report.from_dict(json.loads(text)) == report
    report.save(tmp_path / "new" / "folder")
    assert Report.load(tmp_path / "new" / "folder") == report
    assert Report.load(tmp_path / "new" / "folder" / FILE_NAME) == report
    files = {path.name for path in (tmp_path / "new" / "folder").iterdir()}
    assert files == {FILE_NAME, CSV_NAME, PLOT_NAME, PAGE_NAME}
    assert (tmp_path / "new" / "folder" / PLOT_NAME).read_bytes().startswith(b"\x89PNG")


def test_it_says_what_figures_depend_on() -> None:
    written = minimal().to_dict()
    assert written["setup"]["rules"] == Rules.omnibus().to_dict()
    assert written["setup"]["rules_digest"] == Rules.omnibus().digest()
    assert written["setup"]["seed"] == 3
    assert set(written["versions"]) == {"dnfh", "numpy", "numba", "python"}
    assert written["results"][0]["edge"] == {"mean": 1.0, "low": None, "high": None, "n": 1}
    assert everything().to_dict()["agents"][1]["weights"] == "0123456789abcdef" * 4


def test_parameters_that_json_does_not_know_are_written_somehow() -> None:
    parameters = {"a": np.float64(0.5), "b": np.arange(2), "c": math.inf, "d": {1: Path("x")}, "e": (1, None)}
    report = replace(minimal(), agents=(AgentCard("a", parameters),))
    (card,) = json.loads(json.dumps(report.to_dict(), allow_nan=False))["agents"]
    assert card["parameters"] == {"a": 0.5, "b": [0, 1], "c": None, "d": {"1": repr(Path("x"))}, "e": [1, None]}


def changed(values: Any, place: str, value: Any) -> Any:
    """A copy with the value at ``a.0.b`` put in, or taken out if it is `KeyError`."""
    name, _, rest = place.partition(".")
    key: Any = int(name) if isinstance(values, list) else name
    copied = values.copy()
    if value is KeyError and not rest:
        del copied[key]
    else:
        copied[key] = changed(copied[key], rest, value) if rest else value
    return copied


@pytest.mark.parametrize(
    ("place", "value", "complaint"),
    [
        ("extra", 1, "'extra' is not a field of Report"),
        ("results", KeyError, "is not a Report with 'results'"),
        ("results", [], "at least one"),
        ("results", {}, "report.results: {} is not a list"),
        ("results.0", 3, "report.results[0]: 3 is not the fields of a Result"),
        ("results.0.contestant", None, "report.results[0].contestant: None is not text"),
        ("results.0.edge.mean", None, "report.results[0].edge.mean: None is not a finite number"),
        ("results.0.edge.mean", math.nan, "nan is not a finite number"),
        ("results.0.edge.mean", 10**400, "is not a finite number"),
        ("results.0.edge.low", "-inf", "report.results[0].edge.low: '-inf' is not a finite number"),
        ("results.0.edge.n", 1.0, "report.results[0].edge.n: 1.0 is not a whole number"),
        ("results.0.edge.n", True, "True is not a whole number"),
        ("results.0.edge", [], "is not the fields of a Interval"),
        ("complete", 1, "report.complete: 1 is not true or false"),
        ("versions.numpy", 2, "report.versions.numpy: 2 is not text"),
        ("behaviour.0.counts", [], "report.behaviour[0].counts: [] is not a mapping"),
        ("head_to_head.cells.0", [], "head_to_head: expected 6 rows of 6"),
        ("races.1.means.5", [0.5], "races[1]: expected 6 rows of 20"),
        ("setup", KeyError, "with a setup"),
        ("setup.rules_digest", "0", "digest"),
        ("setup.rules_digest", KeyError, "digest"),
        ("setup.rules.target", "x", "target"),
        ("setup.seed", "7", "report.setup.seed: '7' is not a whole number"),
    ],
)
def test_what_is_broken_is_refused(place: str, value: Any, complaint: str) -> None:
    with pytest.raises(DnfhError) as caught:
        Report.from_dict(changed(everything().to_dict(), place, value))
    assert complaint in str(caught.value)


@pytest.mark.parametrize("text", ["{", "\udcff", "[1]", "null", "[" * 100_000, '{"setup": 1' + "0" * 5000 + "}"])
def test_files_that_are_none_are_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_text(text, encoding="utf-8", errors="surrogateescape")
    with pytest.raises(DnfhError, match=FILE_NAME):
        Report.load(tmp_path)
    with pytest.raises(OSError, match="nowhere"):
        Report.load(tmp_path / "nowhere")


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    minimal().save(tmp_path)
    old = {path: path.read_bytes() for path in tmp_path.iterdir()}

    def fail(report: Report, path: Path) -> None:
        path.write_text("half")
        raise OSError("disk full")

    monkeypatch.setattr("agents.report.document.write_page", fail)
    with pytest.raises(OSError, match="disk full"):
        minimal().save(tmp_path)
    assert {path: path.read_bytes() for path in old} == old


def test_shapes_are_checked() -> None:
    with pytest.raises(ArgumentError, match="at least one"):
        replace(minimal(), results=())
    with pytest.raises(ArgumentError, match="expected 2 rows of 2"):
        replace(minimal(), head_to_head=HeadToHead("x", ("a", "b"), 0.0, ((None, None),)))
    with pytest.raises(ArgumentError, match=r"races\[0\]"):
        replace(minimal(), races=(Race("edge", ("a",), (1,), ((0.0,),), ((None, None),), ((None,),)),))


def test_csv_has_a_line_for_each_figure() -> None:
    rows = list(csv.DictReader(io.StringIO(csv_of(everything()))))
    assert list(rows[0]) == ["contestant", "against", "figure", "mean", "low", "high", "n"]
    assert [row["figure"] for row in rows if row["contestant"] == "greedy-v1"] == [
        "edge", "adjusted_edge", "card_points", "shots", "win_share", "luck_factor"
    ]  # fmt: skip
    assert len(rows) == 6 * 6 - 2  # the last one has neither win share nor luck factor
    assert [float(rows[0][name]) for name in ("mean", "low", "high", "n")] == [6.0, 5.5, 6.5, 2000]
    assert {row["contestant"] for row in rows} == {one_line(name) for name in NAMES}
    (row,) = csv.DictReader(io.StringIO(csv_of(minimal())))
    assert (row["against"], row["low"], row["high"]) == ("random; random; random", "", "")


def test_the_table_shows_what_there_is() -> None:
    text = printed(everything())
    for expected in ("all line-ups of the field", "+6.00 ± 0.50", "×2.50", "89 [66, 112]", "16.75 card points"):
        assert expected in text
    assert "Faults: " in text
    small = printed(minimal())
    assert "against random" in small
    assert "+1.00 –" in small
    for absent in ("win share, %", "difference", "rating", "Faults", "variance"):
        assert absent not in small


def test_names_are_no_markup_in_the_table() -> None:
    text = printed(everything(), 400)
    for name in (MARKUP, LONG, one_line(BROKEN)):
        assert name in text
    assert "\x1b" not in text


def test_opponents_are_named_where_they_differ() -> None:
    first = minimal().results[0]
    others = replace(first, against=("heuristic",) * 3)
    assert "heuristic" not in printed(minimal())
    text = printed(replace(minimal(), results=(first, others)))
    assert "heuristic" in text
    assert "heuristic, heuristic" not in text


def test_a_rerun_has_the_same_figures() -> None:
    report = everything()
    again = replace(everything(), seconds=99.0, paces=(), versions={"dnfh": "9"})
    faults = tuple(replace(fault, message="at 0x7f") for fault in report.faults)
    assert same_figures(report, again) == []
    assert same_figures(report, replace(again, faults=faults)) == []


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"complete": False}, "complete: True, then False"),
        ({"ratings": ()}, "ratings[0].name"),
        ({"agents": (AgentCard(LONG, {}, "f" * 64),)}, "agents[0].weights"),
        ({"setup": replace(everything().setup, seed=8)}, "setup.seed: 7000000, then 8"),
        ({"faults": everything().faults[:1]}, "faults[1].block: 4, then nothing"),
    ],
)
def test_another_figure_is_named(change: dict[str, Any], place: str) -> None:
    assert place in "\n".join(same_figures(everything(), replace(everything(), **change)))


def test_the_last_bit_of_a_figure_counts() -> None:
    report = minimal()
    edge = Interval(math.nextafter(1.0, 2.0), -math.inf, math.inf, 1)
    (line,) = same_figures(report, replace(report, results=(replace(report.results[0], edge=edge),)))
    assert line == "results[0].edge.mean: 1.0, then 1.0000000000000002"


def test_a_picture_of_odd_values(tmp_path: Path) -> None:
    square = HeadToHead("$x", ("a", "b"), 0.0, ((None, None), (None, None)))
    race = Race("edge", ("a",), (5,), ((1.0,),), ((None,),), ((None,),))
    empty = Race("edge", ("a",), (), ((),), ((),), ((),))
    report = replace(minimal(), head_to_head=square, races=(race, empty))
    report = replace(report, results=(replace(report.results[0], contestant="\U0001f0cf $\\frac{"),))
    plot(report, tmp_path / "odd.png")
    assert (tmp_path / "odd.png").read_bytes().startswith(b"\x89PNG")


def test_names_are_cut_in_the_middle() -> None:
    assert shortened("short", 5) == "short"
    cut = shortened(LONG, 24)
    assert len(cut) == 24
    assert cut.startswith("ppo:")
    assert cut.endswith("/best")


def test_fair_shares() -> None:
    assert fair(Rules()) == {"edge": 0.0, "adjusted_edge": 0.0, "card_points": 16.75, "win_share": 0.25}
    assert around(1.0, 0.5).margin == 0.5
