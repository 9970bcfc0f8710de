"""What the commands share: how they refuse, and options that several take."""

from __future__ import annotations

from typing import Any

import click

import fliptron
from fliptron.arrays import InputError

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


JOBS = click.option("--jobs", type=Whole(), help="Threads; the numbers do not depend on it. Default: one a core.")


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(fliptron.__version__, prog_name="fliptron")
def main() -> None:
    """Learn from right-or-wrong bits that are sometimes flipped.

    Each round a learner sees an example, plays one of K labels, and gets one bit: right or wrong. The
    bit lies with probability RHO0 when the label was wrong and RHO1 when it was right.

    Start with `fliptron run`: it compares every learner on handwritten digits and draws a picture.
    """
