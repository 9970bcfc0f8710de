"""What is known of the noise: rates, intervals, a verdict, and the true accuracy behind the bits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from fliptron.rounds import Rates

Verdict = Literal["identified", "weakly identified", "not identified"]
Interval = tuple[float, float]

Z95 = 1.96
BETA_FLOOR = 0.02
"""The least β an estimate states: a point estimate must stay a possible pair of rates."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Flip rates read off bandit data.

    `intervals` has 95 % intervals for "rho0", "rho1", "beta" and, where the log allows, "accuracy" (of the
    policy that made the log, exploration included) and "greedy_accuracy" (of its best guesses).
    `beta_bounds` is what holds for β without assuming that any round is certain.
    """

    rates: Rates
    verdict: Verdict
    reason: str
    """The verdict in a sentence."""
    intervals: Mapping[str, Interval] = field(default_factory=dict)
    beta_bounds: Interval = (0.0, 1.0)
    accuracy: float | None = None
    greedy_accuracy: float | None = None
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def beta(self) -> float:
        """β = 1 − ρ0 − ρ1."""
        return self.rates.beta


def possible(rho0: float, rho1: float) -> Rates:
    """The nearest pair of rates that can be: neither negative, β at least `BETA_FLOOR`."""
    rho0, rho1 = float(np.clip(rho0, 0.0, 1.0)), float(np.clip(rho1, 0.0, 1.0))
    excess = max(rho0 + rho1 - (1.0 - BETA_FLOOR), 0.0) / 2
    rho0, rho1 = rho0 - excess, rho1 - excess
    if rho0 < 0.0 or rho1 < 0.0:
        rho0, rho1 = (0.0, rho1 + rho0) if rho0 < 0.0 else (rho0 + rho1, 0.0)
    return Rates(rho0, rho1)
