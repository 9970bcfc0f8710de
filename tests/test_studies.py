"""Studies are plans: every one can be asked for its runs, and goes from plan to table."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fliptron import InputError
from fliptron.cli.playing import play_with_progress
from fliptron.experiments.plan import grid
from fliptron.experiments.roster import ROSTER
from fliptron.experiments.runner import play
from fliptron.report.statistics import param
from fliptron.results import Results
from fliptron.rounds import Rates

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
import study  # type: ignore[import-not-found]


@pytest.fixture
def nothing(tmp_path: Path) -> Any:
    return Results(tmp_path / "nothing").load()


def shrink(monkeypatch: pytest.MonkeyPatch, name: Any, **constants: Any) -> Any:
    found = study.find(name)
    for constant, value in constants.items():
        monkeypatch.setattr(found, constant, value)
    return found


@pytest.mark.parametrize("name", study.NAMES)
def test_a_study_says_what_it_asks_and_wants_runs_that_can_be_played(name: Any, nothing: Any) -> None:
    found = study.find(name)
    assert "?" in found.__doc__.splitlines()[0]
    specs = study.plan(found, nothing)
    assert specs
    assert len({spec.id for spec in specs}) == len(specs)
    for spec in specs:
        assert spec.learner in ROSTER
        assert Rates.of(spec.rates) == spec.rates
        assert spec.rounds >= 1


def test_from_plan_to_table(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = shrink(monkeypatch, "rcine", DATA=("digits",), ROUNDS=6000, SEEDS=range(2))
    (path,) = study.carry_out("rcine", Results(tmp_path / "runs"), tmp_path, play_with_progress)
    assert path == tmp_path / "tables" / "rcine.md"
    lines = path.read_text().splitlines()
    assert "6,000 rounds" in lines[1]
    assert len([line for line in lines if line.startswith("| digits")]) == len(found.NOISE)


def test_a_study_that_plays_in_its_own_way_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    results, smaller = Results(tmp_path / "runs"), {"SEEDS": range(2), "BEFORE": 1000, "AFTER": 2000}
    found = shrink(monkeypatch, "drift", **smaller)
    with pytest.raises(InputError, match="36 of 36 runs are missing; nothing is written"):
        study.carry_out("drift", results, tmp_path, None)
    (path,) = study.carry_out("drift", results, tmp_path, play_with_progress)
    text = path.read_text()
    assert all(f"| {name} |" in text for name in found.CHANGES)
    path.unlink()
    study.carry_out("drift", results, tmp_path, None)
    assert path.read_text() == text


def test_peers_are_chosen_on_other_seeds_and_compared(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = study.find("peers")
    few = {library: dict([*learners.items()][:1]) for library, learners in found.PEERS.items()}
    smaller = {"CELLS": {("iris", (0.0, 0.0)): 40}, "SEEDS": range(2), "TUNING": range(1000, 1001), "PEERS": few}
    shrink(monkeypatch, "peers", **smaller)

    def alone(specs: Any, results: Any, **_: Any) -> int:
        return play(specs, results, jobs=1)

    (path,) = study.carry_out("peers", Results(tmp_path / "runs"), tmp_path, alone)
    text = path.read_text()
    assert "| bayesianbandits, its best | 0." in text
    assert text.count("| Fliptron through ") == 2
    assert "of 1 cells" in text
    assert "Bayesian-LinTS" in text


def test_ids_change_with_what_plays_a_run_and_with_nothing_else(monkeypatch: pytest.MonkeyPatch, nothing: Any) -> None:
    found = study.find("drift")
    before = {spec.id for spec in study.plan(found, nothing)}
    monkeypatch.setattr(found, "SEEDS", range(11))
    assert before < {spec.id for spec in study.plan(found, nothing)}
    monkeypatch.setattr(found, "PIECE", 500)
    assert not before & {spec.id for spec in study.plan(found, nothing)}


def test_what_plays_a_run_includes_the_helpers_it_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    found = study.find("coverage")
    before = study.digest(found.play_one)
    monkeypatch.setattr(found, "smooth", found.plateaus)
    assert study.digest(found.play_one) != before


def test_a_plan_may_go_by_what_has_been_played(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def specs(runs: Any) -> Any:
        common = {"datasets": ["digits"], "rates": [(0.2, 0.4)], "rounds": 500}
        first = grid(**common, learners={"Banditron": {"gamma": [0.1, 0.4]}}, seeds=[1000])
        if runs.empty:
            return first
        best = param(runs[runs.seed == 1000].sort_values("error"), "gamma").iloc[0]
        return first + grid(**common, learners={"Banditron": {"gamma": [best]}}, seeds=[0, 1])

    monkeypatch.setattr(study, "find", lambda _: SimpleNamespace(specs=specs, write=lambda runs, docs: [runs]))
    (runs,) = study.carry_out("two", Results(tmp_path), tmp_path, play_with_progress)
    assert sorted(runs.seed) == [0, 1, 1000, 1000]


def test_an_unknown_study_is_refused() -> None:
    with pytest.raises(InputError, match="'drifts' is not a study; one of accounts, audits, bandits, before"):
        study.find("drifts")
