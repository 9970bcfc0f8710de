"""Fliptron: learn from right-or-wrong bits that are sometimes flipped."""

from fliptron.arrays import InputError
from fliptron.audit import audit
from fliptron.channel import FlipChannel
from fliptron.datasets import Dataset, load
from fliptron.exploration import Exploration
from fliptron.learners import (
    BPA,
    RCINE,
    RCNBF,
    SOBA,
    AveragedRCNBF,
    Banditron,
    Confidit,
    Fliptron,
    Learner,
    LeastMeanSquares,
    Perceptron,
    RidgeRegression,
)
from fliptron.logs import read_log, write_log
from fliptron.noise import Estimate, NREst, Plateaus
from fliptron.rounds import Decision, Rates, RoundLog, Trace
from fliptron.simulate import simulate
from fliptron.stream import Stream

__version__ = "0.1.0"

__all__ = [
    "BPA",
    "RCINE",
    "RCNBF",
    "SOBA",
    "AveragedRCNBF",
    "Banditron",
    "Confidit",
    "Dataset",
    "Decision",
    "Estimate",
    "Exploration",
    "FlipChannel",
    "Fliptron",
    "InputError",
    "Learner",
    "LeastMeanSquares",
    "NREst",
    "Perceptron",
    "Plateaus",
    "Rates",
    "RidgeRegression",
    "RoundLog",
    "Stream",
    "Trace",
    "audit",
    "load",
    "read_log",
    "simulate",
    "write_log",
]
