"""A report as one HTML file that needs no network: sortable tables, charts as SVG, light and dark, for phones as well.

All of it is made here, so that it can be read without scripts; the script in ``page.html`` does nothing but sort. The
page's own policy lets it load nothing and run that script alone. Names are escaped wherever they stand.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, NamedTuple

from agents.behaviour import Rate, rates
from agents.ratings import ANCHOR, ANCHOR_RATING
from agents.report.charts import race_lines, whiskers
from agents.report.figures import (
    NONE,
    RATING,
    Figure,
    asked,
    escaped,
    fair,
    figure_about,
    figure_of,
    headline,
    one_line,
    opponents,
    opponents_differ,
    pairs,
    shortened,
    shown_figures,
    times,
)
from agents.results import AgentCard, Behaviour, Difference, Fault, HeadToHead, Pace, Race, Rating, Result
from agents.stats import Interval
from dnfh_env.errors import NotationError, shown
from dnfh_env.notation import action_to_string

if TYPE_CHECKING:
    from agents.report.document import Report

TEMPLATE = Path(__file__).with_name("page.html")
MOST_FAULTS = 50
"""How many are shown; all are in the data."""
NAME = 48
"""Characters of a name, longer ones are cut; setup and agents have them whole."""
SHADES = 4
"""Of a heat map, to either side of par."""


class Cell(NamedTuple):
    """One cell of a table that can be sorted."""

    html: str
    key: float | str | None
    """A number or a text that rows are sorted by; None where there is nothing, which comes last."""


def write_page(report: Report, path: str | Path) -> None:
    """Write the page of a report into one file, in UTF-8."""
    Path(path).write_text(page_of(report), encoding="utf-8")


def page_of(report: Report) -> str:
    """The page of a report, a whole HTML document."""
    template = TEMPLATE.read_text(encoding="utf-8")
    sections = [(name, title, html) for name, title, html in _sections(report) if html]
    links = "".join(f'<a href="#{name}">{title}</a>' for name, title, _ in sections)
    bodies = [f'<section id="{name}">\n<h2>{title}</h2>\n{html}\n</section>' for name, title, html in sections]
    return Template(template).substitute(
        title=escaped(f"Evaluation: {headline(report.setup)}"),
        policy=_policy(template),
        body="\n".join([f"<header>\n{_header(report)}</header>", f"<nav>{links}</nav>", "<main>", *bodies, "</main>"]),
        data=json.dumps(report.to_dict(), allow_nan=False).replace("<", "\\u003c"),
    )


def _policy(template: str) -> str:
    """What the page may do: nothing from anywhere, its own style and its own script by their digests."""
    digests = {}
    for tag in ("style", "script"):
        text = template.rpartition(f"<{tag}>")[2].partition(f"</{tag}>")[0]
        digests[tag] = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'sha256-{digests['style']}'; script-src 'sha256-{digests['script']}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _sections(report: Report) -> Iterator[tuple[str, str, str]]:
    """Id, title and HTML, which is empty where there is nothing to show."""
    shares = fair(report.setup.rules)
    yield "results", "Results", _results(report.results, shares)
    yield "differences", "Differences", _differences(report.differences)
    yield "head-to-head", "Head to head", "" if report.head_to_head is None else _head_to_head(report.head_to_head)
    yield "ratings", "Ratings", _ratings(report.ratings)
    yield "race", "Race", "".join(_race(race, shares.get(race.figure)) for race in report.races if race.blocks)
    yield "behaviour", "Behaviour", _behaviour(report.behaviour)
    yield "pace", "Pace", _paces(report.paces)
    yield "faults", "Faults", _faults(report.faults)
    yield "setup", "Setup", _setup(report)
    yield "agents", "Agents", _agents(report.agents)


def _header(report: Report) -> str:
    """Who, against whom, how much of it, and what to beware of."""
    who = ", ".join(dict.fromkeys(_short(name) for name in report.setup.contestants))
    lines = [
        f"<h1>Evaluation: {escaped(headline(report.setup))}</h1>",
        f"<p>{who}</p>",
        f'<p class="soft">Seed {report.setup.seed}; {asked(report.setup)}. Blocks are played in all seatings on the '
        "same cards and are the independent observations; intervals hold the true mean in 95 of 100 experiments.</p>",
    ]
    if not report.complete:
        lines.append('<p class="warn">Broken off: some of it is missing.</p>')
    if report.faults:
        names = ", ".join(dict.fromkeys(_short(fault.name) for fault in report.faults))
        lines.append(
            f'<p class="warn"><a href="#faults">{len(report.faults)} faults</a> of {names}: what was played at random '
            "after a fault is in the figures.</p>"
        )
    return "\n".join(lines) + "\n"


# --- sections ---------------------------------------------------------------------------------------------------


def _results(results: Sequence[Result], shares: Mapping[str, float]) -> str:
    figures = shown_figures(results)
    differ = opponents_differ(results)
    lucky = any(result.luck_factor is not None for result in results)
    rows = []
    for result in results:
        cells = [_text(result.contestant), *[_text(opponents(result))] * differ]
        cells += [_interval(figure, getattr(result, figure.name)) for figure in figures]
        rows.append([*cells, *[_number(times(result.luck_factor), result.luck_factor)] * lucky])
    titles = ["contestant", *["against"] * differ, *(figure.title for figure in figures), *["variance cut"] * lucky]
    meanings = [f"<dt>{figure.title}</dt><dd>{_meaning(figure, shares)}</dd>" for figure in figures]
    if lucky:
        meanings.append("<dt>variance cut</dt><dd>by what taking luck out divides a block's variance</dd>")
    panels = [_panel(figure, results, differ, shares.get(figure.name)) for figure in figures]
    return "\n".join([
        _table(titles, rows, "results"),
        f'<dl class="soft">{"".join(meanings)}</dl>',
        f'<div class="panels">{"".join(panels)}</div>',
        '<p class="soft">Dots are means, lines their 95 % intervals, the dashed line is par.</p>',
    ])  # fmt: skip


def _meaning(figure: Figure, shares: Mapping[str, float]) -> str:
    par = shares.get(figure.name)
    return figure.meaning + ("" if par is None else f"; par is {figure.short(par)}")


def _panel(figure: Figure, results: Sequence[Result], differ: bool, par: float | None) -> str:
    """One figure of all results that have it."""
    rows = []
    for result in results:
        interval = getattr(result, figure.name)
        if interval is not None:
            rows.append((result.contestant + (f" against {opponents(result)}" if differ else ""), interval))
    return f"<div><h3>{figure.title}</h3>{whiskers(figure, rows, par)}</div>"


def _differences(differences: Sequence[Difference]) -> str:
    if not differences:
        return ""
    rows = []
    for difference in differences:
        figure = figure_of(difference.figure, signed=True)
        running = Cell(figure.bounds(difference.running), difference.running.mean)
        factor = _number(times(difference.pairing_factor), difference.pairing_factor)
        names = [_text(difference.first), _text(difference.second), _text(figure.title)]
        rows.append([*names, _interval(figure, difference.value), running, factor])
    titles = ["first", "second", "figure", "first minus second", "running interval", "pairing"]
    return _table(titles, rows, "differences") + _caption(
        "Paired over blocks of the same cards; 0 is no difference. The running interval holds at every moment of the "
        "run at once, so that one may look and stop; it is wider for that. Pairing: how many times the variance would "
        "be if each had been dealt cards of its own."
    )


def _head_to_head(square: HeadToHead) -> str:
    """The square as a table: colour repeats what the numbers say."""
    figure = figure_about(square.par)
    gaps = [abs(cell.mean - square.par) for line in square.cells for cell in line if cell is not None]
    reach = max(gaps, default=0.0)
    heads = "".join(f'<th scope="col">{_short(name, 24)}</th>' for name in square.names)
    lines = []
    for name, line in zip(square.names, square.cells, strict=True):
        cells = "".join(_heat(figure, cell, square.par, reach) for cell in line)
        lines.append(f'<tr><th scope="row" class="text">{_short(name)}</th>{cells}</tr>')
    return (
        f"<h3>{escaped(square.title)}</h3>"
        + _scroll(
            f'<table class="heat"><thead><tr><td></td>{heads}</tr></thead><tbody>{"".join(lines)}</tbody></table>',
            "head to head",
        )
        + _caption(
            f"The row against the column, with 95 % intervals; {figure.short(square.par)} is par. Blue is better for "
            "the row, orange worse, deeper is further from par."
        )
    )


def _heat(figure: Figure, cell: Interval | None, par: float, reach: float) -> str:
    if cell is None:
        return f"<td>{NONE}</td>"
    gap = cell.mean - par
    shade = math.ceil(SHADES * abs(gap) / reach) if reach else 0
    colour = f' class="{"u" if gap > 0 else "d"}{shade}"' if shade else ""
    return f"<td{colour}>{figure.number(cell.mean)}<small>{figure.bounds(cell)}</small></td>"


def _ratings(ratings: Sequence[Rating]) -> str:
    if not ratings:
        return ""
    ordered = sorted(ratings, key=lambda rating: -rating.value.mean)
    return whiskers(RATING, [(rating.name, rating.value) for rating in ordered], None) + _caption(
        "On the scale of Elo, with 95 % intervals: 400 points are odds of ten to one to finish ahead. "
        f"{ANCHOR} is put at {ANCHOR_RATING:.0f} if it is in the field, or else the field's mean is. Only differences "
        "within one field mean something."
    )


def _race(race: Race, par: float | None) -> str:
    """One figure of all names as it went."""
    figure = figure_of(race.figure)
    last = ", ".join(
        f"{one_line(name)} {figure.number(row[-1])}" for name, row in zip(race.names, race.means, strict=True)
    )
    title = escaped(figure.title)
    return (
        f"<figure><h3>{title}</h3>{race_lines(race, figure, par, escape(f'{figure.title} at the end: {last}'))}"
        + _caption(
            f"{title} as blocks came in, from {race.blocks[0]} to {race.blocks[-1]}. Bands are running intervals: they "
            "hold at every moment of the run at once, so that one may look and stop."
            + ("" if par is None else f" The dashed line is par, {figure.short(par)}.")
        )
        + "</figure>"
    )


def _behaviour(players: Sequence[Behaviour]) -> str:
    """Group by group, a row for each rate and a column for each player."""
    groups: dict[str, dict[str, dict[int, Rate]]] = {}
    for index, player in enumerate(players):
        for group in rates(player.counts):
            for rate in group.rates:
                groups.setdefault(group.title, {}).setdefault(rate.label, {})[index] = rate
    names = [player.name for player in players]
    tables = [_bars(title, lines, names) for title, lines in groups.items()]
    if not tables:
        return ""
    return "\n".join(tables) + _caption(
        "Over the deals of a player's seats. A bar is full at 100 %; bars of points are full at the largest of their "
        "group, orange below 0. Below each number: how often, out of how many. A dash stands for what never came up, "
        "and for cards that are not among those that a player passes most."
    )


def _bars(title: str, lines: dict[str, dict[int, Rate]], names: Sequence[str]) -> str:
    """One group of rates as a table with bars in it."""
    values = [rate.value for line in lines.values() for rate in line.values() if rate.show == "points"]
    full = max((abs(value) for value in values if value is not None), default=1.0) or 1.0
    heads = "".join(f'<th scope="col">{_short(name, 24)}</th>' for name in names)
    rows = []
    for label, line in lines.items():
        cells = "".join(_bar(line.get(index), full) for index in range(len(names)))
        rows.append(f'<tr><th scope="row" class="text">{escaped(label)}</th>{cells}</tr>')
    table = f'<table class="bars"><thead><tr><td></td>{heads}</tr></thead><tbody>{"".join(rows)}</tbody></table>'
    return f"<h3>{escaped(title)}</h3>{_scroll(table, title)}"


def _bar(rate: Rate | None, full: float) -> str:
    """A number, how it came about, and its bar."""
    if rate is None or rate.value is None:
        return f"<td>{NONE}</td>"
    share = rate.show == "percent"
    number = f"{100 * rate.value:.1f} %" if share else f"{rate.value:.2f}"
    width = 100 * (rate.value if share else abs(rate.value) / full)
    colour = "part" if rate.value >= 0 else "part minus"
    counted = f"{rate.count} of {rate.of}" if share else f"{rate.of} deals"
    return (
        f'<td>{number}<svg class="bar" aria-hidden="true"><rect class="all" width="100%" height="100%"/>'
        f'<rect class="{colour}" width="{width:.1f}%" height="100%"/></svg><small>{counted}</small></td>'
    )


def _paces(paces: Sequence[Pace]) -> str:
    if not paces:
        return ""
    rows = [
        [
            _text(pace.name),
            _number(f"{pace.decisions:,}", pace.decisions),
            _number(f"{pace.mean:.3g}", pace.mean),
            _number(f"{pace.p99:.3g}", pace.p99),
        ]
        for pace in paces
    ]
    return _table(["name", "decisions", "mean, ms", "99th percentile, ms"], rows, "pace") + _caption(
        "Time of a decision: that of a call, shared by the views it was asked about. It depends on the machine and on "
        "what else that does."
    )


def _faults(faults: Sequence[Fault]) -> str:
    """Each with its position, the first one open."""
    if not faults:
        return ""
    shown_ones = [_fault(fault, " open" if index == 0 else "") for index, fault in enumerate(faults[:MOST_FAULTS])]
    more = len(faults) - len(shown_ones)
    return (
        "<p>Who erred played at random for the rest of the block, and its figures say so.</p>"
        + "\n".join(shown_ones)
        + (f"<p>And {more} more in report.json.</p>" if more else "")
    )


def _fault(fault: Fault, opened: str) -> str:
    view = escape("\n".join(map(one_line, fault.view.splitlines())))
    action = "It raised an error." if fault.action is None else f"It chose {escaped(_action(fault.action))}."
    return (
        f"<details{opened}><summary><strong>{escaped(fault.name)}</strong>, {escaped(fault.unit)} {fault.block}: "
        f"{escaped(fault.message)}</summary><p>{action} It saw:</p>"
        f'<pre tabindex="0">{view}</pre></details>'
    )


def _action(action: int) -> str:
    """Its number and its name, if it has one."""
    try:
        return f"{action} ({action_to_string(action)})"
    except NotationError:
        return shown(action)


def _setup(report: Report) -> str:
    """All that the figures depend on, and how to get them again."""
    setup = report.setup
    facts = {
        "contestants": ", ".join(map(escaped, setup.contestants)),
        "format": escaped(f"{setup.format}, {headline(setup)}"),
        "played": asked(setup),
        "seed": f"<code>{setup.seed}</code>",
        "rules": f"<code>{escaped(repr(setup.rules))}</code>",
        "rules digest": f"<code>{setup.rules.digest()}</code>",
        "versions": escaped(", ".join(f"{name} {version}" for name, version in report.versions.items())),
    }
    if report.seconds is not None:
        facts["time"] = f"{report.seconds:.1f} s"
    lines = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in facts.items())
    return (
        f"<dl>{lines}</dl><p>The same figures again, from the report.json beside this page:</p>"
        '<pre tabindex="0">python evaluate.py --rerun report.json</pre>'
    )


def _agents(cards: Sequence[AgentCard]) -> str:
    if not cards:
        return ""
    rows = [
        [
            Cell(escaped(card.name), one_line(card.name)),
            Cell(escape(pairs(card.parameters)) or NONE, pairs(card.parameters)),
            Cell(f"<code>{escaped(card.weights)}</code>" if card.weights else NONE, card.weights or ""),
        ]
        for card in cards
    ]
    return _table(["name", "parameters", "weights, SHA-256"], rows, "agents")


# --- pieces -----------------------------------------------------------------------------------------------------


def _short(text: str, length: int = NAME) -> str:
    """A name cut to length, whole for the pointer."""
    return f'<span title="{escaped(text)}">{escape(shortened(text, length))}</span>'


def _text(text: str) -> Cell:
    return Cell(_short(text), one_line(text))


def _number(html: str, value: float | None) -> Cell:
    return Cell(html, None if value is None or not math.isfinite(value) else float(value))


def _interval(figure: Figure, interval: Interval | None) -> Cell:
    if interval is None:
        return Cell(NONE, None)
    return Cell(f"{figure.number(interval.mean)} <small>{figure.bounds(interval)}</small>", interval.mean)


def _caption(text: str) -> str:
    return f'<p class="soft">{text}</p>'


def _scroll(html: str, label: str) -> str:
    """A box that a wide table scrolls in, by keyboard as well."""
    return f'<div class="scroll" tabindex="0" role="region" aria-label="{escaped(label)}">{html}</div>'


def _table(titles: Sequence[str], rows: Sequence[Sequence[Cell]], label: str) -> str:
    """A table that is sorted by its heads; the first cell of a row names it."""
    of_text = [all(isinstance(row[column].key, str) for row in rows) for column in range(len(titles))]
    kinds = [' class="text"' if text else "" for text in of_text]
    heads = "".join(
        f'<th scope="col" aria-sort="none"{kind}><button type="button">{escaped(title)}</button></th>'
        for title, kind in zip(titles, kinds, strict=True)
    )
    lines = []
    for first, *others in rows:
        cells = "".join(f"<td{kind}{_key(cell)}>{cell.html}</td>" for cell, kind in zip(others, kinds[1:], strict=True))
        lines.append(f'<tr><th scope="row"{kinds[0]}>{first.html}</th>{cells}</tr>')
    return _scroll(f"<table><thead><tr>{heads}</tr></thead><tbody>{''.join(lines)}</tbody></table>", label)


def _key(cell: Cell) -> str:
    """What the script sorts by, where that is not the text."""
    return "" if isinstance(cell.key, str) else f' data-sort="{"" if cell.key is None else repr(cell.key)}"'
