r"""The axes along which examples spread most, learnt as they come, and what a belief becomes when they turn.

Of an x with many features most of the length lies along a few directions. With the n orthonormal rows of V as axes,

.. math::

    x = V^\top z + x', \qquad z = V x, \quad x' = x - V^\top z

so that a score is :math:`w \cdot x = a \cdot z + w \cdot x'`. A belief can afford a whole n×n covariance of a, and
keeps only variances of what is left.

The axes are found by power iteration on blocks of examples (Mitliagkas, Caramanis and Jain 2013, "Memory limited,
streaming PCA"): from one block :math:`Y = \sum_t z_t x_t^\top` is gathered, and the rows of Y, made orthonormal, are
the next axes. The first n examples themselves are the first. Each block is twice as long as the one before and gives
some 512 of its examples, so that no more is spent on axes the longer it goes.
"""

from __future__ import annotations

import sys
from math import sqrt
from typing import Any

import numpy as np

from fliptron.arrays import Array, Row
from fliptron.kernels.compiling import LOOP, PART, compiled
from fliptron.kernels.matrices import inner
from fliptron.kernels.randomness import make_key, uniform
from fliptron.kernels.rows import index, size, value
from fliptron.kernels.vectors import scores_of

AXES = 32
"""How many. On images (28×28, 16×16) errors with 24 and with 64 were the same within the noise of three seeds; 8 cost
3 to 6 % more of them, and none a fifth to a third."""
GATHERED = 512
"""Examples from each block: sixteen per axis."""
ROWS, UNTIL, FOUND, FILLED = range(4)
"""What `taken` counts: examples so far, how many there will be when the axes turn next, axes found, and places of the
next axes that are not empty."""
_KEY = make_key(0, 4)
_FLAT = 1e-6  # of a row's length: less is rounding


@compiled(**PART)
def split(axes: Array, x: Row, z: Array, left: Array, scale: float) -> None:
    """x = Vᵀz + left, times a scale."""
    left[:] = 0.0
    for j in range(size(x)):
        left[index(x, j)] = value(x, j) * scale
    scores_of(axes, left, z)
    _subtract(axes, z, left)


@compiled(fastmath={"contract"}, **PART)  # terms that may change places do so in one caller and not in the next
def _subtract(axes: Array, z: Array, left: Array) -> None:
    """left −= Vᵀz."""
    n, d = axes.shape
    whole = n - n % 4
    for k in range(0, whole, 4):
        a, b, c, e = axes[k], axes[k + 1], axes[k + 2], axes[k + 3]
        p, q, s, t = z[k], z[k + 1], z[k + 2], z[k + 3]
        for j in range(d):
            left[j] -= (a[j] * p + b[j] * q) + (c[j] * s + e[j] * t)
    for k in range(whole, n):
        a, p = axes[k], z[k]
        for j in range(d):
            left[j] -= a[j] * p


@compiled(**PART)
def gather(gathered: Array, taken: Array, x: Row, z: Array, length: float, scale: float) -> None:
    """Take in an example, which has been split at this scale, for the next axes."""
    n, t, place = gathered.shape[0], int(taken[ROWS]), int(taken[FILLED])
    if t >= int(taken[UNTIL]):
        return
    taken[ROWS] += 1.0
    if place < n:  # an axis that is not there yet begins as an example
        taken[FILLED] += 1.0
        for j in range(size(x)):
            gathered[place, index(x, j)] = value(x, j) / length
    if uniform(_KEY, t) * (taken[UNTIL] - n + GATHERED) < 2 * GATHERED:  # the block is half as long as that
        for k in range(min(int(taken[FOUND]), n)):
            part = z[k] / (length * length * scale)
            for j in range(size(x)):
                gathered[k, index(x, j)] += part * value(x, j)


@compiled(**LOOP)
def orthonormal(Y: Array) -> None:
    """Make rows orthonormal, one after the other, twice for the sake of rounding; those without length become 0."""
    for a in range(Y.shape[0]):
        before = sqrt(inner(Y[a], Y[a]))
        for _ in range(2):
            for b in range(a):
                part = inner(Y[a], Y[b])
                for j in range(Y.shape[1]):
                    Y[a, j] -= part * Y[b, j]
        after = sqrt(inner(Y[a], Y[a]))
        scale = 1.0 / after if after > _FLAT * before else 0.0
        for j in range(Y.shape[1]):
            Y[a, j] *= scale


@compiled(**LOOP)
def _products(A: Array, B: Array, found: Array) -> None:
    for i in range(A.shape[0]):
        for j in range(B.shape[0]):
            found[i, j] = inner(A[i], B[j])


def products(A: Array, B: Array) -> Array:
    """A·Bᵀ. BLAS would round as it likes, by the number of its threads."""
    found = np.empty((len(A), len(B)))
    _products(np.ascontiguousarray(A), np.ascontiguousarray(B), found)
    return found


def rounds_left(taken: Array) -> int:
    """How many rounds may be learnt before the axes turn."""
    return int(taken[UNTIL] - taken[ROWS]) if taken[UNTIL] else sys.maxsize


def turn(state: Any) -> None:
    """The next axes, from what was gathered, and the same belief along them.

    With V and V′ the axes before and after, P = I − VᵀV and D the variances of what is left, all weights are
    w = aV + w′P; so a becomes w·V′ᵀ, and Σ becomes RΣRᵀ + BDBᵀ with R = V′Vᵀ and B = V′P.
    """
    old, Y, taken = state.axes.astype(np.float64), state.gathered.astype(np.float64), state.taken
    orthonormal(Y)
    Y = Y[np.argsort(~Y.any(axis=1), kind="stable")]
    weights = whole_weights(state)
    turned = products(Y, old)
    beside = Y - products(turned, old.T)
    state.W[:] = weights
    state.along[:] = products(weights, Y)
    for r, covariance in enumerate(state.covariance.astype(np.float64)):
        kept = products(turned, products(turned, covariance))
        state.covariance[r] = kept + products(beside * state.rest[r], beside)
    state.axes[:] = Y
    state.gathered[:] = 0.0
    taken[FOUND] = taken[FILLED] = Y.any(axis=1).sum()
    taken[UNTIL] = 2.0 * taken[UNTIL] - len(Y) + GATHERED
    state.fresh[0] = -1


def flaw(taken: Array, n: int) -> str:
    """What is wrong with counts that came from a file."""
    rows, until, found, filled = taken
    whole = (taken == np.floor(taken)).all()
    return "" if whole and rows <= until and found <= filled <= n else "its axes are miscounted"


def whole_weights(state: Any) -> Array:
    """The weights of all features (K×d): those along the axes, and of what the axes leave."""
    axes = state.axes.astype(np.float64)
    along = state.along - products(state.W, axes)
    return np.asarray(state.W + products(along, axes.T))
