"""Whole games at tables with a line of people who wait (R15, R18): who plays, wins and is sent away.

``docs/evaluation.md`` says how tables begin and end and what the figures mean. Seats change hands as rules have it, so
no cards are played twice here; for strength there are duplicate matches.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from agents.arena import SEED
from agents.files import write_text
from agents.formats import told_apart
from agents.plain import encoded
from agents.referee import Player, play_out
from agents.report.figures import one_line
from agents.stats import Interval, mean_interval
from dnfh_env.agent import Agent, make_agents, name_of
from dnfh_env.cards import NUM_SEATS
from dnfh_env.engine import NEXT_GAME, NO_SEAT, new_games
from dnfh_env.errors import ArgumentError, shown, whole
from dnfh_env.notation import check_counter
from dnfh_env.objective import TWELFTHS, WIN, standings_of
from dnfh_env.rules import Rules, checked_rules, compile_rules
from dnfh_env.table import follow_on, leavers_of

if TYPE_CHECKING:
    from rich.table import Table

TABLE_GAMES = 10
"""Games that one table plays at most, unless said otherwise."""

_GAMES, _WAITED, _WINS, _SHOTS, _BESIDE, _SENT = range(6)
"""What a table keeps books of for each contestant; wins in parts of one, see `TWELFTHS`."""


@dataclass(frozen=True)
class TableScore:
    """What became of a contestant over all tables."""

    name: str
    games: int
    """In which it sat at the table."""
    waited: int
    """Games during which it stood in the line."""
    wins: float
    """Shares of wins; a game cut off counts 1/4 for each."""
    win_share: Interval | None
    """Wins a game, an interval over tables within 0 and 1; None if it never sat down."""
    shots: int
    """Games that it won by a shot."""
    beside_shooter: int
    """Games that its right neighbour won by a shot."""
    sent: int
    """Those of them after which it had to leave its seat, for good or for the end of the line."""


@dataclass(frozen=True)
class TableResult:
    """What came of the games at all tables."""

    rules: Rules
    seed: int
    games: int
    """Over all tables."""
    table_games: int
    """How many one table played at most."""
    tables: int
    scores: tuple[TableScore, ...]
    """In the order in which the contestants were named."""


def play_tables(
    contestants: Sequence[str | Agent],
    rules: Rules | None = None,
    games: int = 200,
    seed: int = SEED,
    *,
    table_games: int = TABLE_GAMES,
    progress: Callable[[int], None] | None = None,
) -> TableResult:
    """Play ``games`` whole games at as many tables as that takes.

    Args:
        contestants: four agents or more, or their names; a name may come more than once.
        rules: what is played, `Rules()` if not given, with `leaver`, `empty_line` and `table_dealer`.
        games: how many, over all tables.
        seed: what the line-ups, the cards and the agents' seeds come from.
        table_games: how many one table plays at most.
        progress: is told how many games have been added, each time that some have.

    Raises `ArgumentError` for fewer than four contestants or numbers below 1, `AgentError` for an unknown agent or one
    that errs, and whatever building an agent raises.
    """
    hall = _Hall(contestants, checked_rules(rules), check_counter("seed", seed))
    whole("games", games, 1)
    whole("table_games", table_games, 1)
    tables: list[_Table] = []
    while missing := games - sum(table.played for table in tables):
        begun = hall.open(len(tables), missing, table_games)
        tables += begun
        hall.play(begun, progress)
    return TableResult(hall.rules, seed, games, table_games, len(tables), hall.scores(tables))


@dataclass
class _Table:
    """One table: who is there, and its books."""

    number: int
    seated: list[int]
    """Contestants by seat."""
    waiting: list[int]
    left: int
    """Games that it may still play."""
    book: NDArray[np.int64]
    """``[6, contestants]``, by what is counted."""
    played: int = 0

    def end_game(self, wins: Sequence[int], leaver: int, rules: Rules) -> None:
        """Enter a game: the parts of its win by seat, and the seat at the left of its shooter or `NO_SEAT`."""
        self.book[_GAMES, self.seated] += 1
        self.book[_WINS, self.seated] += wins
        self.book[_WAITED, self.waiting] += 1
        self.played += 1
        self.left -= 1
        if leaver != NO_SEAT:
            self._end_by_shot(leaver, rules)

    def _end_by_shot(self, leaver: int, rules: Rules) -> None:
        """R15, and R18 for how the seat is filled again."""
        sent = self.seated[leaver]
        self.book[_SHOTS, self.seated[leaver - 1]] += 1
        self.book[_BESIDE, sent] += 1
        if self.waiting:
            self.book[_SENT, sent] += 1
            self.seated[leaver] = self.waiting.pop(0)
            if rules.leaver == "rejoins":
                self.waiting.append(sent)
        elif rules.empty_line == "end":
            self.book[_SENT, sent] += 1
            self.left = 0


@dataclass
class _Hall:
    """Where the tables stand."""

    contestants: Sequence[str | Agent]
    rules: Rules
    seed: int
    players: list[Player] = field(init=False)

    def __post_init__(self) -> None:
        if isinstance(self.contestants, str) or len(self.contestants) < NUM_SEATS:
            raise ArgumentError(
                f"contestants: expected at least {NUM_SEATS} for a table, got {shown(self.contestants)}"
            )
        agents = make_agents(self.contestants, self.rules)
        names = told_apart([name_of(spec) for spec in self.contestants], range(len(self.contestants)))
        self.players = list(zip(names, agents, strict=True))

    def open(self, first: int, games: int, most: int) -> list[_Table]:
        """Tables from number ``first`` on that may play ``games`` together, each ``most`` but for the last."""
        lengths = [min(most, games - done) for done in range(0, games, most)]
        return [self._table(first + i, length) for i, length in enumerate(lengths)]

    def _table(self, number: int, length: int) -> _Table:
        order = line_up(self.seed, number, len(self.players))
        book = np.zeros((6, len(order)), np.int64)
        return _Table(number, order[:NUM_SEATS], order[NUM_SEATS:], length, book)

    def play(self, tables: Sequence[_Table], progress: Callable[[int], None] | None) -> None:
        """Play fresh tables to their ends, one game of each side by side."""
        compiled = compile_rules(self.rules)
        dealers = None
        while tables:
            numbers = np.array([table.number + int(NEXT_GAME) * table.played for table in tables], np.uint64)
            games = new_games(self.rules, self.seed, numbers)
            if dealers is not None:
                follow_on(games, self.rules, dealers)
            play_out(games, compiled, np.array([table.seated for table in tables]), self.players)
            wins = np.rint(TWELFTHS * (standings_of(games, compiled, WIN) + 1 / NUM_SEATS)).astype(np.int64)
            for table, parts, leaver in zip(tables, wins.tolist(), leavers_of(games, self.rules).tolist(), strict=True):
                table.end_game(parts, leaver, self.rules)
            if progress is not None:
                progress(len(tables))
            dealers = games["dealer"][[table.left > 0 for table in tables]].astype(np.int64)
            tables = [table for table in tables if table.left]

    def scores(self, tables: Sequence[_Table]) -> tuple[TableScore, ...]:
        """The books of all tables, by contestant."""
        books = np.array([table.book for table in tables])
        return tuple(_score(name, books[:, :, i]) for i, (name, _) in enumerate(self.players))


def line_up(seed: int, number: int, count: int) -> list[int]:
    """In which order ``count`` contestants come to a table: four sit down, the others wait.

    ``count`` tables in a row have the rotations of one drawn order. Only what Python promises to keep is used of
    `random`, so that it is the same in every version.
    """
    rng = random.Random(f"{seed} {number // count}")
    draws = [rng.random() for _ in range(count)]
    order = sorted(range(count), key=draws.__getitem__)
    turn = number % count
    return order[turn:] + order[:turn]


def _score(name: str, books: NDArray[np.int64]) -> TableScore:
    """Of the books of one contestant, ``int64[tables, 6]``."""
    games, waited, wins, shots, beside, sent = books.sum(axis=0).tolist()
    share = ratio_interval(books[:, _WINS] / TWELFTHS, books[:, _GAMES]) if games else None
    return TableScore(name, games, waited, wins / TWELFTHS, share, shots, beside, sent)


def ratio_interval(wins: NDArray[np.float64], games: NDArray[np.int64]) -> Interval:
    """The interval of all wins over all games, ``[T]`` each by table, within 0 and 1; at least one game was played.

    Tables are the independent observations: Student's, of the ratio's residuals ``wins - share * games`` (Cochran,
    Sampling Techniques, 3rd edition, 1977, chapter 6). As in `agents.stats.share_interval` a table that won nothing and
    one that won all, of the mean number of games, are added first, so that there is a width when all are equal.
    """
    usual = games.mean()
    padded_wins, padded_games = np.append(wins, [0, usual]), np.append(games, [usual, usual])
    centre = padded_wins.sum() / padded_games.sum()
    padded = mean_interval(centre + (padded_wins - centre * padded_games) / usual)
    share = float(wins.sum() / games.sum())
    return replace(
        padded, mean=share, low=max(0.0, min(share, padded.low)), high=min(1.0, max(share, padded.high)), n=len(games)
    )


def table(result: TableResult) -> Table:
    """The result for a terminal; needs rich."""
    from rich.table import Table

    caption = (
        f"{result.games} games at {result.tables} tables of at most {result.table_games}, 95 % intervals over tables."
    )
    made = Table(caption=caption, caption_justify="left")
    made.add_column("contestant", overflow="fold")
    for title in ("games", "waited", "wins", "win share, %", "shots", "beside a shooter", "sent"):
        made.add_column(title, justify="right")
    for score in sorted(result.scores, key=lambda score: -score.wins):
        share = score.win_share
        shown = "–" if share is None else f"{100 * share.mean:.1f} [{100 * share.low:.1f}, {100 * share.high:.1f}]"
        numbers = (score.games, score.waited, f"{score.wins:.1f}", shown, score.shots, score.beside_shooter, score.sent)
        made.add_row(one_line(score.name), *map(str, numbers))
    return made


def save(result: TableResult, folder: Path) -> Path:
    """Write the result as ``tables.json`` into ``folder``, which is made if need be; returns where it is."""
    path = folder / "tables.json"
    write_text(path, json.dumps(encoded(result), indent=2) + "\n")
    return path
