"""Tables for the terminal, and the same as plain values."""

from __future__ import annotations

from typing import Any

from rich.table import Table

from fliptron.experiments.comparison import Comparison
from fliptron.noise import Estimate
from fliptron.report.page import plus_minus

_MEANING = {
    "rho0": "rho0, wrong told as right",
    "rho1": "rho1, right told as wrong",
    "beta": "beta = 1 - rho0 - rho1",
    "accuracy": "true accuracy of what was played",
    "greedy_accuracy": "true accuracy of the greedy label",
}


def _estimated(found: Estimate) -> dict[str, float | None]:
    known = found.verdict != "not identified"
    rates = {"rho0": found.rates.rho0, "rho1": found.rates.rho1, "beta": found.beta}
    return {name: value if known else None for name, value in rates.items()} | {
        "accuracy": found.accuracy,
        "greedy_accuracy": found.greedy_accuracy,
    }


def estimate_json(found: Estimate) -> dict[str, Any]:
    """An estimate as plain values."""
    return {
        **_estimated(found),
        "intervals": dict(found.intervals),
        "verdict": found.verdict,
        "reason": found.reason,
        **found.details,
    }


def estimate_table(found: Estimate) -> Table:
    """Rates and accuracies with their intervals."""
    table = Table(box=None, header_style="bold")
    for column in ("", "estimate", "95 % interval"):
        table.add_column(column, justify="left" if not column else "right")
    for name, value in _estimated(found).items():
        low, high = found.intervals[name]
        table.add_row(_MEANING[name], "–" if value is None else f"{value:.4f}", f"{low:.4f} to {high:.4f}")
    return table


def rates_table(result: Comparison, rows: list[dict[str, Any]]) -> Table:
    """True rates, and those that learners found."""
    table = Table(title="Flip rates", title_justify="left", box=None, header_style="bold")
    table.add_column("")
    for column in ("rho0", "rho1"):
        table.add_column(column, justify="right")
    table.add_row("true", *(f"{rate:.4f}" for rate in result.rates))
    for row in rows:
        if "rates_mean" in row:
            halves = row["rates_ci95"] or (None, None)
            table.add_row(row["learner"], *map(plus_minus, row["rates_mean"], halves))
    return table


def cell(value: Any) -> str:
    """A value as tables print it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)


def error_table(result: Comparison, rows: list[dict[str, Any]]) -> Table:
    """One row a learner, the best first."""
    (rho0, rho1), seeds = result.rates, len(result.seeds)
    table = Table(
        title=f"{result.dataset.name}, rates ({rho0:g}, {rho1:g}), {result.rounds:,} rounds, seeds: {seeds}",
        title_justify="left",
        box=None,
        header_style="bold",
    )
    table.add_column("learner")
    table.add_column("told")
    for column in ("error ± 95 %", "greedy error ± 95 %", "rounds/s"):
        table.add_column(column, justify="right")
    for row in sorted(rows, key=lambda row: float(row["error_mean"])):
        told = "true labels" if row["learner"] == "Perceptron" else "true rates" if "rates" in row["params"] else "bits"
        table.add_row(
            row["learner"],
            told,
            plus_minus(row["error_mean"], row["error_ci95"]),
            plus_minus(row["greedy_error_mean"], row["greedy_error_ci95"]),
            f"{row['rounds_per_second']:,.0f}",
        )
    return table
