"""Counted randomness: a draw is a function of (seed, purpose, round), never of what was drawn before.

SplitMix64 (Steele, Lea & Flood 2014) read at a position. The same seed gives every learner the same rows
and flips, on any engine, however the rounds are cut into blocks.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fliptron.arrays import Array
from fliptron.kernels.compiling import PART, STEP, compiled

ROWS, FLIPS, CHOICES = 1, 2, 3
"""Purposes: independent sequences from one seed."""


@compiled(**PART)
def mix(z: Any) -> Any:
    """Scramble 64 bits."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@compiled(**STEP)
def make_key(seed: int, purpose: int) -> Any:
    """The key of one sequence."""
    return mix(mix(np.uint64(seed)) + np.uint64(purpose) * np.uint64(0xD1B54A32D192ED03))


@compiled(**STEP)
def uniform(key: Any, t: int) -> float:
    """Draw t of a sequence, in [0, 1)."""
    z = mix(key + np.uint64(t + 1) * np.uint64(0x9E3779B97F4A7C15))
    return np.float64(z >> np.uint64(11)) * 2.0**-53


@compiled(nogil=True)
def uniforms(key: Any, start: int, out: Array) -> None:
    """Draws start, start + 1, … of a sequence."""
    for i in range(out.shape[0]):
        out[i] = uniform(key, start + i)


@compiled(nogil=True)
def resample(key: Any, start: int, n_rows: int, out: Array) -> None:
    """Rows of rounds start, start + 1, …, each drawn with replacement."""
    for i in range(out.shape[0]):
        out[i] = int(uniform(key, start + i) * n_rows)
