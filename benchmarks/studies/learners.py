"""Which learner errs least? Seven data sets, six noise settings, every baseline at its best setting.

Each baseline's setting is chosen for each cell by its true error on seeds that the comparison does not use: an
oracle's choice, and in the baselines' favour. RCNBF and AveragedRCNBF are told the true rates. Fliptron is told
nothing and has one setting. Vowpal Wabbit runs where it is quick (two data sets, three seeds, 50,000 rounds), beside
Fliptron at that horizon.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from fliptron.arrays import Array
from fliptron.experiments.paper import GAMMAS, NOISE
from fliptron.experiments.plan import Spec, grid
from fliptron.experiments.tuning import LADDERS, neighbours
from fliptron.experiments.vowpal import SETTINGS
from fliptron.output import make_folder
from fliptron.report.statistics import interval, plus_minus
from tabular import pair, save, table

DATA = ("digits", "optdigits", "usps", "iris", "synsep", "synnonsep", "fashion-features")
GRID: dict[str, dict[str, tuple[Any, ...]]] = {
    "Perceptron": {},
    "Banditron": {"gamma": GAMMAS},
    "BPA": {
        "gamma": (0.0, 0.001, 0.005, 0.02),
        "variant": ("PA", "PA-I", "PA-II"),
        "aggressiveness": (0.003, 0.01, 0.03, 0.1, 0.3, 1.0),
    },
    "SOBA": {"gamma": GAMMAS, "regularization": (1.0, 100.0)},
    "RCNBF": {"gamma": GAMMAS},
    "AveragedRCNBF": {"gamma": GAMMAS},
    "RCINE": {"gamma": GAMMAS[2:]},
    "Confidit": {"alpha": (0.25, 0.5, 1.0, 2.0), "regularization": (0.03, 0.1, 1.0)},
    "RidgeRegression": {"gamma": (0.002, 0.01, 0.05), "regularization": (0.03, 0.1, 1.0)},
    "Fliptron": {},
}
RUNGS: dict[str, tuple[float, ...]] = {
    "gamma": LADDERS["gamma"],
    "alpha": (0.03, 0.06, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0),
    "regularization": (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0),
    "aggressiveness": (1e-4, 3e-4, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0),
}
"""What settings climb, from the best of the grid: the edge of a grid wins only where its ladder ends."""
PEER = {"VowpalWabbit": {"options": SETTINGS}}
ROUNDS, SEEDS, TUNING = 100_000, range(10), range(1000, 1002)
DEAR = {"usps": 30_000, "synsep": 10_000, "synnonsep": 10_000}  # d² is large: tuned on one seed and so many rounds
FEWER = {(data, name): 3 for data in ("synsep", "synnonsep") for name in ("Confidit", "RidgeRegression")}  # seeds
FEWER["usps", "Confidit"] = 5
PEER_DATA, PEER_ROUNDS, PEER_SEEDS = ("digits", "iris"), 50_000, range(3)
MANY = range(50)
KEYS = ["dataset", "rho0", "rho1", "learner"]
Rates = tuple[float, float]
Cell = tuple[str, float, float, str]
"""What `KEYS` name."""


def specs(runs: pd.DataFrame) -> list[Spec]:
    """The runs that settings are chosen from; when none beside the best is untried, the comparison."""
    found = []
    for name, (learner, settings) in itertools.product(DATA, GRID.items()):
        for values in itertools.product(*settings.values()) if settings else ():
            found += trials(name, NOISE, learner, dict(zip(settings, values, strict=True)))
    found += grid(datasets=PEER_DATA, rates=NOISE, learners=PEER, rounds=PEER_ROUNDS // 10, seeds=TUNING[:1])
    chosen = choose(runs)
    tried = {
        (row.dataset, row.rho0, row.rho1, row.learner, row.setting)
        for row in with_setting(runs[runs.seed.isin(TUNING)]).itertuples()
    }
    climbed = {(*cell, json.dumps(beside)) for cell, setting in chosen.items() for beside in neighbours(setting, RUNGS)}
    for name, rho0, rho1, learner, text in sorted(tried | climbed):
        if learner not in PEER:
            found += trials(name, [(rho0, rho1)], learner, json.loads(text))
    if len({spec.id for spec in found} - {*runs.id}) > 0:
        chosen = {}
    for (name, rho0, rho1, learner), setting in chosen.items():
        rounds, seeds = (PEER_ROUNDS, PEER_SEEDS) if learner in PEER else (ROUNDS, SEEDS)
        seeds = seeds[: FEWER.get((name, learner), len(seeds))]
        learners = {learner: {key: [value] for key, value in setting.items()}}
        found += grid(datasets=[name], rates=[(rho0, rho1)], learners=learners, rounds=rounds, seeds=seeds)
    if chosen:
        ours: dict[str, Any] = {"learners": {"Fliptron": {}}}
        found += grid(datasets=PEER_DATA, rates=NOISE, rounds=PEER_ROUNDS, seeds=PEER_SEEDS, **ours)
        found += grid(datasets=["digits"], rates=[(0.4, 0.4)], rounds=ROUNDS, seeds=MANY, **ours)
        found += grid(datasets=["digits"], rates=NOISE, rounds=ROUNDS // 10, seeds=SEEDS, **ours)
        theirs = {"RCNBF": {"gamma": [0.2]}}
        found += grid(datasets=["digits"], rates=NOISE, learners=theirs, rounds=ROUNDS, seeds=SEEDS)
    found.sort(key=lambda spec: spec.dataset != "usps")  # the longest first
    return list({spec.id: spec for spec in found}.values())


def trials(name: str, noise: Sequence[Rates], learner: str, setting: dict[str, Any]) -> list[Spec]:
    """The runs that say how good a setting is; none of an aggressiveness that has no part in it."""
    if setting.get("variant") == "PA" and setting["aggressiveness"] != 1.0:
        return []
    seeds, rounds = TUNING[:1] if name in DEAR else TUNING, DEAR.get(name, ROUNDS)
    learners = {learner: {key: [value] for key, value in setting.items()}}
    return grid(datasets=[name], rates=noise, learners=learners, rounds=rounds, seeds=seeds)


def choose(runs: pd.DataFrame) -> dict[Cell, dict[str, Any]]:
    """The setting of least mean error in each cell; nothing before the runs to choose from are there."""
    tuning = with_setting(runs[runs.seed.isin(TUNING)])
    means = tuning.groupby([*KEYS, "setting"], as_index=False, sort=False).error.mean()
    best = means.loc[means.groupby(KEYS).error.idxmin()] if len(means) else means
    found = {(row.dataset, row.rho0, row.rho1, row.learner): json.loads(row.setting) for row in best.itertuples()}
    plain = [name for name, settings in GRID.items() if not settings] if found else []
    return found | {(name, *rates, each): {} for each in plain for name in DATA for rates in NOISE}


def with_setting(runs: pd.DataFrame) -> pd.DataFrame:
    """Runs with the part of their parameters that is chosen, as text."""
    grids = GRID | PEER
    chosen = [
        json.dumps({name: json.loads(params)[name] for name in grids[learner]})
        for learner, params in zip(runs.learner, runs.params, strict=True)
    ]
    return runs.assign(setting=np.array(chosen, dtype=object))


def write(runs: pd.DataFrame, docs: Path) -> list[Path]:
    chosen = choose(runs)
    played = with_setting(runs[~runs.seed.isin(TUNING)]).sort_values("seed")
    errors = {key: group.error.to_numpy() for key, group in played.groupby([*KEYS, "rounds", "setting"])}

    def of(name: str, rates: Rates, learner: str, rounds: int, setting: dict[str, Any]) -> Array:
        return errors[name, *rates, learner, rounds, json.dumps(setting)]

    cells = {
        (name, rates, learner): of(name, rates, learner, ROUNDS, chosen[name, *rates, learner])[: len(SEEDS)]
        for name, rates, learner in itertools.product(DATA, NOISE, GRID)
    }
    beside = []
    for name, learner in itertools.product(PEER_DATA, (*PEER, "Fliptron")):
        means = (of(name, rates, learner, PEER_ROUNDS, chosen[name, *rates, learner]).mean() for rates in NOISE)
        beside.append([name, learner.replace("VowpalWabbit", "Vowpal Wabbit"), *(f"{mean:.4f}" for mean in means)])
    fifty = of("digits", (0.4, 0.4), "Fliptron", ROUNDS, {})
    tenth = "; ".join(
        f"{rates} {of('digits', rates, 'Fliptron', ROUNDS // 10, {}).mean():.3f} against "
        f"{of('digits', rates, 'RCNBF', ROUNDS, {'gamma': 0.2}).mean():.3f}"
        for rates in NOISE
    )
    settings = []
    for learner in [learner for learner in GRID if GRID[learner]]:
        columns = ([_plain(chosen[name, *rates, learner]) for rates in NOISE] for name in DATA)
        settings.append([f"{learner} ({'/'.join(GRID[learner])})", *map(", ".join, columns)])
    text = f"""# The learners side by side

Mean error of the played label after {ROUNDS:,} rounds ± half the 95 % interval over {len(SEEDS)} seeds, under six noise
settings (ρ0, ρ1). **Bold** is the lowest of those that see only noisy bits. Perceptron is told every true label; RCNBF
and AveragedRCNBF are told the true rates. Every baseline runs at the setting that did best in that very cell (true
error on two seeds of their own, so an oracle's choice): of a grid first, then of the settings beside the best, as long
as one of these is better. Fliptron has no setting. Where d² is large there is less: tuning on one seed and 30,000
rounds (USPS) or 10,000 (SynSep, SynNonSep), five seeds for Confidit on USPS, three for it and RidgeRegression on the
synthetic sets.

Made by `make study NAME=learners`.

![Errors of the others over Fliptron's, cell by cell](../images/learners.png)

{chr(10).join(_section(name, cells) for name in DATA)}
## In short

{_in_short(cells)}
- No collapse: {len(MANY)} seeds on digits at (0.4, 0.4): median {np.median(fifty):.4f}, worst {fifty.max():.4f} \
({fifty.max() / np.median(fifty):.2f} times the median).
- Fliptron after {ROUNDS // 10:,} rounds against RCNBF after {ROUNDS:,}, digits: {tenth}.

## Vowpal Wabbit

Its best of {len(SETTINGS)} settings, {PEER_ROUNDS:,} rounds, {len(PEER_SEEDS)} seeds.

{table(["data", "learner", *map(pair, NOISE)], beside)}

## Settings chosen

{table(["learner", *DATA], settings)}"""
    picture = make_folder(docs / "images") / "learners.png"
    draw(cells).savefig(picture, dpi=150)
    return [save(docs / "tables/learners.md", text), picture]


def _plain(setting: dict[str, Any]) -> str:
    plain = setting.get("variant") == "PA"  # which has no bound
    shown = {name: value for name, value in setting.items() if not (plain and name == "aggressiveness")}
    return "/".join(value if isinstance(value, str) else f"{value:g}" for value in shown.values())


def _section(name: str, cells: dict[Any, Array]) -> str:
    rows = []
    for learner in GRID:
        texts = []
        for rates in NOISE:
            found = cells[name, rates, learner]
            least = min(cells[name, rates, other].mean() for other in GRID if other != "Perceptron")
            text = plus_minus(*interval(found))
            texts.append(f"**{text}**" if learner != "Perceptron" and found.mean() <= least else text)
        rows.append([learner, *texts])
    return f"## {name}\n\n{table(['learner', *map(pair, NOISE)], rows)}\n"


def _in_short(cells: dict[Any, Array]) -> str:
    """Fliptron's error beside that of RCNBF, of RidgeRegression and of the lowest other, over all cells."""
    ratios: dict[str, list[float]] = {"RCNBF": [], "RidgeRegression": [], "lowest other": []}
    misses = []
    for name, rates in itertools.product(DATA, NOISE):
        ours = cells[name, rates, "Fliptron"]
        others = {each: cells[name, rates, each].mean() for each in GRID if each not in ("Perceptron", "Fliptron")}
        least = min(others, key=lambda each: others[each])
        for each, theirs in (others | {"lowest other": others[least]}).items():
            if each in ratios:
                ratios[each].append(ours.mean() / theirs)
        if ours.mean() > others[least] + ours.std(ddof=1) / np.sqrt(ours.size):
            misses.append(f"{name} {rates}: {ours.mean():.4f} against {least}'s {others[least]:.4f}")
    (told, ridge, least), n = map(np.array, ratios.values()), len(ratios["RCNBF"])
    return f"""- {n} cells. Fliptron's error is the lowest, or within one standard error of it, in {n - len(misses)}.\
{f" Not in: {'; '.join(misses)}." if misses else ""}
- Against RCNBF with true rates: {np.median(told):.3f} of its error in the median cell (worst {told.max():.3f}).
- Against RidgeRegression at its best: {np.median(ridge):.3f} in the median cell, worst {ridge.max():.3f}; \
at least 15 % lower in {np.sum(ridge <= 0.85)} of {n}.
- Against the lowest of all others: {np.median(least):.3f} in the median cell, worst {least.max():.3f}."""


def draw(cells: dict[Any, Array]) -> Figure:
    """Each learner's error over Fliptron's, one point per cell."""
    figure = Figure(figsize=(9.0, 5.0), layout="constrained")
    axes = figure.add_subplot()
    names = [name for name in GRID if name not in ("Fliptron", "Perceptron")]
    for i, learner in enumerate(names):
        ratio = [
            cells[name, rates, learner].mean() / cells[name, rates, "Fliptron"].mean()
            for name, rates in itertools.product(DATA, NOISE)
        ]
        middle = np.median(ratio)
        axes.plot(np.sort(ratio), i + np.linspace(-0.25, 0.25, len(ratio)), "o", ms=3.5, color="#0072B2", alpha=0.75)
        axes.plot([middle] * 2, [i - 0.35, i + 0.35], color="#D55E00", linewidth=2)
        axes.annotate(f"{middle:.1f}×", (middle, i + 0.38), color="#D55E00", ha="center", fontsize=9)
    axes.axvline(1.0, color="black", linewidth=1)
    axes.set_xscale("log")
    axes.set_yticks(range(len(names)), names)
    axes.set_xlabel("error divided by Fliptron's, one point for each data set and noise setting (orange: median)")
    axes.grid(axis="x", which="major", color="0.9")
    axes.spines[["top", "right"]].set_visible(False)
    return figure
