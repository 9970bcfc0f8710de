"""How well are the flip rates estimated? The paper's table, our NREst, and margin plateaus, side by side.

    python benchmarks/rates.py play      # plays and estimates; resumable; an hour on two cores, NREst's share
    python benchmarks/rates.py table     # writes docs/tables/rates.md from what is there

Each cell (data set × noise × seed) plays 500,000 rounds twice: RCNBF with the true rates and γ = 0.2, whose last
50,000 rounds (N_s) NREst is trained on, as in the paper; and LeastMeanSquares with γ = 0.05, whose rounds the
plateaus read as they come. Iris, with three classes, explores with γ = 0.4 for NREst: at 0.2 only a fifth of its rows
are wrong, too few for NREst ("NREst-0.2" shows it).
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
from itertools import product
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import fliptron
from fliptron.arrays import Csr
from fliptron.noise import Plateaus, Window
from fliptron.noise.published import NREst

ROUNDS, WINDOW = 500_000, 50_000
NOISE = [(0.0, 0.0), (0.15, 0.15), (0.25, 0.25), (0.2, 0.4), (0.4, 0.2), (0.4, 0.4)]
# The paper's Tables 1 and 2: what it calls MNIST has optdigits' 64 features.
PAPER = {
    "iris": [(0.000, 0.000), (0.164, 0.172), (0.261, 0.288), (0.209, 0.423), (0.407, 0.244), (0.412, 0.412)],
    "synsep": [(0.000, 0.003), (0.177, 0.143), (0.286, 0.282), (0.230, 0.459), (0.453, 0.268), (0.416, 0.499)],
    "optdigits": [(0.063, 0.029), (0.172, 0.147), (0.248, 0.264), (0.211, 0.439), (0.400, 0.260), (0.403, 0.508)],
    "usps": [(0.017, 0.000), (0.181, 0.153), (0.258, 0.257), (0.194, 0.419), (0.393, 0.229), (0.402, 0.515)],
}
RESULTS = Path("benchmarks/results/rates.jsonl")


def play(cell: tuple[str, str, tuple[float, float], int]) -> dict[str, object]:
    """One estimate."""
    method, name, rates, seed = cell
    data = fliptron.load(name)
    shape = {"n_classes": data.n_classes, "n_features": data.n_features, "seed": seed}
    if method.startswith("NREst"):
        gamma = 0.4 if (method, name) == ("NREst", "iris") else 0.2
        learner = fliptron.RCNBF(gamma=gamma, rates=rates, **shape)
    else:
        learner = fliptron.LeastMeanSquares(gamma=0.05, **shape)
    log = fliptron.simulate(learner, data, rates=rates, rounds=ROUNDS, seed=seed, log=True).log
    columns = {each: getattr(log, each) for each in ("label", "greedy", "probability", "bit", "margin")}
    truth = data.y[log.row]
    record: dict[str, object] = {"method": method, "dataset": name, "rates": rates, "seed": seed}
    if method.startswith("NREst"):
        import torch

        torch.set_num_threads(1)
        last = slice(ROUNDS - WINDOW, ROUNDS)
        columns = {each: column[last] for each, column in columns.items()}
        X = dense(data)[log.row[last]]
        estimator = NREst.for_dataset(name, n_classes=data.n_classes, seed=seed)
        window = Window.of(n_classes=data.n_classes, X=X, **columns)
        began = time.process_time()
        estimator.absorb(window)
        estimate = estimator.estimate()
        record["wrong"] = float(np.mean(columns["label"] != truth[last]))
    else:
        plateaus = Plateaus(n_classes=data.n_classes)
        began = time.process_time()
        plateaus.observe(**columns)
        estimate = plateaus.estimate()
        record |= {
            "intervals": estimate.intervals,
            "accuracy": estimate.accuracy,
            "true_accuracy": float(np.mean(log.label == truth)),
        }
    return record | {
        "estimate": list(estimate.rates),
        "verdict": estimate.verdict,
        "seconds": time.process_time() - began,
    }


def dense(data: fliptron.Dataset) -> np.ndarray:
    if isinstance(data.X, Csr):
        matrix = sp.csr_array((data.X.data, data.X.indices, data.X.indptr), shape=(data.n_rows, data.n_features))
        return matrix.toarray()
    return data.X


def load_results() -> dict[tuple[object, ...], dict[str, object]]:
    records = [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.exists() else []
    return {(r["method"], r["dataset"], tuple(r["rates"]), r["seed"]): r for r in records}


def play_all(methods: list[str], seeds: int, jobs: int) -> None:
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    done = load_results()
    # Seeds outermost: what is there after an interruption is whole seeds.
    cells = [
        (method, name, rates, seed)
        for seed, method, name, rates in product(range(seeds), methods, PAPER, NOISE)
        if (method, name, rates, seed) not in done and (method != "NREst-0.2" or name == "iris")
    ]
    began = time.monotonic()
    with multiprocessing.get_context("spawn").Pool(jobs) as pool, RESULTS.open("a") as file:
        for i, record in enumerate(pool.imap_unordered(play, cells), start=1):
            file.write(json.dumps(record) + "\n")
            file.flush()
            left = (time.monotonic() - began) / i * (len(cells) - i)
            print(f"{i} of {len(cells)}, {left / 60:.0f} min left: {record['method']} {record['dataset']} "
                  f"{record['rates']} → {[round(x, 3) for x in record['estimate']]}", flush=True)  # fmt: skip


def table(out: Path) -> None:
    """The table of the docs: for each cell the paper's figure, our NREst's and the plateaus', with their errors."""
    records = load_results()
    lines = [
        "| data | truth | paper | NREst: mean (worst error) | plateaus: mean (worst error) | coverage |",
        "|---|---|---|---|---|---|",
    ]
    worst: dict[str, list[float]] = {"paper": [], "NREst": [], "plateaus": []}
    single: dict[str, list[float]] = {"NREst": [], "plateaus": []}
    covered: list[bool] = []
    for name, (rates, published) in ((n, cell) for n in PAPER for cell in zip(NOISE, PAPER[n], strict=True)):
        cells = [name, pair(rates), pair(published)]
        worst["paper"].append(float(np.abs(np.subtract(published, rates)).max()))
        hits: list[bool] = []
        for method in ("NREst", "plateaus"):
            runs = [r for key, r in records.items() if key[:3] == (method, name, rates)]
            if not runs:
                cells.append("–")
                continue
            found = np.array([r["estimate"] for r in runs])
            errors = np.abs(found - rates)
            worst[method].append(float(np.abs(found.mean(axis=0) - rates).max()))
            single[method] += errors.ravel().tolist()
            cells.append(f"{pair(found.mean(axis=0))} ({errors.max():.3f}; {len(runs)} seeds)")
            if method == "plateaus":
                for run in runs:
                    bounds = run["intervals"]["rho0"], run["intervals"]["rho1"]
                    hits += [low <= true <= high for true, (low, high) in zip(rates, bounds, strict=True)]
        covered += hits
        cells.append(f"{np.mean(hits):.0%}" if hits else "–")
        lines.append("| " + " | ".join(cells) + " |")
    lines += ["", "| over all cells | paper | NREst | plateaus |", "|---|---|---|---|"]
    lines.append(
        "| worst error of a cell's mean | " + " | ".join(f"{max(worst[m], default=0.0):.3f}" for m in worst) + " |"
    )
    for words, statistic in (("mean error of a single estimate", np.mean), ("worst single estimate", np.max)):
        cells = [f"{statistic(values):.4f}" if values else "–" for values in single.values()]
        lines.append(f"| {words} | – | " + " | ".join(cells) + " |")
    lines.append(f"| 95 % intervals that cover | – | – | {np.mean(covered):.1%} of {len(covered)} |")
    few = [np.abs(np.subtract(r["estimate"], r["rates"])).max() for key, r in records.items() if key[0] == "NREst-0.2"]
    if few:
        lines += [
            "",
            f"NREst on Iris with γ = 0.2: mean error {np.mean(few):.3f}, worst {max(few):.3f} ({len(few)} estimates).",
        ]
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


def pair(rates: object) -> str:
    rho0, rho1 = rates  # type: ignore[misc]
    return f"{rho0:.3f}, {rho1:.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["play", "table"])
    parser.add_argument("--methods", nargs="*", default=["plateaus", "NREst", "NREst-0.2"])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=multiprocessing.cpu_count())
    options = parser.parse_args()
    if options.what == "play":
        play_all(options.methods, options.seeds, options.jobs)
    table(Path("docs/tables/rates.md"))


if __name__ == "__main__":
    main()
