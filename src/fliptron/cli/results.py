"""`fliptron results`."""

from __future__ import annotations

from pathlib import Path

import click

from fliptron.cli.group import command
from fliptron.refusals import InputError
from fliptron.results import Results

_ALL = (
    "SELECT dataset, rho0, rho1, learner, params, rounds, count(*) AS seeds, avg(error) AS error "
    "FROM runs GROUP BY ALL ORDER BY ALL"
)


@command(name="results")
@click.option(
    "--sql", default=_ALL, help="A query over runs, curves and failures; it cannot change or read anything else."
)
@click.option(
    "--folder",
    default="fliptron-results",
    show_default=True,
    help="Where the results are; of `run` and `reproduce` it is OUT/results.",
)
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
def results(*, sql: str, folder: str, as_csv: bool) -> None:
    """Ask the results of `run`, `play` or `reproduce` with SQL.

    \b
    Examples:
      fliptron results
      fliptron results --folder fliptron-out/results
      fliptron results --folder fliptron-paper/results --sql "SELECT learner, avg(error) FROM runs GROUP BY 1"
      fliptron results --sql "SELECT params->>'gamma' AS gamma, avg(error) FROM runs GROUP BY 1"
      fliptron results --sql "SELECT * FROM curves WHERE rounds = 1000" --csv
    """
    if not Path(folder).is_dir():
        raise InputError(
            f"{folder} is not a folder with results; `play` makes fliptron-results, `run` fliptron-out/results, and "
            "`reproduce` fliptron-paper/results, unless told otherwise"
        )
    there = Results(folder)
    for each in there.ignored:
        click.echo(f"{folder}: {each}; it is left alone.", err=True)
    answer = there.sql(sql)
    click.echo(answer.to_csv(index=False) if as_csv else answer.to_string(index=False))
