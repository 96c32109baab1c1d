"""The docs say what the code does."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

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


def test_links_between_pages_lead_somewhere() -> None:
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
