"""How well are the flip rates estimated? The paper's table, our NREst, and margin plateaus, side by side.

Each cell (data set × noise × seed) plays 500,000 rounds twice: RCNBF with the true rates and γ = 0.2, whose last
50,000 rounds (N_s) NREst is trained on, as in the paper; and LeastMeanSquares with γ = 0.05, whose rounds the
plateaus read as they come. Iris, with three classes, explores with γ = 0.4 for NREst: at 0.2 only a fifth of its rows
are wrong, too few for NREst, which a line below the table shows.
"""

from __future__ import annotations

import itertools
import json
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from fliptron import NREst, Plateaus, simulate
from fliptron.arrays import Array, Csr
from fliptron.datasets.dataset import Dataset
from fliptron.experiments.paper import NOISE, PUBLISHED
from fliptron.experiments.plan import Spec, grid
from fliptron.experiments.roster import build
from fliptron.experiments.runner import about, data
from fliptron.report.statistics import param
from fliptron.results import Run
from tabular import save, table

DATA = ("iris", "synsep", "optdigits", "usps")
ROUNDS = 500_000
WINDOW = 50_000
SEEDS = range(10)
GAMMA = {"iris": 0.4}  # of RCNBF, where it is not 0.2


def specs(runs: pd.DataFrame) -> list[Spec]:
    """Seeds outermost: what is there after an interruption is whole seeds."""
    found = []
    for seed in SEEDS:
        common = {"rates": NOISE, "rounds": ROUNDS, "seeds": [seed]}
        found += grid(datasets=DATA, learners={"LeastMeanSquares": {"gamma": [0.05]}}, **common)
        for name in DATA:
            gammas = sorted({0.2, GAMMA.get(name, 0.2)})
            found += grid(datasets=[name], learners={"RCNBF": {"gamma": gammas}}, **common)
    return found


def play_one(spec: Spec) -> Run:
    """One estimate: NREst's from the rounds of RCNBF, the plateaus' from those of LeastMeanSquares."""
    dataset, checksum = data(spec)
    learner = build(spec.learner, dataset, seed=spec.seed, **spec.effective)
    trace = simulate(learner, dataset, rates=spec.rates, rounds=spec.rounds, seed=spec.seed, log=True)
    began = time.thread_time()
    if spec.learner == "RCNBF":
        estimator = NREst.for_dataset(spec.dataset, n_classes=dataset.n_classes, seed=spec.seed)
        last = trace.log.part(spec.rounds - WINDOW, spec.rounds)
        estimator.absorb(replace(last, X=rows_of(dataset, last.row)))
    else:
        estimator = Plateaus(n_classes=dataset.n_classes)
        estimator.observe(trace.log)
    found = estimator.estimate()
    return about(
        spec,
        error=trace.error,
        rho0_hat=found.rates.rho0,
        rho1_hat=found.rates.rho1,
        intervals={name: list(ends) for name, ends in found.intervals.items()},
        verdict=found.verdict,
        seconds=time.thread_time() - began,
        data_sha256=checksum,
    )


def rows_of(dataset: Dataset, rows: Array) -> Array:
    if not isinstance(dataset.X, Csr):
        return dataset.X[rows]
    whole = np.zeros((dataset.n_rows, dataset.n_features), np.float32)
    whole[np.repeat(np.arange(dataset.n_rows), np.diff(dataset.X.indptr)), dataset.X.indices] = dataset.X.data
    return whole[rows]


def write(runs: pd.DataFrame, docs: Path) -> list[Path]:
    """For each cell the paper's figure, our NREst's and the plateaus', with their errors."""
    usual = param(runs, "gamma") == runs.dataset.map(lambda name: GAMMA.get(name, 0.2))
    methods = {"NREst": runs[(runs.learner == "RCNBF") & usual], "plateaus": runs[runs.learner == "LeastMeanSquares"]}
    worst: dict[str, list[float]] = {"paper": [], "NREst": [], "plateaus": []}
    single: dict[str, list[float]] = {"NREst": [], "plateaus": []}
    rows, covered = [], []
    for name, at in itertools.product(DATA, range(len(NOISE))):
        rates, published = NOISE[at], PUBLISHED[name][at]
        cells = [name, three(rates), three(published)]
        worst["paper"].append(np.abs(np.subtract(published, rates)).max())
        for method, all_runs in methods.items():
            cell = all_runs[(all_runs.dataset == name) & (all_runs.rho0 == rates[0]) & (all_runs.rho1 == rates[1])]
            found = cell[["rho0_hat", "rho1_hat"]].to_numpy()
            errors = np.abs(found - rates)
            worst[method].append(np.abs(found.mean(axis=0) - rates).max())
            single[method] += errors.ravel().tolist()
            cells.append(f"{three(found.mean(axis=0))} ({errors.max():.3f}; {len(found)} seeds)")
        ends = [(each["rho0"], each["rho1"]) for each in map(json.loads, cell.intervals)]
        hits = [low <= true <= high for both in ends for true, (low, high) in zip(rates, both, strict=True)]
        covered += hits
        rows.append([*cells, f"{np.mean(hits):.0%}"])
    few = runs[(runs.learner == "RCNBF") & ~usual]
    off = np.abs(few[["rho0_hat", "rho1_hat"]].to_numpy() - few[["rho0", "rho1"]].to_numpy()).max(axis=1)
    columns = ["data", "truth", "paper", "NREst: mean (worst error)", "plateaus: mean (worst error)", "coverage"]
    summary = [
        ["worst error of a cell's mean", *(f"{max(each):.3f}" for each in worst.values())],
        ["mean error of a single estimate", "–", *(f"{np.mean(each):.4f}" for each in single.values())],
        ["worst single estimate", "–", *(f"{np.max(each):.4f}" for each in single.values())],
        ["95 % intervals that cover", "–", "–", f"{np.mean(covered):.1%} of {len(covered)}"],
    ]
    text = f"""{table(columns, rows)}

{table(["over all cells", *worst], summary)}

NREst on Iris with γ = 0.2: mean error {off.mean():.3f}, worst {off.max():.3f} ({len(off)} estimates)."""
    return [save(docs / "tables/rates.md", text)]


def three(rates: Array) -> str:
    return f"{rates[0]:.3f}, {rates[1]:.3f}"
