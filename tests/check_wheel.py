"""Build the wheel, install it alone in a fresh environment in another folder, and use it there (``make wheel-test``).

What this catches and the other tests cannot: a file that is missing from the wheel, a file that should not be in it,
a core that needs an extra, and code that works only beside its repository. Standard library only.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("dnfh_env", "agents")
DATA = (".json", ".safetensors", ".html")
LEFT_BEHIND = shutil.ignore_patterns(
    ".*", "*.egg-info", "__pycache__", "build", "dist", "runs", "results", "node_modules"
)
EXTRA_HINT = re.compile(r"dnfh\[\w+\]")

# Runs in the fresh environment. Each module of the core has to import there, where no extra is installed.
INSPECT = """
import importlib, importlib.metadata, importlib.util, pathlib, pkgutil, sys
prefix = pathlib.Path(sys.prefix).resolve()
for name in ("torch", "stable_baselines3", "matplotlib", "rich", "tests", "oracle"):
    assert importlib.util.find_spec(name) is None, f"{name} came along with the core"
for name in ("dnfh_env", "agents"):
    package = importlib.import_module(name)
    home = pathlib.Path(package.__file__).resolve()
    assert prefix in home.parents, f"{name} is {home}, not the installed one"
    files = [str(f) for f in importlib.metadata.files("dnfh")]
    assert f"{name}/__init__.py" in files, f"{name} belongs to another distribution"
    for module in pkgutil.walk_packages(package.__path__, name + ".", onerror=lambda failed: None):
        if not module.name.startswith(("dnfh_env.sb3", "agents.learned", "agents.cli")):
            importlib.import_module(module.name)
print("inspect: every core module imports from", prefix)
"""


def run(*command: str | Path, cwd: Path, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run a command without this process's Python settings; its output is shown when it fails."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "NUMBA_", "VIRTUAL_"))}
    done = subprocess.run([str(part) for part in command], cwd=cwd, env=env, capture_output=True, text=True)
    if check and done.returncode:
        raise SystemExit(f"check_wheel: {' '.join(map(str, command[:6]))}\n{done.stdout}{done.stderr}")
    return done


def build(work: Path) -> Path:
    """The wheel, built from a copy of the tree, so that no old build folder gets a say."""
    source = work / "source"
    shutil.copytree(ROOT, source, ignore=LEFT_BEHIND)
    run(sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", work / "dist", source, cwd=work)
    (wheel,) = (work / "dist").glob("dnfh-*.whl")
    shutil.rmtree(source)
    return wheel


def expected_files(root: Path = ROOT) -> set[str]:
    """The modules, types marker and data of both packages: what a wheel has to hold."""
    kinds = (".py", *DATA)
    found = {
        path.relative_to(root).as_posix()
        for package in PACKAGES
        for path in (root / package).rglob("*")
        if path.suffix in kinds and not any(part.startswith(".") for part in path.relative_to(root).parts)
    }
    return found | {f"{package}/py.typed" for package in PACKAGES}


def differences(names: Iterable[str], expected: set[str]) -> list[str]:
    """What is missing from a wheel with these file names, and what is too much."""
    held = {name for name in names if ".dist-info/" not in name}
    missing = [f"missing from the wheel: {name}" for name in sorted(expected - held)]
    return missing + [f"does not belong in the wheel: {name}" for name in sorted(held - expected)]


def install(wheel: Path, work: Path) -> Path:
    """A fresh environment with the wheel and its core dependencies; returns its folder of programs."""
    venv.create(work / "venv", with_pip=True)
    programs = work / "venv" / ("Scripts" if os.name == "nt" else "bin")
    run(programs / "python", "-m", "pip", "install", "--quiet", "-c", ROOT / "constraints.txt", wheel, cwd=work)
    return programs


def use(programs: Path, work: Path) -> None:
    """Import everything, play, and ask the command line for help, all from a folder that is not the repository."""
    elsewhere = work / "elsewhere"
    elsewhere.mkdir()
    shutil.copy(ROOT / "tests" / "smoke.py", elsewhere)
    # -I: neither the current folder nor the script's own is searched, so only what was installed can be found.
    print(run(programs / "python", "-I", "-c", INSPECT, cwd=elsewhere).stdout, end="")
    print(run(programs / "python", "-I", "smoke.py", cwd=elsewhere).stdout, end="")
    told = run(programs / "dnfh", "--help", cwd=elsewhere, check=False)
    output = told.stdout + told.stderr
    if "Traceback" in output or (told.returncode and not EXTRA_HINT.search(output)):
        raise SystemExit(f"check_wheel: `dnfh --help` neither helps nor names the extra to install\n{output}")
    print(f"dnfh --help: exit {told.returncode}")


def main() -> int:
    """Build, compare, install, use."""
    with tempfile.TemporaryDirectory(prefix="dnfh-wheel-") as folder:
        work = Path(folder).resolve()
        wheel = build(work)
        with zipfile.ZipFile(wheel) as archive:
            wrong = differences(archive.namelist(), expected_files())
        if wrong:
            raise SystemExit("check_wheel: " + "\n  ".join([wheel.name, *wrong]))
        use(install(wheel, work), work)
    print(f"check_wheel: {wheel.name} is whole and works on its own")
    return 0


if __name__ == "__main__":
    sys.exit(main())
