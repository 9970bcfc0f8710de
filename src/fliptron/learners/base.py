"""What every learner is: a state that decides, learns and predicts, for one thread at a time."""

from __future__ import annotations

import os
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from inspect import signature
from typing import Any, ClassVar, NoReturn, Self, get_type_hints

import numpy as np
from numpy import ndarray

from fliptron.arrays import (
    FLOATS,
    Array,
    Csr,
    Row,
    SparseRow,
    aligned,
    as_float,
    as_matrix,
    as_row,
    count_rows,
    feature_major,
    is_sparse,
)
from fliptron.exploration import Exploration
from fliptron.kernels import loop
from fliptron.kernels.randomness import CHOICES, make_key
from fliptron.learners import files
from fliptron.learners.memory import at_most, check_memory
from fliptron.output import write_whole
from fliptron.refusals import InputError, path_of, whole
from fliptron.rounds import LEAST_PROBABILITY, Decision, Rounds
from fliptron.shown import html

Layout = str | None
"""How the K×d arrays of a state lie in memory: "by label", "by feature", or not decided before the first example."""
_LARGEST = 1e130  # of a number in a file: more than any update makes of what is admitted
_fill = tuple.__new__  # a named tuple from a tuple, at a third of the cost of its constructor


class Learner(ABC):
    """What all our learners share. Any method may be called from any number of threads.

    A learner is a compiled state with methods around it. Rounds of one learner wait for each other; no decision reuses
    another's random number, and no bit is lost. `held` keeps all other threads out for as long as a block needs.

    To write a learner of this kind, subclass this: `_start` returns the state before the first round, and the
    constructor keeps each of its arguments as an attribute of the same name. What happens in a round is a function of
    the state, declared beside the subclass and run by `fliptron.kernels.loop`. Any other object with `decide` and
    `learn` can be simulated too; see `Learns`.
    """

    full_information: ClassVar[bool] = False
    """Whether `learn` takes the true label instead of a bit."""

    tables: ClassVar[int] = 0
    """How many float64 numbers are kept per class and feature, besides the weight itself."""
    grows: ClassVar[bool] = True
    """Whether a label can be added: where each array of the state begins with the part of the first label, or has
    none."""
    by_feature: bool = False
    """Whether the K×d arrays of the state may be laid out by feature, all labels of a feature side by side, which is
    faster for sparse examples. True where every step goes through `fliptron.kernels` and no d×d matrix is kept."""

    def __init__(
        self,
        *,
        n_classes: int,
        n_features: int,
        gamma: Any,
        seed: int,
        positive: bool = False,
        dtype: str = "float64",
    ) -> None:
        self.n_classes = whole("n_classes", n_classes, 2)
        self.n_features = whole("n_features", n_features, 1)
        self.exploration = Exploration.of(gamma, positive=positive)
        self.seed = whole("seed", seed, 0, 2**63 - 1)
        self._dtype = as_float(dtype)
        each = self._dtype.itemsize + 8 * self.tables
        needs = f"{type(self).__name__}, which keeps {each} bytes for every class and feature,"
        check_memory(needs, self.n_classes * self.n_features * each // 8, "fewer of either")
        n_feedback = self.n_classes if self.full_information else 2
        self.turn = np.array([*self.exploration.steps, self.n_features, n_feedback, 0.0, 0.0])
        """What a round is played by; see `fliptron.kernels.loop`."""
        self.key = int(make_key(self.seed, CHOICES))  # handed over faster than a NumPy number
        self._dense: loop.OneRound | None = None
        self._sparse: loop.OneRound | None = None
        self._among: dict[str, loop.Step] = {}  # what decides among some labels, by kind of row
        self._layout: Layout = None
        self._lock = threading.RLock()
        self.state = self._start()

    def __init_subclass__(cls) -> None:
        files.register(cls)

    @abstractmethod
    def _start(self) -> Any:
        """The state before the first round; see `_weights` and `_scores`."""

    def _weights(self) -> Array:
        """K×d zeros, aligned."""
        return aligned(np.zeros((self.n_classes, self.n_features), self._dtype))

    def _scores(self) -> Array:
        """Room for K scores."""
        return np.zeros(self.n_classes, self._dtype)

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

    @property
    def rounds(self) -> int:
        """How many decisions have been made."""
        return int(self.turn[loop.DECIDED])

    def decide(self, x: Any, eligible: Any = None) -> Decision:
        """Choose a label for one example.

        Parameters
        ----------
        x
            A dense vector of d numbers, or one sparse row.
        eligible
            The labels that may be played this time, at least one. The greedy label is the best of them, and the
            probability is that of the draw among them. None: all.
        """
        if eligible is not None:
            return self._decide_among(x, eligible)
        steps = self._dense if type(x) is ndarray and x.dtype is self._dtype and x.ndim == 1 else None
        if steps is None:  # what is right already skips the gate
            x, steps = self._admit(x)
        try:
            return _fill(Decision, steps[0](self.state, self.turn, self.key, x))
        except loop.NotNowError:
            with self._mine() as turn:
                return _fill(Decision, steps[0](self.state, turn, self.key, self._row(x)))

    def _decide_among(self, x: Any, eligible: Any) -> Decision:
        if isinstance(eligible, Iterator):  # it tells its labels once, and they may be asked for twice
            eligible = list(eligible)
        fits = type(x) is ndarray and x.dtype is self._dtype and x.ndim == 1
        step = self._among.get("_dense") if fits else None
        if step is None:
            x, _ = self._admit(x)
            step = self._among_step(x)
        try:
            return _fill(Decision, step(self.state, self.turn, self.key, x, self._mask(eligible)))
        except loop.NotNowError:
            with self._mine() as turn:
                return _fill(Decision, step(self.state, turn, self.key, self._row(x), self._mask(eligible)))

    def _mask(self, eligible: Any) -> Array:
        """Which labels may be played, as a truth value for each."""
        try:
            labels = np.asarray(list(eligible))
        except (TypeError, ValueError):  # no list at all, or one of lists
            raise InputError(f"eligible is {eligible!r}; a list of labels is expected") from None
        good = labels.ndim == 1 and labels.size and labels.dtype.kind in "iu"
        if not (good and labels.min() >= 0 and labels.max() < self.n_classes):
            raise InputError(
                f"eligible is {eligible!r}; one or more labels from 0 to {self.n_classes - 1} are expected"
            )
        mask = np.zeros(self.n_classes, np.bool_)
        mask[labels] = True
        return mask

    def learn(self, x: Any, decision: Decision, feedback: int) -> None:
        """Learn from the bit that came back for a decision, at once or much later, in any order.

        Parameters
        ----------
        x
            The example that the decision was about.
        decision
            What `decide` returned, or the same three numbers from a log.
        feedback
            The bit, 0 or 1. For a learner with `full_information`, the true label.
        """
        steps, row = self._dense if type(x) is ndarray and x.dtype is self._dtype and x.ndim == 1 else None, x
        if steps is None:
            row, steps = self._admit(x)
        try:
            wrong = steps[1](self.state, self.turn, row, decision, feedback)
            if wrong == loop.NOT_NOW:
                with self._mine() as turn:
                    wrong = steps[1](self.state, turn, self._row(row), decision, feedback)
        except (TypeError, ValueError, OverflowError, SystemError):  # SystemError: the decision is not a tuple
            self._admit(x)
            if isinstance(decision, tuple):
                self._refuse_round(decision, feedback)
            Learner.learn(self, x, self._as_tuple(decision, feedback), feedback)
            return
        if wrong:
            self._refuse_round(decision, feedback, wrong)

    def warm_up(self, *, sparse: bool = False) -> float:
        """Compile now what the first round would compile; returns the seconds it took.

        Compiled code is kept on disk, so this takes less than a second where an earlier process has done it.

        Parameters
        ----------
        sparse
            Compile for sparse rows instead of dense vectors.
        """
        began = time.perf_counter()
        nothing = np.zeros(0, self._dtype)
        x = SparseRow(nothing.astype(np.int32), nothing) if sparse else np.zeros(self.n_features, self._dtype)
        self._steps(x)
        return time.perf_counter() - began

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
        with files.opened(path_of(path)) as saved:
            learner = cls._unlearnt(saved)
            for name, array in learner._arrays().items():
                low, high = learner._bounds().get(name, (-_LARGEST, _LARGEST))
                array[...] = saved.array(name, array, low, high)
            flaw = learner._flaw()
            if flaw:
                raise InputError(f"{path} is not a saved {type(learner).__name__}: {flaw}")
        return learner

    @classmethod
    def unlearnt(cls, path: str | os.PathLike[str]) -> Self:
        """A learner as it was saved, but for what it had learnt: of whatever version that is."""
        with files.opened(path_of(path)) as saved:
            return cls._unlearnt(saved)

    @classmethod
    def _unlearnt(cls, saved: files.Saved) -> Self:
        learner: Self
        with at_most(saved.size):
            learner = saved.build(saved.kind(cls))
        learner.turn[loop.DECIDED] = saved.rounds
        learner.arrange(saved.layout)
        return learner

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
        with self.held():
            old, layout = self.state, self._layout
            self.n_classes += 1
            try:
                self.state, self._layout = self._start(), None
            except InputError:  # there is no room for one more
                self.n_classes -= 1
                raise
            self.turn[loop.FEEDBACK] = self.n_classes if self.full_information else 2
            self.arrange(layout)
            for name, array in self._arrays().items():
                before = getattr(old, name)
                array[tuple(slice(0, size) for size in before.shape)] = before
            self._dense = self._sparse = None
            self._among = {}

    def room(self) -> int:
        """How many rounds may be learnt before `settle` must be called."""
        return sys.maxsize

    def settle(self) -> None:  # noqa: B027  # meant to be empty
        """Do what cannot be done within a round, such as estimating rates. Most learners have nothing to do here."""

    @contextmanager
    def held(self) -> Iterator[Self]:
        """A context in which this thread alone uses the learner: the rounds of other threads wait."""
        with self._lock:
            self.turn[loop.HELD] += 1.0
            try:
                yield self
            finally:
                self.turn[loop.HELD] -= 1.0

    @contextmanager
    def _mine(self) -> Iterator[Array]:
        """What to play a round by for the one thread that may, when all others have let go."""
        with self.held():
            turn = self.turn.copy()
            turn[loop.HELD] = 0.0
            try:
                yield turn
            finally:
                self.turn[loop.DECIDED] = turn[loop.DECIDED]

    def arrange(self, layout: Layout) -> None:
        """Lay out the K×d arrays for dense examples ("by label") or sparse ones ("by feature").

        Does nothing once the first example has decided.
        """
        with self.held():
            if self._layout is None:
                self._layout = layout
                if layout == "by feature" and self.by_feature:
                    shape = (self.n_classes, self.n_features)
                    fields = {name: a for name, a in self.state._asdict().items() if getattr(a, "shape", None) == shape}
                    self.state = self.state._replace(**{name: feature_major(a) for name, a in fields.items()})

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self.params.items())})"

    def _repr_html_(self) -> str:
        told = [*self.params.items(), ("decisions", f"{self.rounds:,}")]
        return html(type(self).__name__, told)

    def __getstate__(self) -> dict[str, Any]:
        with self.held():
            kept = {**self.__dict__, "_dense": None, "_sparse": None, "_among": {}}
            kept["state"] = type(self.state)(*(np.copy(a, "K") if isinstance(a, ndarray) else a for a in self.state))
            kept["turn"] = self.turn.copy()
        kept["turn"][loop.HELD] = 0.0
        del kept["_lock"]
        return kept

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.RLock()
        self._dtype = FLOATS[self._dtype.name]  # the very object that NumPy's arrays name

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

    def _as_tuple(self, decision: Any, feedback: Any) -> Any:
        try:
            return tuple(decision)
        except TypeError:
            self._refuse_round(decision, feedback)

    def _refuse_round(self, decision: Any, feedback: Any, wrong: int | None = None) -> NoReturn:
        if wrong == loop.BAD_DECISION:
            raise InputError(
                f"{decision} cannot be learnt from; labels from 0 to {self.n_classes - 1} and a probability of at "
                f"least {LEAST_PROBABILITY:g} and at most 1 are expected"
            )
        if wrong == loop.BAD_FEEDBACK:
            allowed = f"the true label, 0 to {self.n_classes - 1}," if self.full_information else "0 or 1"
            raise InputError(f"feedback is {feedback!r}; {allowed} is expected")
        try:
            _, _, _ = map(float, decision)
        except (TypeError, ValueError, OverflowError):
            raise InputError(f"{decision!r} is no decision; label, greedy label and probability are expected") from None
        raise InputError(f"feedback is {feedback!r}; a number is expected") from None

    def _admit(self, x: Any) -> tuple[Row, loop.OneRound]:
        """Check an example, and compile for its kind if it is the first."""
        row = as_row(x, self.n_features, self._dtype)
        return row, self._steps(row)

    def _steps(self, x: Row) -> loop.OneRound:
        kind = "_sparse" if is_sparse(x) else "_dense"
        steps: loop.OneRound | None = getattr(self, kind)
        if steps is None:
            with self.held():
                self.arrange(layout_for(x))
                steps = loop.one_round(self.state, self.turn, np.uint64(self.key), x)
                setattr(self, kind, steps)
        return steps

    def _among_step(self, x: Row) -> loop.Step:
        kind = "_sparse" if is_sparse(x) else "_dense"
        step = self._among.get(kind)
        if step is None:
            with self.held():
                step = self._among[kind] = loop.one_among(self.state, self.turn, np.uint64(self.key), x)
        return step

    def _matrix(self, X: Any) -> Array | Csr:
        """Many examples through the gate, not to be written to, so that loops over them are compiled once."""
        matrix = as_matrix(X, self.n_features, self._dtype)
        if isinstance(matrix, ndarray):
            matrix = matrix.view()
            matrix.flags.writeable = False
        return matrix

    def _row(self, x: Row) -> Row:
        """An example once more through the gate, unless it has been: sparse ones always have."""
        return as_row(x, self.n_features, self._dtype) if isinstance(x, ndarray) else x


def layout_for(x: Row | Csr | Any) -> str:
    """How weights should lie for examples like x, a row or a matrix."""
    return "by feature" if is_sparse(x) else "by label"
