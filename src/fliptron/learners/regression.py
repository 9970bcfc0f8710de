"""Regression of the raw bit: the channel keeps the order of labels, so no rates are needed."""

# mypy: disable-error-code="untyped-decorator,no-untyped-def,no-untyped-call"
from __future__ import annotations

from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from fliptron.arrays import Array, real
from fliptron.exploration import Exploration
from fliptron.kernels.compiling import STEP, compiled
from fliptron.kernels.loop import chooses, learns, score
from fliptron.kernels.matrices import apply, downdate, quadratic
from fliptron.kernels.rows import index, size, value
from fliptron.kernels.vectors import argmax, dot, pick
from fliptron.learners.base import Learner, check_memory


@compiled(**STEP)
def least_squares(W, inverse, r, x, target, u):
    """Recursive least squares for label r: A_r += xxᵀ, w_r = A_r⁻¹ Σ target·x."""
    apply(inverse[r], x, u)
    scale = 1.0 / (1.0 + max(pick(u, x), 0.0))  # rounding must not make it negative
    step = (target - dot(W, r, x)) * scale
    for i in range(u.shape[0]):
        W[r, i] += step * u[i]
    downdate(inverse[r], u, scale)


class RidgeState(NamedTuple):
    """Weights and A_l⁻¹ of every label."""

    W: Array
    scores: Array
    inverse: Array  # K×d×d, of which the lower triangles count
    work: Array  # d


@learns(RidgeState)
def ridge(state, x, label, greedy, probability, feedback):
    """Regress the raw bit, for the played label only."""
    least_squares(state.W, state.inverse, label, x, np.float64(feedback), state.work)


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


class ConfiditState(NamedTuple):
    """A ridge's, and the weight of the confidence."""

    W: Array
    scores: Array
    inverse: Array
    alpha: float
    work: Array


@chooses(ConfiditState)
def confident(state, x, gamma, u):
    """argmax_r w_r·x + α·√(xᵀ A_r⁻¹ x): no chance involved."""
    score(state, x, state.scores)
    label, top = 0, -np.inf
    for r in range(state.W.shape[0]):
        optimistic = state.scores[r] + state.alpha * sqrt(quadratic(state.inverse[r], x, state.work))
        if optimistic > top:
            label, top = r, optimistic
    return label, argmax(state.scores, -1), 1.0


@learns(ConfiditState)
def confidit(state, x, label, greedy, probability, feedback):
    """Regress the bit as ±1, for the played label only."""
    least_squares(state.W, state.inverse, label, x, 2.0 * feedback - 1.0, state.work)


class Confidit(RidgeRegression):
    """Ridge regression of the bit as ±1 with an upper confidence bound, and no chance in the choice.

        ỹ = argmax_r w_r·x + α·√(xᵀ A_r⁻¹ x)

    This is the form its authors ran in their experiments, one constant α for the confidence; the
    projection of w onto −1 ≤ w·x ≤ 1, which their analysis needs, is left out. Every decision has
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


class GradientState(NamedTuple):
    """Weights and the squared gradients of each."""

    W: Array
    scores: Array
    squares: Array  # K×d: Σ g², per weight
    step: float


@learns(GradientState)
def gradient(state, x, label, greedy, probability, feedback):
    """AdaGrad on ½(w_ỹ·x − f_ρ)²: each weight's step is η/√(Σ g²)."""
    error = dot(state.W, label, x) - feedback
    for j in range(size(x)):
        i = index(x, j)
        g = error * value(x, j)
        state.squares[label, i] += g * g
        if state.squares[label, i] > 0.0:
            state.W[label, i] -= state.step * g / sqrt(state.squares[label, i])


class LeastMeanSquares(Learner):
    """The first-order cousin of `RidgeRegression`: AdaGrad steps on the squared error, O(d) a round.

    For the played label only, with g = (w_ỹ·x − f_ρ)·x and per weight,

        G ← G + g²,   w ← w − η·g/√G

    Parameters
    ----------
    n_classes, n_features : K ≥ 2 labels, d ≥ 1 features.
    gamma : exploration in [0, 1], a number or an `Exploration`.
    step : η > 0.
    dtype : precision of the weights, "float64" or "float32".
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

    tables = 1
    by_feature = True

    def __init__(
        self,
        *,
        n_classes: int,
        n_features: int,
        gamma: float | Exploration = 0.01,
        step: float = 0.2,
        dtype: str = "float64",
        seed: int = 0,
    ) -> None:
        self.step = real("step", step, 0.0, open_below=True)
        super().__init__(n_classes=n_classes, n_features=n_features, gamma=gamma, seed=seed, dtype=dtype)

    def _start(self, W: Array, scores: Array) -> GradientState:
        return GradientState(W, scores, squares=np.zeros(W.shape), step=self.step)
