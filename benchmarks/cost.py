"""What does a round of Fliptron cost, and what an estimate of the rates?

make bench NAME=cost        # five minutes; writes docs/tables/cost.md and benchmarks/results/noise-cost.md
"""

from __future__ import annotations

import sys
from copy import deepcopy
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset

from fliptron import RCNBF, Dataset, NREst, Plateaus, Rounds, load, simulate
from fliptron.noise.published import NETWORKS
from tabular import save, table
from timing import Turn, best
from workloads import KINDS

RATES, ROUNDS, REPEATS = (0.2, 0.4), 20_000, 7
LOGGED, EPOCHS = 50_000, 2
LEARNERS = {"RCNBF": partial(RCNBF, gamma=0.2, rates=RATES)} | KINDS


def turn(kind: str, data: Dataset) -> Turn:
    """Rounds of a learner that has played 2,000 before, the same in every turn."""
    learner = LEARNERS[kind](n_classes=data.n_classes, n_features=data.n_features)
    simulate(learner, data, rates=RATES, rounds=2000)
    return lambda rounds: simulate(deepcopy(learner), data, rates=RATES, rounds=rounds, seed=1), ROUNDS


def of_rounds() -> str:
    random = np.random.default_rng(0)
    wide = Dataset.of(random.random((2000, 784)), random.integers(10, size=2000), name="784 features")
    rows = []
    for data, kinds in ((load("digits"), list(LEARNERS)), (wide, ["RCNBF", "Fliptron, diagonal"])):
        times = best({kind: turn(kind, data) for kind in kinds}, REPEATS)
        for kind, ns in times.items():
            ratios = [f"{ns / times[other]:.1f}" if other in times else "–" for other in ("RCNBF", "RidgeRegression")]
            rows.append([f"10×{data.n_features}", kind, f"{ns / 1000:.2f}", *ratios])
    return f"""# What a round costs

Microseconds of CPU per round within `simulate`, noise {RATES}, best of {REPEATS} interleaved runs of {ROUNDS:,} rounds
after 2,000; ratios are what to trust. Made by `make bench NAME=cost`.

{table(["K×d", "learner", "µs", "RCNBF's times", "RidgeRegression's times"], rows)}"""


def plateaus(rounds: Rounds, K: int) -> None:
    estimator = Plateaus(n_classes=K)
    for start in range(0, len(rounds), estimator.window):
        estimator.absorb(rounds.part(start, start + estimator.window))
    estimator.estimate()


def nrest(rounds: Rounds, K: int, name: str) -> None:
    estimator = NREst.for_dataset(name, n_classes=K)
    estimator.absorb(rounds)
    estimator.estimate()


def plain_loop(rounds: Rounds, K: int, name: str, *, loader: bool) -> None:
    """NREst's training as one would first write it: modules, autograd, an optimiser object."""
    X = torch.from_numpy(np.hstack([rounds.X, np.eye(K)[rounds.label]]).astype(np.float32))
    y = torch.from_numpy(rounds.bit.astype(np.int64))
    sizes = [X.shape[1], *NETWORKS[name]["hidden"]]
    layers: list[torch.nn.Module] = []
    for a, b in pairwise(sizes):
        layers += [torch.nn.Linear(a, b), torch.nn.ReLU(), torch.nn.Dropout(NETWORKS[name]["dropout"])]
    model = torch.nn.Sequential(*layers, torch.nn.Linear(sizes[-1], 2))
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.01, eps=1e-6)
    loss = torch.nn.CrossEntropyLoss()
    for _ in range(EPOCHS):
        plain = ((X[rows], y[rows]) for rows in torch.randperm(len(y)).split(128))
        for batch, target in DataLoader(TensorDataset(X, y), batch_size=128, shuffle=True) if loader else plain:
            optimizer.zero_grad()
            loss(model(batch), target).backward()
            optimizer.step()


def of_estimates() -> str:
    rows = []
    for name in ("digits", "iris"):
        data = load(name)
        learner = RCNBF(n_classes=data.n_classes, n_features=data.n_features, gamma=0.2, rates=RATES)
        log = simulate(learner, data, rates=RATES, rounds=LOGGED, log=True).log
        log, K = replace(log, X=data.X[log.row]), data.n_classes
        kept = log.part(0, LOGGED * 81 // 100)  # what NREst trains on
        ours = best({"": (lambda _, log=log, K=K: plateaus(log, K), 1)}, 20)[""] / 1e9
        slow = {
            "NREst": partial(nrest, log, K, name),
            "plain": partial(plain_loop, kept, K, name, loader=False),
            "loaded": partial(plain_loop, kept, K, name, loader=True),
        }
        times = best({key: (lambda _, call=call: call(), 1) for key, call in slow.items()}, 2)
        theirs, plain, loaded = (times[key] / 1e9 * n for key, n in (("NREst", 1), ("plain", 35), ("loaded", 35)))
        ratios = f"**{plain / theirs:.1f}×** (with DataLoader {loaded / theirs:.1f}×)"
        cells = (f"{ours:.4f}", f"{theirs:.1f}", f"**{theirs / ours:,.0f}×**", f"{plain:.1f}", f"{loaded:.1f}", ratios)
        rows.append([name, *cells])
    columns = ("plateaus", "NREst", "NREst / plateaus", "plain loop", "plain loop with DataLoader", "plain / NREst")
    return f"""# What an estimate costs

CPU seconds for the rates from the same {LOGGED:,} rounds of RCNBF, one core, in one run. The plain PyTorch loops
train the same network with the same optimiser for {EPOCHS} epochs and are scaled to 70; ours is timed whole.

{table(["data", *columns], rows)}

Made by `make bench NAME=cost`."""


if __name__ == "__main__":
    torch.set_num_threads(1)
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    print(save(folder / "docs/tables/cost.md", of_rounds()))
    print(save(folder / "benchmarks/results/noise-cost.md", of_estimates()))
