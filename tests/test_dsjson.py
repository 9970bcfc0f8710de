"""The decision service's JSON: what is understood of it, and what is passed over or refused."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
import vowpalwabbit

from fliptron import InputError, Log, audit, debias
from fliptron.logs.events import OWN
from same_logs import whole

EVENT: dict[str, Any] = {
    "_label_cost": -1.0, "_label_probability": 0.5, "_label_Action": 2, "EventId": "e1", "a": [2, 1], "p": [0.5, 0.5],
    "c": {"u": {"age": 3, "deep": {"z": 1}, "_skip": 9}, "v": [0.5, "w"], "ok": True, "_text": "two words",
          "_multi": [{"_tag": "hat", "i": {"price": 3}}, {"i": {"kind": "sock"}}]},
}  # fmt: skip


class TestDsjson:
    def read(self, tmp_path: Path, *events: Any) -> Log:
        (tmp_path / "a.json").write_text("\n".join(map(json.dumps, events)))
        return Log(tmp_path / "a.json")

    def test_what_is_understood(self, tmp_path: Path) -> None:
        other = EVENT | {"_label_cost": 0, "_label_Action": 1, "p": [0.1, 0.9]}
        skipped = EVENT | {"_skipLearn": True, "_label_cost": 77}
        log = self.read(tmp_path, EVENT, skipped, other)
        records, rounds, tags = whole(log)
        assert log.labels == ("hat", "sock")
        assert records == {"u.age": [3.0] * 2, "u.deep.z": [1.0] * 2, "v.0": [0.5] * 2, "v.w": [1.0] * 2,
                           "ok": [True] * 2, "two": [1.0] * 2, "words": [1.0] * 2}  # fmt: skip
        assert rounds.label.tolist() == [1, 0]
        assert rounds.bit.tolist() == [1, 0]
        assert rounds.greedy.tolist() == [-1, 0]  # the likeliest by p, in the order of a, if there is one
        assert tags == ["e1", "e1"]

    @pytest.mark.parametrize(("to", "name"), [("dsjson", "b.dsjson"), ("obp", "b.npz"), ("parquet", "b.parquet")])
    def test_events_without_p_have_no_greedy_label(self, tmp_path: Path, to: str, name: str) -> None:
        other = EVENT | {"_label_cost": 0, "_label_Action": 1, "p": [0.9, 0.1]}
        plain = {key: value for key, value in EVENT.items() if key != "p"}
        log = self.read(tmp_path, *[other] * 3000, plain, other)
        assert whole(log)[1].greedy.tolist() == [1] * 3000 + [-1, 1]
        assert audit(log).verdict == "not identified"
        with contextlib.nullcontext() if to == "dsjson" else pytest.warns(UserWarning, match="the features of actions"):
            debias(log, tmp_path / name, to=to, rates=(0, 0))
        assert whole(Log(tmp_path / name))[1].greedy.tolist() == [1] * 3000 + [-1, 1]

    def test_what_vowpal_wabbit_passes_over_is_passed_over(self, tmp_path: Path) -> None:
        plain = {"u": {"age": 3}, "_multi": [{"a": {"k": "x"}}, {"a": {"k": "y"}}]}
        event = {"_labelIndex": 1, **EVENT, "c": plain}  # it wants the index before the rest
        odd = ["# made on Monday", '{"RewardValue":1.0,"EventId":"x"}', '{"EventId":"x","ActionTaken":true}']
        (tmp_path / "a.dsjson").write_text("\n".join([json.dumps(event), *odd, json.dumps(event)]))
        assert Log(tmp_path / "a.dsjson").n_rounds == 2
        model = vowpalwabbit.Workspace(f"--cb_adf --dsjson -d {tmp_path / 'a.dsjson'} --quiet")
        assert model.get_weighted_examples() == 2
        model.finish()

    def test_a_number_of_the_row_is_no_feature(self, tmp_path: Path) -> None:
        rows = [EVENT | {"_label_cost": -(i % 2), "c": {"n": i, "_multi": EVENT["c"]["_multi"]}} for i in range(150)]
        with pytest.raises(InputError, match="every value of 'n' is different, as the number of a row is"):
            self.read(tmp_path, *rows)
        assert Log(tmp_path / "a.json", kinds={"n": "number"}).features == ["n"]

    def test_positions_as_labels(self, tmp_path: Path) -> None:
        first = EVENT | {"p": [0.9, 0.1], "_margin": 1.5}
        self.read(tmp_path, first, first | {"_label_cost": 0, "_label_Action": 1})
        log = Log(tmp_path / "a.json", label="position")
        assert log.roles == {"label": "position", "bit": "bit", "probability": "probability"}
        assert not set(log.features) & set(OWN)
        assert whole(log)[1].label.tolist() == [1, 0]
        with pytest.raises(InputError, match="column 'greedy' cannot have two roles"):
            Log(tmp_path / "a.json", label="greedy")

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"_label_cost": None}, "line 2 has cost None"),
            ({"_label_cost": "NaN"}, "line 2 has cost 'NaN'"),
            ({"_label_probability": 2}, "line 2 has probability 2;"),
            ({"_label_probability": None, "p": None}, "line 2 has probability None"),
            ({"_label_Action": 3}, "line 2 has _label_Action 3; a whole number from 1 to 2"),
            ({"_label_Action": None}, "line 2 has _label_Action None"),
            ({"p": [0.5]}, "line 2 has p .0.5. for the actions"),
            ({"c": 3}, "line 2: c is 3; an object"),
            ({"c": {"u": 1}}, "line 2 has no list of actions _multi"),
            ({"c": {"u": {"x": [None]}, "_multi": [{"a": "x"}, {"a": "y"}]}}, "line 2 has 'u.x' with None"),
            ({"c": {"_multi": [{"a": "x"}, {"a": "x"}]}}, "line 2 has action 'x' twice"),
            ({"c": {"_multi": [{"a": "x"}, {}]}}, "line 2 describes an action by nothing"),
            ({"_outcomes": []}, "line 2 has slots"),
        ],
    )
    def test_bad_events_are_refused(self, tmp_path: Path, change: Any, words: str) -> None:
        with pytest.raises(InputError, match=words):
            self.read(tmp_path, EVENT, EVENT | change)

    @pytest.mark.parametrize(("line", "words"), [("{", "line 2 is not JSON"), ("[]", "line 2: the line is "),
                                                 ('{"c": NaN}', "line 2 holds NaN"), ("[" * 99999, "line 2 is"),
                                                 ('{"c": "\\ud800"}', "line 2 holds half of a character")],
                             ids=["brace", "list", "nan", "deep", "half"])  # fmt: skip
    def test_what_is_no_event(self, tmp_path: Path, line: str, words: str) -> None:
        (tmp_path / "a.dsjson").write_text(json.dumps(EVENT) + "\n" + line)
        with pytest.raises(InputError, match=words):
            Log(tmp_path / "a.dsjson")
