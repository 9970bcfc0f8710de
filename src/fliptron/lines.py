"""What the text of a table is like before anybody reads it: its first line, the marks in it, and its flaws."""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from fliptron.encoding.records import is_no_number
from fliptron.encoding.schema import FIRST
from fliptron.refusals import InputError

PADDED = re.compile(r"[+-]?0\d+")
"""A whole number that was written as a name, such as 007."""
_ANSWERS = {"yes", "no", "t", "f", "y", "n"}
_COMMA, _POINT = (re.compile(rf"[+-]?\d*({mark}\d+)?([eE][+-]?\d+)?") for mark in (",", r"\."))


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
        with _rows(path) as rows:
            width = None
            for number, row in enumerate(rows, start=1):
                width = width or len(row)
                if row and len(row) != width:
                    return f"{called}: line {number} has {len(row)} values; {width} are expected"
    except UnicodeDecodeError:
        return f"{called} is not UTF-8 text; save it as UTF-8"
    except (OSError, ValueError, EOFError, csv.Error, zlib.error, InputError):
        return None
    return None


def commas_in(path: str) -> list[int]:
    """Which columns of a CSV file have decimal commas, by its first rows; see `decimal_commas`."""
    return [] if delimiter(first_line(path)) == "," else decimal_commas(_head(path))


def words_in(path: str) -> list[int]:
    """Which columns of a CSV file hold words that look like something else, by its first rows: 007, or yes and no."""
    columns = [{cell.strip() for cell in cells} for cells in zip(*_head(path), strict=False)]
    return [at for at, cells in enumerate(columns) if any(map(PADDED.fullmatch, cells)) or _are_answers(cells)]


def _are_answers(cells: set[str]) -> bool:
    found = {cell.lower() for cell in cells}
    return bool(found & _ANSWERS) and found <= {"", "true", "false", *_ANSWERS}


def decimal_commas(rows: Sequence[Sequence[str]]) -> list[int]:
    """Which columns hold numbers such as 34,5; none where another column has decimal points."""
    found = []
    for at, cells in enumerate(zip(*rows, strict=False)):
        there = [cell.strip() for cell in cells if not is_no_number(cell)]
        if any("." in cell for cell in there) and all(map(_POINT.fullmatch, there)):
            return []
        if any("," in cell for cell in there) and all(map(_COMMA.fullmatch, there)):
            found.append(at)
    return found


def _head(path: str) -> list[list[str]]:
    try:
        with _rows(path) as rows:
            return [row for row in islice(rows, 1, FIRST + 1) if row]
    except (OSError, ValueError, EOFError, csv.Error, zlib.error):
        return []  # whoever reads it will say what is wrong


@contextmanager
def _rows(path: str) -> Iterator[Any]:
    """The rows of a CSV file, also of a zipped one."""
    mark = delimiter(first_line(path))
    with gzip.open(path, "rb") if path.lower().endswith(".gz") else Path(path).open("rb") as raw:
        yield csv.reader(io.TextIOWrapper(raw, encoding="utf-8-sig", newline=""), delimiter=mark)


def delimiter(line: str) -> str:
    """What stands between the values: the commonest mark of the first line."""
    return max(",;\t|", key=re.sub('"[^"]*"', "", line).count)


def first_line(path: str) -> str:
    """The first line of a file, also of a zipped one."""
    try:
        with gzip.open(path, "rb") if path.lower().endswith(".gz") else Path(path).open("rb") as file:
            return file.readline(2**20).decode("utf-8-sig", errors="replace")
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path} cannot be read ({error})") from None
