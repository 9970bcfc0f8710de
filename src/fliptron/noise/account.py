"""What counted bits say of the noise: rates, intervals that carry what is not binomial, and a verdict.

`fliptron.noise.plateaus` has the equations, and why they hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fliptron.arrays import Array
from fliptron.noise.estimate import Z95, Estimate, Interval, Verdict, possible
from fliptron.noise.tallies import (
    ALL,
    AUDITED_RIGHT,
    AUDITED_WRONG,
    BLIND,
    DOUBTFUL,
    GREEDY,
    INVERSE,
    LEAST,
    PLAUSIBLE,
    SHARES,
    Mean,
    anchor,
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

_NAMES = ("rho0", "rho1", "beta", "accuracy", "greedy_accuracy")
_TREND = 2.0  # standard errors by which the plateau may seem to rise with time
_FAINT = 0.15  # of the largest β that m allows, below which a learner's certainty cannot be told from chance
_SLOPE = 0.01  # what the curve may still rise before the plateau is not called level
_FALL = 4.0  # standard errors by which the plateau may seem to fall with time
_BELIEF = 0.25  # of β: half the width of an interval for what a learner believes of doubtful labels, if K is large
_DOUBTED = 1.5  # bits that look odd by chance bring the weaker verdict, and are off by more than others
_DEPENDS = "flips seem to depend on the"


@dataclass(frozen=True, slots=True)
class Account:
    """Bits counted in cells (see `fliptron.noise.tallies`), and what they say."""

    n_classes: int
    """K."""
    rounds: int
    """How many rounds were counted."""
    every: Array
    """The cells of all rounds."""
    late: Array
    """Those of the later half, when the learner knows most."""
    halves: Sequence[Array]
    """Those of early and of late rounds, where there is much of both."""
    trend: float
    """By how many standard errors the surest rounds' mean bit rose lately; not a number if too early to say."""
    sure: Array
    """Surest rounds of each label, and their bits (K×2)."""
    edges: Array
    """The least margin of each band."""

    def estimate(self, doubt: str = "") -> Estimate:
        """Rates, intervals and verdict; `doubt` is why nothing is identified, if somebody knows a reason."""
        greedy, other, played = mean_of(self.every[GREEDY]), self._other(self.every), mean_of(self.every[ALL])
        nested = nested_means(self.late)
        chosen = widest_level(nested)
        sure = nested[chosen]
        details = {
            "rounds": self.rounds,
            "not_greedy": other.rounds,
            "confident": sure.rounds,
            "confident_share": SHARES[chosen],
            "mean_bit": played.value,
            "audited": self.every[AUDITED_RIGHT, 0] + self.every[AUDITED_WRONG, 0],
            "curve": curve_of(self.late, self.edges),
        }
        least = self._known_without_anchor(greedy, other, played)
        right, wrong = mean_of(self.every[AUDITED_RIGHT]), mean_of(self.every[AUDITED_WRONG])
        chosen_by_bit = one_sided(right, wrong, played)
        anchored = right.rounds >= LEAST and not chosen_by_bit
        lacking = self._lacking(greedy, other, sure) or doubt
        if lacking and not (anchored and wrong.rounds >= LEAST):
            rates = possible(*(sum(least[name]) / 2 for name in ("rho0", "rho1")))
            return Estimate(rates, "not identified", lacking, least, details=details)
        slope = still_to_rise(self.late)
        reach = _reach(nested, chosen, slope)
        if anchored:  # verified labels say whether the surest rounds are right
            sure = anchor(sure._replace(variance=(max(sure.half, reach) / Z95) ** 2), right)
            reach, slope = sure.half, 0.0
        values, down, up = self._propagate(sure, greedy, other, played, self._wrong(sure), reach)
        verdict, reason = self._judge(values, down, up, SHARES[chosen], slope, least["beta"][1], anchored)
        if chosen_by_bit and verdict == "identified":
            verdict, reason = "weakly identified", "audited bits are all alike: audit without looking at the bit"
        if verdict == "not identified":
            return Estimate(possible(values[0], values[1]), verdict, reason, least, details=details)
        intervals: dict[str, Interval] = {}
        doubted = verdict == "weakly identified" and not anchored
        wider = _DOUBTED if doubted else 1.0
        ends = np.array([values - wider * down, values + wider * up])
        if doubted:  # a narrow plateau may be a lucky one
            wide, below, above = self._propagate(nested[-1], greedy, other, played, self._wrong(nested[-1]), 0.0)
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

    def _wrong(self, sure: Mean) -> Mean:
        """ρ0 from labels known to be wrong: audited ones, and doubtful ones less what is right among them.

        How many of the doubtful are right is the learner's own belief, which was seen to be off by a fifth of β, and by
        more where there are few labels.
        """
        found = mean_of(self.every[AUDITED_WRONG])
        n, ones, right = self.every[DOUBTFUL]
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

    def _lacking(self, greedy: Mean, other: Mean, sure: Mean) -> str:
        """What the log would need for any estimate at all."""
        if other.rounds < LEAST:
            return f"only {other.rounds:.0f} rounds played another label than the greedy one; {LEAST} are needed"
        if greedy.rounds < LEAST or sure.rounds < LEAST:
            return (
                f"only {min(greedy.rounds, sure.rounds):.0f} sure rounds played the label held best; {LEAST} are needed"
            )
        # Σ_r P(r)·1/P(r) = K: the mean of 1/P must be the number of labels.
        n, total, squares = self.every[ALL, 0], self.every[INVERSE, 0], self.every[INVERSE, 2]
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
        for what, there in (
            ("label", labels_differ(self.sure, values[2])),
            ("example", differ(random_by_band(self.late, self.n_classes))),
            ("time", self.trend < -_FALL or differ([self._other(cells) for cells in self.halves])),
        ):
            if there:
                return "weakly identified", f"{_DEPENDS} {what}, so that no one pair of rates describes them"
        wide = max(down[:2].max(), up[:2].max()) > 0.1
        if anchored:
            few = "few rounds were audited or explored so far: the rates lie within wide intervals"
            return ("weakly identified", few) if wide else ("identified", "labels that are right were audited")
        doubts = {
            "few rounds so far": np.isnan(self.trend),
            "the surest rounds' bits still get better with time": self.trend > _TREND,
            "the mean bit still rises where the learner is surest": share < SHARES[1] or slope > _SLOPE,
            "either the noise is extreme or the learner is never sure": values[2] < _FAINT * most,
            "few sure or explored rounds so far": wide,
        }
        for doubt, there in doubts.items():
            if there:
                return "weakly identified", f"{doubt}: the noise is at most what is said, and perhaps less"
        return "identified", f"the mean bit is level over the surest {share:.0%} of rounds, and in time"


def _reach(nested: list[Mean], chosen: int, slope: float) -> float:
    """How far above the plateau's mean its true level may lie."""
    sure = nested[chosen]
    tops = [mean.value + mean.half for mean in nested[1 : chosen + 1] if mean.rounds >= LEAST]
    return max([sure.half + slope, *(top - sure.value for top in tops)])
