"""Records → x: numbers centred and scaled, words in places of their own, gaps marked, and a constant."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from fliptron.arrays import Array, SparseRow
from fliptron.encoding.curves import bend, draw, room_for
from fliptron.encoding.records import Table, is_missing, is_no_number, moment, word_of
from fliptron.encoding.scaling import COUNT, SPREAD, SQUARES, merged, standardise, to_unit, to_unit_sparse
from fliptron.encoding.schema import SPARE, Column, Schema
from fliptron.refusals import InputError, named, shown, whole

_MOST_CURVES = 10_000
_REMEMBERED = 100_000  # words of a column whose places are not computed again
_YES, _NO = ("true", "yes", "t", "y"), ("false", "no", "f", "n")
_DAY, _WEEK = 2 * math.pi / 86_400, 2 * math.pi / 604_800
Bends = int | Literal["auto"]
"""How many curves."""
Place = tuple[int, float]
"""Where in x a word goes, and what is written there."""


class Encoder:
    """Makes x from records. Every x has the same length, also when new words, new columns or gaps come.

    - A *number* or *boolean* is centred by its running mean and divided by its running standard deviation. Both are
      learnt from the records as they come, each record's own value included: no labels, no look ahead. After 1,000
      values both are held, until they have strayed by a tenth of a standard deviation.
    - A *time* is five numbers: itself, and sine and cosine of where it lies in the day and in the week. A *clock*,
      which never goes back, has only the last four: nothing that was learnt of a moment would come again.
    - A *category* has a place for every value seen among the first rows, and a few more that other values share.
    - Each of *many* values is hashed (BLAKE2) to one of 256 places or more, eight for each word among the first rows,
      with a sign.
    - A missing value has a place of its own if there were gaps among the first rows. All others share one.
    - A constant 1 comes first, `Curves` of the numbers come last, and x is scaled to length 1.

    Where a column has many values, x is sparse: a `SparseRow`, and many of them a SciPy CSR array.

    Parameters
    ----------
    schema
        The columns, such as `Schema.infer` finds.
    curves
        How many curves of the numbers to add, from 0 to 10,000; see `fliptron.encoding.curves`. A sparse x has none.
    seed
        Of the curves.

    Examples
    --------
    >>> encoder = Encoder(Schema.infer([{"age": 31, "city": "Rome"}, {"age": 18, "city": "Oslo"}]))
    >>> encoder.n_features
    13
    >>> x = encoder.encode({"age": 40, "city": "Rome"})
    >>> x.shape, round(float(x @ x), 6)
    ((13,), 1.0)
    """

    def __init__(self, schema: Schema, *, curves: int = 0, seed: int = 0) -> None:
        if not isinstance(schema, Schema):
            raise InputError(
                f"the schema is a {type(schema).__name__}; a Schema is expected, such as Schema.infer finds"
            )
        self.schema = schema
        columns = [column for column in schema.columns if column.kind != "unused"]
        self._numbers = [column for column in columns if column.numbers]
        self._words = [column for column in columns if not column.numbers]
        at = 1 + sum(column.numbers for column in self._numbers)
        self.n_numbers = at - 1
        """How many numbers are centred and scaled."""
        self._plan = [(column, column.name, column.numbers) for column in self._numbers]
        self._first: dict[str, int] = {}
        for column in self._words:
            self._first[column.name] = at
            at += column.places
        self._shared, at = at, at + 1
        self._gap: dict[str, int] = {}
        for column in columns:
            self._gap[column.name] = at if column.gaps else self._shared
            at += column.gaps
        self.sparse = any(column.kind == "many" for column in columns)
        """Whether x is sparse."""
        bent = 0 if self.sparse or not self.n_numbers else whole("curves", curves, 0, _MOST_CURVES)
        self._straight = at
        self.curves = draw(max(self.n_numbers, 1), bent, whole("seed", seed, 0))
        """The curves at the end of x."""
        self.n_features = at + bent
        """The length of every x."""
        self.moments = np.zeros((5, self.n_numbers + bent - self.curves.phases.size))
        """Running count, mean and squared deviations of every number and every product, and its centre and scale."""
        self._dense = np.arange(1 + self.n_numbers)
        self._places: dict[str, dict[Any, Place]] = {
            column.name: {value: (self._first[column.name] + k, 1.0) for k, value in enumerate(column.values)}
            for column in self._words
        }

    @classmethod
    def of(cls, schema: Schema, n_classes: int, curves: Bends = "auto") -> Encoder:
        """An encoder for a learner of K labels.

        Parameters
        ----------
        schema
            The columns.
        n_classes
            K.
        curves
            How many curves, or "auto": 128, or all products of two numbers and 64 waves where there are 11 to 22
            numbers; fewer where whole covariances have no room, K·d² ≤ 2¹⁹, and none if that is fewer than 32.
        """
        straight, K = cls(schema), whole("n_classes", n_classes, 2)
        count = room_for(K, straight.n_features, straight.n_numbers) if curves == "auto" else curves
        return cls(schema, curves=count) if count else straight

    def recognise(self, record: Any) -> None:
        """Refuse a record whose names are all wrong; an empty one says that nothing is known."""
        if isinstance(record, Mapping) and record and self._gap.keys().isdisjoint(record):
            self.missing(list(map(str, record)), "the record")

    def missing(self, names: Sequence[str], where: str) -> list[str]:
        """The columns that are not among those of some records, which are in `where`; one of them at least must be."""
        found = [name for name in self._gap if name not in names]
        if len(found) == len(self._gap):
            there = f"has {named(names)}" if names else "has none at all"
            raise InputError(
                f"the policy decides by {named(list(self._gap))}, but {where} {there}; one of them is expected there"
            )
        return found

    def encode(self, record: Mapping[str, Any], *, update: bool = True) -> Any:
        """x of one record.

        Parameters
        ----------
        record
            Names and values; a column that is not there is missing, and one that is not known is ignored.
        update
            Whether running means and variances take this record in.
        """
        if not isinstance(record, Mapping):
            raise InputError(f"the record is a {type(record).__name__}; a dict of names and values is expected")
        if not all(type(name) is str for name in record):
            record = {str(name): value for name, value in record.items()}  # as columns of a frame are named
        x, k, gaps = np.empty((1, len(self._dense))), 1, []
        row = x[0]
        row[0] = 1.0
        for column, name, width in self._plan:
            value: Any = record.get(name)
            plain = width == 1 and type(value) is float and math.isfinite(value)
            found: float = value if plain else _read(column, value)
            if width > 1:
                row[k : k + width] = _time_parts(found)[-width:]
            else:
                row[k] = found
            if math.isnan(found):
                gaps.append(self._gap[name])
            k += width
        placed: list[Place] = []
        for column in self._words:
            value = record.get(column.name)
            if is_missing(value):
                gaps.append(self._gap[column.name])
            else:
                placed.append(self._place(column, value))
        placed += [(gap, 1.0) for gap in sorted(set(gaps))]
        places, signs = [place for place, _ in placed], [sign for _, sign in placed]
        standardise(self.moments, x, self.n_numbers, update)
        if self.sparse:
            values = np.concatenate([row, signs])
            to_unit(values[None])
            return SparseRow(np.concatenate([self._dense, places]).astype(np.int32), values)
        full = np.zeros((1, self.n_features))
        full[0, :k], full[0, places] = row, signs
        bend(self.curves, self.moments, full, self._straight, update)
        to_unit(full)
        return full[0]

    def encode_all(self, records: Any, *, update: bool = True) -> Any:
        """X of many records, a row for each: what `encode` would make of them one after the other.

        Parameters
        ----------
        records
            In any form that `Table.of` takes.
        update
            Whether running means and variances take them in.
        """
        return self.scaled(self.raw(records), update=update)

    def raw(self, records: Any) -> Any:
        """X before anything is centred or scaled, a missing number as NaN; `scaled` does the rest."""
        table = Table.of(records)
        n, k, missing = len(table), 1, []
        X = np.zeros((n, len(self._dense) if self.sparse else self.n_features))
        X[:, 0] = 1.0
        for column in self._numbers:
            part = X[:, k : k + column.numbers]
            _fill(column, table.columns.get(column.name), part, table.start)
            missing.append((column, np.isnan(part[:, 0])))
            k += column.numbers
        places, signs = np.zeros((n, len(self._words)), np.int64), np.zeros((n, len(self._words)))
        for w, column in enumerate(self._words):
            self._fill_words(column, table.columns.get(column.name), places[:, w], signs[:, w])
            missing.append((column, signs[:, w] == 0.0))
        marks = np.zeros((n, self._straight - self._shared))
        for column, gaps in missing:
            marks[gaps, self._gap[column.name] - self._shared] = 1.0
        if self.sparse:
            return self._csr(X, places, signs, marks)
        rows, words = np.nonzero(signs)
        X[rows, places[rows, words]] = signs[rows, words]
        X[:, self._shared : self._straight] = marks
        return X

    def scaled(self, raw: Any, *, update: bool = True) -> Any:
        """X from its raw form, in place: numbers by the running means and variances, rows to length 1."""
        if not self.sparse:
            standardise(self.moments, raw, self.n_numbers, update)
            bend(self.curves, self.moments, raw, self._straight, update)
            to_unit(raw)
            return raw
        places = raw.indptr[:-1, None] + self._dense
        numbers = raw.data[places]
        standardise(self.moments, numbers, self.n_numbers, update)
        raw.data[places] = numbers
        to_unit_sparse(raw.indptr, raw.data)
        return raw

    def like(self, other: Encoder) -> bool:
        """Whether another encoder makes x in the same way, means and variances aside."""
        same = zip(self.curves, other.curves, strict=True)
        return self.schema == other.schema and all(np.array_equal(a, b) for a, b in same)

    @property
    def columns(self) -> list[str]:
        """The column that each place of x tells of, up to the curves; no name for the constant and the shared gap."""
        found = [""] + [column.name for column in self._numbers for _ in range(column.numbers)]
        found += [column.name for column in self._words for _ in range(column.places)]
        return found + [""] + [name for name, place in self._gap.items() if place != self._shared]

    def arrays(self) -> dict[str, Array]:
        """What a file must hold besides the schema."""
        return {"moments": self.moments, **self.curves._asdict()}

    def merge(self, other: Encoder) -> None:
        """Take in the means and variances of an encoder with the same schema, which saw other records."""
        if not isinstance(other, Encoder):
            raise InputError(f"the other encoder is a {type(other).__name__}; an Encoder is expected")
        if not self.like(other):
            raise InputError("the other encoder has another schema or other curves; encoders of one kind can be merged")
        self.moments[:] = merged(self.moments, other.moments)

    def flaw(self) -> str:
        """What is wrong with moments that came from a file."""
        bad = (self.moments[[COUNT, SQUARES, SPREAD]] < 0.0).any() or not np.isfinite(self.moments).all()
        return "its running means and variances are not those of numbers" if bad else ""

    def _place(self, column: Column, value: Any) -> Place:
        try:
            known, word = self._places[column.name], word_of(value)
        except TypeError:
            what = f"holds {str(value)[:40]!r}, a {type(value).__name__}"
            raise InputError(f"column {column.name!r} {what}; a word is expected") from None
        found = known.get(word)
        if found is None and isinstance(value, bool | np.bool_):  # a column of yes and no
            found = next((known[each] for each in column.values if each.lower() in (_YES if value else _NO)), None)
        if found is None:
            spelt = word.encode("utf-8", "surrogatepass")
            told = int.from_bytes(hashlib.blake2b(spelt, digest_size=8, person=b"fliptron").digest(), "big")
            first = self._first[column.name]
            if column.kind == "many":
                found = first + (told >> 1) % column.buckets, 1.0 if told & 1 else -1.0
            else:
                found = first + len(column.values) + told % SPARE, 1.0
            if len(known) < _REMEMBERED:
                known[word] = found
        return found

    def _fill_words(self, column: Column, values: Array | None, places: Array, signs: Array) -> None:
        """Where each row's word goes, and its sign; 0 where there is none."""
        if values is None:
            return
        found: dict[str, Place] = {}
        both = []
        for value in values.tolist():
            if type(value) is str and value in found:
                both.append(found[value])
            elif is_missing(value):
                both.append((0, 0.0))
            else:
                both.append(self._place(column, value))
                if type(value) is str:
                    found[value] = both[-1]
        places[:], signs[:] = np.array(both).reshape(-1, 2).T

    def _csr(self, X: Array, places: Array, signs: Array, marks: Array) -> Any:
        """Constant and numbers, then words, then gaps: in every row the places rise."""
        import scipy.sparse as sp  # noqa: PLC0415  # slow to load

        n = len(X)
        gaps = np.arange(self._shared, self._straight)
        values = np.hstack([X, signs, marks])
        indices = np.hstack([np.tile(self._dense, (n, 1)), places, np.tile(gaps, (n, 1))])
        kept = values != 0.0
        kept[:, : X.shape[1]] = True
        indptr = np.concatenate([[0], np.cumsum(kept.sum(axis=1))])
        shape = (n, self.n_features)
        return sp.csr_array((values[kept], indices[kept].astype(np.int32), indptr.astype(np.int32)), shape=shape)


def _read(column: Column, value: Any, row: int | None = None) -> float:
    """A number, or the seconds of a time; NaN where it is missing."""
    if is_missing(value) or is_no_number(value):
        return math.nan
    if column.numbers > 1:
        found, expected = moment(value), "a time such as 2026-05-01T12:30"
    else:
        boolean = column.kind == "boolean"
        found, expected = (_as_truth(value), "true or false") if boolean else (_as_float(value), "a finite number")
    if found is None or math.isinf(found):
        where = "" if row is None else f" in row {row}"
        raise InputError(f"column {column.name!r} holds {shown(value)}{where}; {expected} is expected")
    return found


def _as_float(value: Any) -> float | None:
    try:
        return None if isinstance(value, str) and "_" in value else float(value)  # which Python's numbers may have
    except OverflowError:
        return math.inf
    except (TypeError, ValueError):
        return {"true": 1.0, "false": 0.0}.get(value.lower()) if isinstance(value, str) else None


def _as_truth(value: Any) -> float | None:
    """A truth value, however people write it."""
    word = value.strip().lower() if isinstance(value, str) else ""
    return 1.0 if word in _YES else 0.0 if word in _NO else _as_float(value)


def _time_parts(seconds: Any) -> tuple[Any, ...]:
    day, week = seconds * _DAY, seconds * _WEEK
    return seconds, np.sin(day), np.cos(day), np.sin(week), np.cos(week)


def _fill(column: Column, values: Array | None, part: Array, start: int) -> None:
    """The numbers of a column, NaN where there is none."""
    if values is None:
        part[:] = np.nan
        return
    kind = values.dtype.kind
    width = column.numbers
    if kind == "M" and width > 1:
        seconds = values.astype("datetime64[us]").astype(np.int64) / 1e6
        part.T[:] = _time_parts(np.where(np.isnat(values), np.nan, seconds))[-width:]
    elif kind in "biuf" and width == 1:
        part[:, 0] = values
        wild = np.isinf(part[:, 0])
        if wild.any():
            _read(column, float(part[wild.argmax(), 0]), start + int(wild.argmax()))
    else:
        found = [_read(column, value, start + i) for i, value in enumerate(values.tolist())]
        part.T[:] = _time_parts(np.array(found))[-width:] if width > 1 else np.array(found)
