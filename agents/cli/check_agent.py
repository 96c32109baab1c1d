"""Test whether an agent keeps the protocol of docs/your_own_agent.md, under several rules.

It is told by name, as in module:attr of your own. Exits with 1 if it fails.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import numpy as np
import tyro
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from rich.text import Text

from agents.arena import SEED
from agents.cli import FAILURE, PRESETS, SUCCESS
from agents.referee import Player, play_out
from dnfh_env.agent import Agent, RandomAgent, ask, make_agent
from dnfh_env.cards import CARD_NAMES, NUM_SEATS
from dnfh_env.engine import CALL, PICK, PLAY, new_games
from dnfh_env.errors import AgentError, DnfhError
from dnfh_env.rules import CALLS, Rules, card_points, compile_rules

DEALS = 2
"""Of each game that is played here: the second has scores."""
ALONE, TOGETHER = 64, 1024
"""How many decisions are asked for again, one by one and in one batch."""
RANDOM_RULES = 3
COLOURS = {"pass": "green", "fail": "red", "declined": "yellow"}
"""The verdicts."""


@dataclass(frozen=True)
class CheckAgentArgs:
    """What to test."""

    agent: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="AGENT")]
    """The agent's name, or module:attr."""
    games: int = 200
    """Games of two deals that it plays under each of six rules."""
    seed: int = SEED
    """What cards and chance come from."""


@dataclass(frozen=True)
class Check:
    """One line of what came out."""

    name: str
    verdict: str
    detail: str


def check_agent(args: CheckAgentArgs) -> int:
    """Run the checks and print them; returns the exit status. Raises `DnfhError` for ``games`` below 1."""
    if args.games < 1:
        raise DnfhError(f"games: {args.games} is not at least 1")
    table = Table(title=args.agent, title_justify="left", show_header=False, box=None)
    checks = list(run_checks(args.agent, args.games, args.seed))
    for check in checks:
        table.add_row(Text(check.verdict, COLOURS[check.verdict]), check.name, check.detail)
    Console(markup=False).print(table)
    return FAILURE if any(check.verdict == "fail" for check in checks) else SUCCESS


def run_checks(spec: str | Agent, games: int = 200, seed: int = SEED) -> Iterator[Check]:
    """Check an agent, each time under all of `rules_to_try`, up to the first failure."""
    trials = [Trial(name, spec, rules, games, seed) for name, rules in rules_to_try(seed).items()]
    for title, step in CHECKS:
        details = []
        for trial in list(trials):
            try:
                details.append(step(trial))
            except Declined as error:
                trials.remove(trial)
                yield Check(title, "declined", f"{trial.name}: {error}")
            except Exception as error:
                said = str(error) if isinstance(error, AgentError) else f"{type(error).__name__}: {error}"
                yield Check(title, "fail", f"{trial.name}: {said}")
                return
        if not details:
            yield Check(title, "fail", "it declines all rules that were tried")
            return
        yield Check(title, "pass", details[0])


def rules_to_try(seed: int) -> dict[str, Rules]:
    """The presets and a few rules drawn at random, each cut off after `DEALS`."""
    presets = {name: preset().replace(max_deals=DEALS) for name, preset in PRESETS.items()}
    rng = random.Random(seed)
    return presets | {f"random {i}": random_rules(rng) for i in range(1, RANDOM_RULES + 1)}


def random_rules(rng: random.Random) -> Rules:
    """Rules with every option drawn."""
    hints = get_type_hints(Rules)
    drawn = {name: rng.choice(get_args(hint)) for name, hint in hints.items() if get_origin(hint) is Literal}
    drawn |= {name: rng.random() < 0.5 for name, hint in hints.items() if hint is bool}
    named = {name: rng.randint(-20, 30) for name in rng.sample(CARD_NAMES, 6)}
    calls = rng.sample(CALLS, rng.randint(1, len(CALLS)))
    return Rules(points=card_points(hearts=rng.randint(1, 3), **named), calls=tuple(calls), max_deals=DEALS, **drawn)


class Declined(Exception):
    """The agent says by a typed error that it does not play these rules, as it may."""


@dataclass(eq=False, repr=False)
class Trial:
    """An agent under one set of rules, and what it has been asked and answered."""

    name: str
    """Of the rules."""
    spec: str | Agent
    rules: Rules
    games: int
    seed: int
    agent: Agent = field(init=False)
    views: NDArray[Any] = field(init=False)
    keys: NDArray[np.uint64] = field(init=False)
    actions: NDArray[np.int64] = field(init=False)
    changed: str | None = field(init=False)
    """Which argument was written into."""

    def build(self) -> str:
        """It is built with the rules as the keyword ``rules``."""
        try:
            self.agent = make_agent(self.spec, self.rules)
        except AgentError:
            raise
        except DnfhError as error:
            raise Declined(str(error)) from error
        return type(self.agent).__name__

    def play(self) -> str:
        """Every answer has the right shape and type, and is legal."""
        recorder = Recorder(self.agent)
        games = new_games(self.rules, self.seed, np.arange(self.games))
        players: list[Player] = [("the agent", recorder), ("random", RandomAgent())]
        # every other game it sits at all four seats, else at one among random players, who lead it to odd places
        lineup = np.ones((len(games), NUM_SEATS), np.int64)
        lineup[np.arange(len(games)), np.arange(len(games)) // 2 % NUM_SEATS] = 0
        lineup[::2] = 0
        play_out(games, compile_rules(self.rules), lineup, players)
        self.views, self.keys, self.actions = recorder.all()
        self.changed = recorder.changed
        counts = [int((self.views["phase"] == phase).sum()) for phase in (CALL, PICK, PLAY)]
        return "{} calls, {} picks, {} plays".format(*counts)

    def leaves_arguments_alone(self) -> str:
        """What it is given is as it was."""
        if self.changed:
            raise AgentError(f"act wrote into its {self.changed}")
        return ""

    def is_the_same_alone(self) -> str:
        """A decision asked for by itself comes out as it did in a batch."""
        chosen = self._some(ALONE)
        start = time.perf_counter()
        again = [ask(self.agent, self.views.take([i]), self.keys[[i]], "the agent") for i in chosen]
        speed = (time.perf_counter() - start) / len(chosen)
        self._compare(chosen, np.concatenate(again), "asked alone")
        return f"{1e6 * speed:,.0f} µs a decision"

    def is_the_same_in_another_order(self) -> str:
        """Decisions asked for together, in reverse, come out as they did."""
        chosen = self._some(TOGETHER)[::-1]
        start = time.perf_counter()
        again = ask(self.agent, self.views.take(chosen), self.keys[chosen], "the agent")
        speed = (time.perf_counter() - start) / len(chosen)
        self._compare(chosen, again, "asked in another batch and order")
        return f"{1e6 * speed:,.1f} µs a decision in a batch of {len(chosen)}"

    def is_the_same_when_built_again(self) -> str:
        """Another one of it chooses the same, so nothing hangs on what it saw before or on other randomness."""
        chosen = self._some(TOGETHER)
        other = make_agent(self.spec, self.rules)
        again = ask(other, self.views.take(chosen), self.keys[chosen], "the agent, built again,")
        self._compare(chosen, again, "built again")
        return ""

    def _some(self, count: int) -> NDArray[np.int64]:
        """Decisions spread over all that were made, in every phase."""
        return np.unique(np.linspace(0, len(self.views) - 1, count).astype(np.int64))

    def _compare(self, chosen: NDArray[np.int64], again: NDArray[np.int64], how: str) -> None:
        different = int((again != self.actions[chosen]).sum())
        if different:
            raise AgentError(f"{different} of {len(chosen)} decisions differ when {how}, with the same views and seeds")


class Recorder:
    """An agent that asks another, and remembers."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._asked: list[tuple[NDArray[Any], NDArray[np.uint64], NDArray[np.int64]]] = []
        self.changed: str | None = None
        """Which argument the agent has written into."""

    def act(self, views: NDArray[Any], rng: NDArray[np.uint64]) -> NDArray[np.int64]:
        """See `Agent.act`."""
        views_before, rng_before = views.copy(), rng.copy()
        actions = self._agent.act(views, rng)
        for what, now, before in (("views", views, views_before), ("rng", rng, rng_before)):
            if now.tobytes() != before.tobytes():
                self.changed = what
        self._asked.append((views_before, rng_before, actions))
        return actions

    def all(self) -> tuple[NDArray[Any], NDArray[np.uint64], NDArray[np.int64]]:
        """Views, seeds and answers of all decisions, in the order made."""
        views, keys, actions = (np.concatenate(parts) for parts in zip(*self._asked, strict=True))
        return views, keys, actions


CHECKS: tuple[tuple[str, Callable[[Trial], str]], ...] = (
    ("is built", Trial.build),
    ("plays legally", Trial.play),
    ("leaves its arguments alone", Trial.leaves_arguments_alone),
    ("chooses the same alone", Trial.is_the_same_alone),
    ("chooses the same in any batch", Trial.is_the_same_in_another_order),
    ("chooses the same when built again", Trial.is_the_same_when_built_again),
)
"""In this order, since each needs what those before have done."""
