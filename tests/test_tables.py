"""Tables: against a plain loop over games and against the environment's table; line-ups, lengths, intervals, errors."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from agents.stats import share_interval
from agents.tables import TABLE_GAMES, TableResult, line_up, play_tables, ratio_interval
from dnfh_env import AgentError, ArgumentError, Game, Rules, card_points, dnfh_v0, make_agent
from dnfh_env.engine import keys_of
from dnfh_env.view import views_of

SHORT = Rules(points=card_points(hearts=0, QS=26, QH=13), target=50)
"""A shot in about two deals of five, and games of one to four deals."""
SIX = ("random", "greedy", "random", "greedy", "random", "greedy")
FIGURES = ("games", "waited", "wins", "shots", "beside_shooter", "sent")


def figures(result: TableResult) -> list[dict[str, float]]:
    return [{figure: getattr(score, figure) for figure in FIGURES} for score in result.scores]


# --- the naive twin ---------------------------------------------------------------------------------------------


def naive_table(number: int, length: int, rules: Rules, seed: int, books: list[Counter[str]]) -> int:
    """One table from docs/evaluation.md and R18, with a drawn dealer; returns how many games it played."""
    order = line_up(seed, number, len(SIX))
    seated, waiting = order[:4], order[4:]
    for k in range(length):
        game = Game(rules, seed=seed, game=number + k * 2**32)
        while not game.is_over:
            game.push(game.choose(AGENTS[SIX[seated[game.seat]]]))
        for seat, who in enumerate(seated):
            books[who]["games"] += 1
            if not game.winners:
                books[who]["wins"] += 1 / 4
            elif seat in game.winners:
                books[who]["wins"] += 1 / len(game.winners)
        for who in waiting:
            books[who]["waited"] += 1
        if game.shooter is None or rules.shot != "game":
            continue
        books[seated[game.shooter]]["shots"] += 1
        seat = (game.shooter + 1) % 4
        leaver = seated[seat]
        books[leaver]["beside_shooter"] += 1
        if waiting:
            books[leaver]["sent"] += 1
            seated[seat] = waiting.pop(0)
            if rules.leaver == "rejoins":
                waiting.append(leaver)
        elif rules.empty_line == "end":
            books[leaver]["sent"] += 1
            return k + 1
    return length


AGENTS = {name: make_agent(name, SHORT) for name in SIX}


def naive_tables(rules: Rules, games: int, seed: int, length: int) -> tuple[int, list[dict[str, float]]]:
    books: list[Counter[str]] = [Counter() for _ in SIX]
    number = played = 0
    while played < games:
        missing = games - played
        while missing > 0:
            played += naive_table(number, min(length, missing), rules, seed, books)
            missing -= length
            number += 1
    return number, [{figure: book[figure] for figure in FIGURES} for book in books]


@pytest.mark.parametrize("leaver", ["leaves", "rejoins"])
@pytest.mark.parametrize("empty_line", ["stay", "end"])
def test_tables_are_those_of_a_plain_loop(leaver: Any, empty_line: Any) -> None:
    rules = SHORT.replace(leaver=leaver, empty_line=empty_line)
    result = play_tables(SIX, rules, games=45, seed=5, table_games=7)
    tables, expected = naive_tables(rules, games=45, seed=5, length=7)
    assert result.tables == tables
    for mine, naive in zip(figures(result), expected, strict=True):
        assert mine == pytest.approx(naive)
    assert (tables > 7) == (leaver == "leaves" and empty_line == "end")


@pytest.mark.parametrize("rules", [SHORT.replace(shot="none"), SHORT.replace(max_deals=1, shot="others")], ids=str)
def test_other_endings_send_nobody_away(rules: Rules) -> None:
    result = play_tables(SIX, rules, games=12, seed=1, table_games=5)
    assert figures(result) == [pytest.approx(book) for book in naive_tables(rules, 12, 1, 5)[1]]
    assert not any(score.shots or score.beside_shooter or score.sent for score in result.scores)


def environment_table(rules: Rules, games: int, seed: int) -> tuple[Counter[int], Counter[int]]:
    """Games and wins by contestant at the table of the PettingZoo environment."""
    order = line_up(seed, 0, len(SIX))
    env = dnfh_v0.raw_env(rules, episode="table", players=len(SIX), games=games)
    env.reset(seed=seed)
    seated: dict[int, list[str]] = {}
    paid: Counter[str] = Counter()
    for agent in env.agent_iter():
        _, reward, ended, _, _ = env.last()
        paid[agent] += reward
        game = env._game
        if ended:
            env.step(None)
            continue
        seated[int(game["game"][0])] = list(env.agents)
        views = views_of(game, env._compiled, game["seat"].astype(np.int64))
        mover = SIX[order[int(agent.removeprefix("player_"))]]
        env.step(int(AGENTS[mover].act(views, keys_of(game))[0]))
    sat = Counter(agent for agents in seated.values() for agent in agents)
    names = {agent: order[int(agent.removeprefix("player_"))] for agent in env.possible_agents}
    return (
        Counter({who: sat[agent] for agent, who in names.items()}),
        Counter({who: paid[agent] + sat[agent] / 4 for agent, who in names.items()}),
    )


@pytest.mark.parametrize("table_dealer", ["random", "next"])
def test_the_first_table_is_that_of_the_environment(table_dealer: Any) -> None:
    rules = SHORT.replace(table_dealer=table_dealer)
    result = play_tables(SIX, rules, games=20, seed=3, table_games=20)
    games, wins = environment_table(rules, games=20, seed=3)
    assert [score.games for score in result.scores] == [games[who] for who in range(len(SIX))]
    assert [score.wins for score in result.scores] == pytest.approx([wins[who] for who in range(len(SIX))])
    assert sum(score.sent for score in result.scores) == 2


def test_the_next_dealer_makes_other_games() -> None:
    drawn, following = (play_tables(SIX, SHORT.replace(table_dealer=dealer), 30) for dealer in ("random", "next"))
    assert figures(drawn) != figures(following)


# --- who begins, and how long -----------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [4, 6, 9])
def test_over_as_many_tables_as_contestants_everyone_begins_everywhere_once(count: int) -> None:
    orders = [line_up(11, number, count) for number in range(2 * count)]
    assert all(sorted(order) == list(range(count)) for order in orders)
    for half in (orders[:count], orders[count:]):
        assert all(sorted(places) == list(range(count)) for places in zip(*half, strict=True))
    assert orders[0] != orders[count] or count == 4


def test_line_ups_do_not_change_with_versions() -> None:
    assert line_up(7, 0, 6) == [3, 4, 1, 0, 2, 5]


def test_games_are_complete_and_counted_out() -> None:
    told: list[int] = []
    result = play_tables(SIX, SHORT, games=24, progress=told.append)
    assert (result.games, result.tables, result.table_games, sum(told)) == (24, 3, TABLE_GAMES, 24)
    assert told == [3] * 4 + [2] * 6
    assert sum(score.games for score in result.scores) == 4 * 24
    assert sum(score.wins for score in result.scores) == pytest.approx(24)
    assert sum(score.shots for score in result.scores) == sum(score.beside_shooter for score in result.scores) > 0


def test_four_stay_together() -> None:
    result = play_tables(SIX[:4], SHORT, games=15)
    assert [(score.games, score.waited, score.sent) for score in result.scores] == [(15, 0, 0)] * 4


def test_who_never_sits_down_has_no_share() -> None:
    result = play_tables(SIX, SHORT, games=1, seed=2)
    assert sorted(score.games for score in result.scores) == [0, 0, 1, 1, 1, 1]
    assert all((score.win_share is None) == (score.games == 0) for score in result.scores)


def test_the_same_again_and_other_with_another_seed() -> None:
    once = play_tables(SIX, SHORT, games=10, seed=1)
    assert once == play_tables(SIX, SHORT, games=10, seed=1)
    assert once.scores != play_tables(SIX, SHORT, games=10, seed=2).scores


# --- intervals --------------------------------------------------------------------------------------------------


def test_with_tables_of_one_length_the_interval_is_that_of_their_shares() -> None:
    wins = np.array([3.0, 0, 1.5, 2, 0, 4])
    found, plain = ratio_interval(wins, np.full(6, 5)), share_interval(wins / 5)
    assert (found.mean, found.low, found.high, found.n) == pytest.approx((plain.mean, plain.low, plain.high, plain.n))


def test_the_interval_is_of_all_wins_over_all_games() -> None:
    wins, games = np.array([6.0, 0, 1, 0]), np.array([8, 1, 2, 0])
    found = ratio_interval(wins, games)
    assert (found.mean, found.n) == (7 / 11, 4)
    usual = 11 / 4
    padded = list(zip([*wins, 0, usual], [*games, usual, usual], strict=True))
    centre = (7 + usual) / (11 + 2 * usual)
    variance = sum((won - centre * played) ** 2 for won, played in padded) / 5 / 6 / usual**2
    assert found.low == pytest.approx(centre - 2.5706 * math.sqrt(variance), rel=1e-3)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_the_interval_has_a_width_and_stays_within_0_and_1(share: float) -> None:
    found = ratio_interval(np.full(3, 4 * share), np.full(3, 4))
    assert 0 <= found.low <= found.mean == share <= found.high <= 1 and found.low < found.high


# --- errors -----------------------------------------------------------------------------------------------------


class Breaks:
    def act(self, views: NDArray[Any], rng: NDArray[np.uint64]) -> NDArray[np.int64]:
        raise RuntimeError("broken")


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ({"contestants": SIX[:3]}, ArgumentError, "at least 4"),
        ({"contestants": "random"}, ArgumentError, "at least 4"),
        ({"games": 0}, ArgumentError, "games"),
        ({"games": 2.5}, ArgumentError, "games"),
        ({"table_games": 0}, ArgumentError, "table_games"),
        ({"seed": -1}, ArgumentError, "seed"),
        ({"contestants": (*SIX, "nobody")}, AgentError, "nobody"),
        ({"contestants": [Breaks()] * 4}, AgentError, "Breaks: act raised RuntimeError: broken"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        play_tables(**{"contestants": SIX, "games": 1} | arguments)
