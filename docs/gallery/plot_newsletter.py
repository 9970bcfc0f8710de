"""
Two ways to choose a headline
=============================

A newspaper tries three headlines on its readers. One reader in four gets a random one; the others get what an editor
has laid down. A reader opens the right one in 30 % of cases, and a wrong one in 6 %, out of habit. The log also says
what a rival's model would have shown. Is that model better? And is a policy better that learns from the log?
"""

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from fliptron import Log, audit, evaluate, learn_log

random = np.random.default_rng(5)
n = 120_000
HEADLINES = np.array(["plain", "question", "number"])
readers = pd.DataFrame(
    {
        "age": random.integers(16, 90, n).astype(float),
        "hour": random.integers(5, 24, n),
        "device": random.choice(["phone", "tablet", "desktop"], n),
        "issue": np.repeat(np.arange(60), 2000),
    }
)
readers.loc[random.random(n) < 0.15, "age"] = np.nan  # not everybody says
commuter = (readers.hour < 9) & (readers.device == "phone")
young = random.random(n) < np.where(readers.age.isna(), 0.4, readers.age < 42)
right = np.where(commuter, 2, np.where(young, 1, 0))
editor = np.where(readers.device == "phone", 1, 0)
rival = np.where(commuter, 2, np.where(readers.age < 50, 1, 0))
shown = np.where(random.random(n) < 0.25, random.integers(0, 3, n), editor)
log = readers.assign(
    shown=HEADLINES[shown],
    propensity=0.25 / 3 + 0.75 * (shown == editor),
    opened=random.random(n) < np.where(shown == right, 0.3, 0.06),
    rival=HEADLINES[rival],
)
path = Path(tempfile.mkdtemp()) / "newsletter.csv.gz"
log.to_csv(path, index=False)

# %%
# How much of the opening is habit? And how often did readers get the headline that they wanted?

opened = Log(path, label="shown", bit="opened", others=["rival"])
noise = audit(opened)
print(noise.verdict, {name: tuple(round(each, 3) for each in pair) for name, pair in noise.intervals.items()})

# %%
# A policy learns from the first two thirds of the log. Both are judged by the last third, where neither was in charge.

policy = learn_log(opened, rounds=80_000)
found = evaluate(opened, {"rival": "rival", "policy": policy}, skip=80_000)
for difference in found.differences:
    print(difference)
found.plot()

# %%
# The readers are made up, so the truth is known.

late = readers[80_000:]
would = np.array(policy.predict(late.to_dict("records")))
for name, choice in {
    "the editor": HEADLINES[editor[80_000:]],
    "rival": HEADLINES[rival[80_000:]],
    "policy": would,
}.items():
    print(name, round(float(np.mean(choice == HEADLINES[right[80_000:]])), 3))
