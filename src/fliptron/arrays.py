"""The one gate for examples: what enters is finite, not too long, contiguous and of the right shape, or is refused.

An example is dense or sparse, floats or bytes with one scale per row. Each array passes once, where it comes in; what
lies behind the gate is closed to writing and trusted by compiled code.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fliptron.refusals import InputError, one_of

Array = npt.NDArray[Any]


class SparseRow(NamedTuple):
    """The non-zero values of one example."""

    indices: Array
    values: Array


class Csr(NamedTuple):
    """Compressed sparse rows: row i holds entries indptr[i] to indptr[i + 1]."""

    indptr: Array
    indices: Array
    data: Array
    width: int


class ScaledRow(NamedTuple):
    """One example as bytes, and what to multiply them with."""

    row: Array | SparseRow
    scale: float


class Scaled(NamedTuple):
    """Examples as bytes, dense or CSR, with one scale per row: images and counts in an eighth of the memory."""

    rows: Array | Csr
    scale: Array


Row = Array | SparseRow
Matrix = Array | Csr | Scaled

FLOATS = {name: np.dtype(name) for name in ("float64", "float32")}
KEPT = (*FLOATS, "uint8", "sparse")
"""How the examples of a data set may be kept: as float64, float32, bytes with one scale per row, or float64 without
zeros."""
LONGEST = {8: 1e30, 4: 1e9}
"""The longest example, ‖x‖, by the bytes of a weight. All that a learner keeps then stays a number: its largest terms
are fourth powers of x times a count of rounds (`LeastMeanSquares`), or x over a least probability times that count."""
SHORTEST = 1e-30
"""An example shorter than this counts as zero where an update divides by its length."""

_LINE = 64
_CHUNK = 2**22  # values looked at in one go, so that a check takes no memory of its own


def as_float(dtype: Any) -> np.dtype[Any]:
    """A precision by its name."""
    return FLOATS[one_of("dtype", dtype, FLOATS)]


def as_row(x: Any, n_features: int, dtype: Any = np.float64) -> Row:
    """One example as the kernels read it."""
    if isinstance(x, SparseRow):
        return _as_sparse_row(x, n_features, dtype)
    sparse = _is_scipy(x)
    given = x if sparse else _as_floats(x, "x", dtype)
    shape = given.shape[1:] if sparse and given.ndim == 2 and given.shape[0] == 1 else given.shape
    if len(shape) != 1:
        raise InputError(f"x has shape {shape}; one example of {n_features} numbers is expected")
    _check_width(shape[0], n_features)
    matrix = as_csr(given, dtype) if sparse else given[None]
    _check_lengths(lengths(matrix), dtype, "x", matrix)
    return SparseRow(matrix.indices, matrix.data) if isinstance(matrix, Csr) else np.asarray(matrix[0])


def _as_sparse_row(x: SparseRow, n_features: int, dtype: Any) -> SparseRow:
    indices, values = np.asarray(x.indices), _as_floats(x.values, "x", dtype)
    if indices.dtype.kind not in "iu" or indices.ndim != 1 or indices.shape != values.shape:
        raise InputError("the sparse row is not well formed (one whole number is expected for every value)")
    if indices.size and not (indices[0] >= 0 and indices[-1] < n_features and (np.diff(indices) > 0).all()):
        raise InputError(f"the sparse row is not well formed (indices must rise, from 0 to {n_features - 1} at most)")
    row = SparseRow(np.require(indices, np.int32, ["C", "A"]), values)
    found = np.array([np.linalg.norm(values)])
    _check_lengths(found, dtype, "x", Csr(np.array([0, values.size]), row.indices, values, n_features))
    return row


def as_matrix(X: Any, n_features: int | None = None, dtype: Any = np.float64, *, bounded: bool = True) -> Array | Csr:
    """Many examples, dense or CSR, every value finite and, where they are `bounded`, no row too long."""
    X = X if _is_scipy(X) else _as_floats(X, "X", dtype)
    if X.ndim != 2 or X.shape[1] == 0:
        raise InputError(f"X has shape {X.shape}; rows by features is expected, with at least one feature")
    if n_features is not None:
        _check_width(X.shape[1], n_features)
    matrix = as_csr(X, dtype) if _is_scipy(X) else X
    if bounded or not np.isfinite(matrix.data if isinstance(matrix, Csr) else matrix).all():
        _check_lengths(lengths(matrix), dtype, "X", matrix)
    return matrix


def as_csr(X: Any, dtype: Any = np.float64) -> Csr:
    """A SciPy sparse array as the kernels read it: sorted, no duplicates, int32 indices.

    SciPy's own conversions trust the indices they are given, and write where those point: they are checked before.
    """
    import scipy.sparse as sp  # noqa: PLC0415  # whoever brings a sparse array has it loaded

    if np.dtype(X.dtype).kind not in "biuf":
        raise InputError(f"a sparse matrix of {X.dtype} is not allowed; real numbers are expected")
    try:
        if hasattr(X, "check_format"):
            X.check_format(full_check=True)
        else:
            X = X.tocoo()
            for places, size in zip(X.coords, X.shape, strict=True):
                if places.size and not 0 <= places.min() <= places.max() < size:
                    raise ValueError(f"an index lies outside 0 to {size - 1}")
        matrix = sp.csr_array(X.reshape(1, -1) if X.ndim == 1 else X, dtype=dtype, copy=True)
        matrix.check_format(full_check=True)
    except (ValueError, IndexError, TypeError) as error:
        raise InputError(f"the sparse matrix is not well formed ({error})") from None
    if matrix.shape[1] > np.iinfo(np.int32).max:
        raise InputError(f"X has {matrix.shape[1]} features; at most {np.iinfo(np.int32).max} are allowed")
    matrix.sum_duplicates()
    return Csr(
        np.ascontiguousarray(matrix.indptr, dtype=np.int64),
        np.ascontiguousarray(matrix.indices, dtype=np.int32),
        np.ascontiguousarray(matrix.data),
        int(matrix.shape[1]),
    )


def gate(X: Any, dtype: str, *, unit_norm: bool) -> tuple[Matrix, float]:
    """Examples in one of the forms `KEPT`, and the longest one's length.

    The result is a copy of its own, aligned and closed to writing.
    """
    one_of("dtype", dtype, KEPT)
    if dtype == "uint8":
        return _gate_bytes(X, unit_norm=unit_norm)
    matrix = as_matrix(X, bounded=not unit_norm)  # what will be scaled may be of any size
    if unit_norm:
        matrix = to_unit_norm(matrix)
    elif dtype == "float32":
        _check_lengths(lengths(matrix), np.float32, "X", matrix)
    longest = float(lengths(matrix).max(initial=0.0))
    if dtype == "sparse":
        return _closed(matrix if isinstance(matrix, Csr) else _without_zeros(matrix)), longest
    values = (matrix.data if isinstance(matrix, Csr) else matrix).astype(FLOATS[dtype], copy=False)
    return _closed(matrix._replace(data=values) if isinstance(matrix, Csr) else values), longest


def _without_zeros(matrix: Array) -> Csr:
    rows, places = np.nonzero(matrix)
    ends = np.cumsum(np.bincount(rows, minlength=len(matrix)))
    return Csr(np.append(0, ends).astype(np.int64), places.astype(np.int32), matrix[rows, places], matrix.shape[1])


def _gate_bytes(X: Any, *, unit_norm: bool) -> tuple[Scaled, float]:
    sparse = _is_scipy(X)
    X = X if sparse else _as_array(X, "X")
    if X.ndim != 2 or X.shape[1] == 0:
        raise InputError(f"X has shape {X.shape}; rows by features is expected, with at least one feature")
    values = as_csr(X, np.float64 if X.dtype.kind == "f" else X.dtype) if sparse else X
    numbers = values.data if isinstance(values, Csr) else values
    for part in _parts(numbers):
        odd = part[(part < 0) | (part > 255) | (part != np.floor(part))]
        if odd.size:
            raise InputError(f"dtype is 'uint8', but X holds {odd[0]:g}; whole numbers from 0 to 255 are expected")
    small = numbers.astype(np.uint8)
    rows = _closed(values._replace(data=small) if isinstance(values, Csr) else small)
    long = lengths(rows)
    scale = (1.0 / _nonzero(long)).astype(np.float32) if unit_norm else np.ones(long.size, np.float32)
    scale.flags.writeable = False
    return Scaled(rows, scale), 1.0 if unit_norm else float(long.max(initial=0.0))


def count_rows(matrix: Matrix) -> int:
    """How many examples a matrix from this gate holds."""
    if isinstance(matrix, Scaled):
        return count_rows(matrix.rows)
    return matrix.indptr.shape[0] - 1 if isinstance(matrix, Csr) else int(matrix.shape[0])


def is_sparse(x: Any) -> bool:
    """Whether a row or matrix from this gate stores only what is not zero."""
    inner = x.row if isinstance(x, ScaledRow) else x.rows if isinstance(x, Scaled) else x
    return isinstance(inner, SparseRow | Csr)


def lengths(matrix: Array | Csr) -> Array:
    """‖x‖ of every row; infinite where a value is not finite or its square is not."""
    with np.errstate(over="ignore", invalid="ignore"):
        if isinstance(matrix, Csr):
            rows = np.repeat(np.arange(count_rows(matrix)), np.diff(matrix.indptr))
            squares = np.bincount(rows, np.square(matrix.data, dtype=np.float64), minlength=count_rows(matrix))
            found = np.sqrt(squares)
        else:
            parts = [np.sqrt(np.einsum("ij,ij->i", part, part)) for part in _parts(matrix)]
            found = np.concatenate(parts) if parts else np.empty(0)
    return np.where(np.isnan(found), np.inf, found)


def to_unit_norm(matrix: Array | Csr) -> Array | Csr:
    """Rows scaled to length 1, by their largest value first, so that no square is lost or overflows."""
    if not isinstance(matrix, Csr):
        unit = np.empty(matrix.shape)
        step = max(_CHUNK // matrix.shape[1], 1)
        for start in range(0, matrix.shape[0], step):
            part, out = matrix[start : start + step], unit[start : start + step]
            np.divide(part, _nonzero(np.abs(part).max(axis=1, keepdims=True)), out=out)
            out /= _nonzero(np.linalg.norm(out, axis=1, keepdims=True))
        return unit
    sizes = np.diff(matrix.indptr)
    rows = np.repeat(np.arange(sizes.size), sizes)
    largest = np.zeros(sizes.size)
    np.maximum.at(largest, rows, np.abs(matrix.data))
    values = matrix.data / _nonzero(largest)[rows]
    norms = np.sqrt(np.bincount(rows, values**2, minlength=sizes.size))
    return matrix._replace(data=values / _nonzero(norms)[rows])


def aligned(array: Array) -> Array:
    """A copy that starts on a cache line; NumPy's own start 16 bytes into one, which slows vector loads by a tenth."""
    room = np.empty(array.nbytes + _LINE, dtype=np.uint8)
    start = -room.ctypes.data % _LINE
    copy = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def feature_major(array: Array) -> Array:
    """A K×d copy in which the labels of a feature lie side by side."""
    return aligned(array.T).T


def as_labels(y: Any, n_rows: int, n_classes: int) -> Array:
    """True labels, whole numbers from 0 to K − 1, one per row, closed to writing."""
    labels = np.asarray(y)
    if labels.shape != (n_rows,):
        raise InputError(f"y has shape {labels.shape}; one label for each of the {n_rows} rows is expected")
    if labels.dtype.kind not in "iu" and not (labels.dtype.kind == "f" and (labels == np.floor(labels)).all()):
        raise InputError(f"labels of type {labels.dtype} are not allowed; whole numbers are expected")
    labels = np.array(labels, dtype=np.int64, order="C")
    bad = labels[(labels < 0) | (labels >= n_classes)]
    if bad.size:
        raise InputError(f"label {bad[0]} is out of range; labels run from 0 to {n_classes - 1}")
    labels.flags.writeable = False
    return labels


def _closed(matrix: Array | Csr) -> Array | Csr:
    copies = [aligned(array) for array in (matrix[:3] if isinstance(matrix, Csr) else (matrix,))]
    for array in copies:
        array.flags.writeable = False
    return Csr(copies[0], copies[1], copies[2], matrix.width) if isinstance(matrix, Csr) else copies[0]


def _parts(array: Array) -> Iterator[Array]:
    """An array as floats, a few rows at a time."""
    step = max(_CHUNK // max(array[:1].size, 1), 1)
    for start in range(0, array.shape[0], step):
        yield array[start : start + step].astype(np.float64, copy=False)


def _nonzero(sizes: Array) -> Array:
    return np.where(sizes > 0.0, sizes, 1.0)


def _check_lengths(found: Array, dtype: Any, name: str, matrix: Array | Csr) -> None:
    most = LONGEST[np.dtype(dtype).itemsize]
    if (found <= most).all():
        return
    at = int(np.argmin(found <= most))
    if isinstance(matrix, Csr):
        part = slice(*matrix.indptr[at : at + 2])
        values, columns = matrix.data[part], matrix.indices[part]
    else:
        values, columns = matrix[at], np.arange(matrix.shape[1])
    worst = int(np.argmin(np.abs(values) <= most))  # the first that alone is too much, or simply the first
    precision = "" if most == LONGEST[8] else " in float32"
    row = "" if name == "x" else f"row {at}, "
    if not abs(values[worst]) <= most:
        raise InputError(
            f"{name} holds {values[worst]:g} at {row}column {columns[worst]}; finite values are expected, and a length "
            f"of at most {most:g}{precision}"
        )
    where = row and f" in row {at}"
    raise InputError(f"{name} has length {found[at]:g}{where}; at most {most:g} is allowed{precision}")


def _check_width(width: int, n_features: int) -> None:
    if width != n_features:
        raise InputError(f"x has {width} features; {n_features} are expected")


def _is_scipy(x: Any) -> bool:
    """`scipy.sparse.issparse`, without loading SciPy."""
    return hasattr(x, "tocoo") and hasattr(x, "shape")


def _as_floats(x: Any, name: str, dtype: Any = np.float64) -> Array:
    return np.require(_as_array(x, name), dtype, ["C", "A"])


def _as_array(x: Any, name: str) -> Array:
    try:
        array = np.asarray(x)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{name} is not a rectangular array of numbers ({error})") from None
    if array.dtype.kind not in "biuf":
        raise InputError(f"{name} is an array of {array.dtype}; real numbers are expected")
    if np.ma.is_masked(x):
        raise InputError(f"{name} has masked values; every value must be there")
    return array
