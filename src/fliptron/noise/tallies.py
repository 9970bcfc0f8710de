"""Counting bits: weighted means of cells, and what can be said of nested ones."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fliptron.arrays import Array
from fliptron.noise.estimate import Z95

SHARES = (0.02, 0.05, 0.1, 0.2)
"""Shares of a window, by margin, that may make up the plateau."""
BANDS = (*SHARES, 0.4, 0.6, 0.8, 1.0)
"""The same and wider ones: bands of the curve of mean bit against margin."""
# Cells: the label held best by band, the other labels by band, then greedy, not greedy, all.
GREEDY, OTHER, ALL, CELLS = (2 * len(BANDS) + i for i in range(4))
LEAST = 30
"""Rounds a mean needs before it counts."""
_LEPSKI = 2.5


class Mean(NamedTuple):
    """A mean bit, its variance, and the number of rounds it is worth."""

    value: float
    variance: float
    rounds: float

    @property
    def half(self) -> float:
        """Half the width of its 95 % interval."""
        return Z95 * float(np.sqrt(self.variance))


def mean_of(cell: Array) -> Mean:
    """Weighted mean with Agresti and Coull's variance, which is never zero."""
    total, ones, squares = cell
    if total <= 0.0:
        return Mean(0.5, 0.25, 0.0)
    n, mean = total**2 / squares, ones / total
    centre = (n * mean + 2) / (n + 4)
    return Mean(float(mean), float(centre * (1 - centre) / (n + 4)), float(n))


def count(cells: Array, at: Array, weight: Array, bit: Array) -> None:
    """Add rounds to cells: Σw, Σw·bit and Σw²."""
    for column, values in enumerate((weight, weight * bit, weight * weight)):
        cells[:, column] += np.bincount(at, values, minlength=CELLS)


def bands_of(margin: Array) -> tuple[Array, Array]:
    """The band of each round by the rank of its margin, and the least margin of each band.

    Rounds that tie go to the least sure band they could be in: a margin that tells nothing apart is not sure.
    """
    order = np.sort(margin)[::-1]
    edges = order[np.maximum(np.ceil(np.array(BANDS) * margin.size).astype(int) - 1, 0)]
    first, beyond = (np.searchsorted(-edges, -margin, side) for side in ("left", "right"))
    return np.where(beyond > first, beyond - 1, first), edges


def nested_means(cells: Array) -> list[Mean]:
    """Mean bits of the surest 2 %, 5 %, … of rounds."""
    return [mean_of(cell) for cell in np.cumsum(cells[: len(SHARES)], axis=0)]


def widest_level(nested: list[Mean]) -> int:
    """Lepski's rule: the widest share whose mean no narrower one exceeds by more than chance."""
    chosen = 0
    for wide in range(1, len(nested)):
        for narrow in range(wide):
            drop = nested[narrow].value - nested[wide].value
            chance = np.sqrt(max(nested[narrow].variance - nested[wide].variance, 0.0))
            if nested[narrow].rounds >= LEAST and drop > _LEPSKI * chance:
                return chosen
        chosen = wide
    return chosen


def still_to_rise(cells: Array) -> float:
    """What the curve would still add above the surest 20 %, if it is smooth; 0 where it is seen to be level.

    From the third fifth of rounds to the second and on to the first it rises by r2 and then r1. If each rise is the
    share q = r1/r2 of the one before, r1·q/(1 − q) is still to come, and within the first fifth the upper half is
    higher by r1·q^(3/4)/(1 + q^(1/2)). A curve flatter there than that is a plateau.
    """
    first, second, third = nested_means(cells)[-1], *(mean_of(cells[len(SHARES) + i]) for i in (0, 1))
    upper, lower = mean_of(cells[: len(SHARES) - 1].sum(axis=0)), mean_of(cells[len(SHARES) - 1])
    if min(mean.rounds for mean in (second, third, upper, lower)) < LEAST:
        return 0.0
    rise, before = first.value - second.value, second.value - third.value
    sigma, sigma_before = np.sqrt(first.variance + second.variance), np.sqrt(second.variance + third.variance)
    if rise <= (sigma if before > 2.0 * sigma_before else 2.0 * sigma):
        return 0.0
    q = min(rise / before, 0.9) if before > 0.0 else 0.9
    within = rise * q**0.75 / (1 + q**0.5)
    if upper.value - lower.value < within - 2.0 * np.sqrt(upper.variance + lower.variance):
        return 0.0
    return float(rise * q / (1 - q))
