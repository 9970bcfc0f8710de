"""The command line: what it prints, what it writes, what it refuses."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from fliptron.cli.group import commands as main
from fliptron.datasets.registry import REGISTRY

QUICK = ["--rounds", "2e3", "--seeds", "3", "--learner", "RCNBF", "--learner", "ridgeregression"]


def fliptron(*arguments: Any) -> Any:
    return CliRunner().invoke(main, list(arguments))


class TestRun:
    def test_table_pictures_and_report(self, tmp_path: Path) -> None:
        result = fliptron("run", *QUICK, "--out", str(tmp_path))
        assert result.exit_code == 0
        assert "RidgeRegression" in result.stdout
        assert result.stdout.rstrip().endswith("report.html")
        assert {path.name for path in tmp_path.iterdir()} == {
            "results.json",
            "curves.csv",
            "errors.png",
            "errors.svg",
            "report.html",
            "results",
        }
        assert (tmp_path / "errors.png").read_bytes().startswith(b"\x89PNG")

    def test_json_rows(self, tmp_path: Path) -> None:
        result = fliptron("run", *QUICK, "--json", "--out", str(tmp_path))
        rows = json.loads(result.stdout)
        assert rows == json.loads((tmp_path / "results.json").read_text())
        assert [row["learner"] for row in rows] == ["RCNBF", "RidgeRegression"]
        for row in rows:
            assert 0 < row["error_mean"] < 1
            assert row["error_ci95"] > 0
            assert 0 < row["greedy_error_mean"] < 1
            assert row["rounds_per_second"] > 1000
            assert (row["dataset"], row["rates"], row["rounds"], row["seeds"]) == (
                "digits",
                [0.2, 0.4],
                2000,
                [0, 1, 2],
            )
        assert rows[0]["params"]["rates"] == [0.2, 0.4]

    def test_numbers_do_not_depend_on_the_number_of_jobs(self, tmp_path: Path) -> None:
        def numbers(jobs: Any) -> Any:
            result = fliptron("run", *QUICK, "--json", "--jobs", jobs, "--out", str(tmp_path))
            return [
                {key: value for key, value in row.items() if key != "rounds_per_second"}
                for row in json.loads(result.stdout)
            ]

        assert numbers("1") == numbers("2")

    def test_one_seed_has_no_interval(self, tmp_path: Path) -> None:
        result = fliptron("run", *QUICK, "--seeds", "1", "--json", "--out", str(tmp_path))
        assert [row["error_ci95"] for row in json.loads(result.stdout)] == [None, None]

    def test_gamma_goes_to_those_who_explore(self, tmp_path: Path) -> None:
        arguments = ("run", *QUICK, "--learner", "Confidit", "--gamma", "0.33", "--json", "--out", str(tmp_path))
        rows = json.loads(fliptron(*arguments).stdout)
        assert [row["params"].get("gamma") for row in rows] == [0.33, 0.33, None]

    def test_a_users_file(self, tmp_path: Path) -> None:
        random = np.random.default_rng(0)
        y = random.integers(2, size=100)
        rows = [f"{a:.3f},{b:.3f},{'yes' if c else 'no'}" for (a, b), c in zip(random.normal(size=(100, 2)), y)]  # noqa: B905
        (tmp_path / "mine.csv").write_text("\n".join(rows))
        result = fliptron("run", *QUICK, "--dataset", str(tmp_path / "mine.csv"), "--json", "--out", str(tmp_path))
        assert {row["dataset"] for row in json.loads(result.stdout)} == {"mine"}

    def test_the_report_needs_nothing_but_itself(self, tmp_path: Path) -> None:
        fliptron("run", *QUICK, "--out", str(tmp_path))
        page = (tmp_path / "report.html").read_text()
        assert "<svg" in page
        for word in ("src=", 'href="http', "@import", "<script", "<link"):
            assert word not in page

    def test_a_refusal_is_one_line_and_nothing_follows_it(self) -> None:
        """Libraries that are not taken down at the end say so at length, in a process of their own only."""
        command = [sys.executable, "-m", "fliptron", "run", "--rates", "0.7", "0.6"]
        told = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (told.returncode, told.stdout) == (2, "")
        assert len(told.stderr.splitlines()) == 1

    def test_ctrl_c_keeps_what_is_finished(self, tmp_path: Path) -> None:
        command = [sys.executable, "-m", "fliptron", "run", "--learner", "Perceptron", "--learner", "Confidit"]
        options = ["--rounds", "3e5", "--seeds", "6", "--jobs", "1", "--out", str(tmp_path)]
        process = subprocess.Popen(
            [*command, *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509  # else ignored in a background job
        )
        told = ""
        while "Perceptron: 6 ×" not in told and process.poll() is None:
            told += process.stderr.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        assert process.returncode == 130
        assert "of 12 runs had finished and are kept" in err
        assert "Traceback" not in err
        assert "Perceptron" in out
        rows = json.loads((tmp_path / "results.json").read_text())
        assert len(rows[0]["seeds"]) == 6
        assert "Interrupted" in (tmp_path / "report.html").read_text()


class TestMustShow:
    def test_regression_beats_rcnbf_beats_banditron(self, tmp_path: Path) -> None:
        arguments = ["run", "--learner", "Banditron", "--learner", "RCNBF", "--learner", "RidgeRegression", "--json"]
        rows = {row["learner"]: row for row in json.loads(fliptron(*arguments, "--out", str(tmp_path)).stdout)}
        banditron, rcnbf, ridge = (rows[name] for name in ("Banditron", "RCNBF", "RidgeRegression"))
        assert rcnbf["error_mean"] + rcnbf["error_ci95"] < 0.9 * banditron["error_mean"]
        assert ridge["error_mean"] + ridge["error_ci95"] < 0.25 * rcnbf["error_mean"]


class TestRefusals:
    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["--rates", "0.6", "0.5"], "rho0 + rho1 is 1.1"),
            (["--rates", "-0.1", "0.5"], "rho0 is -0.1"),
            (["--rates", "nan", "0.5"], "rho0 is nan"),
            (["--rates", "x", "0.5"], "'x' is not a valid float"),
            (["--gamma", "1.5"], "gamma is 1.5; a number of at least 0 and at most 1"),
            (["--gamma", "0"], "gamma is 0; a number above 0"),
            (["--rounds", "0"], "rounds is 0"),
            (["--rounds", "1.5"], "'1.5' is not a whole number"),
            (["--rounds", "inf"], "'inf' is not a whole number"),
            (["--seeds", "0"], "at least one learner and one seed"),
            (["--first-seed", "-1"], "seed is -1"),
            (["--jobs", "-2"], "jobs is -2"),
            (["--jobs", "0"], "jobs is 0"),
            (["--rounds", "1e30"], "rounds is 1000000000000000019884624838656"),
            (["--seeds", "1e30"], "seeds is 1000000000000000019884624838656"),
            (["--dataset", "nope"], "nope is not a data set"),
            (["--dataset", "nope.csv"], "nope.csv does not exist"),
            (["--learner", "Perceptronn"], "'Perceptronn' is not one of"),
            (["--order", "random"], "'random' is not one of"),
            (["--rows", "10"], "only synthetic sets"),
        ],
    )
    def test_bad_input_is_one_sentence_and_exit_code_2(self, arguments: Any, words: Any, tmp_path: Path) -> None:
        result = fliptron("run", *QUICK, "--out", str(tmp_path / "new" / "out"), *arguments)
        assert result.exit_code == 2
        assert words in result.stderr
        assert "Traceback" not in result.stderr
        assert result.stdout == ""
        assert not list(tmp_path.iterdir())

    def test_an_unwritable_out_is_refused_before_any_work(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("in the way")
        result = fliptron("run", *QUICK, "--out", str(tmp_path / "file" / "out"))
        assert result.exit_code == 2
        assert "cannot be written" in result.stderr

    def test_a_bad_file_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "bad.csv").write_text("1,2,0\n1,2\n")
        result = fliptron("run", *QUICK, "--dataset", str(tmp_path / "bad.csv"), "--out", str(tmp_path / "out"))
        assert result.exit_code == 2
        assert "line 2 has 2 values; 3 are expected" in result.stderr


class TestData:
    def test_lists_every_set(self) -> None:
        rows = json.loads(fliptron("data", "--json").stdout)
        assert {row["name"]: row["present"] for row in rows}["digits"] is True
        assert [row["name"] for row in rows] == list(REGISTRY)
        assert "synnonsep" in fliptron("data").stdout


class TestAdvise:
    def test_gamma_bound_and_caveat(self) -> None:
        result = fliptron("advise", "--rounds", "1e7", "--classes", "10")
        assert result.exit_code == 0
        assert "gamma = 0.0587" in result.stdout
        assert "nobody knows" in result.stdout

    def test_a_bound_above_the_rounds_is_called_empty(self) -> None:
        assert "promises nothing" in fliptron("advise", "--rounds", "1e3", "--classes", "10").stdout
        answer = json.loads(fliptron("advise", "--rounds", "1e3", "--classes", "10", "--json").stdout)
        assert answer["vacuous"] is True

    def test_bad_settings(self) -> None:
        result = fliptron("advise", "--rounds", "1e7", "--classes", "1")
        assert result.exit_code == 2
        assert "n_classes is 1" in result.stderr


def test_help_teaches() -> None:
    for command in ("run", "data", "advise"):
        assert command in fliptron("--help").stdout
        assert fliptron(command, "--help").exit_code == 0
