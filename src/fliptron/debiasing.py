r"""Bits of a log with the flips taken out on average, for learners that know nothing of flips.

With the rates ρ0 and ρ1 of the round's channel, and β = 1 − ρ0 − ρ1,

.. math::

    h = \frac{b - \rho_0}{\beta}

has mean 1 for a right label and 0 for a wrong one, whatever the channel. Dividing by β makes the bits of a poor
channel loud: their variance is ρ(1 − ρ)/β². Least squares weights each round by the inverse of that, about β², and
β²·h = β·(b − ρ0) is the weighted form. Its mean is β² for a right label and 0 for a wrong one.

What each is good for follows from that:

- With one channel, h is the bit moved and stretched. Every policy's value becomes a true accuracy; the order of
  policies, and so what is learnt, stays as it was.
- With a channel for every label, raw bits favour labels that are told right by mistake, and h puts that right. (The
  weighted form would favour the labels with the better channel.)
- With a channel for every source, raw bits of different sources cannot be compared. Those of h can, but the poorest
  source rules them. Only the weighted form is both comparable and calm.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fliptron.arrays import Array
from fliptron.auditing import Progress, Reference, audit
from fliptron.encoding.records import is_missing, word_of
from fliptron.logs.export import TO, check_name, export_log, warn_of_loss
from fliptron.logs.log import Batch, Log
from fliptron.logs.tables import join_tables, write_table
from fliptron.noise.estimate import Estimate, possible
from fliptron.noise.plateaus import Plateaus
from fliptron.noise.tallies import BANDS, LEAST, Mean, bands_of, nested_means, still_to_rise, widest_level
from fliptron.refusals import InputError, one_of
from fliptron.rounds import Rates, Rounds

FORMS = ("h", "weighted")
"""(bit − ρ0)/β, and β·(bit − ρ0)."""
ALL, LABEL = "all", "label"
_MOST_SOURCES = 200
_WINDOW = 2000  # rounds of one label over which its forecasts are ranked
_LEAST_WINDOW = 500
_AGAIN = 2  # times that a log is read again for the rates of labels; a third time changes nothing


@dataclass(frozen=True, slots=True)
class Channels:
    """The channels that the bits of a log came through."""

    by: str | None
    """None for one channel, "label", or the column that says which."""
    rates: Mapping[Any, Rates]
    """Of each label or source, or of "all"."""
    estimates: Mapping[Any, Estimate]
    """Where the rates come from, unless they were told."""

    def of(self, batch: Batch, labels: tuple[Any, ...]) -> tuple[Array, Array]:
        """ρ0 and β of every round of a batch."""
        if self.by is None:
            told = np.array([self.rates[ALL]])
            which = np.zeros(len(batch.rounds), dtype=np.int64)
        elif self.by == LABEL:
            told, which = np.array([self.rates[label] for label in labels]), batch.rounds.label
        else:
            order = {source: i for i, source in enumerate(self.rates)}
            told = np.array(list(self.rates.values()))
            sources = sources_of(self.by, batch)
            odd = next((each for each in sources if each not in order), None)
            if odd is not None:
                raise InputError(f"no rates are given for {self.by} {odd!r}; {', '.join(map(repr, order))} have some")
            which = np.array([order[each] for each in sources], dtype=np.int64)
        return told[which, 0], 1.0 - told[which, 0] - told[which, 1]


def channels_of(
    log: Log,
    *,
    by: str | None = None,
    rates: Any = None,
    progress: Progress | None = None,
) -> Channels:
    """The channels of a log: as told, or estimated from its bits, and refused where they are not identified.

    Parameters
    ----------
    log
        The rounds that were played, with their probabilities.
    by
        None: all bits came through one channel. "label": every label has its own. Otherwise the name of a column of
        features: every value of it, such as a site or a judge, has its own.
    rates
        (ρ0, ρ1) where they are known; with `by`, a dict of them, one for each label or source.
    progress
        Called after each batch with the rounds read so far.
    """
    if by is not None and by != LABEL and by not in log.features:
        raise InputError(f"by is {by!r}; 'label' or one of the columns {', '.join(log.features)} is expected")
    if rates is not None:
        return _told(log, by, rates)
    if not log.has_probabilities:
        raise InputError(f"{log.name} does not say with which probability labels were played, so its flip rates are "
                         "not identified; tell them if they are known")  # fmt: skip
    if by is None:
        found: dict[Any, Estimate] = {ALL: audit(log, progress=progress)}
    else:
        found = _by_label(log, progress) if by == LABEL else _by_source(log, by, progress)
    for key, estimate in found.items():
        if estimate.verdict == "not identified":
            what = "the flip rates" if by is None else f"the flip rates of {by} {key!r}"
            raise InputError(f"{what} are not identified: {estimate.reason}; tell them if they are known")
    return Channels(by, {key: estimate.rates for key, estimate in found.items()}, found)


def debias(
    log: Log,
    path: str | os.PathLike[str],
    *,
    to: str = "parquet",
    by: str | None = None,
    rates: Any = None,
    form: str | None = None,
    progress: Progress | None = None,
) -> Channels:
    """Write a log whose rewards are debiased bits, for a learner that knows nothing of flips; the channels it went by.

    A Parquet file has the columns of the log, ρ0 and β of each round, `h` and `weighted`. The other forms hold one
    reward per round.

    Parameters
    ----------
    log
        The rounds that were played.
    path
        The file to write.
    to
        "parquet", "vw", "vw-cb", "dsjson" or "obp"; see `export_log`. Vowpal Wabbit's costs are −h.
    by, rates, progress
        As for `channels_of`. Rates of (0, 0) write the bits as they are.
    form
        The reward: "h" or "weighted". Unless given, "weighted" if every source has a channel of its own, else "h".
    """
    one_of("to", to, ("parquet", *TO))
    chosen = one_of("form", form or ("h" if by in (None, LABEL) else "weighted"), FORMS)
    target = Path(path)
    if to == "parquet" and target.suffix != ".parquet":
        raise InputError(f"{target} ends in {target.suffix!r}; .parquet is expected")
    if to != "parquet":
        check_name(target, to)
    channels = channels_of(log, by=by, rates=rates, progress=progress)
    if to == "parquet":
        warn_of_loss(log, to)
        _write_table(log, target, channels)
        return channels

    def reward(batch: Batch) -> Array:
        return debiased(batch.rounds.bit, *channels.of(batch, log.labels))[chosen]

    export_log(log, target, to=to, reward=reward)
    return channels


def debiased(bit: Array, rho0: Array, beta: Array) -> dict[str, Array]:
    """Both forms of some bits, given ρ0 and β of each."""
    return {"h": (bit - rho0) / beta, "weighted": beta * (bit - rho0)}


def sources_of(by: str, batch: Batch) -> list[str]:
    """Where each round's bit came from, as words."""
    values = batch.records.columns[by].tolist()
    try:
        return ["" if is_missing(each) else word_of(each) for each in values]
    except TypeError:
        raise InputError(f"column {by!r} holds lists or the like; words or numbers are expected as sources") from None


def _told(log: Log, by: str | None, rates: Any) -> Channels:
    if by is None:
        if isinstance(rates, Mapping):
            raise InputError("rates are given for several channels, but not by what they differ")
        return Channels(None, {ALL: Rates.of(rates)}, {})
    if not isinstance(rates, Mapping):
        raise InputError(f"rates are {rates!r}; with a channel for every {by}, a pair for each is expected")
    known = {word_of(key): Rates.of(pair) for key, pair in rates.items()}
    if by != LABEL:
        return Channels(by, known, {})
    odd = next((label for label in log.labels if word_of(label) not in known), None)
    if odd is not None:
        raise InputError(f"no rates are given for label {odd!r}; every label needs some")
    return Channels(by, {label: known[word_of(label)] for label in log.labels}, {})


def _by_source(log: Log, by: str, progress: Progress | None) -> dict[Any, Estimate]:
    """The estimate of every source from its own rounds; the margins come from one learner that reads all."""
    reference, counts = Reference(log), dict[str, Plateaus]()
    done = 0
    for batch in log.batches():
        inside = log.inside(batch)
        rounds = reference.read(batch)[0].part(inside.start, inside.stop)
        sources = np.array(sources_of(by, batch), dtype=object)[inside]
        for source in dict.fromkeys(sources.tolist()):
            if source not in counts:
                if len(counts) == _MOST_SOURCES:
                    raise InputError(
                        f"column {by!r} holds more than {_MOST_SOURCES} sources; so many at most have rates"
                    )
                counts[source] = Plateaus(n_classes=len(log.labels))
            counts[source].observe(_some(rounds, sources == source))
        done += len(batch.rounds)
        if progress is not None:
            progress(done)
    return {source: each.estimate(reference.doubt) for source, each in counts.items()}


def _some(rounds: Rounds, which: Array) -> Rounds:
    return Rounds(**{name: column[which] for name, column in rounds.columns().items()})


def _by_label(log: Log, progress: Progress | None) -> dict[Any, Estimate]:
    """The estimate of every label from the rounds that played it, where it is surely right and where surely wrong.

    A regression forecasts the bit of every label. At first a label is thought right where its own forecast is highest:
    forecasts of different labels cannot be compared, which is what flips that depend on the label spoil. With the rates
    that follow from that they can, and then a label is right where it leads the others; so the log is read again.
    """
    found = _read_by_label(log, None, progress)
    for _ in range(_AGAIN):
        found = _read_by_label(log, [each.rates for each in found.values()], progress)
    return found


def _read_by_label(log: Log, rates: Sequence[Rates] | None, progress: Progress | None) -> dict[Any, Estimate]:
    reference, ends, done = Reference(log), [_Ends() for _ in log.labels], 0
    for batch in log.batches():
        rounds, sureness = reference.read(batch, scores=True)
        late = np.arange(done, done + len(rounds)) * 2 >= log.n_rounds  # when the regression knows most
        if sureness is None:
            raise InputError(f"{log.name} has no column of features, so that no label can be told right from wrong")
        if rates is not None:
            sureness = _lead(debiased(sureness, *(np.array([[r.rho0, r.beta] for r in rates]).T))["h"])
        for r, each in enumerate(ends):
            played = (rounds.label == r) & late
            each.add(sureness[played, r], rounds.bit[played])
        done += len(rounds)
        if progress is not None:
            progress(done)
    return {label: each.estimate() for label, each in zip(log.labels, ends, strict=True)}


def _lead(scores: Array) -> Array:
    """By how much each label's score is above the best of the others."""
    second, first = np.partition(scores, -2, axis=1)[:, -2:].T
    return np.asarray(scores - np.where(scores == first[:, None], second[:, None], first[:, None]))


class _Ends:
    """The mean bits of one label where its forecast is highest, and where it is lowest."""

    def __init__(self) -> None:
        self._waiting: list[tuple[Array, Array]] = []
        self._cells = np.zeros((2, len(BANDS), 3))  # of ones from the top, of zeros from the bottom
        self._n = 0

    def add(self, forecast: Array, bit: Array) -> None:
        self._waiting.append((forecast, bit))
        self._n += bit.size
        if sum(bits.size for _, bits in self._waiting) >= _WINDOW:
            self._count()

    def _count(self) -> None:
        forecasts, bits = (np.concatenate([pair[i] for pair in self._waiting]) for i in (0, 1))
        self._waiting = []
        for forecast, bit in zip(
            *(np.array_split(a, max(a.size // _WINDOW, 1)) for a in (forecasts, bits)), strict=True
        ):
            for end, (score, one) in enumerate(((forecast, bit), (-forecast, 1 - bit))):
                band, _ = bands_of(score)
                seen, ones = (np.bincount(band, weight, len(BANDS)) for weight in (None, one))
                self._cells[end] += np.column_stack([seen, ones, seen])

    def estimate(self) -> Estimate:
        """Rates and verdict."""
        if self._waiting and sum(bits.size for _, bits in self._waiting) >= min(_LEAST_WINDOW, max(self._n, 1)):
            self._count()
        tops = [self._level(cells) for cells in self._cells]
        (right, rises), (wrong, falls) = tops
        rho0, rho1 = 1.0 - wrong.value, 1.0 - right.value
        intervals = {
            "rho0": (max(rho0 - wrong.half - falls, 0.0), min(rho0 + wrong.half, 1.0)),
            "rho1": (max(rho1 - right.half - rises, 0.0), min(rho1 + right.half, 1.0)),
        }
        rates = possible(rho0, rho1)
        if min(right.rounds, wrong.rounds) < LEAST:
            few = min(right.rounds, wrong.rounds)
            return Estimate(
                rates, "not identified", f"only {few:.0f} rounds of it are sure; {LEAST} are needed", intervals
            )
        if 1.0 - rho0 - rho1 <= float(np.hypot(right.half, wrong.half)):
            reason = "its bits are no better where it is forecast to be right than where it is not"
            return Estimate(rates, "not identified", reason, intervals)
        level = max(rises, falls) <= 0.1 * rates.beta
        reason = (
            "its mean bit is level at both ends" if level else "its mean bit still moves where the forecast is surest"
        )
        return Estimate(rates, "identified" if level else "weakly identified", reason, intervals)

    @staticmethod
    def _level(cells: Array) -> tuple[Mean, float]:
        nested = nested_means(cells)
        return nested[widest_level(nested)], still_to_rise(cells)


def _write_table(log: Log, path: Path, channels: Channels) -> None:
    """The log's columns and the debiased ones, part by part, and then in one file."""
    named = np.array([*log.labels, None], dtype=object)  # −1, not known, is the last
    with tempfile.TemporaryDirectory(prefix="fliptron-") as folder:
        parts: list[str] = []
        for batch in log.batches():
            rounds, (rho0, beta) = batch.rounds, channels.of(batch, log.labels)
            own: dict[str, Array] = {"label": named[rounds.label], "bit": rounds.bit}
            if log.has_probabilities:
                own["probability"] = rounds.probability
            if (rounds.greedy >= 0).any():
                own["greedy"] = named[rounds.greedy]
            if rounds.margin is not None:
                own["margin"] = rounds.margin
            own |= {"rho0": rho0, "beta": beta, **debiased(rounds.bit, rho0, beta)}
            twice = next((name for name in batch.records.columns if name.lower() in own), None)
            if twice is not None:
                raise InputError(f"the log has a feature {twice!r}, which is the name of a column to be added")
            parts.append(str(Path(folder) / f"part-{len(parts):06d}.parquet"))
            write_table(Path(parts[-1]), {**batch.records.columns, **own})
        join_tables(path, parts)
