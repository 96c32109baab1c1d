"""The rules in motion: one game is one `GAME` record, and a few kernels start it, list what is legal and apply it.

Kernels take records (``games[i]``) or 1-D arrays of them, and the one `RULES` record of `compile_rules`. Nothing is
checked here: callers pass legal actions and indices. Numbers such as R9 refer to ``docs/rules.md``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dnfh_env._bits import U0, U32, bit, lowest, nth_set, plain, popcount
from dnfh_env._random import (
    DECISION,
    FIRST_DEALER,
    GOLDEN,
    KITTY_SHUFFLE,
    SHUFFLE,
    below,
    mix,
    one_way,
    stream,
)
from dnfh_env.cards import NUM_CARDS, SUIT_MASKS, TWO_OF_CLUBS
from dnfh_env.rules import FIRST_CALL, HOLD, KITTY, SHOT_CODES, SPLITS, Rules, compile_rules

NUM_ACTIONS = 64
"""0-51 play or pick a card, 52-61 the splits, 62 kitty, 63 hold."""

CALL, PICK, PLAY, OVER = range(4)
"""The phases of a game."""

LEFT = 0
"""The first direction of a pass; across and right follow. Direction ``d`` of seat ``s`` is seat ``(s + 1 + d) % 4``."""

NO_CALL = 0
NO_CARD = 255
NO_SEAT = -1

_GAME_FIELDS: list[Any] = [
    ("seed", np.uint64),
    ("game", np.uint64),  # number of this game under the seed
    ("hand", np.uint64, (4,)),  # cards held; a picked card has left it
    ("given", np.uint64, (4, 3)),  # [seat, direction]: cards picked for, or given to, that neighbour;
    # cards for the kitty stand under all three directions, since each neighbour may have got them
    ("kitty", np.uint64, (4,)),  # cards got back from the kitty
    ("played", np.uint64, (4,)),
    ("taken", np.uint64, (4,)),  # cards in the tricks a seat took
    ("scores", np.int32, (4,)),  # totals at the last deal's end
    ("deal", np.int32),  # number of this deal in its game, from 0
    ("points", np.int16, (4,)),  # card points taken so far in this deal
    ("entered", np.int16, (4,)),  # what the last finished deal added to the scores
    ("plays", np.uint8, (NUM_CARDS,)),  # cards of this deal in the order played
    ("leaders", np.uint8, (13,)),  # who led each trick
    ("voids", np.uint8, (4,)),  # bit per suit that a seat has failed to follow
    ("phase", np.uint8),
    ("seat", np.uint8),  # to move; without meaning when over
    ("dealer", np.uint8),
    ("call", np.uint8),  # as an action, NO_CALL before it
    ("num_picks", np.uint8),  # 0-12
    ("num_plays", np.uint8),  # 0-52
    ("best_card", np.uint8),  # that takes the current trick so far
    ("best_seat", np.uint8),
    ("broken", np.uint8),  # hearts may be led (R10)
    ("latched", np.uint8),  # the target has been reached (R16)
    ("shooter", np.int8),  # of the last finished deal, or NO_SEAT
    ("winners", np.uint8),  # bit per seat; 0 unless over, and when cut off by max_deals
    ("spare", np.uint8, (3,)),  # always 0, in place of padding, which copies would leave undefined
]
GAME: np.dtype[Any] = np.dtype((np.record, np.dtype(_GAME_FIELDS, align=True)))
"""One whole game. A batch is a 1-D array of these, a clone one assignment, its bytes a save."""

EACH, PICKS = 3, 12
"""Picks of a seat, and of all, before cards change hands (R4)."""
_LOW_HALF = np.uint64(0xFFFFFFFF)
_TWO_OF_CLUBS = np.uint64(1 << TWO_OF_CLUBS)
SUIT_SETS = np.array(SUIT_MASKS, np.uint64)
"""The cards of each suit, for kernels."""
PICK_DIRECTION = np.array([[d for d in range(3) for _ in range(int(split[d]))] for split in SPLITS], np.uint8)
"""[split, pick]: where a seat's first, second and third pick go (R4)."""
_SHOT_GAME = SHOT_CODES["game"]
_SHOT_OTHERS = SHOT_CODES["others"]
_SHOT_SHOOTER = SHOT_CODES["shooter"]


# --- starting ---------------------------------------------------------------------------------------------------


@njit
def new_game(g: Any, r: Any, seed: Any, game: Any) -> None:
    """Start game number ``game`` under ``seed``: scores 0, a dealer drawn at random (R2), the first deal dealt."""
    g.seed = seed
    g.game = game
    g.dealer = below(4, mix(stream(g.seed, g.game, 0, FIRST_DEALER)))
    g.deal = 0
    g.latched = 0
    g.winners = 0
    g.shooter = NO_SEAT
    for s in range(4):
        g.scores[s] = 0
        g.entered[s] = 0
    deal_cards(g)
    begin_deal(g, r)


@njit
def deal_cards(g: Any) -> None:
    """Shuffle by (seed, game, deal) and deal clockwise from the dealer's left (R2); ``plays`` serves as the deck."""
    deck = g.plays
    for card in range(NUM_CARDS):
        deck[card] = card
    state = stream(g.seed, g.game, g.deal, SHUFFLE)
    for s in range(4):
        g.hand[s] = U0
    seat = np.int64(g.dealer)
    for k in range(NUM_CARDS):
        state += GOLDEN
        j = k + below(NUM_CARDS - k, mix(state))
        card = deck[j]
        deck[j] = deck[k]
        seat = (seat + 1) & 3
        g.hand[seat] |= bit(card)


@njit
def begin_deal(g: Any, r: Any) -> None:
    """With hands dealt, clear the table and come to the first decision: the call, a pick, or the lead (R3, R7)."""
    for s in range(4):
        for d in range(3):
            g.given[s, d] = U0
        g.kitty[s] = U0
        g.played[s] = U0
        g.taken[s] = U0
        g.points[s] = 0
        g.voids[s] = 0
    for k in range(NUM_CARDS):
        g.plays[k] = NO_CARD
    for t in range(13):
        g.leaders[t] = NO_CARD
    g.num_picks = 0
    g.num_plays = 0
    g.best_card = NO_CARD
    g.best_seat = 0
    g.broken = 0
    if r.rotation_length > 0:
        make_call(g, r.rotation[turn_of(g, r) % r.rotation_length])
    else:
        g.call = NO_CALL
        g.phase = CALL
        g.seat = g.dealer


@njit(inline="always")
def turn_of(g: Any, r: Any) -> Any:
    """Which of the rotation's calls it is: by the deal, or, where a game is one deal, by the number of the game."""
    if r.max_deals == 1:
        return np.int64((g.game & _LOW_HALF) + (g.game >> U32))
    return np.int64(g.deal)


# --- what is legal ----------------------------------------------------------------------------------------------


@njit
def legal(g: Any, r: Any) -> Any:
    """The legal actions of the seat to move as a mask; 0 when the game is over."""
    hand = g.hand[g.seat]
    if g.phase == PLAY:
        if g.num_plays & 3:
            return legal_follows(g, r, hand)
        return legal_leads(g, r, hand)
    if g.phase == PICK:
        return hand
    if g.phase == CALL:
        return r.calls
    return U0


@njit(inline="always")
def legal_leads(g: Any, r: Any, hand: Any) -> Any:
    """What may be led (R7, R10)."""
    if g.num_plays == 0:
        return hand & r.first_leads
    # R10: no heart before hearts are broken, unless the hand has nothing else to lead
    if g.broken == 0 and hand & ~r.free_hand:
        return hand & ~r.unbroken_ban
    return hand


@njit(inline="always")
def legal_follows(g: Any, r: Any, hand: Any) -> Any:
    """What may be played to a trick that has been led (R8, R9)."""
    led = g.plays[g.num_plays & 0xFC]
    follow = hand & SUIT_SETS[led // 13]
    if follow:  # R8: follow suit if able
        return follow
    if g.num_plays < 4:  # R9: no scoring card is thrown on the first trick, if there is another
        harmless = hand & ~r.first_ban
        if harmless:
            return harmless
    return hand


# --- acting -----------------------------------------------------------------------------------------------------


@njit
def apply(g: Any, r: Any, action: Any) -> None:
    """Make one legal decision: the game comes to the next one, over the exchange, the scoring and the next deal."""
    if g.phase == PLAY:
        play(g, r, action)
    elif g.phase == PICK:
        pick(g, action)
    else:
        make_call(g, action)


@njit
def make_call(g: Any, call: Any) -> None:
    """The dealer, or the rotation, has called (R3)."""
    g.call = call
    if call == HOLD:
        begin_play(g)
    else:
        g.phase = PICK
        g.seat = (g.dealer + 1) & 3


@njit
def pick(g: Any, card: Any) -> None:
    """A card leaves the hand for its place; after the twelfth all are exchanged (R4)."""
    s = np.int64(g.seat)
    g.hand[s] &= ~bit(card)
    if g.call == KITTY:
        for d in range(3):
            g.given[s, d] |= bit(card)
    else:
        g.given[s, pick_direction(g.call, g.num_picks)] |= bit(card)
    g.num_picks += 1
    if g.num_picks % EACH == 0:
        g.seat = (s + 1) & 3
    if g.num_picks == PICKS:
        if g.call == KITTY:
            shuffle_kitty(g)
        else:
            exchange(g)
        begin_play(g)


@njit(inline="always")
def pick_direction(call: Any, number: Any) -> Any:
    """Where the pick of this number goes (R4); one for the kitty stands under every direction, and so under `LEFT`."""
    return LEFT if call == KITTY else np.int64(PICK_DIRECTION[np.int64(call) - FIRST_CALL, np.int64(number) % EACH])


@njit
def exchange(g: Any) -> None:
    """Each neighbour takes up what was picked for it (R4)."""
    for s in range(4):
        for d in range(3):
            g.hand[(s + 1 + d) & 3] |= g.given[s, d]


@njit
def shuffle_kitty(g: Any) -> None:
    """Twelve cards, each seat's three sorted, shuffled and dealt from the dealer's left (R5); ``plays`` is the pile."""
    pile = g.plays
    n = 0
    for k in range(1, 5):
        cards = g.given[(np.int64(g.dealer) + k) & 3, LEFT]
        while cards:
            pile[n] = lowest(cards)
            cards &= ~bit(pile[n])
            n += 1
    state = stream(g.seed, g.game, g.deal, KITTY_SHUFFLE)
    for k in range(PICKS):
        state += GOLDEN
        j = k + below(PICKS - k, mix(state))
        card = pile[j]
        pile[j] = pile[k]
        g.kitty[(np.int64(g.dealer) + 1 + k) & 3] |= bit(card)
    for k in range(PICKS):
        pile[k] = NO_CARD
    for s in range(4):
        g.hand[s] |= g.kitty[s]


@njit
def begin_play(g: Any) -> None:
    """The holder of the two of clubs, after the pass, goes first (R7)."""
    g.phase = PLAY
    for s in range(4):
        if g.hand[s] & _TWO_OF_CLUBS:
            g.seat = s


@njit
def play(g: Any, r: Any, card: Any) -> None:
    """A card is played; the fourth ends the trick (R8)."""
    s = np.int64(g.seat)
    n = np.int64(g.num_plays)
    led_at = n & ~3
    b = bit(card)
    g.hand[s] &= ~b
    g.played[s] |= b
    g.plays[n] = card
    g.num_plays = n + 1
    g.broken |= b & r.breakers != U0  # R10
    if n == led_at:
        g.leaders[n >> 2] = s
        g.best_card = card
        g.best_seat = s
    else:  # without branches, which a processor would have to guess
        led_suit = np.int64(g.plays[led_at]) // 13
        follows = card // 13 == led_suit
        beats = follows and card > g.best_card
        g.voids[s] |= np.int64(not follows) << led_suit
        g.best_card = card if beats else np.int64(g.best_card)
        g.best_seat = s if beats else np.int64(g.best_seat)
    if n - led_at == 3:
        end_trick(g, r, led_at)
    else:
        g.seat = (s + 1) & 3


@njit(inline="always")
def end_trick(g: Any, r: Any, led_at: Any) -> None:
    """The highest card of the led suit takes the trick and its player leads next (R8)."""
    taker = np.int64(g.best_seat)
    cards = U0
    points = 0
    for k in range(led_at, led_at + 4):
        cards |= bit(g.plays[k])
        points += r.points[g.plays[k]]
    g.taken[taker] |= cards
    g.points[taker] += points
    g.seat = taker
    if g.num_plays == NUM_CARDS:
        end_deal(g, r)


# --- scoring ----------------------------------------------------------------------------------------------------


@njit
def end_deal(g: Any, r: Any) -> None:
    """Enter the deal (R12-R14), then end the game or deal again (R16)."""
    g.shooter = find_shooter(g, r)
    for s in range(4):
        g.entered[s] = g.points[s]
        if g.shooter != NO_SEAT:
            if r.shot == _SHOT_OTHERS:
                g.entered[s] += -r.positive_total if s == g.shooter else r.positive_total
            elif r.shot == _SHOT_SHOOTER and s == g.shooter:
                g.entered[s] -= 2 * r.positive_total
        g.scores[s] += g.entered[s]
        if g.scores[s] >= r.target:
            g.latched = 1
    g.winners = find_winners(g, r)
    if g.winners or g.deal + 1 == r.max_deals:
        g.phase = OVER
        return
    g.deal += 1
    g.dealer = (g.dealer + 1) & 3
    deal_cards(g)
    begin_deal(g, r)


@njit
def find_shooter(g: Any, r: Any) -> Any:
    """Who holds all the cards a shooter needs (R14), or `NO_SEAT`."""
    if r.shot_cards:
        for s in range(4):
            if r.shot_cards & ~g.taken[s] == U0:
                return s
    return NO_SEAT


@njit
def find_winners(g: Any, r: Any) -> Any:
    """A bit for each winner if the game ends with this deal: the shooter alone (R14, R17), or the lowest (R16)."""
    if g.shooter != NO_SEAT and r.shot == _SHOT_GAME:
        return 1 << g.shooter
    if g.latched == 0:
        return 0
    low = min(g.scores[0], g.scores[1], g.scores[2], g.scores[3])
    winners = 0
    count = 0
    for s in range(4):
        if g.scores[s] == low:
            winners |= 1 << s
            count += 1
    if r.play_on and count > 1:
        return 0
    return winners


# --- kernels over arrays ----------------------------------------------------------------------------------------


@njit(cache=True)
def start_games(games: Any, rules: Any, seeds: Any, numbers: Any) -> None:
    """`new_game` for each record; ``seeds`` and ``numbers`` are ``uint64[B]``."""
    for i in range(games.shape[0]):
        new_game(games[i], rules[0], seeds[i], numbers[i])


@njit(cache=True)
def begin_deals(games: Any, rules: Any) -> None:
    """`begin_deal` for each record, whose hands, dealer, scores and deal number are set."""
    for i in range(games.shape[0]):
        begin_deal(games[i], rules[0])


@njit(cache=True)
def legal_masks(games: Any, rules: Any, out: Any) -> None:
    """`legal` for each record into ``out``, ``uint64[B]``."""
    for i in range(games.shape[0]):
        out[i] = legal(games[i], rules[0])


@njit(cache=True)
def apply_all(games: Any, rules: Any, actions: Any) -> None:
    """`apply` for each record; ``actions`` is ``int64[B]``, all legal."""
    for i in range(games.shape[0]):
        apply(games[i], rules[0], actions[i])


@njit(inline="always")
def keys_of_deal(g: Any) -> Any:
    """Start of the keys for the agents' decisions in the deal that the game is in."""
    return stream(g.seed, g.game, g.deal, DECISION)


@njit(inline="always")
def key_of(g: Any, keys: Any) -> Any:
    """The seed an agent gets for the decision that the game is at; ``keys`` is `keys_of_deal`."""
    decision = 64 * np.int64(g.num_picks) + np.int64(g.num_plays) + (g.call != NO_CALL)
    return one_way(keys + np.uint64(decision) * GOLDEN)


@njit(cache=True)
def decision_keys(games: Any, out: Any) -> None:
    """The seed of the decision each game is at into ``out``, ``uint64[B]``."""
    for i in range(games.shape[0]):
        out[i] = key_of(games[i], keys_of_deal(games[i]))


def new_games(rules: Rules, seeds: Any, numbers: Any) -> NDArray[Any]:
    """Games at their start, `GAME` records ``[B]``; ``seeds`` is a whole number below 2**64, or one for each."""
    numbers = plain(numbers, np.uint64)
    games = np.zeros(len(numbers), GAME)
    start_games(games, compile_rules(rules), plain(np.broadcast_to(seeds, numbers.shape), np.uint64), numbers)
    return games


def copied_games(games: NDArray[Any]) -> NDArray[Any]:
    """`GAME` records in memory of their own, ``[B]``."""
    copies = np.empty(len(games), GAME)
    copies[:] = games
    return copies


def keys_of(games: NDArray[Any]) -> NDArray[np.uint64]:
    """The seeds an agent gets for the decisions that games are at, ``uint64[B]``."""
    keys = np.empty(len(games), np.uint64)
    decision_keys(plain(games), keys)
    return keys


@njit
def random_action(legal_set: Any, key: Any) -> Any:
    """A uniform choice from a non-empty legal set."""
    return nth_set(legal_set, below(popcount(legal_set), key))


@njit(cache=True, nogil=True)
def play_random(games: Any, rules: Any, decisions: Any) -> Any:
    """Fused uniform random play: ``decisions`` for each record, a new game after each end. Returns games finished.

    The next game of a record has the number ``game + 2**32``, as in `dnfh_env.batch.Batch`.
    """
    finished = 0
    r = rules[0]
    for i in range(games.shape[0]):
        g = games[i]
        keys = keys_of_deal(g)
        for _ in range(decisions):
            deal = g.deal
            apply(g, r, random_action(legal(g, r), key_of(g, keys)))
            if g.phase == OVER:
                finished += 1
                next_game(g, r)
                keys = keys_of_deal(g)
            elif g.deal != deal:
                keys = keys_of_deal(g)
    return finished


NEXT_GAME = np.uint64(1 << 32)
"""What a record's next game adds to its game number: the low 32 bits name the row, the high ones count its games."""


@njit
def next_game(g: Any, r: Any) -> None:
    """Start the record's next game under the same seed."""
    new_game(g, r, g.seed, g.game + NEXT_GAME)
