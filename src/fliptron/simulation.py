"""Stream × channel × learner → Trace."""

from __future__ import annotations

import copy
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np

from fliptron.arrays import LONGEST, Array
from fliptron.channel import FlipChannel
from fliptron.datasets.dataset import Dataset
from fliptron.kernels.compiling import entry
from fliptron.kernels.game import play, tally
from fliptron.kernels.loop import DECIDED
from fliptron.learners.base import Learner
from fliptron.learners.player import layout_for
from fliptron.refusals import InputError, one_of, shown, whole
from fliptron.rounds import Learns, Rates, Rounds, Trace
from fliptron.stream import Order, Stream

Engine = Literal["auto", "compiled", "python"]
Progress = Callable[[int, int], object]
"""Called after each block with the rounds done and the mistakes made."""

_PROGRESS_SECONDS = 0.1  # a slow learner takes shorter blocks, so that its progress is told as often


class StoppedError(Exception):
    """Raised in `progress`, it ends a run between two blocks."""


def simulate(
    learner: Learns,
    dataset: Dataset,
    *,
    rates: tuple[float, float] = (0.0, 0.0),
    rounds: int | None = None,
    seed: int = 0,
    order: Order = "resample",
    log: bool = False,
    engine: Engine = "auto",
    block: int = 8192,
    progress: Progress | None = None,
) -> Trace:
    """Let a learner play rounds on a data set whose feedback is flipped with these rates.

    The learner goes on from the state it has. Rows and flips depend on `seed` alone: two learners given the same seed
    meet the same examples and the same flips. The numbers do not depend on `block` or `engine`.

    Parameters
    ----------
    learner
        One of ours, a `Policy`, or any object with `decide` and `learn`; `Learns` says what else is used.
    dataset
        From `load`, ``Dataset.of(X, y)`` or ``Dataset.of_records(records, y)``.
    rates
        (ρ0, ρ1) of the channel, each ≥ 0 with a sum below 1.
    rounds
        How many, from 1 to 10¹⁵; one per row of the data set by default.
    seed
        Of rows and flips.
    order
        "resample", "shuffle" or "file"; see `Stream`.
    log
        Keep every round in `trace.log`; without it, memory does not grow with the rounds.
    engine
        "compiled" runs the learner's own compiled steps; "python" calls `decide` and `learn` in every round; "auto" is
        "compiled" for our learners and "python" for others.
    block
        The most rounds between two calls of `progress`, at least 1.
    progress
        Called after each block with the rounds done and the mistakes made.

    Examples
    --------
    >>> from fliptron import RidgeRegression, load
    >>> digits = load("digits")
    >>> learner = RidgeRegression(n_classes=10, n_features=64, gamma=0.05, seed=1)
    >>> trace = simulate(learner, digits, rates=(0.2, 0.4), rounds=20_000, seed=1)
    >>> 0.1 < trace.error < 0.4
    True
    """
    if isinstance(learner, type) or not all(callable(getattr(learner, each, None)) for each in ("decide", "learn")):
        what = f"the class {learner.__name__}" if isinstance(learner, type) else shown(learner)
        raise InputError(f"the learner is {what}; an instance is expected, such as Fliptron(n_classes=…, n_features=…)")
    if not isinstance(dataset, Dataset):
        raise InputError(f"the data is a {type(dataset).__name__}; a Dataset is expected: see load and Dataset.of")
    encoder = copy.deepcopy(dataset.encoder)
    if hasattr(learner, "opened"):  # a policy
        learner, encoder = learner.opened(encoder, dataset.classes, dataset.name)
    rounds = whole("rounds", dataset.n_rows if rounds is None else rounds, 1, 10**15)
    longest = whole("block", block, 1)
    block = longest if progress is None else min(longest, 256)
    stream = Stream(dataset.n_rows, order=order, seed=seed)
    channel = FlipChannel(*Rates.of(rates), seed=seed)
    play_block = _engine(learner, dataset, engine)
    ours = learner if isinstance(learner, Learner) else None
    if ours is not None:
        ours.arrange(layout_for(dataset.X))

    known = len(getattr(learner, "estimates", []))
    checkpoints = log_spaced(rounds)
    counts = np.zeros((4, checkpoints.size), dtype=np.int64)
    total, at = np.zeros(4, dtype=np.int64), 0
    kept: list[Rounds] = []
    began = time.perf_counter()
    stop = 0
    while stop < rounds:
        with nullcontext() if ours is None else ours.held():
            room = sys.maxsize
            if ours is not None:
                ours.settle()  # another thread may have learnt since
                room = ours.room()
            start, stop = stop, min(stop + block, rounds, stop + room)
            row = stream.rows(start, stop)
            given, at_rows = (dataset, row) if encoder is None else (dataset.encoded(row, encoder), np.arange(row.size))
            played = _room_for(at_rows, with_margins=log and hasattr(learner, "scores"))
            play_block(learner, given, channel, start, played)
            if ours is not None:
                ours.settle()
        at = tally(dataset.y, row, played.label, played.greedy, played.bit, start, checkpoints, at, total, counts)
        if log:
            kept.append(replace(played, row=row))
        if progress is not None:
            progress(stop, int(total[0]))
            pace = (time.perf_counter() - began) / stop
            block = int(np.clip(_PROGRESS_SECONDS / pace, 1, longest))
    return Trace(
        learner=type(learner).__name__,
        params=dict(getattr(learner, "params", {})),
        dataset=dataset.name,
        rates=channel.rates,
        order=order,
        seed=seed,
        rounds=checkpoints,
        mistakes=counts[0],
        greedy_mistakes=counts[1],
        explored=counts[2],
        positives=counts[3],
        seconds=time.perf_counter() - began,
        estimates=_estimates(learner, known, rounds),
        log=Rounds.join(kept) if log else None,
    )


def log_spaced(rounds: int, per_decade: int = 20) -> Array:
    """Checkpoints evenly spaced in log t, from 1 to the last round."""
    steps = int(np.ceil(np.log10(rounds) * per_decade)) + 1
    return np.unique(np.rint(np.geomspace(1, rounds, steps)).astype(np.int64))


def _room_for(row: Array, *, with_margins: bool) -> Rounds:
    """A table for rounds on these rows, to be filled."""
    n = row.size
    return Rounds(
        label=np.empty(n, np.int32),
        greedy=np.empty(n, np.int32),
        probability=np.empty(n),
        bit=np.empty(n, np.int8),
        margin=np.empty(n) if with_margins else None,
        row=row,
    )


def _engine(learner: Any, dataset: Dataset, engine: Engine) -> Callable[..., None]:
    one_of("engine", engine, get_args(Engine))
    if not isinstance(learner, Learner):
        if engine == "compiled":
            raise InputError(f"a {type(learner).__name__} has no compiled steps; use engine='python'")
        return _play_python
    if (learner.n_classes, learner.n_features) != (dataset.n_classes, dataset.n_features):
        raise InputError(
            f"the learner has {learner.n_classes} classes and {learner.n_features} features; "
            f"{dataset.name} has {dataset.n_classes} and {dataset.n_features}"
        )
    most = LONGEST[np.dtype(learner.dtype).itemsize]
    if dataset.longest > most:
        raise InputError(
            f"{dataset.name} has a row of length {dataset.longest:g}; at most {most:g} is allowed for {learner.dtype}"
        )
    return _play_python if engine == "python" else _Compiled()


class _Compiled:
    """The compiled loop. Numba looks at the types of all arguments at every call, which takes as long as a hundred
    rounds; here it looks once."""

    def __init__(self) -> None:
        self._play: Callable[..., None] | None = None

    def __call__(self, learner: Learner, dataset: Dataset, channel: FlipChannel, start: int, played: Rounds) -> None:
        arguments = (
            learner.state,
            dataset.X,
            dataset.y,
            played.row,
            learner.turn,
            np.uint64(learner.key),
            learner.rounds,
            channel.key,
            start,
            tuple(channel.rates),
            learner.full_information,
            played.label,
            played.greedy,
            played.probability,
            played.bit,
            np.empty(0) if played.margin is None else played.margin,
        )
        if self._play is None:
            self._play = entry(play, *arguments)
        self._play(*arguments)
        learner.turn[DECIDED] += len(played)


def _play_python(learner: Any, dataset: Dataset, channel: FlipChannel, start: int, played: Rounds) -> None:
    full_information = getattr(learner, "full_information", False)
    rows, margin = played.row, played.margin
    assert rows is not None
    for i, at in enumerate(rows):
        x, truth = dataset.row(at), int(dataset.y[at])
        decision = learner.decide(x)
        if margin is not None:
            margin[i] = _margin(learner, x)
        bit = channel.bit(start + i, decision.label == truth)
        learner.learn(x, decision, truth if full_information else bit)
        played.label[i], played.greedy[i], played.probability[i] = decision
        played.bit[i] = bit


def _margin(learner: Any, x: Any) -> float:
    """The lead of the best score."""
    second, best = np.partition(learner.scores(x[None] if isinstance(x, np.ndarray) else x)[0], -2)[-2:]
    return float(best - second)


def _estimates(learner: Any, known: int, rounds: int) -> list[tuple[int, Any]]:
    """What a learner that estimates the rates has found: its record, or its last word."""
    if hasattr(learner, "estimate"):
        return [(rounds, learner.estimate())]
    return list(getattr(learner, "estimates", [])[known:])
