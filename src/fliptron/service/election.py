"""Who learns: one process, by a lock that PostgreSQL lends to a session, and an epoch that fences out the one before.

The lock goes back when the session ends, however the process does. One that was only paused, or whose machine has
vanished, still has its session; so whoever waits looks when the holder last spoke, and has the server end a session
that was silent for `SILENCE` seconds. The holder speaks several times in that time, so this is a lease, kept by the
server's clock alone. Should the old holder wake up, its session is gone and its transaction with it. And if anything
else went wrong, the epoch would stop it: every transaction of the office locks the row with the epoch and compares.
"""

from __future__ import annotations

import os
import platform
from typing import Any
from zlib import crc32

from fliptron.service.store import FencedError

MARK = 0x464C4950
"""What our locks are known by."""
SILENCE = 1.0
"""Seconds without a word after which the holder of the office is deposed."""


def name() -> str:
    """What this process is called in the database, for operators."""
    return f"fliptron {os.getpid()} at {platform.node()}"[:63]


def lock_of(connection: Any) -> int:
    """The lock of the tables that a connection sees: services in several schemas do not disturb each other."""
    (schema,) = connection.execute("SELECT current_schema()").fetchone()
    return crc32(str(schema).encode()) - 2**31  # a lock is two whole numbers of 32 bits, with a sign


def take(connection: Any, lock: int) -> int | None:
    """Take the office if it is free: its epoch, which is higher than any before; else None."""
    (free,) = connection.execute("SELECT pg_try_advisory_lock(%s, %s)", (MARK, lock)).fetchone()
    if not free:
        return None
    (epoch,) = connection.execute(
        "UPDATE office SET epoch = epoch + 1, holder = %s, since = clock_timestamp() RETURNING epoch", (name(),)
    ).fetchone()
    return int(epoch)


def depose(connection: Any, lock: int) -> bool:
    """End the session of a holder who has been silent for too long; whether there was one.

    A session in which the server works is not silent, unless all it does is wait for the holder to read.
    """
    found = connection.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE locktype = 'advisory' "
        "AND classid = %s::bigint::oid AND objid = %s::bigint::oid AND objsubid = 2 AND granted "
        "AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) "
        "AND (state LIKE 'idle%%' OR wait_event_type = 'Client') "
        "AND state_change < clock_timestamp() - make_interval(secs => %s)",
        (MARK, lock % 2**32, SILENCE),
    ).fetchall()
    return bool(found)


def confirm(cursor: Any, epoch: int | None) -> None:
    """Refuse unless we hold the office; nobody else can take it until the transaction ends."""
    found = cursor.execute("SELECT epoch FROM office FOR SHARE").fetchone() if epoch is not None else None
    if found is None or found[0] != epoch:
        raise FencedError("another process learns now; nothing was kept")
