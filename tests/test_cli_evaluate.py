"""The commands `evaluate` and `check-agent` as one types them."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from agents.arena import Result, evaluate
from agents.cli import FAILURE, INTERRUPTED, USAGE, load_rules, main
from agents.report import Report
from agents.stats import Interval
from dnfh_env import DnfhError, Rules, RulesError
from dnfh_env.agent import RandomAgent

ROOT = Path(__file__).resolve().parent.parent
SMALL = ["--deals", "20", "--games", "2"]


class Interrupts:
    """A user who presses Ctrl-C when this one is asked for the tenth time, which is in the first deals."""

    def __init__(self, rules: Rules) -> None:
        self.asked = 0

    def act(self, views: NDArray[Any], rng: NDArray[np.uint64]) -> NDArray[np.int64]:
        self.asked += 1
        if self.asked == 10:
            raise KeyboardInterrupt
        return RandomAgent().act(views, rng)


class Cheats:
    def __init__(self, rules: Rules) -> None:
        pass

    def act(self, views: NDArray[Any], rng: NDArray[np.uint64]) -> NDArray[np.int64]:
        return np.full(len(views), 62)


def run(*command: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *command], cwd=cwd, env=os.environ, capture_output=True, text=True)


def test_evaluate_prints_a_table_and_writes_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "new" / "report"
    assert main(["evaluate", "greedy", "random", "--against", "random", *SMALL, "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    result = evaluate("greedy", "random", deals=20, games=2)
    assert result.edge and result.win_share
    for expected in ("against random", "card points", f"{result.edge.mean:+.2f} [{result.edge.low:+.2f}, "):
        assert expected in printed
    assert (out / "report.png").read_bytes().startswith(b"\x89PNG")
    report = Report.load(out)
    assert report.results == (result, evaluate("random", "random", deals=20, games=2))
    written = json.loads((out / "report.json").read_text())
    assert written["rules"] == Rules().to_dict()
    assert written["rules_digest"] == Rules().digest()
    assert set(written["versions"]) == {"dnfh", "numpy"}
    assert (written["seed"], written["deals"], written["games"], written["complete"]) == (7_000_000, 20, 2, True)
    assert written["results"][0]["edge"] == result.edge.to_dict()
    assert written["results"][0]["against"] == ["random", "random", "random"]


def test_the_same_command_writes_the_same_report(tmp_path: Path) -> None:
    for name in ("a", "b"):
        main(["evaluate", "random", "--against", "greedy", "random", "greedy", *SMALL, "--out", str(tmp_path / name)])
    assert (tmp_path / "a" / "report.json").read_bytes() == (tmp_path / "b" / "report.json").read_bytes()


def test_options_reach_the_arena(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules = tmp_path / "rules.json"
    rules.write_text(json.dumps({"target": 50, "shot": "none"}))
    command = ["evaluate", "greedy", "--rules", str(rules), "--seed", "3", "--deals", "5", "--games", "0"]
    assert main([*command, "--out", str(tmp_path)]) == 0
    expected = evaluate("greedy", "greedy-v1", Rules(target=50, shot="none"), deals=5, games=0, seed=3)
    report = Report.load(tmp_path)
    assert (report.results, report.rules.target, report.seed) == ((expected,), 50, 3)
    assert "–" in capsys.readouterr().out  # no games, no win share


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "name at least one agent"),
        (["nobody"], "unknown agent 'nobody'"),
        (["greedy", "--against", "random", "random"], "three for left, across and right, got 2"),
        (["greedy", "--deals", "0", "--games", "0"], "nothing to play"),
        (["greedy", "--deals", "-1"], "nothing to play"),
        (["greedy", "--seed", "-1"], "seed: -1 is not"),
        (["greedy", "--rules", "poker"], "'poker' is neither a file nor one of default, standard_hearts, omnibus"),
        (["ppo:/nowhere"], "/nowhere"),
        (["test_cli_evaluate:Cheats"], r"test_cli_evaluate:Cheats: action 62 (kitty) is illegal"),
    ],
)
def test_errors_are_one_line(arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", *arguments]) == FAILURE
    printed = capsys.readouterr()
    assert printed.err.startswith("error: ")
    assert printed.err.count("\n") == 1
    assert complaint in printed.err
    assert "Traceback" not in printed.out + printed.err


def test_ctrl_c_reports_what_there_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["evaluate", "greedy", "test_cli_evaluate:Interrupts", "--against", "random", *SMALL]
    assert main([*command, "--out", str(tmp_path)]) == INTERRUPTED
    assert "Broken off" in capsys.readouterr().out
    report = Report.load(tmp_path)
    assert [result.contestant for result in report.results] == ["greedy"]
    assert not report.complete


def test_ctrl_c_before_there_is_anything(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "test_cli_evaluate:Interrupts", "--against", "random", *SMALL]) == FAILURE
    assert "before anything was played" in capsys.readouterr().err


def test_check_agent_exits_by_its_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check-agent", "greedy", "--games", "6"]) == 0
    assert capsys.readouterr().out.count("pass") == 6
    assert main(["check-agent", "test_cli_evaluate:Cheats", "--games", "6"]) == FAILURE
    assert "is illegal" in " ".join(capsys.readouterr().out.split())
    assert main(["check-agent", "greedy", "--games", "0"]) == FAILURE
    assert "games: 0" in capsys.readouterr().err


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == main(["--help"]) == 0
    assert capsys.readouterr().out.count("check-agent") == 2
    assert main(["dance"]) == USAGE
    assert "unknown command 'dance'" in capsys.readouterr().err
    for command in ("evaluate", "check-agent"):
        with pytest.raises(SystemExit) as caught:
            main([command, "--help"])
        assert caught.value.code == 0
        assert "AGENT" in capsys.readouterr().out


@pytest.mark.slow
def test_the_script_loads_no_torch(tmp_path: Path) -> None:
    code = "import sys, evaluate; from agents.cli import main; main(sys.argv[1:]); print('torch' in sys.modules)"
    done = run("-c", code, "evaluate", "greedy", *SMALL, "--out", str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("False\n")
    assert (tmp_path / "report.png").exists()


def test_the_script_exits_by_its_status() -> None:
    done = run("evaluate.py", "nobody")
    assert done.returncode == FAILURE
    assert done.stderr.startswith("error: unknown agent")


@pytest.mark.parametrize("library", ["tyro", "rich", "matplotlib"])
def test_without_the_extra_it_says_what_to_install(library: str) -> None:
    block = f"import sys; sys.modules[{library!r}] = None; from agents.cli import main; sys.exit(main(sys.argv[1:]))"
    done = run("-c", block, "evaluate", "greedy")
    assert done.returncode == FAILURE
    assert done.stderr.startswith(f"error: dnfh evaluate needs {library}")
    assert "dnfh[train]" in done.stderr
    assert run("-c", block, "--help").returncode == 0


def test_rules_by_name_and_from_files(tmp_path: Path) -> None:
    assert load_rules("default") == Rules()
    assert load_rules("omnibus") == Rules.omnibus()
    path = tmp_path / "rules.json"
    path.write_text(json.dumps(Rules.standard_hearts(target=50).to_dict()))
    assert load_rules(str(path)) == Rules.standard_hearts(target=50)
    for text, complaint in (("{", "is not JSON"), ('{"aim": 3}', "unknown field 'aim'"), ("[]", "expected a mapping")):
        path.write_text(text)
        with pytest.raises(RulesError, match=complaint):
            load_rules(str(path))
    path.write_bytes(b"\xff\xfe\xff")
    with pytest.raises(RulesError, match="is not JSON"):
        load_rules(str(path))


def test_reports_go_round_and_refuse_others(tmp_path: Path) -> None:
    result = Result("a", ("b", "c", "d"), edge=Interval(1.0, -math.inf, math.inf, 1), shots=Interval(0.0, 0.0, 0.5, 4))
    report = Report(Rules.omnibus(), 3, 1, 0, (result,), complete=False)
    report.save(tmp_path)
    assert Report.load(tmp_path) == report
    fields: dict[str, Any] = report.to_dict()
    with pytest.raises(DnfhError, match="digest"):
        Report.from_dict(fields | {"rules_digest": "0"})
    for wrong in ({"seed": 3}, fields | {"extra": 1}, fields | {"results": [{}]}, []):
        with pytest.raises(DnfhError, match="not made of"):
            Report.from_dict(wrong)  # type: ignore[arg-type]
    (tmp_path / "report.json").write_text("{")
    with pytest.raises(DnfhError, match="not JSON"):
        Report.load(tmp_path)
