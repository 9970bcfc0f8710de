"""What is known of the noise: rates, intervals, a verdict, and the true accuracy behind the bits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np

from fliptron.arrays import Array, InputError
from fliptron.rounds import Rates

Verdict = Literal["identified", "weakly identified", "not identified"]
Interval = tuple[float, float]

Z95 = 1.96
BETA_FLOOR = 0.02
"""The least β an estimate states: a point estimate must stay a possible pair of rates."""


class Played(Protocol):
    """A log of rounds: what was played, how likely that was, and the bit that came back."""

    label: Array
    probability: Array
    bit: Array


@dataclass(frozen=True, slots=True)
class Estimate:
    """Flip rates read off bandit data.

    `intervals` has 95 % intervals for "rho0", "rho1", "beta" and, where the log allows, "accuracy" (of the
    policy that made the log, exploration included) and "greedy_accuracy" (of its best guesses).
    """

    rates: Rates
    verdict: Verdict
    reason: str
    """The verdict in a sentence."""
    intervals: Mapping[str, Interval] = field(default_factory=dict)
    accuracy: float | None = None
    greedy_accuracy: float | None = None
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def beta(self) -> float:
        """β = 1 − ρ0 − ρ1."""
        return self.rates.beta

    def true_accuracy(self, mean_bit: float, variance: float = 0.0) -> tuple[float, Interval]:
        """The accuracy behind a mean bit, (mean − ρ0)/β, with a 95 % interval that carries the doubt in the rates.

        `variance` is that of the mean bit: mean·(1 − mean)/n for n rounds.
        """
        value = (mean_bit - self.rates.rho0) / self.beta
        error0, error1 = (self._error(name) for name in ("rho0", "rho1"))
        spread = np.sqrt(variance + ((value - 1) * error0) ** 2 + (value * error1) ** 2) / self.beta
        low, high = np.clip([value - Z95 * spread, value + Z95 * spread], 0, 1)
        return float(np.clip(value, 0, 1)), (float(low), float(high))

    def policy_accuracy(self, log: Played, would_play: Any) -> tuple[float, Interval]:
        """The true accuracy of another policy, from rounds this one played.

        `would_play` is the other policy's label for each round, or the probability with which it would have
        played the label that was played. Rounds are weighted by the ratio of the two policies' probabilities.
        """
        choice = np.asarray(would_play)
        if choice.shape != log.bit.shape:
            raise InputError(f"would_play has shape {choice.shape}; one entry for each of {log.bit.size} rounds")
        chance = (choice == log.label).astype(float) if choice.dtype.kind in "iu" else choice.astype(float)
        weight = chance / log.probability
        total = weight.sum()
        if not total > 0.0:
            raise InputError("the other policy would have played none of the labels that were played")
        mean = float((weight * log.bit).sum() / total)
        return self.true_accuracy(mean, float((weight**2 * (log.bit - mean) ** 2).sum() / total**2))

    def _error(self, name: str) -> float:
        """Standard error of a rate, from its interval."""
        low, high = self.intervals.get(name, (0.0, 0.0))
        return (high - low) / (2 * Z95)


def possible(rho0: float, rho1: float) -> Rates:
    """The nearest pair of rates that can be: neither negative, β at least `BETA_FLOOR`."""
    rho0, rho1 = float(np.clip(rho0, 0.0, 1.0)), float(np.clip(rho1, 0.0, 1.0))
    excess = max(rho0 + rho1 - (1.0 - BETA_FLOOR), 0.0) / 2
    rho0, rho1 = rho0 - excess, rho1 - excess
    if rho0 < 0.0 or rho1 < 0.0:
        rho0, rho1 = (0.0, rho1 + rho0) if rho0 < 0.0 else (rho0 + rho1, 0.0)
    return Rates(rho0, rho1)
