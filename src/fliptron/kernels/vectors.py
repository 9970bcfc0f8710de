"""Vectors: products of weights and examples, kept in the precision of the weights.

Their terms may be reordered into vector lanes.
"""

# mypy: disable-error-code="untyped-decorator,no-untyped-def,no-untyped-call"
from __future__ import annotations

import numpy as np
from numba.extending import overload

from fliptron.arrays import is_sparse
from fliptron.kernels.compiling import STEP, VECTOR, compiled
from fliptron.kernels.rows import index, is_sparse_type, scale, size, stored


@compiled(fastmath=VECTOR, **STEP)
def dot(W, r, x):
    """w_r · x."""
    total = W.dtype.type(0.0)
    for j in range(size(x)):
        total += W[r, index(x, j)] * W.dtype.type(stored(x, j))
    return total * W.dtype.type(scale(x))


@compiled(**STEP)
def add(W, r, a, x):
    """w_r += a·x. A step that float32 cannot hold may still have a product with x that it can."""
    step = a * scale(x)
    if 1e-30 < abs(step) < 1e30:
        short = W.dtype.type(step)
        for j in range(size(x)):
            W[r, index(x, j)] += short * W.dtype.type(stored(x, j))
    else:
        for j in range(size(x)):
            W[r, index(x, j)] += W.dtype.type(step * stored(x, j))


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
    (_by_feature if is_sparse(x) and W.flags.f_contiguous else _by_label)(W, x, out)


def _by_label(W, x, out):
    """Ten labels at a time, then five, so that x is read once for ten: a round is up to 1.7 times faster (d = 784).

    The last five may overlap those before them, which costs less than a remainder.
    """
    K, zero, factor, r = W.shape[0], W.dtype.type(0.0), W.dtype.type(scale(x)), 0
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
        out[r], out[r + 1], out[r + 2] = a * factor, b * factor, c * factor
        out[r + 3], out[r + 4], out[r + 5] = d * factor, e * factor, f * factor
        out[r + 6], out[r + 7], out[r + 8], out[r + 9] = g * factor, h * factor, k * factor, m * factor
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
        out[r], out[r + 1], out[r + 2] = a * factor, b * factor, c * factor
        out[r + 3], out[r + 4] = d * factor, e * factor
        r += 5
    while r < K:
        out[r] = dot(W, r, x)
        r += 1


def _by_feature(W, x, out):
    """Four features at a time, all labels of each side by side in memory: a feature of a sparse row costs a few cache
    lines instead of K. Three times faster at K = 50, d = 50,000 than label by label; no gain where W fits the cache."""
    n, factor = size(x), W.dtype.type(scale(x))
    out[:] = 0.0
    for j in range(0, n - 3, 4):
        a, b, c, d = W[:, index(x, j)], W[:, index(x, j + 1)], W[:, index(x, j + 2)], W[:, index(x, j + 3)]
        p, q = W.dtype.type(stored(x, j)) * factor, W.dtype.type(stored(x, j + 1)) * factor
        s, t = W.dtype.type(stored(x, j + 2)) * factor, W.dtype.type(stored(x, j + 3)) * factor
        for r in range(out.shape[0]):
            out[r] += (a[r] * p + b[r] * q) + (c[r] * s + d[r] * t)
    for j in range(n - n % 4, n):
        a, p = W[:, index(x, j)], W.dtype.type(stored(x, j)) * factor
        for r in range(out.shape[0]):
            out[r] += a[r] * p


@overload(scores_of, jit_options=STEP | {"fastmath": VECTOR})
def _(W, x, out):
    return _by_feature if is_sparse_type(x) and W.layout == "F" else _by_label


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
