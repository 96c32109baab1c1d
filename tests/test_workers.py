"""Playing in several processes: the same figures, and clear ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from agents.arena import Match
from agents.pages import Page
from agents.workers import Workers
from dnfh_env import AgentError, Rules, equity_table, use_equity
from dnfh_env.agent import RandomAgent
from dnfh_env.equity import _IN_USE


class Stumbles(RandomAgent):
    """Illegal now and then; it can be pickled."""

    def act(self, views: NDArray[Any], rng: NDArray[np.uint64]) -> NDArray[np.int64]:
        return np.where(rng % 200 == 0, 64, super().act(views, rng))


class Dies(RandomAgent):
    """Takes its process with it."""

    def act(self, views: NDArray[Any], rng: NDArray[np.uint64]) -> NDArray[np.int64]:
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError


def play(workers: int) -> tuple[Match, list[Page]]:
    match = Match(["greedy", Stumbles(), "random"], "heuristic")
    kept: list[Page] = []
    if workers == 1:
        counts = [*match.play("deal", 250, keep=kept.append), *match.play("game", 5, keep=kept.append)]
    else:
        with Workers(match, workers) as crew:
            counts = [*match.play("deal", 250, crew=crew, keep=kept.append)]
            counts += match.play("game", 5, crew=crew, keep=kept.append)
    assert sum(counts) == 255
    return match, kept


@pytest.mark.slow
@pytest.mark.parametrize("workers", [2, 3])
def test_figures_do_not_depend_on_the_number_of_processes(workers: int) -> None:
    (alone, pages), (shared, others) = play(1), play(workers)
    assert shared.results() == alone.results()
    assert shared.behaviour() == alone.behaviour()
    assert shared.faults() == alone.faults() and alone.faults()
    assert [(page.unit, page.start, page.stop) for page in others] == [(p.unit, p.start, p.stop) for p in pages]


@pytest.mark.slow
def test_a_process_that_dies_is_an_error_and_not_a_hang() -> None:
    match = Match(Dies(), "greedy")
    with Workers(match, 2) as crew, pytest.raises(AgentError, match="workers: a process has died"):
        list(match.play("deal", 100, crew=crew))


ORPHANS = """
import os, signal, sys, time
from agents.arena import Match
from agents.workers import Workers
if __name__ == "__main__":
    crew = Workers(Match("random", "random"), 2)
    print(*[process.pid for process in crew._own], flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
def test_processes_end_with_the_one_that_started_them(tmp_path: Path) -> None:
    script = tmp_path / "orphans.py"
    script.write_text(ORPHANS)
    parent = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    printed, _ = parent.communicate(timeout=60)  # which ends when nobody holds the pipe any more
    assert (len(printed.split()), parent.returncode) == (2, -signal.SIGKILL)


@pytest.mark.slow
def test_tables_of_equity_go_along() -> None:
    """Without the table the processes would value worlds by card points."""
    rules = Rules(target=120)
    try:
        use_equity(replace(equity_table(), rules=rules))
        alone, match = (Match("pimc:worlds=6", "random", rules, seed=4) for _ in range(2))
        list(alone.play("deal", 30))
        with Workers(match, 2) as crew:
            list(match.play("deal", 30, crew=crew))
        assert (match.scores("deal") == alone.scores("deal")).all()
    finally:
        _IN_USE.pop(rules.play_digest())


def test_agents_that_cannot_be_sent() -> None:
    class Local(RandomAgent):
        pass

    with pytest.raises(AgentError, match="workers: an agent cannot be sent to another process"):
        Workers(Match(Local(), "greedy"), 2)
