"""What a person sees in the terminal: tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from fliptron.noise.estimate import Estimate

_MEANING = {
    "rho0": "rho0, wrong told as right",
    "rho1": "rho1, right told as wrong",
    "beta": "beta = 1 - rho0 - rho1",
    "accuracy": "true accuracy of what was played",
    "greedy_accuracy": "true accuracy of the greedy label",
}


def show(columns: Sequence[str], rows: Sequence[Sequence[Any]], *, title: str = "", left: int = 1) -> None:
    """Print a table; the first columns are words, the others numbers. Names are printed as they are."""
    table = Table(title=Text(title) if title else None, title_justify="left", box=None, header_style="bold")
    for at, column in enumerate(columns):
        table.add_column(Text(column), justify="left" if at < left else "right")
    for row in rows:
        table.add_row(*(Text(_cell(value)) for value in row))
    Console().print(table)


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)


def show_estimate(found: Estimate) -> None:
    """Rates and accuracies with their intervals."""
    rows = [
        (_MEANING[name], "–" if value is None else f"{value:.4f}", "{:.4f} to {:.4f}".format(*found.intervals[name]))
        for name, value in estimated(found).items()
    ]
    show(["", "estimate", "95 % interval"], rows)


def sentence(text: str) -> str:
    """A clause as a sentence of its own: a capital first, and a full stop unless it ends in another mark."""
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '?', '!')) else '.'}"


def estimated(found: Estimate) -> dict[str, float | None]:
    """Rates and accuracies; none that are not identified."""
    known = found.verdict != "not identified"
    rates = {"rho0": found.rates.rho0, "rho1": found.rates.rho1, "beta": found.beta}
    return {name: value if known else None for name, value in rates.items()} | {
        "accuracy": found.accuracy,
        "greedy_accuracy": found.greedy_accuracy,
    }
