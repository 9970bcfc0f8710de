"""SOBA, the second-order Banditron."""

from __future__ import annotations

from math import sqrt
from typing import Literal, NamedTuple, get_args

import numpy as np

from fliptron.arrays import Array, Row
from fliptron.exploration import Exploration
from fliptron.kernels.factors import absorb, flaw_of_factor, variance
from fliptron.kernels.loop import Scratch, learns, score
from fliptron.kernels.rows import index, size, value
from fliptron.kernels.vectors import argmax
from fliptron.learners.base import Learner
from fliptron.learners.memory import check_memory
from fliptron.refusals import one_of, real


class DiagonalState(NamedTuple):
    """W = θ/A, weight by weight, and S."""

    W: Array
    scores: Scratch
    theta: Array  # K×d
    A: Array  # K×d
    margin: Array  # S


@learns(DiagonalState)
def soba_diagonal(state: DiagonalState, x: Row, label: int, greedy: int, probability: float, feedback: int) -> None:
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
    if not 0.0 <= state.margin[0] + m < np.inf:
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
    scores: Scratch
    factor: Array  # Kd×Kd: A⁻¹, see `fliptron.kernels.factors`
    margin: Array  # S
    z: Scratch  # Kd, as the next two
    room: Scratch
    gain: Scratch  # A⁻¹z


@learns(FullState)
def soba_full(state: FullState, x: Row, label: int, greedy: int, probability: float, feedback: int) -> None:
    """SOBA with the whole A (Kd×Kd). With u = A⁻¹z, W = A⁻¹θ moves by −u·(⟨W,z⟩ + 1/√P)/(1 + zᵀu)."""
    if feedback != 1:
        return
    d = state.W.shape[1]
    score(state, x, state.scores)
    rival = argmax(state.scores, label)
    root = sqrt(probability)
    gap = (state.scores[rival] - state.scores[label]) / root  # ⟨W, z⟩
    z, room, u = state.z, state.room, state.gain
    z[:] = 0.0
    for j in range(size(x)):
        i, v = index(x, j), value(x, j) / root
        z[rival * d + i], z[label * d + i] = v, -v
    m = (gap * gap + 2.0 * gap / root) / (1.0 + variance(state.factor, z, room))
    if not 0.0 <= state.margin[0] + m < np.inf:
        return
    state.margin[0] += m
    step = (gap + 1.0 / root) / absorb(state.factor, z, room, u)
    for r in range(state.W.shape[0]):
        for i in range(d):
            state.W[r, i] -= step * u[r * d + i]


Form = Literal["diagonal", "full"]


class SOBA(Learner):
    r"""Second Order Banditron Algorithm: learns only from bits that say "right".

    Over all Kd weights, A = a·I, θ = 0 and S = 0 at the start. When the bit is 1, let ȳ be the label with the highest
    score among the others, and

    .. math::

        g &= (e_{\bar{y}} - e_{\tilde{y}}) \otimes x \,/\, P(\tilde{y}) \\
        z &= \sqrt{P(\tilde{y})}\;g \\
        m &= \frac{\langle W, z \rangle^2 + 2 \langle W, g \rangle}{1 + z^\top A^{-1} z}

    If S + m ≥ 0,

    .. math::

        S &\leftarrow S + m \\
        A &\leftarrow A + z z^\top \\
        \theta &\leftarrow \theta - g \\
        W &\leftarrow A^{-1} \theta

    The diagonal form keeps only the diagonal of A: O(d) per round instead of O(K²d²).

    Parameters
    ----------
    n_classes, n_features
        K ≥ 2 labels, d ≥ 1 features.
    gamma
        Exploration in [0, 1], a number or an `Exploration`.
    regularization
        The number a on the diagonal of A at the start, from 10⁻³⁰ to 10³⁰.
    form
        "diagonal" keeps the diagonal of A, "full" the whole matrix.
    seed
        Of the exploration.

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
        form: Form = "diagonal",
        seed: int = 0,
    ) -> None:
        self.regularization = real("regularization", regularization, 1e-30, 1e30)
        self.form = one_of("form", form, get_args(Form))
        super().__init__(n_classes=n_classes, n_features=n_features, gamma=gamma, seed=seed)

    @property
    def by_feature(self) -> bool:  # type: ignore[override]
        """Whether weights may be laid out by feature: only without the full matrix."""
        return self.form == "diagonal"

    def _start(self) -> DiagonalState | FullState:
        W, scores, margin = self._weights(), self._scores(), np.zeros(1)
        if self.form == "diagonal":
            return DiagonalState(W, scores, np.zeros_like(W), np.full_like(W, self.regularization), margin)
        size = self.n_classes * self.n_features
        check_memory("SOBA's full matrix", size * size, "SOBA(form='diagonal')")
        return FullState(
            W, scores, np.eye(size) / self.regularization, margin, np.zeros(size), np.zeros(size), np.zeros(size)
        )

    def _bounds(self) -> dict[str, tuple[float, float]]:
        return {"A": (self.regularization / 2, 1e150), "margin": (0.0, 1e250)}

    def _flaw(self) -> str:
        return "" if self.form == "diagonal" else flaw_of_factor(self.state.factor)
