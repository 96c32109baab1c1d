"""`Batch.step` and `Batch.play` in every mode, layout, size and number of threads: the same to the bit."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
import random
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from dnfh_env import batch as batch_module
from dnfh_env import dnfh_v0
from dnfh_env._bits import unpack
from dnfh_env.agent import FusedAgent, RandomAgent, is_fused, make_agent
from dnfh_env.batch import Batch, Step
from dnfh_env.cards import DECK
from dnfh_env.engine import GAME
from dnfh_env.errors import AgentError, ArgumentError, IllegalActionError
from dnfh_env.game import Game
from dnfh_env.observation import LAYOUTS
from dnfh_env.rules import CALLS, Rules

SHORT = Rules(target=20)
SAMPLES = {
    "default": SHORT,
    "kitty": Rules(calls=("kitty",), target=20),
    "standard": Rules.standard_hearts(target=10),
    "cut off": Rules(calls=CALLS, shot="shooter", ties="play on", target=20, max_deals=2),
}
EACH_RULES = pytest.mark.parametrize("name", SAMPLES)
EACH_MODE = pytest.mark.parametrize("obs", [None, "packed", "bytes"])
EACH_LAYOUT = pytest.mark.parametrize("observation", LAYOUTS)
FUSED = ("random", "greedy-v1", "heuristic")
EACH_FUSED = pytest.mark.parametrize("agent", FUSED)


@pytest.fixture(autouse=True)
def small_batches_are_shared_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_module, "_WORTH_A_THREAD", 1)
    monkeypatch.setattr(batch_module, "_BLOCK", 64)


def random_actions(batch: Batch) -> Any:
    return RandomAgent().act(batch.views(), batch.keys())


def copied(step: Step) -> dict[str, Any]:
    """All that a step says, out of reach of the next one."""
    names = ("rewards", "ended", "truncated", "scores", "seats", "legal", "masks", "obs", "final")
    found = {name: getattr(step, name) for name in names}
    return {name: None if array is None else array.copy() for name, array in found.items()}


def assert_same(one: dict[str, Any], two: dict[str, Any], but: tuple[str, ...] = ()) -> None:
    for name in one.keys() - set(but):
        left, right = one[name], two[name]
        assert (left is None) == (right is None), name
        if left is not None:
            assert left.dtype == right.dtype and left.shape == right.shape and left.tobytes() == right.tobytes(), name


def assert_shows(step: Step, batch: Batch) -> None:
    """What is shown is what the ways to look with fresh arrays say of the games as they stand."""
    assert (step.seats == batch.seats).all() and (step.legal == batch.legal()).all()
    words = batch.packed(batch.layout.name)
    if batch.obs is None:
        assert step.obs is None and step.masks is None
    elif batch.obs == "packed":
        assert step.masks is None and step.obs is not None and step.obs.dtype == np.uint64
        assert (step.obs == words).all()
    else:
        assert step.obs is not None and step.obs.dtype == np.uint8 and (step.obs == unpack(words)).all()
        assert step.masks is not None and step.masks.dtype == np.int8 and (step.masks == batch.action_masks()).all()


# --- what a step says -------------------------------------------------------------------------------------------


@pytest.mark.small
@EACH_MODE
@EACH_LAYOUT
@pytest.mark.parametrize("reward", ["points", "win"])
def test_a_step_says_what_happened_and_what_is_seen(obs: Any, observation: str, reward: str) -> None:
    """Against the same games stepped row by row in fresh arrays, over the ends of games."""
    batch = Batch(3, SAMPLES["cut off"], seed=8, reward=reward, obs=obs, observation=observation)
    other = Batch(3, SAMPLES["cut off"], seed=8, reward=reward)
    assert_shows(batch.look(), batch)
    ends = 0
    for _ in range(140):
        actions, before = random_actions(batch), other.games.copy()
        fresh = [other.step_rows(np.array([row]), actions[row : row + 1]) for row in range(3)]
        step = batch.step(actions)
        assert batch.records(np.arange(3)).tobytes() == other.games.tobytes()
        assert_shows(step, batch)
        for name in ("rewards", "ended", "truncated", "scores", "final"):
            expected = np.concatenate([getattr(one, name) for one in fresh])
            assert getattr(step, name).tobytes() == expected.tobytes(), name
        ended = step.ended
        assert (step.scores[~ended] == other.games["scores"][~ended]).all()
        assert (step.scores[ended] == step.final["scores"]).all()
        assert (step.final["game"] == before["game"][ended]).all() and (step.final["phase"] == 3).all()
        assert (step.truncated[ended] == (step.final["winners"] == 0)).all() and not step.truncated[~ended].any()
        ends += ended.sum()
    assert ends >= 3


@pytest.mark.small
def test_dtypes_and_shapes() -> None:
    for observation, layout in LAYOUTS.items():
        step = Batch(5, obs="bytes", observation=observation).look()
        assert step.obs is not None and step.obs.shape == (5, layout.bits)
        packed = Batch(5, obs="packed", observation=observation).look().obs
        assert packed is not None and packed.shape == (5, layout.words)
    assert step.masks is not None and step.masks.shape == (5, 64)
    assert step.rewards.dtype == np.float32 and step.rewards.shape == step.scores.shape == (5, 4)
    assert step.scores.dtype == np.int32 and step.seats.dtype == np.int64 and step.legal.dtype == np.uint64
    assert step.ended.dtype == step.truncated.dtype == np.bool_ and step.ended.shape == step.seats.shape == (5,)
    assert step.final.dtype == GAME and step.final.shape == (0,)


SIZES = [1, 63, 64, 65, 130, 450]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("threads", [1, 2, 3, 200])
@EACH_MODE
@EACH_LAYOUT
def test_neither_size_nor_threads_nor_mode_change_anything(size: int, threads: int, obs: Any, observation: str) -> None:
    """Each row is compared with the same row of the largest batch on one thread; blocks are 64 rows."""
    rows = np.arange(size)
    batch = Batch(size, SHORT, seed=3, obs=obs, observation=observation, threads=threads)
    largest = Batch(max(SIZES), SHORT, seed=3, obs=obs, observation=observation)
    plain = Batch(max(SIZES), SHORT, seed=3)
    for _ in range(70):
        actions = random_actions(largest)
        one, two, three = batch.step(actions[:size]), largest.step(actions), plain.step(actions)
        whole = copied(two)
        assert_same(whole, copied(three), but=("obs", "masks"))
        shared = {name: array if array is None else array[:size] for name, array in whole.items() if name != "final"}
        assert_same(shared, copied(one))
        assert one.final.tobytes() == two.final[: len(one.final)].tobytes()
        assert batch.records(rows).tobytes() == largest.records(rows).tobytes() == plain.records(rows).tobytes()
    assert_shows(batch.look(), batch)


def test_outputs_beyond_the_caches_are_the_same() -> None:
    """They are written by other instructions."""
    size = 2 * (batch_module._BEYOND_CACHES // 120 + 65)
    large, small = (Batch(size, SHORT, seed=3, obs=obs, threads=2) for obs in ("bytes", "packed"))
    for _ in range(3):
        actions = random_actions(small)
        shown, packed = large.step(actions), small.step(actions).obs
        assert packed is not None and (shown.obs == unpack(packed)).all()  # type: ignore[union-attr]
        assert (shown.masks == small.action_masks()).all()  # type: ignore[union-attr]


# --- buffers ----------------------------------------------------------------------------------------------------


@pytest.mark.small
@EACH_MODE
@pytest.mark.parametrize("threads", [1, 2])
def test_one_step_whose_arrays_stay_where_they_are(obs: Any, threads: int) -> None:
    batch = Batch(4, seed=1, obs=obs, threads=threads)
    first = batch.look()
    places = {name: array.ctypes.data for name, array in vars(first).items() if array is not None}
    for step in (batch.step(random_actions(batch)), batch.step(random_actions(batch)), batch.reset(3), batch.look()):
        assert step is first
        assert {name: array.ctypes.data for name, array in vars(step).items() if array is not None} == places
    fresh = batch.step_rows(np.arange(4), random_actions(batch))
    assert not any(np.shares_memory(getattr(fresh, name), getattr(first, name)) for name in ("rewards", "legal"))


@pytest.mark.small
@EACH_MODE
def test_look_after_the_games_were_changed(obs: Any) -> None:
    batch, other = Batch(4, SHORT, seed=1, obs=obs), Batch(4, SHORT, seed=2)
    other.play("random", 75)
    while not batch.step(random_actions(batch)).ended.any():
        pass
    batch.games[:] = other.games
    step = batch.look()
    assert_shows(step, batch)
    assert not step.rewards.any() and not step.ended.any() and not step.truncated.any() and len(step.final) == 0
    assert (step.scores == other.games["scores"]).all()


@pytest.mark.small
def test_whole_numbers_of_every_kind_are_actions() -> None:
    found = set()
    for kind in (list, tuple, np.int8, np.uint8, np.int32, np.uint64, np.int64):
        batch = Batch(6, seed=4, obs="packed", threads=2)
        for _ in range(20):
            actions = random_actions(batch)
            batch.step(kind(actions.tolist()) if kind in (list, tuple) else np.repeat(actions.astype(kind), 2)[::2])
        found.add(batch.games.tobytes())
    assert len(found) == 1


@pytest.mark.small
@pytest.mark.parametrize("row", [0, 3, 6])
@pytest.mark.parametrize("threads", [1, 3])
def test_an_illegal_action_in_any_part_changes_nothing(row: int, threads: int) -> None:
    batch = Batch(7, seed=1, obs="bytes", threads=threads)
    batch.step(random_actions(batch))
    actions = random_actions(batch)
    actions[row] = 64
    before, said = batch.games.tobytes(), copied(batch.look())
    with pytest.raises(IllegalActionError, match=rf"row {row}, seat \d: action 64 is illegal"):
        batch.step(actions)
    assert batch.games.tobytes() == before
    assert_same(said, copied(batch._step))


# There are two ways to tell what is legal: by what the last step found, as long as nobody else can have changed the
# records, and by the records.


def highest(step: Step) -> list[int]:
    return [int(mask).bit_length() - 1 for mask in step.legal]


@pytest.mark.small
@EACH_MODE
def test_what_is_written_into_a_step_is_not_believed(obs: Any) -> None:
    for threads in (1, 2):
        batch = Batch(3, SHORT, seed=1, obs=obs, threads=threads)
        for _ in range(150):
            step = batch.look()
            actions = highest(step)
            wrong = next(action for action in range(63, -1, -1) if not int(step.legal[1]) >> action & 1)
            step.legal[:] = np.uint64(2**64 - 1)
            with pytest.raises(
                IllegalActionError, match=rf"row 1, seat \d: action {wrong} .*is illegal, allowed are: "
            ):
                batch.step([actions[0], wrong, actions[2]])
            batch.step(actions)
        assert batch.look().ended.shape == (3,)


@pytest.mark.small
def test_records_that_are_changed_between_steps_count() -> None:
    batch, other = Batch(2, SHORT, seed=1), Batch(2, SHORT, seed=1)
    ours = batch.games
    for number in range(120):
        actions = highest(batch.look())
        batch.step(actions)
        other.step(actions)
        kept = ours.copy()
        ours[:] = Batch(2, SHORT, seed=number).games  # at a call
        with pytest.raises(IllegalActionError, match="row 0"):
            batch.step([0, 0])
        batch.step([52, 53])
        ours[:] = kept
    assert batch.look().obs is None and ours.tobytes() == other.games.tobytes()


@pytest.mark.small
def test_steps_of_every_kind_in_turn() -> None:
    """No look in between, and the records are not touched before the end."""
    batch, other = Batch(4, SHORT, seed=1, obs="packed"), Batch(4, SHORT, seed=1)
    for number in range(60):
        actions = highest(batch.look())
        batch.step(actions)
        other.step(actions)
        legal = other.legal()
        rows = np.array([3, 1])
        some = [int(legal[row]).bit_length() - 1 for row in rows]
        batch.step_rows(rows, some)
        other.step_rows(rows, some)
        with pytest.raises(IllegalActionError):
            batch.step([99] * 4)
        batch.step(np.array([int(mask).bit_length() - 1 for mask in other.legal()]))
        other.step(np.array([int(mask).bit_length() - 1 for mask in other.legal()]))
        batch.play("random", 1 + number % 3)
        other.play("random", 1 + number % 3)
        twin = pickle.loads(pickle.dumps(batch))
        batch.step(np.array([int(mask).bit_length() - 1 for mask in other.legal()]))
        other.step(np.array([int(mask).bit_length() - 1 for mask in other.legal()]))
        twin.step(highest(twin.look()))
        assert twin.games.tobytes() == other.games.tobytes()
    assert batch.games.tobytes() == other.games.tobytes()


@pytest.mark.small
def test_arguments_that_are_none() -> None:
    for arguments, words in (
        ({"obs": "bits"}, "obs: 'bits' is not one of 'packed', 'bytes'"),
        ({"observation": "fuller"}, "observation: 'fuller' is not one of 'compact', 'full'"),
        ({"threads": 0}, "threads: 0 is not a whole number from 1 up"),
        ({"threads": True}, "threads: True is not a whole number"),
        ({"threads": 1.5}, "threads: 1.5 is not a whole number"),
    ):
        with pytest.raises(ArgumentError, match=words):
            Batch(2, **arguments)
    for decisions in (-1, 1.5, None, "3"):
        with pytest.raises(ArgumentError, match=r"decisions: .* is not a whole number from 0 up"):
            Batch(2).play("random", decisions)  # type: ignore[arg-type]
    with pytest.raises(AgentError, match="unknown agent 'randon'"):
        Batch(2).play("randon", 3)


# --- an agent at all seats --------------------------------------------------------------------------------------


class Asked:
    """An agent without a kernel of its own for whole games."""

    def __init__(self, agent: Any) -> None:
        self.act = agent.act


@pytest.mark.small
@EACH_FUSED
@EACH_RULES
def test_fused_play_is_the_agent_asked_at_every_seat(agent: str, name: str) -> None:
    rules = SAMPLES[name]
    fused, asked = Batch(2, rules, seed=3), Batch(2, rules, seed=3)
    player = make_agent(agent, rules)
    assert isinstance(player, FusedAgent) and is_fused(player) and not is_fused(Asked(player))
    ends = [0, 0]
    for decisions in (0, 1, 7, 160):
        ends[0] += fused.play(agent, decisions)
        ends[1] += asked.play(Asked(player), decisions)
        assert fused.games.tobytes() == asked.games.tobytes() and ends[0] == ends[1]
    assert ends[0] > 0


@EACH_FUSED
@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("size", [1, 2, 65])
def test_play_does_not_depend_on_size_threads_or_portions(
    agent: str, threads: int, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    largest = Batch(65, SHORT, seed=9)
    ended = largest.play(agent, 300)
    monkeypatch.setattr(batch_module, "_DECISIONS_A_CALL", 7 * size)
    batch = Batch(size, SHORT, seed=9, threads=threads)
    mine = batch.play(make_agent(agent, SHORT), np.int64(300))
    assert batch.games.tobytes() == largest.games[:size].tobytes()
    assert mine == ended if size == 65 else 0 < mine < ended


@pytest.mark.small
def test_an_agent_of_ones_own_is_asked_and_checked() -> None:
    class Highest:
        def act(self, views: Any, rng: Any) -> Any:
            return np.array([int(mask).bit_length() - 1 for mask in views["legal"]])

    class Cheat:
        def act(self, views: Any, rng: Any) -> Any:
            return np.full(len(views), 5)

    batch, games = Batch(3, SHORT, seed=5, obs="packed"), 0
    games = batch.play(Highest(), 200)
    assert games > 0
    assert_shows(batch.look(), batch)
    before = batch.games.tobytes()
    with pytest.raises(AgentError, match="Cheat: action 5"):
        Batch(3, seed=5).play(Cheat(), 1)
    assert batch.games.tobytes() == before


def test_a_kernel_is_for_the_act_that_it_came_with() -> None:
    class Highest(RandomAgent):
        def act(self, views: Any, rng: Any) -> Any:
            return np.array([int(mask).bit_length() - 1 for mask in views["legal"]])

    class Renamed(RandomAgent):
        """Nothing replaced."""

    class Both(RandomAgent):
        act = Highest.act

        def play_fused(self, games: Any, rules: Any, decisions: int) -> int:
            raise KeyError("mine")

    assert [is_fused(agent) for agent in (RandomAgent(), Renamed(), Highest(), Both())] == [True, True, False, True]
    found = []
    for agent in ("random", Renamed(), Highest(), Asked(Highest())):
        batch = Batch(3, SHORT, seed=5)
        batch.play(agent, 90)
        found.append(batch.games.tobytes())
    assert found[0] == found[1] != found[2] == found[3]
    with pytest.raises(KeyError, match="mine"):
        Batch(3).play(Both(), 1)


def test_batches_within_a_batch() -> None:
    """Who helps must not wait for help that never comes."""

    class Nested(RandomAgent):
        def play_fused(self, games: Any, rules: Any, decisions: int) -> int:
            Batch(6, SHORT, threads=2).play("random", 10)
            return super().play_fused(games, rules, decisions)

    batch, other = Batch(6, SHORT, threads=2), Batch(6, SHORT)
    assert batch.play(Nested(), 150) == other.play("random", 150) > 0
    assert batch.games.tobytes() == other.games.tobytes()


def test_rules_of_the_batch_are_played_whatever_the_agent_was_built_for() -> None:
    """Only the advice is that of the agent's own rules."""
    agent = make_agent("heuristic", Rules.standard_hearts())
    fused, asked = Batch(20, SHORT, seed=4), Batch(20, SHORT, seed=4)
    fused.play(agent, 300)
    asked.play(Asked(agent), 300)
    assert fused.games.tobytes() == asked.games.tobytes()
    fused.play("heuristic", 100)
    asked.play(Asked(agent), 100)
    assert fused.games.tobytes() != asked.games.tobytes()


# --- threads, processes, copies ---------------------------------------------------------------------------------


def played(seed: int) -> bytes:
    """What a batch on two threads comes to."""
    batch = Batch(33, SHORT, seed=seed, obs="bytes", threads=2)
    for _ in range(30):
        batch.step(random_actions(batch))
        batch.play("random", 3)
    step = batch.look()
    return batch.games.tobytes() + step.obs.tobytes() + step.masks.tobytes()  # type: ignore[union-attr]


def runs_of_threads(work: list[Any]) -> None:
    threads = [threading.Thread(target=one) for one in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_batches_on_threads_of_their_own_within_threads() -> None:
    alone = [played(seed) for seed in range(4)]
    found: dict[int, bytes] = {}
    runs_of_threads([lambda seed=seed: found.__setitem__(seed, played(seed)) for seed in range(4)])
    assert [found[seed] for seed in range(4)] == alone and len(set(alone)) == 4


def test_threads_that_share_a_batch_wait_for_each_other() -> None:
    batch, alone = Batch(50, SHORT, seed=6, threads=2), Batch(50, SHORT, seed=6)

    def some() -> None:
        for _ in range(40):
            batch.play("random", 5)

    runs_of_threads([some] * 3)
    alone.play("random", 600)
    assert batch.games.tobytes() == alone.games.tobytes()


@pytest.mark.usefixtures("uncollected")
def test_interrupts_leave_all_rows_at_the_same_decision() -> None:
    """At a hundred random moments, as by Ctrl-C; what was being done is done then, or has not begun."""
    rng = random.Random(3)
    batch, alone = Batch(64, SHORT, seed=6, obs="packed", threads=2), Batch(64, SHORT, seed=6)
    handler, alarm = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGALRM)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # workers of pytest-xdist ignore it
    signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
    decisions = heard = 0
    try:
        for _ in range(100):
            try:
                signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-4, 2e-3))
                end = time.monotonic() + 20
                while time.monotonic() < end:
                    batch.play("random", 1)
                    batch.step(np.array(highest(batch.look())))
            except KeyboardInterrupt:
                heard += 1
            ours = batch.records(np.arange(64))
            while alone.records(np.arange(64)).tobytes() != ours.tobytes():
                assert decisions < 100_000
                if decisions % 2:
                    alone.step(np.array(highest(alone.look())))
                else:
                    alone.play("random", 1)
                decisions += 1
            if decisions % 2:
                batch.step(np.array(highest(batch.look())))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, alarm)
        signal.signal(signal.SIGINT, handler)
    assert heard == 100 and decisions > 100


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_have_threads_of_their_own(method: str) -> None:
    """Forked after threads have helped here."""
    alone = [played(seed) for seed in range(2)]
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.map_async(played, range(2)).get(60) == alone


@pytest.mark.small
@EACH_MODE
def test_copies_have_buffers_of_their_own(obs: Any) -> None:
    batch = Batch(5, SHORT, seed=7, obs=obs, observation="full", threads=2, reward="win")
    batch.play("random", 40)
    for twin in copies(batch):
        assert twin.games.tobytes() == batch.games.tobytes() and twin.objective == batch.objective
        actions = random_actions(batch)
        again = copy.deepcopy(batch)
        one, two = twin.step(actions), again.step(actions)
        assert_same(copied(one), copied(two))
        assert_shows(one, twin)
        assert_shows(batch.look(), batch)


def copies(batch: Batch) -> Iterator[Batch]:
    yield pickle.loads(pickle.dumps(batch))
    yield copy.deepcopy(batch)
    yield copy.copy(batch)


@pytest.mark.small
def test_a_pickle_over_memory_of_others_is_copied() -> None:
    batch, game = Batch(3, SHORT, seed=7), Game(SHORT, seed=7)
    env = dnfh_v0.raw_env(SHORT)
    env.reset(seed=7)
    for thing in (batch, game, env):
        kept: list[Any] = []
        pickled = pickle.dumps(thing, protocol=5, buffer_callback=kept.append)
        memory = [bytes(buffer.raw()) for buffer in kept]
        before = list(map(bytearray, memory))
        twin = pickle.loads(pickled, buffers=memory)
        if isinstance(twin, Batch):
            twin.play("random", 30)
            twin.step(np.array(highest(twin.look())))
        elif isinstance(twin, Game):
            twin.push(twin.legal_actions()[0])
        else:
            twin.step(int(twin.last()[0]["action_mask"].argmax()))
        assert memory == before


@pytest.mark.small
def test_actions_may_lie_in_a_step() -> None:
    batch, other = Batch(130, SHORT, seed=7), Batch(130, SHORT, seed=7)
    for _ in range(30):
        actions = np.array(highest(other.look()))
        step = batch.look()
        room = step.rewards.view(np.int64).reshape(-1)[:130]
        room[:] = actions
        batch.step(room)
        other.step(actions)
    assert batch.games.tobytes() == other.games.tobytes()


@pytest.mark.small
def test_a_look_within_a_play_is_out_of_date_after_it() -> None:
    batch = Batch(2, SHORT, seed=7)

    class Looks(RandomAgent):
        def play_fused(self, games: Any, rules: Any, decisions: int) -> int:
            batch.look()
            return super().play_fused(games, rules, decisions)

    old = highest(batch.look())
    batch.play(Looks(), 14)
    with pytest.raises(IllegalActionError):
        batch.step(old)


@pytest.mark.small
def test_only_cards_are_held_in_a_step() -> None:
    """Room is used again row after row, so nothing of another row may shine through."""
    batch = Batch(130, SHORT, seed=2, obs="packed")
    batch.play("random", 31)
    step = batch.look()
    assert step.obs is not None
    hands = step.obs[:, 0] & np.uint64(DECK)
    assert (hands == batch.games["hand"][np.arange(130), batch.seats]).all()
