"""Lemmas 1 and 2 and the exact constants, by enumeration over labels and flips: no sampling."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import numpy as np
import pytest

from fliptron import RCNBF, RDUE, Decision, Gappletron, Newtron, theory
from fliptron.learners.rcnbf import unbiased

SETTINGS = [
    (K, gamma, rates)
    for K in (2, 3, 10)
    for gamma in (0.01, 0.3, 0.5)
    for rates in ((0.0, 0.0), (0.15, 0.15), (0.2, 0.4), (0.4, 0.2), (0.4, 0.4), (0.0, 0.6), (0.6, 0.0))
]


def outcomes(K: Any, gamma: Any, rates: Any, y: Any, greedy: Any) -> Any:
    """Every (probability, decision, bit) of one round."""
    for label in range(K):
        p = (1 - gamma) * (label == greedy) + gamma / K
        one = 1 - rates[1] if label == y else rates[0]
        for bit, q in ((1, one), (0, 1 - one)):
            yield p * q, Decision(label, greedy, p), bit


@pytest.mark.parametrize("rates", [rates for *_, rates in SETTINGS[:7]])
def test_lemma_1_h_is_unbiased(rates: Any) -> None:
    rho0, rho1 = rates
    h = [unbiased(bit, np.array(rates)) for bit in (0, 1)]
    assert rho0 * h[1] + (1 - rho0) * h[0] == pytest.approx(0.0, abs=1e-12)
    assert (1 - rho1) * h[1] + rho1 * h[0] == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize(("K", "gamma", "rates"), SETTINGS)
def test_lemma_2_the_mean_update_is_the_perceptrons(K: Any, gamma: Any, rates: Any) -> None:
    x = np.array([0.6, -0.8])
    for y, greedy in itertools.product(range(K), repeat=2) if K < 10 else [(3, 3), (3, 7)]:
        mean = np.zeros((K, 2))
        for probability, decision, bit in outcomes(K, gamma, rates, y, greedy):
            learner = RCNBF(n_classes=K, n_features=2, gamma=gamma, rates=rates)
            learner.learn(x, decision, bit)
            mean += probability * learner.weights
        perceptron = np.zeros((K, 2))
        perceptron[y] += x
        perceptron[greedy] -= x
        np.testing.assert_allclose(mean, perceptron, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("K", "gamma", "rates"), SETTINGS)
def test_lemma_3_exact_constants_are_the_mean_squared_norm(K: Any, gamma: Any, rates: Any) -> None:
    x = np.array([0.6, -0.8])
    A1, A2 = theory.constants(n_classes=K, gamma=gamma, rates=rates)
    for y, exact in ((1, A1), (0, A2)):
        mean = 0.0
        for probability, decision, bit in outcomes(K, gamma, rates, y, greedy=0):
            learner = RCNBF(n_classes=K, n_features=2, gamma=gamma, rates=rates)
            learner.learn(x, decision, bit)
            mean += probability * np.sum(learner.weights**2)
        assert mean == pytest.approx(exact, rel=1e-12)


def mean_gradient(make: Any, K: Any, rates: Any, y: Any, x: Any, W: Any) -> Any:
    """The mean over labels and flips of the gradient that a learner with weights W steps along."""
    mean = np.zeros((K, 2))
    for label in range(K):
        one = 1 - rates[1] if label == y else rates[0]
        for bit, q in ((1, one), (0, 1 - one)):
            p = (label + 1) / (K * (K + 1) / 2)
            learner = make(n_classes=K, n_features=2, rates=rates, diameter=1.0)
            learner.state.W[:] = W
            learner.learn(x, Decision(label, 0, p), bit)
            step = 1 / np.sqrt(2 * (1e-8 + learner.state.squares[0]))
            mean += p * q * (W - learner.weights) / step
    return mean


@pytest.mark.parametrize(("K", "rates"), [(K, rates) for K, gamma, rates in SETTINGS if gamma == 0.3])
@pytest.mark.parametrize("make", [Gappletron, RDUE, partial(RDUE, estimator="pseudo-inverse")])
def test_the_mean_step_of_a_softmax_is_the_gradient_of_its_log_loss(K: Any, rates: Any, make: Any) -> None:
    x, y = np.array([0.6, -0.8]), K - 1
    W = np.random.default_rng(K).normal(size=(K, 2))
    odds = np.exp(W @ x)
    gradient = np.outer(odds / odds.sum() - np.eye(K)[y], x)
    np.testing.assert_allclose(mean_gradient(make, K, rates, y, x, W), gradient, atol=1e-9)


@pytest.mark.parametrize(("K", "gamma", "rates"), SETTINGS)
@pytest.mark.parametrize("form", ["diagonal", "full"])
def test_newtrons_mean_step_is_the_gradient_of_the_log_loss(K: Any, gamma: Any, rates: Any, form: Any) -> None:
    """From θ = 0 and A = I, θ moves by −δ, whose mean over labels and flips must be (e_y − p)⊗x, with p = 1/K."""
    x, y = np.array([0.6, -0.8]), K - 1
    mean = np.zeros((K, 2))
    for label in range(K):
        one = 1 - rates[1] if label == y else rates[0]
        for bit, q in ((1, one), (0, 1 - one)):
            learner = Newtron(
                n_classes=K, n_features=2, gamma=gamma, rates=rates, form=form, radius=1.0, curvature=1e-9
            )
            learner.learn(x, Decision(label, 0, 1 / K), bit)
            mean -= q / K * learner.state.W
    np.testing.assert_allclose(mean, np.outer(np.full(K, 1 / K) - np.eye(K)[y], x), atol=1e-5)
