"""A made-up shop: visitors with words, gaps and raw scales, what each wants, and the click log of an old policy."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fliptron.arrays import Array
from fliptron.refusals import real, whole
from fliptron.rounds import Rates

OFFERS = ("bags", "hats", "shoes", "socks")
CITIES = ("Bern", "Lima", "Oslo", "Paris", "Rome")
CLICKS = (0.02, 0.92)
"""What is not wanted is clicked 2 % of the time; what is wanted, 8 %."""


class Shop(NamedTuple):
    """Rounds in which an old policy showed each visitor an offer."""

    log: dict[str, Array]
    """What the shop knows: age, income, visits, city, member, the time, the offer shown, its probability, the click."""
    wanted: Array
    """What nobody knows: the offer that each visitor wanted."""
    best: Array
    """The offer that a visitor's traits say, whims aside: no policy can do better."""


def shop(rounds: int = 100_000, *, rates: tuple[float, float] = CLICKS, explored: float = 0.2, seed: int = 0) -> Shop:
    """Make up a click log.

    A visitor wants the offer of highest value: linear in the traits, plus a Gumbel-distributed whim. The old policy
    knows the traits' values badly; it shows the offer it thinks best, and a random one in a share of rounds. One age in
    ten is not known.

    Parameters
    ----------
    rounds
        How many visitors.
    rates
        (ρ0, ρ1): how often an unwanted offer is clicked, and a wanted one is not.
    explored
        The share of rounds in which the old policy shows a random offer.
    seed
        Of visitors and clicks; the shop's tastes are always the same.
    """
    n, share = whole("rounds", rounds, 1, 10**8), real("explored", explored, 0.0, 1.0)
    tastes, random = np.random.default_rng(7), np.random.default_rng([whole("seed", seed, 0), 7])
    K = len(OFFERS)
    age, income, visits = random.integers(18, 80, n), random.lognormal(10.3, 0.4, n), random.poisson(4.0, n)
    city, member = random.integers(0, len(CITIES), n), random.random(n) < 0.3
    traits = np.column_stack([(age - 48.5) / 18, (income - 32_000) / 13_500, (visits - 4) / 2, member])
    traits = np.hstack([traits, np.eye(len(CITIES))[city]])
    value = 3.0 * tastes.standard_normal((traits.shape[1], K))
    values = traits @ value
    wanted = (values + 0.5 * random.gumbel(size=(n, K))).argmax(axis=1)
    greedy = (traits @ (value + 2.5 * tastes.standard_normal(value.shape))).argmax(axis=1)
    shown = np.where(random.random(n) < share, random.integers(0, K, n), greedy)
    rho0, rho1 = Rates.of(rates)
    clicked = random.random(n) < np.where(shown == wanted, 1.0 - rho1, rho0)
    words = np.array(OFFERS, dtype=object)
    log = {
        "time": np.datetime64("2026-03-01T00:00:00") + np.cumsum(random.integers(1, 60, n)).astype("timedelta64[s]"),
        "age": np.where(random.random(n) < 0.1, np.nan, age),
        "income": income.round(2),
        "visits": visits.astype(np.float64),
        "city": np.array(CITIES, dtype=object)[city],
        "member": member,
        "shown": words[shown],
        "propensity": share / K + (1.0 - share) * (shown == greedy),
        "clicked": clicked.astype(np.int64),
    }
    return Shop(log, words[wanted], words[values.argmax(axis=1)])
