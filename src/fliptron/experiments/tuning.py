"""How settings are chosen: pilots on seeds of their own try a grid, then the rungs beside the best of it.

They climb until no rung is better: a grid's edge can win only where the ladder ends. A longer horizon starts from the
choice of a shorter one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

import pandas as pd

from fliptron.experiments.paper import ENTRANTS, SPARSE, Stage
from fliptron.experiments.plan import Spec

LADDERS: dict[str, tuple[float, ...]] = {
    "gamma": (
        *(1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 0.001, 0.002, 0.005),
        *(0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.8),
    ),
    "aggressiveness": (1e-5, 1e-4, 1e-3, 0.01, 0.1, 1.0, 10.0),
}
"""The rungs of every parameter that pilots may climb."""
_FIRST_SEED = 1000
_CELL = ["name", "dataset", "rho0", "rho1"]


class Task(NamedTuple):
    """A run and the name it has in the report; several names may share a run."""

    name: str
    spec: Spec


def pilots(stage: Stage, wanted: Mapping[str, Sequence[str]], chosen: pd.DataFrame | None) -> list[Task]:
    """The first pilots of a stage: whole grids, or the settings chosen at a shorter horizon."""
    before = {} if chosen is None else {tuple(row[key] for key in _CELL): row["highest"] for row in _rows(chosen)}
    return [
        task
        for name, datasets in wanted.items()
        for dataset in datasets
        for rates in stage.noise
        for setting in _start(name, before.get((name, dataset, *rates)))
        for task in _try(stage, name, dataset, rates, setting)
    ]


def climb(stage: Stage, tasks: Sequence[Task], runs: pd.DataFrame) -> list[Task]:
    """Pilots of the settings one rung beside the best that have not been tried."""
    tried = {(task.name, task.spec.dataset, task.spec.rates, _text(task.spec.params)) for task in tasks}
    more = []
    for row in _rows(choose(tasks, runs)):
        cell = row["name"], row["dataset"], (row["rho0"], row["rho1"])
        for beside in neighbours(json.loads(row["highest"])):
            if (*cell, _text({**ENTRANTS[cell[0]].fixed, **beside})) not in tried:
                more += _try(stage, *cell, beside)
    return more


def neighbours(setting: Mapping[str, Any], ladders: Mapping[str, tuple[float, ...]] = LADDERS) -> list[dict[str, Any]]:
    """The settings that differ in one parameter by one rung.

    >>> neighbours({"gamma": 0.02})
    [{'gamma': 0.01}, {'gamma': 0.05}]
    """
    beside = []
    for name, ladder in ladders.items():
        if setting.get(name) in ladder:
            at = ladder.index(setting[name])
            beside += [{**setting, name: ladder[i]} for i in (at - 1, at + 1) if 0 <= i < len(ladder)]
    return beside


def choose(tasks: Iterable[Task], runs: pd.DataFrame) -> pd.DataFrame:
    """The best setting of each cell, twice: by true error, the paper's oracle; by the mean noisy bit, as one can.

    The mean bit is ρ0 + β·accuracy: the γ of most bits is the γ of highest accuracy, and nobody needs the truth.
    `highest` is the best by true error that explores at all, which pilots climb from.
    """
    told = {row.id: (row.error, row.mean_bit) for row in runs.itertuples()}
    rows = [
        (task.name, task.spec.dataset, *task.spec.rates, _setting(task), *told[task.spec.id])
        for task in tasks
        if task.spec.id in told
    ]
    table = pd.DataFrame(rows, columns=[*_CELL, "setting", "error", "mean_bit"])
    means = table.groupby([*_CELL, "setting"], as_index=False)[["error", "mean_bit"]].mean()
    means["explores"] = [json.loads(setting).get("gamma") != 0.0 for setting in means.setting]
    means = means[means.explores | ~means.name.isin([name for name, entrant in ENTRANTS.items() if entrant.above])]
    best = [
        (*cell, *_best(group, "error"), *_best(group, "mean_bit"), _best(group[group.explores], "error")[0])
        for cell, group in means.groupby(_CELL)
    ]
    return pd.DataFrame(best, columns=[*_CELL, "oracle", "oracle_error", "honest", "honest_error", "highest"])


def guess(tasks: Iterable[Task]) -> pd.DataFrame:
    """A stand-in for `choose` before anything has run, to count what a plan will have to do."""
    cells = {(task.name, task.spec.dataset, *task.spec.rates): _setting(task) for task in tasks}
    rows = [(*cell, setting, setting) for cell, setting in cells.items()]
    return pd.DataFrame(rows, columns=[*_CELL, "oracle", "highest"])


def _best(group: pd.DataFrame, by: str) -> tuple[str, float]:
    row = group.loc[group.error.idxmin() if by == "error" else group.mean_bit.idxmax()]
    return row.setting, float(row.error)


def _start(name: str, before: str | None) -> list[dict[str, Any]]:
    """The settings that the pilots of a cell begin with."""
    grid = ENTRANTS[name].grid
    if before is not None:
        settings = [json.loads(before)]
        return settings + ([{**settings[0], "gamma": 0.0}] if 0.0 in grid.get("gamma", ()) else [])
    return [dict(zip(grid, values, strict=True)) for values in product(*grid.values())] if grid else []


def task_of(
    name: str, dataset: str, rates: tuple[float, float], rounds: int, seed: int, setting: Mapping[str, Any]
) -> Task:
    """A run of an entrant, on rows without zeros where that is quicker."""
    entrant, dtype = ENTRANTS[name], "sparse" if name in SPARSE.get(dataset, ()) else "float64"
    params = {**entrant.fixed, **setting}
    return Task(name, Spec(dataset, rates, entrant.learner, rounds, seed, params, dtype=dtype))


def _try(stage: Stage, name: str, dataset: str, rates: tuple[float, float], setting: Mapping[str, Any]) -> list[Task]:
    return [
        task_of(name, dataset, rates, stage.pilot_rounds, seed, setting)
        for seed in range(_FIRST_SEED, _FIRST_SEED + stage.pilots)
    ]


def _setting(task: Task) -> str:
    """What pilots choose of a run's parameters."""
    return _text({name: value for name, value in task.spec.params.items() if name not in ENTRANTS[task.name].fixed})


def _text(params: Mapping[str, Any]) -> str:
    return json.dumps(dict(params), sort_keys=True)


def _rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table.to_dict("records")
    return rows
