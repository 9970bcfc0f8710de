"""Who learns for all processes: a thread in each of them, of which the one that was elected does."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from fliptron.service.copies import Original
from fliptron.service.inbox import DUE, MADE, NOTED, Claimed, Lessons
from fliptron.service.settings import ModelSettings
from fliptron.service.store import AUDIT, BIT, Applied, Flag, Kept, Lesson, StoreError, settled

if TYPE_CHECKING:
    from fliptron.service.postgres import Postgres

OFTEN = 0.1
"""Seconds between two looks at the inbox, at least."""
WAITING = 0.25
"""Seconds between two looks at the office."""
MOST = 1000
"""Things that are taken in at once."""
_SPEED = 1e6  # bytes per second: how much of the database's log the states of a model may take up
_SLOWEST = 2.0  # seconds between two states, however large they are
_LONG = 0.2  # seconds that learning may take at once: whoever says nothing for longer is deposed
_log = logging.getLogger("fliptron.service")


class Pupil(threading.Thread):
    """Stands for the office again and again; while it holds it, takes in everything, and publishes every model.

    Parameters
    ----------
    models
        What is learnt; all processes should have the same.
    store
        A store of its own.
    """

    def __init__(self, models: Iterable[ModelSettings], store: Postgres) -> None:
        super().__init__(name="fliptron-pupil", daemon=True)
        self._models, self._store = list(models), store
        self._desks: list[Original] | None = None
        self._next: dict[str, float] = {}
        self._most, self._size = MOST, 0
        self._over = threading.Event()

    def stop(self) -> None:
        """Leave the office, and end."""
        self._over.set()
        if self.is_alive():
            self.join()
        self._store.close()

    def run(self) -> None:
        """Until told to stop."""
        troubled = False
        while not self._over.wait(self._pause()):
            try:
                self.step()
                troubled = False
            except Exception as error:  # the next election begins with the last state that was published
                self._desks = None
                self._store.resign()
                if not troubled:
                    _log.warning("learning stands still: %s", error, exc_info=not isinstance(error, StoreError))
                troubled = True

    def step(self) -> None:
        """Stand for the office; or, in office, take in what there is."""
        if self._store.epoch is None:
            self._desks = None
            if not self._store.stand():
                return
        if self._desks is None:
            self._desks = [Original.opened(each, self._store) for each in self._models]
            self._next = {}
        now = time.monotonic()
        due = [desk for desk in self._desks if self._next.get(desk.name, 0.0) <= now]
        if not due:
            self._store.speak()
        for desk in due:
            self._teach(desk)

    def _teach(self, desk: Original) -> None:
        for name, flag in self._store.flagged(desk.number).items():
            if desk.sources.knows(name) != flag:
                desk.sources.flag(flag)
        began = time.monotonic()
        count = self._store.teach(desk.number, self._most, partial(self.learn, desk))
        now, full = time.monotonic(), count == self._most
        wait = OFTEN
        if count:
            wait = 0.0 if full else min(max(OFTEN, self._size / _SPEED), _SLOWEST)
            self._most = max(10, min(MOST, int(_LONG * count / (now - began))))
        self._next[desk.name] = now + wait

    def learn(self, desk: Original, claimed: list[Claimed]) -> Lessons:
        """Take in what was claimed; all that comes of it is to be written together."""
        applied: list[Applied] = []
        waiting = []
        learnt: dict[int, int | None] = {}
        silent = desk.silence == "negative"
        for each in claimed:
            kind, row, heard = each.kind, each.row, each.heard
            if kind == MADE:
                desk.made(row)
                if silent and row.deadline < float("inf"):
                    waiting.append(row)
                continue
            if kind != DUE and heard is not None:
                heard.learn = heard.verified or not silent
                desk.ledger.heard(heard, row, Kept("late" if heard.late else "accepted"))
            in_time = heard is not None and heard.usable and not heard.late
            if kind == NOTED and (silent or not in_time):  # else it has waited for a deadline, and need not any more
                continue
            if kind == DUE and not (silent or in_time):  # silence counts no more
                continue
            if kind != AUDIT and (each.done or row.seq in learnt):  # by another rule for silence than the one now
                continue
            source, when, bit = (None, None, 0) if heard is None else (heard.source, heard.time, heard.bit)
            step = Applied(desk.position + 1, row.seq, AUDIT if kind == AUDIT else BIT, bit)
            if kind == DUE:
                quarantined = row.source is not None and desk.sources.is_quarantined(row.source)
                facts: list[Any] = [None] * 3 if heard is None else [heard.bit, heard.usable, heard.late]
                step.bit = settled(*[*facts, quarantined])
                source, when = (None, None) if heard is None or heard.late else (source, when)
            before = each.learnt if each.learnt is not None else learnt.get(row.seq)
            desk.learn(Lesson(step, row, before if kind == AUDIT else None, source, when))
            applied.append(step)
            if kind != AUDIT:
                learnt[row.seq] = step.bit
        flags: list[Any] = []
        while desk.sources.suspects:
            name = desk.sources.suspects.pop()
            flags.append(Flag(desk.number, name, True, time.time(), "its bits do not fit the channel"))
            desk.sources.flag(flags[-1])
        state = desk.snapshot()
        self._size = len(state.content)
        return Lessons(applied, waiting, [*flags, state])

    def _pause(self) -> float:
        """Seconds until the next look; none while there is more to take in."""
        if self._desks is None:
            return WAITING
        if not self._next:
            return OFTEN
        return max(0.0, min(OFTEN, min(self._next.values()) - time.monotonic()))
