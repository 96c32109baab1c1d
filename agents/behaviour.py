"""How an agent plays, counted from ended deals. What each counter counts is defined in ``docs/evaluation.md``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dnfh_env._bits import U0, U1, bit, lowest, plain, popcount
from dnfh_env.cards import CARD_NAMES, JACK_OF_DIAMONDS, NUM_SEATS, card_id
from dnfh_env.engine import NO_SEAT, OVER
from dnfh_env.errors import ArgumentError
from dnfh_env.objective import EDGE, TWELFTHS, centred, shot_worth
from dnfh_env.rules import CALLS, FIRST_CALL, SHOT_CODES
from dnfh_env.view import received_by

PLACES = ("dealer", "left", "across", "right")
"""Where a seat is, seen from the dealer."""

_JACK = CARD_NAMES[JACK_OF_DIAMONDS]
_QUEENS = ("QC", "QD", "QH", "QS")
_KINDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("deals:", PLACES),
    ("points:", PLACES),
    ("edge:", PLACES),
    ("call:", CALLS),
    ("held:", CARD_NAMES),
    ("passed:", CARD_NAMES),
    ("taken:", (_JACK, *_QUEENS)),
    ("kept:", _QUEENS),
    ("given:", _QUEENS),
    ("given_under_leader:", _QUEENS),
    ("given_to_leader:", _QUEENS),
    ("shots_", ("tried", "landed", "broken", "faced", "stopped")),
)
COUNTS: tuple[str, ...] = ("deals", *(kind + name for kind, names in _KINDS for name in names))
"""The counters by name, in the order of the last axis of `count_deals`."""

_WORTH = round(TWELFTHS * EDGE)
"""Twelfths of a point of edge that a point of standing is."""
_DEALS, _POINTS, _EDGE = (COUNTS.index(f"{kind}:dealer") for kind in ("deals", "points", "edge"))
_CALL = COUNTS.index(f"call:{CALLS[0]}")
_HELD, _PASSED = (COUNTS.index(f"{kind}:{CARD_NAMES[0]}") for kind in ("held", "passed"))
_TAKEN_JACK = COUNTS.index(f"taken:{_JACK}")
_TAKEN, _KEPT, _GIVEN, _UNDER_LEADER, _TO_LEADER = (
    COUNTS.index(f"{kind}:{_QUEENS[0]}") for kind in ("taken", "kept", "given", "given_under_leader", "given_to_leader")
)
_TRIED, _LANDED, _BROKEN, _FACED, _STOPPED = (
    COUNTS.index(f"shots_{what}") for what in ("tried", "landed", "broken", "faced", "stopped")
)
_JACK_BIT = np.uint64(1 << JACK_OF_DIAMONDS)
_QUEEN_IDS = np.array([card_id(name) for name in _QUEENS])
_SHOT_GAME = SHOT_CODES["game"]


# --- counting ---------------------------------------------------------------------------------------------------


def count_deals(games: NDArray[Any], rules: NDArray[Any]) -> NDArray[np.int64]:
    """The counters of each seat, ``int64[B, 4, len(COUNTS)]``.

    Args:
        games: `GAME` records ``[B]``, all over; of a game of many deals, the last one is counted.
        rules: of `compile_rules`: those that were played.

    Raises `ArgumentError` if a game is not over.
    """
    counts = np.zeros((len(games) * NUM_SEATS, len(COUNTS)), np.int64)
    _add(games, rules, np.arange(len(counts)).reshape(-1, NUM_SEATS), counts)
    return counts.reshape(-1, NUM_SEATS, len(COUNTS))


def count_players(games: NDArray[Any], rules: NDArray[Any], lineup: NDArray[np.int64], players: int) -> NDArray[Any]:
    """`count_deals` summed by player, without the large array: ``int64[players, len(COUNTS)]``.

    Args:
        games: as there.
        rules: as there.
        lineup: ``int64[B, 4]``, who sat at each seat, from 0 to ``players - 1``.
        players: how many there are.

    Raises `ArgumentError` if a game is not over, or for a line-up of another shape or with others in it.
    """
    if lineup.shape != (len(games), NUM_SEATS) or (lineup.size and not 0 <= lineup.min() <= lineup.max() < players):
        raise ArgumentError(f"lineup: expected [{len(games)}, 4] of 0 to {players - 1}, got {list(lineup.shape)}")
    counts = np.zeros((players, len(COUNTS)), np.int64)
    _add(games, rules, lineup, counts)
    return counts


def by_name(counts: NDArray[np.int64]) -> dict[str, int]:
    """Counters ``int64[len(COUNTS)]`` by their names."""
    return dict(zip(COUNTS, counts.tolist(), strict=True))


def _add(games: NDArray[Any], rules: NDArray[Any], owners: NDArray[np.int64], counts: NDArray[np.int64]) -> None:
    if (games["phase"] != OVER).any():
        raise ArgumentError("games: expected ended ones, got some that are still played")
    add_deals(plain(games), rules, plain(owners, np.int64), counts)


@njit(cache=True)
def add_deals(games: Any, rules: Any, owners: Any, counts: Any) -> None:
    """Add the counters of seat ``s`` of record ``i`` to the row ``owners[i, s]``, ``int64[B, 4]``, of ``counts``."""
    r = rules[0]
    for i in range(games.shape[0]):
        g = games[i]
        worth = worth_of(g, r)
        leader = leader_of(g)
        tries, stops = try_of(g, r)
        for s in range(NUM_SEATS):
            row = owners[i, s]
            place = (s - np.int64(g.dealer)) & 3
            counts[row, 0] += 1
            counts[row, _DEALS + place] += 1
            counts[row, _POINTS + place] += g.points[s]
            counts[row, _EDGE + place] += worth[s]
            if place == 0 and r.rotation_length == 0:
                counts[row, _CALL + np.int64(g.call) - FIRST_CALL] += 1
            add_pass(g, s, counts, row)
            add_queens(g, s, leader, counts, row)
            if tries != NO_SEAT:
                add_shot(s, tries, stops, counts, row)


@njit
def worth_of(g: Any, r: Any) -> Any:
    """The edge of each seat in the deal, in twelfths of a point: 4/3 of its standing, see `dnfh_env.objective`."""
    if g.shooter != NO_SEAT and r.shot == _SHOT_GAME:
        standing = shot_worth(g, 0), shot_worth(g, 1), shot_worth(g, 2), shot_worth(g, 3)
    else:
        standing = centred(g.entered, g.entered, 0)
    return (
        np.int64(_WORTH * standing[0]),
        np.int64(_WORTH * standing[1]),
        np.int64(_WORTH * standing[2]),
        np.int64(_WORTH * standing[3]),
    )


@njit
def leader_of(g: Any) -> Any:
    """Who alone had the lowest score before the deal, or `NO_SEAT`."""
    leader = 0
    tied = False
    for s in range(1, NUM_SEATS):
        mine, low = g.scores[s] - g.entered[s], g.scores[leader] - g.entered[leader]
        tied = mine == low or (tied and mine > low)
        leader = s if mine < low else leader
    return NO_SEAT if tied else leader


@njit
def try_of(g: Any, r: Any) -> Any:
    """Who tried a shot, and who stopped it; `NO_SEAT` for nobody."""
    tries = NO_SEAT
    taken = 0
    for t in range(13):
        cards = U0
        for k in range(4 * t, 4 * t + 4):
            cards |= bit(g.plays[k])
        cards &= r.shot_cards
        if cards:
            taker = taker_of(g, t)
            if tries != NO_SEAT and taker != tries:
                return (tries, taker) if reaches_half(taken, r) else (NO_SEAT, NO_SEAT)
            tries = taker
            taken += popcount(cards)
    return tries, NO_SEAT


@njit
def reaches_half(taken: Any, r: Any) -> Any:
    """Whether so many are half of the shot cards or more."""
    return 2 * taken >= popcount(r.shot_cards)


@njit
def taker_of(g: Any, trick: Any) -> Any:
    """Who took a trick: the one who led the next, or has the cards of the last."""
    if trick < 12:
        return np.int64(g.leaders[trick + 1])
    return holder(g.taken, bit(g.plays[51]))


@njit
def holder(by_seat: Any, card: Any) -> Any:
    """Whose cards, ``uint64[4]``, hold the one of ``card``, a mask."""
    s = 0
    while not by_seat[s] & card:
        s += 1
    return s


@njit
def add_pass(g: Any, s: Any, counts: Any, row: Any) -> None:
    """The cards that could be passed and those that were; nothing on hold."""
    passed = g.given[s, 0] | g.given[s, 1] | g.given[s, 2]
    if not passed:
        return
    left, across, right = received_by(g, s)
    held = g.played[s] & ~(left | across | right) | passed
    while held:
        counts[row, _HELD + lowest(held)] += 1
        held &= held - U1
    while passed:
        counts[row, _PASSED + lowest(passed)] += 1
        passed &= passed - U1


@njit
def add_queens(g: Any, s: Any, leader: Any, counts: Any, row: Any) -> None:
    """The jack and the queens: taken, kept and given."""
    counts[row, _TAKEN_JACK] += g.taken[s] & _JACK_BIT != U0
    for q in range(_QUEEN_IDS.shape[0]):
        queen = bit(_QUEEN_IDS[q])
        taken, played = g.taken[s] & queen != U0, g.played[s] & queen != U0
        given = played and not taken
        under = given and leader not in (NO_SEAT, s)
        counts[row, _TAKEN + q] += taken
        counts[row, _KEPT + q] += played and taken
        counts[row, _GIVEN + q] += given
        counts[row, _UNDER_LEADER + q] += under
        counts[row, _TO_LEADER + q] += under and g.taken[leader] & queen != U0


@njit
def add_shot(s: Any, tries: Any, stops: Any, counts: Any, row: Any) -> None:
    """A deal in which the seat ``tries`` tried, and ``stops`` stopped it or nobody did."""
    mine = s == tries
    counts[row, _TRIED] += mine
    counts[row, _LANDED] += mine and stops == NO_SEAT
    counts[row, _BROKEN] += mine and stops != NO_SEAT
    counts[row, _FACED] += not mine
    counts[row, _STOPPED] += s == stops


# --- showing ----------------------------------------------------------------------------------------------------

Show = Literal["percent", "points"]

MOST_PASSED = 10
"""How many cards the group ``"passes"`` shows."""


@dataclass(frozen=True)
class Rate:
    """One line of a group."""

    label: str
    count: int
    """What was counted; for edges in twelfths of a point."""
    of: int
    """Out of how many deals or cases."""
    value: float | None
    """The share or the mean, in points; None where ``of`` is 0."""
    show: Show
    """As a percentage, or as a number of points."""


@dataclass(frozen=True)
class Group:
    """Rates that belong side by side."""

    name: str
    title: str
    rates: tuple[Rate, ...]
    """None where nothing of the kind was counted at all."""


def rates(counts: Mapping[str, int]) -> tuple[Group, ...]:
    """What counters say, in groups for display: calls, passes, jack, queens, shots, seats.

    ``dataclasses.asdict`` makes JSON values of a group. Raises `ArgumentError` if one of `COUNTS` is missing.
    """
    missing = [name for name in COUNTS if name not in counts]
    if missing:
        raise ArgumentError(f"counts: {missing[0]!r} is missing; expected all of agents.behaviour.COUNTS")
    return (
        Group("calls", "Calls as the dealer", tuple(_calls(counts))),
        Group("passes", "Cards most often passed when held", tuple(_passes(counts))),
        Group("jack", "Jack of diamonds", (_share(f"{_JACK} taken", counts, f"taken:{_JACK}", "deals"),)),
        Group("queens", "Queens", tuple(_queens(counts))),
        Group("shots", "Shots", tuple(_shots(counts))),
        Group("seats", "By place from the dealer", tuple(_seats(counts))),
    )


def _share(label: str, counts: Mapping[str, int], count: str, of: str) -> Rate:
    return _rate(label, counts[count], counts[of])


def _rate(label: str, count: int, of: int, unit: int = 1, show: Show = "percent") -> Rate:
    return Rate(label, count, of, count / (unit * of) if of else None, show)


def _calls(counts: Mapping[str, int]) -> Iterable[Rate]:
    made = sum(counts[f"call:{call}"] for call in CALLS)
    return (_rate(call, counts[f"call:{call}"], made) for call in CALLS if made)


def _passes(counts: Mapping[str, int]) -> Iterable[Rate]:
    """By the share passed, the most often held first among equals."""
    held = [name for name in CARD_NAMES if counts[f"held:{name}"]]
    shares = [_share(name, counts, f"passed:{name}", f"held:{name}") for name in held]
    return sorted(shares, key=lambda rate: (-(rate.value or 0), -rate.of))[:MOST_PASSED]


def _queens(counts: Mapping[str, int]) -> Iterable[Rate]:
    for queen in _QUEENS:
        given = counts[f"given:{queen}"]
        yield _share(f"{queen} taken", counts, f"taken:{queen}", "deals")
        yield _rate(f"{queen} given, of those played", given, given + counts[f"kept:{queen}"])
        yield _share(f"{queen} given to the leader", counts, f"given_to_leader:{queen}", f"given_under_leader:{queen}")


def _shots(counts: Mapping[str, int]) -> Iterable[Rate]:
    yield _share("tried", counts, "shots_tried", "deals")
    yield _share("landed, of those tried", counts, "shots_landed", "shots_tried")
    yield _share("broken, of those tried", counts, "shots_broken", "shots_tried")
    yield _share("others' tries stopped", counts, "shots_stopped", "shots_faced")


def _seats(counts: Mapping[str, int]) -> Iterable[Rate]:
    for kind, label, unit in (("points", "card points", 1), ("edge", "edge", TWELFTHS)):
        for place in PLACES:
            yield _rate(f"{label}, {place}", counts[f"{kind}:{place}"], counts[f"deals:{place}"], unit, "points")
