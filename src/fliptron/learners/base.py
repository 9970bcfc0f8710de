"""What every learner is: a state that plays rounds, and can be asked, kept and taught more."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from inspect import signature
from typing import Any, ClassVar, Self, get_type_hints

import numpy as np
from numpy import ndarray

from fliptron.arrays import Array, Csr, as_matrix, count_rows
from fliptron.kernels import loop
from fliptron.learners import files
from fliptron.learners.growth import grow
from fliptron.learners.player import Player, layout_for
from fliptron.output import write_whole
from fliptron.refusals import InputError, path_of
from fliptron.rounds import Rounds
from fliptron.shown import html


class Learner(Player):
    """What all our learners share. Any method may be called from any number of threads.

    To write a learner of this kind, subclass this: `_start` returns the state before the first round, and the
    constructor keeps each of its arguments as an attribute of the same name. What happens in a round is a function of
    the state, declared beside the subclass and run by `fliptron.kernels.loop`. Any other object with `decide` and
    `learn` can be simulated too; see `Learns`.
    """

    grows: ClassVar[bool] = True
    """Whether a label can be added: where each array of the state begins with the part of the first label, or has
    none."""

    def __init_subclass__(cls) -> None:
        files.register(cls)

    @property
    def params(self) -> dict[str, Any]:
        """Keyword arguments that build this learner anew; plain values, fit for JSON."""
        return {name: getattr(self, name) for name in signature(type(self)).parameters}

    @property
    def gamma(self) -> float | dict[str, float]:
        """The exploration as a plain value: a number, or the fields of an `Exploration`."""
        return self.exploration.plain

    @property
    def dtype(self) -> str:
        """Precision of the weights."""
        return self._dtype.name

    @property
    def weights(self) -> Array:
        """The K×d matrix behind `scores` (a copy)."""
        with self.held():
            return np.array(self.state.W, order="C")

    def scores(self, X: Any) -> Array:
        """The score of every label for every row (n×K); the highest is the greedy label.

        Parameters
        ----------
        X
            n rows of d numbers, dense or sparse.
        """
        matrix = self._matrix(X)
        with self.held():  # the number of labels is that of this moment
            out = np.empty((count_rows(matrix), self.n_classes), self._dtype)
            loop.score_all(self.state, matrix, out)
        return out

    def predict(self, X: Any) -> Array:
        """The greedy label of every row. Nothing is explored, and nothing changes.

        Parameters
        ----------
        X
            n rows of d numbers, dense or sparse.
        """
        return np.asarray(self.scores(X).argmax(axis=1))

    def logits(self, X: Any) -> Array:
        """What `chances` is the softmax of (n×K): the scores, unless a learner says how sure of them it is.

        Parameters
        ----------
        X
            n rows of d numbers, dense or sparse.
        """
        return self.scores(X)

    def chances(self, X: Any) -> Array:
        """How likely each label of every row is right, as far as the learner can say (n×K); each row sums to one.

        The softmax of `logits`. A `Fliptron` tells its belief so, and `Newtron`, `Gappletron` and `RDUE` tell the
        softmax that they learn. For other learners it merely orders the labels: how sure it sounds depends on the
        length of a row and on the settings, and means nothing.

        Parameters
        ----------
        X
            n rows of d numbers, dense or sparse.
        """
        logits = self.logits(X).astype(np.float64)
        odds = np.exp(logits - logits.max(axis=1, keepdims=True))
        return np.asarray(odds / odds.sum(axis=1, keepdims=True))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write parameters and state to an `.npz` file, whole or not at all; no pickle."""
        write_whole(path_of(path), self.packed())

    def packed(self, more: Mapping[str, Any] | None = None, arrays: Mapping[str, Array] | None = None) -> bytes:
        """The content of such a file, with what somebody else wants to keep in it."""
        with self.held():
            mine = self._arrays()
            return files.packed(
                type(self), self.params, self.rounds, self._layout, {**mine, **(arrays or {})}, more or {}
            )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote. The learner goes on as if it had never stopped."""
        return files.load(cls, path_of(path))

    @classmethod
    def unlearnt(cls, path: str | os.PathLike[str]) -> Self:
        """A learner as it was saved, but for what it had learnt: of whatever version that is."""
        return files.load(cls, path_of(path), learnt=False)

    def replay(self, X: Any, rounds: Rounds, *, scores: Array | None = None) -> tuple[Array, Array]:
        """Learn from rounds that were played before, by whomever, in their order.

        Parameters
        ----------
        X
            The example of each round, dense or sparse.
        rounds
            Labels, greedy labels (−1 where they are not known), probabilities and bits, all checked.
        scores
            An array to be filled with the scores of all labels (n×K).

        Returns
        -------
        tuple
            The label that this learner held best in each round, and by how much, before it saw the bit.
        """
        self.check_rounds(rounds)
        matrix, n = self._matrix(X), len(rounds)
        if count_rows(matrix) != n:
            raise InputError(
                f"X has {count_rows(matrix)} rows, and there are {n} rounds; one row per round is expected"
            )
        if scores is not None and scores.shape != (n, self.n_classes):
            raise InputError(f"scores has shape {scores.shape}; room for {n} rows of {self.n_classes} is expected")
        label, greedy, bit = (column.astype(np.int64) for column in (rounds.label, rounds.greedy, rounds.bit))
        probability, best, margin = rounds.probability.astype(np.float64), np.empty(n, np.int64), np.empty(n)
        seen = np.empty((0, 1), self._dtype) if scores is None else scores
        with self.held():
            self.arrange(layout_for(matrix))
            start = 0
            while start < n:
                self.settle()
                stop = min(start + self.room(), n)
                loop.replay(self.state, matrix, label, greedy, probability, bit, start, stop, best, margin, seen)
                start = stop
            self.settle()
            self.turn[loop.DECIDED] += n
        return best, margin

    def check_rounds(self, rounds: Rounds) -> None:
        """Refuse rounds that `replay` cannot learn from.

        Parameters
        ----------
        rounds
            A table of rounds.
        """
        if self.full_information:
            raise InputError(f"a {type(self).__name__} learns from true labels, which a log of bits does not have")
        if not isinstance(rounds, Rounds):
            raise InputError(f"the rounds are a {type(rounds).__name__}; Rounds.of(…) is expected")
        for name, least in (("label", 0), ("greedy", -1)):
            labels = getattr(rounds, name)
            wrong = labels[(labels < least) | (labels >= self.n_classes)]
            if wrong.size:
                raise InputError(f"the {name} of a round is {wrong[0]}; {least} to {self.n_classes - 1} are expected")

    def add_label(self) -> None:
        """Let one more label be played from now on, of which nothing is known yet. What was learnt of others stays."""
        if not self.grows:
            raise InputError(
                f"{type(self).__name__} cannot take a new label: what it keeps depends on how many there are"
            )
        grow(self, n_classes=self.n_classes + 1)

    def room(self) -> int:
        """How many rounds may be learnt before `settle` must be called."""
        return sys.maxsize

    def settle(self) -> None:
        """Do what cannot be done within a round, such as estimating rates. Most learners have nothing to do here."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self.params.items())})"

    def _repr_html_(self) -> str:
        told = [*self.params.items(), ("decisions", f"{self.rounds:,}")]
        return html(type(self).__name__, told)

    def _arrays(self) -> dict[str, Array]:
        """The arrays of the state that live on in a file."""
        hints = get_type_hints(type(self.state), include_extras=True)
        kept = [name for name, hint in hints.items() if hint != loop.Scratch]
        return {name: a for name in kept if isinstance(a := getattr(self.state, name), ndarray)}

    def _bounds(self) -> Mapping[str, tuple[float, float]]:
        """What the values of an array in a file may be, where not any of a sensible size; integers must be in here."""
        return {}

    def _flaw(self) -> str:
        """What else is wrong with a state that came from a file."""
        return ""

    def _matrix(self, X: Any) -> Array | Csr:
        """Many examples through the gate, not to be written to, so that loops over them are compiled once."""
        matrix = as_matrix(X, self.n_features, self._dtype)
        if isinstance(matrix, ndarray):
            matrix = matrix.view()
            matrix.flags.writeable = False
        return matrix
