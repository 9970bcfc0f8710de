r"""Theorem 1: how many mistakes RCNBF makes at most, and what that says about exploration.

Let examples have length at most 1, and let W* be any weight matrix, with hinge loss R_H summed over all rounds and
D = ‖W*‖². With V0 = ρ0(1−ρ0)/β², V1 = ρ1(1−ρ1)/β² and P̂ = 1 − γ + γ/K, the expected number of mistakes is bounded by

.. math::

    \mathrm{E}[M] \le R_H + \sqrt{A_1 D R_H} + 3 \max\{A_1 D, \sqrt{A_2 D T}\} + \gamma T

where A1 and A2 bound E‖H‖² when ŷ is wrong and when it is right. Their exact values are

.. math::

    A_1 &= 1 + \frac{K}{\gamma}(1 + V_1) + V_0 \left(\frac{1}{\hat{P}} + \frac{K(K-2)}{\gamma}\right) \\
    A_2 &= \frac{1-\hat{P}}{\hat{P}} + \frac{V_1}{\hat{P}} + \frac{K(K-1)\,V_0}{\gamma}

The published A1 has a term in 1/γ² that the exact one does not have; both are offered.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fliptron.exploration import Exploration
from fliptron.refusals import real, whole
from fliptron.rounds import Rates


class Constants(NamedTuple):
    """Bounds on E‖H‖²/‖x‖²: A1 when the greedy label is wrong, A2 when it is right."""

    A1: float
    A2: float


class Advice(NamedTuple):
    """The exploration that makes the bound smallest, and that bound."""

    gamma: float
    mistakes: float


def variances(rates: tuple[float, float]) -> tuple[float, float]:
    """V0 and V1: the variance of h(f_ρ) when the played label is wrong, and when it is right."""
    rho0, rho1 = rates = Rates.of(rates)
    return rho0 * (1 - rho0) / rates.beta**2, rho1 * (1 - rho1) / rates.beta**2


def constants(*, n_classes: int, gamma: float, rates: tuple[float, float], published: bool = False) -> Constants:
    """A1 and A2 of Lemma 3, exact or as published.

    Parameters
    ----------
    n_classes
        K ≥ 2.
    gamma
        Exploration in (0, 1].
    rates
        (ρ0, ρ1), each ≥ 0 with a sum below 1.
    published
        The paper's constants instead of the exact ones.

    Examples
    --------
    >>> round(constants(n_classes=10, gamma=0.03, rates=(0.15, 0.15)).A1)
    1115
    >>> round(constants(n_classes=10, gamma=0.03, rates=(0.15, 0.15), published=True).A1)
    29802
    """
    K = whole("n_classes", n_classes, 2, 10**9)
    gamma = real("gamma", gamma, 0.0, 1.0, open_below=True)
    rho0, rho1 = rates = Rates.of(rates)
    V0, V1 = variances(rates)
    if published:
        beta, spread0 = rates.beta, rho0 * (1 - rho0)
        A1 = (2 * K + 2 * spread0 * K / beta + K * rho1 / beta**2) / gamma + spread0 * (K / (beta * gamma)) ** 2
        A2 = 2 * gamma + rho1 / (beta**2 * (1 - gamma)) + V0 * K**2 / gamma if gamma < 1 else np.inf
        return Constants(A1, A2)
    P = 1 - gamma + gamma / K
    return Constants(
        A1=1 + K / gamma * (1 + V1) + V0 * (1 / P + K * (K - 2) / gamma),
        A2=(1 - P) / P + V1 / P + K * (K - 1) * V0 / gamma,
    )


def mistake_bound(
    *,
    rounds: int,
    n_classes: int,
    gamma: float,
    rates: tuple[float, float],
    complexity: float,
    hinge_loss: float = 0.0,
    published: bool = False,
) -> float:
    """Theorem 1's bound on the expected number of mistakes. A bound above `rounds` says nothing.

    Parameters
    ----------
    rounds
        T ≥ 1.
    n_classes
        K ≥ 2.
    gamma
        Exploration in (0, 1].
    rates
        (ρ0, ρ1), each ≥ 0 with a sum below 1.
    complexity
        D = ‖W*‖² > 0, the squared norm of a weight matrix that does well.
    hinge_loss
        R_H ≥ 0, the hinge loss of that W* summed over all rounds; 0 where W* separates the data with margin 1.
    published
        The paper's constants instead of the exact ones.

    Examples
    --------
    >>> round(mistake_bound(rounds=10**7, n_classes=10, gamma=0.06, rates=(0.2, 0.4), complexity=10.0))
    1762531
    """
    T, D = whole("rounds", rounds, 1, 10**18), real("complexity", complexity, 0.0, open_below=True)
    R = real("hinge_loss", hinge_loss, 0.0)
    A1, A2 = constants(n_classes=n_classes, gamma=gamma, rates=rates, published=published)
    return float(R + np.sqrt(A1 * D * R) + 3 * max(A1 * D, np.sqrt(A2 * D * T)) + gamma * T)


def advise(
    *,
    rounds: int,
    n_classes: int,
    rates: tuple[float, float],
    complexity: float,
    hinge_loss: float = 0.0,
    published: bool = False,
) -> Advice:
    """The constant γ in (0, ½] for which Theorem 1's bound is smallest, and that bound.

    Parameters
    ----------
    rounds
        T ≥ 1.
    n_classes
        K ≥ 2.
    rates
        (ρ0, ρ1), each ≥ 0 with a sum below 1.
    complexity
        D = ‖W*‖² > 0, the squared norm of a weight matrix that does well.
    hinge_loss
        R_H ≥ 0, the hinge loss of that W* summed over all rounds.
    published
        The paper's constants instead of the exact ones.

    Examples
    --------
    >>> advice = advise(rounds=10**7, n_classes=10, rates=(0.2, 0.4), complexity=10.0)
    >>> round(advice.gamma, 3)
    0.059
    """

    def bound(log_gamma: float) -> float:
        return mistake_bound(
            rounds=rounds,
            n_classes=n_classes,
            gamma=float(np.exp(log_gamma)),
            rates=rates,
            complexity=complexity,
            hinge_loss=hinge_loss,
            published=published,
        )

    from scipy.optimize import minimize_scalar  # noqa: PLC0415  # slow to load

    # Its terms are powers of γ, but for P̂ ≈ 1: the bound has one minimum in log γ, perhaps at the edge.
    low, high = np.log(1e-12), np.log(0.5)
    inside = minimize_scalar(bound, bounds=(low, high), method="bounded", options={"xatol": 1e-9}).x
    best = min(float(inside), float(high), key=bound)
    return Advice(gamma=float(np.exp(best)), mistakes=bound(best))


def anytime(*, n_classes: int, rates: tuple[float, float], complexity: float) -> Exploration:
    r"""Exploration for which the number of rounds need not be known.

    .. math::

        \gamma_t &= \min\left\{\tfrac{1}{2}, \left(\frac{K^2 V_0 D}{12\,t}\right)^{1/3}\right\}
        \quad \text{if } V_0 > 0 \\
        \gamma_t &= \min\left\{\tfrac{1}{2}, \sqrt{\frac{K D (1 + V_1)}{2\,t}}\right\}
        \quad \text{if } V_0 = 0

    Each makes the leading terms of the proof, without the theorem's factor 3, smallest for every T at once: with V0 > 0
    these are √(D·Σ K²V0/γ_t) + Σ γ_t among γ_t = c·t^(−1/3); with V0 = 0, D·K(1+V1)/γ_T + Σ γ_t among
    γ_t = c·t^(−1/2).

    Parameters
    ----------
    n_classes
        K ≥ 2.
    rates
        (ρ0, ρ1), each ≥ 0 with a sum below 1.
    complexity
        D = ‖W*‖² > 0, the squared norm of a weight matrix that does well.

    Examples
    --------
    >>> anytime(n_classes=10, rates=(0.2, 0.4), complexity=12.0).at(12_500)
    0.2
    """
    K, D = whole("n_classes", n_classes, 2, 10**9), real("complexity", complexity, 0.0, open_below=True)
    V0, V1 = variances(rates)
    if V0 > 0.0:
        return Exploration((K * K * V0 * D / 12) ** (1 / 3), power=1 / 3, cap=0.5)
    return Exploration((K * D * (1 + V1) / 2) ** 0.5, power=0.5, cap=0.5)
