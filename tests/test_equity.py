"""Chances of winning: what they are at the edges, what the reward made of them pays, and whether they come true."""

from __future__ import annotations

import copy
import json
import math
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import dnfh_env
from agents.learned.rollout import Collector
from agents.learned.settings import Settings
from dnfh_env import (
    Batch,
    EquityTable,
    Rules,
    dnfh_v0,
    equity_table,
    load_equity,
    make_agent,
    use_equity,
    win_chances,
)
from dnfh_env.agent import ask
from dnfh_env.equity import _IN_USE, FORMAT, PACKAGED, WEIGHTS, table_of
from dnfh_env.errors import ArgumentError, DnfhError
from dnfh_env.objective import EQUITY, REWARDS, illegal_reward
from dnfh_env.seat_env import SeatEnv, SeatVectorEnv
from positions import ALL_CLUBS, ANY_CALL, held

STRANGE = Rules(target=150, first_trick="any")
"""Rules that nobody has fitted a table for."""


@pytest.fixture(autouse=True)
def _tables_as_packaged() -> Iterator[None]:
    """What a test puts to use is forgotten after it."""
    before = dict(_IN_USE)
    yield
    _IN_USE.clear()
    _IN_USE.update(before)


def content(rules: Rules = STRANGE, seed: int = 1) -> dict[str, Any]:
    """What the file of a table would hold, with weights of all sizes."""
    rng = np.random.default_rng(seed)
    weights = {name: rng.normal(size=shape).round(4).tolist() for name, shape in WEIGHTS.items()}
    return {"format": FORMAT, "rules": rules.to_dict(), "weights": weights, "recipe": {"seed": seed}}


def by_hand(scores: list[int], dealer: int, held: dict[str, Any]) -> list[float]:
    """The chances by the words of the module, one number at a time."""
    w, target = held["weights"], held["rules"]["target"]
    if max(scores) >= target:
        lowest = [score == min(scores) for score in scores]
        return [is_lowest / sum(lowest) for is_lowest in lowest]
    togo = 1 - max(scores) / target
    gaps = [(score - min(scores)) / target / math.sqrt(togo + 0.1) for score in scores]
    table = [*sorted(gaps)[1:], togo]
    numbers = []
    for place, gap in [*(((seat - dealer) % 4, gaps[seat]) for seat in range(4)), (4, 0.0)]:
        number = 0.0
        for k in range(len(w["out"])):
            seen = sum(weight * x for weight, x in zip(w["table"][k], table, strict=True))
            number += w["out"][k] * max(0.0, seen + w["places"][k][place] + w["own"][k] * gap)
        numbers.append(number)
    weight = [math.exp(number - max(numbers)) for number in numbers]
    return [(x + weight[4] / 4) / sum(weight) for x in weight[:4]]


def some_scores(count: int, seed: int, target: int = 300) -> np.ndarray:
    """Of every kind, ties and totals at the target among them."""
    rng = np.random.default_rng(seed)
    wide = rng.integers(-target // 2, target + 20, (count, 4))
    close = rng.integers(-50, target - 3, (count, 1)) + rng.integers(-3, 4, (count, 4))
    return np.concatenate([wide, close])


# --- the table --------------------------------------------------------------------------------------------------


@pytest.mark.small
@pytest.mark.parametrize("rules", [STRANGE, Rules()])
def test_chances_are_those_of_the_network(rules: Rules) -> None:
    held = content(rules)
    use_equity(table_of(held))
    for n, scores in enumerate(some_scores(20, seed=2, target=rules.target).tolist()):
        assert win_chances(scores, n % 4, rules).tolist() == pytest.approx(by_hand(scores, n % 4, held), abs=1e-12)


@pytest.mark.small
def test_the_packaged_table_is_that_of_the_default_rules() -> None:
    held = json.loads((PACKAGED / f"{Rules().play_digest()}.json").read_text(encoding="utf-8"))
    assert held["rules"] == Rules().to_dict()
    assert win_chances([40, 10, 0, 90], 2).tolist() == pytest.approx(by_hand([40, 10, 0, 90], 2, held), abs=1e-12)
    assert {path.stem for path in PACKAGED.iterdir()} == {
        load_equity(path).rules.play_digest() for path in PACKAGED.iterdir()
    }


@pytest.mark.small
def test_how_long_games_go_on_and_who_sits_down_does_not_matter() -> None:
    assert equity_table(Rules(max_deals=3, leaver="rejoins")) is equity_table()


@pytest.mark.small
def test_they_sum_to_one() -> None:
    found = win_chances(some_scores(100, seed=3), 1)
    assert (found >= 0).all() and np.abs(found.sum(axis=1) - 1).max() < 1e-14


@pytest.mark.small
def test_turning_the_table_turns_them() -> None:
    scores = some_scores(60, seed=4)
    for dealer in range(4):
        plain = win_chances(scores, dealer)
        for turn in range(1, 4):
            turned = win_chances(np.roll(scores, turn, axis=1), (dealer + turn) % 4)
            assert (turned == np.roll(plain, turn, axis=1)).all()


@pytest.mark.small
def test_at_the_target_the_lowest_share_the_win() -> None:
    assert win_chances([300, 0, 5, 299], 0).tolist() == [0, 1, 0, 0]
    assert win_chances([-3, 412, -3, 300], 1).tolist() == [0.5, 0, 0.5, 0]
    assert win_chances([7, 7, 300, 7], 2) == pytest.approx([1 / 3, 1 / 3, 0, 1 / 3])
    assert win_chances([300] * 4, 3).tolist() == [0.25] * 4
    assert 0 < win_chances([299, 0, 0, 0], 0)[0] < 0.1  # but one below, a shot may still win


@pytest.mark.small
def test_rows_and_single_scores_agree() -> None:
    scores = np.arange(24).reshape(2, 3, 4) * 5
    dealers = np.array([[0, 1, 2], [3, 0, 1]])
    found = win_chances(scores, dealers)
    assert found.shape == (2, 3, 4) and found.dtype == np.float64
    assert (found[1, 0] == win_chances(scores[1, 0].tolist(), 3)).all()
    assert (win_chances(scores[::-1], 2)[0, 1] == win_chances(scores[1, 1], np.uint8(2))).all()
    assert win_chances(np.zeros((0, 4), np.int32), 0).shape == (0, 4)


def grid() -> Iterator[tuple[int, int, int]]:
    """Totals of the others in a game under way."""
    steps = range(0, 300, 37)
    for left in steps:
        for across in steps:
            for right in steps:
                yield left, across, right


def test_a_lower_score_is_better() -> None:
    """A network need not be monotone: where a step counts for next to nothing, some go the wrong way, by a little."""
    own = np.arange(-60, 300, 12)
    rows = np.array([[(mine, *others) for mine in own] for others in grid()])
    for dealer in range(4):
        rises = np.diff(win_chances(rows, dealer)[:, :, 0], axis=1)
        assert (rises > 0).mean() < 0.05 and rises.max() < 0.003


def test_the_packaged_file_says_how_good_it_is() -> None:
    for path in PACKAGED.iterdir():
        about = load_equity(path).about
        for name in about["recipe"]["agents"]:
            figures = about["calibration"][name]
            assert figures["log_loss"] < figures["log_loss_logistic"] < figures["log_loss_uniform"]
            assert figures["error"] < 0.02 and figures["games"] >= 1000


FROZEN = [
    ([0, 0, 0, 0], [0.2498, 0.251, 0.2502, 0.249]),
    ([150, 150, 150, 150], [0.2493, 0.2518, 0.2506, 0.2484]),
    ([220, 220, 220, 220], [0.2503, 0.2528, 0.251, 0.2459]),
    ([250, 250, 250, 250], [0.2532, 0.2531, 0.2497, 0.244]),
    ([265, 265, 265, 265], [0.2567, 0.2504, 0.2497, 0.2433]),
    ([280, 280, 280, 280], [0.2598, 0.2495, 0.2491, 0.2416]),
    ([290, 290, 290, 290], [0.26, 0.2477, 0.2496, 0.2427]),
    ([229, 235, 240, 217], [0.2363, 0.1829, 0.1464, 0.4344]),
    ([203, 206, 189, 190], [0.1997, 0.1825, 0.3155, 0.3023]),
    ([269, 265, 279, 265], [0.2287, 0.3604, 0.0624, 0.3486]),
    ([226, 223, 212, 210], [0.1693, 0.1959, 0.3055, 0.3292]),
    ([276, 278, 271, 278], [0.2551, 0.1773, 0.3954, 0.1722]),
    ([213, 221, 205, 209], [0.2347, 0.1735, 0.3208, 0.2711]),
    ([192, 205, 184, 190], [0.2476, 0.1687, 0.32, 0.2637]),
    ([232, 215, 222, 216], [0.1505, 0.3157, 0.238, 0.2957]),
    ([188, 171, 177, 182], [0.196, 0.3127, 0.2644, 0.2268]),
    ([130, 16, 284, 212], [0.0384, 0.904, 0.0286, 0.029]),
    ([278, 8, 204, 70], [0.0317, 0.8266, 0.0341, 0.1076]),
    ([147, 266, 65, 205], [0.0849, 0.0403, 0.832, 0.0428]),
    ([29, 79, 280, 110], [0.7846, 0.1291, 0.0339, 0.0525]),
    ([139, 70, 15, 111], [0.1185, 0.2335, 0.504, 0.144]),
    ([173, 121, 220, 92], [0.0986, 0.2831, 0.07, 0.5483]),
    ([170, 219, 264, 112], [0.1307, 0.0493, 0.0397, 0.7803]),
    ([-8, 202, 143, 250], [0.8483, 0.0492, 0.0548, 0.0477]),
    ([122, 94, -1, 121], [0.1291, 0.1671, 0.5723, 0.1315]),
    ([178, 218, 244, 46], [0.0582, 0.0501, 0.0472, 0.8445]),
    ([163, 229, 60, 86], [0.0768, 0.0649, 0.5627, 0.2957]),
    ([240, 160, 137, 188], [0.0573, 0.275, 0.5459, 0.1217]),
    ([138, 284, 213, -4], [0.0312, 0.031, 0.0291, 0.9087]),
    ([25, 148, 234, 1], [0.3115, 0.0667, 0.0617, 0.5601]),
]
"""Scores where seat 0 deals, and chances: shares of the win in 400,000 games made up of deals that no table has seen.

Half of the games belong to `heuristic`, half to `learned`; their luck is below a thousandth.
"""


def misses(chances: np.ndarray) -> float:
    """Root mean square distance from the frozen sample."""
    return float(np.sqrt(((chances - np.array([known for _, known in FROZEN])) ** 2).mean()))


def test_chances_come_true() -> None:
    scores = np.array([scores for scores, _ in FROZEN])
    found = win_chances(scores, 0)
    assert misses(found) < 0.006
    for turn in range(1, 4):
        assert misses(np.roll(found, turn, axis=1)) > 0.1
    mirrored = win_chances(scores[:, [0, 3, 2, 1]], 0)[:, [0, 3, 2, 1]]
    for wrong in (*(win_chances(scores, dealer) for dealer in (1, 2, 3)), mirrored):
        assert misses(wrong) > 1.15 * misses(found)


# --- what the reward pays ---------------------------------------------------------------------------------------


def shares(game: Any) -> np.ndarray:
    wins = np.array([int(game["winners"]) >> seat & 1 for seat in range(4)])
    return wins / wins.sum()


def worth(game: Any, rules: Rules) -> np.ndarray:
    """Chances where a game has ended or begins, by the record."""
    if game["winners"]:
        return shares(game)
    return win_chances(game["scores"], (int(game["dealer"]) + (game["phase"] == 3)) % 4, rules)


LATE = {"scores": [250, 180, 270, 210]}
CUT_OFF = Rules(max_deals=2)


@pytest.mark.parametrize("agent", ["random", "heuristic"])
@pytest.mark.parametrize("rules", [Rules(), CUT_OFF, STRANGE])
def test_a_batch_pays_the_share_won_less_the_chance_at_the_start(agent: str, rules: Rules) -> None:
    use_equity(table_of(content()))
    batch, player, games = Batch(16, rules, seed=5, reward="equity"), make_agent(agent, rules), 0
    earned, before = np.zeros((16, 4)), batch.records(np.arange(16))
    while games < 16:
        last = (batch.games["phase"] == 2) & (batch.games["num_plays"] == 51)
        step = batch.step(ask(player, batch.views(), batch.keys()))
        assert not step.rewards[~last].any() and np.abs(step.rewards.sum(axis=1)).max() < 1e-6
        earned += step.rewards
        for row, final in zip(np.flatnonzero(step.ended), step.final, strict=True):
            assert earned[row] == pytest.approx(worth(final, rules) - worth(before[row], rules), abs=1e-6)
            earned[row], before[row], games = 0, batch.games[row], games + 1


@pytest.mark.small
def test_a_deal_pays_the_change_of_the_chance() -> None:
    rules = Rules(max_deals=1)
    batch, rng = Batch(2, rules, seed=8, reward="equity"), np.random.default_rng(0)
    dealers = batch.games["dealer"].astype(int)
    for _ in range(65):
        step = batch.step((rng.random((2, 64)) * batch.action_masks()).argmax(axis=1))
    assert step.ended.all() and step.truncated.all()
    expected = win_chances(step.scores, (dealers + 1) % 4) - win_chances(np.zeros((2, 4), int), dealers)
    assert step.rewards == pytest.approx(expected, abs=1e-7)


@pytest.mark.small
def test_every_deal_of_a_game_pays_its_own_change() -> None:
    use_equity(table_of(content(Rules())))
    batch = Batch(1, seed=4, reward="equity")
    batch.play("random", 64)
    scores, dealer = batch.games["scores"][0].copy(), int(batch.games["dealer"][0])
    paid = batch.step(batch.action_masks().argmax(axis=1)).rewards[0]
    assert batch.games["deal"][0] == 1 and batch.games["dealer"][0] == (dealer + 1) % 4
    expected = win_chances(batch.games["scores"][0], (dealer + 1) % 4) - win_chances(scores, dealer)
    assert paid == pytest.approx(expected, abs=1e-7) and np.abs(paid).max() > 0.01


@pytest.mark.parametrize("options", [{}, {"episode": "deal"}, {"max_deals": 2}, {"episode": "table", "games": 3}])
def test_dnfh_v0_pays_it(options: dict[str, Any]) -> None:
    env = dnfh_v0.env(reward="equity", **options)
    rng, batch = np.random.default_rng(1), Batch(1, env.unwrapped.rules, seed=9, reward="equity")
    env.reset(seed=9)
    expected, earned = np.zeros(4), np.zeros(4)
    for agent in env.agent_iter():
        seen, reward, terminated, truncated, _ = env.last()
        earned[int(agent[-1])] += reward
        if terminated or truncated:
            env.step(None)
            continue
        action = int((rng.random(64) * seen["action_mask"]).argmax())
        expected += batch.step([action]).rewards[0]
        env.step(action)
    assert earned == pytest.approx(expected, abs=1e-6) and earned.sum() == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("seat", range(4))
def test_a_seat_is_paid_it(seat: int) -> None:
    env, rng = SeatEnv(seat=seat, reward="equity"), np.random.default_rng(seat)
    env.reset(seed=6, options=LATE | {"dealer": 3})
    earned, ended = 0.0, False
    while not ended:
        _, reward, ended, _, info = env.step((rng.random(64) * env.action_masks()).argmax())
        earned += reward
    assert earned == pytest.approx(info["won"] - win_chances(LATE["scores"], 3)[seat], abs=1e-6)


def test_the_vector_form_and_that_of_sb3_pay_it() -> None:
    sb3 = pytest.importorskip("dnfh_env.sb3")
    vector, other = SeatVectorEnv(6, reward="equity", seat=2), sb3.SeatVecEnv(6, reward="equity", seat=2, seed=3)
    vector.reset(seed=3), other.reset()
    rng, earned, ended, starts = (
        np.random.default_rng(3),
        np.zeros(6),
        0,
        win_chances([0, 0, 0, 0], np.zeros(0, int)[:0].sum()),
    )
    starts = win_chances(np.zeros((6, 4), int), vector.batch.batch.games["dealer"].astype(int))[:, 2]
    while ended < 6:
        actions = (rng.random((6, 64)) * vector.action_masks()).argmax(axis=1)
        _, rewards, terminated, _, infos = vector.step(actions)
        assert (other.step(actions)[1] == rewards).all()
        earned += rewards
        for row in np.flatnonzero(terminated):
            assert earned[row] == pytest.approx(infos["final_info"]["won"][row] - starts[row], abs=1e-6)
            dealer = int(vector.batch.batch.games["dealer"][row])
            earned[row], starts[row], ended = 0, win_chances([0] * 4, dealer)[2], ended + 1


@pytest.mark.small
def test_a_shot_pays_a_whole_win() -> None:
    """Whatever the scores: nobody is at the target, and the shooter is the highest."""
    use_equity(table_of(content(ANY_CALL)))
    game = held(*ALL_CLUBS, scores=(200, 0, 10, 20))
    batch = Batch(1, ANY_CALL, reward="equity")
    batch.games[:] = game.record
    earned, dealer = np.zeros(4), int(game.record["dealer"][0])
    while not (step := batch.step(batch.action_masks().argmax(axis=1))).ended[0]:
        earned += step.rewards[0]
    assert step.final["shooter"][0] == 0 and not earned.any()
    assert step.rewards[0] == pytest.approx([1, 0, 0, 0] - win_chances([200, 0, 10, 20], dealer, ANY_CALL), abs=1e-7)


@pytest.mark.small
def test_an_illegal_action_costs_more_than_any_game() -> None:
    assert illegal_reward(Rules(), "equity") == -2
    env = SeatEnv(reward="equity", seat=1)
    env.reset(seed=1, options={"scores": [299, -100, 299, 299]})
    assert env.step(-1)[1] == -2


@pytest.mark.small
def test_copies_keep_the_table_they_were_made_with() -> None:
    rules = STRANGE.replace(max_deals=1)
    use_equity(table_of(content()))
    batch, env = Batch(3, rules, seed=2, reward="equity"), dnfh_v0.raw_env(rules, reward="equity")
    env.reset(seed=2)
    batch.play("random", 64)
    _IN_USE.clear()  # as in another process
    for twin in (pickle.loads(pickle.dumps(batch)), copy.deepcopy(batch)):
        paid = twin.step(twin.action_masks().argmax(axis=1)).rewards.tolist()
        assert paid == copy.copy(batch).step(batch.action_masks().argmax(axis=1)).rewards.tolist()
        assert np.abs(paid).min() > 0
    assert pickle.loads(pickle.dumps(env))._objective.tobytes() == env._objective.tobytes()


def test_learning_from_it() -> None:
    settings = Settings(reward="equity", opponents=("random",), tables=4, rollout=130, batch_size=65)
    settings.check()
    collector = Collector(
        settings,
        Rules(),
        1,
        lambda words: (np.zeros((len(words), 64), np.float32), np.zeros(len(words), np.float32)),
        [],
    )
    samples, _ = collector.collect()
    assert 0.01 < np.abs(samples.rewards).max() < 4


# --- bad input --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda: Batch(2, STRANGE, reward="equity"),
        lambda: dnfh_v0.env(STRANGE, reward="equity"),
        lambda: SeatEnv(rules=STRANGE, reward="equity", episode="deal"),
        lambda: gymnasium.make_vec("dnfh_env/Seat-v0", 2, rules=STRANGE, reward="equity"),
        lambda: pytest.importorskip("dnfh_env.sb3").SeatVecEnv(2, rules=STRANGE, reward="equity"),
        lambda: win_chances([0] * 4, 0, STRANGE),
        lambda: Collector(Settings(reward="equity", opponents=("random",)), STRANGE, 1, lambda words: words, []),  # type: ignore
    ],
)
def test_rules_without_a_table_are_refused(make: Any) -> None:
    with pytest.raises(ArgumentError, match=f"no table for these rules.*{STRANGE.play_digest()}.*fit_equity.py"):
        make()


@pytest.mark.small
def test_a_table_of_ones_own_is_put_to_use(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(content()))
    table = use_equity(path)
    assert isinstance(table, EquityTable) and table.about["recipe"] == {"seed": 1}
    assert equity_table(STRANGE.replace(max_deals=5)) is table
    assert win_chances([3, 4, 5, 6], 1, STRANGE).tolist() == pytest.approx(by_hand([3, 4, 5, 6], 1, content()))
    other = use_equity(table_of(content(seed=2)))
    assert equity_table(STRANGE) is other and win_chances([0] * 4, 0)[0] != win_chances([0] * 4, 0, STRANGE)[0]


BAD_FILES = [
    ("", "cannot be read"),
    ("{", "cannot be read"),
    ("[" * 100_000, "cannot be read"),
    ("[1]", "format: expected a mapping"),
    ({"format": "dnfh-equity-0"}, "format: expected"),
    ({"rules": None}, "rules: expected a mapping"),
    ({"rules": {"target": -1}}, "target: -1"),
    ({"weights": None}, "weights: expected numbers of shape .* as 'places'"),
    ({"weights": {}}, "weights: expected numbers of shape .* as 'places'"),
    ({"own": [1.0]}, r"'own' has shape \(1,\), expected \(32,\)"),
    ({"own": ["a"] * 32}, "expected numbers of shape .* as 'own'"),
    ({"own": [[1], 2]}, "expected numbers of shape .* as 'own'"),
    ({"out": [float("nan")] * 32}, "'out' has numbers that are not within"),
    ({"out": [10**400] * 32}, "expected numbers of shape .* as 'out'"),
    ({"out": [1e9] * 32}, "'out' has numbers that are not within"),
]


@pytest.mark.small
@pytest.mark.parametrize(("change", "message"), BAD_FILES)
def test_a_bad_file_says_what_is_wrong(tmp_path: Path, change: Any, message: str) -> None:
    path, held = tmp_path / "bad.json", content()
    if isinstance(change, dict):
        ((name, value),) = change.items()
        (held["weights"] if name in WEIGHTS else held)[name] = value
    path.write_text(change if isinstance(change, str) else json.dumps(held))
    with pytest.raises(ArgumentError, match=f"equity table .*bad.json: .*{message}"):
        load_equity(path)


@pytest.mark.small
def test_files_that_are_not_there_or_lack_a_part(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"none.json: cannot be read: FileNotFoundError"):
        load_equity(tmp_path / "none.json")
    for name in ("rules", "weights"):
        held = content()
        del held[name]
        with pytest.raises(DnfhError, match=f"{name}: is not there"):
            table_of(held)


@pytest.mark.small
@pytest.mark.parametrize(
    ("scores", "dealer", "message"),
    [
        ([1, 2, 3], 0, r"scores: expected 4 totals in each row, got shape \(3,\)"),
        (5, 0, "scores: expected 4 totals"),
        ([[1, 2], [3]], 0, "scores: expected whole numbers"),
        ([1.0, 2, 3, 4], 0, "scores: expected whole numbers"),
        ([0] * 4, 4, "dealer: 4 is not a seat from 0 to 3"),
        ([0] * 4, -1, "dealer: -1 is not a seat"),
        ([0] * 4, None, "dealer: expected whole numbers"),
        ([[0] * 4] * 3, [0, 1], r"dealer: expected one, or one for each row \(3,\), got \(2,\)"),
    ],
)
def test_bad_scores_and_dealers(scores: Any, dealer: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        win_chances(scores, dealer)


@pytest.mark.small
def test_rewards_by_name() -> None:
    assert REWARDS["equity"] == EQUITY and {"win_chances", "equity_table", "use_equity"} <= {*dnfh_env.__all__}
