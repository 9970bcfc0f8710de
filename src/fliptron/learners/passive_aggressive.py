"""Bandit Passive-Aggressive: the smallest step that would have made the bit right."""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

import numpy as np

from fliptron.arrays import LONGEST, SHORTEST, Array, Row
from fliptron.exploration import Exploration
from fliptron.kernels.loop import Scratch, learns
from fliptron.kernels.vectors import add, dot, square
from fliptron.learners.base import Learner
from fliptron.refusals import one_of, real

_LEAST64, _LEAST32 = SHORTEST**2, LONGEST[4] ** -2


class PassiveAggressiveState(NamedTuple):
    """Weights, and what bounds a step."""

    W: Array
    scores: Scratch
    correct_margin: float
    cap: float
    slack: float


@learns(PassiveAggressiveState)
def passive_aggressive(
    state: PassiveAggressiveState, x: Row, label: int, greedy: int, probability: float, feedback: int
) -> None:
    """z = w_ỹ·x; bit 1: loss [m − z]₊ and a step up; bit 0: loss [1 + z]₊ and a step down."""
    z = dot(state.W, label, x)
    loss = max(0.0, state.correct_margin - z if feedback == 1 else 1.0 + z)
    norm = square(x) + state.slack
    if loss > 0.0 and norm > (
        _LEAST64 if state.W.itemsize == 8 else _LEAST32
    ):  # or the weights would not hold the step
        step = min(state.cap, loss / norm)
        add(state.W, label, step if feedback == 1 else -step, x)


Variant = Literal["PA", "PA-I", "PA-II"]


class BPA(Learner):
    r"""Bandit Passive-Aggressive, ε-greedy: the smallest step that would have made the bit right.

    With z = w_ỹ·x, the bit f and a margin m,

    .. math::

        \ell &= \max(0,\, m - z) \text{ if } f = 1, \quad \max(0,\, 1 + z) \text{ if } f = 0 \\
        w_{\tilde{y}} &\leftarrow w_{\tilde{y}} + (2f - 1)\,\tau\,x

    where the step τ is that of one of three variants:

    .. math::

        \text{PA:} \quad \tau &= \ell / \lVert x \rVert^2 \\
        \text{PA-I:} \quad \tau &= \min(C,\, \ell / \lVert x \rVert^2) \\
        \text{PA-II:} \quad \tau &= \ell / (\lVert x \rVert^2 + 1/(2C))

    Parameters
    ----------
    n_classes, n_features
        K ≥ 2 labels, d ≥ 1 features.
    gamma
        Exploration in [0, 1], a number or an `Exploration`.
    correct_margin
        m, from 0 to 10⁹: 1 in Zhong & Daucé's paper and in the code of the RCNBF paper's lab, 0 in Zhong's own code.
    variant
        "PA", "PA-I" or "PA-II".
    aggressiveness
        C, from 10⁻⁹ to 10⁹, for PA-I and PA-II.
    dtype
        Precision of the weights, "float64" or "float32".
    seed
        Of the exploration.

    Examples
    --------
    >>> learner = BPA(n_classes=3, n_features=2, gamma=0.1)
    >>> learner.learn([0.6, 0.8], learner.decide([0.6, 0.8]), 1)
    >>> learner.weights[0].round(3)
    array([0.6, 0.8])

    References
    ----------
    Zhong & Daucé (2015), "Passive-aggressive bounds in bandit feedback classification".
    """

    by_feature = True

    def __init__(
        self,
        *,
        n_classes: int,
        n_features: int,
        gamma: float | Exploration = 0.001,
        correct_margin: float = 1.0,
        variant: Variant = "PA",
        aggressiveness: float = 1.0,
        dtype: str = "float64",
        seed: int = 0,
    ) -> None:
        self.correct_margin = real("correct_margin", correct_margin, 0.0, 1e9)
        self.aggressiveness = real("aggressiveness", aggressiveness, 1e-9, 1e9)
        self.variant = one_of("variant", variant, get_args(Variant))
        super().__init__(n_classes=n_classes, n_features=n_features, gamma=gamma, seed=seed, dtype=dtype)

    def _start(self) -> PassiveAggressiveState:
        return PassiveAggressiveState(
            self._weights(),
            self._scores(),
            correct_margin=self.correct_margin,
            cap=self.aggressiveness if self.variant == "PA-I" else np.inf,
            slack=1.0 / (2.0 * self.aggressiveness) if self.variant == "PA-II" else 0.0,
        )
