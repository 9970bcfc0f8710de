"""Files written whole or not at all, and folders for them."""

from __future__ import annotations

import os
import platform
import re
import shutil
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fliptron.refusals import InputError

_DAY = 86_400.0


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A place to write to; it becomes the file when all is on the disk, and vanishes if anything goes wrong.

    Any number of threads and processes may write one path: the last wins, and a reader never sees half of a file. A
    symbolic link stays a link, a file that was there keeps its mode, and what a killed writer left is removed.
    """
    path = Path(os.path.realpath(path))
    part = path.with_name(f".{path.name}.{_writer()}.{uuid.uuid4().hex[:8]}.part")
    try:
        _remove_orphans(path)
        yield part
        _sync(part)
        with suppress(FileNotFoundError):
            shutil.copymode(path, part)
        os.replace(part, path)
        _sync(path.parent)
    except OSError as error:
        raise InputError(f"{path} cannot be written ({error.strerror})") from None
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file so that nobody ever sees half of it."""
    with whole_file(path) as part:
        part.write_bytes(content.encode() if isinstance(content, str) else content)


def make_folder(folder: Path) -> Path:
    """Make a folder and those above it, or refuse."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder} cannot be made ({error.strerror})") from None
    return folder


def writable_folder(path: str | os.PathLike[str]) -> Path:
    """See that a folder can be written or made, before any work is done; nothing is made yet."""
    folder = Path(path)
    there = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        why = "it is not a folder" if not there.is_dir() else "permission denied"
        raise InputError(f"{folder} cannot be written ({there}: {why}); a writable folder is expected")
    return folder


def writable_file(path: str | os.PathLike[str]) -> Path:
    """See that a file can be written, before any work is done; the folder that it goes to is made."""
    file = Path(path)
    if file.is_dir():
        raise InputError(f"{file} is a folder; the name of a file is expected")
    make_folder(writable_folder(file.parent))
    return file


def _writer() -> str:
    """This machine and process, in letters that any file name may have."""
    return f"{re.sub('[^A-Za-z0-9-]', '-', platform.node()) or 'here'}.{os.getpid()}"


def _remove_orphans(path: Path) -> None:
    """Remove what processes of this machine that no longer live have left of this file, and anything a day old."""
    machine, _, _ = _writer().rpartition(".")
    pattern = re.compile(rf"\.{re.escape(path.name)}\.(?P<machine>.+)\.(?P<pid>\d+)\.[0-9a-f]{{8}}\.part")
    for each in path.parent.glob(f".{_escaped(path.name)}.*.part"):
        found = pattern.fullmatch(each.name)
        if found is None:
            continue
        with suppress(OSError):
            dead = found["machine"] == machine and not _lives(int(found["pid"]))
            if dead or time.time() - each.stat().st_mtime > _DAY:
                each.unlink()


def _escaped(name: str) -> str:
    return re.sub(r"([*?[])", r"[\1]", name)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it lives, and is somebody else's
        pass
    return True


def _sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk; not every file system can."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError:
        if path.is_file():
            raise
    finally:
        os.close(handle)
