"""Playing plans: resumed, in parallel, on a cluster with a killed worker; always the same numbers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fliptron import InputError, Log, audit
from fliptron.experiments.plan import grid
from fliptron.experiments.runner import Watch, play
from fliptron.logs.tables import write_table
from fliptron.results import Results

SPECS = grid(
    datasets=["iris", "digits"],
    rates=[(0.2, 0.4), (0.0, 0.0)],
    learners={"RCNBF": {"gamma": [0.1, 0.3]}, "RCINE": {}, "Fliptron": {"half_life": [2000]}},
    rounds=1500,
    seeds=range(3),
)
PLAN = """\
[[grid]]
datasets = ["digits"]
rates = [[0.2, 0.4]]
rounds = 100_000
seeds = 12
learners.Fliptron = {}
"""
COLUMNS = ["id", "error", "greedy_error", "mean_bit", "rho0_hat", "rho1_hat"]


def numbers(results: Any) -> Any:
    return results.load().sort_values("id")[COLUMNS].reset_index(drop=True)


@pytest.fixture(scope="module")
def serial(tmp_path_factory: pytest.TempPathFactory) -> Any:
    results = Results(tmp_path_factory.mktemp("serial"))
    assert play(SPECS, results, jobs=1) == 0
    return results


def test_every_run_is_there_once_with_its_numbers(serial: Any) -> None:
    runs = serial.load()
    assert sorted(runs.id) == sorted(spec.id for spec in SPECS)
    assert runs.error.between(0, 1).all()
    assert json.loads(runs[runs.learner == "Fliptron"].params.iloc[0])["half_life"] == 2000
    assert serial.sql("SELECT DISTINCT params->>'gamma' AS gamma FROM runs WHERE learner = 'RCINE'").gamma.tolist() == [
        "0.2"
    ]
    curves = serial.sql("SELECT id, max(rounds) AS last, arg_max(error, rounds) AS error FROM curves GROUP BY id")
    assert (curves["last"] == 1500).all()
    merged = curves.merge(runs, on="id", suffixes=("_curve", ""))
    assert (merged.error_curve == merged.error).all()


def test_threads_give_the_same_numbers(serial: Any, tmp_path: Path) -> None:
    results = Results(tmp_path)
    play(SPECS, results, jobs=4)
    assert numbers(results).equals(numbers(serial))


def test_what_is_there_is_not_played_again_and_the_rest_is(serial: Any, tmp_path: Path) -> None:
    results = Results(tmp_path)
    played: list[str] = []

    class Listening(Watch):
        def finished(self, runs: Any) -> None:
            played.extend(run.id for run in runs)

    play(SPECS[:7], results)
    play(SPECS, results, watch=Listening())
    assert sorted(played) == sorted(spec.id for spec in SPECS[7:])
    assert numbers(results).equals(numbers(serial))


def test_a_failed_run_is_on_record_and_is_tried_again(tmp_path: Path) -> None:
    table = tmp_path / "data.csv"
    table.write_text("1,2,a\n")
    specs = grid(datasets=[str(table)], rates=[(0, 0)], learners={"Banditron": {}}, rounds=100, seeds=[0])
    results = Results(tmp_path / "results")
    assert play([*specs, *SPECS[:1]], results) == 1
    assert len(results.load()) == 1
    (failure,) = results.sql("SELECT failure FROM failures").failure
    assert "has 1 class; at least 2 are expected" in failure
    table.write_text("1,2,a\n2,1,b\n")
    assert play(specs, results) == 0
    assert len(results.sql("SELECT * FROM failures")) == 0
    assert len(results.load()) == 2


def test_an_interrupt_keeps_what_had_finished(tmp_path: Path) -> None:
    results = Results(tmp_path)

    class Impatient(Watch):
        def finished(self, runs: Any) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        play(SPECS, results, jobs=1, watch=Impatient())
    assert 0 < len(results.load()) < len(SPECS)


def test_a_bad_query_is_refused(serial: Any) -> None:
    with pytest.raises(InputError, match="cannot be answered"):
        serial.sql("SELECT nothing FROM nowhere")


def fliptron_cli(*words: Any, **options: Any) -> Any:
    return subprocess.Popen(
        [sys.executable, "-m", "fliptron", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        **options,
    )


def finish(process: Any) -> Any:
    text, _ = process.communicate(timeout=240)
    return text if process.returncode else 0


def wait_for(condition: Any, seconds: Any = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def test_a_killed_driver_loses_nothing_that_had_finished(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(PLAN.replace("seeds = 12", "seeds = 20").replace("100_000", "20_000"))
    folder, whole = tmp_path / "killed", tmp_path / "whole"
    command = ("play", tmp_path / "plan.toml", "--jobs", 1, "--out")
    driver = fliptron_cli(*command, folder)
    wait_for(lambda: folder.is_dir() and any(folder.glob("*.parquet")))
    os.kill(driver.pid, signal.SIGKILL)
    driver.communicate()
    kept = Results(folder).done()
    assert 0 < len(kept) < 20
    again = fliptron_cli(*command, folder)
    text, _ = again.communicate()
    assert again.returncode == 0, text
    assert f"{len(kept)} of 20 runs are already there" in text
    assert finish(fliptron_cli(*command, whole)) == 0
    assert numbers(Results(folder)).equals(numbers(Results(whole)))
    assert sorted(Results(folder).sql("SELECT id FROM parts").id) == sorted(Results(whole).done())


def test_a_cluster_gives_the_same_numbers_and_survives_a_killed_worker(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    address = tmp_path / "scheduler.json"
    common: Any = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": tmp_path}
    dask = [sys.executable, "-m", "dask"]
    processes = [
        subprocess.Popen(
            [*dask, "scheduler", "--scheduler-file", address, "--port", "0", "--no-dashboard", "--host", "127.0.0.1"],
            **common,
        )
    ]
    try:
        wait_for(address.exists)
        wait_for(lambda: address.read_text().rstrip().endswith("}"))
        worker = [*dask, "worker", "--scheduler-file", address, "--nthreads", "1", "--no-nanny", "--no-dashboard"]
        workers = [subprocess.Popen(worker, **common) for _ in range(2)]
        processes += workers
        (tmp_path / "plan.toml").write_text(PLAN)
        folder, here = tmp_path / "cluster", tmp_path / "here"
        driver = fliptron_cli(
            "play", tmp_path / "plan.toml", "--out", folder, "--cluster", json.loads(address.read_text())["address"]
        )
        wait_for(lambda: folder.is_dir() and any(folder.glob("*.parquet")))  # both are at work, and far from done
        workers[0].send_signal(signal.SIGKILL)
        assert driver.poll() is None
        text, _ = driver.communicate(timeout=240)
        assert driver.returncode == 0, text
        assert finish(fliptron_cli("play", tmp_path / "plan.toml", "--out", here)) == 0
        assert numbers(Results(folder)).equals(numbers(Results(here)))
        _a_log_is_read_alike(tmp_path, json.loads(address.read_text())["address"])
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _a_log_is_read_alike(folder: Path, cluster: str) -> None:
    random, n = np.random.default_rng(0), 23_456
    words = np.array(["bags", "hats", "shoes"], dtype=object)
    columns = {"label": words[random.integers(0, 3, n)], "greedy": words[random.integers(0, 3, n)]}
    columns |= {"probability": np.full(n, 0.3), "bit": random.integers(0, 2, n), "margin": random.random(n)}
    write_table(folder / "log.parquet", columns)
    here, there = (audit(Log(folder / "log.parquet"), cluster=each) for each in (None, cluster))
    assert here == there
    columns["age"] = columns.pop("margin")
    write_table(folder / "plain.parquet", columns)
    with pytest.raises(InputError, match="a learner must read it in one piece"):
        audit(Log(folder / "plain.parquet"), cluster=cluster)


def test_a_cluster_that_is_not_there_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    (tmp_path / "plan.toml").write_text(PLAN)
    driver = fliptron_cli("play", tmp_path / "plan.toml", "--out", tmp_path / "o", "--cluster", "nonsense://x")
    text, _ = driver.communicate()
    assert driver.returncode == 2
    assert "no Dask scheduler answers at nonsense://x" in text
