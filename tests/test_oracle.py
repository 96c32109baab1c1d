"""The oracle alone, against the worked examples of ``docs/rules.md`` and the facts listed there."""

from __future__ import annotations

import random
from typing import Any

import pytest

from dnfh_env.rules import Rules, card_points
from oracle import ALL_BRANCHES, CALLS, DECK, SEATS, Oracle, pick_places, taker_of

SCORING = {*(card for card in DECK if card[1] == "H"), "QS", "QC", "QD", "JD"}


def cards(names: str) -> set[str]:
    return set(names.split())


def shuffled_hands(rng: random.Random) -> list[set[str]]:
    deck = rng.sample(DECK, 52)
    return [set(deck[13 * seat : 13 * seat + 13]) for seat in SEATS]


def hands_with(seat: int, hand: set[str]) -> list[set[str]]:
    """A deal that gives ``seat`` this hand, the rest dealt to the others in order."""
    assert len(hand) == 13
    rest = [card for card in DECK if card not in hand]
    others = iter([set(rest[0:13]), set(rest[13:26]), set(rest[26:39])])
    return [hand if s == seat else next(others) for s in SEATS]


def to_play(rules: Rules, hands: list[set[str]]) -> Oracle:
    """A deal without a pass, at its first lead."""
    return Oracle(rules.replace(calls=("hold",), call_by="rotation"), hands, dealer=0)


def follow(hand: str, led: str = "2C", **flags: Any) -> set[str]:
    """What a holder of these thirteen cards may play on the first trick to this lead of another seat."""
    oracle = to_play(Rules(**flags), hands_with(1, cards(hand)))
    oracle.trick = [(0, led)]
    oracle.seat = 1
    return oracle.legal()


def lead(hand: str, before: str = "", **flags: Any) -> set[str]:
    """What may be led from this hand on trick two, after ``before`` was thrown on trick one."""
    oracle = to_play(Rules(**flags), hands_with(1, set(DECK[:13])))
    if before:
        oracle._break_hearts(before, forced=False)
    oracle.history = [[(0, "2C"), (1, "3C"), (2, "4C"), (3, before or "5C")]]
    oracle.seat = 1
    oracle.hands[1] = cards(hand)
    return oracle.legal()


def scored(rules: Rules, taken: list[str], scores: list[int], deal: int = 0, latched: bool = False) -> Oracle:
    """A deal in which the seats took these scoring cards, at its end."""
    oracle = Oracle(rules, hands_with(0, set(DECK[:13])), 0, scores, deal, latched)
    oracle.hands = [set() for _ in SEATS]
    oracle.taken = [cards(pile) for pile in taken]
    oracle._end_deal()
    return oracle


HEARTS = "2H 3H 4H 5H 6H 7H 8H 9H TH JH QH KH AH"
TWELVE_HEARTS = "2H 3H 4H 5H 6H 7H 8H 9H TH JH QH KH"
ALL_SCORING = HEARTS + " QS QC QD JD"
WITHOUT_JACK = HEARTS + " QS QC QD"


def test_r1_r8_neighbours_and_takers() -> None:
    assert taker_of([(1, "8D"), (2, "QD"), (3, "QS"), (0, "AD")]) == 0
    assert taker_of([(3, "2C"), (0, "AD"), (1, "AS"), (2, "AH")]) == 3
    assert taker_of([(2, "KC"), (3, "TC"), (0, "AC"), (1, "9C")]) == 0


def test_r3_calls() -> None:
    assert CALLS == ("300", "210", "201", "120", "111", "102", "030", "021", "012", "003", "kitty", "hold")
    hands = hands_with(2, set(DECK[:13]))
    oracle = Oracle(Rules(), hands, dealer=2)
    assert (oracle.phase, oracle.seat, oracle.call, oracle.legal()) == ("call", 2, None, set(CALLS[:-1]))
    oracle.act("102")
    assert (oracle.phase, oracle.seat, oracle.call, oracle.legal()) == ("pick", 3, "102", hands[3])
    assert Oracle(Rules(calls=("kitty",)), hands, dealer=1).legal() == {"kitty"}
    rotation = Rules.standard_hearts()
    calls = [Oracle(rotation, hands, dealer=0, deal=deal).call for deal in range(6)]
    assert calls == ["300", "003", "030", "hold", "300", "003"]


def test_r4_passing_102() -> None:
    hands = hands_with(1, cards("KS AS QS 2S 3S 4S 5S 6S 7S 8S 9S TS JS"))
    oracle = Oracle(Rules(), hands, dealer=0)
    oracle.act("102")
    for card in ("KS", "AS", "QS"):
        assert oracle.seat == 1
        oracle.act(card)
    assert oracle.picked[1] == cards("KS AS QS") and not oracle.picked[1] & oracle.hands[1]
    assert oracle.given[1] == {"left": {"KS"}, "across": set(), "right": {"AS", "QS"}, "kitty": set()}
    for seat in (2, 3, 0):
        assert oracle.seat == seat and oracle.received[seat]["right"] == set()
        for card in sorted(oracle.legal())[:3]:
            oracle.act(card)
    assert oracle.received[2]["right"] == {"KS"}
    assert oracle.received[0]["left"] == {"AS", "QS"}
    assert oracle.picked == [set()] * 4 and [len(hand) for hand in oracle.hands] == [13] * 4
    assert "KS" in oracle.hands[2] and cards("AS QS") <= oracle.hands[0]


@pytest.mark.parametrize(
    ("call", "places"),
    [("300", "left left left"), ("111", "left across right"), ("021", "across across right"), ("hold", "")],
)
def test_r4_order_of_picks(call: str, places: str) -> None:
    assert pick_places(call) == places.split()


def test_r5_kitty() -> None:
    oracle = Oracle(Rules(), hands_with(1, cards("KS AS QS 2S 3S 4S 5S 6S 7S 8S 9S TS JS")), dealer=0)
    oracle.act("kitty")
    for picks in ("QS KS AS", "4D 5D 6D", "9H 8H 7H", "2C 3C 4C"):
        for card in picks.split():
            oracle.act(card)
    assert (oracle.phase, oracle.seat, oracle.legal()) == ("kitty", None, set())
    with pytest.raises(ValueError):
        oracle.act("2C")
    with pytest.raises(ValueError):
        oracle.kitty([cards("QS KS AS"), cards("QS 5D 6D"), cards("9H 8H 7H"), cards("2C 3C 4C")])
    oracle.kitty([cards("AS 5D 6D"), cards("4D 9H KS"), cards("2C 8H 7H"), cards("QS 3C 4C")])
    assert oracle.received[1]["kitty"] == cards("4D 9H KS") and "KS" in oracle.hands[1]
    assert (oracle.phase, oracle.seat, oracle.legal()) == ("play", 2, {"2C"})


def test_r7_first_lead() -> None:
    hands = hands_with(3, cards("2C 7C QC 3D 4D 5D 6D 7D 8D 9D 2S 3S 4H"))
    assert to_play(Rules(), hands).seat == 3
    assert to_play(Rules(), hands).legal() == {"2C"}
    assert to_play(Rules(first_lead="any club"), hands).legal() == cards("2C 7C QC")


def test_r9_first_trick() -> None:
    hand = "4D 9D JD QD KD 5H QH 3S 8S TS QS KS AS"
    allowed = cards("4D 9D KD 3S 8S TS KS AS")
    assert follow(hand) == allowed
    assert follow(hand, first_trick="jack free") == allowed | {"JD"}
    assert follow(hand, first_trick="any") == cards(hand)
    for setting in ("no scoring", "jack free", "any"):
        assert follow("QC " + TWELVE_HEARTS, first_trick=setting) == {"QC"}
        assert follow("QS " + TWELVE_HEARTS, first_trick=setting) == cards("QS " + TWELVE_HEARTS)
        assert follow(HEARTS, first_trick=setting) == cards(HEARTS)
    assert follow("JD " + TWELVE_HEARTS) == cards("JD " + TWELVE_HEARTS)
    assert follow("JD " + TWELVE_HEARTS, first_trick="jack free") == {"JD"}
    standard = Rules.standard_hearts().points
    assert follow("JD " + TWELVE_HEARTS, points=standard) == {"JD"}


def test_r10_breaking_hearts() -> None:
    assert lead("6D 9C 4H 9H QS") == cards("6D 9C QS")
    assert lead("4H 9H") == cards("4H 9H")
    assert lead("4H 9H QS") == {"QS"}
    assert lead("4H 9H QS", hearts_with_qs=True) == cards("4H 9H QS")
    assert lead("6D 4H QS", hearts_with_qs=True) == cards("6D QS")
    assert lead("6D 4H", before="QD") == {"6D"}
    assert lead("6D 4H", before="QS") == cards("6D 4H")
    assert lead("6D 4H", before="5H") == cards("6D 4H")
    assert lead("6D 4H", before="QS", hearts_broken_by="heart") == {"6D"}
    assert lead("4H QS", hearts_broken_by="heart") == {"QS"}
    for hand in ("6D 9C 4H 9H QS", "4H 9H QS", "6D 4H", "4H 9H"):
        assert lead(hand, hearts_broken_by="no need") == cards(hand)


def test_r10_a_heart_forced_on_the_first_trick_breaks() -> None:
    oracle = to_play(Rules(), hands_with(1, cards("QS " + TWELVE_HEARTS)))
    assert oracle.seat == 0
    oracle.act("2C")
    assert not oracle.hearts_broken
    oracle.act("5H")
    assert oracle.hearts_broken


def test_branches_are_counted_as_they_are_acted_on() -> None:
    before = Oracle.branches.copy()
    oracle = to_play(Rules(first_trick="jack free"), hands_with(1, cards("JD " + TWELVE_HEARTS)))
    oracle.legal()
    oracle.act("2C")
    oracle.act("JD")
    for flag, name in ((False, "R10 must lead QS"), (True, "R10 may lead heart beside QS")):
        oracle = to_play(Rules(hearts_with_qs=flag), hands_with(1, set(DECK[:13])))
        oracle.history = [[(0, "2C"), (1, "3C"), (2, "4C"), (3, "5C")]]
        oracle.seat, oracle.hands[1] = 1, cards("4H 9H QS")
        oracle.legal()
        oracle.act("QS")
        assert Oracle.branches[name] == before[name] + 1
    for name in ("R7 2C led", "R8 void throw", "R9 jack free must be thrown", "R9 jack free thrown"):
        assert Oracle.branches[name] == before[name] + 1
    assert set(Oracle.branches) <= set(ALL_BRANCHES)


def test_r12_r13_entering_points() -> None:
    oracle = scored(Rules(), ["JD 3H 4H", "QS QC 2H QH AC", "", ""], [5, 0, 0, 0])
    assert oracle.entered == [-8, 53, 0, 0] and oracle.scores[0] == -3
    oracle = scored(Rules(), ["QS QC JD 2H QH AC", "", "", ""], [0, 0, 0, 0])
    assert oracle.points == [43, 0, 0, 0]
    oracle = scored(Rules(points=card_points(QH=14, QS=26, QC=13, QD=13, JD=-10)), [ALL_SCORING, "", "", ""], [0] * 4)
    assert oracle.points == [68, 0, 0, 0]


BEFORE_SHOT = [120, 80, 157, 112]


@pytest.mark.parametrize(
    ("shot", "entered", "scores"),
    [
        ("game", [0, 0, 67, 0], [120, 80, 224, 112]),
        ("others", [77, 77, -10, 77], [197, 157, 147, 189]),
        ("shooter", [0, 0, -87, 0], [120, 80, 70, 112]),
        ("none", [0, 0, 67, 0], [120, 80, 224, 112]),
    ],
)
def test_r14_all_seventeen(shot: Any, entered: list[int], scores: list[int]) -> None:
    oracle = scored(Rules(shot=shot, max_deals=50), ["", "", ALL_SCORING, ""], BEFORE_SHOT)
    assert (oracle.points, oracle.entered, oracle.scores) == ([0, 0, 67, 0], entered, scores)
    assert oracle.shooter == 2
    assert (oracle.phase, oracle.winners) == (("game over", {2}) if shot == "game" else ("deal over", set()))


@pytest.mark.parametrize(
    ("shot", "entered", "scores"),
    [
        ("game", [-10, 0, 77, 0], [110, 80, 234, 112]),
        ("others", [67, 77, 0, 77], [187, 157, 157, 189]),
        ("shooter", [-10, 0, -77, 0], [110, 80, 80, 112]),
        ("none", [-10, 0, 77, 0], [110, 80, 234, 112]),
    ],
)
def test_r14_all_but_the_jack(shot: Any, entered: list[int], scores: list[int]) -> None:
    rules = Rules(shot=shot, shot_needs_jack=False, max_deals=50)
    taken = ["JD", "", WITHOUT_JACK, ""]
    oracle = scored(rules, taken, BEFORE_SHOT)
    assert (oracle.shooter, oracle.entered, oracle.scores) == (2, entered, scores)
    assert oracle.winners == ({2} if shot == "game" else set())
    oracle = scored(rules.replace(shot_needs_jack=True), taken, BEFORE_SHOT)
    assert (oracle.shooter, oracle.entered, oracle.winners) == (None, [-10, 0, 77, 0], set())


def test_r14_a_shot_is_known_by_its_cards() -> None:
    oracle = scored(Rules(), ["QS QC QD QH 2H 3H", "JD 4H 5H 6H 7H 8H 9H TH JH KH AH", "", ""], [0] * 4)
    assert oracle.points == [67, 0, 0, 0]
    assert (oracle.shooter, oracle.phase) == (None, "deal over")
    nothing_scores = Rules(points=card_points(hearts=0), shot="none", max_deals=3)
    assert scored(nothing_scores, [ALL_SCORING, "", "", ""], [0] * 4).shooter is None


def test_presets_shot() -> None:
    oracle = scored(Rules.standard_hearts(), [HEARTS + " QS", "JD", "", ""], [0] * 4)
    assert oracle.entered == [0, 26, 26, 26]
    assert scored(Rules.omnibus(), [HEARTS + " QS JD", "", "", ""], [0] * 4).entered == [-10, 26, 26, 26]
    assert scored(Rules.omnibus(), [HEARTS + " QS", "JD", "", ""], [0] * 4).entered == [0, 16, 26, 26]


def test_r16_the_end_of_a_game() -> None:
    rest = "QS QD " + HEARTS
    oracle = scored(Rules(), ["QC JD", rest, "", ""], [295, 0, 0, 0])
    assert (oracle.scores[0], oracle.phase) == (298, "deal over")
    oracle = scored(Rules(), [ALL_SCORING.replace(" JD", ""), "", "", "JD"], [233, 150, 90, -4])
    assert (oracle.scores, oracle.winners, oracle.truncated) == ([310, 150, 90, -14], {3}, False)


TIED = ["QS QC QD JD " + HEARTS[3:], "2H", "", ""]  # 66 and 1
TIE_BEFORE = [235, 262, 120, 120]
APART = ["JD", "QS 2H", "QC QD 3H 4H 5H 6H 7H", "QH 8H 9H TH JH KH AH"]


def test_r16_ties() -> None:
    oracle = scored(Rules(), TIED, TIE_BEFORE, deal=11)
    assert (oracle.scores, oracle.winners, oracle.phase) == ([301, 263, 120, 120], {2, 3}, "game over")
    rules = Rules(ties="play on", max_deals=20)
    oracle = scored(rules, TIED, TIE_BEFORE, deal=11)
    assert (oracle.winners, oracle.phase, oracle.latched) == (set(), "deal over", True)
    oracle = scored(rules, APART, oracle.scores, deal=12, latched=oracle.latched)
    assert oracle.entered == [-10, 27, 31, 19]
    assert (oracle.scores, oracle.winners, oracle.phase) == ([291, 290, 151, 139], {3}, "game over")
    tied_below_target = scored(rules, ["JD", "QS QC QD " + HEARTS, "", ""], [305, 100, 50, 50], latched=True)
    assert (tied_below_target.scores, tied_below_target.phase) == ([295, 177, 50, 50], "deal over")


def test_r16_max_deals() -> None:
    oracle = scored(Rules(ties="play on", max_deals=12), TIED, TIE_BEFORE, deal=11)
    assert (oracle.phase, oracle.truncated, oracle.winners) == ("game over", True, set())
    rules = Rules(ties="play on", max_deals=13)
    oracle = scored(rules, APART, [301, 263, 120, 120], deal=12, latched=True)
    assert (oracle.phase, oracle.truncated, oracle.winners) == ("game over", False, {3})
    oracle = scored(Rules(max_deals=1), [ALL_SCORING, "", "", ""], [0] * 4)
    assert (oracle.truncated, oracle.winners) == (False, {0})
    oracle = scored(Rules(max_deals=1), TIED, [0] * 4)
    assert (oracle.phase, oracle.truncated, oracle.winners) == ("game over", True, set())


def test_r17_a_shots_winner() -> None:
    oracle = scored(Rules(), [ALL_SCORING, "", "", ""], [290, 40, 150, 56])
    assert (oracle.scores, oracle.winners) == ([357, 40, 150, 56], {0})
    rules = Rules(ties="play on", max_deals=20)
    oracle = scored(rules, ["", "", "", ALL_SCORING], [305, 319, 90, 90], latched=True)
    assert (oracle.scores, oracle.winners) == ([305, 319, 90, 157], {3})


def test_illegal_acts_and_deals() -> None:
    hands = hands_with(0, set(DECK[:13]))
    oracle = Oracle(Rules(), hands, dealer=0)
    for action in ("hold", "2C", "nonsense"):
        with pytest.raises(ValueError):
            oracle.act(action)
    with pytest.raises(ValueError):
        oracle.next_deal(hands)
    with pytest.raises(ValueError):
        oracle.kitty([set()] * 4)
    with pytest.raises(ValueError):
        Oracle(Rules(), [hands[0], hands[0], hands[2], hands[3]], dealer=0)


def check_places(oracle: Oracle) -> None:
    """Every card in exactly one place, and hands that differ by at most one card in play."""
    places = [*oracle.hands, *oracle.picked, *oracle.taken, {card for _, card in oracle.trick}]
    assert sum(len(place) for place in places) == 52 and set().union(*places) == set(DECK)
    if oracle.phase == "play":
        sizes = [len(hand) for hand in oracle.hands]
        assert max(sizes) - min(sizes) <= 1
        assert oracle.tricks_led == len(oracle.history) + bool(oracle.trick)


def play_deal(oracle: Oracle, rng: random.Random) -> int:
    """Play a deal to its end at random, checking every moment; the number of decisions."""
    decisions = 0
    while oracle.phase not in ("deal over", "game over"):
        check_places(oracle)
        if oracle.phase == "kitty":
            pool = sorted(set().union(*oracle.picked))
            rng.shuffle(pool)
            oracle.kitty([pool[3 * seat : 3 * seat + 3] for seat in SEATS])
            continue
        legal = oracle.legal()
        assert legal and (oracle.phase == "call" or legal <= oracle.hands[oracle.seat])
        if len(oracle.history) == 10 and oracle.rules.hearts_broken_by == "heart or QS":
            assert oracle.hearts_broken
        oracle.act(rng.choice(sorted(legal)))
        decisions += 1
    check_places(oracle)
    assert oracle.seat is None and oracle.legal() == set()
    assert sum(oracle.points) == oracle.rules.deal_total
    return decisions


VARIANTS = [
    Rules(),
    Rules.standard_hearts(),
    Rules.omnibus(),
    Rules(
        first_lead="any club",
        first_trick="any",
        hearts_broken_by="heart",
        hearts_with_qs=True,
        shot="shooter",
        max_deals=10,
    ),
    Rules(
        calls=("kitty", "hold"),
        first_trick="jack free",
        hearts_broken_by="no need",
        shot="none",
        ties="play on",
        target=60,
        max_deals=8,
    ),
]


@pytest.mark.parametrize("number", range(len(VARIANTS)))
def test_random_games(number: int) -> None:
    rules = VARIANTS[number]
    rng = random.Random(number)
    for _ in range(3):
        oracle = Oracle(rules, shuffled_hands(rng), rng.randrange(4))
        while True:
            dealer, deal, before = oracle.dealer, oracle.deal, list(oracle.scores)
            decisions = play_deal(oracle, rng)
            expected = (1 if rules.call_by == "dealer" else 0) + (0 if oracle.call == "hold" else 12) + 52
            assert decisions == expected
            assert oracle.scores == [before[seat] + oracle.entered[seat] for seat in SEATS]
            if oracle.phase == "game over":
                break
            oracle.next_deal(shuffled_hands(rng))
            assert (oracle.dealer, oracle.deal) == ((dealer + 1) % 4, deal + 1)
        assert bool(oracle.winners) != oracle.truncated
        if rules == Rules():
            assert oracle.deal < 18 and all(-120 <= score <= 376 for score in oracle.scores)


def test_default_deals_have_65_decisions() -> None:
    rng = random.Random(65)
    assert [play_deal(Oracle(Rules(), shuffled_hands(rng), seat), rng) for seat in SEATS] == [65] * 4
    assert len(SCORING) == 17 and Rules().deal_total == 67
