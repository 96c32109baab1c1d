"""The agent protocol: names, what `ask` refuses, the checker with planted faults, and the page that explains it all."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

from agents.cli import main
from agents.cli.check_agent import Check, run_checks
from agents.greedy import Greedy
from dnfh_env import Agent, AgentError, Batch, Rules, RulesError, make_agent
from dnfh_env.agent import REGISTRY, RandomAgent, ask, legal_rows, register
from dnfh_env.view import VIEW

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "your_own_agent.md").read_text(encoding="utf-8")


def first_legal(views: NDArray[Any]) -> NDArray[np.int64]:
    return legal_rows(views["legal"]).argmax(axis=1)


class First:
    """Keeps the protocol; the faulty ones below derive from it."""

    def __init__(self, rules: Rules | None = None, depth: int = 1, fast: bool = False, path: str = "") -> None:
        self.rules, self.depth, self.fast, self.path = rules, depth, fast, path
        self.asked = 0

    def act(self, views: NDArray[Any], rng: NDArray[np.uint64]) -> Any:
        return first_legal(views)


INSTANCE = First()


def build_first(rules: Rules) -> First:
    return First(rules, depth=7)


# --- names ------------------------------------------------------------------------------------------------------


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The registry, restored afterwards."""
    monkeypatch.setattr("dnfh_env.agent.REGISTRY", copy := dict(REGISTRY))
    return copy


def test_known_names() -> None:
    assert type(make_agent("random")) is RandomAgent
    assert type(make_agent("greedy")) is type(make_agent("greedy-v1")) is Greedy
    assert isinstance(make_agent("greedy"), Agent)
    assert not isinstance(object(), Agent)


def test_module_and_attribute_may_be_a_class_a_factory_or_an_agent() -> None:
    rules = Rules.omnibus()
    built = make_agent("test_agent:First", rules)
    assert isinstance(built, First)
    assert built.rules == rules
    made = make_agent("test_agent:build_first", rules)
    assert isinstance(made, First)
    assert (made.rules, made.depth) == (rules, 7)
    assert make_agent("test_agent:INSTANCE") is INSTANCE
    assert make_agent(INSTANCE) is INSTANCE


def test_registered_names_take_options_or_a_path(registry: dict[str, str]) -> None:
    register("first", "test_agent:First")
    with_options = make_agent("first:depth=3,fast=true")
    assert isinstance(with_options, First)
    assert (with_options.depth, with_options.fast, with_options.rules) == (3, True, Rules())


def test_a_path_is_one_positional_argument(registry: dict[str, str]) -> None:
    register("read", "test_agent:Reads")
    reader = make_agent("read:runs/a")
    assert isinstance(reader, Reads)
    assert reader.path == "runs/a"


class Reads(First):
    def __init__(self, path: str, rules: Rules) -> None:
        super().__init__(rules, path=path)


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ("nobody", "unknown agent 'nobody': known are greedy, greedy-v1"),
        ("no_such_module:First", "cannot import 'First' from 'no_such_module'"),
        ("test_agent:Nobody", "cannot import 'Nobody' from 'test_agent'"),
        ("test_agent:PAGE", "does not take these options|has no method act|not callable"),
        ("greedy:depth=3", "does not take these options"),
        (object(), "has no method act"),
    ],
)
def test_names_that_lead_nowhere(spec: Any, complaint: str) -> None:
    with pytest.raises(AgentError, match=complaint):
        make_agent(spec)


@pytest.mark.parametrize(("name", "target"), [("a:b", "module:attr"), ("a", "module")])
def test_names_that_cannot_be_registered(registry: dict[str, str], name: str, target: str) -> None:
    with pytest.raises(AgentError, match="without ':'"):
        register(name, target)
    assert registry == REGISTRY


# --- the random agent -------------------------------------------------------------------------------------------


def test_random_agent_is_uniform_over_legal_actions() -> None:
    views = np.repeat(Batch(1, seed=4).views(), 40_000)
    actions = ask(RandomAgent(), views, np.random.default_rng(1).integers(0, 2**64, len(views), np.uint64))
    counts = np.bincount(actions, minlength=64)
    legal = legal_rows(views["legal"][:1])[0]
    assert (counts > 0).tolist() == (legal > 0).tolist()
    assert np.abs(counts[legal > 0] * legal.sum() / len(views) - 1).max() < 0.06  # 11 calls: 3.6 standard errors


# --- what ask refuses -------------------------------------------------------------------------------------------


class Answers:
    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def act(self, views: NDArray[Any], rng: NDArray[np.uint64]) -> Any:
        return self.answer


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        ([52, 53], None),
        (np.array([52, 53], np.uint8), None),
        ([52, 63], r"action 63 \(hold\) is illegal, allowed are: 300 210 .* kitty \(hand "),
        ([0, 52], r"action 0 \(2C\) is illegal"),
        ([-1, 52], "action -1 is illegal"),
        ([52, 64], "action 64 is illegal"),
        ([52, 52 + 2**40], "action 1099511627828 is illegal"),
        ([52], r"act returned int64\[1\], expected whole numbers of shape \[2\]"),
        ([[52], [52]], r"int64\[2, 1\]"),
        ([52.0, 52.0], "float64"),
        (52, r"int64\[\]"),
        (None, "object"),
        (["300", "300"], "<U3"),
        ([True, True], "bool"),
    ],
)
def test_answers(answer: Any, complaint: str | None) -> None:
    batch = Batch(2, seed=1)
    if complaint is None:
        actions = ask(Answers(answer), batch.views(), batch.keys(), "mine")
        assert (actions.dtype, actions.tolist()) == (np.int64, [52, 53])
        return
    with pytest.raises(AgentError, match=f"^mine: .*{complaint}"):
        ask(Answers(answer), batch.views(), batch.keys(), "mine")


def test_an_exception_is_passed_on_with_name_and_view() -> None:
    batch = Batch(3, seed=1)
    batch.play("random", 20)
    with pytest.raises(AgentError, match=r"mine: act raised AttributeError: .* 3 views, the first: hand .*, call "):
        ask(object(), batch.views(), batch.keys(), "mine")  # type: ignore[arg-type]


# --- the checker ------------------------------------------------------------------------------------------------


class Stateful(First):
    def act(self, views: NDArray[Any], rng: NDArray[np.uint64]) -> Any:
        self.asked += 1
        return RandomAgent().act(views, rng * np.uint64(2 * self.asked + 1))


class Minded(First):
    """What it chooses hangs on how many were made of it."""

    made: ClassVar[Iterator[int]] = iter(range(10**9))

    def __init__(self, rules: Rules) -> None:
        super().__init__(rules)
        self.number = next(self.made)

    def act(self, views: NDArray[Any], rng: NDArray[np.uint64]) -> Any:
        return RandomAgent().act(views, rng * np.uint64(2 * self.number + 1))


class GlobalRandom(First):
    def act(self, views: NDArray[Any], rng: NDArray[np.uint64]) -> Any:
        return RandomAgent().act(views, np.random.randint(0, 2**62, len(views)).astype(np.uint64))


class LooksAtNeighbours(First):
    """The same alone as in batches of one kind, but the order in a batch matters."""

    def act(self, views: NDArray[Any], rng: NDArray[np.uint64]) -> Any:
        return (
            RandomAgent().act(views, np.maximum.accumulate(rng)) if len(views) > 500 else RandomAgent().act(views, rng)
        )


class WritesViews(First):
    def act(self, views: NDArray[Any], rng: NDArray[np.uint64]) -> Any:
        actions = first_legal(views)
        views["hand"] = 0
        return actions


class WritesSeeds(First):
    def act(self, views: NDArray[Any], rng: NDArray[np.uint64]) -> Any:
        rng += np.uint64(1)
        return first_legal(views)


class Floats(First):
    def act(self, views: NDArray[Any], rng: NDArray[np.uint64]) -> Any:
        return first_legal(views).astype(np.float32)


class WrongUnderOmnibus(First):
    def act(self, views: NDArray[Any], rng: NDArray[np.uint64]) -> Any:
        return first_legal(views) * (self.rules is None or self.rules.points != Rules.omnibus().points)


class WrongInLastTrick(First):
    def act(self, views: NDArray[Any], rng: NDArray[np.uint64]) -> Any:
        return np.where(views["num_plays"] < 48, first_legal(views), 0)


class TakesNoRules(First):
    def __init__(self) -> None:
        super().__init__()


class RefusesJacks(First):
    def __init__(self, rules: Rules) -> None:
        if rules.points[22]:
            raise RulesError("no jacks here")
        super().__init__(rules)


class RefusesAll(First):
    def __init__(self, rules: Rules) -> None:
        raise RulesError("not these")


class Crashes(First):
    def __init__(self, rules: Rules) -> None:
        raise OverflowError("too much")


def checks_of(name: str) -> list[Check]:
    return list(run_checks(f"test_agent:{name}", games=12))


@pytest.mark.parametrize("spec", ["random", "greedy", "test_agent:First", "test_agent:INSTANCE"])
def test_good_agents_pass_every_check(spec: str) -> None:
    checks = list(run_checks(spec, games=12))
    assert [check.verdict for check in checks] == ["pass"] * 6
    assert re.search(r"[1-9]\d* calls, [1-9]\d* picks, [1-9]\d* plays", checks[1].detail)


@pytest.mark.parametrize(
    ("name", "check", "complaint"),
    [
        ("Stateful", "chooses the same alone", "default: .* decisions differ when asked alone"),
        ("GlobalRandom", "chooses the same alone", "default: .* decisions differ when asked alone"),
        ("LooksAtNeighbours", "chooses the same in any batch", "another batch and order"),
        ("Minded", "chooses the same when built again", "built again"),
        ("WritesViews", "leaves its arguments alone", "wrote into its views"),
        ("WritesSeeds", "leaves its arguments alone", "wrote into its rng"),
        ("Floats", "plays legally", "default: .*float32"),
        ("WrongUnderOmnibus", "plays legally", "omnibus: .*illegal"),
        ("WrongInLastTrick", "plays legally", r"default: .*illegal.* (4[89]|5[01]) plays made"),
        ("TakesNoRules", "is built", "does not take these options"),
        ("RefusesAll", "is built", "declines all rules"),
        ("Crashes", "is built", "default: .*building it raised OverflowError: too much"),
    ],
)
def test_planted_faults_are_found(name: str, check: str, complaint: str) -> None:
    *_, last = checks_of(name)
    assert (last.name, last.verdict) == (check, "fail")
    assert re.search(complaint, last.detail)


def test_declined_rules_are_told_and_no_fault() -> None:
    checks = checks_of("RefusesJacks")
    assert [(check.verdict, check.detail) for check in checks[:2]] == [
        ("declined", "default: no jacks here"),
        ("declined", "omnibus: no jacks here"),
    ]
    assert {check.verdict for check in checks} == {"pass", "declined"}


# --- the page ---------------------------------------------------------------------------------------------------


def test_the_page_lists_every_field_of_a_view() -> None:
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)(?:\[(\d+)\])?` \|", PAGE, re.MULTILINE)
    assert VIEW.names is not None
    fields = [(name, VIEW[name].base, VIEW[name].shape) for name in VIEW.names]
    assert [(name, np.dtype(kind), (int(size),) if size else ()) for name, kind, size in rows] == fields


def test_the_page_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, registry: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    first, *others, _ = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)  # the last has a test in test_docs.py
    commands = re.findall(r"^dnfh (.*my_agent.*)$", PAGE, re.MULTILINE)
    assert (len(others), len(commands)) == (2, 2)
    (tmp_path / "my_agent.py").write_text(first)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    for command in commands:
        assert main(shlex.split(command)) == 0, capsys.readouterr()
    assert (tmp_path / "runs" / "lowest" / "report.json").exists()
    for block in others:
        exec(compile(block, "your_own_agent.md", "exec"), {})


def test_a_name_keeps_its_meaning() -> None:
    with pytest.raises(AgentError, match=r"register: 'greedy-v1' is 'agents.greedy:Greedy' already"):
        register("greedy-v1", "dnfh_env.agent:RandomAgent")
    register("greedy-v1", "agents.greedy:Greedy")  # the same again does no harm
