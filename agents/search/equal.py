"""Equal cards: those of a hand of which it does not matter which is played, so that a search tries one of them.

Two cards of a hand are *equal* if the rules treat them alike, `alike_cards`, and no card that can still take a trick,
from another hand or on the table, ranks between them. Whichever is played, all hands open, the rest comes to the same.
Which is *passed* does matter: then another hand holds one of them, and the higher beats the lower. Searches of bridge
do the same (Ginsberg, GIB: Imperfect Information in a Computationally Challenging Game, JAIR 14, 2001), but there no
card has points.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from agents.facts import above, below, suit_of
from dnfh_env._bits import U0, bit, highest, lowest
from dnfh_env.cards import NUM_CARDS, TWO_OF_CLUBS, mask_of
from dnfh_env.rules import Rules, compile_rules

_SETS = ("shot_cards", "first_leads", "first_ban", "breakers", "unbroken_ban", "free_hand")
"""Of a `RULES` record: the sets of cards that decide what is legal, what breaks hearts and what a shot needs."""


@lru_cache(maxsize=256)
def alike_cards(rules: Rules) -> NDArray[np.uint64]:
    """For each card those of its suit that the rules treat alike, ranks aside: ``uint64[52]``, not to be written to.

    That is with the same points, and both or neither in each set that the rules ask for. The two of clubs is like no
    other, since its holder leads first.
    """
    r = compile_rules(rules)[0]
    sets = [1 << TWO_OF_CLUBS, *(int(r[name]) for name in _SETS)]
    kinds = [(card // 13, rules.points[card], [cards >> card & 1 for cards in sets]) for card in range(NUM_CARDS)]
    alike = [mask_of(card for card in range(NUM_CARDS) if kinds[card] == kind) for kind in kinds]
    return np.array(alike, np.uint64)


@njit
def representatives(hand: Any, legal_set: Any, gone: Any, alike: Any) -> Any:
    """The lowest of each class of equal cards in the legal set of a hand; see `equal_cards`."""
    found = U0
    while legal_set:
        card = lowest(legal_set)
        found |= bit(card)
        legal_set &= ~(bit(card) | equal_cards(card, hand, gone, alike))
    return found


@njit
def equal_cards(card: Any, hand: Any, gone: Any, alike: Any) -> Any:
    """The cards of ``hand`` equal to ``card``, which is one of them; ``alike`` is `alike_cards`.

    ``gone`` are the cards that can take no trick any more: those of completed tricks, and in a trick under way all on
    the table but the one that takes it so far. Where some of them are left out, fewer cards are found equal.
    """
    barriers = suit_of(card) & ~(hand | gone)
    under, over = barriers & below(card), barriers & above(card)
    equal = hand & alike[card]
    if under:
        equal &= above(highest(under))
    if over:
        equal &= below(lowest(over))
    return equal
