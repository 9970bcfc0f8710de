"""What do the docs quote from a finished reproduction? docs/reproduction.md, its figures and tables.

fliptron reproduce --scale paper --without nrest --out out/paper
python benchmarks/quote.py out/paper paper
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pandas as pd

from fliptron.experiments.paper import SCALES, Scale
from fliptron.output import make_folder
from fliptron.report.claims import Claim
from fliptron.report.reproduction import CHOICES, claim_rows, numbers
from tabular import framed, save, table

BOUNDED = ("BPA, PA-I", "BPA, PA-II")


def main(folder: Path, name: str) -> None:
    for kind, place in (("figures/*.png", "docs/images/paper"), ("tables/*.csv", "docs/tables/paper")):
        shutil.rmtree(place, ignore_errors=True)
        for path in folder.glob(kind):
            if path.stem != "first-order":  # large, and what it tells is in the tables
                shutil.copy(path, make_folder(Path(place)))
    tables = {path.stem: pd.read_csv(path) for path in (folder / "tables").glob("*.csv")}
    print(save(Path("docs/reproduction.md"), _reproduction(folder, SCALES[name], tables)))


def _reproduction(folder: Path, scale: Scale, tables: dict[str, pd.DataFrame]) -> str:
    first, longest, beyond = scale.horizons[0], max(scale.horizons), scale.beyond
    claims = [Claim(*row) for row in tables["claims"].itertuples(index=False, name=None)]
    made = dict(tables["made"].itertuples(index=False, name=None))
    shapes = numbers(scale, tables)

    def picture(stem: str, title: str) -> str:
        here = (folder / "figures" / f"{stem}.png").exists()
        return f"## {title}\n\n![{title}](images/paper/{stem}.png)\n" if here else ""

    def frame(name: str, said: str = "") -> str:
        title, content = shapes[name]
        return f"## {title}\n\n{said}{framed(content)}\n" if len(content) else ""

    parts = [
        f"""# The paper, reproduced

Made by `{made["command"].split(" --out")[0]}`, version {made["Fliptron"]}, and quoted by `python benchmarks/quote.py`.
The command also writes one offline page with all of this, every table as CSV and every figure as PNG, SVG and PDF; the
CSVs behind this page are in `docs/tables/paper`. What the published estimator of the rates finds is on
[a page of its own](tables/nrest.md).
""",
        picture("glance", f"At a glance: the (0.2, 0.4) setting, {longest:,} rounds"),
        f"## The claims, one by one\n\n{table(*claim_rows(claims))}\n",
        frame("ratios"),
        "## What the paper leaves open, and what was chosen\n\n" + "".join(f"- {choice}\n" for choice in CHOICES),
        "Errata are in [the theory](theory.md).\n",
        picture("figure2", f"Figure 2: average error rates, {longest:,} rounds"),
        picture("figure3", "Figure 3: RCINE's error against γ"),
        frame("table1"),
        frame("table2"),
        picture("drift", "What NREst estimates as the classifier improves"),
        picture("drift-long", "What NREst estimates in the longest run"),
        picture("appendix-middle", f"Appendix: the (0.25, 0.25) setting, {longest:,} rounds"),
        picture("appendix", f"Appendix: Iris and SynSep, {longest:,} rounds"),
        *(frame(f"errors {T}") for T in reversed(scale.horizons)),
        frame("variants", _bounded(tables["errors"], first)),
        frame("first-order", _anytime(tables["errors"], longest)),
        picture("beyond", f"Beyond the paper: all learners, {beyond:,} rounds"),
        frame("beyond"),
        frame("reach"),
        f"## How it was made\n\n{framed(tables['made'])}\n",
    ]
    return "\n".join(part for part in parts if part)


def _bounded(errors: pd.DataFrame, rounds: int) -> str:
    """What the family of BPA does to the paper's comparison."""
    noisy = errors[(errors.rounds == rounds) & (errors.rho0 + errors.rho1 > 0)]
    means = noisy.pivot_table(index=["dataset", "rho0", "rho1"], columns="learner", values="error")
    if not {*BOUNDED} <= {*means}:
        return ""
    best = means[list(BOUNDED)].min(axis=1)
    told = [
        f"than {name} in {(best < means[name]).sum()} of {means[name].notna().sum()} noisy cells "
        f"({(best / means[name]).median():.2f} of its error in the median cell)"
        for name in ("BPA", "RCNBF")
    ]
    return f"""BPA is read in more than one way. Ours has margin 1 for right labels, as in the code of the paper's lab; margin 0
is its author's. PA-I and PA-II bound its steps by an aggressiveness C, chosen with γ. With bounded steps BPA errs less
{" and ".join(told)}.
The paper has plain BPA alone, whose steps are as long as a bit demands; and bits lie. A bound makes each step a small
one: in effect a regression of the raw bit, which keeps the order of labels behind any noise and needs no rates. So what
the paper's comparison says of RCNBF and BPA holds for the BPA that it names, and not for the family.

"""


def _anytime(errors: pd.DataFrame, rounds: int) -> str:
    """The best member of the paper's family beside RCNBF at its best."""
    here = errors[errors.rounds == rounds]
    means = here.pivot_table(index=["dataset", "rho0", "rho1"], columns="learner", values="error")
    if not {"RCNBF", "AnytimeRCNBF"} <= {*means}:
        return ""
    both = means[["RCNBF", "AnytimeRCNBF"]].dropna()
    return f"""RCNBF, AveragedRCNBF and RCINE play by the γ that is best for the cell, and the first two are told the true
rates. AnytimeRCNBF is told neither, and explores as [the bound for any number of rounds](theory.md) asks, which holds
for true rates and weights that are not averaged; it errs less than RCNBF in {(both.AnytimeRCNBF < both.RCNBF).sum()} of {len(both)} cells.
The Perceptron is told the truth.

"""


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "out/paper"), sys.argv[2] if len(sys.argv) > 2 else "paper")
