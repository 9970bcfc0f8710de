"""What a log tells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fliptron import LeastMeanSquares, Log, RidgeRegression, Rounds, audit, simulate


def test_without_probabilities_the_mean_bit_still_bounds_the_rates(tmp_path: Path) -> None:
    rows = "".join(f"{20 + i % 37},{'ab'[i % 2]},{int(i % 4 == 0)}\n" for i in range(4000))
    (tmp_path / "log.csv").write_text("age,shown,clicked\n" + rows)
    found = audit(Log(tmp_path / "log.csv"))
    assert found.verdict == "not identified"
    assert found.intervals["rho0"] == pytest.approx((0.0, 0.25), abs=0.015)
    assert found.intervals["rho1"] == pytest.approx((0.0, 0.75), abs=0.015)
    assert min(found.intervals[name][1] - 0.25 for name in ("rho0", "accuracy", "beta")) > 0.0
    assert "ρ0 is at most the mean bit" in found.reason


class TestAudit:
    def test_with_margins_and_with_examples(self, digits: Any) -> None:
        learner = LeastMeanSquares(n_classes=10, n_features=64, gamma=0.1, seed=1)
        log = simulate(learner, digits, rates=(0.2, 0.4), rounds=100_000, seed=1, log=True).log
        truth = np.mean(log.label == digits.y[log.row])
        kept = {name: getattr(log, name) for name in ("label", "greedy", "probability", "bit")}
        for each in (log, Rounds(**kept, X=16.0 * digits.X[log.row])):
            found = audit(each)
            assert found.rates == pytest.approx((0.2, 0.4), abs=0.02)
            low, high = found.intervals["accuracy"]
            assert low <= truth <= high

    def test_how_examples_lie_in_memory_does_not_matter(self, digits: Any) -> None:
        learner = LeastMeanSquares(n_classes=10, n_features=64, gamma=0.1, seed=1)
        log = simulate(learner, digits, rates=(0.2, 0.4), rounds=5000, seed=1, log=True).log
        kept = {name: getattr(log, name) for name in ("label", "greedy", "probability", "bit")}
        X = digits.X[log.row]
        one, other = (audit(Rounds(**kept, X=each)) for each in (X, np.asfortranarray(X)))
        assert one.rates == other.rates

    def test_replay_learns_what_play_learnt(self, digits: Any) -> None:
        first, second = (RidgeRegression(n_classes=10, n_features=64, gamma=0.1) for _ in range(2))
        log = simulate(first, digits, rates=(0.2, 0.4), rounds=3000, log=True).log
        best, margin = second.replay(digits.X[log.row], log)
        assert second.rounds == 3000
        np.testing.assert_array_equal(first.weights, second.weights)
        np.testing.assert_array_equal(best, log.greedy)
        np.testing.assert_array_equal(margin, log.margin)
