"""The shared words: a decision, the flip rates, the record of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fliptron.arrays import Array, InputError, real


class Decision(NamedTuple):
    """What was played. It carries all that learning needs, so feedback may come late or from a log."""

    label: int
    """The label played, ỹ."""
    greedy: int
    """The label the learner thinks best, ŷ."""
    probability: float
    """P(ỹ), with which the played label was drawn."""


class Rates(NamedTuple):
    """How often the bit lies: ρ0 = P(bit 1 | wrong label), ρ1 = P(bit 0 | right label)."""

    rho0: float
    rho1: float

    @property
    def beta(self) -> float:
        """β = 1 − ρ0 − ρ1, what is left of the signal."""
        return 1.0 - self.rho0 - self.rho1

    @classmethod
    def of(cls, rates: Any) -> Rates:
        """Two numbers, checked: each in [0, 1) and their sum below one.

        >>> Rates.of((0.2, 0.4)).beta
        0.4
        """
        try:
            rho0, rho1 = rates
        except (TypeError, ValueError):
            raise InputError(f"rates are {rates!r}; two numbers (rho0, rho1) are expected") from None
        rho0, rho1 = real("rho0", rho0, 0.0), real("rho1", rho1, 0.0)
        if rho0 + rho1 >= 1.0:
            raise InputError(
                f"rho0 + rho1 is {rho0 + rho1:g} (rates {rho0:g}, {rho1:g}); their sum must be below 1, "
                "or the bit says nothing about the label"
            )
        return cls(rho0, rho1)


@dataclass(frozen=True, slots=True)
class RoundLog:
    """Rounds as they were played, one array a column."""

    row: Array
    """Which example was shown."""
    label: Array
    greedy: Array
    probability: Array
    bit: Array
    margin: Array
    """How far the greedy label's score was above the next, before the bit was known."""


@dataclass(frozen=True, slots=True)
class Trace:
    """What happened in a run: counts up to each checkpoint, as the scorer who knows the truth saw them."""

    learner: str
    params: dict[str, Any]
    dataset: str
    rates: Rates
    order: str
    seed: int
    rounds: Array
    """The checkpoints: how many rounds each count below covers."""
    mistakes: Array
    """Rounds whose played label was wrong (exploration counts)."""
    greedy_mistakes: Array
    """Rounds whose greedy label was wrong."""
    explored: Array
    """Rounds whose played label was not the greedy one."""
    positives: Array
    """Rounds whose bit, after the channel, was 1."""
    seconds: float
    estimates: list[tuple[int, Any]]
    """What a learner that estimates the rates found: (rounds, `Estimate`) of every refresh."""
    log: RoundLog | None = None

    @property
    def errors(self) -> Array:
        """Error rate of the played label up to each checkpoint."""
        return np.asarray(self.mistakes / self.rounds)

    @property
    def greedy_errors(self) -> Array:
        """Error rate of the greedy label up to each checkpoint."""
        return np.asarray(self.greedy_mistakes / self.rounds)

    @property
    def error(self) -> float:
        """Final error rate of the played label."""
        return float(self.errors[-1])

    @property
    def greedy_error(self) -> float:
        """Final error rate of the greedy label."""
        return float(self.greedy_errors[-1])
