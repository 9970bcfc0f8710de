"""Any public method from any number of threads: no crash, no draw used twice, no wrong row, nothing half done."""

from __future__ import annotations

import copy
import pickle
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import FAMILIES, LEARNERS
from fliptron import RCINE, AveragedRCNBF, Decision, Fliptron, Learner, RidgeRegression, simulate
from fliptron.kernels.randomness import uniform

K, D = 3, 5


@pytest.fixture(autouse=True)
def restless() -> Any:
    """Python hands its lock on every few microseconds instead of milliseconds."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def together(*calls: Any) -> Any:
    """Run calls at once, each in a thread of its own; what they return."""
    start = threading.Barrier(len(calls))

    def begin(call: Any) -> Any:
        start.wait()
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        return [future.result() for future in [pool.submit(begin, call) for call in calls]]


def examples(n: Any, seed: Any = 0) -> Any:
    X = np.random.default_rng(seed).normal(size=(n, D))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


@pytest.mark.parametrize("name", FAMILIES)
def test_no_draw_is_used_twice(name: Any) -> None:
    learner, x, rounds = LEARNERS[name](n_classes=K, n_features=D, seed=3), examples(1)[0], 2000
    twin = LEARNERS[name](n_classes=K, n_features=D, seed=3)
    learner.decide(x)
    twin.decide(x)
    decided = together(*[lambda: [learner.decide(x) for _ in range(rounds)]] * 4)
    alone = [twin.decide(x) for _ in range(4 * rounds)]
    assert sorted(decision for each in decided for decision in each) == sorted(alone)
    assert learner.rounds == 4 * rounds + 1


@pytest.mark.parametrize("name", FAMILIES)
def test_every_method_at_once(name: Any, small: Any, tmp_path: Path) -> None:
    """What eight threads do to one learner: it stays whole, and every round is learnt from once."""
    learner, X, rounds = LEARNERS[name](n_classes=K, n_features=D, seed=1), examples(50), 300
    path = tmp_path / "learner.npz"

    def play() -> None:
        for t in range(rounds):
            x = X[t % 50]
            learner.learn(x, learner.decide(x), t % 2)

    def look() -> None:
        for _ in range(40):
            scores = learner.scores(X)
            assert np.isfinite(scores).all()
            assert learner.predict(X[:3]).shape == (3,)
            assert np.isfinite(learner.weights).all()
            for shown in ("rates", "params", "rounds", "gamma"):
                getattr(learner, shown, None)
            repr(learner)
            if hasattr(learner, "estimate"):
                learner.estimate()
            learner.settle()
            learner.room()

    def keep() -> None:
        for _ in range(10):
            learner.save(path)
            assert np.isfinite(Learner.load(path).weights).all()

    def loop() -> None:
        for seed in range(3):
            simulate(learner, small, rates=(0.2, 0.2), rounds=400, seed=seed)

    together(play, play, play, look, look, keep, keep, loop)
    assert learner.rounds == 3 * rounds + 3 * 400
    assert np.isfinite(learner.weights).all()


@pytest.mark.parametrize("name", ["RCINE", "Fliptron-drift"])
def test_the_loop_begins_where_another_thread_has_not_settled(name: Any, small: Any) -> None:
    """A bit learnt, and the loop takes over before the thread that learnt it comes to settle."""
    learner, x = LEARNERS[name](n_classes=K, n_features=D, seed=1), examples(1)[0]
    while learner.room() > 1:
        Learner.learn(learner, x, learner.decide(x), 1)
    for _ in range(3):
        Learner.learn(learner, x, learner.decide(x), 1)
    before = learner.rounds
    simulate(learner, small, rates=(0.2, 0.2), rounds=400)
    assert learner.rounds == before + 400


@pytest.mark.parametrize("name", ["AveragedRCNBF", "RCNBF", "Fliptron", "RidgeRegression"])
def test_no_row_of_scores_is_wrong(name: Any) -> None:
    learner, X = LEARNERS[name](n_classes=K, n_features=D, seed=1), examples(4000)
    for x in X[:300]:
        learner.learn(x, learner.decide(x), int(x[0] > 0))
    right = learner.scores(X)
    for scores in together(*[lambda: learner.scores(X)] * 6):
        np.testing.assert_array_equal(scores, right)


def test_scores_are_of_one_moment() -> None:
    """A row's scores come from the weights before a step or after it, never from half of each."""
    learner = AveragedRCNBF(n_classes=2, n_features=2000, rates=(0.0, 0.0), gamma=0.5)
    ones, stop = np.ones(2000), threading.Event()

    def learn() -> None:
        while not stop.is_set():
            learner.learn(ones, Decision(0, 1, 1.0), 1)

    def look() -> Any:
        try:
            return [learner.scores(ones[None])[0] for _ in range(2000)]
        finally:
            stop.set()

    _, seen = together(learn, look)
    for first, second in seen:
        assert first == -second  # every step adds x to one row and takes it from the other
        assert first % 1000 == pytest.approx(0.0, abs=1e-6) or first % 1000 == pytest.approx(1000.0, abs=1e-6)


def test_rcine_takes_in_every_window_once() -> None:
    seen = []

    class Keeper:
        needs_rows = False

        def absorb(self, rounds: Any) -> None:
            seen.append(len(rounds))
            assert (rounds.probability > 0).all()

        def estimate(self) -> Any:
            from fliptron.noise.estimate import Estimate
            from fliptron.rounds import Rates

            return Estimate(Rates(0.1, 0.1), "identified", "")

        def clear(self) -> None:
            pass

    learner = RCINE(n_classes=K, n_features=D, estimator=Keeper(), refresh=256)
    X = examples(64)

    def play() -> None:
        for t in range(2000):
            learner.learn(X[t % 64], Decision(t % K, 0, 0.5), t % 2)

    together(*[play] * 8)
    waiting, learnt, _ = learner.state.counts
    assert learnt == 16_000
    assert sum(seen) + waiting == 16_000
    assert len(learner.estimates) == 16_000 // 256


def test_a_copy_is_of_one_moment() -> None:
    """Copied by `deepcopy` or `pickle` while others learn, a learner's parts fit together."""
    learner, X, stop = RCINE(n_classes=K, n_features=D, refresh=256), examples(64), threading.Event()

    def play() -> None:
        t = 0
        while not stop.is_set():
            learner.learn(X[t % 64], learner.decide(X[t % 64]), t % 2)
            t += 1

    def take() -> Any:
        try:
            copies = [copy.deepcopy(learner) for _ in range(40)]
            return copies + [pickle.loads(pickle.dumps(learner)) for _ in range(40)]
        finally:
            stop.set()

    *_, copies = together(play, play, take)
    for each in copies:
        waiting, learnt, last = each.state.counts
        assert each._estimator.rounds[0] + waiting == learnt
        assert len(each.estimates) == last // 256
        each.learn(X[0], each.decide(X[0]), 1)


def test_forgetting_waits_for_its_turn() -> None:
    """The whole covariances are inverted while others learn; they must stay what covariances are."""
    learner, X = Fliptron(n_classes=K, n_features=D, half_life=1000, seed=1), examples(64)

    def play() -> None:
        for t in range(3000):
            x = X[t % 64]
            learner.learn(x, learner.decide(x), int(x[0] > 0))

    together(*[play] * 6)
    for matrix in learner.state.covariance:
        whole = np.tril(matrix) + np.tril(matrix, -1).T
        assert np.linalg.eigvalsh(whole).min() > 0


def test_threads_that_learn_one_thing_learn_it_all() -> None:
    """Least squares does not depend on the order of rounds: many threads must find what one finds."""
    X, learner, twin = examples(4000), *(RidgeRegression(n_classes=K, n_features=D) for _ in range(2))
    bits = (X @ np.arange(D) > 0).astype(int)

    def part(start: Any) -> None:
        for t in range(start, 4000, 8):
            learner.learn(X[t], Decision(t % K, 0, 0.5), int(bits[t]))

    together(*[lambda start=start: part(start) for start in range(8)])
    for t in range(4000):
        twin.learn(X[t], Decision(t % K, 0, 0.5), int(bits[t]))
    np.testing.assert_allclose(learner.weights, twin.weights, rtol=1e-9, atol=1e-12)


def test_draws_are_those_of_the_key() -> None:
    learner, x = LEARNERS["Banditron"](n_classes=K, n_features=D, seed=3), examples(1)[0]
    explored = [learner.decide(x).label != 0 for _ in range(1000)]
    drawn = [0.1 <= uniform(np.uint64(learner.key), t) < 0.3 for t in range(1000)]
    assert explored == drawn


def test_chances_are_those_of_one_moment_while_others_learn() -> None:
    learner, X = Fliptron(n_classes=K, n_features=D, seed=1), examples(50)

    def play() -> None:
        for t in range(400):
            x = X[t % 50]
            learner.learn(x, learner.decide(x), t & 1)

    def ask() -> None:
        for _ in range(200):
            np.testing.assert_allclose(learner.chances(X).sum(axis=1), 1.0)

    together(play, play, ask, ask)


def test_labels_are_eligible_while_others_are_added_and_learnt() -> None:
    learner, x = Fliptron(n_classes=K, n_features=D, seed=3), examples(1)[0]

    def play() -> Any:
        return [learner.decide(x, eligible=[0, 2]) for _ in range(500)]

    def grow() -> None:
        for _ in range(5):
            learner.add_label()
            learner.learn(x, learner.decide(x), 1)

    *decided, _ = together(play, play, grow)
    assert {decision.label for each in decided for decision in each} <= {0, 2}
    assert all(0.0 < decision.probability <= 1.0 for each in decided for decision in each)
    assert learner.n_classes == K + 5
    assert learner.rounds == 1005
