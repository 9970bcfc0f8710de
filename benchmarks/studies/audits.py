"""What does it bring to verify some labels? Intervals of the rates by how many were audited.

Every n-th round is audited: the learner is told the right label together with the bit.
"""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from fliptron import Fliptron
from fliptron.experiments.plan import Spec, grid
from fliptron.experiments.runner import about, data
from fliptron.report.statistics import param
from fliptron.results import Run
from tabular import pair, save, table

CELLS = (("digits", (0.2, 0.4)), ("digits", (0.02, 0.92)), ("clicks", (0.2, 0.4)), ("clicks", (0.02, 0.92)))
AUDITS, HORIZONS, SEEDS = (0, 100, 300, 1000), (6000, 20_000, 60_000), range(20)
NAMES = ("rho0", "rho1", "accuracy")


def specs(runs: pd.DataFrame) -> list[Spec]:
    """Every cell at every horizon; how many rounds are audited stands among the learner's settings."""
    learners = {"Fliptron": {"audits": AUDITS}}
    return [
        spec
        for (name, rates), rounds in product(CELLS, HORIZONS)
        for spec in grid(datasets=[name], rates=[rates], learners=learners, rounds=rounds, seeds=SEEDS)
    ]


def play_one(spec: Spec) -> Run:
    """The intervals at the end, and whether they hold."""
    played, checksum = data(spec)
    learner = Fliptron(n_classes=played.n_classes, n_features=played.n_features, seed=spec.seed)
    every = spec.rounds // max(spec.params["audits"], 1)
    random, (rho0, rho1), wrong = np.random.default_rng([spec.seed, 6]), spec.rates, 0
    for t in range(spec.rounds):
        row = random.integers(played.n_rows)
        x, y = played.X[row], int(played.y[row])
        decision = learner.decide(x)
        right = decision.label == y
        wrong += not right
        bit = int(random.random() >= rho1 if right else random.random() < rho0)
        learner.learn(x, decision, bit, truth=y if spec.params["audits"] and t % every == 0 else None)
    found = learner.estimate()
    truths = {"rho0": rho0, "rho1": rho1, "accuracy": 1 - wrong / spec.rounds}
    details = {"verdict": found.verdict}
    for name, true in truths.items():
        low, high = found.intervals[name]
        details |= {name: high - low, f"{name} holds": bool(low - 1e-9 <= true <= high + 1e-9)}
    return about(spec, error=wrong / spec.rounds, data_sha256=checksum, details=details)


def write(runs: pd.DataFrame, docs: Path) -> list[Path]:
    rows, held = [], []
    runs = runs.assign(audits=param(runs, "audits"))
    for (name, rates), horizon, audits in product(CELLS, HORIZONS, AUDITS):
        at = (runs.dataset == name) & (runs.rho0 == rates[0]) & (runs.rho1 == rates[1]) & (runs.audits == audits)
        cell = pd.DataFrame([json.loads(each) for each in runs[at & (runs.rounds == horizon)].details])
        holds = [cell[f"{each} holds"].mean() for each in NAMES]
        held += holds
        sure = f"{(cell.verdict == 'identified').mean():.0%}"
        widths = [f"{cell[each].median():.3f}" for each in NAMES]
        rows.append([f"{name} {pair(rates)}", f"{horizon:,}", str(audits), *widths, sure, f"{min(holds):.0%}"])
    text = f"""# What audits bring

The width of the 95 % intervals of `Fliptron.estimate()`, in the median of {len(SEEDS)} seeds, by how many rounds were
audited: every n-th one, so that a label is verified whatever its bit. Then how often the verdict is "identified", and
how often the interval that holds least often holds the truth. Made by `make study NAME=audits`.

All intervals together hold in {np.mean(held):.1%}.

{table(["cell", "rounds", "audits", "ρ0", "ρ1", "accuracy", "identified", "holds"], rows)}"""
    return [save(docs / "tables/audits.md", text)]
