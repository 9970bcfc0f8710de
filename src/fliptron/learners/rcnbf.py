"""The paper's family: RCNBF, Banditron (no noise) and RCNBF with averaged weights."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fliptron.arrays import Array, Row
from fliptron.exploration import Exploration
from fliptron.kernels.compiling import PART, STEP, compiled
from fliptron.kernels.loop import Scratch, learns, scores
from fliptron.kernels.vectors import add, scores_of
from fliptron.learners.base import Learner
from fliptron.rounds import Rates


class RcnbfState(NamedTuple):
    """Weights and the rates to undo."""

    W: Array
    scores: Scratch
    rates: Array  # ρ0, ρ1


@compiled(**STEP)
def unbiased(bit: int, rates: Array) -> float:
    """h(f_ρ) = (f_ρ − ρ0)/β (Lemma 1): its mean over flips is the true feedback."""
    return (bit - rates[0]) / (1.0 - rates[0] - rates[1])


@compiled(**PART)
def add_update(
    W: Array, times: float, rates: Array, x: Row, label: int, greedy: int, probability: float, feedback: int
) -> None:
    """W += times·H, with H = (h/P(ỹ))·e_ỹ⊗x − e_ŷ⊗x (the paper's eq. 5)."""
    weight = unbiased(feedback, rates) / probability
    if label == greedy:  # one step for two, most of the time: a tenth of a round
        add(W, label, times * (weight - 1.0), x)
    else:
        add(W, label, times * weight, x)
        add(W, greedy, -times, x)


@learns(RcnbfState)
def rcnbf(state: RcnbfState, x: Row, label: int, greedy: int, probability: float, feedback: int) -> None:
    """W += H."""
    add_update(state.W, 1.0, state.rates, x, label, greedy, probability, feedback)


class RCNBF(Learner):
    r"""Robust Classifier for Noisy Bandit Feedback: a Perceptron step that is right on average.

    It plays ŷ = argmax_r w_r·x with probability 1 − γ + γ/K, and any other label with probability γ/K. Subtracting ρ0
    and dividing by β undoes the flips on average; dividing by P(ỹ) undoes the choice of the label:

    .. math::

        h &= \frac{f_\rho - \rho_0}{1 - \rho_0 - \rho_1} \\
        w_{\hat{y}} &\leftarrow w_{\hat{y}} - x \\
        w_{\tilde{y}} &\leftarrow w_{\tilde{y}} + \frac{h}{P(\tilde{y})}\,x

    Parameters
    ----------
    n_classes, n_features
        K ≥ 2 labels, d ≥ 1 features.
    gamma
        Exploration in (0, 1], a number or an `Exploration`.
    rates
        (ρ0, ρ1), each ≥ 0 with a sum below 1: P(bit 1 | wrong) and P(bit 0 | right).
    dtype
        Precision of the weights, "float64" or "float32".
    seed
        Of the exploration.

    Examples
    --------
    >>> learner = RCNBF(n_classes=3, n_features=2, gamma=0.3, rates=(0.2, 0.4), seed=1)
    >>> decision = learner.decide([0.6, 0.8])
    >>> learner.learn([0.6, 0.8], decision, 1)

    References
    ----------
    Agarwal & Manwani (2021), "Learning Multiclass Classifier Under Noisy Bandit Feedback",
    Algorithm 1, eqs. 3–5, Theorem 1.
    """

    by_feature = True

    def __init__(
        self,
        *,
        n_classes: int,
        n_features: int,
        gamma: float | Exploration = 0.2,
        rates: tuple[float, float],
        dtype: str = "float64",
        seed: int = 0,
    ) -> None:
        self.rates = Rates.of(rates)
        shape = {"n_classes": n_classes, "n_features": n_features}
        super().__init__(**shape, gamma=gamma, seed=seed, positive=True, dtype=dtype)

    def _start(self) -> Any:
        return RcnbfState(self._weights(), self._scores(), np.array(self.rates))

    def _flaw(self) -> str:
        return "" if tuple(self.state.rates) == self.rates else "its rates are not those of its parameters"


class Banditron(RCNBF):
    """Banditron: RCNBF with rates (0, 0), for bits that are never flipped.

    Parameters
    ----------
    n_classes, n_features
        K ≥ 2 labels, d ≥ 1 features.
    gamma
        Exploration in (0, 1], a number or an `Exploration`.
    dtype
        Precision of the weights, "float64" or "float32".
    seed
        Of the exploration.

    Examples
    --------
    >>> Banditron(n_classes=3, n_features=2, gamma=0.1).rates
    Rates(rho0=0.0, rho1=0.0)

    References
    ----------
    Kakade, Shalev-Shwartz & Tewari (2008), "Efficient bandit algorithms for online multiclass
    prediction".
    """

    def __init__(
        self,
        *,
        n_classes: int,
        n_features: int,
        gamma: float | Exploration = 0.1,
        dtype: str = "float64",
        seed: int = 0,
    ) -> None:
        shape = {"n_classes": n_classes, "n_features": n_features}
        super().__init__(**shape, gamma=gamma, rates=(0.0, 0.0), dtype=dtype, seed=seed)


class AveragedState(NamedTuple):
    """RCNBF's, and what it takes to know the mean of all past weights."""

    W: Array
    scores: Scratch
    rates: Array
    late: Array  # K×d: Σ (i − 1)·H_i, what the mean of W_1 … W_n lacks, times n
    updates: Array  # n
    work: Scratch  # K


@scores(AveragedState)
def averaged_scores(state: AveragedState, x: Row, out: Array) -> None:
    """w̄_r · x, with w̄ the mean of W_1 … W_n, kept as W_n − (1/n)·Σ (i − 1)·H_i."""
    scores_of(state.W, x, out)
    scores_of(state.late, x, state.work)
    for r in range(out.shape[0]):
        out[r] -= state.work[r] / max(state.updates[0], 1.0)


@learns(AveragedState)
def averaged(state: AveragedState, x: Row, label: int, greedy: int, probability: float, feedback: int) -> None:
    """RCNBF's H, added to W and, times i − 1, to what the mean of W lacks."""
    add_update(state.W, 1.0, state.rates, x, label, greedy, probability, feedback)
    add_update(state.late, state.updates[0], state.rates, x, label, greedy, probability, feedback)
    state.updates[0] += 1.0


class AveragedRCNBF(RCNBF):
    r"""RCNBF that decides with the mean of all its past weights.

    The weights W are updated as RCNBF's are; call the i-th update H_i. Scores come from the mean

    .. math::

        \bar{W} = \frac{1}{n} \sum_{i=1}^{n} W_i = W_n - \frac{1}{n} \sum_{i=1}^{n} (i - 1)\,H_i

    The second form is what is kept: each round then changes two rows only.

    Parameters
    ----------
    n_classes, n_features
        K ≥ 2 labels, d ≥ 1 features.
    gamma
        Exploration in (0, 1], a number or an `Exploration`.
    rates
        (ρ0, ρ1), each ≥ 0 with a sum below 1: P(bit 1 | wrong) and P(bit 0 | right).
    seed
        Of the exploration.

    Examples
    --------
    >>> learner = AveragedRCNBF(n_classes=3, n_features=2, rates=(0.2, 0.4))
    >>> learner.learn([0.6, 0.8], learner.decide([0.6, 0.8]), 1)
    """

    tables = 1

    def __init__(
        self,
        *,
        n_classes: int,
        n_features: int,
        gamma: float | Exploration = 0.2,
        rates: tuple[float, float],
        seed: int = 0,
    ) -> None:
        super().__init__(n_classes=n_classes, n_features=n_features, gamma=gamma, rates=rates, seed=seed)

    def _start(self) -> AveragedState:
        W = self._weights()
        late = np.zeros(W.shape)  # grows with n², too much for float32
        return AveragedState(W, self._scores(), np.array(self.rates), late, np.zeros(1), np.zeros(self.n_classes))

    def _bounds(self) -> dict[str, tuple[float, float]]:
        return {"updates": (0.0, 1e18)}

    @property
    def weights(self) -> Array:
        """The mean W̄ of all past weights, which it decides with (a copy)."""
        with self.held():
            state = self.state
            return np.array(state.W - state.late / max(state.updates[0], 1.0), order="C")
