"""What if the model is wrong? Flips that depend on the class, the label, the example or the time; classes not linear.

Beside Fliptron the two learners that need no model of the noise, at their defaults.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd

from fliptron import Dataset, load
from fliptron.experiments.plan import Spec, grid
from fliptron.experiments.roster import build
from fliptron.experiments.runner import about
from fliptron.report.statistics import interval, plus_minus
from fliptron.results import Run
from tabular import save, table

LEARNERS = ("Fliptron", "RidgeRegression", "Confidit")
ROUNDS, SEEDS = 100_000, range(10)
BURST, EVERY = 500, 5000
ASK = ("by class", "one label", "near the boundary", "bursts of ones")
"""What flips depend on."""
TABLES = ("digits", "clicks")
BENT = ("digits by threes", "xor", "rings")
NOISE = ((0.0, 0.0), (0.2, 0.4))
Flips = Callable[[int, int, int, int], tuple[float, float]]
"""(ρ0, ρ1) of a round: its number, the row, the right label, the played one."""


def specs(runs: pd.DataFrame) -> list[Spec]:
    names = [f"{name}: flips {how}" for name in TABLES for how in ASK]
    learners = {learner: {} for learner in LEARNERS}
    found = grid(datasets=names, rates=NOISE[:1], learners=learners, rounds=ROUNDS, seeds=SEEDS)
    return found + grid(datasets=BENT, rates=NOISE, learners=learners, rounds=ROUNDS, seeds=SEEDS)


@lru_cache
def dataset(name: str) -> Dataset:
    """A table, or one whose classes are not linear; with a constant."""
    if name in TABLES:
        return load(name)
    random = np.random.default_rng(7)
    if name == "digits by threes":
        digits = load("digits")
        return Dataset.of(digits.X, digits.y % 3, name=name)
    X = random.uniform(-1, 1, (5000, 2))
    y = (X[:, 0] * X[:, 1] > 0) if name == "xor" else np.searchsorted((0.4, 0.8), np.hypot(*X.T))
    return Dataset.of(np.c_[X, np.ones(len(X))], y.astype(int), name=name)


@lru_cache
def doubt(name: str) -> np.ndarray:
    """How near every row is to a boundary, from 0 to 1, by a logistic regression that is told the truth."""
    from sklearn.linear_model import LogisticRegression

    data = dataset(name)
    chances = np.sort(LogisticRegression(C=100.0, max_iter=2000).fit(data.X, data.y).predict_proba(data.X), axis=1)
    return np.asarray(1.0 - (chances[:, -1] - chances[:, -2]))


def flips(name: str, how: str) -> Flips:
    """How bits are flipped."""
    K = dataset(name).n_classes
    rho0, rho1 = np.linspace(0.3, 0.0, K), np.linspace(0.0, 0.6, K)
    near = doubt(name) if how == "near the boundary" else np.zeros(0)
    ways: dict[str, Flips] = {
        "by class": lambda t, row, y, label: (rho0[y], rho1[y]),
        "one label": lambda t, row, y, label: (0.4, 0.4) if label == 1 else (0.05, 0.05),
        "near the boundary": lambda t, row, y, label: (0.05 + 0.4 * near[row],) * 2,
        "bursts of ones": lambda t, row, y, label: (1.0, 0.0) if t % EVERY < BURST else (0.1, 0.2),
    }
    return ways[how]


def play_one(spec: Spec) -> Run:
    """A run, and its error in the second half."""
    name, _, how = spec.dataset.partition(": flips ")
    data = dataset(name)
    learner = build(spec.learner, data, seed=spec.seed, **spec.effective)
    random = np.random.default_rng([spec.seed, 5])
    rows, draws = random.integers(data.n_rows, size=spec.rounds), random.random(spec.rounds)
    rates = flips(name, how) if how else lambda *round_: spec.rates
    wrong = np.zeros(2, int)
    for t, row in enumerate(rows.tolist()):
        x, y = data.X[row], int(data.y[row])
        decision = learner.decide(x)
        right, (rho0, rho1) = decision.label == y, rates(t, row, y, decision.label)
        wrong[2 * t // spec.rounds] += not right
        learner.learn(x, decision, int(draws[t] >= rho1 if right else draws[t] < rho0))
    late = float(wrong[1] / (spec.rounds - spec.rounds // 2))
    return about(spec, error=float(wrong.sum() / spec.rounds), details={"late": late})


def write(runs: pd.DataFrame, docs: Path) -> list[Path]:
    cells = dict(iter(runs.groupby(["dataset", "rho0", "learner"])))
    rows, ratios = [], []
    for name, rho0 in dict.fromkeys((key[0], key[1]) for key in cells):
        means = {learner: cells[name, rho0, learner].error.mean() for learner in LEARNERS}
        ratios.append(means["Fliptron"] / min(means[other] for other in LEARNERS[1:]))
        found = [plus_minus(*interval(cells[name, rho0, learner].error.to_numpy())) for learner in LEARNERS]
        late = np.mean([_late(text) for text in cells[name, rho0, "Fliptron"].details])
        noise = "" if "flips" in name else f", {'(0, 0)' if rho0 == 0 else '(0.2, 0.4)'}"
        rows.append([f"{name.replace(': flips ', ', ')}{noise}", *found, f"{late:.4f}", f"{ratios[-1]:.2f}"])
    text = f"""# Where the model is wrong

Mean error of the played label after {ROUNDS:,} rounds ± half the 95 % interval over {len(SEEDS)} seeds; then Fliptron's
error in the second half of the rounds, and its error divided by the better of the other two, both at their defaults.
Flips by class: ρ0 falls from .3 to 0 and ρ1 rises from 0 to .6 with the class. One label: (.4, .4) where it is played,
(.05, .05) elsewhere. Near the boundary: both rates from .05 far from it to .45 on it, by a logistic regression. Bursts:
(.1, .2), and every {EVERY:,} rounds {BURST} bits in a row are 1. The last rows are of classes that no linear score can
tell. Made by `make study NAME=misfit`.

Fliptron's error is {min(ratios):.2f} to {max(ratios):.2f} times the better one's.

{table(["world", *LEARNERS, "second half", "÷ better"], rows)}"""
    return [save(docs / "tables/misfit.md", text)]


def _late(details: str) -> float:
    return float(json.loads(details)["late"])
