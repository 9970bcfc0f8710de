"""Learners, one family a file."""

from fliptron.learners.banditron import RCNBF, AveragedRCNBF, Banditron
from fliptron.learners.base import Learner
from fliptron.learners.fliptron import Fliptron
from fliptron.learners.passive_aggressive import BPA
from fliptron.learners.perceptron import Perceptron
from fliptron.learners.rcine import RCINE
from fliptron.learners.regression import Confidit, LeastMeanSquares, RidgeRegression
from fliptron.learners.second_order import SOBA

__all__ = [
    "BPA",
    "RCINE",
    "RCNBF",
    "SOBA",
    "AveragedRCNBF",
    "Banditron",
    "Confidit",
    "Fliptron",
    "Learner",
    "LeastMeanSquares",
    "Perceptron",
    "RidgeRegression",
]
