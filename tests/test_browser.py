"""The page of a report in a browser: headless Chromium, on a phone and a desk, in light and dark.

Opt-in (``make test-browser``), since it needs a ``chromium`` on the path. Set ``DNFH_SCREENSHOTS`` to a folder to keep
the pictures and look at them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from html import escape, unescape
from pathlib import Path

import pytest
from matplotlib.image import imread

from agents.report import Report, page_of
from reports import everything, minimal

pytestmark = pytest.mark.browser

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or "chromium"
REPORTS = pytest.mark.parametrize("make", [everything, minimal])
WIDTHS = pytest.mark.parametrize("width", [390, 1280])
THEMES = pytest.mark.parametrize(("theme", "paper"), [("dark", (20, 23, 27)), ("light", (255, 255, 255))])

WATCH = """<script>
const found = document.documentElement.dataset;
addEventListener("error", event => { found.errors = (found.errors || "") + event.message; });
</script>"""
PROBE = """<script>
const rgba = text => { const [r, g, b, a = 1] = text.match(/[\\d.]+/g).map(Number); return [r, g, b, a]; };
const over = ([r, g, b, a], under) => [r, g, b].map((part, i) => a * part + (1 - a) * under[i]);
const light = colour => {
  const [r, g, b] = colour.map(part => part / 255).map(x => x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
};
const paper = rgba(getComputedStyle(document.body).backgroundColor).slice(0, 3);
const ground = node => {
  const path = [];
  for (let up = node; up && up !== document.body; up = up.parentElement) path.unshift(up);
  return path.reduce((under, up) => over(rgba(getComputedStyle(up).backgroundColor), under), paper);
};
const contrast = node => {
  const style = getComputedStyle(node), drawn = node instanceof SVGElement ? style.fill : style.color;
  const [a, b] = [light(rgba(drawn).slice(0, 3)), light(ground(node))];
  return Math.max(a, b) / Math.min(a, b);
};
const texts = [...document.querySelectorAll("td, th, small, p, dt, dd, a, span, summary, pre, svg text")];
found.contrast = Math.min(...texts.filter(node => node.textContent.trim()).map(contrast)).toFixed(2);
found.size = Math.min(...texts.map(node => parseFloat(getComputedStyle(node).fontSize)));
found.paper = paper.join();
found.inner = innerWidth;
found.wide = document.documentElement.scrollWidth;
const table = document.querySelector("#results table");
const names = () => [...table.tBodies[0].rows].map(row => row.cells[0].textContent.slice(0, 6)).join();
const buttons = [...table.querySelectorAll("button")];
const press = button => { button.focus(); button.click(); return button.closest("th").ariaSort + " " + names(); };
found.sorts = [press(buttons[1]), press(buttons[1]), press(buttons[0]), press(buttons.at(-2))].join(";");
found.focus = document.activeElement === buttons.at(-2);
</script>"""


# A window is never narrower than 500 pixels, a frame is.
FRAME = """<!doctype html><meta name="color-scheme" content="light dark">
<iframe width="{width}" height="900" frameborder="0" srcdoc="{page}"></iframe><script>
addEventListener("load", () => {{
  const framed = document.querySelector("iframe").contentDocument.documentElement;
  Object.assign(document.documentElement.dataset, framed.dataset);
}});
</script>"""


def chromium(page: Path, width: int, theme: str, *options: str) -> str:
    """Open a page; what Chromium prints."""
    settings = f"preferredColorScheme={('dark', 'light').index(theme)}"
    command = [
        CHROMIUM,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        f"--window-size={width},900",
    ]
    command += [f"--user-data-dir={page.parent / 'profile'}", f"--blink-settings={settings}", *options, page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def found_by(page: Path, width: int, theme: str) -> dict[str, str]:
    """The data attributes that the page's scripts have left at its root."""
    (root,) = re.findall(r"<html[^>]*>", chromium(page, width, theme, "--dump-dom"))
    return {name: unescape(value) for name, value in re.findall(r'data-(\w+)="([^"]*)"', root)}


def probed(report: Report, folder: Path, width: int) -> Path:
    """The page with the probe in it, and without the policy that would not let it run, in a frame so wide."""
    text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', WATCH, page_of(report))
    path = folder / "framed.html"
    page = escape(text.replace("</body>", PROBE + "</body>"))
    path.write_text(FRAME.format(width=width, page=page), encoding="utf-8")
    return path


@REPORTS
@WIDTHS
@THEMES
def test_it_is_readable(
    make: Callable[[], Report], width: int, theme: str, paper: tuple[int, ...], tmp_path: Path
) -> None:
    found = found_by(probed(make(), tmp_path, width), 1400, theme)
    assert found["ready"] == "yes"
    assert "errors" not in found
    assert int(found["inner"]) == width
    assert int(found["wide"]) <= width, "the page scrolls sideways"
    assert tuple(map(int, found["paper"].split(","))) == paper
    assert float(found["contrast"]) >= 4.5
    assert float(found["size"]) >= 12


def test_tables_are_sorted(tmp_path: Path) -> None:
    """Numbers from the largest down first, texts from A, and what there is not at the end."""
    found = found_by(probed(everything(), tmp_path, 1280), 1400, "light")
    down, up, texts, shares = found["sorts"].split(";")
    assert down == "descending ppo:/h,heuris,greedy,<scrip,two\\nl,random"
    assert up == "ascending random,two\\nl,<scrip,greedy,heuris,ppo:/h"
    assert texts == "ascending <scrip,greedy,heuris,ppo:/h,random,two\\nl"
    assert shares == "descending ppo:/h,heuris,greedy,<scrip,two\\nl,random"
    assert found["focus"] == "true"


@REPORTS
def test_the_policy_lets_its_own_script_run(make: Callable[[], Report], tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(page_of(make()), encoding="utf-8")
    assert found_by(path, 1280, "light") == {"ready": "yes"}


@WIDTHS
@THEMES
def test_it_is_drawn(width: int, theme: str, paper: tuple[int, ...], tmp_path: Path) -> None:
    """In its colours, style and all: the policy is in force here."""
    path = tmp_path / "page.html"
    path.write_text(page_of(everything()), encoding="utf-8")
    picture = Path(os.environ.get("DNFH_SCREENSHOTS", tmp_path)).resolve() / f"report-{width}-{theme}.png"
    chromium(path, width, theme, f"--screenshot={picture}", f"--window-size={width},{9_000 if width > 500 else 15_000}")
    drawn = imread(picture)
    assert drawn.shape[1] == width
    assert (drawn[0, 0, :3] * 255).round().astype(int).tolist() == list(paper)
    assert (drawn != drawn[0, 0]).any(axis=2).mean() > 0.02
