"""The picture behind an estimate: mean bit against margin."""

from __future__ import annotations

from typing import Any

import numpy as np

from fliptron.noise.estimate import Estimate
from fliptron.shown import axes as new_axes


def margin_curve(estimate: Estimate, axes: Any = None) -> Any:
    """Mean bit against margin: the label held best climbs to 1 − ρ1, the others sink to ρ0. The figure it is on."""
    axes = new_axes(axes)
    curve = estimate.details["curve"]
    edges = np.array([0.0, *(band["share"] for band in curve)])
    middle = 1 - (edges[1:] + edges[:-1]) / 2
    lines = (
        ("best", "#0072B2", "label held best", "1 − ρ₁", 1 - estimate.rates.rho1),
        ("other", "#D55E00", "other labels", "ρ₀", estimate.rates.rho0),
    )
    highest = 1 - estimate.rates.rho1
    for name, colour, words, symbol, level in lines:
        seen = np.array([band[name] is not None for band in curve])
        value, half = (np.array([band[each] for band in curve], dtype=float)[seen] for each in (name, f"{name}_half"))
        highest = max([highest, *(value + half)])
        axes.errorbar(middle[seen], value, half, color=colour, fmt="o-", markersize=4, capsize=2, label=words)
        if estimate.verdict != "not identified":
            axes.axhline(level, color=colour, linestyle="--", linewidth=1)
            axes.annotate(
                f"{symbol} = {level:.3f}",
                xy=(1.0, level),
                xycoords=("axes fraction", "data"),
                xytext=(6, 0),
                textcoords="offset points",
                color=colour,
                va="center",
                annotation_clip=False,
            )
    axes.axvspan(1 - estimate.details["confident_share"], 1, color="0.93", zorder=0)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1 if highest > 0.5 else 1.2 * highest)
    axes.set_xlabel("rounds ranked by margin (the surest on the right; grey: taken as certain)")
    axes.set_ylabel("mean bit")
    axes.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    axes.set_title(f"Noise {estimate.verdict}", loc="left", fontsize=11)
    axes.figure.legend(frameon=False, loc="outside upper right", ncols=2)
    axes.grid(color="0.92", linewidth=0.8)
    return axes.figure
