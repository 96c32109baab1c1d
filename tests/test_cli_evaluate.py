"""The commands `evaluate` and `check-agent` as one types them."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from agents.arena import Match, evaluate
from agents.cli import FAILURE, INTERRUPTED, USAGE, load_rules, main
from agents.pages import LOG_NAME
from agents.report import Report, same_figures
from dnfh_env import Rules, RulesError
from dnfh_env.agent import RandomAgent

ROOT = Path(__file__).resolve().parent.parent
SMALL = ["--deals", "20", "--games", "2"]


class Interrupts:
    """A user who presses Ctrl-C when this one is asked for the hundredth time, which is in the second deals or so."""

    at = 100

    def __init__(self, rules: Rules) -> None:
        self.asked = 0

    def act(self, views: NDArray[Any], rng: NDArray[np.uint64]) -> NDArray[np.int64]:
        self.asked += 1
        if self.asked == self.at:
            raise KeyboardInterrupt
        return RandomAgent().act(views, rng)


class InterruptsAtOnce(Interrupts):
    at = 10


class Cheats:
    def __init__(self, rules: Rules) -> None:
        pass

    def act(self, views: NDArray[Any], rng: NDArray[np.uint64]) -> NDArray[np.int64]:
        return np.full(len(views), 62)


class Hangs(Cheats):
    def act(self, views: NDArray[Any], rng: NDArray[np.uint64]) -> NDArray[np.int64]:
        time.sleep(1000)
        return super().act(views, rng)


def run(*command: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *command], cwd=cwd, env=os.environ, capture_output=True, text=True)


def test_evaluate_prints_a_table_and_writes_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "new" / "report"
    assert main(["evaluate", "greedy", "random", "--against", "random", *SMALL, "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    result = evaluate("greedy", "random", deals=20, games=2)
    assert result.edge and result.win_share
    for expected in ("against random", "card points", f"{result.edge.mean:+.2f} ± {result.edge.margin:.2f}"):
        assert expected in printed
    assert (out / "report.png").read_bytes().startswith(b"\x89PNG")
    report = Report.load(out)
    assert report.results == (result, evaluate("random", "random", deals=20, games=2))
    setup = report.setup
    assert (setup.rules, setup.seed, setup.deals, setup.games, report.complete) == (Rules(), 7_000_000, 20, 2, True)
    assert {"dnfh", "numpy", "numba", "python"} <= report.versions.keys()
    for name in ("report.html", "report.csv", "log.jsonl"):
        assert (out / name).stat().st_size > 0


@pytest.mark.slow
def test_the_same_command_writes_the_same_report(tmp_path: Path) -> None:
    for name in ("a", "b"):
        main(["evaluate", "random", "--against", "greedy", "random", "greedy", *SMALL, "--out", str(tmp_path / name)])
    assert same_figures(Report.load(tmp_path / "a"), Report.load(tmp_path / "b")) == []


def test_options_reach_the_arena(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules = tmp_path / "rules.json"
    rules.write_text(json.dumps({"target": 50, "shot": "none"}))
    command = ["evaluate", "greedy", "--rules", str(rules), "--seed", "3", "--deals", "5", "--games", "0"]
    assert main([*command, "--out", str(tmp_path)]) == 0
    expected = evaluate("greedy", "greedy-v1", Rules(target=50, shot="none"), deals=5, games=0, seed=3)
    report = Report.load(tmp_path)
    assert (report.results, report.setup.rules.target, report.setup.seed) == ((expected,), 50, 3)
    assert "win share" not in capsys.readouterr().out.split("Par is")[0]


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
        (["greedy", "--format", "field"], "format 'field': it takes at least 4 contestants, got 1"),
        (["greedy", "--until-ci", "0"], "until_ci: 0.0 is not above 0"),
        (["greedy", "--workers", "0"], "workers: 0"),
        (["greedy", "--suite", "poker"], "'poker' is not one of"),
        (["greedy", "--protocol", "v0"], "'v0' is not one of"),
        (["--table", "greedy,random"], "at least 4"),
        (["--rerun", "/nowhere"], "/nowhere"),
        (["greedy", "--table", "greedy,random,greedy,random"], "contestants: of no use beside --table"),
        (["greedy", "--suite", "jack", "--isolate"], "isolate: of no use beside --suite"),
        (["greedy", "--protocol", "v1", "--deals", "5"], "deals: of no use beside --protocol"),
        (["--resume", "/nowhere", "--seed", "3"], "seed: of no use beside --resume"),
        (["--resume", "/nowhere"], "resume: there is no log.jsonl in /nowhere"),
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
    command = ["evaluate", "greedy", "test_cli_evaluate:Interrupts", "--against", "random", "--deals", "20000"]
    assert main([*command, "--out", str(tmp_path)]) == INTERRUPTED
    assert "Broken off" in capsys.readouterr().out
    report = Report.load(tmp_path)
    assert report.setup.deals == 20 and report.results[0].edge and report.results[0].edge.n == 20
    assert not report.complete


def test_an_agent_that_errs_is_told_and_the_exit_status_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["evaluate", "test_cli_evaluate:Cheats", "--against", "random", *SMALL]
    assert main([*command, "--out", str(tmp_path)]) == FAILURE
    printed = " ".join(capsys.readouterr().out.split())
    assert "test_cli_evaluate:Cheats" in printed and "action 62 (kitty) is illegal" in printed
    report = Report.load(tmp_path)
    assert report.complete and len(report.faults) == 22
    assert "action 62 (kitty) is illegal" in (tmp_path / "report.html").read_text()


# --- going on, playing again ------------------------------------------------------------------------------------

FIELD = ["greedy", "random", "--against", "heuristic"]


def test_a_log_that_was_killed_before_its_first_line_is_no_log(tmp_path: Path) -> None:
    (tmp_path / LOG_NAME).write_bytes(b'{"setup')
    assert main(["evaluate", *FIELD, *SMALL, "--out", str(tmp_path)]) == 0
    assert Report.load(tmp_path).setup.deals == 20


def test_an_agent_of_another_text_is_another_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    text = "from agents.greedy import Greedy\nclass Mine(Greedy):\n    pass\n"
    (tmp_path / "mine_of_a_test.py").write_text(text)
    assert main(["evaluate", "mine_of_a_test:Mine", *SMALL, "--out", str(tmp_path / "a")]) == 0
    (tmp_path / "mine_of_a_test.py").write_text(text + "# changed\n")
    assert main(["evaluate", "--resume", str(tmp_path / "a")]) == FAILURE
    assert main(["evaluate", "--rerun", str(tmp_path / "a")]) == FAILURE


def test_what_is_there_is_not_played_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["evaluate", *FIELD, *SMALL, "--out", str(tmp_path)]
    assert main(command) == 0
    before = (tmp_path / "report.json").read_bytes()
    assert main(command) == FAILURE
    assert "holds an evaluation already; name another folder, or go on with --resume" in capsys.readouterr().err
    assert (tmp_path / "report.json").read_bytes() == before


@pytest.mark.slow
def test_resuming_plays_on_and_counts_nothing_twice(tmp_path: Path) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert main(["evaluate", *FIELD, "--deals", "90", "--games", "3", "--out", str(whole)]) == 0
    assert main(["evaluate", *FIELD, "--deals", "30", "--games", "1", "--out", str(parts)]) == 0
    assert main(["evaluate", "--resume", str(parts), "--deals", "90", "--games", "3"]) == 0
    assert same_figures(Report.load(whole), Report.load(parts)) == []
    size = (parts / LOG_NAME).stat().st_size
    assert main(["evaluate", "--resume", str(parts)]) == 0
    assert (parts / LOG_NAME).stat().st_size == size
    assert Report.load(parts).results[0].edge != Report.load(whole).results[1].edge


@pytest.mark.slow
def test_resuming_another_match_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["evaluate", *FIELD, *SMALL, "--out", str(tmp_path)])
    capsys.readouterr()
    assert main(["evaluate", "heuristic", "--resume", str(tmp_path)]) == FAILURE
    assert "is of greedy, random, not heuristic" in capsys.readouterr().err


@pytest.mark.slow
def test_a_kill_loses_only_what_is_in_play(tmp_path: Path) -> None:
    asked = ["--deals", "3000", "--games", "0"]
    assert main(["evaluate", *FIELD, *asked, "--out", str(tmp_path / "whole")]) == 0
    out, log = tmp_path / "killed", tmp_path / "killed" / LOG_NAME
    command = [sys.executable, "evaluate.py", *FIELD, *asked, "--out", str(out)]
    for _ in range(3):
        lines = log.read_bytes().count(b"\n") if log.exists() else 0
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        while process.poll() is None and (not log.exists() or log.read_bytes().count(b"\n") < lines + 20):
            time.sleep(0.01)
        process.kill()
        process.wait()
        assert log.read_bytes().count(b"\n") >= lines
        command = [sys.executable, "evaluate.py", "--resume", str(out)]
    assert main(["evaluate", "--resume", str(out)]) == 0
    assert same_figures(Report.load(tmp_path / "whole"), Report.load(out)) == []


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["1", "2"])
def test_ctrl_c_ends_a_run_in_order(tmp_path: Path, workers: str) -> None:
    command = [
        sys.executable,
        "evaluate.py",
        *FIELD,
        "--deals",
        "1000000",
        "--workers",
        workers,
        "--out",
        str(tmp_path),
    ]
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    while not (tmp_path / LOG_NAME).exists() or (tmp_path / LOG_NAME).read_bytes().count(b"\n") < 3:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    printed, complaint = process.communicate(timeout=60)
    assert process.returncode == INTERRUPTED
    assert "Broken off" in printed and complaint == ""
    assert Report.load(tmp_path).setup.deals > 0


def test_a_rerun_has_the_same_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["evaluate", *FIELD, *SMALL, "--out", str(tmp_path)])
    report = tmp_path / "report.json"
    assert main(["evaluate", "--rerun", str(report)]) == 0
    assert "The same figures." in capsys.readouterr().out
    changed = re.sub(r'"mean": -?[\d.]+', '"mean": 0.125', report.read_text(), count=1)
    report.write_text(changed)
    assert main(["evaluate", "--rerun", str(report)]) == FAILURE
    printed = capsys.readouterr().out
    assert "The figures differ." in printed and "0.125" in printed


def test_playing_until_an_interval_is_narrow(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["evaluate", "heuristic", "--against", "random", "--until-ci", "4", "--out", str(tmp_path)]
    assert main(command) == 0
    report = Report.load(tmp_path)
    assert report.complete and 0 < report.setup.deals < 2000 and report.setup.games == 0
    match = Match("heuristic", "random")
    list(match.play("deal", 1_000_000, until=4))
    assert report.results == match.results()
    assert "± 4 reached after" in capsys.readouterr().out
    assert main(["evaluate", "--resume", str(tmp_path)]) == 0  # it knows when to end
    assert Report.load(tmp_path).setup.deals == report.setup.deals


# --- other questions --------------------------------------------------------------------------------------------


def test_a_field_prints_ratings(capsys: pytest.CaptureFixture[str]) -> None:
    field = ["greedy-v1", "random", "heuristic", "greedy"]
    assert main(["evaluate", *field, "--format", "field", "--deals", "40", "--games", "0"]) == 0
    assert "1000" in capsys.readouterr().out


def test_suites_and_tables(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "greedy", "random", "--suite", "shoot", "jack"]) == 0
    printed = capsys.readouterr().out
    assert "shoot" in printed and "jack" in printed and "greedy" in printed
    assert main(["evaluate", "--table", "greedy,random,heuristic,greedy-v1,random", "--games", "8"]) == 0
    assert "heuristic" in capsys.readouterr().out


@pytest.mark.slow
def test_isolated_agents_score_the_same_and_may_hang(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "greedy", *SMALL, "--isolate", "--out", str(tmp_path)]) == 0
    assert Report.load(tmp_path).results == (evaluate("greedy", "greedy-v1", deals=20, games=2),)
    command = ["evaluate", "test_cli_evaluate:Hangs", "--deals", "5", "--games", "0", "--isolate", "--time-limit", "1"]
    assert main(command) == FAILURE
    assert "no answer within" in " ".join(capsys.readouterr().out.split())


def test_ctrl_c_before_there_is_anything(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "test_cli_evaluate:InterruptsAtOnce", "--against", "random", *SMALL]) == INTERRUPTED
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


@pytest.mark.slow
@pytest.mark.parametrize("library", ["tyro", "rich", "matplotlib"])
def test_without_the_extra_it_says_what_to_install(library: str) -> None:
    block = f"import sys; sys.modules[{library!r}] = None; from agents.cli import main; sys.exit(main(sys.argv[1:]))"
    done = run("-c", block, "evaluate", "greedy")
    assert done.returncode == FAILURE
    assert done.stderr.startswith(f"error: dnfh evaluate needs {library}")
    assert "dnfh[evaluate]" in done.stderr
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
