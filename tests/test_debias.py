"""Debiased logs: the rates that they go by, what is written, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from fliptron import InputError, Log, debias
from fliptron.cli.group import commands as main
from fliptron.datasets.shop import shop
from fliptron.debiasing import channels_of
from fliptron.logs.tables import write_table
from fliptron.tables import TableFile

BY_LABEL = {"bags": (0.4, 0.2), "hats": (0.05, 0.5), "shoes": (0.05, 0.3), "socks": (0.3, 0.3)}
BY_SITE = {"app": (0.02, 0.05), "web": (0.3, 0.4)}


def flipped(path: Path, which: str, rates: dict[str, Any], rounds: int) -> Path:
    """A shop's log whose bits go through a channel for every value of a column."""
    random = np.random.default_rng(3)
    log = dict(shop(rounds, rates=(0.0, 0.0), seed=3).log)
    del log["time"]
    log["site"] = random.choice(sorted(BY_SITE), rounds).astype(object)
    pairs = np.array([rates[each] for each in log[which]])
    log["clicked"] = (random.random(rounds) < np.where(log["clicked"] == 1, 1 - pairs[:, 1], pairs[:, 0])).astype(int)
    write_table(path, log)
    return path


@pytest.fixture(scope="module")
def by_label(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return flipped(tmp_path_factory.mktemp("log") / "a.parquet", "shown", BY_LABEL, 50_000)


@pytest.fixture(scope="module")
def by_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return flipped(tmp_path_factory.mktemp("log") / "a.parquet", "site", BY_SITE, 40_000)


def read(path: Path) -> pd.DataFrame:
    file = TableFile(str(path))
    return pd.DataFrame(file.rows("SELECT * FROM {}"), columns=file.columns)


def test_rates_of_labels_are_found(by_label: Path) -> None:
    found = channels_of(Log(by_label), by="label").estimates
    for label, pair in BY_LABEL.items():
        estimate = found[label]
        for name, truth, value in zip(("rho0", "rho1"), pair, estimate.rates, strict=True):
            low, high = estimate.intervals[name]
            assert low - 0.01 <= truth <= high + 0.01
            assert value == pytest.approx(truth, abs=0.04 if estimate.verdict == "identified" else 0.15)
    assert [label for label, each in found.items() if each.verdict == "identified"] == ["hats", "shoes"]


def test_rates_of_sources_are_found_and_weighted_is_what_they_get(by_site: Path, tmp_path: Path) -> None:
    log = Log(by_site)
    found = debias(log, tmp_path / "a.vw", to="vw", by="site")
    for site, (rho0, rho1) in BY_SITE.items():
        assert found.rates[site].rho0 == pytest.approx(rho0, abs=0.04)
        assert found.rates[site].rho1 == pytest.approx(rho1, abs=0.08)
    beta, rho0 = found.rates["web"].beta, found.rates["web"].rho0
    costs = {line.split(":")[1] for line in (tmp_path / "a.vw").read_text().splitlines() if line.startswith("0:")}
    assert repr(-beta * (1 - rho0)) in costs
    assert len(costs) == 4
    with pytest.raises(InputError, match="a log has two costs"):
        Log(tmp_path / "a.vw")


def test_a_table_has_both_forms(by_site: Path, tmp_path: Path) -> None:
    log = Log(by_site)
    told = {"app": (0.1, 0.2), "web": (0.3, 0.3)}
    debias(log, tmp_path / "a.parquet", by="site", rates=told)
    made, given = read(tmp_path / "a.parquet"), read(by_site)
    rho0 = given["site"].map({"app": 0.1, "web": 0.3})
    beta = given["site"].map({"app": 1 - 0.1 - 0.2, "web": 1 - 0.3 - 0.3})
    np.testing.assert_array_equal(made["h"], (given["clicked"] - rho0) / beta)
    np.testing.assert_array_equal(made["weighted"], beta * (given["clicked"] - rho0))
    assert made["label"].tolist() == given["shown"].tolist()
    assert {"age", "income", "city", "bit", "probability", "rho0", "beta"} <= set(made.columns)


def test_a_debiased_table_read_again_has_the_features_it_had(tmp_path: Path) -> None:
    write_table(tmp_path / "a.csv", shop(2000).log)
    log = Log(tmp_path / "a.csv")
    debias(log, tmp_path / "a.parquet", rates=(0.2, 0.4))
    again = Log(tmp_path / "a.parquet")
    assert again.features == log.features
    assert again.schema == log.schema
    debias(again, tmp_path / "b.parquet", rates=(0.2, 0.4))
    pd.testing.assert_frame_equal(read(tmp_path / "a.parquet"), read(tmp_path / "b.parquet"))
    with pytest.raises(InputError, match="column 'h' tells in every round what came back"):
        Log(tmp_path / "a.parquet", features=["age", "h"])
    (tmp_path / "c.csv").write_text(BITS.replace("x", "h").replace("\n", ",2\n").replace(",2", ",beta", 1) + ",3")
    assert Log(tmp_path / "c.csv").features == ["h", "beta"]  # somebody's own


def test_one_channel_moves_and_stretches_the_bits_and_they_are_read_again(tmp_path: Path) -> None:
    write_table(tmp_path / "a.csv", shop(2000).log)
    log = Log(tmp_path / "a.csv")
    debias(log, tmp_path / "a.dsjson.gz", to="dsjson", rates=(0.2, 0.4))
    (first,), (second,) = log.batches(), Log(tmp_path / "a.dsjson.gz").batches()
    np.testing.assert_array_equal(first.rounds.bit, second.rounds.bit)


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_table(Path("a.csv"), shop(2000).log)
    told = [text for label, pair in BY_LABEL.items() for text in ("--rates", f"{label}={pair[0]},{pair[1]}")]
    result = CliRunner().invoke(main, ["debias", "a.csv", "--to", "obp", "--by", "label", *told])
    assert result.exit_code == 0
    assert "time is left out: it holds more than 1,000 different words" in result.stdout
    assert "Debiased: debiased.npz" in result.stdout
    with np.load("debiased.npz") as file:
        assert np.unique(file["reward"]).size == 8
    result = CliRunner().invoke(main, ["debias", "a.csv", "--by", "label", *told, "--json"])
    assert json.loads(result.stdout)["rates"]["hats"] == {"rho0": 0.05, "rho1": 0.5, "verdict": "told"}
    assert Path("debiased.parquet").exists()


BITS = "label,bit,probability,x\n" + "\n".join(f"{i % 2},{i % 2},0.5,{i % 7}" for i in range(40))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "the flip rates are not identified: only"),
        (["--by", "label"], "the flip rates of label 0 are not identified: "),
        (["--by", "x"], "the flip rates of x '0' are not identified: "),
        (["--by", "y"], "by is 'y'; 'label' or one of the columns x is expected"),
        (["--rates", "0.5,0.6"], "their sum must be below 1"),
        (["--rates", "0.5"], "RHO0,RHO1 or VALUE=RHO0,RHO1 is expected"),
        (["--rates", "0=0.1,0.2"], "say by what with --by"),
        (["--rates", "0.1,0.2", "--by", "label"], "no rates are given for label 0"),
        (["--rates", "0=0.1,0.2", "--by", "x"], "no rates are given for x '1'; '0' have some"),
        (["--rates", "0.1,0.2", "--rates", "0.1,0.2"], "twice"),
        (["--rates", "0,0", "--to", "vw-cb"], "a label is 0; in vw-cb labels are whole numbers"),
        (["--rates", "0,0", "--save", "a.csv"], "ends in '.csv'; .parquet is expected"),
        (["--rates", "0,0", "--to", "vw", "--save", "a.dsjson"], "ends in '.dsjson'; .vw is expected, also with .gz"),
        (["--rates", "0,0", "--to", "dsjson", "--save", "a.vw.gz"], "ends in '.vw'; .dsjson or .json is expected"),
        (["--rates", "0,0", "--to", "obp", "--save", "a.vw"], "ends in '.vw'; .npz is expected"),
        (["--rates", "0,0", "--save", "a.csv/a.parquet"], "it is not a folder"),
    ],
)
def test_what_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], words: str) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text(BITS)
    result = CliRunner().invoke(main, ["debias", "a.csv", *options])
    assert result.exit_code == 2
    assert words in " ".join(result.stderr.split())
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]


@pytest.mark.parametrize("values", [(True, False), (1.0, 0.0), (1, 0), ("1", "0")])
def test_rates_may_be_told_by_the_values_themselves(tmp_path: Path, values: Any) -> None:
    words = {True: "true", False: "false"} if values[0] is True else {values[0]: 1, values[1]: 0}
    rows = "\n".join(f"{1 + i % 2},{i % 2},0.5,{words[values[i % 3 % 2]]}" for i in range(12))
    (tmp_path / "a.csv").write_text("label,bit,probability,ok\n" + rows)
    told = {values[0]: (0.1, 0.2), values[1]: (0.3, 0.1)}
    debias(Log(tmp_path / "a.csv"), tmp_path / "a.parquet", by="ok", rates=told)
    assert read(tmp_path / "a.parquet")["rho0"].tolist() == [told[values[i % 3 % 2]][0] for i in range(12)]
    debias(Log(tmp_path / "a.csv"), tmp_path / "a.parquet", by="label", rates={1.0: (0, 0), 2: (0.1, 0)})


def test_a_log_without_probabilities_identifies_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(BITS.replace("probability", "p_of_nothing"))
    log = Log(tmp_path / "a.csv")
    with pytest.raises(InputError, match="does not say with which probability"):
        channels_of(log)
    debias(log, tmp_path / "a.parquet", rates=(0.1, 0.2))
    assert "probability" not in read(tmp_path / "a.parquet").columns
    with pytest.raises(InputError, match="which this form needs"):
        debias(log, tmp_path / "a.vw", to="vw", rates=(0.1, 0.2))
