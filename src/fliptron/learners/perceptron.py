"""The Perceptron: what learning looks like when the true label is told."""

from __future__ import annotations

from typing import NamedTuple

from fliptron.arrays import Array, Row
from fliptron.kernels.loop import Scratch, learns
from fliptron.kernels.vectors import add
from fliptron.learners.base import Learner


class PerceptronState(NamedTuple):
    """Weights alone."""

    W: Array
    scores: Scratch


@learns(PerceptronState)
def perceptron(state: PerceptronState, x: Row, label: int, greedy: int, probability: float, feedback: int) -> None:
    """If ŷ ≠ y: w_y += x, w_ŷ −= x (the paper's eq. 2)."""
    if greedy != feedback:
        add(state.W, feedback, 1.0, x)
        add(state.W, greedy, -1.0, x)


class Perceptron(Learner):
    r"""Multiclass Perceptron with full information: the simplest learner, when every true label is told.

    It plays ŷ = argmax_r w_r·x and is told the true label y; `learn` takes that label as feedback. If ŷ ≠ y,

    .. math::

        w_y &\leftarrow w_y + x \\
        w_{\hat{y}} &\leftarrow w_{\hat{y}} - x

    Parameters
    ----------
    n_classes, n_features
        K ≥ 2 labels, d ≥ 1 features.
    dtype
        Precision of the weights, "float64" or "float32".
    seed
        Taken so that all learners are built alike; nothing here is random.

    Examples
    --------
    >>> learner = Perceptron(n_classes=3, n_features=2)
    >>> learner.learn([1.0, 0.0], learner.decide([1.0, 0.0]), 2)
    >>> learner.predict([[1.0, 0.0]])
    array([2])

    References
    ----------
    Crammer & Singer (2003), "Ultraconservative online algorithms for multiclass problems";
    Agarwal & Manwani (2021), eq. 2.
    """

    full_information = True
    by_feature = True

    def __init__(self, *, n_classes: int, n_features: int, dtype: str = "float64", seed: int = 0) -> None:
        super().__init__(n_classes=n_classes, n_features=n_features, gamma=0.0, seed=seed, dtype=dtype)

    def _start(self) -> PerceptronState:
        return PerceptronState(self._weights(), self._scores())
