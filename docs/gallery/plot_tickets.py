"""
Tickets that come back
======================

A help desk sends every ticket to one of three teams. A team accepts a ticket or sends it back, and is sometimes wrong:
one ticket in ten of its own comes back, and it keeps one in five of somebody else's. Nobody wrote down how likely each
team was chosen.
"""

import gzip
import json
import tempfile
from pathlib import Path

import numpy as np

from fliptron import Fliptron, Log, audit, learn_log

random = np.random.default_rng(3)
TEAMS = np.array(["billing", "network", "accounts"])
PRODUCTS = np.array(["router", "phone", "cloud", "invoice", "login"])
RIGHT = {"router": "network", "phone": "network", "cloud": "accounts", "invoice": "billing", "login": "accounts"}

folder = Path(tempfile.mkdtemp())
right = []
for day in range(10):  # a file for every day, as a system writes them
    with gzip.open(folder / f"tickets-{day:02}.jsonl.gz", "wt") as file:
        for minute in range(1000):
            product, urgent = random.choice(PRODUCTS), bool(random.random() < 0.2)
            team = (
                "billing" if product == "cloud" and urgent else RIGHT[product]
            )  # urgent cloud tickets are about money
            sent = str(random.choice(TEAMS)) if random.random() < 0.3 else RIGHT[product]
            kept = random.random() < (0.9 if sent == team else 0.2)
            ticket = {"when": f"2026-10-{day + 1:02}T{6 + minute // 60:02}:{minute % 60:02}", "product": str(product)}
            ticket |= {"urgent": urgent, "words": int(random.poisson(60)), "sent to": sent}
            file.write(json.dumps(ticket | {"outcome": "accepted" if kept else "rejected"}) + "\n")
            right.append((product, urgent, team))

# %%
# Columns whose roles cannot be guessed are named. Without probabilities nobody can know what a random team would have
# accepted, and so neither ρ0 nor how often tickets went to the right team; `audit` says as much.

log = Log(folder / "tickets-*.jsonl.gz", label="sent to", bit="outcome", time="when")
print(log.describe())
found = audit(log)
print(found.verdict, found.intervals["rho1"])
print(found.reason)

# %%
# A policy learns all the same, since Fliptron does not weight by probabilities. It finds what the rule of the help desk
# overlooked.

policy = learn_log(log, Fliptron)
for product, urgent in (("cloud", False), ("cloud", True), ("invoice", False)):
    choice = policy.decide({"product": product, "urgent": urgent, "words": 60})
    print(f"{product}{', urgent' if urgent else ''}: {choice.greedy}, drawn with probability {choice.probability:.2f}")

asked = [{"product": product, "urgent": urgent, "words": 60} for product, urgent, _ in right]
found = np.array(policy.predict(asked)) == [team for *_, team in right]
print(f"right: {found.mean():.3f}; the help desk's own rule: {np.mean([RIGHT[p] == team for p, _, team in right]):.3f}")
