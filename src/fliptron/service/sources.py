"""Which sources of feedback do not fit the channel: evidence against each, and quarantine.

The learner knows the probability of a bit 1 before it comes: p = ρ0 + β·q, with q how likely it holds the label right.
A source that lies, guesses or always says the same gives bits that fit other probabilities better. For each of a few
such alternatives the log likelihood ratios of a source's bits are added up, and start anew at 0 whenever they would be
below (Page's rule).

Liars spoil the learner's channel for all, so an honest source looks odd too, and that must not count against it: bits
are also held against what the channel would be without some liars, of each kind, and the least of the sums counts. p is
not exact either, so the bit is given the most favourable p within a margin. An honest source is then flagged about
once in 10⁵ of its bits at most. Where very many sources look odd at once, the channel has changed and not they; then
nobody is flagged.
"""

from __future__ import annotations

from math import exp, log, sqrt
from typing import Any

from fliptron.arrays import Row as X
from fliptron.kernels.compiling import STEP, compiled, entry
from fliptron.kernels.vectors import square
from fliptron.learners.base import Learner
from fliptron.learners.channel import LEARNT, rates_to_learn_by
from fliptron.learners.filtering import FliptronState, look, weigh
from fliptron.learners.fliptron import Fliptron
from fliptron.service.store import Flag

FLIPPED = 0.5, 1.0
"""Alternatives: this share of the bits is flipped once more."""
CONSTANT = 0.05, 0.5, 0.95
"""Alternatives: bits that have nothing to do with the label, with these means."""
SPOILT = (0.0, 0.0), (0.1, 0.1), (0.2, 0.2), (0.2, 0.0), (0.0, 0.2)
"""What the channel may be spoilt by: 0 made 1, and 1 made 0, with these probabilities."""
LIMIT = log(1e5)
"""Evidence, as a log likelihood ratio, at which a source goes into quarantine."""
MOST = 10_000
"""Sources of which evidence is kept; the one heard of longest ago makes room."""
_DOUBT = 0.01, 0.05  # how far p may be off: at least, and as a part of β
_FIRST = 500.0  # bits that the learner needs before it can judge anybody
_MANY = 1 / 3  # of the sources that look odd at once: then it is not they
_ODD = LIMIT / 2
_SUMS = (len(FLIPPED) + len(CONSTANT)) * len(SPOILT)


class Sources:
    """Evidence against each source of one model, and who is in quarantine."""

    def __init__(self) -> None:
        self._evidence: dict[str, list[float]] = {}  # the alternatives', then the number of bits
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
            self._evidence.pop(flag.source, None)
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
        mine = self._evidence.pop(source, None) or [0.0] * (_SUMS + 1)  # the last counts bits
        self._evidence[source] = mine
        if len(self._evidence) > MOST:
            del self._evidence[next(iter(self._evidence))]
        was, k = _least(mine), 0
        p, doubt = rho0 + beta * q, max(_DOUBT[0], _DOUBT[1] * beta)
        others = (*(p + share * (1.0 - 2.0 * p) for share in FLIPPED), *CONSTANT)
        for up, down in SPOILT:
            honest = min(max((p - up) / (1.0 - up - down), 0.0), 1.0)
            fits = log(min((honest if bit else 1.0 - honest) + doubt, 1.0))
            for other in others:
                mine[k] = max(mine[k] + log(other if bit else 1.0 - other) - fits, 0.0)
                k += 1
        mine[-1] += 1.0
        if _least(mine) >= LIMIT > was and not self._many():
            self.suspects.append(source)

    def _many(self) -> bool:
        odd = sum(_least(each) >= _ODD for each in self._evidence.values())
        return odd > max(1, _MANY * len(self._evidence))

    def shown(self) -> list[dict[str, Any]]:
        """Every source in quarantine, and the most suspicious others, for operators."""
        names = [name for name, flag in self._flags.items() if flag.quarantined]
        others = sorted(set(self._evidence) - set(names), key=self._of, reverse=True)[:20]
        return [self._told(name) for name in (*names, *others)]

    def _of(self, source: str) -> float:
        return _least(self._evidence[source]) if source in self._evidence else 0.0

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
        return {"evidence": dict(self._evidence), "taken_in": self._taken_in}

    def restore(self, plain: dict[str, Any]) -> None:
        """Take in what `plain` gave."""
        self._evidence = {name: list(each) for name, each in plain["evidence"].items()}
        self._taken_in = plain["taken_in"]


def _least(sums: list[float]) -> float:
    """The evidence: of the best alternative, against the channel that speaks most for the source."""
    width = len(FLIPPED) + len(CONSTANT)
    return max(min(sums[k:_SUMS:width]) for k in range(width))


@compiled(**STEP)
def expected(state: FliptronState, x: X, label: int) -> tuple[float, float, float]:
    """How likely a label is right, ρ0 and β."""
    length = sqrt(square(x))
    look(state, x)
    best, others, doubt, top = weigh(state, length)
    rho0, beta = rates_to_learn_by(state.counts, state.labels, label)
    kappa, mass = 1.0 / sqrt(1.0 + 0.39269908169872414 * (top + doubt / (others * others))), 1e-150
    for r in range(state.scores.shape[0]):
        mass += 0.0 if r == best else exp(kappa * (state.scores[r] - state.scores[best]) / length)
    q = exp(kappa * (state.scores[label] - state.scores[best]) / length) / (1.0 + mass)
    return q, rho0, beta
