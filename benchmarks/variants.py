"""What was tried on the way to Fliptron: updates and choices in one small loop, all told the true rates.

    python benchmarks/variants.py        # writes docs/tables/variants.md (about three minutes)

The loop is a sketch of each idea, not the library's code; told rates leave the noise estimate out of the comparison.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from math import exp, log, sqrt
from pathlib import Path

import numpy as np
from numba import njit

import fliptron
from fliptron.experiments.comparison import interval
from fliptron.kernels.matrices import apply, downdate
from fliptron.kernels.vectors import pick

NOISE = [(0.0, 0.0), (0.15, 0.15), (0.25, 0.25), (0.2, 0.4), (0.4, 0.2), (0.4, 0.4)]
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


def main() -> None:
    digits, rounds, seeds = fliptron.load("digits"), 30_000, range(10)
    lines = [
        "# What was tried\n",
        f"Error on digits after {rounds:,} rounds, mean ± half the 95 % interval of {len(seeds)} seeds. Every variant\n"
        "is told the true rates, and is a sketch in one small loop. Made by `make study-variants`.\n",
        "| variant | " + " | ".join(f"({a:g}, {b:g})" for a, b in NOISE) + " |",
        "|---|" + "---|" * len(NOISE),
    ]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, *variant in VARIANTS:
            cells = []
            for rates in NOISE:
                jobs = [(digits.X, digits.y, 10, rounds, seed, *rates, *variant) for seed in seeds]
                mean, half = interval(np.array(list(pool.map(lambda job: run(*job), jobs))))
                cells.append(f"{mean:.3f} ± {half:.3f}")
            lines.append(f"| {name} | " + " | ".join(cells) + " |")
            print(lines[-1], flush=True)
    Path("docs/tables/variants.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
