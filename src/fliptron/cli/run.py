"""`fliptron run`."""

from __future__ import annotations

import copy
import json
import shlex
import sys
from typing import Any, get_args

import click
from rich.console import Console
from rich.text import Text

from fliptron.arrays import KEPT
from fliptron.cli.group import CLUSTER, INTERRUPTED, JOBS, RATES, Whole, command, writable
from fliptron.cli.playing import play_with_progress
from fliptron.cli.reading import KIND, kinds_of
from fliptron.cli.show import show
from fliptron.datasets.dataset import Dataset
from fliptron.experiments.plan import Spec, grid
from fliptron.experiments.roster import DEFAULT, ROSTER, TOLD, build, settings
from fliptron.experiments.runner import data
from fliptron.output import writable_file
from fliptron.policy import Policy
from fliptron.refusals import InputError, named, whole
from fliptron.report.comparison import Comparison
from fliptron.report.statistics import plus_minus
from fliptron.results import Results
from fliptron.rounds import Rates
from fliptron.simulation import simulate
from fliptron.stream import Order
from fliptron.tables import found_files

_COLUMNS = 20  # that are shown


@command(name="run")
@click.option(
    "--dataset",
    default="digits",
    show_default=True,
    help="A name from `fliptron data`, or a table (.csv, .parquet, .jsonl; also a folder or a quoted pattern of such "
    "files, or - for standard input), .npz or libsvm file.",
)
@click.option("--label", metavar="COLUMN", help="The column of right labels. Default: one called so, or the last.")
@KIND
@click.option(
    "--encode/--no-encode",
    default=None,
    help="Centre and scale numbers, take words and gaps, add a constant. Default: for your own tables.",
)
@click.option(
    "--learner",
    "learners",
    multiple=True,
    metavar="NAME",
    type=click.Choice(list(ROSTER), case_sensitive=False),
    help=f"A learner to run; repeat for more: {', '.join(ROSTER)}. Default: {', '.join(DEFAULT)}.",
)
@RATES
@click.option("--rounds", type=Whole(), default=100_000, show_default=True, help="Rounds per run (1e6 is understood).")
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
    type=click.Choice(get_args(Order)),
    default="resample",
    show_default=True,
    help="Draw rows with replacement (the paper's way), or pass over them shuffled or in file order.",
)
@click.option("--raw", is_flag=True, help="Keep rows as they are instead of scaling them to length 1.")
@click.option(
    "--dtype",
    type=click.Choice(KEPT),
    default="float64",
    show_default=True,
    help="How examples are kept: uint8 is for images and counts, sparse leaves out zeros. "
    "With float32 and uint8 weights are float32 too, of learners that can.",
)
@click.option("--rows", type=Whole(), help="Size of a synthetic data set (default 100,000).")
@JOBS
@CLUSTER
@click.option("--out", default="fliptron-out", show_default=True, help="Folder for table, curves, pictures and report.")
@click.option("--log", "keep_logs", is_flag=True, help="Write every round to OUT/logs, one Parquet file per run.")
@click.option(
    "--save",
    metavar="FILE",
    help="Keep the best learner that needs no truth: let it play the first seed again, and save it (.npz).",
)
@click.option("--json", "as_json", is_flag=True, help="Print rows as JSON instead of a table.")
def run(
    *,
    dataset: str,
    label: str | None,
    kinds: tuple[str, ...],
    encode: bool | None,
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
    cluster: str | None,
    out: str,
    keep_logs: bool,
    save: str | None,
    as_json: bool,
) -> None:
    """Compare learners on one data set and one noise setting.

    What is played is kept in OUT/results: the same command goes on where it stopped, and plays nothing twice.

    \b
    Examples:
      fliptron run
      fliptron run --dataset iris --rates 0.4 0.4 --rounds 1e6
      fliptron run --learner RCNBF --learner RidgeRegression --gamma 0.1
      fliptron run --dataset customers.csv --label segment --order shuffle --json
    """
    folder, names = writable(out), list(dict.fromkeys(learners)) or DEFAULT
    if whole("seeds", seeds, 0, 10**6) == 0:
        raise InputError("no run is asked for; at least one learner and one seed are expected")
    if cluster and keep_logs:
        raise InputError("a cluster's workers keep no logs; use one or the other")
    if save is not None:
        if not save.endswith(".npz"):
            raise InputError(f"--save is {save!r}; a name that ends in .npz is expected")
        writable_file(save)
    dataset, spool = _file_of(dataset, cluster)
    chosen = {name: {"gamma": [gamma]} if gamma is not None and "gamma" in settings(name) else {} for name in names}
    first = whole("seed", first_seed, 0, 2**62)
    specs = grid(
        datasets=[dataset],
        rates=[Rates.of(rates)],
        learners=chosen,
        rounds=whole("rounds", rounds, 1, 10**15),
        seeds=range(first, first + seeds),
        order=order,
        raw=raw,
        dtype=dtype,
        rows=rows,
        encode=encode,
        label=label,
        kinds=kinds_of(kinds),
    )
    loaded = _loaded(specs[0], "standard input" if spool else dataset)
    _describe(loaded, quiet=as_json)
    for spec in specs[::seeds]:
        build(spec.learner, loaded, seed=0, **spec.effective)  # refuses what it must before anything is played
    results, interrupted = Results(folder / "results"), False
    try:
        logs = folder / "logs" if keep_logs else None
        failed = play_with_progress(specs, results, jobs=jobs, cluster=cluster, logs=logs)
    except KeyboardInterrupt:
        interrupted, failed = True, 0
    comparison = Comparison(loaded, specs, results.runs([spec.id for spec in specs]))
    if interrupted:
        kept = f"{len(comparison.runs)} of {len(specs)} runs had finished and are kept"
        Console(stderr=True).print(f"Interrupted: {kept}.", style="bold")
    if comparison.runs:
        page = comparison.write(folder, shlex.join(["fliptron", *sys.argv[1:]]))
        table = comparison.rows()
        if as_json:
            click.echo(json.dumps(table, indent=2))
        else:
            _show(comparison, table)
            click.echo(f"Picture: {folder / 'errors.png'}\nReport:  {page}")
        if save is not None:
            best = _save_best(comparison, table, save)
            click.echo(f"Saved:   {save} ({best})", err=as_json)
    if interrupted or failed:
        raise SystemExit(INTERRUPTED if interrupted else 1)


def _file_of(dataset: str, cluster: str | None) -> tuple[str, Any]:
    """The name of a data set, and for standard input of a file that it is in as long as what comes with it is held."""
    if dataset != "-":
        return dataset, None
    if cluster:
        raise InputError("a cluster's workers cannot read standard input; a file that all can see is expected")
    (path,), spool = found_files(dataset)
    return path, spool


def _loaded(spec: Spec, called: str) -> Dataset:
    try:
        return data(spec)[0]
    except InputError as error:
        raise InputError(str(error).replace(spec.dataset, called)) from None


def _describe(dataset: Dataset, *, quiet: bool) -> None:
    """Say in a few lines what the columns of a table were taken for."""
    if dataset.encoder is None or quiet:
        return
    schema = dataset.encoder.schema
    columns = [f"  {column}" for column in schema.columns if column.kind != "unused"]
    more = [f"  and {len(columns) - _COLUMNS} more"] if len(columns) > _COLUMNS else []
    left = ", ".join(column.name for column in schema.columns if column.kind == "unused")
    more += [f"left out (empty, every value different, or the label in other words): {left}"] if left else []
    size = f"{dataset.n_rows:,} rows, {dataset.n_classes} classes: {named(dataset.classes)}"
    Console(stderr=True).print(Text("\n".join([size, "features:", *columns[:_COLUMNS], *more])), style="dim")


def _save_best(result: Comparison, rows: list[dict[str, Any]], path: str) -> str:
    """Play the best learner's first run again, and keep the learner, or a policy where rows are records."""
    able = [row for row in rows if row["learner"] not in TOLD and row["learner"] != "Perceptron"]
    if not able:
        raise InputError("none of the learners can be saved: all were told what no user knows")
    name = min(able, key=lambda row: float(row["error_mean"]))["learner"]
    spec = next(spec for spec in result.specs if spec.learner == name)
    learner = build(name, result.dataset, seed=spec.seed, **spec.effective)
    if not hasattr(learner, "save"):
        raise InputError(f"{name} is not one of our learners and cannot be saved")
    encoder = copy.deepcopy(result.dataset.encoder)
    kept: Any = learner if encoder is None else Policy.around(result.dataset.classes, encoder, learner)
    simulate(kept, result.dataset, rates=spec.rates, rounds=spec.rounds, seed=spec.seed, order=spec.order)
    kept.save(path)
    return str(name)


def _show(result: Comparison, rows: list[dict[str, Any]]) -> None:
    """One row per learner, the best first; then the rates that learners found."""
    (rho0, rho1), seeds = result.first.rates, len(result.seeds)
    lines: list[tuple[str, ...]] = [
        (
            row["learner"],
            "true labels" if row["learner"] == "Perceptron" else "true rates" if row["learner"] in TOLD else "bits",
            plus_minus(row["error_mean"], row["error_ci95"]),
            plus_minus(row["greedy_error_mean"], row["greedy_error_ci95"]),
            f"{row['rounds_per_second']:,.0f}",
        )
        for row in sorted(rows, key=lambda row: float(row["error_mean"]))
    ]
    title = f"{result.dataset.name}, rates ({rho0:g}, {rho1:g}), {result.first.rounds:,} rounds, seeds: {seeds}"
    show(["learner", "told", "error ± 95 %", "greedy error ± 95 %", "rounds/s"], lines, title=title, left=2)
    found = [row for row in rows if "rates_mean" in row]
    if found:
        lines = [("true", f"{rho0:.4f}", f"{rho1:.4f}")]
        lines += [(r["learner"], *map(plus_minus, r["rates_mean"], r["rates_ci95"] or (None, None))) for r in found]
        show(["", "rho0", "rho1"], lines, title="Flip rates")
