"""`fliptron evaluate`."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from fliptron.cli.group import command, writable
from fliptron.cli.reading import log_options, open_log, reading, tell_missing
from fliptron.cli.show import sentence, show, show_estimate
from fliptron.evaluation import Value
from fliptron.evaluation import evaluate as evaluate_policies
from fliptron.output import make_folder, write_whole
from fliptron.policy import Policy
from fliptron.refusals import InputError
from fliptron.report.figures import draw


@command(name="evaluate")
@click.argument("log", metavar="LOG")
@click.option(
    "--policy",
    "policies",
    multiple=True,
    required=True,
    metavar="FILE|COLUMN",
    help="A policy's .npz file, or a column with the labels that another policy would have played; repeat for more.",
)
@log_options
@click.option("--all", "every", is_flag=True, help="Judge also by rounds that a policy has learnt from.")
@click.option("--out", default="fliptron-out", show_default=True, help="Folder for the picture.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def evaluate(*, log: str, policies: tuple[str, ...], every: bool, out: str, as_json: bool, **columns: Any) -> None:
    """How often would other policies have been right on the rounds of a log? Nothing needs to be played.

    LOG is a .csv, .tsv, .parquet or .jsonl file, Vowpal Wabbit's .vw or .dsjson (all also .gz), OBP's .npz, a folder or
    a quoted pattern of such files, or - for standard input: one row per round in the order they were played. Columns
    are guessed from their names; the guess is shown, and the options below correct it.

    Three estimates are given, which should agree: IPS and SNIPS weight each round by 1/probability where the policy
    would have played the same label, DR also uses a regression of the bits. All see through the flips. Rounds of the
    log that a policy has learnt from are left out, since it would look better there than it is.

    \b
    Examples:
      fliptron evaluate clicks.csv --policy policy.npz
      fliptron evaluate clicks.csv --policy old.npz --policy new.npz
      fliptron evaluate clicks.csv --policy what_the_old_model_says
    """
    folder = writable(out)
    files = {name: Policy.load(name) for name in policies if name.endswith(".npz")}
    others = tuple(name for name in policies if name not in files)
    opened = open_log(log, columns, quiet=as_json, others=others)
    for name, policy in files.items():
        tell_missing(opened, policy, name)
    learnt = 0 if every else max((opened.learnt_by(each) for each in files.values()), default=0)
    if learnt >= opened.n_rounds:
        raise InputError(
            "a policy has learnt from every round of this log, so it would look better than it is; learn with "
            "--holdout 0.2, use another log, or ask for --all"
        )
    if learnt and not as_json:
        click.echo(
            f"The first {learnt:,} rounds, which a policy has learnt from, count for the flip rates only.", err=True
        )
    alone = len({Path(name).stem for name in files} | set(others)) == len(policies)
    if len(set(policies)) < len(policies):
        raise InputError("a policy is named twice; each may be there once")
    with reading(opened.n_rounds, "evaluating") as progress:
        chosen: dict[str, Policy | str] = {
            (Path(name).stem if alone else name) if name in files else name: files.get(name, name) for name in policies
        }
        found = evaluate_policies(opened, chosen, skip=learnt, progress=progress)
    picture = make_folder(folder) / "accuracy.png"
    if found.noise.verdict != "not identified":
        svg, png, _ = draw(found.plot)
        write_whole(folder / "accuracy.svg", svg)
        write_whole(picture, png)
    if as_json:
        told = {
            "rates": {"rho0": found.noise.rates.rho0, "rho1": found.noise.rates.rho1, "verdict": found.noise.verdict},
            "policies": {name: asdict(value) for name, value in found.values.items()},
            "differences": [asdict(each) | {"is_real": each.is_real} for each in found.differences],
            **({"warnings": found.warnings} if found.warnings else {}),
        }
        click.echo(json.dumps(told, indent=2))
        return
    show_estimate(found.noise)
    columns_ = ["policy", "mean bit", "true accuracy (DR)", "SNIPS", "IPS", "rounds", "worth"]
    show(columns_, [_row(name, value) for name, value in found.values.items()], title="")
    if found.noise.verdict == "not identified":
        click.echo(sentence(f"no true accuracy follows: {found.noise.reason}"))
    for each in found.differences:
        click.echo(str(each))
    for warning in found.warnings:
        click.echo(f"Warning: {sentence(warning)}")
    if found.noise.verdict != "not identified":
        click.echo(f"Picture: {picture}")


def _row(name: str, value: Value) -> tuple[Any, ...]:
    told = ["–"] * 3
    if value.accuracy is not None:
        robust, (low, high) = value.accuracy["dr"]
        told = [f"{robust:.3f} [{low:.3f}, {high:.3f}]", *(f"{value.accuracy[how][0]:.3f}" for how in ("snips", "ips"))]
    return name, f"{value.mean_bit['dr']:.4f}", *told, value.rounds, round(value.effective)
