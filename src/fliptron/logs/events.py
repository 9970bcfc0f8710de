"""What logs of other libraries have in common: events, and how they become a table that is read like any other."""

from __future__ import annotations

import gzip
import math
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fliptron.arrays import Array
from fliptron.encoding.records import word_of
from fliptron.logs.tables import write_table
from fliptron.refusals import InputError
from fliptron.rounds import LEAST_PROBABILITY
from fliptron.tables import BATCH, Made, Spool

CONTEXT = "context"
"""The namespace of features that are called by their name alone."""
WRITTEN = "%event"
"""The column that holds the text of each event."""
OWN = ("label", "bit", "cost", "probability", "greedy", "margin", "tag", "position", WRITTEN)
"""Columns that such a table has besides the features."""
TIE = 1e-6
"""By how much probabilities may differ that should be equal, since some have 24 bits."""
ROUNDED = 1e-5
"""By how much a probability may be above 1, as sums of numbers with 24 bits are."""
_MOST_LABELS, _MOST_FEATURES = 1000, 1000
_WHOLE = re.compile(r"0|-?[1-9]\d{0,17}")


class Event(NamedTuple):
    """One round of a log, as its file tells it."""

    where: str
    """The line, for messages."""
    label: str
    """The action that was played, by its name."""
    position: int
    """Which one of its list it was; 1 is the first."""
    cost: float
    probability: float
    record: dict[str, Any]
    """The features of the context: numbers, words and truth values."""
    among: tuple[str, ...] = ()
    """The names of all actions of the list."""
    greedy: str | None = None
    margin: float | None = None
    tag: str | None = None
    form: str = ""
    """Of its text: "vw" (adf), "vw-cb" or "dsjson"."""
    text: str | None = None
    """All of it as it was written."""
    rich: bool = False
    """Whether an action has features besides its name."""


def column_of(namespace: str, name: str) -> str:
    """What a feature's column is called: `namespace.name`, or `name` alone in the namespace `context` or in none."""
    if namespace not in ("", CONTEXT):
        return f"{namespace}.{name}"
    return f"{CONTEXT}.{name}" if name.lower() in OWN else name


def place_of(column: str) -> tuple[str, str]:
    """The namespace and name that a column is written by, so that `column_of` finds it again."""
    namespace, _, name = column.rpartition(".")
    if not namespace or not name or (namespace == CONTEXT and name.lower() not in OWN):
        return CONTEXT, column
    return namespace, name


def lines_of(path: str) -> Iterator[tuple[str, str]]:
    """The lines of a file, also a zipped one, each with what it is called in messages; line ends are left out."""
    try:
        with gzip.open(path, "rb") if path.lower().endswith(".gz") else Path(path).open("rb") as raw:
            for number, line in enumerate(raw, start=1):
                where = f"{path}: line {number}"
                try:
                    text = line.decode("utf-8-sig" if number == 1 else "utf-8")
                except UnicodeDecodeError as error:
                    raise InputError(f"{where} holds the byte {line[error.start]:#04x}; UTF-8 is expected") from None
                yield where, text.rstrip("\n").removesuffix("\r")
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path} cannot be read ({error})") from None


def number_of(where: str, what: str, text: Any) -> float:
    """A finite number, or a sentence that names the line."""
    try:
        value = float(text) if not isinstance(text, bool) else math.nan
    except (TypeError, ValueError, OverflowError):
        value = math.nan
    if not math.isfinite(value):
        raise InputError(f"{where} has {what} {text!r}; a finite number is expected")
    return value


def probability_of(where: str, text: Any) -> float:
    """A probability above 0 and at most 1, or a sentence that names the line; one that rounding put above 1 is 1."""
    value = number_of(where, "probability", text)
    if not LEAST_PROBABILITY <= value <= 1.0 + ROUNDED:
        raise InputError(f"{where} has probability {text}; a number above 0 and at most 1 is expected")
    return min(value, 1.0)


def put(record: dict[str, Any], where: str, column: str, value: Any) -> None:
    """Add a feature to a record: numbers of one name add up, as in a linear model; a word may be there once."""
    if value is None:
        return
    if not column:
        raise InputError(f"{where} has a feature without a name; every feature needs one")
    old = record.get(column)
    if old is None:
        record[column] = value
    elif isinstance(old, float) and isinstance(value, float):
        record[column] = old + value
    else:
        raise InputError(f"{where} has {column!r} twice; a word may be there once")


def made_from(name: str, events: Iterable[Event], *, rewards: bool = False) -> Made:
    """Write events to Parquet files in a folder of their own, batch by batch, and say how to read them.

    Parameters
    ----------
    name
        What the log is called in messages.
    events
        All of its events.
    rewards
        Whether it has rewards, whose negatives the costs are; messages then speak of them.
    """
    spool = Spool()
    parts: list[str] = []
    two, names, features, told = _Costs(rewards), _Names(), _Features(), set[str]()
    batch: list[Event] = []
    forms: set[str] = set()
    rich = False

    def flush() -> None:
        parts.append(str(Path(spool.name) / f"part-{len(parts):06d}.parquet"))
        write_table(Path(parts[-1]), _columns(batch))
        batch.clear()

    for event in events:
        two.add(event)
        names.add(event)
        features.add(event)
        forms.add(event.form)
        rich = rich or event.rich
        told |= {role for role in ("greedy", "margin", "tag") if getattr(event, role) is not None}
        batch.append(event)
        if len(batch) == BATCH:
            flush()
    if batch:
        flush()
    if not parts:
        raise InputError(f"{name} holds no rounds; at least one is expected")
    replaced = [
        f"CAST({role} AS BIGINT) AS {role}" for role in ("label", "greedy") if names.whole and role in told | {"label"}
    ]
    replace = f" REPLACE ({', '.join(replaced)})" if replaced else ""
    roles = {"label": "label", "bit": "bit", "probability": "probability"}
    roles |= {role: role for role in ("greedy", "margin") if role in told}
    return Made(
        folder=spool,
        paths=parts,
        query=f"(SELECT *{replace}, {two.bit()} AS bit FROM read_parquet(?, union_by_name = true))",
        roles=roles,
        labels=names.found,
        besides=OWN,
        form=forms.pop() if len(forms) == 1 else "",
        beyond=("the features of actions",) * rich + ("which actions each event lists",) * names.differ,
    )


class _Costs:
    """The costs of a log. There are at most two, and the lower one is that of a right action."""

    def __init__(self, rewards: bool) -> None:
        self._seen: dict[float, str] = {}
        self._what, self._right, self._wrong = ("reward", "higher", "lower") if rewards else ("cost", "lower", "higher")
        self._sign = -1.0 if rewards else 1.0

    def add(self, event: Event) -> None:
        if event.cost not in self._seen:
            if len(self._seen) == 2:
                odd, first, second = (f"{0.0 + self._sign * each:g}" for each in (event.cost, *self._seen))
                raise InputError(
                    f"{event.where} has {self._what} {odd} beside {first} and {second}; a log has two {self._what}s, "
                    f"the {self._right} one for a right action and the {self._wrong} one for a wrong one"
                )
            self._seen[event.cost] = event.where

    def bit(self) -> str:
        """The bit as a query has it."""
        if len(self._seen) == 2:
            return f"CAST(cost < CAST('{sum(self._seen) / 2!r}' AS DOUBLE) AS BIGINT)"
        ((cost, where),) = self._seen.items()
        if cost == 0.0:
            right, wrong = ("−1", "1") if self._sign < 0 else ("1", "−1")
            raise InputError(f"{where} and all others have {self._what} 0, which may be right (beside {right}) or "
                             f"wrong (beside {wrong}); a log with two {self._what}s is expected")  # fmt: skip
        return "CAST(1 AS BIGINT)" if cost < 0.0 else "CAST(0 AS BIGINT)"


class _Names:
    """The names of all actions, as long as they are not too many."""

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._last: Sequence[str] = ()
        self._first: set[str] = set()
        self.whole = True
        self.differ = False  # whether events list different actions

    def add(self, event: Event) -> None:
        listed = event.among or (event.label,)
        if listed is self._last:
            return
        self._last = listed
        self._first = self._first or set(listed)
        self.differ = self.differ or (event.form != "vw-cb" and self._first != set(listed))
        for name in listed:
            if name not in self._seen:
                self.whole = self.whole and _WHOLE.fullmatch(name) is not None
                if len(self._seen) <= _MOST_LABELS:
                    self._seen.add(name)

    @property
    def found(self) -> list[Any] | None:
        """Sorted; None if there are too many, or only one, which the log then has something to say about."""
        if not 2 <= len(self._seen) <= _MOST_LABELS:
            return None
        return sorted(map(int, self._seen)) if self.whole else sorted(self._seen)


class _Features:
    """The names of all features: not too many, and none that a table would take for another."""

    def __init__(self) -> None:
        self._seen: dict[str, str] = {}
        self._known: set[str] = set()

    def add(self, event: Event) -> None:
        if event.record.keys() <= self._known:
            return
        for name in event.record:
            other = self._seen.setdefault(name.lower(), name)
            if other != name:
                both = f"a feature {name!r} beside {other!r}"
                raise InputError(f"{event.where} has {both}; names that differ by more than capitals are expected")
            self._known.add(name)
        if len(self._known) > _MOST_FEATURES:
            raise InputError(f"{event.where}: the log has more than {_MOST_FEATURES:,} different features; at most "
                             "so many columns are read")  # fmt: skip


def _columns(batch: Sequence[Event]) -> Mapping[str, Any]:
    """The columns of some events."""
    import pandas as pd  # noqa: PLC0415  # slow to load

    found: dict[str, Any] = {
        "label": _as_column([event.label for event in batch]),
        "position": np.array([event.position for event in batch]),
        "cost": np.array([event.cost for event in batch]),
        "probability": np.array([event.probability for event in batch]),
    }
    for role in ("greedy", "margin", "tag"):
        values = [getattr(event, role) for event in batch]
        if any(value is not None for value in values):
            found[role] = _as_column(values)
    if any(event.text is not None for event in batch):
        found[WRITTEN] = pd.array([event.text for event in batch], dtype="string")
    names = dict.fromkeys(name for event in batch for name in event.record)
    return found | {name: _as_column([event.record.get(name) for event in batch]) for name in names}


def _as_column(values: list[Any]) -> Array | Any:
    """Numbers, truth values or words, with gaps; what is of several kinds becomes words."""
    import pandas as pd  # noqa: PLC0415  # slow to load

    kinds = {type(value) for value in values if value is not None}
    if kinds == {float}:
        return np.array([np.nan if value is None else value for value in values])
    if kinds == {bool}:
        return pd.array(values, dtype="boolean")
    return pd.array([None if value is None else word_of(value) for value in values], dtype="string")
