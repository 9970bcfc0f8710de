"""The shared words: a decision, the flip rates, a table of rounds, the record of a run, and what a learner is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, Protocol

import numpy as np

from fliptron.arrays import Array, as_matrix
from fliptron.refusals import InputError, real

LEAST_PROBABILITY = 1e-30
"""The least probability of a played label that is learnt from: updates divide by it."""


MOST_CLASSES = 10**6
"""The most labels a table of rounds may speak of."""


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
class Rounds:
    """Rounds as they were played, one array per column: what `simulate` writes, files hold and estimators read.

    The first four columns are always there. `margin` and `best` come from a model that had not yet seen the round's
    bit: the label it held best (`greedy` unless given) and the lead of that label's score over the next. `row` says
    which example of a data set was shown, `X` are the examples themselves.

    >>> rounds = Rounds.of(label=[0, 2], greedy=[0, 1], probability=[0.9, 0.05], bit=[1, 0], n_classes=3)
    >>> len(rounds), rounds.part(1, 2).label
    (2, array([2]))
    """

    label: Array
    greedy: Array
    probability: Array
    bit: Array
    margin: Array | None = None
    best: Array | None = None
    row: Array | None = None
    X: Array | None = None

    @classmethod
    def of(cls, *, n_classes: int | None = None, **columns: Any) -> Rounds:
        """Build a table from columns, each checked; labels are below K, or below a million if K is not given."""
        known = [field.name for field in fields(cls)]
        for name in columns:
            if name not in known:
                raise InputError(f"{name!r} is not a column of rounds; {', '.join(known)} are")
        for name in known[:4]:
            if columns.get(name) is None:
                raise InputError(f"the column {name!r} is missing; {', '.join(known[:4])} are expected")
        given = {name: values for name, values in columns.items() if values is not None}
        checked = {
            name: _labels(name, values, n_classes or MOST_CLASSES)
            if name in ("label", "greedy", "best")
            else _column(name, values)
            for name, values in given.items()
            if name != "X"
        }
        if "X" in given:
            checked["X"] = np.asarray(as_matrix(given["X"]))
        sizes = {column.shape[0] for column in checked.values()}
        if len(sizes) != 1:
            raise InputError(f"the columns have {sorted(sizes)} rounds; all must have the same")
        bit, probability = checked["bit"], checked["probability"]
        _allow("bit", bit, (bit == 0) | (bit == 1), "0 or 1")
        likely = (probability >= LEAST_PROBABILITY) & (probability <= 1)
        _allow("probability", probability, likely, f"at least {LEAST_PROBABILITY:g} and at most 1")
        return cls(**checked)

    def __len__(self) -> int:
        return int(self.bit.shape[0])

    @property
    def held(self) -> Array:
        """The label held best by the model whose margin it is."""
        return self.greedy if self.best is None else self.best

    def part(self, start: int, stop: int) -> Rounds:
        """Rounds start … stop − 1."""
        return Rounds(**{name: column[start:stop] for name, column in self.columns().items()})

    def columns(self) -> dict[str, Array]:
        """The columns that are there, by name."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: column for name, column in found.items() if column is not None}

    @staticmethod
    def join(parts: Iterable[Rounds]) -> Rounds:
        """Tables with the same columns, one after the other."""
        tables = [part.columns() for part in parts]
        return Rounds(**{name: np.concatenate([table[name] for table in tables]) for name in tables[0]})


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
    log: Rounds | None = None

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


class Learns(Protocol):
    """What `simulate` and `check_learner` ask of a learner, ours or a user's: two methods.

    Everything else is optional, and used or checked where it is there:

    - `full_information`: true if `learn` takes the true label instead of the bit;
    - `scores(X)` (n×K, the highest is the greedy label) and `predict(X)`, which change nothing: logs then have margins;
    - `weights`, an array of what was learnt;
    - `params`, keyword arguments that build the learner anew, and `save(path)` with the class method `load(path)`;
    - `estimate()`, an `Estimate` of the rates, or `estimates`, a list of (rounds, `Estimate`): traces then carry them.
    """

    def decide(self, x: Any) -> Decision:
        """Choose a label for one example; states truly with which probability it was drawn."""

    def learn(self, x: Any, decision: Decision, feedback: int) -> None:
        """Learn from the bit that came back for an earlier decision, at any time and in any order."""


def _column(name: str, values: Any) -> Array:
    try:
        column = np.atleast_1d(np.asarray(values))
        column = column if column.dtype.kind in "iu" else column.astype(np.float64, copy=False)
    except (TypeError, ValueError):
        raise InputError(f"{name} holds something that is not a number") from None
    if column.ndim != 1:
        raise InputError(f"{name} has {column.ndim} dimensions; one number per round is expected")
    _allow(name, column, np.isfinite(column), "finite")
    return column


def _labels(name: str, values: Any, n_classes: int) -> Array:
    column = _column(name, values)
    good = (column >= 0) & (column < n_classes) & (column == np.floor(column))
    _allow(name, column, good, f"a whole number from 0 to {n_classes - 1}")
    return column.astype(np.int64, copy=False)


def _allow(name: str, column: Array, good: Array, allowed: str) -> None:
    if not good.all():
        at = int(np.argmin(good))
        raise InputError(f"{name} is {column[at]:g} in round {at}; {allowed} is expected")
