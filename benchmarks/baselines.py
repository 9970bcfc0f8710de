"""Do other readings of the baselines change what the paper's comparison says? docs/tables/baselines.md.

fliptron reproduce --scale paper --only variants --out out/variants
python benchmarks/baselines.py out/variants
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

from fliptron.experiments.paper import VARIANTS
from fliptron.report.reproduction import errors_shape
from tabular import framed, save

ROUNDS = 10**6
BESIDE = ("BPA", "SOBA", "RCNBF")
"""What the variants are held against: the reproduction's own runs of that length (docs/tables/paper/errors.csv)."""


def main(folder: Path) -> None:
    played, made = (pd.read_csv(folder / f"tables/{name}.csv") for name in ("errors", "made"))
    known = pd.read_csv("docs/tables/paper/errors.csv")
    errors = pd.concat([known[known.learner.isin(BESIDE)], played[played.learner.isin(VARIANTS)]])
    text = f"""# Other readings of the baselines

BPA is read in more than one way. Ours has margin 1 for right labels, as in the code of the paper's lab; margin 0 is its
author's. PA-I and PA-II bound its steps by an aggressiveness C, chosen with γ. SOBA keeps the diagonal of its matrix;
SOBA-full, which keeps the whole, plays where K·d is at most 640. All play {ROUNDS:,} rounds by settings chosen for the
cell on other seeds, from a grid that climbs until its edge does not win. RCNBF stands beside them. Made by the command
below and then `python benchmarks/baselines.py`; BPA, SOBA and RCNBF are from [the reproduction](../reproduction.md).

{framed(errors_shape(errors, (*BESIDE, *VARIANTS), ROUNDS))}

## How it was made

{framed(made)}"""
    print(save(Path("docs/tables/baselines.md"), text))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "out/variants"))
