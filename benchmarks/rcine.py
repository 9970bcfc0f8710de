"""RCINE beside RCNBF with the true rates, and what an estimate costs.

python benchmarks/rcine.py errors    # writes docs/tables/rcine.md (two minutes)
python benchmarks/rcine.py cost      # writes benchmarks/results/noise-cost.md (three minutes, one core)
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise, product
from pathlib import Path

import numpy as np

import fliptron
from fliptron.experiments.comparison import interval
from fliptron.noise import Plateaus, Window
from fliptron.noise.published import NETWORKS, NREst

NOISE = [(0.15, 0.15), (0.2, 0.4), (0.4, 0.2), (0.4, 0.4)]


def errors(seeds: int, rounds: int, out: Path) -> None:
    lines = [
        "RCINE (plateaus, a refresh every 5,000 rounds) and RCNBF with the true rates, both with γ = 0.2, after",
        f"{rounds:,} rounds; mean ± half the 95 % interval over {seeds} seeds; the ratio is of paired runs.",
        "Made by `make study-rcine`.",
        "",
        "| data | (ρ0, ρ1) | RCNBF, true rates | RCINE | ratio | ρ̂0 | ρ̂1 |",
        "|---|---|---|---|---|---|---|",
    ]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, rates in product(("digits", "optdigits"), NOISE):
            runs = list(pool.map(lambda seed, name=name, rates=rates: pair(name, rates, seed, rounds), range(seeds)))
            told, guessed, ratio, rho0, rho1 = (interval(np.array(column)) for column in zip(*runs, strict=True))
            cells = [f"{mean:.4f} ± {half:.4f}" for mean, half in (told, guessed, ratio, rho0, rho1)]
            lines.append(f"| {name} | ({rates[0]:g}, {rates[1]:g}) | " + " | ".join(cells) + " |")
            print(lines[-1], flush=True)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text("\n".join(lines) + "\n")


def pair(name: str, rates: tuple[float, float], seed: int, rounds: int) -> tuple[float, ...]:
    data = fliptron.load(name)
    shape = {"n_classes": data.n_classes, "n_features": data.n_features, "gamma": 0.2, "seed": seed}
    play = {"rates": rates, "rounds": rounds, "seed": seed}
    told = fliptron.simulate(fliptron.RCNBF(rates=rates, **shape), data, **play).error
    learner = fliptron.RCINE(**shape)
    guessed = fliptron.simulate(learner, data, **play).error
    return told, guessed, guessed / told, *learner.rates


def cost(out: Path) -> None:
    """CPU time of one estimate from the same 50,000 rounds; contenders take turns."""
    import torch

    torch.set_num_threads(1)
    lines = [
        "# What an estimate costs",
        "",
        "CPU seconds for the rates from the same 50,000 rounds of RCNBF, one core, in one run. The plain PyTorch loops",
        "train the same network with the same optimiser for 2 epochs and are scaled to 70; ours is timed whole.",
        "",
        "| data | plateaus | NREst | NREst / plateaus | plain loop | plain loop with DataLoader | plain / NREst |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in ("digits", "iris"):
        window = rcnbf_window(name)
        n_classes = int(window.label.max()) + 1
        ours = best(partial(fast, window, n_classes), 20)
        nrest = best(partial(published, name, window, n_classes), 2)
        inputs = np.hstack([window.X, np.eye(n_classes)[window.label]]).astype(np.float32)[:40_500]
        bits = window.bit.astype(np.int64)[:40_500]
        train = partial(plain_loop, inputs, bits, NETWORKS[name], 2)
        plain = [35 * best(partial(train, loader), 2) for loader in (False, True)]
        lines.append(
            f"| {name} | {ours:.4f} | {nrest:.1f} | **{nrest / ours:,.0f}×** | {plain[0]:.1f} | {plain[1]:.1f} "
            f"| **{plain[0] / nrest:.1f}×** (with DataLoader {plain[1] / nrest:.1f}×) |"
        )
        print(lines[-1], flush=True)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text("\n".join([*lines, "", "Made by `make study-cost`."]) + "\n")


def rcnbf_window(name: str) -> Window:
    data = fliptron.load(name)
    learner = fliptron.RCNBF(n_classes=data.n_classes, n_features=data.n_features, gamma=0.2, rates=(0.2, 0.4))
    log = fliptron.simulate(learner, data, rates=(0.2, 0.4), rounds=50_000, log=True).log
    columns = {each: getattr(log, each) for each in ("label", "greedy", "probability", "bit", "margin")}
    return Window.of(n_classes=data.n_classes, X=data.X[log.row], **columns)


def fast(window: Window, n_classes: int) -> None:
    plateaus = Plateaus(n_classes=n_classes)
    for start in range(0, window.rounds, plateaus.window):
        plateaus.absorb(window.part(start, start + plateaus.window))
    plateaus.estimate()


def published(name: str, window: Window, n_classes: int) -> None:
    estimator = NREst.for_dataset(name, n_classes=n_classes)
    estimator.absorb(window)
    estimator.estimate()


def plain_loop(inputs: np.ndarray, bits: np.ndarray, network: dict[str, object], epochs: int, loader: bool) -> None:
    """The training as one would first write it: modules, autograd, an optimiser object."""
    import torch
    from torch.utils.data import DataLoader, TensorDataset

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


def best(call: Callable[[], None], repeats: int) -> float:
    times = []
    for _ in range(repeats):
        began = time.process_time()
        call()
        times.append(time.process_time() - began)
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["errors", "cost"])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=1_000_000)
    options = parser.parse_args()
    if options.what == "errors":
        errors(options.seeds, options.rounds, Path("docs/tables/rcine.md"))
    else:
        cost(Path("benchmarks/results/noise-cost.md"))


if __name__ == "__main__":
    main()
