"""How objects show themselves: small tables for notebooks, data frames, and axes to draw on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from fliptron.refusals import missing


def html(title: str, rows: Iterable[tuple[Any, ...]], columns: Sequence[str] = ()) -> str:
    """A table under a title, as notebooks show it."""
    head = f"<tr>{''.join(f'<th>{escape(each)}</th>' for each in columns)}</tr>" if columns else ""
    body = "".join(f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in row)}</tr>" for row in rows)
    return f"<div><strong>{escape(title)}</strong><table>{head}{body}</table></div>"


def frame(columns: Mapping[str, Any]) -> Any:
    """A pandas data frame."""
    try:
        import pandas as pd  # noqa: PLC0415  # optional, and slow to load
    except ImportError:
        raise missing("pandas, which data frames are made with,", "lab") from None
    return pd.DataFrame(dict(columns))


def axes(given: Any = None, *, size: tuple[float, float] = (7.0, 4.6)) -> Any:
    """The axes given, or new ones; their figure shows itself in a notebook."""
    if given is not None:
        return given
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415  # optional, and slow to load
    except ImportError:
        raise missing("matplotlib, which draws,", "lab") from None
    return Figure(figsize=size, layout="constrained").add_subplot()
