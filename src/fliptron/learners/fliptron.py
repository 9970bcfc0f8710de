"""Fliptron: a softmax seen through the noise, with error bars on every score, that learns the noise as it plays."""

# mypy: disable-error-code="untyped-decorator,no-untyped-def,no-untyped-call"
from __future__ import annotations

from math import exp, log, sqrt
from typing import Any, Literal, NamedTuple

import numpy as np
from numba.extending import overload

from fliptron.arrays import Array, InputError, real
from fliptron.exploration import Exploration
from fliptron.kernels.compiling import STEP, compiled
from fliptron.kernels.loop import chooses, learns
from fliptron.kernels.vectors import apply, argmax, downdate, index, pick, scores_of, size, square, value, with_values
from fliptron.learners.base import Learner, check_memory
from fliptron.noise.estimate import Z95, Estimate, Verdict, possible
from fliptron.noise.tallies import LEAST, Mean, mean_of
from fliptron.rounds import Decision, Rates

PRIOR = 100.0
"""Variance of a score before the first bit, for an x of length 1."""
REACH = 2.0
"""How many standard deviations above its mean a score may be imagined."""
WARM_UP = 150
"""Bits of uniform play that come first: they say what a random label earns."""
FULL = 2**20
"""The most numbers K·d² for which every label keeps a whole d×d covariance."""

_MACKAY = np.pi / 8  # E σ(s) ≈ σ(m/√(1 + πv/8)) for s ~ N(m, v)
_NEGLIGIBLE = 1e-3  # a step of fewer standard deviations is not taken
_SURE = 2.0  # standard deviations by which a sure label leads
_TOP = 0.2  # share of rounds, by their probability, that may count as sure
_START, _WORTH = 0.6, 150.0  # mean bit of the sure before any was seen, and its weight in rounds
_LEAST_RATES = 0.01, 0.1  # no linear model is always right: some flips keep outliers from ruling it
_LEAST_BETA, _MOST_RHO0 = 0.15, 0.4
_ALARM = 8.0

# What is counted: bits of uniform rounds, of blind ones, of sure ones; then the level of the surest share, rounds
# learnt from, those by the last forgetting, the evidence for a jump, and whether a jump restarts the weights.
UNIFORM, UNIFORM_ONES, BLIND, BLIND_ONES, SURE, SURE_ONES, LEVEL, LEARNT, FORGOT, EVIDENCE, RESTARTS = range(11)


class FliptronState(NamedTuple):
    """A Gaussian belief about the weights, w_r ~ N(W_r, Σ_r), and counts of bits."""

    W: Array
    scores: Array
    covariance: Array  # K×d×d, of which the lower triangles count, or K×d: the diagonals only
    tallies: Array
    spreads: Array  # √(xᵀΣ_r x), for the x last looked at
    work: Array  # 4×K
    pulls: Array  # Σ_r x, if Σ is full
    powers: Array  # x², value by value
    seen: Array  # that x
    places: Array
    fresh: Array  # how many values it stores; −1: the belief has changed since


def variances(covariance, x, powers, pulls, out):
    """xᵀΣ_r x of every label; full ones leave Σ_r x in pulls."""
    (_variances_full if covariance.ndim == 3 else _variances_diagonal)(covariance, x, powers, pulls, out)


def move(W, covariance, r, x, pulls, g, h):
    """w_r += g·Σ_r x and Σ_r −= h·(Σ_r x)(Σ_r x)ᵀ, of a diagonal Σ_r its diagonal."""
    (_move_full if covariance.ndim == 3 else _move_diagonal)(W, covariance, r, x, pulls, g, h)


def reset(covariance, r, i):
    """Variance PRIOR for weight i of label r."""
    (_reset_full if covariance.ndim == 3 else _reset_diagonal)(covariance, r, i)


def _variances_full(covariance, x, powers, pulls, out):
    for r in range(out.shape[0]):
        apply(covariance[r], x, pulls[r])
        out[r] = max(pick(pulls[r], x), 0.0)


def _variances_diagonal(covariance, x, powers, pulls, out):
    for j in range(size(x)):
        powers[j] = value(x, j) * value(x, j)
    scores_of(covariance, with_values(x, powers), out)


def _move_full(W, covariance, r, x, pulls, g, h):
    for i in range(W.shape[1]):
        W[r, i] += g * pulls[r, i]
    downdate(covariance[r], pulls[r], h)


def _move_diagonal(W, covariance, r, x, pulls, g, h):
    for j in range(size(x)):
        i = index(x, j)
        pull = covariance[r, i] * value(x, j)
        W[r, i] += g * pull
        covariance[r, i] -= h * pull * pull


def _reset_full(covariance, r, i):
    covariance[r, i, i] = PRIOR


def _reset_diagonal(covariance, r, i):
    covariance[r, i] = PRIOR


@overload(variances, jit_options=STEP)
def _(covariance, x, powers, pulls, out):
    return _variances_full if covariance.ndim == 3 else _variances_diagonal


@overload(move, jit_options=STEP)
def _(W, covariance, r, x, pulls, g, h):
    return _move_full if covariance.ndim == 3 else _move_diagonal


@overload(reset, jit_options=STEP)
def _(covariance, r, i):
    return _reset_full if covariance.ndim == 3 else _reset_diagonal


@compiled(**STEP)
def look(state, x):
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
def share(scores, spreads, label):
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
def optimist(state, x, gamma, u):
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
    return label, greedy, gamma / K + (1.0 - gamma) * share(state.scores, state.spreads, label)


@compiled(**STEP)
def count(state, label, greedy, probability, feedback, best, surest):
    """Count the bit where it tells a rate; `surest` is the probability of the best label."""
    tallies, K = state.tallies, state.W.shape[0]
    tallies[LEVEL] += 0.02 * (1.0 - _TOP - (1.0 if surest < tallies[LEVEL] else 0.0))
    tallies[LEVEL] = min(max(tallies[LEVEL], 0.0), 0.999)
    if probability == 1.0 / K:
        tallies[UNIFORM] += 1.0
        tallies[UNIFORM_ONES] += feedback
    elif label != greedy and probability < 0.5 / K:  # no z would have chosen it: all but certainly wrong
        tallies[BLIND] += 1.0
        tallies[BLIND_ONES] += feedback
    next_best = argmax(state.scores, best)
    lead = state.scores[best] - state.scores[next_best]
    doubt = _SURE * sqrt(state.spreads[best] ** 2 + state.spreads[next_best] ** 2)
    if label == best and surest >= tallies[LEVEL] and lead > doubt:
        fade = 1.0 - 1.0 / max(0.25 * tallies[LEARNT], 200.0)  # what was sure early was less so
        tallies[SURE] = tallies[SURE] * fade + 1.0
        tallies[SURE_ONES] = tallies[SURE_ONES] * fade + feedback


@compiled(**STEP)
def wrong_bit(tallies, K, sure):
    """Mean bit of a wrong label, ρ0: of blind rounds itself, of uniform ones from m = ρ0 + (sure − ρ0)/K."""
    uniform = (K * tallies[UNIFORM_ONES] - tallies[UNIFORM] * sure) / (K - 1)
    return (uniform + tallies[BLIND_ONES]) / max(tallies[UNIFORM] + tallies[BLIND], 1.0)


@compiled(**STEP)
def channel(tallies, K):
    """ρ0 and β to learn by. A ρ0 too low or a ρ1 too high costs little, their opposites much: lean that way."""
    sure = (tallies[SURE_ONES] + _WORTH * _START) / (tallies[SURE] + _WORTH)
    rho0 = wrong_bit(tallies, K, sure) - 1.0 / sqrt(tallies[UNIFORM] + tallies[BLIND] + 1.0)  # two standard errors
    rho0 = min(max(rho0, _LEAST_RATES[0]), _MOST_RHO0)
    return rho0, min(max(sure, rho0 + _LEAST_BETA), 1.0 - _LEAST_RATES[1]) - rho0


@compiled(**STEP)
def restart(state):
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
def filter_bit(state, x, label, greedy, probability, feedback):
    """Bayes' rule for one bit, for one label's score at a time, matched by a Gaussian."""
    length = sqrt(square(x))
    state.tallies[LEARNT] += 1.0
    if length == 0.0:
        return
    look(state, x)
    state.fresh[0] = -1
    K, s, tallies = state.W.shape[0], state.scores, state.tallies
    odds, chance, slope, bend = state.work
    best, others, doubt = argmax(s, -1), 1e-300, 0.0  # sums without the best, whose odds 1 would drown them
    for r in range(K):
        odds[r] = exp((s[r] - s[best]) / length)
        if r != best:
            others += odds[r]
            doubt += (odds[r] * state.spreads[r] / length) ** 2
    top = (state.spreads[best] / length) ** 2
    count(state, label, greedy, probability, feedback, best, 1.0 / (1.0 + others))
    rho0, beta = channel(tallies, K)
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


class Fliptron(Learner):
    """The default learner: told nothing, tuned nowhere, it learns weights and noise from the bits alone.

    The model is a softmax seen through the channel,

        P(f_ρ = 1 | x, ỹ) = ρ0 + β·q_ỹ(x),   q_r(x) ∝ exp(s_r),   s_r = w_r·x/‖x‖,   w_r ~ N(W_r, Σ_r).

    **Learning.** A bit moves every label's score, one at a time, by Bayes' rule: with m, v the mean and variance of
    s_r and Z(m) the probability of the bit, averaged over the doubt in the scores (MacKay's formula),

        g = ∂ log Z/∂m,  h = −∂² log Z/∂m²,     W_r ← W_r + g·Σ_r x,   Σ_r ← Σ_r − h·(Σ_r x)(Σ_r x)ᵀ.

    A softmax knows differences only, so the other labels' steps are scaled down to what the played one's gives. A bit
    that surprises makes h negative and the doubt larger, so that no label is ever given up for good.

    **Choosing.** ỹ = argmax_r s_r + z·σ_r, with one z for all labels, uniform on [0, 2]: only labels that could be
    best are tried. The labels' upper bounds are lines in z, so that the probability of ỹ is the length of an interval
    and is known exactly. With a small probability γ_t any label is played, blindly.

    **The noise.** Uniform and blind rounds tell ρ0 (a random label is right once in K), sure ones 1 − ρ1; as in
    `Plateaus`, but a round at a time. `rates` are the estimates, `estimate()` gives their intervals.

    The length of x does not matter. K·d² ≤ 2²⁰ keeps a full Σ_r (O(K·d²) a round); beyond, its diagonal (O(K·d)).

    Parameters
    ----------
    n_classes, n_features : K ≥ 2 labels, d ≥ 1 features.
    gamma : blind exploration, 0.15/√t unless given, or 0.15/√half_life. More of it tells ρ0 better, less costs fewer
        mistakes.
    form : "full", "diagonal" or "auto".
    half_life : rounds after which what was learnt counts half; it also makes a jump in the data restart the weights.
        None: nothing is forgotten.
    seed : of the exploration.

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

    def __init__(
        self,
        *,
        n_classes: int,
        n_features: int,
        gamma: float | Exploration | None = None,
        form: Literal["auto", "full", "diagonal"] = "auto",
        half_life: float | None = None,
        seed: int = 0,
    ) -> None:
        if form not in ("auto", "full", "diagonal"):
            raise InputError(f"form is {form!r}; 'auto', 'full' or 'diagonal' is expected")
        self.form = form
        self.half_life = None if half_life is None else real("half_life", half_life, 1000.0)
        if gamma is None:
            gamma = Exploration(0.15, power=0.5) if half_life is None else 0.15 / sqrt(self.half_life or 1.0)
        super().__init__(n_classes=n_classes, n_features=n_features, gamma=gamma, seed=seed)

    @property
    def by_feature(self) -> bool:  # type: ignore[override]
        """Whether sparse examples are read faster with the labels of a feature side by side."""
        return not self.full

    @property
    def full(self) -> bool:
        """Whether every label keeps a whole covariance, or only its diagonal."""
        return self.form == "full" or (self.form == "auto" and self.n_classes * self.n_features**2 <= FULL)

    def _start(self, W: Array, scores: Array) -> FliptronState:
        K, d = W.shape
        if self.full:
            check_memory(f"Fliptron(form='full') at K={K}, d={d}", K * d * d, "form='diagonal', which needs K·d")
            covariance = np.tile(np.eye(d) * PRIOR, (K, 1, 1))
        else:
            covariance = np.full((K, d), PRIOR)
        tallies = np.zeros(11)
        tallies[LEVEL], tallies[RESTARTS] = 0.5, self.half_life is not None
        return FliptronState(
            W,
            scores,
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

    @property
    def rates(self) -> Rates:
        """The flip rates as estimated now."""
        tallies = self.state.tallies
        sure = tallies[SURE_ONES] / tallies[SURE] if tallies[SURE] else _START
        return possible(wrong_bit(tallies, self.n_classes, sure), 1.0 - sure)

    def estimate(self) -> Estimate:
        """The rates with 95 % intervals and a verdict, from the bits it has counted."""
        tallies, K = self.state.tallies, self.n_classes
        uniform, blind, sure = (_mean(*tallies[at : at + 2]) for at in (UNIFORM, BLIND, SURE))
        weight = tallies[UNIFORM] / max(tallies[UNIFORM] + tallies[BLIND], 1.0)
        from_uniform = (K**2 * uniform.variance + sure.variance) / (K - 1) ** 2
        wide0 = Z95 * sqrt(weight**2 * from_uniform + (1 - weight) ** 2 * blind.variance)
        rates, wide1 = self.rates, sure.half
        verdict: Verdict = "identified"
        reason = "both kinds of bits have been counted: of labels it was sure of, and of labels it played blindly"
        if sure.rounds < LEAST:
            verdict, reason = "not identified", "few bits so far, or no label it could be sure of"
            wide0 = wide1 = 1.0
        elif max(wide0, wide1) > 0.1 or sure.value - rates.rho0 < 2 * wide1:
            verdict, reason = "weakly identified", "few sure or blind rounds so far: the intervals are wide"
        intervals = {
            "rho0": (max(rates.rho0 - wide0, 0.0), min(rates.rho0 + wide0, 1.0)),
            "rho1": (max(rates.rho1 - wide1, 0.0), min(rates.rho1 + wide1, 1.0)),
        }
        wide = sqrt(wide0**2 + wide1**2)
        intervals["beta"] = (max(rates.beta - wide, 0.0), min(rates.beta + wide, 1.0))
        counts = {"rounds": int(tallies[LEARNT]), "explored": float(tallies[BLIND]), "confident": sure.rounds}
        return Estimate(rates, verdict, reason, intervals, details=counts)

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
            tallies[some] *= max(
                keep, min(1.0, 0.5 * WARM_UP / max(n, 1.0))
            )  # what is known of the noise, not all of it
        self.state.fresh[0] = -1


def _mean(rounds: float, ones: float) -> Mean:
    return mean_of(np.array([rounds, ones, rounds]))
