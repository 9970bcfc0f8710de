r"""Whether the probabilities of a log fit its labels and its features.

Let P be the probability with which label ỹ was played in a round that x describes. Then 1/P counts every label once per
round, whatever x is:

.. math::

    \mathbb{E}\bigl[g(x)\,(1[\tilde{y} = r]/P - 1)\bigr] = 0

for every label r and every number g(x). With g = 1 that fails where probabilities belong to other rounds; with g a
feature also where they only say how often a label was played over all, and where that feature was written after the
label was chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fliptron.arrays import Array

_ENOUGH = 500_000  # rounds
_MOST = 250_000  # sums of one kind
_WORTH = 100.0  # rounds that a sum of 1/P must be worth
_ERRORS, _SLACK = 5.0, 0.1  # by which a label may be off: standard errors, and times in a round
_SURELY, _APART = 6.0, 0.2  # by which a feature may be off: standard errors, and its standard deviations
_UNSEEN = 14.0  # rounds that chance may leave out where so many were to be: one in a million
_FAR = 2.0  # standard deviations at which a feature may lie in them
_NAMED = 3


class Balance:
    """Sums over rounds that tell whether 1/P counts each label once.

    Parameters
    ----------
    labels
        What the labels are called.
    columns
        The column that each place of x tells of, the constant first.
    """

    def __init__(self, labels: Sequence[Any], columns: Sequence[str]) -> None:
        self._labels = list(labels)
        self._columns = list(columns[: max(_MOST // len(self._labels), 1)])
        K, places = len(self._labels), len(self._columns)
        self._n, self._longest = 0, 0.0  # rounds, and the largest w = 1/P
        self._g, self._gg = np.zeros((2, places))
        self._wg, self._wgg, self._wwg, self._wwgg = np.zeros((4, K, places))  # over the rounds that played a label

    def add(self, X: Any, label: Array, probability: Array) -> None:
        """Take in rounds, unless there were enough: their x, and the label that was played with its probability."""
        import scipy.sparse as sp  # noqa: PLC0415  # slow to load

        if self._n >= _ENOUGH or not len(label):
            return
        K, w, G = len(self._labels), 1.0 / probability, X[:, : len(self._columns)]
        constant, sparse = G[:, [0]], sp.issparse(G)  # to divide by it undoes that x was scaled to length 1
        G = sp.diags_array(1.0 / constant.toarray().ravel()).tocsr() @ G if sparse else G / constant
        self._n, self._longest = self._n + len(w), max(self._longest, float(w.max()))
        once, twice = (sp.csc_array((each, label, np.arange(len(w) + 1)), shape=(K, len(w))) for each in (w, w**2))
        GG = G**2
        self._g += G.sum(axis=0)
        self._gg += GG.sum(axis=0)
        self._wg += once @ G
        self._wgg += once @ GG
        self._wwg += twice @ G
        self._wwgg += twice @ GG

    @property
    def doubt(self) -> str:
        """What does not fit, in a sentence; nothing if all may be well, or if too little is known."""
        n, K = self._n, len(self._labels)
        if n < _WORTH:
            return ""
        known = self._wg[:, 0] ** 2 > _WORTH * self._wwg[:, 0]
        unseen = _UNSEEN * self._longest / n
        off, error = self._sums(1)
        odd = known & (np.abs(off[:K, 0]) > _ERRORS * error[:K, 0] + _SLACK + unseen)
        if odd.any():
            r = int(np.argmax(np.where(odd, np.abs(off[:K, 0]), 0.0)))
            return (
                f"by 1/probability {self._labels[r]!r} was played {1 + off[r, 0]:.3g} times in a round and not once: "
                "the probabilities are not those of these rounds, or that label could not always be played"
            )
        shift, error = self._sums(len(self._columns))
        far = (np.abs(shift) > _SURELY * error) & (np.abs(shift) > _APART + _FAR * unseen)
        worst = np.where(far & np.append(known, known.all())[:, None], np.abs(shift), 0.0).max(axis=0)
        order = np.argsort(-worst, kind="stable")
        names = list(dict.fromkeys(self._columns[at] for at in order if worst[at] > 0.0 and self._columns[at]))
        if not names:
            return ""
        some = ", ".join(map(repr, names[:_NAMED])) + (f" and {len(names) - _NAMED} more" if names[_NAMED:] else "")
        one = len(names) == 1
        what, they = (f"column {some} differs", "it was") if one else (f"columns {some} differ", "they were")
        return (
            f"{what} by the label that was played, which the probabilities do not explain: {they} written after the "
            "choice, and must be no feature, or the probabilities are not those of these rounds"
        )

    def _sums(self, places: int) -> tuple[Array, Array]:
        """The mean of (w − 1)g over rounds, with w = 0 where a label was not played, and its standard error.

        One row for each label and one for their mean. Features are centred and scaled; a constant is 1.
        """
        n, K = self._n, len(self._labels)
        g, gg, wg, wgg, wwg, wwgg = (
            sums[..., :places] for sums in (self._g, self._gg, self._wg, self._wgg, self._wwg, self._wwgg)
        )
        t, tg, ttg, ttgg = self._wg[:, :1] - n, wg - g, wwg - 2 * wg + g, wwgg - 2 * wgg + gg
        total = [each.sum(axis=0) for each in (wg, wgg, wwg, wwgg)]
        tg = np.vstack([tg, total[0] / K - g])
        ttg = np.vstack([ttg, total[2] / K**2 - 2 * total[0] / K + g])
        ttgg = np.vstack([ttgg, total[3] / K**2 - 2 * total[1] / K + gg])
        if places == 1:
            return tg / n, np.sqrt(np.maximum(ttgg, 0.0)) / n
        t = np.vstack([t, t.mean(axis=0)])
        mean = g / n
        spread = np.sqrt(np.maximum(gg / n - mean**2, 0.0))
        spread[spread < 1e-9] = np.inf
        squares = ttgg - 2 * mean * ttg + mean**2 * ttgg[:, :1]
        return (tg - t * mean) / (n * spread), np.sqrt(np.maximum(squares, 0.0)) / (n * spread)
