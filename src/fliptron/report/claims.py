"""The paper's claims, checked one by one against runs."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from fliptron.experiments.paper import NAMES, NOISE, PUBLISHED
from fliptron.report.figures import pair
from fliptron.report.statistics import differ, error_at, interval, param

THEIRS, BASELINES = ("RCNBF", "RCINE"), ("Banditron", "BPA", "SOBA")


class Claim(NamedTuple):
    """Something the paper says, and what came of it."""

    text: str
    verdict: str
    evidence: str


def check_claims(runs: pd.DataFrame, chosen: pd.DataFrame, sweep: pd.DataFrame) -> list[Claim]:
    """The paper's claims, each with a verdict and the numbers behind it."""
    claims = []
    errors = {
        (key[0], key[1:3], key[3]): group.error.to_numpy()
        for key, group in runs[runs.learner.isin((*THEIRS, *BASELINES))].groupby(
            ["dataset", "rho0", "rho1", "learner", "rounds"]
        )
        if key[4] == runs[runs.learner == key[3]].rounds.max()
    }
    cells = sorted({(dataset, rates) for dataset, rates, _ in errors})
    noisy = [cell for cell in cells if cell[1] != (0.0, 0.0)]
    full = {"RCNBF": "RCNBF (true rates)", "RCINE": "RCINE (rates from our plateaus)"}
    for ours in THEIRS:
        for other in BASELINES:
            won, even, lost, ratios = 0, 0, [], []
            for dataset, rates in noisy:
                a, b = errors.get((dataset, rates, ours)), errors.get((dataset, rates, other))
                if a is None or b is None:
                    continue
                sign = differ(a, b)
                won, even = won + (sign < 0), even + (sign == 0)
                ratios.append(a.mean() / b.mean())
                if sign > 0:
                    lost.append(f"{NAMES[dataset]} {pair(rates)}")
            total = won + even + len(lost)
            if not total:
                continue
            verdict = _verdict(won, even, total)
            evidence = (
                f"lower in {won} of {total} noisy cells, not told apart in {even}; median ratio of errors "
                f"{np.median(ratios):.2f}, from {min(ratios):.2f} to {max(ratios):.2f}"
            )
            evidence += f"; higher in: {', '.join(lost)}" if lost else ""
            claims.append(Claim(f"Under noise {full[ours]} has lower error than {other}", verdict, evidence))
    ratios = [
        errors[dataset, rates, "RCINE"].mean() / errors[dataset, rates, "RCNBF"].mean()
        for dataset, rates in cells
        if (dataset, rates, "RCINE") in errors and (dataset, rates, "RCNBF") in errors
    ]
    if ratios:
        evidence = f"from {min(ratios):.2f} to {max(ratios):.2f}; our plateaus estimate the rates"
        claims.append(_comparable("RCINE performs comparably to RCNBF", ratios, evidence))
    claims += _published_claim(runs)
    claims += _slope_claim(runs)
    claims += _gamma_claim(sweep)
    rates = rate_table(runs)
    for estimator, words in (("RCINE-NREst", "the published NREst"), ("RCINE", "our plateaus")):
        mine = rates[(rates.estimator == estimator) & rates.off.notna()]
        if len(mine):
            claims.append(
                Claim(
                    f"The rates can be estimated ({words})",
                    _verdict(int((mine.off <= 0.05).sum()), 0, len(mine)),
                    f"the worse of the two rates is off by {_mean(mine.off)} in the mean cell, at most "
                    f"{mine.off.max():.3f}; within .05 in {(mine.off <= 0.05).sum()} of {len(mine)} cells; the paper's "
                    f"own tables: {_mean(mine.paper_off)}, at most {mine.paper_off.max():.3f}",
                )
            )
    agree = (chosen.honest_error <= chosen.oracle_error * 1.05).mean() if len(chosen) else np.nan
    claims.append(
        Claim(
            "γ is chosen by the least true error (an oracle)",
            "not needed" if agree > 0.8 else "matters",
            f"choosing γ by the mean noisy bit instead costs at most 5 % of error in {agree:.0%} of {len(chosen)} "
            "cells, on the pilot runs",
        )
    )
    return claims


def _published_claim(runs: pd.DataFrame) -> list[Claim]:
    """RCINE with the published NREst beside RCNBF, at the rounds the former had."""
    ratios = []
    for key, group in runs[runs.learner == "RCINE-NREst"].groupby(["dataset", "rho0", "rho1"]):
        same = runs[
            (runs.learner == "RCNBF") & (runs.dataset == key[0]) & (runs.rho0 == key[1]) & (runs.rho1 == key[2])
        ]
        if len(same):
            horizon = int(group.rounds.max())
            ratios.append(
                np.mean([error_at(row, horizon) for row in group.itertuples()])
                / np.mean([error_at(row, horizon) for row in same.itertuples()])
            )
    if not ratios:
        return []
    evidence = f"after {horizon:,} rounds (rates (0, 0) until the first training)"
    return [_comparable("RCINE with the published NREst performs comparably to RCNBF", ratios, evidence)]


def _comparable(text: str, ratios: list[Any], more: str) -> Claim:
    """Whether errors whose ratios these are lie within a tenth of each other, cell by cell."""
    mean, half = interval(np.log(ratios))
    spread = "" if half is None else f", 95 % interval {np.exp(mean - half):.2f} to {np.exp(mean + half):.2f}"
    close = int(sum(0.9 <= ratio <= 1.1 for ratio in ratios))
    evidence = f"geometric mean ratio {np.exp(mean):.2f}{spread}; within 10 % in {close} of {len(ratios)} cells, {more}"
    return Claim(text, _verdict(close, 0, len(ratios)), evidence)


def _slope_claim(runs: pd.DataFrame) -> list[Claim]:
    """Slopes of log error over the last decade: RCNBF under noise beside the baselines without."""
    slopes: dict[str, list[float]] = {"RCNBF": [], "baselines": []}
    for key, group in runs.groupby(["dataset", "rho0", "rho1", "learner"]):
        clean = key[1:3] == (0.0, 0.0)
        if (key[3] == "RCNBF" and not clean) or (key[3] in BASELINES and clean):
            last = group[group.rounds == group.rounds.max()]
            rounds = np.array(last.checkpoints.iloc[0])
            mean = np.mean([np.array(m) for m in last.mistakes], axis=0) / rounds
            late = (rounds >= rounds[-1] / 10) & (mean > 0)
            fit = np.polyfit(np.log(rounds[late]), np.log(mean[late]), 1)[0]
            slopes["RCNBF" if key[3] == "RCNBF" else "baselines"].append(float(fit))
    if not (slopes["RCNBF"] and slopes["baselines"]):
        return []
    a, b = np.array(slopes["RCNBF"]), np.array(slopes["baselines"])
    (mean_a, half_a), (mean_b, half_b) = interval(a), interval(b)
    close = mean_a <= mean_b + 0.05
    evidence = (
        f"slope of log error in the last decade of rounds: {mean_a:.2f} ± {half_a or 0:.2f} under noise ({a.size} "
        f"cells) against {mean_b:.2f} ± {half_b or 0:.2f} for the baselines without ({b.size})"
    )
    verdict = "holds" if close else "does not hold"
    return [Claim("RCNBF's error falls under noise as fast as the others' without noise", verdict, evidence)]


def _gamma_claim(sweep: pd.DataFrame) -> list[Claim]:
    if not len(sweep):
        return []
    gammas, inside, best = sorted(set(param(sweep, "gamma"))), 0, []
    for rates, cell in sweep.groupby(["rho0", "rho1"]):
        least = cell.groupby(param(cell, "gamma")).error.mean().idxmin()
        inside += gammas[0] < least < gammas[-1]
        best.append(f"{pair(rates)}: {least:g}")
    total = len(best)
    verdict = _verdict(int(inside), 0, total)
    return [Claim("Error against γ has its least between small and large γ", verdict, "best γ " + ", ".join(best))]


def _verdict(held: int, undecided: int, total: int) -> str:
    if held == total:
        return "holds"
    if held + undecided == 0 or held < (total - held - undecided):
        return "does not hold"
    return "holds in part" if held >= undecided else "undecided"


def _mean(values: pd.Series) -> str:
    mean, half = interval(values.to_numpy())
    return f"{mean:.3f}" if half is None else f"{mean:.3f} ± {half:.3f}"


def rate_table(runs: pd.DataFrame) -> pd.DataFrame:
    """Tables 1 and 2: the true rates, the paper's estimates, and ours by three estimators."""
    rows = []
    for dataset, published in PUBLISHED.items():
        for (rho0, rho1), paper in zip(NOISE, published, strict=True):
            for learner in ("RCINE-NREst", "RCINE", "Fliptron"):
                cell = runs[
                    (runs.dataset == dataset) & (runs.rho0 == rho0) & (runs.rho1 == rho1) & (runs.learner == learner)
                ]
                cell = cell[cell.rounds == cell.rounds.max()]
                ours = cell[["rho0_hat", "rho1_hat"]].astype(float).dropna()
                found = [round(float(value), 4) for value in ours.mean()] if len(ours) else [None, None]
                off = None if found[0] is None else max(abs(found[0] - rho0), abs(found[1] - rho1))
                paper_off = max(abs(paper[0] - rho0), abs(paper[1] - rho1))
                apart = [None if a is None else a - b for a, b in zip(found, paper, strict=True)]
                rows.append((dataset, rho0, rho1, *paper, paper_off, learner, *found, *apart, off, len(ours)))
    columns = ["dataset", "rho0", "rho1", "paper_rho0", "paper_rho1", "paper_off", "estimator", "rho0_hat", "rho1_hat"]
    return pd.DataFrame(rows, columns=[*columns, "minus_paper_rho0", "minus_paper_rho1", "off", "seeds"])
