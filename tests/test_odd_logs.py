"""Odd but honest logs and files: words as they are written, guesses that can be overruled, logs that grow."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from fliptron import (
    Encoder,
    Fliptron,
    InputError,
    Log,
    Policy,
    RidgeRegression,
    Schema,
    evaluate,
    learn_log,
)
from fliptron.cli.group import commands as main
from fliptron.debiasing import debias
from fliptron.logs.obp import load_feedback
from fliptron.logs.tables import write_table

RIDGE: Any = {"learner": RidgeRegression, "gamma": 0.1}


def log_of(path: Path, n: int = 60, **more: Any) -> Path:
    """A log with columns besides: a list, or a function of the round."""
    random = np.random.default_rng(n)
    columns: dict[str, Any] = {
        "label": random.choice(["a", "b"], n),
        "bit": random.integers(0, 2, n),
        "probability": np.full(n, 0.5),
        "x": random.normal(size=n).round(3),
    }
    columns |= {name: [each(i) for i in range(n)] if callable(each) else each for name, each in more.items()}
    write_table(path, columns)
    return path


def values_of(schema: Any, name: str) -> Any:
    return next(column.values for column in schema.columns if column.name == name)


class TestWords:
    def test_a_clock_time_is_the_word_that_the_file_has(self, tmp_path: Path) -> None:
        log = Log(log_of(tmp_path / "log.csv", hour=lambda i: ("10:00", "22:00")[i % 2]))
        assert values_of(log.schema, "hour") == ("10:00", "22:00")

    def test_a_day_told_to_be_a_word_is_as_written_in_files_frames_and_records(self, tmp_path: Path) -> None:
        path = log_of(tmp_path / "log.csv", day=lambda i: f"2024-01-{i % 3 + 1:02d}")
        words = tuple(f"2024-01-{day:02d}" for day in (1, 2, 3))
        log = Log(path, kinds={"day": "category"})
        assert values_of(log.schema, "day") == words
        for unit in ("ns", "us"):
            frame = pd.DataFrame({"day": pd.to_datetime(list(words) * 2).astype(f"datetime64[{unit}]")})
            schema = Schema.infer(frame, {"day": "category"})
            assert values_of(schema, "day") == words
            encoder = Encoder(schema)
            together = encoder.encode_all(frame, update=False)
            for value in (words[1], frame["day"][1], frame["day"].to_numpy()[1]):
                np.testing.assert_array_equal(together[1], encoder.encode({"day": value}, update=False))

    def test_days_of_a_parquet_file_are_labels_in_any_precision(self, tmp_path: Path) -> None:
        days = pd.to_datetime(["2024-01-01", "2024-01-02"] * 20).astype("datetime64[ns]")
        assert Log(log_of(tmp_path / "log.parquet", 40, label=days)).labels == ("2024-01-01", "2024-01-02")

    def test_a_name_that_is_no_word_is_found_wherever_it_stands(self) -> None:
        frame = pd.DataFrame({"age": [20.0, 30.0], 0: [1.0, 2.0]})
        encoder = Encoder(Schema.infer(frame))
        record = frame.iloc[1].to_dict()
        x = encoder.encode(record, update=False)
        np.testing.assert_array_equal(x, encoder.encode_all([record], update=False)[0])

    def test_labels_told_as_words_are_the_numbers_of_the_file(self, tmp_path: Path) -> None:
        path = log_of(tmp_path / "log.csv", label=lambda i: i % 3 + 1)
        assert Log(path, labels=["1", "2", "3", "4"]).labels == (1, 2, 3, 4)
        assert Log(path, labels=["1", "2", "3", "x"]).labels == (1, 2, 3, "x")
        assert Log(log_of(tmp_path / "words.csv"), labels=["a", "b", "1"]).labels == ("a", "b", "1")


class TestGrowth:
    def test_a_log_that_grows_is_known_whatever_the_new_rows_hold(self, tmp_path: Path) -> None:
        path = log_of(tmp_path / "log.csv", age=lambda i: i + 20, member=lambda i: i % 2 == 0)
        before = Log(path).fingerprint
        for row in ("a,1,0.5,0.1,21.5,True", "b,0,0.5,0.2,30,maybe"):
            with path.open("a") as file:
                file.write(row + "\n")
            assert Log(path).fingerprint == before
        lines = [{"label": "ab"[i % 2], "bit": 1, "x": i / 7} for i in range(30)]
        path = tmp_path / "log.jsonl"
        path.write_text("\n".join(map(json.dumps, lines)) + "\n")
        before = Log(path).fingerprint
        path.write_text("\n".join(map(json.dumps, [*lines, {**lines[0], "new": "z"}])) + "\n")
        assert Log(path).fingerprint == before

    def test_rounds_learnt_in_another_order_are_not_taken_for_the_first(self, tmp_path: Path) -> None:
        path = log_of(tmp_path / "log.csv", 200, ts=lambda i: 1000 - i, y=lambda i: i * 0.37 % 1)
        policy = learn_log(Log(path, time="ts"), rounds=150, **RIDGE)
        evaluate(Log(path, time="ts"), {"new": policy})
        for log in (Log(path), Log(path, time="x")):
            with pytest.raises(InputError, match="in the order of 'ts'; the same order"):
                evaluate(log, {"new": policy})
            with pytest.raises(InputError, match="in the order of 'ts'"):
                learn_log(log, policy)


class TestOrder:
    def in_order(self, path: Path) -> list[int]:
        log = Log(path, time="at", features=["nth"], kinds={"nth": "number"})
        return [int(n) for n in next(log.batches()).records.columns["nth"]]

    @pytest.mark.parametrize(
        "at",
        [
            lambda i: 1000 - 7 * i,
            lambda i: str(1000 - 7 * i),
            lambda i: f"{28 - i // 3:02d}.01.2026",
            lambda i: f"2026-01-01T{23 - i // 3:02d}:00:00+02:00",
            lambda i: f"{23 - i // 3}:{30 - i % 3 * 10:02d}",
        ],
    )
    @pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl"])
    def test_it_is_that_of_numbers_and_times(self, tmp_path: Path, at: Any, kind: str) -> None:
        path = log_of(tmp_path / "log.csv", at=at, nth=lambda i: i)
        if kind == "jsonl":
            pd.read_csv(path, dtype={"at": str}).to_json(path.with_suffix(".jsonl"), orient="records", lines=True)
        elif kind == "parquet":
            frame = pd.read_csv(path, dtype={"at": str})
            write_table(path.with_suffix(".parquet"), {name: frame[name].to_numpy() for name in frame})
        if "." in str(at(0)) and kind != "csv":
            return  # words, which no database takes for days
        found = self.in_order(path.with_suffix(f".{kind}"))
        assert [at(i) for i in found] == [at(i) for i in reversed(range(60))]

    @pytest.mark.parametrize(
        ("at", "words"),
        [
            (lambda i: f"{i % 12 + 1:02d}/28/2026 01:00 PM", "'01/28/2026 01:00 PM' in row 0"),
            (lambda i: "n/a" if i == 7 else str(i), "'n/a' in row 7"),
            (lambda i: None if i == 9 else str(i), "nothing in row 9"),
        ],
    )
    def test_words_and_gaps_are_refused(self, tmp_path: Path, at: Any, words: str) -> None:
        for name in ("log.csv", "log.parquet"):
            path = log_of(tmp_path / name, at=np.array([at(i) for i in range(60)], dtype=object))
            with pytest.raises(InputError, match=f"column 'at', which orders the rounds, holds {words}"):
                Log(path, time="at")


class TestGuesses:
    def test_a_column_called_margin_without_greedy_labels_is_a_feature(self, tmp_path: Path) -> None:
        log = Log(log_of(tmp_path / "log.csv", margin=lambda i: i * 0.37))
        assert log.features == ["x", "margin"]
        assert "margin" not in log.roles

    def test_what_is_recommended_is_a_label_or_a_feature(self, tmp_path: Path) -> None:
        odd = log_of(tmp_path / "odd.csv", recommended=lambda i: i % 3 == 0)
        assert Log(odd).features == ["x", "recommended"]
        greedy = log_of(tmp_path / "log.csv", recommended=lambda i: "ab"[i % 2])
        assert Log(greedy).roles["greedy"] == "recommended"
        assert Log(greedy, features=["x", "recommended"]).features == ["x", "recommended"]

    def test_columns_that_are_left_out_are_named(self, tmp_path: Path) -> None:
        path = log_of(tmp_path / "log.csv", row=lambda i: i % 7)
        assert "row" in Log(path).describe().splitlines()[-1]
        assert Log(path, features=["x", "row"]).features == ["x", "row"]

    def test_a_file_and_the_same_one_zipped_are_not_both_read(self, tmp_path: Path) -> None:
        plain = log_of(tmp_path / "a.csv")
        (tmp_path / "a.csv.gz").write_bytes(gzip.compress(plain.read_bytes()))
        for name in (tmp_path, tmp_path / "*"):
            with pytest.raises(InputError, match=r"stands for both .*a\.csv and .*a\.csv\.gz; one of them"):
                Log(name)

    def test_a_comma_within_quotes_stands_between_nothing(self, tmp_path: Path) -> None:
        rows = "".join(f"{i};{'ab'[i % 2]};1\n" for i in range(9))
        (tmp_path / "log.csv").write_text(f'"size (w, h, d)";label;bit\n{rows}')
        assert Log(tmp_path / "log.csv").features == ["size (w, h, d)"]


class TestOtherColumns:
    def test_a_log_of_other_columns_is_refused_and_nothing_is_changed(self, tmp_path: Path) -> None:
        mine, other = log_of(tmp_path / "a.csv"), log_of(tmp_path / "b.csv")
        other.write_text(other.read_text().replace("probability,x", "probability,width"))
        path, run = tmp_path / "p.npz", CliRunner().invoke
        learn = ["--learner", "RidgeRegression", "--save", str(path)]
        assert run(main, ["learn", str(mine), *learn]).exit_code == 0
        before = path.read_bytes()
        told = "the policy decides by 'x', but "
        for command in (["learn", str(other), *learn], ["evaluate", str(other), "--policy", str(path)]):
            refused = run(main, [*command, *(["--out", str(tmp_path)] if "evaluate" in command else [])])
            assert refused.exit_code == 2
            assert told in " ".join(refused.stderr.split())
        assert path.read_bytes() == before
        policy = Policy.load(path)
        for call in (lambda: learn_log(Log(other), policy), lambda: evaluate(Log(other), {"p": policy})):
            with pytest.raises(InputError, match=told):
                call()

    def test_columns_that_are_missing_are_named(self, tmp_path: Path) -> None:
        both = log_of(tmp_path / "a.csv", width=lambda i: i * 0.37 % 1)
        path, run = tmp_path / "p.npz", CliRunner().invoke
        run(main, ["learn", str(both), "--learner", "RidgeRegression", "--save", str(path)])
        other = ["evaluate", str(log_of(tmp_path / "b.csv", 70)), "--policy", str(path), "--out", str(tmp_path)]
        told = " ".join(run(main, other).stderr.split())
        assert "p.npz decides also by width, which the log does not have: missing values." in told


class TestRefusals:
    def test_a_feature_that_differs_from_an_added_column_in_capitals_only(self, tmp_path: Path) -> None:
        log = Log(log_of(tmp_path / "log.csv", H=lambda i: i * 0.7))
        with pytest.raises(InputError, match="has a feature 'H'"):
            debias(log, tmp_path / "out.parquet", rates=(0.1, 0.2))

    @pytest.mark.parametrize("make", [RidgeRegression, Fliptron])
    def test_an_example_of_another_length_is_what_is_wrong(self, make: Any) -> None:
        learner = make(n_classes=2, n_features=3, seed=0)
        decision = learner.decide(np.ones(3))
        with pytest.raises(InputError, match="4"):
            learner.learn(np.ones(4), decision, 1)

    def test_files_that_hold_nothing_or_something_else(self, tmp_path: Path) -> None:
        (tmp_path / "empty.jsonl").write_text("")
        with pytest.raises(InputError, match="holds no rows"):
            Log(tmp_path / "empty.jsonl")
        with (tmp_path / "array.npz").open("wb") as file:
            np.save(file, np.ones(3))
        with pytest.raises(InputError, match="cannot be read as arrays"):
            load_feedback(tmp_path / "array.npz")

    def test_a_place_to_save_is_made_or_refused_before_the_work(self, tmp_path: Path) -> None:
        path, run = log_of(tmp_path / "log.csv"), CliRunner().invoke
        learn = ["learn", str(path), "--learner", "RidgeRegression", "--fresh", "--save"]
        assert run(main, [*learn, str(tmp_path / "new/p.npz")]).exit_code == 0
        assert (tmp_path / "new/p.npz").exists()
        (tmp_path / "folder.npz").mkdir()
        refused = run(main, [*learn, str(tmp_path / "folder.npz")])
        assert refused.exit_code == 2
        assert "is a folder" in refused.stderr
        assert "learning" not in refused.stderr

    def test_an_npz_that_is_no_policy_is_left_alone(self, tmp_path: Path) -> None:
        log, path, run = log_of(tmp_path / "log.csv"), tmp_path / "mine.npz", CliRunner().invoke
        np.savez(path, X=np.ones(3))
        before = path.read_bytes()
        learn = ["learn", str(log), "--learner", "RidgeRegression", "--save", str(path)]
        for more in ([], ["--fresh"]):
            assert run(main, [*learn, *more]).exit_code == 2
        assert "holds no policy of ours; it is left alone" in " ".join(run(main, [*learn, "--fresh"]).stderr.split())
        assert path.read_bytes() == before
        path.unlink()
        assert [run(main, [*learn, *more]).exit_code for more in ([], ["--fresh"])] == [0, 0]

    def test_standard_streams_may_be_closed(self) -> None:
        for command in ("data >&-", "estimate - <&-"):
            told = subprocess.run(
                ["sh", "-c", f"{sys.executable} -m fliptron {command}"], capture_output=True, text=True, check=False
            )
            assert "Traceback" not in told.stderr


class TestDecisions:
    def test_separate_calls_draw_anew_unless_the_policy_is_saved(self, tmp_path: Path) -> None:
        path = tmp_path / "p.npz"
        Policy(["a", "b"], [{"n": 1.0}, {"n": 2.0}], learner=RidgeRegression, gamma=1.0, seed=3).save(path)

        def played(*more: str) -> list[str]:
            answers = (CliRunner().invoke(main, ["decide", str(path), *more], input='{"n": 1}\n') for _ in range(24))
            return [json.loads(answer.stdout)["label"] for answer in answers]

        assert set(played()) == {"a", "b"}
        assert len(set(played("--save"))) == 2

    def test_bytes_that_are_no_text_are_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "p.npz"
        Policy(["a", "b"], [{"n": 1.0}, {"n": 2.0}], **RIDGE).save(path)
        told = CliRunner().invoke(main, ["decide", str(path)], input=b"\xff\n")
        assert told.exit_code == 2
        assert "line 1 is not JSON" in told.stderr

    def test_a_record_without_any_column_of_the_policy_is_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "p.npz"
        Policy(["a", "b"], [{"n": 1.0}, {"n": 2.0}], **RIDGE).save(path)
        told = CliRunner().invoke(main, ["decide", str(path)], input='{"n": 1, "m": 2}\n{}\n{"N": 1}\n')
        assert told.exit_code == 2
        assert len(told.stdout.splitlines()) == 2
        assert "line 3: the policy decides by 'n', but the record has 'N'; one of them is" in " ".join(
            told.stderr.split()
        )
