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


class ScaledRow(NamedTuple):
    """One example as bytes, and what to multiply them with."""

    row: Array | SparseRow
    scale: float


class Scaled(NamedTuple):
    """Examples as bytes, dense or CSR, with one scale a row: images and counts in an eighth of the memory."""

    rows: Array | Csr
    scale: Array


Row = Array | SparseRow
Matrix = Array | Csr | Scaled

_FLOATS = {name: np.dtype(name) for name in ("float64", "float32")}
_LINE = 64
LARGEST = 1e150
"""The largest size of a value: its square, summed over features, is still a number."""


class InputError(ValueError):
    """Input that is not allowed; the message names the value and what is."""


def as_float(dtype: Any) -> np.dtype[Any]:
    """A precision by its name."""
    if not isinstance(dtype, str) or dtype not in _FLOATS:
        raise InputError(f"dtype is {dtype!r}; 'float64' or 'float32' is expected")
    return _FLOATS[dtype]


def as_row(x: Any, n_features: int, dtype: Any = np.float64) -> Row:
    """One example as the kernels read it. Finiteness is checked there, in the same pass."""
    sparse = sp.issparse(x)
    row = x if sparse else _as_floats(x, "x", dtype)
    shape = row.shape[1:] if sparse and row.ndim == 2 and row.shape[0] == 1 else row.shape
    if len(shape) != 1:
        raise InputError(f"x has shape {shape}; one example of {n_features} numbers is expected")
    _check_width(shape[0], n_features)
    if not sparse:
        return row
    matrix = as_csr(row.reshape(1, -1), dtype)
    return SparseRow(matrix.indices, matrix.data)


def as_matrix(X: Any, n_features: int | None = None, dtype: Any = np.float64) -> Array | Csr:
    """Many examples, dense or CSR, every value finite."""
    if isinstance(X, Scaled):
        X = _unscaled(X)
    if isinstance(X, Csr):
        X = sp.csr_array((X.data, X.indices, X.indptr), shape=(X.indptr.shape[0] - 1, X.width))
    X = X if sp.issparse(X) else _as_floats(X, "X", dtype)
    shape = X.shape
    if len(shape) != 2 or shape[1] == 0:
        raise InputError(f"X has shape {shape}; rows by features is expected, with at least one feature")
    if n_features is not None:
        _check_width(shape[1], n_features)
    matrix = as_csr(X, dtype) if sp.issparse(X) else X
    values = matrix.data if isinstance(matrix, Csr) else matrix
    if not (np.abs(values) <= min(LARGEST, float(np.finfo(dtype).max))).all():
        raise InputError(f"X holds {_first_too_large(X)}; every value must be finite and at most {LARGEST:g} in size")
    return matrix


def count_rows(matrix: Matrix) -> int:
    """How many examples a matrix from this gate holds."""
    if isinstance(matrix, Scaled):
        return count_rows(matrix.rows)
    return matrix.indptr.shape[0] - 1 if isinstance(matrix, Csr) else int(matrix.shape[0])


def as_csr(X: Any, dtype: Any = np.float64) -> Csr:
    """A SciPy sparse matrix as the kernels read it: sorted, no duplicates, int32 indices."""
    if np.dtype(X.dtype).kind not in "biuf":
        raise InputError(f"a sparse matrix of {X.dtype} is not allowed; real numbers are expected")
    try:
        matrix = sp.csr_array(X, dtype=dtype, copy=True)
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


def is_sparse(x: Any) -> bool:
    """Whether a row or matrix from this gate stores only what is not zero."""
    inner = x.row if isinstance(x, ScaledRow) else x.rows if isinstance(x, Scaled) else x
    return isinstance(inner, SparseRow | Csr)


def as_dtype(matrix: Array | Csr, dtype: str, *, unit_norm: bool) -> Matrix:
    """A float64 matrix in the form asked for: float64, float32, or uint8 with one scale a row."""
    if not isinstance(dtype, str) or dtype not in (*_FLOATS, "uint8"):
        raise InputError(f"dtype is {dtype!r}; 'float64', 'float32' or 'uint8' is expected")
    values = matrix.data if isinstance(matrix, Csr) else matrix
    if dtype == "uint8":
        odd = values[(values < 0) | (values > 255) | (values != np.floor(values))]
        if odd.size:
            raise InputError(f"dtype is 'uint8', but X holds {odd[0]:g}; whole numbers from 0 to 255 are expected")
        lengths = _lengths(matrix) if unit_norm else np.ones(count_rows(matrix))
        small = matrix._replace(data=values.astype(np.uint8)) if isinstance(matrix, Csr) else values.astype(np.uint8)
        return Scaled(small, (1.0 / _nonzero(lengths)).astype(np.float32))
    precision, most = as_float(dtype), float(np.finfo(dtype).max)
    if not unit_norm and (np.abs(values) > most).any():
        raise InputError(f"X holds {values[np.abs(values) > most][0]:g}; {dtype} holds at most {most:.3g} in size")
    matrix = to_unit_norm(matrix) if unit_norm else matrix
    if isinstance(matrix, Csr):
        return matrix._replace(data=matrix.data.astype(precision, copy=False))
    return matrix.astype(precision, copy=False)


def checked(matrix: Matrix, n_features: int) -> Matrix:
    """A copy of what compiled code is to trust, looked at once more and closed to writing."""
    if isinstance(matrix, Scaled):
        rows = as_dtype(as_matrix(matrix.rows, n_features), "uint8", unit_norm=False).rows  # type: ignore[union-attr]
        scale = np.array(matrix.scale, dtype=np.float32)
        if scale.shape != (count_rows(rows),) or not np.isfinite(scale).all():
            raise InputError(f"the scales have shape {scale.shape}; a finite one for each row is expected")
        scale.flags.writeable = False
        return Scaled(_closed(rows), scale)
    values = matrix.data if isinstance(matrix, Csr) else np.asarray(matrix)
    precision = np.float32 if values.dtype == np.float32 else np.float64
    return _closed(as_matrix(matrix, n_features, precision))


def _closed(matrix: Array | Csr) -> Array | Csr:
    copies = [aligned(array) for array in (matrix[:3] if isinstance(matrix, Csr) else (matrix,))]
    for array in copies:
        array.flags.writeable = False
    return Csr(copies[0], copies[1], copies[2], matrix.width) if isinstance(matrix, Csr) else copies[0]


def _unscaled(X: Scaled) -> Array | Csr:
    """Bytes and scales as floats."""
    if isinstance(X.rows, Csr):
        return X.rows._replace(data=X.rows.data * np.repeat(X.scale, np.diff(X.rows.indptr)))
    return np.asarray(X.rows * X.scale[:, None])


def _lengths(matrix: Array | Csr) -> Array:
    if not isinstance(matrix, Csr):
        return np.asarray(np.linalg.norm(matrix, axis=1))
    rows = np.repeat(np.arange(count_rows(matrix)), np.diff(matrix.indptr))
    return np.sqrt(np.bincount(rows, matrix.data**2, minlength=count_rows(matrix)))


def to_unit_norm(matrix: Array | Csr) -> Array | Csr:
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


def feature_major(array: Array) -> Array:
    """A K×d copy in which the labels of a feature lie side by side."""
    return aligned(array.T).T


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


def _as_floats(x: Any, name: str, dtype: Any = np.float64) -> Array:
    try:
        array = np.asarray(x)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{name} is not a rectangular array of numbers ({error})") from None
    if array.dtype.kind not in "biuf":
        raise InputError(f"{name} is an array of {array.dtype}; real numbers are expected")
    if np.ma.is_masked(x):
        raise InputError(f"{name} has masked values; every value must be there")
    return np.require(array, dtype, ["C", "A"])


def _check_width(width: int, n_features: int) -> None:
    if width != n_features:
        raise InputError(f"x has {width} features; {n_features} are expected")


def _first_too_large(X: Any) -> str:
    cells = sp.coo_array(X)
    at = int(np.argmin(np.abs(cells.data) <= LARGEST))
    return f"{cells.data[at]} at row {cells.row[at]}, column {cells.col[at]}"
