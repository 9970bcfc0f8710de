"""What is blind exploration worth to a served model, and when should silence be learnt?

make bench NAME=served, or python benchmarks/served.py [seeds]

Two questions behind the service's defaults, each with its answer in docs/tables/served.md. Exploration: Fliptron with
and without γ = 0.01 plays behind a channel; are the flip rates identified from the log alone, and what does it cost?
Silence: a click comes some rounds after its decision, or never. Either clicks are learnt as they come and silence when
the wait is over; or both when it is over, in the order of decisions.
"""

from __future__ import annotations

import heapq
import sys
from pathlib import Path
from typing import Any

import numpy as np

from fliptron import Fliptron, audit, load, simulate
from fliptron.report.statistics import interval, plus_minus

DATA = "digits", "iris", "clicks", "synnonsep"
RATES = (0.2, 0.4)
ROUNDS = 50_000
CLICKS = (0.02, 0.9)
"""Rates of a shop: P(click | wrong), P(no click | right)."""
WAIT, DELAY, VISITS = 5000, 200, 20_000
"""Rounds until silence is a bit, rounds until a click comes, in the mean, and rounds in all."""
SEEDS = 10
_TABLE = Path(__file__).parents[1] / "docs" / "tables" / "served.md"


def explored(data: str, gamma: float, seed: int) -> tuple[bool, float]:
    """Whether the rates are identified from the log, and the error."""
    table = load(data)
    learner = Fliptron(n_classes=table.n_classes, n_features=table.n_features, gamma=gamma, seed=seed)
    trace: Any = simulate(learner, table, rates=RATES, rounds=ROUNDS, seed=seed, log=True)
    return audit(trace.log, n_classes=table.n_classes).verdict == "identified", trace.error


def waited(at_once: bool, seed: int) -> float:
    """The error in the second half of the visits."""
    digits, random = load("digits"), np.random.default_rng([seed, 3])
    X, y = np.asarray(digits.X, dtype=np.float64), np.asarray(digits.y)
    learner = Fliptron(n_classes=10, n_features=64, gamma=0.01, seed=seed)
    due: list[tuple[int, int, int, int, Any]] = []  # when, which round, the bit, the row, the decision
    wrong = 0
    for t in range(VISITS):
        while due and due[0][0] <= t:
            _, _, bit, i, decision = heapq.heappop(due)
            learner.learn(X[i], decision, bit)
        i = int(random.integers(len(X)))
        decision = learner.decide(X[i])
        right = decision.label == y[i]
        bit = int(right != (random.random() < CLICKS[int(right)]))
        delay = min(1 + int(random.exponential(DELAY)), WAIT)
        heapq.heappush(due, (t + (delay if bit and at_once else WAIT), t, bit, i, decision))
        wrong += int(not right) * (t >= VISITS // 2)
    return wrong / (VISITS - VISITS // 2)


def main(seeds: int) -> None:
    lines = [
        "# Two defaults of the service",
        "",
        f"Fliptron behind flip rates {RATES}, {ROUNDS:,} rounds, {seeds} seeds: in how many runs the rates are",
        "identified from the log, and the error; ± is half the 95 % interval. Made by `make bench NAME=served`.",
        "",
        "| data | identified, γ = 0 | γ = 0.01 | error, γ = 0 | γ = 0.01 |",
        "|---|---|---|---|---|",
    ]
    for data in DATA:
        told = {gamma: [explored(data, gamma, seed) for seed in range(seeds)] for gamma in (0.0, 0.01)}
        known = [f"{sum(found for found, _ in runs)} of {seeds}" for runs in told.values()]
        errors = [_shown([error for _, error in runs]) for runs in told.values()]
        lines.append(f"| {data} | {' | '.join([*known, *errors])} |")
        print(lines[-1], flush=True)
    lines += [
        "",
        f"Digits; right labels are clicked with probability {1 - CLICKS[1]:.1f} and wrong ones with {CLICKS[0]},",
        f"{DELAY} decisions later in the mean, and silence is a bit 0 after {WAIT:,}: the error in the second half of",
        f"{VISITS:,} decisions.",
        "",
        "| clicks and silence are learnt | error |",
        "|---|---|",
    ]
    for name, at_once in (("clicks at once, silence at the deadline", True), ("both at the deadline, in order", False)):
        lines.append(f"| {name} | {_shown([waited(at_once, seed) for seed in range(seeds)])} |")
        print(lines[-1], flush=True)
    if seeds == SEEDS:
        _TABLE.write_text("\n".join(lines) + "\n")


def _shown(values: list[float]) -> str:
    mean, half = interval(np.array(values))
    return plus_minus(float(mean), None if half is None else float(half), 3)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else SEEDS)
