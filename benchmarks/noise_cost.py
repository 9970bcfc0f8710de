"""What does an estimate of the rates cost: plateaus, NREst, and its training as one would first write it?

make bench NAME=noise_cost        # five minutes, one core; writes benchmarks/results/noise-cost.md
"""

from __future__ import annotations

import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset

from fliptron import RCNBF, NREst, Plateaus, Rounds, load, simulate
from fliptron.noise.published import NETWORKS
from tabular import save, table
from timing import best

ROUNDS, EPOCHS = 50_000, 2


def rcnbf_rounds(name: str) -> tuple[Rounds, int]:
    """Rounds with their examples, and the number of classes."""
    data = load(name)
    learner = RCNBF(n_classes=data.n_classes, n_features=data.n_features, gamma=0.2, rates=(0.2, 0.4))
    log = simulate(learner, data, rates=(0.2, 0.4), rounds=ROUNDS, log=True).log
    return replace(log, X=data.X[log.row]), data.n_classes


def fast(rounds: Rounds, n_classes: int) -> None:
    """The plateaus."""
    plateaus = Plateaus(n_classes=n_classes)
    for start in range(0, len(rounds), plateaus.window):
        plateaus.absorb(rounds.part(start, start + plateaus.window))
    plateaus.estimate()


def published(name: str, rounds: Rounds, n_classes: int) -> None:
    """NREst, ours."""
    estimator = NREst.for_dataset(name, n_classes=n_classes)
    estimator.absorb(rounds)
    estimator.estimate()


def plain_loop(inputs: np.ndarray, bits: np.ndarray, network: dict[str, object], epochs: int, loader: bool) -> None:
    """The training as one would first write it: modules, autograd, an optimiser object."""
    sizes = [inputs.shape[1], *network["hidden"]]
    layers: list[torch.nn.Module] = []
    for a, b in pairwise(sizes):
        layers += [torch.nn.Linear(a, b), torch.nn.ReLU(), torch.nn.Dropout(network["dropout"])]
    model = torch.nn.Sequential(*layers, torch.nn.Linear(sizes[-1], 2))
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.01, eps=1e-6)
    loss = torch.nn.CrossEntropyLoss()
    X, y = torch.from_numpy(inputs), torch.from_numpy(bits)
    for _ in range(epochs):
        order = torch.randperm(len(y))
        batches = (
            DataLoader(TensorDataset(X, y), batch_size=128, shuffle=True)
            if loader
            else ((X[rows], y[rows]) for rows in order.split(128))
        )
        for batch, target in batches:
            optimizer.zero_grad()
            loss(model(batch), target).backward()
            optimizer.step()


def main(out: Path) -> None:
    """Measure, and write the table."""
    torch.set_num_threads(1)
    rows = []
    for name in ("digits", "iris"):
        rounds, n_classes = rcnbf_rounds(name)
        kept = rounds.part(0, 40_500)
        inputs = np.hstack([kept.X, np.eye(n_classes)[kept.label]]).astype(np.float32)
        bits, network = kept.bit.astype(np.int64), NETWORKS[name]
        ours = best({"": (lambda _, rounds=rounds, K=n_classes: fast(rounds, K), 1)}, 20)[""] / 1e9
        times = best(
            {
                "NREst": (lambda _, n=name, rounds=rounds, K=n_classes: published(n, rounds, K), 1),
                **{
                    loader: (lambda _, x=inputs, y=bits, n=network, w=loader: plain_loop(x, y, n, EPOCHS, w), 1)
                    for loader in (False, True)
                },
            },
            2,
        )
        nrest, plain, loaded = (times[key] / 1e9 * scale for key, scale in (("NREst", 1), (False, 35), (True, 35)))
        ratios = f"**{plain / nrest:.1f}×** (with DataLoader {loaded / nrest:.1f}×)"
        cells = (f"{ours:.4f}", f"{nrest:.1f}", f"**{nrest / ours:,.0f}×**", f"{plain:.1f}", f"{loaded:.1f}", ratios)
        rows.append([name, *cells])
    columns = ("plateaus", "NREst", "NREst / plateaus", "plain loop", "plain loop with DataLoader", "plain / NREst")
    text = f"""# What an estimate costs

CPU seconds for the rates from the same {ROUNDS:,} rounds of RCNBF, one core, in one run. The plain PyTorch loops
train the same network with the same optimiser for {EPOCHS} epochs and are scaled to 70; ours is timed whole.

{table(["data", *columns], rows)}

Made by `make bench NAME=noise_cost`."""
    print(text, save(out, text), sep="\n\n")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "benchmarks/results/noise-cost.md"))
