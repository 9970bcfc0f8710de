"""Hostile numbers: what `decide` admits all others admit, and what is refused changes nothing."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from conftest import FAMILIES, LEARNERS
from fliptron import (
    BPA,
    EPABF,
    RCNBF,
    RDUE,
    SOBA,
    Banditron,
    Confidit,
    Dataset,
    Decision,
    Exploration,
    Fliptron,
    Gappletron,
    InputError,
    Learner,
    LeastMeanSquares,
    Perceptron,
    RidgeRegression,
    Rounds,
    simulate,
)
from fliptron.arrays import LONGEST
from fliptron.rounds import LEAST_PROBABILITY

K, D = 3, 2
SHORT: dict[str, Any] = {
    f"{kind.__name__}-float32": partial(kind, dtype="float32", **more)
    for kind, more in (
        (Perceptron, {}),
        (Banditron, {}),
        (RCNBF, {"rates": (0.2, 0.4)}),
        (BPA, {}),
        (EPABF, {}),
        (Gappletron, {"rates": (0.2, 0.4)}),
        (RDUE, {"rates": (0.2, 0.4), "estimator": "pseudo-inverse"}),
        (LeastMeanSquares, {}),
    )
}
SIZES = [
    0.0,
    5e-324,
    1e-308,
    1e-160,
    1e-40,
    1e-30,
    1e-9,
    0.3,
    1.0,
    7.0,
    1e4,
    9e8,
    1.1e9,
    1e18,
    9e29,
    1.1e30,
    1e38,
    3e38,
]
SIZES += [1e100, 1.2e154, 1e308, np.inf, np.nan]
CHANCES = [5e-324, 1e-300, 9e-31, 1e-30, 1e-12, 0.05, 0.5, 1.0, 1.0 + 1e-9, 2.0, 0.0, -0.5, np.nan, np.inf]


def known(learner: Any) -> Any:
    """Everything a learner keeps, scratch left out, and how many decisions it has made."""
    return {name: np.array(array) for name, array in learner._arrays().items()} | {"rounds": learner.rounds}


def unchanged(before: Any, after: Any) -> Any:
    return all(np.array_equal(before[name], after[name]) for name in before)


@pytest.mark.parametrize(
    ("name", "sparse"), [*((name, False) for name in [*LEARNERS, *SHORT]), *((name, True) for name in FAMILIES)]
)
def test_thousands_of_hostile_rounds(name: Any, sparse: Any, tmp_path: Path) -> None:
    """200 rounds for each learner and form, some 6,800 calls of `decide` and as many of `learn` in all."""
    learner = (LEARNERS | SHORT)[name](n_classes=K, n_features=D, seed=1)
    random = np.random.default_rng(sum(map(ord, name)))
    most, n_feedback = LONGEST[np.dtype(learner.dtype).itemsize], K if learner.full_information else 2
    for t in range(200):
        x = random.choice(SIZES, size=D) * random.choice([-1.0, 1.0], size=D)
        with np.errstate(over="ignore", invalid="ignore"):
            good = bool(np.linalg.norm(x / most) <= 1)
            given = sp.csr_array(x[None].astype(learner.dtype)) if sparse else x.astype(learner.dtype)
        before = known(learner)
        if good:
            decision = learner.decide(given)
            assert LEAST_PROBABILITY <= decision.probability <= 1
            assert learner.rounds == before["rounds"] + 1
            before["rounds"] += 1
        else:
            with pytest.raises(InputError):
                learner.decide(given)
            with pytest.raises(InputError):
                learner.predict(given if sparse else [given])
            decision = Decision(0, 0, 0.5)
        if random.random() < 0.5:
            decision = Decision(int(random.integers(-1, K + 1)), int(random.integers(K)), float(random.choice(CHANCES)))
        feedback = random.choice([0, 1, 1, 2, -1, 0.5])
        right = 0 <= decision.label < K and LEAST_PROBABILITY <= decision.probability <= 1
        right &= 0 <= feedback < n_feedback and feedback == int(feedback)
        assert unchanged(before, known(learner))
        if good and right:
            learner.learn(given, decision, feedback)
            assert all(np.isfinite(array).all() for array in known(learner).values()), (x, decision, feedback)
        else:
            with pytest.raises(InputError):
                learner.learn(given, decision, feedback)
            assert unchanged(before, known(learner))
        if t % 40 == 39:
            learner.save(tmp_path / "l.npz")
            again = Learner.load(tmp_path / "l.npz")
            assert unchanged(known(learner), known(again))
    longest: Any = np.full((1, D), 0.7 * most)
    if sparse:
        longest = sp.csr_array(longest)
    assert np.isfinite(learner.scores(longest)).all()
    assert learner.decide(longest[[0]] if sparse else longest[0]).probability > 0


@pytest.mark.parametrize("name", [*LEARNERS, *SHORT])
def test_the_worst_that_is_admitted_many_times_over(name: Any) -> None:
    """The longest examples with the least probability, 3,000 times: all that is kept is still a number."""
    learner = (LEARNERS | SHORT)[name](n_classes=K, n_features=D, seed=1)
    most = 0.7 * LONGEST[np.dtype(learner.dtype).itemsize]
    random = np.random.default_rng(0)
    for t in range(3000):
        x = most * random.choice([-1.0, 1.0, 1e-30, 1e-60], size=D)
        learner.learn(x, Decision(t % K, (t + 1) % K, LEAST_PROBABILITY if t % 2 else 1.0), int(random.integers(2)))
    assert all(np.isfinite(array).all() for array in known(learner).values())
    assert np.isfinite(learner.scores(np.full((1, D), most))).all()
    learner.decide(np.full(D, most))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: RidgeRegression(n_classes=3, n_features=2, regularization=5e-324), "regularization is 5e-324"),
        (lambda: RidgeRegression(n_classes=3, n_features=2, regularization=1e308), "regularization is 1e\\+308"),
        (lambda: Confidit(n_classes=3, n_features=2, alpha=1e308), "alpha is 1e\\+308"),
        (lambda: SOBA(n_classes=3, n_features=2, regularization=5e-324), "regularization is 5e-324"),
        (lambda: LeastMeanSquares(n_classes=3, n_features=2, step=1e308), "step is 1e\\+308"),
        (lambda: BPA(n_classes=3, n_features=2, aggressiveness=1e-320), "aggressiveness is 1e-320"),
        (lambda: BPA(n_classes=3, n_features=2, correct_margin=1e300), "correct_margin is 1e\\+300"),
        (lambda: Banditron(n_classes=3, n_features=2, gamma=1e-300), "gamma is 1e-300; 0, or numbers from 1e-12"),
        (lambda: Exploration(1e300, power=0.5), "gamma is {'scale': 1e\\+300"),
    ],
)
def test_settings_that_would_poison_are_refused(make: Any, words: Any) -> None:
    with pytest.raises(InputError, match=words):
        make()


@pytest.mark.parametrize("x", [[1e-160], [1.2e154], [1e100], [5e-324]])
def test_fliptron_of_one_feature_survives(x: Any) -> None:
    learner = Fliptron(n_classes=2, n_features=1)
    for t in range(20):
        try:
            learner.learn(x, learner.decide(x), t % 2)
        except InputError as refusal:
            assert "at most 1e+30" in str(refusal)  # noqa: PT017
    assert all(np.isfinite(array).all() for array in known(learner).values())


def test_a_lead_of_any_size_is_learnt_from() -> None:
    for lead in (200.0, 400.0, 1e4, 1e8):
        learner = Fliptron(n_classes=2, n_features=1)
        learner.state.W[:] = [[lead], [-lead]]
        for bit in (0, 1, 0, 0, 1):
            learner.learn([1.0], learner.decide([1.0]), bit)
        assert np.isfinite(learner.weights).all()


def test_a_probability_below_the_least_is_no_round_either() -> None:
    with pytest.raises(InputError, match="probability is 1e-31 in round 0; at least 1e-30 and at most 1"):
        Rounds.of(label=[0], greedy=[0], probability=[1e-31], bit=[1])


def test_a_row_too_long_for_float32_weights_is_refused_before_it_is_played() -> None:
    data = Dataset.of([[1e12, 1.0], [1.0, 2.0]], [0, 1], unit_norm=False)
    with pytest.raises(InputError, match=r"data has a row of length 1e\+12; at most 1e\+09 is allowed for float32"):
        simulate(Banditron(n_classes=2, n_features=2, dtype="float32"), data)
    simulate(Banditron(n_classes=2, n_features=2), data)


RAW: dict[str, Any] = {
    "timestamp": lambda random, n: np.column_stack([np.ones(n), 1e9 + 1e6 * random.normal(size=n)]),
    "large": lambda random, n: 1e7 + random.normal(size=(n, 4)) * [1.0, 10.0, 1e3, 1e5],
    "mixed": lambda random, n: random.normal(size=(n, 3)) * [1e-6, 1.0, 1e9] + [0.0, 100.0, 0.0],
}


class TestRawFeatures:
    """A constant and a timestamp, or features near 10⁷: least squares against one solved anew with 80-bit numbers."""

    @pytest.mark.parametrize("kind", [RidgeRegression, Confidit])
    @pytest.mark.parametrize("name", RAW)
    def test_predictions_stay_right(self, kind: Any, name: Any) -> None:
        random, n = np.random.default_rng(3), 6000
        X = RAW[name](random, n)
        standard = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12)
        bits = (standard.sum(axis=1) + 0.3 * random.normal(size=n) > 0).astype(int)
        learner = kind(n_classes=2, n_features=X.shape[1], regularization=0.1)
        for x, bit in zip(X, bits, strict=True):
            learner.learn(x, Decision(0, 0, 0.5), int(bit))
        targets = 2.0 * bits - 1.0 if kind is Confidit else bits
        wide = X.astype(np.longdouble)
        solution = solve(0.1 * np.eye(X.shape[1], dtype=np.longdouble) + wide.T @ wide, wide.T @ targets)
        expected = (wide @ solution).astype(float)
        np.testing.assert_allclose(learner.scores(X)[:, 0], expected, atol=2e-3)
        decision = learner.decide(X[0])
        assert 0 <= decision.label < 2


def solve(A: Any, b: Any) -> Any:
    """Gaussian elimination with pivots, in the precision of its arguments."""
    A, b = A.copy(), b.astype(A.dtype)
    for i in range(len(b)):
        pivot = i + int(np.argmax(np.abs(A[i:, i])))
        A[[i, pivot]], b[[i, pivot]] = A[[pivot, i]], b[[pivot, i]]
        for j in range(i + 1, len(b)):
            factor = A[j, i] / A[i, i]
            A[j, i:] -= factor * A[i, i:]
            b[j] -= factor * b[i]
    x = np.zeros_like(b)
    for i in range(len(b) - 1, -1, -1):
        x[i] = (b[i] - A[i, i + 1 :] @ x[i + 1 :]) / A[i, i]
    return x
