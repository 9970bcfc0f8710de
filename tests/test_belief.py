"""What a belief about weights does with a prior that turns out to be too narrow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fliptron import Dataset, Fliptron, Learner, simulate
from fliptron.learners.belief import PRIOR, WIDEST, due, widen


def believing(K: int = 3, d: int = 6, large: float = 60.0) -> Fliptron:
    """A learner that knows all weights well; those of feature 2 are too large for the prior, that of feature 4 is not
    known at all."""
    learner = Fliptron(n_classes=K, n_features=d)
    random = np.random.default_rng(0)
    for r in range(K):
        A = random.standard_normal((d, 3 * d)) / 4
        A[4] = 0.0
        learner.state.covariance[r] = np.linalg.inv(A @ A.T + np.eye(d) / PRIOR)
    learner.state.W[:] = random.standard_normal((K, d))
    learner.state.W[:, 2] = large, *[-large / (K - 1)] * (K - 1)
    return learner


def test_a_prior_that_is_too_narrow_is_exchanged_for_a_wider_one() -> None:
    learner = believing()
    W, before = learner.state.W.copy(), learner.state.covariance.copy()
    known = np.sum(1 - before[:, 2, 2] / PRIOR)
    widen(learner.state)
    wide = (np.sum(W[:, 2] ** 2) + 0.3 * PRIOR) / (known + 0.3)
    np.testing.assert_allclose(learner.state.prior, [PRIOR, PRIOR, wide, PRIOR, PRIOR, PRIOR])
    assert wide > 5 * PRIOR
    for r in range(3):  # all that the bits said stays, and the wider prior takes the place of the old one
        said = np.linalg.inv(before[r]) - np.eye(6) / PRIOR
        np.testing.assert_allclose(
            np.linalg.inv(learner.state.covariance[r]), said + np.diag(1 / learner.state.prior), atol=1e-9
        )
    np.testing.assert_array_equal(learner.state.W, W)


@pytest.mark.parametrize("large", [0.0, 5.0, 15.0])
def test_weights_that_the_prior_expects_change_nothing(large: float) -> None:
    learner = believing(large=large)
    before = learner.state.covariance.copy()
    widen(learner.state)
    np.testing.assert_array_equal(learner.state.covariance, before)
    assert set(learner.state.prior) == {PRIOR}


def test_a_prior_has_a_widest_and_never_narrows() -> None:
    learner = believing(large=1e9)
    for _ in range(3):
        widen(learner.state)
        assert learner.state.prior[2] == WIDEST * PRIOR
        learner.state.W[:] = 0.0
    assert (np.linalg.eigvalsh(learner.state.covariance) > 0).all()


def test_priors_are_looked_at_ever_more_rarely() -> None:
    looked = [n for n in range(1, 7000) if due(float(n))]
    assert looked == [512, 768, 1024, 1536, 2048, 3072, 4096, 6144]


def hidden(rows: int = 4000, extra: int = 12) -> Dataset:
    """The label hangs on the sign of a product of two columns, which is one feature of many and a small one."""
    random = np.random.default_rng(1)
    Z = random.uniform(-1, 1, (rows, extra))
    product = Z[:, 0] * Z[:, 1]
    return Dataset.of(np.column_stack([np.ones(rows), Z, 0.15 * product]), (product > 0).astype(int), name="hidden")


@pytest.fixture(scope="module")
def finder() -> tuple[Fliptron, Any]:
    data = hidden()
    learner = Fliptron(n_classes=2, n_features=data.n_features, seed=1)
    return learner, simulate(learner, data, rates=(0.2, 0.4), rounds=30_000, seed=1)


def test_a_small_feature_that_tells_all_is_found(finder: Any) -> None:
    learner, trace = finder
    assert learner.state.prior.argmax() == learner.n_features - 1
    assert learner.state.prior[-1] > 5 * PRIOR
    assert trace.error < 0.15  # where the prior stays it is above 0.3


def test_wider_priors_are_kept_in_files_and_for_new_labels(finder: Any, tmp_path: Path) -> None:
    learner, _ = finder
    learner.save(tmp_path / "learner.npz")
    loaded: Any = Learner.load(tmp_path / "learner.npz")
    np.testing.assert_array_equal(loaded.state.prior, learner.state.prior)
    loaded.add_label()
    np.testing.assert_array_equal(np.diag(loaded.state.covariance[2]), learner.state.prior)
