"""How soon are sources that lie found, and are honest ones left alone?

make bench NAME=sources, or python benchmarks/sources.py [runs] [bits]

A Fliptron plays; its bits come from a hundred sources, of which twenty lie in one way or another, or none, and whoever
is flagged goes into quarantine. Every honest source has rates of its own, within 0.02 of the channel's. The detector
was chosen on handwritten digits with seed 1, which is not among these. Written to docs/tables/sources.md is how many
liars were found within so many of their bits, and how many honest sources were flagged, over all runs of a row.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fliptron import Fliptron, load
from fliptron.service.sources import Sources

DATA = "clicks", "iris", "digits"
RATES = (0.02, 0.9), (0.05, 0.1), (0.2, 0.4)
SOURCES, LIARS = 100, 20
SEED = 11
LIES: dict[str, Any] = {
    "invert every bit": lambda bit, random: 1 - bit,
    "guess": lambda bit, random: int(random.random() < 0.5),
    "always say 1": lambda bit, random: 1,
    "always say 0": lambda bit, random: 0,
}
_OWN = 0.02  # how far an honest source's rates may be from the channel's
_TABLE = Path(__file__).parents[1] / "docs" / "tables" / "sources.md"


class Found(NamedTuple):
    """Of one run: after how many of its bits each liar was found, how many lied, and the same of honest sources."""

    liars: list[int]
    lied: int
    honest: int
    honest_flagged: int


def play(data: str, rates: tuple[float, float], lie: str | None, bits: int, seed: int) -> Found:
    """One run, with so many bits of each source on the average."""
    table, random = load(data), np.random.default_rng([seed, 5])
    X, y = np.ascontiguousarray(table.X, dtype=np.float64), np.asarray(table.y)
    learner = Fliptron(n_classes=int(y.max()) + 1, n_features=X.shape[1], gamma=0.01, seed=seed)
    judge, liars, own = Sources(), LIARS if lie else 0, random.uniform(-_OWN, _OWN, size=(SOURCES, 2))
    found: dict[int, int] = {}
    heard = np.zeros(SOURCES, int)
    for _ in range(bits * SOURCES):
        i, who = int(random.integers(len(X))), int(random.integers(SOURCES))
        decision = learner.decide(X[i])
        right = int(decision.label == y[i])
        bit = right ^ int(random.random() < min(max(rates[right] + own[who, right], 0.0), 1.0))
        bit = LIES[lie](bit, random) if lie and who < liars else bit
        if who in found:
            continue
        heard[who] += 1
        judge.observe(str(who), learner, X[i], decision.label, bit)
        learner.learn(X[i], decision, bit)
        while judge.suspects:
            found[int(judge.suspects.pop())] = int(heard[who])
    caught = sorted(after for who, after in found.items() if who < liars)
    return Found(caught, liars, SOURCES - liars, sum(who >= liars for who in found))


def row(rates: tuple[float, float], lie: str | None, runs: int, bits: int) -> str:
    """One row of the table, over data and seeds."""
    found = [play(data, rates, lie, bits, SEED + run) for data in DATA for run in range(runs)]
    caught, lied = sorted(after for each in found for after in each.liars), sum(each.lied for each in found)
    honest, flagged = sum(each.honest for each in found), sum(each.honest_flagged for each in found)
    within = " | ".join(f"{sum(after <= limit for after in caught)}" if lied else "" for limit in (50, 150, bits))
    half = f"{caught[lied // 2]}" if lied and len(caught) > lied // 2 else ""
    name = f"{lied} liars that {lie}" if lie else "nobody lies"
    return f"| {rates[0]}, {rates[1]} | {name} | {within} | {half} | {flagged} of {honest:,} |"


def main(runs: int, bits: int) -> None:
    head = [
        "# Which liars are found",
        "",
        f"A hundred sources send bits to a Fliptron, {bits} each in the mean; twenty of them lie, or none, and whoever",
        f"is flagged goes into quarantine. The detector was chosen on digits with seed 1; these are {', '.join(DATA)}",
        f"with seeds {SEED} to {SEED + runs - 1}. Honest sources have rates of their own, within {_OWN} of the",
        "channel's. Made by `make bench NAME=sources`.",
        "",
        f"| ρ0, ρ1 | sources | found within 50 bits | 150 | {bits} | half of them within | honest ones flagged |",
        "|---|---|---|---|---|---|---|",
    ]
    lines = []
    for rates in RATES:
        for lie in (*LIES, None):
            lines.append(row(rates, lie, runs, bits))
            print(lines[-1], flush=True)
    if (runs, bits) == _FULL:
        _TABLE.write_text("\n".join([*head, *lines]) + "\n")


_FULL = 2, 300

if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else _FULL[0], int(sys.argv[2]) if len(sys.argv) > 2 else _FULL[1])
