"""Positions, hands and actions as text: there and back at every decision, and errors that say where."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dnfh_env._bits import indices
from dnfh_env.cards import CARD_NAMES, DECK, card_id, cards_in
from dnfh_env.engine import OVER
from dnfh_env.errors import ArgumentError, DealError, DnfhError, IllegalActionError, NotationError
from dnfh_env.game import Game
from dnfh_env.notation import (
    act,
    action_to_string,
    as_int,
    check_counter,
    check_deal,
    check_scores,
    check_seat,
    hand_to_string,
    legal_of,
    parse_hand,
    position_to_string,
    set_deal,
    string_to_action,
    string_to_hand,
    string_to_position,
)
from dnfh_env.rules import CALLS, Rules, compile_rules
from positions import ALL_CLUBS, ANY_CALL, LATE_LOSER, LATE_LOSER_LEADS, deal, decisions, held, play_deal, push
from random_rules import random_rules

HANDS = "/".join(ALL_CLUBS)


# --- actions and hands ------------------------------------------------------------------------------------------


@pytest.mark.small
def test_actions_there_and_back() -> None:
    names = [action_to_string(action) for action in range(64)]
    assert names == [*CARD_NAMES, *CALLS]
    assert [string_to_action(name) for name in names] == list(range(64))
    assert action_to_string(np.int64(50)) == "KS"  # type: ignore[arg-type]
    for wrong in (-1, 64, 10**5000, None, "QS", 1.0, True, []):
        with pytest.raises(NotationError, match="is not one of 0 to 63"):
            action_to_string(wrong)  # type: ignore[arg-type]
    for wrong in ("", "qs", "10S", "300 ", "Kitty", None, 5, ["QS"], "x" * 10_000):
        with pytest.raises(NotationError, match=r"unknown action .*: write a card as in 'QS', or a call of 300, "):
            string_to_action(wrong)  # type: ignore[arg-type]


@pytest.mark.small
def test_hands_there_and_back() -> None:
    assert hand_to_string(0) == "..." and string_to_hand("...") == 0
    assert hand_to_string(DECK) == ".".join(["AKQJT98765432"] * 4)
    assert string_to_hand("AQ7.K9.T8765.A42") == sum(1 << card_id(name) for name in CARDS.split())
    for seed in range(50):
        mask = random.Random(seed).getrandbits(52)
        assert string_to_hand(hand_to_string(mask)) == mask
    assert string_to_hand("27A...") == string_to_hand("A72...")  # any order will do


CARDS = "AC QC 7C KD 9D TH 8H 7H 6H 5H AS 4S 2S"


@pytest.mark.small
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "has 1 suits, parted by '.'; write all four of CDHS"),
        ("AK.Q.J", "has 3 suits"),
        ("A....", "has 5 suits"),
        ("1...", "unknown card '1C'"),
        ("a...", "unknown card 'aC'"),
        (".10..", "unknown card '1D'"),
        ("..٣.", "unknown card '٣H'"),
        ("A.A.AA.A", "AH stands there twice"),
    ],
)
def test_broken_hands(text: str, words: str) -> None:
    with pytest.raises(NotationError, match=words):
        string_to_hand(text)


@pytest.mark.small
def test_a_hand_in_every_form() -> None:
    mask = string_to_hand("AQ7.K9.T8765.A42")
    names = CARDS.split()
    for form in ("AQ7.K9.T8765.A42", names, tuple(names), iter(names), mask, np.uint64(mask), cards_in(mask)):
        assert parse_hand(form) == mask
    assert parse_hand(np.array(cards_in(mask))) == mask and parse_hand([]) == 0


@pytest.mark.small
@pytest.mark.parametrize(
    ("hand", "words"),
    [
        (None, "hand: expected a sequence, got None"),
        (1.5, "hand: expected a sequence, got 1.5"),
        (["QS", "QS"], "QS stands there twice"),
        ([50, 50], "a card stands there twice"),
        (["QS", 3], "unknown card 3"),
        ([52], "unknown card 52"),
        ([-1], "unknown card -1"),
        ([None], "unknown card None"),
        ([[]], r"unknown card \[\]"),
        ([True], "unknown card True"),
    ],
)
def test_hands_that_are_none(hand: Any, words: str) -> None:
    with pytest.raises((DealError, NotationError), match=words):
        parse_hand(hand)


# --- deals ------------------------------------------------------------------------------------------------------


def changed(**changes: Any) -> dict[str, Any]:
    hands = deal(*ALL_CLUBS)
    return {"hands": hands, "dealer": 0, "scores": (0, 0, 0, 0), "rules": Rules()} | changes


H = deal(*ALL_CLUBS)


@pytest.mark.small
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"hands": H[:3]}, "hands: expected 4, got 3"),
        ({"hands": [*H, 0]}, "hands: expected 4, got 5"),
        ({"hands": None}, "hands: expected a sequence, got None"),
        ({"hands": [H[0] ^ 1, *H[1:]]}, "hands: seat 0 has 12 cards instead of 13"),
        ({"hands": [H[0], H[1] | 1 << 13, *H[2:]]}, "hands: seat 1 has 14 cards instead of 13"),
        ({"hands": [H[0], H[0], *H[2:]]}, "hands: 2C is dealt twice, the second time to seat 1"),
        ({"hands": [*H[:3], H[3] ^ 1 << 51 | 1]}, "hands: 2C is dealt twice, the second time to seat 3"),
        ({"hands": [*H[:3], H[3] | 1 << 52]}, "hands: seat 3 holds something that is not a card"),
        ({"hands": [-1, *H[1:]]}, "hands: seat 0 holds something that is not a card"),
        ({"dealer": 4}, "dealer: 4 is not a seat, 0 to 3"),
        ({"dealer": -1}, "dealer: -1 is not a seat"),
        ({"dealer": None}, "dealer: None is not a seat"),
        ({"dealer": 1.0}, "dealer: 1.0 is not a seat"),
        ({"dealer": True}, "dealer: True is not a seat"),
        ({"scores": (0, 0, 0)}, "scores: expected 4 whole numbers from -[0-9]+ to 299, got"),
        ({"scores": (0, 0, 0, 300)}, "scores: expected 4 whole numbers from -[0-9]+ to 299"),
        ({"scores": (0, 0, 0, -30_001)}, "scores: expected 4 whole numbers"),
        ({"scores": (0, 0, 0, 0.5)}, "scores: expected 4 whole numbers"),
        ({"scores": (0, 0, 0, None)}, "scores: expected 4 whole numbers"),
        ({"scores": "0000"}, "scores: expected 4 whole numbers"),
        ({"scores": None}, "scores: expected a sequence, got None"),
        ({"scores": 5}, "scores: expected a sequence, got 5"),
        ({"call": "hold"}, "call: 'hold' is not among the calls of these rules: 300, .*kitty"),
        ({"call": 52}, "call: 52 is not among the calls"),
        ({"call": []}, r"call: \[\] is not among the calls"),
        ({"call": "300", "rules": Rules.standard_hearts()}, "not among the calls .*: none, the rotation calls"),
        ({"seed": -1}, "seed: -1 is not a whole number from 0 to"),
        ({"seed": 2**64}, "seed: 18446744073709551616 is not"),
        ({"seed": 10**5000}, "seed: <int> is not"),
        ({"seed": "1"}, "seed: '1' is not"),
    ],
)
def test_a_deal_that_cannot_be(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ArgumentError if "seed" in changes else DealError, match=words):
        Game.from_deal(**changed(**changes))


@pytest.mark.small
def test_a_refused_deal_changes_nothing() -> None:
    record = Game(seed=5).record
    before = record.tobytes()
    for hands, dealer, scores, call in (
        (H[:3], 0, (0, 0, 0, 0), None),
        (H, 4, (0, 0, 0, 0), None),
        (H, 0, (0, 0, 0, 300), None),
        (H, 0, (0, 0, 0, 0), "hold"),
    ):
        with pytest.raises(DealError):
            set_deal(record, Rules(), hands, dealer, scores, call)
        assert record.tobytes() == before
    with pytest.raises(IllegalActionError):
        act(record, compile_rules(Rules()), 0)
    assert record.tobytes() == before


@pytest.mark.small
def test_actions_of_every_kind_as_whole_numbers() -> None:
    for action, name in enumerate((*CARD_NAMES, *CALLS)):
        found = [as_int(given) for given in (action, np.int64(action), np.uint8(action), name)]
        assert found == [action] * 4 and {type(number) for number in found} == {int}
    for action in (-1, 64, 2**64, np.int8(-1), np.uint64(2**63), None, True, np.True_, 1.0, [5], np.array([5]), b"QS"):
        assert as_int(action) == -1
    with pytest.raises(NotationError, match="unknown action 'Q'"):
        as_int("Q")


@pytest.mark.small
def test_acting_tells_what_is_legal_next() -> None:
    rules = Rules(target=1)
    record, rng = Game(rules, seed=5).record, random.Random(5)
    allowed = legal_of(record, compile_rules(rules))
    while allowed:
        action = rng.choice(indices(allowed))
        action = rng.choice([action, action_to_string(action), np.uint8(action)])
        allowed = act(record, compile_rules(rules), action)
        assert allowed == legal_of(record, compile_rules(rules))
    assert record["phase"][0] == OVER


@pytest.mark.small
def test_checks_give_plain_numbers_back() -> None:
    check_deal(H)
    assert type(check_seat("seat", np.uint8(3))) is type(check_counter("seed", np.uint64(2**64 - 1))) is int
    assert check_scores(np.array([1, 2, 3, 4]), Rules()) == [1, 2, 3, 4]
    assert check_scores([305, 319, 90, 90], Rules(ties="play on", max_deals=20)) == [305, 319, 90, 90]


# --- positions --------------------------------------------------------------------------------------------------


SAMPLES = [Rules(), Rules.standard_hearts(), Rules(calls=("kitty",)), Rules(ties="play on", target=50, max_deals=9)]
SAMPLES += [random_rules(random.Random(number)) for number in range(8)]


@pytest.mark.small
@pytest.mark.parametrize("number", range(len(SAMPLES)))
def test_positions_there_and_back_at_every_decision(number: int) -> None:
    """The same record again, but for what its text leaves out: an earlier deal's entries and shooter."""
    rng = random.Random(number)
    for game in decisions(Game(SAMPLES[number], seed=number, game=2**32 + 1), rng):
        if game.deal > 3:
            break
        if rng.random() < 0.3 or game.is_over:
            record, rules = string_to_position(game.to_notation())
            assert rules == game.rules and position_to_string(record, rules) == game.to_notation()
            expected = game.record
            if not game.is_over:
                expected["entered"], expected["shooter"] = 0, -1
            assert record.tobytes() == expected.tobytes()


@pytest.mark.small
def test_a_position_as_it_is_written() -> None:
    game = Game.from_deal(deal(*ALL_CLUBS), dealer=2, scores=(1, -2, 3, 4), seed=7)
    assert game.to_notation() == f"2 1,-2,3,4 {HANDS} ; deal=0 seed=7 game=0"
    push(game, "102 AS QS KS")
    assert game.to_notation() == f"2 1,-2,3,4 {HANDS} 102 AS QS KS ; deal=0 seed=7 game=0"
    short = Game.from_notation(f"2 1,-2,3,4 {HANDS} 102 AS KS QS")
    assert short.record["hand"].tolist() == game.record["hand"].tolist()


@pytest.mark.small
def test_a_position_keeps_rules_and_the_latch() -> None:
    rules = ANY_CALL.replace(ties="play on", max_deals=20)
    game = play_deal(held(*LATE_LOSER, scores=(299, 290, 120, 120), rules=rules), first=LATE_LOSER_LEADS)
    text = game.to_notation()
    assert " latched=1 rules={" in text and '"ties":"play\\u0020on"' in text
    again = Game.from_notation(text)
    assert again == game and again.rules == rules and again.record["latched"][0] == 1


@pytest.mark.small
def test_a_finished_game_shows_the_scores_before_its_last_deal() -> None:
    game = play_deal(held(*LATE_LOSER, scores=(299, 290, 120, 120)), first=LATE_LOSER_LEADS)
    assert game.to_notation().startswith("0 299,290,120,120 ")
    again = Game.from_notation(game.to_notation())
    assert (again.winners, again.scores) == ((2, 3), (302, 354, 120, 120))
    assert again.record.tobytes() == game.record.tobytes()


KITTY = f"0 0,0,0,0 {HANDS} kitty AD KD QD JH TH 9H AS KS QS AC KC QC"
EACH_OWN = "=ACKCQC/ADKDQD/JHTH9H/ASKSQS"


@pytest.mark.small
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "expected dealer, scores and hands, got 0 tokens"),
        (f"0 0,0,0,0 ; {HANDS}", "after ';' is not one of deal=…, seed=…, game=…, latched=…, rules=…, each once"),
        (f"0 {HANDS}", "expected dealer, scores and hands, got 2 tokens"),
        (f"4 0,0,0,0 {HANDS}", "dealer: '4' is not a whole number from 0 to 3"),
        (f"-1 0,0,0,0 {HANDS}", "dealer: '-1' is not"),
        (f"٣ 0,0,0,0 {HANDS}", "dealer: '٣' is not"),
        (f"² 0,0,0,0 {HANDS}", "dealer: '²' is not"),
        (f"0 0,0,0 {HANDS}", "scores: expected 4 whole numbers"),
        (f"0 0,0,0,300 {HANDS}", "scores: expected 4 whole numbers from -[0-9]+ to 299"),
        (f"0 0,0,0,x {HANDS}", "scores: 'x' is not a whole number from -32000 to 32000"),
        (f"0 0,0,0,--1 {HANDS}", "scores: '--1' is not"),
        (f"0 0,0,0,{'9' * 5000} {HANDS}", "scores: '999.* is not a whole number"),
        ("0 0,0,0,0 A/K/Q/J", "hand 'A' has 1 suits"),
        (f"0 0,0,0,0 {HANDS[:-1]}", "position: hands: seat 3 has 12 cards instead of 13"),
        (f"0 0,0,0,0 {HANDS}/...", "position: hands: expected 4, got 5"),
        (f"0 0,0,0,0 {HANDS} 2C", r"token 4 \(2C\): seat 0: action 0 \(2C\) is illegal, allowed are: 300 210"),
        (f"0 0,0,0,0 {HANDS} hold", r"token 4 \(hold\): .*is illegal"),
        (f"0 0,0,0,0 {HANDS} 300 XX", r"token 5 \(XX\): unknown action 'XX'"),
        (f"0 0,0,0,0 {HANDS} 300 AC", r"token 5 \(AC\): seat 1: action 12 \(AC\) is illegal, allowed are: 8D"),
        (f"0 0,0,0,0 {HANDS} 300 AD AD", r"token 6 \(AD\)"),
        (f"0 0,0,0,0 {HANDS} =2C", r"token 4 \(=2C\): a kitty is dealt out after the twelfth pick"),
        (f"0 0,0,0,0 {HANDS} ; deal", "'deal' after ';' is not one of"),
        (f"0 0,0,0,0 {HANDS} ; deal=1 deal=1", "'deal=1' after ';' is not one of .*, each once"),
        (f"0 0,0,0,0 {HANDS} ; deal=-1", "deal: '-1' is not a whole number from 0 to 9999"),
        (f"0 0,0,0,0 {HANDS} ; deal=10000", "deal: '10000' is not"),
        (f'0 0,0,0,0 {HANDS} ; deal=5 rules={{"max_deals":5}}', "deal: '5' is not a whole number from 0 to 4"),
        (f"0 0,0,0,0 {HANDS} ; seed={2**64}", "seed: '18446744073709551616' is not"),
        (f"0 0,0,0,0 {HANDS} ; seed={'9' * 5000}", "seed: '999.* is not"),
        (f"0 0,0,0,0 {HANDS} ; latched=1", "latched: '1' is not a whole number from 0 to 0"),
        (f"0 0,0,0,0 {HANDS} ; rules=", "rules='': "),
        (f"0 0,0,0,0 {HANDS} ; rules=[]", "expected a mapping of fields, got list"),
        (f'0 0,0,0,0 {HANDS} ; rules={{"target":0}}', "target: 0 is not a whole number"),
        (f'0 0,0,0,0 {HANDS} ; rules={{"target":NaN}}', "target: nan is not"),
        (f'0 0,0,0,0 {HANDS} ; rules={{"target":Infinity}}', "target: inf is not"),
        (f'0 0,0,0,0 {HANDS} ; rules={{"target":1e999}}', "target: inf is not"),
        (f'0 0,0,0,0 {HANDS} ; rules={{"target":{"9" * 5000}}}', "rules='"),
        (f'0 0,0,0,0 {HANDS} ; rules={{"points":{"[" * 9000}}}', "rules='"),
        (f"0 0,0,0,0 {HANDS} ; rules={'[' * 9000 + ']' * 9000}", "rules='"),
        (f'0 0,0,0,0 {HANDS} ; rules={{"calls":{{"a":1}}}}', "calls: expected a list of names"),
        (f'0 0,0,0,0 {HANDS} ; rules={{"points":{{"self":1}}}}', "unknown card 'self'"),
    ],
    ids=lambda value: value.replace(HANDS, "HANDS")[:40],
)
def test_broken_positions(text: str, words: str) -> None:
    with pytest.raises(NotationError, match=words) as caught:
        Game.from_notation(text)
    assert len(str(caught.value)) < 500


@pytest.mark.small
@pytest.mark.parametrize(
    ("kitty", "words"),
    [
        ("=", "token 17 .*expected three for each seat of the twelve cards"),
        (EACH_OWN.replace("QS", "JS"), "expected three for each seat"),
        (EACH_OWN + "/2C", "expected three for each seat"),
        (EACH_OWN.replace("ASKSQS", "ASASQS"), "kitty of seat 3: AS stands there twice"),
        (EACH_OWN.replace("ASKSQS", "ASKSQ"), "kitty of seat 3: unknown card 'Q'"),
        (EACH_OWN.replace("ASKSQS", "ACKSQS"), "expected three for each seat"),
        (f"{EACH_OWN} {EACH_OWN} 2C {EACH_OWN}", "token 20 .*and before play"),
    ],
)
def test_broken_kitties(kitty: str, words: str) -> None:
    assert Game.from_notation(f"{KITTY} {EACH_OWN}").record["hand"][0].tolist() == H
    with pytest.raises(NotationError, match=words):
        Game.from_notation(f"{KITTY} {kitty}")


@pytest.mark.small
def test_tokens_are_counted_from_the_dealer_on_under_a_rotation_too() -> None:
    game = Game(Rules.standard_hearts(), seed=1)
    words = game.to_notation().split()
    assert words[3] == "300"
    with pytest.raises(NotationError, match=r"token 4 \(003\): the rotation's call for this deal is 300"):
        Game.from_notation(" ".join([*words[:3], "003", *words[4:]]))
    with pytest.raises(NotationError, match=r"token 5 \(XX\): unknown action"):
        Game.from_notation(" ".join([*words[:4], "XX", *words[4:]]))
    assert Game.from_notation(" ".join([*words[:3], *words[4:]])) == game  # the call goes without saying


@pytest.mark.small
@pytest.mark.parametrize("text", [None, 5, b"0", [], 1.5])
def test_a_position_that_is_no_text(text: Any) -> None:
    with pytest.raises(NotationError, match="expected text"):
        Game.from_notation(text)


# --- anything at all --------------------------------------------------------------------------------------------

FIELDS = [*Rules().to_dict(), "QS", "hearts"]
TOKENS = st.one_of(
    st.sampled_from([*CARD_NAMES, *CALLS, EACH_OWN, "=", ";", "0 0,0,0,0", HANDS, "deal=3", "latched=1", "rules={}"]),
    st.text(max_size=12),
    st.integers().map(str),
    st.floats().map(str),
    st.sampled_from(["deal=", "seed=", "game=", "latched="]).flatmap(
        lambda name: st.integers().map(f"{name}{{}}".format)
    ),
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=4),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=3),
        max_leaves=6,
    ).map(lambda value: "rules=" + json.dumps(value)),
)


@settings(max_examples=300)
@given(st.lists(TOKENS, max_size=8).map(" ".join))
@example("0 0,0,0,0 " + HANDS + " ; rules=" + '{"a":' * 5000)
def test_any_text_is_a_position_or_a_notation_error(text: str) -> None:
    try:
        game = Game.from_notation(text)
    except NotationError:
        return
    assert Game.from_notation(game.to_notation()) == game


@settings(max_examples=300)
@given(st.lists(TOKENS, max_size=6), st.lists(TOKENS, max_size=3))
def test_a_position_with_anything_added_is_a_position_or_a_notation_error(moves: list[str], facts: list[str]) -> None:
    text = " ".join([f"0 0,0,0,0 {HANDS}", *moves, ";", *facts])
    try:
        game = Game.from_notation(text)
    except NotationError:
        return
    assert Game.from_notation(game.to_notation()) == game


ANYTHING = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=6),
    st.binary(max_size=3),
    st.lists(st.one_of(st.integers(-2, 60), st.sampled_from(CARD_NAMES), st.none()), max_size=14),
)


@settings(max_examples=200)
@given(hands=st.one_of(ANYTHING, st.lists(ANYTHING, max_size=5)), dealer=ANYTHING, scores=ANYTHING, call=ANYTHING)
def test_any_deal_is_a_game_or_a_typed_error(hands: Any, dealer: Any, scores: Any, call: Any) -> None:
    with pytest.raises(DnfhError):
        Game.from_deal(hands, dealer=0)
    for changes in ({"dealer": dealer}, {"scores": scores}, {"call": call}, {"seed": dealer}):
        try:
            Game.from_deal(**changed(**changes))
        except DnfhError:
            continue


@settings(max_examples=200)
@given(ANYTHING)
def test_any_action_is_made_or_a_typed_error_that_changes_nothing(action: Any) -> None:
    game = push(Game.from_deal(H, dealer=0), "300")
    before = game.record.tobytes()
    try:
        game.push(action)
    except DnfhError:
        assert game.record.tobytes() == before and len(game.history) == 1
    else:
        assert len(game.history) == 2
