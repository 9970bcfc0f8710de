"""How many rows are decided on at once: by the step of one round, again and again, without Python in between."""

from __future__ import annotations

from typing import Any

from fliptron.arrays import Array
from fliptron.kernels.compiling import compiled
from fliptron.kernels.loop import decide_one
from fliptron.kernels.vectors import lead


@compiled(_nrt=False)
def decide_rows(state: Any, turn: Array, key: int, X: Array, x: Array, out: Array) -> None:
    """Label, greedy label, probability and margin of each row; raises what the step raises for one that is not let in.

    It keeps Python's lock, as a step does. That is why rows are widened here, each in its turn to x: NumPy would let
    the lock go for many, and wait to get it back.
    """
    for i in range(X.shape[0]):
        for j in range(x.shape[0]):
            x[j] = X[i, j]
        label, greedy, probability = decide_one(state, turn, key, x)
        out[i, 0], out[i, 1], out[i, 2], out[i, 3] = label, greedy, probability, lead(state.scores, greedy)
