"""Threads that work together: all of it once, whoever comes when, and nobody left at it afterwards."""

from __future__ import annotations

import gc
import itertools
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from numba import njit

from dnfh_env import _crew
from dnfh_env import batch as batch_module
from dnfh_env._crew import claim, regions, together
from dnfh_env.batch import Batch


class Parts:
    """Parts of some work that threads claim, and who did which."""

    def __init__(self, count: int, do: Callable[[int], Any] = lambda part: None) -> None:
        self.left, self.do = iter(range(count)), do
        self.done: list[tuple[int, str]] = []

    def __call__(self, number: int) -> None:
        for part in self.left:
            self.do(part)
            self.done.append((part, threading.current_thread().name))

    @property
    def numbers(self) -> list[int]:
        return sorted(part for part, _ in self.done)

    @property
    def threads(self) -> set[str]:
        return {name for _, name in self.done}


def helpers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("dnfh-helper")]


def wait_for(happened: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.001)


@pytest.fixture
def busy_helpers() -> Iterator[threading.Event]:
    """Every helper, three at least, is held up until the event is set."""
    go, held = threading.Event(), []

    def hold(number: int) -> None:
        held.append(number)
        assert go.wait(300)  # a first step may compile

    together(lambda number: None, 4)
    size = len(helpers())
    _crew._CREWS[os.getpid()].call(hold, size)
    wait_for(lambda: len(held) == size)
    yield go
    go.set()


# --- together ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", [1, 2, 3, 9])
@pytest.mark.parametrize("count", [0, 1, 2, 50])
def test_every_part_is_done_once(threads: int, count: int) -> None:
    for _ in range(20):
        parts = Parts(count)
        together(parts, threads)
        assert parts.numbers == [*range(count)]


def test_helpers_help() -> None:
    """A part that waits for another to be begun can only be done by two."""
    both = threading.Barrier(2)
    parts = Parts(2, lambda part: both.wait(20))
    together(parts, 2)
    assert len(parts.threads) == 2


def test_one_thread_calls_nobody() -> None:
    numbers: list[int] = []
    together(numbers.append, 1)
    assert numbers == [0]


def test_helpers_that_are_busy_delay_nobody(busy_helpers: threading.Event) -> None:
    parts = Parts(10)
    together(parts, 3)
    assert parts.numbers == [*range(10)] and parts.threads == {threading.current_thread().name}


def test_who_comes_late_finds_no_work(busy_helpers: threading.Event) -> None:
    """Though there would be some: what is written then is not expected any more."""
    numbers: list[int] = []
    together(numbers.append, 4)
    busy_helpers.set()
    parts = Parts(4, lambda part: time.sleep(0.01))
    together(parts, 4)  # behind the other calls in the queue
    assert numbers == [0]


def test_nobody_is_left_at_work_when_it_returns() -> None:
    begun = threading.Event()

    def slow(number: int) -> None:
        if number:
            begun.set()
            time.sleep(0.05)
            ended.append(number)
        else:
            assert begun.wait(20)

    ended: list[int] = []
    together(slow, 2)
    assert ended


@pytest.mark.parametrize("mine", [True, False])
def test_an_error_comes_after_everybody_has_stopped(mine: bool) -> None:
    both = threading.Barrier(2)
    ended: list[int] = []

    def work(number: int) -> None:
        both.wait(20)
        if (number == 0) == mine:
            raise KeyError("it")
        time.sleep(0.05)
        ended.append(number)

    with pytest.raises(KeyError, match="it"):
        together(work, 2)
    assert len(ended) == 1
    parts = Parts(5)
    together(parts, 2)
    assert parts.numbers == [*range(5)]


def test_work_within_work() -> None:
    """To some depth, with every helper in it."""
    done: list[int] = []

    def work(depth: int) -> Callable[[int], None]:
        def at_depth(number: int) -> None:
            if depth:
                together(work(depth - 1), 3)
            done.append(depth)

        return at_depth

    for _ in range(20):
        together(work(4), 3)
    assert set(done) == {0, 1, 2, 3, 4}


def test_callers_on_several_threads() -> None:
    several = [Parts(200) for _ in range(6)]

    def call(parts: Parts) -> None:
        for end in range(0, 200, 10):
            left, parts.left = parts.left, itertools.islice(parts.left, 10)  # type: ignore[assignment]
            together(parts, 3)
            parts.left = left
            assert parts.numbers == [*range(end + 10)]

    errors: list[BaseException] = []

    def guarded(parts: Parts) -> None:
        try:
            call(parts)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(parts,)) for parts in several]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors and all(parts.numbers == [*range(200)] for parts in several)


def test_there_are_as_many_helpers_as_were_ever_called() -> None:
    together(lambda number: None, 5)
    before = helpers()
    assert len(before) >= 4
    for threads in (2, 3, 5):
        together(lambda number: None, threads)
    assert helpers() == before


def test_nothing_is_kept() -> None:
    """Neither in a queue, nor by a helper that waits for its next call; not even until garbage is collected."""
    gc.disable()
    try:
        parts = Parts(8, lambda part: time.sleep(0.001))
        gone = weakref.ref(parts)
        together(parts, 3)
        del parts
        wait_for(lambda: gone() is None)
    finally:
        gc.enable()


def test_an_interrupt_is_heard_afterwards() -> None:
    before = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # workers of pytest-xdist ignore it
    try:
        parts = Parts(10, lambda part: signal.raise_signal(signal.SIGINT) if part == 3 else None)
        with pytest.raises(KeyboardInterrupt):
            together(parts, 2)
        assert parts.numbers == [*range(10)]
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("uncollected")
@pytest.mark.parametrize("seed", range(4))
def test_other_signals_may_raise_at_any_moment(seed: int) -> None:
    """Nobody is at work afterwards, nothing hangs, and Ctrl-C is heard as before."""

    class AlarmError(Exception):
        pass

    def ring(*_: Any) -> None:
        raise AlarmError

    inside: set[int] = set()

    def work(number: int) -> None:
        inside.add(number)
        if number:
            time.sleep(0.0002)
        inside.discard(number) if number else inside.clear()

    rng = np.random.default_rng(seed)
    alarm, interrupt = signal.getsignal(signal.SIGALRM), signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGALRM, ring)
    heard = 0
    try:
        for _ in range(150):
            try:
                signal.setitimer(signal.ITIMER_REAL, rng.uniform(2e-5, 6e-4))
                end = time.monotonic() + 20
                while time.monotonic() < end:
                    together(work, 3)
            except AlarmError:
                heard += 1
                assert not inside - {0}
                inside.clear()
                assert signal.getsignal(signal.SIGINT) is interrupt
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, alarm)
        signal.signal(signal.SIGINT, interrupt)
    assert heard == 150


PROGRAM = """
import os, sys
from dnfh_env import Batch
batch = Batch(4096, seed=1, obs="packed", threads=3)
batch.play("random", 9)
for _ in range(5):
    batch.look()
if os.fork() == 0:
    batch.play("random", 9)
    batch.look()
    sys.exit(0)
assert os.wait()[1] == 0
batch.play("random", 9)
print("done")
"""


@pytest.mark.slow
def test_the_interpreter_ends_with_helpers_and_forks() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


# --- claims -----------------------------------------------------------------------------------------------------


@pytest.mark.small
def test_regions_by_hand() -> None:
    assert regions(0, 64, 3)[:, :2].tolist() == [[0, 0]]
    assert regions(64, 64, 3)[:, :2].tolist() == [[0, 64]]
    assert regions(130, 64, 2)[:, :2].tolist() == [[0, 64], [64, 130]]
    assert regions(1000, 64, 3)[:, :2].tolist() == [[0, 320], [320, 640], [640, 1000]]


@pytest.mark.small
def test_regions_cover_all_rows_once_by_blocks() -> None:
    for count, block, threads in itertools.product([1, 5, 63, 64, 65, 130, 449, 4096], [1, 64], [1, 2, 3, 7, 200]):
        found = regions(count, block, threads)
        starts, ends = found[:, 0], found[:, 1]
        assert starts[0] == 0 and ends[-1] == count and (starts[1:] == ends[:-1]).all()
        assert (starts < ends).all() and (starts % block == 0).all() and len(found) <= threads
        assert found.dtype == np.int64 and found.shape[1] == 8 and found.ctypes.data % 64 == 0


@njit(nogil=True)
def claim_all(claims: Any, taken: Any, size: Any) -> None:
    start = claim(claims, 1, size)
    while start < claims[1, 1]:
        for i in range(start, start + size):
            taken[i] += 1
        start = claim(claims, 1, size)


@pytest.mark.small
def test_a_claim_returns_what_was_there() -> None:
    claims, taken = np.zeros((3, 8), np.int64), np.zeros(12, np.int64)
    claims[1, :2] = 3, 12
    claim_all(claims, taken, 3)
    assert taken.tolist() == [0] * 3 + [1] * 9
    assert claims[1, 0] == 15 and claims[1, 1] == 12 and not claims[[0, 2]].any()


def test_no_two_threads_claim_the_same() -> None:
    size = 200_000
    for _ in range(5):
        claims, taken = regions(2 * size, size, 2), np.zeros(2 * size, np.int8)
        threads = [threading.Thread(target=claim_all, args=(claims, taken, np.int64(1))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not taken[:size].any() and (taken[size:] == 1).all()


# --- batches ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("held_up", [True, False])
def test_a_batch_whose_helpers_are_busy(
    held_up: bool, busy_helpers: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does everything itself, and nothing of it is done again when they come."""
    monkeypatch.setattr(batch_module, "_WORTH_A_THREAD", 1)
    monkeypatch.setattr(batch_module, "_BLOCK", 64)
    if not held_up:
        busy_helpers.set()
    batch, alone = Batch(450, seed=3, obs="bytes", threads=4), Batch(450, seed=3, obs="bytes")
    for number in range(60):
        if number == 30:
            busy_helpers.set()
        actions = alone.look().masks.argmax(axis=1)  # type: ignore[union-attr]
        one, two = batch.step(actions), alone.step(actions)
        assert (one.obs == two.obs).all() and (one.legal == two.legal).all()  # type: ignore[union-attr]
        assert batch.play("random", 2) == alone.play("random", 2)
    assert batch.games.tobytes() == alone.games.tobytes()


def test_small_batches_are_not_worth_a_thread() -> None:
    most = batch_module._WORTH_A_THREAD
    batch = Batch(2, threads=3)
    assert [batch._threads_for(count) for count in (0, 1, most, 2 * most, 3 * most, 9 * most)] == [1, 1, 1, 2, 3, 3]


def test_a_dropped_batch_is_freed() -> None:
    gc.disable()
    try:
        batch = Batch(4096, seed=3, obs="packed", threads=3)
        batch.look()
        batch.play("random", 3)
        gone = weakref.ref(batch)
        del batch
        wait_for(lambda: gone() is None)
    finally:
        gc.enable()
