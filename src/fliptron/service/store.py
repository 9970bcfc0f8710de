"""What the service asks of a store: entries that are written together and for good, and a few look-ups.

The contract, which `tests/test_store.py` checks on every store:

- `write` takes entries of any kinds and models, in order, and is **one transaction**: all are durable when it returns,
  or it raises and none is there. It returns one outcome per entry, in the same order. It may be called by one thread at
  a time; the other methods by any thread.
- Decisions are numbered (`seq`) by the store, upwards, for all models together. In one process that is alone, the
  numbers follow the order of `write`, without a gap within one call.
- A key is good for one decision of a model, for ever: a second one is not written, and the outcome is the first.
- The first bit of a decision wins, and the first audit. Others are duplicates and change nothing.
- `applied` is the order of learning: each row says that a bit (or audit) of a decision was learnt, once, at a
  `position` that only grows. It is written in the transaction that makes learning due, so that a model is always equal
  to its snapshot, followed by what was applied after it.
- Nothing is ever changed or deleted, but for snapshots that newer ones replace.

A store that several processes write to (PostgreSQL) may refuse a `write` of a process that lost its
office: `FencedError`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from typing import Any, ClassVar, Literal, Protocol

import msgspec

BIT, AUDIT = 0, 1
"""What was learnt: a bit, as it came back; or what an auditor found, for certain."""
OTHER_FORMAT = "{} holds a journal of another version, not of format {}: serve it with the version that wrote it"
"""How a store refuses what it cannot read."""
Status = Literal["accepted", "duplicate", "late", "unknown"]
"""Of feedback: the first of its event, in time; not the first; after the deadline (kept, not learnt); no such event."""


class StoreError(Exception):
    """The store could not write; nothing of the call is there. It may work again later."""

    status: ClassVar[int] = 503


class FullError(StoreError):
    """There is no room on the disk."""

    status = 507


class FencedError(StoreError):
    """Another process holds the office that this one has lost."""


class Decided(msgspec.Struct, gc=False):
    """Entry: a decision. Its outcome is a `Taken`."""

    model: int
    version: int
    """How many bits and audits the model had learnt from."""
    time: float
    """Seconds since 1970."""
    deadline: float
    """After this, feedback is late; infinite if it never is."""
    label: int
    greedy: int
    probability: float
    x: bytes
    """What was decided on, as float32; of a sparse x, the places as int32 and then the values."""
    margin: float | None = None
    eligible: bytes | None = None
    """The labels that could be played, as int32; None: all."""
    record: bytes | None = None
    """The record as JSON, if the model encodes records."""
    source: str | None = None
    key: str | None = None


class Row(Decided, gc=False):
    """A decision that is in the store."""

    seq: int = 0


class Heard(msgspec.Struct, gc=False):
    """Entry: feedback for a decision. Its outcome is a `Kept`."""

    model: int
    seq: int
    time: float
    bit: int
    source: str | None = None
    verified: bool = False
    """Whether an auditor says so: then the bit is the truth, and is kept beside the one that came back."""
    late: bool = False
    """Whether it came after the deadline. It is late too if the decision was settled already."""
    usable: bool = True
    """False if its source is in quarantine: then it is kept and never learnt."""
    learn: bool = True
    """Whether to write it to `applied` at once (if it is the first, in time and usable); else `Settle` will."""


class Settle(msgspec.Struct, gc=False):
    """Entry: the deadlines of decisions have passed. Its outcome is a list of `Applied`, in the order of `seqs`.

    Each is written to `applied` with the bit that came in time, or 0 if none came; with None, which means that nothing
    is learnt, if the one that came is not usable, or if whoever was decided for is in quarantine by now: silence is a
    bit of theirs, and bits without their silence would be ones alone. One that is there already is left out.
    """

    model: int
    seqs: list[int]
    silence: bool = True
    """Whether no bit in time is a bit 0; else such a decision is left out."""


class Keep(msgspec.Struct, gc=False):
    """Entry: a model's state, after all that was applied up to `position` and decided up to `seq`. No outcome.

    The first one of a model stays, and the last two: the whole of learning can always be gone through again.
    """

    model: int
    position: int
    seq: int
    content: bytes
    fingerprint: str
    """Of the engine: on another one a replay may differ in the last digit."""


class Flag(msgspec.Struct, gc=False):
    """Entry: a source goes into quarantine, or out of it. Its outcome is the number that the store gives it."""

    model: int
    source: str
    quarantined: bool
    time: float
    reason: str
    number: int = 0
    """Higher than that of any before; 0 until it is in the store."""
    position: int = 0
    """Of the last step of learning before it, where one process writes all; else 0."""


class Taken(msgspec.Struct, gc=False):
    """Outcome of `Decided`."""

    seq: int
    before: Row | None = None
    """The decision that had the key already; then nothing was written, and `seq` is its number."""


class Kept(msgspec.Struct, gc=False):
    """Outcome of `Heard`."""

    status: Status
    position: int | None = None
    """Where in the order of learning, if it is to be learnt now."""


class Applied(msgspec.Struct, gc=False):
    """One step of learning."""

    position: int
    seq: int
    kind: int
    """`BIT` or `AUDIT`."""
    bit: int | None
    """None: settled without a bit that may be learnt."""


class Lesson(msgspec.Struct, gc=False):
    """A step of learning with all that it needs, as `lessons` reads it."""

    applied: Applied
    row: Row
    heard: int | None = None
    """Of an audit: the bit of the same decision that was learnt before it, if any."""
    source: str | None = None
    time: float | None = None
    """Who sent the bit, and when; None where silence was taken for a bit."""


Entry = Decided | Heard | Settle | Keep | Flag
Outcome = Taken | Kept | list[Applied] | int | None


class Model(msgspec.Struct):
    """A model that the store knows."""

    number: int
    name: str
    about: bytes
    """JSON: what it was opened with."""


class Token(msgspec.Struct, frozen=True):
    """A token, of which only the SHA-256 is kept."""

    name: str
    digest: bytes
    scopes: tuple[str, ...]
    models: tuple[str, ...] | None = None
    """None: all."""


class Store(Protocol):
    """A journal of decisions, feedback and learning; see above for what it promises."""

    shared: ClassVar[bool]
    """Whether other processes write to it too: then one of them learns, and the others have copies of its models."""
    secret: bytes
    """The key of event ids."""

    def open_model(self, name: str, about: bytes) -> Model:
        """The model of this name; made with `about` if there is none."""

    def models(self) -> list[Model]:
        """All models."""

    def write(self, entries: Sequence[Entry]) -> list[Outcome]:
        """Write entries in one transaction, durably.

        Raises
        ------
        StoreError
            Nothing was written.
        """

    def find(self, model: int, seq: int) -> Row | None:
        """One decision."""

    def find_key(self, model: int, key: str) -> Row | None:
        """The decision with a key."""

    def snapshots(self, model: int) -> list[Keep]:
        """The states that are kept, the newest first."""

    def rows(self, model: int, after: int, limit: int) -> list[Row]:
        """Decisions with seq > after, in order."""

    def lessons(self, model: int, after: int) -> Iterator[Lesson]:
        """What was learnt at positions > after, in order."""

    def flags(self, model: int) -> list[Flag]:
        """Every time that a source went into quarantine, or out of it, in order."""

    def flagged(self, model: int) -> dict[str, Flag]:
        """The last word on every source that was ever in quarantine."""

    def export(self, model: int) -> Iterator[list[tuple[Row, int, float, int | None]]]:
        """Decisions whose bit was learnt, in order, with bit, time of the bit (NaN for silence) and the auditor's bit,
        batch by batch."""

    def tokens(self) -> list[Token]:
        """All tokens."""

    def add_token(self, token: Token) -> None:
        """Keep a token; one of the same name is replaced."""

    def size(self) -> dict[str, int]:
        """Bytes of its parts, for operators."""

    def close(self) -> None:
        """Let go of everything. Nothing may be called afterwards."""


def came(bit: int | None, usable: bool | None, late: bool | None, quarantined: bool) -> bool:
    """Whether a decision, of which `settled` says what is learnt, has a bit that came in time."""
    return bit is not None and not late


def settled(bit: int | None, usable: bool | None, late: bool | None, quarantined: bool) -> int | None:
    """What is learnt of a decision at its deadline, from its feedback, if any, and whether its source is in quarantine.

    >>> settled(1, True, False, False), settled(None, None, None, False), settled(1, True, True, False)
    (1, 0, 0)
    >>> settled(1, False, False, False), settled(1, True, False, True), settled(None, None, None, True)
    (None, None, None)
    """
    if quarantined:
        return None
    if not came(bit, usable, late, quarantined):
        return 0
    return bit if usable else None


def lesson_of(
    row: Row, position: int, kind: int, bit: int | None, late: int | None, source: str | None, time: float | None,
    auditor: str | None, audited: float | None, learnt: int | None,
) -> Lesson:  # fmt: skip
    """A lesson, from what a store has of the step, the feedback, the audit, and the bit that was learnt before it."""
    step = Applied(position, row.seq, kind, bit)
    if kind == AUDIT:
        return Lesson(step, row, learnt, auditor, audited)
    silent = late is None or bool(late)
    return Lesson(step, row, None, None if silent else source, None if silent else time)


def undamaged(model: int, found: Iterable[Any]) -> list[Keep]:
    """States, from position, seq, content, fingerprint and SHA-256; one that the disk has damaged is left out."""
    return [Keep(model, *each) for *each, digest in found if sha256(each[2]).digest() == digest]


def token_of(name: str, digest: bytes, scopes: str, models: str | None) -> Token:
    """A token, from a row of a table."""
    return Token(name, digest, tuple(scopes.split()), None if models is None else tuple(models.split()))


def row_of(token: Token) -> tuple[str, bytes, str, str | None]:
    """What `token_of` takes."""
    return token.name, token.digest, " ".join(token.scopes), None if token.models is None else " ".join(token.models)


def runs(entries: Sequence[Entry]) -> Iterator[tuple[type, list[int]]]:
    """Places of entries of one kind that follow each other; decisions aside, whose order with others is no matter."""
    kind: type | None = None
    places: list[int] = []
    for at, entry in enumerate(entries):
        if type(entry) is Decided:
            continue
        if type(entry) is not kind and kind is not None:
            yield kind, places
            places = []
        kind = type(entry)
        places.append(at)
    if kind is not None:
        yield kind, places
