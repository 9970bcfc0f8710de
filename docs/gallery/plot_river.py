"""
river: a policy for noisy clicks
================================

Three offers, visitors of whom an age is known, and clicks: a wanted offer is clicked 60 % of the time, an unwanted one
20 %. Our policy stands in the place of river's LinUCB, and half of the clicks come fifty visitors late.
"""

import random
from collections import deque

import matplotlib.pyplot as plt
import numpy as np
from river import bandit

from fliptron.adapters.river import NoisyBanditPolicy

ARMS = ["hats", "shoes", "socks"]


def visit(rng: random.Random) -> tuple[dict[str, float], str, float]:
    age = rng.random()
    bends = {f"wave {k}": float(np.cos(np.pi * k * age)) for k in range(1, 5)}
    return {"age": age, "one": 1.0, **bends}, ARMS[int(3 * age)], rng.random()


def play(policy: bandit.base.ContextualPolicy, rounds: int = 3000) -> np.ndarray:
    """Which visitors were shown what they wanted."""
    rng, right = random.Random(1), np.zeros(rounds)
    late: deque = deque()
    for t in range(rounds):
        context, wanted, luck = visit(rng)
        arm = policy.pull(ARMS, context)
        right[t] = arm == wanted
        late.append((t + 50 * (t % 2), arm, context, int(luck < (0.6 if arm == wanted else 0.2))))
        while late and late[0][0] <= t:
            _, arm, context, click = late.popleft()
            policy.update(arm, context, click)
    return right


# %%
# The share of visitors who are shown what they want, over the last 300.

for name, policy in {
    "river's LinUCB": bandit.LinUCBDisjoint(beta=4.0, seed=1),
    "NoisyBanditPolicy": NoisyBanditPolicy(seed=1),
}.items():
    right = play(policy)
    plt.plot(np.convolve(right, np.ones(300) / 300, "valid"), label=f"{name}: {right.mean():.3f} in all")
plt.xlabel("visitors")
plt.ylabel("shown what they want")
plt.legend()
plt.show()

# %%
# A policy of river's has no more to say. Ours knows how noisy the clicks are.

print(policy.estimate())
