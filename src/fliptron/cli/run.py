"""`fliptron run`."""

from __future__ import annotations

import json
import shlex
import sys

import click
from rich.console import Console

from fliptron.cli.group import INTERRUPTED, JOBS, RATES, Whole, main
from fliptron.datasets import load
from fliptron.experiments.comparison import compare
from fliptron.experiments.roster import DEFAULT, ROSTER, SLOW
from fliptron.report import writable_folder, write_report
from fliptron.report.progress import Watcher
from fliptron.report.tables import error_table, rates_table
from fliptron.stream import Order


@main.command()
@click.option(
    "--dataset",
    default="digits",
    show_default=True,
    help="A name from `fliptron data`, or a .csv, .npz or libsvm file.",
)
@click.option(
    "--learner",
    "learners",
    multiple=True,
    metavar="NAME",
    type=click.Choice(list(ROSTER), case_sensitive=False),
    help=f"A learner to run; repeat for more: {', '.join(ROSTER)}. Default: all but {' and '.join(SLOW)}.",
)
@RATES
@click.option("--rounds", type=Whole(), default=100_000, show_default=True, help="Rounds a run (1e6 is understood).")
@click.option(
    "--seeds",
    type=Whole(),
    default=10,
    show_default=True,
    help="How many seeds; every learner meets the same rows and flips.",
)
@click.option("--first-seed", type=Whole(), default=0, show_default=True, help="The first of them.")
@click.option(
    "--gamma",
    type=float,
    help="Exploration of our learners that explore at random. Default: each learner's own, tuned on other seeds.",
)
@click.option(
    "--order",
    type=click.Choice(["resample", "shuffle", "file"]),
    default="resample",
    show_default=True,
    help="Draw rows with replacement (the paper's way), or pass over them shuffled or in file order.",
)
@click.option("--raw", is_flag=True, help="Keep rows as they are instead of scaling them to length 1.")
@click.option(
    "--dtype",
    type=click.Choice(["float64", "float32", "uint8"]),
    default="float64",
    show_default=True,
    help="How examples are kept: uint8 is for images and counts. Weights are float32 too, of learners that can.",
)
@click.option("--rows", type=Whole(), help="Size of a synthetic data set (default 100,000).")
@JOBS
@click.option("--out", default="fliptron-out", show_default=True, help="Folder for table, curves, pictures and report.")
@click.option("--log", "keep_logs", is_flag=True, help="Write every round to OUT/logs, one Parquet file a run.")
@click.option("--json", "as_json", is_flag=True, help="Print rows as JSON instead of a table.")
def run(
    *,
    dataset: str,
    learners: tuple[str, ...],
    rates: tuple[float, float],
    rounds: int,
    seeds: int,
    first_seed: int,
    gamma: float | None,
    order: Order,
    raw: bool,
    dtype: str,
    rows: int | None,
    jobs: int | None,
    out: str,
    keep_logs: bool,
    as_json: bool,
) -> None:
    """Compare learners on one data set and one noise setting.

    \b
    Examples:
      fliptron run
      fliptron run --dataset iris --rates 0.4 0.4 --rounds 1e6
      fliptron run --learner RCNBF --learner RidgeRegression --gamma 0.1
      fliptron run --dataset clicks.csv --order shuffle --json
    """
    folder = writable_folder(out)
    data = load(dataset, unit_norm=not raw, rows=rows, dtype=dtype)
    names = list(dict.fromkeys(learners)) or DEFAULT
    console = Console(stderr=True)
    with Watcher(console, names, rounds, seeds) as watcher:
        result = compare(
            names,
            data,
            rates=rates,
            rounds=rounds,
            seeds=range(first_seed, first_seed + min(seeds, 10**6 + 1)),
            order=order,
            gamma=gamma,
            dtype="float64" if dtype == "float64" else "float32",
            jobs=jobs,
            watch=watcher,
            logs=folder / "logs" if keep_logs else None,
        )
    kept = sum(map(len, result.traces.values()))
    if result.interrupted:
        console.print(f"Interrupted: {kept} of {len(names) * seeds} runs had finished and are kept.", style="bold")
    if kept:
        table = result.rows()
        page = write_report(result, table, folder, shlex.join(["fliptron", *sys.argv[1:]]))
        if as_json:
            click.echo(json.dumps(table, indent=2))
        else:
            Console().print(error_table(result, table))
            if any("rates_mean" in row for row in table):
                Console().print(rates_table(result, table))
            click.echo(f"Picture: {folder / 'errors.png'}\nReport:  {page}")
    if result.interrupted:
        raise SystemExit(INTERRUPTED)
