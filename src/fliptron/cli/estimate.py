"""`fliptron estimate`."""

from __future__ import annotations

import json
from typing import Any

import click

from fliptron.auditing import audit
from fliptron.cli.group import CLUSTER, Whole, command, writable
from fliptron.cli.reading import log_options, open_log, reading
from fliptron.cli.show import estimated, sentence, show_estimate
from fliptron.noise.curve import margin_curve
from fliptron.noise.estimate import Estimate
from fliptron.output import make_folder, write_whole
from fliptron.report.figures import draw

_SHARES = 0.01, 0.05  # of rounds that play a random label


@command(name="estimate")
@click.argument("log", metavar="LOG")
@log_options
@click.option("--window", type=Whole(), default=5000, show_default=True, help="Rounds over which margins are ranked.")
@click.option("--half-life", type=float, help="Rounds after which a bit counts half, if the noise drifts.")
@CLUSTER
@click.option("--out", default="fliptron-out", show_default=True, help="Folder for the picture.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def estimate(
    *, log: str, window: int, half_life: float | None, cluster: str | None, out: str, as_json: bool, **columns: Any
) -> None:
    """How noisy are the bits of a log, and how accurate is the policy behind them?

    LOG is a .csv, .tsv, .parquet or .jsonl file, Vowpal Wabbit's .vw or .dsjson (all also .gz), OBP's .npz, a folder or
    a quoted pattern of such files, or - for standard input: one row per round in the order they were played. Columns
    are guessed from their names; the guess is shown, and the options below correct it.

    \b
    Examples:
      fliptron estimate clicks.csv
      fliptron estimate "days/*.parquet" --label shown --bit clicked --probability propensity
      fliptron run --learner LeastMeanSquares --gamma 0.05 --seeds 1 --log
      fliptron estimate fliptron-out/logs/LeastMeanSquares-0.parquet
    """
    folder = writable(out)
    opened = open_log(log, columns, quiet=as_json)
    with reading(opened.n_rounds, "reading") as progress:
        found = audit(opened, window=window, half_life=half_life, progress=progress, cluster=cluster)
    svg, png, _ = draw(lambda: margin_curve(found))
    write_whole(make_folder(folder) / "noise.svg", svg)
    write_whole(folder / "noise.png", png)
    picture = folder / "noise.png"
    if as_json:
        told = {"intervals": dict(found.intervals), "verdict": found.verdict, "reason": found.reason}
        click.echo(json.dumps(estimated(found) | told | dict(found.details) | {"picture": str(picture)}, indent=2))
        return
    show_estimate(found)
    click.echo(f"\nVerdict: {found.verdict}. {sentence(found.reason)}")
    rounds, others = found.details["rounds"], found.details["not_greedy"]
    click.echo(f"{rounds:,} rounds; those that played another label than the greedy one are worth {others:,.0f}.")
    if found.verdict != "identified" and opened.has_probabilities:
        halves = " or ".join(_with_more_exploration(found, len(opened.labels)))
        if halves:
            click.echo(f"Had some of the rounds played a random label, rho0 would be known to {halves}.")
    click.echo(f"Picture: {picture}")


def _with_more_exploration(found: Estimate, n_classes: int) -> list[str]:
    """How well ρ0 would be known with more exploration than there was, where that is better than it is."""
    low, high = found.intervals["rho0"]
    there = found.details["not_greedy"] / found.details["rounds"] * n_classes / (n_classes - 1)
    halves = {share: found.with_exploration(share, n_classes) for share in _SHARES if share > there}
    return [f"±{half:.3f} with {share:.0%}" for share, half in halves.items() if half < (high - low) / 2]
