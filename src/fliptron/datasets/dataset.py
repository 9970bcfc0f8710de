"""A data set: rows, true labels, and where they came from."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from fliptron.arrays import Array, Csr, InputError, Matrix, Scaled, as_dtype, as_labels, as_matrix, checked, count_rows
from fliptron.kernels.rows import row


@dataclass(frozen=True, slots=True)
class Dataset:
    """Examples X (dense or CSR) and labels y in 0 … K − 1, checked on entry.

    >>> data = Dataset.of([[3.0, 4.0], [0.0, 2.0]], ["cat", "dog"])
    >>> data.X
    array([[0.6, 0.8],
           [0. , 1. ]])
    >>> data.classes
    ('cat', 'dog')
    """

    name: str
    X: Matrix
    y: Array
    n_features: int
    classes: tuple[Any, ...]
    source: str

    @classmethod
    def of(
        cls,
        X: Any,
        y: Any,
        *,
        name: str = "data",
        classes: tuple[Any, ...] | None = None,
        unit_norm: bool = True,
        dtype: str = "float64",
        source: str = "given",
    ) -> Dataset:
        """Build one from arrays.

        Labels may be anything that sorts, unless `classes` names them and y counts from 0. Rows are
        scaled to ‖x‖ = 1 (Theorem 1 asks for ‖x‖ ≤ 1) unless `unit_norm` is off; a zero row stays zero.
        `dtype` "float32" halves the memory; "uint8", for images and counts, keeps whole values from 0 to 255
        as they are, with one scale a row.
        """
        matrix = as_matrix(X)
        n_rows = count_rows(matrix)
        if classes is None:
            y, classes = _number(np.asarray(y), n_rows)
        width = matrix.width if isinstance(matrix, Csr) else matrix.shape[1]
        return cls(name, as_dtype(matrix, dtype, unit_norm=unit_norm), y, width, classes, source)

    def __post_init__(self) -> None:
        """Check once more, copy, and close to writing: compiled code trusts what is here."""
        if self.n_rows == 0:
            raise InputError(f"{self.name} has no rows; at least one is expected")
        if self.n_classes < 2:
            raise InputError(f"{self.name} has {self.n_classes} class; at least 2 are expected")
        labels = np.array(as_labels(self.y, self.n_rows, self.n_classes))
        labels.flags.writeable = False
        object.__setattr__(self, "X", checked(self.X, self.n_features))
        object.__setattr__(self, "y", labels)

    @property
    def n_rows(self) -> int:
        """How many examples."""
        return count_rows(self.X)

    @property
    def n_classes(self) -> int:
        """K."""
        return len(self.classes)

    @property
    def checksum(self) -> str:
        """SHA-256 of what the learner sees and is scored by; results carry it."""
        digest = hashlib.sha256()
        inner, scale = self.X if isinstance(self.X, Scaled) else (self.X, ())
        for array in (*(inner if isinstance(inner, Csr) else (inner,)), *scale, self.y):
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()

    def row(self, i: int) -> Any:
        """Example i as a user would hand it over: a vector, or a SciPy sparse row."""
        inner, scale = self.X if isinstance(self.X, Scaled) else (self.X, None)
        x = row(inner, i)  # type: ignore[no-untyped-call]
        if isinstance(inner, Csr):
            values = x.values if scale is None else x.values * np.float64(scale[i])
            return sp.csr_array((values, x.indices, [0, x.indices.size]), shape=(1, self.n_features))
        return x if scale is None else x * np.float64(scale[i])


def _number(y: Array, n_rows: int) -> tuple[Array, tuple[Any, ...]]:
    """Labels as 0 … K − 1, and what they were called."""
    if y.shape != (n_rows,):
        raise InputError(f"y has shape {y.shape}; one label for each of the {n_rows} rows is expected")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise InputError(f"y holds {y[~np.isfinite(y)][0]}; every row needs a label")
    try:
        found, numbers = np.unique(y, return_inverse=True)
    except TypeError:
        raise InputError("labels of different kinds cannot be sorted; numbers or words are expected") from None
    return numbers, tuple(found.tolist())
