"""Is Fliptron right over the whole plane of noise, from rare clicks to clicks on nearly everything?

Beside it the same learner, told the true rates, and a ridge regression of the raw bit at the best of six settings,
chosen for each cell by its true error on seeds of its own.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from fliptron.experiments.plan import Spec, grid
from fliptron.output import make_folder, write_whole
from fliptron.report.figures import draw
from fliptron.report.statistics import interval, plus_minus
from tabular import pair, save, table

RHO0 = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8)
RHO1 = (0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95)
COARSE = ((0.0, 0.02, 0.2, 0.6), (0.0, 0.4, 0.8, 0.9))
LEAST_BETA, CLEAR = 0.04, 0.08
PLANES = {"digits": (RHO0, RHO1), "clicks": (RHO0, RHO1), "clicks-50": COARSE}
RIDGE = {"RidgeRegression": {"gamma": (0.002, 0.01, 0.05), "regularization": (0.1, 1.0)}}
OURS = ("Fliptron", "Fliptron-told")
ROUNDS, SEEDS, TUNING = 200_000, range(10), range(1000, 1002)
_KEYS = ["dataset", "rho0", "rho1"]


def noise(dataset: str) -> list[tuple[float, float]]:
    """The cells of a data set's plane in which a bit tells anything."""
    return [rates for rates in product(*PLANES[dataset]) if 1.0 - sum(rates) > LEAST_BETA - 1e-9]


def specs(runs: pd.DataFrame) -> list[Spec]:
    """Ours, and ridge regression's settings; when these have been played, the best of them."""
    found: list[Spec] = []
    for name in PLANES:
        cells = noise(name)
        found += grid(datasets=[name], rates=cells, learners=RIDGE, rounds=ROUNDS // 2, seeds=TUNING)
        found += grid(datasets=[name], rates=cells, learners={each: {} for each in OURS}, rounds=ROUNDS, seeds=SEEDS)
    tuning = [spec for spec in found if spec.learner in RIDGE]
    there = runs[runs.id.isin([spec.id for spec in tuning])]
    if len(there) < len(tuning):
        return found
    known = {spec.id: spec for spec in tuning}
    for (name, rho0, rho1), cell in there.groupby(_KEYS):
        best = known[cell.loc[cell.groupby("params").error.transform("mean").idxmin(), "id"]].params
        learners = {"RidgeRegression": {key: [value] for key, value in best.items()}}
        found += grid(datasets=[name], rates=[(rho0, rho1)], learners=learners, rounds=ROUNDS, seeds=SEEDS)
    return found


def write(runs: pd.DataFrame, docs: Path) -> list[Path]:
    played = runs[(runs.rounds == ROUNDS) & ~runs.seed.isin(TUNING)]
    errors = {key: cell.error.to_numpy() for key, cell in played.groupby([*_KEYS, "learner"])}
    parts = []
    for name in PLANES:
        rows, told, ridge, worst = [], [], [], []
        for rates in noise(name):
            ours, best, other = (errors[name, *rates, each] for each in (*OURS, "RidgeRegression"))
            told.append(ours.mean() / best.mean())
            ridge.append(ours.mean() / other.mean())
            worst.append(ours.max() / np.median(ours))
            cells = [plus_minus(*interval(each)) for each in (ours, best, other)]
            rows.append([pair(rates), *cells, *(f"{each[-1]:.2f}" for each in (told, ridge, worst))])
        clear = np.array([1.0 - sum(rates) >= CLEAR - 1e-9 for rates in noise(name)])
        parts.append(f"""## {name}

Fliptron's error against its own when told the rates: {_range(np.array(told)[clear])} where β ≥ {CLEAR:g}\
{f", {_range(np.array(told)[~clear])} below" if not clear.all() else ""}. Against ridge regression's: {_range(ridge)}.
Worst seed against the median: {_range(worst)}.

{table(["(ρ0, ρ1)", "Fliptron", "told", "ridge", "÷ told", "÷ ridge", "worst ÷ median"], rows)}
""")
    text = f"""# The whole plane of noise

Mean error of the played label after {ROUNDS:,} rounds ± half the 95 % interval over {len(SEEDS)} seeds. "Told" is
Fliptron with the true rates; "ridge" is a ridge regression of the raw bit at the setting of least error in the cell, of
six, on seeds of its own. The data: scikit-learn's digits; visitors who want one of six offers, or of fifty (see
`fliptron data`). Made by `make study NAME=plane`.

![Error over the plane of noise](../images/plane.png)

{chr(10).join(parts)}"""
    _, png, _ = draw(lambda: _picture(errors))
    make_folder(docs / "images")
    write_whole(docs / "images/plane.png", png)
    return [save(docs / "tables/plane.md", text), docs / "images/plane.png"]


def _range(ratios: object) -> str:
    values = np.asarray(ratios)
    return f"{values.min():.2f} to {values.max():.2f}, {np.median(values):.2f} in the median"


def _picture(errors: dict[tuple[str, float, float, str], np.ndarray]) -> Figure:
    names = [name for name, plane in PLANES.items() if plane != COARSE]
    learners = {"Fliptron": "Fliptron", "Fliptron-told": "told the rates", "RidgeRegression": "ridge regression"}
    figure = Figure(figsize=(10.0, 3.6 * len(names)), layout="constrained")
    grid_of = np.atleast_2d(figure.subplots(len(names), len(learners), sharex=True, sharey=True))
    for row, name in zip(grid_of, names, strict=True):
        for axes, (learner, title) in zip(row, learners.items(), strict=True):
            values = np.full((len(RHO1), len(RHO0)), np.nan)
            for rho0, rho1 in noise(name):
                at = RHO1.index(rho1), RHO0.index(rho0)
                values[at] = errors[name, rho0, rho1, learner].mean()
                dark = values[at] > 0.3
                label = f"{values[at]:.3f}".lstrip("0") if values[at] < 0.1 else f"{values[at]:.2f}".lstrip("0")
                axes.text(at[1], at[0], label, ha="center", va="center", fontsize=7, color="w" if dark else "k")
            image = axes.imshow(values, vmin=0.0, vmax=0.8, cmap="YlOrBr", origin="lower", aspect="auto")
            axes.set_title(f"{name}: {title}", loc="left", fontsize=10)
            axes.set_xticks(range(len(RHO0)), [f"{rate:g}" for rate in RHO0], fontsize=8)
            axes.set_yticks(range(len(RHO1)), [f"{rate:g}" for rate in RHO1], fontsize=8)
    figure.colorbar(image, ax=grid_of, label=f"error after {ROUNDS:,} rounds", shrink=0.6)
    figure.supxlabel("ρ0, wrong told as right", fontsize=10)
    figure.supylabel("ρ1, right told as wrong", fontsize=10)
    return figure
