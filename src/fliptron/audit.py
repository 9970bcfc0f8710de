"""What a log tells: the flip rates behind its bits, a verdict, and the true accuracy."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from fliptron.arrays import InputError, as_matrix, to_unit_norm, whole
from fliptron.kernels.loop import replay
from fliptron.learners import Learner, LeastMeanSquares, RidgeRegression
from fliptron.logs import Log
from fliptron.noise import Estimate, Plateaus, Window
from fliptron.rounds import RoundLog

_MOST_CLASSES = 10**6
_SECOND_ORDER = 256  # features up to which the reference learner is a ridge regression


def audit(
    log: Log | RoundLog,
    *,
    n_classes: int | None = None,
    window: int = 5000,
    half_life: float | None = None,
) -> Estimate:
    """Estimate the flip rates and the true accuracy from stored rounds, in the order they were played.

    A log with margins is read as it is. One with examples instead is replayed by a learner of its own (ridge
    regression, or its first-order cousin beyond 256 features), whose margins, each from before the round's bit,
    take their place. Labels run from 0 to K − 1; K is the largest seen plus one unless given.
    """
    rounds = as_window(log, n_classes)
    plateaus = Plateaus(n_classes=_classes(log, n_classes), window=window, half_life=half_life)
    cuts = np.linspace(0, rounds.rounds, max(round(rounds.rounds / plateaus.window), 1) + 1).astype(int)
    for start, stop in pairwise(cuts):  # windows of one length, without a short tail
        plateaus.absorb(rounds.part(start, stop))
    return plateaus.estimate()


def as_window(log: Log | RoundLog, n_classes: int | None = None) -> Window:
    """The rounds of a log, checked, with a margin for each."""
    K = _classes(log, n_classes)
    columns = {name: getattr(log, name) for name in ("label", "greedy", "probability", "bit")}
    if log.margin is not None:
        return Window.of(n_classes=K, margin=log.margin, **columns)
    if not isinstance(log, Log) or log.X is None:
        raise InputError("the log has neither margins nor examples; one of them is expected")
    checked = Window.of(n_classes=K, margin=np.zeros(np.shape(log.bit)), **columns)
    shape = {"n_classes": K, "n_features": log.X.shape[1]}
    learner: Learner = (RidgeRegression if log.X.shape[1] <= _SECOND_ORDER else LeastMeanSquares)(**shape)
    X = to_unit_norm(as_matrix(log.X))
    best, margin = np.empty(checked.rounds, dtype=np.int64), np.empty(checked.rounds)
    bit = checked.bit.astype(np.int64)
    replay(learner.state, X, checked.label, checked.greedy, checked.probability, bit, best, margin)
    return Window.of(n_classes=K, margin=margin, best=best, **columns)


def _classes(log: Log | RoundLog, n_classes: int | None) -> int:
    if n_classes is not None:
        return whole("n_classes", n_classes, 2)
    if np.size(log.label) == 0:
        raise InputError("the log holds no rounds; at least one is expected")
    largest = float(np.max([np.max(log.label), np.max(log.greedy)]))
    if not 0 <= largest < _MOST_CLASSES:
        raise InputError(f"the largest label is {largest:g}; labels run from 0 to K − 1, at most {_MOST_CLASSES}")
    return max(int(largest) + 1, 2)
