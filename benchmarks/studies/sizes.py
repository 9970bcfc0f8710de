"""How much of a belief does a large dense x need? Diagonal, along axes, or full, on images.

Error and cost of Fliptron's forms, one after the other in the same process.
"""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd

from fliptron.experiments.plan import Spec, grid
from fliptron.report.statistics import interval, plus_minus
from tabular import pair, save, table

DATA = {"usps": 256, "mnist": 784, "fashion-mnist": 784}
FORMS = {"usps": ("diagonal", "axes", "full"), "mnist": ("diagonal", "axes"), "fashion-mnist": ("diagonal", "axes")}
NOISE, ROUNDS, SEEDS = ((0.0, 0.0), (0.2, 0.4)), 50_000, range(10)


def specs(runs: pd.DataFrame) -> list[Spec]:
    found = []
    for name, forms in FORMS.items():
        for form in forms:
            learners = {"Fliptron": {"form": [form]}}
            found += grid(datasets=[name], rates=NOISE, learners=learners, rounds=ROUNDS, seeds=SEEDS)
        told = {"Perceptron": {}}
        found += grid(datasets=[name], rates=NOISE[:1], learners=told, rounds=ROUNDS, seeds=SEEDS)
    return found


def write(runs: pd.DataFrame, docs: Path) -> list[Path]:
    runs = runs.assign(form=[json.loads(params).get("form", "told the truth") for params in runs.params])
    rows = []
    for name, forms in FORMS.items():
        for form in (*forms, "told the truth"):
            cells = [_cell(runs, name, form, rates) for rates in NOISE]
            errors = [plus_minus(*interval(cell.error.to_numpy())) if len(cell) else "–" for cell in cells]
            beside = [
                f"{cell.error.mean() / _cell(runs, name, 'diagonal', rates).error.mean():.2f}" if len(cell) else "–"
                for cell, rates in zip(cells, NOISE, strict=True)
            ]
            mine = runs[(runs.dataset == name) & (runs.form == form)].seconds.min()
            cost = mine / runs[(runs.dataset == name) & (runs.form == "diagonal")].seconds.min()
            who = "Perceptron, told the truth" if form == "told the truth" else f"Fliptron, {form}"
            rows.append([f"{name} ({DATA[name]})", who, *errors, *beside, f"{cost:.1f}"])
    text = f"""# Size

Mean error after {ROUNDS:,} rounds ± half the 95 % interval over {len(SEEDS)} seeds, then the error and the best run's
time divided by those of the diagonal form. In brackets, d. The Perceptron is told every true label. Made by
`make study NAME=sizes`.

{table(["data", "learner", *map(pair, NOISE), *(f"÷, {pair(rates)}" for rates in NOISE), "time ÷"], rows)}"""
    return [save(docs / "tables/sizes.md", text)]


def _cell(runs: pd.DataFrame, name: str, form: str, rates: tuple[float, float]) -> pd.DataFrame:
    return runs[(runs.dataset == name) & (runs.form == form) & (runs.rho0 == rates[0]) & (runs.rho1 == rates[1])]
