"""The group of commands: how they are found, how they refuse, and options that several take."""

from __future__ import annotations

import gc
import importlib
from collections.abc import Callable
from typing import Any

import click

import fliptron
from fliptron.refusals import InputError

INTERRUPTED = 130
COMMANDS = {  # by module, in the order of a first acquaintance
    "run": "Compare learners on one data set and one noise setting.",
    "demo": "Write the click log of a made-up shop, to try the next commands on.",
    "estimate": "How noisy are the bits of a log, and how accurate is the policy behind them?",
    "learn": "Learn a policy from a log: rounds that another policy played, with bits that may be flipped.",
    "decide": "Choose a label for every record on standard input, with a policy that was learnt.",
    "serve": "Answer over HTTP: which label to play; keep everything in a journal; learn.",
    "evaluate": "How often would other policies have been right on the rounds of a log?",
    "debias": "Take the flips out of a log's bits, for learners of other libraries.",
    "data": "List the data sets: shape, classes, source, and whether they are here.",
    "advise": "How much should RCNBF explore? What Theorem 1 says.",
    "reproduce": "Run the paper's experiments, and more, and write the report.",
    "play": "Play a plan of your own: data sets, noise, learners with grids of settings, seeds.",
    "results": "Ask the results of `run`, `play` or `reproduce` with SQL.",
}


class Refusal(click.ClickException):
    """Bad input: one sentence, exit code 2."""

    exit_code = 2


class Commands(click.Group):
    """Commands that are loaded when they are called, and refuse bad input in one sentence."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Their names."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Load one."""
        if name not in COMMANDS:
            return None
        gc.disable()  # what is loaded stays: to look for garbage among it takes a tenth of the time
        try:
            module = importlib.import_module(f"fliptron.cli.{name}")
        except ModuleNotFoundError as error:
            if (error.name or "").split(".")[0] in ("fliptron", "numba", "numpy", "platformdirs", "scipy"):
                raise  # not an extra: the install is broken
            extra = "serve" if name == "serve" else "lab"
            raise Refusal(
                f"`fliptron {name}` needs {error.name}; get it with: pip install 'fliptron[{extra}]'"
            ) from None
        except InputError as error:
            raise Refusal(str(error)) from None
        finally:
            gc.enable()  # and no freezing: libraries want to be taken down when all ends, or say that they leak
        found: click.Command = getattr(module, name)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List them without loading any."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; what the library refuses, the command line refuses."""
        try:
            return super().invoke(ctx)
        except InputError as error:
            raise Refusal(str(error)) from None
        except MemoryError:
            raise Refusal("this needs more memory than there is; ask for less at a time") from None


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
JOBS = click.option("--jobs", type=Whole(), help="Threads; the numbers do not depend on it. Default: one per core.")
CLUSTER = click.option("--cluster", metavar="ADDRESS", help="A Dask scheduler (tcp://host:8786) whose workers play.")


def writable(out: str) -> Any:
    """The folder that an option names, if it can be written."""
    from fliptron.output import writable_folder  # noqa: PLC0415  # when it is needed

    if not out:
        raise InputError("--out is empty; the name of a folder is expected")
    try:
        return writable_folder(out)
    except InputError as error:
        raise InputError(f"--out {error}") from None


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(fliptron.__version__, prog_name="fliptron")
def commands() -> None:
    """Learn from right-or-wrong bits that are sometimes flipped.

    Each round a learner sees an example, plays one of K labels, and gets one bit: right or wrong. The
    bit lies with probability RHO0 when the label was wrong and RHO1 when it was right.

    Start with `fliptron run`: it compares eleven learners on handwritten digits and draws a picture.
    """


def command(**settings: Any) -> Callable[[Callable[..., Any]], click.Command]:
    """A command, whose name and help come from its function."""
    settings.setdefault("context_settings", {"help_option_names": ["-h", "--help"], "max_content_width": 100})
    made: Callable[[Callable[..., Any]], click.Command] = click.command(**settings)
    return made
