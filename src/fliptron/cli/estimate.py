"""`fliptron estimate`."""

from __future__ import annotations

import json

import click

from fliptron.auditing import audit
from fliptron.cli.group import Whole, command, writable
from fliptron.cli.show import estimated, show_estimate
from fliptron.logs.tables import read_log
from fliptron.output import make_folder, write_whole
from fliptron.report.figures import draw, margin_curve


@command(name="estimate")
@click.argument("log", metavar="LOG")
@click.option("--classes", type=Whole(), help="K, how many labels there are. Default: the largest seen plus one.")
@click.option("--window", type=Whole(), default=5000, show_default=True, help="Rounds over which margins are ranked.")
@click.option("--half-life", type=float, help="Rounds after which a bit counts half, if the noise drifts.")
@click.option("--out", default="fliptron-out", show_default=True, help="Folder for the picture.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def estimate(*, log: str, classes: int | None, window: int, half_life: float | None, out: str, as_json: bool) -> None:
    """How noisy are the bits of a log, and how accurate is the policy behind them?

    LOG is a .csv or .parquet file, one row per round in the order they were played, with columns label, greedy (the
    label thought best), probability (of the label played) and bit, and either margin (the lead of the greedy label's
    score) or the examples as x0, x1, … `fliptron run --log` writes such files.

    \b
    Example:
      fliptron run --learner LeastMeanSquares --gamma 0.05 --seeds 1 --log
      fliptron estimate fliptron-out/logs/LeastMeanSquares-0.parquet
    """
    folder = writable(out)
    found = audit(read_log(log), n_classes=classes, window=window, half_life=half_life)
    svg, png, _ = draw(lambda: margin_curve(found))
    write_whole(make_folder(folder) / "noise.svg", svg)
    write_whole(folder / "noise.png", png)
    picture = folder / "noise.png"
    if as_json:
        told = {"intervals": dict(found.intervals), "verdict": found.verdict, "reason": found.reason}
        click.echo(json.dumps(estimated(found) | told | dict(found.details) | {"picture": str(picture)}, indent=2))
        return
    show_estimate(found)
    click.echo(f"\nVerdict: {found.verdict}. {found.reason[0].upper()}{found.reason[1:]}.")
    rounds, others = found.details["rounds"], found.details["not_greedy"]
    click.echo(f"{rounds:,} rounds; those that played another label than the greedy one are worth {others:,.0f}.")
    click.echo(f"Picture: {picture}")
