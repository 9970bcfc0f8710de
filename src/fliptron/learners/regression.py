"""Regression of the raw bit: the channel keeps the order of labels, so no rates are needed."""

from __future__ import annotations

from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from fliptron.arrays import Array, Row
from fliptron.exploration import Exploration
from fliptron.kernels.compiling import PART, compiled
from fliptron.kernels.factors import absorb, dense, flaw_of_factor, variance
from fliptron.kernels.loop import Choice, Scratch, best_eligible, chooses, learns, may_play, score
from fliptron.kernels.rows import index, size, value
from fliptron.kernels.vectors import dot
from fliptron.learners.base import Learner
from fliptron.learners.memory import check_memory
from fliptron.refusals import real


@compiled(**PART)
def least_squares(state: Any, r: int, x: Row, target: float) -> None:
    """Recursive least squares for label r: A_r += xxᵀ, w_r = A_r⁻¹ Σ target·x."""
    W, gain = state.W, state.gain
    dense(x, state.copy)
    step = (target - dot(W, r, x)) / absorb(state.factor[r], state.copy, state.room, gain)
    for i in range(gain.shape[0]):
        W[r, i] += step * gain[i]


class RidgeState(NamedTuple):
    """Weights and A_l⁻¹ of every label."""

    W: Array
    scores: Scratch
    factor: Array  # K×d×d: A_l⁻¹, see `fliptron.kernels.factors`
    copy: Scratch  # d, as the next two; arrays of their own, which a compiler knows do not overlap
    room: Scratch
    gain: Scratch


@learns(RidgeState)
def ridge(state: RidgeState, x: Row, label: int, greedy: int, probability: float, feedback: int) -> None:
    """Regress the raw bit, for the played label only."""
    least_squares(state, label, x, np.float64(feedback))


class RidgeRegression(Learner):
    r"""One ridge regression of the noisy bit per label, ε-greedy (also known as LinGreedy).

    The mean bit of a label, ρ0 + β·P(y = l | x), rises with the chance P(y = l | x) that the label is right. So the
    label with the highest mean bit is the best label, noise or not, and no division by P(ỹ) inflates the variance. With
    A_l = λI and b_l = 0 at the start, the played label's regression takes in the bit:

    .. math::

        A_{\tilde{y}} &\leftarrow A_{\tilde{y}} + x x^\top \\
        b_{\tilde{y}} &\leftarrow b_{\tilde{y}} + f_\rho\,x \\
        w_{\tilde{y}} &= A_{\tilde{y}}^{-1} b_{\tilde{y}}

    A⁻¹ is kept as triangular factors and updated by Bierman's method, in O(d²) per round. No subtraction can make a
    variance negative, so the weights keep many correct digits even for raw features such as timestamps. RCNBF's
    guarantee covers an adversary who orders the examples; this learner's does not.

    Parameters
    ----------
    n_classes, n_features
        K ≥ 2 labels, d ≥ 1 features.
    gamma
        Exploration in [0, 1], a number or an `Exploration`.
    regularization
        λ, from 10⁻³⁰ to 10³⁰.
    seed
        Of the exploration.

    Examples
    --------
    >>> learner = RidgeRegression(n_classes=3, n_features=2, gamma=0.05, regularization=1.0)
    >>> learner.learn([0.6, 0.8], learner.decide([0.6, 0.8]), 1)
    >>> learner.weights[0].round(3)
    array([0.3, 0.4])

    References
    ----------
    Hoerl & Kennard (1970), "Ridge regression"; Bierman (1977), "Factorization methods for discrete sequential
    estimation".
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
        self.regularization = real("regularization", regularization, 1e-30, 1e30)
        super().__init__(n_classes=n_classes, n_features=n_features, gamma=gamma, seed=seed)

    def _start(self) -> Any:
        return RidgeState(self._weights(), self._scores(), self._factor(), *self._room())

    def _room(self) -> tuple[Array, Array, Array]:
        d = self.n_features
        return np.zeros(d), np.zeros(d), np.zeros(d)

    def _factor(self) -> Array:
        """A_l⁻¹ of every label, I/λ at the start."""
        K, d = self.n_classes, self.n_features
        check_memory(f"{type(self).__name__} at K={K}, d={d}", K * d * d, "LeastMeanSquares, which needs K·d")
        return np.tile(np.eye(d) / self.regularization, (K, 1, 1))

    def _flaw(self) -> str:
        return flaw_of_factor(self.state.factor)


class ConfiditState(NamedTuple):
    """A ridge's, and the weight of the confidence."""

    W: Array
    scores: Scratch
    factor: Array
    copy: Scratch
    room: Scratch
    gain: Scratch
    alpha: float


@chooses(ConfiditState)
def confident(state: ConfiditState, x: Row, gamma: float, u: float, eligible: Array) -> Choice:
    """argmax_r w_r·x + α·√(xᵀ A_r⁻¹ x): no chance involved."""
    score(state, x, state.scores)
    greedy = best_eligible(state.scores, eligible)
    label, top = greedy, -np.inf
    for r in range(state.W.shape[0]):
        if may_play(eligible, r):
            optimistic = state.scores[r] + state.alpha * sqrt(variance(state.factor[r], x, state.room))
            if optimistic > top:
                label, top = r, optimistic
    return label, greedy, 1.0


@learns(ConfiditState)
def confidit(state: ConfiditState, x: Row, label: int, greedy: int, probability: float, feedback: int) -> None:
    """Regress the bit as ±1, for the played label only."""
    least_squares(state, label, x, 2.0 * feedback - 1.0)


class Confidit(RidgeRegression):
    r"""Ridge regression of the bit as ±1 with an upper confidence bound; its choice is not random.

    .. math::

        \tilde{y} = \arg\max_r \; w_r \cdot x + \alpha \sqrt{x^\top A_r^{-1} x}

    This is the form its authors ran in their experiments, with one constant α for the confidence; the projection of w
    onto −1 ≤ w·x ≤ 1, which their analysis needs, is left out. A⁻¹ is kept as in `RidgeRegression`. Every decision has
    probability 1, so its log cannot be used to estimate the accuracy of another policy.

    Parameters
    ----------
    n_classes, n_features
        K ≥ 2 labels, d ≥ 1 features.
    alpha
        Weight of the confidence, from 0 to 10³⁰. If it is too small for the noise, wrong labels may be played for ever.
    regularization
        λ, from 10⁻³⁰ to 10³⁰.
    seed
        Taken so that all learners are built alike; nothing here is random.

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
        self.alpha = real("alpha", alpha, 0.0, 1e30)
        super().__init__(
            n_classes=n_classes, n_features=n_features, gamma=0.0, regularization=regularization, seed=seed
        )

    def _start(self) -> ConfiditState:
        return ConfiditState(self._weights(), self._scores(), self._factor(), *self._room(), self.alpha)


class GradientState(NamedTuple):
    """Weights and the squared gradients of each."""

    W: Array
    scores: Scratch
    squares: Array  # K×d: Σ g², per weight
    step: float


@learns(GradientState)
def gradient(state: GradientState, x: Row, label: int, greedy: int, probability: float, feedback: int) -> None:
    """AdaGrad on ½(w_ỹ·x − f_ρ)²: each weight's step is η/√(Σ g²)."""
    error = dot(state.W, label, x) - feedback
    for j in range(size(x)):
        i = index(x, j)
        g = error * value(x, j)
        state.squares[label, i] += g * g
        if state.squares[label, i] > 0.0:
            state.W[label, i] -= state.step * g / sqrt(state.squares[label, i])


class LeastMeanSquares(Learner):
    r"""The first-order cousin of `RidgeRegression`: AdaGrad steps on the squared error, O(d) per round.

    Only the played label's weights move, each by a step of its own; squares, roots and quotients are taken weight by
    weight:

    .. math::

        g &= (w_{\tilde{y}} \cdot x - f_\rho)\,x \\
        G_{\tilde{y}} &\leftarrow G_{\tilde{y}} + g^2 \\
        w_{\tilde{y}} &\leftarrow w_{\tilde{y}} - \eta\,g / \sqrt{G_{\tilde{y}}}

    Parameters
    ----------
    n_classes, n_features
        K ≥ 2 labels, d ≥ 1 features.
    gamma
        Exploration in [0, 1], a number or an `Exploration`.
    step
        η, from 10⁻³⁰ to 10⁹.
    dtype
        Precision of the weights, "float64" or "float32".
    seed
        Of the exploration.

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
        self.step = real("step", step, 1e-30, 1e9)
        super().__init__(n_classes=n_classes, n_features=n_features, gamma=gamma, seed=seed, dtype=dtype)

    def _start(self) -> GradientState:
        W = self._weights()
        return GradientState(W, self._scores(), squares=np.zeros(W.shape), step=self.step)

    def _bounds(self) -> dict[str, tuple[float, float]]:
        return {"squares": (0.0, 1e250), "W": (-1e30, 1e30)}
