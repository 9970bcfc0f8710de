"""What does the paper's own estimator find, as its authors ran it? docs/tables/nrest.md, from a reproduction.

fliptron reproduce --scale desk --only nrest,table1,table2 --out out/nrest
python benchmarks/nrest.py out/nrest
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pandas as pd

from fliptron.experiments.paper import EXTRA, MAIN, NREST
from fliptron.output import make_folder
from fliptron.report.reproduction import errors_shape, rates_shape
from tabular import framed, save, table

ROUNDS = 10**6
WORDS = {
    "RCINE-NREst": "NREst, label as an integer",
    "RCINE-NREst-one-hot": "NREst, label one-hot",
    "RCINE": "plateaus",
}


def main(folder: Path) -> None:
    errors, rates, made = (pd.read_csv(folder / f"tables/{name}.csv") for name in ("errors", "rates", "made"))
    for stem, name in (("drift", "nrest"), ("drift-long", "nrest-long")):
        shutil.copy(folder / f"figures/{stem}.png", make_folder(Path("docs/images")) / f"{name}.png")
    here = rates[rates.rounds == ROUNDS]
    text = f"""# NREst as its authors ran it

RCINE whose rates come from the published network, trained anew every 50,000 rounds, with the label as one integer and
the percentiles and epochs of the authors' code, after {ROUNDS:,} rounds. There is one seed in every cell, and there
are three at (0.2, 0.4) and (0.4, 0.4). Beside it are the paper's own tables, the reading of its text (the label
one-hot, at (0.2, 0.4)), and our plateaus (ten seeds), which need no training. All play by the γ that was chosen for
RCINE with plateaus.

## How far off the rates are

{table(["estimates", "cells", "the worse rate off by, in the mean", "at most"], _offs(here))}

## Table 1: estimated rates

{framed(rates_shape(rates, list(MAIN), ROUNDS))}

## Table 2: estimated rates

{framed(rates_shape(rates, list(EXTRA), ROUNDS))}

## As the classifier improves

NREst reads its rates off the rows at a high percentile of what the network predicts. The better the classifier, the
fewer rows are wrong, and when fewer than a tenth are, the row that should show a wrong label shows a right one.

![What NREst estimates as the classifier improves](../images/nrest.png)

Iris for ten times as long:

![What NREst estimates on Iris in 10⁷ rounds](../images/nrest-long.png)

## The error of the classifier

{framed(errors_shape(errors, ("RCINE", *NREST), ROUNDS))}

## How it was made

{framed(made)}"""
    print(save(Path("docs/tables/nrest.md"), text))


def _offs(rates: pd.DataFrame) -> list[list[str]]:
    """The worse of the two rates, by estimator; the paper's own tables first."""
    paper = rates.drop_duplicates(["dataset", "rho0", "rho1"]).paper_off
    found = {"the paper's tables": paper} | {
        words: rates[rates.estimator == name].off.dropna()
        for name, words in WORDS.items()
        if (rates.estimator == name).any()
    }
    return [[words, str(len(off)), f"{off.mean():.3f}", f"{off.max():.3f}"] for words, off in found.items()]


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "out/nrest"))
