"""Files written whole or not at all, and folders for them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fliptron.arrays import InputError


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A place to write to; it becomes the file when all is written, and vanishes if anything goes wrong."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield part
        os.replace(part, path)
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
