"""Self-play: each decision of a learning seat is one sample, paid and judged by that seat alone; a policy learns so."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy

from agents.greedy import Greedy
from agents.learned.policy import PPOAgent, draw
from agents.learned.rollout import LEARNER, OPEN, REWARD_SCALE, Collector, Samples, are_sound
from agents.learned.self_play import Rollout, SelfPlay
from agents.learned.settings import Settings
from dnfh_env.agent import RandomAgent
from dnfh_env.batch import Batch
from dnfh_env.cards import DECK
from dnfh_env.engine import GAME, NEXT_GAME, PICK, keys_of
from dnfh_env.game import Game
from dnfh_env.objective import REWARDS, rules_of, standings_of
from dnfh_env.observation import COMPACT, FULL, LAYOUTS, STATE, pack, pack_state
from dnfh_env.rules import CALLS, Rules, compile_rules
from dnfh_env.seat_env import drawn_seats
from positions import ALL_CLUBS, SCORING, held, push
from test_kernels import run_python

SHORT = Rules(target=30, calls=("300", "120", "kitty"))
"""Games of about two deals."""
EVERYONE = ("self", "past", "greedy", "random", "self+greedy+past", "random+self+self")


def settings_of(**changes: Any) -> Settings:
    """A small run at three tables of the learner alone, or as asked; all opponents equally often."""
    opponents = changes.get("opponents", ("self",))
    base = {"shares": (1,) * len(opponents), "opponents": opponents, "tables": 3, "rollout": 120, "snapshots": 2}
    return Settings(**{**base, **changes})


# --- a policy that is no network ------------------------------------------------------------------------------------


def scattered(seeds: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Numbers from -1 to 1 that look random, one for each seed."""
    seeds = (seeds ^ seeds >> np.uint64(31)) * np.uint64(0x9E3779B97F4A7C15)
    seeds = (seeds ^ seeds >> np.uint64(29)) * np.uint64(0xBF58476D1CE4E5B9)
    return (seeds >> np.uint64(33)).astype(np.float64) / 2**30 - 1


def hashed(words: NDArray[np.uint64]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Logits and values that depend on every bit of what is seen."""
    odd = 2 * np.arange(words.shape[1], dtype=np.uint64) + np.uint64(0xD6E8FEB86659FD93)
    seeds = ((words ^ words >> np.uint64(32)) * odd).sum(axis=1, dtype=np.uint64)
    logits = 3 * scattered(seeds[:, None] + np.arange(1, 65, dtype=np.uint64) * np.uint64(0xA0761D6478BD642F))
    return logits.astype(np.float32), scattered(seeds).astype(np.float32)


def in_order(cards: list[str]) -> Callable[[NDArray[np.uint64]], tuple[NDArray[np.float32], NDArray[np.float32]]]:
    """A policy that plays the first of these cards it may, else the lowest id; it values a view at its cards / 52."""
    order = [Game.string_to_action(card) for card in cards]
    order += [action for action in range(64) if action not in order]
    logits = np.empty(64, np.float32)
    logits[order] = -1000.0 * np.arange(64)

    def decide(words: NDArray[np.uint64]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        cards_held = [int(word).bit_count() for word in words[:, 0] & np.uint64(DECK)]
        return np.tile(logits, (len(words), 1)), np.array(cards_held, np.float32) / np.float32(52)

    return decide


class Foremost:
    """A snapshot that plays its lowest or its highest legal action, and counts what it is asked."""

    def __init__(self, lowest: bool) -> None:
        self.lowest, self.asked = lowest, 0

    def act(self, views: NDArray[Any], rng: NDArray[np.uint64]) -> NDArray[np.int64]:
        self.asked += len(views)
        sets = [int(legal) for legal in views["legal"]]
        return np.array([((s & -s) if self.lowest else s).bit_length() - 1 for s in sets], np.int64)


def snapshots() -> list[Any]:
    return [Foremost(lowest=True), Foremost(lowest=False)]


# --- the slow reference ---------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Decision:
    """One decision of one learning seat, and all that follows from it."""

    words: NDArray[np.uint64]
    legal: int
    action: int
    log_prob: float
    value: float
    earned: float = 0.0
    closed: bool = False
    following: Decision | None = None
    """The next decision of the same seat in the same game; none if the game ended first."""


class Reference:
    """What a `Collector` does, table by table and by definition."""

    def __init__(self, settings: Settings, rules: Rules, seed: int, decide: Any, past: list[Any]) -> None:
        self.settings, self.decide = settings, decide
        self.rules = rules_of(rules, settings.episode, None)
        bots = sorted({name for names in settings.lineups() for name in names} - {"self", "past"})
        self.players = ["self", *past, *bots]
        self.chair = Collector(dataclasses.replace(settings, tables=1), rules, seed, decide, past)
        self.games = [Game(self.rules, seed, row) for row in range(settings.tables)]
        self.seated = [self.line_up(game) for game in self.games]
        self.noted: list[Decision] = []
        self.latest: dict[tuple[int, int], Decision] = {}
        self.ends: list[Game] = []

    def line_up(self, game: Game) -> list[Any]:
        """Who plays a game; that it follows from seed and number alone has tests of its own."""
        self.chair.batch.games[:] = game.record
        self.chair.begin(np.array([0]))
        return [self.players[who] for who in self.chair.occupants[0]]

    def standing(self, game: Game) -> NDArray[np.float32]:
        objective = REWARDS[self.settings.reward]
        return standings_of(game.record, compile_rules(self.rules), objective)[0].astype(np.float32)

    def collect(self) -> list[tuple[Decision, float]]:
        """The decisions that have closed, in the order made, each with its advantage."""
        while sum(decision.closed for decision in self.noted) < self.settings.rollout:
            for row in range(len(self.games)):
                self.move(row)
        found = [(decision, self.advantage(decision)) for decision in self.noted if decision.closed]
        self.noted = [decision for decision in self.noted if not decision.closed]
        return found

    def move(self, row: int) -> None:
        game = self.games[row]
        player, before = self.seated[row][game.seat], self.standing(game)
        game.push(self.learn(row) if player == "self" else game.choose(player))
        paid = self.standing(game) - before
        mine = {seat: decision for (table, seat), decision in self.latest.items() if table == row}
        for seat, decision in mine.items():
            decision.earned += float(paid[seat])
        if game.is_over:
            for seat, decision in mine.items():
                decision.closed = True
                del self.latest[row, seat]
            self.ends.append(game)
            record = game.record[0]
            self.games[row] = Game(self.rules, int(record["seed"]), int(record["game"]) + int(NEXT_GAME))
            self.seated[row] = self.line_up(self.games[row])

    def learn(self, row: int) -> int:
        """The learner's decision at a table, noted."""
        game = self.games[row]
        views = game.views([game.seat])
        if self.settings.critic == "state":
            words = pack_state(game.record, compile_rules(self.rules), np.array([game.seat]))
        else:
            words = pack(views, self.rules.target, LAYOUTS[self.settings.observation])
        logits, values = self.decide(words)
        actions, log_probs = draw(logits, views["legal"], keys_of(game.record))
        new = Decision(words[0], int(views["legal"][0]), int(actions[0]), float(log_probs[0]), float(values[0]))
        if (row, game.seat) in self.latest:
            previous = self.latest[row, game.seat]
            previous.closed, previous.following = True, new
        self.latest[row, game.seat] = new
        self.noted.append(new)
        return new.action

    def reward(self, decision: Decision) -> np.float32:
        return np.float32(decision.earned) * np.float32(REWARD_SCALE[self.settings.reward])

    def advantage(self, decision: Decision) -> float:
        """The sum of (gamma * lambda)**k * delta over the seat's own decisions that have closed."""
        gamma, weight, total = self.settings.gamma, 1.0, 0.0
        link: Decision | None = decision
        while link is not None and link.closed:
            after = 0.0 if link.following is None else link.following.value
            total += weight * (float(self.reward(link)) + gamma * after - link.value)
            weight *= gamma * self.settings.gae_lambda
            link = link.following
        return total


def agree(samples: Samples, advantages: NDArray[np.float32], reference: Reference) -> None:
    """Raise unless a rollout is what the reference finds."""
    expected = reference.collect()
    decisions = [decision for decision, _ in expected]
    assert len(samples) == len(advantages) == len(decisions)
    assert (samples.words == np.array([decision.words for decision in decisions])).all()
    assert samples.legal.tolist() == [decision.legal for decision in decisions]
    assert samples.actions.tolist() == [decision.action for decision in decisions]
    assert samples.values.tolist() == [decision.value for decision in decisions]
    assert samples.log_probs.tolist() == [decision.log_prob for decision in decisions]
    assert samples.rewards.tolist() == [reference.reward(decision) for decision in decisions]
    assert np.abs(advantages - np.array([advantage for _, advantage in expected])).max() < 1e-5


DEALS = {"rollout": 90}
GAMES = {"rollout": 200, "episode": "game"}
CASES: dict[str, tuple[dict[str, Any], Rules]] = {
    "self": (DEALS | {"gae_lambda": 0.75}, Rules()),
    "self at one table, TD": (DEALS | {"gae_lambda": 0.0, "tables": 1, "gamma": 0.9}, Rules()),
    "everyone": (DEALS | {"opponents": EVERYONE, "tables": 7, "gae_lambda": 0.75}, Rules()),
    "everyone, full, state": (
        DEALS | {"opponents": EVERYONE, "tables": 4, "observation": "full", "critic": "state", "gae_lambda": 1.0},
        Rules(calls=CALLS),
    ),
    "full": (DEALS | {"opponents": ("past", "self"), "observation": "full", "gamma": 0.5}, Rules.standard_hearts()),
    "compact, state": (DEALS | {"opponents": ("greedy",), "tables": 12, "critic": "state", "gae_lambda": 0.0}, Rules()),
    "bots alone against one": (DEALS | {"opponents": ("random", "past"), "tables": 6, "gae_lambda": 1.0}, Rules()),
    "games for points": (GAMES | {"opponents": EVERYONE, "gae_lambda": 1.0, "gamma": 0.97}, SHORT),
    "games cut off, for points": (GAMES | {"gae_lambda": 0.75, "gamma": 0.9}, SHORT.replace(target=300, max_deals=2)),
    "games for the win": (GAMES | {"reward": "win", "opponents": ("self", "greedy"), "gae_lambda": 1.0}, SHORT),
    "games cut off, for the win": (GAMES | {"reward": "win", "gae_lambda": 0.75}, SHORT.replace(max_deals=1)),
    "shots that cost points": (GAMES | {"tables": 2, "gae_lambda": 1.0}, SHORT.replace(shot="others", target=60)),
}


@pytest.mark.parametrize("name", CASES)
def test_rollouts_are_those_of_the_slow_reference(name: str) -> None:
    changes, rules = CASES[name]
    settings = settings_of(**changes)
    collector = Collector(settings, rules, 11, hashed, snapshots())
    reference = Reference(settings, rules, 11, hashed, snapshots())
    for _ in range(4):
        agree(*collector.collect(), reference)
    assert len(reference.ends) > 1
    if settings.episode == "game" and rules.max_deals:
        assert any(game.truncated for game in reference.ends)
    if settings.reward == "win" and not rules.max_deals:
        assert all(game.winners for game in reference.ends)


@pytest.mark.small
def test_a_few_rollouts_are_those_of_the_slow_reference() -> None:
    settings = settings_of(opponents=EVERYONE, tables=2, rollout=15, gae_lambda=0.5, gamma=0.9, critic="state")
    collector = Collector(settings, Rules(), 3, hashed, snapshots())
    reference = Reference(settings, Rules(), 3, hashed, snapshots())
    for _ in range(6):
        agree(*collector.collect(), reference)


def test_a_planted_fault_is_found() -> None:
    """The comparison sees a bootstrap through another seat, and a transition that was dropped while open."""
    settings = settings_of(rollout=60, tables=1)
    for fault in ("other seat", "dropped"):
        collector = Collector(settings, Rules(), 1, hashed, snapshots())
        reference = Reference(settings, Rules(), 1, hashed, snapshots())
        agree(*collector.collect(), reference)
        if fault == "dropped":
            reference.noted.pop()
        else:
            links = [decision for decision in reference.noted if not decision.closed]
            links[0].value = links[1].value
        with pytest.raises(AssertionError):
            agree(*collector.collect(), reference)


def test_a_restored_collector_goes_on_bit_by_bit() -> None:
    settings = settings_of(opponents=EVERYONE, tables=5, rollout=70, gamma=0.9)
    whole, broken, again = (Collector(settings, Rules(), 8, hashed, snapshots()) for _ in range(3))
    for _ in range(3):
        whole.collect(), broken.collect()
    again.restore({name: array.copy() for name, array in broken.state().items()})
    for _ in range(3):
        (samples, advantages), (resumed, theirs) = whole.collect(), again.collect()
        assert {k: v.tolist() for k, v in samples.columns().items()} == {
            k: v.tolist() for k, v in resumed.columns().items()
        }
        assert advantages.tolist() == theirs.tolist()


# --- games worked by hand -------------------------------------------------------------------------------------------


class Placed(Collector):
    """Every game begins at a position; its seed and number stay, so that each draws otherwise."""

    position: NDArray[Any]

    def begin(self, rows: NDArray[np.int64]) -> None:
        super().begin(rows)
        for row in rows:
            place(self, int(row), self.position)


def place(collector: Collector, row: int, record: NDArray[Any]) -> None:
    games = collector.batch.games
    seed, number = games[row]["seed"].item(), games[row]["game"].item()
    games[row] = record[0]
    games[row]["seed"], games[row]["game"] = seed, number
    collector.batch.look()


def placed(game: Game, cards: list[str], **changes: Any) -> Placed:
    """One table of four learners that play in this order, at the position of ``game``."""
    kind = type("PlacedHere", (Placed,), {"position": game.record})
    return kind(settings_of(tables=1, **changes), game.rules, 0, in_order(cards), snapshots())  # type: ignore[no-any-return]


LAST_TWO = (
    "1 0,0,0,0 J875.AK985.975.3/AT42.J6.KT6.AK76/K3.Q73.Q84.QJ984/Q96.T42.AJ32.T52 kitty 9S JS QS 2S 5S TS 7H 9H 3S 7S "
    "KS AS =7H9H7S/TSQSKS/5S9SJS/2S3SAS 2C 3C 6C JC 5D JD 7D TD 4C KC QC 8C 3D 2D 8D 6D 5C TC QH 9C 6S 5S 3S 7S 5H 6H "
    '4H 3H TS 9S 2S AD TH 8H 2H 9H QS JS AS KD 4D 9D AC QD ; deal=0 seed=616 game=0 rules={"max_deals":1}'
)
"""Left are 7C 7H, KH KS, 4S 8S and JH AH, and seat 2 leads: 4S JH 7C KS, then seat 1, the last to play and the taker,
KH 8S AH 7H. So JH costs seat 1 a point, and the three hearts seat 3 three."""
PLAYS = ["4S", "JH", "7C", "KS", "KH", "8S", "AH", "7H"]


def by_card(samples: Samples, numbers: NDArray[np.float32]) -> dict[str, float]:
    """Numbers in card points by the card played, in order."""
    return {
        Game.action_to_string(int(action)): round(float(number) * 52, 4)
        for action, number in zip(samples.actions, numbers, strict=True)
    }


@pytest.mark.small
def test_two_decisions_of_one_seat_in_a_row() -> None:
    """Views are worth the cards held: 2 at the first trick, then 1. KS earns -3/4 up to KH, 4S earns 1/4 up to 8S."""
    collector = placed(Game.from_notation(LAST_TWO), [], rollout=8, gamma=0.5, gae_lambda=0.5)
    samples, advantages = collector.collect()
    rewards = [0.25, 0.25, 0.25, -0.75, 0.75, 0.75, -2.25, 0.75]
    assert by_card(samples, samples.rewards) == dict(zip(PLAYS, rewards, strict=True))
    # the last ones: reward - 1; the first ones: reward + 1/2 * 1 - 2 + 1/4 * the last one's
    expected = [-1.3125, -2.0625, -1.3125, -2.3125, -0.25, -0.25, -3.25, -0.25]
    assert by_card(samples, advantages) == dict(zip(PLAYS, expected, strict=True))
    assert len(collector.state()["actions"]) == 0  # nothing is left open


@pytest.mark.small
def test_what_is_open_closes_a_rollout_later() -> None:
    """KH closes KS and 8S closes 4S: that makes two, and each is cut off at the value of its own seat's next view."""
    collector = placed(Game.from_notation(LAST_TWO), [], rollout=2, gamma=0.5, gae_lambda=0.5)
    samples, advantages = collector.collect()
    assert by_card(samples, samples.rewards) == {"4S": 0.25, "KS": -0.75}
    assert by_card(samples, advantages) == {"4S": 0.25 + 0.5 - 2, "KS": -0.75 + 0.5 - 2}
    assert collector.state()["following"].tolist() == [OPEN] * 4
    samples, advantages = collector.collect()
    rewards = {"JH": 0.25, "7C": 0.25, "KH": 0.75, "8S": 0.75, "AH": -2.25, "7H": 0.75}
    assert by_card(samples, samples.rewards) == rewards
    expected = {"JH": -2.0625, "7C": -1.3125, "KH": -0.25, "8S": -0.25, "AH": -3.25, "7H": -0.25}
    assert by_card(samples, advantages) == expected


@pytest.mark.small
def test_a_game_cut_off_has_no_value_beyond() -> None:
    """Played for the win, the last deal allowed ends without a winner: nothing is earned, nothing is hoped for."""
    collector = placed(
        Game.from_notation(LAST_TWO), [], rollout=8, gamma=1.0, gae_lambda=1.0, episode="game", reward="win"
    )
    samples, advantages = collector.collect()
    assert not samples.rewards.any()
    assert by_card(samples, advantages) == dict(zip(PLAYS, [-2.0] * 4 + [-1.0] * 4, strict=True))


@pytest.mark.small
@pytest.mark.parametrize(("gae_lambda", "expected"), [(0, [-7, -6.5, -4.5]), (1, [-11.375, -8.75, -4.5])])
def test_three_picks_in_a_row(gae_lambda: float, expected: list[float]) -> None:
    """With 13, 12, 11 cards in hand, and 13 again at the first play; each next view counts half, nothing is earned."""
    game = push(Game(Rules(max_deals=1)), "300")
    samples, advantages = placed(game, [], rollout=12, gamma=0.5, gae_lambda=gae_lambda).collect()
    assert len(samples) == 12 and not samples.rewards.any()
    assert (advantages * 52).round(4).tolist() == expected * 4


@pytest.mark.small
def test_a_shot_pays_the_shooter_three_and_costs_the_others_one() -> None:
    """Scoring cards are thrown first: the last one falls in trick nine, and the shot counts when the deal ends."""
    game = held(*ALL_CLUBS, rules=Rules(calls=CALLS, max_deals=1))
    samples, _ = placed(game, SCORING, rollout=52, gamma=1.0, gae_lambda=1.0).collect()
    rewards = samples.rewards.reshape(13, 4) * 52  # seat 0 leads every trick
    assert rewards.sum(axis=0) == pytest.approx([156, -52, -52, -52], abs=1e-4)
    assert not rewards[9:12].any()
    # 67 points were a loss of 50 1/4 to the table's mean, which the shot makes good
    assert rewards[12] == pytest.approx([156 + 50.25, -52 - 16.75, -52 - 16.75, -52 - 16.75], abs=1e-4)


# --- who sits where -------------------------------------------------------------------------------------------------


def names_of(collector: Collector) -> NDArray[Any]:
    """Who sits at each seat, ``[B, 4]``: "self", "past 0" and so on, or a bot's name."""
    bots = sorted({name for names in collector.settings.lineups() for name in names} - {"self", "past"})
    return np.array(["self", *(f"past {i}" for i in range(len(collector.past))), *bots])[collector.occupants]


def seen_from_learner(collector: Collector, many: NDArray[Any]) -> NDArray[Any]:
    """The same by place: the drawn learner, left, across, right."""
    seats = drawn_seats(collector.batch.games)
    return np.take_along_axis(many, (seats[:, None] + np.arange(4)) % 4, axis=1)


def chi_square(counts: Any, shares: Any) -> float:
    counts, shares = np.asarray(counts, float).ravel(), np.asarray(shares, float).ravel()
    expected = counts.sum() * shares / shares.sum()
    return float(((counts - expected) ** 2 / expected).sum())


def test_opponents_are_met_by_their_shares_at_every_seat_alike() -> None:
    opponents, shares = ("self", "past", "greedy", "random"), (5, 1, 3, 1)
    collector = Collector(settings_of(opponents=opponents, shares=shares, tables=8000), Rules(), 4, hashed, snapshots())
    names = seen_from_learner(collector, names_of(collector))
    assert (names[:, 0] == "self").all() and (names[:, 1:] == names[:, 1:2]).all()
    seats = drawn_seats(collector.batch.games)
    met = Counter(zip(seats.tolist(), (name.split()[0] for name in names[:, 1]), strict=True))
    table = [[met[seat, name] for name in opponents] for seat in range(4)]
    assert chi_square(np.sum(table, axis=0), shares) < 20  # 3 degrees of freedom: one in 5000
    assert chi_square(np.sum(table, axis=1), [1] * 4) < 20
    assert chi_square(table, np.outer([1] * 4, shares)) < 45  # 15 degrees: one in 10 000


def test_each_snapshot_is_met_one_in_a_game() -> None:
    past = [Foremost(True) for _ in range(5)]
    collector = Collector(settings_of(opponents=("past",), snapshots=5, tables=4000), Rules(), 2, hashed, past)
    names = seen_from_learner(collector, names_of(collector))
    assert (names[:, 1:] == names[:, 1:2]).all()
    met = Counter(names[:, 1].tolist())
    assert sorted(met) == [f"past {i}" for i in range(5)] and chi_square(list(met.values()), [1] * 5) < 25


def test_three_names_sit_left_across_and_right() -> None:
    collector = Collector(
        settings_of(opponents=("self+greedy+random", "random+past+greedy"), tables=500), Rules(), 0, hashed, snapshots()
    )
    met = Counter(map(tuple, seen_from_learner(collector, names_of(collector)).tolist()))
    first = ("self", "self", "greedy", "random")
    assert set(met) == {first} | {("self", "random", f"past {i}", "greedy") for i in range(2)}
    assert chi_square([met[first], 500 - met[first]], [1, 1]) < 15


class Logged(Collector):
    """Keeps who played which game."""

    def begin(self, rows: NDArray[np.int64]) -> None:
        super().begin(rows)
        self.log = getattr(self, "log", {})
        for row in rows:
            self.log[int(self.batch.games[row]["game"])] = names_of(self)[row].tolist()


def test_a_line_up_is_a_function_of_seed_and_game() -> None:
    few, many, other = (
        Logged(settings_of(opponents=EVERYONE, tables=tables, rollout=130 * tables), Rules(), seed, hashed, snapshots())
        for tables, seed in ((3, 6), (8, 6), (3, 7))
    )
    for collector in (few, many, other):
        for _ in range(3):
            collector.collect()
    games = few.log.keys() & many.log.keys()
    assert len(games) > 9 and {game & 0xFFFFFFFF for game in games} == {0, 1, 2}
    assert all(few.log[game] == many.log[game] for game in games)
    assert [few.log[game] for game in games] != [other.log.get(game) for game in games]
    before, rows = many.occupants.copy(), np.arange(8)[::-1].copy()
    many.occupants[:] = -1
    many.begin(rows)
    assert (many.occupants == before).all()


def test_a_snapshot_replaced_takes_effect_at_once() -> None:
    past: list[Any] = [Foremost(True), Foremost(True)]
    collector = Collector(settings_of(opponents=("past",), tables=16, rollout=100), Rules(), 0, hashed, past)
    collector.collect()
    old, new = past[1], Foremost(False)
    asked = old.asked
    collector.past[1] = new
    collector.collect()
    assert asked > 0 and old.asked == asked and new.asked > 0 and past[0].asked > 0


# --- what is a sample -----------------------------------------------------------------------------------------------


def decisions_made(collector: Collector) -> int:
    """In all games so far, under rules in which a deal is a game of 65 decisions: a call, 12 picks, 52 plays."""
    games = collector.batch.games
    done = 65 * (games["game"] >> np.uint64(32)).astype(np.int64)
    return int((done + games["num_picks"] + games["num_plays"] + (games["call"] > 0)).sum())


def test_each_learning_decision_is_one_sample_and_no_other_is() -> None:
    past = snapshots()
    seen: list[bytes] = []

    def decide(words: NDArray[np.uint64]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        seen.extend(row.tobytes() for row in words)
        return hashed(words)

    settings = settings_of(opponents=("past", "self", "self+past+past"), tables=6, rollout=100, critic="state")
    collector = Collector(settings, Rules(), 5, decide, past)
    kept: list[bytes] = []
    for _ in range(8):
        samples, _ = collector.collect()
        assert settings.rollout <= len(samples) < settings.rollout + 5 * settings.tables
        kept.extend(row.tobytes() for row in samples.words)
        still_open = [row.tobytes() for row in collector.state()["words"]]
        assert Counter(kept) + Counter(still_open) == Counter(seen)
        assert len(seen) + sum(agent.asked for agent in past) == decisions_made(collector)
    assert len(set(kept)) == len(kept) and past[0].asked > 0 and past[1].asked > 0


@pytest.mark.small
def test_a_state_begins_with_the_view_in_either_layout() -> None:
    batch = Collector(settings_of(tables=4), Rules(), 0, hashed, snapshots()).batch
    for _ in range(60):
        state = pack_state(batch.games, batch.compiled, batch.seats)
        for layout in (COMPACT, FULL):
            assert (state[:, : layout.words] == pack(batch.views(), batch.rules.target, layout)).all()
        batch.step(RandomAgent().act(batch.views(), batch.keys()))


def shuffled(record: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
    """The same game with all that the seat to move cannot see dealt anew among the others."""
    twin, seat = record.copy(), int(record["seat"][0])
    others = [s for s in range(4) if s != seat]
    hidden = [int(record["hand"][0, s]) for s in others]
    if record["phase"][0] == PICK:
        picks = [[int(record["given"][0, s, d]) for d in range(3)] for s in others]
        hidden += [mask for row in picks for mask in row]
    cards = rng.permutation([card for mask in hidden for card in range(52) if mask >> card & 1]).tolist()
    masks = [sum(1 << cards.pop() for _ in range(mask.bit_count())) for mask in hidden]
    for i, s in enumerate(others):
        twin["hand"][0, s] = masks[i]
        if record["phase"][0] == PICK:
            twin["given"][0, s] = masks[3 + 3 * i : 6 + 3 * i]
    return twin


@pytest.mark.parametrize("observation", ["compact", "full"])
@pytest.mark.parametrize("critic", ["view", "state"])
def test_no_hidden_card_reaches_the_actor(observation: str, critic: str) -> None:
    """Two tables that differ in what is hidden alone; all four seats are the learner's."""
    asked: list[NDArray[np.uint64]] = []

    def decide(words: NDArray[np.uint64]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        asked.append(words.copy())
        return hashed(words)

    settings = settings_of(observation=observation, critic=critic, tables=2, rollout=1)
    rules, rng, told = Rules(calls=("210", "003"), max_deals=1), np.random.default_rng(0), 0
    actor, game = LAYOUTS[observation].words, Game(rules, seed=3)
    while not game.is_over:
        collector = Collector(settings, rules, 0, decide, snapshots())
        place(collector, 0, game.record)
        place(collector, 1, shuffled(game.record, rng))
        asked.clear()
        collector.collect()
        one, two = asked[0]
        assert (one[:actor] == two[:actor]).all()
        told += bool((one[actor:] != two[actor:]).any())
        game.push(rng.choice(game.legal_actions()).item())
    assert (told > 40) == (critic == "state")


# --- drawing from a policy ------------------------------------------------------------------------------------------


def mask(*actions: int) -> np.uint64:
    return np.uint64(sum(1 << action for action in actions))


def log_softmax(logits: NDArray[np.float32], legal: int) -> dict[int, float]:
    """Logarithmic probabilities of the legal actions."""
    allowed = [action for action in range(64) if int(legal) >> action & 1]
    picked = logits[allowed].astype(np.float64)
    shifted = picked - picked.max()
    return dict(zip(allowed, (shifted - np.log(np.exp(shifted).sum())).tolist(), strict=True))


def many_draws(logits: NDArray[np.float32], legal: np.uint64, count: int, seed: int = 0) -> tuple[Any, Any]:
    keys = np.random.default_rng(seed).integers(2**64, size=count, dtype=np.uint64)
    return draw(np.tile(logits.astype(np.float32), (count, 1)), np.full(count, legal), keys)


@pytest.mark.parametrize("actions", [(0,), (3, 63), (0, 1, 31, 32, 62), tuple(range(5, 18))])
def test_draws_follow_the_softmax_over_legal_actions(actions: tuple[int, ...]) -> None:
    logits = np.random.default_rng(len(actions)).normal(size=64).astype(np.float32)
    drawn, log_probs = many_draws(logits, mask(*actions), 30_000)
    expected = log_softmax(logits, int(mask(*actions)))
    counts = [int((drawn == action).sum()) for action in actions]
    assert sum(counts) == 30_000
    assert chi_square(counts, np.exp([expected[action] for action in actions])) < 12 + 3 * len(actions)
    assert np.abs(log_probs - [expected[action] for action in drawn.tolist()]).max() < 1e-6


@pytest.mark.small
def test_log_probabilities_are_those_of_numpy() -> None:
    rng = np.random.default_rng(1)
    logits = (rng.normal(size=(60, 64)) * 10).astype(np.float32)
    legal = np.maximum(rng.integers(2**64, size=60, dtype=np.uint64) & rng.integers(2**64, size=60, dtype=np.uint64), 1)
    actions, log_probs = draw(logits, legal, rng.integers(2**64, size=60, dtype=np.uint64))
    for row, allowed, action, found in zip(logits, legal.tolist(), actions.tolist(), log_probs, strict=True):
        assert allowed >> action & 1
        assert found == pytest.approx(log_softmax(row, allowed)[action], rel=1e-6, abs=1e-6)


@pytest.mark.small
def test_extreme_logits_are_fine() -> None:
    for level in (-1e4, 0.0, 1e4):
        logits = np.full(64, level)
        logits[[7, 60]] = 1e4  # not allowed
        actions, log_probs = many_draws(logits, mask(1, 2, 3, 40), 400)
        assert sorted(set(actions.tolist())) == [1, 2, 3, 40]
        assert np.abs(log_probs + math.log(4)).max() < 1e-6
    logits = np.full(64, -1e4)
    logits[[2, 50]] = 1e4
    actions, log_probs = many_draws(logits, mask(0, 1, 2, 3, 50), 400)
    assert set(actions.tolist()) == {2, 50} and np.abs(log_probs + math.log(2)).max() < 1e-6
    logits[2] = -1e4
    actions, log_probs = many_draws(logits, mask(2, 50), 50)
    assert set(actions.tolist()) == {50} and not log_probs.any()


# --- with torch -----------------------------------------------------------------------------------------------------

TINY: dict[str, Any] = {"trunk": (16,), "head": (8,), "rollout": 200, "batch_size": 64, "epochs": 1, "tables": 4}


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Networks this small only lose by more."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def learner_of(seed: int = 0, **changes: Any) -> SelfPlay:
    """A learner whose logits are not all about 0, as those of fresh weights are."""
    learner = SelfPlay(settings_of(**(TINY | changes)), Rules(), seed)
    with torch.no_grad():
        learner.model.policy.action_net.weight.mul_(100)
    return learner


def bits_of(words: NDArray[np.uint64]) -> NDArray[np.uint8]:
    return np.unpackbits(words.view(np.uint8), axis=1, bitorder="little")


def batch_of(learner: SelfPlay, size: int = 10_000) -> Any:
    samples, advantages = learner.collector.collect()
    device = learner.model.device
    return next(Rollout(samples, advantages, device, np.random.default_rng(0)).get(size))


def stock_answers(policy: Any, observations: Any, actions: Any, masks: Any) -> Any:
    """Values, log-probabilities and entropies as sb3-contrib finds them."""
    return MaskableActorCriticPolicy.evaluate_actions(policy, observations, actions, action_masks=masks)


@pytest.mark.parametrize("critic", ["view", "state"])
@pytest.mark.parametrize("observation", ["compact", "full"])
def test_masks_are_in_loss_and_entropy(critic: str, observation: str) -> None:
    """What the stock policy says of a rollout is what numpy says of the legal actions alone, and what was noted."""
    learner = learner_of(critic=critic, observation=observation)
    samples, advantages = learner.collector.collect()
    data = next(Rollout(samples, advantages, learner.model.device, np.random.default_rng(3)).get(10_000))
    policy, asked = learner.model.policy, (data.observations, data.actions, data.action_masks)
    values, log_probs, entropy = policy.evaluate_actions(*asked)
    for own, stock in zip(policy.evaluate_actions(*asked), stock_answers(policy, *asked), strict=True):
        assert own.flatten().tolist() == pytest.approx(stock.flatten().tolist(), abs=1e-5)
    rows = np.random.default_rng(3).permutation(len(samples))
    logits, _ = learner.decide(samples.words[rows])
    tables = [log_softmax(row, int(legal)) for row, legal in zip(logits, samples.legal[rows], strict=True)]
    expected = [table[int(action)] for table, action in zip(tables, samples.actions[rows], strict=True)]
    assert log_probs.tolist() == pytest.approx(expected, abs=1e-5)
    assert entropy.tolist() == pytest.approx([-sum(p * math.exp(p) for p in t.values()) for t in tables], abs=1e-5)
    assert max(entropy.tolist()) > 0.5 and min(expected) < -1
    assert data.old_log_prob.tolist() == pytest.approx(log_probs.tolist(), abs=1e-5)
    assert data.old_values.tolist() == pytest.approx(values.flatten().tolist(), abs=1e-5)
    assert data.returns.tolist() == pytest.approx((data.old_values + data.advantages).tolist(), abs=1e-6)
    assert data.advantages.tolist() == advantages[rows].tolist()


def test_an_update_hands_on_the_masks(monkeypatch: pytest.MonkeyPatch) -> None:
    learner, seen = learner_of(epochs=2), []
    stock = learner.model.policy.evaluate_actions

    def spy(observations: Any, actions: Any, action_masks: Any = None) -> Any:
        seen.append((observations.numpy(), actions.numpy(), action_masks.numpy() > 0))
        return stock(observations, actions, action_masks=action_masks)

    monkeypatch.setattr(learner.model.policy, "evaluate_actions", spy)
    collected = []
    collect = learner.collector.collect
    monkeypatch.setattr(learner.collector, "collect", lambda: collected.append(collect()) or collected[-1])
    learner.update()
    samples = collected[0][0]
    bits, masks = bits_of(samples.words).astype(np.float32), bits_of(samples.legal[:, None]) > 0
    noted = Counter((o.tobytes(), int(a), m.tobytes()) for o, a, m in zip(bits, samples.actions, masks, strict=True))
    used = Counter((o.tobytes(), int(a), m.tobytes()) for batch in seen for o, a, m in zip(*batch, strict=True))
    assert used == Counter({key: 2 * count for key, count in noted.items()})


def loss_of(learner: SelfPlay, data: Any) -> torch.Tensor:
    """PPO's: policy, entropy and value."""
    values, log_probs, entropy = learner.model.policy.evaluate_actions(
        data.observations, data.actions, action_masks=data.action_masks
    )
    ratio = torch.exp(log_probs - data.old_log_prob)
    clipped = torch.clamp(ratio, 0.8, 1.2)
    gain = torch.min(ratio * data.advantages, clipped * data.advantages).mean()
    return -gain - 0.01 * entropy.mean() + 0.5 * ((values.flatten() - data.returns) ** 2).mean()


def gradients(learner: SelfPlay, loss: torch.Tensor) -> dict[str, torch.Tensor]:
    learner.model.policy.zero_grad()
    loss.backward()
    named = learner.model.policy.named_parameters()
    return {name: tensor.grad.clone() for name, tensor in named if tensor.grad is not None}


def test_gradients_are_those_of_the_stock_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = learner_of()
    data = batch_of(learner)
    own = gradients(learner, loss_of(learner, data))
    with monkeypatch.context() as patch:
        patch.setattr(type(learner.model.policy), "evaluate_actions", MaskableActorCriticPolicy.evaluate_actions)
        stock = gradients(learner, loss_of(learner, data))
    assert own.keys() == stock.keys()
    for name, slope in own.items():
        assert torch.allclose(slope, stock[name], rtol=1e-4, atol=1e-6) and slope.any()


def test_logits_of_illegal_actions_change_neither_loss_nor_gradient() -> None:
    learner = learner_of()
    samples, advantages = learner.collector.collect()
    several = next(i for i in range(len(samples)) if int(samples.legal[i]).bit_count() > 3)
    one = Rollout(
        samples.take(np.array([several])), advantages[[several]], learner.model.device, np.random.default_rng()
    )
    data = next(one.get(1))
    illegal = data.action_masks[0] == 0
    before = loss_of(learner, data)
    slopes = gradients(learner, before)
    with torch.no_grad():
        learner.model.policy.action_net.bias[illegal] += torch.linspace(-30, 30, int(illegal.sum()))
    after = loss_of(learner, data)
    assert after.item() == before.item()
    for name, slope in gradients(learner, after).items():
        assert torch.equal(slope, slopes[name])
    assert not slopes["action_net.weight"][illegal].any() and slopes["action_net.weight"][~illegal].any()


@pytest.mark.parametrize("observation", ["compact", "full"])
def test_nothing_but_the_view_reaches_the_actor(observation: str) -> None:
    learner = learner_of(critic="state", observation=observation)
    policy, data, bits = learner.model.policy, batch_of(learner), LAYOUTS[observation].bits
    everything = data.observations.clone().requires_grad_()
    assert everything.shape[1] == STATE.bits > bits
    values, log_probs, entropy = policy.evaluate_actions(everything, data.actions, action_masks=data.action_masks)
    for output in (log_probs, entropy):
        (slope,) = torch.autograd.grad(output.square().sum(), everything, retain_graph=True)
        assert not slope[:, bits:].any() and slope[:, :bits].any()
    (slope,) = torch.autograd.grad(values.sum(), everything)
    assert slope[:, bits:].any() and slope[:, :bits].any()


@pytest.mark.parametrize("critic", ["view", "state"])
def test_actor_and_critic_that_sees_all_share_nothing(critic: str) -> None:
    learner = learner_of(critic=critic)
    policy, data = learner.model.policy, batch_of(learner)
    values, log_probs, _ = policy.evaluate_actions(data.observations, data.actions, action_masks=data.action_masks)
    of_value = set(name for name, slope in gradients(learner, values.square().sum()).items() if slope.any())
    _, log_probs, _ = policy.evaluate_actions(data.observations, data.actions, action_masks=data.action_masks)
    of_policy = set(name for name, slope in gradients(learner, log_probs.sum()).items() if slope.any())
    assert of_value and of_policy and of_value != of_policy
    assert bool(of_value & of_policy) == (critic == "view")


def test_a_policy_with_a_critic_that_sees_all_plays_by_the_view() -> None:
    learner = learner_of(critic="state")
    samples, _ = learner.collector.collect()
    seen = bits_of(samples.words[:, : COMPACT.words].copy()).astype(np.float32)
    masks = bits_of(samples.legal[:, None])
    actions, _ = learner.model.policy.predict(seen, deterministic=True, action_masks=masks)
    logits, _ = learner.decide(samples.words)
    assert actions.tolist() == np.where(masks > 0, logits, -np.inf).argmax(axis=1).tolist()
    agent_logits = learner.agent().logits(learner.collector.batch.views())
    batch = learner.collector.batch
    mine, _ = learner.decide(pack_state(batch.games, batch.compiled, batch.seats))
    assert np.abs(agent_logits - mine).max() < 1e-4


@pytest.mark.parametrize("critic", ["view", "state"])
def test_a_rollout_hands_out_each_sample_once_bit_by_bit(critic: str) -> None:
    learner = learner_of(critic=critic)
    samples, advantages = learner.collector.collect()
    batches = list(Rollout(samples, advantages, learner.model.device, np.random.default_rng(0)).get(64))
    sizes = [len(batch.actions) for batch in batches]
    assert sum(sizes) == len(samples) and len(batches) == round(len(samples) / 64) and max(sizes) - min(sizes) <= 1
    rows = np.random.default_rng(0).permutation(len(samples))
    for name, array in {
        "observations": bits_of(samples.words)[rows],
        "actions": samples.actions[rows],
        "old_values": samples.values[rows],
        "old_log_prob": samples.log_probs[rows],
        "advantages": advantages[rows],
        "returns": (samples.values + advantages)[rows],
        "action_masks": bits_of(samples.legal[rows, None]),
    }.items():
        assert (torch.cat([getattr(batch, name) for batch in batches]).numpy() == array).all()
    assert all(batch.observations.dtype == torch.float32 for batch in batches)


@pytest.mark.parametrize("every", [100, 300, 500])
def test_snapshots_are_taken_every_so_many_decisions(every: int) -> None:
    """Whenever a multiple was passed the oldest makes room, also where an update passes two at once."""
    changes = {"opponents": ("past",), "rollout": 130, "snapshots": 3, "snapshot_every": every, "learning_rate": 0.05}
    learner = SelfPlay(settings_of(**(TINY | changes)), Rules())
    views = learner.collector.batch.views()
    taken = [learner.agent().logits(views).tobytes()] * 3
    for _ in range(9):
        before = learner.decisions
        learner.update()
        if before // every < learner.decisions // every:
            taken.append(learner.agent().logits(views).tobytes())
        kept = [agent.logits(views).tobytes() for agent in learner.collector.past]
        assert sorted(kept) == sorted(taken[-3:])
    assert len(taken) >= 5 and all(isinstance(agent, PPOAgent) and agent.sample for agent in learner.collector.past)


# --- a deal that can be solved --------------------------------------------------------------------------------------

SOLVABLE = (
    "0 0,0,0,0 6543.QJ7.AKQ5.K9/JT72.643.82.QJ52/AK9.T92.J963.T74/Q8.AK85.T74.A863 300 JC JS QS KC AC JH QC AD AS QD "
    "QH AH 2C 9C 8C 6C 2D 5D JD 6D 3C 7C JC AC 3S 9S 5S JS 4S 6S KS 2S 4C TC QS KC 4H 5H 2H 3H 5C QH TS KD "
    '; deal=0 seed=86 game=0 rules={"max_deals":1}'
)
"""Seat 0 holds QC 7D AD KH AS and leads. KH first costs four hearts, but then 7D is low enough to lose, and AD, AS, QC
can be thrown. Greedy leads 7D and is let in with KH; QC, which nobody can beat, then takes QD: 34 points."""


def worth(game: Game, seat: int) -> float:
    return float(standings_of(game.record, compile_rules(game.rules), REWARDS["points"])[0, seat])


def lines_of(game: Game, seat: int) -> list[float]:
    """What each line of a seat's choices comes to against the bots."""
    before = len(game.history)
    while not game.is_over and game.seat != seat:
        game.push(game.choose("greedy-v1"))
    found = [worth(game, seat)] if game.is_over else []
    for action in game.legal_actions():
        game.push(action)
        found += lines_of(game, seat)
        game.pop()
    while len(game.history) > before:
        game.pop()
    return found


def result_of(game: Game, seat: int, agent: Any) -> float:
    game = game.copy()
    while not game.is_over:
        game.push(game.choose(agent if game.seat == seat else "greedy-v1"))
    return worth(game, seat)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_learner_finds_the_one_best_line(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    start = Game.from_notation(SOLVABLE)
    seat, begin = start.seat, Collector.begin
    assert seat is not None
    lines = lines_of(start, seat)  # 83 of them
    assert lines.count(max(lines)) == 1 < 50 < len(lines)
    assert result_of(start, seat, "greedy-v1") < max(lines)

    def begin_there(collector: Collector, rows: NDArray[np.int64]) -> None:
        begin(collector, rows)
        for row in rows:
            place(collector, int(row), start.record)
        bot = 1 + len(collector.past)
        collector.occupants[rows] = [LEARNER if place == seat else bot for place in range(4)]

    monkeypatch.setattr(Collector, "begin", begin_there)
    settings = settings_of(
        opponents=("greedy-v1",),
        tables=32,
        rollout=256,
        batch_size=64,
        learning_rate=5e-3,
        final_learning_rate=5e-4,
        gae_lambda=0.95,
        entropy=0.05,
        trunk=(32,),
        head=(16,),
        decisions=6000,
    )
    learner = SelfPlay(settings, Rules(), seed)
    assert result_of(start, seat, learner.agent()) < max(lines)
    learner.learn(settings.decisions)
    assert result_of(start, seat, learner.agent()) == max(lines)


# --- what is not believed -------------------------------------------------------------------------------------------


def forged(name: str, change: Callable[[NDArray[Any]], Any]) -> Callable[[dict[str, NDArray[Any]]], None]:
    def forge(state: dict[str, NDArray[Any]]) -> None:
        state[name] = np.asarray(change(state[name]))

    return forge


def twice_played(records: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The first game with the highest card in a hand among those that this seat has played too."""
    games = records.view(GAME).reshape(-1).copy()
    games["played"][0, 0] |= np.uint64(1 << int(games["hand"][0, 0]).bit_length() - 1)
    return games.view(np.uint8).reshape(records.shape)


FORGED = {
    "an index beyond": forged("open", lambda a: np.where(a >= 0, a + 10**6, a)),
    "an index twice": forged("open", lambda a: np.where(a >= 0, 0, a)),
    "nobody's": forged("open", lambda a: np.full_like(a, -1)),
    "followed by what is not there": forged("following", lambda a: np.full_like(a, 2**40)),
    "illegal": forged("actions", lambda a: a + 1000),
    "fewer words": forged("words", lambda a: a[:, :-1]),
    "other numbers": forged("values", lambda a: a.astype(np.float64)),
    "other tables": forged("games", lambda a: a[:-1]),
    "no tables": forged("games", lambda a: a[0, 0]),
    "no games": forged("games", np.zeros_like),
    "a card in two places": forged("games", lambda a: twice_played(a)),
}


@pytest.mark.parametrize("forge", FORGED.values(), ids=FORGED)
def test_a_forged_state_is_refused(forge: Callable[[dict[str, NDArray[Any]]], None]) -> None:
    collector = Collector(settings_of(), SHORT, 1, hashed, [])
    collector.collect()
    state = collector.state()
    assert len(state["actions"]) > 2
    forge(state)
    with pytest.raises(ValueError):
        Collector(settings_of(), SHORT, 1, hashed, []).restore(state)


@pytest.mark.small
def test_no_damage_to_a_record_that_is_let_through_takes_a_kernel_out_of_bounds() -> None:
    """Most is refused; the rest plays on, to whatever end. The pass with bounds checks would see an index go wrong."""
    rng = np.random.default_rng(5)
    rules = compile_rules(SHORT)
    refused = played = 0
    for number in range(400):
        batch = Batch(1, SHORT, seed=number)
        batch.play("random", int(rng.integers(120)))
        batch.games.view(np.uint8)[rng.integers(16, GAME.itemsize, rng.integers(1, 3))] = rng.integers(256)
        if not are_sound(batch.games, rules):
            refused += 1
            continue
        played += 1
        pack_state(batch.games, rules, np.zeros(1, np.int64))
        Greedy(SHORT).act(batch.views(), batch.keys())
        batch.play("random", 70)
    assert refused > 100 and played > 40


# --- kernels --------------------------------------------------------------------------------------------------------

EVERY_ROUTE = """
import numpy as np
from agents.learned import policy, rollout
from agents.learned.settings import Settings
from dnfh_env import Rules

def decide(words):
    return np.zeros((len(words), 64), np.float32), np.zeros(len(words), np.float32)

for settings in (
    Settings(("self", "greedy"), (1, 2), tables=2, rollout=8),
    Settings(("self",), (1.5,), tables=3, rollout=9, gamma=1, gae_lambda=0, episode="game", critic="state"),
):
    collector = rollout.Collector(settings, Rules(), 1, decide, [])
    collector.collect()
    collector.restore(collector.state())
policy.draw(np.zeros((2, 64)), np.full(4, 3, np.uint64)[::2], [1, 2])
print(*(len(kernel.signatures) for kernel in (policy.draw_all, rollout.draw_lineups, rollout.are_sound, rollout.gae)))
"""


def test_each_kernel_is_compiled_once() -> None:
    assert run_python(EVERY_ROUTE).split() == ["1"] * 4
