"""A policy from a log: rounds that another policy played, learnt from in their order."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from fliptron.arrays import Array
from fliptron.encoding.records import Table
from fliptron.interrupts import unbroken
from fliptron.learners.among import among_some
from fliptron.learners.base import Learner
from fliptron.learners.fliptron import Fliptron
from fliptron.learners.regression import LeastMeanSquares, RidgeRegression
from fliptron.logs.log import Log
from fliptron.noise.estimate import Estimate
from fliptron.policy import Policy
from fliptron.refusals import InputError, named, whole
from fliptron.rounds import Rounds

_NEEDS_NO_PROBABILITY = (Fliptron, LeastMeanSquares, RidgeRegression)
Watch = Callable[[Policy, int, Rounds, Array], object]
"""Called after each batch with the policy, how many rounds of the log it has learnt from, the batch, and the label that
it held best in each round before it saw the bit."""
_ROWS = 5


def learn_log(
    log: Log,
    learner: type[Learner] | Policy = Fliptron,
    *,
    rounds: int | None = None,
    watch: Watch | None = None,
    **settings: Any,
) -> Policy:
    """Learn a policy from a log.

    A policy that has learnt from the beginning of the log goes on from there. Ctrl-C takes effect between two batches,
    so that nothing is ever learnt twice.

    Parameters
    ----------
    log
        The rounds that were played.
    learner
        The class of a learner for a new policy, or a policy that goes on learning.
    rounds
        How many of the log's rounds to learn from, from the first on; all unless given.
    watch
        Called after each batch.
    settings
        The parameters of a new policy's learner.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from fliptron.datasets.shop import shop
    >>> from fliptron.logs.tables import write_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "shop.parquet"
    ...     write_table(path, shop(5000, rates=(0.1, 0.2)).log)
    ...     policy = learn_log(Log(path))
    >>> policy
    Policy(Fliptron: 6 columns → 'bags', 'hats', 'shoes', 'socks')
    """
    if not isinstance(log, Log):
        raise InputError(f"the log is a {type(log).__name__}; a Log is expected")
    rounds = None if rounds is None else whole("rounds", rounds, 1)
    if isinstance(learner, Policy):
        policy = learner
        if settings:
            raise InputError(f"{', '.join(settings)} cannot be changed in a policy that has begun to learn")
        if set(log.labels) - set(policy.labels):
            odd = sorted(map(str, set(log.labels) - set(policy.labels)))
            raise InputError(f"the log has labels that the policy does not know: {named(odd)}; add them to it first")
        policy.missing(log.features, log.name)
    else:
        if log.schema is None:
            raise InputError(f"{log.name} has no columns of features; a policy needs at least one")
        policy = Policy(log.labels, log.schema, learner, **settings)
    if not log.has_probabilities and not isinstance(policy.learner, _NEEDS_NO_PROBABILITY):
        raise InputError(f"a {type(policy.learner).__name__} needs the probability of each label that was played")
    numbers = np.array([policy.number(label) for label in log.labels])
    last = log.n_rounds if rounds is None else min(rounds, log.n_rounds)
    done = log.learnt_by(policy)
    for batch in log.batches(skip=done):
        part, records, inside = batch.rounds, batch.records, log.inside(batch)
        if done + len(part) > last:
            part, records = part.part(0, last - done), records.part(0, last - done)
        if len(part) == 0:
            break
        known = part.greedy >= 0
        part = replace(
            part,
            label=numbers[part.label],
            greedy=np.where(known, numbers[part.greedy], -1),
            probability=np.where(np.isnan(part.probability), 1.0, part.probability),
        )
        with unbroken():  # what is learnt, and that it is, are one
            best = _replayed(policy, records, part, inside)
            done += len(part)
            policy.learnt[log.fingerprint] = done
        if watch is not None:
            watch(policy, done, part, best)
    return policy


def _replayed(policy: Policy, records: Table, rounds: Rounds, inside: slice) -> Array:
    """Learn from a batch; not all labels were in play but `inside`. The label held best in each round before."""
    best, n = np.empty(len(rounds), dtype=np.int64), len(rounds)
    for piece, (start, stop) in enumerate(pairwise((0, min(inside.start, n), min(inside.stop, n), n))):
        if start < stop:
            with nullcontext() if piece == 1 else among_some(policy.learner):
                best[start:stop], _ = policy.replay(records.part(start, stop), rounds.part(start, stop))
    return best


class Progressive:
    """What a policy would have earned while it learnt: in each round it is judged before it sees the bit.

    Weights are 1/P where it would have played the same label (SNIPS).

    Parameters
    ----------
    before
        Rounds of the log that it learnt from earlier.
    """

    def __init__(self, before: int = 0) -> None:
        self._before = before
        self._sums: list[tuple[int, float, float, float]] = []

    def add(self, rounds: Rounds, best: Array) -> None:
        """Take in a batch, in parts."""
        for part in np.array_split(np.arange(len(rounds)), min(len(rounds), 2 * _ROWS)):
            weight = (best[part] == rounds.label[part]) / rounds.probability[part]
            ones = weight * rounds.bit[part]
            self._sums.append((part.size, weight.sum(), (weight**2).sum(), ones.sum()))

    def rows(self, noise: Estimate | None) -> list[tuple[str, str, str]]:
        """Rounds, its mean bit and, where the noise is known, its true accuracy with an interval, by fifths."""
        sums = np.array(self._sums).reshape(-1, 4)
        ends = np.cumsum(sums[:, 0])
        cuts = np.searchsorted(ends, ends[-1:] * np.arange(1, _ROWS) / _ROWS) + 1
        found, stop = [], self._before
        for part in np.split(sums, cuts):
            n, w, ww, ones = part.sum(axis=0)
            start, stop = stop, stop + int(n)
            if w <= 0.0:
                continue
            mean, worth = ones / w, w * w / ww
            told = "–"
            if noise is not None and noise.verdict != "not identified":
                centre = (worth * mean + 2) / (worth + 4)
                value, (low, high) = noise.true_accuracy(float(mean), centre * (1 - centre) / (worth + 4))
                told = f"{value:.3f} [{low:.3f}, {high:.3f}]"
            found.append((f"{start:,} to {stop:,}", f"{mean:.4f}", told))
        return found
