"""Our Fliptron, called as users of river and coba call it: what the adapters make of it, among the peers."""

from __future__ import annotations

from typing import Any

from fliptron.arrays import Array, SparseRow, as_row
from fliptron.experiments.peers import one_hot
from fliptron.rounds import Decision


class _Adapted:
    """What they share: names for features, as a user of a library has them."""

    def __init__(self, n_classes: int, n_features: int, seed: int) -> None:
        self.params = {"n_classes": n_classes, "n_features": n_features, "seed": seed}

    def _values(self, x: Any) -> Array | dict[int, float]:
        row = as_row(x, self.params["n_features"])
        if isinstance(row, SparseRow):
            return dict(zip(row.indices.tolist(), row.values.tolist(), strict=True))
        return row


class ThroughRiver(_Adapted):
    """Through `NoisyBanditPolicy`: `pull` and `update` with dicts.

    Parameters
    ----------
    n_classes, n_features, seed
        As of any learner.
    """

    def __init__(self, *, n_classes: int, n_features: int, seed: int = 0) -> None:
        super().__init__(n_classes, n_features, seed)
        from fliptron.adapters.river import NoisyBanditPolicy

        self._policy: Any = NoisyBanditPolicy(fit_intercept=False, seed=seed)
        self._arms = list(range(n_classes))

    def decide(self, x: Any) -> Decision:
        """Pull an arm. A policy of river's does not say more."""
        label = self._policy.pull(self._arms, self._context(x))
        return Decision(label, label, 1.0)

    def learn(self, x: Any, decision: Decision, feedback: int) -> None:
        """Update that arm."""
        self._policy.update(decision.label, self._context(x), feedback)

    def _context(self, x: Any) -> dict[int, float]:
        values = self._values(x)
        return values if isinstance(values, dict) else dict(enumerate(values.tolist()))


class ThroughCoba(_Adapted):
    """Through `NoisyBanditLearner`: `predict` and `learn` with tuples and one-hot actions.

    Parameters
    ----------
    n_classes, n_features, seed
        As of any learner.
    """

    def __init__(self, *, n_classes: int, n_features: int, seed: int = 0) -> None:
        super().__init__(n_classes, n_features, seed)
        from fliptron.adapters.coba import NoisyBanditLearner

        self._learner = NoisyBanditLearner(fit_intercept=False, seed=seed)
        self._actions = one_hot(n_classes)

    def decide(self, x: Any) -> Decision:
        """Predict an action."""
        action, probability, more = self._learner.predict(self._context(x), self._actions)
        return Decision(self._actions.index(action), more["greedy"], probability)

    def learn(self, x: Any, decision: Decision, feedback: int) -> None:
        """Tell it the bit as a reward."""
        label, greedy, probability = decision
        self._learner.learn(self._context(x), self._actions[label], feedback, probability, greedy=greedy)

    def _context(self, x: Any) -> dict[int, float] | tuple[float, ...]:
        values = self._values(x)
        return values if isinstance(values, dict) else tuple(values.tolist())
