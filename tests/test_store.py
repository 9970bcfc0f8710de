"""What every store promises, asked of each; see `fliptron.service.store`."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from math import inf, isnan
from pathlib import Path
from typing import Any

import pytest

from fliptron import InputError
from fliptron.service.backup import back_up
from fliptron.service.sqlite import Journal
from fliptron.service.store import (
    AUDIT,
    BIT,
    Applied,
    Decided,
    Flag,
    Heard,
    Keep,
    Kept,
    Settle,
    Store,
    Token,
)

Open = Callable[[], Store]


@pytest.fixture(params=["sqlite", "postgres"])
def reopen(request: Any, tmp_path: Path) -> Iterator[Open]:
    """Opens the store; called again, closes it first and opens what is there."""
    opened: list[Store] = []
    schema = request.getfixturevalue("schema") if request.param == "postgres" else None

    def open_it() -> Store:
        if opened:
            opened.pop().close()
        opened.append(Journal(tmp_path / "journal.db") if schema is None else in_office(schema))
        return opened[0]

    yield open_it
    for store in opened:
        store.close()


def in_office(address: str) -> Store:
    """A process that learns: it may write everything."""
    from fliptron.service.postgres import Postgres  # where there is none, the other store is tested

    store = Postgres(address)
    for _ in range(100):  # the one before may be gone a moment ago
        if store.stand():
            return store
        time.sleep(0.02)
    raise AssertionError("nobody left the office")


def decided(model: int = 1, **more: Any) -> Decided:
    told = {"version": 3, "time": 100.5, "deadline": 160.5, "label": 2, "greedy": 0, "probability": 0.1, "x": b"abcd"}
    return Decided(model=model, **(told | more))


def heard(seq: Any, bit: int = 1, *, model: int = 1, **more: Any) -> Heard:
    return Heard(model=model, seq=seq, time=more.pop("time", 120.0), bit=bit, **more)


def seqs(store: Store, count: int, **more: Any) -> list[int]:
    return [outcome.seq for outcome in store.write([decided(**more) for _ in range(count)])]


def learnt(store: Store, model: int = 1, after: int = 0) -> list[Any]:
    return [(each.applied.seq, each.applied.kind, each.applied.bit) for each in store.lessons(model, after)]


def test_what_was_decided_is_there_again_and_after_a_new_start(reopen: Open) -> None:
    store = reopen()
    model = store.open_model("shop", b"{}").number
    full = decided(
        model, margin=0.5, eligible=b"\1\0\0\0", record=b'{"age":3}', source="web", key="k", deadline=inf, time=1.25
    )
    (taken,) = store.write([full])
    store = reopen()
    row = store.find(model, taken.seq)
    assert row is not None
    assert {name: getattr(row, name) for name in full.__struct_fields__} == {
        name: getattr(full, name) for name in full.__struct_fields__
    }
    assert store.find_key(model, "k") == row
    assert store.find(model + 1, taken.seq) is None
    assert store.find(model, taken.seq + 1) is None
    assert store.find_key(model, "other") is None


def test_a_model_has_one_number_for_ever(reopen: Open) -> None:
    store = reopen()
    a, b = store.open_model("a", b"1"), store.open_model("b", b"2")
    assert a.number != b.number
    assert reopen().open_model("a", b"3") == a


def test_numbers_rise_also_after_a_new_start_and_many_at_once(reopen: Open) -> None:
    store = reopen()
    first = seqs(store, 150)
    assert first == list(range(first[0], first[0] + 150))
    store = reopen()
    assert seqs(store, 1)[0] > first[-1]
    assert [row.seq for row in store.rows(1, first[9], 20)] == first[10:30]


def test_a_key_is_good_for_one_decision_of_a_model(reopen: Open) -> None:
    store = reopen()
    one, two, other = store.write([decided(key="k", label=1), decided(key="k", label=2), decided(2, key="k")])
    assert (two.seq, two.before.label) == (one.seq, 1)
    assert other.before is None
    (again,) = reopen().write([decided(key="k", label=0)])
    assert (again.seq, again.before.label) == (one.seq, 1)
    assert len(reopen().rows(1, 0, 10)) == 1


def test_the_first_bit_wins_and_is_learnt_once(reopen: Open) -> None:
    store = reopen()
    a, b = seqs(store, 2)
    found: Any = store.write([heard(a, 1), heard(a, 0), heard(b, 0)])
    assert [each.status for each in found] == ["accepted", "duplicate", "accepted"]
    assert found[0].position < found[2].position
    assert found[1].position is None
    store = reopen()
    assert store.write([heard(a, 0), heard(b, 1)]) == [Kept("duplicate"), Kept("duplicate")]
    assert learnt(store) == [(a, BIT, 1), (b, BIT, 0)]


def test_what_is_late_or_unusable_is_kept_and_not_learnt(reopen: Open) -> None:
    store = reopen()
    a, b, c = seqs(store, 3)
    found = store.write([heard(a, late=True), heard(b, usable=False), heard(c, learn=False)])
    assert found == [Kept("late"), Kept("accepted"), Kept("accepted")]
    assert learnt(store) == []
    assert [each.status for each in store.write([heard(a), heard(b)])] == ["duplicate", "duplicate"]


def test_feedback_for_nothing_is_unknown(reopen: Open) -> None:
    store = reopen()
    (a,) = seqs(store, 1)
    assert store.write([heard(a + 7), heard(a, model=2), heard(a)])[:2] == [Kept("unknown"), Kept("unknown")]
    assert learnt(store) == [(a, BIT, 1)]


def test_settling_takes_the_bit_that_came_or_silence(reopen: Open) -> None:
    store = reopen()
    a, b, c, d = seqs(store, 4)
    store.write([heard(a, learn=False), heard(c, learn=False, usable=False), heard(d, late=True, learn=False)])
    (done,) = store.write([Settle(1, [a, b, c, d])])
    assert [(each.seq, each.bit) for each in done] == [(a, 1), (b, 0), (c, None), (d, 0)]
    assert isinstance(done[0], Applied)
    store = reopen()
    assert store.write([Settle(1, [a, b, c, d])]) == [[]]
    assert [each.bit for each in (lesson.applied for lesson in store.lessons(1, 0))] == [1, 0, None, 0]
    assert store.write([heard(b, learn=False)]) == [Kept("late")]  # its silence was learnt


def test_settling_without_silence_takes_only_bits_that_came(reopen: Open) -> None:
    store = reopen()
    a, b, c, d = seqs(store, 4)
    store.write([heard(a, learn=False), heard(c, learn=False, usable=False), heard(d, late=True, learn=False)])
    (done,) = store.write([Settle(1, [a, b, c, d], silence=False)])
    assert [(each.seq, each.bit) for each in done] == [(a, 1), (c, None)]
    assert store.write([heard(b)])[0].status == "accepted"
    assert store.write([Settle(1, [a, b, c, d], silence=False)]) == [[]]


def test_silence_of_a_source_in_quarantine_is_not_learnt(reopen: Open) -> None:
    store = reopen()
    bot, good = seqs(store, 4, source="bot"), seqs(store, 2, source="good")
    store.write([heard(bot[0], learn=False), heard(bot[1], learn=False, usable=False), heard(good[0], learn=False)])
    store.write([Flag(1, "bot", False, 4.0, "odd"), Flag(1, "bot", True, 5.0, "odd"), Flag(2, "good", True, 5.0, "x")])
    (done,) = store.write([Settle(1, [*bot[:3], *good])])
    assert [each.bit for each in done] == [None, None, None, 1, 0]
    store.write([Flag(1, "bot", False, 6.0, "by hand")])
    store = reopen()
    assert [each.bit for each in store.write([Settle(1, bot)])[0]] == [0]
    assert [each.applied.bit for each in store.lessons(1, 0)] == [None, None, None, 1, 0, 0]
    assert [row.seq for batch in store.export(1) for row, *_ in batch] == sorted([bot[3], *good])


def test_an_audit_is_kept_beside_the_bit(reopen: Open) -> None:
    store = reopen()
    a, b = seqs(store, 2)
    store.write([heard(a, 1, source="web")])
    found = store.write(
        [heard(a, 0, verified=True, source="her"), heard(a, 1, verified=True), heard(b, 1, verified=True)]
    )
    assert [each.status for each in found] == ["accepted", "duplicate", "accepted"]
    store.write([heard(b, 0)])
    told = [
        (each.applied.seq, each.applied.kind, each.applied.bit, each.heard, each.source) for each in store.lessons(1, 0)
    ]
    assert told == [
        (a, BIT, 1, None, "web"),
        (a, AUDIT, 0, 1, "her"),
        (b, AUDIT, 1, None, None),
        (b, BIT, 0, None, None),
    ]


def test_lessons_come_in_the_order_of_positions_and_by_model(reopen: Open) -> None:
    store = reopen()
    mine, other = seqs(store, 1200), seqs(store, 3, model=2)
    order = [*reversed(mine), other[0]]
    store.write([heard(seq, model=2 if seq == other[0] else 1) for seq in order])
    found = list(store.lessons(1, 0))
    assert [each.applied.seq for each in found] == list(reversed(mine))
    positions = [each.applied.position for each in found]
    assert positions == sorted(set(positions))
    assert [each.applied.seq for each in store.lessons(1, positions[1000])] == order[1001:1200]
    assert [each.row.seq for each in store.lessons(2, 0)] == [other[0]]


def test_a_write_is_all_or_nothing(reopen: Open) -> None:
    store = reopen()
    (a,) = seqs(store, 1)
    with pytest.raises(Exception, match=r"."):
        store.write([decided(), heard(a), decided(x=None)])
    assert learnt(store) == []
    assert [row.seq for row in store.rows(1, 0, 10)] == [a]
    assert store.write([heard(a)])[0].status == "accepted"
    assert seqs(reopen(), 1)[0] > a


def test_the_first_and_the_last_two_states_are_kept(reopen: Open) -> None:
    store = reopen()
    for at in range(4):
        store.write([Keep(1, at, at, bytes([at]) * 3, "engine"), Keep(2, at, at, b"other", "engine")])
    store = reopen()
    assert [(each.position, each.content) for each in store.snapshots(1)] == [
        (3, b"\3\3\3"),
        (2, b"\2\2\2"),
        (0, b"\0\0\0"),
    ]
    assert store.snapshots(3) == []


def test_sources_and_tokens_are_kept(reopen: Open) -> None:
    store = reopen()
    first: Any
    second: Any
    third: Any
    first, second = store.write([Flag(1, "bot", True, 5.0, "odd"), Flag(2, "bot", True, 5.0, "odd")])
    (third,) = store.write([Flag(1, "bot", False, 6.0, "by hand")])
    assert 0 < first < second < third
    token = Token("web", b"d" * 32, ("decide", "feedback"), ("shop",))
    store.add_token(Token("web", b"e" * 32, ("admin",)))
    store.add_token(token)
    secret, store = store.secret, reopen()
    assert store.flagged(1) == {"bot": Flag(1, "bot", False, 6.0, "by hand", third)}
    assert [(flag.number, flag.quarantined) for flag in store.flags(1)] == [(first, True), (third, False)]
    assert store.flagged(2)["bot"].quarantined
    assert store.tokens() == [token]
    assert store.secret == secret
    assert len(secret) == 32


def test_the_export_has_every_bit_that_counts(reopen: Open) -> None:
    store = reopen()
    a, b, c, d, _ = seqs(store, 5)
    store.write([heard(a, 1, time=7.0), heard(b, 0, usable=False), heard(c, 1, late=True), heard(a, 0, verified=True)])
    store.write([Settle(1, [c, d])])
    found = [each for batch in store.export(1) for each in batch]
    assert [(row.seq, bit, audit) for row, bit, _, audit in found] == [(a, 1, 0), (c, 0, None), (d, 0, None)]
    assert found[0][2] == 7.0
    assert isnan(found[2][2])


class TestOneFile:
    def test_a_second_server_is_refused(self, tmp_path: Path) -> None:
        first = Journal(tmp_path / "journal.db")
        with pytest.raises(InputError, match="another server uses"):
            Journal(tmp_path / "journal.db")
        first.close()
        Journal(tmp_path / "journal.db").close()

    def test_a_foreign_file_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "text.db").write_text("hello, this is not a database at all" * 40)
        with pytest.raises(InputError, match="cannot be used as a journal"):
            Journal(tmp_path / "text.db")
        with pytest.raises(InputError, match="cannot be opened"):
            Journal(tmp_path / "nowhere" / "journal.db")

    def test_a_backup_is_whole_and_made_while_it_writes(self, tmp_path: Path) -> None:
        journal = Journal(tmp_path / "journal.db")
        found = seqs(journal, 3)
        back_up(tmp_path / "journal.db", tmp_path / "copy.db")
        seqs(journal, 2)
        copy = Journal(tmp_path / "copy.db")
        assert [row.seq for row in copy.rows(1, 0, 10)] == found
        assert copy.secret == journal.secret
        copy.close()
        journal.close()
        with pytest.raises(InputError, match="is there already"):
            back_up(tmp_path / "journal.db", tmp_path / "copy.db")

    def test_nobody_else_may_read_the_secret(self, tmp_path: Path) -> None:
        Journal(tmp_path / "journal.db").close()
        back_up(tmp_path / "journal.db", tmp_path / "copy.db")
        assert [path.stat().st_mode & 0o77 for path in tmp_path.iterdir()] == [0, 0, 0]


def test_a_backup_is_not_mixed_with_the_log_of_what_was_there_before(tmp_path: Path) -> None:
    path, log = tmp_path / "journal.db", tmp_path / "journal.db-wal"
    for _ in range(2):  # a backup may be put back twice
        store = Journal(path)
        store.open_model("m", b"{}")
        seqs(store, 1)
        if not (tmp_path / "monday.db").exists():
            back_up(path, tmp_path / "monday.db")
        seqs(store, 50)
        left = log.read_bytes()
        store.close()
        shutil.copy(tmp_path / "monday.db", path)
        log.write_bytes(left)  # as if it had been killed
        for alone in (True, False):
            with pytest.raises(InputError, match="belongs to the journal that was there"):
                Journal(path, alone=alone)
        log.unlink()
    store = Journal(path)
    assert [row.seq for row in store.rows(1, 0, 100)] == [1]
    seqs(store, 1)
    left, content = log.read_bytes(), path.read_bytes()
    store.close()
    log.write_bytes(left)
    path.write_bytes(content)
    store = Journal(path)  # its own log
    assert [row.seq for row in store.rows(1, 0, 100)] == [1, 2]
    store.close()
