"""Instructions a decision, counted by callgrind: ``make bench-instructions``. Needs valgrind, which nothing installs.

The count does not depend on what else the machine does, so a change of one in a hundred shows. One interpreter does all
the work; valgrind writes down its count each time the C function ``getppid`` is entered, which `main` calls between the
works. Callgrind knows no AVX-512, so the kernels are compiled for a plainer processor than the one that is there; they
are compiled and stored before, since that would take minutes under callgrind.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLAIN = {"NUMBA_CPU_NAME": "x86-64-v3", "NUMBA_CPU_FEATURES": ""}
"""What the kernels are compiled for; read when numba is imported."""
NAMES = ("fused random play", "step", "step, packed", "step, bytes", "step, packed, full", "heuristic against itself")


def work_through(size: int) -> None:
    """Each work twice, the first time to warm up, with marks around the second."""
    from ours import fused, stepped

    works = (
        fused(size),
        stepped(size, None),
        stepped(size, "packed"),
        stepped(size, "bytes"),
        stepped(size, "packed", "full"),
        fused(size, "heuristic"),
    )
    for name, work in zip(NAMES, works, strict=True):
        work()
        os.getppid()
        decisions = work()
        os.getppid()
        print(f"{name}: {decisions}", flush=True)


def counted(size: int) -> dict[str, float]:
    """Instructions a decision by name."""
    command = [sys.executable, __file__, "--inside", "--size", str(size)]
    environment = os.environ | PLAIN
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)  # compiles
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder) / "callgrind"
        valgrind = ["valgrind", "-q", "--tool=callgrind", "--dump-before=getppid", f"--callgrind-out-file={base}"]
        out = subprocess.run([*valgrind, *command], env=environment, check=True, stdout=subprocess.PIPE, text=True)
        counts = [total(path) for path in sorted(Path(folder).glob("callgrind.*"), key=dump_number)]
    decisions = dict(re.findall(r"(.+): (\d+)", out.stdout))
    between = counts[-2 * len(NAMES) :][1::2]  # whatever imports have called it before
    return {name: count / int(decisions[name]) for name, count in zip(NAMES, between, strict=True)}


def dump_number(path: Path) -> int:
    return int(path.suffix[1:])


def total(path: Path) -> int:
    """Instructions in one of callgrind's files."""
    found = re.search(r"^summary: (\d+)", path.read_text(errors="replace"), re.MULTILINE)
    if found is None:
        raise ValueError(f"{path}: no line 'summary: N', which callgrind writes")
    return int(found[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=256, help="games in the batch")
    parser.add_argument("--inside", action="store_true", help="do the work: what runs under callgrind")
    options = parser.parse_args()
    if options.inside:
        work_through(options.size)
    elif shutil.which("valgrind") is None:
        sys.exit("valgrind is not installed: it counts the instructions")
    else:
        for name, count in counted(options.size).items():
            print(f"{name:32}{count:10,.1f} instructions a decision")


if __name__ == "__main__":
    main()
