"""
scikit-learn: a log without labels
==================================

A log of handwritten digits says which digit was played, and a bit: accepted or not. One wrong digit in ten was
accepted, and three right ones in ten were not. A classifier of scikit-learn can only take the accepted rows for true;
our classifier, in the same pipeline, learns from all bits.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from fliptron.adapters.sklearn import NoisyBanditClassifier

X, y = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(StandardScaler().fit_transform(X), y, random_state=0)

random = np.random.default_rng(0)
rows = random.integers(len(y), size=40_000)
action = random.integers(10, size=rows.size)  # an old policy that played anything
right = action == y[rows]
bit = np.where(random.random(rows.size) < np.where(right, 0.3, 0.1), ~right, right)

# %%
# Both learn from longer and longer parts of the log.

model = NoisyBanditClassifier(random_state=0)
sizes, ours, theirs = np.geomspace(300, rows.size, 9).astype(int), [], []
for start, stop in zip([0, *sizes], sizes, strict=False):
    part = slice(start, stop)
    model.partial_fit_bandit(X[rows[part]], action[part], bit[part], 0.1, classes=np.arange(10))
    ours.append(model.score(X_test, y_test))
    accepted = rows[:stop][bit[:stop]]
    naive = LogisticRegression(max_iter=200).fit(X[accepted], action[:stop][bit[:stop]])
    theirs.append(naive.score(X_test, y_test))

plt.semilogx(sizes, ours, "o-", label="NoisyBanditClassifier, all bits")
plt.semilogx(sizes, theirs, "o-", label="LogisticRegression, accepted rows")
plt.xlabel("rounds of the log")
plt.ylabel("accuracy on new digits")
plt.legend()
plt.show()

# %%
# It also says how noisy the bits are. Nobody told it.

print(model.estimate())
model
