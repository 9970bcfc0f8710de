"""AnytimeRCNBF: what RCNBF becomes when nothing must be told to it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fliptron.arrays import Array, Row
from fliptron.exploration import Exploration
from fliptron.kernels.loop import CAP, SCALE, Scratch, learns, scores
from fliptron.kernels.vectors import scores_of
from fliptron.learners.rcine import RCINE, record
from fliptron.learners.rcnbf import add_update
from fliptron.refusals import real
from fliptron.theory import anytime


class AnytimeState(NamedTuple):
    """RCINE's, and what it takes to know the mean of all past weights."""

    W: Array
    scores: Scratch
    rates: Array
    counts: Array
    label: Array
    greedy: Array
    probability: Array
    bit: Array
    best: Array
    margin: Array
    X: Array
    late: Array  # K×d: Σ (i − 1)·H_i, what the mean of W_1 … W_n lacks, times n
    updates: Array  # n
    work: Scratch  # K


@scores(AnytimeState)
def mean_scores(state: AnytimeState, x: Row, out: Array) -> None:
    """w̄_r · x, with w̄ the mean of W_1 … W_n, kept as W_n − (1/n)·Σ (i − 1)·H_i."""
    scores_of(state.W, x, out)
    scores_of(state.late, x, state.work)
    for r in range(out.shape[0]):
        out[r] -= state.work[r] / max(state.updates[0], 1.0)


@learns(AnytimeState)
def anytime_rcnbf(state: AnytimeState, x: Row, label: int, greedy: int, probability: float, feedback: int) -> None:
    """RCINE's record of the round, then RCNBF's H, added to W and, times i − 1, to what the mean of W lacks."""
    record(state, x, label, greedy, probability, feedback)  # type: ignore[arg-type]  # it has all that RcineState has
    add_update(state.W, 1.0, state.rates, x, label, greedy, probability, feedback)
    add_update(state.late, state.updates[0], state.rates, x, label, greedy, probability, feedback)
    state.updates[0] += 1.0


class AnytimeRCNBF(RCINE):
    r"""RCNBF that is told nothing: not the rates, not γ, not the number of rounds.

    The best member of the paper's family that we know. Plateaus estimate the rates while it plays, as in `RCINE`.
    Exploration falls as the exact constants of Theorem 1 ask (see `fliptron.theory.anytime`), with
    V̂0 = ρ̂0(1 − ρ̂0)/β̂² and V̂1 = ρ̂1(1 − ρ̂1)/β̂² taken anew from every estimate:

    .. math::

        \gamma_t &= \min\left\{\tfrac{1}{2}, \left(\frac{K^2 \hat V_0 D}{12\,t}\right)^{1/3}\right\}
        \quad \text{if } \hat V_0 > 0 \\
        \gamma_t &= \min\left\{\tfrac{1}{2}, \sqrt{\frac{K D (1 + \hat V_1)}{2\,t}}\right\}
        \quad \text{if } \hat V_0 = 0

    It decides with the mean of all its past weights, as `AveragedRCNBF` does.

    For the true rates and weights that are not averaged, the leading terms of the mistake bound on separable data are
    4.5·(K²·V0·D/12)^(1/3)·T^(2/3) if V0 > 0, and 2·√(2·K·D·(1 + V1)·T) otherwise, for every T at once. Estimated rates
    and averaging have no guarantee.

    Parameters
    ----------
    n_classes, n_features
        K ≥ 2 labels, d ≥ 1 features.
    complexity
        D > 0, the squared norm of a weight matrix that does well; a larger one explores more. The default was chosen
        from 30, 100 and 300 on the paper's data sets, whose rows have length 1, at 10⁶ rounds.
    refresh
        N_s ≥ 256, the rounds between two estimates.
    seed
        Of the exploration.

    Attributes
    ----------
    estimates
        One pair (rounds learnt from, `Estimate`) per refresh since the learner was made or loaded.

    Examples
    --------
    >>> from fliptron import load, simulate
    >>> learner = AnytimeRCNBF(n_classes=3, n_features=4, seed=1)
    >>> trace = simulate(learner, load("iris"), rates=(0.2, 0.4), rounds=200_000, seed=1)
    >>> trace.error < 0.4
    True

    References
    ----------
    Agarwal & Manwani (2021), Algorithm 2 and Theorem 1.
    """

    tables = 1

    def __init__(
        self, *, n_classes: int, n_features: int, complexity: float = 30.0, refresh: int = 5000, seed: int = 0
    ) -> None:
        self.complexity = real("complexity", complexity, 1e-12, 1e12)
        first = anytime(n_classes=n_classes, rates=(0.0, 0.0), complexity=self.complexity)
        super().__init__(n_classes=n_classes, n_features=n_features, gamma=first, refresh=refresh, seed=seed)

    def _start(self) -> AnytimeState:  # type: ignore[override]
        late = np.zeros((self.n_classes, self.n_features))
        return AnytimeState(*super()._start(), late, np.zeros(1), np.zeros(self.n_classes))

    def _bounds(self) -> dict[str, tuple[float, float]]:
        return super()._bounds() | {"updates": (0.0, 1e18), "schedule": (0.0, 1e12)}

    def _arrays(self) -> dict[str, Array]:
        return super()._arrays() | {"schedule": self.turn[SCALE : CAP + 1]}

    def _refresh(self) -> None:
        super()._refresh()
        told = anytime(n_classes=self.n_classes, rates=tuple(self.state.rates), complexity=self.complexity)
        self.turn[SCALE : CAP + 1] = told.steps

    @property
    def gamma(self) -> float | dict[str, float]:
        """The exploration by the last estimate, as a plain value."""
        return Exploration(*map(float, self.turn[SCALE : CAP + 1])).plain

    @property
    def weights(self) -> Array:
        """The mean W̄ of all past weights, which it decides with (a copy)."""
        with self.held():
            state = self.state
            return np.array(state.W - state.late / max(state.updates[0], 1.0), order="C")
