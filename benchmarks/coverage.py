"""Do the intervals cover where no round is quite certain? On made-up logs, the hardest for the plateaus.

    python benchmarks/coverage.py        # writes docs/tables/coverage.md (a minute)

The accuracy of the label held best is 1 − 0.6·e^(−k·m) for margins m uniform on [0, 1]: it creeps up and is never 1.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from made_up import plateaus, smooth

RATES, SEEDS = (0.2, 0.4), 60


def main() -> None:
    lines = [
        "| k | accuracy of the surest 20 % | rounds | called identified | ρ0 covered | ρ1 covered | mean ρ̂1 |",
        "|---|---|---|---|---|---|---|",
    ]
    for k in (2, 3, 4, 8):
        top = 1 - 0.6 * (np.exp(-0.8 * k) - np.exp(-k)) / (0.2 * k)
        for n in (50_000, 200_000):
            found = [plateaus(smooth(n, k, seed=seed), 10) for seed in range(SEEDS)]
            covered = [
                np.mean([low <= true <= high for low, high in (each.intervals[name] for each in found)])
                for name, true in zip(("rho0", "rho1"), RATES, strict=True)
            ]
            level = np.mean([each.verdict == "identified" for each in found])
            rho1 = np.mean([each.rates.rho1 for each in found])
            cells = (f"{k}", f"{top:.3f}", f"{n:,}", f"{level:.0%}", *(f"{c:.0%}" for c in covered), f"{rho1:.3f}")
            lines.append("| " + " | ".join(cells) + " |")
            print(lines[-1], flush=True)
    Path("docs/tables").mkdir(parents=True, exist_ok=True)
    Path("docs/tables/coverage.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
