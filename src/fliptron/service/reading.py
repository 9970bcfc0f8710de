"""What a journal in PostgreSQL is asked; by any thread, over a connection that is made again when it breaks."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Any

import psycopg

from fliptron.service import election, statements
from fliptron.service.lookups import Lookups
from fliptron.service.store import (
    Keep,
    Model,
    StoreError,
    Token,
    row_of,
    undamaged,
)

_BATCH = 1000
_PATIENCE = 3  # seconds for a connection to be made
_PAUSED = 5  # seconds after which the server ends a transaction whose process does not go on, and its locks with it


class Reader(Lookups):
    """The look-ups of a journal in a database.

    Parameters
    ----------
    address
        postgresql://user@host:port/database.
    """

    words = statements

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

    def _read(self, query: str, values: Any = ()) -> list[Any]:
        query = query.replace("?", "%s")
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
        known = "SELECT number, name, about FROM model WHERE name = ?"
        found = self._read(known, (name,))
        if not found:
            self._read("INSERT INTO model (name, about) VALUES (?, ?) ON CONFLICT DO NOTHING", (name, about))
            found = self._read(known, (name,))
        return Model(*found[0])

    def newest(self, model: int, than: int = 0) -> tuple[int, Keep] | None:
        """A model's newest state and its number, which grows with every one; None if there is none with a higher one
        than this, or if it was damaged."""
        found = self._read(statements.NEWEST, (model, than))
        whole = undamaged(model, [each[1:] for each in found])
        return (found[0][0], whole[0]) if whole else None

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
