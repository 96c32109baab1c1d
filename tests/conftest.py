"""Set-up that has to happen before numba or the packages under test are imported."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [path for path in (str(ROOT), str(ROOT / "tests")) if path not in sys.path]

from _numba_cache import cache_dir  # noqa: E402

NUMBA_CACHE_DIR = str(cache_dir())
if "numba" in sys.modules and sys.modules["numba"].config.CACHE_DIR != NUMBA_CACHE_DIR:
    raise RuntimeError("numba was imported before tests/conftest.py could name its cache, which may hold old kernels")
os.environ["NUMBA_CACHE_DIR"] = NUMBA_CACHE_DIR

# Interpreters that a test starts (fresh imports, spawned workers, notebook kernels) find the same packages and cache.
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))

# Ignored where a shell started the tests in the background, and then ignored by every process that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)

# The gate runs the same examples each time; `pytest --hypothesis-profile explore` looks for new ones. Deadlines are
# off, since the first example of a test may compile a kernel.
_SLOW_START = [hypothesis.HealthCheck.too_slow]
hypothesis.settings.register_profile("gate", deadline=None, derandomize=True, suppress_health_check=_SLOW_START)
hypothesis.settings.register_profile("explore", deadline=None, max_examples=1000, suppress_health_check=_SLOW_START)
hypothesis.settings.load_profile("gate")


@pytest.fixture
def uncollected() -> Iterator[None]:
    """No garbage is collected: Hypothesis times that in a callback, where what a signal's handler raises is lost."""
    gc.disable()
    yield
    gc.enable()
