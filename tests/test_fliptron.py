"""The flagship: what it promises beyond the rules for all learners."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from fliptron import Confidit, Dataset, Fliptron, InputError, Rates, RidgeRegression, simulate
from fliptron.learners.fliptron import WARM_UP, share

NOISE = ((0.0, 0.0), (0.2, 0.4), (0.4, 0.2))


def error(learner: Any, data: Any, rates: Any, rounds: Any, seed: Any) -> Any:
    return simulate(learner, data, rates=rates, rounds=rounds, seed=seed).error


@pytest.mark.parametrize("rates", NOISE)
def test_it_beats_the_other_regressions_without_being_told_or_tuned(rates: Any, digits: Any) -> None:
    errors = {
        kind: np.mean([error(kind(n_classes=10, n_features=64, seed=s), digits, rates, 30_000, s) for s in range(3)])
        for kind in (Fliptron, Confidit, RidgeRegression)
    }
    assert errors[Fliptron] < 0.85 * min(errors[Confidit], errors[RidgeRegression])


def test_its_rates_have_intervals_that_cover(digits: Any) -> None:
    covered = []
    for rates in NOISE:
        for seed in range(4):
            learner = Fliptron(n_classes=10, n_features=64, seed=seed)
            simulate(learner, digits, rates=rates, rounds=40_000, seed=seed)
            estimate = learner.estimate()
            assert estimate.verdict == "identified"
            assert estimate.rates == learner.rates
            for name, true in zip(("rho0", "rho1"), rates, strict=True):
                low, high = estimate.intervals[name]
                covered.append(low - 0.005 <= true <= high + 0.005)
    assert np.mean(covered) > 0.85


def test_before_it_knows_the_noise_it_says_so() -> None:
    estimate = Fliptron(n_classes=3, n_features=2).estimate()
    assert estimate.verdict == "not identified"
    assert estimate.intervals["rho0"] == (0.0, 1.0)
    with pytest.raises(InputError, match="not identified"):
        estimate.true_accuracy(0.5)


def test_the_first_rounds_are_uniform_and_the_rest_explores_plausible_labels_only(digits: Any) -> None:
    learner = Fliptron(n_classes=10, n_features=64, gamma=0.0, seed=1)
    log = simulate(learner, digits, rates=(0.1, 0.1), rounds=20_000, seed=1, log=True).log
    assert (log.probability[:WARM_UP] == 0.1).all()
    assert len(np.unique(log.label[:WARM_UP])) == 10
    late = slice(10_000, None)
    assert 0 < np.mean(log.label[late] != log.greedy[late]) < 0.05


def test_the_shares_of_all_labels_sum_to_one() -> None:
    random = np.random.default_rng(0)
    for K in (2, 3, 10, 50):
        scores, spreads = random.normal(size=K), random.exponential(size=K)
        shares = [share(scores, spreads, label) for label in range(K)]
        assert sum(shares) == pytest.approx(1.0, abs=1e-12)
        z = 2.0 * random.random(20_000)
        played = np.bincount((scores + z[:, None] * spreads).argmax(axis=1), minlength=K)
        np.testing.assert_allclose(played / z.size, shares, atol=0.02)


def test_the_length_of_x_does_not_matter(digits: Any) -> None:
    long = Dataset.of(digits.X * 1024.0, digits.y, name="long")
    errors = [
        simulate(Fliptron(n_classes=10, n_features=64, seed=1), data, rates=(0.2, 0.4), rounds=5000, seed=1).mistakes
        for data in (digits, long)
    ]
    np.testing.assert_array_equal(*errors)


def test_late_feedback_in_any_order_teaches_too(digits: Any) -> None:
    learner, random, right = Fliptron(n_classes=10, n_features=64, seed=1), np.random.default_rng(1), 0
    waiting: deque[Any] = deque()
    for t in range(8000):
        row = random.integers(digits.n_rows)
        x, y = digits.X[row], digits.y[row]
        decision = learner.decide(x)
        right += t >= 7000 and decision.label == y
        waiting.append((x, decision, int((decision.label == y) ^ (random.random() < 0.15))))
        if len(waiting) > 200:
            waiting.rotate(int(random.integers(200)))
            learner.learn(*waiting.popleft())
    assert right > 900


@pytest.mark.parametrize(("K", "d"), [(2, 4), (100, 40), (5, 20_000)])
def test_it_takes_few_and_many_labels_and_features(K: Any, d: Any) -> None:
    random = np.random.default_rng(0)
    y = random.integers(K, size=3000)
    prototypes: Any = sp.random_array((K, d), density=min(1.0, 20 / d), rng=random, format="csr")
    X = sp.csr_array(prototypes[y] + 0.1 * sp.random_array((3000, d), density=min(1.0, 5 / d), rng=random))
    data = Dataset.of(X, y, name="made")
    learner = Fliptron(n_classes=K, n_features=d, seed=0)
    assert learner.full == (K * d * d <= 2**20)
    trace = simulate(learner, data, rates=(0.02, 0.1), rounds=80_000, seed=0)
    late = np.diff(trace.mistakes[[-10, -1]])[0] / np.diff(trace.rounds[[-10, -1]])[0]
    assert late < 0.05


def test_after_a_permutation_it_recovers_as_fast_as_a_fresh_start(digits: Any) -> None:
    """Rounds until the error of 1,000 rounds is within 1.5 times of what it was before the labels were permuted."""
    permuted = Dataset.of(digits.X, (digits.y + 3) % 10, name="permuted")
    rates = (0.2, 0.3)
    known: list[Any] = []
    fresh: list[Any] = []
    for seed in range(3):
        learner = Fliptron(n_classes=10, n_features=64, half_life=100_000, seed=seed)
        before = simulate(learner, digits, rates=rates, rounds=20_000, seed=seed)
        level = np.diff(before.mistakes[np.searchsorted(before.rounds, [10_000, 20_000])])[0] / 10_000
        beginner = Fliptron(n_classes=10, n_features=64, half_life=100_000, seed=seed)
        for each, times in ((learner, known), (beginner, fresh)):
            log = simulate(each, permuted, rates=rates, rounds=30_000, seed=seed + 100, log=True).log
            wrong = np.cumsum(log.label != permuted.y[log.row])
            recent = (wrong[1000:] - wrong[:-1000]) / 1000
            assert (recent <= 1.5 * level).any()
            times.append(1000 + np.argmax(recent <= 1.5 * level))
    assert np.mean(known) <= np.mean(fresh)


def test_a_jump_in_the_channel_is_followed(digits: Any) -> None:
    found = []
    for seed in range(4):
        learner = Fliptron(n_classes=10, n_features=64, half_life=5000, seed=seed)
        simulate(learner, digits, rates=(0.05, 0.05), rounds=20_000, seed=seed)
        simulate(learner, digits, rates=(0.3, 0.3), rounds=60_000, seed=seed + 100)
        found.append(learner.rates)
    np.testing.assert_allclose(np.mean(found, axis=0), (0.3, 0.3), atol=0.08)


def test_what_it_cannot_be_is_refused() -> None:
    with pytest.raises(InputError, match="form is 'sketch'; 'auto', 'full' or 'diagonal' is expected"):
        Fliptron(n_classes=3, n_features=2, form="sketch")
    with pytest.raises(InputError, match="half_life is 10"):
        Fliptron(n_classes=3, n_features=2, half_life=10)
    with pytest.raises(InputError, match="use form='diagonal'"):
        Fliptron(n_classes=10, n_features=40_000, form="full")
    assert isinstance(Fliptron(n_classes=3, n_features=2).rates, Rates)
