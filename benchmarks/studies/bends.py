"""Do curves help where classes are not linear, and harm nowhere?

Made-up shapes with columns of noise beside them, and tables, all encoded, with curves and without.
"""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd

from fliptron import Dataset, load, simulate
from fliptron.experiments.paper import NOISE
from fliptron.experiments.plan import Spec, grid
from fliptron.experiments.roster import build
from fliptron.experiments.runner import about
from fliptron.results import Run
from tabular import pair, save, table

SHAPES = ("moons", "rings", "xor", "spirals")
EXTRA = (2, 10, 20)
HERE, PAPERS = ("digits", "iris", "wine", "breast_cancer"), ("optdigits", "usps", "fashion-features")
WIDE = PAPERS[1:]
"""Tables of so many columns that they play for SHORTER."""
RARE = ((0.02, 0.8), (0.02, 0.92))
SHORT, SHORTER, ROUNDS, SEEDS = 10_000, 20_000, 100_000, range(10)
PEERS, PEERS_NOISE = ("RidgeRegression", "Confidit"), ((0.2, 0.4),)
WAYS = ("straight", "curved")


def names() -> list[str]:
    return [*(f"{shape} + {extra}" for shape in SHAPES for extra in EXTRA), *HERE, *PAPERS]


def rounds_of(name: str) -> int:
    return SHORTER if name in WIDE else ROUNDS


def specs(runs: pd.DataFrame) -> list[Spec]:
    found = []
    for name in names():
        common = {"datasets": [f"{name}: {way}" for way in WAYS], "rounds": rounds_of(name), "seeds": SEEDS}
        found += grid(**common, rates=[*NOISE, *RARE], learners={"Fliptron": {}})
        found += grid(**common, rates=PEERS_NOISE, learners={peer: {} for peer in PEERS})
    return found


def columns(name: str) -> tuple[np.ndarray, np.ndarray]:
    """A table, or a shape and columns of noise."""
    if name in PAPERS:
        data = load(name, unit_norm=False)
        return np.asarray(data.X), np.asarray(data.y)
    if name in HERE:
        from sklearn import datasets

        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        return X, y
    shape, _, extra = name.split(" ")
    random, n = np.random.default_rng(len(name)), 10_000
    angle, y = random.uniform(0, 2 * np.pi, n), random.integers(0, 2, n)
    if shape == "moons":
        half = angle / 2
        X = np.column_stack([np.cos(half), np.sin(half)]) * np.where(y, -1, 1)[:, None] + [0.5, 0.25] * y[:, None]
        X += random.normal(0, 0.1, X.shape)
    elif shape == "rings":
        y = random.integers(0, 3, n)
        X = ((1 + y + random.normal(0, 0.15, n)) * np.array([np.cos(angle), np.sin(angle)])).T
    elif shape == "xor":
        X = random.uniform(-1, 1, (n, 2))
        y = (X[:, 0] * X[:, 1] > 0).astype(int)
    else:
        turn = 2.5 * np.pi * np.sqrt(random.random(n))
        X = (turn * np.array([np.cos(turn + np.pi * y), np.sin(turn + np.pi * y)])).T + random.normal(0, 0.3, (n, 2))
    return np.hstack([X, random.standard_normal((n, int(extra)))]), y


@lru_cache
def dataset(name: str) -> Dataset:
    kind, _, way = name.partition(": ")
    return Dataset.of_records(*columns(kind), name=name, curves="auto" if way == "curved" else 0)


def play_one(spec: Spec) -> Run:
    """A run with curves, or without."""
    data = dataset(spec.dataset)
    learner = build(spec.learner, data, seed=spec.seed, **spec.effective)
    trace = simulate(learner, data, rates=spec.rates, rounds=spec.rounds, seed=spec.seed)
    at = int(np.searchsorted(trace.rounds, SHORT))
    return about(spec, error=trace.error, seconds=trace.seconds, details={"short": float(trace.errors[at])})


def batch(name: str) -> tuple[float, float]:
    """The errors of a linear and of a kernel machine, told the truth, on rows they have not seen."""
    from sklearn.model_selection import cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    X, y = columns(name)
    rows = np.random.default_rng(0).permutation(len(y))[:3000]
    machines = (SVC(kernel="linear"), SVC())
    found = [cross_val_score(make_pipeline(StandardScaler(), each), X[rows], y[rows], cv=3).mean() for each in machines]
    return 1 - found[0], 1 - found[1]


def write(runs: pd.DataFrame, docs: Path) -> list[Path]:
    rows, harm, bent, possible = [], [], [], []
    runs = runs.assign(short=[json.loads(each)["short"] for each in runs.details])
    for name in names():
        linear, kernel = batch(name)
        line = [name, f"{linear:.3f}", f"{kernel:.3f}"]
        for rates in (*NOISE, *RARE):
            straight, curved = (_cell(runs, f"{name}: {way}", "Fliptron", rates) for way in WAYS)
            ratios = [curved[column].mean() / straight[column].mean() for column in ("short", "error")]
            harm += [(ratio, name, rates) for ratio in ratios]
            if name not in HERE + PAPERS:
                bent.append(ratios[1])
                possible += [ratios[1]] if kernel <= linear / 2 else []
            line.append(" ".join(f"{ratio:.2f}" for ratio in ratios))
        for learner in PEERS:
            straight, curved = (_cell(runs, f"{name}: {way}", learner, PEERS_NOISE[0]) for way in WAYS)
            line.append(f"{curved.error.mean() / straight.error.mean():.2f}")
        seconds = [_cell(runs, f"{name}: {way}", "Fliptron", NOISE[3]).seconds.median() for way in WAYS]
        line.append(" → ".join(f"{each / rounds_of(name) * 1e6:.0f}" for each in seconds))
        rows.append(line)
    harmed = [each for each in harm if each[0] > 1.05]
    worst = max(harm)
    text = f"""# Curves

Fliptron's error with curves divided by its error without, after {SHORT:,} and after {ROUNDS:,} rounds
({SHORTER:,} on {" and ".join(WIDE)}), {len(SEEDS)} seeds, at the paper's noises and two of rare clicks; then the same
of two peers at (0.2, 0.4) at the end; then µs per round without and with curves. "Linear" and "kernel" are the errors
of scikit-learn's SVC with either kernel, told the truth, on rows it has not seen (3,000 rows, three folds). A shape's
number is that of its columns of noise. Made by `make study NAME=bends`.

- On the made-up shapes curves bring the error to a third or less in {sum(each <= 1 / 3 for each in bent)} of
  {len(bent)} cells at the end; of the {len(possible)} cells where the kernel halves the error, in
  {sum(each <= 1 / 3 for each in possible)}. What is left are mostly the rarest clicks, where so many
  rounds tell too little, and shapes among so much noise that the kernel machine fails too.
- In {len(harmed)} of all {len(harm)} cells they cost more than 5 %; the worst is {worst[0]:.2f} ({worst[1]},
  {pair(worst[2])}). USPS, with its 256 columns, has no room for curves.

{table(["table", "linear", "kernel", *map(pair, (*NOISE, *RARE)), "ridge", "Confidit", "µs"], rows)}"""
    return [save(docs / "tables/bends.md", text)]


def _cell(runs: pd.DataFrame, name: str, learner: str, rates: tuple[float, float]) -> pd.DataFrame:
    at = (runs.dataset == name) & (runs.learner == learner) & (runs.rho0 == rates[0]) & (runs.rho1 == rates[1])
    return runs[at]
