"""Bits counted by what they tell: of a label played blindly ρ0, of one that is sure 1 − ρ1; and the rates from that."""

from __future__ import annotations

from math import sqrt

import numpy as np

from fliptron.arrays import Array
from fliptron.kernels.compiling import STEP, compiled
from fliptron.kernels.vectors import argmax
from fliptron.noise.estimate import Z95, Estimate, Verdict, possible
from fliptron.noise.tallies import LEAST, Mean, mean_of
from fliptron.rounds import Rates

# What is counted: bits of uniform rounds, of blind ones, of sure ones; then the level of the surest share, rounds
# learnt from, those by the last forgetting, the evidence for a jump, and whether a jump restarts the weights.
UNIFORM, UNIFORM_ONES, BLIND, BLIND_ONES, SURE, SURE_ONES, LEVEL, LEARNT, FORGOT, EVIDENCE, RESTARTS = range(11)

_SURE = 2.0  # standard deviations by which a sure label leads
_TOP = 0.2  # share of rounds, by their probability, that may count as sure
_START, _WORTH = 0.6, 150.0  # mean bit of the sure before any was seen, and its weight in rounds
_LEAST_RATES = 0.01, 0.1  # no linear model is always right: some flips keep outliers from ruling it
_LEAST_BETA, _MOST_RHO0 = 0.15, 0.4
_UNIFORM = 1e-5  # a log may say 0.333333; a choice that is not uniform is as near to 1/K once in 10⁵ rounds


@compiled(**STEP)
def count(
    tallies: Array,
    scores: Array,
    spreads: Array,
    label: int,
    greedy: int,
    probability: float,
    feedback: int,
    best: int,
    surest: float,
) -> None:
    """Count the bit where it tells a rate; `surest` is the probability of the best label."""
    K = scores.shape[0]
    tallies[LEVEL] += 0.02 * (1.0 - _TOP - (1.0 if surest < tallies[LEVEL] else 0.0))
    tallies[LEVEL] = min(max(tallies[LEVEL], 0.0), 0.999)
    if abs(probability * K - 1.0) < _UNIFORM:
        tallies[UNIFORM] += 1.0
        tallies[UNIFORM_ONES] += feedback
    elif label != greedy and probability < 0.5 / K:  # no z would have chosen it: all but certainly wrong
        tallies[BLIND] += 1.0
        tallies[BLIND_ONES] += feedback
    next_best = argmax(scores, best)
    lead = scores[best] - scores[next_best]
    doubt = _SURE * sqrt(spreads[best] ** 2 + spreads[next_best] ** 2)
    if label == best and surest >= tallies[LEVEL] and lead > doubt:
        fade = 1.0 - 1.0 / max(0.25 * tallies[LEARNT], 200.0)  # what was sure early was less so
        tallies[SURE] = tallies[SURE] * fade + 1.0
        tallies[SURE_ONES] = tallies[SURE_ONES] * fade + feedback


@compiled(**STEP)
def wrong_bit(tallies: Array, K: int, sure: float) -> float:
    """Mean bit of a wrong label, ρ0: of blind rounds itself, of uniform ones from m = ρ0 + (sure − ρ0)/K."""
    uniform = (K * tallies[UNIFORM_ONES] - tallies[UNIFORM] * sure) / (K - 1)
    return (uniform + tallies[BLIND_ONES]) / max(tallies[UNIFORM] + tallies[BLIND], 1.0)


@compiled(**STEP)
def rates_to_learn_by(tallies: Array, K: int) -> tuple[float, float]:
    """ρ0 and β to learn by. A ρ0 too low or a ρ1 too high costs little, their opposites much: lean that way."""
    sure = (tallies[SURE_ONES] + _WORTH * _START) / (tallies[SURE] + _WORTH)
    rho0 = wrong_bit(tallies, K, sure) - 1.0 / sqrt(tallies[UNIFORM] + tallies[BLIND] + 1.0)  # two standard errors
    rho0 = min(max(rho0, _LEAST_RATES[0]), _MOST_RHO0)
    return rho0, min(max(sure, rho0 + _LEAST_BETA), 1.0 - _LEAST_RATES[1]) - rho0


def rates_of(tallies: Array, K: int) -> Rates:
    """The flip rates as estimated now."""
    sure = tallies[SURE_ONES] / tallies[SURE] if tallies[SURE] else _START
    return possible(wrong_bit(tallies, K, sure), 1.0 - sure)


def estimate_of(tallies: Array, K: int) -> Estimate:
    """The rates with 95 % intervals and a verdict."""
    uniform, blind, sure = (_mean(*tallies[at : at + 2]) for at in (UNIFORM, BLIND, SURE))
    weight = tallies[UNIFORM] / max(tallies[UNIFORM] + tallies[BLIND], 1.0)
    from_uniform = (K**2 * uniform.variance + sure.variance) / (K - 1) ** 2
    wide0 = Z95 * sqrt(weight**2 * from_uniform + (1 - weight) ** 2 * blind.variance)
    rates, wide1 = rates_of(tallies, K), sure.half
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
    counts = {
        "rounds": int(tallies[LEARNT]),
        "blind": float(tallies[BLIND]),
        "uniform": float(tallies[UNIFORM]),
        "confident": sure.rounds,
    }
    return Estimate(rates, verdict, reason, intervals, details=counts)


def _mean(rounds: float, ones: float) -> Mean:
    return mean_of(np.array([rounds, ones, rounds]))
