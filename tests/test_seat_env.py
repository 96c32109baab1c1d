"""The Gymnasium seat, its vector form, and what they must agree with."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env, data_equivalence
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

import dnfh_env
from dnfh_env import Batch, Game, Rules, make_agent
from dnfh_env._bits import lowest
from dnfh_env.errors import AgentError, DealError, IllegalActionError, NotationError, RulesError
from dnfh_env.objective import illegal_reward
from dnfh_env.rules import CALLS, FIRST_CALL
from dnfh_env.seat_env import FACTS, SeatBatch, SeatEnv, SeatVectorEnv, drawn_seats
from dnfh_env.view import VIEW

SEAT_ID = "dnfh_env/Seat-v0"
PLAY_ONLY = Rules(calls=("hold",), first_lead="any club")
# Seat 0 leads the ace of clubs and takes the queen, the only club of seat 1.
HANDS = [
    "AKJT987652.432..",
    "Q.AKQJT98765.32.",
    "3..AKQJT987654.2",
    "4...AKQJT9876543",
]
LED_AND_WON = {"hands": HANDS, "dealer": 3, "call": "hold"}
ACE_OF_CLUBS, TWO_OF_CLUBS = 12, 0


class Lowest:
    """Plays the lowest legal action, and counts what it was asked."""

    def __init__(self, rules: Rules | None = None) -> None:
        self.asked: list[int] = []
        self.seen: list[Any] = []

    def act(self, views: Any, rng: Any) -> Any:
        self.asked.append(len(views))
        self.seen.append(views)
        return np.array([lowest(mask) for mask in views["legal"]], np.int64)


class Offside:
    """Never legal."""

    def __init__(self, rules: Rules | None = None) -> None:
        pass

    def act(self, views: Any, rng: Any) -> Any:
        return np.full(len(views), 99)


def choose(mask: Any, rng: np.random.Generator) -> int:
    return int(rng.choice(np.flatnonzero(mask)))


def play(env: Any, rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    """The steps of one episode of random play, from the decision that ``env`` is at."""
    ended = False
    while not ended:
        answer = env.step(choose(env.action_masks(), rng))
        ended = answer[2] or answer[3]
        yield answer


def same(a: Any, b: Any) -> bool:
    return bool(data_equivalence(a, b, exact=True))


# --- the contract of Gymnasium --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options", [{}, {"episode": "deal"}, {"observation": "full", "seat": 2, "opponents": Lowest()}]
)
def test_gymnasium_is_content(options: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    check_env(gymnasium.make(SEAT_ID, **options).unwrapped)


def test_importing_registers_once() -> None:
    import importlib

    spec = gymnasium.spec(SEAT_ID)
    importlib.reload(dnfh_env)
    assert gymnasium.spec(SEAT_ID) is spec
    assert isinstance(gymnasium.make(SEAT_ID).unwrapped, SeatEnv)
    assert isinstance(gymnasium.make_vec(SEAT_ID, num_envs=2), SeatVectorEnv)


def test_spaces_are_the_same_objects_and_the_layouts() -> None:
    env = SeatEnv()
    assert env.observation_space is env.observation_space and env.action_space is env.action_space
    assert env.observation_space.shape == (960,) and env.observation_space.dtype == np.float32
    assert SeatEnv(observation="full").observation_space.shape == (1792,)


def test_info_has_the_same_numeric_keys_always() -> None:
    env = SeatEnv(episode="deal")
    _, info = env.reset(seed=1)
    infos = [info] + [answer[4] for answer in play(env, np.random.default_rng(1))]
    for info in infos:
        assert list(info) == ["action_mask", *FACTS]
        assert info["action_mask"].dtype == np.int8 and info["action_mask"].shape == (64,)
        assert all(type(info[name]) in (int, float) for name in FACTS)
    assert all(not any(info[name] for name in FACTS if name != "seat") for info in infos[:-1])
    assert len({info["seat"] for info in infos}) == 1  # known from the start, as the rest is not
    assert all(info["action_mask"].any() for info in infos[:-1])
    assert infos[-1]["deals"] == 1 and not infos[-1]["action_mask"].any()


def test_views_are_those_of_the_seat_and_may_be_scribbled_on() -> None:
    env = SeatEnv()
    env.reset(seed=3)
    view = env.view()
    assert view.tobytes() == env.batch.batch.views()[0].tobytes() and view.dtype == VIEW
    view["hand"] = 0
    assert env.view()["hand"] != 0


def test_masks_are_those_of_the_seat_and_may_be_scribbled_on() -> None:
    env = SeatEnv(episode="deal")
    observation, info = env.reset(seed=2)
    assert same(env.action_masks(), info["action_mask"])
    observation[:] = 7
    info["action_mask"][:] = 1
    env.action_masks()[:] = 1
    assert not env.action_masks().all()
    assert env.step(choose(env.action_masks(), np.random.default_rng(0)))[0].max() == 1


def test_step_needs_an_episode() -> None:
    env = SeatEnv(episode="deal")
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(0)
    env.reset(seed=1)
    list(play(env, np.random.default_rng(0)))
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(0)
    with pytest.raises(gymnasium.error.ResetNeeded):
        SeatVectorEnv(2).step(np.zeros(2, np.int64))


def test_rendering(capsys: pytest.CaptureFixture[str]) -> None:
    ansi = SeatEnv(render_mode="ansi", rules=PLAY_ONLY, seat=0)
    ansi.reset(seed=1, options=LED_AND_WON)
    shown = ansi.render()
    assert isinstance(shown, str) and "AKJT987652" in shown and "AKQJT9876543" not in shown
    human = SeatEnv(render_mode="human", rules=PLAY_ONLY, seat=0)
    human.reset(seed=1, options=LED_AND_WON)
    assert capsys.readouterr().out == shown + "\n"
    assert SeatEnv().render() is None and SeatVectorEnv(2).render() is None
    rows = SeatVectorEnv(2, render_mode="ansi", rules=PLAY_ONLY, seat=0)
    rows.reset(seed=1, options=LED_AND_WON)
    assert rows.render() == (shown, shown)


# --- what was asked for and cannot be -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"reward": "win", "episode": "deal"}, ValueError, "needs whole games"),
        ({"reward": "edge"}, ValueError, "'edge' is not one of 'win', 'points'"),
        ({"episode": "table"}, ValueError, "'table' is not one of 'game', 'deal'"),
        ({"episode": "deal", "max_deals": 2}, ValueError, "max_deals"),
        ({"max_deals": 0}, RulesError, "max_deals: 0"),
        ({"observation": "pixels"}, ValueError, "'compact', 'full'"),
        ({"seat": 4}, DealError, "seat: 4"),
        ({"opponents": "nobody"}, AgentError, "nobody"),
        ({"opponents": ["random", "random"]}, ValueError, "got 2"),
        ({"opponents": [1, 2, 3]}, AgentError, "has no method act"),
        ({"colour": "red"}, TypeError, "unknown option 'colour'"),
        ({"render_mode": "rgb_array"}, ValueError, "'ansi'"),
    ],
)
def test_bad_arguments_say_what_is_allowed(options: dict[str, Any], error: type[Exception], message: str) -> None:
    for make in (SeatEnv, SeatVectorEnv):
        with pytest.raises(error, match=message):
            make(**options)


def test_an_opponent_that_errs_is_named() -> None:
    env = SeatEnv(opponents=["random", Offside(), "random"], seat=0)
    with pytest.raises(AgentError, match=r"opponent Offside \(across\).*99"):
        for seed in range(3):
            env.reset(seed=seed)
            for _ in play(env, np.random.default_rng(0)):
                pass


# --- opponents ------------------------------------------------------------------------------------------------------


@pytest.mark.small
def test_an_agent_is_asked_once_for_all_rows() -> None:
    agent = Lowest()
    seats = SeatBatch(32, opponents=agent, episode="deal", seat=0)
    seats.reset(1)
    calls = len(agent.asked)
    assert calls <= 16 and max(agent.asked) > 16  # one seat after another: call and picks before the learner's
    seats.step([lowest(mask) for mask in seats.views["legal"]])
    assert len(agent.asked) <= calls + 12


@pytest.mark.small
def test_opponents_sit_left_across_right() -> None:
    agents = [Lowest(), Lowest(), Lowest()]
    env = SeatEnv(opponents=agents, rules=PLAY_ONLY, seat=0)
    env.reset(seed=1, options=LED_AND_WON)
    for agent in agents:
        agent.seen.clear()
    env.step(ACE_OF_CLUBS)
    assert [int(agent.seen[0]["num_plays"][0]) for agent in agents] == [1, 2, 3]
    for agent, hand in zip(agents, HANDS[1:], strict=True):
        assert int(agent.seen[0]["hand"][0]) == dnfh_env.notation.string_to_hand(hand)


def test_opponents_by_name_object_and_path() -> None:
    def returns(opponents: Any) -> list[float]:
        env = SeatEnv(opponents=opponents, episode="deal", seat=1)
        env.reset(seed=5)
        return [answer[1] for answer in play(env, np.random.default_rng(3))]

    lowest_of_all = returns(Lowest())
    assert returns([Lowest(), Lowest(), Lowest()]) == lowest_of_all
    assert returns(f"{__name__}:Lowest") == lowest_of_all
    assert returns("random") == returns(make_agent("random")) != lowest_of_all


def test_make_vec_keeps_the_object() -> None:
    agent = Lowest()
    env = gymnasium.make_vec(SEAT_ID, num_envs=3, opponents=agent)
    env.reset(seed=0)
    assert agent.asked


# --- one game, whoever plays it -------------------------------------------------------------------------------------


def seat_of(row: int, seed: int) -> int:
    """The seat that is drawn for the first game of a row."""
    return int(drawn_seats(Batch(row + 1, seed=seed).games)[row])


def in_batch(row: int, seed: int, options: dict[str, Any], rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    """What a seat is shown and paid in a row of a `Batch`, whose other seats play ``"random"``."""
    rules = Rules(max_deals=1) if options.get("episode") == "deal" else Rules(max_deals=options.get("max_deals"))
    batch = Batch(row + 1, rules, seed, options["reward"])
    seat, rows, paid, others = seat_of(row, seed), np.array([row]), 0.0, make_agent("random")
    acted = ended = False
    while not ended:
        mine = batch.seats[row] == seat
        if mine:
            if acted:
                yield batch.observe()[row], batch.action_masks()[row], paid, False
            paid, acted, action = 0.0, True, choose(batch.action_masks()[row], rng)
        else:
            action = int(others.act(batch.views(rows), batch.keys(rows))[0])
        step = batch.step_rows(rows, [action])
        paid += step.rewards[0, seat]
        ended = bool(step.ended[0])
    final = Game._at(step.final, rules)
    yield final.observe(seat), np.zeros(64, np.int8), paid, True


AGREEING = [
    {"episode": "deal", "reward": "points"},
    {"episode": "game", "reward": "win", "max_deals": 3},
    {"episode": "game", "reward": "points", "max_deals": 2},
    {"episode": "game", "reward": "equity", "max_deals": 2},
]


@pytest.mark.small
@pytest.mark.parametrize("options", AGREEING[:2])
@pytest.mark.parametrize("seed", range(3))
def test_seat_is_row_0_of_a_batch(options: dict[str, Any], seed: int) -> None:
    env = SeatEnv(**options)
    env.reset(seed=seed)
    expected = in_batch(0, seed, options, np.random.default_rng(seed))
    for answer, (observation, mask, paid, ended) in zip(play(env, np.random.default_rng(seed)), expected, strict=True):
        assert (answer[0] == observation).all() and (answer[4]["action_mask"] == mask).all()
        assert answer[1] == paid and (answer[2] or answer[3]) == ended
    assert answer[4]["seat"] == seat_of(0, seed)


@pytest.mark.parametrize("options", AGREEING)
def test_each_row_of_the_vector_env_is_that_row_of_a_batch(options: dict[str, Any]) -> None:
    count, seed = 5, 3
    env = SeatVectorEnv(count, **options)
    env.reset(seed=seed)
    rngs = [np.random.default_rng(row) for row in range(count)]
    expected = [in_batch(row, seed, options, np.random.default_rng(row)) for row in range(count)]
    open_rows = set(range(count))
    while open_rows:
        masks = env.action_masks()
        observations, rewards, terminated, truncated, infos = env.step(
            np.array([choose(masks[row], rngs[row]) for row in range(count)])
        )
        for row in sorted(open_rows):
            observation, mask, paid, ended = next(expected[row])
            seen = infos["final_obs"][row] if ended else observations[row]
            shown = infos["final_info"]["action_mask"] if ended else infos["action_mask"]
            assert (seen == observation).all() and (shown[row] == mask).all() and rewards[row] == paid
            assert (terminated[row] or truncated[row]) == ended
            open_rows -= {row} if ended else set()


def test_a_row_does_not_depend_on_how_many_there_are() -> None:
    few, many = SeatVectorEnv(3, episode="deal"), SeatVectorEnv(11, episode="deal")
    assert same(few.reset(seed=9)[0], many.reset(seed=9)[0][:3])
    rng = np.random.default_rng(0)
    for _ in range(60):  # several episodes of each row
        actions = np.array([choose(mask, rng) for mask in many.action_masks()])
        for a, b in zip(few.step(actions[:3])[:4], many.step(actions)[:4], strict=True):
            assert same(a, b[:3])


@pytest.mark.parametrize("options", [{"episode": "deal"}, {"max_deals": 2, "reward": "points"}])
def test_vector_env_speaks_as_gymnasiums_own(options: dict[str, Any]) -> None:
    """One row, against `SyncVectorEnv` over the single environment: everything equal, illegal actions too."""
    own = gymnasium.make_vec(
        SEAT_ID,
        vectorization_mode="sync",
        vector_kwargs={"autoreset_mode": AutoresetMode.SAME_STEP},
        **options,
    )
    ours = gymnasium.make_vec(SEAT_ID, **options)
    assert ours.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    assert ours.observation_space == own.observation_space and ours.action_space == own.action_space
    answer = ours.reset(seed=4)
    assert same(answer, own.reset(seed=4))
    rng, ends = np.random.default_rng(4), 0
    for t in range(150):
        actions = np.array([63 if t % 40 == 39 else choose(answer[-1]["action_mask"][0], rng)])
        answer, other = ours.step(actions), own.step(actions)
        for a, b in zip(answer, other, strict=True):
            assert same(a.astype(np.float64), b.astype(np.float64)) if a is answer[1] else same(a, b)
        ends += int(answer[2][0] or answer[3][0])
    assert ends >= 3


@pytest.mark.parametrize("options", [{"episode": "deal"}, {"max_deals": 2}])
def test_seat_is_the_aec_game(options: dict[str, Any]) -> None:
    from dnfh_env import dnfh_v0

    seat_env, table = SeatEnv(opponents=Lowest(), **options), dnfh_v0.env(**options)
    for seed in range(3):
        observation, info = seat_env.reset(seed=seed)
        table.reset(seed=seed)
        agent = table.possible_agents[seat_of(0, seed)]
        rng, reward, ended, moved = np.random.default_rng(seed), 0.0, False, False
        for mover in table.agent_iter():
            seen, paid, terminated, truncated, _ = table.last()
            over = terminated or truncated
            if mover == agent:
                assert (seen["observation"] == observation).all()
                assert (seen["action_mask"] == info["action_mask"]).all()
                assert over == ended and (not moved or paid == reward)
            action = None if over else int(np.flatnonzero(seen["action_mask"])[0])
            if mover == agent and not over:
                action, moved = choose(seen["action_mask"], rng), True
                observation, reward, *ends, info = seat_env.step(action)
                ended = any(ends)
            table.step(action)
        assert ended


# --- rewards --------------------------------------------------------------------------------------------------------


@pytest.mark.small
def test_a_trick_led_and_won_is_paid_to_its_seat() -> None:
    env = SeatEnv(opponents=Lowest(), rules=PLAY_ONLY, seat=0, reward="points")
    env.reset(seed=0, options=LED_AND_WON)
    assert env.step(ACE_OF_CLUBS)[1] == 13 / 4 - 13  # the queen of clubs


@pytest.mark.small
def test_a_trick_led_and_lost_is_paid_to_its_seat() -> None:
    env = SeatEnv(opponents=Lowest(), rules=PLAY_ONLY, seat=0, reward="points")
    env.reset(seed=0, options=LED_AND_WON)
    assert env.step(TWO_OF_CLUBS)[1] == 13 / 4  # seat 1 takes it with the queen, and leads on to seat 0
    assert env.batch.views["num_plays"][0] == 7


def test_points_follow_the_tricks_between_two_decisions() -> None:
    env = SeatEnv(episode="deal", seat=3)
    env.reset(seed=11)
    before = env.batch.views["points"][0].astype(float)
    answers = []
    for answer in play(env, np.random.default_rng(11)):
        answers.append(answer)
        if not answer[2]:
            after = env.batch.views["points"][0].astype(float)
            assert answer[1] == (after - before).mean() - (after - before)[0]
            before = after
    info = answers[-1][4]
    assert info["shot"] == 0 and sum(answer[1] for answer in answers) == 67 / 4 - info["card_points"]


@pytest.mark.parametrize("seed", range(4))
def test_a_game_pays_the_share_of_the_win_at_its_end(seed: int) -> None:
    env = SeatEnv()
    env.reset(seed=seed)
    *before, last = play(env, np.random.default_rng(seed))
    assert not any(answer[1] for answer in before)
    assert last[2] and not last[3] and last[1] == last[4]["won"] - 0.25
    assert last[4]["deals"] > 1


def test_the_facts_are_those_of_the_game() -> None:
    """Wins, scores and shots over many deals add up to what the four seats of such games share."""
    seats = SeatBatch(64, max_deals=4)
    seats.reset(1)
    rng, ends = np.random.default_rng(1), 0
    while ends < 100:
        step = seats.step([choose(mask, rng) for mask in seats.action_masks()])
        ends += len(step.rows)
        facts = step.facts
        assert (facts["card_points"] == step.views["points"][:, 0]).all()
        assert (facts["score"] == step.views["scores"][:, 0]).all()
        assert (step.truncated[step.rows] == ((facts["deals"] == 4) & (step.rewards[step.rows] == 0))).all()
        shot_game = facts["shot"] != 0
        assert (step.terminated[step.rows] == shot_game).all()  # four deals of 67 points reach no 300 here
        assert (facts["won"] == (facts["shot"] == 1)).all()


def test_a_shot_is_told_to_the_shooter_and_to_the_shot() -> None:
    suits = ["AKQJT98765432...", ".AKQJT98765432..", "..AKQJT98765432.", "...AKQJT98765432"]
    for seat, expected in ((0, (1, 1.0, 3 * 52.0)), (2, (-1, 0.0, -52.0))):
        env = SeatEnv(opponents=Lowest(), rules=PLAY_ONLY, episode="deal", seat=seat)
        env.reset(seed=0, options={"hands": suits, "dealer": 1, "call": "hold"})
        answers = list(play(env, np.random.default_rng(0)))
        info = answers[-1][4]
        assert (info["shot"], info["won"], sum(answer[1] for answer in answers)) == expected
        assert answers[-1][2]


@pytest.mark.parametrize(
    ("options", "terminated", "deals"), [({"episode": "deal"}, True, 1), ({"max_deals": 3}, False, 3)]
)
def test_how_an_episode_ends(options: dict[str, Any], terminated: bool, deals: int) -> None:
    env = SeatEnv(**options)
    env.reset(seed=1)
    *_, last = play(env, np.random.default_rng(1))
    assert last[2:4] == (terminated, not terminated) and last[4]["deals"] == deals


# --- illegal actions ------------------------------------------------------------------------------------------------


@pytest.mark.small
@pytest.mark.parametrize("action", [-1, 64, 63, 51, 10**12, np.int64(62), np.array(61), np.uint64(2**64 - 1)])
def test_an_illegal_action_ends_the_episode(action: Any) -> None:
    for options in ({}, {"episode": "deal"}):
        env = SeatEnv(opponents=Lowest(), rules=PLAY_ONLY, seat=0, **options)
        before, info = env.reset(seed=0, options=LED_AND_WON)
        after, reward, terminated, truncated, told = env.step(action)
        assert terminated and not truncated and told["illegal"] == 1 and told["deals"] == 0
        assert reward == illegal_reward(env.batch.batch.rules, env.batch.reward)
        assert info["action_mask"].any() and not told["action_mask"].any() and not env.action_masks().any()
        assert same(before[:52], after[:52])  # the hand is still seen
        env.reset()
        assert env.step(choose(env.action_masks(), np.random.default_rng(0)))[4]["illegal"] == 0


@pytest.mark.parametrize("rules", [Rules(), Rules.standard_hearts(), Rules.omnibus()])
@pytest.mark.parametrize("options", [{"episode": "deal"}, {"reward": "points"}, {"reward": "win"}])
def test_illegal_is_worse_than_anything_legal(rules: Rules, options: dict[str, Any]) -> None:
    seats = SeatBatch(200, rules=rules, **options)
    seats.reset(3)
    rng, returns, results = np.random.default_rng(3), np.zeros(200), []
    while len(results) < 200:
        masks = seats.action_masks()
        step = seats.step((rng.random(masks.shape) * masks).argmax(axis=1))
        returns += step.rewards
        results += returns[step.rows].tolist()
        returns[step.rows] = 0
    assert max(results) + seats.illegal_reward < min(results)


@pytest.mark.parametrize("action", [None, 1.5, "AC", [1], True])
def test_what_is_no_action_at_all_raises(action: Any) -> None:
    env = SeatEnv()
    env.reset(seed=0)
    with pytest.raises(IllegalActionError, match="expected 1 whole numbers"):
        env.step(action)


def test_an_illegal_action_ends_its_row_alone() -> None:
    env, other = SeatVectorEnv(4, episode="deal"), SeatVectorEnv(4, episode="deal")
    env.reset(seed=2), other.reset(seed=2)
    actions = np.array([choose(mask, np.random.default_rng(0)) for mask in env.action_masks()])
    expected = other.step(actions)
    actions[2] = -5
    observations, rewards, terminated, _, infos = env.step(actions)
    assert terminated.tolist() == [False, False, True, False]
    assert infos["final_info"]["illegal"].tolist() == [0, 0, 1, 0] and infos["_final_info"].tolist() == [0, 0, 1, 0]
    legal = [0, 1, 3]
    assert same(observations[legal], expected[0][legal]) and same(rewards[legal], expected[1][legal])
    assert infos["action_mask"].any(axis=1).all()


# --- starting -------------------------------------------------------------------------------------------------------


def start(env: Any, **arguments: Any) -> bytes:
    return bytes(env.reset(**arguments)[0].tobytes())


@pytest.mark.parametrize("make", [SeatEnv, lambda **options: SeatVectorEnv(2, **options)])
def test_a_seed_begins_with_its_first_game_and_goes_on(make: Callable[..., Any]) -> None:
    env, other = make(episode="deal"), make(episode="deal")
    games = [start(env, seed=7), start(env), start(env)]
    assert len(set(games)) == 3
    assert [start(other, seed=7), start(other), start(other)] == games
    assert start(env, seed=7) == games[0] and start(env, seed=8) != games[0]


def test_the_next_game_comes_next_after_an_end_too() -> None:
    finished, left = SeatEnv(episode="deal"), SeatEnv(episode="deal")
    finished.reset(seed=7), left.reset(seed=7)
    list(play(finished, np.random.default_rng(0)))
    assert start(finished) == start(left)
    finished.step(-1)
    assert start(finished) == start(left)
    assert int(finished.batch.batch.games["game"][0]) == 2 << 32


def test_without_a_seed_the_first_game_is_drawn_by_chance() -> None:
    assert start(SeatEnv()) != start(SeatEnv())
    assert start(SeatVectorEnv(2)) != start(SeatVectorEnv(2))


@pytest.mark.small
def test_the_seat_is_drawn_for_each_game_unless_given() -> None:
    games = Batch(1000, seed=5).games
    counts = np.bincount(drawn_seats(games), minlength=4)
    assert (abs(counts - 250) < 55).all()  # four standard deviations
    assert (drawn_seats(games[:7]) == drawn_seats(games)[:7]).all()
    by_dealer = np.bincount((drawn_seats(games) - games["dealer"]) % 4, minlength=4)
    assert (abs(by_dealer - 250) < 55).all()
    seats = SeatBatch(50, seat=2)
    seats.reset(1)
    assert (seats.seats == 2).all()


def test_seats_change_from_episode_to_episode() -> None:
    env, seats = SeatEnv(episode="deal"), []
    env.reset(seed=1)
    for _ in range(12):
        *_, last = play(env, np.random.default_rng(0))
        seats.append(last[4]["seat"])
        env.reset()
    assert set(seats) == {0, 1, 2, 3}


@pytest.mark.small
def test_options_hold_for_one_episode() -> None:
    env, other = (SeatEnv(opponents=Lowest(), rules=PLAY_ONLY, seat=1) for _ in range(2))
    env.reset(seed=3, options=LED_AND_WON | {"scores": [10, 20, 30, 40]})
    other.reset(seed=3)
    view = env.batch.views[0]
    assert int(view.hand) == dnfh_env.notation.string_to_hand(HANDS[1])
    assert view.scores.tolist() == [20, 30, 40, 10] and view.dealer == 2
    assert start(env) == start(other)
    assert env.batch.seat == 1 and env.batch.batch.rules == PLAY_ONLY


def test_options_may_be_some_of_them() -> None:
    env = SeatEnv(seat=0, opponents=Lowest())
    env.reset(seed=3)
    hand = int(env.batch.batch.games["hand"][0, 1])
    env.reset(seed=3, options={"dealer": 0, "call": "kitty"})
    game = env.batch.batch.games[0]
    assert game.dealer == 0 and game.call == 62 and int(env.batch.batch.games["given"][0, 1, 0]) & hand
    with_text = SeatEnv(seat=0, rules=PLAY_ONLY)
    names = [[card for card in range(13 * seat, 13 * seat + 13)] for seat in range(4)]
    with_text.reset(seed=1, options={"hands": names})
    assert int(with_text.batch.views["hand"][0]) == 2**13 - 1


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"hands": HANDS[:3]}, DealError),
        ({"hands": [HANDS[0]] * 4}, DealError),
        ({"hands": ["AK", *HANDS[1:]]}, NotationError),
        ({"dealer": 4}, DealError),
        ({"scores": [300, 0, 0, 0]}, DealError),
        ({"call": "300"}, DealError),
        ({"hand": HANDS}, DealError),
    ],
)
def test_a_position_that_cannot_be_changes_nothing(options: dict[str, Any], error: type[Exception]) -> None:
    env = SeatEnv(rules=PLAY_ONLY, opponents=Lowest(), seat=0)
    env.reset(seed=0, options=LED_AND_WON)
    before = env.batch.batch.games.tobytes()
    with pytest.raises(error):
        env.reset(options=options)
    assert env.batch.batch.games.tobytes() == before
    assert env.step(ACE_OF_CLUBS)[1] == 0


def test_vector_options_hold_for_all_rows_of_one_episode() -> None:
    env = SeatVectorEnv(3, opponents=Lowest(), rules=PLAY_ONLY, seat=0)
    observations, _ = env.reset(seed=0, options=LED_AND_WON)
    assert (observations == observations[0]).all()
    observations, _ = env.reset()
    assert (observations[0] != observations[1]).any()


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
@pytest.mark.parametrize("wrapped", [False, True])
def test_copies_go_on_in_mid_trick(duplicate: Callable[[Any], Any], wrapped: bool) -> None:
    env: Any = gymnasium.make(SEAT_ID, episode="deal", disable_env_checker=True)
    env = env if wrapped else env.unwrapped
    env.reset(seed=6)
    rng = np.random.default_rng(6)
    while env.unwrapped.batch.views["num_plays"][0] % 4 == 0:
        env.step(choose(env.unwrapped.action_masks(), rng))
    twin = duplicate(env)
    start_of = env.unwrapped.batch.batch.games.tobytes()
    first = list(play(env.unwrapped, np.random.default_rng(1)))
    assert twin.unwrapped.batch.batch.games.tobytes() == start_of
    assert same(first, list(play(twin.unwrapped, np.random.default_rng(1))))
    assert start(env) == start(twin)


class Fails:
    """Raises when it is asked."""

    def act(self, views: NDArray[Any], rng: NDArray[np.uint64]) -> NDArray[np.int64]:
        raise KeyError("x")


def test_after_an_opponent_has_failed_a_reset_is_needed() -> None:
    env = SeatEnv(opponents=Fails(), seat=0)
    with pytest.raises(AgentError, match="KeyError"):
        env.reset(seed=2, options={"dealer": 1})
    with pytest.raises(ResetNeeded):
        env.step(0)


def test_steps_before_a_reset_are_refused() -> None:
    for env in (SeatBatch(2), SeatVectorEnv(2)):
        with pytest.raises(ResetNeeded):
            env.step(np.zeros(2, np.int64))


def test_one_deal_under_a_rotation_takes_its_calls_in_turn() -> None:
    env = SeatEnv(rules=Rules.standard_hearts(), episode="deal", seat=0)
    env.reset(seed=5)
    calls = []
    for _ in range(5):
        calls.append(int(env.batch.views["call"][0]))
        env.reset()
    assert [CALLS[call - FIRST_CALL] for call in calls] == ["300", "003", "030", "hold", "300"]
