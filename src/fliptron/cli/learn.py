"""`fliptron learn`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from fliptron.cli.group import INTERRUPTED, Whole, command
from fliptron.cli.reading import log_options, open_log, reading, tell_missing
from fliptron.cli.show import sentence, show, show_estimate
from fliptron.experiments.roster import ROSTER, TOLD, settings
from fliptron.interrupts import unbroken
from fliptron.learners.base import Learner
from fliptron.learners.files import is_saved
from fliptron.learning import Progressive, learn_log
from fliptron.output import writable_file
from fliptron.policy import Policy
from fliptron.refusals import InputError, real
from fliptron.rounds import Rates

_LEARNERS = [name for name, kind in ROSTER.items() if isinstance(kind, type) and issubclass(kind, Learner)]
_SECONDS = 10.0  # between two savings on the way


@command(name="learn")
@click.argument("log", metavar="LOG")
@click.option("--save", default="policy.npz", show_default=True, help="The file that the policy is kept in.")
@log_options
@click.option(
    "--learner",
    type=click.Choice(_LEARNERS, case_sensitive=False),
    metavar="NAME",
    help=f"Who learns: {', '.join(_LEARNERS)}. Default: Fliptron.",
)
@click.option(
    "--rates",
    nargs=2,
    type=float,
    metavar="RHO0 RHO1",
    help=f"The flip rates, for learners that must be told them: {', '.join(TOLD)}.",
)
@click.option("--gamma", type=float, help="How much the policy explores when it decides. Default: the learner's own.")
@click.option("--seed", type=Whole(), help="Of its exploration. Default: 0.")
@click.option("--holdout", default=0.0, show_default=True, help="Share of the rounds, the last ones, to leave out.")
@click.option("--fresh", is_flag=True, help="Begin anew, even if the file holds a policy already.")
def learn(
    *,
    log: str,
    save: str,
    learner: str | None,
    rates: tuple[float, float] | None,
    gamma: float | None,
    seed: int | None,
    holdout: float,
    fresh: bool,
    **columns: Any,
) -> None:
    """Learn a policy from a log: rounds that another policy played, with bits that may be flipped.

    LOG is a .csv, .tsv, .parquet or .jsonl file, Vowpal Wabbit's .vw or .dsjson (all also .gz), OBP's .npz, a folder or
    a quoted pattern of such files, or - for standard input: one row per round in the order they were played. Columns
    are guessed from their names; the guess is shown, and the options below correct it.

    The policy is saved on the way. Stop at any time: the same command goes on where it stopped. A policy that is there
    goes on learning, also from another log.

    \b
    Examples:
      fliptron learn clicks.csv
      fliptron learn "days/*.parquet" --label shown --bit clicked --save shop.npz --holdout 0.2
    """
    path = Path(save)
    if path.suffix != ".npz":
        raise InputError(f"--save is {save!r}; a name that ends in .npz is expected")
    share = real("holdout", holdout, 0.0, 0.99)
    given = {"gamma": gamma, "seed": seed, "rates": None if rates is None else tuple(Rates.of(rates))}
    chosen = {name: value for name, value in given.items() if value is not None}
    if path.is_file() and fresh and not is_saved(path):
        raise InputError(f"{path} is there and holds no policy of ours; it is left alone, and another name is expected")
    start: Any = _begun(path, learner, chosen) if path.exists() and not fresh else _new(learner or "Fliptron", rates)
    opened = open_log(log, columns)
    writable_file(path)
    last = opened.n_rounds - int(share * opened.n_rounds)
    before = 0
    if isinstance(start, Policy):
        tell_missing(opened, start, path)
        before = opened.learnt_by(start)
        click.echo(f"{path} goes on from round {before:,} of this log (--fresh begins anew).", err=True)
        if before >= last:
            raise InputError(f"{path} has learnt from all {last:,} rounds already; --fresh begins anew")
    told, saved = Progressive(before), time.monotonic()
    policy: Policy | None = None
    try:
        with reading(last, "learning") as progress:

            def watch(now: Policy, done: int, *round_: Any) -> None:
                nonlocal policy, saved
                policy = now
                told.add(*round_)
                progress(done)
                if time.monotonic() - saved > _SECONDS:
                    now.save(path)
                    saved = time.monotonic()

            policy = learn_log(opened, start, rounds=last, watch=watch, **({} if isinstance(start, Policy) else chosen))
        policy.save(path)
    except KeyboardInterrupt:
        if policy is not None:
            with unbroken():
                policy.save(path)
        again = f"what was learnt is kept; the same command{', without --fresh,' if fresh else ''} goes on from here"
        begun = policy is not None or isinstance(start, Policy)
        click.echo(f"Interrupted: {again if begun else 'nothing was learnt as yet'}.", err=True)
        raise SystemExit(INTERRUPTED) from None
    noise = policy.estimate() if hasattr(policy.learner, "estimate") else None
    if opened.has_probabilities:
        rows = told.rows(noise)
        show(["rounds", "its mean bit", "true accuracy"], rows, title="What it would have earned as it learnt", left=0)
    if noise is not None and opened.has_probabilities:
        show_estimate(noise)
        click.echo(f"\nVerdict: {noise.verdict}. {sentence(noise.reason)}")
    click.echo(f"Policy: {path}")


def _begun(path: Path, learner: str | None, chosen: dict[str, Any]) -> Policy:
    """The policy that is there already, if it is what the options ask for."""
    policy = Policy.load(path)
    held = policy.learner
    same = all(getattr(held, name, None) == value for name, value in chosen.items())
    if not same or (learner is not None and ROSTER[learner] is not type(held)):
        there = f"{path} holds a {type(held).__name__} that has begun to learn"
        raise InputError(f"{there}, and cannot be changed; --fresh begins anew")
    return policy


def _new(learner: str, rates: tuple[float, float] | None) -> Any:
    """The class of a learner, if it is told what it must be told, and nothing else."""
    if rates is None and learner in TOLD:
        raise InputError(
            f"{learner} must be told the flip rates; --rates RHO0 RHO1 says them, and `fliptron estimate` may find them"
        )
    if rates is not None and "rates" not in settings(learner):
        raise InputError(f"{learner} takes no flip rates; {', '.join(TOLD)} do")
    return ROSTER[learner]
