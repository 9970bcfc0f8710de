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
    r"""How often to explore: a rate that is constant, or falls with the rounds t = 1, 2, …

    .. math::

        \gamma_t = \min(\text{cap},\; \text{scale} \cdot t^{-\text{power}})

    Wherever a learner takes `gamma`, a plain number means the constant rate, power 0. `fliptron.theory.anytime` gives
    the schedule for which the number of rounds need not be known.

    Parameters
    ----------
    scale
        0, or from 10⁻¹² to 10¹²; at most 1 where power is 0.
    power
        From 0 to 1.
    cap
        From 0 to 1.

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
        """Make a schedule of what a learner was given.

        Parameters
        ----------
        gamma
            A number in [0, 1], a mapping with `scale`, `power` and `cap`, or a schedule.
        positive
            Refuse a rate of 0.
        """
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
