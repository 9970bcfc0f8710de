"""The paper's experiments as plans: Figures 2 and 3, Tables 1 and 2, the appendix; and what goes beyond.

Where the paper is silent: rows are drawn with replacement and scaled to length 1. "MNIST" is read twice, as the 8×8
digits of UCI (what the authors' code loads) and as the real 28×28 images. SOBA is diagonal except on Iris.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import pandas as pd

from fliptron.experiments.plan import Spec, grid
from fliptron.experiments.vowpal import SETTINGS

NOISE = ((0.0, 0.0), (0.15, 0.15), (0.25, 0.25), (0.2, 0.4), (0.4, 0.2), (0.4, 0.4))
FIGURE_2 = tuple(rates for rates in NOISE if rates != (0.25, 0.25))
MAIN = {"optdigits": "MNIST (UCI 8×8)", "mnist": "MNIST (28×28)", "usps": "USPS", "fashion-features": "Fashion-MNIST"}
EXTRA = {"iris": "Iris", "synsep": "SynSep"}
NAMES = MAIN | EXTRA | {"digits": "digits (embedded)"}
GAMMAS = (0.005, 0.02, 0.05, 0.1, 0.2, 0.4)
SMALL = ("optdigits", "fashion-features", "iris", "digits")
"""Data sets of at most 100 features, where d² work per round is cheap."""
PEER = ("optdigits", "iris", "digits")
"""Where Vowpal Wabbit, a hundred times slower than we are, plays too."""
TUNED = ("Banditron", "BPA", "SOBA", "RCNBF", "RCINE")
PARTS = ("fig2", "fig3", "table1", "table2", "appendix", "beyond")

# The paper's estimates of (ρ0, ρ1), Tables 1 and 2, in the order of NOISE.
PUBLISHED = {
    "optdigits": ((0.063, 0.029), (0.172, 0.147), (0.248, 0.264), (0.211, 0.439), (0.400, 0.260), (0.403, 0.508)),
    "usps": ((0.017, 0.000), (0.181, 0.153), (0.258, 0.257), (0.194, 0.419), (0.393, 0.229), (0.402, 0.515)),
    "fashion-features": (
        (0.090, 0.004),
        (0.189, 0.140),
        (0.264, 0.259),
        (0.215, 0.393),
        (0.404, 0.222),
        (0.397, 0.502),
    ),
    "iris": ((0.000, 0.000), (0.164, 0.172), (0.261, 0.288), (0.209, 0.423), (0.407, 0.244), (0.412, 0.412)),
    "synsep": ((0.000, 0.003), (0.177, 0.143), (0.286, 0.282), (0.230, 0.459), (0.453, 0.268), (0.416, 0.499)),
}


@dataclass(frozen=True, slots=True)
class Scale:
    """How much of it to run."""

    rounds: int
    """Of the paper's learners."""
    seeds: int
    pilot_rounds: int
    pilot_seeds: int
    gammas: tuple[float, ...]
    nrest_rounds: int
    """Of RCINE with the published NREst, by far the dearest; 0: left out."""
    nrest_seeds: int
    beyond_rounds: int
    """Of learners whose cost grows with d²."""
    only: tuple[str, ...] = ()
    """Data sets, if not all."""


SCALES = {
    "smoke": Scale(3000, 2, 2000, 1, (0.05, 0.2), 0, 0, 3000, ("digits", "iris")),
    "desk": Scale(300_000, 10, 100_000, 3, GAMMAS, 60_000, 1, 50_000),
    "paper": Scale(10_000_000, 10, 1_000_000, 3, GAMMAS, 10_000_000, 10, 1_000_000),
}


def datasets(scale: Scale, parts: Sequence[str]) -> list[str]:
    """The data sets that the parts need."""
    wanted = []
    if {"fig2", "appendix", "beyond"} & set(parts):
        wanted += list(MAIN)
    if {"table1", "fig3"} & set(parts):
        wanted += ["optdigits", *(["usps", "fashion-features"] if "table1" in parts else [])]
    if {"appendix", "table2", "beyond"} & set(parts):
        wanted += list(EXTRA)
    return list(scale.only) or list(dict.fromkeys(wanted))


def tuning(scale: Scale, parts: Sequence[str]) -> list[Spec]:
    """Runs on seeds of their own from which each learner's γ, or options, are chosen, cell by cell."""
    seeds = range(1000, 1000 + scale.pilot_seeds)
    if not {"fig2", "appendix", "beyond", "table1", "table2"} & set(parts):
        return []
    learners = TUNED if {"fig2", "appendix", "beyond"} & set(parts) else ("RCINE",)
    peer = [
        spec
        for dataset in datasets(scale, parts)
        if "beyond" in parts and dataset in PEER and find_spec("vowpalwabbit")
        for spec in grid(
            datasets=[dataset],
            rates=NOISE,
            learners={"VowpalWabbit": {"options": SETTINGS}},
            rounds=scale.beyond_rounds // 5,
            seeds=seeds[:1],
        )
    ]
    return peer + [
        spec
        for dataset in datasets(scale, parts)
        for name in learners
        for spec in grid(
            datasets=[dataset],
            rates=NOISE,
            learners={_form(name, dataset): {"gamma": (0.0, *scale.gammas) if name == "BPA" else scale.gammas}},
            rounds=scale.pilot_rounds,
            seeds=seeds,
        )
    ]


def choose(pilots: pd.DataFrame) -> pd.DataFrame:
    """The best setting of each cell, twice: by true error, the paper's oracle; by the mean noisy bit, as one can.

    The mean bit is ρ0 + β·accuracy: the γ of most bits is the γ of highest accuracy, and nobody needs the truth.
    """
    keys = ["dataset", "rho0", "rho1", "learner"]
    pilots = pilots.assign(params=[json.dumps(tuned(params)) for params in pilots.params])
    means = pilots.groupby([*keys, "params"], as_index=False)[["error", "mean_bit"]].mean()
    oracle = means.loc[means.groupby(keys).error.idxmin()].rename(columns={"params": "oracle", "error": "oracle_error"})
    honest = means.loc[means.groupby(keys).mean_bit.idxmax()].rename(
        columns={"params": "honest", "error": "honest_error"}
    )
    return oracle[[*keys, "oracle", "oracle_error"]].merge(honest[[*keys, "honest", "honest_error"]], on=keys)


def tuned(params: str) -> dict[str, Any]:
    """The part of a run's parameters, as stored, that pilots choose."""
    return {name: value for name, value in json.loads(params).items() if name in ("gamma", "options")}


def guess(pilots: Iterable[Spec]) -> pd.DataFrame:
    """A stand-in for `choose` before anything has run, to count what a plan will have to do."""
    cells = {(spec.dataset, *spec.rates, spec.learner): json.dumps(spec.params) for spec in pilots}
    rows = [(*cell, setting) for cell, setting in cells.items()]
    return pd.DataFrame(rows, columns=["dataset", "rho0", "rho1", "learner", "oracle"])


def final(scale: Scale, parts: Sequence[str], chosen: pd.DataFrame) -> list[Spec]:
    """The runs behind figures and tables, at the chosen γ."""
    seeds, names = range(scale.seeds), datasets(scale, parts)
    specs: list[Spec] = []
    curves = {"fig2", "appendix", "beyond"} & set(parts)
    for cell in chosen.itertuples():
        if cell.dataset not in names:
            continue
        common: dict[str, Any] = {"datasets": [cell.dataset], "rates": [(cell.rho0, cell.rho1)]}
        setting = {name: [value] for name, value in json.loads(cell.oracle).items()}
        rounds = scale.beyond_rounds if cell.learner == "VowpalWabbit" else scale.rounds
        if curves or ({"table1", "table2"} & set(parts) and cell.learner == "RCINE"):
            specs += grid(**common, learners={cell.learner: setting}, rounds=rounds, seeds=seeds)
        wanted = curves or ("table1" if cell.dataset in MAIN else "table2") in parts
        if cell.learner == "RCINE" and scale.nrest_rounds and cell.dataset in PUBLISHED and wanted:
            learners: dict[str, Any] = {"RCINE-NREst": setting}
            specs += grid(**common, learners=learners, rounds=scale.nrest_rounds, seeds=range(scale.nrest_seeds))
    if "fig3" in parts:
        sweep = {"RCINE": {"gamma": scale.gammas}}
        specs += grid(datasets=names[:1], rates=NOISE, learners=sweep, rounds=scale.pilot_rounds, seeds=seeds)
    if "beyond" in parts:
        for name in names:
            regression = "RidgeRegression" if name in SMALL else "LeastMeanSquares"
            learners = {learner: {} for learner in ("Perceptron", regression, "Fliptron")}
            specs += grid(datasets=[name], rates=NOISE, learners=learners, rounds=scale.beyond_rounds, seeds=seeds)
    return list({spec.id: spec for spec in specs}.values())


def hours(specs: Iterable[Spec], cores: int) -> float:
    """A guess of the time a plan takes, from costs per round measured on one core."""
    return sum(spec.rounds * _MICROSECONDS.get((spec.learner, spec.dataset), _guess(spec)) for spec in specs) / (
        3.6e9 * cores
    )


_MICROSECONDS = {
    ("Fliptron", "usps"): 150.0,
    ("Fliptron", "fashion-features"): 30.0,
}


def _guess(spec: Spec) -> float:
    large = {"mnist": 2.0, "usps": 0.8, "synsep": 0.4}.get(spec.dataset, 0.25)
    return {
        "RCINE-NREst": 300.0,
        "Fliptron": 15.0,
        "RidgeRegression": 4.0,
        "SOBA-full": 3.0,
        "VowpalWabbit": 200.0,
    }.get(spec.learner, large)


def _form(name: str, dataset: str) -> str:
    return "SOBA-full" if name == "SOBA" and dataset == "iris" else name
