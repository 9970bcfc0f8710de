"""What a person sees in the terminal: tables, and the progress of a plan."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from fliptron.experiments.plan import Spec
from fliptron.experiments.runner import Watch
from fliptron.noise.estimate import Estimate
from fliptron.report.comparison import Comparison
from fliptron.report.statistics import plus_minus
from fliptron.results import Run

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


def estimated(found: Estimate) -> dict[str, float | None]:
    """Rates and accuracies; none that are not identified."""
    known = found.verdict != "not identified"
    rates = {"rho0": found.rates.rho0, "rho1": found.rates.rho1, "beta": found.beta}
    return {name: value if known else None for name, value in rates.items()} | {
        "accuracy": found.accuracy,
        "greedy_accuracy": found.greedy_accuracy,
    }


def show_comparison(result: Comparison, rows: list[dict[str, Any]]) -> None:
    """One row per learner, the best first; then the rates that learners found."""
    (rho0, rho1), seeds = result.first.rates, len(result.seeds)
    lines: list[tuple[str, ...]] = [
        (
            row["learner"],
            "true labels" if row["learner"] == "Perceptron" else "true rates" if "rates" in row["params"] else "bits",
            plus_minus(row["error_mean"], row["error_ci95"]),
            plus_minus(row["greedy_error_mean"], row["greedy_error_ci95"]),
            f"{row['rounds_per_second']:,.0f}",
        )
        for row in sorted(rows, key=lambda row: float(row["error_mean"]))
    ]
    title = f"{result.dataset.name}, rates ({rho0:g}, {rho1:g}), {result.first.rounds:,} rounds, seeds: {seeds}"
    show(["learner", "told", "error ± 95 %", "greedy error ± 95 %", "rounds/s"], lines, title=title, left=2)
    found = [row for row in rows if "rates_mean" in row]
    if found:
        lines = [("true", f"{rho0:.4f}", f"{rho1:.4f}")]
        lines += [(r["learner"], *map(plus_minus, r["rates_mean"], r["rates_ci95"] or (None, None))) for r in found]
        show(["", "rho0", "rho1"], lines, title="Flip rates")


class Watcher(Watch):
    """Live progress of a plan: a bar for each learner, with rounds per second and the error so far.

    Where there is no terminal, a line for each learner that has finished, or each tenth of a long plan.
    """

    def __init__(self, console: Console, specs: Sequence[Spec], title: str = "") -> None:
        names = list(dict.fromkeys(spec.learner for spec in specs))
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.percentage:>3.0f} %"),
            TextColumn("{task.fields[told]}"),
            _RateColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=not title,
            disable=not console.is_terminal,
        )
        self._console, self._title, self._runs = console, title, len(specs)
        self._left = {name: sum(spec.learner == name for spec in specs) for name in names}
        self._counts: dict[str, dict[Spec | str, tuple[int, int]]] = {name: {} for name in names}
        self._tasks = {
            name: self._progress.add_task(
                name.ljust(max(map(len, names), default=0)),
                total=sum(spec.rounds for spec in specs if spec.learner == name),
                start=False,
                told="",
            )
            for name in names
        }
        self._shown: dict[str, float] = {}
        self._done = self._failed = 0
        self._lock = threading.Lock()

    def __enter__(self) -> Watcher:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def block(self, spec: Spec, done: int, mistakes: int) -> None:
        """Take the counts of one run."""
        with self._lock:
            self._count(spec.learner, spec.id, done, mistakes)

    def finished(self, runs: Sequence[Run]) -> None:
        """Take runs that have finished or failed."""
        with self._lock:
            for run in runs:
                self._done += 1
                self._left[run.learner] -= 1
                mistakes = run.mistakes[-1] if run.mistakes else 0
                self._count(run.learner, run.id, run.rounds, mistakes, at_once=not self._left[run.learner])
                if run.failure is not None:
                    self._failed += 1
                    what = f"{run.learner} on {run.dataset}, rates {run.rho0:g} {run.rho1:g}, seed {run.seed}"
                    self._say(f"failed: {what}: {run.failure}")
                elif not self._left[run.learner] and not self._title and not self._console.is_terminal:
                    self._say(f"{run.learner}: {len(self._counts[run.learner])} × {run.rounds:,} rounds, {self._told}")
            before, now = ((10 * (self._done - part)) // self._runs for part in (len(runs), 0))
            if self._title and now > before and not self._console.is_terminal:
                failed = f", {self._failed} failed" if self._failed else ""
                self._say(f"{self._title}: {self._done}/{self._runs} runs{failed}")

    def _count(self, name: str, run: str, done: int, mistakes: int, *, at_once: bool = False) -> None:
        counts = self._counts[name]
        counts[run] = done, mistakes
        if not at_once and time.monotonic() - self._shown.get(name, 0.0) < 0.1:
            return
        if name not in self._shown:
            self._progress.start_task(self._tasks[name])
        self._shown[name] = time.monotonic()
        total = sum(count[0] for count in counts.values())
        self._told = f"error {sum(count[1] for count in counts.values()) / max(total, 1):.3f}"
        self._progress.update(self._tasks[name], completed=total, told=self._told)

    def _say(self, sentence: str) -> None:
        self._console.print(Text(sentence))


class _RateColumn(ProgressColumn):
    """Rounds per second."""

    def render(self, task: Task) -> Text:
        """The speed so far."""
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed / 1e6:.2f} M rounds/s", style="dim")
