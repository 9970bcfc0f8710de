"""A comparison: learners × seeds on one data set and one noise setting, as a table, curves, pictures and a page."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fliptron.datasets.dataset import Dataset
from fliptron.experiments.plan import Spec
from fliptron.output import make_folder, write_whole
from fliptron.report import page
from fliptron.report.figures import draw, error_curves
from fliptron.report.statistics import interval, plus_minus
from fliptron.results import Run
from fliptron.shown import html

_NOTE = (
    "Error: share of rounds whose played label was wrong, exploration included, mean ± half the 95 % interval over "
    "seeds. Greedy error: the same for the label the learner thought best. Perceptron is told the true label every "
    "round; RCNBF, AveragedRCNBF and those called …-told are told the true flip rates; the others see bits only."
)


@dataclass(frozen=True, slots=True, repr=False)
class Comparison:
    """What was asked for, and what has come of it."""

    dataset: Dataset
    specs: Sequence[Spec]
    runs: Sequence[Run]

    @property
    def first(self) -> Spec:
        """What all runs share: rates, rounds, order."""
        return self.specs[0]

    @property
    def seeds(self) -> list[int]:
        """The seeds asked for."""
        return sorted({spec.seed for spec in self.specs})

    @property
    def unfinished(self) -> int:
        """How many runs are missing."""
        return len(self.specs) - len(self.runs)

    @property
    def finished(self) -> dict[str, list[Run]]:
        """The learners of which at least one run is there, in the order asked for."""
        names = dict.fromkeys(spec.learner for spec in self.specs)
        found = {name: sorted((r for r in self.runs if r.learner == name), key=lambda run: run.seed) for name in names}
        return {name: runs for name, runs in found.items() if runs}

    def rows(self) -> list[dict[str, Any]]:
        """One row per learner: mean errors with 95 % intervals over seeds, speed, settings."""
        return [
            {
                "learner": name,
                **_summary("error", [run.error or 0.0 for run in runs]),
                **_summary("greedy_error", [run.greedy_error or 0.0 for run in runs]),
                "rounds_per_second": self.first.rounds * len(runs) / sum(run.seconds or 0.0 for run in runs),
                "dataset": self.dataset.name,
                "rates": list(self.first.rates),
                "rounds": self.first.rounds,
                "order": self.first.order,
                "seeds": [run.seed for run in runs],
                **_rates_found(runs),
                "params": runs[0].params,
                "data_sha256": runs[0].data_sha256,
                "version": runs[0].version,
            }
            for name, runs in self.finished.items()
        ]

    def to_frame(self) -> Any:
        """The same as a data frame."""
        return pd.DataFrame(self.rows())

    def plot(self) -> Any:
        """Draw error against rounds for all learners; the figure."""
        return error_curves(self.finished, self._title())

    def __repr__(self) -> str:
        told = f"{len(self.finished)} learners on {self.dataset.name}, {len(self.runs)} of {len(self.specs)} runs"
        return f"Comparison({told})"

    def _repr_html_(self) -> str:
        rows = [(row["learner"], plus_minus(row["error_mean"], row["error_ci95"])) for row in self.rows()]
        return html(repr(self), rows, ["learner", "error"])

    def write(self, folder: Path, command: str) -> Path:
        """Write results.json, curves.csv, errors.png, errors.svg and report.html; the path of the last."""
        make_folder(folder)
        rows = self.rows()
        svg, png, _ = draw(lambda: error_curves(self.finished, self._title()))
        write_whole(folder / "results.json", json.dumps(rows, indent=2))
        write_whole(folder / "curves.csv", self._curves())
        write_whole(folder / "errors.svg", svg)
        write_whole(folder / "errors.png", png)
        write_whole(folder / "report.html", self._page(rows, svg, command))
        return folder / "report.html"

    def _title(self) -> str:
        rho0, rho1 = self.first.rates
        return f"{self.dataset.name}, bits flipped with ρ₀ = {rho0:g}, ρ₁ = {rho1:g}"

    def _page(self, rows: list[dict[str, Any]], svg: str, command: str) -> str:
        (rho0, rho1), data = self.first.rates, self.dataset
        shown = {
            "data": f"{data.name} ({data.n_rows:,} × {data.n_features}, {data.n_classes} classes; {data.source})",
            "data SHA-256": rows[0]["data_sha256"],
            "channel": f"ρ0 = {rho0:g} (wrong told as right), ρ1 = {rho1:g} (right told as wrong)",
            "rounds": f"{self.first.rounds:,}, order: {self.first.order}",
            "seeds": ", ".join(map(str, self.seeds)),
            "version": rows[0]["version"],
            "command": command,
        }
        lines = [
            (
                row["learner"],
                plus_minus(row["error_mean"], row["error_ci95"]),
                plus_minus(row["greedy_error_mean"], row["greedy_error_ci95"]),
                f"{row['rounds_per_second']:,.0f}",
                (", ".join(f"{key}={value}" for key, value in row["params"].items() if key != "rates"), "small"),
            )
            for row in sorted(rows, key=lambda row: row["error_mean"])
        ]
        columns = ["learner", "error", "greedy error", "rounds/s", "settings"]
        return page.page(
            f"Fliptron: {data.name}",
            f"Learning {data.name} from flipped bits",
            page.strong("Interrupted: only the runs that had finished are shown.") if self.unfinished else "",
            page.picture(svg),
            page.table(columns, lines, kinds=["", "number", "number", "number"]),
            page.paragraph(_NOTE, "note"),
            page.table(["", ""], shown.items(), small=True),
        )

    def _curves(self) -> str:
        text = io.StringIO()
        writer = csv.writer(text)
        names = ["error_mean", "error_ci95", "greedy_error_mean", "greedy_error_ci95"]
        writer.writerow(["learner", "rounds", *names, "seeds"])
        for name, runs in self.finished.items():
            both = [interval(np.array([getattr(run, each) for run in runs])) for each in ("errors", "greedy_errors")]
            for i, rounds in enumerate(runs[0].checkpoints):
                values = [None if part is None else part[i] for pair in both for part in pair]
                writer.writerow([name, rounds, *values, len(runs)])
        return text.getvalue()


def _rates_found(runs: list[Run]) -> dict[str, Any]:
    """The last rates that a learner with an estimator found and could trust, over seeds."""
    found = np.array([(run.rho0_hat, run.rho1_hat) for run in runs if run.rho0_hat is not None])
    if not found.size:
        return {}
    mean, half = interval(found)
    return {"rates_mean": mean.tolist(), "rates_ci95": None if half is None else half.tolist()}


def _summary(name: str, values: list[float]) -> dict[str, float | None]:
    mean, half = interval(np.array(values))
    return {f"{name}_mean": float(mean), f"{name}_ci95": None if half is None else float(half)}
