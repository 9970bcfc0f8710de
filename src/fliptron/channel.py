"""The channel between the truth and the learner: it flips the bit with fixed probabilities."""

from __future__ import annotations

import numpy as np

from fliptron.kernels.game import flip
from fliptron.kernels.randomness import FLIPS, make_key, uniform
from fliptron.refusals import whole
from fliptron.rounds import Rates


class FlipChannel:
    """Turns the truth into a bit: "right" is flipped with probability ρ1, "wrong" with probability ρ0.

    Whether round t is flipped depends on (seed, t) alone, so every learner meets the same noise.

    Parameters
    ----------
    rho0, rho1
        The flip rates, each at least 0, with a sum below 1.
    seed
        Of the flips.

    >>> channel = FlipChannel(0.0, 0.4, seed=1)
    >>> [channel.bit(t, correct=True) for t in range(8)]
    [1, 0, 0, 0, 0, 1, 0, 1]
    >>> channel.bit(0, correct=False)
    0
    """

    def __init__(self, rho0: float, rho1: float, *, seed: int = 0) -> None:
        self.rates = Rates.of((rho0, rho1))
        self.key = np.uint64(make_key(whole("seed", seed, 0, 2**63 - 1), FLIPS))

    def bit(self, t: int, correct: bool) -> int:
        """The bit that comes back in round t, counted from 0.

        Parameters
        ----------
        t
            The round, from 0.
        correct
            Whether the played label was right.
        """
        return int(flip(correct, uniform(self.key, t), *self.rates))
