"""What do the docs quote from a finished reproduction? docs/reproduction.md, its figures and tables.

python benchmarks/quote.py out/paper paper
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pandas as pd

from fliptron.experiments.paper import EXTRA, MAIN, PAPER, SCALES, VARIANTS, Scale
from fliptron.output import make_folder
from fliptron.report.claims import Claim
from fliptron.report.reproduction import (
    CHOICES,
    claim_rows,
    errors_shape,
    rates_shape,
    ratios_shape,
    ratios_title,
    reach_shape,
)
from tabular import framed, save, table


def main(folder: Path, name: str) -> None:
    scale = SCALES[name]
    for kind, place in (("figures/*.png", "docs/images/paper"), ("tables/*.csv", "docs/tables/paper")):
        shutil.rmtree(place, ignore_errors=True)
        for path in folder.glob(kind):
            if path.stem != "first-order":  # large, and what it tells is in the tables
                shutil.copy(path, make_folder(Path(place)))
    tables = {path.stem: pd.read_csv(path) for path in (folder / "tables").glob("*.csv")}
    print(save(Path("docs/reproduction.md"), _reproduction(folder, name, scale, tables)))


def _reproduction(folder: Path, name: str, scale: Scale, tables: dict[str, pd.DataFrame]) -> str:
    longest, first, beyond = max(scale.horizons), scale.horizons[0], scale.beyond
    errors, rates = tables["errors"], tables["rates"]
    claims = [Claim(*row) for row in tables["claims"].itertuples(index=False, name=None)]
    learners = list(dict.fromkeys(errors.learner))
    made = dict(tables["made"].itertuples(index=False, name=None))
    command, version = made["command"].split(" --out")[0], made["Fliptron"]

    def picture(stem: str, title: str) -> str:
        here = (folder / "figures" / f"{stem}.png").exists()
        return f"## {title}\n\n![{title}](images/paper/{stem}.png)\n" if here else ""

    def numbers(title: str, content: pd.DataFrame) -> str:
        return f"## {title}\n\n{framed(content)}\n" if len(content) else ""

    variants = (
        errors_shape(errors, (*PAPER[1:5], *VARIANTS), first) if set(VARIANTS) & set(learners) else pd.DataFrame()
    )
    parts = [
        f"""# The paper, reproduced

Made by `{command}`, version {version}, and quoted by `python benchmarks/quote.py`. The command also
writes one offline page with all of this, every table as CSV and every figure as PNG, SVG and PDF; the CSVs behind this
page are in `docs/tables/paper`. The paper's learners at 10⁷ rounds, as its authors' code plays, are on
[a page of their own](tables/horizon.md); so are [other readings of the baselines](tables/baselines.md), of which BPA with bounded
steps errs far less than RCNBF.
""",
        picture("glance", f"At a glance: the (0.2, 0.4) setting, {longest:,} rounds"),
        f"## The claims, one by one\n\n{table(*claim_rows(claims))}\n",
        numbers(ratios_title(scale.horizons), ratios_shape(errors, scale.horizons)),
        "## What the paper leaves open, and what was chosen\n\n" + "".join(f"- {choice}\n" for choice in CHOICES),
        "Errata are in [the theory](theory.md).\n",
        picture("figure2", f"Figure 2: average error rates, {longest:,} rounds"),
        numbers(
            f"The numbers behind Figure 2 and the appendix, {longest:,} rounds", errors_shape(errors, PAPER, longest)
        ),
        picture("figure3", "Figure 3: RCINE's error against γ"),
        numbers(f"Table 1: estimated rates after {first:,} rounds", rates_shape(rates, list(MAIN), first)),
        numbers(f"Table 2: estimated rates after {first:,} rounds", rates_shape(rates, list(EXTRA), first)),
        picture("drift", "What NREst estimates as the classifier improves"),
        picture("drift-long", "What NREst estimates in the longest run"),
        picture("appendix-middle", f"Appendix: the (0.25, 0.25) setting, {longest:,} rounds"),
        picture("appendix", f"Appendix: Iris and SynSep, {longest:,} rounds"),
        numbers(f"Variants of the baselines, {first:,} rounds", variants),
        picture("beyond", f"Beyond the paper: all learners, {beyond:,} rounds"),
        numbers(f"Beyond the paper: errors after {beyond:,} rounds", errors_shape(errors, learners, beyond)),
        numbers(f"Rounds until the error is down to RCNBF's after {longest:,}", reach_shape(tables["reach"])),
        numbers("How it was made", tables["made"]),
    ]
    return "\n".join(part for part in parts if part)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "out/paper"), sys.argv[2] if len(sys.argv) > 2 else "desk")
