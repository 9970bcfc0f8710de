"""The learners side by side: seven data sets, six noise settings, every baseline at its best setting.

    python benchmarks/learners.py play      # resumable; about 40 minutes on two cores
    python benchmarks/learners.py write     # docs/tables/learners.md and docs/images/learners.*

Each baseline's setting is chosen for each cell by its true error on seeds that the comparison does not use: an
oracle's choice, and in the baselines' favour. RCNBF and AveragedRCNBF are told the true rates. Fliptron is told
nothing and has one setting. Vowpal Wabbit runs where it is quick (two data sets, three seeds, 50,000 rounds), beside
Fliptron at that horizon.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import fliptron
from fliptron.experiments.comparison import interval
from fliptron.experiments.roster import ROSTER
from fliptron.experiments.vowpal import SETTINGS

DATA = ["digits", "optdigits", "usps", "iris", "synsep", "synnonsep", "fashion-features"]
NOISE = [(0.0, 0.0), (0.15, 0.15), (0.25, 0.25), (0.2, 0.4), (0.4, 0.2), (0.4, 0.4)]
GAMMA = [0.005, 0.02, 0.05, 0.1, 0.2, 0.4]
GRID: dict[str, dict[str, list[float]]] = {
    "Perceptron": {},
    "Banditron": {"gamma": GAMMA},
    "BPA": {"gamma": [0.0, 0.001, 0.005, 0.02]},
    "SOBA": {"gamma": GAMMA, "regularization": [1.0, 100.0]},
    "RCNBF": {"gamma": GAMMA},
    "AveragedRCNBF": {"gamma": GAMMA},
    "RCINE": {"gamma": [0.05, 0.1, 0.2, 0.4]},
    "Confidit": {"alpha": [0.5, 1.0, 2.0], "regularization": [0.1, 1.0]},
    "RidgeRegression": {"gamma": [0.002, 0.01, 0.05], "regularization": [0.03, 0.1, 1.0]},
    "Fliptron": {},
}
ROUNDS, SEEDS, TUNING = 100_000, range(10), range(1000, 1002)
DEAR = ("usps", "synsep", "synnonsep")  # d² is large: tuned on one seed and fewer rounds
FEWER = {(data, name): 3 for data in ("synsep", "synnonsep") for name in ("Confidit", "RidgeRegression")}  # seeds
FEWER["usps", "Fliptron"] = 5
VW_DATA, VW_ROUNDS, VW_SEEDS = ["digits", "iris"], 50_000, range(3)
STORE = Path("benchmarks/results/learners.jsonl")


def settings(name: str) -> list[dict[str, float]]:
    grid = GRID[name]
    return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]


def error(data: str, rates: tuple[float, float], name: str, setting: dict[str, float], seed: int, rounds: int) -> float:
    dataset = _load(data)
    told = {"rates": rates} if "RCNBF" in name else {}
    shape = {"n_classes": dataset.n_classes, "n_features": dataset.n_features}
    learner = ROSTER[name](**shape, seed=seed, **setting, **told)
    return fliptron.simulate(learner, dataset, rates=rates, rounds=rounds, seed=seed).error


def cell(data: str, rates: tuple[float, float], name: str) -> dict:
    """Tune on seeds of its own, then the comparison's runs."""
    choices = settings(name)
    seeds, rounds = (TUNING[:1], 30_000 if data == "usps" else 10_000) if data in DEAR else (TUNING, ROUNDS)
    if len(choices) > 1:
        tuned = [np.mean([error(data, rates, name, setting, seed, rounds) for seed in seeds]) for setting in choices]
        choices = [choices[int(np.argmin(tuned))]]
    seeds = SEEDS[: FEWER.get((data, name), len(SEEDS))]
    errors = [error(data, rates, name, choices[0], seed, ROUNDS) for seed in seeds]
    return {"data": data, "rates": rates, "learner": name, "rounds": ROUNDS, "setting": choices[0], "errors": errors}


def cell_vw(data: str, rates: tuple[float, float]) -> list[dict]:
    def peer(options: str, seed: int, rounds: int) -> float:
        return error(data, rates, "VowpalWabbit", {"options": options}, seed, rounds)

    best = min(SETTINGS, key=lambda options: peer(options, TUNING[0], VW_ROUNDS // 10))
    errors = [peer(best, seed, VW_ROUNDS) for seed in VW_SEEDS]
    ours = [error(data, rates, "Fliptron", {}, seed, VW_ROUNDS) for seed in VW_SEEDS]
    common = {"data": data, "rates": rates, "rounds": VW_ROUNDS}
    return [
        {**common, "learner": "Vowpal Wabbit", "setting": {"options": best}, "errors": errors},
        {**common, "learner": "Fliptron", "setting": {}, "errors": ours},
    ]


def robustness() -> dict:
    """Fifty seeds where a class is most easily lost."""
    errors = [error("digits", (0.4, 0.4), "Fliptron", {}, seed, ROUNDS) for seed in range(50)]
    return {"data": "digits", "rates": (0.4, 0.4), "rounds": ROUNDS, "learner": "Fliptron ×50", "errors": errors}


def sooner() -> dict:
    """Rounds that Fliptron needs for the error RCNBF with true rates has after ten times as many, on digits."""
    found = {}
    for rates in NOISE:
        theirs = np.mean([error("digits", rates, "RCNBF", {"gamma": 0.2}, seed, ROUNDS) for seed in SEEDS])
        ours = np.mean([error("digits", rates, "Fliptron", {}, seed, ROUNDS // 10) for seed in SEEDS])
        found[str(rates)] = [float(theirs), float(ours)]
    return {"data": "digits", "learner": "sooner", "rates": None, "rounds": ROUNDS, "errors": found}


def work() -> list[tuple]:
    jobs: list[tuple] = [(cell, data, rates, name) for name in GRID for data in DATA for rates in NOISE]
    jobs.sort(key=lambda job: job[1] != "usps")  # the longest first
    return [(robustness,), (sooner,), *((cell_vw, data, rates) for data in VW_DATA for rates in NOISE), *jobs]


def play_all(jobs: int) -> None:
    STORE.parent.mkdir(exist_ok=True)
    done = {_key(row) for row in _rows()}
    waiting = [job for job in work() if _job_key(job) not in done]
    with ProcessPoolExecutor(jobs) as pool, STORE.open("a") as store:
        futures = {pool.submit(*job): job for job in waiting}
        for n, future in enumerate(as_completed(futures), 1):
            result = future.result()
            for row in result if isinstance(result, list) else [result]:
                store.write(json.dumps(row) + "\n")
            store.flush()
            print(f"{n}/{len(waiting)} {' '.join(str(part) for part in futures[future][1:])}", flush=True)


def write() -> None:
    rows = _rows()
    table = {(r["data"], tuple(r["rates"]), r["learner"]): r for r in rows if r["rates"] and r["rounds"] == ROUNDS}
    lines = [_HEAD]
    ratios: dict[str, list[float]] = {"RCNBF": [], "RidgeRegression": [], "lowest other": []}
    misses = []
    for data in DATA:
        present = [name for name in GRID if (data, NOISE[0], name) in table]
        lines += [f"\n## {data}\n", "| learner | " + " | ".join(f"({a:g}, {b:g})" for a, b in NOISE) + " |"]
        lines.append("|---|" + "---|" * len(NOISE))
        for name in present:
            cells = []
            for rates in NOISE:
                row = table.get((data, rates, name))
                if row is None:
                    cells.append("–")
                    continue
                mean, half = interval(np.array(row["errors"]))
                rivals = [table[data, rates, other]["errors"] for other in present[1:] if (data, rates, other) in table]
                best = name != "Perceptron" and mean <= min(np.mean(each) for each in rivals)
                text = f"{mean:.4f} ± {half:.4f}"
                cells.append(f"**{text}**" if best else text)
            lines.append(f"| {name} | " + " | ".join(cells) + " |")
        for rates in NOISE:
            ours = np.array(table[data, rates, "Fliptron"]["errors"])
            others = {name: np.mean(table[data, rates, name]["errors"]) for name in present[1:-1]}
            for name in ("RCNBF", "RidgeRegression"):
                ratios[name].append(ours.mean() / others[name])
            ratios["lowest other"].append(ours.mean() / min(others.values()))
            if ours.mean() > min(others.values()) + ours.std(ddof=1) / np.sqrt(ours.size):
                least = min(others, key=others.get)
                misses.append(f"{data} {rates}: {ours.mean():.4f} against {least}'s {others[least]:.4f}")
    lines.append("\n## In short\n")
    n = len(ratios["RCNBF"])
    ridge = np.array(ratios["RidgeRegression"])
    lines += [
        f"- {n} cells. Fliptron's error is the lowest, or within one standard error of it, in {n - len(misses)}."
        + (f" Not in: {'; '.join(misses)}." if misses else ""),
        f"- Against RCNBF with true rates: {np.median(ratios['RCNBF']):.3f} of its error in the median cell "
        f"(worst {max(ratios['RCNBF']):.3f}).",
        f"- Against RidgeRegression at its best: {np.median(ridge):.3f} in the median cell, worst {ridge.max():.3f}; "
        f"at least 15 % lower in {np.sum(ridge <= 0.85)} of {n}.",
        f"- Against the lowest of all others: {np.median(ratios['lowest other']):.3f} in the median cell, "
        f"worst {max(ratios['lowest other']):.3f}.",
    ]
    special = {r["learner"]: r for r in rows if not r["rates"] or r["learner"] == "Fliptron ×50"}
    fifty = np.sort(special["Fliptron ×50"]["errors"])
    lines.append(
        f"- No collapse: 50 seeds on digits at (0.4, 0.4): median {np.median(fifty):.4f}, worst {fifty[-1]:.4f} "
        f"({fifty[-1] / np.median(fifty):.2f} times the median)."
    )
    tenth = "; ".join(
        f"{rates} {ours:.3f} against {theirs:.3f}" for rates, (theirs, ours) in special["sooner"]["errors"].items()
    )
    lines.append(f"- Fliptron after {ROUNDS // 10:,} rounds against RCNBF after {ROUNDS:,}, digits: {tenth}.")
    lines += [
        "\n## Vowpal Wabbit\n",
        f"Its best of {len(SETTINGS)} settings, {VW_ROUNDS:,} rounds, {len(VW_SEEDS)} seeds.\n",
    ]
    lines += ["| data | learner | " + " | ".join(f"({a:g}, {b:g})" for a, b in NOISE) + " |", "|---|---|" + "---|" * 6]
    vw = {(r["data"], tuple(r["rates"]), r["learner"]): r for r in rows if r["rates"] and r["rounds"] == VW_ROUNDS}
    for data, name in itertools.product(VW_DATA, ("Vowpal Wabbit", "Fliptron")):
        cells = [
            f"{np.mean(vw[data, rates, name]['errors']):.4f}" if (data, rates, name) in vw else "–" for rates in NOISE
        ]
        lines.append(f"| {data} | {name} | " + " | ".join(cells) + " |")
    lines += ["\n## Settings chosen\n", "| learner | " + " | ".join(DATA) + " |", "|---|" + "---|" * len(DATA)]
    for name in [name for name in GRID if GRID[name]]:
        chosen = [
            ", ".join(
                "/".join(f"{v:g}" for v in table[data, rates, name]["setting"].values())
                for rates in NOISE
                if (data, rates, name) in table
            )
            for data in DATA
        ]
        lines.append(f"| {name} ({'/'.join(GRID[name])}) | " + " | ".join(chosen) + " |")
    Path("docs/tables/learners.md").write_text("\n".join(lines) + "\n")
    _draw(table)
    print("docs/tables/learners.md")


_HEAD = f"""# The learners side by side

Mean error of the played label after {ROUNDS:,} rounds ± half the 95 % interval over {len(SEEDS)} seeds, under six noise
settings (ρ0, ρ1). **Bold** is the lowest of those that see only noisy bits. Perceptron is told every true label; RCNBF
and AveragedRCNBF are told the true rates. Every baseline runs at the setting of its grid that did best in that very
cell (true error on two seeds of their own, so an oracle's choice); Fliptron has no setting. Where d² is large there is
less: tuning on one seed and 30,000 rounds (USPS) or 10,000 (SynSep, SynNonSep), five seeds for Fliptron on USPS, three
for Confidit and RidgeRegression on the synthetic sets.

Made by `make study-learners`."""


def _draw(table: dict) -> None:
    figure = Figure(figsize=(9.0, 5.0), layout="constrained")
    axes = figure.add_subplot()
    names = [name for name in GRID if name not in ("Fliptron", "Perceptron")]
    for i, name in enumerate(names):
        ratio = [
            np.mean(table[data, rates, name]["errors"]) / np.mean(table[data, rates, "Fliptron"]["errors"])
            for data in DATA
            for rates in NOISE
            if (data, rates, name) in table
        ]
        spread = np.linspace(-0.25, 0.25, len(ratio))
        axes.plot(np.sort(ratio), i + spread, "o", markersize=3.5, color="#0072B2", alpha=0.75)
        axes.plot([np.median(ratio)] * 2, [i - 0.35, i + 0.35], color="#D55E00", linewidth=2)
        axes.annotate(
            f"{np.median(ratio):.1f}×", (np.median(ratio), i + 0.38), color="#D55E00", ha="center", fontsize=9
        )
    axes.axvline(1.0, color="black", linewidth=1)
    axes.set_xscale("log")
    axes.set_yticks(range(len(names)), names)
    axes.set_xlabel("error divided by Fliptron's, one point for each data set and noise setting (orange: median)")
    axes.grid(axis="x", which="major", color="0.9")
    axes.spines[["top", "right"]].set_visible(False)
    for suffix in ("png", "svg"):
        figure.savefig(f"docs/images/learners.{suffix}", dpi=150)


def _rows() -> list[dict]:
    return [json.loads(line) for line in STORE.read_text().splitlines()] if STORE.exists() else []


def _key(row: dict) -> str:
    return json.dumps([row["data"], row["rates"], row["learner"], row["rounds"]])


def _job_key(job: tuple) -> str:
    if job[0] is cell:
        return json.dumps([job[1], job[2], job[3], ROUNDS])
    if job[0] is cell_vw:
        return json.dumps([job[1], job[2], "Vowpal Wabbit", VW_ROUNDS])
    return json.dumps(
        ["digits", (0.4, 0.4), "Fliptron ×50", ROUNDS] if job[0] is robustness else ["digits", None, "sooner", ROUNDS]
    )


_LOADED: dict[str, fliptron.Dataset] = {}


def _load(name: str) -> fliptron.Dataset:
    if name not in _LOADED:
        _LOADED[name] = fliptron.load(name)
    return _LOADED[name]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["play", "write"])
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    if options.what == "play":
        play_all(options.jobs)
    write()


if __name__ == "__main__":
    main()
