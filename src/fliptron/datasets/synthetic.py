"""Made-up data: SynSep and SynNonSep of the Banditron paper, and visitors with a taste for one of some offers."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from fliptron.arrays import Array
from fliptron.refusals import whole

CLASSES, FEATURES = 9, 400
_CLASS_BITS = 120  # the first coordinates, which tell the class; the other 280 are noise

_CHUNK = 10_000  # rows drawn at a time
_MOST = 10**7  # some 8 GB while they are made


def synsep(n_rows: int = 100_000, *, seed: int = 0, label_noise: float = 0.0) -> tuple[sp.csr_array, Array]:
    """Nine classes of binary vectors in 400 dimensions, linearly separable.

    Once, each class draws 20 to 40 on-bits among the first 120 coordinates. Each example copies the
    bits of its class, turns 5 of them off, and turns 20 of the last 280 on. SynNonSep is the same with
    `label_noise` 0.05: that share of labels is then replaced by another class.

    References
    ----------
    Kakade, Shalev-Shwartz & Tewari (2008), section 6.
    """
    n_rows = whole("rows", n_rows, 1, _MOST)
    random = np.random.default_rng([whole("seed", seed, 0), 400])
    bits = [random.choice(_CLASS_BITS, size=random.integers(20, 41), replace=False) for _ in range(CLASSES)]
    y = random.integers(CLASSES, size=n_rows)
    rows: list[Array] = []
    columns: list[Array] = []
    for label in range(CLASSES):
        members = np.flatnonzero(y == label)
        kept = _choose(random, members.size, bits[label].size, bits[label].size - 5)
        noise = _choose(random, members.size, FEATURES - _CLASS_BITS, 20)
        on = np.hstack([bits[label][kept], _CLASS_BITS + noise])
        rows.append(np.repeat(members, on.shape[1]))
        columns.append(on.ravel())
    at = np.concatenate(rows), np.concatenate(columns)
    X = sp.csr_array((np.ones(at[0].size), at), shape=(n_rows, FEATURES))
    wrong = random.random(n_rows) < label_noise
    return X, np.where(wrong, (y + random.integers(1, CLASSES, size=n_rows)) % CLASSES, y)


def clicks(n_rows: int = 100_000, *, offers: int = 6, traits: int = 12, seed: int = 0) -> tuple[Array, Array]:
    """Visitors of a shop, each with normally distributed traits, a constant among them, who want one of some offers.

    A visitor wants the offer of highest value: a linear function of the traits, the same for all visitors, and a
    Gumbel-distributed whim. The whims make about one visitor in fifteen want another offer than the traits say.
    """
    n_rows = whole("rows", n_rows, 1, _MOST)
    random = np.random.default_rng([whole("seed", seed, 0), offers])
    taste = 2.0 * random.standard_normal((traits, offers))
    X = random.standard_normal((n_rows, traits))
    y = (X @ taste + 0.5 * random.gumbel(size=(n_rows, offers))).argmax(axis=1)
    return np.hstack([X, np.ones((n_rows, 1))]), y


def _choose(random: np.random.Generator, times: int, among: int, size: int) -> Array:
    """`size` distinct numbers below `among`, again for each of `times` rows."""
    chunks = [
        np.argpartition(random.random((min(_CHUNK, times - start), among)), size - 1, axis=1)[:, :size]
        for start in range(0, times, _CHUNK)
    ]
    return np.concatenate(chunks) if chunks else np.empty((0, size), dtype=np.int64)
