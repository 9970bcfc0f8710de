"""How far do the paper's family and its variants come? docs/tables/family.md, from a reproduction.

fliptron reproduce --scale paper --only beyond,fig3,variants --out out/family
python benchmarks/family.py out/family
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pandas as pd

from fliptron.experiments.paper import FIRST_ORDER, SCALES, VARIANTS
from fliptron.output import make_folder
from fliptron.report.reproduction import errors_shape
from tabular import framed, save


def main(folder: Path) -> None:
    horizons = SCALES["paper"].horizons
    errors, made = (pd.read_csv(folder / f"tables/{name}.csv") for name in ("errors", "made"))
    shutil.copy(folder / "figures/figure3.png", make_folder(Path("docs/images/horizon")))
    family = "\n".join(
        f"## Learners beyond the paper, {T:,} rounds\n\n{framed(errors_shape(errors, FIRST_ORDER, T))}\n"
        for T in horizons
    )
    text = f"""# The paper's family, and variants of its baselines

[The paper's own learners at this horizon](horizon.md) are on another page, RCNBF with its best γ among them. Here are
those of the same cost per round that go beyond it: RCNBF with averaged weights, AnytimeRCNBF (nothing to tune, rates
from the plateaus), a least-mean-squares regression of the raw bit, and the Perceptron, which is told every true label.
Then RCINE's error against γ, and the baselines in other readings of their papers. Settings are chosen for each cell and
horizon, as [the reproduction](../reproduction.md) says. No verdict is given: the longest horizon has 3 seeds. Made by
the command below and then `python benchmarks/family.py`.

{family}
## Figure 3 at {horizons[-1]:,} rounds

![RCINE's error against γ](../images/horizon/figure3.png)

## Variants, {horizons[0]:,} rounds

SOBA with its whole matrix plays where K·d is at most 640, on 3 seeds.

{framed(errors_shape(errors, VARIANTS, horizons[0]))}

## How it was made

{framed(made)}"""
    print(save(Path("docs/tables/family.md"), text))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "out/family"))
