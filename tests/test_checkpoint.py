"""Checkpoints hold no code, notice every damage, and survive an interrupted save; `PPOAgent` plays what they hold."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agents.learned import checkpoint as module
from agents.learned.checkpoint import CONFIG, Checkpoint, load, save
from agents.learned.policy import PPOAgent
from dnfh_env import Batch, CheckpointError, Rules, make_agent
from dnfh_env._bits import unpack
from dnfh_env.agent import ask, legal_rows
from dnfh_env.observation import COMPACT, FULL, Layout, pack

ACTOR = ("first", "second", "last")


def tiny(seed: int = 0, rules: Rules | None = None, layout: Layout = COMPACT, hidden: int = 8) -> Checkpoint:
    """A checkpoint of random numbers."""
    rng = np.random.default_rng(seed)
    sizes = (layout.bits, hidden, hidden, 64)
    policy = {}
    for name, ins, outs in zip(ACTOR, sizes, sizes[1:], strict=False):
        policy[f"{name}.weight"] = rng.normal(size=(outs, ins)).astype(np.float32)
        policy[f"{name}.bias"] = rng.normal(size=outs).astype(np.float32)
    others = {"optimizer": {"step": np.array(3.0, np.float32)}, "rng": {"numpy.key": np.arange(5, dtype=np.uint32)}}
    training = {"decisions": 1000 + seed, "figures": {"greedy": {"edge": -1.25}}}
    return Checkpoint(rules or Rules(), layout, ACTOR, {"policy": policy, **others}, training)


def same(a: Checkpoint, b: Checkpoint) -> bool:
    tensors = [
        {f"{part}/{name}": array for part, arrays in c.parts.items() for name, array in arrays.items()} for c in (a, b)
    ]
    return (
        (a.rules, a.layout, a.actor, a.training) == (b.rules, b.layout, b.actor, b.training)
        and tensors[0].keys() == tensors[1].keys()
        and all(np.array_equal(tensors[0][name], tensors[1][name]) for name in tensors[0])
    )


def positions(count: int = 64, rules: Rules | None = None) -> Batch:
    """Games in all phases and stages of a deal."""
    batch = Batch(count, rules, seed=5)
    for row in range(count):
        for _ in range(row * 67 // count):
            some = np.array([row])
            batch.step_rows(some, make_agent("random").act(batch.views(some), batch.keys(some)))
    return batch


# --- the folder -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rules", [Rules(), Rules.omnibus(target=150)])
@pytest.mark.parametrize("layout", [COMPACT, FULL])
def test_what_is_saved_is_loaded(tmp_path: Path, rules: Rules, layout: Layout) -> None:
    saved = tiny(1, rules, layout)
    save(tmp_path / "deep" / "folder", saved)
    assert same(load(tmp_path / "deep" / "folder", rules, layout.name), saved)
    assert same(load(str(tmp_path / "deep" / "folder")), saved)


def test_a_second_save_leaves_nothing_of_the_first_and_nothing_else_changed(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "my-policy.safetensors").write_text("mine too")
    save(tmp_path, tiny(1))
    save(tmp_path, tiny(2))
    named = {file["name"] for file in json.loads((tmp_path / CONFIG).read_text())["files"].values()}
    assert {path.name for path in tmp_path.iterdir()} == {*named, CONFIG, "notes.txt", "my-policy.safetensors"}
    assert same(load(tmp_path), tiny(2))


def flip_first(data: bytes) -> bytes:
    return bytes([data[0] ^ 1]) + data[1:]


def flip_middle(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


def flip_last(data: bytes) -> bytes:
    return data[:-1] + bytes([data[-1] ^ 1])


DAMAGES: list[Callable[[bytes], bytes | None]] = [
    flip_first,
    flip_middle,
    flip_last,
    lambda data: data[:-1],
    lambda data: data + b"\n",
    lambda data: b"",
    lambda data: None,
]


@pytest.mark.parametrize("part", [CONFIG, "policy", "optimizer", "rng"])
@pytest.mark.parametrize("damage", DAMAGES, ids=["first", "middle", "last", "short", "long", "empty", "gone"])
def test_any_damage_to_any_file_is_told(tmp_path: Path, part: str, damage: Callable[[bytes], bytes | None]) -> None:
    save(tmp_path, tiny())
    (path,) = tmp_path.glob(f"{part}*")
    damaged = damage(path.read_bytes())
    path.unlink() if damaged is None else path.write_bytes(damaged)
    with pytest.raises(CheckpointError, match=path.name):
        load(tmp_path)


def test_bytes_all_over_the_config_count(tmp_path: Path) -> None:
    save(tmp_path, tiny())
    data = (tmp_path / CONFIG).read_bytes()
    for i in range(0, len(data), 7):
        (tmp_path / CONFIG).write_bytes(data[:i] + bytes([data[i] ^ 1]) + data[i + 1 :])
        with pytest.raises(CheckpointError):
            load(tmp_path)


def test_missing_folders_are_told(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="no such folder"):
        load(tmp_path / "nowhere")
    with pytest.raises(CheckpointError, match=f"it has no {CONFIG}"):
        load(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match="cannot be read"):
        load(tmp_path / "file")
    with pytest.raises(CheckpointError, match="no such folder"):
        make_agent(f"ppo:{tmp_path}/nowhere")


def reseal(folder: Path, **changes: Any) -> None:
    """Change fields of a config as another release might have written them, checksum and all."""
    config = json.loads((folder / CONFIG).read_text()) | changes
    del config["sha256"]
    (folder / CONFIG).write_text(module._sealed({name: value for name, value in config.items() if value is not None}))


OTHERS: list[tuple[dict[str, Any], str]] = [
    ({"format": "something else"}, "does not say that this is a 'dnfh checkpoint'"),
    ({"version": 2}, "version 2, this release reads version 1"),
    ({"rules_digest": "0" * 16}, "reads its rules otherwise"),
    ({"rules": {"target": -1}}, "its rules are not valid here: target"),
    (
        {"observation_digest": "0" * 16},
        rf"'compact' \(0{{16}}\), .*release has 'compact' \({COMPACT.digest()}\)",
    ),
    ({"observation": "tiny"}, "reads the observation 'tiny'"),
    ({"actor": None}, "lacks or misstates a field: KeyError\\('actor'\\)"),
    ({"files": {}}, "no file for 'policy'"),
    ({"files": {"policy": {}}}, "lacks or misstates a field"),
    ({"files": {"policy": {"name": "../policy-000000000000.safetensors"}}}, "is no file of tensors"),
    ({"files": {"policy": {"name": CONFIG}}}, "is no file of tensors"),
    ({"files": {"code": {"name": "policy-000000000000.safetensors"}}}, "is no file of tensors"),
]


@pytest.mark.parametrize(("changes", "complaint"), OTHERS)
def test_configs_of_another_kind_are_told(tmp_path: Path, changes: dict[str, Any], complaint: str) -> None:
    save(tmp_path, tiny())
    reseal(tmp_path, **changes)
    with pytest.raises(CheckpointError, match=complaint) as caught:
        load(tmp_path)
    assert str(tmp_path) in str(caught.value)


def test_other_rules_and_observations_are_refused(tmp_path: Path) -> None:
    save(tmp_path, tiny(rules=Rules(target=150)))
    load(tmp_path, Rules(target=150))
    with pytest.raises(CheckpointError, match=r"trained for Rules\(target=150\), and these are Rules\(\)"):
        load(tmp_path, Rules())
    with pytest.raises(CheckpointError, match="trained for"):
        make_agent(f"ppo:{tmp_path}")
    with pytest.raises(CheckpointError, match="the observation 'compact', not 'full'"):
        load(tmp_path, observation="full")


class Bomb:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (os.environ["DNFH_BOMB"],)


def test_a_pickle_is_not_executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DNFH_BOMB", str(tmp_path / "exploded"))
    save(tmp_path / "c", tiny())
    bomb = pickle.dumps(Bomb())
    name = f"policy-{module.hashlib.sha256(bomb).hexdigest()[:12]}.safetensors"
    (tmp_path / "c" / name).write_bytes(bomb)
    policy = {"name": name, "bytes": len(bomb), "sha256": module.hashlib.sha256(bomb).hexdigest()}
    reseal(tmp_path / "c", files={"policy": policy})
    with pytest.raises(CheckpointError, match="is not a file of tensors"):
        load(tmp_path / "c")
    assert not (tmp_path / "exploded").exists()
    pickle.loads(bomb)
    assert (tmp_path / "exploded").exists()  # it was a real one


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("count", range(4))
def test_an_interrupted_save_keeps_the_last_good_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, count: int
) -> None:
    save(tmp_path, tiny(1))
    calls = iter(range(100))

    def fail(*args: Any) -> None:
        if next(calls) == count:
            raise OSError("no space left on device")
        original(*args)

    owner = os if step == "fsync" else Path
    original = getattr(owner, step)
    with monkeypatch.context() as patch:
        patch.setattr(owner, step, fail)
        with pytest.raises(OSError, match="no space"):
            save(tmp_path, tiny(2))
    assert same(load(tmp_path), tiny(1))
    save(tmp_path, tiny(2))
    assert same(load(tmp_path), tiny(2))
    assert len(list(tmp_path.iterdir())) == 4, "what the interrupted save left behind is gone"


# --- the agent ------------------------------------------------------------------------------------------------------


def reference(saved: Checkpoint, views: Any) -> np.ndarray[Any, Any]:
    """Logits by matrix products in double precision."""
    x = unpack(pack(views, saved.rules.target, saved.layout)).astype(np.float64)
    for name in ACTOR:
        x = np.maximum(x, 0) @ saved.parts["policy"][f"{name}.weight"].T + saved.parts["policy"][f"{name}.bias"]
    return x


@pytest.mark.parametrize("layout", [COMPACT, FULL])
def test_logits_are_those_of_the_network(tmp_path: Path, layout: Layout) -> None:
    rules = Rules.omnibus()
    saved = tiny(3, rules, layout)
    save(tmp_path, saved)
    views = positions(rules=rules).views()
    logits = PPOAgent(tmp_path, rules).logits(views)
    np.testing.assert_allclose(logits, reference(saved, views), rtol=1e-4, atol=1e-3)
    actions = make_agent(f"ppo:{tmp_path}", rules).act(views, np.zeros(len(views), np.uint64))
    legal = legal_rows(views["legal"]) == 1
    assert actions.tolist() == np.where(legal, reference(saved, views), -np.inf).argmax(axis=1).tolist()


@pytest.mark.parametrize("sample", [False, True])
def test_company_changes_nothing(sample: bool) -> None:
    batch = positions()
    views, keys = batch.views(), batch.keys()
    agent = PPOAgent.of(tiny(4), sample)
    together = ask(agent, views, keys)
    alone = [int(agent.act(views[i : i + 1], keys[i : i + 1])[0]) for i in range(len(views))]
    order = np.random.default_rng(0).permutation(len(views))
    assert together.tolist() == alone
    assert together[order].tolist() == agent.act(views[order], keys[order]).tolist()
    assert together[::2].tolist() == agent.act(views[::2], keys[::2]).tolist()
    many = agent.logits(np.concatenate([views[::-1], views]))
    assert many[len(views) :].tobytes() == agent.logits(views).tobytes()
    assert (agent.act(views, keys + np.uint64(1)) != together).any() == sample


def test_samples_follow_the_softmax() -> None:
    saved = tiny(5)
    for name in ("last.weight", "last.bias"):
        saved.parts["policy"][name][:] *= 0.02  # type: ignore[index]
    view = Batch(1).views()  # a call: eleven legal actions
    logits = np.where(legal_rows(view["legal"]) == 1, reference(saved, view), -np.inf)[0]
    expected = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
    count = 20_000
    keys = np.random.default_rng(0).integers(2**64, size=count, dtype=np.uint64)
    drawn = np.bincount(PPOAgent.of(saved, sample=True).act(np.repeat(view, count), keys), minlength=64) / count
    assert expected.max() < 0.9
    np.testing.assert_allclose(drawn, expected, atol=4 * np.sqrt(0.25 / count))


def without(key: str) -> Callable[[dict[str, Any]], None]:
    return lambda policy: policy.pop(key)


def with_tensor(key: str, tensor: Any) -> Callable[[dict[str, Any]], None]:
    return lambda policy: policy.update({key: tensor})


NOT_A_NETWORK: list[tuple[Callable[[dict[str, Any]], None], str]] = [
    (without("second.bias"), "no tensor 'second.bias'"),
    (with_tensor("second.weight", np.zeros((8, 7), np.float32)), r"float32\[8, 7\], expected float32\[any, 8\]"),
    (with_tensor("second.weight", np.zeros((8, 8))), r"float64\[8, 8\], expected float32"),
    (with_tensor("second.weight", np.zeros((0, 8), np.float32)), r"float32\[0, 8\], expected float32"),
    (with_tensor("second.weight", np.zeros(8, np.float32)), r"float32\[8\], expected float32\[any, 8\]"),
    (with_tensor("first.bias", np.zeros(9, np.float32)), r"float32\[9\], expected float32\[8\]"),
    (with_tensor("last.bias", np.full(64, np.nan, np.float32)), "not finite"),
]


@pytest.mark.parametrize(("change", "complaint"), NOT_A_NETWORK)
def test_tensors_that_are_no_network_are_told(
    tmp_path: Path, change: Callable[[dict[str, Any]], None], complaint: str
) -> None:
    saved = tiny()
    change(saved.parts["policy"])  # type: ignore[arg-type]
    save(tmp_path, saved)
    with pytest.raises(CheckpointError, match=complaint):
        PPOAgent(tmp_path)
    with pytest.raises(CheckpointError, match=r"widths \[960, 8\].*64 logits"):
        PPOAgent.of(replace(tiny(), actor=("first",)))


def test_playing_needs_no_torch(tmp_path: Path) -> None:
    save(tmp_path, tiny())
    code = "import sys; from dnfh_env import make_agent; make_agent(sys.argv[1]); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code, f"ppo:{tmp_path}"], check=True)
