"""`Game`: forth and back, copies, ways in and out, and records that hold against any change."""

from __future__ import annotations

import copy
import json
import pickle
import random
from typing import Any

import numpy as np
import pytest
from numba import config

from dnfh_env.cards import CARD_NAMES
from dnfh_env.engine import GAME
from dnfh_env.errors import ArgumentError, DealError, DnfhError, IllegalActionError, NotationError
from dnfh_env.game import PHASES, Game, _checksum, _dump
from dnfh_env.notation import decide
from dnfh_env.rules import CALLS, RULES, Rules
from dnfh_env.view import VIEW
from positions import ALL_CLUBS, ANY_CALL, LATE_LOSER, LATE_LOSER_LEADS, deal, decisions, held, play_deal, push

SAMPLES = {
    "default": Rules(target=100),
    "kitty": Rules(calls=("kitty",), target=60),
    "standard": Rules.standard_hearts(target=40),
    "odd": Rules(calls=CALLS, shot="shooter", ties="play on", target=40, max_deals=4),
}
HUGE = pytest.param(10**5000, id="huge")
EACH_RULES = pytest.mark.parametrize("name", SAMPLES)


def finished(rules: Rules, seed: int) -> Game:
    """A random game played to its end."""
    for game in decisions(Game(rules, seed=seed), random.Random(seed)):
        last = game
    return last


def moments(rules: Rules, seed: int) -> list[Game]:
    """Copies of a random game in every phase, and in mid-trick."""
    rng = random.Random(seed)
    found: dict[Any, Game] = {}
    for game in decisions(Game(rules, seed=seed), rng):
        at = (game.phase, min(game.deal, 1), int(game.record["num_picks"][0]), len(game.trick), bool(game.points[0]))
        found.setdefault(at, game.copy())
    return list(found.values())


# --- where it stands --------------------------------------------------------------------------------------------


@pytest.mark.small
def test_the_first_decision() -> None:
    game = Game()
    assert game == Game(Rules(), seed=0, game=0) and game.rules == Rules()
    assert (game.phase, game.deal, game.call, game.scores, game.points) == ("call", 0, None, (0, 0, 0, 0), (0, 0, 0, 0))
    assert (game.seat, game.is_over, game.truncated, game.winners, game.shooter) == (
        game.dealer,
        False,
        False,
        (),
        None,
    )
    assert (game.trick, game.history) == ([], [])


@pytest.mark.small
def test_facts_of_a_position() -> None:
    game = push(held(*LATE_LOSER, scores=(1, 2, 3, 4), dealer=2), "2C AC QC 3C AD")
    assert (game.phase, game.seat, game.dealer, game.call) == ("play", 1, 2, "hold")
    assert game.trick == [(0, "AD")] and game.points == (13, 0, 0, 0) and game.scores == (1, 2, 3, 4)
    assert game.hands[1][:2] == ("JD", "4S") and len(game.hands[0]) == 11
    assert [game.action_to_string(action) for action in game.legal_actions()] == ["JD"]
    assert game.history == [game.string_to_action(name) for name in ("2C", "AC", "QC", "3C", "AD")]


@pytest.mark.small
def test_when_it_is_over_nobody_moves() -> None:
    game = play_deal(held(*LATE_LOSER, scores=(297, 0, 0, 0)), first=LATE_LOSER_LEADS)
    assert (game.phase, game.seat, game.legal_actions(), game.is_over) == ("over", None, [], True)
    assert game.points == (3, 64, 0, 0) and all(hand == () for hand in game.hands)
    for action in (0, 52, "QS", None):
        with pytest.raises(IllegalActionError, match="the game is over, nobody is to move"):
            game.push(action)  # type: ignore[arg-type]
    assert all(game.view(seat).legal == 0 for seat in range(4))


@pytest.mark.small
def test_views_by_seat() -> None:
    game = Game.from_deal(deal(*ALL_CLUBS), dealer=1)
    assert game.view().tobytes() == game.view(1).tobytes() != game.view(2).tobytes()
    views = game.views([3, 1, 1])
    assert views.dtype == VIEW and views.dtype.type is np.record and views.shape == (3,)
    assert [view.tobytes() for view in views] == [game.view(seat).tobytes() for seat in (3, 1, 1)]
    assert game.views([]).shape == (0,)
    for ask in (game.view, game.observe, lambda seat: game.views([seat])):
        for seat in (4, -1, 1.0, "1", True):
            with pytest.raises(DealError, match=r"seat: .* is not a seat, 0 to 3"):
                ask(seat)


@pytest.mark.small
def test_the_record_is_a_copy() -> None:
    game = Game(seed=1)
    game.record["hand"] = 0
    assert len(game.hands[0]) == 13
    assert (game.record["seed"][0], game.record["game"][0]) == (1, 0)


@pytest.mark.small
def test_what_is_given_out_is_nobody_elses() -> None:
    game = Game(seed=1)
    for _ in range(3):
        legal, record, history = game.legal_actions(), game.record, list(game.history)
        before = (list(legal), record.tobytes(), game.views([0, 0])[0].tobytes())
        game.legal_actions().clear()
        game.record["hand"] = game.views([0, 0])["hand"] = 0
        assert (game.legal_actions(), game.record.tobytes(), game.views([0, 0])[1].tobytes()) == before
        game.push(legal[-1])
        assert (legal, record.tobytes()) == before[:2] and game.history == [*history, legal[-1]]
        game.push(game.legal_actions()[0])
        game.pop()


@pytest.mark.skipif(config.DISABLE_JIT, reason="nothing is compiled")
def test_actions_of_every_kind_go_through_one_kernel() -> None:
    game = push(Game(seed=1), "300")
    for action in (-1, 64, 2**63, 2**64, np.uint64(2**63), np.int8(-1), True, 1.0, None):
        with pytest.raises(IllegalActionError):
            game.push(action)
    for kind in (int, np.uint8, np.int32, np.uint64, game.action_to_string):
        game.push(kind(game.legal_actions()[0]))
    assert len(decide.signatures) == 1


@pytest.mark.small
@pytest.mark.parametrize("name", ["seed", "game"])
@pytest.mark.parametrize("value", [-1, 2**64, 1.0, None, "1", True, HUGE])
def test_seeds_that_are_none(name: str, value: Any) -> None:
    with pytest.raises(ArgumentError, match=f"{name}: .* is not a whole number from 0 to "):
        Game(**{name: value})


# --- forth and back ---------------------------------------------------------------------------------------------


@pytest.mark.small
@EACH_RULES
def test_pop_takes_back_every_push(name: str) -> None:
    game, before = Game(SAMPLES[name], seed=1), []
    for moment in decisions(game, random.Random(1)):
        before.append(moment.record.tobytes())
    actions = list(game.history)
    for record, action in zip(before[-2::-1], reversed(actions), strict=True):
        assert game.pop() == action and game.record.tobytes() == record
    with pytest.raises(IndexError, match="pop: no action has been pushed"):
        game.pop()
    assert game.history == []
    for record, action in zip(before[1:], actions, strict=True):
        game.push(action)
        assert game.record.tobytes() == record


@pytest.mark.small
def test_names_and_ids_push_the_same() -> None:
    one, two = (Game.from_deal(deal(*ALL_CLUBS), dealer=0) for _ in range(2))
    for name, action in (("102", 57), ("AD", 25), ("KD", np.int64(24)), ("JD", np.uint8(22))):
        one.push(name)
        two.push(action)  # type: ignore[arg-type]
    assert one == two and one.history == two.history and {type(action) for action in two.history} == {int}


@pytest.mark.small
@pytest.mark.parametrize("action", [-1, 0, 64, 2**70, HUGE, None, 1.0, 52.0, True, "XX", "", "2C", [52], b"300"])
def test_a_refused_action_changes_nothing(action: Any) -> None:
    """Seat 0 is to call; 2C, though seat 0 holds it, is no call."""
    game = Game.from_deal(deal(*ALL_CLUBS), dealer=0)
    push(game, "300")
    game.pop()
    before = (game.record.tobytes(), list(game.history), game.to_json())
    with pytest.raises(DnfhError):
        game.push(action)
    assert (game.record.tobytes(), list(game.history), game.to_json()) == before


@pytest.mark.small
def test_an_illegal_action_names_the_seat_the_action_and_what_is_allowed() -> None:
    game = push(held(*LATE_LOSER), "2C AC")
    with pytest.raises(IllegalActionError) as caught:
        game.push("JD")
    assert str(caught.value) == "seat 1: action 22 (JD) is illegal, allowed are: QC"
    with pytest.raises(IllegalActionError, match=r"seat 1: action None is illegal, allowed are: QC"):
        game.push(None)  # type: ignore[arg-type]
    with pytest.raises(NotationError, match="unknown action 'Q'"):
        game.push("Q")


# --- copies -----------------------------------------------------------------------------------------------------


WAYS = {
    "copy": Game.copy,
    "copy.copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda game: pickle.loads(pickle.dumps(game)),
}


@pytest.mark.small
@pytest.mark.parametrize("way", WAYS)
@EACH_RULES
def test_copies_are_equal_and_independent(name: str, way: str) -> None:
    for game in moments(SAMPLES[name], seed=2):
        before, history = game.record.tobytes(), list(game.history)
        twin = WAYS[way](game)
        assert twin == game and twin.record.tobytes() == before and twin.history == history
        assert twin.rules == game.rules and twin.to_json() == game.to_json()
        while not twin.is_over and len(twin.history) < len(history) + 5:
            twin.push(twin.legal_actions()[-1])
        while len(twin.history) > max(len(history) - 5, 0):
            twin.pop()
        if not twin.is_over:
            twin.push(twin.legal_actions()[0])
        assert game.record.tobytes() == before and game.history == history


@pytest.mark.small
@pytest.mark.parametrize("way", WAYS)
def test_kernels_know_the_dtype_of_a_copy_by_its_identity(way: str) -> None:
    """An equal one that is not the same takes them three times as long."""
    twin = WAYS[way](push(Game(seed=1), "300"))
    assert twin._record.dtype is GAME and twin._compiled.dtype is RULES
    twin.pop()
    assert twin._record.dtype is twin.record.dtype is GAME


@pytest.mark.small
def test_a_copy_keeps_its_past_whatever_the_original_does() -> None:
    game = push(Game.from_deal(deal(*ALL_CLUBS), dealer=0), "300")
    twin = game.copy()
    game.pop()
    push(game, "kitty AD")
    assert twin.pop() == CALLS.index("300") + 52
    assert (twin.phase, twin.call, twin.legal_actions()) == ("call", None, list(range(52, 63)))


@pytest.mark.small
def test_equality() -> None:
    game = Game(seed=1)
    assert game == Game(seed=1) and game != Game(seed=2) and game != Game(seed=1, game=1)
    assert game != Game(Rules(target=100), seed=1) and game != "game" and game != None  # noqa: E711
    moved = Game(seed=1)
    moved.push("300")
    assert moved != game
    moved.pop()
    assert moved == game
    with pytest.raises(TypeError, match="unhashable"):
        hash(game)


# --- from a deal ------------------------------------------------------------------------------------------------


@pytest.mark.small
def test_from_a_deal() -> None:
    hands = deal(*ALL_CLUBS)
    game = Game.from_deal(hands, dealer=3, scores=(9, 8, 7, -6), call="021", seed=5)
    assert (game.phase, game.seat, game.call, game.dealer, game.scores) == ("pick", 0, "021", 3, (9, 8, 7, -6))
    assert game.history == [] and game.record["hand"][0].tolist() == hands
    forms = [ALL_CLUBS[0], game.hands[1], [CARD_NAMES.index(card) for card in game.hands[2]], hands[3]]
    assert Game.from_deal(forms, dealer=3, scores=(9, 8, 7, -6), call="021", seed=5) == game
    assert Game.from_deal(np.array(hands, np.uint64), dealer=np.int8(3)).hands == game.hands
    rotation = Game.from_deal(hands, dealer=1, rules=Rules.standard_hearts())
    assert (rotation.call, rotation.seat) == ("300", 2)


@pytest.mark.small
def test_later_deals_and_kitties_follow_from_the_seed() -> None:
    def after(seed: int) -> list[Any]:
        game = Game.from_deal(deal(*LATE_LOSER), dealer=0, call="kitty", seed=seed)
        found = []
        while game.deal == 0 and not game.is_over:
            game.push(game.legal_actions()[0])
            if len(game.history) == 12:
                found.append(game.hands)
        return [*found, game.deal, game.hands]

    assert after(1) == after(1)
    (kitty, number, hands), (other_kitty, other_number, other_hands) = after(1), after(2)
    assert kitty != other_kitty and number == other_number == 1 and hands != other_hands


# --- text -------------------------------------------------------------------------------------------------------


@pytest.mark.small
@EACH_RULES
def test_repr_evaluates_to_the_same_position(name: str) -> None:
    for game in moments(SAMPLES[name], seed=3):
        same = eval(repr(game))
        assert same == game and repr(same) == repr(game) and same.history == []
        assert same.legal_actions() == game.legal_actions() and same.rules == game.rules


@pytest.mark.small
@EACH_RULES
def test_print_shows_the_table(name: str) -> None:
    phases = set()
    for game in moments(SAMPLES[name], seed=3):
        text = str(game)
        phases.add(game.phase)
        assert game.phase in text and f"deal {game.deal + 1}" in text
        assert all(str(score) in text for score in game.scores)
    assert phases >= {"play", "over"}


@pytest.mark.small
@EACH_RULES
def test_json_there_and_back_in_every_phase(name: str) -> None:
    phases = set()
    for game in moments(SAMPLES[name], seed=4):
        text = game.to_json()
        same = Game.from_json(text)
        phases.add(game.phase)
        assert same == game and same.history == game.history and same.to_json() == text and "\n" not in text
        assert same.record.tobytes() == game.record.tobytes()
        if game.history:
            game.pop()
            assert same.pop() is not None and same.record.tobytes() == game.record.tobytes()
    assert phases >= {"pick", "play", "over"} and phases <= set(PHASES)


@pytest.mark.small
def test_json_from_the_middle_of_a_deal() -> None:
    game = Game.from_notation(push(held(*LATE_LOSER), "2C AC QC").to_notation())
    assert Game.from_json(game.to_json()) == game
    push(game, "3C AD")
    same = Game.from_json(game.to_json())
    assert same == game and len(same.history) == 2


def test_a_record_with_a_byte_changed_anywhere_is_refused() -> None:
    """Each byte in turn replaced, dropped, doubled, and exchanged with the next."""
    text = push(Game(Rules(target=50, hearts_with_qs=True), seed=6), "300").to_json()
    rng = random.Random(1)
    for k in range(len(text)):
        others = {*rng.sample('0123456789abcdefQS"{}:, ', 3), chr(ord(text[k]) ^ 1), chr(ord(text[k]) ^ 32), "\0", "é"}
        changed = [text[:k] + other + text[k + 1 :] for other in others - {text[k]}]
        changed += [text[:k] + text[k + 1 :], text[:k] + text[k] + text[k:]]
        if k + 1 < len(text) and text[k] != text[k + 1]:
            changed.append(text[:k] + text[k + 1] + text[k] + text[k + 2 :])
        for broken in changed:
            with pytest.raises(NotationError):
                Game.from_json(broken)


def test_a_finished_record_with_a_byte_changed_is_refused() -> None:
    text = finished(SAMPLES["kitty"], seed=1).to_json()
    rng = random.Random(2)
    for k in rng.sample(range(len(text)), 300):
        with pytest.raises(NotationError):
            Game.from_json(text[:k] + chr(ord(text[k]) ^ 1 << rng.randrange(6)) + text[k + 1 :])


def forged(**changes: Any) -> str:
    """A record whose checksum fits what it says."""
    body = json.loads(push(Game(seed=1), "300").to_json())
    body.pop("sha256")
    body |= changes
    return _dump(body | {"sha256": _checksum(body)})


@pytest.mark.small
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not a line of JSON"),
        ("{", "not a line of JSON"),
        (None, "not a line of JSON"),
        (b"\xff", "not a line of JSON"),
        ("[" * 100_000, "not a line of JSON"),
        ("9" * 5000, "not a line of JSON"),
        ("[]", "expected the fields format, rules, start, actions, sha256"),
        ("{}", "expected the fields"),
        ("NaN", "expected the fields"),
        (forged(format="dnfh-game-2"), "format 'dnfh-game-2' is not 'dnfh-game-1'"),
        (forged(start=5), "start and actions are not text"),
        (forged(actions=["300"]), "start and actions are not text"),
        (forged(actions="kitty XX"), r"action 1 \(XX\): unknown action"),
        (forged(actions="hold"), r"action 0 \(hold\): seat .*is illegal"),
        (forged(rules={}), "the rules and those of the start differ"),
        (forged(rules=None), "the rules and those of the start differ"),
        (forged(rules=Rules(target=5).to_dict()), "the rules and those of the start differ"),
        (forged(start="0 0,0,0,0"), "expected dealer, scores and hands"),
        (forged(more=1), "expected the fields"),
        (forged() + forged(), "not a line of JSON"),
        (forged().replace(":", ": ", 1), "the checksum does not fit"),
        (forged().replace('"format"', '"\\u0066ormat"'), "the checksum does not fit"),
        (forged().replace('"format":', '"format":"x","format":'), "the checksum does not fit"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_records_that_are_none(text: Any, words: str) -> None:
    with pytest.raises(NotationError, match=words):
        Game.from_json(text)


@pytest.mark.small
def test_a_record_may_end_its_line() -> None:
    game = push(Game(seed=1), "300")
    assert Game.from_json(game.to_json() + "\n") == game == Game.from_json(forged())
    assert game.rules != ANY_CALL
