"""Learners × seeds on one data set and one noise setting."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

import fliptron
from fliptron.arrays import Array, InputError, whole
from fliptron.datasets import Dataset
from fliptron.experiments.roster import build
from fliptron.logs import write_log
from fliptron.output import make_folder
from fliptron.rounds import Rates, Trace
from fliptron.simulate import StoppedError, simulate
from fliptron.stream import Order

Watch = Callable[[str, int, int, int], object]
"""Called after each block with learner, seed, rounds done and mistakes made."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What came of it: finished runs by learner, in the order asked for."""

    dataset: Dataset
    rates: Rates
    rounds: int
    order: Order
    seeds: list[int]
    traces: dict[str, list[Trace]] = field(default_factory=dict)

    @property
    def interrupted(self) -> bool:
        """Whether runs are missing."""
        return any(len(runs) < len(self.seeds) for runs in self.traces.values())

    @property
    def finished(self) -> dict[str, list[Trace]]:
        """The learners of which at least one run is there."""
        return {name: runs for name, runs in self.traces.items() if runs}

    def rows(self) -> list[dict[str, Any]]:
        """One row a learner: mean errors with 95 % intervals over seeds, speed, settings."""
        checksum = self.dataset.checksum
        return [
            {
                "learner": name,
                **_summary("error", [run.error for run in runs]),
                **_summary("greedy_error", [run.greedy_error for run in runs]),
                "rounds_per_second": self.rounds * len(runs) / sum(run.seconds for run in runs),
                "dataset": self.dataset.name,
                "rates": list(self.rates),
                "rounds": self.rounds,
                "order": self.order,
                "seeds": [run.seed for run in runs],
                **_rates_found(runs),
                "params": {key: value for key, value in runs[0].params.items() if key != "seed"},
                "data_sha256": checksum,
                "version": fliptron.__version__,
            }
            for name, runs in self.finished.items()
        ]


def _rates_found(runs: list[Trace]) -> dict[str, Any]:
    """The last rates that a learner with an estimator found and could trust, over seeds."""
    found = [[each.rates for _, each in run.estimates if each.verdict != "not identified"] for run in runs]
    last = np.array([rates[-1] for rates in found if rates])
    if not last.size:
        return {}
    mean, half = interval(last)
    return {"rates_mean": mean.tolist(), "rates_ci95": None if half is None else half.tolist()}


def interval(values: Array) -> tuple[Array, Array | None]:
    """Mean over the first axis and half the width of its 95 % interval (Student's t); None for one value."""
    mean, n = np.mean(values, axis=0), len(values)
    if n < 2:
        return mean, None
    return mean, stats.t.ppf(0.975, n - 1) * np.std(values, axis=0, ddof=1) / np.sqrt(n)


def compare(
    names: Sequence[str],
    dataset: Dataset,
    *,
    rates: tuple[float, float],
    rounds: int,
    seeds: Sequence[int],
    order: Order = "resample",
    gamma: Any = None,
    dtype: str = "float64",
    jobs: int | None = None,
    watch: Watch | None = None,
    logs: Path | None = None,
) -> Comparison:
    """Run every learner with every seed. An interrupt (Ctrl-C) keeps the runs that had finished.

    Runs share one process: the compiled loop lets go of Python's lock, so threads fill the cores and
    share the data. The numbers do not depend on `jobs`. With `logs`, each run leaves its rounds in that folder.
    """
    whole("seeds", len(seeds), 0, 10**6)
    seeds = [whole("seed", seed, 0, 2**63 - 1) for seed in seeds]
    if not names or not seeds:
        raise InputError("no run is asked for; at least one learner and one seed are expected")
    result = Comparison(dataset, Rates.of(rates), whole("rounds", rounds, 1), order, seeds)
    stop = threading.Event()

    def run(name: str, seed: int, rounds: int) -> Trace:
        def progress(done: int, mistakes: int) -> None:
            if stop.is_set():
                raise StoppedError
            if watch is not None:
                watch(name, seed, done, mistakes)

        learner = build(name, dataset, rates=rates, seed=seed, gamma=gamma, dtype=dtype)
        trace = simulate(
            learner,
            dataset,
            rates=rates,
            rounds=rounds,
            seed=seed,
            order=order,
            log=logs is not None,
            progress=progress,
        )
        if logs is None or trace.log is None:
            return trace
        write_log(logs / f"{name}-{seed}.parquet", trace.log)
        return replace(trace, log=None)

    learners = {name: build(name, dataset, rates=rates, seed=0, gamma=gamma, dtype=dtype) for name in names}
    result.traces.update({name: [] for name in learners})
    if logs is not None:
        make_folder(logs)
    runs: dict[Future[Trace], str] = {}
    with ThreadPoolExecutor(os.cpu_count() if jobs is None else whole("jobs", jobs, 1, 10_000)) as pool:
        try:
            for learner in learners.values():  # compiles, before any clock starts
                simulate(learner, dataset, rates=rates, rounds=1, order=order)
            runs = {pool.submit(run, name, seed, result.rounds): name for name in learners for seed in seeds}
            waiting = set(runs)
            while waiting:
                done, waiting = wait(waiting, timeout=0.2, return_when=FIRST_EXCEPTION)
                for future in done:
                    future.result()  # raises what went wrong
        except KeyboardInterrupt:
            pass
        finally:
            stop.set()
            pool.shutdown(cancel_futures=True)
    for future, name in runs.items():
        if not future.cancelled() and future.exception() is None:
            result.traces[name].append(future.result())
    for traces in result.traces.values():
        traces.sort(key=lambda trace: trace.seed)
    return result


def _summary(name: str, values: list[float]) -> dict[str, float | None]:
    mean, half = interval(np.array(values))
    return {f"{name}_mean": float(mean), f"{name}_ci95": None if half is None else float(half)}
