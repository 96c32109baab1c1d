"""Luck taken out of scores, without a bias: control variates whose expectation is known to be 0.

A *covariate* is a figure of chance alone, with expectation 0 before chance acts: how much better a hand is than the
average hand, or the cards drawn from a kitty than the average of the twelve. `cross_fitted` takes a multiple of the
covariates off the scores. Since the multiple for a score is estimated from other scores, the mean stays unbiased
whatever it is, good or bad; a good one makes the interval narrower, by the reported factor.

=======================  ==========================================================================================
chance                   covariates
=======================  ==========================================================================================
the deal, one seat       `single_seat`, with `hand_luck` and `hand_covariates`: for logs, see `logged_deals`
the deal, all seats      `deal_covariates`: for blocks, in which a contestant has each of the four hands in turn
the kitty's shuffle      `kitty_covariates`
an agent's own draws     `policy_covariates`, for a `dnfh_env.agent.StochasticAgent`
=======================  ==========================================================================================

The terms for kitties and draws are those of AIVAT (Burch, Schmid, Moravčík, Morrill, Bowling: AIVAT: A New Variance
Reduction Technique for Agent Evaluation in Imperfect Information Games, AAAI 2018), with a value function that is
simple and fixed, and a weight that is fitted. Control variates: Owen, Monte Carlo theory, methods and examples, ch. 8;
cross-fitting: Chernozhukov et al., Double/debiased machine learning, Econometrics Journal 21 (2018), section 3.

The factor by which the variance falls is small in this game, where most of it comes from who shoots, and is reported
even where it is 1. ``benchmarks/fit_hand_value.py --measure`` prints, for 10,000 deals:

===================  =========  =======  =====  =====  =====  =====  =====  =====  =====
one against three               calls    one seat             blocks
------------------------------  -------  -------------------  --------------------------
contestant           others              hand   kitty  draws  deal   kitty  draws  all
===================  =========  =======  =====  =====  =====  =====  =====  =====  =====
heuristic            greedy-v1  any      1.097  1.000  1.000  1.072  1.000  1.000  1.072
greedy-v1            heuristic  any      1.053  1.000  1.000  1.025  1.000  1.000  1.025
heuristic            heuristic  any      1.021  1.000  1.000  1.000  1.000  1.000  1.000
random               greedy-v1  any      1.008  1.000  1.007  1.018  1.000  1.010  1.028
learned:sample=true  heuristic  any      1.023  1.000  1.000  1.011  1.000  1.000  1.011
heuristic            greedy-v1  kitty    1.063  1.000  1.000  1.042  1.000  1.000  1.042
greedy-v1            heuristic  kitty    1.079  1.003  1.000  1.010  1.000  1.000  1.010
heuristic            heuristic  kitty    1.036  1.000  1.000  1.000  1.000  1.000  1.000
random               greedy-v1  kitty    1.012  1.000  1.014  1.018  1.001  1.014  1.035
===================  =========  =======  =====  =====  =====  =====  =====  =====  =====
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from math import comb
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agents.stats import Interval, mean_interval
from dnfh_env._bits import unpack
from dnfh_env.agent import legal_rows
from dnfh_env.cards import DECK, HAND_SIZE, NUM_CARDS, NUM_SEATS, RANKS, SUITS
from dnfh_env.engine import NUM_ACTIONS, PICK, PLAY
from dnfh_env.errors import ArgumentError, shown, whole
from dnfh_env.game import Game
from dnfh_env.objective import EDGE, POINTS, standings_of
from dnfh_env.rules import KITTY, Rules, checked_rules, compile_rules

HAND_VALUE = Path(__file__).with_name("hand_value.json")
"""What ``benchmarks/fit_hand_value.py`` found the features of a hand to be worth."""
HAND_VALUE_FORMAT = "dnfh-hand-value-1"

# --- the adjustment ---------------------------------------------------------------------------------------------

ENOUGH = 10
"""Scores for each covariate, below which nothing is adjusted: the weights would be noise."""
STRENGTHS = np.array([0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, np.inf])
"""Of the ridge, beside covariates of variance 1; the last one leaves the scores as they are."""

CONSTANT = 1e-4
"""Standard deviation, beside the root of the mean square, up to which a covariate counts as a constant."""


@dataclass(frozen=True)
class Adjusted:
    """Scores with luck taken out."""

    values: NDArray[np.float64]
    """``float64[B]``, with the expectation of the scores."""
    interval: Interval
    """Of their mean."""
    factor: float
    """Variance of the scores over that of ``values``: how many times as many scores would say as much. It can come out
    slightly below 1; it is 1 where nothing was adjusted."""


def cross_fitted(values: ArrayLike, covariates: ArrayLike, folds: int = 10) -> Adjusted:
    """Scores minus what chance did to them, estimated by ridge regression on covariates with expectation 0.

    Score ``i`` belongs to fold ``i % folds`` and is adjusted with slopes from the other folds, so that each adjusted
    score has exactly the expectation of the score. The ridge is chosen there too, by generalised cross-validation
    (Golub, Heath, Wahba, Technometrics 21, 1979). With fewer than `ENOUGH` scores for each covariate, or fewer than two
    for each fold, the scores stay as they are.

    Args:
        values: ``float64[B]``, independent scores.
        covariates: ``float64[B, k]`` or ``float64[B]``, with expectation 0 for every score, given all other scores.
        folds: at least 2.

    Raises `ArgumentError` for other shapes, no scores, or numbers that are not finite.
    """
    y, x = _checked_sample(values, covariates)
    whole("folds", folds, 2)
    rows, columns = x.shape
    if columns == 0 or rows < max(ENOUGH * columns, 2 * folds):
        return Adjusted(y.copy(), mean_interval(y), 1.0)
    adjusted = y - _luck(y, x, np.arange(rows) % folds)
    return Adjusted(adjusted, mean_interval(adjusted), _ratio(y.var(), adjusted.var()))


def _checked_sample(values: ArrayLike, covariates: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Scores ``[B]`` and covariates ``[B, k]``."""
    y, x = np.asarray(values, np.float64), np.asarray(covariates, np.float64)
    x = x[:, None] if x.ndim == 1 else x
    if y.ndim != 1 or not len(y) or x.ndim != 2 or len(x) != len(y):
        raise ArgumentError(f"cross_fitted: expected B > 0 values and as many covariates, got {y.shape} and {x.shape}")
    if not (np.isfinite(y).all() and np.isfinite(x).all()):
        raise ArgumentError("cross_fitted: values and covariates must be finite numbers")
    return y, x


def _luck(y: NDArray[np.float64], x: NDArray[np.float64], fold: NDArray[np.int64]) -> NDArray[np.float64]:
    """``x @ slopes`` for each row, with the slopes of the other folds."""
    # A shift of y changes no slope and keeps the sums small. einsum adds in one order, on any number of threads.
    rows = np.column_stack([np.ones(len(y)), y - y.mean(), x])
    moments = np.array(
        [np.einsum("ij,ik->jk", part, part) for part in (rows[fold == f] for f in range(fold.max() + 1))]
    )
    slopes = np.array([_slopes(moments.sum(axis=0) - own) for own in moments])
    luck: NDArray[np.float64] = np.einsum("ij,ij->i", x, slopes[fold])
    return luck


def _slopes(moments: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ridge slopes ``float64[k]`` from the summed products of rows ``(1, y, x)``, with the best of `STRENGTHS`."""
    count, means = moments[0, 0], moments[0] / moments[0, 0]
    covariance = moments[1:, 1:] / count - np.outer(means[1:], means[1:])
    scale = np.sqrt(np.maximum(covariance.diagonal()[1:], 0))
    # What is constant in these rows, rounding errors aside, has no slope: in the rows to adjust it may well vary.
    scale = np.where(scale > CONSTANT * np.sqrt(moments.diagonal()[2:] / count), scale, np.inf)
    roots, axes = np.linalg.eigh(covariance[1:, 1:] / np.outer(scale, scale))
    along = axes.T @ (covariance[0, 1:] / scale)
    kept = 1 / (np.maximum(roots, 0) + STRENGTHS[:, None])  # [strength, axis]
    error = covariance[0, 0] - (along**2 * (2 * kept - roots * kept**2)).sum(axis=1)
    freedom = 1 - (1 + (roots * kept).sum(axis=1)) / count
    best = kept[(error / freedom**2).argmin()]
    slopes: NDArray[np.float64] = axes @ (best * along) / scale
    return slopes


def _ratio(before: float, after: float) -> float:
    """Of variances; 1 where neither varies."""
    return float(before / after) if after > 0 else 1.0 if before <= 0 else float("inf")


# --- features of a hand -----------------------------------------------------------------------------------------

_RANKS = len(RANKS)
_PATTERNS = np.arange(1 << _RANKS)
"""All sets of cards of one suit, the two as the lowest bit."""
_LENGTH = np.array([pattern.bit_count() for pattern in range(1 << _RANKS)])
_ALL_HANDS = comb(NUM_CARDS, HAND_SIZE)


class Statistic(NamedTuple):
    """A whole number that a hand has as the sum over its suits, and what it may be for a feature to be there."""

    name: str
    tables: NDArray[np.int8]
    """``int8[4, 8192]``: what each set of cards of each suit adds, 0 or more."""
    bounds: tuple[tuple[int, int], ...]
    """Features: the least and the greatest number for each."""

    def of(self, suits: NDArray[np.int64]) -> NDArray[np.int64]:
        """The number of hands, ``int64[n]``, each given as its sets of four suits, ``int64[n, 4]``."""
        found: NDArray[np.int64] = self.tables[np.arange(len(SUITS)), suits].sum(axis=1, dtype=np.int64)
        return found

    def features(self, suits: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which features hands have, ``bool[n, len(bounds)]``."""
        number = self.of(suits)[:, None]
        least, greatest = np.array(self.bounds).T
        found: NDArray[np.bool_] = (least <= number) & (number <= greatest)
        return found

    def chances(self) -> NDArray[np.float64]:
        """How likely a hand at random has each feature, ``float64[len(bounds)]``: hands counted, over all of them."""
        hands = hands_by_number(self.tables).tolist()
        return np.array([sum(hands[low : high + 1]) / _ALL_HANDS for low, high in self.bounds])


def hands_by_number(tables: NDArray[np.int8]) -> NDArray[np.int64]:
    """How many of the hands of 13 have each number, ``int64[m]``, the number being a sum over suits as in `Statistic`.

    Suit by suit, by how many cards the suits so far hold and what they add up to: exact, without a walk over hands.
    """
    most = int(tables.max(axis=1).sum(dtype=np.int64))
    ways = np.zeros((HAND_SIZE + 1, most + 1), np.int64)  # [cards, number]
    ways[0, 0] = 1
    for table in tables:
        before, ways = ways, np.zeros_like(ways)
        kinds, counts = np.unique(np.stack([_LENGTH, table]), axis=1, return_counts=True)
        for (cards, adds), count in zip(kinds.T, counts, strict=True):
            ways[cards:, adds:] += count * before[: HAND_SIZE + 1 - cards, : most + 1 - adds]
    hands: NDArray[np.int64] = ways[HAND_SIZE]
    return hands


def _of_suit(suit: int, table: NDArray[Any]) -> NDArray[np.int8]:
    """Tables that count one suit alone."""
    tables = np.zeros((len(SUITS), len(_PATTERNS)), np.int8)
    tables[suit] = table
    return tables


def _of_each(table: NDArray[Any]) -> NDArray[np.int8]:
    """Tables that count all suits alike."""
    return np.tile(table.astype(np.int8), (len(SUITS), 1))


def _exactly(*numbers: int, most: int) -> tuple[tuple[int, int], ...]:
    """Bounds: each number alone, the last one also for what is greater."""
    return (*((number, number) for number in numbers[:-1]), (numbers[-1], most))


def _tops(count: int) -> NDArray[np.int64]:
    """How many of a suit's highest ``count`` cards a set holds."""
    tops: NDArray[np.int64] = _LENGTH[_PATTERNS >> (_RANKS - count)]
    return tops


def _lower(rank: str) -> NDArray[np.int64]:
    """How many cards below a rank a set holds."""
    lower: NDArray[np.int64] = _LENGTH[_PATTERNS & ((1 << RANKS.index(rank)) - 1)]
    return lower


def _holds(rank: str) -> NDArray[np.int64]:
    """Whether a set holds a rank, 0 or 1."""
    return _PATTERNS >> RANKS.index(rank) & 1


def _sure_tricks() -> NDArray[np.int64]:
    """Tricks that a set takes if it leads them out and all others follow from suits split evenly."""
    run = np.array([sum(1 for _ in itertools.takewhile(int, f"{pattern:013b}")) for pattern in _PATTERNS.tolist()])
    longest_of_others = -(-(_RANKS - _LENGTH) // (NUM_SEATS - 1))
    return np.where(run >= longest_of_others, _LENGTH, run)


_GUARDS = 5
"""More lower cards than this beside an honour are like this many."""


def _single_suits() -> Iterator[Statistic]:
    """What matters in one suit: its length, a queen's or spade honours' lower cards, and the jack's higher ones."""
    for suit, name in enumerate(SUITS):
        yield Statistic(f"length {name}", _of_suit(suit, _LENGTH), _exactly(*range(9), most=_RANKS))
        guarded = _holds("Q") * (1 + np.minimum(_lower("Q"), _GUARDS))
        yield Statistic(f"below Q{name}", _of_suit(suit, guarded), _exactly(*range(1, 2 + _GUARDS), most=1 + _GUARDS))
    above = (_tops(2) > 0) * (1 - _holds("Q")) * (1 + np.minimum(_lower("Q"), _GUARDS))
    bounds = _exactly(*range(1, 2 + _GUARDS), most=1 + _GUARDS)
    yield Statistic("below KS, AS without QS", _of_suit(SUITS.index("S"), above), bounds)
    yield _jack()


def _jack() -> Statistic:
    """The jack of diamonds, by how many higher diamonds are with it."""
    return Statistic("above JD", _of_suit(SUITS.index("D"), _holds("J") * (1 + _tops(3))), _exactly(1, 2, 3, 4, most=4))


def _shapes() -> Iterator[Statistic]:
    """What matters of a hand as a whole: most of it says how near it is to a shot."""
    yield Statistic("voids", _of_each(_LENGTH == 0), ((1, 1), (2, 3)))
    yield Statistic("aces, kings, queens", _of_each(_tops(3)), _exactly(*range(1, 8), most=12))
    yield Statistic("sure tricks", _of_each(_sure_tricks()), _exactly(*range(1, 10), most=HAND_SIZE))
    for tops, length in itertools.product((0, 2, 3, 4), (5, 6, 7)):
        suits = _of_each((_tops(4) >= tops) & (length <= _LENGTH))
        yield Statistic(f"a suit of {length}, {tops} of A K Q J", suits, ((1, 2),))


class _Features(NamedTuple):
    """Statistics with the chances of their features."""

    statistics: tuple[Statistic, ...]
    chances: NDArray[np.float64]

    def of(self, hands: NDArray[np.uint64]) -> NDArray[np.float64]:
        """Features of hands minus their chances, ``float64[n, k]``."""
        suits = _suits(hands)
        return np.concatenate([s.features(suits) for s in self.statistics], axis=1) - self.chances

    def names(self) -> list[str]:
        """What a person calls them."""
        return [f"{s.name}: {low}-{high}" for s in self.statistics for low, high in s.bounds]


def _features(statistics: Iterable[Statistic]) -> _Features:
    found = tuple(statistics)
    return _Features(found, np.concatenate([s.chances() for s in found]))


@cache
def _hand_features() -> _Features:
    return _features((*_single_suits(), *_shapes()))


@cache
def _deal_features() -> _Features:
    return _features((_jack(), *_shapes()))


def _suits(hands: NDArray[np.uint64]) -> NDArray[np.int64]:
    """The set of each suit in hands ``uint64[n]``: ``int64[n, 4]``."""
    shifts = np.arange(0, NUM_CARDS, _RANKS, dtype=np.uint64)
    return (hands[:, None] >> shifts & np.uint64(_PATTERNS[-1])).astype(np.int64)


def _checked_hands(hands: ArrayLike, ndim: int) -> NDArray[np.uint64]:
    """Hands as masks; `ArgumentError` unless they have thirteen cards each, of one deck where there are four."""
    found = np.asarray(hands)
    if found.ndim != ndim or found.shape[1:] != (NUM_SEATS,) * (ndim - 1) or found.dtype.kind not in "iu":
        wanted = "[n]" if ndim == 1 else f"[n, {NUM_SEATS}]"
        raise ArgumentError(f"hands: expected masks uint64{wanted}, got {found.dtype}{list(found.shape)}")
    masks = found.astype(np.uint64)
    sizes = _LENGTH[_suits(masks.ravel())].sum(axis=1)
    if (masks & ~np.uint64(DECK)).any() or (sizes != HAND_SIZE).any():
        raise ArgumentError(f"hands: expected {HAND_SIZE} cards in each, as a dealt hand has before the pass")
    if ndim == 2 and (np.bitwise_or.reduce(masks, axis=1) != np.uint64(DECK)).any():
        raise ArgumentError("hands: the four of a deal have a card twice")
    return masks


def _holding(sets: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Sets of cards ``uint64[n]`` as 0 and 1, ``float64[n, 52]``."""
    return unpack(sets[:, None])[:, :NUM_CARDS].astype(np.float64)


# --- one seat of a deal -----------------------------------------------------------------------------------------


class _HandValue(NamedTuple):
    """What was fitted, in points of edge a deal."""

    features: NDArray[np.float64]
    """Of the columns of `hand_covariates`."""
    cards: NDArray[np.float64]
    """Of cards alone, ``float64[52]``: of a fit that knows nothing else."""


@cache
def _hand_value() -> _HandValue:
    """What is in `HAND_VALUE`."""
    content = json.loads(HAND_VALUE.read_text(encoding="utf-8"))
    names = hand_feature_names()
    if content["format"] != HAND_VALUE_FORMAT or list(content["features"]) != names:
        raise ArgumentError(f"{HAND_VALUE.name}: made for other features; run benchmarks/fit_hand_value.py")
    return _HandValue(*(np.array([*content[part].values()]) for part in ("features", "cards")))


def hand_feature_names() -> list[str]:
    """What the columns of `hand_covariates` are called."""
    return [*(rank + suit for suit in SUITS for rank in RANKS), *_hand_features().names()]


def hand_covariates(hands: ArrayLike) -> NDArray[np.float64]:
    """Features of dealt hands minus their chances in a hand at random, ``float64[n, k]``; see `hand_feature_names`.

    They are each of the 52 cards, lengths of suits, lower cards beside queens and high spades, and what makes a shot.
    The chances come from counting hands, so that the expectation is 0.

    Args:
        hands: ``uint64[n]``, masks of thirteen cards.

    Raises `ArgumentError` for anything else.
    """
    masks = _checked_hands(hands, 1)
    return np.concatenate([_holding(masks) - HAND_SIZE / NUM_CARDS, _hand_features().of(masks)], axis=1)


def hand_luck(hands: ArrayLike) -> NDArray[np.float64]:
    """How much better than average hands are in the hands of ``heuristic`` among its like, in points of edge a deal.

    A linear function of `hand_covariates` with the coefficients in `HAND_VALUE`, ``float64[n]``; the expectation is 0.
    """
    return hand_covariates(hands) @ _hand_value().features


def single_seat(values: ArrayLike, hands: ArrayLike) -> Adjusted:
    """Scores of one seat in deals that nobody played twice, with the luck of its hands taken out; see `cross_fitted`.

    With many deals it fits the features of hands itself, beside `hand_luck`; with few it trusts `hand_luck` alone.

    Args:
        values: ``float64[n]``, one score a deal, such as the edge of a seat; whoever played.
        hands: ``uint64[n]``, the hand that the seat was dealt each time, before the pass. They must have been dealt at
            random, and each deal of a log must be in it, whatever the cards were.

    Raises `ArgumentError` for hands or values that cannot be.

    ::

        log = logged_deals(open("games.jsonl"))
        print(single_seat(log.edges[:, 0], log.hands[:, 0]).interval)
    """
    covariates = hand_covariates(hands)
    luck = covariates @ _hand_value().features
    many = len(luck) >= MANY * (1 + covariates.shape[1])
    return cross_fitted(values, np.column_stack([luck, covariates]) if many else luck)


MANY = 20
"""Deals for each feature of hands from which `single_seat` fits them itself."""


# --- all seats of a deal ----------------------------------------------------------------------------------------


def deal_covariates(hands: ArrayLike) -> NDArray[np.float64]:
    """Features of deals minus their expectation, ``float64[B, k]``, for blocks with a contestant at all four seats.

    Each counts the hands of the deal that have a feature. What is linear in a hand's cards is of no use here, since
    over four hands it sums to a constant; left are shapes: voids, strong suits, and which cards lie together.

    Args:
        hands: ``uint64[B, 4]``, the four dealt hands of each block.

    Raises `ArgumentError` for anything else.
    """
    masks, features = _checked_hands(hands, 2), _deal_features()
    return sum((features.of(masks[:, seat]) for seat in range(NUM_SEATS)), np.zeros(len(features.chances)))


# --- the kitty --------------------------------------------------------------------------------------------------


def kitty_covariates(games: NDArray[Any]) -> NDArray[np.float64]:
    """What the kitty's shuffle gave to each seat, ``float64[n, 4]``: its three cards less the mean of three (R5).

    Cards count as `HAND_VALUE` has them, in points of edge a deal. Whatever twelve cards are in the kitty, each is as
    likely to go to one seat as to another, so the expectation is 0. It is 0 where there was no kitty.

    Args:
        games: `GAME` records ``[n]`` that have left the pass of their present deal behind.

    Raises `ArgumentError` for a kitty that has not been dealt out.
    """
    dealt = games["call"] == KITTY
    if (games["num_picks"][dealt] < NUM_SEATS * 3).any():
        raise ArgumentError("kitty_covariates: a kitty has not been dealt out yet")
    got = np.einsum("sc,c->s", _holding(games["kitty"].ravel()), _hand_value().cards)  # in the same order for any n
    by_seat = got.reshape(-1, NUM_SEATS)
    luck: NDArray[np.float64] = np.where(dealt[:, None], by_seat - by_seat.mean(axis=1, keepdims=True), 0.0)
    return luck


# --- an agent's own draws ---------------------------------------------------------------------------------------


def policy_covariates(
    views: NDArray[Any], probabilities: NDArray[np.float64], actions: NDArray[np.int64], rules: Rules | None = None
) -> NDArray[np.float64]:
    """What agents' draws did for them, ``float64[B]``: `worth` of the action less that of one drawn anew.

    Given the view the expectation is 0, so that sums over the decisions of a deal have expectation 0 too.

    Args:
        views: `VIEW` records, shape ``(B,)``, as the agent saw them.
        probabilities: ``float64[B, 64]``, of `dnfh_env.agent.StochasticAgent.probabilities` for these views.
        actions: ``int64[B]``, what it drew.
        rules: that were played, `Rules()` if not given.

    Raises `ArgumentError` unless the probabilities are over legal actions, sum to 1, and allow the action.
    """
    drawn = _checked_draws(views, probabilities, actions)
    values = worth(views, rules)
    luck: NDArray[np.float64] = values[np.arange(len(drawn)), drawn] - np.einsum("ij,ij->i", probabilities, values)
    return luck


def _checked_draws(views: NDArray[Any], probabilities: NDArray[np.float64], actions: ArrayLike) -> NDArray[np.int64]:
    """The actions, if they can have been drawn so."""
    drawn = np.asarray(actions)
    if probabilities.shape != (len(views), NUM_ACTIONS) or drawn.shape != (len(views),) or drawn.dtype.kind not in "iu":
        shapes = f"{list(probabilities.shape)} and {drawn.dtype}{list(drawn.shape)}"
        raise ArgumentError(f"policy_covariates: {len(views)} views with probabilities and actions {shapes}")
    legal = legal_rows(views["legal"]).view(np.bool_)
    sums = np.where(legal, probabilities, 0).sum(axis=1)
    if (probabilities < 0).any() or probabilities[~legal].any() or not np.allclose(sums, 1, rtol=0, atol=1e-6):
        raise ArgumentError("policy_covariates: probabilities must sum to 1 over the legal actions of each view")
    possible = (drawn >= 0) & (drawn < NUM_ACTIONS)
    if not possible.all() or not probabilities[np.arange(len(drawn)), drawn].all():
        raise ArgumentError(f"policy_covariates: an action of {shown(actions)} has probability 0")
    return drawn.astype(np.int64)


def worth(views: NDArray[Any], rules: Rules | None = None) -> NDArray[np.float64]:
    """A rough value of each action in points of edge, ``float64[B, 64]``; any value function would be unbiased.

    To pass a card is worth what the hand is better off without it. To follow costs the points in the trick with a card
    that would take it as it stands, and gives a third of them with another. A lead or a call is worth 0.
    """
    values = np.zeros((len(views), NUM_ACTIONS))
    values[views["phase"] == PICK, :NUM_CARDS] = -_hand_value().cards
    follows = (views["phase"] == PLAY) & (views["num_plays"] & 3 != 0)
    values[follows, :NUM_CARDS] = _trick_worth(views[follows], np.array(checked_rules(rules).points, np.float64))
    return values


def _trick_worth(views: NDArray[Any], points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of each card to a trick that has been led, ``float64[B, 52]``."""
    cards, best = np.arange(NUM_CARDS), views["best_card"].astype(np.int64)[:, None]
    takes = (cards // _RANKS == best // _RANKS) & (cards > best)
    table = np.bitwise_or.reduce(views["played"], axis=1) & ~np.bitwise_or.reduce(views["taken"], axis=1)
    stake = (_holding(table) @ points)[:, None] + points
    found: NDArray[np.float64] = np.where(takes, -stake, stake / (NUM_SEATS - 1))
    return found


# --- logs -------------------------------------------------------------------------------------------------------


def dealt_hands(games: NDArray[Any]) -> NDArray[np.uint64]:
    """The four hands as dealt, before the pass, in the present deal of `GAME` records ``[n]``: ``uint64[n, 4]``.

    The present deal of an ended game is its last one.
    """
    given = games["given"]
    opposite = [np.roll(given[:, :, 2 - d], -1 - d, axis=1) for d in range(3)]
    passed = np.bitwise_or.reduce(opposite, axis=0)
    received = np.where((games["call"] == KITTY)[:, None], games["kitty"], passed)
    dealt: NDArray[np.uint64] = (games["hand"] | games["played"]) & ~received | np.bitwise_or.reduce(given, axis=2)
    return dealt


@dataclass(frozen=True)
class LoggedDeals:
    """The finished deals of a log of games, in order."""

    hands: NDArray[np.uint64]
    """``uint64[n, 4]``, as dealt to each seat."""
    edges: NDArray[np.float64]
    """``float64[n, 4]``, what each seat scored; see `agents.arena` for the edge."""


def logged_deals(log: Iterable[Game | str]) -> LoggedDeals:
    """The finished deals of games.

    Args:
        log: games, or lines that `Game.to_json` wrote, such as an open file; empty lines are skipped.

    Raises `NotationError` for a line that is no game.
    """
    games = (Game.from_json(item) if isinstance(item, str) else item for item in log if not _is_blank(item))
    deals = [deal for game in games for deal in _deals_of(game)]
    hands, edges = zip(*deals, strict=True) if deals else ((), ())
    return LoggedDeals(
        np.array(hands, np.uint64).reshape(-1, NUM_SEATS), np.array(edges, np.float64).reshape(-1, NUM_SEATS)
    )


def _is_blank(item: Game | str) -> bool:
    return isinstance(item, str) and not item.strip()


def _deals_of(game: Game) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.float64]]]:
    """Dealt hands and edges of each deal that was finished, by seat."""
    game, compiled = game.copy(), compile_rules(game.rules)
    actions = [game.pop() for _ in range(len(game.history))][::-1]
    hands, scores = dealt_hands(game.record)[0], np.array(game.scores)
    for action in actions:
        deal = game.deal
        game.push(action)
        if game.is_over or game.deal != deal:
            standing = standings_of(game.record, compiled, POINTS)[0]
            yield hands, EDGE * (standing - (scores.mean() - scores))
            hands, scores = dealt_hands(game.record)[0], np.array(game.scores)
