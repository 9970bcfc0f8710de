"""How often a learner explores: a constant rate, or one that falls with time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from fliptron.kernels.loop import gamma_at
from fliptron.refusals import InputError, real

_LEAST = 1e-12  # of a rate above 0: updates divide by it, and it must be more than a rounding error of 1 − γ


@dataclass(frozen=True, slots=True)
class Exploration:
    """γ_t = min(cap, scale · t^(−power)) for rounds t = 1, 2, …

    A plain number γ is the constant schedule, power 0. `fliptron.theory.anytime` gives the schedule
    that needs no horizon.

    >>> Exploration(0.5, power=1 / 3).at(8)
    0.25
    """

    scale: float
    power: float = 0.0
    cap: float = 1.0

    def __post_init__(self) -> None:
        if self.power == 0.0:
            real("gamma", self.scale, 0.0, 1.0)
        for name, most in (("scale", np.inf), ("power", 1.0), ("cap", 1.0)):
            object.__setattr__(self, name, real(f"{name} of gamma_t", getattr(self, name), 0.0, most))
        if 0.0 < min(self.scale, self.cap) < _LEAST or self.scale > 1 / _LEAST:
            raise InputError(f"gamma is {self.plain}; 0, or numbers from {_LEAST:g} to {1 / _LEAST:g}, are expected")

    @classmethod
    def of(cls, gamma: Any, *, positive: bool = False) -> Exploration:
        """A schedule from a number, a mapping of its fields or a schedule; above zero where `positive`."""
        if isinstance(gamma, Mapping):
            try:
                gamma = cls(**gamma)
            except TypeError:
                raise InputError(f"gamma is {dict(gamma)!r}; scale, power and cap are expected") from None
        schedule = gamma if isinstance(gamma, cls) else cls(real("gamma", gamma, 0.0, 1.0))
        if positive and min(schedule.scale, schedule.cap) == 0.0:
            raise InputError(
                "gamma is 0; a number above 0 and at most 1 is expected: the update divides by the probability "
                "of every label"
            )
        return schedule

    @property
    def steps(self) -> tuple[float, float, float]:
        """As the kernels read it."""
        return float(self.scale), float(self.power), float(self.cap)

    @property
    def plain(self) -> float | dict[str, float]:
        """As a parameter is written down: a number, or the fields of the schedule."""
        return self.scale if self.power == 0.0 and self.cap == 1.0 else asdict(self)

    def at(self, t: int) -> float:
        """γ_t."""
        return float(gamma_at(self.steps, t))
