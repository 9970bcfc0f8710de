"""Does Fliptron tell a change of the noise from one of the data, and how much does it err after it?"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from fliptron import Dataset, Fliptron, simulate
from fliptron.experiments.plan import Spec, grid
from fliptron.experiments.roster import build
from fliptron.experiments.runner import about, data
from fliptron.report.statistics import interval, plus_minus
from fliptron.results import Run
from tabular import save, table


class Change(NamedTuple):
    """What happens after some rounds of play: the rates go from one pair to another, labels are permuted, or both."""

    before: tuple[float, float]
    after: tuple[float, float]
    permuted: bool = False
    waves: bool = False
    """Rates that swing between the two pairs from then on."""


CHANGES = {
    "noise (0, 0) → (0.4, 0.4)": Change((0.0, 0.0), (0.4, 0.4)),
    "noise (0.1, 0.1) → (0.3, 0.3)": Change((0.1, 0.1), (0.3, 0.3)),
    "noise (0.3, 0.3) → (0.1, 0.1)": Change((0.3, 0.3), (0.1, 0.1)),
    "rare clicks (0.02, 0.8) → (0.05, 0.9)": Change((0.02, 0.8), (0.05, 0.9)),
    "rarer clicks (0.02, 0.7) → (0.02, 0.9)": Change((0.02, 0.7), (0.02, 0.9)),
    "noise in waves between 0.05 and 0.35": Change((0.05, 0.05), (0.35, 0.35), waves=True),
    "labels permuted, no noise": Change((0.0, 0.001), (0.0, 0.001), permuted=True),
    "labels permuted at (0.2, 0.3)": Change((0.2, 0.3), (0.2, 0.3), permuted=True),
    "labels permuted, and (0.1, 0.2) → (0.3, 0.3)": Change((0.1, 0.2), (0.3, 0.3), permuted=True),
}
HALF_LIVES = (None, 20_000)
SEEDS = range(10)
BEFORE, AFTER, WAVE, PIECE = 50_000, 50_000, 10_000, 1000


def specs(runs: pd.DataFrame) -> list[Spec]:
    """One run for each change, which its first rates stand for."""
    cells = [change.before for change in CHANGES.values()]
    learners = {"Fliptron": {"half_life": list(HALF_LIVES)}}
    return grid(datasets=["digits"], rates=cells, learners=learners, rounds=BEFORE, seeds=SEEDS)


def play_one(spec: Spec) -> Run:
    """The error after the change, of the learner that met it and of a fresh one, and the alarms."""
    digits, checksum = data(spec)
    change = next(each for each in CHANGES.values() if each.before == spec.rates)
    later = Dataset.of(digits.X, (digits.y + 3) % 10, name="permuted") if change.permuted else digits
    old, new = (build(spec.learner, digits, seed=spec.seed, **spec.effective) for _ in range(2))
    before = simulate(old, digits, rates=spec.rates, rounds=spec.rounds, seed=spec.seed)
    early = len(old.alarms)
    errors = [follow(learner, later, change, spec.seed) for learner in (old, new)]
    kinds = Counter(alarm.kind for alarm in old.alarms[early:])
    details = {"after": errors[0], "fresh": errors[1], "early": early, "alarms": dict(kinds)}
    return about(spec, error=before.error, seconds=before.seconds, data_sha256=checksum, details=details)


def follow(learner: Fliptron, later: Dataset, change: Change, seed: int) -> float:
    """The error of the rounds after the change."""
    low, high = np.array(change.before), np.array(change.after)
    wrong = 0
    for start in range(0, AFTER, PIECE):
        swing = 0.5 - 0.5 * np.cos(2 * np.pi * start / WAVE) if change.waves else 1.0
        rates = tuple(low + swing * (high - low))
        wrong += simulate(learner, later, rates=rates, rounds=PIECE, seed=seed + 1000 + start).mistakes[-1]
    return float(wrong / AFTER)


def write(runs: pd.DataFrame, docs: Path) -> list[Path]:
    rows = []
    for name, change in CHANGES.items():
        cell = runs[(runs.rho0 == change.before[0]) & (runs.rho1 == change.before[1])]
        row = [name]
        for half_life in HALF_LIVES:
            mine = [
                json.loads(details)
                for params, details in zip(cell.params, cell.details, strict=True)
                if json.loads(params)["half_life"] == half_life
            ]
            row += [plus_minus(*interval(np.array([each[key] for each in mine]))) for key in ("after", "fresh")]
            counts = Counter(dict.fromkeys(("noise", "data"), 0))
            for each in mine:
                counts.update(each["alarms"])
            row.append(f"{counts['noise']}, {counts['data']}")
        rows.append(row)
    columns = ["change"]
    for half_life in HALF_LIVES:
        kind = "no half-life" if half_life is None else f"half-life {half_life:,}"
        columns += [f"error after, {kind}", "fresh start", "alarms: noise, data"]
    text = f"""# When the world changes

Error of Fliptron on digits in the {AFTER:,} rounds after a change, which comes after {BEFORE:,} rounds, and of a fresh
learner in the same rounds; mean ± half the 95 % interval over {len(SEEDS)} seeds. Alarms are those of all seeds
together, of either kind, after the change. Made by `make study NAME=drift`.

{table(columns, rows)}"""
    return [save(docs / "tables/drift.md", text)]
