"""The docs say what the code does."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)


def test_observation_tables_are_those_of_the_layouts() -> None:
    command = [sys.executable, str(ROOT / "docs" / "observation_table.py"), "--check"]
    done = subprocess.run(command, cwd=ROOT, env=os.environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_readme_has_its_examples() -> None:
    assert len(BLOCKS) == 5


@pytest.mark.slow
@pytest.mark.parametrize("block", BLOCKS, ids=["aec", "seat", "self-play", "training", "game"])
def test_readme_examples_run(block: str) -> None:
    exec(compile(re.sub("[12]00_000", "8_192", block), "README.md", "exec"), {})


@pytest.mark.slow
def test_training_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs" / "training.md").read_text(encoding="utf-8")
    going_on, for_sb3 = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(compile(going_on.replace("100_000", "8_192"), "training.md", "exec"), names)
    assert names["again"].decisions == names["learner"].decisions > 0
    names["again"].export("runs/mine/model.zip")
    exec(compile(for_sb3, "training.md", "exec"), names)
    masks = names["env"].action_masks()
    assert masks[range(len(masks)), names["actions"]].all()


def test_links_between_pages_lead_somewhere() -> None:
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
