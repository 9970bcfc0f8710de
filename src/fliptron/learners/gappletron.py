"""Gappletron: a softmax that plays at random as often as its own doubt says, learnt by gradient steps."""

from __future__ import annotations

from math import exp, sqrt
from typing import Any, NamedTuple

import numpy as np

from fliptron.arrays import Array, Row
from fliptron.exploration import Exploration
from fliptron.kernels.compiling import PART, compiled
from fliptron.kernels.loop import (
    ALL_ELIGIBLE,
    Choice,
    Scratch,
    best_eligible,
    chooses,
    count_eligible,
    learns,
    may_play,
    nth_eligible,
    score,
)
from fliptron.kernels.vectors import add, square
from fliptron.learners.base import Learner
from fliptron.learners.rcnbf import unbiased
from fliptron.refusals import real
from fliptron.rounds import Rates


class GappletronState(NamedTuple):
    """Weights, the rates to undo, and what a step is as long as."""

    W: Array
    scores: Scratch
    rates: Array
    slopes: Scratch  # K: chances of the labels, then the gradient of their scores
    squares: Array  # Σ ‖G‖²
    diameter: float


@compiled(**PART)
def softmax(scores: Array, out: Array, eligible: Array) -> float:
    """exp(s_r)/Σ exp(s) for every label r that may be played; the highest of them."""
    top, total = scores[best_eligible(scores, eligible)], 0.0
    for r in range(out.shape[0]):
        out[r] = exp(np.float64(scores[r]) - top) if may_play(eligible, r) else 0.0
        total += out[r]
    for r in range(out.shape[0]):
        out[r] /= total
    return 1.0 / total


@compiled(**PART)
def descend(state: Any, x: Row) -> None:
    """W −= D/√(2(10⁻⁸ + Σ‖G‖²))·G, with G = slopes⊗x."""
    steep = 0.0
    for r in range(state.slopes.shape[0]):
        steep += state.slopes[r] * state.slopes[r]
    state.squares[0] += steep * square(x)
    step = state.diameter / sqrt(2.0 * (1e-8 + state.squares[0]))
    for r in range(state.slopes.shape[0]):
        if state.slopes[r] != 0.0:
            add(state.W, r, -step * state.slopes[r], x)


@chooses(GappletronState)
def gap_choice(state: GappletronState, x: Row, gamma: float, u: float, eligible: Array) -> Choice:
    """P = (1 − m)·e_ŷ + m/K, with m the doubt of the softmax, and at least γ."""
    score(state, x, state.scores)
    K, greedy = count_eligible(state.scores, eligible), best_eligible(state.scores, eligible)
    best = softmax(state.scores, state.slopes, eligible)
    m = max(1.0 - best if best >= 0.5 else 1.0, gamma)
    label = nth_eligible(eligible, min(int(u / m * K), K - 1)) if u < m else greedy
    return label, greedy, m / K + (1.0 - m if label == greedy else 0.0)


@learns(GappletronState)
def gappletron(state: GappletronState, x: Row, label: int, greedy: int, probability: float, feedback: int) -> None:
    """G = h/P(ỹ)·(p − e_ỹ)⊗x."""
    weight = unbiased(feedback, state.rates) / probability
    if weight == 0.0:
        return
    score(state, x, state.scores)
    softmax(state.scores, state.slopes, ALL_ELIGIBLE)
    state.slopes[label] -= 1.0
    for r in range(state.slopes.shape[0]):
        state.slopes[r] *= weight
    descend(state, x)


class Gappletron(Learner):
    r"""Gradient steps on the log loss of a softmax, which explores as often as its own doubt says.

    With :math:`p = \mathrm{softmax}(W x)`, let :math:`p^* = \max_r p_r`. The gap map a says how much doubt there is,
    and the label is drawn from P:

    .. math::

        a &= 1 - \mathbf 1[p^* \ge \tfrac12]\, p^*, \qquad m = \max(a, \gamma) \\
        P &= (1 - m)\, e_{\hat y} + \tfrac{m}{K} \mathbf 1

    A right label gives the gradient of the log loss, divided by the chance to see it; a wrong one gives nothing:

    .. math::

        G = \frac{h}{P(\tilde y)}\, (p - e_{\tilde y}) \otimes x, \qquad
        W \leftarrow W - \frac{D}{\sqrt{2\,(10^{-8} + \sum \|G\|^2)}}\, G

    with h the bit f. G is affine in f, so that h = (bit − ρ0)/β keeps it unbiased behind a channel with known `rates`:
    a form that its authors do not have.

    Where sources differ: the bounds hold for logarithms of any base up to K. The base multiplies every gradient by the
    same number, and the length of the step divides it away: there is none here. W is not projected, as in the
    experiments of Shibukawa et al. p is taken from the weights that learn, so that the estimate stays unbiased when
    feedback is late.

    Parameters
    ----------
    n_classes, n_features
        K ≥ 2 labels, d ≥ 1 features.
    gamma
        Least exploration in (0, 1], a number or an `Exploration`.
    diameter
        D, from 10⁻⁹ to 10⁹: how far apart weights may be, which the steps are as long as.
    rates
        (ρ0, ρ1) of the channel, each ≥ 0 with a sum below 1; (0, 0) takes the bit at its word.
    dtype
        Precision of the weights, "float64" or "float32".
    seed
        Of the exploration.

    Examples
    --------
    >>> learner = Gappletron(n_classes=3, n_features=2, seed=1)
    >>> learner.decide([0.6, 0.8]).probability  # no label is likelier than the others yet
    0.3333333333333333
    >>> learner.learn([0.6, 0.8], learner.decide([0.6, 0.8]), 1)

    References
    ----------
    van der Hoeven (2020), "Exploiting the surrogate gap in online multiclass classification"; van der Hoeven, Fusco &
    Cesa-Bianchi (2021), "Beyond bandit feedback in online multiclass classification". The length of the step: as
    Shibukawa et al. (2025), appendix H, quote the latter.
    """

    grows = False
    by_feature = True

    def __init__(
        self,
        *,
        n_classes: int,
        n_features: int,
        gamma: float | Exploration = 0.05,
        diameter: float = 100.0,
        rates: tuple[float, float] = (0.0, 0.0),
        dtype: str = "float64",
        seed: int = 0,
    ) -> None:
        self.rates = Rates.of(rates)
        self.diameter = real("diameter", diameter, 1e-9, 1e9)
        shape = {"n_classes": n_classes, "n_features": n_features}
        super().__init__(**shape, gamma=gamma, seed=seed, positive=True, dtype=dtype)

    def _start(self) -> Any:
        room, rates = np.zeros(self.n_classes), np.array(self.rates)
        return GappletronState(self._weights(), self._scores(), rates, room, np.zeros(1), self.diameter)

    def _bounds(self) -> dict[str, tuple[float, float]]:
        return {"squares": (0.0, 1e200)}

    def _flaw(self) -> str:
        return "" if tuple(self.state.rates) == self.rates else "its rates are not those of its parameters"
