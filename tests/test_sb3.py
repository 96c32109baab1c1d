"""The Stable-Baselines3 form of the seat."""

from __future__ import annotations

import copy
import pickle
import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest

pytest.importorskip("sb3_contrib")

from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.evaluation import evaluate_policy
from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported
from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecEnv, VecNormalize

from dnfh_env import Rules, make_agent
from dnfh_env.errors import DealError
from dnfh_env.sb3 import SeatVecEnv
from dnfh_env.seat_env import FACTS, SeatVectorEnv
from dnfh_env.view import VIEW

SEAT_ID = "dnfh_env:dnfh_env/Seat-v0"  # with the module, since a fresh process has not imported it
ROWS = 6


def choices(env: Any, rng: np.random.Generator) -> np.ndarray:
    """A random legal action for each row."""
    masks = get_action_masks(env)
    return (rng.random(masks.shape) * masks).argmax(axis=1)


def deals(**options: Any) -> SeatVecEnv:
    return SeatVecEnv(ROWS, **({"episode": "deal", "seed": 1} | options))


@pytest.mark.parametrize("options", [{}, {"episode": "deal", "observation": "full"}])
def test_sb3_is_content_with_the_single_env(options: dict[str, Any]) -> None:
    check_env(gymnasium.make(SEAT_ID, **options))


def test_it_is_the_vector_env_row_by_row() -> None:
    env, other = deals(), SeatVectorEnv(ROWS, episode="deal")
    assert (env.reset() == other.reset(seed=1)[0]).all()
    rng, ends = np.random.default_rng(0), 0
    for _ in range(50):
        actions = choices(env, rng)
        actions[0] = -1 if rng.random() < 0.02 else actions[0]
        observations, rewards, dones, infos = env.step(actions)
        expected, paid, terminated, truncated, told = other.step(actions)
        assert (observations == expected).all() and (rewards == paid).all()
        assert (dones == (terminated | truncated)).all()
        for row in np.flatnonzero(dones):
            assert (infos[row]["terminal_observation"] == told["final_obs"][row]).all()
            assert all(infos[row][name] == told["final_info"][name][row] for name in FACTS)
            assert infos[row]["TimeLimit.truncated"] is False
            ends += 1
        assert not any(infos[row] for row in np.flatnonzero(~dones))
    assert ends > 2 * ROWS


def test_types_are_those_sb3_expects() -> None:
    env = deals()
    assert isinstance(env, VecEnv) and env.num_envs == ROWS
    assert env.observation_space is env.observation_space and env.reset().dtype == np.float32
    observations, rewards, dones, infos = env.step(choices(env, np.random.default_rng(0)))
    assert observations.shape == (ROWS, 960) and observations.dtype == np.float32
    assert rewards.dtype == np.float32 and dones.dtype == np.bool_ and len(infos) == ROWS
    infos[0]["mine"] = 1
    assert env.step(choices(env, np.random.default_rng(0)))[0] is not observations
    assert "mine" not in infos[1]


def test_episodes_are_reported_as_by_monitor() -> None:
    env = deals()
    env.reset()
    rng, returns, lengths, seen = np.random.default_rng(0), np.zeros(ROWS), np.zeros(ROWS, int), 0
    for _ in range(60):
        _, rewards, dones, infos = env.step(choices(env, rng))
        returns += rewards
        lengths += 1
        for row in np.flatnonzero(dones):
            episode = infos[row]["episode"]
            assert (episode["r"], episode["l"]) == (returns[row], lengths[row]) and episode["t"] > 0
            assert 16 <= episode["l"] <= 17
            returns[row] = lengths[row] = 0
            seen += 1
    assert seen > 2 * ROWS


def test_a_cut_off_game_is_marked_for_bootstrapping() -> None:
    env = SeatVecEnv(ROWS, max_deals=1, seed=2)
    env.reset()
    rng, told = np.random.default_rng(0), []
    for _ in range(20):
        told += [info for info in env.step(choices(env, rng))[3] if info]
    assert told and all(info["TimeLimit.truncated"] is True and info["won"] == 0 for info in told)


def test_masks_come_in_one_array() -> None:
    env = deals()
    env.reset()
    masks = env.env_method("action_masks")
    assert masks.dtype == np.bool_ and masks.shape == (ROWS, 64) and masks.any(axis=1).all()
    assert (get_action_masks(env) == masks).all() and is_masking_supported(env)
    assert (env.env_method("action_masks", indices=[1, 4]) == masks[[1, 4]]).all()
    assert (env.env_method("action_masks", indices=2) == masks[[2]]).all()
    masks[:] = True
    assert not env.env_method("action_masks").all()
    with pytest.raises(AttributeError, match="'seed' is not 'action_masks'"):
        env.env_method("seed")


def test_attributes() -> None:
    env = deals()
    assert env.get_attr("render_mode") == [None] * ROWS and env.get_attr("num_envs", [0, 1]) == [ROWS] * 2
    assert env.has_attr("batch") and not env.has_attr("nothing")
    env.set_attr("note", 3)
    assert env.get_attr("note", 0) == [3]
    with pytest.raises(ValueError, match="indices"):
        env.set_attr("note", 3, indices=[0])
    assert env.env_is_wrapped(Monitor) == [True] * ROWS
    assert env.env_is_wrapped(gymnasium.wrappers.TimeLimit, [0]) == [False]
    env.close()


def test_seeds() -> None:
    env = deals()
    first, second = env.reset(), env.reset()
    assert (first != second).any()
    env.seed(1)
    assert (env.reset() == first).all() and (env.reset() == second).all()
    env.seed(2)
    assert (env.reset() != first).any()
    assert (deals(seed=2).reset() != first).any()
    assert (deals(seed=None).reset() != deals(seed=None).reset()).any()


def test_options_hold_for_one_episode() -> None:
    env = SeatVecEnv(2, seat=0, rules=Rules(calls=("hold",)), episode="deal", seed=1)
    suits = ["AKQJT98765432...", ".AKQJT98765432..", "..AKQJT98765432.", "...AKQJT98765432"]
    env.set_options({"hands": suits})
    observations = env.reset()
    assert (observations[0] == observations[1])[:52].all() and observations[0][:52].sum() == 13
    assert observations[0][:13].all()
    assert not env.reset()[0][:13].all()
    env.set_options([{"hands": suits}, {"dealer": 7}])
    with pytest.raises(DealError, match="dealer: 7"):
        env.reset()


def test_copies_go_on_from_where_they_are() -> None:
    env = deals()
    env.reset()
    rng = np.random.default_rng(0)
    for _ in range(9):
        env.step(choices(env, rng))
    for twin in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
        going = copy.deepcopy(env)
        for _ in range(12):
            actions = choices(going, np.random.default_rng(1))
            a, b = going.step(actions), twin.step(actions)
            assert all((x == y).all() for x, y in zip(a[:3], b[:3], strict=True))


class Watching:
    """Plays at random and notes that it is asked for legal decisions only, as `VIEW` records."""

    def __init__(self) -> None:
        self.asked = 0

    def act(self, views: Any, rng: Any) -> Any:
        assert views.dtype == VIEW and views["legal"].all()
        self.asked += len(views)
        return make_agent("random").act(views, rng)


def test_maskable_ppo_learns_on_legal_actions_alone() -> None:
    opponent = Watching()
    env = SeatVecEnv(4, opponents=opponent, episode="deal", seed=3)
    told: list[dict[str, Any]] = []
    model = MaskablePPO(
        "MlpPolicy", env, n_steps=32, batch_size=64, n_epochs=1, seed=0, policy_kwargs={"net_arch": [8]}
    )
    model.learn(256, callback=lambda local, _: told.extend(info for info in local["infos"] if info) or True)
    assert opponent.asked and len(told) >= 8 and not any(info["illegal"] for info in told)
    assert len(model.ep_info_buffer) == len(told)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # evaluate_policy warns of what reports no episodes
        mean, _ = evaluate_policy(model, env, n_eval_episodes=8)
    assert -61 < mean < 157


def test_vec_wrappers_pass_masks_on() -> None:
    env = VecNormalize(deals(), norm_obs=False)
    env.reset()
    assert is_masking_supported(env) and get_action_masks(env).shape == (ROWS, 64)
    env.step(choices(env, np.random.default_rng(0)))


def make_one(seat: int) -> Any:
    return gymnasium.make(SEAT_ID, episode="deal", seat=seat)


@pytest.mark.slow
def test_subprocesses_play_the_same_games() -> None:
    makers = [lambda seat=seat: make_one(seat) for seat in range(2)]
    apart: VecEnv = SubprocVecEnv(makers, start_method="spawn")
    try:
        together = DummyVecEnv(makers)
        for env in (apart, together):
            env.seed(5)
        assert (apart.reset() == together.reset()).all()
        rng = np.random.default_rng(0)
        for _ in range(20):
            assert (get_action_masks(apart) == get_action_masks(together)).all()
            actions = choices(together, rng)
            a, b = apart.step(actions), together.step(actions)
            assert all((x == y).all() for x, y in zip(a[:3], b[:3], strict=True))
    finally:
        apart.close()
