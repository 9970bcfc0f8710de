"""Records in, named labels out; logs, and what other policies would have earned."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from conftest import FAMILIES, LEARNERS
from fliptron import RCNBF, Fliptron, InputError, Learner, LeastMeanSquares, RidgeRegression, simulate
from fliptron.cli.group import commands as main
from fliptron.datasets.dataset import Dataset
from fliptron.datasets.shop import OFFERS, shop
from fliptron.encoding.schema import Schema
from fliptron.evaluation import LOGGED, evaluate
from fliptron.learning import learn_log
from fliptron.logs.log import Log
from fliptron.logs.tables import write_table
from fliptron.policy import Policy

RECORDS = [{"age": 31, "city": "Rome"}, {"age": 18, "city": "Oslo"}, {"age": None, "city": "Bern"}]


def record(random: Any) -> Any:
    return {"age": float(random.integers(18, 80)), "city": str(random.choice(["Rome", "Oslo", "Bern"]))}


def wanted(record: Any) -> str:
    return "hats" if record["city"] == "Rome" else "shoes" if record["age"] > 50 else "bags"


def policy(**settings: Any) -> Policy:
    return Policy(["bags", "hats", "shoes"], RECORDS, **settings)


def played(made: Policy, rounds: Any, seed: Any = 0) -> list[bool]:
    random, right = np.random.default_rng(seed), []
    for _ in range(rounds):
        shown = record(random)
        choice = made.decide(shown)
        right.append(choice.label == wanted(shown))
        made.learn(choice, int(right[-1] != (random.random() < 0.2)))
    return right


class TestPolicy:
    def test_it_learns_what_people_want(self) -> None:
        made = policy(seed=1)
        assert np.mean(played(made, 1500)[1000:]) > 0.9
        assert made.predict([{"city": "Rome"}]) == ["hats"]
        assert repr(made) == "Policy(Fliptron: 2 columns → 'bags', 'hats', 'shoes')"

    def test_saved_and_loaded_it_goes_on(self, tmp_path: Path) -> None:
        one = policy(seed=1)
        played(one, 300)
        one.save(tmp_path / "policy.npz")
        two = Policy.load(tmp_path / "policy.npz")
        assert played(one, 100, seed=5) == played(two, 100, seed=5)
        assert Learner.load(tmp_path / "policy.npz").n_classes == 3

    def test_late_bits_are_learnt_by_what_was_decided_on(self) -> None:
        one, two, random = policy(seed=1), policy(seed=1), np.random.default_rng(0)
        choices = [(one.decide(each), two.decide(each)) for each in (record(random) for _ in range(200))]
        for at, (first, _) in enumerate(choices):
            one.learn(first, at % 2)
        for at, (_, second) in reversed(list(enumerate(choices))):
            two.learn(second, at % 2)
        assert one.learner.state.counts[5] == two.learner.state.counts[5] == 200

    def test_a_label_is_added(self, tmp_path: Path) -> None:
        made = policy(seed=1)
        played(made, 500)
        before = made.predict(RECORDS)
        made.add_label("socks")
        assert made.labels[-1] == "socks"
        assert made.predict(RECORDS) == before
        assert "socks" in {made.decide(record(np.random.default_rng(i))).label for i in range(20)}
        with pytest.raises(InputError, match="two or more different"):
            made.add_label("hats")
        made.save(tmp_path / "more.npz")
        assert Policy.load(tmp_path / "more.npz").labels == made.labels

    def test_eligible_labels_and_truths_have_names(self) -> None:
        made = policy(seed=1)
        choice = made.decide(RECORDS[0], eligible=["shoes"])
        assert choice.label == "shoes"
        made.learn(choice, 0, truth="hats")
        with pytest.raises(InputError, match="'wigs' is not a label of this policy; 'bags', 'hats', 'shoes' are"):
            made.decide(RECORDS[0], eligible=["wigs"])

    @pytest.mark.parametrize("kind", [Fliptron, RidgeRegression])
    def test_a_choice_knows_which_labels_were_eligible(self, kind: Any) -> None:
        made, alone = (policy(learner=kind, seed=1) for _ in range(2))
        for t in range(60):
            choice = made.decide(RECORDS[0], eligible=["hats", "shoes"])
            made.learn(choice, t % 2)
            x = alone.encoder.encode(RECORDS[0])
            decision = alone.learner.decide(x, numbers := [alone.number("hats"), alone.number("shoes")])
            more = {"eligible": numbers} if kind is Fliptron else {}
            alone.learner.learn(x, decision, t % 2, **more)
        for name, array in alone.learner._arrays().items():
            assert np.array_equal(made.learner._arrays()[name], array, equal_nan=True), name

    @pytest.mark.parametrize("odd", [None, 3, ("hats", "hats", 0.5), "abcdefg", "hats"])
    def test_what_is_no_choice_is_refused(self, odd: Any) -> None:
        with pytest.raises(InputError, match="is no choice; what `decide` returned is expected"):
            policy(seed=1).learn(odd, 1)

    @pytest.mark.parametrize(
        ("labels", "words"),
        [
            (["a"], "two or more"),
            (["a", "a"], "two or more"),
            ("ab", "a list of them"),
            ([None, "a"], "cannot be a label"),
        ],
    )
    def test_labels_that_are_none(self, labels: Any, words: Any) -> None:
        with pytest.raises(InputError, match=words):
            Policy(labels, RECORDS)

    def test_other_learners_and_wrong_files(self, tmp_path: Path) -> None:
        made = policy(learner=RidgeRegression, gamma=0.1)
        with pytest.raises(InputError, match="does not estimate the noise"):
            made.estimate()
        with pytest.raises(InputError, match="cannot be built"):
            policy(learner=RidgeRegression, unheard_of=1)
        Fliptron(n_classes=2, n_features=2).save(tmp_path / "learner.npz")
        with pytest.raises(InputError, match="without labels or schema; a policy is expected"):
            Policy.load(tmp_path / "learner.npz")

    def test_it_can_be_simulated(self) -> None:
        made, random = policy(seed=1), np.random.default_rng(0)
        records = [record(random) for _ in range(500)]
        data = Dataset.of_records(records, [wanted(each) for each in records], schema=made.encoder.schema)
        trace = simulate(made, data, rates=(0.1, 0.1), rounds=3000)
        assert trace.error < 0.3
        assert made.learner.rounds == 3000
        with pytest.raises(InputError, match="does not hold records of the policy's columns"):
            simulate(made, Dataset.of([[1.0], [2.0]], [0, 1]))


@pytest.mark.parametrize("name", FAMILIES)
def test_a_label_added_at_the_start_is_as_if_it_had_been_there(name: Any) -> None:
    three, four = (LEARNERS[name](n_classes=K, n_features=3, seed=1) for K in (3, 4))
    if not three.grows:
        with pytest.raises(InputError, match="cannot take a new label"):
            three.add_label()
        return
    three.add_label()
    random = np.random.default_rng(0)
    for t in range(60):
        x = random.normal(size=3)
        decision = three.decide(x)
        assert decision == four.decide(x)
        for learner in (three, four):
            learner.learn(x, decision, t % 2)
    np.testing.assert_array_equal(three.weights, four.weights)


@pytest.fixture(scope="module")
def made() -> Any:
    return shop(20_000, rates=(0.1, 0.3), seed=3)


@pytest.fixture(scope="module")
def log(made: Any, tmp_path_factory: Any) -> Path:
    path = tmp_path_factory.mktemp("shop") / "shop.parquet"
    write_table(path, made.log)
    return Path(path)


class TestLog:
    def test_columns_are_guessed_and_shown(self, log: Path) -> None:
        opened = Log(log)
        assert opened.roles == {"label": "shown", "bit": "clicked", "probability": "propensity"}
        assert opened.labels == OFFERS
        assert opened.features == ["time", "age", "income", "visits", "city", "member"]
        assert "age: number, sometimes missing" in opened.describe()

    @pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.jsonl", "parts"])
    def test_any_form_of_file_is_the_same_log(self, log: Path, tmp_path: Path, name: Any) -> None:
        import duckdb

        first = next(Log(log).batches())
        table = duckdb.sql(f"SELECT * FROM '{log}' LIMIT 3000").df()
        if name == "parts":
            (tmp_path / name).mkdir()
            write_table(tmp_path / name / "1.parquet", {n: table[n].to_numpy()[:1000] for n in table})
            write_table(tmp_path / name / "2.parquet", {n: table[n].to_numpy()[1000:] for n in table})
        elif name == "a.jsonl":
            table.to_json(tmp_path / name, orient="records", lines=True, date_format="iso")
        else:
            table.to_csv(tmp_path / name, index=False)
        batch = next(Log(tmp_path / name).batches())
        assert len(batch.rounds) == 3000
        for column in ("label", "bit", "probability"):
            np.testing.assert_allclose(getattr(batch.rounds, column), getattr(first.rounds, column)[:3000])

    def test_labels_bits_and_order_as_people_write_them(self, tmp_path: Path) -> None:
        path = tmp_path / "log.csv"
        path.write_text("at,arm,reward,p,age\n2,b,no,0.5,30\n1,a,click,0.5,40\n3,a,FALSE,0.5,50\n")
        rounds = next(Log(path, time="at").batches()).rounds
        assert rounds.label.tolist() == [0, 1, 0]
        assert rounds.bit.tolist() == [1, 0, 0]
        uniform = Log(path, probability="uniform", labels=["a", "b", "c", "d"])
        assert next(uniform.batches()).rounds.probability.tolist() == [0.25] * 3

    def test_what_is_refused(self, log: Path, tmp_path: Path) -> None:
        for settings, words in (
            ({"label": "offer"}, "no column 'offer', which was to be its label"),
            ({"features": ["clicked"]}, "column 'clicked' cannot be a feature"),
            ({"features": ["agee"]}, "no column 'agee'"),
            ({"time": "when"}, "no column 'when' to order it by"),
            ({"labels": ["bags", "hats"]}, "column 'shown' holds 's.*' in row .; one of 'bags', 'hats' is expected"),
            ({"probability": 2.0}, "probability is 2"),
        ):
            with pytest.raises(InputError, match=words):
                Log(log, **settings)
        with pytest.raises(InputError, match="does not exist"):
            Log(tmp_path / "no.csv")


class TestEvaluation:
    def test_policies_are_judged_by_the_truth(self, made: Any, log: Path) -> None:
        opened = Log(log)
        learnt = learn_log(opened, rounds=14_000)
        plain = learn_log(opened, RidgeRegression, rounds=14_000)
        found = evaluate(opened, {"plain": plain, "ours": learnt}, skip=14_000)
        held = {name: values[14_000:] for name, values in made.log.items()}
        truth = {
            name: np.mean(np.array(each.predict(held)) == made.wanted[14_000:])
            for name, each in (("plain", plain), ("ours", learnt))
        }
        truth[LOGGED] = np.mean(held["shown"] == made.wanted[14_000:])
        for name, value in found.values.items():
            for _, (low, high) in value.accuracy.values():
                assert low <= truth[name] <= high
        better, paired = found.differences
        assert better.is_real
        assert "better than the log's own" in str(better)
        assert paired.interval[0] <= truth["ours"] - truth["plain"] <= paired.interval[1]
        assert found.to_frame().accuracy_dr.iloc[2] == found.values["ours"].accuracy["dr"][0]
        assert len(found.plot().axes) == 1
        assert "true accuracy" in found._repr_html_()
        apart = sum(np.diff(found.values[name].accuracy["dr"][1])[0] for name in ("plain", "ours"))
        assert np.diff(paired.interval)[0] < 0.5 * apart

    def test_what_cannot_be_known_is_said(self, log: Path) -> None:
        opened = Log(log, probability="uniform")
        opened._fixed = None
        with pytest.raises(InputError, match="does not say with which probability"):
            evaluate(opened, {})
        with pytest.raises(InputError, match="RCNBF needs the probability"):
            learn_log(opened, RCNBF, rates=(0.1, 0.3))
        with pytest.raises(InputError, match="all 20,000 rounds are left out"):
            evaluate(Log(log), {}, skip=20_000)

    @pytest.mark.parametrize("gamma", [0.1, 1.0])
    def test_the_noise_of_another_policys_log_is_found(self, digits: Any, gamma: Any) -> None:
        """A label that the learner itself would not have played is not wrong for that."""
        other = LeastMeanSquares(n_classes=10, n_features=64, gamma=gamma, seed=2)
        log = simulate(other, digits, rates=(0.05, 0.3), rounds=40_000, seed=2, log=True).log
        learner = Fliptron(n_classes=10, n_features=64)
        learner.replay(digits.X[log.row], log)
        found = learner.estimate()
        for name, truth in (("rho0", 0.05), ("rho1", 0.3), ("accuracy", np.mean(log.label == digits.y[log.row]))):
            low, high = found.intervals[name]
            assert low <= truth <= high
            assert high - low < 0.2 or name != "rho0"

    def test_a_policy_goes_on_where_it_stopped(self, log: Path) -> None:
        opened = Log(log)
        whole = learn_log(opened, seed=1)
        half = learn_log(opened, learn_log(opened, rounds=9000, seed=1))
        np.testing.assert_allclose(half.learner.weights, whole.learner.weights)
        assert half.learnt == {opened.fingerprint: 20_000}


class TestCommands:
    def test_from_log_to_policy_in_three_commands(self, tmp_path: Path, monkeypatch: Any) -> None:
        monkeypatch.chdir(tmp_path)
        run = CliRunner().invoke
        assert run(main, ["demo", "shop.csv", "--rounds", "20000", "--truth", "truth.csv"]).exit_code == 0
        found = json.loads(run(main, ["estimate", "shop.csv", "--json"]).stdout)
        assert found["intervals"]["rho0"][0] <= 0.02 <= found["intervals"]["rho0"][1]
        learnt = run(main, ["learn", "shop.csv", "--holdout", "0.2"])
        assert learnt.exit_code == 0
        assert learnt.stdout.endswith("Policy: policy.npz\n")
        told = run(main, ["evaluate", "shop.csv", "--policy", "policy.npz"])
        assert told.exit_code == 0
        assert "the log's own" in told.stdout
        told = json.loads(run(main, ["evaluate", "shop.csv", "--policy", "policy.npz", "--json"]).stdout)
        assert set(told) == {"rates", "policies", "differences"}
        answer = run(main, ["decide", "policy.npz"], input='{"age": 31, "city": "Rome"}\n\n{"city": "Mars"}\n')
        lines = [json.loads(line) for line in answer.stdout.splitlines()]
        assert {line["label"] for line in lines} <= set(OFFERS)
        assert len(lines) == 2
        again = run(main, ["learn", "shop.csv", "--holdout", "0.2"])
        assert again.exit_code == 2
        assert "has learnt from all 16,000 rounds already" in again.stderr

    @pytest.mark.parametrize(
        ("command", "given", "words"),
        [
            (["decide", "no.npz"], "", "no.npz does not exist"),
            (["evaluate", "log.csv", "--policy", "model"], "", "no column 'model' of a policy's choices"),
            (["learn", "log.csv", "--save", "policy.pkl"], "", "ends in .npz"),
            (["learn", "log.csv", "--kind", "age"], "", "COLUMN=KIND is expected"),
            (["learn", "log.csv", "--label", "offer"], "", "no column 'offer'"),
            (["run", "--dataset", "log.csv"], "", "this is a log of rounds"),
        ],
    )  # fmt: skip
    def test_refusals(self, tmp_path: Path, monkeypatch: Any, command: Any, given: Any, words: Any) -> None:
        monkeypatch.chdir(tmp_path)
        Path("log.csv").write_text("age,label,probability,click\n30,a,0.5,1\n40,b,0.5,0\n")
        result = CliRunner().invoke(main, command, input=given)
        assert result.exit_code == 2
        assert words in result.stderr
        assert not Path("policy.npz").exists()

    def test_run_keeps_its_best_learner(self, tmp_path: Path, monkeypatch: Any) -> None:
        monkeypatch.chdir(tmp_path)
        random = np.random.default_rng(0)
        lines = [f"{age},{city},{'old' if age > 40 else city}" for age, city in
                 zip(random.integers(18, 80, 200), random.choice(["Rome", "Oslo"], 200), strict=True)]  # fmt: skip
        Path("table.csv").write_text("age,city,segment\n" + "\n".join(lines))
        options = ["--label", "segment", "--rounds", "2000", "--seeds", "2", "--save", "best.npz"]
        chosen = ["--learner", "Fliptron", "--learner", "Banditron", "--learner", "Perceptron"]
        result = CliRunner().invoke(main, ["run", "--dataset", "table.csv", *options, *chosen])
        assert result.exit_code == 0
        assert result.stdout.endswith("Saved:   best.npz (Fliptron)\n")
        assert Policy.load("best.npz").predict([{"age": 70, "city": "Oslo"}]) == ["old"]

    def test_a_bad_line_is_named(self, tmp_path: Path) -> None:
        made = policy(seed=1)
        made.save(tmp_path / "policy.npz")
        for line, words in (
            ("nonsense", "line 2 is not JSON"),
            ("[1]", "line 2 is a list"),
            ('{"age": "x"}', "line 2: "),
        ):
            result = CliRunner().invoke(main, ["decide", str(tmp_path / "policy.npz")], input=f'{{"age": 3}}\n{line}\n')
            assert result.exit_code == 2
            assert words in result.stderr
            assert len(result.stdout.splitlines()) == 1


def test_a_schema_that_is_none() -> None:
    for bad in (None, [], [{"name": "a"}], [{"name": "a", "kind": "odd", "values": [], "gaps": False}]):
        with pytest.raises(InputError):
            Schema.plain(bad)


def test_a_table_without_any_column_of_the_policy_is_refused() -> None:
    policy = Policy(["a", "b"], [{"n": 1.0}, {"n": 2.0}], RidgeRegression, gamma=0.1)
    assert len(policy.predict([{}, {"n": 1.0}])) == 2
    for ask in (policy.predict, policy.scores):
        with pytest.raises(InputError, match="decides by 'n', but the table has 'N'; one of them is expected"):
            ask([{"N": 1.0}])
    with pytest.raises(InputError, match="decides by 'n', but the record has 'N', '3'; one of them is expected"):
        policy.decide({"N": 1.0, "3": 0.0})
    assert policy.learner.rounds == 0
    assert not policy.encoder.moments.any()
    for known in ({}, {"n": 1.0, "N": 1.0}):
        assert policy.decide(known).label in ("a", "b")
