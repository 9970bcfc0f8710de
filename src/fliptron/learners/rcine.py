"""RCINE: RCNBF that estimates the rates while it plays."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np

from fliptron.arrays import Array, Row
from fliptron.exploration import Exploration
from fliptron.kernels.compiling import PART, compiled
from fliptron.kernels.loop import Scratch, learns, score
from fliptron.kernels.rows import index, size, value
from fliptron.kernels.vectors import argmax, lead
from fliptron.learners.base import Learner
from fliptron.learners.memory import check_memory
from fliptron.learners.rcnbf import add_update
from fliptron.noise.estimate import BETA_FLOOR, Estimate, RateEstimator, possible
from fliptron.noise.plateaus import Plateaus
from fliptron.noise.published import NETWORKS, NREst
from fliptron.refusals import InputError, real, whole
from fliptron.rounds import Decision, Rates, Rounds

_LABELS = {"nrest": "integer", "nrest-one-hot": "one-hot"}
_SPARE = 256  # rounds that other threads may learn from between a round that fills the window and its handing over


class RcineState(NamedTuple):
    """RCNBF's, and the window of rounds the estimator has not yet seen: the columns of `Rounds`."""

    W: Array
    scores: Scratch
    rates: Array
    counts: Array  # rounds in the window, rounds learnt from, and those at the last estimate
    label: Array
    greedy: Array
    probability: Array
    bit: Array
    best: Array
    margin: Array
    X: Array  # N×d, or 0×d if the estimator does not ask for x


@compiled(**PART)
def record(state: RcineState, x: Row, label: int, greedy: int, probability: float, feedback: int) -> None:
    """Write a round into the window, if it has room, with what the weights hold best before they see its bit."""
    t = state.counts[0]
    state.counts[1] += 1
    if not 0 <= t < state.label.shape[0]:
        return
    score(state, x, state.scores)
    best = argmax(state.scores, -1)
    state.label[t], state.greedy[t], state.probability[t], state.bit[t] = label, greedy, probability, feedback
    state.best[t], state.margin[t] = best, lead(state.scores, best)
    if state.X.shape[0]:
        state.X[t] = 0.0
        for j in range(size(x)):
            state.X[t, index(x, j)] = value(x, j)
    state.counts[0] = t + 1


@learns(RcineState)
def rcine(state: RcineState, x: Row, label: int, greedy: int, probability: float, feedback: int) -> None:
    """Push (x, ỹ, f_ρ) to S, then RCNBF's H with the estimated rates (the paper's Algorithm 2)."""
    record(state, x, label, greedy, probability, feedback)
    add_update(state.W, 1.0, state.rates, x, label, greedy, probability, feedback)


class RCINE(Learner):
    """RCNBF with Implicit Noise Estimation: it starts with rates (0, 0) and estimates them as it plays.

    Every N_s rounds an estimator reads the rounds so far, and RCNBF's update goes on with the rates it finds. An
    estimate that is not identified is not used, and the last one stays. One whose β̂ is below `beta_floor` is moved
    there, both rates alike. If it were discarded, one poor early estimate could leave RCINE with the rates (0, 0) for
    good. With ``estimator="nrest"``, ``refresh=50_000`` and ``pooled=False`` this is the paper's Algorithm 2; the
    default, plateaus, is ours. Neither has a guarantee: Theorem 1 needs the true rates.

    Parameters
    ----------
    n_classes, n_features
        K ≥ 2 labels, d ≥ 1 features.
    gamma
        Exploration in (0, 1], a number or an `Exploration`.
    estimator
        "plateaus"; "nrest" as its authors ran it, or "nrest-one-hot" as their text has it, each with a colon and a data
        set for the paper's network for it, such as "nrest:iris"; or any `RateEstimator` of your own (which `save`
        cannot write).
    refresh
        N_s ≥ 256, the rounds between two estimates.
    pooled
        True: the estimator keeps what it learnt from earlier windows. False: it is cleared, as in the paper.
    beta_floor
        The least β̂, from 0 to 1, that it plays by.
    seed
        Of the exploration, and of NREst.

    Attributes
    ----------
    estimates
        One pair (rounds learnt from, `Estimate`) per refresh since the learner was made or loaded.

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

    grows = False
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

    def _start(self) -> RcineState:
        # NREst must see all N_s rounds at once; plateaus rank margins within shorter windows of one length.
        shown = self._estimator.needs_rows
        size = self.refresh if shown else -(-self.refresh // -(-self.refresh // 5000))
        self._window = size
        size += _SPARE
        check_memory("RCINE's window", size * (6 + self.n_features * shown), "a shorter refresh")
        label, greedy, bit, best = np.zeros((4, size), dtype=np.int64)
        return RcineState(
            self._weights(),
            self._scores(),
            rates=np.zeros(2),
            counts=np.zeros(3, dtype=np.int64),
            label=label,
            greedy=greedy,
            probability=np.zeros(size),
            bit=bit,
            best=best,
            margin=np.zeros(size),
            X=np.zeros((size if shown else 0, self.n_features), dtype=np.float32),
        )

    def _bounds(self) -> dict[str, tuple[float, float]]:
        labels = dict.fromkeys(("label", "greedy", "best"), (0, self.n_classes - 1))
        return {"counts": (0, 2**62), "bit": (0, 1), "probability": (0.0, 1.0), **labels}

    def _flaw(self) -> str:
        waiting, learnt, last = self.state.counts
        if not (waiting <= min(learnt, self.state.label.shape[0]) and last <= learnt):
            return f"its window holds {waiting} rounds; at most {self.state.label.shape[0]} fit"
        if not (self.state.probability[:waiting] > 0.0).all():
            return "a probability is 0"
        Rates.of(self.state.rates)
        return ""

    @property
    def rates(self) -> Rates:
        """The rates that its updates use now."""
        with self.held():
            return Rates(*map(float, self.state.rates))

    def learn(self, x: Any, decision: Decision, feedback: int) -> None:
        """Learn from one bit; after every N_s bits, estimate the rates again."""
        super().learn(x, decision, feedback)
        self.settle()

    def room(self) -> int:
        """How many rounds fit before `settle` must be called."""
        waiting, learnt, last = self.state.counts
        return max(int(min(self._window - waiting, self.refresh - (learnt - last))), 1)

    def settle(self) -> None:
        """Hand a full window to the estimator and, when it is time, take its rates."""
        if not self._due()[0]:
            return
        with self.held():
            state, (waiting, refreshing) = self.state, self._due()  # another thread may have been faster
            if not waiting:
                return
            names = ["label", "greedy", "probability", "bit", "best", "margin"]
            names += ["X"] if self._estimator.needs_rows else []
            rounds = Rounds(**{name: np.array(getattr(state, name)[:waiting]) for name in names})
            state.counts[0] = 0
            self._estimator.absorb(rounds)
            if refreshing:
                self._refresh()

    def _due(self) -> tuple[int, bool]:
        """How many rounds to hand over now, and whether to estimate."""
        waiting, learnt, last = (int(each) for each in self.state.counts)
        refreshing = waiting > 0 and learnt - last >= self.refresh
        return (waiting, refreshing) if refreshing or waiting >= self._window else (0, False)

    def _refresh(self) -> None:
        estimate, counts = self._estimator.estimate(), self.state.counts
        counts[2] += (counts[1] - counts[2]) // self.refresh * self.refresh
        self.estimates.append((int(counts[1]), estimate))
        if estimate.verdict != "not identified":
            self.state.rates[:] = possible(*estimate.rates, max(self.beta_floor, BETA_FLOOR))
        if not self.pooled:
            self._estimator.clear()

    def __getstate__(self) -> dict[str, Any]:
        with self.held():
            kept = super().__getstate__()
            return kept | {"_estimator": copy.deepcopy(self._estimator), "estimates": list(self.estimates)}

    def _arrays(self) -> dict[str, Array]:
        kept: dict[str, Array] = getattr(self._estimator, "arrays", dict)()
        return super()._arrays() | {f"estimator_{name}": array for name, array in kept.items()}


def _named(name: str, n_classes: int, seed: int) -> RateEstimator:
    kind, _, network = name.partition(":")
    if kind == "plateaus" and not network:
        return Plateaus(n_classes=n_classes)
    if kind in _LABELS and (not network or network in NETWORKS):
        return NREst.for_dataset(network or "digits", n_classes=n_classes, label=_LABELS[kind], seed=seed)
    raise InputError(
        f"estimator is {name!r}; 'plateaus', 'nrest' or 'nrest-one-hot', with ':' and one of {', '.join(NETWORKS)} "
        "for the paper's network, is expected"
    )
