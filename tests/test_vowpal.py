"""Logs of Vowpal Wabbit: what is written is read again, by it too, and what it logs is read here."""

from __future__ import annotations

import gzip
import json
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import vowpalwabbit
from click.testing import CliRunner
from vowpalwabbit.dftovw import ContextualbanditLabel, DFtoVW, Feature

from fliptron import InputError, Log, RidgeRegression, debias, evaluate, export_log, learn_log
from fliptron.cli.group import commands as main
from fliptron.datasets.shop import shop
from fliptron.logs.dsjson import relabelled
from fliptron.logs.events import column_of, place_of
from fliptron.logs.tables import write_table
from fliptron.logs.vowpal import name_of, parse
from same_logs import check_same, whole

ADF = "--cb_adf --cb_type mtr -q ca -b 22"
FORMS = [("vw", "a.vw"), ("vw", "a.vw.gz"), ("dsjson", "a.dsjson"), ("dsjson", "a.json.gz")]
ODD = [
    "Rome",
    "a b",
    "x:y",
    "p|q",
    "50%",
    "%3A",
    "k=v",
    "tab\there",
    "new\nline",
    "cr\r",
    "é ü 漢",
    "'q'",
    '"',
    "",
    "_u",
    "1.5",
]


def rounds_of(log: Log) -> Any:
    return whole(log)[1]


def rounds_at(log: Log) -> Any:
    """Which one of its list each played action was, from 0 on."""
    return np.array([row[0] - 1 for row in log._file.rows("SELECT position FROM {}")])


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("shop") / "shop.csv"
    write_table(path, shop(3000).log)
    return path


@pytest.mark.parametrize(("to", "name"), FORMS)
def test_what_is_written_is_read_to_the_last_digit(table: Path, tmp_path: Path, to: str, name: str) -> None:
    log = Log(table)
    assert export_log(log, tmp_path / name, to=to) == 3000
    again = Log(tmp_path / name)
    check_same(log, again)
    assert again.schema == log.schema
    assert (tmp_path / name).read_bytes().startswith(b"\x1f\x8b") == name.endswith(".gz")
    policies = [learn_log(each, RidgeRegression) for each in (log, again)]
    np.testing.assert_array_equal(*(each.learner.weights for each in policies))


@pytest.mark.parametrize(("to", "name"), [("vw", "a.vw"), ("dsjson", "a.dsjson")])
def test_odd_words_and_names_come_back(tmp_path: Path, to: str, name: str) -> None:
    n = 2 * len(ODD)
    columns = {
        "city": np.array([word or None for word in ODD * 2], dtype=object),
        "user.age": np.where(np.arange(n) % 3 == 0, np.nan, np.arange(n) / 3),
        "context.x": np.arange(n) * 1e-30,
        "a=b:c d|e": np.arange(n) * 1e17 / 7,
        ".y.": np.arange(n) % 2 == 0,
        "_z": np.arange(n) - 0.5,
        "label": np.array([f"l {word}" for word in ODD * 2], dtype=object),
        "bit": np.arange(n) % 2,
        "probability": 1 / (3 + np.arange(n)),
        "greedy": np.array(["l Rome"] * n, dtype=object),
        "margin": np.arange(n) / 9,
    }
    write_table(tmp_path / "a.parquet", columns)
    log = Log(tmp_path / "a.parquet")
    export_log(log, tmp_path / name, to=to)
    check_same(log, Log(tmp_path / name), without=("greedy", "margin") if to == "vw" else ())


@pytest.mark.parametrize(
    "column", ["age", "user.age", "a.b.c", "context.x", "context.cost", ".x", "x.", ".", "..", "context."]
)
def test_every_column_has_a_place_and_is_found_again(column: str) -> None:
    assert column_of(*place_of(column)) == column


def test_numbered_actions(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("label,bit,probability,age\n1,1,0.5,3\n12,0,0.1,4.5\n")
    export_log(Log(tmp_path / "a.csv"), tmp_path / "a.vw", to="vw-cb")
    assert (tmp_path / "a.vw").read_text() == "1:-1.0:0.5 |context age:3.0\n12:0.0:0.1 |context age:4.5\n"
    check_same(Log(tmp_path / "a.csv"), Log(tmp_path / "a.vw"))
    (tmp_path / "b.csv").write_text("label,bit,probability,age\n0,1,0.5,3\n12,0,0.1,4.5\n")
    with pytest.raises(InputError, match="a label is 0; in vw-cb labels are whole numbers from 1 on: write vw instead"):
        export_log(Log(tmp_path / "b.csv"), tmp_path / "b.vw", to="vw-cb")
    assert not (tmp_path / "b.vw").exists()


class TestWhatIsUnderstood:
    def read(self, tmp_path: Path, text: str, name: str = "a.vw", **options: Any) -> tuple[Log, Any, Any, Any]:
        (tmp_path / name).write_bytes(text.encode())
        log = Log(tmp_path / name, **options)
        return log, *whole(log)

    def test_namespaces_weights_flags_words_and_tags(self, tmp_path: Path) -> None:
        text = "2:0:0.25 first|u:2 age:3 vip city=Rome |t hat hat city=Oslo\n1 3:-1:0.5 4 'second| age:1e-3 u=true\n"
        _, records, rounds, tags = self.read(tmp_path, text)
        assert records == {
            "u.age": [6.0, None], "u.vip": [2.0, None], "u.city=Rome": [2.0, None], "t.hat": [2.0, None],
            "t.city": ["Oslo", None], "age": [None, 0.001], "u": [None, True],
        }  # fmt: skip
        assert tags == ["first", "second"]
        assert rounds.label.tolist() == [1, 2]
        assert rounds.bit.tolist() == [0, 1]

    def test_lines_without_a_cost_are_passed_over(self, tmp_path: Path) -> None:
        _, records, rounds, _ = self.read(tmp_path, "1:0:.5 | b:2\n | a\n'tag | a\n2:-1:.5 | c\n | b\n")
        assert records == {"b": [2.0, None], "c": [None, 1.0]}
        assert rounds.label.tolist() == [0, 1]

    def test_a_probability_that_rounding_put_above_one_is_one(self, tmp_path: Path) -> None:
        log, _, rounds, _ = self.read(tmp_path, "1:0:1.0000001 | a\n2:-1:.5 | a\n")
        assert rounds.probability.tolist() == [1.0, 0.5]
        export_log(log, tmp_path / "b.vw", to="vw-cb")
        assert (tmp_path / "b.vw").read_text() == (tmp_path / "a.vw").read_text()
        with pytest.raises(InputError, match=r"line 1 has probability 1\.0001; a number above 0 and at most 1"):
            self.read(tmp_path, "1:0:1.0001 | a\n2:-1:.5 | a\n")

    def test_actions_that_are_listed_could_be_played(self, tmp_path: Path) -> None:
        log, _, rounds, _ = self.read(tmp_path, "1 2:0:.5 3 | a\n1 2 3:-1:.5 | a\n")
        assert log.labels == (1, 2, 3)
        assert rounds.label.tolist() == [1, 2]

    @pytest.mark.parametrize("shared", ["", "shared | x:1\n"])
    @pytest.mark.parametrize("played", [0, 2])
    def test_an_event_of_several_lines_has_one_cost(self, tmp_path: Path, shared: str, played: int) -> None:
        actions = ["| a=b", "| a=c", "| a=d"]
        actions[played] = "0:{0}:0.5 " + actions[played]
        text = shared + "\n".join(actions) + "\n\n"
        log, _, rounds, _ = self.read(tmp_path, text.format(0) + text.format(-1))
        assert log.labels == ("b", "c", "d")
        assert rounds.label.tolist() == [played] * 2

    @pytest.mark.parametrize(("first", "second", "bits"), [("0", "-1", [0, 1]), ("0", "1", [1, 0]), ("1", "-1", [0, 1]),
                                                           ("0.25", "-3.5", [0, 1])])  # fmt: skip
    def test_the_lower_of_two_costs_is_right(self, tmp_path: Path, first: str, second: str, bits: Any) -> None:
        _, _, rounds, _ = self.read(tmp_path, f"1:{first}:0.5 | x:1\n2:{second}:0.5 | x:2\n")
        assert rounds.bit.tolist() == bits

    @pytest.mark.parametrize(("cost", "bit"), [("-1", 1), ("1", 0)])
    def test_one_cost_alone_is_what_its_sign_says(self, tmp_path: Path, cost: str, bit: int) -> None:
        _, _, rounds, _ = self.read(tmp_path, f"1:{cost}:0.5 | x:1\n2:{cost}:0.5 | x:2\n")
        assert rounds.bit.tolist() == [bit, bit]

    def test_actions_go_by_tag_by_word_or_by_all_they_have(self, tmp_path: Path) -> None:
        event = "shared 'e|u age:{0}\n'hat| price:3\n0:{1}:0.5 |a kind=sock\n|a kind=bag |b size:2\n\n"
        log, records, rounds, tags = self.read(tmp_path, event.format(1, 0) + event.format(2, -1))
        assert log.labels == ("hat", "sock", "|a kind=bag:1.0 |b size:2.0")
        assert records == {"u.age": [1.0, 2.0]}
        assert [log.labels[r] for r in rounds.label] == ["sock", "sock"]
        assert tags == ["e", "e"]
        export_log(log, tmp_path / "b.vw")
        assert "\n|a kind=bag |b size:2\n" in (tmp_path / "b.vw").read_text()
        check_same(log, Log(tmp_path / "b.vw"))
        with pytest.warns(UserWarning, match="left out of what is written as 'vw': the features of actions$"):
            export_log(Log(tmp_path / "a.vw", features=["u.age"]), tmp_path / "c.vw")
        assert "\n|action label=hat\n" in (tmp_path / "c.vw").read_text()
        assert "\n|a kind=bag:1.0 |b size:2.0\n" in (tmp_path / "c.vw").read_text()
        check_same(log, Log(tmp_path / "c.vw"))
        positions = Log(tmp_path / "a.vw", label="position", labels=[1, 2, 3])
        assert whole(positions)[1].label.tolist() == [1, 1]
        assert positions.features == ["u.age"]  # the name of what was played would give it away
        with pytest.raises(InputError, match="column 'bit' cannot be a feature"):
            Log(tmp_path / "a.vw", features=["bit"])

    def test_windows_line_ends_a_mark_at_the_start_and_blank_lines_change_nothing(self, tmp_path: Path) -> None:
        text = "shared | x:1\n0:0:0.5 | a=b\n| a=c\n\nshared | x:2\n| a=b\n0:-1:0.5 | a=c\n"
        plain = self.read(tmp_path, text)
        odd = self.read(tmp_path, "\ufeff\n" + text.replace("\n", "\r\n").replace("\r\n\r\n", "\r\n \r\n\r\n"), "b.vw")
        check_same(plain[0], odd[0])
        (tmp_path / "c.vw.gz").write_bytes(gzip.compress(text.encode()))
        check_same(plain[0], Log(tmp_path / "c.vw.gz"))

    def test_a_folder_and_standard_input(self, tmp_path: Path) -> None:
        lines = ["1:0:0.5 | x:1\n2:-1:0.5 | x:2\n", "2:0:0.5 | x:3 y=z\n"]
        for name, text in zip(("a.vw", "b.vw"), lines, strict=True):
            (tmp_path / name).write_text(text)
        assert whole(Log(tmp_path))[0] == {"x": [1.0, 2.0, 3.0], "y": [None, None, "z"]}
        assert Log(tmp_path / "*.vw").n_rounds == 3
        told = ["estimate", "-", "--json", "--out", str(tmp_path)]
        result = CliRunner().invoke(main, [*told, "--format", "vw"], input="".join(lines))
        assert json.loads(result.stdout)["rounds"] == 3
        result = CliRunner().invoke(main, told, input="".join(lines))
        assert result.exit_code == 2

    def test_batches_are_written_as_they_fill(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("fliptron.logs.events.BATCH", 10)
        lines = [
            f"{1 + i % 3}:{-(i % 2)}:0.5 | x:{i} {'w=a' if i > 15 else ''} {'v:3' if i < 20 else 'v=q'}"
            for i in range(25)
        ]
        log, records, rounds, _ = self.read(tmp_path, "\n".join(lines), kinds={"v": "category"})
        assert len(log._file._paths) == 3
        assert records["x"] == [float(i) for i in range(25)]
        assert records["w"] == [None] * 16 + ["a"] * 9
        assert records["v"][20:] == ["q"] * 5
        assert rounds.bit.tolist() == [i % 2 for i in range(25)]


BAD_TEXT = {
    "": "holds no rounds",
    "\n\n": "holds no rounds",
    "1:0:0.5 | x:nan\n": r"line 1 has feature 'x' with value 'nan'; a finite number",
    "1:0:0.5 | x:\n": r"line 1 has feature 'x' with value ''",
    "1:0:0.5 |u:inf x\n": r"line 1 has namespace 'u' with weight 'inf'",
    "1:0:0.5 | x\n1:nan:0.5 | x\n": r"line 2 has cost 'nan'",
    "1:0:0.5 | x\n1:0:1.5 | x\n": r"line 2 has probability 1.5; a number above 0 and at most 1",
    "1:0:0 | x\n": r"line 1 has probability 0;",
    "1:0:-0.5 | x\n": r"line 1 has probability -0.5;",
    "1:0 | x\n2:0:0.5 | x\n": r"line 1 has label '1:0'; action:cost:probability",
    "1:0:0.5 2:1:0.5 | x\n2:0:0.5 | x\n": r"line 1 has two costs, 1:0:0.5 and 2:1:0.5",
    "a:0:0.5 | x\n2:0:0.5 | x\n": r"line 1 has action 'a'; a whole number from 1 to 1,000,000",
    "0:0:0.5 | x\n2:0:0.5 | x\n": r"line 1 has action '0'",
    "1:0:0.5 | x\n1:1:0.5 | x\n2:0:0.5| x\n": r"line 3 has no cost; action:cost:probability before a blank",
    "1:0:0.5 | x\n2:1:0.5 | x\n1:2:0.5 | x\n": r"line 3 has cost 2 beside 0 and 1; a log has two costs, the lower",
    "1:0:0.5 | x\n2:0:0.5 | x\n": r"line 1 and all others have cost 0, which may be right",
    "1:0:0.5 | c=a c=b\n2:1:0.5 | x\n": r"line 1 has 'c' twice; a word may be there once",
    "shared | x\n| a=b\n| a=c\n": r"line 1 begins an event without a cost",
    "shared | x\n0:0:0.5 | a=b\n0:1:0.5 | a=c\n": r"line 3 has a second cost in one event",
    "shared | x\n0:0:0.5 | a=b\n| a=b\n": r"line 3 has action 'b' twice",
    "shared | x\n0:0:0.5 | a=b\nshared | x\n| a=c\n": r"line 3 is shared in the midst of an event",
    "shared | x\n0:0:0.5 | a=b\n| a=c\n\n0:0:0.5 | a=b\n| a=c\n": r"line 5 begins an event without a shared line",
    "shared | x\n0:0:0.5 | a=b\n|\n": r"line 3 describes an action by nothing",
    "1 a 3:0:0.5 | x\n2:0:0.5 | x\n": r"line 1 has action 'a'; a whole number from 1 to 1,000,000",
    "| x\n\n| y\n": r"line 1 begins an event without a cost",
    "1:0:0.5 | x:1 X:2\n": r"line 1 has a feature 'X' beside 'x'; names that differ by more than capitals",
    "1:0:0.5 | :3\n": r"line 1 has a feature without a name",
    "99999999999999999999:0:0.5 | x\n": r"line 1 has action '99999999999999999999'; a whole number from 1 to",
    "1:0:0.5 | x:1\n1:1:0.5 | x:2\n": r"1 label",
}  # fmt: skip


@pytest.mark.parametrize(("text", "words"), BAD_TEXT.items())
def test_bad_text_is_refused_in_a_sentence_that_names_the_line(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "a.vw").write_text(text)
    result = CliRunner().invoke(main, ["estimate", str(tmp_path / "a.vw"), "--out", str(tmp_path / "out")])
    assert result.exit_code == 2
    assert re.search(words, " ".join(result.stderr.split()))
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "out").exists()


def test_bytes_that_are_no_text_and_files_that_are_not_zipped(tmp_path: Path) -> None:
    (tmp_path / "a.vw").write_bytes(b"1:0:0.5 | x:1\n2:1:0.5 | c=\xff\n")
    with pytest.raises(InputError, match="line 2 holds the byte 0xff; UTF-8 is expected"):
        Log(tmp_path / "a.vw")
    (tmp_path / "b.vw.gz").write_bytes(b"1:0:0.5 | x:1\n")
    with pytest.raises(InputError, match="cannot be read"):
        Log(tmp_path / "b.vw.gz")
    (tmp_path / "c.vw").write_text("\n".join(f"{1 + i % 2}:{i % 2}:0.5 | f{i}" for i in range(1001)))
    with pytest.raises(InputError, match="line 1001: the log has more than 1,000 different features"):
        Log(tmp_path / "c.vw")
    with pytest.raises(InputError, match="format is 'xml'; 'table', 'vw', 'dsjson' or 'obp' is expected"):
        Log(tmp_path / "c.vw", format="xml")


def test_a_line_says_what_vowpal_wabbit_takes_it_for() -> None:
    assert parse("", "1:0:0.5| x").tag == "1:0:0.5"  # glued to the bar: a tag, as there
    assert name_of(parse("", "| a=b c:2")) == "| a=b:1.0 | c:2.0"


def changing(n: int) -> tuple[str, str]:
    """A log whose actions change and have prices and tags, as text and as dsjson."""
    random, texts, lines = np.random.default_rng(0), [], []
    price = random.random(20).round(3)
    for t in range(n):
        u, listed, at = round(float(random.random()), 3), random.permutation(20)[: 3 + t % 2], int(random.integers(3))
        right = int(np.argmin(abs(price[listed] - u))) == at
        cost = -0.5 if random.random() < (0.8 if right else 0.1) else 0.25
        actions = [f"'item{k}|item price:{price[k]} p{int(price[k] * 10)}" for k in listed]
        actions[at] = f"0:{cost}:0.250 {actions[at]}"
        texts.append("\n".join([f"shared 'e{t}|user u:{u} b{int(u * 10)}", *actions]) + "\n\n")
        several = ", ".join(f'{{"_tag":"item{k}", "item": {{"price":{price[k]}}}}}' for k in listed)
        order = [at + 1, *(i + 1 for i in range(len(listed)) if i != at)]
        lines.append(
            f'{{"_label_cost": {cost},"_label_probability":0.250,"_label_Action":{at + 1},"_labelIndex":{at},'
            f'"o":[{{"v":{-cost}}}], "EventId":"e{t}","a":{order},"c":{{"user":{{"u":{u}}},"_multi":[{several}]}}}}\n'
        )
    return "".join(texts), "".join(lines)


class TestWhatIsWrittenInItsOwnForm:
    """Tags, features of actions and lists that change stay as they are, to the last character."""

    @pytest.mark.parametrize(("form", "which"), [("vw", 0), ("dsjson", 1)])
    @pytest.mark.parametrize("label", [None, "position"])
    def test_nothing_changes_but_costs(self, tmp_path: Path, form: str, which: int, label: Any) -> None:
        text = changing(300)[which]
        (tmp_path / f"a.{form}").write_text(text)
        log, target = Log(tmp_path / f"a.{form}", label=label), tmp_path / f"b.{form}"
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert export_log(log, target, to=form) == 300
        assert target.read_text() == text
        export_log(log, target, to=form, reward=lambda batch: 2.0 * batch.rounds.bit - 0.25)
        again = target.read_text()
        assert again != text
        assert again == text.replace(":-0.5:", ":-1.75:").replace('cost": -0.5,', 'cost": -1.75,')
        check_same(log, Log(target, label=label))

    def test_what_is_told_otherwise_is_written(self, tmp_path: Path) -> None:
        for name, text in zip(("a.vw", "a.dsjson"), changing(50), strict=True):
            (tmp_path / name).write_text(text)
            log = Log(tmp_path / name, probability=0.125)
            export_log(log, tmp_path / f"b{name}", to=name[2:])
            assert (tmp_path / f"b{name}").read_text() == text.replace("0.250", "0.125")
            check_same(log, Log(tmp_path / f"b{name}"))

    def test_lines_of_numbered_actions_stay_too(self, tmp_path: Path) -> None:
        (tmp_path / "a.vw").write_text("1 2:0.5:0.250 3 'x|u age:3 vip\n\n11:1.5:.5 |u city=Rome\n")
        export_log(Log(tmp_path / "a.vw"), tmp_path / "b.vw", to="vw-cb")
        assert (tmp_path / "b.vw").read_text() == "1 2:0.5:0.250 3 'x|u age:3 vip\n11:1.5:.5 |u city=Rome\n"
        export_log(Log(tmp_path / "a.vw"), tmp_path / "b.vw", to="vw-cb", reward=lambda batch: batch.rounds.bit + 0.5)
        assert (tmp_path / "b.vw").read_text() == "1 2:-1.5:0.250 3 'x|u age:3 vip\n11:-0.5:.5 |u city=Rome\n"

    def test_json_in_which_a_key_stands_twice_keeps_its_meaning(self) -> None:
        text = '{"c": {"_label_cost": 7}, "_label_cost": -1, "_label_probability": 0.5}'
        told = json.loads(relabelled(text, 2.5, None))
        assert told == {"c": {"_label_cost": 7}, "_label_cost": 2.5, "_label_probability": 0.5}
        assert relabelled(text, -1.0, 0.5) == text
        assert json.loads(relabelled('{"_label_cost": -1e0}', None, 0.5))["_label_probability"] == 0.5

    @pytest.mark.parametrize(
        ("name", "to"), [("a.vw", "dsjson"), ("a.dsjson", "vw"), ("a.vw", "obp"), ("a.vw", "parquet")]
    )
    def test_what_another_form_has_no_room_for_is_named(self, tmp_path: Path, name: str, to: str) -> None:
        (tmp_path / name).write_text(changing(50)[name == "a.dsjson"])
        told = ["debias", str(tmp_path / name), "--rates", "0,0", "--to", to]
        target = tmp_path / f"b.{'npz' if to == 'obp' else to}"
        result = CliRunner().invoke(main, [*told, "--save", str(target)])
        assert result.exit_code == 0, result.output
        lost = f"left out of what is written as '{to}': the features of actions and which actions each event lists"
        assert f"Warning: {lost}." in " ".join(result.stderr.split())
        same = [*told[:4], "--to", name[2:], "--save", str(tmp_path / f"same{name[1:]}")]
        assert "Warning" not in CliRunner().invoke(main, same).stderr

    def test_what_a_policy_has_learnt_from_is_known_by_what_it_says(self, tmp_path: Path) -> None:
        text = changing(30)[0]
        (tmp_path / "a.vw").write_text(text)
        (tmp_path / "b.vw").write_text(text.replace(" u:", "  u:"))
        assert Log(tmp_path / "a.vw").fingerprint == Log(tmp_path / "b.vw").fingerprint
        assert "%event" not in Log(tmp_path / "a.vw").describe()


class TestWithVowpalWabbit:
    """The real one. Its numbers have 24 bits, so sums agree to six digits."""

    def played(self, path: Path, options: str, folder: Path) -> tuple[list[int], float, float]:
        """What a model that learns as it goes would have played, and what it says that is worth."""
        model = vowpalwabbit.Workspace(f"{options} -d {path} -p {folder / 'played'} --quiet")
        loss, n = model.get_sum_loss(), model.get_weighted_examples()
        model.finish()
        told = [line for line in (folder / "played").read_text().splitlines() if line.strip()]
        return [int(float(re.split("[:, ]", line)[0])) for line in told], loss, n

    @pytest.mark.parametrize(("to", "more"), [("vw", ""), ("dsjson", "--dsjson")])
    def test_policies_and_values_are_equal_on_both_sides(self, table: Path, tmp_path: Path, to: str, more: str) -> None:
        log = Log(table, features=["age", "visits", "city", "member"])
        path = tmp_path / f"a.{to}"
        export_log(log, path, to=to)
        places, loss, n = self.played(path, f"{ADF} {more}", tmp_path)
        assert n == 3000
        columns = pd.read_csv(table)
        columns["vw"] = [log.labels[place] for place in places]
        columns.to_csv(tmp_path / "b.csv", index=False)
        both = Log(tmp_path / "b.csv", others=["vw"], features=log.features)
        assert evaluate(both, {"vw": "vw"}).values["vw"].mean_bit["ips"] == pytest.approx(-loss / n, rel=1e-6)
        again = tmp_path / f"again.{to}"
        export_log(Log(path), again, to=to)
        assert self.played(again, f"{ADF} {more}", tmp_path) == (places, loss, n)

    @pytest.mark.parametrize(("name", "more"), [("a.vw", ""), ("a.dsjson", "--dsjson")])
    def test_what_is_written_again_teaches_it_the_same(self, tmp_path: Path, name: str, more: str) -> None:
        """Its own model of a log with features of actions: the costs alone are others, by a factor that it can see."""
        to, options = name[2:], f"--cb_adf --cb_type mtr -q ui -b 20 {more}"
        (tmp_path / name).write_text(changing(1000)[to == "dsjson"])
        log = Log(tmp_path / name)
        export_log(log, tmp_path / f"same.{to}", to=to)
        debias(log, tmp_path / f"h.{to}", to=to, rates=(0.0, 0.5))
        first = self.played(tmp_path / name, options, tmp_path)
        assert self.played(tmp_path / f"same.{to}", options, tmp_path) == first
        places, loss, n = self.played(tmp_path / f"h.{to}", options, tmp_path)
        assert n == first[2] == 1000
        event = re.compile(r"(?m)^shared" if to == "vw" else "EventId")
        assert len(event.findall((tmp_path / f"h.{to}").read_text())) == 1000
        value = (np.array(places) == rounds_at(log)) / rounds_of(log).probability * rounds_of(log).bit * 2.0
        assert -loss / n == pytest.approx(value.mean(), rel=1e-5)

    def test_text_and_json_teach_the_same_policy(self, table: Path, tmp_path: Path) -> None:
        log = Log(table, features=["age", "visits", "city"])
        found = []
        for to, more in (("vw", ""), ("dsjson", "--dsjson")):
            export_log(log, tmp_path / f"a.{to}", to=to)
            found.append(self.played(tmp_path / f"a.{to}", f"{ADF} {more}", tmp_path))
        (text, loss, _), (other, lost, _) = found
        assert text == other
        assert loss == pytest.approx(lost, rel=1e-6)

    def test_numbered_actions_too(self, tmp_path: Path) -> None:
        random = np.random.default_rng(0)
        x, label = random.random(500).round(3), random.integers(1, 4, 500)
        columns = {
            "x": x,
            "label": label,
            "bit": ((x * 3).astype(int) + 1 == label).astype(int),
            "probability": np.full(500, 1 / 3),
        }
        write_table(tmp_path / "a.csv", columns)
        export_log(Log(tmp_path / "a.csv"), tmp_path / "a.vw", to="vw-cb")
        places, loss, n = self.played(tmp_path / "a.vw", "--cb 3 --cb_type dm", tmp_path)
        write_table(tmp_path / "b.csv", columns | {"vw": np.array(places) + 1})  # it writes them from 0 on
        assert n == 500
        found = evaluate(Log(tmp_path / "b.csv", others=["vw"]), {"vw": "vw"}).values["vw"]
        assert found.mean_bit["ips"] == pytest.approx(-loss / n, rel=1e-6)

    def test_lines_that_its_own_converter_writes(self) -> None:
        frame = pd.DataFrame(
            {"a": [1, 2, 1], "c": [0, -1, -1], "p": [0.5, 0.25, 0.75], "age": [3.5, 4, 1], "city": ["x", "y", "x"]}
        )
        label = ContextualbanditLabel("a", "c", "p")
        lines = DFtoVW(df=frame, label=label, features=[Feature("age"), Feature("city")]).convert_df()
        found = [parse("", line) for line in lines]
        assert [line.label for line in found] == [["1:0:0.5"], ["2:-1:0.25"], ["1:-1:0.75"]]

    def test_an_online_loop_of_its_own_is_read(self, tmp_path: Path) -> None:
        random = np.random.default_rng(1)
        model = vowpalwabbit.Workspace("--cb_explore_adf --epsilon 0.3 -q ca --quiet --dsjson")
        lines, chances = [], []
        for _ in range(60):
            age = float(random.integers(0, 2))
            actions = [{"a": {"offer": name}} for name in ("hats", "shoes", "socks")]
            event: dict[str, Any] = {"c": {"context": {"age": age}, "_multi": actions}}
            examples = model.parse(json.dumps(event | {"a": [1, 2, 3], "p": [0.4, 0.3, 0.3]}))
            p = model.predict(examples)
            model.finish_example(examples)
            place = int(random.choice(3, p=np.array(p) / sum(p)))
            order = sorted(range(3), key=lambda r: -p[r])
            cost = -float(place == int(age))
            event |= {"_label_Action": place + 1, "_label_probability": p[place], "_label_cost": cost,
                      "a": [r + 1 for r in order], "p": [p[r] for r in order]}  # fmt: skip
            lines.append(json.dumps(event))
            chances.append(p)
            examples = model.parse(lines[-1])
            model.learn(examples)
            model.finish_example(examples)
        model.finish()
        (tmp_path / "a.dsjson").write_text("\n".join(lines))
        log = Log(tmp_path / "a.dsjson")
        _, rounds, _ = whole(log)
        assert log.labels == ("hats", "shoes", "socks")
        assert [
            chance[label] for chance, label in zip(chances, rounds.label, strict=True)
        ] == rounds.probability.tolist()
        assert [chance[label] for chance, label in zip(chances, rounds.greedy, strict=True)] == [
            max(each) for each in chances
        ]
