"""What does a round of Fliptron cost, beside RidgeRegression, Confidit and RCNBF?

make bench NAME=cost        # half a minute; writes docs/tables/cost.md
"""

from __future__ import annotations

import sys
from copy import deepcopy
from functools import partial
from pathlib import Path

import numpy as np

from fliptron import RCNBF, Confidit, Dataset, Fliptron, RidgeRegression, load, simulate
from tabular import save, table
from timing import Turn, best

RATES, ROUNDS, REPEATS = (0.2, 0.4), 20_000, 7
KINDS = {
    "RCNBF": partial(RCNBF, gamma=0.2, rates=RATES),
    "RidgeRegression": RidgeRegression,
    "Confidit": Confidit,
    "Fliptron, full": partial(Fliptron, form="full"),
    "Fliptron, diagonal": partial(Fliptron, form="diagonal"),
}


def turn(kind: str, data: Dataset) -> Turn:
    """Rounds of a learner that has played 2,000 before, the same in every turn."""
    learner = KINDS[kind](n_classes=data.n_classes, n_features=data.n_features)
    simulate(learner, data, rates=RATES, rounds=2000)
    return lambda rounds: simulate(deepcopy(learner), data, rates=RATES, rounds=rounds, seed=1), ROUNDS


def main(out: Path) -> None:
    """Measure, and write the table."""
    random = np.random.default_rng(0)
    wide = Dataset.of(random.random((2000, 784)), random.integers(10, size=2000), name="784 features")
    rows = []
    for data, kinds in ((load("digits"), list(KINDS)), (wide, ["RCNBF", "Fliptron, diagonal"])):
        times = best({kind: turn(kind, data) for kind in kinds}, REPEATS)
        for kind, ns in times.items():
            ratios = [f"{ns / times[other]:.1f}" if other in times else "–" for other in ("RCNBF", "RidgeRegression")]
            rows.append([f"10×{data.n_features}", kind, f"{ns / 1000:.2f}", *ratios])
    text = f"""# What a round costs

Microseconds of CPU per round within `simulate`, noise {RATES}, best of {REPEATS} interleaved runs of {ROUNDS:,} rounds
after 2,000; ratios are what to trust. Made by `make bench NAME=cost`.

{table(["K×d", "learner", "µs", "RCNBF's times", "RidgeRegression's times"], rows)}"""
    print(text, save(out, text), sep="\n\n")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/tables/cost.md"))
