"""How commands play a plan: what is there already is said, the rest is played with progress, Ctrl-C ends it tidily."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from fliptron.experiments.plan import Spec
from fliptron.experiments.runner import Watch, play
from fliptron.results import Results, Run


def play_with_progress(specs: Sequence[Spec], results: Results, *, title: str = "", **how: Any) -> int:
    """Play what is missing of a plan; how many runs failed."""
    console, done = Console(stderr=True), results.done()
    for each in results.ignored:
        console.print(Text(f"{results.folder}: {each}; it is left alone."))
    logs: Path | None = how.get("logs")
    left = [spec for spec in specs if spec.id not in done or logs is not None]
    if len(left) < len(specs):
        there = f"{len(specs) - len(left)} of {len(specs)} runs are already there."
        console.print(Text(f"{title}: {there}" if title else there))
    if not left:
        return 0
    console.print("Compiling what was not compiled before, and starting …", style="dim")
    with Watcher(console, left, title) as watcher:
        return play(left, results, watch=watcher, processes=True, **how)


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
