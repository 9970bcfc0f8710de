"""A data set: rows, true labels, and where they came from."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fliptron.arrays import Array, Csr, Matrix, Scaled, aligned, as_csr, as_labels, count_rows, gate
from fliptron.encoding.records import is_missing
from fliptron.refusals import InputError
from fliptron.shown import frame, html

if TYPE_CHECKING:
    from fliptron.encoding.encoder import Bends, Encoder
    from fliptron.encoding.schema import Schema

_MEASURED = 50  # different numbers as labels, of fewer than five rows each: a quantity rather than classes


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Dataset:
    """Examples X (dense or CSR) and true labels y from 0 to K − 1, checked once, by `Dataset.of`.

    >>> data = Dataset.of([[3.0, 4.0], [0.0, 2.0]], ["cat", "dog"])
    >>> data
    Dataset('data', 2 rows × 2 features, 2 classes, float64)
    >>> data.X
    array([[0.6, 0.8],
           [0. , 1. ]])
    >>> data.classes
    ('cat', 'dog')
    """

    name: str
    """What it is called."""
    X: Matrix
    """The examples, one row each."""
    y: Array
    """The true labels, from 0 to K − 1."""
    n_features: int
    """d."""
    classes: tuple[Any, ...]
    """What the labels were called before they were numbered."""
    source: str
    """Where it comes from."""
    longest: float
    """The length ‖x‖ of the longest row."""
    encoder: Encoder | None
    """What makes x from a row, where the rows are records; then X holds them before they are centred and scaled."""

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
        """Build a data set from arrays.

        Parameters
        ----------
        X
            The examples: a matrix of finite numbers, dense or SciPy CSR.
        y
            One label per row: numbers or words, or, where `classes` is given, whole numbers from 0 to K − 1.
        name
            What to call it.
        classes
            What the labels are called. Found in y unless given.
        unit_norm
            Scale every row to ‖x‖ = 1 (Theorem 1 asks for ‖x‖ ≤ 1). A row of zeros stays as it is.
        dtype
            "float64"; "float32", which halves the memory; "uint8" for images and counts, which keeps whole values
            from 0 to 255 as they are, with one scale per row; or "sparse": float64, and only what is not zero.
        source
            Where the data comes from.
        """
        matrix, longest = gate(X, dtype, unit_norm=unit_norm)
        n_rows = count_rows(matrix)
        if n_rows == 0:
            raise InputError(f"{name} has no rows; at least one is expected")
        if classes is None:
            y, classes = _number(np.asarray(y), n_rows)
        if len(classes) < 2:
            raise InputError(f"{name} has {len(classes)} class; at least 2 are expected")
        inner = matrix.rows if isinstance(matrix, Scaled) else matrix
        width = inner.width if isinstance(inner, Csr) else int(inner.shape[1])
        labels = as_labels(y, n_rows, len(classes))
        return _made(name, matrix, labels, width, classes, source, longest, None)

    @classmethod
    def of_records(
        cls,
        records: Any,
        y: Any,
        *,
        name: str = "data",
        schema: Schema | None = None,
        curves: Bends = "auto",
        source: str = "given",
    ) -> Dataset:
        """Build a data set from records, which are encoded as they are played; see `Encoder`.

        Parameters
        ----------
        records
            Dicts, a data frame, a dict of columns, or a matrix of numbers.
        y
            One label per record, numbers or words.
        name
            What to call it.
        schema
            The columns; inferred from the first records unless given.
        curves
            How many curves of the numbers x has, for classes that are not linear; "auto" where there is room for them,
            0 for none.
        source
            Where the data comes from.

        >>> Dataset.of_records([{"age": 31, "city": "Rome"}, {"age": 18, "city": "Oslo"}], ["hats", "shoes"])
        Dataset('data', 2 rows × 141 features, 2 classes, encoded)
        """
        from fliptron.encoding.encoder import Encoder  # brings the compiler
        from fliptron.encoding.records import Table
        from fliptron.encoding.schema import Schema

        table = Table.of(records)
        numbers, classes = _number(np.asarray(y), len(table))
        if len(classes) < 2:
            raise InputError(f"{name} has {len(classes)} class; at least 2 are expected")
        encoder = Encoder.of(schema or Schema.infer(table), len(classes), curves)
        raw = encoder.raw(table)
        labels = as_labels(numbers, len(table), len(classes))
        X = Csr(raw.indptr, raw.indices, raw.data, encoder.n_features) if encoder.sparse else raw
        return _made(name, X, labels, encoder.n_features, classes, source, 1.0, encoder)

    def encoded(self, rows: Array, encoder: Encoder) -> Dataset:
        """These rows as an encoder makes x of them, one after the other; its means and variances move on."""
        if isinstance(self.X, Csr):
            import scipy.sparse as sp  # slow to load

            X = sp.csr_array((self.X.data, self.X.indices, self.X.indptr), shape=(self.n_rows, self.n_features))
            matrix: Matrix = as_csr(encoder.scaled(X[rows]))
        else:
            matrix = aligned(encoder.scaled(self.X[rows]))
            matrix.flags.writeable = False
        return _made(self.name, matrix, self.y[rows], self.n_features, self.classes, self.source, 1.0, None)

    def to_frame(self) -> Any:
        """One row per example: its features as x0, x1, … (of records as numbers and places, not scaled yet), and y."""
        inner, scale = self.X if isinstance(self.X, Scaled) else (self.X, None)
        if isinstance(inner, Csr):
            raise InputError(f"{self.name} is sparse; a data set with dense rows is expected")
        rows = inner if scale is None else inner * np.asarray(scale)[:, None]
        columns = {f"x{j}": rows[:, j] for j in range(self.n_features)}
        return frame(columns | {"y": [self.classes[r] for r in self.y]})

    def __repr__(self) -> str:
        inner = self.X.rows if isinstance(self.X, Scaled) else self.X
        kind = f"sparse {inner.data.dtype}" if isinstance(inner, Csr) else str(inner.dtype)
        kind = kind if self.encoder is None else "encoded"
        size = f"{self.n_rows:,} rows × {self.n_features:,} features, {self.n_classes} classes"
        return f"Dataset({self.name!r}, {size}, {kind})"

    def _repr_html_(self) -> str:
        counts = np.bincount(self.y, minlength=self.n_classes)
        rows = [(name, f"{count:,}") for name, count in zip(self.classes[:20], counts, strict=False)]
        return html(repr(self), rows, ["class", "rows"])

    @property
    def n_rows(self) -> int:
        """How many examples there are."""
        return count_rows(self.X)

    @property
    def n_classes(self) -> int:
        """K, how many classes there are."""
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
        """Example i in the form that `decide` takes: a vector, or a SciPy sparse row."""
        inner, scale = self.X if isinstance(self.X, Scaled) else (self.X, None)
        from fliptron.kernels.rows import row  # brings the compiler

        x = row(inner, i)
        if isinstance(inner, Csr):
            import scipy.sparse as sp  # slow to load

            values = x.values if scale is None else x.values * np.float64(scale[i])
            return sp.csr_array((values, x.indices, [0, x.indices.size]), shape=(1, self.n_features))
        return x if scale is None else x * np.float64(scale[i])


def _made(*values: Any) -> Dataset:
    made = object.__new__(Dataset)
    for field, value in zip(Dataset.__slots__, values, strict=True):
        object.__setattr__(made, field, value)
    return made


def _number(y: Array, n_rows: int) -> tuple[Array, tuple[Any, ...]]:
    """Labels as 0 … K − 1, and what they were called."""
    if y.shape != (n_rows,):
        raise InputError(f"y has shape {y.shape}; one label for each of the {n_rows} rows is expected")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise InputError(f"y holds {y[~np.isfinite(y)][0]}; every row needs a label")
    gaps = [is_missing(label) for label in y.tolist()] if y.dtype.kind in "OUM" else [False]
    if any(gaps):
        raise InputError(f"y holds nothing in row {gaps.index(True)}; every row needs a label")
    try:
        found, numbers = np.unique(y, return_inverse=True)
    except TypeError:
        raise InputError("labels of different kinds cannot be sorted; numbers or words are expected") from None
    if y.dtype.kind in "iuf" and found.size > max(_MEASURED, n_rows / 5):
        raise InputError(
            f"the labels are {found.size} different numbers, {found[0]:g} to {found[-1]:g}, in {n_rows} rows; is this "
            "a quantity to predict? Classes are expected: give them as words if these are their names"
        )
    return numbers, tuple(found.tolist())
