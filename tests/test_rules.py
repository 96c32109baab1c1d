"""The rules one by one, R1 to R17 of ``docs/rules.md``, each by hand-built positions; R18 is the tables' to test."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from dnfh_env.cards import CARD_NAMES, names_in
from dnfh_env.game import Game
from dnfh_env.rules import CALLS, Rules, card_points
from positions import (
    ALL_BUT_THE_JACK,
    ALL_CLUBS,
    ANY_CALL,
    HEARTS,
    JACK_AND_TWO_HEARTS,
    JACK_AND_TWO_HEARTS_LEADS,
    LATE_LOSER,
    LATE_LOSER_LEADS,
    SCORING,
    SUM_OF_A_SHOT,
    SUM_OF_A_SHOT_PLAYS,
    deal,
    decisions,
    entered,
    held,
    legal,
    play_deal,
    push,
    turn,
)

pytestmark = pytest.mark.small


def cards(names: str) -> set[str]:
    return set(names.split())


def names(mask: Any) -> set[str]:
    return set(names_in(int(mask)))


# --- R1 to R6: table, deal and pass -----------------------------------------------------------------------------


def test_r01_the_left_neighbour_is_the_next_seat() -> None:
    game = Game.from_deal(deal(*ALL_CLUBS), dealer=2)
    assert [int(game.view(seat).dealer) for seat in range(4)] == [2, 1, 0, 3]  # across, left, me, right
    push(game, "210 AS KS QS")
    assert game.seat == 0
    assert [names(pile) for pile in game.view(3).given] == [cards("AS KS"), {"QS"}, set()]


def test_r01_ace_is_high_and_two_low() -> None:
    game = push(held("A2", "K3", "Q4", "J5"), "2C 3C 4C 5C")
    assert game.seat == 3
    assert push(game, "JC AC KC QC").seat == 0


def test_r02_thirteen_cards_each_of_the_whole_deck() -> None:
    for seed in range(20):
        hands = Game(seed=seed).hands
        assert [len(hand) for hand in hands] == [13] * 4
        assert set().union(*hands) == set(CARD_NAMES)


def test_r02_the_first_dealer_is_drawn_and_the_deal_moves_left() -> None:
    assert {Game(seed=seed).dealer for seed in range(20)} == {0, 1, 2, 3}
    assert {Game(seed=1, game=game).dealer for game in range(20)} == {0, 1, 2, 3}
    game = Game(seed=5)
    first = game.dealer
    for step in decisions(game, random.Random(2)):
        assert step.dealer == (first + step.deal) % 4
    assert game.deal > 4


def test_r03_the_dealer_calls_after_seeing_the_hand() -> None:
    game = Game.from_deal(deal(*ALL_CLUBS), dealer=2)
    assert (game.phase, game.seat, game.call) == ("call", 2, None)
    assert names(game.view(2).hand) == set(game.hands[2])
    calls = "300 210 201 120 111 102 030 021 012 003 kitty"
    assert list(map(game.action_to_string, game.legal_actions())) == calls.split()
    assert game.legal_actions() == list(range(52, 63))
    push(game, "102")
    assert (game.phase, game.seat, game.call) == ("pick", 3, "102")


def test_r03_any_choice_of_calls() -> None:
    only = Game.from_deal(deal(*ALL_CLUBS), dealer=1, rules=Rules(calls=("021",)))
    assert (only.phase, only.seat, legal(only)) == ("call", 1, {"021"})
    with_hold = Game.from_deal(deal(*ALL_CLUBS), dealer=1, rules=ANY_CALL)
    assert legal(with_hold) == set(CALLS) and with_hold.legal_actions()[-1] == 63
    assert push(with_hold, "hold").phase == "play"


def test_r03_a_rotation_calls_by_itself() -> None:
    game = Game(Rules(calls=("300", "003", "030", "hold"), call_by="rotation", shot="others"), seed=1)
    called = {}
    for step in decisions(game, random.Random(3)):
        assert step.phase != "call"
        called[step.deal] = step.call
    assert len(called) > 5
    assert [called[number] for number in range(6)] == ["300", "003", "030", "hold", "300", "003"]


PASS_102 = ["AKQJT98765432...", ".432.32.AKQ65432", ".AKQJT987.4.JT98", ".65.AKQJT98765.7"]
"""For dealer 0 and the call 102: one card left, two right."""


def test_r04_picks_wait_until_the_exchange() -> None:
    game = push(Game.from_deal(deal(*PASS_102), dealer=0), "102 KS AS QS")
    assert game.seat == 2
    assert not cards("KS AS QS") & set(game.hands[1]) and len(game.hands[1]) == 10
    assert [names(pile) for pile in game.view(1).given] == [{"KS"}, set(), cards("AS QS")]
    push(game, "AD KD QD AH KH QH 2C 3C")
    assert all(int(game.view(seat).received.sum()) == 0 for seat in range(4))
    assert [len(hand) for hand in game.hands] == [11, 10, 10, 10]
    push(game, "4C")
    assert (game.phase, [len(hand) for hand in game.hands]) == ("play", [13] * 4)
    got = [[names(pile) for pile in game.view(seat).received] for seat in range(4)]
    assert got[0] == [cards("AS QS"), set(), {"AH"}]
    assert got[1] == [cards("KD QD"), set(), {"2C"}]
    assert got[2] == [cards("KH QH"), set(), {"KS"}]
    assert got[3] == [cards("3C 4C"), set(), {"AD"}]
    assert all(set().union(*got[seat]) <= set(game.hands[seat]) for seat in range(4))


def test_r04_the_order_of_picks_for_one_neighbour_is_forgotten() -> None:
    one, two, other = (Game.from_deal(deal(*PASS_102), dealer=0) for _ in range(3))
    push(one, "102 KS AS QS")
    push(two, "102 KS QS AS")
    push(other, "102 AS KS QS")
    assert one.record.tobytes() == two.record.tobytes() != other.record.tobytes()


def test_r04_everyone_chooses_before_seeing_what_comes() -> None:
    game = push(Game.from_deal(deal(*PASS_102), dealer=0), "102 KS AS QS AD KD QD")
    assert not cards("KS AS QS AD KD QD") & legal(game)
    assert legal(game) == set(game.hands[3]) == names(deal(*PASS_102)[3])


KITTY_PICKS = "kitty QS KS AS 4D 5D 6D 9H 8H 7H 2C 3C 4C"
KITTY_HANDS = ["AKQJT98765432...", "..65432.AKQ65432", ".AKQJT987654.JT.", ".32.AKQ987.JT987"]


def test_r05_the_kitty_is_shuffled_and_dealt_out() -> None:
    game = push(Game.from_deal(deal(*KITTY_HANDS), dealer=0, seed=4), KITTY_PICKS)
    pile = cards(KITTY_PICKS.removeprefix("kitty"))
    got = [names(game.view(seat).received[0]) for seat in range(4)]
    assert [len(three) for three in got] == [3] * 4 and set().union(*got) == pile
    for seat in range(4):
        assert got[seat] <= set(game.hands[seat]) and len(game.hands[seat]) == 13
        assert not pile & set(game.hands[seat]) - got[seat]


def test_r05_givers_stay_unknown() -> None:
    game = push(Game.from_deal(deal(*KITTY_HANDS), dealer=0, seed=4), KITTY_PICKS)
    view = game.view(1)
    assert [names(pile) for pile in view.given] == [cards("QS KS AS")] * 3
    assert view.received[0] == view.received[1] == view.received[2]


def kitty_position(received: str) -> Game:
    hands = "/".join(KITTY_HANDS)
    return Game.from_notation(f"0 0,0,0,0 {hands} {KITTY_PICKS} ={received}")


def test_r05_the_kitty_may_return_ones_own_three() -> None:
    game = kitty_position("2C3C4C/QSKSAS/4D5D6D/7H8H9H")
    assert [set(hand) for hand in game.hands] == [names(mask) for mask in deal(*KITTY_HANDS)]
    assert names(game.view(1).given[0]) == names(game.view(1).received[0]) == cards("QS KS AS")
    assert (game.seat, legal(game)) == (0, {"2C"})


def test_r05_a_seat_sees_which_of_its_own_came_back() -> None:
    game = kitty_position("2CQSAS/4D9HKS/3C7H8H/4C5D6D")
    view = game.view(1)
    assert names(view.received[0]) == cards("4D 9H KS")
    assert names(view.received[0] & view.given[0]) == {"KS"}
    assert (game.seat, legal(game)) == (0, {"2C"})


def test_r05_the_order_of_picks_does_not_change_the_shuffle() -> None:
    one = push(Game.from_deal(deal(*KITTY_HANDS), dealer=0, seed=4), KITTY_PICKS)
    two = push(Game.from_deal(deal(*KITTY_HANDS), dealer=0, seed=4), KITTY_PICKS.replace("QS KS AS", "AS QS KS"))
    assert one.record.tobytes() == two.record.tobytes()


def test_r06_only_dealer_call_and_scores_are_public_before_play() -> None:
    one, two = (Game.from_deal(deal(*PASS_102), dealer=0, scores=(5, -8, 13, 26)) for _ in range(2))
    push(one, "300 AS KS QS AD KD QD AH KH QH 2C 3C 4C")
    push(two, "300 6S KS QS AD JD QD AH KH QH 2C 3C 4C")
    view = one.view(0)  # of the one who neither gave nor got a card that differs
    assert view.tobytes() == two.view(0).tobytes()
    assert (list(view.scores), int(view.dealer), int(view.call)) == ([5, -8, 13, 26], 0, 52)
    assert all(one.view(seat).tobytes() != two.view(seat).tobytes() for seat in (1, 2, 3))


# --- R7 to R11: play --------------------------------------------------------------------------------------------


def test_r07_the_holder_of_2c_after_the_pass_leads_it() -> None:
    game = Game.from_deal(deal("A.AKQ..", "K", "2", "7Q"), dealer=1)
    push(game, "300 2C " + " ".join(names_in(deal("A.AKQ..", "K", "2", "7Q")[2])[1:3]))
    for _ in range(9):
        game.push(game.legal_actions()[-1])
    assert (game.phase, game.seat, legal(game)) == ("play", 3, {"2C"})


def test_r07_any_club() -> None:
    hands = ("A", "K", "J", "27Q.3456789..23")
    assert legal(held(*hands)) == {"2C"}
    free = held(*hands, rules=ANY_CALL.replace(first_lead="any club"))
    assert (free.seat, legal(free)) == (3, cards("2C 7C QC"))
    push(free, "QC AC KC JC")
    assert (free.seat, free.points) == (0, (13, 0, 0, 0))


def test_r08_follow_suit_the_highest_of_it_takes_and_leads() -> None:
    game = held("2.A", "A.8", "3.Q", "4..QJ.Q")
    push(game, "2C AC 3C 4C 8D")
    assert legal(game) == {card for card in game.hands[2] if card[1] == "D"} >= {"QD"}
    push(game, "QD")
    assert legal(game) == set(game.hands[3])  # no diamonds, and not the first trick
    push(game, "QS AD")
    assert (game.seat, game.points) == (0, (39, 0, 0, 0))
    assert game.trick == []


def test_r08_a_higher_card_of_another_suit_takes_nothing() -> None:
    game = push(held("2", ".AKQJT98765432", "..AKQJT98765432", "3"), "2C AD KH 3C")
    assert game.seat == 3


def test_r08_play_goes_clockwise() -> None:
    game = held("5", "4", "3", "2")
    order = []
    for card in ("2C", "5C", "4C", "3C"):
        order.append(game.seat)
        push(game, card)
    assert order == [3, 0, 1, 2]


def follow_2c(hand: str, **changes: Any) -> set[str]:
    """What seat 1 may play to the lead of 2C."""
    return legal(push(held("2", hand, "", "", rules=ANY_CALL.replace(**changes)), "2C"))


def test_r09_no_scoring_card_is_thrown_on_the_first_trick() -> None:
    hand = ".49JQK.5Q.38TQKA"
    allowed = cards("4D 9D KD 3S 8S TS KS AS")
    assert follow_2c(hand) == allowed
    assert follow_2c(hand, first_trick="jack free") == allowed | {"JD"}
    assert follow_2c(hand, first_trick="any") == allowed | cards("JD QD 5H QH QS")


SETTINGS = ("no scoring", "jack free", "any")


@pytest.mark.parametrize("setting", SETTINGS)
def test_r09_the_queen_of_clubs_as_only_club_is_played(setting: Any) -> None:
    assert follow_2c("Q..23456789TJQK.", first_trick=setting) == {"QC"}


def test_r09_following_is_never_restricted() -> None:
    assert follow_2c("3Q.45678.23.4567") == cards("3C QC")


@pytest.mark.parametrize("setting", SETTINGS)
def test_r09_a_hand_of_thirteen_scoring_cards_throws_any(setting: Any) -> None:
    assert follow_2c("..23456789TJQK.Q", first_trick=setting) == {*HEARTS[:12], "QS"}
    assert follow_2c("..23456789TJQKA.", first_trick=setting) == set(HEARTS)


def test_r09_twelve_hearts_and_the_jack() -> None:
    hand = ".J.23456789TJQK."
    assert follow_2c(hand) == {*HEARTS[:12], "JD"}
    assert follow_2c(hand, first_trick="jack free") == {"JD"}
    assert follow_2c(hand, first_trick="any") == {*HEARTS[:12], "JD"}
    assert follow_2c(hand, points=Rules.standard_hearts().points) == {"JD"}  # where it does not score


def test_r09_no_clubs_on_the_first_trick() -> None:
    assert follow_2c(".AKQJT98765432..") == cards("AD KD TD 9D 8D 7D 6D 5D 4D 3D 2D")
    assert follow_2c("...AKQJT98765432") == cards("AS KS JS TS 9S 8S 7S 6S 5S 4S 3S 2S")


def test_r09_the_ban_ends_with_the_first_trick() -> None:
    game = push(held("A", ".AKQJT98765432..", "3", "2"), "2C AC AD 3C 5C")
    assert (game.seat, legal(game)) == (1, set(game.hands[1])) and cards("QD JD") <= legal(game)


ALL_SUITS = "A9.6543.94.QJT98"
HEARTS_AND_QS = "A..KQJT9876543.Q"
HEARTS_ALONE = "A..KQJT98765432."


def lead_trick_two(hand: str, **changes: Any) -> set[str]:
    """What seat 1, who took the first trick with AC, may lead; neither a heart nor QS has been played."""
    return legal(push(held("2", hand, "3", "4", rules=ANY_CALL.replace(**changes)), "2C AC 3C 4C"))


def test_r10_no_heart_is_led_before_one_or_qs_is_played() -> None:
    hand = cards("9C 6D 5D 4D 3D QS JS TS 9S 8S")
    assert lead_trick_two(ALL_SUITS) == hand
    assert lead_trick_two(ALL_SUITS, hearts_with_qs=True) == hand
    assert lead_trick_two(ALL_SUITS, hearts_broken_by="heart") == hand
    assert lead_trick_two(ALL_SUITS, hearts_broken_by="no need") == hand | cards("4H 9H")


def test_r10_a_leader_with_only_hearts_leads_one_which_breaks_them() -> None:
    game = push(held("2", HEARTS_ALONE, "3", "4"), "2C AC 3C 4C")
    assert legal(game) == set(HEARTS[:12]) and game.record["broken"][0] == 0
    assert push(game, "4H").record["broken"][0] == 1


def test_r10_a_leader_with_only_hearts_and_qs_must_lead_qs() -> None:
    assert lead_trick_two(HEARTS_AND_QS) == {"QS"}
    assert lead_trick_two(HEARTS_AND_QS, hearts_broken_by="heart") == {"QS"}
    assert lead_trick_two(HEARTS_AND_QS, hearts_with_qs=True) == {"QS", *HEARTS[1:12]}
    assert lead_trick_two(HEARTS_AND_QS, hearts_broken_by="no need") == {"QS", *HEARTS[1:12]}


def test_r10_qs_led_on_trick_two_breaks_hearts() -> None:
    game = push(held("2", "A.2.QJT9876543.Q", "3", "4"), "2C AC 3C 4C")
    assert legal(game) == cards("2D QS")
    assert push(game, "QS").record["broken"][0] == 1
    unbroken = push(held("2", HEARTS_AND_QS, "3", "4", rules=ANY_CALL.replace(hearts_broken_by="heart")), "2C AC 3C 4C")
    assert push(unbroken, "QS").record["broken"][0] == 0


def test_r10_qs_is_not_led_on_the_first_trick() -> None:
    hands = ("24Q.AK.AK.AKQJT9", "3", "5", "6")
    assert legal(held(*hands)) == {"2C"}
    assert legal(held(*hands, rules=ANY_CALL.replace(first_lead="any club"))) == cards("2C 4C QC")


def lead_after(thrown: str, **changes: Any) -> set[str]:
    """The hearts that seat 1 may lead on trick two, after seat 2 threw this card on trick one, where any may be."""
    hands = ("2", "A9.6543.94.JT987", ".AKQJT987.A.KQ65", "4")
    rules = ANY_CALL.replace(first_trick="any", **changes)
    return legal(push(held(*hands, rules=rules), f"2C AC {thrown} 4C")) & set(HEARTS)


def test_r10_hearts_are_broken_by_a_heart_or_qs_thrown() -> None:
    assert lead_after("AH") == lead_after("QS") == cards("4H 9H")
    assert lead_after("QD") == lead_after("AD") == set()
    assert lead_after("QS", hearts_broken_by="heart") == set()
    assert lead_after("AH", hearts_broken_by="heart") == cards("4H 9H")
    assert lead_after("QD", hearts_broken_by="no need") == cards("4H 9H")


@pytest.mark.parametrize("thrown", ["5H", "QS"])
def test_r10_hearts_are_broken_by_a_card_forced_on_the_first_trick(thrown: str) -> None:
    game = held("2", "A9.6543.4.JT9873", "..AKQJT9876532.Q", "4")
    assert "4H" not in legal(push(game.copy(), "2C AC"))
    assert "4H" in legal(push(game, f"2C AC {thrown} 4C"))


def test_r11_cards_are_public_as_played_and_taken() -> None:
    game = held(*LATE_LOSER)
    for card in ["2C", "AC", "QC", "3C", "AD", "JD"]:
        push(game, card)
        for seat in range(4):
            view = game.view(seat)
            assert CARD_NAMES[view.plays[int(view.num_plays) - 1]] == card
    for seat in range(4):
        assert names(game.view(seat).taken[(0 - seat) % 4]) == cards("2C AC QC 3C")
        assert list(game.view(seat).points) == [13 if (seat + place) % 4 == 0 else 0 for place in range(4)]


def test_r11_forced_acts_are_decisions() -> None:
    game = held(*ALL_CLUBS)
    choices = []
    while not game.is_over:
        choices.append(len(game.legal_actions()))
        game.push(game.legal_actions()[-1])
    assert len(choices) == 52 and choices[0] == 1 and choices[-4:] == [1] * 4


# --- R12 to R17: scoring ----------------------------------------------------------------------------------------


def test_r12_points_are_added_and_may_be_negative() -> None:
    game = push(held(*JACK_AND_TWO_HEARTS, scores=(5, 10, 20, 30)), "2C AC 5C 3C AD JD 2D 3D KC 4S 3H 4H 2S AS 3S 9H")
    assert game.points == (-8, 1, 0, 0)
    play_deal(game)
    assert (entered(game), game.scores) == ([-8, 75, 0, 0], (-3, 85, 20, 30))


def test_r12_leads_of_the_hand_built_deals() -> None:
    """That the deals of this file play as they say, whoever follows."""
    game = held(*JACK_AND_TWO_HEARTS)
    play_deal(game, first=JACK_AND_TWO_HEARTS_LEADS + " 4S 3H 4H", last="JS")
    assert entered(game) == [-8, 75, 0, 0]
    assert entered(play_deal(held(*LATE_LOSER), first=LATE_LOSER_LEADS)) == [3, 64, 0, 0]


def test_r13_card_values() -> None:
    values = dict(zip(CARD_NAMES, Rules().points, strict=True))
    assert {card: value for card, value in values.items() if value} == {
        **dict.fromkeys(HEARTS, 1),
        **{"QS": 26, "QC": 13, "QD": 13, "QH": 13, "JD": -10},
    }
    fourteen = Rules(points=card_points(QH=14, QS=26, QC=13, QD=13, JD=-10))
    assert (Rules().deal_total, fourteen.deal_total) == (67, 68)


@pytest.mark.parametrize(
    ("hands", "thrown", "points"),
    [
        (["...Q", ".Q", "..Q"], "QS QD QH", 26 + 13 + 13),
        ([".J", "..2", "..A"], "JD 2H AH", -10 + 1 + 1),
        (["...A", ".A", "...K"], "AS AD KS", 0),
        (["...Q", ".J", "..K"], "QS JD KH", 26 - 10 + 1),
    ],
)
def test_r13_points_of_a_trick(hands: list[str], thrown: str, points: int) -> None:
    game = held("AKQJT98765432", *hands, rules=ANY_CALL.replace(first_trick="any"))
    assert push(game, f"2C {thrown}").points == (points, 0, 0, 0)


def test_r14_all_seventeen_win_the_game() -> None:
    game = play_deal(held(*ALL_CLUBS, scores=(120, 80, 157, 112)), first=SCORING)
    assert (game.is_over, game.winners, game.shooter, game.truncated) == (True, (0,), 0, False)
    assert (entered(game), game.scores) == ([67, 0, 0, 0], (187, 80, 157, 112))


def test_r14_a_shot_certain_at_trick_nine_is_played_out() -> None:
    game = held(*ALL_CLUBS)
    order = [*SCORING, *CARD_NAMES]
    taken = []
    while not game.is_over:
        if game.record["num_plays"][0] % 4 == 0:
            taken.append(len(names(game.record["taken"][0][0]) & set(SCORING)))
        assert game.shooter is None
        game.push(min(legal(game), key=order.index))
    assert taken[8:10] == [16, 17] and len(taken) == 13
    assert game.shooter == 0 and len(game.history) == 52


def test_r14_the_jack_alone_missing_is_no_shot() -> None:
    game = play_deal(held(*ALL_BUT_THE_JACK), first=[*SCORING[:-1]], last="AS KS JD")
    assert (entered(game), game.is_over, game.shooter) == ([77, -10, 0, 0], False, None)
    game = held(*ALL_BUT_THE_JACK, rules=ANY_CALL.replace(shot_needs_jack=False))
    play_deal(game, first=[*SCORING[:-1]], last="AS KS JD")
    assert (entered(game), game.winners, game.shooter) == ([77, -10, 0, 0], (0,), 0)


BEFORE_A_SHOT = (120, 80, 157, 112)


@pytest.mark.parametrize(
    ("shot", "entries"),
    [("others", [77, 77, -10, 77]), ("shooter", [0, 0, -87, 0]), ("none", [0, 0, 67, 0])],
)
def test_r14_other_effects_of_a_shot(shot: Any, entries: list[int]) -> None:
    rules = ANY_CALL.replace(shot=shot, max_deals=50)
    game = play_deal(held(*turn(ALL_CLUBS, 2), scores=BEFORE_A_SHOT, rules=rules), first=SCORING)
    assert (entered(game), game.is_over, game.shooter) == (entries, False, 2)
    assert game.scores == tuple(np.add(BEFORE_A_SHOT, entries))


@pytest.mark.parametrize(
    ("shot", "entries"),
    [("others", [77, 77, 0, 67]), ("shooter", [0, 0, -77, -10]), ("none", [0, 0, 77, -10])],
)
def test_r14_other_effects_without_the_jack(shot: Any, entries: list[int]) -> None:
    rules = ANY_CALL.replace(shot=shot, shot_needs_jack=False, max_deals=50)
    game = held(*turn(ALL_BUT_THE_JACK, 2), scores=BEFORE_A_SHOT, rules=rules)
    play_deal(game, first=SCORING[:-1], last="AS KS JD")
    assert (entered(game), game.is_over, game.shooter) == (entries, False, 2)


def test_r14_a_shot_is_known_by_its_cards_not_its_sum() -> None:
    game = play_deal(held(*SUM_OF_A_SHOT), first=SUM_OF_A_SHOT_PLAYS)
    assert (entered(game), game.shooter, game.is_over) == ([67, 0, 0, 0], None, False)


def test_r15_the_shooter_whose_left_neighbour_leaves_is_named() -> None:
    for seat in range(4):
        game = play_deal(held(*turn(ALL_CLUBS, seat)), first=SCORING)
        assert (game.shooter, game.winners) == (seat, (seat,))
    assert play_deal(held(*LATE_LOSER), first=LATE_LOSER_LEADS).shooter is None


def late_loser(*scores: int, places: int = 0, **changes: Any) -> Game:
    """Seat ``places`` has entered 3 points and the seat at its left 64."""
    hands, before = turn(LATE_LOSER, places), turn(scores, places)
    return play_deal(held(*hands, scores=before, rules=ANY_CALL.replace(**changes)), first=LATE_LOSER_LEADS)


def test_r16_295_and_13_minus_10_plays_on() -> None:
    game = late_loser(295, 0, 0, 0)
    assert (game.scores, game.is_over, game.deal) == ((298, 64, 0, 0), False, 1)


def test_r16_only_totals_at_a_deals_end_count() -> None:
    game = push(held(*LATE_LOSER, scores=(295, 0, 0, 0)), "2C AC QC 3C")
    assert game.scores[0] + game.points[0] == 308 and not game.is_over


def test_r16_the_lowest_wins() -> None:
    game = late_loser(297, 10, 0, 5)
    assert (game.scores, game.winners, game.seat) == ((300, 74, 0, 5), (2,), None)
    assert late_loser(296, 235, 0, 5).is_over is False


@pytest.mark.parametrize("places", range(4))
def test_r16_a_tie_at_the_bottom_with_two_past_the_target_is_shared(places: int) -> None:
    game = late_loser(299, 290, 120, 120, places=places)
    assert turn(game.scores, -places) == [302, 354, 120, 120]
    assert set(game.winners) == {(2 + places) % 4, (3 + places) % 4}


def test_r16_a_negative_winner() -> None:
    game = play_deal(held(*ALL_BUT_THE_JACK, scores=(233, -4, 150, 90)), first=SCORING[:-1], last="AS KS JD")
    assert (game.scores, game.winners, game.truncated) == ((310, -14, 150, 90), (1,), False)


def test_r16_any_target() -> None:
    assert late_loser(0, 0, 0, 0, target=64).winners == (2, 3)
    assert late_loser(0, 0, 0, 0, target=65).is_over is False
    assert late_loser(0, 0, 0, 0, target=1).winners == (2, 3)


def test_r16_ties_play_on_until_one_leads() -> None:
    rules = {"ties": "play on", "max_deals": 20}
    game = late_loser(299, 290, 120, 120, **rules)
    assert (game.is_over, game.scores, game.deal) == (False, (302, 354, 120, 120), 1)
    assert late_loser(299, 290, 121, 120, **rules).winners == (3,)


def latched_position(scores: str) -> Game:
    """Before a deal that brings seat 0 three points and seat 1 sixty-four, the target having been reached earlier."""
    hands = "/".join(LATE_LOSER)
    rules = '{"ties":"play\\u0020on","max_deals":20,"calls":["hold"]}'
    return Game.from_notation(f"0 {scores} {hands} hold ; deal=12 latched=1 rules={rules}")


def test_r16_the_target_once_reached_stays_reached() -> None:
    game = play_deal(latched_position("200,100,90,120"), first=LATE_LOSER_LEADS)
    assert (game.scores, game.winners) == ((203, 164, 90, 120), (2,))
    game = play_deal(latched_position("200,100,90,90"), first=LATE_LOSER_LEADS)
    assert (game.scores, game.is_over) == ((203, 164, 90, 90), False)


def test_r16_max_deals_cuts_off_without_a_winner() -> None:
    game = late_loser(0, 0, 0, 0, max_deals=1)
    assert (game.is_over, game.truncated, game.winners) == (True, True, ())
    game = late_loser(297, 0, 0, 0, max_deals=1)  # ended properly by that very deal
    assert (game.truncated, game.winners) == (False, (2, 3))
    game = play_deal(held(*ALL_CLUBS, rules=ANY_CALL.replace(max_deals=1)), first=SCORING)
    assert (game.truncated, game.winners) == (False, (0,))
    game = late_loser(299, 290, 120, 120, ties="play on", max_deals=1)
    assert (game.truncated, game.winners) == (True, ())


@pytest.mark.parametrize("scores", [(290, 40, 150, 56), (299, 299, 299, -100), (0, 0, 0, 0)])
def test_r17_the_shooter_alone_wins_whatever_the_totals(scores: tuple[int, ...]) -> None:
    game = play_deal(held(*ALL_CLUBS, scores=scores), first=SCORING)
    assert (game.winners, game.scores) == ((0,), (scores[0] + 67, *scores[1:]))


def test_r17_a_shot_with_another_past_the_target() -> None:
    rules = ANY_CALL.replace(ties="play on", max_deals=20)
    game = held(*turn(ALL_CLUBS, 3), scores=(305, 319, 90, 90), rules=rules)
    play_deal(game, first=SCORING)
    assert (game.scores, game.winners, game.truncated) == ((305, 319, 90, 157), (3,), False)
