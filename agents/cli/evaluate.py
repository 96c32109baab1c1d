"""Measure agents: each in one seat against three others, on the same deals in all four seatings.

Agents are named: random, greedy, ppo:PATH, or module:attr of your own. Ctrl-C reports what has been played so far.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from agents.arena import SEED, Match
from agents.cli import INTERRUPTED, SUCCESS, load_rules
from agents.report import FILE_NAME, PLOT_NAME, Report, table
from dnfh_env.errors import DnfhError

DEALS_IN_GAME = 13
"""About how many there are, for the progress bar alone."""
FILE_WIDTH = 120
"""Columns of output that goes to no terminal."""


@dataclass(frozen=True)
class EvaluateArgs:
    """What to play."""

    contestants: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="AGENT ...")]
    """The agents to measure, one after another."""
    against: tuple[str, ...] = ("greedy-v1",)
    """The other three seats: one name for all, or three for left, across and right of the contestant."""
    deals: int = 2000
    """Blocks of one deal for edge, card points and shots; each is played in all four seatings."""
    games: int = 500
    """Blocks of one whole game for the win share, in all four seatings too."""
    seed: int = SEED
    """What cards and chance come from; the same seed gives the same report."""
    rules: str = "default"
    """default, standard_hearts, omnibus, or a JSON file with fields of Rules."""
    out: Path | None = None
    """Folder for report.json and report.png; without it there is only the table."""


def evaluate(args: EvaluateArgs) -> int:
    """Play, print the table, write the files; returns the exit status. Raises `DnfhError` for what cannot be played."""
    if not args.contestants:
        raise DnfhError("contestants: name at least one agent, as in 'dnfh evaluate greedy --against random'")
    if min(args.deals, args.games) < 0 or args.deals + args.games == 0:
        raise DnfhError(f"deals, games: {args.deals} and {args.games} leave nothing to play")
    rules = load_rules(args.rules)
    if args.out is not None:
        args.out.mkdir(parents=True, exist_ok=True)  # said before anything is played, if it cannot be
    matches = [Match(name, args.against, rules, args.seed) for name in args.contestants]
    start = time.perf_counter()
    complete = play(matches, args.deals, args.games)
    results = tuple(match.result() for match in matches if match.played)
    if not results:
        raise DnfhError("broken off before anything was played")
    report = Report(rules, args.seed, args.deals, args.games, results, complete)
    show(report, args.out, time.perf_counter() - start)
    return SUCCESS if complete else INTERRUPTED


def play(matches: Sequence[Match], deals: int, games: int) -> bool:
    """Play all matches under a progress bar; False if Ctrl-C broke it off."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=len(matches) * (deals + DEALS_IN_GAME * games))
        try:
            for match in matches:
                progress.update(task, description=match.contestant)
                for blocks in match.play_deals(deals):
                    progress.advance(task, blocks)
                for blocks in match.play_games(games):
                    progress.advance(task, DEALS_IN_GAME * blocks)
        except KeyboardInterrupt:
            return False
    return True


def show(report: Report, out: Path | None, seconds: float) -> None:
    """Print the table, and write the files if there is a folder for them."""
    console = Console(markup=False, width=None if sys.stdout.isatty() else FILE_WIDTH)
    console.print(table(report))
    asked = f"{report.deals} deals and {report.games} games each, in four seatings"
    console.print(f"{asked}; seed {report.seed}, rules {report.rules.digest()}, {seconds:.1f} s", highlight=False)
    if not report.complete:
        console.print("Broken off: some of it is missing.", style="bold")
    if out is not None:
        report.save(out)
        console.print(f"Written: {out / FILE_NAME}, {out / PLOT_NAME}", highlight=False, soft_wrap=True)
