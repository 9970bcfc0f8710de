"""Labels that somebody verified: they teach, and what they say of the noise wins."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fliptron import Dataset, Decision, Fliptron, InputError


def test_a_few_hundred_audits_make_the_intervals_narrower(digits: Any) -> None:
    def width(audits: Any) -> Any:
        learner, random = Fliptron(n_classes=10, n_features=64, seed=1), np.random.default_rng(1)
        for t in range(6000):
            row = random.integers(digits.n_rows)
            x, y = digits.X[row], int(digits.y[row])
            decision = learner.decide(x)
            bit = int(random.random() >= 0.4 if decision.label == y else random.random() < 0.2)
            learner.learn(x, decision, bit, truth=y if t % 10 == 0 and audits else None)
        found = learner.estimate()
        assert found.intervals["rho0"][0] <= 0.2 <= found.intervals["rho0"][1]
        return {name: high - low for name, (low, high) in found.intervals.items()}

    with_audits, without = width(True), width(False)
    assert with_audits["rho0"] < 0.8 * without["rho0"]
    assert with_audits["rho1"] < 0.5 * without["rho1"]


def audited(data: Any, learner: Any, rounds: Any, rates: Any, verify: Any, truth: Any = None) -> Any:
    """Play by hand, and verify the rounds that `verify(t, bit)` says."""
    random, (rho0, rho1) = np.random.default_rng(1), rates
    for t in range(rounds):
        row = random.integers(data.n_rows)
        x, y = data.X[row], int(data.y[row] if truth is None else truth(random, row))
        decision = learner.decide(x)
        bit = int(random.random() >= rho1 if decision.label == y else random.random() < rho0)
        learner.learn(x, decision, bit, truth=y if verify(t, bit) else None)
    return learner.estimate()


def test_audits_win_over_a_plateau_that_is_elsewhere() -> None:
    """Three labels in ten are random, also where the learner is surest: alone, its plateau says so of the bits."""
    random = np.random.default_rng(1)
    X = random.standard_normal((3000, 8))
    data = Dataset.of(X, (X @ random.standard_normal((8, 20))).argmax(axis=1), classes=tuple(range(20)))

    def label(random: Any, row: Any) -> Any:
        return data.y[row] if random.random() > 0.3 else random.integers(20)

    verdicts = []
    for seed in (2, 3, 4):
        learner = Fliptron(n_classes=20, n_features=8, gamma=0.02, seed=seed)
        found = audited(data, learner, 24_000, (0.1, 0.2), lambda t, bit: t % 30 == 0, label)
        verdicts.append(found.verdict)
        for name, true in (("rho0", 0.1), ("rho1", 0.2)):
            low, high = found.intervals[name]
            assert low <= true <= high
            assert high - low < 0.15 or found.verdict != "identified"
    assert sorted(verdicts)[1] == "identified"  # one may find that flips depend on the label, as they seem to here


def test_where_every_round_is_verified_the_warm_up_ends_and_the_rates_are_known(digits: Any) -> None:
    learner = Fliptron(n_classes=10, n_features=64, seed=1)
    found = audited(digits, learner, 4000, (0.1, 0.2), lambda t, bit: True)
    assert learner.decide(digits.X[0]).probability > 0.5
    assert found.verdict == "identified"
    assert found.intervals["rho0"][0] <= 0.1 <= found.intervals["rho0"][1]
    assert found.intervals["rho1"][0] <= 0.2 <= found.intervals["rho1"][1]


def test_verifying_only_what_was_clicked_is_noticed(digits: Any) -> None:
    learner = Fliptron(n_classes=10, n_features=64, gamma=0.02, seed=1)
    found = audited(digits, learner, 20_000, (0.2, 0.4), lambda t, bit: bit and t % 10 == 0)
    assert found.verdict == "weakly identified"
    assert "without looking at the bit" in found.reason


def test_what_comes_out_later_is_an_audit_of_its_own(digits: Any) -> None:
    now, later = (Fliptron(n_classes=10, n_features=64, seed=1) for _ in range(2))
    x, y = digits.X[0], int(digits.y[0])
    now.learn(x, now.decide(x), 1, truth=y)
    decision = later.decide(x)
    later.learn(x, decision, 1)
    later.audit(x, decision, 1, y)
    assert now.estimate().details["audited"] == later.estimate().details["audited"] == 1
    later.audit(x, decision, 0, None)
    assert later.estimate().details["audited"] == 2
    later.audit(x, decision, True, y)  # as `learn` takes it
    later.audit(x, decision, np.bool_(False), y)
    assert later.estimate().details["audited"] == 4
    for bad in ((x, decision, 2, y), (x, decision, 1, 10), (x, None, 1, y), (x, (), 1, y), (x[:3], decision, 1, y)):
        with pytest.raises(InputError):
            later.audit(*bad)
    assert later.estimate().details["audited"] == 4


def test_a_verified_round_passes_the_same_gate(digits: Any) -> None:
    learner = Fliptron(n_classes=10, n_features=64, seed=1)
    x = digits.X[0]
    for decision, bit, more in (
        (Decision(99, 0, 0.5), 1, {"truth": 1}),
        (Decision(1, 0, float("nan")), 1, {"truth": 1}),
        (None, 1, {"truth": 1}),
        (Decision(1, 1, 1.0), np.array([1, 0]), {"truth": 1}),
        (Decision(1, 1, 1.0), 2, {"truth": 1}),
        (Decision(1, 1, 1.0), 1, {"truth": 1, "eligible": [77]}),
        (Decision(3, 3, 1.0), 1, {"eligible": [0, 1]}),
    ):
        with pytest.raises(InputError):
            learner.learn(x, decision, bit, **more)
    assert learner.estimate().details["rounds"] == learner.estimate().details["audited"] == 0


def test_truths_alone_teach(digits: Any) -> None:
    learner = Fliptron(n_classes=10, n_features=64, seed=1)
    for i in range(1500):
        learner.learn(digits.X[i], learner.decide(digits.X[i]), truth=int(digits.y[i]))
    assert np.mean(learner.predict(digits.X[1500:]) == digits.y[1500:]) > 0.85
    with pytest.raises(InputError, match="truth is 10"):
        learner.learn(digits.X[0], learner.decide(digits.X[0]), truth=10)
