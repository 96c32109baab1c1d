"""Training: reproducible, resumable at any moment, safe to break off; what is kept plays as the learner did."""

from __future__ import annotations

import csv
import dataclasses
import errno
import hashlib
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sb3_contrib import MaskablePPO
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from agents.arena import evaluate
from agents.cli import main
from agents.cli.train import EVALUATION_SEED, PRESETS, TrainArgs, defaults, train
from agents.learned import training
from agents.learned.checkpoint import CONFIG, PARTS, PREVIOUS, VERSION, Checkpoint, load, load_last_good, save
from agents.learned.policy import PPOAgent
from agents.learned.self_play import SelfPlay, TrainingError
from agents.learned.settings import Settings
from agents.learned.training import Run
from conftest import ROOT
from dnfh_env import Batch, CheckpointError, DnfhError, Rules, card_points, make_agent
from dnfh_env._bits import unpack
from dnfh_env.agent import legal_rows
from dnfh_env.engine import GAME
from dnfh_env.observation import pack

TINY = Settings(
    opponents=("self", "past", "greedy", "self+past+random"),
    shares=(1, 1, 1, 1),
    snapshots=2,
    snapshot_every=96,
    decisions=400,
    tables=6,
    rollout=64,
    batch_size=32,
    epochs=2,
    trunk=(16,),
    head=(8,),
)
"""All kinds of opponents, six or seven updates, a snapshot every second one, and open transitions after each."""
RULES = Rules(target=150)


@pytest.fixture(autouse=True)
def one_thread() -> None:
    """Networks this small only lose by more, above all where others use the cores too."""
    torch.set_num_threads(1)


def no_figures(agent: PPOAgent) -> dict[str, dict[str, float]]:
    return {"random": {"edge": float(agent.logits(Batch(1).views()).sum())}}


def tiny_learner(seed: int = 0, **changes: Any) -> SelfPlay:
    return SelfPlay(dataclasses.replace(TINY, **changes), RULES, seed)


def tiny_run(out: Path, learner: SelfPlay | None = None, **options: Any) -> Run:
    options = {"evaluate": no_figures, "evaluate_every": 128, "save_every": 64, **options}
    return Run(learner or tiny_learner(), out, **options)


def resumed(out: Path, **options: Any) -> Run:
    """A new learner and run that go on from a folder."""
    found, learner = load(out), tiny_learner()
    learner.restore(found, out)
    return tiny_run(out, learner, notes={"history": found.training.get("history", [])}, **options)


def tiny_args(out: Path | None, **changes: Any) -> TrainArgs:
    arguments = {field.name: getattr(TINY, field.name) for field in dataclasses.fields(TINY)}
    return TrainArgs(**arguments | {"out": out, "eval_every": 128, "eval_deals": 4, "against": ("random",)} | changes)


def resume_words(folder: Path, *words: str) -> list[str]:
    return ["train", "--resume", str(folder), *words]


def contents(checkpoint: Checkpoint) -> dict[str, Any]:
    """All that a checkpoint holds, to the last bit."""
    tensors = {
        f"{part}/{name}": (array.dtype.str, array.shape, array.tobytes())
        for part, arrays in checkpoint.parts.items()
        for name, array in arrays.items()
    }
    return {"training": json.loads(json.dumps(dict(checkpoint.training))), **tensors}


def tensors(state: dict[str, Any]) -> dict[str, Any]:
    """Without settings and history."""
    return {name: value for name, value in state.items() if name != "training"}


def results(folder: Path) -> dict[str, Any]:
    """All that a run has come to."""
    text = {name: (folder / name).read_text() for name in (CONFIG, "best/" + CONFIG, "progress.csv")}
    return text | {"last": contents(load(folder)), "best": contents(load(folder / "best"))}


def updates(learner: SelfPlay, decisions: int) -> Iterator[Checkpoint]:
    """The state at the start and after each update."""
    yield learner.checkpoint()
    while learner.decisions < decisions:
        learner.update()
        yield learner.checkpoint()


def views(count: int = 256) -> Any:
    batch = Batch(count, RULES, seed=11)
    batch.play("random", 37)
    return batch.views()


def on_call(number: int, do: Callable[[], None], function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, but that ``do`` happens before its call of that number, counted from 0."""
    calls = iter(range(10**9))

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if next(calls) == number:
            do()
        return function(*args, **kwargs)

    return wrapped


def ctrl_c() -> None:
    raise KeyboardInterrupt


@pytest.fixture(scope="module")
def states() -> list[dict[str, Any]]:
    """What such a run comes to, update by update."""
    return [contents(state) for state in updates(tiny_learner(), TINY.decisions)]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that nothing befell."""
    out = tmp_path_factory.mktemp("runs") / "whole"
    assert tiny_run(out).learn()
    return out


# --- what is learned ------------------------------------------------------------------------------------------------


def test_same_seed_same_weights() -> None:
    first, same, other = (contents(list(updates(tiny_learner(seed), 200))[-1]) for seed in (3, 3, 4))
    assert first == same
    assert not any(first[name] == other[name] for name in first if name.startswith("policy/") and "weight" in name)


def test_evaluations_change_nothing(tmp_path: Path) -> None:
    def by_play(agent: PPOAgent) -> dict[str, dict[str, float]]:
        result = evaluate(agent, "random", RULES, deals=2, games=0, seed=EVALUATION_SEED)
        assert result.edge
        return {"random": {"edge": result.edge.mean}}

    often, never = (
        tiny_run(tmp_path / "a", evaluate=by_play, evaluate_every=1),
        tiny_run(tmp_path / "b", evaluate_every=10**6),
    )
    assert often.learn() and never.learn()
    assert len(often.notes["history"]) > 5 and len(never.notes["history"]) == 1
    assert contents(often.learner.checkpoint()) == contents(never.learner.checkpoint())


def test_the_agent_of_now_does_not_learn_on() -> None:
    learner = tiny_learner()
    learner.update()
    agent, before = learner.agent(), learner.agent().logits(views())
    learner.update()
    assert np.array_equal(agent.logits(views()), before)
    assert not np.array_equal(learner.agent().logits(views()), before)


@pytest.mark.slow
def test_it_learns() -> None:
    """A random player has an edge of 0 against its like; this one finds out within 1,500 deals that hearts cost."""
    rules = Rules(max_deals=1, calls=("hold",), points=card_points(hearts=1), shot="none")
    settings = Settings(
        ("random",),
        (1,),
        decisions=24_576,
        tables=64,
        rollout=2048,
        batch_size=256,
        epochs=4,
        learning_rate=3e-3,
        final_learning_rate=3e-3,
        gae_lambda=0.95,
        entropy=0.01,
        trunk=(64,),
        head=(64,),
    )
    learner = SelfPlay(settings, rules)
    learner.learn(settings.decisions)
    result = evaluate(learner.agent(), "random", rules, deals=400, games=0, seed=EVALUATION_SEED)
    assert result.edge is not None and result.edge.low > 0.2, result


# --- what is kept plays as the learner did --------------------------------------------------------------------------


def shaken(**changes: Any) -> SelfPlay:
    """A learner whose choices are far from even; SB3 starts with logits that are all but equal."""
    learner = tiny_learner(**changes)
    torch.manual_seed(5)
    with torch.no_grad():
        for parameter in learner.model.policy.parameters():
            parameter += 0.1 * torch.randn(parameter.shape)
    learner.update()
    return learner


def log_probabilities(logits: Any, legal: Any) -> Any:
    """Of legal actions, one after the other."""
    masked: Any = np.where(legal, np.asarray(logits, np.float64), -np.inf)
    masked -= masked.max(axis=1, keepdims=True)
    return (masked - np.log(np.exp(masked).sum(axis=1, keepdims=True)))[legal]


SHAPES: list[tuple[Any, tuple[int, ...], tuple[int, ...]]] = [
    ("view", (16,), (8,)),
    ("view", (), (8,)),
    ("view", (16, 8), ()),
    ("view", (), ()),
    ("state", (16,), (8,)),
    ("state", (16, 8), ()),
]


@pytest.mark.parametrize(("critic", "trunk", "head"), SHAPES)
@pytest.mark.parametrize("observation", ["compact", "full"])
def test_an_export_equals_the_original(
    tmp_path: Path, observation: Any, critic: Any, trunk: tuple[int, ...], head: tuple[int, ...]
) -> None:
    learner = shaken(trunk=trunk, head=head, observation=observation, critic=critic)
    learner.export(tmp_path / "model.zip")
    model = MaskablePPO.load(tmp_path / "model.zip", device="cpu")
    assert model.num_timesteps == learner.decisions
    asked, agent = views(), learner.agent()
    legal = legal_rows(asked["legal"]) == 1
    words = pack(asked, RULES.target, agent.layout)
    observations = unpack(words).astype(np.float32)
    with torch.no_grad():
        distribution: Any = model.policy.get_distribution(torch.from_numpy(observations), legal).distribution
        values = model.policy.predict_values(torch.from_numpy(observations)).flatten().numpy()
    exported = distribution.probs.numpy()[legal]
    expected = log_probabilities(agent.logits(asked), legal)
    np.testing.assert_allclose(exported, np.exp(expected), atol=1e-5, rtol=0)
    assert np.ptp(expected) > 1, "the choices are not even"
    predicted, _ = model.predict(observations, action_masks=legal, deterministic=True)
    assert agent.act(asked, np.zeros(len(asked), np.uint64)).tolist() == predicted.tolist()
    if critic == "view":
        logits, original = learner.decide(words)
        np.testing.assert_allclose(log_probabilities(logits, legal), expected, atol=1e-5, rtol=0)
        np.testing.assert_allclose(values, original, atol=1e-5, rtol=0)


def test_the_command_line_exports(tmp_path: Path) -> None:
    assert train(tiny_args(tmp_path / "a")) == 0
    assert not (tmp_path / "a" / "model.zip").exists()
    assert main(resume_words(tmp_path / "a", "--export-sb3")) == 0, "a run that has finished can still be exported"
    assert train(tiny_args(tmp_path / "b", export_sb3=True)) == 0
    first = (tmp_path / "b" / "model.zip").stat().st_mtime_ns
    assert main(resume_words(tmp_path / "b", "--decisions", "500")) == 0
    assert (tmp_path / "b" / "model.zip").stat().st_mtime_ns > first, "one that exports goes on doing so"
    kept = load(tmp_path / "a").parts["policy"]

    named = dict(MaskablePPO.load(tmp_path / "a" / "model.zip", device="cpu").policy.named_parameters())
    assert named.keys() == kept.keys()
    assert all(np.array_equal(kept[name], parameter.detach().numpy()) for name, parameter in named.items())


# --- going on -------------------------------------------------------------------------------------------------------

VARIETIES: dict[str, dict[str, Any]] = {
    "all": {},
    "self": {"opponents": ("self",), "shares": (1,)},
    "past": {"opponents": ("past",), "shares": (1,)},
    "bots": {"opponents": ("greedy", "random"), "shares": (3, 1)},
    "line-ups": {"opponents": ("self+greedy+random", "random+past+self"), "shares": (1, 2)},
    "state": {"critic": "state"},
    "game": {"episode": "game"},
    "win": {"episode": "game", "reward": "win", "critic": "state", "observation": "full"},
}


@pytest.mark.parametrize("changes", VARIETIES.values(), ids=VARIETIES)
def test_a_learner_goes_on_from_a_checkpoint_bit_by_bit(tmp_path: Path, changes: dict[str, Any]) -> None:
    states = list(updates(tiny_learner(**changes), 400))
    for number in (0, 1, 2, 4):
        save(tmp_path, states[number])
        found = load(tmp_path)
        assert contents(found) == contents(states[number])
        assert number == 0 or (found.parts["tables"]["open"] >= 0).any(), "transitions are open"
        learner = tiny_learner(**changes)
        learner.restore(found, tmp_path)
        assert [contents(state) for state in updates(learner, 400)] == [contents(state) for state in states[number:]]


def test_restoring_undoes_what_was_learned_since() -> None:
    learner = tiny_learner()
    learner.update()
    state = learner.checkpoint()
    ahead = list(updates(learner, 400))
    learner.restore(state, "memory")
    assert [contents(again) for again in updates(learner, 400)] == [contents(once) for once in ahead]


def test_states_are_told_apart(states: list[dict[str, Any]]) -> None:
    """What is compared here does change: every part with each update, snapshots with every second one or so."""
    changes = [{name.split("/")[0] for name in new if new[name] != old.get(name)} for old, new in pairwise(states)]
    assert all({"training", "policy", "optimizer", "tables"} <= changed for changed in changes)
    assert 2 <= sum("past" in changed for changed in changes) < len(changes)


def start_training(words: list[str]) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen([sys.executable, "train.py", *words], cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)


def decisions_in(folder: Path) -> int:
    """How many decisions a folder's checkpoint has learned from, -1 if there is none yet."""
    try:
        return int(json.loads((folder / CONFIG).read_text())["training"]["decisions"])
    except FileNotFoundError:
        return -1


def kill_at_some_moment(words: list[str], folder: Path, pause: float) -> int:
    """Let a run come to a further save, kill it a moment later; its exit status."""
    before, process = decisions_in(folder), start_training(words)
    while decisions_in(folder) <= before and process.poll() is None:
        time.sleep(0.002)
    time.sleep(pause)
    process.kill()
    return process.wait()


@pytest.mark.slow
def test_a_run_that_is_killed_again_and_again_ends_as_one_that_is_not(tmp_path: Path) -> None:
    words = "--opponents self past greedy self+past+random --shares 1 1 1 1 --tables 16 --rollout 512 --batch-size 128"
    words += (
        " --decisions 30000 --snapshot-every 1500 --eval-every 1500 --eval-deals 4 --against random --trunk 16 --head 8"
    )
    assert start_training([*words.split(), "--out", str(tmp_path / "a")]).wait() == 0
    chance, killed, arguments = random.Random(7), 0, [*words.split(), "--out", str(tmp_path / "b")]
    for _ in range(4):
        killed += kill_at_some_moment(arguments, tmp_path / "b", chance.uniform(0, 0.15)) == -signal.SIGKILL
        arguments = ["--resume", str(tmp_path / "b")]
    assert killed >= 3, "on the way"
    assert start_training(arguments).wait() == 0
    assert results(tmp_path / "a") == results(tmp_path / "b")


def test_a_run_goes_on_from_any_save(tmp_path: Path, whole: Path) -> None:
    folders: list[Path] = []

    def copy(decisions: int) -> None:
        folders.append(tmp_path / f"{decisions}")
        shutil.copytree(tmp_path / "a", folders[-1])

    assert tiny_run(tmp_path / "a", tick=copy).learn()
    assert len(folders) > 4
    for folder in folders[::2]:
        assert resumed(folder).learn()
        assert results(folder) == results(whole)


def test_a_finished_run_says_so_and_goes_on_when_asked_for_more(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train(tiny_args(tmp_path / "a")) == 0
    before = results(tmp_path / "a")
    capsys.readouterr()
    assert main(resume_words(tmp_path / "a")) == 0
    decisions = before["last"]["training"]["decisions"]
    assert f"has learned from {decisions} decisions already" in " ".join(capsys.readouterr().out.split())
    assert results(tmp_path / "a") == before

    assert main(resume_words(tmp_path / "a", "--decisions", "600")) == 0
    after = results(tmp_path / "a")["last"]["training"]
    assert after["decisions"] >= 600
    assert after["updates"] > before["last"]["training"]["updates"]
    assert after["history"][: len(before["last"]["training"]["history"])] == before["last"]["training"]["history"]
    assert after["settings"] == before["last"]["training"]["settings"] | {"decisions": 600}


def test_resuming_takes_the_arguments_of_the_run_but_for_those_given(tmp_path: Path) -> None:
    rules = tmp_path / "rules.json"
    rules.write_text('{"target": 150}')
    given = tiny_args(tmp_path / "a", rules=str(rules), seed=7, eval_deals=3, gamma=0.99)
    assert train(given) == 0
    rules.unlink()  # the checkpoint has them
    found = defaults(["--resume", str(tmp_path / "a")])
    assert found == dataclasses.replace(given, out=None, resume=tmp_path / "a")
    assert defaults([f"--resume={tmp_path / 'a'}"]) == found

    words = ["--decisions", "500", "--learning-rate", "0.001", "--eval-every", "1000", "--shares", "1", "2", "3", "4"]
    assert main(resume_words(tmp_path / "a", *words)) == 0
    changed: dict[str, Any] = {"decisions": 500, "learning_rate": 0.001, "eval_every": 1000, "shares": (1, 2, 3, 4)}
    assert defaults(["--resume", str(tmp_path / "a")]) == dataclasses.replace(found, **changed)


def test_resuming_elsewhere_starts_a_new_history_and_leaves_the_old_folder_alone(tmp_path: Path) -> None:
    train(tiny_args(tmp_path / "a"))
    before = results(tmp_path / "a")
    assert main(resume_words(tmp_path / "a", "--out", str(tmp_path / "b"), "--decisions", "600")) == 0
    assert results(tmp_path / "a") == before
    old, new = before["last"]["training"], results(tmp_path / "b")["last"]["training"]
    assert new["history"][0]["decisions"] == old["decisions"]
    assert new["history"][0]["figures"] == old["history"][-1]["figures"], "it begins with the policy that it was given"
    assert new["decisions"] == new["history"][-1]["decisions"] >= 600


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("--rules omnibus", "was trained for"),
        ("--observation full", "the observation 'compact', not 'full'"),
        ("--head 9", r"head was \[8\] and is now \[9\]"),
        ("--trunk 16 16", r"trunk was \[16\] and is now \[16, 16\]"),
        ("--critic state", r"critic was 'view' and is now 'state'"),
    ],
)
def test_resuming_as_something_else_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: str, complaint: str
) -> None:
    train(tiny_args(tmp_path / "a", decisions=64))
    before = results(tmp_path / "a")
    assert main(resume_words(tmp_path / "a", "--decisions", "400", *words.split())) == 1
    assert re.search(f"error: checkpoint {tmp_path / 'a'}: .*{complaint}", capsys.readouterr().err)
    assert results(tmp_path / "a") == before


def test_a_checkpoint_to_play_cannot_be_trained_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    learner = SelfPlay(TINY)
    state = learner.checkpoint()
    bare = dataclasses.replace(state, parts={"policy": state.parts["policy"]})
    with pytest.raises(CheckpointError, match=r"\['optimizer', 'past', 'tables'\] is missing"):
        learner.restore(bare, tmp_path)
    save(tmp_path / "bare", bare)
    assert main(resume_words(tmp_path / "bare")) == 1
    save(tmp_path / "foreign", dataclasses.replace(bare, training={}))
    assert main(resume_words(tmp_path / "foreign")) == 1
    assert capsys.readouterr().err.count("can be played but not trained on") == 2


# --- the folder -----------------------------------------------------------------------------------------------------


def test_a_run_leaves_its_figures(tmp_path: Path, states: list[dict[str, Any]]) -> None:
    told: list[tuple[int, Mapping[str, Mapping[str, float]]]] = []
    ticks: list[int] = []
    learner = tiny_learner()
    run = tiny_run(tmp_path, learner, tell=lambda *figures: told.append(figures), tick=ticks.append)
    assert run.learn()
    expected = [state["training"]["decisions"] for state in states]
    assert ticks == expected[1:] and ticks[-1] == learner.decisions >= TINY.decisions > ticks[-2]
    due = [now for before, now in zip(expected, ticks, strict=False) if before // 128 < now // 128 or now == ticks[-1]]
    assert [decisions for decisions, _ in told] == due and len(due) == 4
    rows = list(csv.DictReader((tmp_path / "progress.csv").open()))
    assert [(int(row["decisions"]), row["opponent"]) for row in rows] == [(decisions, "random") for decisions in due]
    assert [float(row["edge"]) for row in rows] == [figures["random"]["edge"] for _, figures in told]
    last, best = load(tmp_path), load(tmp_path / "best")
    assert last.training["decisions"] == ticks[-1]
    assert last.training["history"] == [{"decisions": decisions, "figures": figures} for decisions, figures in told]
    assert last.training["settings"] == TINY.to_dict()
    assert best.training["history"][-1]["figures"]["random"]["edge"] == max(float(row["edge"]) for row in rows)
    assert best.training["history"] == last.training["history"][: len(best.training["history"])]

    events = EventAccumulator(str(tmp_path / "tb")).Reload()
    logged = [(event.step, event.value) for event in events.Scalars("evaluation/random/edge")]
    assert [step for step, _ in logged] == due
    assert [value for _, value in logged] == pytest.approx([figures["random"]["edge"] for _, figures in told], rel=1e-5)
    assert {"train/loss", "train/approx_kl"} <= set(events.Tags()["scalars"])


# --- Ctrl-C ---------------------------------------------------------------------------------------------------------


def in_an_update(run: Run, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MaskablePPO, "train", on_call(3, ctrl_c, MaskablePPO.train))


def after_its_gradients(run: Run, patch: pytest.MonkeyPatch) -> None:
    original, calls = MaskablePPO.train, iter(range(100))

    def train_and_stop(model: MaskablePPO) -> None:
        original(model)
        if next(calls) == 3:
            raise KeyboardInterrupt

    patch.setattr(MaskablePPO, "train", train_and_stop)


def in_a_game(run: Run, patch: pytest.MonkeyPatch) -> None:
    run.learner.collector.decide = on_call(100, ctrl_c, run.learner.decide)


def in_an_evaluation(run: Run, patch: pytest.MonkeyPatch) -> None:
    run.evaluate = on_call(1, ctrl_c, no_figures)


def in_the_last_evaluation(run: Run, patch: pytest.MonkeyPatch) -> None:
    run.evaluate = on_call(3, ctrl_c, no_figures)


def before_the_best_is_saved(run: Run, patch: pytest.MonkeyPatch) -> None:
    def save_unless_best(folder: Path, state: Checkpoint) -> None:
        if folder.name == "best":
            raise KeyboardInterrupt
        save(folder, state)

    patch.setattr(training, "save", save_unless_best)


def while_a_file_is_written(run: Run, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(os, "fsync", on_call(17, ctrl_c, os.fsync))


MOMENTS: list[tuple[Callable[[Run, pytest.MonkeyPatch], None], bool]] = [
    (in_an_update, False),
    (after_its_gradients, False),
    (after_its_gradients, True),
    (in_a_game, False),
    (in_an_evaluation, True),
    (in_the_last_evaluation, False),
    (in_the_last_evaluation, True),
    (before_the_best_is_saved, False),
    (while_a_file_is_written, True),
]


@pytest.mark.parametrize(("moment", "from_the_folder"), MOMENTS)
def test_ctrl_c_saves_and_nothing_is_lost(
    tmp_path: Path,
    whole: Path,
    states: list[dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
    moment: Callable[[Run, pytest.MonkeyPatch], None],
    from_the_folder: bool,
) -> None:
    run, out = tiny_run(tmp_path / "a"), tmp_path / "a"
    with monkeypatch.context() as patch:
        moment(run, patch)
        assert not run.learn()
    assert contents(load(out)) == contents(run.learner.checkpoint(run.notes))
    number = states.index(contents(run.learner.checkpoint()))  # after an update, not in the middle of one
    assert 0 < number < len(states) - 1 or moment is in_the_last_evaluation
    assert not list(out.rglob("*.new"))
    make_agent(f"ppo:{out}", RULES)
    run.learner.collector.decide, run.evaluate = run.learner.decide, no_figures
    assert (resumed(out) if from_the_folder else run).learn()
    assert results(out) == results(whole)


def test_ctrl_c_is_told_with_the_way_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train(tiny_args(tmp_path / "whole")) == 0
    with monkeypatch.context() as patch:
        patch.setattr(MaskablePPO, "train", on_call(3, ctrl_c, MaskablePPO.train))
        assert train(tiny_args(tmp_path / "a")) == 130
    out = capsys.readouterr().out
    assert f"Stopped after {decisions_in(tmp_path / 'a')} decisions" in out and f"--resume {tmp_path / 'a'}" in out
    with monkeypatch.context() as patch:
        patch.setattr(MaskablePPO, "train", on_call(1, ctrl_c, MaskablePPO.train))
        assert main(resume_words(tmp_path / "a")) == 130
    assert main(resume_words(tmp_path / "a")) == 0
    assert results(tmp_path / "a") == results(tmp_path / "whole")


# --- NaN, a full disk, a damaged one --------------------------------------------------------------------------------


def poison(layer: Any) -> None:
    with torch.no_grad():
        layer.bias[:] = torch.nan


def poisoned(part: str) -> Callable[[MaskablePPO], None]:
    """Gradients that in the fourth update start from, or end with, a weight that is no number."""
    original, calls = MaskablePPO.train, iter(range(100))

    def train(model: MaskablePPO) -> None:
        number = next(calls)
        if number == 3 and part == "before":
            poison(model.policy.value_net)
        original(model)
        if number == 3 and part == "after":
            poison(model.policy.action_net)

    return train


@pytest.mark.parametrize("part", ["before", "after"])
def test_divergence_is_told_and_keeps_the_last_good_state(
    tmp_path: Path, whole: Path, states: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    good, bad = (states[number]["training"]["decisions"] for number in (3, 4))
    complaint = f"diverged: after {bad} decisions the loss was .*; {tmp_path} holds the state after {good} decisions"
    with monkeypatch.context() as patch:
        patch.setattr(MaskablePPO, "train", poisoned(part))
        with pytest.raises(TrainingError, match=complaint):
            tiny_run(tmp_path).learn()
    assert tensors(contents(load(tmp_path))) == tensors(states[3])
    PPOAgent(tmp_path, RULES)
    assert resumed(tmp_path).learn()
    assert results(tmp_path) == results(whole)


def test_a_learning_rate_that_is_too_high_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert train(tiny_args(tmp_path / "a", decisions=64)) == 0
    assert main(resume_words(tmp_path / "a", "--decisions", "400", "--learning-rate", "1e30")) == 1
    assert "error: training diverged" in capsys.readouterr().err
    assert decisions_in(tmp_path / "a") == load(tmp_path / "a").training["decisions"] == 64
    assert main(resume_words(tmp_path / "a", "--learning-rate", "0.001")) == 0


def full(*args: Any) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


FULL = [(0, True), (4, False), (5, True), (9, True), (12, False), (33, True)]
"""Which file is the first that cannot be written, and whether all others after it cannot either."""


@pytest.mark.parametrize(("count", "ever_after"), FULL)
def test_a_full_disk_is_told_and_keeps_the_last_good_state(
    tmp_path: Path,
    whole: Path,
    states: list[dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
    count: int,
    ever_after: bool,
) -> None:
    original, calls = os.fsync, iter(range(10**6))

    def fsync(descriptor: int) -> None:
        number = next(calls)
        full() if number == count or (ever_after and number > count) else original(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        with pytest.raises(OSError, match=f"No space left on device: '{tmp_path}.*") as caught:
            tiny_run(tmp_path).learn()
    assert caught.value.errno == errno.ENOSPC
    assert not list(tmp_path.rglob("*.new")), "nothing half written is in the way"
    if count < 5:
        assert not (tmp_path / CONFIG).exists(), "the disk was full from the start"
        return
    assert tensors(contents(load(tmp_path))) in [tensors(state) for state in states]
    assert resumed(tmp_path).learn()
    assert results(tmp_path) == results(whole)


@contextmanager
def files_up_to(size: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_disk_that_takes_no_more_is_told_by_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train(tiny_args(tmp_path / "a", decisions=64)) == 0
    before = results(tmp_path / "a")
    with files_up_to(50_000):  # the weights take more
        assert main(resume_words(tmp_path / "a", "--decisions", "400")) == 1
    assert f"File too large: '{tmp_path / 'a'}" in capsys.readouterr().err
    assert results(tmp_path / "a") == before
    assert not list(tmp_path.rglob("*.new"))
    assert main(resume_words(tmp_path / "a", "--decisions", "400")) == 0


@pytest.fixture(scope="module")
def broken_off(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The folder of a run that was stopped between two evaluations, and what the run would have come to."""
    folder = tmp_path_factory.mktemp("broken off")
    assert train(tiny_args(folder / "whole")) == 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MaskablePPO, "train", on_call(5, ctrl_c, MaskablePPO.train))
        assert train(tiny_args(folder / "a")) == 130
    latest, before = (named_in(folder / "a", name) for name in (CONFIG, PREVIOUS))
    assert latest.keys() == before.keys() == set(PARTS)
    assert not set(latest.values()) & set(before.values()), "they share no file"
    return folder / "a", results(folder / "whole")


def named_in(folder: Path, config: str) -> dict[str, str]:
    files = json.loads((folder / config).read_text())["files"]
    return {part: file["name"] for part, file in files.items()}


def flipped(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


DAMAGES: dict[str, Callable[[bytes], bytes | None]] = {
    "flipped": flipped,
    "truncated": lambda data: data[: len(data) // 2],
    "missing": lambda data: None,
}


def damage(path: Path, how: str) -> None:
    damaged = DAMAGES[how](path.read_bytes())
    path.unlink() if damaged is None else path.write_bytes(damaged)


@pytest.mark.parametrize("part", ["config", *PARTS])
@pytest.mark.parametrize("how", DAMAGES)
def test_a_damaged_checkpoint_is_told_and_the_one_before_it_serves(
    tmp_path: Path,
    broken_off: tuple[Path, dict[str, Any]],
    capsys: pytest.CaptureFixture[str],
    part: str,
    how: str,
) -> None:
    folder, expected = tmp_path / "a", broken_off[1]
    shutil.copytree(broken_off[0], folder)
    broken = CONFIG if part == "config" else named_in(folder, CONFIG)[part]
    damage(folder / broken, how)
    with pytest.raises(CheckpointError, match=broken):
        make_agent(f"ppo:{folder}")
    assert main(resume_words(folder)) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert f"checkpoint {folder}: " in said and broken in said and "going on from the one before it" in said
    assert results(folder) == expected


@pytest.mark.parametrize("part", ["config", "past"])
def test_mending_a_damaged_checkpoint_never_leaves_two(
    tmp_path: Path, broken_off: tuple[Path, dict[str, Any]], monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    """The save that begins a run is broken off before each of its files, which nothing then puts right."""
    shutil.copytree(broken_off[0], tmp_path / "a")
    damage(tmp_path / "a" / (CONFIG if part == "config" else named_in(tmp_path / "a", CONFIG)[part]), "flipped")
    before = contents(load_last_good(tmp_path / "a")[0])
    for number in range(5):
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", on_call(number, ctrl_c, os.fsync))
            assert main(resume_words(tmp_path / "a")) == 130
        assert contents(load_last_good(tmp_path / "a")[0]) == before
    assert main(resume_words(tmp_path / "a")) == 0
    assert results(tmp_path / "a") == broken_off[1]


TWICE = [
    ("policy", "flipped"),
    ("optimizer", "missing"),
    ("past", "truncated"),
    ("tables", "flipped"),
    ("config", "missing"),
]


@pytest.mark.parametrize(("part", "how"), TWICE)
def test_two_damaged_checkpoints_are_told(
    tmp_path: Path, broken_off: tuple[Path, dict[str, Any]], capsys: pytest.CaptureFixture[str], part: str, how: str
) -> None:
    shutil.copytree(broken_off[0], tmp_path / "a")
    latest = named_in(tmp_path / "a", CONFIG)["policy"]
    damage(tmp_path / "a" / (PREVIOUS if part == "config" else named_in(tmp_path / "a", PREVIOUS)[part]), how)
    damage(tmp_path / "a" / latest, how)
    files = {path: path.read_bytes() for path in (tmp_path / "a").rglob("*") if path.is_file()}
    assert main(resume_words(tmp_path / "a")) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"error: checkpoint {tmp_path / 'a'}: ") and latest in said
    assert files == {path: path.read_bytes() for path in (tmp_path / "a").rglob("*") if path.is_file()}


# --- arguments ------------------------------------------------------------------------------------------------------

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"decisions": 0}, "decisions: 0"),
    ({"tables": 0}, "tables: 0"),
    ({"epochs": 0}, "epochs: 0"),
    ({"snapshots": 0}, "snapshots: 0"),
    ({"snapshot_every": 0}, "snapshot_every: 0"),
    ({"batch_size": 65}, "batch_size: 65 .* to 64"),
    ({"batch_size": 1}, "batch_size: 1 "),
    ({"learning_rate": float("nan")}, "learning_rate: nan"),
    ({"final_learning_rate": -1.0}, "final_learning_rate: -1"),
    ({"gamma": float("inf")}, "gamma: inf"),
    ({"opponents": (), "shares": ()}, "opponents: expected at least one"),
    ({"opponents": ("random+greedy",), "shares": (1,)}, r"opponents, 'random\+greedy': .* got 2"),
    ({"opponents": ("self+self+self+self",), "shares": (1,)}, "opponents, .* got 4"),
    ({"opponents": ("nobody",), "shares": (1,)}, "unknown agent 'nobody'"),
    ({"shares": (1, 2)}, r"shares: .*\(4\), got \(1, 2\)"),
    ({"shares": (1, 1, 1, 0)}, r"shares: \(1, 1, 1, 0\)"),
    ({"shares": (1, 1, 1, float("nan"))}, "shares: .*nan"),
    ({"against": ("nobody",)}, "unknown agent 'nobody'"),
    ({"reward": "win"}, "needs whole games"),
    ({"trunk": (0,)}, "trunk, head: 0"),
    ({"trunk": (8.5,)}, "trunk, head: 8.5"),
    ({"trunk": (), "critic": "state"}, "trunk: .*critic"),
    ({"critic": "stat"}, "critic: 'stat' is not one of 'view', 'state'"),
    ({"episode": "Deal"}, "episode: 'Deal'"),
    ({"observation": "fulll"}, "observation: 'fulll'"),
    ({"decisions": 2e6}, "decisions: 2000000.0"),
    ({"gamma": 5.0}, "gamma: 5.0 is not a number from 0 to 1"),
    ({"shares": (1e308,) * 4}, "shares: "),
    ({"rules": "nowhere.json"}, "nowhere.json"),
    ({"eval_every": 0}, "eval_every"),
    ({"eval_deals": 0}, "eval_deals"),
    ({"threads": 0}, "threads: 0"),
    ({"seed": -1}, "seed: -1"),
    ({"seed": 2**32}, "seed: 4294967296"),
    ({"resume": Path("nowhere")}, "nowhere: no such folder"),
]


@pytest.mark.parametrize(("changes", "complaint"), WRONG)
def test_arguments_that_cannot_be_are_told_before_anything_is_written(
    tmp_path: Path, changes: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(DnfhError, match=complaint):
        train(tiny_args(tmp_path / "a", **changes))
    assert not (tmp_path / "a").exists()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_device_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DnfhError, match="device: 'cuda' is not there"):
        train(tiny_args(tmp_path / "a", device="cuda"))
    assert not (tmp_path / "a").exists()
    assert train(tiny_args(tmp_path / "a", device="auto", decisions=64)) == 0
    assert train(tiny_args(tmp_path / "b", decisions=64)) == 0
    assert tensors(contents(load(tmp_path / "a"))) == tensors(contents(load(tmp_path / "b")))


def test_a_folder_in_use_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    assert main(["train", "--out", str(tmp_path)]) == 1
    assert "is not an empty folder" in capsys.readouterr().err
    train(tiny_args(tmp_path / "a", decisions=64))
    assert main(["train", "--out", str(tmp_path / "a")]) == 1
    assert "holds a checkpoint already" in capsys.readouterr().err
    assert main(["train", "--out", str(tmp_path / "notes.txt" / "deep")]) == 1
    assert "Not a directory" in capsys.readouterr().err
    assert main(["train"]) == 1
    assert "--out runs/first" in capsys.readouterr().err


def test_presets_can_be_changed_by_what_stands_beside_them() -> None:
    assert defaults(["--out", "x"]) == TrainArgs()
    demo = TrainArgs(preset="demo", **PRESETS["demo"])
    assert defaults(["--preset", "demo"]) == defaults(["--seed", "1", "--preset=demo"]) == demo
    demo.check()
    TrainArgs().check()


def test_a_preset_does_not_change_a_run_that_is_gone_on_with(whole: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = results(whole)
    assert main(resume_words(whole, "--preset", "demo")) == 1
    assert "preset: 'demo' does not go with --resume" in capsys.readouterr().err
    assert results(whole) == before


def test_settings_are_told_from_their_json() -> None:
    settings = dataclasses.replace(TINY, episode="game", reward="win", trunk=())
    assert Settings.from_dict(json.loads(json.dumps(settings.to_dict()))) == settings
    with pytest.raises(TypeError, match="n_steps"):
        Settings.from_dict({"n_steps": 16})


def test_the_command_line_trains_with_games_and_wins(tmp_path: Path) -> None:
    rules = tmp_path / "rules.json"
    rules.write_text('{"max_deals": 2}')
    tiny = "--decisions 64 --tables 4 --rollout 32 --batch-size 32 --epochs 1 --trunk 8 --head 8 --eval-deals 2"
    words = ["train", *tiny.split(), "--out", str(tmp_path / "a"), "--rules", str(rules), "--threads", "1"]
    words += ["--opponents", "self", "random+greedy+past", "--shares", "1", "2", "--episode", "game", "--reward", "win"]
    assert main([*words, "--critic", "state"]) == 0
    kept = load(tmp_path / "a", Rules(max_deals=2)).training
    assert set(kept["history"][-1]["figures"]) == {"random", "greedy"}, "the bots among the opponents"
    assert kept["settings"]["reward"] == "win" and kept["settings"]["critic"] == "state"


# --- going on otherwise ---------------------------------------------------------------------------------------------


def trained(settings: Settings = TINY) -> SelfPlay:
    learner = SelfPlay(settings, RULES)
    learner.update()
    return learner


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"snapshots": TINY.snapshots + 1}, f"snapshots was {TINY.snapshots} and is now"),
        ({"head": (9,)}, r"head was \[8\] and is now \[9\]"),
    ],
)
def test_what_open_decisions_or_weights_do_not_fit_is_refused(changes: dict[str, Any], complaint: str) -> None:
    kept = trained().checkpoint()
    with pytest.raises(CheckpointError, match=f"checkpoint in memory: it does not fit this run: .*{complaint}"):
        SelfPlay(dataclasses.replace(TINY, **changes), RULES).restore(kept)


@pytest.mark.parametrize("changes", [{"episode": "game", "reward": "win"}, {"tables": TINY.tables + 1}])
def test_other_episodes_or_tables_begin_anew_with_the_same_policy(changes: dict[str, Any]) -> None:
    first, second = trained(), SelfPlay(dataclasses.replace(TINY, **changes), RULES, seed=7)
    fresh = second.collector.state()
    second.restore(first.checkpoint())
    assert all(np.array_equal(array, fresh[name]) for name, array in second.collector.state().items())
    assert second.agent().logits(views()).tobytes() == first.agent().logits(views()).tobytes()
    assert second.decisions == first.decisions
    second.update()


def test_other_opponents_take_over_in_the_middle_of_a_game() -> None:
    """Decisions that were open at seats which are now a bot's are dropped, not paid with what the bot earns."""
    alone = dataclasses.replace(TINY, opponents=("self",), shares=(1,))
    learner = SelfPlay(dataclasses.replace(alone, opponents=("greedy",)), RULES)
    learner.restore(trained(alone).checkpoint())
    held, seats = learner.collector.state()["open"] >= 0, learner.collector.occupants
    assert held.any() and (seats[held] == 0).all()
    before = held.sum()
    learner.update()
    state = learner.collector.state()
    assert (state["open"] >= 0).sum() == len(state["actions"]) <= TINY.tables
    assert before <= TINY.tables


def test_a_learner_of_a_checkpoint_goes_on_as_it_would_have() -> None:
    first = trained()
    second = SelfPlay.of(first.checkpoint())
    first.update()
    second.update()
    assert contents(first.checkpoint()) == contents(second.checkpoint())


def test_random_streams_of_the_user_are_left_alone(tmp_path: Path) -> None:
    def drawn() -> list[Any]:
        return [random.random(), np.random.rand(), float(torch.rand(1))]

    streams = random.getstate(), np.random.get_state(), torch.get_rng_state()
    expected = drawn()
    random.setstate(streams[0])
    np.random.set_state(streams[1])
    torch.set_rng_state(streams[2])
    trained().export(tmp_path / "model.zip")
    assert drawn() == expected


def test_code_that_a_folder_names_is_imported_only_if_the_command_line_names_it_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "own_bots.py").write_text("from agents.greedy import Greedy\nprint('own_bots was imported')\n")
    monkeypatch.syspath_prepend(tmp_path)
    entry = "self+own_bots:Greedy+random"
    learner = SelfPlay(dataclasses.replace(TINY, opponents=("self", entry), shares=(1, 1)), RULES)
    save(tmp_path / "a", learner.checkpoint({"arguments": {"rules": "default", "against": ["random"]}}))
    monkeypatch.delitem(sys.modules, "own_bots")
    capsys.readouterr()
    assert main(["train", "--resume", str(tmp_path / "a")]) == 1
    said = capsys.readouterr()
    assert "own_bots:Greedy" in said.err and f"--opponents self {entry}" in said.err and "imported" not in said.out
    assert defaults(["--resume", str(tmp_path / "a"), "--opponents", "self", entry]).resume == tmp_path / "a"


def test_the_kept_records_are_those_that_the_version_is_for() -> None:
    """Checkpoints hold `GAME` records as they are: if this fails, raise `agents.learned.checkpoint.VERSION` too."""
    digest = hashlib.sha256(repr([(VERSION, GAME.itemsize), *GAME.descr]).encode()).hexdigest()[:16]
    assert digest == "8ab293a1bf8e0ffb"


@pytest.mark.skipif(sys.platform == "win32", reason="has no such locks")
def test_two_runs_do_not_write_to_one_folder(tmp_path: Path) -> None:
    def second(agent: PPOAgent) -> dict[str, dict[str, float]]:
        with pytest.raises(TrainingError, match="another run is writing to"):
            tiny_run(tmp_path).learn()
        return no_figures(agent)

    assert tiny_run(tmp_path, evaluate=second).learn()


def test_the_last_of_two_resumes_counts_with_its_own_arguments(tmp_path: Path) -> None:
    for name, seed in (("a", 5), ("b", 6)):
        save(tmp_path / name, SelfPlay(TINY, RULES, seed).checkpoint())
    args = defaults(["--resume", str(tmp_path / "a"), f"--resume={tmp_path / 'b'}"])
    assert (args.seed, args.resume) == (6, tmp_path / "b")


def test_names_in_brackets_are_told_as_they_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert train(tiny_args(tmp_path / "[red]x[/x]")) == 0
    assert f"ppo:{tmp_path / '[red]x[/x]'}" in capsys.readouterr().out.replace("\n", "")


def test_a_signal_to_terminate_ends_a_run_as_ctrl_c_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(SelfPlay, "update", on_call(3, lambda: os.kill(os.getpid(), signal.SIGTERM), SelfPlay.update))
    before = signal.getsignal(signal.SIGTERM)
    assert train(tiny_args(tmp_path / "a")) == 130
    assert "Stopped after" in capsys.readouterr().out and load(tmp_path / "a").training["decisions"] > 0
    assert signal.getsignal(signal.SIGTERM) == before


def test_runs_of_whole_games_are_judged_by_games(tmp_path: Path) -> None:
    assert train(tiny_args(tmp_path / "a", episode="game", reward="win", eval_deals=20, decisions=64)) == 0
    (entry,) = load(tmp_path / "a").training["history"]
    assert 0 <= entry["figures"]["random"]["win_share"] <= 1
    run = dataclasses.replace(tiny_run(tmp_path / "b"), best_by="win_share")
    assert run._mean({"a": {"edge": 9.0, "win_share": 0.5}, "b": {"win_share": 0.25}}) == 0.375
