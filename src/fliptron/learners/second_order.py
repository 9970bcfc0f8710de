"""SOBA, the second-order Banditron."""

# mypy: disable-error-code="untyped-decorator,no-untyped-def,no-untyped-call"
from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np

from fliptron.arrays import Array, real
from fliptron.exploration import Exploration
from fliptron.kernels.loop import learns, score
from fliptron.kernels.matrices import apply, downdate
from fliptron.kernels.rows import index, size, value
from fliptron.kernels.vectors import argmax, pick
from fliptron.learners.base import Learner, check_memory


class DiagonalState(NamedTuple):
    """W = θ/A, weight by weight, and S."""

    W: Array
    scores: Array
    theta: Array  # K×d
    A: Array  # K×d
    margin: Array  # S


@learns(DiagonalState)
def soba_diagonal(state, x, label, greedy, probability, feedback):
    """SOBA with A and θ per weight: W = θ/A."""
    if feedback != 1:
        return
    score(state, x, state.scores)
    rival = argmax(state.scores, label)
    gap = state.scores[rival] - state.scores[label]  # ⟨W, g⟩·P
    spread = 0.0  # zᵀA⁻¹z
    for j in range(size(x)):
        i, v = index(x, j), value(x, j)
        spread += v * v / probability * (1.0 / state.A[rival, i] + 1.0 / state.A[label, i])
    m = (gap * gap / probability + 2.0 * gap / probability) / (1.0 + spread)
    if state.margin[0] + m < 0.0:
        return
    state.margin[0] += m
    for j in range(size(x)):
        i, v = index(x, j), value(x, j)
        state.A[rival, i] += v * v / probability
        state.A[label, i] += v * v / probability
        state.theta[rival, i] -= v / probability
        state.theta[label, i] += v / probability
        state.W[rival, i] = state.theta[rival, i] / state.A[rival, i]
        state.W[label, i] = state.theta[label, i] / state.A[label, i]


class FullState(NamedTuple):
    """W = A⁻¹θ over all Kd weights, and S."""

    W: Array
    scores: Array
    inverse: Array  # Kd×Kd, of which the lower triangle counts
    margin: Array  # S
    work: Array  # 2×Kd: z and A⁻¹z


@learns(FullState)
def soba_full(state, x, label, greedy, probability, feedback):
    """SOBA with the whole A (Kd×Kd). With u = A⁻¹z, W = A⁻¹θ moves by −u·(⟨W,z⟩ + 1/√P)/(1 + zᵀu)."""
    if feedback != 1:
        return
    d = state.W.shape[1]
    score(state, x, state.scores)
    rival = argmax(state.scores, label)
    root = sqrt(probability)
    gap = (state.scores[rival] - state.scores[label]) / root  # ⟨W, z⟩
    z, u = state.work
    z[:] = 0.0
    for j in range(size(x)):
        i, v = index(x, j), value(x, j) / root
        z[rival * d + i], z[label * d + i] = v, -v
    apply(state.inverse, z, u)
    spread = pick(u, z)
    m = (gap * gap + 2.0 * gap / root) / (1.0 + spread)
    if state.margin[0] + m < 0.0:
        return
    state.margin[0] += m
    downdate(state.inverse, u, 1.0 / (1.0 + spread))
    step = (gap + 1.0 / root) / (1.0 + spread)
    for r in range(state.W.shape[0]):
        for i in range(d):
            state.W[r, i] -= step * u[r * d + i]


class SOBA(Learner):
    """Second Order Banditron Algorithm: learns only from bits that say "right".

    Over Kd weights, A = a·I, θ = 0, S = 0. When the bit is 1, with ȳ = argmax_{i≠ỹ} w_i·x:

        g = (e_ȳ − e_ỹ)⊗x / P(ỹ),   z = √P(ỹ)·g
        m = (⟨W,z⟩² + 2⟨W,g⟩) / (1 + zᵀA⁻¹z)
        if S + m ≥ 0:   S ← S + m,   A ← A + zzᵀ,   θ ← θ − g,   W ← A⁻¹θ

    `diagonal` keeps only the diagonal of A: O(d) a round instead of O(K²d²).

    Parameters
    ----------
    n_classes, n_features : K ≥ 2 labels, d ≥ 1 features.
    gamma : exploration in [0, 1], a number or an `Exploration`.
    regularization : a > 0.
    diagonal : the cheap form (default) or the full matrix.
    seed : of the exploration.

    Examples
    --------
    >>> learner = SOBA(n_classes=3, n_features=2, gamma=0.1)
    >>> learner.learn([0.6, 0.8], learner.decide([0.6, 0.8]), 1)

    References
    ----------
    Beygelzimer, Orabona & Zhang (2017), "Efficient online bandit multiclass learning with Õ(√T)
    regret", Algorithm 1.
    """

    tables = 2

    def __init__(
        self,
        *,
        n_classes: int,
        n_features: int,
        gamma: float | Exploration = 0.05,
        regularization: float = 1.0,
        diagonal: bool = True,
        seed: int = 0,
    ) -> None:
        self.regularization = real("regularization", regularization, 0.0, open_below=True)
        self.diagonal = bool(diagonal)
        super().__init__(n_classes=n_classes, n_features=n_features, gamma=gamma, seed=seed)

    @property
    def by_feature(self) -> bool:  # type: ignore[override]
        """Whether weights may be laid out by feature: only without the full matrix."""
        return self.diagonal

    def _start(self, W: Array, scores: Array) -> DiagonalState | FullState:
        margin = np.zeros(1)
        if self.diagonal:
            return DiagonalState(W, scores, np.zeros_like(W), np.full_like(W, self.regularization), margin)
        size = self.n_classes * self.n_features
        check_memory("SOBA's full matrix", size * size, "SOBA(diagonal=True)")
        return FullState(W, scores, np.eye(size) / self.regularization, margin, np.zeros((2, size)))
