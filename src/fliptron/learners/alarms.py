"""When what was learnt no longer holds: three kinds of alarms, raised by the bits of sure labels.

An alarm is raised when a label of which the learner is sure is right at most half as often as it should be. The
evidence is a cumulated sum of log likelihood ratios.

- If the other labels disappoint too, and what is left is above chance, the **noise** has changed: the rates are counted
  anew. As long as the bits behind the alarm do not say whether it is, and the evidence is not overwhelming, the alarm
  waits for more.
- Otherwise the **data** has changed, or the label was learnt wrongly: the weights start anew. One label alone needs
  twice the evidence. They also start anew when sure labels turn out to be no better than chance; uniform play goes on
  as long as that is open.
- A label may be **lost**: it is never the best, since another one stands in for it, and is right half of the time.
  Flips that depend on the label would explain the bits of the one that stands in just as well, so its own rates never
  show it. Here it is judged by what the best label earns instead. This is done only while few labels are never the
  best: of many, most are rare, or not learnt as yet. The weights of both start anew. Where the one that stands in seems
  right more often than half, ρ0 may be guessed too low, and uniform play goes on until that is known better. Each such
  alarm asks for four times the evidence of the last: a label may be missing because it is rare.

Without an alarm, a label may have been **overlooked**. While little was known, other labels took the credit for a few
flipped bits, and since then several of them share its rounds. Nothing stands in for it and nothing disappoints. But
there are rounds of which nothing is sure, and hardly a round of which it is sure that this label is right. Such labels
begin anew if more rounds are doubtful than they would fill. That is asked when the bits have told what makes the
learner sure of something, and again whenever four times as many have come (with a half-life: after four of these at the
latest). Labels that are never right leave no rounds doubtful, and stay as they are; unless others overlap, and then it
costs little.
"""

from __future__ import annotations

from math import log, sqrt
from typing import NamedTuple

from fliptron.arrays import Array
from fliptron.kernels.compiling import PART, STEP, compiled
from fliptron.learners.channel import (
    ABOVE,
    AT_LEAST,
    BEFORE,
    BEST,
    DOUBTFUL,
    EVIDENCE,
    GUESS,
    HEARD,
    HELD,
    JUMPS,
    LEARNT,
    LED,
    LOSSES,
    MEMORY,
    NEXT,
    ONES,
    OPEN,
    PLATEAU,
    PLAYED,
    RESTARTS,
    RHO0,
    SINCE,
    STANDS_IN,
    STOOD,
    STOOD_ONES,
    SURE,
    SURE_ONES,
    SUSPECT,
    SUSPECT_ONES,
    TOLD,
    TOTAL,
    WAITING,
    fade,
    informed,
    note,
    rates_for,
    settle_rates,
)

NO_ALARM, DATA, NOISE, LOST = 0.0, 1.0, 2.0, 3.0
"""What an alarm says: that the data or the noise has changed, or that a label was lost."""
KINDS = {DATA: "data", NOISE: "noise", LOST: "lost"}

_ALARM = 4.0  # log t more is asked for: false alarms stay rare at any horizon
_POOR = 0.55  # of β above ρ0: a label that stays above that alone is no reason for an alarm
_UNCLEAR, _PATIENCE = 3.0, 5.0  # standard deviations that leave open what has changed; times the evidence that end that
_HALF = 0.6  # the same of a label that plays for another: half, and what the doubt in ρ0 leaves open
_ABSENT = 10.0  # bits per label without being the best, before which no label is looked for
_FEW = 0.25  # of all labels may be absent
_KEPT = 5.0, 20.0  # doubtful bits that outlive a change of the noise; sure ones that outlive one of the data
_AGAIN = 4.0  # times the evidence, for the next label that seems lost, or the rounds until the next look
_NEXT_TO_NONE = 0.1  # of a fair share; up to 0.5 errors were about the same
_ROOM = 1.5  # doubtful rounds for each round of a fair share that overlooked labels would fill


class Alarm(NamedTuple):
    """A label of which the learner was sure has disappointed it."""

    round: int
    """How many bits had been learnt from."""
    kind: str
    """What has changed: "noise" (rates are counted anew) or "data" (weights start anew). Or "lost": a label was never
    played, another stood in for it, and the weights of both start anew."""
    strength: float
    """The log likelihood ratio against what the learner believed."""


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
    """Count a bit of a label held right with probability q, the best one with `surest`. Whether it raises an alarm."""
    alarm = NO_ALARM
    if note(counts, labels, uniform, label, best, q, surest, known, feedback):
        alarm = _suspect(counts, labels, label, q, feedback)
        if alarm == NO_ALARM and counts[TOLD] == 0.0 and _few_are_absent(counts, labels):
            alarm = _stand_in(counts, labels, label, q, feedback)
    if counts[TOLD] == 0.0 and not settle_rates(counts, labels.shape[0]):
        alarm = DATA
    return alarm


@compiled(**PART)
def _against(rho0: float, beta: float, q: float, feedback: int) -> float:
    """The log likelihood ratio of a bit, for a label that is right half as often as q says against one that is not."""
    good = min(max(rho0 + beta * q, 0.002), 0.99)
    bad = min(max(rho0 + 0.5 * beta * q, 0.001), 0.99)
    return log(bad / good) if feedback else log((1.0 - bad) / (1.0 - good))


@compiled(**PART)
def _suspect(counts: Array, labels: Array, label: int, q: float, feedback: int) -> float:
    """Add a bit of a sure label to the evidence that it is right half as often as it should be."""
    mine = labels[label]
    rho0, beta = rates_for(counts, labels, label)
    told = _against(rho0, beta, q, feedback)
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
    if others <= 0.0:
        return DATA
    return _noise_or_data(counts, labels, rho0, beta, mine[EVIDENCE] > _PATIENCE * enough)


@compiled(**PART)
def _noise_or_data(counts: Array, labels: Array, rho0: float, beta: float, overwhelming: bool) -> float:
    """What has changed, by the bits of all labels that disappoint; no alarm as yet where they leave it open."""
    bits = ones = 0.0
    for r in range(labels.shape[0]):
        bits += labels[r, SUSPECT]
        ones += labels[r, SUSPECT_ONES]
    level = rho0 + min(0.5 * (1.0 / labels.shape[0] + ABOVE), ABOVE) * beta  # halfway from chance to well above it
    lead, doubt = ones - level * bits, sqrt(level * (1.0 - level) * bits)
    if abs(lead) <= _UNCLEAR * doubt and not overwhelming:
        return NO_ALARM
    if lead > 0.0:
        return NOISE if counts[TOLD] == 0.0 else NO_ALARM  # rates that were told stay
    return DATA


@compiled(**PART)
def _stand_in(counts: Array, labels: Array, label: int, q: float, feedback: int) -> float:
    """Add a bit of a sure label to the evidence that it plays for another that was lost, by what the best one earns."""
    mine, rho0, common, K = labels[label], counts[RHO0], counts[PLATEAU], labels.shape[0]
    plateau, luck = common, sqrt(2.0 * log(K) * common * (1.0 - common))  # of the luckiest of K labels that are alike
    for r in range(K):
        n = labels[r, SURE]
        plateau = max(plateau, (labels[r, SURE_ONES] + 1.0) / (n + 2.0) - luck / sqrt(n + 1.0))
    beta = plateau - rho0
    mine[STANDS_IN] += _against(rho0, beta, q, feedback)
    mine[STOOD] += 1.0
    mine[STOOD_ONES] += feedback
    if mine[STANDS_IN] <= 0.0:
        mine[STANDS_IN] = mine[STOOD] = mine[STOOD_ONES] = 0.0
        return NO_ALARM
    enough = 2.0 * (_ALARM + log(counts[LEARNT])) * _AGAIN ** counts[LOSSES]
    lost = False
    if mine[STANDS_IN] > enough:
        for r in range(labels.shape[0]):
            lost |= is_lost(counts, labels, r, label)
    if not lost:
        return NO_ALARM
    if mine[STOOD_ONES] <= (rho0 + _HALF * beta) * mine[STOOD]:
        return LOST
    counts[WAITING] = 1.0  # it is right more often, or ρ0 is guessed too low
    return NO_ALARM


@compiled(**PART)
def _few_are_absent(counts: Array, labels: Array) -> bool:
    """Whether some labels have not been the best for long, but only a few."""
    K, absent = labels.shape[0], 0
    for r in range(K):
        absent += counts[LEARNT] - labels[r, LED] > _ABSENT * K
    return 0 < absent <= max(_FEW * K, 1.0)


@compiled(**PART)
def some_are_overlooked(counts: Array, labels: Array) -> bool:
    """Whether it is time to look for labels that were overlooked, and more rounds are doubtful than they would fill."""
    K, since, found = labels.shape[0], counts[SINCE], 0
    if since < counts[NEXT] or informed(counts, since, K) < 1.0:
        return False
    counts[NEXT] = min(_AGAIN * since, since + _AGAIN * counts[MEMORY])
    for r in range(K):
        found += is_overlooked(counts, labels, r)
    return 0 < _ROOM * found < counts[OPEN] * K


@compiled(**PART)
def is_overlooked(counts: Array, labels: Array, r: int) -> bool:
    """Whether label r has next to none of the rounds in which it is sure of the best label."""
    return labels[r, BEST] * labels.shape[0] < _NEXT_TO_NONE * counts[HELD]


@compiled(**STEP)
def is_lost(counts: Array, labels: Array, r: int, label: int) -> bool:
    """Whether label r has not once been the best since the evidence began that another plays for it."""
    return r != label and counts[LEARNT] - labels[r, LED] > labels[label, STOOD]


@compiled(**PART)
def strength_of(counts: Array, labels: Array, label: int, kind: float) -> float:
    """The log likelihood ratio behind an alarm: of one label's bits, or of all sure bits against the least plateau."""
    if kind == LOST:
        return labels[label, STANDS_IN]
    if labels[label, EVIDENCE] > _ALARM or counts[SURE] == 0.0:
        return labels[label, EVIDENCE]
    seen = min(max(counts[SURE_ONES] / counts[SURE], 1e-6), 1.0 - 1e-6)
    held = min(max(counts[PLATEAU], 1e-6), 1.0 - 1e-6)
    return counts[SURE] * (seen * log(seen / held) + (1.0 - seen) * log((1.0 - seen) / (1.0 - held)))


@compiled(**STEP)
def alarms_so_far(counts: Array) -> float:
    """How many alarms there were, of all kinds."""
    return counts[RESTARTS] + counts[JUMPS] + counts[LOSSES]


def last_alarms(counts: Array, alarms: Array) -> Array:
    """Round, kind and strength of the last alarms, in their order; a state keeps a few."""
    n, kept = int(alarms_so_far(counts)), len(alarms)
    return alarms[[i % kept for i in range(max(n - kept, 0), n)]]


def alarms_of(counts: Array, alarms: Array) -> list[Alarm]:
    """The same, as they are told."""
    return [Alarm(int(at), KINDS[kind], float(strength)) for at, kind, strength in last_alarms(counts, alarms)]


@compiled(**STEP)
def start_anew(counts: Array, labels: Array, kind: float) -> None:
    """After an alarm: bits count from now on; sure ones, if the noise has changed, from where the evidence began."""
    counts[SINCE] = 0.0
    if kind == NOISE:
        counts[JUMPS] += 1.0
        counts[SURE] = counts[SURE_ONES] = counts[HEARD] = counts[ONES] = 0.0
        fade(counts, labels, _KEPT[0] / max(counts[DOUBTFUL], _KEPT[0]), doubtful=True)
    else:
        counts[RESTARTS if kind == DATA else LOSSES] += 1.0
        counts[GUESS] *= 0.5 if counts[AT_LEAST] > 0.0 else 1.0
        kept = 0.0 if counts[AT_LEAST] > 0.0 else _KEPT[1]
        fade(counts, labels, kept / max(counts[SURE], 1.0, kept), doubtful=False)
    for r in range(labels.shape[0]):
        mine = labels[r]
        if kind == NOISE:
            mine[SURE], mine[SURE_ONES] = mine[SUSPECT], mine[SUSPECT_ONES]
            counts[SURE] += mine[SURE]
            counts[SURE_ONES] += mine[SURE_ONES]
            mine[PLAYED] = 0.0
        mine[EVIDENCE] = mine[SUSPECT] = mine[SUSPECT_ONES] = mine[BEFORE] = 0.0
        mine[STANDS_IN] = mine[STOOD] = mine[STOOD_ONES] = 0.0
    counts[TOTAL] = counts[WAITING] = counts[NEXT] = 0.0
