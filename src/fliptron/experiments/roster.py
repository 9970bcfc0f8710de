"""The learners by name, as the command line and the plans call them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from inspect import signature
from typing import Any

from fliptron.arrays import InputError
from fliptron.datasets import Dataset
from fliptron.learners import (
    BPA,
    RCNBF,
    SOBA,
    AveragedRCNBF,
    Banditron,
    Confidit,
    Learner,
    LeastMeanSquares,
    Perceptron,
    RidgeRegression,
)

ROSTER: dict[str, Callable[..., Learner]] = {
    "Perceptron": Perceptron,
    "Banditron": Banditron,
    "BPA": BPA,
    "SOBA": SOBA,
    "SOBA-full": partial(SOBA, diagonal=False),
    "RCNBF": RCNBF,
    "AveragedRCNBF": AveragedRCNBF,
    "LeastMeanSquares": LeastMeanSquares,
    "Confidit": Confidit,
    "RidgeRegression": RidgeRegression,
}

DEFAULT = [name for name in ROSTER if name != "SOBA-full"]
"""What `fliptron run` compares when not told otherwise."""


def build(name: str, dataset: Dataset, *, rates: tuple[float, float], seed: int, gamma: Any = None) -> Learner:
    """A learner fit for a data set. Those that must know the rates are told the true ones.

    `gamma` replaces the default exploration of the learners that explore at random.
    """
    make = ROSTER.get(name)
    if make is None:
        raise InputError(f"{name!r} is not a learner; one of {', '.join(ROSTER)} is expected")
    offered = {"rates": rates} | ({} if gamma is None else {"gamma": gamma})
    taken = {key: value for key, value in offered.items() if key in signature(make).parameters}
    return make(n_classes=dataset.n_classes, n_features=dataset.n_features, seed=seed, **taken)
