"""What a round costs on this machine: measured in the runs that are there, or on stand-ins for the data.

A stand-in has the shape of a data set, random rows and the labels of a random linear teacher: no data set is loaded,
and no network is trained to the end.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import lru_cache

import numpy as np

from fliptron.datasets.dataset import Dataset
from fliptron.datasets.registry import REGISTRY, load
from fliptron.experiments.paper import NREST
from fliptron.experiments.plan import Spec
from fliptron.experiments.roster import PYTHON, build
from fliptron.noise.published import NREst
from fliptron.results import Results
from fliptron.rounds import Rounds
from fliptron.simulation import simulate

_ROWS = 20_000  # more than caches hold of wide rows
_SECONDS = 0.15
_WINDOW = 50_000  # as long as NREst's: a shorter one would lie in the caches
_FILLED = 0.2  # of a sparse image
_LONGEST = 40_000  # rounds that are timed, fewer than NREst's window


def hours(specs: Sequence[Spec], results: Results, cores: int) -> float:
    """How long runs take on so many cores."""
    rounds: Counter[tuple[str, str]] = Counter()
    examples = {}
    for spec in specs:
        rounds[spec.learner, spec.dataset] += spec.rounds
        examples[spec.learner, spec.dataset] = spec
    known = {
        (row.learner, row.dataset): float(row.cost)
        for row in results.sql(
            "SELECT learner, dataset, quantile_cont(seconds / rounds, 0.25) AS cost FROM runs WHERE rounds >= 1000 "
            "GROUP BY learner, dataset"  # not the median: other work beside the runs slows some of them
        ).itertuples()
    }
    unknown = [key for key in rounds if key not in known]
    for key in unknown:  # compile first, so that no clock runs meanwhile
        with suppress(Exception):
            _play(examples[key], 1)
    alone = [key for key in unknown if key[0] in PYTHON]  # they play in processes; threads would hold each other up
    beside = [key for key in unknown if key[0] not in PYTHON]
    with ThreadPoolExecutor(cores) as pool:
        known |= dict(zip(beside, pool.map(lambda key: seconds_per_round(examples[key]), beside), strict=True))
    known |= {key: seconds_per_round(examples[key]) for key in alone}
    return sum(known[key] * count for key, count in rounds.items()) / (3600 * cores)


def seconds_per_round(spec: Spec) -> float:
    """The cost of a round of a run, on a stand-in for its data."""
    rounds, took = 100, 0.0
    while took < _SECONDS and 2 * rounds <= _LONGEST:
        rounds *= 2
        took = _play(spec, rounds)
        if took >= _SECONDS:  # something may have been compiled meanwhile, such as an estimate after so many rounds
            took = min(took, _play(spec, rounds))
    return took / rounds + _training(spec)


def _play(spec: Spec, rounds: int) -> float:
    dataset = stand_in(spec.dataset, spec.dtype)
    learner = build(spec.learner, dataset, seed=0, **spec.effective)
    return simulate(learner, dataset, rates=spec.rates, rounds=rounds).seconds


def _training(spec: Spec) -> float:
    """The cost of NREst's training, shared among the rounds of its window."""
    if spec.learner not in NREST:
        return 0.0
    dataset = stand_in(spec.dataset)
    estimator: NREst = build(spec.learner, dataset, seed=0, **spec.effective)._estimator
    epochs = estimator.epochs
    random = np.random.default_rng(0)
    label, bit = random.integers(dataset.n_classes, size=_WINDOW), random.integers(2, size=_WINDOW)
    X = random.standard_normal((_WINDOW, dataset.n_features), dtype=np.float32)
    estimator.absorb(Rounds(label=label, greedy=label, probability=np.ones(_WINDOW), bit=bit, X=X))
    stamps: list[float] = []
    estimator.epochs = 4
    estimator.progress = lambda *_: stamps.append(time.perf_counter())
    estimator.estimate()
    return float(np.median(np.diff(stamps))) * epochs / _WINDOW


@lru_cache(maxsize=16)
def stand_in(name: str, dtype: str = "float64") -> Dataset:
    """Random rows in the shape of a data set, with the labels of a random linear teacher; sparse ones as images are."""
    entry = REGISTRY[name]
    if "synthetic" in entry.source:
        return load(name, rows=2000)
    random = np.random.default_rng(0)
    X = random.standard_normal((min(entry.rows, _ROWS), entry.features))
    if dtype == "sparse":
        X[random.random(X.shape) > _FILLED] = 0.0
    y = (X @ random.standard_normal((entry.features, entry.classes))).argmax(axis=1)
    return Dataset.of(X, y, name=name, classes=tuple(range(entry.classes)), dtype=dtype)
