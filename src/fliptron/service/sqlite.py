"""The journal in one SQLite file: write-ahead log, synced at every commit, one writer."""

from __future__ import annotations

import hashlib
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from math import inf, nan
from pathlib import Path
from typing import Any, ClassVar

import apsw
import msgspec

from fliptron.refusals import InputError
from fliptron.service.ids import KEY_BYTES
from fliptron.service.store import (
    AUDIT,
    BIT,
    OTHER_FORMAT,
    Applied,
    Decided,
    Entry,
    Flag,
    FullError,
    Heard,
    Keep,
    Kept,
    Lesson,
    Model,
    Outcome,
    Row,
    Settle,
    StoreError,
    Taken,
    Token,
    runs,
    settled,
)

LEAST_VERSION = (3, 51, 3)
"""Of SQLite: older ones may lose what a write-ahead log holds while a checkpoint is reset."""
FORMAT = 1
_APPLICATION = 0x464C4950  # "FLIP": what `file` and we know the file by
_KEPT = 2  # snapshots of a model
_BATCH = 1000
_GROUPS = (64, 16, 4, 1)  # rows that one statement inserts: the interpreter's lock is let go once for all of them
_TABLES = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE model (number INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL, about BLOB NOT NULL);
CREATE TABLE decision (
    seq INTEGER PRIMARY KEY, model INTEGER NOT NULL, version INTEGER NOT NULL, time REAL NOT NULL, deadline REAL,
    label INTEGER NOT NULL, greedy INTEGER NOT NULL, probability REAL NOT NULL, margin REAL, eligible BLOB,
    x BLOB NOT NULL, record BLOB, source TEXT, key TEXT
);
CREATE UNIQUE INDEX decision_key ON decision (model, key) WHERE key IS NOT NULL;
CREATE TABLE feedback (
    seq INTEGER PRIMARY KEY, time REAL NOT NULL, bit INTEGER NOT NULL, source TEXT,
    late INTEGER NOT NULL, usable INTEGER NOT NULL
);
CREATE TABLE audit (seq INTEGER PRIMARY KEY, time REAL NOT NULL, bit INTEGER NOT NULL, source TEXT);
CREATE TABLE applied (
    position INTEGER PRIMARY KEY, model INTEGER NOT NULL, seq INTEGER NOT NULL, kind INTEGER NOT NULL, bit INTEGER
);
CREATE UNIQUE INDEX applied_once ON applied (seq, kind);
CREATE TABLE snapshot (
    model INTEGER NOT NULL, position INTEGER NOT NULL, seq INTEGER NOT NULL, content BLOB NOT NULL,
    sha256 BLOB NOT NULL, fingerprint TEXT NOT NULL, time REAL NOT NULL
);
CREATE TABLE source (
    number INTEGER PRIMARY KEY, model INTEGER NOT NULL, name TEXT NOT NULL, quarantined INTEGER NOT NULL,
    time REAL NOT NULL, reason TEXT NOT NULL, position INTEGER NOT NULL
);
CREATE INDEX source_last ON source (model, name, number);
CREATE TABLE token (name TEXT PRIMARY KEY, digest BLOB NOT NULL, scopes TEXT NOT NULL, models TEXT) WITHOUT ROWID;
"""
_COLUMNS = (
    "decision.model, version, decision.time, deadline, label, greedy, probability, x, margin, eligible, record, "
    "decision.source, key, decision.seq"
)
_SETTLE = """
SELECT decision.seq, applied.seq IS NOT NULL, feedback.bit, feedback.usable, feedback.late, coalesce((
    SELECT quarantined FROM source WHERE source.model = decision.model AND name = decision.source
    ORDER BY number DESC LIMIT 1), 0)
FROM decision LEFT JOIN feedback USING (seq)
LEFT JOIN applied ON applied.seq = decision.seq AND applied.kind = 0
WHERE decision.seq IN (SELECT value FROM json_each(?))
"""
_INSERTS = {
    "decision": "decision (model, version, time, deadline, label, greedy, probability, x, margin, eligible, record, "
    "source, key, seq)",
    "feedback": "feedback (seq, time, bit, source, late, usable)",
    "audit": "audit (seq, time, bit, source)",
    "applied": "applied (position, model, seq, kind, bit)",
}


class Journal:
    """A journal in a file; see `fliptron.service.store` for what it promises.

    Parameters
    ----------
    path
        The file; made if it is not there. Beside it lie SQLite's own two, `-wal` and `-shm`, and `-lock`, which keeps a
        second server out.
    synchronous
        "FULL"; another value loses acknowledged events when the power fails, and is here for the drill that shows it.
    vfs
        The name of a file system that SQLite knows, for drills.
    alone
        Whether no other server may use the file. False is for those who only read.
    """

    shared: ClassVar[bool] = False

    def __init__(
        self, path: str | os.PathLike[str], *, synchronous: str = "FULL", vfs: str | None = None, alone: bool = True
    ) -> None:
        if tuple(map(int, apsw.sqlite_lib_version().split("."))) < LEAST_VERSION:
            least = ".".join(map(str, LEAST_VERSION))
            raise InputError(f"SQLite is {apsw.sqlite_lib_version()}; at least {least} is needed: upgrade apsw")
        self.path = Path(path)
        self._synchronous, self._vfs = synchronous, vfs
        if not alone and not self.path.is_file():
            raise InputError(f"{path} does not exist; a journal is expected")
        self._lock = _locked(self.path) if vfs is None and alone else None
        if self._lock is not None:
            with _said(self.path):
                os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))  # it holds a secret
        try:
            with _said(self.path):
                self._connect()
        except BaseException:
            self._unlock()
            raise

    def _connect(self) -> None:
        self._writer = self._opened()
        if self._one("PRAGMA application_id", self._writer) == 0 and not self._one(
            "SELECT count(*) FROM sqlite_schema", self._writer
        ):
            self._create()
        elif self._one("PRAGMA application_id", self._writer) != _APPLICATION:
            raise InputError(f"{self.path} is a database of something else; a journal, or a new name, is expected")
        elif self._one("PRAGMA user_version", self._writer) != FORMAT:
            raise InputError(OTHER_FORMAT.format(self.path, FORMAT))
        self._reading = threading.Lock()
        self._reader = self._opened() if self._vfs is None else self._writer  # a file system of Python's is not shared
        self.secret: bytes = self._one("SELECT value FROM meta WHERE name = 'secret'", self._writer)
        self._seq: int = self._one("SELECT coalesce(max(seq), 0) FROM decision", self._writer)
        self._position: int = self._one("SELECT coalesce(max(position), 0) FROM applied", self._writer)

    def _opened(self) -> apsw.Connection:
        connection = apsw.Connection(str(self.path), vfs=self._vfs)
        connection.set_busy_timeout(5000)
        if self._vfs is not None:
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {self._synchronous}")
        connection.execute(f"PRAGMA journal_size_limit = {2**26}")
        return connection

    def _create(self) -> None:
        with self._writer:
            self._writer.execute(_TABLES)
            self._writer.execute(f"PRAGMA application_id = {_APPLICATION}")
            self._writer.execute(f"PRAGMA user_version = {FORMAT}")
            self._writer.execute("INSERT INTO meta VALUES ('secret', ?)", (secrets.token_bytes(KEY_BYTES),))

    def open_model(self, name: str, about: bytes) -> Model:
        """The model of this name; made with `about` if there is none."""
        with _said(self.path), self._writer:
            self._writer.execute("INSERT OR IGNORE INTO model (name, about) VALUES (?, ?)", (name, about))
        found: Any = self._writer.execute("SELECT number, name, about FROM model WHERE name = ?", (name,)).get
        return Model(*found)

    def models(self) -> list[Model]:
        """All models."""
        with self._reading:
            found: Any = self._reader.execute("SELECT number, name, about FROM model").fetchall()
        return [Model(*each) for each in found]

    def write(self, entries: Sequence[Entry]) -> list[Outcome]:
        """Write entries in one transaction, durably."""
        seq, position = self._seq, self._position
        outcomes: list[Outcome] = [None] * len(entries)
        try:
            self._writer.execute("BEGIN IMMEDIATE")
            decided = [at for at, entry in enumerate(entries) if type(entry) is Decided]
            if decided:
                self._write_decisions(entries, decided, outcomes)
            for kind, places in runs(entries):
                _WRITERS[kind](self, entries, places, outcomes)
            self._writer.execute("COMMIT")
        except apsw.Error as error:
            self._seq, self._position = seq, position
            self._recover()
            raise self._refusal(error) from error
        except BaseException:
            self._seq, self._position = seq, position
            self._recover()
            raise
        return outcomes

    def _write_decisions(self, entries: Sequence[Any], places: list[int], outcomes: list[Outcome]) -> None:
        taken = self._taken([entries[at] for at in places if entries[at].key is not None])
        rows: list[Any] = []
        for at in places:
            entry = entries[at]
            key = entry.key
            if key is not None:
                before = taken.get((entry.model, key))
                if before is not None:
                    outcomes[at] = Taken(before.seq, before)
                    continue
            self._seq += 1
            outcomes[at] = Taken(self._seq)
            rows.extend((
                entry.model, entry.version, entry.time, None if entry.deadline == inf else entry.deadline, entry.label,
                entry.greedy, entry.probability, entry.x, entry.margin, entry.eligible, entry.record, entry.source, key,
                self._seq,
            ))  # fmt: skip
            if key is not None:
                taken[entry.model, key] = Row(**msgspec.structs.asdict(entry), seq=self._seq)
        self._insert("decision", rows, 14)

    def _taken(self, entries: list[Decided]) -> dict[tuple[int, str], Row]:
        found = {}
        for entry in entries:
            row = self._row("WHERE model = ? AND key = ?", (entry.model, entry.key), self._writer)
            if row is not None:
                found[entry.model, str(entry.key)] = row
        return found

    def _write_heard(self, entries: Sequence[Any], places: list[int], outcomes: list[Outcome]) -> None:
        known = self._known([entries[at].seq for at in places])
        bits: list[Any] = []
        audits: list[Any] = []
        applied: list[Any] = []
        for at in places:
            entry = entries[at]
            state = known.get(entry.seq)
            if state is None or state[0] != entry.model:
                outcomes[at] = Kept("unknown")
                continue
            column = 2 if entry.verified else 1
            if state[column]:
                outcomes[at] = Kept("duplicate")
                continue
            state[column] = 1
            late = not entry.verified and (entry.late or bool(state[3]))
            if entry.verified:
                audits.extend((entry.seq, entry.time, entry.bit, entry.source))
            else:
                bits.extend((entry.seq, entry.time, entry.bit, entry.source, int(late), int(entry.usable)))
            outcome = outcomes[at] = Kept("late" if late else "accepted")
            if entry.learn and entry.usable and not late:
                self._position += 1
                outcome.position = self._position
                kind = AUDIT if entry.verified else BIT
                applied.extend((self._position, entry.model, entry.seq, kind, entry.bit))
        self._insert("feedback", bits, 6)
        self._insert("audit", audits, 4)
        self._insert("applied", applied, 5)

    def _known(self, seqs: list[int]) -> dict[int, list[int]]:
        """Of decisions that exist: the model; whether there is a bit, an audit; whether it is settled."""
        told = self._writer.execute(
            "SELECT json_group_array(json_array(decision.seq, decision.model, feedback.seq IS NOT NULL, "
            "audit.seq IS NOT NULL, applied.seq IS NOT NULL)) FROM decision LEFT JOIN feedback USING (seq) "
            "LEFT JOIN audit USING (seq) LEFT JOIN applied ON applied.seq = decision.seq AND applied.kind = 0 "
            "WHERE decision.seq IN (SELECT value FROM json_each(?))",
            (str(seqs),),
        ).get
        return {each[0]: each[1:] for each in msgspec.json.decode(told)}

    def _write_settled(self, entries: Sequence[Any], places: list[int], outcomes: list[Outcome]) -> None:
        for at in places:
            entry = entries[at]
            found: Any = self._writer.execute(_SETTLE, (str(entry.seqs),)).fetchall()
            known = {seq: (there, told) for seq, there, *told in found}
            done: list[Applied] = []
            for seq in dict.fromkeys(entry.seqs):
                there, told = known[seq]
                if not there:
                    self._position += 1
                    done.append(Applied(self._position, seq, BIT, settled(*told)))
            self._insert("applied", [v for a in done for v in (a.position, entry.model, a.seq, BIT, a.bit)], 5)
            outcomes[at] = done

    def _write_snapshot(self, entries: Sequence[Any], places: list[int], outcomes: list[Outcome]) -> None:
        for at in places:
            e = entries[at]
            self._writer.execute(
                "INSERT INTO snapshot VALUES (?, ?, ?, ?, ?, ?, ?)",
                (e.model, e.position, e.seq, e.content, hashlib.sha256(e.content).digest(), e.fingerprint, time.time()),
            )
            self._writer.execute(
                "DELETE FROM snapshot WHERE model = ?1 AND rowid NOT IN "
                f"(SELECT rowid FROM snapshot WHERE model = ?1 ORDER BY rowid DESC LIMIT {_KEPT}) "
                "AND rowid > (SELECT min(rowid) FROM snapshot WHERE model = ?1)",
                (e.model,),
            )

    def _write_flag(self, entries: Sequence[Any], places: list[int], outcomes: list[Outcome]) -> None:
        for at in places:
            e = entries[at]
            row = (e.model, e.source, int(e.quarantined), e.time, e.reason, self._position)
            outcomes[at] = self._writer.execute(
                "INSERT INTO source (model, name, quarantined, time, reason, position) VALUES (?, ?, ?, ?, ?, ?) "
                "RETURNING number",
                row,
            ).get

    def _insert(self, table: str, values: list[Any], width: int) -> None:
        start, left = 0, len(values) // width
        for size in _GROUPS:
            while left >= size:
                self._writer.execute(_statement(table, width, size), values[start : start + size * width])
                start, left = start + size * width, left - size

    def _recover(self) -> None:
        """Undo, and after an error of the disk open the file anew: what the connection holds cannot be trusted."""
        with suppress(apsw.Error):
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
        if self._vfs is None:
            with suppress(apsw.Error):
                fresh = self._opened()
                self._writer.close(True)
                self._writer = fresh

    def _refusal(self, error: apsw.Error) -> StoreError:
        if isinstance(error, apsw.FullError) or self._is_full():
            return FullError("the disk is full, so nothing was kept; try again when there is room")
        told = " ".join(str(error).split())
        return StoreError(f"the journal cannot be written now ({told}), so nothing was kept; try again")

    def _is_full(self) -> bool:
        with suppress(OSError):
            there = os.statvfs(self.path.parent)
            return there.f_bavail * there.f_frsize < 2**20
        return False

    def find(self, model: int, seq: int) -> Row | None:
        """One decision."""
        with self._reading:
            return self._row("WHERE seq = ? AND model = ?", (seq, model), self._reader)

    def find_key(self, model: int, key: str) -> Row | None:
        """The decision with a key."""
        with self._reading:
            return self._row("WHERE model = ? AND key = ?", (model, key), self._reader)

    def snapshots(self, model: int) -> list[Keep]:
        """The states that are kept, the newest first; one that the disk has damaged is left out."""
        with self._reading:
            found: Any = self._reader.execute(
                "SELECT position, seq, content, fingerprint, sha256 FROM snapshot WHERE model = ? ORDER BY rowid DESC",
                (model,),
            ).fetchall()
        return [
            Keep(model, position, seq, content, fingerprint)
            for position, seq, content, fingerprint, digest in found
            if hashlib.sha256(content).digest() == digest
        ]

    def rows(self, model: int, after: int, limit: int) -> list[Row]:
        """Decisions with seq > after, in order."""
        with self._reading:
            found: Any = self._reader.execute(
                f"SELECT {_COLUMNS} FROM decision WHERE seq > ? AND model = ? ORDER BY seq LIMIT ?",
                (after, model, limit),
            )
            return [_as_row(each) for each in found]

    def lessons(self, model: int, after: int) -> Iterator[Lesson]:
        """What was learnt at positions > after, in order."""
        while True:
            with self._reading:
                found: Any = self._reader.execute(
                    f"SELECT {_COLUMNS}, position, kind, applied.bit, feedback.late, feedback.source, "
                    "feedback.time, audit.source, audit.time, (SELECT earlier.bit FROM applied AS earlier WHERE "
                    "earlier.seq = applied.seq AND earlier.kind = 0 AND earlier.position < applied.position) "
                    "FROM (SELECT position, model AS m, "
                    "seq, kind, bit FROM applied WHERE position > ? AND m = ? ORDER BY position LIMIT ?) AS applied "
                    "JOIN decision USING (seq) LEFT JOIN feedback USING (seq) LEFT JOIN audit USING (seq) "
                    "ORDER BY position",
                    (after, model, _BATCH),
                ).fetchall()
            for each in found:
                row = _as_row(each[:14])
                position, kind, bit, late, source, when, auditor, audited, learnt = each[14:]
                applied = Applied(position, row.seq, kind, bit)
                if kind == AUDIT:
                    yield Lesson(applied, row, learnt, auditor, audited)
                else:
                    sent = late == 0
                    yield Lesson(applied, row, None, source if sent else None, when if sent else None)
                after = position
            if len(found) < _BATCH:
                return

    def flags(self, model: int) -> list[Flag]:
        """Every time that a source went into quarantine, or out of it, in order."""
        with self._reading:
            found: Any = self._reader.execute(
                "SELECT name, quarantined, time, reason, number, position FROM source WHERE model = ? ORDER BY number",
                (model,),
            ).fetchall()
        return [Flag(model, name, bool(quarantined), *more) for name, quarantined, *more in found]

    def flagged(self, model: int) -> dict[str, Flag]:
        """The last word on every source that was ever in quarantine."""
        return {flag.source: flag for flag in self.flags(model)}

    def export(self, model: int) -> Iterator[list[tuple[Row, int, float, int | None]]]:
        """Decisions whose bit was learnt, in order, with bit, its time and the auditor's bit, batch by batch."""
        after = 0
        while True:
            with self._reading:
                found: Any = self._reader.execute(
                    f"SELECT {_COLUMNS}, applied.bit, CASE WHEN feedback.late = 0 THEN feedback.time END, audit.bit "
                    "FROM decision JOIN applied ON applied.seq = decision.seq AND applied.kind = 0 "
                    "LEFT JOIN feedback ON feedback.seq = decision.seq LEFT JOIN audit ON audit.seq = decision.seq "
                    "WHERE decision.seq > ? AND decision.model = ? AND applied.bit IS NOT NULL "
                    "ORDER BY decision.seq LIMIT ?",
                    (after, model, _BATCH * 10),
                ).fetchall()
            if not found:
                return
            after = found[-1][13]
            yield [(_as_row(e[:14]), e[14], nan if e[15] is None else e[15], e[16]) for e in found]

    def tokens(self) -> list[Token]:
        """All tokens."""
        with self._reading:
            found: Any = self._reader.execute("SELECT name, digest, scopes, models FROM token").fetchall()
        return [
            Token(name, digest, tuple(scopes.split()), None if models is None else tuple(models.split()))
            for name, digest, scopes, models in found
        ]

    def add_token(self, token: Token) -> None:
        """Keep a token; one of the same name is replaced."""
        models = None if token.models is None else " ".join(token.models)
        row = (token.name, token.digest, " ".join(token.scopes), models)
        with _said(self.path), self._writer:
            self._writer.execute("INSERT OR REPLACE INTO token VALUES (?, ?, ?, ?)", row)

    def size(self) -> dict[str, int]:
        """Bytes of its parts, for operators."""
        parts = {"journal": self.path, "wal": Path(f"{self.path}-wal")}
        return {name: path.stat().st_size if path.exists() else 0 for name, path in parts.items()}

    def close(self) -> None:
        """Let go of the file."""
        self._reader.close(True)
        self._writer.close(True)
        self._unlock()

    def _unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _row(self, where: str, values: tuple[Any, ...], connection: apsw.Connection) -> Row | None:
        found = connection.execute(f"SELECT {_COLUMNS} FROM decision {where}", values).fetchone()
        return None if found is None else _as_row(found)

    @staticmethod
    def _one(query: str, connection: apsw.Connection) -> Any:
        return connection.execute(query).get


_Write = Callable[[Journal, Sequence[Any], list[int], list[Outcome]], None]
_WRITERS: dict[type, _Write] = {
    Heard: Journal._write_heard,
    Settle: Journal._write_settled,
    Keep: Journal._write_snapshot,
    Flag: Journal._write_flag,
}


def back_up(path: str | os.PathLike[str], copy: str | os.PathLike[str]) -> None:
    """Copy a journal, also while a server writes to it; the copy is whole, as of one moment.

    Parameters
    ----------
    path
        The journal.
    copy
        A file that is not there yet.
    """
    if not Path(path).is_file():
        raise InputError(f"{path} does not exist; a journal is expected")
    if Path(copy).exists():
        raise InputError(f"{copy} is there already; a new name is expected")
    part = Path(f"{copy}.part")
    with _said(part):
        part.unlink(missing_ok=True)
        source = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
        target = apsw.Connection(str(part))
        try:
            source.set_busy_timeout(5000)
            if source.execute("PRAGMA application_id").get != _APPLICATION:
                raise InputError(f"{path} is not a journal")
            with target.backup("main", source, "main") as copying:
                while not copying.done:
                    copying.step(-1)
        finally:
            target.close(True)
            source.close(True)
        handle = os.open(part, os.O_RDONLY)
        os.fsync(handle)
        os.close(handle)
        os.replace(part, copy)


_STATEMENTS: dict[tuple[str, int], str] = {}


def _statement(table: str, width: int, size: int) -> str:
    found = _STATEMENTS.get((table, size))
    if found is None:
        row = f"({', '.join('?' * width)})"
        found = _STATEMENTS[table, size] = f"INSERT INTO {_INSERTS[table]} VALUES {', '.join([row] * size)}"
    return found


def _as_row(values: Any) -> Row:
    row = Row(*values)
    if row.deadline is None:
        row.deadline = inf
    return row


def _locked(path: Path) -> int:
    """Keep other servers out until we are gone, however we go."""
    import fcntl  # noqa: PLC0415  # not on Windows

    name = f"{path}-lock"
    try:
        handle = os.open(name, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise InputError(f"{path} cannot be opened ({error.strerror})") from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise InputError(f"another server uses {path}; stop it first, or take another file") from None
    return handle


@contextmanager
def _said(path: Path) -> Iterator[None]:
    """Whatever SQLite cannot do becomes one sentence."""
    try:
        yield
    except apsw.Error as error:
        raise InputError(f"{path} cannot be used as a journal ({' '.join(str(error).split())})") from None
    except OSError as error:
        raise InputError(f"{path} cannot be written ({error.strerror})") from None
