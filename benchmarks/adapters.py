"""What do the adapters add to a decision?

    make bench NAME=adapters        # two minutes; writes benchmarks/results/adapters.md

Every way of calling is timed in turn with the learner's own `decide` and `learn` (or `simulate` and `replay`) on the
same rows; the least of several turns is kept, in CPU time.
"""

from __future__ import annotations

import sys
from copy import deepcopy
from pathlib import Path
from struct import Struct
from typing import Any

import coba
import numpy as np
from river import bandit

from fliptron import RCNBF, Dataset, Fliptron, Rounds, load, simulate
from fliptron.adapters.coba import NoisyBanditLearner
from fliptron.adapters.river import NoisyBanditClassifier as RiverClassifier
from fliptron.adapters.river import NoisyBanditPolicy
from fliptron.adapters.sklearn import NoisyBanditClassifier
from tabular import save, table
from timing import Turn, best

SETTINGS: dict[str, Any] = {"gamma": 0.1, "rates": (0.2, 0.4)}
ROUNDS, BATCH, REPEATS = 1000, 1000, 40


class Nothing:
    """A learner of coba's that does nothing: what its calls cost by themselves."""

    def predict(self, context: Any, actions: Any) -> tuple[Any, float, dict[str, Any]]:
        return actions[0], 1.0, {"greedy": 0}

    def learn(self, context: Any, action: Any, reward: float, probability: float, greedy: int | None = None) -> None:
        pass


def contenders(data: Dataset) -> dict[tuple[str, str], Turn]:
    """What plays so many rounds, by what it is measured against and by name."""
    K, d, n = data.n_classes, data.n_features, 500
    X, y = np.array(data.X[:2000]), data.y[:2000]
    full = Dataset.of(np.hstack([X, np.ones((len(X), 1))]), y, classes=tuple(range(K)), unit_norm=False)
    rows = [np.append(x, 1.0) for x in X[:n]]
    dicts = [dict(zip([f"x{j}" for j in range(d)], x.tolist(), strict=True)) for x in X[:n]]
    tuples = [tuple(x.tolist()) for x in X[:n]]
    arms, actions = list(range(K)), [tuple(int(r == k) for r in range(K)) for k in range(K)]
    learner, wide = RCNBF(n_classes=K, n_features=d + 1, **SETTINGS), RCNBF(n_classes=K, n_features=d + 1, **SETTINGS)
    log = simulate(deepcopy(learner), full, rates=(0.2, 0.4), rounds=BATCH, log=True, order="file").log
    played = Rounds.of(label=log.label, greedy=log.greedy, probability=log.probability, bit=log.bit)
    fitted = NoisyBanditClassifier(RCNBF, settings=SETTINGS, rounds=ROUNDS, random_state=0).fit(X, y)
    policy, classifier = NoisyBanditPolicy(RCNBF, SETTINGS, seed=0), RiverClassifier(RCNBF, SETTINGS, seed=0)
    theirs, guest, lin = bandit.LinUCBDisjoint(seed=0), NoisyBanditLearner(RCNBF, SETTINGS), coba.LinUCBLearner()

    default, hosts = Fliptron(n_classes=K, n_features=d + 1), [NoisyBanditLearner(), NoisyBanditLearner()]
    default_policy = NoisyBanditPolicy(seed=0)
    eligible = [[r for r in range(K) if r != left] for left in range(K)]
    some = [[actions[r] for r in each] for each in eligible]
    hosts[1].predict(tuples[0], actions)

    def own(rounds: int, learner: Any = learner) -> None:
        for t in range(rounds):
            x = rows[t % n]
            learner.learn(x, learner.decide(x), t % 2)

    def own_among(rounds: int) -> None:
        for t in range(rounds):
            x, among = rows[t % n], eligible[t % K]
            default.learn(x, default.decide(x, among), t % 2, eligible=among)

    def coba_among(rounds: int) -> None:
        for t in range(rounds):
            context = tuples[t % n]
            action, probability, more = hosts[1].predict(context, some[t % K])
            hosts[1].learn(context, action, t % 2, probability, **more)

    def fit(rounds: int) -> None:
        NoisyBanditClassifier(RCNBF, settings=SETTINGS, rounds=rounds, random_state=0).fit(X, y)

    def river_policy(rounds: int, policy: Any = policy) -> None:
        for t in range(rounds):
            context = dicts[t % n]
            policy.update(policy.pull(arms, context), context, t % 2)

    def river_classifier(rounds: int) -> None:
        for t in range(rounds):
            classifier.learn_one(dicts[t % n], t % K)

    def river_predict(rounds: int) -> None:
        for t in range(rounds):
            classifier.predict_one(dicts[t % n])

    def coba_learner(rounds: int, guest: Any = guest) -> None:
        for t in range(rounds):
            context = tuples[t % n]
            action, probability, more = guest.predict(context, actions)
            guest.learn(context, action, t % 2, probability, **more)

    def vectors(rounds: int) -> None:
        for t in range(rounds):
            np.array(tuples[t % n])

    blank, pack = np.zeros(d + 1), Struct(f"{d}d").pack_into

    def packed(rounds: int) -> None:
        for t in range(rounds):
            pack(blank.copy(), 8, *tuples[t % n])

    def coba_lin(rounds: int) -> None:
        for t in range(rounds):
            context = tuples[t % n]
            action, probability = lin.predict(context, actions)
            lin.learn(context, action, t % 2, probability)

    matrix = np.array(full.X[:BATCH])

    def replays(rounds: int) -> None:
        for _ in range(-(-rounds // BATCH)):
            wide.replay(matrix, played)

    def partial(rounds: int) -> None:
        for _ in range(-(-rounds // BATCH)):
            fitted.partial_fit_bandit(X[:BATCH], log.label, log.bit, log.probability, log.greedy)

    def decides(rounds: int) -> None:
        for t in range(rounds):
            learner.decide(rows[t % n])

    def batch_decides(rounds: int) -> None:
        for _ in range(-(-rounds // BATCH)):
            fitted.decide(X[:BATCH])

    return {
        ("simulate", "`simulate` itself"): (
            lambda r: simulate(deepcopy(wide), full, rates=(0.2, 0.4), rounds=r),
            20_000,
        ),
        ("simulate", "scikit-learn: `fit`"): (fit, 20_000),
        ("replay", "`replay` itself, 1,000 rows at a time"): (replays, ROUNDS),
        ("replay", "scikit-learn: `partial_fit_bandit`, 1,000 rows at a time"): (partial, ROUNDS),
        ("decide", "`decide` itself"): (decides, ROUNDS),
        ("decide", "scikit-learn: `decide`, 1,000 rows at a time"): (batch_decides, ROUNDS),
        ("both", "`decide` and `learn` themselves"): (own, ROUNDS),
        ("both", "river: `learn_one` of the classifier, a dict"): (river_classifier, ROUNDS),
        ("both", "river: `pull` and `update` of the policy, a dict"): (river_policy, ROUNDS),
        ("both", "coba: `predict` and `learn`, a tuple"): (coba_learner, ROUNDS),
        ("default", "Fliptron: `decide` and `learn` themselves"): (lambda r: own(r, default), ROUNDS),
        ("default", "Fliptron in river: `pull` and `update` of the policy"): (
            lambda r: river_policy(r, default_policy),
            ROUNDS,
        ),
        ("default", "Fliptron in coba: `predict` and `learn`"): (lambda r: coba_learner(r, hosts[0]), ROUNDS),
        ("among", "Fliptron: the same with `eligible`, another label missing each time"): (own_among, ROUNDS),
        ("among", "Fliptron in coba: another action missing each time"): (coba_among, ROUNDS),
        ("", "coba: the same calls of a learner that does nothing"): (lambda r: coba_learner(r, Nothing()), ROUNDS),
        ("", "`np.array` of such a tuple"): (vectors, ROUNDS),
        ("", "`struct`, which is what the adapter uses, into a new vector"): (packed, ROUNDS),
        ("", "river: `predict_one` of the classifier, a dict"): (river_predict, ROUNDS),
        ("", "river's own LinUCB: `pull` and `update`"): (lambda r: river_policy(r, theirs), 60),
        ("", "coba's own LinUCB: `predict` and `learn`"): (coba_lin, 20),
    }


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    found: dict[str, list[str]] = {}
    heads = []
    for name in ("clicks", "digits"):
        data = load(name)
        heads += [f"{data.n_classes} labels × {data.n_features} features", "added"]
        times = best(contenders(data), REPEATS)
        first: dict[str, float] = {}
        for (against, what), ns in times.items():
            base = first.setdefault(against, ns)
            added = "" if not against or base is ns else f"{(ns - base) / 1000:+.1f}"
            found.setdefault(what, [what]).extend([f"{ns / 1000:.2f}", added])
    text = f"""# What an adapter adds to a decision

Microseconds of CPU per decision with RCNBF, whose own rounds are quick, so that what is added can be seen, and with
Fliptron, the default; least of {REPEATS} interleaved turns. The bar is 2 µs for scikit-learn and coba, where all
actions can be chosen; river's is only stated: it has dicts, and its policies keep statistics of every arm. Most of what
coba adds could not be less: its calls cost something even if nothing is done in them, and a tuple of Python numbers has
to become a vector, as three rows show. Made by
`make bench NAME=adapters`.

{table(["", *heads], list(found.values()))}"""
    print(save(folder / "benchmarks/results/adapters.md", text))


if __name__ == "__main__":
    main()
