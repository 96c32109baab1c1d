"""Duplicate matches: same cards in all seatings, figures as defined, errors and interruptions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from agents.arena import SEED, Match, Result, evaluate
from agents.greedy import Greedy
from agents.stats import mean_interval, rate_interval
from dnfh_env import AgentError, ArgumentError, Game, Rules
from dnfh_env.agent import Agent, RandomAgent
from dnfh_env.cards import card_id, mask_of
from dnfh_env.engine import PICK, PLAY
from dnfh_env.rules import CALLS, FIRST_CALL

SHOOTER_WORTH = 3 * 52 * 4 / 3


class Spy:
    """Plays like another agent and keeps what it was asked."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.views: list[NDArray[Any]] = []
        self.keys: list[NDArray[np.uint64]] = []

    def act(self, views: NDArray[Any], rng: NDArray[np.uint64]) -> NDArray[np.int64]:
        self.views.append(views.copy())
        self.keys.append(rng.copy())
        return self.agent.act(views, rng)


class Breaks:
    """Plays at random until it is asked for the ``n``-th time."""

    def __init__(self, n: int, error: BaseException) -> None:
        self.left, self.error = n, error

    def act(self, views: NDArray[Any], rng: NDArray[np.uint64]) -> NDArray[np.int64]:
        self.left -= 1
        if self.left < 0:
            raise self.error
        return RandomAgent().act(views, rng)


@pytest.mark.parametrize("name", ["greedy", "random"])
def test_four_equal_agents_come_out_at_exactly_zero(name: str) -> None:
    match = Match(name, name)
    list(match.play_deals(300))
    list(match.play_games(30))
    result = match.result()
    assert result.edge == mean_interval(np.zeros(300))
    assert result.card_points == mean_interval(np.full(300, 67 / 4))
    assert result.win_share == mean_interval(np.full(30, 1 / 4))


def test_a_difference_between_others_does_not_come_out_at_zero() -> None:
    assert evaluate("greedy", ["greedy", "greedy", "random"], deals=50, games=0).edge != mean_interval(np.zeros(50))


SHOTS = {"against": ["greedy", "random", "greedy"], "deals": 6, "games": 0, "seed": 20}
"""Six deals in which a random contestant shoots twice, and another twice."""


def naive_deal(seating: list[str], number: int) -> tuple[list[float], list[int], int | None]:
    """Edge by seat, card points by seat and the shooter of one deal, one decision after another, from the text."""
    game = Game(Rules(max_deals=1), seed=SHOTS["seed"], game=number)
    while not game.is_over:
        game.push(game.choose(seating[game.seat]))
    taken = list(game.points)
    if game.shooter is None:
        return [(sum(taken) - mine) / 3 - mine for mine in taken], taken, None
    worth = [SHOOTER_WORTH if seat == game.shooter else -SHOOTER_WORTH / 3 for seat in range(4)]
    return worth, taken, game.shooter


def test_figures_of_deals_are_those_of_the_definitions() -> None:
    line = ["random", *SHOTS["against"]]
    edges, points, shots, been_shot = np.empty((6, 4)), np.empty((6, 4)), 0, 0
    for number in range(6):
        for seat in range(4):
            edge, taken, shooter = naive_deal([line[(s - seat) % 4] for s in range(4)], number)
            edges[number, seat], points[number, seat] = edge[seat], taken[seat]
            shots += shooter == seat
            been_shot += shooter not in (seat, None)
    assert (shots, been_shot) == (2, 2)
    result = evaluate("random", **SHOTS)
    assert result.edge and result.card_points
    assert result.edge.mean == pytest.approx(edges.mean())
    assert result.edge.margin == pytest.approx(mean_interval(edges.mean(axis=1)).margin)
    assert result.card_points == mean_interval(points.mean(axis=1))
    assert result.shots == rate_interval(2, 24)


def test_win_share_is_that_of_whole_games() -> None:
    line = ["random", "greedy", "random", "random"]  # left is not right
    shares = []
    for number in range(3):
        for seat in range(4):
            game = Game(seed=SEED, game=number)
            while not game.is_over:
                game.push(game.choose(line[(game.seat - seat) % 4]))
            shares.append((seat in game.winners) / len(game.winners))
    result = evaluate(line[0], line[1:], deals=0, games=3)
    assert result.win_share == mean_interval(np.reshape(shares, (3, 4)).mean(axis=1))
    assert (result.edge, result.card_points, result.shots) == (None, None, None)


def test_a_shot_with_another_effect_counts_as_entered() -> None:
    """Under the other rules the same is played, since nobody looks at what a shot does."""
    game, nothing, others = (evaluate("random", rules=Rules(shot=shot), **SHOTS) for shot in ("game", "none", "others"))
    assert game.card_points == nothing.card_points == others.card_points
    assert game.shots == nothing.shots == others.shots
    assert game.edge and nothing.edge and others.edge and nothing.card_points
    assert nothing.edge.mean == pytest.approx((67 - 4 * nothing.card_points.mean) / 3)
    # two shots made and two suffered in 24 deals; the edge of the points taken is -67 and 67 / 3
    assert game.edge.mean - nothing.edge.mean == pytest.approx(2 * (208 + 67 - (208 + 67) / 3) / 24)
    assert others.edge.mean - nothing.edge.mean == pytest.approx(2 * (2 * 77 - 2 * 77 / 3) / 24)


def test_all_seatings_have_the_same_cards() -> None:
    spy = Spy(RandomAgent())
    list(Match(spy, "greedy", seed=5).play_deals(3))
    views = np.concatenate(spy.views)
    first_picks = views[(views["phase"] == PICK) & (views["given"].max(axis=1) == 0)]
    deals = [Game(seed=5, game=number).hands for number in range(3)]
    expected = [mask_of(map(card_id, hand)) for deal in deals for hand in deal]
    assert sorted(first_picks["hand"].tolist()) == sorted(expected)


def test_all_seatings_have_the_same_seeds() -> None:
    spy = Spy(RandomAgent())
    list(Match(spy, "random", seed=5).play_deals(3))
    keys = np.concatenate(spy.keys)
    assert len(np.unique(keys)) == len(keys) == 3 * 65  # among equals each decision of a deal comes to it once


def test_results_do_not_depend_on_chunks_or_on_how_often_one_plays_on() -> None:
    whole = Match("greedy", ["random", "greedy", "random"])
    assert list(whole.play_deals(60)) == [60]
    assert list(whole.play_games(7)) == [7]
    parts = Match("greedy", ["random", "greedy", "random"])
    assert list(parts.play_deals(10, chunk=7)) == [7, 3]
    assert list(parts.play_deals(60, chunk=25)) == [25, 25]
    assert list(parts.play_games(7, chunk=3)) == [3, 3, 1]
    assert list(parts.play_deals(60)) == []
    assert parts.result() == whole.result()
    assert parts.played == 67


def test_seeds_matter() -> None:
    assert evaluate("greedy", deals=20, games=0, seed=1) != evaluate("greedy", deals=20, games=0, seed=2)
    assert evaluate("greedy", deals=20, games=0, seed=1) == evaluate("greedy", deals=20, games=0, seed=1)


def test_an_agent_is_asked_once_about_all_that_waits() -> None:
    spy = Spy(Greedy())
    list(Match(spy, [spy, spy, spy]).play_deals(10))
    assert [len(views) for views in spy.views] == [40] * 65


def test_a_rotation_goes_through_its_calls() -> None:
    spy = Spy(RandomAgent())
    rules = Rules.standard_hearts()
    list(Match(spy, "greedy", rules).play_deals(10, chunk=7))
    views = np.concatenate(spy.views)
    leads = views[(views["phase"] == PLAY) & (views["num_plays"] >= 48)]
    calls, counts = np.unique(leads["call"], return_counts=True)
    assert dict(zip(calls.tolist(), counts.tolist(), strict=True)) == {52: 12, 61: 12, 58: 8, 63: 8}


def test_names_in_results() -> None:
    result = Match(Greedy(), ["random", "greedy", RandomAgent()]).result()
    assert result == Result("Greedy", ("random", "greedy", "RandomAgent"))


@pytest.mark.parametrize("others", [[], ["random"] * 2, ["random"] * 4])
def test_wrong_numbers_of_others(others: list[str]) -> None:
    with pytest.raises(AgentError, match=f"against: expected one agent, or three .* got {len(others)}"):
        Match("greedy", others)


def test_unknown_agents_and_seeds() -> None:
    with pytest.raises(AgentError, match="unknown agent 'nobody'"):
        Match("greedy", "nobody")
    with pytest.raises(ArgumentError, match="seed: -1"):
        Match("greedy", seed=-1)


def test_an_agent_that_raises_is_named_with_the_view() -> None:
    with pytest.raises(AgentError, match=r"Breaks: act raised KeyError: 'x' .*hand .*call ") as caught:
        list(Match(Breaks(5, KeyError("x"))).play_deals(5))
    assert isinstance(caught.value.__cause__, KeyError)


def test_what_was_played_before_an_interruption_stays() -> None:
    match = Match(Breaks(100, KeyboardInterrupt()), "greedy")
    with pytest.raises(KeyboardInterrupt):
        list(match.play_deals(20, chunk=5))
    result = match.result()
    assert result.edge is not None
    assert result.edge.n == match.played == 5


class Cheat:
    """Plays the lowest card of the deck again and again, and writes into its views that it may."""

    def act(self, views: NDArray[Any], rng: NDArray[np.uint64]) -> NDArray[np.int64]:
        views["legal"] = np.uint64(2**64 - 1)
        return np.zeros(len(views), np.int64)


def test_an_agent_that_rewrites_what_is_legal_is_caught() -> None:
    with pytest.raises(AgentError, match=r"Cheat: action 0 .2C. is illegal, allowed are: 300"):
        evaluate(Cheat(), "greedy", deals=20, games=0)


def test_deals_under_a_rotation_take_its_calls_in_turn() -> None:
    match = Match("random", "random", Rules.standard_hearts())
    games = match._play(Rules.standard_hearts(max_deals=1), np.arange(8))
    assert games["call"][::4].tolist() == [FIRST_CALL + CALLS.index(c) for c in ("300", "003", "030", "hold")] * 2
