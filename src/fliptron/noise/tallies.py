"""Counting bits: weighted means of cells, and what can be said of nested ones."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fliptron.arrays import Array
from fliptron.kernels.compiling import PART, STEP, compiled
from fliptron.noise.estimate import Z95

SHARES = (0.02, 0.05, 0.1, 0.2)
"""Shares of a window, by margin, that may make up the plateau."""
BANDS = (*SHARES, 0.4, 0.6, 0.8, 1.0)
"""The same and wider ones: bands of the curve of mean bit against margin."""
# Cells: the label held best by band, other labels by band if they were played blindly; then greedy labels and others,
# plausible ones (weighted by 1/P) and those played blindly; all rounds, also weighted by 1/P; audited labels; and
# doubtful labels, whose third number is how many should be right.
GREEDY, PLAUSIBLE, BLIND, ALL, INVERSE, AUDITED_RIGHT, AUDITED_WRONG, DOUBTFUL, CELLS = (
    2 * len(BANDS) + i for i in range(9)
)
_NOT_BLIND = 0.5  # of 1/K: no policy means a label that it plays less often
_UNIFORM = 1e-5
_FOLLOW = 0.1  # log odds by which the edge of a band moves
_SHARES = np.array(BANDS)
LEAST = 30
"""Rounds a mean needs before it counts."""
_LEPSKI = 2.5
_APART_BY = 2.5  # standard errors by which a plateau may seem to miss what verified labels say
_CHANCE = 1e-6
_APART = 0.1  # of β, by which the labels' plateaus may lie apart


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


@compiled(**STEP)
def count_one(
    cells: Array, band: int, n_classes: int, best: bool, greedy: bool, probability: float, feedback: int
) -> None:
    """Add a round to cells (Σw, Σw·bit and Σw²): was the played label the one held best, and the greedy one?"""
    inverse = 1.0 / probability
    share = probability * n_classes
    blind = share < _NOT_BLIND or abs(share - 1.0) < _UNIFORM
    if best or blind:
        _add(cells[band if best else band + _SHARES.size], 1.0, feedback)
    if greedy:
        _add(cells[GREEDY], inverse, feedback)
    elif share < _NOT_BLIND:
        _add(cells[BLIND], 1.0, feedback)
    else:
        _add(cells[PLAUSIBLE], inverse, feedback)
    _add(cells[ALL], 1.0, feedback)
    _add(cells[INVERSE], inverse, feedback)


@compiled(**PART)
def _add(cell: Array, weight: float, feedback: int) -> None:
    cell[0] += weight
    cell[1] += weight * feedback
    cell[2] += weight * weight


@compiled(nogil=True)
def count_window(
    cells: Array,
    sure: Array,
    n_classes: int,
    band: Array,
    held: Array,
    label: Array,
    greedy: Array,
    probability: Array,
    bit: Array,
) -> None:
    """Add rounds to cells, and the surest of each label, with their bits, to `sure` (K×2)."""
    for i in range(label.shape[0]):
        best = label[i] == held[i]
        count_one(cells, band[i], n_classes, best, label[i] == greedy[i], probability[i], bit[i])
        if best and band[i] < len(SHARES):
            sure[label[i], 0] += 1.0
            sure[label[i], 1] += bit[i]


@compiled(**PART)
def band_of(edges: Array, confidence: float) -> int:
    """The band of one round, and move the edges: each is passed as often as its share says."""
    band = int(edges.shape[0]) - 1
    for i in range(edges.shape[0] - 2, -1, -1):
        above = confidence >= edges[i]
        band = i if above else band
        edges[i] += _FOLLOW * ((1.0 if above else 0.0) - _SHARES[i])
    return band


def mixed(first: Mean, second: Mean, share: float) -> Mean:
    """The mean of a mixture, `share` of it from the first."""
    value = share * first.value + (1 - share) * second.value
    variance = share**2 * first.variance + (1 - share) ** 2 * second.variance
    return Mean(value, variance, (first.rounds if share > 0 else 0.0) + (second.rounds if share < 1 else 0.0))


def pooled(first: Mean, second: Mean) -> Mean:
    """Two estimates of one mean, weighted by their variances."""
    share = second.variance / (first.variance + second.variance)
    return mixed(first, second, share)


def anchor(plateau: Mean, audited: Mean) -> Mean:
    """The mean bit of right labels: from both, unless verified labels say that the plateau is somewhere else."""
    doubt = np.sqrt(plateau.variance + audited.variance)
    apart = abs(plateau.value - audited.value) > _APART_BY * doubt
    return audited if apart or plateau.rounds < LEAST else pooled(plateau, audited)


def one_sided(right: Mean, wrong: Mean, played: Mean) -> bool:
    """Whether all audited bits are alike, as chance would not have it: then labels were audited for their bits."""
    n = right.rounds + wrong.rounds
    if n < LEAST:
        return False
    ones = right.rounds * right.value + wrong.rounds * wrong.value
    likely = played.value if ones > n / 2 else 1.0 - played.value
    return min(ones, n - ones) < 0.5 and likely**n < _CHANCE


def differ(means: list[Mean], chance: float = 1e-3) -> bool:
    """Whether means differ by more than chance."""
    means = [mean for mean in means if mean.rounds >= LEAST]
    if len(means) < 2:
        return False
    from scipy.special import chdtrc  # noqa: PLC0415  # slow to load

    value, variance = (np.array([getattr(mean, name) for mean in means]) for name in ("value", "variance"))
    centre = (value / variance).sum() / (1 / variance).sum()
    return bool(chdtrc(len(means) - 1, ((value - centre) ** 2 / variance).sum()) < chance)


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


def labels_differ(sure: Array, beta: float) -> bool:
    """Whether some labels' surest rounds (K×2) are told right more often than others', by a part of β that matters."""
    means = [mean_of(np.array([n, ones, n])) for n, ones in sure]
    known = [mean for mean in means if mean.rounds >= LEAST]
    apart = np.ptp([mean.value for mean in known]) if known else 0.0
    return apart > _APART * beta and differ(known)


def random_by_band(cells: Array, n_classes: int) -> list[Mean]:
    """The mean bit of a random label, in every band of margin in which enough were played blindly."""
    best, other = ([mean_of(cells[band + first]) for band in range(len(BANDS))] for first in (0, len(BANDS)))
    pairs = [(b, o) for b, o in zip(best, other, strict=True) if min(b.rounds, o.rounds) >= LEAST]
    return [mixed(b, o, 1 / n_classes) for b, o in pairs]


def curve_of(cells: Array, edges: Array) -> list[dict[str, float | None]]:
    """Mean bit by band of margin, surest first: of the label held best, and of the others."""
    rows: list[dict[str, float | None]] = []
    for band, share in enumerate(BANDS):
        row: dict[str, float | None] = {"share": share, "margin": float(edges[band])}
        for name, cell in (("best", band), ("other", band + len(BANDS))):
            mean = mean_of(cells[cell])
            seen = mean.rounds > 0
            row |= {name: mean.value if seen else None, f"{name}_half": mean.half if seen else None}
        rows.append(row)
    return rows
