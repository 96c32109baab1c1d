"""The PettingZoo environment: its contract, its rewards, and the table with its waiting line."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import config
from pettingzoo.test import api_test, render_test, seed_test
from pettingzoo.utils.env_logger import EnvLogger
from pettingzoo.utils.wrappers import OrderEnforcingWrapper

from dnfh_env import Batch, Game, Rules, card_points, dnfh_v0
from dnfh_env.cards import CARD_NAMES
from dnfh_env.engine import GAME
from dnfh_env.errors import ArgumentError, DealError, DnfhError, IllegalActionError, NotationError, RulesError
from dnfh_env.notation import hand_to_string, mask_of
from dnfh_env.observation import FULL, STATE
from dnfh_env.rules import RULES
from dnfh_env.view import VIEW

Policy = Callable[[np.ndarray], int]

HOLD = Rules(calls=("hold",))
SHOTS = Rules(points=card_points(hearts=0, QS=1))
"""Whoever takes the queen of spades shoots, so that every game is one deal and ends by a shot."""
MONSTER = "AKQJ.AKQJ.AKQJ.A"
HANDS = ["T9876.T987..KQJT", MONSTER, "5432.65432.432.9", "..T98765.8765432"]
"""Seat 2 leads the two of clubs; seat 1 can take every trick by playing high."""


def play_high(mask: np.ndarray) -> int:
    """The highest rank allowed, clubs first among equals."""
    return max(np.flatnonzero(mask).tolist(), key=lambda action: (action % 13, -action))


def at_random(seed: int) -> Policy:
    rng = np.random.default_rng(seed)
    return lambda mask: int(rng.choice(np.flatnonzero(mask)))


def play(env: Any, policy: Policy, steps: int = 10**6) -> dict[str, float]:
    """Play on by ``last()`` and return what each agent got by it."""
    earned: dict[str, float] = dict.fromkeys(env.possible_agents, 0.0)
    for agent in env.agent_iter(steps):
        observation, reward, terminated, truncated, info = env.last()
        assert info == {}
        earned[agent] += reward
        env.step(None if terminated or truncated else policy(observation["action_mask"]))
    return earned


def started(seed: int = 0, options: dict[str, Any] | None = None, **arguments: Any) -> Any:
    env = dnfh_v0.env(**arguments)
    env.reset(seed=seed, options=options)
    return env


def snapshot(env: Any) -> tuple[Any, ...]:
    """All that can be seen of an environment."""
    seen = [(agent, *(part.tobytes() for part in env.observe(agent).values())) for agent in env.possible_agents]
    books = [dict(book) for book in (env.rewards, env.terminations, env.truncations, env.infos)]
    return seen, books, list(env.agents), env.agent_selection, env.last(observe=False), env.state().tobytes()


# --- PettingZoo's own tests ---------------------------------------------------------------------------------------

KINDS: list[dict[str, Any]] = [
    {},
    {"observation": "full", "reward": "points", "max_deals": 2},
    {"episode": "deal"},
    {"episode": "table", "players": 6, "games": 2},
    {"episode": "table", "players": 6, "games": 5, "rules": SHOTS},
    {"illegal": "terminate"},
]


@pytest.mark.parametrize("wrap", [dnfh_v0.env, dnfh_v0.raw_env])
@pytest.mark.parametrize("arguments", KINDS)
@pytest.mark.filterwarnings(
    # PettingZoo knows observations with a mask by the names of its own environments alone; and once the game is over
    # nobody has a legal action.
    "ignore:Observation is not a NumPy array",
    "ignore:Observation space for each agent probably should be",
    "ignore:Action mask numpy array is all zeros",
)
def test_api(wrap: Any, arguments: dict[str, Any]) -> None:
    api_test(wrap(**arguments), num_cycles=600)


@pytest.mark.parametrize("arguments", KINDS)
def test_seeds(arguments: dict[str, Any]) -> None:
    seed_test(lambda: dnfh_v0.env(**arguments))


def test_rendering(capsys: pytest.CaptureFixture[str]) -> None:
    render_test(dnfh_v0.env)
    assert "seat" not in capsys.readouterr().out  # names of players, not of seats


# --- the wrapper ------------------------------------------------------------------------------------------------

MOMENTS: dict[str, Callable[[Any], Any]] = {
    "new": lambda env: None,
    "reset in vain": lambda env: answer(lambda: env.reset(seed=-1)),
    "reset": lambda env: env.reset(seed=1),
    "in mid-trick": lambda env: (env.reset(seed=1), play(env, at_random(1), steps=13 + 22)),
    "between turns": lambda env: (env.reset(seed=1), next(iter(env.agent_iter()))),
    "ended": lambda env: (env.reset(seed=1), play(env, at_random(1), steps=65)),
    "half gone": lambda env: (env.reset(seed=1), play(env, at_random(1), steps=65 + 2)),
    "gone": lambda env: (env.reset(seed=1), play(env, at_random(1))),
}
ATTRIBUTES = (
    *("agents", "agent_selection", "rewards", "terminations", "truncations", "infos", "num_agents", "max_num_agents"),
    *("possible_agents", "metadata", "render_mode", "state_space", "observation_spaces", "action_spaces", "rules"),
    *("_cumulative_rewards", "_game", "_has_reset", "_has_updated", "nothing", "__nothing__"),
)
CALLS: dict[str, Callable[[Any], Any]] = {
    **{name: lambda env, name=name: getattr(env, name) for name in ATTRIBUTES},
    "last": lambda env: env.last(),
    "last(True)": lambda env: env.last(True),
    "last(observe=False)": lambda env: env.last(observe=False),
    "observe": lambda env: env.observe("player_1"),
    "observe nobody": lambda env: env.observe("nobody"),
    "state": lambda env: env.state(),
    "render": lambda env: env.render(),
    "step": lambda env: env.step(int(env.unwrapped.observe(env.agent_selection)["action_mask"].argmax())),
    "step twice": lambda env: (env.step(52), env.step(0)),
    "step illegally": lambda env: env.step(64),
    "step(None)": lambda env: env.step(None),
    "reset": lambda env: env.reset(seed=3),
    "reset(options)": lambda env: env.reset(seed=2, options={"dealer": 3}),
    "reset badly": lambda env: env.reset(seed=2, options={"dealer": 4}),
    "iterate": lambda env: [(agent, env.step(None)) for agent in env.agent_iter()],
    "iterate three times": lambda env: [(agent, env.reset()) for agent in env.agent_iter(3)],
    "iterate without a step": lambda env: list(env.agent_iter()),
    "iterate not": lambda env: list(env.agent_iter(0)),
    "observation_space": lambda env: env.observation_space("player_1"),
    "action_space": lambda env: env.action_space("nobody"),
    "close": lambda env: env.close(),
    "str": str,
    "class": lambda env: (isinstance(env, OrderEnforcingWrapper), type(env.unwrapped), type(env.env)),
}


def answer(call: Callable[[], Any]) -> tuple[Any, list[str]]:
    """What comes of a call, result or error, and what it logs."""
    EnvLogger.flush()
    EnvLogger.suppress_output()
    try:
        found = _comparable(call())
    except Exception as error:
        found = (type(error), str(error))
    finally:
        EnvLogger.unsuppress_output()
    said = list(EnvLogger.mqueue)
    EnvLogger.flush()
    return found, said


def _comparable(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return str(value.dtype), value.tolist()
    if isinstance(value, dict):
        return {key: _comparable(part) for key, part in value.items()}
    return [_comparable(part) for part in value] if isinstance(value, list | tuple) else value


def answers(env: Any, moment: str, name: str) -> list[Any]:
    """To a call at a moment, and to a few more after it."""
    MOMENTS[moment](env)
    calls = (name, "_has_reset", "_has_updated", "agents", "rewards", "last", "step", "iterate without a step")
    return [answer(lambda call=CALLS[name]: call(env)) for name in calls]  # type: ignore[misc]


@pytest.mark.filterwarnings("ignore:.*render. no render_mode")
@pytest.mark.parametrize("moment", MOMENTS)
def test_the_wrapper_answers_every_call_as_the_plain_one_does(moment: str) -> None:
    for name in CALLS:
        plain = OrderEnforcingWrapper(dnfh_v0.raw_env(episode="deal"))
        assert answers(dnfh_v0.env(episode="deal"), moment, name) == answers(plain, moment, name), name


def test_the_wrapper_is_the_plain_one_to_pettingzoo() -> None:
    env = started(seed=1)
    assert isinstance(env, OrderEnforcingWrapper)
    assert type(env.env) is dnfh_v0.raw_env
    assert env.unwrapped is env.env


# --- games ------------------------------------------------------------------------------------------------------


def follow_a_batch(env: Any, batch: Batch, policy: Policy, decisions: int, between: Callable[[], None]) -> None:
    """Play the row and the environment side by side; ``between`` games may reset the environment."""
    for _ in range(decisions):
        observation = env.last()[0]
        assert env.agents.index(env.agent_selection) == batch.seats[0]
        assert np.array_equal(observation["action_mask"], batch.action_masks()[0])
        assert np.array_equal(observation["observation"], batch.observe(env.unwrapped.layout.name)[0])
        action = policy(observation["action_mask"])
        step = batch.step([action])
        env.step(action)
        assert np.array_equal(np.float32([env.rewards[agent] for agent in env.agents]), step.rewards[0])
        if step.ended[0]:
            between()


@pytest.mark.parametrize("arguments", [{}, {"reward": "points", "observation": "full"}])
def test_games_are_those_of_a_batch(arguments: dict[str, Any]) -> None:
    env, batch = started(seed=11, **arguments), Batch(1, seed=11, reward=arguments.get("reward", "win"))
    games = []

    def between() -> None:
        assert all(env.terminations.values())
        games.append(len(games))
        env.reset()

    follow_a_batch(env, batch, at_random(1), 2500, between)
    assert len(games) >= 2


@pytest.mark.small
def test_deals_are_those_of_a_batch() -> None:
    rules = Rules(max_deals=1)
    env, batch = started(seed=2**63, episode="deal"), Batch(1, rules, seed=2**63)
    follow_a_batch(env, batch, at_random(2), 150, lambda: env.reset())


def test_a_table_goes_through_the_games_of_a_batch() -> None:
    rules = Rules(max_deals=1)
    env = started(seed=4, episode="table", games=50, players=5, rules=rules, reward="points")
    follow_a_batch(env, Batch(1, rules, seed=4), at_random(3), 500, lambda: None)
    assert env.agents == [f"player_{seat}" for seat in range(4)]


@pytest.mark.parametrize("reward", ["win", "points"])
def test_rewards_of_whole_games_sum_to_zero(reward: str) -> None:
    env = dnfh_v0.env(reward=reward)
    for seed in range(3):
        env.reset(seed=seed)
        earned = play(env, at_random(seed))
        assert sum(earned.values()) == pytest.approx(0, abs=1e-9)
        assert max(earned.values()) > 0
        assert not env.agents


def test_a_win_pays_three_quarters() -> None:
    earned = play(started(seed=3), at_random(0))
    assert sorted(earned.values()) == [-0.25, -0.25, -0.25, 0.75]


@pytest.mark.small
def test_the_seat_that_leads_and_wins_a_trick_is_paid_at_its_next_turn() -> None:
    env = started(options={"hands": HANDS, "dealer": 1, "call": "hold"}, rules=HOLD, episode="deal")
    game = Game.from_deal(HANDS, dealer=1, call="hold", rules=HOLD)
    before: dict[str, np.ndarray] = dict.fromkeys(env.agents, np.zeros(4))
    led = 0
    for agent in env.agent_iter(4 * 12 + 1):  # the last trick settles the shot instead
        observation, reward, _, _, _ = env.last()
        points = np.array(game.points)
        taken = points - before[agent]
        assert reward == taken.mean() - taken[env.agents.index(agent)]
        led += agent == "player_1" and reward < 0
        before[agent] = points
        game.push(play_high(observation["action_mask"]))
        env.step(game.history[-1])
    assert led >= 6


@pytest.mark.small
def test_a_shot_pays_the_shooter() -> None:
    position = {"hands": HANDS, "dealer": 1, "call": "hold", "scores": [290, 200, 0, 0]}
    points = play(started(options=position, rules=HOLD, reward="points"), play_high)
    assert points == dict(zip(points, (-52, 156, -52, -52), strict=True))
    win = play(started(options=position, rules=HOLD), play_high)
    assert win == dict(zip(win, (-0.25, 0.75, -0.25, -0.25), strict=True))


def test_a_game_cut_off_is_truncated_and_a_deal_terminated() -> None:
    env = started(max_deals=1)
    play(env, at_random(5), steps=65)
    assert set(env.truncations.values()) == {True}
    assert set(env.terminations.values()) == {False}
    assert sum(play(env, at_random(5)).values()) == 0
    env = started(episode="deal", rules=Rules(max_deals=7))
    play(env, at_random(5), steps=65)
    assert set(env.terminations.values()) == {True}
    assert set(env.truncations.values()) == {False}


def test_a_game_that_properly_ends_with_its_last_deal_is_terminated() -> None:
    env = started(options={"scores": [299, 299, 299, 299]}, max_deals=1)
    earned = play(env, at_random(5), steps=65)
    assert set(env.terminations.values()) == {True}
    assert set(env.truncations.values()) == {False}
    assert earned == dict.fromkeys(earned, 0)  # not yet: it comes with the last steps
    assert sorted(play(env, at_random(5)).values()) == [-0.25, -0.25, -0.25, 0.75]


# --- what is seen -----------------------------------------------------------------------------------------------


def test_views_are_those_of_each_seat() -> None:
    env, game = dnfh_v0.raw_env(), Game(seed=5)
    env.reset(seed=5)
    for seat, agent in enumerate(env.possible_agents):
        assert env.view(agent).tobytes() == game.view(seat).tobytes()
    with pytest.raises(ArgumentError, match="view: 'player_4' is not at the table; there are player_0, "):
        env.view("player_4")


def test_only_the_mover_has_a_mask() -> None:
    env = started(seed=1, max_deals=1)
    policy = at_random(4)
    for agent in env.agent_iter(65):
        masks = {other: env.observe(other)["action_mask"] for other in env.possible_agents}
        assert [other for other, mask in masks.items() if mask.any()] == [agent]
        env.step(policy(masks[agent]))
    assert not any(env.observe(agent)["action_mask"].any() for agent in env.possible_agents)


def test_observations_are_those_of_the_seats() -> None:
    env, game = started(seed=8), Game(seed=8)
    policy = at_random(6)
    for _ in range(200):
        for seat, agent in enumerate(env.agents):
            assert np.array_equal(env.observe(agent)["observation"], game.observe(seat))
        game.push(policy(env.last()[0]["action_mask"]))
        env.step(game.history[-1])


def test_rewards_once_read_stay_as_they_were() -> None:
    """Also where a step pays nothing, and when agents get removed."""
    env = started(seed=1, episode="deal")
    policy = at_random(1)
    seen: list[tuple[Any, Any]] = []
    while not all(env.terminations.values()):
        seen.append((env.rewards, dict(env.rewards)))
        env.step(policy(env.last()[0]["action_mask"]))
    play(env, policy)
    assert all(rewards == before for rewards, before in seen)
    assert {any(rewards.values()) for rewards, _ in seen} == {False, True}


def test_removed_agents_still_observe() -> None:
    env = started(episode="deal")
    play(env, at_random(7))
    assert env.agents == []
    for agent in env.possible_agents:
        observation = env.observe(agent)
        assert observation in env.observation_space(agent)
        assert observation["observation"].any()
        assert not observation["action_mask"].any()
    assert env.state() in env.state_space


def test_unknown_agents_do_not_observe() -> None:
    with pytest.raises(ValueError, match=r"agent: 'player_4' is not one of player_0, .* player_3"):
        started().observe("player_4")


@pytest.mark.small
def test_types_and_spaces() -> None:
    env = started(observation="full")
    for agent in env.possible_agents:
        assert env.observation_space(agent) is env.observation_space(agent)
        assert env.action_space(agent) is env.action_space(agent)
        assert env.observe(agent) in env.observation_space(agent)
    observation = env.last()[0]
    assert observation["observation"].dtype == np.float32
    assert observation["observation"].shape == (1792,)
    assert observation["action_mask"].dtype == np.int8
    assert observation["action_mask"].shape == (64,)
    assert observation["observation"] is not env.last()[0]["observation"]
    assert not np.shares_memory(observation["action_mask"], env.last()[0]["action_mask"])
    assert env.state().shape == (STATE.bits,)
    assert env.state() in env.state_space
    assert all(type(value) is float for value in env.rewards.values())
    assert all(type(value) is bool for value in (*env.terminations.values(), *env.truncations.values()))


@pytest.mark.small
def test_the_state_shows_all_hands_from_seat_0() -> None:
    env, game = started(seed=6), Game(seed=6)
    for _ in range(2):
        state = env.state()
        for place, name in enumerate(("hand", "hand of left", "hand of across", "hand of right")):
            start = STATE.offset(name)
            held = [CARD_NAMES[card] for card in np.flatnonzero(state[start : start + 52])]
            assert held == list(game.hands[place])
        game.push("300") if game.phase == "call" else game.push(game.legal_actions()[0])
        env.step(game.history[-1])


# --- copies, seeds and positions --------------------------------------------------------------------------------


@pytest.mark.parametrize("wrap", [dnfh_v0.env, dnfh_v0.raw_env])
@pytest.mark.parametrize("twin_of", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_copies_go_on_in_mid_trick(wrap: Any, twin_of: Callable[[Any], Any]) -> None:
    env = wrap(reward="points", max_deals=2)
    env.reset(seed=9)
    play(env, at_random(8), steps=13 + 22)
    twin = twin_of(env)
    raw = twin.unwrapped
    assert raw._game.dtype is GAME and raw._view.dtype is VIEW and raw._compiled.dtype is RULES  # others are slow
    before = snapshot(env)
    assert snapshot(twin) == before
    earned = play(twin, at_random(9))
    assert snapshot(env) == before  # the twin shares nothing with it
    assert play(env, at_random(9)) == earned
    env.reset()
    twin.reset()
    assert snapshot(twin) == snapshot(env)


def test_a_reset_without_a_seed_goes_on_to_other_games() -> None:
    env = started(seed=5)
    first = snapshot(env)
    env.reset()
    second = snapshot(env)
    assert second != first
    env.reset(seed=5)
    assert snapshot(env) == first
    env.reset()
    assert snapshot(env) == second


def test_without_any_seed_games_differ() -> None:
    states = set()
    for _ in range(3):
        env = dnfh_v0.env()
        env.reset()
        states.add(env.state().tobytes())
    assert len(states) == 3


@pytest.mark.parametrize("seed", [-1, 2**64, 1.5, True, "1"])
def test_bad_seeds(seed: Any) -> None:
    env = started()
    before = snapshot(env)
    with pytest.raises(ArgumentError, match="seed"):
        env.reset(seed=seed)
    assert snapshot(env) == before


def test_arguments_outlive_a_reset_and_options_do_not() -> None:
    env = started(episode="deal", rules=HOLD, observation="full", illegal="terminate")
    drawn = snapshot(env)
    env.reset(seed=0, options={"hands": HANDS, "dealer": 3, "scores": (1, 2, 3, 4), "call": "hold"})
    assert env.agent_selection == "player_2"
    assert env.observe("player_1")["observation"][:52].nonzero()[0].tolist() == [
        card for card in range(52) if card % 13 >= 9 and card not in (48, 49, 50)
    ]
    env.reset(seed=0)
    assert snapshot(env) == drawn
    env.reset()
    assert env.last()[0]["observation"].shape == (1792,)
    env.step(0)
    assert all(env.terminations.values())


@pytest.mark.small
def test_hands_may_be_given_in_four_ways() -> None:
    names = [[CARD_NAMES[card] for card in range(13 * suit, 13 * suit + 13)] for suit in range(4)]
    ids = [list(range(13 * suit, 13 * suit + 13)) for suit in range(4)]
    masks = [mask_of(cards) for cards in ids]
    texts = [hand_to_string(mask) for mask in masks]
    states = {
        started(options={"hands": hands, "dealer": 2}).state().tobytes()
        for hands in (names, ids, masks, texts, np.array(ids))
    }
    assert len(states) == 1


BAD_OPTIONS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"hands": HANDS[:3], "dealer": 0}, DealError, "expected 4, got 3"),
    ({"hands": [HANDS[0], *HANDS[:3]], "dealer": 0}, DealError, "dealt twice"),
    ({"hands": ["AKQ...", *HANDS[1:]], "dealer": 0}, DealError, "seat 0 has 3 cards"),
    ({"hands": ["AKQ", *HANDS[1:]], "dealer": 0}, NotationError, "suits"),
    ({"hands": HANDS, "dealer": 4}, DealError, "dealer: 4"),
    ({"hands": 5, "dealer": 0}, DealError, "hands"),
    ({"hands": [1.5, *HANDS[1:]], "dealer": 0}, DnfhError, "hand"),
    ({"dealer": "player_0"}, DealError, "dealer"),
    ({"scores": [0, 0, 0]}, DealError, "scores"),
    ({"scores": [0, 0, 0, 300]}, DealError, "from -[0-9]+ to 299"),
    ({"scores": 7}, DealError, "scores"),
    ({"call": "hold"}, DealError, "300, 210"),
    ({"dealer": 0, "hand": HANDS}, DealError, "'hand' is not one of hands, dealer, scores, call"),
]


@pytest.mark.parametrize(("options", "error", "message"), BAD_OPTIONS)
def test_bad_options_change_nothing(options: dict[str, Any], error: type[Exception], message: str) -> None:
    env = started(seed=3)
    play(env, at_random(1), steps=30)
    before = snapshot(env)
    with pytest.raises(error, match=message):
        env.reset(seed=1, options=options)
    assert snapshot(env) == before
    env.reset()
    follower = started(seed=3)
    follower.reset()
    assert snapshot(env) == snapshot(follower)


# --- illegal actions --------------------------------------------------------------------------------------------


@pytest.mark.small
@pytest.mark.parametrize("action", [-1, 0, 63, 64, 2**70, None, "300", 1.0, True, np.array([52])])
def test_an_illegal_action_raises_and_changes_nothing(action: Any) -> None:
    env = started(seed=1)
    before = snapshot(env)
    with pytest.raises(IllegalActionError, match=r"seat \d: action .* is illegal, allowed are: 300 210 .* kitty"):
        env.step(action)
    assert snapshot(env) == before
    env.step(52)


@pytest.mark.small
@pytest.mark.parametrize("action", [True, np.True_, 1.0, "1", 1 + 2**64, -63])
def test_what_only_looks_like_a_legal_action_is_none(action: Any) -> None:
    env = started(options={"hands": HANDS, "dealer": 1, "call": "300"})
    assert env.last()[0]["action_mask"][1]
    with pytest.raises(IllegalActionError, match=r"seat 2: .* allowed are: 2C 3C"):
        env.step(action)
    with pytest.raises(IllegalActionError, match=r"allowed are: hold"):
        started(rules=HOLD).step(-1)


@pytest.mark.parametrize("kind", [int, np.int8, np.int32, np.uint8, np.array])
def test_any_integer_is_an_action(kind: Any) -> None:
    env = started(seed=1)
    env.step(kind(52))
    assert env.observe(env.agent_selection)["action_mask"].sum() == 13


@pytest.mark.parametrize(("reward", "worst"), [("win", -0.25), ("points", -1000.0), ("equity", -1.0)])
@pytest.mark.parametrize("action", [63, -1, 64, None])
def test_an_illegal_action_may_end_the_game_at_the_cost_of_its_seat(reward: str, worst: float, action: Any) -> None:
    env = started(seed=1, illegal="terminate", reward=reward)
    play(env, at_random(2), steps=40)
    culprit = env.agent_selection
    due = {agent: env.unwrapped._cumulative_rewards[agent] for agent in env.agents if agent != culprit}
    env.step(action)
    assert all(env.terminations.values())
    assert not any(env.truncations.values())
    assert env.rewards == {agent: env.rewards[culprit] if agent == culprit else 0 for agent in env.agents}
    assert env.rewards[culprit] < worst
    assert not any(env.observe(agent)["action_mask"].any() for agent in env.agents)
    earned = play(env, at_random(2))
    assert {agent: earned[agent] for agent in due} == due
    assert not env.agents


def test_an_illegal_action_pays_nobody_what_the_trick_before_paid() -> None:
    env = started(seed=1, illegal="terminate", reward="points")
    policy = at_random(2)
    while not any(env.rewards.values()):
        env.step(policy(env.last()[0]["action_mask"]))
    culprit = env.agent_selection
    env.step(64)
    assert [agent for agent, reward in env.rewards.items() if reward] == [culprit]


def test_an_illegal_action_costs_more_than_can_be_lost() -> None:
    lost = []
    for seed in range(3):
        env = started(seed=seed, reward="points", illegal="terminate")
        lost.append(min(play(env, at_random(seed)).values()))
    env.reset(seed=0)
    env.step(0)
    assert min(env.rewards.values()) < 2 * min(lost) < 0


def test_the_dead_act_no_more() -> None:
    env = started(episode="deal")
    play(env, at_random(1), steps=65)
    with pytest.raises(ValueError, match="only valid action is None"):
        env.step(0)


def test_a_reset_amid_the_last_steps_starts_afresh() -> None:
    env = started(seed=2, episode="deal")
    play(env, at_random(1), steps=65 + 2)
    assert len(env.agents) == 2
    env.reset(seed=2)
    fresh = started(seed=2, episode="deal")
    assert snapshot(env) == snapshot(fresh)
    assert play(env, at_random(3)) == play(fresh, at_random(3))


def test_nothing_works_before_a_reset() -> None:
    with pytest.raises(AttributeError, match="before reset"):
        _ = dnfh_v0.env().agent_selection
    with pytest.raises(AssertionError, match="reset"):
        dnfh_v0.env().step(52)


def test_a_step_after_the_end_does_nothing() -> None:
    env = started(episode="deal")
    play(env, at_random(1))
    EnvLogger.suppress_output()
    env.step(0)
    EnvLogger.unsuppress_output()
    assert EnvLogger.mqueue
    EnvLogger.flush()


# --- the table --------------------------------------------------------------------------------------------------


def rigged_table(**arguments: Any) -> Any:
    """Seat 1 shoots in the first game."""
    position = {"hands": HANDS, "dealer": 1, "call": "hold"}
    return started(options=position, rules=HOLD, **({"episode": "table", "players": 6} | arguments))


def test_the_leaver_is_paid_and_gone_before_the_newcomer_plays() -> None:
    env = rigged_table(games=3)
    assert env.agents == ["player_0", "player_1", "player_2", "player_3"]
    play(env, play_high, steps=52)
    # R15: seat 1 has shot, so the player at seat 2 leaves; the others are still at the table of the ended game
    assert env.agent_selection == "player_2"
    assert env.terminations == {f"player_{n}": n == 2 for n in range(4)}
    assert env.rewards == {f"player_{n}": 0.75 if n == 1 else -0.25 for n in range(4)}
    observation, reward, terminated, truncated, _ = env.last()
    assert (reward, terminated, truncated) == (-0.25, True, False)
    assert observation["observation"].any()
    assert not observation["action_mask"].any()
    assert not env.observe("player_4")["observation"].any()
    ended = env.state()
    env.step(None)
    assert env.agents == ["player_0", "player_1", "player_4", "player_3"]
    for book in (env.rewards, env.terminations, env.truncations, env.infos):
        assert set(book) == set(env.agents)
    assert not any(env.terminations.values())
    assert not np.array_equal(env.state(), ended)
    assert env.observe("player_4")["observation"].any()
    assert not env.observe("player_2")["observation"].any()
    # what the others earned reaches them at their next turn
    earned = play(env, at_random(1), steps=1 + 12 + 8)
    assert earned == {"player_0": -0.25, "player_1": 0.75, "player_3": -0.25} | dict.fromkeys(
        ("player_2", "player_4", "player_5"), 0
    )


def test_a_copy_goes_on_before_the_leaver_has_left() -> None:
    env = rigged_table(games=3)
    play(env, play_high, steps=52)
    twin = pickle.loads(pickle.dumps(env))
    assert play(twin, at_random(1), steps=300) == play(env, at_random(1), steps=300)
    assert twin.agents == env.agents == ["player_0", "player_1", "player_4", "player_3"]


def test_the_waiting_observe_zeros() -> None:
    env = rigged_table()
    for agent in ("player_4", "player_5"):
        observation = env.observe(agent)
        assert observation in env.observation_space(agent)
        assert not any(part.any() for part in observation.values())


def test_nobody_leaves_where_nobody_waits() -> None:
    env = rigged_table(players=4, games=2)
    play(env, play_high, steps=52)
    assert env.agents == [f"player_{n}" for n in range(4)]
    assert not any(env.terminations.values())
    play(env, at_random(1), steps=20)
    assert len(env.agents) == 4


def test_a_last_game_ends_the_table_for_all_at_once() -> None:
    env = rigged_table(games=1)
    earned = play(env, play_high, steps=52)
    assert set(env.terminations.values()) == {True}
    assert env.agents == [f"player_{n}" for n in range(4)]
    for agent, reward in play(env, play_high).items():
        earned[agent] += reward
    assert earned == {f"player_{n}": {1: 0.75, 4: 0, 5: 0}.get(n, -0.25) for n in range(6)}


def seatings(env: Any, policy: Policy) -> list[list[str]]:
    """Who sits at the table: each time that it changes, until the end."""
    seen = [list(env.agents)]
    for _ in env.agent_iter():
        observation, _, terminated, truncated, _ = env.last()
        ending = [agent for agent in env.agents if env.terminations[agent] or env.truncations[agent]]
        assert len(ending) in (0, 1) or ending == env.agents
        env.step(None if terminated or truncated else policy(observation["action_mask"]))
        for book in (env.rewards, env.terminations, env.truncations, env.infos, env.unwrapped._cumulative_rewards):
            assert set(book) == set(env.agents)
        if all(env.terminations.values()):
            return seen
        if env.agents != seen[-1]:
            seen.append(list(env.agents))
    raise AssertionError("the table has ended without an end")


def test_a_line_of_two_is_used_up() -> None:
    env = started(seed=1, episode="table", players=6, games=8, rules=SHOTS)
    seen = seatings(env, at_random(1))
    assert len(seen) == 3
    for before, after, newcomer in zip(seen, seen[1:], ("player_4", "player_5"), strict=False):
        (seat,) = (seat for seat in range(4) if before[seat] != after[seat])
        assert after[seat] == newcomer


def test_an_empty_line_may_end_the_table() -> None:
    stay = started(seed=1, episode="table", players=6, games=8, rules=SHOTS)
    end = started(seed=1, episode="table", players=6, games=8, rules=SHOTS.replace(empty_line="end"))
    assert seatings(end, at_random(1)) == seatings(stay, at_random(1))
    assert _games_of(end) == 3
    assert _games_of(stay) == 8


def _games_of(env: Any) -> int:
    return env.unwrapped.games - env.unwrapped._games_left


def test_a_shot_that_wins_no_game_sends_nobody_away() -> None:
    rules = SHOTS.replace(shot="none", target=2)
    env = started(seed=1, episode="table", players=5, games=4, rules=rules)
    assert seatings(env, at_random(1)) == [["player_0", "player_1", "player_2", "player_3"]]


def first_movers(rules: Rules) -> list[int]:
    """The first dealer of each game of a table: the dealer calls, so is the first to move."""
    env = started(seed=7, episode="table", players=4, games=12, rules=rules.replace(max_deals=1))
    movers = []
    policy = at_random(7)
    for step, agent in enumerate(env.agent_iter(12 * 65)):
        if step % 65 == 0:
            movers.append(env.agents.index(agent))
        env.step(policy(env.last()[0]["action_mask"]))
    return movers


def test_the_next_first_dealer_is_drawn_or_follows() -> None:
    drawn, following = first_movers(Rules()), first_movers(Rules(table_dealer="next"))
    assert following == [(following[0] + k) % 4 for k in range(12)]
    assert drawn[0] == following[0]
    assert drawn != following


def test_the_next_dealer_deals_the_deck_of_the_game_from_the_left() -> None:
    rules = Rules(max_deals=1, table_dealer="next")
    env = started(seed=7, episode="table", games=9, rules=rules)
    turns = set()
    for number in range(9):
        drawn, dealt = Game(rules, seed=7, game=number << 32), env.unwrapped._game
        turn = int(dealt["dealer"][0]) - drawn.dealer
        assert dealt["hand"][0].tolist() == [drawn.record["hand"][0][(seat - turn) % 4] for seat in range(4)]
        assert env.agent_selection == f"player_{dealt['dealer'][0]}"
        turns.add(turn % 4)
        play(env, at_random(number), steps=65)
    assert {1, 3} <= turns


def test_a_set_position_is_for_the_first_game_of_a_table() -> None:
    env = rigged_table(players=4, games=3)
    play(env, play_high, steps=52)
    later = started(rules=HOLD)
    later.reset()
    assert np.array_equal(env.state(), later.state())


def test_the_rendered_table_names_who_waits() -> None:
    env = started(episode="table", players=6, render_mode="ansi")
    text = env.render()
    assert text.endswith("waiting  player_4 player_5")
    assert "player_3" in text


# --- arguments --------------------------------------------------------------------------------------------------


@pytest.mark.small
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"episode": "match"}, "episode: 'match' is not one of 'game', 'deal', 'table'"),
        ({"games": 3}, "games: 3 is for episode='table' alone"),
        ({"episode": "table", "games": 0}, "games: 0 is not a whole number from 1"),
        ({"max_deals": 0}, "max_deals: 0"),
        ({"episode": "deal", "max_deals": 2}, "max_deals: 2 does not go with episode='deal'"),
        ({"reward": "equity?"}, "reward: 'equity\\?' is not one of 'win', 'points'"),
        ({"episode": "deal", "reward": "win"}, "reward: 'win' needs whole games"),
        ({"players": 3}, "players: 3 is not a whole number from 4"),
        ({"players": 5}, "players: 5 are for episode='table' alone"),
        ({"players": 4.0}, "players: 4.0"),
        ({"illegal": "ignore"}, "illegal: 'ignore' is not one of 'raise', 'terminate'"),
        ({"observation": "state"}, "observation: 'state' is not one of 'compact', 'full'"),
        ({"render_mode": "rgb_array"}, "render_mode: 'rgb_array' is not one of 'human', 'ansi'"),
    ],
)
def test_bad_arguments_are_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        dnfh_v0.env(**arguments)


@pytest.mark.small
def test_a_leaver_cannot_rejoin() -> None:
    with pytest.raises(RulesError, match="leaver: 'rejoins'"):
        dnfh_v0.env(rules=Rules(leaver="rejoins"), episode="table")


def test_defaults() -> None:
    assert dnfh_v0.raw_env().reward == "win"
    assert dnfh_v0.raw_env(episode="table").reward == "win"
    assert dnfh_v0.raw_env(episode="table").games == dnfh_v0.TABLE_GAMES
    assert dnfh_v0.raw_env(episode="deal").reward == "points"
    assert str(dnfh_v0.env()) == "dnfh_v0"


@pytest.mark.skipif(config.DISABLE_JIT, reason="nothing is compiled")
def test_kernels_are_compiled_once() -> None:
    env = started(seed=1, episode="table", games=2, rules=Rules(max_deals=1, table_dealer="next"), reward="points")
    play(pickle.loads(pickle.dumps(env)), at_random(1))
    play(started(seed=1), at_random(1), steps=20)
    assert len(dnfh_v0.advance.signatures) == 1
    assert len(dnfh_v0.see.signatures) == 1


def test_picks_of_others_stay_hidden_when_an_illegal_action_ends_the_game() -> None:
    env = dnfh_v0.raw_env(illegal="terminate", observation="full")
    env.reset(seed=1, options={"call": "300"})
    for _ in range(7):
        env.step(int(env.observe(env.agent_selection)["action_mask"].argmax()))
    env.step(63)
    for agent in env.possible_agents:
        seen = [FULL.describe(i) for i in np.flatnonzero(env.observe(agent)["observation"])]
        assert not [text for text in seen if text.startswith("got from")]


def test_rules_that_are_none() -> None:
    for rules in ({}, "omnibus", 0):
        with pytest.raises(RulesError, match="rules: expected a Rules object"):
            dnfh_v0.env(rules=rules)
