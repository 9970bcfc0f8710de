"""The reproduction, from pilots to final runs: what there is to do, how long it takes, and what came of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pandas as pd

from fliptron.datasets.registry import load
from fliptron.experiments import paper
from fliptron.experiments.plan import Spec
from fliptron.refusals import InputError
from fliptron.results import Results

Play = Callable[[str, Sequence[Spec]], int]
"""Plays a plan under a title; how many runs failed."""


@dataclass(frozen=True, slots=True)
class Reproduction:
    """A finished reproduction."""

    scale: paper.Scale
    runs: pd.DataFrame
    """The final runs, one row each."""
    chosen: pd.DataFrame
    """The settings of every cell."""
    failures: pd.DataFrame
    missing: dict[str, str]
    """Data sets that are not here, and why."""
    failed: int


class Plan:
    """A reproduction to be played into a store: asks what is there, and plays the rest."""

    def __init__(self, scale: paper.Scale, parts: Sequence[str], results: Results) -> None:
        for part in parts:
            if part not in paper.PARTS:
                raise InputError(f"{part!r} is not a part of the paper; some of {', '.join(paper.PARTS)} are expected")
        self.scale, self.parts, self.results = scale, parts, results
        self.missing: dict[str, str] = {}
        for name in paper.datasets(scale, parts):
            try:
                load(name)
            except InputError as error:
                self.missing[name] = str(error)
        if len(self.missing) == len(paper.datasets(scale, parts)):
            raise InputError("none of the data sets is here; see `fliptron data`")
        self.pilots = self._here(paper.tuning(scale, parts))

    def hours(self, jobs: int | None = None) -> float:
        """A guess of the time that is left."""
        done = self.results.done()
        settings = self._chosen() if {spec.id for spec in self.pilots} <= done else paper.guess(self.pilots)
        left = [spec for spec in [*self.pilots, *self._final(settings)] if spec.id not in done]
        return paper.hours(left, jobs or os.cpu_count() or 1)

    def play(self, play: Play) -> Reproduction:
        """Pilots, then the final runs with the settings that they chose."""
        failed = play("choosing γ", self.pilots)
        chosen = self._chosen()
        specs = self._final(chosen)
        failed += play("runs", specs)
        runs, wanted = self.results.load(), {spec.id for spec in specs}
        if not runs.id.isin(wanted).any():
            raise InputError("no run has finished, so there is nothing to report")
        failures = self.results.sql("SELECT * FROM failures")
        asked = wanted | {spec.id for spec in self.pilots}
        return Reproduction(
            scale=self.scale,
            runs=runs[runs.id.isin(wanted)],
            chosen=chosen,
            failures=failures[failures.id.isin(asked)],
            missing=self.missing,
            failed=failed,
        )

    def _chosen(self) -> pd.DataFrame:
        """Settings from the pilots; none where no part needs any."""
        piloted = {spec.id for spec in self.pilots}
        runs = self.results.load()
        return paper.choose(runs[runs.id.isin(piloted)]) if piloted else paper.guess([])

    def _final(self, chosen: pd.DataFrame) -> list[Spec]:
        return self._here(paper.final(self.scale, self.parts, chosen))

    def _here(self, specs: list[Spec]) -> list[Spec]:
        return [spec for spec in specs if spec.dataset not in self.missing]
