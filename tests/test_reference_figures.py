"""Figures known before the project began hold: SynSep and SynNonSep after a million rounds."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from fliptron import (
    EPABF,
    RDUE,
    Banditron,
    Gappletron,
    KernelSeparable,
    Newtron,
    Perceptron,
    Separable,
    load,
    simulate,
)


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


class TestPapersWords:
    """What the papers of other learners say of SynSep, and what noise does to them."""

    @pytest.mark.parametrize("make", [Separable, partial(KernelSeparable, budget=1000)])
    def test_separable_classes_cost_finitely_many_mistakes(self, make: Any) -> None:
        """Beygelzimer et al. (2019), Theorem 1: the bound on mistakes does not grow with the rounds."""
        rounds = 300_000 if make is Separable else 20_000
        learner = make(n_classes=9, n_features=400, seed=1)
        trace = simulate(learner, load("synsep"), rounds=rounds, seed=1)
        early = trace.mistakes[np.searchsorted(trace.rounds, rounds // 3)]
        assert early < 600
        assert trace.mistakes[-1] - early < 0.05 * early
        for rates, least, most in (
            ((0.0, 0.2), 0.4, 0.9),
            ((0.2, 0.0), 0.0, 0.15),
        ):  # few rounds are wrong: ρ0 is harmless
            learner = make(n_classes=9, n_features=400, seed=1)
            assert least < simulate(learner, load("synsep"), rates=rates, rounds=5000).error < most

    def test_newtron_learns_synsep_and_survives_known_noise(self) -> None:
        """Hazan & Kale (2011), section 5: on SynSep its error is below Banditron's. Told the rates, it stands noise."""

        def error(noise: Any, **settings: Any) -> float:
            learner = Newtron(n_classes=9, n_features=400, seed=1, **settings)
            return simulate(learner, load("synsep"), rates=noise, rounds=100_000, seed=1).error

        for newtrons, banditrons in ((0.01, 0.014), (0.001, 0.0005)):  # the papers', and the best of each
            banditron = Banditron(n_classes=9, n_features=400, gamma=banditrons, seed=1)
            told = simulate(banditron, load("synsep"), rounds=100_000, seed=1).error
            assert error((0.0, 0.0), gamma=newtrons, curvature=0.01) < 0.7 * told
        assert error((0.2, 0.4), rates=(0.2, 0.4)) < 0.6 * error((0.2, 0.4))

    @pytest.mark.parametrize("make", [Gappletron, RDUE])
    def test_a_softmax_learns_synsep_and_survives_known_noise(self, make: Any) -> None:
        """Without noise its error is below Banditron's. Told the rates, it stands noise."""

        def error(make: Any, noise: Any, **settings: Any) -> float:
            learner = make(n_classes=9, n_features=400, seed=1, **settings)
            return simulate(learner, load("synsep"), rates=noise, rounds=100_000, seed=1).error

        assert error(make, (0.0, 0.0)) < error(Banditron, (0.0, 0.0))
        told = error(make, (0.2, 0.4), gamma=0.2, rates=(0.2, 0.4))
        assert told < 0.6 * error(make, (0.2, 0.4), gamma=0.2)

    @pytest.mark.parametrize("noise", [(0.0, 0.0), (0.2, 0.4)])
    def test_exact_steps_learn_synsep(self, noise: Any) -> None:
        """Arora & Manwani (2020): its error is below Banditron's; with flipped bits too."""
        learners = [make(n_classes=9, n_features=400, gamma=0.05, seed=1) for make in (EPABF, Banditron)]
        errors = [simulate(learner, load("synsep"), rates=noise, rounds=100_000, seed=1).error for learner in learners]
        assert errors[0] < errors[1]
