"""Records and logs as nobody expects them: a right answer or one sentence, and nothing changed."""

from __future__ import annotations

import datetime
import decimal
import json
import threading
import time
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from fliptron import (
    Choice,
    Encoder,
    InputError,
    Log,
    Policy,
    RidgeRegression,
    Schema,
    audit,
    evaluate,
    learn_log,
    load,
    read_log,
    write_log,
)
from fliptron.cli.group import commands as main
from fliptron.evaluation import LOGGED, Difference
from fliptron.logs.tables import write_table

RECORDS = [{"age": 31.0, "city": "Rome"}, {"age": 18.0, "city": "Oslo"}]
HEAD = "age,label,probability,click\n"


def lines(n: Any, seed: Any = 0) -> str:
    random = np.random.default_rng(seed)
    rows = zip(random.integers(18, 80, n), random.choice(["a", "b"], n), random.integers(0, 2, n), strict=True)
    return "".join(f"{age},{label},0.5,{bit}\n" for age, label, bit in rows)


def jsonl(path: Path, rows: Any) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


class TestWords:
    def test_a_number_of_thousands_of_digits_is_a_word_and_no_number(self) -> None:
        encoder = Encoder(Schema.infer(RECORDS))
        assert np.array_equal(encoder.encode({"city": 10**5000}), encoder.encode({"city": 10**5000}))
        with pytest.raises(InputError, match="column 'age' holds a whole number of 16610 bits; a finite number is"):
            encoder.encode({"age": 10**5000})

    def test_a_value_is_one_word_however_it_is_written(self) -> None:
        schema = Schema.infer(pd.DataFrame({"zip": [1000, 2000, 3000] * 5}), {"zip": "category"})
        assert schema.columns[0].values == ("1000", "2000", "3000")
        encoder = Encoder(schema)
        rows = [encoder.encode({"zip": each}) for each in (1000, 1000.0, "1000", np.int64(1000), decimal.Decimal(1000))]
        for row in rows[1:]:
            np.testing.assert_array_equal(row, rows[0])

    def test_one_by_one_and_all_at_once_agree_on_odd_values(self) -> None:
        schema = Schema.infer([{"c": "x"}, {"c": "true"}, {"c": "1"}])
        records = [{"c": value} for value in (True, 1, 1.0, "1", None, float("nan"), np.bool_(True), uuid.UUID(int=7))]
        one = np.array([Encoder(schema).encode(record) for record in records])
        np.testing.assert_array_equal(one, Encoder(schema).encode_all(records))
        np.testing.assert_array_equal(one[0], one[6])

    def test_names_that_are_numbers(self) -> None:
        frame = pd.DataFrame({0: [1.0, 2, 3] * 10, 1: list("abc") * 10})
        encoder, again = (Encoder(Schema.infer(frame)) for _ in range(2))
        np.testing.assert_array_equal(encoder.encode_all(frame)[0], again.encode(frame.to_dict("records")[0]))

    def test_truth_values_of_a_csv_file_are_those_of_json(self, tmp_path: Path, monkeypatch: Any) -> None:
        monkeypatch.chdir(tmp_path)
        rows = "".join(f"{member},{age},{'yes' if member == 'true' or age == 29 else 'no'}\n"
                       for member in ("true", "false") for age in range(30))  # fmt: skip
        Path("t.csv").write_text("member;age;kind\n".replace(";", ",") + rows)
        options = ["--label", "kind", "--rounds", "2000", "--seeds", "1", "--learner", "RidgeRegression"]
        assert CliRunner().invoke(main, ["run", "--dataset", "t.csv", *options, "--save", "p.npz"]).exit_code == 0
        assert Policy.load("p.npz").predict([{"member": True, "age": 3}, {"member": False, "age": 3}]) == ["yes", "no"]

    @pytest.mark.parametrize(("yes", "no"), [("yes", "no"), ("Yes", "NO"), ("T", "F"), ("y", "n")])
    def test_labels_and_truth_values_are_as_people_write_them(self, tmp_path: Path, yes: str, no: str) -> None:
        random = np.random.default_rng(0)
        member, label, bit = (random.integers(0, 2, 200) for _ in range(3))
        rows = [
            {"member": (no, yes)[m], "age": i % 7, "label": (no, yes)[r], "probability": 0.5, "click": b}
            for i, (m, r, b) in enumerate(zip(member.tolist(), label.tolist(), bit.tolist(), strict=True))
        ]
        pd.DataFrame(rows).to_csv(tmp_path / "a.csv", index=False)
        logs = [Log(tmp_path / "a.csv"), Log(jsonl(tmp_path / "a.jsonl", rows))]
        assert logs[0].labels == logs[1].labels == tuple(sorted((yes, no)))
        policies = [learn_log(each, RidgeRegression, gamma=0.1) for each in logs]
        for policy in policies:
            encoded = [policy.encoder.encode({"member": each}, update=False) for each in (yes, True)]
            np.testing.assert_array_equal(*encoded)
            assert not np.array_equal(encoded[0], policy.encoder.encode({"member": no}, update=False))
            values = [evaluate(log, {"p": policy}, skip=0).values["p"].mean_bit["snips"] for log in logs]
            assert values[0] == pytest.approx(values[1])

    def test_truth_values_stay_truth_values_as_labels(self, tmp_path: Path) -> None:
        rows = "".join(f"{i % 7},{('true', 'False')[i % 2]},0.5,{i // 3 % 2}\n" for i in range(60))
        (tmp_path / "a.csv").write_text(HEAD + rows)
        assert Log(tmp_path / "a.csv").labels == (False, True)

    def test_days_as_a_csv_file_may_have_them_are_understood_in_records(self, tmp_path: Path) -> None:
        days = [f"{i * 7 % 28 + 1:02d}.{i * 5 % 12 + 1:02d}.2026" for i in range(60)]
        rows = "".join(f"{day},{row.split(',', 1)[1]}\n" for day, row in zip(days, lines(60).splitlines(), strict=True))
        (tmp_path / "a.csv").write_text("day,label,probability,click\n" + rows)
        schema = Log(tmp_path / "a.csv").schema
        assert schema is not None
        assert schema.kinds == Schema.infer([{"day": each} for each in days]).kinds == {"day": "time"}
        encoder = Encoder(schema)
        written = [encoder.encode({"day": day}, update=False) for day in ("31.12.2026", "2026-12-31")]
        np.testing.assert_array_equal(*written)
        late = [encoder.encode({"day": day}, update=False) for day in ("31.12.2026 10:30", "2026-12-31T10:30")]
        np.testing.assert_array_equal(*late)
        for odd in ("12.31.2026", "31.12.26"):
            with pytest.raises(InputError, match="a time such as 2026-05-01T12:30 is expected"):
                encoder.encode({"day": odd})

    def test_an_underscore_is_no_part_of_a_number(self) -> None:
        encoder = Encoder(Schema.infer(RECORDS))
        with pytest.raises(InputError, match="column 'age' holds '1_2'; a finite number is expected"):
            encoder.encode({"age": "1_2"})
        assert Schema.infer([{"size": each} for each in ("1_2", "3_4") * 9]).kinds == {"size": "category"}


class TestRefusals:
    @pytest.mark.parametrize(
        "line",
        ['{"age": 1' + "0" * 400 + "}", '{"city": ["a"]}', '{"city": {"a": 1}}', '{"age": Infinity}', "[" * 100_000],
    )
    def test_lines_that_are_refused(self, tmp_path: Path, line: Any) -> None:
        Policy(["a", "b"], RECORDS, learner=RidgeRegression, gamma=0.1).save(tmp_path / "p.npz")
        for more in ([], ["--greedy"]):
            result = CliRunner().invoke(main, ["decide", str(tmp_path / "p.npz"), *more], input=line + "\n")
            assert result.exit_code == 2
            assert "line 1" in result.stderr

    def test_half_a_letter_is_a_word_too(self) -> None:
        policy = Policy(["a", "b"], RECORDS, learner=RidgeRegression, gamma=0.1)
        assert policy.decide({"city": "\ud800"}).label in ("a", "b")

    def test_a_refusal_changes_nothing(self) -> None:
        policy = Policy(["a", "b"], RECORDS, learner=RidgeRegression, gamma=0.1)
        for call in (
            lambda: policy.decide(RECORDS[0], eligible=[]),
            lambda: policy.decide(RECORDS[0], eligible=3),
            lambda: policy.decide({"age": "x"}),
            lambda: policy.learn(3, 1),
            lambda: policy.learn(Choice("a", "a", 0.5, np.zeros(policy.encoder.n_features)), 1, truth="a"),
            lambda: Policy(3, RECORDS),
            lambda: Policy(["a", "b"], RECORDS, learner="Fliptron"),
            lambda: Policy(["a" * 5_000_000, "b"], RECORDS, learner=RidgeRegression).save("never.npz"),
        ):
            with pytest.raises(InputError):
                call()
        assert not policy.encoder.moments.any()
        assert not Path("never.npz").exists()

    def test_python_is_told_in_a_sentence_too(self, tmp_path: Path) -> None:
        (tmp_path / "log.csv").write_text(HEAD + lines(300))
        log = Log(tmp_path / "log.csv")
        policy = learn_log(log, RidgeRegression, gamma=0.1, rounds=200)
        odd: Any = None
        one: Any = 1
        for call, words in (
            (lambda: audit("f.csv"), "the rounds are a str; a Log, or rounds such as trace.log, is expected"),
            (lambda: audit(odd), "the rounds are a NoneType"),
            (lambda: Log(tmp_path / "log.csv", labels=3), "labels is 3; a list of names is expected"),
            (lambda: Log(tmp_path / "log.csv", features="age"), "features is 'age'; a list of names"),
            (lambda: Log(tmp_path / "log.csv", others="age"), "others is 'age'; a list of names"),
            (lambda: Log(tmp_path / "log.csv", kinds="age"), "kinds is 'age'; a dict is expected"),
            (lambda: Schema.infer([{"a": 1}], ["a"]), r"given is \['a'\]; a dict is expected"),
            (lambda: Encoder("x"), "the schema is a str; a Schema is expected"),
            (lambda: Encoder.of(policy.encoder.schema, "3"), "n_classes is '3'"),
            (lambda: policy.encoder.merge(3), "the other encoder is a int; an Encoder is expected"),
            (lambda: next(log.batches(size="x")), "size is 'x'"),
            (lambda: next(log.batches(size=0)), "size is 0"),
            (lambda: next(log.batches(stop="x")), "stop is 'x'"),
            (lambda: evaluate(log, {one: policy}), "a policy is called 1; a word is expected"),
            (lambda: policy.save(odd), "the path is None; the name of a file is expected"),
            (lambda: Policy.load(odd), "the path is None"),
            (lambda: load(odd), "the path is None"),
            (lambda: read_log(odd), "the path is None"),
            (lambda: write_log(tmp_path / "a.csv", odd), "the rounds are a NoneType"),
        ):
            with pytest.raises(InputError, match=words):
                call()

    def test_logs_and_policies_that_are_none(self, tmp_path: Path) -> None:
        (tmp_path / "log.csv").write_text(HEAD + lines(300))
        log = Log(tmp_path / "log.csv")
        policy = learn_log(log, RidgeRegression, rounds=100)
        for call in (
            lambda: learn_log("log.csv"),
            lambda: learn_log(log, rounds=-1),
            lambda: learn_log(log, policy, gamma=0.5),
            lambda: evaluate("log.csv", {}),
            lambda: evaluate(log, {"p": "column"}),
            lambda: evaluate(log, {LOGGED: policy}),
            lambda: evaluate(log, {"p": policy}, skip=-1),
            lambda: Log(tmp_path / "log.csv", label="click", bit="click"),
            lambda: Log(tmp_path / "log.csv", labels=["a", "a"]),
            lambda: Log(tmp_path / "log.csv", labels=[["a"], "b"]),
        ):
            with pytest.raises(InputError):
                call()

    @pytest.mark.parametrize(
        "row",
        [{"label": ["a"], "click": 1}, {"label": {"a": 1}, "click": 1}, {"label": "a", "click": [1]}],
    )
    def test_lists_where_words_are_expected(self, tmp_path: Path, row: Any) -> None:
        path = jsonl(tmp_path / "log.jsonl", [row | {"age": 3}, {"label": "b", "click": 0, "age": 4}])
        with pytest.raises(InputError, match=r"lists or the like|cannot be read|one of|0 or 1"):
            list(Log(path).batches())

    def test_commands_that_contradict_themselves(self, tmp_path: Path, monkeypatch: Any) -> None:
        monkeypatch.chdir(tmp_path)
        Path("log.csv").write_text(HEAD + lines(300))
        run = CliRunner().invoke
        assert run(main, ["learn", "log.csv", "--learner", "RidgeRegression", "--holdout", "0.5"]).exit_code == 0
        for command, words in (
            (["learn", "log.csv", "--learner", "Fliptron"], "holds a RidgeRegression that has begun to learn"),
            (["learn", "log.csv", "--gamma", "0.3"], "cannot be changed"),
            (["evaluate", "log.csv", "--policy", "policy.npz", "--policy", "policy.npz"], "named twice"),
            (["demo", "x.csv", "--truth", "x.csv"], "cannot be one file"),
            (["demo", "x.csv", "--truth", "x.txt"], "ends in '.txt'"),
            (["estimate", "log.csv", "--labels", "a,b,"], "names with commas between them"),
            (["run", "--save", "nowhere.txt"], "ends in .npz"),
        ):
            result = run(main, command)
            assert result.exit_code == 2
            assert words in result.stderr
        assert not Path("x.csv").exists()
        for folder in ("old", "new"):
            Path(folder).mkdir()
            Path("policy.npz").rename(f"{folder}/policy.npz") if folder == "old" else Path(
                "new/policy.npz"
            ).write_bytes(Path("old/policy.npz").read_bytes())
        told = run(main, ["evaluate", "log.csv", "--policy", "old/policy.npz", "--policy", "new/policy.npz", "--json"])
        assert list(json.loads(told.stdout)["policies"]) == [LOGGED, "old/policy.npz", "new/policy.npz"]


class TestLogs:
    def test_a_log_is_known_however_it_is_read(self, tmp_path: Path) -> None:
        (tmp_path / "log.csv").write_text(HEAD + lines(300))
        (tmp_path / "more.csv").write_text(HEAD + lines(300) + lines(500, 1))
        (tmp_path / "other.csv").write_text((HEAD + lines(300)).replace(",a,", ",c,"))
        log = Log(tmp_path / "log.csv").fingerprint
        for settings in (
            {"probability": "uniform"},
            {"features": ["age"]},
            {"others": ["age"], "labels": range(18, 80)},
        ):
            try:
                assert Log(tmp_path / "log.csv", **settings).fingerprint == log
            except InputError:
                assert "others" in settings
        assert Log(tmp_path / "more.csv").fingerprint == log
        assert Log(tmp_path / "other.csv").fingerprint != log

    def test_large_whole_numbers_are_labels_of_their_own(self, tmp_path: Path) -> None:
        labels = np.array([2**53, 2**53 + 1] * 20)
        write_table(
            tmp_path / "log.parquet", {"label": labels, "bit": np.ones(40), "age": np.random.default_rng(0).random(40)}
        )
        rounds = next(Log(tmp_path / "log.parquet").batches()).rounds
        assert np.bincount(rounds.label).tolist() == [20, 20]

    def test_rounds_of_one_moment_have_one_order(self, tmp_path: Path) -> None:
        days = np.random.default_rng(0).integers(0, 20, 9000)
        columns = {
            "day": days,
            "label": np.arange(9000) % 3,
            "bit": np.arange(9000) % 2,
            "number": np.arange(9000) % 8999,
        }
        write_table(tmp_path / "log.parquet", columns)
        log = Log(tmp_path / "log.parquet", time="day", features=["number"])
        first = [batch.records.columns["number"] for batch in log.batches(stop=3000)]
        second = [batch.records.columns["number"] for batch in log.batches(skip=3000)]
        assert len(np.unique(np.concatenate(first + second))) == 8999

    def test_kinds_that_differ_from_line_to_line(self, tmp_path: Path) -> None:
        rows = [{"label": label, "click": 1, "age": i} for i, label in enumerate([1, "a", "b", 1, "a"])]
        assert Log(jsonl(tmp_path / "log.jsonl", rows)).labels == (1, "a", "b")

    def test_dates_and_named_labels(self, tmp_path: Path) -> None:
        path = tmp_path / "log.csv"
        path.write_text("label,click,age\n2024-01-01,1,3\n2024-01-02,0,4\n2024-01-01,0,7\n")
        assert next(Log(path).batches()).rounds.label.tolist() == [0, 1, 0]
        path.write_text("label,click,age\ntrue,1,3\nfalse,0,4\n")
        assert next(Log(path, labels=["true", "false"]).batches()).rounds.label.tolist() == [0, 1]
        path.write_text("label,click,age\n1,1,3\n2,0,4\n")
        assert next(Log(path, labels=["2", "1"]).batches()).rounds.label.tolist() == [1, 0]

    def test_a_probability_that_is_not_used_is_no_feature(self, tmp_path: Path) -> None:
        (tmp_path / "log.csv").write_text(HEAD + lines(50))
        assert Log(tmp_path / "log.csv", probability="uniform").features == ["age"]

    def test_columns_of_odd_kinds(self, tmp_path: Path) -> None:
        rows = [
            {
                "label": "ab"[i % 2],
                "click": i % 2,
                "id": str(uuid.UUID(int=i)),
                "at": f"12:{i % 60:02}:00",
                "age": i % 9,
            }
            for i in range(200)
        ]
        kinds = Log(jsonl(tmp_path / "log.jsonl", rows)).schema.kinds
        assert kinds["id"] == "unused"
        assert kinds["age"] == "number"

    def test_files_that_hold_no_lines(self, tmp_path: Path) -> None:
        (tmp_path / "a.csv").write_bytes(b"label,click,age\ra,1,3\rb,0,4\r")
        (tmp_path / "b.csv.gz").write_bytes(b"\x1f\x8b\x08\x00" + bytes(range(40)))
        (tmp_path / "c.csv").write_text("Age,age,label,click\n1,2,a,0\n")
        (tmp_path / "d.csv").write_text("la{b}el,click,age\na,1,3\nb,0,4\n")
        assert Log(tmp_path / "a.csv").labels == ("a", "b")
        with pytest.raises(InputError, match="cannot be read"):
            Log(tmp_path / "b.csv.gz")
        with pytest.raises(InputError, match="has two columns 'age'"):
            Log(tmp_path / "c.csv")
        assert Log(tmp_path / "d.csv", label="la{b}el").labels == ("a", "b")


def test_the_interval_of_a_difference_has_its_sign() -> None:
    text = str(Difference("new", "old", 0.02, (0.002, 0.038), 0.4, (0.02, 0.9)))
    assert text == "new is better than old: right 0.400 more often, [0.020, 0.900]."


def test_labels_may_come_while_others_look() -> None:
    policy = Policy(["a", "b"], [{"age": 31.0}], learner=RidgeRegression, gamma=0.1, curves=0)
    records = [{"age": float(i)} for i in range(500)]
    shapes: list[Any] = []
    looking = threading.Thread(target=lambda: shapes.extend(policy.scores(records).shape for _ in range(20)))
    with policy.learner.held():
        looking.start()
        time.sleep(0.1)
        for i in range(20):
            policy.add_label(f"label {i}")
    looking.join()
    assert {rows for rows, _ in shapes} == {500}
    assert policy.decide({"age": datetime.date.today().year / 60}).label in policy.labels


def test_wild_numbers_bring_no_warnings() -> None:
    wild = {"a": np.array([1.0, np.inf, -np.inf] * 40), "b": np.array([1e308, -1e308, 0.0] * 40)}
    assert Schema.infer(wild).kinds == {"a": "number", "b": "number"}
    with pytest.raises(InputError, match="column 'c' holds a complex128 in row 0"):
        Schema.infer([{"c": np.complex128(1j)}] * 3)


def test_long_words_are_shown_short() -> None:
    assert len(str(Schema.infer([{"page": "x" * 100_000}, {"page": "y"}]))) < 100
