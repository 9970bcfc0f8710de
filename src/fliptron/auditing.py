"""What a log tells: the flip rates behind its bits, a verdict, and the true accuracy."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from fliptron.arrays import to_unit_norm
from fliptron.kernels.loop import replay
from fliptron.learners.base import Learner
from fliptron.learners.regression import LeastMeanSquares, RidgeRegression
from fliptron.noise.estimate import Estimate
from fliptron.noise.plateaus import Plateaus
from fliptron.refusals import InputError, whole
from fliptron.rounds import Rounds

_SECOND_ORDER = 256  # features up to which the reference learner is a ridge regression


def audit(
    rounds: Rounds,
    *,
    n_classes: int | None = None,
    window: int = 5000,
    half_life: float | None = None,
) -> Estimate:
    """Estimate the flip rates and the true accuracy from stored rounds, in the order they were played.

    Rounds with margins are read as they are. Where there are examples instead, a ridge regression (beyond 256 features
    `LeastMeanSquares`) learns from the rounds in their order, and its margins are used, each taken before it sees the
    round's bit.

    Parameters
    ----------
    rounds
        Such as `read_log` returns, or `trace.log` of a simulation.
    n_classes
        K; labels run from 0 to K − 1. The largest label seen plus one unless given.
    window
        Rounds over which margins are ranked, at least 100.
    half_life
        Rounds, at least `window`, after which a bit counts half, for noise that drifts. None: nothing is forgotten.

    Examples
    --------
    >>> from fliptron import RidgeRegression, load, simulate
    >>> learner = RidgeRegression(n_classes=10, n_features=64, gamma=0.05, seed=0)
    >>> trace = simulate(learner, load("digits"), rates=(0.2, 0.4), rounds=100_000, log=True)
    >>> estimate = audit(trace.log)
    >>> estimate.verdict, round(estimate.rates.rho1, 1)
    ('identified', 0.4)
    """
    table = with_margins(rounds, n_classes)
    plateaus = Plateaus(n_classes=_classes(table, n_classes), window=window, half_life=half_life)
    cuts = np.linspace(0, len(table), max(round(len(table) / plateaus.window), 1) + 1).astype(int)
    for start, stop in pairwise(cuts):  # windows of one length, without a short tail
        plateaus.absorb(table.part(start, stop))
    return plateaus.estimate()


def with_margins(rounds: Rounds, n_classes: int | None = None) -> Rounds:
    """The rounds, checked, with a margin for each: their own, or that of a learner that replays them."""
    if len(rounds) == 0:
        raise InputError("the log holds no rounds; at least one is expected")
    table = Rounds.of(n_classes=n_classes, **rounds.columns())
    if table.margin is not None:
        return table
    if table.X is None:
        raise InputError("the log has neither margins nor examples; one of them is expected")
    shape = {"n_classes": _classes(table, n_classes), "n_features": table.X.shape[1]}
    learner: Learner = (RidgeRegression if table.X.shape[1] <= _SECOND_ORDER else LeastMeanSquares)(**shape)
    best, margin = np.empty(len(table), dtype=np.int64), np.empty(len(table))
    bit = table.bit.astype(np.int64)
    replay(learner.state, to_unit_norm(table.X), table.label, table.greedy, table.probability, bit, best, margin)
    return replace(table, margin=margin, best=best, X=None)


def _classes(rounds: Rounds, n_classes: int | None) -> int:
    if n_classes is not None:
        return whole("n_classes", n_classes, 2)
    return max(int(max(rounds.label.max(), rounds.greedy.max())) + 1, 2)
