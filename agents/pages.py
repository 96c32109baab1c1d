"""Pages: what some blocks of a match brought, in whole numbers, and the log that keeps them through a crash."""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
from numpy.typing import NDArray

from agents.plain import decoded
from agents.results import Fault
from dnfh_env.errors import DnfhError

Unit = Literal["deal", "game"]

BLOCKS_A_PAGE: Mapping[Unit, int] = {"deal": 20, "game": 1}
"""What is written at once: a kill loses no more than the pages in play."""

LOG_NAME = "log.jsonl"
BUDGET = "budget"
"""What of a log's header may change: how much is to be played."""

_INTS = ("scores", "points", "shots", "ahead", "behaviour", "times")
_FLOATS = ("luck", "seconds")


@dataclass(frozen=True, eq=False)
class Page:
    """Consecutive blocks of one unit. Sums over a block's rows by entry, so that nothing is rounded."""

    unit: Unit
    start: int
    """The first block's number."""
    scores: NDArray[np.int64]
    """``[blocks, entries]``: edge, or win share, in twelfths, summed over the seats that count for an entry."""
    points: NDArray[np.int64]
    """``[blocks, entries]``: card points of one-deal blocks."""
    shots: NDArray[np.int64]
    """``[blocks, entries]``: one-deal blocks' deals that were shot."""
    ahead: NDArray[np.int64]
    """``[blocks, N, N]`` in a field, else ``[blocks, 0, 0]``: 2 for each time one finished ahead of another, 1 for
    ties."""
    luck: NDArray[np.float64]
    """``[blocks, entries, 2]``: covariates of expectation 0 for kitties and for drawn actions, see `agents.luck`."""
    behaviour: NDArray[np.int64]
    """``[entries, counts]``, summed over the page, see `agents.behaviour`."""
    times: NDArray[np.int64]
    """``[contestants, bins]``: decisions by time, see `agents.referee`."""
    seconds: NDArray[np.float64]
    """``[contestants]``: time they took."""
    faults: tuple[Fault, ...] = ()

    @property
    def stop(self) -> int:
        """The number after the last block's."""
        return self.start + len(self.scores)

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        arrays = {name: getattr(self, name).tolist() for name in (*_INTS, *_FLOATS)}
        arrays["times"] = [{str(k): int(row[k]) for k in np.flatnonzero(row)} for row in self.times]
        return {
            "unit": self.unit,
            "start": self.start,
            "bins": self.times.shape[1],
            "shape": list(self.behaviour.shape),
            **arrays,
            "faults": [dataclasses.asdict(fault) for fault in self.faults],
        }

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Page:
        """The inverse of `to_dict`; raises ``KeyError``, ``TypeError`` or ``ValueError`` for anything else."""
        times = np.zeros((len(fields["times"]), fields["bins"]), np.int64)
        for row, counts in zip(times, fields["times"], strict=True):
            for bin_, count in counts.items():
                row[int(bin_)] = count
        arrays: dict[str, Any] = {name: np.array(fields[name], np.int64) for name in _INTS if name != "times"}
        arrays |= {name: np.array(fields[name], np.float64) for name in _FLOATS}
        blocks = len(arrays["scores"])
        if arrays["ahead"].size == 0:
            arrays["ahead"] = np.zeros((blocks, 0, 0), np.int64)
        arrays["behaviour"] = arrays["behaviour"].reshape(fields["shape"])
        faults: tuple[Fault, ...] = decoded(tuple[Fault, ...], fields["faults"], "faults")
        entries = arrays["scores"].shape[1:]
        shapes = {"points": entries, "shots": entries, "luck": (*entries, 2), "ahead": arrays["ahead"].shape[1:]}
        fits = all(arrays[name].shape == (blocks, *shape) for name, shape in shapes.items())
        fits &= arrays["ahead"].ndim == 3 and arrays["behaviour"].ndim == 2 and len(times) == len(arrays["seconds"])
        if fields["unit"] not in BLOCKS_A_PAGE or len(entries) != 1 or not fits:
            raise ValueError("not a page")
        return cls(fields["unit"], int(fields["start"]), times=times, faults=faults, **arrays)


class Log:
    """A file of JSON lines: what is played, then page after page. Only one process can hold it at a time."""

    def __init__(self, folder: str | Path, header: Mapping[str, Any]) -> None:
        """Open the log in ``folder``, which is made if need be, and read what it holds.

        A line that was cut off in the middle is dropped. Raises `DnfhError` if the log is another match's, is damaged,
        or is being written by another process, ``OSError`` if it cannot be read or written.
        """
        self.path = Path(folder) / LOG_NAME
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file: IO[bytes] = open(self.path, "a+b")  # noqa: SIM115 - held until close
        try:
            self._lock()
            self.pages = self._read(json.loads(json.dumps(header)))
        except BaseException:
            self._file.close()
            raise

    def _lock(self) -> None:
        """Keep others out for as long as the file is open, where the system can."""
        if os.name != "posix":
            return
        fcntl: Any = importlib.import_module("fcntl")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DnfhError(f"{self.path}: another process is writing to it") from None

    def _read(self, header: dict[str, Any]) -> list[Page]:
        """The pages that are there; writes the header into a new file."""
        lines = list(_whole_lines(self._file))
        if not lines:
            self._write(header)
            return []
        first, *rest = (self._parsed(number, line) for number, line in enumerate(lines, 1))
        known = (header.keys() | first.keys()) - {BUDGET}
        changed = sorted(key for key in known if header.get(key) != first.get(key))
        if changed:
            raise DnfhError(f"{self.path}: it was written for another match, which differs in {', '.join(changed)}")
        return list(self._in_order(rest))

    def _parsed(self, number: int, line: bytes) -> dict[str, Any]:
        try:
            found = json.loads(line)
            if isinstance(found, dict):
                return found
            what = "not a JSON object"
        except (ValueError, RecursionError) as error:
            what = str(error)
        raise DnfhError(f"{self.path}, line {number}: damaged: {what}")

    def _in_order(self, rest: list[dict[str, Any]]) -> Iterator[Page]:
        """Pages, each of which begins where the one before it of its unit has ended."""
        reached = dict.fromkeys(BLOCKS_A_PAGE, 0)
        for number, fields in enumerate(rest, 2):
            try:
                page = Page.from_dict(fields)
            except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
                raise DnfhError(f"{self.path}, line {number}: damaged: {type(error).__name__} {error}") from error
            if page.start != reached[page.unit]:
                expected = reached[page.unit]
                raise DnfhError(f"{self.path}, line {number}: {page.unit} {page.start}, expected {expected}")
            reached[page.unit] = page.stop
            yield page

    def append(self, page: Page) -> None:
        """Write a page, for good: a crash of the machine does not lose it."""
        self._write(page.to_dict())

    def _write(self, fields: Mapping[str, Any]) -> None:
        self._file.write(json.dumps(fields, separators=(",", ":")).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Let others have the file."""
        self._file.close()


def _whole_lines(file: IO[bytes]) -> Iterator[bytes]:
    """The lines of a file; what follows the last end of a line is cut off."""
    file.seek(0)
    whole = 0
    for line in file:
        if not line.endswith(b"\n"):
            break
        whole += len(line)
        yield line
    file.truncate(whole)


def has_begun(folder: str | Path) -> bool:
    """Whether there is a log in ``folder`` that says what is played."""
    path = Path(folder) / LOG_NAME
    return path.exists() and b"\n" in path.read_bytes()[:1_000_000]


def read_header(folder: str | Path) -> dict[str, Any]:
    """What the log in ``folder`` says is played; raises `DnfhError` if there is none."""
    path = Path(folder) / LOG_NAME
    try:
        with open(path, "rb") as file:
            found = json.loads(file.readline())
        if isinstance(found, dict):
            return found
    except FileNotFoundError:
        raise DnfhError(f"resume: there is no {LOG_NAME} in {folder}") from None
    except (ValueError, RecursionError):
        pass
    raise DnfhError(f"{path}: its first line does not say what is played")
