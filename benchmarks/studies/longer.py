"""What becomes of the best of the paper's family, and of other first-order learners, at the paper's own 10⁷ rounds?

RCNBF, its mean, and AnytimeRCNBF, which is told neither rates nor γ; a regression of the raw bit, and the Perceptron,
which is told the truth. They play by the settings that the reproduction chose after 10⁶ rounds on other seeds
(docs/tables/paper/settings.csv), so that no pilots are played again.
"""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd

from fliptron.experiments.paper import ALL, ENTRANTS, NAMES, NOISE, WIDE
from fliptron.experiments.plan import Spec
from fliptron.report.reproduction import reach_shape, reach_table
from fliptron.report.statistics import interval, plus_minus
from tabular import framed, pair, save, table

DATA = tuple(name for name in ALL if name != "mnist")
"""MNIST's 28×28 pixels would take as long as all the others together."""
LEARNERS = ("RCNBF", "AveragedRCNBF", "AnytimeRCNBF", "LeastMeanSquares", "Perceptron")
ROUNDS, CHOSEN = 10**7, 10**6
SEEDS, FEWER = range(5), range(3)
SETTINGS = Path(__file__).parents[2] / "docs/tables/paper/settings.csv"


def specs(runs: pd.DataFrame) -> list[Spec]:
    chosen = pd.read_csv(SETTINGS)
    chosen = chosen[chosen.rounds == CHOSEN]
    by = {(row.name, row.dataset, row.rho0, row.rho1): json.loads(row.oracle) for row in chosen.itertuples(index=False)}
    found = []
    for dataset in DATA:
        for rates in NOISE:
            for name in LEARNERS:
                entrant = ENTRANTS[name]
                params = {**entrant.fixed, **(by[name, dataset, *rates] if entrant.grid else {})}
                seeds = FEWER if dataset in WIDE else SEEDS
                found += [Spec(dataset, rates, entrant.learner, ROUNDS, seed, params) for seed in seeds]
    return sorted(found, key=lambda spec: spec.dataset in WIDE)  # the longest last


def write(runs: pd.DataFrame, docs: Path) -> list[Path]:
    rows = []
    for dataset in DATA:
        for name in LEARNERS:
            here = runs[(runs.dataset == dataset) & (runs.learner == name)]
            cells = [here[(here.rho0 == rho0) & (here.rho1 == rho1)].error.to_numpy() for rho0, rho1 in NOISE]
            rows.append([NAMES[dataset], name, *(plus_minus(*interval(each)) for each in cells), str(cells[0].size)])
    reach = reach_shape(reach_table(runs))
    text = f"""# Beyond the paper, at its own horizon

Mean error of the played label after {ROUNDS:,} rounds ± half the 95 % interval over as many seeds as the last column
says. RCNBF and AveragedRCNBF are told the true rates and play by the γ that was best after {CHOSEN:,} rounds on other
seeds; AnytimeRCNBF is told neither, and has [a bound at any time](../theory.md); the Perceptron is told the truth. The
learners of the paper, each with a γ chosen for this horizon, are [on a page of their own](horizon.md). Made by
`make study NAME=longer`.

{table(["data", "learner", *map(pair, NOISE), "seeds"], rows)}

## Rounds until the error is down to RCNBF's after {ROUNDS:,}

{framed(reach.loc[:, (reach != "").any()])}"""
    return [save(docs / "tables/longer.md", text)]
