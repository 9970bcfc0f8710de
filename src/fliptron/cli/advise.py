"""`fliptron advise`."""

from __future__ import annotations

import json
from typing import Any

import click

from fliptron import theory
from fliptron.cli.group import RATES, Whole, command


@command(name="advise")
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
