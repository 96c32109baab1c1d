"""Checkpoints: a folder of numbers and text, never code.

``config.json`` says which rules and which observation layout the weights belong to, and names every other file with
its size and SHA-256. Those files are named by what is in all of them, so no two checkpoints share one, and a save
leaves the files of the one before untouched; replacing ``config.json`` is the single moment at which a folder passes
from one checkpoint to the next, and whatever interrupts a save, the last good checkpoint stays readable. The one before
it stays too, as ``previous.json``, in case a disk damages the latest.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray
from safetensors import SafetensorError

from dnfh_env.errors import CheckpointError, RulesError
from dnfh_env.observation import LAYOUTS, Layout
from dnfh_env.rules import Rules

FORMAT = "dnfh checkpoint"
VERSION = 2
"""Raise it when parts change, or `GAME` does, whose records are kept as they are."""
CONFIG = "config.json"
PREVIOUS = "previous.json"
PARTS = ("policy", "optimizer", "past", "tables")
"""The files of tensors: weights, Adam's state, snapshots, and games with open transitions; a checkpoint that is only to
be played may hold ``"policy"`` alone."""

_PART_FILE = re.compile(rf"({'|'.join(PARTS)})-[0-9a-f]{{12}}\.safetensors(\.new)?")

Tensors = Mapping[str, NDArray[Any]]


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """Weights, what they are for, and what training needs to go on from them."""

    rules: Rules
    layout: Layout
    actor: tuple[str, ...]
    """Names of the linear layers from observation to the 64 logits, in order, a ReLU between each two: layer ``name``
    has ``name.weight``, ``float32[out, in]``, and ``name.bias``, ``float32[out]``, in ``parts["policy"]``."""
    parts: Mapping[str, Tensors]
    """Tensors by part, see `PARTS`, and by name."""
    training: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """How it was trained and how it fared, as JSON values; ``"decisions"`` counts the learner's."""


def save(folder: Path, checkpoint: Checkpoint) -> None:
    """Make ``folder`` hold this checkpoint instead of the one it held; other files in it are left alone.

    Raises `OSError` if it cannot be written; the folder then still holds the checkpoint from before.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = _write_parts(folder, checkpoint.parts)
    config = {
        "format": FORMAT,
        "version": VERSION,
        "rules": checkpoint.rules.to_dict(),
        "rules_digest": checkpoint.rules.digest(),
        "observation": checkpoint.layout.name,
        "observation_digest": checkpoint.layout.digest(),
        "actor": list(checkpoint.actor),
        "training": dict(checkpoint.training),
        "files": files,
    }
    before = _kept(folder, CONFIG)
    if before is not None and before["files"] != files and _is_good(folder):  # if not, previous.json is worth more
        write(folder / PREVIOUS, _sealed(before).encode())
    write(folder / CONFIG, _sealed(config).encode())
    _sweep(folder)


def load(path: str | Path, rules: Rules | None = None, observation: str | None = None) -> Checkpoint:
    """Read the checkpoint in a folder.

    Args:
        path: the folder.
        rules: the rules it has to be for, any if not given.
        observation: the name of the layout it has to be for, any if not given.

    Raises `CheckpointError` if it is missing, broken, or for something else; nothing in the folder is executed.
    """
    folder = Path(path)
    try:
        return _load(folder, rules, observation)
    except CheckpointError:  # once more: it may have been saved anew between the reading of two of its files
        return _load(folder, rules, observation)


def load_last_good(path: str | Path, observation: str | None = None) -> tuple[Checkpoint, str]:
    """The checkpoint in a folder, or, if that is broken, the one before it, and what is wrong with the latest, if any.

    Raises `CheckpointError` about the latest if there is no good one before it.
    """
    folder = Path(path)
    try:
        return load(folder, observation=observation), ""
    except CheckpointError as error:
        try:
            return _load(folder, None, observation, PREVIOUS), str(error)
        except CheckpointError:
            raise error from None


def _load(folder: Path, rules: Rules | None, observation: str | None, name: str = CONFIG) -> Checkpoint:
    config = _read_config(folder, name)
    try:
        found = Checkpoint(
            rules=_rules(folder, config, rules),
            layout=_layout(folder, config, observation),
            actor=tuple(config["actor"]),
            parts={part: _read_part(folder, part, file) for part, file in config["files"].items()},
            training=config["training"],
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(f"checkpoint {folder}: {name} lacks or misstates a field: {error!r}") from error
    if "policy" not in found.parts:
        raise CheckpointError(f"checkpoint {folder}: {name} names no file for 'policy', the weights")
    return found


def is_checkpoint(folder: Path) -> bool:
    """Whether the folder holds a checkpoint, good or broken."""
    return (folder / CONFIG).exists()


def _is_good(folder: Path) -> bool:
    """Whether the folder holds a checkpoint that is whole."""
    try:
        _load(folder, None, None)
    except CheckpointError:
        return False
    return True


def _sealed(config: dict[str, Any]) -> str:
    """The text of ``config.json``: the fields and the digest of their text."""
    text = json.dumps(config, indent=1, allow_nan=False)
    return json.dumps(config | {"sha256": hashlib.sha256(text.encode()).hexdigest()}, indent=1, allow_nan=False) + "\n"


def _kept(folder: Path, name: str) -> dict[str, Any] | None:
    """What a folder's ``config.json`` or ``previous.json`` says, if it is there and whole."""
    try:
        return _read_config(folder, name)
    except CheckpointError:
        return None


def _read_config(folder: Path, name: str = CONFIG) -> dict[str, Any]:
    data = _read(folder, name)
    try:
        config = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"checkpoint {folder}: {name} is not JSON: {error}") from error
    if not isinstance(config, dict) or config.get("format") != FORMAT:
        raise CheckpointError(f"checkpoint {folder}: {name} does not say that this is a {FORMAT!r}")
    if config.get("version") != VERSION:
        raise CheckpointError(
            f"checkpoint {folder}: it has version {config.get('version')!r}, this release reads version {VERSION}"
        )
    config.pop("sha256", None)
    if _sealed(config).encode() != data:
        raise CheckpointError(f"checkpoint {folder}: {name} was damaged or edited: its checksum does not match")
    return config


def _read(folder: Path, name: str) -> bytes:
    try:
        return (folder / name).read_bytes()
    except FileNotFoundError as error:
        what = "no such folder" if not folder.exists() else f"it has no {name}"
        raise CheckpointError(f"checkpoint {folder}: {what}; expected a folder written by train.py") from error
    except OSError as error:
        raise CheckpointError(f"checkpoint {folder}: {name} cannot be read: {error.strerror}") from error


def _rules(folder: Path, config: dict[str, Any], wanted: Rules | None) -> Rules:
    try:
        rules = Rules.from_dict(config["rules"])
    except RulesError as error:
        raise CheckpointError(f"checkpoint {folder}: its rules are not valid here: {error}") from error
    if rules.digest() != config["rules_digest"]:
        raise CheckpointError(f"checkpoint {folder}: this release reads its rules otherwise than the one that wrote it")
    if wanted is not None and wanted.play_digest() != rules.play_digest():
        raise CheckpointError(f"checkpoint {folder}: it was trained for {rules!r}, and these are {wanted!r}")
    return rules


def _layout(folder: Path, config: dict[str, Any], wanted: str | None) -> Layout:
    name = config["observation"]
    if name not in LAYOUTS or LAYOUTS[name].digest() != config["observation_digest"]:
        known = ", ".join(f"{layout.name!r} ({layout.digest()})" for layout in LAYOUTS.values())
        raise CheckpointError(
            f"checkpoint {folder}: it reads the observation {name!r} ({config['observation_digest']}), "
            f"and this release has {known}"
        )
    if wanted is not None and wanted != name:
        raise CheckpointError(f"checkpoint {folder}: it reads the observation {name!r}, not {wanted!r}")
    return LAYOUTS[name]


def _write_parts(folder: Path, parts: Mapping[str, Tensors]) -> dict[str, dict[str, Any]]:
    """The files by part, as ``config.json`` names them."""
    if unknown := sorted(set(parts) - set(PARTS)):
        raise ValueError(f"parts: {unknown} are not among {', '.join(map(repr, PARTS))}")
    data = {
        part: safetensors.numpy.save({name: np.asarray(tensor, order="C") for name, tensor in tensors.items()})
        for part, tensors in parts.items()
    }
    sums = {part: hashlib.sha256(data[part]).hexdigest() for part in data}
    mark = hashlib.sha256(json.dumps(sums).encode()).hexdigest()[:12]
    files = {
        part: {"name": f"{part}-{mark}.safetensors", "bytes": len(data[part]), "sha256": sums[part]} for part in data
    }
    for part, file in files.items():
        write(folder / str(file["name"]), data[part])
    return files


def _read_part(folder: Path, part: str, file: dict[str, Any]) -> dict[str, NDArray[Any]]:
    name = file["name"]
    if part not in PARTS or not _PART_FILE.fullmatch(name):
        raise CheckpointError(f"checkpoint {folder}: {CONFIG} names {name!r} for {part!r}, which is no file of tensors")
    data = _read(folder, name)
    if len(data) != file["bytes"]:
        raise CheckpointError(f"checkpoint {folder}: {name} has {len(data)} bytes, expected {file['bytes']}")
    if hashlib.sha256(data).hexdigest() != file["sha256"]:
        raise CheckpointError(f"checkpoint {folder}: {name} was damaged: its checksum does not match")
    try:
        return safetensors.numpy.load(data)
    except (SafetensorError, KeyError, ValueError) as error:
        raise CheckpointError(f"checkpoint {folder}: {name} is not a file of tensors: {error}") from error


def write(path: Path, data: bytes) -> None:
    """Put a whole file in place at once, on the disk before it has its name."""
    new = path.with_name(path.name + ".new")
    try:
        with new.open("wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        new.replace(path)
    except OSError as error:
        error.filename = error.filename or str(path)  # where a disk is full, Python does not say so
        raise
    finally:
        new.unlink(missing_ok=True)  # what a full disk or Ctrl-C left unfinished


def _sweep(folder: Path) -> None:
    """Remove the files of tensors that no checkpoint names any more."""
    configs = filter(None, (_kept(folder, name) for name in (CONFIG, PREVIOUS)))
    keep = {file["name"] for config in configs for file in config["files"].values()}
    for path in folder.iterdir():
        if _PART_FILE.fullmatch(path.name) and path.name not in keep:
            path.unlink(missing_ok=True)
