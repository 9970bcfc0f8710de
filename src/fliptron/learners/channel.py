r"""What a learner finds out about the channel as it plays: the rates to learn by, for each label, and alarms.

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

An *alarm* is raised when a label of which the learner is sure is right at most half as often as it should be, by a
cumulated sum of log likelihood ratios. If the other labels disappoint too, and what is left is well above chance, the
noise has changed: the rates are counted anew. Otherwise the data has changed, or the label was learnt wrongly, and the
weights start anew; one label alone needs twice the evidence. They also start anew when sure labels turn out to be no
better than chance, for which uniform play is asked as long as it is open.
"""

from __future__ import annotations

from math import log, sqrt

import numpy as np

from fliptron.arrays import Array
from fliptron.kernels.compiling import PART, STEP, compiled

# Counts of all labels: doubtful bits, ones among them, how many should be right; sure bits, ones; bits learnt from,
# also since the last alarm, and since the noise last changed, ones among these; bits at the last forgetting; the rates;
# alarms so far of both kinds; whether β is held at its least; what part of its bound it is guessed to be; the longest
# memory; whether the rates were told; evidence of all labels together; whether more uniform play is asked for.
(
    DOUBTFUL, DOUBTFUL_ONES, DOUBTFUL_RIGHT, SURE, SURE_ONES, LEARNT, SINCE, HEARD, ONES, FORGOT,
    RHO0, PLATEAU, RESTARTS, JUMPS, AT_LEAST, GUESS, MEMORY, TOLD, TOTAL, ASKING,
) = range(20)  # fmt: skip
# And of each label: the first five; the level of its surest fifth; evidence for an alarm, bits behind it, ones among
# these, and what the evidence of all labels was when its own began.
LEVEL, EVIDENCE, SUSPECT, SUSPECT_ONES, BEFORE = range(5, 10)
SCALARS, COLUMNS = 20, 10

NO_ALARM, DATA, NOISE = 0.0, 1.0, 2.0
"""What an alarm says has changed."""
UNKNOWN, WRONG, RIGHT = -1, 0, 1
"""Whether somebody verified that the played label was right."""
FOR_EVER = 1e18
"""The memory of a learner that forgets nothing."""

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
_ALARM = 4.0  # log t more is asked for: false alarms stay rare at any horizon
_ABOVE, _CHANCE = 0.25, 0.05  # of β above ρ0, or of the guess above m: well above chance; no better than it
_CLEAR = 2.0  # standard deviations above chance that leave no question
_ASKED = 200.0, 1000.0  # doubtful bits without which nothing is called no better than chance, and the most asked for;
_SEEMS = 1.5, 0.5  # standard deviations that are allowed for before those have come, and then
_POOR = 0.55  # of β above ρ0: a label that stays above that alone is no reason for an alarm
_KEPT = 5.0, 20.0  # doubtful bits that outlive a change of the noise; sure ones that outlive one of the data


@compiled(**STEP)
def start(counts: Array) -> None:
    """Before the first bit."""
    counts[GUESS] = _GUESS
    counts[RHO0], counts[PLATEAU] = 0.25, 0.75


@compiled(**STEP)
def count(
    counts: Array,
    labels: Array,
    uniform: bool,
    label: int,
    best: int,
    q: float,
    surest: float,
    known: int,
    feedback: int,
) -> float:
    """Count a bit of a label held right with probability q, the best one with `surest`. Whether it raises an alarm.

    A label that was verified is sure, or doubtful and not right.
    """
    K = labels.shape[0]
    hear(counts, feedback)
    counts[SINCE] += 1.0
    odds = q * (K - 1) / max(1.0 - q, 1e-9)
    level = labels[best, LEVEL]
    level += 0.02 * (1.0 - _TOP - (1.0 if surest < level else 0.0)) * max(1.0 - level, 0.01)
    labels[best, LEVEL] = min(max(level, 0.0), 0.99)
    mine = labels[label]
    alarm = NO_ALARM
    if known == WRONG or (known == UNKNOWN and (uniform or odds < _LOW)):
        for each in (counts, mine):
            each[DOUBTFUL] += 1.0
            each[DOUBTFUL_ONES] += feedback
            each[DOUBTFUL_RIGHT] += 0.0 if known == WRONG else (1.0 / K if uniform else q)
    elif known == RIGHT or odds > _HIGH:
        if known == RIGHT or q >= mine[LEVEL]:
            rounds = min(counts[SINCE], counts[MEMORY]) / _RECENT[0]
            _count_sure(counts, max(rounds, _RECENT[1]), feedback)
            _count_sure(mine, max(rounds / K, _RECENT[2]), feedback)
        if known == UNKNOWN:
            alarm = _suspect(counts, labels, label, q, feedback)
    if counts[TOLD] == 0.0 and not _settle_rates(counts, K):
        alarm = DATA
    return alarm


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
def informed(counts: Array, K: int) -> float:
    """What the bits that are remembered tell, in units of what makes a learner sure of something."""
    rho0, plateau = counts[RHO0], counts[PLATEAU]
    m = rho0 + (plateau - rho0) / K
    n = min(counts[SINCE], counts[MEMORY])
    return n * (plateau - rho0) ** 2 / (m * (1.0 - m) * _enough(K))


@compiled(**PART)
def _settle_rates(counts: Array, K: int) -> bool:
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
    odd = plateau < m + min(_ABOVE * guess, _CLEAR * doubt) and not little
    most = plateau + (_SEEMS[0] if n < _ASKED[1] else _SEEMS[1]) * doubt
    hopeless = odd and n >= _ASKED[0] and most < m + _CHANCE * guess
    counts[ASKING] = 1.0 if odd and not hopeless and n < _ASKED[1] else 0.0
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


@compiled(**PART)
def _suspect(counts: Array, labels: Array, label: int, q: float, feedback: int) -> float:
    """Add a bit of a sure label to the evidence that it is right half as often as it should be."""
    mine = labels[label]
    rho0, beta = rates_for(counts, labels, label)
    good = min(max(rho0 + beta * q, 0.002), 0.99)
    bad = min(max(rho0 + 0.5 * beta * q, 0.001), 0.99)
    told = log(bad / good) if feedback else log((1.0 - bad) / (1.0 - good))
    counts[TOTAL] += told
    mine[EVIDENCE] += told
    mine[SUSPECT] += 1.0
    mine[SUSPECT_ONES] += feedback
    if mine[EVIDENCE] <= 0.0:
        mine[EVIDENCE] = mine[SUSPECT] = mine[SUSPECT_ONES] = 0.0
        mine[BEFORE] = counts[TOTAL]
        return NO_ALARM
    others = counts[TOTAL] - mine[BEFORE] - mine[EVIDENCE]
    enough = (_ALARM + log(counts[LEARNT])) * (1.0 + counts[RESTARTS])
    alone = others <= _ALARM
    if mine[EVIDENCE] <= (2.0 * enough if alone else enough):
        return NO_ALARM
    if alone and mine[SUSPECT_ONES] > (rho0 + _POOR * beta) * mine[SUSPECT]:
        return NO_ALARM  # a label that is hard to tell, and right more often than not
    bits = ones = 0.0
    for r in range(labels.shape[0]):
        bits += labels[r, SUSPECT]
        ones += labels[r, SUSPECT_ONES]
    if others > 0.0 and ones > (rho0 + _ABOVE * beta) * bits:
        return NOISE if counts[TOLD] == 0.0 else NO_ALARM  # rates that were told stay
    return DATA


@compiled(**PART)
def strength_of(counts: Array, labels: Array, label: int) -> float:
    """The log likelihood ratio behind an alarm: of one label's bits, or of all sure bits against the least plateau."""
    if labels[label, EVIDENCE] > _ALARM or counts[SURE] == 0.0:
        return labels[label, EVIDENCE]
    seen = min(max(counts[SURE_ONES] / counts[SURE], 1e-6), 1.0 - 1e-6)
    held = min(max(counts[PLATEAU], 1e-6), 1.0 - 1e-6)
    return counts[SURE] * (seen * log(seen / held) + (1.0 - seen) * log((1.0 - seen) / (1.0 - held)))


@compiled(**STEP)
def start_anew(counts: Array, labels: Array, kind: float) -> None:
    """After an alarm: bits count from now on; sure ones, if the noise has changed, from where the evidence began."""
    counts[SINCE] = 0.0
    if kind == NOISE:
        counts[JUMPS] += 1.0
        counts[SURE] = counts[SURE_ONES] = counts[HEARD] = counts[ONES] = 0.0
        fade(counts, labels, _KEPT[0] / max(counts[DOUBTFUL], _KEPT[0]), doubtful=True)
    else:
        counts[RESTARTS] += 1.0
        counts[GUESS] *= 0.5 if counts[AT_LEAST] > 0.0 else 1.0
        kept = 0.0 if counts[AT_LEAST] > 0.0 else _KEPT[1]
        fade(counts, labels, kept / max(counts[SURE], 1.0, kept), doubtful=False)
    for r in range(labels.shape[0]):
        mine = labels[r]
        if kind == NOISE:
            mine[SURE], mine[SURE_ONES] = mine[SUSPECT], mine[SUSPECT_ONES]
            counts[SURE] += mine[SURE]
            counts[SURE_ONES] += mine[SURE_ONES]
        mine[EVIDENCE] = mine[SUSPECT] = mine[SUSPECT_ONES] = mine[BEFORE] = 0.0
    counts[TOTAL] = 0.0


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
    if min(np.delete(counts, TOTAL).min(), labels[:, :BEFORE].min()) < 0.0:
        return "a count is negative"
    parts = ((DOUBTFUL, DOUBTFUL_ONES), (DOUBTFUL, DOUBTFUL_RIGHT), (SURE, SURE_ONES))
    if any((each[..., part] > each[..., total] + 1e-6).any() for each in (counts, labels) for total, part in parts):
        return "a count is larger than the one it is part of"
    rates = 0.0 <= counts[RHO0] < counts[PLATEAU] <= 1.0 and counts[GUESS] <= 1.0
    bits = counts[FORGOT] <= counts[LEARNT] and counts[ONES] <= counts[HEARD] <= counts[LEARNT]
    return "" if rates and bits else "its counts are not those of its parameters"
