"""`fliptron reproduce`."""

from __future__ import annotations

import shlex
import sys

import click

from fliptron.cli.group import CLUSTER, INTERRUPTED, JOBS, command, writable
from fliptron.cli.playing import play_with_progress
from fliptron.experiments import paper
from fliptron.experiments.reproduction import Plan
from fliptron.report.reproduction import write_reproduction
from fliptron.results import Results


@command(name="reproduce")
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
    folder = writable(out)
    results = Results(folder / "results")
    plan = Plan(paper.SCALES[scale], tuple(only.split(",")) if only else paper.PARTS, results)
    for name, why in plan.missing.items():
        click.echo(f"{name} is missing: {why}", err=True)
    time = plan.hours(jobs)
    if time > 0:
        click.echo(f"About {max(round(time * 60), 1)} minutes." if time < 2 else f"About {time:.0f} hours.", err=True)
    if time >= 2 and not yes:
        click.confirm("Go on?", abort=True, err=True)
    try:
        done = plan.play(
            lambda title, specs: play_with_progress(specs, results, title=title, jobs=jobs, cluster=cluster)
        )
    except KeyboardInterrupt:
        click.echo("Interrupted: finished runs are kept; the same command goes on from here.", err=True)
        raise SystemExit(INTERRUPTED) from None
    page = write_reproduction(done, folder, command=shlex.join(["fliptron", *sys.argv[1:]]))
    click.echo(f"Report: {page}")
    if done.failed or done.missing:
        raise SystemExit(1)
