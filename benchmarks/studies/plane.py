"""Is Fliptron right over the whole plane of noise, from rare clicks to clicks on nearly everything?

Beside it the same learner, told the true rates, and a ridge regression of the raw bit at the best of six settings,
chosen for each cell by its true error on seeds of its own.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

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
LEAST_BETA, CLEAR = 0.04, 0.08
DATA = ("digits", "clicks", "clicks-50")
RIDGE = {"RidgeRegression": {"gamma": (0.002, 0.01, 0.05), "regularization": (0.1, 1.0)}}
OURS = ("Fliptron", "Fliptron-told")
ROUNDS, SEEDS, TUNING = 200_000, range(10), range(1000, 1002)
_KEYS = ["dataset", "rho0", "rho1"]


def noise() -> list[tuple[float, float]]:
    """The cells of the plane in which a bit tells anything."""
    return [rates for rates in product(RHO0, RHO1) if 1.0 - sum(rates) > LEAST_BETA - 1e-9]


def specs(runs: pd.DataFrame) -> list[Spec]:
    """Ours, and ridge regression's settings; when these have been played, the best of them."""
    found: list[Spec] = []
    for name in DATA:
        cells = noise()
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
    for name in DATA:
        rows, told, ridge, worst = [], [], [], []
        for rates in noise():
            ours, best, other = (errors[name, *rates, each] for each in (*OURS, "RidgeRegression"))
            told.append(ours.mean() / best.mean())
            ridge.append(ours.mean() / other.mean())
            worst.append(ours.max() / np.median(ours))
            cells = [plus_minus(*interval(each)) for each in (ours, best, other)]
            rows.append([pair(rates), *cells, *(f"{each[-1]:.2f}" for each in (told, ridge, worst))])
        clear = np.array([1.0 - sum(rates) >= CLEAR - 1e-9 for rates in noise()])
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
    learners = {"Fliptron": "Fliptron", "Fliptron-told": "told the rates", "RidgeRegression": "ridge regression"}
    figure = Figure(figsize=(10.0, 3.6 * len(DATA)), layout="constrained")
    rows = np.atleast_2d(figure.subplots(len(DATA), len(learners), sharex=True, sharey=True))
    for (name, learner), axes in zip(product(DATA, learners), rows.flat, strict=True):
        shade(axes, {rates: errors[name, *rates, learner].mean() for rates in noise()})
        axes.set_title(f"{name}: {learners[learner]}", loc="left", fontsize=10)
    finish(figure)
    return figure


def shade(axes: Any, errors: dict[tuple[float, float], float]) -> None:
    """The plane of noise, every cell as dark as its error."""
    values = np.full((len(RHO1), len(RHO0)), np.nan)
    for (rho0, rho1), error in errors.items():
        i, j = RHO1.index(rho1), RHO0.index(rho0)
        values[i, j] = error
        text = (f"{error:.3f}" if error < 0.1 else f"{error:.2f}").lstrip("0")
        axes.text(j, i, text, ha="center", va="center", fontsize=7, color="w" if error > 0.5 else "k")
    axes.imshow(values, vmin=0.0, vmax=0.8, cmap="YlOrBr", origin="lower", aspect="auto")
    axes.set_xticks(range(len(RHO0)), [f"{rate:g}" for rate in RHO0], fontsize=8)
    axes.set_yticks(range(len(RHO1)), [f"{rate:g}" for rate in RHO1], fontsize=8)


def finish(figure: Figure) -> None:
    """What the shades, the columns and the rows are."""
    figure.colorbar(figure.axes[0].images[0], ax=figure.axes, label=f"error after {ROUNDS:,} rounds", shrink=0.6)
    figure.supxlabel("ρ0, wrong told as right", fontsize=10)
    figure.supylabel("ρ1, right told as wrong", fontsize=10)
