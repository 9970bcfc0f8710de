"""How soon are sources that lie found, and are honest ones left alone?

python benchmarks/sources.py

A Fliptron plays on handwritten digits; its bits come from a hundred sources, of which twenty lie in one way or another,
or none. Printed is after how many of its bits each liar was found, and how many honest sources were flagged.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fliptron import Fliptron, load
from fliptron.service.sources import Sources

_LIES: dict[str, Any] = {
    "invert": lambda bit, random: 1 - bit,
    "guess": lambda bit, random: int(random.random() < 0.5),
    "always say 1": lambda bit, random: 1,
}


def play(rates: tuple[float, float], how: str | None, rounds: int, sources: int = 100, seed: int = 1) -> str:
    digits, random = load("digits"), np.random.default_rng(seed)
    X, y = np.asarray(digits.X, dtype=np.float64), np.asarray(digits.y)
    learner, judge = Fliptron(n_classes=10, n_features=64, gamma=0.01, seed=seed), Sources()
    liars = 0 if how is None else sources // 5
    found: dict[int, int] = {}
    bits = np.zeros(sources, int)
    for _ in range(rounds):
        i, who = int(random.integers(len(X))), int(random.integers(sources))
        decision = learner.decide(X[i])
        right = decision.label == y[i]
        bit = int(right != (random.random() < rates[1 if right else 0]))
        bit = _LIES[how](bit, random) if how is not None and who < liars else bit
        if who in found:
            continue
        bits[who] += 1
        judge.observe(str(who), learner, X[i], decision.label, bit)
        learner.learn(X[i], decision, bit)
        while judge.suspects:
            found[int(judge.suspects.pop())] = int(bits[who])
    caught = sorted(after for who, after in found.items() if who < liars)
    told = f"{len(caught)} of {liars} liars that {how} found" if how else "nobody lies"
    after = f", after {caught[0]} to {caught[-1]} bits" if caught else ""
    honest = sum(who >= liars for who in found)
    return f"rates {rates}: {told}{after}; {honest} of {sources - liars} honest sources flagged in {rounds:,} rounds"


if __name__ == "__main__":
    for flips in ((0.02, 0.9), (0.05, 0.1), (0.2, 0.4)):
        for lie in (*_LIES, None):
            print(play(flips, lie, 16_000), flush=True)
