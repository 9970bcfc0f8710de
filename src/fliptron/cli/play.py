"""`fliptron play`."""

from __future__ import annotations

from pathlib import Path

import click

from fliptron.cli.group import CLUSTER, INTERRUPTED, JOBS, command, writable
from fliptron.cli.playing import play_with_progress
from fliptron.experiments.plan import read_plan
from fliptron.report.statistics import error_table
from fliptron.results import Results


@command(name="play")
@click.argument("plan", metavar="PLAN.toml")
@click.option("--out", default="fliptron-results", show_default=True, help="Folder for the results.")
@JOBS
@CLUSTER
def play(*, plan: str, out: str, jobs: int | None, cluster: str | None) -> None:
    """Play a plan of your own: data sets, noise, learners with grids of settings, seeds.

    \b
    [[grid]]
    datasets = ["digits", "clicks.csv"]
    rates = [[0.2, 0.4], [0.15, 0.15]]
    rounds = 100_000
    seeds = 10                          # or a list
    learners.RCNBF.gamma = [0.1, 0.2]   # a list is a grid
    learners.Fliptron = {}
    order = "resample"                  # optional, as are raw, dtype and rows: see `fliptron run`

    Runs that are in the folder already are not played again. `fliptron results` reads them.
    """
    specs = read_plan(plan)
    results = Results(writable(out))
    try:
        failed = play_with_progress(specs, results, title=Path(plan).stem, jobs=jobs, cluster=cluster)
    except KeyboardInterrupt:
        click.echo("Interrupted: finished runs are kept; the same command goes on from here.", err=True)
        raise SystemExit(INTERRUPTED) from None
    runs = results.load()
    table = error_table(runs[runs.id.isin({spec.id for spec in specs})]).drop(columns=["greedy_error"])
    if len(table):
        click.echo(table.to_string(index=False, na_rep="–", float_format=lambda value: f"{value:.4f}"))
    if failed:
        raise SystemExit(1)
