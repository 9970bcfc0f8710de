"""All compiled code: what one round does, written once, and the loop over rounds.

Reading order: counted randomness, vectors (dense or sparse), the learners' steps, the loop.

A learner is a *state*, a named tuple of arrays. Three functions take it and pick their meaning by its
type, in plain Python and in compiled code alike: `score`, `choose` and `learn`. A new learner adds a
state and its steps to the tables `SCORE`, `CHOOSE` and `LEARN`; the loop `play` is shared by all, and
so is every way to store x.

Everything compiled stays in this one file: Numba's cache on disk does not notice an edit in another.
"""

# mypy: disable-error-code="untyped-decorator,no-untyped-def,no-untyped-call"
from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import isfinite, sqrt
from typing import Any, NamedTuple

import numpy as np
from numba import njit, typeof, types
from numba.extending import overload

from fliptron.arrays import Array, Csr, SparseRow

# Sums may be reordered into vector lanes and fused; NaN and infinity keep their meaning.
VECTOR = {"reassoc", "nsz", "contract"}

# Steps borrow the arrays of a state and allocate none, so they count no references (an atomic count for
# each array touched cost a quarter of a round at 10×64); and they melt into the loop that calls them
# (passing a state of three arrays from call to call cost another sixth).
BORROWED: Any = {"_nrt": False, "forceinline": True}
compiled = partial(njit, cache=True)


# --- counted randomness ---------------------------------------------------------------------------
# A draw is a function of (seed, purpose, round), never of what was drawn before: SplitMix64 (Steele,
# Lea & Flood 2014) read at a position. The same seed gives every learner the same rows and flips.

ROWS, FLIPS, CHOICES = 1, 2, 3
"""Purposes: independent sequences from one seed."""


@compiled(**BORROWED)
def mix(z):
    """Scramble 64 bits."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@compiled(**BORROWED)
def make_key(seed, purpose):
    """The key of one sequence."""
    return mix(mix(np.uint64(seed)) + np.uint64(purpose) * np.uint64(0xD1B54A32D192ED03))


@compiled(**BORROWED)
def uniform(key, t):
    """Draw t of a sequence, in [0, 1)."""
    z = mix(key + np.uint64(t + 1) * np.uint64(0x9E3779B97F4A7C15))
    return np.float64(z >> np.uint64(11)) * 2.0**-53


@compiled(nogil=True)
def uniforms(key, start, out):
    """Draws start, start + 1, … of a sequence."""
    for i in range(out.shape[0]):
        out[i] = uniform(key, start + i)


@compiled(nogil=True)
def resample(key, start, n_rows, out):
    """Rows of rounds start, start + 1, …, each drawn with replacement."""
    for i in range(out.shape[0]):
        out[i] = int(uniform(key, start + i) * n_rows)


@compiled(**BORROWED)
def flip(correct, u, rho0, rho1):
    """The bit that comes back: the truth, flipped with probability ρ1 if right and ρ0 if wrong."""
    return u >= rho1 if correct else u < rho0


# --- vectors --------------------------------------------------------------------------------------
# x is dense, or the non-zero values of a sparse row. Three accessors hide which; the rest is common.


def size(x):
    """How many values x stores."""
    return x.values.shape[0] if isinstance(x, SparseRow) else x.shape[0]


def index(x, j):
    """The feature of stored value j."""
    return x.indices[j] if isinstance(x, SparseRow) else j


def value(x, j):
    """Stored value j."""
    return x.values[j] if isinstance(x, SparseRow) else x[j]


def row(X, i):
    """Example i."""
    if isinstance(X, Csr):
        start, stop = X.indptr[i], X.indptr[i + 1]
        return SparseRow(X.indices[start:stop], X.data[start:stop])
    return X[i]


@overload(size)
def _(x):
    if isinstance(x, types.Array):
        return lambda x: x.shape[0]
    return lambda x: x.values.shape[0]


@overload(index)
def _(x, j):
    if isinstance(x, types.Array):
        return lambda x, j: j
    return lambda x, j: np.uint64(x.indices[j])


@overload(value)
def _(x, j):
    if isinstance(x, types.Array):
        return lambda x, j: x[j]
    return lambda x, j: x.values[j]


@overload(row)
def _(X, i):
    if isinstance(X, types.Array):
        return lambda X, i: X[i]
    return lambda X, i: SparseRow(X.indices[X.indptr[i] : X.indptr[i + 1]], X.data[X.indptr[i] : X.indptr[i + 1]])


@compiled(fastmath=VECTOR, **BORROWED)
def dot(W, r, x):
    """w_r · x."""
    total = 0.0
    for j in range(size(x)):
        total += W[r, index(x, j)] * value(x, j)
    return total


@compiled(**BORROWED)
def add(W, r, a, x):
    """w_r += a·x."""
    for j in range(size(x)):
        W[r, index(x, j)] += a * value(x, j)


@compiled(fastmath=VECTOR, **BORROWED)
def square(x):
    """‖x‖²; not finite when any value of x is not."""
    total = 0.0
    for j in range(size(x)):
        total += value(x, j) * value(x, j)
    return total


@compiled(fastmath=VECTOR, **BORROWED)
def pick(u, x):
    """u · x for a dense u."""
    total = 0.0
    for j in range(size(x)):
        total += u[index(x, j)] * value(x, j)
    return total


@compiled(fastmath=VECTOR, **BORROWED)
def apply(A, x, u):
    """u = A·x for a symmetric A, row by row of the values x stores."""
    u[:] = 0.0
    for j in range(size(x)):
        a, v = A[index(x, j)], value(x, j)
        for i in range(u.shape[0]):
            u[i] += a[i] * v


@compiled(fastmath=VECTOR, **BORROWED)
def downdate(A, u, scale):
    """A −= scale·u·uᵀ: Sherman and Morrison's step for an inverse."""
    for i in range(u.shape[0]):
        a, v = A[i], scale * u[i]
        for j in range(u.shape[0]):
            a[j] -= v * u[j]


# --- states ---------------------------------------------------------------------------------------
# Every state has W (K×d) and room for one score a label. What is saved, and what is only room to work
# in, is told apart by SCRATCH.

SCRATCH = ("scores", "work")


class PerceptronState(NamedTuple):
    W: Array
    scores: Array


class RcnbfState(NamedTuple):
    W: Array
    scores: Array
    rates: Array  # ρ0, ρ1


class AveragedState(NamedTuple):
    W: Array
    scores: Array
    rates: Array
    late: Array  # K×d: Σ (i − 1)·H_i, what the mean of W_1 … W_n lacks, times n
    updates: Array  # n


class PassiveAggressiveState(NamedTuple):
    W: Array
    scores: Array
    correct_margin: float
    cap: float
    slack: float


class DiagonalState(NamedTuple):
    W: Array
    scores: Array
    theta: Array  # K×d
    A: Array  # K×d
    margin: Array  # S


class FullState(NamedTuple):
    W: Array
    scores: Array
    inverse: Array  # Kd×Kd
    margin: Array  # S
    work: Array  # Kd


class RidgeState(NamedTuple):
    W: Array
    scores: Array
    inverse: Array  # K×d×d
    work: Array  # d


class ConfiditState(NamedTuple):
    W: Array
    scores: Array
    inverse: Array
    alpha: float
    work: Array


class GradientState(NamedTuple):
    W: Array
    scores: Array
    squares: Array  # K×d: Σ g², per weight
    step: float


# --- scores ---------------------------------------------------------------------------------------


@compiled(fastmath=VECTOR, **BORROWED)
def scores_of(W, x, out):
    """out = W·x, four labels at a time: x is read once for four, a third faster at 10×64 than one by one.

    The last four may overlap those before them, which costs less than a remainder.
    """
    K = W.shape[0]
    if K < 4:
        for r in range(K):
            out[r] = dot(W, r, x)
        return
    for first in range(0, K, 4):
        r = min(first, K - 4)
        a = b = c = d = 0.0
        for j in range(size(x)):
            i, v = index(x, j), value(x, j)
            a += W[r, i] * v
            b += W[r + 1, i] * v
            c += W[r + 2, i] * v
            d += W[r + 3, i] * v
        out[r], out[r + 1], out[r + 2], out[r + 3] = a, b, c, d


def linear_scores(state, x, out):
    """w_r · x for every label r."""
    scores_of(state.W, x, out)


def averaged_scores(state, x, out):
    """w̄_r · x, with w̄ the mean of W_1 … W_n, kept as W_n − (1/n)·Σ (i − 1)·H_i."""
    scores_of(state.late, x, out)
    for r in range(out.shape[0]):
        out[r] = dot(state.W, r, x) - out[r] / max(state.updates[0], 1.0)


SCORE: dict[type, Callable[..., Any]] = {AveragedState: averaged_scores}


def score(state, x, out):
    """How much the learner believes in every label."""
    SCORE.get(type(state), linear_scores)(state, x, out)


@overload(score, jit_options=BORROWED)
def _(state, x, out):
    return SCORE.get(state.instance_class, linear_scores)


@compiled(**BORROWED)
def argmax(scores, but):
    """The label of highest score (ties: the lowest), label `but` left out (−1: none)."""
    winner, top = 0, -np.inf
    for r in range(scores.shape[0]):
        if scores[r] > top and r != but:
            winner, top = r, scores[r]
    return winner


# --- choices --------------------------------------------------------------------------------------


def epsilon_greedy(state, x, gamma, u):
    """P(r) = (1 − γ)·1[r = ŷ] + γ/K (the paper's eq. 3), drawn with the uniform number u."""
    K = state.W.shape[0]
    score(state, x, state.scores)
    greedy = argmax(state.scores, -1)
    label = min(int(u / gamma * K), K - 1) if u < gamma else greedy
    probability = gamma / K + (1.0 - gamma if label == greedy else 0.0)
    return label, greedy, probability


def confident(state, x, gamma, u):
    """argmax_r w_r·x + α·√(xᵀ A_r⁻¹ x): no chance involved."""
    score(state, x, state.scores)
    greedy = argmax(state.scores, -1)
    for r in range(state.W.shape[0]):
        apply(state.inverse[r], x, state.work)
        state.scores[r] += state.alpha * sqrt(max(pick(state.work, x), 0.0))
    return argmax(state.scores, -1), greedy, 1.0


CHOOSE: dict[type, Callable[..., Any]] = {ConfiditState: confident}


def choose(state, x, gamma, u):
    """(label to play, greedy label, probability of the first)."""
    return CHOOSE.get(type(state), epsilon_greedy)(state, x, gamma, u)


@overload(choose, jit_options=BORROWED)
def _(state, x, gamma, u):
    return CHOOSE.get(state.instance_class, epsilon_greedy)


@compiled(**BORROWED)
def gamma_at(schedule, t):
    """γ_t = min(cap, scale·t^(−power)) for t = 1, 2, …"""
    scale, power, cap = schedule
    return min(cap, scale if power == 0.0 else scale * np.float64(t) ** -power)


# --- updates --------------------------------------------------------------------------------------
# learn(state, x, ỹ, ŷ, P(ỹ), feedback): feedback is the noisy bit, or the true label for a Perceptron.


def perceptron(state, x, label, greedy, probability, feedback):
    """If ŷ ≠ y: w_y += x, w_ŷ −= x (the paper's eq. 2)."""
    if greedy != feedback:
        add(state.W, feedback, 1.0, x)
        add(state.W, greedy, -1.0, x)


@compiled(**BORROWED)
def unbiased(bit, rates):
    """h(f_ρ) = (f_ρ − ρ0)/β (Lemma 1): its mean over flips is the true feedback."""
    return (bit - rates[0]) / (1.0 - rates[0] - rates[1])


def rcnbf(state, x, label, greedy, probability, feedback):
    """H = (h/P(ỹ))·e_ỹ⊗x − e_ŷ⊗x (the paper's eq. 5)."""
    add(state.W, greedy, -1.0, x)
    add(state.W, label, unbiased(feedback, state.rates) / probability, x)


def averaged(state, x, label, greedy, probability, feedback):
    """RCNBF's H, added to W and, times i − 1, to what the mean of W lacks."""
    before = state.updates[0]
    step = unbiased(feedback, state.rates) / probability
    add(state.W, greedy, -1.0, x)
    add(state.W, label, step, x)
    add(state.late, greedy, -before, x)
    add(state.late, label, before * step, x)
    state.updates[0] = before + 1.0


def passive_aggressive(state, x, label, greedy, probability, feedback):
    """z = w_ỹ·x; bit 1: loss [m − z]₊ and a step up; bit 0: loss [1 + z]₊ and a step down."""
    z = dot(state.W, label, x)
    loss = max(0.0, state.correct_margin - z if feedback == 1 else 1.0 + z)
    norm = square(x) + state.slack
    if loss > 0.0 and norm > 0.0:
        step = min(state.cap, loss / norm)
        add(state.W, label, step if feedback == 1 else -step, x)


def soba_diagonal(state, x, label, greedy, probability, feedback):
    """SOBA with A and θ per weight: W = θ/A."""
    if feedback != 1:
        return
    score(state, x, state.scores)
    rival = argmax(state.scores, label)
    gap = state.scores[rival] - state.scores[label]  # ⟨W, g⟩·P
    spread = 0.0  # zᵀA⁻¹z
    for j in range(size(x)):
        i, v = index(x, j), value(x, j)
        spread += v * v / probability * (1.0 / state.A[rival, i] + 1.0 / state.A[label, i])
    m = (gap * gap / probability + 2.0 * gap / probability) / (1.0 + spread)
    if state.margin[0] + m < 0.0:
        return
    state.margin[0] += m
    for j in range(size(x)):
        i, v = index(x, j), value(x, j)
        state.A[rival, i] += v * v / probability
        state.A[label, i] += v * v / probability
        state.theta[rival, i] -= v / probability
        state.theta[label, i] += v / probability
        state.W[rival, i] = state.theta[rival, i] / state.A[rival, i]
        state.W[label, i] = state.theta[label, i] / state.A[label, i]


def soba_full(state, x, label, greedy, probability, feedback):
    """SOBA with the whole A (Kd×Kd). With u = A⁻¹z, W = A⁻¹θ moves by −u·(⟨W,z⟩ + 1/√P)/(1 + zᵀu)."""
    if feedback != 1:
        return
    d = state.W.shape[1]
    score(state, x, state.scores)
    rival = argmax(state.scores, label)
    root = sqrt(probability)
    gap = (state.scores[rival] - state.scores[label]) / root  # ⟨W, z⟩
    u = state.work
    u[:] = 0.0
    for j in range(size(x)):
        i, v = index(x, j), value(x, j) / root
        up, down = state.inverse[rival * d + i], state.inverse[label * d + i]
        for k in range(u.shape[0]):
            u[k] += v * (up[k] - down[k])
    spread = (pick(u[rival * d : (rival + 1) * d], x) - pick(u[label * d : (label + 1) * d], x)) / root
    m = (gap * gap + 2.0 * gap / root) / (1.0 + spread)
    if state.margin[0] + m < 0.0:
        return
    state.margin[0] += m
    downdate(state.inverse, u, 1.0 / (1.0 + spread))
    step = (gap + 1.0 / root) / (1.0 + spread)
    for r in range(state.W.shape[0]):
        for i in range(d):
            state.W[r, i] -= step * u[r * d + i]


@compiled(**BORROWED)
def least_squares(W, inverse, r, x, target, u):
    """Recursive least squares for label r: A_r += xxᵀ, w_r = A_r⁻¹ Σ target·x."""
    apply(inverse[r], x, u)
    scale = 1.0 / (1.0 + pick(u, x))
    step = (target - dot(W, r, x)) * scale
    for i in range(u.shape[0]):
        W[r, i] += step * u[i]
    downdate(inverse[r], u, scale)


def ridge(state, x, label, greedy, probability, feedback):
    """Regress the raw bit, for the played label only."""
    least_squares(state.W, state.inverse, label, x, np.float64(feedback), state.work)


def confidit(state, x, label, greedy, probability, feedback):
    """Regress the bit as ±1, for the played label only."""
    least_squares(state.W, state.inverse, label, x, 2.0 * feedback - 1.0, state.work)


def gradient(state, x, label, greedy, probability, feedback):
    """AdaGrad on ½(w_ỹ·x − f_ρ)²: each weight's step is η/√(Σ g²)."""
    error = dot(state.W, label, x) - feedback
    for j in range(size(x)):
        i = index(x, j)
        g = error * value(x, j)
        if g != 0.0:
            state.squares[label, i] += g * g
            state.W[label, i] -= state.step * g / sqrt(state.squares[label, i])


LEARN: dict[type, Callable[..., Any]] = {
    PerceptronState: perceptron,
    RcnbfState: rcnbf,
    AveragedState: averaged,
    PassiveAggressiveState: passive_aggressive,
    DiagonalState: soba_diagonal,
    FullState: soba_full,
    RidgeState: ridge,
    ConfiditState: confidit,
    GradientState: gradient,
}


def learn(state, x, label, greedy, probability, feedback):
    """Update the state in place."""
    LEARN[type(state)](state, x, label, greedy, probability, feedback)


@overload(learn, jit_options=BORROWED)
def _(state, x, label, greedy, probability, feedback):
    return LEARN[state.instance_class]


# --- one round, many rounds -----------------------------------------------------------------------


NOT_FINITE, BAD_DECISION, BAD_FEEDBACK = 1, 2, 3


@compiled(**BORROWED)
def decide_one(state, x, schedule, key, t):
    """Decision t (from 0). Label −1 says that x is not finite."""
    if not isfinite(square(x)):
        return -1, -1, 0.0
    return choose(state, x, gamma_at(schedule, t + 1), uniform(key, t))


@compiled(**BORROWED)
def learn_one(state, x, label, greedy, probability, feedback, n_feedback):
    """Learn from one round. What is wrong with it, if anything; then nothing has changed."""
    K = state.W.shape[0]
    if not (0 <= label < K and 0 <= greedy < K and 0.0 < probability <= 1.0):
        return BAD_DECISION
    if not (feedback == int(feedback) and 0.0 <= feedback < n_feedback):
        return BAD_FEEDBACK
    if not isfinite(square(x)):
        return NOT_FINITE
    learn(state, x, label, greedy, probability, int(feedback))
    return 0


@compiled(nogil=True)
def score_all(state, X, out):
    """Scores of every row (n×K)."""
    for i in range(out.shape[0]):
        score(state, row(X, i), out[i])


@compiled(nogil=True)
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
):
    """Play and learn one block of rounds. The truth y meets only the channel and the log."""
    rho0, rho1 = rates
    for i in range(rows.shape[0]):
        x, truth = row(X, rows[i]), y[rows[i]]
        t = first_choice + i
        played, thought, p = choose(state, x, gamma_at(schedule, t + 1), uniform(choice_key, t))
        noisy = 1 if flip(played == truth, uniform(flip_key, first_round + i), rho0, rho1) else 0
        learn(state, x, played, thought, p, truth if full_information else noisy)
        label[i], greedy[i], probability[i], bit[i] = played, thought, p, noisy


@compiled(nogil=True)
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


Steps = tuple[Callable[..., Any], Callable[..., Any]]


def one_round(state: Any, x: Any, schedule: Any, key: Any) -> Steps:
    """`decide_one` and `learn_one`, compiled for a state and a row of these types."""
    return _entry(decide_one, state, x, schedule, key, 0), _entry(learn_one, state, x, 0, 0, 1.0, 1.0, 2)


def _entry(function: Any, *example: Any) -> Callable[..., Any]:
    """Machine code without Numba's type check at every call, which costs more than a round at 10×64.

    `arrays` vouches for the types instead.
    """
    if not hasattr(function, "overloads"):  # compilation is switched off
        return function  # type: ignore[no-any-return]
    signature = tuple(map(typeof, example))
    function.compile(signature)
    return function.overloads[signature].entry_point  # type: ignore[no-any-return]
