"""The heuristic player: a worked position for each piece of advice, legality under all rules, and its strength."""

from __future__ import annotations

import dataclasses
import random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from agents.arena import evaluate, play_out
from agents.heuristic import Heuristic, Parameters, choose_all
from dnfh_env import Batch, Game, Rules, make_agent
from dnfh_env.agent import RandomAgent
from dnfh_env.cards import SUIT_MASKS, card_id, mask_of
from dnfh_env.engine import CALL, NO_CARD, PICK, PLAY, new_games
from dnfh_env.errors import ArgumentError
from dnfh_env.notation import action_to_string, string_to_action
from dnfh_env.rules import compile_rules
from dnfh_env.view import VIEW
from positions import SCORING
from random_rules import random_rules


def mask(names: str) -> int:
    return mask_of(map(card_id, names.split()))


def trick_view(hand: str, table: str = "", taken: tuple[str, ...] = (), voids: tuple[str, ...] = ()) -> NDArray[Any]:
    """A seat about to play: ``taken`` by me, left, across and right, and the suits in which each is known to be void.

    Whatever is neither held nor named lies in other hands.
    """
    view = np.zeros(1, VIEW)
    cards = [card_id(name) for name in table.split()]
    view["phase"] = PLAY
    view["hand"] = mask(hand)
    view["num_plays"] = 4 * (14 - len(hand.split())) + len(cards)
    view["broken"] = 1
    led = SUIT_MASKS[cards[0] // 13] if cards else 0
    view["legal"] = mask(hand) & led or mask(hand)
    best = max((card for card in cards if card // 13 == cards[0] // 13), default=NO_CARD)
    view["best_card"] = best
    for place, names in enumerate(taken):
        view["taken"][0, place] = view["played"][0, place] = mask(names)
    for place, card in zip(range(4 - len(cards), 4), cards, strict=True):
        view["played"][0, place] |= 1 << card
        if card == best:
            view["best_seat"] = place
    for place, suits in enumerate(voids, start=1):
        view["voids"][0, place] = sum(1 << "CDHS".index(suit) for suit in suits)
    return view


def play(*position: Any, rules: Rules | None = None, **more: Any) -> str:
    return choice(trick_view(*position, **more), rules)


def choice(view: NDArray[Any], rules: Rules | None = None) -> str:
    return action_to_string(int(Heuristic(rules).act(view, np.zeros(1, np.uint64))[0]))


def passed(hand: str) -> list[str]:
    """What is picked for the three cards of a pass, in turn."""
    view, picked = np.zeros(1, VIEW), []
    view["phase"], view["hand"] = PICK, mask(hand)
    for number in range(3):
        view["num_picks"], view["legal"] = number, view["hand"]
        picked.append(choice(view))
        view["hand"] &= ~np.uint64(mask(picked[-1]))
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
    ("void: the jack last", "3C", "9H JD 2S", "9H"),
    ("no lead into an outstanding queen", "", "AS KS 4C 5D 9D", "4C"),
    ("low spades bring it out", "", "5S 4S KH 8D TD", "4S"),
]


@pytest.mark.small
@pytest.mark.parametrize(("table", "hand", "expected"), [case[1:] for case in PLAYS], ids=[case[0] for case in PLAYS])
def test_plays(table: str, hand: str, expected: str) -> None:
    assert play(hand, table, BROKEN) == expected


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


NEARLY_ALL = "2H 3H 4H 5H 6H 7H 8H QC QD QS"


@pytest.mark.small
def test_stops_another_that_has_all_that_are_taken() -> None:
    """A heart that the ace can win: worth its points only if that breaks a shot."""
    hand = "AH 9H 2C 3C"
    assert play(hand, "TH 3D 4D", ("", NEARLY_ALL)) == "AH"
    assert play(hand, "TH 3D 4D", ("", NEARLY_ALL[3:], "2H")) == "9H"
    assert play(hand, "TH 3D 4D", ("2H", NEARLY_ALL[3:])) == "9H"
    assert play(hand, "TH 3D 4D", ("", "", NEARLY_ALL)) == "9H"  # left takes it, and so breaks the shot of across


@pytest.mark.small
def test_keeps_the_card_that_can_stop_another() -> None:
    assert play("AH 9H 3C", "4S 5S 6S", ("", NEARLY_ALL)) != "AH"
    assert play("AH 9H 3C", "4S 5S 6S", ("", NEARLY_ALL[3:], "2H")) == "AH"


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
        view = np.zeros(1, VIEW)
        view["phase"], view["legal"] = CALL, mask_of(map(string_to_action, calls))
        assert choice(view) == ("030" if "030" in calls else calls[0])


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
    batch.play_random(30)
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
        for agent in (Heuristic(), Heuristic(Rules.omnibus(), trick=2, stop=0.5)):
            agent.act(views, np.zeros(len(views), np.uint64))
    assert len(choose_all.signatures) <= 1  # none with the JIT off


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


# --- parameters -------------------------------------------------------------------------------------------------


@pytest.mark.small
def test_parameters_are_options() -> None:
    """Whoever minds no trick plays high."""
    view = trick_view("2S KS 3D", "TS", BROKEN)
    assert choice(view) == "2S"
    bold = make_agent("heuristic:throw=-50,fall=-9,lead=-20")
    assert action_to_string(int(bold.act(view, np.zeros(1, np.uint64))[0])) == "KS"


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
        changed = Heuristic(**{field.name: 3 * field.default + 1})  # type: ignore[operator]
        assert (changed.act(views, keys) != usual).any(), field.name


@pytest.mark.small
def test_wrong_parameters_are_refused() -> None:
    with pytest.raises(ArgumentError, match=r"'boldness' is no parameter; they are trick, exposure"):
        Heuristic(boldness=1)
    for wrong in ("much", float("nan"), None):
        with pytest.raises(ArgumentError, match="stop: expected a finite number, got"):
            Heuristic(stop=wrong)  # type: ignore[arg-type]
    for name in ("guard", "ducking"):
        with pytest.raises(ArgumentError, match=f"{name}: expected at least 0, got -1"):
            Heuristic(**{name: -1})


# --- strength ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_beats_greedy() -> None:
    """These are other deals than it was tuned on."""
    edge = evaluate("heuristic", "greedy-v1", deals=800, games=0, seed=12).edge
    assert edge and edge.low > 5


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
