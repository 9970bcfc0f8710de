r"""Curves: products and waves of pairs of numbers, beside the numbers themselves, for classes that are not linear.

Let z be the numbers of a record, centred and scaled. Some curves are products :math:`z_i z_j`, squares among them,
centred and scaled as the numbers are: all of them where there are at most 22 numbers and K·d² leaves room for as many,
since the one that matters cannot be guessed. The others, 64 or more, are random Fourier features (Rahimi and Recht,
2007) of two numbers each,

.. math::

    \cos(a\,z_i + b\,z_j + c), \qquad a, b \sim \mathcal{N}(0, 2g), \quad c \sim \mathcal{U}(0, 2\pi)

with widths g from 1/4 to 2. Waves of all numbers at once were tried: a few columns of noise spoil each of them, and
only some of those of pairs.

The curves are short against the rest. To a learner with a prior on its weights, such as `Fliptron` or a ridge
regression, that says: a straight answer is likelier than a curved one. Where classes are linear, their weights stay
small. `Fliptron` also widens the prior of single curves that turn out to matter.
"""

from __future__ import annotations

from math import cos, sqrt
from typing import NamedTuple

import numpy as np

from fliptron.arrays import Array
from fliptron.encoding.scaling import scale
from fliptron.kernels.compiling import STEP, compiled

MOST = 128
"""Curves, where there is room for them: twice as many gained little on made-up tables and cost three times as much."""
PRODUCTS, WAVES = 256, 64
"""Where all products are no more than so many, they are all there, beside at least so many waves."""
LEAST = 32
"""Fewer are not worth having."""
ROOM = 2**19
"""The most numbers K·d² of a learner with whole matrices; as `Fliptron` decides."""
LENGTH = 0.3
"""Of 64 products, and of the waves, against the rest. Larger ones bend faster, but from 0.5 on noisy linear tables
lose a tenth and more."""
_WIDTHS = 0.25, 2.0


class Curves(NamedTuple):
    """Which curves there are: first the products, then the waves."""

    pairs: Array
    """Which two numbers each is made of."""
    slopes: Array
    """a and b of each wave."""
    phases: Array
    """c of each wave."""


def room_for(n_classes: int, n_features: int, numbers: int) -> int:
    """How many curves a learner of K labels and d features, some of them numbers, has room for."""
    products = numbers * (numbers + 1) // 2
    wanted = max(MOST, products + WAVES) if products <= PRODUCTS else MOST
    free = min(int(sqrt(ROOM / n_classes)) - n_features, wanted)
    return free if free >= LEAST else 0


def draw(numbers: int, count: int, seed: int = 0) -> Curves:
    """Curves of so many numbers: products, all if they are few, else some, half of them squares; then waves.

    Half of the curves are waves where there are many products; where there are few and no room for all, 64.
    """
    random = np.random.default_rng([seed, numbers, count])
    first, second = np.triu_indices(numbers)
    squares, mixed = np.flatnonzero(first == second), np.flatnonzero(first != second)
    wanted = max(count // 2, count - WAVES) if first.size <= PRODUCTS else count // 2
    if first.size > wanted:
        squares = random.permutation(squares)[: wanted // 2]
        mixed = random.permutation(mixed)[: wanted - squares.size]
    products = np.concatenate([squares, mixed])[:count]
    waves = count - products.size
    others = np.array([random.choice(numbers, 2, replace=numbers < 2) for _ in range(waves)], np.int64).reshape(-1, 2)
    widths = np.exp(random.uniform(np.log(_WIDTHS[0]), np.log(_WIDTHS[1]), waves))
    slopes = random.standard_normal((waves, 2)) * np.sqrt(2 * widths)[:, None]
    pairs = np.vstack([np.column_stack([first[products], second[products]]), others]).astype(np.int64)
    return Curves(pairs, slopes, random.uniform(0, 2 * np.pi, waves))


@compiled(**STEP)
def bend(curves: Curves, moments: Array, X: Array, straight: int, update: bool) -> None:
    """Fill in the curves of each row, behind its first `straight` places: products by the running moments that follow
    those of the numbers."""
    count, waves = curves.pairs.shape[0], curves.phases.shape[0]
    products, numbers = count - waves, moments.shape[1] - (count - waves)
    each = LENGTH / sqrt(max(min(products, WAVES), 1))  # more of them are not shorter: only a few will matter
    for i in range(X.shape[0]):
        total = 0.0
        for j in range(straight):
            total += X[i, j] * X[i, j]
        length = sqrt(total)
        for c in range(count):
            u, v = X[i, 1 + curves.pairs[c, 0]], X[i, 1 + curves.pairs[c, 1]]
            if c < products:
                X[i, straight + c] = length * each * scale(moments, numbers + c, u * v, update)
            else:
                w = c - products
                angle = curves.slopes[w, 0] * u + curves.slopes[w, 1] * v + curves.phases[w]
                X[i, straight + c] = length * LENGTH * sqrt(2.0 / waves) * cos(angle)
