"""Agents in a process of their own, within limits of time and memory, so that what goes wrong there stays there.

The process is told views and seeds, and all that it can say is an array of ``int64`` of the right length, or a text.
It gets no rights less than ours: this guards against mistakes, not against malice. For POSIX systems; the limit of
memory holds on Linux, where ``RLIMIT_DATA`` counts what a process may write to.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import resource
import select
import signal
import struct
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import Any, BinaryIO, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from agents.plain import decoded, encoded
from agents.results import AgentCard
from dnfh_env.agent import REGISTRY, Agent, answer, make_agent
from dnfh_env.errors import AgentError, ArgumentError, DnfhError, shown, whole
from dnfh_env.rules import Rules, checked_rules
from dnfh_env.view import VIEW

T = TypeVar("T")

MOST_FAILURES = 3
"""After so many a process is not started again."""

_STARTING = 300.0
"""Seconds for imports and for building the agent, if a call is not given more."""

_LONGEST = 4000
"""Bytes of a text."""

_HEADER = struct.Struct("<cQ")
"""What a message is, and how many bytes follow."""

_SET_UP, _ASK, _READY, _ACTIONS, _ERROR, _NO_MEMORY = b"S", b"Q", b"R", b"A", b"E", b"M"

# What it prints goes nowhere, and what it reads is empty: the pipes that were there are for messages.
_BOOT = """\
import os, sys
sys.path[:] = {path!r}
ends = os.dup(0), os.dup(1)
null = os.open(os.devnull, os.O_RDWR)
os.dup2(null, 0)
os.dup2(null, 1)
from agents.isolated import serve
serve(*ends)
"""


class Isolated:
    """An `Agent` whose answers come from a process of its own; close it, or use it in a ``with``.

    >>> with Isolated("greedy", Rules(), seconds=10) as agent:
    ...     actions = agent.act(views, rng)

    They are those of the plain agent. Its first call may compile kernels, which counts as its time. A process that
    fails, by its time, its memory, its end or its nonsense, is killed, with those it started, and another takes its
    place at the next call, up to `MOST_FAILURES` times. An agent that raises has not failed in this sense. When this
    process ends, however it does, so does the other: at once, or when its time is up if it is within a call.
    """

    def __init__(self, spec: str, rules: Rules | None = None, seconds: float = 60.0, megabytes: int = 4096) -> None:
        """Start the process, and build the agent in it.

        Args:
            spec: a name, see `dnfh_env.agent.make_agent`; what is registered here is registered there.
            rules: the rules it is to play, `Rules()` if not given.
            seconds: for each call.
            megabytes: of memory, 2**20 bytes each, libraries included: numba needs about 450, torch 100 more.

        Raises `ArgumentError` for limits that are none, and `AgentError` if the agent cannot be built.
        """
        if not isinstance(spec, str):
            raise ArgumentError(f"spec: {shown(spec)} is not a name; an object cannot be sent to another process")
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < math.inf:
            raise ArgumentError(f"seconds: {shown(seconds)} is not a number above 0")
        self.spec = spec
        self.card = AgentCard(spec)
        """What the agent says of itself."""
        self.rules = checked_rules(rules)
        self.seconds = float(seconds)
        self.megabytes = int(whole("megabytes", megabytes, 1))
        self._alone = threading.Lock()
        self._failures: list[str] = []
        self._child: _Child | None = None
        self._closed = False
        self._guarded(self._start)

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy has a process of its own."""
        return type(self), (self.spec, self.rules, self.seconds, self.megabytes)

    def act(self, views: NDArray[Any], rng: NDArray[np.uint64]) -> NDArray[np.int64]:
        """See `Agent.act`.

        Raises `AgentError` with what happened if there is no answer, and at once after `MOST_FAILURES` failures.
        """
        count = len(views)
        request = np.asarray(views, VIEW).tobytes() + np.asarray(rng, np.uint64).tobytes()

        def exchange() -> NDArray[np.int64]:
            self._start()
            said = self._exchange(_ASK, request, _ACTIONS, max(8 * count, _LONGEST), self.seconds)
            if len(said) != 8 * count:
                raise _Failure(f"it answered {len(said)} bytes to {count} views, expected {8 * count}")
            return np.frombuffer(said, np.int64).copy()

        return self._guarded(exchange)

    def close(self) -> None:
        """End the process, whatever it is doing, and wait for its end."""
        self._closed = True
        self._drop()

    def __enter__(self) -> Isolated:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _guarded(self, work: Callable[[], T]) -> T:
        """``work()``, by one thread at a time; after a failure, or an interrupt in the middle, the process is ended."""
        with self._alone:
            if self._closed:
                raise AgentError(f"{self.spec}: its process was closed")
            if len(self._failures) >= MOST_FAILURES:
                raise AgentError(
                    f"{self.spec}: given up after {MOST_FAILURES} failures, the last: {self._failures[-1]}"
                )
            try:
                return work()
            except AgentError:
                raise  # the agent said so, and its process is well
            except _Failure as failure:
                self._failures.append(str(failure))
                self._drop()
                raise AgentError(f"{self.spec}: {failure}") from None
            except BaseException:
                self._drop()  # its answer would be taken for that to the next question
                raise

    def _start(self) -> None:
        if self._child is None:
            self._child = _Child()
            given = {
                "spec": self.spec,
                "rules": self.rules.to_dict(),
                "registry": REGISTRY,
                "seconds": self.seconds,
                "megabytes": self.megabytes,
            }
            try:
                message = json.dumps(given).encode()
                said = self._exchange(_SET_UP, message, _READY, _LONGEST, max(self.seconds, _STARTING))
                self.card = _card_from(said)
            except AgentError:  # nothing was built
                self._drop()
                raise

    def _exchange(self, kind: bytes, request: bytes, expected: bytes, longest: int, seconds: float) -> bytes:
        """What it says to a request, if it is what is ``expected``."""
        assert self._child is not None
        found, said = self._child.exchange(kind, request, longest, seconds)
        if found == _NO_MEMORY:
            raise _Failure(f"it ran out of its {self.megabytes} MB")
        if found == _ERROR:
            raise AgentError("".join(c if c.isprintable() else " " for c in said.decode(errors="replace")))
        if found != expected:
            raise _Failure(f"it answered nonsense: {shown(found)}")
        return said

    def _drop(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.end()


def _card_from(said: bytes) -> AgentCard:
    try:
        card: AgentCard = decoded(AgentCard, json.loads(said), "card")
    except (ValueError, RecursionError):
        raise _Failure(f"it answered nonsense: {shown(said)}") from None
    return card


class _Failure(Exception):
    """A process that is of no more use."""


class _Child:
    """A process that runs `serve`, and the pipes to it."""

    def __init__(self) -> None:
        boot = _BOOT.format(path=sys.path)
        process = subprocess.Popen(
            [sys.executable, "-c", boot],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,  # Ctrl-C is not for it, and what it starts can be ended with it
        )
        assert process.stdin is not None and process.stdout is not None
        self._process = process
        self._to, self._from = process.stdin.fileno(), process.stdout.fileno()
        os.set_blocking(self._to, False)
        os.set_blocking(self._from, False)
        self.end = weakref.finalize(self, _end, process)

    def exchange(self, kind: bytes, request: bytes, longest: int, seconds: float) -> tuple[bytes, bytes]:
        """Its answer to a request, as kind and content."""
        deadline = _Deadline(seconds)
        try:
            self._write(_HEADER.pack(kind, len(request)) + request, deadline)
            found, size = _HEADER.unpack(self._read(_HEADER.size, deadline))
            if size > longest:
                raise _Failure(f"it answered nonsense: {size} bytes")
            return found, self._read(size, deadline)
        except (EOFError, BrokenPipeError):
            self.end()
            raise _Failure(_obituary(self._process.returncode)) from None

    def _write(self, message: bytes, deadline: _Deadline) -> None:
        left = memoryview(message)
        while left:
            deadline.wait(self._to, select.POLLOUT)
            left = left[os.write(self._to, left) :]

    def _read(self, size: int, deadline: _Deadline) -> bytes:
        found = bytearray()
        while len(found) < size:
            deadline.wait(self._from, select.POLLIN)
            part = os.read(self._from, size - len(found))
            if not part:
                raise EOFError
            found += part
        return bytes(found)


class _Deadline:
    """So many seconds from now."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self._end = seconds, time.monotonic() + seconds

    def wait(self, pipe: int, event: int) -> None:
        """Until the pipe is ready, or closed at its other end; fails when the time is up."""
        ready = select.poll()
        ready.register(pipe, event)
        if not ready.poll(max(0.0, self._end - time.monotonic()) * 1000):
            raise _Failure(f"no answer within {self._seconds:g} s")


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill it and what it started, and leave no zombie. Its number is its own until it has been waited for."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
    process.wait()


def _obituary(status: int) -> str:
    if status >= 0:
        return f"it ended with exit status {status}"
    name = signal.Signals(-status).name if -status in set(signal.Signals) else "unknown"
    return f"it died with signal {-status} ({name})"


# --- in the other process ---------------------------------------------------------------------------------------


def serve(requests: int, answers: int) -> None:
    """Build an agent and answer for it, until the pipe of requests, a file descriptor as the other, is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # which ends it, in whatever code it hangs
    with open(requests, "rb", closefd=False) as coming, open(answers, "wb", closefd=False) as going:
        given = json.loads(_receive(coming))
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_DATA, (given["megabytes"] << 20,) * 2)
        signal.alarm(_grace(max(given["seconds"], _STARTING)))
        _answer_all(_built(given, going), given, coming, going)


def _answer_all(agent: Agent, given: dict[str, Any], coming: BinaryIO, going: BinaryIO) -> NoReturn:
    while True:
        signal.alarm(0)
        request = _receive(coming)
        signal.alarm(_grace(given["seconds"]))
        _send(going, *_reply(agent, given["spec"], request))


def _grace(seconds: float) -> int:
    """After how many it ends itself, since there is nobody left to do it."""
    return min(2 * math.ceil(seconds) + 1, 1 << 30)


def _built(given: dict[str, Any], going: BinaryIO) -> Agent:
    REGISTRY.update(given["registry"])
    try:
        agent = make_agent(given["spec"], Rules.from_dict(given["rules"]))
    except DnfhError as error:
        _send(going, *_said(error))
        sys.exit()
    said = json.dumps(encoded(AgentCard.of(given["spec"], agent))).encode()
    _send(going, _READY, said if len(said) <= _LONGEST else json.dumps(encoded(AgentCard(given["spec"]))).encode())
    return agent


def _reply(agent: Agent, spec: str, request: bytes) -> tuple[bytes, bytes]:
    """Kind and content of the answer."""
    count = len(request) // (VIEW.itemsize + 8)
    views, rng = np.empty(count, VIEW), np.empty(count, np.uint64)
    everything = np.frombuffer(request, np.uint8)
    views.view(np.uint8)[:] = everything[: VIEW.itemsize * count]
    rng.view(np.uint8)[:] = everything[VIEW.itemsize * count :]
    try:
        return _ACTIONS, answer(agent, views, rng, spec).tobytes()
    except AgentError as error:
        return _said(error)


def _said(error: DnfhError) -> tuple[bytes, bytes]:
    kind = _NO_MEMORY if isinstance(error.__cause__, MemoryError) else _ERROR
    return kind, str(error).encode(errors="replace")[:_LONGEST]


def _receive(pipe: BinaryIO) -> bytes:
    """The next request; ends the process when there is none."""
    header = pipe.read(_HEADER.size)
    if len(header) < _HEADER.size:
        os._exit(0)
    return pipe.read(_HEADER.unpack(header)[1])


def _send(pipe: BinaryIO, kind: bytes, content: bytes) -> None:
    pipe.write(_HEADER.pack(kind, len(content)) + content)
    pipe.flush()
