"""
When the world changes
======================

Half-way all labels are permuted. A learner with a half-life notices that the bits are worse than it predicts, restarts
its weights, keeps what it knows of the noise, and recovers.
"""

import matplotlib.pyplot as plt
import numpy as np

from fliptron import Dataset, Fliptron, load, simulate

digits, rates = load("digits"), (0.15, 0.3)
permuted = Dataset.of(digits.X, (digits.y + 3) % 10, name="permuted")
for name, half_life in (("half_life=50,000", 50_000), ("never forgets", None)):
    learner, wrong = Fliptron(n_classes=10, n_features=64, half_life=half_life, seed=0), []
    for seed, data in enumerate((digits, permuted)):
        log = simulate(learner, data, rates=rates, rounds=15_000, seed=seed, log=True).log
        wrong.append(log.label != data.y[log.row])
    recent = np.convolve(np.concatenate(wrong), np.full(500, 1 / 500), mode="valid")
    plt.plot(np.arange(recent.size) + 500, recent, label=name)
plt.axvline(15_000, color="grey", linestyle=":")
plt.xlabel("rounds")
plt.ylabel("error of the last 500 rounds")
plt.legend()
plt.show()
