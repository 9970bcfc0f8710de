"""
Learning from flipped bits
==========================

Three learners on handwritten digits. One wrong label in five is told as right, two right ones in five as wrong; the
learners see nothing but these bits.
"""

import matplotlib.pyplot as plt

from fliptron import RCNBF, Fliptron, RidgeRegression, load, simulate

digits, rates = load("digits"), (0.2, 0.4)
shape = {"n_classes": 10, "n_features": 64, "seed": 1}
learners = {
    "RCNBF, told the true rates": RCNBF(gamma=0.2, rates=rates, **shape),
    "RidgeRegression": RidgeRegression(**shape),
    "Fliptron": Fliptron(**shape),
}
for name, learner in learners.items():
    trace = simulate(learner, digits, rates=rates, rounds=50_000, seed=1)
    plt.loglog(trace.rounds, trace.errors, label=f"{name}: {trace.error:.3f}")
plt.xlabel("rounds")
plt.ylabel("error of the played label")
plt.xlim(100)
plt.legend()
plt.show()
