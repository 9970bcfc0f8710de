"""The usual bandits: each against its textbook, and the probabilities of SquareCB."""

from __future__ import annotations

from functools import partial
from math import erf
from typing import Any

import numpy as np
import pytest

from fliptron import InputError, simulate
from fliptron.checks import check_learner
from fliptron.experiments.bandits import Bandit


def sigmoid(m: Any) -> Any:
    return 1 / (1 + np.exp(-m))


@pytest.mark.parametrize("logistic", [False, True])
def test_weights_are_those_of_the_textbook(logistic: Any, small: Any) -> None:
    K, d, random = 3, 5, np.random.default_rng(1)
    learner = Bandit(n_classes=K, n_features=d, explore="SquareCB", logistic=logistic, regularization=0.5, seed=2)
    A, W, b = [0.5 * np.eye(d) for _ in range(K)], np.zeros((K, d)), np.zeros((K, d))
    for _ in range(200):
        x, bit = small.X[random.integers(1, small.n_rows)], int(random.random() < 0.4)
        decision = learner.decide(x)
        gap = np.max(mean := sigmoid(W @ x) if logistic else W @ x) - mean
        P = 1 / (K + gap * np.sqrt(learner.rounds))
        P[decision.greedy] += 1 - P.sum()
        assert decision.probability == pytest.approx(P[decision.label], rel=1e-9)
        learner.learn(x, decision, bit)
        r = decision.label
        p = sigmoid(W[r] @ x)
        A[r] += (p * (1 - p) if logistic else 1.0) * np.outer(x, x)
        b[r] += bit * x
        W[r] = W[r] + (bit - p) * np.linalg.solve(A[r], x) if logistic else np.linalg.solve(A[r], b[r])
    np.testing.assert_allclose(learner.weights, W, rtol=1e-8, atol=1e-10)


def test_squarecb_obeys_the_rules_of_learners() -> None:
    check_learner(partial(Bandit, explore="SquareCB", strength=0.3))


def test_thompson_draws_as_wide_as_its_doubt_and_ucb_takes_its_upper_end() -> None:
    x, learners = np.array([0.6, 0.8]), {}
    for explore in ("Thompson", "UCB"):
        learners[explore] = learner = Bandit(n_classes=2, n_features=2, explore=explore, strength=1.0, seed=1)
        for t in range(60):  # label 0: a bit in three; label 1, hardly known: none
            learner.learn(x, (0, 0, 1.0), t % 3 == 0)
        learner.learn(x, (1, 1, 1.0), 0)
    scores, spread = np.array([20 / 61, 0.0]), np.array([1 / 61, 1 / 2]) ** 0.5
    assert learners["UCB"].decide(x).label == int(np.argmax(scores + spread)) == 1
    drawn = np.mean([learners["Thompson"].decide(x).label for _ in range(4000)])
    z = (scores[1] - scores[0]) / np.hypot(*spread)
    assert drawn == pytest.approx(0.5 * (1 + erf(z / 2**0.5)), abs=0.04)


@pytest.mark.parametrize("explore", ["Thompson", "UCB", "SquareCB"])
def test_it_learns_digits(explore: Any, digits: Any) -> None:
    learner = Bandit(n_classes=10, n_features=64, explore=explore, logistic=True, strength=0.3, regularization=0.1)
    assert simulate(learner, digits, rates=(0.1, 0.1), rounds=5000, seed=1).error < 0.5


def test_bad_settings_get_a_sentence() -> None:
    with pytest.raises(InputError, match="explore is 'greedy'"):
        Bandit(n_classes=2, n_features=2, explore="greedy")
    with pytest.raises(InputError, match="strength is 0"):
        Bandit(n_classes=2, n_features=2, explore="SquareCB", strength=0.0)
