"""The figures as pictures. No display is needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

Series = Mapping[str, Mapping[int, Mapping[str, float]]]
"""For each name, by size: a `measuring.summary` of decisions a second."""


def new_axes(title: str, xlabel: str, ylabel: str) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    axes.set(title=title, xlabel=xlabel, ylabel=ylabel)
    return figure, axes


def cost_by_batch(path: Path, series: Series) -> None:
    """Nanoseconds a decision against the number of games, both axes logarithmic."""
    figure, axes = new_axes("Cost of a decision, one core", "games in a batch", "nanoseconds a decision")
    for name, by_size in series.items():
        median, low, high = (
            np.array([1e9 / found[key] for found in by_size.values()]) for key in ("median", "low", "high")
        )
        axes.errorbar([*by_size], median, yerr=(median - high, low - median), marker="o", capsize=3, label=name)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    finish(figure, axes, path)


def speed_up(path: Path, series: Series) -> None:
    """Times the speed of one thread, against the number of threads."""
    figure, axes = new_axes("Speed-up by threads", "threads", "times the speed of one")
    for name, by_threads in series.items():
        one = by_threads[1]["median"]
        axes.plot([*by_threads], [found["median"] / one for found in by_threads.values()], marker="o", label=name)
    threads = [*next(iter(series.values()))]
    axes.plot(threads, threads, color="grey", linestyle="dotted", label="one for one")
    axes.set_xticks(threads)
    finish(figure, axes, path)


def modes(path: Path, figures: Mapping[str, Mapping[str, float]]) -> None:
    """Decisions a second by what a step writes."""
    figure, axes = new_axes("`step`, one core", "", "million decisions a second")
    median, low, high = (
        np.array([found[key] for found in figures.values()]) / 1e6 for key in ("median", "low", "high")
    )
    axes.bar([*figures], median, yerr=(median - low, high - median), capsize=4)
    finish(figure, axes, path, legend=False)


def memory(path: Path, figures: Mapping[str, Mapping[str, float]]) -> None:
    """Bytes a game by what a step writes; the parts stand on each other."""
    figure, axes = new_axes("Memory a game", "", "bytes")
    bottom = np.zeros(len(figures))
    for part in ("state", "buffers"):
        heights = np.array([found[part] for found in figures.values()])
        axes.bar([*figures], heights, bottom=bottom, label=part)
        bottom += heights
    finish(figure, axes, path)


def finish(figure: Figure, axes: Axes, path: Path, legend: bool = True) -> None:
    axes.set_ylim(bottom=None if axes.get_yscale() == "log" else 0)
    axes.grid(alpha=0.3)
    if legend:
        axes.legend()
    figure.savefig(path, dpi=120)


def draw(folder: Path, report: Mapping[str, Mapping[str, Mapping]]) -> Sequence[Path]:
    """All pictures of a report of `run`, as PNG files; their paths."""
    drawn = {
        "bench_batch_size.png": (cost_by_batch, "by batch size"),
        "bench_threads.png": (speed_up, "by threads"),
        "bench_observations.png": (modes, "by observation"),
        "bench_memory.png": (memory, "bytes a game"),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, (picture, key) in drawn.items():
        picture(folder / name, report[key])
    return [folder / name for name in drawn]
