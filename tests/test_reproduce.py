"""The reproduction: plans that miss nothing, a report that is complete and needs no network."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import subprocess
import sys
import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from fliptron.cli.group import commands as main
from fliptron.datasets.registry import Entry
from fliptron.experiments import costs, paper, reproduction, tuning
from fliptron.experiments.plan import grid
from fliptron.experiments.runner import Watch, play
from fliptron.noise.estimate import Estimate
from fliptron.noise.published import NREst
from fliptron.refusals import InputError
from fliptron.report.claims import FEWEST, check_claims, rate_table
from fliptron.report.reproduction import _pictures, rates_shape
from fliptron.results import Results


@pytest.fixture(scope="module")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("paper")
    result = CliRunner().invoke(main, ["reproduce", "--out", str(folder)])
    assert result.exit_code == 0, result.output
    return folder, result.output


def test_the_command_ends_with_the_path_of_a_report(smoke: Any) -> None:
    folder, output = smoke
    assert output.strip().splitlines()[-1] == f"Report: {folder / 'report.html'}"


def test_the_report_is_whole_and_asks_nothing_of_the_network(smoke: Any) -> None:
    folder, _ = smoke
    page = (folder / "report.html").read_text()
    assert not re.search(r'(src|href)="https?:', page)
    names = ("glance", "figure2", "figure3", "appendix", "appendix-middle", "first-order", "beyond")
    assert page.count("<svg") == len(names)
    for words in ("Figure 2", "Figure 3", "Table 2", "The paper's claims", "leaves open", "Beyond the paper"):
        assert words in page
    assert "fliptron" in page.split("How it was made")[1]
    for name in names:
        for suffix in ("png", "svg", "pdf"):
            assert (folder / "figures" / f"{name}.{suffix}").stat().st_size > 1000


def test_every_cell_has_its_number_and_every_figure_one_horizon(smoke: Any) -> None:
    folder, _ = smoke
    errors = pd.read_csv(folder / "tables" / "errors.csv")
    scale = paper.SCALES["smoke"]
    for dataset in ("digits", "iris"):
        for rho0, rho1 in paper.NOISE:
            cell = errors[(errors.dataset == dataset) & (errors.rho0 == rho0) & (errors.rho1 == rho1)]
            assert {*paper.PAPER, *paper.FIRST_ORDER} <= set(cell[cell.rounds == max(scale.horizons)].learner)
            assert {*paper.PAPER, "Fliptron", "RidgeRegression"} <= set(cell[cell.rounds == scale.beyond].learner)
    rates = pd.read_csv(folder / "tables" / "rates.csv")
    assert set(rates.dataset) == {"iris"}


def test_two_seeds_give_no_verdict(smoke: Any) -> None:
    claims = pd.read_csv(smoke[0] / "tables" / "claims.csv")
    assert len(claims) >= 14
    assert claims.verdict.str.startswith("no verdict from").all()
    assert set(claims.horizon) == set(paper.SCALES["smoke"].horizons)


ERRORS = {"RCNBF": 0.2, "RCINE": 0.2, "Banditron": 0.5, "BPA": 0.1, "SOBA": 0.5}


class TestClaims:
    """Verdicts on runs that were never played: an error for each learner, the same in every cell."""

    T = 10**6

    def runs(self, seeds: int = 5, **estimates: Any) -> pd.DataFrame:
        random, at, rows = np.random.default_rng(0), np.array([self.T // 10, self.T // 2, self.T]), []
        for (rho0, rho1), (learner, error), seed in product(paper.NOISE, ERRORS.items(), range(seeds)):
            curve = (error + 0.001 * random.random()) * (at / self.T) ** (-0.2 if learner in ("RCNBF", "RCINE") else 0)
            found = (
                estimates.get("found", lambda *_: (None, None))(rho0, rho1, seed) if learner == "RCINE" else (None,) * 2
            )
            mistakes = np.rint(curve * at).astype(int).tolist()
            rows.append(("iris", rho0, rho1, learner, self.T, seed, curve[-1], at.tolist(), mistakes, mistakes, *found))
        columns = ["dataset", "rho0", "rho1", "learner", "rounds", "seed", "error", "checkpoints", "mistakes"]
        return pd.DataFrame(rows, columns=[*columns, "greedy_mistakes", "rho0_hat", "rho1_hat"])

    def verdicts(self, runs: pd.DataFrame) -> dict[str, Any]:
        return {claim.text: claim for claim in check_claims(runs, runs.head(0), [self.T])}

    def test_lower_everywhere_holds_and_higher_everywhere_does_not(self) -> None:
        found = self.verdicts(self.runs())
        lower = "Under noise RCNBF (true rates) has lower error than {}".format
        assert found[lower("Banditron")].verdict == found[lower("SOBA")].verdict == "holds"
        assert found[lower("BPA (best γ, 0 allowed)")].verdict == "does not hold"
        assert "lower in 0 of 5 noisy cells, not told apart in 0" in found[lower("BPA (best γ, 0 allowed)")].evidence
        still = found["Under noise the others converge while RCNBF and RCINE are still learning"]
        assert still.verdict == "holds"
        assert "RCNBF -0.20 ± 0.00, RCINE -0.20 ± 0.00, Banditron 0.00" in still.evidence

    def test_four_seeds_give_no_verdict(self) -> None:
        claims = self.verdicts(self.runs(seeds=4, found=lambda rho0, rho1, _: (rho0, rho1)))
        assert {claim.verdict for claim in claims.values()} == {"no verdict from 4 seeds"}

    def test_rates_that_were_not_identified_are_not_left_out(self) -> None:
        """At (0, 0) by no seed, at (0.4, 0.4) by two of five, else by all, and rightly."""

        def found(rho0: float, rho1: float, seed: int) -> Any:
            lost = rho0 == rho1 == 0.0 or (rho0 == rho1 == 0.4 and seed > 1)
            return (None, None) if lost else (rho0, rho1)

        runs = self.runs(found=found)
        claim = self.verdicts(runs)["The rates can be estimated (our plateaus)"]
        assert claim.verdict == "holds in part"
        assert "within .05 in 4 of 6 cells, not identified by most seeds in 2;" in claim.evidence
        table = rate_table(runs).set_index(["rho0", "rho1"])
        assert table.loc[0.4, 0.4][["seeds", "played"]].tolist() == [2, 5]
        shown = rates_shape(rate_table(runs), ["iris"], self.T)["Iris: plateaus"].tolist()
        assert (shown[0], shown[1], shown[5]) == ("not identified", "0.150, 0.150", "0.400, 0.400 (2 of 5)")


def test_the_report_has_no_empty_cell_and_says_what_stands_in(smoke: Any) -> None:
    page = (smoke[0] / "report.html").read_text()
    assert not re.search(r"<td[^>]*></td>", page)
    assert "not identified" in page.split("Table 2")[1].split("<h2>")[0]
    assert "no verdicts. Embedded data stands in: digits (embedded) for MNIST (UCI 8×8), " in page
    assert "0.0 core" not in page
    glance = page.split("At a glance")[1]
    assert re.search(r'<svg style="min-width: min\(44rem, 2[\d.]+pt\); max-width', glance)  # one panel: a phone's


def test_rows_of_figure_2_are_in_the_order_of_the_paper() -> None:
    assert paper.FIGURE_2 == ((0.0, 0.0), (0.15, 0.15), (0.4, 0.4), (0.2, 0.4), (0.4, 0.2))
    assert sorted(paper.FIGURES) == sorted(paper.NOISE)


def test_runs_of_different_lengths_do_not_share_a_figure() -> None:
    columns = ["learner", "dataset", "rho0", "rho1", "seed", "rounds", "details", "checkpoints", "greedy_mistakes"]
    estimates = json.dumps({"estimates": [[50, 0.1, 0.2], [100, 0.2, 0.4]]})
    rows = [
        ("RCINE-NREst", dataset, 0.2, 0.4, 0, T, estimates, [T // 2, T], [T // 4, T // 3])
        for dataset, T in (("iris", 100), ("synsep", 100), ("iris", 1000))
    ]
    done = reproduction.Reproduction(
        scale=paper.SCALES["smoke"],
        runs=pd.DataFrame(rows, columns=columns),
        sweep=pd.DataFrame(columns=columns),
        chosen=pd.DataFrame(),
        failures=pd.DataFrame(),
        missing={},
        failed=0,
        hours=1.0,
    )
    found = _pictures(done, pd.DataFrame(columns=["rounds", "learner"]))
    ends = {name: [axes.get_xlim()[1] for axes in picture().axes] for name, (_, picture) in found.items()}
    assert ends == {"drift": [100, 100], "drift-long": [1000]}


def test_vowpal_wabbit_plays_where_it_is_installed(smoke: Any) -> None:
    errors = pd.read_csv(smoke[0] / "tables" / "errors.csv")
    assert (errors[errors.learner == "VowpalWabbit"].groupby("dataset").size() == len(paper.NOISE)).all()


def test_starting_again_plays_nothing(smoke: Any) -> None:
    folder, _ = smoke
    before = {path.name for path in (folder / "results").iterdir()}
    assert len(before) < 50
    result = CliRunner().invoke(main, ["reproduce", "--out", str(folder)])
    assert re.search(r"6,000 rounds: (\d+) of \1 runs are already there", result.output)
    assert "About" not in result.output
    assert {path.name for path in (folder / "results").iterdir()} == before


def walked(scale: str, *parts: str, results: Path) -> list[Any]:
    """The runs of a plan of which nothing has been played."""
    plan = reproduction.Plan(paper.SCALES[scale], parts or paper.SCALES[scale].parts, Results(results))
    plan.missing.clear()
    walk = reproduction._Walk(plan, play=None)
    walk.all()
    return [*walk.tasks, *walk.sweep]


def test_the_paper_plan_has_every_cell_at_its_own_horizon(tmp_path: Path) -> None:
    tasks = walked("paper", results=tmp_path)
    everywhere = {(dataset, rates) for dataset in paper.ALL for rates in paper.NOISE}

    def played(name: str, rounds: int) -> dict[Any, int]:
        found: dict[Any, int] = {}
        for task in tasks:
            if task.name == name and task.spec.rounds == rounds:
                found[task.spec.dataset, task.spec.rates] = found.get((task.spec.dataset, task.spec.rates), 0) + 1
        return found

    for name in paper.PAPER:
        for rounds in (10**6, 10**7):
            assert set(played(name, rounds)) == everywhere
            assert {cell[0] for cell, seeds in played(name, rounds).items() if seeds < 10} <= set(paper.WIDE)
            assert min(played(name, rounds).values()) >= FEWEST
    published = played("RCINE-NREst", 10**6)
    assert set(published) == {(dataset, rates) for dataset in paper.PUBLISHED for rates in paper.NOISE}
    assert set(played("RCINE-NREst-one-hot", 10**6)) == {(dataset, (0.2, 0.4)) for dataset in paper.PUBLISHED}
    assert set(played("RCINE-NREst", 10**7)) == {("iris", (0.2, 0.4))}
    assert set(played("SOBA-full", 10**6)) == {(name, rates) for name in ("optdigits", "iris") for rates in paper.NOISE}


def test_a_part_alone_plays_only_what_it_needs(tmp_path: Path) -> None:
    tasks = walked("paper", "nrest", results=tmp_path)
    assert {task.name for task in tasks} == set(paper.NREST)
    tasks = walked("desk", "table2", results=tmp_path)
    assert {(task.name, task.spec.dataset) for task in tasks} == {("RCINE", "iris"), ("RCINE", "synsep")}


class TestTuning:
    stage = paper.Stage(3000, ("BPA", "BPA, γ > 0", "RCNBF"), 2, pilots=2, noise=((0.2, 0.4),))

    def runs(self, tasks: list[tuning.Task], error: Any) -> pd.DataFrame:
        """What came of pilots whose error is a function of γ; more bits at larger γ."""
        rows = [(task.spec.id, error(task.spec.params["gamma"]), task.spec.params["gamma"]) for task in tasks]
        return pd.DataFrame(rows, columns=["id", "error", "mean_bit"]).drop_duplicates("id")

    def test_pilots_are_a_third_of_a_run_on_other_seeds(self) -> None:
        tasks = tuning.pilots(self.stage, {"RCNBF": ["iris"]}, None)
        assert {task.spec.rounds for task in tasks} == {1000}
        assert {task.spec.seed for task in tasks} == {1000, 1001}
        assert {task.spec.params["gamma"] for task in tasks} == set(paper.GAMMAS)

    @pytest.mark.parametrize("best", [1e-5, 2e-4, 0.005, 0.8])
    def test_they_climb_until_no_rung_is_better(self, best: float) -> None:
        tasks = tuning.pilots(self.stage, {"RCNBF": ["iris"]}, None)

        def error(gamma: float) -> float:
            return float(abs(np.log(gamma / best)))

        for _ in range(12):
            more = tuning.climb(self.stage, tasks, self.runs(tasks, error))
            if not more:
                break
            tasks += more
        (row,) = tuning.choose(tasks, self.runs(tasks, error)).itertuples()
        assert json.loads(row.oracle) == {"gamma": best}
        assert not more

    def test_a_longer_horizon_starts_from_the_choice_of_a_shorter_one(self) -> None:
        tasks = tuning.pilots(self.stage, {"BPA": ["iris"]}, None)
        chosen = tuning.choose(tasks, self.runs(tasks, lambda gamma: abs(gamma - 0.05)))
        after = tuning.pilots(self.stage, {"BPA": ["iris"]}, chosen)
        assert {task.spec.params["gamma"] for task in after} == {0.0, 0.05}

    def test_no_exploration_is_chosen_only_where_it_may_be(self) -> None:
        tasks = tuning.pilots(self.stage, {"BPA": ["iris"], "BPA, γ > 0": ["iris"]}, None)
        chosen = tuning.choose(tasks, self.runs(tasks, lambda gamma: gamma)).set_index("name")
        assert json.loads(chosen.oracle["BPA"]) == {"gamma": 0.0}
        assert json.loads(chosen.oracle["BPA, γ > 0"]) == {"gamma": 0.0005}

    def test_the_honest_choice_sees_only_bits(self) -> None:
        tasks = tuning.pilots(self.stage, {"RCNBF": ["iris"]}, None)
        (row,) = tuning.choose(tasks, self.runs(tasks, lambda gamma: gamma)).itertuples()
        assert (json.loads(row.oracle), json.loads(row.honest)) == ({"gamma": 0.0005}, {"gamma": 0.4})
        assert (row.oracle_error, row.honest_error) == (0.0005, 0.4)


def test_unknown_parts_are_refused(tmp_path: Path) -> None:
    for option in ("--only", "--without"):
        result = CliRunner().invoke(main, ["reproduce", option, "fig9", "--out", str(tmp_path)])
        assert result.exit_code == 2
        assert "'fig9' is not a part of the paper; some of fig2" in result.output


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--jobs", "-3"], "jobs is -3; a whole number of at least 1"),
        (["--jobs", "0"], "jobs is 0; a whole number of at least 1"),
        (["--out", ""], "--out is empty; the name of a folder is expected"),
        (["--only", "fig3", "--datasets", "iris"], "no such part plays on such a data set at this scale"),
        (["--without", ",".join(paper.PARTS)], "nothing is left to play"),
    ],
)
def test_what_cannot_be_played_is_refused_at_once(
    options: Any, words: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(costs, "seconds_per_round", lambda spec: 1e-6)
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, ["reproduce", *options])
    assert result.exit_code == 2
    assert words in result.output
    assert not any(tmp_path.iterdir())


def test_the_time_on_a_cluster_is_that_of_one_core(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(costs, "seconds_per_round", lambda spec: 1e-4)
    options = ["--only", "fig3", "--out", str(tmp_path), "--cluster", "tcp://127.0.0.1:1"]
    result = CliRunner().invoke(main, ["reproduce", *options])
    assert result.exit_code == 2
    assert "About 1 minute of one core like those here, which the cluster's workers share." in result.output


def test_why_a_data_set_is_missing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(name: str) -> None:
        raise InputError(f"{name} is not here, for a reason")

    monkeypatch.setattr(reproduction, "load", load)
    monkeypatch.setattr(costs, "seconds_per_round", lambda spec: 1e-6)
    options = ["--only", "fig3", "--datasets", "optdigits", "--scale", "desk", "--yes", "--out", str(tmp_path / "out")]
    result = CliRunner().invoke(main, ["reproduce", *options])
    assert result.exit_code == 2
    assert result.output.splitlines()[-1] == "Error: optdigits is missing: optdigits is not here, for a reason"


def test_some_data_sets_only(tmp_path: Path) -> None:
    options = ["reproduce", "--out", str(tmp_path / "out"), "--only", "fig2,appendix", "--datasets"]
    result = CliRunner().invoke(main, [*options, "iris"])
    assert result.exit_code == 0, result.output
    assert set(Results(tmp_path / "out/results").load().dataset) == {"iris"}
    result = CliRunner().invoke(main, [*options, "irises"])
    assert result.exit_code == 2
    assert "'irises'" in result.output


def test_a_scale_of_many_hours_asks_first_and_loads_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(name: str) -> None:
        raise AssertionError(f"{name} was loaded")

    monkeypatch.setattr(reproduction, "load", load)
    monkeypatch.setattr(Entry, "present", lambda self, name: True)
    monkeypatch.setattr(costs, "seconds_per_round", lambda spec: 1e-6)
    options = ["--scale", "paper", "--without", "nrest", "--out", str(tmp_path)]
    result = CliRunner().invoke(main, ["reproduce", *options], input="n\n")
    assert re.search(r"About \d+\.\d hours\.", result.output), result.output
    assert result.exit_code == 1
    result = CliRunner().invoke(main, ["reproduce", *options], input="")
    assert result.exit_code == 2
    assert result.output.splitlines()[-1] == "Error: nobody is here to answer; --yes goes on without asking"
    assert not any(tmp_path.iterdir())


def test_the_time_is_measured_and_near(tmp_path: Path) -> None:
    """Costs on a stand-in are those of the data, and what was played is known better."""
    specs = grid(
        datasets=["digits"],
        rates=[(0.2, 0.4)],
        learners={"RCNBF": {}, "RidgeRegression": {}},
        rounds=60_000,
        seeds=[0, 1],
    )
    results = Results(tmp_path)
    before = costs.hours(specs, results, 1)
    assert play(specs, results, jobs=1) == 0
    took = float(results.load().seconds.sum()) / 3600
    assert before == pytest.approx(took, rel=1.0)  # other work on the machine moves both
    assert costs.hours(specs, results, 1) == pytest.approx(took, rel=0.3)


def test_more_threads_than_cores_are_no_faster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(costs, "seconds_per_round", lambda spec: 1e-6)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    plan = reproduction.Plan(paper.SCALES["smoke"], ("fig3",), Results(tmp_path))
    assert plan.hours(100) == plan.hours(2) == plan.hours(None) == plan.hours(1) / 2


def test_no_network_is_trained_to_the_end_for_the_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    trained, estimate = [], NREst.estimate

    def watched(self: NREst) -> Estimate:
        trained.append(self.epochs)
        return estimate(self)

    monkeypatch.setattr(NREst, "estimate", watched)
    (spec,) = grid(datasets=["iris"], rates=[(0.2, 0.4)], learners={"RCINE-NREst": {}}, rounds=10**6, seeds=[0])
    assert costs.seconds_per_round(spec) > 0.0
    assert trained == [4]


def test_python_learners_play_in_processes_and_give_the_same_numbers(tmp_path: Path) -> None:
    specs = grid(datasets=["iris"], rates=[(0.2, 0.4)], learners={"VowpalWabbit": {}}, rounds=300, seeds=range(3))
    stores = [Results(tmp_path / name) for name in ("threads", "processes")]
    assert [play(specs, store, processes=store is stores[1], jobs=2) for store in stores] == [0, 0]
    errors = [store.load().sort_values("seed").error.tolist() for store in stores]
    assert errors[0] == errors[1]


def test_ctrl_c_does_not_wait_for_what_processes_play(tmp_path: Path) -> None:
    rounds = [(300, [0]), (3_000_000, [1])]  # the second takes minutes
    common: Any = {"datasets": ["iris"], "rates": [(0.2, 0.4)], "learners": {"VowpalWabbit": {}}}
    specs = [spec for T, seeds in rounds for spec in grid(**common, rounds=T, seeds=seeds)]

    class Pressed(Watch):
        def finished(self, runs: Any) -> None:
            raise KeyboardInterrupt

    results, began = Results(tmp_path), time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        play(specs, results, processes=True, jobs=2, watch=Pressed())
    assert time.monotonic() - began < 60
    assert len(results.done()) == 1
    assert not multiprocessing.active_children()


def test_a_process_whose_parent_was_killed_while_it_began_ends_too() -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    code = f"import time; from fliptron.experiments import runner; runner._end_with_parent({gone.pid}); time.sleep(60)"
    done = subprocess.run([sys.executable, "-c", code], timeout=45, check=False, capture_output=True)
    assert (done.returncode, done.stderr) == (1, b"")
