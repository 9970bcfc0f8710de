"""Our learners in coba's experiments: in processes, from restored files, taught bits and scored by the truth."""

from __future__ import annotations

import gzip
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import coba
import matplotlib as mpl
import numpy as np
import pytest
import scipy.sparse as sp
from coba.context import CobaContext, NullLogger

from conftest import LEARNERS, NOT_GROWING
from fliptron import (
    RCINE,
    RCNBF,
    Dataset,
    Fliptron,
    InputError,
    LeastMeanSquares,
    Perceptron,
    RidgeRegression,
    load,
    simulate,
)
from fliptron.adapters.coba import NoisyBanditLearner, NoisyEnvironment, NoisyEvaluator
from fliptron.adapters.growing import widen

SETTINGS = {"gamma": 0.3, "rates": (0.2, 0.4)}


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Coba writes exceptions to its log and goes on; here they are seen."""

    class Strict(NullLogger):  # type: ignore[misc]  # coba has no types
        def log(self, message: Any) -> Any:
            if isinstance(message, Exception):
                raise message
            return super().log(message)

    monkeypatch.setattr(CobaContext, "_logger", Strict(), raising=False)


def results(result: Any) -> Any:
    columns = ["environment_id", "learner_id", "index", "reward", "bit"]
    return result.interactions.to_pandas()[columns]


def test_an_experiment_in_processes_and_from_a_restored_file(tmp_path: Path) -> None:
    path = str(tmp_path / "results.log.gz")
    iris = load("iris")
    environments = [NoisyEnvironment(iris, rates=(0.1, 0.2), rounds=300, seed=seed) for seed in range(2)]
    learners = [
        NoisyBanditLearner(seed=1),
        NoisyBanditLearner(RCNBF, {"rates": (0.1, 0.2), "gamma": 0.3}),
        coba.LinUCBLearner(alpha=0.3),
        coba.RandomLearner(),
    ]
    experiment = coba.Experiment(environments, learners, NoisyEvaluator())
    alone = experiment.run(quiet=True)
    together = experiment.run(path, quiet=True, processes=2)
    written = gzip.decompress(Path(path).read_bytes())
    restored = experiment.run(path, quiet=True)
    assert gzip.decompress(Path(path).read_bytes()) == written
    assert len(alone.interactions) == 2 * 4 * 300
    for other in (together, restored):
        assert results(other).equals(results(alone))
    assert list(alone.learners["family"]) == ["Fliptron", "RCNBF", "LinUCB", "Random"]
    mpl.use("Agg")
    alone.plot_learners(out=str(tmp_path / "picture.png"))
    assert (tmp_path / "picture.png").stat().st_size > 5000


def test_an_experiment_plays_the_rounds_of_simulate() -> None:
    data = load("iris")
    learner = NoisyBanditLearner(fit_intercept=False, seed=2)
    environment = NoisyEnvironment(data, rates=(0.2, 0.4), rounds=600, seed=2, order="resample")
    rows = list(NoisyEvaluator().evaluate(environment, learner))
    trace = simulate(Fliptron(n_classes=3, n_features=4, seed=2), data, rates=(0.2, 0.4), rounds=600, seed=2, log=True)
    assert sum(row["reward"] for row in rows) == 600 - trace.mistakes[-1]
    assert [row["bit"] for row in rows] == trace.log.bit.tolist()
    assert learner.estimate().verdict


def test_bits_are_taught_and_the_truth_is_scored() -> None:
    told: list[float] = []

    class Guess(coba.Learner):  # type: ignore[misc]
        def predict(self, context: Any, actions: Any) -> Any:
            return actions[int(np.argmax(context))], 1.0

        def learn(self, context: Any, action: Any, reward: Any, probability: Any) -> None:
            told.append(reward)

    X = np.eye(3)[np.random.default_rng(0).integers(3, size=4000)]
    y = np.where(np.arange(4000) % 2, X.argmax(axis=1), (X.argmax(axis=1) + 1) % 3)
    environment = NoisyEnvironment(Dataset.of(X, y), rates=(0.2, 0.4))
    rows = list(NoisyEvaluator(record=["action", "probability"]).evaluate(environment, Guess()))
    assert [row["bit"] for row in rows] == told
    right = np.array([row["reward"] for row in rows]) == 1.0
    bits = np.array(told)
    assert right.mean() == 0.5
    assert bits[~right].mean() == pytest.approx(0.2, abs=0.03)
    assert bits[right].mean() == pytest.approx(0.6, abs=0.035)
    assert {*rows[0]} == {"action", "probability", "bit", "reward"}


def supervised(n: Any = 300) -> Any:
    X = np.random.default_rng(0).normal(size=(n, 3))
    return coba.Environments.from_supervised(X.tolist(), ["abc"[i] for i in X.argmax(axis=1)], label_type="c")[0]


class TestEnvironment:
    def test_it_can_be_read_twice_also_where_cobas_own_cannot(self) -> None:
        once = supervised()
        assert [len(list(once.read())) for _ in range(2)] == [300, 0]
        noisy = NoisyEnvironment(supervised(), rates=(0.2, 0.3), seed=1)
        first, second = (list(noisy.read()) for _ in range(2))
        assert first == second
        assert len(first) == 300
        bits = [each["rewards"](each["truth"]) for each in first]
        assert 0.6 < np.mean(bits) < 0.8

    def test_environments_of_cobas_are_learnt_in(self) -> None:
        environment = NoisyEnvironment(supervised(2000), rates=(0.05, 0.1))
        rows = list(NoisyEvaluator().evaluate(environment, NoisyBanditLearner(seed=1)))
        assert np.mean([row["reward"] for row in rows[1000:]]) > 0.8
        assert environment.params["rho1"] == 0.1

    def test_categories_become_one_hot(self) -> None:
        levels = ["x", "y"]
        source = [([1.0, 0.0], coba.Categorical("x", levels)), ([0.0, 1.0], coba.Categorical("y", levels))]
        environment = NoisyEnvironment(coba.Environments.from_supervised(*zip(*source, strict=True), label_type="c")[0])
        assert [each["truth"] for each in environment.read()] == [(1, 0), (0, 1)]

    def test_sparse_rows_are_dicts(self) -> None:
        data = Dataset.of(sp.csr_array(np.array([[0.0, 3.0, 4.0], [5.0, 0.0, 0.0]])), ["a", "b"])
        first, second = NoisyEnvironment(data, order="file").read()
        assert first["context"] == pytest.approx({1: 0.6, 2: 0.8})
        assert second["context"] == {0: 1.0}
        assert (first["truth"], second["truth"]) == ((1, 0), (0, 1))
        rows = list(NoisyEvaluator().evaluate(NoisyEnvironment(data, rounds=50), NoisyBanditLearner()))
        assert len(rows) == 50

    def test_refusals(self) -> None:
        with pytest.raises(InputError, match="the source is a list"):
            NoisyEnvironment([1, 2])
        with pytest.raises(InputError, match="rounds are told for a Dataset only"):
            NoisyEnvironment(supervised(), rounds=10)
        with pytest.raises(InputError, match="order is 'sorted'"):
            NoisyEnvironment(load("iris"), order="sorted")
        with pytest.raises(InputError, match="holds records"):
            NoisyEnvironment(Dataset.of_records([{"x": 1.0}, {"x": 2.0}], ["a", "b"]))
        amounts = coba.Environments.from_linear_synthetic(5, n_actions=3)[0]
        with pytest.raises(InputError, match="a single 1, and 0 for all other actions, is expected"):
            list(NoisyEnvironment(amounts).read())
        spent = supervised()
        list(spent.read())
        with pytest.raises(InputError, match="the source has no interactions"):
            list(NoisyEnvironment(spent).read())
        with pytest.raises(InputError, match="a NoisyEnvironment does"):
            list(NoisyEvaluator().evaluate(supervised(), coba.RandomLearner()))


class TestLearner:
    @pytest.mark.parametrize(
        "context", [None, 0.5, np.float32(1), np.True_, "word", (1.0, 2.0), ["a", 1.0], {"x": 1.0, "y": "b"}]
    )
    @pytest.mark.parametrize(
        "actions", [["a", "b"], [1, 2, 3], [(1, 0), (0, 1)], [[1, 0], [0, 1]], [{"f": 1}, {"f": 2}]]
    )
    def test_any_context_and_any_actions(self, context: Any, actions: Any) -> None:
        learner = NoisyBanditLearner(seed=1)
        for t in range(20):
            action, probability, more = learner.predict(context, actions)
            assert action in actions
            assert 0 < probability <= 1
            learner.learn(context, action, t % 2, probability, **more)

    @pytest.mark.parametrize(
        "make",
        [
            lambda: [{"a": [1]}, {"a": [2]}],
            lambda: [[[1, 2]], [[2, 3]]],
            lambda: [(1, [2]), (1, [3])],
            lambda: [np.array([1, 0]), np.array([0, 1])],
            lambda: [np.array(1), np.array(2)],
            lambda: [{1, 2}, {2, 3}],
            {"a": 1, "b": 2}.keys,
            lambda: iter("ab"),
        ],
    )
    def test_what_actions_are_made_of_is_their_name(self, make: Any) -> None:
        learner = NoisyBanditLearner(seed=1)
        for t in range(3):
            action, probability, more = learner.predict((1.0,), make())
            learner.learn((1.0,), action, t % 2, probability, **more)
        assert len(learner._growing.labels) == 2
        assert repr(action) in map(repr, make())

    def test_actions_may_change(self) -> None:
        learner = NoisyBanditLearner(seed=1)
        for t in range(60):
            actions = [["a"], ["a", "b"], ["c", "b"]][t % 3]
            action, probability, more = learner.predict((1.0,), actions)
            assert action in actions
            learner.learn((1.0,), action, 1, probability, **more)

    @pytest.mark.parametrize("name", NOT_GROWING)
    def test_learners_that_cannot_grow_have_all_actions_of_the_first_list(self, name: Any) -> None:
        kind, settings = LEARNERS[name].func, LEARNERS[name].keywords
        guest, actions, context = NoisyBanditLearner(kind, settings, seed=1), ["a", "b", "c"], (0.5, -1.0, 2.0)
        learner = kind(n_classes=3, n_features=4, seed=1, **settings)
        for t in range(60):
            action, probability, more = guest.predict(context, actions)
            decision = learner.decide(np.array([1.0, *context]))
            assert (actions.index(action), more["greedy"], probability) == decision
            guest.learn(context, action, t % 2, probability, **more)
            learner.learn(np.array([1.0, *context]), decision, t % 2)
        with pytest.raises(InputError, match="cannot take a new label"):
            guest.predict(context, [*actions, "d"])
        assert guest.predict(context, actions)[0] in actions

    def test_a_list_of_actions_that_its_owner_changes_is_another(self) -> None:
        learner, actions = NoisyBanditLearner(seed=1), [[1, 0], [0, 1]]
        learner.predict((1.0,), actions)
        actions[0][0] = 5
        for _ in range(30):
            learner.predict((1.0,), actions)
        assert learner._growing.labels == [(1, 0), (0, 1), (5, 0)]

    def test_lists_that_take_turns_are_looked_through_once(self) -> None:
        learner, lists = NoisyBanditLearner(seed=1), [["a", "b", "c"], ["c", "a"], ["b", "c"]]
        for t in range(30):
            action, probability, more = learner.predict((1.0,), lists[t % 3][:])
            assert action in lists[t % 3]
            assert more.get("eligible") == [None, [2, 0], [1, 2]][t % 3]
            learner.learn((1.0,), action, t % 2, probability, **more)
        learner.predict((1.0,), ["d", "a", "b", "c"])
        assert learner.predict((1.0,), lists[0])[2]["eligible"] == [0, 1, 2]  # no longer all

    @pytest.mark.parametrize("order", ["at once", "late", "mutated", "growing"])
    @pytest.mark.parametrize(
        ("kind", "settings"),
        [(Fliptron, {}), (RCNBF, {"rates": (0.2, 0.4)}), (RCINE, {}), (LeastMeanSquares, {"dtype": "float32"})],
    )
    def test_it_plays_and_learns_what_the_learner_would(self, kind: Any, settings: Any, order: Any) -> None:
        """Contexts may be the same object, be changed after a decision, and get their rewards late or never."""
        guest, actions = NoisyBanditLearner(kind, {"gamma": 0.3, **settings}, seed=1), [(1, 0), (0, 1)]
        learner = kind(n_classes=2, n_features=6, gamma=0.3, seed=1, **settings)
        random, waiting, context = np.random.default_rng(0), [], [0.0] * 5
        for t in range(300):
            context = context if order == "mutated" else [0.0] * 5
            context[:] = random.choice([-1.0, 0.0, 2.0], 5).tolist()
            told = tuple(context) if order == "late" else context
            x = np.array([1.0, *context])
            action, probability, more = guest.predict(told, actions)
            decision = learner.decide(x)
            assert (actions.index(action), more["greedy"], probability) == decision
            waiting.append(((told, action, t % 2, probability), more, (x, decision, t % 2)))
            if order == "mutated":
                context[0] = 7.0  # what was decided on is learnt from
            if order == "growing" and t == 200:
                guest.predict([1.0] * 9, actions)  # a wider example, whose reward never comes
                widen(learner, guest._growing.places.width)
                learner.decide(np.array([*[1.0] * 10, *[0.0] * (learner.n_features - 10)]))
            if order != "late" or t % 20 == 19:
                for theirs, more, ours in waiting[::-1]:
                    guest.learn(*theirs, **more)
                    learner.learn(np.append(ours[0], np.zeros(learner.n_features - 6)), *ours[1:])
                waiting.clear()
            if order == "growing" and t >= 200:
                break
        assert np.array_equal(guest._growing.learner.weights, learner.weights)

    @pytest.mark.parametrize("late", [False, True])
    def test_a_round_with_some_of_the_actions_is_learnt_as_one(self, late: bool) -> None:
        """Its right action may have been missing, so it must not count in the account of the noise."""
        guest, actions = NoisyBanditLearner(seed=3), ["a", "b", "c", "d"]
        guest.predict((0.0,) * 5, actions)
        learner = Fliptron(n_classes=4, n_features=6, seed=3)
        learner.decide(np.array([1.0, *[0.0] * 5]))
        waiting = []
        for t, context in enumerate(np.random.default_rng(0).standard_normal((300, 5)).tolist()):
            some = [0, 1 + t % 3] if t % 2 else None
            action, probability, more = guest.predict(context, [actions[i] for i in some] if some else actions)
            x = np.array([1.0, *context])
            decision = learner.decide(x, some)
            assert (actions.index(action), more["greedy"], probability) == decision
            assert more.get("eligible") == some
            waiting.append(((context, action, t % 2, probability), more, (x, decision, t % 2), some))
            if not late or t % 20 == 19:
                for theirs, more, ours, some in waiting:
                    guest.learn(*theirs, **more)
                    learner.learn(*ours, eligible=some)
                waiting.clear()
        for name, array in learner._arrays().items():
            assert np.array_equal(guest._growing.learner._arrays()[name], array, equal_nan=True), name

    def test_what_was_changed_and_is_another_round_is_read_anew(self) -> None:
        one, other = NoisyBanditLearner(RCNBF, SETTINGS), NoisyBanditLearner(RCNBF, SETTINGS)
        context = [1.0, 2.0]
        for learner in (one, other):
            learner.predict([3.0, 1.0], ["a", "b"])
            learner.predict(context, ["a", "b"])
        context[:] = [5.0, -1.0]
        one.learn(context, "b", 1, 0.25, greedy=0)  # from a log that hands over one list, again and again
        other.learn((5.0, -1.0), "b", 1, 0.25, greedy=0)
        assert np.array_equal(one._growing.learner.weights, other._growing.learner.weights)

    def test_threads_share_a_learner(self) -> None:
        guest, actions = NoisyBanditLearner(RidgeRegression, {"gamma": 0.5}), ["a", "b", "c"]
        guest.predict((1.0, 0.0, 0.0), actions)

        def play(place: int) -> None:
            context = tuple(np.eye(3)[place].tolist())
            for _ in range(400):
                action, probability, more = guest.predict(context, actions)
                guest.learn(context, action, int(actions.index(action) == place), probability, **more)

        before = sys.getswitchinterval()
        sys.setswitchinterval(1e-6)
        try:
            with ThreadPoolExecutor(3) as pool, guest._growing.learner.held():
                rounds = [pool.submit(play, place) for place in range(3)]
            for each in rounds:
                each.result()
        finally:
            sys.setswitchinterval(before)
        assert guest._growing.learner.rounds == 1201
        greedy = [guest.predict(tuple(row), actions)[2]["greedy"] for row in np.eye(3).tolist()]
        assert greedy == [0, 1, 2]

    def test_it_learns_from_logs_of_others(self) -> None:
        learner, random = NoisyBanditLearner(seed=1), np.random.default_rng(0)
        for _ in range(1500):
            truth, action = random.integers(3, size=2)
            learner.learn(tuple(np.eye(3)[truth].tolist()), int(action), int(action == truth), 1 / 3)
        assert [learner.predict(tuple(row), [0, 1, 2])[2]["greedy"] for row in np.eye(3).tolist()] == [
            learner._growing.number(r) for r in range(3)
        ]
        learner.learn((1.0, 0.0, 0.0), 0, 1, None)

    @pytest.mark.parametrize(
        ("kind", "settings", "some"),
        [
            (Fliptron, {}, False),
            (Fliptron, {}, True),
            (Fliptron, {"gamma": 0.0}, False),
            (RidgeRegression, {"gamma": 0.3}, False),
            (RidgeRegression, {"gamma": 0.0}, True),
        ],
    )
    def test_score_is_the_probability_of_what_is_predicted(self, kind: Any, settings: Any, some: bool) -> None:
        learner, random = NoisyBanditLearner(kind, settings, seed=1), np.random.default_rng(0)
        every = ["a", "b", "c", "d"]
        learner.predict((0.0, 0.0, 0.0), every)
        for t in range(250):
            context, actions = tuple(random.standard_normal(3).tolist()), every[t % 2 :] if some else every
            chances = [learner.score(context, actions, action) for action in every]
            action, probability, more = learner.predict(context, actions)
            assert chances[every.index(action)] == probability
            assert sum(chances) == pytest.approx(1.0, abs=1e-9)
            assert actions == every or chances[0] == 0.0
            learner.learn(context, action, int(action == every[int(np.argmax(context))]), probability, **more)

    def test_rejection_sampling_has_results(self) -> None:
        rounds = coba.Environments.from_linear_synthetic(400, n_actions=3, n_action_features=0, seed=1).binary()
        logged = rounds.logged(coba.RandomLearner())
        result = coba.Experiment(logged, NoisyBanditLearner(seed=1), evaluator=coba.RejectionCB()).run(quiet=True)
        assert len(result.interactions) > 20

    def test_actions_that_never_come_again_are_warned_of(self) -> None:
        learner = NoisyBanditLearner(seed=1)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for t in range(60):  # one of three is known, every other time
                learner.predict((1.0,), [t, t + 0.5, 0] if t % 2 else [(t,), (t, 0)])
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            for t in range(60):
                learner.predict((1.0,), [(t, 0.25), (t, 0.75)])
        assert ["what it is made of is not used" in str(each.message) for each in found] == [True]

    def test_refusals(self) -> None:
        with pytest.raises(InputError, match="there are no actions; at least one is expected"):
            NoisyBanditLearner().predict((1.0,), [])
        learner = NoisyBanditLearner(seed=1)
        action, probability, more = learner.predict((1.0,), ["a", "b"])
        with pytest.raises(InputError, match=r"feedback is 0\.3; 0 or 1 is expected"):
            learner.learn((1.0,), action, 0.3, probability, **more)
        with pytest.raises(InputError, match="learns from true labels"):
            NoisyBanditLearner(Perceptron)

    @pytest.mark.parametrize(
        ("call", "words"),
        [
            (({"b": 2.0}, "z", 0.5, 0.5), r"feedback is 0\.5; 0 or 1"),
            (((1.0, 2.0), "a", 0.5, 0.5), r"feedback is 0\.5; 0 or 1"),
            (({"b": 2.0}, "z", 1, 0.0), "probability is 0.0; a number of at least 1e-30 and at most 1"),
            (({"b": 2.0}, "z", 1, "abc"), "probability is 'abc'; a number of at least 1e-30 and at most 1"),
            (({"b": 2.0}, bytearray(b"z"), 1, 0.5), r"an action is bytearray\(b'z'\); a name, a number, or a list"),
            (({"b": [2.0]}, "z", 1, 0.5), "neither a number nor a word"),
            ((object(), "z", 1, 0.5), "neither a number nor a word"),
        ],
    )
    def test_nothing_stays_of_what_is_refused(self, call: Any, words: Any) -> None:
        learner = NoisyBanditLearner(seed=1)
        learner.predict((1.0,), ["a", "b"])
        growing = learner._growing
        with pytest.raises(InputError, match=words):
            learner.learn(*call)
        assert growing.labels == ["a", "b"]
        assert growing.places._places == {0: 1}
