"""Random rules, deals and ways to play, drawn so that the rare branches of the rules come up in few games.

Uniform play under default rules shoots one deal in 500 and hardly ever has a leader with nothing but hearts and the
queen of spades. So deals are often stacked, seats have tastes, and a whole table may help one seat to shoot.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Sequence
from typing import Any

from dnfh_env.errors import RulesError
from dnfh_env.rules import CALLS, Rules, card_points
from oracle import DECK, SEATS, Oracle, rank_of, suit_of, taker_of

# --- rules ------------------------------------------------------------------------------------------------------


def random_rules(rng: random.Random) -> Rules:
    """A preset now and then, otherwise valid rules with every option drawn; most games last a few deals."""
    if rng.random() < 0.1:
        return rng.choice((Rules(), Rules.standard_hearts(), Rules.omnibus()))
    while True:
        try:
            return Rules(**_random_fields(rng))
        except RulesError:  # a game that might never end, or nothing to shoot
            continue


def _random_fields(rng: random.Random) -> dict[str, Any]:
    return {
        "points": _random_points(rng),
        **_random_calls(rng),
        "first_lead": rng.choice(("2C", "any club")),
        "first_trick": rng.choice(("no scoring", "jack free", "any")),
        "hearts_broken_by": rng.choice(("heart or QS", "heart", "no need")),
        "hearts_with_qs": rng.random() < 0.5,
        "shot": rng.choice(("game", "others", "shooter", "none")),
        "shot_needs_jack": rng.random() < 0.5,
        "target": rng.choice((1, 20, 60, 100, 150, 300, 300)),
        "ties": rng.choice(("share", "play on")),
        "max_deals": rng.choice((None, 1, 2, 3, 5, 8)),
        "table_dealer": rng.choice(("random", "next")),
        "leaver": rng.choice(("leaves", "rejoins")),
        "empty_line": rng.choice(("stay", "end")),
    }


def _random_points(rng: random.Random) -> tuple[int, ...]:
    kind = rng.choice(("default", "default", "QH 14", "standard", "omnibus", "a few cards", "any card"))
    return {
        "default": lambda: Rules().points,
        "QH 14": lambda: card_points(QH=14, QS=26, QC=13, QD=13, JD=-10),
        "standard": lambda: Rules.standard_hearts().points,
        "omnibus": lambda: Rules.omnibus().points,
        "a few cards": lambda: card_points(
            hearts=0, **{card: rng.randint(-9, 30) for card in rng.sample(DECK, rng.randint(0, 3))}
        ),
        "any card": lambda: tuple(rng.choice((0, 0, 1, rng.randint(-100, 100))) for _ in DECK),
    }[kind]()


def _random_calls(rng: random.Random) -> dict[str, Any]:
    if rng.random() < 0.5:
        return {"call_by": "rotation", "calls": tuple(rng.choices((*CALLS, "hold"), k=rng.randint(1, 16)))}
    return {"call_by": "dealer", "calls": tuple(rng.sample(CALLS, rng.randint(1, len(CALLS))))}


# --- deals ------------------------------------------------------------------------------------------------------

HEARTS = [card for card in DECK if suit_of(card) == "H"]
SCORING = [*HEARTS, "QS", "QC", "QD", "JD"]
TOPS = ["AC", "KC", "QC", "AD", "KD", "QD", "AH", "KH", "QH", "JH", "AS", "KS", "QS"]
TOPS_UNDER_JACK = ["KC", "QC", "JC", "AD", "KD", "QD", "2D", "AH", "KH", "QH", "AS", "KS", "QS"]
"""With `TOPS_UNDER_JACK` a seat takes all but two tricks: another's ace of clubs, then that one's jack of diamonds."""


def deal_with(rng: random.Random, known: Sequence[Sequence[str]], first: int) -> list[set[str]]:
    """A random deal in which the seats from ``first`` on hold at least these cards."""
    hands: list[set[str]] = [set() for _ in SEATS]
    for k, cards in enumerate(known):
        hands[(first + k) % 4] = set(cards)
    rest = [card for card in DECK if not any(card in hand for hand in hands)]
    rng.shuffle(rest)
    for hand in hands:
        while len(hand) < 13:
            hand.add(rest.pop())
    return hands


def odd_hand(rng: random.Random) -> list[str]:
    """A hand that the first trick or the breaking of hearts treats in a way of its own."""
    clubless = [card for card in DECK if suit_of(card) != "C"]
    return rng.choice(
        (
            HEARTS,
            [*rng.sample(HEARTS, 12), rng.choice(("QS", "JD", "QC", "AS"))],
            rng.sample(SCORING, 13),
            [*rng.sample([card for card in SCORING if card not in ("QC", "JD")], 12), "JD"],
            rng.sample(clubless, 13),
            [*rng.sample(HEARTS, rng.randint(6, 9)), "QS", "AC", "AD"],
            ["2C", "QC", *rng.sample(HEARTS, 5)],
        )
    )


# --- ways to play -----------------------------------------------------------------------------------------------

Taste = Callable[[Oracle, str], Any]
"""How much the seat to move likes to pick or play a card: the greatest value wins."""


def dump_scoring(oracle: Oracle, card: str) -> Any:
    """Get rid of what scores, hearts first."""
    return suit_of(card) == "H", card in oracle.scoring, rank_of(card)


def hoard_hearts(oracle: Oracle, card: str) -> Any:
    """Keep hearts and the queen of spades to the end, and take the lead."""
    return suit_of(card) != "H", card != "QS", rank_of(card)


def queen_first(oracle: Oracle, card: str) -> Any:
    """Play the queen of spades as soon as it may be played."""
    return card == "QS", rank_of(card)


def duck(oracle: Oracle, card: str) -> Any:
    return -rank_of(card)


def shoot(oracle: Oracle, card: str) -> Any:
    """Take every trick, but leave one that was led with the jack of diamonds; pass low cards."""
    leave = oracle.phase == "pick" or (bool(oracle.trick) and oracle.trick[0][1] == "JD")
    return -rank_of(card) if leave else rank_of(card)


def serve(shooter: int) -> Taste:
    """Lose to the shooter, throw it what scores, and pass high cards."""

    def taste(oracle: Oracle, card: str) -> Any:
        if oracle.phase == "pick":
            return rank_of(card)
        trick = [*oracle.trick, (-1, card)]
        theirs = bool(oracle.trick) and taker_of(oracle.trick) == shooter
        return taker_of(trick) != -1, (card in oracle.scoring) == theirs, -rank_of(card)

    return taste


def slip_the_jack(shooter: int) -> Taste:
    """Serve the shooter, but take one trick with the ace of clubs and the next with the jack of diamonds."""
    serving = serve(shooter)

    def taste(oracle: Oracle, card: str) -> Any:
        leads_jack = card == "JD" and not oracle.trick
        return oracle.phase != "pick" and (card == "AC" or leads_jack), serving(oracle, card)

    return taste


@dataclasses.dataclass
class Plan:
    """One deal: its hands (None: whatever the engine deals), and what each seat likes (None: anything)."""

    hands: list[set[str]] | None
    tastes: list[Taste | None]

    def choose(self, oracle: Oracle, rng: random.Random) -> str:
        """A legal action for the seat to move; now and then any, so that no plan is followed to the letter."""
        legal = sorted(oracle.legal())
        if oracle.phase == "call":
            return "hold" if "hold" in legal and self.hands else rng.choice(legal)
        taste = self.tastes[oracle.seat]
        if taste is None or rng.random() < 0.03:
            return rng.choice(legal)
        return max(legal, key=lambda card: taste(oracle, card))


def random_plan(rng: random.Random) -> Plan:
    """How the next deal comes about and is played."""
    seat = rng.randrange(4)
    helper = (seat + rng.randint(1, 3)) % 4
    kinds = ["chance"] * 3 + ["odd hand"] * 3 + ["shot", "stacked shot", "shot without jack"]
    kind = rng.choice(kinds)
    tastes: list[Taste | None] = [rng.choice((None, dump_scoring, hoard_hearts, queen_first, duck)) for _ in SEATS]
    if kind == "chance":
        return Plan(None, tastes)
    if kind == "odd hand":
        everybody = rng.choice((tastes, [hoard_hearts] * 4))
        return Plan(deal_with(rng, [odd_hand(rng)], seat), everybody)
    tastes = [serve(seat)] * 4
    tastes[seat] = shoot
    if kind == "shot":
        return Plan(None, tastes)
    if kind == "stacked shot":
        return Plan(deal_with(rng, [TOPS], seat), tastes)
    tastes[helper] = slip_the_jack(seat)
    known = [TOPS_UNDER_JACK, [], [], []]
    known[(helper - seat) % 4] = ["AC", "JD"]
    return Plan(deal_with(rng, known, seat), tastes)


# --- where a game begins ----------------------------------------------------------------------------------------


@dataclasses.dataclass
class Start:
    """A first deal that is not the first of its game: what has happened before."""

    dealer: int
    scores: list[int]
    deal: int
    latched: bool


def random_start(rng: random.Random, rules: Rules) -> Start:
    """A moment of a game under way, often near its end and often with equal scores."""
    deal = rng.randrange(rules.longest_game)
    reach = deal * rules.score_limit // rules.longest_game
    latched = deal > 0 and rules.ties == "play on" and rng.random() < 0.7
    highest = min(reach, rules.target - 1 + (rng.choice((-80, 0, 60)) if latched else 0))
    scores = [max(-reach, rng.choice((highest, highest - 20, highest - rng.randint(0, 300)))) for _ in SEATS]
    if rng.random() < 0.6:
        scores = [rng.choice(scores[:2]) for _ in SEATS]
    if latched:  # and not over, so the lowest are tied
        scores[sorted(SEATS, key=scores.__getitem__)[1]] = min(scores)
    return Start(rng.randrange(4), scores, deal, latched)
