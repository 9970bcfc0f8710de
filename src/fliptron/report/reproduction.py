"""The reproduction as a report: the paper's figures and tables, its claims one by one, and what goes beyond."""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from fliptron.experiments.comparison import interval
from fliptron.experiments.paper import EXTRA, FIGURE_2, MAIN, NAMES, NOISE, Scale
from fliptron.output import make_folder, write_whole
from fliptron.report.claims import BASELINES, THEIRS, Claim, check_claims, error_at, gamma_of, pair, rate_table
from fliptron.report.figures import line_style
from fliptron.report.folder import draw
from fliptron.report.page import PAGE_STYLE


def write_reproduction(
    runs: pd.DataFrame,
    chosen: pd.DataFrame,
    scale: Scale,
    folder: Path,
    *,
    failures: pd.DataFrame,
    missing: dict[str, str],
    command: str,
) -> Path:
    """Write figures (PNG, SVG, PDF), tables (CSV) and report.html; the path of the last.

    `runs` are the final runs, one row each; `chosen` the γ of every cell; `missing` the data sets that are not here.
    """
    runs = runs.assign(learner=runs.learner.replace("SOBA-full", "SOBA"))
    chosen = chosen.assign(learner=chosen.learner.replace("SOBA-full", "SOBA"))
    there = list(dict.fromkeys(runs.dataset))
    tables = {
        "errors": error_table(runs),
        "rates": rate_table(runs),
        "settings": chosen,
        "beyond": beyond_table(runs, scale),
        "cost": cost_table(runs),
    }
    pictures: dict[str, tuple[str, Callable[[], Figure]]] = {}
    main = [name for name in (*MAIN, "digits") if name in there]
    extra = [name for name in EXTRA if name in there]
    if main and "RCNBF" in set(runs.learner):
        middle, typical = ((0.25, 0.25),), ((0.2, 0.4),)
        pictures["glance"] = ("At a glance: the (0.2, 0.4) setting", lambda: panels(runs, main, typical, scale))
        pictures["figure2"] = ("Figure 2: average error rates", lambda: panels(runs, main, FIGURE_2, scale))
        pictures["appendix-middle"] = ("Appendix: the (0.25, 0.25) setting", lambda: panels(runs, main, middle, scale))
    if extra and "RCNBF" in set(runs.learner):
        pictures["appendix"] = ("Appendix: Iris and SynSep", lambda: panels(runs, extra, NOISE, scale))
    sweep = runs[(runs.learner == "RCINE") & (runs.rounds == scale.pilot_rounds)]
    if len(sweep):
        pictures["figure3"] = ("Figure 3: RCINE's error against γ", lambda: gamma_curves(sweep))
    if "Fliptron" in set(runs.learner):
        pictures["beyond"] = (
            "Beyond the paper: error at equal rounds",
            lambda: beyond_bars(tables["beyond"], min(scale.beyond_rounds, scale.rounds)),
        )
    make_folder(folder / "figures")
    make_folder(folder / "tables")
    drawn = {}
    for name, (_, picture) in pictures.items():
        svg, png, pdf = draw(picture)
        drawn[name] = svg
        for suffix, content in (("svg", svg), ("png", png), ("pdf", pdf)):
            write_whole(folder / "figures" / f"{name}.{suffix}", content)
    for name, table in tables.items():
        write_whole(folder / "tables" / f"{name}.csv", table.to_csv(index=False, float_format="%.6g"))
    claims = check_claims(runs, chosen, sweep)
    write_whole(folder / "tables" / "claims.csv", pd.DataFrame(claims).to_csv(index=False))
    page = _page(runs, claims, pictures, drawn, tables, failures, command, scale, missing)
    write_whole(folder / "report.html", page)
    return folder / "report.html"


def error_table(runs: pd.DataFrame) -> pd.DataFrame:
    """Mean final error of every learner in every cell, with half the 95 % interval."""
    keys = ["dataset", "rho0", "rho1", "learner", "params", "rounds"]
    rows = []
    for key, group in runs.groupby(keys, sort=True):
        mean, half = interval(group.error.to_numpy())
        greedy, _ = interval(group.greedy_error.to_numpy())
        rows.append((*key, float(mean), None if half is None else float(half), float(greedy), len(group)))
    return pd.DataFrame(rows, columns=[*keys, "error", "ci95", "greedy_error", "seeds"])


def beyond_table(runs: pd.DataFrame, scale: Scale) -> pd.DataFrame:
    """Error of every learner at one horizon, and regret against full information."""
    horizon = min(scale.beyond_rounds, scale.rounds)
    rows = []
    for (dataset, rho0, rho1, learner), group in _at(runs, horizon).groupby(["dataset", "rho0", "rho1", "learner"]):
        mean, half = interval(group.error_at.to_numpy())
        rows.append((dataset, rho0, rho1, learner, float(mean), None if half is None else float(half), len(group)))
    table = pd.DataFrame(rows, columns=["dataset", "rho0", "rho1", "learner", "error", "ci95", "seeds"])
    floor = table[table.learner == "Perceptron"].set_index(["dataset", "rho0", "rho1"]).error
    return table.assign(
        regret=[row.error - floor.get((row.dataset, row.rho0, row.rho1), np.nan) for row in table.itertuples()]
    )


def cost_table(runs: pd.DataFrame) -> pd.DataFrame:
    """Microseconds a round, as the runs went (several at a time)."""
    cost = runs.assign(microseconds=runs.seconds / runs.rounds * 1e6)
    return cost.groupby(["dataset", "learner"], as_index=False).microseconds.median()


def panels(runs: pd.DataFrame, datasets: Sequence[str], noise: Sequence[tuple[float, float]], scale: Scale) -> Figure:
    """Error against rounds, log-log, a row a noise setting and a column a data set, as in the paper's Figure 2."""
    figure = Figure(figsize=(3.4 * len(datasets) + 1.2, 2.7 * len(noise) + 0.6), layout="constrained")
    grid = figure.subplots(len(noise), len(datasets), squeeze=False, sharex=True)
    shown: dict[str, Any] = {}
    for i, rates in enumerate(noise):
        for j, dataset in enumerate(datasets):
            axes, least = grid[i][j], 0.5
            cell = runs[(runs.dataset == dataset) & (runs.rho0 == rates[0]) & (runs.rho1 == rates[1])]
            for learner in (*BASELINES, *THEIRS, "RCINE-NREst", "RidgeRegression", "LeastMeanSquares", "Fliptron"):
                lines = cell[cell.learner == learner]
                lines = (
                    lines[lines.rounds == lines.rounds.max()]
                    if learner != "RCINE"
                    else lines[lines.rounds == scale.rounds]
                )
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
            _plain_logs(axes)
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


def gamma_curves(sweep: pd.DataFrame) -> Figure:
    """RCINE's final error against γ, a line a noise setting."""
    figure = Figure(figsize=(7.0, 4.6), layout="constrained")
    axes = figure.add_subplot()
    for (rho0, rho1), cell in sweep.groupby(["rho0", "rho1"]):
        points = [(gamma, *interval(group.error.to_numpy())) for gamma, group in cell.groupby(gamma_of(cell))]
        gammas, means, halves = zip(*points, strict=True)
        colour, mark = _CYCLE[NOISE.index((rho0, rho1))]
        bars = [0 if half is None else half for half in halves]
        axes.errorbar(gammas, means, bars, fmt=mark + "-", color=colour, label=pair((rho0, rho1)))
    axes.set_xscale("log")
    axes.set_xlabel("γ")
    axes.set_ylabel(f"error after {int(sweep.rounds.max()):,} rounds")
    axes.set_title(f"RCINE on {NAMES[sweep.dataset.iloc[0]]}", loc="left", fontsize=11)
    axes.grid(color="0.92")
    figure.legend(title="(ρ₀, ρ₁)", frameon=False, loc="outside right center")
    return figure


def beyond_bars(table: pd.DataFrame, horizon: int) -> Figure:
    """Errors of all learners at one horizon, a panel a data set."""
    datasets = list(dict.fromkeys(table.dataset))
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
        _plain_logs(axes)
        axes.set_xticks(range(len(NOISE)), [pair(rates) for rates in NOISE])
        axes.set_title(f"{NAMES[dataset]}, {horizon:,} rounds", loc="left", fontsize=10)
        axes.grid(axis="y", which="major", color="0.92")
    figure.legend(shown.values(), shown.keys(), loc="outside right center", frameon=False)
    return figure


def _plain_logs(axes: Axes) -> None:
    """A log scale of errors with labels as people write them."""
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _at(runs: pd.DataFrame, horizon: int) -> pd.DataFrame:
    """Runs that reach a horizon, with their error there; of several lengths, the longest."""
    reach = runs[runs.rounds >= horizon]
    reach = reach[reach.rounds == reach.groupby(["dataset", "rho0", "rho1", "learner"]).rounds.transform("max")]
    return reach.assign(error_at=[error_at(row, horizon) for row in reach.itertuples()])


_CYCLE = list(zip(("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#000000", "#D55E00"), "os^Dv*", strict=True))
_CHOICES = """
<ul><li>Rows are drawn with replacement and scaled to length 1; the paper says neither.</li>
<li>“MNIST” is read twice: the 8×8 digits of UCI, which the authors' code loads, and the real 28×28 images.</li>
<li>Fashion-MNIST features come from the paper's network, trained on 35,000 images; the other 35,000 are the
stream.</li>
<li>SOBA keeps the diagonal of its matrix except on Iris, where the full one is cheap.</li>
<li>RCINE estimates the rates with our plateaus unless it is called RCINE-NREst, the published estimator, which runs
fewer seeds and rounds since each of its trainings takes longer than a run.</li>
<li>Beyond the paper: RidgeRegression where d is at most 100, its O(d) cousin LeastMeanSquares elsewhere. Vowpal Wabbit,
where it is installed, plays on the two smallest data sets with the best of seven options a cell.</li>
<li>γ is chosen for each learner and cell by true error on seeds of their own, as in the paper (an oracle); the table
of γ also has the choice that sees only noisy bits.</li></ul>"""


def _page(
    runs: pd.DataFrame,
    claims: list[Claim],
    pictures: dict[str, tuple[str, Any]],
    drawn: dict[str, str],
    tables: dict[str, pd.DataFrame],
    failures: pd.DataFrame,
    command: str,
    scale: Scale,
    missing: dict[str, str],
) -> str:
    absent = "".join(
        f"<p><strong>{escape(NAMES[name])} is missing: {escape(why)}</strong></p>" for name, why in missing.items()
    )
    figures = "\n".join(
        f"<h2>{escape(pictures[name][0])}</h2>\n{svg[svg.index('<svg') :]}" for name, svg in drawn.items()
    )
    versions = {
        "fliptron": ", ".join(sorted(set(runs.version))),
        "Python": platform.python_version(),
        "NumPy": np.__version__,
    }
    sums = runs.drop_duplicates("dataset")[["dataset", "data_sha256"]]
    titles = {
        "rates": "Tables 1 and 2: estimated noise rates (paper's, ours, largest error of the pair)",
        "settings": "Exploration: γ (or options) by true error (oracle) and by noisy bits (honest)",
        "beyond": "Beyond the paper: error and regret against full information at one horizon",
        "cost": "Cost: microseconds a round",
        "errors": "Final errors",
    }
    parts = [f"<h2>{escape(title)}</h2>\n{_table(tables[name])}" for name, title in titles.items()]
    failed = ""
    if len(failures):
        failed = f"<h2>Failed runs</h2>{_table(failures[['dataset', 'learner', 'rho0', 'rho1', 'seed', 'failure']])}"
    seeds = sorted({int(seed) for seed in runs.seed})
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Fliptron: the paper, reproduced</title><style>{PAGE_STYLE}
.holds {{ color: #00703c; }} .not {{ color: #b00020; }} .part {{ color: #8a5a00; }}</style></head><body>
<h1>Learning multiclass classifiers under noisy bandit feedback: the paper, reproduced</h1>
<p>{len(runs):,} runs, {scale.rounds:,} rounds each for the paper's learners, seeds {seeds[0]} to {seeds[-1]}; mean
and 95 % bands over seeds.</p>{absent}
<h2>The paper's claims</h2>
<table><thead><tr><th>claim</th><th>verdict</th><th>evidence</th></tr></thead><tbody>
{"".join(_claim(claim) for claim in claims)}</tbody></table>
<h2>What the paper leaves open, and what was chosen</h2>{_CHOICES}
{figures}
{failed}
{"".join(parts)}
<h2>How it was made</h2>
<p><code>{escape(command)}</code></p>
<p class="small">{escape(", ".join(f"{name} {version}" for name, version in versions.items()))}</p>
{_table(sums)}
</body></html>
"""


def _claim(claim: Claim) -> str:
    kind = {"holds": "holds", "not needed": "holds", "does not hold": "not"}.get(claim.verdict, "part")
    return (
        f'<tr><td>{escape(claim.text)}</td><td class="{kind}">{escape(claim.verdict)}</td>'
        f'<td class="small">{escape(claim.evidence)}</td></tr>\n'
    )


def _table(frame: pd.DataFrame) -> str:
    return str(
        frame.to_html(index=False, classes="small", border=0, na_rep="–", float_format=lambda value: f"{value:.4g}")
    )
