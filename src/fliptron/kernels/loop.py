"""One round, and the loop over rounds: shared by all learners.

A learner is a *state*: a named tuple of arrays that starts with its weights `W` (K×d) and room for K
`scores`. Three functions take a state and get their meaning from its type, in plain Python and in
compiled code alike: `score`, `choose` and `learn`. A learner's file declares them with `@scores`,
`@chooses` and `@learns`; by default scores are linear and choices ε-greedy.
"""

# mypy: disable-error-code="untyped-decorator,no-untyped-def,no-untyped-call"
from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import Any

import numpy as np
from numba.extending import overload

from fliptron.arrays import InputError
from fliptron.kernels.compiling import LOOP, STEP, compiled, entry
from fliptron.kernels.randomness import uniform
from fliptron.kernels.rows import fits, followed
from fliptron.kernels.vectors import argmax, lead, scores_of, square

SCRATCH = ("scores", "work", "spreads", "pulls", "powers", "seen", "places", "fresh")
"""Fields of a state that are only room to work in, and are not saved."""

Step = Callable[..., Any]

_SCORE: dict[type, Step] = {}
_CHOOSE: dict[type, Step] = {}
_LEARN: dict[type, Step] = {}


def scores(state: type) -> Callable[[Step], Step]:
    """Declare f(state, x, out) as the scores of learners with this state."""
    return lambda function: _SCORE.setdefault(state, function)


def chooses(state: type) -> Callable[[Step], Step]:
    """Declare f(state, x, gamma, u) → (label, greedy, probability) as their choice."""
    return lambda function: _CHOOSE.setdefault(state, function)


def learns(state: type) -> Callable[[Step], Step]:
    """Declare f(state, x, label, greedy, probability, feedback) as their update, in place.

    Feedback is the noisy bit, or the true label for a learner with full information.
    """
    return lambda function: _LEARN.setdefault(state, function)


def linear_scores(state, x, out):
    """w_r · x for every label r."""
    scores_of(state.W, x, out)


def epsilon_greedy(state, x, gamma, u):
    """P(r) = (1 − γ)·1[r = ŷ] + γ/K (the paper's eq. 3), drawn with the uniform number u."""
    K = state.W.shape[0]
    score(state, x, state.scores)
    greedy = argmax(state.scores, -1)
    label = min(int(u / gamma * K), K - 1) if u < gamma else greedy
    probability = gamma / K + (1.0 - gamma if label == greedy else 0.0)
    return label, greedy, probability


def score(state, x, out):
    """How much the learner believes in every label."""
    _SCORE.get(type(state), linear_scores)(state, x, out)


def choose(state, x, gamma, u):
    """The label to play, the greedy label, and the probability of the first."""
    return _CHOOSE.get(type(state), epsilon_greedy)(state, x, gamma, u)


def learn(state, x, label, greedy, probability, feedback):
    """Update the state in place."""
    _LEARN[type(state)](state, x, label, greedy, probability, feedback)


@overload(score, jit_options=STEP)
def _(state, x, out):
    return _SCORE.get(state.instance_class, linear_scores)


@overload(choose, jit_options=STEP)
def _(state, x, gamma, u):
    return _CHOOSE.get(state.instance_class, epsilon_greedy)


@overload(learn, jit_options=STEP)
def _(state, x, label, greedy, probability, feedback):
    return _LEARN[state.instance_class]


@compiled(**STEP)
def gamma_at(schedule, t):
    """γ_t = min(cap, scale·t^(−power)) for t = 1, 2, …"""
    scale, power, cap = schedule[0], schedule[1], schedule[2]
    return min(cap, scale if power == 0.0 else scale * np.float64(t) ** -power)


@compiled(**STEP)
def flip(correct, u, rho0, rho1):
    """The bit that comes back: the truth, flipped with probability ρ1 if right and ρ0 if wrong."""
    return u >= rho1 if correct else u < rho0


class MisfitError(Exception):
    """A dense x that is not d numbers in a row as it lies in memory."""


NOT_FINITE, BAD_DECISION, BAD_FEEDBACK, NOT_NUMBERS, MISFIT = 1, 2, 3, 4, 5


@compiled(**STEP)
def decide_one(state, schedule, key, x, t):
    """Decision t (from 0). That x is d numbers in a row is checked here, faster than in Python."""
    if not fits(x, state.W.shape[1]):
        raise MisfitError
    if not isfinite(square(x)):
        raise InputError("x holds a value that is not finite, or too large to square")
    return choose(state, x, gamma_at(schedule, t + 1), uniform(key, t))


@compiled(**STEP)
def learn_one(state, n_feedback, x, decision, feedback):
    """Learn from one round. What is wrong with it, if anything; then nothing has changed.

    Labels and feedback come as floats, so that a fraction is seen and not cut off.
    """
    K, (label, greedy, probability) = state.W.shape[0], decision
    if not fits(x, state.W.shape[1]):
        return MISFIT
    if not (0.0 <= label < K and 0.0 <= greedy < K and 0.0 < probability <= 1.0):
        return BAD_DECISION
    if label != int(label) or greedy != int(greedy):
        return BAD_DECISION
    if not (0.0 <= feedback < n_feedback and feedback == int(feedback)):
        return BAD_FEEDBACK
    if not isfinite(square(x)):
        return NOT_FINITE
    learn(state, x, int(label), int(greedy), probability, int(feedback))
    return 0


@compiled(**LOOP)
def score_all(state, X, out):
    """Scores of every row (n×K)."""
    n = out.shape[0]
    for i in range(n):
        score(state, followed(X, i, min(i + 1, n - 1)), out[i])


@compiled(**LOOP)
def replay(state, X, label, greedy, probability, bit, best, margin):
    """Learn from rounds that others played; `best` and `margin` get what was held before each bit."""
    n = label.shape[0]
    for i in range(n):
        x = followed(X, i, min(i + 1, n - 1))
        score(state, x, state.scores)
        best[i] = argmax(state.scores, -1)
        margin[i] = lead(state.scores, best[i])
        learn(state, x, label[i], greedy[i], probability[i], bit[i])


@compiled(**LOOP)
def play(
    state,
    X,
    y,
    rows,  # which example each round shows
    schedule,  # of γ
    choice_key,
    first_choice,  # how many decisions the learner had made before
    flip_key,
    first_round,
    rates,
    full_information,  # feedback is the true label, not the bit
    label,
    greedy,
    probability,
    bit,  # written: one entry a round
    margin,  # written too, unless it is empty
):
    """Play and learn one block of rounds. The truth y meets only the channel and the log."""
    rho0, rho1 = rates
    n = rows.shape[0]
    for i in range(n):
        x, truth = followed(X, rows[i], rows[min(i + 1, n - 1)]), y[rows[i]]
        t = first_choice + i
        played, thought, p = choose(state, x, gamma_at(schedule, t + 1), uniform(choice_key, t))
        if margin.shape[0]:
            margin[i] = lead(state.scores, thought)
        noisy = 1 if flip(played == truth, uniform(flip_key, first_round + i), rho0, rho1) else 0
        learn(state, x, played, thought, p, truth if full_information else noisy)
        label[i], greedy[i], probability[i], bit[i] = played, thought, p, noisy


@compiled(**LOOP)
def tally(y, rows, label, greedy, bit, start, checkpoints, at, total, counts):
    """Score a block of rounds: `counts` (4×checkpoints) gets the totals so far at each checkpoint passed.

    Mistakes of the played label, of the greedy label, rounds that explored, bits that were 1.
    """
    for i in range(rows.shape[0]):
        truth = y[rows[i]]
        total[0] += label[i] != truth
        total[1] += greedy[i] != truth
        total[2] += label[i] != greedy[i]
        total[3] += bit[i]
        if start + i + 1 == checkpoints[at]:
            for k in range(4):
                counts[k, at] = total[k]
            at += 1
    return at


OneRound = tuple[Step, Step]


def one_round(state: Any, schedule: Any, key: Any, n_feedback: int, x: Any) -> OneRound:
    """`decide_one` and `learn_one`, compiled for a state and rows like x."""
    return entry(decide_one, state, schedule, key, x, 0), entry(learn_one, state, n_feedback, x, (0.0, 0.0, 1.0), 1.0)
