"""The greedy player: one worked position for each thing it is told, legality under all rules, and that it stays put."""

from __future__ import annotations

import random

import numpy as np
import pytest

from agents.arena import evaluate
from agents.greedy import Greedy
from agents.referee import play_out
from dnfh_env import Batch, Game, Rules, make_agent
from dnfh_env.agent import RandomAgent
from dnfh_env.cards import mask_of
from dnfh_env.engine import CALL, GAME, PICK, PLAY, start_games
from dnfh_env.notation import action_to_string, string_to_action
from dnfh_env.rules import compile_rules
from positions import choice, mask, view_of
from random_rules import random_rules

PLAYS = [
    ("lead the lowest rank", "", "4C 9C 3D 5H QS", "3D"),
    ("of equal ranks the cheapest", "", "4H 4S 9C", "4S"),
    ("duck with the highest that does not take", "TS", "2S 9S JS KS", "9S"),
    ("a queen goes under", "KS", "2S JS QS AS", "QS"),
    ("the jack is kept", "KD", "2D TD JD", "TD"),
    ("above all in the middle: the least of rank and points", "JS", "QS KS AS", "KS"),
    ("another suit does not count as higher", "TS AD", "2S 9S JS", "9S"),
    ("take what is free, highest first", "3C 5C 4C", "2C 9C KC", "KC"),
    ("but not with a queen", "3C 5C 4C", "2C QC", "2C"),
    ("though with an ace beside it", "3C 5C 4C", "2C QC AC", "AC"),
    ("nobody takes points for nothing", "3H 5H 4H", "2H KH", "2H"),
    ("last and above all: out with the highest that is cheap", "3C QS 4C", "5C QC KC", "KC"),
    ("win the jack", "3D 5D JD", "2D KD", "KD"),
    ("with some hearts in it too", "3D JD 5H", "2D KD", "KD"),
    ("but not with a queen in it", "3D JD QH", "2D KD", "2D"),
    ("cash one's own", "3D 5D 4D", "2D JD KD", "JD"),
    ("not last: duck", "3D JD", "2D KD", "2D"),
    ("void: throw the dearest", "3D", "AC 2H QS AS", "QS"),
    ("void: rank counts too", "3D", "2C 2H AS", "AS"),
    ("void: the jack last", "3C", "2H JD 2S", "2H"),
]


@pytest.mark.small
@pytest.mark.parametrize(("table", "hand", "expected"), [case[1:] for case in PLAYS], ids=[case[0] for case in PLAYS])
def test_plays(table: str, hand: str, expected: str) -> None:
    assert choice(Greedy(), view_of(PLAY, mask(hand), table)) == expected


@pytest.mark.small
def test_picks_the_three_most_dangerous() -> None:
    held = ["QS", "QH", "AH", "KH", "AS", "KS", "JD", "TC", "2C"]
    picked = []
    while len(picked) < 6:
        picked.append(choice(Greedy(), view_of(PICK, mask(" ".join(held)))))
        held.remove(picked[-1])
    assert picked == ["QS", "QH", "AH", "AS", "KH", "KS"]


@pytest.mark.small
def test_calls_the_first_that_is_allowed() -> None:
    for calls in (Rules().calls, ("003", "kitty"), ("hold",)):
        legal = mask_of(map(string_to_action, calls))
        assert choice(Greedy(), view_of(CALL, legal)) == calls[0]


@pytest.mark.small
def test_points_come_from_the_rules() -> None:
    hearts = Rules.standard_hearts()
    assert choice(Greedy(hearts), view_of(PLAY, mask("2C QC"), "3C 5C 4C")) == "QC"
    assert choice(Greedy(hearts), view_of(PLAY, mask("2D JD KD"), "3D 5D 4D")) == "KD"
    assert choice(Greedy(hearts), view_of(PICK, mask("QC KC"))) == "KC"


@pytest.mark.parametrize("seed", range(40))
def test_is_legal_under_random_rules(seed: int) -> None:
    rules = random_rules(random.Random(seed))
    games = np.zeros(8, GAME)
    start_games(games, compile_rules(rules), np.full(8, seed, np.uint64), np.arange(8, dtype=np.uint64))
    lineup = np.array([[0, 1, 1, 1], [0, 0, 0, 0]] * 4)
    play_out(games, compile_rules(rules), lineup, [("greedy", make_agent("greedy", rules)), ("random", RandomAgent())])


@pytest.mark.small
def test_ignores_seeds_and_company() -> None:
    batch = Batch(16, seed=3)
    batch.play("random", 30)
    views, agent = batch.views(), Greedy()
    before = views.copy()
    together = agent.act(views, batch.keys())
    alone = [int(agent.act(views[i : i + 1], np.zeros(1, np.uint64))[0]) for i in range(16)]
    assert together.tolist() == alone
    assert agent.act(views[::-1], batch.keys()).tolist() == alone[::-1]
    assert views.tobytes() == before.tobytes()
    assert together.dtype == np.int64


FIRST_DEAL = (
    "300 QH AH JH QD QC KS QS AS AD AC KH TS "
    "2C KD 6C 5C 7D JD 6D 8D 2S 5S 3S KS 7C 3C 4C QH 9S 8S TS JS 2H 9H 7H 4H 9D AD 5D 4D "
    "4S AC 6S QD 3H QC 5H KH 2D AH TD QS TC AS 9C JH JC 7S 8C TH KC 6H 3D 8H"
)
FINAL_SCORES = (318, 205, 152, 263)


def test_is_frozen() -> None:
    """What four of it play is part of its name: if this changes, it is not greedy-v1 any more."""
    game = Game(seed=1)
    while game.deal < 1:
        game.push(game.choose("greedy-v1"))
    first = " ".join(action_to_string(action) for action in game.history)
    assert first == FIRST_DEAL
    while not game.is_over:
        game.push(game.choose("greedy-v1"))
    assert game.scores == FINAL_SCORES


def test_is_as_strong_as_it_is_said_to_be() -> None:
    """docs/your_own_agent.md has the figures; these are other deals."""
    result = evaluate("greedy-v1", "random", deals=400, games=60, seed=11)
    assert result.edge and result.card_points and result.win_share
    assert 19.5 < result.edge.mean < 21.5
    assert 0.4 < result.card_points.mean < 1.6
    assert result.win_share.mean > 0.88
