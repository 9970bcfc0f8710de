"""In which order the rounds of a log were played, where a column says it."""

from __future__ import annotations

from fliptron.refusals import InputError, shown
from fliptron.tables import TableFile, quoted

_NUMBERS = (
    "TINYINT",
    "SMALLINT",
    "INTEGER",
    "BIGINT",
    "UTINYINT",
    "USMALLINT",
    "UINTEGER",
    "UBIGINT",
    "FLOAT",
    "DOUBLE",
)
_MOMENTS = ("DATE", "TIMESTAMP")


def order_by(time: str | None, file: TableFile) -> str:
    """The end of a query that puts the rounds in the order of a column of numbers or times."""
    if time is None:
        return ""
    if time not in file.columns:
        raise InputError(f"the log has no column {time!r} to order it by; it has {', '.join(file.columns)}")
    column, kind = quoted(time), file.kinds[time]
    value = f"CAST({column} AS {kind})" if kind in _MOMENTS else column  # also if it is read as words
    if kind not in _NUMBERS and not kind.startswith(("DECIMAL", *_MOMENTS)):
        text = f"trim(CAST({column} AS VARCHAR), '\" ')"
        ways = [f"TRY_CAST({text} AS {each})" for each in ("DOUBLE", "TIMESTAMP", "TIME")]
        (fits,) = file.rows(f"SELECT {', '.join(f'count({way})' for way in ways)} FROM {{}}")
        value = ways[fits.index(max(fits))]
    _refuse_gaps(time, column, value, file)
    ties = f"hash({', '.join(map(quoted, file.columns))})"  # any order, but always the same
    return f" ORDER BY {value}, {ties}"


def _refuse_gaps(time: str, column: str, value: str, file: TableFile) -> None:
    """Every round has its place: one without would be played first or last by chance."""
    ((gaps,),) = file.rows(f"SELECT count(*) - count({value}) FROM {{}}")
    if not gaps:
        return
    numbered = f"SELECT row_number() OVER () - 1 AS place, {column} AS written, {value} AS known FROM {{}}"
    ((place, written),) = file.rows(
        f"SELECT place, written FROM ({numbered}) WHERE known IS NULL ORDER BY place LIMIT 1"
    )
    what = "nothing" if written is None else shown(written)
    raise InputError(
        f"column {time!r}, which orders the rounds, holds {what} in row {place}; a number, or a time such as "
        "2026-05-01T12:30, is expected"
    )
