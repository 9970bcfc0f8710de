"""Fliptron: learn from right-or-wrong bits that are sometimes flipped."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fliptron.auditing import audit
    from fliptron.channel import FlipChannel
    from fliptron.checks import check_learner
    from fliptron.datasets.dataset import Dataset
    from fliptron.datasets.registry import load
    from fliptron.exploration import Exploration
    from fliptron.learners.banditron import RCNBF, AveragedRCNBF, Banditron
    from fliptron.learners.base import Learner
    from fliptron.learners.fliptron import Fliptron
    from fliptron.learners.passive_aggressive import BPA
    from fliptron.learners.perceptron import Perceptron
    from fliptron.learners.rcine import RCINE
    from fliptron.learners.regression import Confidit, LeastMeanSquares, RidgeRegression
    from fliptron.learners.second_order import SOBA
    from fliptron.logs.tables import read_log, write_log
    from fliptron.noise.estimate import Estimate
    from fliptron.noise.plateaus import Plateaus
    from fliptron.noise.published import NREst
    from fliptron.refusals import InputError
    from fliptron.rounds import Decision, Learns, Rates, Rounds, Trace
    from fliptron.simulation import simulate
    from fliptron.stream import Stream

__version__ = "0.2.0.dev0"

_HOMES = {
    "auditing": ("audit",),
    "channel": ("FlipChannel",),
    "checks": ("check_learner",),
    "datasets.dataset": ("Dataset",),
    "datasets.registry": ("load",),
    "exploration": ("Exploration",),
    "learners.banditron": ("RCNBF", "AveragedRCNBF", "Banditron"),
    "learners.base": ("Learner",),
    "learners.fliptron": ("Fliptron",),
    "learners.passive_aggressive": ("BPA",),
    "learners.perceptron": ("Perceptron",),
    "learners.rcine": ("RCINE",),
    "learners.regression": ("Confidit", "LeastMeanSquares", "RidgeRegression"),
    "learners.second_order": ("SOBA",),
    "logs.tables": ("read_log", "write_log"),
    "noise.estimate": ("Estimate",),
    "noise.plateaus": ("Plateaus",),
    "noise.published": ("NREst",),
    "refusals": ("InputError",),
    "rounds": ("Decision", "Learns", "Rates", "Rounds", "Trace"),
    "simulation": ("simulate",),
    "stream": ("Stream",),
}
_MODULES = {name: f"fliptron.{module}" for module, names in _HOMES.items() for name in names}

__all__ = sorted(_MODULES)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    """Load what is asked for, when it is asked for: `import fliptron` alone costs nothing."""
    if name not in _MODULES:
        raise AttributeError(f"module 'fliptron' has no attribute {name!r}")
    found = getattr(importlib.import_module(_MODULES[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
