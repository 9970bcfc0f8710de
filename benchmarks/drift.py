"""Recovery from a jump: all labels are permuted mid-stream; Fliptron with a half-life beside a fresh start.

python benchmarks/drift.py       # writes docs/tables/drift.md (a minute)
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from fliptron import Dataset, Fliptron, load, simulate
from fliptron.experiments.comparison import interval

NOISE, SEEDS, WINDOW = [(0.0, 0.0), (0.15, 0.15), (0.2, 0.4), (0.4, 0.2)], range(10), 1000
DIGITS = load("digits")
PERMUTED = Dataset.of(DIGITS.X, (DIGITS.y + 3) % 10, name="permuted")


def recover(rates: tuple[float, float], seed: int) -> tuple[int, int]:
    """Rounds until the error of the last 1,000 is within 1.5 times of its level before: old and new learner."""
    old, new = (Fliptron(n_classes=10, n_features=64, half_life=100_000, seed=seed) for _ in range(2))
    before = simulate(old, DIGITS, rates=rates, rounds=20_000, seed=seed, log=True).log
    level = np.mean((before.label != DIGITS.y[before.row])[-10_000:])
    times = []
    for learner in (old, new):
        log = simulate(learner, PERMUTED, rates=rates, rounds=40_000, seed=seed + 100, log=True).log
        wrong = np.cumsum(log.label != PERMUTED.y[log.row])
        back = (wrong[WINDOW:] - wrong[:-WINDOW]) / WINDOW <= 1.5 * level
        times.append(WINDOW + int(np.argmax(back)) if back.any() else log.label.size)
    return times[0], times[1]


def main() -> None:
    lines = [
        "# Recovery from a jump\n",
        "All labels of digits are permuted after 20,000 rounds. Rounds until the error of the last 1,000 is within 1.5",
        "times of its level before the change, `Fliptron(half_life=100_000)`, mean ± half the 95 % interval of "
        f"{len(SEEDS)}",
        "seeds; a fresh start sees the same rounds. Made by `make study-drift`.\n",
        "| noise | after the jump | fresh start |",
        "|---|---|---|",
    ]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for rates in NOISE:
            times = np.array(list(pool.map(lambda seed, rates=rates: recover(rates, seed), SEEDS)))
            cells = [f"{mean:,.0f} ± {half:,.0f}" for mean, half in zip(*interval(times), strict=True)]
            lines.append(f"| {rates} | " + " | ".join(cells) + " |")
            print(lines[-1], flush=True)
    Path("docs/tables/drift.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
