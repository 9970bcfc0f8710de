"""Does RCINE, which must find the rates, do as well as RCNBF, which is told the true ones?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from fliptron.experiments.paper import NOISE as ALL
from fliptron.experiments.plan import Spec, grid
from fliptron.report.statistics import interval, plus_minus
from tabular import pair, save, table

DATA = ("digits", "optdigits")
NOISE = tuple(rates for rates in ALL if rates not in ((0.0, 0.0), (0.25, 0.25)))
ROUNDS = 1_000_000
SEEDS = range(10)


def specs(runs: pd.DataFrame) -> list[Spec]:
    learners = {name: {"gamma": [0.2]} for name in ("RCNBF", "RCINE")}
    return grid(datasets=DATA, rates=NOISE, learners=learners, rounds=ROUNDS, seeds=SEEDS)


def write(runs: pd.DataFrame, docs: Path) -> list[Path]:
    rows = []
    for name in DATA:
        for rates in NOISE:
            cell = runs[(runs.dataset == name) & (runs.rho0 == rates[0]) & (runs.rho1 == rates[1])]
            told, guessed = (cell[cell.learner == each].sort_values("seed") for each in ("RCNBF", "RCINE"))
            ratio = guessed.error.to_numpy() / told.error.to_numpy()
            columns = (told.error, guessed.error, ratio, guessed.rho0_hat, guessed.rho1_hat)
            rows.append([name, pair(rates), *(plus_minus(*interval(np.asarray(each, float))) for each in columns)])
    text = f"""RCINE (plateaus, a refresh every 5,000 rounds) and RCNBF with the true rates, both with γ = 0.2, after
{ROUNDS:,} rounds; mean ± half the 95 % interval over {len(SEEDS)} seeds; the ratio is of paired runs.
Made by `make study NAME=rcine`.

{table(["data", "(ρ0, ρ1)", "RCNBF, true rates", "RCINE", "ratio", "ρ̂0", "ρ̂1"], rows)}"""
    return [save(docs / "tables/rcine.md", text)]
