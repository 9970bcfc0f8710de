"""Whatever is written in whatever order, also with starts in between: a store says what a few dictionaries say."""

from __future__ import annotations

import tempfile
import uuid
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from fliptron.service.sqlite import Journal
from fliptron.service.store import AUDIT, BIT, Decided, Flag, Heard, Settle, Store
from test_store import in_office

MODELS = st.sampled_from([1, 2])
BITS = st.integers(0, 1)


class Machine(RuleBasedStateMachine):
    """A store beside its textbook twin."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "journal.db"

    def opened(self) -> Store:
        return Journal(self.path)

    @initialize()
    def begin(self) -> None:
        self.store = self.opened()
        self.rows: dict[int, tuple[int, bytes]] = {}
        self.keys: dict[tuple[int, str], int] = {}
        self.bits: dict[int, tuple[int, bool, bool]] = {}
        self.audits: dict[int, int] = {}
        self.away: set[int] = set()  # models for which "bot" is in quarantine
        self.applied: list[tuple[int, int, int, int | None]] = []

    def some(self, at: int) -> int:
        """One of the decisions, or one that is not there."""
        return sorted(self.rows)[at % len(self.rows)] if self.rows and at % 7 else 10**6 + at

    @rule(asked=st.lists(st.tuples(MODELS, st.binary(min_size=1, max_size=5), st.sampled_from([None, "a", "b", "c"]))))
    def decide(self, asked: list[tuple[int, bytes, str | None]]) -> None:
        entries = [Decided(model, 0, 1.0, 2.0, 0, 0, 1.0, x, key=key, source=_source(x)) for model, x, key in asked]
        for entry, outcome in zip(entries, self.store.write(entries), strict=True):
            known = None if entry.key is None else self.keys.get((entry.model, entry.key))
            if known is not None:
                assert (outcome.seq, outcome.before.x) == (known, self.rows[known][1])
                continue
            assert outcome.before is None
            seq = outcome.seq
            assert seq > max(self.rows, default=0)
            self.rows[seq] = (entry.model, entry.x)
            if entry.key is not None:
                self.keys[entry.model, entry.key] = seq

    @rule(
        told=st.lists(
            st.tuples(MODELS, st.integers(0, 50), BITS, st.booleans(), st.booleans(), st.booleans(), st.booleans())
        )
    )
    def hear(self, told: list[tuple[int, int, int, bool, bool, bool, bool]]) -> None:
        entries = [
            Heard(model, self.some(at), 1.5, bit, "web", verified=verified, late=late, usable=usable, learn=learn)
            for model, at, bit, verified, late, usable, learn in told
        ]
        for entry, outcome in zip(entries, self.store.write(entries), strict=True):
            assert outcome.status == self.expected(entry)

    def expected(self, entry: Heard) -> str:
        seq = entry.seq
        if seq not in self.rows or self.rows[seq][0] != entry.model:
            return "unknown"
        if seq in (self.audits if entry.verified else self.bits):
            return "duplicate"
        late = not entry.verified and (entry.late or any((s, k) == (seq, BIT) for _, s, k, _ in self.applied))
        if entry.verified:
            self.audits[seq] = entry.bit
        else:
            self.bits[seq] = (entry.bit, late, entry.usable)
        if entry.learn and entry.usable and not late:
            self.applied.append((entry.model, seq, AUDIT if entry.verified else BIT, entry.bit))
        return "late" if late else "accepted"

    @rule(model=MODELS, count=st.integers(0, 5))
    def settle(self, model: int, count: int) -> None:
        mine = [seq for seq, (owner, _) in sorted(self.rows.items()) if owner == model][:count]
        (done,) = self.store.write([Settle(model, mine)])
        want = []
        for seq in mine:
            if any((s, k) == (seq, BIT) for _, s, k, _ in self.applied):
                continue
            bit, late, usable = self.bits.get(seq, (0, False, True))
            away = model in self.away and _source(self.rows[seq][1]) == "bot"
            want.append((seq, None if away else 0 if late else bit if usable else None))
            self.applied.append((model, seq, BIT, want[-1][1]))
        assert [(each.seq, each.bit) for each in done] == want

    @rule(model=MODELS, away=st.booleans())
    def flag(self, model: int, away: bool) -> None:
        self.store.write([Flag(model, "bot", away, 1.0, "drill")])
        (self.away.add if away else self.away.discard)(model)
        assert self.store.flagged(model)["bot"].quarantined == away

    @rule()
    def start_anew(self) -> None:
        self.store.close()
        self.store = self.opened()

    @invariant()
    def it_says_what_the_twin_says(self) -> None:
        for model in (1, 2):
            found = [(row.seq, row.x) for row in self.store.rows(model, 0, 10**6)]
            assert found == [(seq, x) for seq, (owner, x) in sorted(self.rows.items()) if owner == model]
            lessons = [(model, e.applied.seq, e.applied.kind, e.applied.bit) for e in self.store.lessons(model, 0)]
            assert lessons == [each for each in self.applied if each[0] == model]

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()
        self.folder.cleanup()


def _source(x: bytes) -> str | None:
    return ("bot", None)[x[0] % 2]


HOW = settings(
    max_examples=25, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck), database=None
)
TestStore: Any = Machine.TestCase
TestStore.settings = HOW


def test_so_does_one_in_postgres(database: Any) -> None:
    class Shared(Machine):
        def __init__(self) -> None:
            super().__init__()
            self.address = database.schema(f"s{uuid.uuid4().hex}")

        def opened(self) -> Store:
            return in_office(self.address)

    run_state_machine_as_test(Shared, settings=settings(HOW, max_examples=8))
