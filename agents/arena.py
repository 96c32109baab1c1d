"""Matches whose figures can be believed: one contestant against three others, on the same cards from every seat.

A *block* is one deal, or one whole game, played four times with the contestant in each of the four seats: same
others at its left, across and right, same cards, same dealer, same kitty shuffle. Its score is the mean over the four,
and blocks are the independent observations that intervals are taken over. Agents get the same seeds in all four, so
among four equal agents every block's edge is exactly 0, even if they play at random.

*Card points*: points of the cards taken in a deal. *Edge*: the mean of the other three minus mine, where a deal that
wins the game by a shot counts as ``SHOT_VALUE`` to each of the others and thrice that off the shooter, and not as the
points taken; it is 4/3 of what the reward ``"points"`` pays in the deal. *Shot*: a deal in which one seat takes all
shot cards. *Win share*: share of the win in whole games, 1/4 where ``max_deals`` cuts one off.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agents.stats import Interval, mean_interval, rate_interval
from dnfh_env.agent import Agent, ask_each, make_agents, three_others
from dnfh_env.cards import NUM_SEATS
from dnfh_env.engine import OVER, apply_all, keys_of, new_games
from dnfh_env.errors import whole
from dnfh_env.notation import check_counter
from dnfh_env.objective import POINTS, WIN, rules_of, standings_of
from dnfh_env.rules import Rules, checked_rules, compile_rules
from dnfh_env.view import views_of

_FIGURES = ("standing", "card points", "shots")

SEED = 7_000_000
"""Seed of evaluations, unlike what a training is given, so that nobody is judged on deals it has learned from."""

CHUNK = 512
"""Blocks played side by side, four games each; what comes out does not depend on it."""

Player = tuple[str, Agent]
"""An agent and what to call it."""


@dataclass(frozen=True)
class Result:
    """What a contestant scored; None for what was not played."""

    contestant: str
    against: tuple[str, str, str]
    """The others at the contestant's left, across and right."""
    edge: Interval | None = None
    """In points a deal, t-interval over blocks of one deal."""
    card_points: Interval | None = None
    """A deal, t-interval over blocks of one deal."""
    shots: Interval | None = None
    """Rate of deals the contestant shot, Wilson's interval over deals."""
    win_share: Interval | None = None
    """A game, t-interval over blocks of one game."""


class Match:
    """A contestant against three others: play as much as wanted, and ask for the `result` at any time."""

    def __init__(
        self,
        contestant: str | Agent,
        against: str | Agent | Sequence[str | Agent] = "random",
        rules: Rules | None = None,
        seed: int = SEED,
    ) -> None:
        """Seat the players.

        Args:
            contestant: the agent that is measured, or its name.
            against: one for all three other seats, or three for left, across and right.
            rules: what is played, `Rules()` if not given.
            seed: what the cards and the agents' seeds come from.

        Raises `AgentError` for an unknown agent or another number of others, and whatever building an agent raises.
        """
        self.rules = checked_rules(rules)
        self.seed = check_counter("seed", seed)
        self._players = _players([contestant, *three_others("against", against)], self.rules)
        self._deals = np.empty((0, len(_FIGURES), NUM_SEATS))  # [block, figure, seat of the contestant]
        self._games = np.empty((0, NUM_SEATS))

    @property
    def contestant(self) -> str:
        """What the agent that is measured is called."""
        return self._players[0][0]

    @property
    def played(self) -> int:
        """Blocks played so far, of either kind."""
        return len(self._deals) + len(self._games)

    def play_deals(self, count: int, chunk: int = CHUNK) -> Iterator[int]:
        """Play blocks of one deal, at level scores, until there are ``count``; yields how many each chunk added.

        Under a rotation each block has one of its calls, in turn. Raises `AgentError` when an agent errs.
        """
        while len(self._deals) < count:
            numbers = np.arange(len(self._deals), min(len(self._deals) + chunk, count))
            rules = rules_of(self.rules, "deal", None)
            self._deals = np.concatenate([self._deals, _figures(self._play(rules, numbers), rules)])
            yield len(numbers)

    def play_games(self, count: int, chunk: int = CHUNK // 4) -> Iterator[int]:
        """Play blocks of one whole game until there are ``count``; otherwise like `play_deals`."""
        while len(self._games) < count:
            numbers = np.arange(len(self._games), min(len(self._games) + chunk, count))
            standings = standings_of(self._play(self.rules, numbers), compile_rules(self.rules), WIN)
            self._games = np.concatenate([self._games, _own(standings) + 1 / NUM_SEATS])
            yield len(numbers)

    def result(self) -> Result:
        """The figures of what has been played so far."""
        (contestant, _), *others = self._players
        left, across, right = (name for name, _ in others)
        result = Result(contestant, (left, across, right))
        if len(self._deals):
            standing, card_points, shots = self._deals.transpose(1, 0, 2)
            result = replace(
                result,
                edge=mean_interval(4 / 3 * standing.mean(axis=1)),
                card_points=mean_interval(card_points.mean(axis=1)),
                shots=rate_interval(int(shots.sum()), shots.size),
            )
        if len(self._games):
            result = replace(result, win_share=mean_interval(self._games.mean(axis=1)))
        return result

    def _play(self, rules: Rules, numbers: NDArray[np.int64]) -> NDArray[Any]:
        """The ended games of these blocks, `GAME` records of shape ``(4 * len(numbers),)``: four rows a block."""
        games = new_games(rules, self.seed, np.repeat(numbers, NUM_SEATS))
        seats = np.arange(NUM_SEATS)
        places = (seats - seats[:, None]) % NUM_SEATS  # [seat of the contestant, seat]: the player that sits there
        play_out(games, compile_rules(rules), np.tile(places, (len(numbers), 1)), self._players)
        return games


def evaluate(
    contestant: str | Agent,
    against: str | Agent | Sequence[str | Agent] = "random",
    rules: Rules | None = None,
    *,
    deals: int = 2000,
    games: int = 500,
    seed: int = SEED,
) -> Result:
    """The result of a `Match` of ``deals`` blocks of one deal and ``games`` blocks of one game; see there."""
    whole("deals", deals, 0)
    whole("games", games, 0)
    match = Match(contestant, against, rules, seed)
    for _ in (*match.play_deals(deals), *match.play_games(games)):
        pass
    return match.result()


def play_out(games: NDArray[Any], compiled: NDArray[Any], lineup: NDArray[np.int64], players: Sequence[Player]) -> None:
    """Play `GAME` records to their ends, in place.

    Args:
        games: shape ``(B,)``, none of them over.
        compiled: of `compile_rules`.
        lineup: ``int64[B, 4]``, who sits at each seat, as an index into ``players``.
        players: those that are one and the same object are asked together.

    Raises `AgentError` when an agent errs.
    """
    first = {id(agent): index for index, (_, agent) in reversed(list(enumerate(players)))}
    lineup = np.array([first[id(agent)] for _, agent in players])[lineup]
    live = np.arange(len(games))
    while len(live):
        now = games.take(live)  # with put much faster than indexing, which copies records field by field
        views = views_of(now, compiled, now["seat"].astype(np.int64))
        apply_all(now, compiled, ask_each(players, lineup[live, now["seat"]], views, keys_of(now)))
        games.put(live, now)
        live = live[now["phase"] != OVER]


def _figures(games: NDArray[Any], rules: Rules) -> NDArray[np.float64]:
    """What the contestant scored in ended deals, ``float64[N, 3, 4]`` by block, figure and seat."""
    standings = standings_of(games, compile_rules(rules), POINTS)
    shots = games["shooter"][:, None] == np.arange(NUM_SEATS)
    return np.stack([_own(standings), _own(games["points"]), _own(shots)], axis=1)


def _own(by_seat: NDArray[Any]) -> NDArray[Any]:
    """The contestant's share of ``[4 * N, 4]``: ``[N, 4]`` by block and its seat, which is the row's in the block."""
    return by_seat.reshape(-1, NUM_SEATS, NUM_SEATS).diagonal(axis1=1, axis2=2)


def _players(specs: Sequence[str | Agent], rules: Rules) -> list[Player]:
    """Names and agents."""
    agents = make_agents(specs, rules)
    return [
        (spec if isinstance(spec, str) else type(spec).__name__, agent)
        for spec, agent in zip(specs, agents, strict=True)
    ]
