"""Search by playouts: what is tried, how candidates are raced, and answers that hang on the view and the key alone."""

from __future__ import annotations

import hashlib
import itertools
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from agents import heuristic, worlds
from agents.beliefs import BeliefError
from agents.heuristic import Heuristic, Parameters, compile_parameters
from agents.search.base import Search
from agents.search.candidates import POOL, list_candidates, list_pool, new_plans
from agents.search.equal import alike_cards, equal_cards
from agents.search.pimc import PIMC
from agents.search.playout import pick_again, search_rules
from agents.search.race import behind, best_of, drop_losers, winner
from agents.suites import load_suite, run_suite
from dnfh_env import Batch, Game, Rules, make_agent
from dnfh_env.agent import RandomAgent, ask
from dnfh_env.cards import cards_in
from dnfh_env.engine import EACH, GAME, PICK, pick_direction
from dnfh_env.errors import AgentError, ArgumentError
from dnfh_env.rules import FIRST_CALL, KITTY, SPLITS, compile_rules
from dnfh_env.view import VIEW, views_of
from random_rules import random_rules
from test_hidden import moments, resampled

NO_TABLE = Rules(target=77)
"""Rules without a table of equity."""
QUICK = {"worlds": 4, "spread": 2, "pool": 4, "threads": 1}


def choices(rules: Rules, count: int, seed: int) -> Iterator[Game]:
    """Decisions with a choice in random play, calls and picks more often than plays."""
    rng = random.Random(seed)
    found = (game for _ in itertools.count() for game in moments(rules, 0.1, rng) if len(game.legal_actions()) > 1)
    return itertools.islice(found, count)


def view_of(game: Game) -> Any:
    return views_of(game.record, compile_rules(game.rules), np.array([game.seat]))


# --- what is tried ----------------------------------------------------------------------------------------------


def candidates(view: Any, rules: Rules, pool: int = 6) -> list[tuple[int, ...]]:
    plans = new_plans()
    parameters = compile_parameters(Parameters(), rules)
    count = list_candidates(
        view[0], compile_rules(rules)[0], parameters[0], alike_cards(rules), pool, np.zeros(1, VIEW), plans
    )
    left = EACH - int(view["num_picks"][0]) % EACH if view["phase"][0] == PICK else 1
    return [tuple(map(int, plan[:left])) for plan in plans[:count]]


def test_one_of_equal_cards_is_tried_and_the_rule_players_first() -> None:
    rules = Rules()
    for game in choices(rules, 150, seed=1):
        if game.phase == "pick":
            continue
        view = view_of(game)
        tried = [plan[0] for plan in candidates(view, rules)]
        assert tried[0] == Heuristic().act(view, np.zeros(1, np.uint64))[0]
        assert len(set(tried)) == len(tried) and set(tried) <= set(game.legal_actions())
        if game.phase == "call":
            assert len(tried) == len(game.legal_actions())
            continue
        v = view[0]
        taken = int(np.bitwise_or.reduce(v.taken))
        table = int(np.bitwise_or.reduce(v.played)) & ~taken
        gone = np.uint64(taken | table & ~(1 << int(v.best_card) if v.best_card < 52 else 0))
        classes = [cards_in(int(equal_cards(card, v.hand, gone, alike_cards(rules)))) for card in tried]
        assert sorted(card for cards in classes for card in cards if card in game.legal_actions()) == sorted(
            game.legal_actions()
        )


def passes(view: Any) -> Iterator[tuple[tuple[int, ...], ...]]:
    """All that can be given to left, across and right, of the whole hand."""
    v = view[0]
    left = EACH - int(v.num_picks) % EACH
    places = [int(pick_direction(v.call, int(v.num_picks) + k)) for k in range(left)]
    for cards in itertools.permutations(cards_in(int(v.hand)), left):
        yield tuple(tuple(sorted(c for c, p in zip(cards, places, strict=True) if p == d)) for d in range(3))


@pytest.mark.parametrize("call", ["300", "021", "111", "kitty"])
def test_whole_passes_each_once(call: str) -> None:
    rules = Rules(calls=(call,))
    seen = set()
    for game in choices(rules, 30, seed=2):
        if game.phase != "pick":
            continue
        view = view_of(game)
        left = EACH - int(view["num_picks"][0]) % EACH
        seen.add(left)
        places = [int(pick_direction(view["call"][0], int(view["num_picks"][0]) + k)) for k in range(left)]
        given = [
            tuple(tuple(sorted(c for c, p in zip(plan, places, strict=True) if p == d)) for d in range(3))
            for plan in candidates(view, rules, POOL)
        ]
        assert len(set(given)) == len(given) and set(given) <= set(passes(view))
        assert candidates(view, rules, 0)[0] == tuple(rule_picks(game, left))
    assert seen == {1, 2, 3}


def rule_picks(game: Game, left: int) -> Iterator[int]:
    """What the rule player picks one after the other."""
    game = game.copy()
    for _ in range(left):
        action = int(Heuristic(rules=game.rules).act(view_of(game), np.zeros(1, np.uint64))[0])
        game.push(action)
        yield action


def kind_of(plan: tuple[int, ...], places: list[int], classes: dict[int, int]) -> Any:
    """How many cards of which class go where."""
    return frozenset(Counter((classes[card], place) for card, place in zip(plan, places, strict=True)).items())


@pytest.mark.parametrize("call", ["300", "021", "111"])
def test_all_passes_of_the_pool_but_for_equal_cards(call: str) -> None:
    """Of passes that give each seat as many of each class of equal cards one is tried."""
    rules, pool = Rules(calls=(call,)), 5
    alike = alike_cards(rules)
    for game in choices(rules, 20, seed=3):
        if game.phase != "pick":
            continue
        view = view_of(game)
        hand, parameters = view["hand"][0], compile_parameters(Parameters(), rules)
        cards = np.empty(POOL, np.int64)
        size = list_pool(view[0], compile_rules(rules)[0], parameters[0], pool, cards)
        left = EACH - int(view["num_picks"][0]) % EACH
        places = [int(pick_direction(view["call"][0], int(view["num_picks"][0]) + k)) for k in range(left)]

        classes = {card: int(equal_cards(card, hand, np.uint64(0), alike)) for card in cards_in(int(hand))}
        tried = [kind_of(plan, places, classes) for plan in candidates(view, rules, pool)]
        wanted = {kind_of(plan, places, classes) for plan in itertools.permutations(cards[:size].tolist(), left)}
        assert wanted <= set(tried) and len(tried) - len(wanted) <= 2


def test_others_pick_again_as_the_policy_does_and_the_view_stays_the_same() -> None:
    rules = Rules(calls=("120", "kitty"))
    compiled, parameters = search_rules(rules), compile_parameters(Parameters(), rules)
    scratch, state = worlds.new_scratch(), np.zeros(1, np.uint64)
    for game in choices(rules, 60, seed=4):
        if game.phase != "pick":
            continue
        view = view_of(game)
        assert worlds.prepare(view[0], compiled[0], scratch) > 0
        world, room = np.zeros(1, GAME), np.zeros(1, VIEW)
        worlds.draw(scratch, state, world, 0)
        world["deal"] = 0
        pick_again(view[0], compiled[0], world[0], room, heuristic.choose, (compiled[0], parameters[0]))
        again = views_of(world, compiled, np.zeros(1, np.int64))
        for name in ("hand", "legal", "given", "call", "num_picks", "phase", "seat", "dealer"):
            assert again[name].tobytes() == view[name].tobytes(), name
        earlier = (int(view["dealer"][0]) + 1) % 4
        if earlier and int(view["num_picks"][0]) >= EACH:
            picked = np.bitwise_or.reduce(world["given"][0, earlier])
            dealt = world["hand"][0, earlier] | picked
            assert picked == mask_of_rule_pass(rules, world, earlier, int(dealt))


def mask_of_rule_pass(rules: Rules, world: Any, seat: int, dealt: int) -> int:
    """What the rule player gives away of a hand at the first seat to pick."""
    hands = [int(h) for h in world["hand"][0]]
    view = np.zeros(1, VIEW)
    view["hand"] = view["legal"] = dealt
    view["phase"], view["call"], view["dealer"] = PICK, world["call"][0], (int(world["dealer"][0]) - seat) % 4
    picked = 0
    for k in range(EACH):
        view["num_picks"] = k
        card = int(Heuristic(rules=rules).act(view, np.zeros(1, np.uint64))[0])
        picked |= 1 << card
        call = int(view["call"][0])
        places = range(3) if call == KITTY else [int(pick_direction(call, k))]
        for d in places:
            view["given"][0, d] |= np.uint64(1 << card)
        view["hand"] = view["legal"] = dealt & ~picked
    assert hands
    return picked


# --- the race ---------------------------------------------------------------------------------------------------


def test_differences_are_paired() -> None:
    rng = np.random.default_rng(1)
    values = rng.normal(size=(3, 40)) + 100 * rng.normal(size=40)
    gap, error = behind(values, 1, 2, 30)
    difference = values[1, :30] - values[2, :30]
    assert gap == pytest.approx(difference.mean())
    assert error == pytest.approx(difference.std(ddof=1) / np.sqrt(30))


def test_who_is_clearly_behind_is_dropped_and_the_rule_player_stands_when_close() -> None:
    rng = np.random.default_rng(2)
    common, noise = 50 * rng.normal(size=200), rng.normal(size=(4, 200))
    values = common + noise + np.array([0.0, 0.1, -3.0, 0.2])[:, None]
    alive = np.ones(4, np.bool_)
    assert drop_losers(values, alive, 200, 4.0, 1.0) == 3 and alive.tolist() == [True, True, False, True]
    means = values.mean(axis=1)
    best = int(best_of(values, alive, 200))
    assert best == means.argmax() != 0
    gap, error = behind(values, best, 0, 200)
    assert winner(values, alive, 200, gap / error * 1.01) == 0
    assert winner(values, alive, 200, gap / error * 0.99) == best
    alive[0] = False
    assert winner(values, alive, 200, 100.0) == best


def test_the_rule_player_is_not_dropped_while_none_may_depart_from_it() -> None:
    values = np.random.default_rng(4).normal(size=(3, 50)) - np.array([1.0, 0.0, 1.0])[:, None]
    gap, error = behind(values, 1, 0, 50)
    for depart, kept in ((gap / error * 1.01, [True, True, False]), (gap / error * 0.99, [False, True, False])):
        alive = np.ones(3, np.bool_)
        assert drop_losers(values, alive, 50, 2.0, depart) == sum(kept) and alive.tolist() == kept


def test_nobody_is_dropped_for_being_equal() -> None:
    values = np.tile(np.random.default_rng(3).normal(size=20), (3, 1))
    alive = np.ones(3, np.bool_)
    assert drop_losers(values, alive, 20, 0.0, 0.0) == 3
    assert winner(values, alive, 20, 0.0) == 0


# --- the agent --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def quick() -> Search:
    return PIMC(**QUICK)


def test_the_same_alone_among_others_and_at_any_number_of_threads(quick: Search) -> None:
    batch = Batch(23, seed=11)
    for _ in range(30):
        batch.play("random", 5)
        views, keys = batch.views(), batch.keys()
        answers = quick.act(views, keys)
        for threads in (2, 5):
            assert (PIMC(**QUICK | {"threads": threads}).act(views, keys) == answers).all()
        assert [int(quick.act(views[i : i + 1], keys[i : i + 1])[0]) for i in range(len(views))] == answers.tolist()


def test_other_keys_are_other_worlds(quick: Search) -> None:
    batch = Batch(200, seed=12)
    batch.play("heuristic", 20)
    assert (quick.act(batch.views(), batch.keys()) != quick.act(batch.views(), batch.keys() + np.uint64(1))).any()


def views_of_no_game() -> Iterator[Any]:
    """Views that were broken in one place, each with a choice."""
    for phase in ("call", "pick", "play"):
        game = next(g for g in choices(Rules(), 1000, seed=16) if g.phase == phase)
        for name, value in (("legal", ~np.uint64(0)), ("seat", 2), ("num_plays", 51), ("hand", 0), ("phase", 11)):
            view = view_of(game)
            view[name] = value
            yield view
        if phase == "pick":
            view = view_of(game)
            view["call"] = 3
            yield view


def test_views_of_no_game_are_told(quick: Search) -> None:
    for view in views_of_no_game():
        with pytest.raises(BeliefError, match="pimc: view 0 is of no game"):
            quick.act(view, np.zeros(1, np.uint64))


def test_many_views_are_asked_in_parts(quick: Search) -> None:
    batch = Batch(70, seed=17)
    views, keys = batch.views(), batch.keys()
    assert quick.act(views, keys).tolist() == PIMC(**QUICK | {"threads": 3}).act(views, keys).tolist()
    assert quick.act(views[:0], keys[:0]).tolist() == []


def test_hidden_cards_do_not_matter(quick: Search) -> None:
    rng = random.Random(13)
    compared = 0
    for game in choices(Rules(), 60, seed=13):
        view, key = view_of(game), np.array([77], np.uint64)
        answer = quick.act(view, key)
        for other in resampled(game, game.seat, rng, 3):
            assert quick.act(view_of(other), key) == answer
            compared += 1
    assert compared > 60


@pytest.mark.slow
def test_legal_under_all_rules() -> None:
    rng = random.Random(14)
    for _ in range(25):
        rules = random_rules(rng)
        agent = PIMC(**QUICK, rules=rules)
        batch = Batch(6, rules, seed=rng.randrange(1 << 30))
        for _ in range(70):
            batch.step(ask(agent, batch.views(), batch.keys()))


@pytest.mark.slow
@pytest.mark.parametrize("playout", ["heuristic", "greedy-v1"])
def test_finds_what_the_suites_call_best(playout: str) -> None:
    """Their values are of the same kind: playouts of ``heuristic`` in worlds drawn as here, but card points."""
    found = run_suite(load_suite("guard"), PIMC(worlds=60, playout=playout, depart=0.0, utility="points"))
    assert found.best.mean > (0.8 if playout == "heuristic" else 0.5)


# --- how it is made ---------------------------------------------------------------------------------------------


def test_names_and_changes() -> None:
    assert make_agent("pimc:strong,worlds=7").parameters.worlds == 7  # type: ignore[attr-defined]
    assert make_agent("pimc").parameters == PIMC("fast").parameters  # type: ignore[attr-defined]
    assert PIMC().parameters.utility == "equity"
    assert PIMC(rules=NO_TABLE).parameters.utility == "points"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strength": "faster"}, "pimc: 'faster' is not one of 'fast', 'strong'"),
        ({"world": 3}, "pimc: 'world' is no setting; they are worlds, spread"),
        ({"worlds": 1}, "pimc: worlds: 1 is not a whole number from 2 to 10000"),
        ({"worlds": 2.5}, "pimc: worlds: 2.5 is not a whole number"),
        ({"drop": float("nan")}, "pimc: drop: nan is not a number from 0 to 100"),
        ({"drop": True}, "pimc: drop: True is not a number"),
        ({"playout": "random"}, "pimc: playout: 'random' is not one of 'heuristic', 'greedy-v1'"),
        ({"pool": 10}, "pimc: pool: 10 is not a whole number from 0 to 9"),
        ({"threads": -1}, "threads: -1 is not a whole number from 0 to 1024"),
        ({"utility": "equity", "rules": NO_TABLE}, "equity"),
    ],
)
def test_what_cannot_be_is_told(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        PIMC(**options)


# --- one agent a phase ------------------------------------------------------------------------------------------


def test_mixed_asks_each_in_its_phase() -> None:
    mixed = make_agent("mixed:call=greedy-v1,pick=heuristic,play=random")
    batch = Batch(64, seed=15)
    for _ in range(20):
        batch.play("random", 3)
        views, keys = batch.views(), batch.keys()
        answers = mixed.act(views, keys)
        parts = [make_agent("greedy-v1"), make_agent("heuristic"), RandomAgent()]
        for phase, agent in enumerate(parts):
            rows = views["phase"] == phase
            assert (answers[rows] == agent.act(views[rows], keys[rows])).all()
    assert mixed.parameters == {"call": "greedy-v1", "pick": "heuristic", "play": "random"}  # type: ignore[attr-defined]
    with pytest.raises(AgentError, match="unknown agent 'nobody'"):
        make_agent("mixed:play=nobody")


def test_splits_are_numbered_as_the_calls() -> None:
    assert [int(pick_direction(FIRST_CALL + i, 0)) for i in range(len(SPLITS))] == [
        split.index(next(d for d in split if d != "0")) for split in map(str, SPLITS)
    ]


PINNED = {
    "heuristic-v1": "171ef9a39f623945cacb51517ab3f1de527cdc30597a7ea2602f8b967e872bd5",
    "pimc-v1:worlds=6,utility=points": "a447fd2dba921428331da7c4c6a6827737c16db7935f89217ef2abd592f5893f",
    "ismcts-v1:iterations=60,utility=points": "d8f27a8ea0c642a900809959de467b472b382ff0a42421dae6c68c664482d59b",
}
"""SHA-256 of what they answer; another one needs another name."""


@pytest.mark.slow
@pytest.mark.parametrize("name", PINNED)
def test_versions_keep_their_behaviour(name: str) -> None:
    agent, batch, digest = make_agent(name), Batch(32, seed=18), hashlib.sha256()
    for _ in range(30):
        digest.update(agent.act(batch.views(), batch.keys()).astype("<i8").tobytes())
        batch.play("random", 3)
    assert digest.hexdigest() == PINNED[name]
