"""A learner for examples with names: features get places, and labels numbers, when they first turn up."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from operator import is_
from typing import Any

import numpy as np

from fliptron.adapters.chances import chance_of
from fliptron.adapters.kinds import build, estimate_of, with_seed
from fliptron.adapters.places import Places, refuse_values
from fliptron.arrays import FLOATS, LONGEST, Array
from fliptron.kernels import loop
from fliptron.kernels.compiling import entry
from fliptron.learners.among import learn_among
from fliptron.learners.base import Learner
from fliptron.learners.fliptron import FULL, Fliptron
from fliptron.learners.growth import grow
from fliptron.noise.estimate import Estimate
from fliptron.refusals import InputError, shown
from fliptron.rounds import Decision

_KEPT = 100_000  # labels of lists that were looked through
_NOTHING: Any = (None, {}, None, False)  # has been asked


class Growing:
    """A learner of ours that takes dicts or sequences of numbers and words, and labels of any kind.

    Parameters
    ----------
    kind
        The class of the learner; None: `Fliptron`.
    settings
        Its other parameters.
    seed
        Of its exploration, unless `settings` have one.
    constant
        Whether place 0 holds the constant 1, or 0.
    """

    def __init__(
        self, kind: type[Learner] | None, settings: Mapping[str, Any] | None, seed: int, *, constant: bool = True
    ) -> None:
        self._settings = with_seed(settings, seed)
        first = build(kind, 2, 1, self._settings)  # a wrong setting is refused at once
        self._kind, exact = type(first), first._dtype is FLOATS["float64"]  # as rows are
        self._only_decides = exact and self._kind.decide is Learner.decide  # the compiled step, and nothing else
        self._only_learns = exact and self._kind.learn in (Learner.learn, Fliptron.learn)  # and settles
        self.learner: Learner | None = None
        """The learner, once there are two labels."""
        self.labels: list[Any] = []
        """The labels by their numbers."""
        self._numbers: dict[Any, int] = {}
        self._asked: tuple[list[Any] | None, dict[int, int], list[int] | None, bool] = _NOTHING
        self._lists: dict[tuple[Any, ...], tuple[dict[int, int], list[int] | None, bool]] = {}
        self.places = Places(LONGEST[first._dtype.itemsize], constant, self._widen)
        """Where the values of an example stand."""
        self._score: Callable[..., None] | None = None

    @property
    def full_information(self) -> bool:
        """Whether the learner wants true labels."""
        return self._kind.full_information

    @property
    def name(self) -> str:
        """The name of the learner's class."""
        return self._kind.__name__

    def estimate(self) -> Estimate:
        """What the learner has found out about the noise; see `Estimate`."""
        if self.learner is None and hasattr(self._kind, "estimate"):
            raise InputError("nothing is known of the noise before there are two labels")
        return estimate_of(self.learner, self._kind)

    def number(self, label: Any, x: Any = None, bit: Any = 1) -> int:
        """The number of a label, a new one if need be.

        Parameters
        ----------
        label
            What may be a key of a dict, and is not missing.
        x, bit
            What a new label comes with: if that is refused, the label is not kept.
        """
        try:
            found = self._numbers.get(label)
        except TypeError:
            raise InputError(f"the label is {shown(label)}; what may be a key of a dict is expected") from None
        if found is None:
            self._add([label], x, bit)
        return self._numbers[label]

    def _add(self, new: list[Any], x: Any, bit: Any = 1) -> None:
        """Take in new labels: all at once if they are the first, since not every learner can have more later."""
        self._vet(new, x, bit)
        K = len(self.labels) + len(new)
        if self.learner is None and K > 1:
            self.places.fit(x)
            self.learner = build(self._kind, K, self.places.width, self._settings)
        for label in new:
            if self.learner is not None and self.learner.n_classes == len(self.labels):
                self.learner.add_label()
            self.labels.append(label)
            self._numbers[label] = len(self.labels) - 1
        self._score, self._asked, self._lists = None, _NOTHING, {}

    def _widen(self, width: int) -> None:
        if self.learner is not None:
            widen(self.learner, width)
        self._score = None

    def _vet(self, labels: list[Any], x: Any, bit: Any = 1) -> None:
        """Refuse what comes with new labels before anything of it is kept."""
        for label in labels:
            if _is_missing(label):
                raise InputError(f"a label is {label!r}, which is missing; a name or a number is expected")
        check_bit(bit)
        self.places.check(x)

    def decide(self, x: Any, labels: list[Any]) -> tuple[Array, Decision | None, dict[int, int], list[int] | None]:
        """Choose one of the labels.

        Returns the example's row, the decision, where each label's number is in the list, and the numbers that could be
        chosen: None if all could. There is no decision before there are two labels.

        Parameters
        ----------
        x
            As of `row`.
        labels
            Most often the same as in the call before, and then not looked through.
        """
        asked, places, eligible, plain = self._asked
        try:
            others = labels != asked
        except ValueError:  # arrays do not say
            others = True
        if others:
            places, eligible, plain = self._looked_through(labels, x)
        row, learner = self.places.row(x), self.learner
        if learner is None:
            return row, None, places, eligible
        steps = learner._dense
        if plain and steps is not None:
            try:
                return row, steps[0](learner.state, learner.turn, learner.key, row), places, eligible
            except loop.NotNowError:
                pass
        try:
            return row, learner.decide(row, eligible), places, eligible
        except InputError:
            refuse_values(x)
            raise

    def _looked_through(self, labels: list[Any], x: Any) -> tuple[dict[int, int], list[int] | None, bool]:
        """The same list of labels, as one of a few that take turns, is looked through once."""
        try:
            known = self._lists.get(key := tuple(labels))
        except TypeError:  # what cannot be hashed may be changed
            return self._look_through(labels, x)
        if known is None:
            known = self._look_through(labels, x)
            if (len(self._lists) + 1) * len(key) <= _KEPT:
                self._lists[key] = known
        self._asked = labels[:], *known
        return known

    def _look_through(self, labels: list[Any], x: Any) -> tuple[dict[int, int], list[int] | None, bool]:
        names = [hashable(label) for label in labels]
        numbers = self._numbers
        new = [name for name in dict.fromkeys(names) if name not in numbers]
        if new:
            self._add(new, x)
        places = {numbers[name]: place for place, name in enumerate(names)}
        eligible = None if len(places) == len(self.labels) else [*places]
        plain = eligible is None and self._only_decides
        fixed = all(map(is_, names, labels))  # what cannot be hashed may be changed by its owner, who has it still
        self._asked = labels[:] if fixed else deepcopy(labels), places, eligible, plain
        return places, eligible, plain

    def chance(self, x: Any, labels: list[Any], label: Any) -> float:
        """The probability with which `decide` would choose one of the labels now. Nothing is decided.

        Parameters
        ----------
        x, labels
            As of `decide`.
        label
            The one that is asked for; of one that is not in the list, the probability is 0.
        """
        places, eligible, _ = self._look_through(labels, x)
        row, number = self.places.row(x), self._numbers.get(hashable(label))
        if number not in places:
            return 0.0
        return 1.0 if self.learner is None else chance_of(self.learner, row, int(number or 0), eligible)

    def learn(self, row: Array, decision: Decision, feedback: Any, eligible: list[int] | None = None) -> None:
        """Learn from what came back for a decision, once there are two labels.

        Parameters
        ----------
        row
            What the decision was about.
        decision
            From `decide`, or from elsewhere.
        feedback
            As of the learner.
        eligible
            The numbers of the labels that could be chosen; None if all could.
        """
        learner = self.learner
        assert learner is not None
        if eligible is not None:
            learn_among(learner, row, decision, feedback, eligible)
            return
        steps = learner._dense
        if self._only_learns and steps is not None:
            try:
                if not steps[1](learner.state, learner.turn, row, decision, feedback):
                    learner.settle()
                    return
            except (TypeError, ValueError, OverflowError):
                pass
        learner.learn(row, decision, feedback)  # which waits, or says what is wrong

    def scores(self, x: Any) -> Array:
        """The score of every label, once there are two. Nothing changes."""
        row, learner = self.places.row(x, grow=False)[None], self.learner
        assert learner is not None
        if learner._dtype is not FLOATS["float64"]:
            return self._checked_scores(x, row)
        with learner.held():
            out = np.empty((1, learner.n_classes))
            if self._score is None:
                self._score = entry(loop.score_all, learner.state, row, out)
            self._score(learner.state, row, out)
        return out[0] if np.isfinite(out).all() else self._checked_scores(x, row)

    def _checked_scores(self, x: Any, row: Array) -> Array:
        """The same by the learner itself, which says what is wrong with a row."""
        assert self.learner is not None
        try:
            return np.asarray(self.learner.scores(row)[0])
        except InputError:
            refuse_values(x)
            raise

    def outside(self, label: int, x: Any, probability: float = 1.0) -> Decision:
        """A decision that somebody else made; the greedy label is the one that is held best now."""
        return Decision(label, int(self.scores(x).argmax()), probability)

    def chances(self, x: Any) -> dict[Any, float]:
        """How likely each label is right, as far as the learner can say; see `Learner.chances`."""
        if self.learner is None:
            return dict.fromkeys(self.labels, 1.0)
        try:
            found = self.learner.chances(self.places.row(x, grow=False)[None])[0]
        except InputError:
            refuse_values(x)
            raise
        return dict(zip(self.labels, found.tolist(), strict=True))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_score": None}


def _is_missing(label: Any) -> bool:
    try:
        return label is None or not label == label  # noqa: PLR0124, SIM201  # NaN is not
    except TypeError:  # nor does pandas' NA say that it is
        return True


def check_bit(bit: Any) -> None:
    """Refuse what is no bit as a learner would, before anything is kept of the call that it came with."""
    try:
        good = bit in (0, 1)
    except (TypeError, ValueError):  # an array, or what is missing
        good = False
    if not good:
        raise InputError(f"feedback is {shown(bit)}; 0 or 1 is expected")


def hashable(label: Any) -> Any:
    """A label that may be looked up: itself, or what a list, an array, a set or a mapping is made of."""
    if isinstance(label, Mapping):
        return frozenset((name, hashable(value)) for name, value in label.items())
    try:
        hash(label)
    except TypeError:
        if isinstance(label, np.ndarray):
            return hashable(label.tolist())
        if isinstance(label, list | tuple):
            return tuple(map(hashable, label))
        if isinstance(label, set):
            return frozenset(label)
    else:
        return label
    raise InputError(
        f"an action is {shown(label)}; a name, a number, or a list, array, set or mapping of such is expected"
    )


def widen(learner: Learner, n_features: int) -> None:
    """Give a learner room for more features, of which nothing is known yet. What was learnt of the others stays."""
    is_full = isinstance(learner, Fliptron) and learner.form == "auto" and learner.kept == "full"
    outgrown = is_full and learner.n_classes * n_features**2 > FULL
    form = {"form": "diagonal"} if outgrown else {}  # axes would have to be found first
    grow(learner, n_features=n_features, **form)
