"""`fliptron decide`."""

from __future__ import annotations

import json
import secrets
import sys
from typing import Any

import click

from fliptron.cli.group import command
from fliptron.kernels.randomness import CHOICES, make_key
from fliptron.policy import Policy
from fliptron.refusals import InputError


@command(name="decide")
@click.argument("policy", metavar="POLICY")
@click.option("--greedy", is_flag=True, help="Play the best label always: nothing is explored.")
@click.option("--save", is_flag=True, help="Keep what the policy has seen and how often it has decided in its file.")
def decide(*, policy: str, greedy: bool, save: bool) -> None:
    """Choose a label for every record on standard input, one JSON object per line; the answers are such lines too.

    An answer has the label to play, the label thought best, and the probability of the first. Keep all three with the
    record and the bit that comes back: that is a log, and `fliptron learn` learns from it. Every call draws anew; with
    --save a call goes on where the one before it stopped, so that a seed says what is drawn.

    \b
    Example:
      echo '{"age": 31, "city": "Rome"}' | fliptron decide policy.npz
    """
    known = Policy.load(policy)
    if not save:  # the next call would draw the same again
        known.learner.key = int(make_key(secrets.randbits(63), CHOICES))
    for number, line in enumerate(sys.stdin.buffer if sys.stdin else (), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            raise InputError(
                f"line {number} is not JSON; one object of names and values per line is expected"
            ) from None
        if not isinstance(record, dict):
            raise InputError(f"line {number} is a {type(record).__name__}; an object of names and values is expected")
        try:
            if record:  # of an empty one it is clear that nothing is known
                known.missing(list(record), "the record")
            answer = _answer(known, record, greedy)
        except InputError as error:
            raise InputError(f"line {number}: {error}") from None
        click.echo(json.dumps(answer))
        sys.stdout.flush()
    if save:
        known.save(policy)


def _answer(policy: Policy, record: dict[str, Any], greedy: bool) -> dict[str, Any]:
    if greedy:
        label = policy.predict([record])[0]
        return {"label": label, "greedy": label, "probability": 1.0}
    choice = policy.decide(record)
    return {"label": choice.label, "greedy": choice.greedy, "probability": choice.probability}
