"""The bound, its minimum, and the schedule without a horizon."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fliptron import InputError, theory

CASES = [
    {"rounds": T, "n_classes": K, "rates": rates, "complexity": D, "hinge_loss": R}
    for T in (10**4, 10**7)
    for K in (2, 10)
    for rates in ((0.0, 0.0), (0.0, 0.4), (0.2, 0.4), (0.4, 0.4))
    for D, R in ((1.0, 0.0), (100.0, 1000.0))
]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("published", [False, True])
def test_advice_is_the_minimum_of_the_bound(case: Any, published: Any) -> None:
    gamma, mistakes = theory.advise(**case, published=published)
    grid = np.geomspace(1e-9, 0.5, 4000)
    bounds = [theory.mistake_bound(**case, gamma=float(g), published=published) for g in grid]
    assert mistakes <= min(bounds) * (1 + 1e-9)
    assert theory.mistake_bound(**case, gamma=gamma, published=published) == pytest.approx(mistakes)


@pytest.mark.parametrize("rates", [(0.0, 0.0), (0.15, 0.15), (0.2, 0.4), (0.4, 0.4)])
@pytest.mark.parametrize("gamma", [0.001, 0.03, 0.49])
def test_published_constants_are_never_smaller(rates: Any, gamma: Any) -> None:
    exact = theory.constants(n_classes=10, gamma=gamma, rates=rates)
    published = theory.constants(n_classes=10, gamma=gamma, rates=rates, published=True)
    assert published.A1 >= exact.A1
    assert published.A2 >= exact.A2


def test_bound_is_theorem_1_term_by_term() -> None:
    settings = {"n_classes": 10, "gamma": 0.1, "rates": (0.2, 0.4)}
    A1, A2 = theory.constants(**settings)
    D, R, T = 7.0, 50.0, 10**6
    expected = R + np.sqrt(A1 * D * R) + 3 * max(A1 * D, np.sqrt(A2 * D * T)) + 0.1 * T
    assert theory.mistake_bound(rounds=T, complexity=D, hinge_loss=R, **settings) == pytest.approx(expected, rel=1e-12)


def test_published_constants_are_lemma_3s() -> None:
    K, g, r0, r1 = 10, 0.1, 0.2, 0.4
    b = 1 - r0 - r1
    A1 = 2 * K / g + 2 * r0 * (1 - r0) * K / (b * g) + K * r1 / (b * b * g) + r0 * (1 - r0) * K * K / (b * g) ** 2
    A2 = 2 * g + r1 / (b * b * (1 - g)) + r0 * (1 - r0) * K * K / (b * b * g)
    published = theory.constants(n_classes=K, gamma=g, rates=(r0, r1), published=True)
    assert published == pytest.approx((A1, A2), rel=1e-12)


def test_anytime_constant_without_false_clicks() -> None:
    V1 = theory.variances((0.0, 0.4))[1]
    quiet = theory.anytime(n_classes=10, rates=(0.0, 0.4), complexity=7)
    t = 10**8
    assert quiet.at(t) == pytest.approx(np.sqrt(10 * 7 * (1 + V1) / (2 * t)))


def test_constants_without_noise_are_banditrons() -> None:
    K, gamma = 10, 0.1
    P = 1 - gamma + gamma / K
    A1, A2 = theory.constants(n_classes=K, gamma=gamma, rates=(0, 0))
    assert pytest.approx(1 + K / gamma) == A1
    assert pytest.approx((1 - P) / P) == A2


def test_anytime_schedule_falls_as_the_cube_root_and_as_the_root_without_false_clicks() -> None:
    noisy = theory.anytime(n_classes=10, rates=(0.2, 0.4), complexity=10)
    assert noisy.at(1) == 0.5
    assert noisy.at(8 * 10**6) == pytest.approx(noisy.at(10**6) / 2)
    quiet = theory.anytime(n_classes=10, rates=(0.0, 0.4), complexity=10)
    assert quiet.at(4 * 10**6) == pytest.approx(quiet.at(10**6) / 2)


def test_anytime_constant_is_the_minimum_of_the_leading_terms() -> None:
    K, D, T = 10, 7.0, 10**5
    V0, _ = theory.variances((0.2, 0.4))
    t = np.arange(1, T + 1)

    def leading(c: Any) -> Any:
        gamma = c * t ** (-1 / 3)
        return np.sqrt(D * np.sum(K * K * V0 / gamma)) + gamma.sum()

    c = theory.anytime(n_classes=K, rates=(0.2, 0.4), complexity=D).scale
    assert leading(c) < min(leading(0.97 * c), leading(1.03 * c))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rates": (0.6, 0.4)}, "rho0 \\+ rho1 is 1"),
        ({"complexity": 0.0}, "complexity is 0"),
        ({"rounds": 0}, "rounds is 0"),
        ({"n_classes": 1}, "n_classes is 1"),
        ({"hinge_loss": -1.0}, "hinge_loss is -1"),
    ],
)
def test_bad_settings_are_refused(change: Any, words: Any) -> None:
    with pytest.raises(InputError, match=words):
        theory.advise(**(CASES[0] | change))
