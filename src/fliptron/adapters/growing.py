"""A learner for examples with names: features get places, and labels numbers, when they first turn up."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from math import hypot, isfinite
from operator import is_, itemgetter
from struct import Struct, error
from typing import Any
from zlib import crc32

import numpy as np

from fliptron.adapters.chances import chance_of
from fliptron.arrays import FLOATS, LONGEST, Array
from fliptron.kernels import loop
from fliptron.kernels.compiling import entry
from fliptron.learners.base import Learner
from fliptron.learners.fliptron import FULL, Fliptron, learn_among
from fliptron.learners.growth import grow
from fliptron.noise.estimate import Estimate
from fliptron.refusals import InputError, shown
from fliptron.rounds import Decision

MOST = 4096
"""The most places; names that turn up later share those that are there, by their hash."""
_STEP = 8
_KEPT = 100_000  # labels of lists that were looked through
_NOTHING: Any = (None, {}, None, False)  # has been asked


def build(kind: type[Learner] | None, n_classes: int, n_features: int, settings: Mapping[str, Any]) -> Learner:
    """A learner of a class of ours; None: a `Fliptron`."""
    kind = Fliptron if kind is None else kind
    if not (isinstance(kind, type) and issubclass(kind, Learner)):
        raise InputError(f"learner is {kind!r}; one of our classes, such as Fliptron, is expected")
    try:
        return kind(n_classes=n_classes, n_features=n_features, **settings)
    except TypeError as error:
        raise InputError(f"{kind.__name__} cannot be built ({error})") from None


def with_seed(settings: Mapping[str, Any] | None, seed: int) -> dict[str, Any]:
    """The settings of a learner, and a seed unless they have one."""
    if not isinstance(settings, Mapping | None):
        raise InputError(f"settings is {shown(settings)}; names and values, such as {{'gamma': 0.1}}, are expected")
    return {"seed": seed, **(settings or {})}


def estimate_of(learner: Any, kind: type[Learner]) -> Estimate:
    """What a learner of such a class has found out about the noise."""
    if not hasattr(kind, "estimate"):
        raise InputError(f"a {kind.__name__} does not estimate the noise; a Fliptron does")
    found: Estimate = learner.estimate()
    return found


class Growing:
    """A learner of ours that takes dicts or sequences of numbers and words, and labels of any kind.

    A number stands at the place of its name, which is its position in a sequence; a word makes a place of its own,
    which holds 1; None is not there.

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
        self._longest = LONGEST[first._dtype.itemsize]
        self._only_decides = exact and self._kind.decide is Learner.decide  # the compiled step, and nothing else
        self._only_learns = exact and self._kind.learn in (Learner.learn, Fliptron.learn)  # and settles
        self.learner: Learner | None = None
        """The learner, once there are two labels."""
        self.labels: list[Any] = []
        """The labels by their numbers."""
        self._numbers: dict[Any, int] = {}
        self._places: dict[Any, int] = {}
        self._all: Callable[[Any], Any] = tuple
        self._pack: Any = None
        self._named = self._counted = -1  # values of a mapping, and of a sequence, that fill every place
        self._asked: tuple[list[Any] | None, dict[int, int], list[int] | None, bool] = _NOTHING
        self._lists: dict[tuple[Any, ...], tuple[dict[int, int], list[int] | None, bool]] = {}
        self.width = _STEP
        """How many places a row has."""
        self._blank = np.zeros(self.width)
        self._blank[0] = bool(constant)
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
            self._fit(x)
            self.learner = build(self._kind, K, self.width, self._settings)
        for label in new:
            if self.learner is not None and self.learner.n_classes == len(self.labels):
                self.learner.add_label()
            self.labels.append(label)
            self._numbers[label] = len(self.labels) - 1
        self._score, self._asked, self._lists = None, _NOTHING, {}

    def _fit(self, x: Any) -> None:
        """Give the names of the first example places, and have no others: what is not there costs no time."""
        self.row(x)
        if self._places:
            self.width = len(self._places) + 1
            self._blank = self._blank[: self.width].copy()

    def _vet(self, labels: list[Any], x: Any, bit: Any = 1) -> None:
        """Refuse what comes with new labels before anything of it is kept."""
        for label in labels:
            if _is_missing(label):
                raise InputError(f"a label is {label!r}, which is missing; a name or a number is expected")
        check_bit(bit)
        self._check_length(*_entries(_pairs(x).items()))

    def _check_length(self, names: list[Any], numbers: Iterable[float]) -> None:
        """Refuse an example that no learner would take."""
        length = hypot(*numbers)
        if not length <= self._longest:
            _refuse_values(dict(zip(names, numbers, strict=True)))
            raise InputError(f"the example has length {length:g}; at most {self._longest:g} is allowed")

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
        row, learner = self.row(x), self.learner
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
            _refuse_values(x)
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
        row, number = self.row(x), self._numbers.get(hashable(label))
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

    def row(self, x: Any, *, grow: bool = True) -> Array:
        """An example as the learner reads it.

        Parameters
        ----------
        x
            A mapping of names and values, a list or tuple of values, or None.
        grow
            Whether new names get places; they are ignored otherwise.
        """
        kind = type(x)
        by_position = kind is tuple or kind is list
        if not (by_position or kind is dict):
            x = _pairs(x)
        if len(x) == (self._counted if by_position else self._named):  # most often: a number for every place
            row = self._blank.copy()
            try:  # quicker than NumPy's own, and takes no word for a number
                self._pack(row, 8, *(x if by_position else self._all(x)))
                return row
            except (KeyError, error):
                pass
        return self._placed(x, grow)

    def scores(self, x: Any) -> Array:
        """The score of every label, once there are two. Nothing changes."""
        row, learner = self.row(x, grow=False)[None], self.learner
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
            _refuse_values(x)
            raise

    def outside(self, label: int, x: Any, probability: float = 1.0) -> Decision:
        """A decision that somebody else made; the greedy label is the one that is held best now."""
        return Decision(label, int(self.scores(x).argmax()), probability)

    def chances(self, x: Any) -> dict[Any, float]:
        """How likely each label is right, as far as the learner can say; see `Learner.chances`."""
        if self.learner is None:
            return dict.fromkeys(self.labels, 1.0)
        try:
            found = self.learner.chances(self.row(x, grow=False)[None])[0]
        except InputError:
            _refuse_values(x)
            raise
        return dict(zip(self.labels, found.tolist(), strict=True))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_score": None, "_pack": None, "_named": -1, "_counted": -1}

    def _placed(self, x: Any, grow: bool) -> Array:
        """An example whose names are looked up one by one."""
        by_position = not isinstance(x, dict)
        named = _pairs(x)
        try:
            row = self._blank.copy()
            row[[self._places[name] for name in named]] = array("d", named.values())
        except (KeyError, TypeError, OverflowError):
            row = self._slowly(named, grow, by_position)
        n = len(self._places)
        if len(named) == n > 1 and self._named < 0:
            self._all, self._pack, self._named = itemgetter(*self._places), Struct(f"{n}d").pack_into, n
            self._counted = n if [*self._places] == [*range(n)] else -1
        return row

    def _place(self, name: Any) -> int:
        at = self._places.get(name) or len(self._places) + 1
        if at <= len(self._places):
            return at
        if at >= MOST:
            return 1 + crc32(repr(name).encode()) % (MOST - 1)
        if at >= self.width:
            width = min(-(-max(at + 1, self.width * 5 // 4) // _STEP) * _STEP, MOST)
            if self.learner is not None:
                widen(self.learner, width)
            self.width, self._blank = width, np.append(self._blank, np.zeros(width - self._blank.size))
            self._score = None
        self._places[name] = at
        self._named = self._counted = -1
        return at

    def _slowly(self, named: dict[Any, Any], grow: bool, by_position: bool) -> Array:
        """Words, gaps, names without a place, or more names than places."""
        names, numbers = _entries(named.items(), None if grow else self._places)
        at: list[Any] = [*map(self._places.get, names)]
        if None in at:
            self._check_length(names, numbers)
            if not by_position:
                names, numbers = _entries(sorted(named.items(), key=_in_words))
            at = [*map(self._place, names)]
        row = self._blank.copy()
        if len({*at}) == len(at):
            row[at] = numbers
        else:  # some share a place
            np.add.at(row, at, numbers)
        return row


def _pairs(x: Any) -> dict[Any, Any]:
    """The names and values of an example."""
    if type(x) is tuple or type(x) is list:
        return dict(enumerate(x))
    try:
        return x if type(x) is dict else {} if x is None else dict(x)
    except (TypeError, ValueError):
        kind = type(x).__name__
        raise InputError(f"the example is of type {kind}; a dict of names and values, or a list, is expected") from None


def _entries(pairs: Iterable[tuple[Any, Any]], among: Any = None) -> tuple[list[Any], array[float]]:
    """What has a place, and the number there; only among some names, unless that is None."""
    names, values = [], []
    for name, value in pairs:
        if value is None:
            continue
        place, number = ((name, value), 1.0) if isinstance(value, str) else (name, value)
        if among is None or place in among:
            names.append(place)
            values.append(number)
    try:
        return names, array("d", values)
    except OverflowError:
        bits = max(value.bit_length() for value in values if isinstance(value, int))
        raise InputError(f"a number has {bits} bits; at most {LONGEST[8]:g} is allowed") from None
    except TypeError:
        odd = next(value for value in values if not _is_number(value))
        raise InputError(f"{shown(odd)} is neither a number nor a word") from None


def _is_number(value: Any) -> bool:
    try:
        array("d", [value])
    except (TypeError, OverflowError) as wrong:
        return isinstance(wrong, OverflowError)
    return True


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


def _refuse_values(x: Any) -> None:
    """Name the feature that no learner can take; nothing, if there is none."""
    for name, value in x.items() if isinstance(x, Mapping) else enumerate(x) if isinstance(x, list | tuple) else ():
        if isinstance(value, float) and not isfinite(value):
            raise InputError(f"feature {name!r} is {value}; a finite number is expected") from None


def _in_words(pair: tuple[Any, Any]) -> str:
    """What new names are put in order by, of whatever kind they are."""
    return repr(pair[0])


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
    known = isinstance(learner, Fliptron) and learner.form == "auto" and learner.kept == "full"
    too_large = learner.n_classes * n_features**2 > FULL
    form = {"form": "diagonal"} if known and too_large else {}  # axes would have to be found first
    grow(learner, n_features=n_features, **form)
