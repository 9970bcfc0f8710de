"""Plays a plan, here or on a cluster; what is already in the store is not played again."""

from __future__ import annotations

import json
import os
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from functools import lru_cache
from itertools import groupby
from typing import Any

import fliptron
from fliptron.arrays import InputError, whole
from fliptron.datasets import Dataset, load
from fliptron.experiments.plan import Spec
from fliptron.experiments.roster import build
from fliptron.results import Results
from fliptron.simulate import StoppedError, simulate

Row = dict[str, Any]
Watch = Callable[[Sequence[Row]], object]
"""Called with the rows of each batch as it comes in."""

_BATCH = 250_000  # rounds of replicates that go to a cluster's worker together
_LOCK = threading.Lock()


def play(
    specs: Sequence[Spec],
    results: Results,
    *,
    jobs: int | None = None,
    cluster: str | None = None,
    watch: Watch = lambda rows: None,
) -> int:
    """Play what is missing and keep it as it comes in; how many runs failed.

    Threads play here: the compiled loop lets go of Python's lock, and they share the data. `cluster` is the address of
    a Dask scheduler, whose workers then play. The numbers are the same everywhere. Ctrl-C or a crash loses only runs
    in flight; a run that raises is kept as a failure, and is tried again next time.
    """
    results.compact()
    done, failed = results.done(), 0
    batches = list(_batches([spec for spec in specs if spec.id not in done], 0 if cluster is None else _BATCH))
    with _workers(jobs, cluster) as pool:
        running = {pool.submit(play_batch, batch): batch for batch in batches}
        try:
            for future in as_completed(running):
                try:
                    rows = future.result()
                except Exception as error:  # a worker was lost for good, or could not read its message
                    rows = [_about(spec) | {"failure": f"{type(error).__name__}: {error}"} for spec in running[future]]
                results.append(rows)
                failed += sum(row["failure"] is not None for row in rows)
                watch(rows)
        except BaseException:
            for future in running:
                future.cancel()
            _STOP.set()
            raise
        finally:
            if cluster is None:
                pool.shutdown(cancel_futures=True)
            _STOP.clear()
    results.compact()
    return failed


_STOP = threading.Event()


def play_batch(specs: Sequence[Spec]) -> list[Row]:
    """The rows of replicates of one run, on one worker."""
    return [play_one(spec) for spec in specs]


def play_one(spec: Spec) -> Row:
    """One run as a row; a failure is a row too."""
    row = _about(spec)
    try:
        dataset, checksum = _data(spec.dataset)
        trace = simulate(
            build(spec.learner, dataset, seed=spec.seed, **{"rates": spec.rates, **spec.params}),
            dataset,
            rates=spec.rates,
            rounds=spec.rounds,
            seed=spec.seed,
            order=spec.order,
            progress=_stop_if_asked,
        )
    except StoppedError:
        raise
    except InputError as error:
        return row | {"failure": str(error)}
    except Exception as error:  # whatever it is, the other runs go on and this one is on record
        where = traceback.extract_tb(error.__traceback__)[-1]
        return row | {"failure": f"{type(error).__name__}: {error} ({os.path.basename(where.filename)}:{where.lineno})"}
    found = [estimate for _, estimate in trace.estimates if estimate.verdict != "not identified"]
    return row | {
        "error": trace.error,
        "greedy_error": trace.greedy_error,
        "mean_bit": float(trace.positives[-1] / spec.rounds),
        "rho0_hat": found[-1].rates.rho0 if found else None,
        "rho1_hat": found[-1].rates.rho1 if found else None,
        "verdict": trace.estimates[-1][1].verdict if trace.estimates else None,
        "seconds": trace.seconds,
        "checkpoints": trace.rounds.tolist(),
        "mistakes": trace.mistakes.tolist(),
        "greedy_mistakes": trace.greedy_mistakes.tolist(),
        "data_sha256": checksum,
    }


def _about(spec: Spec) -> Row:
    """What is known of a run before it is played."""
    return {
        "id": spec.id,
        "dataset": spec.dataset,
        "rho0": spec.rates[0],
        "rho1": spec.rates[1],
        "stream": spec.order,
        "learner": spec.learner,
        "params": json.dumps(spec.params, sort_keys=True),
        "rounds": spec.rounds,
        "seed": spec.seed,
        "version": fliptron.__version__,
        "failure": None,
    }


def _batches(specs: Sequence[Spec], most: int) -> Iterator[list[Spec]]:
    """Replicates of one run, together while they have at most so many rounds."""
    for _, same in groupby(specs, key=lambda spec: spec.group):
        replicates = list(same)
        size = max(1, min(len(replicates), most // replicates[0].rounds))
        for start in range(0, len(replicates), size):
            yield replicates[start : start + size]


@contextmanager
def _workers(jobs: int | None, cluster: str | None) -> Iterator[Executor]:
    """Threads here, or the workers of a cluster: both are executors."""
    if cluster is None:
        with ThreadPoolExecutor(os.cpu_count() if jobs is None else whole("jobs", jobs, 1, 10_000)) as pool:
            yield pool
        return
    try:
        from distributed import Client
    except ImportError:
        raise InputError("--cluster needs Dask; install it with: pip install 'fliptron[cluster]'") from None
    try:
        client = Client(cluster, timeout="10s")  # type: ignore[no-untyped-call]
    except (OSError, ValueError, TimeoutError) as error:
        raise InputError(f"no Dask scheduler answers at {cluster} ({type(error).__name__})") from None
    with client:
        yield client.get_executor(retries=3)  # type: ignore[no-untyped-call]


def _data(name: str) -> tuple[Dataset, str]:
    with _LOCK:
        return _load(name)


@lru_cache(maxsize=8)
def _load(name: str) -> tuple[Dataset, str]:
    dataset = load(name)
    return dataset, dataset.checksum


def _stop_if_asked(done: int, mistakes: int) -> None:
    if _STOP.is_set():
        raise StoppedError
