"""Statistics of runs: means with intervals, differences, errors at a horizon."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
from scipy import stats

from fliptron.arrays import Array

_LEAST_SURE = 0.05


def interval(values: Array) -> tuple[Array, Array | None]:
    """Mean over the first axis and half the width of its 95 % interval (Student's t); None for one value."""
    mean, n = np.mean(values, axis=0), len(values)
    if n < 2:
        return mean, None
    return mean, stats.t.ppf(0.975, n - 1) * np.std(values, axis=0, ddof=1) / np.sqrt(n)


def plus_minus(mean: float, half: float | None, digits: int = 4) -> str:
    """Mean ± half width, as tables print it."""
    alone = half is None or np.isnan(half)
    return f"{mean:.{digits}f}" if alone else f"{mean:.{digits}f} ± {half:.{digits}f}"


def differ(a: Array, b: Array) -> int:
    """−1, 0 or 1: whether a is lower, not told apart, or higher (Welch's t at 5 %)."""
    sign = int(np.sign(np.mean(a) - np.mean(b)))
    parts = [np.var(each, ddof=1) / len(each) for each in (a, b) if len(each) > 1]
    if len(parts) < 2:
        return 0
    if sum(parts) == 0.0:
        return sign
    freedom = sum(parts) ** 2 / sum(part**2 / (len(each) - 1) for part, each in zip(parts, (a, b), strict=True))
    far = abs(np.mean(a) - np.mean(b)) > stats.t.ppf(1 - _LEAST_SURE / 2, freedom) * np.sqrt(sum(parts))
    return sign if far else 0


def param(runs: pd.DataFrame, name: str) -> pd.Series:
    """One parameter of every run."""
    return runs.params.map(lambda text: json.loads(text).get(name))


def error_table(runs: pd.DataFrame) -> pd.DataFrame:
    """Mean final error of every learner in every cell, with half the 95 % interval."""
    keys = ["dataset", "rho0", "rho1", "learner", "params", "rounds"]
    rows = []
    for key, group in runs.groupby(keys, sort=True):
        mean, half = interval(group.error.to_numpy())
        greedy, _ = interval(group.greedy_error.to_numpy())
        rows.append((*key, float(mean), None if half is None else float(half), float(greedy), len(group)))
    return pd.DataFrame(rows, columns=[*keys, "error", "ci95", "greedy_error", "seeds"])
