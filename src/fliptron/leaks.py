"""Columns that tell what nobody knows when a label is chosen: that label in other words, or what came back for it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from fliptron.arrays import Array
from fliptron.encoding.records import is_missing
from fliptron.encoding.schema import FEW, FIRST
from fliptron.refusals import InputError
from fliptron.tables import quoted

LEAST = 20
"""Rows below which a column may be like another by chance."""
_REST = 5  # rows, at least, that do not have the commonest label
_ODDS = math.log(1e6)  # to one, against chance
COPY, RECODED, FINER, CALLED, TOLD = (
    "the label played, by another name",
    "the label played, in other words",
    "the label played, in finer words",
    "called as what comes back is, unless they are given as features",
    "what came back, in other words",
)
"""Why columns are left out."""
_WHY = {
    COPY: "holds the label that was played in every round",
    RECODED: "holds the label that was played, in other words, in every round",
    FINER: "tells in every round which label was played",
    TOLD: "tells in every round what came back",
}
Ask = Callable[[str], list[Any]]
"""A query to the whole table, which {} stands for."""


def copies(columns: Mapping[str, Array], label: str, names: Sequence[str], rows: int, ask: Ask) -> list[str]:
    """The columns that are the label in every row.

    Parameters
    ----------
    columns
        The first rows.
    label
        The column that holds the label.
    names
        The columns to look at.
    rows
        How many rows there are.
    ask
        Asks all of them.
    """
    played = _plain(columns[label])
    alike = [name for name in names if _same(_plain(columns[name]), played)]
    if rows < LEAST or not alike or rows <= len(played):
        return alike if rows >= LEAST else []
    differ = ", ".join(f"count(*) FILTER (WHERE {quoted(name)} IS DISTINCT FROM {quoted(label)})" for name in alike)
    (counts,) = ask(f"SELECT {differ} FROM {{}}")
    return [name for name, count in zip(alike, counts, strict=True) if count == 0]


def recoded(columns: Mapping[str, Array], label: str, names: Sequence[str], rows: int, ask: Ask) -> list[str]:
    """The columns each of whose values goes with one label, and each label with one of their values; see `copies`."""
    alike = recoded_in({name: columns[name] for name in names}, columns[label], by_chance=rows > len(columns[label]))
    return alike if rows <= len(columns[label]) else [name for name in alike if _recoded_in_all(name, label, ask)]


def recoded_in(columns: Mapping[str, Array], labels: Array, *, by_chance: bool = False) -> list[str]:
    """The columns, of those given whole, that are the labels in other words; also where it may be by chance."""
    played = _plain(labels)
    if not (by_chance or _surely(list(Counter(played).values()))):
        return []
    head = played[:FIRST]
    alike = [name for name, values in columns.items() if _paired(_plain(values[:FIRST]), head)]
    return [name for name in alike if _paired(_plain(columns[name]), played)]


def finer(
    columns: Mapping[str, Array], label: str, names: Sequence[str], inverse: str, labels: int, ask: Ask
) -> list[str]:
    """The columns each of whose values goes with one label, such as the number of the article that was shown.

    If such a column told before what was not decided yet, all rounds with one value would have played one label by
    chance: by no more than ΠP for each of the Kᵛ ways in which v values may go with K labels.

    Parameters
    ----------
    columns, label, names, ask
        As for `copies`.
    inverse
        The query's word for 1/P.
    labels
        K.
    """
    played = _plain(columns[label])
    alike = [name for name in names if _decided(_plain(columns[name]), played)]
    return [name for name in alike if _decided_in_all(name, label, inverse, labels, ask)]


def telling(columns: Mapping[str, Array], bits: Array, bit: str, rows: int, ask: Ask) -> list[str]:
    """The columns whose value, or whether it is above 0 or there at all, tells the bit of every row.

    Parameters
    ----------
    columns
        Some rows of the columns to look at, with both bits among them.
    bits
        The bits of these rows.
    bit
        The query's word for the bit.
    rows, ask
        As for `copies`.
    """
    told = bits.tolist()
    if rows < LEAST or len(set(told)) < 2:
        return []
    return [
        name for name, values in columns.items() if any(_tells(view, bit, ask) for view in _views(name, values, told))
    ]


def check_asked(leaks: Mapping[str, str], asked: Sequence[str]) -> None:
    """Refuse columns that somebody asked for, and that tell too much."""
    for name in asked:
        if name in leaks:
            what = f"column {name!r} {_WHY[leaks[name]]}"
            raise InputError(f"{what}, so it can neither describe a round nor be another policy's choice")


def _views(name: str, values: Array, bits: list[int]) -> list[str]:
    """What queries call a column's values, whether they are above 0, and whether they are there, if that may tell."""
    plain, column, found = _plain(values), quoted(name), []
    try:
        if len(set(plain)) <= FEW and _pure(plain, bits):
            found.append(column)
    except TypeError:  # lists and the like
        return []
    numbers = all(value is None or isinstance(value, int | float | Decimal) for value in plain)
    if numbers and _pure([value is not None and value > 0 for value in plain], bits):
        found.append(f"coalesce(TRY_CAST({column} AS DOUBLE) > 0, false)")
    if _pure([value is None for value in plain], bits):
        found.append(f"coalesce(CAST({column} AS VARCHAR), '') = ''")
    return found


def _tells(value: str, bit: str, ask: Ask) -> bool:
    """Whether a value tells the bit in all rows, and not by chance: rows of the rarer bit come together too often."""
    groups = f"SELECT count(*) AS n, count(*) FILTER (WHERE {bit}) AS ones FROM {{}} GROUP BY {value}"
    ((mixed, n, ones, with_ones, without),) = ask(
        "SELECT count(*) FILTER (WHERE 0 < ones AND ones < n), sum(n), sum(ones), sum(n - 1) FILTER (WHERE ones > 0), "
        f"sum(n - 1) FILTER (WHERE ones < n) FROM ({groups})"
    )
    if mixed or not 0 < ones < n:
        return False
    rarer, repeated = min((ones, with_ones), (n - ones, without))
    return bool(repeated * math.log(n / rarer) >= _ODDS)


def _recoded_in_all(name: str, label: str, ask: Ask) -> bool:
    pairs = f"SELECT {quoted(name)} AS a, {quoted(label)} AS b, count(*) AS n FROM {{}} GROUP BY ALL"
    ((counts, left, right),) = ask(
        "SELECT list(n), count(DISTINCT a) + CAST(bool_or(a IS NULL) AS INT), "
        f"count(DISTINCT b) + CAST(bool_or(b IS NULL) AS INT) FROM ({pairs})"
    )
    return len(counts) == left == right and _surely(counts)


def _decided_in_all(name: str, label: str, inverse: str, labels: int, ask: Ask) -> bool:
    found = f"count(DISTINCT {quoted(label)}) AS n, sum(ln(greatest({inverse}, 1))) AS odds"
    groups = f"SELECT {found} FROM {{}} GROUP BY {quoted(name)}"
    ((most, values, odds),) = ask(f"SELECT max(n), count(*), sum(odds) FROM ({groups})")
    return bool(most == 1 and odds is not None and odds - values * math.log(labels) >= _ODDS)


def _surely(counts: Sequence[int]) -> bool:
    """Whether labels that come so often would not go with another column's values by chance."""
    rows = sum(counts)
    return rows >= LEAST and rows - max(counts) >= _REST and 2 * len(counts) <= rows


def _paired(values: list[Any], labels: list[Any]) -> bool:
    try:
        return len(set(zip(values, labels, strict=True))) == len(set(values)) == len(set(labels))
    except TypeError:  # lists and the like
        return False


def _decided(values: list[Any], labels: list[Any]) -> bool:
    try:
        return len(set(zip(values, labels, strict=True))) == len(set(values)) < len(values)
    except TypeError:  # lists and the like
        return False


def _pure(values: list[Any], bits: list[int]) -> bool:
    """Whether no value goes with both bits."""
    return len(set(zip(values, bits, strict=True))) == len(set(values))


def _plain(values: Array) -> list[Any]:
    """Values that are equal where they are the same, gaps too."""
    return [None if is_missing(value) else value for value in values.tolist()]


def _same(values: list[Any], others: list[Any]) -> bool:
    try:
        return values == others
    except ValueError:  # lists, as NumPy compares them
        return False
