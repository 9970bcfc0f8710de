"""RCINE: RCNBF that estimates the rates while it plays."""

# mypy: disable-error-code="untyped-decorator,no-untyped-def,no-untyped-call"
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fliptron.arrays import Array, InputError, real, whole
from fliptron.exploration import Exploration
from fliptron.kernels.compiling import STEP, compiled
from fliptron.kernels.loop import learns, score
from fliptron.kernels.rows import index, size, value
from fliptron.kernels.vectors import argmax, lead
from fliptron.learners.banditron import add_update
from fliptron.learners.base import Learner
from fliptron.noise import Estimate, Plateaus, RateEstimator, Window
from fliptron.noise.published import NETWORKS, NREst
from fliptron.rounds import Decision, Rates


class RcineState(NamedTuple):
    """RCNBF's, and the window of rounds the estimator has not yet seen."""

    W: Array
    scores: Array
    rates: Array
    columns: Array  # N×6: label, greedy, probability, bit, best, margin
    rows: Array  # N×d, or 0×d if the estimator does not ask for x
    counts: Array  # rounds in the window, rounds learnt from


@compiled(**STEP)
def record(state, x, label, greedy, probability, feedback):
    """Write a round into the window, with what the weights hold best before they see its bit."""
    t = int(state.counts[0])
    score(state, x, state.scores)
    best = argmax(state.scores, -1)
    column = state.columns[t]
    column[0], column[1], column[2], column[3] = label, greedy, probability, feedback
    column[4], column[5] = best, lead(state.scores, best)
    if state.rows.shape[0]:
        state.rows[t] = 0.0
        for j in range(size(x)):
            state.rows[t, index(x, j)] = value(x, j)
    state.counts[0] += 1
    state.counts[1] += 1


@learns(RcineState)
def rcine(state, x, label, greedy, probability, feedback):
    """Push (x, ỹ, f_ρ) to S, then RCNBF's H with the estimated rates (the paper's Algorithm 2)."""
    record(state, x, label, greedy, probability, feedback)
    add_update(state.W, 1.0, state.rates, x, label, greedy, probability, feedback)


class RCINE(Learner):
    """RCNBF with Implicit Noise Estimation: it starts with rates (0, 0) and learns them as it goes.

    Every N_s rounds an estimator reads the rounds so far and its rates take the place of the old ones. An
    estimate that cannot be trusted (not identified, or β̂ below `beta_floor`) leaves the last good one. With
    `estimator="nrest"`, `refresh=50_000` and `pooled=False` this is the paper's Algorithm 2; the default is ours.
    Neither has a guarantee: Theorem 1 needs the true rates.

    Parameters
    ----------
    n_classes, n_features : K ≥ 2 labels, d ≥ 1 features.
    gamma : exploration in (0, 1], a number or an `Exploration`.
    estimator : "plateaus"; "nrest", or "nrest:iris" for the paper's network for a data set; or any
        `RateEstimator` of your own (which `save` cannot write).
    refresh : N_s ≥ 256, the rounds between two estimates.
    pooled : whether the estimator keeps what it learnt from earlier windows, or is cleared as published.
    beta_floor : the least β̂ that is believed.
    seed : of the exploration, and of NREst.

    Attributes
    ----------
    estimates : (rounds learnt from, `Estimate`) of every refresh since it was made or loaded.

    Examples
    --------
    >>> from fliptron import load, simulate
    >>> learner = RCINE(n_classes=10, n_features=64, seed=1)
    >>> trace = simulate(learner, load("digits"), rates=(0.2, 0.4), rounds=200_000, seed=1)
    >>> abs(learner.rates.beta - 0.4) < 0.1
    True

    References
    ----------
    Agarwal & Manwani (2021), Algorithm 2.
    """

    by_feature = True

    def __init__(
        self,
        *,
        n_classes: int,
        n_features: int,
        gamma: float | Exploration = 0.2,
        estimator: str | RateEstimator = "plateaus",
        refresh: int = 5000,
        pooled: bool = True,
        beta_floor: float = 0.05,
        seed: int = 0,
    ) -> None:
        self.estimator = estimator
        self.refresh = whole("refresh", refresh, 256)
        self.pooled, self.beta_floor = bool(pooled), real("beta_floor", beta_floor, 0.0, 1.0)
        self.estimates: list[tuple[int, Estimate]] = []
        self._estimator = _named(estimator, n_classes, seed) if isinstance(estimator, str) else estimator
        super().__init__(n_classes=n_classes, n_features=n_features, gamma=gamma, seed=seed, positive=True)

    def _start(self, W: Array, scores: Array) -> RcineState:
        # NREst must see all N_s rounds at once; plateaus rank margins within shorter windows of one length.
        parts = 1 if self._estimator.needs_rows else -(-self.refresh // 5000)
        size = -(-self.refresh // parts)
        rows = np.zeros((size if self._estimator.needs_rows else 0, self.n_features), dtype=np.float32)
        return RcineState(W, scores, np.zeros(2), np.zeros((size, 6)), rows, np.zeros(2, dtype=np.int64))

    @property
    def rates(self) -> Rates:
        """The rates it goes by now."""
        return Rates(*map(float, self.state.rates))

    def learn(self, x: Any, decision: Decision, feedback: int) -> None:
        """Learn from one bit, and every N_s of them estimate the rates anew."""
        super().learn(x, decision, feedback)
        self.settle()

    def room(self) -> int:
        """How many rounds fit before `settle` must be called."""
        waiting, learnt = self.state.counts
        return int(min(self.state.columns.shape[0] - waiting, self.refresh - learnt % self.refresh))

    def settle(self) -> None:
        """Hand a full window to the estimator and, when it is time, take its rates."""
        waiting, learnt = (int(each) for each in self.state.counts)
        refreshing = waiting > 0 and learnt % self.refresh == 0
        if waiting < self.state.columns.shape[0] and not refreshing:
            return
        self.state.counts[0] = 0
        label, greedy, probability, bit, best, margin = np.array(self.state.columns[:waiting].T)
        rows = np.array(self.state.rows[:waiting]) if self._estimator.needs_rows else None
        columns = label.astype(int), greedy.astype(int), probability, bit, best.astype(int), margin
        self._estimator.absorb(Window(*columns, rows))
        if refreshing:
            self._refresh()

    def _refresh(self) -> None:
        estimate = self._estimator.estimate()
        self.estimates.append((int(self.state.counts[1]), estimate))
        if estimate.verdict != "not identified" and estimate.beta >= self.beta_floor:
            self.state.rates[:] = estimate.rates
        if not self.pooled:
            self._estimator.clear()

    def _arrays(self) -> dict[str, Array]:
        kept: dict[str, Array] = getattr(self._estimator, "arrays", dict)()
        return super()._arrays() | {f"estimator_{name}": array for name, array in kept.items()}


def _named(name: str, n_classes: int, seed: int) -> RateEstimator:
    kind, _, network = name.partition(":")
    if kind == "plateaus" and not network:
        return Plateaus(n_classes=n_classes)
    if kind == "nrest" and (not network or network in NETWORKS):
        return NREst.for_dataset(network or "digits", n_classes=n_classes, seed=seed)
    raise InputError(
        f"estimator is {name!r}; 'plateaus', 'nrest', or 'nrest:' and one of {', '.join(NETWORKS)} is expected"
    )
