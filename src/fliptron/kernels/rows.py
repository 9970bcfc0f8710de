"""Rows: an example is dense or sparse, floats or bytes with one scale; a few accessors hide which."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fliptron.arrays import Array, Csr, Row, Scaled, ScaledRow, SparseRow
from fliptron.kernels.compiling import PART, compiled, intrinsic, overload


class Followed(NamedTuple):
    """In compiled code: an example, and the next one, to be asked for while the first is read."""

    row: Array | SparseRow
    after: Array | SparseRow


Wrapped = ScaledRow, Followed
"""Forms of a row that hold another one."""


def size(x: Row) -> int:
    """How many values x stores."""
    return size(x.row) if isinstance(x, Wrapped) else len(x.values if isinstance(x, SparseRow) else x)


def index(x: Row, j: int) -> int:
    """The feature of stored value j."""
    return index(x.row, j) if isinstance(x, Wrapped) else x.indices[j] if isinstance(x, SparseRow) else j


def stored(x: Row, j: int) -> float:
    """Stored value j: the value itself, or a byte that its row's scale makes one."""
    if isinstance(x, Wrapped):
        return stored(x.row, j)
    return (x.values if isinstance(x, SparseRow) else x)[j]


def scale(x: Row) -> float:
    """What the stored values are to be multiplied with."""
    return x.scale if isinstance(x, ScaledRow) else 1.0


def fits(x: Row, d: int) -> bool:
    """Whether a dense x is d numbers in a row; a sparse one has been through the gate."""
    return isinstance(x, SparseRow) or (x.shape == (d,) and x.flags.c_contiguous)


def with_values(x: Row, values: Array) -> Row:
    """A row with other values in the places of x's; the first of `values` are taken."""
    if isinstance(x, Wrapped):
        return with_values(x.row, values)
    return SparseRow(x.indices, values[: size(x)]) if isinstance(x, SparseRow) else values


def row(X: Any, i: int) -> Any:
    """Example i."""
    if isinstance(X, Scaled):
        return ScaledRow(row(X.rows, i), X.scale[i])
    if isinstance(X, Csr):
        start, stop = X.indptr[i], X.indptr[i + 1]
        return SparseRow(X.indices[start:stop], X.data[start:stop])
    return X[i]


def followed(X: Any, i: int, k: int) -> Any:
    """Example i, with example k to be asked for meanwhile. A matter of time only.

    Compiled, it borrows from X: only a loop that counts no references may hold it.
    """
    return row(X, i)


def alone(x: Row) -> Row:
    """An example as `followed` gives it, which none follows. One round then runs what was compiled for the loop."""
    return x


def kind(x: Row) -> Any:
    """Which of the forms a type of Numba's stands for."""
    return getattr(x, "instance_class", None)


@overload(size)
def _(x: Any) -> Any:
    return {
        ScaledRow: lambda x: size(x.row),
        Followed: lambda x: size(x.row),
        SparseRow: lambda x: x.values.shape[0],
    }.get(kind(x), lambda x: x.shape[0])


@overload(index)
def _(x: Any, j: Any) -> Any:
    return {
        ScaledRow: lambda x, j: index(x.row, j),
        Followed: lambda x, j: index(x.row, j),
        SparseRow: lambda x, j: np.uint64(x.indices[j]),
    }.get(kind(x), lambda x, j: j)


@overload(stored)
def _(x: Any, j: Any) -> Any:
    return {
        ScaledRow: lambda x, j: stored(x.row, j),
        Followed: lambda x, j: stored(x.row, j),
        SparseRow: lambda x, j: x.values[j],
    }.get(kind(x), lambda x, j: x[j])


@overload(scale)
def _(x: Any) -> Any:
    return (lambda x: x.scale) if kind(x) is ScaledRow else (lambda x: 1.0)


@overload(fits)
def _(x: Any, d: Any) -> Any:
    if kind(x) is SparseRow:
        return lambda x, d: True
    return lambda x, d: x.shape[0] == d and (d == 1 or x.strides[0] == x.itemsize)


@overload(with_values)
def _(x: Any, values: Any) -> Any:
    if not is_sparse_type(x):
        return lambda x, values: values
    if kind(x) in Wrapped:
        return lambda x, values: with_values(x.row, values)
    return lambda x, values: SparseRow(x.indices, values[: x.indices.shape[0]])


@overload(followed)
def _(X: Any, i: Any, k: Any) -> Any:
    return {
        Scaled: lambda X, i, k: ScaledRow(followed(X.rows, i, k), X.scale[i]),
        Csr: lambda X, i, k: Followed(_sparse(X, i), _sparse(X, k)),
    }.get(kind(X), lambda X, i, k: Followed(_plain(X[i]), _plain(X[k])))  # type: ignore[call-arg]


@compiled(**PART)
def _sparse(X: Any, i: int) -> SparseRow:
    start, stop = X.indptr[i], X.indptr[i + 1]
    return SparseRow(_plain(X.indices[start:stop]), _plain(X.data[start:stop]))  # type: ignore[call-arg]


@overload(alone)
def _(x: Any) -> Any:
    return {
        ScaledRow: lambda x: ScaledRow(alone(x.row), x.scale),
        SparseRow: lambda x: _followed_by_itself(SparseRow(_plain(x.indices), _plain(x.values))),  # type: ignore[call-arg]
    }.get(kind(x), lambda x: _followed_by_itself(_plain(x)))  # type: ignore[call-arg]


@compiled(**PART)
def _followed_by_itself(x: Any) -> Followed:
    return Followed(x, x)


@intrinsic()
def _plain(typing: Any, array: Any) -> Any:
    """The same array, whether or not it may be written to: code is then compiled once for both."""
    return array.copy(readonly=False)(array), lambda context, builder, signature, arguments: arguments[0]


def innermost(x: Any) -> Any:
    """The type of the row in the end: an array, or a SparseRow."""
    while kind(x) in Wrapped:
        x = x.types[0]
    return x


def is_sparse_type(x: Any) -> bool:
    """What `is_sparse` says of values, of a type of Numba's."""
    return kind(innermost(x)) is SparseRow


def is_contiguous_type(*arrays: Any) -> bool:
    """Whether rows and arrays of these types lie in memory without gaps."""
    parts = [part for x in map(innermost, arrays) for part in (x.types if kind(x) is SparseRow else [x])]
    return all(part.layout == "C" for part in parts)


@compiled(**PART)
def value(x: Row, j: int) -> float:
    """Value j."""
    return stored(x, j) * scale(x)
