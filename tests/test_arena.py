"""Duplicate matches: same cards in all seatings, figures as defined, faults and interruptions."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from agents.arena import SEED, Match, evaluate
from agents.blocks import places
from agents.greedy import Greedy
from agents.heuristic import Heuristic
from agents.pages import BLOCKS_A_PAGE, Page, Unit
from agents.results import AgentCard, Result
from agents.stats import mean_interval, running_bounds, share_interval
from dnfh_env import AgentError, ArgumentError, Game, Rules
from dnfh_env.agent import Agent, RandomAgent
from dnfh_env.cards import card_id, mask_of
from dnfh_env.engine import GAME, NO_SEAT, OVER, PICK, PLAY
from dnfh_env.rules import CALLS, FIRST_CALL, compile_rules

SHOOTER_WORTH = 3 * 52 * 4 / 3
UNITS: tuple[Unit, ...] = ("deal", "game")


def play(match: Match, deals: int, games: int = 0) -> Match:
    list(match.play("deal", deals))
    list(match.play("game", games))
    return match


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


# --- exact zeros, exact opposites -------------------------------------------------------------------------------

FORMATS = [("ab", 1), ("ab", 3), ("1v3", 2), ("2v2", 2), ("field", 4)]


@pytest.mark.parametrize("name", ["greedy", "heuristic", "random"])
@pytest.mark.parametrize(("format", "count"), FORMATS)
def test_equal_agents_come_out_at_exactly_zero_in_every_block(name: str, format: str, count: int) -> None:
    match = play(Match([name] * count, name, format=format), 60, 4)
    assert not match.scores("deal").any()
    assert (match.scores("game") == 1 / 4).all()
    for result in match.results():
        assert result.edge == mean_interval(np.zeros(60))
        assert result.card_points == mean_interval(np.full(60, 67 / 4))
        assert result.win_share == share_interval(np.full(4, 1 / 4))


def test_a_difference_between_others_does_not_come_out_at_zero() -> None:
    assert evaluate("greedy", ["greedy", "greedy", "random"], deals=50, games=0).edge != mean_interval(np.zeros(50))


@pytest.mark.parametrize("format", ["1v3", "2v2"])
@pytest.mark.parametrize("pair", [("greedy", "random"), ("heuristic", "greedy"), ("random", "heuristic")])
def test_swapping_contestants_negates_the_difference_to_the_last_bit(format: str, pair: tuple[str, str]) -> None:
    here, there = (play(Match(order, format=format), 45, 5).differences() for order in (pair, pair[::-1]))
    assert [difference.figure for difference in here] == ["edge", "win_share"]
    for one, other in zip(here, there, strict=True):
        assert one.value.mean == -other.value.mean
        assert (one.value.low, one.value.high) == (-other.value.high, -other.value.low)
        assert (one.running.mean, one.running.margin) == (-other.running.mean, other.running.margin)
        assert one.pairing_factor == other.pairing_factor


def test_the_field_does_not_depend_on_the_order_in_which_it_is_named() -> None:
    names = ["greedy", "random", "heuristic", "greedy-v1"]
    here, there = (play(Match(order, format="field"), 20) for order in (names, names[::-1]))
    assert (here.scores("deal") == there.scores("deal")[:, ::-1]).all()


# --- figures ----------------------------------------------------------------------------------------------------

SHOTS: dict[str, Any] = {"against": ["greedy", "random", "greedy"], "deals": 6, "games": 0, "seed": 20}
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
    shot_shares = np.zeros(6)
    for number in range(6):
        for seat in range(4):
            edge, taken, shooter = naive_deal([line[(s - seat) % 4] for s in range(4)], number)
            edges[number, seat], points[number, seat] = edge[seat], taken[seat]
            shots += shooter == seat
            shot_shares[number] += (shooter == seat) / 4
            been_shot += shooter not in (seat, None)
    assert (shots, been_shot) == (2, 2)
    result = evaluate("random", **SHOTS)
    assert result.edge and result.card_points
    assert result.edge.mean == pytest.approx(edges.mean())
    assert result.edge.margin == pytest.approx(mean_interval(edges.mean(axis=1)).margin)
    assert result.card_points == mean_interval(points.mean(axis=1))
    assert result.shots == share_interval(shot_shares)


def naive_game(seating: list[str], number: int) -> Game:
    game = Game(seed=SEED, game=number)
    while not game.is_over:
        game.push(game.choose(seating[game.seat]))
    return game


def test_win_share_is_that_of_whole_games() -> None:
    line = ["random", "greedy", "random", "random"]  # left is not right
    shares = []
    for number in range(3):
        for seat in range(4):
            game = naive_game([line[(s - seat) % 4] for s in range(4)], number)
            shares.append((seat in game.winners) / len(game.winners))
    result = evaluate(line[0], line[1:], deals=0, games=3)
    assert result.win_share == share_interval(np.reshape(shares, (3, 4)).mean(axis=1))
    assert (result.edge, result.card_points, result.shots) == (None, None, None)


def naive_places(game: Game) -> list[float]:
    """What the definition of a finishing order says, seat by seat."""
    if game.shooter is not None and game.rules.shot == "game":
        return [0 if seat == game.shooter else 1 for seat in range(4)]
    return [-1e9 if seat in game.winners else game.scores[seat] for seat in range(4)]


@pytest.mark.slow
def test_a_field_counts_who_finished_ahead() -> None:
    names = ["greedy", "random", "heuristic", "random"]
    match = Match(names, format="field")
    list(match.play("game", 2))
    ahead = np.zeros((4, 4))
    for number in range(2):
        for lineup in permutations(range(4)):
            order = naive_places(naive_game([names[player] for player in lineup], number))
            for s, t in permutations(range(4), 2):
                ahead[lineup[s], lineup[t]] += 2 * (order[s] < order[t]) + (order[s] == order[t])
    table = match.head_to_head()
    assert table is not None and table.par == 0.5
    for i, j in permutations(range(4), 2):
        cell = table.cells[i][j]
        assert cell is not None
        assert cell.mean == pytest.approx(ahead[i, j] / (2 * 2 * 24))
    assert [table.cells[i][i] for i in range(4)] == [None] * 4


def test_finishing_orders_of_shots_ties_and_truncated_games() -> None:
    games = np.zeros(4, GAME)
    games["phase"], games["shooter"] = OVER, NO_SEAT
    games["scores"] = [310, 20, 20, 90], [310, 20, 30, 90], [50, 60, 50, 70], [77, 0, 5, 3]
    games["winners"] = [0b0110, 0b0010, 0, 0b0001]
    games["shooter"][3] = 0
    ranks = [[sorted(set(row)).index(x) for x in row] for row in places(games, compile_rules(Rules())).tolist()]
    assert ranks == [[2, 0, 0, 1], [3, 0, 1, 2], [0, 1, 0, 2], [0, 1, 1, 1]]
    games["winners"][3] = 0
    points = places(games, compile_rules(Rules(shot="none")))
    assert points[3].tolist() == [77, 0, 5, 3]


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


def test_contestants_of_one_match_score_what_they_score_alone() -> None:
    together = play(Match(["heuristic", "random"], ["greedy", "random", "greedy"]), 30, 3)
    alone = [evaluate(name, ["greedy", "random", "greedy"], deals=30, games=3) for name in ("heuristic", "random")]
    assert together.results() == tuple(alone)
    apart = together.scores("deal")[:, 0] - together.scores("deal")[:, 1]
    assert together.differences()[0].value == mean_interval(apart)


def test_two_against_two_sums_to_zero_in_every_block() -> None:
    match = play(Match(["heuristic", "random"], format="2v2"), 30, 3)
    assert (match.scores("deal").sum(axis=1) == 0).all()
    assert match.scores("game").sum(axis=1) == pytest.approx(1 / 2)


# --- what is the same in all rows -------------------------------------------------------------------------------


def test_all_seatings_have_the_same_cards() -> None:
    spy = Spy(RandomAgent())
    play(Match(spy, "greedy", seed=5), 3)
    views = np.concatenate(spy.views)
    first_picks = views[(views["phase"] == PICK) & (views["given"].max(axis=1) == 0)]
    deals = [Game(seed=5, game=number).hands for number in range(3)]
    expected = [mask_of(map(card_id, hand)) for deal in deals for hand in deal]
    assert sorted(first_picks["hand"].tolist()) == sorted(expected)


def test_all_seatings_have_the_same_seeds() -> None:
    spy = Spy(RandomAgent())
    play(Match(spy, "random", seed=5), 3)
    keys = np.concatenate(spy.keys)
    assert len(np.unique(keys)) == len(keys)  # among equals each decision of a deal comes to it once


def test_an_agent_is_asked_once_about_all_that_waits_and_never_about_what_is_forced() -> None:
    spy = Spy(Greedy())
    play(Match(spy, [spy, spy, spy]), 10)
    assert len(spy.views) <= 65
    assert [len(views) for views in spy.views][:13] == [40] * 13  # the call and twelve picks
    views = np.concatenate(spy.views)
    assert ((views["legal"] & (views["legal"] - np.uint64(1))) != 0).all()
    assert 1000 < len(views) < 40 * 65


def test_results_do_not_depend_on_how_often_one_plays_on() -> None:
    others = ["random", "greedy", "random"]
    whole = play(Match("greedy", others), 60, 7)
    parts = Match("greedy", others)
    assert sum(parts.play("deal", 7)) == 7
    assert sum(parts.play("deal", 60)) == 53
    assert sum(parts.play("game", 3)) == 3
    assert sum(parts.play("game", 7)) == 4
    assert list(parts.play("deal", 60)) == []
    assert parts.results() == whole.results()
    assert parts.behaviour() == whole.behaviour()
    assert (parts.played("deal"), parts.played("game")) == (60, 7)


def test_pages_do_not_depend_on_what_is_played_beside_them() -> None:
    match = Match(["greedy", "random"], "heuristic")
    together = match.pages("deal", 0, 100)
    assert [(page.start, page.stop) for page in together] == [(0, 20), (20, 40), (40, 60), (60, 80), (80, 100)]
    for page in together:
        (alone,) = match.pages("deal", page.start, page.stop)
        for name in ("scores", "points", "shots", "luck", "behaviour"):
            assert (getattr(alone, name) == getattr(page, name)).all()


def test_seeds_matter() -> None:
    assert evaluate("greedy", deals=20, games=0, seed=1) != evaluate("greedy", deals=20, games=0, seed=2)
    assert evaluate("greedy", deals=20, games=0, seed=1) == evaluate("greedy", deals=20, games=0, seed=1)


def test_deals_under_a_rotation_take_its_calls_in_turn() -> None:
    spy = Spy(RandomAgent())
    play(Match(spy, "greedy", Rules.standard_hearts()), 10)
    views = np.concatenate(spy.views)
    openings = views[(views["phase"] == PLAY) & (views["num_plays"] < 4)]
    calls = [FIRST_CALL + CALLS.index(call) for call in ("300", "003", "030", "hold")]
    assert set(openings["call"].tolist()) == set(calls)


# --- ending early -----------------------------------------------------------------------------------------------


def test_playing_until_an_interval_is_narrow() -> None:
    match = Match(["heuristic", "random"], "greedy")
    list(match.play("deal", 2000, until=4.0))
    apart = match.scores("deal") @ [1, -1]
    _, lows, highs = running_bounds(apart)
    widths = (highs - lows) / 2
    played, page = len(apart), BLOCKS_A_PAGE["deal"]
    assert 0 < played < 2000 and played % page == 0
    assert widths[-1] <= 4.0 < widths[played - page - 1]
    assert list(match.play("deal", 2000, until=4.0)) == []
    assert match.differences()[0].running.margin == pytest.approx(widths[-1])


class Breaks:
    """Plays at random until it is asked for the ``n``-th time."""

    def __init__(self, n: int, error: BaseException) -> None:
        self.left, self.error = n, error

    def act(self, views: NDArray[Any], rng: NDArray[np.uint64]) -> NDArray[np.int64]:
        self.left -= 1
        if self.left < 0:
            raise self.error
        return RandomAgent().act(views, rng)


def test_what_was_played_before_an_interruption_stays() -> None:
    match = Match(Breaks(100, KeyboardInterrupt()), "greedy")
    list(match.play("deal", 20))
    with pytest.raises(KeyboardInterrupt):
        list(match.play("deal", 100))
    result = match.result()
    assert result.edge is not None
    assert result.edge.n == match.played("deal") == 20


# --- agents that err --------------------------------------------------------------------------------------------


class Sometimes:
    """Greedy, but where it holds a certain card: there it raises, or chooses what is never legal."""

    def __init__(self, card: str, *, raises: bool) -> None:
        self.bad, self.raises = np.uint64(mask_of([card_id(card)])), raises

    def act(self, views: NDArray[Any], rng: NDArray[np.uint64]) -> NDArray[np.int64]:
        hit = (views["hand"] & self.bad != 0) & (views["phase"] == PLAY)
        if self.raises and hit.any():
            raise RuntimeError("no\x00idea")
        return np.where(hit, -7, Greedy().act(views, rng))


@pytest.mark.parametrize("raises", [True, False])
def test_who_errs_plays_at_random_for_the_rest_of_the_block_and_it_counts(raises: bool) -> None:
    sometimes = Sometimes("2D", raises=raises)
    match = play(Match(sometimes, "heuristic"), 60)
    faults = match.faults()
    assert len(match.scores("deal")) == 60
    assert 0 < len(faults) <= 60
    blocks = [fault.block for fault in faults]
    assert blocks == sorted(set(blocks))
    assert {fault.name for fault in faults} == {"Sometimes"}
    assert all(fault.unit == "deal" and fault.view.startswith("hand ") for fault in faults)
    if raises:
        assert all("RuntimeError: no\x00idea" in fault.message and fault.action is None for fault in faults)
    else:
        assert all("action -7" in fault.message and fault.action == -7 for fault in faults)
    clean = np.setdiff1d(np.arange(60), blocks)
    honest = play(Match("greedy", "heuristic"), 60)
    assert (match.scores("deal")[clean] == honest.scores("deal")[clean]).all()
    assert (match.scores("deal") != honest.scores("deal")).any()


@pytest.mark.parametrize("raises", [True, False])
def test_faults_do_not_depend_on_what_is_played_beside_them(raises: bool) -> None:
    match = Match(Sometimes("2D", raises=raises), "heuristic")
    together = match.pages("deal", 0, 60)
    for page in together:
        (alone,) = match.pages("deal", page.start, page.stop)
        assert (alone.scores == page.scores).all()
        here, there = ([(f.block, f.view, f.action) for f in each.faults] for each in (alone, page))
        assert here == there


def test_after_a_fault_an_agent_is_not_asked_again_in_that_block() -> None:
    class Wrong:
        asked = 0

        def act(self, views: NDArray[Any], rng: NDArray[np.uint64]) -> NDArray[np.int64]:
            self.asked += len(views)
            return np.full(len(views), 64)

    wrong = Wrong()
    match = play(Match(wrong, "greedy"), 20)
    assert wrong.asked <= 4 * 20  # at most once in each row, since rows of a block may err in the same call
    assert len(match.faults()) == 20
    random = play(Match("random", "greedy"), 20)
    assert (match.scores("deal") == random.scores("deal")).all()


@pytest.mark.parametrize("answer", [None, "x", np.zeros(3), np.zeros((2, 2), int), 1.5])
def test_answers_of_another_kind_are_faults(answer: Any) -> None:
    class Odd:
        def act(self, views: NDArray[Any], rng: NDArray[np.uint64]) -> Any:
            return answer

    match = play(Match(Odd(), "greedy"), 20)
    assert len(match.faults()) == 20
    assert "act returned" in match.faults()[0].message


class Cheat:
    """Plays the lowest card of the deck again and again, and writes into its views that it may."""

    def act(self, views: NDArray[Any], rng: NDArray[np.uint64]) -> NDArray[np.int64]:
        views["legal"] = np.uint64(2**64 - 1)
        return np.zeros(len(views), np.int64)


def test_an_agent_that_rewrites_what_is_legal_is_caught() -> None:
    with pytest.raises(AgentError, match=r"Cheat: action 0 .2C. is illegal, allowed are: 300"):
        evaluate(Cheat(), "greedy", deals=20, games=0)


def test_evaluate_raises_what_an_agent_raised() -> None:
    with pytest.raises(AgentError, match=r"Breaks: act raised KeyError: 'x' .*hand .*call "):
        evaluate(Breaks(5, KeyError("x")), deals=5, games=0)


# --- names ------------------------------------------------------------------------------------------------------


def test_names_in_results() -> None:
    result = Match(Greedy(), ["random", "greedy", RandomAgent()]).result()
    assert result == Result("Greedy", ("random", "greedy", "RandomAgent"))
    assert Match(["greedy", Greedy(), "greedy", "greedy"]).names == ("greedy", "Greedy", "greedy (2)", "greedy (3)")
    assert len(set(Match([Greedy()] * 3).names)) == 3


@pytest.mark.parametrize("others", [[], ["random"] * 2, ["random"] * 4])
def test_wrong_numbers_of_others(others: list[str]) -> None:
    with pytest.raises(AgentError, match=f"against: expected one agent, or three .* got {len(others)}"):
        Match("greedy", others)


def test_unknown_agents_and_seeds() -> None:
    with pytest.raises(AgentError, match="unknown agent 'nobody'"):
        Match("greedy", "nobody")
    with pytest.raises(ArgumentError, match="seed: -1"):
        Match("greedy", seed=-1)


def test_agents_say_what_they_are() -> None:
    assert AgentCard.of("greedy", Greedy()) == AgentCard("greedy")
    assert AgentCard.of("h", Heuristic(shot_try=3)).parameters["shot_try"] == 3
    weights = {card.name: card.weights for card in Match("learned").agent_cards()}
    assert len(weights["learned"] or "") == 64 and weights["random"] is None


# --- a match as a whole -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("format", "count"), FORMATS)
def test_a_match_of_any_format_makes_a_report(format: str, count: int) -> None:
    names = ["greedy", "random", "heuristic", "greedy-v1"][:count]
    match = play(Match(names, "random", format=format), 25, 2)
    report = match.report()
    assert report.setup == match.setup()
    assert report.setup.deals == 25 and report.setup.games == 2
    assert {behaviour.name for behaviour in report.behaviour} == set(names)
    assert [race.figure for race in report.races] == ["edge", "win_share"]
    assert all(race.blocks[-1] in (25, 2) for race in report.races)
    assert (len(report.ratings) == 4) == (format == "field")
    assert {pace.name for pace in report.paces} == set(names)
    again = play(Match.of(report.setup), 25, 2).report()
    assert again.results == report.results and again.behaviour == report.behaviour


def test_behaviour_counts_every_deal_of_games_too() -> None:
    match = Match("greedy", "random")
    list(match.play("game", 2))
    seatings = [["greedy" if s == seat else "random" for s in range(4)] for seat in range(4)]
    deals = sum(naive_game(seating, number).deal + 1 for number in range(2) for seating in seatings)
    assert match.behaviour()[0].counts["deals"] == deals


def test_more_seatings_of_the_same_hands_do_not_make_shots_more_certain() -> None:
    alone = play(Match("heuristic", "greedy"), 300).result().shots
    field = play(Match(["heuristic", "greedy", "greedy-v1", "greedy"], format="field"), 300).results()[0].shots
    assert alone and field
    assert field.margin > alone.margin / 2  # with six times as many deals, of the same cards


def test_pairing_is_a_matter_of_cards_and_not_of_one_table() -> None:
    for format, known in (("ab", True), ("1v3", True), ("2v2", False), ("field", False)):
        names = ["heuristic", "greedy", "random", "random"][: 4 if format == "field" else 2]
        factors = [d.pairing_factor for d in play(Match(names, format=format), 20).differences()]
        assert any(factor is not None for factor in factors) == known


def test_blocks_played_one_by_one_are_the_same_to_the_last_bit() -> None:
    match = Match(["random", "heuristic"], "greedy")
    (together,) = match.pages("deal", 0, 20)
    alone = [match.pages("deal", number, number + 1)[0] for number in range(20)]
    for name in ("scores", "points", "shots", "luck"):
        assert (np.concatenate([getattr(page, name) for page in alone]) == getattr(together, name)).all()
    assert together.luck.any()


class Unsure(RandomAgent):
    """Says nonsense about its probabilities where it holds the two of diamonds."""

    def probabilities(self, views: NDArray[Any]) -> NDArray[np.float64]:
        if (views["hand"] & np.uint64(mask_of([card_id("2D")])) != 0).any():
            raise RuntimeError("no idea")
        return super().probabilities(views)


def test_who_errs_about_its_probabilities_is_told() -> None:
    match = Match(Unsure(), "greedy")
    (page,) = match.pages("deal", 0, 20)
    assert page.faults and "probabilities: RuntimeError: no idea" in page.faults[0].message
    wrong = {fault.block for fault in page.faults}
    assert not page.luck[sorted(wrong), :, 1].any()
    for number in range(20):
        (alone,) = match.pages("deal", number, number + 1)
        assert (alone.scores == page.scores[number]).all() and (alone.luck == page.luck[number]).all()


def test_system_exit_is_a_fault() -> None:
    class Leaves:
        def act(self, views: NDArray[Any], rng: NDArray[np.uint64]) -> NDArray[np.int64]:
            raise SystemExit(3)

    assert len(play(Match(Leaves(), "greedy"), 20).faults()) == 20


def test_pages_have_to_follow_one_another() -> None:
    match = Match("greedy")
    pages: list[Page] = match.pages("deal", 0, 40)
    with pytest.raises(ValueError, match="deal 20: expected 0"):
        match.add(pages[1])
    with pytest.raises(ValueError, match="nothing has been played"):
        match.report()
