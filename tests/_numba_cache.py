"""Where numba keeps compiled kernels: a folder named by a digest of everything that is compiled into them.

With ``cache=True`` numba looks at the age of a kernel's own file and nothing else, so an edit in a helper that was
inlined from another file goes unnoticed, and so does a change of its own settings. Here both change the folder.
``tests/conftest.py`` imports this file and the Makefile runs it, so there is one rule. It must not import numba.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ("dnfh_env", "agents")
SETTINGS = ("NUMBA_BOUNDSCHECK", "NUMBA_DEBUGINFO", "NUMBA_OPT")
"""Variables that change the machine code and that numba's own key leaves out."""


def cache_dir(root: Path = ROOT) -> Path:
    """The absolute cache folder for the sources under ``root`` and the settings of this process."""
    digest = hashlib.sha256()
    for setting in SETTINGS:
        digest.update(f"{setting}={os.environ.get(setting, '')}\0".encode())
    for folder in SOURCES:
        for path in sorted((root / folder).rglob("*.py")):
            digest.update(f"{path.relative_to(root).as_posix()}\0".encode())
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return root / ".numba_cache" / digest.hexdigest()[:16]


if __name__ == "__main__":
    print(cache_dir())
