"""A Gaussian belief about every label's weights, w_r ~ N(W_r, Σ_r): what it says of x, and how a bit moves it.

It has one of three forms, told by the arrays of the state:

- *diagonal*: Σ is K×d, the diagonals only;
- *full*: Σ is K×d×d;
- *axes*: Σ is K×n×n, whole along n axes of x, and diagonal in what the axes leave of it; see `axes`.

Before the first bit every weight has the variance PRIOR. For a feature that is small and tells much this is too narrow:
its weights must become large, and the prior holds them back. So the full form widens the prior of features whose
weights turn out larger than it expects (`widen`). That is automatic relevance determination (MacKay 1994), but only
upwards, where the evidence is clear, and only of Σ_r. Two more steps were tried and left. Narrowing other priors costs
a few per cent on noisy tables. Moving W_r too, as if the prior had been wide from the start, helps more in most runs,
but in some the weights grow without end.
"""

from __future__ import annotations

from math import log2, sqrt
from typing import Any

from fliptron.arrays import Array, Row
from fliptron.kernels.compiling import PART, STEP, compiled, overload
from fliptron.kernels.matrices import apply, downdate, inner
from fliptron.kernels.rows import index, size, value, with_values
from fliptron.kernels.vectors import pick, scores_of, square
from fliptron.learners.axes import split

PRIOR = 100.0
"""Variance of a score before the first bit, for an x of length 1."""
WIDEST = 1e4
"""How many times as large a prior variance may become: of weights a hundred times as large."""
_CLEAR = 4.0  # standard deviations above what the prior expects of Σ_r w_r²; from 3 to 7 errors were about the same
_WORTH = 0.1  # weights per label that PRIOR counts for in the new variance; 0.05 to 0.5 were about the same
_KNOWN = 0.01  # at least, of any weight: one of which the doubt has grown back need not be 0
_FITS = 1e-15, 1e15  # lengths of x whose squares are numbers in float32 too
_FIRST = 512  # bits before the first look: fewer hardly tell one weight from another


def measure(state: Any, x: Row) -> None:
    """Mean and standard deviation of every score, W_r·x and √(xᵀΣ_r x), into `scores` and `spreads`."""
    _of_form(state, _measure_diagonal, _measure_full, _measure_axes)(state, x)


def average(state: Any, x: Row, out: Array) -> None:
    """The means alone: W_r·x of every label."""
    _of_form(state, _average, _average, _average_axes)(state, x, out)


def move(state: Any, r: int, x: Row, g: float, h: float) -> None:
    """w_r += g·Σ_r x and Σ_r −= h·(Σ_r x)(Σ_r x)ᵀ, for the x last measured, times `scale_of` it; of a diagonal Σ_r its
    diagonal."""
    _of_form(state, _move_diagonal, _move_full, _move_axes)(state, r, x, g, h)


def forget(state: Any, r: int) -> None:
    """Back to the prior, for one label: no weights, and a variance for each as if no bit had come."""
    _of_form(state, _forget_diagonal, _forget_full, _forget_axes)(state, r)


def widen(state: Any) -> None:
    """Widen the prior of features whose weights are clearly larger than it expects, and raise Σ_r as if it had been
    that wide from the start."""
    _of_form(state, _leave, _widen_full, _leave)(state)


@compiled(**PART)
def scale_of(state: Any, length: float) -> float:
    """A power of two by which x is multiplied, if Σ is float32 and x much too long or too short for that; or 1."""
    if state.covariance.itemsize == 8 or length == 0.0 or _FITS[0] <= length <= _FITS[1]:
        return 1.0
    return float(2.0 ** -int(log2(length)))


@compiled(**STEP)
def due(bits: float) -> bool:
    """Whether it is time to look at the priors: after 512, 768, 1,024, 1,536, … bits."""
    n = int(bits)
    n = n // 3 if n % 3 == 0 else n
    return bits >= _FIRST and n & (n - 1) == 0


def _measure_diagonal(state: Any, x: Row) -> None:
    scores_of(state.W, x, state.scores)
    _spread(state.covariance, x, state.values, state.spreads)
    for r in range(state.scores.shape[0]):
        state.spreads[r] = sqrt(state.spreads[r])


def _measure_full(state: Any, x: Row) -> None:
    scores_of(state.W, x, state.scores)
    scale = scale_of(state, sqrt(square(x)))
    for j in range(size(x)):
        state.values[j] = value(x, j) * scale
    row = with_values(x, state.values)
    for r in range(state.scores.shape[0]):
        apply(state.covariance[r], row, state.pulls[r])
        state.spreads[r] = sqrt(max(pick(state.pulls[r], row), 0.0)) / scale


def _measure_axes(state: Any, x: Row) -> None:
    scale = scale_of(state, sqrt(square(x)))
    split(state.axes, x, state.z, state.left, scale)
    scores_of(state.W, state.left, state.scores)
    _spread(state.rest, state.left, state.values, state.spreads)
    for r in range(state.scores.shape[0]):
        state.scores[r] += inner(state.along[r], state.z)
        apply(state.covariance[r], state.z, state.pulls[r])
        state.spreads[r] = sqrt(state.spreads[r] + max(inner(state.pulls[r], state.z), 0.0)) / scale
        state.scores[r] /= scale


def _average(state: Any, x: Row, out: Array) -> None:
    scores_of(state.W, x, out)


def _average_axes(state: Any, x: Row, out: Array) -> None:
    scale = scale_of(state, sqrt(square(x)))
    split(state.axes, x, state.z, state.left, scale)
    state.fresh[0] = -1  # what was measured last was another x
    scores_of(state.W, state.left, out)
    for r in range(out.shape[0]):
        out[r] += inner(state.along[r], state.z)
        out[r] /= scale


@compiled(**PART)
def _spread(variances: Array, x: Row, powers: Array, out: Array) -> None:
    """Σ_i x_i²·v_ri of every label."""
    for j in range(size(x)):
        powers[j] = value(x, j) * value(x, j)
    scores_of(variances, with_values(x, powers), out)


def _move_diagonal(state: Any, r: int, x: Row, g: float, h: float) -> None:
    _move_each(state.W, state.covariance, r, x, g, h)


def _move_full(state: Any, r: int, x: Row, g: float, h: float) -> None:
    for i in range(state.W.shape[1]):
        state.W[r, i] += g * state.pulls[r, i]
    downdate(state.covariance[r], state.pulls[r], h)


def _move_axes(state: Any, r: int, x: Row, g: float, h: float) -> None:
    for i in range(state.z.shape[0]):
        state.along[r, i] += g * state.pulls[r, i]
    downdate(state.covariance[r], state.pulls[r], h)
    _move_each(state.W, state.rest, r, state.left, g, h)


@compiled(**PART)
def _move_each(W: Array, variances: Array, r: int, x: Row, g: float, h: float) -> None:
    for j in range(size(x)):
        i = index(x, j)
        pull = variances[r, i] * value(x, j)
        W[r, i] += g * pull
        variances[r, i] -= h * pull * pull


def _leave(state: Any) -> None:
    """These forms have one prior for all features."""


def _widen_full(state: Any) -> None:
    wider = state.seen  # the x last looked at is measured anew after this
    for i in range(wider.shape[0]):
        wider[i] = _wider(state.W[:, i], state.covariance[:, i, i], state.prior[i])
    for i in range(wider.shape[0]):
        less = 1.0 / wider[i] - 1.0 / state.prior[i]
        for r in range(state.W.shape[0]):
            v = state.covariance[r, i, i]
            if less < 0.0 and v < state.prior[i]:  # else it has learnt nothing of this weight
                for j in range(wider.shape[0]):
                    state.pulls[r, j] = state.covariance[r, i, j]
                downdate(state.covariance[r], state.pulls[r], less / (1.0 + less * v))
        state.prior[i] = wider[i]
    state.fresh[0] = -1


@compiled(**STEP)
def _wider(w: Array, variances: Array, prior: float) -> float:
    """The prior variance that the weights of a feature speak for: MacKay's Σ_r w_r² ÷ Σ_r (1 − v_r/prior).

    By the prior, w_r² has the mean prior − v_r, and twice its square as variance.
    """
    squares = known = spread = 0.0
    for r in range(w.shape[0]):
        part = max(1.0 - variances[r] / prior, _KNOWN)
        squares += w[r] * w[r]
        known += part
        spread += 2.0 * part * part
    if squares / prior <= known + _CLEAR * sqrt(spread):
        return prior
    worth = _WORTH * w.shape[0]
    return max(prior, min((squares + worth * PRIOR) / (known + worth), WIDEST * PRIOR))


def _forget_diagonal(state: Any, r: int) -> None:
    for i in range(state.W.shape[1]):
        state.W[r, i], state.covariance[r, i] = 0.0, PRIOR


def _forget_full(state: Any, r: int) -> None:
    state.covariance[r] = 0.0
    for i in range(state.W.shape[1]):
        state.W[r, i], state.covariance[r, i, i] = 0.0, state.prior[i]


def _forget_axes(state: Any, r: int) -> None:
    state.covariance[r] = 0.0
    for i in range(state.along.shape[1]):
        state.along[r, i], state.covariance[r, i, i] = 0.0, PRIOR
    for i in range(state.W.shape[1]):
        state.W[r, i], state.rest[r, i] = 0.0, PRIOR


def _of_form(state: Any, diagonal: Any, full: Any, axes: Any) -> Any:
    """The function for the form that a state has, or a type of Numba's that stands for one."""
    kind = getattr(state, "instance_class", None)
    arrays = state if kind is None else kind(*state)
    covariance, along = arrays.covariance, arrays.axes
    return diagonal if covariance.ndim == 2 else axes if along.ndim == 2 else full


@overload(measure)
def _(state: Any, x: Any) -> Any:
    return _of_form(state, _measure_diagonal, _measure_full, _measure_axes)


@overload(average)
def _(state: Any, x: Any, out: Any) -> Any:
    return _of_form(state, _average, _average, _average_axes)


@overload(move)
def _(state: Any, r: Any, x: Any, g: Any, h: Any) -> Any:
    return _of_form(state, _move_diagonal, _move_full, _move_axes)


@overload(widen)
def _(state: Any) -> Any:
    return _of_form(state, _leave, _widen_full, _leave)


@overload(forget)
def _(state: Any, r: Any) -> Any:
    return _of_form(state, _forget_diagonal, _forget_full, _forget_axes)
