"""The vector kernels beside NumPy's one-liners, for every form an example can have."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from fliptron import RCNBF, Dataset, Fliptron, InputError, LeastMeanSquares, simulate
from fliptron.arrays import Scaled, feature_major
from fliptron.kernels import matrices, rows, vectors
from fliptron.kernels.compiling import LOOP, compiled

FORMS = [(kind, dtype) for kind in ("dense", "sparse") for dtype in ("float64", "float32", "uint8")]
SHAPES = [(2, 1), (4, 7), (5, 4), (7, 16), (12, 30), (21, 9), (10, 77), (70, 11)]


@compiled(**LOOP)
def outcomes(X: Any, i: Any, W: Any, A: Any, u: Any, out: Any, other: Any, again: Any) -> Any:
    """Everything the kernels say of row i."""
    x = rows.followed(X, i, 0)
    vectors.scores_of(W, x, out)
    vectors.add(W, 1, 0.5, x)
    for j in range(rows.size(x)):
        other[j] = rows.value(x, j)
    matrices.apply(A, rows.with_values(x, other), u)
    vectors.scores_of(W, rows.with_values(x, other), again)
    return vectors.dot(W, 1, x), vectors.square(x), vectors.pick(u, x), matrices.inner(u, u)


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("layout", ["by label", "by feature"])
@pytest.mark.parametrize("form", FORMS, ids=" ".join)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_kernels_do_what_numpy_does(shape: Any, form: Any, layout: Any, precision: Any) -> None:
    (K, d), (kind, dtype) = shape, form
    random = np.random.default_rng(K * d)
    raw = random.integers(0, 256, size=(3, d)) * (random.random((3, d)) < 0.6)
    data = Dataset.of(sp.csr_array(raw) if kind == "sparse" else raw, [0, 1, 0], dtype=dtype)
    x = raw[1] / max(np.linalg.norm(raw[1]), 1.0)
    W = random.normal(size=(K, d)).astype(precision)
    A = random.normal(size=(d, d))
    A = A @ A.T
    mine = feature_major(W) if layout == "by feature" else W.copy()
    u, out, again = np.empty(d), np.empty(K, precision), np.empty(K)
    single, length, total, squared = outcomes(data.X, 1, mine, A, u, out, np.empty(d), again)
    close: Any = {"rtol": 1e-12 if (precision, dtype) == ("float64", "float64") else 2e-5, "atol": 1e-5}
    np.testing.assert_allclose(out, W @ x, **close)
    np.testing.assert_allclose(u, A @ x, **close)
    W[1] += 0.5 * x
    np.testing.assert_allclose(again, W @ x, **close)
    np.testing.assert_allclose(mine, W, **close)
    np.testing.assert_allclose(
        [single, length, total, squared], [W[1] @ x, x @ x, x @ A @ x, x @ A @ A @ x], rtol=2e-5, atol=1e-5
    )


@compiled(**LOOP)
def scores_in_column(W: Any, x: Any, table: Any) -> None:
    vectors.scores_of(W, x, table[:, 1])


@pytest.mark.parametrize("layout", ["by label", "by feature"])
def test_gaps_in_memory_are_stepped_over(layout: Any) -> None:
    random = np.random.default_rng(0)
    W, x, table = random.normal(size=(10, 20)), random.normal(size=(20, 2))[:, 0], np.zeros((10, 3))
    scores_in_column(feature_major(W) if layout == "by feature" else W, x, table)
    np.testing.assert_allclose(table, np.column_stack([np.zeros(10), W @ x, np.zeros(10)]))


@pytest.mark.parametrize("d", [1, 4, 7, 30])
def test_downdate_is_a_rank_one_step(d: Any) -> None:
    random = np.random.default_rng(d)
    A, u = random.normal(size=(d, d)), random.normal(size=d)
    mine = A.copy()
    matrices.downdate(mine, u, 0.3)
    np.testing.assert_allclose(mine, A - 0.3 * np.outer(u, u), atol=1e-12)


def learner(kind: Any, **options: Any) -> Any:
    told = {"rates": (0.2, 0.4)} if kind is RCNBF else {}
    return kind(n_classes=10, n_features=64, seed=1, **told, **options)


@pytest.mark.parametrize(
    ("kind", "forms"), [(RCNBF, [np.array, sp.csr_array]), (LeastMeanSquares, [np.array, sp.csr_array]),
                        (Fliptron, [np.array])]  # which takes long to compile
)  # fmt: skip
def test_bytes_and_short_floats_make_the_same_decisions(kind: Any, forms: Any, digits: Any) -> None:
    raw, y = np.rint(digits.X / digits.X.max(axis=1, keepdims=True) * 16), digits.y
    runs = [
        simulate(learner(kind), Dataset.of(form(raw), y, dtype=dtype), rates=(0.2, 0.4), rounds=2000, seed=3, log=True)
        for form in forms
        for dtype in ("float64", "float32", "uint8")
    ]
    for run in runs[1:]:
        assert (run.log.label == runs[0].log.label).mean() > 0.999


def test_rows_without_zeros_are_the_same_rows(digits: Any) -> None:
    dense = np.asarray(digits.X)
    kept, given = (Dataset.of(X, digits.y, dtype="sparse") for X in (dense, sp.csr_array(dense)))
    for data in (kept, given):
        again = sp.csr_array((data.X.data, data.X.indices, data.X.indptr), shape=dense.shape).toarray()
        np.testing.assert_allclose(again, dense, rtol=1e-12)
        assert (data.X.data != 0).all()
    runs = [simulate(learner(RCNBF), data, rates=(0.2, 0.4), rounds=2000, seed=3, log=True) for data in (digits, kept)]
    assert (runs[0].log.label == runs[1].log.label).mean() > 0.999
    with pytest.raises(InputError, match="dtype is 'thin'; 'float64', 'float32', 'uint8' or 'sparse' is expected"):
        Dataset.of(dense, digits.y, dtype="thin")


def test_short_weights_decide_as_long_ones(digits: Any) -> None:
    long, short = (
        simulate(learner(RCNBF, dtype=dtype), digits, rates=(0.2, 0.4), rounds=5000, seed=3, log=True)
        for dtype in ("float64", "float32")
    )
    assert (long.log.label == short.log.label).mean() > 0.999


def test_short_weights_are_kept_and_loaded(tmp_path: Path, digits: Any) -> None:
    first = learner(RCNBF, dtype="float32")
    simulate(first, digits, rates=(0.2, 0.4), rounds=100)
    first.save(tmp_path / "a.npz")
    again = RCNBF.load(tmp_path / "a.npz")
    assert again.weights.dtype == np.float32
    np.testing.assert_array_equal(again.weights, first.weights)


def test_a_learner_of_sparse_rows_takes_dense_ones_too(digits: Any) -> None:
    sparse, dense = learner(RCNBF), learner(RCNBF)
    for i in range(50):
        x = digits.X[i]
        mixed = sp.csr_array(x[None]) if i % 3 == 0 else x
        decision = dense.decide(x)
        assert sparse.decide(mixed) == decision
        sparse.learn(mixed, decision, i % 2)
        dense.learn(x, decision, i % 2)
    np.testing.assert_allclose(sparse.weights, dense.weights)
    assert sparse.weights.flags.c_contiguous


@pytest.mark.parametrize(("value", "words"), [(0.5, "0.5"), (-1.0, "-1"), (256.0, "256")])
def test_only_bytes_are_bytes(value: Any, words: Any) -> None:
    with pytest.raises(InputError, match=rf"X holds {words}; whole numbers from 0 to 255"):
        Dataset.of([[1.0, value], [2.0, 3.0]], [0, 1], dtype="uint8")


def test_bytes_that_are_bytes_already_are_not_blown_up() -> None:
    X = np.ones((2**16, 64), np.uint8)
    tracemalloc.start()
    data = Dataset.of(X, np.arange(2**16) % 3, dtype="uint8")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert data.X.rows.dtype == np.uint8
    assert peak < X.nbytes * 2 + 2**22 * 8 * 5  # the copy that is kept, another on the way, and a few chunks as floats


def test_a_data_set_is_made_by_its_gate_alone() -> None:
    with pytest.raises(TypeError):
        Dataset("bytes", Scaled(np.ones((3, 7), np.uint8), np.ones(2)), np.array([0, 1, 0]), 5, (0, 1), "given")  # type: ignore[call-arg]


def test_a_value_too_large_for_float32_is_named() -> None:
    with pytest.raises(InputError, match=r"X holds 1e\+100 at row 0, column 0"):
        Dataset.of([[1e100, 1.0], [1.0, 2.0]], [0, 1], dtype="float32", unit_norm=False)


def test_unknown_precision_is_refused(digits: Any) -> None:
    with pytest.raises(InputError, match="dtype is 'int3'"):
        Dataset.of(digits.X, digits.y, dtype="int3")
    with pytest.raises(InputError, match="dtype is 'float16'"):
        learner(RCNBF, dtype="float16")


@pytest.mark.parametrize("form", FORMS, ids=" ".join)
def test_data_larger_than_a_cache_is_played_the_same(form: Any) -> None:
    kind, dtype = form
    random = np.random.default_rng(0)
    raw = random.integers(1, 256, size=(2**21 // 8 + 1, 8)).astype(float)
    data = Dataset.of(sp.csr_array(raw) if kind == "sparse" else raw, random.integers(3, size=len(raw)), dtype=dtype)
    compiled, plain = (
        simulate(
            RCNBF(n_classes=3, n_features=8, rates=(0.1, 0.1), seed=1),
            data,
            rounds=300,
            seed=2,
            engine=engine,
            log=True,
        )
        for engine in ("compiled", "python")
    )
    np.testing.assert_array_equal(compiled.log.label, plain.log.label)
