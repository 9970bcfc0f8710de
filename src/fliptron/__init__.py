"""Fliptron: learn from right-or-wrong bits that are sometimes flipped."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fliptron.auditing import audit as audit
    from fliptron.channel import FlipChannel as FlipChannel
    from fliptron.checks import check_learner as check_learner
    from fliptron.datasets.dataset import Dataset as Dataset
    from fliptron.datasets.registry import load as load
    from fliptron.debiasing import debias as debias
    from fliptron.encoding.encoder import Encoder as Encoder
    from fliptron.encoding.schema import Schema as Schema
    from fliptron.evaluation import evaluate as evaluate
    from fliptron.exploration import Exploration as Exploration
    from fliptron.learners.alarms import Alarm as Alarm
    from fliptron.learners.anytime import AnytimeRCNBF as AnytimeRCNBF
    from fliptron.learners.base import Learner as Learner
    from fliptron.learners.decoding import RDUE as RDUE
    from fliptron.learners.delaytron import Delaytron as Delaytron
    from fliptron.learners.exact_passive_aggressive import EPABF as EPABF
    from fliptron.learners.fliptron import Fliptron as Fliptron
    from fliptron.learners.gappletron import Gappletron as Gappletron
    from fliptron.learners.newtron import Newtron as Newtron
    from fliptron.learners.passive_aggressive import BPA as BPA
    from fliptron.learners.perceptron import Perceptron as Perceptron
    from fliptron.learners.rcine import RCINE as RCINE
    from fliptron.learners.rcnbf import RCNBF as RCNBF
    from fliptron.learners.rcnbf import AveragedRCNBF as AveragedRCNBF
    from fliptron.learners.rcnbf import Banditron as Banditron
    from fliptron.learners.regression import (
        Confidit as Confidit,
    )
    from fliptron.learners.regression import (
        LeastMeanSquares as LeastMeanSquares,
    )
    from fliptron.learners.regression import (
        RidgeRegression as RidgeRegression,
    )
    from fliptron.learners.second_order import SOBA as SOBA
    from fliptron.learners.separable import KernelSeparable as KernelSeparable
    from fliptron.learners.separable import Separable as Separable
    from fliptron.learning import learn_log as learn_log
    from fliptron.logs.export import export_log as export_log
    from fliptron.logs.log import Log as Log
    from fliptron.logs.tables import read_log as read_log
    from fliptron.logs.tables import write_log as write_log
    from fliptron.noise.estimate import Estimate as Estimate
    from fliptron.noise.plateaus import Plateaus as Plateaus
    from fliptron.noise.published import NREst as NREst
    from fliptron.policy import Choice as Choice
    from fliptron.policy import Policy as Policy
    from fliptron.refusals import InputError as InputError
    from fliptron.rounds import Decision as Decision
    from fliptron.rounds import Learns as Learns
    from fliptron.rounds import Rates as Rates
    from fliptron.rounds import Rounds as Rounds
    from fliptron.rounds import Trace as Trace
    from fliptron.simulation import simulate as simulate
    from fliptron.stream import Stream as Stream

__version__ = "0.3.0"

_HOMES = {
    "auditing": ("audit",),
    "channel": ("FlipChannel",),
    "checks": ("check_learner",),
    "datasets.dataset": ("Dataset",),
    "datasets.registry": ("load",),
    "debiasing": ("debias",),
    "encoding.encoder": ("Encoder",),
    "encoding.schema": ("Schema",),
    "evaluation": ("evaluate",),
    "exploration": ("Exploration",),
    "learners.alarms": ("Alarm",),
    "learners.anytime": ("AnytimeRCNBF",),
    "learners.base": ("Learner",),
    "learners.decoding": ("RDUE",),
    "learners.delaytron": ("Delaytron",),
    "learners.exact_passive_aggressive": ("EPABF",),
    "learners.fliptron": ("Fliptron",),
    "learners.gappletron": ("Gappletron",),
    "learners.newtron": ("Newtron",),
    "learners.passive_aggressive": ("BPA",),
    "learners.perceptron": ("Perceptron",),
    "learners.rcine": ("RCINE",),
    "learners.rcnbf": ("RCNBF", "AveragedRCNBF", "Banditron"),
    "learners.regression": ("Confidit", "LeastMeanSquares", "RidgeRegression"),
    "learners.second_order": ("SOBA",),
    "learners.separable": ("KernelSeparable", "Separable"),
    "learning": ("learn_log",),
    "logs.export": ("export_log",),
    "logs.log": ("Log",),
    "logs.tables": ("read_log", "write_log"),
    "noise.estimate": ("Estimate",),
    "noise.plateaus": ("Plateaus",),
    "noise.published": ("NREst",),
    "policy": ("Choice", "Policy"),
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
