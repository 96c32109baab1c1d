"""The docs say what the code does."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dnfh_env import Batch, make_agent
from dnfh_env.agent import FusedAgent

ROOT = Path(__file__).resolve().parent.parent
BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)


def test_observation_tables_are_those_of_the_layouts() -> None:
    command = [sys.executable, str(ROOT / "docs" / "observation_table.py"), "--check"]
    done = subprocess.run(command, cwd=ROOT, env=os.environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_readme_has_its_examples() -> None:
    assert len(BLOCKS) == 6


@pytest.mark.slow
def test_the_agent_with_a_kernel_plays_as_it_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page's last example, in a module of its own, since numba caches beside the file."""
    page = (ROOT / "docs" / "your_own_agent.md").read_text(encoding="utf-8")
    *_, block = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (tmp_path / "highest.py").write_text(block, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    fused, asked = Batch(5, seed=1), Batch(5, seed=1)
    agent = make_agent("highest:Highest")
    fused.play(agent, 200)
    for _ in range(200):
        asked.step(agent.act(asked.views(), asked.keys()))
    assert isinstance(agent, FusedAgent) and fused.games.tobytes() == asked.games.tobytes()


@pytest.mark.slow
@pytest.mark.parametrize("block", BLOCKS, ids=["aec", "seat", "self-play", "training", "batch", "game"])
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


@pytest.mark.slow
@pytest.mark.parametrize("name", ["agents", "equity"])
def test_examples_of_a_page_run_one_after_the_other(name: str) -> None:
    page, names = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8"), dict[str, Any]()
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(compile(block, f"{name}.md", "exec"), names)


def test_links_between_pages_lead_somewhere() -> None:
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
