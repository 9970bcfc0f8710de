"""What do README and docs quote from a finished reproduction? docs/reproduction.md, its figures and tables.

python benchmarks/quote.py out/paper
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pandas as pd

import fliptron
from fliptron.experiments.paper import NAMES, SCALES
from fliptron.output import make_folder
from fliptron.report.statistics import plus_minus
from tabular import pair, save, table

FIGURES = {
    "glance": "At a glance: the (0.2, 0.4) setting",
    "figure2": "Figure 2: average error rates",
    "appendix-middle": "Appendix: the (0.25, 0.25) setting",
    "appendix": "Appendix: Iris and SynSep",
    "figure3": "Figure 3: RCINE's error against γ",
    "beyond": "Beyond the paper: all learners at one horizon",
}


def main(folder: Path) -> None:
    for kind, place in (("figures/*.png", "docs/images/paper"), ("tables/*.csv", "docs/tables/paper")):
        for path in folder.glob(kind):
            shutil.copy(path, make_folder(Path(place)))
    pictures = [
        f"## {title}\n\n![{title}](images/paper/{name}.png)\n"
        for name, title in FIGURES.items()
        if (folder / "figures" / f"{name}.png").exists()
    ]
    claims = pd.read_csv(folder / "tables" / "claims.csv")
    rates = pd.read_csv(folder / "tables" / "rates.csv").dropna(subset=["off"])
    rates["dataset"] = rates.dataset.map(NAMES)
    beyond = pd.read_csv(folder / "tables" / "beyond.csv")
    beyond["cell"] = [pair(row) for row in zip(beyond.rho0, beyond.rho1, strict=True)]
    beyond["dataset"] = beyond.dataset.map(NAMES)
    wide = beyond.pivot_table(index=["dataset", "learner"], columns="cell", values="error", sort=False).reset_index()
    desk = SCALES["desk"]
    _readme(beyond[beyond.cell == "(0.2, 0.4)"], desk.beyond_rounds)
    text = f"""# The paper, reproduced

Made by `make reproduce` (`fliptron reproduce --scale desk`), version {fliptron.__version__}, and quoted by
`python benchmarks/quote.py`. {desk.rounds:,} rounds and {desk.seeds} seeds for the paper's learners, {desk.nrest_rounds:,}
rounds and {desk.nrest_seeds} seed for RCINE with the published NREst (a training takes longer than a run), {desk.beyond_rounds:,}
rounds for the learners beyond the paper. The command also writes one offline page with all of this, every table as CSV and
every figure as PNG, SVG and PDF; the CSVs behind this page are in `docs/tables/paper`.

## The claims, one by one

{_markdown(claims)}

## What the paper leaves open

Rows are drawn with replacement and scaled to length 1. "MNIST" is read twice: the 8×8 digits of UCI, which the authors' code
loads, and the real 28×28 images. Fashion-MNIST features are those of the paper's network, trained on 35,000 images; the
other 35,000 are the stream. SOBA keeps its diagonal except on Iris. γ is chosen for every learner and cell by the true
error of pilot runs on other seeds, as the paper does; `settings.csv` has beside it the γ that the noisy bits alone would have
chosen. Errata are in [the theory](theory.md).

{chr(10).join(pictures)}
## Tables 1 and 2: the rates

`off` is the larger error of the two rates; the paper's own is `paper_off`. RCINE-NREst is the published estimator, RCINE
ours (plateaus), Fliptron its own count.

{_markdown(rates.drop(columns=["seeds"]))}

## Beyond the paper: error after {desk.beyond_rounds:,} rounds

{_markdown(wide)}
"""
    print(save(Path("docs/reproduction.md"), text))


def _readme(errors: pd.DataFrame, rounds: int) -> None:
    """The README's table, between its two marks."""
    names = [name for name in NAMES.values() if name in set(errors.dataset)]
    cells = {(row.learner, row.dataset): plus_minus(row.error, row.ci95, 3) for row in errors.itertuples()}
    order = dict.fromkeys([*errors[errors.dataset == names[0]].sort_values("error").learner, *errors.learner])
    rows = [[each, *(cells.get((each, name), "–") for name in names)] for each in order]
    text = Path("README.md").read_text()
    before, after = text.split("<!-- desk -->")[0], text.split("<!-- end -->")[1]
    block = f"Error after {rounds:,} rounds, mean ± 95 % over seeds:\n\n" + table(["learner", *names], rows)
    save(Path("README.md"), f"{before}<!-- desk -->\n{block}\n<!-- end -->{after}")


def _markdown(frame: pd.DataFrame) -> str:
    rows = ([f"{value:.3f}" if isinstance(value, float) else str(value) for value in row] for row in frame.to_numpy())
    return table(list(map(str, frame.columns)), rows)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "out/paper"))
