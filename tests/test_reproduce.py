"""The reproduction: plans that miss nothing, a report that is complete and needs no network."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner

from fliptron.cli.group import commands as main
from fliptron.experiments import paper


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
    assert page.count("<svg") == 6
    for words in ("Figure 2", "Figure 3", "Tables 1 and 2", "The paper's claims", "leaves open", "Beyond the paper"):
        assert words in page
    assert "fliptron" in page.split("How it was made")[1]
    for name in ("glance", "figure2", "figure3", "appendix", "appendix-middle", "beyond"):
        for suffix in ("png", "svg", "pdf"):
            assert (folder / "figures" / f"{name}.{suffix}").stat().st_size > 1000


def test_every_cell_has_its_number(smoke: Any) -> None:
    folder, _ = smoke
    errors = pd.read_csv(folder / "tables" / "errors.csv")
    for dataset in ("digits", "iris"):
        for rho0, rho1 in paper.NOISE:
            cell = errors[(errors.dataset == dataset) & (errors.rho0 == rho0) & (errors.rho1 == rho1)]
            assert {"Banditron", "BPA", "SOBA", "RCNBF", "RCINE", "Fliptron", "RidgeRegression"} <= set(cell.learner)
    rates = pd.read_csv(folder / "tables" / "rates.csv")
    assert len(rates) == 5 * 6 * 3
    claims = pd.read_csv(folder / "tables" / "claims.csv")
    assert len(claims) >= 9


def test_vowpal_wabbit_plays_where_it_is_installed(smoke: Any) -> None:
    beyond = pd.read_csv(smoke[0] / "tables" / "beyond.csv")
    assert (beyond[beyond.learner == "VowpalWabbit"].groupby("dataset").size() == len(paper.NOISE)).all()


def test_starting_again_plays_nothing(smoke: Any) -> None:
    folder, _ = smoke
    before = {path.name for path in (folder / "results").iterdir()}
    assert len(before) < 50
    result = CliRunner().invoke(main, ["reproduce", "--out", str(folder)])
    assert re.search(r"runs: (\d+) of \1 runs are already there", result.output)
    assert {path.name for path in (folder / "results").iterdir()} == before


def test_the_desk_plan_has_every_data_set_and_setting_of_the_paper() -> None:
    desk = paper.SCALES["desk"]
    cells = {(spec.dataset, spec.rates) for spec in paper.tuning(desk, paper.PARTS)}
    assert cells == {(name, rates) for name in (*paper.MAIN, *paper.EXTRA) for rates in paper.NOISE}
    chosen = pd.DataFrame(
        [(name, *rates, learner, '{"gamma": 0.1}') for name, rates in cells for learner in paper.TUNED],
        columns=["dataset", "rho0", "rho1", "learner", "oracle"],
    )
    runs = paper.final(desk, paper.PARTS, chosen)
    assert {
        (spec.dataset, spec.rates) for spec in runs if spec.learner == "RCNBF" and spec.rounds == desk.rounds
    } == cells
    published = {(spec.dataset, spec.rates) for spec in runs if spec.learner == "RCINE-NREst"}
    assert published == {(name, rates) for name in paper.PUBLISHED for rates in paper.NOISE}


def test_the_honest_choice_sees_only_bits() -> None:
    pilots = pd.DataFrame(
        {
            "dataset": "digits",
            "rho0": 0.2,
            "rho1": 0.4,
            "learner": "RCNBF",
            "params": ['{"gamma": 0.1}', '{"gamma": 0.2}'],
            "error": [0.3, 0.5],
            "mean_bit": [0.41, 0.42],
        }
    )
    (row,) = paper.choose(pilots).itertuples()
    assert (row.oracle, row.honest) == ('{"gamma": 0.1}', '{"gamma": 0.2}')
    assert (row.oracle_error, row.honest_error) == (0.3, 0.5)


def test_unknown_parts_are_refused(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["reproduce", "--only", "fig9", "--out", str(tmp_path)])
    assert result.exit_code == 2
    assert "'fig9' is not a part of the paper; some of fig2" in result.output


def test_a_scale_of_many_hours_asks_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paper, "datasets", lambda scale, parts: ["digits", "iris"])
    result = CliRunner().invoke(main, ["reproduce", "--scale", "paper", "--out", str(tmp_path)], input="n\n")
    assert re.search(r"About \d+ hours\.", result.output)
    assert result.exit_code == 1
    assert not any(tmp_path.iterdir())
