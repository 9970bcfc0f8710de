"""The shared words: a decision, the flip rates, a table of rounds, the record of a run, and what a learner is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, Protocol

import numpy as np

from fliptron.arrays import Array, Csr, as_matrix
from fliptron.refusals import InputError, real
from fliptron.shown import axes as new_axes
from fliptron.shown import frame, html

LEAST_PROBABILITY = 1e-30
"""The least probability of a played label that is learnt from: updates divide by it."""


MOST_CLASSES = 10**6
"""The most labels a table of rounds may speak of."""


class Decision(NamedTuple):
    """What was played. It carries all that learning needs, so feedback may come late or from a log.

    >>> Decision(label=2, greedy=0, probability=0.05)
    Decision(label=2, greedy=0, probability=0.05)
    """

    label: int
    """The label played, ỹ."""
    greedy: int
    """The label the learner thinks best, ŷ."""
    probability: float
    """P(ỹ), the probability with which the played label was drawn."""


class Rates(NamedTuple):
    """How often the bit is flipped: ρ0 when the label was wrong, ρ1 when it was right."""

    rho0: float
    """P(bit 1 | wrong label)."""
    rho1: float
    """P(bit 0 | right label)."""

    @property
    def beta(self) -> float:
        """β = 1 − ρ0 − ρ1: the difference between the mean bits of a right and of a wrong label."""
        return 1.0 - self.rho0 - self.rho1

    @classmethod
    def of(cls, rates: Any) -> Rates:
        """Check two numbers and make them rates.

        Parameters
        ----------
        rates
            (ρ0, ρ1), each at least 0, with a sum below 1.

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
    """A table of rounds, one array per column: what `simulate` writes, files hold and estimators read.

    The first four columns are always there; the others are None where they are not known. `Rounds.of` checks what it is
    given.

    >>> rounds = Rounds.of(label=[0, 2], greedy=[0, 1], probability=[0.9, 0.05], bit=[1, 0], n_classes=3)
    >>> len(rounds), rounds.part(1, 2).label
    (2, array([2]))
    """

    label: Array
    """The label played in each round."""
    greedy: Array
    """The label that the learner held best when it decided."""
    probability: Array
    """The probability with which the label was drawn."""
    bit: Array
    """What came back: 1 for right, 0 for wrong, sometimes flipped."""
    margin: Array | None = None
    """The lead of the best label's score over the next, by a model that had not yet seen the round's bit."""
    best: Array | None = None
    """The label that the same model held best, where it is not `greedy`."""
    row: Array | None = None
    """Which example of the data set was shown."""
    X: Array | None = None
    """The examples themselves, one row per round."""

    @classmethod
    def of(cls, *, n_classes: int | None = None, **columns: Any) -> Rounds:
        """Build a table from columns, and check each.

        Parameters
        ----------
        n_classes
            K. Labels run from 0 to K − 1, or to 999,999 where K is not given.
        columns
            The columns of `Rounds` by name, as numbers or arrays. `label`, `greedy`, `probability` and `bit` must be
            there. Probabilities are from 10⁻³⁰ to 1, and bits are 0 or 1.
        """
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
            matrix = as_matrix(given["X"])
            if isinstance(matrix, Csr):
                raise InputError("X is sparse; a dense matrix of examples is expected")
            checked["X"] = np.asarray(matrix)
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
        """The label held best by the model that `margin` comes from: `best`, or `greedy` where there is no `best`."""
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


@dataclass(frozen=True, slots=True, repr=False)
class Trace:
    """What happened in a run: counts up to each checkpoint, made by the scorer, who knows the truth."""

    learner: str
    """The name of the learner's class."""
    params: dict[str, Any]
    """The learner's parameters."""
    dataset: str
    """The name of the data set."""
    rates: Rates
    """The true flip rates of the channel."""
    order: str
    """The order of rows: "resample", "shuffle" or "file"."""
    seed: int
    """The seed of rows and flips."""
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
    """How long it took."""
    estimates: list[tuple[int, Any]]
    """What a learner that estimates the rates has found: one pair (rounds, `Estimate`) per estimate."""
    log: Rounds | None = None
    """Every round, if `simulate` was asked to keep them."""

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

    def to_frame(self) -> Any:
        """One row per checkpoint: rounds, errors, and counts."""
        counts = {name: getattr(self, name) for name in ("mistakes", "greedy_mistakes", "explored", "positives")}
        return frame({"rounds": self.rounds, "error": self.errors, "greedy_error": self.greedy_errors, **counts})

    def plot(self, axes: Any = None) -> Any:
        """Draw error against rounds, on logarithmic scales; the figure."""
        axes = new_axes(axes)
        axes.loglog(self.rounds, np.maximum(self.errors, 1e-9), label=f"{self.learner} on {self.dataset}")
        axes.set_ylim(bottom=max(self.errors[self.errors > 0].min(initial=1.0) / 2, 1e-7))
        axes.set_xlabel("rounds")
        axes.set_ylabel("error of the played label")
        axes.legend(frameon=False)
        axes.grid(color="0.92", linewidth=0.8)
        return axes.figure

    def __repr__(self) -> str:
        rho0, rho1 = self.rates
        what = f"{self.learner} on {self.dataset}, rates ({rho0:g}, {rho1:g}), seed {self.seed}"
        return f"Trace({what}: error {self.error:.4g} after {self.rounds[-1]:,} rounds)"

    def _repr_html_(self) -> str:
        places = sorted({*range(0, len(self.rounds), 20), len(self.rounds) - 1})
        rows = [(f"{self.rounds[i]:,}", f"{self.errors[i]:.4f}", f"{self.greedy_errors[i]:.4f}") for i in places]
        return html(repr(self), rows, ["rounds", "error", "greedy error"])


class Learns(Protocol):
    """What `simulate` and `check_learner` ask of a learner, ours or yours: two methods.

    Everything else is optional; it is used or checked where it is there:

    - `full_information`: true if `learn` takes the true label instead of the bit;
    - `scores(X)` (n×K, the highest is the greedy label) and `predict(X)`, which change nothing; logs of a learner with
      `scores` have margins;
    - `weights`, an array of what was learnt;
    - `params`, keyword arguments that build the same fresh learner; `save(path)`, and the class method `load(path)`;
    - `estimate()`, an `Estimate` of the rates, or `estimates`, a list of (rounds, `Estimate`), which traces then have.
    """

    def decide(self, x: Any) -> Decision:
        """Choose a label for one example, and say with which probability it was drawn."""

    def learn(self, x: Any, decision: Decision, feedback: int) -> None:
        """Learn from the bit that came back for an earlier decision. Bits may come at any time and in any order."""


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
