"""A learner of ours as a classifier of scikit-learn: fitted behind a channel, or taught from logs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp

from fliptron.adapters.kinds import build, estimate_of, with_seed
from fliptron.arrays import Array, SparseRow
from fliptron.datasets.dataset import Dataset
from fliptron.learners.base import Learner
from fliptron.noise.estimate import Estimate
from fliptron.refusals import InputError, missing, shown, whole
from fliptron.rounds import Rates, Rounds
from fliptron.simulation import simulate

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.utils import check_random_state
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:
    raise missing("scikit-learn", "lab", error) from None

_LEAST, _EACH = 10_000, 10  # rounds of a fit: so many at least, and so many per row


class Played(NamedTuple):
    """What was played for each row; with the bits that come back, a log to learn from."""

    action: Array
    """The labels played."""
    greedy: Array
    """The labels thought best."""
    probability: Array
    """The probabilities with which the played labels were drawn."""


class NoisyBanditClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A classifier that learns from one bit per example, right or wrong, which is sometimes flipped.

    `fit` has the true labels, as scikit-learn wants it, but does not show them to the learner: it plays rounds, and a
    channel answers with bits. So cross-validation and grid searches tell how well a setting would learn from such
    bits. `partial_fit_bandit` learns from logs, where nobody has true labels.

    Parameters
    ----------
    learner
        The class of the learner. None: `Fliptron`, which has nothing to tune.
    settings
        The learner's other parameters, such as ``{"gamma": 0.1}``.
    rates
        (ρ0, ρ1) of the channel that `fit` plays behind, each ≥ 0 with a sum below 1.
    rounds
        How many rounds `fit` plays. None: ten per row, and 10,000 at least.
    fit_intercept
        Whether a constant 1 is added to every row.
    random_state
        Of rows, flips and exploration: an integer, a `RandomState`, or None.

    Attributes
    ----------
    classes_
        The labels.
    n_features_in_
        How many features a row has.
    learner_
        The learner itself.
    trace_
        What happened in `fit`: a `Trace`.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> model = NoisyBanditClassifier(rates=(0.2, 0.4), rounds=50_000, random_state=1).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """

    def __init__(
        self,
        learner: type[Learner] | None = None,
        *,
        settings: Mapping[str, Any] | None = None,
        rates: tuple[float, float] = (0.0, 0.0),
        rounds: int | None = None,
        fit_intercept: bool = True,
        random_state: Any = None,
    ) -> None:
        self.learner = learner
        self.settings = settings
        self.rates = rates
        self.rounds = rounds
        self.fit_intercept = fit_intercept
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Play rounds on these rows, behind the channel, from the beginning.

        Parameters
        ----------
        X
            n rows of d numbers, dense or sparse.
        y
            The true labels, numbers or words. The channel sees them, and the learner does not.
        """
        with _unchanged_if_refused(self):
            rates = Rates.of(self.rates)
            X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64)
            check_classification_targets(y)
            found, numbers = np.unique(y, return_inverse=True)
            if len(found) < 2:
                raise InputError(f"y has {len(found)} class; at least 2 are expected")
            data = Dataset.of(self._rows(X), numbers, classes=tuple(found.tolist()), name="X", unit_norm=False)
            rounds = max(_EACH * data.n_rows, _LEAST) if self.rounds is None else whole("rounds", self.rounds, 1)
            learner, seed = self._fresh(len(found), X.shape[1])
            self.trace_ = simulate(learner, data, rates=rates, rounds=rounds, seed=seed, order="shuffle")
            self.classes_, self.learner_ = found, learner
        return self

    def partial_fit_bandit(
        self, X: Any, action: Any, bit: Any, probability: Any, greedy: Any = None, classes: Any = None
    ) -> Self:
        """Learn from rounds that were played, by whomever, in their order.

        Parameters
        ----------
        X
            The row of each round.
        action
            The label that was played.
        bit
            What came back: 1 for right, 0 for wrong, sometimes flipped.
        probability
            The probability with which that label was played: a number per round, or one for all.
        greedy
            The label thought best by whoever played, if it is known.
        classes
            All labels that can be played. Needed in the first call, as in `partial_fit` of other classifiers.
        """
        with _unchanged_if_refused(self):
            self._replay(X, action, bit, probability, greedy, classes)
        return self

    def decide(self, X: Any) -> Played:
        """Choose a label for every row, exploring as the learner does; learn from it with `partial_fit_bandit`.

        Parameters
        ----------
        X
            As of `fit`.
        """
        X = self._checked(X)
        sparse: bool = sp.issparse(X)
        if sparse:
            ends = pairwise(X.indptr.tolist())
            rows: Any = (SparseRow(X.indices[start:stop], X.data[start:stop]) for start, stop in ends)
        else:
            rows = X
        decide = self.learner_.decide
        played = [decide(row) for row in rows]
        label, greedy, probability = np.array(played).T.reshape(3, -1)
        return Played(self.classes_[label.astype(np.intp)], self.classes_[greedy.astype(np.intp)], probability)

    def decision_function(self, X: Any) -> Array:
        """The learner's scores (n×K); of two classes, by how much the second leads.

        `Fliptron` damps them by its doubt: `predict_proba` is their softmax.

        Parameters
        ----------
        X
            As of `fit`.
        """
        rows = self._checked(X)
        scores = self.learner_.logits(rows)
        return np.asarray(scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores)

    def predict(self, X: Any) -> Array:
        """The greedy label of every row. Nothing is explored, and nothing changes.

        Parameters
        ----------
        X
            As of `fit`.
        """
        rows = self._checked(X)
        return np.asarray(self.classes_[self.learner_.predict(rows)])

    def predict_proba(self, X: Any) -> Array:
        """How likely each label is right, as far as the learner can say (n×K).

        `Fliptron` tells its belief, in which the doubt about its weights counts, whatever the length of a row. Of other
        learners it is the softmax of the scores, which merely orders the labels; see `Learner.chances`.

        Parameters
        ----------
        X
            As of `fit`.
        """
        rows = self._checked(X)
        return self.learner_.chances(rows)

    def estimate(self) -> Estimate:
        """What the learner has found out about the noise and its own true accuracy; see `Estimate`."""
        check_is_fitted(self)
        return estimate_of(self.learner_, type(self.learner_))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if hasattr(self, "learner_"):  # joblib may have mapped its arrays from a file, closed to writing
            learner = self.learner_
            learner.turn = learner.turn.copy()
            arrays = (np.copy(each, "K") if isinstance(each, np.ndarray) else each for each in learner.state)
            learner.state = type(learner.state)(*arrays)
            learner.__setstate__(vars(learner).copy())  # a state may hold on to `turn`

    def _replay(self, X: Any, action: Any, bit: Any, probability: Any, greedy: Any, classes: Any) -> None:
        first = not hasattr(self, "classes_")
        if first and classes is None:
            raise InputError("classes are not known yet; the first call of partial_fit_bandit needs them")
        X = validate_data(self, X, reset=first, accept_sparse="csr", dtype=np.float64)
        given = self.classes_ if classes is None else _distinct(classes)
        if len(given) < 2:
            raise InputError(f"classes has {len(given)} class; at least 2 are expected")
        if not first and not np.array_equal(given, self.classes_):
            raise InputError(f"classes are {given.tolist()}; those of the call before are {self.classes_.tolist()}")
        label = _numbers("action", action, given)
        known = Rounds.of(
            label=label,
            greedy=label if greedy is None else _numbers("greedy", greedy, given),
            probability=np.broadcast_to(probability, label.shape) if np.ndim(probability) == 0 else probability,
            bit=bit,
            n_classes=len(given),
        )
        if len(known) != X.shape[0]:
            raise InputError(
                f"X has {X.shape[0]} rows, and there are {len(known)} rounds; one row per round is expected"
            )
        if greedy is None:
            known = replace(known, greedy=np.full(len(known), -1))
        learner = self._fresh(len(given), X.shape[1])[0] if first else self.learner_
        learner.replay(self._rows(X), known)
        self.classes_, self.learner_ = given, learner

    def _fresh(self, n_classes: int, n_features: int) -> tuple[Learner, int]:
        """A fresh learner, and the seed of rows and flips."""
        random = check_random_state(self.random_state)
        settings = with_seed(self.settings, int(random.randint(2**31 - 1)))
        learner = build(self.learner, n_classes, n_features + bool(self.fit_intercept), settings)
        return learner, int(random.randint(2**31 - 1))

    def _checked(self, X: Any) -> Any:
        check_is_fitted(self)
        return self._rows(validate_data(self, X, reset=False, accept_sparse="csr", dtype=np.float64))

    def _rows(self, X: Any) -> Any:
        """Rows with the constant, if there is to be one."""
        if not self.fit_intercept:
            return X
        sparse: bool = sp.issparse(X)
        parts: Any = [X, np.ones((X.shape[0], 1))]
        return sp.hstack(parts, format="csr") if sparse else np.hstack(parts)


def _distinct(classes: Any) -> Array:
    """Classes in order."""
    if isinstance(classes, str | bytes | Mapping) or not isinstance(classes, Iterable):
        raise InputError(f"classes is {shown(classes)}; a list of numbers or words is expected")
    if not hasattr(classes, "dtype"):  # a set, or what can be looked through but once
        classes = list(classes)
    given = np.asarray(classes)
    if given.dtype.kind == "f" and not np.isfinite(given).all():
        raise InputError(f"classes are {shown(given.tolist())}; numbers that are finite are expected")
    try:
        if given.dtype.kind not in "SU" or all(isinstance(each, str | bytes) for each in classes):
            return np.unique(given)  # of a number among words, NumPy has made a word
    except TypeError:  # some cannot be compared, such as None
        pass
    raise InputError(f"classes are {shown(list(classes))}; either numbers or words are expected, and not both")


def _numbers(name: str, labels: Any, classes: Array) -> Array:
    """The numbers of labels."""
    found = np.atleast_1d(np.asarray(labels))
    try:
        at = np.minimum(np.searchsorted(classes, found), len(classes) - 1)
        wrong = np.asarray(classes[at] != found)
    except TypeError:  # some cannot be compared, such as None
        at, known = np.zeros(found.shape, np.intp), set(classes.tolist())
        wrong = np.array([each not in known for each in found.ravel().tolist()]).reshape(found.shape)
    if wrong.any() or found.ndim != 1:
        if not wrong.any():
            raise InputError(f"{name} has shape {found.shape}; a single label for each round is expected")
        odd = found.ravel().tolist()[int(np.argmax(wrong))]
        raise InputError(f"{name} holds {shown(odd)}; one of {', '.join(map(str, classes))} is expected")
    return np.asarray(at)


@contextmanager
def _unchanged_if_refused(model: Any) -> Iterator[None]:
    """What scikit-learn notes of rows, such as how many features they have, goes with a call that is refused."""
    before = dict(vars(model))
    try:
        yield
    except BaseException:
        vars(model).clear()
        vars(model).update(before)
        raise
