"""The workloads of the benchmark, seeded and made here: what a round costs does not depend on whose data it is."""

from __future__ import annotations

from functools import cache, partial
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from fliptron import Confidit, Dataset, Fliptron, RidgeRegression, load

FORMS = {"float64": "float64", "float32": "float32", "uint8": "float32"}
"""Storage of the examples, and precision of the weights that goes with it."""
KINDS = {
    "RidgeRegression": RidgeRegression,
    "Confidit": Confidit,
    "Fliptron, full": partial(Fliptron, form="full"),
    "Fliptron, axes": partial(Fliptron, form="axes"),
    "Fliptron, diagonal": partial(Fliptron, form="diagonal"),
}
"""Learners whose cost grows with d², and a form that does not."""


class Workload(NamedTuple):
    """Examples as their owner has them: whole numbers, dense or CSR."""

    title: str
    X: np.ndarray | sp.csr_array
    y: np.ndarray
    K: int

    def dataset(self, dtype: str) -> Dataset:
        """As the learners see it, rows of length 1."""
        return Dataset.of(self.X, self.y, classes=tuple(range(self.K)), dtype=dtype, name=self.title)


@cache
def workload(name: str) -> Workload:
    return {"A": digits, "B": images, "C": synsep, "D20": lambda: text(20), "D50": lambda: text(50)}[name]()


def digits() -> Workload:
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return Workload("10×64, digits", X, y, 10)


def images(n: int = 70_000) -> Workload:
    """MNIST's size and share of zeros, more than a cache holds even as bytes."""
    random = np.random.default_rng(0)
    X = random.integers(1, 256, size=(n, 784), dtype=np.uint8) * (random.random((n, 784), np.float32) < 0.19)
    return Workload("10×784, images", X, random.integers(10, size=n), 10)


def synsep() -> Workload:
    data = load("synsep", unit_norm=False, rows=20_000)
    X = sp.csr_array((data.X.data, data.X.indices, data.X.indptr), shape=(data.n_rows, 400))
    return Workload("9×400, SynSep, sparse", X, data.y, 9)


def text(K: int, d: int = 50_000, words: int = 100, n: int = 10_000) -> Workload:
    """Counts of words, drawn by Zipf's law."""
    random = np.random.default_rng(K)
    chances = 1.0 / (np.arange(d) + 10.0)
    drawn = random.choice(d, size=n * words, p=chances / chances.sum())
    X = sp.csr_array((np.ones(n * words), drawn, np.arange(0, n * words + 1, words)), shape=(n, d))
    X.sum_duplicates()
    X.data = np.minimum(X.data, 255.0)
    return Workload(f"{K}×50,000, text, {X.nnz // n} words", X, random.integers(K, size=n), K)
