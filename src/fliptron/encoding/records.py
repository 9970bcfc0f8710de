"""Records in whatever form they come (dicts, a data frame, a matrix), as a table of columns."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fliptron.arrays import Array
from fliptron.refusals import InputError

_DOTTED = re.compile(r"^(\d\d)\.(\d\d)\.(\d{4})($|[ T].*)")
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


@dataclass(frozen=True, slots=True)
class Table:
    """Columns of one length: numbers (NaN where one is missing), truth values, times, or objects.

    >>> table = Table.of([{"age": 31, "city": "Rome"}, {"age": 18}])
    >>> len(table), table.columns["city"].tolist()
    (2, ['Rome', None])
    """

    columns: dict[str, Array]
    size: int
    start: int = 0
    """The number of its first row, for messages."""

    @classmethod
    def of(cls, records: Any) -> Table:
        """Build a table.

        Parameters
        ----------
        records
            A record (a dict), a list of them, a pandas data frame, a dict of columns (lists or arrays), or a matrix,
            whose columns are called x0, x1, …
        """
        if isinstance(records, Table):
            return records
        if hasattr(records, "columns") and hasattr(records, "iloc"):
            return _of_frame(records)
        if isinstance(records, Mapping):
            if records and all(_is_column(values) for values in records.values()):
                return _of_columns(records)
            return _of_dicts([records])
        if isinstance(records, np.ndarray):
            if records.ndim != 2 or records.dtype.kind not in "biuf":
                raise InputError(f"an array of {records.dtype} and shape {records.shape}; rows of numbers are expected")
            numbers = records.astype(np.float64)
            return cls({f"x{j}": numbers[:, j] for j in range(numbers.shape[1])}, len(numbers))
        if isinstance(records, Sequence) and not isinstance(records, str | bytes):
            for at, record in enumerate(records):
                if not isinstance(record, Mapping):
                    raise InputError(
                        f"record {at} is a {type(record).__name__}; a dict of names and values is expected"
                    )
            return _of_dicts(records)
        raise InputError(f"records are a {type(records).__name__}; dicts, a data frame or a matrix are expected")

    def __len__(self) -> int:
        return self.size

    def only(self, names: Sequence[str]) -> Table:
        """Some of its columns."""
        return Table({name: self.columns[name] for name in names}, self.size, self.start)

    def part(self, start: int, stop: int) -> Table:
        """Rows start … stop − 1."""
        found = {name: values[start:stop] for name, values in self.columns.items()}
        return Table(found, max(min(stop, self.size) - start, 0), self.start + start)


def _of_columns(columns: Mapping[str, Any]) -> Table:
    found = {_name(name): as_column(values) for name, values in columns.items()}
    sizes = {values.shape[0] for values in found.values()}
    if len(sizes) > 1:
        raise InputError(f"the columns have {sorted(sizes)} rows; all must have the same")
    return Table(found, sizes.pop() if sizes else 0)


def _of_dicts(records: Sequence[Mapping[str, Any]]) -> Table:
    names = list(dict.fromkeys(name for record in records for name in record))
    found = {}
    for name in names:
        values = np.empty(len(records), dtype=object)
        values[:] = [record.get(name) for record in records]
        found[_name(name)] = values
    return Table(found, len(records))


def _of_frame(frame: Any) -> Table:
    names = [_name(name) for name in frame.columns]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"the table has two columns {twice!r}; every name may be there once")
    return Table({name: _of_series(frame.iloc[:, j]) for j, name in enumerate(names)}, len(frame))


def _of_series(series: Any) -> Array:
    """A pandas column: nullable and categorical types become plain ones."""
    kind = series.dtype
    plain = isinstance(kind, np.dtype)
    if not plain and getattr(kind, "kind", "O") in "iufb" and hasattr(kind, "numpy_dtype"):  # Int64, Float64, boolean
        if not series.hasnans:
            return np.asarray(series.to_numpy(dtype=kind.numpy_dtype))
        return np.asarray(series.to_numpy(dtype=np.float64, na_value=np.nan))
    if not plain and getattr(kind, "tz", None) is not None:
        return np.asarray(series.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy())
    return as_column(series.to_numpy() if plain else series.astype(object).to_numpy())


def as_column(values: Any) -> Array:
    """One column as floats, truth values, times or objects."""
    if np.ma.isMaskedArray(values):
        gaps, values = np.ma.getmaskarray(values), values.data
        if values.dtype.kind in "iufb":
            values = np.where(gaps, np.nan, values.astype(np.float64)) if gaps.any() else values
        elif values.dtype.kind == "M":
            values = np.where(gaps, np.datetime64("NaT"), values)
        else:
            values = np.where(gaps, None, values.astype(object))
    column = np.asarray(values) if isinstance(values, np.ndarray) else _objects(list(values))
    if column.ndim != 1:
        raise InputError(f"a column has shape {column.shape}; one value per row is expected")
    if column.dtype.kind == "f":
        return column.astype(np.float64, copy=False)
    if column.dtype.kind == "M":
        return column.astype("datetime64[us]", copy=False)  # which Python's own times are as fine as
    return column if column.dtype.kind in "biu" else column.astype(object)


def _objects(values: list[Any]) -> Array:
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found


def is_missing(value: Any) -> bool:
    """Whether a value is not there: None, NaN, NaT, pandas' NA, or an empty word."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, np.datetime64):
        return bool(np.isnat(value))
    return math.isnan(value) if isinstance(value, float | np.floating) else isinstance(value, str) and value == ""


def word_of(value: Any) -> str:
    """A value as a word, the same however it is written: 3.0 is "3", True is "true", and midnight is its day."""
    if isinstance(value, str):
        return value
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").item()
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        return str(value.date())
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, list | tuple | dict | set | bytes | bytearray | np.ndarray):
        raise TypeError
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    try:
        return str(value)
    except ValueError:  # Python writes no whole number of thousands of digits in tens
        return hex(value)


def is_no_number(value: Any) -> bool:
    """Whether a word stands for a number that is not there."""
    return isinstance(value, str) and value.strip().lower() in ("", "na", "n/a", "nan", "null", "none", "?", "-")


def moment(value: Any) -> float | None:
    """Seconds since 1970 of a time, a date, or a word that is one, in ISO 8601 or as 31.12.2026; None if it is none."""
    if isinstance(value, np.datetime64):
        return float(value.astype("datetime64[us]").astype(np.int64)) / 1e6
    if isinstance(value, str):
        try:
            value = datetime.datetime.fromisoformat(_DOTTED.sub(r"\3-\2-\1\4", value))
        except ValueError:
            return None
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        value = datetime.datetime(value.year, value.month, value.day)
    if not isinstance(value, datetime.datetime):
        return None
    return float((value.replace(tzinfo=value.tzinfo or datetime.UTC) - _EPOCH).total_seconds())


def _is_column(values: Any) -> bool:
    return isinstance(values, list | tuple | np.ndarray) or (hasattr(values, "to_numpy") and hasattr(values, "dtype"))


def _name(name: Any) -> str:
    return name if isinstance(name, str) else str(name)
