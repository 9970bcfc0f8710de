"""How a table is written in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from fliptron.output import make_folder, write_whole


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Rows of text under headings."""
    lines = [f"| {' | '.join(columns)} |", "|" + "---|" * len(columns)]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def framed(frame: Any) -> str:
    """A data frame, every value as text."""
    return table(list(map(str, frame.columns)), (list(map(str, row)) for row in frame.to_numpy()))


def pair(rates: Sequence[float]) -> str:
    """A noise setting, as headings show it."""
    return f"({rates[0]:g}, {rates[1]:g})"


def save(path: Path, text: str) -> Path:
    """Write a text that ends with a line break; its path."""
    make_folder(path.parent)
    write_whole(path, text.rstrip("\n") + "\n")
    return path
