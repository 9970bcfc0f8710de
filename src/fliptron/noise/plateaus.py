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

a and b are pooled over all rounds. A policy may choose among some labels on purpose and play the rest blindly. Then b
is put together from both: the first are weighted by 1/P, and of the rest, any of which was as likely, a plain mean is
taken.

s comes from the rounds of largest margin, in the later half of the rounds, when the learner knows most. Shares of each
window are compared, each within the next. The widest is taken whose mean is not exceeded, by more than chance allows,
by that of a narrower one (Lepski's rule). If even the surest rounds are sometimes wrong, s is below 1 − ρ1 and the
noise is over-stated, which is the error that harms RCNBF least.

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
from fliptron.noise.account import Account
from fliptron.noise.estimate import Estimate
from fliptron.noise.tallies import BANDS, CELLS, LEAST, bands_of, count_window, nested_means
from fliptron.refusals import InputError, real, whole
from fliptron.rounds import Rounds

_EPOCHS = 64
_FEWEST = 100  # rounds of a window


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

    def estimate(self, doubt: str = "") -> Estimate:
        """Rates, intervals and verdict from all rounds so far.

        Parameters
        ----------
        doubt
            Why nothing is identified, if somebody knows a reason.
        """
        if self._waiting:  # a window not yet full counts too, in a copy, unless too few margins can be ranked
            filled = copy.deepcopy(self)
            filled._pending, filled._waiting = [], 0
            if self._waiting >= _FEWEST or not self.rounds[0]:
                filled.absorb(Rounds.join(self._pending))
            return filled.estimate(doubt)
        if self.half_life is None:
            last = self._epoch(max(self.rounds[0] - 1, 0))
            every, late = self.memory.sum(axis=0), self.memory[max(last - 1, 0) :].sum(axis=0)
        else:
            every = late = self.memory[0]
        return Account(
            n_classes=self.n_classes,
            rounds=int(self.rounds[0]),
            every=every,
            late=late,
            halves=self._halves(),
            trend=self._trend(),
            sure=self.sure.sum(axis=0),
            edges=self.edges,
        ).estimate(doubt)

    def _epoch(self, rounds: float) -> int:
        """Which epoch the next round falls in: the first window, then two, four, eight …"""
        return int(np.log2(rounds / self.window + 1.0))

    def _halves(self) -> list[Array]:
        """What was counted early and late, where there is much of both.

        With a half-life the two overlap, so that tests which take them for apart ask for more than their level says.
        """
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
