"""Pages and their log: what was written comes back, whatever a crash cut off."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agents.arena import Match
from agents.pages import LOG_NAME, Log, Page, read_header
from dnfh_env import DnfhError
from dnfh_env.agent import RandomAgent

HEADER = {"match": ["a", 1], "budget": {"deals": 40}}


class Stumbles(RandomAgent):
    """Illegal now and then."""

    def act(self, views: Any, rng: Any) -> Any:
        return np.where(rng % 50 == 0, 64, super().act(views, rng))


@pytest.fixture(scope="module")
def pages() -> list[Page]:
    match = Match(["greedy", Stumbles(), "random", "heuristic"], format="field")
    return [*match.pages("deal", 0, 50), *match.pages("game", 0, 2)]


def same(a: Page, b: Page) -> bool:
    return json.dumps(a.to_dict()) == json.dumps(b.to_dict())


def written(folder: Path, pages: list[Page]) -> bytes:
    log = Log(folder, HEADER)
    for page in pages:
        log.append(page)
    log.close()
    return (folder / LOG_NAME).read_bytes()


def test_a_page_comes_back_as_it_was(pages: list[Page]) -> None:
    assert any(page.faults for page in pages)
    for page in pages:
        back = Page.from_dict(json.loads(json.dumps(page.to_dict())))
        assert same(back, page)
        for name in ("scores", "points", "shots", "ahead", "luck", "behaviour", "times", "seconds"):
            here, there = getattr(page, name), getattr(back, name)
            assert here.dtype == there.dtype and here.shape == there.shape and (here == there).all()
        assert back.faults == page.faults and back.unit == page.unit and back.stop == page.stop


def test_a_log_comes_back_as_it_was(tmp_path: Path, pages: list[Page]) -> None:
    before = written(tmp_path, pages)
    log = Log(tmp_path, HEADER | {"budget": {"deals": 80}})
    assert len(log.pages) == len(pages) and all(map(same, log.pages, pages))
    log.close()
    assert (tmp_path / LOG_NAME).read_bytes() == before
    assert read_header(tmp_path) == HEADER


def test_what_a_kill_cut_off_is_dropped_and_written_anew(tmp_path: Path, pages: list[Page]) -> None:
    whole = written(tmp_path / "whole", pages)
    for cut in np.random.default_rng(1).integers(0, len(whole), 12).tolist():
        folder = tmp_path / str(cut)
        folder.mkdir()
        (folder / LOG_NAME).write_bytes(whole[:cut])
        log = Log(folder, HEADER)
        assert len(log.pages) == max(whole[:cut].count(b"\n") - 1, 0)
        for page in pages[len(log.pages) :]:
            log.append(page)
        log.close()
        assert (folder / LOG_NAME).read_bytes() == whole


def test_the_log_of_another_match_is_refused_and_left_alone(tmp_path: Path, pages: list[Page]) -> None:
    before = written(tmp_path, pages)
    with pytest.raises(DnfhError, match=r"log\.jsonl: it was written for another match, which differs in match"):
        Log(tmp_path, {"match": ["b", 1], "budget": {}})
    assert (tmp_path / LOG_NAME).read_bytes() == before


def edited(line: bytes, **changes: Any) -> bytes:
    return json.dumps(json.loads(line) | changes).encode()


@pytest.mark.parametrize(
    ("number", "change", "message"),
    [
        (2, lambda line: b"{", r"line 3: damaged"),
        (2, lambda line: b"[]", r"line 3: damaged: not a JSON object"),
        (2, lambda line: edited(line, start=0), r"line 3: deal 0, expected 20"),
        (2, lambda line: edited(line, start=40), r"line 3: deal 40, expected 20"),
        (2, lambda line: edited(line, scores="x"), r"line 3: damaged"),
        (2, lambda line: edited(line, scores=[1, 2]), r"line 3: damaged"),
        (2, lambda line: edited(line, unit="week"), r"line 3: damaged"),
        (2, lambda line: edited(line, points=[]), r"line 3: damaged"),
        (2, lambda line: edited(line, shots=[1]), r"line 3: damaged"),
        (2, lambda line: edited(line, ahead=[1]), r"line 3: damaged"),
        (2, lambda line: edited(line, luck=[1, 2]), r"line 3: damaged"),
        (2, lambda line: edited(line, seconds=[]), r"line 3: damaged"),
        (2, lambda line: edited(line, shots=10**30), r"line 3: damaged"),
        (2, lambda line: edited(line, times=[{"9999": 1}]), r"line 3: damaged"),
        (2, lambda line: edited(line, faults=[{"name": 1}]), r"line 3: damaged"),
        (0, lambda line: b"\xff\xfe", r"line 1: damaged"),
    ],
)
def test_a_damaged_log_says_where(tmp_path: Path, pages: list[Page], number: int, change: Any, message: str) -> None:
    lines = written(tmp_path, pages).splitlines()
    lines[number] = change(lines[number])
    (tmp_path / LOG_NAME).write_bytes(b"\n".join(lines) + b"\n")
    with pytest.raises(DnfhError, match=message):
        Log(tmp_path, HEADER)


@pytest.mark.slow
def test_two_processes_do_not_write_to_one_log(tmp_path: Path) -> None:
    log = Log(tmp_path, HEADER)
    code = f"from agents.pages import Log; Log({str(tmp_path)!r}, {HEADER!r})"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "another process is writing to it" in other.stderr
    log.close()
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


def test_headers_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(DnfhError, match=r"resume: there is no log\.jsonl in"):
        read_header(tmp_path)
    (tmp_path / LOG_NAME).write_bytes(b"[1]\n")
    with pytest.raises(DnfhError, match="its first line does not say what is played"):
        read_header(tmp_path)
