"""Pictures: error against rounds, mean bit against margin, error against γ and against noise."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from fliptron.arrays import Array
from fliptron.experiments.paper import NAMES, NOISE
from fliptron.report.statistics import interval, param
from fliptron.results import Run

# Okabe & Ito's palette, distinct to colour-blind readers; line style repeats the distinction in print:
# dotted sees the truth, solid is the paper's company, dashed regresses the bit.
_LINES = {
    "Perceptron": ("#000000", ":"),
    "Banditron": ("#D55E00", "-"),
    "Delaytron": ("#D55E00", "-."),
    "Delaytron-told": ("#0072B2", "-."),
    "BPA": ("#009E73", "-"),
    "BPA, γ > 0": ("#009E73", "--"),
    "BPA, γ = 0.014": ("#009E73", ":"),
    "EPABF": ("#661100", "-"),
    "SOBA": ("#CC79A7", "-"),
    "SOBA-full": ("#882255", "-"),
    "Newtron": ("#999933", "-"),
    "Newtron-full": ("#999933", "-."),
    "Newtron-told": ("#117733", "-"),
    "Gappletron": ("#88CCEE", "-"),
    "Gappletron-told": ("#88CCEE", "-."),
    "RDUE": ("#CC6677", "-"),
    "RDUE-told": ("#CC6677", "-."),
    "Separable": ("#44AA99", "-"),
    "KernelSeparable": ("#44AA99", "-."),
    "RCNBF": ("#0072B2", "-"),
    "AveragedRCNBF": ("#56B4E9", "-"),
    "RCINE": ("#332288", "-"),
    "AnytimeRCNBF": ("#0072B2", "--"),
    "RCINE-NREst": ("#AA4499", "-."),
    "LeastMeanSquares": ("#E69F00", "--"),
    "Confidit": ("#7F7F7F", "--"),
    "RidgeRegression": ("#8C510A", "--"),
    "Fliptron": ("#000000", "-"),
    "VowpalWabbit": ("#7F7F7F", "-."),
}
_STYLE: Any = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "svg.fonttype": "path",
    "svg.hashsalt": "fliptron",
}


def draw(picture: Callable[[], Figure]) -> tuple[str, bytes, bytes]:
    """A figure as SVG, PNG and PDF, in our style."""
    with mpl.rc_context(_STYLE):
        figure = picture()
        figure.draw_without_rendering()
        figure.set_layout_engine("none")  # the layout, a third of the work, is the same for all three
        svg, png, pdf = io.StringIO(), io.BytesIO(), io.BytesIO()
        figure.savefig(svg, format="svg", metadata={"Date": None})
        figure.savefig(png, format="png", dpi=150)
        figure.savefig(pdf, format="pdf", metadata={"CreationDate": None})
    return svg.getvalue(), png.getvalue(), pdf.getvalue()


def error_curves(finished: Mapping[str, Sequence[Run]], title: str) -> Figure:
    """Mean error of the played label against rounds, log-log, with 95 % bands over seeds."""
    figure = Figure(figsize=(8.0, 5.2), layout="constrained")
    axes = figure.add_subplot()
    ends: list[tuple[float, str, str]] = []
    last = max((run.rounds for runs in finished.values() for run in runs), default=1)
    first, seeds = min(100, max(last // 10, 1)), max(map(len, finished.values()), default=0)
    for name, runs in finished.items():
        colour, style = line_style(name)
        rounds = np.array(runs[0].checkpoints)
        mean, half = interval(np.array([run.errors for run in runs]))
        shown = rounds >= first
        axes.plot(rounds[shown], mean[shown], style, color=colour, linewidth=1.8)
        if half is not None:
            low = np.maximum(mean - half, 0.5 / rounds)
            axes.fill_between(rounds[shown], low[shown], (mean + half)[shown], color=colour, alpha=0.18, linewidth=0)
        ends.append((float(mean[-1]), name, colour))
    axes.set_xscale("log")
    axes.set_xlim(first, max(last, first + 1))
    _error_ticks(axes)
    axes.grid(which="major", color="0.9", linewidth=0.8)
    axes.set_xlabel("rounds")
    axes.set_ylabel("error rate of the played label")
    bands = f"  (mean and 95 % band of {seeds} seed{'s' if seeds > 1 else ''})"
    axes.set_title(plain(title) + bands, loc="left", fontsize=11)
    _name_lines(axes, ends)
    return figure


def plain(text: str) -> str:
    """Text as it is: a name may hold a dollar sign, which starts a formula."""
    return text.replace("$", r"\$")


def panels(
    runs: pd.DataFrame,
    datasets: Sequence[str],
    noise: Sequence[tuple[float, float]],
    learners: Sequence[str],
) -> Figure:
    """Error against rounds, log-log: noise settings down, data sets across, as in the paper's Figure 2.

    All runs are of one length.
    """
    figure = Figure(figsize=(3.4 * len(datasets) + 1.2, 2.7 * len(noise) + 0.6), layout="constrained")
    grid = figure.subplots(len(noise), len(datasets), squeeze=False, sharex=True)
    shown: dict[str, Any] = {}
    for i, rates in enumerate(noise):
        for j, dataset in enumerate(datasets):
            axes, least = grid[i][j], 0.5
            cell = runs[(runs.dataset == dataset) & (runs.rho0 == rates[0]) & (runs.rho1 == rates[1])]
            for learner in learners:
                lines = cell[cell.learner == learner]
                if not len(lines):
                    continue
                rounds = np.array(lines.checkpoints.iloc[0])
                mean, half = interval(np.array([np.array(m) for m in lines.mistakes]) / rounds)
                colour, style = line_style(learner)
                late = rounds >= 100
                (line,) = axes.plot(rounds[late], mean[late], style, color=colour, linewidth=1.4)
                if half is not None and len(lines) > 2:  # of two runs an interval says nothing
                    low = np.maximum(mean - half, 1e-4)[late]
                    axes.fill_between(rounds[late], low, (mean + half)[late], color=colour, alpha=0.2, linewidth=0)
                shown[learner] = line
                least = min(least, mean[-1])
            axes.set_xscale("log")
            _error_ticks(axes)
            axes.set_ylim(max(0.5 * least, 5e-4), 1.1)
            axes.grid(which="major", color="0.92")
            axes.set_title(f"{NAMES[dataset]}, ρ₀ = {rates[0]:g}, ρ₁ = {rates[1]:g}", fontsize=9)
            if not len(cell):
                axes.text(0.5, 0.5, "no run", transform=axes.transAxes, ha="center")
    for axes in grid[-1]:
        axes.set_xlabel("rounds")
    for row in grid:
        row[0].set_ylabel("error rate")
    figure.legend(
        shown.values(),
        shown.keys(),
        loc="outside upper center",
        ncols=min(len(shown), 3 * len(datasets)),
        frameon=False,
    )
    return figure


def rate_paths(runs: pd.DataFrame) -> Figure:
    """How estimated rates go while a learner plays, one panel per data set; grey is the error of its greedy label."""
    datasets = list(dict.fromkeys(runs.dataset))
    figure = Figure(figsize=(3.4 * len(datasets) + 0.6, 3.4), layout="constrained")
    for axes, dataset in zip(np.atleast_1d(figure.subplots(1, len(datasets), sharey=True)), datasets, strict=True):
        here = runs[runs.dataset == dataset]
        run = here[here.rounds == here.rounds.max()].sort_values("seed").iloc[0]
        rounds, *rates = np.array(json.loads(run.details)["estimates"]).T
        for values, true, colour, symbol in zip(rates, (run.rho0, run.rho1), ("#D55E00", "#0072B2"), "₀₁", strict=True):
            axes.axhline(true, color=colour, linestyle="--", linewidth=1)
            axes.plot(
                rounds, values, color=colour, marker="." if rounds.size < 40 else None, label=f"estimate of ρ{symbol}"
            )
        at, wrong = np.array(run.checkpoints), np.array(run.greedy_mistakes)
        axes.plot(at[1:], np.diff(wrong) / np.diff(at), color="0.6", linewidth=1, label="error of the greedy label")
        axes.set_xscale("log")
        axes.set_xlim(rounds[0] * 0.8, at[-1])
        axes.xaxis.set_minor_formatter(NullFormatter())  # within two decades they would overlap
        axes.set_ylim(0, 1)
        axes.set_xlabel("rounds")
        axes.set_title(f"{NAMES[dataset]} {pair((run.rho0, run.rho1))}", fontsize=9)
        axes.grid(color="0.92")
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3, frameon=False)
    return figure


def gamma_curves(sweep: pd.DataFrame) -> Figure:
    """RCINE's final error against γ, one line per noise setting."""
    figure = Figure(figsize=(7.0, 4.6), layout="constrained")
    axes = figure.add_subplot()
    for (rho0, rho1), cell in sweep.groupby(["rho0", "rho1"]):
        points = [(gamma, *interval(group.error.to_numpy())) for gamma, group in cell.groupby(param(cell, "gamma"))]
        gammas, means, halves = zip(*points, strict=True)
        colour, mark = _CYCLE[NOISE.index((rho0, rho1))]
        few = cell.seed.nunique() < 3  # of two runs an interval says nothing
        bars = [0 if half is None or few else half for half in halves]
        axes.errorbar(gammas, means, bars, fmt=mark + "-", color=colour, label=pair((rho0, rho1)))
    axes.set_xscale("log")
    axes.set_xlabel("γ")
    axes.set_ylabel(f"error after {int(sweep.rounds.max()):,} rounds")
    axes.set_title(f"RCINE on {NAMES[sweep.dataset.iloc[0]]}", loc="left", fontsize=11)
    axes.grid(color="0.92")
    figure.legend(title="(ρ₀, ρ₁)", frameon=False, loc="outside right center")
    return figure


def beyond_bars(table: pd.DataFrame, horizon: int) -> Figure:
    """Errors of all learners at one horizon, one panel per data set."""
    datasets = [name for name in NAMES if name in set(table.dataset)]
    figure = Figure(figsize=(9.0, 2.2 * len(datasets) + 0.6), layout="constrained")
    shown = {}
    for axes, dataset in zip(np.atleast_1d(figure.subplots(len(datasets), 1)), datasets, strict=True):
        here = table[table.dataset == dataset]
        here = here.assign(place=[NOISE.index((row.rho0, row.rho1)) for row in here.itertuples()]).sort_values("place")
        for learner, group in here.groupby("learner"):
            colour, style = line_style(str(learner))
            shown[learner] = axes.errorbar(
                group.place,
                group.error,
                group.ci95.fillna(0.0),
                fmt="o" + style,
                color=colour,
                linewidth=1,
                markersize=4,
            )
        _error_ticks(axes)
        axes.set_xticks(range(len(NOISE)), [pair(rates) for rates in NOISE])
        axes.set_title(f"{NAMES[dataset]}, {horizon:,} rounds", loc="left", fontsize=10)
        axes.grid(axis="y", which="major", color="0.92")
    figure.legend(shown.values(), shown.keys(), loc="outside right center", frameon=False)
    return figure


_CYCLE = list(zip(("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#000000", "#D55E00"), "os^Dv*", strict=True))


def pair(rates: Sequence[float]) -> str:
    """(ρ0, ρ1) as text."""
    return f"({rates[0]:g}, {rates[1]:g})"


def line_style(learner: str) -> tuple[str, str]:
    """Colour and dashes of a learner's line, the same in every figure."""
    return _LINES.get(learner, ("#333333", "-."))


def _error_ticks(axes: Axes) -> None:
    """A log scale of errors with labels as people write them."""
    axes.set_yscale("log")
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
