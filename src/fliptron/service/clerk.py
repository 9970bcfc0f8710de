"""Who writes: one thread that commits what has gathered, together, and tells the event loop in the same order."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Any

from fliptron.service.messages import Refusal
from fliptron.service.store import Entry, Outcome, Store, StoreError

Done = Callable[[list[Any]], object]
"""Called in the event loop with the entries' outcomes, after they are durable."""
Failed = Callable[[Exception], object]
"""Called in the event loop when entries were not written."""
_log = logging.getLogger("fliptron.service")
_Order = tuple[Sequence[Entry], Done, Failed, int]
MOST = 512
"""Entries in one transaction, about."""


class Clerk:
    """Commits entries in groups. Outcomes come in the order of `submit`; if a group fails, all behind it fail too.

    That is what lets the owner of a model go on deciding before the last decision is durable: what was decided on top
    of something that was not written is not written either, and `on_failure` puts the owner back to the last commit.

    Parameters
    ----------
    store
        Where to write.
    on_failure
        Called in the event loop once per failure, before any of the failed entries is told.
    most
        Entries that may wait; more are refused.
    """

    def __init__(self, store: Store, on_failure: Callable[[], object], most: int = 10_000) -> None:
        self.store, self._on_failure, self._most = store, on_failure, most
        self.waiting = 0
        """Entries that are not durable yet."""
        self.broken = False
        """Whether what was written could not be taken in: only a new start helps, which reads the journal."""
        self.commits = 0
        self.failures = 0
        self._loop = asyncio.get_running_loop()
        self._queue: SimpleQueue[_Order | None] = SimpleQueue()
        self._generation = 0
        self._thread = threading.Thread(target=self._work, name="fliptron-clerk", daemon=True)
        self._thread.start()

    def room(self, entries: int = 1) -> None:
        """Refuse if so many more entries would be too many."""
        if self.broken:
            raise Refusal(503, "the service is in disorder and must be started anew; its log says why")
        if self.waiting + entries > self._most:
            raise Refusal(503, "the journal is behind: too many requests wait for the disk; try again in a second")

    def submit(self, entries: Sequence[Entry], done: Done, failed: Failed) -> None:
        """Write entries soon, all in one transaction."""
        self.waiting += len(entries)
        self._queue.put((entries, done, failed, self._generation))

    async def close(self) -> None:
        """Write what waits, and end."""
        self._queue.put(None)
        await asyncio.to_thread(self._thread.join)

    def _work(self) -> None:
        queue, refused = self._queue, -1
        over = False
        while not over:
            orders: list[_Order] = []
            size = 0
            order = queue.get()
            while True:
                if order is None:
                    over = True
                    break
                orders.append(order)
                size += len(order[0])
                if size >= MOST or queue.empty():
                    break
                order = queue.get()
            stale = [order for order in orders if order[3] <= refused]
            fresh = [order for order in orders if order[3] > refused]
            if stale:
                self._tell(self._failed, stale, StoreError("what came before it could not be written; try again"))
            if not fresh:
                continue
            try:
                outcomes = self.store.write([entry for order in fresh for entry in order[0]])
            except Exception as error:
                refused = fresh[-1][3]
                self._tell(self._failed, fresh, error)
            else:
                self._tell(self._written, fresh, outcomes)

    def _tell(self, what: Callable[..., None], orders: Sequence[_Order], told: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(what, orders, told)
        except RuntimeError:  # the loop is closed: nobody is left to be told
            return

    def _written(self, orders: Sequence[_Order], outcomes: list[Outcome]) -> None:
        self.commits += 1
        start = 0
        for entries, done, failed, _ in orders:
            stop = start + len(entries)
            self.waiting -= len(entries)
            try:
                done(outcomes[start:stop])
            except Exception as error:  # ours: memory and journal may differ from here on
                self.broken = True
                _log.exception("what was written could not be taken in; nothing is answered until a restart")
                failed(error)
            start = stop

    def _failed(self, orders: Sequence[_Order], error: Exception) -> None:
        self.waiting -= sum(len(order[0]) for order in orders)
        self.failures += 1
        if orders[-1][3] == self._generation:
            self._generation += 1
            self._on_failure()
        for _, _, failed, _ in orders:
            failed(error)
