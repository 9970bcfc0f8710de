"""One round of learning from a bit, as others would do it: each plays so many rounds and returns nothing.

They do what their users would write. NumPy, the authors' structure and scikit-learn draw their random numbers ahead.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

import numba
import numpy as np
import scipy.sparse as sp

from fliptron import Dataset
from workloads import Workload

GAMMA, RATES = 0.1, (0.2, 0.4)
Play = Callable[[int], None]


def drawn(n_rows: int, K: int, rounds: int) -> list[list]:
    random = np.random.default_rng(0)
    rows, labels = random.integers(n_rows, size=rounds), random.integers(K, size=rounds)
    return [rows.tolist(), random.random(rounds).tolist(), labels.tolist(), random.random(rounds).tolist()]


def numpy_loop(work: Workload, data: Dataset) -> Play:
    """RCNBF on two rows of W, the best plain NumPy does."""
    K, d, y, (rho0, rho1) = work.K, data.n_features, data.y, RATES
    beta = 1 - rho0 - rho1
    sparse = sp.issparse(work.X)

    def dense(rounds: int) -> None:
        W, X = np.zeros((K, d)), data.X
        for row, e, other, u in zip(*drawn(data.n_rows, K, rounds), strict=True):
            x = X[row]
            greedy = (W @ x).argmax()
            label = other if e < GAMMA else greedy
            p = GAMMA / K + (1 - GAMMA if label == greedy else 0)
            bit = u >= rho1 if label == y[row] else u < rho0
            W[greedy] -= x
            W[label] += (bit - rho0) / (beta * p) * x

    def by_feature(rounds: int) -> None:
        W, X = np.zeros((d, K)), data.X
        for row, e, other, u in zip(*drawn(data.n_rows, K, rounds), strict=True):
            start, stop = X.indptr[row], X.indptr[row + 1]
            places, values = X.indices[start:stop], X.data[start:stop]
            greedy = (values @ W[places]).argmax()
            label = other if e < GAMMA else greedy
            p = GAMMA / K + (1 - GAMMA if label == greedy else 0)
            bit = u >= rho1 if label == y[row] else u < rho0
            W[places, greedy] -= values
            W[places, label] += (bit - rho0) / (beta * p) * values

    return by_feature if sparse else dense


@numba.njit
def whole_matrix(X, y, rounds, gamma, rho0, rho1, W, errors, log):  # type: ignore[no-untyped-def]
    """The published code's structure, compiled as theirs is: per round a vector of probabilities, a
    K×d outer product added to all of W, a copy of x to the log, and the running error rate."""
    n_classes, n_features = W.shape
    beta, wrong = 1 - rho0 - rho1, 0
    for t in range(rounds):
        row = np.random.randint(0, X.shape[0])
        x = X[row].copy().reshape(n_features, 1)
        greedy = np.argmax(np.dot(W, x).ravel())
        probabilities = np.full(n_classes, gamma / n_classes)
        probabilities[greedy] += 1 - gamma
        label = min(np.searchsorted(np.cumsum(probabilities), np.random.random()), n_classes - 1)
        correct = label == y[row]
        bit = np.random.random() >= rho1 if correct else np.random.random() < rho0
        step = np.zeros((n_classes, 1))
        step[label, 0] = (bit - rho0) / (beta * probabilities[label])
        step[greedy, 0] -= 1
        W += np.kron(step, x.T)
        log[t, :n_features] = x[:, 0]
        log[t, n_features], log[t, n_features + 1] = label, bit
        wrong += not correct
        errors[t] = wrong / (t + 1)


def authors_structure(work: Workload, data: Dataset) -> Play:
    K, d, y = work.K, data.n_features, data.y
    X = _unit(work.X.toarray() if sp.issparse(work.X) else work.X)

    def play(rounds: int) -> None:
        W, errors, log = np.zeros((K, d)), np.zeros(rounds), np.zeros((rounds, d + 2))
        whole_matrix(X, y, rounds, GAMMA, *RATES, W, errors, log)

    return play


def vowpal_driver(work: Workload, data: Dataset) -> Play:
    """`vw --cb_explore` over a log of rounds that is already in its own cache: nothing is parsed but bytes."""
    import vowpalwabbit

    folder = Path(tempfile.mkdtemp())
    made: dict[int, str] = {}

    def play(rounds: int) -> None:
        if rounds not in made:
            path = folder / f"{rounds}.txt"
            rows, _, labels, bits = drawn(data.n_rows, work.K, rounds)
            lines = (
                f"{label + 1}:{-int(u < 0.5)}:0.1 | {text}"
                for label, u, text in zip(labels, bits, _texts(work.X, rows), strict=True)
            )
            path.write_text("\n".join(lines) + "\n")
            made[rounds] = f"--cb_explore {work.K} --epsilon 0.1 --cb_type dm -b 20 -d {path} -c --quiet"
            vowpalwabbit.Workspace(made[rounds]).finish()  # writes the cache
        vowpalwabbit.Workspace(made[rounds]).finish()

    return play


def vowpal_python(work: Workload, data: Dataset) -> Play:
    """Two calls per round, `predict` and `learn`, on text made ahead."""
    import vowpalwabbit

    texts = _texts(work.X, range(min(data.n_rows, 2000)))

    def play(rounds: int) -> None:
        model = vowpalwabbit.Workspace(f"--cb_explore {work.K} --epsilon 0.1 --cb_type dm -b 20 --quiet")
        random = np.random.default_rng(0)
        for t in range(rounds):
            text = texts[t % len(texts)]
            chances = model.predict("| " + text)
            label = min(int(np.searchsorted(np.cumsum(chances), random.random())), work.K - 1)
            model.learn(f"{label + 1}:{-(t % 2)}:{chances[label]:.4f} | {text}")
        model.finish()

    return play


def river_models(work: Workload, data: Dataset) -> Play:
    """River: a linear regression of the bit for every label, on dictionaries made ahead."""
    from river import linear_model

    rows = [dict(_pairs(work.X, row)) for row in range(min(data.n_rows, 500))]

    def play(rounds: int) -> None:
        models = [linear_model.LinearRegression() for _ in range(work.K)]
        random = np.random.default_rng(0)
        for t in range(rounds):
            x = rows[t % len(rows)]
            label = max(range(work.K), key=lambda r: models[r].predict_one(x))
            if random.random() < GAMMA:
                label = int(random.integers(work.K))
            models[label].learn_one(x, t % 2)

    return play


def sgd_classifier(work: Workload, data: Dataset) -> Play:
    """scikit-learn's SGDClassifier, told the truth: `predict` and `partial_fit` of one row."""
    from sklearn.linear_model import SGDClassifier

    X = sp.csr_matrix(work.X) if sp.issparse(work.X) else _unit(work.X[:2000])

    def play(rounds: int) -> None:
        model = SGDClassifier(loss="perceptron", learning_rate="constant", eta0=1.0)
        model.partial_fit(X[:1], data.y[:1], classes=np.arange(work.K))
        for t in range(rounds):
            at = t % 2000
            model.predict(X[at : at + 1])
            model.partial_fit(X[at : at + 1], data.y[at : at + 1])

    return play


def lin_greedy(work: Workload, data: Dataset) -> Play:
    """MABWiser's LinGreedy, ridge regression with ε-greedy choice: `predict` and `partial_fit` of one row."""
    from mabwiser.mab import MAB, LearningPolicy

    X = _unit(work.X[:500])

    def play(rounds: int) -> None:
        bandit = MAB(list(range(work.K)), LearningPolicy.LinGreedy(epsilon=GAMMA), seed=0)
        start = np.arange(work.K)
        bandit.fit(decisions=start, rewards=np.zeros(work.K), contexts=X[: work.K])
        for t in range(rounds):
            x = X[t % 500][None]
            label = bandit.predict(x)
            bandit.partial_fit(decisions=[label], rewards=[t % 2], contexts=x)

    return play


PEERS = {
    "NumPy loop": (numpy_loop, 4000),
    "authors' structure": (authors_structure, 4000),
    "Vowpal Wabbit, driver on its cache": (vowpal_driver, 4000),
    "Vowpal Wabbit, Python": (vowpal_python, 1000),
    "river, linear regressions": (river_models, 200),
    "scikit-learn SGDClassifier (told the truth)": (sgd_classifier, 300),
}
"""Contender and rounds per turn."""


def _unit(X: np.ndarray) -> np.ndarray:
    return X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12)


def _pairs(X: np.ndarray | sp.csr_array, row: int) -> list[tuple[str, float]]:
    x = sp.csr_array(X[[row]], dtype=float)
    values = x.data / max(np.linalg.norm(x.data), 1e-12)
    return [(f"f{j}", value) for j, value in zip(x.indices.tolist(), values.tolist(), strict=True)]


def _texts(X: np.ndarray | sp.csr_array, rows: Iterable[int]) -> list[str]:
    texts = {row: " ".join(f"{name}:{value:.5g}" for name, value in _pairs(X, row)) for row in set(rows)}
    return [texts[row] for row in rows]
