"""Pictures: error against rounds."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, PercentFormatter

from fliptron.arrays import Array
from fliptron.experiments.comparison import Comparison, interval
from fliptron.noise import Estimate

# Okabe & Ito's palette, distinct to colour-blind readers; line style repeats the distinction in print:
# dotted sees the truth, solid is the paper's company, dashed regresses the bit.
_LINES = {
    "Perceptron": ("#000000", ":"),
    "Banditron": ("#D55E00", "-"),
    "BPA": ("#009E73", "-"),
    "SOBA": ("#CC79A7", "-"),
    "SOBA-full": ("#882255", "-"),
    "RCNBF": ("#0072B2", "-"),
    "AveragedRCNBF": ("#56B4E9", "-"),
    "RCINE": ("#332288", "-"),
    "RCINE-NREst": ("#AA4499", "-."),
    "LeastMeanSquares": ("#E69F00", "--"),
    "Confidit": ("#7F7F7F", "--"),
    "RidgeRegression": ("#8C510A", "--"),
    "Fliptron": ("#000000", "-"),
    "VowpalWabbit": ("#7F7F7F", "-."),
}
_STYLE = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "svg.fonttype": "path",
    "svg.hashsalt": "fliptron",
}


def error_curves(comparison: Comparison) -> Figure:
    """Mean error of the played label against rounds, log-log, with 95 % bands over seeds."""
    figure = Figure(figsize=(8.0, 5.2), layout="constrained")
    axes = figure.add_subplot()
    ends: list[tuple[float, str, str]] = []
    first = min(100, comparison.rounds)
    runs_shown = 0
    for name, runs in comparison.finished.items():
        colour, style = line_style(name)
        rounds = runs[0].rounds
        mean, half = interval(np.array([run.errors for run in runs]))
        shown = rounds >= first
        axes.plot(rounds[shown], mean[shown], style, color=colour, linewidth=1.8)
        if half is not None:
            low = np.maximum(mean - half, 0.5 / rounds)
            axes.fill_between(rounds[shown], low[shown], (mean + half)[shown], color=colour, alpha=0.18, linewidth=0)
        ends.append((float(mean[-1]), name, colour))
        runs_shown = max(runs_shown, len(runs))
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(first, comparison.rounds)
    _error_ticks(axes)
    axes.grid(which="major", color="0.9", linewidth=0.8)
    axes.set_xlabel("rounds")
    axes.set_ylabel("error rate of the played label")
    rho0, rho1 = comparison.rates
    axes.set_title(
        f"{comparison.dataset.name}, bits flipped with ρ₀ = {rho0:g}, ρ₁ = {rho1:g}  "
        f"(mean and 95 % band of {runs_shown} seed{'s' if runs_shown > 1 else ''})",
        loc="left",
        fontsize=11,
    )
    _name_lines(axes, ends)
    return figure


def margin_curve(estimate: Estimate) -> Figure:
    """Mean bit against margin: the label held best climbs to 1 − ρ1, the others sink to ρ0."""
    figure = Figure(figsize=(7.0, 4.6), layout="constrained")
    axes = figure.add_subplot()
    curve = estimate.details["curve"]
    edges = np.array([0.0, *(band["share"] for band in curve)])
    middle = 1 - (edges[1:] + edges[:-1]) / 2
    lines = (
        ("best", "#0072B2", "label held best", "1 − ρ₁", 1 - np.array([estimate.rates.rho1])),
        ("other", "#D55E00", "other labels", "ρ₀", np.array([estimate.rates.rho0])),
    )
    for name, colour, words, symbol, level in lines:
        seen = np.array([band[name] is not None for band in curve])
        value, half = (np.array([band[each] for band in curve], dtype=float)[seen] for each in (name, f"{name}_half"))
        axes.errorbar(middle[seen], value, half, color=colour, fmt="o-", markersize=4, capsize=2, label=words)
        if estimate.verdict != "not identified":
            axes.axhline(level[0], color=colour, linestyle="--", linewidth=1)
            axes.annotate(
                f"{symbol} = {level[0]:.3f}",
                xy=(1.0, level[0]),
                xycoords=("axes fraction", "data"),
                xytext=(6, 0),
                textcoords="offset points",
                color=colour,
                va="center",
                annotation_clip=False,
            )
    axes.axvspan(1 - estimate.details["confident_share"], 1, color="0.93", zorder=0)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_xlabel("rounds ranked by margin (the surest on the right; grey: taken as certain)")
    axes.set_ylabel("mean bit")
    axes.xaxis.set_major_formatter(PercentFormatter(1.0))
    axes.set_title(f"Noise {estimate.verdict}", loc="left", fontsize=11)
    figure.legend(frameon=False, loc="outside upper right", ncols=2)
    axes.grid(color="0.92", linewidth=0.8)
    return figure


def line_style(learner: str) -> tuple[str, str]:
    """Colour and dashes of a learner's line, the same in every figure."""
    return _LINES.get(learner, ("#333333", "-."))


def style() -> dict[Any, Any]:
    """Matplotlib settings under which every figure is drawn and saved."""
    return dict(_STYLE)


def _error_ticks(axes: Axes) -> None:
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _name_lines(axes: Axes, ends: list[tuple[float, str, str]]) -> None:
    """Write each learner's name and final error beside its line, moved apart where they would touch."""
    if not ends:
        return
    low, high = np.log10(axes.get_ylim())
    ends = sorted(ends)
    wanted = np.array([(np.log10(max(error, 10.0**low)) - low) / (high - low) for error, _, _ in ends])
    for place, end, (error, name, colour) in zip(_apart(wanted, gap=0.052), wanted, ends, strict=True):
        axes.annotate(
            "",
            xy=(1.0, end),
            xycoords="axes fraction",
            xytext=(1.02, place),
            textcoords="axes fraction",
            arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.8, "shrinkA": 0, "shrinkB": 0},
        )
        axes.annotate(
            f"{name}  {error:.3f}",
            xy=(1.0, place),
            xycoords="axes fraction",
            xytext=(14, 0),
            textcoords="offset points",
            color=colour,
            va="center",
            annotation_clip=False,
        )


def _apart(wanted: Array, gap: float) -> Array:
    """Sorted places moved as little as may be so that neighbours keep their distance within [0, 1]."""
    places = wanted.copy()
    for _ in range(200):
        overlap = np.maximum(gap - np.diff(places), 0.0) / 2
        places[:-1] -= overlap
        places[1:] += overlap
        places = np.clip(places, 0.0, 1.0)
    return places
