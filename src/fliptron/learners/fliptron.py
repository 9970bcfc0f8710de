"""Fliptron: a softmax seen through the noise, with error bars on every score, that learns the noise as it plays."""

from __future__ import annotations

from math import exp, log, sqrt
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from fliptron.arrays import SHORTEST, Array, Row
from fliptron.exploration import Exploration
from fliptron.kernels.compiling import STEP, compiled
from fliptron.kernels.loop import Choice, Scratch, chooses, learns
from fliptron.kernels.rows import index, size, value
from fliptron.kernels.vectors import argmax, scores_of, square
from fliptron.learners.base import Learner, check_memory
from fliptron.learners.belief import PRIOR, move, reset, variances
from fliptron.learners.bit_counts import (
    BLIND,
    BLIND_ONES,
    EVIDENCE,
    FORGOT,
    LEARNT,
    LEVEL,
    RESTARTS,
    SURE,
    SURE_ONES,
    UNIFORM,
    UNIFORM_ONES,
    count,
    estimate_of,
    rates_of,
    rates_to_learn_by,
)
from fliptron.noise.estimate import Estimate
from fliptron.refusals import one_of, real
from fliptron.rounds import Decision, Rates

REACH = 2.0
"""How many standard deviations above its mean a score may be imagined."""
WARM_UP = 150
"""Bits of uniform play that come first: they say what a random label earns."""
FULL = 2**20
"""The most numbers K·d² for which every label keeps a whole d×d covariance."""

_MACKAY = np.pi / 8  # E σ(s) ≈ σ(m/√(1 + πv/8)) for s ~ N(m, v)
_NEGLIGIBLE = 1e-3  # a step of fewer standard deviations is not taken
_ALARM = 8.0
_LEAST_ODDS = 1e-150  # of all other labels together: their square is still a number
_LEAST_SHARE = 2.0**-53


class FliptronState(NamedTuple):
    """A Gaussian belief about the weights, w_r ~ N(W_r, Σ_r), and counts of bits."""

    W: Array
    scores: Scratch
    covariance: Array  # K×d×d, of which the lower triangles count, or K×d: the diagonals only
    tallies: Array
    spreads: Scratch  # √(xᵀΣ_r x), for the x last looked at
    work: Scratch  # 4×K
    pulls: Scratch  # Σ_r x, if Σ is full
    powers: Scratch  # x², value by value
    seen: Scratch  # that x
    places: Scratch
    fresh: Scratch  # how many values it stores; −1: the belief has changed since


@compiled(**STEP)
def look(state: FliptronState, x: Row) -> None:
    """Mean and standard deviation of every score, unless x is the one last looked at and nothing has changed."""
    n = size(x)
    if state.fresh[0] == n:
        same = True
        for j in range(n):
            same &= state.seen[j] == value(x, j) and state.places[j] == index(x, j)
        if same:
            return
    scores_of(state.W, x, state.scores)
    variances(state.covariance, x, state.powers, state.pulls, state.spreads)
    for r in range(state.W.shape[0]):
        state.spreads[r] = sqrt(state.spreads[r])
    for j in range(n):
        state.seen[j], state.places[j] = value(x, j), index(x, j)
    state.fresh[0] = n


@compiled(**STEP)
def share(scores: Array, spreads: Array, label: int) -> float:
    """The share of z in [0, REACH] for which the label's s_r + z·σ_r is highest: an interval, as these are lines."""
    low, high = 0.0, REACH
    for r in range(scores.shape[0]):
        above, steeper = scores[r] - scores[label], spreads[label] - spreads[r]
        if steeper > 0.0:
            low = max(low, above / steeper)
        elif steeper < 0.0:
            high = min(high, above / steeper)
        elif above > 0.0 or (above == 0.0 and r < label):
            high = 0.0
    return max(high - low, 0.0) / REACH


@chooses(FliptronState)
def optimist(state: FliptronState, x: Row, gamma: float, u: float) -> Choice:
    """argmax_r s_r + z·σ_r with one z for all labels, uniform on [0, REACH]; with probability γ any label at all."""
    K = state.W.shape[0]
    look(state, x)
    greedy = argmax(state.scores, -1)
    if state.tallies[LEARNT] < WARM_UP:
        gamma = 1.0
    label = min(int(u / gamma * K), K - 1) if u < gamma else greedy
    if u >= gamma:
        z, top = REACH * (u - gamma) / (1.0 - gamma), -np.inf
        for r in range(K):
            imagined = state.scores[r] + z * state.spreads[r]
            if imagined > top:
                label, top = r, imagined
    chance = max(share(state.scores, state.spreads, label), _LEAST_SHARE)  # lines may cross within a rounding error
    return label, greedy, gamma / K + (1.0 - gamma) * chance


@compiled(**STEP)
def restart(state: FliptronState) -> None:
    """Forget the weights and most of the counts' weight, not the rates."""
    state.W[:] = 0.0
    state.covariance[:] = 0.0
    for r in range(state.W.shape[0]):
        for i in range(state.W.shape[1]):
            reset(state.covariance, r, i)
    for n, ones in ((UNIFORM, UNIFORM_ONES), (BLIND, BLIND_ONES), (SURE, SURE_ONES)):
        keep = min(1.0, WARM_UP / max(state.tallies[n], 1.0))
        state.tallies[n] *= keep
        state.tallies[ones] *= keep
    state.tallies[EVIDENCE] = 0.0


@learns(FliptronState)
def filter_bit(state: FliptronState, x: Row, label: int, greedy: int, probability: float, feedback: int) -> None:
    """Bayes' rule for one bit, for one label's score at a time, matched by a Gaussian."""
    length = sqrt(square(x))
    state.tallies[LEARNT] += 1.0
    if length < SHORTEST:
        return
    look(state, x)
    state.fresh[0] = -1
    K, s, tallies = state.W.shape[0], state.scores, state.tallies
    odds, chance, slope, bend = state.work
    best, others, doubt = argmax(s, -1), _LEAST_ODDS, 0.0  # sums without the best, whose odds 1 would drown them
    for r in range(K):
        odds[r] = exp((s[r] - s[best]) / length)
        if r != best:
            others += odds[r]
            doubt += (odds[r] * state.spreads[r] / length) ** 2
    top = (state.spreads[best] / length) ** 2
    count(tallies, s, state.spreads, label, greedy, probability, feedback, best, 1.0 / (1.0 + others))
    rho0, beta = rates_to_learn_by(tallies, K)
    given = 0.0
    for r in range(K):  # the chance of a bit 1, and its first two derivatives in s_ỹ or −s_r
        v = (state.spreads[r] / length) ** 2
        rest = others if r == best else 1.0 + others - odds[r]
        around = doubt if r == best else max(top + doubt - odds[r] ** 2 * v, 0.0)
        kappa = 1.0 / sqrt(1.0 + _MACKAY * (v + around / (rest * rest)))
        scale = beta if r == label else beta * min(odds[label] / rest, 1.0)
        lead = (s[r] - s[best]) / length - log(rest)
        q = 1.0 / (1.0 + exp(-kappa * lead if r == label else kappa * lead))
        chance[r] = rho0 + scale * q
        slope[r] = scale * kappa * q * (1.0 - q)
        bend[r] = slope[r] * kappa * (1.0 - 2.0 * q)
        given += 0.0 if r == label else slope[r]
    tallies[EVIDENCE] = max(tallies[EVIDENCE] + chance[label] - feedback - 0.25 * beta, 0.0)
    part = min(slope[label] / max(given, 1e-300), 1.0)  # all others take what the played one gives, and no more
    for r in range(K):
        v, weight = (state.spreads[r] / length) ** 2, 1.0 if r == label else part
        likely, sign = (chance[r], 1.0) if feedback else (1.0 - chance[r], -1.0)
        g = sign * weight * slope[r] / likely
        if abs(g) * sqrt(v) < _NEGLIGIBLE:
            continue
        h = g * g - sign * weight * bend[r] / likely
        h = min(max(h, -1.0 / v, (v - PRIOR) / (v * v)), 0.9 / v)  # v may grow on surprise, not above the prior
        g = g if r == label else -g
        move(state.W, state.covariance, r, x, state.pulls, g / length, h / (length * length))
    if tallies[RESTARTS] > 0.0 and tallies[EVIDENCE] > _ALARM / beta:
        restart(state)


Form = Literal["auto", "full", "diagonal"]


class Fliptron(Learner):
    r"""The default learner: it learns weights and noise from the bits alone, and has nothing to tune.

    The model is a softmax seen through the channel, with a Gaussian belief about every label's weights:

    .. math::

        P(f_\rho = 1 \mid x, \tilde{y}) &= \rho_0 + \beta\,q_{\tilde{y}}(x) \\
        q_r(x) &= \frac{e^{s_r}}{\sum_j e^{s_j}}, \qquad s_r = w_r \cdot x / \lVert x \rVert \\
        w_r &\sim \mathcal{N}(W_r, \Sigma_r)

    **Learning.** Each bit moves every label's score by Bayes' rule, one label at a time. Let m and v be the mean and
    variance of s_r, and Z(m) the probability of the bit, averaged over the doubt in the scores (MacKay's formula). Then

    .. math::

        g &= \frac{\partial \log Z}{\partial m}, \qquad h = -\frac{\partial^2 \log Z}{\partial m^2} \\
        W_r &\leftarrow W_r + g\,\Sigma_r x \\
        \Sigma_r &\leftarrow \Sigma_r - h\,(\Sigma_r x)(\Sigma_r x)^\top

    Only differences of scores matter to a softmax. So the other labels' steps are scaled down until they add up to the
    played label's own. A surprising bit makes h negative, and the doubt grows: no label is ever given up for good.

    **Choosing.** One random number z decides how optimistic to be about all labels:

    .. math::

        \tilde{y} = \arg\max_r \; s_r + z\,\sigma_r, \qquad z \text{ uniform on } [0, 2]

    where σ_r is the standard deviation of s_r. Only labels that may be best are tried. Each label's value is a line in
    z, so a label wins on an interval, and the length of that interval is its exact probability. Besides, with a small
    probability γ_t, any label is played: a *blind* round.

    **The noise.** A random label is right once in K rounds, so the bits of blind and of uniform rounds give ρ0. The
    bits of rounds in which the learner is sure give 1 − ρ1. `Plateaus` works the same way; here the counts are kept
    round by round. `rates` are the estimates, and `estimate()` adds intervals.

    The length of x does not matter. Up to K·d² = 2²⁰ every label keeps a full Σ_r, in O(K·d²) per round; beyond, only
    its diagonal, in O(K·d).

    Parameters
    ----------
    n_classes, n_features
        K ≥ 2 labels, d ≥ 1 features.
    gamma
        Blind exploration in [0, 1], a number or an `Exploration`. None means 0.15/√t, or 0.15/√half_life where a
        half-life is given. More of it estimates ρ0 better; less of it makes fewer mistakes.
    form
        Which part of Σ_r is kept: "full", "diagonal", or "auto", which decides by the size K·d².
    half_life
        Rounds, from 1,000 to 10¹⁵, after which what was learnt counts half. With a half-life a jump in the data also
        restarts the weights. None: nothing is forgotten.
    seed
        Of the exploration.

    Examples
    --------
    >>> from fliptron import load, simulate
    >>> learner = Fliptron(n_classes=10, n_features=64, seed=1)
    >>> trace = simulate(learner, load("digits"), rates=(0.2, 0.4), rounds=50_000, seed=1)
    >>> trace.error < 0.1
    True
    >>> learner.estimate().verdict
    'identified'

    References
    ----------
    Opper (1998), "A Bayesian approach to on-line learning"; MacKay (1992), "The evidence framework applied to
    classification networks"; Vaswani et al. (2020), "Old dog learns new tricks: randomized UCB".
    """

    tables = 1

    def __init__(
        self,
        *,
        n_classes: int,
        n_features: int,
        gamma: float | Exploration | None = None,
        form: Form = "auto",
        half_life: float | None = None,
        seed: int = 0,
    ) -> None:
        self.form = one_of("form", form, get_args(Form))
        self.half_life = None if half_life is None else real("half_life", half_life, 1000.0, 1e15)
        if gamma is None:
            gamma = Exploration(0.15, power=0.5) if half_life is None else 0.15 / sqrt(self.half_life or 1.0)
        super().__init__(n_classes=n_classes, n_features=n_features, gamma=gamma, seed=seed)

    @property
    def by_feature(self) -> bool:  # type: ignore[override]
        """Whether weights may be laid out by feature: only without full covariances."""
        return not self.full

    @property
    def full(self) -> bool:
        """Whether every label keeps a whole covariance, or only its diagonal."""
        return self.form == "full" or (self.form == "auto" and self.n_classes * self.n_features**2 <= FULL)

    def _start(self) -> FliptronState:
        K, d = self.n_classes, self.n_features
        if self.full:
            check_memory(f"Fliptron(form='full') at K={K}, d={d}", K * d * d, "form='diagonal', which needs K·d")
            covariance = np.tile(np.eye(d) * PRIOR, (K, 1, 1))
        else:
            covariance = np.full((K, d), PRIOR)
        tallies = np.zeros(11)
        tallies[LEVEL], tallies[RESTARTS] = 0.5, self.half_life is not None
        return FliptronState(
            self._weights(),
            self._scores(),
            covariance,
            tallies,
            spreads=np.zeros(K),
            work=np.zeros((4, K)),
            pulls=np.zeros((K, d if self.full else 0)),
            powers=np.zeros(d),
            seen=np.zeros(d),
            places=np.zeros(d, dtype=np.int64),
            fresh=np.full(1, -1),
        )

    def _bounds(self) -> dict[str, tuple[float, float]]:
        return {"tallies": (0.0, 1e18)}

    def _flaw(self) -> str:
        covariance, tallies = self.state.covariance, self.state.tallies
        diagonals = np.diagonal(covariance, axis1=1, axis2=2) if self.full else covariance
        if not ((diagonals > 1e-30) & (diagonals < 1e12)).all():  # xᵀΣx is at most PRIOR, single variances may be more
            return "a variance is not a positive number of a sensible size"
        pairs = ((UNIFORM, UNIFORM_ONES), (BLIND, BLIND_ONES), (SURE, SURE_ONES), (LEARNT, FORGOT))
        if any(tallies[part] > tallies[total] for total, part in pairs):
            return "a count is larger than the one it is part of"
        return (
            "" if tallies[RESTARTS] == (self.half_life is not None) else "its tallies are not those of its parameters"
        )

    @property
    def rates(self) -> Rates:
        """The flip rates as estimated now."""
        with self.held():
            return rates_of(self.state.tallies, self.n_classes)

    def estimate(self) -> Estimate:
        """The rates with 95 % intervals and a verdict, from the bits it has counted."""
        with self.held():
            return estimate_of(self.state.tallies, self.n_classes)

    def learn(self, x: Any, decision: Decision, feedback: int) -> None:
        """Learn from the bit that came back for `decision` on `x`, now or much later, in any order."""
        super().learn(x, decision, feedback)
        self.settle()

    def room(self) -> int:
        """How many rounds may be learnt before the next step of forgetting."""
        if self.half_life is None:
            return super().room()
        since = self.state.tallies[LEARNT] - self.state.tallies[FORGOT]
        return int(self.half_life / 16) - int(since)

    def settle(self) -> None:
        """Forget a little when it is time: information fades by a factor, and the prior takes its place."""
        if self.half_life is None or self.room() > 0:
            return
        with self.held():
            if self.room() <= 0:  # another thread may have been faster
                self._forget()

    def _forget(self) -> None:
        self.state.tallies[FORGOT] = self.state.tallies[LEARNT]
        keep = 0.5 ** (1 / 16)
        covariance = self.state.covariance
        if self.full:
            prior = np.eye(self.n_features) * ((1 - keep) / PRIOR)
            for r in range(self.n_classes):
                whole = np.tril(covariance[r]) + np.tril(covariance[r], -1).T
                covariance[r] = np.linalg.inv(keep * np.linalg.inv(whole) + prior)
        else:
            covariance[:] = 1.0 / (keep / covariance + (1 - keep) / PRIOR)
        tallies = self.state.tallies
        for some, n in (
            (slice(UNIFORM, BLIND_ONES + 1), tallies[UNIFORM] + tallies[BLIND]),
            (slice(SURE, SURE_ONES + 1), tallies[SURE]),
        ):
            tallies[some] *= max(keep, min(1.0, 0.5 * WARM_UP / max(n, 1.0)))  # never below half of WARM_UP rounds
        self.state.fresh[0] = -1
