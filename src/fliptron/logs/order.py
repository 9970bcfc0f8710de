"""In which order the rounds of a log were played, where a column says it, and when all labels were in play."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

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
_CHANCE = math.log(1e-9)


class Span(NamedTuple):
    """Rounds in which all labels were in play."""

    start: int
    """The first of them."""
    stop: int
    """The one after the last of them."""
    newest: int
    """The number of the label that came last into play."""
    oldest: int
    """The number of the label that was out of it first."""


def in_play(label: str, order: str, file: TableFile, number: Callable[[Any, int], int], rounds: int) -> Span:
    """The rounds before and after which no label was absent but by chance.

    Parameters
    ----------
    label
        The column of labels played.
    order
        The end of a query that orders the rounds.
    file
        The log.
    number
        The number of a label, given the column's value and a round that has it.
    rounds
        How many there are.
    """
    placed = f"SELECT {quoted(label)} AS label, row_number() OVER ({order}) - 1 AS place FROM {{}}"
    query = f"SELECT label, min(place), max(place), count(*) FROM ({placed}) GROUP BY label ORDER BY min(place)"
    played: dict[int, tuple[int, int, int]] = {}
    for value, first, last, count in file.rows(query):  # 1 and "1" are one label
        least, most, times = played.get(r := number(value, first), (first, last, 0))
        played[r] = min(first, least), max(last, most), count + times
    span = Span(0, rounds, 0, 0)
    for r, (first, last, count) in played.items():
        absent = math.log1p(-count / (last - first + 2))  # in one round, by chance
        if first * absent < _CHANCE and first > span.start:
            span = span._replace(start=first, newest=r)
        if (rounds - 1 - last) * absent < _CHANCE and last + 1 < span.stop:
            span = span._replace(stop=last + 1, oldest=r)
    return span


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
