"""The rules catch learners that break them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fliptron import Banditron, Decision, audit, read_log, simulate, write_log
from fliptron.checks import check_learner


class Liar(Banditron):
    def decide(self, x: Any, eligible: Any = None) -> Any:
        return super().decide(x)._replace(probability=0.5)


class Stone(Banditron):
    def learn(self, x: Any, decision: Any, feedback: Any) -> None:
        super().decide(x)  # refuses what it should
        if not 0 <= decision.label < 4 or not 0 < decision.probability <= 1 or feedback not in (0, 1):
            raise ValueError


class Forgetful(Banditron):
    def save(self, path: Any) -> None:
        self.state.W[:] = 0.0
        super().save(path)


class Restless(Banditron):
    def predict(self, X: Any) -> Any:
        labels = super().predict(X)
        self.state.W[:] += 1.0
        return labels


class Careless(Banditron):
    def learn(self, x: Any, decision: Any, feedback: Any) -> None:
        try:
            super().learn(x, decision, feedback)
        except ValueError:
            self.state.W[:] = 1.0
            raise


class Remembering(Banditron):
    last = None

    def decide(self, x: Any, eligible: Any = None) -> Any:
        self.last = super().decide(x)
        return self.last

    def learn(self, x: Any, decision: Any, feedback: Any) -> None:
        super().learn(x, self.last or decision, feedback)


class Gullible(Banditron):
    def learn(self, x: Any, decision: Any, feedback: Any) -> None:
        if np.size(x) == self.n_features and np.isfinite(x).all() and not 0 <= decision.label < self.n_classes:
            return
        super().learn(x, decision, feedback)


class Moody(Banditron):
    born = 0

    def __init__(self, **settings: Any) -> None:
        Moody.born += 1
        super().__init__(**(settings | {"seed": Moody.born}))

    @property
    def params(self) -> Any:
        return {"n_classes": self.n_classes, "n_features": self.n_features}


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (Liar, "the stated probability says otherwise"),
        (Stone, "taught it nothing"),
        (Forgetful, "save changed the learner"),
        (Restless, "predict twice gives two answers|changed"),
        (Careless, "a refused input changed the learner"),
        (Remembering, "learn depends on decisions it was not given"),
        (Gullible, "learn takes Decision"),
        (Moody, "two runs with one seed"),
    ],
)
def test_broken_learners_are_caught(kind: Any, words: Any) -> None:
    with pytest.raises(AssertionError, match=words):
        check_learner(partial(kind, gamma=0.3))


class Bare:
    """The least a learner can be: two methods. It counts bits for each label and feature of largest value."""

    def __init__(self, *, n_classes: Any, n_features: Any, seed: Any) -> None:
        self.counts = np.ones((n_classes, n_features, 2))
        self.shape, self.random = (n_classes, n_features), np.random.default_rng(seed)

    def decide(self, x: Any) -> Any:
        means = self.counts[:, self._place(x), 1] / self.counts[:, self._place(x)].sum(axis=1)
        greedy, K = int(means.argmax()), self.shape[0]
        label = int(self.random.integers(K)) if self.random.random() < 0.2 else greedy
        return Decision(label, greedy, 0.2 / K + 0.8 * (label == greedy))

    def learn(self, x: Any, decision: Any, feedback: Any) -> None:
        place, (label, _, p) = self._place(x), decision
        if not 0 <= label < self.shape[0] or not 0 < p <= 1 or feedback not in (0, 1):
            raise ValueError
        self.counts[label, place, feedback] += 1

    def _place(self, x: Any) -> Any:
        if np.shape(x) != self.shape[1:] or not np.isfinite(x).all():
            raise ValueError
        return int(np.argmax(x))


def test_two_methods_are_enough(digits: Any, tmp_path: Path) -> None:
    check_learner(Bare)
    learner = Bare(n_classes=10, n_features=64, seed=0)
    log: Any = simulate(learner, digits, rates=(0.1, 0.1), rounds=200, log=True).log
    assert log.margin is None
    write_log(tmp_path / "log.parquet", replace(log, X=digits.X[log.row]))
    assert audit(read_log(tmp_path / "log.parquet")).verdict == "not identified"


def test_decisions_are_plain_tuples() -> None:
    assert Decision(1, 2, 0.5) == (1, 2, 0.5)
