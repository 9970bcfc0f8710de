"""SOBA, the second-order Banditron."""

from __future__ import annotations

import numpy as np

from fliptron.arrays import Array, real
from fliptron.exploration import Exploration
from fliptron.kernels import DiagonalState, FullState
from fliptron.learners.base import Learner, check_memory


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

    def _start(self, W: Array, scores: Array) -> DiagonalState | FullState:
        margin = np.zeros(1)
        if self.diagonal:
            return DiagonalState(W, scores, np.zeros_like(W), np.full_like(W, self.regularization), margin)
        size = self.n_classes * self.n_features
        check_memory("SOBA's full matrix", size * size, "SOBA(diagonal=True)")
        return FullState(W, scores, np.eye(size) / self.regularization, margin, np.zeros(size))
