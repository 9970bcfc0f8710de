r"""What a learner finds out about the channel as it plays: the rates to learn by, of all labels and of each.

Two kinds of bits tell a rate, by q, how likely the learner held the played label before it saw the bit:

- of a *doubtful* label (a uniform draw, or odds hardly above chance) the bits have mean ρ0 + β·q. A uniform draw is
  right once in K, whatever the data;
- of a *sure* label (odds far above chance, among the surest fifth of that label's rounds) they have mean 1 − ρ1.

With m and r the mean bit and the mean q of doubtful labels, m = ρ0 + β·r leaves one unknown,
0 ≤ β ≤ min{m/r, (1 − m)/(1 − r)}. Before any label is sure, β is taken to be most of that bound. But a β that large
would have made the learner sure of something before long: what n bits tell grows as n·β²/(m·(1 − m)), so the guess
falls as 1/√n for as long as nothing is sure. A β that is guessed too low corrects itself, since it does not keep the
learner from becoming sure; one that is too high would not.

Flips may depend on the label. So every label has counts of its own, and its rates are those of all labels, moved as far
as its own bits say so. A label that is merely hard to tell looks the same at first, and a channel that takes the blame
for it makes the learner surer than it should be, so they are moved with reluctance.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from fliptron.arrays import Array
from fliptron.kernels.compiling import PART, STEP, compiled

# Counts of all labels: doubtful bits, ones among them, how many should be right; sure bits, ones; bits learnt from,
# also since the last alarm, and since the noise last changed, ones among these; bits at the last forgetting; the rates;
# alarms so far of two kinds; whether β is held at its least; what part of its bound it is guessed to be; the longest
# memory; whether the rates were told; evidence of all labels together; whether more uniform play is asked for; alarms
# of the third kind; whether one of them waits until ρ0 is known better; how doubtful the best label has been of late;
# rounds with a sure best label; when labels are looked for next of which nothing is sure.
(
    DOUBTFUL, DOUBTFUL_ONES, DOUBTFUL_RIGHT, SURE, SURE_ONES, LEARNT, SINCE, HEARD, ONES, FORGOT,
    RHO0, PLATEAU, RESTARTS, JUMPS, AT_LEAST, GUESS, MEMORY, TOLD, TOTAL, ASKING, LOSSES, WAITING,
    OPEN, HELD, NEXT,
) = range(25)  # fmt: skip
# And of each label: the first five; the level of its surest fifth; evidence for an alarm, bits behind it, ones among
# these, and what the evidence of all labels was when its own began; when it last was the best; evidence that it plays
# for a label that was lost, bits behind it, ones among these; how often it was played since it began to learn; rounds
# in which it was the best, and surely so, whatever was played.
LEVEL, EVIDENCE, SUSPECT, SUSPECT_ONES, BEFORE, LED, STANDS_IN, STOOD, STOOD_ONES, PLAYED, BEST = range(5, 16)
SCALARS, COLUMNS = 25, 16

UNKNOWN, WRONG, RIGHT = -1, 0, 1
"""Whether somebody verified that the played label was right."""
FOR_EVER = 1e18
"""The memory of a learner that forgets nothing."""
ABOVE = 0.25
"""Of β above ρ0, or of the guess above m: well above chance."""
ASKED = 200.0
"""Doubtful bits without which nothing is called no better than chance."""

_UNIFORM = 1e-5  # a log may say 0.333333; a choice that is not uniform is as near to 1/K once in 10⁵ rounds
_LOW, _HIGH = 2.0, 5.0  # odds against those of chance, below which a label is doubtful, above which it may be sure
_TOP = 0.2  # share of a label's rounds that may count as sure
_GUESS = 0.75  # β as a part of its bound, before anything is sure
_WORTH = 20.0  # sure bits that the guess is worth
_INFORMATION, _PER_PAIR = 1000.0, 10.0  # see `_enough`: twice the most seen, K from 3 to 50
_LEAST = 0.5  # of the guessed β: what is learnt by a smaller one is learnt too slowly to find out,
_LITTLE = 200.0  # as long as sure bits tell as little as this, in the same units
_APART = 0.1  # standard deviation of the labels' rates, as a part of β
_OUTLIERS = 0.1, 0.01  # parts of β: no linear model is always right; some flips more keep outliers from ruling it
_RECENT = 4.0, 200.0, 50.0  # sure bits count by the last quarter of rounds, not fewer than 200, of one label 50
_CHANCE = 0.05  # of the guess above m: no better than chance
_CLEAR = 2.0  # standard deviations above chance that leave no question
_MOST = 1000.0  # doubtful bits that uniform play is asked for
_SEEMS = 1.5, 0.5  # standard deviations that are allowed for before those have come, and then


@compiled(**STEP)
def start(counts: Array) -> None:
    """Before the first bit."""
    counts[GUESS] = _GUESS
    counts[RHO0], counts[PLATEAU] = 0.25, 0.75


@compiled(**PART)
def note(
    counts: Array,
    labels: Array,
    uniform: bool,
    label: int,
    best: int,
    q: float,
    surest: float,
    known: int,
    feedback: int,
) -> bool:
    """Count a bit of a label held right with probability q, the best one with `surest`. Whether the label was sure.

    A label that was verified is sure, or doubtful and not right; then it is not called sure: nothing was guessed.
    """
    K = labels.shape[0]
    hear(counts, feedback)
    counts[SINCE] += 1.0
    odds = q * (K - 1) / max(1.0 - q, 1e-9)
    level = labels[best, LEVEL]
    level += 0.02 * (1.0 - _TOP - (1.0 if surest < level else 0.0)) * max(1.0 - level, 0.01)
    labels[best, LEVEL] = min(max(level, 0.0), 0.99)
    labels[best, LED] = counts[LEARNT]
    mine, rounds = labels[label], min(counts[SINCE], counts[MEMORY]) / _RECENT[0]
    mine[PLAYED] += 1.0
    counts[OPEN] += (1.0 - surest - counts[OPEN]) / max(rounds, _RECENT[1])
    if surest * (K - 1) > _HIGH * (1.0 - surest):
        counts[HELD] += 1.0 - counts[HELD] / max(rounds, _RECENT[1])
        labels[best, BEST] += 1.0 - labels[best, BEST] / max(rounds / K, _RECENT[2])
    if known == WRONG or (known == UNKNOWN and (uniform or odds < _LOW)):
        for each in (counts, mine):
            each[DOUBTFUL] += 1.0
            each[DOUBTFUL_ONES] += feedback
            each[DOUBTFUL_RIGHT] += 0.0 if known == WRONG else (1.0 / K if uniform else q)
        return False
    if known != RIGHT and odds <= _HIGH:
        return False
    if known == RIGHT or q >= mine[LEVEL]:
        _count_sure(counts, max(rounds, _RECENT[1]), feedback)
        _count_sure(mine, max(rounds / K, _RECENT[2]), feedback)
    return known == UNKNOWN


@compiled(**PART)
def hear(counts: Array, bit: int) -> None:
    """Count a bit, or that a label was verified to be right or wrong, as something learnt from."""
    counts[LEARNT] += 1.0
    counts[HEARD] += 1.0
    counts[ONES] += bit


@compiled(**PART)
def _count_sure(counts: Array, recent: float, feedback: int) -> None:
    fade = 1.0 - 1.0 / recent
    counts[SURE] = counts[SURE] * fade + 1.0
    counts[SURE_ONES] = counts[SURE_ONES] * fade + feedback


@compiled(**PART)
def _enough(K: int) -> float:
    """The information n·β²/(m(1 − m)) by which something is sure."""
    return _INFORMATION + _PER_PAIR * K * K


@compiled(**PART)
def informed(counts: Array, bits: float, K: int) -> float:
    """What so many bits tell, in units of what makes a learner sure of something."""
    rho0, plateau = counts[RHO0], counts[PLATEAU]
    m = rho0 + (plateau - rho0) / K
    return bits * (plateau - rho0) ** 2 / (m * (1.0 - m) * _enough(K))


@compiled(**PART)
def settle_rates(counts: Array, K: int) -> bool:
    """ρ0 and the plateau 1 − ρ1 of all labels together. Whether that is above chance, as far as can be told."""
    n, ones, right = counts[DOUBTFUL] + 1.0, counts[DOUBTFUL_ONES] + 0.5, counts[DOUBTFUL_RIGHT] + 1.0 / K
    m, r = ones / n, right / n
    bound = min(m / r, (1.0 - m) / (1.0 - r))
    told = sqrt(_enough(K) * m * (1.0 - m) / counts[SINCE])
    guess = min(counts[GUESS] * bound, told) * (1.0 - r)
    plateau = (counts[SURE_ONES] + _WORTH * (m + guess)) / (counts[SURE] + _WORTH)
    least = m + _LEAST * guess
    little = counts[SURE] * guess * guess < _LITTLE * m * (1.0 - m)
    counts[AT_LEAST] = 1.0 if plateau < least and little else 0.0
    counts[PLATEAU] = max(plateau, least) if little else plateau
    doubt = sqrt(m * (1.0 - m) / n + plateau * (1.0 - plateau) / (counts[SURE] + _WORTH))
    odd = plateau < m + min(ABOVE * guess, _CLEAR * doubt) and not little
    most = plateau + (_SEEMS[0] if n < _MOST else _SEEMS[1]) * doubt
    hopeless = odd and n >= ASKED and most < m + _CHANCE * guess
    asking = (odd and not hopeless and n < _MOST) or (counts[WAITING] > 0.0 and n < ASKED)
    counts[ASKING] = 1.0 if asking else 0.0
    if hopeless:  # what it is sure of is wrong, or β is smaller by far
        counts[AT_LEAST], counts[PLATEAU] = 1.0, least
    rho0 = max(ones - counts[PLATEAU] * right, 0.0) / (n - right)
    counts[RHO0] = max(min(rho0, counts[PLATEAU] - 0.05 * bound), 0.0)
    return not hopeless


@compiled(**PART)
def rates_for(counts: Array, labels: Array, label: int) -> tuple[float, float]:
    """ρ0 and β when this label is played: those of all labels, moved by its own bits."""
    rho0, plateau = counts[RHO0], counts[PLATEAU]
    beta = plateau - rho0
    if counts[TOLD] > 0.0:
        return rho0, beta
    mine, variance = labels[label], (_APART * beta) ** 2
    worth = max(plateau * (1.0 - plateau) / variance, _WORTH)
    plateau = (mine[SURE_ONES] + worth * plateau) / (mine[SURE] + worth)
    worth = max(rho0 * (1.0 - rho0) / variance, _WORTH)
    wrong = max(mine[DOUBTFUL_ONES] - mine[DOUBTFUL_RIGHT] * plateau, 0.0)
    rho0 = (wrong + worth * rho0) / (mine[DOUBTFUL] - mine[DOUBTFUL_RIGHT] + worth)
    return rho0, max(plateau - rho0, 0.25 * beta)


@compiled(**STEP)
def rates_to_learn_by(counts: Array, labels: Array, label: int) -> tuple[float, float]:
    """The same with an allowance for outliers: some flips more of either kind."""
    rho0, beta = rates_for(counts, labels, label)
    return rho0 + _OUTLIERS[1] * beta, (1.0 - _OUTLIERS[0] - _OUTLIERS[1]) * beta


@compiled(**STEP)
def fade(counts: Array, labels: Array, keep: float, doubtful: bool) -> None:
    """Let doubtful bits, or sure ones, count less."""
    first, last = (DOUBTFUL, DOUBTFUL_RIGHT) if doubtful else (SURE, SURE_ONES)
    for c in range(first, last + 1):
        counts[c] *= keep
        for r in range(labels.shape[0]):
            labels[r, c] *= keep


@compiled(**PART)
def is_uniform(probability: float, K: int) -> bool:
    """Whether a label was drawn uniformly from all."""
    return abs(probability * K - 1.0) < _UNIFORM


@compiled(**STEP)
def warming_up(counts: Array) -> bool:
    """Whether labels are drawn uniformly, until a few bits of either value have come, for 3,000 rounds at most.

    Five at first; twenty when the noise has changed, since there is more to lose; more where sure labels seem to be no
    better than chance.
    """
    heard, ones = counts[HEARD], counts[ONES]
    few = min(ones, heard - ones) < (5.0 if counts[JUMPS] == 0.0 else 20.0)
    return counts[ASKING] > 0.0 or (few and heard < 3000.0)


def flaw_of_counts(counts: Array, labels: Array) -> str:
    """What is wrong with counts that came from a file."""
    if min(np.delete(counts, TOTAL).min(), labels[:, :BEFORE].min(), labels[:, BEST].min()) < 0.0:
        return "a count is negative"
    parts = ((DOUBTFUL, DOUBTFUL_ONES), (DOUBTFUL, DOUBTFUL_RIGHT), (SURE, SURE_ONES))
    if any((each[..., part] > each[..., total] + 1e-6).any() for each in (counts, labels) for total, part in parts):
        return "a count is larger than the one it is part of"
    rates = 0.0 <= counts[RHO0] < counts[PLATEAU] <= 1.0 and counts[GUESS] <= 1.0
    bits = counts[FORGOT] <= counts[LEARNT] and counts[ONES] <= counts[HEARD] <= counts[LEARNT]
    bits = bits and counts[OPEN] <= 1.0 and 0.0 <= labels[:, PLAYED].min() <= labels[:, PLAYED].max() <= counts[LEARNT]
    return "" if rates and bits else "its counts are not those of its parameters"
