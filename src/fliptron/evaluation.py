r"""The true accuracy of policies from a log that another policy made, through the flips.

Each round t of the log has x, the label ỹ that was played with probability P, and a bit b. What a policy π would have
played is a. With the weight w = 1[a = ỹ]/P, and q(x, r) the bit that a regression expects of label r (each forecast
made before the round's bit was seen),

.. math::

    \text{IPS} &= \tfrac{1}{n} \sum w\,b \\
    \text{SNIPS} &= \sum w\,b \,/ \sum w \\
    \text{DR} &= \tfrac{1}{n} \sum q(x, a) + w\,(b - q(x, \tilde{y}))

are three estimates of the mean bit V that π would have earned. Flips make V = ρ0 + β·accuracy, so the accuracy is
(V − ρ0)/β, in doubt as V, ρ0 and β are. In the difference of two policies on the same rounds ρ0 cancels, and β only
scales; rounds in which both would have played the same say nothing, and add no noise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

from fliptron.arrays import Array
from fliptron.auditing import Reference, never_together
from fliptron.logs.log import Log
from fliptron.noise.estimate import Z95, Estimate, Interval
from fliptron.noise.plateaus import Plateaus
from fliptron.policy import Policy
from fliptron.refusals import InputError, shown, whole
from fliptron.shown import axes as new_axes
from fliptron.shown import frame, html
from fliptron.tables import BATCH

LOGGED = "the log's own"
"""The name of the policy that made the log."""
_FEW = 30.0  # effective rounds below which an interval is not to be trusted
_SCORES = 2**24  # in a batch, a score for each label and round
_FAR = 3.0  # standard errors of two estimates, taken as if they were independent
Progress = Callable[[int], object]


@dataclass(frozen=True, slots=True)
class Value:
    """What one policy is worth."""

    mean_bit: Mapping[str, float]
    """The mean bit it would have earned, by "ips", "snips" and "dr"."""
    error: Mapping[str, float]
    """Their standard errors."""
    accuracy: Mapping[str, tuple[float, Interval]] | None
    """Its true accuracy with a 95 % interval, by the same names; None where the rates are not identified."""
    effective: float
    """How many rounds the log is worth to it: (Σw)²/Σw²."""
    rounds: int
    """How many it was judged by."""

    def warning(self, name: str) -> str:
        """What is wrong if DR and SNIPS, which tell the same mean bit, differ by more than chance explains."""
        robust, snips = self.mean_bit["dr"], self.mean_bit["snips"]
        error = sqrt(self.error["dr"] ** 2 + self.error["snips"] ** 2)
        if abs(robust - snips) <= _FAR * error:
            return ""
        return (
            f"the mean bit of {name} is {robust:.4f} by DR and {snips:.4f} by SNIPS, which should agree: a feature may "
            "tell what was played or what came back, or the probabilities are wrong"
        )


@dataclass(frozen=True, slots=True)
class Difference:
    """How much more often one policy is right than another, judged on the same rounds."""

    first: str
    second: str
    bits: float
    """The difference of mean bits."""
    bits_interval: Interval
    accuracy: float | None
    """The difference of true accuracies; None where β is not identified."""
    interval: Interval | None
    doubt: str = ""
    """Why nothing can be said at all, if so."""

    @property
    def is_real(self) -> bool:
        """Whether chance does not explain it. The flips cannot change its sign."""
        low, high = self.bits_interval
        return not self.doubt and (low > 0.0 or high < 0.0)

    def __str__(self) -> str:
        if self.doubt:
            return f"Nobody can know which of {self.first} and {self.second} is better: {self.doubt}."
        better, worse = (self.first, self.second) if self.bits >= 0.0 else (self.second, self.first)
        if not self.is_real:
            low, high = self.interval or self.bits_interval
            what = "right" if self.interval else "rewarded"
            return (
                f"No difference between {self.first} and {self.second} is certain: {self.first} is {what} between "
                f"{low:+.3f} and {high:+.3f} more often."
            )
        if self.accuracy is None or self.interval is None:
            return (
                f"{better} is better than {worse}: by {abs(self.bits):.3f} in mean bit, and by more in true accuracy."
            )
        low, high = sorted(map(abs, self.interval))  # both of one sign
        return f"{better} is better than {worse}: right {abs(self.accuracy):.3f} more often, [{low:.3f}, {high:.3f}]."


@dataclass(frozen=True, slots=True, repr=False)
class Evaluation:
    """What policies are worth by one log."""

    noise: Estimate
    """The flip rates of the log."""
    values: Mapping[str, Value]
    differences: tuple[Difference, ...]
    """Of every policy from the one before it, paired round by round."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """A sentence for every policy whose DR and SNIPS differ by more than chance explains."""
        return tuple(filter(None, (value.warning(name) for name, value in self.values.items())))

    def to_frame(self) -> Any:
        """One row per policy: its mean bit, its rounds and their worth, and where known its accuracy by each method."""
        rows: list[dict[str, Any]] = []
        for name, value in self.values.items():
            row = {"policy": name, "mean_bit": value.mean_bit["dr"], "rounds": value.rounds, "worth": value.effective}
            for how, (centre, (low, high)) in (value.accuracy or {}).items():
                row |= {f"accuracy_{how}": centre, f"accuracy_{how}_low": low, f"accuracy_{how}_high": high}
            rows.append(row)
        return frame({name: [row.get(name) for row in rows] for name in rows[-1]})

    def plot(self, axes: Any = None) -> Any:
        """Draw the true accuracy of each policy with its interval; the figure."""
        axes = new_axes(axes, size=(7.0, 1.2 + 0.5 * len(self.values)))
        for at, value in enumerate(self.values.values()):
            if value.accuracy is None:
                raise InputError(f"there is no accuracy to draw: {self.noise.reason}")
            centre, (low, high) = value.accuracy["dr"]
            colour = "0.5" if at == 0 else "#0072B2"
            axes.errorbar(centre, at, xerr=[[centre - low], [high - centre]], fmt="o", color=colour, capsize=3)
            place = {"xytext": (0, 7), "textcoords": "offset points", "ha": "center", "color": colour}
            axes.annotate(f"{centre:.3f}", (centre, at), **place)
        axes.set_yticks(range(len(self.values)), list(self.values))
        axes.set_ylim(len(self.values) - 0.5, -0.7)
        axes.set_xlim(0, 1)
        axes.set_xlabel("true accuracy, behind the flipped bits (95 % interval)")
        axes.grid(axis="x", color="0.92", linewidth=0.8)
        return axes.figure

    def __repr__(self) -> str:
        return f"Evaluation({', '.join(self.values)}: {' '.join(map(str, self.differences))})"

    def _repr_html_(self) -> str:
        rows = []
        for name, value in self.values.items():
            centre, (low, high) = (value.accuracy or {}).get("dr", (None, (None, None)))
            told = "–" if centre is None else f"{centre:.3f} [{low:.3f}, {high:.3f}]"
            rows.append((name, f"{value.mean_bit['dr']:.4f}", told, f"{value.rounds:,}", f"{value.effective:,.0f}"))
        columns = ["policy", "mean bit", "true accuracy", "rounds", "worth"]
        return html(" ".join(map(str, self.differences)), rows, columns)


def evaluate(
    log: Log, policies: Mapping[str, Policy | str], *, skip: int | None = None, progress: Progress | None = None
) -> Evaluation:
    """What policies would have earned on the rounds of a log, and how often they are truly right.

    Parameters
    ----------
    log
        The rounds that were played, with their probabilities.
    policies
        Policies by name: a `Policy`, which is not changed, or a column of the log (named among its `others`) that says
        what another one would have played.
    skip
        Rounds at the start of the log that count for the flip rates only. By default those that a policy has learnt
        from, where it would look better than it is; 0 judges by these too.
    progress
        Called after each batch with the rounds read so far.
    """
    _check(log, policies)
    skip = _learnt(log, policies) if skip is None else whole("skip", skip, 0)
    if log.span.start >= log.span.stop:
        raise InputError(never_together(log))
    if skip >= log.span.stop:
        raise InputError(f"all {log.span.stop:,} rounds are left out; at least one is needed to judge by")
    sums = {name: _Sums() for name in (LOGGED, *policies)}
    pairs = list(zip(sums, list(sums)[1:], strict=False))
    apart = {pair: _Sums() for pair in pairs}
    reference, plateaus = Reference(log), Plateaus(n_classes=len(log.labels))
    numbers = {name: _numbers(name, policy, log) for name, policy in policies.items() if isinstance(policy, Policy)}
    done = 0
    for batch in log.batches(min(BATCH, _SCORES // len(log.labels))):
        rounds, expected = reference.read(batch, scores=log.schema is not None)
        inside = log.inside(batch)
        plateaus.observe(rounds.part(inside.start, inside.stop))
        start, stop, done = max(skip - done, inside.start), inside.stop, done + len(rounds)
        if progress is not None:
            progress(done)
        if start >= stop:
            continue
        part = rounds.part(start, stop)
        bit, at = part.bit.astype(np.float64), np.arange(len(part))
        q = None if expected is None else np.clip(expected[start:stop], 0.0, 1.0)
        robust = {LOGGED: bit}
        sums[LOGGED].add(np.ones(len(part)), bit, bit)
        for name, policy in policies.items():
            if isinstance(policy, Policy):
                records = batch.records.part(start, stop)
                would = numbers[name][policy.learner.predict(policy.encoder.encode_all(records, update=False))]
            else:
                would = batch.others[policy][start:stop]
            weight = (would == part.label) / part.probability
            robust[name] = weight * bit if q is None else q[at, would] + weight * (bit - q[at, part.label])
            sums[name].add(weight, bit, robust[name])
        for pair, total in apart.items():
            total.add(np.ones(len(part)), bit, robust[pair[1]] - robust[pair[0]])
    noise = plateaus.estimate(reference.doubt)
    values = {name: each.value(noise) for name, each in sums.items()}
    doubts = {name: each.doubt(name) or reference.doubt for name, each in sums.items()}
    differences = [
        apart[pair].difference(noise, pair[1], pair[0], doubts[pair[1]] or doubts[pair[0]]) for pair in pairs
    ]
    return Evaluation(noise, values, tuple(differences))


def _learnt(log: Log, policies: Mapping[str, Any]) -> int:
    """The rounds of the log, from the first on, that one of the policies has learnt from."""
    done = {name: log.learnt_by(each) for name, each in policies.items() if isinstance(each, Policy)}
    for name, rounds in done.items():
        if rounds >= log.n_rounds:
            raise InputError(
                f"{name} has learnt from all {log.n_rounds:,} rounds of this log, so it would look better than it is; "
                "one that learnt from fewer, or another log, is expected (or skip=0, if it must be)"
            )
    return max(done.values(), default=0)


def _check(log: Any, policies: Any) -> None:
    """Refuse what cannot be judged, before anything is read."""
    if not isinstance(log, Log):
        raise InputError(f"the log is a {type(log).__name__}; a Log is expected")
    if not isinstance(policies, Mapping):
        raise InputError(f"the policies are a {type(policies).__name__}; a dict of policies by name is expected")
    for name, policy in policies.items():
        if not isinstance(name, str):
            raise InputError(f"a policy is called {shown(name)}; a word is expected")
        if name == LOGGED:
            raise InputError(f"{LOGGED!r} is the name of the policy that made the log; another is expected")
        if not isinstance(policy, Policy) and policy not in log.others:
            raise InputError(f"{name} is {policy!r}; a Policy or one of the log's other columns is expected")
        if isinstance(policy, Policy):
            policy.missing(log.features, log.name)
    if not log.has_probabilities:
        raise InputError("the log does not say with which probability labels were played, so no other policy's value "
                         "can be known")  # fmt: skip


class _Sums:
    """Sums over rounds from which values and their errors follow."""

    def __init__(self) -> None:
        self.n = 0
        self.w = self.ww = self.wb = self.wwb = self.r = self.rr = 0.0

    def add(self, weight: Array, bit: Array, robust: Array) -> None:
        self.n += weight.size
        self.w += float(weight.sum())
        self.ww += float((weight**2).sum())
        self.wb += float((weight * bit).sum())
        self.wwb += float((weight**2 * bit).sum())
        self.r += float(robust.sum())
        self.rr += float((robust**2).sum())

    def value(self, noise: Estimate) -> Value:
        if not self.w > 0.0:
            raise InputError("a policy would have played none of the labels that were played, so it cannot be judged")
        n, snips = self.n, self.wb / self.w
        mean = {"ips": self.wb / n, "snips": snips, "dr": self.r / n}
        variance = {
            "ips": (self.wwb / n - mean["ips"] ** 2) / n,
            "snips": (self.wwb * (1 - 2 * snips) + snips**2 * self.ww) / self.w**2,
            "dr": (self.rr / n - mean["dr"] ** 2) / n,
        }
        effective = self.w**2 / self.ww
        least = (effective * snips + 2) / (effective + 4)  # Agresti and Coull's, for logs with few ones
        floor = least * (1 - least) / (effective + 4) if effective < _FEW else 0.0
        variance = {name: max(each, floor, 0.0) for name, each in variance.items()}
        known = noise.verdict != "not identified"
        accuracy = {
            name: noise.true_accuracy(float(np.clip(mean[name], 0, 1)), variance[name]) for name in mean
        } if known else None  # fmt: skip
        return Value(mean, {name: sqrt(each) for name, each in variance.items()}, accuracy, effective, n)

    def doubt(self, name: str) -> str:
        """Why a policy cannot be judged at all: Σ_r P(r)·1[a = r]/P(r) = 1, so the mean of w must be 1."""
        mean = self.w / self.n
        if abs(mean - 1.0) <= 5 * sqrt(max(self.ww / self.n - mean**2, 0.0) / self.n) + 0.05:
            return ""
        return (
            f"the weights 1/probability of the rounds in which {name} would have played the same average {mean:.3g} "
            "and not 1, so the probabilities are wrong, or it would often have played what never was"
        )

    def difference(self, noise: Estimate, first: str, second: str, doubt: str) -> Difference:
        mean = self.r / self.n
        half = Z95 * sqrt(max(self.rr / self.n - mean**2, 0.0) / self.n)
        bits = (mean - half, mean + half)
        if noise.verdict == "not identified":
            return Difference(first, second, mean, bits, None, None, doubt)
        beta, (low, high) = noise.beta, noise.intervals["beta"]
        scaled = mean / beta
        down, up = abs(scaled) * (high - beta) / high, abs(scaled) * (beta - low) / max(low, 1e-3)
        down, up = (down, up) if mean >= 0 else (up, down)
        ends = np.array([scaled - sqrt((half / beta) ** 2 + down**2), scaled + sqrt((half / beta) ** 2 + up**2)])
        corners = np.divide.outer(np.array(bits), np.array([max(low, 1e-3), high]))  # β has no part in the sign
        least, most = np.clip([max(ends[0], corners.min()), min(ends[1], corners.max())], -1.0, 1.0)
        value, interval = float(np.clip(scaled, -1.0, 1.0)), (float(least), float(most))
        return Difference(first, second, mean, bits, value, interval, doubt)


def _numbers(name: str, policy: Policy, log: Log) -> Array:
    """The log's number of each of a policy's labels."""
    known: dict[Any, int] = {label: r for r, label in enumerate(log.labels)}
    odd = [label for label in policy.labels if label not in known]
    if odd:
        raise InputError(f"{name} may play {odd[0]!r}, which the log has never played, so it cannot be judged by it")
    return np.array([known[label] for label in policy.labels])
