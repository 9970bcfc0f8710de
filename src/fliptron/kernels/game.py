"""The loop over rounds: learner and channel play each other, and a scorer who knows the truth counts.

This is the only compiled code that sees y; learners cannot import it.
"""

from __future__ import annotations

from typing import Any

from fliptron.arrays import Array
from fliptron.kernels.compiling import LOOP, STEP, compiled
from fliptron.kernels.loop import choose, gamma_at, learn
from fliptron.kernels.randomness import uniform
from fliptron.kernels.rows import followed
from fliptron.kernels.vectors import lead


@compiled(**STEP)
def flip(correct: bool, u: float, rho0: float, rho1: float) -> bool:
    """The bit that comes back: the truth, flipped with probability ρ1 if right and ρ0 if wrong."""
    return u >= rho1 if correct else u < rho0


@compiled(**LOOP)
def play(
    state: Any,
    X: Any,
    y: Array,
    row: Array,  # which example each round shows
    schedule: Array,  # of γ
    choice_key: int,
    first_choice: int,  # how many decisions the learner had made before
    flip_key: int,
    first_round: int,
    rates: Any,
    full_information: bool,  # feedback is the true label, not the bit
    label: Array,
    greedy: Array,
    probability: Array,
    bit: Array,  # written: one entry per round
    margin: Array,  # written too, unless it is empty
) -> None:
    """Play and learn one block of rounds. The truth y meets only the channel and the log."""
    rho0, rho1 = rates
    n = row.shape[0]
    for i in range(n):
        x, truth = followed(X, row[i], row[min(i + 1, n - 1)]), y[row[i]]
        t = first_choice + i
        played, thought, p = choose(state, x, gamma_at(schedule, t + 1), uniform(choice_key, t))
        if margin.shape[0]:
            margin[i] = lead(state.scores, thought)
        noisy = 1 if flip(played == truth, uniform(flip_key, first_round + i), rho0, rho1) else 0
        learn(state, x, played, thought, p, truth if full_information else noisy)
        label[i], greedy[i], probability[i], bit[i] = played, thought, p, noisy


@compiled(**LOOP)
def tally(
    y: Array,
    row: Array,
    label: Array,
    greedy: Array,
    bit: Array,
    start: int,
    checkpoints: Array,
    at: int,
    total: Array,
    counts: Array,
) -> int:
    """Score a block of rounds: `counts` (4×checkpoints) gets the totals so far at each checkpoint passed.

    Mistakes of the played label, of the greedy label, rounds that explored, bits that were 1.
    """
    for i in range(row.shape[0]):
        truth = y[row[i]]
        total[0] += label[i] != truth
        total[1] += greedy[i] != truth
        total[2] += label[i] != greedy[i]
        total[3] += bit[i]
        if start + i + 1 == checkpoints[at]:
            for k in range(4):
                counts[k, at] = total[k]
            at += 1
    return at
