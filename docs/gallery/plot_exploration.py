"""
How much should a log explore?
==============================

Whoever logs clicks decides how many rounds play a random label. The more, the better the flip rates and the true
accuracy are known. Here the same shop logs 40,000 rounds with 1 to 20 % of random offers, at a moderate noise.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt

from fliptron import Log, audit
from fliptron.datasets.shop import shop
from fliptron.logs.tables import write_table

rates, shares = (0.1, 0.3), (0.01, 0.02, 0.05, 0.1, 0.2)
folder, widths = Path(tempfile.mkdtemp()), []
for share in shares:
    path = folder / f"{share}.parquet"
    write_table(path, shop(40_000, rates=rates, explored=share, seed=2).log)
    found = audit(Log(path))
    low, high = found.intervals.get("accuracy", (0.0, 1.0))
    widths.append(high - low)
    print(f"{share:.0%} random: {found}")
plt.plot(shares, widths, "o-")
plt.xscale("log")
plt.xticks(shares, [f"{share:.0%}" for share in shares])
plt.ylim(0, None)
plt.xlabel("rounds that play a random offer")
plt.ylabel("width of the interval of the true accuracy")
plt.show()
