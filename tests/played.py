"""What a fresh install must do: learn, save, load and go on. `make wheel` runs it where nothing else is installed."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

import fliptron


def main() -> None:
    """Play a few rounds on made-up data whose bits are flipped."""
    random = np.random.default_rng(0)
    y = random.integers(3, size=600)
    data = fliptron.Dataset.of(random.normal(size=(600, 5)) + 3.0 * np.eye(3, 5)[y], y)
    learner = fliptron.Fliptron(n_classes=3, n_features=5, seed=1)
    trace = fliptron.simulate(learner, data, rates=(0.1, 0.2), rounds=5000, seed=1)
    assert trace.error < 0.2, trace.error
    with tempfile.TemporaryDirectory() as folder:
        learner.save(Path(folder) / "learner.npz")
        again = fliptron.Learner.load(Path(folder) / "learner.npz")
    x = np.ones(5)
    assert again.decide(x) == learner.decide(x)
    print(f"fliptron {fliptron.__version__} plays: error {trace.error:.3f} after 5,000 rounds")  # noqa: T201


if __name__ == "__main__":
    main()
