"""The page of a report, read as a browser would, without one."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest

from agents.report import Report, page_of
from agents.report.charts import LABEL, _apart, _ticks
from agents.report.figures import EDGE, SHARE, one_line, span_of
from agents.report.page import MOST_FAULTS, write_page
from agents.results import HeadToHead, Race
from dnfh_env.errors import ArgumentError
from reports import BROKEN, LONG, MARKUP, around, everything, minimal

VOID = {"meta", "rect", "line", "circle", "path"}
REPORTS = pytest.mark.parametrize("make", [everything, minimal])


class Document(HTMLParser):
    """Tags, ids, texts and attributes of a page; an error for a tag that is not closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str | None]] = []
        self.ids: list[str] = []
        self.scripts: list[str] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += attrs
        self.ids += [value for name, value in attrs if name == "id" and value]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        (self.scripts if self.open[-1:] == ["script"] else self.texts).append(data)

    @property
    def text(self) -> str:
        return "".join(self.texts)


@REPORTS
def test_it_is_whole_and_asks_for_nothing(make: Callable[[], Report]) -> None:
    page = page_of(make())
    document = Document(page)
    assert document.tags["script"] == 2
    assert not {"img", "link", "iframe", "object", "b", "bold"} & set(document.tags)
    names = {name for name, _ in document.attributes}
    assert not {name for name in names if name.startswith("on")} | ({"src", "style"} & names)
    assert all(value and value.startswith("#") for name, value in document.attributes if name == "href")
    assert len(document.ids) == len(set(document.ids))
    assert not re.search(r"https?:|url\(|@import", page)


def test_its_policy_names_its_own_script_and_style() -> None:
    page = page_of(minimal())
    for tag in ("style", "script"):
        text = page.rpartition(f"<{tag}>")[2].partition(f"</{tag}>")[0]
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in page
    assert "default-src 'none'" in page


@REPORTS
def test_the_data_within_is_the_report(make: Callable[[], Report]) -> None:
    data = Document(page_of(make())).scripts[0]
    assert "<" not in data
    assert Report.from_dict(json.loads(data)) == make()


def test_names_are_text(tmp_path: Path) -> None:
    report = everything()
    document = Document(page_of(report))
    for name in (MARKUP, LONG, one_line(BROKEN)):
        assert name in document.text
    for forbidden in ("\x1b", "\u202e", "\udce9"):
        assert forbidden not in page_of(report)
    write_page(report, tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == page_of(report)


def test_there_are_only_sections_with_something_in_them() -> None:
    sections = ["results", "differences", "head-to-head", "ratings", "race", "behaviour", "pace", "faults", "setup"]
    assert Document(page_of(everything())).ids == [*sections, "agents", "report"]
    small = Document(page_of(minimal()))
    assert small.ids == ["results", "setup", "report"]
    assert small.tags["h2"] == 2
    assert "win share" not in small.text


def test_it_tells_what_was_played_and_what_came_out() -> None:
    text = Document(page_of(everything())).text
    report = everything()
    for expected in (
        "7000000", report.setup.rules.digest(), "Rules(target=200)", "numpy ", "0123456789abcdef" * 4, "shot_try=3",
        "evaluate.py --rerun report.json", "+6.00 [+5.50, +6.50]", "×1.50", "89 [66, 112]", "29.0[27.0, 31.0]",
        "62 (kitty)", "4000", "hand 2C & 3D", "It raised an error", "12.5 s", "1,234,567", "25 is par",
    ):  # fmt: skip
        assert expected in text, expected
    assert "Broken off" in Document(page_of(minimal())).text


def test_colour_follows_the_side_of_par() -> None:
    cells = ((None, around(0.4, 0.1)), (around(0.1, 0.1), around(0.25, 0.1)))
    page = page_of(replace(minimal(), head_to_head=HeadToHead("wins", ("a", "b"), 0.25, cells)))
    assert '<td class="u4">40.0<small>[30.0, 50.0]' in page
    assert '<td class="d4">10.0<small>' in page
    assert "<td>25.0<small>" in page


def test_numbers_sort_by_value_and_absent_ones_have_none() -> None:
    page = page_of(everything())
    assert 'data-sort="6.0"' in page
    assert 'data-sort=""' in page  # the win share of the one that played no games
    assert page.count('aria-sort="none"') == page.count("<button") == 7 + 6 + 4 + 3


def test_many_faults_are_cut() -> None:
    fault = everything().faults[0]
    document = Document(page_of(replace(minimal(), faults=(fault,) * (MOST_FAULTS + 7))))
    assert document.tags["details"] == MOST_FAULTS
    assert "And 7 more" in document.text


def test_behaviour_of_another_version_is_refused() -> None:
    (player, *_) = everything().behaviour
    with pytest.raises(ArgumentError, match="missing"):
        page_of(replace(minimal(), behaviour=(replace(player, counts={}),)))


def test_a_race_of_one_point_is_drawn() -> None:
    race = Race("edge", ("a", "b"), (5,), ((1.0,), (1.0,)), ((None,), (None,)), ((None,), (None,)))
    assert "nan" not in page_of(replace(minimal(), races=(race,)))
    assert span_of(race, None) == (0.0, 2.0)
    empty = Race("edge", ("a",), (), ((),), ((),), ((),))
    assert 'id="race"' not in page_of(replace(minimal(), races=(empty,)))


def test_a_race_shows_all_of_its_second_half() -> None:
    race = Race("edge", ("a",), (1, 2, 3), ((90.0, 1.0, 2.0),), ((None, -3.0, 0.0),), ((None, 4.0, 3.0),))
    low, high = span_of(race, 0.0)
    assert -4 < low < -3
    assert 4 < high < 5


def test_labels_lie_apart() -> None:
    moved = _apart([10.0, 11.0, 12.0, 270.0, 279.0])
    assert all(after - before >= LABEL for before, after in pairwise(moved))
    assert moved[0] == 10.0
    assert moved[-1] <= 280 - LABEL / 2


@pytest.mark.parametrize("span", [(-9.4, 6.2), (0.0, 1e-3), (-1000.0, 5000.0), (0.999, 1.0011)])
def test_ticks_are_few_and_round(span: tuple[float, float]) -> None:
    for figure in (EDGE, SHARE):
        ticks = [figure.short(tick) for tick in _ticks(figure, span)]
        assert 2 <= len(ticks) <= 6
        assert len(set(ticks)) == len(ticks)
