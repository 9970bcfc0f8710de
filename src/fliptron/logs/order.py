"""In which order the rounds of a log were played, where a column says it, and when all labels were in play."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
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
_CHANCE = math.log(1e-9)  # that all rounds with a label come so late, or so early
_NEARLY = 0.8  # of the labels, which the mean of 1/P hits only on average


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


def in_play(
    label: str, inverse: str, order: str, file: TableFile, number: Callable[[Any, int], int], rounds: int
) -> Span:
    """The rounds before and after which no label was out of play.

    A label was not in play as yet where all rounds with it come so late by no chance, while all others were played as
    often as their probabilities say: 1/P averages how many labels are in play. A policy that has learnt not to play a
    label plays few others too.

    Parameters
    ----------
    label
        The column of labels played.
    inverse
        The query's word for 1/P.
    order
        The end of a query that orders the rounds.
    file
        The log.
    number
        The number of a label, given the column's value and a round that has it.
    rounds
        How many there are.
    """
    placed = (
        f"(SELECT {quoted(label)} AS label, {inverse} AS inverse, row_number() OVER ({order}) - 1 AS place FROM {{}})"
    )
    query = f"SELECT label, min(place), max(place), count(*) FROM {placed} GROUP BY label ORDER BY min(place)"
    played: dict[int, tuple[int, int, int]] = {}
    for value, first, last, count in file.rows(query):  # 1 and "1" are one label
        least, most, times = played.get(r := number(value, first), (first, last, 0))
        played[r] = min(first, least), max(last, most), count + times
    late = {r: first for r, (first, _, n) in played.items() if n * math.log1p(-first / rounds) < _CHANCE}
    gone = {r: last + 1 for r, (_, last, n) in played.items() if n * math.log((last + 1) / rounds) < _CHANCE}
    newest, oldest = max(late, key=late.__getitem__, default=0), min(gone, key=gone.__getitem__, default=0)
    ranges = sorted((first, last) for first, last, _ in played.values())
    if late and gone and all(last < first for (_, last), (first, _) in pairwise(ranges)):
        return Span(late[newest], gone[oldest], newest, oldest)
    span = Span(0, rounds, 0, 0)
    if late and _others_were(file, placed, f"place < {min(late.values())}", len(played) - len(late)):
        span = span._replace(start=late[newest], newest=newest)
    if gone and _others_were(file, placed, f"place >= {max(gone.values())}", len(played) - len(gone)):
        span = span._replace(stop=gone[oldest], oldest=oldest)
    return span


def _others_were(file: TableFile, placed: str, where: str, labels: int) -> bool:
    """Whether so many labels were in play in some rounds, by the mean of 1/P; a single one was played for certain."""
    ((mean, most),) = file.rows(f"SELECT avg(inverse), max(inverse) FROM {placed} WHERE {where}")
    if mean is None:
        return False
    return bool(most == 1.0 if labels == 1 else mean >= _NEARLY * labels)


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
