"""What the text of a table is like before anybody reads it: where it begins, and the marks in it."""

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
_SEP = re.compile(r'"?sep=.?"?')
_ABOVE, _LONG = 50, 2**20  # lines above a header, and characters in a line
_MARKS = ",;\t|"
_ANSWERS = {"yes", "no", "t", "f", "y", "n"}
_COMMA, _POINT = (re.compile(rf"[+-]?\d*({mark}\d+)?([eE][+-]?\d+)?") for mark in (",", r"\."))


def suffix_of(path: Path) -> str:
    """How a file's name ends, but for .gz."""
    return Path(path.stem).suffix.lower() if path.suffix.lower() == ".gz" else path.suffix.lower()


def check_header(path: str, called: str) -> None:
    """There are names, and none twice: DuckDB would quietly make some up."""
    if suffix_of(Path(path)) not in (".csv", ".tsv"):
        return
    line = header_of(path)[1]
    if not line.strip():
        raise InputError(f"the first line of {called} is empty; the names of its columns are expected")
    if line.count('"') % 2:
        raise InputError(f"the name of a column of {called} goes on in another line; all names in one are expected")
    try:
        names = [name.strip().lower() for name in next(csv.reader([line], delimiter=delimiter(line)), [])]
    except csv.Error:
        return
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"{called} has two columns {twice!r}; every name may be there once")


def header_of(path: str) -> tuple[int, str]:
    """The line with the names of the columns, and how many lines stand above it; see `above`."""
    with refusing(path), bytes_of(path) as file:
        lines = [line.decode("utf-8-sig", errors="replace") for line in islice(_read(file), _ABOVE + 1)]
    at = above(lines)
    return at, lines[at] if lines else ""


def above(lines: Sequence[str]) -> int:
    """How many of a CSV file's first lines are no part of its table: comments, a title, or Excel's ``sep=;``."""
    for at, line in enumerate(lines):
        later = next((each for each in lines[at + 1 :] if each.strip() and not each.startswith("#")), "")
        if not _is_above(line, later) or not (line.strip() or at):
            return at
    return 0


def _is_above(line: str, later: str) -> bool:
    """Whether a line is none of the table's, by the first line after it that is no comment."""
    mark = delimiter(later)
    if not line.strip() or _SEP.fullmatch(line.strip()):
        return True
    plain = not any(each in line for each in _MARKS)
    return mark in later and (plain or (line.startswith("#") and line.count(mark) != later.count(mark)))


def commas_in(path: str) -> list[int]:
    """Which columns of a CSV file have decimal commas, by its first rows; see `decimal_commas`."""
    return [] if delimiter(header_of(path)[1]) == "," else decimal_commas(_head(path))


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
        with rows_of(path) as (_, rows):
            return [row for row in islice(rows, 1, FIRST + 1) if row]
    except (OSError, ValueError, EOFError, csv.Error, zlib.error):
        return []  # whoever reads it will say what is wrong


@contextmanager
def rows_of(path: str) -> Iterator[tuple[int, Any]]:
    """The rows of a CSV file from its header on, also of a zipped one, and the number of the header's line."""
    skip, line = header_of(path)
    with bytes_of(path) as raw:
        text = io.TextIOWrapper(raw, encoding="utf-8-sig", newline="")
        for _ in range(skip):
            text.readline()
        yield skip + 1, csv.reader(text, delimiter=delimiter(line))


def bytes_of(path: str) -> Any:
    """A file opened to be read, also a zipped one."""
    return gzip.open(path, "rb") if path.lower().endswith(".gz") else Path(path).open("rb")


def delimiter(line: str) -> str:
    """What stands between the values: the commonest mark of the first line."""
    return max(_MARKS, key=re.sub('"[^"]*"', "", line).count)


def first_line(path: str) -> str:
    """The first line of a file, also of a zipped one."""
    with refusing(path), bytes_of(path) as file:
        return str(file.readline(_LONG).decode("utf-8-sig", errors="replace"))


def _read(file: Any) -> Iterator[bytes]:
    while line := file.readline(_LONG):
        yield line


@contextmanager
def refusing(path: str) -> Iterator[None]:
    """A context in which a file that cannot be read is refused."""
    try:
        yield
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path} cannot be read ({error})") from None
