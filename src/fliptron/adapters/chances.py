"""The probability with which a learner would play a label next, for libraries that ask for it. Nothing is played."""

from __future__ import annotations

from typing import Any

from fliptron.arrays import Array, Row
from fliptron.kernels.compiling import STEP, compiled
from fliptron.kernels.loop import ALL_ELIGIBLE, DECIDED, Choice, choose, choose_among, gamma_at
from fliptron.kernels.rows import alone
from fliptron.learners.base import Learner

_NUDGE = 1e-12  # over the edge between two labels, where rounding may hide it


@compiled(**STEP)
def chosen_at(state: Any, turn: Array, x: Row, u: float) -> Choice:
    """What the next decision would be, if u were drawn for it."""
    return choose(state, alone(x), gamma_at(turn, int(turn[DECIDED]) + 1), u)


@compiled(**STEP)
def chosen_among_at(state: Any, turn: Array, x: Row, u: float, eligible: Array) -> Choice:
    """The same among some labels."""
    return choose_among(state, alone(x), gamma_at(turn, int(turn[DECIDED]) + 1), u, eligible)


def chance_of(learner: Learner, x: Array, label: int, eligible: list[int] | None) -> float:
    """The probability of a label in the next decision.

    A decision tells the probability of the label that it plays, and depends on chance by one number u from 0 to 1. So
    a u is looked for that plays the label: first among those that play any label at all, whose share is γ, 1, or what
    the label at u = 0 tells; then step by step from 0 on, by the probabilities of the labels on the way.

    Parameters
    ----------
    learner
        Whose decision it is.
    x
        The example.
    label
        Which one is asked for.
    eligible
        The labels that may be played; None if all may.
    """
    row, _ = learner._admit(x)
    labels = sorted(range(learner.n_classes) if eligible is None else eligible)
    if label not in labels:
        return 0.0
    with learner.held():
        mask = ALL_ELIGIBLE if eligible is None else learner._mask(eligible)

        def at(u: float) -> Any:
            if eligible is None:
                return chosen_at(learner.state, learner.turn, row, min(u, 1.0 - 1e-16))
            return chosen_among_at(learner.state, learner.turn, row, min(u, 1.0 - 1e-16), mask)

        K = len(labels)
        place = (labels.index(label) + 0.5) / K
        first, greedy, chance = at(0.0)
        blind = (1.0 - chance) * K / max(K - 1, 1) if first == greedy else chance * K
        for share in (float(gamma_at(learner.turn, int(learner.turn[DECIDED]) + 1)), 1.0, blind):
            played, _, chance = at(share * place)
            if played == label:
                return float(chance)
        return _stepwise(at, label, K)


def _stepwise(at: Any, label: int, K: int) -> float:
    """The probability of a label, whose share of u lies behind those of other labels; 0 if it has none."""
    u = 0.0
    for _ in range(2 * K):
        played, _, chance = at(u)
        if played == label:
            return float(chance)
        u += max(chance, _NUDGE)
        if at(u)[0] == played:
            u += _NUDGE
        if u >= 1.0:
            break
    return 0.0
