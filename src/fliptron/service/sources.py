"""Which sources of feedback do not fit the channel: evidence against each, and quarantine.

The learner knows the probability of a bit 1 before it comes: p = ρ0 + β·q, with q how likely it holds the label right.
A source that lies, guesses or always says the same has rates of its own: its bits fit u·(1−q) + v·q better, with other
u and v. The evidence against it is a ratio of likelihoods of all its bits: the mean over a grid of u and v, by the most
that the channel gives them. Were its bits drawn by the channel, the ratio would be a supermartingale that begins at 1,
so that by Ville's inequality it ever reaches 1000 with a probability of 1 in 1000 at most. After `ANEW` bits it begins
anew: a source that has begun to lie is found too, and an honest one is flagged once in 10⁶ of its bits at most.

Liars spoil the learner's channel for all, so that an honest source looks odd too. That must not count against it. So
its bits are also compared with what the channel would be without some of the liars, of each kind. p is not exact
either, so each bit gets the most favourable p within a margin. The bound holds as long as p is within that margin of
one of these channels. Where very many sources look odd at once, it is the channel that has changed; then nobody is
flagged.
"""

from __future__ import annotations

from collections import OrderedDict
from itertools import product
from math import log, sqrt
from typing import Any

import numpy as np

from fliptron.arrays import SHORTEST, Array
from fliptron.arrays import Row as X
from fliptron.kernels.compiling import STEP, compiled, entry
from fliptron.kernels.vectors import square
from fliptron.learners.base import Learner
from fliptron.learners.channel import LEARNT, rates_to_learn_by
from fliptron.learners.filtering import FliptronState, held_right, look, weigh
from fliptron.learners.fliptron import Fliptron
from fliptron.service.store import Flag

OTHERS = np.array(list(product((0.03, 0.25, 0.5, 0.75, 0.97), repeat=2))).T
"""Rates of its own that a source may have: u and v, P(bit 1) where the label is wrong and where it is right."""
SPOILT = np.array(list(product((0.0, 0.1, 0.2), repeat=2))).T
"""What the channel may be spoilt by: 0 made 1, and 1 made 0, with these probabilities."""
LIMIT = log(1e3)
"""Evidence, as the logarithm of the ratio, at which a source goes into quarantine."""
ANEW = 1000
"""Bits of a source after which its evidence begins anew."""
MOST = 10_000
"""Sources of which evidence is kept; the one heard of longest ago makes room."""
_DOUBT = 0.01, 0.05  # how far p may be off: at least, and as a part of β
_FIRST = 500.0  # bits that the learner needs before it can judge anybody
_MANY = 1 / 3  # of the sources that look odd at once: then it is not they
_ODD = LIMIT / 2
_WIDTH = OTHERS.shape[1]


class Sources:
    """Evidence against each source of one model, and who is in quarantine."""

    def __init__(self) -> None:
        # Of each source: log likelihoods by OTHERS, then by SPOILT, then the number of bits.
        self._evidence: OrderedDict[str, Array] = OrderedDict()
        self._odd: set[str] = set()  # who has at least half of the evidence that it takes
        self._flags: dict[str, Flag] = {}
        self._step: Any = None
        self._taken_in = 0  # the number of the last flag
        self.suspects: list[str] = []
        """Sources whose evidence has just passed the limit; whoever asks empties the list."""

    def is_quarantined(self, source: str) -> bool:
        """Whether bits of a source are kept and not learnt."""
        flag = self._flags.get(source)
        return flag is not None and flag.quarantined

    def knows(self, source: str) -> Flag | None:
        """The last word on a source, if there was one."""
        return self._flags.get(source)

    def flag(self, flag: Flag) -> None:
        """A source goes into quarantine, or out of it; then it starts with a clean record."""
        self._flags[flag.source] = flag
        if not flag.quarantined and not 0 < flag.number <= self._taken_in:  # once, also after a new start
            self._forget(flag.source)
        self._taken_in = max(self._taken_in, flag.number)
        self.suspects = [name for name in self.suspects if name != flag.source]

    def is_known(self, flag: Flag) -> bool:
        """Whether the evidence is of after a flag."""
        return flag.number <= self._taken_in

    def warm_up(self, learner: Learner, x: Any) -> None:
        """Compile now what the first bit to be judged would compile."""
        if isinstance(learner, Fliptron):
            self._step = entry(expected, learner.state, x, 0)

    def observe(self, source: str, learner: Learner, x: Any, label: int, bit: int) -> None:
        """Hold a bit against what the learner expects, before it learns it."""
        if not isinstance(learner, Fliptron) or learner.state.counts[LEARNT] < _FIRST:
            return
        if self._step is None:
            self.warm_up(learner, x)
        q, rho0, beta = self._step(learner.state, x, label)
        self.weigh(source, q, rho0, beta, bit)

    def weigh(self, source: str, q: float, rho0: float, beta: float, bit: int) -> None:
        """Add what one bit says: of a label right with probability q, through a channel."""
        mine = self._evidence.pop(source, None)
        if mine is None or mine[-1] >= ANEW:
            mine = np.zeros(_WIDTH + SPOILT.shape[1] + 1)
        self._evidence[source] = mine
        if len(self._evidence) > MOST:
            self._odd.discard(self._evidence.popitem(last=False)[0])
        p, (u, v), (up, down) = rho0 + beta * q, OTHERS, SPOILT
        theirs, ours = u + (v - u) * q, np.clip((p - up) / (1.0 - up - down), 0.0, 1.0)
        if not bit:
            theirs, ours = 1.0 - theirs, 1.0 - ours
        mine[:_WIDTH] += np.log(theirs)
        mine[_WIDTH:-1] += np.log(np.minimum(ours + max(_DOUBT[0], _DOUBT[1] * beta), 1.0))
        mine[-1] += 1.0
        evidence = _of(mine)
        (self._odd.add if evidence >= _ODD else self._odd.discard)(source)
        if evidence >= LIMIT and not (self._many() or source in self.suspects or self.is_quarantined(source)):
            self.suspects.append(source)

    def _many(self) -> bool:
        return len(self._odd) > max(1, _MANY * len(self._evidence))

    def _forget(self, source: str) -> None:
        self._evidence.pop(source, None)
        self._odd.discard(source)

    def shown(self) -> list[dict[str, Any]]:
        """Every source in quarantine, and the most suspicious others, for operators."""
        names = [name for name, flag in self._flags.items() if flag.quarantined]
        known = [name for name in self._evidence if not self.is_quarantined(name)]
        found = _of(np.array([self._evidence[name] for name in known])) if known else ()
        return [self._told(name) for name in (*names, *(known[at] for at in np.argsort(found)[:-21:-1]))]

    def _of(self, source: str) -> float:
        return max(float(_of(self._evidence[source])), 0.0) if source in self._evidence else 0.0

    def _told(self, source: str) -> dict[str, Any]:
        flag = self._flags.get(source)
        bits = int(self._evidence[source][-1]) if source in self._evidence else 0
        told = {"source": source, "bits": bits, "evidence": self._of(source) / LIMIT}
        caught = flag is not None and flag.quarantined
        return told | {
            "quarantined": caught,
            "since": flag.time if flag is not None and caught else None,
            "reason": flag.reason if flag is not None and caught else None,
        }

    def plain(self) -> dict[str, Any]:
        """Plain values, fit for JSON; who is in quarantine is in the journal."""
        return {"evidence": {name: each.tolist() for name, each in self._evidence.items()}, "taken_in": self._taken_in}

    def restore(self, plain: dict[str, Any]) -> None:
        """Take in what `plain` gave."""
        self._evidence = OrderedDict((name, np.array(each)) for name, each in plain["evidence"].items())
        self._odd = {name for name, each in self._evidence.items() if _of(each) >= _ODD}
        self._taken_in = plain["taken_in"]


def _of(sums: Array) -> Any:
    """The evidence, of one source or of many: the mean likelihood of rates of its own, by the most that the channel
    gives."""
    best = sums[..., :_WIDTH].max(axis=-1)
    mean = np.exp(sums[..., :_WIDTH] - best[..., None]).mean(axis=-1)
    return best + np.log(mean) - sums[..., _WIDTH:-1].max(axis=-1)


@compiled(**STEP)
def expected(state: FliptronState, x: X, label: int) -> tuple[float, float, float]:
    """How likely a label is right, ρ0 and β."""
    rho0, beta = rates_to_learn_by(state.counts, state.labels, label)
    length = sqrt(square(x))
    if length < SHORTEST:  # which says nothing of any label
        return 1.0 / state.scores.shape[0], rho0, beta
    look(state, x)
    q, _ = held_right(state, length, weigh(state, length), label)
    return q, rho0, beta
