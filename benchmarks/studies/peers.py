"""Do users of other libraries gain from our learner, called as they call theirs?

The best learner of each library, and our Fliptron through its adapter, meet the same rows, flips and rounds. Which
learner and which setting are best is chosen for each cell, by its true error on seeds that the comparison does not use:
an oracle's choice, and in the peers' favour. Fliptron has no setting. The horizons are short because the peers are
slow: milliseconds per round for bayesianbandits, and for coba's own learners, which keep one matrix for all labels.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd

from fliptron.experiments.plan import Spec, grid
from fliptron.experiments.vowpal import SETTINGS
from fliptron.report.statistics import interval, plus_minus
from tabular import pair, save, table

CELLS: dict[tuple[str, tuple[float, float]], int] = {
    ("digits", (0.0, 0.0)): 2000,
    ("digits", (0.2, 0.4)): 3000,
    ("iris", (0.0, 0.0)): 2000,
    ("iris", (0.2, 0.4)): 2000,
    ("clicks", (0.2, 0.4)): 3000,
    ("clicks", (0.02, 0.92)): 10_000,
}
"""Data and noise, and how many rounds are played there; more where clicks are rare, and a bit says little."""
LAMBDAS, STEPS = (5, 20, 80, 320), (0.04, 0.2, 1, 5)
SOFTMAX = {f"--softmax --lambda {x} --cb_type dm -l {step}": (x, step) for x in LAMBDAS for step in STEPS}
PEERS: dict[str, dict[str, dict[str, tuple[Any, ...]]]] = {
    "river": {"River-LinUCB": {"beta": (0.25, 1.0, 4.0, 16.0, 64.0, 256.0, 1024.0)}},
    "coba": {
        "Coba-LinUCB": {"strength": (0.03, 0.1, 0.3, 1.0, 3.0)},
        "Coba-LinTS": {"strength": (0.01, 0.03, 0.1, 0.3, 1.0)},
        "Coba-SquareCB": {"strength": (1.0, 10.0, 100.0, 1000.0)},
    },
    "bayesianbandits": {
        "Bayesian-LinTS": {"beta": (6.0, 25.0, 100.0, 400.0)},
        "Bayesian-LogisticTS": {"alpha": (0.3, 1.0, 3.0, 10.0)},
        "Bayesian-LogisticUCB": {"quantile": (0.6, 0.75, 0.9, 0.97)},
    },
    "Vowpal Wabbit": {"VowpalWabbit": {"options": (SETTINGS[1], SETTINGS[3], *SOFTMAX)}},
}
OURS = {"river": "River-Fliptron", "coba": "Coba-Fliptron", "simulate": "Fliptron"}
"""Fliptron, by how it is called."""
SEEDS, TUNING = range(10), range(1000, 1003)
ONCE = ("bayesianbandits",)  # tuned on the first of these seeds alone: it takes longest
LEFT_OUT = {("digits", "Coba-LinTS")}  # 30 milliseconds a round


def specs(runs: pd.DataFrame) -> list[Spec]:
    """The runs that learners and settings are chosen from; when they are there, the comparison."""
    found = []
    for (name, rates), rounds in CELLS.items():
        common: dict[str, Any] = {"datasets": [name], "rates": [rates], "rounds": rounds}
        for library, learners in PEERS.items():
            seeds = TUNING[:1] if library in ONCE else TUNING
            entrants = {each: tried for each, tried in learners.items() if (name, each) not in LEFT_OUT}
            found += grid(**common, learners=entrants, seeds=seeds)
        found += grid(**common, learners={ours: {} for ours in OURS.values()}, seeds=SEEDS)
        for learner, setting in _chosen(runs, name, rates).values():
            found += grid(**common, learners={learner: {key: [value] for key, value in setting.items()}}, seeds=SEEDS)
    return list({spec.id: spec for spec in found}.values())


def _chosen(runs: pd.DataFrame, name: str, rates: tuple[float, float]) -> dict[str, tuple[str, dict[str, Any]]]:
    """Each library's best learner in a cell, and its setting."""
    found = {}
    cell = _cell(runs, name, rates)
    for library, learners in PEERS.items():
        tried = cell[cell.learner.isin(learners) & cell.seed.isin(TUNING)]
        if tried.empty:  # not played yet
            continue
        best = tried.loc[tried.groupby(["learner", "params"]).error.transform("mean").idxmin()]
        params = json.loads(best.params)
        found[library] = best.learner, {key: params[key] for key in learners[best.learner]}
    return found


def _cell(runs: pd.DataFrame, name: str, rates: tuple[float, float]) -> pd.DataFrame:
    return runs[(runs.dataset == name) & (runs.rho0 == rates[0]) & (runs.rho1 == rates[1])]


def write(runs: pd.DataFrame, docs: Path) -> list[Path]:
    rows: dict[str, list[str]] = {}
    settings: dict[str, list[str]] = {library: [library] for library in PEERS}
    wins, beaten, edges = 0, [], []
    for name, rates in CELLS:
        cell, chosen = _cell(runs, name, rates), _chosen(runs, name, rates)
        played = cell[~cell.seed.isin(TUNING)]
        means = {}
        for library in PEERS:
            row = rows.setdefault(library, [f"{library}, its best"])
            learner, setting = chosen[library]
            fits = played.params.map(lambda text, setting=setting: setting.items() <= json.loads(text).items())
            errors = played[(played.learner == learner) & fits].error.to_numpy()
            means[library] = errors.mean()
            row.append(plus_minus(*interval(errors)))
            settings[library].append(f"{learner} {_plain(setting)}")
            if _at_edge(PEERS[library][learner], setting):
                edges.append(f"{learner} on {name} {pair(rates)}")
        for how, learner in OURS.items():
            errors = played[played.learner == learner].error.to_numpy()
            ours = rows.setdefault(f"ours {how}", [f"Fliptron through {how}" if how in PEERS else f"Fliptron, `{how}`"])
            ours.append(plus_minus(*interval(errors)))
        mine = played[played.learner == OURS["simulate"]].error.mean()
        best = min(means, key=lambda each: means[each])
        wins += mine <= means[best]
        if mine > means[best]:
            beaten.append(f"{name} {pair(rates)}: {mine:.3f} against {best}'s {means[best]:.3f}")
    order = ["river", "ours river", "coba", "ours coba", "bayesianbandits", "Vowpal Wabbit", "ours simulate"]
    heads = [f"{name} {pair(rates)}, {rounds:,} rounds" for (name, rates), rounds in CELLS.items()]
    at_edges = f"At an edge, so that a better value may lie beyond: {'; '.join(edges)}." if edges else "No edge won."
    text = f"""# Beside the bandits of other libraries

Mean error of the played label ± half the 95 % interval over {len(SEEDS)} seeds, for noise (ρ0, ρ1). Every learner
meets the same rows and flips. Each library plays with the learner and the setting of its grid that did best in that
very cell on {len(TUNING)} other seeds (bayesianbandits: one), by its true error: an oracle's choice. Fliptron is told
nothing and has no setting. Made by `make study NAME=peers`.

{table(["", *heads], [rows[each] for each in order])}

Fliptron errs least of all in {wins} of {len(CELLS)} cells.{f" Not in {'; '.join(beaten)}." if beaten else ""}

## What was chosen

Of coba: LinUCB, LinTS (not on digits, where a round takes it 30 ms) and SquareCB (Vowpal Wabbit's); of bayesianbandits:
linear and logistic Thompson sampling and logistic UCB (one Newton step per bit, and 100 samples instead of 1,000, for
speed); river has one contextual policy, LinUCB; of Vowpal Wabbit: ε-greedy, bagging and softmax. scikit-learn has no
bandits: `fit` of our classifier *is* `simulate`.

What was tried: {_grids()}. {at_edges}

{table(["", *(f"{name} {pair(rates)}" for name, rates in CELLS)], list(settings.values()))}"""
    return [save(docs / "tables/peers.md", text)]


def _grids() -> str:
    """What was tried of each learner."""
    tried = {learner: next(iter(settings.values())) for each in PEERS.values() for learner, settings in each.items()}
    numbers = {learner: values for learner, values in tried.items() if learner != "VowpalWabbit"}
    numbers |= {"softmax's `--lambda`": LAMBDAS, "with `-l`": STEPS}
    return "; ".join(f"{what} {', '.join(f'{value:g}' for value in values)}" for what, values in numbers.items())


def _at_edge(grid: dict[str, tuple[Any, ...]], setting: dict[str, Any]) -> bool:
    """Whether the value chosen is the least or the largest that was tried."""
    ((name, value),) = setting.items()
    if not isinstance(value, str):
        return value in (grid[name][0], grid[name][-1])
    return value in SOFTMAX and any(
        number in (tried[0], tried[-1]) for number, tried in zip(SOFTMAX[value], (LAMBDAS, STEPS), strict=True)
    )


def _plain(setting: dict[str, Any]) -> str:
    return ", ".join(f"`{value}`" if isinstance(value, str) else f"{value:g}" for value in setting.values())
