"""Formats: who sits where, and for whom a seat counts."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from agents.formats import Entry, make_format
from dnfh_env import AgentError, ArgumentError


def rows_of(name: str, contestants: int) -> list[tuple[list[int], list[int]]]:
    made = make_format(name, contestants)
    return list(zip(made.lineups.tolist(), made.accounts.tolist(), strict=True))


def test_ab_has_each_contestant_in_each_seat_and_the_same_neighbours() -> None:
    made = make_format("ab", 2)
    assert made.entries == (Entry(0, (2, 3, 4)), Entry(1, (2, 3, 4)))
    assert rows_of("ab", 2)[:2] == [([0, 2, 3, 4], [0, -1, -1, -1]), ([4, 0, 2, 3], [-1, 0, -1, -1])]
    assert rows_of("ab", 2)[7] == ([2, 3, 4, 1], [-1, -1, -1, 1])
    assert (made.rows, made.seats) == (8, 4)


def test_one_against_three_goes_both_ways() -> None:
    made = make_format("1v3", 2)
    assert made.entries == (Entry(0, (1, 1, 1)), Entry(1, (0, 0, 0)))
    assert [lineup for lineup, _ in rows_of("1v3", 2)][3:5] == [[1, 1, 1, 0], [1, 0, 0, 0]]
    assert len(make_format("1v3", 3).entries) == 6


def test_two_against_two_has_all_six_seatings() -> None:
    made = make_format("2v2", 2)
    assert {tuple(lineup) for lineup in made.lineups.tolist()} == set(permutations([0, 0, 1, 1]))
    assert (made.accounts == made.lineups).all()
    assert (made.rows, made.seats) == (6, 12)


@pytest.mark.parametrize(("contestants", "rows"), [(4, 24), (5, 120), (6, 360)])
def test_a_field_has_all_lineups_in_all_seatings(contestants: int, rows: int) -> None:
    made = make_format("field", contestants)
    assert len({tuple(lineup) for lineup in made.lineups.tolist()}) == made.rows == rows
    assert (made.accounts == made.lineups).all()


@pytest.mark.parametrize(("name", "contestants"), [("ab", 1), ("ab", 3), ("1v3", 3), ("2v2", 3), ("field", 5)])
def test_entries_count_equally_often_in_every_seat(name: str, contestants: int) -> None:
    made = make_format(name, contestants)
    for entry in range(len(made.entries)):
        by_seat = (made.accounts == entry).sum(axis=0)
        assert len(set(by_seat.tolist())) == 1
        assert by_seat.sum() == made.seats
        sits = made.lineups[made.accounts == entry]
        assert set(sits.tolist()) == {made.entries[entry].contestant}
    assert made.members.sum() == made.seats * len(made.entries)
    assert made.members.dtype == np.int64


@pytest.mark.parametrize(
    ("name", "contestants", "least"), [("ab", 0, 1), ("1v3", 1, 2), ("2v2", 1, 2), ("field", 3, 4)]
)
def test_too_few_contestants(name: str, contestants: int, least: int) -> None:
    with pytest.raises(AgentError, match=f"format '{name}': it takes at least {least} contestants, got {contestants}"):
        make_format(name, contestants)


def test_an_unknown_format() -> None:
    with pytest.raises(ArgumentError, match="format: 'swiss' is not one of 'ab', '1v3', '2v2', 'field'"):
        make_format("swiss", 4)
