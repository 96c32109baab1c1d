"""What a seat plays for, as a standing in the game; a reward is the change of a standing.

``"points"``: the table's mean of the card points minus one's own, trick by trick, in points. A deal that ends the game
by a shot counts ``+3 * SHOT_VALUE`` for the shooter and ``-SHOT_VALUE`` for each other instead of its points; where
a shot has another effect, what was entered counts. ``"win"``: at the game's end one's share of the win minus 1/4.
``"equity"``: the chance of winning minus 1/4, estimated at each deal's end from the scores and who deals next, see
`dnfh_env.equity`; at the game's end the share of the win takes its place, and a game that is cut off counts as if it
went on. So what it pays over a game sums to one's share of the win minus the chance at the start.

All sum to 0 over the table at every moment. In kernels an objective is an `OBJECTIVE` record of `compile_objective`.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dnfh_env._bits import plain, popcount
from dnfh_env.cards import NUM_CARDS, NUM_SEATS
from dnfh_env.engine import NO_SEAT, OVER, PLAY, apply
from dnfh_env.equity import TABLE, equities, equity_table
from dnfh_env.errors import ArgumentError, one_of, shown
from dnfh_env.rules import SHOT_CODES, Rules

Reward = Literal["win", "points", "equity"]

SHOT_VALUE = 52
"""What a shot game costs each other seat in card points: a chosen constant, near what one is worth at level scores."""

EDGE = NUM_SEATS / (NUM_SEATS - 1)
"""The edge of a deal, the mean of the other three minus mine, beside its standing, the mean of all four minus mine."""
TWELFTHS = 12
"""Parts in which edges and shares of a win are whole numbers: edges are thirds of a point, a win is shared by four."""

WIN, POINTS, EQUITY = range(3)
REWARDS: dict[Reward, int] = {"win": WIN, "points": POINTS, "equity": EQUITY}
_SHOT_GAME = SHOT_CODES["game"]

OBJECTIVE: np.dtype[Any] = np.dtype((np.record, np.dtype([("kind", np.int64), ("equity", TABLE)], align=True)))
"""What the kernels know of a reward: its number in `REWARDS`, and the table if it needs one."""


def compile_objective(reward: Reward, rules: Rules) -> NDArray[Any]:
    """A reward under some rules as an array of one `OBJECTIVE` record.

    Raises `ArgumentError` for ``"equity"`` where the rules have no table, see `dnfh_env.equity.equity_table`.
    """
    record = np.zeros(1, OBJECTIVE)
    record["kind"] = REWARDS[reward]
    if reward == "equity":
        record["equity"] = equity_table(rules).record
    return record


def copied_objective(objective: NDArray[Any]) -> NDArray[Any]:
    """One of the very type that kernels are compiled for, which a pickle does not give back."""
    record = np.zeros(1, OBJECTIVE)
    record[:] = objective
    return record


@njit
def standing(g: Any, r: Any, kind: Any) -> Any:
    """The standing of the four seats, floats that sum to 0. ``kind`` is `WIN` or `POINTS`, which need no table."""
    if kind == WIN:
        return win_share(g, 0), win_share(g, 1), win_share(g, 2), win_share(g, 3)
    if g.phase != OVER:
        return centred(g.scores, g.points, 1)
    if g.shooter == NO_SEAT or r.shot != _SHOT_GAME:
        return centred(g.scores, g.points, 0)
    before = centred(g.scores, g.entered, -1)
    return (
        before[0] + shot_worth(g, 0),
        before[1] + shot_worth(g, 1),
        before[2] + shot_worth(g, 2),
        before[3] + shot_worth(g, 3),
    )


@njit
def equity_standing(g: Any, t: Any) -> Any:
    """The standing for `EQUITY` with a `TABLE` record; it stays the same from one deal's end to the next."""
    if g.winners:
        return win_share(g, 0), win_share(g, 1), win_share(g, 2), win_share(g, 3)
    cut_off = g.phase == OVER  # when the deal has not moved on
    a, b, c, d = equities(g.scores, np.int64(g.dealer) + cut_off, t)
    return a - 0.25, b - 0.25, c - 0.25, d - 0.25


@njit(inline="always")
def win_share(g: Any, seat: Any) -> Any:
    """Share of the win minus 1/4; 0 while there is no winner."""
    winners = popcount(np.uint64(g.winners))
    return 0.0 if winners == 0 else (np.int64(g.winners) >> seat & 1) / winners - 0.25


@njit(inline="always")
def shot_worth(g: Any, seat: Any) -> Any:
    """What a shot game counts for a seat."""
    return 3.0 * SHOT_VALUE if seat == g.shooter else -1.0 * SHOT_VALUE


@njit(inline="always")
def centred(scores: Any, points: Any, weight: Any) -> Any:
    """The table's mean minus one's own of ``scores + weight * points``."""
    a = np.int64(scores[0]) + weight * np.int64(points[0])
    b = np.int64(scores[1]) + weight * np.int64(points[1])
    c = np.int64(scores[2]) + weight * np.int64(points[2])
    d = np.int64(scores[3]) + weight * np.int64(points[3])
    mean = (a + b + c + d) / 4
    return mean - a, mean - b, mean - c, mean - d


@njit(inline="always")
def apply_and_pay(g: Any, r: Any, action: Any, objective: Any) -> Any:
    """Make one legal decision and return what it pays: four floats, the change of the standings."""
    if g.phase != PLAY or g.num_plays & 3 != 3:  # no standing changes but by the last card of a trick
        apply(g, r, action)
        return 0.0, 0.0, 0.0, 0.0
    if objective.kind == EQUITY:
        return apply_and_pay_equity(g, r, action, objective.equity)
    before = standing(g, r, objective.kind)
    apply(g, r, action)
    return change(before, standing(g, r, objective.kind))


@njit
def apply_and_pay_equity(g: Any, r: Any, action: Any, t: Any) -> Any:
    """`apply_and_pay` for `EQUITY`, which the last card of a deal changes and no other."""
    if g.num_plays != NUM_CARDS - 1:
        apply(g, r, action)
        return 0.0, 0.0, 0.0, 0.0
    before = equity_standing(g, t)
    apply(g, r, action)
    return change(before, equity_standing(g, t))


@njit(inline="always")
def change(before: Any, after: Any) -> Any:
    """From one standing to another."""
    return after[0] - before[0], after[1] - before[1], after[2] - before[2], after[3] - before[3]


@njit(cache=True)
def standings(games: Any, rules: Any, kind: Any, out: Any) -> None:
    """`standing` for each record into ``out``, ``float64[B, 4]``."""
    for i in range(games.shape[0]):
        found = standing(games[i], rules[0], kind)
        for s in range(4):
            out[i, s] = found[s]


def standings_of(games: NDArray[Any], rules: NDArray[Any], kind: int) -> NDArray[np.float64]:
    """Standings of games by seat, ``float64[B, 4]``; ``kind`` is `WIN` or `POINTS`."""
    out = np.empty((len(games), 4))
    standings(plain(games), rules, int(kind), out)
    return out


def check_reward(reward: str) -> Reward:
    """The name of a reward, or `ArgumentError` that lists them."""
    name: Reward = one_of("reward", reward, REWARDS)
    return name


def check_episode(episode: str, allowed: tuple[str, ...]) -> Any:
    """The kind of an episode, or `ArgumentError` that lists them."""
    return one_of("episode", episode, allowed)


def rules_of(rules: Rules, episode: str, max_deals: int | None) -> Rules:
    """The rules of an episode: ``"deal"`` is a game of one; raises `ArgumentError` where they do not fit together."""
    if episode == "deal":
        if max_deals not in (None, 1):
            raise ArgumentError(f"max_deals: {shown(max_deals)} does not go with episode='deal', which has one")
        max_deals = 1
    return rules if max_deals is None else rules.replace(max_deals=max_deals)


def reward_of(episode: str, reward: str | None) -> Reward:
    """The reward of an episode, by default that of its kind; raises `ArgumentError` where they do not fit together."""
    if reward is None:
        return "points" if episode == "deal" else "win"
    if reward == "win" and episode == "deal":
        raise ArgumentError("reward: 'win' needs whole games, episode='deal' goes with 'points'")
    return check_reward(reward)


def illegal_reward(rules: Rules, reward: Reward) -> float:
    """What an illegal action that ends an episode costs: more than lies between the returns of any two legal games.

    The limit stands in eight times, since a set position may begin with scores at it.
    """
    if reward in ("win", "equity"):
        return -2.0
    return -float(8 * rules.score_limit + 5 * SHOT_VALUE)
