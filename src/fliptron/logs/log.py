"""A log in files, of any size: rounds that were played, read in batches."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from fliptron.arrays import Array
from fliptron.encoding.records import Table, is_missing, word_of
from fliptron.encoding.schema import FIRST, Schema
from fliptron.leaks import CALLED, COPY, FINER, RECODED, TOLD, check_asked, copies, finer, recoded, telling
from fliptron.logs.events import WRITTEN
from fliptron.logs.forms import made_table
from fliptron.logs.labels import labels_in, labels_of
from fliptron.logs.order import Span, in_play, order_by
from fliptron.logs.roles import (
    NOT_FEATURES,
    assign,
    bits_of,
    check_features,
    check_others,
    is_one,
    not_features,
    numbers_of,
)
from fliptron.refusals import InputError, mapping_of, names_of, real, whole
from fliptron.rounds import LEAST_PROBABILITY, Rounds
from fliptron.shown import html
from fliptron.tables import BATCH, NAMES, TableFile, from_json, quoted

_KNOWN_BY = 20  # rows
_BY = " by "  # between what a file is known by and the column that orders it


class Batch(NamedTuple):
    """Rounds that follow each other, and the records they were about."""

    records: Table
    rounds: Rounds
    """The greedy label is −1 where the log does not say it, and the probability NaN."""
    others: Mapping[str, Array]
    """What other policies would have played, by column."""
    tags: Array | None = None
    """What the rounds are called, in a log of another library's that says it."""
    events: Array | None = None
    """All of each event as it was written, in such a log, where it is asked for."""


class Log:
    """A log of rounds in one or many files: who was shown what, and what came back.

    Parameters
    ----------
    source
        A .csv, .tsv, .parquet or .jsonl file, Vowpal Wabbit's text (.vw) or .dsjson, all also with .gz behind, or an
        .npz with a `bandit_feedback` of Open Bandit Pipeline's; a folder or a pattern (``day-*.parquet``) of such
        files, read in the order of their names; ``-`` for standard input; or a `bandit_feedback` itself.
    label, bit, probability, greedy, margin
        The columns that hold the label played, the bit, the probability of the label played, the label thought best,
        and the lead of its score. Guessed from the columns' names unless given. The probability may be a number, or
        "uniform", where it was the same in every round.
    time
        A column of numbers or times to order the rounds by; otherwise they are in the order of the file.
    features
        The columns that describe what was decided on; all that have no role unless given.
    labels
        The labels that could be played; all that were unless given.
    kinds
        What columns hold, by name, where it should not be inferred; see `Schema.infer`.
    others
        Columns that say what other policies would have played.
    format
        "table", "vw", "dsjson" or "obp", where the file's name does not say it.
    """

    def __init__(
        self,
        source: str | os.PathLike[str] | Mapping[str, Any],
        *,
        label: str | None = None,
        bit: str | None = None,
        probability: str | float | None = None,
        greedy: str | None = None,
        margin: str | None = None,
        time: str | None = None,
        features: Sequence[str] | None = None,
        labels: Sequence[Any] | None = None,
        kinds: Mapping[str, str] | None = None,
        others: Sequence[str] = (),
        format: str | None = None,  # noqa: A002  # as pandas calls it
    ) -> None:
        self.name = _name(source)
        labels, features, others, kinds = _checked(labels, features, others, kinds)
        self._told: dict[str, Any] = {
            "label": label, "bit": bit, "probability": probability, "greedy": greedy, "margin": margin, "time": time,
            "features": features, "labels": labels, "kinds": kinds, "others": others,
            "format": format,
        }  # fmt: skip
        self._origin = made = made_table(source if isinstance(source, Mapping) else self.name, format)  # or None
        self._file = TableFile(self.name, made)
        self._movable = not isinstance(source, Mapping) and self.name != "-"
        self._fixed = _fixed(probability)
        given = self._file.columns
        told = {"label": label, "bit": bit, "greedy": greedy, "margin": margin}
        if self._fixed is None and probability != "uniform":
            told["probability"] = probability  # type: ignore[assignment]
        self.roles = self._assigned(told, None if made is None else made.roles, features or ())
        """Which column says what."""
        unused = set()
        if (self._fixed is not None or probability == "uniform") and "probability" in self.roles:
            unused = {self.roles.pop("probability")}
        self._order = order_by(time, self._file)
        self.others = list(others)
        """Columns that say what other policies would have played."""
        named = [self.roles[each] for each in ("label", "greedy") if each in self.roles]
        self._file.keep_words(
            [*named, *self.others], [name for name, kind in kinds.items() if kind in ("category", "many")]
        )
        check_others(self.others, given, self.roles | ({} if time is None else {"time": time}))
        self._besides = besides = not_features(given) if made is None else made.besides
        self._gaps = made is not None or besides != NOT_FEATURES  # greedy labels that some events do not tell
        self._tags = "tag" if "tag" in besides and "tag" in given else None
        taken = {*self.roles.values(), *([time] if time else []), *besides, *self.others, *unused}
        self.features = [name for name in given if name not in taken] if features is None else list(features)
        """The columns that records have."""
        check_features(self.features, given, taken - (set(besides) - set(self.roles.values())) - unused)
        self.n_rounds = int(self._file.rows("SELECT count(*) FROM {}")[0][0])
        """How many rounds there are."""
        if self.n_rounds == 0:
            raise InputError(f"{self.name} holds no rounds; at least one is expected")
        if labels is None and made is not None and self.roles["label"] == made.roles["label"]:
            labels = made.labels
        self.labels = labels_in(self.roles["label"], self._file, labels)
        """The labels that could be played."""
        self._told["labels"] = self.labels
        self._numbers = {each: r for r, each in enumerate(self.labels)}
        if probability == "uniform":
            self._fixed = 1.0 / len(self.labels)
        head = self._head()
        self.leaks = self._leaks(head, made is None)
        """Columns that say what was played or what came back, and why. They are no features."""
        check_asked(self.leaks, self.others if features is None else [*self.others, *features])
        self.features = [name for name in self.features if name not in self.leaks]
        self.fingerprint = self._digest() + ("" if time is None else f"{_BY}{time}")
        """What its rounds are known by, however they are read: the file's first rows, and their order."""
        self.schema = Schema.infer(head.only(self.features), kinds) if self.features else None
        """What the records are made of."""

    @property
    def has_probabilities(self) -> bool:
        """Whether the probability of each label played is known."""
        return self._fixed is not None or "probability" in self.roles

    @cached_property
    def span(self) -> Span:
        """The rounds in which all labels were in play; no others count for rates and values."""
        return in_play(self.roles["label"], self._inverse, self._order, self._file, self._number, self.n_rounds)

    @property
    def _inverse(self) -> str:
        """A query's word for 1/P."""
        if "probability" not in self.roles:
            return "NULL" if self._fixed is None else f"{1 / self._fixed}"
        return f"1 / TRY_CAST(trim(CAST({quoted(self.roles['probability'])} AS VARCHAR), '\" ') AS DOUBLE)"

    def batches(
        self, size: int = BATCH, skip: int = 0, stop: int | None = None, *, events: bool = False
    ) -> Iterator[Batch]:
        """The rounds in their order, in batches.

        Parameters
        ----------
        size
            Rounds per batch, about.
        skip
            Rounds to leave out at the start.
        stop
            The round to stop before; None: after the last.
        events
            Whether the text of each event is wanted too, of a log that has it.
        """
        written = [WRITTEN] * (events and self._origin is not None and WRITTEN in self._file.columns)
        size, skip = whole("size", size, 1), whole("skip", skip, 0)
        stop = None if stop is None else whole("stop", stop, 0)
        last = self.n_rounds if stop is None else min(stop, self.n_rounds)
        some = f" LIMIT {max(last - skip, 0)} OFFSET {skip}" if skip or last < self.n_rounds else ""
        for table in self._file.batches([*self._wanted, *written], size=size, rest=self._order + some):
            start = table.start + skip
            records = Table(table.only(self.features).columns, len(table), start)
            others = {name: labels_of(name, table.columns[name], start, self._numbers) for name in self.others}
            tags = None if self._tags is None else table.columns[self._tags]
            texts = table.columns[WRITTEN] if written else None
            yield Batch(records, self._rounds(Table(table.columns, len(table), start)), others, tags, texts)

    def inside(self, batch: Batch) -> slice:
        """The rounds of a batch in which all labels were in play."""
        at, n = batch.records.start, len(batch.rounds)
        start, stop = (min(max(end - at, 0), n) for end in self.span[:2])
        return slice(start, max(start, stop))

    def learnt_by(self, policy: Any) -> int:
        """How many of its rounds, from the first on, a `Policy` has learnt from."""
        same, _, mine = self.fingerprint.partition(_BY)
        for known in policy.learnt:
            digest, _, order = known.partition(_BY)
            if digest == same and order != mine:
                raise InputError(
                    f"the policy has learnt from {self.name} in the order of {repr(order) if order else 'the file'}; "
                    "the same order is expected, since otherwise nobody knows which rounds those were"
                )
        return int(policy.learnt.get(self.fingerprint, 0))

    def __reduce__(self) -> Any:
        if not self._movable:
            what = "standard input" if self.name == "-" else self.name
            raise InputError(f"a cluster's workers cannot read {what}; a file that all can see is expected")
        return partial(Log, **self._told), (os.path.abspath(self.name),)

    def __repr__(self) -> str:
        size = f"{self.n_rounds:,} rounds, {len(self.labels)} labels, {len(self.features)} features"
        return f"Log({self.name!r}, {size}{'' if self.has_probabilities else ', no probabilities'})"

    def _repr_html_(self) -> str:
        rows = [(name, role) for role, name in self.roles.items()]
        rows += [] if self.schema is None else [(c.name, str(c).partition(": ")[2]) for c in self.schema.columns]
        return html(repr(self), rows, ["column", "holds"])

    @property
    def gap(self) -> str:
        """The rounds in which a label was not in play, in words."""
        start, stop, newest, oldest = self.span
        before = f"rounds 0 to {start - 1:,}, before {self.labels[newest]!r} was ever played" if start else ""
        after = f"rounds from {stop:,} on, after {self.labels[oldest]!r} last was" if stop < self.n_rounds else ""
        return ", and ".join(filter(None, (before, after)))

    @property
    def _as_it_was(self) -> bool:
        """Whether it is read as another library wrote it: its own actions, and all that describes them."""
        if self._origin is None or self.roles["label"] not in ("label", "position"):
            return False
        return all(self._told[each] is None for each in ("features", "greedy", "margin"))

    @property
    def _ordered(self) -> bool:
        """Whether a column orders the rounds."""
        return bool(self._order)

    def _own(self, role: str) -> bool:
        """Whether a log of another library's says this itself, and nobody has told otherwise."""
        return self._origin is not None and self.roles.get(role) == role

    @property
    def _wanted(self) -> list[str]:
        tags = [] if self._tags is None else [self._tags]
        return list(dict.fromkeys([*self.roles.values(), *self.features, *self.others, *tags]))

    def describe(self) -> str:
        """What each column was taken for, in a few lines."""
        lines = [f"{role}: {name}" for role, name in self.roles.items()]
        if self._fixed is not None:
            lines.append(f"probability: {self._fixed:g} in every round")
        left = [] if self.schema is None else [c.name for c in self.schema.columns if c.kind == "unused"]
        if self.schema is not None:
            lines += ["features:", *(f"  {column}" for column in self.schema.columns if column.kind != "unused")]
        if left:
            lines.append(f"left out (empty, or every value different): {', '.join(left)}")
        hidden = {*self._wanted, WRITTEN}
        besides = [name for name in self._besides if name in self._file.columns and name not in hidden]
        if besides:
            lines.append(f"left out (as in logs of ours, unless they are given as features): {', '.join(besides)}")
        for why in dict.fromkeys(self.leaks.values()):
            lines.append(f"left out ({why}): {', '.join(name for name in self.leaks if self.leaks[name] == why)}")
        if self.gap:
            lines.append(f"count for no rates and no values: {self.gap}")
        shown = ", ".join(map(str, self.labels[:8])) + (
            f" and {len(self.labels) - 8} more" if len(self.labels) > 8 else ""
        )
        return "\n".join([f"{self.n_rounds:,} rounds, {len(self.labels)} labels: {shown}", *lines])

    def _rounds(self, table: Table) -> Rounds:
        roles, start, n = self.roles, table.start, len(table)

        def column(role: str) -> tuple[str, Array, int]:
            return roles[role], table.columns[roles[role]], start

        label = labels_of(*column("label"), self._numbers)
        greedy = np.full(n, -1)
        if "greedy" in roles:
            greedy = labels_of(*column("greedy"), self._numbers, gaps=self._gaps and "margin" not in roles)
        probability = np.full(n, np.nan if self._fixed is None else self._fixed)
        if "probability" in roles:
            allowed = "a probability above 0 and at most 1"
            probability = numbers_of(*column("probability"), LEAST_PROBABILITY, 1.0, allowed)
        margin = numbers_of(*column("margin"), -1e300, 1e300, "a finite number") if "margin" in roles else None
        return Rounds(label=label, greedy=greedy, probability=probability, bit=bits_of(*column("bit")), margin=margin)

    def _head(self) -> Table:
        found = next(self._file.batches(self._wanted, rest=f"{self._order} LIMIT {FIRST}"), None)
        assert found is not None
        self._rounds(found)  # refuses what it must before anything is done
        return found

    def _leaks(self, head: Table, ours: bool) -> dict[str, str]:
        """The columns, among features and choices of others, that tell what was played or came back, and why."""
        label, bit, rows, ask = self.roles["label"], self.roles["bit"], self.n_rounds, self._file.rows
        told = self._told["features"] is not None
        called = [] if told or not ours else [name for name in self.features if name.lower() in NAMES["bit"]]
        found = dict.fromkeys(called, CALLED)
        found |= dict.fromkeys(copies(head.columns, label, [*self.features, *self.others], rows, ask), COPY)
        left = [name for name in self.features if name not in found]
        found |= dict.fromkeys(recoded(head.columns, label, left, rows, ask), RECODED)
        left = [name for name in left if name not in found]
        found |= dict.fromkeys(finer(head.columns, label, left, self._inverse, len(self.labels), ask), FINER)
        left = [name for name in left if name not in found]
        some, bits = head.only(left).columns, bits_of(bit, head.columns[bit], 0)
        if bits.min() == bits.max() and len(head) < rows:  # both bits are needed to see whether they are told
            query = f" WHERE {'NOT ' if bits[0] else ''}{is_one(bit)} LIMIT {FIRST}"
            for more in self._file.batches(self._wanted, rest=query):
                some = {name: _joined(some[name], more.columns[name]) for name in left}
                bits = np.concatenate([bits, np.full(len(more), 1 - bits[0])])
        return found | dict.fromkeys(telling(some, bits, is_one(bit), rows, ask), TOLD)

    def _digest(self) -> str:
        rows = self._file.rows(f"SELECT * FROM {{}} LIMIT {_KNOWN_BY}")
        named = [dict(zip(self._file.columns, row, strict=True)) for row in rows]
        told = [
            sorted(
                (name, self._spelt(name, value))
                for name, value in row.items()
                if name != WRITTEN and not is_missing(value)
            )
            for row in named
        ]
        return hashlib.sha256(repr(told).encode("utf-8", "surrogatepass")).hexdigest()[:16]

    def _spelt(self, name: str, value: Any) -> str:
        """A value as a word that stays the same when rows to come make another type of its column."""
        value = from_json(value) if name in self._file.mixed else value
        try:
            return word_of(float(value) if isinstance(value, str) else value).lower()
        except (TypeError, ValueError):
            return str(value).lower()

    def _assigned(self, told: Mapping[str, str | None], known: Any, features: Sequence[str]) -> dict[str, str]:
        """Which column says what. One called "recommended" may be a truth value, and is no greedy label then."""
        roles = assign(self._file.columns, told, known, features)
        if known is None and told["greedy"] is None and roles.get("greedy", "").lower() == "recommended":
            both = f"{quoted(roles['greedy'])} AS greedy, {quoted(roles['label'])} AS label"
            head = f"WITH head AS (SELECT {both} FROM {{}} LIMIT {FIRST}) SELECT DISTINCT CAST"
            best, played = (
                set(self._file.rows(f"{head}({role} AS VARCHAR) FROM head")) for role in ("greedy", "label")
            )
            if not best & played:
                del roles["greedy"]
        if "greedy" not in roles and told["margin"] is None:  # the lead of nothing
            roles.pop("margin", None)
        return roles

    def _number(self, value: Any, row: int) -> int:
        """The number of a label, given what a query finds in a row."""
        name, label = self.roles["label"], np.empty(1, dtype=object)
        label[0] = from_json(value) if name in self._file.mixed else value
        return int(labels_of(name, label, row, self._numbers)[0])


def _joined(values: Array, more: Array) -> Array:
    """Rows of a column, and more of them, whatever types they have."""
    return np.concatenate([values.astype(object), more.astype(object)])


def _name(source: Any) -> str:
    if isinstance(source, Mapping):
        return "the bandit_feedback"
    if not isinstance(source, str | os.PathLike):
        raise InputError(f"the log is a {type(source).__name__}; the name of a file, or a bandit_feedback, is expected")
    return str(source)


def _checked(labels: Any, features: Any, others: Any, kinds: Any) -> tuple[Any, Any, list[str], dict[str, str]]:
    """Lists and dicts, as they must be."""
    labels = None if labels is None else names_of("labels", labels)
    features = None if features is None else names_of("features", features)
    return labels, features, names_of("others", others), mapping_of("kinds", kinds)


def _fixed(probability: str | float | None) -> float | None:
    if isinstance(probability, str):
        try:
            probability = float(probability)
        except ValueError:
            return None
    return None if probability is None else real("probability", probability, LEAST_PROBABILITY, 1.0)
