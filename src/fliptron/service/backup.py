"""How a journal in a file is copied while a server writes to it."""

from __future__ import annotations

import os
from pathlib import Path

import apsw

from fliptron.refusals import InputError
from fliptron.service.sqlite import APPLICATION, COPY, said


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
    with said(part):
        part.unlink(missing_ok=True)
        os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))  # it holds a secret
        source = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
        target = apsw.Connection(str(part))
        try:
            source.set_busy_timeout(5000)
            if source.execute("PRAGMA application_id").get != APPLICATION:
                raise InputError(f"{path} is not a journal")
            with target.backup("main", source, "main") as copying:
                while not copying.done:
                    copying.step(-1)
            target.execute("PRAGMA journal_mode = DELETE")
            target.execute("INSERT OR REPLACE INTO meta VALUES (?, 1)", (COPY,))
        finally:
            target.close(True)
            source.close(True)
        handle = os.open(part, os.O_RDONLY)
        os.fsync(handle)
        os.close(handle)
        os.replace(part, copy)
