"""`fliptron demo`."""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np

from fliptron.cli.group import Whole, command
from fliptron.datasets.shop import CLICKS, shop
from fliptron.logs.tables import write_table
from fliptron.output import writable_file
from fliptron.refusals import InputError


@command(name="demo")
@click.argument("log", metavar="FILE", default="shop.csv")
@click.option("--rounds", type=Whole(), default=100_000, show_default=True, help="How many visitors.")
@click.option("--seed", type=Whole(), default=0, show_default=True, help="Of visitors and clicks.")
@click.option("--truth", metavar="FILE", help="Also write what each visitor wanted, which no real log has.")
def demo(*, log: str, rounds: int, seed: int, truth: str | None) -> None:
    """Write the click log of a made-up shop to FILE (.csv or .parquet), to try the other commands on.

    Visitors have an age (one in ten is not known), an income, visits, a city, and may be members. An old policy showed
    each of them one of four offers, a random one in every fifth round. A visitor clicks an offer that is wanted 8 % of
    the time, and one that is not 2 %: rho0 is 0.02 and rho1 is 0.92.

    \b
    Example:
      fliptron demo shop.csv
      fliptron estimate shop.csv
      fliptron learn shop.csv --holdout 0.2
      fliptron evaluate shop.csv --policy policy.npz
    """
    for path in (log, truth):
        if path is not None and Path(path).suffix not in (".csv", ".parquet"):
            raise InputError(f"{path} ends in {Path(path).suffix!r}; .csv or .parquet is expected")
    if truth is not None and Path(truth).resolve() == Path(log).resolve():
        raise InputError("log and truth cannot be one file")
    for path in (log, truth):
        if path is not None:
            writable_file(path)
    made = shop(rounds, rates=CLICKS, seed=seed)
    write_table(Path(log), made.log)
    if truth is not None:
        write_table(Path(truth), {"wanted": made.wanted, "best": made.best})
    right = float(np.mean(made.log["shown"] == made.wanted))
    click.echo(f"{rounds:,} rounds; what was shown was wanted in {right:.1%} of them, and clicked in "
               f"{float(made.log['clicked'].mean()):.1%}.")  # fmt: skip
    click.echo(f"Log: {log}")
