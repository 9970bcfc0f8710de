"""The sole owner of a live model: it decides, and learns what the journal says, in the journal's order.

Everything here runs in one thread, that of the event loop. Deciding changes two things, the encoder's running means and
variances and the count of draws; learning changes the learner. So a model is equal to its last snapshot, the records
decided on since, and the lessons applied since: `Desk.opened` does exactly that, with the code that runs live.
"""

from __future__ import annotations

import hashlib
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
from fliptron.kernels.vectors import lead
from fliptron.learners.base import Learner
from fliptron.learners.fliptron import Fliptron
from fliptron.noise.estimate import Estimate
from fliptron.noise.tallies import AUDITED_RIGHT, AUDITED_WRONG
from fliptron.policy import Policy, named
from fliptron.refusals import InputError
from fliptron.rounds import Decision
from fliptron.service.ids import Names
from fliptron.service.ledger import Ledger
from fliptron.service.messages import Answer, Ask, Feedback, Refusal
from fliptron.service.packing import eligible_of, pack, unpack
from fliptron.service.settings import ModelSettings
from fliptron.service.snapshots import fingerprint, loaded
from fliptron.service.sources import Sources
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
_OFTEN = 10_000  # decisions and lessons after which a snapshot is due: what a start after a crash replays
_BATCH = 1000
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


class Desk:
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
        self.settings, self.number, self._names = settings, number, Names(secret, number)
        self.name = settings.name
        self.learner: Learner = policy.learner if isinstance(policy, Policy) else policy
        self.encoder = policy.encoder if isinstance(policy, Policy) else None
        self.labels: tuple[Any, ...] = _labels(policy, settings)
        self._numbers = {label: r for r, label in enumerate(self.labels)}
        self.learnt_logs: dict[str, Any] = policy.learnt if isinstance(policy, Policy) else {}
        self.ledger = Ledger(len(self.labels))
        self.sources = Sources()
        self.version = 0
        """How many lessons were learnt."""
        self.position = 0
        """The last of them, in the store's order."""
        self.seq = 0
        """The last decision that is durable."""
        self.settled = 0
        """Up to which decision silence was taken for an answer."""
        self.time = 0.0
        """Of the last decision that is durable."""
        self.silence = settings.silence
        """What no feedback means; while the journal is read, what it meant then."""
        self.settling = False
        self.quiet_until = 0.0
        """No deadline passes before."""
        self._decided = self.learner.rounds  # draws of decisions that are durable
        self._moments = None if self.encoder is None else self.encoder.moments.copy()
        self._recent: OrderedDict[int, Row] = OrderedDict()
        self.pending: dict[str, Any] = {}
        """Keys of decisions that are not durable yet, each with what waits for it."""
        self._deadline = 0.0
        self._since = 0  # decisions and lessons since the last snapshot
        self._waiting: deque[Array | None] = deque()  # of decisions that are not durable yet: the moments after each
        self._d = self.learner.n_features
        self._floats = struct.Struct(f"{self._d}f")  # rounds as NumPy does, in a quarter of the time

    # ------------------------------------------------------------------ deciding

    def ask(self, ask: Ask, now: float) -> Decided:
        """Decide. The entry must be written before anybody is told; then `taken` makes the answer."""
        eligible = None if ask.eligible is None else self._numbered(ask.eligible)
        baseline = self._baseline(ask.baseline, eligible)
        x, packed, record = self._encoded(ask.features)
        return self._entry(ask, eligible, baseline, x, packed, record, now)

    def ask_x(self, x: Array, source: str | None, now: float) -> Decided:
        """Decide on a row of float32."""
        return self._entry(Ask([], source=source), None, self._baseline(None, None), *self._vector(x), None, now)

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
            except OverflowError:
                raise Refusal(
                    422, f"features hold {max(features, key=abs)!r}; numbers of float32 are expected"
                ) from None
            return np.frombuffer(packed, np.float32).astype(self.learner._dtype), packed, None
        if type(features) is not dict:
            raise Refusal(422, "features are a list; the model has a schema: an object of names and values is due")
        try:
            x = self.encoder.encode(features)
        except InputError as error:
            self.undo()
            raise Refusal(422, str(error)) from None
        return *pack(x, self.learner.dtype), _encode(features)

    def _vector(self, x: Array) -> tuple[Array, bytes]:
        if x.shape != (self._d,):
            raise Refusal(422, f"features are {x.size} numbers; {self._d} are expected")
        return x.astype(self.learner._dtype), x.tobytes()

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
            odd = repr(labels[found.index(-1)]) if found else "empty"
            raise Refusal(422, f"{what} is or holds {odd}; labels of the model are expected: {named(self.labels)}")
        return found

    # ------------------------------------------------------------------ learning

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

    def learn(self, lesson: Lesson) -> None:
        """Take one lesson, live or from the journal."""
        applied, row = lesson.applied, lesson.row
        self.position, self._since = applied.position, self._since + 1
        if applied.kind != AUDIT and self.silence == "negative":
            self.settled = max(self.settled, applied.seq)
        if applied.bit is None:
            self.ledger.set_aside()
            return
        x = unpack(row.x, self._sparse, self.learner)
        decision = Decision(row.label, row.greedy, row.probability)
        if applied.kind == AUDIT:
            self._audit(x, decision, applied.bit, lesson.heard)
        else:
            # Where silence is a bit, whoever was decided for is judged: those who send have only ones to send.
            source = row.source if self.silence == "negative" else lesson.source
            if source is not None:
                self.sources.observe(source, self.learner, x, row.label, applied.bit)
            self._learn_bit(x, decision, applied.bit, eligible_of(row.eligible))
            self.ledger.learnt(row, applied.bit)
        self.version += 1

    def _learn_bit(self, x: Any, decision: Decision, bit: int, eligible: list[int] | None) -> None:
        if eligible is not None and isinstance(self.learner, Fliptron):
            self.learner.learn(x, decision, bit, eligible=eligible)
        else:
            self.learner.learn(x, decision, bit)

    def _audit(self, x: Any, decision: Decision, right: int, heard: int | None) -> None:
        """What is certain: how the bit was made, and, where it follows, which label was right."""
        self.ledger.audited(right, heard)
        learner = self.learner
        if not isinstance(learner, Fliptron):
            return
        truth = decision.label if right else 1 - decision.label if learner.n_classes == 2 else None
        if truth is not None:
            learner.learn(x, decision, heard, truth=truth)
        elif heard is not None:  # wrong, and who knows what would have been right: it tells of the rates alone
            with learner.held():
                learner.state.memory[learner._epoch(), AUDITED_WRONG if not right else AUDITED_RIGHT] += (
                    1.0,
                    heard,
                    1.0,
                )

    @property
    def _sparse(self) -> bool:
        return self.encoder is not None and self.encoder.sparse

    def estimate(self) -> Estimate | None:
        """What the learner has found out about the noise; None if it does not."""
        return self.learner.estimate() if isinstance(self.learner, Fliptron) else None

    # ------------------------------------------------------------------ keeping

    @property
    def is_due(self) -> bool:
        """Whether it is time for a snapshot."""
        return self._since >= _OFTEN

    @property
    def is_changed(self) -> bool:
        """Whether anything happened since the last snapshot."""
        return self._since > 0

    def snapshot(self) -> Keep:
        """All that is durable, as an entry."""
        self._since = 0
        live = self.learner.turn[loop.DECIDED]
        self.learner.turn[loop.DECIDED] = self._decided
        try:
            return Keep(self.number, self.position, self.seq, self.content(), fingerprint())
        finally:
            self.learner.turn[loop.DECIDED] = live

    def content(self) -> bytes:
        """The model as a file of `Policy.save` or `Learner.save` has it, with what the service keeps besides."""
        service = {
            "version": self.version, "settled": self.settled, "deadline": self._deadline, "time": self.time,
            "silence": self.silence, "ledger": self.ledger.plain(), "sources": self.sources.plain(),
        }  # fmt: skip
        if self.encoder is None:
            return self.learner.packed({"service": service, "names": list(self.labels)})
        about = {
            "labels": list(self.labels),
            "schema": self.encoder.schema.to_plain(),
            "curves": len(self.encoder.curves.pairs),
            "learnt": self.learnt_logs,
        }
        arrays = {**self.encoder.arrays(), "moments": self._moments}
        return self.learner.packed({"policy": about, "service": service}, arrays)  # type: ignore[arg-type]

    @classmethod
    def opened(cls, settings: ModelSettings, store: Store) -> Self:
        """The model as the journal has it; or, the first time, as its settings have it."""
        known = store.open_model(settings.name, _encode({"made": time.time()}))
        kept = store.snapshots(known.number)
        if not kept:
            desk = cls(settings, known.number, store.secret, settings.build())
            desk.rehearse()
            store.write([desk.snapshot()])
            return desk
        content, about = loaded(kept[0].content)
        desk = cls(settings, known.number, store.secret, content)
        desk._restore(about["service"], kept[0])
        desk._replay(store)
        return desk

    def _restore(self, about: dict[str, Any], kept: Keep) -> None:
        self.settings.check(self.labels, self.learner, None if self.encoder is None else self.encoder.schema)
        self.time, self.silence = about["time"], about["silence"]
        self.position, self.seq = kept.position, kept.seq
        self.version, self.settled, self._deadline = about["version"], about["settled"], about["deadline"]
        self.ledger.restore(about["ledger"])
        self.sources.restore(about["sources"])

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

    def digest(self) -> str:
        """A checksum of all that is durable, equal for equal models: the drills compare it."""
        told = hashlib.sha256()
        for name, array in sorted(self.learner._arrays().items()):
            told.update(name.encode() + np.ascontiguousarray(array).tobytes())
        told.update(b"%d %d %d" % (self._decided, self.version, self.position))
        if self._moments is not None:
            told.update(self._moments.tobytes())
        told.update(_encode(self.sources.plain()))
        return told.hexdigest()


def _labels(policy: Policy | Learner, settings: ModelSettings) -> tuple[Any, ...]:
    if isinstance(policy, Policy):
        return policy.labels
    named_ = settings.labels or tuple(range(policy.n_classes))
    if len(named_) != policy.n_classes:
        raise InputError(f"model {settings.name!r} has {len(named_)} labels, and its file {policy.n_classes}")
    return tuple(named_)
