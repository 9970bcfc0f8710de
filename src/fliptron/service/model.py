"""A model that is served: what it learns from a lesson, what is counted, and how all of it is kept as a snapshot."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec
import numpy as np

from fliptron.kernels import loop
from fliptron.learners.among import learn_among
from fliptron.learners.base import Learner
from fliptron.learners.fliptron import Fliptron
from fliptron.noise.estimate import Estimate
from fliptron.policy import Policy
from fliptron.refusals import InputError
from fliptron.rounds import Decision
from fliptron.service.ledger import Ledger
from fliptron.service.packing import eligible_of, unpack
from fliptron.service.settings import ModelSettings
from fliptron.service.snapshots import fingerprint
from fliptron.service.sources import Sources
from fliptron.service.store import AUDIT, Keep, Lesson

_OFTEN = 10_000  # decisions and lessons after which a snapshot is due: what a start after a crash replays
_encode = msgspec.json.Encoder().encode


class ServedModel:
    """A model and all that is kept of it.

    Parameters
    ----------
    settings
        What the operator said.
    number
        The store's number of the model.
    policy
        The model; or its learner alone, which takes the numbers of x as they are.
    """

    def __init__(self, settings: ModelSettings, number: int, policy: Policy | Learner) -> None:
        self.settings, self.number, self.name = settings, number, settings.name
        self.learner: Learner = policy.learner if isinstance(policy, Policy) else policy
        self.encoder = policy.encoder if isinstance(policy, Policy) else None
        self.labels: tuple[Any, ...] = _labels(policy, settings)
        self.learnt_logs: dict[str, Any] = policy.learnt if isinstance(policy, Policy) else {}
        self.ledger = Ledger(len(self.labels))
        self.sources = Sources()
        self.version = 0
        """How many lessons were learnt."""
        self.position = 0
        """The last of them, in the store's order."""
        self.seq = 0
        """The last decision that is durable."""
        self.settled = 0
        """Up to which decision silence was taken for an answer."""
        self.time = 0.0
        """Of the last decision that is durable."""
        self.silence = settings.silence
        """What no feedback means; while the journal is read, what it meant then."""
        self._decided = self.learner.rounds  # draws of decisions that are durable
        self._moments = None if self.encoder is None else self.encoder.moments.copy()
        self._deadline = 0.0
        self._since = 0  # decisions and lessons since the last snapshot

    def learn(self, lesson: Lesson) -> None:
        """Take one lesson, live or from the journal."""
        applied, row = lesson.applied, lesson.row
        self.position, self._since = applied.position, self._since + 1
        if applied.kind != AUDIT and self.silence == "negative":
            self.settled = max(self.settled, applied.seq)
        if applied.bit is None:
            self.ledger.set_aside()
            return
        if applied.kind == AUDIT:
            self.ledger.audited(applied.bit, lesson.heard)
        else:
            # Where silence is a bit, whoever was decided for is judged: those who send have only ones to send.
            source = row.source if self.silence == "negative" else lesson.source
            if source is not None:
                x = unpack(row.x, self._sparse, self.learner)
                self.sources.observe(source, self.learner, x, row.label, applied.bit)
            self.ledger.learnt(row, applied.bit)
        self.teach(lesson)
        self.version += 1

    def teach(self, lesson: Lesson) -> None:
        """Let the learner have a bit, or an audit, of a lesson; nothing else is counted."""
        row, bit = lesson.row, lesson.applied.bit
        if bit is None:
            return
        x = unpack(row.x, self._sparse, self.learner)
        decision = Decision(row.label, row.greedy, row.probability)
        if lesson.applied.kind == AUDIT:
            self._audit(x, decision, bit, lesson.heard)
        else:
            learn_among(self.learner, x, decision, bit, eligible_of(row.eligible))

    def _audit(self, x: Any, decision: Decision, right: int, heard: int | None) -> None:
        """What is certain: how the bit was made, and, where it follows, which label was right."""
        learner = self.learner
        if not isinstance(learner, Fliptron):
            return
        truth = decision.label if right else 1 - decision.label if learner.n_classes == 2 else None
        if heard is not None:
            learner.audit(x, decision, heard, truth)
        elif truth is not None:
            learner.learn(x, decision, truth=truth)

    @property
    def _sparse(self) -> bool:
        return self.encoder is not None and self.encoder.sparse

    def estimate(self) -> Estimate | None:
        """What the learner has found out about the noise; None if it does not."""
        return self.learner.estimate() if isinstance(self.learner, Fliptron) else None

    @property
    def is_due(self) -> bool:
        """Whether it is time for a snapshot."""
        return self._since >= _OFTEN

    @property
    def is_changed(self) -> bool:
        """Whether anything happened since the last snapshot."""
        return self._since > 0

    def snapshot(self) -> Keep:
        """All that is durable, as an entry."""
        self._since = 0
        live = self.learner.turn[loop.DECIDED]
        self.learner.turn[loop.DECIDED] = self._decided
        try:
            return Keep(self.number, self.position, self.seq, self.content(), fingerprint())
        finally:
            self.learner.turn[loop.DECIDED] = live

    def content(self) -> bytes:
        """The model as a file of `Policy.save` or `Learner.save` has it, with what the service keeps besides."""
        service = {
            "version": self.version, "settled": self.settled, "deadline": self._deadline, "time": self.time,
            "silence": self.silence, "ledger": self.ledger.plain(), "sources": self.sources.plain(),
        }  # fmt: skip
        arrays = {"service": np.frombuffer(_encode(service), np.uint8)}  # ten thousand sources are no line of JSON
        if self.encoder is None:
            return self.learner.packed({"names": list(self.labels)}, arrays)
        about = {
            "labels": list(self.labels),
            "schema": self.encoder.schema.to_plain(),
            "curves": len(self.encoder.curves.pairs),
            "learnt": self.learnt_logs,
        }
        arrays |= {**self.encoder.arrays(), "moments": self._moments}  # type: ignore[dict-item]
        return self.learner.packed({"policy": about}, arrays)

    def _restore(self, about: dict[str, Any], kept: Keep) -> None:
        self.settings.check(self.labels, self.learner, None if self.encoder is None else self.encoder.schema)
        self.time, self.silence = about["time"], about["silence"]
        self.position, self.seq = kept.position, kept.seq
        self.version, self.settled, self._deadline = about["version"], about["settled"], about["deadline"]
        self.ledger.restore(about["ledger"])
        self.sources.restore(about["sources"])

    def digest(self) -> str:
        """A checksum of all that is durable, equal for equal models: the drills compare it."""
        told = hashlib.sha256()
        for name, array in sorted(self.learner._arrays().items()):
            told.update(name.encode() + np.ascontiguousarray(array).tobytes())
        told.update(b"%d %d %d" % (self._decided, self.version, self.position))
        if self._moments is not None:
            told.update(self._moments.tobytes())
        told.update(_encode(self.sources.plain()))
        return told.hexdigest()


def _labels(policy: Policy | Learner, settings: ModelSettings) -> tuple[Any, ...]:
    if isinstance(policy, Policy):
        return policy.labels
    named_ = settings.labels or tuple(range(policy.n_classes))
    if len(named_) != policy.n_classes:
        raise InputError(f"model {settings.name!r} has {len(named_)} labels, and its file {policy.n_classes}")
    return tuple(named_)
