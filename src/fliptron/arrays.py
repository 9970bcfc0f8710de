"""The one gate for input: what enters is finite, contiguous and of the right shape, or is refused."""

from __future__ import annotations

import numbers
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

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


Row = Array | SparseRow
Matrix = Array | Csr

FLOAT64 = np.dtype(np.float64)
_LINE = 64
LARGEST = 1e150
"""The largest size of a value: its square, summed over features, is still a number."""


class InputError(ValueError):
    """Input that is not allowed; the message names the value and what is."""


def as_row(x: Any, n_features: int) -> Row:
    """One example as the kernels read it. Finiteness is checked there, in the same pass."""
    sparse = sp.issparse(x)
    row = x if sparse else _as_floats(x, "x")
    shape = row.shape[1:] if sparse and row.ndim == 2 and row.shape[0] == 1 else row.shape
    if len(shape) != 1:
        raise InputError(f"x has shape {shape}; one example of {n_features} numbers is expected")
    _check_width(shape[0], n_features)
    if not sparse:
        return row
    matrix = as_csr(row.reshape(1, -1))
    return SparseRow(matrix.indices, matrix.data)


def as_matrix(X: Any, n_features: int | None = None) -> Matrix:
    """Many examples, dense or CSR, every value finite."""
    if isinstance(X, Csr):
        X = sp.csr_array((X.data, X.indices, X.indptr), shape=(X.indptr.shape[0] - 1, X.width))
    X = X if sp.issparse(X) else _as_floats(X, "X")
    shape = X.shape
    if len(shape) != 2 or shape[1] == 0:
        raise InputError(f"X has shape {shape}; rows by features is expected, with at least one feature")
    if n_features is not None:
        _check_width(shape[1], n_features)
    matrix = as_csr(X) if sp.issparse(X) else X
    values = matrix.data if isinstance(matrix, Csr) else matrix
    if not (np.abs(values) <= LARGEST).all():
        raise InputError(f"X holds {_first_too_large(X)}; every value must be finite and at most {LARGEST:g} in size")
    return matrix


def count_rows(matrix: Matrix) -> int:
    """How many examples a matrix from this gate holds."""
    return matrix.indptr.shape[0] - 1 if isinstance(matrix, Csr) else int(matrix.shape[0])


def as_csr(X: Any) -> Csr:
    """A SciPy sparse matrix as the kernels read it: sorted, no duplicates, float64 and int32."""
    if np.dtype(X.dtype).kind not in "biuf":
        raise InputError(f"a sparse matrix of {X.dtype} is not allowed; real numbers are expected")
    try:
        matrix = sp.csr_array(X, dtype=np.float64, copy=True)
        matrix.check_format(full_check=True)
    except ValueError as error:
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


def to_unit_norm(matrix: Matrix) -> Matrix:
    """Rows scaled to length 1, by their largest value first, so that no square is lost or overflows."""
    if not isinstance(matrix, Csr):
        matrix = matrix / _nonzero(np.abs(matrix).max(axis=1, keepdims=True))
        return np.asarray(matrix / _nonzero(np.linalg.norm(matrix, axis=1, keepdims=True)))
    lengths = np.diff(matrix.indptr)
    rows = np.repeat(np.arange(lengths.size), lengths)
    largest = np.zeros(lengths.size)
    np.maximum.at(largest, rows, np.abs(matrix.data))
    values = matrix.data / _nonzero(largest)[rows]
    norms = np.sqrt(np.bincount(rows, values**2, minlength=lengths.size))
    return matrix._replace(data=values / _nonzero(norms)[rows])


def _nonzero(sizes: Array) -> Array:
    return np.where(sizes > 0.0, sizes, 1.0)


def aligned(array: Array) -> Array:
    """A copy that starts on a cache line; NumPy's own start 16 bytes into one, which slows vector loads by a tenth."""
    room = np.empty(array.nbytes + _LINE, dtype=np.uint8)
    start = -room.ctypes.data % _LINE
    copy = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def as_labels(y: Any, n_rows: int, n_classes: int) -> Array:
    """True labels, whole numbers from 0 to K − 1, one a row."""
    labels = np.asarray(y)
    if labels.shape != (n_rows,):
        raise InputError(f"y has shape {labels.shape}; one label for each of the {n_rows} rows is expected")
    if labels.dtype.kind not in "iu" and not (labels.dtype.kind == "f" and (labels == np.floor(labels)).all()):
        raise InputError(f"labels of type {labels.dtype} are not allowed; whole numbers are expected")
    labels = np.ascontiguousarray(labels, dtype=np.int64)
    bad = labels[(labels < 0) | (labels >= n_classes)]
    if bad.size:
        raise InputError(f"label {bad[0]} is out of range; labels run from 0 to {n_classes - 1}")
    return labels


def whole(name: str, value: Any, least: int, most: int | None = None) -> int:
    """A whole number within bounds."""
    allowed = f"a whole number of at least {least}" + ("" if most is None else f" and at most {most}")
    fits = isinstance(value, numbers.Integral) or (isinstance(value, numbers.Real) and float(value).is_integer())
    if isinstance(value, bool) or not fits:
        raise InputError(f"{name} is {value!r}; {allowed} is expected")
    number = int(value)
    if number < least or (most is not None and number > most):
        raise InputError(f"{name} is {value}; {allowed} is expected")
    return number


def real(name: str, value: Any, least: float, most: float = np.inf, *, open_below: bool = False) -> float:
    """A finite real number within bounds."""
    kind = "above" if open_below else "of at least"
    allowed = f"a number {kind} {least:g}" + ("" if most == np.inf else f" and at most {most:g}")
    try:
        number = float(value) if isinstance(value, numbers.Real) and not isinstance(value, bool) else np.nan
    except OverflowError:
        number = np.inf
    if not np.isfinite(number):
        raise InputError(f"{name} is {value!r}; {allowed} is expected")
    if number < least or number > most or (open_below and number == least):
        raise InputError(f"{name} is {value}; {allowed} is expected")
    return number


def _as_floats(x: Any, name: str) -> Array:
    try:
        array = np.asarray(x)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{name} is not a rectangular array of numbers ({error})") from None
    if array.dtype.kind not in "biuf":
        raise InputError(f"{name} is an array of {array.dtype}; real numbers are expected")
    if np.ma.is_masked(x):
        raise InputError(f"{name} has masked values; every value must be there")
    return np.require(array, np.float64, ["C", "A"])


def _check_width(width: int, n_features: int) -> None:
    if width != n_features:
        raise InputError(f"x has {width} features; the learner has {n_features}")


def _first_too_large(X: Any) -> str:
    cells = sp.coo_array(X)
    at = int(np.argmin(np.abs(cells.data) <= LARGEST))
    return f"{cells.data[at]} at row {cells.row[at]}, column {cells.col[at]}"
