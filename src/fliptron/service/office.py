"""All desks, the clerk who writes for them, and what must happen by the clock; one event loop owns it."""

from __future__ import annotations

import asyncio
import base64
import binascii
import logging
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from math import inf
from typing import Any

import numpy as np

from fliptron.service.clerk import Clerk, Done, Failed
from fliptron.service.desk import Desk
from fliptron.service.live import Live, live_of, point_of
from fliptron.service.messages import MOST_BATCH, Answer, Ask, AskMany, Feedback, Received, Refusal
from fliptron.service.store import Decided, Flag, Heard, Kept, Row, Settle, Store, Taken

_log = logging.getLogger("fliptron.service")
_OFTEN = 0.05  # seconds between two looks at the clock
_SETTLED = 200  # decisions whose deadlines are settled in one go
_QUIET = 60.0  # seconds after which a changed model is kept, however little has changed


class Office:
    """Everything that lives while the service runs. Make it, and call everything, in one event loop.

    Parameters
    ----------
    store
        Where everything is kept.
    desks
        The models, as the store has them.
    most
        Entries that may wait for the store.
    """

    def __init__(self, store: Store, desks: Iterable[Desk], most: int = 10_000) -> None:
        self.store = store
        self.desks = {desk.name: desk for desk in desks}
        self.clerk = Clerk(store, self._roll_back, most)
        self._clock = max((desk.time for desk in self.desks.values()), default=0.0)
        self._looked = time.monotonic()
        self._loop = asyncio.get_running_loop()
        self._watchers: dict[str, set[asyncio.Queue[Live | None]]] = {name: set() for name in self.desks}
        self._kept = self._second = time.monotonic()
        self._ticking = asyncio.create_task(self._tick())

    def now(self) -> float:
        """Seconds since 1970. Should the machine's clock be set back, also while we were away, it goes on from where it
        was: deadlines come in the order of decisions, and each of them passes."""
        looked = time.monotonic()
        self._clock = max(self._clock + looked - self._looked, time.time())
        self._looked = looked
        return self._clock

    async def decide(self, desk: Desk, ask: Ask) -> Answer:
        """Decide, and answer when it is durable."""
        if ask.key is not None:
            waits = self._known(desk, ask.key)
            if waits is not None:
                found: Answer = await asyncio.shield(waits)
                return found
        self.clerk.room()
        return (await self._submit(desk, [desk.ask(ask, self.now())]))[0]

    def _submit(self, desk: Desk, entries: list[Decided]) -> asyncio.Future[list[Answer]]:
        """Write decisions; the answers to all of them."""
        future: asyncio.Future[list[Answer]] = self._loop.create_future()
        keyed = {entry.key: self._loop.create_future() for entry in entries if entry.key is not None}
        if keyed:
            desk.pending.update(keyed)

        def done(outcomes: list[Taken]) -> None:
            answers = list(map(desk.taken, entries, outcomes))
            for entry, answer in zip(entries, answers, strict=True) if keyed else ():
                if entry.key is not None:
                    desk.pending.pop(entry.key, None)
                    keyed[entry.key].set_result(answer)
            if not future.done():  # the asker may have gone
                future.set_result(answers)

        def failed(error: Exception) -> None:
            for each in (future, *keyed.values()):
                _fail(each, error)

        self.clerk.submit(entries, done, failed)
        return future

    async def decide_many(self, desk: Desk, body: AskMany) -> list[Answer]:
        """Decide on many at once: all are durable, or none."""
        if (body.decisions is None) == (body.x is None):
            raise Refusal(422, "either decisions or x is expected, and not both")
        if body.x is None:
            asks = body.decisions or []
            _check_size(asks)
            self.clerk.room(len(asks))
            return await self._decide_all(desk, asks)
        rows = _rows(body.x, desk.learner.n_features)
        if desk.encoder is not None:
            raise Refusal(422, "the model has a schema; decisions with records are expected instead of x")
        self.clerk.room(len(rows))
        asked = [Ask([], source=body.source)] * len(rows)
        return await self._submit(desk, _all(desk, desk.ask_rows(rows, asked, self.now()), range(len(rows))))

    async def _decide_all(self, desk: Desk, asks: list[Ask]) -> list[Answer]:
        """All of them, or none: what one of them is refused for, all are."""
        fresh: list[int] = []  # which of them are to be decided on
        places: list[Any] = []  # of each answer: its place among those, or what to wait for
        keys: dict[str, Any] = {}
        for at, ask in enumerate(asks):
            key = ask.key
            found = keys.get(key) if key is not None else None
            if found is None and key is not None:
                found = self._known(desk, key)
            if found is None:
                found = len(fresh)
                fresh.append(at)
            places.append(found)
            if key is not None:
                keys[key] = found
        made = _all(desk, desk.ask_all([asks[at] for at in fresh], self.now()), fresh)
        answers = await self._submit(desk, made) if made else []
        return [answers[at] if type(at) is int else await asyncio.shield(at) for at in places]

    def _known(self, desk: Desk, key: str) -> Any:
        """What waits for the decision with a key, if there is one."""
        waits = desk.pending.get(key)
        if waits is None:
            before = self.store.find_key(desk.number, key)
            if before is not None:
                waits = self._loop.create_future()
                waits.set_result(desk.answer(before))
        return waits

    async def feedback(self, desk: Desk, feedback: Feedback) -> Received:
        """Take feedback, and answer when it is durable."""
        self.clerk.room()
        return (await self._take(desk, [desk.hear(feedback, self.now(), self.store.find)]))[0]

    def _take(self, desk: Desk, told: list[tuple[Heard, Row]]) -> asyncio.Future[list[Received]]:
        future: asyncio.Future[list[Received]] = self._loop.create_future()

        def done(outcomes: list[Kept]) -> None:
            for (entry, row), outcome in zip(told, outcomes, strict=True):
                desk.kept(entry, row, outcome, self.store.lessons)
            self._after(desk)
            if not future.done():
                future.set_result([Received(outcome.status) for outcome in outcomes])

        self.clerk.submit([entry for entry, _ in told], done, lambda error: _fail(future, error))
        return future

    async def feedback_many(self, desk: Desk, feedbacks: list[Feedback]) -> list[Received]:
        """Take many at once; an event that is not known does not keep the others back."""
        _check_size(feedbacks)
        self.clerk.room(len(feedbacks))
        now, known, found = self.now(), [], [Received("unknown") for _ in feedbacks]
        places = []
        for at, each in enumerate(feedbacks):
            try:
                known.append(desk.hear(each, now, self.store.find))
                places.append(at)
            except Refusal as refusal:
                if refusal.status != 404:
                    raise
        if known:
            for at, received in zip(places, await self._take(desk, known), strict=True):
                found[at] = received
        return found

    async def quarantine(self, desk: Desk, source: str, quarantined: bool, reason: str) -> None:
        """Put a source into quarantine, or let it out, and answer when it is durable."""
        self.clerk.room()
        written: asyncio.Future[None] = self._loop.create_future()
        flag = Flag(desk.number, source, quarantined, self.now(), reason)
        self._flag(desk, flag, lambda _: _succeed(written), lambda error: _fail(written, error))
        await written

    def _flag(self, desk: Desk, flag: Flag, done: Done, failed: Failed) -> None:
        """Write it, and take it in between the lessons that the journal has before and after it."""

        def written(outcomes: list[int]) -> None:
            flag.number = outcomes[0]
            desk.sources.flag(flag)
            done(outcomes)

        self.clerk.submit([flag], written, failed)

    def watch(self, desk: Desk) -> asyncio.Queue[Live | None]:
        """A queue that gets a `Live` every second, until `unwatch`; and None when the service stops."""
        queue: asyncio.Queue[Live | None] = asyncio.Queue(2)
        self._watchers[desk.name].add(queue)
        return queue

    def unwatch(self, desk: Desk, queue: asyncio.Queue[Live | None]) -> None:
        """No longer."""
        self._watchers[desk.name].discard(queue)

    def stop_watching(self) -> None:
        """Let all watchers go: a server waits for them when it stops."""
        for queue in [queue for queues in self._watchers.values() for queue in queues]:
            if queue.full():
                queue.get_nowait()
            queue.put_nowait(None)

    def live(self, desk: Desk) -> Live:
        """One second of a model's life."""
        return live_of(desk, self.clerk.waiting, self.store.size())

    async def lives(self) -> list[Live]:
        """That of all models, with time for others in between."""
        found = []
        for desk in self.desks.values():
            found.append(self.live(desk))
            await asyncio.sleep(0)
        return found

    async def close(self) -> None:
        """Write what waits, keep every model, and let go."""
        self._ticking.cancel()
        for desk in self.desks.values():
            if desk.is_changed:
                self._keep(desk)
        await self.clerk.close()
        await asyncio.sleep(0)  # what the clerk told last
        for desk in self.desks.values():
            if desk.is_changed and not self.clerk.broken:
                self.store.write([desk.snapshot()])
        self.store.close()

    # ------------------------------------------------------------------ by the clock

    async def _tick(self) -> None:
        troubled = False
        while True:
            await asyncio.sleep(_OFTEN)
            try:
                await self._look_at_the_clock()
                troubled = False
            except Exception:  # the next look may go well, and deadlines must not wait for a restart
                if not troubled:
                    _log.exception("what is due could not be done")
                troubled = True

    async def _look_at_the_clock(self) -> None:
        for desk in self.desks.values():
            self._settle(desk)
            self._after(desk)
        if time.monotonic() - self._kept > _QUIET:
            self._kept = time.monotonic()
            for desk in self.desks.values():
                if desk.is_changed:
                    self._keep(desk)
        if time.monotonic() - self._second >= 1.0:
            self._second = max(self._second + 1.0, time.monotonic() - 1.0)  # what was missed is not caught up with
            await self._show()

    async def _show(self) -> None:
        for name, queues in self._watchers.items():
            await asyncio.sleep(0)  # there may be a thousand models, and somebody who waits for an answer
            desk = self.desks[name]
            desk.ledger.tick()
            if desk.ledger.history.is_due(self.now()):
                desk.ledger.history.add(point_of(desk, self.now()))
            if not queues:
                continue
            live = self.live(desk)
            for queue in queues:
                if queue.full():  # a reader that is slow misses a second
                    queue.get_nowait()
                queue.put_nowait(live)

    def _settle(self, desk: Desk) -> None:
        """Where silence is an answer: learn decisions whose deadline has passed, in their order."""
        if desk.settings.silence != "negative" or desk.settling or desk.quiet_until > self.now():
            return
        rows = self.store.rows(desk.number, desk.settled, _SETTLED)
        now, due = self.now(), []
        for row in rows:
            if row.deadline > now and row.deadline < inf:
                desk.quiet_until = row.deadline
                break
            due.append(row)
        seqs = [row.seq for row in due if row.deadline < inf]
        if due and not seqs:
            desk.settled = due[-1].seq
        if not rows:
            desk.quiet_until = now + (desk.settings.wait or 0.0) / 2
        if not seqs:
            return
        desk.settling = True

        def done(outcomes: list[Any]) -> None:
            desk.settle(outcomes[0], self.store.lessons)
            desk.settled = max(desk.settled, seqs[-1])
            self._after(desk)

        def failed(error: Exception) -> None:
            desk.settling = False

        self.clerk.submit([Settle(desk.number, seqs)], done, failed)

    def _after(self, desk: Desk) -> None:
        """What learning may have made necessary: quarantine for a source, a snapshot."""
        while desk.sources.suspects:
            source = desk.sources.suspects.pop()
            flag = Flag(desk.number, source, True, self.now(), "its bits do not fit the channel")
            desk.sources.flag(flag)  # at once: its next bits are not learnt
            self._flag(desk, flag, _ignore, partial(self._again, desk, source))
        if desk.is_due:
            self._keep(desk)

    def _again(self, desk: Desk, source: str, _: Exception) -> None:
        """A quarantine was not written: the next look at the clock tries again."""
        desk.sources.suspects.append(source)

    def _keep(self, desk: Desk) -> None:
        if self.clerk.broken:  # what is in memory may not be what the journal tells
            return
        self.clerk.submit([desk.snapshot()], _ignore, _ignore)

    def _roll_back(self) -> None:
        for desk in self.desks.values():
            desk.roll_back()


def _all(desk: Desk, entries: Iterator[Decided], places: Sequence[int]) -> list[Decided]:
    """All of them, or none; a refusal says the place of the one that is refused."""
    made: list[Decided] = []
    try:
        for entry in entries:
            made.append(entry)
    except Refusal as refusal:
        desk.forget(len(made))
        raise Refusal(refusal.status, f"decision {places[len(made)]}: {refusal.message}") from None
    return made


def _rows(text: str, width: int) -> Any:
    try:
        content = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise Refusal(422, "x is not base64; float32 numbers, little-endian, in base64 are expected") from None
    if not content or len(content) % (4 * width):
        raise Refusal(422, f"x is {len(content)} bytes; whole rows of {width} float32 numbers are expected")
    rows = np.frombuffer(content, "<f4").astype(np.float32).reshape(-1, width)
    _check_size(rows)
    return rows


def _check_size(items: Any) -> None:
    if not 1 <= len(items) <= MOST_BATCH:
        raise Refusal(422, f"the list has {len(items)} entries; 1 to {MOST_BATCH} are expected")


def _fail(future: asyncio.Future[Any], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
        future.exception()  # whoever waits gets it; if nobody does, that is no fault


def _succeed(future: asyncio.Future[None]) -> None:
    if not future.done():  # whoever waits may have gone
        future.set_result(None)


def _ignore(_: Any) -> None:
    """Nobody waits for it."""
