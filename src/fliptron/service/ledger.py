"""What an operator sees of the traffic: totals, rates per second, labels' shares, delays, what comes in time."""

from __future__ import annotations

from collections import Counter
from math import log10
from typing import Any

from fliptron.service.history import History
from fliptron.service.store import Heard, Kept, Row

_PER_DECADE, _FASTEST, _DECADES = 10, -3, 10  # delays from a millisecond to months, in steps of a quarter
_RECENT = 2000  # decisions over which shares are counted, twice
_BITS = 4000  # bits over which the mean is taken, twice


class Ledger:
    """Counts of one model, kept in its snapshots.

    Parameters
    ----------
    n_classes
        How many labels.
    """

    def __init__(self, n_classes: int) -> None:
        self.totals: Counter[str] = Counter()
        """decisions, explored, feedback, accepted, duplicate, late, unusable, ones, late_ones, silent, audits, …"""
        self.delays = [0] * (_PER_DECADE * _DECADES)
        """How many bits came after so long, by size of the delay."""
        self._now, self._before = [0] * n_classes, [0] * n_classes
        self._explored = [0, 0]
        self._room = _RECENT  # decisions until the shares begin anew
        self._bits = [0, 0, 0, 0]  # how many, and ones among them, now and before
        self.history = History()
        """How the true accuracy went."""
        self._last: Counter[str] = Counter()
        self.per_second = {"decisions": 0.0, "feedback": 0.0}
        """In the last second."""

    def decided(self, row: Row, *, replayed: bool = False) -> None:
        """A decision is durable."""
        explored = row.label != row.greedy
        self.totals["decisions"] += 1
        self.totals["explored"] += explored
        if self._room == 0:
            self._before, self._now = self._now, [0] * len(self._now)
            self._explored, self._room = [0, self._explored[0]], _RECENT
        self._room -= 1
        self._now[row.label] += 1
        self._explored[0] += explored
        if replayed:
            self._last["decisions"] += 1

    def heard(self, entry: Heard, row: Row, outcome: Kept) -> None:
        """Feedback is durable, or was there before."""
        totals = self.totals
        totals["feedback"] += 1
        totals[outcome.status] += 1
        if outcome.status == "duplicate" or entry.verified:
            return
        totals["unusable"] += entry.learn and not entry.usable  # else it is counted at the deadline
        totals["ones"] += entry.bit
        if outcome.status == "late":
            totals["late_ones"] += entry.bit
        place = _FASTEST if entry.time <= row.time else log10(entry.time - row.time)
        at = int((place - _FASTEST) * _PER_DECADE)
        self.delays[min(max(at, 0), len(self.delays) - 1)] += 1

    def learnt(self, row: Row, bit: int) -> None:
        """A bit was learnt."""
        self.totals["learnt"] += 1
        self.totals["learnt_ones"] += bit
        if self._bits[0] >= _BITS:
            self._bits = [0, 0, *self._bits[:2]]
        self._bits[0] += 1
        self._bits[1] += bit

    def set_aside(self) -> None:
        """A deadline has passed, and what came, or silence, is not learnt: its source is in quarantine."""
        self.totals["unusable"] += 1

    def audited(self, right: int, heard: int | None) -> None:
        """An audit was learnt."""
        self.totals["audits"] += 1
        self.totals["audited_right"] += right

    def tick(self) -> None:
        """A second has passed."""
        self.per_second = {name: float(self.totals[name] - self._last[name]) for name in self.per_second}
        self._last = Counter(self.totals)

    def shares(self) -> list[float]:
        """How often each label was played, of the last few thousand decisions."""
        both = [a + b for a, b in zip(self._now, self._before, strict=True)]
        total = max(sum(both), 1)
        return [each / total for each in both]

    def explored(self) -> float:
        """The share of recent decisions that did not play the label thought best."""
        return sum(self._explored) / max(sum(self._now) + sum(self._before), 1)

    def bits(self) -> tuple[int, float | None]:
        """How many of the last few thousand bits there are, and their mean."""
        count, ones = self._bits[0] + self._bits[2], self._bits[1] + self._bits[3]
        return count, ones / count if count else None

    def delay(self, share: float) -> float | None:
        """The delay in seconds that so large a share of the bits does not exceed; None before the first."""
        total, seen = sum(self.delays), 0
        for at, count in enumerate(self.delays):
            seen += count
            if count and seen >= share * total:
                return float(10.0 ** (_FASTEST + (at + 1) / _PER_DECADE))
        return None

    def in_time(self) -> float | None:
        """F: the share of ones that came before the deadline; None before the first."""
        ones = self.totals["ones"]
        return 1.0 - self.totals["late_ones"] / ones if ones else None

    def plain(self) -> dict[str, Any]:
        """Plain values, fit for JSON."""
        return {"totals": dict(self.totals), "delays": self.delays, "now": self._now, "before": self._before,
                "explored": self._explored, "bits": self._bits, "history": self.history.plain()}  # fmt: skip

    def restore(self, plain: dict[str, Any]) -> None:
        """Take in what `plain` gave."""
        self.totals, self.delays, self._explored = Counter(plain["totals"]), plain["delays"], plain["explored"]
        self._now, self._before, self._bits = plain["now"], plain["before"], plain["bits"]
        self._room = _RECENT - sum(self._now)
        self.history.restore(plain["history"])
        self._last = Counter(self.totals)
