"""The benchmarks run and say what they mean. Nothing here looks at how fast anything is."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))

import instructions  # noqa: E402
import learning  # noqa: E402
import measuring  # noqa: E402
import ours  # noqa: E402
import peers  # noqa: E402
import plots  # noqa: E402
import run  # noqa: E402

from dnfh_env import Batch, dnfh_v0  # noqa: E402
from dnfh_env.engine import GAME  # noqa: E402

Y = run.LOOP


def stub(*_: object, **__: object) -> measuring.Work:
    return lambda: 7


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> run.Found:
    """What a whole run finds, where every work is a stub and each figure, in the order measured, is 1, 2, 3 …"""
    for module, names in ((ours, ("fused", "stepped", "game_loop", "aec", "copying", "writing")), (peers, PEERS)):
        for name in names:
            monkeypatch.setattr(module, name, stub)
    monkeypatch.setattr(learning, "side_by_side", lambda *_: {"Ours": float, "Stock": float})
    monkeypatch.setattr(run, "in_turn", lambda group, repeats, rounds: {name: [0.0] * repeats for name in group})
    names = run.measure_all(0.0, 3)
    return {name: [float(10 * number + k) for k in range(3)] for number, name in enumerate(names, 1)}


PEERS = ("openspiel_loop", "openspiel_rollouts", "openspiel_bots", "connect_four")


# --- arithmetic -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "per_second"), [(0.0, 10 / 1.0), (1.0, 10 / 1.0), (2.0, 20 / 2.5), (2.6, 30 / 4.0)]
)
def test_a_rate_is_the_work_of_whole_calls_over_their_time(
    monkeypatch: pytest.MonkeyPatch, seconds: float, per_second: float
) -> None:
    clock = iter([100.0, 101.0, 102.5, 104.0])
    monkeypatch.setattr(measuring.time, "perf_counter", lambda: next(clock))
    assert measuring.rate(lambda: 10, seconds) == per_second


def test_measures_are_taken_in_turn_after_a_warm_up() -> None:
    asked = []

    def ask(name: str) -> measuring.Measure:
        return lambda: float(asked.append(name) or len(asked))

    assert measuring.in_turn({"a": ask("a"), "b": ask("b")}, 2) == {"a": [3, 5], "b": [4, 6]}
    asked.clear()
    assert measuring.in_turn({"a": ask("a"), "b": ask("b")}, 2, rounds=3) == {"a": [5, 11], "b": [6, 12]}
    assert asked == ["a", "b"] * 7


def test_summary_and_ratio_of_hand_made_numbers() -> None:
    assert measuring.summary([5, 1, 12]) == {"median": 5, "low": 1, "high": 12}
    assert measuring.ratio([10, 30, 20], [10, 5, 4]) == {"ratio": 4, "low": 1, "high": 6}


@pytest.mark.parametrize(
    ("value", "at_least", "at_most"),
    [(9, "missed", "aim"), (10, "met", "aim"), (15, "met", "met"), (20, "aim", "met"), (21, "aim", "missed")],
)
def test_verdicts(value: float, at_least: str, at_most: str) -> None:
    assert run.Goal("", "", "", 10, 20).verdict(value) == at_least
    assert run.Goal("", "", "", 20, 10, at_most=True).verdict(value) == at_most
    assert run.Goal("", "", "", 10).verdict(value) == ("missed" if value < 10 else "met")
    assert run.Goal("", "", "").verdict(value) == ""


def test_threads_compared() -> None:
    assert [run.some_threads(most) for most in (1, 2, 6, 8)] == [[1], [1, 2], [1, 2, 4, 6], [1, 2, 4, 8]]


def test_goals_compare_what_they_say(found: run.Found) -> None:
    found |= {run.FUSED: [60.0, 50.0, 70.0], Y: [1.0, 1.0, 2.0], run.STATE: [360.0] * 3}
    found |= {run.sized(run.FUSED, 1024): [13.0] * 3, run.sized(run.FUSED, 65536): [10.0] * 3}
    rows = {row["what"]: row for row in run.judged(found)}
    fused = rows["fused random play over OpenSpiel's Python loop"]
    assert {key: fused[key] for key in ("ratio", "low", "high", "verdict")} == {
        "ratio": 60,
        "low": 35,
        "high": 60,
        "verdict": "met",
    }
    assert rows["state of a game, bytes"]["ratio"] == 360
    assert rows["cost of a decision, fused, 65,536 games over 1,024"]["ratio"] == pytest.approx(1.3)


# --- units ------------------------------------------------------------------------------------------------------


def test_bytes_of_a_step() -> None:
    always = 4 * 4 + 1 + 1 + 4 * 4 + 8 + 8  # rewards, ended, truncated, scores, seat, legal set
    assert [ours.written(obs) for obs in (None, "packed", "bytes")] == [always, always + 15 * 8, always + 960 + 64]
    assert ours.written("bytes", "full") == always + 1792 + 64
    assert ours.moved("packed") == 2 * GAME.itemsize + always + 15 * 8


def test_what_a_batch_holds_is_its_records_and_what_it_writes() -> None:
    held = ours.allocated("bytes", size=1000)
    assert GAME.itemsize + ours.written("bytes") <= held <= 3 * GAME.itemsize + ours.written("bytes")


@pytest.mark.parametrize(("touch", "share"), [(ours.copying, 2), (ours.writing, 1)])
def test_bandwidth_counts_bytes_read_and_written(
    monkeypatch: pytest.MonkeyPatch, touch: Callable[..., measuring.Work], share: int
) -> None:
    arrays = []
    monkeypatch.setattr(ours.np, "ones", lambda *shape: arrays.append(np.zeros(*shape)) or arrays[-1])
    size = 1 << 20
    assert touch(size)() == touch(size, threads=3)() == 64 * size  # so often that it takes a while
    assert touch(1 << 27)() == 1 << 27
    assert [array.nbytes * share for array in arrays[::share]] == [size, size, 1 << 27]


def test_shares_of_the_bandwidth(found: run.Found) -> None:
    found |= {run.sized(run.BYTES, run.ROWS): [1e6] * 3}
    found |= {run.touched("copying", "16 MiB"): [4e9] * 3, run.touched("writing", "16 MiB"): [2e9] * 3}
    limit = run.limits(found)[run.sized(run.BYTES, run.ROWS)]
    assert limit["nanoseconds a decision"] == 1000
    assert limit["share of copying 16 MiB"] == pytest.approx(1e6 * ours.moved("bytes") / 4e9)
    assert limit["share of writing 16 MiB"] == pytest.approx(1e6 * ours.written("bytes") / 2e9)


def test_processor_is_that_of_the_first_core(tmp_path: Path) -> None:
    told = tmp_path / "cpuinfo"
    told.write_text("processor\t: 0\nmodel name\t: Some CPU: fast\n\nprocessor\t: 1\nmodel name\t: Other\n")
    assert measuring.processor(told) == "Some CPU: fast"
    assert measuring.processor(tmp_path / "none") == measuring.platform.processor()


def test_callgrinds_total(tmp_path: Path) -> None:
    dump = tmp_path / "callgrind.12"
    dump.write_text("events: Ir\nsummary: 123456\n\nfn=(1) main\n1 5\n\ntotals: 123455\n")
    assert (instructions.total(dump), instructions.dump_number(dump)) == (123456, 12)
    dump.write_text("events: Ir\n")
    with pytest.raises(ValueError, match="summary"):
        instructions.total(dump)


# --- every measure runs -----------------------------------------------------------------------------------------

WORKS: dict[str, Callable[[], measuring.Work]] = {
    "fused": lambda: ours.fused(2),
    "fused, threads": lambda: ours.fused(4, deals=2, threads=2),
    "heuristic": lambda: ours.fused(2, "heuristic"),
    **{mode: (lambda mode=mode: ours.stepped(2, *run.MODES[mode])) for mode in run.MODES},
    "step, threads": lambda: ours.stepped(4, "bytes", threads=2),
    "Game": ours.game_loop,
    "AEC, raw": lambda: ours.aec(wrapped=False),
    "AEC, wrapped": lambda: ours.aec(wrapped=True),
}


@pytest.mark.parametrize("name", WORKS)
def test_our_work_runs(name: str) -> None:
    speed = measuring.rate(WORKS[name](), 0.0)
    assert math.isfinite(speed) and speed > 0


def test_our_work_says_how_much_it_was() -> None:
    assert ours.fused(4, deals=2)() == 4 * 2 * ours.DEAL == 4 * 2 * (1 + 12 + 52)
    assert ours.stepped(4, None)() == 4 * ours.DEAL
    assert peers.aec_loop(dnfh_v0.raw_env(episode="deal"))() == ours.DEAL
    played = [work() for work in (ours.game_loop(), ours.aec(wrapped=False), ours.aec(wrapped=True))]
    assert all(decisions % ours.DEAL == 0 < decisions <= 18 * ours.DEAL for decisions in played), (
        "18 deals end any game"
    )


def test_chosen_actions_are_legal_and_all_come_up() -> None:
    legal = np.array([0b1, 0b1010, 1 << 63 | 1 << 62 | 1 << 5], np.uint64)
    actions = np.empty(3, np.int64)
    seen: list[set[int]] = [set(), set(), set()]
    for count in range(50):
        ours.choose(legal, count, actions)
        for row, action in zip(seen, actions.tolist(), strict=True):
            row.add(action)
    assert seen == [{0}, {1, 3}, {5, 62, 63}]
    many = np.empty(1000, np.int64)
    ours.choose(np.full(1000, 2**64 - 1, np.uint64), 1, many)
    assert len(set(many.tolist())) == 64, "rows with equal legal sets choose alike"


def test_counted_work_runs(capsys: pytest.CaptureFixture[str]) -> None:
    instructions.work_through(2)
    printed = dict(line.split(": ") for line in capsys.readouterr().out.splitlines())
    assert printed == dict.fromkeys(instructions.NAMES, "130")


def test_learning_runs_beside_stock() -> None:
    both = learning.side_by_side(minibatch=64, threads=1, rollout=512)
    assert both.keys() == {"Ours", "Stock"}
    assert all(measure() > 0 for measure in both.values())


@pytest.mark.interop
@pytest.mark.parametrize("peer", PEERS)
def test_peers_run(peer: str) -> None:
    options: dict[str, Any] = {"openspiel_rollouts": {"number": 3}, "connect_four": {"wrapped": True}}.get(peer, {})
    work = getattr(peers, peer)(**options)
    assert measuring.rate(work, 0.0) > 0
    done = [work() for _ in range(40)]
    if peer == "openspiel_rollouts":
        assert set(done) == {3 * (52 + 3 * 64)}
    elif peer == "connect_four":
        assert all(7 <= moves <= 42 for moves in done)
    else:
        assert set(done) == {52, 64}, "a game without a pass, and with one"


@pytest.mark.interop
def test_chance_and_players_take_so_many_steps() -> None:
    import pyspiel

    game = pyspiel.load_game("hearts")
    for direction, decisions in enumerate((52, 64, 64, 64)):
        state = peers.openspiel_deal(game, direction)
        assert state.move_number() == peers.CHANCE_STEPS and not state.is_chance_node()
        while not state.is_terminal():
            state.apply_action(state.legal_actions()[0])
        assert state.move_number() == peers.CHANCE_STEPS + decisions
    assert pytest.approx(4 * 53 / (52 + 3 * 64) + 1) == peers.STEPS_A_DECISION


@pytest.mark.interop
def test_a_search_of_one_simulation_is_one_call_of_the_evaluator() -> None:
    import pyspiel

    searches = []

    class Watched:
        def __init__(self, *args: Any, **options: Any) -> None:
            self.bot = MCTSBot(*args, **options)

        def mcts_search(self, state: Any) -> None:
            searches.append(self.bot.mcts_search(state))

    MCTSBot = pyspiel.MCTSBot
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pyspiel, "MCTSBot", Watched)
        peers.openspiel_rollouts(1)()
    assert [(root.explore_count, len(root.children)) for root in searches] == [(1, 0)] * 4


# --- what is written and told ------------------------------------------------------------------------------------


def test_report_has_its_fields_and_pictures(
    found: run.Found, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = measuring.origin(("dnfh", "numpy"))
    report = run.report_of(found, {"import": measuring.summary([0.5])})
    run.show(report, found)
    assert all(goal.what in capsys.readouterr().out for goal in run.GOALS[:1])
    measuring.write(tmp_path / "new" / "bench.json", source | report)
    read = json.loads((tmp_path / "new" / "bench.json").read_text())
    assert read.keys() == source.keys() | report.keys()
    assert read["machine"].keys() == {"processor", "cores", "system", "python", "load average"}
    assert read["versions"].keys() == {"dnfh", "numpy"}
    assert {"commit", "changed since"} <= read.keys()
    assert read["figures"][Y] == measuring.summary(found[Y]) | {"values": found[Y]}
    assert len(read["goals"]) == len(run.GOALS)
    drawn = plots.draw(tmp_path, report)
    assert [path.read_bytes()[:8] for path in drawn] == [b"\x89PNG\r\n\x1a\n"] * 4


def test_example_of_the_docs_gives_features_and_masks() -> None:
    page = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(example, "performance.md", "exec"), names)
    batch = Batch(4096, seed=1)
    assert (names["features"].numpy() == batch.observe()).all()
    assert (names["allowed"].numpy() == batch.action_masks()).all()
    assert (batch.step(names["actions"].numpy()).rewards == names["step"].rewards).all()


def test_docs_say_how_many_bytes_are_written() -> None:
    page = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    for obs in (None, "packed", "bytes"):
        row = re.search(rf"^\| `{json.dumps(obs) if obs else obs}` \|.*$", page, re.MULTILINE)
        assert row and f"| {ours.written(obs):,}" in row[0]
        assert obs is None or f"| {ours.written(obs, 'full'):,} |" in row[0]
        assert f"| {ours.moved(obs):,} |" in page
    assert f"one `GAME` record of {GAME.itemsize} bytes" in page
