"""
coba: an experiment behind a channel
====================================

Irises, shown to learners of coba's and to ours. One wrong answer in ten is rewarded, and two right ones in ten are not.
The evaluator teaches these bits, and scores the truth; coba draws.
"""

import coba
import matplotlib.pyplot as plt

from fliptron import load
from fliptron.adapters.coba import NoisyBanditLearner, NoisyEnvironment, NoisyEvaluator

environments = [NoisyEnvironment(load("iris"), rates=(0.1, 0.2), rounds=1000, seed=seed) for seed in range(4)]
learners = [
    NoisyBanditLearner(fit_intercept=False, seed=1),
    coba.LinUCBLearner(alpha=1.0),
    coba.LinTSLearner(v=0.1),
    coba.RandomLearner(),
]
result = coba.Experiment(environments, learners, NoisyEvaluator()).run(quiet=True)
result.plot_learners(out=None)
plt.show()

# %%
# An environment reads the same every time, for every learner. What the learners saw is not what they are scored by.

means = result.interactions.to_pandas().groupby("learner_id")[["bit", "reward"]].mean()
means.index = [params["family"] for params in result.learners.to_dicts()]
print(means.round(3))
