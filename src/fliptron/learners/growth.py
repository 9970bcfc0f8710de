"""A learner grows: it has room for another label, or for more features, of which nothing is known yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fliptron.arrays import Array
from fliptron.kernels import loop
from fliptron.refusals import InputError

if TYPE_CHECKING:
    from fliptron.learners.base import Learner


def grow(learner: Learner, **larger: Any) -> None:
    """Give a learner a larger state that begins with what it knows; a learner that cannot grow stays as it is.

    Parameters
    ----------
    learner
        The learner.
    larger
        Its new `n_classes` or `n_features`, and whatever else of it has to change with them.
    """
    with learner.held():
        before, known, layout, d = vars(learner).copy(), learner._arrays(), learner._layout, learner.n_features
        vars(learner).update(larger)
        try:
            learner.state, learner._layout = learner._start(), None
            learner.arrange(layout)
            for name, fresh in learner._arrays().items():
                if not _take_over(fresh, known[name], d, learner.n_features):
                    kind = type(learner).__name__
                    raise InputError(
                        f"a {kind} cannot take new features: its arrays are not laid out feature by feature"
                    )
        except InputError:  # also where there is no room for so many
            vars(learner).update(before)
            raise
        learner.turn[loop.FEATURES] = learner.n_features
        learner.turn[loop.FEEDBACK] = learner.n_classes if learner.full_information else 2
        learner._dense = learner._sparse = None
        learner._among = {}


def _take_over(fresh: Array, known: Array, d: int, wider: int) -> bool:
    """Let an array begin with what was known. Whether that can be: new features need an axis of their own."""
    if fresh.size == 0:  # the new form does not keep this
        return True
    if known.ndim == fresh.ndim + 1:  # whole covariances have grown too large; their diagonals are kept
        known = np.diagonal(known, axis1=-2, axis2=-1)
    grown = {pair for pair in zip(known.shape, fresh.shape, strict=True) if pair[0] != pair[1]}
    if wider > d and not grown <= {(d, wider)}:
        return False
    fresh[tuple(slice(0, size) for size in known.shape)] = known
    return True
