"""Ctrl-C while a policy learns: each round of the log is learnt once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from fliptron import Encoder, Log, Policy, RidgeRegression, learn_log
from fliptron.cli.group import commands as main
from fliptron.interrupts import unbroken
from fliptron.logs.tables import write_table

ROUNDS = 100_000


@pytest.fixture(autouse=True)
def heard() -> Iterator[None]:
    """Ctrl-C is heard, also in a background job, where it is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="module")
def log(tmp_path_factory: Any) -> Path:
    path = tmp_path_factory.mktemp("shop") / "shop.parquet"
    random = np.random.default_rng(0)
    x = random.normal(size=(ROUNDS, 2))
    label = np.where(random.random(ROUNDS) < 0.5, "hats", "bags")
    bit = random.random(ROUNDS) < np.where((label == "hats") == (x[:, 0] > 0), 0.7, 0.2)
    table = {"age": x[:, 0], "income": x[:, 1], "shown": label, "propensity": np.full(ROUNDS, 0.5)}
    write_table(path, table | {"clicked": bit.astype(int)})
    return Path(path)


def seen(policy: Policy) -> int:
    """How many records the running means have taken in."""
    return int(policy.encoder.moments[0, 0])


@pytest.fixture
def pressed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Presses Ctrl-C when the second batch is encoded, and not yet learnt."""
    calls: list[int] = []
    encode_all = Encoder.encode_all

    def encoded(encoder: Encoder, records: Any, **more: Any) -> Any:
        found = encode_all(encoder, records, **more)
        calls.append(len(records))
        if len(calls) == 2:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)
        return found

    monkeypatch.setattr(Encoder, "encode_all", encoded)
    return calls


def test_a_batch_that_is_interrupted_is_learnt_whole_and_once(log: Path, pressed: list[int]) -> None:
    whole = learn_log(Log(log), RidgeRegression, gamma=0.1, rounds=1)
    policy = Policy(whole.labels, whole.encoder.schema, RidgeRegression, gamma=0.1)
    pressed.clear()
    with pytest.raises(KeyboardInterrupt):
        learn_log(Log(log), policy)
    assert len(pressed) == 2
    assert list(policy.learnt.values()) == [sum(pressed)] == [seen(policy)]
    learn_log(Log(log), policy)
    assert list(policy.learnt.values()) == [ROUNDS] == [seen(policy)]
    whole = learn_log(Log(log), RidgeRegression, gamma=0.1)
    np.testing.assert_array_equal(policy.learner.weights, whole.learner.weights)


def test_the_command_goes_on_where_it_stopped(log: Path, tmp_path: Path, pressed: list[int]) -> None:
    command = ["learn", str(log), "--learner", "RidgeRegression", "--save", str(tmp_path / "p.npz")]
    stopped = CliRunner().invoke(main, command)
    assert stopped.exit_code == 130
    assert "what was learnt is kept" in stopped.stderr
    half = Policy.load(tmp_path / "p.npz")
    assert list(half.learnt.values()) == [sum(pressed)] == [seen(half)]
    assert CliRunner().invoke(main, command).exit_code == 0
    assert seen(Policy.load(tmp_path / "p.npz")) == ROUNDS
    pressed[:] = [0]
    again = CliRunner().invoke(main, [*command, "--fresh"])
    assert "nothing was learnt as yet" in again.stderr


def test_what_is_learnt_is_kept_also_where_saving_is_interrupted(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved: list[Path] = []
    save = Policy.save

    def interrupted(policy: Policy, path: Any) -> None:
        saved.append(path)
        if len(saved) == 1:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)
        save(policy, path)

    monkeypatch.setattr(Policy, "save", interrupted)
    command = ["learn", str(log), "--learner", "RidgeRegression", "--save", str(tmp_path / "p.npz")]
    assert CliRunner().invoke(main, command).exit_code == 130
    assert seen(Policy.load(tmp_path / "p.npz")) == ROUNDS


def test_what_comes_when_all_is_done_changes_nothing() -> None:
    late = "atexit.register(os.kill, os.getpid(), signal.SIGINT)"
    program = (
        f"import atexit, os, signal, sys; {late}; from fliptron.cli import main; sys.argv[1:] = ['--help']; main()"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ended.returncode == 0
    assert not ended.stderr


@pytest.mark.parametrize("share", [0.3, 0.6])
def test_at_any_moment(log: Path, tmp_path: Path, share: float) -> None:
    path = tmp_path / "p.npz"
    command = [sys.executable, "-m", "fliptron", "learn", str(log), "--save", str(path)]
    command += ["--learner", "RidgeRegression"]
    start = time.monotonic()
    subprocess.run(command, check=True, capture_output=True)
    took = time.monotonic() - start
    path.unlink()
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(share * took)
    running.send_signal(signal.SIGINT)
    running.communicate()
    assert running.returncode in (0, 130)
    if path.exists():
        half = Policy.load(path)
        assert list(half.learnt.values()) == [seen(half)]
    again = subprocess.run(command, check=False, capture_output=True, text=True)
    assert again.returncode == 0 or "has learnt from all" in again.stderr
    assert seen(Policy.load(path)) == ROUNDS


def test_other_threads_and_strange_handlers_are_let_be() -> None:
    found: list[Any] = []

    def work() -> None:
        with unbroken():
            found.append(signal.getsignal(signal.SIGINT))

    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [before]
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with unbroken():
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)
