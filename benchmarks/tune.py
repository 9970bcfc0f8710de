"""How each learner's default setting was chosen: sweep, on seeds that no comparison uses.

    python benchmarks/tune.py            # writes docs/tuning.md (about ten minutes on two cores)

For every learner, every setting of its grid is run on digits under the paper's six noise settings. A
setting's *regret* is the geometric mean, over noise settings, of its error divided by the best error
any setting of that learner reached there. The default is the setting of least regret: the one to take
when the noise is not known. The true error decides, so this is an oracle's choice, made alike for all.
"""

from __future__ import annotations

import argparse
import itertools
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import fliptron
from fliptron.experiments.roster import ROSTER

NOISE = [(0.0, 0.0), (0.15, 0.15), (0.25, 0.25), (0.2, 0.4), (0.4, 0.2), (0.4, 0.4)]
GAMMA = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5]
GRID: dict[str, dict[str, list[float]]] = {
    "Banditron": {"gamma": GAMMA},
    "BPA": {"gamma": [0.0, 0.0005, *GAMMA]},
    "SOBA": {"gamma": GAMMA, "regularization": [1.0, 100.0]},
    "RCNBF": {"gamma": GAMMA},
    "AveragedRCNBF": {"gamma": GAMMA},
    "RCINE": {"gamma": GAMMA},
    "LeastMeanSquares": {"gamma": [0.002, 0.005, 0.01, 0.02, 0.05, 0.1], "step": [0.1, 0.2, 0.5]},
    "Confidit": {"alpha": [0.5, 1.0, 2.0], "regularization": [0.1, 1.0]},
    "RidgeRegression": {"gamma": [0.002, 0.005, 0.01, 0.02, 0.05, 0.1], "regularization": [0.03, 0.1, 1.0]},
}


def error(name: str, setting: dict[str, float], rates: tuple[float, float], seed: int, rounds: int) -> float:
    told = {"rates": rates} if "RCNBF" in name else {}
    learner = ROSTER[name](n_classes=10, n_features=64, seed=seed, **setting, **told)
    return fliptron.simulate(learner, DIGITS, rates=rates, rounds=rounds, seed=seed).error


def sweep(name: str, seeds: range, rounds: int, pool: ThreadPoolExecutor) -> tuple[list[dict[str, float]], np.ndarray]:
    grid = GRID[name]
    settings = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
    jobs = [(name, setting, rates, seed, rounds) for setting in settings for rates in NOISE for seed in seeds]
    errors = list(pool.map(lambda job: error(*job), jobs))
    return settings, np.reshape(errors, (len(settings), len(NOISE), len(seeds))).mean(axis=2)


def section(name: str, settings: list[dict[str, float]], errors: np.ndarray) -> str:
    regret = np.exp(np.log(errors / errors.min(axis=0)).mean(axis=1))
    chosen = int(regret.argmin())
    lines = [
        f"## {name}\n",
        "| " + " | ".join([*settings[0], *(f"({a:g}, {b:g})" for a, b in NOISE), "regret"]) + " |",
        "|" + "---|" * (len(settings[0]) + len(NOISE) + 1),
    ]
    for i, setting in enumerate(settings):
        cells = [f"{value:g}" for value in setting.values()]
        cells += [
            f"**{e:.3f}**" if e == best else f"{e:.3f}" for e, best in zip(errors[i], errors.min(axis=0), strict=True)
        ]
        cells += [f"**{regret[i]:.2f}** ←" if i == chosen else f"{regret[i]:.2f}"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=100_000)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--only", nargs="*", default=list(GRID), help="learners whose sections are made anew")
    parser.add_argument("--out", type=Path, default=Path("docs/tuning.md"))
    options = parser.parse_args()
    seeds = range(1000, 1000 + options.seeds)
    old = options.out.read_text().split("\n## ")[1:] if options.out.exists() else []
    sections = {text.split("\n")[0]: "## " + text.rstrip() + "\n" for text in old}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for name in options.only:
            print(f"{name} …", flush=True)
            sections[name] = section(name, *sweep(name, seeds, options.rounds, pool))
    head = (
        "# How the default settings were chosen\n\n"
        f"Mean error of the played label on digits after {options.rounds:,} rounds, seeds {seeds[0]} to {seeds[-1]}\n"
        "(comparisons use others), under the paper's six noise settings (ρ0, ρ1). **Bold** is the best of a column.\n"
        "Regret is the geometric mean over columns of error / best error; the arrow marks the least, which is the\n"
        "default of the learner. RCNBF and AveragedRCNBF are told the true rates. True errors decide, as in the\n"
        "paper: an oracle's choice, made alike for all. BPA's default is 0.001, within 1 % of none at all, since a log\n"  # noqa: E501
        "without exploration says nothing about the noise.\n\n"
        "Made by `make tune`.\n\n"
    )
    options.out.write_text(head + "\n".join(sections[name] for name in GRID if name in sections))
    print(options.out)


DIGITS = fliptron.load("digits")

if __name__ == "__main__":
    main()
