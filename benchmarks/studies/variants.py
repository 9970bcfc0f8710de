"""What was tried on the way to Fliptron? Updates and choices in one small loop, all told the true rates.

The loop is a sketch of each idea, not the library's code; told rates leave the noise estimate out of the comparison.
"""

from __future__ import annotations

from math import exp, log, sqrt
from pathlib import Path

import numpy as np
import pandas as pd
from numba import njit

from fliptron.experiments.paper import NOISE
from fliptron.experiments.plan import Spec, grid
from fliptron.experiments.runner import about, data
from fliptron.kernels.matrices import apply, downdate
from fliptron.kernels.vectors import pick
from fliptron.report.statistics import interval, param, plus_minus
from fliptron.results import Run
from tabular import pair, save, table

ROUNDS = 30_000
SEEDS = range(10)
SETTINGS = ("update", "choice", "strength", "prior")
RIDGE, LAPLACE, CAPPED, SHRINKING, OPEN, SHARED = range(6)
GREEDY, BOUND, THOMPSON, COMMON = range(4)
VARIANTS = [
    ("ridge on the raw bit, 1 % uniform play", RIDGE, GREEDY, 0.01, 10.0),
    ("ridge, upper confidence bound", RIDGE, BOUND, 0.5, 1.0),
    ("softmax + channel, Fisher information, upper bound", LAPLACE, BOUND, 1.0, 20.0),
    ("the same, a wider prior", LAPLACE, BOUND, 1.0, 100.0),
    ("the same, no step above 1", CAPPED, BOUND, 1.0, 20.0),
    ("Bayes' rule, doubt can only shrink, one z for all labels", SHRINKING, COMMON, 2.0, 100.0),
    ("Bayes' rule, doubt grows on surprise", OPEN, COMMON, 2.0, 100.0),
    ("the same, others share what the played label gives (Fliptron)", SHARED, COMMON, 2.0, 100.0),
    ("the same, Thompson sampling", SHARED, THOMPSON, 0.5, 100.0),
    ("the same, plain upper bound", SHARED, BOUND, 1.0, 100.0),
    ("the same, 2 % uniform play", SHARED, GREEDY, 0.02, 100.0),
]


def specs(runs: pd.DataFrame) -> list[Spec]:
    """Every variant in every noise setting. Fliptron stands for all of them: they are sketches of what became it."""
    found = []
    for _, *variant in VARIANTS:
        learners = {"Fliptron": {name: [value] for name, value in zip(SETTINGS, variant, strict=True)}}
        found += grid(datasets=["digits"], rates=NOISE, learners=learners, rounds=ROUNDS, seeds=SEEDS)
    return found


def play_one(spec: Spec) -> Run:
    digits, checksum = data(spec)
    variant = [spec.params[name] for name in SETTINGS]
    error = run(digits.X, digits.y, digits.n_classes, spec.rounds, spec.seed, *spec.rates, *variant)
    mistakes = round(error * spec.rounds)
    return about(spec, error=error, checkpoints=[spec.rounds], mistakes=[mistakes], data_sha256=checksum)


@njit(nogil=True)
def run(X, y, K, rounds, seed, rho0, rho1, update, choice, strength, prior):
    np.random.seed(seed)
    n, d = X.shape
    W, cov = np.zeros((K, d)), np.zeros((K, d, d))
    for r in range(K):
        for i in range(d):
            cov[r, i, i] = prior
    pulls, s, v = np.zeros((K, d)), np.zeros(K), np.zeros(K)
    slope, bend, chance = np.zeros(K), np.zeros(K), np.zeros(K)
    low0, low1 = max(rho0, 0.01), max(rho1, 0.1 if update >= SHRINKING else 0.001)
    beta, wrong = 1.0 - low0 - low1, 0
    for _ in range(rounds):
        row = np.random.randint(n)
        x = X[row]
        for r in range(K):
            s[r] = np.dot(W[r], x)
            apply(cov[r], x, pulls[r])
            v[r] = max(pick(pulls[r], x), 0.0)
        best = np.argmax(s)
        label, top, z = best, -np.inf, strength * np.random.random()
        if choice == GREEDY:
            label = np.random.randint(K) if z < strength * strength else best
        else:
            for r in range(K):
                kick = strength * np.random.randn() if choice == THOMPSON else (z if choice == COMMON else strength)
                if s[r] + kick * sqrt(v[r]) > top:
                    label, top = r, s[r] + kick * sqrt(v[r])
        right = label == y[row]
        wrong += not right
        bit = right != (np.random.random() < (rho1 if right else rho0))
        if update == RIDGE:
            k = 1.0 / (1.0 + v[label])
            W[label] += (bit - s[label]) * k * pulls[label]
            downdate(cov[label], pulls[label], k)
            continue
        odds = np.exp(s - s[best])
        given, biggest = 1e-300, 0.0
        for r in range(K):
            others = doubt = 0.0
            for j in range(K):
                if j != r:
                    others += odds[j]
                    doubt += odds[j] ** 2 * v[j]
            others = max(others, 1e-300)
            kappa = 1.0 if update <= CAPPED else 1.0 / sqrt(1.0 + np.pi / 8 * (v[r] + doubt / others**2))
            scale = beta if r == label else beta * odds[label] / others
            lead = kappa * (s[r] - s[best] - log(others))
            q = 1.0 / (1.0 + exp(-lead if r == label else lead))
            chance[r], slope[r] = low0 + scale * q, scale * kappa * q * (1.0 - q)
            bend[r] = slope[r] * kappa * (1.0 - 2.0 * q)
            if r != label:
                given += slope[r]
            biggest = max(biggest, slope[r] * v[r])
        part = min(slope[label] / given, 1.0) if update == SHARED else 1.0
        for r in range(K):
            weight = 1.0 if r == label else part
            likely, sign = (chance[r], 1.0) if bit else (1.0 - chance[r], -1.0)
            likely = min(max(likely, 1e-3), 1.0)
            g, h = sign * weight * slope[r] / likely, 0.0
            if update <= CAPPED:  # a step of natural gradient: h is the Fisher information
                w = slope[r] ** 2 / max(chance[r] * (1.0 - chance[r]), 1e-3)
                h, g = w / (1.0 + w * v[r]), g / (1.0 + w * v[r])
                if update == CAPPED and abs(g) * v[r] > 1.0:
                    g = sign / v[r]
            else:
                h = g * g - sign * weight * bend[r] / likely
                h = min(max(h, -1.0 / v[r], (v[r] - prior) / v[r] ** 2), 0.9 / v[r])
                if update == SHRINKING:
                    h = max(h, 0.0)
            if abs(g) * sqrt(v[r]) < 1e-3:
                continue
            W[r] += (g if r == label else -g) * pulls[r]
            downdate(cov[r], pulls[r], h)
    return wrong / rounds


def write(runs: pd.DataFrame, docs: Path) -> list[Path]:
    runs = runs.assign(**{name: param(runs, name) for name in SETTINGS})
    cells = {key: interval(cell.error.to_numpy()) for key, cell in runs.groupby([*SETTINGS, "rho0", "rho1"])}
    rows = [[name, *(plus_minus(*cells[*variant, *rates], 3) for rates in NOISE)] for name, *variant in VARIANTS]
    text = f"""# What was tried

Error on digits after {ROUNDS:,} rounds, mean ± half the 95 % interval of {len(SEEDS)} seeds. Every variant is told
the true rates, and is a sketch in one small loop. Made by `make study NAME=variants`.

{table(["variant", *map(pair, NOISE)], rows)}"""
    return [save(docs / "tables/variants.md", text)]
