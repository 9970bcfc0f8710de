"""Data sets in files: the published ones, checked byte by byte, and a user's own."""

from __future__ import annotations

import csv
import gzip
import hashlib
import os
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import platformdirs

from fliptron.arrays import Array
from fliptron.encoding.records import Table, as_column, is_missing, word_of
from fliptron.flaws import not_utf8
from fliptron.leaks import recoded_in
from fliptron.lines import PADDED, decimal_commas, delimiter, header_of
from fliptron.refusals import InputError, missing
from fliptron.tables import NAMES, TableFile, looks_like_a_log, parts_of

_LABEL = ("label", "class", "target", "y")  # what a column of right labels may be called
_WHOLE = re.compile(r"[+-]?\d+")
_MOST, _EXACT = 2**63, 2**53  # beyond these, whole numbers and floats do not tell every label from the next
Content = tuple[Any, Any]
"""Examples and labels, as read."""


class File(NamedTuple):
    """One published file. The checksum is of its content, since gzip wrappers differ between mirrors."""

    name: str
    sha256: str
    url: str | None


def folders() -> list[Path]:
    """Where data files are looked for: `FLIPTRON_DATA` first, then the download cache."""
    given = os.environ.get("FLIPTRON_DATA")
    return [*([Path(given)] if given else []), cache()]


def cache() -> Path:
    """Where downloads, and what is made from them, are kept."""
    return Path(platformdirs.user_cache_dir("fliptron"))


def find(dataset: str, file: File) -> Path | None:
    """The file on this machine, or None."""
    return next((path for folder in folders() if (path := folder / dataset / file.name).is_file()), None)


def fetch(dataset: str, file: File, obtain: str) -> bytes:
    """The content of a published file: found, or downloaded once, and always checked."""
    path = find(dataset, file)
    if path is None:
        if file.url is None:
            raise InputError(f"{dataset}/{file.name} is not in {_or(folders())}; {obtain}")
        try:
            import pooch

            path = Path(pooch.retrieve(file.url, known_hash=None, fname=file.name, path=cache() / dataset))
        except ImportError:
            raise missing("pooch, which downloads data,", "lab") from None
        except OSError as error:
            raise InputError(
                f"{dataset}/{file.name} is not in {_or(folders())} and could not be downloaded "
                f"({type(error).__name__}); {obtain}"
            ) from None
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise InputError(f"{path} is corrupt ({error}); delete it and try again") from None
    found = hashlib.sha256(content).hexdigest()
    if found != file.sha256:
        raise InputError(
            f"{path} is corrupt: its content has SHA-256 {found[:12]}…, {file.sha256[:12]}… is expected; "
            "delete it and try again"
        )
    return content


def parse_idx(content: bytes) -> Array:
    """An array in the IDX format of MNIST: two zero bytes, type 8 (bytes), rank, sizes, values."""
    shape = np.frombuffer(content, dtype=">u4", count=content[3], offset=4)
    return np.frombuffer(content, dtype=np.uint8, offset=4 + 4 * content[3]).reshape(shape.astype(int))


def read(path: Path, label: str | None = None) -> Content:
    """A user's own file of numbers: CSV, whose label is in the column named (see `read_csv`), `.npz` or libsvm."""
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        raise InputError(f"{path} ends in {path.suffix!r}; one of {', '.join(filter(None, READERS))} is expected")
    with _refusing(path):
        if reader is read_csv:
            return read_csv(path, label)
        if label is not None:
            raise InputError(f"label is {label!r}, but only a table has a column that can be named; this is none")
        return reader(path)


def read_csv(path: Path, label: str | None = None) -> Content:
    """Numbers separated by commas or the like, and a label, which may be a word; with a first line of names or without.

    The label is in the column named, or in one that is called like it, or in the last one.
    """
    names, lines = _lines(path, label)
    at = names.index(_chosen(names, label))
    for number, row in lines:
        bad = next((cell for j, cell in enumerate(row) if j != at and not _is_number(cell)), None)
        if bad is not None:
            raise InputError(f"line {number} holds {bad!r}; every value but the label must be a number")
        if not row[at]:
            raise InputError(f"line {number} has no label")
    X = np.array([row[:at] + row[at + 1 :] for _, row in lines], dtype=np.float64)
    return X, _labels([row[at] for _, row in lines])


def read_records(path: Path, label: str | None = None) -> tuple[Table, Array]:
    """A table with words, gaps and raw scales, and the right label of each row.

    The label is in the column named, or in one that is called like it, or in the last one.
    """
    with _refusing(path):
        if not path.exists() and not parts_of(str(path)):
            raise FileNotFoundError
        if path.suffix.lower() == ".csv" and path.is_file():
            names, lines = _lines(path, label)
            cells = zip(*(row for _, row in lines), strict=True)
            columns = {name: as_column(list(column)) for name, column in zip(names, cells, strict=True)}
            at = _chosen(names, label)
            columns = {name: _truths(column, name == at) for name, column in columns.items()}
            first = lines[0][0]
        else:
            file = TableFile(str(path))
            file.keep_words([_chosen(file.columns, label)])
            parts = list(file.batches(file.columns))
            if not parts:
                raise InputError("the file is empty; rows with a label are expected")
            columns = {name: np.concatenate([part.columns[name] for part in parts]) for name in file.columns}
            first = 0
        chosen = _chosen(list(columns), label)
        y = columns.pop(chosen)
        if not columns:
            raise InputError(f"there is no column besides {chosen!r}; at least one feature is expected")
        gaps = [is_missing(value) for value in y.tolist()]
        if any(gaps):
            raise InputError(f"line {first + gaps.index(True)} has no label in column {chosen!r}")
        if y.dtype.kind == "f" and np.abs(y).max() >= _EXACT:
            what = f"column {chosen!r} holds {np.abs(y).max():.15g}"
            raise InputError(f"{what}, and numbers so large are not told from the next ones; words are expected there")
        return Table(columns, y.size), _classes(y)


def without_leaks(table: Table, y: Array, kinds: Mapping[str, str] | None) -> dict[str, str]:
    """The kinds of columns that somebody told; those that are the label in other words are left out."""
    told, leaks = dict(kinds or {}), recoded_in(table.columns, y)
    asked = next((name for name in leaks if told.get(name, "unused") != "unused"), None)
    if asked is not None or len(leaks) == len(table.columns):
        what = "column " + repr(asked) if asked is not None else "every other column"
        raise InputError(f"{what} holds the label in other words in every row, so it cannot describe a row")
    return told | dict.fromkeys(leaks, "unused")


def _chosen(names: list[str], label: str | None) -> str:
    """The column of right labels: the one named, or one that is called like it, or the last."""
    if looks_like_a_log(names, label):
        helps = label is None and not all(looks_like_a_log(names, name) for name in names)
        bits = ", ".join(repr(name) for name in names if name.lower() in NAMES["bit"])
        raise InputError(
            "this is a log of rounds, with bits and the labels that were played, not a table with the right label of "
            "every row; estimate, learn and evaluate read logs (if it is a table, "
            f"{'name the column of right labels' if helps else f'call {bits} otherwise, as bits are called so'})"
        )
    if label is not None and label not in names:
        raise InputError(f"no column is called {label!r}; there are {', '.join(names)}")
    found = label or next((name for name in names if name.lower() in _LABEL), names[-1])
    if label is None and found.lower() in NAMES["bit"]:
        raise InputError(
            f"the last column is {found!r}, which is what the bits of a log are called: if this is a log of rounds, "
            "estimate, learn and evaluate read it, told which column holds the label that was played; if it is a "
            f"table, name the column of right labels; there are {', '.join(names)}"
        )
    return found


def _lines(path: Path, label: str | None = None) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """The names of a CSV file's columns, and its lines with their numbers."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        skip, first = header_of(str(path))
        for _ in range(skip):
            file.readline()
        mark = delimiter(first)
        rows = csv.reader(file, delimiter=mark)
        lines = [(number, [cell.strip() for cell in row]) for number, row in enumerate(rows, start=skip + 1) if row]
    names: list[str] = []
    if lines and (label in lines[0][1] or _is_header(lines[0][1], [row for _, row in lines[1:]])):
        names = lines.pop(0)[1]
    if not lines:
        raise InputError("the file is empty; rows with a label are expected")
    width = len(names or lines[0][1])
    for number, row in lines:
        if len(row) != width or width < 2:
            expected = f"{width}" if width > 1 else "at least 2"
            raise InputError(f"line {number} has {len(row)} values; {expected} are expected")
    for at in decimal_commas([row for _, row in lines]) if mark != "," else ():
        for _, row in lines:
            row[at] = row[at].replace(",", ".")
    lower = [name.lower() for name in names]
    twice = next((name for name in names if lower.count(name.lower()) > 1), None)
    if twice is not None:
        raise InputError(f"two columns are called {twice!r}; every name may be there once")
    return names or [f"x{j}" for j in range(width)], lines


def read_npz(path: Path) -> Content:
    """Arrays X and y; or y and the CSR arrays data, indices, indptr and shape of `scipy.sparse.save_npz`."""
    with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
        names = set(file.files)
        if {"X", "y"} <= names:
            return file["X"], file["y"]
        if {"data", "indices", "indptr", "shape", "y"} <= names:
            if "format" in names and file["format"].item() not in (b"csr", "csr"):
                raise InputError(f"the file holds a {file['format'].item()!r} matrix; b'csr' is expected")
            import scipy.sparse as sp

            return sp.csr_array((file["data"], file["indices"], file["indptr"]), shape=file["shape"]), file["y"]
    raise InputError(f"the file holds {sorted(names)}; arrays X and y (or y and a CSR matrix's) are expected")


def read_svmlight(path: Path) -> Content:
    """`label index:value …`, one example per line."""
    if not path.read_bytes().strip():
        raise InputError("the file is empty; lines of `label index:value …` are expected")
    try:
        from sklearn.datasets import load_svmlight_file
    except ImportError:
        raise missing("scikit-learn, which reads libsvm files,", "lab") from None
    return load_svmlight_file(path)  # type: ignore[no-any-return]


READERS: dict[str, Callable[[Path], Content]] = {
    ".csv": read_csv,
    ".npz": read_npz,
    ".svm": read_svmlight,
    ".libsvm": read_svmlight,
    ".svmlight": read_svmlight,
    ".txt": read_svmlight,
    "": read_svmlight,
}


@contextmanager
def _refusing(path: Path) -> Iterator[None]:
    """Whatever goes wrong while reading is said of the file, in one sentence."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except FileNotFoundError:
        raise InputError(f"{path} does not exist") from None
    except UnicodeDecodeError:
        raise InputError(not_utf8(str(path), str(path))) from None
    except Exception as error:  # whatever a damaged or foreign file can raise
        raise InputError(f"{path} cannot be read ({' '.join(str(error).split())})") from None


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell  # which Python's own numbers may have


def _is_header(first: list[str], rest: list[list[str]]) -> bool:
    """Names instead of numbers; or, above labels that are numbers, a label that is none."""
    if len(first) > 1 and not all(map(_is_number, first[:-1])):
        return not any(map(_is_number, first[:-1]))
    return not _is_number(first[-1]) and bool(rest) and all(_is_number(row[-1]) for row in rest)


def _labels(cells: list[str]) -> Array:
    """Numbers where all are, whole where they can be; the words themselves otherwise, as 007 or forty digits are."""
    if not all(map(_is_number, cells)) or any(map(PADDED.fullmatch, cells)):
        return np.array(cells)
    if all(map(_WHOLE.fullmatch, cells)):
        numbers = [int(cell) if len(cell) < 25 else _MOST for cell in cells]
        return np.array(numbers if max(map(abs, numbers)) < _MOST else cells)
    values = np.array(cells, dtype=np.float64)
    if not np.isfinite(values).all():
        return values
    if np.abs(values).max() >= _EXACT:
        return np.array(cells)
    return values.astype(np.int64) if (values == np.floor(values)).all() else values


def _classes(y: Array) -> Array:
    """Labels of a table as they are in one without types: words for days and times, whole numbers for 3.0."""
    if y.dtype.kind == "f":
        return y.astype(np.int64) if (y == np.floor(y)).all() else y
    if y.dtype.kind not in "OM" or any(isinstance(each, bool | int | float) for each in y.tolist()):
        return y
    return _labels([word_of(each) for each in y.tolist()])


def _truths(column: Array, is_label: bool) -> Array:
    """Truth values where all words of a CSV file's column are some, as in a zipped one; gaps are None."""
    yes, no = (("true",), ("false",)) if is_label else (("true", "yes", "t"), ("false", "no", "f"))
    known = {word: word.lower() in yes for word in set(column.tolist()) if word}
    if not known or any(word.lower() not in (*yes, *no) for word in known):
        return column
    return as_column([known.get(word) for word in column.tolist()])


def _or(paths: list[Path]) -> str:
    return " or ".join(map(str, paths))
