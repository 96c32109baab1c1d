"""Hand-built deals, and short ways to play them."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dnfh_env.agent import Agent
from dnfh_env.cards import CARD_NAMES, DECK, card_id, cards_in, mask_of
from dnfh_env.engine import NO_CARD
from dnfh_env.game import Game
from dnfh_env.notation import action_to_string, mask_union, string_to_hand
from dnfh_env.rules import CALLS, Rules
from dnfh_env.view import VIEW

HEARTS = ["2H", "3H", "4H", "5H", "6H", "7H", "8H", "9H", "TH", "JH", "QH", "KH", "AH"]
SCORING = [*HEARTS, "QS", "QC", "QD", "JD"]
ANY_CALL = Rules(calls=CALLS)
"""The default rules, but that the dealer may also call a hold, so that hands can be played as they are written."""

ALL_CLUBS = ["AKQJT98765432...", ".AKQJT98.765432.", ".765432.JT98.432", "..AKQ.AKQJT98765"]
"""Seat 0 takes every trick. If the others throw scoring cards first, the last of the seventeen falls in trick nine."""

ALL_BUT_THE_JACK = ["AKQJT9876543.2..", ".AKQJT98.765432.", ".76543.JT98.5432", "2..AKQ.AKQJT9876"]
"""Seat 0 takes twelve tricks and loses the last, of its two of diamonds, to the jack that seat 1 keeps."""

LATE_LOSER = ["A.A.AKQJT98765.2", "Q.J..AKQJT987654", "876543.65432.2.3", "KJT92.KQT987.43."]
"""Seat 0 takes QC with AC and JD with AD, then leads 2S to seat 1, who takes all the rest: 3 points and 64."""
LATE_LOSER_LEADS = "AC AD 2S"

JACK_AND_TWO_HEARTS = ["AKQJT98764.A5..2", "5.J..AKQJT987654", "3.86742.876532.3", "2.KQT93.AKQJT94."]
"""Seat 0 takes JD with AD and 3H and 4H with KC, then leads 2S to seat 1, who takes all the rest."""
JACK_AND_TWO_HEARTS_LEADS = "AC AD KC 2S"

SUM_OF_A_SHOT = ["AKQJT98765.32..2", "3.AKT..AKQJT9876", "4.Q987.AKQJT982.", "2.J654.76543.543"]
"""Seat 0 takes the four queens, 2H and 3H in five tricks, then leads 2S to seat 1, who takes all the rest."""
SUM_OF_A_SHOT_PLAYS = "AC KC QC JC TC 2S QS AD KD TD QD QH 2H 9D 3H 6D 5D 4D"


def mask(names: str) -> int:
    """The set of cards written."""
    return mask_of(map(card_id, names.split()))


def view_of(phase: int, legal: int, table: str = "") -> NDArray[Any]:
    """A view with these legal actions, in a trick with ``table`` played to it."""
    view = np.zeros(1, VIEW)
    cards = [card_id(name) for name in table.split()]
    view["phase"] = phase
    view["legal"] = legal
    view["num_plays"] = 20 + len(cards)
    view["best_card"] = max((card for card in cards if card // 13 == cards[0] // 13), default=NO_CARD)
    for place, card in zip(range(4 - len(cards), 4), cards, strict=True):
        view["played"][0, place] = 1 << card
    return view


def choice(agent: Agent, view: NDArray[Any]) -> str:
    """The name of the action an agent chooses in a view, without randomness."""
    return action_to_string(int(agent.act(view, np.zeros(1, np.uint64))[0]))


def turn(items: Sequence[Any], places: int) -> list[Any]:
    """What seat ``s`` had is now with seat ``s + places``."""
    return [items[(seat - places) % 4] for seat in range(4)]


def deal(*hands: str) -> list[int]:
    """Four hands; last ones, suits and cards may be left out: hands are filled up by seat, the lowest ids first."""
    masks = [string_to_hand(hand + "." * (3 - hand.count("."))) for hand in (*hands, *[""] * (4 - len(hands)))]
    rest = iter(cards_in(DECK & ~mask_union(masks)))
    return [mask | mask_of(next(rest) for _ in range(13 - mask.bit_count())) for mask in masks]


def held(*hands: str, dealer: int = 0, scores: Sequence[int] = (0, 0, 0, 0), rules: Rules = ANY_CALL) -> Game:
    """The first lead of a deal of `deal` in which nobody passes."""
    return Game.from_deal(deal(*hands), dealer=dealer, scores=scores, call="hold", rules=rules)


def push(game: Game, actions: str) -> Game:
    """Make the decisions written, and return the game."""
    for action in actions.split():
        game.push(action)
    return game


def legal(game: Game) -> set[str]:
    """The names of the legal actions."""
    return set(map(game.action_to_string, game.legal_actions()))


def play_deal(game: Game, first: Iterable[str] | str = (), last: str = "") -> Game:
    """Play to the end of the deal: everybody plays cards of ``first`` as soon, and of ``last`` as late, as allowed."""
    order = [*(first.split() if isinstance(first, str) else first)]
    order += [card for card in CARD_NAMES if card not in order and card not in last.split()] + last.split()
    number = game.deal
    while not game.is_over and game.deal == number:
        game.push(min(legal(game), key=order.index))
    return game


def entered(game: Game) -> list[int]:
    """What the last finished deal added to the scores."""
    return list(map(int, game.record["entered"][0]))


def decisions(game: Game, rng: random.Random) -> Iterator[Game]:
    """The game before each decision, made at random, until it is over, and once more then."""
    while not game.is_over:
        yield game
        game.push(rng.choice(game.legal_actions()))
    yield game
