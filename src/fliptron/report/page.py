"""The report: one HTML page that needs nothing but itself."""

from __future__ import annotations

from html import escape
from typing import Any

from fliptron.experiments.comparison import Comparison

PAGE_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 64rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
h1 { font-size: 1.5rem; } svg { width: 100%; height: auto; }
table { border-collapse: collapse; margin: 1rem 0; } th, td { padding: .3rem .8rem; text-align: left; }
th { border-bottom: 2px solid #222; } td { border-bottom: 1px solid #ddd; }
.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
.note { color: #555; } .small { font-size: .85rem; }
code { background: #f4f4f4; padding: .1rem .3rem; overflow-wrap: anywhere; }
"""


def report_page(comparison: Comparison, rows: list[dict[str, Any]], svg: str, command: str) -> str:
    """Table, picture, settings and the command that made them."""
    rho0, rho1 = comparison.rates
    data = comparison.dataset
    cut = (
        "<p><strong>Interrupted: only the runs that had finished are shown.</strong></p>"
        if comparison.interrupted
        else ""
    )
    settings = {
        "data": f"{data.name} ({data.n_rows:,} × {data.n_features}, {data.n_classes} classes; {data.source})",
        "data SHA-256": rows[0]["data_sha256"],
        "channel": f"ρ0 = {rho0:g} (wrong told as right), ρ1 = {rho1:g} (right told as wrong)",
        "rounds": f"{comparison.rounds:,}, order: {comparison.order}",
        "seeds": ", ".join(map(str, comparison.seeds)),
        "version": rows[0]["version"],
        "command": command,
    }
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Fliptron: {escape(data.name)}</title><style>{PAGE_STYLE}</style></head><body>
<h1>Learning {escape(data.name)} from flipped bits</h1>
{cut}
{svg[svg.index("<svg") :]}
<table><thead><tr><th>learner</th><th class="number">error</th><th class="number">greedy error</th>
<th class="number">rounds/s</th><th>settings</th></tr></thead>
<tbody>
{"".join(_row(row) for row in sorted(rows, key=lambda row: row["error_mean"]))}
</tbody></table>
<p class="note">Error: share of rounds whose played label was wrong, exploration included, mean ± half the 95 % interval
over seeds. Greedy error: the same for the label the learner thought best. Perceptron is told the true label every
round; RCNBF and AveragedRCNBF are told the true flip rates; the others see bits only.</p>
<table class="small"><tbody>{"".join(_setting(*item) for item in settings.items())}
</tbody></table></body></html>
"""


def _setting(name: str, value: str) -> str:
    return f"<tr><td>{escape(name)}</td><td><code>{escape(value)}</code></td></tr>"


def _row(row: dict[str, Any]) -> str:
    shape = {"n_classes", "n_features", "rates"}
    settings = ", ".join(f"{key}={value}" for key, value in row["params"].items() if key not in shape)
    numbers = (
        plus_minus(row["error_mean"], row["error_ci95"]),
        plus_minus(row["greedy_error_mean"], row["greedy_error_ci95"]),
        f"{row['rounds_per_second']:,.0f}",
    )
    middle = "".join(f'<td class="number">{number}</td>' for number in numbers)
    return f'<tr><td>{escape(row["learner"])}</td>{middle}<td class="small">{escape(settings)}</td></tr>\n'


def plus_minus(mean: float, half: float | None) -> str:
    """Mean ± half width, as tables print it."""
    return f"{mean:.4f}" if half is None else f"{mean:.4f} ± {half:.4f}"
