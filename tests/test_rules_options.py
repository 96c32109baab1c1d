"""`Rules` as data: what is allowed, what is refused and in which words, and the ways in and out."""

from __future__ import annotations

import copy
import json
import pickle
import random
from typing import Any

import numpy as np
import pytest

from dnfh_env.cards import CARD_NAMES, card_id, names_in
from dnfh_env.errors import RulesError
from dnfh_env.rules import CALLS, Rules, card_points, compile_rules
from random_rules import random_rules

SIXTEEN = ("300",) * 16


def test_defaults_are_the_game() -> None:
    rules = Rules()
    assert names_in(rules.scoring_cards) == ["QC", "JD", "QD", *(rank + "H" for rank in "23456789TJQKA"), "QS"]
    assert rules.shot_cards == rules.scoring_cards
    assert (rules.deal_total, rules.positive_total, rules.target, rules.max_deals) == (67, 77, 300, None)
    assert rules.calls == CALLS[:-1] and rules.call_by == "dealer"


def test_presets_are_data() -> None:
    standard, omnibus = Rules.standard_hearts(), Rules.omnibus()
    assert (standard.deal_total, omnibus.deal_total) == (26, 16)
    assert (standard.positive_total, omnibus.positive_total) == (26, 26)
    assert standard.shot_cards == standard.scoring_cards == omnibus.shot_cards
    assert names_in(omnibus.scoring_cards ^ omnibus.shot_cards) == ["JD"]
    assert standard.calls == ("300", "003", "030", "hold")
    assert Rules.standard_hearts(target=50) == standard.replace(target=50)
    assert Rules.omnibus(shot="none").shot == "none"


# Values that no field takes, among them some that cannot be hashed, compared or printed.
STRANGE = [None, "", "nonsense", 1.5, float("nan"), [], {}, set(), object(), b"game", np.arange(3), 10**5000, lambda: 0]
FIELDS = [
    "points",
    "calls",
    "call_by",
    "first_lead",
    "first_trick",
    "hearts_broken_by",
    "hearts_with_qs",
    "shot",
    "shot_needs_jack",
    "target",
    "ties",
    "max_deals",
    "table_dealer",
    "leaver",
    "empty_line",
]


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("number", range(len(STRANGE)))
def test_a_strange_value_is_a_rules_error(field: str, number: int) -> None:
    value = STRANGE[number]
    if field == "max_deals" and value is None:
        assert Rules(max_deals=value) == Rules()
        return
    with pytest.raises(RulesError, match=field):
        Rules(**{field: value})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"target": 0}, "target: 0 is not a whole number from 1 to 16000"),
        ({"target": -5}, "target: -5 is not"),
        ({"target": 16_001}, "from 1 to 16000"),
        ({"target": True}, "target: True is not"),
        ({"target": "300"}, "target: '300' is not"),
        ({"max_deals": 0}, "max_deals: 0 is not a whole number from 1 to 1000"),
        ({"max_deals": 1001}, "max_deals: 1001"),
        ({"shot": "win"}, "shot: 'win' is not one of 'game', 'others', 'shooter', 'none'"),
        ({"hearts_with_qs": 1}, "hearts_with_qs: 1 is not True or False"),
        ({"shot_needs_jack": np.bool_(True)}, "shot_needs_jack: .* is not True or False"),
        ({"calls": "300"}, "calls: expected at least one of 300, .* got '300'"),
        ({"calls": ()}, r"calls: expected at least one of .*hold, got \(\)"),
        ({"calls": ("301",)}, "calls: '301' is not one of '300', .*'hold'"),
        ({"calls": (300,)}, "calls: 300 is not one of"),
        ({"calls": (["300"],)}, r"calls: \['300'\] is not one of"),
        ({"calls": ("300", "300")}, "a call is named twice in .*; only a rotation may repeat one"),
        ({"calls": (*SIXTEEN, "300"), "call_by": "rotation"}, "a rotation has at most 16 calls, got 17"),
        ({"points": (1,) * 51}, "points: expected 52 whole numbers"),
        ({"points": (1.0,) * 52}, "points of 2C: 1.0 is not a whole number from -100 to 100"),
        ({"points": card_points(QS=101)}, "points of QS: 101 is not a whole number from -100 to 100"),
        ({"points": card_points(QS=None)}, "points of QS: None is not"),
        ({"points": (0,) * 52, "max_deals": 5}, "there is nothing to shoot; set shot to 'none'"),
        ({"points": card_points(hearts=0, JD=5), "shot_needs_jack": False}, "nothing to shoot"),
        ({"points": card_points(hearts=0, QS=-1)}, "points sum to -1, so a game might never end; .*max_deals"),
        ({"points": card_points(QS=-13)}, "points sum to 0, so a game might never end"),
        ({"shot": "shooter"}, "'shooter' lowers the scores, so a game might never end; set max_deals"),
        ({"ties": "play on"}, "ties: 'play on' might never end; set max_deals"),
        ({"target": 16_000}, "scores might leave ±16000"),
        ({"points": (100,) * 52, "max_deals": 2, "ties": "play on"}, "might leave ±16000 in the 2 deals"),
    ],
)
def test_what_is_refused_and_in_which_words(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(RulesError, match=words):
        Rules(**changes)
    with pytest.raises(RulesError, match=words):
        Rules().replace(**changes)


def test_a_long_value_does_not_flood_the_message() -> None:
    with pytest.raises(RulesError) as caught:
        Rules(points=list(range(10_000)))
    assert len(str(caught.value)) < 300


def test_what_is_just_allowed() -> None:
    for changes in (
        {"target": 1},
        {"max_deals": 1000, "target": 1},
        {"calls": SIXTEEN, "call_by": "rotation"},
        {"calls": ("hold",)},
        {"points": (0,) * 52, "shot": "none", "max_deals": 5},
        {"points": card_points(hearts=0, QS=1), "target": 20},
        {"shot": "shooter", "max_deals": 1},
        {"ties": "play on", "max_deals": 1},
    ):
        try:
            Rules(**changes)
        except RulesError as error:
            pytest.fail(f"{changes}: {error}")


def test_numbers_of_numpy_become_plain() -> None:
    rules = Rules(target=np.int64(200), max_deals=np.int32(9), points=tuple(np.array(Rules().points)))
    assert rules == Rules(target=200, max_deals=9) and rules.digest() == Rules(target=200, max_deals=9).digest()
    assert [type(value) for value in (rules.target, rules.max_deals, rules.points[0])] == [int] * 3


def test_calls_are_put_in_order_for_a_dealer_and_kept_for_a_rotation() -> None:
    assert Rules(calls=["kitty", "300", "003"]).calls == ("300", "003", "kitty")
    assert Rules(calls=["kitty", "300", "kitty"], call_by="rotation").calls == ("kitty", "300", "kitty")


def test_card_points() -> None:
    points = card_points(hearts=2, QS=13, JD=-10)
    expected = {"QS": 13, "JD": -10}
    assert all(points[card_id(name)] == expected.get(name, 2 * (name[1] == "H")) for name in CARD_NAMES)
    with pytest.raises(RulesError, match="points: unknown card 'XX'"):
        card_points(XX=3)


# --- ways in and out --------------------------------------------------------------------------------------------

SAMPLES = [
    Rules(),
    Rules.standard_hearts(),
    Rules.omnibus(),
    Rules(ties="play on", max_deals=7, hearts_with_qs=True),
    *(random_rules(random.Random(number)) for number in range(40)),
]


@pytest.mark.parametrize("number", range(len(SAMPLES)))
def test_round_trips(number: int) -> None:
    rules = SAMPLES[number]
    text = json.dumps(rules.to_dict())
    for same in (
        Rules.from_dict(json.loads(text)),
        eval(repr(rules)),
        pickle.loads(pickle.dumps(rules)),
        copy.deepcopy(rules),
        rules.replace(),
    ):
        assert same == rules and hash(same) == hash(rules) and same.digest() == rules.digest()


def test_digests_tell_rules_apart_and_are_pinned() -> None:
    digests = {rules.digest() for rules in SAMPLES}
    assert len(digests) == len(set(SAMPLES))
    assert Rules().digest() == "b1ffec45a0b999a3"
    assert Rules.standard_hearts().digest() == "8084a5d00e995cfc"
    assert Rules.omnibus().digest() == "2a84e19ab6785829"


def test_repr_shows_what_differs() -> None:
    assert repr(Rules()) == "Rules()"
    assert repr(Rules(target=100, hearts_with_qs=True)) == "Rules(hearts_with_qs=True, target=100)"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (None, "expected a mapping of fields, got NoneType"),
        ([], "expected a mapping"),
        ({"goal": 1}, "unknown field 'goal', the fields are call_by, calls, .*ties"),
        ({3: 1, "goal": 2}, "unknown field 3"),
        ({None: 1}, "unknown field None"),
        ({"points": [1] * 52}, "points: expected card names with points"),
        ({"points": {1: 2}}, "points: expected card names with points"),
        ({"points": {"XX": 2}}, "points: unknown card 'XX'"),
        ({"points": {"QS": "many"}}, "points of QS: 'many' is not"),
        ({"points": {"QS": float("inf")}}, "points of QS: inf is not"),
        ({"calls": "300"}, "calls: expected a list of names"),
        ({"calls": [None]}, "calls: None is not one of"),
        ({"target": float("nan")}, "target: nan is not"),
        ({"target": None}, "target: None is not"),
    ],
)
def test_what_from_dict_refuses(fields: Any, words: str) -> None:
    with pytest.raises(RulesError, match=words):
        Rules.from_dict(fields)


def test_from_dict_keeps_defaults() -> None:
    assert Rules.from_dict({}) == Rules()
    assert Rules.from_dict({"target": 100}) == Rules(target=100)
    assert Rules.from_dict({"points": {"QS": 5}}).points == card_points(hearts=0, QS=5)


def test_rules_are_frozen() -> None:
    with pytest.raises(AttributeError):
        Rules().target = 5  # type: ignore[misc]
    assert compile_rules(Rules()) is compile_rules(Rules())
