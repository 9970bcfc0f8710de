"""What do README's table and picture show? The (0.2, 0.4) setting, Fliptron beside the paper's learners.

Every learner of the paper plays by the setting that the reproduction chose for the cell and the horizon on other seeds
(docs/tables/paper/settings.csv), so that no pilots are played again.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd

from fliptron.experiments.paper import ALL, ENTRANTS, MAIN, NAMES
from fliptron.experiments.plan import Spec
from fliptron.output import make_folder, write_whole
from fliptron.report.figures import draw, panels
from fliptron.report.statistics import interval, plus_minus
from tabular import save, table

RATES = (0.2, 0.4)
PAPER = ("Banditron", "BPA", "SOBA", "RCNBF", "RCINE")
OTHERS = ("Perceptron", "LeastMeanSquares", "AnytimeRCNBF", "Fliptron")
PICTURE = (*PAPER, "Fliptron")
SHORT, LONG, SEEDS = 100_000, 1_000_000, range(10)
SETTINGS = Path(__file__).parents[2] / "docs/tables/paper/settings.csv"


def specs(runs: pd.DataFrame) -> list[Spec]:
    chosen = pd.read_csv(SETTINGS)
    chosen = chosen[(chosen.rho0 == RATES[0]) & (chosen.rho1 == RATES[1])]
    by = {(row.name, row.dataset, row.rounds): json.loads(row.oracle) for row in chosen.itertuples(index=False)}

    def of(name: str, dataset: str, rounds: int) -> list[Spec]:
        entrant = ENTRANTS[name]
        params: dict[str, Any] = {**entrant.fixed, **(by[name, dataset, rounds] if entrant.grid else {})}
        return [Spec(dataset, RATES, entrant.learner, rounds, seed, params) for seed in SEEDS]

    found = [spec for dataset in ALL for name in (*PAPER, *OTHERS) for spec in of(name, dataset, SHORT)]
    return found + [spec for dataset in MAIN for name in PICTURE for spec in of(name, dataset, LONG)]


def write(runs: pd.DataFrame, docs: Path) -> list[Path]:
    """The picture, and the table between the README's two marks."""
    _, png, _ = draw(lambda: panels(runs[runs.rounds == LONG], list(MAIN), (RATES,), PICTURE))
    picture = make_folder(docs / "images") / "front.png"
    write_whole(picture, png)
    short = runs[runs.rounds == SHORT]
    cells = {key: interval(group.error.to_numpy()) for key, group in short.groupby(["learner", "dataset"])}
    order = sorted((*PAPER, *OTHERS), key=lambda name: cells[name, ALL[0]][0])
    rows = [[name, *(plus_minus(*cells[name, dataset], 3) for dataset in ALL)] for name in order]
    heading = f"Error after {SHORT:,} rounds, mean ± 95 % over {len(SEEDS)} seeds:"
    block = f"{heading}\n\n{table(['learner', *(NAMES[dataset] for dataset in ALL)], rows)}"
    readme = docs.parent / "README.md"
    text = readme.read_text()
    before, after = text.split("<!-- front -->")[0], text.split("<!-- end -->")[1]
    return [picture, save(readme, f"{before}<!-- front -->\n{block}\n<!-- end -->{after}")]
