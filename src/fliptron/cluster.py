"""The workers of a Dask cluster, as an executor."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from fliptron.refusals import InputError, missing

_PATIENCE = 10.0  # seconds a scheduler has to answer


@contextmanager
def workers(address: str) -> Iterator[Executor]:
    """The workers behind a scheduler, which is asked three times for what a lost worker did not finish."""
    try:
        from distributed import Client  # noqa: PLC0415  # slow to load, and optional
    except ImportError:
        raise missing("Dask", "cluster") from None
    _check_scheduler(address)
    try:
        client: Any = Client(address, timeout=f"{_PATIENCE:.0f}s")  # type: ignore[no-untyped-call]
    except Exception as error:  # whatever answers there instead
        raise InputError(f"no Dask scheduler answers at {address} ({type(error).__name__})") from None
    with client:
        yield client.get_executor(retries=3)


def _check_scheduler(address: str) -> None:
    """See that a Dask scheduler answers, before Dask's own client waits for minutes or for exabytes.

    Either side of a Dask connection first sends how many frames are to come, in eight bytes: a small number.
    """
    parts = urlsplit(address if "://" in address else f"tcp://{address}")
    if parts.scheme != "tcp":
        return
    try:
        with socket.create_connection((parts.hostname or "", parts.port or 8786), timeout=_PATIENCE) as there:
            there.settimeout(_PATIENCE)
            heard = there.recv(8)
    except (OSError, ValueError) as error:
        raise InputError(f"no Dask scheduler answers at {address} ({error})") from None
    if len(heard) < 8 or int.from_bytes(heard, "little") > 1000:
        raise InputError(f"what answers at {address} is not a Dask scheduler")
