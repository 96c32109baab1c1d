"""Agents: who decides, given what a seat knows. The protocol, the registry of names, and the random agent.

An agent answers many views at once. It never sees a game, only `VIEW` records; its randomness comes from the seeds it
is given, so that the same view and seed give the same action however many views are asked about together.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeGuard, runtime_checkable

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dnfh_env._bits import U1, plain, unpack
from dnfh_env.cards import names_in
from dnfh_env.engine import NUM_ACTIONS, OVER, apply, next_game, play_random, random_action
from dnfh_env.errors import AgentError, DnfhError, described
from dnfh_env.notation import action_to_string, describe_illegal, hand_to_string
from dnfh_env.rules import Rules, checked_rules
from dnfh_env.view import VIEW, look, table_cards


@runtime_checkable
class Agent(Protocol):
    """Anything with this method is an agent."""

    def act(self, views: NDArray[Any], rng: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Choose an action for each view.

        Args:
            views: `VIEW` records, shape ``(B,)``, of seats that are to move; ``views["legal"]`` has the legal actions
                as masks, `legal_rows` unpacks them.
            rng: ``uint64[B]``, a fresh seed for each decision: ``numpy.random.default_rng(rng[i])`` is all the
                randomness that decision ``i`` may use.

        Returns:
            ``int64[B]``, actions 0 to 63, each legal in its view.
        """
        ...


@runtime_checkable
class FusedAgent(Agent, Protocol):
    """An agent that can play whole games by itself in one kernel, for `dnfh_env.batch.Batch.play` and nothing else.

    It is trusted there: it is given games, hidden cards and all, and nothing that it does is checked. `play_with` makes
    such a kernel of one that looks at a single view, so that the games stay out of sight of what decides.
    """

    def play_fused(self, games: NDArray[Any], rules: NDArray[Any], decisions: int) -> int:
        """Decide at all seats as ``act`` would. Called for portions, and from several threads at once for parts.

        Args:
            games: `GAME` records, shape ``(B,)``, played on in place, each followed by its next game when it ends.
            rules: of `dnfh_env.rules.compile_rules`: those that the games are played by.
            decisions: how many in each game.

        Returns:
            How many games ended.
        """
        ...


@runtime_checkable
class StochasticAgent(Agent, Protocol):
    """An agent that says with which probabilities it acts, so that the luck in its draws can be told from its skill.

    One with an attribute ``sample`` that is False draws nothing, see `draws`.
    """

    def probabilities(self, views: NDArray[Any]) -> NDArray[np.float64]:
        """How likely ``act`` is to choose each action, its seed being random.

        Args:
            views: `VIEW` records, shape ``(B,)``, of seats that are to move.

        Returns:
            ``float64[B, 64]``, rows that sum to 1 over the legal actions.
        """
        ...


def draws(agent: Agent) -> TypeGuard[StochasticAgent]:
    """Whether an agent leaves its actions to chance and says with which probabilities."""
    return isinstance(agent, StochasticAgent) and bool(getattr(agent, "sample", True))


def is_fused(agent: Agent) -> TypeGuard[FusedAgent]:
    """Whether an agent has a kernel for whole games that goes with its own ``act``, and not with one it replaced."""
    nearest = next((cls for cls in type(agent).__mro__ if {"act", "play_fused"} & vars(cls).keys()), object)
    return callable(vars(nearest).get("play_fused"))


@njit(inline="always")  # or it could not be cached, since it takes a function
def play_with(games: Any, rules: Any, decisions: Any, choose: Any, arguments: Any) -> Any:
    """`FusedAgent.play_fused` for a kernel ``choose(view, *arguments)`` that needs no randomness.

    It is the body of a kernel of one's own:

    ::

        @njit(cache=True, nogil=True)
        def play_all(games, rules, decisions):
            return play_with(games, rules, decisions, choose, (rules[0],))
    """
    ended = 0
    view = np.zeros(1, VIEW)  # by this name alone: numba frees it after the last use of the name
    r = rules[0]
    for i in range(games.shape[0]):
        g = games[i]
        for _ in range(decisions):
            look(g, r, np.int64(g.seat), view[0])
            apply(g, r, choose(view[0], *arguments))
            if g.phase == OVER:
                ended += 1
                next_game(g, r)
    return ended


def legal_rows(masks: NDArray[np.uint64]) -> NDArray[np.int8]:
    """Masks ``uint64[B]`` as ``int8[B, 64]``, 1 for each legal action."""
    return unpack(np.asarray(masks)[:, None]).view(np.int8)


def are_legal(masks: NDArray[np.uint64], actions: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether each action, any whole number, lies in its mask: ``bool[B]``."""
    inside = (actions >= 0) & (actions < NUM_ACTIONS)
    found: NDArray[np.bool_] = inside & (masks >> np.where(inside, actions, 0).astype(np.uint64) & U1 == U1)
    return found


class RandomAgent:
    """Uniformly random legal actions."""

    def __init__(self, rules: Rules | None = None) -> None:
        """Every agent is built with the rules it is to play; this one has no use for them."""

    def act(self, views: NDArray[Any], rng: NDArray[np.uint64]) -> NDArray[np.int64]:
        """See `Agent.act`."""
        actions = np.empty(len(views), np.int64)
        _choose_randomly(plain(views["legal"]), plain(rng, np.uint64), actions)
        return actions

    def probabilities(self, views: NDArray[Any]) -> NDArray[np.float64]:
        """See `StochasticAgent.probabilities`."""
        legal = legal_rows(views["legal"]).astype(np.float64)
        shares: NDArray[np.float64] = legal / legal.sum(axis=1, keepdims=True)
        return shares

    def play_fused(self, games: NDArray[Any], rules: NDArray[Any], decisions: int) -> int:
        """See `FusedAgent.play_fused`."""
        return int(play_random(games, rules, decisions))


@njit(cache=True)
def _choose_randomly(legal_sets: Any, keys: Any, actions: Any) -> None:
    for i in range(legal_sets.shape[0]):
        actions[i] = random_action(legal_sets[i], keys[i])


REGISTRY: dict[str, str] = {
    "random": "dnfh_env.agent:RandomAgent",
    "greedy-v1": "agents.greedy:Greedy",
    "greedy": "agents.greedy:Greedy",
    "heuristic-v1": "agents.heuristic:Heuristic",
    "heuristic": "agents.heuristic:Heuristic",
    "ismcts-v1": "agents.search.ismcts:ISMCTS",
    "ismcts": "agents.search.ismcts:ISMCTS",
    "learned": "agents.learned.policy:learned",
    "mixed": "agents.mixed:Mixed",
    "pimc-v1": "agents.search.pimc:PIMC",
    "pimc": "agents.search.pimc:PIMC",
    "ppo": "agents.learned.policy:PPOAgent",
}
"""Agents by name as ``module:attr``, imported when asked for, so that nothing here needs the package ``agents``.

A name with a version keeps its behaviour; the name without may come to mean a better one."""


def register(name: str, target: str) -> None:
    """Let ``make_agent(name)`` build ``target``, ``"module:attr"``: a callable that takes the rules and the options."""
    if ":" in name or ":" not in target:
        raise AgentError(f"register: expected a name without ':' and a target 'module:attr', got {name!r}, {target!r}")
    if REGISTRY.setdefault(name, target) != target:
        raise AgentError(f"register: {name!r} is {REGISTRY[name]!r} already; choose another name")


def make_agent(spec: str | Agent, rules: Rules | None = None) -> Agent:
    """An agent from its name, for the given rules.

    Args:
        spec: a registered name (``"random"``), a name with options (``"NAME:option=value,other=value"``) or with a
            path and options (``"ppo:runs/demo"``, ``"ppo:runs/demo,sample=true"``), ``"module:attr"`` for a class,
            factory or agent of your own, or an agent, which is returned as it is. A class or factory is called with
            the rules, and options as keywords.
        rules: the rules it is to play, `Rules()` if not given.

    Raises `AgentError` for an unknown name, a module or attribute that is not there, or an object without ``act``.
    """
    if not isinstance(spec, str):
        return _checked(spec, repr(spec))
    rules = checked_rules(rules)
    name, _, rest = spec.partition(":")
    if name in REGISTRY:
        arguments, options = _options(rest)
        return _build(REGISTRY[name], spec, rules, arguments, options)
    if not rest:
        raise AgentError(
            f"unknown agent {spec!r}: known are {', '.join(sorted(REGISTRY))}, or 'module:attr' of your own"
        )
    return _build(spec, spec, rules, [], {})


def name_of(spec: str | Agent) -> str:
    """What an agent is called: its name as it was given, or that of its class."""
    return spec if isinstance(spec, str) else type(spec).__name__


def three_others(name: str, others: str | Agent | Sequence[str | Agent]) -> list[str | Agent]:
    """Who sits at left, across and right: three, or one for all; else `AgentError` that begins with ``name``."""
    single = isinstance(others, str) or not isinstance(others, Sequence)
    seated: list[Any] = [others] if single else list(others)  # type: ignore[arg-type]
    if len(seated) not in (1, 3):
        raise AgentError(f"{name}: expected one agent, or three for left, across and right, got {len(seated)}")
    return seated * (3 // len(seated))


def make_agents(specs: Sequence[str | Agent], rules: Rules | None = None) -> list[Agent]:
    """`make_agent` for each; equal names are one agent, so that it is asked about all its views at once."""
    built = {spec: make_agent(spec, rules) for spec in specs if isinstance(spec, str)}
    return [built[spec] if isinstance(spec, str) else make_agent(spec) for spec in specs]


def _options(text: str) -> tuple[list[str], dict[str, Any]]:
    """``"runs/demo,sample=true"`` as a positional argument, if there is one, and keywords."""
    parts = text.split(",") if text else []
    first = next(
        (i for i, part in enumerate(parts) if part.partition("=")[0].strip().isidentifier() and "=" in part), len(parts)
    )
    pairs = [part.partition("=") for part in parts[first:]]
    return [",".join(parts[:first])] * (first > 0), {key.strip(): _value(value.strip()) for key, _, value in pairs}


def _value(text: str) -> Any:
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(text.lower(), text)


def _build(target: str, spec: str, rules: Rules, arguments: list[str], options: dict[str, Any]) -> Agent:
    module_name, _, attribute = target.partition(":")
    try:
        found = getattr(importlib.import_module(module_name), attribute)
    except (Exception, SystemExit) as error:  # importing runs whatever the module holds
        said = f"{type(error).__name__}: {error}"
        raise AgentError(f"agent {spec!r}: cannot import {attribute!r} from {module_name!r}: {said}") from error
    if isinstance(found, type) or not hasattr(found, "act"):
        found = _call(found, spec, rules, arguments, options)
    return _checked(found, spec)


def _call(factory: Callable[..., Any], spec: str, rules: Rules, arguments: list[str], options: dict[str, Any]) -> Any:
    try:
        inspect.signature(factory).bind(*arguments, rules=rules, **options)
    except (TypeError, ValueError) as error:
        raise AgentError(f"agent {spec!r}: it does not take these options: {error}") from error
    try:
        return factory(*arguments, rules=rules, **options)
    except DnfhError:
        raise
    except Exception as error:
        raise AgentError(f"agent {spec!r}: building it raised {type(error).__name__}: {error}") from error


def _checked(agent: Any, spec: str) -> Agent:
    if isinstance(agent, type):
        raise AgentError(f"agent {spec}: it is a class; give an object of it, or its name as 'module:{agent.__name__}'")
    if not callable(getattr(agent, "act", None)):
        raise AgentError(f"agent {spec}: {type(agent).__name__} has no method act(views, rng)")
    return agent  # type: ignore[no-any-return]


def ask(agent: Agent, views: NDArray[Any], rng: NDArray[np.uint64], name: str = "agent") -> NDArray[np.int64]:
    """The actions of ``agent`` for ``views``.

    Raises `AgentError` with the agent's ``name`` if it raises anything, answers in another shape or type, or chooses
    an illegal action, which is then shown with its view.
    """
    legal_sets = views["legal"].copy()  # what an agent writes into its views decides nothing
    actions = answer(agent, views, rng, name)
    legal = are_legal(legal_sets, actions)
    if not legal.all():
        i = int(np.flatnonzero(~legal)[0])
        what = describe_illegal(int(actions[i]), int(legal_sets[i]))
        raise AgentError(f"{name}: {what} ({describe_view(views[i])})")
    return actions


def answer(agent: Agent, views: NDArray[Any], rng: NDArray[np.uint64], name: str = "agent") -> NDArray[np.int64]:
    """What ``agent`` says to ``views``, whole numbers that need not be legal; otherwise as `ask`."""
    try:
        found = np.asarray(agent.act(views, rng))
    except AgentError:
        raise  # it says all itself
    except (Exception, SystemExit) as error:
        asked = f"{len(views)} views, the first: {describe_view(views[0])}" if len(views) else "nothing"
        raise AgentError(f"{name}: act raised {described(error)} (asked about {asked})") from error
    if found.shape != (len(views),) or not np.issubdtype(found.dtype, np.integer):
        raise AgentError(
            f"{name}: act returned {found.dtype}{list(found.shape)}, expected whole numbers of shape [{len(views)}]"
        )
    return found.astype(np.int64)


def ask_each(
    players: Sequence[tuple[str, Agent]],
    movers: NDArray[np.int64],
    views: NDArray[Any],
    rng: NDArray[np.uint64],
) -> NDArray[np.int64]:
    """The actions of ``players[movers[i]]``, a name for errors and an agent, for ``views[i]``; each is asked once."""
    actions = np.empty(len(movers), np.int64)
    for index in np.unique(movers):
        waiting = np.flatnonzero(movers == index)
        name, agent = players[index]
        actions[waiting] = ask(agent, views.take(waiting), rng[waiting], name)
    return actions


def describe_view(view: Any) -> str:
    """The place of a view in its deal, for messages."""
    called = int(view["call"])
    call = "none yet" if called == 0 else action_to_string(called) if called < NUM_ACTIONS else "overwritten"
    trick = " ".join(names_in(int(table_cards(view)))) or "nothing"
    return (
        f"hand {hand_to_string(int(view['hand']))}, call {call}, {view['num_picks']} picks and "
        f"{view['num_plays']} plays made, on the table {trick}"
    )
