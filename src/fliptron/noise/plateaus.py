"""Rates for free: the mean bit of exploration, and the plateau it reaches where the learner is sure.

On uniform exploration the played label is right with probability 1/K, whatever the data, so the mean bit is

    m = ρ0 + β/K.                                                               (exact; no learner needed)

Where a learner is sure of a label before it sees the bit, that label is right and the mean bit is

    s = 1 − ρ1.                                                      (a plateau: one anchor, not two as in NREst)

Two equations, two unknowns. With a and b the mean bits of greedy and of other labels, m = a/K + b(K−1)/K and

    ρ1 = 1 − s,   ρ0 = b − (s − a)/(K − 1),   β = s − ρ0.

a and b are pooled over all rounds, weighted by 1/P where the probabilities vary. s comes from the rounds of
largest margin: nested shares of each window, the widest that is not below a narrower one by more than chance
allows (Lepski's rule), in the later half of the rounds, when the learner knows most. If even the surest rounds
are sometimes wrong, s falls short of 1 − ρ1: the noise is then over-stated, which harms RCNBF least.

No data can tell a channel's ρ1 from labels that are random even where the learner is surest; what the data can tell
is whether s is level, in margin and in time. Where it still rises, or where little is known, the verdict says so and
the intervals reach as far as m alone allows: β ≤ min{K·m, (1 − m)·K/(K − 1)}.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fliptron.arrays import Array, real, whole
from fliptron.noise.estimate import Z95, Estimate, Interval, Verdict, possible
from fliptron.noise.window import Window

SHARES = (0.02, 0.05, 0.1, 0.2)
"""Shares of a window, by margin, that may make up the plateau."""
BANDS = (*SHARES, 0.4, 0.6, 0.8, 1.0)
"""The same and wider ones: bands of the curve of mean bit against margin."""

_NAMES = ("rho0", "rho1", "beta", "accuracy", "greedy_accuracy")
_LEPSKI = 2.5
_RISE = 2.0
_LEAST = 30  # rounds a mean needs before it counts
_EPOCHS = 64
# Cells: the label held best by band, the other labels by band, then greedy, not greedy, all.
_GREEDY, _OTHER, _ALL = 2 * len(BANDS), 2 * len(BANDS) + 1, 2 * len(BANDS) + 2
_CELLS = 2 * len(BANDS) + 3


class Mean(NamedTuple):
    """A mean bit, its variance, and the number of rounds it is worth."""

    value: float
    variance: float
    rounds: float


class Plateaus:
    """Streaming estimate of the flip rates: constant memory, constant time a round, no training.

    Parameters
    ----------
    n_classes : K ≥ 2.
    window : rounds over which margins are ranked; their order within a window does not matter.
    half_life : after how many rounds a bit counts half, for a channel that drifts; None never forgets.

    Examples
    --------
    >>> from fliptron import RidgeRegression, load, simulate
    >>> digits = load("digits")
    >>> learner = RidgeRegression(n_classes=10, n_features=64, gamma=0.05, seed=0)
    >>> log = simulate(learner, digits, rates=(0.2, 0.4), rounds=100_000, log=True).log
    >>> noise = Plateaus(n_classes=10)
    >>> noise.observe(label=log.label, greedy=log.greedy, probability=log.probability, bit=log.bit, margin=log.margin)
    >>> estimate = noise.estimate()
    >>> abs(estimate.rates.rho0 - 0.2) < 0.02, abs(estimate.rates.rho1 - 0.4) < 0.02
    (True, True)
    >>> estimate.verdict
    'identified'
    """

    needs_rows = False

    def __init__(self, *, n_classes: int, window: int = 5000, half_life: float | None = None) -> None:
        self.n_classes = whole("n_classes", n_classes, 2)
        self.window = whole("window", window, 100)
        self.half_life = None if half_life is None else real("half_life", half_life, 1.0)
        self.memory = np.zeros((_EPOCHS, _CELLS, 3))
        """Σw, Σw·bit and Σw² of every cell, by epoch; epochs double in length."""
        self.edges = np.zeros(len(BANDS))
        """The least margin of each band, in the last window."""
        self.absorbed = np.zeros(1)
        """How many windows."""
        self._pending: list[Window] = []
        self._waiting = 0

    def observe(self, **columns: Any) -> None:
        """Take in rounds: label, greedy, probability, bit and margin, as numbers or arrays (see `Window`)."""
        part = Window.of(n_classes=self.n_classes, **columns)
        self._pending.append(part)
        self._waiting += part.rounds
        if self._waiting >= self.window:
            rounds = _join(self._pending)
            whole_windows = self._waiting // self.window * self.window
            for start in range(0, whole_windows, self.window):
                self.absorb(rounds.part(start, start + self.window))
            self._pending = [rounds.part(whole_windows, rounds.rounds)]
            self._waiting -= whole_windows

    def absorb(self, window: Window) -> None:
        """Take in one window, its rounds in any order."""
        if window.rounds == 0:
            return
        order = np.sort(window.margin)[::-1]
        self.edges[:] = order[np.maximum(np.ceil(np.array(BANDS) * window.rounds).astype(int) - 1, 0)]
        band = np.minimum(np.searchsorted(-self.edges, -window.margin), len(BANDS) - 1)
        taken = window.label == window.best
        greedy = window.label == window.greedy
        share = 1.0 / window.probability
        epoch = 0 if self.half_life else int(np.log2(self.absorbed[0] + 1.0))
        cells = self.memory[epoch]
        if self.half_life:
            fade = 0.5 ** (window.rounds / self.half_life)
            cells *= np.array([fade, fade, fade**2])
        once = np.ones(window.rounds)
        _count(cells, np.where(taken, band, band + len(BANDS)), once, window.bit)
        _count(cells, np.where(greedy, _GREEDY, _OTHER), share, window.bit)
        _count(cells, np.full(window.rounds, _ALL), once, window.bit)
        self.absorbed += 1.0

    def arrays(self) -> dict[str, Array]:
        """What a file must hold for the estimator to go on."""
        return {"memory": self.memory, "edges": self.edges, "absorbed": self.absorbed}

    def clear(self) -> None:
        """Forget everything."""
        self.memory[:] = 0.0
        self.absorbed[:] = 0.0
        self._pending, self._waiting = [], 0

    def estimate(self) -> Estimate:
        """Rates, intervals and verdict from all rounds so far."""
        if self._waiting:  # a window not yet full counts too, in a copy
            whole_one = copy.deepcopy(self)
            whole_one._pending, whole_one._waiting = [], 0
            whole_one.absorb(_join(self._pending))
            return whole_one.estimate()
        last = int(np.log2(self.absorbed[0])) if self.absorbed[0] and not self.half_life else 0
        pooled, late = self.memory.sum(axis=0), self.memory[max(last - 1, 0) :].sum(axis=0)
        greedy, other, played = _mean(pooled[_GREEDY]), _mean(pooled[_OTHER]), _mean(pooled[_ALL])
        nested = _nested(late)
        chosen = _widest(nested)
        sure = nested[chosen]
        details = {
            "rounds": round(played.rounds),
            "explored": other.rounds,
            "confident": sure.rounds,
            "confident_share": SHARES[chosen],
            "mean_bit": played.value,
            "curve": self._curve(late),
        }
        widest = self._widest_intervals(greedy, other, played)
        lacking = _lacking(greedy, other, sure)
        if lacking:
            rates = possible(*(sum(widest[name]) / 2 for name in ("rho0", "rho1")))
            return Estimate(rates, "not identified", lacking, widest, details=details)
        values, errors = _propagate(self._solve, (sure, greedy, other, played))
        verdict, reason = _judge(values, errors, SHARES[chosen], self._rise(last))
        intervals: dict[str, Interval] = {}
        for name, value, error in zip(_NAMES, values, errors, strict=True):
            low, high = value - Z95 * error, value + Z95 * error
            if verdict != "identified":  # what the anchor does not hold, only m does
                low, high = min(low, widest[name][0]), max(high, widest[name][1] if name == "beta" else high)
            intervals[name] = float(np.clip(low, 0, 1)), float(np.clip(high, 0, 1))
        known = verdict != "not identified"
        return Estimate(
            rates=possible(values[0], values[1]),
            verdict=verdict,
            reason=reason,
            intervals=intervals if known else widest,
            accuracy=float(np.clip(values[3], 0, 1)) if known else None,
            greedy_accuracy=float(np.clip(values[4], 0, 1)) if known else None,
            details=details,
        )

    def _solve(self, sure: float, greedy: float, other: float, played: float) -> Array:
        """ρ0, ρ1, β, accuracy and greedy accuracy from the mean bits."""
        rho0 = other - (sure - greedy) / (self.n_classes - 1)
        beta = sure - rho0
        scale = beta if abs(beta) > 1e-9 else 1e-9
        return np.array([rho0, 1 - sure, beta, (played - rho0) / scale, (greedy - rho0) / scale])

    def _widest_intervals(self, greedy: Mean, other: Mean, played: Mean) -> dict[str, Interval]:
        """All that m says: ρ0 = m − β/K ≥ 0 and ρ1 = 1 − m − β(K−1)/K ≥ 0, for every β they allow."""
        K = self.n_classes
        if not other.rounds or not greedy.rounds:
            return dict.fromkeys(_NAMES, (0.0, 1.0))
        m = greedy.value / K + other.value * (K - 1) / K
        slack = Z95 * float(np.sqrt(greedy.variance / K**2 + other.variance * ((K - 1) / K) ** 2))
        most = float(np.clip(min(K * (m + slack), (1 - m + slack) * K / (K - 1)), 0.0, 1.0))
        rho0 = (m - slack - most / K, m + slack)
        rho1 = (1 - m - slack - most * (K - 1) / K, 1 - m + slack)
        # The least accuracy is that of the least noise; an accuracy of 1 is always possible.
        least = [(mean.value - (m - most / K)) / max(most, 1e-9) for mean in (played, greedy)]
        found = (rho0, rho1, (0.0, most), (least[0], 1.0), (least[1], 1.0))
        return {
            name: (float(np.clip(low, 0, 1)), float(np.clip(high, 0, 1)))
            for name, (low, high) in zip(_NAMES, found, strict=True)
        }

    def _rise(self, last: int) -> float:
        """By how many standard errors the surest rounds' mean bit rose from the last epoch but one to the last."""
        if last < 2:
            return np.inf if not self.half_life else 0.0
        before, after = (_nested(self.memory[epoch])[-1] for epoch in (last - 1, last))
        return float((after.value - before.value) / np.sqrt(before.variance + after.variance))

    def _curve(self, late: Array) -> list[dict[str, float]]:
        """Mean bit by band of margin, surest first: of the label held best, and of the others."""
        rows = []
        for band, share in enumerate(BANDS):
            best, rest = _mean(late[band]), _mean(late[band + len(BANDS)])
            row = {"share": share, "margin": float(self.edges[band])}
            for name, mean in (("best", best), ("other", rest)):
                row |= {
                    name: mean.value,
                    f"{name}_half": Z95 * float(np.sqrt(mean.variance)),
                    f"{name}_rounds": mean.rounds,
                }
            rows.append(row)
        return rows


def _nested(cells: Array) -> list[Mean]:
    """Mean bits of the surest 2 %, 5 %, … of rounds."""
    return [_mean(cell) for cell in np.cumsum(cells[: len(SHARES)], axis=0)]


def _count(cells: Array, at: Array, weight: Array, bit: Array) -> None:
    for column, values in enumerate((weight, weight * bit, weight * weight)):
        cells[:, column] += np.bincount(at, values, minlength=_CELLS)


def _mean(cell: Array) -> Mean:
    """Weighted mean with Agresti and Coull's variance, which is never zero."""
    total, ones, squares = cell
    if total <= 0.0:
        return Mean(0.5, 0.25, 0.0)
    n, mean = total**2 / squares, ones / total
    centre = (n * mean + 2) / (n + 4)
    return Mean(float(mean), float(centre * (1 - centre) / (n + 4)), float(n))


def _widest(nested: list[Mean]) -> int:
    """Lepski's rule: the widest share whose mean no narrower one exceeds by more than chance."""
    chosen = 0
    for wide in range(1, len(nested)):
        for narrow in range(wide):
            drop = nested[narrow].value - nested[wide].value
            chance = np.sqrt(max(nested[narrow].variance - nested[wide].variance, 0.0))
            if nested[narrow].rounds >= _LEAST and drop > _LEPSKI * chance:
                return chosen
        chosen = wide
    return chosen


def _propagate(solve: Callable[..., Array], means: tuple[Mean, ...]) -> tuple[Array, Array]:
    """Values and standard errors of `solve` at these means, by its slope in each."""
    at = np.array([mean.value for mean in means])
    values = solve(*at)
    variance = np.zeros_like(values)
    for i, mean in enumerate(means):
        step = np.zeros_like(at)
        step[i] = 1e-6
        slope = (solve(*(at + step)) - solve(*(at - step))) / 2e-6
        variance += slope**2 * mean.variance
    return values, np.sqrt(variance)


def _lacking(greedy: Mean, other: Mean, sure: Mean) -> str:
    if other.rounds < _LEAST:
        return f"only {other.rounds:.0f} rounds played another label than the greedy one; {_LEAST} are needed"
    if greedy.rounds < _LEAST or sure.rounds < _LEAST:
        return f"only {min(greedy.rounds, sure.rounds):.0f} rounds played the label held best; {_LEAST} are needed"
    return ""


def _judge(values: Array, errors: Array, share: float, rise: float) -> tuple[Verdict, str]:
    if values[2] - Z95 * errors[2] <= 0.0:
        return "not identified", "the surest rounds' bits are no better than chance; let the learner learn longer"
    at_most = "the noise is at most what is said, and perhaps less"
    if rise == np.inf or errors[:2].max() > 0.05:
        return "weakly identified", f"few rounds so far: {at_most}"
    if rise > _RISE:
        return "weakly identified", f"the surest rounds' bits still get better with time: {at_most}"
    if share < SHARES[1]:
        return "weakly identified", f"the mean bit still rises where the learner is surest: {at_most}"
    return "identified", f"the mean bit is level over the surest {share:.0%} of rounds, and in time"


def _join(parts: list[Window]) -> Window:
    return Window(*(np.concatenate(columns) for columns in zip(*(part.columns() for part in parts), strict=True)))
