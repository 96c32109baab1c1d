"""Playing the blocks of a match: the games of all rows, and what of them goes into a `Page`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise, permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agents import behaviour, luck
from agents.formats import Format
from agents.pages import BLOCKS_A_PAGE, Page, Unit
from agents.referee import Moment, Player, Referee, faults_of, play_by, play_last_cards
from dnfh_env.agent import StochasticAgent, draws
from dnfh_env.cards import NUM_CARDS, NUM_SEATS
from dnfh_env.engine import GAME, NO_SEAT, PLAY, new_games
from dnfh_env.errors import described
from dnfh_env.objective import EDGE, POINTS, TWELFTHS, WIN, rules_of, standings_of
from dnfh_env.rules import SHOT_CODES, Rules, compile_rules


def play_pages(
    format: Format,
    players: Sequence[Player],
    rules: Rules,
    seed: int,
    *,
    unit: Unit,
    start: int,
    stop: int,
    warm: set[int],
) -> list[Page]:
    """The pages of the blocks from ``start`` up to ``stop`` of a match; ``warm`` is as in `Referee`."""
    rules = rules_of(rules, "deal", None) if unit == "deal" else rules
    compiled = compile_rules(rules)
    blocks = np.repeat(np.arange(start, stop), format.rows)
    games = new_games(rules, seed, blocks)
    watch = _Watch(format, players, rules, blocks, warm)
    play_by(games, compiled, watch.decide)
    deals, rows = (games, np.arange(len(games))) if unit == "deal" else watch.last_deals(rules)
    sheet = _outcomes(format, unit, games, compiled) | {"luck": _drawn(format, unit, games, watch)}
    edges = _edges(unit, start, stop)
    counts = _counts(format, edges, deals, rows, compiled)
    return list(_cut(unit, edges, sheet, counts, watch, 1 + max(entry.contestant for entry in format.entries)))


class _Watch(Referee):
    """A referee that also keeps what the records of ended games no longer hold."""

    def __init__(
        self, format: Format, players: Sequence[Player], rules: Rules, blocks: NDArray[np.int64], warm: set[int]
    ) -> None:
        """Watch over whole blocks; ``blocks``, ``int64[rows]``, and ``warm`` are as in `Referee`."""
        count = len(blocks) // format.rows
        super().__init__(players, np.tile(format.lineups, (count, 1)), compile_rules(rules), blocks, warm)
        self._counted, self._rules = np.tile(format.accounts >= 0, (count, 1)), rules
        self.drawn = np.zeros(self._counted.shape)
        """``float64[rows, 4]``: what the actions that agents drew were worth above their expectation, by seat."""
        self._stochastic = [(index, agent) for index, (_, agent) in enumerate(players) if draws(agent)]
        self._deals: list[NDArray[Any]] = []
        self._rows: list[NDArray[np.int64]] = []

    def note(self, moment: Moment, answered: NDArray[np.int64]) -> None:
        """See `Referee`."""
        last = np.flatnonzero((moment.now["num_plays"] == NUM_CARDS - 1) & (moment.now["phase"] == PLAY))
        if len(last):
            self._deals.append(moment.now.take(last))
            self._rows.append(moment.rows[last])
        places = moment.rows[answered], moment.seats[answered]
        counted, movers = self._counted[places], self.lineup[places]
        for index, agent in self._stochastic:
            own = answered[counted & (movers == index)]
            if len(own):
                self._value(index, agent, moment, own)

    def _value(self, index: int, agent: StochasticAgent, moment: Moment, own: NDArray[np.int64]) -> None:
        """Add up what the agent's ``own`` draws were worth; to err in saying how likely they were is a fault too."""
        views, blocks = moment.views.take(own), moment.blocks[own]
        try:
            chances = agent.probabilities(views.copy())
            worth = luck.policy_covariates(views, chances, moment.actions[own], self._rules)
        except Exception as error:
            if (blocks == blocks[0]).all():
                self.blame(index, int(blocks[0]), f"probabilities: {described(error)}", views[0], None)
                self.drawn[self.blocks == blocks[0]] = 0.0
                return
            for block in np.unique(blocks):  # it shows whose fault it is
                self._value(index, agent, moment, own[blocks == block])
            return
        np.add.at(self.drawn, (moment.rows[own], moment.seats[own]), worth)

    def last_deals(self, rules: Rules) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Every deal that was played, as a game of its own that has ended, and the rows that they come from."""
        if not self._deals:
            return np.zeros(0, GAME), np.zeros(0, np.int64)
        deals, compiled = np.concatenate(self._deals), compile_rules(rules_of(rules, "deal", None))
        deals["deal"] = 0
        play_last_cards(deals, compiled)
        return deals, np.concatenate(self._rows)


# --- counting ---------------------------------------------------------------------------------------------------


def _outcomes(format: Format, unit: Unit, games: NDArray[Any], compiled: NDArray[Any]) -> dict[str, NDArray[np.int64]]:
    """What `Page` holds of ended games: scores, points, shots and finishing orders by block."""
    if unit == "deal":
        scores = EDGE * standings_of(games, compiled, POINTS)
    else:
        scores = standings_of(games, compiled, WIN) + 1 / NUM_SEATS
    shots = games["shooter"][:, None] == np.arange(NUM_SEATS)
    return {
        "scores": _by_entry(format, np.rint(TWELFTHS * scores).astype(np.int64)),
        "points": _by_entry(format, games["points"].astype(np.int64)) * (unit == "deal"),
        "shots": _by_entry(format, shots.astype(np.int64)) * (unit == "deal"),
        "ahead": _finished_ahead(format, places(games, compiled)),
    }


def _by_entry(format: Format, by_seat: NDArray[Any]) -> Any:
    """Sums ``[blocks, entries]`` of ``[rows, 4]`` over the seats that count for an entry.

    Not as a product of matrices, whose sums of floats depend on how many blocks there are.
    """
    return np.einsum("bs,se->be", by_seat.reshape(-1, 4 * format.rows), format.members)


def places(games: NDArray[Any], compiled: NDArray[Any]) -> NDArray[np.int64]:
    """What ended games are ordered by, ``int64[B, 4]``: the least finished first, equals tie."""
    seats = np.arange(NUM_SEATS)
    scores = games["scores"].astype(np.int64)
    shot = (games["shooter"] != NO_SEAT) & (compiled["shot"][0] == SHOT_CODES["game"])
    scores[shot] = 0
    won = games["winners"][:, None] >> seats & 1 == 1
    return np.where(won, np.iinfo(np.int64).min, scores)


def _finished_ahead(format: Format, order: NDArray[np.int64]) -> NDArray[np.int64]:
    """See `Page.ahead`."""
    blocks = len(order) // format.rows
    if format.name != "field":
        return np.zeros((blocks, 0, 0), np.int64)
    order = order.reshape(blocks, format.rows, NUM_SEATS)
    ahead = np.zeros((blocks, len(format.entries), len(format.entries)), np.int64)
    for row, lineup in enumerate(format.lineups):
        for s, t in permutations(range(NUM_SEATS), 2):
            here, there = order[:, row, s], order[:, row, t]
            ahead[:, lineup[s], lineup[t]] += 2 * (here < there) + (here == there)
    return ahead


def _drawn(format: Format, unit: Unit, games: NDArray[Any], watch: _Watch) -> NDArray[np.float64]:
    """See `Page.luck`."""
    kitty = luck.kitty_covariates(games) if unit == "deal" else np.zeros((len(games), NUM_SEATS))
    return np.stack([_by_entry(format, kitty), _by_entry(format, watch.drawn)], axis=2)


def _counts(
    format: Format, edges: Sequence[int], deals: NDArray[Any], rows: NDArray[np.int64], compiled: NDArray[Any]
) -> NDArray[np.int64]:
    """What the entries did in ``deals`` of ``rows``, ``int64[pages, entries, counts]``; pages lie between ``edges``."""
    pages, entries = len(edges) - 1, len(format.entries)
    page = np.searchsorted(edges, edges[0] + rows // format.rows, side="right") - 1
    owners, nobody = format.accounts[rows % format.rows], pages * entries
    owners = np.where(owners < 0, nobody, owners + entries * page[:, None])
    return behaviour.count_players(deals, compiled, owners, nobody + 1)[:-1].reshape(pages, entries, -1)


def _edges(unit: Unit, start: int, stop: int) -> list[int]:
    """Where pages of these blocks begin and end."""
    size = BLOCKS_A_PAGE[unit]
    return sorted({start, stop, *range(start - start % size + size, stop, size)})


def _cut(
    unit: Unit, edges: Sequence[int], sheet: dict[str, Any], counts: NDArray[np.int64], watch: _Watch, contestants: int
) -> Iterator[Page]:
    """The pages between ``edges``; times are written into the first."""
    faults = faults_of(watch, unit, [name for name, _ in watch.players])
    times, seconds = watch.times[:contestants], watch.seconds[:contestants]
    for (first, last), own in zip(pairwise(edges), counts, strict=True):
        part = {name: array[first - edges[0] : last - edges[0]] for name, array in sheet.items()}
        wrong = tuple(fault for fault in faults if first <= fault.block < last)
        yield Page(unit, first, **part, behaviour=own, times=times, seconds=seconds, faults=wrong)
        times, seconds = np.zeros_like(times), np.zeros_like(seconds)
