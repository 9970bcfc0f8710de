"""The order of rounds: which example each round shows."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from fliptron.arrays import Array
from fliptron.kernels.randomness import ROWS, make_key, resample, uniforms
from fliptron.refusals import one_of, whole

Order = Literal["resample", "shuffle", "file"]


class Stream:
    """Which row of a data set each round shows. Round t's row depends on (seed, t) alone.

    Parameters
    ----------
    n_rows
        How many rows the data set has, at least 1.
    order
        "resample" draws the row of each round with replacement, as the paper does. "shuffle" passes over all rows in a
        random order; a further pass has another order. "file" keeps the order of the file, and starts again at its end.
    seed
        Of the rows.

    >>> Stream(5, order="shuffle", seed=0).rows(0, 5)
    array([3, 4, 0, 2, 1])
    """

    def __init__(self, n_rows: int, *, order: Order = "resample", seed: int = 0) -> None:
        self.n_rows = whole("n_rows", n_rows, 1)
        self.order = one_of("order", order, get_args(Order))
        self._key = np.uint64(make_key(whole("seed", seed, 0, 2**63 - 1), ROWS))
        self._pass: tuple[int, Array] = (-1, np.empty(0))

    def rows(self, start: int, stop: int) -> Array:
        """The rows of rounds start … stop − 1 (from 0)."""
        if self.order == "file":
            return np.arange(start, stop) % self.n_rows
        if self.order == "resample":
            rows = np.empty(stop - start, dtype=np.int64)
            resample(self._key, start, self.n_rows, rows)
            return rows
        passes = range(start // self.n_rows, (stop - 1) // self.n_rows + 1)
        rows = np.concatenate([self._permutation(number) for number in passes])
        return rows[start - passes[0] * self.n_rows :][: stop - start]

    def _permutation(self, number: int) -> Array:
        if self._pass[0] != number:
            keys = np.empty(self.n_rows)
            uniforms(self._key, number * self.n_rows, keys)
            self._pass = number, np.argsort(keys, kind="stable")
        return self._pass[1]
