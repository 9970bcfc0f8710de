"""Logs written in the forms of other libraries: Vowpal Wabbit's text, dsjson, and `bandit_feedback`."""

from __future__ import annotations

import gzip
import math
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fliptron.arrays import Array
from fliptron.encoding.records import is_missing, word_of
from fliptron.lines import suffix_of
from fliptron.logs import dsjson, obp, vowpal
from fliptron.logs.events import Event, column_of, place_of
from fliptron.logs.log import Batch, Log
from fliptron.output import whole_file
from fliptron.refusals import InputError, one_of, path_of

TO = ("vw", "vw-cb", "dsjson", "obp")
"""Text with the features of actions (adf), text with numbered actions (cb), JSON, and a dict of arrays."""
_ENDS = {"vw": (".vw",), "vw-cb": (".vw",), "dsjson": (".dsjson", ".json")}
_NAMED = (".vw", ".dsjson", ".json", ".jsonl", ".ndjson", ".npz", ".csv", ".tsv", ".parquet")
Reward = Callable[[Batch], Array]
"""What came back in each round of a batch."""


def export_log(log: Log, path: str | os.PathLike[str], *, to: str = "vw", reward: Reward | None = None) -> int:
    """Write a log in the form of another library's, whole or not at all; how many rounds that were.

    `Log` reads it again with the same records, labels, probabilities and bits. The greedy label and the margin are kept
    in "dsjson" and "obp". "obp" has no room for columns of more than 1,000 different words; its `left_out` names them.

    A log that has this form already keeps its events as they are, with tags, features of actions and lists of actions:
    only costs are written anew, and of a `bandit_feedback` the rewards. Where another form has no room for some of
    that, or `features` were chosen, a warning names what is left out.

    Parameters
    ----------
    log
        The rounds, with their probabilities. They are read in batches; only "obp" needs all in memory.
    path
        The file. Text and JSON are zipped if its name ends in .gz.
    to
        "vw" (each event has the context and a line for every action), "vw-cb" (a line per event; the labels must be
        whole numbers from 1 on), "dsjson" or "obp" (an .npz file).
    reward
        What to write instead of the bits, given a batch. Vowpal Wabbit's costs are its negative.

    Examples
    --------
    >>> import tempfile
    >>> rows = "label,bit,probability,age,city\\nhats,1,0.75,31,Rome\\nshoes,0,0.25,18.5,Oslo\\n"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table, text = Path(folder) / "log.csv", Path(folder) / "log.vw"
    ...     _ = table.write_text(rows)
    ...     n = export_log(Log(table), text)
    ...     print(text.read_text().split("\\n\\n")[0])
    shared |context age:31.0 city=Rome
    0:-1.0:0.75 |action label=hats
    |action label=shoes
    """
    if not isinstance(log, Log):
        raise InputError(f"the log is a {type(log).__name__}; a Log is expected")
    target = path_of(path)
    one_of("to", to, TO)
    if not log.has_probabilities:
        raise InputError(f"{log.name} does not say with which probability labels were played, which this form needs")
    check_name(target, to)
    warn_of_loss(log, to)
    if to == "obp":
        found = to_feedback(log, reward=reward)
        with whole_file(target) as part, part.open("wb") as file:
            np.savez_compressed(file, **{key: each for key, each in found.items() if np.asarray(each).dtype != object})
        return int(found["n_rounds"])
    texts = _kept(log, to, reward) if _keeps(log, to) else map(_writer(log, to), _events(log, reward))
    rounds, zipped = 0, target.suffix.lower() == ".gz"
    with whole_file(target) as part, gzip.open(part, "wb") if zipped else part.open("wb") as file:
        for text in texts:
            file.write(text.encode("utf-8"))
            rounds += 1
    return rounds


def warn_of_loss(log: Log, to: str) -> None:
    """Name in a warning what a log of another library's says that will not be in what is written.

    Parameters
    ----------
    log
        The rounds.
    to
        One of `TO`, or "parquet".
    """
    if log._origin is None or _keeps(log, to):
        return
    lost = dict.fromkeys(log._origin.beyond)
    if log._origin.form in ("vw", "dsjson") and log.roles["label"] == "position":  # its names are numbers then
        lost = dict.fromkeys(["the features of actions", *lost])
    if lost:
        *most, last = lost
        told = f"{', '.join(most)} and {last}" if most else last
        warnings.warn(f"left out of what is written as {to!r}: {told}", stacklevel=3)


def _keeps(log: Log, to: str) -> bool:
    """Whether events stay as they were written, since the log has this form already."""
    if log._origin is None or not log._as_it_was:
        return False
    return log._origin.form == to or (to == "obp" and log._origin.feedback is not None and not log._ordered)


def _kept(log: Log, to: str, reward: Reward | None) -> Iterator[str]:
    """Events as they were written, with other costs if rewards are given, or if a column says what the bits are."""
    relabelled = dsjson.relabelled if to == "dsjson" else vowpal.relabelled
    end = {"vw": "\n\n", "vw-cb": "\n", "dsjson": "\n"}[to]
    for batch in log.batches(events=True):
        n = len(batch.rounds)
        costs: list[Any] = [None] * n
        if reward is not None or not log._own("bit"):
            costs = (0.0 - _rewards(batch, reward)).tolist()
        chances: list[Any] = [None] * n if log._own("probability") else batch.rounds.probability.tolist()
        assert batch.events is not None
        for text, cost, chance in zip(batch.events.tolist(), costs, chances, strict=True):
            yield relabelled(text, cost, chance) + end


def check_name(path: Path, to: str) -> None:
    """Refuse a file whose name says that it has another form.

    Parameters
    ----------
    path
        The file.
    to
        One of `TO`.
    """
    suffix = suffix_of(path)
    if to == "obp":
        if path.suffix != ".npz":
            raise InputError(f"{path} ends in {path.suffix!r}; .npz is expected for a bandit_feedback")
    elif suffix in _NAMED and suffix not in _ENDS[to]:
        raise InputError(f"{path} ends in {suffix!r}; {' or '.join(_ENDS[to])} is expected, also with .gz behind")


def to_feedback(log: Log, *, reward: Reward | None = None) -> dict[str, Any]:
    """A log as the `bandit_feedback` of Open Bandit Pipeline.

    Of one that it was before all stays but the rewards: `action_context`, `pi_b`, `expected_reward` and whatever else.

    Parameters
    ----------
    log
        The rounds, with their probabilities.
    reward
        What to write instead of the bits, given a batch.
    """
    if not log.has_probabilities:
        raise InputError(f"{log.name} does not say with which probability labels were played, which this form needs")
    if _keeps(log, "obp"):
        assert log._origin is not None
        found = {key: each for key, each in (log._origin.feedback or {}).items() if each is not None}
        batches = list(log.batches())
        if reward is not None or not log._own("bit"):
            found["reward"] = np.concatenate([_rewards(batch, reward) for batch in batches])
        if not log._own("probability"):
            found["pscore"] = np.concatenate([batch.rounds.probability for batch in batches])
        return found
    return obp.feedback_of(list(_events(log, reward)), [word_of(label) for label in log.labels])


def _writer(log: Log, to: str) -> Callable[[Event], str]:
    names = [word_of(label) for label in log.labels]
    if to == "vw-cb":
        odd = next((label for label in log.labels if not isinstance(label, int) or label < 1), None)
        if odd is not None:
            raise InputError(f"a label is {odd!r}; in vw-cb labels are whole numbers from 1 on: write vw instead")
        return lambda event: vowpal.cb_text(event._replace(position=int(event.label)))
    if to == "vw":
        lines = [vowpal.action_text(name) for name in names]
        return lambda event: vowpal.adf_text(event, lines)
    actions = [dsjson.action_object(name) for name in names]
    return lambda event: dsjson.text_of(event, actions)


def _events(log: Log, reward: Reward | None) -> Iterator[Event]:
    names = tuple(word_of(label) for label in log.labels)
    _check_places(log.features)
    for batch in log.batches():
        rounds, n = batch.rounds, len(batch.rounds)
        costs, chances = (0.0 - _rewards(batch, reward)).tolist(), rounds.probability.tolist()
        label, greedy = rounds.label.tolist(), rounds.greedy.tolist()
        margin = [None] * n if rounds.margin is None else rounds.margin.astype(np.float64).tolist()
        tags = [None] * n if batch.tags is None else batch.tags.tolist()
        columns = {name: _values(name, values) for name, values in batch.records.columns.items()}
        for i in range(n):
            record = {name: values[i] for name, values in columns.items() if values[i] is not None}
            tag = tags[i] if isinstance(tags[i], str) and tags[i] else None
            thought = names[greedy[i]] if greedy[i] >= 0 else None
            yield Event(
                "", names[label[i]], label[i] + 1, costs[i], chances[i], record, names, thought, margin[i], tag
            )  # fmt: skip


def _rewards(batch: Batch, reward: Reward | None) -> Array:
    """What came back in each round, or what is written instead."""
    n, rewards = len(batch.rounds), (batch.rounds.bit if reward is None else reward(batch)).astype(np.float64)
    if rewards.shape != (n,) or not np.isfinite(rewards).all():
        raise InputError(f"rewards of shape {rewards.shape} for {n} rounds; a finite number for each is expected")
    return np.asarray(rewards)


def _check_places(features: Sequence[str]) -> None:
    """No two features may be written by one name, as `cost` and `context.cost` would be."""
    seen: dict[str, str] = {}
    for name in features:
        other = seen.setdefault(column_of(*place_of(name)), name)
        if other != name:
            raise InputError(f"features {other!r} and {name!r} would be written by one name; one of them is expected")


def _values(name: str, values: Array) -> list[Any]:
    """A column as numbers, truth values and words; None where there is nothing."""
    if values.dtype.kind in "iuf":
        numbers = values.astype(np.float64)
        if np.isinf(numbers).any():
            raise InputError(f"column {name!r} holds an infinite number, which other libraries cannot read")
        return [None if math.isnan(number) else number for number in numbers.tolist()]
    if values.dtype.kind == "b":
        return list(values.tolist())
    if values.dtype.kind == "M":
        return [None if np.isnat(each) else str(each.astype("datetime64[us]").item().isoformat()) for each in values]
    return [_value(name, each) for each in values.tolist()]


def _value(name: str, value: Any) -> Any:
    if is_missing(value):
        return None
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | float | np.number):
        return float(value)
    try:
        return word_of(value)
    except TypeError:
        raise InputError(f"column {name!r} holds lists or the like; words and numbers are expected") from None
