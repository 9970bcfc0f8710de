"""How commands take a log: which column says what, and progress while it is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from fliptron.logs.forms import FORMATS
from fliptron.logs.log import Log
from fliptron.policy import Policy
from fliptron.refusals import InputError

KIND = click.option(
    "--kind",
    "kinds",
    multiple=True,
    metavar="COLUMN=KIND",
    help="What a column holds (number, boolean, time, clock, category, many, unused), if the guess is wrong.",
)
_OPTIONS = (
    click.option(
        "--format", type=click.Choice(FORMATS),
        help="What LOG is, if its name does not say it: a table, Vowpal Wabbit's text (.vw) or .dsjson, or OBP's .npz.",
    ),
    click.option("--label", metavar="COLUMN", help="The label that was played."),
    click.option("--bit", metavar="COLUMN", help="What came back: 0 or 1, true or false, click or no."),
    click.option(
        "--probability",
        metavar="COLUMN|NUMBER",
        help="The probability with which that label was played; 'uniform' if all were equally likely.",
    ),
    click.option("--greedy", metavar="COLUMN", help="The label that the policy thought best."),
    click.option("--margin", metavar="COLUMN", help="The lead of its score."),
    click.option("--time", metavar="COLUMN", help="Order the rounds by this column."),
    click.option("--features", metavar="A,B,…", help="The columns that describe each round. Default: all others."),
    click.option("--labels", metavar="A,B,…", help="The labels that could be played. Default: all that were."),
    KIND,
)  # fmt: skip
_NAMES = ("label", "bit", "probability", "greedy", "margin", "time", "features", "labels", "kinds", "format")


def log_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options of a command that reads a log."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def open_log(source: str, given: dict[str, Any], *, quiet: bool = False, others: tuple[str, ...] = ()) -> Log:
    """The log that options describe; what was guessed is shown."""
    told = {name: given.pop(name) for name in _NAMES}
    kinds = kinds_of(told.pop("kinds"))
    features, labels = _listed(told.pop("features"), "features"), _listed(told.pop("labels"), "labels")

    def opened(name: str) -> Log:
        return Log(name, **told, kinds=kinds, others=others, features=features, labels=labels)

    log = _journal(source, opened) if ".db" in source else opened(source)
    if not quiet:
        Console(stderr=True).print(Text(log.describe()), style="dim")
    return log


def tell_missing(log: Log, policy: Policy, path: object) -> None:
    """Say which columns a policy decides by that a log does not have."""
    if found := policy.missing(log.features, log.name):
        click.echo(f"{path} decides also by {', '.join(found)}, which the log does not have: missing values.", err=True)


def kinds_of(given: Iterable[str]) -> dict[str, str]:
    """The kinds of columns that options tell."""
    kinds = {}
    for each in given:
        name, found, kind = each.rpartition("=")
        if not found:
            raise InputError(f"--kind is {each!r}; COLUMN=KIND is expected, such as age=number")
        kinds[name] = kind
    return kinds


def _journal(source: str, opened: Callable[[str], Log]) -> Log:
    """A log from the journal of the service, which is exported for as long as the command runs."""
    try:
        from fliptron.service.export import exported, is_journal  # noqa: PLC0415  # needs an extra
    except ModuleNotFoundError:
        return opened(source)
    return click.get_current_context().with_resource(exported(source, opened)) if is_journal(source) else opened(source)


@contextmanager
def reading(rounds: int, what: str) -> Iterator[Callable[[int], None]]:
    """A bar on the terminal while a log is read; called with the rounds read so far."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=24), TextColumn("{task.percentage:>3.0f} %"))
    bar = Progress(*columns, TimeRemainingColumn(), console=console, transient=True, disable=not console.is_terminal)
    with bar:
        task = bar.add_task(what, total=rounds)
        yield lambda done: bar.update(task, completed=done)


def _listed(text: str | None, option: str) -> list[str] | None:
    """What stands between commas."""
    if text is None:
        return None
    found = [each.strip() for each in text.split(",")]
    if not all(found):
        raise InputError(f"--{option} is {text!r}; names with commas between them are expected")
    return found
