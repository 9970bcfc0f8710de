"""A Gaussian belief about every label's weights, w_r ~ N(W_r, Σ_r): what it says of x, and how a bit moves it.

Σ is K×d×d, of which the lower triangles count, or K×d: the diagonals only.
"""

from __future__ import annotations

from typing import Any

from fliptron.arrays import Array, Row
from fliptron.kernels.compiling import overload
from fliptron.kernels.matrices import apply, downdate
from fliptron.kernels.rows import index, size, value, with_values
from fliptron.kernels.vectors import pick, scores_of

PRIOR = 100.0
"""Variance of a score before the first bit, for an x of length 1."""


def variances(covariance: Array, x: Row, powers: Array, pulls: Array, out: Array) -> None:
    """xᵀΣ_r x of every label; full ones leave Σ_r x in pulls."""
    (_variances_full if covariance.ndim == 3 else _variances_diagonal)(covariance, x, powers, pulls, out)


def move(W: Array, covariance: Array, r: int, x: Row, pulls: Array, g: float, h: float) -> None:
    """w_r += g·Σ_r x and Σ_r −= h·(Σ_r x)(Σ_r x)ᵀ, of a diagonal Σ_r its diagonal."""
    (_move_full if covariance.ndim == 3 else _move_diagonal)(W, covariance, r, x, pulls, g, h)


def reset(covariance: Array, r: int, i: int) -> None:
    """Variance PRIOR for weight i of label r."""
    (_reset_full if covariance.ndim == 3 else _reset_diagonal)(covariance, r, i)


def _variances_full(covariance: Array, x: Row, powers: Array, pulls: Array, out: Array) -> None:
    for r in range(out.shape[0]):
        apply(covariance[r], x, pulls[r])
        out[r] = max(pick(pulls[r], x), 0.0)


def _variances_diagonal(covariance: Array, x: Row, powers: Array, pulls: Array, out: Array) -> None:
    for j in range(size(x)):
        powers[j] = value(x, j) * value(x, j)
    scores_of(covariance, with_values(x, powers), out)


def _move_full(W: Array, covariance: Array, r: int, x: Row, pulls: Array, g: float, h: float) -> None:
    for i in range(W.shape[1]):
        W[r, i] += g * pulls[r, i]
    downdate(covariance[r], pulls[r], h)


def _move_diagonal(W: Array, covariance: Array, r: int, x: Row, pulls: Array, g: float, h: float) -> None:
    for j in range(size(x)):
        i = index(x, j)
        pull = covariance[r, i] * value(x, j)
        W[r, i] += g * pull
        covariance[r, i] -= h * pull * pull


def _reset_full(covariance: Array, r: int, i: int) -> None:
    covariance[r, i, i] = PRIOR


def _reset_diagonal(covariance: Array, r: int, i: int) -> None:
    covariance[r, i] = PRIOR


@overload(variances)
def _(covariance: Any, x: Any, powers: Any, pulls: Any, out: Any) -> Any:
    return _variances_full if covariance.ndim == 3 else _variances_diagonal


@overload(move)
def _(W: Any, covariance: Any, r: Any, x: Any, pulls: Any, g: Any, h: Any) -> Any:
    return _move_full if covariance.ndim == 3 else _move_diagonal


@overload(reset)
def _(covariance: Any, r: Any, i: Any) -> Any:
    return _reset_full if covariance.ndim == 3 else _reset_diagonal
