"""What the text of a table is like before anybody reads it: its first line, the marks in it, and its flaws."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from pathlib import Path

from fliptron.refusals import InputError


def suffix_of(path: Path) -> str:
    """How a file's name ends, but for .gz."""
    return Path(path.stem).suffix.lower() if path.suffix.lower() == ".gz" else path.suffix.lower()


def check_header(path: str, called: str) -> None:
    """There are names, and none twice: DuckDB would quietly make some up."""
    if suffix_of(Path(path)) not in (".csv", ".tsv"):
        return
    line = first_line(path)
    if not line.strip():
        raise InputError(f"the first line of {called} is empty; the names of its columns are expected")
    try:
        names = [name.strip().lower() for name in next(csv.reader([line], delimiter=delimiter(line)), [])]
    except csv.Error:
        return
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"{called} has two columns {twice!r}; every name may be there once")


def flaw(path: str, called: str) -> str | None:
    """What is wrong with a CSV file, if it is not UTF-8 or its lines are not of one length."""
    if suffix_of(Path(path)) not in (".csv", ".tsv"):
        return None
    try:
        mark = delimiter(first_line(path))
        with gzip.open(path, "rb") if path.lower().endswith(".gz") else Path(path).open("rb") as raw:
            file = io.TextIOWrapper(raw, encoding="utf-8-sig", newline="")
            width = None
            for number, row in enumerate(csv.reader(file, delimiter=mark), start=1):
                width = width or len(row)
                if row and len(row) != width:
                    return f"{called}: line {number} has {len(row)} values; {width} are expected"
    except UnicodeDecodeError:
        return f"{called} is not UTF-8 text; save it as UTF-8"
    except (OSError, ValueError, EOFError, csv.Error, zlib.error, InputError):
        return None
    return None


def delimiter(line: str) -> str:
    """What stands between the values: the commonest mark of the first line."""
    return max(",;\t|", key=line.count)


def first_line(path: str) -> str:
    """The first line of a file, also of a zipped one."""
    try:
        with gzip.open(path, "rb") if path.lower().endswith(".gz") else Path(path).open("rb") as file:
            return file.readline(2**20).decode("utf-8-sig", errors="replace")
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path} cannot be read ({error})") from None
