"""The reproduction, stage by stage: what there is to do, how long it takes, and what came of it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import product

import pandas as pd

from fliptron.datasets.registry import REGISTRY, load
from fliptron.experiments import costs
from fliptron.experiments.paper import ENTRANTS, NAMES, Scale, Stage, cells
from fliptron.experiments.plan import Spec
from fliptron.experiments.tuning import Task, choose, climb, guess, neighbours, pilots, task_of
from fliptron.refusals import InputError, one_of, whole
from fliptron.results import Results

Play = Callable[[str, Sequence[Spec]], int]
"""Plays a plan under a title; how many runs failed."""
_NEEDS = {"VowpalWabbit": "vowpalwabbit", "RCINE-NREst": "torch", "RCINE-NREst-one-hot": "torch"}
_CELL = ["name", "dataset", "rho0", "rho1"]


@dataclass(frozen=True, slots=True)
class Reproduction:
    """A finished reproduction."""

    scale: Scale
    runs: pd.DataFrame
    """The final runs, one row for each name a run has in the report, which is its `learner` here."""
    sweep: pd.DataFrame
    """The runs behind Figure 3."""
    chosen: pd.DataFrame
    """The settings of every cell and horizon."""
    failures: pd.DataFrame
    missing: dict[str, str]
    """Data sets and entrants that are not here, and why."""
    failed: int
    hours: float
    """Core-hours that the runs and their pilots took."""


@dataclass
class Plan:
    """A reproduction to be played into a store: asks what is there, and plays the rest."""

    scale: Scale
    parts: Sequence[str]
    results: Results
    datasets: Sequence[str] = ()
    """The data sets to play on; none stands for all."""
    missing: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in self.datasets:
            one_of("a data set of the reproduction", name, NAMES)
        for name, module in _NEEDS.items():
            if any(name in wanted for _, wanted in self._stages()) and find_spec(module) is None:
                self.missing[name] = f"{module} is not installed"
        absent = [name for name in self._datasets() if not REGISTRY[name].present(name)]
        self._look([name for name in absent if any(file.url is None for file in REGISTRY[name].files)])

    def hours(self, jobs: int | None = None) -> float:
        """The time that is left, by costs measured here, on so many cores. Loads no data set."""
        cores = os.cpu_count() or 1
        walk = _Walk(self, play=None)
        walk.all()
        return costs.hours(walk.left, self.results, cores if jobs is None else min(whole("jobs", jobs, 1), cores))

    def prepare(self) -> None:
        """Load the data sets, and see which are missing."""
        self._look(self._datasets())
        if not self._datasets():
            why = "; ".join(f"{name} is missing: {each}" for name, each in self.missing.items())
            raise InputError(why or "nothing is left to play: no such part plays on such a data set at this scale")

    def _datasets(self) -> list[str]:
        names = (name for _, wanted in self._stages() for datasets in wanted.values() for name in datasets)
        return list(dict.fromkeys(names))

    def _look(self, names: Iterable[str]) -> None:
        for name in names:
            try:
                load(name)
            except InputError as error:
                self.missing[name] = str(error)

    def play(self, play: Play) -> Reproduction:
        """Every stage: its pilots, then its runs with the settings that they chose."""
        walk = _Walk(self, play)
        walk.all()
        runs = self.results.load()
        asked = {task.spec.id for task in (*walk.tasks, *walk.sweep)}
        if not runs.id.isin(asked).any():
            raise InputError("no run has finished, so there is nothing to report")
        failures = self.results.sql("SELECT * FROM failures")
        return Reproduction(
            scale=self.scale,
            runs=_named(walk.tasks, runs),
            sweep=_named(walk.sweep, runs),
            chosen=pd.concat(walk.chosen, ignore_index=True) if walk.chosen else guess([]).assign(rounds=[]),
            failures=failures[failures.id.isin(asked | walk.piloted)],
            missing=self.missing,
            failed=walk.failed,
            hours=float(runs[runs.id.isin(asked | walk.piloted)].seconds.sum() / 3600),
        )

    def _stages(self) -> list[tuple[Stage, dict[str, list[str]]]]:
        """The stages that the parts need, with what can be played of them."""
        stages = []
        for stage in self.scale.stages:
            wanted = cells(self.scale, stage, self.parts)
            here = {
                name: [each for each in datasets if each not in self.missing and each in (self.datasets or NAMES)]
                for name, datasets in wanted.items()
                if name not in self.missing
            }
            stages.append((stage, {name: datasets for name, datasets in here.items() if datasets}))
        return [(stage, wanted) for stage, wanted in stages if wanted]


class _Walk:
    """One walk through the stages. Without `play` nothing is played: what would be is collected, or guessed."""

    def __init__(self, plan: Plan, play: Play | None) -> None:
        self.plan, self._play = plan, play
        self.tasks: list[Task] = []
        self.sweep: list[Task] = []
        self.chosen: list[pd.DataFrame] = []
        self.left: list[Spec] = []
        self.piloted: set[str] = set()
        self.failed = 0
        self._done = plan.results.done()
        self._tuned: dict[str, pd.DataFrame] = {}
        self._told: pd.DataFrame | None = None

    def all(self) -> None:
        """Every stage."""
        for stage, wanted in self.plan._stages():
            tasks = _runs(stage, wanted, self._settings(stage, wanted))
            self._take(f"{stage.rounds:,} rounds", tasks)
            (self.sweep if stage.sweep else self.tasks).extend(tasks)

    def _settings(self, stage: Stage, wanted: Mapping[str, Sequence[str]]) -> pd.DataFrame:
        """What the pilots chose."""
        if stage.by is not None:
            datasets = list(dict.fromkeys(name for names in wanted.values() for name in names))
            told = self._tune(self._stage(stage.after, stage.by), {stage.by: datasets})
            return pd.concat([told.assign(name=name) for name in wanted], ignore_index=True)
        return guess([]) if stage.sweep else self._tune(stage, wanted)

    def _stage(self, rounds: int | None, name: str) -> Stage:
        return next(each for each in self.plan.scale.stages if each.rounds == rounds and name in each.names)

    def _tune(self, stage: Stage, wanted: Mapping[str, Sequence[str]]) -> pd.DataFrame:
        """Play pilots, and rungs beside the best of them while there are any."""
        wanted = {name: datasets for name, datasets in wanted.items() if ENTRANTS[name].grid}
        key = json.dumps([stage.rounds, wanted])
        if key in self._tuned or not wanted:
            return self._tuned.get(key, guess([]))
        before = None
        if stage.after is not None:
            before = self._tune(self._stage(stage.after, next(iter(wanted))), wanted)
        tasks = more = pilots(stage, wanted, before)
        for _ in range(self.plan.scale.climbs + 1):
            if more is tasks or any(task.spec.id not in self._done for task in more):
                self._take(f"choosing settings for {stage.rounds:,} rounds", more)
            if self._play is None and any(task.spec.id not in self._done for task in tasks):
                break
            more = climb(stage, tasks, self._pilots()) if self.plan.scale.climbs else []
            if not more:
                break
            tasks = tasks + more
        self.piloted |= {task.spec.id for task in tasks}
        chosen = choose(tasks, self._pilots())
        if self._play is None:  # cells without pilots yet are guessed, and a climb of two rungs with them
            guessed = guess(tasks)
            there = set(map(tuple, chosen[_CELL].to_numpy()))
            guessed = guessed[[tuple(row) not in there for row in guessed[_CELL].to_numpy()]]
            if before is not None:
                self.left += [
                    spec
                    for task in tasks
                    if (task.name, task.spec.dataset, *task.spec.rates) not in there
                    for spec in [task.spec] * len(neighbours(task.spec.params))
                ]
            chosen = pd.concat([chosen, guessed], ignore_index=True) if len(chosen) else guessed
        else:
            self.chosen.append(chosen.assign(rounds=stage.rounds))
        self._tuned[key] = chosen
        return chosen

    def _pilots(self) -> pd.DataFrame:
        """What settings are chosen by; asked for again when more has been played."""
        if self._told is None:
            self._told = self.plan.results.sql("SELECT id, error, mean_bit FROM runs")
        return self._told

    def _take(self, title: str, tasks: Iterable[Task]) -> None:
        """Play the runs of these tasks, or note which are left."""
        specs = list({task.spec.id: task.spec for task in tasks}.values())
        if self._play is None:
            self.left += [spec for spec in specs if spec.id not in self._done]
        elif specs:
            self.failed += self._play(title, specs)
            self._told = None if any(spec.id not in self._done for spec in specs) else self._told


def _runs(stage: Stage, wanted: Mapping[str, Sequence[str]], chosen: pd.DataFrame) -> list[Task]:
    """The runs of a stage at the chosen settings; of a sweep, at every setting of the grid."""
    settings = {tuple(row[key] for key in _CELL): json.loads(row["oracle"]) for row in chosen.to_dict("records")}
    tasks = []
    for name, datasets in wanted.items():
        entrant = ENTRANTS[name]
        for dataset, rates in product(datasets, stage.noise):
            if stage.sweep:
                tries = [dict(zip(entrant.grid, values, strict=True)) for values in product(*entrant.grid.values())]
            elif entrant.grid or stage.by:
                tries = [settings[name, dataset, *rates]] if (name, dataset, *rates) in settings else []
            else:
                tries = [{}]
            tasks += [
                task_of(name, dataset, rates, stage.rounds, seed, setting)
                for setting in tries
                for seed in range(stage.seeds)
            ]
    return tasks


def _named(tasks: Sequence[Task], runs: pd.DataFrame) -> pd.DataFrame:
    """Runs under the names that they have in the report."""
    names = pd.DataFrame({"id": [task.spec.id for task in tasks], "learner": [task.name for task in tasks]})
    return names.drop_duplicates().merge(runs.drop(columns="learner"), on="id")
