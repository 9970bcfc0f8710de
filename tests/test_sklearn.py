"""scikit-learn's own suite on our classifier, and what it learns: the same as `simulate` and `replay`."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import textwrap
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fliptron import Banditron, Dataset, Fliptron, InputError, Perceptron, RidgeRegression, Rounds, simulate
from fliptron.adapters.sklearn import NoisyBanditClassifier


@pytest.fixture(scope="module")
def iris() -> Any:
    X, y = load_iris(return_X_y=True)
    return StandardScaler().fit_transform(X), np.array(["setosa", "versicolor", "virginica"])[y]


def test_every_check_of_scikit_learn_passes_and_none_is_skipped() -> None:
    """In a process of its own: one check runs only where SciPy was told of the array API before it was loaded."""
    code = """
        from sklearn.utils.estimator_checks import check_estimator
        from fliptron import RidgeRegression
        from fliptron.adapters.sklearn import NoisyBanditClassifier
        for learner in (None, RidgeRegression):
            found = check_estimator(NoisyBanditClassifier(learner), on_fail=None, on_skip=None)
            print(len(found), [each for each in found if each["status"] != "passed"])
    """
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code)],
        env={**os.environ, "SCIPY_ARRAY_API": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    lines = done.stdout.splitlines()
    assert len(lines) == 2, done.stderr
    for line in lines:
        count, _, left = line.partition(" ")
        assert int(count) >= 54
        assert left == "[]"


def test_fit_is_simulate_behind_the_same_channel(iris: Any) -> None:
    X, y = iris
    model = NoisyBanditClassifier(rates=(0.2, 0.4), rounds=5000, random_state=3).fit(X, y)
    random = np.random.RandomState(3)  # what scikit-learn makes of an integer
    learner = Fliptron(n_classes=3, n_features=5, seed=int(random.randint(2**31 - 1)))
    data = Dataset.of(np.hstack([X, np.ones((150, 1))]), y, unit_norm=False)
    trace = simulate(learner, data, rates=(0.2, 0.4), rounds=5000, seed=int(random.randint(2**31 - 1)), order="shuffle")
    assert np.array_equal(model.learner_.weights, learner.weights)
    assert model.trace_.error == trace.error
    assert model.score(X, y) > 0.9
    assert model.predict(X[:1])[0] == "setosa"


def test_sparse_rows_are_the_same_rows(iris: Any) -> None:
    X, y = iris
    kept = np.where(X > 0.2, X, 0.0)
    settings = {"form": "diagonal"}
    dense, sparse = (
        NoisyBanditClassifier(settings=settings, rounds=3000, random_state=1).fit(form, y)
        for form in (kept, sp.csr_matrix(kept))
    )
    assert np.allclose(dense.predict_proba(kept), sparse.predict_proba(sp.csc_array(kept)), atol=1e-6)
    played = sparse.decide(sp.csr_array(kept[:20]))
    assert set(played.action) <= {*y}


@pytest.mark.parametrize("K", [2, 3])
def test_scores_and_chances_agree_with_predictions(iris: Any, K: Any) -> None:
    X, y = iris[0][: 50 * K], iris[1][: 50 * K]
    model = NoisyBanditClassifier(rates=(0.1, 0.1), rounds=3000, random_state=1).fit(X, y)
    chances = model.predict_proba(X)
    assert chances.shape == (50 * K, K)
    assert np.allclose(chances.sum(axis=1), 1.0)
    assert (model.classes_[chances.argmax(axis=1)] == model.predict(X)).all()
    scores = model.decision_function(X)
    best = (scores > 0).astype(int) if K == 2 else scores.argmax(axis=1)
    assert (model.classes_[best] == model.predict(X)).all()


def test_it_is_at_home_in_pipelines_searches_and_notebooks(iris: Any) -> None:
    X, y = iris
    pipeline = make_pipeline(StandardScaler(), NoisyBanditClassifier(rates=(0.1, 0.2), rounds=2000, random_state=0))
    assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.7
    grid = {
        "noisybanditclassifier__learner": [Banditron, RidgeRegression],
        "noisybanditclassifier__settings": [{"gamma": 0.1}, {"gamma": 0.3}],
    }
    search = GridSearchCV(pipeline, grid, cv=3).fit(X, y)
    assert search.best_params_["noisybanditclassifier__learner"] is RidgeRegression
    assert "NoisyBanditClassifier" in search.best_estimator_._repr_html_()
    fresh = clone(search.best_estimator_)
    assert fresh[-1].settings == search.best_estimator_[-1].settings
    again = pickle.loads(pickle.dumps(search.best_estimator_))
    assert (again.predict(X) == search.predict(X)).all()


def logged(X: Any, y: Any, rates: Any, seed: Any) -> Any:
    """A log of uniform play: actions, bits."""
    random = np.random.default_rng(seed)
    action = random.choice(np.unique(y), len(y))
    flipped = random.random(len(y)) < np.where(action == y, rates[1], rates[0])
    return action, (action == y) ^ flipped


class TestLogs:
    def test_a_log_is_replayed_in_one_call_or_in_many(self) -> None:
        X, y = load_digits(return_X_y=True)
        action, bit = logged(X, y, (0.1, 0.2), 0)
        whole, parts = NoisyBanditClassifier(random_state=1), NoisyBanditClassifier(random_state=1)
        whole.partial_fit_bandit(X, action, bit, 0.1, classes=range(10))
        for at in np.array_split(np.arange(len(y)), 7):
            parts.partial_fit_bandit(X[at], action[at], bit[at], np.full(at.size, 0.1), classes=np.arange(10))
        assert np.array_equal(whole.learner_.weights, parts.learner_.weights)
        rounds = Rounds(label=action, greedy=np.full(len(y), -1), probability=np.full(len(y), 0.1), bit=bit)
        twin = Fliptron(n_classes=10, n_features=65)
        twin.replay(np.hstack([X, np.ones((len(y), 1))]), rounds)
        assert np.array_equal(whole.learner_.weights, twin.weights)

    def test_it_learns_from_what_it_played_itself(self, iris: Any) -> None:
        X, y = iris
        random = np.random.default_rng(1)
        model = NoisyBanditClassifier(random_state=1)
        action, bit = logged(X, y, (0.0, 0.1), 1)
        model.partial_fit_bandit(X, action, bit, 1 / 3, classes=["setosa", "versicolor", "virginica"])
        for _ in range(20):
            action, greedy, probability = model.decide(X)
            bit = (action == y) & (random.random(len(y)) < 0.9)
            model.partial_fit_bandit(X, action, bit, probability, greedy)
        assert model.score(X, y) > 0.85
        assert model.estimate().rates.rho1 < 0.5

    @pytest.mark.parametrize(
        ("changed", "words"),
        [
            ({"action": ["b", "z"]}, "action holds .*'z'.*; one of a, b, c is expected"),
            ({"action": ["a", None]}, "action holds None; one of a, b, c is expected"),
            ({"action": ["a", "tulip"]}, "action holds 'tulip'; one of"),
            ({"greedy": [1, 2]}, "greedy holds 1; one of"),
            ({"bit": [0, 2]}, "bit is 2 in round 1"),
            ({"bit": [0]}, "rounds; all must have the same"),
            ({"probability": [0.5, 0.0]}, "probability is 0 in round 1"),
            ({"X": [[1.0, 2.0]]}, "X has 1 rows, and there are 2 rounds"),
            ({"X": [[1.0], [2.0]]}, "X has 1 features"),
            ({"classes": ["a", "b"]}, "classes are"),
        ],
    )
    def test_a_log_that_is_wrong_is_refused_and_nothing_changes(self, changed: Any, words: Any) -> None:
        good = {"X": [[1.0, 2.0], [0.0, 1.0]], "action": ["a", "b"], "bit": [0, 1], "probability": 0.5}
        model = NoisyBanditClassifier(random_state=0).partial_fit_bandit(**good, classes=["a", "b", "c"])
        before = model.learner_.weights
        with pytest.raises(ValueError, match=words):
            model.partial_fit_bandit(**{**good, **changed})
        assert np.array_equal(model.learner_.weights, before)
        fresh = NoisyBanditClassifier(random_state=0)
        if changed.keys() & {"action", "greedy", "bit", "probability"}:
            with pytest.raises(ValueError, match=words):
                fresh.partial_fit_bandit(**{**good, **changed}, classes=["a", "b", "c"])
            with pytest.raises(NotFittedError):
                fresh.predict(good["X"])
        fresh.partial_fit_bandit(**good, classes=["a", "b"])
        assert fresh.classes_.tolist() == ["a", "b"]

    def test_what_is_refused_leaves_nothing_of_a_model(self, iris: Any) -> None:
        X, y = iris
        model = NoisyBanditClassifier(settings={"gama": 1.0})
        for _ in range(2):
            with pytest.raises(InputError, match="Fliptron cannot be built"):
                model.partial_fit_bandit(X, y, np.ones(len(y)), 1 / 3, classes=np.unique(y))
        model.set_params(settings=None, rounds=200).fit(X, y)
        before = model.predict(X)
        for wrong in (np.zeros(len(y)), np.full(len(y), 0.5)):
            with pytest.raises(ValueError, match=r"y has 1 class|Unknown label type"):
                model.fit(X[:, :3], wrong)
        assert np.array_equal(model.predict(X), before)

    @pytest.mark.parametrize("make", [set, list, tuple, iter, np.array])
    def test_classes_may_be_any_series(self, make: Any) -> None:
        told = make([1, 0, 2])
        model = NoisyBanditClassifier(random_state=0).partial_fit_bandit([[1.0]], [0], [1], 0.5, classes=told)
        assert model.classes_.tolist() == [0, 1, 2]

    def test_a_column_of_actions_is_named_by_its_shape(self) -> None:
        with pytest.raises(InputError, match=r"action has shape \(150, 1\); a single label for each round is expected"):
            NoisyBanditClassifier().partial_fit_bandit(
                np.ones((150, 1)), np.zeros((150, 1)), [1] * 150, 0.5, classes=[0, 1]
            )

    def test_the_first_call_needs_classes(self) -> None:
        with pytest.raises(InputError, match="the first call of partial_fit_bandit needs them"):
            NoisyBanditClassifier().partial_fit_bandit([[1.0]], [0], [1], 0.5)
        with pytest.raises(InputError, match="classes has 1 class; at least 2 are expected"):
            NoisyBanditClassifier().partial_fit_bandit([[1.0]], [0], [1], 0.5, classes=[0])
        for mixed, action in (([1, "a"], [1]), (np.array(["a", None], dtype=object), ["a"]), ([True, "a"], [True])):
            with pytest.raises(InputError, match=r"classes are \[.*\]; either numbers or words are expected, and not"):
                NoisyBanditClassifier().partial_fit_bandit([[1.0]], action, [1], 0.5, classes=mixed)
        for no_list in (3, "abc", {"a": 1}):
            with pytest.raises(InputError, match=r"classes is .*; a list of numbers or words is expected"):
                NoisyBanditClassifier().partial_fit_bandit([[1.0]], [0], [1], 0.5, classes=no_list)
        with pytest.raises(InputError, match=r"classes are \[0\.0, 1\.0, nan\]; numbers that are finite"):
            NoisyBanditClassifier().partial_fit_bandit([[1.0]], [0], [1], 0.5, classes=[0, 1, np.nan])
        with pytest.raises(InputError, match="learns from true labels"):
            NoisyBanditClassifier(Perceptron).partial_fit_bandit([[1.0]], [0], [1], 0.5, classes=[0, 1])


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"learner": "Fliptron"}, "learner is 'Fliptron'; one of our classes"),
        ({"settings": {"gama": 0.1}}, "Fliptron cannot be built .*gama"),
        ({"settings": [1]}, r"settings is \[1\]; names and values, such as \{'gamma': 0.1\}, are expected"),
        ({"settings": "abc"}, "settings is 'abc'; names and values"),
        ({"rates": (0.6, 0.6)}, "rho0 . rho1 is 1.2"),
        ({"rounds": 0}, "rounds is 0; a whole number of at least 1"),
    ],
)
def test_wrong_parameters_are_refused_by_fit(iris: Any, params: Any, words: Any) -> None:
    with pytest.raises(InputError, match=words):
        NoisyBanditClassifier(**params).fit(*iris)


def test_what_is_not_fitted_says_so() -> None:
    with pytest.raises(NotFittedError):
        NoisyBanditClassifier().estimate()
    with pytest.raises(NotFittedError):
        NoisyBanditClassifier().decide([[1.0]])
