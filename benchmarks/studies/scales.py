"""Do the scale, the offset, the order or the form of a table's columns matter?

Tables are encoded as they are played, in several disguises, and compared with the same table standardised beforehand,
all rows at once, with a constant. No curves, so that nothing else differs.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd

from fliptron import Dataset, simulate
from fliptron.experiments.plan import Spec, grid
from fliptron.experiments.roster import build
from fliptron.experiments.runner import about
from fliptron.report.statistics import interval, plus_minus
from fliptron.results import Run
from tabular import save, table

TABLES = ("digits", "iris", "wine", "breast_cancer", "taste", "age and income", "one threshold", "99 to 1")
DISGUISES = ("beforehand", "encoded", "times 10^±3", "plus 100", "shuffled", "words")
LEARNERS = {"Fliptron": {}, "RidgeRegression": {}, "Confidit": {}}
ROUNDS, SEEDS, RATES = 50_000, range(10), (0.2, 0.4)


def specs(runs: pd.DataFrame) -> list[Spec]:
    names = [f"{name}: {how}" for name in TABLES for how in DISGUISES if how != "words" or name == "taste"]
    return grid(datasets=names, rates=[RATES], learners=LEARNERS, rounds=ROUNDS, seeds=SEEDS)


def columns(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Numbers, labels and, of one table, a column of words."""
    random = np.random.default_rng(len(name))
    n = 10_000
    if name == "taste":
        X, city = random.standard_normal((n, 5)), random.integers(0, 4, n)
        value = np.hstack([X, 1.5 * np.eye(4)[city]]) @ random.standard_normal((9, 4))
        return X, value.argmax(axis=1), np.array(["Bern", "Lima", "Oslo", "Rome"], dtype=object)[city]
    if name == "age and income":
        X = np.column_stack([random.integers(18, 80, n), random.lognormal(10.3, 0.6, n)])
        return X, (X[:, 0] / 20 + X[:, 1] / 15_000 > 4.2).astype(int), None
    if name == "one threshold":
        X = random.uniform(5, 15, (n, 1))
        return X, (X[:, 0] > 9).astype(int), None
    if name == "99 to 1":
        X = random.standard_normal((n, 3))
        return X, (X[:, 0] > 2.33).astype(int), None
    from sklearn import datasets

    return *getattr(datasets, f"load_{name}")(return_X_y=True), None


@lru_cache
def dataset(name: str) -> Dataset:
    """A table in one of its disguises."""
    kind, how = name.split(": ")
    X, y, words = columns(kind)
    if words is not None and how != "words":
        X = np.hstack([X, words[:, None] == np.unique(words)])
    random = np.random.default_rng(0)
    if how == "beforehand":
        X = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
        return Dataset.of(np.hstack([X.astype(float), np.ones((len(y), 1))]), y, name=name)
    if how == "times 10^±3":
        X = X * 10.0 ** random.uniform(-3, 3, X.shape[1])
    if how == "plus 100":
        X = X + 100.0
    if how == "shuffled":
        X = X[:, random.permutation(X.shape[1])]
    records = {f"x{j}": X[:, j].astype(float) for j in range(X.shape[1])}
    return Dataset.of_records(records | ({"city": words} if how == "words" else {}), y, name=name, curves=0)


def play_one(spec: Spec) -> Run:
    """A run on a table in disguise."""
    data = dataset(spec.dataset)
    learner = build(spec.learner, data, seed=spec.seed, **spec.effective)
    trace = simulate(learner, data, rates=spec.rates, rounds=spec.rounds, seed=spec.seed)
    return about(spec, error=trace.error, seconds=trace.seconds)


def write(runs: pd.DataFrame, docs: Path) -> list[Path]:
    rows, worst = [], dict.fromkeys(LEARNERS, 0.0)
    for name in TABLES:
        for learner in LEARNERS:
            cells = {
                how: cell.error.to_numpy()
                for how in DISGUISES
                if len(cell := runs[(runs.dataset == f"{name}: {how}") & (runs.learner == learner)])
            }
            base = cells["beforehand"].mean()
            ratios = {how: errors.mean() / base for how, errors in cells.items()}
            worst[learner] = max(worst[learner], *ratios.values())
            told = [f"{ratios[how]:.2f}" if how in ratios else "–" for how in DISGUISES[1:]]
            rows.append([name, learner, plus_minus(*interval(cells["beforehand"])), *told])
    most = ", ".join(f"{name} {value:.2f}" for name, value in worst.items())
    text = f"""# Scales, offsets, order and words

Error after {ROUNDS:,} rounds at {RATES}, {len(SEEDS)} seeds: of the table standardised beforehand with a constant
(± half the 95 % interval), and, divided by it, of the same table encoded as it is played, in several disguises. "Words"
gives a column of words where the others have it one-hot; a word counts as much as one number, and less than several
columns that are standardised. The largest ratio: {most}. Made by `make study NAME=scales`.

{table(["table", "learner", "beforehand", *DISGUISES[1:]], rows)}"""
    return [save(docs / "tables/scales.md", text)]
