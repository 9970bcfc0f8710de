"""After all labels are permuted, how soon is Fliptron with a half-life as good as before, and as a fresh start?"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd

from fliptron import Dataset, simulate
from fliptron.experiments.paper import FIGURE_2
from fliptron.experiments.plan import Spec, grid
from fliptron.experiments.roster import build
from fliptron.experiments.runner import about, data
from fliptron.report.statistics import interval
from fliptron.results import Run
from tabular import save, table

NOISE = FIGURE_2[:-1]
SEEDS = range(10)
BEFORE = 20_000
AFTER = 40_000
WINDOW = 1000
HALF_LIFE = 100_000


def specs(runs: pd.DataFrame) -> list[Spec]:
    learners = {"Fliptron": {"half_life": [HALF_LIFE]}}
    return grid(datasets=["digits"], rates=NOISE, learners=learners, rounds=BEFORE, seeds=SEEDS)


def play_one(spec: Spec) -> Run:
    """Rounds until the error of the last 1,000 is within 1.5 times of its level before: old and new learner."""
    digits, checksum = data(spec)
    permuted = Dataset.of(digits.X, (digits.y + 3) % 10, name="permuted")
    old, new = (build(spec.learner, digits, seed=spec.seed, **spec.effective) for _ in range(2))
    before = simulate(old, digits, rates=spec.rates, rounds=spec.rounds, seed=spec.seed, log=True)
    level = np.mean((before.log.label != digits.y[before.log.row])[-spec.rounds // 2 :])
    times = []
    for learner in (old, new):
        log = simulate(learner, permuted, rates=spec.rates, rounds=AFTER, seed=spec.seed + 100, log=True).log
        wrong = np.cumsum(log.label != permuted.y[log.row])
        back = (wrong[WINDOW:] - wrong[:-WINDOW]) / WINDOW <= 1.5 * level
        times.append(WINDOW + int(np.argmax(back)) if back.any() else AFTER)
    details = {"after the jump": times[0], "fresh start": times[1]}
    return about(spec, error=before.error, seconds=before.seconds, data_sha256=checksum, details=details)


def write(runs: pd.DataFrame, docs: Path) -> list[Path]:
    rows = []
    for rates in NOISE:
        cell = runs[(runs.rho0 == rates[0]) & (runs.rho1 == rates[1])]
        times = np.array([list(json.loads(each).values()) for each in cell.details])
        rows.append([f"{rates}", *(f"{mean:,.0f} ± {half:,.0f}" for mean, half in zip(*interval(times), strict=True))])
    text = f"""# Recovery from a jump

All labels of digits are permuted after {BEFORE:,} rounds. Rounds until the error of the last {WINDOW:,} is within 1.5
times of its level before the change, `Fliptron(half_life={HALF_LIFE:_})`, mean ± half the 95 % interval of {len(SEEDS)}
seeds; a fresh start sees the same rounds. Made by `make study NAME=drift`.

{table(["noise", "after the jump", "fresh start"], rows)}"""
    return [save(docs / "tables/drift.md", text)]
