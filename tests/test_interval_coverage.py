"""The check of coverage itself: it can fail, and it knows when what it kept is out of date."""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))

import interval_coverage as check  # noqa: E402


def evaluations(mean: float) -> Any:
    rng = np.random.default_rng(1)
    return (rng.normal(mean, 8, check.BLOCKS) for _ in range(300))


def test_a_right_truth_passes_and_a_wrong_one_does_not() -> None:
    right, wrong = check.judged("right", 1.0, evaluations(1.0)), check.judged("wrong", 1.0, evaluations(1.5))
    assert right.passes
    assert right.evaluations == 300
    assert not wrong.passes
    assert "MISSED" in wrong.text()


@pytest.mark.parametrize(("held", "missed"), [(0.91, 0.0), (0.99, 0.0), (0.95, 0.08)])
def test_each_bound_can_be_missed(held: float, missed: float) -> None:
    assert check.Row("", 400, 0.95, 0.07).passes
    assert not check.Row("", 400, held, missed).passes


@pytest.mark.parametrize("made", check.MADE, ids=lambda made: made.name)
def test_made_up_scores_have_the_mean_they_say(made: check.Made) -> None:
    scores = made.draw(np.random.default_rng(1), 200_000)
    assert scores.mean() == pytest.approx(made.mean, abs=4 * scores.std() / 200_000**0.5)


def test_the_careless_player_lapses_as_often_as_it_says() -> None:
    units = check.units(np.random.default_rng(1).integers(0, 2**64, 100_000, np.uint64))
    assert np.histogram(units, 10, (0, 1))[0] == pytest.approx(10_000, rel=0.05)
    assert len(set(check.played(1, 40))) > 1


def test_the_truth_is_kept_and_played_anew_when_it_is_out_of_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check, "PART", 30)
    monkeypatch.setattr(check, "PROBE", 5)
    path = tmp_path / "results" / "truth.json"
    whole = [score for seed, blocks in ((0, 30), (1, 20)) for score in check.played(check.TRUTH_SEED + seed, blocks)]
    with ThreadPoolExecutor(1) as pool:
        assert check.truth(pool, 50, path) == pytest.approx(np.mean(whole))  # type: ignore[arg-type]
        kept = json.loads(path.read_text())
        assert [part["blocks"] for part in kept["parts"]] == [30, 20]
        kept["parts"][0]["twelfths"] += 50 * 12
        path.write_text(json.dumps(kept))
        assert check.truth(pool, 50, path) == pytest.approx(np.mean(whole) + 1)  # type: ignore[arg-type]
        kept["probe"]["sha256"] = "of another player"
        path.write_text(json.dumps(kept))
        assert check.truth(pool, 50, path) == pytest.approx(np.mean(whole))  # type: ignore[arg-type]
