"""Vowpal Wabbit's `--cb_explore` as a peer: same rows, same flips, same kind of round."""

from __future__ import annotations

import numpy as np

from fliptron import Dataset, FlipChannel
from fliptron.stream import Stream

SETTINGS = [
    "--epsilon 0.02 --cb_type dm",
    "--epsilon 0.05 --cb_type dm -l 5",
    "--epsilon 0.05 --cb_type dr -l 5",
    "--bag 5 --cb_type dm -l 5",
    "--cover 3 --cb_type ips -l 5",
    "--softmax --lambda 5 --cb_type dm -l 5",
    "--softmax --lambda 20 --cb_type dm -l 5",
]


def play(dataset: Dataset, setting: str, rates: tuple[float, float], rounds: int, seed: int) -> float:
    """Error of the played labels after so many rounds."""
    import vowpalwabbit

    K = dataset.n_classes
    text = [" ".join(f"f{j}:{v:.6g}" for j, v in _values(dataset.row(i))) for i in range(dataset.n_rows)]
    model = vowpalwabbit.Workspace(f"--cb_explore {K} {setting} --random_seed {seed + 1} --quiet -b 18")
    rows = Stream(dataset.n_rows, seed=seed).rows(0, rounds)
    channel = FlipChannel(*rates, seed=seed)
    random, wrong = np.random.default_rng(seed), 0
    for t, row in enumerate(rows):
        chances = np.maximum(model.predict("| " + text[row]), 0.0)
        label = int(random.choice(K, p=chances / chances.sum()))
        right = label == dataset.y[row]
        wrong += not right
        bit = channel.bit(t, correct=bool(right))
        model.learn(f"{label + 1}:{-bit}:{chances[label] / chances.sum():.6g} | " + text[row])
    model.finish()
    return wrong / rounds


def _values(x) -> list[tuple[int, float]]:
    if hasattr(x, "tocoo"):
        return list(zip(x.indices.tolist(), x.data.tolist(), strict=True))
    return [(j, float(x[j])) for j in np.flatnonzero(x)]
