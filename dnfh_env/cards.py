"""Cards as small integers, sets of cards as 64-bit masks.

A card's id is ``13 * suit + rank`` with suits in the order clubs, diamonds, hearts, spades and ranks from the two
(0) to the ace (12). The id is at once the card's bit in a mask, its column in an action mask and the action that
picks or plays it.
"""

from __future__ import annotations

from collections.abc import Iterable

SUITS = "CDHS"
RANKS = "23456789TJQKA"
NUM_CARDS = 52
NUM_SEATS = 4
HAND_SIZE = 13

CARD_NAMES: tuple[str, ...] = tuple(rank + suit for suit in SUITS for rank in RANKS)
_IDS = {name: card for card, name in enumerate(CARD_NAMES)}


def card_id(name: str) -> int:
    """The id of a card written as rank and suit, as in ``"QS"``; raises ``ValueError`` for anything else."""
    try:
        return _IDS[name]
    except (KeyError, TypeError):
        raise ValueError(f"unknown card {name!r}: write a rank of {RANKS} and a suit of {SUITS}, as in 'QS'") from None


TWO_OF_CLUBS = card_id("2C")
JACK_OF_DIAMONDS = card_id("JD")
QUEEN_OF_SPADES = card_id("QS")

CLUBS = 0x1FFF
DIAMONDS = CLUBS << 13
HEARTS = CLUBS << 26
SPADES = CLUBS << 39
SUIT_MASKS = (CLUBS, DIAMONDS, HEARTS, SPADES)
DECK = CLUBS | DIAMONDS | HEARTS | SPADES


def mask_of(cards: Iterable[int]) -> int:
    """The mask that holds these card ids."""
    mask = 0
    for card in cards:
        mask |= 1 << card
    return mask


def cards_in(mask: int) -> list[int]:
    """The card ids in a mask, in rising order."""
    mask = int(mask)
    return [card for card in range(NUM_CARDS) if mask >> card & 1]


def names_in(mask: int) -> list[str]:
    """The names of the cards in a mask, in rising order of id."""
    return [CARD_NAMES[card] for card in cards_in(mask)]
