"""What a log tells: the flip rates behind its bits, a verdict, and the true accuracy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np

from fliptron.arrays import Array, to_unit_norm
from fliptron.balance import Balance
from fliptron.cluster import workers
from fliptron.encoding.encoder import Encoder
from fliptron.learners.base import Learner
from fliptron.learners.regression import LeastMeanSquares, RidgeRegression
from fliptron.logs.log import Batch, Log
from fliptron.noise.estimate import Z95, Estimate
from fliptron.noise.plateaus import Plateaus, Window
from fliptron.refusals import InputError, whole
from fliptron.rounds import Rounds

Progress = Callable[[int], object]
"""Called after each batch with the rounds read so far."""
_PIECE = 500_000  # rounds that a worker reads at a time
_SECOND_ORDER = 256  # features up to which the reference learner is a ridge regression


def audit(
    rounds: Rounds | Log,
    *,
    n_classes: int | None = None,
    window: int = 5000,
    half_life: float | None = None,
    progress: Progress | None = None,
    cluster: str | None = None,
) -> Estimate:
    """Estimate the flip rates and the true accuracy from stored rounds, in the order they were played.

    Rounds with margins are read as they are. Where there are examples instead, a ridge regression (beyond 256 features
    `LeastMeanSquares`) learns from the rounds in their order, and its margins are used, each taken before it sees the
    round's bit.

    Parameters
    ----------
    rounds
        A `Log`, which is read in batches; or a table, such as `trace.log` of a simulation.
    n_classes
        K; labels run from 0 to K − 1. The largest label seen plus one unless given. A `Log` knows its labels.
    window
        Rounds over which margins are ranked, at least 100.
    half_life
        Rounds, at least `window`, after which a bit counts half, for noise that drifts. None: nothing is forgotten.
    progress
        Called after each batch of a `Log`.
    cluster
        The address of a Dask scheduler whose workers, which must see the same files, read a `Log` that has margins. The
        numbers are the same.

    Examples
    --------
    >>> from fliptron import RidgeRegression, load, simulate
    >>> learner = RidgeRegression(n_classes=10, n_features=64, gamma=0.05, seed=0)
    >>> trace = simulate(learner, load("digits"), rates=(0.2, 0.4), rounds=100_000, log=True)
    >>> estimate = audit(trace.log)
    >>> estimate.verdict, round(estimate.rates.rho1, 1)
    ('identified', 0.4)
    """
    if isinstance(rounds, Log):
        reference = Reference(rounds)
        plateaus = Plateaus(n_classes=len(rounds.labels), window=window, half_life=half_life)
        done = 0 if cluster is None else _read_by(cluster, rounds, plateaus, progress)
        ones = 0
        for batch in rounds.batches(skip=done):
            read, part = reference.read(batch)[0], rounds.inside(batch)
            plateaus.observe(read.part(part.start, part.stop))
            done += len(batch.rounds)
            ones += int(batch.rounds.bit.sum())
            if progress is not None:
                progress(done)
        found = plateaus.estimate(reference.doubt)
        if rounds.span.start >= rounds.span.stop:
            found = replace(found, reason=never_together(rounds))
        return found if rounds.has_probabilities else _without_probabilities(found, ones, done)
    if not isinstance(rounds, Rounds):
        raise InputError(f"the rounds are a {type(rounds).__name__}; a Log, or rounds such as trace.log, is expected")
    table = with_margins(rounds, n_classes)
    plateaus = Plateaus(n_classes=_classes(table, n_classes), window=window, half_life=half_life)
    cuts = np.linspace(0, len(table), max(round(len(table) / plateaus.window), 1) + 1).astype(int)
    for start, stop in pairwise(cuts):  # windows of one length, without a short tail
        plateaus.absorb(table.part(start, stop))
    return plateaus.estimate()


def _read_by(cluster: str, log: Log, plateaus: Plateaus, progress: Progress | None) -> int:
    """Let workers count all full windows of a log, and add them up in order; how many rounds that were."""
    if not {"margin", "greedy"} <= set(log.roles) or not log.has_probabilities:
        raise InputError(
            f"{log.name} lacks margins, greedy labels or probabilities, so a learner must read it in one piece, and a "
            "cluster is no help"
        )
    start, full = log.span.start, (log.span.stop - log.span.start) // plateaus.window * plateaus.window
    step = max(_PIECE // plateaus.window, 1) * plateaus.window
    with workers(cluster) as pool:
        cuts = [*range(start, start + full, step), start + full]
        pieces = [pool.submit(_count, log, plateaus, a, b) for a, b in pairwise(cuts)]
        for at, piece in enumerate(pieces, start=1):
            for window in piece.result():
                plateaus.add(window)
            if progress is not None:
                progress(cuts[at])
    return start + full


def _count(log: Log, plateaus: Plateaus, start: int, stop: int) -> list[Window]:
    """The windows of rounds start … stop − 1."""
    rounds = Rounds.join([batch.rounds for batch in log.batches(skip=start, stop=stop)])
    cuts = range(0, len(rounds), plateaus.window)
    return [plateaus.tally(rounds.part(at, at + plateaus.window)) for at in cuts]


def never_together(log: Log) -> str:
    """Why no round of a log counts."""
    return (
        f"the labels were never all in play ({log.gap}): the rounds are not in the order they were played, unless a "
        "column is named that orders them, or they are of several logs"
    )


def with_margins(rounds: Rounds, n_classes: int | None = None) -> Rounds:
    """The rounds, checked, with a margin for each: their own, or that of a learner that replays them."""
    if len(rounds) == 0:
        raise InputError("the log holds no rounds; at least one is expected")
    table = Rounds.of(n_classes=n_classes, **rounds.columns())
    if table.margin is not None:
        return table
    if table.X is None:
        raise InputError("the log has neither margins nor examples; one of them is expected")
    learner = _reference(_classes(table, n_classes), table.X.shape[1])
    best, margin = learner.replay(to_unit_norm(table.X), table)
    return replace(table, margin=margin, best=best, X=None)


class Reference:
    """A learner that reads a log along: what it holds best before each bit, and what it expects of every label."""

    def __init__(self, log: Log) -> None:
        if log.schema is None and "margin" not in log.roles:
            raise InputError(f"{log.name} has neither a margin nor any column of features; one of them is expected")
        self._log, self._known = log, log.has_probabilities
        self._encoder = None if log.schema is None else Encoder(log.schema)
        self._balance = None if self._encoder is None else Balance(log.labels, self._encoder.columns)
        self._learner = None if self._encoder is None else _reference(len(log.labels), self._encoder.n_features)

    def read(self, batch: Batch, *, scores: bool = False) -> tuple[Rounds, Array | None]:
        """The rounds with margins and greedy labels; and, where wanted, the bits expected of every label."""
        rounds, expected = batch.rounds, None
        if not self._known:
            rounds = replace(rounds, probability=np.ones(len(rounds)), greedy=rounds.label)
        if self._learner is not None and (scores or rounds.margin is None or rounds.greedy[0] < 0):
            X = self._encoder.encode_all(batch.records)  # type: ignore[union-attr]
            if self._known:
                inside = self._log.inside(batch)
                self._balance.add(X[inside], rounds.label[inside], rounds.probability[inside])  # type: ignore[union-attr]
            expected = np.empty((len(rounds), self._learner.n_classes)) if scores else None
            best, margin = self._learner.replay(X, rounds, scores=expected)
            greedy = np.where(rounds.greedy < 0, best, rounds.greedy)
            rounds = replace(rounds, greedy=greedy)
            if rounds.margin is None:
                rounds = replace(rounds, margin=margin, best=best)
        if rounds.greedy[0] < 0:
            raise InputError(
                "the log has margins but no greedy labels that they belong to, and no features; either is expected"
            )
        return rounds, expected

    @property
    def doubt(self) -> str:
        """What is wrong with probabilities or features, by what was read; see `Balance`."""
        return "" if self._balance is None else self._balance.doubt


def _reference(n_classes: int, n_features: int) -> Learner:
    kind = RidgeRegression if n_features <= _SECOND_ORDER else LeastMeanSquares
    return kind(n_classes=n_classes, n_features=n_features)


def _without_probabilities(found: Estimate, ones: int, rounds: int) -> Estimate:
    """What is known whatever was played: the mean bit is ρ0 + β·accuracy, so that ρ0 ≤ mean ≤ 1 − ρ1 if β ≥ 0."""
    reason = (
        "the log does not say with which probability each label was played, so nobody can know what a random label "
        "earns, and with it ρ0; what is left are the bounds given here: ρ0 is at most the mean bit, and ρ1 at most 1 "
        "minus it"
    )
    centre = (ones + 2) / (rounds + 4)  # Agresti and Coull's
    half = Z95 * float(np.sqrt(centre * (1 - centre) / (rounds + 4)))
    bounds = {"rho0": (0.0, min(centre + half, 1.0)), "rho1": (0.0, min(1.0 - centre + half, 1.0)), "beta": (0.0, 1.0)}
    return replace(
        found,
        verdict="not identified",
        reason=reason,
        intervals={name: bounds.get(name, (0.0, 1.0)) for name in found.intervals},
        accuracy=None,
        greedy_accuracy=None,
    )


def _classes(rounds: Rounds, n_classes: int | None) -> int:
    if n_classes is not None:
        return whole("n_classes", n_classes, 2)
    return max(int(max(rounds.label.max(), rounds.greedy.max())) + 1, 2)
