"""The learners by name, as the command line and the plans call them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from inspect import signature
from typing import Any

from fliptron.arrays import InputError
from fliptron.datasets import Dataset
from fliptron.experiments.vowpal import VowpalWabbit
from fliptron.learners import (
    BPA,
    RCINE,
    RCNBF,
    SOBA,
    AveragedRCNBF,
    Banditron,
    Confidit,
    Fliptron,
    LeastMeanSquares,
    Perceptron,
    RidgeRegression,
)
from fliptron.noise.published import NETWORKS

ROSTER: dict[str, Callable[..., Any]] = {
    "Perceptron": Perceptron,
    "Banditron": Banditron,
    "BPA": BPA,
    "SOBA": SOBA,
    "SOBA-full": partial(SOBA, diagonal=False),
    "RCNBF": RCNBF,
    "AveragedRCNBF": AveragedRCNBF,
    "RCINE": RCINE,
    "RCINE-NREst": partial(RCINE, estimator="nrest", refresh=50_000, pooled=False),
    "LeastMeanSquares": LeastMeanSquares,
    "Confidit": Confidit,
    "RidgeRegression": RidgeRegression,
    "Fliptron": Fliptron,
    "VowpalWabbit": VowpalWabbit,
}

SLOW = ("SOBA-full", "RCINE-NREst", "VowpalWabbit")
DEFAULT = [name for name in ROSTER if name not in SLOW]
"""What `fliptron run` compares when not told otherwise."""


def build(
    name: str,
    dataset: Dataset,
    *,
    rates: tuple[float, float],
    seed: int,
    gamma: Any = None,
    dtype: str = "float64",
    **params: Any,
) -> Any:
    """A learner fit for a data set. Those that must know the rates are told the true ones.

    `gamma` replaces the default exploration of the learners that explore at random, `dtype` the precision of those that
    have a choice; `params` are the learner's own.
    """
    make = ROSTER.get(name)
    if make is None:
        raise InputError(f"{name!r} is not a learner; one of {', '.join(ROSTER)} is expected")
    offered: dict[str, Any] = {"rates": rates, "dtype": dtype} | ({} if gamma is None else {"gamma": gamma})
    if name == "RCINE-NREst" and dataset.name in NETWORKS:
        offered["estimator"] = f"nrest:{dataset.name}"
    taken = {key: value for key, value in offered.items() if key in signature(make).parameters} | params
    return make(n_classes=dataset.n_classes, n_features=dataset.n_features, seed=seed, **taken)
