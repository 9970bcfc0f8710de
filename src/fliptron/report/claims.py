"""The paper's claims, checked one by one against runs, at each horizon that was played."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from fliptron.arrays import Array
from fliptron.experiments.paper import NAMES, NOISE, PUBLISHED
from fliptron.report.figures import pair
from fliptron.report.statistics import differ, interval, param

THEIRS, BASELINES = ("RCNBF", "RCINE"), ("Banditron", "BPA", "SOBA")
_OPPONENTS = ("Banditron", "BPA", "BPA, γ > 0", "BPA, γ = 0.014", "SOBA")
_FULL = {
    "RCNBF": "RCNBF (true rates)",
    "RCINE": "RCINE (rates from our plateaus)",
    "BPA": "BPA (best γ, 0 allowed)",
    "BPA, γ > 0": "BPA (best γ above 0)",
    "BPA, γ = 0.014": "BPA (γ = 0.014, of its authors' lab)",
}
_CLEAN = (0.0, 0.0)
_CELL = ["dataset", "rho0", "rho1"]
FEWEST = 5
"""Seeds below which there is no verdict."""
_STILL = 0.05  # a slope of log error within this of 0 is level
_FINITE = 1e-4  # a greedy label wrong less often than this in the second half has stopped making mistakes


class Claim(NamedTuple):
    """Something the paper says, and what came of it after so many rounds."""

    text: str
    horizon: int
    verdict: str
    evidence: str


class Cell(NamedTuple):
    """The runs of one learner in one cell."""

    dataset: str
    rates: tuple[float, float]
    learner: str
    errors: Array
    slope: float
    """Of log error against log rounds over the last decade."""
    finite: bool
    """Whether it has stopped making mistakes but for exploration."""

    @property
    def title(self) -> str:
        """As a table names it."""
        return f"{NAMES[self.dataset]} {pair(self.rates)}"


def check_claims(runs: pd.DataFrame, sweep: pd.DataFrame, horizons: Sequence[int]) -> list[Claim]:
    """The paper's claims, each with a verdict and the numbers behind it, horizon by horizon."""
    claims = []
    for horizon in horizons:
        field = {
            (cell.dataset, cell.rates, cell.learner): cell
            for cell in cells(runs[(runs.rounds == horizon) & runs.learner.isin((*THEIRS, *_OPPONENTS))])
        }
        for mine in THEIRS:
            claims += [claim for other in _OPPONENTS for claim in _lower(field, horizon, mine, other)]
        claims += _still_learning(field, horizon)
        claims += _slopes(field, horizon)
        claims += _close(field, horizon)
        claims += _comparable(field, horizon)
        claims += _published(runs, horizon)
        claims += _gamma(sweep[sweep.rounds == horizon], horizon)
        for estimator, words in (("RCINE-NREst", "the published NREst"), ("RCINE", "our plateaus")):
            claims += _rates(runs[runs.rounds == horizon], horizon, estimator, words)
    return claims


def cells(runs: pd.DataFrame) -> Iterator[Cell]:
    """The runs cell by cell."""
    for (dataset, rho0, rho1, learner), group in runs.groupby([*_CELL, "learner"]):
        rounds = np.array(group.checkpoints.iloc[0])
        mean = np.mean([np.array(each) for each in group.mistakes], axis=0) / rounds
        late = (rounds >= rounds[-1] / 10) & (mean > 0)
        slope = np.polyfit(np.log(rounds[late]), np.log(mean[late]), 1)[0] if late.sum() > 1 else np.nan
        half = int(np.searchsorted(rounds, rounds[-1] / 2))
        wrong = np.mean([each[-1] - each[half] for each in group.greedy_mistakes]) / max(rounds[-1] - rounds[half], 1)
        yield Cell(dataset, (rho0, rho1), learner, group.error.to_numpy(), float(slope), bool(wrong < _FINITE))


Field = dict[tuple[str, tuple[float, float], str], Cell]


def _of(field: Field, learner: str, *, noisy: bool | None = None) -> list[Cell]:
    return [
        cell
        for (_, rates, name), cell in field.items()
        if name == learner and (noisy is None or noisy == (rates != _CLEAN))
    ]


def _lower(field: Field, horizon: int, mine: str, other: str) -> list[Claim]:
    """Under noise mine has lower error than other."""
    pairs = [
        (cell, field[cell.dataset, cell.rates, other])
        for cell in _of(field, mine, noisy=True)
        if (cell.dataset, cell.rates, other) in field
    ]
    if not pairs:
        return []
    signs = [differ(a.errors, b.errors) for a, b in pairs]
    ratios = [float(a.errors.mean() / b.errors.mean()) for a, b in pairs]
    lost = [a.title for (a, _), sign in zip(pairs, signs, strict=True) if sign > 0]
    evidence = (
        f"lower in {signs.count(-1)} of {len(pairs)} noisy cells, not told apart in {signs.count(0)}; median ratio of "
        f"errors {np.median(ratios):.2f}, from {min(ratios):.2f} to {max(ratios):.2f}"
    )
    evidence += f"; higher in: {', '.join(lost)}" if lost else ""
    text = f"Under noise {_FULL[mine]} has lower error than {_FULL.get(other, other)}"
    verdict = _verdict(signs.count(-1), signs.count(0), len(pairs), _fewest(cell for both in pairs for cell in both))
    return [Claim(text, horizon, verdict, evidence)]


def _still_learning(field: Field, horizon: int) -> list[Claim]:
    """While all others converge, RCNBF and RCINE are still learning: slopes over the last decade, under noise."""
    slopes = {
        name: [cell.slope for cell in _of(field, name, noisy=True) if not cell.finite] for name in (*THEIRS, *BASELINES)
    }
    if not all(slopes.values()):
        return []
    told = ", ".join(f"{name} {_mean(values, 2)}" for name, values in slopes.items())
    still = [slope < -_STILL for name in THEIRS for slope in slopes[name]]
    level = [abs(slope) < _STILL for name in BASELINES for slope in slopes[name]]
    evidence = (
        f"mean slope of log error from {horizon // 10:,} rounds on: {told}; steeper than −{_STILL:g} in {sum(still)} "
        f"of {len(still)} noisy cells of RCNBF and RCINE; level (within {_STILL:g}) in {sum(level)} of {len(level)} "
        "of the others"
    )
    verdict = _verdict(sum(still) + sum(level), 0, len(still) + len(level), _fewest(field.values()))
    return [
        Claim("Under noise the others converge while RCNBF and RCINE are still learning", horizon, verdict, evidence)
    ]


def _slopes(field: Field, horizon: int) -> list[Claim]:
    """Slopes of RCNBF and RCINE under noise beside those of the others without; stopped cells have none."""
    mine = [cell.slope for name in THEIRS for cell in _of(field, name, noisy=True) if not cell.finite]
    others = [cell.slope for name in BASELINES for cell in _of(field, name, noisy=False) if not cell.finite]
    if not (mine and others):
        return []
    (a, half_a), (b, half_b) = interval(np.array(mine)), interval(np.array(others))
    apart = half_a is not None and half_b is not None and abs(a - b) > np.hypot(half_a, half_b)
    verdict = "holds" if not apart or a < b else "does not hold"
    evidence = (
        f"mean slope of log error from {horizon // 10:,} rounds on: {_mean(mine, 2)} under noise ({len(mine)} cells) "
        f"against {_mean(others, 2)} for the others without ({len(others)}), cells that stopped making mistakes left "
        "out"
    )
    text = "The slopes of RCNBF and RCINE under noise are comparable to the others' without noise, or steeper"
    enough = _fewest(field.values()) >= FEWEST
    return [Claim(text, horizon, verdict if enough else _verdict(0, 0, 1, _fewest(field.values())), evidence)]


def _close(field: Field, horizon: int) -> list[Claim]:
    """The final error under noise beside the best of the others' without."""
    apart, ratios = [], []
    for name in THEIRS:
        for cell in _of(field, name, noisy=True):
            clean = [field.get((cell.dataset, _CLEAN, other)) for other in BASELINES]
            errors = [float(each.errors.mean()) for each in clean if each is not None]
            if errors:
                apart.append(float(cell.errors.mean()) - min(errors))
                ratios.append(float(cell.errors.mean()) / max(min(errors), 1 / horizon))
    if not apart:
        return []
    close = sum(each <= 0.05 for each in apart)
    evidence = (
        f"higher than the best of the others without noise by {np.median(apart):.3f} in the median cell (from "
        f"{min(apart):.3f} to {max(apart):.3f}; {np.median(ratios):.1f} times as high); within .05 in {close} of "
        f"{len(apart)} cells"
    )
    verdict = _verdict(close, 0, len(apart), _fewest(field.values()))
    text = "The final error of RCNBF and RCINE under noise is close to the others' without noise"
    return [Claim(text, horizon, verdict, evidence)]


def _comparable(field: Field, horizon: int) -> list[Claim]:
    pairs = [
        (cell, field[cell.dataset, cell.rates, "RCNBF"])
        for cell in _of(field, "RCINE")
        if (cell.dataset, cell.rates, "RCNBF") in field
    ]
    ratios = [float(a.errors.mean() / b.errors.mean()) for a, b in pairs]
    return _near("RCINE (our plateaus) performs comparably to RCNBF", horizon, ratios, _fewest(sum(pairs, ())))


def _published(runs: pd.DataFrame, horizon: int) -> list[Claim]:
    """RCINE with the published NREst beside RCNBF, at the horizon of the former."""
    ratios, seeds = [], []
    told = runs[(runs.learner == "RCNBF") & (runs.rounds == horizon)]
    for key, group in runs[(runs.learner == "RCINE-NREst") & (runs.rounds == horizon)].groupby(_CELL):
        same = told[(told.dataset == key[0]) & (told.rho0 == key[1]) & (told.rho1 == key[2])]
        if len(same):
            ratios.append(group.error.mean() / same.error.mean())
            seeds.append(len(group))
    return _near("RCINE (the published NREst) performs comparably to RCNBF", horizon, ratios, min(seeds, default=0))


def _near(text: str, horizon: int, ratios: list[float], seeds: int) -> list[Claim]:
    """Whether errors whose ratios these are lie within a tenth of each other, cell by cell."""
    if not ratios:
        return []
    mean, half = interval(np.log(ratios))
    spread = "" if half is None else f", 95 % interval {np.exp(mean - half):.2f} to {np.exp(mean + half):.2f}"
    close = sum(0.9 <= ratio <= 1.1 for ratio in ratios)
    evidence = (
        f"geometric mean ratio {np.exp(mean):.2f}{spread}; within 10 % in {close} of {len(ratios)} cells, from "
        f"{min(ratios):.2f} to {max(ratios):.2f}"
    )
    return [Claim(text, horizon, _verdict(close, 0, len(ratios), seeds), evidence)]


def _gamma(sweep: pd.DataFrame, horizon: int) -> list[Claim]:
    if not len(sweep):
        return []
    gammas, inside, best = sorted(set(param(sweep, "gamma"))), 0, []
    for rates, cell in sweep.groupby(["rho0", "rho1"]):
        least = cell.groupby(param(cell, "gamma")).error.mean().idxmin()
        inside += gammas[0] < least < gammas[-1]
        best.append(f"{pair(rates)}: {least:g}")
    verdict = _verdict(int(inside), 0, len(best), int(sweep.seed.nunique()))
    evidence = f"of γ from {gammas[0]:g} to {gammas[-1]:g} the best is " + ", ".join(best)
    return [Claim("Error against γ has its least between small and large γ", horizon, verdict, evidence)]


def _rates(runs: pd.DataFrame, horizon: int, estimator: str, words: str) -> list[Claim]:
    table = rate_table(runs)
    mine = table[table.estimator == estimator]
    if not len(mine):
        return []
    found = mine[mine.seeds * 2 > mine.played]
    near = int((found.off <= 0.05).sum())
    evidence = f"within .05 in {near} of {len(mine)} cells"
    if len(found):
        evidence = (
            f"the worse of the two rates is off by {_mean(found.off, 3)} in the mean cell, at most "
            f"{found.off.max():.3f}; {evidence}"
        )
    if len(found) < len(mine):
        evidence += f", not identified by most seeds in {len(mine) - len(found)}"
    evidence += f"; the paper's own tables: {_mean(mine.paper_off, 3)}, at most {mine.paper_off.max():.3f}"
    verdict = _verdict(near, 0, len(mine), int(mine.played.min()))
    return [Claim(f"The rates can be estimated ({words})", horizon, verdict, evidence)]


def _fewest(cells: Iterable[Cell]) -> int:
    return min((cell.errors.size for cell in cells), default=0)


def _verdict(held: int, undecided: int, total: int, seeds: int) -> str:
    if seeds < FEWEST:
        return f"no verdict from {seeds} seed{'s' if seeds != 1 else ''}"
    if held == total:
        return "holds"
    if held + undecided == 0 or held < (total - held - undecided):
        return "does not hold"
    return "holds in part" if held >= undecided else "undecided"


def _mean(values: Sequence[float] | pd.Series, digits: int) -> str:
    mean, half = interval(np.asarray(values, dtype=float))
    return f"{mean:.{digits}f}" if half is None else f"{mean:.{digits}f} ± {half:.{digits}f}"


def rate_table(runs: pd.DataFrame) -> pd.DataFrame:
    """Tables 1 and 2: the true rates, the paper's estimates, and ours by four estimators.

    Ours are means over the `seeds`, of those `played`, that identified the rates, at least weakly.
    """
    rows = []
    for dataset, published in PUBLISHED.items():
        for (rho0, rho1), paper in zip(NOISE, published, strict=True):
            for learner in ("RCINE-NREst", "RCINE-NREst-one-hot", "RCINE", "Fliptron"):
                cell = runs[
                    (runs.dataset == dataset) & (runs.rho0 == rho0) & (runs.rho1 == rho1) & (runs.learner == learner)
                ]
                if not len(cell):
                    continue
                ours = cell[["rho0_hat", "rho1_hat"]].astype(float).dropna()
                found = [round(float(value), 4) for value in ours.mean()]
                off = max(abs(found[0] - rho0), abs(found[1] - rho1))
                paper_off = max(abs(paper[0] - rho0), abs(paper[1] - rho1))
                counts = len(ours), len(cell), int(cell.rounds.max())
                rows.append((dataset, rho0, rho1, *paper, paper_off, learner, *found, off, *counts))
    columns = ["dataset", "rho0", "rho1", "paper_rho0", "paper_rho1", "paper_off", "estimator", "rho0_hat", "rho1_hat"]
    return pd.DataFrame(rows, columns=[*columns, "off", "seeds", "played", "rounds"])
