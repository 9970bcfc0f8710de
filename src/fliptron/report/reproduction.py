"""The reproduction as a report: the paper's claims one by one, its figures and tables in its order, and more."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from fliptron.experiments.paper import (
    EXTRA,
    FIGURE_2,
    FIGURES,
    FIRST_ORDER,
    MAIN,
    NAMES,
    NOISE,
    PAPER,
    PUBLISHED,
    VARIANTS,
    Scale,
)
from fliptron.experiments.reproduction import Reproduction
from fliptron.output import make_folder, write_whole
from fliptron.report import page
from fliptron.report.claims import BASELINES, THEIRS, Claim, check_claims, rate_table
from fliptron.report.figures import beyond_bars, draw, gamma_curves, pair, panels, rate_paths
from fliptron.report.statistics import interval, plus_minus

CHOICES = (
    "Rows are drawn with replacement and scaled to length 1; the paper says neither.",
    "“MNIST” is read twice: the 8×8 digits of UCI, which the authors' code loads, and the real 28×28 images.",
    "Fashion-MNIST features come from the paper's network, trained on 35,000 images; the other 35,000 are the stream.",
    "Settings are chosen for each learner, cell and horizon by true error, as in the paper (an oracle), on seeds of "
    "their own and a third of the rounds: a grid of γ from .0005 to .4, then the values beside the best until none is "
    "better. A longer horizon starts from the choice of the shorter one.",
    "BPA appears three times: with the best γ, 0 among them; with the best γ above 0; with the γ = .014 of its lab.",
    "SOBA keeps the diagonal of its matrix; SOBA-full, the whole of it, plays where K·d is at most 640.",
    "RCINE estimates the rates with our plateaus. RCINE-NREst is the published estimator as its authors ran it: the "
    "label as one integer, 50,000 rounds per training, rates (0, 0) until the first. RCINE-NREst-one-hot reads the "
    "label as the paper's text says. Both play by RCINE's γ.",
    "Slopes are of log error against log rounds over the last tenfold of rounds, without cells in which the greedy "
    "label has all but stopped making mistakes (fewer than 1 in 10,000).",
    "At the scales desk and paper there are 10 seeds. At 10⁷ rounds there are 5 on USPS, SynSep and the real MNIST, "
    "where a round costs most; beyond the paper 5, and 3 on those.",
    "A claim has a verdict only where every cell has 5 seeds or more.",
)
"""What this reproduction does where the paper is silent."""
_NOT_PLAYED = "not played"
_DRIFTS = ("drift", "drift-long")
_REACH = ("RCNBF", "RCINE", "AveragedRCNBF", "AnytimeRCNBF", "LeastMeanSquares", "RidgeRegression", "Fliptron")


def write_reproduction(done: Reproduction, folder: Path, *, command: str) -> Path:
    """Write figures (PNG, SVG, PDF), tables (CSV) and report.html; the path of the last."""
    runs, horizons = done.runs, done.scale.horizons
    claims = check_claims(runs, done.sweep, horizons)
    tables = {
        "errors": error_table(runs),
        "rates": pd.concat([rate_table(runs[runs.rounds == T]) for T in sorted(set(runs.rounds))], ignore_index=True),
        "settings": done.chosen,
        "reach": reach_table(runs),
        "cost": cost_table(runs),
        "claims": pd.DataFrame(claims, columns=Claim._fields),
        "made": made_table(done, command),
    }
    drawn = {}
    for place in ("figures", "tables"):
        make_folder(folder / place)
    for name, (title, picture) in _pictures(done, tables["errors"]).items():
        svg, png, pdf = draw(picture)
        drawn[name] = page.section(title, page.picture(svg))
        for suffix, content in (("svg", svg), ("png", png), ("pdf", pdf)):
            write_whole(folder / "figures" / f"{name}.{suffix}", content)
    for name, table in tables.items():
        write_whole(folder / "tables" / f"{name}.csv", table.to_csv(index=False, float_format="%.6g"))
    write_whole(folder / "report.html", _page(done, claims, drawn, tables))
    return folder / "report.html"


def _pictures(done: Reproduction, errors: pd.DataFrame) -> dict[str, tuple[str, Callable[[], Figure]]]:
    """The figures that these runs allow, with their titles; all curves of one end at the same round."""
    longest = max(done.scale.horizons)
    runs = done.runs[done.runs.rounds == longest]
    there, learners = set(runs.dataset), set(runs.learner)
    main = [name for name in (*MAIN, "digits") if name in there]
    extra = [name for name in EXTRA if name in there]
    theirs, all_first = (*BASELINES, *THEIRS), (*BASELINES, "BPA, γ > 0", *THEIRS, *FIRST_ORDER)

    def curves(
        datasets: list[str], noise: Sequence[tuple[float, float]], names: Sequence[str] = theirs
    ) -> Callable[[], Figure]:
        return lambda: panels(runs, datasets, noise, names)

    found: dict[str, tuple[str, Callable[[], Figure]]] = {}
    if main and "RCNBF" in learners:
        found["glance"] = (f"At a glance: the (0.2, 0.4) setting, {longest:,} rounds", curves(main, ((0.2, 0.4),)))
        found["figure2"] = (f"Figure 2: average error rates, {longest:,} rounds", curves(main, FIGURE_2))
    sweep = done.sweep[done.sweep.rounds == done.sweep.rounds.max()]
    if len(sweep):
        found["figure3"] = ("Figure 3: RCINE's error against γ", lambda: gamma_curves(sweep))
    drift = done.runs[
        (done.runs.learner == "RCINE-NREst")
        & (done.runs.rho0 == 0.2)
        & (done.runs.rho1 == 0.4)
        & (done.runs.details != "{}")
    ]
    for name, T in zip(_DRIFTS, sorted(set(drift.rounds)), strict=False):
        title = f"What NREst estimates as the classifier improves, {T:,} rounds"
        found[name] = (title, partial(rate_paths, drift[drift.rounds == T]))
    if main and "RCNBF" in learners:
        found["appendix-middle"] = (
            f"Appendix: the (0.25, 0.25) setting, {longest:,} rounds",
            curves(main, ((0.25, 0.25),)),
        )
    if extra and "RCNBF" in learners:
        found["appendix"] = (f"Appendix: Iris and SynSep, {longest:,} rounds", curves(extra, FIGURES))
    if "LeastMeanSquares" in learners:
        title = f"Beyond the paper: first-order learners, {longest:,} rounds"
        found["first-order"] = (title, curves([*main, *extra], FIGURES, all_first))
    beyond = done.scale.beyond
    meet = errors[(errors.rounds == beyond) & ~errors.learner.isin(PAPER[2:4])]
    if "Fliptron" in set(meet.learner):
        found["beyond"] = (f"Beyond the paper: all learners, {beyond:,} rounds", lambda: beyond_bars(meet, beyond))
    return found


def error_table(runs: pd.DataFrame) -> pd.DataFrame:
    """Mean final error of every learner in every cell and at every horizon, with half the 95 % interval."""
    keys = ["rounds", "dataset", "rho0", "rho1", "learner"]
    rows = []
    for key, group in runs.groupby(keys, sort=True):
        mean, half = interval(group.error.to_numpy())
        rows.append((*key, float(mean), np.nan if half is None else float(half), group.greedy_error.mean(), len(group)))
    table = pd.DataFrame(rows, columns=[*keys, "error", "ci95", "greedy_error", "seeds"])
    floor = table[table.learner == "Perceptron"].set_index(keys[:4]).error
    regret = [
        row.error - floor.get((row.rounds, row.dataset, row.rho0, row.rho1), np.nan) for row in table.itertuples()
    ]
    return table.assign(regret=regret)


def reach_table(runs: pd.DataFrame) -> pd.DataFrame:
    """How many rounds each learner needs to bring its mean error down to RCNBF's at the longest horizon."""
    goal = runs[(runs.learner == "RCNBF") & (runs.rounds == runs.rounds.max())]
    rows = []
    for cell, target in goal.groupby(["dataset", "rho0", "rho1"]):
        error = float(target.error.mean())
        here = runs[(runs.dataset == cell[0]) & (runs.rho0 == cell[1]) & (runs.rho1 == cell[2])]
        for learner in _REACH:
            mine = here[here.learner == learner]
            mine = mine[mine.rounds == mine.rounds.max()]
            if len(mine):
                at = np.array(mine.checkpoints.iloc[0])
                mean = np.mean([np.array(each) for each in mine.mistakes], axis=0) / at
                above = np.flatnonzero(mean > error * (1.0 + 1e-9))  # from the last of these on it stays below
                first = 0 if not above.size else int(above[-1]) + 1
                rows.append((*cell, error, learner, int(at[first]) if first < at.size else None, int(at[-1])))
    columns = ["dataset", "rho0", "rho1", "error", "learner", "rounds", "played"]
    return pd.DataFrame(rows, columns=columns).astype({"rounds": "Int64"})


def cost_table(runs: pd.DataFrame) -> pd.DataFrame:
    """Microseconds per round, as the runs went (several at a time)."""
    cost = runs.assign(microseconds=runs.seconds / runs.rounds * 1e6)
    return cost.groupby(["dataset", "learner"], as_index=False).microseconds.median()


def made_table(done: Reproduction, command: str) -> pd.DataFrame:
    """By which command, from which versions and data, and in how many hours."""
    runs = done.runs
    facts = {
        "command": command,
        "Fliptron": ", ".join(sorted(set(runs.version))),
        "Python": platform.python_version(),
        "NumPy": np.__version__,
        "runs in the report": f"{len(runs):,}",
        "cost, pilots too": _cost(done.hours),
    }
    sums = runs.assign(dtype=[json.loads(each)["dtype"] for each in runs.options])
    sums = sums.drop_duplicates(["dataset", "dtype", "data_sha256"]).sort_values(["dataset", "dtype"])
    names = [row.dataset + (", sparse" if row.dtype == "sparse" else "") for row in sums.itertuples()]
    rows = [*facts.items(), *((f"SHA-256 of {name}", each) for name, each in zip(names, sums.data_sha256, strict=True))]
    return pd.DataFrame(rows, columns=["what", "here"])


def numbers(scale: Scale, tables: Mapping[str, pd.DataFrame]) -> dict[str, tuple[str, pd.DataFrame]]:
    """The report's tables of numbers under short names, each with its title; empty where nothing was played."""
    errors, rates, (first, longest) = tables["errors"], tables["rates"], (scale.horizons[0], max(scale.horizons))
    learners = list(dict.fromkeys(errors.learner))
    variants = (*PAPER[1:5], *VARIANTS) if set(VARIANTS) & set(learners) else ()
    beyond = (*PAPER[-2:], *FIRST_ORDER) if set(FIRST_ORDER) & set(learners) else ()
    nrest = rates[rates.estimator == "RCINE-NREst"].rounds
    estimated = int(nrest.min()) if len(nrest) else longest
    return {
        "ratios": (
            f"Error under noise divided by BPA's, {' → '.join(f'{T:,}' for T in scale.horizons)} rounds",
            ratios_shape(errors, scale.horizons),
        ),
        **{
            f"errors {T}": (f"The numbers of Figure 2 and the appendix, {T:,} rounds", errors_shape(errors, PAPER, T))
            for T in reversed(scale.horizons)
        },
        "table1": (f"Table 1: estimated rates after {estimated:,} rounds", rates_shape(rates, list(MAIN), estimated)),
        "table2": (f"Table 2: estimated rates after {estimated:,} rounds", rates_shape(rates, list(EXTRA), estimated)),
        "variants": (f"Variants of the baselines, {first:,} rounds", errors_shape(errors, variants, first)),
        "first-order": (
            f"First-order learners beyond the paper in numbers, {longest:,} rounds",
            errors_shape(errors, beyond, longest),
        ),
        "beyond": (
            f"All learners in numbers, {scale.beyond:,} rounds",
            errors_shape(errors, learners, scale.beyond),
        ),
        "reach": (f"Rounds until the error is down to RCNBF's after {longest:,}", reach_shape(tables["reach"])),
    }


def claim_rows(claims: Sequence[Claim]) -> tuple[list[str], list[list[str]]]:
    """One row per claim: its verdict at each horizon, and the evidence."""
    horizons = sorted({claim.horizon for claim in claims})
    rows = []
    for text in dict.fromkeys(claim.text for claim in claims):
        at = {claim.horizon: claim for claim in claims if claim.text == text}
        verdicts = [at[T].verdict if T in at else _NOT_PLAYED for T in horizons]
        evidence = [f"{T:,} rounds: {at[T].evidence}." for T in horizons if T in at]
        rows.append([text, *verdicts, " ".join(evidence)])
    return ["claim", *(f"{T:,} rounds" for T in horizons), "evidence"], rows


def rates_shape(rates: pd.DataFrame, datasets: Sequence[str], rounds: int) -> pd.DataFrame:
    """Tables 1 and 2 in the paper's shape: true rates down, data sets across; the paper's estimates beside ours."""
    here = rates[rates.dataset.isin(datasets) & (rates.rounds == rounds)]
    columns: dict[str, list[str]] = {"true (ρ0, ρ1)": [pair(each) for each in NOISE]}
    for dataset in [name for name in datasets if name in set(here.dataset)]:
        columns[f"{NAMES[dataset]}: paper"] = [_two(*found) for found in PUBLISHED[dataset]]
        for estimator, words in (("RCINE-NREst", "NREst, ours"), ("RCINE", "plateaus")):
            mine = here[(here.dataset == dataset) & (here.estimator == estimator)].set_index(["rho0", "rho1"])
            if len(mine):
                found = [mine.loc[rates] if rates in mine.index else None for rates in NOISE]
                texts = [_NOT_PLAYED if row is None else _found(row) for row in found]
                columns[f"{NAMES[dataset]}: {words}"] = texts
    return pd.DataFrame(columns) if len(columns) > 1 else pd.DataFrame()


def errors_shape(errors: pd.DataFrame, learners: Sequence[str], rounds: int) -> pd.DataFrame:
    """Errors with noise settings across: mean ± half the 95 % interval."""
    here = errors[(errors.rounds == rounds) & errors.learner.isin(learners)]
    rows = []
    for dataset in [name for name in NAMES if name in set(here.dataset)]:
        for learner in [name for name in learners if name in set(here[here.dataset == dataset].learner)]:
            mine = here[(here.dataset == dataset) & (here.learner == learner)].set_index(["rho0", "rho1"])
            found = [mine.loc[rates] if rates in mine.index else None for rates in NOISE]
            texts = [_NOT_PLAYED if row is None else plus_minus(row.error, row.ci95) for row in found]
            rows.append((NAMES[dataset], learner, *texts, int(mine.seeds.min())))
    return pd.DataFrame(rows, columns=["data", "learner", *map(pair, NOISE), "seeds"])


def ratios_shape(errors: pd.DataFrame, horizons: Sequence[int]) -> pd.DataFrame:
    """Errors of RCNBF and RCINE under noise divided by BPA's at its best γ, horizon by horizon."""
    cells = errors.set_index(["dataset", "learner", "rho0", "rho1", "rounds"]).error
    rows = []
    for dataset, learner in product(NAMES, THEIRS):
        if all((dataset, name, *NOISE[-1], T) in cells.index for name in (learner, "BPA") for T in horizons):
            found = (
                [cells[dataset, learner, *rates, T] / cells[dataset, "BPA", *rates, T] for T in horizons]
                for rates in NOISE[1:]
            )
            rows.append((NAMES[dataset], learner, *(" → ".join(f"{ratio:.2f}" for ratio in each) for each in found)))
    return pd.DataFrame(rows, columns=["data", "learner", *map(pair, NOISE[1:])])


def reach_shape(reach: pd.DataFrame) -> pd.DataFrame:
    """Rounds to RCNBF's final error with learners across."""
    rows = []
    for (dataset, rho0, rho1, error), cell in reach.groupby(["dataset", "rho0", "rho1", "error"], sort=False):
        told = {row.learner: _rounds(row.rounds, row.played) for row in cell.itertuples()}
        rows.append(
            (NAMES[dataset], pair((rho0, rho1)), f"{error:.4f}", *(told.get(name, _NOT_PLAYED) for name in _REACH))
        )
    return pd.DataFrame(rows, columns=["data", "rates", "error", *_REACH])


def _rounds(rounds: int, played: int) -> str:
    return f"more than {played:,}" if pd.isna(rounds) else f"{int(rounds):,}"


def _cost(hours: float) -> str:
    """Time of one core, in a unit that leaves something before the point."""
    for unit, parts in (("hours", 1), ("minutes", 60)):
        if hours * parts >= 1:
            return f"{hours * parts:.1f} core-{unit}"
    return f"{hours * 3600:.1f} core-seconds"


def _stand_ins(swap: Mapping[str, str]) -> str:
    """Which data sets stand for which, where nothing is to be downloaded."""
    told = (
        f"{NAMES[stand]} for {', '.join(NAMES[name] for name, other in swap.items() if other == stand)}"
        for stand in dict.fromkeys(swap.values())
    )
    return f"This scale shows that all works, and gives no verdicts. Embedded data stands in: {'; '.join(told)}."


def _found(cell: pd.Series) -> str:
    """Estimated rates, and how many seeds they are of if some identified none."""
    if not cell.seeds:
        return "not identified"
    return _two(cell.rho0_hat, cell.rho1_hat) + (
        f" ({cell.seeds} of {cell.played})" if cell.seeds < cell.played else ""
    )


def _two(rho0: float, rho1: float) -> str:
    return f"{rho0:.3f}, {rho1:.3f}"


def _page(done: Reproduction, claims: list[Claim], drawn: dict[str, str], tables: dict[str, pd.DataFrame]) -> str:
    runs, longest = done.runs, max(done.scale.horizons)
    failures = done.failures[["dataset", "learner", "rho0", "rho1", "seed", "failure"]]
    columns, rows = claim_rows(claims)
    verdicts = [[row[0], *((each, _kind(each)) for each in row[1:-1]), (row[-1], "small")] for row in rows]
    shapes = numbers(done.scale, tables)

    def frame(title: str, content: pd.DataFrame) -> str:
        return page.section(title, page.frame(content) if len(content) else "")

    return page.page(
        "Fliptron: the paper, reproduced",
        "Learning multiclass classifiers under noisy bandit feedback: the paper, reproduced",
        page.paragraph(
            f"{len(runs):,} runs of up to {longest:,} rounds, {_cost(done.hours)} with those that chose the settings; "
            "mean and 95 % bands over seeds."
        ),
        page.paragraph(_stand_ins(done.scale.swap)) if done.scale.swap else "",
        *(page.strong(f"{NAMES.get(name, name)} is missing: {why}") for name, why in done.missing.items()),
        drawn.get("glance", ""),
        page.section("The paper's claims", page.table(columns, verdicts) if rows else ""),
        frame(*shapes["ratios"]),
        page.section("What the paper leaves open, and what was chosen", page.bullets(CHOICES)),
        drawn.get("figure2", ""),
        drawn.get("figure3", ""),
        frame(*shapes["table1"]),
        frame(*shapes["table2"]),
        *(drawn.get(name, "") for name in _DRIFTS),
        drawn.get("appendix-middle", ""),
        drawn.get("appendix", ""),
        *(frame(*shapes[f"errors {T}"]) for T in reversed(done.scale.horizons)),
        frame(*shapes["variants"]),
        drawn.get("first-order", ""),
        frame(*shapes["first-order"]),
        drawn.get("beyond", ""),
        frame(*shapes["beyond"]),
        frame(*shapes["reach"]),
        page.section("The settings", page.paragraph(_honest(done.chosen)) + page.frame(_settings(done.chosen))),
        frame("Cost: microseconds per round", tables["cost"]),
        frame("Failed runs", failures),
        frame("How it was made", tables["made"]),
    )


def _honest(chosen: pd.DataFrame) -> str:
    if "honest_error" not in chosen or not len(chosen):
        return "No settings were chosen."
    agree = (chosen.honest_error <= chosen.oracle_error * 1.05).mean()
    return (
        "Chosen by true error (oracle), as in the paper; choosing by the mean noisy bit (honest), which needs no "
        f"truth, costs at most 5 % of error in {agree:.0%} of {len(chosen)} cells, on the pilot runs."
    )


def _settings(chosen: pd.DataFrame) -> pd.DataFrame:
    names = ["rounds", "name", "dataset", "rho0", "rho1", "oracle", "honest"]
    return chosen[[name for name in names if name in chosen]]


def _kind(verdict: str) -> str:
    return {"holds": "holds", "does not hold": "not"}.get(verdict, "part")
