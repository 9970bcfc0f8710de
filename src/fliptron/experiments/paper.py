"""The paper's experiments as data: which learners play where, how long, and on how many seeds; and what goes beyond.

Where the paper is silent: rows are drawn with replacement and scaled to length 1. "MNIST" is read twice, as the 8×8
digits of UCI (what the authors' code loads) and as the real 28×28 images.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from fliptron.experiments.vowpal import SETTINGS
from fliptron.refusals import InputError

NOISE = ((0.0, 0.0), (0.15, 0.15), (0.25, 0.25), (0.2, 0.4), (0.4, 0.2), (0.4, 0.4))
"""In the order of the paper's tables."""
FIGURES = ((0.0, 0.0), (0.15, 0.15), (0.25, 0.25), (0.4, 0.4), (0.2, 0.4), (0.4, 0.2))
"""In the order of the appendix's figures."""
FIGURE_2 = tuple(rates for rates in FIGURES if rates != (0.25, 0.25))
MAIN = {"optdigits": "MNIST (UCI 8×8)", "mnist": "MNIST (28×28)", "usps": "USPS", "fashion-features": "Fashion-MNIST"}
EXTRA = {"iris": "Iris", "synsep": "SynSep"}
NAMES = MAIN | EXTRA | {"digits": "digits (embedded)"}
ALL = (*MAIN, *EXTRA)
SMALL = ("optdigits", "fashion-features", "iris", "digits")
"""Data sets of at most 100 features, where d² work per round is cheap."""
WIDE = ("usps", "synsep", "mnist")
"""The others, where a round costs most: with all seeds at 10⁷ rounds the whole would not end in 4 hours."""
TINY = ("optdigits", "iris", "digits")
"""Where K·d is at most 640: SOBA's whole matrix, and Vowpal Wabbit, a hundred times slower than we are, play too."""
GAMMAS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4)

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


class Entrant(NamedTuple):
    """A learner as it enters the field: what is fixed, and what its pilots choose from."""

    learner: str
    grid: Mapping[str, tuple[Any, ...]] = {"gamma": GAMMAS}
    """The values that its first pilots try; rungs beside the best are tried next."""
    fixed: Mapping[str, Any] = {}
    above: bool = False
    """Whether γ = 0 is out of question."""


_WITH_ZERO = {"gamma": (0.0, *GAMMAS)}
_FEW = {"gamma": (0.002, 0.01, 0.05, 0.2)}
ENTRANTS = {
    "Banditron": Entrant("Banditron"),
    "BPA": Entrant("BPA", _WITH_ZERO),
    "BPA, γ > 0": Entrant("BPA", _WITH_ZERO, above=True),
    "BPA, γ = 0.014": Entrant("BPA", {}, {"gamma": 0.014}),
    "SOBA": Entrant("SOBA"),
    "RCNBF": Entrant("RCNBF"),
    "RCINE": Entrant("RCINE"),
    "SOBA-full": Entrant("SOBA-full", _FEW),
    "BPA, margin 0": Entrant("BPA", _WITH_ZERO, {"correct_margin": 0.0}),
    "BPA, PA-I": Entrant("BPA", {"gamma": (0.0, *_FEW["gamma"]), "aggressiveness": (0.01, 1.0)}, {"variant": "PA-I"}),
    "BPA, PA-II": Entrant("BPA", {"gamma": (0.0, *_FEW["gamma"]), "aggressiveness": (0.01, 1.0)}, {"variant": "PA-II"}),
    "AveragedRCNBF": Entrant("AveragedRCNBF"),
    "AnytimeRCNBF": Entrant("AnytimeRCNBF", {}),
    "RCINE-NREst": Entrant("RCINE-NREst"),
    "RCINE-NREst-one-hot": Entrant("RCINE-NREst-one-hot"),
    "VowpalWabbit": Entrant("VowpalWabbit", {"options": SETTINGS}),
    **{
        name: Entrant(name, {})
        for name in ("Perceptron", "LeastMeanSquares", "RidgeRegression", "Confidit", "Fliptron")
    },
}
"""Every learner of the reproduction, by the name that the report gives it."""
PAPER = ("Banditron", "BPA", "BPA, γ > 0", "BPA, γ = 0.014", "SOBA", "RCNBF", "RCINE")
VARIANTS = ("SOBA-full", "BPA, margin 0", "BPA, PA-I", "BPA, PA-II")
FIRST_ORDER = ("AveragedRCNBF", "AnytimeRCNBF", "LeastMeanSquares", "Perceptron")
SECOND_ORDER = ("RidgeRegression", "Confidit", "Fliptron")
SPARSE = {"mnist": (*PAPER, *VARIANTS, *FIRST_ORDER)}
"""Data sets of mostly zeros, and who plays without them: the errors are the same, in half the time. SECOND_ORDER
learners are of another form on sparse rows."""
NREST = ("RCINE-NREst", "RCINE-NREst-one-hot")

PARTS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "fig2": (tuple(MAIN), PAPER),
    "fig3": (("optdigits",), ("RCINE",)),
    "table1": (("optdigits", "usps", "fashion-features"), ("RCINE",)),
    "table2": (tuple(EXTRA), ("RCINE",)),
    "appendix": (tuple(EXTRA), PAPER),
    "variants": (ALL, VARIANTS),
    "beyond": (ALL, (*FIRST_ORDER, *SECOND_ORDER, "VowpalWabbit")),
    "nrest": (tuple(PUBLISHED), NREST),
}
"""The parts that can be asked for: their data sets and their entrants."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Entrants that play one horizon: pilots choose their settings, then the runs are played."""

    rounds: int
    names: tuple[str, ...]
    seeds: int
    pilots: int = 0
    """Seeds of the pilots, each a third as long as a run."""
    datasets: tuple[str, ...] = ALL
    noise: tuple[tuple[float, float], ...] = NOISE
    after: int | None = None
    """The shorter horizon whose choices its pilots start from."""
    by: str | None = None
    """The entrant whose choices of stage `after` it plays by, without pilots of its own."""
    sweep: bool = False
    """Play the whole grid, for a figure, not only the best of it."""

    @property
    def pilot_rounds(self) -> int:
        """A third of the horizon."""
        return -(-self.rounds // 3)


@dataclass(frozen=True, slots=True)
class Scale:
    """How much of it to run, stage by stage."""

    stages: tuple[Stage, ...]
    parts: tuple[str, ...]
    """What is run when no parts are asked for."""
    beyond: int
    """The horizon at which all learners meet."""
    climbs: int = 12
    """How often rungs beside the best are added to the pilots' grids."""
    swap: Mapping[str, str] = field(default_factory=dict)
    """Data sets that stand for others."""

    @property
    def horizons(self) -> tuple[int, ...]:
        """Of the paper's learners."""
        return tuple(dict.fromkeys(stage.rounds for stage in self.stages if stage.names == PAPER))


def _desk(first: int, beyond: int, seeds: int, pilots: int, peers: int) -> tuple[Stage, ...]:
    """The stages that every scale has."""
    return (
        Stage(beyond, (*PAPER, *FIRST_ORDER), seeds, pilots),
        Stage(first, PAPER, seeds, pilots),
        Stage(first, FIRST_ORDER, seeds, pilots),
        Stage(first, ("RCINE",), seeds, datasets=("optdigits", "digits"), sweep=True),
        Stage(beyond, ("Fliptron",), seeds),
        Stage(beyond, ("RidgeRegression", "Confidit"), seeds, datasets=SMALL),
        Stage(beyond, ("VowpalWabbit",), peers, 1, datasets=TINY),
    )


def _nrest(first: int, rounds: int, longest: int, seeds: int = 3) -> tuple[Stage, ...]:
    """The published estimator: every cell on one seed, two cells on three, one with the label one-hot, one longer."""
    return (
        Stage(rounds, ("RCINE-NREst",), 1, after=first, by="RCINE"),
        Stage(rounds, ("RCINE-NREst",), seeds, noise=((0.2, 0.4), (0.4, 0.4)), after=first, by="RCINE"),
        Stage(rounds, ("RCINE-NREst-one-hot",), 1, noise=((0.2, 0.4),), after=first, by="RCINE"),
        Stage(longest, ("RCINE-NREst",), 1, datasets=("iris",), noise=((0.2, 0.4),), after=first, by="RCINE"),
    )


_USUAL = tuple(part for part in PARTS if part not in ("variants", "nrest"))
SCALES = {
    "smoke": Scale(
        (*_desk(6000, 2000, 2, 1, 1), *_nrest(6000, 60_000, 120_000, 1)),
        _USUAL,
        2000,
        climbs=0,
        swap={
            "optdigits": "digits",
            "mnist": "digits",
            "usps": "digits",
            "fashion-features": "digits",
            "synsep": "iris",
        },
    ),
    "desk": Scale((*_desk(10**6, 10**5, 10, 2, 3), *_nrest(10**6, 10**6, 10**7)), _USUAL, 10**5),
    "paper": Scale(
        (
            *_desk(10**6, 10**5, 10, 2, 3),
            Stage(10**7, PAPER, 10, 2, datasets=SMALL, after=10**6),
            Stage(10**7, PAPER, 5, 2, datasets=WIDE, after=10**6),
            Stage(10**7, FIRST_ORDER, 5, 2, datasets=SMALL, after=10**6),
            Stage(10**7, FIRST_ORDER, 3, 2, datasets=WIDE, after=10**6),
            Stage(10**7, ("RCINE",), 5, datasets=("optdigits",), sweep=True),
            Stage(10**6, VARIANTS[:1], 3, 1, datasets=TINY),
            Stage(10**6, VARIANTS[1:], 5, 2),
            *_nrest(10**6, 10**6, 10**7),
        ),
        tuple(PARTS),
        10**5,
    ),
}


def parts_of(scale: Scale, only: Sequence[str] = (), without: Sequence[str] = ()) -> tuple[str, ...]:
    """The parts to run: those of the scale, or those asked for, less those to leave out."""
    for part in (*only, *without):
        if part not in PARTS:
            raise InputError(f"{part!r} is not a part of the paper; some of {', '.join(PARTS)} are expected")
    return tuple(part for part in only or scale.parts if part not in without)


def cells(scale: Scale, stage: Stage, parts: Sequence[str]) -> dict[str, list[str]]:
    """The entrants that the parts want of a stage, each with its data sets."""
    wanted: dict[str, list[str]] = {}
    for part in parts:
        datasets, names = PARTS[part]
        if (part == "fig3") != stage.sweep:
            continue
        for name in names:
            here = wanted.setdefault(name, [])
            stand = dict.fromkeys(scale.swap.get(dataset, dataset) for dataset in datasets)
            allowed = (*stage.datasets, *(scale.swap.get(dataset, dataset) for dataset in stage.datasets))
            here += [dataset for dataset in stand if dataset in allowed and dataset not in here]
    return {name: datasets for name, datasets in wanted.items() if name in stage.names and datasets}
