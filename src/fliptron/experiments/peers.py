"""The bandits of river, coba and bayesianbandits as learners among ours: the same rows, flips and rounds.

Each is called as its users call it. Where a library does not say with which probability it chose, 1 is stated; where it
does not say which label it holds best, it is the one it played. What is not there: river has one contextual policy,
LinUCB; coba's own learners are linear, and its SquareCB is Vowpal Wabbit's; bayesianbandits has no SquareCB; and
scikit-learn has no bandits.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np

from fliptron.arrays import Array, SparseRow, as_row
from fliptron.refusals import missing, one_of, real
from fliptron.rounds import Decision


def one_hot(n_classes: int) -> list[tuple[int, ...]]:
    """Labels as coba shows classes."""
    return [tuple(int(r == label) for r in range(n_classes)) for label in range(n_classes)]


class _Peer:
    """What they share: dense rows."""

    def __init__(self, **params: Any) -> None:
        self.params = params
        self._n_features: int = params["n_features"]

    def _row(self, x: Any) -> Array:
        row = as_row(x, self._n_features)
        if not isinstance(row, SparseRow):
            return row
        dense = np.zeros(self._n_features)
        dense[row.indices] = row.values
        return dense


class RiverLinUCB(_Peer):
    """River's one contextual policy, `LinUCBDisjoint`: a Bayesian linear regression of the bit per label.

    Parameters
    ----------
    n_classes, n_features, seed
        As of any learner.
    alpha, beta
        The precisions of the prior and of the noise.
    """

    def __init__(
        self, *, n_classes: int, n_features: int, alpha: float = 1.0, beta: float = 1.0, seed: int = 0
    ) -> None:
        super().__init__(n_classes=n_classes, n_features=n_features, alpha=alpha, beta=beta, seed=seed)
        alpha, beta = real("alpha", alpha, 0.0, open_below=True), real("beta", beta, 0.0, open_below=True)
        try:
            from river import bandit
        except ImportError:
            raise missing("river", "peers") from None
        self._policy: Any = bandit.LinUCBDisjoint(alpha=alpha, beta=beta, seed=seed)
        self._arms = list(range(n_classes))

    def decide(self, x: Any) -> Decision:
        """Pull an arm."""
        label = self._policy.pull(self._arms, context=dict(enumerate(self._row(x).tolist())))
        return Decision(label, label, 1.0)

    def learn(self, x: Any, decision: Decision, feedback: int) -> None:
        """Update that arm."""
        self._policy.update(decision.label, dict(enumerate(self._row(x).tolist())), feedback)


class CobaLearner(_Peer):
    """A learner of coba's. It is shown labels as coba shows classes: one-hot.

    Parameters
    ----------
    n_classes, n_features, seed
        As of any learner.
    kind
        "LinUCB", "LinTS" or "SquareCB" (Vowpal Wabbit's).
    strength
        Of exploration: LinUCB's `alpha`, LinTS's `v`, SquareCB's `gamma_scale`.
    """

    def __init__(
        self, *, n_classes: int, n_features: int, kind: str = "LinUCB", strength: float = 1.0, seed: int = 0
    ) -> None:
        one_of("kind", kind, ("LinUCB", "LinTS", "SquareCB"))
        super().__init__(n_classes=n_classes, n_features=n_features, kind=kind, strength=strength, seed=seed)
        strength = real("strength", strength, 0.0)
        try:
            import coba
        except ImportError:
            raise missing("coba", "peers") from None
        if kind == "SquareCB":
            if find_spec("vowpalwabbit") is None:
                raise missing("Vowpal Wabbit", "peers")
            features = [1, "a", "ax"]
            self._learner = coba.VowpalSquarecbLearner(gamma_scale=strength, features=features, seed=seed + 1)
        elif kind == "LinUCB":
            self._learner = coba.LinUCBLearner(alpha=strength, seed=seed + 1)
        else:
            self._learner = coba.LinTSLearner(v=strength, seed=seed + 1)
        self._actions = one_hot(n_classes)
        # SquareCB is told all actions again when it learns, as `predict` says
        self._more = {"actions": self._actions} if kind == "SquareCB" else {}

    def decide(self, x: Any) -> Decision:
        """Predict an action."""
        action, probability, *_ = self._learner.predict(self._row(x).tolist(), self._actions)
        label = self._actions.index(action)
        return Decision(label, label, float(probability))

    def learn(self, x: Any, decision: Decision, feedback: int) -> None:
        """Tell it the bit as a reward."""
        action, context = self._actions[decision.label], self._row(x).tolist()
        self._learner.learn(context, action, feedback, decision.probability, **self._more)


class BayesianBandits(_Peer):
    """An agent of bayesianbandits: one Bayesian regression of the bit per label.

    Parameters
    ----------
    n_classes, n_features, seed
        As of any learner.
    model
        "linear" (its `NormalRegressor`) or "logistic" (its `BayesianGLM`).
    policy
        "Thompson" sampling or "UCB".
    alpha
        The precision of the prior.
    beta
        The precision of the noise, of the linear model.
    quantile
        Of UCB.
    """

    def __init__(
        self,
        *,
        n_classes: int,
        n_features: int,
        model: str = "logistic",
        policy: str = "Thompson",
        alpha: float = 1.0,
        beta: float = 1.0,
        quantile: float = 0.68,
        seed: int = 0,
    ) -> None:
        one_of("model", model, ("linear", "logistic"))
        one_of("policy", policy, ("Thompson", "UCB"))
        super().__init__(
            n_classes=n_classes,
            n_features=n_features,
            model=model,
            policy=policy,
            alpha=alpha,
            beta=beta,
            quantile=quantile,
            seed=seed,
        )
        try:
            import bayesianbandits as bb
        except ImportError:
            raise missing("bayesianbandits", "peers") from None
        alpha, beta = real("alpha", alpha, 0.0, open_below=True), real("beta", beta, 0.0, open_below=True)
        quantile = real("quantile", quantile, 0.0, 1.0)

        def regression() -> Any:
            if model == "linear":
                return bb.NormalRegressor(alpha=alpha, beta=beta)
            return bb.BayesianGLM(alpha=alpha, link="logit", approximator=bb.LaplaceApproximator(n_iter=1))

        arms = [bb.Arm(label, learner=regression()) for label in range(n_classes)]
        chooser = bb.ThompsonSampling() if policy == "Thompson" else bb.UpperConfidenceBound(quantile, samples=100)
        self._agent = bb.ContextualAgent(arms, chooser, random_seed=seed)

    def decide(self, x: Any) -> Decision:
        """Pull an arm."""
        label = int(self._agent.pull(self._row(x)[None])[0])
        return Decision(label, label, 1.0)

    def learn(self, x: Any, decision: Decision, feedback: int) -> None:
        """Update that arm."""
        self._agent.select_for_update(decision.label).update(self._row(x)[None], np.array([float(feedback)]))
