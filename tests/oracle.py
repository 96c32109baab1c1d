"""The slow twin of the engine: one game of Dirty Nasty Filthy Hearts in plain sets, lists and card names.

Written from ``docs/rules.md`` alone, to be checked against it by eye; the numbers R1 to R18 are those of that page.
It shares no code with the package it is compared to. R18, the table game after game, is not played here.

A card is its rank and suit (``"QS"``, ``"TD"``, ``"2C"``), a seat is 0 to 3 clockwise, a direction is ``"left"``,
``"across"``, ``"right"`` or ``"kitty"``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

SUITS = "CDHS"
RANKS = "23456789TJQKA"  # R1: ace high
DECK = [rank + suit for suit in SUITS for rank in RANKS]
SEATS = (0, 1, 2, 3)

# R3: the splits say how many cards go left, across and right.
SPLITS = ("300", "210", "201", "120", "111", "102", "030", "021", "012", "003")
CALLS = (*SPLITS, "kitty", "hold")

NEIGHBOUR = {"left": 1, "across": 2, "right": 3}  # R1: steps clockwise to that neighbour
OPPOSITE = {"left": "right", "across": "across", "right": "left"}  # I am the right neighbour of my left neighbour
PLACES = ("left", "across", "right", "kitty")

ALL_BRANCHES: tuple[str, ...] = (
    "R2 deal moves left",
    *(f"R3 call {call}" for call in CALLS),
    "R3 rotation",
    "R3 rotation starts over",
    "R4 pick left",
    "R4 pick across",
    "R4 pick right",
    "R4 exchange",
    "R5 pick kitty",
    "R5 own cards back 0",
    "R5 own cards back 1",
    "R5 own cards back 2",
    "R5 own cards back 3",
    "R7 2C led",
    "R7 any club led",
    "R8 follow",
    "R8 void throw",
    "R9 scoring club led",
    "R9 scoring club followed",
    "R9 ban applied",
    "R9 nothing but scoring cards",
    "R9 jack free must be thrown",
    "R9 jack free thrown",
    "R9 any",
    "R10 hearts unbroken ban applied",
    "R10 only hearts led",
    "R10 must lead QS",
    "R10 may lead heart beside QS",
    "R10 QS led unbroken",
    "R10 no need used",
    "R10 broken by heart",
    "R10 broken by forced heart on first trick",
    "R10 broken by QS",
    "R10 QS does not break",
    "R11 forced decision",
    "R12 negative score",
    "R14 shot game",
    "R14 shot others",
    "R14 shot shooter",
    "R14 shot none",
    "R14 shot without jack",
    "R14 jack alone missing",
    "R16 target reached",
    "R16 target not reached",
    "R16 one winner",
    "R16 tie shared",
    "R16 tie played on",
    "R16 latch kept the game going below target",
    "R16 latch ended the game below target",
    "R16 cut off by max_deals",
    "R16 ended properly with the last of max_deals",
    "R17 shot though another is lower",
    "R17 shot though another is past target",
    "R17 shot though the shooter is past target",
)
"""Every name that `Oracle.branches` may count."""


def suit_of(card: str) -> str:
    return card[1]


def rank_of(card: str) -> int:
    return RANKS.index(card[0])


def hearts_among(cards: Iterable[str]) -> set[str]:
    return {card for card in cards if suit_of(card) == "H"}


def taker_of(trick: list[tuple[int, str]]) -> int:
    """R8: the highest card of the led suit takes the trick."""
    led = suit_of(trick[0][1])
    in_suit = [(rank_of(card), seat) for seat, card in trick if suit_of(card) == led]
    return max(in_suit)[1]


def pick_places(call: str) -> list[str]:
    """R4: where a seat's picks go, in their order: left, across, right; R5: all to the kitty; R3: none on hold."""
    if call == "hold":
        return []
    if call == "kitty":
        return ["kitty", "kitty", "kitty"]
    left, across, right = (int(digit) for digit in call)
    return ["left"] * left + ["across"] * across + ["right"] * right


class Oracle:
    """One game, from a deal on. See ``docs/rules.md`` for the rules, the attributes below for what it knows."""

    branches: ClassVar[Counter[str]] = Counter()
    """How often each branch of the rules was taken, over all oracles; the names are `ALL_BRANCHES`."""

    phase: str
    """``"call"``, ``"pick"``, ``"kitty"`` (wait for `kitty`), ``"play"``, ``"deal over"`` or ``"game over"``."""
    seat: int | None
    """The seat to move; None when nobody moves."""
    call: str | None
    hands: list[set[str]]
    picked: list[set[str]]
    """Picked and not yet exchanged."""
    taken: list[set[str]]
    given: list[dict[str, set[str]]]
    """What each seat gave in this deal, by direction, filled pick by pick. All four directions are always keys."""
    received: list[dict[str, set[str]]]
    """What each seat got, by the neighbour it came from (or the kitty), filled at the exchange. Keys as in `given`."""
    trick: list[tuple[int, str]]
    """The cards of the trick being played; empty as soon as the fourth is down."""
    history: list[list[tuple[int, str]]]
    """The complete tricks of this deal."""
    scores: list[int]
    points: list[int] | None
    """The card points of the finished deal, whatever a shot does to them."""
    entered: list[int] | None
    """What the finished deal added to the scores."""
    shooter: int | None
    """Who took all the needed cards of the finished deal, under any setting of ``rules.shot``."""
    latched: bool
    """Whether a total has been at the target or past it at a deal's end."""
    hearts_broken: bool
    """Whether a card that breaks hearts has been played; under ``"no need"`` that is a heart."""
    winners: set[int]
    truncated: bool

    def __init__(
        self,
        rules: Any,
        hands: Sequence[Iterable[str]],
        dealer: int,
        scores: Sequence[int] = (0, 0, 0, 0),
        deal: int = 0,
        latched: bool = False,
        number: int = 0,
    ) -> None:
        self.rules = rules
        self.value = {card: int(rules.points[13 * SUITS.index(suit_of(card)) + rank_of(card)]) for card in DECK}
        self.scoring = {card for card in DECK if self.value[card] != 0}  # R9, R13
        self.dealer = dealer
        self.deal = deal
        self.number = number
        self.scores = list(scores)
        self.latched = latched
        self.winners = set()
        self.truncated = False
        self._start_deal(hands)

    @property
    def tricks_led(self) -> int:
        """How many tricks of this deal have been begun."""
        return len(self.history) + (1 if self.trick else 0)

    def legal(self) -> set[str]:
        """What the seat to move may do: card names or call names; empty when nobody moves."""
        return self._choices()[0]

    def act(self, action: str) -> None:
        """The seat to move calls, picks or plays."""
        legal, reasons = self._choices()
        if action not in legal:
            raise ValueError(f"{action!r} is not legal for seat {self.seat} in phase {self.phase!r}")
        self._count(*reasons)
        if len(legal) == 1:
            self._count("R11 forced decision")
        if self.phase == "call":
            self._take_call(action)
        elif self.phase == "pick":
            self._pick(action)
        else:
            self._play(action, reasons)

    def next_deal(self, hands: Sequence[Iterable[str]]) -> None:
        """R2: the deal moves to the left."""
        if self.phase != "deal over":
            raise ValueError(f"no next deal in phase {self.phase!r}")
        self._count("R2 deal moves left")
        self.dealer = (self.dealer + 1) % 4
        self.deal += 1
        self._start_deal(hands)

    # ---------------------------------------------------------------- deal, call and pass (R2 to R6)

    def _start_deal(self, hands: Sequence[Iterable[str]]) -> None:
        self.hands = [set(hand) for hand in hands]
        if [len(hand) for hand in self.hands] != [13, 13, 13, 13] or set().union(*self.hands) != set(DECK):
            raise ValueError("the hands are not the deck dealt out, 13 cards each")
        self.picked = [set() for _ in SEATS]
        self.taken = [set() for _ in SEATS]
        self.given = [{place: set() for place in PLACES} for _ in SEATS]
        self.received = [{place: set() for place in PLACES} for _ in SEATS]
        self.trick = []
        self.history = []
        self.hearts_broken = False
        self.points = self.entered = self.shooter = None
        self.call = None
        if self.rules.call_by == "dealer":  # R3: the dealer's decision
            self.phase = "call"
            self.seat = self.dealer
            return
        calls = self.rules.calls  # R3: deal k of the game takes call k of the rotation, over and over;
        turn = self.number if self.rules.max_deals == 1 else self.deal  # a game of one deal the call of its own number
        self._count("R3 rotation")
        if turn >= len(calls):
            self._count("R3 rotation starts over")
        self._take_call(calls[turn % len(calls)])

    def _take_call(self, call: str) -> None:
        self._count(f"R3 call {call}")
        self.call = call
        if call == "hold":  # R3: nobody passes
            self._start_play()
        else:
            self.phase = "pick"
            self.seat = (self.dealer + 1) % 4  # R4: seat by seat from the dealer's left

    def _pick(self, card: str) -> None:
        places = pick_places(self.call)
        picks = self.picked[self.seat]
        place = places[len(picks)]
        self._count(f"R5 pick {place}" if place == "kitty" else f"R4 pick {place}")
        self.hands[self.seat].remove(card)
        picks.add(card)
        self.given[self.seat][place].add(card)
        if len(picks) < 3:
            return
        if self.seat != self.dealer:
            self.seat = (self.seat + 1) % 4
        elif self.call == "kitty":
            self.phase = "kitty"
            self.seat = None
        else:
            self._exchange()

    def _exchange(self) -> None:
        """R4: all picks change hands at once."""
        self._count("R4 exchange")
        for giver in SEATS:
            for place, steps in NEIGHBOUR.items():
                self._receive((giver + steps) % 4, OPPOSITE[place], self.given[giver][place])
        self._start_play()

    def kitty(self, received: Sequence[Iterable[str]]) -> None:
        """R5: the dealer shuffled the twelve and gave three to each; ``received`` is what each seat got."""
        if self.phase != "kitty":
            raise ValueError(f"no kitty in phase {self.phase!r}")
        threes = [set(three) for three in received]
        if [len(three) for three in threes] != [3, 3, 3, 3] or set().union(*threes) != set().union(*self.picked):
            raise ValueError("the kitty is not dealt out, three cards each")
        for seat in SEATS:
            self._count(f"R5 own cards back {len(threes[seat] & self.picked[seat])}")
            self._receive(seat, "kitty", threes[seat])
        self._start_play()

    def _receive(self, seat: int, source: str, cards: set[str]) -> None:
        self.received[seat][source].update(cards)
        self.hands[seat].update(cards)

    def _start_play(self) -> None:
        """R7: the holder of the two of clubs, after the pass, goes first."""
        self.picked = [set() for _ in SEATS]
        self.phase = "play"
        self.seat = next(seat for seat in SEATS if "2C" in self.hands[seat])

    # ---------------------------------------------------------------- what may be done (R3, R4, R7 to R10)

    def _choices(self) -> tuple[set[str], list[str]]:
        """The legal actions, and the names of the branches that led to them."""
        if self.phase == "call":
            return set(self.rules.calls), []  # R3
        if self.phase == "pick":
            return set(self.hands[self.seat]), []  # R4
        if self.phase != "play":
            return set(), []
        hand = set(self.hands[self.seat])
        first_trick = not self.history
        if not self.trick:
            return self._first_lead(hand) if first_trick else self._lead(hand)
        following = {card for card in hand if suit_of(card) == suit_of(self.trick[0][1])}
        if following:  # R8; R9: following suit is never restricted
            return following, ["R8 follow"]
        if not first_trick:
            return hand, ["R8 void throw"]
        throws, reasons = self._throw_on_first_trick(hand)
        return throws, ["R8 void throw", *reasons]

    def _first_lead(self, hand: set[str]) -> tuple[set[str], list[str]]:
        """R7, which alone governs the first trick's lead."""
        if self.rules.first_lead == "any club":
            return {card for card in hand if suit_of(card) == "C"}, ["R7 any club led"]
        return {"2C"}, ["R7 2C led"]

    def _lead(self, hand: set[str]) -> tuple[set[str], list[str]]:
        """R10: leads from the second trick on."""
        hearts = hearts_among(hand)
        others = hand - hearts
        if self.hearts_broken or self.rules.hearts_broken_by == "no need" or not hearts:
            return hand, []
        if not others:
            return hand, ["R10 only hearts led"]
        if others == {"QS"} and self.rules.hearts_with_qs:
            return hand, ["R10 may lead heart beside QS"]
        if others == {"QS"}:
            return others, ["R10 must lead QS"]
        return others, ["R10 hearts unbroken ban applied"]

    def _throw_on_first_trick(self, hand: set[str]) -> tuple[set[str], list[str]]:
        """R9: what a player void in the led suit may throw on the first trick."""
        if self.rules.first_trick == "any":
            return hand, ["R9 any"]
        banned = set(self.scoring)
        if self.rules.first_trick == "jack free":
            banned.discard("JD")
        allowed = hand - banned
        if not allowed:
            return hand, ["R9 nothing but scoring cards"]
        reasons = []
        if allowed != hand:
            reasons.append("R9 ban applied")
        if allowed == {"JD"} and "JD" in self.scoring:
            reasons.append("R9 jack free must be thrown")
        return allowed, reasons

    # ---------------------------------------------------------------- play (R7 to R11)

    def _play(self, card: str, reasons: list[str]) -> None:
        self._count_play(card)
        self._break_hearts(card, forced="R9 nothing but scoring cards" in reasons)
        self.hands[self.seat].remove(card)
        self.trick.append((self.seat, card))
        if len(self.trick) < 4:
            self.seat = (self.seat + 1) % 4  # R8: clockwise
            return
        taker = taker_of(self.trick)
        self.taken[taker].update(card for _, card in self.trick)
        self.history.append(self.trick)
        self.trick = []
        self.seat = taker  # R8: the taker leads next
        if len(self.history) == 13:
            self._end_deal()

    def _break_hearts(self, card: str, forced: bool) -> None:
        """R10: a card led or thrown, in any trick, may break hearts."""
        if self.hearts_broken:
            return
        if suit_of(card) == "H":
            self.hearts_broken = True
            self._count("R10 broken by forced heart on first trick" if forced else "R10 broken by heart")
        elif card == "QS" and self.rules.hearts_broken_by == "heart or QS":
            self.hearts_broken = True
            self._count("R10 broken by QS")
        elif card == "QS" and self.rules.hearts_broken_by == "heart":
            self._count("R10 QS does not break")

    def _count_play(self, card: str) -> None:
        """Counts alone: what this card, about to be played, shows of R9 and R10."""
        first_trick = not self.history
        leading = not self.trick
        if first_trick and suit_of(card) == "C" and card in self.scoring:
            self._count("R9 scoring club led" if leading else "R9 scoring club followed")
        if first_trick and card == "JD" and card in self.scoring and self.rules.first_trick == "jack free":
            self._count("R9 jack free thrown")
        if leading and not first_trick and not self.hearts_broken:
            if card == "QS":
                self._count("R10 QS led unbroken")
            only_hearts = hearts_among(self.hands[self.seat]) == self.hands[self.seat]
            if suit_of(card) == "H" and self.rules.hearts_broken_by == "no need" and not only_hearts:
                self._count("R10 no need used")

    # ---------------------------------------------------------------- the score (R12 to R17)

    def _end_deal(self) -> None:
        """R12, R14, R16: the deal is entered; a shot is judged first, then the target, then ``max_deals``."""
        self.seat = None
        self.points = [sum(self.value[card] for card in self.taken[seat]) for seat in SEATS]
        self.shooter = self._find_shooter()
        self.entered = self._entries(self.points)
        self.scores = [self.scores[seat] + self.entered[seat] for seat in SEATS]
        if min(self.scores) < 0:
            self._count("R12 negative score")
        last = self.rules.max_deals is not None and self.deal + 1 >= self.rules.max_deals
        winners = self._winners()
        if winners:
            self.winners = winners
            self.phase = "game over"
            if last:
                self._count("R16 ended properly with the last of max_deals")
        elif last:
            self.truncated = True
            self.phase = "game over"
            self._count("R16 cut off by max_deals")
        else:
            self.phase = "deal over"

    def _find_shooter(self) -> int | None:
        """R14: who took every scoring card (the jack of diamonds aside when it is not needed), if there are any."""
        needed = set(self.scoring)
        if not self.rules.shot_needs_jack:
            needed.discard("JD")
        shooter = next((seat for seat in SEATS if needed and needed <= self.taken[seat]), None)
        if shooter is not None:
            self._count(f"R14 shot {self.rules.shot}")
            if not self.scoring <= self.taken[shooter]:
                self._count("R14 shot without jack")
        elif any(self.scoring - self.taken[seat] == {"JD"} for seat in SEATS):
            self._count("R14 jack alone missing")
        return shooter

    def _entries(self, points: list[int]) -> list[int]:
        """R12, R14: what each seat's score grows by. P is the sum of all positive points of the deck."""
        entries = list(points)
        if self.shooter is None:
            return entries
        positive = sum(value for value in self.value.values() if value > 0)
        if self.rules.shot == "others":
            for seat in SEATS:
                entries[seat] += -positive if seat == self.shooter else positive
        elif self.rules.shot == "shooter":
            entries[self.shooter] -= 2 * positive
        return entries

    def _winners(self) -> set[int]:
        """R14, R16, R17: who has won with this deal; nobody while the game goes on."""
        reached = max(self.scores) >= self.rules.target
        self.latched = self.latched or reached
        if self.shooter is not None and self.rules.shot == "game":
            self._count_shot_game(self.shooter)
            return {self.shooter}
        self._count("R16 target reached" if reached else "R16 target not reached")
        lowest = {seat for seat in SEATS if self.scores[seat] == min(self.scores)}
        if self.rules.ties == "share":
            if not reached:
                return set()
            self._count("R16 one winner" if len(lowest) == 1 else "R16 tie shared")
            return lowest
        if not self.latched:  # R16, play on: once reached, reached for good
            return set()
        if len(lowest) == 1:
            self._count("R16 one winner")
            if not reached:
                self._count("R16 latch ended the game below target")
            return lowest
        self._count("R16 tie played on")
        if not reached:
            self._count("R16 latch kept the game going below target")
        return set()

    def _count_shot_game(self, shooter: int) -> None:
        """Counts alone: R17, the totals do not matter."""
        others = [self.scores[seat] for seat in SEATS if seat != shooter]
        if min(others) < self.scores[shooter]:
            self._count("R17 shot though another is lower")
        if max(others) >= self.rules.target:
            self._count("R17 shot though another is past target")
        if self.scores[shooter] >= self.rules.target:
            self._count("R17 shot though the shooter is past target")

    def _count(self, *names: str) -> None:
        for name in names:
            if name not in ALL_BRANCHES:
                raise KeyError(name)
            Oracle.branches[name] += 1
