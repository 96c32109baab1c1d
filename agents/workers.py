"""Playing a match in several processes; what comes out does not depend on how many."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import wait
from types import TracebackType
from typing import Any

from agents.arena import Limits, Match
from agents.pages import Page, Unit
from dnfh_env.agent import REGISTRY
from dnfh_env.equity import EquityTable, tables_in_use, use_equity
from dnfh_env.errors import AgentError, whole
from dnfh_env.rules import Rules

ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Processes share the cores, so the libraries within them should not take all for themselves."""

_match: Match | None = None
"""The match of a worker process."""


class Workers:
    """So many spawned processes as the crew of a `Match`; close it, or use it in a ``with``.

    >>> with Workers(match, 2) as crew:
    ...     for _ in match.play("deal", 100_000, crew=crew):
    ...         pass
    """

    def __init__(self, match: Match, count: int) -> None:
        """Start them.

        Args:
            match: what they are to play. Agents given as objects are copied by pickle.
            count: how many.

        Raises `AgentError` for an agent that cannot be copied.
        """
        self.depth = 2 * int(whole("workers", count, 1))
        setup = (REGISTRY, tables_in_use(), *match.given, match.rules, match.seed, match.format.name)
        try:
            pickle.dumps(setup)  # as the pool will do it, where an error is harder to tell
        except Exception as error:
            raise AgentError(f"workers: an agent cannot be sent to another process: {error}") from error
        others = set(multiprocessing.active_children())
        before = {name: os.environ.get(name) for name in ONE_THREAD}
        os.environ.update({name: value or "1" for name, value in before.items()})
        try:
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(count, context, initializer=_begin, initargs=setup)
            for future in [self._pool.submit(os.getpid) for _ in range(count)]:
                future.result()  # they have begun, or cannot
            self._own = set(multiprocessing.active_children()) - others
        except BrokenProcessPool as error:
            raise AgentError("workers: a process could not build the agents; see above") from error
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]

    def submit(self, unit: Unit, start: int, stop: int) -> Future[list[Page]]:
        """See `agents.arena.Crew`."""
        return self._pool.submit(_play, unit, start, stop)

    def close(self) -> None:
        """End the processes at once, whatever they are doing."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        for process in self._own:
            process.terminate()

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _begin(
    registry: dict[str, str],
    tables: list[EquityTable],
    contestants: Any,
    others: Any,
    limits: Limits | None,
    rules: Rules,
    seed: int,
    format: str,
) -> None:
    global _match
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who started this ends it, and takes it along when it is killed
    threading.Thread(target=_end_with, args=(multiprocessing.parent_process(),), daemon=True).start()
    REGISTRY.update(registry)
    for table in tables:
        use_equity(table)
    _match = Match(contestants, others or "random", rules, seed, format=format, limits=limits)


def _end_with(parent: Any) -> None:
    wait([parent.sentinel])
    os._exit(1)


def _play(unit: Unit, start: int, stop: int) -> list[Page]:
    assert _match is not None
    return _match.pages(unit, start, stop)
