"""What changes when the paper's learners play ten times as long? docs/tables/horizon.md, from a reproduction.

fliptron reproduce --scale paper --only fig2,table1,table2,appendix --out out/paper
python benchmarks/horizon.py out/paper
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pandas as pd

from fliptron.experiments.paper import PAPER, SCALES
from fliptron.output import make_folder
from fliptron.report.claims import Claim
from fliptron.report.reproduction import claim_rows, errors_shape, ratios_shape, ratios_title
from tabular import framed, save, table

PICTURES = {"glance": "At a glance", "figure2": "Figure 2", "appendix": "Iris and SynSep"}


def main(folder: Path) -> None:
    horizons = SCALES["paper"].horizons
    errors, claims, made = (pd.read_csv(folder / f"tables/{name}.csv") for name in ("errors", "claims", "made"))
    found = [Claim(*row) for row in claims.itertuples(index=False, name=None)]
    numbers = "\n".join(f"## Errors after {T:,} rounds\n\n{framed(errors_shape(errors, PAPER, T))}\n" for T in horizons)
    images = make_folder(Path("docs/images/horizon"))
    for stem in PICTURES:
        shutil.copy(folder / f"figures/{stem}.png", images)
    drawn = "\n\n".join(f"![{title}](../images/horizon/{stem}.png)" for stem, title in PICTURES.items())
    text = f"""# At the paper's own horizon

The authors' code plays 10⁷ rounds. Here are the paper's learners after {" and ".join(f"{T:,}" for T in horizons)}
rounds; settings are chosen for each cell and horizon, as [the reproduction](../reproduction.md) says, which is of the
shorter horizon and has all learners. BPA is the paper's; [with bounded steps](baselines.md) it errs far less. Made by
the command below and then `python benchmarks/horizon.py`.

## {ratios_title(horizons)}

{framed(ratios_shape(errors, horizons))}

## The claims, at both horizons

{table(*claim_rows([claim for claim in found if claim.horizon in horizons]))}

## In pictures, {horizons[-1]:,} rounds

{drawn}

{numbers}
## How it was made

{framed(made)}"""
    print(save(Path("docs/tables/horizon.md"), text))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "out/paper"))
