"""Compiled and plain-Python kernels agree; the counted randomness is SplitMix64."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from conftest import FAMILIES, LEARNERS
from fliptron import simulate
from fliptron.kernels import randomness

# The same rounds with compilation switched off: every kernel as Python runs it.
PLAIN = """
import sys, warnings
sys.path.insert(0, sys.argv[2])
warnings.simplefilter("ignore")  # NumPy warns when 64-bit integers wrap, which SplitMix64 is made of
import numba, numpy as np, scipy.sparse as sp
assert numba.config.DISABLE_JIT
import conftest
from fliptron import Dataset, simulate
X, y = conftest._small()
weights = {}
for kind, matrix in (("dense", X), ("sparse", sp.csr_array(X))):
    for name, make in conftest.LEARNERS.items():
        learner = make(n_classes=3, n_features=5, seed=2)
        simulate(learner, Dataset.of(matrix, y), rates=(0.2, 0.3), rounds=150, seed=1)
        weights[f"{kind} {name}"] = learner.weights
np.savez(sys.argv[1], **weights)
"""


@pytest.fixture(scope="session")  # a worker comes back to this file for each learner
def plain(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("plain") / "weights.npz"
    command = [sys.executable, "-c", PLAIN, str(path), os.path.dirname(__file__)]
    subprocess.run(command, check=True, env=os.environ | {"NUMBA_DISABLE_JIT": "1"})
    with np.load(path) as file:
        return dict(file)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("name", FAMILIES)
def test_compiled_and_plain_kernels_agree(name: Any, kind: Any, plain: Any, small: Any, small_sparse: Any) -> None:
    learner = LEARNERS[name](n_classes=3, n_features=5, seed=2)
    simulate(learner, small if kind == "dense" else small_sparse, rates=(0.2, 0.3), rounds=150, seed=1)
    np.testing.assert_allclose(learner.weights, plain[f"{kind} {name}"], rtol=1e-10, atol=1e-12)


def test_counted_randomness_is_splitmix64() -> None:
    # The first outputs of the reference generator from state 1234567.
    expected = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    for t, output in enumerate(expected):
        assert randomness.uniform(np.uint64(1234567), t) == (output >> 11) * 2.0**-53


@pytest.mark.parametrize("purpose", [randomness.ROWS, randomness.FLIPS, randomness.CHOICES])
def test_draws_are_uniform_and_uncorrelated_for_any_seed(purpose: Any) -> None:
    n = 20_000
    for seed in range(100):
        u = np.empty(n)
        randomness.uniforms(np.uint64(randomness.make_key(seed, purpose)), 0, u)
        assert abs(u.mean() - 0.5) < 6 * np.sqrt(1 / 12 / n)
        assert abs(np.corrcoef(u[1:], u[:-1])[0, 1]) < 6 / np.sqrt(n)
        assert np.abs(np.bincount((u * 16).astype(int), minlength=16) - n / 16).max() < 6 * np.sqrt(n / 16)


def test_purposes_and_seeds_are_independent_sequences() -> None:
    n = 20_000
    draws = []
    for seed in range(4):
        for purpose in (randomness.ROWS, randomness.FLIPS, randomness.CHOICES):
            u = np.empty(n)
            randomness.uniforms(np.uint64(randomness.make_key(seed, purpose)), 0, u)
            draws.append(u)
    correlation = np.corrcoef(draws) - np.eye(len(draws))
    assert np.abs(correlation).max() < 6 / np.sqrt(n)
