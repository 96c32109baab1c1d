"""Train a policy by self-play, PPO on every decision, and keep it as a checkpoint that evaluate.py plays as ppo:FOLDER.

The folder is itself the latest checkpoint; "best" in it is the one with the highest edge in an evaluation, tb is for
TensorBoard, progress.csv holds the evaluations. Ctrl-C saves and ends; --resume FOLDER goes on from there, or from
where a killed run was last saved, to the very weights it would have come to.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from agents.arena import SEED, evaluate
from agents.cli import INTERRUPTED, SUCCESS, load_rules
from agents.learned.checkpoint import Checkpoint, is_checkpoint, load_last_good
from agents.learned.settings import Settings
from dnfh_env.agent import REGISTRY, Agent, make_agent
from dnfh_env.errors import CheckpointError, DnfhError, whole
from dnfh_env.rules import Rules

if TYPE_CHECKING:
    from agents.learned.training import Run

Preset = Literal["default", "demo"]

PRESETS: dict[Preset, dict[str, Any]] = {
    "default": {},
    "demo": {"decisions": 3_000_000, "against": ("greedy-v1", "random"), "eval_every": 500_000},
}
"""Named sets of arguments. ``demo`` takes about three minutes on two cores; sized in decisions, so that its weights do
not depend on the machine's speed."""

DEALS_A_GAME = 10
"""Deals evaluated for each whole game, where games are what is learned; a game is about that many."""

EVALUATION_SEED = SEED + 1
"""Not that of ``evaluate.py``, whose report would otherwise flatter a best checkpoint that was picked on its deals."""

for library in ("torch", "stable_baselines3", "sb3_contrib", "safetensors", "tensorboard"):
    if importlib.util.find_spec(library) is None:  # imported only when a run begins, so that --help is quick
        raise ModuleNotFoundError(f"No module named {library!r}", name=library)


@dataclasses.dataclass(frozen=True)
class TrainArgs(Settings):
    """What to train, and where to keep it."""

    out: Path | None = None
    """The folder for checkpoints and logs: a new or empty one, or that of --resume, which stands in if not given."""
    preset: Preset = "default"
    """A named set of arguments; those given beside it win. "demo" takes about three minutes on two cores."""
    resume: Path | None = None
    """The folder of a run to go on with, in the middle of its games, with its arguments but for those given anew."""
    rules: str = "default"
    """The name of a preset of rules, or a JSON file."""
    seed: int = 0
    """Fixes weights, deals and choices: the same seed, arguments and number of threads give the same weights."""
    against: tuple[str, ...] = ()
    """Whom evaluations are played against, three of each in turn; the bots among the opponents if none are named,
    greedy-v1 if there are none."""
    eval_every: int = 250_000
    """Decisions between evaluations, each of which also saves."""
    eval_deals: int = 500
    """Deals of an evaluation, each played from all four seats; with --episode game a tenth as many games too, and the
    share of them that is won picks the best checkpoint."""
    device: Literal["cpu", "cuda", "auto"] = "cpu"
    """Where the network is trained: cpu, cuda, or auto; a network this small gains little from a GPU."""
    threads: int = 1
    """Threads of torch. A second one gains two fifths on an idle machine, and spins on a busy one."""
    export_sb3: bool = False
    """Write model.zip too, for MaskablePPO.load. It holds code, so it is never read back here."""

    def check(self) -> None:
        """See `Settings.check`."""
        super().check()
        whole("eval_every", self.eval_every, 1)
        whole("eval_deals", self.eval_deals, 2)
        whole("threads", self.threads, 1, 1024)


def defaults(arguments: Sequence[str]) -> TrainArgs:
    """The arguments of the preset or of the run to go on with that the command line names, for others on it to change.

    Raises `CheckpointError` if there is no such run, `DnfhError` if both are named.
    """
    words = [word for argument in arguments for word in argument.split("=", 1)]
    resumed, named = (_last_value(words, flag) for flag in ("--resume", "--preset"))
    if resumed and named:
        raise DnfhError(f"preset: {named[0]!r} does not go with --resume, whose run has its own arguments")
    if resumed:
        return _arguments_of(Path(resumed[0]), words)
    return next((TrainArgs(preset=name, **PRESETS[name]) for name in get_args(Preset) if [name] == named), TrainArgs())


def _last_value(words: Sequence[str], flag: str) -> list[str]:
    """What follows the last ``flag``, if that is a value."""
    found = [word for before, word in pairwise(words) if before == flag and not word.startswith("-")]
    return found[-1:]


KEPT = ("rules", "against", "eval_every", "eval_deals", "device", "threads", "export_sb3")
"""Arguments that a checkpoint keeps beside its settings and its seed."""


def _arguments_of(path: Path, words: Sequence[str]) -> TrainArgs:
    """Those of the run that saved a checkpoint; what they name is only imported if ``words`` name it too."""
    training = load_last_good(path)[0].training
    try:
        arguments = training.get("arguments", {})
        kept = {"seed": training["seed"], **{name: arguments[name] for name in KEPT if name in arguments}}
        args = TrainArgs.from_dict({**training["settings"], **kept, "resume": path})
        args.check()
        foreign = {"opponents": args.bots(), "against": args.against}
    except (KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(f"checkpoint {path}: it can be played but not trained on: {error!r}") from error
    for argument, names in foreign.items():
        code = [name for name in names if name.partition(":")[0] not in REGISTRY]
        if code and f"--{argument}" not in words:
            raise CheckpointError(
                f"checkpoint {path}: --{argument} names code of its own, {', '.join(code)}; if you trust it, give "
                f"--{argument} {' '.join(getattr(args, argument))}"
            )
    return args


def train(args: TrainArgs) -> int:
    """Train as told; the exit status. Raises `DnfhError` for arguments that cannot be, `OSError` for files."""
    args.check()
    out = _folder(args)
    console = Console(soft_wrap=True, markup=False)
    run = _prepare(args, out, console)
    if args.resume:
        console.print(f"Going on from {run.learner.decisions} decisions.")
    if run.is_over():
        status = SUCCESS
        console.print(f"{out} has learned from {run.learner.decisions} decisions already; ask for more --decisions")
    else:
        status = _learn(run, console)
    if args.export_sb3:
        run.learner.export(out / "model.zip")
        console.print(f"Written: {out / 'model.zip'}")
    return status


def _learn(run: Run, console: Console) -> int:
    with _progress(run, console), _stopped_by(signal.SIGTERM):
        finished = run.learn()
    decisions, out = run.learner.decisions, run.out
    if not finished:
        console.print(f"Stopped after {decisions} decisions and saved; go on with --resume {out}")
        return INTERRUPTED
    console.print(f"Trained on {decisions} decisions. Evaluate with: evaluate.py ppo:{out}")
    return SUCCESS


@contextmanager
def _stopped_by(number: signal.Signals) -> Iterator[None]:
    """Let a signal end the run as Ctrl-C does."""
    if threading.current_thread() is not threading.main_thread():  # which alone hears signals
        yield
        return
    before = signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(number, before)


def _folder(args: TrainArgs) -> Path:
    """Where to write, checked before anything is done."""
    out = args.out or args.resume
    if out is None:
        raise DnfhError("out: expected a folder for the results, such as --out runs/first")
    if out.exists() and not _in_place(args) and (not out.is_dir() or any(out.iterdir())):
        what = "holds a checkpoint already" if is_checkpoint(out) else "is not an empty folder"
        raise DnfhError(f"out: {out} {what}; name a new one, or go on from a checkpoint with --resume")
    return out


def _in_place(args: TrainArgs) -> bool:
    """Whether a run is to go on in its own folder."""
    return args.resume is not None and (args.out is None or args.out.resolve() == args.resume.resolve())


def _prepare(args: TrainArgs, out: Path, console: Console) -> Run:
    import torch

    from agents.learned.self_play import SelfPlay
    from agents.learned.training import Run

    if args.device == "cuda" and not torch.cuda.is_available():
        raise DnfhError("device: 'cuda' is not there; use 'cpu' or 'auto'")
    torch.set_num_threads(args.threads)
    found = None if args.resume is None else _found(args, args.resume, console)
    rules = load_rules(args.rules) if found is None else found.rules
    notes: dict[str, Any] = {"arguments": {name: getattr(args, name) for name in KEPT}}
    settings = Settings(**{field.name: getattr(args, field.name) for field in dataclasses.fields(Settings)})
    learner = SelfPlay(settings, rules, args.seed, args.device)
    if found is not None:
        learner.restore(found, args.resume or out)
        if _in_place(args):
            notes["history"] = found.training.get("history", [])
    against = {name: make_agent(name, rules) for name in args.against or settings.bots() or ["greedy-v1"]}
    games = args.eval_deals // DEALS_A_GAME
    games = games if settings.episode == "game" and games > 1 else 0
    figures = Evaluation(rules, against, args.eval_deals, games)
    best_by = "win_share" if games else "edge"
    return Run(learner, out, figures, args.eval_every, notes=notes, best_by=best_by)


def _found(args: TrainArgs, path: Path, console: Console) -> Checkpoint:
    """The checkpoint to go on from; if the latest is broken, that is said, and the one before it serves."""
    found, complaint = load_last_good(path, args.observation)
    if complaint:
        console.print(f"{complaint}; going on from the one before it")
    if args.rules != found.training.get("arguments", {}).get("rules", "default"):
        rules = load_rules(args.rules)
        if rules.play_digest() != found.rules.play_digest():
            raise CheckpointError(f"checkpoint {path}: it was trained for {found.rules!r}, and these are {rules!r}")
    return found


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """The figures of a policy against each of some agents, always on the same deals and games."""

    rules: Rules
    against: Mapping[str, Agent]
    deals: int
    games: int

    def __call__(self, agent: Agent) -> dict[str, dict[str, float]]:
        """Figures by opponent, three of which sit at the table, with the margins of 95 % intervals."""
        return {name: self._figures(agent, opponent) for name, opponent in self.against.items()}

    def _figures(self, agent: Agent, opponent: Agent) -> dict[str, float]:
        result = evaluate(agent, opponent, self.rules, deals=self.deals, games=self.games, seed=EVALUATION_SEED)
        found = {"card_points": result.card_points, "edge": result.edge, "win_share": result.win_share}
        figures: dict[str, float] = {}
        for name, interval in found.items():
            if interval is not None:
                figures |= {name: interval.mean, f"{name}_margin": interval.margin}
        return figures


class Speed(ProgressColumn):
    """Decisions a second."""

    def render(self, task: Task) -> Text:
        """See `ProgressColumn.render`."""
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:,.0f}/s")


@contextmanager
def _progress(run: Run, console: Console) -> Iterator[None]:
    """A bar with the time left while ``run`` learns, and a line for each evaluation."""
    columns = (
        TextColumn("decisions"),
        BarColumn(),
        MofNCompleteColumn(),
        Speed(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("decisions", total=run.learner.settings.decisions, completed=run.learner.decisions)

        def tick(decisions: int) -> None:
            bar.update(task, completed=decisions)

        def tell(decisions: int, figures: Mapping[str, Mapping[str, float]]) -> None:
            bar.console.print(f"after {decisions} decisions: {'; '.join(map(_line, figures, figures.values()))}")

        run.tick, run.tell = tick, tell
        yield


def _line(opponent: str, figures: Mapping[str, float]) -> str:
    told = (
        f"against {opponent} {figures['card_points']:.1f} ± {figures['card_points_margin']:.1f} card points, "
        f"edge {figures['edge']:+.1f} ± {figures['edge_margin']:.1f}"
    )
    if "win_share" in figures:
        told += f", {figures['win_share']:.0%} ± {figures['win_share_margin']:.0%} of games won"
    return told
