"""The journal in PostgreSQL, for several processes: every one writes decisions and feedback, one learns.

`write` keeps what `fliptron.service.store` promises. What differs is who learns. A process that was elected (`stand`)
holds the office: only it may write to `applied` and keep states, and each of its transactions checks that it still
does. What others write goes to the table `inbox`, with one row for everything that the model has not taken in yet;
`teach` claims such rows, and learns, and publishes the model, and deletes the rows, in one transaction. Rows are
claimed because they are there and not because their numbers are higher than the last: a transaction that took its
numbers early and commits late is not overlooked.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, ClassVar

import msgspec
import psycopg
from psycopg import errors

from fliptron.refusals import InputError
from fliptron.service import election, statements
from fliptron.service.ids import KEY_BYTES
from fliptron.service.inbox import MADE, NOTED, Claimed, Lessons
from fliptron.service.reading import Reader, told
from fliptron.service.store import (
    AUDIT,
    BIT,
    OTHER_FORMAT,
    Applied,
    Decided,
    Entry,
    FencedError,
    Flag,
    FullError,
    Heard,
    Keep,
    Kept,
    Outcome,
    Row,
    Settle,
    StoreError,
    Taken,
    came,
    runs,
    settled,
)

LEAST_VERSION = 14
_NOW = -1  # not in the inbox: the process that writes it holds the office
_FAREWELL = 0.05  # seconds that the server may need to end a session


class Postgres(Reader):
    """A journal in a database; see `fliptron.service.store` for what it promises.

    Parameters
    ----------
    address
        postgresql://user@host:port/database. Tables are made, in the first schema of the search path, if there are
        none.
    """

    shared: ClassVar[bool] = True

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self.epoch: int | None = None
        """Of the office that this process holds; None if it does not."""
        self._writer: Any = None
        try:
            with self._connect() as connection:
                self._prepare(connection)
                self._lock = election.lock_of(connection)
            self._writer, self._reader = self._connect(), self._connect()
        except psycopg.Error as error:
            self.close()
            raise InputError(f"the database cannot be used as a journal ({told(error)})") from None

    def _prepare(self, connection: Any) -> None:
        if connection.info.server_version < LEAST_VERSION * 10_000:
            version = connection.info.server_version // 10_000
            raise InputError(f"PostgreSQL is {version}; at least {LEAST_VERSION} is needed")
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (election.MARK,))  # several may start at once
            (there,) = connection.execute("SELECT to_regclass('meta') IS NOT NULL").fetchone()
            if not there:
                connection.execute(statements.TABLES)
                connection.execute("INSERT INTO meta VALUES ('secret', %s)", (secrets.token_bytes(KEY_BYTES),))
                connection.execute("INSERT INTO meta VALUES ('format', %s)", (b"%d" % statements.FORMAT,))
        found = dict(connection.execute("SELECT name, value FROM meta").fetchall())
        if found.get("format") != b"%d" % statements.FORMAT:
            raise InputError(OTHER_FORMAT.format("the database", statements.FORMAT))
        self.secret: bytes = found["secret"]

    def again(self) -> Postgres:
        """Another one, with connections of its own."""
        return Postgres(self._address)

    def new_number(self) -> int:
        """A number that no other process ever gets."""
        return int(self._read("SELECT nextval('process_number')")[0][0])

    def begin(self, state: Keep) -> None:
        """Keep the first state of a model, unless there is one. Any process may do that."""
        with self._transaction(office=False) as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", (election.MARK,))
            if cursor.execute("SELECT FROM state WHERE model = %s LIMIT 1", (state.model,)).fetchone() is None:
                self._write_state(cursor, [state], [0], [None])

    # ------------------------------------------------------------------ the office

    def stand(self) -> bool:
        """Stand for the office; whether we hold it. A holder who has said nothing for too long is deposed."""
        try:
            connection = self._connected()
            self.epoch = election.take(connection, self._lock)
            if self.epoch is None and election.depose(connection, self._lock):
                time.sleep(_FAREWELL)
                self.epoch = election.take(connection, self._lock)
        except psycopg.Error as error:
            raise self._refusal(error) from error
        return self.epoch is not None

    def speak(self) -> None:
        """Tell the others that we are there, while there is nothing else to say."""
        with self._transaction(office=False) as cursor:
            cursor.execute("SELECT 1")

    def teach(self, model: int, most: int, learn: Callable[[list[Claimed]], Lessons]) -> int:
        """Claim what is in a model's inbox, learn it, and keep what comes of it, all in one transaction.

        Parameters
        ----------
        model
            Its number.
        most
            How much is claimed at once.
        learn
            Called with what was claimed, in order, unless it is nothing. If it raises, nothing has happened; if
            anything else fails, the caller's model is ahead of the store and must be read again.
        """
        with self._transaction(office=False) as cursor:
            claimed = self._claim(cursor, model, most)
            if not claimed:
                return 0
            election.confirm(cursor, self.epoch)
            lessons = learn(claimed)
            self._apply(cursor, model, lessons.applied)
            waiting = {row.seq for row in lessons.waiting}
            done = [each for each in claimed if not (each.kind == MADE and each.row.seq in waiting)]
            cursor.execute(statements.DONE, ([each.row.seq for each in done], [each.kind for each in done]))
            if waiting:
                deadlines = [row.deadline for row in lessons.waiting]
                cursor.execute(statements.WAIT, ([row.seq for row in lessons.waiting], deadlines))
            for entry in lessons.entries:
                _WRITERS[type(entry)](self, cursor, [entry], [0], [None])
        return len(claimed)

    def _claim(self, cursor: Any, model: int, most: int) -> list[Claimed]:
        found = cursor.execute(statements.CLAIM, (model, most)).fetchall()
        # A second statement, which sees what was committed until the rows were ours.
        facts = (
            {each[13]: each for each in cursor.execute(statements.FACTS, ([seq for seq, _ in found],))} if found else {}
        )
        claimed = []
        for seq, kind in found:
            row, more = Row(*facts[seq][:14]), facts[seq][14:]
            time_, bit, source, late, usable = more[:5]
            heard = None if bit is None else Heard(model, seq, time_, bit, source, False, late, usable)
            if kind == AUDIT:
                heard = Heard(model, seq, more[5], more[6], more[7], True)
            claimed.append(Claimed(kind, row, heard, *more[8:]))
        return claimed

    # ------------------------------------------------------------------ writing

    def write(self, entries: Sequence[Entry]) -> list[Outcome]:
        """Write entries in one transaction, durably."""
        office = self.epoch is not None or any(type(entry) in (Settle, Keep) for entry in entries)
        try:
            return self._write(entries, office)
        except _AgainError:
            return self._write(entries, office)

    def _write(self, entries: Sequence[Entry], office: bool) -> list[Outcome]:
        outcomes: list[Outcome] = [None] * len(entries)
        with self._transaction(office) as cursor:
            decided = [at for at, entry in enumerate(entries) if type(entry) is Decided]
            if decided:
                self._write_decisions(cursor, entries, decided, outcomes)
            for kind, places in runs(entries):
                _WRITERS[kind](self, cursor, entries, places, outcomes)
        return outcomes

    def _write_decisions(self, cursor: Any, entries: Sequence[Any], places: list[int], outcomes: list[Outcome]) -> None:
        columns = zip(*(msgspec.structs.astuple(entries[at]) for at in places), strict=True)
        found = cursor.execute(statements.DECIDE, [list(column) for column in columns]).fetchall()
        taken = []
        for at, (seq, put) in zip(places, found, strict=True):
            outcomes[at] = Taken(seq)
            if not put:
                taken.append(at)
        if taken:  # somebody was faster with the key, perhaps in this very call
            keys = [entries[at].model for at in taken], [entries[at].key for at in taken]
            rows = {(row[0], row[12]): Row(*row) for row in cursor.execute(statements.KEYS, keys)}
            for at in taken:
                before = rows[entries[at].model, entries[at].key]
                outcomes[at] = Taken(before.seq, before)

    def _write_heard(self, cursor: Any, entries: Sequence[Any], places: list[int], outcomes: list[Outcome]) -> None:
        waits = [entries[at].seq for at in places if not entries[at].learn]
        if waits:  # a deadline that passes now must not pass between our look and our word
            cursor.execute(statements.HOLD, (waits,))
        known = {
            each[0]: list(each[1:]) for each in cursor.execute(statements.KNOWN, ([entries[p].seq for p in places],))
        }
        rows: dict[bool, list[Any]] = {False: [], True: []}
        first: dict[tuple[bool, int], int] = {}
        now: list[int] = []
        for at in places:
            entry = entries[at]
            state = known.get(entry.seq)
            if state is None or state[0] != entry.model:
                outcomes[at] = Kept("unknown")
                continue
            _, bit, audit, settled, deadline, decider, quarantined = state
            if (audit if entry.verified else bit) or (entry.verified, entry.seq) in first:
                outcomes[at] = Kept("duplicate")
                continue
            first[entry.verified, entry.seq] = at
            late = not entry.verified and (entry.late or settled or entry.time > deadline)
            usable = entry.usable and (entry.verified or entry.source is not None or not quarantined)
            outcomes[at] = Kept("late" if late else "accepted")
            learn = entry.learn and usable and not late
            kind = AUDIT if entry.verified else BIT if learn else NOTED
            if learn and self.epoch is not None:
                kind = _NOW
            source = decider if entry.source is None else entry.source
            rows[entry.verified].append((entry.seq, entry.time, entry.bit, source, late, usable, entry.model, kind))
        for verified, given in rows.items():
            if given:
                statement = statements.AUDIT if verified else statements.HEAR
                found = cursor.execute(statement, [list(column) for column in zip(*given, strict=True)])
                put = {seq for (seq,) in found}
                for seq, *_, kind in given:
                    if seq not in put:  # another process was faster
                        outcomes[first[verified, seq]] = Kept("duplicate")
                    elif kind == _NOW:
                        now.append(first[verified, seq])
        self._learn_now(cursor, entries, sorted(now), outcomes)

    def _learn_now(self, cursor: Any, entries: Sequence[Any], places: list[int], outcomes: list[Any]) -> None:
        for model in {entries[at].model for at in places}:
            position, applied = self._position(cursor, model), []
            for at in places:
                entry = entries[at]
                if entry.model == model:
                    position += 1
                    outcomes[at].position = position
                    applied.append(Applied(position, entry.seq, AUDIT if entry.verified else BIT, entry.bit))
            self._apply(cursor, model, applied)

    def _position(self, cursor: Any, model: int) -> int:
        return int(cursor.execute(statements.LAST, (model,)).fetchone()[0])

    def _apply(self, cursor: Any, model: int, applied: list[Applied]) -> None:
        if applied:
            columns = zip(*((each.position, each.seq, each.kind, each.bit) for each in applied), strict=True)
            cursor.execute(statements.APPLY, [model, self.epoch, *(list(column) for column in columns)])

    def _write_settled(self, cursor: Any, entries: Sequence[Any], places: list[int], outcomes: list[Outcome]) -> None:
        for at in places:
            entry = entries[at]
            cursor.execute(statements.SETTLED, (entry.seqs,))
            found = {each[0]: each[1:] for each in cursor.execute(statements.HEARD, (entry.seqs,))}
            position, done = self._position(cursor, entry.model), []
            for seq in dict.fromkeys(entry.seqs):
                there, *told = found[seq]
                if not there and (entry.silence or came(*told)):
                    position += 1
                    done.append(Applied(position, seq, BIT, settled(*told)))
            self._apply(cursor, entry.model, done)
            outcomes[at] = done

    def _write_state(self, cursor: Any, entries: Sequence[Any], places: list[int], outcomes: list[Outcome]) -> None:
        for at in places:
            e = entries[at]
            digest = hashlib.sha256(e.content).digest()
            values = (e.model, e.position, e.seq, e.content, digest, e.fingerprint, time.time(), self.epoch or 0)
            cursor.execute(statements.KEEP, values)
            cursor.execute(statements.FORGET, (e.model,) * 3)

    def _write_flag(self, cursor: Any, entries: Sequence[Any], places: list[int], outcomes: list[Outcome]) -> None:
        for at in places:
            e = entries[at]
            found = cursor.execute(statements.FLAG, (e.model, e.source, e.quarantined, e.time, e.reason))
            (outcomes[at],) = found.fetchone()

    @contextmanager
    def _transaction(self, office: bool) -> Iterator[Any]:
        """All or nothing; if it is the office's, we hold it until the end, or nothing is written."""
        try:
            connection = self._connected()
            with connection.transaction(), connection.cursor(binary=True) as cursor:
                if office:
                    election.confirm(cursor, self.epoch)
                yield cursor
        except FencedError:
            self.resign()
            raise
        except (errors.DeadlockDetected, errors.SerializationFailure) as error:
            raise _AgainError(f"the database is busy ({told(error)}), so nothing was kept; try again") from error
        except psycopg.Error as error:
            raise self._refusal(error) from error

    def _connected(self) -> Any:
        if self._writer.closed:
            self.epoch = None  # the lock went with the connection
            self._writer = self._connect()
        return self._writer

    def resign(self) -> None:
        """Leave the office, if we are in it."""
        self.epoch = None
        with suppress(psycopg.Error):
            self._writer.close()  # and with it the lock

    def _refusal(self, error: psycopg.Error) -> StoreError:
        if isinstance(error, psycopg.OperationalError):  # whatever it is, what the connection holds is not ours
            self.resign()
        if isinstance(error, errors.DiskFull):
            return FullError("the database's disk is full, so nothing was kept; try again when there is room")
        return StoreError(f"the database cannot be written now ({told(error)}); try again")

    def close(self) -> None:
        """Let go of everything."""
        self.epoch = None
        for connection in (self._writer, self._reader):
            if connection is not None:
                connection.close()


class _AgainError(StoreError):
    """It would work if tried again at once."""


_Write = Callable[[Postgres, Any, Sequence[Any], list[int], list[Outcome]], None]
_WRITERS: dict[type, _Write] = {
    Heard: Postgres._write_heard,
    Settle: Postgres._write_settled,
    Keep: Postgres._write_state,
    Flag: Postgres._write_flag,
}
