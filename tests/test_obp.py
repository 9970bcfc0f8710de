"""Open Bandit Pipeline's `bandit_feedback`: read and written, as a dict and in a file."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from fliptron import InputError, Log, Rounds, audit, evaluate, export_log
from fliptron.cli.group import commands as main
from fliptron.datasets.shop import shop
from fliptron.logs.events import OWN
from fliptron.logs.export import to_feedback
from fliptron.logs.tables import write_table

FEATURES = ["age", "income", "visits", "city", "member"]


def feedback(n: int = 400, seed: int = 0) -> dict[str, Any]:
    """As OBP's synthetic data sets make it: pi_b and expected rewards are in it too."""
    random = np.random.default_rng(seed)
    context = random.standard_normal((n, 3))
    chances = np.exp(context)
    chances /= chances.sum(axis=1, keepdims=True)
    action = (chances.cumsum(axis=1) > random.random((n, 1))).argmax(axis=1)
    reward = (random.random(n) < np.where(action == context.argmax(axis=1), 0.7, 0.2)).astype(int)
    return {
        "n_rounds": n, "n_actions": 3, "context": context, "action_context": np.eye(3), "action": action,
        "position": None, "reward": reward, "expected_reward": np.zeros((n, 3)), "pi_b": chances[:, :, None],
        "pscore": chances[np.arange(n), action],
    }  # fmt: skip


def rounds_of(log: Log) -> Rounds:
    return Rounds.join([batch.rounds for batch in log.batches()])


def test_a_dict_becomes_a_log(tmp_path: Path) -> None:
    given = feedback()
    log = Log(given)
    rounds = rounds_of(log)
    assert log.labels == (0, 1, 2)
    assert log.features == ["x0", "x1", "x2"]
    np.testing.assert_array_equal(rounds.label, given["action"])
    np.testing.assert_array_equal(rounds.bit, given["reward"])
    np.testing.assert_array_equal(rounds.probability, given["pscore"])
    np.testing.assert_array_equal(rounds.greedy, given["context"].argmax(axis=1))
    np.savez(tmp_path / "a.npz", **{name: each for name, each in given.items() if each is not None})
    again = rounds_of(Log(tmp_path / "a.npz"))
    for name, column in rounds.columns().items():
        np.testing.assert_array_equal(column, again.columns()[name])


def test_where_all_are_equally_likely_none_is_known_best() -> None:
    """An audit then goes by what its own learner finds, as it does without `pi_b`."""
    given = feedback(20_000)
    action = np.random.default_rng(1).integers(3, size=20_000)
    right = action == given["context"].argmax(axis=1)
    given |= {"action": action, "pscore": np.full(20_000, 1 / 3), "pi_b": None}
    given["reward"] = (np.random.default_rng(2).random(20_000) < np.where(right, 0.7, 0.2)).astype(int)
    log = Log(given | {"pi_b": np.full((20_000, 3, 1), 1 / 3)})
    assert "greedy" not in log.roles
    assert audit(log) == audit(Log(given))
    assert audit(log).greedy_accuracy == pytest.approx(0.98, abs=0.03)
    greedy = rounds_of(Log(feedback(2) | {"pi_b": np.array([[0.5, 0.5, 0], [0.2, 0.3, 0.5]])[:, :, None]})).greedy
    assert greedy.tolist() == [-1, 2]


def test_what_a_dict_says_besides_stays_in_one_and_is_named_for_other_forms(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    given = feedback() | {"action_context": random.standard_normal((3, 5)), "own": "a word"}
    np.savez(tmp_path / "a.npz", **{key: each for key, each in given.items() if each is not None})
    for log in (Log(given), Log(tmp_path / "a.npz")):
        again = to_feedback(log)
        assert {*again} == {key for key, each in given.items() if each is not None}
        for key, each in again.items():
            np.testing.assert_array_equal(each, given[key])
        debiased = to_feedback(log, reward=lambda batch: 2.0 * batch.rounds.bit)
        np.testing.assert_array_equal(debiased["reward"], 2.0 * given["reward"])
        np.testing.assert_array_equal(debiased["pi_b"], given["pi_b"])
        export_log(log, tmp_path / "b.npz", to="obp")
        np.testing.assert_array_equal(np.load(tmp_path / "b.npz")["action_context"], given["action_context"])
        with pytest.warns(UserWarning, match="written as 'vw': action_context, expected_reward, pi_b and own$"):
            export_log(log, tmp_path / "b.vw")


def test_a_log_becomes_a_dict_and_a_log_again(tmp_path: Path) -> None:
    write_table(tmp_path / "shop.csv", shop(500).log)
    log = Log(tmp_path / "shop.csv", features=FEATURES)
    export_log(log, tmp_path / "a.npz", to="obp")
    again = Log(tmp_path / "a.npz")
    assert again.labels == log.labels
    assert again.schema == log.schema
    (first,), (second,) = log.batches(), again.batches()
    for name in FEATURES:
        np.testing.assert_array_equal(first.records.columns[name], second.records.columns[name])
    for name, column in first.rounds.columns().items():
        np.testing.assert_array_equal(column, second.rounds.columns()[name])
    made = to_feedback(log)
    assert made["context"].shape == (500, 2 + 2 + 5 + 2)  # age and its gaps, income, visits; cities; true and false
    assert np.isfinite(made["context"]).all()
    assert made["action_context"].shape == (4, 4)


@pytest.mark.parametrize("name", [name for name in OWN if name not in ("greedy", "margin")])
@pytest.mark.parametrize(("to", "file"), [("obp", "a.npz"), ("vw", "a.vw"), ("dsjson", "a.dsjson")])
def test_a_feature_may_be_called_as_one_of_our_columns(tmp_path: Path, name: str, to: str, file: str) -> None:
    random, n = np.random.default_rng(0), 60
    columns = {"played": random.integers(2, size=n), "came": random.integers(2, size=n), "p": np.full(n, 0.5)}
    features = {"x": random.normal(size=n), name: random.integers(2, size=n).astype(float)}
    write_table(tmp_path / "a.parquet", columns | features)
    log = Log(tmp_path / "a.parquet", label="played", bit="came", probability="p", features=["x", name])
    export_log(log, tmp_path / file, to=to)
    again = Log(tmp_path / file)
    assert again.features == ["x", f"context.{name}"]
    (first,), (second,) = log.batches(), again.batches()
    np.testing.assert_array_equal(first.records.columns[name], second.records.columns[f"context.{name}"])
    for role in ("label", "bit", "probability"):
        np.testing.assert_array_equal(first.rounds.columns()[role], second.rounds.columns()[role])


@pytest.mark.parametrize(("to", "file"), [("obp", "a.npz"), ("vw", "a.vw"), ("dsjson", "a.dsjson")])
def test_two_features_are_not_written_by_one_name(tmp_path: Path, to: str, file: str) -> None:
    (tmp_path / "a.csv").write_text("label,bit,probability,cost,context.cost\n1,1,0.5,3,4\n2,0,0.5,4,5\n")
    with pytest.raises(InputError, match=r"features 'cost' and 'context.cost' would be written by one name"):
        export_log(Log(tmp_path / "a.csv"), tmp_path / file, to=to)
    assert not (tmp_path / file).exists()


def test_a_column_of_very_many_words_is_left_out_and_named(tmp_path: Path) -> None:
    log = dict(shop(1500).log)
    write_table(tmp_path / "a.csv", log)
    export_log(Log(tmp_path / "a.csv"), tmp_path / "a.npz", to="obp")
    with np.load(tmp_path / "a.npz") as made:
        assert made["left_out"].tolist() == ["time"]
    assert Log(tmp_path / "a.npz").features == FEATURES
    assert "left_out" not in to_feedback(Log(tmp_path / "a.csv", features=FEATURES))


def test_values_are_what_the_formulas_of_obp_give() -> None:
    """Its IPW and SNIPW, by their definitions, of the policy that plays the first action."""
    given = feedback(2000)
    log = Log(given | {"context": np.column_stack([given["context"], np.zeros(2000)])}, others=["x3"])
    value = evaluate(log, {"first": "x3"}).values["first"].mean_bit
    weight = (given["action"] == 0) / given["pscore"]
    assert value["ips"] == pytest.approx((weight * given["reward"]).mean(), rel=1e-12)
    assert value["snips"] == pytest.approx((weight * given["reward"]).sum() / weight.sum(), rel=1e-12)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"pscore": None}, "has no 'pscore'"),
        ({"n_actions": 1}, "n_actions of the bandit_feedback is 1"),
        ({"n_rounds": 399}, r"action has shape \(400,\); \(399,\) is expected"),
        ({"action": np.full(400, 3)}, "action is 3 in round 0; a whole number from 0 to 2"),
        ({"action": np.full(400, 0.5)}, "action is 0.5 in round 0"),
        ({"action": ["a"] * 400}, "action holds something that is not a number"),
        ({"reward": np.r_[np.nan, np.ones(399)]}, "reward is nan in round 0"),
        (
            {"reward": np.arange(400)},
            "round 2 has reward 2 beside 0 and 1; a log has two rewards, the higher one for a",
        ),
        (
            {"reward": np.zeros(400)},
            r"all others have reward 0, which may be right \(beside −1\) or wrong \(beside 1\)",
        ),
        ({"pscore": np.r_[np.ones(399), 0.0]}, "round 399 has probability 0.0; a number above 0 and at most 1"),
        ({"pscore": np.full(400, 1.5)}, "round 0 has probability 1.5"),
        ({"context": np.zeros(400)}, r"context has shape \(400,\); 400 rows"),
        ({"context": np.full((400, 2), np.inf)}, "context holds an infinite number in round 0"),
        ({"position": np.arange(400) % 3}, "has positions above 0"),
        ({"pi_b": np.ones((400, 2, 1))}, r"pi_b has shape \(400, 2, 1\)"),
        ({"greedy": np.full(400, -2)}, "greedy is -2 in round 0; a whole number from -1 to 2"),
        ({"labels": ["a", "a", "b"]}, "labels has 3 names; 3, each once"),
    ],
)
def test_bad_feedback_is_refused(change: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        Log(feedback() | change)


def test_bad_files_are_refused_and_nothing_in_them_is_run(tmp_path: Path) -> None:
    (tmp_path / "a.npz").write_bytes(b"no arrays")
    np.savez(tmp_path / "b.npz", action=np.array([{"a": 1}], dtype=object))
    (tmp_path / "c.npz").write_bytes(pickle.dumps({"a": 1}))
    for name in "abc":
        result = CliRunner().invoke(main, ["estimate", str(tmp_path / f"{name}.npz"), "--out", str(tmp_path / "out")])
        assert result.exit_code == 2
        assert "cannot be read as arrays" in " ".join(result.stderr.split())
    with pytest.raises(InputError, match="a dict is a bandit_feedback"):
        Log(feedback(), format="vw")


def test_what_has_no_room_in_a_dict_is_refused(tmp_path: Path) -> None:
    told = {"label": [0, 1], "bit": [0, 1], "probability": [0.5, 0.5], "x": [1, 1], "a=b": [1.0, 2.0]}
    write_table(tmp_path / "a.parquet", {name: np.array(each) for name, each in told.items()})
    with pytest.raises(InputError, match="has a = in its name"):
        export_log(Log(tmp_path / "a.parquet"), tmp_path / "a.npz", to="obp")
    assert not (tmp_path / "a.npz").exists()
    with pytest.raises(InputError, match="is expected for a bandit_feedback"):
        export_log(Log(tmp_path / "a.parquet"), tmp_path / "a.obp", to="obp")


def test_a_cluster_cannot_read_a_dict() -> None:
    with pytest.raises(InputError, match="workers cannot read the bandit_feedback"):
        pickle.dumps(Log(feedback()))
