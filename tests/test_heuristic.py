"""The heuristic player: a worked position for each piece of advice, legality under all rules, and its strength."""

from __future__ import annotations

import dataclasses
import hashlib
import random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from agents.arena import evaluate
from agents.facts import (
    Outside,
    cheapest_lower,
    dearest,
    dearest_lower,
    highest,
    negative,
    outside,
    sum_of_suit,
    sums_of_suits,
)
from agents.heuristic import (
    _DEALT_LOSERS,
    Heuristic,
    Parameters,
    choose_all,
    compile_parameters,
    suit_losers,
)
from agents.referee import play_out
from dnfh_env import Batch, Game, Rules, make_agent
from dnfh_env.agent import RandomAgent
from dnfh_env.cards import DECK, NUM_CARDS, SUIT_MASKS, card_id, cards_in, mask_of
from dnfh_env.engine import CALL, PICK, PLAY, new_games
from dnfh_env.errors import AgentError, ArgumentError
from dnfh_env.notation import string_to_action
from dnfh_env.rules import SHOT_CODES, compile_rules
from dnfh_env.view import VIEW
from positions import SCORING, choice, mask, view_of
from random_rules import random_rules
from test_kernels import run_python


def trick_view(hand: str, table: str = "", taken: tuple[str, ...] = (), voids: tuple[str, ...] = ()) -> NDArray[Any]:
    """A seat about to play: ``taken`` by me, left, across and right, and the suits in which each is known to be void.

    Whatever is neither held nor named lies in other hands.
    """
    cards = [card_id(name) for name in table.split()]
    led = SUIT_MASKS[cards[0] // 13] if cards else 0
    view = view_of(PLAY, mask(hand) & led or mask(hand), table)
    view["hand"] = mask(hand)
    view["num_plays"] = 4 * (14 - len(hand.split())) + len(cards)
    view["broken"] = 1
    if cards:
        view["best_seat"] = 4 - len(cards) + cards.index(view["best_card"][0])
    for place, names in enumerate(taken):
        view["taken"][0, place] = mask(names)
        view["played"][0, place] |= view["taken"][0, place]
    for place, suits in enumerate(voids, start=1):
        view["voids"][0, place] = sum(1 << "CDHS".index(suit) for suit in suits)
    return view


def play(*position: Any, rules: Rules | None = None, **changes: float) -> str:
    """The card chosen in a `trick_view`, with some parameters changed."""
    return choice(Heuristic(rules=rules, **changes), trick_view(*position))


def passed(hand: str, **changes: float) -> list[str]:
    """What is picked for the three cards of a pass, in turn."""
    view, agent, picked = view_of(PICK, mask(hand)), Heuristic(**changes), []
    view["hand"] = mask(hand)
    for number in range(3):
        view["num_picks"], view["legal"] = number, view["hand"]
        picked.append(choice(agent, view))
        view["given"][0, number] = mask(picked[-1])
        view["hand"] &= ~view["given"][0, number]
    return picked


BROKEN = ("", "JH", "TH")
"""Two others have taken a heart each, so nobody can shoot."""

PASSES = [
    ("QS goes", "QS 3S 2S 4C 6C 8C JC 3D 5D 7D 3H 5H 7H", {"QS"}, set()),
    ("unless five lower ones guard it", "QS 9S 7S 4S 3S 2S 4C 6C JC 5D 7D 3H 5H", set(), {"QS"}),
    ("so do AS and KS", "AS KS 3S 4C 6C 8C JC 3D 5D 7D 3H 5H 7H", {"AS", "KS"}, set()),
    ("unless guarded", "AS KS JS 9S 5S 4S 3S 6C JC 5D 7D 3H 5H", set(), {"AS", "KS"}),
    ("the other queens go too", "QC QD 4C 6C 3D 5D 3H 5H 7H 9H 3S 5S 7S", {"QC", "QD"}, set()),
    ("the jack stays", "JD 9D 4D 2D 4C 6C 8C JC 5H 7H 9H 3S 5S", set(), {"JD"}),
    ("a short suit is finished", "9C 8C 2D 4D 6D 8D TD 3H 5H 7H 3S 5S 7S", {"9C", "8C"}, set()),
    ("even if it is the safer one", "6C 4C 2D 3D 4D 6D 8D 2H 3H 5H 3S 4S 5S", {"6C", "4C"}, set()),
    ("one of three cards too", "9C 8C 7C 4D 6D 8D TD 3H 5H 7H 3S 5S 7S", {"9C", "8C", "7C"}, set()),
    ("a low heart rather than the ace that stops shots", "5C 3C JD TD 6D AH KH 7H 5H KS 9S 6S 3S", {"KH"}, {"AH"}),
    *(
        (f"{high} with four lower ones goes", f"{high} 9S 7S 4S 3S 4C 6C 8C JC 3D 5D 7D 3H", {high}, set())
        for high in ("QS", "KS", "AS")
    ),
    *(
        (f"{high} with five stays", f"{high} 9S 7S 4S 3S 2S 4C 6C 8C JC 5D 7D 3H", set(), {high})
        for high in ("QS", "KS", "AS")
    ),
    ("who shoots keeps its aces", "TD JD QD 2H 4H 6H 8H 9H QH KH 2S KS AS", {"2S"}, {"AS", "KS", "KH"}),
    ("to shoot, low cards of short suits go", "QC 8C AD KD AH QH TH 8H 7H 6H 4H 7S 5S", {"5S", "7S", "8C"}, set()),
    ("who does not shoot at first never does", "KC QC 6C 3D QH 2H AS QS TS 9S 4S 3S 2S", {"QC", "QH", "KC"}, {"2H"}),
    ("to shoot, what loses goes", "AC KC QC JC TC AH KH QH JH AS KS 3D 2S", {"3D", "2S"}, {"QC", "QH", "AH"}),
]


@pytest.mark.small
@pytest.mark.parametrize(("hand", "gone", "kept"), [case[1:] for case in PASSES], ids=[case[0] for case in PASSES])
def test_passes(hand: str, gone: set[str], kept: set[str]) -> None:
    picked = set(passed(hand))
    assert len(picked) == 3 and gone <= picked and not kept & picked


PLAYS = [
    ("duck with the highest that does not take", "TS", "2S 9S JS KS 4D", "9S"),
    ("a queen goes under", "KS", "2S JS QS AS 4D", "QS"),
    ("take what is free, highest first", "3C 5C 4C", "2C 9C KC 4H", "KC"),
    ("but not with a queen", "3C 5C 4C", "2C QC 4H", "2C"),
    ("nobody takes points for nothing", "3H 5H 4H", "2H KH 4C", "2H"),
    ("win the jack", "3D 5D JD", "2D KD 3C", "KD"),
    ("with some hearts in it too", "3D JD 5H", "2D AD 3C", "AD"),
    ("but not with a queen in it", "3D JD QH", "2D KD 3C", "2D"),
    ("cash one's own jack", "3D 5D 4D", "2D JD KD 4C", "JD"),
    ("void: throw the queen of spades", "3D", "AC 2H QS AS 4S", "QS"),
    ("void: a high heart rather than a low club", "3S", "2C AH 3C", "AH"),
    ("void: a low spade before the jack", "AH 2S 3D", "4S JD", "4S"),
    ("no lead into an outstanding queen", "", "KS 9C TD 9D", "9C"),
    ("low spades bring it out", "", "5S 4S KH 8D TD", "4S"),
]


@pytest.mark.small
@pytest.mark.parametrize(("table", "hand", "expected"), [case[1:] for case in PLAYS], ids=[case[0] for case in PLAYS])
def test_plays(table: str, hand: str, expected: str) -> None:
    assert play(hand, table, BROKEN) == expected


QUEEN_GONE = ("QS", "JH", "TH")
WEIGHTS = [
    ("trick", "AC 5D 8C", "TD 2H", QUEEN_GONE, "TD", "2H"),
    ("exposure", "4H 7D", "KD 9C 5S", BROKEN, "KD", "9C"),
    ("own", "8C 9D", "8H QD", BROKEN, "QD", "8H"),
    ("guard", "KH 7H", "8D 7D", BROKEN, "7D", "8D"),
    ("jack", "AH 2S 3D", "4S JD", QUEEN_GONE, "4S", "JD"),
    ("catch", "8H", "KD 7D", BROKEN, "7D", "KD"),
    ("void", "8C 7H", "4S KD 2D", BROKEN, "4S", "KD"),
    ("throw", "", "5S 8S", QUEEN_GONE, "5S", "8S"),
    ("fall", "", "9C KS 4C", BROKEN, "4C", "KS"),
    ("usual", "", "2D 9H", QUEEN_GONE, "2D", "9H"),
    ("lead", "", "4S AS", QUEEN_GONE, "4S", "AS"),
]
"""A position for each weight, what is played, and what is played without it."""


@pytest.mark.small
@pytest.mark.parametrize(("name", "table", "hand", "taken", "expected", "without"), WEIGHTS)
def test_weights(name: str, table: str, hand: str, taken: tuple[str, ...], expected: str, without: str) -> None:
    assert play(hand, table, taken) == expected
    assert play(hand, table, taken, **{name: 0}) == without


@pytest.mark.small
def test_a_queen_that_is_gone_is_not_feared() -> None:
    assert play("KS 9C TD 9D", "", QUEEN_GONE) == "KS"


@pytest.mark.small
def test_who_is_void_cannot_take_the_trick_but_throws_on_it() -> None:
    """The lead of a low card, before and after the others have failed to follow its suit."""
    assert play("4C 8D", "", QUEEN_GONE, throw=0) == "4C"
    assert choice(Heuristic(throw=0), trick_view("4C 8D", "", QUEEN_GONE, ("C", "C", "C"))) == "8D"
    assert play("9D KC", "", QUEEN_GONE) == "9D"
    assert choice(Heuristic(), trick_view("9D KC", "", QUEEN_GONE, ("D", "", ""))) == "KC"
    assert choice(Heuristic(throw=0), trick_view("9D KC", "", QUEEN_GONE, ("D", "", ""))) == "9D"


@pytest.mark.small
def test_nothing_is_thrown_on_a_first_trick_that_bans_it() -> None:
    view = trick_view("JC KC TS AS KD 7H 6H", "2C 8C")
    view["num_plays"] = 2
    assert choice(Heuristic(), view) == "KC"
    assert choice(Heuristic(rules=Rules(first_trick="any")), view) == "JC"


@pytest.mark.small
def test_the_last_of_equal_ones() -> None:
    assert play("2C 2S", "", ("QS QC QD JD", "JH", "TH")) == "2S"


# --- the shot ---------------------------------------------------------------------------------------------------

STRONG = "AC KC QC JC TC AH KH QH JH AS KS QS AD"
WEAK = "2C 3C 4C 5C 2D 3D 4D 2H 3H 7H 2S 3S 4S"
TOPS = "AH KH AS KS AC"
"""Five cards that take the last five tricks."""


@pytest.mark.small
def test_tries_with_a_hand_that_may_take_everything() -> None:
    """The same trick, with a heart in it: one hand takes it with its highest, the other ducks."""
    assert play(STRONG[:-3], "6H 8H") == "AH"
    assert play(WEAK[:-3], "9H 8H") == "7H"
    assert play(WEAK[:-3], "4H 6H 5H") in ("2H", "3H")


@pytest.mark.small
def test_commits_while_it_has_all_that_are_taken() -> None:
    """The queen of spades lies there: only who goes for everything takes it."""
    mine = "2H 3H 4H 5H 6H 7H 8H QC QD JD"
    assert play("AS 2S AH KH", "QS 3S 5S", (mine,)) == "AS"
    assert play("AS 2S AH KH", "QS 3S 5S", (mine[3:], "2H")) == "2S"


@pytest.mark.small
def test_dares_more_the_more_it_has_taken() -> None:
    hand, taken = "AS 8S 7S TC 9C 2H", "3H 4H 5H 6H 7H JH QC QD"
    assert play(hand, "QS 9S 3S", (taken,)) == "AS"
    assert play(hand, "QS 9S 3S", (taken[:8],)) != "AS"


DARING = [
    ("shot_held", 0, "", "KC 4S 5C", "QH JH QS 7H AH", "KC", "4S"),
    ("shot_lead", 0, "", "KH 7D TD TH", "9H JD JH 4H 3H", "KH", "7D"),
    ("shot_jack", 0, "4D", "7S 3C KH 6H", "7H 5H 3H QH QC", "7S", "3C"),
    ("minor_loser", 1, "", "TH 3D 4C 6S", "3H QH 6H 4H AH", "TH", "6S"),
    ("plain_loser", 1, "", "7H 3C 7C 9S", "3H 8H 6H QD QC", "9S", "7H"),
]
"""A weight, another value of it, a trick, a hand, what it has taken, and what it plays with each."""


@pytest.mark.small
@pytest.mark.parametrize(("name", "other", "table", "hand", "taken", "expected", "then"), DARING)
def test_what_is_dared(name: str, other: float, table: str, hand: str, taken: str, expected: str, then: str) -> None:
    assert play(hand, table, (taken,)) == expected
    assert play(hand, table, (taken,), **{name: other}) == then


@pytest.mark.small
def test_losers_of_a_later_suit_may_make_up_for_others() -> None:
    """It leads what is likeliest to win, though the clubs alone are too many losers."""
    position = ("2C 3C 4C 5C 6C 7C 2S 3S 4S", "", ("QS",))
    assert play(*position) == "4S"
    assert play(*position, plain_loser=-5) == "7C"


@pytest.mark.small
def test_cards_that_lie_in_one_hand_last_longer() -> None:
    """Two others are known to have no hearts, so the third can beat more of mine."""
    hand, taken = "8H TH 4H 3S", ("2H KH QD 9H 7H",)
    assert play(hand, "", taken) == "TH"
    assert choice(Heuristic(), trick_view(hand, "", taken, ("H", "H", ""))) == "3S"


@pytest.mark.small
def test_dares_less_where_a_shot_pays_less() -> None:
    position, rules = ("AS 8S 7S TC 9C 2H", "QS 9S 3S", ("3H 4H 5H 6H 7H JH QC QD",)), Rules(shot="others", max_deals=1)
    assert play(*position) == "AS"
    assert play(*position, rules=rules) == "7S"
    assert play(*position, rules=rules, shot_points=1) == "AS"


@pytest.mark.small
def test_abandons_when_another_has_a_shot_card_or_must_get_one() -> None:
    hand = "AH KH AS KS AC 3C"
    assert play(hand, "9D 5D 4D", ("2H 3H 4H 5H",)) == "3C"  # goes on: the trick is lost, but no shot card with it
    assert play(hand, "QD 5D 4D", ("2H 3H 4H 5H",)) in ("AH", "KH", "AS", "KS")
    assert play(hand, "9D 5D 4D", ("2H 3H 4H", "5H")) in ("AH", "KH", "AS", "KS")


@pytest.mark.small
def test_leads_winners_when_it_shoots() -> None:
    assert play(f"{TOPS} 2D", "", ("2H 3H 4H 5H 6H 7H QS QC QD JD",))[0] in "AK"
    assert play(f"{TOPS} 2D", "", BROKEN) == "2D"


@pytest.mark.small
def test_loses_what_must_be_lost_on_tricks_without_shot_cards() -> None:
    assert play("2S KS AC KC AH KH", "5S 3S 4S", ("2H 3H 4H 5H 6H 7H QS QC QD JD",)) == "2S"
    assert play("2S KS AC KC AH KH", "5S 3S TH", ("2H 3H 4H 5H 6H 7H QS QC QD JD",)) == "KS"


MOST = "2H 3H 4H 5H 6H 7H 8H QS QC QD JD"
OWN_TRICKS = [
    ("lead the surest winner", "", "9C AS KS AH KH", "AH"),
    ("lead winners of the suit of which the fewest are outside", "", "AC AS 2S KS AH KH QH JH TH", "AH"),
    ("last: no higher than it takes", "3C 2H QH", "AC KC AH KH", "KC"),
    ("before others: as high as can be", "3C 2D", "AC KC AH KH", "AC"),
    ("with what nobody beats, to have the lead", "3C", "AC 2C AH KH", "AC"),
    ("the surest loser under what is no winner", "3C", "KC 9C 2C AH KH", "2C"),
    ("the surest loser when nothing wins", "KC 5C 4C", "JC 2C AH KH AS KS", "2C"),
    ("the surest loser though it could win", "KC 5C 4C", "AC JC 2C AH KH AS KS", "2C"),
    ("void: keep shot cards", "5S 3S 4S", "2C AC AH KH", "2C"),
    ("even what may lose a trick", "5S 3S 4S", "9H AC AH KH", "AC"),
]


@pytest.mark.small
@pytest.mark.parametrize(("table", "hand", "expected"), [c[1:] for c in OWN_TRICKS], ids=[c[0] for c in OWN_TRICKS])
def test_tricks_of_its_own_shot(table: str, hand: str, expected: str) -> None:
    assert play(hand, table, (MOST,)) == expected


@pytest.mark.small
def test_takes_the_trick_with_what_cannot_lose_another() -> None:
    """No club is outside, so the eight is as good as the ten: it keeps the lead."""
    taken = (MOST, "2C 3C 4C 5C", "6C 7C JC", "KC AC 9S")
    assert play("TC 8C AH KH QH", "9C 5D 4D", taken) == "TC"


NEARLY_ALL = "2H 3H 4H 5H 6H 7H 8H QC QD QS"


@pytest.mark.small
def test_stops_another_that_has_all_that_are_taken() -> None:
    """A heart that the ace can win: worth its points only if that breaks a shot."""
    hand = "AH 9H 2C 3C"
    assert play(hand, "TH 3D 4D", ("", NEARLY_ALL)) == "AH"
    assert play(hand, "TH 3D 4D", ("", NEARLY_ALL[9:], "2H 3H 4H")) == "9H"
    assert play(hand, "TH 3D 4D", ("2H", NEARLY_ALL[3:])) == "9H"
    assert play(hand, "TH 3D 4D", ("", "", NEARLY_ALL)) == "9H"  # left takes it, and so breaks the shot of across


@pytest.mark.small
def test_keeps_the_card_that_can_stop_another() -> None:
    assert play("AH 9H 3C", "4S 6S 5S", ("", "", NEARLY_ALL)) == "3C"
    assert play("AS 2S", "KD", ("", NEARLY_ALL)) == "2S"
    assert play("AC 8D", "4S 6S 5S", ("", "", NEARLY_ALL, "2C 3C 4C 5C 6C 7C 8C 9C TC JC KC")) == "AC"  # stops nothing
    assert play("AS 2S", "KD", ("", NEARLY_ALL), stopper=0) == "AS"
    assert play("AH 9H 3C", "4S 6S 5S", ("", "2H", NEARLY_ALL[3:])) == "AH"


@pytest.mark.small
def test_stops_less_where_a_shot_costs_less() -> None:
    position = ("AH 9H 2C 3C", "TH 3D 4D", ("", "7H 8H QC QD QS"))
    assert play(*position) == "AH"
    assert play(*position, rules=Rules(shot="others", max_deals=1)) == "9H"


@pytest.mark.small
def test_does_not_feed_another() -> None:
    """The rival leads the trick: no shot card for it, unless others have one too."""
    hand, taken = "3C KC AC 7H 2S 6S TS JS KS AS", "2H 3H 4H 5H 6H 8H 9H"
    assert play(hand, "2D 9D AD", ("", "", "", taken))[1] != "H"
    assert play("6H 6S", "6D", ("", "", "", "3H QH QD QS 8H")) == "6S"
    assert play("6H 6S", "6D", ("", "", "", "3H QH QD QS 8H"), feed=0) == "6H"


@pytest.mark.small
def test_gives_a_shot_card_to_a_third() -> None:
    """Across takes the trick, so a heart thrown on it ends the shot of left; even the ace."""
    taken = "3H 4H 5H 6H 7H 8H 9H TH JH QS QC QD KH"
    assert play("AH 2H 9C", "4D KD 5D", ("", taken))[1] == "H"
    assert play("AH 9C", "4D KD 5D", ("", taken)) == "AH"
    assert play("AH 9C", "KD 4D 5D", ("", taken)) == "9C"


@pytest.mark.small
def test_takes_the_last_shot_cards_whatever_they_cost() -> None:
    for last, hand, table in (("QS", "AS 2S", "QS 3S 4S"), ("QD", "KD 2D 3C 4C", "QD 3D 5D")):
        taken = " ".join(card for card in SCORING if card != last)
        assert play(hand, table, ("", taken)) == hand.split()[0]
        assert play(hand, table, ("", taken), stop=0) == hand.split()[0]


@pytest.mark.small
def test_another_with_few_shot_cards_is_not_feared() -> None:
    assert play("7H TS", "", ("", "QS 8H")) == "TS"
    assert play("7H TS", "", ("", "QS 8H TH 5H 4H")) == "7H"


@pytest.mark.small
def test_a_shot_that_is_made_cannot_be_stopped() -> None:
    everything = " ".join(SCORING)
    assert play("AS 2S 4C 3C", "4D 5D 6D", ("", everything)) == "AS"
    assert play("AS 2S 4C 3C", "4D 5D 6D", ("", everything.replace("JD", "9D"))) != "AS"


@pytest.mark.small
@pytest.mark.parametrize("rules", [Rules(shot="none"), Rules.omnibus(shot="none")])
def test_where_nothing_can_be_shot_nobody_tries(rules: Rules) -> None:
    assert play(STRONG[:-3], "6H 8H", rules=rules) in ("JH", "QH")


@pytest.mark.small
def test_what_a_shot_needs_comes_from_the_rules() -> None:
    """Another has the jack: that ends it unless the jack is not needed."""
    position = ("AS 2S AH KH", "QS 3S 5S", ("2H 3H 4H 5H 6H 7H 8H QC QD", "JD"))
    assert play(*position) == "2S"
    assert play(*position, rules=Rules(shot_needs_jack=False)) == "AS"


# --- as an agent ------------------------------------------------------------------------------------------------


@pytest.mark.small
def test_calls_what_is_allowed() -> None:
    for calls in (Rules().calls, ("003", "kitty"), ("hold",), ("kitty", "hold")):
        view = view_of(CALL, mask_of(map(string_to_action, calls)))
        assert choice(Heuristic(), view) == ("030" if "030" in calls else calls[0])


@pytest.mark.parametrize("seed", range(40))
def test_is_legal_under_random_rules(seed: int) -> None:
    check_legal(random_rules(random.Random(seed)), seed, 8)


@pytest.mark.small
@pytest.mark.parametrize("rules", [Rules(max_deals=1), Rules.standard_hearts(max_deals=1), Rules.omnibus(max_deals=2)])
def test_is_legal_under_the_presets(rules: Rules) -> None:
    check_legal(rules, 1, 2)


def check_legal(rules: Rules, seed: int, count: int) -> None:
    """Play it against itself and against random players, under a referee."""
    games = new_games(rules, seed, np.arange(count))
    lineup = np.array([[0, 1, 1, 1], [0, 0, 0, 0]] * (count // 2))
    players = [("heuristic", make_agent("heuristic", rules)), ("random", RandomAgent())]
    play_out(games, compile_rules(rules), lineup, players)


def test_ignores_seeds_and_company() -> None:
    batch = Batch(64, seed=3)
    batch.play("random", 30)
    views, agent = batch.views(), Heuristic()
    before = views.copy()
    together = agent.act(views, batch.keys())
    alone = [int(agent.act(views[i : i + 1], np.zeros(1, np.uint64))[0]) for i in range(len(views))]
    assert together.tolist() == alone
    assert agent.act(views[::-1], batch.keys()).tolist() == alone[::-1]
    assert views.tobytes() == before.tobytes()
    assert together.dtype == np.int64


def test_is_compiled_once() -> None:
    batch = Batch(4, seed=1)
    for views in (batch.views(), batch.views()[::2], batch.views()[:0]):
        for agent in (Heuristic(), Heuristic(rules=Rules.omnibus(), trick=2, stop=0.5)):
            agent.act(views, np.zeros(len(views), np.uint64))
    assert len(choose_all.signatures) <= 1  # none with the JIT off


DECISIONS = "1a1e13352399487c"


def digest(count: int) -> str:
    """Of all decisions in ``count`` games or so between four of it, under the presets and another kind of shot."""
    found = hashlib.sha256()
    for rules in (Rules(), Rules.standard_hearts(), Rules.omnibus(), Rules(shot="shooter", max_deals=1)):
        batch, agent = Batch(count, rules, seed=21), Heuristic(rules=rules)
        for _ in range(65):
            actions = agent.act(batch.views(), batch.keys())
            found.update(actions.astype("<i8").tobytes())
            batch.step(actions)
    return found.hexdigest()[:16]


def test_plays_as_it_did() -> None:
    """A change of play is one to be noticed: look at its strength, then put the new digest here."""
    assert digest(500) == DECISIONS


ODD_POINTS = tuple((37 * card + 11) % 23 - 9 for card in range(NUM_CARDS))
"""Of all sizes in each suit, some of them negative and some 0."""
ODD_RULES = [
    Rules(shot=shot, points=points, max_deals=2) for shot in SHOT_CODES for points in (Rules().points, ODD_POINTS)
]
ODD_DECISIONS = "89d2f58c532c331c"


def odd_weights(number: int) -> dict[str, float]:
    """Parameters from minus a half to five halves of the default ones."""
    factors = [(5 * number + 7 * k) % 13 / 4 - 0.5 for k in range(len(dataclasses.fields(Parameters)))]
    weights = {f.name: factor * f.default for f, factor in zip(dataclasses.fields(Parameters), factors, strict=True)}
    return weights | {name: abs(weights[name]) for name in ("guard", "ducking")}


def odd_digest() -> str:
    """Of what it decides under odd rules and weights, at tables of four of it and of four random players by turns."""
    found = hashlib.sha256()
    for number, rules in enumerate(ODD_RULES):
        for changes in ({}, odd_weights(number)):
            batch, agent, chance = Batch(64, rules, seed=number), Heuristic(rules=rules, **changes), RandomAgent()
            for _ in range(130):
                views, keys = batch.views(), batch.keys()
                actions = agent.act(views, keys)
                found.update(actions.astype("<i8").tobytes())
                batch.step(np.where(np.arange(64) % 2, actions, chance.act(views, keys)))
    return found.hexdigest()[:16]


def test_plays_as_it_did_before_it_was_fast() -> None:
    """The digest is of the first code, in which each card was weighed by itself, and is kept on purpose.

    Whoever makes it faster leaves the digest alone; whoever changes its play puts a new one here, as above.
    """
    assert odd_digest() == ODD_DECISIONS


@pytest.mark.slow
def test_plays_the_same_with_the_jit_off() -> None:
    code = "import sys; sys.path.insert(0, 'tests'); import test_heuristic; print(test_heuristic.digest(4))"
    assert run_python(code, NUMBA_DISABLE_JIT="1").strip() == digest(4)


def test_turning_the_table_changes_nothing() -> None:
    """Four of it: the same cards one seat further on are played the same, one seat further on."""
    game = Game(seed=5)
    hands, dealer = list(game.hands), game.dealer
    turned = Game.from_deal(hands[-1:] + hands[:-1], dealer=(dealer + 1) % 4)
    straight = Game.from_deal(hands, dealer=dealer)
    while straight.deal == 0 and not straight.is_over:
        assert straight.choose("heuristic") == turned.choose("heuristic")
        straight.push(straight.choose("heuristic"))
        turned.push(turned.choose("heuristic"))


# --- what it is told by --------------------------------------------------------------------------------------------


@pytest.mark.small
@pytest.mark.parametrize("points", [Rules().points, ODD_POINTS])
def test_points_outside(points: tuple[int, ...]) -> None:
    """Beside a walk through the cards."""
    rules, rng = Rules(points=points, max_deals=1), random.Random(1)
    r, p = compile_rules(rules)[0], compile_parameters(Parameters(), rules)[0]
    for _ in range(30):
        view = np.zeros(1, VIEW)
        view["hand"] = mask_of(rng.sample(range(NUM_CARDS), rng.choice((1, 13, 40, 52))))
        o = Outside(*map(np.uint64, outside(view[0], p)))  # numba hands out masks as plain integers
        mine = cards_in(view["hand"][0])
        theirs = [card for card in range(NUM_CARDS) if card not in mine]
        assert o.cards == mask_of(theirs)
        assert dearest(r, o) == max([0, *(points[card] for card in theirs)])
        assert negative(p, o.cards) == mask_of(card for card in theirs if points[card] < 0)
        for suit in range(4):
            expected = sum(max(0, points[card]) for card in theirs if card // 13 == suit)
            assert sum_of_suit(sums_of_suits(p, o.cards), suit) == expected
        for card in mine:
            beaten = [points[lower] for lower in theirs if lower // 13 == card // 13 and lower < card]
            assert dearest_lower(r, o, card) == max([0, *beaten])
            assert cheapest_lower(r, o, card) == min([0, *beaten])


@pytest.mark.small
def test_highest() -> None:
    assert highest(np.uint64(0)) == -1
    assert [highest(np.uint64(DECK >> i)) for i in range(52)] == list(range(51, -1, -1))


@pytest.mark.small
def test_losers_of_a_suit_as_dealt() -> None:
    """The table beside the kernel that counts them at any time."""
    for mine in range(0, 1 << 13, 5):
        assert suit_losers(np.uint64(mine), np.uint64(mine ^ SUIT_MASKS[0]), 3) == _DEALT_LOSERS[mine]


# --- parameters -------------------------------------------------------------------------------------------------


@pytest.mark.small
def test_parameters_are_options() -> None:
    """Whoever minds no trick plays high."""
    view = trick_view("2S KS 3D", "TS", BROKEN)
    assert choice(Heuristic(), view) == "2S"
    assert choice(make_agent("heuristic:throw=-50,fall=-9,lead=-20"), view) == "KS"


def test_every_parameter_matters() -> None:
    """Some decision of a hundred deals changes with each of them."""
    batch, agent, seen = Batch(100, seed=8), Heuristic(), []
    for _ in range(65):
        seen.append(batch.views())
        batch.step(agent.act(seen[-1], batch.keys()))
    views = np.concatenate(seen)
    keys = np.zeros(len(views), np.uint64)
    usual = agent.act(views, keys)
    for field in dataclasses.fields(Parameters):
        if field.name == "shot_points":  # only where a shot ends no game: see test_dares_less_where_a_shot_pays_less
            continue
        changed = Heuristic(**{field.name: 3 * field.default + 1})  # type: ignore[operator]
        assert (changed.act(views, keys) != usual).any(), field.name


@pytest.mark.small
def test_wrong_parameters_are_refused() -> None:
    with pytest.raises(ArgumentError, match=r"'boldness' is no parameter; they are trick, exposure"):
        Heuristic(boldness=1)
    for wrong in ("much", float("nan"), None, True, 10**400, 1j):
        with pytest.raises(ArgumentError, match="stop: expected a finite number, got"):
            Heuristic(stop=wrong)  # type: ignore[arg-type]
    assert choice(Heuristic(stop=np.float32(1), trick=np.int64(1)), trick_view("2S KS", "TS", BROKEN)) == "2S"
    with pytest.raises(AgentError, match="it does not take these options: too many positional arguments"):
        make_agent("heuristic:bold")
    for name in ("guard", "ducking"):
        with pytest.raises(ArgumentError, match=f"{name}: expected at least 0, got -1"):
            Heuristic(**{name: -1})


# --- strength ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_beats_greedy() -> None:
    """These are other deals than it was tuned on."""
    edge = evaluate("heuristic", "greedy-v1", deals=800, games=0, seed=12).edge
    assert edge and edge.low > 11


@pytest.mark.slow
def test_takes_little_from_random_players() -> None:
    result = evaluate("heuristic", "random", deals=800, games=40, seed=12)
    assert result.card_points and result.card_points.mean < 1.4
    assert result.win_share and result.win_share.mean > 0.9


@pytest.mark.slow
def test_shooting_pays_and_stopping_does() -> None:
    """Each against three of the whole player, without that piece of advice."""
    for less in ("heuristic:shot_try=-99,shot_pick=-99", "heuristic:stop=0,stopper=0,pick_stopper=0"):
        edge = evaluate(less, "heuristic", deals=8000, games=0, seed=13).edge
        assert edge and edge.high < 0, less
