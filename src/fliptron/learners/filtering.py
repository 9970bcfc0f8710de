"""A round of Fliptron: what it believes, how it chooses, and how a bit moves it."""

from __future__ import annotations

from math import exp, log, sqrt
from typing import Any, NamedTuple

import numpy as np

from fliptron.arrays import SHORTEST, Array, Row
from fliptron.kernels.compiling import LOOP, PART, STEP, compiled
from fliptron.kernels.loop import (
    Choice,
    Scratch,
    best_eligible,
    chooses,
    count_eligible,
    learns,
    may_play,
    nth_eligible,
    scores,
)
from fliptron.kernels.rows import followed, index, size, value
from fliptron.kernels.vectors import argmax, square
from fliptron.learners.alarms import (
    DATA,
    LOST,
    NO_ALARM,
    alarms_so_far,
    count,
    is_lost,
    is_overlooked,
    some_are_overlooked,
    start_anew,
    strength_of,
)
from fliptron.learners.axes import gather
from fliptron.learners.belief import PRIOR, average, due, forget, measure, move, scale_of, widen
from fliptron.learners.channel import (
    FOR_EVER,
    LEARNT,
    MEMORY,
    PLAYED,
    RIGHT,
    SINCE,
    UNKNOWN,
    WRONG,
    hear,
    informed,
    is_uniform,
    rates_to_learn_by,
    warming_up,
)
from fliptron.noise.tallies import AUDITED_RIGHT, AUDITED_WRONG, band_of, count_one

REACH = 2.5, 0.5
"""How many standard deviations above its mean a score may be imagined: at first, and in the end."""
ALARMS = 32
"""How many of the last alarms are kept."""
EPOCHS, WINDOW = 64, 5000.0
"""As in `Plateaus`."""

_MACKAY = np.pi / 8  # E σ(s) ≈ σ(m/√(1 + πv/8)) for s ~ N(m, v)
_NEGLIGIBLE = 1e-3  # a step of fewer standard deviations is not taken
_LEAST_ODDS = 1e-150  # of all other labels together: their square is still a number
_LEAST_SHARE = 2.0**-53
_CERTAIN = 0.001, 0.998  # ρ0 and β of a label that was verified
STORED, SOME, TRUTH, SILENT = range(4)
"""What `fresh` says: how many values the x last looked at stores (−1: the belief has changed since). Of the round to
be learnt from: whether only some labels were eligible, which label was verified (−1: none), and that no bit came."""
ORDINARY = (0, -1, 0)
"""The last three of a round of which all labels were eligible, none was verified, and a bit came."""


class FliptronState(NamedTuple):
    """A Gaussian belief about the weights, w_r ~ N(W_r, Σ_r), and counts of bits."""

    W: Array
    scores: Scratch
    covariance: Array  # K×d: the diagonals only; K×d×d; or K×n×n along the axes
    prior: Array  # of each feature's weights, where Σ_r is whole; see `belief`
    along: Array  # weights along the axes
    rest: Array  # variances of what the axes leave of x
    axes: Array  # n×d, where there are any
    gathered: Array  # for the next axes, and what was counted meanwhile; see `axes`
    taken: Array
    counts: Array  # see `channel`
    labels: Array
    alarms: Array  # rounds, kind, strength
    memory: Array  # what `Plateaus` counts, by epoch, and the edges of its bands
    edges: Array
    spreads: Scratch  # √(xᵀΣ_r x), for the x last looked at
    work: Scratch  # 4×K
    pulls: Scratch  # Σ_r x, if Σ is more than diagonals
    values: Scratch  # x in Σ's precision, or the squares of its values
    z: Scratch  # x along the axes, and what they leave of it
    left: Scratch
    seen: Scratch  # that x
    places: Scratch
    fresh: Scratch  # what is known of that x and of the round; see STORED


@compiled(**PART)
def look(state: FliptronState, x: Row) -> None:
    """Mean and standard deviation of every score, unless x is the one last looked at and nothing has changed."""
    n = size(x)
    if state.fresh[STORED] == n:
        same = True
        for j in range(n):
            same &= state.seen[j] == value(x, j) and state.places[j] == index(x, j)
        if same:
            return
    measure(state, x)
    for j in range(n):
        state.seen[j], state.places[j] = value(x, j), index(x, j)
    state.fresh[STORED] = n


@compiled(**STEP)
def reach(counts: Array, labels: Array, label: int) -> float:
    """How optimistic it may be about a label: less, the more bits of that label have come."""
    K = labels.shape[0]
    bits = min(K * labels[label, PLAYED], counts[MEMORY])
    return REACH[1] + (REACH[0] - REACH[1]) / (1.0 + informed(counts, bits, K))


@compiled(**STEP)
def share(scores: Array, widths: Array, label: int, eligible: Array) -> float:
    """The share of z in [0, 1] for which the label's s_r + z·Z_r·σ_r is highest: an interval, as these are lines."""
    low, high = 0.0, 1.0
    for r in range(scores.shape[0]):
        if not may_play(eligible, r):
            continue
        above, steeper = scores[r] - scores[label], widths[label] - widths[r]
        if steeper > 0.0:
            low = max(low, above / steeper)
        elif steeper < 0.0:
            high = min(high, above / steeper)
        elif above > 0.0 or (above == 0.0 and r < label):
            high = 0.0
    return max(high - low, 0.0)


@scores(FliptronState)
def mean_scores(state: FliptronState, x: Row, out: Array) -> None:
    """s_r of every label."""
    average(state, x, out)


@chooses(FliptronState)
def optimist(state: FliptronState, x: Row, gamma: float, u: float, eligible: Array) -> Choice:
    """argmax_r s_r + z·Z_r·σ_r, z uniform on [0, 1], Z_r the label's `reach`; with probability γ any label at all."""
    look(state, x)
    K, widths = count_eligible(state.scores, eligible), state.work[0]
    for r in range(state.scores.shape[0]):
        widths[r] = reach(state.counts, state.labels, r) * state.spreads[r]
    greedy = best_eligible(state.scores, eligible)
    if warming_up(state.counts):
        gamma = 1.0
    label = nth_eligible(eligible, min(int(u / gamma * K), K - 1)) if u < gamma else greedy
    if u >= gamma:
        z, top = (u - gamma) / (1.0 - gamma), -np.inf
        for r in range(state.scores.shape[0]):
            imagined = state.scores[r] + z * widths[r]
            if imagined > top and may_play(eligible, r):
                label, top = r, imagined
    chance = share(state.scores, widths, label, eligible)
    return label, greedy, gamma / K + (1.0 - gamma) * max(chance, _LEAST_SHARE)  # lines may cross within rounding


@compiled(**PART)
def alert(state: FliptronState, kind: float, label: int) -> None:
    """Note an alarm, and count anew; learn anew what no longer holds: all, or the labels that were lost or stood in."""
    counts, labels = state.counts, state.labels
    at = int(alarms_so_far(counts)) % ALARMS
    state.alarms[at, 0], state.alarms[at, 1] = counts[LEARNT], kind
    state.alarms[at, 2] = strength_of(counts, labels, label, kind)
    if kind == DATA:
        state.prior[:] = PRIOR
    for r in range(labels.shape[0]):
        if kind == DATA or (kind == LOST and (r == label or is_lost(counts, labels, r, label))):
            begin(state, r)
    start_anew(counts, labels, kind)
    state.memory[:] = 0.0


@compiled(**PART)
def begin(state: FliptronState, r: int) -> None:
    """Let a label begin anew: nothing is known of its weights, and it may be tried as at first."""
    forget(state, r)
    state.labels[r, PLAYED] = 0.0
    state.fresh[STORED] = -1


@compiled(**PART)
def reconsider(state: FliptronState) -> None:
    """Let labels that were overlooked begin anew, when it is time to look for them."""
    if some_are_overlooked(state.counts, state.labels):
        for r in range(state.labels.shape[0]):
            if is_overlooked(state.counts, state.labels, r):
                begin(state, r)


@compiled(**PART)
def weigh(state: FliptronState, length: float) -> tuple[int, float, float, float]:
    """Odds of all labels against the best; the best label, what the others add up to, their doubt, and the best's."""
    s, odds = state.scores, state.work[0]
    best, others, doubt = argmax(s, -1), _LEAST_ODDS, 0.0  # sums without the best, whose odds 1 would drown them
    for r in range(s.shape[0]):
        odds[r] = exp((s[r] - s[best]) / length)
        if r != best:
            others += odds[r]
            doubt += (odds[r] * state.spreads[r] / length) ** 2
    return best, others, doubt, (state.spreads[best] / length) ** 2


@compiled(**PART)
def assimilate(
    state: FliptronState,
    x: Row,
    length: float,
    weighed: tuple[int, float, float, float],
    label: int,
    rho0: float,
    beta: float,
    feedback: int,
) -> None:
    """Bayes' rule for one bit, for one label's score at a time, matched by a Gaussian."""
    best, others, doubt, top = weighed
    K, s = state.scores.shape[0], state.scores
    odds, chance, slope, bend = state.work
    given = 0.0
    for r in range(K):  # the chance of a bit 1, and its first two derivatives in s_ỹ or −s_r
        v = (state.spreads[r] / length) ** 2
        rest = others if r == best else 1.0 + others - odds[r]
        around = doubt if r == best else max(top + doubt - odds[r] ** 2 * v, 0.0)
        kappa = 1.0 / sqrt(1.0 + _MACKAY * (v + around / (rest * rest)))
        scale = beta if r == label else beta * min(odds[label] / rest, 1.0)
        lead = (s[r] - s[best]) / length - log(rest)
        q = 1.0 / (1.0 + exp(-kappa * lead if r == label else kappa * lead))
        chance[r] = rho0 + scale * q
        slope[r] = scale * kappa * q * (1.0 - q)
        bend[r] = slope[r] * kappa * (1.0 - 2.0 * q)
        given += 0.0 if r == label else slope[r]
    measured = length * scale_of(state, length)
    part = min(slope[label] / max(given, 1e-300), 1.0)  # all others take what the played one gives, and no more
    for r in range(K):
        v, weight = (state.spreads[r] / length) ** 2, 1.0 if r == label else part
        likely, sign = (chance[r], 1.0) if feedback else (1.0 - chance[r], -1.0)
        g = sign * weight * slope[r] / likely
        if abs(g) * sqrt(v) < _NEGLIGIBLE:
            continue
        h = g * g - sign * weight * bend[r] / likely
        h = min(
            max(h, -1.0 / v, (v - PRIOR) / (v * v)), 0.9 / v
        )  # v grows on surprise up to PRIOR, and falls back to it
        g = g if r == label else -g
        move(state, r, x, g / measured, h / (measured * measured))
    state.fresh[STORED] = -1


@compiled(**STEP)
def teach(state: FliptronState, x: Row, truth: int) -> None:
    """Learn a label that was verified; no bit is counted."""
    length = sqrt(square(x))
    if length >= SHORTEST:
        look(state, x)
        assimilate(state, x, length, weigh(state, length), truth, _CERTAIN[0], _CERTAIN[1], 1)


@compiled(**STEP)
def count_audit(state: FliptronState, right: bool, feedback: int) -> None:
    """Count the bit of a label that was verified to be right, or wrong."""
    epoch = int(np.log2(state.counts[SINCE] / WINDOW + 1.0)) if state.counts[MEMORY] == FOR_EVER else 0
    cell = state.memory[epoch, AUDITED_RIGHT if right else AUDITED_WRONG]
    cell[0] += 1.0
    cell[1] += feedback
    cell[2] += 1.0


@compiled(**PART)
def damping(weighed: tuple[int, float, float, float]) -> float:
    """κ, by which all scores are damped alike for the doubt in the best one's lead."""
    _, others, doubt, top = weighed
    return 1.0 / sqrt(1.0 + _MACKAY * (top + doubt / (others * others)))


@compiled(**PART)
def held_right(
    state: FliptronState, length: float, weighed: tuple[int, float, float, float], label: int
) -> tuple[float, float]:
    """How likely a label is held right, 1/K if nothing is known, and the odds of all labels but the best."""
    best, kappa, mass = weighed[0], damping(weighed), _LEAST_ODDS
    for r in range(state.scores.shape[0]):
        mass += 0.0 if r == best else exp(kappa * (state.scores[r] - state.scores[best]) / length)
    return exp(kappa * (state.scores[label] - state.scores[best]) / length) / (1.0 + mass), mass


@compiled(**LOOP)
def damp_all(state: FliptronState, X: Any, out: Array) -> None:
    """The scores of every row, damped: what it holds right is their softmax, as in `held_right` (n×K)."""
    n = out.shape[0]
    for i in range(n):
        x = followed(X, i, min(i + 1, n - 1))
        length, out[i, :] = sqrt(square(x)), 0.0
        if length >= SHORTEST:
            look(state, x)
            kappa = damping(weigh(state, length))
            for r in range(out.shape[1]):
                out[i, r] = kappa * state.scores[r] / length


@learns(FliptronState)
def filter_bit(state: FliptronState, x: Row, label: int, greedy: int, probability: float, feedback: int) -> None:
    """Learn from a bit, or from the label that was verified, and count the bit."""
    length, K, truth = sqrt(square(x)), state.scores.shape[0], state.fresh[TRUTH]
    best, mine, mass = 0, 1.0 / K, K - 1.0  # an x without length says nothing of any label
    if length >= SHORTEST:
        look(state, x)
        gather(state.gathered, state.taken, x, state.z, length, scale_of(state, length))
        weighed = weigh(state, length)
        best = weighed[0]
        mine, mass = held_right(state, length, weighed, label)
        rho0, beta = rates_to_learn_by(state.counts, state.labels, label)
        if truth < 0:
            assimilate(state, x, length, weighed, label, rho0, beta, feedback)
        else:
            assimilate(state, x, length, weighed, truth, _CERTAIN[0], _CERTAIN[1], 1)
    if state.fresh[SILENT]:
        hear(state.counts, label == truth)
        return
    known = UNKNOWN if truth < 0 else (RIGHT if label == truth else WRONG)
    band, epoch, every = band_of(state.edges, -log(mass)), 0, state.fresh[SOME] == 0
    if state.counts[MEMORY] == FOR_EVER:
        epoch = int(np.log2(state.counts[SINCE] / WINDOW + 1.0))
    elif every:
        count_one(state.memory[1], band, K, label == best, label == greedy, probability, feedback)
    if every:  # a random label is right once in K only where all may be played
        count_one(state.memory[epoch], band, K, label == best, label == greedy, probability, feedback)
    if known != UNKNOWN:
        count_audit(state, known == RIGHT, feedback)
    uniform = every and is_uniform(probability, K)
    alarm = count(state.counts, state.labels, uniform, label, best, mine, 1.0 / (1.0 + mass), known, feedback)
    if alarm != NO_ALARM:
        alert(state, alarm, label)
    elif due(state.counts[SINCE]):
        widen(state)
    reconsider(state)
