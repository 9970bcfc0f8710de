"""What plays rounds: a state that decides and learns, for one thread at a time."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, NoReturn, Self

import numpy as np
from numpy import ndarray

from fliptron.arrays import FLOATS, Array, Csr, Row, SparseRow, aligned, as_float, as_row, feature_major, is_sparse
from fliptron.exploration import Exploration
from fliptron.kernels import loop
from fliptron.kernels.randomness import CHOICES, make_key
from fliptron.learners.memory import check_memory
from fliptron.refusals import InputError, whole
from fliptron.rounds import LEAST_PROBABILITY, Decision

Layout = str | None
"""How the K×d arrays of a state lie in memory: "by label", "by feature", or not decided before the first example."""
_fill = tuple.__new__  # a named tuple from a tuple, at a third of the cost of its constructor


class Player(ABC):
    """A compiled state with methods around it, which any number of threads may call.

    Rounds of one learner wait for each other; no decision reuses another's random number, and no bit is lost. `held`
    keeps all other threads out for as long as a block needs. What happens in a round is a function of the state, run by
    `fliptron.kernels.loop`.
    """

    full_information: ClassVar[bool] = False
    """Whether `learn` takes the true label instead of a bit."""

    tables: ClassVar[int] = 0
    """How many float64 numbers are kept per class and feature, besides the weight itself."""
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
            Player.learn(self, x, self._as_tuple(decision, feedback), feedback)
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

    def _row(self, x: Row) -> Row:
        """An example once more through the gate, unless it has been: sparse ones always have."""
        return as_row(x, self.n_features, self._dtype) if isinstance(x, ndarray) else x

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


def layout_for(x: Row | Csr | Any) -> str:
    """How weights should lie for examples like x, a row or a matrix."""
    return "by feature" if is_sparse(x) else "by label"
