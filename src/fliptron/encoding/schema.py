"""What the columns of a record are, and where each goes in x."""

from __future__ import annotations

import datetime
import decimal
import math
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

import numpy as np

from fliptron.arrays import Array
from fliptron.encoding.records import Table, is_missing, is_no_number, moment, word_of
from fliptron.refusals import InputError, mapping_of, one_of, shown, whole

Kind = Literal["number", "boolean", "time", "clock", "category", "many", "unused"]
"""What a column holds. A *clock* is a time that never goes back, so that only the hour and the weekday can come again.
A *category* has few values, each with a place of its own; of *many* values each is hashed to a place. An *unused*
column is left out: it is empty, or it only numbers or names the rows."""
FEW = 32
"""The most different values, among the first rows, of a column that is a category."""
FIRST = 1000
"""Rows from which a schema is inferred."""
SPARE = 8
"""Places for values of a category that were not among the first rows."""
BUCKETS, PER_WORD = 256, 8
"""Places of a column of many values: a power of two, at least 256, and eight for each different word among the first
rows, so that seven words in eight share theirs with no other of them."""
_PARTS = {"number": 1, "boolean": 1, "clock": 4, "time": 5}  # where it lies in day and week; of a time, also itself
_MOST, _MOST_BUCKETS = 10_000, 2**16
_WORDS = str | int | float | np.integer | np.floating | np.bool_ | uuid.UUID | datetime.time
_LONG = 60  # characters of a value that are shown
_IDENTITY = 100  # values, all different words or ever larger numbers: they name the row, and say nothing of it


@dataclass(frozen=True, slots=True)
class Column:
    """One column."""

    name: str
    kind: Kind
    values: tuple[Any, ...] = ()
    """The values of a category, each with a place of its own."""
    gaps: bool = False
    """Whether some of the first rows had no value here; then a missing value has a place of its own."""
    buckets: int = BUCKETS
    """The places to which many values are hashed."""

    @property
    def numbers(self) -> int:
        """How many numbers it becomes that are centred and scaled."""
        return _PARTS.get(self.kind, 0)

    @property
    def places(self) -> int:
        """How many places it takes in x, besides that of a missing value."""
        return {"category": len(self.values) + SPARE, "many": self.buckets}.get(self.kind, self.numbers)

    def __str__(self) -> str:
        more = {"category": f" of {len(self.values)}: {_some(self.values)}", "many": f", in {self.buckets} places"}
        gaps = ", sometimes missing" if self.gaps and self.kind != "unused" else ""
        return f"{self.name}: {self.kind}{more.get(self.kind, '')}{gaps}"


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns of a table of records, in the order of x.

    >>> schema = Schema.infer([{"age": 31, "city": "Rome"}, {"age": None, "city": "Oslo"}])
    >>> print(schema)
    age: number, sometimes missing
    city: category of 2: Oslo, Rome
    """

    columns: tuple[Column, ...]

    @classmethod
    def infer(cls, records: Any, given: Mapping[str, str] | None = None) -> Schema:
        """What the first rows show.

        Parameters
        ----------
        records
            Records in any form that `Table.of` takes; the first 1,000 count.
        given
            The kinds of columns by name, where they are known: "number", "boolean", "time", "category" or "many".
        """
        table, given = Table.of(records), mapping_of("given", given)
        for name in given:
            if name not in table.columns:
                raise InputError(f"a kind is given for column {name!r}, which is not there; {_some(table.columns)} are")
        if not len(table):
            raise InputError("there are no records; at least one is expected")
        head = table.part(0, FIRST)
        found = tuple(_column(name, values, given.get(name)) for name, values in head.columns.items())
        if all(column.kind == "unused" for column in found):
            if all(is_missing(each) for values in head.columns.values() for each in values.tolist()):
                raise InputError("no column holds a value in the first rows; at least one feature is expected")
            raise InputError(
                f"every value of {_some(map(repr, head.columns))} is different, as the number of a row is; a feature "
                "whose values come again is expected, or the kind of one of these"
            )
        return cls(found)

    @classmethod
    def plain(cls, stored: Any) -> Schema:
        """The schema of which `to_plain` made plain values."""
        try:
            columns = tuple(
                Column(
                    str(each["name"]),
                    _known(each["kind"]),
                    tuple(each["values"]),
                    bool(each["gaps"]),
                    whole("the places of many values", each.get("buckets", BUCKETS), 1, _MOST_BUCKETS),
                )
                for each in stored
            )
        except (TypeError, KeyError, AttributeError):
            raise InputError("the schema is not a list of columns with name, kind, values and gaps") from None
        if not columns or len({column.name for column in columns}) < len(columns) or len(columns) > _MOST:
            raise InputError(f"the schema has {len(columns)} columns; 1 to {_MOST}, each once, are expected")
        return cls(columns)

    def to_plain(self) -> list[dict[str, Any]]:
        """Plain values, fit for JSON."""
        return [
            {"name": each.name, "kind": each.kind, "values": list(each.values), "gaps": each.gaps}
            | ({"buckets": each.buckets} if each.kind == "many" else {})
            for each in self.columns
        ]

    @property
    def kinds(self) -> dict[str, str]:
        """The kind of every column."""
        return {column.name: column.kind for column in self.columns}

    def __str__(self) -> str:
        return "\n".join(map(str, self.columns))


def _column(name: str, values: Array, given: str | None) -> Column:
    there = [value for value in values.tolist() if not is_missing(value)] if values.dtype.kind == "O" else None
    if there is not None and any(map(_is_number, there)):
        there = [value for value in there if not is_no_number(value)]
    gaps = bool(np.isnan(values).any()) if values.dtype.kind == "f" else False
    if values.dtype.kind == "M":
        gaps = bool(np.isnat(values).any())
    if there is not None:
        gaps = len(there) < values.size
    kind = given or _kind(name, values, there)
    if kind not in ("category", "many"):
        return Column(name, _known(kind, f"the kind of column {name!r}"), gaps=gaps)
    try:
        seen = {word_of(value) for value in (values.tolist() if there is None else there) if not is_missing(value)}
    except TypeError:
        raise InputError(f"column {name!r} holds lists or the like; words are expected in a category") from None
    if kind == "many":
        wanted = 2 ** math.ceil(math.log2(max(PER_WORD * len(seen), BUCKETS)))
        return Column(name, "many", gaps=gaps, buckets=min(wanted, _MOST_BUCKETS))
    return Column(name, "category", tuple(sorted(seen)[:_MOST]), gaps)


def _known(kind: Any, what: str = "kind") -> Kind:
    return cast(Kind, one_of(what, kind, get_args(Kind)))


def _kind(name: str, values: Array, there: Sequence[Any] | None) -> str:
    """What a column holds, by its values."""
    if there is None:
        empty = values.dtype.kind == "f" and np.isnan(values).all()
        kind: str | None = "unused" if empty else {"b": "boolean", "M": "time"}.get(values.dtype.kind, "number")
        return _ever_larger(kind, values[~np.isnan(values)]) if kind in ("number", "time") else str(kind)
    different = len({str(value) for value in there})
    words = "unused" if different == len(there) >= _IDENTITY else "category" if different <= FEW else "many"
    tests: dict[str, Callable[[Any], bool]] = {
        "boolean": lambda value: isinstance(value, bool | np.bool_),
        "number": _is_number,
        "time": lambda value: moment(value) is not None,
        words: lambda value: isinstance(value, str | uuid.UUID | datetime.time),
    }
    kind = next((kind for kind, holds in tests.items() if all(map(holds, there))), None) if there else "unused"
    if kind in ("number", "time"):
        return _ever_larger(kind, np.array([moment(each) if kind == "time" else _real(name, each) for each in there]))
    odd = next((value for value in there if not isinstance(value, _WORDS)), None)
    if odd is not None and kind is None:
        at = next(i for i, value in enumerate(values.tolist()) if value is odd)
        what = "list" if isinstance(odd, np.ndarray) else type(odd).__name__
        raise InputError(f"column {name!r} holds a {what} in row {at}; words and numbers are expected")
    if kind in (None, words) and 2 * sum(map(_is_number, there)) >= len(there) > 0:
        odd = next(value for value in there if not _is_number(value))
        at = values.tolist().index(odd)
        raise InputError(
            f"column {name!r} holds {odd!r} in row {at} among numbers; numbers are expected, or give the column's kind"
        )
    return kind or words


def _ever_larger(kind: str, values: Array) -> str:
    """A time that never goes back is a clock, and a whole number that always grows counts the rows."""
    values = values[np.isfinite(values)] if values.dtype.kind == "f" else values
    if values.size < 2 or (kind == "number" and (values.size < _IDENTITY or (values != np.floor(values)).any())):
        return kind
    before, after = values[:-1], values[1:]
    if kind == "time":
        return "clock" if (after >= before).all() else kind
    return "unused" if (after > before).all() else kind


def _real(name: str, value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        raise InputError(f"column {name!r} holds {shown(value)}; a finite number is expected") from None


def _is_number(value: Any) -> bool:
    if not isinstance(value, str):
        return isinstance(value, int | float | np.integer | np.floating | decimal.Decimal)
    try:
        return "_" not in value and math.isfinite(float(value))  # which Python's own numbers may have
    except ValueError:
        return False


def _some(names: Iterable[Any], most: int = 8) -> str:
    shown = [text if len(text := str(name)) <= _LONG else f"{text[:_LONG]}…" for name in names]
    return ", ".join(shown[:most]) + (f" and {len(shown) - most} more" if len(shown) > most else "")
