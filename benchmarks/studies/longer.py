"""What becomes of the best of the paper's family, and of other first-order learners, at the paper's own 10⁷ rounds?

RCNBF, its mean, and AnytimeRCNBF, which is told neither rates nor γ; a regression of the raw bit, and the Perceptron,
which is told the truth. They play by the settings that the reproduction chose after 10⁶ rounds on other seeds
(docs/tables/paper/settings.csv), so that no pilots are played again. And RCINE for every γ, the paper's Figure 3.
"""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from fliptron.experiments.paper import ALL, ENTRANTS, GAMMAS, NAMES, NOISE, WIDE
from fliptron.experiments.plan import Spec, grid
from fliptron.experiments.tuning import task_of
from fliptron.output import make_folder, write_whole
from fliptron.report.figures import draw, gamma_curves
from fliptron.report.reproduction import reach_shape, reach_table
from fliptron.report.statistics import interval, plus_minus
from tabular import framed, pair, save, table

LEARNERS = ("RCNBF", "AveragedRCNBF", "AnytimeRCNBF", "LeastMeanSquares", "Perceptron")
ROUNDS, CHOSEN = 10**7, 10**6
SEEDS, OF_WIDE = 5, 3
"""Hundreds of features take ten times as long."""
SETTINGS = Path(__file__).parents[2] / "docs/tables/paper/settings.csv"


def specs(runs: pd.DataFrame) -> list[Spec]:
    chosen = pd.read_csv(SETTINGS)
    chosen = chosen[chosen.rounds == CHOSEN]
    by = {(row.name, row.dataset, row.rho0, row.rho1): json.loads(row.oracle) for row in chosen.itertuples(index=False)}
    found = []
    for dataset, rates, name in product(ALL, NOISE, LEARNERS):
        setting = by[name, dataset, *rates] if ENTRANTS[name].grid else {}
        seeds = range(OF_WIDE if dataset in WIDE else SEEDS)
        found += [task_of(name, dataset, rates, ROUNDS, seed, setting).spec for seed in seeds]
    every: dict[str, Any] = {"RCINE": {"gamma": GAMMAS}}
    return found + grid(datasets=["optdigits"], rates=NOISE, learners=every, rounds=ROUNDS, seeds=range(SEEDS))


def write(runs: pd.DataFrame, docs: Path) -> list[Path]:
    rows = []
    for dataset, name in product(ALL, LEARNERS):
        here = runs[(runs.dataset == dataset) & (runs.learner == name)]
        cells = [here[(here.rho0 == rho0) & (here.rho1 == rho1)].error.to_numpy() for rho0, rho1 in NOISE]
        rows.append([NAMES[dataset], name, *(plus_minus(*interval(each)) for each in cells)])
    best, lower, cells = _at_its_best(docs / "tables/horizon.md"), 0, len(ALL) * len(NOISE)
    for (dataset, rho0, rho1), here in runs[runs.learner == "AnytimeRCNBF"].groupby(["dataset", "rho0", "rho1"]):
        lower += here.error.mean() < best[NAMES[dataset]][NOISE.index((rho0, rho1))]
    reach = reach_shape(reach_table(runs[runs.learner != "RCINE"]))
    text = f"""# Beyond the paper, at its own horizon

Mean error of the played label after {ROUNDS:,} rounds ± half the 95 % interval over {SEEDS} seeds ({OF_WIDE} on
USPS, SynSep and the real MNIST). RCNBF and AveragedRCNBF are told the true rates and play by the γ that was best after
{CHOSEN:,} rounds on other seeds; AnytimeRCNBF is told neither, and explores as
[the bound for any number of rounds](../theory.md) asks, which holds for true rates and weights that are not averaged;
the Perceptron is told the truth. The learners of the paper, each with a γ chosen for this horizon, are
[on a page of their own](horizon.md); AnytimeRCNBF errs less than RCNBF there, at its best γ, in {lower} of {cells}
cells. Made by `make study NAME=longer`.

{table(["data", "learner", *map(pair, NOISE)], rows)}

## Rounds until the error is down to RCNBF's after {ROUNDS:,}

{framed(reach.loc[:, (reach != "not played").any()])}

## Figure 3 of the paper: what γ is worth to RCINE

![RCINE's error after 10⁷ rounds against γ](../images/horizon/figure3.png)"""
    _, png, _ = draw(lambda: gamma_curves(runs[runs.learner == "RCINE"]))
    picture = make_folder(docs / "images/horizon") / "figure3.png"
    write_whole(picture, png)
    return [save(docs / "tables/longer.md", text), picture]


def _at_its_best(page: Path) -> dict[str, list[float]]:
    """RCNBF's errors by data set, from the table of the paper's learners at this horizon."""
    rows = page.read_text().split(f"## Errors after {ROUNDS:,} rounds")[1].splitlines()
    found = [row.strip("| ").split(" | ") for row in rows if " | RCNBF | " in row]
    return {name: [float(cell.split()[0]) for cell in cells[: len(NOISE)]] for name, _, *cells in found}
