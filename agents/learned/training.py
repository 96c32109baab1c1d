"""`Run`: one training run and its folder. Evaluates, saves, ends well whatever happens, and goes on from there."""

from __future__ import annotations

import csv
import dataclasses
import io
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from stable_baselines3.common.logger import configure

from agents.learned.checkpoint import Checkpoint, save, write
from agents.learned.policy import PPOAgent
from agents.learned.self_play import SelfPlay, TrainingError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

Figures = Mapping[str, Mapping[str, float]]
"""How a policy fares, by opponent and name of the figure."""


@dataclasses.dataclass
class Run:
    """A learner and its folder, which is itself the latest checkpoint; the best one is in ``best``.

    Evaluations fall due by decisions, never by time. A run that was killed at any moment and is gone on with from its
    folder ends with the same weights and figures, bit by bit, as one that was not.
    """

    learner: SelfPlay
    out: Path
    evaluate: Callable[[PPOAgent], Figures]
    evaluate_every: int
    """Decisions between two evaluations."""
    save_every: int = 100_000
    """Decisions between two saves, evaluations apart."""
    tell: Callable[[int, Figures], None] = lambda decisions, figures: None
    """Called after each evaluation."""
    tick: Callable[[int], None] = lambda decisions: None
    """Called with the number of decisions after each update."""
    best_by: str = "edge"
    """The figure whose mean over opponents picks the best checkpoint."""
    notes: dict[str, Any] = dataclasses.field(default_factory=dict)
    """What checkpoints keep beside the settings: ``"history"``, all evaluations so far with their ``"decisions"`` and
    ``"figures"``, and what the caller put there."""
    _state: Checkpoint = dataclasses.field(init=False)
    """The learner after the last whole update: what is saved, however the run ends."""

    def learn(self) -> bool:
        """Train until the settings' number of decisions; False if Ctrl-C ended it early.

        The state after the last whole update is saved in any case, unless the saving is broken off too. Raises
        `TrainingError` if the run diverges or another one is writing to the folder, and `OSError` if it cannot be
        written.
        """
        self.out.mkdir(parents=True, exist_ok=True)
        with alone_in(self.out):
            return self._learn_and_save()

    def _learn_and_save(self) -> bool:
        self._state = self.learner.checkpoint(self.notes)
        save(self.out, self._state)
        logger = configure(str(self.out / "tb"), ["tensorboard"])
        self.learner.model.set_logger(logger)
        try:
            self._learn()
        except KeyboardInterrupt:
            self.learner.restore(self._state, self.out)  # from the middle of an update to the end of the last
            return False
        except TrainingError as error:
            raise TrainingError(
                f"{error}; {self.out} holds the state after {self._state.training['decisions']} decisions, from which "
                "to go on with a smaller learning rate or clip range"
            ) from error
        finally:
            with closing(logger):
                save(self.out, self._state)
        return True

    def _learn(self) -> None:
        learner, saved = self.learner, self.learner.decisions
        while True:
            if self._is_due():
                self._judge()
            if learner.decisions >= learner.settings.decisions:
                return
            learner.update()
            self._state = learner.checkpoint(self.notes)
            learner.model.logger.dump(learner.decisions)
            if learner.decisions - saved >= self.save_every:
                save(self.out, self._state)
                saved = learner.decisions
            self.tick(learner.decisions)

    def is_over(self) -> bool:
        """Whether nothing is left to do."""
        return self.learner.decisions >= self.learner.settings.decisions and not self._is_due()

    def _is_due(self) -> bool:
        """Whether the policy of now is to be evaluated: at the end, and past each multiple of ``evaluate_every``."""
        history, decisions = self.notes.get("history", []), self.learner.decisions
        last = history[-1]["decisions"] if history else 0
        at_end = decisions >= self.learner.settings.decisions
        return bool(last < decisions and (at_end or last // self.evaluate_every < decisions // self.evaluate_every))

    def _judge(self) -> None:
        """Evaluate the policy of now and write the figures down; the best so far is saved in ``best`` too."""
        figures = {opponent: dict(row) for opponent, row in self.evaluate(self.learner.agent()).items()}
        history = self.notes.get("history", [])
        best = max((self._mean(entry["figures"]) for entry in history), default=-math.inf)
        history = [*history, {"decisions": self.learner.decisions, "figures": figures}]
        state = self.learner.checkpoint({**self.notes, "history": history})
        if self._mean(figures) > best:
            save(self.out / "best", state)
        write(self.out / "progress.csv", progress_table(history).encode())
        save(self.out, state)  # comes last: a run that is broken off before evaluates once more
        self._state, self.notes["history"] = state, history
        for opponent, row in figures.items():
            for name, value in row.items():
                self.learner.model.logger.record(f"evaluation/{opponent}/{name}", value)
        self.learner.model.logger.dump(self.learner.decisions)
        self.tell(self.learner.decisions, figures)

    def _mean(self, figures: Figures) -> float:
        return float(np.mean([row.get(self.best_by, -math.inf) for row in figures.values()]))


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Keep other runs out of a folder, where the system has locks; they end with the process, however it ends."""
    with (folder / ".lock").open("w") as lock:
        if fcntl is not None:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise TrainingError(f"another run is writing to {folder}; give each a folder of its own") from error
        yield


def progress_table(history: list[dict[str, Any]]) -> str:
    """A run's evaluations as CSV: a line for each opponent of each."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for entry in history:
        for opponent, row in entry["figures"].items():
            if text.tell() == 0:
                writer.writerow(["decisions", "opponent", *row])
            writer.writerow([entry["decisions"], opponent, *row.values()])
    return text.getvalue()
