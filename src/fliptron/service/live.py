"""What the page shows of a model, once per second: the object that `live` streams and `estimate` answers in part."""

from __future__ import annotations

import time
from math import sqrt
from typing import Any

import msgspec

from fliptron.learners.fliptron import Fliptron
from fliptron.noise.estimate import BETA_FLOOR, Z95, Estimate
from fliptron.service.desk import Desk
from fliptron.service.history import Point

_FEWEST = 200  # bits without which nothing is said of the last few


class Number(msgspec.Struct):
    """A value with a 95 % interval; the value is null where it is not identified, the interval still holds."""

    value: float | None
    low: float
    high: float


class Noise(msgspec.Struct):
    """Answer of `estimate`: what is known of the noise, and the accuracy behind the bits."""

    verdict: str
    """"identified", "weakly identified" or "not identified"."""
    reason: str
    """Why, in a sentence."""
    rho0: Number | None
    """P(bit 1 | label wrong), as seen at the end of the wait; null if the learner does not estimate it."""
    rho1: Number | None
    """P(bit 0 | label right)."""
    beta: Number | None
    """1 − ρ0 − ρ1."""
    accuracy: Number | None
    """How often the label that was played is right."""
    greedy_accuracy: Number | None
    """How often the label thought best is right."""
    recent: Number | None
    """`accuracy` of the last few thousand bits alone; null where it is not identified."""
    recent_bit: float | None
    """The mean of those bits."""
    recent_bits: int
    """How many they are."""
    in_time: float | None
    """F, the share of ones that come within the wait: the rates above are ρ0·F and 1 − (1−ρ1)·F of what they would be
    without a deadline. Null before the first one, 1 if feedback is never late."""
    rounds: int
    """Bits that were learnt."""


class Alarm(msgspec.Struct):
    """The world seems to have changed."""

    round: int
    """After so many bits."""
    kind: str
    """What has changed, "noise" or "data"; or that a label was "lost"."""
    strength: float


class Source(msgspec.Struct):
    """A source of feedback that is in quarantine, or among the most suspicious."""

    source: str
    bits: int
    """How many of its bits were judged."""
    evidence: float
    """Against it: 0 nothing, 1 enough for quarantine."""
    quarantined: bool
    since: float | None
    reason: str | None


class Share(msgspec.Struct):
    """How often a label was played, of the last few thousand decisions."""

    label: Any
    share: float


class Live(msgspec.Struct):
    """One second of a model's life, as server-sent event `data:` (JSON)."""

    time: float
    """Seconds since 1970."""
    model: str
    learner: str
    version: int
    """How many bits and audits were learnt."""
    decisions: int
    """In total; so are feedback, late, duplicates, unusable and audits."""
    feedback: int
    late: int
    duplicates: int
    unusable: int
    """Bits from sources in quarantine; where silence is a bit, their silence too."""
    audits: int
    decisions_per_second: float
    feedback_per_second: float
    mean_bit: float | None
    """Of all bits learnt: the number that everybody else calls accuracy."""
    noise: Noise
    exploration: float
    """Share of recent decisions that did not play the label thought best."""
    delay: dict[str, float | None]
    """Seconds until the bit comes, "p50", "p90" and "p99"; null before the first."""
    silence: str
    """"ignore" or "negative"."""
    wait: float | None
    """Seconds; null: for ever."""
    apprentice: bool
    agreement: float | None
    """Of an apprentice: how often it would have played the caller's label."""
    alarms: list[Alarm]
    """The last 32, the oldest first."""
    sources: list[Source]
    labels: list[Share]
    waiting: int
    """Entries that wait for the disk."""
    journal: dict[str, int]
    """Bytes of the journal's parts."""


def noise_of(desk: Desk) -> Noise:
    """What is known of a model's noise now."""
    found = desk.estimate()
    in_time = desk.ledger.in_time() if desk.settings.wait is not None else 1.0
    learnt = desk.ledger.totals["learnt"]
    count, mean = desk.ledger.bits()
    if found is None:
        kind = type(desk.learner).__name__
        reason = f"a {kind} does not estimate the noise; a Fliptron does, or `fliptron estimate` on the export"
        return Noise("not identified", reason, None, None, None, None, None, None, mean, count, in_time, learnt)
    known = found.verdict != "not identified"
    rates = {"rho0": found.rates.rho0, "rho1": found.rates.rho1, "beta": found.beta}
    numbers = {name: _number(found, name, value if known else None) for name, value in rates.items()}
    for name in ("accuracy", "greedy_accuracy"):
        numbers[name] = _number(found, name, getattr(found, name))
    recent = _recent(found, mean, count) if known and mean is not None and count >= _FEWEST else None
    told = {"recent": recent, "recent_bit": mean, "recent_bits": count}
    return Noise(found.verdict, found.reason, **numbers, **told, in_time=in_time, rounds=learnt)  # type: ignore[arg-type]


def _recent(found: Estimate, mean: float, count: int) -> Number:
    """The accuracy of the last bits: that of all, and how far the mean bit has moved since, seen through β.

    The doubts of both and of the last bits themselves are added as squares.
    """
    assert found.accuracy is not None
    moved, (low, high) = mean - found.details["mean_bit"], found.intervals["accuracy"]
    shifts = [moved / max(beta, BETA_FLOOR) for beta in (found.beta, *found.intervals["beta"])]
    centre = (count * mean + 2) / (count + 4)  # Agresti and Coull's, as for every mean
    doubt = max(abs(shift - shifts[0]) for shift in shifts) ** 2
    doubt += Z95**2 * centre * (1 - centre) / (count + 4) / found.beta**2
    value = found.accuracy + shifts[0]
    down, up = sqrt(doubt + (found.accuracy - low) ** 2), sqrt(doubt + (high - found.accuracy) ** 2)
    return Number(*(min(max(each, 0.0), 1.0) for each in (value, value - down, value + up)))


def point_of(desk: Desk, now: float) -> Point:
    """What the history keeps of a model's noise."""
    noise = noise_of(desk)
    found = noise.recent
    if found is None:
        return Point(now, None, None, None, noise.recent_bit)
    return Point(now, found.value, found.low, found.high, noise.recent_bit)


def live_of(desk: Desk, waiting: int, journal: dict[str, int]) -> Live:
    """One second of a model's life."""
    totals, ledger = desk.ledger.totals, desk.ledger
    per_second = ledger.per_second
    alarms = desk.learner.alarms if isinstance(desk.learner, Fliptron) else []
    apprentice = desk.settings.apprentice
    return Live(
        time=time.time(),
        model=desk.name,
        learner=type(desk.learner).__name__,
        version=desk.version,
        decisions=totals["decisions"],
        feedback=totals["feedback"],
        late=totals["late"],
        duplicates=totals["duplicate"],
        unusable=totals["unusable"],
        audits=totals["audits"],
        decisions_per_second=per_second["decisions"],
        feedback_per_second=per_second["feedback"],
        mean_bit=totals["learnt_ones"] / totals["learnt"] if totals["learnt"] else None,
        noise=noise_of(desk),
        exploration=ledger.explored(),
        delay={name: ledger.delay(share) for name, share in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99))},
        silence=desk.settings.silence,
        wait=desk.settings.wait,
        apprentice=apprentice,
        agreement=1.0 - ledger.explored() if apprentice else None,
        alarms=[Alarm(*each) for each in alarms],
        sources=[Source(**each) for each in desk.sources.shown()],
        labels=[Share(label, share) for label, share in zip(desk.labels, ledger.shares(), strict=True)],
        waiting=waiting,
        journal=journal,
    )


def _number(found: Estimate, name: str, value: float | None) -> Number | None:
    if name not in found.intervals:
        return None if value is None else Number(value, 0.0, 1.0)
    low, high = found.intervals[name]
    return Number(value, low, high)
