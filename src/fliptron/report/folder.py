"""The folder a run writes: table, curves, pictures and page, each whole or not at all."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from fliptron.arrays import InputError
from fliptron.experiments.comparison import Comparison, interval
from fliptron.noise import Estimate
from fliptron.output import make_folder, write_whole
from fliptron.report.figures import error_curves, margin_curve, style
from fliptron.report.page import report_page


def writable_folder(path: str | os.PathLike[str]) -> Path:
    """See that a folder can be written or made, before any work is done; nothing is made yet."""
    folder = Path(path)
    there = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        why = "it is not a folder" if not there.is_dir() else "permission denied"
        raise InputError(f"--out {folder} cannot be written ({there}: {why}); a writable folder is expected")
    return folder


def write_noise(estimate: Estimate, folder: Path) -> Path:
    """Write noise.png and noise.svg, the picture behind an estimate; the path of the first."""
    svg, png, _ = draw(lambda: margin_curve(estimate))
    write_whole(make_folder(folder) / "noise.svg", svg)
    write_whole(folder / "noise.png", png)
    return folder / "noise.png"


def write_report(comparison: Comparison, rows: list[dict[str, Any]], folder: Path, command: str) -> Path:
    """Write results.json, curves.csv, errors.png, errors.svg and report.html; the path of the last."""
    make_folder(folder)
    svg, png, _ = draw(lambda: error_curves(comparison))
    write_whole(folder / "results.json", json.dumps(rows, indent=2))
    write_whole(folder / "curves.csv", _curves(comparison))
    write_whole(folder / "errors.svg", svg)
    write_whole(folder / "errors.png", png)
    page = folder / "report.html"
    write_whole(page, report_page(comparison, rows, svg, command))
    return page


def draw(picture: Callable[[], Figure]) -> tuple[str, bytes, bytes]:
    """A figure as SVG, PNG and PDF, in our style."""
    with mpl.rc_context(style()):
        figure = picture()
        figure.draw_without_rendering()
        figure.set_layout_engine("none")  # the layout, a third of the work, is the same for all three
        svg, png, pdf = io.StringIO(), io.BytesIO(), io.BytesIO()
        figure.savefig(svg, format="svg", metadata={"Date": None})
        figure.savefig(png, format="png", dpi=150)
        figure.savefig(pdf, format="pdf", metadata={"CreationDate": None})
    return svg.getvalue(), png.getvalue(), pdf.getvalue()


def _curves(comparison: Comparison) -> str:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(
        ["learner", "rounds", "error_mean", "error_ci95", "greedy_error_mean", "greedy_error_ci95", "seeds"]
    )
    for name, runs in comparison.finished.items():
        error, error_half = interval(np.array([run.errors for run in runs]))
        greedy, greedy_half = interval(np.array([run.greedy_errors for run in runs]))
        for i, rounds in enumerate(runs[0].rounds):
            halves = [None if half is None else half[i] for half in (error_half, greedy_half)]
            writer.writerow([name, rounds, error[i], halves[0], greedy[i], halves[1], len(runs)])
    return text.getvalue()
