"""One-vs-all perceptrons for classes that are separable by a margin: linear, and with a kernel."""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np

from fliptron.arrays import SHORTEST, Array, Row
from fliptron.kernels.compiling import PART, compiled
from fliptron.kernels.loop import (
    Choice,
    Scratch,
    best_eligible,
    chooses,
    count_eligible,
    learns,
    nth_eligible,
    score,
    scores,
)
from fliptron.kernels.rows import index, size, value
from fliptron.kernels.vectors import add, square
from fliptron.learners.base import Learner
from fliptron.learners.memory import check_memory
from fliptron.refusals import whole


class SeparableState(NamedTuple):
    """Weights alone."""

    W: Array
    scores: Scratch


class KernelState(NamedTuple):
    """The examples that taught something, and their part in every label's score."""

    scores: Scratch
    examples: Array  # N×d, each of length at most 1
    parts: Array  # K×N
    filled: Array  # how many examples there are, and where the next goes
    likeness: Scratch  # N: k(example, x) of the x last looked at


@chooses(SeparableState)
@chooses(KernelState)
def surest_or_any(state: SeparableState, x: Row, gamma: float, u: float, eligible: Array) -> Choice:
    """The label of highest score if that is not negative, any label otherwise."""
    score(state, x, state.scores)
    K, greedy = count_eligible(state.scores, eligible), best_eligible(state.scores, eligible)
    if state.scores[greedy] >= 0.0:
        return greedy, greedy, 1.0
    return nth_eligible(eligible, min(int(u * K), K - 1)), greedy, 1.0 / K


@compiled(**PART)
def direction(scores: Array, r: int, label: int, bit: int) -> float:
    """Which way label r's perceptron must step: up for a right label it doubted, down for a wrong one it held."""
    if r == label and bit == 1:
        return 1.0 if scores[r] <= 0.0 else 0.0
    return -1.0 if scores[r] >= 0.0 and (r == label or bit == 1) else 0.0


@learns(SeparableState)
def separable(state: SeparableState, x: Row, label: int, greedy: int, probability: float, feedback: int) -> None:
    """w_r += x or −x for every label whose perceptron the bit proves wrong."""
    score(state, x, state.scores)
    for r in range(state.scores.shape[0]):
        step = direction(state.scores, r, label, feedback)
        if step != 0.0:
            add(state.W, r, step, x)


@compiled(**PART)
def shrink(x: Row) -> float:
    """What makes x at most of length 1."""
    return 1.0 / max(sqrt(square(x)), 1.0)


@scores(KernelState)
def kernel_scores(state: KernelState, x: Row, out: Array) -> None:
    """Σ_i c_ri·k(x_i, x), with k(x, x') = 1/(1 − ½⟨x, x'⟩)."""
    out[:] = 0.0
    factor = 0.5 * shrink(x)
    for i in range(state.filled[0]):
        inner = 0.0
        for j in range(size(x)):
            inner += state.examples[i, index(x, j)] * value(x, j)
        state.likeness[i] = 1.0 / (1.0 - factor * inner)
        for r in range(out.shape[0]):
            out[r] += state.parts[r, i] * state.likeness[i]


@learns(KernelState)
def kernel_separable(state: KernelState, x: Row, label: int, greedy: int, probability: float, feedback: int) -> None:
    """The same on examples: x is kept if any label must step, if need be in the place of the oldest."""
    score(state, x, state.scores)
    K, N, at = state.scores.shape[0], state.examples.shape[0], state.filled[1]
    moved = False
    for r in range(K):
        moved |= direction(state.scores, r, label, feedback) != 0.0
    if not moved or square(x) < SHORTEST**2:
        return
    factor = shrink(x)
    state.examples[at] = 0.0
    for j in range(size(x)):
        state.examples[at, index(x, j)] = factor * value(x, j)
    for r in range(K):
        state.parts[r, at] = direction(state.scores, r, label, feedback)
    state.filled[0] = min(state.filled[0] + 1, N)
    state.filled[1] = (at + 1) % N


class Separable(Learner):
    r"""One perceptron for each label; it explores only where none of them claims the example.

    If some label has :math:`w_r \cdot x \ge 0`, the highest is played; otherwise any label, with equal chances. A bit
    proves perceptrons wrong, and those step:

    .. math::

        f = 1:\quad w_{\tilde y} \leftarrow w_{\tilde y} + x \;\text{ if } w_{\tilde y} \cdot x \le 0,
        \qquad w_j \leftarrow w_j - x \;\text{ for } j \ne \tilde y,\ w_j \cdot x \ge 0

        f = 0:\quad w_{\tilde y} \leftarrow w_{\tilde y} - x \;\text{ if } w_{\tilde y} \cdot x \ge 0

    Where every class is separated from the rest by a margin, the number of mistakes is bounded by K over the squared
    margin, however many rounds there are. It has no defence against flipped bits: a right label told as wrong is pushed
    away, and a wrong one told as right pushes all others away. Where classes are separated, ρ1 ruins it and ρ0 does
    little harm: once it has learnt, hardly a round is wrong that could be told as right, and any round may be told as
    wrong.

    Parameters
    ----------
    n_classes, n_features
        K ≥ 2 labels, d ≥ 1 features.
    dtype
        Precision of the weights, "float64" or "float32".
    seed
        Of the choice where no label claims the example.

    Examples
    --------
    >>> learner = Separable(n_classes=3, n_features=2, seed=1)
    >>> learner.learn([0.6, 0.8], learner.decide([0.6, 0.8]), 0)
    >>> learner.weights[0]
    array([-0.6, -0.8])

    References
    ----------
    Beygelzimer, Pál, Szörényi, Thiruvenkatachari, Wei & Zhang (2019), "Bandit multiclass linear classification:
    efficient algorithms for the separable case", Algorithm 1.
    """

    by_feature = True

    def __init__(self, *, n_classes: int, n_features: int, dtype: str = "float64", seed: int = 0) -> None:
        super().__init__(n_classes=n_classes, n_features=n_features, gamma=0.0, seed=seed, dtype=dtype)

    def _start(self) -> SeparableState:
        return SeparableState(self._weights(), self._scores())


class KernelSeparable(Learner):
    r"""`Separable` with a kernel that separates whatever intersections of half-spaces separate.

    .. math::

        k(x, x') = \frac{1}{1 - \frac12 \langle x, x' \rangle}, \qquad \|x\| \le 1

    Scores are sums over the examples that taught something. At most `budget` of them are kept: beyond that, a new one
    takes the place of the oldest, and the bound of the paper no longer holds. A round costs O(examples·(d + K)). Longer
    examples are scaled to length 1.

    Parameters
    ----------
    n_classes, n_features
        K ≥ 2 labels, d ≥ 1 features.
    budget
        How many examples are kept, from 1 to 10⁷.
    seed
        Of the choice where no label claims the example.

    Examples
    --------
    >>> learner = KernelSeparable(n_classes=3, n_features=2, budget=100)
    >>> learner.learn([0.6, 0.8], learner.decide([0.6, 0.8]), 0)
    >>> learner.scores([[0.6, 0.8]])
    array([[-2.,  0.,  0.]])

    References
    ----------
    Beygelzimer et al. (2019), Algorithm 2 and its kernel.
    """

    def __init__(self, *, n_classes: int, n_features: int, budget: int = 2000, seed: int = 0) -> None:
        self.budget = whole("budget", budget, 1, 10**7)
        super().__init__(n_classes=n_classes, n_features=n_features, gamma=0.0, seed=seed)

    def _start(self) -> KernelState:
        K, d, N = self.n_classes, self.n_features, self.budget
        check_memory("KernelSeparable", N * (d + K + 1), "a smaller budget")
        return KernelState(
            self._scores(),
            examples=np.zeros((N, d)),
            parts=np.zeros((K, N)),
            filled=np.zeros(2, dtype=np.int64),
            likeness=np.zeros(N),
        )

    @property
    def weights(self) -> Array:
        """The part of every kept example in every label's score (K×budget, a copy)."""
        with self.held():
            return np.array(self.state.parts)

    def _bounds(self) -> dict[str, tuple[float, float]]:
        return {"filled": (0, self.budget), "parts": (-1.0, 1.0), "examples": (-1.000001, 1.000001)}

    def _flaw(self) -> str:
        count, place = self.state.filled
        if place >= self.budget or (count < self.budget and place != count):
            return f"its next example goes to place {place} of {self.budget}"
        lengths = np.sqrt((self.state.examples**2).sum(axis=1))
        return "" if (lengths <= 1.000001).all() else "an example is longer than 1"
