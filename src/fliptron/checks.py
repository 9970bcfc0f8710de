"""What any learner must obey, ours or a user's. The protocol is `fliptron.rounds.Learns`."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from fliptron.arrays import Array
from fliptron.rounds import Decision

N_CLASSES, N_FEATURES = 4, 6

Make = Callable[..., Any]


def check_learner(make: Make) -> None:
    """Check a learner of your own; raises an AssertionError that names the first rule it breaks.

    A learner must state the probabilities it plays with, learn only through its arguments, take late feedback in any
    order, give the same run for the same seed, and refuse bad input. Only `decide` and `learn` are required, as
    `Learns` says; `scores`, `predict`, `weights`, `params`, `save` and `load` are checked where a learner has them. A
    learner with `full_information` is given true labels instead of bits.

    Parameters
    ----------
    make
        Called as ``make(n_classes=…, n_features=…, seed=…)``, returns a fresh learner: a class with these keywords, or
        `functools.partial` of one.

    Examples
    --------
    >>> from functools import partial
    >>> from fliptron import RCNBF
    >>> check_learner(partial(RCNBF, gamma=0.3, rates=(0.1, 0.2)))
    """
    for rule in RULES:
        rule(make)


def decides_with_the_probability_it_states(make: Make) -> None:
    """The played label was drawn with the stated probability: Σ 1[ỹ = l]/P(ỹ) counts every draw once."""
    learner, x, draws = _trained(make), _examples(1)[0], 4000
    decisions = [learner.decide(x) for _ in range(draws)]
    for decision in decisions:
        _must(0 <= decision.label < N_CLASSES, f"decide played {decision.label}, not a label")
        _must(0 <= decision.greedy < N_CLASSES, f"decide thought of {decision.greedy}, not a label")
        _must(0.0 < decision.probability <= 1.0, f"decide stated probability {decision.probability}")
    for label in range(N_CLASSES):
        stated = np.array([d.probability for d in decisions if d.label == label])
        if stated.size * N_CLASSES < 20:  # too rare to judge
            continue
        count, spread = np.sum(1 / stated), np.sqrt(np.sum((1 - stated) / stated**2)) + 1e-9
        _must(
            abs(count - draws) < 6 * spread,
            f"label {label} was played {stated.size} times of {draws}; the stated probability says otherwise",
        )


def predicts_purely(make: Make) -> None:
    """predict and scores, where they are there, change nothing, and agree with each other and with decide."""
    learner, twin, X = _trained(make), _trained(make), _examples(30)
    thought = [twin.decide(x).greedy for x in X]
    if hasattr(learner, "scores"):
        scores = np.asarray(learner.scores(X))
        _must(scores.shape == (30, N_CLASSES), f"scores has shape {scores.shape}, not rows by classes")
        _must(thought == list(scores.argmax(axis=1)), "decide's greedy label is not the one of highest score")
    if hasattr(learner, "predict"):
        labels = list(learner.predict(X))
        _must(labels == list(learner.predict(X)), "predict twice gives two answers")
        _must(thought == labels, "decide's greedy label is not predict's")
    _must(thought == [learner.decide(x).greedy for x in X], "predict or scores changed later decisions")
    _must(_same(learner, twin), "predict or scores changed what the learner knows")


def learns_only_through_its_arguments(make: Make) -> None:
    """What was decided in between leaves no trace in what is learnt."""
    learner, twin, X = _trained(make), _trained(make), _examples(20)
    for x in X:
        learner.decide(x)
    for i, x in enumerate(X):
        for one in (learner, twin):
            one.learn(x, Decision(i % N_CLASSES, (i + 1) % N_CLASSES, 0.5), i % 2)
    _must(_same(learner, twin), "learn depends on decisions it was not given")


def takes_late_feedback_in_any_order(make: Make) -> None:
    """Feedback may come long after the decision, in another order."""
    learner, X = make(n_classes=N_CLASSES, n_features=N_FEATURES, seed=3), _examples(40)
    decisions = [learner.decide(x) for x in X]
    for i in np.random.default_rng(0).permutation(len(X)):
        learner.learn(X[i], decisions[i], int(i % 2))
    _must(_finite(learner), "late feedback made the learner's numbers infinite")


def repeats_itself(make: Make) -> None:
    """The same seed gives the same run."""
    first, second = _trained(make), _trained(make)
    _must(_same(first, second), "two runs with one seed learnt differently")
    X = _examples(50)
    _must([first.decide(x) for x in X] == [second.decide(x) for x in X], "two runs with one seed decided differently")


def goes_on_after_a_save(make: Make) -> None:
    """A saved learner, loaded, has the same future."""
    learner, untouched = _trained(make), _trained(make)
    if not hasattr(learner, "save"):
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "learner.npz"
        learner.save(path)
        twin = type(learner).load(path)
    _must(_same(learner, untouched), "save changed the learner")
    _must(_same(twin, untouched), "load changed the learner")
    futures = [_play(each, 60, seed=9) for each in (untouched, learner, twin)]
    _must(futures[0] == futures[1], "save changed the learner")
    _must(futures[0] == futures[2], "save and load changed the future")
    _must(_same(learner, twin), "save and load changed what is learnt later")


def is_rebuilt_by_its_params(make: Make) -> None:
    """params, given to the class, builds the same fresh learner."""
    learner = make(n_classes=N_CLASSES, n_features=N_FEATURES, seed=5)
    if not hasattr(learner, "params"):
        return
    twin = type(learner)(**learner.params)
    _must(twin.params == learner.params, f"params {learner.params} rebuilds {twin.params}")
    _must(_play(learner, 60, seed=2) == _play(twin, 60, seed=2), "a learner rebuilt from params decides differently")


def refuses_bad_input(make: Make) -> None:
    """Bad input is a ValueError, and leaves the learner as it was."""
    learner, untouched, x = _trained(make), _trained(make), _examples(1)[0]
    bad_rows = {"NaN": _with(x, np.nan), "infinity": _with(x, np.inf), "a wrong width": x[:-1], "a cube": x[None, None]}
    good = Decision(1, 0, 0.5)
    for name, bad in bad_rows.items():
        _refuses(f"decide takes {name}", learner.decide, bad)
        _refuses(f"learn takes {name}", learner.learn, bad, good, 1)
        if hasattr(learner, "predict"):
            _refuses(f"predict takes {name}", learner.predict, [bad])
    for decision in (Decision(N_CLASSES, 0, 0.5), Decision(-1, 0, 0.5), Decision(0, 0, 0.0), Decision(0, 0, 1.5)):
        _refuses(f"learn takes {decision}", learner.learn, x, decision, 1)
    for feedback in (-1, N_CLASSES, 0.5, np.nan):
        _refuses(f"learn takes feedback {feedback}", learner.learn, x, good, feedback)
    _must(_same(learner, untouched), "a refused input changed the learner")


def learns(make: Make) -> None:
    """Rounds leave a trace in what the learner believes."""
    learner, fresh = _trained(make), make(n_classes=N_CLASSES, n_features=N_FEATURES, seed=1)
    X = np.eye(N_CLASSES, N_FEATURES)
    known = [np.asarray(each.scores(X)) if hasattr(each, "scores") else _greedy(each, X) for each in (learner, fresh)]
    _must(not np.array_equal(known[0], known[1]), "200 rounds have taught it nothing")


RULES: tuple[Callable[[Make], None], ...] = (
    repeats_itself,  # first, since the others compare with a twin
    decides_with_the_probability_it_states,
    learns,
    predicts_purely,
    learns_only_through_its_arguments,
    takes_late_feedback_in_any_order,
    goes_on_after_a_save,
    is_rebuilt_by_its_params,
    refuses_bad_input,
)


def _must(holds: Any, rule: str) -> None:
    if not holds:
        raise AssertionError(rule)


def _refuses(rule: str, call: Callable[..., Any], *bad: Any) -> None:
    try:
        call(*bad)
    except ValueError:
        return
    raise AssertionError(rule)


def _same(one: Any, other: Any) -> bool:
    """Whether two learners know the same, as far as they show it: their weights, their scores, or what they choose."""
    X = _examples(25)
    if hasattr(one, "weights"):
        return np.array_equal(one.weights, other.weights)
    if hasattr(one, "scores"):
        return np.array_equal(one.scores(X), other.scores(X))
    return np.array_equal(_greedy(one, X), _greedy(other, X))


def _finite(learner: Any) -> bool:
    shown = learner.weights if hasattr(learner, "weights") else [learner.decide(x).probability for x in _examples(5)]
    return bool(np.isfinite(shown).all())


def _greedy(learner: Any, X: Array) -> Array:
    return np.array([learner.decide(x).greedy for x in X])


def _examples(n: int) -> Array:
    X = np.random.default_rng(7).normal(size=(n, N_FEATURES))
    return np.asarray(X / np.linalg.norm(X, axis=1, keepdims=True))


def _with(x: Array, value: float) -> Array:
    return np.concatenate([x[:-1], [value]])


def _trained(make: Make) -> Any:
    learner = make(n_classes=N_CLASSES, n_features=N_FEATURES, seed=1)
    _play(learner, 200, seed=1)
    return learner


def _play(learner: Any, rounds: int, seed: int) -> list[Decision]:
    """Play on a small separable problem with one bit in five flipped."""
    random = np.random.default_rng(seed)
    full = getattr(learner, "full_information", False)
    decisions = []
    for _ in range(rounds):
        truth = int(random.integers(N_CLASSES))
        x = np.eye(N_CLASSES, N_FEATURES)[truth] + 0.1 * random.normal(size=N_FEATURES)
        decision = learner.decide(x)
        bit = int((decision.label == truth) ^ (random.random() < 0.2))
        learner.learn(x, decision, truth if full else bit)
        decisions.append(decision)
    return decisions
