"""
Classes that are not linear
===========================

Two half-moons, and two columns of noise beside them. No straight line parts them. With curves, products and waves of
pairs of numbers that every encoded record has by default, the learner bends its boundary.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from fliptron import Dataset, Fliptron, simulate

random = np.random.default_rng(0)
X, y = make_moons(5000, noise=0.1, random_state=0)
X = np.hstack([X, random.standard_normal((5000, 2))])
figure, axes = plt.subplots()
for name, curves in (("straight", 0), ("with curves", "auto")):
    data = Dataset.of_records(X, y, name=name, curves=curves)
    learner = Fliptron(n_classes=2, n_features=data.n_features, seed=0)
    trace = simulate(learner, data, rates=(0.2, 0.4), rounds=60_000)
    axes.loglog(trace.rounds, trace.errors, label=f"{name}: {trace.error:.3f}")
axes.set_xlabel("rounds")
axes.set_ylabel("error of the played label")
axes.legend()
plt.show()
