"""Measure agents against each other on the same cards, with intervals that can be believed.

Agents are named: random, greedy-v1, heuristic, learned, ppo:FOLDER, or module:attr of your own; name them first, since
--against and --suite take all names that follow. Ctrl-C reports what has been played so far. What the figures mean is
in docs/evaluation.md.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields, replace
from itertools import product
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from agents import suites, tables
from agents.arena import SEED, Limits, Match
from agents.cli import FAILURE, INTERRUPTED, SUCCESS, load_rules
from agents.files import write_text
from agents.formats import FormatName
from agents.pages import BUDGET, LOG_NAME, Log, Page, Unit, has_begun, read_header
from agents.plain import decoded, encoded
from agents.report import FILE_NAME, Report, same_figures, table
from agents.report.figures import asked, figure_of
from agents.results import Setup
from agents.stats import confidence_sequence
from agents.workers import Workers
from dnfh_env import __version__
from dnfh_env.errors import AgentError, DnfhError, whole

WORTH: dict[Unit, int] = {"deal": 1, "game": 13}
"""About how many deals a block has, for the progress bar alone."""
FILE_WIDTH = 120
"""Columns of output that goes to no terminal."""
DEALS, GAMES = 2000, 500
"""Blocks of either unit, unless said otherwise."""
MOST = 1_000_000
"""Blocks at most, where an interval decides when to end."""
MANY = 20
"""Differing figures that are told."""
AGAINST = ("greedy-v1",)
ISOLATED = ("time_limit", "memory_limit")
USED = {
    "rerun": ("workers", *ISOLATED),
    "table": ("games", "seed", "rules", "out"),
    "protocol": ("contestants", "out", "resume", "workers", "isolate", *ISOLATED),
    "suite": ("contestants", "out"),
    "resume": ("contestants", "deals", "games", "until_ci", "workers", *ISOLATED),
}
"""What else the arguments that are no match of one's own make use of."""


@dataclass(frozen=True)
class Budget:
    """How much is to be played; it may change when one goes on."""

    deals: int
    games: int
    until: float | None


@dataclass(frozen=True)
class EvaluateArgs:
    """What to play."""

    contestants: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="AGENT ...")] = ()
    """The agents to measure."""
    against: tuple[str, ...] = AGAINST
    """The other three seats in the format ab: one name for all, or three for left, across and right."""
    format: FormatName = "ab"
    """ab: each in every seat against the same three others; 1v3: each against three of each other; 2v2: two against
    two; field: all line-ups and seatings of four or more, with ratings."""
    deals: int | None = None
    """Blocks of one deal for edge, card points and shots, 2000 if not given; 0 for none."""
    games: int | None = None
    """Blocks of one whole game for win shares, 500 if not given; 0 for none."""
    until_ci: float | None = None
    """Play deals (games with --deals 0) only until the running intervals of all differences, or of a single
    contestant's edge, are this much to either side, in points (or shares of a win: 0.02 is 2 %). It takes 200 blocks at
    least; --deals is then the most, a million if not given, and no games are played unless --games is given."""
    seed: int = SEED
    """What cards and chance come from; the same seed gives the same report."""
    rules: str = "default"
    """default, standard_hearts, omnibus, or a JSON file with fields of Rules."""
    out: Path | None = None
    """Folder for the report, as JSON, CSV, PNG and one HTML page, and for the log that --resume reads."""
    resume: Path | None = None
    """The folder of an evaluation that was broken off: what its log holds is not played again. How much is to be
    played is known, and may be given anew."""
    workers: int = 1
    """Processes that play; the figures do not depend on it."""
    isolate: bool = False
    """Run each agent in a process of its own, which is killed when it hangs or takes too much memory."""
    time_limit: float = 60.0
    """Seconds for a call of an isolated agent, which may be about thousands of views."""
    memory_limit: int = 4096
    """Megabytes of an isolated agent."""
    suite: tuple[str, ...] = ()
    """Ask the contestants about positions of these suites instead: guard, shoot, stop, jack, kitty, ending, or all."""
    protocol: str | None = None
    """Measure the contestants by a named protocol, see docs/benchmark.md: v1."""
    table: str | None = None
    """Names with commas between: play tables with a waiting line, --games games in all."""
    rerun: Path | None = None
    """A report: play it again and see whether the figures are the same."""


def evaluate(args: EvaluateArgs) -> int:
    """Do what the arguments say; returns the exit status. Raises `DnfhError` for what cannot be played."""
    whole("workers", args.workers, 1)
    refuse_idle(args)
    if args.rerun is not None:
        return rerun(args, args.rerun)
    if args.table is not None:
        return play_tables(args, args.table.split(","))
    if args.protocol is not None:
        return follow(args, suites.load_protocol(args.protocol))
    if args.resume is not None:
        return measure(*resumed(args, args.resume))
    if args.suite:
        return ask_suites(named(args), suites.SUITES if "all" in args.suite else args.suite, args.out)
    return measure(setup_of(args), args)


def refuse_idle(args: EvaluateArgs) -> None:
    """Raise `DnfhError` for an argument that would do nothing beside the others."""
    mode = next((name for name in USED if getattr(args, name)), None)
    for field in fields(args) if mode else ():
        if getattr(args, field.name) != field.default and field.name not in (mode, *USED[str(mode)]):
            raise DnfhError(f"{field.name}: of no use beside --{mode}, which takes {', '.join(USED[str(mode)])}")


def named(args: EvaluateArgs) -> tuple[str, ...]:
    """The contestants, of which there has to be one."""
    if not args.contestants:
        raise DnfhError("contestants: name at least one agent, as in 'dnfh evaluate greedy --against random'")
    return args.contestants


def setup_of(args: EvaluateArgs) -> Setup:
    """What the arguments ask for."""
    deals, games = budget(args)
    against = args.against if args.format == "ab" else ()
    return Setup(named(args), load_rules(args.rules), args.seed, args.format, against, deals, games, args.isolate)


def budget(args: EvaluateArgs) -> tuple[int, int]:
    """Blocks of deals and of games, at most."""
    if args.until_ci is not None and not args.until_ci > 0:
        raise DnfhError(f"until_ci: {args.until_ci} is not above 0")
    usual = (DEALS, GAMES) if args.until_ci is None else (MOST, MOST if args.deals == 0 else 0)
    deals, games = (
        fallback if given is None else given for given, fallback in zip((args.deals, args.games), usual, strict=True)
    )
    if min(deals, games) < 0 or deals + games == 0:
        raise DnfhError(f"deals, games: {deals} and {games} leave nothing to play")
    return deals, games


# --- a match ----------------------------------------------------------------------------------------------------


def measure(setup: Setup, args: EvaluateArgs) -> int:
    """Play a match, print its report and write it."""
    match = Match.of(setup, Limits(args.time_limit, args.memory_limit))
    with logged(args, setup, match) as keep:
        complete = play(match, setup, args, keep)
    if not match.played("deal") and not match.played("game"):
        print("error: broken off before anything was played", file=sys.stderr)
        return INTERRUPTED
    report = match.report(complete)
    show(report, looked=not complete or args.until_ci is not None)
    if args.until_ci is not None:
        unit: Unit = "deal" if setup.deals else "game"
        reached = "reached" if match.is_settled(unit, args.until_ci) else "not reached"
        stdout().print(f"± {args.until_ci:g} {reached} after {match.played(unit):,} {unit}s", highlight=False)
    if args.out is not None:
        report.save(args.out)
        beside = ", ".join(sorted(path.name for path in args.out.glob("report.*") if path.name != FILE_NAME))
        stdout().print(f"Written: {args.out / FILE_NAME}, and beside it {beside}", highlight=False, soft_wrap=True)
    return status_of(report)


@contextmanager
def logged(args: EvaluateArgs, setup: Setup, match: Match) -> Iterator[Callable[[Page], None] | None]:
    """What keeps pages in the log of the folder, if there is one; those in it are taken in."""
    if args.out is None:
        yield None
        return
    if args.resume is None and has_begun(args.out):
        raise DnfhError(f"out: {args.out} holds an evaluation already; name another folder, or go on with --resume")
    header = {"setup": replace(setup, deals=0, games=0), "agents": match.agent_cards(), "dnfh": __version__}
    log = Log(args.out, encoded(header | {BUDGET: Budget(setup.deals, setup.games, args.until_ci)}))
    try:
        for page in log.pages:
            match.add(page)
        yield log.append
    finally:
        log.close()


def resumed(args: EvaluateArgs, folder: Path) -> tuple[Setup, EvaluateArgs]:
    """The setup of the evaluation that was broken off, and arguments to go on; how much to play may be given anew."""
    header = read_header(folder)
    setup: Setup = decoded(Setup, header.get("setup"), f"{folder / LOG_NAME}: setup")
    if args.contestants and args.contestants != setup.contestants:
        raise DnfhError(f"resume: {folder} is of {', '.join(setup.contestants)}, not {', '.join(args.contestants)}")
    kept: Budget = decoded(Budget, header.get(BUDGET), f"{folder / LOG_NAME}: {BUDGET}")
    deals = kept.deals if args.deals is None else args.deals
    games = kept.games if args.games is None else args.games
    until = kept.until if args.until_ci is None else args.until_ci
    again = replace(args, deals=deals, games=games, until_ci=until, out=folder)
    budget(again)
    return replace(setup, deals=deals, games=games), again


def play(match: Match, setup: Setup, args: EvaluateArgs, keep: Callable[[Page], None] | None) -> bool:
    """Play all under a progress bar with the running figures; returns False if Ctrl-C ended it."""
    counts: dict[Unit, int] = {"deal": setup.deals, "game": setup.games}
    narrowed: Unit = "deal" if setup.deals else "game"
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with ExitStack() as stack:
        progress = stack.enter_context(
            Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        )
        task = progress.add_task("", total=sum(WORTH[unit] * count for unit, count in counts.items()))
        try:
            crew = stack.enter_context(Workers(match, args.workers)) if args.workers > 1 else None
            for unit, count in counts.items():
                progress.advance(task, WORTH[unit] * min(match.played(unit), count))
                until = args.until_ci if unit == narrowed else None
                for blocks in match.play(unit, count, crew=crew, keep=keep, until=until):
                    progress.update(task, advance=WORTH[unit] * blocks, description=running(match, unit))
        except KeyboardInterrupt:
            return False
    return True


def running(match: Match, unit: Unit) -> str:
    """What the first contestant is ahead of the second, or its own figure if it is alone, at this moment."""
    scores, pairs = match.scores(unit), match.pairs()
    first, second = pairs[0] if pairs else (0, 0)
    now = confidence_sequence(scores[:, first] - scores[:, second] if pairs else scores[:, 0])
    what = figure_of("edge" if unit == "deal" else "win_share", signed=True)
    return f"{match.played(unit):,} {unit}s, {what.title}, {' - '.join(match.names[:2])}: {what.brief(now)}"


def show(report: Report, looked: bool) -> None:
    """Print the report; where somebody has looked while it ran, the running intervals too."""
    console, setup = stdout(), report.setup
    console.print(table(report))
    for result in report.results if looked else ():
        what, now = ("edge" if result.edge else "win_share"), result.running
        console.print(f"Looked at while it ran, so this holds: {result.contestant} {figure_of(what).text(now)}")
    console.print(f"{asked(setup)}; seed {setup.seed}, rules {setup.rules.digest()}", highlight=False)
    if not report.complete:
        console.print("Broken off: some of it is missing.", style="bold")


def status_of(report: Report) -> int:
    """The exit status."""
    return FAILURE if report.faults else SUCCESS if report.complete else INTERRUPTED


def stdout() -> Console:
    """Where results go."""
    return Console(markup=False, width=None if sys.stdout.isatty() else FILE_WIDTH)


# --- everything else --------------------------------------------------------------------------------------------


def rerun(args: EvaluateArgs, path: Path) -> int:
    """Play the match of a report again and compare the figures."""
    before = Report.load(path)
    match = Match.of(before.setup, Limits(args.time_limit, args.memory_limit))
    if not play(match, before.setup, args, None):
        return INTERRUPTED
    after = match.report()
    show(after, looked=False)
    differences = same_figures(replace(before, complete=True), after)
    for difference in sorted(differences, key=lambda line: not line.startswith(("agents", "setup")))[:MANY]:
        stdout().print(difference, highlight=False, soft_wrap=True)
    if len(differences) > MANY:
        stdout().print(f"and {len(differences) - MANY} more")
    stdout().print("The figures differ." if differences else "The same figures.")
    return FAILURE if differences else status_of(after)


def ask_suites(contestants: Sequence[str], names: Sequence[str], out: Path | None) -> int:
    """Ask the contestants about tactical positions; one that errs on a suite has no score there."""
    results, failed = [], False
    for name, agent in product(names, contestants):
        try:
            results.append(suites.run_suite(suites.load_suite(name), agent))
        except AgentError as error:
            failed = True
            print(f"error: {name}: {error}", file=sys.stderr)
    if results:
        stdout().print(suites.table(results))
    if out is not None:
        write_text(out / "suites.json", json.dumps(encoded(results), indent=2) + "\n")
        stdout().print(f"Written: {out / 'suites.json'}", highlight=False, soft_wrap=True)
    return FAILURE if failed else SUCCESS


def follow(args: EvaluateArgs, protocol: suites.Protocol) -> int:
    """Measure by a protocol: a match against each of its opponents, in a folder each, and its suites."""
    deals, folder = suites.load_deals(protocol.deals), args.resume or args.out
    for opponent in protocol.opponents:
        setup = Setup(
            named(args), protocol.rules, deals.seed, "ab", (opponent,), deals.count, protocol.games, args.isolate
        )
        status = measure(setup, replace(args, out=folder and folder / opponent))
        if status != SUCCESS:
            return status
    stdout().print(f"Protocol {protocol.name}, {protocol.digest}", highlight=False)
    return ask_suites(args.contestants, protocol.suites, folder)


def play_tables(args: EvaluateArgs, names: Sequence[str]) -> int:
    """Play tables with a waiting line."""
    games = GAMES if args.games is None else args.games
    result = tables.play_tables(names, load_rules(args.rules), games, args.seed)
    stdout().print(tables.table(result))
    if args.out is not None:
        stdout().print(f"Written: {tables.save(result, args.out)}", highlight=False, soft_wrap=True)
    return SUCCESS
