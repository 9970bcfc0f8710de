"""How commands play a plan: what is there already is said, the rest is played with progress, Ctrl-C ends it tidily."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from fliptron.cli.show import Watcher
from fliptron.experiments.plan import Spec
from fliptron.experiments.runner import play
from fliptron.results import Results


def play_with_progress(specs: Sequence[Spec], results: Results, *, title: str = "", **how: Any) -> int:
    """Play what is missing of a plan; how many runs failed."""
    console, done = Console(stderr=True), results.done()
    for each in results.ignored:
        console.print(Text(f"{results.folder}: {each} and is left alone."))
    logs: Path | None = how.get("logs")
    left = [spec for spec in specs if spec.id not in done or logs is not None]
    if len(left) < len(specs):
        there = f"{len(specs) - len(left)} of {len(specs)} runs are already there."
        console.print(Text(f"{title}: {there}" if title else f"{there[0].upper()}{there[1:]}"))
    if not left:
        return 0
    console.print("Compiling what was not compiled before, and starting …", style="dim")
    with Watcher(console, left, title) as watcher:
        return play(left, results, watch=watcher, **how)
