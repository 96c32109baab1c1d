"""Exact play of an ending with all hands open: what each legal action comes to, and whether a shot can be stopped.

`solve` lets every seat play for itself (max^n: Luckhardt, Irani, An Algorithmic Solution of N-Person Games, AAAI 1986),
`paranoid` lets the others play against one seat (Sturtevant, Korf, On Pruning Techniques for Multi-Player Games, AAAI
2000), a bound below what that seat can make sure of in any company, and `helped` lets them play for it, a bound above.

What a seat plays for is the standing of the deal under the objective ``"points"``, see `dnfh_env.objective`, in
`QUARTERS` of a point, which are whole numbers. Of equal values a seat takes the one that leaves its left neighbour the
least, then the one across; that leaves none open, since the four sum to 0. So the value of a position depends on
neither the order of the actions, nor on which of `agents.search.equal` cards are tried, nor on the table.

*The table* holds positions between tricks that have been searched. It has a fixed number of places, a position has one
of them, and a later one replaces an earlier. A key is all that a result depends on, compared in full.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from agents.search.equal import alike_cards, equal_cards, representatives
from dnfh_env._bits import U0, U1, bit, indices, lowest
from dnfh_env._random import mix
from dnfh_env.cards import HAND_SIZE, NUM_CARDS, NUM_SEATS
from dnfh_env.engine import GAME, OVER, PLAY, copied_games, end_deal, legal, play
from dnfh_env.errors import ArgumentError, is_whole, shown, whole
from dnfh_env.notation import legal_of
from dnfh_env.objective import POINTS, SHOT_VALUE, standing
from dnfh_env.rules import SHOT_CODES, Rules, compile_rules

QUARTERS = NUM_SEATS
"""Parts of a point in which values are whole numbers: the mean of four seats minus one's own."""

MAX_TRICKS = 8
"""Tricks left, the one under way included, up to which a position is searched for points: 8 may take seconds."""

Shot = Literal["certain", "forced", "open", "impossible"]
"""What may become of a seat's shot, see `shot_of`."""

_SHOT_GAME = SHOT_CODES["game"]
_ALL_SEATS = (1 << NUM_SEATS) - 1
_FAR = 1 << 40
"""Beyond every value."""
_LARGEST_TABLE = 1 << 18
"""Places that are made unasked, 8 MB."""

_LEADER_AT, _TAKERS_AT = np.array([52, 54], np.uint64)
"""Bits of a key beside the cards."""

OWN, AGAINST, FOR = range(3)
"""Whom the seats play for: each for itself, or the others against the seat asked about, or for it."""


class Aim(NamedTuple):
    """What is asked of a search; whole numbers."""

    kind: Any
    """`OWN`, `AGAINST` or `FOR`."""
    seat: Any
    """The one asked about."""
    shooters: Any
    """A bit for each seat whose shot is looked for."""
    least: Any
    """Where the seat asked about can be brought this low, nothing else is tried."""
    most: Any
    """The same above."""


_KEY: list[Any] = [
    ("cards", np.uint64),  # those in the hands, and who leads and the like; 0: none, see `set_key`
    ("points", np.uint64),  # of the seats so far, where a shot is possible
]
_PLACE_FIELDS: list[Any] = [*_KEY, ("values", np.int32, (4,))]  # by seat, of what is to come
PLACE: np.dtype[Any] = np.dtype((np.record, np.dtype(_PLACE_FIELDS, align=True)))
"""A place of the table."""

_NODE_FIELDS: list[Any] = [
    ("untried", np.uint64),  # actions
    *_KEY,  # set between tricks alone
    ("values", np.int64, (4,)),  # by seat, what the position comes to by the best action tried so far
]
NODE: np.dtype[Any] = np.dtype((np.record, np.dtype(_NODE_FIELDS, align=True)))
"""What a search knows of a position beside the game."""


class Space(NamedTuple):
    """Where a search works; ``plies`` is the number of cards that are left."""

    line: Any
    """`GAME` records ``[plies + 1]``: the position searched, and those after each play down to the one in hand."""
    nodes: Any
    """`NODE` records ``[plies + 1]``, beside them."""
    table: Any
    """`PLACE` records ``[n]``, all 0 at first, n a power of two."""
    alike: Any
    """``uint64[52]``, see `agents.search.equal.alike_cards`."""
    kin: Any
    """``uint64[52]``: for a card held at the start those of the hand that the rules treat alike, see `set_kin`."""
    results: Any
    """``int64[52, 4]``, what each legal action of the position searched comes to."""


# --- the search -------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def search(rules: Any, aim: Any, space: Any) -> None:
    """Search the position ``space.line[0]``, in the play of a deal that ends its game, with all scores 0.

    The values of ``space.nodes[0]`` are what it comes to, ``space.results`` its actions.
    """
    r = rules[0]
    line, nodes, table, alike, kin, results = space  # of arrays passed together each would cost a call dearly
    set_kin(line[0], alike, kin)
    depth = 0
    open_up(line[0], nodes[0], r, aim, alike)
    while depth > 0 or nodes[0].untried:
        g, node = line[depth], nodes[depth]
        if node.untried:
            depth += 1
            line[depth] = g
            play_next(line[depth], node, r)
            if not is_known(line[depth], nodes[depth], r, aim, kin, table):
                open_up(line[depth], nodes[depth], r, aim, alike)
                continue
        elif g.num_plays & 3 == 0:
            remember(g, node, r, table)
        depth -= 1
        back_up(line[depth], nodes[depth], nodes[depth + 1], aim)
        if depth == 0:
            note_result(line[0], line[1], nodes[1], alike, results)


@njit
def set_kin(g: Any, alike: Any, kin: Any) -> None:
    """Set ``kin`` for the hands of a game."""
    for s in range(4):
        hand = g.hand[s]
        while hand:
            card = lowest(hand)
            hand &= hand - U1
            kin[card] = g.hand[s] & alike[card]


@njit
def open_up(g: Any, node: Any, r: Any, aim: Any, alike: Any) -> None:
    """Come to a position that is to be searched."""
    node.untried = representatives(g.hand[g.seat], legal(g, r), spent(g), alike)
    seat, sign = decider(aim, g.seat)
    node.values[seat] = -sign * _FAR


@njit(inline="always")
def spent(g: Any) -> Any:
    """The cards that can take no trick any more."""
    return ~(in_hands(g) | (bit(g.best_card) if g.num_plays & 3 else U0))


@njit(inline="always")
def in_hands(g: Any) -> Any:
    """The cards still held."""
    return g.hand[0] | g.hand[1] | g.hand[2] | g.hand[3]


@njit(inline="always")
def decider(aim: Any, mover: Any) -> Any:
    """Whose value decides a choice of ``mover``, and 1 or -1, whether it is to be high or low."""
    if aim.kind == OWN:
        return np.int64(mover), 1
    return aim.seat, -1 if aim.kind == AGAINST and mover != aim.seat else 1


@njit
def play_next(g: Any, node: Any, r: Any) -> None:
    """Make the next of the actions that have not been tried."""
    card = lowest(node.untried)
    node.untried &= node.untried - U1
    play(g, r, card)


@njit
def back_up(g: Any, node: Any, deeper: Any, aim: Any) -> None:
    """Take the values found one deeper if the seat to move likes them better than what it has."""
    seat, sign = decider(aim, g.seat)
    if is_better(deeper.values, node.values, seat, sign):
        for s in range(4):
            node.values[s] = deeper.values[s]
    found = node.values[seat]
    if found >= aim.most if sign > 0 else found <= aim.least:
        node.untried = U0


@njit(inline="always")
def is_better(new: Any, old: Any, seat: Any, sign: Any) -> Any:
    """The order of values: the seat's own, then as little as may be for its left neighbour, then for the one across."""
    left, across = (seat + 1) & 3, (seat + 2) & 3
    if new[seat] != old[seat]:
        return sign * new[seat] > sign * old[seat]
    if new[left] != old[left]:
        return new[left] < old[left]
    return new[across] < old[across]


@njit
def note_result(g: Any, after: Any, deeper: Any, alike: Any, results: Any) -> None:
    """What the action just tried in the position searched comes to, and with it its equals."""
    card = np.int64(after.plays[g.num_plays])
    equals = equal_cards(card, g.hand[g.seat], spent(g), alike)
    while equals:
        for s in range(4):
            results[lowest(equals), s] = deeper.values[s]
        equals &= equals - U1


# --- what needs no search ---------------------------------------------------------------------------------------


@njit
def is_known(g: Any, node: Any, r: Any, aim: Any, kin: Any, table: Any) -> Any:
    """Whether the values of a position are known without search, and stand in its node: between tricks alone."""
    if g.num_plays & 3:
        return False
    if g.phase != OVER:
        shooting = is_shot_possible(g, r, aim)
        if in_hands(g) & (r.scoring | (r.shot_cards if shooting else U0)):
            set_key(g, node, r, kin, shooting)
            return recall(g, node, r, table)
        end_deal(g, r)  # the rest of the play changes nothing
    values = quarters(g, r)
    for s in range(4):
        node.values[s] = values[s]
    return True


@njit(inline="always")
def quarters(g: Any, r: Any) -> Any:
    """The standing of the four seats in quarters of a point."""
    now = standing(g, r, POINTS)
    return (
        np.int64(QUARTERS * now[0]),
        np.int64(QUARTERS * now[1]),
        np.int64(QUARTERS * now[2]),
        np.int64(QUARTERS * now[3]),
    )


@njit(inline="always")
def takers(g: Any, r: Any) -> Any:
    """A bit for each seat that has taken a card that a shot needs."""
    found = 0
    for s in range(4):
        found |= (g.taken[s] & r.shot_cards != U0) << s
    return found


@njit(inline="always")
def is_shot_possible(g: Any, r: Any, aim: Any) -> Any:
    """Whether a seat whose shot is looked for may yet shoot: no other has any card that it needs."""
    taken_by = takers(g, r)
    return taken_by & ~aim.shooters == 0 and taken_by & (taken_by - 1) == 0


# --- the table --------------------------------------------------------------------------------------------------


@njit
def set_key(g: Any, node: Any, r: Any, kin: Any, shooting: Any) -> None:
    """Write all that what is to come depends on, for a position between tricks, into its node.

    Points taken are added to those to come, and matter no more once nobody can shoot; before, they count as they are,
    since a shot game is worth the same whatever they are. Whether hearts are broken follows from the cards left.
    """
    node.cards = packed(in_hands(g), kin) | np.uint64(g.seat) << _LEADER_AT
    node.points = U0
    if shooting:
        node.cards |= np.uint64(takers(g, r)) << _TAKERS_AT
        for s in range(4):
            node.points |= np.uint64(np.int64(g.points[s]) & 0xFFFF) << np.uint64(16 * s)


@njit
def packed(cards: Any, kin: Any) -> Any:
    """A set of the cards in the hands, the same for all sets in which holders and kinds follow each other alike.

    In each suit that order, from the lowest card up, is written with the lowest cards of the start that it fits.
    """
    found = U0
    free = ~U0  # above the card written last
    while cards:
        card = lowest(cards)
        cards &= cards - U1
        fits = kin[card] & free
        lowest_fit = fits & (~fits + U1)
        found |= lowest_fit
        free = ~(lowest_fit | (lowest_fit - U1))
    return found


@njit(inline="always")
def index_of(node: Any, table: Any) -> Any:
    """The number of a position's place in the table."""
    return np.int64(mix(node.cards ^ mix(node.points)) & np.uint64(table.shape[0] - 1))


@njit
def recall(g: Any, node: Any, r: Any, table: Any) -> Any:
    """Whether the table has a position; its values then stand in its node."""
    place = table[index_of(node, table)]
    if place.cards != node.cards or place.points != node.points:
        return False
    so_far = quarters(g, r)
    for s in range(4):
        node.values[s] = so_far[s] + place.values[s]
    return True


@njit
def remember(g: Any, node: Any, r: Any, table: Any) -> None:
    """Put a position that has been searched into the table."""
    place = table[index_of(node, table)]
    place.cards = node.cards
    place.points = node.points
    so_far = quarters(g, r)
    for s in range(4):
        place.values[s] = node.values[s] - so_far[s]


# --- for callers in Python --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Solution:
    """What a position comes to if all play as assumed, in quarters of a point."""

    actions: NDArray[np.int64]
    """``int64[A]``, the legal actions of the seat to move in rising order."""
    values: NDArray[np.int64]
    """``int64[A, 4]``, what each comes to for the four seats."""
    value: NDArray[np.int64]
    """``int64[4]``, what the position comes to: that of the action that the seat to move prefers."""
    seat: int
    """The seat whose value decides: the one to move, or the one asked about."""

    @property
    def best(self) -> NDArray[np.int64]:
        """The actions that come to the same as the preferred one for the seat that decides."""
        found: NDArray[np.int64] = self.actions[self.values[:, self.seat] == self.value[self.seat]]
        return found


def solve(game: NDArray[Any], rules: Rules, places: int | None = None) -> Solution:
    """What each action comes to if every seat plays for itself and knows all hands.

    Args:
        game: a `GAME` array of length 1, in the play of a deal with at most `MAX_TRICKS` tricks left.
        rules: its rules.
        places: of the table, a power of two, by default by the number of tricks left; changes the time alone.

    Raises `ArgumentError` for a position that is none of these.
    """
    return _solution(game, rules, OWN, None, places)


def paranoid(game: NDArray[Any], rules: Rules, seat: int, places: int | None = None) -> Solution:
    """What each action comes to if the other seats play against ``seat``; its value is a bound below. See `solve`."""
    return _solution(game, rules, AGAINST, seat, places)


def helped(game: NDArray[Any], rules: Rules, seat: int, places: int | None = None) -> Solution:
    """What each action comes to if all seats play for ``seat``; its value is a bound above. See `solve`."""
    return _solution(game, rules, FOR, seat, places)


def shot_of(game: NDArray[Any], rules: Rules, seat: int) -> Shot:
    """What may become of a shot by ``seat``: of its taking every card that a shot needs, whatever that does (R14).

    ``"certain"``: it has them all. ``"forced"``: it can take them against any defence. ``"open"``: if others let it.
    ``"impossible"``: another has one, or even with the help of all it cannot.

    Args:
        game: a `GAME` array of length 1, in the play of a deal; however many tricks are left, few need a long search.
        rules: its rules.
        seat: the one asked about.

    Raises `ArgumentError` for a position or a seat that is none of these.
    """
    forced = shot_forced(game, rules, seat)
    known = _shot_at_once(game, rules, seat)
    if known:
        return known
    if forced:
        return "forced"
    return "open" if _shoots(game, rules, FOR, seat) else "impossible"


def shot_forced(game: NDArray[Any], rules: Rules, seat: int) -> bool:
    """Whether ``seat`` has or can take every card that a shot needs against any defence; see `shot_of`."""
    _check(game, HAND_SIZE)
    whole("seat", seat, 0, NUM_SEATS - 1)
    known = _shot_at_once(game, rules, seat)
    return known == "certain" or (known is None and _shoots(game, rules, AGAINST, seat))


def _shot_at_once(game: NDArray[Any], rules: Rules, seat: int) -> Shot | None:
    """What the cards taken so far say, if that is all."""
    taken = [int(cards) & rules.shot_cards for cards in game["taken"][0]]
    if rules.shot_cards == 0 or any(taken[:seat] + taken[seat + 1 :]):
        return "impossible"
    return "certain" if taken[seat] == rules.shot_cards else None


def _solution(game: NDArray[Any], rules: Rules, kind: int, seat: int | None, places: int | None) -> Solution:
    """The answer of a search for points; without a ``seat`` the one to move is asked about."""
    _check(game, MAX_TRICKS)
    seat = whole("seat", game["seat"][0] if seat is None else seat, 0, NUM_SEATS - 1)
    space = _searched(game, rules, Aim(kind, seat, _ALL_SEATS, -_FAR, _FAR), places)
    actions = np.array(indices(legal_of(space.line[:1], compile_rules(rules))), np.int64)
    return Solution(actions, space.results[actions], space.nodes["values"][0].copy(), seat)


def _shoots(game: NDArray[Any], rules: Rules, kind: int, seat: int) -> bool:
    """Whether the seat shoots, by a search where nothing but that counts."""
    most = QUARTERS * 3 * SHOT_VALUE
    space = _searched(game, rules, Aim(kind, seat, 1 << seat, 0, most), None, for_shot=True)
    return bool(space.nodes["values"][0, seat] == most)


def _searched(game: NDArray[Any], rules: Rules, aim: Aim, places: int | None, for_shot: bool = False) -> Space:
    """A space after the search of a game's deal as one that ends the game, begun at scores of 0."""
    record, compiled = copied_games(game), compile_rules(rules).copy()
    record["scores"] = 0
    compiled["max_deals"] = record["deal"] + 1
    if for_shot:
        record["points"] = compiled["points"] = compiled["scoring"] = 0
        compiled["shot"] = _SHOT_GAME
    space = _space(record, rules, places)
    search(compiled, aim, space)
    return space


def _space(game: NDArray[Any], rules: Rules, places: int | None) -> Space:
    """A space with room for the rest of a deal."""
    if places is None:
        places = min(1 << 3 * _tricks_left(game), _LARGEST_TABLE)
    if not is_whole(places, 1) or places & (places - 1):
        raise ArgumentError(f"places: {shown(places)} is not a power of two")
    plies = NUM_CARDS - int(game["num_plays"][0])
    line = np.zeros(plies + 1, GAME)
    line[0] = game[0]
    return Space(
        line=line,
        nodes=np.zeros(plies + 1, NODE),
        table=np.zeros(places, PLACE),
        alike=alike_cards(rules),
        kin=np.zeros(NUM_CARDS, np.uint64),
        results=np.zeros((NUM_CARDS, NUM_SEATS), np.int64),
    )


def _check(game: NDArray[Any], most: int) -> None:
    """Raise `ArgumentError` unless there is a deal in play with at most so many tricks left."""
    if not isinstance(game, np.ndarray) or game.dtype != GAME or game.shape != (1,):
        raise ArgumentError(f"game: expected a GAME array of length 1, got {shown(game)}")
    if game["phase"][0] != PLAY:
        raise ArgumentError("game: expected a deal in play")
    if _tricks_left(game) > most:
        raise ArgumentError(f"game: expected at most {most} tricks left, got {_tricks_left(game)}")


def _tricks_left(game: NDArray[Any]) -> int:
    """The one under way included."""
    return HAND_SIZE - int(game["num_plays"][0]) // NUM_SEATS
