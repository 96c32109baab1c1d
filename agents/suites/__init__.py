"""Frozen things to be measured on: sets of deals, tactical positions whose actions have values, and protocols.

Deals are a function of (seed, number), so a set of them is a seed, a count and the digest of what has to be dealt. A
tactical suite holds positions of one kind and, for each legal action, what ``benchmarks/make_suites.py`` found it to be
worth; ``docs/benchmark.md`` says what that means. A protocol names all that two papers have to have in common.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from agents.report.figures import one_line
from agents.stats import Interval, mean_interval, rate_interval
from dnfh_env.agent import Agent, ask, legal_rows, make_agent, name_of
from dnfh_env.engine import NUM_ACTIONS, legal_masks, new_games
from dnfh_env.errors import DnfhError, NotationError, one_of
from dnfh_env.notation import action_to_string, string_to_action, string_to_position
from dnfh_env.rules import Rules, compile_rules
from dnfh_env.view import views_of

if TYPE_CHECKING:
    from rich.table import Table

FOLDER = Path(__file__).parent
DEALS_FORMAT = "dnfh-deals-1"
SUITE_FORMAT = "dnfh-suite-1"

DEALS = ("dev", "test")
"""Sets of deals: one to try things on, one to report."""

SUITES = ("guard", "shoot", "stop", "jack", "kitty", "ending")
"""The tactical suites; those of ``ending`` alone have exact values."""

WORST = 5
"""How many of the dearest misses a `SuiteResult` keeps."""


class SuiteError(DnfhError):
    """A set, suite or protocol that is not there, or is not what was frozen."""


# --- deals ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DealSet:
    """The first deals of the games 0, 1, … under a seed."""

    name: str
    seed: int
    count: int
    digest: str
    """SHA-256, see `deals_digest`."""

    def check(self) -> None:
        """Raise `SuiteError` if the engine deals something else than what was frozen."""
        _check_digest(f"deals {self.name!r}", deals_digest(self.seed, self.count), self.digest)


def deals_digest(seed: int, count: int) -> str:
    """SHA-256 of the dealers, ``uint8[count]``, and then the hands as dealt, little-endian ``uint64[count, 4]``."""
    games = new_games(Rules(), seed, np.arange(count))
    return hashlib.sha256(games["dealer"].tobytes() + games["hand"].astype("<u8").tobytes()).hexdigest()


def load_deals(name: str) -> DealSet:
    """One of `DEALS`, checked; raises `SuiteError` for another name, and where the engine deals something else."""
    one_of("deals", name, DEALS, SuiteError)
    document = _read("deals", DEALS_FORMAT)
    deals = DealSet(name, **document["sets"][name])
    deals.check()
    return deals


# --- tactical suites --------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Suite:
    """Positions of one kind, ``P`` of them, each of another deal, and what their legal actions are worth."""

    name: str
    digest: str
    """SHA-256 of the positions as they stand in the file."""
    header: dict[str, Any]
    """How it was made."""
    texts: tuple[str, ...]
    """The positions in words, see `dnfh_env.notation`."""
    games: NDArray[Any]
    """`GAME` records ``[P]``; agents get the view of the seat to move."""
    legal: NDArray[np.uint64]
    """Legal actions as masks, ``[P]``."""
    values: NDArray[np.float64]
    """``[P, 64]``, edge in points of the deal for the seat to move; nan for what is illegal."""
    best: NDArray[np.bool_]
    """``[P, 64]``, the actions that count as best."""
    errors: NDArray[np.float64]
    """``[P]``, paired standard error of the best value's lead over the nearest action that does not count as best."""

    def __len__(self) -> int:
        return len(self.games)

    def keys(self) -> NDArray[np.uint64]:
        """The seeds for an agent's decisions, ``uint64[P]``: a function of the suite and the number of the position."""
        hashes = [hashlib.sha256(f"{self.digest} {i}".encode()).digest() for i in range(len(self))]
        return np.array([int.from_bytes(found[:8], "little") for found in hashes], np.uint64)

    def regrets(self, actions: NDArray[np.int64]) -> NDArray[np.float64]:
        """What legal actions, ``int64[P]``, give away against the highest value, ``float64[P]`` in points."""
        lost: NDArray[np.float64] = np.nanmax(self.values, axis=1) - self.values[np.arange(len(self)), actions]
        return lost


@lru_cache(maxsize=len(SUITES))
def load_suite(name: str) -> Suite:
    """One of `SUITES`; raises `SuiteError` for another name, and for a file that is not what was frozen."""
    one_of("suite", name, SUITES, SuiteError)
    document = _read(name, SUITE_FORMAT)
    try:
        return parse_suite(document)
    except (KeyError, TypeError, AttributeError) as error:
        raise SuiteError(f"suite {name!r}: not what was frozen: {error!r}") from error


def parse_suite(document: dict[str, Any]) -> Suite:
    """The suite that a document of `SUITE_FORMAT` holds; raises `SuiteError` unless all of it fits together."""
    header = {key: value for key, value in document.items() if key != "positions"}
    name, entries = header["name"], document["positions"]
    _check_digest(f"rules of suite {name!r}", Rules().digest(), header["rules"])
    _check_digest(f"positions of suite {name!r}", positions_digest(entries), header["sha256"])
    games = np.concatenate([_game_at(name, i, entry["at"]) for i, entry in enumerate(entries)])
    legal = np.empty(len(games), np.uint64)
    legal_masks(games, compile_rules(Rules()), legal)
    values = np.full((len(games), NUM_ACTIONS), np.nan)
    best = np.zeros(values.shape, np.bool_)
    for row, entry in enumerate(entries):
        values[row, [string_to_action(word) for word in entry["values"]]] = list(entry["values"].values())
        best[row, [string_to_action(word) for word in entry["best"]]] = True
    wrong = np.flatnonzero((np.isfinite(values) != legal_rows(legal).view(np.bool_)).any(axis=1))
    if len(wrong):
        raise SuiteError(f"suite {name!r}: position {wrong[0]} has values for other actions than the legal ones")
    errors = np.array([entry["error"] for entry in entries], np.float64)
    texts = tuple(entry["at"] for entry in entries)
    return Suite(name, header["sha256"], header, texts, games, legal, values, best, errors)


def positions_digest(entries: Sequence[dict[str, Any]]) -> str:
    """SHA-256 of the positions of a suite as canonical JSON."""
    return _digest(list(entries))


def _game_at(name: str, number: int, text: str) -> NDArray[Any]:
    try:
        return string_to_position(text)[0]
    except NotationError as error:
        raise SuiteError(f"suite {name!r}: position {number}: {error}") from error


@dataclass(frozen=True)
class Miss:
    """A position in which the contestant chose none of the best actions."""

    position: int
    """Its number in the suite."""
    text: str
    chosen: str
    best: tuple[str, ...]
    regret: float
    """In points."""


@dataclass(frozen=True)
class SuiteResult:
    """How a contestant did on a suite; both intervals are over positions, which are of different deals."""

    suite: str
    digest: str
    contestant: str
    positions: int
    best: Interval
    """Share of the positions in which it chose a best action, Wilson's interval."""
    regret: Interval
    """Mean of the highest value less that of the chosen action, in points, t-interval."""
    worst: tuple[Miss, ...]
    """The dearest misses, the dearest first."""


def answers(suite: Suite, agent: str | Agent, name: str) -> NDArray[np.int64]:
    """What an agent chooses in each position, ``int64[P]``; raises `AgentError` when it errs."""
    views = views_of(suite.games, compile_rules(Rules()), suite.games["seat"].astype(np.int64))
    return ask(make_agent(agent, Rules()), views, suite.keys(), name)


def run_suite(suite: Suite, agent: str | Agent, name: str | None = None) -> SuiteResult:
    """Ask an agent about every position of a suite.

    Args:
        suite: of `load_suite`.
        agent: an agent for the default rules, or its name.
        name: what to call it; its own name, or that of its class, if not given.

    Raises `AgentError` when the agent errs.
    """
    called = name or name_of(agent)
    actions = answers(suite, agent, called)
    regrets = suite.regrets(actions)
    hits = suite.best[np.arange(len(suite)), actions]
    missed = np.flatnonzero(~hits)
    worst = missed[np.argsort(-regrets[missed], kind="stable")][:WORST]
    return SuiteResult(
        suite=suite.name,
        digest=suite.digest,
        contestant=called,
        positions=len(suite),
        best=rate_interval(int(hits.sum()), len(suite)),
        regret=mean_interval(regrets),
        worst=tuple(_miss(suite, int(i), int(actions[i]), float(regrets[i])) for i in worst),
    )


def _miss(suite: Suite, position: int, action: int, regret: float) -> Miss:
    best = tuple(action_to_string(int(a)) for a in np.flatnonzero(suite.best[position]))
    return Miss(position, suite.texts[position], action_to_string(action), best, regret)


def table(results: Sequence[SuiteResult]) -> Table:
    """Results side by side for `rich`: a row for each."""
    from rich.table import Table

    caption = "Means with 95 % intervals over positions. Regret: points a deal given away, by the values of the suite."
    found = Table(caption=caption, caption_justify="left")
    found.add_column("suite")
    found.add_column("agent")
    for title in ("positions", "best action, %", "regret"):
        found.add_column(title, justify="right")
    for result in results:
        best, regret = _text(result.best, 100, ".1f"), _text(result.regret, 1, ".2f")
        found.add_row(result.suite, one_line(result.contestant), str(result.positions), best, regret)
    return found


def _text(interval: Interval, scale: float, form: str) -> str:
    mean, low, high = (format(scale * x, form) for x in (interval.mean, interval.low, interval.high))
    return f"{mean} [{low}, {high}]"


# --- protocols --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Protocol:
    """What figures in two papers have to have in common to be compared; ``docs/benchmark.md`` says how to report."""

    name: str
    opponents: tuple[str, ...]
    """The contestant sits in one seat against three of each of these, one after another."""
    deals: str
    """The set of deals that gives the seed; its count is the number of blocks of one deal."""
    games: int
    """Blocks of one whole game under the same seed."""
    suites: tuple[str, ...]
    """What is run beside the matches."""
    digest: str
    """SHA-256 over all of this, with the digests of deals and suites and what the opponents choose in the suites."""
    metrics: tuple[str, ...] = ("win_share", "edge")
    """Figures of a result, the deciding one first."""
    rules: Rules = field(default_factory=Rules)

    def pinned(self) -> str:
        """What `digest` has to be."""
        deals, loaded = load_deals(self.deals), [load_suite(name) for name in self.suites]
        parts = {
            "name": self.name,
            "opponents": self.opponents,
            "answers": [[answers(suite, name, name).tolist() for suite in loaded] for name in self.opponents],
            "deals": [deals.seed, deals.count, deals.digest],
            "games": self.games,
            "suites": [[suite.name, suite.digest] for suite in loaded],
            "metrics": self.metrics,
            "rules": self.rules.to_dict(),
        }
        return _digest(parts)

    def check(self) -> None:
        """Raise `SuiteError` if deals, suites or anything else is not what was frozen."""
        _check_digest(f"protocol {self.name!r}", self.pinned(), self.digest)


PROTOCOLS = {
    "v1": Protocol(
        name="v1",
        opponents=("heuristic", "greedy-v1"),
        deals="test",
        games=1_000,
        suites=("guard", "shoot", "stop", "jack", "kitty"),
        digest="571ab49443cfc4447e0b99a6f9be5f857a2e301c9d4cd5cb023ed5cabd4419c7",
    )
}
"""By name. A protocol never changes: another one gets another name."""


def load_protocol(name: str) -> Protocol:
    """One of `PROTOCOLS`, checked; raises `SuiteError` for another name, and if it is not what was frozen."""
    one_of("protocol", name, PROTOCOLS, SuiteError)
    protocol = PROTOCOLS[name]
    protocol.check()
    return protocol


# --- files ------------------------------------------------------------------------------------------------------


def _read(name: str, format: str) -> dict[str, Any]:
    path = FOLDER / f"{name}.json"
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SuiteError(f"{path.name}: cannot be read: {error}") from error
    if not isinstance(document, dict) or document.get("format") != format:
        raise SuiteError(f"{path.name}: expected a JSON object of format {format!r}")
    return document


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _check_digest(what: str, found: str, frozen: str) -> None:
    if found != frozen:
        raise SuiteError(f"{what}: the digest is {found[:16]}…, frozen was {frozen[:16]}…")
