"""Vectors: x is dense or sparse, floats or bytes with one scale; a few accessors hide which.

Sums are kept in the precision of the weights. Their terms may be reordered into vector lanes.
"""

# mypy: disable-error-code="untyped-decorator,no-untyped-def,no-untyped-call"
from __future__ import annotations

import numpy as np
from numba.extending import overload

from fliptron.arrays import Csr, Scaled, ScaledRow, SparseRow
from fliptron.kernels.compiling import STEP, VECTOR, compiled


def size(x):
    """How many values x stores."""
    return size(x.row) if isinstance(x, ScaledRow) else x.values.shape[0] if isinstance(x, SparseRow) else x.shape[0]


def index(x, j):
    """The feature of stored value j."""
    return index(x.row, j) if isinstance(x, ScaledRow) else x.indices[j] if isinstance(x, SparseRow) else j


def stored(x, j):
    """Stored value j: the value itself, or a byte that its row's scale makes one."""
    return stored(x.row, j) if isinstance(x, ScaledRow) else x.values[j] if isinstance(x, SparseRow) else x[j]


def scale(x):
    """What the stored values are to be multiplied with."""
    return x.scale if isinstance(x, ScaledRow) else 1.0


def fits(x, d):
    """Whether a dense x is d numbers in a row; a sparse one has been through the gate."""
    return isinstance(x, SparseRow) or (x.shape == (d,) and x.flags.c_contiguous)


def with_values(x, values):
    """A row with other values in the places of x's; the first of `values` are taken."""
    if isinstance(x, ScaledRow):
        return with_values(x.row, values)
    return SparseRow(x.indices, values[: size(x)]) if isinstance(x, SparseRow) else values


def row(X, i):
    """Example i."""
    if isinstance(X, Scaled):
        return ScaledRow(row(X.rows, i), X.scale[i])
    if isinstance(X, Csr):
        start, stop = X.indptr[i], X.indptr[i + 1]
        return SparseRow(X.indices[start:stop], X.data[start:stop])
    return X[i]


def _kind(x):
    """Which of the forms a type of Numba's stands for."""
    return getattr(x, "instance_class", None)


@overload(size)
def _(x):
    return {
        ScaledRow: lambda x: size(x.row),
        SparseRow: lambda x: x.values.shape[0],
    }.get(_kind(x), lambda x: x.shape[0])


@overload(index)
def _(x, j):
    return {
        ScaledRow: lambda x, j: index(x.row, j),
        SparseRow: lambda x, j: np.uint64(x.indices[j]),
    }.get(_kind(x), lambda x, j: j)


@overload(stored)
def _(x, j):
    return {
        ScaledRow: lambda x, j: stored(x.row, j),
        SparseRow: lambda x, j: x.values[j],
    }.get(_kind(x), lambda x, j: x[j])


@overload(scale)
def _(x):
    return (lambda x: x.scale) if _kind(x) is ScaledRow else (lambda x: 1.0)


@overload(fits)
def _(x, d):
    if _kind(x) is SparseRow:
        return lambda x, d: True
    return lambda x, d: x.shape[0] == d and (d == 1 or x.strides[0] == x.itemsize)


@overload(with_values)
def _(x, values):
    return {
        ScaledRow: lambda x, values: with_values(x.row, values),
        SparseRow: lambda x, values: SparseRow(x.indices, values[: x.indices.shape[0]]),
    }.get(_kind(x), lambda x, values: values)


@overload(row)
def _(X, i):
    return {
        Scaled: lambda X, i: ScaledRow(row(X.rows, i), X.scale[i]),
        Csr: lambda X, i: SparseRow(X.indices[X.indptr[i] : X.indptr[i + 1]], X.data[X.indptr[i] : X.indptr[i + 1]]),
    }.get(_kind(X), lambda X, i: X[i])


@compiled(**STEP)
def value(x, j):
    """Value j."""
    return stored(x, j) * scale(x)


@compiled(fastmath=VECTOR, **STEP)
def dot(W, r, x):
    """w_r · x."""
    total = W.dtype.type(0.0)
    for j in range(size(x)):
        total += W[r, index(x, j)] * W.dtype.type(stored(x, j))
    return total * W.dtype.type(scale(x))


@compiled(**STEP)
def add(W, r, a, x):
    """w_r += a·x."""
    step = W.dtype.type(a * scale(x))
    for j in range(size(x)):
        W[r, index(x, j)] += step * W.dtype.type(stored(x, j))


@compiled(fastmath=VECTOR, **STEP)
def square(x):
    """‖x‖²; not finite when any value of x is not."""
    total = 0.0
    for j in range(size(x)):
        v = np.float64(stored(x, j))
        total += v * v
    return total * scale(x) * scale(x)


@compiled(fastmath=VECTOR, **STEP)
def pick(u, x):
    """u · x for a dense u."""
    total = 0.0
    for j in range(size(x)):
        total += u[index(x, j)] * stored(x, j)
    return total * scale(x)


def scores_of(W, x, out):
    """out = W·x."""
    (_by_feature if _sparse(x) and W.flags.f_contiguous else _by_label)(W, x, out)


def _by_label(W, x, out):
    """Ten labels at a time, then five: x is read once for ten, 1.7 times faster at 10×64 than one by one.

    The last five may overlap those before them, which costs less than a remainder.
    """
    K, zero, size_of_x, r = W.shape[0], W.dtype.type(0.0), W.dtype.type(scale(x)), 0
    while K - r >= 10:
        a = b = c = d = e = f = g = h = k = m = zero
        for j in range(size(x)):
            i, v = index(x, j), W.dtype.type(stored(x, j))
            a += W[r, i] * v
            b += W[r + 1, i] * v
            c += W[r + 2, i] * v
            d += W[r + 3, i] * v
            e += W[r + 4, i] * v
            f += W[r + 5, i] * v
            g += W[r + 6, i] * v
            h += W[r + 7, i] * v
            k += W[r + 8, i] * v
            m += W[r + 9, i] * v
        out[r], out[r + 1], out[r + 2], out[r + 3], out[r + 4] = a, b, c, d, e
        out[r + 5], out[r + 6], out[r + 7], out[r + 8], out[r + 9] = f, g, h, k, m
        r += 10
    while r < K and K >= 5:
        r = min(r, K - 5)
        a = b = c = d = e = zero
        for j in range(size(x)):
            i, v = index(x, j), W.dtype.type(stored(x, j))
            a += W[r, i] * v
            b += W[r + 1, i] * v
            c += W[r + 2, i] * v
            d += W[r + 3, i] * v
            e += W[r + 4, i] * v
        out[r], out[r + 1], out[r + 2], out[r + 3], out[r + 4] = a, b, c, d, e
        r += 5
    while r < K:
        a = zero
        for j in range(size(x)):
            a += W[r, index(x, j)] * W.dtype.type(stored(x, j))
        out[r] = a
        r += 1
    for r in range(K):
        out[r] *= size_of_x


def _by_feature(W, x, out):
    """Four features at a time, all labels of each side by side in memory: a feature of a sparse row costs one or two
    cache lines instead of K, three times faster at K = 20, d = 50,000 than label by label."""
    n, size_of_x = size(x), W.dtype.type(scale(x))
    out[:] = 0.0
    for j in range(0, n - 3, 4):
        a, b, c, d = W[:, index(x, j)], W[:, index(x, j + 1)], W[:, index(x, j + 2)], W[:, index(x, j + 3)]
        p, q = W.dtype.type(stored(x, j)) * size_of_x, W.dtype.type(stored(x, j + 1)) * size_of_x
        s, t = W.dtype.type(stored(x, j + 2)) * size_of_x, W.dtype.type(stored(x, j + 3)) * size_of_x
        for r in range(out.shape[0]):
            out[r] += (a[r] * p + b[r] * q) + (c[r] * s + d[r] * t)
    for j in range(n - n % 4, n):
        a, p = W[:, index(x, j)], W.dtype.type(stored(x, j)) * size_of_x
        for r in range(out.shape[0]):
            out[r] += a[r] * p


def _sparse(x):
    return isinstance(x.row if isinstance(x, ScaledRow) else x, SparseRow)


def _sparse_type(x):
    return _kind(x.types[0] if _kind(x) is ScaledRow else x) is SparseRow


@overload(scores_of, jit_options=STEP | {"fastmath": VECTOR})
def _(W, x, out):
    return _by_feature if _sparse_type(x) and W.layout == "F" else _by_label


def apply(A, x, u):
    """u = A·x for a symmetric A, of which only the lower triangle is kept.

    Half a matrix is half the memory to move: with `downdate`, 1.7 times faster at d = 256 than the whole.
    """
    (_apply_sparse if _sparse(x) else _apply_dense)(A, x, u)


def _apply_dense(A, x, u):
    """Four rows at a time, each read once for its own sum and for its column's part of the others."""
    d, size_of_x = u.shape[0], scale(x)
    whole = d - d % 4
    for i in range(0, whole, 4):
        a, b, c, e = A[i], A[i + 1], A[i + 2], A[i + 3]
        p, q = stored(x, i) * size_of_x, stored(x, i + 1) * size_of_x
        s, t = stored(x, i + 2) * size_of_x, stored(x, i + 3) * size_of_x
        k = g = m = n = 0.0
        for j in range(i):
            v = stored(x, j) * size_of_x
            k += a[j] * v
            g += b[j] * v
            m += c[j] * v
            n += e[j] * v
            u[j] += (a[j] * p + b[j] * q) + (c[j] * s + e[j] * t)
        u[i] = k + a[i] * p + b[i] * q + c[i] * s + e[i] * t
        u[i + 1] = g + b[i] * p + b[i + 1] * q + c[i + 1] * s + e[i + 1] * t
        u[i + 2] = m + c[i] * p + c[i + 1] * q + c[i + 2] * s + e[i + 2] * t
        u[i + 3] = n + e[i] * p + e[i + 1] * q + e[i + 2] * s + e[i + 3] * t
    for i in range(whole, d):
        a, p, k = A[i], stored(x, i) * size_of_x, 0.0
        for j in range(i):
            k += a[j] * stored(x, j) * size_of_x
            u[j] += a[j] * p
        u[i] = k + a[i] * p


def _apply_sparse(A, x, u):
    """For every feature of x its row, and below the diagonal its column."""
    u[:] = 0.0
    for j in range(size(x)):
        i, v = int(index(x, j)), value(x, j)
        a = A[i]
        for k in range(i + 1):
            u[k] += a[k] * v
        for k in range(i + 1, u.shape[0]):
            u[k] += A[k, i] * v


def quadratic(A, x, u):
    """xᵀA x for such an A, never negative; u is room to work."""
    return (_quadratic_sparse if _sparse(x) else _quadratic_dense)(A, x, u)


def _quadratic_dense(A, x, u):
    apply(A, x, u)
    return max(pick(u, x), 0.0)


def _quadratic_sparse(A, x, u):
    """Pairs of features that x has: nothing of length d."""
    total = 0.0
    for j in range(size(x)):
        a, part = A[index(x, j)], 0.0
        for k in range(j):
            part += a[index(x, k)] * value(x, k)
        total += value(x, j) * (2.0 * part + a[index(x, j)] * value(x, j))
    return max(total, 0.0)


@overload(apply, jit_options=STEP | {"fastmath": VECTOR})
def _(A, x, u):
    return _apply_sparse if _sparse_type(x) else _apply_dense


@overload(quadratic, jit_options=STEP | {"fastmath": VECTOR})
def _(A, x, u):
    return _quadratic_sparse if _sparse_type(x) else _quadratic_dense


@compiled(fastmath=VECTOR, **STEP)
def downdate(A, u, scale):
    """A −= scale·u·uᵀ in the lower triangle: Sherman and Morrison's step for an inverse."""
    for i in range(u.shape[0]):
        a, v = A[i], scale * u[i]
        for j in range(i + 1):
            a[j] -= v * u[j]


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
