"""Pages: one HTML file that needs nothing but itself."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import partial
from html import escape as _escape
from math import isnan
from typing import Any

escape = partial(_escape, quote=False)
_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 64rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
h1 { font-size: 1.5rem; } svg { width: 100%; height: auto; }
.figure { overflow-x: auto; }
.table { overflow-x: auto; } table { border-collapse: collapse; margin: 1rem 0; }
th, td { padding: .3rem .8rem; text-align: left; }
th { border-bottom: 2px solid #222; } td { border-bottom: 1px solid #ddd; }
.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
.note { color: #555; } .small { font-size: .85rem; }
.holds { color: #00703c; } .not { color: #b00020; } .part { color: #8a5a00; }
code { background: #f4f4f4; padding: .1rem .3rem; overflow-wrap: anywhere; }
"""


def page(title: str, heading: str, *sections: str) -> str:
    """A whole page."""
    body = "\n".join(section for section in sections if section)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{escape(title)}</title><style>{_STYLE}</style></head><body>
<h1>{escape(heading)}</h1>
{body}
</body></html>
"""


def section(title: str, content: str) -> str:
    """A heading and what is below it; nothing if there is nothing."""
    return f"<h2>{escape(title)}</h2>\n{content}" if content else ""


def picture(svg: str) -> str:
    """A figure, from its SVG file: as wide as the page within what can be read well."""
    width = re.search(r'<svg[^>]* width="([\d.]+)pt"', svg)
    drawn = float(width[1]) if width else 720.0
    bounds = f"min-width: min(44rem, {0.75 * drawn:g}pt); max-width: {1.25 * drawn:g}pt"
    return f'<div class="figure"><svg style="{bounds}"{svg[svg.index("<svg") + 4 :]}</div>'


def paragraph(text: str, kind: str = "") -> str:
    """A paragraph of plain text."""
    return f"<p{_kind(kind)}>{escape(text)}</p>"


def strong(text: str) -> str:
    """A paragraph that must not be missed."""
    return f"<p><strong>{escape(text)}</strong></p>"


def bullets(items: Iterable[str]) -> str:
    """A list of plain texts."""
    return f"<ul>{''.join(f'<li>{escape(item)}</li>' for item in items)}</ul>"


def table(
    columns: Sequence[str], rows: Iterable[Sequence[Any]], *, kinds: Sequence[str] = (), small: bool = False
) -> str:
    """Rows under headings; `kinds` are classes of the columns, and a cell (text, kind) has one of its own."""
    kinds = [*kinds, *[""] * (len(columns) - len(kinds))]
    head = "".join(f"<th{_kind(kind)}>{escape(column)}</th>" for column, kind in zip(columns, kinds, strict=True))
    lines = [
        "<tr>"
        + "".join(
            f"<td{_kind(cell[1] if isinstance(cell, tuple) else kind)}>"
            f"{escape(_text(cell[0] if isinstance(cell, tuple) else cell))}</td>"
            for cell, kind in zip(row, kinds, strict=True)
        )
        + "</tr>\n"
        for row in rows
    ]
    body = f"<thead><tr>{head}</tr></thead><tbody>\n{''.join(lines)}</tbody>"
    return f'<div class="table"><table{_kind("small" if small else "")}>{body}</table></div>'


def frame(content: Any) -> str:
    """A pandas frame as a table."""
    numbers = ["number" if content[name].dtype.kind in "if" else "" for name in content.columns]
    return table(list(map(str, content.columns)), content.itertuples(index=False, name=None), kinds=numbers, small=True)


def _text(value: Any) -> str:
    if value is None or (isinstance(value, float) and isnan(value)):
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _kind(kind: str) -> str:
    return f' class="{kind}"' if kind else ""
