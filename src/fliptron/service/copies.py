"""Models of which one process is the owner and learns, and others decide with copies of its last published state."""

from __future__ import annotations

import hashlib
from collections import deque
from typing import Any

import msgspec

from fliptron.kernels import loop
from fliptron.kernels.randomness import CHOICES, make_key
from fliptron.learners.base import Learner
from fliptron.policy import Policy
from fliptron.service.desk import Desk
from fliptron.service.messages import Answer, Feedback, Refusal
from fliptron.service.store import Decided, Flag, Heard, Keep, Kept, Row, Store, Taken

_decode = msgspec.json.Decoder().decode


class Original(Desk):
    """The model as its owner has it. Every state that is published is whole, so that nothing is to be replayed."""

    def _replay(self, store: Store) -> None:
        self.silence = self.settings.silence
        self.rehearse()
        for flag in store.flagged(self.number).values():
            self.sources.flag(flag)

    def made(self, row: Row) -> None:
        """Take in a decision that some process has made with a copy."""
        if self.encoder is not None and row.record is not None:
            self.encoder.encode(_decode(row.record))
        self.ledger.decided(row)
        self.seq, self._decided = max(self.seq, row.seq), self._decided + 1

    def snapshot(self) -> Keep:
        """All that was taken in, as an entry."""
        if self.encoder is not None:
            self._moments = self.encoder.moments.copy()
        return super().snapshot()


class Copy(Original):
    """A copy that decides. What it decides on changes its running means a little, until the next state comes."""

    process = 0
    """A number that no other process ever had: its draws are this process's own."""

    def draw_as(self, process: int) -> None:
        """Draw from a sequence of this process's own: no draw of another one is ever used again."""
        self.process = process
        self.learner.key = _key(self.learner.seed, process)

    def take_over(self, policy: Policy | Learner, about: dict[str, Any], kept: Keep, flags: dict[str, Flag]) -> None:
        """Go on with a newer state, whose learner has been warmed up."""
        self.learner = policy.learner if isinstance(policy, Policy) else policy
        self.encoder = policy.encoder if isinstance(policy, Policy) else None
        self.learner.key = _key(self.learner.seed, self.process)
        self._decided = max(self._decided, self.learner.rounds)  # so that exploration falls as decisions of all rise
        self.learner.turn[loop.DECIDED] = self._decided + len(self._waiting)
        self._moments = None if self.encoder is None else self.encoder.moments.copy()
        self._waiting = deque([self._moments] * len(self._waiting))
        last, seen = self.ledger._last, self.ledger.totals["duplicate"]
        self._restore(about, kept)
        self.ledger._last = last
        self.ledger.totals["duplicate"] = seen
        for flag in flags.values():
            self.sources.flag(flag)

    def taken(self, entry: Decided, outcome: Taken) -> Answer:
        """A decision is durable: answer. It is counted when the owner has taken it in."""
        self._waiting.popleft()
        self._decided += 1
        if outcome.before is not None:
            return self.answer(outcome.before)
        return self.answer(Row(**msgspec.structs.asdict(entry), seq=outcome.seq))

    def roll_back(self) -> None:
        """What waited may have been written, if the connection broke at the end: its draws are not used again."""
        self._decided += len(self._waiting)
        super().roll_back()

    def hear(self, feedback: Feedback, now: float, find: Any) -> tuple[Heard, Row]:
        """Feedback as an entry. Any process may have decided, so the store looks up deadline and source."""
        seq = self._names.seq(feedback.event_id)
        if seq is None:
            raise Refusal(404, "the event is not known; an event_id that `decide` gave is expected")
        source = feedback.source
        usable = feedback.verified or source is None or not self.sources.is_quarantined(source)
        learn = feedback.verified or self.settings.silence == "ignore"
        entry = Heard(self.number, seq, now, feedback.bit, source, feedback.verified, False, usable, learn)
        return entry, _NOT_LOOKED_UP

    def kept(self, entry: Heard, row: Row, outcome: Kept, lessons: Any) -> None:
        """Feedback is durable. The owner will learn it; duplicates are not kept, so they are counted here."""
        self.ledger.totals["duplicate"] += outcome.status == "duplicate"

    @property
    def is_due(self) -> bool:
        """Never: the owner keeps states."""
        return False

    @property
    def is_changed(self) -> bool:
        """Never: the owner keeps states."""
        return False


_NOT_LOOKED_UP = Row(0, 0, 0.0, 0.0, 0, 0, 1.0, b"")


def _key(seed: int, process: int) -> int:
    told = hashlib.blake2b(b"%d.%d" % (seed, process), digest_size=8, person=b"fliptron-draws")
    return int(make_key(int.from_bytes(told.digest()) >> 1, CHOICES))
