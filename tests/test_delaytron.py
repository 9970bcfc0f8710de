"""Delaytron: bits that come late, in a queue."""

from __future__ import annotations

import copy
import math
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fliptron import RCNBF, Dataset, Delaytron, Learner, simulate


@pytest.fixture(scope="module")
def apart() -> Dataset:
    """Three classes far apart."""
    random = np.random.default_rng(1)
    y = random.integers(3, size=300)
    return Dataset.of(np.eye(3, 5)[y] + 0.2 * random.normal(size=(300, 5)), y, name="apart")


def delayed(learner: Any, data: Any, delay: Any, rounds: Any, rates: Any = (0.0, 0.0)) -> Any:
    """The error of the last third of the rounds, where each bit comes `delay` rounds late."""
    random, queue, wrong = np.random.default_rng(0), deque[Any](), 0
    for t in range(rounds):
        row = random.integers(data.n_rows)
        decision = learner.decide(data.X[row])
        right = decision.label == data.y[row]
        wrong += t >= rounds * 2 / 3 and not right
        queue.append((data.X[row], decision, int(random.random() < (1 - rates[1] if right else rates[0]))))
        if len(queue) > delay:
            learner.learn(*queue.popleft())
    return wrong / (rounds / 3)


@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.parametrize("delay", [0, 5, 300])
def test_it_learns_from_late_bits(adaptive: Any, delay: Any, apart: Any) -> None:
    learner = Delaytron(n_classes=3, n_features=5, gamma=0.1, adaptive=adaptive)
    assert delayed(learner, apart, delay, 6000) < 0.15  # 2/3 is a guess
    assert learner.state.learnt[0] == 6000 - delay
    assert learner.state.learnt[1] == (math.floor(math.log2(delay)) + 1 if adaptive and delay else 0)


def test_told_the_rates_it_learns_from_late_noisy_bits(apart: Any) -> None:
    errors = [
        delayed(Delaytron(n_classes=3, n_features=5, rates=rates), apart, 20, 30_000, rates=(0.2, 0.4))
        for rates in ((0.2, 0.4), (0.0, 0.0))
    ]
    assert errors[0] < 0.3
    assert errors[0] < 0.75 * errors[1]


@pytest.mark.parametrize("step", [1.0, 0.25])
@pytest.mark.parametrize("adaptive", [False, True])
def test_without_delay_it_is_rcnbf_up_to_the_step(step: Any, adaptive: Any, digits: Any) -> None:
    settings: Any = {"n_classes": 10, "n_features": 64, "gamma": 0.2, "rates": (0.2, 0.4), "seed": 3}
    learners = [RCNBF(**settings), Delaytron(**settings, step=step, adaptive=adaptive)]
    traces = [simulate(learner, digits, rates=(0.2, 0.4), rounds=5000, seed=3) for learner in learners]
    np.testing.assert_array_equal(traces[0].mistakes, traces[1].mistakes)
    np.testing.assert_allclose(step * learners[0].weights, learners[1].weights, rtol=1e-12)


def test_steps_shrink_with_the_bits_awaited(tmp_path: Path) -> None:
    """With 0, 1, 2, 3, 4 … awaited, e is 0, 1, 2, 2, 3 …, and it never falls again."""
    x = np.array([0.6, 0.8])
    for awaited in (0, 1, 2, 3, 4, 7, 8, 1000):
        learner = Delaytron(n_classes=3, n_features=2, adaptive=True)
        decisions = [learner.decide(x) for _ in range(awaited + 1)]
        e = awaited.bit_length()
        learner.learn(x, (1, 0, 0.5), 1)
        np.testing.assert_allclose(learner.weights[1], 2 ** (-e / 2) * 2 * x)
        learner.save(tmp_path / "l.npz")
        for each in (learner, copy.deepcopy(learner), Learner.load(tmp_path / "l.npz")):
            for decision in decisions[1:]:
                each.learn(x, decision, 0)
            before = each.weights
            each.learn(x, (2, 0, 0.5), 1)
            np.testing.assert_allclose((each.weights - before)[2], 2 ** (-e / 2) * 2 * x)


def test_a_copy_counts_its_own_decisions() -> None:
    x = np.array([0.6, 0.8])
    learner = Delaytron(n_classes=3, n_features=2, adaptive=True)
    learner.learn(x, learner.decide(x), 0)
    twin = copy.deepcopy(learner)
    for _ in range(9):
        twin.decide(x)
    for each, e in ((learner, 0), (twin, 4)):
        each.learn(x, each.decide(x), 0)
        assert each.state.learnt[1] == e
