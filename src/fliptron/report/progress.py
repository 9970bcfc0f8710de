"""Live progress of a comparison."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text


class Watcher:
    """Live progress of a comparison: a bar a learner, with rounds a second and the error so far."""

    def __init__(self, console: Console, names: list[str], rounds: int, seeds: int) -> None:
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.percentage:>3.0f} %"),
            TextColumn("error {task.fields[error]}"),
            RateColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._console, self._rounds, self._seeds = console, rounds, seeds
        width = max(map(len, names))
        self._tasks = {
            name: self._progress.add_task(name.ljust(width), total=rounds * seeds, start=False, error="  –  ")
            for name in names
        }
        self._counts: dict[str, dict[int, tuple[int, int]]] = {name: {} for name in names}
        self._shown: dict[str, float] = {}
        self._lock = threading.Lock()

    def __enter__(self) -> Watcher:
        self._console.print("Compiling the loops (kept for next time) and starting …", style="dim")
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def __call__(self, name: str, seed: int, done: int, mistakes: int) -> None:
        """Take the counts of one run."""
        with self._lock:
            counts = self._counts[name]
            counts[seed] = done, mistakes
            finished = sum(count[0] for count in counts.values())
            whole = finished == self._rounds * self._seeds
            if not whole and time.monotonic() - self._shown.get(name, 0.0) < 0.1:
                return
            if name not in self._shown:
                self._progress.start_task(self._tasks[name])
            self._shown[name] = time.monotonic()
            error = f"{sum(count[1] for count in counts.values()) / finished:.3f}"
            self._progress.update(self._tasks[name], completed=finished, error=error)
            if whole and not self._console.is_terminal:
                self._console.print(f"{name}: {self._seeds} × {self._rounds:,} rounds, error {error}", highlight=False)


class RateColumn(ProgressColumn):
    """Rounds a second."""

    def render(self, task: Task) -> Text:
        """The speed so far."""
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed / 1e6:.2f} M rounds/s", style="dim")


class PlanWatcher:
    """Live progress of a plan: one bar over all rounds, with speed, time left and failures."""

    def __init__(self, console: Console, title: str, runs: int, rounds: int) -> None:
        self._console, self._runs, self._done, self._failed = console, runs, 0, 0
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            TextColumn("{task.fields[runs]}"),
            RateColumn(),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self._task = self._progress.add_task(title, total=rounds, runs=f"0/{runs} runs")
        self._title, self._tenth = title, 0

    def __enter__(self) -> PlanWatcher:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def __call__(self, rows: Sequence[dict[str, Any]]) -> None:
        """Take the rows of one batch."""
        for row in rows:
            self._done += 1
            if row["failure"] is not None:
                self._failed += 1
                what = (
                    f"{row['learner']} on {row['dataset']}, rates {row['rho0']:g} {row['rho1']:g}, seed {row['seed']}"
                )
                self._console.print(f"failed: {what}: {row['failure']}", style="red", highlight=False)
        text = f"{self._done}/{self._runs} runs" + (f", {self._failed} failed" if self._failed else "")
        self._progress.update(self._task, advance=sum(row["rounds"] for row in rows), runs=text)
        tenth = 10 * self._done // self._runs
        if tenth > self._tenth and not self._console.is_terminal:
            self._tenth = tenth
            self._console.print(f"{self._title}: {text}", highlight=False)
