"""What a journal in PostgreSQL is asked; by any thread, over a connection that is made again when it breaks."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import psycopg

from fliptron.service import election, statements
from fliptron.service.store import (
    Flag,
    Keep,
    Lesson,
    Model,
    Row,
    StoreError,
    Token,
    lesson_of,
    row_of,
    token_of,
    undamaged,
)

_BATCH = 1000
_PATIENCE = 3  # seconds for a connection to be made
_PAUSED = 5  # seconds after which the server ends a transaction whose process does not go on, and its locks with it


class Reader:
    """The look-ups of a journal in a database.

    Parameters
    ----------
    address
        postgresql://user@host:port/database.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self._reading = threading.Lock()
        self._reader: Any = None
        self._size: dict[str, int] = {}

    def _connect(self) -> Any:
        connection = psycopg.connect(
            self._address, autocommit=True, connect_timeout=_PATIENCE, application_name=election.name(),
            tcp_user_timeout=5000,
        )  # fmt: skip
        found = connection.execute("SHOW synchronous_commit").fetchone()
        if found is not None and found[0] == "off":  # an answer must mean that it is on the disk
            connection.execute("SET synchronous_commit = on")
        connection.execute(f"SET idle_in_transaction_session_timeout = '{_PAUSED}s'")
        return connection

    def _read(self, query: Any, values: Any = ()) -> list[Any]:
        with self._reading:
            try:
                return self._rows(query, values)
            except psycopg.OperationalError:  # the server may have been started anew
                with suppress(psycopg.Error):
                    self._reader.close()
            try:
                self._reader = self._connect()
                return self._rows(query, values)
            except psycopg.Error as error:
                raise StoreError(f"the database cannot be read now ({told(error)}); try again") from error

    def _rows(self, query: Any, values: Any) -> list[Any]:
        with self._reader.cursor(binary=True) as cursor:
            cursor.execute(query, values)
            found: list[Any] = cursor.fetchall() if cursor.description is not None else []
            return found

    def open_model(self, name: str, about: bytes) -> Model:
        """The model of this name; made with `about` if there is none."""
        known = "SELECT number, name, about FROM model WHERE name = %s"
        found = self._read(known, (name,))
        if not found:
            self._read("INSERT INTO model (name, about) VALUES (%s, %s) ON CONFLICT DO NOTHING", (name, about))
            found = self._read(known, (name,))
        return Model(*found[0])

    def models(self) -> list[Model]:
        """All models."""
        return [Model(*each) for each in self._read("SELECT number, name, about FROM model ORDER BY number")]

    def find(self, model: int, seq: int) -> Row | None:
        """One decision."""
        if not 0 <= seq < 2**63:
            return None
        found = self._read(f"SELECT {statements.COLUMNS} FROM decision WHERE seq = %s AND model = %s", (seq, model))
        return Row(*found[0]) if found else None

    def find_key(self, model: int, key: str) -> Row | None:
        """The decision with a key."""
        found = self._read(statements.KEYS, ([model], [key]))
        return Row(*found[0]) if found else None

    def snapshots(self, model: int) -> list[Keep]:
        """The states that are kept, the newest first; one that was damaged is left out."""
        found = self._read(
            "SELECT position, seq, content, fingerprint, sha256 FROM state WHERE model = %s ORDER BY number DESC",
            (model,),
        )
        return undamaged(model, found)

    def newest(self, model: int, than: int = 0) -> tuple[int, Keep] | None:
        """A model's newest state and its number, which grows with every one; None if there is none with a higher one
        than this, or if it was damaged."""
        found = self._read(
            "SELECT number, position, seq, content, fingerprint, sha256 FROM state WHERE model = %s AND number > %s "
            "ORDER BY number DESC LIMIT 1",
            (model, than),
        )
        whole = undamaged(model, [each[1:] for each in found])
        return (found[0][0], whole[0]) if whole else None

    def rows(self, model: int, after: int, limit: int) -> list[Row]:
        """Decisions with seq > after, in order."""
        found = self._read(
            f"SELECT {statements.COLUMNS} FROM decision WHERE seq > %s AND model = %s ORDER BY seq LIMIT %s",
            (after, model, limit),
        )
        return [Row(*each) for each in found]

    def lessons(self, model: int, after: int) -> Iterator[Lesson]:
        """What was learnt at positions > after, in order."""
        while True:
            found = self._read(statements.LESSONS, (model, after, _BATCH))
            for each in found:
                lesson = lesson_of(Row(*each[:14]), *each[14:])
                yield lesson
                after = lesson.applied.position
            if len(found) < _BATCH:
                return

    def flags(self, model: int) -> list[Flag]:
        """Every time that a source went into quarantine, or out of it, in order."""
        return [Flag(model, *flag) for flag in self._read(statements.FLAGS, (model,))]

    def flagged(self, model: int) -> dict[str, Flag]:
        """The last word on every source that was ever in quarantine."""
        return {flag[0]: Flag(model, *flag) for flag in self._read(statements.FLAGGED, (model,))}

    def export(self, model: int) -> Iterator[list[tuple[Row, int, float, int | None]]]:
        """Decisions whose bit was learnt, in order, with bit, its time and the auditor's bit, batch by batch."""
        after = 0
        while found := self._read(statements.EXPORT, (after, model, _BATCH * 10)):
            after = found[-1][13]
            yield [(Row(*each[:14]), *each[14:]) for each in found]

    def tokens(self) -> list[Token]:
        """All tokens."""
        found = self._read("SELECT name, digest, scopes, models FROM token ORDER BY name")
        return [token_of(*each) for each in found]

    def add_token(self, token: Token) -> None:
        """Keep a token; one of the same name is replaced."""
        self._read(statements.TOKEN, row_of(token))

    def size(self) -> dict[str, int]:
        """Bytes of its parts, as `measure` found them."""
        return self._size

    def measure(self) -> None:
        """Find out how large the parts are."""
        self._size = dict(self._read(statements.SIZES))


def told(error: Exception) -> str:
    """What went wrong, in one line."""
    return " ".join(str(error).split()) or type(error).__name__
