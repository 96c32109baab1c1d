"""Make the tactical suites of `agents.suites`: positions of a kind, and what each legal action is worth.

Candidates come from deals that ``heuristic``, ``greedy-v1`` and ``random`` play against each other under calls drawn at
random, at most one of a deal. An action is worth the mean edge of the deal for the seat to move when it is taken and
``heuristic`` plays on at all four seats, over worlds that agree with all that the seat knows. All actions meet the same
worlds. A few worlds say whether a position is promising, many others make the values; kept is what has a clear best.

    python benchmarks/make_suites.py               # all five, about ten minutes on an idle core
    python benchmarks/make_suites.py shoot stop    # some; the same seed gives the same bytes

The worlds are exact and without bias for a view alone: every way to lay out the hidden cards which fits hand sizes,
suits that a seat failed to follow, cards given and received, the kitty (R5) and the legality of all that was played
counts the same. What others' passes and plays say beyond that is not used.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from agents import heuristic
from agents.files import write_text
from agents.heuristic import Parameters, compile_parameters
from agents.suites import FOLDER, SUITE_FORMAT, positions_digest
from agents.worlds import number
from dnfh_env._bits import U0, U1, bit, lowest, nth_set, popcount
from dnfh_env._random import below, unit
from dnfh_env.agent import ask_each, legal_rows, make_agent
from dnfh_env.cards import (
    DECK,
    HAND_SIZE,
    JACK_OF_DIAMONDS,
    NUM_CARDS,
    NUM_SEATS,
    QUEEN_OF_SPADES,
    SPADES,
    SUIT_MASKS,
)
from dnfh_env.engine import (
    CALL,
    EACH,
    GAME,
    NO_CALL,
    NO_SEAT,
    OVER,
    PICK,
    PICK_DIRECTION,
    PICKS,
    PLAY,
    SUIT_SETS,
    apply,
    apply_all,
    begin_deal,
    begin_play,
    keys_of,
    legal,
    make_call,
    new_games,
    pick_direction,
    play,
)
from dnfh_env.game import PHASES
from dnfh_env.notation import action_to_string, position_to_string
from dnfh_env.objective import EDGE, POINTS, standing
from dnfh_env.rules import FIRST_CALL, KITTY, SPLITS, Rules, compile_rules
from dnfh_env.view import VIEW, look, views_of

RULES = Rules(max_deals=1)
TIE = 0.1
"""Actions within so many points of the best are as good, as equal cards are."""

_FACTORIALS = np.cumprod(np.concatenate([[1.0], np.arange(1.0, 14.0)]))
_DECK = np.uint64(DECK)
_HAND_SIZE = HAND_SIZE


# --- worlds -----------------------------------------------------------------------------------------------------


@njit
def choice(cards: Any, count: Any, state: Any) -> Any:
    """A uniform choice of ``count`` cards of a set."""
    chosen = U0
    for _ in range(count):
        left = cards & ~chosen
        chosen |= bit(nth_set(left, below(popcount(left), number(state))))
    return chosen


@njit
def ways_to_split(n: Any, a: Any, b: Any) -> Any:
    """In how many ways ``n`` cards make ``a``, ``b`` and the rest."""
    return _FACTORIALS[n] / (_FACTORIALS[a] * _FACTORIALS[b] * _FACTORIALS[n - a - b])


@njit
def most(voids: Any, suit: Any, n: Any) -> Any:
    """How many of ``n`` cards of a suit a seat may hold."""
    return 0 if np.int64(voids) >> suit & 1 else n


@njit
def count_ways(cards: Any, room: Any, voids: Any, ways: Any) -> None:
    """Into ``ways``, ``float64[5, 14, 14]``: how many layouts of the suits from one on leave no room unfilled.

    ``ways[suit, a, b]`` has room for ``a`` cards at place 1 and for ``b`` at place 2, the rest is for place 3;
    ``room`` and ``voids`` are by place.
    """
    ways[:] = 0.0
    ways[4, 0, 0] = 1.0
    left = 0
    for suit in range(3, -1, -1):
        n = popcount(cards & SUIT_SETS[suit])
        left += n
        for a in range(min(room[1], left) + 1):
            for b in range(min(room[2], left - a) + 1):
                ways[suit, a, b] = ways_from(n, suit, a, b, left - a - b, voids, ways)


@njit
def ways_from(n: Any, suit: Any, a: Any, b: Any, c: Any, voids: Any, ways: Any) -> Any:
    """The layouts of ``n`` cards of a suit and of all later suits into room for ``a``, ``b`` and ``c``."""
    total = 0.0
    for i in range(min(a, most(voids[1], suit, n)) + 1):
        for j in range(min(b, most(voids[2], suit, n - i)) + 1):
            k = n - i - j
            if k <= min(c, most(voids[3], suit, n)):
                total += ways_to_split(n, i, j) * ways[suit + 1, a - i, b - j]
    return total


@njit
def lay_out(cards: Any, room: Any, voids: Any, ways: Any, state: Any, hands: Any) -> None:
    """Add the cards to the ``hands``, ``uint64[4]``, of places 1 to 3, each layout that `count_ways` counts as likely.

    Suit by suit the sizes are drawn by the layouts they leave, then the cards.
    """
    a = room[1]
    b = room[2]
    c = room[3]
    for suit in range(4):
        mine = cards & SUIT_SETS[suit]
        n = popcount(mine)
        i, j = split_of(n, suit, (a, b, c), voids, ways, state)
        one = choice(mine, i, state)
        two = choice(mine & ~one, j, state)
        hands[1] |= one
        hands[2] |= two
        hands[3] |= mine & ~one & ~two
        a -= i
        b -= j
        c -= n - i - j


@njit
def split_of(n: Any, suit: Any, room: Any, voids: Any, ways: Any, state: Any) -> Any:
    """How many of ``n`` cards of a suit places 1 and 2 get."""
    a, b, c = room
    target = unit(number(state)) * ways[suit, a, b]
    last = (0, 0)
    for i in range(min(a, most(voids[1], suit, n)) + 1):
        for j in range(min(b, most(voids[2], suit, n - i)) + 1):
            if n - i - j <= min(c, most(voids[3], suit, n)):
                weight = ways_to_split(n, i, j) * ways[suit + 1, a - i, b - j]
                if weight > 0.0:
                    last = (i, j)
                    target -= weight
                    if target < 0.0:
                        return last
    return last  # what rounding leaves over


@njit
def known_hands(v: Any, hands: Any) -> None:
    """Into ``hands``: what the seat knows of the four hands after the pass, or before it as dealt."""
    hands[0] = v.hand | v.played[0]
    for s in range(1, 4):
        hands[s] = v.played[s]
        if v.phase == PLAY and v.call != KITTY:
            hands[s] |= v.given[s - 1]
    if v.phase != PLAY:
        hands[0] |= v.given[0] | v.given[1] | v.given[2]


@njit
def prepare(v: Any, hands: Any, room: Any, ways: Any) -> Any:
    """`known_hands` with the ``room`` in them and `count_ways`; returns the cards to be laid out."""
    known_hands(v, hands)
    cards = _DECK
    for s in range(4):
        cards &= ~hands[s]
        room[s] = _HAND_SIZE - popcount(hands[s])
    count_ways(cards, room, v.voids, ways)
    return cards


@njit
def begin_world(v: Any, r: Any, hands: Any, state: Any, g: Any) -> None:
    """A game with these hands where the view's seat is seat 0, before the call; what comes by chance is fresh."""
    g.seed = number(state)
    g.game = number(state)
    g.dealer = v.dealer
    g.deal = v.deal
    g.latched = v.latched
    g.winners = 0
    g.shooter = NO_SEAT
    for s in range(4):
        g.scores[s] = v.scores[s]
        g.entered[s] = 0
        g.hand[s] = hands[s]
    begin_deal(g, r)


@njit
def replay_picks(v: Any, r: Any, p: Any, g: Any, view: Any) -> None:
    """Call and picks up to the view's decision; seats that have picked did as ``heuristic`` would."""
    if v.call == NO_CALL:
        return
    make_call(g, np.int64(v.call))
    while g.num_picks < v.num_picks:
        if g.seat == 0:
            apply(g, r, lowest(v.given[pick_direction(v.call, g.num_picks)] & g.hand[0]))
        else:
            look(g, r, np.int64(g.seat), view[0])
            apply(g, r, heuristic.pick(view[0], r, p))


@njit
def pass_cards(v: Any, state: Any, g: Any) -> None:
    """Which cards went from whom to whom: what the seat knows, and the others' as any that their takers have."""
    for d in range(3):
        g.given[0, d] = v.given[d]
        g.given[d + 1, 2 - d] = v.received[d]
    split = PICK_DIRECTION[v.call - FIRST_CALL]
    for taker in range(1, 4):
        got = v.given[taker - 1]
        for giver in range(1, 4):
            if giver != taker:
                d = (taker - giver - 1) & 3
                count = np.int64((split == d).sum())
                g.given[giver, d] = choice(g.hand[taker] & ~got, count, state)
                got |= g.given[giver, d]


_KITTY_WAYS = np.array([286.0, 66.0, 11.0, 1.0])
"""[n]: in how many ways the three that a hand got from the kitty lie in it, ``n`` of them being known."""


@njit
def deal_kitty(v: Any, state: Any, g: Any) -> Any:
    """Who put what into the kitty and got what from it; False for hands to be thrown away.

    Hands in which my cards lie apart have more such histories, and are kept in proportion.
    """
    lost = v.given[0] & ~v.received[0]
    histories = highest = 1.0
    for s in range(1, 4):
        mine = popcount(lost & g.hand[s])
        if mine > EACH:
            return False
        histories *= _KITTY_WAYS[mine]
        highest *= _KITTY_WAYS[1 if popcount(lost) >= s else 0]
    if unit(number(state)) * highest >= histories:
        return False
    put = v.received[0] & ~v.given[0]
    g.kitty[0] = v.received[0]
    for s in range(1, 4):
        back = lost & g.hand[s]
        g.kitty[s] = back | choice(g.hand[s] & ~back, EACH - popcount(back), state)
        put |= g.kitty[s] & ~lost
    for s in range(4):
        cards = v.given[0] if s == 0 else choice(put, EACH, state)
        put &= ~cards
        for d in range(3):
            g.given[s, d] = cards
    return True


@njit
def replay_plays(v: Any, r: Any, g: Any) -> Any:
    """All that was played, from the hands after the pass; False if some of it would have been illegal (R9, R10)."""
    begin_play(g)
    for k in range(v.num_plays):
        if not legal(g, r) & bit(v.plays[k]):
            return False
        play(g, r, np.int64(v.plays[k]))
    return True


@njit
def draw_world(v: Any, r: Any, p: Any, hands: Any, state: Any, g: Any, view: Any) -> Any:
    """The game ``g`` at the view's decision with these hands; False for a world to be thrown away."""
    begin_world(v, r, hands, state, g)
    if v.phase != PLAY:
        replay_picks(v, r, p, g, view)
        return True
    g.call = v.call
    g.num_picks = PICKS
    if v.call == KITTY:
        if not deal_kitty(v, state, g):
            return False
    else:
        pass_cards(v, state, g)
    return replay_plays(v, r, g)


@njit(cache=True)
def draw_worlds(views: Any, rules: Any, parameters: Any, state: Any, games: Any) -> Any:
    """Fill ``games`` with worlds for ``views[0]``; returns how many were found in a hundred tries for each."""
    v = views[0]
    view = np.zeros(1, VIEW)
    known = np.zeros(4, np.uint64)
    hands = np.zeros(4, np.uint64)
    room = np.zeros(4, np.int64)
    ways = np.zeros((5, 14, 14))
    cards = prepare(v, known, room, ways)
    found = 0
    for _ in range(100 * games.shape[0]):
        if found == games.shape[0]:
            break
        hands[:] = known
        lay_out(cards, room, v.voids, ways, state, hands)
        found += draw_world(v, rules[0], parameters[0], hands, state, games[found], view)
    return found


# --- values -----------------------------------------------------------------------------------------------------


@njit(cache=True)
def play_out(games: Any, rules: Any, parameters: Any, action: Any, edges: Any, shooters: Any) -> None:
    """Seat 0 takes the action, ``heuristic`` plays on, with ``parameters[1]`` at the other seats.

    Into ``edges``, ``float64[W]``, goes what it came to for seat 0, into ``shooters``, ``int8[W]``, who shot.
    """
    view = np.zeros(1, VIEW)
    game = np.zeros(1, GAME)
    r = rules[0]
    for i in range(games.shape[0]):
        game[0] = games[i]
        g = game[0]
        apply(g, r, action)
        while g.phase != OVER:
            look(g, r, np.int64(g.seat), view[0])
            apply(g, r, heuristic.choose(view[0], r, parameters[min(1, g.seat)]))
        edges[i] = EDGE * standing(g, r, POINTS)[0]
        shooters[i] = g.shooter


_USUAL = Parameters()


@dataclass(frozen=True)
class Outcomes:
    """What came of each legal action of a position, in the same worlds."""

    actions: NDArray[np.int64]
    """``[A]``."""
    edges: NDArray[np.float64]
    """Of the seat to move, ``[A, W]``."""
    shooters: NDArray[np.int8]
    """Place of who shot, `NO_SEAT` for nobody, ``[A, W]``."""

    @property
    def values(self) -> NDArray[np.float64]:
        """Mean edges, ``[A]``."""
        return self.edges.mean(axis=1)

    @property
    def tied(self) -> NDArray[np.bool_]:
        """The best action, and what is within `TIE` of it, ``[A]``."""
        return self.values >= self.values.max() - TIE

    @property
    def behind(self) -> NDArray[np.float64]:
        """How far each action is behind the best in each world, ``[A, W]``."""
        return self.edges[self.values.argmax()] - self.edges

    @property
    def errors(self) -> NDArray[np.float64]:
        """Paired standard errors of how far each action is behind, ``[A]``."""
        return self.behind.std(axis=1, ddof=1) / self.edges.shape[1] ** 0.5

    def near(self, gap: float, z: float) -> NDArray[np.bool_]:
        """What is not behind by ``gap`` points and ``z`` standard errors at least, ``[A]``."""
        lost = self.behind.mean(axis=1)
        return self.tied | (lost < gap) | (lost < z * self.errors)

    def shots_of(self, mine: bool) -> NDArray[np.float64]:
        """Share of the worlds in which the seat to move, or another, shoots, ``[A]``."""
        shot = self.shooters == 0 if mine else self.shooters > 0
        return shot.mean(axis=1)


VIGILANT = Parameters(threat=0.1, stop=150.0, feed=60.0)
"""A ``heuristic`` that gives up much to break a shot; the usual one may let it pass to be spared a queen."""


def outcomes(view: NDArray[Any], worlds: int, seed: int, others: Parameters = _USUAL) -> Outcomes | None:
    """What comes of each legal action for one view, a `VIEW` array of length 1; None where worlds are hard to find."""
    compiled = compile_rules(RULES)
    parameters = np.concatenate([compile_parameters(each, RULES) for each in (_USUAL, others)])
    games = np.zeros(worlds, GAME)
    if draw_worlds(view, compiled, parameters, np.array([seed], np.uint64), games) < worlds:
        return None
    actions = np.flatnonzero(legal_rows(view["legal"])[0])
    edges, shooters = np.empty((len(actions), worlds)), np.empty((len(actions), worlds), np.int8)
    for i, action in enumerate(actions):
        play_out(games, compiled, parameters, action, edges[i], shooters[i])
    return Outcomes(actions, edges, shooters)


# --- what the suites are about ----------------------------------------------------------------------------------

_SHOT = np.uint64(RULES.shot_cards)
_QUEEN = np.uint64(1 << QUEEN_OF_SPADES)
_DEAR = np.uint64(SPADES & ~((1 << QUEEN_OF_SPADES) - 1))
"""The queen, king and ace of spades."""
_JACK = np.uint64(1 << JACK_OF_DIAMONDS)
_OVER_JACK = np.uint64(SUIT_MASKS[1] & ~((2 << JACK_OF_DIAMONDS) - 1))
_MANY = 9
"""More than half of the shot cards."""
_BEGUN = 3
"""Shot cards with which a shot has begun."""
_EARLY = 16
"""Plays of the first four tricks."""
_MASTERS = 5
"""Cards that nothing beats with which a shot may be begun."""


def size(cards: NDArray[np.uint64]) -> NDArray[np.int64]:
    """How many cards sets have."""
    return legal_rows(cards.ravel()).sum(axis=1, dtype=np.int64).reshape(cards.shape)


def played(views: NDArray[Any]) -> NDArray[np.uint64]:
    """All cards that have been played."""
    return np.bitwise_or.reduce(views["played"], axis=1)


def has_choice(views: NDArray[Any], cards: NDArray[np.uint64] | np.uint64) -> NDArray[np.bool_]:
    """Whether some of these cards are legal, and some others."""
    return (views["legal"] & cards != 0) & (views["legal"] & ~cards != 0)


def masters(views: NDArray[Any]) -> NDArray[np.int64]:
    """How many cards of the hand no card in another hand beats."""
    unseen = _DECK & ~(views["hand"] | played(views))
    found = np.zeros(len(views), np.int64)
    for card in range(NUM_CARDS):
        over = np.uint64(SUIT_MASKS[card // 13] & ~((2 << card) - 1))
        found += (views["hand"] >> np.uint64(card) & U1 == U1) & (unseen & over == U0)
    return found


def guards(views: NDArray[Any]) -> NDArray[np.bool_]:
    """The queen of spades has not been played, and whether to part with her, the king or the ace is the question."""
    open_ = (views["phase"] != CALL) & (played(views) & _QUEEN == U0)
    return open_ & has_choice(views, _DEAR)


def shoots(views: NDArray[Any]) -> NDArray[np.bool_]:
    """No other seat has a shot card, and this one has three, or five cards that nothing beats in the first tricks."""
    others = np.bitwise_or.reduce(views["taken"][:, 1:], axis=1) & _SHOT
    begun = size(views["taken"][:, 0] & _SHOT) >= _BEGUN
    may = (views["num_plays"] < _EARLY) & (masters(views) >= _MASTERS)
    return (views["phase"] == PLAY) & (others == U0) & (begun | may)


def stops(views: NDArray[Any]) -> NDArray[np.bool_]:
    """Another seat has all shot cards taken so far, more than half of them."""
    counts = size(views["taken"] & _SHOT)
    alone = (counts[:, 1:].max(axis=1) == counts.sum(axis=1)) & (counts.sum(axis=1) >= _MANY)
    return (views["phase"] == PLAY) & alone


def jacks(views: NDArray[Any]) -> NDArray[np.bool_]:
    """The jack of diamonds may be won from the table, parted with from the hand, or caught with a higher diamond."""
    table = table_of(views)
    beating = np.array([_beating(int(card)) for card in views["best_card"]], np.uint64)
    on_table = (table & _JACK != U0) & has_choice(views, beating)
    in_hand = has_choice(views, _JACK)
    out = (played(views) | views["hand"]) & _JACK == U0
    return (views["phase"] == PLAY) & (on_table | in_hand | (out & has_choice(views, _OVER_JACK)))


def table_of(views: NDArray[Any]) -> NDArray[np.uint64]:
    """The cards of the current trick."""
    return played(views) & ~np.bitwise_or.reduce(views["taken"], axis=1)


def _beating(card: int) -> int:
    """All cards that beat a card which leads a trick; none before there is one."""
    return SUIT_MASKS[card // 13] & ~((2 << card) - 1) if card < NUM_CARDS else 0


def kitties(views: NDArray[Any]) -> NDArray[np.bool_]:
    """The dealer is to call, or a seat to pick for a kitty that has been called."""
    picks = (views["phase"] == PICK) & (views["call"] == KITTY)
    return (views["phase"] == CALL) | picks


def always(found: Outcomes) -> bool:
    """Nothing more is asked of what came out."""
    return True


def brings_home(found: Outcomes) -> bool:
    """The best action shoots in a fifth of the worlds, and in a tenth more than some other."""
    shots = found.shots_of(mine=True)
    best = shots[found.values.argmax()]
    return bool(best >= 0.2 and best - shots.min() >= 0.1)


def breaks(found: Outcomes) -> bool:
    """After the best action another seat shoots in fewer worlds, by a tenth, than after some other."""
    shots = found.shots_of(mine=False)
    return bool(shots.max() - shots[found.values.argmax()] >= 0.1)


@dataclass(frozen=True)
class Recipe:
    """A suite to be made."""

    about: Callable[[NDArray[Any]], NDArray[np.bool_]]
    """Which of these views are what the suite is about."""
    accepts: Callable[[Outcomes], bool] = always
    field: tuple[float, ...] = (0.4, 0.3, 0.3)
    """Shares of `PLAYERS` at the seats of the deals."""
    kitty: float = 1 / 11
    """Share of the deals whose call is the kitty; the others are split evenly."""


PLAYERS = ("heuristic", "greedy-v1", "random")
RECIPES = {
    "guard": Recipe(guards),
    "shoot": Recipe(shoots, brings_home, (0.5, 0.4, 0.1)),
    "stop": Recipe(stops, breaks, (0.5, 0.5, 0.0)),
    "jack": Recipe(jacks),
    "kitty": Recipe(kitties, kitty=1.0),
}


@dataclass(frozen=True)
class Asked:
    """What a position of a phase must stand, stage by stage."""

    worlds: tuple[int, ...]
    errors: tuple[float, ...]
    """How many standard errors the others must be behind."""
    gap: float
    """And how many points."""
    best: int | None
    """How many actions may count as best; None for those alone that are within `TIE`."""


ASKED = {
    CALL: Asked((400, 1200, 4800), (1.0, 2.0, 4.0), 1.5, 4),
    PICK: Asked((96, 384, 1920), (1.0, 2.0, 4.0), 1.5, None),
    PLAY: Asked((64, 480), (1.5, 4.0), 2.0, None),
}


# --- making them ------------------------------------------------------------------------------------------------

SEED = 7_300_000
"""The suites take their deals from the seeds that follow, which nothing else uses."""
BATCH = 2048
"""Deals played at a time; what comes out does not depend on it."""
COUNT = 240
"""Positions of a suite."""
DECIMALS = 3
DECISIONS = 65
"""Of a deal with a pass (R11)."""


def candidates(recipe: Recipe, seed: int, numbers: NDArray[np.int64]) -> NDArray[Any]:
    """At most one position of each deal, `GAME` records; each of those that the suite is about is as likely."""
    games = new_games(RULES, seed, numbers)
    chance = [np.random.default_rng([seed, int(number)]) for number in numbers]
    shares = np.cumsum(recipe.field)
    lineup = np.array([np.searchsorted(shares, rng.random(NUM_SEATS) * shares[-1], side="right") for rng in chance])
    calls = np.array([_drawn_call(recipe.kitty, rng) for rng in chance])
    luck = np.array([rng.random(DECISIONS) for rng in chance])
    players = [(name, make_agent(name, RULES)) for name in PLAYERS]
    kept, seen, live, step = np.zeros_like(games), np.zeros(len(games)), np.arange(len(games)), 0
    while len(live):
        now = games.take(live)
        views = views_of(now, compile_rules(RULES), now["seat"].astype(np.int64))
        here = recipe.about(views) & (size(views["legal"]) > 1)
        seen[live] += here
        taken = luck[live, step] * seen[live] < here  # the n-th of them replaces the one kept with chance 1 / n
        kept[live[taken]] = now[taken]
        actions = ask_each(players, lineup[live, now["seat"]], views, keys_of(now))
        apply_all(now, compile_rules(RULES), np.where(views["phase"] == CALL, calls[live], actions))
        games.put(live, now)
        live, step = live[now["phase"] != OVER], step + 1
    return kept[seen > 0]


def _drawn_call(kitty: float, rng: np.random.Generator) -> int:
    """The kitty with this chance, or else any of the splits."""
    return KITTY if rng.random() < kitty else FIRST_CALL + int(rng.integers(len(SPLITS)))


def judged(recipe: Recipe, game: NDArray[Any], seed: int) -> dict[str, Any] | None:
    """The entry of a position, a `GAME` array of length 1, or None if it has no clear best."""
    views = views_of(game, compile_rules(RULES), game["seat"].astype(np.int64))
    asked = ASKED[int(game["phase"][0])]
    for stage, (worlds, z) in enumerate(zip(asked.worlds, asked.errors, strict=True)):
        found = outcomes(views, worlds, _seed(seed, int(game["game"][0]), stage))
        if found is None or not is_clear(found, asked, z) or not recipe.accepts(found):
            return None
    if not holds(views, found, asked, _seed(seed, int(game["game"][0]), len(asked.worlds))):
        return None
    return entry(game, found, found.near(asked.gap, z))


def holds(views: NDArray[Any], found: Outcomes, asked: Asked, seed: int) -> bool:
    """Whether the best action is no clear mistake against `VIGILANT` others, in worlds of their own."""
    against = outcomes(views, asked.worlds[-1] // 2, seed, VIGILANT)
    return against is not None and bool(against.near(asked.gap, asked.errors[-1])[found.values.argmax()])


def is_clear(found: Outcomes, asked: Asked, z: float) -> bool:
    """Whether few enough actions count as best, and not all of them."""
    near = found.near(asked.gap, z)
    few = near.sum() <= asked.best if asked.best else bool((near == found.tied).all())
    return bool(few and not near.all())


def _seed(*parts: int) -> int:
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:8], "little")


def entry(game: NDArray[Any], found: Outcomes, near: NDArray[np.bool_]) -> dict[str, Any]:
    """A position as the file has it."""
    names = [action_to_string(int(action)) for action in found.actions]
    nearest = np.where(near, -np.inf, found.values).argmax()
    return {
        "at": position_to_string(game, Rules()),
        "values": {name: round(float(value), DECIMALS) for name, value in zip(names, found.values, strict=True)},
        "best": [name for name, is_near in zip(names, near, strict=True) if is_near],
        "error": round(float(found.errors[nearest]), DECIMALS),
    }


def solved(game: NDArray[Any], found: dict[str, Any]) -> bool:
    """Whether ``greedy-v1`` chooses a best action."""
    views = views_of(game, compile_rules(RULES), game["seat"].astype(np.int64))
    action = make_agent("greedy-v1", RULES).act(views, keys_of(game))[0]
    return action_to_string(int(action)) in found["best"]


def positions(recipe: Recipe, seed: int, count: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """The number of its deal and the entry, ``count`` times; no more than half are solved by ``greedy-v1``."""
    room = {True: count // 2, False: count}
    for start in itertools.count(0, BATCH):
        for game in candidates(recipe, seed, np.arange(start, start + BATCH)):
            record = np.array([game], GAME)
            found = judged(recipe, record, seed)
            if found is None or not room[solved(record, found)]:
                continue
            room[solved(record, found)] -= 1
            count -= 1
            yield int(game["game"]), found
            if count == 0:
                return


def make(name: str, seed: int, count: int) -> dict[str, Any]:
    """The document of a suite, with its progress printed."""
    entries, start = [], time.perf_counter()
    for deal, found in positions(RECIPES[name], seed, count):
        entries.append(found)
        if len(entries) % 20 == 0 or len(entries) == count:
            seconds = time.perf_counter() - start
            print(f"{name}: {len(entries)} of {count}, {deal + 1} deals, {seconds:.0f} s", flush=True)
    return {
        "format": SUITE_FORMAT,
        "name": name,
        "rules": Rules().digest(),
        "seed": seed,
        "continuation": "heuristic",
        "parameters": vars(Parameters()),
        "worlds": {PHASES[phase]: asked.worlds[-1] for phase, asked in ASKED.items()},
        "tie": TIE,
        "sha256": positions_digest(entries),
        "positions": entries,
    }


def save(document: dict[str, Any], path: Path) -> None:
    """Write all of it or nothing, a position a line."""
    head = json.dumps({key: value for key, value in document.items() if key != "positions"}, indent=1)
    lines = ",\n".join(json.dumps(found) for found in document["positions"])
    write_text(path, f'{head[:-2]},\n "positions": [\n{lines}\n]}}\n')


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"of {', '.join(RECIPES)}; all if none is named")
    parser.add_argument("--seed", type=int, default=SEED, help="the first suite takes this seed, the others the next")
    parser.add_argument("--count", type=int, default=COUNT, help="positions of a suite")
    parser.add_argument("--out", type=Path, default=FOLDER, help="where the files go")
    options = parser.parse_args()
    unknown = sorted(set(options.suites) - set(RECIPES))
    if unknown or options.count < 2:
        parser.error(f"{unknown[0]} is none of {', '.join(RECIPES)}" if unknown else "--count: at least 2")
    for name in options.suites or RECIPES:
        save(make(name, options.seed + list(RECIPES).index(name), options.count), options.out / f"{name}.json")


if __name__ == "__main__":
    main()
