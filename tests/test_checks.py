"""The rules catch learners that break them."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from fliptron import Banditron, Decision
from fliptron.checks import check_learner


class Liar(Banditron):
    def decide(self, x):
        return super().decide(x)._replace(probability=0.5)


class Stone(Banditron):
    def learn(self, x, decision, feedback):
        super().decide(x)  # refuses what it should
        if not 0 <= decision.label < 4 or not 0 < decision.probability <= 1 or feedback not in (0, 1):
            raise ValueError


class Forgetful(Banditron):
    def save(self, path):
        self.state.W[:] = 0.0
        super().save(path)


class Restless(Banditron):
    def predict(self, X):
        labels = super().predict(X)
        self.state.W[:] += 1.0
        return labels


class Careless(Banditron):
    def learn(self, x, decision, feedback):
        try:
            super().learn(x, decision, feedback)
        except ValueError:
            self.state.W[:] = 1.0
            raise


class Remembering(Banditron):
    last = None

    def decide(self, x):
        self.last = super().decide(x)
        return self.last

    def learn(self, x, decision, feedback):
        super().learn(x, self.last or decision, feedback)


class Gullible(Banditron):
    def learn(self, x, decision, feedback):
        if np.size(x) == self.n_features and np.isfinite(x).all() and not 0 <= decision.label < self.n_classes:
            return
        super().learn(x, decision, feedback)


class Moody(Banditron):
    born = 0

    def __init__(self, **settings):
        Moody.born += 1
        super().__init__(**(settings | {"seed": Moody.born}))

    @property
    def params(self):
        return {"n_classes": self.n_classes, "n_features": self.n_features}


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (Liar, "the stated probability says otherwise"),
        (Stone, "taught it nothing"),
        (Forgetful, "save changed the weights"),
        (Restless, "predict twice gives two answers|changed the weights"),
        (Careless, "a refused input changed the weights"),
        (Remembering, "learn depends on decisions it was not given"),
        (Gullible, "learn takes Decision"),
        (Moody, "two runs with one seed"),
    ],
)
def test_broken_learners_are_caught(kind, words):
    with pytest.raises(AssertionError, match=words):
        check_learner(partial(kind, gamma=0.3))


def test_decisions_are_plain_tuples():
    assert Decision(1, 2, 0.5) == (1, 2, 0.5)
