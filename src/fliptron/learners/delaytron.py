"""Delaytron: RCNBF for bits that come late, with shorter steps the more of them are awaited."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fliptron.arrays import Array, Row
from fliptron.exploration import Exploration
from fliptron.kernels.loop import DECIDED, Scratch, learns
from fliptron.learners.rcnbf import RCNBF, add_update
from fliptron.refusals import real


class DelaytronState(NamedTuple):
    """RCNBF's, and what tells how many bits are awaited."""

    W: Array
    scores: Scratch
    rates: Array
    learnt: Array  # how many bits have come, and e
    turn: Scratch  # the learner's own, which counts decisions
    step: float
    adaptive: bool


@learns(DelaytronState)
def delaytron(state: DelaytronState, x: Row, label: int, greedy: int, probability: float, feedback: int) -> None:
    """W += η·2^(−e/2)·H, with 2^e more than were ever awaited when a bit came."""
    state.learnt[0] += 1.0
    if state.adaptive:
        while state.turn[DECIDED] - state.learnt[0] >= 2.0 ** state.learnt[1]:
            state.learnt[1] += 1.0
    step = state.step * 2.0 ** (-0.5 * state.learnt[1])
    add_update(state.W, step, state.rates, x, label, greedy, probability, feedback)


class Delaytron(RCNBF):
    r"""RCNBF for bits that come late: a step when a bit arrives, the shorter the more bits are awaited.

    The bit of a round may come after any number of other rounds; `learn` then takes the example and the decision it
    belongs to. With RCNBF's update H,

    .. math::

        W \leftarrow W + \eta\, 2^{-e/2} H, \qquad
        H = \frac{h}{P(\tilde y)}\, e_{\tilde y} \otimes x - e_{\hat y} \otimes x

    In the adaptive form, e starts at 0. When a bit comes, e grows by one as long as :math:`2^e` bits or more are
    awaited: decisions made less bits learnt from, that bit included. In the other form e stays 0. Since W starts at 0,
    only a change of the step matters: η alone scales the weights and changes no decision. Where all bits are equally
    late, e is settled when the first comes, and Delaytron decides as RCNBF does. Where delays grow, the adaptive form
    holds on to what it knew before.

    Where sources differ: with the true bit, h = f, this is the authors' code, except that the code looks at the number
    of bits once per round, and this once per bit. `rates` are new. The adaptive form counts decisions, so it is the one
    learner here that learns by more than the arguments of `learn`. Decisions whose bits never come count as awaited for
    good, and bits of decisions that it did not make count as come early.

    Parameters
    ----------
    n_classes, n_features
        K ≥ 2 labels, d ≥ 1 features.
    gamma
        Exploration in (0, 1], a number or an `Exploration`.
    step
        η, from 10⁻⁹ to 10⁹.
    adaptive
        Whether steps are shorter when many bits are awaited.
    rates
        (ρ0, ρ1) of the channel, each ≥ 0 with a sum below 1; (0, 0) takes the bit at its word.
    dtype
        Precision of the weights, "float64" or "float32".
    seed
        Of the exploration.

    Examples
    --------
    >>> learner = Delaytron(n_classes=3, n_features=2, gamma=0.1, adaptive=True)
    >>> first, second = learner.decide([0.6, 0.8]), learner.decide([0.8, 0.6])
    >>> learner.learn([0.6, 0.8], first, 0)  # one is still awaited: e = 1
    >>> learner.weights[0].round(3)
    array([-0.424, -0.566])

    References
    ----------
    Manwani & Agarwal (2022), "Delaytron: efficient learning of multiclass classifiers with delayed bandit feedbacks".
    """

    def __init__(
        self,
        *,
        n_classes: int,
        n_features: int,
        gamma: float | Exploration = 0.1,
        step: float = 1.0,
        adaptive: bool = False,
        rates: tuple[float, float] = (0.0, 0.0),
        dtype: str = "float64",
        seed: int = 0,
    ) -> None:
        self.step, self.adaptive = real("step", step, 1e-9, 1e9), bool(adaptive)
        shape = {"n_classes": n_classes, "n_features": n_features}
        super().__init__(**shape, gamma=gamma, rates=rates, dtype=dtype, seed=seed)

    def _start(self) -> DelaytronState:
        rates, learnt = np.array(self.rates), np.zeros(2)
        return DelaytronState(self._weights(), self._scores(), rates, learnt, self.turn, self.step, self.adaptive)

    def _bounds(self) -> dict[str, tuple[float, float]]:
        return {"learnt": (0.0, 1e18)}

    def _flaw(self) -> str:
        e = self.state.learnt[1]
        return super()._flaw() or ("" if e == int(e) <= 64 else f"its steps are halved {e:g} times")

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.state = self.state._replace(turn=self.turn)  # a copy counts its own decisions
