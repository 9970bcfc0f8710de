"""Tables and logs as other programs write them: time zones, long numbers, commas, parts."""

from __future__ import annotations

import gzip
import json
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from fliptron import RCNBF, Dataset, InputError, Log, Policy, RidgeRegression, evaluate, learn_log, load
from fliptron.cli.group import commands as main
from fliptron.encoding.records import is_missing
from fliptron.experiments.plan import Spec
from fliptron.lines import decimal_commas


def rounds(n: int = 8) -> list[dict[str, Any]]:
    return [
        {"age": 20 + 7 * i % 11, "shown": ("hats", "bags")[i % 2], "propensity": 0.5, "clicked": i % 3 % 2}
        for i in range(n)
    ]


def written(path: Path, rows: Any, sep: str = ",", **options: Any) -> Path:
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif path.suffix == ".parquet":
        duckdb.read_csv(str(written(path.with_suffix(".tmp"), rows, sep))).write_parquet(str(path))
    else:
        pd.DataFrame(rows).to_csv(path, index=False, sep=sep, **options)
    return path


def refusal(*arguments: Any, given: str | None = None) -> str:
    result = CliRunner().invoke(main, [str(each) for each in arguments], input=given)
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output
    return result.stderr


class TestTimeZones:
    @pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet"])
    @pytest.mark.parametrize("zone", ["Z", "+02:00"])
    def test_a_moment_is_one_wherever_its_clock_hangs(self, tmp_path: Path, name: str, zone: str) -> None:
        when = [f"2026-01-01T{10 + i}:00:00{zone}" for i in range(8)]
        rows = [{"when": moment} | row for moment, row in zip(when, rounds(), strict=True)]
        log = Log(written(tmp_path / name, rows), time="when", features=["age"])
        assert next(log.batches()).rounds.bit.tolist() == [row["clicked"] for row in rows]
        log = Log(tmp_path / name)
        column = next(log.batches()).records.columns["when"]
        first = np.datetime64("2026-01-01T10:00:00" if zone == "Z" else "2026-01-01T08:00:00")
        assert column[0] == first
        assert log.schema is not None
        assert log.schema.kinds["when"] == "clock"

    @pytest.mark.skipif(not hasattr(time, "tzset"), reason="the clock of this system cannot be moved")
    def test_a_moment_without_a_zone_does_not_depend_on_the_machine(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("TZ", "America/New_York")
        time.tzset()
        try:
            rows = [row | {"when": "2026-01-01T10:00:00" + "Z" * (i % 2)} for i, row in enumerate(rounds())]
            when = next(Log(written(tmp_path / "a.csv", rows)).batches()).records.columns["when"]
        finally:
            monkeypatch.undo()
            time.tzset()
        assert set(when.tolist()) == {datetime(2026, 1, 1, 10)}


def test_labels_of_thirty_digits_are_told_apart(tmp_path: Path) -> None:
    rows = [row | {"shown": 10**30 + i % 2} for i, row in enumerate(rounds())]
    log = Log(written(tmp_path / "a.csv", rows))
    assert log.labels == (str(10**30), str(10**30 + 1))
    assert next(log.batches()).rounds.label.tolist() == [0, 1] * 4


def test_a_label_is_as_it_is_written(tmp_path: Path) -> None:
    rows = [row | {"shown": ("007", "7", "042")[i % 3], "it's": "007"} for i, row in enumerate(rounds(12))]
    log = Log(written(tmp_path / "a.csv", rows), others=["it's"])
    assert log.labels == ("007", "042", "7")
    batch = next(log.batches())
    assert batch.rounds.label.tolist() == [0, 2, 1] * 4
    assert batch.others["it's"].tolist() == [0] * 12


class TestLateRows:
    """JSON lines beyond those from which a database guesses what a column holds."""

    def late(self, path: Path, **odd: Any) -> Any:
        rows = [row | {"propensity": 1} for row in rounds(21_000)]
        rows[-1] |= odd
        return Log(written(path / "a.jsonl", rows))

    def test_a_fraction_is_not_rounded(self, tmp_path: Path) -> None:
        batch = next(self.late(tmp_path, age=41.5, propensity=0.6).batches())
        assert batch.records.columns["age"][-1] == 41.5
        assert batch.rounds.probability[[0, -1]].tolist() == [1.0, 0.6]
        with pytest.raises(InputError, match="column 'clicked' holds 0\\.7 in row 20999"):
            next(self.late(tmp_path, clicked=0.7).batches())

    def test_a_new_column_is_missing_before(self, tmp_path: Path) -> None:
        assert self.late(tmp_path, member=True).features == ["age", "member"]


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_clock_times_and_ids_are_the_words_of_the_file(tmp_path: Path, kind: str) -> None:
    ids = "550E8400-E29B-41D4-A716-446655440000", "550e8400-e29b-41d4-a716-446655440001"
    more = [
        {"at": ("7:05", "10:00")[i // 2 % 2], "who": ids[i // 3 % 2], "on": "2026-01-05T10:00:00Z"} for i in range(40)
    ]
    rows = [row | each for row, each in zip(rounds(40), more, strict=True)]
    log = Log(written(tmp_path / f"a.{kind}", rows))
    assert log.schema is not None
    assert [column.values for column in log.schema.columns[1:3]] == [("10:00", "7:05"), ids]
    assert log.schema.kinds["on"] == "clock"


def test_names_that_differ_in_capitals_are_refused(tmp_path: Path) -> None:
    rows = rounds(40)
    rows[20]["Age"] = rows[20].pop("age")
    told = refusal("estimate", written(tmp_path / "a.jsonl", rows))
    assert "has two columns 'Age' that differ in capitals; every name may be there once" in " ".join(told.split())
    for row in rows:
        row["age_1"] = row.pop("Age", None)
    assert Log(written(tmp_path / "a.jsonl", rows)).features == ["age", "age_1"]


@pytest.mark.parametrize("names", ['"age of\nvisitor",shown,clicked', 'shown,"age\nof",clicked'])
def test_a_name_that_goes_on_in_another_line_is_refused(tmp_path: Path, names: str) -> None:
    (tmp_path / "a.csv").write_text(names + "\n" + "1,a,0\n2,b,1\n" * 9)
    with pytest.raises(InputError, match="goes on in another line; all names in one are expected"):
        Log(tmp_path / "a.csv")


def test_a_table_is_the_same_in_every_form(tmp_path: Path) -> None:
    table = [
        {"age": 20 + 7 * i % 11, "vip": ("Yes", "No", "")[i % 3], "old": i % 7 < 3, "segment": i % 2 == 0}
        for i in range(60)
    ]
    for labels in ((True, False), ("yes", "no"), ("2026-01-05", "2026-01-06"), ("1e3", "2"), ("7:05", "10:00")):
        rows = [row | {"segment": labels[i // 2 % 2]} for i, row in enumerate(table)]
        plain = load(written(tmp_path / "a.csv", rows))
        (tmp_path / "a.csv.gz").write_bytes(gzip.compress((tmp_path / "a.csv").read_bytes()))
        for name in ("a.csv.gz", "a.tsv"):
            data = load(tmp_path / name if name.endswith("gz") else written(tmp_path / name, rows, "\t"))
            assert (data.classes, data.checksum) == (plain.classes, plain.checksum)
        assert load(written(tmp_path / "a.jsonl", rows)).classes in (plain.classes, ("1e3", "2"))


def test_a_number_and_the_word_for_it_are_one_label(tmp_path: Path) -> None:
    rows = [row | {"shown": (1, "1", "2", 3)[i % 4]} for i, row in enumerate(rounds(40))]
    log = Log(written(tmp_path / "a.jsonl", rows))
    assert log.labels == (3, "1", "2")
    assert next(log.batches()).rounds.label.tolist() == [1, 1, 2, 0] * 10


def test_spaces_around_a_word_are_not_of_it(tmp_path: Path) -> None:
    text = "age, city, shown, propensity, clicked\n"
    text += "".join(
        f"{20 + i}, {'Rome' if i % 2 else ' '}, {('007', 'yes ')[i % 3 % 2]}, 0.5, {i % 5 % 2}\n" for i in range(40)
    )
    (tmp_path / "a.csv").write_text(text)
    log = Log(tmp_path / "a.csv")
    assert log.labels == ("007", "yes")
    assert str(log.schema).splitlines()[1] == "city: category of 1: Rome, sometimes missing"
    assert Log(tmp_path / "a.csv", labels=["007", "yes", "no"]).labels == ("007", "yes", "no")


def log_of(path: Path, n: int = 3000, probability: float | None = None, **more: Any) -> Path:
    """Rounds of an ε-greedy policy whose labels a column tells, and the choices of others."""
    random = np.random.default_rng(1)
    age = random.integers(20, 60, n)
    best = np.where(age < 40, "bags", "hats")
    shown = np.where(random.random(n) < 0.5, random.choice(["bags", "hats", "wigs"], n), best)
    table = {"age": age, "best_guess": best, "shown": shown, "offer": shown, "ones": "bags"}
    table["propensity"] = np.where(shown == best, 2 / 3, 1 / 6) if probability is None else np.full(n, probability)
    table["clicked"] = random.random(n) < np.where(shown == best, 0.6, 0.2)
    return written(path, table | more)


class TestEvaluation:
    def test_rounds_that_a_policy_has_learnt_from_do_not_judge_it(self, tmp_path: Path) -> None:
        log = Log(log_of(tmp_path / "a.csv"), features=["age"])
        policy = learn_log(log, RidgeRegression, rounds=2000)
        assert evaluate(log, {"p": policy}).values["p"].rounds == 1000
        assert evaluate(log, {"p": policy}, skip=0).values["p"].rounds == 3000
        with pytest.raises(InputError, match="p has learnt from all 3,000 rounds of this log"):
            evaluate(log, {"p": learn_log(log, policy)})
        for odd in (policy, [policy]):
            with pytest.raises(InputError, match=f"the policies are a {type(odd).__name__}; a dict of policies by"):
                evaluate(log, odd)

    def test_batches_are_smaller_where_there_are_many_labels(self, tmp_path: Path) -> None:
        sizes = []
        for more in (0, 5000):
            labels = ["bags", "hats", "wigs", *map(str, range(more))]
            log = Log(log_of(tmp_path / "a.csv", 9000), labels=labels, features=["age"], others=["ones"])
            seen: list[int] = []
            evaluate(log, {"ones": "ones"}, progress=seen.append)
            sizes.append(seen)
        assert sizes[0] == [9000]
        assert sizes[1] == [2048, 4096, 6144, 8192, 9000]

    @pytest.mark.parametrize(("column", "role"), [("shown", "label"), ("clicked", "bit"), ("propensity", "probab")])
    def test_a_column_with_a_role_is_no_policy(self, tmp_path: Path, column: str, role: str) -> None:
        told = refusal("evaluate", log_of(tmp_path / "a.csv"), "--policy", column, "--out", tmp_path)
        assert f"column '{column}' is the log's {role}" in told

    def test_wrong_probabilities_judge_nobody(self, tmp_path: Path) -> None:
        path = log_of(tmp_path / "a.csv", probability=1.0)
        told = CliRunner().invoke(main, ["evaluate", str(path), "--policy", "ones", "--out", str(tmp_path)]).stdout
        assert "better than" not in told
        assert "Nobody can know which of ones and the log's own is better" in told
        assert "or the probabilities are not those they were played with." in " ".join(told.split())
        (difference,) = evaluate(Log(path, others=["ones"]), {"ones": "ones"}).differences
        assert not difference.is_real
        (difference,) = evaluate(Log(log_of(path), others=["best_guess"]), {"best": "best_guess"}).differences
        assert difference.is_real
        assert not difference.doubt


class TestExploration:
    def test_more_of_it_is_advised_only_where_it_would_help(self, tmp_path: Path) -> None:
        for path in (log_of(tmp_path / "a.csv"), written(tmp_path / "b.csv", rounds(2))):
            told = CliRunner().invoke(main, ["estimate", str(path), "--out", str(tmp_path)])
            assert told.exit_code == 0, told.stderr
            assert "Verdict: identified" not in told.stdout
            assert "Had some of the rounds" not in told.stdout
        greedy = log_of(tmp_path / "c.csv", probability=1.0)
        told = CliRunner().invoke(main, ["estimate", str(greedy), "--greedy", "offer", "--out", str(tmp_path)])
        assert "Had some of the rounds played a random label" in told.stdout


class TestDecimalCommas:
    def test_a_log_and_a_table_have_numbers(self, tmp_path: Path) -> None:
        rows = [row | {"age": row["age"] + 0.5, "weight": 1.5 * i or None} for i, row in enumerate(rounds())]
        log = Log(written(tmp_path / "a.csv", rows, sep=";", decimal=",", na_rep="NA"))
        assert log.schema is not None
        assert log.schema.kinds == {"age": "number", "weight": "number"}
        batch = next(log.batches())
        assert batch.rounds.probability.tolist() == [0.5] * 8
        assert batch.records.columns["age"].tolist() == [row["age"] for row in rows]
        table = [{"age": row["age"], "weight": row["weight"], "kind": row["shown"]} for row in rows]
        for name in ("b.csv", "b.tsv"):
            mark = ";" if name == "b.csv" else "\t"
            data = load(written(tmp_path / name, table, sep=mark, decimal=",", na_rep="NA"))
            assert data.encoder is not None
            assert data.encoder.schema.kinds == {"age": "number", "weight": "number"}
            assert data.classes == ("bags", "hats")

    def test_a_comma_among_words_or_beside_points_is_only_a_comma(self) -> None:
        assert decimal_commas([["3,5", "a,b", "1", "31.12.2026"], ["4", "1,2", "NA", "1.2.2027"]]) == [0]
        assert decimal_commas([["1,2", "0.5"], ["3,4", "1"]]) == []
        assert decimal_commas([["1,2,3"], ["1,2"]]) == []


class TestFlaws:
    @pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "-"])
    @pytest.mark.parametrize(("line", "told"), [("{broken", "is not JSON"), ("[1, 2]", "is a list")])
    def test_a_line_that_is_no_object_is_named(self, tmp_path: Path, name: str, line: str, told: str) -> None:
        lines = [json.dumps(row) for row in rounds(20)]
        lines[9] = line
        text = "\n".join(lines) + "\n"
        if name == "-":
            found = refusal("estimate", "-", "--out", tmp_path, given=text)
            assert f"standard input: line 10 {told}" in found
            assert "fliptron-" not in found
            return
        (tmp_path / name).write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
        found = refusal("estimate", tmp_path / name, "--out", tmp_path)
        assert f"{name}: line 10 {told}; a JSON object" in " ".join(found.split())

    @pytest.mark.parametrize("zipped", [False, True])
    @pytest.mark.parametrize("kind", ["csv", "jsonl"])
    def test_a_byte_order_mark_is_no_matter(self, tmp_path: Path, kind: str, zipped: bool) -> None:
        path = written(tmp_path / f"a.{kind}", rounds(40))
        content = b"\xef\xbb\xbf" + path.read_bytes()
        content = gzip.compress(content) if zipped else content
        path = path.with_name(path.name + ".gz" * zipped)
        path.write_bytes(content)
        log = Log(path)
        assert (log.n_rounds, log.features) == (40, ["age"])
        result = CliRunner().invoke(main, ["estimate", "-", "--out", str(tmp_path)], input=content)
        assert result.exit_code == 0, result.stderr
        if kind == "jsonl" and not zipped:
            path.write_bytes(content + b"{")
            told = refusal("estimate", path, "--out", tmp_path)
            assert f"{path}: line 41 is not JSON" in " ".join(told.split())

    @pytest.mark.parametrize(
        ("change", "told"),
        [
            ({"long": lambda i: "inf"}, "column 'long' holds something infinite in row 0"),
            ({"day": lambda i: "infinity" if i == 7 else "2026-01-02"}, "holds something infinite in row 7"),
        ],
    )
    def test_infinite_times_are_named_with_their_row(self, tmp_path: Path, change: Any, told: str) -> None:
        ((name, value),) = change.items()
        path = written(tmp_path / "a.csv", [row | {name: value(i)} for i, row in enumerate(rounds(40))])
        assert told in refusal("estimate", path, "--out", tmp_path)

    def test_whole_numbers_of_sixty_digits_are_words(self, tmp_path: Path) -> None:
        rows = [row | {"shown": 10**60 + i % 2, "n": 10**60 + i % 3} for i, row in enumerate(rounds(40))]
        log = Log(written(tmp_path / "a.csv", rows))
        assert log.labels == (str(10**60), str(10**60 + 1))
        with pytest.raises(InputError, match=r"column 'shown' holds 1e[+]60, and numbers so large are not told from"):
            Log(written(tmp_path / "a.jsonl", rows))
        table = [{"age": row["age"], "kind": row["shown"]} for row in rows]
        with pytest.raises(InputError, match=r"column 'kind' holds 1e[+]60, and numbers so large"):
            load(written(tmp_path / "b.jsonl", table))

    def test_the_line_that_is_no_text_is_named(self, tmp_path: Path) -> None:
        path = written(tmp_path / "a.csv", [row | {"city": "Rome"} for row in rounds(40)])
        lines = path.read_bytes().splitlines(keepends=True)
        lines[7] = lines[7].replace(b"Rome", b"Malm\xf6")
        path.write_bytes(b"".join(lines))
        for command in (["estimate"], ["run", "--dataset"]):
            told = refusal(*command, path, "--out", tmp_path)
            assert "is not UTF-8 text; save it as UTF-8 (line 8 is the first that is not)" in " ".join(told.split())

    def test_parts_whose_bits_are_of_two_kinds(self, tmp_path: Path) -> None:
        written(tmp_path / "1.csv", rounds())
        written(tmp_path / "2.csv", [row | {"clicked": "yes"} for row in rounds()])
        told = " ".join(refusal("estimate", tmp_path, "--out", tmp_path / "o").split())
        assert f"column 'clicked' holds 'yes' in line 2 of {tmp_path / '2.csv'}; a whole number is expected" in told

    def test_a_column_that_is_to_be_two_things(self, tmp_path: Path) -> None:
        path = written(tmp_path / "a.csv", rounds())
        told = refusal("estimate", path, "--label", "clicked", "--out", tmp_path)
        assert "column 'clicked' is to be the log's label, and no other is called as its bit is" in told


class TestHeaders:
    @pytest.mark.parametrize("above", ["# made on Monday", "Clicks in May", "sep=,", "# a\n# b, c\n", "Title\n"])
    def test_lines_above_the_header_are_passed_over(self, tmp_path: Path, above: str) -> None:
        path = written(tmp_path / "a.csv", rounds(40))
        plain = Log(path)
        text = path.read_text()
        path.write_text(f"{above}\n{text}")
        log = Log(path)
        assert (log.n_rounds, log.features, log.fingerprint) == (40, ["age"], plain.fingerprint)
        path.write_text(f"{above}\n{text.replace('age,', 'shown,')}")
        with pytest.raises(InputError, match="has two columns 'shown'"):
            Log(path)
        path.write_text(f"{above}\na,b,kind\n1,2,x\n2,1,y\n")
        assert load(path).classes == ("x", "y")
        path.write_text(f"{above}\na,b,kind\n1,2,x\n2,y\n")
        with pytest.raises(InputError, match=f"line {above.count(chr(10)) + 4} has 2 values; 3 are expected"):
            load(path)

    def test_excels_separator(self, tmp_path: Path) -> None:
        path = written(tmp_path / "a.csv", rounds(40), sep=";")
        path.write_text("sep=;\n" + path.read_text())
        assert Log(path).features == ["age"]

    def test_a_header_may_begin_with_a_hash(self, tmp_path: Path) -> None:
        path = written(tmp_path / "a.csv", rounds(40))
        path.write_text("#" + path.read_text())
        assert Log(path).features == ["#age"]

    def test_names_that_come_twice_in_any_part_or_in_capitals(self, tmp_path: Path) -> None:
        written(tmp_path / "1.csv", rounds(4))
        path = written(tmp_path / "2.csv", rounds(4))
        path.write_text(path.read_text().replace("age,", "shown,"))
        with pytest.raises(InputError, match=r"2\.csv has two columns 'shown'"):
            Log(tmp_path)
        (tmp_path / "3.csv").write_text("age,Age,kind\n1,2,x\n2,1,y\n")
        with pytest.raises(InputError, match="two columns are called 'age'"):
            load(tmp_path / "3.csv")


class TestParts:
    @pytest.mark.parametrize("kind", ["parquet", "csv", "jsonl"])
    def test_a_part_without_a_column_has_gaps_there(self, tmp_path: Path, kind: str) -> None:
        written(tmp_path / f"1.{kind}", [{"member": True} | row for row in rounds(4)])
        written(tmp_path / f"2.{kind}", rounds(4))
        log = Log(tmp_path)
        assert log.features == ["member", "age"]
        assert [is_missing(value) for value in next(log.batches()).records.columns["member"].tolist()] == [
            *[False] * 4, *[True] * 4]  # fmt: skip

    def test_parts_of_several_kinds_are_refused(self, tmp_path: Path) -> None:
        written(tmp_path / "1.csv", rounds())
        written(tmp_path / "2.jsonl", rounds())
        told = refusal("estimate", tmp_path, "--out", tmp_path)
        assert "stands for files that end in '.csv', '.jsonl'; files of one kind are expected" in told


@pytest.mark.parametrize("given", ["", "\n", "age,shown,clicked\n1,2\n3,4,5\n"])
def test_nobody_is_told_where_standard_input_is_kept(tmp_path: Path, given: str) -> None:
    told = refusal("estimate", "-", "--out", tmp_path, given=given)
    assert "standard input" in told
    assert "fliptron-" not in told


class TestToldLearners:
    def test_they_are_told_or_refused(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        log_of(Path("a.csv"), 1000)
        for name in ("RCNBF", "Fliptron-told"):
            assert f"{name} must be told the flip rates" in refusal("learn", "a.csv", "--learner", name)
        assert "BPA takes no flip rates" in refusal("learn", "a.csv", "--learner", "BPA", "--rates", 0.1, 0.2)
        told = ["learn", "a.csv", "--learner", "RCNBF", "--rates", "0.1", "0.2", "--gamma", "0.2"]
        assert CliRunner().invoke(main, [*told, "--holdout", "0.5"]).exit_code == 0
        assert Policy.load("policy.npz").learner.params["rates"] == (0.1, 0.2)
        assert CliRunner().invoke(main, told).exit_code == 0  # the same command goes on
        assert "cannot be changed" in refusal("learn", "a.csv", "--rates", 0.1, 0.3)
        with pytest.raises(InputError, match="a RCNBF needs rates, which nobody has given"):
            learn_log(Log("a.csv"), RCNBF)


@pytest.mark.parametrize("words", [("rejected", "accepted"), ("sent_back", "Accepted"), ("thumbs down", "thumbs up")])
def test_bits_as_people_say_them(tmp_path: Path, words: tuple[str, str]) -> None:
    log = Log(written(tmp_path / "a.csv", [row | {"clicked": words[row["clicked"]]} for row in rounds()]))
    assert next(log.batches()).rounds.bit.tolist() == [row["clicked"] for row in rounds()]


def test_the_label_by_another_name_is_no_feature(tmp_path: Path) -> None:
    path = log_of(tmp_path / "a.csv")
    log = Log(path)
    assert log.features == ["age", "best_guess", "ones"]
    assert "left out (the label played, by another name): offer" in log.describe()
    assert "offer" not in next(log.batches()).records.columns
    for told in ({"features": ["age", "offer"]}, {"others": ["offer"]}):
        with pytest.raises(InputError, match="column 'offer' holds the label that was played in every round"):
            Log(path, **told)
    frame = pd.read_csv(path)
    for odd, features in (("none", log.features), (next(iter({"bags", "hats"} - {frame["shown"][2500]})), None)):
        frame.loc[2500, "offer"] = odd
        frame.to_csv(path, index=False)
        assert Log(path).features == (features or ["age", "best_guess", "offer", "ones"])


def test_a_log_shows_itself(tmp_path: Path) -> None:
    log = Log(written(tmp_path / "a.csv", rounds()))
    assert repr(log) == f"Log({str(tmp_path / 'a.csv')!r}, 8 rounds, 2 labels, 1 features)"
    assert "<td>age</td><td>number</td>" in log._repr_html_()
    assert "<td>clicked</td><td>bit</td>" in log._repr_html_()
    with pytest.raises(InputError, match="the log is a DataFrame; the name of a file"):
        Log(pd.DataFrame(rounds()))


class TestRun:
    def test_it_shows_what_columns_hold_and_can_be_told(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        rows = [{"size": "XL" if i % 5 == 0 else i % 7, "age": i % 11, "kind": "ab"[i % 2]} for i in range(40)]
        written(Path("t.csv"), rows)
        run = ["run", "--dataset", "t.csv", "--rounds", "200", "--seeds", "1", "--learner", "RidgeRegression"]
        assert "among numbers; numbers are expected, or give the column's kind" in refusal(*run)
        told = CliRunner().invoke(main, [*run, "--kind", "size=category"])
        assert told.exit_code == 0, told.stderr
        assert "40 rows, 2 classes: 'a', 'b'" in told.stderr
        assert "size: category of" in told.stderr
        assert "age: number" in told.stderr
        assert "column 'agee', which is not there" in refusal(*run, "--kind", "agee=number")

    def test_tables_in_parts_and_from_standard_input(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        rows = [{"id": "007", "age": i % 11, "kind": ("01", "1")[i * 7 % 11 % 2]} for i in range(40)]
        written(Path("t.csv"), rows)
        Path("days").mkdir()
        written(Path("days/1.csv"), rows[:25])
        written(Path("days/2.csv"), rows[25:])
        run = ["run", "--rounds", "200", "--seeds", "1", "--learner", "RidgeRegression", "--json", "--out"]
        errors = []
        for at, name in enumerate(("t.csv", "days", "days/*.csv", "-")):
            content = Path("t.csv").read_text() if name == "-" else None
            told = CliRunner().invoke(main, [*run, f"o{at}", "--dataset", name], input=content)
            assert told.exit_code == 0, told.stderr
            errors.append(json.loads(told.stdout)[0]["error_mean"])
        assert len(set(errors)) == 1
        assert load("days").classes == load("t.csv").classes == ("01", "1")
        assert load("days").name == load("days/*.csv").name == "days"
        bad = refusal(*run, "o", "--dataset", "-", given="a,kind\n1,2\n3\n")
        assert "standard input: line 3 has 1 values; 2 are expected" in bad
        assert "workers cannot read standard input" in refusal(
            *run, "o", "--dataset", "-", "--cluster", "tcp://x:1", given=""
        )
        with pytest.raises(InputError, match="rows of several files are only read encoded"):
            load("days", encode=False)
        with pytest.raises(InputError, match="is not a data set"):
            load("nights")

    def test_kinds_are_for_rows_that_are_encoded(self) -> None:
        with pytest.raises(InputError, match="kinds of x0 are given, but rows that are not encoded are only numbers"):
            load("iris", kinds={"x0": "number"})
        data = load("iris", encode=True, kinds={"x0": "category"})
        assert data.encoder is not None
        assert data.encoder.schema.kinds["x0"] == "category"
        plain, told = (Spec("iris", (0.2, 0.4), "RCNBF", 100, 0, kinds=kinds) for kinds in ({}, {"x0": "category"}))
        assert plain.id != told.id


def test_a_list_in_a_record_is_named_with_its_row(tmp_path: Path) -> None:
    rows = [row | {"tags": ["a", "b"]} for row in rounds()]
    told = refusal("estimate", written(tmp_path / "a.jsonl", rows), "--out", tmp_path)
    assert "column 'tags' holds a list in row 0; words and numbers are expected" in told


class TestOwnTables:
    @pytest.mark.parametrize("how", [{"encode": False}, {"unit_norm": False}, {"dtype": "float32"}, {}])
    def test_the_label_is_in_the_column_named_however_rows_are_kept(self, tmp_path: Path, how: Any) -> None:
        path = tmp_path / "lf.csv"
        path.write_text("kind,a,b\ncat,3,4\ndog,0,2\ncat,6,9\n")
        data = load(path, label="kind", **how)
        assert data.classes == ("cat", "dog")
        with pytest.raises(InputError, match=r"no column is called 'nonsense'; there are kind, a, b"):
            load(path, label="nonsense", **how)
        path.write_text("label,a,b\n7,3,4\n8,0,2\n7,6,9\n")
        assert load(path, **how).classes == (7, 8)

    def test_only_a_tables_column_can_be_named(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="label is 'nonsense', but iris has the labels it has"):
            load("iris", label="nonsense")
        np.savez(tmp_path / "a.npz", X=np.eye(3), y=[0, 1, 1])
        with pytest.raises(InputError, match="label is 'y', but only a table has a column"):
            load(tmp_path / "a.npz", label="y")

    @pytest.mark.parametrize(
        ("labels", "classes"),
        [
            (("007", "7"), ("007", "7")),
            (("1234567890123456789", "1234567890123456790"), (1234567890123456789, 1234567890123456790)),
            ((f"{10**25}", f"{10**25 + 1}"), (f"{10**25}", f"{10**25 + 1}")),
            (("1e25", "2e25"), ("1e25", "2e25")),
            (("1_0", "10"), ("10", "1_0")),
            (("-3", "+3"), (-3, 3)),
            (("1.5", "2"), (1.5, 2.0)),
        ],
    )
    def test_labels_that_differ_are_told_apart(self, tmp_path: Path, labels: Any, classes: Any) -> None:
        (tmp_path / "a.csv").write_text(f"a,b,kind\n1,2,{labels[0]}\n2,1,{labels[1]}\n3,1,{labels[0]}\n")
        assert load(tmp_path / "a.csv").classes == classes
        assert load(tmp_path / "a.csv", encode=False).classes == classes

    def test_a_table_with_a_column_of_bits_and_a_label_that_somebody_named(self, tmp_path: Path) -> None:
        (tmp_path / "a.csv").write_text("age,converted,label\n31,1,hats\n22,0,bags\n44,0,hats\n")
        assert load(tmp_path / "a.csv", label="label").classes == ("bags", "hats")
        (tmp_path / "a.csv").write_text("age,city,class\n31,Rome,hats\n22,Oslo,bags\n44,Rome,hats\n")
        assert load(tmp_path / "a.csv").classes == ("bags", "hats")

    def test_a_log_under_names_of_its_own_is_no_table(self, tmp_path: Path) -> None:
        path = tmp_path / "prod.csv"
        path.write_text("age,city,product,weight,clicked\n31,Rome,hats,0.5,1\n22,Oslo,bags,0.5,0\n44,Rome,hats,0.5,0\n")
        for encode in (True, False):
            with pytest.raises(
                InputError, match="the last column is 'clicked', which is what the bits of a log are call"
            ):
                load(path, encode=encode)
        assert load(path, label="product").classes == ("bags", "hats")
        assert load(path, label="clicked").classes == (0, 1)

    def test_a_number_that_no_float_holds_is_refused(self) -> None:
        with pytest.raises(InputError, match="column 'z' holds a whole number of 1329 bits; a finite number"):
            Dataset.of_records({"z": [10**400] * 300}, ["a", "b", "c"] * 100)
