"""Threads that work together: whoever is free claims what is next, so a helper that comes late delays nobody."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils, config
from numba.extending import intrinsic
from numpy.typing import NDArray

from dnfh_env._bits import LINE, let_numbers_wrap, zeros_in_lines

Work = Callable[[int], None]
"""What each thread does, given its number: claim and do what is next until nothing is left."""


def together(work: Work, threads: int) -> None:
    """``work(0)`` here, beside ``work(number)``, ``number >= 1``, in up to ``threads - 1`` helpers, if they are free.

    A helper that has not begun when this thread has done never begins, so ``work`` must be able to do everything alone.
    Work may be shared within work. An error of any thread is raised once nobody works any more, and Ctrl-C is heard
    then, see `_undisturbed`.
    """
    if threads < 2:
        work(0)
    else:
        crew = _CREWS.get(os.getpid()) or _CREWS.setdefault(os.getpid(), _Crew())
        _undisturbed(lambda: _Call(work).done(crew, threads - 1))


def _undisturbed(work: Callable[[], None]) -> None:
    """``work()``; Ctrl-C is heard afterwards, since within it would leave some rows behind the others."""
    heard: list[int] = []
    ours = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGINT) if ours else None
    if before is None:  # signals go elsewhere
        return work()
    try:
        try:
            signal.signal(signal.SIGINT, lambda number, frame: heard.append(number))
            work()
        finally:
            signal.signal(signal.SIGINT, before)
    finally:
        signal.signal(signal.SIGINT, before)  # again, if a handler of another signal raised in the first
        if heard:
            signal.raise_signal(signal.SIGINT)


class _Call:
    """A call for help with ``work``."""

    def __init__(self, work: Work) -> None:
        self._work: Work | None = work
        self._inside: set[int] = set()  # numbers of the helpers that may be at work
        self._left: SimpleQueue[None] = SimpleQueue()  # wakes who waits for them
        self._errors: list[BaseException] = []

    def done(self, crew: _Crew, helpers: int) -> None:
        """Work here, with whoever answers, to the end."""
        try:
            try:
                crew.call(self._help, helpers)
                self._begin(0)
            finally:
                self._close()
        finally:
            self._close()  # again, if a signal's handler raised in the first
        if self._errors:
            raise self._errors.pop()

    def _help(self, number: int) -> None:
        self._inside.add(number)
        try:
            self._begin(number)
        except BaseException as error:
            self._errors.append(error)
        self._inside.discard(number)
        self._left.put(None)

    def _begin(self, number: int) -> None:
        work = self._work
        if work is not None:
            work(number)

    def _close(self) -> None:
        """Wait for helpers that have begun; one that has not finds no work."""
        self._work = None
        while self._inside:
            self._left.get()


class _Crew:
    """Helpers, who wait for calls as long as the process lives: as many as were ever called at once."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[Work] = SimpleQueue()
        self._size = 0
        self._growing = threading.Lock()

    def call(self, work: Work, helpers: int) -> None:
        """Ask so many for ``work(number)``; numbers begin at 1."""
        if self._size < helpers:
            self._grow(helpers)
        for _ in range(helpers):
            self._calls.put(work)

    def _grow(self, size: int) -> None:
        with self._growing:
            while self._size < size:
                number = self._size + 1
                threading.Thread(target=self._answer, args=(number,), name=f"dnfh-helper-{number}", daemon=True).start()
                self._size = number

    def _answer(self, number: int) -> None:
        let_numbers_wrap()
        while True:
            self._calls.get()(number)  # without a name, which would keep it until the next


_CREWS: dict[int, _Crew] = {}
"""By process: a forked one has none of its parent's helpers, so it gets its own."""


# --- claims within kernels --------------------------------------------------------------------------------------


def regions(count: int, block: int, threads: int) -> NDArray[np.int64]:
    """``count`` rows, cut into a region for each thread, with edges at multiples of ``block``: ``int64[regions, 8]``.

    Each has a cache line, which begins with the first row that nobody has claimed, see `claim`, the row behind its
    last, and ``block``. None is empty, unless there are no rows.
    """
    blocks = -(-count // block)
    cuts = min(threads, max(1, blocks))
    edges = np.minimum(blocks * np.arange(cuts + 1) // cuts * block, count)
    found = zeros_in_lines(cuts, LINE // 8).view(np.int64)  # so that counting in one does not disturb the others
    found[:, 0], found[:, 1], found[:, 2] = edges[:-1], edges[1:], block
    return found


def _claiming() -> Any:
    """A function for kernels that adds ``size`` to ``claims[i, 0]``, ``int64``, and returns what was there before.

    No two threads get the same, and none waits for another.
    """
    alone = threading.Lock()

    def claim(claims: Any, i: Any, size: Any) -> Any:  # as plain Python
        with alone:
            claims[i, 0] += size
            return claims[i, 0] - size

    def typed(context: Any, claims: Any, i: Any, size: Any) -> Any:
        return types.int64(claims, i, types.int64), emit

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        index = [arguments[1], ir.Constant(arguments[1].type, 0)]
        place = cgutils.get_item_pointer(  # type: ignore[no-untyped-call]
            context, builder, signature.args[0], array, index, boundscheck=context.enable_boundscheck
        )
        return builder.atomic_rmw("add", place, arguments[2], "monotonic")

    return claim if config.DISABLE_JIT else intrinsic(typed)  # type: ignore[attr-defined]


claim = _claiming()
