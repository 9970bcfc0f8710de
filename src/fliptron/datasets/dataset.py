"""A data set: rows, true labels, and where they came from."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from fliptron.arrays import Array, Csr, InputError, Matrix, as_labels, as_matrix, count_rows
from fliptron.kernels.vectors import row


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
        source: str = "given",
    ) -> Dataset:
        """Build one from arrays.

        Labels may be anything that sorts, unless `classes` names them and y counts from 0. Rows are
        scaled to ‖x‖ = 1 (Theorem 1 asks for ‖x‖ ≤ 1) unless `unit_norm` is off; a zero row stays zero.
        """
        X = X if sp.issparse(X) else np.asarray(X)
        matrix = as_matrix(X)
        n_rows, n_features = X.shape
        if n_rows == 0:
            raise InputError(f"{name} has no rows; at least one is expected")
        if classes is None:
            y = np.asarray(y)
            if y.shape != (n_rows,):
                raise InputError(f"y has shape {y.shape}; one label for each of the {n_rows} rows is expected")
            found, y = np.unique(y, return_inverse=True)
            classes = tuple(found.tolist())
        if len(classes) < 2:
            raise InputError(f"{name} has {len(classes)} class; at least 2 are expected")
        labels = as_labels(y, n_rows, len(classes))
        return cls(name, _unit_norm(matrix) if unit_norm else matrix, labels, n_features, classes, source)

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
        for array in (*(self.X if isinstance(self.X, Csr) else (self.X,)), self.y):
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()

    def row(self, i: int) -> Any:
        """Example i as a user would hand it over: a vector, or a SciPy sparse row."""
        x = row(self.X, i)  # type: ignore[no-untyped-call]
        if isinstance(self.X, Csr):
            return sp.csr_array((x.values, x.indices, [0, x.indices.size]), shape=(1, self.n_features))
        return x


def _unit_norm(matrix: Matrix) -> Matrix:
    if not isinstance(matrix, Csr):
        norms = np.linalg.norm(matrix, axis=1, keepdims=True)
        return matrix / np.where(norms > 0.0, norms, 1.0)
    lengths = np.diff(matrix.indptr)
    rows = np.repeat(np.arange(lengths.size), lengths)
    norms = np.sqrt(np.bincount(rows, matrix.data**2, minlength=lengths.size))
    return matrix._replace(data=matrix.data / np.where(norms > 0.0, norms, 1.0)[rows])
