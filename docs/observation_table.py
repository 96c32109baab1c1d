"""Write the tables of observation fields into docs/environment.md from the layouts themselves.

``python docs/observation_table.py`` rewrites the part between the markers; ``--check`` only says whether it is true.
"""

from __future__ import annotations

import sys
from pathlib import Path

from dnfh_env.observation import COMPACT, FULL, STATE, Layout

PAGE = Path(__file__).with_name("environment.md")
BEGIN, END = "<!-- layouts: begin -->", "<!-- layouts: end -->"


def rows(layout: Layout, first: int) -> list[str]:
    """Markdown rows of the fields from bit ``first`` on."""
    lines, index = [], 0
    for field in layout.fields:
        if index >= first:
            lines.append(f"| {index}–{index + field.bits - 1} | {field.name} | {field.meaning} |")
        index += field.bits
    return lines


def tables() -> str:
    """The three tables; each later layout continues the one before."""
    parts = []
    for layout, before in ((COMPACT, None), (FULL, COMPACT), (STATE, FULL)):
        first = before.bits if before else 0
        head = f"**`{layout.name}`**, version {layout.version}, digest `{layout.digest()}`: {layout.bits} features"
        more = f"; the first {first} are those of `{before.name}`" if before else ""
        parts.append(
            "\n".join([head + more + ".", "", "| features | field | meaning |", "|---|---|---|", *rows(layout, first)])
        )
    return "\n\n".join(parts)


def page() -> str:
    """The page as it should be."""
    head, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    return f"{head}{BEGIN}\n{tables()}\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(0 if page() == PAGE.read_text(encoding="utf-8") else f"{PAGE}: run {Path(__file__).name}")
    PAGE.write_text(page(), encoding="utf-8")
