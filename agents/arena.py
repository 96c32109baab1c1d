"""Matches whose figures can be believed: contestants on the same cards, in every seat.

A *block* is one deal, or one whole game, played several times on the same cards, with the same dealer and the same
kitty shuffle, while the seating changes; how it changes is the match's *format*, see `agents.formats`. A block's score
is the mean over the seats that count for a contestant, and blocks are the independent observations that intervals are
taken over. Agents get the same seeds in all seatings, so among four equal agents every block's edge is exactly 0, even
if they play at random.

*Card points*: points of the cards taken in a deal. *Edge*: the mean of the other three minus mine, where a deal that
wins the game by a shot counts as ``SHOT_VALUE`` to each of the others and thrice that off the shooter, and not as the
points taken; it is 4/3 of what the reward ``"points"`` pays in the deal. *Shot*: a deal in which one seat takes all
shot cards. *Win share*: share of the win in whole games, 1/4 where ``max_deals`` cuts one off. *Finishing order*: the
winners first, then by score, ties included; after a game won by a shot all others tie, whatever their scores.
"""

from __future__ import annotations

import dataclasses
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from itertools import combinations
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from agents import behaviour, luck
from agents.blocks import play_pages
from agents.formats import Format, make_format, told_apart
from agents.pages import BLOCKS_A_PAGE, Page, Unit
from agents.ratings import check_fitter, ratings
from agents.referee import NUM_BINS, Player, quantile_of
from agents.report import Report
from agents.results import AgentCard, Behaviour, Difference, Fault, HeadToHead, Pace, Race, Rating, Result, Setup
from agents.stats import (
    Interval,
    confidence_sequence,
    gap_interval,
    mean_interval,
    pairing_factor,
    running_bounds,
    share_interval,
)
from dnfh_env.agent import Agent, make_agents, name_of, three_others
from dnfh_env.engine import new_games
from dnfh_env.errors import AgentError, whole
from dnfh_env.notation import check_counter
from dnfh_env.objective import TWELFTHS, rules_of
from dnfh_env.rules import Rules, checked_rules

SEED = 7_000_000
"""Seed of evaluations, unlike what a training is given, so that nobody is judged on deals it has learned from."""

ROWS = 8192
"""Deals at most played side by side; of whole games a quarter. What comes out does not depend on it."""

PATIENCE = 2.0
"""Seconds of play between two pages, towards which the number of blocks played side by side is led."""

RACE_POINTS = 60
"""Moments of a match that a `Race` shows."""


class Limits(NamedTuple):
    """What an agent in a process of its own may take, see `agents.isolated.Isolated`."""

    seconds: float = 60.0
    """For a call, which may be about thousands of views."""
    megabytes: int = 4096


class Crew(Protocol):
    """Who plays blocks: this process, or some of `agents.workers`."""

    depth: int
    """How many requests it works on at once."""

    def submit(self, unit: Unit, start: int, stop: int) -> Future[list[Page]]:
        """The pages of the blocks from ``start`` up to ``stop``."""
        ...


class Match:
    """Contestants on the same blocks: play as much as wanted, and ask for the `result` at any time.

    >>> match = Match(["heuristic", "greedy-v1"], against="greedy-v1")
    >>> for _ in match.play("deal", 2000):
    ...     print(match.result().edge)
    >>> match.report().save("runs/report")
    """

    def __init__(
        self,
        contestants: str | Agent | Sequence[str | Agent],
        against: str | Agent | Sequence[str | Agent] = "random",
        rules: Rules | None = None,
        seed: int = SEED,
        *,
        format: str = "ab",
        limits: Limits | None = None,
    ) -> None:
        """Seat the players.

        Args:
            contestants: the agents that are measured, or their names; one needs no list.
            against: in the format ``"ab"`` one for all three other seats, or three for left, across and right.
            rules: what is played, `Rules()` if not given.
            seed: what the cards and the agents' seeds come from.
            format: ``"ab"``, ``"1v3"``, ``"2v2"`` or ``"field"``, see `agents.formats.make_format`.
            limits: run agents, which have to be named, in processes of their own that may take so much.

        Raises `AgentError` for an unknown agent or a wrong number of them, and whatever building an agent raises.
        """
        if format == "field":
            check_fitter()  # before anything is played
        single = isinstance(contestants, str) or not isinstance(contestants, Sequence)
        specs: list[Any] = [contestants] if single else list(contestants)  # type: ignore[arg-type]
        self.rules = checked_rules(rules)
        self.seed = check_counter("seed", seed)
        self.format: Format = make_format(format, len(specs))
        others = three_others("against", against) if format == "ab" else []
        self.given = (specs, others, limits)
        """Contestants and others as they were named, and limits."""
        self._titles = [name_of(spec) for spec in (*specs, *others)]
        agents = _agents([*specs, *others], self.rules, limits)
        first = {id(agent): number for number, agent in reversed(list(enumerate(agents)))}
        players = [*range(len(specs)), *(first[id(agent)] for agent in agents[len(specs) :])]
        names = told_apart(self._titles, players)  # one who sits on both sides has one name
        self.names = names[: len(specs)]
        """Of the contestants."""
        self._players: list[Player] = list(zip(names, agents, strict=True))
        self._warm: set[int] = set()
        self._pages: dict[Unit, list[Page]] = {unit: [] for unit in BLOCKS_A_PAGE}

    @classmethod
    def of(cls, setup: Setup, limits: Limits | None = None) -> Match:
        """The match that a setup describes, nothing of it played; ``limits`` are for isolated agents."""
        against = setup.against or "random"
        limits = (limits or Limits()) if setup.isolated else None
        return cls(setup.contestants, against, setup.rules, setup.seed, format=setup.format, limits=limits)

    # --- playing ------------------------------------------------------------------------------------------------

    def played(self, unit: Unit) -> int:
        """Blocks played so far."""
        pages = self._pages[unit]
        return pages[-1].stop if pages else 0

    def add(self, page: Page) -> None:
        """Take in a page that was played before. Raises ``ValueError`` unless it is the next one of its unit."""
        if page.start != self.played(page.unit):
            raise ValueError(f"{page.unit} {page.start}: expected {self.played(page.unit)}")
        self._pages[page.unit].append(page)

    def play(
        self,
        unit: Unit,
        count: int,
        *,
        crew: Crew | None = None,
        keep: Callable[[Page], None] | None = None,
        until: float | None = None,
    ) -> Iterator[int]:
        """Play blocks until there are ``count``; yields how many each step added.

        Args:
            unit: ``"deal"``: one deal at level scores, under a rotation each with one of its calls in turn; ``"game"``:
                a whole game.
            count: how many there are to be, those played before included.
            crew: who plays, this process if not given. What comes out does not depend on it.
            keep: called with each page as it is done, in order.
            until: end as soon as every contestant's running interval, or with several contestants that of every
                difference, is at most this much to either side of its middle; in points, or shares of a win.
        """
        if until is not None and self._settled_at(unit, [], until) is not None:
            return
        for pages in _requests(crew or _Alone(self), unit, self.played(unit), count, self.format.rows):
            end = None if until is None else self._settled_at(unit, pages, until)
            for page in pages[:end]:
                if keep is not None:
                    keep(page)
                self.add(page)
            yield self.played(unit) - pages[0].start
            if end is not None:
                return

    def pages(self, unit: Unit, start: int, stop: int) -> list[Page]:
        """Play the blocks from ``start`` up to ``stop`` and nothing else."""
        return play_pages(
            self.format, self._players, self.rules, self.seed, unit=unit, start=start, stop=stop, warm=self._warm
        )

    # --- what came out ------------------------------------------------------------------------------------------

    def scores(self, unit: Unit) -> NDArray[np.float64]:
        """``float64[blocks, entries]``: edges of deals, or win shares of games."""
        return self._means(self._all(unit, "scores"))

    def _means(self, sums: NDArray[np.int64]) -> NDArray[np.float64]:
        """Scores from sums of twelfths."""
        return np.divide(sums, TWELFTHS * self.format.seats)

    def _all(self, unit: Unit, name: str) -> Any:
        """An array of all pages' blocks."""
        pages = self._pages[unit]
        if not pages:
            return np.zeros((0, len(self.format.entries)), np.int64)
        return np.concatenate([getattr(page, name) for page in pages])

    def result(self) -> Result:
        """The figures of the first contestant so far."""
        return self.results()[0]

    def results(self) -> tuple[Result, ...]:
        """The figures so far, an entry each."""
        return tuple(self._result(number) for number in range(len(self.format.entries)))

    def _result(self, number: int) -> Result:
        entry = self.format.entries[number]
        against = tuple(self._players[player][0] for player in entry.against)
        result = Result(self._players[entry.contestant][0], against)
        if self.played("deal"):
            result = dataclasses.replace(result, **self._of_deals(number))
        if self.played("game"):
            shares = self.scores("game")[:, number]
            running = result.running or confidence_sequence(shares)
            result = dataclasses.replace(result, win_share=share_interval(shares), running=running)
        return result

    def _of_deals(self, number: int) -> dict[str, Any]:
        edges = self.scores("deal")[:, number]
        adjusted = luck.cross_fitted(edges, self._luck(number))
        return {
            "edge": mean_interval(edges),
            "card_points": mean_interval(self._all("deal", "points")[:, number] / self.format.seats),
            "shots": share_interval(self._all("deal", "shots")[:, number] / self.format.seats),
            "running": confidence_sequence(edges),
            "adjusted_edge": adjusted.interval,
            "luck_factor": adjusted.factor,
        }

    def _luck(self, number: int) -> NDArray[np.float64]:
        """What chance brought to each block of one deal, ``float64[blocks, k]`` of expectation 0."""
        rules = rules_of(self.rules, "deal", None)
        dealt = new_games(rules, self.seed, np.arange(self.played("deal")))["hand"]
        drawn = self._all("deal", "luck")[:, number]
        return np.concatenate([luck.deal_covariates(dealt), drawn[:, drawn.any(axis=0)]], axis=1)

    # --- comparisons --------------------------------------------------------------------------------------------

    def differences(self) -> tuple[Difference, ...]:
        """Each contestant against each later one, paired over blocks, in what was played."""
        return tuple(self._difference(unit, *pair) for unit in self._units() for pair in self.pairs())

    def _units(self) -> list[Unit]:
        return [unit for unit in BLOCKS_A_PAGE if self.played(unit)]

    def pairs(self) -> list[tuple[int, int]]:
        """The entries that are compared, by number."""
        entries = self.format.entries
        if self.format.name in ("ab", "field"):
            return list(combinations(range(len(entries)), 2))
        place = {(entry.contestant, entry.against[0]): number for number, entry in enumerate(entries)}
        return [(number, place[b, a]) for (a, b), number in place.items() if a < b]

    def _difference(self, unit: Unit, first: int, second: int) -> Difference:
        scores = self.scores(unit)
        apart = scores[:, first] - scores[:, second]
        one, other = (self.names[self.format.entries[number].contestant] for number in (first, second))
        apart_in_seats = self.format.name in ("ab", "1v3")  # at one table they take points from each other
        factor = pairing_factor(scores[:, first], scores[:, second]) if apart_in_seats else None
        figure = "edge" if unit == "deal" else "win_share"
        interval = mean_interval if unit == "deal" else gap_interval
        return Difference(one, other, figure, interval(apart), confidence_sequence(apart), factor)

    def is_settled(self, unit: Unit, until: float) -> bool:
        """Whether the running intervals are as narrow as `play` was to make them."""
        return self._settled_at(unit, [], until) is not None

    def _settled_at(self, unit: Unit, more: Sequence[Page], until: float) -> int | None:
        """After how many ``more`` pages the running intervals are narrow enough; None if after all they are not."""
        sums = np.concatenate([self._all(unit, "scores"), *(page.scores for page in more)])
        scores = self._means(sums)
        watched = [scores[:, a] - scores[:, b] for a, b in self.pairs()] or list(scores.T)
        narrow = np.ones(len(scores), np.bool_)
        for values in watched:
            _, lows, highs = running_bounds(values)
            narrow &= highs - lows <= 2 * until
        ends = [self.played(unit), *(page.stop for page in more)]
        return next((number for number, end in enumerate(ends) if end and narrow[end - 1]), None)

    def head_to_head(self) -> HeadToHead | None:
        """Everybody against everybody, in whole games if there are any; None for a single contestant."""
        units = self._units()
        if len(self.names) < 2 or not units:
            return None
        cells: list[list[Interval | None]] = [[None] * len(self.names) for _ in self.names]
        title, par = self._fill(units[-1], cells)
        return HeadToHead(title, self.names, par, tuple(map(tuple, cells)))

    def _fill(self, unit: Unit, cells: list[list[Interval | None]]) -> tuple[str, float]:
        """Put in the comparisons of a unit; what they are, and what equals score."""
        entries, scores = self.format.entries, self.scores(unit)
        what = "edge, points a deal" if unit == "deal" else "win share"
        if self.format.name == "field":
            ahead = self._all(unit, "ahead") / (2 * self.format.meetings)
            for i, j in np.ndindex(ahead.shape[1:]):
                if i != j:
                    cells[i][j] = share_interval(ahead[:, i, j])
            return f"share of {unit}s finished ahead, ties half", 0.5
        if self.format.name == "ab":
            for i, j in np.ndindex(len(entries), len(entries)):
                if i != j:
                    interval = mean_interval if unit == "deal" else gap_interval
                    cells[i][j] = interval(scores[:, i] - scores[:, j])
            return f"difference in {what}", 0.0
        for number, entry in enumerate(entries):
            interval = mean_interval if unit == "deal" else share_interval
            cells[entry.contestant][entry.against[0]] = interval(scores[:, number])
        return f"{what}, {self.format.name}", 0.0 if unit == "deal" else 0.25

    def ratings(self) -> tuple[Rating, ...]:
        """Strengths in a field from its finishing orders, in whole games if there are any; elsewhere none."""
        units = self._units()
        if self.format.name != "field" or not units:
            return ()
        return ratings(self._all(units[-1], "ahead"), self.names)

    def races(self) -> tuple[Race, ...]:
        """How the scores came about."""
        return tuple(self._race(unit) for unit in self._units())

    def _race(self, unit: Unit) -> Race:
        bounds = [running_bounds(values) for values in self.scores(unit).T]
        blocks = np.unique(np.geomspace(1, self.played(unit), RACE_POINTS).astype(int))
        means, lows, highs = (
            tuple(tuple(float(x) for x in lines[part][blocks - 1]) for lines in bounds) for part in range(3)
        )
        figure = "edge" if unit == "deal" else "win_share"
        return Race(figure, self._lines(), tuple(map(int, blocks)), means, lows, highs)

    def _lines(self) -> tuple[str, ...]:
        """What the entries are called where each needs a name of its own."""
        entries = self.format.entries
        if self.format.name in ("ab", "field"):
            return self.names
        return tuple(f"{self.names[entry.contestant]} v {self.names[entry.against[0]]}" for entry in entries)

    # --- how they played ----------------------------------------------------------------------------------------

    def behaviour(self) -> tuple[Behaviour, ...]:
        """What the contestants did, over all that was played."""
        pages = [page for unit in self._units() for page in self._pages[unit]]
        total = sum((page.behaviour for page in pages), np.zeros((len(self.format.entries), 1), np.int64))
        by_name: dict[int, Any] = {}
        for entry, counts in zip(self.format.entries, total, strict=True):
            by_name[entry.contestant] = by_name.get(entry.contestant, 0) + counts
        return tuple(Behaviour(self.names[one], behaviour.by_name(counts)) for one, counts in by_name.items() if pages)

    def paces(self) -> tuple[Pace, ...]:
        """How long the contestants took for decisions with a choice."""
        pages = [page for unit in self._units() for page in self._pages[unit]]
        found = []
        for number, name in enumerate(self.names):
            times = sum((page.times[number] for page in pages), np.zeros(NUM_BINS, np.int64))
            seconds, decisions = sum(page.seconds[number] for page in pages), int(times.sum())
            if decisions:
                found.append(Pace(name, decisions, 1000 * float(seconds) / decisions, 1000 * quantile_of(times, 0.99)))
        return tuple(found)

    def faults(self) -> tuple[Fault, ...]:
        """What went wrong."""
        return tuple(fault for unit in self._units() for page in self._pages[unit] for fault in page.faults)

    def agent_cards(self) -> tuple[AgentCard, ...]:
        """Who played."""
        return tuple(AgentCard.of(name, agent) for name, agent in dict(self._players).items())

    def setup(self) -> Setup:
        """What has been played."""
        size, titles = len(self.names), tuple(self._titles)
        deals, games = self.played("deal"), self.played("game")
        isolated = self.given[2] is not None
        return Setup(titles[:size], self.rules, self.seed, self.format.name, titles[size:], deals, games, isolated)

    def report(self, complete: bool = True) -> Report:
        """All of it. Raises ``ValueError`` before anything was played."""
        if not self._units():
            raise ValueError("report: nothing has been played yet")
        return Report(
            self.setup(),
            self.results(),
            self.differences(),
            self.head_to_head(),
            self.ratings(),
            self.races(),
            self.behaviour(),
            self.paces(),
            self.faults(),
            self.agent_cards(),
            complete,
        )


def evaluate(
    contestant: str | Agent,
    against: str | Agent | Sequence[str | Agent] = "random",
    rules: Rules | None = None,
    *,
    deals: int = 2000,
    games: int = 500,
    seed: int = SEED,
) -> Result:
    """The result of a `Match` of ``deals`` blocks of one deal and ``games`` blocks of one game, in the format ``"ab"``.

    Raises `AgentError` if the contestant or another agent erred, with the first thing that it did.
    """
    whole("deals", deals, 0)
    whole("games", games, 0)
    match = Match(contestant, against, rules, seed)
    for _ in (*match.play("deal", deals), *match.play("game", games)):
        pass
    for fault in match.faults():
        raise AgentError(f"{fault.message} ({fault.view})")
    return match.result()


# --- playing ----------------------------------------------------------------------------------------------------


class _Alone:
    """The crew of this very process."""

    depth = 1

    def __init__(self, match: Match) -> None:
        self._match = match

    def submit(self, unit: Unit, start: int, stop: int) -> Future[list[Page]]:
        """See `Crew`."""
        done: Future[list[Page]] = Future()
        done.set_result(self._match.pages(unit, start, stop))
        return done


def _requests(crew: Crew, unit: Unit, start: int, count: int, rows: int) -> Iterator[list[Page]]:
    """The pages of the blocks from ``start`` up to ``count``, in order, so many at once as `PATIENCE` allows."""
    page = BLOCKS_A_PAGE[unit]
    most = max(1, (ROWS if unit == "deal" else ROWS // 4) // (rows * page))
    size = 1  # pages asked for at once
    waiting: deque[tuple[float, Future[list[Page]]]] = deque()
    while start < count or waiting:
        while start < count and len(waiting) < crew.depth:
            stop = min((start // page + size) * page, count)
            waiting.append((time.perf_counter(), crew.submit(unit, start, stop)))
            start = stop
        asked, future = waiting.popleft()
        try:
            pages = future.result()
        except BrokenProcessPool as error:
            raise AgentError("workers: a process has died; see whether an agent did it with --isolate") from error
        took = time.perf_counter() - asked
        size = min(2 * size, most) if took < PATIENCE / 2 else max(size // 2, 1) if took > 2 * PATIENCE else size
        yield pages


# --- names ------------------------------------------------------------------------------------------------------


def _agents(specs: Sequence[str | Agent], rules: Rules, limits: Limits | None) -> list[Agent]:
    """Equal names are one agent, so that it is asked about all its views at once."""
    if limits is None:
        return make_agents(specs, rules)
    unnamed = [name_of(spec) for spec in specs if not isinstance(spec, str)]
    if unnamed:
        raise AgentError(f"limits: only named agents can be run in processes of their own, not {', '.join(unnamed)}")
    from agents.isolated import Isolated  # not on every system

    apart = {spec: Isolated(str(spec), rules, *limits) for spec in specs}
    return [apart[spec] for spec in specs]
