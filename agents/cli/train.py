"""Train a policy with PPO against agents you name, and keep it as a checkpoint that evaluate.py plays as ppo:FOLDER.

The folder is itself the latest checkpoint; "best" in it is the one with the highest edge in an evaluation, tb is for
TensorBoard, progress.csv holds the evaluations. Ctrl-C saves and ends; --resume goes on from there.
"""

from __future__ import annotations

import dataclasses
import importlib.util
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
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
from agents.learned.checkpoint import Checkpoint, is_checkpoint, load
from agents.learned.settings import Settings
from dnfh_env.agent import Agent, make_agent
from dnfh_env.errors import CheckpointError, DnfhError, is_whole, whole
from dnfh_env.rules import Rules

if TYPE_CHECKING:
    from agents.learned.training import Run

Preset = Literal["default", "demo"]

PRESETS: dict[Preset, dict[str, Any]] = {
    "default": {},
    "demo": {"decisions": 2_200_000, "against": ("greedy-v1", "random")},
}
"""Named sets of arguments. ``demo`` takes about three minutes on two cores; sized in decisions, so that its weights do
not depend on the machine's speed."""

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
    """A checkpoint to go on from, with its weights, optimiser, count of decisions and random streams, on fresh deals:
    games that were under way are not taken up again. Give the other arguments as before."""
    rules: str = "default"
    """The name of a preset of rules, or a JSON file."""
    seed: int = 0
    """Fixes weights, deals and choices: the same seed, arguments and number of threads give the same weights."""
    against: tuple[str, ...] = ()
    """Whom evaluations are played against, three of each in turn; the opponents if none are named."""
    eval_every: int = 250_000
    """Decisions between evaluations, each of which also saves."""
    eval_deals: int = 500
    """Deals of an evaluation, each played from all four seats."""
    device: Literal["cpu", "cuda", "auto"] = "cpu"
    """Where the network is trained: cpu, cuda, or auto; a network this small gains little from a GPU."""
    threads: int = 1
    """Threads of torch. A second one gains a fifth on an idle machine, and spins for minutes on a busy one."""
    export_sb3: bool = False
    """Write model.zip too, for MaskablePPO.load. It holds code, so it is never read back here."""

    def check(self) -> None:
        """See `Settings.check`."""
        super().check()
        whole("eval_every", self.eval_every, 1)
        whole("eval_deals", self.eval_deals, 2)
        whole("threads", self.threads, 1)
        whole("seed", self.seed, 0, 2**32 - 1)


def defaults(arguments: Sequence[str]) -> TrainArgs:
    """The arguments of the preset that the command line names, for others on it to change."""
    words = [word for argument in arguments for word in argument.split("=", 1)]
    named = words[words.index("--preset") + 1 :][:1] if "--preset" in words else []
    return next((TrainArgs(preset=name, **PRESETS[name]) for name in get_args(Preset) if [name] == named), TrainArgs())


def train(args: TrainArgs) -> int:
    """Train as told; the exit status. Raises `DnfhError` for arguments that cannot be, `OSError` for files."""
    args.check()
    rules = load_rules(args.rules)
    out = _folder(args)
    found = None if args.resume is None else load(args.resume, rules, args.observation)
    console = Console(soft_wrap=True)
    run = _prepare(args, rules, out, found)
    if run.model.num_timesteps >= args.decisions:
        console.print(f"{out} has learned from {run.model.num_timesteps} decisions already; ask for more --decisions")
        return SUCCESS
    with _progress(run, console):
        finished = run.learn()
    if args.export_sb3:
        run.model.save(out / "model.zip")
    if not finished:
        console.print(f"Stopped after {run.model.num_timesteps} decisions and saved; go on with --resume {out}")
        return INTERRUPTED
    console.print(f"Trained on {run.model.num_timesteps} decisions. Evaluate with: evaluate.py ppo:{out}")
    return SUCCESS


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


def _prepare(args: TrainArgs, rules: Rules, out: Path, found: Checkpoint | None) -> Run:
    import torch

    from agents.learned.training import Run, build, restore

    if args.device == "cuda" and not torch.cuda.is_available():
        raise DnfhError("device: 'cuda' is not there; use 'cpu' or 'auto'")
    torch.set_num_threads(args.threads)
    notes: dict[str, Any] = {"seed": args.seed}
    done = 0
    if found is not None:
        done = _decisions(found, args.resume)
        if _in_place(args):
            notes |= {name: found.training[name] for name in ("figures", "best") if name in found.training}
    settings = Settings(**{field.name: getattr(args, field.name) for field in dataclasses.fields(Settings)})
    model = build(settings, rules, args.seed, args.device, done)
    if found is not None:
        restore(model, found, args.resume or out)
    against = {name: make_agent(name, rules) for name in args.against or args.opponents}
    return Run(model, settings, rules, out, Evaluation(rules, against, args.eval_deals), args.eval_every, notes=notes)


def _decisions(found: Checkpoint, path: Path | None) -> int:
    """How many a checkpoint has learned from; `CheckpointError` if it is not one to go on from."""
    missing = {"optimizer", "rng"} - set(found.parts)
    if missing or not is_whole(found.training.get("decisions"), 0):
        raise CheckpointError(f"checkpoint {path}: it can be played but not trained on")
    return int(found.training["decisions"])


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """The figures of a policy against each of some agents, always on the same deals."""

    rules: Rules
    against: Mapping[str, Agent]
    deals: int

    def __call__(self, agent: Agent) -> dict[str, dict[str, float]]:
        """Card points and edge a deal by opponent, three of which sit at the table, with 95 % intervals."""
        return {name: self._figures(agent, opponent) for name, opponent in self.against.items()}

    def _figures(self, agent: Agent, opponent: Agent) -> dict[str, float]:
        result = evaluate(agent, opponent, self.rules, deals=self.deals, games=0, seed=EVALUATION_SEED)
        assert result.card_points and result.edge  # as deals have been played
        return {
            "card_points": result.card_points.mean,
            "card_points_margin": result.card_points.margin,
            "edge": result.edge.mean,
            "edge_margin": result.edge.margin,
        }


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
        task = bar.add_task("decisions", total=run.settings.decisions, completed=run.model.num_timesteps)

        def tick(decisions: int) -> None:
            bar.update(task, completed=decisions)

        def tell(decisions: int, figures: Mapping[str, Mapping[str, float]]) -> None:
            bar.console.print(f"after {decisions} decisions: {'; '.join(map(_line, figures, figures.values()))}")

        run.tick, run.tell = tick, tell
        yield


def _line(opponent: str, figures: Mapping[str, float]) -> str:
    return (
        f"against {opponent} {figures['card_points']:.1f} ± {figures['card_points_margin']:.1f} card points, "
        f"edge {figures['edge']:+.1f} ± {figures['edge_margin']:.1f}"
    )
