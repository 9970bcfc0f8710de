"""What changes when the paper's learners play ten times as long? docs/tables/horizon.md, from a reproduction.

fliptron reproduce --scale paper --only fig2,table1,table2,appendix --datasets optdigits --out out/paper
python benchmarks/horizon.py out/paper docs/tables/horizon.md
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

import fliptron
from fliptron.experiments.paper import NAMES, NOISE, PAPER, SCALES
from fliptron.report.claims import Claim
from fliptron.report.reproduction import claim_rows
from fliptron.report.statistics import plus_minus
from tabular import pair, save, table


def main(folder: Path, page: Path) -> None:
    horizons = SCALES["paper"].horizons
    errors = pd.read_csv(folder / "tables/errors.csv")
    errors = errors[errors.rounds.isin(horizons) & errors.learner.isin(PAPER)]
    claims = [Claim(*row) for row in pd.read_csv(folder / "tables/claims.csv").itertuples(index=False, name=None)]
    claims = [claim for claim in claims if claim.horizon in horizons]
    cells = {(row.dataset, row.learner, row.rho0, row.rho1, row.rounds): row for row in errors.itertuples()}
    played = [name for name in NAMES if (name, "RCNBF", *NOISE[-1], horizons[-1]) in cells]
    rows = []
    for name in played:
        for learner in PAPER:
            for T in horizons:
                here = [cells[name, learner, *rates, T] for rates in NOISE]
                rows.append([NAMES[name], learner, f"{T:,}", *(plus_minus(each.error, each.ci95) for each in here)])
    ratios = []
    for name in played:
        for learner in ("RCNBF", "RCINE"):
            found = [
                " → ".join(
                    f"{cells[name, learner, *r, T].error / cells[name, 'BPA', *r, T].error:.2f}" for T in horizons
                )
                for r in NOISE[1:]
            ]
            ratios.append([NAMES[name], learner, *found])
    sets = ", ".join(NAMES[name] for name in played)
    seeds = int(errors[errors.dataset.isin(played)].seeds.min())
    text = f"""# At the paper's own horizon: {sets}

The authors' code plays 10⁷ rounds. Here are the paper's learners after {" and ".join(f"{T:,}" for T in horizons)}
rounds on {sets}; settings are chosen for each cell and horizon, as [the reproduction](../reproduction.md) says. Mean ±
half the 95 % interval over {seeds} seeds, version {fliptron.__version__}. Made by
`fliptron reproduce --scale paper --only fig2,table1,table2,appendix --datasets {",".join(played)}` and then
`python benchmarks/horizon.py out/paper {page}`.

## Error divided by BPA's (best γ, 0 allowed), under noise

{table(["data", "learner", *map(pair, NOISE[1:])], ratios)}

## The claims, at both horizons

{table(*claim_rows(claims))}

## Errors

{table(["data", "learner", "rounds", *map(pair, NOISE)], rows)}"""
    print(save(page, text))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
