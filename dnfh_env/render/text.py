"""Games and views as plain text: `table` opens all hands, `seat_view` shows what one seat knows and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from numpy.typing import NDArray

from dnfh_env._bits import indices
from dnfh_env.cards import CARD_NAMES, NUM_SEATS, SUITS, names_in
from dnfh_env.engine import LEFT, NO_CALL, NO_SEAT, OVER, PLAY
from dnfh_env.game import PHASES
from dnfh_env.notation import action_to_string, hand_to_string, legal_of
from dnfh_env.observation import PLACES
from dnfh_env.rules import CALLS, FIRST_CALL, KITTY, Rules, compile_rules

SEAT_NAMES = tuple(f"seat {seat}" for seat in range(NUM_SEATS))
_NEIGHBOURS = PLACES[1:]

Row = Sequence[str | int]


def table(game: NDArray[Any], rules: Rules, names: Sequence[str] = SEAT_NAMES) -> str:
    """Everything, hidden hands too, for the eyes of a spectator.

    Args:
        game: a `GAME` array of length 1.
        rules: the rules it is played by.
        names: what to call the four seats.
    """
    g = game[0]
    players = [
        [*_standing(g, seat, names), *_suits(g.hand[seat]), _given(g, seat), _scoring(g.taken[seat], rules)]
        for seat in range(NUM_SEATS)
    ]
    header = ["", "", "score", "points", *SUITS, "passed", "taken"]
    facts = [
        ["trick", _trick(g, names)],
        ["legal", _actions(legal_of(game, compile_rules(rules)))],
        ["result", _result(g, names)],
    ]
    return _page(_headline(g, rules, names), [header, *players], facts)


def seat_view(view: Any, rules: Rules) -> str:
    """What a seat knows, in the seat's own words: me, left, across, right.

    Args:
        view: a `VIEW` record.
        rules: the rules of the game.
    """
    players = [
        [*_standing(view, place, PLACES), _voids(view.voids[place]), _scoring(view.taken[place], rules)]
        for place in range(NUM_SEATS)
    ]
    hand = zip(SUITS, _suits(view.hand), strict=True)
    facts = [
        ["hand", "  ".join(f"{suit} {ranks or '-'}" for suit, ranks in hand)],
        ["gave", _by_neighbour(view.given, view.call)],
        ["got", _by_neighbour(view.received, view.call)],
        ["trick", _trick(view, PLACES)],
        ["legal", _actions(int(view.legal))],
    ]
    header = ["", "", "score", "points", "void in", "taken"]
    return _page(_headline(view, rules, PLACES), [header, *players], facts)


def _page(headline: str, players: Sequence[Row], facts: Sequence[Row]) -> str:
    """A headline, the players' rows, and the facts that there is something to say about."""
    return "\n".join([headline, "", *_columns(players), "", *_columns([fact for fact in facts if fact[1]])]).rstrip()


def _columns(rows: Sequence[Row]) -> list[str]:
    """Rows as lines with their cells below each other, numbers to the right."""
    widths = [max(len(str(row[column])) for row in rows) for column in range(len(rows[0]))] if rows else []
    return ["  ".join(map(_cell, row, widths)).rstrip() for row in rows]


def _cell(value: str | int, width: int) -> str:
    return str(value).rjust(width) if isinstance(value, int) else value.ljust(width)


# --- what a game and a view have in common ----------------------------------------------------------------------


def _headline(record: Any, rules: Rules, names: Sequence[str]) -> str:
    parts = [f"deal {record.deal + 1}", PHASES[record.phase], f"dealer {names[record.dealer]}"]
    if record.call != NO_CALL:
        parts.append(f"call {CALLS[record.call - FIRST_CALL]}")
    if record.phase == PLAY:
        parts.append("hearts broken" if record.broken else "hearts not broken")
    return ", ".join([*parts, f"target {rules.target}"])


def _standing(record: Any, place: int, names: Sequence[str]) -> list[str | int]:
    to_move = record.phase != OVER and record.seat == place
    return [">" if to_move else "", names[place], int(record.scores[place]), int(record.points[place])]


def _trick(record: Any, names: Sequence[str]) -> str:
    """The cards on the table, or the last trick while the next one has not been led."""
    played = int(record.num_plays)
    if not played:
        return ""
    first = (played - 1) & ~3
    leader = int(record.leaders[first // 4])
    plays = [
        f"{names[(leader + k) % NUM_SEATS]} {CARD_NAMES[card]}" for k, card in enumerate(record.plays[first:played])
    ]
    taken = f", taken by {names[record.seat]}" if len(plays) == NUM_SEATS else ""
    return f"{first // 4 + 1}: {', '.join(plays)}{taken}"


def _by_neighbour(cards: Iterable[Any], call: Any) -> str:
    """Cards by direction, as in ``"left KS, right QS AS"``; a kitty has no directions."""
    piles = list(cards)
    if call == KITTY:
        return " ".join(names_in(piles[LEFT]))
    named = zip(_NEIGHBOURS, piles, strict=True)
    return ", ".join(f"{name} {' '.join(names_in(pile))}" for name, pile in named if pile)


def _suits(hand: Any) -> list[str]:
    return hand_to_string(int(hand)).split(".")


def _scoring(cards: Any, rules: Rules) -> str:
    return " ".join(names_in(int(cards) & rules.scoring_cards))


def _actions(legal: int) -> str:
    return " ".join(map(action_to_string, indices(legal)))


# --- what only one of them has ----------------------------------------------------------------------------------


def _given(g: Any, seat: int) -> str:
    given = _by_neighbour(g.given[seat], g.call)
    return f"{given}, back {' '.join(names_in(g.kitty[seat]))}" if g.kitty[seat] else given


def _voids(voids: Any) -> str:
    return " ".join(suit for k, suit in enumerate(SUITS) if int(voids) >> k & 1)


def _result(g: Any, names: Sequence[str]) -> str:
    if g.phase != OVER:
        return ""
    winners = [names[seat] for seat in indices(int(g.winners))]
    if not winners:
        return "over without a winner"
    if len(winners) > 1:
        return f"{', '.join(winners)} share the win"
    return f"{winners[0]} wins{' by a shot' if g.shooter != NO_SEAT and winners == [names[g.shooter]] else ''}"
