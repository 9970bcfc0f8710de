"""Regression of the raw bit: the channel keeps the order of labels, so no rates are needed."""

from __future__ import annotations

from typing import Any

import numpy as np

from fliptron.arrays import Array, real
from fliptron.exploration import Exploration
from fliptron.kernels import ConfiditState, GradientState, RidgeState
from fliptron.learners.base import Learner, check_memory


class RidgeRegression(Learner):
    """One ridge regression of the noisy bit for each label, ε-greedy (also known as LinGreedy).

    E[f_ρ | x, l] = ρ0 + β·P(y = l | x) is increasing in P(y = l | x): the best label under the noise is
    the best label, and no 1/P(ỹ) inflates the variance. For the played label only,

        A_ỹ ← A_ỹ + xxᵀ,   b_ỹ ← b_ỹ + f_ρ·x,   w_ỹ = A_ỹ⁻¹ b_ỹ        (A = λI, b = 0 at the start)

    kept by Sherman and Morrison's formula: O(d²) a round. Unlike RCNBF's, its guarantee does not cover
    an adversary who orders the examples.

    Parameters
    ----------
    n_classes, n_features : K ≥ 2 labels, d ≥ 1 features.
    gamma : exploration in [0, 1], a number or an `Exploration`.
    regularization : λ > 0.
    seed : of the exploration.

    Examples
    --------
    >>> learner = RidgeRegression(n_classes=3, n_features=2, gamma=0.05, regularization=1.0)
    >>> learner.learn([0.6, 0.8], learner.decide([0.6, 0.8]), 1)
    >>> learner.weights[0].round(3)
    array([0.3, 0.4])

    References
    ----------
    Hoerl & Kennard (1970), "Ridge regression"; Sherman & Morrison (1950).
    """

    def __init__(
        self,
        *,
        n_classes: int,
        n_features: int,
        gamma: float | Exploration = 0.01,
        regularization: float = 0.1,
        seed: int = 0,
    ) -> None:
        self.regularization = real("regularization", regularization, 0.0, open_below=True)
        super().__init__(n_classes=n_classes, n_features=n_features, gamma=gamma, seed=seed)

    def _start(self, W: Array, scores: Array) -> Any:
        return RidgeState(W, scores, self._inverse(), work=np.zeros(self.n_features))

    def _inverse(self) -> Array:
        """A_l⁻¹ of every label, I/λ at the start."""
        K, d = self.n_classes, self.n_features
        check_memory(f"{type(self).__name__} at K={K}, d={d}", K * d * d, "LeastMeanSquares, which needs K·d")
        return np.tile(np.eye(d) / self.regularization, (K, 1, 1))


class Confidit(RidgeRegression):
    """Ridge regression of the bit as ±1 with an upper confidence bound, and no chance in the choice.

        ỹ = argmax_r w_r·x + α·√(xᵀ A_r⁻¹ x)

    This is the form its authors ran in their experiments, one constant α for the confidence; the
    projection of w onto |w·x| ≤ 1, which their analysis needs, is left out. Every decision has
    probability 1, so its log cannot be used to value another policy.

    Parameters
    ----------
    n_classes, n_features : K ≥ 2 labels, d ≥ 1 features.
    alpha : weight of the confidence, ≥ 0. Too small for the noise, it can lock onto wrong labels.
    regularization : λ > 0.
    seed : kept for symmetry; nothing here is random.

    Examples
    --------
    >>> Confidit(n_classes=3, n_features=2).decide([0.6, 0.8])
    Decision(label=0, greedy=0, probability=1.0)

    References
    ----------
    Crammer & Gentile (2011), "Multiclass classification with bandit feedback using adaptive
    regularization".
    """

    def __init__(
        self, *, n_classes: int, n_features: int, alpha: float = 1.0, regularization: float = 1.0, seed: int = 0
    ) -> None:
        self.alpha = real("alpha", alpha, 0.0)
        super().__init__(
            n_classes=n_classes, n_features=n_features, gamma=0.0, regularization=regularization, seed=seed
        )

    def _start(self, W: Array, scores: Array) -> ConfiditState:
        return ConfiditState(W, scores, self._inverse(), self.alpha, work=np.zeros(self.n_features))


class LeastMeanSquares(Learner):
    """The first-order cousin of `RidgeRegression`: AdaGrad steps on the squared error, O(d) a round.

    For the played label only, with g = (w_ỹ·x − f_ρ)·x and per weight,

        G ← G + g²,   w ← w − η·g/√G

    Parameters
    ----------
    n_classes, n_features : K ≥ 2 labels, d ≥ 1 features.
    gamma : exploration in [0, 1], a number or an `Exploration`.
    step : η > 0.
    seed : of the exploration.

    Examples
    --------
    >>> learner = LeastMeanSquares(n_classes=3, n_features=2, gamma=0.05, step=0.1)
    >>> learner.learn([0.6, 0.8], learner.decide([0.6, 0.8]), 1)
    >>> learner.weights[0].round(3)
    array([0.1, 0.1])

    References
    ----------
    Widrow & Hoff (1960), "Adaptive switching circuits"; Duchi, Hazan & Singer (2011), "Adaptive
    subgradient methods".
    """

    def __init__(
        self,
        *,
        n_classes: int,
        n_features: int,
        gamma: float | Exploration = 0.01,
        step: float = 0.2,
        seed: int = 0,
    ) -> None:
        self.step = real("step", step, 0.0, open_below=True)
        super().__init__(n_classes=n_classes, n_features=n_features, gamma=gamma, seed=seed)

    def _start(self, W: Array, scores: Array) -> GradientState:
        return GradientState(W, scores, squares=np.zeros_like(W), step=self.step)
