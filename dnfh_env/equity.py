"""Equity: the chance of winning a game from the scores and who deals next, as a table fitted to played deals.

A table is a small network. It says of each seat, from the scores and the seat's place relative to the dealer, how much
speaks for it, and once more how much speaks for the whole lot: that chance decides, a shot most of all, which is
anyone's. A softmax over the five makes chances of them, the fifth of which the seats share. So they sum to 1, and
turning the table turns them. After the end of a game nothing is estimated: there a chance is the share of the win.

A table belongs to the rules it was fitted for; ``benchmarks/fit_equity.py`` fits one. Kernels take it as an argument, a
`TABLE` record: ``equities(scores, dealer, equity_table(rules).record[0])``.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from dnfh_env._bits import plain
from dnfh_env.cards import NUM_SEATS
from dnfh_env.errors import ArgumentError, DnfhError, described, shown
from dnfh_env.rules import Rules, checked_rules

FORMAT = "dnfh-equity-1"
"""What a file of a table says in its field ``format``."""

UNITS = 32
"""Of the network's only layer."""

WEIGHTS = {
    "places": (UNITS, NUM_SEATS + 1),  # by how many seats left of the dealer; the last for the whole lot
    "own": (UNITS,),  # for one's own gap to the lowest score
    "table": (UNITS, NUM_SEATS),  # for the other gaps to the lowest, rising, and how far the highest is from the target
    "out": (UNITS,),
}
"""The weights of the network, and the shape of each."""

TABLE: np.dtype[Any] = np.dtype(
    (np.record, np.dtype([("target", np.float64), *((name, np.float64, shape) for name, shape in WEIGHTS.items())]))
)
"""What the kernels read of a table; a total at ``target`` or beyond ends the game (R16)."""

PACKAGED = Path(__file__).with_name("equity_tables")
"""Tables that come with the package, each in a file named by `Rules.play_digest`."""

_LARGEST = 1e6
"""Bound of a weight: far beyond it, chances would be no numbers."""


@dataclasses.dataclass(frozen=True, eq=False)
class EquityTable:
    """A fitted table, and what it was fitted for."""

    rules: Rules
    """Those it belongs to, but for how long games may go on and how seats are filled, see `Rules.play_digest`."""
    record: NDArray[Any]
    """One `TABLE` record."""
    about: Mapping[str, Any]
    """What else its file says: where the deals came from, and how well the chances agree with games."""


_IN_USE: dict[str, EquityTable] = {}
"""Tables by `Rules.play_digest`."""


# --- tables -----------------------------------------------------------------------------------------------------


def equity_table(rules: Rules | None = None) -> EquityTable:
    """The table of these rules, `Rules()` if not given: one put to use by `use_equity`, or one that is packaged.

    Raises `ArgumentError` if there is none.
    """
    digest = checked_rules(rules).play_digest()
    path = PACKAGED / f"{digest}.json"
    if digest not in _IN_USE and path.is_file():
        _IN_USE[digest] = load_equity(path)
    if digest not in _IN_USE:
        known = ", ".join(sorted({*_IN_USE, *(path.stem for path in PACKAGED.glob("*.json"))}))
        raise ArgumentError(
            f"equity: there is no table for these rules, whose play digest is {digest} (there are {known}); "
            "`python benchmarks/fit_equity.py --rules RULES.json --out TABLE.json` fits one, use_equity puts it to use"
        )
    return _IN_USE[digest]


def use_equity(table: EquityTable | str | Path) -> EquityTable:
    """From now on let everything made in this process use ``table``, or that of a file, for the rules it belongs to.

    Workers of an evaluation that begins later use it too.
    """
    found = table if isinstance(table, EquityTable) else load_equity(table)
    _IN_USE[found.rules.play_digest()] = found
    return found


def tables_in_use() -> list[EquityTable]:
    """Those that were used or put to use in this process."""
    return list(_IN_USE.values())


def load_equity(path: str | Path) -> EquityTable:
    """Read the table that ``benchmarks/fit_equity.py`` wrote, a JSON file.

    Raises `ArgumentError` that names the file and what is wrong with it.
    """
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, TypeError, ValueError, RecursionError) as error:
        raise ArgumentError(f"equity table {path}: cannot be read: {described(error)}") from error
    try:
        return table_of(content)
    except DnfhError as error:
        raise ArgumentError(f"equity table {path}: {error}") from error


def table_of(content: Any) -> EquityTable:
    """A table from what its file holds; raises `DnfhError` that names the field at fault."""
    if not isinstance(content, Mapping) or content.get("format") != FORMAT:
        raise ArgumentError(f"format: expected a mapping with format {FORMAT!r}, got {shown(content)}")
    missing = sorted({"rules", "weights"} - set(content))
    if missing:
        raise ArgumentError(f"{missing[0]}: is not there")
    rules = Rules.from_dict(content["rules"])
    record = np.zeros(1, TABLE)
    record["target"] = rules.target
    for name, shape in WEIGHTS.items():
        record[name] = _weights(content["weights"], name, shape)
    return EquityTable(rules, record, {key: content[key] for key in content if key not in ("rules", "weights")})


def _weights(weights: Any, name: str, shape: tuple[int, ...]) -> NDArray[np.float64]:
    try:
        found = np.array(weights[name], np.float64)
    except (TypeError, ValueError, KeyError, OverflowError):
        raise ArgumentError(f"weights: expected numbers of shape {shape} as {name!r}") from None
    if found.shape != shape:
        raise ArgumentError(f"weights: {name!r} has shape {found.shape}, expected {shape}")
    if not (np.abs(found) <= _LARGEST).all():
        raise ArgumentError(f"weights: {name!r} has numbers that are not within ±{_LARGEST:g}")
    return found


def win_chances(scores: ArrayLike, dealer: ArrayLike, rules: Rules | None = None) -> NDArray[np.float64]:
    """The chances of the four seats to win the game, ``float64[..., 4]``, each row sums to 1.

    Args:
        scores: totals at the end of a deal, or at the start, whole numbers ``[..., 4]``. At the target or beyond, the
            lowest share the win.
        dealer: the seat that deals next, 0 to 3, or one for each row.
        rules: `Rules()` if not given.

    Raises `ArgumentError` for other shapes or types, and for rules without a table, see `equity_table`.
    """
    table = equity_table(rules)
    totals, dealers = _numbers("scores", scores), _numbers("dealer", dealer)
    if totals.ndim == 0 or totals.shape[-1] != NUM_SEATS:
        raise ArgumentError(f"scores: expected {NUM_SEATS} totals in each row, got shape {totals.shape}")
    if dealers.ndim and dealers.shape != totals.shape[:-1]:
        raise ArgumentError(f"dealer: expected one, or one for each row {totals.shape[:-1]}, got {dealers.shape}")
    if ((dealers < 0) | (dealers >= NUM_SEATS)).any():
        raise ArgumentError(f"dealer: {shown(dealer)} is not a seat from 0 to {NUM_SEATS - 1}")
    rows = plain(totals.reshape(-1, NUM_SEATS), np.int64)
    out = np.empty(rows.shape)
    equities_of(rows, plain(np.broadcast_to(dealers, totals.shape[:-1]).reshape(-1), np.int64), table.record, out)
    return out.reshape(totals.shape)


def _numbers(name: str, values: ArrayLike) -> NDArray[np.int64]:
    try:
        found = np.asarray(values)
    except ValueError:
        raise ArgumentError(f"{name}: expected whole numbers, got {shown(values)}") from None
    if not np.issubdtype(found.dtype, np.integer) or (found > np.iinfo(np.int64).max).any():
        raise ArgumentError(f"{name}: expected whole numbers below 2**63, got {shown(values)}")
    return found.astype(np.int64)


# --- kernels ----------------------------------------------------------------------------------------------------


@njit
def equities(scores: Any, dealer: Any, t: Any) -> Any:
    """The chances of the four seats, floats that sum to 1, at the end of a deal.

    Args:
        scores: four totals, whole numbers.
        dealer: the seat that deals next.
        t: a `TABLE` record.

    Totals at the target or beyond leave nothing to estimate: the lowest share the win. Where ties play on, it is what
    each of them may hope for.
    """
    a, b, c, d = np.int64(scores[0]), np.int64(scores[1]), np.int64(scores[2]), np.int64(scores[3])
    low, second, third, high = rising(a, b, c, d)
    if high >= t.target:
        return shares_of_lowest(a, b, c, d)
    togo = 1.0 - high / t.target
    scale = 1.0 / (t.target * math.sqrt(togo + 0.1))  # a gap counts by what may yet come: deals left go with the root
    at = np.int64(dealer)
    found = speaks_for(
        t,
        ((second - low) * scale, (third - low) * scale, (high - low) * scale, togo),
        ((a - low) * scale, (b - low) * scale, (c - low) * scale, (d - low) * scale),
        (-at & 3, 1 - at & 3, 2 - at & 3, 3 - at & 3),
    )
    return chances(found)


@njit(inline="always")
def rising(a: Any, b: Any, c: Any, d: Any) -> Any:
    """Four numbers in order."""
    w, x, y, z = min(a, b), max(a, b), min(c, d), max(c, d)
    inner, outer = max(w, y), min(x, z)
    return min(w, y), min(inner, outer), max(inner, outer), max(x, z)


@njit(inline="always")
def shares_of_lowest(a: Any, b: Any, c: Any, d: Any) -> Any:
    """What each of four totals wins if the game ends with them (R16)."""
    low = min(a, b, c, d)
    w, x, y, z = np.int64(a == low), np.int64(b == low), np.int64(c == low), np.int64(d == low)
    count = w + x + y + z
    return w / count, x / count, y / count, z / count


@njit(inline="always")
def speaks_for(t: Any, table: Any, own: Any, places: Any) -> Any:
    """The network: a number for each seat, and the fifth for the whole lot."""
    a = b = c = d = lot = 0.0
    for k in range(UNITS):
        w, out = t.own[k], t.out[k]
        all_see = t.table[k, 0] * table[0] + t.table[k, 1] * table[1] + t.table[k, 2] * table[2]
        all_see += t.table[k, 3] * table[3]
        a += out * max(all_see + t.places[k, places[0]] + w * own[0], 0.0)
        b += out * max(all_see + t.places[k, places[1]] + w * own[1], 0.0)
        c += out * max(all_see + t.places[k, places[2]] + w * own[2], 0.0)
        d += out * max(all_see + t.places[k, places[3]] + w * own[3], 0.0)
        lot += out * max(all_see + t.places[k, 4], 0.0)
    return a, b, c, d, lot


@njit(inline="always")
def chances(numbers: Any) -> Any:
    """The softmax of `speaks_for`, with the fifth shared; turning the table changes nothing, to the last bit."""
    a, b, c, d, lot = numbers
    most = max(a, b, c, d, lot)
    a, b, c, d = math.exp(a - most), math.exp(b - most), math.exp(c - most), math.exp(d - most)
    shared = math.exp(lot - most) / 4
    total = 1.0 / (((a + c) + (b + d)) + 4 * shared)
    return (a + shared) * total, (b + shared) * total, (c + shared) * total, (d + shared) * total


@njit(cache=True)
def equities_of(scores: Any, dealers: Any, table: Any, out: Any) -> None:
    """`equities` of each row of ``int64[B, 4]`` and ``int64[B]`` into ``out``, ``float64[B, 4]``."""
    for i in range(scores.shape[0]):
        found = equities(scores[i], dealers[i], table[0])
        for s in range(NUM_SEATS):
            out[i, s] = found[s]
