"""Checkpoints hold no code, notice every damage, and survive an interrupted save; `PPOAgent` plays what they hold."""

from __future__ import annotations

import errno
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
from agents.learned.checkpoint import CONFIG, PARTS, PREVIOUS, Checkpoint, load, load_last_good, save, write
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
    others = {
        "optimizer": {"step": np.array(3.0, np.float32)},
        "past": {"0/last.bias": np.zeros(64, np.float32)},  # the same in each, as between two snapshots
        "tables": {"games": rng.integers(256, size=(3, 40), dtype=np.uint8), "open": np.array([[-1, 5, -1, -1]])},
    }
    training = {"decisions": 1000 + seed, "history": [{"decisions": 1000, "figures": {"greedy": {"edge": -1.25}}}]}
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


def named(folder: Path, config: str = CONFIG) -> dict[str, str]:
    """The files of tensors by part."""
    return {part: file["name"] for part, file in json.loads((folder / config).read_text())["files"].items()}


def all_named(folder: Path) -> set[str]:
    """The files of the latest checkpoint and of the one before it."""
    return {*named(folder).values(), *named(folder, PREVIOUS).values(), CONFIG, PREVIOUS}


def listing(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_save_leaves_the_one_before_it_and_nothing_else_changed(tmp_path: Path) -> None:
    others = {"notes.txt": b"mine", "my-policy.safetensors": b"mine too", "policy-0.safetensors": b"and this"}
    for name, text in others.items():
        (tmp_path / name).write_bytes(text)
    for number in (1, 2, 3):
        save(tmp_path, tiny(number))
    latest, before = named(tmp_path), named(tmp_path, PREVIOUS)
    assert latest.keys() == before.keys() == set(PARTS)
    assert not set(latest.values()) & set(before.values()), "no damage to a file breaks both"
    assert listing(tmp_path).keys() == all_named(tmp_path) | others.keys()
    assert all((tmp_path / name).read_bytes() == text for name, text in others.items())
    assert same(load(tmp_path), tiny(3))
    assert same(load_last_good(tmp_path)[0], tiny(3)) and not load_last_good(tmp_path)[1]
    (tmp_path / CONFIG).unlink()
    found, complaint = load_last_good(tmp_path)
    assert (
        same(found, tiny(2))
        and complaint == f"checkpoint {tmp_path}: it has no {CONFIG}; expected a folder written by train.py"
    )


def test_a_save_of_the_same_state_leaves_the_one_before_it(tmp_path: Path) -> None:
    save(tmp_path, tiny(1))
    save(tmp_path, tiny(1))
    assert PREVIOUS not in listing(tmp_path)
    save(tmp_path, tiny(2))
    files = listing(tmp_path)
    save(tmp_path, tiny(2))
    assert listing(tmp_path) == files
    noted = replace(tiny(2), training={"decisions": 1002, "history": []})
    save(tmp_path, noted)
    assert same(load(tmp_path), noted)
    assert listing(tmp_path) == files | {CONFIG: (tmp_path / CONFIG).read_bytes()}, "the same tensors, more notes"


@pytest.mark.parametrize("part", [CONFIG, *PARTS])
def test_a_save_over_a_damaged_one_leaves_the_last_good_one(tmp_path: Path, part: str) -> None:
    save(tmp_path, tiny(1))
    save(tmp_path, tiny(2))
    path = tmp_path / named(tmp_path).get(part, CONFIG)
    path.write_bytes(flip_middle(path.read_bytes()))
    found, complaint = load_last_good(tmp_path)
    assert same(found, tiny(1)) and path.name in complaint
    save(tmp_path, tiny(3))
    assert same(load(tmp_path), tiny(3))
    (tmp_path / CONFIG).write_text("")
    assert same(load_last_good(tmp_path)[0], tiny(1)), "not the damaged one"


def test_two_damaged_ones_are_told(tmp_path: Path) -> None:
    save(tmp_path, tiny(1))
    save(tmp_path, tiny(2))
    for config in (CONFIG, PREVIOUS):
        (tmp_path / named(tmp_path, config)["tables"]).unlink()
    with pytest.raises(CheckpointError, match=f"it has no {named(tmp_path)['tables']}"):
        load_last_good(tmp_path)
    with pytest.raises(CheckpointError, match="no such folder"):
        load_last_good(tmp_path / "nowhere")


def test_the_one_before_has_to_be_for_the_same_too(tmp_path: Path) -> None:
    save(tmp_path, tiny(1))
    save(tmp_path, tiny(2))
    with pytest.raises(CheckpointError, match="the observation 'compact', not 'full'"):
        load_last_good(tmp_path, "full")


def test_unknown_parts_are_told_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"parts: \['rng'\] are not among 'policy', 'optimizer', 'past', 'tables'"):
        save(tmp_path, replace(tiny(), parts={**tiny().parts, "rng": {}}))
    assert not listing(tmp_path)


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


@pytest.mark.parametrize("part", [CONFIG, *PARTS])
@pytest.mark.parametrize("damage", DAMAGES, ids=["first", "middle", "last", "short", "long", "empty", "gone"])
def test_any_damage_to_any_file_is_told(tmp_path: Path, part: str, damage: Callable[[bytes], bytes | None]) -> None:
    save(tmp_path, tiny())
    (path,) = tmp_path.glob(f"{part}*")
    damaged = damage(path.read_bytes())
    path.unlink() if damaged is None else path.write_bytes(damaged)
    with pytest.raises(CheckpointError, match=path.name):
        load(tmp_path)
    with pytest.raises(CheckpointError, match=path.name):
        make_agent(f"ppo:{tmp_path}")


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
    ({"version": 1}, "version 1, this release reads version 2"),
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


def no_space() -> OSError:
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("count", range(6))
@pytest.mark.parametrize("failure", [no_space, KeyboardInterrupt])
def test_an_interrupted_save_keeps_the_last_good_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, count: int, failure: Callable[[], BaseException]
) -> None:
    """At each of its six files: four of tensors, ``previous.json`` and ``config.json``."""
    save(tmp_path, tiny(0))
    save(tmp_path, tiny(1))
    calls = iter(range(100))

    def fail(*args: Any) -> None:
        if next(calls) == count:
            raise failure()
        original(*args)

    owner = os if step == "fsync" else Path
    original = getattr(owner, step)
    with monkeypatch.context() as patch:
        patch.setattr(owner, step, fail)
        with pytest.raises((OSError, KeyboardInterrupt)) as caught:
            save(tmp_path, tiny(2))
    if failure is no_space:
        assert str(caught.value).startswith(f"[Errno {errno.ENOSPC}] No space left on device: '{tmp_path}/")
    assert same(load(tmp_path), tiny(1))
    assert not list(tmp_path.glob("*.new"))
    if count < 5:  # afterwards previous.json names the same as config.json, until that is in place
        (tmp_path / CONFIG).rename(tmp_path / "elsewhere")
        assert same(load_last_good(tmp_path)[0], tiny(0))
        (tmp_path / "elsewhere").rename(tmp_path / CONFIG)
    save(tmp_path, tiny(2))
    assert same(load(tmp_path), tiny(2))
    assert listing(tmp_path).keys() == {
        *named(tmp_path).values(),
        *named(tmp_path, PREVIOUS).values(),
        CONFIG,
        PREVIOUS,
    }


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
@pytest.mark.parametrize("file", [CONFIG, PREVIOUS])
def test_a_disk_that_is_full_indeed(tmp_path: Path, file: str) -> None:
    save(tmp_path, tiny(1))
    (tmp_path / f"{file}.new").symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left on device") as caught:
        save(tmp_path, tiny(2))
    assert caught.value.errno == errno.ENOSPC and caught.value.filename == str(tmp_path / file)
    assert same(load(tmp_path), tiny(1))
    assert os.path.exists("/dev/full") and not (tmp_path / f"{file}.new").is_symlink()
    save(tmp_path, tiny(2))
    assert same(load(tmp_path), tiny(2))


def test_a_kill_leaves_files_that_the_next_save_removes(tmp_path: Path) -> None:
    save(tmp_path, tiny(1))
    for name in (f"{CONFIG}.new", "tables-0123456789ab.safetensors", "past-0123456789ab.safetensors.new"):
        (tmp_path / name).write_text("half of")
    assert same(load(tmp_path), tiny(1))
    save(tmp_path, tiny(2))
    assert listing(tmp_path).keys() == {
        *named(tmp_path).values(),
        *named(tmp_path, PREVIOUS).values(),
        CONFIG,
        PREVIOUS,
    }


def test_a_file_is_put_in_place_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "figures.csv"
    write(path, b"old")
    seen: list[tuple[bytes, bytes]] = []
    monkeypatch.setattr(
        os, "fsync", lambda _: seen.append((path.read_bytes(), (tmp_path / "figures.csv.new").read_bytes()))
    )
    write(path, b"new")
    assert seen == [(b"old", b"new")], "whole, and on the disk, before it has its name"
    assert listing(tmp_path) == {"figures.csv": b"new"}


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
