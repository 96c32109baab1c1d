"""`Batch`: the same games whatever their number, rewards that add up, and errors that change nothing."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
import random
import threading
from typing import Any

import numpy as np
import pytest

from dnfh_env.agent import RandomAgent, ask
from dnfh_env.batch import Batch, Step
from dnfh_env.cards import CARD_NAMES
from dnfh_env.engine import NEXT_GAME
from dnfh_env.errors import AgentError, ArgumentError, IllegalActionError
from dnfh_env.game import Game
from dnfh_env.objective import POINTS, SHOT_VALUE, WIN, standings_of
from dnfh_env.rules import CALLS, Rules, compile_rules
from positions import ALL_BUT_THE_JACK, ALL_CLUBS, ANY_CALL, LATE_LOSER, LATE_LOSER_LEADS, SCORING, held, legal

SAMPLES = {
    "default": Rules(target=40),
    "kitty": Rules(calls=("kitty",), target=30),
    "standard": Rules.standard_hearts(target=16),
    "odd": Rules(calls=CALLS, shot="shooter", ties="play on", target=20, max_deals=2),
}
EACH_RULES = pytest.mark.parametrize("name", SAMPLES)
EACH_REWARD = pytest.mark.parametrize("reward", ["points", "win"])


def random_step(batch: Batch) -> Step:
    """A step by the agent ``"random"`` in every row."""
    return batch.step(RandomAgent().act(batch.views(), batch.keys()))


# --- the same games ---------------------------------------------------------------------------------------------


@pytest.mark.small
@EACH_RULES
def test_results_do_not_depend_on_the_number_of_rows(name: str) -> None:
    few, many = Batch(2, SAMPLES[name], seed=5), Batch(5, SAMPLES[name], seed=5)
    for _ in range(200):
        one, two = random_step(few), random_step(many)
        assert few.games.tobytes() == many.games[:2].tobytes()
        assert (one.rewards == two.rewards[:2]).all()
        assert (one.ended == two.ended[:2]).all() and (one.truncated == two.truncated[:2]).all()
        assert one.final.tobytes() == two.final[: len(one.final)].tobytes()
    assert few.games["game"].max() >= NEXT_GAME


@pytest.mark.small
@EACH_RULES
def test_each_row_plays_the_games_of_the_seed(name: str) -> None:
    """Row i plays Game(rules, seed, game=i), then game i + 2**32, decision by decision."""
    rules, batch = SAMPLES[name], Batch(2, SAMPLES[name], seed=9)
    games = [Game(rules, seed=9, game=row) for row in range(2)]
    ends = 0
    for _ in range(200):
        assert batch.games.tobytes() == b"".join(game.record.tobytes() for game in games)
        assert batch.seats.tolist() == [game.seat for game in games]
        assert batch.views().tobytes() == b"".join(game.view().tobytes() for game in games)
        assert [np.flatnonzero(row).tolist() for row in batch.action_masks()] == [g.legal_actions() for g in games]
        actions = RandomAgent().act(batch.views(), batch.keys())
        step = batch.step(actions)
        for row, action in enumerate(actions):
            games[row].push(int(action))
            assert step.ended[row] == games[row].is_over and step.truncated[row] == games[row].truncated
            if games[row].is_over:
                ends += 1
                assert step.final[step.ended[:row].sum()].tobytes() == games[row].record.tobytes()
                number = int(games[row].record["game"][0]) + int(NEXT_GAME)
                games[row] = Game(rules, seed=9, game=number)
    assert ends >= 2


@pytest.mark.small
def test_some_rows_step_as_all_do() -> None:
    one, two = Batch(6, seed=2), Batch(6, seed=2)
    for _ in range(40):
        actions = RandomAgent().act(one.views(), one.keys())
        together = one.step(actions)
        for rows in (np.array([5, 0, 2]), np.array([1, 3, 4])):
            assert two.views(rows).tobytes() == two.views()[rows].tobytes()
            assert (two.keys(rows) == two.keys()[rows]).all()
            step = two.step_rows(rows, actions[rows])
            assert (step.rewards == together.rewards[rows]).all()
        assert one.games.tobytes() == two.games.tobytes()
    assert two.step_rows(np.array([], np.int64), np.array([], np.int64)).rewards.shape == (0, 4)


@pytest.mark.small
def test_a_reset_starts_anew() -> None:
    batch = Batch(3, seed=4)
    first = batch.games.tobytes()
    batch.play("random", 50)
    batch.reset(4)
    assert batch.games.tobytes() == first != Batch(3, seed=5).games.tobytes()
    batch.reset(5)
    assert batch.games.tobytes() == Batch(3, seed=5).games.tobytes()
    assert len(batch) == 3 and Batch(3).games.tobytes() == Batch(3, seed=0).games.tobytes()


@pytest.mark.small
def test_keys_are_fresh_for_each_decision_and_row() -> None:
    batch, seen = Batch(5, seed=1), set()
    for _ in range(130):
        seen.update(batch.keys().tolist())
        random_step(batch)
    assert len(seen) == 5 * 130


# --- rewards ----------------------------------------------------------------------------------------------------


def played(hands: list[str], first: Any, last: str = "", reward: str = "points", **held_options: Any) -> Any:
    """The rewards, ``[decisions, 4]``, of a hand-built deal played through a batch of one, and its last step."""
    game = held(*hands, **held_options)
    batch = Batch(1, game.rules, reward=reward)
    batch.games[:] = game.record
    order = [*(first.split() if isinstance(first, str) else first)]
    order += [card for card in CARD_NAMES if card not in order and card not in last.split()] + last.split()
    rewards = []
    for _ in range(52):
        card = min(legal(game), key=order.index)
        game.push(card)
        step = batch.step([game.history[-1]])
        rewards.append(step.rewards[0].copy())
    return np.array(rewards, np.float64), step


@pytest.mark.small
def test_points_are_paid_trick_by_trick_to_all() -> None:
    """The mean of the table less one's own; the seat that leads a trick and takes it is paid too."""
    rewards, step = played(LATE_LOSER, LATE_LOSER_LEADS)
    tricks = rewards.reshape(13, 4, 4)
    assert (tricks[:, :3] == 0).all()
    assert tricks[0, 3].tolist() == [13 / 4 - 13, 13 / 4, 13 / 4, 13 / 4]
    assert tricks[1, 3].tolist() == [-10 / 4 + 10, -10 / 4, -10 / 4, -10 / 4]  # led and taken by seat 0
    assert rewards.sum(axis=0).tolist() == [67 / 4 - points for points in (3, 64, 0, 0)]
    assert not step.ended[0] and len(step.final) == 0


@pytest.mark.small
@pytest.mark.parametrize("scores", [(0, 0, 0, 0), (120, 80, 157, 112)])
def test_a_shot_game_counts_in_all_three_times_its_value(scores: tuple[int, ...]) -> None:
    rewards, step = played(ALL_CLUBS, SCORING, scores=scores)
    assert rewards.sum(axis=0).tolist() == [3 * SHOT_VALUE, -SHOT_VALUE, -SHOT_VALUE, -SHOT_VALUE]
    assert step.ended[0] and not step.truncated[0] and step.final["winners"].tolist() == [1]


@pytest.mark.small
@pytest.mark.parametrize("shot", ["others", "shooter", "none"])
def test_another_effect_of_a_shot_counts_as_entered(shot: Any) -> None:
    rewards, _ = played(ALL_CLUBS, SCORING, rules=ANY_CALL.replace(shot=shot, max_deals=9))
    entries = {"others": [-10, 77, 77, 77], "shooter": [-87, 0, 0, 0], "none": [67, 0, 0, 0]}[shot]
    assert rewards.sum(axis=0).tolist() == [np.mean(entries) - entry for entry in entries]


@pytest.mark.small
def test_the_last_deal_of_a_game_counts_like_any() -> None:
    rewards, step = played(ALL_BUT_THE_JACK, SCORING[:-1], "AS KS JD", scores=(233, -4, 150, 90))
    assert rewards.sum(axis=0).tolist() == [67 / 4 - points for points in (77, -10, 0, 0)]
    assert step.ended[0] and step.final["scores"][0].tolist() == [310, -14, 150, 90]


@pytest.mark.small
@pytest.mark.parametrize(
    ("scores", "changes", "expected", "truncated"),
    [
        ((297, 10, 0, 5), {}, [-0.25, -0.25, 0.75, -0.25], False),
        ((299, 290, 120, 120), {}, [-0.25, -0.25, 0.25, 0.25], False),
        ((297, 0, 200, 200), {"max_deals": 1}, [-0.25, 0.75, -0.25, -0.25], False),
        ((0, 0, 0, 0), {"max_deals": 1}, [0, 0, 0, 0], True),
        ((0, 0, 0, 0), {}, None, False),
    ],
)
def test_win_pays_the_share_less_a_quarter_at_the_end(
    scores: Any, changes: Any, expected: Any, truncated: bool
) -> None:
    rules = ANY_CALL.replace(**changes)
    rewards, step = played(LATE_LOSER, LATE_LOSER_LEADS, reward="win", scores=scores, rules=rules)
    assert (rewards[:-1] == 0).all() and rewards[-1].tolist() == (expected or [0, 0, 0, 0])
    assert (bool(step.ended[0]), bool(step.truncated[0])) == (expected is not None, truncated)


@pytest.mark.small
def test_win_pays_a_shooter_with_the_highest_score() -> None:
    rewards, _ = played(ALL_CLUBS, SCORING, reward="win", scores=(299, 0, 0, 0))
    assert rewards.sum(axis=0).tolist() == [0.75, -0.25, -0.25, -0.25]


@pytest.mark.small
@EACH_REWARD
@EACH_RULES
def test_rewards_sum_to_zero_and_to_what_the_game_brought(name: str, reward: str) -> None:
    rules, batch = SAMPLES[name], Batch(3, SAMPLES[name], seed=6, reward=reward)
    total, games = np.zeros((3, 4)), 0
    for _ in range(200):
        step = random_step(batch)
        assert (step.rewards.sum(axis=1) == 0).all()
        total += step.rewards
        for row, final in zip(np.flatnonzero(step.ended), step.final, strict=True):
            assert total[row].tolist() == expected_return(final, rules, reward)
            total[row], games = 0, games + 1
    assert games > 3


def expected_return(final: Any, rules: Rules, reward: str) -> list[float]:
    winners = [seat for seat in range(4) if int(final.winners) >> seat & 1]
    if reward == "win":
        return [(seat in winners) / len(winners) - 0.25 if winners else 0.0 for seat in range(4)]
    shot = rules.shot == "game" and final.shooter >= 0
    scores = final.scores - final.entered if shot else final.scores
    extra = [3 * SHOT_VALUE if seat == final.shooter else -SHOT_VALUE for seat in range(4)] if shot else [0] * 4
    return [float(scores.mean() - scores[seat] + extra[seat]) for seat in range(4)]


@pytest.mark.small
def test_standings_of_games_under_way() -> None:
    game = held(*LATE_LOSER, scores=(10, 20, 30, 40))
    for card in ("2C", "AC", "QC", "3C"):
        game.push(card)
    compiled = compile_rules(game.rules)
    assert standings_of(game.record, compiled, POINTS)[0].tolist() == [28.25 - total for total in (23, 20, 30, 40)]
    assert standings_of(game.record, compiled, WIN)[0].tolist() == [0, 0, 0, 0]


# --- bad input --------------------------------------------------------------------------------------------------


@pytest.mark.small
@pytest.mark.parametrize(
    ("actions", "words"),
    [
        ([52, 52, 0, 52], r"row 2, seat \d: action 0 \(2C\) is illegal, allowed are: 300 210 .*kitty$"),
        ([52, 63, 52, 52], r"row 1, seat \d: action 63 \(hold\) is illegal"),
        ([52, 52, 52, -1], r"row 3, seat \d: action -1 is illegal"),
        ([64, 52, 52, 52], r"row 0, seat \d: action 64 is illegal"),
        ([2**40, 52, 52, 52], "row 0, seat .*: action 1099511627776 is illegal"),
        (np.array([2**64 - 1] * 4, np.uint64), "row 0, seat .* is illegal"),
        ([52, 52, 52], r"actions: expected 4 whole numbers, got int64\[3\]"),
        ([[52, 52, 52, 52]], r"actions: expected 4 whole numbers, got int64\[1, 4\]"),
        (52, r"actions: expected 4 whole numbers, got int64\[\]"),
        ([52.0] * 4, "actions: expected 4 whole numbers, got float64"),
        ([True] * 4, "actions: expected 4 whole numbers, got bool"),
        ([[1], [2, 3], 1, 1], r"actions: expected a row of whole numbers, got \[\[1\], \[2, 3\]"),
        (["300"] * 4, "actions: expected 4 whole numbers, got <U3"),
        (None, "actions: expected 4 whole numbers, got object"),
    ],
)
def test_an_illegal_action_in_one_row_changes_no_row(actions: Any, words: str) -> None:
    batch = Batch(4, seed=1)
    before = batch.games.tobytes()
    with pytest.raises(IllegalActionError, match=words):
        batch.step(actions)
    assert batch.games.tobytes() == before
    batch.step([52] * 4)


@pytest.mark.small
@pytest.mark.parametrize("rows", [[4], [-1], [0, 0], [0, 1, 2, 1], [2**40]])
def test_rows_that_are_not_there_or_named_twice(rows: list[int]) -> None:
    batch = Batch(4, seed=1)
    before = batch.games.tobytes()
    with pytest.raises(IllegalActionError, match=rf"row {rows[-1]} is not one of 0 to 3, each at most once"):
        batch.step_rows(np.array(rows), [52] * len(rows))
    assert batch.games.tobytes() == before


@pytest.mark.small
def test_settings_that_are_none() -> None:
    for number in (0, -1):
        with pytest.raises(ValueError, match=f"num_games: {number} is not a whole number from 1 up"):
            Batch(number)
    with pytest.raises(ValueError, match="reward: 'gold' is not one of 'win', 'points'"):
        Batch(1, reward="gold")
    for seed in (-1, 2**64, None, 1.0):
        with pytest.raises(ArgumentError, match=r"seed: .* is not a whole number from 0 to"):
            Batch(1, seed=seed)  # type: ignore[arg-type]
    batch = Batch(2)
    before = batch.games.tobytes()
    with pytest.raises(ArgumentError):
        batch.reset(-5)
    assert batch.games.tobytes() == before


@pytest.mark.small
def test_a_broken_agent_is_named_and_the_batch_stays() -> None:
    class Broken:
        def act(self, views: Any, rng: Any) -> Any:
            return np.zeros(len(views), np.int64)

    batch = Batch(3, seed=1)
    before = batch.games.tobytes()
    with pytest.raises(AgentError, match=r"mine: action 0 \(2C\) is illegal, allowed are: 300 210"):
        ask(Broken(), batch.views(), batch.keys(), name="mine")
    assert batch.games.tobytes() == before


# --- threads and processes --------------------------------------------------------------------------------------


def digest_of_play(seed: int) -> bytes:
    """What a batch comes to after some steps of every kind."""
    batch = Batch(16, Rules(target=100), seed=seed)
    for _ in range(150):
        batch.step(RandomAgent().act(batch.views(), batch.keys()))
        batch.play("random", 2)
    return batch.games.tobytes() + batch.packed("full").tobytes() + batch.states().tobytes()


def test_two_threads_at_once_play_as_alone() -> None:
    alone = [digest_of_play(seed) for seed in range(4)]
    found: dict[int, bytes] = {}
    threads = [
        threading.Thread(target=lambda seed=seed: found.__setitem__(seed, digest_of_play(seed))) for seed in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[seed] for seed in range(4)] == alone and len(set(alone)) == 4


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_worker_processes_play_as_this_one(method: str) -> None:
    """Forked after kernels have run here, as SubprocVecEnv may, and spawned."""
    alone = [digest_of_play(seed) for seed in range(2)]
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.map_async(digest_of_play, range(2)).get(60) == alone


def test_a_batch_survives_pickling() -> None:
    batch = Batch(4, seed=7)
    batch.play("random", random.Random(1).randrange(20, 90))
    for twin in (pickle.loads(pickle.dumps(batch)), copy.deepcopy(batch)):
        assert twin.games.tobytes() == batch.games.tobytes() and twin.rules == batch.rules
        twin.play("random", 10)
        assert twin.games.tobytes() != batch.games.tobytes()
        random_step(twin)
