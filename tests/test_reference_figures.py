"""Figures known before the project began hold: SynSep and SynNonSep after a million rounds."""

from __future__ import annotations

from typing import Any

import pytest

from fliptron import Banditron, Perceptron, load, simulate


def error(name: Any, make: Any, seed: Any) -> Any:
    data = load(name)
    learner = make(n_classes=9, n_features=400, seed=seed)
    return simulate(learner, data, rounds=10**6, seed=seed).error


@pytest.mark.parametrize("seed", range(3))
def test_banditron_on_synsep(seed: Any) -> None:
    assert error("synsep", lambda **shape: Banditron(gamma=0.014, **shape), seed) == pytest.approx(0.0175, abs=0.0025)


def test_perceptron_on_synnonsep() -> None:
    assert error("synnonsep", Perceptron, 0) == pytest.approx(0.097, abs=0.005)


@pytest.mark.parametrize("seed", range(3))
def test_banditron_on_synnonsep(seed: Any) -> None:
    error_rate = error("synnonsep", lambda **shape: Banditron(gamma=0.006, **shape), seed)
    assert 0.105 < error_rate < 0.142
