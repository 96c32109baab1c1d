"""Files that are there as a whole or not at all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path


def put(path: Path, write: Callable[[Path], object]) -> None:
    """Let ``write`` make a file beside ``path``, and put it in its place when it is whole; folders are made if need be.

    If ``write`` raises, what was there stays, and nothing is left beside it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.new")
    try:
        write(new)
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """`put` of a text in UTF-8."""
    put(path, lambda new: new.write_text(text, encoding="utf-8"))
