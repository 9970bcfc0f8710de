"""Newtron: a softmax learnt by online Newton steps, in its full and its diagonal form, and behind a channel too."""

from __future__ import annotations

from math import exp, sqrt
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from fliptron.arrays import Array, Row
from fliptron.exploration import Exploration
from fliptron.kernels.compiling import PART, compiled
from fliptron.kernels.factors import absorb, flaw_of_factor
from fliptron.kernels.loop import (
    ALL_ELIGIBLE,
    Choice,
    Scratch,
    best_eligible,
    chooses,
    count_eligible,
    learns,
    may_play,
    score,
    scores,
)
from fliptron.kernels.rows import index, size, value
from fliptron.kernels.vectors import argmax, scores_of
from fliptron.learners.base import Learner
from fliptron.learners.memory import check_memory
from fliptron.learners.rcnbf import unbiased
from fliptron.refusals import one_of, real
from fliptron.rounds import Rates


class DiagonalNewtronState(NamedTuple):
    """θ = −b/A, weight by weight, of which W = scale·θ is the projection."""

    W: Array  # θ
    scores: Scratch
    rates: Array
    A: Array  # K×d
    b: Array  # K×d
    norm: Array  # ‖θ‖², and the scale
    alpha: float
    curvature: float
    radius: float


class FullNewtronState(NamedTuple):
    """θ = −A⁻¹b over all Kd weights, of which W = scale·θ is the projection."""

    W: Array  # θ
    scores: Scratch
    rates: Array
    factor: Array  # Kd×Kd: A⁻¹, see `fliptron.kernels.factors`
    norm: Array
    z: Scratch  # Kd, as the next two
    room: Scratch
    gain: Scratch
    alpha: float
    curvature: float
    radius: float


@compiled(**PART)
def chance(state: DiagonalNewtronState | FullNewtronState, label: int, best: int, eligible: Array) -> float:
    """p_r = exp(α s_r)/Σ exp(α s), of the scores last looked at, among labels that may be played; `best` is best."""
    s, total = state.scores, 0.0
    for r in range(s.shape[0]):
        if may_play(eligible, r):
            total += exp(state.alpha * (s[r] - s[best]))
    return exp(state.alpha * (s[label] - s[best])) / total


@scores(DiagonalNewtronState)
@scores(FullNewtronState)
def newtron_scores(state: DiagonalNewtronState, x: Row, out: Array) -> None:
    """w_r · x, with W = scale·θ."""
    scores_of(state.W, x, out)
    for r in range(out.shape[0]):
        out[r] *= state.norm[1]


@chooses(DiagonalNewtronState)
@chooses(FullNewtronState)
def softmax_choice(state: DiagonalNewtronState, x: Row, gamma: float, u: float, eligible: Array) -> Choice:
    """ỹ ~ p̃ = (1 − γ)·p + γ/K, with p the softmax of α·Wx."""
    score(state, x, state.scores)
    K, greedy = count_eligible(state.scores, eligible), best_eligible(state.scores, eligible)
    first, below, label, p = chance(state, greedy, greedy, eligible), 0.0, greedy, 1.0
    for r in range(state.scores.shape[0]):
        if may_play(eligible, r):
            odds = exp(state.alpha * (state.scores[r] - state.scores[greedy]))
            label, p = r, (1.0 - gamma) * odds * first + gamma / K
            below += p
            if u < below:
                break
    return label, greedy, min(p, 1.0)  # rounding may leave the last label to the last of u


@compiled(**PART)
def project(state: DiagonalNewtronState | FullNewtronState) -> None:
    """W = θ, or the nearest point of the ball ‖W‖ ≤ D."""
    length = sqrt(max(state.norm[0], 0.0))
    state.norm[1] = 1.0 if length <= state.radius else state.radius / length


@learns(DiagonalNewtronState)
def newtron_diagonal(
    state: DiagonalNewtronState, x: Row, label: int, greedy: int, probability: float, feedback: int
) -> None:
    """A += κβ·δ∘δ, b += (1 − κβ⟨δ, W⟩)·δ, θ = −b/A."""
    K = state.scores.shape[0]
    score(state, x, state.scores)
    held = chance(state, label, argmax(state.scores, -1), ALL_ELIGIBLE)
    weight = (unbiased(feedback, state.rates) - held) / probability
    times = state.curvature * (probability if feedback == 1 else 1.0)
    inner = 0.0  # ⟨δ, W⟩
    for r in range(K):
        inner += weight * (1.0 / K - (1.0 if r == label else 0.0)) * state.scores[r]
    for r in range(K):
        v = weight * (1.0 / K - (1.0 if r == label else 0.0))
        for j in range(size(x)):
            i = index(x, j)
            delta = v * value(x, j)
            state.A[r, i] += times * delta * delta
            state.b[r, i] += (1.0 - times * inner) * delta
            old = state.W[r, i]
            state.W[r, i] = -state.b[r, i] / state.A[r, i]
            state.norm[0] += state.W[r, i] * state.W[r, i] - old * old
    project(state)


@learns(FullNewtronState)
def newtron_full(state: FullNewtronState, x: Row, label: int, greedy: int, probability: float, feedback: int) -> None:
    """The same with the whole A. With u = A⁻¹δ, θ −= u·(1 + κβ⟨δ, θ − W⟩)/(1 + κβ·δᵀu)."""
    K, d = state.W.shape
    score(state, x, state.scores)
    held = chance(state, label, argmax(state.scores, -1), ALL_ELIGIBLE)
    weight = (unbiased(feedback, state.rates) - held) / probability
    times = state.curvature * (probability if feedback == 1 else 1.0)
    root, z, inner = sqrt(times), state.z, 0.0
    z[:] = 0.0
    for r in range(K):
        v = weight * (1.0 / K - (1.0 if r == label else 0.0))
        inner += v * state.scores[r]
        for j in range(size(x)):
            z[r * d + index(x, j)] = root * v * value(x, j)
    beyond = inner / state.norm[1] - inner  # ⟨δ, θ − W⟩
    step = (1.0 + times * beyond) / absorb(state.factor, z, state.room, state.gain) / root
    state.norm[0] = 0.0
    for r in range(K):
        for i in range(d):
            state.W[r, i] -= step * state.gain[r * d + i]
            state.norm[0] += state.W[r, i] * state.W[r, i]
    project(state)


Form = Literal["diagonal", "full"]


class Newtron(Learner):
    r"""Online Newton steps on the log loss of a softmax, from an estimate of its gradient that needs one bit.

    With :math:`p = \mathrm{softmax}(\alpha W x)`, it draws the label from :math:`\tilde p = (1 - \gamma) p + \gamma/K`.
    The true label's bit f gives an unbiased estimate of the gradient of :math:`-\frac1\alpha \log p_y`, which is
    :math:`(p - e_y) \otimes x`:

    .. math::

        \delta = \frac{f - p_{\tilde y}}{\tilde p_{\tilde y}}
                 \left(\tfrac1K \mathbf 1 - e_{\tilde y}\right) \otimes x

        A \leftarrow A + \kappa\beta\, \delta\delta^\top,
        \quad b \leftarrow b + (1 - \kappa\beta \langle \delta, W \rangle)\, \delta,
        \quad W = \Pi_{\|W\| \le D}(-A^{-1} b)

    with :math:`\kappa = \tilde p_{\tilde y}` if the bit is 1 and 1 otherwise, and :math:`A = I/D` at the start. The
    estimate is affine in f, so that h = (bit − ρ0)/β in the place of f keeps it unbiased behind a channel with known
    `rates`: a form that its authors do not have. The diagonal form (their PNewtron) keeps the diagonal of A: O(K·d) per
    round instead of O(K²·d²).

    Where sources differ: public codes project or not, and some play the label of highest probability; here the label is
    drawn, as in the paper, and W is the nearest point of the ball. The paper's W is the best one in the ball by its own
    quadratic objective, :math:`-(A + \lambda I)^{-1} b` with the λ that brings it there: the same where the ball does
    not bind. p is taken from the weights that learn, so that the estimate stays unbiased when feedback is late.

    Parameters
    ----------
    n_classes, n_features
        K ≥ 2 labels, d ≥ 1 features.
    gamma
        Exploration in (0, 1], a number or an `Exploration`.
    alpha
        α, from 10⁻⁹ to 10⁹: how sharp the softmax is.
    curvature
        β, from 10⁻⁹ to 10⁹: how much curvature a step adds.
    radius
        D, from 10⁻⁹ to 10⁹: the largest norm of the weights.
    rates
        (ρ0, ρ1) of the channel, each ≥ 0 with a sum below 1; (0, 0) takes the bit at its word.
    form
        "diagonal" (default) or "full".
    seed
        Of the exploration.

    Examples
    --------
    >>> learner = Newtron(n_classes=3, n_features=2, seed=1)
    >>> learner.learn([0.6, 0.8], learner.decide([0.6, 0.8]), 1)

    References
    ----------
    Hazan & Kale (2011), "Newtron: an efficient bandit algorithm for online multiclass prediction".
    """

    grows = False
    tables = 2

    def __init__(
        self,
        *,
        n_classes: int,
        n_features: int,
        gamma: float | Exploration = 0.05,
        alpha: float = 10.0,
        curvature: float = 0.001,
        radius: float = 10.0,
        rates: tuple[float, float] = (0.0, 0.0),
        form: Form = "diagonal",
        seed: int = 0,
    ) -> None:
        self.rates = Rates.of(rates)
        self.alpha = real("alpha", alpha, 1e-9, 1e9)
        self.curvature, self.radius = real("curvature", curvature, 1e-9, 1e9), real("radius", radius, 1e-9, 1e9)
        self.form = one_of("form", form, get_args(Form))
        super().__init__(n_classes=n_classes, n_features=n_features, gamma=gamma, seed=seed, positive=True)

    @property
    def by_feature(self) -> bool:  # type: ignore[override]
        """Whether weights may be laid out by feature: only without the full matrix."""
        return self.form == "diagonal"

    def _start(self) -> DiagonalNewtronState | FullNewtronState:
        W, room, norm = self._weights(), self._scores(), np.array([0.0, 1.0])
        rates, constants = np.array(self.rates), (self.alpha, self.curvature, self.radius)
        if self.form == "diagonal":
            A = np.full_like(W, 1.0 / self.radius)
            return DiagonalNewtronState(W, room, rates, A, np.zeros_like(W), norm, *constants)
        many = self.n_classes * self.n_features
        check_memory("Newtron's full matrix", many * many, "Newtron(form='diagonal')")
        factor, (z, work, gain) = np.eye(many) * self.radius, (np.zeros(many) for _ in range(3))
        return FullNewtronState(W, room, rates, factor, norm, z, work, gain, *constants)

    @property
    def weights(self) -> Array:
        """W, the projection of −A⁻¹b."""
        with self.held():
            return np.array(self.state.W * self.state.norm[1], order="C")

    def logits(self, X: Any) -> Array:
        """α times the scores (n×K): labels are drawn from their softmax, `chances`.

        Parameters
        ----------
        X
            n rows of d numbers, dense or sparse.
        """
        return self.alpha * self.scores(X)

    def _bounds(self) -> dict[str, tuple[float, float]]:
        return {"A": (0.5 / self.radius, 1e150)}

    def _flaw(self) -> str:
        if tuple(self.state.rates) != self.rates:
            return "its rates are not those of its parameters"
        if not 0.0 < self.state.norm[1] <= 1.0:
            return f"its scale is {self.state.norm[1]:g}"
        return "" if self.form == "diagonal" else flaw_of_factor(self.state.factor)
