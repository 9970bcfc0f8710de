"""
How noisy are the bits?
=======================

A learner's own log is enough to estimate both flip rates and the true accuracy. The mean bit climbs to 1 − ρ1 where the
learner is sure, and sinks to ρ0 for the labels it did not hold best.
"""

import matplotlib.pyplot as plt

from fliptron import LeastMeanSquares, Plateaus, load, simulate

learner = LeastMeanSquares(n_classes=10, n_features=64, gamma=0.05, seed=0)
log = simulate(learner, load("digits"), rates=(0.2, 0.4), rounds=100_000, seed=0, log=True).log
noise = Plateaus(n_classes=10)
noise.observe(log)
estimate = noise.estimate()
print(estimate.verdict)
for name, (low, high) in estimate.intervals.items():
    print(f"{name}: {low:.3f} to {high:.3f}")

curve = [band for band in estimate.details["curve"] if band["best"] is not None and band["other"] is not None]
places = range(len(curve))
plt.errorbar(places, [band["best"] for band in curve], [band["best_half"] for band in curve], label="label held best")
plt.errorbar(places, [band["other"] for band in curve], [band["other_half"] for band in curve], label="other labels")
plt.axhline(1 - 0.4, color="grey", linestyle=":")
plt.axhline(0.2, color="grey", linestyle=":")
plt.xticks(places, [f"{band['share']:.0%}" for band in curve])
plt.xlabel("rounds by margin, the surest first (cumulated share)")
plt.ylabel("mean bit")
plt.legend(loc="center")
plt.show()
