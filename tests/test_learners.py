"""Every learner against its textbook twin, its own loop, and the rules for all learners."""

from __future__ import annotations

import copy
import pickle
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import reference as ref
from conftest import FAMILIES, LEARNERS
from fliptron import (
    BPA,
    EPABF,
    RCNBF,
    SOBA,
    Banditron,
    Confidit,
    Dataset,
    Decision,
    Exploration,
    InputError,
    Learner,
    LeastMeanSquares,
    Perceptron,
    RidgeRegression,
    Rounds,
    checks,
    simulate,
)
from fliptron.checks import check_learner

TWINS: dict[str, Any] = {
    "Perceptron": ref.PerceptronTwin,
    "Banditron": ref.RcnbfTwin,
    "RCNBF": lambda K, d: ref.RcnbfTwin(K, d, rates=(0.2, 0.4)),
    "AveragedRCNBF": lambda K, d: ref.AveragedTwin(K, d, rates=(0.2, 0.4)),
    "Delaytron": lambda K, d: ref.RcnbfTwin(K, d, rates=(0.2, 0.4), step=0.5),
    "Delaytron-adaptive": ref.RcnbfTwin,
    "BPA": ref.BpaTwin,
    "BPA-I": lambda K, d: ref.BpaTwin(K, d, correct_margin=0.0, variant="PA-I", C=0.1),
    "BPA-II": lambda K, d: ref.BpaTwin(K, d, variant="PA-II", C=0.1),
    "EPABF": ref.EpabfTwin,
    "EPABF-I": lambda K, d: ref.EpabfTwin(K, d, most=0.1),
    "EPABF-II": lambda K, d: ref.EpabfTwin(K, d, slack=1 / (2 * 0.1)),
    "SOBA": lambda K, d: ref.SobaTwin(K, d, diagonal=True),
    "SOBA-full": ref.SobaTwin,
    "Newtron": lambda K, d: ref.NewtronTwin(K, d, rates=(0.1, 0.2), diagonal=True),
    "Newtron-full": ref.NewtronTwin,
    "Gappletron": ref.GappletronTwin,
    "RDUE": ref.RdueTwin,
    "RDUE-pseudo": ref.PseudoRdueTwin,
    "Separable": ref.SeparableTwin,
    "KernelSeparable": lambda K, d: ref.KernelTwin(K, d, budget=60),
    "Confidit": lambda K, d: ref.RidgeTwin(K, d, signed=True),
    "RCINE": ref.RcnbfTwin,
    "AnytimeRCNBF": ref.AveragedTwin,
    "RidgeRegression": ref.RidgeTwin,
    "Fliptron": ref.FliptronTwin,
    "Fliptron-diagonal": lambda K, d: ref.FliptronTwin(K, d, diagonal=True),
    "Fliptron-axes": ref.AxesTwin,
    "LeastMeanSquares": lambda K, d: ref.LmsTwin(K, d, step=0.1),
}


@pytest.mark.parametrize("name", TWINS)
def test_learner_equals_its_textbook_twin(name: Any, small: Any) -> None:
    learner = LEARNERS[name](n_classes=3, n_features=5, seed=4)
    twin = TWINS[name](3, 5)
    random = np.random.default_rng(4)
    loose = 1e6 if name.startswith("Fliptron") else 1.0  # its twin differentiates by differences
    for t in range(1, 400):
        row = random.integers(1, small.n_rows)
        x, y = small.X[row], small.y[row]
        decision = learner.decide(x)
        scores = twin.scores(x)
        assert scores[decision.greedy] == pytest.approx(scores.max(), abs=1e-9 * loose)
        if name == "Confidit":
            optimistic = scores + twin.bonus(x) * learner.alpha
            assert optimistic[decision.label] == pytest.approx(optimistic.max(), abs=1e-9)
            assert decision.probability == 1.0
        else:
            P = twin.probabilities(x, Exploration.of(learner.gamma).at(t))
            if np.sum(scores > scores.max() - 1e-9) == 1:
                assert decision.probability == pytest.approx(P[decision.label], rel=1e-12 * loose)
        bit = int((decision.label == y) ^ (random.random() < 0.2))
        feedback = int(y) if learner.full_information else bit
        twin.rates = getattr(learner, "rates", None)
        learner.learn(x, decision, feedback)
        twin.learn(x, *decision, feedback)
    np.testing.assert_allclose(learner.weights, getattr(twin, "mean", twin.W), rtol=1e-7, atol=1e-9 * loose)


@pytest.mark.parametrize("sparse", [False, True])
def test_one_round_path_and_loop_give_equal_weights(make: Any, sparse: Any, small: Any, small_sparse: Any) -> None:
    data = small_sparse if sparse else small
    learners = [make(n_classes=3, n_features=5, seed=2) for _ in range(2)]
    traces = [
        simulate(learner, data, rates=(0.2, 0.3), rounds=700, seed=1, log=True, engine=engine)
        for learner, engine in zip(learners, ("compiled", "python"), strict=True)
    ]
    np.testing.assert_array_equal(learners[0].weights, learners[1].weights)
    for column in ("row", "label", "greedy", "probability", "bit", "margin"):
        np.testing.assert_array_equal(getattr(traces[0].log, column), getattr(traces[1].log, column))


@pytest.mark.parametrize("name", [name for name in FAMILIES if name != "SOBA-full"])  # its 640×640 is slow
def test_one_round_path_and_loop_are_equal_on_digits(name: Any, digits: Any) -> None:
    learners = [LEARNERS[name](n_classes=10, n_features=64, seed=2) for _ in range(2)]
    for learner, engine in zip(learners, ("compiled", "python"), strict=True):
        simulate(learner, digits, rates=(0.2, 0.4), rounds=2000, seed=1, engine=engine)
    np.testing.assert_array_equal(learners[0].weights, learners[1].weights)


def test_dense_and_sparse_rows_teach_the_same(make: Any, small: Any, small_sparse: Any) -> None:
    learners = [make(n_classes=3, n_features=5, seed=2) for _ in range(2)]
    for learner, data in zip(learners, (small, small_sparse), strict=True):
        simulate(learner, data, rates=(0.2, 0.3), rounds=700, seed=1)
    np.testing.assert_allclose(learners[0].weights, learners[1].weights, rtol=1e-9, atol=1e-9)


def test_rules_for_all_learners(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    if make is LEARNERS["Delaytron-adaptive"]:  # which counts its decisions, and says so
        rules = [rule for rule in checks.RULES if rule is not checks.learns_only_through_its_arguments]
        monkeypatch.setattr(checks, "RULES", rules)
    check_learner(make)


def test_banditron_is_rcnbf_without_noise(digits: Any) -> None:
    banditron = Banditron(n_classes=10, n_features=64, gamma=0.1, seed=3)
    rcnbf = RCNBF(n_classes=10, n_features=64, gamma=0.1, rates=(0.0, 0.0), seed=3)
    for learner in (banditron, rcnbf):
        simulate(learner, digits, rates=(0.2, 0.4), rounds=5000, seed=3)
    np.testing.assert_array_equal(banditron.weights, rcnbf.weights)


@pytest.mark.parametrize("variant", ["PA", "PA-I", "PA-II"])
def test_exact_steps_may_push_all_labels(variant: Any, small: Any) -> None:
    settings = {"PA": {}, "PA-I": {"most": 0.1}, "PA-II": {"slack": 5.0}}[variant]
    learner = EPABF(n_classes=3, n_features=5, variant=variant, aggressiveness=0.1, pushed="all")
    twin, random = ref.EpabfTwin(3, 5, everyone=True, **settings), np.random.default_rng(4)
    for x in small.X[:100]:
        decision, bit = Decision(int(random.integers(3)), 0, float(random.uniform(0.01, 1))), int(random.integers(2))
        learner.learn(x, decision, bit)
        twin.learn(x, *decision, bit)
        if variant == "PA" and bit == 0 and x.any():
            assert learner.scores([x]).max() < -1 + 1e-12
    np.testing.assert_allclose(learner.weights, twin.W, rtol=1e-9, atol=1e-9)


def test_ridge_stays_the_solution_after_many_rounds(digits: Any) -> None:
    learner = RidgeRegression(n_classes=10, n_features=64, gamma=0.1, regularization=1.0, seed=0)
    trace = simulate(learner, digits, rates=(0.2, 0.4), rounds=200_000, seed=0, log=True)
    for label in range(10):
        played = trace.log.label == label
        X, bits = digits.X[trace.log.row[played]], trace.log.bit[played]
        solution = np.linalg.solve(np.eye(64) + X.T @ X, X.T @ bits)
        np.testing.assert_allclose(learner.weights[label], solution, atol=1e-7)


def test_newtron_draws_from_the_chances_that_it_tells() -> None:
    learner, random = LEARNERS["Newtron"](n_classes=3, n_features=5, seed=1), np.random.default_rng(0)
    for t in range(100):
        x = random.normal(size=5)
        (chances,) = learner.chances(x[None])
        decision = learner.decide(x)
        assert decision.probability == pytest.approx(0.7 * chances[decision.label] + 0.1, rel=1e-9)
        learner.learn(x, decision, t % 2)


def test_weights_are_a_copy() -> None:
    learner = Banditron(n_classes=3, n_features=2, gamma=0.1)
    learner.weights[:] = 7.0
    assert not learner.weights.any()


def test_a_full_learner_of_gigabytes_is_refused_before_it_is_made() -> None:
    with pytest.raises(InputError, match=r"needs 72\.5 GiB; at most 4 GiB is allowed: use LeastMeanSquares"):
        RidgeRegression(n_classes=10, n_features=31_200)
    with pytest.raises(InputError, match="use SOBA\\(form='diagonal'\\)"):
        SOBA(n_classes=100, n_features=784, form="full")


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: Banditron(n_classes=1, n_features=2), "n_classes is 1; a whole number of at least 2"),
        (lambda: Banditron(n_classes=3.5, n_features=2), "n_classes is 3.5"),
        (lambda: Banditron(n_classes=3, n_features=0), "n_features is 0"),
        (lambda: Banditron(n_classes=3, n_features=2, gamma=0.0), "gamma is 0; a number above 0"),
        (lambda: Banditron(n_classes=3, n_features=2, gamma=1.1), "gamma is 1.1; a number of at least 0 and at most 1"),
        (lambda: Banditron(n_classes=3, n_features=2, gamma=float("nan")), "gamma is nan"),
        (lambda: Banditron(n_classes=3, n_features=2, seed=-1), "seed is -1"),
        (lambda: RCNBF(n_classes=3, n_features=2, rates=(0.5, 0.5)), "rho0 \\+ rho1 is 1 .* must be below 1"),
        (lambda: RCNBF(n_classes=3, n_features=2, rates=(-0.1, 0.5)), "rho0 is -0.1"),
        (lambda: RCNBF(n_classes=3, n_features=2, rates=0.3), "two numbers"),
        (lambda: BPA(n_classes=3, n_features=2, variant="PA-3"), "'PA', 'PA-I' or 'PA-II'"),
        (lambda: Confidit(n_classes=3, n_features=2, alpha=-1), "alpha is -1"),
        (lambda: Exploration(-1.0, power=0.5), "scale of gamma_t is -1"),
        (lambda: Exploration.of({"pace": 1}), "scale, power and cap are expected"),
    ],
)
def test_bad_parameters_are_refused(build: Any, words: Any) -> None:
    with pytest.raises(InputError, match=words):
        build()


@pytest.mark.parametrize("series", [list, np.array, iter], ids=["list", "array", "iterator"])
@pytest.mark.parametrize("as_x", [np.array, lambda row: sp.csr_array([row])], ids=["dense", "sparse"])
def test_a_decision_may_be_any_series_of_three(series: Any, as_x: Any) -> None:
    one, other = (RCNBF(n_classes=3, n_features=2, rates=(0.2, 0.4)) for _ in range(2))
    x = as_x([1.0, 2.0])
    decision = one.decide(x)
    one.learn(x, decision, 1)
    other.learn(x, series(decision), 1)
    np.testing.assert_array_equal(one.weights, other.weights)


@pytest.mark.parametrize(
    ("decision", "feedback", "words"),
    [
        ((0, 0, 0.5), None, "feedback is None; a number is expected"),
        ((0, 0, 0.5), [1], r"feedback is \[1\]; a number is expected"),
        ((0, 0, 0.5), 0.5, "feedback is 0.5; 0 or 1 is expected"),
        ((1.9, 0, 0.5), 1, "labels from 0 to 2"),
        ((2**64, 0, 0.5), 1, "labels from 0 to 2"),
        ((0, 0), 1, "is no decision; label, greedy label and probability are expected"),
        ([0, 0, 0.5, 1], 1, "is no decision; label, greedy label and probability are expected"),
        (np.zeros(2), 1, "is no decision; label, greedy label and probability are expected"),
        (np.array(3.0), 1, "is no decision; label, greedy label and probability are expected"),
        (None, 1, "is no decision; label, greedy label and probability are expected"),
    ],
)
def test_bad_rounds_are_refused(decision: Any, feedback: Any, words: Any) -> None:
    learner = Banditron(n_classes=3, n_features=2)
    with pytest.raises(InputError, match=words):
        learner.learn([1.0, 2.0], decision, feedback)
    assert not learner.weights.any()


@pytest.mark.parametrize(
    "x", [[10**400, 1], [1j, 2], ["1", "2"], np.ma.masked_array([1.0, 2.0], [True, False]), [1e200, 0.0], 5.0, None]
)
def test_what_is_no_example_is_refused(x: Any) -> None:
    with pytest.raises(InputError):
        Banditron(n_classes=3, n_features=2).decide(x)


def test_examples_may_come_in_any_real_form() -> None:
    learner = RidgeRegression(n_classes=3, n_features=3, seed=1)
    learner.learn([1.0, 2.0, 3.0], Decision(2, 0, 1.0), 1)
    wide = np.array([[1.0, 9.0], [2.0, 9.0], [3.0, 9.0]])
    frozen = np.array([1.0, 2.0, 3.0])
    frozen.flags.writeable = False
    forms = [
        [1, 2, 3],
        wide[:, 0],
        frozen,
        np.array([1, 2, 3], dtype=np.float32),
        np.array([1, 2, 3], dtype=">f8"),
        sp.csr_array([[1.0, 2.0, 3.0]]),
        sp.coo_array([1.0, 2.0, 3.0]),
    ]
    assert {learner.decide(x).greedy for x in forms} == {2}


def test_tiny_examples_do_no_harm(make: Any) -> None:
    learner = make(n_classes=3, n_features=2)
    for size in (1e-200, 1e-160, 0.0):
        learner.learn([size, 0.0], Decision(0, 1, 1.0), 0)
    assert np.isfinite(learner.weights).all()


class TestFiles:
    def test_any_learner_loads_from_the_base_class(self, make: Any, tmp_path: Path) -> None:
        learner = make(n_classes=3, n_features=5, seed=2)
        learner.save(tmp_path / "learner.npz")
        assert repr(Learner.load(tmp_path / "learner.npz")) == repr(learner)

    def test_another_kind_is_refused(self, tmp_path: Path) -> None:
        Banditron(n_classes=3, n_features=2).save(tmp_path / "b.npz")
        with pytest.raises(InputError, match="holds a Banditron; a RidgeRegression is expected"):
            RidgeRegression.load(tmp_path / "b.npz")

    def test_missing_truncated_and_foreign_files_are_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "b.npz"
        with pytest.raises(InputError, match="does not exist"):
            Banditron.load(path)
        Banditron(n_classes=3, n_features=2).save(path)
        path.write_bytes(path.read_bytes()[:-40])
        with pytest.raises(InputError, match="is not a saved learner"):
            Banditron.load(path)
        np.savez(path, X=np.zeros(3))
        with pytest.raises(InputError, match="is not a saved learner"):
            Banditron.load(path)

    def test_pickles_are_refused(self, tmp_path: Path) -> None:
        np.savez(tmp_path / "b.npz", about=np.array([{"format": 1}], dtype=object))
        with pytest.raises(InputError, match="is not a saved learner"):
            Banditron.load(tmp_path / "b.npz")

    @pytest.mark.parametrize(("W", "words"), [(np.zeros((3, 9)), "misshapen"), (np.full((3, 2), np.nan), "not finite")])
    def test_wrong_arrays_are_refused(self, tmp_path: Path, W: Any, words: Any) -> None:
        path = tmp_path / "b.npz"
        Banditron(n_classes=3, n_features=2).save(path)
        with np.load(path) as file:
            arrays = dict(file) | {"W": W}
        np.savez(path, **arrays)
        with pytest.raises(InputError, match=words):
            Banditron.load(path)

    def test_an_unwritable_place_leaves_nothing_behind(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="cannot be written"):
            Banditron(n_classes=3, n_features=2).save(tmp_path / "no" / "b.npz")
        assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", [Perceptron, Banditron, BPA, LeastMeanSquares])
@pytest.mark.parametrize("size", [1e-40, 1e-22, 1e8])
def test_sizes_at_the_ends_of_float32_do_no_harm(kind: Any, size: Any) -> None:
    learner = kind(n_classes=3, n_features=2, dtype="float32")
    x = np.full(2, size)
    for t in range(6):
        learner.learn(x, learner.decide(x), t % 2)
    assert np.isfinite(learner.weights).all()


def test_a_copy_is_as_quick_as_the_learner(digits: Any) -> None:
    learner = Banditron(n_classes=10, n_features=64)
    again = pickle.loads(pickle.dumps(copy.deepcopy(learner)))
    assert again._dtype is digits.X.dtype
    assert again.decide(digits.X[0]) == learner.decide(digits.X[0])


@pytest.mark.parametrize("sparse", [False, True])
def test_predict_is_what_decide_finds_best_in_float32(sparse: Any, digits: Any) -> None:
    learner = Banditron(n_classes=10, n_features=64, dtype="float32")
    matrix = sp.csr_array(digits.X) if sparse else digits.X
    simulate(learner, Dataset.of(matrix, digits.y), rounds=2000)
    greedy = [learner.decide(matrix[[i]] if sparse else matrix[i]).greedy for i in range(300)]
    np.testing.assert_array_equal(learner.predict(matrix[:300]), greedy)


@pytest.mark.parametrize("sparse", [False, True])
def test_warm_up_compiles_and_changes_nothing(make: Any, sparse: Any) -> None:
    learner, x = make(n_classes=3, n_features=5, seed=2), np.arange(5.0)
    began = time.perf_counter()
    told = learner.warm_up(sparse=sparse)
    assert 0.0 < told <= time.perf_counter() - began
    assert (learner._sparse if sparse else learner._dense) is not None
    assert (learner._dense if sparse else learner._sparse) is None
    assert learner.rounds == 0
    assert not learner.weights.any()
    fresh = make(n_classes=3, n_features=5, seed=2)
    assert learner.decide(sp.csr_array(x[None]) if sparse else x) == fresh.decide(
        sp.csr_array(x[None]) if sparse else x
    )


class TestEligibleLabels:
    """Only some labels may be played: stock, eligibility."""

    def test_they_alone_are_played_with_the_probability_stated(self, make: Any) -> None:
        learner, x = make(n_classes=6, n_features=4, seed=1), np.array([1.0, -1.0, 0.5, 0.0])
        for i in range(40):
            learner.learn(x, Decision(i % 6, i % 6, 0.5), i % 6 == 3 if not learner.full_information else 3)
        decisions = [learner.decide(x, eligible=[1, 3, 4]) for _ in range(3000)]
        for label in (1, 3, 4):
            inverse = [1 / d.probability for d in decisions if d.label == label]
            if len(inverse) > 20:  # Σ 1/P counts every draw once
                assert sum(inverse) == pytest.approx(3000, rel=0.35)
        assert {label for d in decisions for label in (d.label, d.greedy)} <= {1, 3, 4}

    @pytest.mark.parametrize("bad", [[], [6], [-1], [0.5], ["a"], 3, [[1, 2]], [[1], [2, 3]], [True, False]])
    def test_what_is_no_set_of_labels_is_refused(self, bad: Any) -> None:
        learner = Banditron(n_classes=6, n_features=4, gamma=0.1, seed=1)
        with pytest.raises(InputError, match="eligible is"):
            learner.decide(np.ones(4), eligible=bad)
        assert learner.rounds == 0

    def test_labels_that_are_told_once_are_enough(self) -> None:
        """Also where the first try to decide must be given up: x does not lie in one piece."""
        learner = Banditron(n_classes=6, n_features=4, gamma=0.1, seed=1)
        for x in (np.ones(4), np.ones((4, 2))[:, 1]):
            assert learner.decide(x, eligible=(label for label in (2, 5))).label in (2, 5)

    def test_all_labels_are_drawn_like_none_said(self, make: Any) -> None:
        x = np.array([1.0, -1.0, 0.5, 0.0])
        some, every = (make(n_classes=6, n_features=4, seed=1) for _ in range(2))
        drawn = [some.decide(x, eligible=range(6)) for _ in range(50)]
        assert drawn == [every.decide(x) for _ in range(50)]


def test_rounds_that_do_not_fit_are_not_replayed() -> None:
    """Compiled code would write beyond its arrays."""
    learner, X = RidgeRegression(n_classes=3, n_features=2), np.ones((4, 2))
    good = Rounds.of(label=[0, 1, 2, 0], greedy=[0, 0, 0, 0], probability=np.full(4, 0.5), bit=[0, 1, 0, 1])
    wrong = np.array([0, 3, 1, 1])
    for words, given, rounds, scores in (
        ("label of a round is 3; 0 to 2 are expected", X, replace(good, label=wrong), None),
        ("greedy of a round is 3; -1 to 2 are expected", X, replace(good, greedy=wrong), None),
        ("X has 3 rows, and there are 4 rounds", X[:3], good, None),
        ("X has 8 rows, and there are 4 rounds", np.ones((8, 2)), good, None),
        (r"scores has shape \(4, 2\); room for 4 rows of 3", X, good, np.empty((4, 2))),
        ("the rounds are a dict", X, good.columns(), None),
    ):
        with pytest.raises(InputError, match=words):
            learner.replay(given, rounds, scores=scores)
    assert learner.rounds == 0
    assert not learner.weights.any()
