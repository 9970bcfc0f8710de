"""What is known of the noise: rates, intervals, a verdict, and the true accuracy behind the bits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np

from fliptron.refusals import InputError, real
from fliptron.rounds import Rates, Rounds
from fliptron.shown import frame, html

Verdict = Literal["identified", "weakly identified", "not identified"]
Interval = tuple[float, float]

Z95 = 1.96
BETA_FLOOR = 0.02
"""The least β an estimate states: a point estimate must stay a possible pair of rates."""


@dataclass(frozen=True, slots=True, repr=False)
class Estimate:
    """What is known of the flip rates: a value, intervals, a verdict, and the true accuracy that follows."""

    rates: Rates
    """The estimated flip rates."""
    verdict: Verdict
    """One of "identified", "weakly identified" and "not identified"."""
    reason: str
    """Why, in a sentence."""
    intervals: Mapping[str, Interval] = field(default_factory=dict)
    """95 % intervals of "rho0", "rho1" and "beta" and, where the log allows, of "accuracy" and "greedy_accuracy"."""
    accuracy: float | None = None
    """The true accuracy of the labels that were played, exploration included."""
    greedy_accuracy: float | None = None
    """The true accuracy of the greedy labels."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """What else the estimator counted."""

    @property
    def beta(self) -> float:
        """β = 1 − ρ0 − ρ1."""
        return self.rates.beta

    def _rows(self) -> list[tuple[str, float | None, Interval]]:
        known = self.verdict != "not identified"
        values = {"rho0": self.rates.rho0, "rho1": self.rates.rho1, "beta": self.beta}
        found: dict[str, float | None] = {name: value if known else None for name, value in values.items()}
        found |= {"accuracy": self.accuracy, "greedy_accuracy": self.greedy_accuracy}
        return [(name, value, self.intervals[name]) for name, value in found.items() if name in self.intervals]

    def to_frame(self) -> Any:
        """One row per rate and accuracy: its value, None where it is not identified, and its 95 % interval."""
        rows = self._rows()
        low, high = ([each[2][end] for each in rows] for end in (0, 1))
        columns = {"name": [row[0] for row in rows], "value": [row[1] for row in rows], "low": low, "high": high}
        return frame(columns).set_index("name")

    def plot(self, axes: Any = None) -> Any:
        """Draw mean bit against margin, which the rates are read from; the figure."""
        from fliptron.noise.curve import margin_curve  # noqa: PLC0415  # which knows what an estimate is

        return margin_curve(self, axes)

    def __repr__(self) -> str:
        told = [f"{name} {'–' if value is None else f'{value:.3g}'} [{low:.3g}, {high:.3g}]"
                for name, value, (low, high) in self._rows()]  # fmt: skip
        rates = told or [f"rho0 {self.rates.rho0:.3g}", f"rho1 {self.rates.rho1:.3g}"]
        return f"Estimate({self.verdict}: {', '.join(rates)})"

    def _repr_html_(self) -> str:
        rows = [(name, "–" if value is None else f"{value:.4f}", f"{low:.4f} to {high:.4f}")
                for name, value, (low, high) in self._rows()]  # fmt: skip
        return html(f"{self.verdict}: {self.reason}", rows, ["", "estimate", "95 % interval"])

    def true_accuracy(self, mean_bit: float, variance: float = 0.0) -> tuple[float, Interval]:
        """The accuracy behind a mean bit, (mean − ρ0)/β, and a 95 % interval that includes the doubt in the rates.

        Where the rates have no intervals (NREst gives none), the interval is from 0 to 1.

        Parameters
        ----------
        mean_bit
            From 0 to 1.
        variance
            Of the mean bit, at least 0: mean·(1 − mean)/n for n rounds.
        """
        mean_bit, variance = real("mean_bit", mean_bit, 0.0, 1.0), real("variance", variance, 0.0)
        if self.verdict == "not identified":
            raise InputError(f"the flip rates are not identified, so no accuracy follows: {self.reason}")
        value = float(np.clip((mean_bit - self.rates.rho0) / self.beta, 0, 1))
        if "rho0" not in self.intervals:
            return value, (0.0, 1.0)
        (low0, high0), (low1, high1) = self.intervals["rho0"], self.intervals["rho1"]
        bits = Z95**2 * variance
        # A higher ρ0 lowers the accuracy, a higher ρ1 raises it.
        down = np.sqrt(bits + ((1 - value) * (high0 - self.rates.rho0)) ** 2 + (value * (self.rates.rho1 - low1)) ** 2)
        up = np.sqrt(bits + ((1 - value) * (self.rates.rho0 - low0)) ** 2 + (value * (high1 - self.rates.rho1)) ** 2)
        low, high = np.clip([value - down / self.beta, value + up / self.beta], 0, 1)
        return value, (float(low), float(high))

    def with_exploration(self, share: float, n_classes: int) -> float:
        """Half the width that the interval of ρ0 would have, had a share of the rounds been drawn at random.

        Parameters
        ----------
        share
            Of the rounds, above 0 and at most 1.
        n_classes
            K.

        >>> rounds = {"rounds": 10_000}
        >>> found = Estimate(Rates(0.1, 0.3), "weakly identified", "few rounds explore", details=rounds)
        >>> round(found.with_exploration(0.05, n_classes=4), 3)
        0.051
        """
        mean = self.rates.rho0 + self.beta / n_classes
        rounds = real("share", share, 0.0, 1.0) * self.details["rounds"]
        return float(Z95 * np.sqrt(mean * (1 - mean) / max(rounds, 1.0)) * n_classes / (n_classes - 1))

    def policy_accuracy(self, rounds: Rounds, would_play: Any) -> tuple[float, Interval]:
        """The true accuracy of another policy, with a 95 % interval, from rounds that this one played.

        Each round is weighted by the ratio of the two policies' probabilities.

        Parameters
        ----------
        rounds
            The rounds of the log.
        would_play
            The other policy's label for each round (whole numbers), or the probability, from 0 to 1, with which it
            would have played the label that was played.
        """
        choice = np.asarray(would_play)
        if choice.shape != rounds.bit.shape:
            raise InputError(f"would_play has shape {choice.shape}; one entry for each of {rounds.bit.size} rounds")
        labels = choice.dtype.kind in "iu"
        if not labels and not (choice.dtype.kind == "f" and ((choice >= 0) & (choice <= 1)).all()):
            raise InputError("would_play holds what is neither a whole number (a label) nor a probability from 0 to 1")
        weight = ((choice == rounds.label) if labels else choice) / rounds.probability
        total = weight.sum()
        if not total > 0.0:
            raise InputError("the other policy would have played none of the labels that were played")
        mean, n = float((weight * rounds.bit).sum() / total), float(total**2 / (weight**2).sum())
        centre = (n * mean + 2) / (n + 4)  # Agresti and Coull's, as for every mean here
        return self.true_accuracy(mean, centre * (1 - centre) / (n + 4))


class RateEstimator(Protocol):
    """What `RCINE` asks of an estimator, ours or yours."""

    needs_rows: bool
    """Whether the rounds it takes in must have X."""

    def absorb(self, rounds: Rounds) -> None:
        """Take in a window of rounds."""

    def estimate(self) -> Estimate:
        """The rates, from all that was taken in."""

    def clear(self) -> None:
        """Forget everything."""


def possible(rho0: float, rho1: float, floor: float = BETA_FLOOR) -> Rates:
    """The nearest pair of rates that can be: neither negative, β at least `floor`."""
    rho0, rho1 = float(np.clip(rho0, 0.0, 1.0)), float(np.clip(rho1, 0.0, 1.0))
    excess = max(rho0 + rho1 - (1.0 - floor), 0.0) / 2
    rho0, rho1 = rho0 - excess, rho1 - excess
    if rho0 < 0.0 or rho1 < 0.0:
        rho0, rho1 = (0.0, rho1 + rho0) if rho0 < 0.0 else (rho0 + rho1, 0.0)
    return Rates(rho0, rho1)
