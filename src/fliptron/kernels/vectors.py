"""Vectors: products of weights and examples, kept in the precision of the weights.

Their terms may be reordered into vector lanes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fliptron.arrays import Array, Row, is_sparse
from fliptron.kernels.compiling import PART, STEP, VECTOR, compiled, overload
from fliptron.kernels.products import REGISTERS, columns, products
from fliptron.kernels.registers import REGISTER
from fliptron.kernels.rows import index, is_contiguous_type, is_sparse_type, scale, size, stored


@compiled(fastmath=VECTOR, **PART)
def dot(W: Array, r: int, x: Row) -> float:
    """w_r · x."""
    total = W.dtype.type(0.0)
    for j in range(size(x)):
        total += W[r, index(x, j)] * W.dtype.type(stored(x, j))
    return total * W.dtype.type(scale(x))


@compiled(**PART)
def add(W: Array, r: int, a: float, x: Row) -> None:
    """w_r += a·x.

    A step that float32 cannot hold may still have a product with x that it can. Where a tiny probability makes steps
    enormous, float32 weights stop at ±10²⁰, and their products with any x that is admitted stay numbers.
    """
    step = a * scale(x)
    if 1e-30 < abs(step) < (1e30 if W.itemsize == 8 else 1e6):
        short = W.dtype.type(step)
        for j in range(size(x)):
            W[r, index(x, j)] += short * W.dtype.type(stored(x, j))
    else:
        most = np.inf if W.itemsize == 8 else 1e20
        for j in range(size(x)):
            i = index(x, j)
            W[r, i] = W.dtype.type(min(max(W[r, i] + step * stored(x, j), -most), most))


@compiled(fastmath=VECTOR, **PART)
def square(x: Row) -> float:
    """‖x‖²; not finite when any value of x is not."""
    total = 0.0
    for j in range(size(x)):
        v = np.float64(stored(x, j))
        total += v * v
    return total * scale(x) * scale(x)


@compiled(fastmath=VECTOR, **PART)
def pick(u: Array, x: Row) -> float:
    """u · x for a dense u."""
    total = 0.0
    for j in range(size(x)):
        total += u[index(x, j)] * stored(x, j)
    return total * scale(x)


def scores_of(W: Array, x: Row, out: Array) -> None:
    """out = W·x."""
    (_one_by_one if is_sparse(x) else _by_label)(W, x, out)


def _by_label(W: Array, x: Row, out: Array) -> None:
    """Ten labels at a time, x read once for all, then five: a round is 1.3 to 1.8 times faster than label by label.

    The last five may overlap those before them. Passes for every number of labels were tried: 7 labels gain, but
    where there are ten, the code of the others takes away registers and up to a quarter of a round.
    """
    K, r = W.shape[0], 0
    while K - r >= 10:
        products(W, r, x, out, 10)
        r += 10
    while r < K and K >= 5:
        r = min(r, K - 5)
        products(W, r, x, out, 5)
        r += 5
    while r < K:
        out[r] = dot(W, r, x)
        r += 1


def _one_by_one(W: Array, x: Row, out: Array) -> None:
    for r in range(W.shape[0]):
        out[r] = dot(W, r, x)


def _by_feature(W: Array, x: Row, out: Array) -> None:
    """All labels of a feature lie side by side, so that a feature costs a few lines of memory instead of K."""
    K, lanes = W.shape[0], REGISTER // W.itemsize
    if lanes > K:
        for r in range(K):
            out[r] = dot(W, r, x)
    else:
        for r in range(0, K, REGISTERS * lanes):
            n = min((K - r + lanes - 1) // lanes, REGISTERS)
            columns(W, r, x, W.dtype.type(scale(x)), out, n)  # type: ignore[call-arg]


@overload(scores_of)
def _(W: Any, x: Any, out: Any) -> Any:
    if is_contiguous_type(x, out) and W.dtype == out.dtype:
        if W.layout == "F":
            return _by_feature
        if W.layout == "C" and not is_sparse_type(x):
            return _by_label
    return _one_by_one


@compiled(**STEP)
def lead(scores: Array, winner: int) -> float:
    """How far the winner's score is above the next."""
    return scores[winner] - scores[argmax(scores, winner)]


@compiled(**PART)
def argmax(scores: Array, but: int) -> int:
    """The label of highest score (ties: the lowest), label `but` left out (−1: none)."""
    winner, top = 0, -np.inf
    for r in range(scores.shape[0]):
        if scores[r] > top and r != but:
            winner, top = r, scores[r]
    return winner
