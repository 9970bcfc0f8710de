"""How a model's true accuracy went: a few hundred points, from its first day to now."""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

import msgspec

_STEP = 2.0  # seconds between two points, at first
_MOST = 400  # points of a whole life; when there are more, every second one goes
_LATEST = 300  # points that are never thinned


class Point(NamedTuple):
    """What was known at a time."""

    time: float
    """Seconds since 1970."""
    accuracy: float | None
    """How often the label that was played is right, of the last few thousand bits; null if it was not identified."""
    low: float | None
    high: float | None
    """Its 95 % interval."""
    bit: float | None
    """The mean of the same bits."""


class Past(msgspec.Struct):
    """Answer of `history`."""

    life: list[Point]
    """From the first day, thinned so that there are never more than a few hundred."""
    latest: list[Point]
    """The last ten minutes, since the server's start."""


class History:
    """Points in time, in constant memory."""

    def __init__(self) -> None:
        self._step = _STEP
        self._life: list[Point] = []
        self._latest: deque[Point] = deque(maxlen=_LATEST)

    def is_due(self, now: float) -> bool:
        """Whether it is time for another point."""
        return not self._latest or not 0 <= now - self._latest[-1].time < _STEP

    def add(self, point: Point) -> None:
        """Another point."""
        self._latest.append(point)
        if self._life and 0 <= point.time - self._life[-1].time < self._step:
            return
        self._life.append(point)
        if len(self._life) > _MOST:
            self._life, self._step = self._life[::2], 2.0 * self._step

    def past(self) -> Past:
        """All of it."""
        return Past(self._life, list(self._latest))

    def plain(self) -> dict[str, Any]:
        """Plain values, fit for JSON."""
        return {"step": self._step, "life": [list(point) for point in self._life]}

    def restore(self, plain: dict[str, Any]) -> None:
        """Take in what `plain` gave."""
        self._step, self._life = plain["step"], [Point(*each) for each in plain["life"]]
