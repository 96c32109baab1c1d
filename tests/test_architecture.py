"""The arrows between modules, read from the imports: who may know of whom.

A module may import what lies below it. Modules on one line of `LAYERS` do not know each other, unless they share a
group. A new module has to be placed here before the suite passes, which is the moment to ask where it belongs.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# From the bottom up. A string is one module or subpackage; a tuple is a group whose members may import each other.
LAYERS: dict[str, list[list[str | tuple[str, ...]]]] = {
    "dnfh_env": [
        ["errors"],
        ["_bits"],
        ["_random"],
        ["cards"],
        ["rules"],
        ["engine"],
        ["view", "notation", "table"],
        ["observation", "agent", "equity"],
        ["objective"],
        [("game", "render"), ("_crew", "batch")],
        ["dnfh_v0", "seat_env"],
        ["sb3"],
    ],
    "agents": [
        ["stats", ("beliefs", "worlds", "layouts"), ("facts", "greedy", "heuristic")],
        ["search", "learned", "mixed"],
        ["results", "formats", "behaviour", "luck"],
        ["plain", "files"],
        ["isolated"],
        ["ratings", "pages", "referee"],
        ["report"],
        ["blocks"],
        ["arena"],
        ["workers", "tables", "suites"],
        ["cli"],
    ],
}
CORE_LIBRARIES = {"numpy", "numba", "llvmlite", "gymnasium", "pettingzoo"}  # llvmlite comes with numba
# Heavy libraries, and the only places that may import them, wherever in the file the import stands.
CONFINED = {
    "torch": ("agents.learned", "agents.cli"),
    "stable_baselines3": ("dnfh_env.sb3", "agents.learned", "agents.cli"),
    "sb3_contrib": ("dnfh_env.sb3", "agents.learned", "agents.cli"),
}
NOT_AT_IMPORT = (*CONFINED, "matplotlib", "rich", "tqdm", "tyro", "tensorboard", "safetensors", "agents")


def inside(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


def module_name(path: Path, root: Path) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def is_module(name: str, root: Path) -> bool:
    path = root.joinpath(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


def imports(path: Path, root: Path) -> Iterator[tuple[int, str]]:
    """Each imported module with its line, ``from package import module`` and relative imports resolved."""
    here = module_name(path, root).split(".")
    package = here if path.name == "__init__.py" else here[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *filter(None, [node.module])])
            for alias in node.names:
                full = f"{base}.{alias.name}"
                yield node.lineno, full if base.split(".")[0] in LAYERS and is_module(full, root) else base


def place(module: str) -> tuple[int, int] | None:
    """Layer and group of a module's place under its package; None for a module that `LAYERS` does not know."""
    package, _, rest = module.partition(".")
    for level, line in enumerate(LAYERS[package]):
        for group, members in enumerate(line):
            if rest.split(".")[0] in ((members,) if isinstance(members, str) else members):
                return level, group
    return None


def wrong_arrow(module: str, target: str) -> str | None:
    """Why ``module`` may not import ``target``, both within one of our packages."""
    package = module.split(".")[0]
    if target.split(".")[0] != package:
        return "dnfh_env never imports agents" if package == "dnfh_env" else None
    if module.split(".")[:2] == target.split(".")[:2]:
        return None
    if module == package:
        return "the package's own import must stay light" if target == "dnfh_env.sb3" else None
    if target == package:
        return "a module inside must not import its own package's front door"
    mine, theirs = place(module), place(target)
    if mine is None or theirs is None:
        return None  # reported by name elsewhere
    return None if theirs[0] < mine[0] or theirs == mine else "the arrow points up or sideways"


def wrong_library(module: str, target: str) -> str | None:
    """Why ``module`` may not import the library ``target``."""
    library = target.split(".")[0]
    if library in CONFINED:
        allowed = CONFINED[library]
        if not any(inside(module, place) for place in allowed):
            return f"{library} is for {', '.join(allowed)} alone"
    elif inside(module, "dnfh_env") and library not in sys.stdlib_module_names | CORE_LIBRARIES:
        return f"{library} is no dependency of the core"
    return None


def sources(root: Path) -> Iterator[Path]:
    for package in LAYERS:
        yield from sorted((root / package).rglob("*.py"))
    yield from (path for path in (root / "train.py", root / "evaluate.py") if path.exists())


def broken_arrows(root: Path) -> list[str]:
    """Every import under ``root`` that the design forbids, and every module that it does not know."""
    found = []
    for path in sources(root):
        module = module_name(path, root)
        if "." in module and place(module) is None:
            found.append(f"{module}: not in LAYERS; give it a place")
        for line, target in dict.fromkeys(imports(path, root)):
            ours = target.split(".")[0] in LAYERS
            judge = wrong_arrow if ours and module.split(".")[0] in LAYERS else wrong_library
            why = None if ours and judge is wrong_library else judge(module, target)
            if why:
                found.append(f"{path.relative_to(root)}:{line}: {module} imports {target}: {why}")
    return found


def oracle_imports(root: Path) -> list[str]:
    """What the oracle imports beyond the standard library: it shares no code with what it checks."""
    path = root / "tests" / "oracle.py"
    if not path.exists():
        return []
    return [target for _, target in imports(path, root) if target.split(".")[0] not in sys.stdlib_module_names]


def test_arrows_hold() -> None:
    assert broken_arrows(ROOT) == []


def test_oracle_stands_alone() -> None:
    assert oracle_imports(ROOT) == []


PLANTED = [
    ("dnfh_env/cards.py", "from dnfh_env.engine import legal", "points up or sideways"),
    ("dnfh_env/cards.py", "from dnfh_env import engine", "imports dnfh_env.engine"),
    ("dnfh_env/cards.py", "from . import engine", "imports dnfh_env.engine"),
    ("dnfh_env/cards.py", "from .engine import legal", "imports dnfh_env.engine"),
    ("dnfh_env/cards.py", "def f():\n    import dnfh_env.engine", "cards.py:2"),
    ("dnfh_env/observation.py", "from dnfh_env.equity import table", "points up or sideways"),
    ("dnfh_env/render/text.py", "from dnfh_env.seat_env import Seat", "points up or sideways"),
    ("dnfh_env/render/text.py", "from ..seat_env import Seat", "points up or sideways"),
    ("dnfh_env/game.py", "from dnfh_env import __version__", "front door"),
    ("dnfh_env/agent.py", "def f():\n    from agents.greedy import Greedy", "never imports agents"),
    ("dnfh_env/__init__.py", "from dnfh_env import sb3", "stay light"),
    ("dnfh_env/batch.py", "import torch", "torch is for"),
    ("dnfh_env/batch.py", "import scipy.stats", "no dependency of the core"),
    ("dnfh_env/gadget.py", "", "give it a place"),
    ("agents/heuristic.py", "import torch.nn", "torch is for"),
    ("agents/search/pimc.py", "from agents.arena import play", "points up or sideways"),
    ("agents/arena.py", "def f():\n    import stable_baselines3", "stable_baselines3 is for"),
    ("train.py", "import torch", "torch is for"),
]
ALLOWED = [
    ("dnfh_env/engine.py", "import numpy as np\nfrom dnfh_env.cards import DECK\nfrom . import rules"),
    ("dnfh_env/game.py", "def f():\n    from dnfh_env import notation"),
    ("dnfh_env/render/svg.py", "from dnfh_env.render.text import card\nfrom .text import card"),
    ("dnfh_env/__init__.py", "from dnfh_env.game import Game\nfrom dnfh_env import dnfh_v0"),
    ("agents/learned/ppo.py", "import torch\nfrom dnfh_env.batch import Batch\nfrom agents.learned.net import Net"),
    ("train.py", "from agents.cli import train"),
]


def plant(root: Path, name: str, source: str) -> None:
    """A small tree with the modules that the planted imports name, and one planted file."""
    for other in ("__init__", "cards", "rules", "engine", "seat_env", "notation", "sb3", "dnfh_v0", "render/text"):
        path = root / "dnfh_env" / f"{other}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source)


@pytest.mark.parametrize(("name", "source", "complaint"), PLANTED)
def test_a_planted_import_is_caught(tmp_path: Path, name: str, source: str, complaint: str) -> None:
    plant(tmp_path, name, source)
    (found,) = broken_arrows(tmp_path)
    assert complaint in found


@pytest.mark.parametrize(("name", "source"), ALLOWED)
def test_an_allowed_import_passes(tmp_path: Path, name: str, source: str) -> None:
    plant(tmp_path, name, source)
    assert broken_arrows(tmp_path) == []


def test_an_oracle_that_leans_on_others_is_caught(tmp_path: Path) -> None:
    plant(tmp_path, "tests/oracle.py", "import random\nimport numpy\nfrom dnfh_env.cards import DECK")
    assert oracle_imports(tmp_path) == ["numpy", "dnfh_env.cards"]


def loaded_by(statements: str) -> set[str]:
    """Which of the modules that must wait are loaded once a fresh interpreter has run ``statements``."""
    code = f"{statements}\nimport sys\nprint(*(name for name in {NOT_AT_IMPORT!r} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_importing_the_core_loads_nothing_heavy() -> None:
    names = [module_name(path, ROOT) for path in sorted((ROOT / "dnfh_env").rglob("*.py"))]
    core = [name for name in names if not inside(name, "dnfh_env.sb3") and not name.endswith("__main__")]
    assert loaded_by("\n".join(f"import {name}" for name in core)) == set()


def test_a_heavy_import_is_seen() -> None:
    assert loaded_by("import dnfh_env, tqdm") == {"tqdm"}
