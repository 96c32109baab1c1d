"""How a figure is taken and written down: work done a second, in turn with its peers, several times over."""

from __future__ import annotations

import functools
import json
import os
import platform
import statistics
import subprocess
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

Work = Callable[[], int]
"""Does some work and returns how much: decisions, unless said otherwise."""
Measure = Callable[[], float]
"""Work done a second, measured anew at each call."""


def rate(work: Work, seconds: float) -> float:
    """Work done a second, over as many whole calls as fill at least so many seconds, and one at least."""
    done = 0
    start = time.perf_counter()
    while True:
        done += work()
        elapsed = time.perf_counter() - start
        if elapsed >= seconds:
            return done / elapsed


def measures(works: dict[str, Work], seconds: float) -> dict[str, Measure]:
    """`rate` of each."""
    return {name: functools.partial(rate, work, seconds) for name, work in works.items()}


def in_turn(measures: dict[str, Measure], repeats: int, rounds: int = 1) -> dict[str, list[float]]:
    """Every measure ``repeats`` times, one after the other, so that a busy moment hits all alike.

    A repeat is the median of ``rounds``, in which they take turns too: what holds the machine for a second is left out.
    """
    for measure in measures.values():
        measure()  # warm
    found: dict[str, list[float]] = {name: [] for name in measures}
    for _ in range(repeats):
        taken = [{name: measure() for name, measure in measures.items()} for _ in range(rounds)]
        for name, values in found.items():
            values.append(statistics.median(each[name] for each in taken))
    return found


def summary(values: list[float]) -> dict[str, float]:
    """Median and spread."""
    return {"median": statistics.median(values), "low": min(values), "high": max(values)}


def ratio(values: list[float], peers: list[float]) -> dict[str, float]:
    """Ratio of the medians, and the spread of the ratios formed repeat by repeat."""
    each = [value / peer for value, peer in zip(values, peers, strict=True)]
    return {"ratio": statistics.median(values) / statistics.median(peers), "low": min(each), "high": max(each)}


def machine() -> dict[str, object]:
    """What the figures depend on, and how busy it is."""
    load = os.getloadavg() if hasattr(os, "getloadavg") else None
    return {
        "processor": processor(),
        "cores": cores(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "load average": load,
    }


def processor(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """The model name of the first core where Linux tells it, else what Python knows."""
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def commit() -> dict[str, object]:
    """The commit that is measured, and whether files differ from it; no commit outside a repository."""
    head, changes = _git("rev-parse", "HEAD"), _git("status", "--porcelain")
    return {"commit": head or None, "changed since": bool(changes)}


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return done.stdout.strip()


def origin(packages: tuple[str, ...]) -> dict[str, object]:
    """Machine, versions and commit that figures come from; asked for before anything is measured."""
    return {"machine": machine(), "versions": {name: version(name) for name in packages}, **commit()}


def write(path: Path, report: dict[str, object]) -> None:
    """The figures as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report, indent=2) + "\n")
    print(f"written: {path}")
