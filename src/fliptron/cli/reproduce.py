"""`fliptron reproduce`."""

from __future__ import annotations

import shlex
import sys

import click

from fliptron.cli.group import CLUSTER, INTERRUPTED, JOBS, command, writable
from fliptron.cli.playing import play_with_progress
from fliptron.experiments import paper
from fliptron.experiments.reproduction import Plan
from fliptron.refusals import InputError
from fliptron.report.reproduction import write_reproduction
from fliptron.results import Results


@command(name="reproduce")
@click.option("--scale", type=click.Choice(list(paper.SCALES)), default="smoke", show_default=True, help="How much.")
@click.option("--only", metavar="PARTS", help=f"Some of {','.join(paper.PARTS)}, with commas.")
@click.option("--without", metavar="PARTS", help="Parts to leave out, such as nrest.")
@click.option("--datasets", metavar="NAMES", help=f"Some of {','.join(paper.NAMES)}, with commas; all unless given.")
@click.option("--out", default="fliptron-paper", show_default=True, help="Folder for results, figures and report.")
@JOBS
@CLUSTER
@click.option("--yes", is_flag=True, help="Do not ask before a run of many hours.")
def reproduce(
    *,
    scale: str,
    only: str | None,
    without: str | None,
    datasets: str | None,
    out: str,
    jobs: int | None,
    cluster: str | None,
    yes: bool,
) -> None:
    """Run the paper's experiments, and more, and write the report.

    \b
    smoke  about a minute, on embedded data: does it all work? No verdicts
    desk   under an hour on two cores: 1e6 rounds, 10 seeds, all data sets
    paper  under four hours on two cores, and NREst's hours: 1e7 rounds, as the paper's own code plays

    The published NREst is a part of its own, nrest: hours of training networks. It belongs to the scale paper;
    --without nrest leaves it out, and --only nrest plays it alone, at any scale.

    Stop it at any time: the same command goes on where it stopped. A larger scale in the same folder uses the runs of a
    smaller one, and all data sets those of some: --datasets splits a long run into shorter ones.

    \b
    Examples:
      fliptron reproduce
      fliptron reproduce --scale desk --only fig2,table1
      fliptron reproduce --scale paper --without nrest
      fliptron reproduce --scale paper --only fig2 --datasets optdigits
      fliptron reproduce --scale paper --cluster tcp://10.0.0.1:8786
    """
    folder = writable(out)
    results, size = Results(folder / "results"), paper.SCALES[scale]
    plan = Plan(size, paper.parts_of(size, _parts(only), _parts(without)), results, _parts(datasets))
    click.echo("Measuring what a round costs here …", err=True)
    time = plan.hours(jobs if cluster is None else 1)
    if time > 0:
        shared = "" if cluster is None else " of one core like those here, which the cluster's workers share"
        click.echo(f"About {_told(time)}{shared}.", err=True)
    if time >= 2 and not (yes or _agreed()):
        raise SystemExit(1)
    plan.prepare()
    for name, why in plan.missing.items():
        click.echo(f"{name} is missing: {why}", err=True)
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


def _told(hours: float) -> str:
    """A time as people say it."""
    minutes = max(round(hours * 60), 1)
    return f"{hours:.1f} hours" if hours >= 2 else f"{minutes} minute{'s' if minutes > 1 else ''}"


def _agreed() -> bool:
    """Whether the user says yes."""
    try:
        return click.confirm("Go on?", err=True)
    except click.Abort:
        if sys.stdin.isatty():  # Ctrl-C
            raise
        click.echo(err=True)
        raise InputError("nobody is here to answer; --yes goes on without asking") from None


def _parts(text: str | None) -> tuple[str, ...]:
    return tuple(text.split(",")) if text else ()
