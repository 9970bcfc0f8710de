"""Estimators of the flip rates."""

from fliptron.noise.estimate import Estimate
from fliptron.noise.plateaus import Plateaus
from fliptron.noise.published import NREst
from fliptron.noise.window import RateEstimator, Window

__all__ = ["Estimate", "NREst", "Plateaus", "RateEstimator", "Window"]
