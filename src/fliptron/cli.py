"""The command line: each command parses, calls one function, and formats what comes back."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

import fliptron
from fliptron import theory
from fliptron.arrays import InputError
from fliptron.audit import audit
from fliptron.datasets import REGISTRY, load
from fliptron.experiments import paper
from fliptron.experiments.comparison import compare
from fliptron.experiments.plan import Spec, read_plan
from fliptron.experiments.roster import DEFAULT, ROSTER, SLOW
from fliptron.experiments.runner import play
from fliptron.logs import read_log
from fliptron.report import writable_folder, write_noise, write_report
from fliptron.report.progress import PlanWatcher, Watcher
from fliptron.report.reproduction import error_table as errors_of
from fliptron.report.reproduction import write_reproduction
from fliptron.report.tables import cell, error_table, estimate_json, estimate_table, rates_table
from fliptron.results import Results
from fliptron.stream import Order

INTERRUPTED = 130


class Refusal(click.ClickException):
    """Bad input: one sentence, exit code 2."""

    exit_code = 2


class Commands(click.Group):
    """A group whose commands refuse bad input in one sentence."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; what the library refuses, the command line refuses."""
        try:
            return super().invoke(ctx)
        except InputError as error:
            raise Refusal(str(error)) from None


class Whole(click.ParamType):  # type: ignore[type-arg]  # generic in newer releases only
    """A whole number, also written 1e6 or 1_000_000."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Parse, or say what is expected."""
        try:
            return int(value)
        except ValueError:
            pass
        try:
            number = float(value)
            if not number.is_integer():
                raise ValueError
        except (ValueError, OverflowError):
            self.fail(f"{value!r} is not a whole number (100000, 100_000 and 1e5 are)", param, ctx)
        return int(number)


RATES = click.option(
    "--rates",
    nargs=2,
    type=float,
    default=(0.2, 0.4),
    show_default=True,
    metavar="RHO0 RHO1",
    help="Flip rates: P(bit 1 | label wrong) and P(bit 0 | label right). Their sum must be below 1.",
)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(fliptron.__version__, prog_name="fliptron")
def main() -> None:
    """Learn from right-or-wrong bits that are sometimes flipped.

    Each round a learner sees an example, plays one of K labels, and gets one bit: right or wrong. The
    bit lies with probability RHO0 when the label was wrong and RHO1 when it was right.

    Start with `fliptron run`: it compares every learner on handwritten digits and draws a picture.
    """


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
    help="Exploration of every learner that explores at random. Default: each learner's own, tuned on other seeds.",
)
@click.option(
    "--order",
    type=click.Choice(["resample", "shuffle", "file"]),
    default="resample",
    show_default=True,
    help="Draw rows with replacement (the paper's way), or pass over them shuffled or in file order.",
)
@click.option("--raw", is_flag=True, help="Keep rows as they are instead of scaling them to length 1.")
@click.option("--rows", type=Whole(), help="Size of a synthetic data set (default 100,000).")
@click.option("--jobs", type=Whole(), help="Threads; the numbers do not depend on it. Default: one a core.")
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
    data = load(dataset, unit_norm=not raw, rows=rows)
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


@main.command()
@click.argument("log", metavar="LOG")
@click.option("--classes", type=Whole(), help="K, how many labels there are. Default: the largest seen plus one.")
@click.option("--window", type=Whole(), default=5000, show_default=True, help="Rounds over which margins are ranked.")
@click.option("--half-life", type=float, help="Rounds after which a bit counts half, if the noise drifts.")
@click.option("--out", default="fliptron-out", show_default=True, help="Folder for the picture.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def estimate(*, log: str, classes: int | None, window: int, half_life: float | None, out: str, as_json: bool) -> None:
    """How noisy are the bits of a log, and how accurate is the policy behind them?

    LOG is a .csv or .parquet file, one row a round in the order they were played, with columns label, greedy (the
    label thought best), probability (of the label played) and bit, and either margin (the lead of the greedy label's
    score) or the examples as x0, x1, … `fliptron run --log` writes such files.

    \b
    Example:
      fliptron run --learner LeastMeanSquares --gamma 0.05 --seeds 1 --log
      fliptron estimate fliptron-out/logs/LeastMeanSquares-0.parquet
    """
    folder = writable_folder(out)
    found = audit(read_log(log), n_classes=classes, window=window, half_life=half_life)
    picture = write_noise(found, folder)
    if as_json:
        click.echo(json.dumps(estimate_json(found) | {"picture": str(picture)}, indent=2))
        return
    Console().print(estimate_table(found))
    click.echo(f"\nVerdict: {found.verdict}. {found.reason[0].upper()}{found.reason[1:]}.")
    click.echo(f"{found.details['rounds']:,} rounds, {found.details['explored']:,.0f} of them explored.")
    click.echo(f"Picture: {picture}")


@main.command()
@click.option("--json", "as_json", is_flag=True, help="Print rows as JSON instead of a table.")
def data(*, as_json: bool) -> None:
    """List the data sets: shape, classes, source, and whether they are here.

    Files are looked for in the folder FLIPTRON_DATA names, then in the download cache. A data set that
    is not here is downloaded, and its checksum verified, when a command first asks for it; optdigits
    and usps have no open address and must be put in place by hand. Your own data needs no name: give
    commands the path of a .csv (label last), .npz (X, y) or libsvm file.
    """
    rows = [
        {
            "name": name,
            "rows": entry.rows,
            "features": entry.features,
            "classes": entry.classes,
            "present": entry.present(name),
            "source": entry.source,
        }
        for name, entry in REGISTRY.items()
    ]
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    table = Table(box=None, header_style="bold")
    for column in ("name", "rows", "features", "classes", "present", "source"):
        table.add_column(column, justify="right" if column in ("rows", "features", "classes") else "left")
    for row in rows:
        table.add_row(*(cell(value) for value in row.values()))
    Console().print(table)


@main.command()
@click.option("--rounds", type=Whole(), required=True, help="T, how many rounds will be played.")
@click.option("--classes", type=Whole(), required=True, help="K, how many labels there are.")
@RATES
@click.option(
    "--complexity",
    type=float,
    default=10.0,
    show_default=True,
    help="D, the squared norm of a weight matrix that does well.",
)
@click.option(
    "--hinge-loss",
    type=float,
    default=0.0,
    show_default=True,
    help="R_H, the hinge loss of that matrix summed over all rounds.",
)
@click.option("--published", is_flag=True, help="Use the paper's constants instead of the exact ones.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def advise(
    *,
    rounds: int,
    classes: int,
    rates: tuple[float, float],
    complexity: float,
    hinge_loss: float,
    published: bool,
    as_json: bool,
) -> None:
    """How much should RCNBF explore? What Theorem 1 says.

    \b
    Example:
      fliptron advise --rounds 1e7 --classes 10 --rates 0.2 0.4
    """
    known: dict[str, Any] = {"rounds": rounds, "n_classes": classes, "rates": rates, "complexity": complexity}
    gamma, mistakes = theory.advise(**known, hinge_loss=hinge_loss, published=published)
    schedule = theory.anytime(n_classes=classes, rates=rates, complexity=complexity)
    vacuous = mistakes >= rounds
    if as_json:
        asked = known | {"hinge_loss": hinge_loss, "published": published}
        bound = {"mistakes": mistakes, "error": mistakes / rounds, "vacuous": vacuous}
        click.echo(json.dumps(asked | {"gamma": gamma, "anytime": schedule.plain} | bound, indent=2))
        return
    verdict = (
        "more than the rounds played, so the theorem promises nothing here" if vacuous else "the theorem's promise"
    )
    caveat = (
        f"Caveat: this rests on D = {complexity:g} and R_H = {hinge_loss:g}, which nobody knows while the rounds come "
        "in: D is the squared norm of the best weight matrix, and R_H what even that matrix loses. The bound holds for "
        "the worst order of examples; on ordinary data another gamma may do better. Treat the number as a place to "
        "start, and compare with `fliptron run --gamma`."
    )
    click.echo(
        f"gamma = {gamma:.4g}\n"
        f"Expected mistakes: at most {mistakes:,.0f} in {rounds:,} rounds (error {mistakes / rounds:.3g}); {verdict}.\n"
        f"Without a horizon: gamma_t = min(0.5, {schedule.scale:.4g} / t^{schedule.power:.3g}).\n\n"
        + click.wrap_text(caveat, width=79)
    )


JOBS = click.option("--jobs", type=Whole(), help="Threads; the numbers do not depend on it. Default: one a core.")
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
    guess = paper.guess(pilots)
    left = [spec for spec in [*pilots, *here(paper.final(size, parts, guess))] if spec.id not in results.done()]
    time = paper.hours(left, jobs or os.cpu_count() or 1)
    click.echo(f"About {max(round(time * 60), 1)} minutes." if time < 2 else f"About {time:.0f} hours.", err=True)
    if time >= 2 and not yes:
        click.confirm("Go on?", abort=True, err=True)
    failed = _play("choosing γ", pilots, results, jobs, cluster)
    runs = results.load()
    chosen = paper.choose(runs[runs.id.isin({spec.id for spec in pilots})]) if pilots else paper.guess([])
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
        failures=failures[failures.id.isin({*wanted, *(spec.id for spec in pilots)})],
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
    table = errors_of(runs[runs.id.isin({spec.id for spec in specs})])
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
