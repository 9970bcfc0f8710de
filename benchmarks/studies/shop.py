"""Do the intervals of estimate and evaluate hold the truth on logs of a made-up shop?

Every log is one of rare clicks that an old policy made. Two policies learn from its first four fifths, and are
evaluated on the last: against the truth, which the shop knows, and against each other.
"""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from fliptron import Log, RidgeRegression, evaluate, learn_log
from fliptron.datasets.shop import CLICKS, shop
from fliptron.evaluation import LOGGED
from fliptron.experiments.plan import Spec, grid
from fliptron.experiments.runner import about
from fliptron.logs.tables import write_table
from fliptron.results import Run
from tabular import pair, save, table

ROUNDS, LOGS = 100_000, range(200)
NOISES = (CLICKS, (0.1, 0.3))
NAMES = (LOGGED, "ridge", "Fliptron")


def specs(runs: pd.DataFrame) -> list[Spec]:
    return grid(datasets=["shop"], rates=NOISES, learners={"Fliptron": {}}, rounds=ROUNDS, seeds=LOGS)


def play_one(spec: Spec) -> Run:
    """One log: what is said of it, and whether that is true."""
    began = time.perf_counter()
    made, last = shop(spec.rounds, rates=spec.rates, seed=spec.seed), spec.rounds * 4 // 5
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "shop.parquet"
        write_table(path, made.log)
        log = Log(path)
        policies = {"ridge": learn_log(log, RidgeRegression, rounds=last), "Fliptron": learn_log(log, rounds=last)}
        found = evaluate(log, policies, skip=last)
    held, wanted = {name: values[last:] for name, values in made.log.items()}, made.wanted[last:]
    truth = {name: float(np.mean(np.array(each.predict(held)) == wanted)) for name, each in policies.items()}
    truth[LOGGED] = float(np.mean(held["shown"] == wanted))
    truth["best"] = float(np.mean(made.best[last:] == wanted))
    told = {
        "truth": truth,
        "rates": {name: list(found.noise.intervals[name]) for name in ("rho0", "rho1")},
        "accuracy": {
            name: {how: list(ends) for how, (_, ends) in (value.accuracy or {}).items()}
            for name, value in found.values.items()
        },
        "raw": {name: value.mean_bit["ips"] for name, value in found.values.items()},
        "paired": list(found.differences[1].interval or (0.0, 0.0)),
        "real": found.differences[1].is_real,
    }
    error = 1 - truth["Fliptron"]
    return about(spec, error=error, seconds=time.perf_counter() - began, verdict=found.noise.verdict, details=told)


def write(runs: pd.DataFrame, docs: Path) -> list[Path]:
    rows, notes = [], []
    for rates in NOISES:
        cell = runs[(runs.rho0 == rates[0]) & (runs.rho1 == rates[1])]
        told = [json.loads(each) for each in cell.details]
        known = [each for each in told if each["accuracy"]["Fliptron"]]
        for name, truth in zip(("rho0", "rho1"), rates, strict=True):
            rows.append([pair(rates), name, f"{truth:g}", *_held([(each["rates"][name], truth) for each in told])])
        for name in NAMES:
            centre = f"{np.mean([each['truth'][name] for each in told]):.3f}"
            for how in ("dr", "snips", "ips") if name != LOGGED else ("dr",):
                ends = [(each["accuracy"][name][how], each["truth"][name]) for each in known]
                rows.append([pair(rates), f"{name}, {how.upper()}", centre, *_held(ends)])
        gain = [each["truth"]["Fliptron"] - each["truth"]["ridge"] for each in told]
        ends = [(each["paired"], each["truth"]["Fliptron"] - each["truth"]["ridge"]) for each in known]
        rows.append([pair(rates), "Fliptron − ridge, paired", f"{np.mean(gain):.3f}", *_held(ends)])
        paired = np.mean([np.diff(each["paired"])[0] for each in known])
        apart = np.mean([sum(np.diff(each["accuracy"][n]["dr"])[0] for n in NAMES[1:]) for each in known])
        best = np.mean([each["truth"]["best"] for each in told])
        shown = np.mean([each["real"] for each in known])
        notes.append(
            f"At {pair(rates)}: identified in {(cell.verdict == 'identified').sum()} of {len(cell)} logs. No policy "
            f"can be right more often than {best:.3f}. The paired interval is {paired / apart:.2f} as wide as the two "
            f"of the policies together; it shows a difference in {shown:.0%} of logs."
        )
    text = f"""# Intervals on the logs of a shop

{len(LOGS)} logs of {ROUNDS:,} rounds for each noise; see `fliptron demo`. Two policies learn from the first four fifths
and are evaluated on the last. "Held": the share of logs whose 95 % interval holds the truth.
{" ".join(notes)} Made by `make study NAME=shop`.

{table(["noise", "of what", "truth", "held", "mean width"], rows)}"""
    return [save(docs / "tables/shop.md", text)]


def _held(pairs: list[tuple[list[float], float]]) -> list[str]:
    hits = [low - 1e-9 <= truth <= high + 1e-9 for (low, high), truth in pairs]
    return [f"{np.mean(hits):.1%}", f"{np.mean([high - low for (low, high), _ in pairs]):.3f}"]
