"""The learners by name, as the command line and the plans call them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from inspect import signature
from typing import Any

from fliptron.datasets.dataset import Dataset
from fliptron.experiments.adapted import ThroughCoba, ThroughRiver
from fliptron.experiments.bandits import Bandit
from fliptron.experiments.peers import BayesianBandits, CobaLearner, RiverLinUCB
from fliptron.experiments.vowpal import VowpalWabbit
from fliptron.learners.anytime import AnytimeRCNBF
from fliptron.learners.decoding import RDUE
from fliptron.learners.delaytron import Delaytron
from fliptron.learners.exact_passive_aggressive import EPABF
from fliptron.learners.fliptron import Fliptron
from fliptron.learners.gappletron import Gappletron
from fliptron.learners.newtron import Newtron
from fliptron.learners.passive_aggressive import BPA
from fliptron.learners.perceptron import Perceptron
from fliptron.learners.rcine import RCINE
from fliptron.learners.rcnbf import RCNBF, AveragedRCNBF, Banditron
from fliptron.learners.regression import Confidit, LeastMeanSquares, RidgeRegression
from fliptron.learners.second_order import SOBA
from fliptron.learners.separable import KernelSeparable, Separable
from fliptron.noise.published import NETWORKS
from fliptron.refusals import InputError

ROSTER: dict[str, Callable[..., Any]] = {
    "Perceptron": Perceptron,
    "Banditron": Banditron,
    "Delaytron": Delaytron,
    "Delaytron-told": Delaytron,
    "BPA": BPA,
    "EPABF": EPABF,
    "SOBA": SOBA,
    "SOBA-full": partial(SOBA, form="full"),
    "Newtron": Newtron,
    "Newtron-told": Newtron,
    "Newtron-full": partial(Newtron, form="full"),
    "Gappletron": Gappletron,
    "Gappletron-told": Gappletron,
    "RDUE": RDUE,
    "RDUE-told": RDUE,
    "Separable": Separable,
    "KernelSeparable": KernelSeparable,
    "RCNBF": RCNBF,
    "AveragedRCNBF": AveragedRCNBF,
    "RCINE": RCINE,
    "AnytimeRCNBF": AnytimeRCNBF,
    "RCINE-NREst": partial(RCINE, estimator="nrest", refresh=50_000, pooled=False),
    "RCINE-NREst-one-hot": partial(RCINE, estimator="nrest-one-hot", refresh=50_000, pooled=False),
    "LeastMeanSquares": LeastMeanSquares,
    "Confidit": Confidit,
    "RidgeRegression": RidgeRegression,
    "Fliptron": Fliptron,
    "Fliptron-told": Fliptron,
    "LinearThompson": partial(Bandit, explore="Thompson"),
    "LogisticThompson": partial(Bandit, explore="Thompson", logistic=True),
    "LogisticUCB": partial(Bandit, explore="UCB", logistic=True),
    "SquareCB": partial(Bandit, explore="SquareCB"),
    "LogisticSquareCB": partial(Bandit, explore="SquareCB", logistic=True),
    "VowpalWabbit": VowpalWabbit,
    "River-LinUCB": RiverLinUCB,
    "River-Fliptron": ThroughRiver,
    "Coba-LinUCB": CobaLearner,
    "Coba-LinTS": partial(CobaLearner, kind="LinTS"),
    "Coba-SquareCB": partial(CobaLearner, kind="SquareCB"),
    "Coba-Fliptron": ThroughCoba,
    "Bayesian-LinTS": partial(BayesianBandits, model="linear"),
    "Bayesian-LogisticTS": BayesianBandits,
    "Bayesian-LogisticUCB": partial(BayesianBandits, policy="UCB"),
}

TOLD = ("RCNBF", "AveragedRCNBF", "Delaytron-told", "Newtron-told", "Gappletron-told", "RDUE-told", "Fliptron-told")
"""Learners that are told the true rates."""
PEERS = {
    "VowpalWabbit": "vowpalwabbit",
    "River-LinUCB": "river",
    "River-Fliptron": "river",
    "Coba-LinUCB": "coba",
    "Coba-LinTS": "coba",
    "Coba-SquareCB": "vowpalwabbit",
    "Coba-Fliptron": "coba",
    "Bayesian-LinTS": "bayesianbandits",
    "Bayesian-LogisticTS": "bayesianbandits",
    "Bayesian-LogisticUCB": "bayesianbandits",
}
"""Learners of other libraries, and ours called as they call theirs; the package that each needs."""
PYTHON = ("RCINE-NREst", "RCINE-NREst-one-hot", *PEERS)
"""Learners that spend their time in Python rather than in compiled code."""
DEFAULT = [
    *("Perceptron", "Banditron", "BPA", "SOBA", "RCNBF", "AveragedRCNBF", "RCINE"),
    *("LeastMeanSquares", "Confidit", "RidgeRegression", "Fliptron"),
]
"""What `fliptron run` compares when not told otherwise: the paper's company, and what learns from the raw bit."""
_SHAPE = ("n_classes", "n_features", "seed")


def maker(name: str) -> Callable[..., Any]:
    """What builds a learner of this name."""
    make = ROSTER.get(name)
    if make is None:
        raise InputError(f"{name!r} is not a learner; one of {', '.join(ROSTER)} is expected")
    return make


def settings(name: str) -> dict[str, Any]:
    """The parameters of a learner with their defaults, without its shape and seed."""
    known = signature(maker(name)).parameters
    return {key: each.default for key, each in known.items() if key not in _SHAPE}


def module(name: str) -> str:
    """Where a learner's code is."""
    make = maker(name)
    return str(getattr(make, "func", make).__module__)


def effective(name: str, dataset: str, *, rates: tuple[float, float], dtype: str, **params: Any) -> dict[str, Any]:
    """Every parameter of a learner as it will be, on a data set of this name.

    Those of `TOLD` are told the true rates, and those that can keep float32 weights do so unless the data is float64,
    where `params` do not say otherwise.
    """
    offered: dict[str, Any] = {"dtype": "float64" if dtype in ("float64", "sparse") else "float32"}
    offered |= {"rates": list(rates)} if name in TOLD else {}
    known = settings(name)
    if str(known.get("estimator")).startswith("nrest") and dataset in NETWORKS:
        offered["estimator"] = f"{known['estimator']}:{dataset}"
    return known | {key: value for key, value in offered.items() if key in known} | params


def build(name: str, dataset: Dataset, *, seed: int, **params: Any) -> Any:
    """A learner fit for a data set, with parameters from `effective`."""
    return maker(name)(n_classes=dataset.n_classes, n_features=dataset.n_features, seed=seed, **params)
