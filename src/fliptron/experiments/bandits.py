r"""What an engineer of bandits would try first: a regression of the raw bit per label, and a usual way to explore.

The regression is linear, or logistic: a Gaussian belief w_r ~ N(W_r, A_r⁻¹) that each bit of label r moves by one of
Newton's steps,

.. math::

    p &= \sigma(w_r \cdot x) \\
    A_r &\leftarrow A_r + p (1 - p)\,x x^\top \\
    w_r &\leftarrow w_r + (f_\rho - p)\,A_r^{-1} x

Let m_r and v_r be mean and variance of w_r·x. The ways to explore:

- *Thompson* sampling: the highest of :math:`m_r + a \sqrt{v_r}\,z_r`, with a normal z_r for each label;
- *UCB*: the highest of :math:`m_r + a \sqrt{v_r}`;
- *SquareCB*: with g_r the gap between label r's mean bit and the best one's, label r has probability
  1/(K + g_r/γ_t), and the best label has the rest.

They stand beside our learners in plans, on the same engine, so that they can be compared at length. Thompson sampling
has no probabilities that can be computed: as with learners of other libraries, 1 is stated.

Agrawal & Goyal (2013), "Thompson sampling for contextual bandits with linear payoffs"; Chapelle & Li (2011), "An
empirical evaluation of Thompson sampling"; Filippi et al. (2010), "Parametric bandits: the generalized linear case";
Foster & Rakhlin (2020), "Beyond UCB: optimal and efficient contextual bandits with regression oracles".
"""

from __future__ import annotations

from math import cos, exp, log, pi, sqrt
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from fliptron.arrays import Array, Row
from fliptron.exploration import Exploration
from fliptron.kernels.compiling import PART, compiled
from fliptron.kernels.factors import absorb, dense, variance
from fliptron.kernels.loop import (
    Choice,
    Scratch,
    best_eligible,
    chooses,
    count_eligible,
    learns,
    may_play,
    score,
)
from fliptron.kernels.randomness import mix, uniform
from fliptron.kernels.vectors import dot
from fliptron.learners.regression import RidgeRegression, least_squares
from fliptron.refusals import one_of, real

Explore = Literal["Thompson", "UCB", "SquareCB"]
_LEAST = 1e-6  # of p(1 − p): a bit that was certain still tells a little
_LARGEST = 30.0  # of a logit


class BanditState(NamedTuple):
    """Weights and A_r⁻¹ of every label; how it explores, and how much; whether it is logistic."""

    W: Array
    scores: Scratch
    factor: Array
    copy: Scratch
    room: Scratch
    gain: Scratch
    explore: int
    strength: float
    logistic: bool


@compiled(**PART)
def sigmoid(m: float) -> float:
    """1/(1 + e^−m)."""
    return 1.0 / (1.0 + exp(-min(max(m, -_LARGEST), _LARGEST)))


@compiled(**PART)
def normal(key: Any, r: int) -> float:
    """Number r of the normal draws of a round (Box and Muller)."""
    return sqrt(-2.0 * log(1.0 - uniform(key, 2 * r))) * cos(2.0 * pi * uniform(key, 2 * r + 1))


@chooses(BanditState)
def explore(state: BanditState, x: Row, gamma: float, u: float, eligible: Array) -> Choice:
    """As the state says: by a draw of every score, by its upper bound, or by the gaps between means."""
    score(state, x, state.scores)
    n, greedy = state.scores.shape[0], best_eligible(state.scores, eligible)
    if state.explore < 2:
        key = mix(np.uint64(u * 2.0**53))
        label, top = greedy, -np.inf
        for r in range(n):
            if not may_play(eligible, r):
                continue
            doubt = sqrt(variance(state.factor[r], x, state.room))
            z = normal(key, r) if state.explore == 0 else 1.0
            imagined = state.scores[r] + state.strength * doubt * z
            if imagined > top:
                label, top = r, imagined
        return label, greedy, 1.0
    K, label, drawn, taken = count_eligible(state.scores, eligible), greedy, 0.0, 0.0
    for r in range(n):
        if r != greedy and may_play(eligible, r):
            chance = 1.0 / (K + (mean_bit(state, greedy) - mean_bit(state, r)) / gamma)
            if taken <= u < taken + chance:
                label, drawn = r, chance
            taken += chance
    return label, greedy, 1.0 - taken if label == greedy else drawn


@compiled(**PART)
def mean_bit(state: BanditState, r: int) -> float:
    """The mean bit of label r, by its score."""
    return sigmoid(state.scores[r]) if state.logistic else state.scores[r]


@learns(BanditState)
def regress(state: BanditState, x: Row, label: int, greedy: int, probability: float, feedback: int) -> None:
    """Regress the raw bit, for the played label only."""
    if not state.logistic:
        least_squares(state, label, x, np.float64(feedback))
        return
    p = sigmoid(dot(state.W, label, x))
    root = sqrt(max(p * (1.0 - p), _LEAST))
    dense(x, state.copy)
    for i in range(state.copy.shape[0]):
        state.copy[i] *= root
    step = (feedback - p) / (root * absorb(state.factor[label], state.copy, state.room, state.gain))
    for i in range(state.gain.shape[0]):
        state.W[label, i] += step * state.gain[i]


class Bandit(RidgeRegression):
    """A regression of the bit per label with one of the usual ways to explore.

    Parameters
    ----------
    n_classes, n_features
        K ≥ 2 labels, d ≥ 1 features.
    explore
        "Thompson", "UCB" or "SquareCB".
    logistic
        Whether the regression is logistic instead of linear.
    strength
        a, from 0 to 10³⁰. SquareCB takes γ_t = a/√t.
    regularization
        A_r at the start, from 10⁻³⁰ to 10³⁰.
    seed
        Of the exploration.

    Examples
    --------
    >>> Bandit(n_classes=4, n_features=2, explore="SquareCB").decide([0.6, 0.8]).probability
    0.25
    """

    def __init__(
        self,
        *,
        n_classes: int,
        n_features: int,
        explore: Explore = "Thompson",
        logistic: bool = False,
        strength: float = 1.0,
        regularization: float = 1.0,
        seed: int = 0,
    ) -> None:
        self.explore = one_of("explore", explore, get_args(Explore))
        self.logistic = bool(logistic)
        self.strength = real("strength", strength, 0.0, 1e30, open_below=explore == "SquareCB")
        super().__init__(
            n_classes=n_classes,
            n_features=n_features,
            gamma=Exploration(self.strength, power=0.5) if explore == "SquareCB" else 0.0,
            regularization=regularization,
            seed=seed,
        )

    def _start(self) -> BanditState:
        way = get_args(Explore).index(self.explore)
        arrays = self._weights(), self._scores(), self._factor(), *self._room()
        return BanditState(*arrays, explore=way, strength=self.strength, logistic=self.logistic)
