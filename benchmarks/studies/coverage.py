"""Do the plateaus' intervals cover where no round is quite certain? On made-up logs, the hardest for them.

The accuracy of the label held best is 1 − 0.6·e^(−k·m) for margins m uniform on [0, 1]: it creeps up and is never 1.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd

from fliptron.experiments.plan import Spec, grid
from fliptron.experiments.runner import about
from fliptron.results import Run
from tabular import save, table

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from made_up import plateaus, smooth

RATES = (0.2, 0.4)
STEEPNESS = (2, 3, 4, 8)
ROUNDS = (50_000, 200_000)
SEEDS = range(60)


def specs(runs: pd.DataFrame) -> list[Spec]:
    """One log per steepness k, length and seed. No learner plays; RCINE stands for the plateaus, which it reads."""
    learners = {"RCINE": {"k": STEEPNESS}}
    return [
        spec
        for rounds in ROUNDS
        for spec in grid(datasets=["smooth"], rates=[RATES], learners=learners, rounds=rounds, seeds=SEEDS)
    ]


def play_one(spec: Spec) -> Run:
    found = plateaus(smooth(spec.rounds, spec.params["k"], seed=spec.seed, rates=spec.rates), 10)
    return about(
        spec,
        rho0_hat=found.rates.rho0,
        rho1_hat=found.rates.rho1,
        intervals={name: list(ends) for name, ends in found.intervals.items()},
        verdict=found.verdict,
    )


def write(runs: pd.DataFrame, docs: Path) -> list[Path]:
    rows = []
    for (k, n), cell in runs.assign(k=[json.loads(params)["k"] for params in runs.params]).groupby(["k", "rounds"]):
        top = 1 - 0.6 * (np.exp(-0.8 * k) - np.exp(-k)) / (0.2 * k)
        ends = [json.loads(intervals) for intervals in cell.intervals]
        covered = [
            np.mean([each[name][0] <= true <= each[name][1] for each in ends])
            for name, true in zip(("rho0", "rho1"), RATES, strict=True)
        ]
        level = np.mean(cell.verdict == "identified")
        percent = [f"{share:.0%}" for share in (level, *covered)]
        rows.append([f"{k}", f"{top:.3f}", f"{n:,}", *percent, f"{cell.rho1_hat.mean():.3f}"])
    columns = ["k", "accuracy of the surest 20 %", "rounds", "called identified", "ρ0 covered", "ρ1 covered", "mean ρ̂1"]
    return [save(docs / "tables/coverage.md", table(columns, rows))]
