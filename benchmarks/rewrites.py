"""RCNBF written anew, in C and in plain Numba, by somebody who wants speed and nothing else.

They play the same round as ours (draw a row, score, choose, flip, learn, count), at float64, and know nothing of other
learners, other forms of examples, bits that come late, threads or files.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from pathlib import Path

import numba
import numpy as np
import scipy.sparse as sp

from fliptron import Dataset
from peers import GAMMA, RATES, Play
from workloads import Workload

_SOURCE = Path(__file__).with_name("rcnbf.c")
_FLAGS = ("-O3", "-march=native", "-ffast-math", "-shared", "-fPIC")


class _Setting(ctypes.Structure):
    _fields_ = [*((name, ctypes.c_double) for name in ("gamma", "rho0", "rho1")), ("n", ctypes.c_int64)]


def compiler() -> str | None:
    """The machine's own C compiler, if it has one."""
    return shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


def in_c(work: Workload, data: Dataset) -> Play:
    """The C reference, compiled for the size of a workload."""
    path = Path(tempfile.mkdtemp()) / "rcnbf.so"
    sizes = f"-DK={work.K}", f"-DD={data.n_features}"
    subprocess.run([str(compiler()), *_FLAGS, *sizes, str(_SOURCE), "-o", str(path)], check=True)
    code = ctypes.CDLL(str(path))
    X, y, W = data.X, np.ascontiguousarray(data.y, np.int64), np.zeros(work.K * data.n_features)
    if sp.issparse(work.X):
        arrays, run = (X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32), y, W), code.rcnbf_sparse
    else:
        arrays, run = (np.ascontiguousarray(X), y, W), code.rcnbf_dense
    setting = _Setting(GAMMA, *RATES, data.n_rows)
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in arrays]

    def play(rounds: int) -> None:
        run(ctypes.byref(setting), *pointers, ctypes.c_int64(rounds))
        assert arrays  # which the pointers borrow

    return play


@numba.njit(fastmath=True)
def _dense(X, y, W, scores, gamma, rho0, rho1, rounds):  # type: ignore[no-untyped-def]
    K, d = W.shape
    beta, mistakes = 1.0 - rho0 - rho1, 0
    for _ in range(rounds):
        row = np.random.randint(X.shape[0])
        x = X[row]
        for r in range(K):
            total = 0.0
            for j in range(d):
                total += W[r, j] * x[j]
            scores[r] = total
        greedy = np.argmax(scores)
        label = np.random.randint(K) if np.random.random() < gamma else greedy
        p = gamma / K + (1.0 - gamma if label == greedy else 0.0)
        bit = np.random.random() >= rho1 if label == y[row] else np.random.random() < rho0
        step = (bit - rho0) / (beta * p)
        for j in range(d):
            W[greedy, j] -= x[j]
            W[label, j] += step * x[j]
        mistakes += label != y[row]
    return mistakes


@numba.njit(fastmath=True)
def _sparse(data, indices, indptr, y, W, scores, gamma, rho0, rho1, rounds):  # type: ignore[no-untyped-def]
    K = W.shape[1]
    beta, mistakes = 1.0 - rho0 - rho1, 0
    for _ in range(rounds):
        row = np.random.randint(y.shape[0])
        scores[:] = 0.0
        for j in range(indptr[row], indptr[row + 1]):
            for r in range(K):
                scores[r] += W[indices[j], r] * data[j]
        greedy = np.argmax(scores)
        label = np.random.randint(K) if np.random.random() < gamma else greedy
        p = gamma / K + (1.0 - gamma if label == greedy else 0.0)
        bit = np.random.random() >= rho1 if label == y[row] else np.random.random() < rho0
        step = (bit - rho0) / (beta * p)
        for j in range(indptr[row], indptr[row + 1]):
            W[indices[j], greedy] -= data[j]
            W[indices[j], label] += step * data[j]
        mistakes += label != y[row]
    return mistakes


def in_numba(work: Workload, data: Dataset) -> Play:
    X, K, d = data.X, work.K, data.n_features
    scores, how = np.zeros(K), (GAMMA, *RATES)
    if sp.issparse(work.X):
        W = np.zeros((d, K))
        return lambda rounds: _sparse(X.data, X.indices, X.indptr, data.y, W, scores, *how, rounds)
    W = np.zeros((K, d))
    return lambda rounds: _dense(X, data.y, W, scores, *how, rounds)


REWRITES = {"hand-written C": in_c, "plain Numba": in_numba}
