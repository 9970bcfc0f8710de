"""What a round costs: Fliptron beside RidgeRegression, Confidit and RCNBF, interleaved, best of several.

python benchmarks/cost.py        # writes docs/tables/cost.md (half a minute)
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from fliptron import RCNBF, Confidit, Dataset, Fliptron, RidgeRegression, load, simulate

ROUNDS, REPEATS = 20_000, 7


def main() -> None:
    random = np.random.default_rng(0)
    wide = Dataset.of(random.random((2000, 784)), random.integers(10, size=2000), name="784 features")
    rows = []
    for data, kinds in (
        (load("digits"), ("RCNBF", "RidgeRegression", "Confidit", "Fliptron, full", "Fliptron, diagonal")),
        (wide, ("RCNBF", "Fliptron, diagonal")),
    ):
        best = dict.fromkeys(kinds, np.inf)
        for _ in range(REPEATS):
            for kind in kinds:
                learner = make(kind, data)
                simulate(learner, data, rates=(0.2, 0.4), rounds=2000)
                began = time.process_time()
                simulate(learner, data, rates=(0.2, 0.4), rounds=ROUNDS, seed=1)
                best[kind] = min(best[kind], (time.process_time() - began) / ROUNDS * 1e6)
        for kind in kinds:
            against = [
                f"{best[kind] / best[other]:.1f}" if other in best else "–" for other in ("RCNBF", "RidgeRegression")
            ]
            rows.append(f"| 10×{data.n_features} | {kind} | {best[kind]:.2f} | {against[0]} | {against[1]} |")
    text = f"""# What a round costs

Microseconds of CPU a round within `simulate`, noise (0.2, 0.4), best of {REPEATS} interleaved runs of {ROUNDS:,} rounds
after 2,000; ratios are what to trust. Made by `make study-cost-learners`.

| K×d | learner | µs | RCNBF's times | RidgeRegression's times |
|---|---|---|---|---|
{chr(10).join(rows)}
"""
    Path("docs/tables/cost.md").write_text(text)
    print(text)


def make(kind: str, data: Dataset):
    shape = {"n_classes": data.n_classes, "n_features": data.n_features}
    name, _, form = kind.partition(", ")
    if name == "Fliptron":
        return Fliptron(**shape, form=form)
    return {
        "RCNBF": lambda: RCNBF(**shape, gamma=0.2, rates=(0.2, 0.4)),
        "RidgeRegression": lambda: RidgeRegression(**shape),
        "Confidit": lambda: Confidit(**shape),
    }[name]()


if __name__ == "__main__":
    main()
