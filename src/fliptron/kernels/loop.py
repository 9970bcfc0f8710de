"""One round, as every learner plays it: score, choose, learn.

A learner is a *state*: a named tuple of arrays and numbers with room for K `scores`. Three functions take a state and
get their meaning from its type, in plain Python and in compiled code alike: `score`, `choose` and `learn`. A learner's
file declares them with `@scores`, `@chooses` and `@learns`; by default scores are linear in the weights `W` (K×d) and
choices ε-greedy. The loop over rounds, which knows the truth, is in `game.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import numpy as np

from fliptron.arrays import LONGEST, Array, Row
from fliptron.kernels.compiling import LOOP, PART, STEP, compiled, entry, overload
from fliptron.kernels.randomness import uniform
from fliptron.kernels.rows import alone, fits, followed
from fliptron.kernels.vectors import argmax, lead, scores_of, square
from fliptron.rounds import LEAST_PROBABILITY

Scratch = Annotated[Array, "scratch"]
"""The type of a state's field that is only room to work in, and is not saved."""
Choice = tuple[int, int, float]
"""Label, greedy label, probability."""
Step = Callable[..., Any]

_SCORE: dict[type, Step] = {}
_CHOOSE: dict[type, Step] = {}
_LEARN: dict[type, Step] = {}
_MOST64, _MOST32 = (most**2 * (1 + 1e-9) for most in (LONGEST[8], LONGEST[4]))  # the gate sums in another order


def scores(state: type) -> Callable[[Step], Step]:
    """Declare f(state, x, out) as the scores of learners with this state."""
    return lambda function: _SCORE.setdefault(state, function)


def chooses(state: type) -> Callable[[Step], Step]:
    """Declare f(state, x, gamma, u, eligible) → (label, greedy, probability) as their choice.

    `eligible` says of each label whether it may be played; `ALL_ELIGIBLE` stands for all.
    """
    return lambda function: _CHOOSE.setdefault(state, function)


def learns(state: type) -> Callable[[Step], Step]:
    """Declare f(state, x, label, greedy, probability, feedback) as their update, in place.

    Feedback is the noisy bit, or the true label for a learner with full information.
    """
    return lambda function: _LEARN.setdefault(state, function)


def linear_scores(state: Any, x: Row, out: Array) -> None:
    """w_r · x for every label r."""
    scores_of(state.W, x, out)


def epsilon_greedy(state: Any, x: Row, gamma: float, u: float) -> Choice:
    """P(r) = (1 − γ)·1[r = ŷ] + γ/K (the paper's eq. 3), drawn with the uniform number u."""
    K = state.scores.shape[0]
    score(state, x, state.scores)
    greedy = argmax(state.scores, -1)
    label = min(int(u / gamma * K), K - 1) if u < gamma else greedy
    probability = gamma / K + (1.0 - gamma if label == greedy else 0.0)
    return label, greedy, probability


ALL_ELIGIBLE = np.empty(0, np.bool_)
"""Stands for every label where a mask of K labels says which may be played."""


@compiled(**PART)
def may_play(eligible: Array, r: int) -> bool:
    """Whether label r may be played."""
    return eligible.shape[0] == 0 or eligible[r]


@compiled(**PART)
def count_eligible(scores: Array, eligible: Array) -> int:
    """How many labels may be played."""
    return eligible.sum() if eligible.shape[0] else scores.shape[0]


@compiled(**PART)
def nth_eligible(eligible: Array, n: int) -> int:
    """The label that is number n, from 0, of those that may be played."""
    if eligible.shape[0] == 0:
        return n
    for r in range(eligible.shape[0]):
        n -= eligible[r]
        if n < 0:
            break
    return r


@compiled(**PART)
def best_eligible(scores: Array, eligible: Array) -> int:
    """The label of highest score (ties: the lowest) of those that may be played."""
    if eligible.shape[0] == 0:
        return argmax(scores, -1)
    winner = -1
    for r in range(scores.shape[0]):
        if eligible[r] and (winner < 0 or scores[r] > scores[winner]):
            winner = r
    return winner


def epsilon_greedy_among(state: Any, x: Row, gamma: float, u: float, eligible: Array) -> Choice:
    """The same among the labels that may be played, ŷ the best of them and K their number."""
    score(state, x, state.scores)
    K, greedy = count_eligible(state.scores, eligible), best_eligible(state.scores, eligible)
    label = nth_eligible(eligible, min(int(u / gamma * K), K - 1)) if u < gamma else greedy
    return label, greedy, gamma / K + (1.0 - gamma if label == greedy else 0.0)


def among_all(state: Any, x: Row, gamma: float, u: float) -> Choice:
    """The choice that a learner has declared, among all labels."""
    return choose_among(state, x, gamma, u, ALL_ELIGIBLE)


def score(state: Any, x: Row, out: Array) -> None:
    """How much the learner believes in every label."""
    step: Step = _SCORE.get(type(state), linear_scores)
    step(state, x, out)


def choose(state: Any, x: Row, gamma: float, u: float) -> Choice:
    """The label to play, the greedy label, and the probability of the first."""
    step: Step = among_all if type(state) in _CHOOSE else epsilon_greedy
    return step(state, x, gamma, u)


def choose_among(state: Any, x: Row, gamma: float, u: float, eligible: Array) -> Choice:
    """The same among some labels: `eligible` says of each whether it may be played."""
    step: Step = _CHOOSE.get(type(state), epsilon_greedy_among)
    return step(state, x, gamma, u, eligible)


def learn(state: Any, x: Row, label: int, greedy: int, probability: float, feedback: int) -> None:
    """Update the state in place."""
    _LEARN[type(state)](state, x, label, greedy, probability, feedback)


@overload(score)
def _(state: Any, x: Any, out: Any) -> Step:
    return _SCORE.get(state.instance_class, linear_scores)


@overload(choose)
def _(state: Any, x: Any, gamma: Any, u: Any) -> Step:
    return among_all if state.instance_class in _CHOOSE else epsilon_greedy


@overload(choose_among)
def _(state: Any, x: Any, gamma: Any, u: Any, eligible: Any) -> Step:
    return _CHOOSE.get(state.instance_class, epsilon_greedy_among)


@overload(learn)
def _(state: Any, x: Any, label: Any, greedy: Any, probability: Any, feedback: Any) -> Step:
    return _LEARN[state.instance_class]


SCALE, POWER, CAP, FEATURES, FEEDBACK, HELD, DECIDED = range(7)
"""What one round is played by, in one array: the schedule of γ, d, how many kinds of feedback there are, whether a
thread holds the state, and how many decisions have been made. Compiled code called from Python keeps Python's lock, so
that looking at these, counting and stepping are one act that no other thread can come between."""


@compiled(**STEP)
def gamma_at(schedule: Any, t: int) -> float:
    """γ_t = min(cap, scale·t^(−power)) for t = 1, 2, …"""
    scale, power, cap = schedule[SCALE], schedule[POWER], schedule[CAP]
    return min(cap, scale if power == 0.0 else scale * np.float64(t) ** -power)


class NotNowError(Exception):
    """Another thread holds the state; or x is not d numbers in a row as it lies in memory, or is too long."""


@compiled(**PART)
def admits(state: Any, d: int, x: Row) -> bool:
    """Whether x is d numbers in a row and not too long; checked here, faster than in Python. NaN is not admitted."""
    return fits(x, d) and square(x) <= (_MOST64 if state.scores.itemsize == 8 else _MOST32)


@compiled(**STEP)
def decide_one(state: Any, turn: Array, key: int, x: Row) -> Choice:
    """The next decision."""
    if turn[HELD] > 0.0 or not admits(state, int(turn[FEATURES]), x):
        raise NotNowError
    t = int(turn[DECIDED])
    turn[DECIDED] += 1.0
    return choose(state, alone(x), gamma_at(turn, t + 1), uniform(key, t))


@compiled(**STEP)
def decide_among(state: Any, turn: Array, key: int, x: Row, eligible: Array) -> Choice:
    """The next decision, among the labels for which `eligible` says so."""
    if turn[HELD] > 0.0 or not admits(state, int(turn[FEATURES]), x) or eligible.shape[0] != state.scores.shape[0]:
        raise NotNowError  # the number of labels may have grown since somebody looked
    t = int(turn[DECIDED])
    turn[DECIDED] += 1.0
    return choose_among(state, alone(x), gamma_at(turn, t + 1), uniform(key, t), eligible)


BAD_DECISION, BAD_FEEDBACK, NOT_NOW = 1, 2, 3


@compiled(**STEP)
def learn_one(state: Any, turn: Array, x: Row, decision: Any, feedback: float) -> int:
    """Learn from one round. What is wrong with it, if anything; then nothing has changed.

    Labels and feedback come as floats, so that a fraction is seen and not cut off.
    """
    K, (label, greedy, probability) = state.scores.shape[0], decision
    if turn[HELD] > 0.0 or not admits(state, int(turn[FEATURES]), x):
        return NOT_NOW
    if not (0.0 <= label < K and 0.0 <= greedy < K and LEAST_PROBABILITY <= probability <= 1.0):
        return BAD_DECISION
    if label != int(label) or greedy != int(greedy):
        return BAD_DECISION
    if not (0.0 <= feedback < turn[FEEDBACK] and feedback == int(feedback)):
        return BAD_FEEDBACK
    learn(state, alone(x), int(label), int(greedy), probability, int(feedback))
    return 0


@compiled(**LOOP)
def score_all(state: Any, X: Any, out: Array) -> None:
    """Scores of every row (n×K)."""
    n = out.shape[0]
    for i in range(n):
        score(state, followed(X, i, min(i + 1, n - 1)), out[i])


@compiled(**LOOP)
def replay(
    state: Any,
    X: Any,
    label: Array,
    greedy: Array,
    probability: Array,
    bit: Array,
    start: int,
    stop: int,
    best: Array,
    margin: Array,
    scores: Array,
) -> None:
    """Learn from rounds start … stop − 1, which others played.

    `best`, `margin` and `scores` (unless it has no rows) get what was held before each bit. A greedy label below 0 is
    not known, and `best` stands for it.
    """
    for i in range(start, stop):
        x = followed(X, i, min(i + 1, stop - 1))
        score(state, x, state.scores)
        best[i] = argmax(state.scores, -1)
        margin[i] = lead(state.scores, best[i])
        for r in range(scores.shape[1] if scores.shape[0] else 0):
            scores[i, r] = state.scores[r]
        learn(state, x, label[i], greedy[i] if greedy[i] >= 0 else best[i], probability[i], bit[i])


OneRound = tuple[Step, Step]


def one_round(state: Any, turn: Array, key: Any, x: Row) -> OneRound:
    """`decide_one` and `learn_one`, compiled for a state and rows like x."""
    return entry(decide_one, state, turn, key, x), entry(learn_one, state, turn, x, (0.0, 0.0, 1.0), 1.0)


def one_among(state: Any, turn: Array, key: Any, x: Row) -> Step:
    """`decide_among`, compiled for a state and rows like x."""
    return entry(decide_among, state, turn, key, x, ALL_ELIGIBLE)
