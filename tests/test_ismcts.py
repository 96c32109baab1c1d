"""Search by a tree: beside a plain twin of dictionaries, what its nodes hold, and answers that hang on view and key."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from agents import worlds
from agents.beliefs import BeliefError
from agents.heuristic import Heuristic
from agents.search.base import Task
from agents.search.endgame import solve
from agents.search.equal import alike_cards, equal_cards
from agents.search.ismcts import ISMCTS, list_actions, spread
from agents.search.race import drop_losers, round_size, winner
from agents.suites import load_suite, run_suite
from dnfh_env import Batch, Game, Rules
from dnfh_env._crew import regions
from dnfh_env._random import below
from dnfh_env.agent import ask
from dnfh_env.cards import cards_in, names_in
from dnfh_env.engine import GAME, NUM_ACTIONS, OVER, PICK, PLAY, apply_all
from dnfh_env.errors import ArgumentError
from dnfh_env.notation import legal_of
from dnfh_env.objective import POINTS, standings_of
from dnfh_env.rules import compile_rules
from dnfh_env.view import views_of
from random_rules import random_rules
from test_hidden import resampled
from test_pimc import choices, view_of, views_of_no_game

QUICK = {"iterations": 60, "pool": 4, "threads": 1}
KEY = np.array([77], np.uint64)


def searched(agent: ISMCTS, view: Any) -> tuple[int, Any]:
    """The answer for a view, and the room in which it was found, the second time in a row."""
    room, actions = agent._new_room(), np.empty(2, np.int64)
    agent._decide(Task(view.repeat(2), KEY.repeat(2), actions, regions(2, 1, 1)), agent._setup, room)
    assert actions[0] == actions[1]
    return int(actions[0]), room


def plays(rules: Rules, count: int, seed: int, most: int = 52) -> Iterator[Game]:
    """Choices in the play of random games, with at most so many cards left."""
    games = choices(rules, 100_000, seed)
    late = (game for game in games if game.phase == "play" and 52 - int(game.record["num_plays"][0]) <= most)
    return itertools.islice(late, count)


def first_picks(call: str, count: int) -> Iterator[Game]:
    """Picks of the seat at the dealer's left."""
    games = choices(Rules(calls=(call,)), 10_000, seed=23)
    first = (game for game in games if game.phase == "pick" and game.seat == (game.dealer + 1) % 4)
    return itertools.islice(first, count)


# --- the plain twin ---------------------------------------------------------------------------------------------


@dataclass
class Node:
    """What a sequence of actions came to."""

    visits: int = 0
    available: int = 1
    sums: list[float] = field(default_factory=lambda: [0.0] * 4)
    children: dict[int, Node] = field(default_factory=dict)


class Twin:
    """The search with dictionaries, of plays and of passes at the dealer's left, whom nobody has picked before."""

    def __init__(self, agent: ISMCTS, rules: Rules, view: Any, key: int) -> None:
        self.settings = agent.parameters
        self.setup = agent._setup
        self.rules = self.setup.rules
        self.policy = Heuristic(rules=rules)
        self.alike = alike_cards(rules)
        self.view = view
        self.state = np.array([key], np.uint64)
        self.root = Node()
        self.came_to: list[Any] = []

    def answer(self) -> int:
        scratch = worlds.new_scratch()
        assert worlds.prepare(self.view[0], self.rules[0], scratch) > 0
        actions = np.zeros(NUM_ACTIONS, np.int64)
        count = list_actions(self.view[0], self.setup, actions)
        alive, seen, budget = np.ones(count, np.bool_), 0, self.settings.iterations
        values = np.zeros((count, budget))
        while alive.sum() > 1 and budget >= alive.sum():
            for _ in range(min(int(round_size(seen)), budget // int(alive.sum()))):
                world = np.zeros(1, GAME)
                worlds.draw(scratch, self.state, world, 0)
                world["deal"] = 0
                for i in np.flatnonzero(alive):
                    values[i, seen] = self.iterate(world.copy(), int(actions[i]))
                    budget -= 1
                seen += 1
            drop_losers(values, alive, seen, self.settings.drop, self.settings.depart)
        return int(actions[winner(values, alive, seen, self.settings.depart)])

    def iterate(self, game: Any, action: int) -> float:
        node, path, playing = self.root, [self.root], game["phase"][0] == PLAY
        while True:
            hidden = game["phase"][0] == PICK and game["seat"][0] != 0
            new = not hidden and action not in node.children
            if not hidden:
                node = node.children.setdefault(action, Node())
                path.append(node)
            apply_all(game, self.rules, np.array([action]))
            if new or game["phase"][0] == OVER or (game["phase"][0] == PLAY) != playing:
                break
            action = self.preferred(game)
            if not (game["phase"][0] == PICK and game["seat"][0] != 0):
                action = self.select(game, node, action)
        while game["phase"][0] != OVER:
            apply_all(game, self.rules, np.array([self.preferred(game)]))
        values = standings_of(game, self.rules, POINTS)[0]
        self.came_to.append(values)
        for each in path:
            each.visits += 1
            each.sums = [a + b for a, b in zip(each.sums, values, strict=True)]
        return float(values[0])

    def look(self, game: Any) -> Any:
        return views_of(game, self.rules, game["seat"].astype(np.int64))

    def preferred(self, game: Any) -> int:
        return int(self.policy.act(self.look(game), KEY)[0])

    def select(self, game: Any, node: Node, favoured: int) -> int:
        q, seat = self.settings, int(game["seat"][0])
        tried = self.tried(game, node, favoured)
        known = [action for action in reversed(node.children) if action in tried]
        weight = q.explore * float(np.std(self.centred()))
        scores = {}
        for action in known:
            child = node.children[action]
            child.available += 1
            bonus = weight * self.prior(action, favoured, tried) * math.sqrt(child.available) / (1 + child.visits)
            scores[action] = child.sums[seat] / child.visits + bonus
        fresh = tried - set(known)
        best = max(scores, key=scores.__getitem__, default=favoured)
        if fresh:
            first = favoured if favoured in fresh else None
            prior = self.prior(favoured if first is not None else -1, favoured, tried)
            score = node.sums[seat] / node.visits + weight * prior * math.sqrt(node.visits)
            if not known or score > scores[best]:
                drawn = sorted(fresh)
                return first if first is not None else drawn[below(len(drawn), np.uint64(worlds.number(self.state)))]
        return best

    def centred(self) -> Any:
        values = np.array(self.came_to)
        return values - values.mean(axis=0)

    def prior(self, action: int, favoured: int, tried: set[int]) -> float:
        return self.settings.prior if action == favoured else (1 - self.settings.prior) / max(1, len(tried) - 1)

    def tried(self, game: Any, node: Node, favoured: int) -> set[int]:
        view, hand = self.look(game)[0], game["hand"][0, int(game["seat"][0])]
        legal = cards_in(int(legal_of(game, self.rules)))
        if game["phase"][0] == PICK:
            width = math.ceil(self.settings.widen * node.visits**self.settings.power)
            wide = ISMCTS(rules=Rules(), pool=max(1, min(13, width)), utility="points")
            actions = np.zeros(NUM_ACTIONS, np.int64)
            count = list_actions(view, wide._setup, actions)
            return set(map(int, actions[:count]))
        held = [int(cards) for cards in game["hand"][0]]
        live = sum(held) | (1 << int(game["best_card"][0]) if game["num_plays"][0] % 4 else 0)
        gone = np.uint64(((1 << 52) - 1) & ~live)
        classes = {int(equal_cards(card, hand, gone, self.alike)) for card in legal}
        return {favoured} | {
            min(set(cards_in(cards)) & set(legal)) for cards in classes if favoured not in cards_in(cards)
        }


def compare(node: Node, t: Any, number: int) -> int:
    """Hold a node of the tree, and all below it, to the twin's; how many there are."""
    assert t.visits[number] == node.visits
    assert t.sums[number].tolist() == pytest.approx(node.sums)
    assert number == 0 or t.available[number] == node.available
    count, child = 1, int(t.first_child[number])
    for action in reversed(node.children):
        assert t.action[child] == action
        count += compare(node.children[action], t, child)
        child = int(t.next_sibling[child])
    assert child == 0
    return count


def check_against_twin(game: Game, **settings: Any) -> int:
    agent = ISMCTS(**QUICK | {"utility": "points"} | settings, rules=game.rules)
    twin = Twin(agent, game.rules, view_of(game), int(KEY[0]))
    answer, room = searched(agent, view_of(game))
    if room.tree.size[0] == 0:  # all cards are equal
        return 0
    assert twin.answer() == answer
    assert compare(twin.root, room.tree, 0) == room.tree.size[0]
    assert spread(room.tree) == pytest.approx(np.std(twin.centred()))
    return depth_of(twin.root)


def depth_of(node: Node) -> int:
    return 1 + max(map(depth_of, node.children.values()), default=0)


@pytest.mark.small
def test_a_few_iterations_beside_the_plain_twin() -> None:
    depths = [check_against_twin(game, iterations=40) for game in plays(Rules(), 6, seed=21, most=16)]
    assert max(depths) > 4


@pytest.mark.small
def test_a_pass_beside_the_plain_twin() -> None:
    (game,) = first_picks("210", 1)
    assert check_against_twin(game, iterations=24, pool=2, explore=2.0, prior=0.4) > 2


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, {"explore": 0.1, "prior": 0.3}, {"explore": 5.0, "drop": 0.5, "depart": 0.0}])
def test_plays_beside_the_plain_twin(settings: dict[str, Any]) -> None:
    for game in plays(Rules(), 12, seed=22):
        check_against_twin(game, iterations=200, **settings)


@pytest.mark.slow
@pytest.mark.parametrize("call", ["300", "021", "kitty"])
def test_passes_beside_the_plain_twin(call: str) -> None:
    for game in first_picks(call, 6):
        check_against_twin(game, iterations=150, explore=2.0, prior=0.4)


# --- what a tree holds ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def quick() -> ISMCTS:
    return ISMCTS(**QUICK)


def children(t: Any, number: int) -> Iterator[int]:
    child = int(t.first_child[number])
    while child:
        yield child
        child = int(t.next_sibling[child])


def test_every_iteration_is_in_every_node_of_its_path(quick: ISMCTS) -> None:
    for game in choices(Rules(), 40, seed=24):
        _, room = searched(quick, view_of(game))
        t = room.tree
        size = int(t.size[0])
        if size == 0:  # all cards are equal
            continue
        assert size <= quick.parameters.iterations + 1 and t.visits[0] <= quick.parameters.iterations
        assert np.abs(t.sums[:size].sum(axis=1)).max() < 1e-9
        for number in range(size):
            below_it = list(children(t, number))
            assert len({int(t.action[child]) for child in below_it}) == len(below_it)
            passed_on = sum(int(t.visits[child]) for child in below_it)
            assert t.visits[number] == passed_on if number == 0 else t.visits[number] >= 1 + passed_on
            if number:
                assert all(t.visits[c] <= t.available[c] <= t.visits[number] for c in below_it)
        assert sum(len(list(children(t, number))) for number in range(size)) == size - 1


def test_picks_are_widened_in_the_order_of_the_rule_player() -> None:
    """Those tried with fewer cards are among those tried with more; the rule player's pick comes first."""
    for game in choices(Rules(), 60, seed=25):
        if game.phase != "pick":
            continue
        view, before = view_of(game), set()
        for pool in (1, 2, 5, 13):
            agent = ISMCTS(pool=pool, threads=1)
            actions = np.zeros(NUM_ACTIONS, np.int64)
            count = list_actions(view[0], agent._setup, actions)
            tried = set(map(int, actions[:count]))
            assert actions[0] == Heuristic().act(view, KEY)[0]
            assert (
                before <= tried <= set(game.legal_actions())
                and min(pool, len(game.legal_actions())) <= len(tried) <= pool + 2
            )
            before = tried


def test_without_depth_nothing_is_below_the_root(quick: ISMCTS) -> None:
    flat = ISMCTS(**QUICK, depth=0)
    for game in plays(Rules(), 5, seed=26):
        t = searched(flat, view_of(game))[1].tree
        assert all(not list(children(t, child)) for child in children(t, 0))
        assert searched(quick, view_of(game))[1].tree.size[0] > t.size[0]


def test_too_few_iterations_and_single_choices_are_the_rule_players(quick: ISMCTS) -> None:
    tiny = ISMCTS(iterations=3, threads=1)
    for game in choices(Rules(), 20, seed=27):
        view = view_of(game)
        assert tiny.act(view, KEY)[0] == Heuristic().act(view, KEY)[0]
    game = Game(seed=3)
    while len(game.legal_actions()) > 1:
        game.push(game.legal_actions()[0])
    room = searched(quick, view_of(game))[1]
    assert room.tree.visits[0] == 0 and quick.act(view_of(game), KEY)[0] == game.legal_actions()[0]


# --- the agent --------------------------------------------------------------------------------------------------


def test_the_same_alone_among_others_and_at_any_number_of_threads(quick: ISMCTS) -> None:
    batch = Batch(23, seed=11)
    for _ in range(20):
        batch.play("random", 7)
        views, keys = batch.views(), batch.keys()
        answers = quick.act(views, keys)
        for threads in (2, 5):
            assert (ISMCTS(**QUICK | {"threads": threads}).act(views, keys) == answers).all()
        assert [int(quick.act(views[i : i + 1], keys[i : i + 1])[0]) for i in range(len(views))] == answers.tolist()


def test_other_keys_are_other_worlds(quick: ISMCTS) -> None:
    batch = Batch(200, seed=12)
    batch.play("heuristic", 20)
    assert (quick.act(batch.views(), batch.keys()) != quick.act(batch.views(), batch.keys() + np.uint64(1))).any()


def test_hidden_cards_do_not_matter(quick: ISMCTS) -> None:
    rng = random.Random(13)
    compared = 0
    for game in choices(Rules(), 60, seed=13):
        answer = quick.act(view_of(game), KEY)
        for other in resampled(game, game.seat, rng, 3):
            assert quick.act(view_of(other), KEY) == answer
            compared += 1
    assert compared > 60


@pytest.mark.slow
@pytest.mark.parametrize("playout", ["heuristic", "greedy-v1"])
def test_legal_under_all_rules(playout: str) -> None:
    rng = random.Random(14)
    for _ in range(15):
        rules = random_rules(rng)
        agent = ISMCTS(**QUICK, rules=rules, playout=playout)
        batch = Batch(6, rules, seed=rng.randrange(1 << 30))
        for _ in range(70):
            batch.step(ask(agent, batch.views(), batch.keys()))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["guard", "stop"])
def test_finds_what_the_suites_call_best(name: str) -> None:
    """Their values are playouts of ``heuristic`` in worlds drawn as here, in card points."""
    agents = (ISMCTS(iterations=800, utility="points"), "heuristic")
    found, ruled = (run_suite(load_suite(name), agent) for agent in agents)
    assert found.best.mean > ruled.best.mean and found.regret.mean < 0.4 * ruled.regret.mean


def agreed(game: Game, rules: Rules, count: int = 40) -> set[str] | None:
    """The names of the actions that exact play calls best in each of some worlds, if one of them is clearly better."""
    view, compiled = view_of(game), compile_rules(rules)
    scratch, state = worlds.new_scratch(), np.array([5], np.uint64)
    worlds.prepare(view[0], compiled[0], scratch)
    best, gap = set(game.legal_actions()), False
    for _ in range(count):
        world = np.zeros(1, GAME)
        worlds.draw(scratch, state, world, 0)
        found = solve(world, rules)
        best &= set(map(int, found.best))
        gap |= bool((found.values[:, 0].max() - found.values[:, 0].min()) >= 12)
        if not best:
            return None
    one_kind = len(best) < len(game.legal_actions())
    return set(names_in(sum(1 << card for card in best))) if gap and one_kind else None


@pytest.mark.slow
def test_plays_endings_that_are_clear_in_every_world() -> None:
    rules = Rules()
    agent = ISMCTS(iterations=2000, utility="points", depart=0.5)
    searched_right = ruled_right = count = 0
    for game in plays(rules, 400, seed=28, most=14):
        best = agreed(game, rules)
        if best is not None:
            view = view_of(game)
            searched_right += game.action_to_string(int(agent.act(view, KEY)[0])) in best
            ruled_right += game.action_to_string(int(Heuristic().act(view, KEY)[0])) in best
            count += 1
    assert count > 60
    assert searched_right > 0.93 * count and ruled_right < searched_right


def test_views_of_no_game_are_told(quick: ISMCTS) -> None:
    for view in views_of_no_game():
        with pytest.raises(BeliefError, match="ismcts: view 0 is of no game"):
            quick.act(view, KEY)


# --- how it is made ---------------------------------------------------------------------------------------------


def test_names_and_changes() -> None:
    assert ISMCTS().parameters == ISMCTS("fast").parameters != ISMCTS("strong").parameters
    assert ISMCTS("strong", iterations=7).parameters.iterations == 7
    assert ISMCTS()._new_room().values.shape[0] == NUM_ACTIONS


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strength": "faster"}, "ismcts: 'faster' is not one of 'fast', 'strong'"),
        ({"seconds": 3}, "ismcts: 'seconds' is no setting; they are iterations, explore"),
        ({"iterations": 0}, "ismcts: iterations: 0 is not a whole number from 1"),
        ({"iterations": 2.5}, "ismcts: iterations: 2.5 is not a whole number"),
        ({"prior": 1.5}, "ismcts: prior: 1.5 is not a number from 0 to 1"),
        ({"explore": float("nan")}, "ismcts: explore: nan is not a number from 0 to 100"),
        ({"pool": 14}, "ismcts: pool: 14 is not a whole number from 1 to 13"),
        ({"playout": "random"}, "ismcts: playout: 'random' is not one of 'heuristic', 'greedy-v1'"),
        ({"threads": -1}, "threads: -1 is not a whole number from 0 to 1024"),
    ],
)
def test_what_cannot_be_is_told(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        ISMCTS(**options)
