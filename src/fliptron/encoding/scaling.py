"""A centre and a scale for every number, learnt from x as it comes and then held.

They are the running mean and standard deviation of the first thousand values. A mean that went on moving, by ever less,
would go on shifting what was learnt of x: where errors are rare, a sharp boundary with it. To hold them costs nothing,
since a linear score with a constant in it is as good in any frame. Only when mean or deviation has strayed by a tenth
of a deviation, three times what chance does in a thousand values, are both taken anew. Longer steps would be rarer, but
what was learnt of a column that moves for good would be shifted by more.
"""

from __future__ import annotations

from math import isnan, sqrt

import numpy as np

from fliptron.arrays import LONGEST, Array
from fliptron.kernels.compiling import PART, STEP, compiled

COUNT, MEAN, SQUARES, CENTRE, SPREAD = range(5)
"""Of each number: how many values came, their mean, and the sum of their squared distances from it; and what it is
centred and divided by."""
REACH = 10.0
"""Standard deviations beyond which a value counts as this far: one wild value does not set the scale for good."""
_SETTLED = 30.0  # values after which the scale is trusted that much; after n it may be off by 30/n times as much
_STEADY, _STRAY = 1000.0, 0.1
_LARGEST = LONGEST[8]  # a number beyond it tells nothing of the scale: no learner would be shown it


@compiled(**PART)
def scale(moments: Array, j: int, v: float, update: bool) -> float:
    """Number j less its centre, in standard deviations; 0 where it is missing or has been the same always.

    Welford's update, with the value itself in it, so that nothing ahead is looked at.
    """
    if isnan(v):
        return 0.0
    n, mean, squares = moments[COUNT, j], moments[MEAN, j], moments[SQUARES, j]
    centre, spread = moments[CENTRE, j], moments[SPREAD, j]
    if update and abs(v) <= _LARGEST:
        near = v
        if squares > 0.0:
            reach = REACH * max(_SETTLED / n, 1.0) * sqrt(squares / n)
            near = min(max(v, mean - reach), mean + reach)
        n, step = n + 1.0, near - mean
        mean += step / n
        squares += step * (near - mean)
        moments[COUNT, j], moments[MEAN, j], moments[SQUARES, j] = n, mean, squares
        now = sqrt(squares / n)
        if n <= _STEADY or max(abs(mean - centre), abs(now - spread)) > _STRAY * spread:
            centre, spread = mean, now
            moments[CENTRE, j], moments[SPREAD, j] = centre, spread
    return min(max((v - centre) / spread, -REACH), REACH) if spread > 0.0 else 0.0


@compiled(**STEP)
def standardise(moments: Array, X: Array, numbers: int, update: bool) -> None:
    """The numbers of each row, which follow its first place, centred and scaled."""
    for i in range(X.shape[0]):
        for j in range(numbers):
            X[i, j + 1] = scale(moments, j, X[i, j + 1], update)


@compiled(**STEP)
def to_unit(X: Array) -> None:
    """Every row, which has a constant in it, scaled to length 1."""
    for i in range(X.shape[0]):
        total = 0.0
        for j in range(X.shape[1]):
            total += X[i, j] * X[i, j]
        length = sqrt(total)
        for j in range(X.shape[1]):
            X[i, j] /= length


@compiled(**STEP)
def to_unit_sparse(indptr: Array, data: Array) -> None:
    """The same for rows of a CSR array."""
    for i in range(indptr.shape[0] - 1):
        to_unit(data[indptr[i] : indptr[i + 1]].reshape(1, -1))


def merged(a: Array, b: Array) -> Array:
    """The moments of all values from those of two parts (Chan, Golub and LeVeque), in the frame of the first part."""
    both = a.copy()
    total = a[COUNT] + b[COUNT]
    share = b[COUNT] / (total + (total == 0.0))
    step = b[MEAN] - a[MEAN]
    both[COUNT] = total
    both[MEAN] += share * step
    both[SQUARES] += b[SQUARES] + step**2 * share * a[COUNT]
    reframe(both, a[COUNT] <= _STEADY)
    return both


def reframe(moments: Array, which: Array | slice = slice(None)) -> None:
    """Centre and divide numbers by their mean and deviation of now."""
    moments[CENTRE, which] = moments[MEAN, which]
    moments[SPREAD, which] = np.sqrt(moments[SQUARES, which] / np.maximum(moments[COUNT, which], 1.0))
