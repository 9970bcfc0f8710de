"""What a half-life does: every sixteenth of it, what was learnt fades a little, and the prior takes its place."""

from __future__ import annotations

import sys

import numpy as np

from fliptron.arrays import Array
from fliptron.learners import axes
from fliptron.learners.belief import PRIOR
from fliptron.learners.channel import DOUBTFUL, FORGOT, LEARNT, SURE, fade
from fliptron.learners.filtering import STORED, FliptronState
from fliptron.noise.plateaus import faded

_STEPS = 16
_FEWEST = 100.0  # bits of either kind that forgetting leaves


def rounds_left(counts: Array, half_life: float | None) -> int:
    """How many rounds may be learnt before something is forgotten."""
    if half_life is None:
        return sys.maxsize
    return int(half_life / _STEPS) - int(counts[LEARNT] - counts[FORGOT])


def forget_a_little(state: FliptronState, form: str) -> None:
    """Let information fade by a factor, and counts as well."""
    counts, covariance, keep = state.counts, state.covariance, 0.5 ** (1 / _STEPS)
    counts[FORGOT] = counts[LEARNT]
    for variances in (state.rest, *([covariance] if form == "diagonal" else [])):
        variances[:] = 1.0 / (keep / variances + (1 - keep) / PRIOR)
    if form != "diagonal":
        n = int(state.taken[axes.FOUND]) if form == "axes" else covariance.shape[1]  # the rest is empty
        prior = state.prior if form == "full" else np.full(n, PRIOR)
        for r, matrix in enumerate(covariance[:, :n, :n].astype(np.float64)):
            information = keep * np.linalg.inv((matrix + matrix.T) / 2) + np.diag((1 - keep) / prior)
            covariance[r, :n, :n] = np.linalg.inv(information)
    for kind, doubtful in ((DOUBTFUL, True), (SURE, False)):
        fade(counts, state.labels, max(keep, min(1.0, _FEWEST / max(counts[kind], 1.0))), doubtful)
    for speed, part in enumerate((keep, keep**4)):
        state.memory[speed] = faded(state.memory[speed], part)
    state.fresh[STORED] = -1
