"""What has become of the first version's Fliptron? Version 0.1.0 beside today's, over the whole plane of noise.

The first version's code is taken from the history of this repository. Both meet the same data and noise, each in a
process of its own.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import fliptron
from fliptron.experiments.plan import Spec, grid
from fliptron.experiments.runner import about
from fliptron.output import make_folder, write_whole
from fliptron.report.figures import draw
from fliptron.results import Run
from studies.plane import LEAST_BETA, ROUNDS, finish, noise, shade
from tabular import pair, save, table

FIRST = "98ff8e4"
"""The last commit of version 0.1.0."""
SEEDS = range(10)
HOW = """
import json, sys
from fliptron import Fliptron, load, simulate
digits = load("digits")
for line in sys.stdin:
    rates, rounds, seed = json.loads(line)
    learner = Fliptron(n_classes=10, n_features=64, seed=seed)
    print(simulate(learner, digits, rates=tuple(rates), rounds=rounds, seed=seed).error, flush=True)
"""
"""What either version plays: the same lines in both."""


def specs(runs: pd.DataFrame) -> list[Spec]:
    return grid(datasets=["digits"], rates=noise(), learners={"Fliptron": {}}, rounds=ROUNDS, seeds=SEEDS)


def play_one(spec: Spec) -> Run:
    """One run of either version."""
    began, question = time.perf_counter(), json.dumps([spec.rates, spec.rounds, spec.seed])
    before, after = (ask(version, question) for version in (FIRST, ""))
    return about(spec, error=after, seconds=time.perf_counter() - began, details={"before": before})


def ask(version: str, question: str) -> float:
    """The error of a run that a version plays."""
    process = _player(version)
    if process.stdin is None or process.stdout is None:
        raise RuntimeError("the process has no pipes")
    process.stdin.write(question + "\n")
    process.stdin.flush()
    return float(process.stdout.readline())


@functools.cache
def _player(version: str) -> subprocess.Popen[str]:
    """A process in which the package is that of a commit, or today's; it ends when this one does."""
    home = Path(_unpacked(version).name) / "src" if version else Path(fliptron.__file__).parents[1]
    environment, pipe = os.environ | {"PYTHONPATH": str(home)}, subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", HOW], stdin=pipe, stdout=pipe, text=True, env=environment)


@functools.cache
def _unpacked(version: str) -> tempfile.TemporaryDirectory[str]:
    """A folder with the package as it was at a commit, for as long as this process lives."""
    folder = tempfile.TemporaryDirectory(prefix="fliptron-")
    repository = Path(__file__).parents[2]
    packed = subprocess.run(["git", "archive", version, "src"], check=False, cwd=repository, stdout=subprocess.PIPE)
    if packed.returncode:
        raise fliptron.InputError(f"commit {version} is not here; a clone with its whole history is expected")
    subprocess.run(["tar", "-x", "-C", folder.name], input=packed.stdout, check=True)
    return folder


def write(runs: pd.DataFrame, docs: Path) -> list[Path]:
    runs = runs.assign(before=[json.loads(details)["before"] for details in runs.details])
    means = runs.groupby(["rho0", "rho1"])[["before", "error"]].mean()
    errors = {name: {rates: means[name][rates] for rates in noise()} for name in ("before", "error")}
    ratios = np.array([errors["error"][rates] / errors["before"][rates] for rates in noise()])
    rows = [[pair(rates), *(f"{each[rates]:.4f}" for each in errors.values())] for rates in noise()]
    text = f"""# The plane of noise, before and after

Mean error of Fliptron on digits after {ROUNDS:,} rounds over {len(SEEDS)} seeds: version 0.1.0, and today's. Version
0.1.0 was made for the noises of the paper. Today's error is {ratios.min():.2f} to {ratios.max():.2f} times that of
0.1.0, {np.median(ratios):.2f} times in the median cell; β is at least {LEAST_BETA:g}. Made by `make study NAME=before`.

![Error over the plane of noise, before and after](../images/before.png)

{table(["(ρ0, ρ1)", "0.1.0", "today"], rows)}"""
    _, png, _ = draw(lambda: _picture(errors))
    make_folder(docs / "images")
    write_whole(docs / "images/before.png", png)
    return [save(docs / "tables/before.md", text), docs / "images/before.png"]


def _picture(errors: dict[str, dict[tuple[float, float], float]]) -> Figure:
    figure = Figure(figsize=(9.0, 3.8), layout="constrained")
    titles = ("version 0.1.0", "today")
    for axes, title, values in zip(figure.subplots(1, 2, sharey=True), titles, errors.values(), strict=True):
        shade(axes, values)
        axes.set_title(title, loc="left", fontsize=10)
    finish(figure)
    return figure
