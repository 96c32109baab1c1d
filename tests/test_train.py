"""Training: reproducible, resumable, safe to break off; what is kept plays as the model did."""

from __future__ import annotations

import csv
import dataclasses
from collections.abc import Mapping
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
from agents.learned.checkpoint import load
from agents.learned.policy import PPOAgent
from agents.learned.settings import Settings
from agents.learned.training import (
    Run,
    TrainingError,
    build,
    optimizer_tensors,
    policy_tensors,
    restore,
    rng_tensors,
    snapshot,
    unvalidated_distributions,
)
from dnfh_env import Batch, CheckpointError, DnfhError, Rules, card_points, make_agent
from dnfh_env._bits import unpack
from dnfh_env.agent import legal_rows
from dnfh_env.observation import pack

TINY = Settings(
    opponents=("random",), decisions=256, num_envs=8, n_steps=16, batch_size=64, epochs=2, trunk=(16,), head=(8,)
)
RULES = Rules(target=150)


@pytest.fixture(autouse=True)
def one_thread() -> None:
    """Networks this small only lose by more, above all where others use the cores too."""
    torch.set_num_threads(1)


def no_figures(agent: PPOAgent) -> dict[str, dict[str, float]]:
    return {"random": {"edge": float(agent.logits(Batch(1).views()).sum())}}


def tiny_run(out: Path, settings: Settings = TINY, seed: int = 0, **options: Any) -> Run:
    return Run(build(settings, RULES, seed), settings, RULES, out, options.pop("evaluate", no_figures), 128, **options)


def tiny_args(out: Path, **changes: Any) -> TrainArgs:
    arguments = dataclasses.asdict(TINY) | {"out": out, "eval_every": 128, "eval_deals": 4, "threads": 1} | changes
    return TrainArgs(**arguments)


def tensors(folder: Path) -> dict[str, bytes]:
    parts = load(folder).parts
    return {f"{part}/{name}": array.tobytes() for part in parts for name, array in parts[part].items()}


def views(count: int = 256) -> Any:
    batch = Batch(count, RULES, seed=11)
    batch.play_random(37)
    return batch.views()


# --- what is learned ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_same_seed_same_weights(tmp_path: Path) -> None:
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        assert tiny_run(tmp_path / name, seed=seed).learn()
    assert tensors(tmp_path / "a") == tensors(tmp_path / "b")
    first, other = tensors(tmp_path / "a"), tensors(tmp_path / "c")
    assert not any(first[name] == other[name] for name in first if name.startswith("policy/") and "weight" in name)


def test_evaluations_change_nothing(tmp_path: Path) -> None:
    def greedy_with_numbers(agent: PPOAgent) -> dict[str, dict[str, float]]:
        agent.act(views(), np.arange(256, dtype=np.uint64))
        return no_figures(agent)

    tiny_run(tmp_path / "a").learn()
    run = tiny_run(tmp_path / "b", evaluate=greedy_with_numbers)
    run.every = 10_000
    run.learn()
    assert tensors(tmp_path / "a") == tensors(tmp_path / "b")


@pytest.mark.parametrize(("trunk", "head"), [((16,), (8,)), ((), (8,)), ((16, 8), ()), ((), ())])
@pytest.mark.parametrize("observation", ["compact", "full"])
def test_the_agent_plays_as_the_model(trunk: tuple[int, ...], head: tuple[int, ...], observation: Any) -> None:
    settings = dataclasses.replace(TINY, trunk=trunk, head=head, observation=observation)
    model = build(settings, RULES, 0)
    with torch.no_grad():
        for parameter in model.policy.parameters():
            parameter += 0.1 * torch.randn(parameter.shape)  # SB3 starts with logits that are all but equal
    agent = PPOAgent.of(snapshot(model, settings, RULES, {}))
    asked = views()
    observations = unpack(pack(asked, RULES.target, agent.layout)).astype(np.float32)
    masks = legal_rows(asked["legal"])
    predicted, _ = model.predict(observations, action_masks=masks, deterministic=True)
    actions = agent.act(asked, np.zeros(256, np.uint64))
    assert actions.tolist() == predicted.tolist()
    assert len(set(actions.tolist())) > 10


@pytest.mark.slow
def test_it_learns() -> None:
    """A random learner has an edge of 0 against its like; this one finds out within 1,300 deals that hearts cost."""
    rules = Rules(max_deals=1, calls=("hold",), points=card_points(hearts=1), shot="none")
    settings = Settings(
        ("random",),
        decisions=16_384,
        num_envs=64,
        n_steps=32,
        batch_size=256,
        epochs=4,
        learning_rate=3e-3,
        gae_lambda=0.95,
        entropy=0.01,
        trunk=(64,),
        head=(64,),
    )
    model = build(settings, rules, 0)
    with unvalidated_distributions():
        model.learn(settings.decisions)
    agent = PPOAgent.of(snapshot(model, settings, rules, {}))
    result = evaluate(agent, "random", rules, deals=200, games=0, seed=EVALUATION_SEED)
    assert result.edge is not None and result.edge.low > 0.2, result


# --- the folder -----------------------------------------------------------------------------------------------------


def test_a_run_leaves_its_figures(tmp_path: Path) -> None:
    told: list[tuple[int, Mapping[str, Mapping[str, float]]]] = []
    ticks: list[int] = []
    run = tiny_run(tmp_path, tell=lambda decisions, figures: told.append((decisions, figures)), tick=ticks.append)
    assert run.learn()
    assert [decisions for decisions, _ in told] == [128, 256]
    assert ticks == list(range(8, 257, 8))
    rows = list(csv.DictReader((tmp_path / "progress.csv").open()))
    assert [(int(row["decisions"]), row["opponent"]) for row in rows] == [(128, "random"), (256, "random")]
    assert [float(row["edge"]) for row in rows] == [figures["random"]["edge"] for _, figures in told]
    last, best = load(tmp_path), load(tmp_path / "best")
    assert last.training["decisions"] == 256
    assert last.training["figures"] == told[-1][1]
    assert best.training["best"] == last.training["best"] == max(float(row["edge"]) for row in rows)
    assert best.training["figures"]["random"]["edge"] == best.training["best"]
    assert last.training["settings"] == TINY.to_dict()

    events = EventAccumulator(str(tmp_path / "tb")).Reload()
    logged = [(event.step, event.value) for event in events.Scalars("evaluation/random/edge")]
    assert [step for step, _ in logged] == [128, 256]
    assert logged[0][1] == pytest.approx(told[0][1]["random"]["edge"], rel=1e-5)
    assert {"train/loss", "train/approx_kl", "rollout/ep_rew_mean"} <= set(events.Tags()["scalars"])


def test_a_resumed_run_goes_on_where_it_was(tmp_path: Path) -> None:
    assert train(tiny_args(tmp_path / "a")) == 0
    before = load(tmp_path / "a")
    model = build(TINY, RULES, 0, done=256)
    restore(model, dataclasses.replace(before, rules=RULES), tmp_path / "a")
    for part, arrays in (
        ("policy", policy_tensors(model)),
        ("optimizer", optimizer_tensors(model)),
        ("rng", rng_tensors()),
    ):
        assert arrays.keys() == before.parts[part].keys()
        assert all(np.array_equal(arrays[name], before.parts[part][name]) for name in arrays), part
    assert float(before.parts["optimizer"]["step/action_net.bias"]) == 2 * 2 * 2  # updates, epochs, minibatches

    assert train(tiny_args(None, resume=tmp_path / "a", decisions=384)) == 0
    after = load(tmp_path / "a")
    assert after.training["decisions"] == 384
    assert float(after.parts["optimizer"]["step/action_net.bias"]) == 3 * 2 * 2
    assert after.training["best"] >= before.training["best"]
    rows = list(csv.DictReader((tmp_path / "a" / "progress.csv").open()))
    assert [int(row["decisions"]) for row in rows] == [128, 256, 384]


def test_resuming_a_finished_run_changes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train(tiny_args(tmp_path / "a"))
    before = tensors(tmp_path / "a")
    assert train(tiny_args(None, resume=tmp_path / "a")) == 0
    assert "256 decisions already" in " ".join(capsys.readouterr().out.split())
    assert tensors(tmp_path / "a") == before


def test_resuming_elsewhere_leaves_the_old_folder_alone(tmp_path: Path) -> None:
    train(tiny_args(tmp_path / "a"))
    before = tensors(tmp_path / "a")
    assert train(tiny_args(tmp_path / "b", resume=tmp_path / "a", decisions=384)) == 0
    assert tensors(tmp_path / "a") == before
    assert load(tmp_path / "b").training["decisions"] == load(tmp_path / "b" / "best").training["decisions"] == 384


def test_resumed_deals_are_fresh() -> None:
    hands = [build(TINY, RULES, 0, done=done).env.reset()[:, :52].tobytes() for done in (0, 0, 256)]
    assert hands[0] == hands[1] != hands[2]


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"rules": "omnibus"}, "was trained for"),
        ({"observation": "full"}, "the observation 'compact', not 'full'"),
        ({"head": (9,)}, r"--trunk \[16\] --head \[8\]"),
        ({"trunk": (16, 16)}, r"--trunk \[16\] --head \[8\]"),
    ],
)
def test_resuming_as_something_else_is_refused(tmp_path: Path, changes: dict[str, Any], complaint: str) -> None:
    train(tiny_args(tmp_path / "a"))
    before = tensors(tmp_path / "a")
    with pytest.raises(CheckpointError, match=complaint):
        train(tiny_args(None, resume=tmp_path / "a", decisions=384, **changes))
    assert tensors(tmp_path / "a") == before


def test_a_checkpoint_to_play_cannot_be_trained_on(tmp_path: Path) -> None:
    model = build(TINY, RULES, 0)
    whole = snapshot(model, TINY, RULES, {})
    with pytest.raises(CheckpointError, match=r"\['optimizer', 'rng'\] is missing"):
        restore(model, dataclasses.replace(whole, parts={"policy": whole.parts["policy"]}), tmp_path)


# --- what goes wrong ------------------------------------------------------------------------------------------------


def test_ctrl_c_saves(tmp_path: Path) -> None:
    def interrupt(decisions: int) -> None:
        if decisions == 200:
            raise KeyboardInterrupt

    run = tiny_run(tmp_path, tick=interrupt)
    assert not run.learn()
    kept = load(tmp_path)
    assert kept.training["decisions"] == 200
    assert all(np.array_equal(kept.parts["policy"][name], array) for name, array in policy_tensors(run.model).items())
    make_agent(f"ppo:{tmp_path}", RULES)
    assert torch.distributions.Distribution._validate_args == __debug__


def test_ctrl_c_is_told_with_the_way_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*args: Any, **kwargs: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(MaskablePPO, "train", interrupt)
    assert train(tiny_args(tmp_path / "a")) == 130
    assert "Stopped after 128 decisions" in capsys.readouterr().out
    monkeypatch.undo()
    assert train(tiny_args(None, resume=tmp_path / "a")) == 0
    assert load(tmp_path / "a").training["decisions"] == 256


def test_divergence_keeps_the_last_good_state(tmp_path: Path) -> None:
    run = tiny_run(tmp_path, dataclasses.replace(TINY, decisions=1024))

    def poison(decisions: int) -> None:
        if decisions == 384:
            with torch.no_grad():
                run.model.policy.value_net.bias[:] = torch.nan

    run.tick = poison
    with pytest.raises(TrainingError, match=rf"after 384 decisions the loss was nan.*{tmp_path} holds .* 256 "):
        run.learn()
    assert load(tmp_path).training["decisions"] == 256
    PPOAgent(tmp_path, RULES)


def test_an_export_is_an_sb3_model(tmp_path: Path) -> None:
    assert train(tiny_args(tmp_path / "a", export_sb3=True)) == 0
    model = MaskablePPO.load(tmp_path / "a" / "model.zip", device="cpu")
    kept = load(tmp_path / "a").parts["policy"]
    assert all(np.array_equal(kept[name], array) for name, array in policy_tensors(model).items())  # type: ignore[arg-type]


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"decisions": 0}, "decisions: 0"),
    ({"num_envs": 0}, "num_envs: 0"),
    ({"batch_size": 60}, "batch_size: 60 .* = 128"),
    ({"batch_size": 1}, "batch_size: 1 "),
    ({"opponents": ("random", "random")}, "opponents: .* got 2"),
    ({"opponents": ("nobody",)}, "unknown agent 'nobody'"),
    ({"against": ("nobody",)}, "unknown agent 'nobody'"),
    ({"reward": "win"}, "needs whole games"),
    ({"trunk": (0,)}, "widths"),
    ({"rules": "nowhere.json"}, "nowhere.json"),
    ({"eval_every": 0}, "eval_every"),
    ({"eval_deals": 0}, "eval_deals"),
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


def test_a_folder_in_use_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    assert main(["train", "--out", str(tmp_path)]) == 1
    assert "is not an empty folder" in capsys.readouterr().err
    train(tiny_args(tmp_path / "a"))
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


def test_the_command_line_trains_with_games_and_wins(tmp_path: Path) -> None:
    rules = tmp_path / "rules.json"
    rules.write_text('{"max_deals": 2}')
    tiny = "--decisions 64 --num-envs 4 --n-steps 16 --batch-size 32 --epochs 1 --trunk 8 --head 8 --eval-deals 2"
    words = ["train", *tiny.split(), "--out", str(tmp_path / "a"), "--rules", str(rules), "--threads", "1"]
    words += ["--opponents", "random", "greedy", "random", "--episode", "game", "--reward", "win"]
    assert main(words) == 0
    kept = load(tmp_path / "a", Rules(max_deals=2))
    assert set(kept.training["figures"]) == {"random", "greedy"}
    assert kept.training["settings"]["reward"] == "win"
