"""Formats of a match: who sits where in the rows of a block, and for whom each seat counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, count, permutations
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from dnfh_env.cards import NUM_SEATS
from dnfh_env.errors import AgentError, one_of

FormatName = Literal["ab", "1v3", "2v2", "field"]

OTHERS = 3
"""Players that follow the contestants in `ab`: those at the left, across and at the right."""

Row = tuple[list[int], list[int]]
"""By seat: who sits there, and the entry that the seat counts for, or -1."""


@dataclass(frozen=True)
class Entry:
    """One line of a result: a contestant and whom it is played against, as numbers of players."""

    contestant: int
    against: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Format:
    """The rows of a block, all of which are played on the same cards."""

    name: FormatName
    entries: tuple[Entry, ...]
    lineups: NDArray[np.int64]
    """``int64[R, 4]``: the player at each seat."""
    accounts: NDArray[np.int64]
    """``int64[R, 4]``: the entry that a seat counts for, -1 where it is nobody's."""

    @property
    def rows(self) -> int:
        """Games in a block."""
        return len(self.lineups)

    @property
    def members(self) -> NDArray[np.int64]:
        """``int64[R * 4, E]``: 1 where a seat of a row counts for an entry."""
        counts: NDArray[np.bool_] = self.accounts.reshape(-1, 1) == np.arange(len(self.entries))
        return counts.astype(np.int64)

    @property
    def seats(self) -> int:
        """How many seats of a block count for an entry, the same for all."""
        return int(self.members[:, 0].sum())

    @property
    def meetings(self) -> int:
        """In how many rows of a block two players of a field both sit."""
        return int(np.count_nonzero(np.isin(self.lineups, [0, 1]).sum(axis=1) == 2))


def make_format(name: str, contestants: int) -> Format:
    """A format for so many contestants, the players from 0 on.

    Args:
        name: ``"ab"``: each contestant in each of the four seats against the same three `OTHERS`, the players after
            the contestants, at its left, across and right; ``"1v3"``: each in each seat against three of each other
            contestant; ``"2v2"``: two of one against two of another, in all six seatings; ``"field"``: all line-ups of
            four different contestants in all 24 seatings.
        contestants: how many.

    Raises `ArgumentError` for an unknown name, `AgentError` for too few contestants.
    """
    chosen: FormatName = one_of("format", name, get_args(FormatName))
    least, build = _FORMATS[chosen]
    if contestants < least:
        raise AgentError(f"format {name!r}: it takes at least {least} contestants, got {contestants}")
    entries, rows = build(contestants)
    lineups, accounts = (np.array(part, np.int64) for part in zip(*rows, strict=True))
    return Format(chosen, tuple(entries), lineups, accounts)


def _ab(contestants: int) -> tuple[list[Entry], list[Row]]:
    others = tuple(range(contestants, contestants + OTHERS))
    entries = [Entry(one, others) for one in range(contestants)]
    return entries, [row for number, entry in enumerate(entries) for row in _in_each_seat(number, entry)]


def _one_against_three(contestants: int) -> tuple[list[Entry], list[Row]]:
    entries = [Entry(one, (other,) * 3) for one, other in _ordered_pairs(contestants)]
    return entries, [row for number, entry in enumerate(entries) for row in _in_each_seat(number, entry)]


def _in_each_seat(number: int, entry: Entry) -> Iterator[Row]:
    """The contestant in each seat, the others at its left, across and right."""
    circle = (entry.contestant, *entry.against)
    for seat in range(NUM_SEATS):
        places = [(s - seat) % NUM_SEATS for s in range(NUM_SEATS)]
        yield [circle[place] for place in places], [-1 if place else number for place in places]


def _two_against_two(contestants: int) -> tuple[list[Entry], list[Row]]:
    entries = [Entry(one, (other,) * 2) for one, other in _ordered_pairs(contestants)]
    number = {(entry.contestant, entry.against[0]): n for n, entry in enumerate(entries)}
    rows: list[Row] = []
    for one, other in combinations(range(contestants), 2):
        for seats in combinations(range(NUM_SEATS), 2):
            lineup = [one if s in seats else other for s in range(NUM_SEATS)]
            rows.append((lineup, [number[player, one + other - player] for player in lineup]))
    return entries, rows


def _field(contestants: int) -> tuple[list[Entry], list[Row]]:
    everybody = range(contestants)
    entries = [Entry(one, tuple(other for other in everybody if other != one)) for one in everybody]
    return entries, [(list(lineup), list(lineup)) for lineup in permutations(everybody, NUM_SEATS)]


def _ordered_pairs(contestants: int) -> list[tuple[int, int]]:
    return list(permutations(range(contestants), 2))


_FORMATS: dict[FormatName, tuple[int, Callable[[int], tuple[list[Entry], list[Row]]]]] = {
    "ab": (1, _ab),
    "1v3": (2, _one_against_three),
    "2v2": (2, _two_against_two),
    "field": (4, _field),
}
"""The fewest contestants, and what builds entries and rows."""


def told_apart(titles: Sequence[str], players: Sequence[int]) -> tuple[str, ...]:
    """Names of players: equal titles of different ones get a number behind the second and further ones."""
    names: dict[int, str] = {}
    for title, player in zip(titles, players, strict=True):
        taken = set(names.values())
        further = (f"{title} ({number})" for number in count(2))
        free = title if title not in taken else next(name for name in further if name not in {*taken, *titles})
        names.setdefault(player, free)
    return tuple(names[player] for player in players)
