"""Randomised decoding: a softmax that plays its best label or one of its own distribution, learnt by gradient steps."""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

import numpy as np

from fliptron.arrays import Array, Row
from fliptron.exploration import Exploration
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
)
from fliptron.learners.gappletron import Gappletron, descend, softmax
from fliptron.learners.rcnbf import unbiased
from fliptron.refusals import one_of


class DecodingState(NamedTuple):
    """Weights, the rates to undo, and what a step is as long as."""

    W: Array
    scores: Scratch
    rates: Array
    slopes: Scratch  # K: chances of the labels, then the gradient of their scores
    squares: Array  # Σ ‖G‖²
    diameter: float
    from_wrong: bool


@chooses(DecodingState)
def decode(state: DecodingState, x: Row, gamma: float, u: float, eligible: Array) -> Choice:
    """P = (1 − q)·[(1 − m)·e_ŷ + m·p] + q/K, with q the exploration and m twice the doubt of the softmax."""
    score(state, x, state.scores)
    K, greedy = count_eligible(state.scores, eligible), best_eligible(state.scores, eligible)
    best = softmax(state.scores, state.slopes, eligible)
    m, below, label, chance = min(1.0, 2.0 * (1.0 - best)), 0.0, greedy, 1.0
    for r in range(state.scores.shape[0]):
        if may_play(eligible, r):
            label = r
            chance = (1.0 - gamma) * (m * state.slopes[r] + (1.0 - m if r == greedy else 0.0)) + gamma / K
            below += chance
            if u < below:
                break
    return label, greedy, min(chance, 1.0)  # rounding may leave the last label to the last of u


@learns(DecodingState)
def decoding(state: DecodingState, x: Row, label: int, greedy: int, probability: float, feedback: int) -> None:
    """G = (p − ê_y)⊗x from rounds that were wrong, or h/P(ỹ)·(p − e_ỹ)⊗x from those that were right."""
    K, h = state.scores.shape[0], unbiased(feedback, state.rates)
    score(state, x, state.scores)
    softmax(state.scores, state.slopes, ALL_ELIGIBLE)
    if state.from_wrong:
        weight = (1.0 - h) / probability
        for r in range(K):
            state.slopes[r] -= weight * (1.0 / (K - 1) - (1.0 if r == label else 0.0))
    else:
        weight = h / probability
        for r in range(K):
            state.slopes[r] = weight * (state.slopes[r] - (1.0 if r == label else 0.0))
    descend(state, x)


Estimator = Literal["inverse", "pseudo-inverse"]


class RDUE(Gappletron):
    r"""Randomised decoding with uniform exploration: gradient steps on the log loss, from right or from wrong labels.

    With :math:`p = \mathrm{softmax}(W x)` and :math:`p^* = \max_r p_r`, it plays ŷ where p is sure and a label drawn
    from p where it is not; with probability q, any label:

    .. math::

        m &= \min(1,\, 2(1 - p^*)) \\
        P &= (1 - q)\,[(1 - m)\, e_{\hat y} + m\, p] + \tfrac{q}{K} \mathbf 1

    The gradient of the log loss is :math:`(p - e_y) \otimes x`. The authors of RDUE have two unbiased estimates of it.
    Both are affine in the bit f, so that h = (bit − ρ0)/β in the place of f keeps them unbiased behind a channel with
    known `rates`: a form that its authors do not have.

    .. math::

        \text{inverse:} \quad G &= \frac{h}{P(\tilde y)}\, (p - e_{\tilde y}) \otimes x \\
        \text{pseudo-inverse:} \quad G &= (p - \hat e_y) \otimes x, \quad
            \hat e_y = \frac{1 - h}{P(\tilde y)} \left(\tfrac{1}{K - 1} \mathbf 1 - e_{\tilde y}\right)

    Summed over the K − 1 wrong labels, the last bracket is :math:`\mathbf 1 - (\mathbf 1 - e_y) = e_y`. The step is as
    long as `Gappletron`'s, :math:`D / \sqrt{2(10^{-8} + \sum \|G\|^2)}`.

    Where the paper leaves a choice: q is :math:`D\sqrt{K/T}` for the first estimate and :math:`O(T^{-1/3})` for the
    second; here it is `gamma`, which may fall with the rounds. As in its experiments, W is not projected.

    Parameters
    ----------
    n_classes, n_features
        K ≥ 2 labels, d ≥ 1 features.
    gamma
        q, exploration in (0, 1], a number or an `Exploration`.
    diameter
        D, from 10⁻⁹ to 10⁹: how far apart weights may be, which the steps are as long as.
    estimator
        "inverse" learns from right labels, "pseudo-inverse" from wrong ones; with `rates`, each from both.
    rates
        (ρ0, ρ1) of the channel, each ≥ 0 with a sum below 1; (0, 0) takes the bit at its word.
    dtype
        Precision of the weights, "float64" or "float32".
    seed
        Of the choices.

    Examples
    --------
    >>> learner = RDUE(n_classes=3, n_features=2, seed=1)
    >>> learner.learn([0.6, 0.8], learner.decide([0.6, 0.8]), 1)

    References
    ----------
    Shibukawa, Tsuchiya, Sakaue & Yamanishi (2025), "Bandit and delayed feedback in online structured prediction",
    sections 3.1 to 3.4 and appendix H, for single labels.
    """

    def __init__(
        self,
        *,
        n_classes: int,
        n_features: int,
        gamma: float | Exploration = 0.05,
        diameter: float = 100.0,
        estimator: Estimator = "inverse",
        rates: tuple[float, float] = (0.0, 0.0),
        dtype: str = "float64",
        seed: int = 0,
    ) -> None:
        self.estimator = one_of("estimator", estimator, get_args(Estimator))
        shape = {"n_classes": n_classes, "n_features": n_features}
        super().__init__(**shape, gamma=gamma, diameter=diameter, rates=rates, dtype=dtype, seed=seed)

    def _start(self) -> DecodingState:
        room, from_wrong = np.zeros(self.n_classes), self.estimator == "pseudo-inverse"
        rates = np.array(self.rates)
        return DecodingState(self._weights(), self._scores(), rates, room, np.zeros(1), self.diameter, from_wrong)
