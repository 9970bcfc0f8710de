"""
From a click log to a policy
============================

An old policy showed visitors of a made-up shop one of four offers. A wanted offer is clicked 8 % of the time, an
unwanted one 2 %. A new policy learns from the log, and its true accuracy is told before anybody has seen it.
"""

import tempfile
from pathlib import Path

import numpy as np

from fliptron import Log, RidgeRegression, evaluate, learn_log
from fliptron.datasets.shop import shop
from fliptron.logs.tables import write_table

made = shop(100_000, seed=1)
path = Path(tempfile.mkdtemp()) / "shop.parquet"
write_table(path, made.log)

log = Log(path)
print(log.describe())

# %%
# Two policies learn from the first four fifths. On the last fifth they are judged by what the old policy played.

policies = {"ridge": learn_log(log, RidgeRegression, rounds=80_000), "Fliptron": learn_log(log, rounds=80_000)}
found = evaluate(log, policies, skip=80_000)
for difference in found.differences:
    print(difference)
found.plot()

# %%
# The shop is made up, so the truth is known. No real log has it.

held = {name: values[80_000:] for name, values in made.log.items()}
for name, policy in policies.items():
    print(name, np.mean(np.array(policy.predict(held)) == made.wanted[80_000:]).round(3))
