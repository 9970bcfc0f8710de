"""The journal in one SQLite file: write-ahead log, synced at every commit, one writer."""

from __future__ import annotations

import hashlib
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from math import inf
from pathlib import Path
from typing import Any, ClassVar

import apsw
import msgspec

from fliptron.refusals import InputError
from fliptron.service import tables
from fliptron.service.ids import KEY_BYTES
from fliptron.service.lookups import Lookups
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
    Model,
    Outcome,
    Row,
    Settle,
    StoreError,
    Taken,
    Token,
    came,
    row_of,
    runs,
    settled,
)

LEAST_VERSION = (3, 51, 3)
"""Of SQLite: older ones may lose what a write-ahead log holds while a checkpoint is reset."""
FORMAT = 2
APPLICATION = 0x464C4950
"""What `file` and we know a journal by: "FLIP"."""
COPY = "copy"
"""What a backup says of itself until a server opens it."""
_KEPT = 2  # snapshots of a model
_IS_COPY = f"SELECT count(*) FROM meta WHERE name = '{COPY}'"
_LOOK = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
_GROUPS = (64, 16, 4, 1)  # rows that one statement inserts: the interpreter's lock is let go once for all of them


class Journal(Lookups):
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
    words = tables

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
            with said(self.path):
                os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))  # it holds a secret
        try:
            with said(self.path):
                if vfs is None:
                    _check_log(self.path)
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
        elif self._one("PRAGMA application_id", self._writer) != APPLICATION:
            raise InputError(f"{self.path} is a database of something else; a journal, or a new name, is expected")
        elif self._one("PRAGMA user_version", self._writer) != FORMAT:
            raise InputError(OTHER_FORMAT.format(self.path, FORMAT))
        self._make_durable(self._writer)
        if self._lock is not None and self._one(_IS_COPY, self._writer):
            self._writer.execute("DELETE FROM meta WHERE name = ?", (COPY,))
            self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._reading = threading.Lock()
        self._reader = self._writer  # a file system of Python's is not shared
        if self._vfs is None:
            self._reader = self._opened()
            self._make_durable(self._reader)
        self.secret: bytes = self._one("SELECT value FROM meta WHERE name = 'secret'", self._writer)
        self._seq: int = self._one("SELECT coalesce(max(seq), 0) FROM decision", self._writer)
        self._position: int = self._one("SELECT coalesce(max(position), 0) FROM applied", self._writer)

    def _opened(self) -> apsw.Connection:
        connection = apsw.Connection(str(self.path), vfs=self._vfs)
        connection.set_busy_timeout(5000)
        if self._vfs is not None:
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        return connection

    def _make_durable(self, connection: apsw.Connection) -> None:
        """How it writes. Said once it is known to be ours: the first of these changes the file."""
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {self._synchronous}")
        connection.execute(f"PRAGMA journal_size_limit = {2**26}")

    def _create(self) -> None:
        with self._writer:
            self._writer.execute(tables.TABLES)
            self._writer.execute(f"PRAGMA application_id = {APPLICATION}")
            self._writer.execute(f"PRAGMA user_version = {FORMAT}")
            self._writer.execute("INSERT INTO meta VALUES ('secret', ?)", (secrets.token_bytes(KEY_BYTES),))

    def open_model(self, name: str, about: bytes) -> Model:
        """The model of this name; made with `about` if there is none."""
        with said(self.path), self._writer:
            self._writer.execute("INSERT OR IGNORE INTO model (name, about) VALUES (?, ?)", (name, about))
        found: Any = self._writer.execute("SELECT number, name, about FROM model WHERE name = ?", (name,)).get
        return Model(*found)

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
            row = self._writer.execute(tables.KEY, (entry.model, entry.key)).fetchone()
            if row is not None:
                found[entry.model, str(entry.key)] = Row(*row)
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
            tables.KNOWN,
            (str(seqs),),
        ).get
        return {each[0]: each[1:] for each in msgspec.json.decode(told)}

    def _write_settled(self, entries: Sequence[Any], places: list[int], outcomes: list[Outcome]) -> None:
        for at in places:
            entry = entries[at]
            found: Any = self._writer.execute(tables.SETTLE, (str(entry.seqs),)).fetchall()
            known = {seq: (there, told) for seq, there, *told in found}
            done: list[Applied] = []
            for seq in dict.fromkeys(entry.seqs):
                there, told = known[seq]
                if not there and (entry.silence or came(*told)):
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
                self._writer.execute(tables.insert(table, width, size), values[start : start + size * width])
                start, left = start + size * width, left - size

    def _recover(self) -> None:
        """Undo, and after an error of the disk open the file anew: what the connection holds cannot be trusted."""
        with suppress(apsw.Error):
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
        if self._vfs is None:
            with suppress(apsw.Error):
                fresh = self._opened()
                self._make_durable(fresh)
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

    def _read(self, query: str, values: Any = ()) -> list[Any]:
        with self._reading:
            return self._reader.execute(query, values).fetchall()

    def add_token(self, token: Token) -> None:
        """Keep a token; one of the same name is replaced."""
        with said(self.path), self._writer:
            self._writer.execute("INSERT OR REPLACE INTO token VALUES (?, ?, ?, ?)", row_of(token))

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


def _check_log(path: Path) -> None:
    """Refuse a backup beside the log of the journal whose place it took: SQLite would mix the two."""
    log = Path(f"{path}-wal")
    if not log.exists() or not log.stat().st_size:
        return
    alone = apsw.Connection(f"{path.absolute().as_uri()}?immutable=1", flags=_LOOK)  # which does not read the log
    try:
        is_copy = alone.execute(_IS_COPY).get
    except apsw.Error:  # all of it is in the log as yet
        return
    finally:
        alone.close()
    if is_copy:
        raise InputError(
            f"{path} is a backup, and {log.name} belongs to the journal that was there before; remove {log.name} and "
            f"{path.name}-shm to go on from the backup"
        )


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
def said(path: Path) -> Iterator[None]:
    """Whatever SQLite cannot do becomes one sentence."""
    try:
        yield
    except apsw.Error as error:
        raise InputError(f"{path} cannot be used as a journal ({' '.join(str(error).split())})") from None
    except OSError as error:
        raise InputError(f"{path} cannot be written ({error.strerror})") from None
