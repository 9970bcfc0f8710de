"""Matrices: symmetric ones, kept whole, of the precision they come in.

Half of such a matrix would do. But whole rows of float32 numbers fill registers, and half ones do not: a product at
d = 64 takes 0.6 of the time that the lower half in float64 takes.
"""

from __future__ import annotations

from typing import Any

from fliptron.arrays import Array, Row, is_sparse
from fliptron.kernels.compiling import PART, STEP, VECTOR, compiled, overload
from fliptron.kernels.rows import index, is_sparse_type, size, value


def apply(A: Array, x: Row, u: Array) -> None:
    """u = A·x for a symmetric A; a dense x has A's precision."""
    (_apply_sparse if is_sparse(x) else _apply_dense)(A, x, u)


def _apply_dense(A: Array, x: Any, u: Array) -> None:
    """Four rows at a time, so that x is read once for all of them."""
    d, nothing = u.shape[0], u.dtype.type(0.0)
    whole = d - d % 4
    for i in range(0, whole, 4):
        a, b, c, e = A[i], A[i + 1], A[i + 2], A[i + 3]
        k = g = m = n = nothing
        for j in range(d):
            v = x[j]
            k += a[j] * v
            g += b[j] * v
            m += c[j] * v
            n += e[j] * v
        u[i], u[i + 1], u[i + 2], u[i + 3] = k, g, m, n
    for i in range(whole, d):
        a, k = A[i], nothing
        for j in range(d):
            k += a[j] * x[j]
        u[i] = k


def _apply_sparse(A: Array, x: Row, u: Array) -> None:
    """For every feature of x its row."""
    u[:] = 0.0
    for j in range(size(x)):
        a, v = A[index(x, j)], u.dtype.type(value(x, j))
        for k in range(u.shape[0]):
            u[k] += a[k] * v


@overload(apply, fastmath=VECTOR)
def _(A: Any, x: Any, u: Any) -> Any:
    return _apply_sparse if is_sparse_type(x) else _apply_dense


@compiled(fastmath=VECTOR, **STEP)
def downdate(A: Array, u: Array, times: float) -> None:
    """A −= times·u·uᵀ: Sherman and Morrison's step for an inverse."""
    factor = u.dtype.type(times)
    for i in range(u.shape[0]):
        a, v = A[i], factor * u[i]
        for j in range(u.shape[0]):
            a[j] -= v * u[j]


@compiled(fastmath=VECTOR, **PART)
def inner(u: Array, v: Array) -> float:
    """u·v of two vectors."""
    total = u.dtype.type(0.0)
    for i in range(u.shape[0]):
        total += u[i] * v[i]
    return total
