"""The reproduction as a report: the paper's figures and tables, its claims one by one, and what goes beyond."""

from __future__ import annotations

import platform
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from fliptron.experiments.paper import EXTRA, FIGURE_2, MAIN, NAMES, NOISE, tuned
from fliptron.experiments.reproduction import Reproduction
from fliptron.output import make_folder, write_whole
from fliptron.report import page
from fliptron.report.claims import BASELINES, THEIRS, Claim, check_claims, rate_table
from fliptron.report.figures import beyond_bars, draw, gamma_curves, panels
from fliptron.report.statistics import error_at, error_table, interval

_LINES = (*BASELINES, *THEIRS, "RCINE-NREst", "RidgeRegression", "LeastMeanSquares", "Fliptron")
_TITLES = {
    "rates": "Tables 1 and 2: estimated noise rates (paper's, ours, largest error of the pair)",
    "settings": "Exploration: γ (or options) by true error (oracle) and by noisy bits (honest)",
    "beyond": "Beyond the paper: error and regret against full information at one horizon",
    "cost": "Cost: microseconds per round",
    "errors": "Final errors",
}
_CHOICES = (
    "Rows are drawn with replacement and scaled to length 1; the paper says neither.",
    "“MNIST” is read twice: the 8×8 digits of UCI, which the authors' code loads, and the real 28×28 images.",
    "Fashion-MNIST features come from the paper's network, trained on 35,000 images; the other 35,000 are the stream.",
    "SOBA keeps the diagonal of its matrix except on Iris, where the full one is cheap.",
    "RCINE estimates the rates with our plateaus unless it is called RCINE-NREst, the published estimator, which runs "
    "fewer seeds and rounds since each of its trainings takes longer than a run.",
    "Beyond the paper: RidgeRegression where d is at most 100, its O(d) cousin LeastMeanSquares elsewhere. Vowpal "
    "Wabbit, where it is installed, plays on the two smallest data sets with the best of seven options for each cell.",
    "γ is chosen for each learner and cell by true error on seeds of their own, as in the paper (an oracle); the "
    "table of γ also has the choice that sees only noisy bits.",
)


def write_reproduction(done: Reproduction, folder: Path, *, command: str) -> Path:
    """Write figures (PNG, SVG, PDF), tables (CSV) and report.html; the path of the last."""
    runs, chosen = _one_soba(done.runs), _one_soba(done.chosen)
    horizon = min(done.scale.beyond_rounds, done.scale.rounds)
    sweep = runs[(runs.learner == "RCINE") & (runs.rounds == done.scale.pilot_rounds)]
    tables = {
        "errors": error_table(runs.assign(params=[str(tuned(params)) for params in runs.params])),
        "rates": rate_table(runs),
        "settings": chosen,
        "beyond": beyond_table(runs, horizon),
        "cost": cost_table(runs),
    }
    drawn = {}
    for place in ("figures", "tables"):
        make_folder(folder / place)
    for name, (title, picture) in _pictures(runs, sweep, tables["beyond"], done.scale.rounds, horizon).items():
        svg, png, pdf = draw(picture)
        drawn[title] = svg
        for suffix, content in (("svg", svg), ("png", png), ("pdf", pdf)):
            write_whole(folder / "figures" / f"{name}.{suffix}", content)
    for name, table in tables.items():
        write_whole(folder / "tables" / f"{name}.csv", table.to_csv(index=False, float_format="%.6g"))
    claims = check_claims(runs, chosen, sweep)
    write_whole(folder / "tables" / "claims.csv", pd.DataFrame(claims).to_csv(index=False))
    write_whole(folder / "report.html", _page(done, runs, claims, drawn, tables, command))
    return folder / "report.html"


def _one_soba(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(learner=table.learner.replace("SOBA-full", "SOBA"))


def _pictures(
    runs: pd.DataFrame, sweep: pd.DataFrame, beyond: pd.DataFrame, rounds: int, horizon: int
) -> dict[str, tuple[str, Callable[[], Figure]]]:
    """The figures that these runs allow, with their titles."""
    there, learners = set(runs.dataset), set(runs.learner)
    main = [name for name in (*MAIN, "digits") if name in there]
    extra = [name for name in EXTRA if name in there]

    def curves(datasets: list[str], noise: tuple[tuple[float, float], ...]) -> Callable[[], Figure]:
        return lambda: panels(runs, datasets, noise, _LINES, {"RCINE": rounds})

    found: dict[str, tuple[str, Callable[[], Figure]]] = {}
    if main and "RCNBF" in learners:
        found["glance"] = ("At a glance: the (0.2, 0.4) setting", curves(main, ((0.2, 0.4),)))
        found["figure2"] = ("Figure 2: average error rates", curves(main, FIGURE_2))
        found["appendix-middle"] = ("Appendix: the (0.25, 0.25) setting", curves(main, ((0.25, 0.25),)))
    if extra and "RCNBF" in learners:
        found["appendix"] = ("Appendix: Iris and SynSep", curves(extra, NOISE))
    if len(sweep):
        found["figure3"] = ("Figure 3: RCINE's error against γ", lambda: gamma_curves(sweep))
    if "Fliptron" in learners:
        found["beyond"] = ("Beyond the paper: error at equal rounds", lambda: beyond_bars(beyond, horizon))
    return found


def beyond_table(runs: pd.DataFrame, horizon: int) -> pd.DataFrame:
    """Error of every learner at one horizon, and regret against full information."""
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
    """Microseconds per round, as the runs went (several at a time)."""
    cost = runs.assign(microseconds=runs.seconds / runs.rounds * 1e6)
    return cost.groupby(["dataset", "learner"], as_index=False).microseconds.median()


def _at(runs: pd.DataFrame, horizon: int) -> pd.DataFrame:
    """Runs that reach a horizon, with their error there; of several lengths, the longest."""
    reach = runs[runs.rounds >= horizon]
    reach = reach[reach.rounds == reach.groupby(["dataset", "rho0", "rho1", "learner"]).rounds.transform("max")]
    return reach.assign(error_at=[error_at(row, horizon) for row in reach.itertuples()])


def _page(
    done: Reproduction,
    runs: pd.DataFrame,
    claims: list[Claim],
    drawn: dict[str, str],
    tables: dict[str, pd.DataFrame],
    command: str,
) -> str:
    versions = {
        "fliptron": ", ".join(sorted(set(runs.version))),
        "Python": platform.python_version(),
        "NumPy": np.__version__,
    }
    first, last = int(runs.seed.min()), int(runs.seed.max())
    failures = done.failures[["dataset", "learner", "rho0", "rho1", "seed", "failure"]]
    verdicts = [(claim.text, (claim.verdict, _kind(claim.verdict)), (claim.evidence, "small")) for claim in claims]
    return page.page(
        "Fliptron: the paper, reproduced",
        "Learning multiclass classifiers under noisy bandit feedback: the paper, reproduced",
        page.paragraph(
            f"{len(runs):,} runs, {done.scale.rounds:,} rounds each for the paper's learners, seeds {first} to {last}; "
            "mean and 95 % bands over seeds."
        ),
        *(page.strong(f"{NAMES[name]} is missing: {why}") for name, why in done.missing.items()),
        page.section("The paper's claims", page.table(["claim", "verdict", "evidence"], verdicts)),
        page.section("What the paper leaves open, and what was chosen", page.bullets(_CHOICES)),
        *(page.section(title, page.picture(svg)) for title, svg in drawn.items()),
        page.section("Failed runs", page.frame(failures) if len(failures) else ""),
        *(page.section(title, page.frame(tables[name])) for name, title in _TITLES.items()),
        page.section("How it was made", page.command(command)),
        page.paragraph(", ".join(f"{name} {version}" for name, version in versions.items()), "small"),
        page.frame(runs.drop_duplicates("dataset")[["dataset", "data_sha256"]]),
    )


def _kind(verdict: str) -> str:
    return {"holds": "holds", "not needed": "holds", "does not hold": "not"}.get(verdict, "part")
