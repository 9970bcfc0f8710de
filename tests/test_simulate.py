"""Simulation: paired, countable, independent of how it is cut up."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fliptron import (
    RCNBF,
    Banditron,
    Dataset,
    Decision,
    FlipChannel,
    InputError,
    RidgeRegression,
    Stream,
    load,
    simulate,
)
from fliptron.simulation import log_spaced


def banditron(seed: Any = 0) -> Any:
    return Banditron(n_classes=10, n_features=64, gamma=0.2, seed=seed)


@pytest.mark.parametrize("order", ["resample", "shuffle", "file"])
def test_results_do_not_depend_on_the_block(digits: Any, order: Any) -> None:
    learners = [banditron() for _ in range(3)]
    traces = [
        simulate(learner, digits, rates=(0.2, 0.4), rounds=5000, order=order, block=block, log=True)
        for learner, block in zip(learners, (1, 777, 10**6), strict=True)
    ]
    for learner, trace in zip(learners[1:], traces[1:], strict=True):
        np.testing.assert_array_equal(learner.weights, learners[0].weights)
        np.testing.assert_array_equal(trace.mistakes, traces[0].mistakes)
        np.testing.assert_array_equal(trace.log.row, traces[0].log.row)


def test_every_learner_meets_the_same_rows_and_flips(digits: Any) -> None:
    ridge = RidgeRegression(n_classes=10, n_features=64, gamma=0.2, seed=99)
    logs = [simulate(one, digits, rates=(0.3, 0.3), rounds=5000, seed=7, log=True).log for one in (banditron(), ridge)]
    np.testing.assert_array_equal(logs[0].row, logs[1].row)
    flipped = [log.bit != (log.label == digits.y[log.row]) for log in logs]
    np.testing.assert_array_equal(*flipped)  # with rho0 = rho1 the flip does not depend on the label


def test_counts_are_those_of_the_log(digits: Any) -> None:
    trace = simulate(banditron(), digits, rates=(0.2, 0.4), rounds=5000, seed=3, log=True)
    truth = digits.y[trace.log.row]
    for at, rounds in enumerate(trace.rounds):
        first = slice(0, rounds)
        assert trace.mistakes[at] == np.sum(trace.log.label[first] != truth[first])
        assert trace.greedy_mistakes[at] == np.sum(trace.log.greedy[first] != truth[first])
        assert trace.explored[at] == np.sum(trace.log.label[first] != trace.log.greedy[first])
        assert trace.positives[at] == trace.log.bit[first].sum()
    assert trace.rounds[-1] == 5000
    assert trace.error == trace.mistakes[-1] / 5000


def test_a_run_cut_by_a_save_is_the_same_learner(digits: Any, tmp_path: Path) -> None:
    whole, cut = banditron(), banditron()
    for learner in (whole, cut):
        simulate(learner, digits, rates=(0.2, 0.4), rounds=3000, seed=1)
    cut.save(tmp_path / "cut.npz")
    cut = Banditron.load(tmp_path / "cut.npz")
    for learner in (whole, cut):
        simulate(learner, digits, rates=(0.2, 0.4), rounds=3000, seed=2)
    np.testing.assert_array_equal(whole.weights, cut.weights)


def test_memory_does_not_grow_with_the_rounds(digits: Any) -> None:
    def peak(rounds: Any) -> Any:
        tracemalloc.start()
        simulate(banditron(), digits, rates=(0.2, 0.4), rounds=rounds)
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return size

    peak(1000)
    assert peak(3_000_000) < 1.1 * peak(300_000)


def test_progress_is_told(digits: Any) -> None:
    told = []
    trace = simulate(
        banditron(), digits, rounds=5000, block=1000, progress=lambda done, mistakes: told.append((done, mistakes))
    )
    assert told[-1] == (5000, trace.mistakes[-1])
    assert [done for done, _ in told] == sorted({done for done, _ in told})


def test_a_users_own_learner_needs_decide_and_learn_only(digits: Any) -> None:
    class Stubborn:
        bits = 0

        def decide(self, x: Any) -> Any:
            assert x.shape == (64,)
            return Decision(3, 3, 1.0)

        def learn(self, x: Any, decision: Any, feedback: Any) -> None:
            self.bits += feedback

    learner = Stubborn()
    trace = simulate(learner, digits, rates=(0.2, 0.4), rounds=2000)
    assert trace.learner == "Stubborn"
    assert learner.bits == trace.positives[-1]
    with pytest.raises(InputError, match="no compiled steps"):
        simulate(learner, digits, rounds=10, engine="compiled")


@pytest.mark.parametrize("rates", [(0.0, 0.0), (0.15, 0.15), (0.2, 0.4), (0.4, 0.2)])
def test_the_channel_flips_at_its_rates_for_any_seed(rates: Any) -> None:
    n = 2000
    for seed in range(100):
        channel = FlipChannel(*rates, seed=seed)
        for correct, rate in ((False, rates[0]), (True, rates[1])):
            flips = sum(channel.bit(t, correct) != correct for t in range(n))
            assert abs(flips - rate * n) <= 6 * np.sqrt(n * rate * (1 - rate))


class TestStream:
    def test_a_shuffled_pass_shows_every_row_once_and_the_next_in_another_order(self) -> None:
        stream = Stream(50, order="shuffle", seed=3)
        first, second = stream.rows(0, 50), stream.rows(50, 100)
        assert sorted(first) == sorted(second) == list(range(50))
        assert list(first) != list(second)
        np.testing.assert_array_equal(stream.rows(30, 80), np.concatenate([first[30:], second[:30]]))

    def test_file_order_starts_again(self) -> None:
        assert list(Stream(3, order="file").rows(1, 7)) == [1, 2, 0, 1, 2, 0]

    def test_resampling_is_uniform_for_any_seed(self) -> None:
        for seed in range(100):
            counts = np.bincount(Stream(10, seed=seed).rows(0, 10_000), minlength=10)
            assert np.abs(counts - 1000).max() < 6 * np.sqrt(1000)

    def test_an_unknown_order_is_refused(self) -> None:
        with pytest.raises(InputError, match="order is 'random'; 'resample', 'shuffle' or 'file' is expected"):
            Stream(3, order="random")


def test_checkpoints_are_log_spaced_and_end_at_the_last_round() -> None:
    for rounds in (1, 2, 7, 1000, 123_457):
        points = log_spaced(rounds)
        assert points[0] == 1
        assert points[-1] == rounds
        assert (np.diff(points) > 0).all()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rounds": 0}, "rounds is 0"),
        ({"rates": (0.7, 0.3)}, "must be below 1"),
        ({"seed": -1}, "seed is -1"),
        ({"engine": "gpu"}, "engine is 'gpu'"),
        ({"block": 0}, "block is 0"),
    ],
)
def test_bad_settings_are_refused(digits: Any, change: Any, words: Any) -> None:
    with pytest.raises(InputError, match=words):
        simulate(banditron(), digits, **({"rounds": 10} | change))


def test_a_learner_of_another_shape_is_refused() -> None:
    data = Dataset.of(np.eye(3), [0, 1, 2])
    with pytest.raises(InputError, match="10 classes and 64 features; data has 3 and 3"):
        simulate(banditron(), data, rounds=10)


@pytest.mark.parametrize(("learner", "what"), [(None, "None"), (RCNBF, "the class RCNBF"), ("RCNBF", "'RCNBF'")])
def test_what_is_no_learner_is_refused(learner: Any, what: Any) -> None:
    with pytest.raises(InputError, match=f"the learner is {what}; an instance is expected"):
        simulate(learner, load("iris"))
