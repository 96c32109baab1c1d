"""Strength figures and what is asked of them: ``make strength``; `docs/results.md` has them.

Every figure is one ``evaluate.py`` command, printed first, on seeds that nothing was tuned on. A bound is met where the
95 % interval lies beyond it.

    python benchmarks/strength.py                # all, some forty minutes on two idle cores
    python benchmarks/strength.py fast calls     # some
    python benchmarks/strength.py --scale 0.1    # a tenth of the blocks
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from agents.cli import main as dnfh
from agents.report.document import Report
from agents.results import Result
from agents.stats import Interval

ROOT = Path(__file__).resolve().parent.parent
SEED = 61_000
"""Of the first match, the others take the next ones."""


@dataclass(frozen=True)
class Bound:
    """What a figure of a report is to be beyond; none is asked where ``least`` is None."""

    what: str
    figure: Callable[[Report], Interval]
    least: float | None = None


@dataclass(frozen=True)
class Match:
    """One command and what is read from its report."""

    players: str
    options: str
    deals: int
    games: int
    bounds: tuple[Bound, ...]
    slowest: float | None = None
    """Milliseconds a decision, at most, of the first player."""


def first(report: Report) -> Result:
    """The line of the first contestant."""
    return report.results[0]


def edge(least: float | None = None) -> Bound:
    return Bound("edge", lambda report: _given(first(report).edge), least)


def win_share(least: float | None = None) -> Bound:
    return Bound("share of games won", lambda report: _given(first(report).win_share), least)


def gain(least: float | None = 0.0) -> Bound:
    """Of the first over the second, paired."""
    return Bound("edge over the second", lambda report: report.differences[0].value, least)


def rating(name: str) -> Bound:
    return Bound(f"rating of {name}", lambda report: next(r.value for r in report.ratings if r.name == name))


def _given(interval: Interval | None) -> Interval:
    assert interval is not None
    return interval


FAST, STRONG, TREE = "pimc:fast,threads=1", "pimc:strong,threads=1", "ismcts:strong,threads=1"
RULE_PASS = "mixed:call=pimc:fast,pick=heuristic,play=pimc:fast"
FIELD = ("greedy-v1", "heuristic", "learned", FAST, STRONG)

MATCHES = {
    "fast": Match(FAST, "--against heuristic", 2500, 500, (edge(2.5), win_share(0.40)), 1.0),
    "fast-greedy": Match(FAST, "--against greedy-v1", 1500, 0, (edge(4.5),), 1.0),
    "strong": Match(STRONG, "--against heuristic", 1500, 160, (edge(3.5), win_share(0.47)), 25.0),
    "strong-greedy": Match(STRONG, "--against greedy-v1", 600, 0, (edge(6.0),), 25.0),
    "tree": Match(TREE, "--against heuristic", 400, 0, (edge(3.0),), 25.0),
    "tree-pimc": Match(f"{TREE} {STRONG}", "--against heuristic", 600, 0, (gain(None),)),
    # three to the left, always, beside search; all else by ``heuristic``, so that nothing but the call is compared
    "calls": Match("mixed:call=pimc:strong mixed:call=greedy-v1", "--against heuristic", 15_000, 0, (gain(),)),
    "passes": Match(f"{FAST} {RULE_PASS}", "--against heuristic", 3000, 0, (gain(),)),
    "field": Match(" ".join(FIELD), "--format field", 20, 0, tuple(map(rating, FIELD))),
}


def play(name: str, match: Match, scale: float, workers: int) -> Report:
    """Run the command of a match and read its report."""
    out = ROOT / "runs" / "strength" / name
    deals, games = (max(2, round(scale * count)) if count else 0 for count in (match.deals, match.games))
    seed = SEED + list(MATCHES).index(name)
    words = f"{match.players} {match.options} --deals {deals} --games {games} --seed {seed} --workers {workers}"
    print(f"\npython evaluate.py {words} --out {out.relative_to(ROOT)}", flush=True)
    for file in out.glob("*"):
        file.unlink()
    status = dnfh(["evaluate", *shlex.split(words), "--out", str(out)])
    if status:
        raise SystemExit(status)
    return Report.load(out)


def verdicts(match: Match, report: Report) -> Iterator[bool]:
    """Print every figure; whether each that is bound is met."""
    for bound in match.bounds:
        found = bound.figure(report)
        asked = "" if bound.least is None else f"asked: beyond {bound.least:g}, {_told(found.low > bound.least)}"
        print(f"{bound.what:28} {found.mean:8.3f} [{found.low:.3f}, {found.high:.3f}]  {asked}")
        yield bound.least is None or found.low > bound.least
    pace = report.paces[0]
    asked = "" if match.slowest is None else f"asked: at most {match.slowest:g}, {_told(pace.mean <= match.slowest)}"
    print(f"{'ms a decision, mean, p99':28} {pace.mean:8.3f}  {pace.p99:.3f}  {asked}")
    yield match.slowest is None or pace.mean <= match.slowest
    for behaviour in report.behaviour:
        tried, landed = behaviour.counts["shots_tried"], behaviour.counts["shots_landed"]
        print(f"shots of {behaviour.name}: tried {tried}, landed {landed}")


def _told(met: bool) -> str:
    return "met" if met else "MISSED"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "matches", nargs="*", metavar="MATCH", help=f"some of {', '.join(MATCHES)}; all if none is named"
    )
    parser.add_argument("--scale", type=float, default=1.0, help="of the number of blocks")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    options = parser.parse_args()
    unknown = sorted(set(options.matches) - set(MATCHES))
    if unknown:
        parser.error(f"{unknown[0]} is none of {', '.join(MATCHES)}")
    met = []
    for name in options.matches or MATCHES:
        met += verdicts(MATCHES[name], play(name, MATCHES[name], options.scale, options.workers))
    print(f"\n{sum(met)} of {len(met)} met")
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
