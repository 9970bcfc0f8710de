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


Row = Array | SparseRow
Matrix = Array | Csr

FLOAT64 = np.dtype(np.float64)


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
    if isinstance(X, Csr):  # from a data set, checked when that was made
        if n_features is not None and X.indices.size and X.indices.max() >= n_features:
            raise InputError(f"X has feature {X.indices.max()}; the learner has features 0 to {n_features - 1}")
        return X
    X = X if sp.issparse(X) else _as_floats(X, "X")
    shape = X.shape
    if len(shape) != 2 or shape[1] == 0:
        raise InputError(f"X has shape {shape}; rows by features is expected, with at least one feature")
    if n_features is not None:
        _check_width(shape[1], n_features)
    matrix = as_csr(X) if sp.issparse(X) else X
    if not np.isfinite(matrix.data if isinstance(matrix, Csr) else matrix).all():
        raise InputError(f"X holds {_first_non_finite(X)}; every value must be finite")
    return matrix


def count_rows(matrix: Matrix) -> int:
    """How many examples a matrix from this gate holds."""
    return matrix.indptr.shape[0] - 1 if isinstance(matrix, Csr) else int(matrix.shape[0])


def as_csr(X: Any) -> Csr:
    """A SciPy sparse matrix as the kernels read it: sorted, no duplicates, float64 and int32."""
    matrix = sp.csr_array(X, dtype=np.float64, copy=True)
    matrix.sum_duplicates()
    return Csr(
        np.ascontiguousarray(matrix.indptr, dtype=np.int64),
        np.ascontiguousarray(matrix.indices, dtype=np.int32),
        np.ascontiguousarray(matrix.data),
    )


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
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not float(value).is_integer():
        raise InputError(f"{name} is {value!r}; {allowed} is expected")
    number = int(value)  # type: ignore[call-overload]
    if number < least or (most is not None and number > most):
        raise InputError(f"{name} is {value}; {allowed} is expected")
    return number  # type: ignore[no-any-return]


def real(name: str, value: Any, least: float, most: float = np.inf, *, open_below: bool = False) -> float:
    """A finite real number within bounds."""
    kind = "above" if open_below else "of at least"
    allowed = f"a number {kind} {least:g}" + ("" if most == np.inf else f" and at most {most:g}")
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not np.isfinite(float(value)):
        raise InputError(f"{name} is {value!r}; {allowed} is expected")
    number = float(value)
    if number < least or number > most or (open_below and number == least):
        raise InputError(f"{name} is {value}; {allowed} is expected")
    return number


def _as_floats(x: Any, name: str) -> Array:
    try:
        array = np.ascontiguousarray(x, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} is not a rectangular array of numbers ({error})") from None
    # ascontiguousarray turns a scalar into one element; a scalar is not an example.
    return array if np.ndim(x) else array.reshape(())


def _check_width(width: int, n_features: int) -> None:
    if width != n_features:
        raise InputError(f"x has {width} features; the learner has {n_features}")


def _first_non_finite(X: Any) -> str:
    cells = sp.coo_array(X)
    at = int(np.argmin(np.isfinite(cells.data)))
    return f"{cells.data[at]} at row {cells.row[at]}, column {cells.col[at]}"
