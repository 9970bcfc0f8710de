"""Tables in files: CSV, Parquet or JSON lines, also many of them or standard input, read in batches by DuckDB."""

from __future__ import annotations

import codecs
import glob
import json
import os
import re
import shutil
import sys
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from fliptron.encoding.records import Table
from fliptron.flaws import flaw, of_another_kind
from fliptron.lines import (
    bytes_of,
    check_header,
    commas_in,
    delimiter,
    first_line,
    header_of,
    refusing,
    suffix_of,
    words_in,
)
from fliptron.refusals import InputError, missing

NAMES: Mapping[str, tuple[str, ...]] = {
    "label": ("label", "action", "choice", "arm", "variant", "shown", "item", "decision"),
    "bit": ("bit", "click", "clicked", "reward", "feedback", "is_click", "correct", "converted", "success"),
    "probability": ("probability", "propensity", "prob", "pscore", "action_prob", "action_probability", "p"),
    "greedy": ("greedy", "greedy_label", "recommended"),
    "margin": ("margin",),
    "truth": ("truth", "true_label", "y_true", "right_label"),
}
"""What a column of a log may be called by what it says, best first."""
BATCH = 2048 * 20
"""Rows in a batch: a whole number of DuckDB's vectors."""
_READERS = {
    **dict.fromkeys((".csv", ".tsv"), "read_csv"),
    ".parquet": "read_parquet",
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), "read_json"),
}
_WHOLE = 200 * 2**20  # bytes of CSV up to which the whole file tells a column's type
_PLAIN = {
    "TIMESTAMP WITH TIME ZONE": "make_timestamp(epoch_us({}))",  # the moment, as UTC's clocks showed it
    "HUGEINT": "CAST({} AS VARCHAR)",  # no number of NumPy's: labels would lose their last digits
    "UHUGEINT": "CAST({} AS VARCHAR)",
    "BIGNUM": "CAST({} AS VARCHAR)",
}
_MOMENTS = ("DATE", "TIME", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE")
_NUMBERED = re.compile(r"(.+)_\d+")
_TALK = ("Possible", "*", "Original Line", "LINE", "This", "Try", "^")


class Spool:
    """A folder that is gone when nobody holds it any more."""

    def __init__(self) -> None:
        self.name = tempfile.mkdtemp(prefix="fliptron-")
        weakref.finalize(self, shutil.rmtree, self.name, ignore_errors=True)


class Made(NamedTuple):
    """A table that was made from a file of another form."""

    folder: Spool
    paths: list[str]
    query: str
    """What stands for the table in a query; ? stands for the paths."""
    roles: dict[str, str]
    """Which column says what."""
    labels: list[Any] | None
    """The labels that could be played, where the file says it."""
    besides: tuple[str, ...]
    """Columns that are neither features nor have a role."""
    form: str = ""
    """Which form all of it had, if it was one."""
    beyond: tuple[str, ...] = ()
    """What it says that no table has room for."""
    feedback: Mapping[str, Any] | None = None
    """The `bandit_feedback` that it was."""


class TableFile:
    """A table in one or many files.

    Parameters
    ----------
    name
        A .csv, .tsv, .parquet or .jsonl file, also with .gz behind; a folder or a pattern (``day-*.parquet``) of such
        files, read in the order of their names; or ``-`` for standard input.
    made
        The table that was made from it, if it has another form.
    """

    def __init__(self, name: str, made: Made | None = None) -> None:
        self.name = name
        self._names: dict[str, str] = {}
        self._duckdb = duckdb()
        if made is None:
            self._paths, self._spool = found_files(name)
            with self._renaming():
                self._paths = self._without_marks()
                for path in self._paths:
                    check_header(path, self._called(path))
                self._source = _reader(name, self._paths)
        else:
            self._paths, self._spool, self._source = made.paths, made.folder, made.query
        self._asked = [[glob.escape(path) for path in self._paths]]  # a * in a file's name is only a *
        self.kinds = described = self._described()
        """What the database takes its columns for."""
        self.columns = list(described)
        """The names of its columns."""
        how = {each: _PLAIN[kind] for each, kind in described.items() if kind in _PLAIN}
        if "read_csv(" in self._source:  # spaces around a word are those after a comma, or fill its column
            how |= {each: "trim({})" for each, kind in described.items() if kind == "VARCHAR"}
        if "decimal_separator" in self._source:  # numbers with gaps that are words, such as NA, are words as yet
            with_commas = (self.columns[at] for at in commas_in(self._paths[0]) if at < len(described))
            how |= {each: "replace(trim({}), ',', '.')" for each in with_commas if described[each] == "VARCHAR"}
        self._read, self._how = self._source, how
        self._as_written({each for each, kind in described.items() if kind == "TIME"})  # 22:00, not 22:00:00
        if made is None and self.columns == ["json"]:  # what DuckDB makes of other values than objects
            self._refuse_flaws()
            what = "something else" if self.rows("SELECT 1 FROM {} LIMIT 1") else "no rows"
            raise InputError(f"{self._title} holds {what}; a JSON object of names and values is expected in every line")
        self.mixed = {name for name, kind in described.items() if kind == "JSON"}
        """Those whose values are of several kinds, each as JSON writes it."""

    def _described(self) -> dict[str, str]:
        """What the database takes each column for.

        It takes JSON lines for what the first 20,480 are, and rounds what comes later, 41.5 where numbers were whole:
        so all are looked at, once if they say the same. And it writes clock times and ids in its own way.
        """
        query, some = "DESCRIBE SELECT * FROM {}", self._source
        self._source = some.replace("read_json(?", "read_json(?, sample_size = -1", 1)
        found = {row[0]: row[1] for row in self.rows(query)}
        if self._source == some:
            return found
        self._refuse_capitals(list(found))
        if {"TIME", "UUID"} & set(found.values()):
            found = {name: "VARCHAR" if kind in (*_MOMENTS, "UUID") else kind for name, kind in found.items()}
            kinds = ", ".join(f"{literal(name)}: {literal(kind)}" for name, kind in found.items())
            self._source = f"read_json(?, format = 'newline_delimited', columns = {{{kinds}}})"
            return found
        every, self._source = self._source, some
        if {row[0]: row[1] for row in self.rows(query)} != found:
            self._source = every
        return found

    def _refuse_capitals(self, names: Sequence[str]) -> None:
        """A second name that differs in capitals only would get a number that no record has."""
        lower, records = {name.lower() for name in names}, "read_json_objects(?, format = 'newline_delimited')"
        for name, first in ((name, _NUMBERED.fullmatch(name)) for name in names):
            if first is None or first[1].lower() not in lower:
                continue
            there = f"json_exists(json, {literal('$.' + quoted(name))})"
            if not self.rows(f"SELECT 1 FROM {records} WHERE {there} LIMIT 1"):
                what = f"two columns {first[1]!r} that differ in capitals"
                raise InputError(f"{self._title} has {what}; every name may be there once")

    def keep_words(self, labels: Sequence[str], words: Sequence[str] = ()) -> None:
        """Take columns of a CSV file as they are written: labels that are words (007 is not 7, and yes is not true) and
        times that somebody says are words."""
        clocks = {name for name, kind in self.kinds.items() if kind in _MOMENTS}
        odd = [self.columns[at] for at in self._words() if at < len(self.columns)]
        written = clocks & set(words) | set(odd) & set(labels)
        self._as_written(written | {name for name in clocks if self.kinds[name] == "TIME"})

    def _words(self) -> Iterable[int]:
        return words_in(self._paths[0]) if suffix_of(Path(self._paths[0])) in (".csv", ".tsv") else ()

    def _as_written(self, names: set[str]) -> None:
        """Read columns of a CSV file as words; no others than these."""
        read, how = self._read, self._how
        if names and "read_csv(" in read:
            kept = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in sorted(names))
            read = read.replace("read_csv(?", f"read_csv(?, types = {{{kept}}}", 1)
            how = how | dict.fromkeys(names, "trim({})")
        plain = [f"{call.format(quoted(each))} AS {quoted(each)}" for each, call in how.items()]
        self._source = f"(SELECT * REPLACE ({', '.join(plain)}) FROM {read})" if plain else read

    def rows(self, query: str) -> list[Any]:
        """What a query finds, all of it; {} stands for the table."""
        with self._opened() as database:
            return list(database.execute(query.replace("{}", self._source), self._asked).fetchall())

    def batches(self, names: Sequence[str], *, size: int = BATCH, rest: str = "") -> Iterator[Table]:
        """Some columns, batch by batch, in the order of the rows; memory does not grow with their number.

        Parameters
        ----------
        names
            The columns.
        size
            Rows in a batch, about.
        rest
            What follows in the query, such as an order.
        """
        columns = ", ".join(map(quoted, names))
        with self._opened() as database:
            database.execute(f"SELECT {columns} FROM {self._source}{rest}", self._asked)
            start = 0
            while len(frame := database.fetch_df_chunk(max(size // 2048, 1))):
                for name in self.mixed & set(names):
                    frame[name] = [from_json(text) for text in frame[name]]
                table = Table.of(frame)
                yield Table(table.columns, len(table), start)
                start += len(table)

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        """A database; whatever it cannot read becomes one sentence."""
        try:
            with connected() as database:
                yield database
        except self._duckdb.Error as error:
            self._refuse_flaws()
            if "infinity" in str(error):
                self._refuse_infinity()
            with self._renaming():
                kind = of_another_kind(str(error))
                if kind is not None:
                    raise InputError(f"{self._title}: {kind}") from None
                lines = [" ".join(line.split()) for line in str(error).splitlines() if line.strip()]
                told = [line for line in lines if not line.startswith(_TALK)]
                raise InputError(f"{self._title} cannot be read ({'; '.join(told[:2])})") from None

    def _refuse_flaws(self) -> None:
        """Say what is wrong with the first file that has a flaw."""
        found = next(filter(None, (flaw(path, self._called(path)) for path in self._paths)), None)
        if found is not None:
            raise InputError(found) from None

    def _refuse_infinity(self) -> None:
        """DuckDB takes inf for a day after all others, which no clock shows."""
        for name in (name for name, kind in self.kinds.items() if kind in ("DATE", "TIMESTAMP")):
            numbered = f"SELECT row_number() OVER () - 1 AS place, {quoted(name)} AS value FROM {{}}"
            found = self.rows(f"SELECT place FROM ({numbered}) WHERE isinf(value) ORDER BY place LIMIT 1")
            if found:
                what = f"column {name!r} holds something infinite in row {found[0][0]}"
                raise InputError(f"{self._title}: {what}; a time, or a finite number, is expected") from None

    def _without_marks(self) -> list[str]:
        """The files; those of JSON lines that begin with a byte order mark are copied without it."""
        paths = list(self._paths)
        for at, path in enumerate(paths):
            if _READERS.get(suffix_of(Path(path))) != "read_json":
                continue
            with refusing(path), bytes_of(path) as file:
                if file.read(3) == codecs.BOM_UTF8:
                    self._spool = self._spool or Spool()
                    paths[at] = str(Path(self._spool.name) / f"{at}.jsonl")
                    self._names[paths[at]] = self._called(path)
                    with open(paths[at], "wb") as copy:
                        shutil.copyfileobj(file, copy)
        return paths

    @contextmanager
    def _renaming(self) -> Iterator[None]:
        """Nobody is told where copies of files are kept."""
        try:
            yield
        except InputError as error:
            text = str(error)
            for path in self._paths:
                called = self._called(path)
                text = text.replace(f'file "{path}"', called).replace(f"File '{path}'", called).replace(path, called)
            raise InputError(text) from None

    @property
    def _title(self) -> str:
        return "standard input" if self.name == "-" else self.name

    def _called(self, path: str) -> str:
        """What a file is called in messages: nobody knows where standard input is kept."""
        return self._title if self.name == "-" else self._names.get(path, path)


@contextmanager
def connected() -> Iterator[Any]:
    """A database in memory that draws no bars on the terminal. Ctrl-C while it works is Ctrl-C."""
    engine = duckdb()
    try:
        with engine.connect() as database:
            database.execute("SET enable_progress_bar = false; SET TimeZone = 'UTC'")  # not this machine's
            yield database
    except engine.InterruptException:
        raise KeyboardInterrupt from None
    except RuntimeError as error:
        if "interrupted" not in str(error):
            raise
        raise KeyboardInterrupt from None


def said(error: Exception) -> str:
    """What the database says is wrong, in a line; but Ctrl-C is Ctrl-C."""
    if type(error).__name__ == "InterruptException":
        raise KeyboardInterrupt from None
    return str(error).splitlines()[0]


def quoted(name: str) -> str:
    """A column's name as a query has it."""
    return '"' + name.replace('"', '""') + '"'


def literal(words: str | Path) -> str:
    """A text, or a path, as a query has it."""
    return "'" + str(words).replace("'", "''") + "'"


def from_json(text: Any) -> Any:
    """The value of a column of several kinds."""
    return json.loads(text) if isinstance(text, str) else None


def looks_like_a_log(names: Sequence[str], label: str | None = None) -> bool:
    """Whether columns are those of rounds that were played: bits, and the labels played or their probabilities.

    Parameters
    ----------
    names
        What the columns are called.
    label
        The column that somebody says holds right labels. Without probabilities that is believed, unless logs call the
        bit or the label played so.
    """
    lower = {name.lower() for name in names}
    if not lower & set(NAMES["bit"]):
        return False
    believed = label is not None and label.lower() not in (*NAMES["bit"], *NAMES["label"][1:])
    return bool(lower & set(NAMES["probability"])) or (bool(lower & set(NAMES["label"])) and not believed)


def is_table(path: Path) -> bool:
    """Whether a file is one of these, by its name."""
    return suffix_of(path) in _READERS


def parts_of(name: str) -> list[str]:
    """The files that the name of a folder, or a pattern, stands for; none if it is that of a file."""
    path = Path(name)
    if path.is_dir():
        return sorted(str(each) for each in path.iterdir() if is_table(each))
    return [] if path.exists() else sorted(each for each in glob.glob(name) if is_table(Path(each)))


def duckdb() -> Any:
    """DuckDB, or a sentence on how to get it."""
    try:
        import duckdb  # noqa: PLC0415  # slow to load
        import pandas  # noqa: F401, PLC0415  # batches come as its frames
    except ImportError:
        raise missing("DuckDB, which reads and writes tables,", "lab") from None
    return duckdb


def found_files(name: str, suffixes: Iterable[str] = _READERS) -> tuple[list[str], Any]:
    """The files, in a folder those with certain suffixes, and a temporary one that holds standard input."""
    suffixes = list(suffixes)
    if name == "-":
        spool = Spool()
        if sys.stdin is None:
            raise InputError("standard input is closed; a table is expected there")
        content = sys.stdin.buffer.read(8)
        if content.startswith(codecs.BOM_UTF8):
            content = content[3:] + sys.stdin.buffer.read(8)
        kind = ".gz" if content[:2] == b"\x1f\x8b" else ".parquet" if content[:4] == b"PAR1" else ""
        if kind != ".parquet":
            first = content.lstrip()[:1] if kind == "" else b""
            kind = (".jsonl" if first == b"{" else ".csv") + kind
        path = Path(spool.name) / f"stdin{kind}"
        with path.open("wb") as file:
            file.write(content)
            while part := sys.stdin.buffer.read(2**20):
                file.write(part)
        if kind == ".csv.gz" and _begins_an_object(path):
            path = path.rename(path.with_name("stdin.jsonl.gz"))
        return [str(path)], spool
    path = Path(name)
    if path.is_dir():
        found = sorted(str(each) for each in path.iterdir() if suffix_of(each) in suffixes)
        if not found:
            raise InputError(f"{name} holds no {', '.join(suffixes)} files")
        return _each_once(name, found), None
    if path.is_file():
        return [name], None
    found = sorted(glob.glob(name))
    if not found:
        raise InputError(f"{name} does not exist")
    return _each_once(name, found), None


def _each_once(name: str, paths: list[str]) -> list[str]:
    """The files, none of them also zipped beside itself: its rounds would count twice."""
    twice = next((path for path in paths if f"{path}.gz" in paths), None)
    if twice is not None:
        raise InputError(f"{name} stands for both {twice} and {twice}.gz; one of them is expected")
    return paths


def _begins_an_object(path: Path) -> bool:
    """Whether what came zipped from standard input is JSON lines."""
    try:
        return first_line(str(path)).startswith("{")
    except InputError as error:
        raise InputError(str(error).replace(str(path), "standard input")) from None


def _reader(name: str, paths: Sequence[str]) -> str:
    """The function of DuckDB that reads these files."""
    kinds = {suffix_of(Path(path)) for path in paths}
    readers = {_READERS.get(kind) for kind in kinds}
    if len(readers) != 1 or None in readers:
        odd = ", ".join(sorted(repr(kind) for kind in kinds))
        if len(kinds) > 1:
            raise InputError(f"{name} stands for files that end in {odd}; files of one kind are expected")
        raise InputError(f"{name} ends in {odd}; one of {', '.join(_READERS)} is expected, also with .gz behind")
    how = readers.pop()
    parts = ", union_by_name = true" if len(paths) > 1 else ""  # a column that a part lacks is missing there
    if how == "read_csv":
        whole = sum(os.path.getsize(path) for path in paths) <= _WHOLE
        skip, line = header_of(paths[0])
        other = next((path for path in paths if header_of(path)[0] != skip), None)
        if other is not None:
            where = f"line {skip + 1} of {paths[0]}"
            raise InputError(
                f"the names of the columns are in {where}, and in another line of {other}; one is expected"
            )
        told = f"header = true, delim = '{delimiter(line)}', quote = '\"', escape = '\"'"
        told += f", skip = {skip}" if skip else ""
        told += ", decimal_separator = ','" if commas_in(paths[0]) else ""
        return f"read_csv(?, {told}{', sample_size = -1' if whole else ''}{parts})"
    return f"read_json(?, format = 'newline_delimited'{parts})" if how == "read_json" else f"read_parquet(?{parts})"
