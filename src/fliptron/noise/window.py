"""A window of rounds, as an estimator of the rates reads it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from fliptron.arrays import Array, InputError, as_matrix
from fliptron.noise.estimate import Estimate


@dataclass(frozen=True, slots=True)
class Window:
    """Rounds with their bits, one array a column.

    `best` and `margin` come from a model that had not yet seen the round's bit: the label it held best and
    the lead of that label's score. `greedy` and `probability` are the deciding policy's. X may be missing.
    """

    label: Array
    greedy: Array
    probability: Array
    bit: Array
    best: Array
    margin: Array
    X: Array | None = None

    @classmethod
    def of(
        cls,
        *,
        label: Any,
        greedy: Any,
        probability: Any,
        bit: Any,
        margin: Any,
        n_classes: int,
        best: Any = None,
        X: Any = None,
    ) -> Window:
        """Build one from columns, checked; `best` is `greedy` unless given."""
        window = cls(
            label=_labels("label", label, n_classes),
            greedy=_labels("greedy", greedy, n_classes),
            probability=_column("probability", probability),
            bit=_column("bit", bit),
            best=_labels("best", greedy if best is None else best, n_classes),
            margin=_column("margin", margin),
            X=None if X is None else np.asarray(as_matrix(X)),
        )
        sizes = {column.shape[0] for column in (*window.columns(), *([] if window.X is None else [window.X]))}
        if len(sizes) != 1:
            raise InputError(f"the columns have {sorted(sizes)} rounds; all must have the same")
        _allow("bit", window.bit, (window.bit == 0) | (window.bit == 1), "0 or 1")
        _allow(
            "probability",
            window.probability,
            (window.probability > 0) & (window.probability <= 1),
            "above 0 and at most 1",
        )
        return window

    @property
    def rounds(self) -> int:
        """How many."""
        return int(self.bit.shape[0])

    def columns(self) -> tuple[Array, ...]:
        """The columns without X."""
        return self.label, self.greedy, self.probability, self.bit, self.best, self.margin

    def part(self, start: int, stop: int) -> Window:
        """Rounds start … stop − 1."""
        label, greedy, probability, bit, best, margin = (column[start:stop] for column in self.columns())
        return Window(label, greedy, probability, bit, best, margin, None if self.X is None else self.X[start:stop])


class RateEstimator(Protocol):
    """What RCINE asks of an estimator."""

    needs_rows: bool
    """Whether windows must carry X."""

    def absorb(self, window: Window) -> None:
        """Take in a window of rounds."""

    def estimate(self) -> Estimate:
        """The rates, from all that was taken in."""

    def clear(self) -> None:
        """Forget everything."""


def _column(name: str, values: Any) -> Array:
    try:
        column = np.atleast_1d(np.asarray(values, dtype=np.float64))
    except (TypeError, ValueError):
        raise InputError(f"{name} holds something that is not a number") from None
    if column.ndim != 1:
        raise InputError(f"{name} has {column.ndim} dimensions; one number a round is expected")
    _allow(name, column, np.isfinite(column), "finite")
    return column


def _labels(name: str, values: Any, n_classes: int) -> Array:
    column = _column(name, values)
    good = (column >= 0) & (column < n_classes) & (column == np.floor(column))
    _allow(name, column, good, f"a whole number from 0 to {n_classes - 1}")
    return column.astype(np.int64)


def _allow(name: str, column: Array, good: Array, allowed: str) -> None:
    if not good.all():
        at = int(np.argmin(good))
        raise InputError(f"{name} is {column[at]:g} in round {at}; {allowed} is expected")
