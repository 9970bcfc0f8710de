"""The sole owner of a live model: it decides, and learns what the journal says, in the journal's order.

Everything here runs in one thread, that of the event loop. Deciding changes two things, the encoder's running means and
variances and the count of draws; learning changes the learner. So a model is equal to its last snapshot, the records
decided on since, and the lessons applied since: `Desk.opened` does exactly that, with the code that runs live.
"""

from __future__ import annotations

import logging
import struct
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from itertools import islice
from math import inf
from typing import Any, Self, cast

import msgspec
import numpy as np

from fliptron.arrays import Array
from fliptron.kernels import loop
from fliptron.kernels.compiling import entry
from fliptron.kernels.vectors import lead
from fliptron.learners.base import Learner
from fliptron.policy import Policy
from fliptron.refusals import InputError, named
from fliptron.service.ids import Names
from fliptron.service.messages import Answer, Ask, Feedback, Refusal
from fliptron.service.model import ServedModel
from fliptron.service.packing import pack, unpack
from fliptron.service.rows import decide_rows
from fliptron.service.settings import ModelSettings
from fliptron.service.snapshots import is_of_another_version, loaded, unlearnt
from fliptron.service.store import (
    AUDIT,
    BIT,
    Applied,
    Decided,
    Heard,
    Keep,
    Kept,
    Lesson,
    Row,
    Settle,
    Store,
    Taken,
)

_REMEMBERED = 20_000  # decisions whose feedback needs no look-up
_BATCH = 1000
_encode = msgspec.json.Encoder().encode
_log = logging.getLogger("fliptron.service")
_decode = msgspec.json.Decoder().decode


class Desk(ServedModel):
    """A model and all that belongs to it; `opened` makes one.

    Parameters
    ----------
    settings
        What the operator said.
    number
        The store's number of the model.
    secret
        The key of event ids.
    policy
        The model; or its learner alone, which takes the numbers of x as they are.
    """

    def __init__(self, settings: ModelSettings, number: int, secret: bytes, policy: Policy | Learner) -> None:
        super().__init__(settings, number, policy)
        self._names = Names(secret, number)
        self._numbers = {label: r for r, label in enumerate(self.labels)}
        self.settling = False
        self.quiet_until = 0.0
        """No deadline passes before."""
        self._recent: OrderedDict[int, Row] = OrderedDict()
        self.pending: dict[str, Any] = {}
        """Keys of decisions that are not durable yet, each with what waits for it."""
        self._waiting: deque[Array | None] = deque()  # of decisions that are not durable yet: the moments after each
        self._d = self.learner.n_features
        self._decide_rows: Callable[..., Any] | None = None
        self._floats = struct.Struct(f"{self._d}f")  # as NumPy rounds, in a quarter of the time

    # ------------------------------------------------------------------ deciding

    def ask(self, ask: Ask, now: float) -> Decided:
        """Decide. The entry must be written before anybody is told; then `taken` makes the answer."""
        eligible = None if ask.eligible is None else self._numbered(ask.eligible)
        baseline = self._baseline(ask.baseline, eligible)
        x, packed, record = self._encoded(ask.features)
        return self._entry(ask, eligible, baseline, x, packed, record, now)

    def ask_all(self, asks: list[Ask], now: float) -> Iterator[Decided]:
        """Decide on many, as `ask` would on each in turn."""
        plain = self.encoder is None and not self.settings.apprentice and len(asks) > 1
        if plain and all(ask.eligible is None and ask.baseline is None and type(ask.features) is list for ask in asks):
            try:
                packed = [self._floats.pack(*ask.features) for ask in asks]
            except struct.error:  # which of them has too many, or too few, is found one by one
                yield from (self.ask(ask, now) for ask in asks)
            else:
                rows = np.frombuffer(b"".join(packed), np.float32).reshape(len(asks), self._d)
                yield from self.ask_rows(rows, asks, now)
        else:
            yield from (self.ask(ask, now) for ask in asks)

    def ask_rows(self, rows: Array, asks: list[Ask], now: float) -> Iterator[Decided]:
        """Decide on rows of float32; what they are asked besides is in `asks`."""
        baseline, found, learner = self._baseline(None, None), np.empty((len(rows), 4)), self.learner
        try:
            self._rows_step()(learner.state, learner.turn, learner.key, rows, self._wide(rows[0]), found)
        except loop.NotNowError:  # which of them is not let in is found one by one
            self.undo()
            for x, ask in zip(rows, asks, strict=True):
                yield self._entry(ask, None, baseline, self._wide(x), x.tobytes(), None, now)
        else:
            for x, ask, (label, greedy, chance, margin) in zip(rows, asks, found.tolist(), strict=True):
                yield self._made(ask, None, int(label), int(greedy), chance, margin, x.tobytes(), None, now)

    def _entry(
        self,
        ask: Ask,
        eligible: list[int] | None,
        baseline: int | None,
        x: Any,
        packed: bytes,
        record: bytes | None,
        now: float,
    ) -> Decided:
        try:
            label, greedy, probability = self.learner.decide(x, eligible)
        except InputError as error:
            self.undo()
            raise Refusal(422, str(error)) from None
        if baseline is not None:
            label, probability = baseline, 1.0
        margin = float(lead(self.learner.state.scores, greedy)) if eligible is None else None
        return self._made(ask, eligible, label, greedy, probability, margin, packed, record, now)

    def _made(
        self,
        ask: Ask,
        eligible: list[int] | None,
        label: int,
        greedy: int,
        probability: float,
        margin: float | None,
        packed: bytes,
        record: bytes | None,
        now: float,
    ) -> Decided:
        wait = self.settings.wait
        if wait is not None:
            self._deadline = max(self._deadline, now + wait)  # decisions are settled in their order
        entry = Decided(
            self.number, self.version, now, inf if wait is None else self._deadline, label, greedy, probability, packed,
            margin, None if eligible is None else np.array(eligible, np.int32).tobytes(), record, ask.source, ask.key,
        )  # fmt: skip
        self._waiting.append(None if self.encoder is None else self.encoder.moments.copy())
        return entry

    def taken(self, entry: Decided, outcome: Taken) -> Answer:
        """A decision is durable: remember it, and answer."""
        moments = self._waiting.popleft()
        if outcome.before is not None:  # somebody else's key: the journal's decision is the one
            return self.answer(outcome.before)
        seq, self.time = outcome.seq, entry.time
        self.seq = seq
        self._decided, self._moments = self._decided + 1, moments
        row = Row(
            entry.model, entry.version, entry.time, entry.deadline, entry.label, entry.greedy, entry.probability,
            entry.x, entry.margin, entry.eligible, None, entry.source, entry.key, seq,
        )  # fmt: skip
        self._recent[seq] = row
        if len(self._recent) > _REMEMBERED:
            self._recent.popitem(last=False)
        self.ledger.decided(row)
        self._since += 1
        return self.answer(row)

    def answer(self, row: Row) -> Answer:
        """What the asker gets to know of a decision."""
        return Answer(
            self._names.of(row.seq), self.labels[row.label], self.labels[row.greedy], row.probability, row.version
        )

    def undo(self) -> None:
        """Back to the last decision that will be written: one that was refused has drawn nothing and taught nothing."""
        self.learner.turn[loop.DECIDED] = self._decided + len(self._waiting)
        if self.encoder is not None:
            self.encoder.moments[:] = self._waiting[-1] if self._waiting else self._moments

    def forget(self, count: int) -> None:
        """The last decisions, so many, will not be written."""
        for _ in range(count):
            self._waiting.pop()
        self.undo()

    def roll_back(self) -> None:
        """Back to the last decision that is durable: whatever waited was not written."""
        self.pending.clear()
        self._waiting.clear()
        self.settling = False
        self.undo()

    def _encoded(self, features: Any) -> tuple[Any, bytes, bytes | None]:
        """x as learnt from, its bytes, and the record as JSON."""
        if self.encoder is None:
            if type(features) is not list:
                raise Refusal(422, f"features are names and values; the model has no schema: {self._d} numbers are due")
            try:
                packed = self._floats.pack(*features)
            except struct.error:
                raise Refusal(422, f"features are {len(features)} numbers; {self._d} are expected") from None
            return self._wide(np.frombuffer(packed, np.float32)), packed, None
        if type(features) is not dict:
            raise Refusal(422, "features are a list; the model has a schema: an object of names and values is due")
        try:
            self.encoder.recognise(features)
            x = self.encoder.encode(features)
        except InputError as error:
            self.undo()
            raise Refusal(422, str(error)) from None
        return *pack(x, self.learner.dtype), _encode(features)

    def _wide(self, x: Array) -> Array:
        return x.astype(self.learner._dtype)

    def _rows_step(self) -> Callable[..., Any]:
        if self._decide_rows is None:
            learner, X, out = self.learner, np.zeros((1, self._d), np.float32), np.empty((1, 4))
            learner.warm_up(sparse=False)
            key, x = np.uint64(learner.key), self._wide(X[0])
            self._decide_rows = entry(decide_rows, learner.state, learner.turn, key, X, x, out)
        return self._decide_rows

    def _baseline(self, label: Any, eligible: list[int] | None) -> int | None:
        if not self.settings.apprentice:
            if label is not None:
                raise Refusal(422, "baseline is given, but the model is no apprentice; leave it out")
            return None
        if label is None:
            raise Refusal(422, "the model is an apprentice; the label that you play is expected as baseline")
        (number,) = self._numbered([label], "baseline")
        if eligible is not None and number not in eligible:
            raise Refusal(422, f"baseline is {label!r}, which is not eligible")
        return number

    def _numbered(self, labels: list[Any], what: str = "eligible") -> list[int]:
        found = [self._numbers.get(label, -1) for label in labels]
        if not found or min(found) < 0:
            odd = f"holds {labels[found.index(-1)]!r}" if found else "is empty"
            raise Refusal(422, f"{what} {odd}; labels of the model are expected: {named(self.labels)}")
        return found

    # ------------------------------------------------------------------ hearing

    def hear(self, feedback: Feedback, now: float, find: Any) -> tuple[Heard, Row]:
        """Feedback as an entry, and the decision that it is about; `find` looks one up in the store."""
        seq = self._names.seq(feedback.event_id)
        row = None if seq is None else self._recent.get(seq) or find(self.number, seq)
        if row is None:
            raise Refusal(404, "the event is not known; an event_id that `decide` gave is expected")
        source = feedback.source or row.source
        usable = feedback.verified or source is None or not self.sources.is_quarantined(source)
        at_once = feedback.verified or self.silence == "ignore"
        entry = Heard(
            self.number, row.seq, now, feedback.bit, source, feedback.verified, now > row.deadline, usable, at_once
        )
        return entry, row

    def kept(self, entry: Heard, row: Row, outcome: Kept, lessons: Callable[[int, int], Iterator[Lesson]]) -> None:
        """Feedback is durable: count it, and learn if it is time; `lessons` reads the store."""
        self.ledger.heard(entry, row, outcome)
        if outcome.position is None:
            return
        if entry.verified:  # rare, and what was learnt before it is in the journal
            self.learn(next(lessons(self.number, outcome.position - 1)))
        else:
            self.learn(Lesson(Applied(outcome.position, row.seq, BIT, entry.bit), row, None, entry.source, entry.time))

    def settle(self, done: list[Applied], lessons: Callable[[int, int], Iterator[Lesson]]) -> None:
        """Deadlines have passed, and that is durable: learn what came in time, and silence."""
        self.settling = False
        if done:
            for lesson in islice(lessons(self.number, done[0].position - 1), len(done)):
                self.learn(lesson)

    # ------------------------------------------------------------------ opening

    @classmethod
    def opened(cls, settings: ModelSettings, store: Store) -> Self:
        """The model as the journal has it; or, the first time, as its settings have it.

        The state of another version's learner may be of no use here. Then it learns the journal's lessons anew.
        """
        new = all(model.name != settings.name for model in store.models())
        made = settings.build() if new else None  # what is refused is not in the journal
        known = store.open_model(settings.name, _encode({"made": time.time()}))
        kept = store.snapshots(known.number)
        if not kept:
            desk = cls(settings, known.number, store.secret, made or settings.build())
            desk.rehearse()
            store.write([desk.snapshot()])
            return desk
        try:
            content, about = loaded(kept[0].content)
        except InputError:
            if store.shared or not is_of_another_version(kept[0].content):  # others may still be of that version
                raise
            desk = cls.relearnt(settings, known.number, store, kept[0])
            store.write([desk.snapshot()])
        else:
            desk = cls(settings, known.number, store.secret, content)
            desk._restore(about["service"], kept[0])
        desk._replay(store)
        return desk

    @classmethod
    def relearnt(cls, settings: ModelSettings, number: int, store: Store, kept: Keep) -> Self:
        """A model as it was kept, but that its learner has learnt all lessons up to there anew."""
        if settings.file is not None:
            raise InputError(
                f"the journal's model {settings.name!r} began with {settings.file}, and its last state is of another "
                "version: serve it with that one, or train it anew; another name begins anew"
            )
        content, about = unlearnt(kept.content)
        desk = cls(settings, number, store.secret, content)
        desk._restore(about["service"], kept)
        _log.warning("The last state of model %s is of another version: its journal is learnt anew", settings.name)
        for lesson in store.lessons(number, 0):
            if lesson.applied.position > kept.position:
                break
            desk.teach(lesson)
        return desk

    def rehearse(self) -> None:
        """Play rounds of every kind with a copy: what they need is compiled now, and not while somebody waits."""
        copy = Desk(self.settings, self.number, b"", loaded(self.content())[0])
        features: Any = [0.0] * self._d if self.encoder is None else {}
        baseline = self.labels[0] if self.settings.apprentice else None
        for kind, eligible in ((BIT, None), (BIT, self.labels[:1]), (AUDIT, None)):
            entry = copy.ask(Ask(features, None if eligible is None else list(eligible), baseline=baseline), 0.0)
            row = Row(**msgspec.structs.asdict(entry), seq=1)
            copy.learn(Lesson(Applied(1, 1, kind, 1), row, 1 if kind == AUDIT else None))
        copy.estimate()
        self.sources.warm_up(self.learner, unpack(row.x, self._sparse, self.learner))
        self.learner.warm_up(sparse=self._sparse)
        if self.encoder is None:
            self._rows_step()

    def _replay(self, store: Store) -> None:
        self.rehearse()
        while rows := store.rows(self.number, self.seq, _BATCH):
            for row in rows:
                if self.encoder is not None and row.record is not None:
                    self.encoder.encode(_decode(row.record))
                self.ledger.decided(row, replayed=True)
                self._recent[row.seq] = row
                self.time = max(self.time, row.time)
                self._deadline = max(self._deadline, 0.0 if row.deadline == inf else row.deadline)
            self.seq, self._decided = rows[-1].seq, self._decided + len(rows)
            self._since += len(rows)
            while len(self._recent) > _REMEMBERED:
                self._recent.popitem(last=False)
        self.learner.turn[loop.DECIDED] = self._decided
        if self.encoder is not None:
            self._moments = self.encoder.moments.copy()
        flags = deque(store.flags(self.number))
        for lesson in store.lessons(self.number, self.position):
            while flags and (self.sources.is_known(flags[0]) or flags[0].position < lesson.applied.position):
                self.sources.flag(flags.popleft())
            self.learn(lesson)
        for flag in flags:
            self.sources.flag(flag)
        if self.silence != self.settings.silence:
            self._change_silence(store)

    def _change_silence(self, store: Store) -> None:
        """From the next decision on silence means something else. Bits that waited for their deadline are learnt now,
        in the order of decisions, as they would have been; decisions without a bit are not."""
        while self.silence == "negative" and (rows := store.rows(self.number, self.settled, _BATCH)):
            (done,) = store.write([Settle(self.number, [row.seq for row in rows], silence=False)])
            self.settle(cast(list[Applied], done), store.lessons)
            self.settled = rows[-1].seq
        self.settled, self.silence = self.seq, self.settings.silence
        store.write([self.snapshot()])
