"""One of several processes that decide and take feedback: models are copies, and the store is shared."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from fliptron.policy import Policy
from fliptron.refusals import InputError
from fliptron.service.copies import Copy, Original
from fliptron.service.desk import Desk
from fliptron.service.messages import Feedback, Received, Refusal
from fliptron.service.office import Office
from fliptron.service.pupil import Pupil
from fliptron.service.settings import ModelSettings
from fliptron.service.snapshots import is_of_another_version, loaded
from fliptron.service.store import StoreError

if TYPE_CHECKING:
    from fliptron.service.postgres import Postgres

_OFTEN = 0.2  # seconds between two looks for a newer state
_log = logging.getLogger("fliptron.service")


class Seats:
    """What a process needs before it can answer: a pupil who stands for the office, and a copy of every model.

    Parameters
    ----------
    models
        What is served.
    store
        Shared with other processes.
    """

    def __init__(self, models: Iterable[ModelSettings], store: Postgres) -> None:
        self.store = store
        told = list(models)
        for each in told:  # what is compiled here need not be when an election was won
            number = store.open_model(each.name, b"{}").number
            original = Original(each, number, store.secret, each.build())
            original.rehearse()
            store.begin(original.snapshot())
            _renew(each, number, store)
        self.copies = [Copy.opened(each, store) for each in told]
        process = store.new_number()
        for copy in self.copies:
            copy.draw_as(process)
        self.pupil = Pupil(told, store.again())
        self.pupil.start()


def _renew(settings: ModelSettings, number: int, store: Postgres) -> None:
    """Where the last state is that of another version's learner, learn the journal anew, and keep that instead."""
    found = store.newest(number)
    if found is None:
        return
    _, kept = found
    try:
        loaded(kept.content)
    except InputError as error:
        if not is_of_another_version(kept.content):
            raise
        if not store.stand():
            why = "stop all servers of that version, and this one will learn the journal anew"
            raise InputError(f"model {settings.name!r}: {error}; or {why}") from None
        store.write([Original.relearnt(settings, number, store, kept).snapshot()])
        store.resign()


class Replica(Office):
    """An office whose models are copies. It answers while nobody learns; what it takes in is learnt later.

    Parameters
    ----------
    seats
        Copies and pupil; both end with the office.
    most
        Entries that may wait for the store.
    """

    def __init__(self, seats: Seats, most: int = 10_000) -> None:
        super().__init__(seats.store, seats.copies, most)
        self._shared, self._pupil, self._copies = seats.store, seats.pupil, seats.copies
        self._over = threading.Event()
        self._watching = threading.Thread(target=self._watch, name="fliptron-watch", daemon=True)
        self._watching.start()

    def _known(self, desk: Desk, key: str) -> Any:
        """What waits for the decision with a key here; one that was made elsewhere is found when ours is written."""
        return desk.pending.get(key)

    async def feedback(self, desk: Desk, feedback: Feedback) -> Received:
        """Take feedback, and answer when it is durable."""
        received = await super().feedback(desk, feedback)
        if received.status == "unknown":
            raise Refusal(404, "the event is not known; an event_id that `decide` gave is expected")
        return received

    def _settle(self, desk: Desk) -> None:
        """Whoever learns looks after deadlines."""

    async def close(self) -> None:
        """Write what waits, and let go."""
        self._over.set()
        await asyncio.to_thread(self._watching.join)
        await asyncio.to_thread(self._pupil.stop)
        await super().close()

    # ------------------------------------------------------------------ the thread that looks for newer states

    def _watch(self) -> None:
        seen: dict[int, int] = {}
        measured = 0.0
        while not self._over.wait(_OFTEN):
            try:
                for copy in self._copies:
                    self._renew(copy, seen)
                if time.monotonic() - measured > 5.0:
                    self._shared.measure()
                    measured = time.monotonic()
            except StoreError:  # it will be back, and until then the copies are good
                continue
            except Exception:
                _log.exception("a newer state could not be read")

    def _renew(self, copy: Copy, seen: dict[int, int]) -> None:
        found = self._shared.newest(copy.number, seen.get(copy.number, 0))
        if found is None:
            return
        number, kept = found
        seen[copy.number] = number
        policy, about = loaded(kept.content)
        (policy.learner if isinstance(policy, Policy) else policy).warm_up(sparse=copy._sparse)
        flags = self._shared.flagged(copy.number)
        self._loop.call_soon_threadsafe(copy.take_over, policy, about["service"], kept, flags)
