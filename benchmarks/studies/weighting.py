"""Does it matter, in a short log, that its bits are weighted by source?

As in the study of debiasing, Vowpal Wabbit learns from a log whose noise differs by source, in three forms; but from
few rounds, and the rates are told, since so few do not identify them. The noises are the same.
"""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from fliptron.debiasing import channels_of
from fliptron.experiments.plan import Spec, grid
from fliptron.experiments.runner import about
from fliptron.report.statistics import interval, param, plus_minus
from fliptron.results import Run
from studies.debias import FORMS, KINDS, NOISE, OPTIONS, K, choices, made
from tabular import pair, save, table

ROUNDS, SEEDS, TUNING = 1000, range(10), range(100, 102)
KIND, LATER = "by source", 500
"""What the noise goes by; and how many digits that are in no log are the judge."""


def specs(runs: pd.DataFrame) -> list[Spec]:
    wanted = _grid(OPTIONS, TUNING)
    return wanted if runs.empty else wanted + _grid(sorted(set(_best(runs).values())), SEEDS)


def _grid(options: list[str], seeds: range) -> list[Spec]:
    learners = {"VowpalWabbit": {"options": options}}
    return grid(datasets=["digits"], rates=[KINDS[KIND]], learners=learners, rounds=ROUNDS, seeds=seeds)


def _best(runs: pd.DataFrame) -> dict[str, str]:
    """The options that were best for a form, on the logs for tuning."""
    tuning = runs[runs.seed.isin(TUNING)]
    told = pd.DataFrame([json.loads(each)["accuracy"] for each in tuning.details])
    means = told.groupby(param(tuning, "options").to_numpy()).mean()
    return {form: str(means[form].idxmax()) for form in FORMS}


def play_one(spec: Spec) -> Run:
    """One log in three forms: how often what Vowpal Wabbit learns from each is right."""
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        log, later, truth = made(KIND, spec.rounds, LATER, spec.seed, folder)
        channels = channels_of(log, by="source", rates=NOISE[KIND])
        played = choices(log, later, channels, spec.effective["options"], folder)
        accuracy = {form: float(np.mean(would == truth)) for form, would in played}
    seconds = time.perf_counter() - began
    return about(spec, error=1 - accuracy["bit"], seconds=seconds, details={"accuracy": accuracy})


def write(runs: pd.DataFrame, docs: Path) -> list[Path]:
    best, found = _best(runs), {}
    for form in FORMS:
        chosen = runs[runs.seed.isin(SEEDS) & (param(runs, "options") == best[form])].sort_values("seed")
        found[form] = np.array([json.loads(each)["accuracy"][form] for each in chosen.details])
    rows = []
    for form, accuracy in found.items():
        gain = "" if form == "bit" else plus_minus(*interval(accuracy - found["bit"]), 3)
        rows.append([form, best[form].rpartition(" ")[2], plus_minus(*interval(accuracy), 3), gain])
    beta = np.array([1 - sum(rates) for rates in NOISE[KIND].values()])
    worth = np.mean(beta**2) / np.mean(beta) ** 2
    options, tried = OPTIONS[0].rpartition(" -l")[0], ", ".join(each.rpartition(" ")[2] for each in OPTIONS)
    noise = ", ".join(f"{source} {pair(rates)}" for source, rates in NOISE[KIND].items())
    text = f"""# What weighting by source changes in a short log

Vowpal Wabbit (`{options}`) learns from logs of {ROUNDS:,} rounds, in which digits from 0 to {K - 1}
(4×4 pixels) got a random label, and is judged by the true labels of digits that were in no log: mean ± 95 % over
{len(SEEDS)} logs. Noise (ρ0, ρ1) by source: {noise}; the rates are told.
Learning rates, one of {tried}, were chosen on {len(TUNING)} other logs. Made by `make study NAME=weighting`.

{table(["reward", "-l", "true accuracy", "gain over bits"], rows)}

Where every source shows the same labels, the mean of raw bits still orders the labels rightly; the weighted form only
makes more of each round. To a first approximation it is worth mean(β²)/mean(β)² times the rounds, here {worth:.1f}.
It shows in logs this short. In [logs of 20,000 rounds](debias.md), whose rates were estimated, it hardly did."""
    return [save(docs / "tables/weighting.md", text)]
