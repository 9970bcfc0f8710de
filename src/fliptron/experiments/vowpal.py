"""Vowpal Wabbit's `--cb_explore` as a learner among ours: the same rows, the same flips, the same kind of round."""

from __future__ import annotations

from typing import Any

import numpy as np

from fliptron.arrays import SparseRow, as_row
from fliptron.refusals import InputError, missing
from fliptron.rounds import Decision

SETTINGS = (
    "--epsilon 0.02 --cb_type dm",
    "--epsilon 0.05 --cb_type dm -l 5",
    "--epsilon 0.05 --cb_type dr -l 5",
    "--bag 5 --cb_type dm -l 5",
    "--cover 3 --cb_type ips -l 5",
    "--softmax --lambda 5 --cb_type dm -l 5",
    "--softmax --lambda 20 --cb_type dm -l 5",
)


class VowpalWabbit:
    """A contextual bandit of Vowpal Wabbit's (the extra `peers`), with the options of its command line.

    A wrong label costs 0 and a right one −1, so that a label never tried looks no better than it is. Features have
    names, since Vowpal Wabbit takes numbers for hashes.
    """

    def __init__(self, *, n_classes: int, n_features: int, options: str = SETTINGS[1], seed: int = 0) -> None:
        try:
            import vowpalwabbit
        except ImportError:
            raise missing("Vowpal Wabbit", "peers") from None
        self.params = {"n_classes": n_classes, "n_features": n_features, "options": options, "seed": seed}
        words = f"--cb_explore {n_classes} {options} --random_seed {seed + 1} --quiet -b 18"
        try:
            self._model = vowpalwabbit.Workspace(words)
        except RuntimeError as error:
            raise InputError(f"options is {options!r}; Vowpal Wabbit refuses it ({error})") from None
        self._random = np.random.default_rng(seed)
        self._n_features = n_features

    def decide(self, x: Any) -> Decision:
        """Draw a label from the distribution it predicts."""
        chances = np.maximum(self._model.predict("| " + self._text(x)), 0.0)
        chances /= chances.sum()
        label = int(self._random.choice(chances.size, p=chances))
        return Decision(label, int(chances.argmax()), float(chances[label]))

    def learn(self, x: Any, decision: Decision, feedback: int) -> None:
        """One labelled example: action, cost, probability."""
        self._model.learn(f"{decision.label + 1}:{-feedback}:{decision.probability:.6g} | {self._text(x)}")

    def _text(self, x: Any) -> str:
        """An example in its text format."""
        row = as_row(x, self._n_features)
        places, values = row if isinstance(row, SparseRow) else (np.flatnonzero(row), row[np.flatnonzero(row)])
        return " ".join(f"f{j}:{value:.6g}" for j, value in zip(places.tolist(), values.tolist(), strict=True))
