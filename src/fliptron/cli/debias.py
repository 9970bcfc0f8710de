"""`fliptron debias`."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import click
import numpy as np

from fliptron.cli.group import command
from fliptron.cli.reading import log_options, open_log, reading
from fliptron.cli.show import show
from fliptron.debiasing import FORMS, Channels
from fliptron.debiasing import debias as debias_log
from fliptron.logs.export import TO
from fliptron.logs.obp import load_feedback
from fliptron.output import writable_file
from fliptron.refusals import InputError
from fliptron.rounds import Rates

_ENDS = {"parquet": ".parquet", "vw": ".vw", "vw-cb": ".vw", "dsjson": ".dsjson", "obp": ".npz"}


@command(name="debias")
@click.argument("log", metavar="LOG")
@click.option("--to", type=click.Choice(["parquet", *TO]), default="parquet", show_default=True, help="What to write.")
@click.option("--save", metavar="FILE", help="The file to write. Default: debiased.parquet, .vw, .dsjson or .npz.")
@click.option("--by", metavar="label|COLUMN", help="What the noise depends on. Default: nothing, one channel for all.")
@click.option(
    "--rates",
    multiple=True,
    metavar="[VALUE=]RHO0,RHO1",
    help="The flip rates, if they are known; with --by one for each label or value. Default: estimated from the log.",
)
@click.option(
    "--reward",
    type=click.Choice(FORMS),
    help="What a form with one reward gets. Default: weighted with --by COLUMN, else h.",
)
@log_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def debias(
    *,
    log: str,
    to: str,
    save: str | None,
    by: str | None,
    rates: tuple[str, ...],
    reward: str | None,
    as_json: bool,
    **columns: Any,
) -> None:
    """Take the flips out of a log's bits, on average, for learners that know nothing of flips.

    The reward h = (bit − rho0) / beta has mean 1 for a right label and 0 for a wrong one. The weighted form,
    beta · (bit − rho0), is h times beta², which keeps the bits of a poor channel from drowning the rest. A Parquet file
    has both; other forms have one reward per round. Vowpal Wabbit's costs are its negative.

    What it is for depends on the noise. With one channel for all, what a learner makes of h is what it makes of the
    bits: only values change, and become true accuracies. If the noise differs by label, bits favour labels that are
    clicked by mistake, and h (the default then) puts that right. If it differs by source, such as a site or a judge, h
    is ruled by the poorest one and can do harm; only the weighted form (the default then) is to be used.

    Rates that the log does not identify are refused, unless they are told. With --rates 0,0 the bits are written as
    they are, which turns a log of one form into one of another.

    LOG is as in `fliptron estimate`.

    \b
    Examples:
      fliptron debias clicks.csv --to vw
      fliptron debias clicks.csv --to vw --by label
      fliptron debias "days/*.parquet" --by site --to dsjson --save days.dsjson.gz
      fliptron debias clicks.vw --to obp --rates 0.02,0.9
    """
    path = Path(save or f"debiased{_ENDS[to]}")
    told = _told(rates, by)
    opened = open_log(log, columns, quiet=as_json)
    writable_file(path)
    with warnings.catch_warnings(record=True) as losses:
        warnings.simplefilter("always", UserWarning)
        with reading(opened.n_rounds, "reading") as progress:
            found = debias_log(opened, path, to=to, by=by, rates=told, form=reward, progress=progress)
    for each in losses:
        click.echo(f"Warning: {each.message}.", err=True)
    left_out = load_feedback(path).get("left_out", np.array([])).tolist() if to == "obp" else []
    if as_json:
        values = {str(key): _plain(found, key) for key in found.rates}
        click.echo(json.dumps({"file": str(path), "by": by, "rates": values, "left_out": left_out}, indent=2))
        return
    rows = [_row(found, key) for key in found.rates]
    show([by or "of", "rho0", "rho1", "beta", "verdict"], rows, title="Flip rates", left=0)
    for key, estimate in found.estimates.items():
        if estimate.verdict != "identified":
            click.echo(f"{key}: {estimate.verdict}, {estimate.reason}.")
    for name in left_out:
        click.echo(f"{name} is left out: it holds more than 1,000 different words, which would be a column each.")
    click.echo(f"Debiased: {path}")


def _told(rates: tuple[str, ...], by: str | None) -> Any:
    """The rates that options say."""
    found = {}
    for each in rates:
        key, _, pair = each.rpartition("=")
        try:
            rho0, rho1 = map(float, pair.split(","))
        except ValueError:
            raise InputError(f"--rates is {each!r}; RHO0,RHO1 or VALUE=RHO0,RHO1 is expected") from None
        if key in found:
            raise InputError(f"--rates gives {key or 'rates'!r} twice; each once is expected")
        found[key] = Rates.of((rho0, rho1))
    if by is None and list(found) not in ([], [""]):
        raise InputError("--rates gives rates by value; say by what with --by")
    return None if not found else found[""] if by is None else found


def _row(found: Channels, key: Any) -> tuple[str, ...]:
    rates, estimate = found.rates[key], found.estimates.get(key)
    told = [f"{value:.4f}" for value in (rates.rho0, rates.rho1, rates.beta)]
    return str(key), *told, "told" if estimate is None else estimate.verdict


def _plain(found: Channels, key: Any) -> dict[str, Any]:
    rates, estimate = found.rates[key], found.estimates.get(key)
    told = {"rho0": rates.rho0, "rho1": rates.rho1, "verdict": "told"}
    if estimate is None:
        return told
    return told | {"verdict": estimate.verdict, "reason": estimate.reason, "intervals": dict(estimate.intervals)}
