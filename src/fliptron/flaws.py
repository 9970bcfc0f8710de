"""What is wrong with a file that cannot be read: the line, and what is expected there."""

from __future__ import annotations

import csv
import json
import re
import zlib
from collections.abc import Iterator
from pathlib import Path

from fliptron.lines import bytes_of, rows_of, suffix_of
from fliptron.refusals import InputError

_KIND = re.compile(r'Error when converting column "(.*?)"\. Could not convert string "(.*?)" to \'(\w+)\'', re.DOTALL)
_LINE = re.compile(r"CSV Error on Line: (\d+)")
_FILE = re.compile(r"^\s*file = (.*)$", re.MULTILINE)


def flaw(path: str, called: str) -> str | None:
    """What is wrong with a CSV or JSON file, if it is not UTF-8 or its lines are not what they must be."""
    kind = suffix_of(Path(path))
    try:
        if kind in (".csv", ".tsv"):
            return _wrong_row(path, called) or _wrong_quote(path, called)
        return _wrong_object(path, called) if kind in (".jsonl", ".ndjson", ".json") else None
    except UnicodeDecodeError:
        return not_utf8(path, called)
    except (OSError, ValueError, EOFError, csv.Error, zlib.error, InputError):
        return None


def not_utf8(path: str, called: str) -> str:
    """Which line of a file is no text."""
    for number, line in enumerate(_lines_of(path), start=1):
        try:
            line.decode("utf-8-sig")
        except UnicodeDecodeError:
            return f"{called} is not UTF-8 text; save it as UTF-8 (line {number} is the first that is not)"
    return f"{called} is not UTF-8 text; save it as UTF-8"


def of_another_kind(error: str) -> str | None:
    """What the database says of a value that does not fit its column, in plain words: the sentence's end."""
    kind, line, file = (pattern.search(error) for pattern in (_KIND, _LINE, _FILE))
    if kind is None or line is None:
        return None
    column, value, wanted = kind.groups()
    expected = {"BIGINT": "a whole number", "DOUBLE": "a number", "BOOLEAN": "true or false"}.get(
        wanted, wanted.lower()
    )
    where = "" if file is None else f" of {file[1]}"
    return f"column {column!r} holds {value!r} in line {line[1]}{where}; {expected} is expected, as in other lines"


def _wrong_row(path: str, called: str) -> str | None:
    with rows_of(path) as (start, rows):
        width = None
        for number, row in enumerate(rows, start=start):
            width = width or len(row)
            if row and len(row) != width:
                return f"{called}: line {number} has {len(row)} values; {width} are expected"
    return None


def _wrong_quote(path: str, called: str) -> str | None:
    at = next((number for number, line in enumerate(_lines_of(path), start=1) if b'\\"' in line), None)
    return None if at is None else f'{called}: line {at} has \\" within a value; a quote within quotes is doubled'


def _wrong_object(path: str, called: str) -> str | None:
    what = "a JSON object of names and values is expected in every line"
    for number, line in enumerate(_lines_of(path), start=1):
        text = line.decode("utf-8-sig" if number == 1 else "utf-8").strip()
        if not text:
            continue
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return f"{called}: line {number} is not JSON; {what}"
        if not isinstance(value, dict):
            return f"{called}: line {number} is {'nothing' if value is None else f'a {type(value).__name__}'}; {what}"
    return None


def _lines_of(path: str) -> Iterator[bytes]:
    with bytes_of(path) as file:
        yield from file
