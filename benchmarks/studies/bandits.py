"""How do the bandits fare that an engineer would try first? Each at its best, beside Fliptron, at length.

Regressions of the raw bit, linear and logistic, with ε-greedy play, upper confidence bounds, Thompson sampling and
SquareCB. Their settings climb: from the middle of the ladders to the best rung beside, until none is better, for each
cell by true error on seeds that the comparison does not use. Fliptron has no setting.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from fliptron.experiments.paper import NOISE
from fliptron.experiments.plan import Spec, grid
from fliptron.report.statistics import differ, interval, plus_minus
from tabular import pair, save, table

RARE = ((0.02, 0.8), (0.02, 0.92))
CELLS = [
    *product(("digits", "iris"), NOISE),
    *product(("clicks",), (NOISE[3], *RARE)),
]
"""Where d² work per round is cheap."""
STEEP = tuple(10.0 ** (step / 2) for step in range(-12, 5))
FLAT = tuple(10.0**step for step in range(-7, 4))
SHARES = tuple(rung for rung in STEEP if rung <= 1.0)
LADDERS: dict[str, dict[str, tuple[tuple[float, ...], float]]] = {
    "RidgeRegression": {"gamma": (SHARES, 10.0**-2), "regularization": (FLAT, 10.0**-1)},
    "Confidit": {"alpha": (STEEP, 10.0**0), "regularization": (FLAT, 10.0**0)},
    "LinearThompson": {"strength": (STEEP, 10.0**-1), "regularization": (FLAT, 10.0**0)},
    "SquareCB": {"strength": (STEEP, 10.0**-1.5), "regularization": (FLAT, 10.0**-1)},
    "LogisticThompson": {"strength": (STEEP, 10.0**-0.5), "regularization": (FLAT, 10.0**-1)},
    "LogisticUCB": {"strength": (STEEP, 10.0**-0.5), "regularization": (FLAT, 10.0**-1)},
    "LogisticSquareCB": {"strength": (STEEP, 10.0**-1.5), "regularization": (FLAT, 10.0**-2)},
}
"""The rungs of every setting, and the one that the climb begins with."""
ROUNDS, SEEDS, TUNING = 100_000, range(10), range(1000, 1002)
PILOT = -(-ROUNDS // 3)
Rates = tuple[float, float]


def specs(runs: pd.DataFrame) -> list[Spec]:
    """The rungs that have been tried, and those beside the best; once no such are left, the comparison."""
    found: list[Spec] = []
    done = True
    for (name, rates), learner in product(CELLS, LADDERS):
        tried = climbed(runs, name, rates, learner)
        steps = [_start(learner)] if not tried else list(beside(learner, min(tried, key=lambda each: tried[each])))
        settings = {*tried, *steps}
        done &= settings == set(tried)
        for setting in sorted(settings):
            found += _play(name, rates, learner, setting, PILOT, TUNING)
    if done:
        for name, rates in CELLS:
            found += grid(datasets=[name], rates=[rates], learners={"Fliptron": {}}, rounds=ROUNDS, seeds=SEEDS)
            for learner in LADDERS:
                found += _play(name, rates, learner, _best(runs, name, rates, learner), ROUNDS, SEEDS)
    return found


Setting = tuple[float, ...]


def climbed(runs: pd.DataFrame, name: str, rates: Rates, learner: str) -> dict[Setting, float]:
    """The mean error of every setting that has been tried."""
    cell = runs[(runs.dataset == name) & (runs.rho0 == rates[0]) & (runs.rho1 == rates[1]) & (runs.learner == learner)]
    cell = cell[cell.seed.isin(TUNING)]
    settings = [tuple(json.loads(params)[key] for key in LADDERS[learner]) for params in cell.params]
    return cell.error.groupby(pd.Series(settings, index=cell.index, dtype=object)).mean().to_dict()


def beside(learner: str, setting: Setting) -> Iterator[Setting]:
    """The settings that differ in one number by one rung."""
    for k, (ladder, _) in enumerate(LADDERS[learner].values()):
        at = ladder.index(setting[k])
        for rung in (at - 1, at + 1):
            if 0 <= rung < len(ladder):
                yield (*setting[:k], ladder[rung], *setting[k + 1 :])


def _start(learner: str) -> Setting:
    return tuple(first for _, first in LADDERS[learner].values())


def _best(runs: pd.DataFrame, name: str, rates: Rates, learner: str) -> Setting:
    tried = climbed(runs, name, rates, learner)
    return min(tried, key=lambda each: tried[each])


def _play(name: str, rates: Rates, learner: str, setting: Setting, rounds: int, seeds: range) -> list[Spec]:
    settings: dict[str, Any] = {key: [value] for key, value in zip(LADDERS[learner], setting, strict=True)}
    return grid(datasets=[name], rates=[rates], learners={learner: settings}, rounds=rounds, seeds=seeds)


def write(runs: pd.DataFrame, docs: Path) -> list[Path]:
    played = runs[(runs.rounds == ROUNDS) & runs.seed.isin(SEEDS)]
    errors = {key: cell.error.to_numpy() for key, cell in played.groupby(["dataset", "rho0", "rho1", "learner"])}
    names = [*LADDERS, "Fliptron"]
    parts, won, close = [], [], []
    for data in dict.fromkeys(name for name, _ in CELLS):
        noise = [rates for name, rates in CELLS if name == data]
        lowest = {rates: min(names, key=lambda each, r=rates: errors[data, *r, each].mean()) for rates in noise}
        rows = []
        for learner in names:
            cells = [(plus_minus(*interval(errors[data, *rates, learner])), lowest[rates]) for rates in noise]
            rows.append([learner, *(f"**{text}**" if best == learner else text for text, best in cells)])
        parts.append(f"## {data}\n\n{table(['learner', *map(pair, noise)], rows)}\n")
        for rates in noise:
            mine, theirs = errors[data, *rates, "Fliptron"], errors[data, *rates, lowest[rates]]
            won.append(lowest[rates] == "Fliptron")
            if not won[-1]:
                apart = "" if differ(mine, theirs) else ", not told apart"
                ratio = mine.mean() / theirs.mean()
                close.append(f"{data} {pair(rates)}, {lowest[rates]}, {ratio:.2f} times its error{apart}")
    chosen = {(*cell, learner): _best(runs, *cell, learner) for cell in CELLS for learner in LADDERS}
    edges = [
        f"{learner} on {data} {pair(rates)}"
        for (data, rates, learner), best in chosen.items()
        for value, (ladder, _) in zip(best, LADDERS[learner].values(), strict=True)
        if value in (ladder[0], ladder[-1])
    ]
    settings = [
        [
            f"{data} {pair(rates)}",
            *(", ".join(f"{value:.3g}" for value in chosen[data, rates, each]) for each in LADDERS),
        ]
        for data, rates in CELLS
    ]
    wanted = ", ".join(f"{learner}'s {' and '.join(ladders)}" for learner, ladders in LADDERS.items())
    ends = f"At the end of a ladder: {'; '.join(edges)}." if edges else "No end of a ladder won."
    text = f"""# Beside other bandits, each at its best

Mean error of the played label after {ROUNDS:,} rounds ± half the 95 % interval over {len(SEEDS)} seeds, for noise
(ρ0, ρ1). All but Fliptron are regressions of the raw bit; they differ in how they explore. Each plays with the setting
that did best in that very cell, by its true error on {len(TUNING)} other seeds and a third of the rounds: an oracle's
choice. Fliptron is told nothing. **Bold** is the lowest. Made by `make study NAME=bandits`.

Fliptron errs least in {sum(won)} of {len(won)} cells.{" Another does in: " + "; ".join(close) + "." if close else ""}

{chr(10).join(parts)}
## What was chosen

For each cell: {wanted}. They were found by climbing from the middle of their ladders until no rung beside is better.
{ends}

{table(["cell", *LADDERS], settings)}"""
    return [save(docs / "tables/bandits.md", text)]
