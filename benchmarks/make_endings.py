"""Make the suite ``ending`` of `agents.suites`: the last tricks of deals, and what each legal action is worth exactly.

Candidates come from deals played as in ``benchmarks/make_suites.py``, one decision of the last four tricks of each.
Every layout of the hidden cards that agrees with what the seat to move knows is solved with all hands open, every seat
playing for itself, see `agents.search.endgame`. An action is *best* if in none of these worlds another comes to more
for the seat to move. Kept is what has such an action, and others that are all clearly behind.

    python benchmarks/make_endings.py    # less than a minute on an idle core; the same seed gives the same bytes
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass
from math import comb, prod
from pathlib import Path
from typing import Any

import numpy as np
from make_suites import BATCH, COUNT, RULES, SEED, Recipe, candidates, entry, played, save
from numpy.typing import NDArray

from agents.beliefs import Beliefs
from agents.search.endgame import QUARTERS, solve
from agents.search.equal import alike_cards, representatives
from agents.suites import FOLDER, SUITE_FORMAT, SUITES, positions_digest
from dnfh_env.agent import make_agent
from dnfh_env.cards import HAND_SIZE, NUM_SEATS, cards_in, mask_of
from dnfh_env.engine import EACH, GAME, PLAY, keys_of
from dnfh_env.notation import action_to_string
from dnfh_env.objective import EDGE
from dnfh_env.rules import KITTY, Rules, compile_rules
from dnfh_env.view import views_of

NAME = "ending"
TRICKS = range(2, 5)
"""How many may be left, the one under way included."""
MOST_WORLDS = 300
"""A position that more layouts agree with is left out."""
GAP = 1.0
"""How many points the others must be behind."""
SOLVERS = ("greedy-v1", "heuristic")
"""Each chooses a best action in no more than half of the positions."""


# --- which positions ----------------------------------------------------------------------------------------------


def endings(views: NDArray[Any]) -> NDArray[np.bool_]:
    """The last tricks are played, and some legal actions are not equal."""
    left = HAND_SIZE - views["num_plays"] // NUM_SEATS
    found = (views["phase"] == PLAY) & (left >= TRICKS[0]) & (left <= TRICKS[-1])
    now = views[found]
    gone, alike = spent(now), alike_cards(RULES)
    tried = [representatives(view["hand"], view["legal"], cards, alike) for view, cards in zip(now, gone, strict=True)]
    found[found] = [int(cards).bit_count() > 1 for cards in tried]
    return found


def spent(views: NDArray[Any]) -> NDArray[np.uint64]:
    """The cards that can take no trick any more, see `agents.search.equal.equal_cards`."""
    under_way = views["num_plays"] % NUM_SEATS > 0
    best = np.where(under_way, np.uint64(1) << views["best_card"].astype(np.uint64), np.uint64(0))
    return played(views) & ~best


RECIPE = Recipe(endings)


# --- worlds -------------------------------------------------------------------------------------------------------


def layouts(view: NDArray[Any]) -> Iterator[list[int]]:
    """Every layout that agrees with a view, a `VIEW` array of length 1: the hands at places 1 to 3 as masks."""
    _, *possible = map(int, Beliefs(view, RULES).possible())
    sizes = [HAND_SIZE - int(cards).bit_count() for cards in view["played"][0]]
    hidden = possible[0] | possible[1] | possible[2]
    for one in subsets(possible[0], sizes[1]):
        for two in subsets(possible[1] & ~one, sizes[2]):
            three = hidden & ~one & ~two
            if not three & ~possible[2]:
                yield [one, two, three]


def subsets(cards: int, count: int) -> Iterator[int]:
    """All sets of so many of these cards, as masks."""
    return map(mask_of, itertools.combinations(cards_in(cards), count))


def histories(view: NDArray[Any], layout: list[int]) -> int:
    """In how many ways a layout may have come out of the kitty (R5); 1 where none was called."""
    v = view[0]
    if v.call != KITTY:
        return 1
    lost = int(v.given[0] & ~v.received[0])
    mine = [((hand | int(v.played[s])) & lost).bit_count() for s, hand in enumerate(layout, 1)]
    return prod(comb(HAND_SIZE - j, EACH - j) for j in mine)


def world_of(view: NDArray[Any], layout: list[int]) -> NDArray[Any]:
    """The view's decision with these hands, a `GAME` array of length 1 where the view's seat is seat 0.

    Who passed what to whom is that of some other world: it changes nothing any more.
    """
    game = Beliefs(view, RULES).worlds(1, 0)
    game["hand"][0, 1:] = layout
    return game


# --- values -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Exact:
    """What each legal action of a position comes to in each of its worlds, as `make_suites.entry` takes it."""

    actions: NDArray[np.int64]
    """``[A]``."""
    quarters: NDArray[np.int64]
    """Of a point, the standing of the seat to move, ``[A, W]``."""
    weights: NDArray[np.float64]
    """Histories of the worlds, ``[W]``."""

    @property
    def best(self) -> NDArray[np.bool_]:
        """What no other action beats in any world, ``[A]``."""
        found: NDArray[np.bool_] = (self.quarters == self.quarters.max(axis=0)).all(axis=1)
        return found

    @property
    def values(self) -> NDArray[np.float64]:
        """Mean edges, ``[A]``."""
        return EDGE / QUARTERS * np.average(self.quarters, axis=1, weights=self.weights)

    @property
    def errors(self) -> NDArray[np.float64]:
        """Of how far each action is behind: none, ``[A]``."""
        return np.zeros(len(self.actions))


def solved_in_all(view: NDArray[Any]) -> Exact | None:
    """The values of one view; None where there are too many worlds, or no action is best in all of them."""
    found = list(itertools.islice(layouts(view), MOST_WORLDS + 1))
    if len(found) > MOST_WORLDS:
        return None
    base, best, columns = world_of(view, found[0]), True, []
    for layout in found:
        base["hand"][0, 1:] = layout
        solution = solve(base, RULES)
        columns.append(solution.values[:, solution.seat])
        best = best & (columns[-1] == columns[-1].max())
        if not np.any(best):
            return None
    weights = np.array([histories(view, layout) for layout in found], np.float64)
    return Exact(solution.actions, np.stack(columns, axis=1), weights)


def is_clear(found: Exact) -> bool:
    """Whether there are actions beside the best ones, and all of them are behind by `GAP`."""
    best, values = found.best, found.values
    return not best.all() and bool(values[best].min() - values[~best].max() >= GAP)


def judged(game: NDArray[Any]) -> dict[str, Any] | None:
    """The entry of a position, a `GAME` array of length 1, or None if it has no clear best."""
    found = solved_in_all(view_of(game))
    if found is None or not is_clear(found):
        return None
    return entry(game, found, found.best) | {"worlds": len(found.weights)}


def view_of(game: NDArray[Any]) -> NDArray[Any]:
    """What the seat to move sees."""
    return views_of(game, compile_rules(RULES), game["seat"].astype(np.int64))


# --- making it ----------------------------------------------------------------------------------------------------


def solvers(game: NDArray[Any], found: dict[str, Any]) -> list[str]:
    """Which of `SOLVERS` choose a best action."""
    view, keys = view_of(game), keys_of(game)
    chosen = {name: action_to_string(int(make_agent(name, RULES).act(view, keys)[0])) for name in SOLVERS}
    return [name for name in SOLVERS if chosen[name] in found["best"]]


def positions(seed: int, count: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """The number of its deal and the entry, ``count`` times; each of `SOLVERS` solves no more than half."""
    room = dict.fromkeys(SOLVERS, count // 2)
    for start in itertools.count(0, BATCH):
        for game in candidates(RECIPE, seed, np.arange(start, start + BATCH)):
            record = np.array([game], GAME)
            found = judged(record)
            solving = solvers(record, found) if found else []
            if found is None or not all(room[name] for name in solving):
                continue
            room |= {name: room[name] - 1 for name in solving}
            count -= 1
            yield int(game["game"]), found
            if count == 0:
                return


def make(seed: int, count: int) -> dict[str, Any]:
    """The document of the suite, with its progress printed."""
    entries, start = [], time.perf_counter()
    for number, found in positions(seed, count):
        entries.append(found)
        if len(entries) % 20 == 0 or len(entries) == count:
            seconds = time.perf_counter() - start
            print(f"{NAME}: {len(entries)} of {count}, {number + 1} deals, {seconds:.0f} s", flush=True)
    return {
        "format": SUITE_FORMAT,
        "name": NAME,
        "rules": Rules().digest(),
        "seed": seed,
        "continuation": "max^n in every world that agrees",
        "worlds": {"play": max(found["worlds"] for found in entries)},
        "gap": GAP,
        "sha256": positions_digest(entries),
        "positions": entries,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=SEED + SUITES.index(NAME), help="of the deals")
    parser.add_argument("--count", type=int, default=COUNT, help="positions of the suite")
    parser.add_argument("--out", type=Path, default=FOLDER, help="where the file goes")
    options = parser.parse_args()
    if options.count < 2:
        parser.error("--count: at least 2")
    save(make(options.seed, options.count), options.out / f"{NAME}.json")


if __name__ == "__main__":
    main()
