"""Stream × channel × learner → Trace."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from fliptron.arrays import Array, InputError, whole
from fliptron.channel import FlipChannel
from fliptron.datasets import Dataset
from fliptron.kernels.compiling import entry
from fliptron.kernels.loop import play, tally
from fliptron.learners import Learner
from fliptron.noise import Estimate
from fliptron.rounds import Rates, RoundLog, Trace
from fliptron.stream import Order, Stream

Engine = Literal["auto", "compiled", "python"]
Progress = Callable[[int, int], object]
"""Called after each block with the rounds done and the mistakes made."""

_PROGRESS_SECONDS = 0.1  # a slow learner takes shorter blocks, so that its progress is told as often
_COLUMNS = {
    "row": np.int64,
    "label": np.int32,
    "greedy": np.int32,
    "probability": np.float64,
    "bit": np.int8,
    "margin": np.float64,
}


class StoppedError(Exception):
    """Raised in `progress`, it ends a run between two blocks."""


def simulate(
    learner: Any,
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

    The learner goes on from the state it has. Rows and flips depend on `seed` alone: two learners given
    the same seed see the same examples and the same lies. Nothing depends on `block` or `engine`.

    Parameters
    ----------
    learner : one of ours, or any object with `decide(x)` and `learn(x, decision, feedback)`.
    dataset : from `fliptron.datasets.load`, or `Dataset.of(X, y)`.
    rates : (ρ0, ρ1) of the channel.
    rounds : how many; one for each row by default.
    seed : of rows and flips.
    order : "resample", "shuffle" or "file"; see `Stream`.
    log : keep every round in `trace.log`; without it, memory does not grow with the rounds.
    engine : "compiled" runs the learner's own compiled steps; "python" calls `decide` and `learn` once a
        round; "auto" takes the first where it can.
    block : the most rounds between two calls of `progress`.

    Examples
    --------
    >>> from fliptron import RidgeRegression, load
    >>> digits = load("digits")
    >>> learner = RidgeRegression(n_classes=10, n_features=64, gamma=0.05, seed=1)
    >>> trace = simulate(learner, digits, rates=(0.2, 0.4), rounds=20_000, seed=1)
    >>> 0.1 < trace.error < 0.4
    True
    """
    if not isinstance(dataset, Dataset):
        raise InputError(f"the data is a {type(dataset).__name__}; a Dataset is expected: see load and Dataset.of")
    rounds = whole("rounds", dataset.n_rows if rounds is None else rounds, 1, 10**15)
    longest = whole("block", block, 1)
    block = longest if progress is None else min(longest, 256)
    stream = Stream(dataset.n_rows, order=order, seed=seed)
    channel = FlipChannel(*Rates.of(rates), seed=seed)
    room, settle = getattr(learner, "room", lambda: sys.maxsize), getattr(learner, "settle", lambda: None)
    play_block = _engine(learner, dataset, engine)
    if isinstance(learner, Learner):
        learner.arrange(dataset.X)

    known = len(getattr(learner, "estimates", []))
    checkpoints = log_spaced(rounds)
    counts = np.zeros((4, checkpoints.size), dtype=np.int64)
    total, at = np.zeros(4, dtype=np.int64), 0
    kept: list[dict[str, Array]] = []
    began = time.perf_counter()
    stop = 0
    while stop < rounds:
        start, stop = stop, min(stop + block, rounds, stop + room())
        done = {name: np.empty(stop - start, dtype) for name, dtype in _COLUMNS.items()}
        done["row"] = stream.rows(start, stop)
        if not log:
            done["margin"] = np.empty(0)
        play_block(learner, dataset, channel, start, done)
        settle()
        row, label, greedy, bit = (done[name] for name in ("row", "label", "greedy", "bit"))
        at = tally(dataset.y, row, label, greedy, bit, start, checkpoints, at, total, counts)
        if log:
            kept.append(done)
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
        log=RoundLog(**{name: np.concatenate([b[name] for b in kept]) for name in _COLUMNS}) if log else None,
    )


def log_spaced(rounds: int, per_decade: int = 20) -> Array:
    """Checkpoints evenly spaced in log t, from 1 to the last round."""
    steps = int(np.ceil(np.log10(rounds) * per_decade)) + 1
    return np.unique(np.rint(np.geomspace(1, rounds, steps)).astype(np.int64))


def _engine(learner: Any, dataset: Dataset, engine: Engine) -> Callable[..., None]:
    if engine not in ("auto", "compiled", "python"):
        raise InputError(f"engine is {engine!r}; 'auto', 'compiled' or 'python' is expected")
    ours = isinstance(learner, Learner)
    if engine == "compiled" and not ours:
        raise InputError(f"a {type(learner).__name__} has no compiled steps; use engine='python'")
    if ours and (learner.n_classes, learner.n_features) != (dataset.n_classes, dataset.n_features):
        raise InputError(
            f"the learner has {learner.n_classes} classes and {learner.n_features} features; "
            f"{dataset.name} has {dataset.n_classes} and {dataset.n_features}"
        )
    return _Compiled() if ours and engine != "python" else _play_python


class _Compiled:
    """The compiled loop. Numba looks at the types of all arguments at every call, which takes as long as a hundred
    rounds; here it looks once."""

    def __init__(self) -> None:
        self._play: Callable[..., None] | None = None

    def __call__(
        self, learner: Learner, dataset: Dataset, channel: FlipChannel, start: int, done: dict[str, Array]
    ) -> None:
        arguments = (
            learner.state,
            dataset.X,
            dataset.y,
            done["row"],
            learner.schedule,
            np.uint64(learner.key),
            learner.rounds,
            channel.key,
            start,
            tuple(channel.rates),
            learner.full_information,
            done["label"],
            done["greedy"],
            done["probability"],
            done["bit"],
            done["margin"],
        )
        if self._play is None:
            self._play = entry(play, *arguments)
        self._play(*arguments)
        learner.rounds += done["row"].size


def _play_python(learner: Any, dataset: Dataset, channel: FlipChannel, start: int, done: dict[str, Array]) -> None:
    full_information = getattr(learner, "full_information", False)
    for i, at in enumerate(done["row"]):
        x, truth = dataset.row(at), int(dataset.y[at])
        decision = learner.decide(x)
        if done["margin"].size:
            done["margin"][i] = _margin(learner, x)
        bit = channel.bit(start + i, decision.label == truth)
        learner.learn(x, decision, truth if full_information else bit)
        done["label"][i], done["greedy"][i], done["probability"][i] = decision
        done["bit"][i] = bit


def _margin(learner: Any, x: Any) -> float:
    """The lead of the best score; not a number where a user's learner has no scores."""
    if not hasattr(learner, "scores"):
        return np.nan
    second, best = np.partition(learner.scores(x if sp.issparse(x) else x[None])[0], -2)[-2:]
    return float(best - second)


def _estimates(learner: Any, known: int, rounds: int) -> list[tuple[int, Estimate]]:
    """What a learner that estimates the rates has found: its record, or its last word."""
    if hasattr(learner, "estimate"):
        return [(rounds, learner.estimate())]
    return list(getattr(learner, "estimates", [])[known:])
