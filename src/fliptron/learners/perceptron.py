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
    """Multiclass Perceptron with full information: the floor for every learner that sees bits.

    It plays ŷ = argmax_r w_r·x and is told the true label y; `learn` takes that label as feedback:

        if ŷ ≠ y:   w_y ← w_y + x,   w_ŷ ← w_ŷ − x

    Parameters
    ----------
    n_classes, n_features
        K ≥ 2 labels, d ≥ 1 features.
    dtype
        Precision of the weights, "float64" or "float32".
    seed
        Kept for symmetry; nothing here is random.

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
