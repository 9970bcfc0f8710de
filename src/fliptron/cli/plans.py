"""`fliptron reproduce`, `play` and `results`: plans, played and asked."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import click
import pandas as pd
from rich.console import Console

from fliptron.arrays import InputError
from fliptron.cli.group import INTERRUPTED, JOBS, main
from fliptron.datasets import load
from fliptron.experiments import paper
from fliptron.experiments.plan import Spec, read_plan
from fliptron.experiments.runner import play
from fliptron.report import writable_folder
from fliptron.report.progress import PlanWatcher
from fliptron.report.reproduction import error_table, write_reproduction
from fliptron.results import Results

CLUSTER = click.option("--cluster", metavar="ADDRESS", help="A Dask scheduler (tcp://host:8786) whose workers play.")


def _play(title: str, specs: Sequence[Spec], results: Results, jobs: int | None, cluster: str | None) -> int:
    """Play what is missing of a plan, with progress; how many runs failed. An interrupt ends the command."""
    console, done = Console(stderr=True), results.done()
    left = [spec for spec in specs if spec.id not in done]
    if len(left) < len(specs):
        console.print(f"{title}: {len(specs) - len(left)} of {len(specs)} runs are already there.", highlight=False)
    if not left:
        return 0
    try:
        with PlanWatcher(console, title, len(left), sum(spec.rounds for spec in left)) as watcher:
            return play(left, results, jobs=jobs, cluster=cluster, watch=watcher)
    except KeyboardInterrupt:
        console.print("Interrupted: finished runs are kept; the same command goes on from here.", style="bold")
        raise SystemExit(INTERRUPTED) from None


@main.command()
@click.option("--scale", type=click.Choice(list(paper.SCALES)), default="smoke", show_default=True, help="How much.")
@click.option("--only", metavar="PARTS", help=f"Some of {','.join(paper.PARTS)}, with commas. Default: all.")
@click.option("--out", default="fliptron-paper", show_default=True, help="Folder for results, figures and report.")
@JOBS
@CLUSTER
@click.option("--yes", is_flag=True, help="Do not ask before a run of many hours.")
def reproduce(*, scale: str, only: str | None, out: str, jobs: int | None, cluster: str | None, yes: bool) -> None:
    """Run the paper's experiments, and more, and write the report.

    \b
    smoke  about a minute, on embedded data: does it all work?
    desk   under an hour on two cores: 10 seeds, 1e5 to 3e5 rounds, all data sets
    paper  1e7 rounds: many hours; a cluster helps

    Stop it at any time: the same command goes on where it stopped.

    \b
    Examples:
      fliptron reproduce
      fliptron reproduce --scale desk --only fig2,table1
      fliptron reproduce --scale paper --cluster tcp://10.0.0.1:8786
    """
    parts = tuple(only.split(",")) if only else paper.PARTS
    for part in parts:
        if part not in paper.PARTS:
            raise InputError(f"--only names {part!r}; some of {', '.join(paper.PARTS)} are expected")
    size, folder = paper.SCALES[scale], writable_folder(out)
    missing = {}
    for name in paper.datasets(size, parts):
        try:
            load(name)
        except InputError as error:
            missing[name] = str(error)
            click.echo(f"{name} is missing: {error}", err=True)

    def here(specs: list[Spec]) -> list[Spec]:
        return [spec for spec in specs if spec.dataset not in missing]

    results, pilots = Results(folder / "results"), here(paper.tuning(size, parts))
    if len(missing) == len(paper.datasets(size, parts)):
        raise InputError("none of the data sets is here; see `fliptron data`")
    results.compact()
    done, piloted = results.done(), {spec.id for spec in pilots}

    def choose() -> pd.DataFrame:
        """Settings from the pilots; none where no part needs any."""
        runs = results.load()
        return paper.choose(runs[runs.id.isin(piloted)]) if piloted else paper.guess([])

    settings = choose() if piloted <= done else paper.guess(pilots)
    left = [spec for spec in [*pilots, *here(paper.final(size, parts, settings))] if spec.id not in done]
    time = paper.hours(left, jobs or os.cpu_count() or 1)
    if left:
        click.echo(f"About {max(round(time * 60), 1)} minutes." if time < 2 else f"About {time:.0f} hours.", err=True)
    if time >= 2 and not yes:
        click.confirm("Go on?", abort=True, err=True)
    failed = _play("choosing γ", pilots, results, jobs, cluster)
    chosen = choose()
    specs = here(paper.final(size, parts, chosen))
    failed += _play("runs", specs, results, jobs, cluster)
    runs, wanted = results.load(), {spec.id for spec in specs}
    failures = results.sql("SELECT * FROM failures")
    if not runs.id.isin(wanted).any():
        raise InputError("no run has finished, so there is nothing to report")
    page = write_reproduction(
        runs[runs.id.isin(wanted)],
        chosen,
        size,
        folder,
        failures=failures[failures.id.isin(wanted | piloted)],
        missing=missing,
        command=shlex.join(["fliptron", *sys.argv[1:]]),
    )
    click.echo(f"Report: {page}")
    if failed or missing:
        raise SystemExit(1)


@main.command(name="play")
@click.argument("plan", metavar="PLAN.toml")
@click.option("--out", default="fliptron-results", show_default=True, help="Folder for the results.")
@JOBS
@CLUSTER
def play_plan(*, plan: str, out: str, jobs: int | None, cluster: str | None) -> None:
    """Play a plan of your own: data sets, noise, learners with grids of settings, seeds.

    \b
    [[grid]]
    datasets = ["digits", "clicks.csv"]
    rates = [[0.2, 0.4], [0.15, 0.15]]
    rounds = 100_000
    seeds = 10                          # or a list
    learners.RCNBF.gamma = [0.1, 0.2]   # a list is a grid
    learners.Fliptron = {}

    Runs that are in the folder already are not played again. `fliptron results` reads them.
    """
    specs = read_plan(plan)
    results = Results(writable_folder(out))
    failed = _play(Path(plan).stem, specs, results, jobs, cluster)
    runs = results.load()
    table = error_table(runs[runs.id.isin({spec.id for spec in specs})])
    click.echo(table.drop(columns=["greedy_error"]).to_string(index=False, float_format=lambda value: f"{value:.4f}"))
    if failed:
        raise SystemExit(1)


@main.command()
@click.option(
    "--sql",
    default="SELECT dataset, rho0, rho1, learner, params, rounds, count(*) AS seeds, avg(error) AS error "
    "FROM runs GROUP BY ALL ORDER BY ALL",
    help="A query over runs, curves and failures.",
)
@click.option("--folder", default="fliptron-results", show_default=True, help="Where `play` or `reproduce` put them.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
def results(*, sql: str, folder: str, as_csv: bool) -> None:
    """Ask the results of `play` or `reproduce` with SQL.

    \b
    Examples:
      fliptron results
      fliptron results --folder fliptron-paper/results --sql "SELECT learner, avg(error) FROM runs GROUP BY 1"
      fliptron results --sql "SELECT * FROM curves WHERE rounds = 1000" --csv
    """
    if not Path(folder).is_dir():
        raise InputError(f"{folder} is not a folder with results")
    answer = Results(folder).sql(sql)
    click.echo(answer.to_csv(index=False) if as_csv else answer.to_string(index=False))
