"""How much memory a learner may take: what would not fit is refused before it is made."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from fliptron.refusals import InputError

_MOST: ContextVar[int] = ContextVar("_MOST", default=4 * 2**30)  # bytes


def check_memory(what: str, numbers: int, instead: str) -> None:
    """Refuse a state of so many float64 numbers that it would not fit, before it is made."""
    most = _MOST.get()
    if numbers * 8 > most:
        raise InputError(f"{what} needs {_size(numbers * 8)}; at most {_size(most)} is allowed: use {instead}")


def _size(count: float) -> str:
    return f"{count / 2**30:.3g} GiB" if count >= 2**29 else f"{count / 2**20:.3g} MiB"


@contextmanager
def at_most(size: int) -> Iterator[None]:
    """A learner built from a file takes no more memory than the file's size gives reason for."""
    token = _MOST.set(min(_MOST.get(), 4 * size + 2**24))
    try:
        yield
    finally:
        _MOST.reset(token)
