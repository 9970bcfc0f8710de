"""Logs in files, and the command that reads them."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from fliptron import InputError, LeastMeanSquares, Rounds, read_log, simulate, write_log
from fliptron.cli.group import commands as main
from fliptron.learning import Progressive
from fliptron.logs.labels import as_names


@pytest.fixture(scope="module")
def log(digits: Any) -> Any:
    learner = LeastMeanSquares(n_classes=10, n_features=64, gamma=0.1)
    return simulate(learner, digits, rates=(0.2, 0.4), rounds=40_000, log=True).log


@pytest.mark.parametrize("name", ["log.csv", "log.parquet", "it's a log.parquet"])
def test_what_is_written_is_read(log: Any, tmp_path: Path, name: Any) -> None:
    write_log(tmp_path / name, log)
    again = read_log(tmp_path / name)
    for column in ("label", "greedy", "probability", "bit", "margin"):
        np.testing.assert_allclose(getattr(again, column), getattr(log, column), rtol=1e-15)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_star_in_a_name_is_only_a_star(tmp_path: Path) -> None:
    header, line = "label,greedy,probability,bit,margin,note\n", "1,1,0.5,1,0.5,{}\n"
    (tmp_path / "a*b.csv").write_text(header + line.format("x") * 5)
    (tmp_path / "axb.csv").write_text(header + line.format("y") * 9)
    assert read_log(tmp_path / "a*b.csv").bit.size == 5


def test_the_whole_file_tells_the_type_and_other_columns_do_not_matter(tmp_path: Path) -> None:
    lines = ["1,1,0.5,1,0,7"] * 30_000 + ["1,1,0.5,1,0.25,text"]
    (tmp_path / "a.csv").write_text("label,greedy,probability,bit,margin,note\n" + "\n".join(lines))
    assert read_log(tmp_path / "a.csv").margin[-1] == 0.25


def test_examples_are_read_in_order(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("x10,x2,label,greedy,probability,bit,note\n7,5,0,1,0.5,1,a\n8,6,1,1,0.5,0,b\n")
    log = read_log(path)
    np.testing.assert_array_equal(log.X, [[5, 7], [6, 8]])
    assert log.margin is None


HEAD = "label,greedy,probability,bit,margin\n"


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.csv", "label,probability,bit,margin\n", "holds no rounds|label"),
        ("a.csv", "", "is empty; the names of its columns are expected"),
        ("a.csv", "\n\n", "is empty; the names of its columns are expected"),
        ("a.csv", (HEAD + "ä,a,0.5,1,0.1\n").encode("latin-1"), "a.csv is not UTF-8 text; save it as UTF-8"),
        ("a.csv", (HEAD + "a,a,0.5,1,0.1\n").encode("utf-16"), "a.csv is not UTF-8 text; save it as UTF-8"),
        ("a.jsonl", "[1, 2]\n", "a JSON object of names and values is expected in every line"),
        ("a.csv", "probability,bit,age\n0.5,1,30\n", "no column of the log is called label, action"),
        ("a.csv", "label,probability,age\n1,0.5,30\n", "what came back, right or wrong"),
        ("a.csv", "label,probability,bit\n1,1,1\n2,1,1\n", "neither a margin nor any column of features"),
        ("a.csv", HEAD + "a,a,0.5,1,0.1\nb,,0.5,1,0.1\n", "column 'greedy' holds nothing in row 1; one of 'a', 'b'"),
        ("a.csv", HEAD + "a,cat,0.5,1,0.1\nb,a,0.5,1,0.1\n", "column 'greedy' holds 'cat' in row 0"),
        ("a.csv", HEAD + "a,a,1.5,1,0.1\nb,b,0.5,1,0.1\n", "column 'probability' holds 1.5 in row 0; a probability"),
        (
            "a.csv",
            HEAD + "a,a,0.5,1,0.1\nb,b,0,1,0.1\n",
            "column 'probability' holds 0.0 in row 1; a probability above",
        ),
        ("a.csv", HEAD + "a,a,0.5,3,0.1\nb,b,0.5,1,0.1\n", "column 'bit' holds 3 in row 0; 0 or 1"),
        ("a.csv", HEAD + "a,a,0.5,,0.1\nb,b,0.5,1,0.1\n", "column 'bit' holds nothing in row 0"),
        ("a.csv", HEAD + "a,a,0.5,1,0.1\na,a,0.5,1,0.1\n", "holds 1 label; two or more"),
        ("a.csv", HEAD + "a,a,0.5,1,0.1\nb,b,0.5,1\n", "line 3 has 4 values; 5 are expected"),
        ("a.csv", "label,label,bit\n1,1,1\n", "has two columns 'label'"),
        ("a.csv", "label,bit,age\n1,1,3\n2,0,x\n1,0,4\n", "column 'age' holds 'x' in row 1 among numbers"),
        ("a.parquet", "no parquet", "cannot be read"),
        ("a.jsonl", "{", "line 1 is not JSON"),
        ("a.csv.gz", "not zipped", "cannot be read"),
        ("a.txt", "", "ends in '.txt'; one of .csv"),
    ],
)
def test_bad_logs_are_refused_with_exit_code_2(tmp_path: Path, name: Any, content: Any, words: Any) -> None:
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    result = CliRunner().invoke(main, ["estimate", str(tmp_path / name), "--out", str(tmp_path / "out")])
    assert result.exit_code == 2
    assert "^" not in result.stderr
    assert any(word in result.stderr for word in words.split("|"))
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "out").exists()


def test_a_missing_log_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        read_log(tmp_path / "no.csv")
    with pytest.raises(InputError, match="cannot be written"):
        write_log(tmp_path / "no" / "a.csv", EMPTY)


EMPTY = Rounds(**{name: np.zeros(1) for name in ("row", "label", "greedy", "probability", "bit", "margin")})


class TestEstimate:
    def test_rates_verdict_accuracy_and_picture(self, log: Any, digits: Any, tmp_path: Path) -> None:
        write_log(tmp_path / "log.parquet", log)
        arguments = ["estimate", str(tmp_path / "log.parquet"), "--out", str(tmp_path)]
        result = CliRunner().invoke(main, arguments)
        assert result.exit_code == 0
        assert "Verdict: identified" in result.stdout
        assert (tmp_path / "noise.png").read_bytes().startswith(b"\x89PNG")
        found = json.loads(CliRunner().invoke(main, [*arguments, "--json"]).stdout)
        assert found["rho0"] == pytest.approx(0.2, abs=0.03)
        assert found["rho1"] == pytest.approx(0.4, abs=0.03)
        low, high = found["intervals"]["accuracy"]
        assert low <= np.mean(log.label == digits.y[log.row]) <= high

    def test_a_log_that_tells_nothing_gets_a_verdict(self, tmp_path: Path) -> None:
        rows = ["1,1,1.0,1,0.5", "0,0,1.0,1,0.5"] * 25
        (tmp_path / "log.csv").write_text("label,greedy,probability,bit,margin\n" + "\n".join(rows))
        result = CliRunner().invoke(main, ["estimate", str(tmp_path / "log.csv"), "--out", str(tmp_path)])
        assert result.exit_code == 0
        assert "Verdict: not identified. Only 0 rounds played another label" in result.stdout
        assert "nan" not in result.stdout

    def test_runs_leave_logs_to_estimate_from(self, tmp_path: Path) -> None:
        options = ["--rounds", "3e4", "--seeds", "1", "--gamma", "0.1", "--log", "--out", str(tmp_path)]
        result = CliRunner().invoke(main, ["run", "--learner", "RCINE", "--learner", "RidgeRegression", *options])
        assert result.exit_code == 0
        assert "Flip rates" in result.stdout
        names = {path.name for path in (tmp_path / "logs").iterdir()}
        assert names == {"RCINE-0.parquet", "RidgeRegression-0.parquet"}
        path = str(tmp_path / "logs" / "RidgeRegression-0.parquet")
        found = json.loads(CliRunner().invoke(main, ["estimate", path, "--json", "--out", str(tmp_path)]).stdout)
        assert found["rho1"] == pytest.approx(0.4, abs=0.05)


def test_an_infinite_label_is_a_label() -> None:
    assert as_names([float("inf"), 1.0]) == (float("inf"), 1)


def test_a_policy_that_goes_on_is_shown_by_fifths_of_what_it_learnt_now() -> None:
    told, part = Progressive(1000), 16_384
    for size in (part, part, 45_000 - 2 * part):
        ones = np.ones(size, int)
        rounds = Rounds.of(n_classes=2, label=ones, greedy=ones, bit=ones, probability=np.full(size, 0.5))
        told.add(rounds, ones)
    edges = [tuple(int(edge.replace(",", "")) for edge in row[0].split(" to ")) for row in told.rows(None)]
    assert len(edges) == 5
    assert edges[0][0] == 1000
    assert edges[-1][1] == 46_000
    assert all(before[1] == after[0] for before, after in pairwise(edges))
    assert all(6_500 < stop - start < 11_500 for start, stop in edges)


def test_fifths_without_a_round_that_counts_leave_a_gap() -> None:
    told = Progressive()
    for label in (0, 1, 1, 0, 1):
        played = np.full(100, label)
        rounds = Rounds.of(n_classes=2, label=played, greedy=played, bit=played, probability=np.full(100, 0.5))
        told.add(rounds, np.ones(100, int))
    assert [row[0] for row in told.rows(None)] == ["100 to 200", "200 to 300", "400 to 500"]
