"""Factors of an inverse: A⁻¹ = LᵀDL, kept accurate while A = λI + Σ xxᵀ grows, however its features are scaled.

L is lower triangular with ones on its diagonal, and D a positive diagonal that is stored in their place, so that one
d×d array holds both, of which the lower triangle counts. The update is Bierman's, in the time of Sherman and Morrison's
formula. That formula subtracts from A⁻¹ itself and loses every digit where A is badly conditioned (a constant beside a
timestamp): here D is only ever multiplied by numbers between 0 and 1, so that no variance can turn negative, and a
condition of 10²² costs no more digits than one of 10¹¹ would there.

Bierman (1977), "Factorization methods for discrete sequential estimation", chapter V.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fliptron.arrays import Array, Row, is_sparse
from fliptron.kernels.compiling import PART, VECTOR, compiled, overload
from fliptron.kernels.rows import index, is_sparse_type, scale, size, stored, value


@compiled(**PART)
def dense(x: Row, room: Array) -> None:
    """Write x into an array of d numbers."""
    room[:] = 0.0
    for j in range(size(x)):
        room[index(x, j)] = value(x, j)


def product(LD: Array, x: Row, f: Array) -> None:
    """f = Lx, with the values of x as they are stored."""
    (_product_sparse if is_sparse(x) else _product_dense)(LD, x, f)


def _product_dense(LD: Array, x: Row, f: Array) -> None:
    """Four rows at a time."""
    d = f.shape[0]
    whole = d - d % 4
    for j in range(0, whole, 4):
        a, b, c, e = LD[j], LD[j + 1], LD[j + 2], LD[j + 3]
        p = q = r = s = 0.0
        for i in range(j):
            v = stored(x, i)
            p += a[i] * v
            q += b[i] * v
            r += c[i] * v
            s += e[i] * v
        t, u, v = stored(x, j), stored(x, j + 1), stored(x, j + 2)
        f[j] = p + t
        f[j + 1] = q + b[j] * t + u
        f[j + 2] = r + c[j] * t + c[j + 1] * u + v
        f[j + 3] = s + e[j] * t + e[j + 1] * u + e[j + 2] * v + stored(x, j + 3)
    for j in range(whole, d):
        row, p = LD[j], 1.0 * stored(x, j)
        for i in range(j):
            p += row[i] * stored(x, i)
        f[j] = p


def _product_sparse(LD: Array, x: Row, f: Array) -> None:
    """From the features that x has; they are in order."""
    n, below = size(x), 0
    for j in range(f.shape[0]):
        row, p = LD[j], 0.0
        for k in range(below):
            p += row[index(x, k)] * stored(x, k)
        if below < n and index(x, below) == j:
            p += stored(x, below)
            below += 1
        f[j] = p


@overload(product, fastmath=VECTOR)
def _(LD: Any, x: Any, f: Any) -> Any:
    return _product_sparse if is_sparse_type(x) else _product_dense


@compiled(fastmath=VECTOR, **PART)
def variance(LD: Array, x: Row, room: Array) -> float:
    """xᵀA⁻¹x = Σ D_j·(Lx)_j², never negative; `room` is for d numbers."""
    product(LD, x, room)
    total = 0.0
    for j in range(room.shape[0]):
        total += LD[j, j] * room[j] * room[j]
    return total * scale(x) * scale(x)


@compiled(fastmath=VECTOR, **PART)
def absorb(LD: Array, x: Array, f: Array, gain: Array) -> float:
    """A += xxᵀ for a dense x. Leaves A⁻¹x, of the old A, in `gain`, and returns 1 + xᵀA⁻¹x; `f` is room to work.

    Row j of L moves by −(f_j/α_j)·gain, where α_j and gain have taken in the rows above; four rows per pass.
    """
    product(LD, x, f)
    d, total = f.shape[0], 1.0
    whole = d - d % 4
    for j in range(0, whole, 4):
        a, b, c, e = LD[j], LD[j + 1], LD[j + 2], LD[j + 3]
        p, q, r, s = a[j] * f[j], b[j + 1] * f[j + 1], c[j + 2] * f[j + 2], e[j + 3] * f[j + 3]
        second = total + p * f[j]
        third = second + q * f[j + 1]
        fourth = third + r * f[j + 2]
        after = fourth + s * f[j + 3]
        a[j] *= total / second
        b[j + 1] *= second / third
        c[j + 2] *= third / fourth
        e[j + 3] *= fourth / after
        t, u, v, w = f[j] / total, f[j + 1] / second, f[j + 2] / third, f[j + 3] / fourth
        for i in range(j):
            g, old = gain[i], a[i]
            a[i] = old - t * g
            g += p * old
            old = b[i]
            b[i] = old - u * g
            g += q * old
            old = c[i]
            c[i] = old - v * g
            g += r * old
            old = e[i]
            e[i] = old - w * g
            gain[i] = g + s * old
        gain[j] = p
        _shift(b, gain, j, j + 1, u, q)
        gain[j + 1] = q
        _shift(c, gain, j, j + 2, v, r)
        gain[j + 2] = r
        _shift(e, gain, j, j + 3, w, s)
        gain[j + 3] = s
        total = after
    for j in range(whole, d):
        v = LD[j, j] * f[j]
        after = total + v * f[j]
        LD[j, j] *= total / after
        _shift(LD[j], gain, 0, j, f[j] / total, v)
        gain[j] = v
        total = after
    return total


@compiled(fastmath=VECTOR, **PART)
def _shift(row: Array, gain: Array, start: int, stop: int, back: float, forth: float) -> None:
    """Take gain from a row, and add the old row to gain."""
    for i in range(start, stop):
        old = row[i]
        row[i] = old - back * gain[i]
        gain[i] += forth * old


def flaw_of_factor(factor: Array) -> str:
    """What is wrong with factors of an inverse that came from a file."""
    positive = (np.diagonal(factor, axis1=-2, axis2=-1) > 0.0).all()
    return "" if positive else "a variance is not positive"
