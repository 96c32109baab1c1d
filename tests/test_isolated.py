"""Agents in a process of their own: the same answers, and whatever they do there, we go on."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agents import isolated
from agents.isolated import Isolated
from dnfh_env import agent as agent_module
from dnfh_env.agent import Agent, make_agent
from dnfh_env.batch import Batch
from dnfh_env.errors import AgentError, ArgumentError
from dnfh_env.rules import Rules

MODULE = """
import ctypes, os, signal, sys, time
import numpy as np
from dnfh_env.agent import RandomAgent

print("imported")

def hang(views): time.sleep(1000)
def spin(views): ctypes.PyDLL(None).sleep(1000)  # and holds Python's lock
def leave(views): sys.exit(3)
def leave_at_once(views): os._exit(4)
def crash(views): ctypes.string_at(0)
def allocate(views): np.empty(1 << 31, np.uint8)
def say(views):
    print("said")
    os.write(1, b"written")
    os.system("echo echoed")
def read(views): assert sys.stdin.read() == ""
def fail(views): raise KeyError("it\\n\\x1b[31m" + "x" * 10000)
def short(views): return np.zeros(len(views) + 1, np.int64)
def text(views): return "nonsense"
def illegal(views): return np.full(len(views), 77)
def write(views): views["legal"][:] = 0
def tell(views):
    open(os.environ["PIDS"], "a").write(f"{os.getpid()} ")
def fork(views):
    tell(views)
    if os.fork() == 0:
        tell(views)
        time.sleep(1000)
    os._exit(5)
def stop(views):
    tell(views)
    time.sleep(1000)
def interrupt(views): os.kill(os.getpid(), signal.SIGINT)
def lie(views):
    for fd in range(3, 64):
        try: os.write(fd, b"A" + (1 << 50).to_bytes(8, "little") + bytes(64))
        except OSError: pass
def babble(views):
    for fd in range(3, 64):
        try: os.write(fd, b"?" + bytes(8))
        except OSError: pass
def lie_a_little(views):
    for fd in range(3, 64):
        try: os.write(fd, b"A" + (16).to_bytes(8, "little") + bytes(16))
        except OSError: pass

class Moody(RandomAgent):
    \"\"\"Does what the first seed says.\"\"\"

    def act(self, views, rng):
        if int(rng[0]) < len(MOODS):
            found = MOODS[int(rng[0])](views)
            if found is not None:
                return found
        return super().act(views, rng)

MOODS = [hang, spin, leave, leave_at_once, crash, allocate, say, read, fail, short, text, illegal, write, tell, fork,
         stop, interrupt, lie, babble, lie_a_little]

class Unbuilt:
    def __init__(self, rules): raise KeyError("bricks")

class Leaves:
    def __init__(self, rules): os._exit(9)
"""
NAMES = [name.strip() for name in MODULE.partition("MOODS = [")[2].partition("]")[0].replace("\n", " ").split(",")]
BATCH = Batch(5, seed=3)
BATCH.play("random", 20)
VIEWS, KEYS = BATCH.views(), BATCH.keys()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("moods")
    (path / "moody_agents.py").write_text(MODULE)
    before = os.environ.get("OPENBLAS_NUM_THREADS")
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    os.environ["PIDS"] = str(path / "pids")
    sys.path.append(str(path))
    yield path
    sys.path.remove(str(path))
    del os.environ["PIDS"], os.environ["OPENBLAS_NUM_THREADS"]
    if before is not None:
        os.environ["OPENBLAS_NUM_THREADS"] = before


@pytest.fixture(scope="module")
def moody(folder: Path) -> Iterator[Isolated]:
    with Isolated("moody_agents:Moody", megabytes=1500) as agent:
        yield agent


@pytest.fixture(autouse=True)
def no_failures_yet(request: pytest.FixtureRequest) -> None:
    """The agent is shared between tests, since a process takes a second to start."""
    if "moody" in request.fixturenames:
        request.getfixturevalue("moody")._failures.clear()


def act(agent: Agent, name: str = "") -> Any:
    """Ask it for what it does under that name, or for an ordinary answer."""
    keys = KEYS.copy()
    if name:
        keys[0] = NAMES.index(name)
    return agent.act(VIEWS, keys)


def pids(folder: Path) -> list[int]:
    """Of the processes that told theirs."""
    return [int(pid) for pid in (folder / "pids").read_text().split()]


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until_gone(pid: int, seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while runs(pid):
        assert time.monotonic() < end, f"process {pid} still runs"
        time.sleep(0.02)


def child_of(agent: Isolated) -> int:
    assert agent._child is not None
    return agent._child._process.pid


# --- the same answers -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", ["greedy", pytest.param("learned", marks=pytest.mark.slow)])
def test_the_same_actions_as_the_plain_agent(spec: str) -> None:
    rules = Rules() if spec == "learned" else Rules(target=40, calls=("kitty",))
    plain, batch = make_agent(spec, rules), Batch(300, rules, seed=1)
    with Isolated(spec, rules) as agent:
        assert isinstance(agent, Agent)
        for _ in range(60):
            views, keys = batch.views(), batch.keys()
            expected = plain.act(views, keys)
            for some in (slice(None), slice(0), slice(7, 8), slice(0, 300, 3)):
                found = agent.act(views[some], keys[some])
                assert found.dtype == np.int64 and (found == expected[some]).all() and found.flags.writeable
            batch.step(expected)


def test_a_question_larger_than_a_pipe(moody: Isolated) -> None:
    batch = Batch(4000, seed=1)
    assert (moody.act(batch.views(), batch.keys()) == make_agent("random").act(batch.views(), batch.keys())).all()


@pytest.mark.slow
def test_what_is_registered_here_is_known_there(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(agent_module.REGISTRY, "mood", "moody_agents:Moody")
    with Isolated("mood") as agent:
        assert (act(agent) == act(make_agent("random"))).all()
        twin = pickle.loads(pickle.dumps(agent))
        with twin:
            assert (act(twin) == act(agent)).all() and child_of(twin) != child_of(agent)


@pytest.mark.parametrize("name", ["", "say", "read", "write", "tell", "interrupt"])
def test_ordinary_answers_in_spite_of(moody: Isolated, name: str, capfd: pytest.CaptureFixture[str]) -> None:
    before = VIEWS.copy()
    expected = KEYS.copy()
    if name:
        expected[0] = NAMES.index(name)
    found = act(moody, name)
    if name != "write":
        assert (found == make_agent("random").act(VIEWS, expected)).all()
    assert capfd.readouterr() == ("", "") and VIEWS.tobytes() == before.tobytes()
    assert moody._failures == []


def test_threads_take_turns(moody: Isolated) -> None:
    batch = Batch(40, seed=5)
    views, keys = batch.views(), batch.keys()
    expected = make_agent("random").act(views, keys)
    right: list[int] = []

    def some(start: int) -> None:
        for i in range(start, 40, 4):
            right.extend(range(5) if (moody.act(views[i:], keys[i:]) == expected[i:]).all() else [])

    threads = [threading.Thread(target=some, args=(start,)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(right) == 200


# --- what goes wrong --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("fail", r"moody_agents:Moody: act raised KeyError: 'it.{1,9}x+"),
        ("short", r"act returned int64\[6\], expected whole numbers of shape \[5\]"),
        ("text", "act returned <U8"),
    ],
)
def test_an_agent_that_errs_is_told_and_goes_on(moody: Isolated, name: str, said: str) -> None:
    act(moody)
    child = child_of(moody)
    with pytest.raises(AgentError, match=said) as caught:
        act(moody, name)
    assert str(caught.value).isprintable() and len(str(caught.value)) < 5000
    assert child_of(moody) == child and moody._failures == []
    assert (act(moody) == act(make_agent("random"))).all()


def test_illegal_actions_are_for_others_to_judge(moody: Isolated) -> None:
    assert act(moody, "illegal").tolist() == [77] * 5


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("leave_at_once", "it ended with exit status 4"),
        ("crash", r"it died with signal 11 \(SIGSEGV\)"),
        ("allocate", "it ran out of its 1500 MB"),
        ("hang", "no answer within 0.3 s"),
        pytest.param("spin", "no answer within 0.3 s", marks=pytest.mark.slow),
        pytest.param("lie", "it answered nonsense: 1125899906842624 bytes", marks=pytest.mark.slow),
        pytest.param("babble", r"it answered nonsense: b'\?'", marks=pytest.mark.slow),
        pytest.param("lie_a_little", "it answered 16 bytes to 5 views, expected 40", marks=pytest.mark.slow),
    ],
)
def test_a_process_that_fails_is_replaced(
    moody: Isolated, name: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    act(moody)
    child = child_of(moody)
    if "0.3" in said:
        monkeypatch.setattr(moody, "seconds", 0.3)
    with pytest.raises(AgentError, match=f"^moody_agents:Moody: {said}$"):
        act(moody, name)
    assert not runs(child) and moody._child is None
    monkeypatch.undo()
    assert (act(moody) == act(make_agent("random"))).all()


@pytest.mark.slow
def test_what_it_started_ends_with_it(moody: Isolated, folder: Path) -> None:
    (folder / "pids").unlink(missing_ok=True)
    with pytest.raises(AgentError, match=r"exit status 5|no answer|signal 9"):
        moody.seconds = 1
        act(moody, "fork")
    moody.seconds = 60
    for pid in pids(folder):
        wait_until_gone(pid)


@pytest.mark.slow
def test_after_some_failures_it_is_given_up(moody: Isolated, monkeypatch: pytest.MonkeyPatch) -> None:
    assert isolated.MOST_FAILURES == 3
    monkeypatch.setattr(isolated, "MOST_FAILURES", 2)
    for _ in range(2):
        with pytest.raises(AgentError, match="Moody: it ended with exit status 4"):
            act(moody, "leave_at_once")
    start = time.monotonic()
    with pytest.raises(AgentError, match="Moody: given up after 2 failures, the last: it ended with exit status 4"):
        act(moody)
    assert time.monotonic() - start < 0.1 and moody._child is None


@pytest.mark.usefixtures("uncollected")
@pytest.mark.slow
def test_an_interrupt_does_not_leave_an_answer_behind(moody: Isolated) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    act(moody)
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(KeyboardInterrupt):
            act(moody, "hang")
    finally:
        signal.signal(signal.SIGALRM, before)
    assert moody._failures == [] and (act(moody) == act(make_agent("random"))).all()


# --- building and ending ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("gredy", "unknown agent 'gredy': known are"),
        pytest.param("moody_agents:Nobody", "cannot import 'Nobody' from 'moody_agents'", marks=pytest.mark.slow),
        ("moody_agents:Unbuilt", "building it raised KeyError: 'bricks'"),
        pytest.param("moody_agents:Leaves", "it ended with exit status 9", marks=pytest.mark.slow),
    ],
)
def test_what_cannot_be_built(folder: Path, spec: str, said: str) -> None:
    with pytest.raises(AgentError, match=said):
        Isolated(spec)


def test_limits_that_are_none() -> None:
    for seconds in (0, -1, float("nan"), float("inf"), "60", True, None):
        with pytest.raises(ArgumentError, match=r"seconds: .* is not a number above 0"):
            Isolated("random", seconds=seconds)  # type: ignore[arg-type]
    for megabytes in (0, 1.5, None, True):
        with pytest.raises(ArgumentError, match=r"megabytes: .* is not a whole number from 1 up"):
            Isolated("random", megabytes=megabytes)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"spec: .* is not a name"):
        Isolated(make_agent("random"))  # type: ignore[arg-type]


def test_closed_and_dropped() -> None:
    agent = Isolated("random")
    child = child_of(agent)
    agent.close()
    agent.close()
    assert not runs(child) and not Path(f"/proc/{child}").exists()
    with pytest.raises(AgentError, match="random: its process was closed"):
        act(agent)
    agent = Isolated("random")
    child = child_of(agent)
    del agent
    assert not Path(f"/proc/{child}").exists()


SCRIPT = """
import os, sys, time
from agents.isolated import Isolated
from dnfh_env.batch import Batch
batch, agent = Batch(2, seed=1), Isolated("moody_agents:Moody", seconds={seconds})
keys = batch.keys()
print(len(agent.act(batch.views(), keys)), agent._child._process.pid, flush=True)
{rest}
"""


def script(rest: str, seconds: float = 60) -> subprocess.Popen[str]:
    """A program without a guard for ``__main__``."""
    code = SCRIPT.format(rest=textwrap.dedent(rest), seconds=seconds)
    paths = os.pathsep.join(sys.path)
    return subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": paths},
    )


@pytest.mark.slow
def test_the_process_ends_with_a_script_that_ends(folder: Path) -> None:
    out, err = script("").communicate(timeout=60)
    assert out.split()[0] == "2" and err == ""
    wait_until_gone(int(out.split()[1]))


@pytest.mark.parametrize("busy", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_the_process_ends_with_one_that_is_killed(folder: Path, busy: bool) -> None:
    rest = f"keys[0] = {NAMES.index('spin')}\nagent.act(batch.views(), keys)" if busy else "time.sleep(1000)"
    with script(rest, seconds=5 if busy else 60) as parent:  # a first call may compile
        assert parent.stdout is not None
        child = int(parent.stdout.readline().split()[1])
        time.sleep(0.3 * busy)
        parent.kill()
    wait_until_gone(child, seconds=60)


@pytest.mark.slow
def test_ctrl_c_says_nothing_of_the_process(folder: Path) -> None:
    """The whole group is told, as by a terminal."""
    rest = f"""
        keys[0] = {NAMES.index("hang")}
        try:
            agent.act(batch.views(), keys)
        except KeyboardInterrupt:
            print("interrupted")
    """
    with script(rest) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline().split()[1])
        time.sleep(0.3)
        os.kill(child, signal.SIGINT)
        time.sleep(0.1)
        parent.send_signal(signal.SIGINT)
        out, err = parent.communicate(timeout=60)
    assert (out, err) == ("interrupted\n", "")
    wait_until_gone(child)
