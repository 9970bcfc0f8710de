"""Plays a plan, here or on a cluster; what is already in the store is not played again."""

from __future__ import annotations

import os
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from functools import lru_cache
from itertools import groupby
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

import fliptron
from fliptron.cluster import workers
from fliptron.datasets.dataset import Dataset
from fliptron.datasets.registry import load
from fliptron.experiments.plan import Spec
from fliptron.experiments.roster import PYTHON, build
from fliptron.logs.tables import write_log
from fliptron.output import make_folder
from fliptron.refusals import InputError, whole
from fliptron.results import Results, Run
from fliptron.simulation import StoppedError, simulate

_BATCH = 250_000  # rounds of replicates that go to a cluster's worker together
_MOST = 200  # estimates kept of a run
_LOCK = threading.Lock()
_STOP = threading.Event()
_COMPILED: set[tuple[str, ...]] = set()
Play = Callable[[Spec], Run]


class Watch:
    """Told of a plan's progress; this one says nothing."""

    def block(self, spec: Spec, done: int, mistakes: int) -> None:
        """A run on this machine has played so many rounds and made so many mistakes."""

    def finished(self, runs: Sequence[Run]) -> None:
        """Runs have finished, or failed."""


def play(
    specs: Sequence[Spec],
    results: Results,
    *,
    jobs: int | None = None,
    cluster: str | None = None,
    watch: Watch | None = None,
    logs: Path | None = None,
    how: Play | None = None,
    processes: bool = False,
) -> int:
    """Play the runs that are missing, and keep each as it finishes. Returns how many runs failed.

    Ctrl-C or a crash loses only the runs that were being played. A run that raises an error is kept as a failure, and
    is tried again next time. The numbers do not depend on threads or cluster.

    Parameters
    ----------
    specs
        The runs of a plan, from `read_plan` or `grid`.
    results
        Where they are kept. Another process that plays into the same folder at the same time is refused.
    jobs
        Threads, one per core by default. They share the data, and the compiled loop runs without Python's lock.
    cluster
        The address of a Dask scheduler, whose workers then play.
    watch
        Told of the progress.
    logs
        A folder in which each run leaves its rounds; runs that are there are then played again.
    how
        Plays one run; by default `play_one`.
    processes
        Play learners that spend their time in Python, such as Vowpal Wabbit, in processes of their own, where they do
        not wait for one another. The main module of your program must then bear being imported.
    """
    watch = watch or Watch()
    threads = os.cpu_count() if jobs is None else whole("jobs", jobs, 1, 10_000)
    failed = 0
    with results.driven():
        results.compact()
        done = results.done()
        left = [spec for spec in specs if spec.id not in done or logs]
        apart = processes and how is None and logs is None and cluster is None
        alone = [spec for spec in left if apart and spec.learner in PYTHON]
        shared = [spec for spec in left if not (apart and spec.learner in PYTHON)]
        if shared:
            one = how or (lambda spec: play_one(spec, watch, logs))
            if how is None and cluster is None:
                _compile_all(shared)
            with _workers(threads, cluster) as pool:
                failed += _drain(pool, shared, results, watch, one if cluster is None else how, cluster is not None)
        if alone:
            with _processes(threads) as pool:
                failed += _drain(pool, alone, results, watch, None, together=False)
        results.compact()
    return failed


def _drain(
    pool: Executor, specs: Sequence[Spec], results: Results, watch: Watch, how: Play | None, together: bool
) -> int:
    """Hand runs to workers, and keep each as it comes back; how many failed."""
    failed = 0
    batches = _batches(specs, _BATCH if together else 0)
    waiting: dict[Future[list[Run]], list[Spec]] = {pool.submit(_play_batch, batch, how): batch for batch in batches}
    try:
        while waiting:
            ready, _ = wait(waiting, timeout=0.5, return_when=FIRST_COMPLETED)  # wakes up for Ctrl-C
            runs: list[Run] = []  # of short ones several: a part takes longer to write than some take to play
            for future in ready:
                batch = waiting.pop(future)
                try:
                    runs += [
                        run if run.id == spec.id else about(spec, failure="its worker has other code or data")
                        for run, spec in zip(future.result(), batch, strict=True)
                    ]
                except Exception as error:  # a worker was lost for good, or could not read its message
                    runs += [about(spec, failure=f"{type(error).__name__}: {error}") for spec in batch]
            if runs:
                results.append(runs)
                failed += sum(run.failure is not None for run in runs)
                watch.finished(runs)
    except BaseException:
        _STOP.set()
        for future in waiting:
            future.cancel()
        raise
    finally:
        if isinstance(pool, ThreadPoolExecutor):  # processes do not see the sign: whoever made them ends them
            pool.shutdown(cancel_futures=True)
        _STOP.clear()
    return failed


def _play_batch(specs: Sequence[Spec], how: Play | None) -> list[Run]:
    """Replicates of one run, on one worker; a failure is a run too."""
    return [_guarded(spec, how or play_one) for spec in specs]


def _guarded(spec: Spec, how: Play) -> Run:
    try:
        return how(spec)
    except StoppedError:
        raise
    except InputError as error:
        return about(spec, failure=str(error))
    except Exception as error:  # whatever it is, the other runs go on and this one is on record
        where = traceback.extract_tb(error.__traceback__)[-1]
        told = f"{type(error).__name__}: {error} ({os.path.basename(where.filename)}:{where.lineno})"
        return about(spec, failure=told)


def play_one(spec: Spec, watch: Watch | None = None, logs: Path | None = None) -> Run:
    """One run."""
    dataset, checksum = data(spec)
    _compile(spec, dataset)

    def progress(done: int, mistakes: int) -> None:
        if _STOP.is_set():
            raise StoppedError
        if watch is not None:
            watch.block(spec, done, mistakes)

    trace = simulate(
        build(spec.learner, dataset, seed=spec.seed, **spec.effective),
        dataset,
        rates=spec.rates,
        rounds=spec.rounds,
        seed=spec.seed,
        order=spec.order,
        log=logs is not None,
        progress=progress,
    )
    if logs is not None and trace.log is not None:
        write_log(_log_of(spec, make_folder(logs)), trace.log)
    found = [estimate for _, estimate in trace.estimates if estimate.verdict != "not identified"]
    last = trace.estimates[-1][1] if trace.estimates else None
    return about(
        spec,
        error=trace.error,
        greedy_error=trace.greedy_error,
        mean_bit=float(trace.positives[-1] / spec.rounds),
        rho0_hat=found[-1].rates.rho0 if found else None,
        rho1_hat=found[-1].rates.rho1 if found else None,
        intervals={name: list(ends) for name, ends in last.intervals.items()} if last else {},
        verdict=last.verdict if last else None,
        seconds=trace.seconds,
        checkpoints=trace.rounds.tolist(),
        mistakes=trace.mistakes.tolist(),
        greedy_mistakes=trace.greedy_mistakes.tolist(),
        details={"estimates": _few(trace.estimates)} if len(trace.estimates) > 1 else {},
        data_sha256=checksum,
    )


def _few(estimates: Sequence[tuple[int, Any]]) -> list[tuple[int, float, float]]:
    """How the rates went, at no more than `_MOST` moments, ever further apart: rounds, ρ̂0 and ρ̂1."""
    last = len(estimates)
    kept = range(last) if last <= _MOST else sorted({int(i) - 1 for i in np.geomspace(1, last, _MOST)})
    return [(at, float(found.rates.rho0), float(found.rates.rho1)) for at, found in (estimates[i] for i in kept)]


def data(spec: Spec) -> tuple[Dataset, str]:
    """The data set of a run and its checksum; loaded once."""
    with _LOCK:
        return _load(spec.dataset, spec.raw, spec.dtype, spec.rows, spec.encode, spec.label, tuple(spec.kinds.items()))


@lru_cache(maxsize=8)
def _load(
    name: str,
    raw: bool,
    dtype: str,
    rows: int | None,
    encode: bool | None,
    label: str | None,
    kinds: tuple[tuple[str, str], ...],
) -> tuple[Dataset, str]:
    dataset = load(name, unit_norm=not raw, dtype=dtype, rows=rows, encode=encode, label=label, kinds=dict(kinds))
    return dataset, dataset.checksum


def _compile(spec: Spec, dataset: Dataset) -> None:
    """Compile what a run needs, once, before any clock starts."""
    kind = _kind(spec)
    with _LOCK:
        if kind not in _COMPILED:
            simulate(build(spec.learner, dataset, seed=0, **spec.effective), dataset, rates=spec.rates, rounds=1)
            _COMPILED.add(kind)


def _compile_all(specs: Sequence[Spec]) -> None:
    """The same for a plan, so that no run is slowed by another's compilation. What goes wrong is said by the run."""
    for spec in {_kind(spec): spec for spec in specs}.values():
        with suppress(Exception):
            _compile(spec, data(spec)[0])


def _kind(spec: Spec) -> tuple[str, ...]:
    return spec.learner, spec.dataset, spec.dtype, str(spec.effective.get("form"))


def about(spec: Spec, **found: Any) -> Run:
    """A run of which this was found."""
    return Run(
        id=spec.id,
        dataset=spec.dataset,
        rho0=spec.rates[0],
        rho1=spec.rates[1],
        stream=spec.order,
        learner=spec.learner,
        params=spec.effective,
        rounds=spec.rounds,
        seed=spec.seed,
        code=spec.code,
        version=fliptron.__version__,
        options={"raw": spec.raw, "dtype": spec.dtype, "rows": spec.rows},
        **found,
    )


def _log_of(spec: Spec, logs: Path) -> Path:
    return logs / f"{spec.learner}-{spec.seed}.parquet"


def _batches(specs: Sequence[Spec], most: int) -> Iterator[list[Spec]]:
    """Replicates of one run, together while they have at most so many rounds."""
    for _, same in groupby(specs, key=lambda spec: spec.group):
        replicates = list(same)
        size = max(1, min(len(replicates), most // replicates[0].rounds))
        for start in range(0, len(replicates), size):
            yield replicates[start : start + size]


@contextmanager
def _processes(count: int | None) -> Iterator[Executor]:
    """Processes, for learners that spend their time in Python and would wait for one another's lock."""
    context, ours = get_context("spawn"), (os.getpid(),)
    with ProcessPoolExecutor(count, mp_context=context, initializer=_end_with_parent, initargs=ours) as pool:
        children = pool._processes  # the pool itself waits for what is being played
        try:
            yield pool
        except BaseException:
            for child in list(children.values()):
                child.terminate()
            raise


def _end_with_parent(parent: int) -> None:
    """Let Ctrl-C be the parent's business, and end when the parent is gone, even if it was killed before this began."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def _workers(threads: int | None, cluster: str | None) -> Iterator[Executor]:
    """Threads here, or the workers of a cluster: both are executors."""
    with ThreadPoolExecutor(threads) if cluster is None else workers(cluster) as pool:
        yield pool
