"""What every learner is: a state that decides, learns, predicts, and can be written to a file."""

from __future__ import annotations

import io
import json
import os
import sys
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from inspect import signature
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy import ndarray

from fliptron.arrays import (
    Array,
    InputError,
    Row,
    aligned,
    as_float,
    as_matrix,
    as_row,
    count_rows,
    feature_major,
    is_sparse,
    whole,
)
from fliptron.exploration import Exploration
from fliptron.kernels import loop
from fliptron.kernels.randomness import CHOICES, make_key
from fliptron.output import write_whole
from fliptron.rounds import Decision

_FORMAT = 1
_MEMORY = 4 * 2**30  # bytes a learner may take
_fill = tuple.__new__  # a named tuple from a tuple, at a third of the cost of its constructor
_KINDS: dict[str, type[Learner]] = {}


class Learner(ABC):
    """A linear learner over a compiled state.

    A subclass says how its state starts (`_start`) and keeps each argument of its constructor as an
    attribute of the same name. What it does in a round are functions of the state, declared beside the
    subclass and run by `fliptron.kernels.loop`.
    """

    full_information: ClassVar[bool] = False
    """Whether `learn` takes the true label instead of a bit."""

    tables: ClassVar[int] = 0
    """How many float64 numbers are kept for each class and feature beside its weight."""
    by_feature: bool = False
    """Whether the K×d arrays of the state may be laid out by feature, labels side by side, for sparse examples: yes
    where every step goes through `fliptron.kernels`, and no matrix is kept whose rows are as long as W's."""

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
        self.rounds = 0
        """How many decisions have been made."""
        self._dtype = as_float(dtype)
        each = self._dtype.itemsize + 8 * self.tables
        needs = f"{type(self).__name__}, which keeps {each} bytes for every class and feature,"
        check_memory(needs, self.n_classes * self.n_features * each // 8, "fewer of either")
        W = aligned(np.zeros((self.n_classes, self.n_features), self._dtype))
        self.state = self._start(W, np.zeros(self.n_classes, self._dtype))
        self.schedule = np.array(self.exploration.steps)
        self.key = int(make_key(self.seed, CHOICES))  # handed over faster than a NumPy number
        self._n_feedback = self.n_classes if self.full_information else 2
        self._dense: loop.OneRound | None = None
        self._sparse: loop.OneRound | None = None
        self._arranged = False

    def __init_subclass__(cls) -> None:
        _KINDS[cls.__name__] = cls

    @abstractmethod
    def _start(self, W: Array, scores: Array) -> Any:
        """The state before the first round, over zero weights (K×d) and room for K scores."""

    @property
    def params(self) -> dict[str, Any]:
        """Keyword arguments that build this learner anew; plain values, fit for JSON."""
        return {name: getattr(self, name) for name in signature(type(self)).parameters}

    @property
    def gamma(self) -> float | dict[str, float]:
        """The exploration as it is written down."""
        return self.exploration.plain

    @property
    def dtype(self) -> str:
        """Precision of the weights."""
        return self._dtype.name

    @property
    def weights(self) -> Array:
        """The K×d matrix behind `scores` (a copy)."""
        return np.array(self.state.W, order="C")

    def decide(self, x: Any) -> Decision:
        """Choose a label for one example: a dense vector of d numbers, or one sparse row."""
        steps = self._dense if type(x) is ndarray and x.dtype is self._dtype and x.ndim == 1 else None
        if steps is None:  # what is right already skips the gate
            x, steps = self._admit(x)
        try:
            played = steps[0](self.state, self.schedule, self.key, x, self.rounds)
        except loop.MisfitError:
            return Learner.decide(self, as_row(x, self.n_features, self._dtype))
        self.rounds += 1
        return _fill(Decision, played)

    def learn(self, x: Any, decision: Decision, feedback: int) -> None:
        """Learn from the bit that came back for `decision` on `x`, now or much later, in any order."""
        steps, row = self._dense if type(x) is ndarray and x.dtype is self._dtype and x.ndim == 1 else None, x
        if steps is None:
            row, steps = self._admit(x)
        try:
            wrong = steps[1](self.state, self._n_feedback, row, decision, feedback)
        except (TypeError, ValueError, OverflowError, SystemError):  # the last: no tuple
            with suppress(TypeError):  # of what is no series of things
                if not isinstance(decision, tuple):
                    Learner.learn(self, x, tuple(decision), feedback)
                    return
            raise self._refusal(loop.NOT_NUMBERS, decision, feedback) from None
        if wrong:
            if wrong != loop.MISFIT:
                raise self._refusal(wrong, decision, feedback)
            Learner.learn(self, as_row(x, self.n_features, self._dtype), decision, feedback)

    def warm_up(self, *, sparse: bool = False) -> float:
        """Compile now what the first round would; the seconds it took (less than one if it was kept from before)."""
        began = time.perf_counter()
        self._admit(sp.csr_array((1, self.n_features)) if sparse else np.zeros(self.n_features))
        return time.perf_counter() - began

    def scores(self, X: Any) -> Array:
        """What the learner believes of every label (n×K); the highest is the greedy one."""
        matrix = as_matrix(X, self.n_features, self._dtype)
        out = np.empty((count_rows(matrix), self.n_classes), self.state.scores.dtype)
        loop.score_all(self.state, matrix, out)
        return out

    def predict(self, X: Any) -> Array:
        """The greedy label of every row; no exploration, no change of state."""
        return np.asarray(self.scores(X).argmax(axis=1))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write parameters and state to an `.npz` file, whole or not at all; no pickle."""
        about = {"format": _FORMAT, "learner": type(self).__name__, "params": self.params, "rounds": self.rounds}
        try:
            text = json.dumps(about)
        except TypeError:
            raise InputError(f"{type(self).__name__} holds an object that a file cannot: {self.params}") from None
        content = io.BytesIO()
        np.savez(content, allow_pickle=False, about=text, **self._arrays())
        write_whole(Path(path), content.getvalue())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote; the learner goes on as if it had never stopped."""
        about, arrays = _read(Path(path))
        kind = _KINDS.get(str(about["learner"]))
        if kind is None or not issubclass(kind, cls):
            raise InputError(f"{path} holds a {about['learner']}; a {cls.__name__} is expected")
        try:
            learner = kind(**about["params"])
        except TypeError as error:
            raise InputError(f"{path} is not a saved {about['learner']} ({error})") from None
        learner.rounds = whole("rounds", about["rounds"], 0)
        for name, empty in learner._arrays().items():
            stored = arrays.get(name)
            if stored is None or stored.shape != empty.shape or stored.dtype != empty.dtype:
                raise InputError(f"{path} is not a saved {about['learner']}: array {name!r} is missing or misshapen")
            if not np.isfinite(stored).all():
                raise InputError(f"{path} is not a saved {about['learner']}: array {name!r} is not finite")
            empty[...] = stored
        return learner

    def room(self) -> int:
        """How many rounds may be learnt in one go before `settle` is called."""
        return sys.maxsize

    def settle(self) -> None:  # noqa: B027  # meant to be empty
        """Do what cannot be done within a round; most learners have nothing to do."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self.params.items())})"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_dense": None, "_sparse": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._dtype = as_float(self._dtype.name)  # the very object that NumPy's arrays name

    def _arrays(self) -> dict[str, Array]:
        """The arrays of the state that live on in a file."""
        fields = self.state._asdict()
        return {name: a for name, a in fields.items() if isinstance(a, np.ndarray) and name not in loop.SCRATCH}

    def _refusal(self, wrong: int, decision: Decision, feedback: Any) -> InputError:
        if wrong == loop.NOT_NUMBERS:
            return InputError(f"decision {decision!r} and feedback {feedback!r}: four numbers are expected")
        if wrong == loop.BAD_DECISION:
            allowed = f"labels from 0 to {self.n_classes - 1} and a probability above 0 and at most 1 are expected"
            return InputError(f"{decision} cannot be learnt from; {allowed}")
        if wrong == loop.BAD_FEEDBACK:
            allowed = f"the true label, 0 to {self.n_classes - 1}," if self.full_information else "0 or 1"
            return InputError(f"feedback is {feedback!r}; {allowed} is expected")
        return InputError("x holds a value that is not finite, or too large to square")

    def arrange(self, x: Any) -> None:
        """Lay the weights out for examples like x, a row or a matrix, if none was seen before."""
        if self.by_feature and not self._arranged and is_sparse(x):
            shape = (self.n_classes, self.n_features)
            fields = {name: a for name, a in self.state._asdict().items() if getattr(a, "shape", None) == shape}
            self.state = self.state._replace(**{name: feature_major(a) for name, a in fields.items()})
        self._arranged = True

    def _admit(self, x: Any) -> tuple[Row, loop.OneRound]:
        """Check an example, and compile for its kind if it is the first."""
        x = as_row(x, self.n_features, self._dtype)
        kind = "_sparse" if is_sparse(x) else "_dense"
        steps = getattr(self, kind)
        if steps is None:
            self.arrange(x)
            steps = loop.one_round(self.state, self.schedule, np.uint64(self.key), self._n_feedback, x)
            setattr(self, kind, steps)
        return x, steps


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Array]]:
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        about = json.loads(str(arrays.pop("about")))
    except FileNotFoundError:
        raise InputError(f"{path} does not exist") from None
    except Exception as error:  # whatever a damaged or foreign file can raise
        raise InputError(f"{path} is not a saved learner ({error})") from None
    if (
        not isinstance(about, dict)
        or about.get("format") != _FORMAT
        or not {"learner", "params", "rounds"} <= set(about)
    ):
        raise InputError(f"{path} is not a saved learner of format {_FORMAT}")
    return about, arrays


def check_memory(what: str, numbers: int, instead: str) -> None:
    """Refuse a state of so many float64 numbers that it would not fit, before it is made."""
    if numbers * 8 > _MEMORY:
        raise InputError(
            f"{what} needs {numbers * 8 / 2**30:.1f} GiB; at most {_MEMORY / 2**30:.0f} GiB is allowed: use {instead}"
        )
