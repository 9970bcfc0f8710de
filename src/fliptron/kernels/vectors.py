"""Vectors: x is dense, or the non-zero values of a sparse row; three accessors hide which."""

# mypy: disable-error-code="untyped-decorator,no-untyped-def,no-untyped-call"
from __future__ import annotations

import numpy as np
from numba import types
from numba.extending import overload

from fliptron.arrays import Csr, SparseRow
from fliptron.kernels.compiling import STEP, VECTOR, compiled


def size(x):
    """How many values x stores."""
    return x.values.shape[0] if isinstance(x, SparseRow) else x.shape[0]


def index(x, j):
    """The feature of stored value j."""
    return x.indices[j] if isinstance(x, SparseRow) else j


def value(x, j):
    """Stored value j."""
    return x.values[j] if isinstance(x, SparseRow) else x[j]


def row(X, i):
    """Example i."""
    if isinstance(X, Csr):
        start, stop = X.indptr[i], X.indptr[i + 1]
        return SparseRow(X.indices[start:stop], X.data[start:stop])
    return X[i]


@overload(size)
def _(x):
    if isinstance(x, types.Array):
        return lambda x: x.shape[0]
    return lambda x: x.values.shape[0]


@overload(index)
def _(x, j):
    if isinstance(x, types.Array):
        return lambda x, j: j
    return lambda x, j: np.uint64(x.indices[j])


@overload(value)
def _(x, j):
    if isinstance(x, types.Array):
        return lambda x, j: x[j]
    return lambda x, j: x.values[j]


@overload(row)
def _(X, i):
    if isinstance(X, types.Array):
        return lambda X, i: X[i]
    return lambda X, i: SparseRow(X.indices[X.indptr[i] : X.indptr[i + 1]], X.data[X.indptr[i] : X.indptr[i + 1]])


@compiled(fastmath=VECTOR, **STEP)
def dot(W, r, x):
    """w_r · x."""
    total = 0.0
    for j in range(size(x)):
        total += W[r, index(x, j)] * value(x, j)
    return total


@compiled(**STEP)
def add(W, r, a, x):
    """w_r += a·x."""
    for j in range(size(x)):
        W[r, index(x, j)] += a * value(x, j)


@compiled(fastmath=VECTOR, **STEP)
def square(x):
    """‖x‖²; not finite when any value of x is not."""
    total = 0.0
    for j in range(size(x)):
        total += value(x, j) * value(x, j)
    return total


@compiled(fastmath=VECTOR, **STEP)
def pick(u, x):
    """u · x for a dense u."""
    total = 0.0
    for j in range(size(x)):
        total += u[index(x, j)] * value(x, j)
    return total


@compiled(fastmath=VECTOR, **STEP)
def apply(A, x, u):
    """u = A·x for a symmetric A, row by row of the values x stores."""
    u[:] = 0.0
    for j in range(size(x)):
        a, v = A[index(x, j)], value(x, j)
        for i in range(u.shape[0]):
            u[i] += a[i] * v


@compiled(fastmath=VECTOR, **STEP)
def downdate(A, u, scale):
    """A −= scale·u·uᵀ: Sherman and Morrison's step for an inverse."""
    for i in range(u.shape[0]):
        a, v = A[i], scale * u[i]
        for j in range(u.shape[0]):
            a[j] -= v * u[j]


@compiled(fastmath=VECTOR, **STEP)
def scores_of(W, x, out):
    """out = W·x, four labels at a time: x is read once for four, a third faster at 10×64 than one by one.

    The last four may overlap those before them, which costs less than a remainder.
    """
    K = W.shape[0]
    if K < 4:
        for r in range(K):
            out[r] = dot(W, r, x)
        return
    for first in range(0, K, 4):
        r = min(first, K - 4)
        a = b = c = d = 0.0
        for j in range(size(x)):
            i, v = index(x, j), value(x, j)
            a += W[r, i] * v
            b += W[r + 1, i] * v
            c += W[r + 2, i] * v
            d += W[r + 3, i] * v
        out[r], out[r + 1], out[r + 2], out[r + 3] = a, b, c, d


@compiled(**STEP)
def lead(scores, winner):
    """How far the winner's score is above the next."""
    return scores[winner] - scores[argmax(scores, winner)]


@compiled(**STEP)
def argmax(scores, but):
    """The label of highest score (ties: the lowest), label `but` left out (−1: none)."""
    winner, top = 0, -np.inf
    for r in range(scores.shape[0]):
        if scores[r] > top and r != but:
            winner, top = r, scores[r]
    return winner
