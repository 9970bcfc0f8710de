"""What does growing noise do to each learner? Those of the literature beside the paper's and ours."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from fliptron.experiments.plan import Spec, grid
from fliptron.output import make_folder, write_whole
from fliptron.report.figures import draw, line_style
from fliptron.report.statistics import interval, plus_minus
from tabular import save, table

DATA = ("synsep", "digits")
RATES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4)
_GAMMAS = (0.0005, 0.001, 0.002, 0.005, 0.02, 0.05, 0.1, 0.2, 0.4)  # without noise small ones are far better
_FEWER = (0.001, 0.005, 0.02, 0.05, 0.2)
TUNED = {
    "Banditron": {"gamma": _GAMMAS},
    "EPABF": {"gamma": _GAMMAS},
    "RCNBF": {"gamma": _GAMMAS},
    "Newtron": {"gamma": _FEWER, "curvature": (1e-4, 1e-3, 1e-2)},
    "Newtron-told": {"gamma": _FEWER, "curvature": (1e-4, 1e-3, 1e-2)},
    "Gappletron": {"gamma": _FEWER, "diameter": (30.0, 100.0)},
    "Gappletron-told": {"gamma": _FEWER, "diameter": (30.0, 100.0)},
    "RDUE": {"gamma": _FEWER, "diameter": (30.0, 100.0)},
    "RDUE-told": {"gamma": _FEWER, "diameter": (30.0, 100.0)},
}
PLAIN = ("Separable", "Fliptron")
SHORT = {"synsep": 20_000}
"""Rounds of `KernelSeparable`, whose rounds cost as much as the examples it keeps."""
ROUNDS, SEEDS, PILOTS = 100_000, range(10), range(1000, 1002)


def specs(runs: pd.DataFrame) -> list[Spec]:
    """Pilots first; then every learner at the setting that was best for the cell."""
    noise = [(rate, rate) for rate in RATES]
    pilots = grid(datasets=DATA, rates=noise, learners=TUNED, rounds=ROUNDS, seeds=PILOTS)
    plain = grid(datasets=DATA, rates=noise, learners={name: {} for name in PLAIN}, rounds=ROUNDS, seeds=SEEDS)
    for name, rounds in SHORT.items():
        learners = {"KernelSeparable": {}, "Separable": {}}
        plain += grid(datasets=[name], rates=noise, learners=learners, rounds=rounds, seeds=SEEDS)
    known = {spec.id: spec for spec in pilots}
    there = runs[runs.id.isin(known)]
    if len(there) < len(known):
        return [*pilots, *plain]
    final = []
    for (name, rho0, rho1, learner), cell in there.groupby(["dataset", "rho0", "rho1", "learner"]):
        best = known[cell.loc[cell.groupby("params").error.transform("mean").idxmin(), "id"]].params
        setting = {key: [value] for key, value in best.items()}
        final += grid(datasets=[name], rates=[(rho0, rho1)], learners={learner: setting}, rounds=ROUNDS, seeds=SEEDS)
    return [*pilots, *plain, *final]


def write(runs: pd.DataFrame, docs: Path) -> list[Path]:
    runs = runs[runs.seed < PILOTS[0]]
    long, short = runs[runs.rounds == ROUNDS], runs[runs.rounds != ROUNDS]
    names = [*TUNED, *PLAIN]
    parts = [_section(name, long[long.dataset == name], names, ROUNDS) for name in DATA]
    parts += [
        _section(name, short[short.dataset == name], list(dict.fromkeys(short.learner)), n) for name, n in SHORT.items()
    ]
    text = f"""# What growing noise does

Mean error of the played label ± half the 95 % interval over {len(SEEDS)} seeds, as both flip rates grow: ρ0 = ρ1 = ρ.
All but {" and ".join(PLAIN)} have the setting that was best for the cell on other seeds; RCNBF and those called "told"
are told the true rates. Where bits are not late, Delaytron decides as Banditron does, and told the rates as RCNBF.
Made by `make study NAME=noise`.

![Error against the flip rate](../images/noise-grows.png)

{chr(10).join(parts)}"""
    _, png, _ = draw(lambda: _picture(long, names))
    make_folder(docs / "images")
    write_whole(docs / "images/noise-grows.png", png)
    return [save(docs / "tables/noise.md", text), docs / "images/noise-grows.png"]


def _section(dataset: str, runs: pd.DataFrame, names: list[str], rounds: int) -> str:
    rows = []
    for rate in RATES:
        cells = [runs[(runs.rho0 == rate) & (runs.learner == name)].error.to_numpy() for name in names]
        rows.append([f"{rate:g}", *(plus_minus(*interval(each), digits=3) for each in cells)])
    return f"## {dataset}, {rounds:,} rounds\n\n{table(['ρ', *names], rows)}\n"


def _picture(runs: pd.DataFrame, names: list[str]) -> Figure:
    figure = Figure(figsize=(9.0, 4.2), layout="constrained")
    for axes, dataset in zip(np.atleast_1d(figure.subplots(1, len(DATA), sharey=True)), DATA, strict=True):
        here = runs[runs.dataset == dataset]
        for name in names:
            mean = here[here.learner == name].groupby("rho0").error.mean()
            colour, style = line_style(name)
            axes.plot(mean.index, mean.to_numpy(), "o" + style, color=colour, markersize=3, linewidth=1.4, label=name)
        axes.set_yscale("log")
        axes.set_xlabel("both flip rates, ρ0 = ρ1")
        axes.set_title(f"{dataset}, {ROUNDS:,} rounds", loc="left", fontsize=10)
        axes.grid(which="major", color="0.92")
    figure.axes[0].set_ylabel("error rate of the played label")
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside right center", frameon=False)
    return figure
