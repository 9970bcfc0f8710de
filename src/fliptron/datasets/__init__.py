"""Data sets: by name, by path, or from arrays."""

from fliptron.datasets.dataset import Dataset
from fliptron.datasets.registry import REGISTRY, load, names

__all__ = ["REGISTRY", "Dataset", "load", "names"]
