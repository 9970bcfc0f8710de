r"""Flip rates by counting: the mean bit of exploration, and the plateau it reaches where the learner is sure.

A label that is drawn uniformly is right with probability 1/K, whatever the data. So the mean bit m of uniform
exploration is known exactly, without any learner. Where a learner is sure of a label before it sees the bit, that label
is right; the mean bit s of such rounds is a plateau:

.. math::

    m &= \rho_0 + \beta / K \\
    s &= 1 - \rho_1

These are two equations for two unknowns. With a and b the mean bits of greedy and of other labels,
m = a/K + b(K−1)/K, and

.. math::

    \rho_1 &= 1 - s \\
    \rho_0 &= b - \frac{s - a}{K - 1} \\
    \beta &= s - \rho_0

a and b are pooled over all rounds. A policy that means some labels and plays the rest blindly has b from both: of the
labels it means, weighted by 1/P, and of the others a plain mean, since any of them was as likely. s comes from the
rounds of largest margin, in the later half of the rounds, when the learner knows most. Nested shares of each window are
compared, and the widest is taken whose mean no narrower one exceeds by more than chance allows (Lepski's rule). If even
the surest rounds are sometimes wrong, s is below 1 − ρ1 and the noise is over-stated, which is the error that harms
RCNBF least.

Labels that are random even where the learner is surest look like a larger ρ1, and no data can tell the two apart. What
the data can tell is whether s is level, in margin and in time. Where it still rises, or where little is known, the
verdict says so, and the intervals reach as far as m alone allows: β ≤ min{K·m, (1 − m)·K/(K − 1)}. Even where it is
level, the interval of s reaches further up than down: to the top of the narrower shares' own intervals, and by what a
smooth curve would still add.

The model itself is tested too. A random label is right once in K among the surest rounds as among all others, so m
must be the same in every band of margin, and in time; and s must be the same for every label. Where it is not, flips
depend on the example, the time or the label, and the verdict says which.
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np

from fliptron.arrays import Array
from fliptron.noise.estimate import Z95, Estimate, Interval, Verdict, possible
from fliptron.noise.tallies import (
    ALL,
    AUDITED_RIGHT,
    AUDITED_WRONG,
    BANDS,
    BLIND,
    CELLS,
    DOUBTFUL,
    GREEDY,
    INVERSE,
    LEAST,
    PLAUSIBLE,
    SHARES,
    Mean,
    anchor,
    bands_of,
    count_window,
    curve_of,
    differ,
    labels_differ,
    mean_of,
    mixed,
    nested_means,
    one_sided,
    pooled,
    random_by_band,
    still_to_rise,
    widest_level,
)
from fliptron.refusals import InputError, real, whole
from fliptron.rounds import Rounds

_NAMES = ("rho0", "rho1", "beta", "accuracy", "greedy_accuracy")
_EPOCHS = 64
_FEWEST = 100  # rounds of a window
_TREND = 2.0  # standard errors by which the plateau may seem to rise with time
_FAINT = 0.15  # of the largest β that m allows, below which a learner's certainty cannot be told from chance
_SLOPE = 0.01  # what the curve may still rise before the plateau is not called level
_FALL = 4.0  # standard errors by which the plateau may seem to fall with time
_BELIEF = 0.25  # of β: half the width of an interval for what a learner believes of doubtful labels, if K is large
_DOUBTED = 1.5  # bits that look odd by chance bring the weaker verdict, and are off by more than others
_DEPENDS = "flips seem to depend on the"


class Window(NamedTuple):
    """What one window of rounds adds up to."""

    rounds: int
    edges: Array
    seen: Array
    sure: Array


class Plateaus:
    r"""Estimates the flip rates while rounds come in: constant memory, constant time per round, no training.

    Let s be the mean bit of the rounds in which the learner is surest, and a and b the mean bits of greedy and of other
    labels. Then

    .. math::

        \rho_1 &= 1 - s \\
        \rho_0 &= b - \frac{s - a}{K - 1} \\
        \beta &= s - \rho_0

    Parameters
    ----------
    n_classes
        K ≥ 2.
    window
        Rounds over which margins are ranked, at least 100; their order within a window does not matter.
    half_life
        Rounds, at least `window`, after which a bit counts half, for noise that drifts. None: nothing is forgotten.

    Examples
    --------
    >>> from fliptron import RidgeRegression, load, simulate
    >>> digits = load("digits")
    >>> learner = RidgeRegression(n_classes=10, n_features=64, gamma=0.05, seed=0)
    >>> log = simulate(learner, digits, rates=(0.2, 0.4), rounds=100_000, log=True).log
    >>> noise = Plateaus(n_classes=10)
    >>> noise.observe(log)
    >>> estimate = noise.estimate()
    >>> abs(estimate.rates.rho0 - 0.2) < 0.02, abs(estimate.rates.rho1 - 0.4) < 0.02
    (True, True)
    >>> estimate.verdict
    'identified'
    """

    needs_rows = False

    def __init__(self, *, n_classes: int, window: int = 5000, half_life: float | None = None) -> None:
        self.n_classes = whole("n_classes", n_classes, 2, 10**9)
        self.window = whole("window", window, _FEWEST)
        self.half_life = None if half_life is None else real("half_life", half_life, float(self.window))
        self.memory = np.zeros((_EPOCHS, CELLS, 3))
        """Σw, Σw·bit and Σw² of every cell, by epoch: epochs double in length, or fade slowly (0) and fast (1)."""
        self.edges = np.zeros(len(BANDS))
        """The least margin of each band, in the last window."""
        self.rounds = np.zeros(1)
        """How many have been taken in."""
        self.sure = np.zeros((2, self.n_classes, 2))
        """Surest rounds of each label and their bits, in the last epoch but one and in the last."""
        self._pending: list[Rounds] = []
        self._waiting = 0

    def observe(self, rounds: Rounds | None = None, **columns: Any) -> None:
        """Take in rounds with margins, in the order they were played.

        Parameters
        ----------
        rounds
            A table of rounds, such as `trace.log`.
        columns
            Its columns by name, as numbers or arrays, where no table is given.
        """
        given = columns if rounds is None else rounds.columns()
        part = Rounds.of(n_classes=self.n_classes, **{name: given[name] for name in given if name not in ("row", "X")})
        if part.margin is None:
            raise InputError("the rounds have no margins; the lead of the greedy label's score is expected for each")
        self._pending.append(Rounds(**part.columns() | {"best": part.held}))
        self._waiting += len(part)
        if self._waiting >= self.window:
            waiting = Rounds.join(self._pending)
            full = self._waiting // self.window * self.window
            for start in range(0, full, self.window):
                self.absorb(waiting.part(start, start + self.window))
            self._pending, self._waiting = [waiting.part(full, len(waiting))], self._waiting - full

    def absorb(self, rounds: Rounds) -> None:
        """Take in one window of rounds, in any order."""
        if len(rounds) and rounds.margin is not None:
            self.add(self.tally(rounds))

    def tally(self, rounds: Rounds) -> Window:
        """The counts of one window, which depend on no other."""
        assert rounds.margin is not None
        band, edges = bands_of(rounds.margin)
        seen, sure = np.zeros((CELLS, 3)), np.zeros((self.n_classes, 2))
        columns = (rounds.held, rounds.label, rounds.greedy, rounds.probability, rounds.bit)
        count_window(seen, sure, self.n_classes, band, *map(np.ascontiguousarray, columns))
        return Window(len(rounds), edges, seen, sure)

    def add(self, window: Window) -> None:
        """Take in the counts of the next window."""
        n, self.edges[:], seen, sure = window
        if self.half_life is None:
            epoch = self._epoch(self.rounds[0])
            if epoch > self._epoch(max(self.rounds[0] - 1, 0)):
                self.sure[0], self.sure[1] = self.sure[1], 0.0
        else:
            self.sure *= 0.5 ** (n / self.half_life)
        self.sure[1] += sure
        if self.half_life is None:
            self.memory[epoch] += seen
        else:
            for speed, half_life in enumerate((self.half_life, self.half_life / 4)):
                self.memory[speed] = faded(self.memory[speed], 0.5 ** (n / half_life)) + seen
        self.rounds += n

    def arrays(self) -> dict[str, Array]:
        """What a file must hold for the estimator to go on."""
        return {"memory": self.memory, "edges": self.edges, "rounds": self.rounds, "sure": self.sure}

    def clear(self) -> None:
        """Forget everything."""
        for array in self.arrays().values():
            array[:] = 0.0
        self._pending, self._waiting = [], 0

    def estimate(self) -> Estimate:
        """Rates, intervals and verdict from all rounds so far."""
        if self._waiting:  # a window not yet full counts too, in a copy, unless too few margins can be ranked
            filled = copy.deepcopy(self)
            filled._pending, filled._waiting = [], 0
            if self._waiting >= _FEWEST or not self.rounds[0]:
                filled.absorb(Rounds.join(self._pending))
            return filled.estimate()
        if self.half_life is None:
            last = self._epoch(max(self.rounds[0] - 1, 0))
            every, late = self.memory.sum(axis=0), self.memory[max(last - 1, 0) :].sum(axis=0)
        else:
            every = late = self.memory[0]
        greedy, other, played = mean_of(every[GREEDY]), self._other(every), mean_of(every[ALL])
        nested = nested_means(late)
        chosen = widest_level(nested)
        sure = nested[chosen]
        details = {
            "rounds": int(self.rounds[0]),
            "not_greedy": other.rounds,
            "confident": sure.rounds,
            "confident_share": SHARES[chosen],
            "mean_bit": played.value,
            "audited": every[AUDITED_RIGHT, 0] + every[AUDITED_WRONG, 0],
            "curve": curve_of(late, self.edges),
        }
        least = self._known_without_anchor(greedy, other, played)
        right, wrong = mean_of(every[AUDITED_RIGHT]), mean_of(every[AUDITED_WRONG])
        chosen_by_bit = one_sided(right, wrong, played)
        anchored = right.rounds >= LEAST and not chosen_by_bit
        lacking = self._lacking(every, greedy, other, sure)
        if lacking and not (anchored and wrong.rounds >= LEAST):
            rates = possible(*(sum(least[name]) / 2 for name in ("rho0", "rho1")))
            return Estimate(rates, "not identified", lacking, least, details=details)
        slope = still_to_rise(late)
        reach = _reach(nested, chosen, slope)
        if anchored:  # verified labels say whether the surest rounds are right
            sure = anchor(sure._replace(variance=(max(sure.half, reach) / Z95) ** 2), right)
            reach, slope = sure.half, 0.0
        values, down, up = self._propagate(sure, greedy, other, played, self._wrong(every, sure), reach)
        verdict, reason = self._judge(late, values, down, up, SHARES[chosen], slope, least["beta"][1], anchored)
        if chosen_by_bit and verdict == "identified":
            verdict, reason = "weakly identified", "audited bits are all alike: audit without looking at the bit"
        if verdict == "not identified":
            return Estimate(possible(values[0], values[1]), verdict, reason, least, details=details)
        intervals: dict[str, Interval] = {}
        doubted = verdict == "weakly identified" and not anchored
        wider = _DOUBTED if doubted else 1.0
        ends = np.array([values - wider * down, values + wider * up])
        if doubted:  # a narrow plateau may be a lucky one
            wide, below, above = self._propagate(nested[-1], greedy, other, played, self._wrong(every, nested[-1]), 0.0)
            ends = np.array([np.minimum(ends[0], wide - wider * below), np.maximum(ends[1], wide + wider * above)])
        for i, name in enumerate(_NAMES):
            low, high = ends[:, i]
            if doubted:  # the noise may be less than is said, not more
                low, high = (low, max(high, least[name][1])) if name == "beta" else (min(low, least[name][0]), high)
            if verdict == "weakly identified" and reason.startswith(_DEPENDS):
                low, high = min(low, least[name][0]), max(high, least[name][1])
            intervals[name] = float(np.clip(low, 0, 1)), float(np.clip(high, 0, 1))
        return Estimate(
            rates=possible(values[0], values[1]),
            verdict=verdict,
            reason=reason,
            intervals=intervals,
            accuracy=float(np.clip(values[3], 0, 1)),
            greedy_accuracy=float(np.clip(values[4], 0, 1)),
            details=details,
        )

    def _epoch(self, rounds: float) -> int:
        """Which epoch the next round falls in: the first window, then two, four, eight …"""
        return int(np.log2(rounds / self.window + 1.0))

    def _solve(self, means: Array, share: float = 0.0) -> Array:
        """ρ0, ρ1, β, accuracy and greedy accuracy from the mean bits s, a, b, of all rounds, and of wrong labels.

        The last is ρ0 by itself, and counts by its share.
        """
        sure, greedy, other, played, wrong = means
        rho0 = (1 - share) * (other - (sure - greedy) / (self.n_classes - 1)) + share * wrong
        beta = sure - rho0
        scale = beta if abs(beta) > 1e-9 else 1e-9
        return np.array([rho0, 1 - sure, beta, (played - rho0) / scale, (greedy - rho0) / scale])

    def _propagate(
        self, sure: Mean, greedy: Mean, other: Mean, played: Mean, wrong: Mean, reach: float
    ) -> tuple[Array, Array, Array]:
        """Values of `_solve`, and how far each may be lower and higher; s may be higher by `reach`."""
        means = (sure, greedy, other, played, wrong)
        at = np.array([mean.value for mean in means])
        rest = other.variance + (sure.variance + greedy.variance) / (self.n_classes - 1) ** 2
        share = rest / (rest + wrong.variance) if wrong.rounds >= LEAST else 0.0
        values = self._solve(at, share)
        down, up = np.zeros_like(values), np.zeros_like(values)
        for i, (fall, rise) in enumerate(((sure.half, reach), *((mean.half,) * 2 for mean in means[1:]))):
            step = np.zeros_like(at)
            step[i] = 1e-6
            slope = (self._solve(at + step, share) - self._solve(at - step, share)) / 2e-6
            down += np.where(slope > 0, slope * fall, slope * rise) ** 2
            up += np.where(slope > 0, slope * rise, slope * fall) ** 2
        return values, np.sqrt(down), np.sqrt(up)

    def _wrong(self, cells: Array, sure: Mean) -> Mean:
        """ρ0 from labels known to be wrong: audited ones, and doubtful ones less what is right among them.

        How many of the doubtful are right is the learner's own belief, which was seen to be off by a fifth of β, and by
        more where there are few labels.
        """
        found = mean_of(cells[AUDITED_WRONG])
        n, ones, right = cells[DOUBTFUL]
        if n < LEAST:
            return found
        wrong = float(np.clip((ones - right * sure.value) / (n - right), 0.0, 1.0))
        spread = mean_of(np.array([n - right, wrong * (n - right), n - right])).variance
        doubt = ((_BELIEF + 0.5 / self.n_classes) * max(sure.value - wrong, 0.0) / Z95) ** 2
        doubtful = Mean(wrong, spread + doubt, n - right)
        return pooled(found, doubtful) if found.rounds >= LEAST else doubtful

    def _known_without_anchor(self, greedy: Mean, other: Mean, played: Mean) -> dict[str, Interval]:
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
        worst = [(mean.value - (m - most / K)) / max(most, 1e-9) for mean in (played, greedy)]
        found = (rho0, rho1, (0.0, most), (worst[0], 1.0), (worst[1], 1.0))
        return {
            name: (float(np.clip(low, 0, 1)), float(np.clip(high, 0, 1)))
            for name, (low, high) in zip(_NAMES, found, strict=True)
        }

    def _other(self, cells: Array) -> Mean:
        """The mean bit of a random label other than the greedy one.

        The sum of 1/P over labels that the policy means is how many it means; the rest was played blindly.
        """
        share = cells[PLAUSIBLE, 0] / max(cells[ALL, 0] * (self.n_classes - 1), 1.0)
        return mixed(mean_of(cells[PLAUSIBLE]), mean_of(cells[BLIND]), min(share, 1.0) if cells[BLIND, 0] else 1.0)

    def _lacking(self, cells: Array, greedy: Mean, other: Mean, sure: Mean) -> str:
        """What the log would need for any estimate at all."""
        if other.rounds < LEAST:
            return f"only {other.rounds:.0f} rounds played another label than the greedy one; {LEAST} are needed"
        if greedy.rounds < LEAST or sure.rounds < LEAST:
            return (
                f"only {min(greedy.rounds, sure.rounds):.0f} sure rounds played the label held best; {LEAST} are needed"
            )
        # Σ_r P(r)·1/P(r) = K: the mean of 1/P must be the number of labels.
        n, total, squares = cells[ALL, 0], cells[INVERSE, 0], cells[INVERSE, 2]
        mean = total / n
        doubt = 5 * np.sqrt(max(squares / n - mean**2, 0.0) / n) + 0.05 * self.n_classes
        if abs(mean - self.n_classes) > doubt:
            return (
                f"1/probability averages {mean:.3g} and not {self.n_classes}, the number of labels: some labels are "
                "hardly ever played, or the probabilities are not those they were played with"
            )
        return ""

    def _judge(
        self,
        late: Array,
        values: Array,
        down: Array,
        up: Array,
        share: float,
        slope: float,
        most: float,
        anchored: bool,
    ) -> tuple[Verdict, str]:
        if values[2] - down[2] <= 0.0:
            return "not identified", "the surest rounds' bits are no better than chance; let the learner learn longer"
        trend = self._trend()
        for what, there in (
            ("label", labels_differ(self.sure.sum(axis=0), values[2])),
            ("example", differ(random_by_band(late, self.n_classes))),
            ("time", trend < -_FALL or differ([self._other(cells) for cells in self._epochs()])),
        ):
            if there:
                return "weakly identified", f"{_DEPENDS} {what}, so that no one pair of rates describes them"
        wide = max(down[:2].max(), up[:2].max()) > 0.1
        if anchored:
            few = "few rounds were audited or explored so far: the rates lie within wide intervals"
            return ("weakly identified", few) if wide else ("identified", "labels that are right were audited")
        doubts = {
            "few rounds so far": np.isnan(trend),
            "the surest rounds' bits still get better with time": trend > _TREND,
            "the mean bit still rises where the learner is surest": share < SHARES[1] or slope > _SLOPE,
            "either the noise is extreme or the learner is never sure": values[2] < _FAINT * most,
            "few sure or explored rounds so far": wide,
        }
        for doubt, there in doubts.items():
            if there:
                return "weakly identified", f"{doubt}: the noise is at most what is said, and perhaps less"
        return "identified", f"the mean bit is level over the surest {share:.0%} of rounds, and in time"

    def _epochs(self) -> list[Array]:
        """What was counted early and late, where there is much of both."""
        if self.half_life is not None:
            return [self.memory[0], self.memory[1]]
        last = self._epoch(max(self.rounds[0] - 1, 0))
        return [self.memory[:last].sum(axis=0), self.memory[last]] if last else []

    def _trend(self) -> float:
        """By how many standard errors the surest rounds' mean bit rose lately; not a number if too early to say."""
        if self.rounds[0] < 4 * self.window:
            return np.nan
        last = self._epoch(self.rounds[0] - 1)
        earlier, later = (0, 1) if self.half_life is not None else (last - 1, last)
        before, after = (nested_means(self.memory[epoch])[-1] for epoch in (earlier, later))
        if min(before.rounds, after.rounds) < LEAST:
            return np.nan
        return float((after.value - before.value) / np.sqrt(before.variance + after.variance))


def faded(cells: Array, fade: float) -> Array:
    """Cells whose rounds count less."""
    return cells * (fade, fade, fade**2)


def _reach(nested: list[Mean], chosen: int, slope: float) -> float:
    """How far above the plateau's mean its true level may lie."""
    sure = nested[chosen]
    tops = [mean.value + mean.half for mean in nested[1 : chosen + 1] if mean.rounds >= LEAST]
    return max([sure.half + slope, *(top - sure.value for top in tops)])
