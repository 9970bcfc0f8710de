"""What does debiasing a log change for a learner that knows nothing of flips, here Vowpal Wabbit?

The logs are of digits (0 to 4, 4×4 pixels, a label drawn uniformly in each round), whose bits go through one channel,
a channel for every label, or one for every source. The rates are estimated from each log, as `fliptron debias` does,
and it is written for Vowpal Wabbit three times: with the bits as they are, with h, and with the weighted form. Vowpal
Wabbit learns from each with the learning rate that was best on other logs; digits that are in no log, and their true
labels, are the judge.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from fliptron import InputError, Log, load
from fliptron.arrays import Array
from fliptron.debiasing import Channels, channels_of, debiased
from fliptron.experiments.plan import Spec, grid
from fliptron.experiments.runner import about
from fliptron.logs.export import export_log
from fliptron.logs.log import Batch
from fliptron.logs.tables import write_table
from fliptron.report.statistics import interval, param, plus_minus
from fliptron.results import Run
from tabular import pair, save, table

ROUNDS, SEEDS, TUNING = 20_000, range(10), range(100, 102)
K, KEPT, LATER = 5, 600, 2000
"""Labels, 0 to 4; how many digits the logs are of; and rounds with the other digits, which are the judge."""
KINDS = {"one channel": (0.01, 0.021), "by label": (0.01, 0.022), "by source": (0.01, 0.023)}
"""What the noise goes by, and the pair that stands for it."""
NOISE = {
    "one channel": {"all": (0.2, 0.4)},
    "by label": {"even": (0.5, 0.2), "odd": (0.05, 0.4)},
    "by source": {"app": (0.05, 0.1), "mail": (0.4, 0.4), "web": (0.3, 0.5)},
}
BY = {"one channel": None, "by label": "label", "by source": "source"}
FORMS = ("bit", "h", "weighted")
OPTIONS = [f"--cb_adf --cb_type mtr -q ca -l {rate}" for rate in (0.05, 0.2, 0.8)]


def specs(runs: pd.DataFrame) -> list[Spec]:
    tuning = _grid(KINDS.values(), OPTIONS, TUNING)
    if runs.empty:
        return tuning
    best = _best(runs)
    wanted = sorted({(kind, options) for (kind, _), options in best.items()})
    return tuning + [spec for kind, options in wanted for spec in _grid([KINDS[kind]], [options], SEEDS)]


def _grid(rates: object, options: list[str], seeds: range) -> list[Spec]:
    learners = {"VowpalWabbit": {"options": options}}
    return grid(datasets=["digits"], rates=rates, learners=learners, rounds=ROUNDS, seeds=seeds)


def _best(runs: pd.DataFrame) -> dict[tuple[str, str], str]:
    """The options that were best for a noise and a form, on the logs for tuning."""
    tuning = runs[runs.seed.isin(TUNING)]
    found = {}
    for kind, rates in KINDS.items():
        cell = tuning[(tuning.rho0 == rates[0]) & (tuning.rho1 == rates[1])]
        told = pd.DataFrame([json.loads(each).get("accuracy", {}) for each in cell.details], columns=FORMS)
        means = told.groupby(param(cell, "options").to_numpy()).mean()
        found |= {(kind, form): str(means[form].idxmax()) for form in FORMS}
    return found


def flipped(kind: str, rows: Array, y: Array, rounds: int, random: np.random.Generator) -> dict[str, Array]:
    """Rounds in which some of the digits were shown, behind such noise."""
    row, label = random.choice(rows, rounds), random.integers(0, K, rounds)
    source = random.choice(list(NOISE["by source"]), rounds).astype(object)
    parity = np.array(["even", "odd"], dtype=object)[label % 2]
    which = {"one channel": ["all"] * rounds, "by label": parity, "by source": source}[kind]
    rates = np.array([NOISE[kind][each] for each in which])
    bit = (random.random(rounds) < np.where(y[row] == label, 1 - rates[:, 1], rates[:, 0])).astype(int)
    return {"row": row, "source": source, "label": label, "bit": bit, "probability": np.full(rounds, 1 / K)}


def made(kind: str, rounds: int, later: int, seed: int, folder: Path) -> tuple[Log, Log, Array]:
    """A log behind such noise, later rounds with other digits, and the true labels of these."""
    digits, random = load("digits"), np.random.default_rng([seed, 17])
    few = digits.y < K
    X, y = np.asarray(digits.X)[few].reshape(-1, 4, 2, 4, 2).mean(axis=(2, 4)).reshape(-1, 16), digits.y[few]
    order, logs = random.permutation(y.size), []
    for name, rows, n in (("log", order[:KEPT], rounds), ("later", order[KEPT:], later)):
        shown = flipped(kind, rows, y, n, random)
        row = shown.pop("row")
        write_table(folder / f"{name}.parquet", {f"x{j}": X[row, j] for j in range(16)} | shown)
        logs.append(Log(folder / f"{name}.parquet", labels=range(K)))
    return logs[0], logs[1], y[row]


def choices(log: Log, later: Log, channels: Channels, options: str, folder: Path) -> Iterator[tuple[str, Array]]:
    """What Vowpal Wabbit would play in the later rounds, when it has learnt from the log in each of three forms."""
    import vowpalwabbit

    export_log(later, folder / "later.vw")
    events = (folder / "later.vw").read_text().split("\n\n")[:-1]
    for form in FORMS:

        def reward(batch: Batch, form: str = form) -> Array:
            return {"bit": batch.rounds.bit, **debiased(batch.rounds.bit, *channels.of(batch, log.labels))}[form]

        export_log(log, folder / f"{form}.vw", reward=reward)
        model = vowpalwabbit.Workspace(f"{options} -d {folder / form}.vw --quiet")
        yield form, np.array([_choice(model, event) for event in events])
        model.finish()


def _choice(model: object, event: str) -> int:
    """What a model of Vowpal Wabbit's would play."""
    example = model.parse(event + "\n")
    costs = model.predict(example)
    model.finish_example(example)
    return int(np.argmin(costs))


def play_one(spec: Spec) -> Run:
    """One log in three forms: how often what Vowpal Wabbit learns from each is right, and what it seems to be worth."""
    began = time.perf_counter()
    kind = next(name for name, rates in KINDS.items() if rates == spec.rates)
    told: dict[str, dict[str, object]] = {"accuracy": {}, "by bits": {}, "by h": {}}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        log, later, truth = made(kind, spec.rounds, LATER, spec.seed, folder)
        try:
            channels = channels_of(log, by=BY[kind])
        except InputError as error:
            return about(spec, error=1.0, seconds=time.perf_counter() - began, details={"refused": str(error)})
        (batch,) = later.batches()
        h = debiased(batch.rounds.bit, *channels.of(batch, later.labels))["h"]
        for form, would in choices(log, later, channels, spec.effective["options"], folder):
            same = would == batch.rounds.label
            told["accuracy"][form] = float(np.mean(would == truth))
            told["by bits"][form], told["by h"][form] = (float(each[same].mean()) for each in (batch.rounds.bit, h))
    told["rates"] = {str(key): list(each) for key, each in channels.rates.items()}
    error = 1 - told["accuracy"]["bit"]
    return about(spec, error=error, seconds=time.perf_counter() - began, details=told)


def write(runs: pd.DataFrame, docs: Path) -> list[Path]:
    best, rows, refused = _best(runs), [], []
    for kind, rates in KINDS.items():
        cell = runs[(runs.rho0 == rates[0]) & (runs.rho1 == rates[1]) & runs.seed.isin(SEEDS)]
        known = {}
        for form in FORMS:
            chosen = cell[param(cell, "options") == best[kind, form]].sort_values("seed")
            told = [each for each in map(json.loads, chosen.details) if "refused" not in each]
            known[form] = np.array([[each[what][form] for what in ("accuracy", "by bits", "by h")] for each in told])
        refused.append(f"{len(SEEDS) - len(told)} ({kind})")
        for form in FORMS:
            gain = "" if form == "bit" else _mean(known[form][:, 0] - known["bit"][:, 0])
            rate = best[kind, form].rpartition(" ")[2]
            rows.append([kind, form, rate, _mean(known[form][:, 0]), gain, *map(_mean, known[form].T[1:])])
    heads = ["noise", "reward", "-l", "true accuracy", "gain over bits", "value by bits", "value by h"]
    told = {kind: [f"{key} {pair(rates)}" for key, rates in each.items()] for kind, each in NOISE.items()}
    noise = "; ".join(f"{kind}: {', '.join(each)}" for kind, each in told.items())
    options, rates = (OPTIONS[0].rpartition(" -l")[0], ", ".join(each.rpartition(" ")[2] for each in OPTIONS))
    text = f"""# What debiasing changes

Vowpal Wabbit (`{options}`) learns from logs of {ROUNDS:,} rounds, in which digits from 0 to {K - 1}
(4×4 pixels) got a random label, and is judged by the true labels of digits that were in no log: mean ± 95 % over
{len(SEEDS)} logs. Noise (ρ0, ρ1), {noise}.
The rates are estimated from each log; logs whose rates were not identified are left out: {", ".join(refused)}.
Learning rates, one of {rates}, were chosen on {len(TUNING)} other logs. The last two columns are what the
policy seems to be worth on {LATER:,} later rounds, by SNIPS with the bits as they are and with h: the second should be
the true accuracy. Made by `make study NAME=debias`.

{table(heads, rows)}"""
    return [save(docs / "tables/debias.md", text)]


def _mean(values: Array) -> str:
    return plus_minus(*interval(values), 3)
