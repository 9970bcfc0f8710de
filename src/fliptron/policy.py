"""A policy: records in, named labels out. An encoder, a learner, and what its labels are called."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from inspect import signature
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fliptron.arrays import Array
from fliptron.encoding.curves import MOST
from fliptron.encoding.encoder import Bends, Encoder
from fliptron.encoding.records import Table, is_missing
from fliptron.encoding.scaling import reframe
from fliptron.encoding.schema import Schema
from fliptron.learners import files
from fliptron.learners.base import Learner
from fliptron.learners.fliptron import Fliptron
from fliptron.noise.estimate import Estimate
from fliptron.output import write_whole
from fliptron.refusals import InputError, named, path_of, shown, whole
from fliptron.rounds import MOST_CLASSES, Decision, Rounds
from fliptron.shown import html

_PLAIN = str | int | float | bool


class Choice(NamedTuple):
    """What was played for a record. It carries the x that was decided on, which is what is learnt from."""

    label: Any
    """The label played."""
    greedy: Any
    """The label thought best."""
    probability: float
    """The probability with which the played label was drawn."""
    x: Any
    """The record as it was encoded then."""
    eligible: tuple[Any, ...] | None = None
    """The labels that could be played, if not all."""


class Policy:
    """Decides on records with your names and values, and learns from the bits that come back.

    Parameters
    ----------
    labels
        What can be played: two or more different words or numbers.
    schema
        The columns of a record: a `Schema`, or records from which one is inferred.
    learner
        The class of the learner; `Fliptron` has nothing to tune.
    curves
        How many curves of the numbers x has, for classes that are not linear; "auto" where there is room for them, 0
        for none. See `Encoder`.
    settings
        The learner's other parameters, such as `gamma` and `seed`.

    Examples
    --------
    >>> policy = Policy(["hats", "shoes"], [{"age": 31, "city": "Rome"}, {"age": 18, "city": "Oslo"}], seed=1)
    >>> choice = policy.decide({"age": 40, "city": "Rome"})
    >>> choice.label in policy.labels
    True
    >>> policy.learn(choice, 1)
    """

    def __init__(
        self,
        labels: Iterable[Any],
        schema: Any,
        learner: type[Learner] = Fliptron,
        *,
        curves: Bends = "auto",
        **settings: Any,
    ) -> None:
        self.labels = as_labels(labels)
        """What can be played, in the learner's order."""
        known = schema if isinstance(schema, Schema) else Schema.infer(schema)
        self.encoder = Encoder.of(known, len(self.labels), curves)
        if not (isinstance(learner, type) and issubclass(learner, Learner)):
            raise InputError(f"the learner is {learner!r}; one of our classes, such as Fliptron, is expected")
        lacking = [name for name, each in signature(learner).parameters.items()
                   if each.default is each.empty and name not in ("n_classes", "n_features", *settings)]  # fmt: skip
        if lacking:
            raise InputError(f"a {learner.__name__} needs {' and '.join(lacking)}, which nobody has given")
        shape: dict[str, Any] = {"n_classes": len(self.labels), "n_features": self.encoder.n_features}
        try:
            self.learner = learner(**shape, **settings)
        except TypeError as error:
            raise InputError(f"{learner.__name__} cannot be built ({error})") from None
        self._numbers = {label: r for r, label in enumerate(self.labels)}
        self.learnt: dict[str, Any] = {}
        """Which logs it has learnt from: the fingerprint of each, and how many of its rounds."""

    @classmethod
    def around(cls, labels: Iterable[Any], encoder: Encoder, learner: Learner) -> Policy:
        """A policy from an encoder and a learner that fit each other."""
        policy = object.__new__(cls)
        policy.labels, policy.encoder, policy.learner, policy.learnt = as_labels(labels), encoder, learner, {}
        policy._numbers = {label: r for r, label in enumerate(policy.labels)}
        if (len(policy.labels), encoder.n_features) != (learner.n_classes, learner.n_features):
            raise InputError("its labels or columns are not those of its learner")
        return policy

    def decide(self, record: Mapping[str, Any], eligible: Iterable[Any] | None = None) -> Choice:
        """Choose a label for one record.

        Parameters
        ----------
        record
            Names and values. A column that is not there is missing; one that is not known is ignored, unless none is
            known.
        eligible
            The labels that may be played this time; None: all.
        """
        among = None if eligible is None else self._numbered(eligible)
        self.encoder.recognise(record)
        x = self.encoder.encode(record)
        label, greedy, probability = self.learner.decide(x, among)
        some = None if among is None else tuple(self.labels[r] for r in among)
        return Choice(self.labels[label], self.labels[greedy], probability, x, some)

    def learn(self, choice: Choice, feedback: int | None = None, **more: Any) -> None:
        """Learn from the bit that came back for a choice, at once or much later, in any order.

        Parameters
        ----------
        choice
            What `decide` returned.
        feedback
            The bit, 0 or 1.
        more
            What else the learner's own `learn` takes: of `Fliptron`, `truth` and `eligible`, by their names. A
            choice knows itself which labels were eligible.
        """
        try:
            label, greedy, probability, x, eligible = Choice(*(() if isinstance(choice, str) else choice))
        except TypeError:
            raise InputError(f"{shown(choice)} is no choice; what `decide` returned is expected") from None
        if more.get("truth") is not None:
            more["truth"] = self.number(more["truth"])
        eligible = more.pop("eligible", eligible)
        if eligible is not None and isinstance(self.learner, Fliptron):  # others keep no account of the noise
            more["eligible"] = self._numbered(eligible)
        decision = Decision(self.number(label), self.number(greedy), probability)
        try:
            self.learner.learn(x, decision, feedback, **more)  # type: ignore[arg-type]  # None is refused there
        except TypeError:
            if not more:
                raise
            raise InputError(f"a {type(self.learner).__name__} does not learn from {', '.join(more)}") from None

    def replay(self, records: Any, rounds: Rounds) -> tuple[Array, Array]:
        """Learn from rounds that were played before; see `Learner.replay`. Labels are the learner's numbers."""
        with self.learner.held():
            self.learner.check_rounds(rounds)  # before the encoder takes in a record
            return self.learner.replay(self.encoder.encode_all(records), rounds)

    def predict(self, records: Any) -> list[Any]:
        """The greedy label of every record. Nothing is explored, and nothing changes."""
        return [self.labels[r] for r in self.learner.predict(self._examples(records))]

    def scores(self, records: Any) -> Array:
        """The score of every label for every record."""
        return self.learner.scores(self._examples(records))

    def estimate(self) -> Estimate:
        """What the learner has found out about the noise; see `Estimate`."""
        if not hasattr(self.learner, "estimate"):
            raise InputError(f"a {type(self.learner).__name__} does not estimate the noise; a Fliptron does")
        found: Estimate = self.learner.estimate()
        return found

    def missing(self, names: Sequence[str], where: str) -> list[str]:
        """The columns that it decides by and that are not among those of some records; one of them at least must be.

        Parameters
        ----------
        names
            The columns that there are.
        where
            Where they are, for messages.
        """
        return self.encoder.missing(names, where)

    def opened(self, encoder: Encoder | None, labels: Sequence[Any], name: str) -> tuple[Learner, Encoder]:
        """The learner and the encoder, for a simulation whose records and labels must be the policy's."""
        if encoder is None or not self.encoder.like(encoder):
            raise InputError(f"{name} does not hold records of the policy's columns; see Dataset.of_records")
        if tuple(labels) != self.labels:
            raise InputError(f"the policy's labels are {named(self.labels)}; those of {name} are others")
        return self.learner, self.encoder

    def add_label(self, label: Any) -> None:
        """Let one more label be played from now on. What was learnt of the others stays."""
        with self.learner.held():  # no other thread may play the new label before it has a name
            labels = as_labels([*self.labels, label])
            self.learner.add_label()
            self.labels = labels
            self._numbers[labels[-1]] = len(labels) - 1

    def _examples(self, records: Any) -> Any:
        """X of records that nothing is learnt from."""
        table = Table.of(records)
        if table.columns:
            self.missing(list(table.columns), "the table")
        return self.encoder.encode_all(table, update=False)

    def _numbered(self, labels: Any) -> list[int]:
        try:
            found = [self.number(label) for label in labels]
        except TypeError:
            raise InputError(f"eligible is {labels!r}; a list of labels is expected") from None
        if not found:
            raise InputError("no label is eligible; at least one is expected")
        return found

    def number(self, label: Any) -> int:
        """The learner's number of a label."""
        try:
            return self._numbers[label]
        except (KeyError, TypeError):
            raise InputError(f"{label!r} is not a label of this policy; {named(self.labels)} are") from None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to an `.npz` file, whole or not at all. `Learner.load` reads the learner alone."""
        with self.learner.held():
            about = {
                "labels": list(self.labels),
                "schema": self.encoder.schema.to_plain(),
                "curves": len(self.encoder.curves.pairs),
                "learnt": self.learnt,
            }
            content = self.learner.packed({"policy": about}, self.encoder.arrays())
        write_whole(path_of(path), content)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Policy:
        """Read what `save` wrote. The policy goes on as if it had never stopped."""
        return cls._read(path := path_of(path), Learner.load(path))

    @classmethod
    def unlearnt(cls, path: str | os.PathLike[str]) -> Policy:
        """A policy as it was saved, but for what its learner had learnt: of whatever version that is."""
        return cls._read(path := path_of(path), Learner.unlearnt(path))

    @classmethod
    def _read(cls, path: Path, learner: Learner) -> Policy:
        with files.opened(path) as saved:
            about = saved.more.get("policy")
            if not isinstance(about, dict):
                raise InputError(
                    f"{path} holds a {type(learner).__name__} without labels or schema; a policy is expected"
                )
            try:
                encoder = Encoder(Schema.plain(about["schema"]), curves=about["curves"])
                policy = cls.around(about["labels"], encoder, learner)
                policy.learnt = {str(log): whole("learnt", count, 0) for log, count in about["learnt"].items()}
            except (InputError, KeyError, TypeError, ValueError, AttributeError) as error:
                raise InputError(f"{path} is not a saved policy ({error})") from None
            if saved.version.startswith("0.2") and len(encoder.curves.pairs) > MOST:  # products had another length
                raise InputError(f"{path} is not a saved policy: it has more than {MOST} curves{saved.advice}")
            last = max(encoder.n_numbers - 1, 0)
            bounds = {"pairs": (0, last), "slopes": (-1e6, 1e6), "phases": (0.0, 7.0), "moments": (-1e300, 1e300)}
            old = 3 if saved.version.startswith("0.2") else None  # centre and scale were mean and deviation
            for name, array in encoder.arrays().items():
                part = array[:old] if name == "moments" else array
                part[...] = saved.array(name, part, *bounds[name])
            if old:
                reframe(encoder.moments)
            if encoder.flaw():
                raise InputError(f"{path} is not a saved policy: {encoder.flaw()}")
        return policy

    def _repr_html_(self) -> str:
        told = [(column.name, str(column).partition(": ")[2]) for column in self.encoder.schema.columns]
        return html(repr(self), told, ["column", "holds"])

    def __repr__(self) -> str:
        columns = len(self.encoder.schema.columns)
        return f"Policy({type(self.learner).__name__}: {columns} columns → {named(self.labels)})"


def as_labels(labels: Iterable[Any]) -> tuple[Any, ...]:
    """Labels, if they can be: two or more different words and numbers."""
    if isinstance(labels, str) or not isinstance(labels, Iterable):
        raise InputError(f"labels are {labels!r}; a list of them is expected")
    found = tuple(label.item() if isinstance(label, np.generic) else label for label in labels)
    for label in found:
        if not isinstance(label, _PLAIN) or is_missing(label):
            raise InputError(f"{label!r} cannot be a label; words and numbers can")
    if not 2 <= len(found) <= MOST_CLASSES or len(set(found)) < len(found):
        raise InputError(f"the labels are {named(found)}; two or more different ones are expected")
    return found
