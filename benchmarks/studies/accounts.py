"""Does Fliptron's account of the noise cover the truth, and when does it call the rates identified?

Tables are standardised and have a constant. Besides the paper's noises there are two of rare clicks, and three that no
pair of rates describes: flips that depend on the class, a burst of ones, and explored bits that somebody inverts.
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

PAPERS = ("usps", "fashion-features")
TABLES = ("digits", "iris", "wine", "breast_cancer", *PAPERS, "overlap-4", "overlap-8")
RARE = ((0.02, 0.8), (0.02, 0.92))
GAMMA = 0.01
ROUNDS, SEEDS = 60_000, range(50)
ODD = {"by class": (0.01, 0.011), "burst": (0.01, 0.012), "explored bits inverted": (0.01, 0.013)}
"""Noises that are not two rates, and the pair that stands for each."""
_NAMES = ("rho0", "rho1", "accuracy")


def specs(runs: pd.DataFrame) -> list[Spec]:
    learners = {"Fliptron": {"gamma": [GAMMA]}}
    plain = grid(datasets=TABLES, rates=[*NOISE, *RARE], learners=learners, rounds=ROUNDS, seeds=SEEDS)
    return plain + grid(datasets=["digits"], rates=ODD.values(), learners=learners, rounds=ROUNDS, seeds=SEEDS)


@lru_cache
def standardised(name: str) -> Dataset:
    """A table with every feature standardised and a constant, each row scaled to length 1."""
    if name.startswith("overlap"):
        K = int(name.rpartition("-")[2])
        random = np.random.default_rng(K)
        X = random.standard_normal((20_000, K + 2))
        y = (X @ random.standard_normal((K + 2, K)) + 4.0 / K * random.gumbel(size=(20_000, K))).argmax(axis=1)
    elif name in PAPERS:
        X, y = (np.asarray(each) for each in (load(name, unit_norm=False).X, load(name).y))
    else:
        from sklearn import datasets

        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    X = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
    return Dataset.of(np.hstack([X, np.ones((len(y), 1))]), y, name=name)


def play_one(spec: Spec) -> Run:
    """The estimate after the last round, and the true accuracy."""
    dataset = standardised(spec.dataset)
    learner = build(spec.learner, dataset, seed=spec.seed, **spec.effective)
    odd = next((name for name, rates in ODD.items() if rates == spec.rates), None)
    if odd is None:
        trace = simulate(learner, dataset, rates=spec.rates, rounds=spec.rounds, seed=spec.seed)
        error, seconds = trace.error, trace.seconds
    else:
        error, seconds = play_odd(learner, dataset, odd, spec.rounds, spec.seed), None
    found = learner.estimate()
    return about(
        spec,
        error=error,
        seconds=seconds,
        rho0_hat=found.rates.rho0,
        rho1_hat=found.rates.rho1,
        intervals={name: list(ends) for name, ends in found.intervals.items()},
        verdict=found.verdict,
        details={"reason": found.reason, "alarms": len(learner.alarms)},
    )


def play_odd(learner: object, dataset: Dataset, kind: str, rounds: int, seed: int) -> float:
    """Rounds whose bits no pair of rates describes; the error."""
    random, wrong = np.random.default_rng(seed), 0
    rows, coins = random.integers(dataset.n_rows, size=rounds), random.random(rounds)
    rho0, rho1 = np.linspace(0.3, 0.0, dataset.n_classes), np.linspace(0.0, 0.6, dataset.n_classes)
    for t, (row, coin) in enumerate(zip(rows, coins, strict=True)):
        x, y = dataset.X[row], int(dataset.y[row])
        decision = learner.decide(x)
        right = decision.label == y
        low, high = (rho0[y], rho1[y]) if kind == "by class" else (0.1, 0.2)
        bit = int(coin >= high if right else coin < low)
        if kind == "burst" and rounds // 2 <= t < rounds // 2 + rounds // 20:
            bit = 1
        if kind == "explored bits inverted" and decision.label != decision.greedy:
            bit = 1 - bit
        learner.learn(x, decision, bit)
        wrong += not right
    return wrong / rounds


def write(runs: pd.DataFrame, docs: Path) -> list[Path]:
    rows = []
    for name in TABLES:
        for rates in (*NOISE, *RARE):
            cell = runs[(runs.dataset == name) & (runs.rho0 == rates[0]) & (runs.rho1 == rates[1])]
            rows.append([name, pair(rates), *_row(cell, rates)])
    for name, rates in ODD.items():
        cell = runs[(runs.rho0 == rates[0]) & (runs.rho1 == rates[1])]
        rows.append(["digits", name, *_row(cell, None)])
    text = f"""# Can the account be believed?

What `Fliptron(gamma={GAMMA}).estimate()` says after {ROUNDS:,} rounds, {len(SEEDS)} seeds: how often it calls the rates
identified, and how often the 95 % intervals of ρ0, ρ1 and the true accuracy then cover; the same for the other seeds,
with the reason that was given most often; the mean width of the intervals of ρ0 and ρ1. Where flips depend on the
class, come in a burst or are inverted on purpose, there is no pair of rates to cover, only an accuracy. Made by
`make study NAME=accounts`.

{table(["table", "noise", "identified", "covered", "others covered", "most often since", "width"], rows)}"""
    return [save(docs / "tables/accounts.md", text)]


def _row(cell: pd.DataFrame, rates: tuple[float, float] | None) -> list[str]:
    known = cell.verdict == "identified"
    ends = [json.loads(each) for each in cell.intervals]
    widths = [f"{np.mean([each[name][1] - each[name][0] for each in ends]):.3f}" for name in _NAMES[:2]]
    reasons = [json.loads(each)["reason"].split(":")[0] for each in cell.details[~known]]
    most = max(set(reasons), key=reasons.count) if reasons else "–"
    covers = (_covered(cell[which], rates) for which in (known, ~known))
    return [f"{known.sum()} of {len(cell)}", *covers, most, ", ".join(widths)]


def _covered(cell: pd.DataFrame, rates: tuple[float, float] | None) -> str:
    if not len(cell):
        return "–"
    shares = []
    for name in _NAMES if rates else _NAMES[2:]:
        hits = []
        for error, text in zip(cell.error, cell.intervals, strict=True):
            low, high = json.loads(text).get(name, (0.0, 1.0))
            truth = 1.0 - error if name == "accuracy" else (rates or ())[_NAMES.index(name)]
            hits.append(low - 1e-9 <= truth <= high + 1e-9)
        shares.append(f"{np.mean(hits):.0%}")
    return ", ".join(shares)
