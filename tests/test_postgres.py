"""What only a shared store promises: who learns, once, and that nobody else does."""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fliptron import InputError
from fliptron.service.inbox import DUE, MADE, NOTED, Claimed, Lessons
from fliptron.service.settings import ModelSettings
from fliptron.service.store import (
    AUDIT,
    BIT,
    Applied,
    Decided,
    FencedError,
    Flag,
    Heard,
    Keep,
    Kept,
    Settle,
    StoreError,
)
from serving import serving, settings

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")
from fliptron.service import election, statements  # noqa: E402
from fliptron.service.postgres import Postgres  # noqa: E402

Open = Callable[[], Postgres]


@pytest.fixture
def opened(schema: str) -> Iterator[Open]:
    """Opens a store, as one more process would."""
    stores: list[Postgres] = []

    def open_it() -> Postgres:
        stores.append(Postgres(schema))
        return stores[-1]

    yield open_it
    for store in stores:
        store.close()


def decided(**more: Any) -> Decided:
    told = {"version": 3, "time": 100.5, "deadline": 160.5, "label": 2, "greedy": 0, "probability": 0.1, "x": b"abcd"}
    return Decided(model=1, **(told | more))


def heard(seq: int, bit: int = 1, **more: Any) -> Heard:
    return Heard(model=1, seq=seq, time=more.pop("time", 120.0), bit=bit, **more)


def elected(store: Postgres) -> Postgres:
    until = time.monotonic() + 10
    while not store.stand():
        assert time.monotonic() < until
        time.sleep(0.02)
    return store


class Owner:
    """A model that only counts: it notes what it is taught."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, int, int | None]] = []
        self.position = 0

    def __call__(self, claimed: list[Claimed]) -> Lessons:
        applied: list[Applied] = []
        for each in claimed:
            self.seen.append((each.kind, each.row.seq, each.heard.bit if each.heard is not None else None))
            if each.kind in (BIT, AUDIT, DUE):
                self.position += 1
                bit = each.heard.bit if each.heard is not None else 0
                applied.append(Applied(self.position, each.row.seq, AUDIT if each.kind == AUDIT else BIT, bit))
        waiting = [each.row for each in claimed if each.kind == MADE and each.row.key == "wait"]
        return Lessons(applied, waiting, [Keep(1, self.position, 0, b"state %d" % self.position, "engine")])


def learnt(store: Postgres) -> list[tuple[int, int | None]]:
    return [(each.applied.seq, each.applied.bit) for each in store.lessons(1, 0)]


class TestInbox:
    def test_what_others_write_is_taken_in_once_with_the_state(self, opened: Open) -> None:
        replica, owner, model = opened(), elected(opened()), Owner()
        a, b, c = (taken.seq for taken in replica.write([decided(), decided(), decided(source="bot")]))
        found = replica.write(
            [heard(b, 0), heard(a, 1), heard(a, 0), heard(c, 1, time=170.0), heard(b, 1, verified=True)]
        )
        assert [each.status for each in found] == ["accepted", "accepted", "duplicate", "late", "accepted"]
        assert all(each.position is None for each in found)
        assert learnt(replica) == []
        assert owner.teach(1, 100, model) == 7
        assert [(kind, seq) for kind, seq, _ in model.seen[:3]] == [(MADE, a), (MADE, b), (MADE, c)]
        assert {(BIT, b, 0), (BIT, a, 1), (NOTED, c, 1), (AUDIT, b, 1)} < set(model.seen)
        assert owner.teach(1, 100, model) == 0
        assert sorted(learnt(replica)) == sorted([(a, 1), (b, 0), (b, 1)])
        assert replica.newest(1) is not None
        assert replica.snapshots(1)[0].content == b"state 3"

    def test_if_learning_fails_nothing_has_happened(self, opened: Open) -> None:
        owner = elected(opened())
        opened().write([decided()])

        def fail(claimed: list[Claimed]) -> Lessons:
            raise ArithmeticError

        with pytest.raises(ArithmeticError):
            owner.teach(1, 100, fail)
        model = Owner()
        assert owner.teach(1, 100, model) == 1
        assert len(model.seen) == 1

    def test_a_transaction_that_commits_late_is_not_overlooked(self, opened: Open, schema: str) -> None:
        owner, model = elected(opened()), Owner()
        row = [1], [0], [1.0], [2.0], [0], [0], [0.5], [b"x"], [None], [None], [None], [None], [None]
        with psycopg.connect(schema) as slow:
            ((early, _),) = slow.execute(statements.DECIDE, row).fetchall()
            (later,) = opened().write([decided()])
            assert later.seq > early
            assert owner.teach(1, 100, model) == 1
            slow.commit()
        assert owner.teach(1, 100, model) == 1
        assert [seq for _, seq, _ in model.seen] == [later.seq, early]

    def test_silence_waits_for_its_deadline(self, opened: Open) -> None:
        replica, owner, model = opened(), elected(opened()), Owner()
        due = time.time() + 0.6
        (taken,) = replica.write([decided(deadline=due, key="wait")])
        assert owner.teach(1, 100, model) == 1
        assert owner.teach(1, 100, model) == 0
        time.sleep(due + 0.05 - time.time())
        assert owner.teach(1, 100, model) == 1
        assert model.seen == [(MADE, taken.seq, None), (DUE, taken.seq, None)]
        assert replica.write([heard(taken.seq, learn=False, time=0.0)]) == [Kept("late")]

    def test_a_deadline_does_not_pass_while_somebody_answers(self, opened: Open, schema: str) -> None:
        replica, owner, model = opened(), elected(opened()), Owner()
        (taken,) = replica.write([decided(deadline=1.0, key="wait")])
        owner.teach(1, 100, model)
        with psycopg.connect(schema) as answering:
            answering.execute(statements.HOLD, ([taken.seq],))
            assert owner.teach(1, 100, model) == 0
        assert owner.teach(1, 100, model) == 1

    def test_bits_of_a_source_in_quarantine_are_not_learnt(self, opened: Open) -> None:
        replica, owner, model = opened(), elected(opened()), Owner()
        replica.write([Flag(1, "bot", True, 5.0, "odd")])
        (taken,) = replica.write([decided(source="bot")])
        assert replica.write([heard(taken.seq)]) == [Kept("accepted")]
        owner.teach(1, 100, model)
        assert (NOTED, taken.seq, 1) in model.seen
        assert learnt(owner) == []


class TestElection:
    def test_one_holds_the_office_until_it_is_gone(self, opened: Open) -> None:
        first, second = opened(), opened()
        assert first.stand()
        assert not second.stand()
        epoch = first.epoch
        assert epoch is not None
        first.close()
        assert elected(second).epoch == epoch + 1

    def test_others_may_not_learn_or_keep_states(self, opened: Open) -> None:
        replica = opened()
        (taken,) = replica.write([decided()])
        for entry in (Settle(1, [taken.seq]), Keep(1, 0, 0, b"mine", "engine")):
            with pytest.raises(FencedError):
                replica.write([decided(), entry])
        with pytest.raises(FencedError):
            replica.teach(1, 100, Owner())
        assert replica.snapshots(1) == []
        assert len(replica.rows(1, 0, 10)) == 1

    def test_the_first_state_is_whose_comes_first(self, opened: Open) -> None:
        one, two = opened(), opened()
        one.begin(Keep(1, 0, 0, b"first", "engine"))
        two.begin(Keep(1, 0, 0, b"second", "engine"))
        assert [each.content for each in two.snapshots(1)] == [b"first"]

    def test_whoever_is_silent_is_deposed_and_commits_nothing(self, opened: Open) -> None:
        old, new, model = elected(opened()), opened(), Owner()
        opened().write([decided()])

        def pause(claimed: list[Claimed]) -> Lessons:  # as a process that is stopped in the midst of it
            began = time.monotonic()
            elected(new)
            assert election.SILENCE < time.monotonic() - began < 4.0
            return model(claimed)

        with pytest.raises(StoreError):
            old.teach(1, 100, pause)
        assert old.epoch is None
        assert new.snapshots(1) == []
        assert new.teach(1, 100, model) == 1
        assert not old.stand()

    def test_an_old_epoch_commits_nothing_even_if_its_session_lives(self, opened: Open, schema: str) -> None:
        old, model = elected(opened()), Owner()
        opened().write([decided()])
        with psycopg.connect(schema, autocommit=True) as connection:
            connection.execute("UPDATE office SET epoch = epoch + 1")
        with pytest.raises(FencedError, match="another process learns now"):
            old.teach(1, 100, model)
        assert model.seen == []
        with pytest.raises(FencedError):
            old.write([Keep(1, 0, 0, b"mine", "engine")])
        assert elected(old).teach(1, 100, model) == 1

    def test_services_in_other_schemas_do_not_disturb(self, opened: Open, database: Any) -> None:
        assert opened().stand()
        other = Postgres(database.schema("another"))
        assert other.stand()
        other.close()


class TestSeveralAtOnce:
    def test_one_key_is_one_decision_and_one_bit_wins(self, opened: Open) -> None:
        stores = [opened() for _ in range(4)]
        rng = np.random.default_rng(3)
        keys = [f"k{at}" for at in range(60)]
        orders = [rng.permutation(60) for _ in stores]

        def decide(at: int) -> list[tuple[str | None, int]]:
            entries = [decided(key=keys[k], label=at) for k in orders[at]]
            found = [taken for start in range(0, 60, 20) for taken in stores[at].write(entries[start : start + 20])]
            return [(entry.key, taken.seq) for entry, taken in zip(entries, found, strict=True)]

        def hear(at: int) -> list[str]:
            order = rng.permutation(seqs)
            return [kept.status for start in range(0, 60, 20) for kept in
                    stores[at].write([heard(int(seq), at % 2) for seq in order[start : start + 20]])]  # fmt: skip

        with ThreadPoolExecutor(4) as pool:
            told = {pair for found in pool.map(decide, range(4)) for pair in found}
            seqs = [seq for _, seq in told]
            statuses = [status for found in pool.map(hear, range(4)) for status in found]
        assert len(told) == len(set(seqs)) == 60
        assert len(stores[0].rows(1, 0, 1000)) == 60
        assert statuses.count("accepted") == 60
        assert statuses.count("duplicate") == 180
        model = Owner()
        elected(stores[0]).teach(1, 1000, model)
        assert len(learnt(stores[1])) == 60

    def test_several_make_the_tables_at_once(self, schema: str) -> None:
        with ThreadPoolExecutor(4) as pool:
            stores = list(pool.map(lambda _: Postgres(schema), range(4)))
        assert len({store.secret for store in stores}) == 1
        for store in stores:
            store.close()


class TestOpening:
    def test_what_cannot_be_used_is_refused_in_a_sentence(self, schema: str, database: Any) -> None:
        with pytest.raises(InputError, match="the database cannot be used as a journal"):
            Postgres(f"postgresql://postgres@/postgres?host={database.folder}/nowhere")
        with psycopg.connect(schema) as connection:
            connection.execute("CREATE TABLE meta (name text, value bytea)")
        with pytest.raises(InputError, match="another version"):
            Postgres(schema)

    def test_a_lost_connection_is_made_again(self, opened: Open, schema: str) -> None:
        store = opened()
        with psycopg.connect(schema, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s", (election.name(),)
            )
        with pytest.raises(StoreError, match="the database cannot be written now"):
            store.write([decided()])
        (taken,) = store.write([decided()])
        assert store.find(1, taken.seq) is not None


def test_two_servers_are_one_service(schema: str) -> None:
    """Decided here, answered there, learnt by one of them, known to both; and no draw is used twice."""

    async def play() -> None:
        model = ModelSettings(name="m", labels=("a", "b", "c", "d"), features=2, gamma=1.0)
        served, nowhere = settings(model), Path()
        async with (
            serving(served, nowhere, Postgres(schema)) as one,
            serving(served, nowhere, Postgres(schema)) as two,
        ):
            path = "/v1/models/m/"
            labels: dict[Any, list[str]] = {one: [], two: []}
            for at in range(40):
                for asker, other in ((one, two), (two, one)):
                    body = {"features": [1.0, float(at)], "key": f"{at} {asker is one}"}
                    _, answer, _ = await asker.ask("POST", path + "decide", body)
                    assert (await other.ask("POST", path + "decide", body))[1] == answer
                    labels[asker].append(answer["label"])
                    told = {"event_id": answer["event_id"], "bit": at % 2}
                    assert (await other.ask("POST", path + "feedback", told))[1] == {"status": "accepted"}
                    assert (await asker.ask("POST", path + "feedback", told))[1] == {"status": "duplicate"}
            assert labels[one] != labels[two]
            forged = {"event_id": "1-0000000000000000", "bit": 1}
            assert (await one.ask("POST", path + "feedback", forged))[0] == 404
            assert (await one.ask("POST", path + "feedbacks", {"feedbacks": [forged]}))[1] == [{"status": "unknown"}]
            until = time.monotonic() + 10
            while {each.office.desks["m"].version for each in (one, two)} != {80}:
                assert time.monotonic() < until
                await asyncio.sleep(0.05)
            lives = [each.office.live(each.office.desks["m"]) for each in (one, two)]
            assert [(live.decisions, live.feedback, live.duplicates) for live in lives] == [(80, 80, 40), (80, 80, 40)]

    asyncio.run(play())


def test_killed_and_paused_under_load(database: Any) -> None:
    """The short form of `make crash`."""
    from crash_postgres import drill  # type: ignore[import-not-found]
    from database import Database  # type: ignore[import-not-found]

    server = Database(fsync=False)
    try:
        done = drill(server, ["pause", "database", "learner"], servers=2, seed=1, longest=5.0)  # other tests run beside
    finally:
        server.close()
    assert done.book.counts["accepted"] > 20


class TestUpgrade:
    """The last state is that of another version's learner, which cannot be taken up."""

    @pytest.fixture
    def served(self, schema: str) -> Any:
        """Settings of a model that learnt 30 bits, and whose state then seems to be of 0.2.0 and misses something."""
        told = settings(ModelSettings(name="shop", labels=("hats", "shoes"), features=2))

        async def play() -> None:
            async with serving(told, Path(), Postgres(schema)) as client:
                for at in range(30):
                    await client.feedback(await client.decide([1.0, at / 30]), at % 2)
                until = time.monotonic() + 10
                while client.office.desks["shop"].version < 30:
                    assert time.monotonic() < until
                    await asyncio.sleep(0.05)

        asyncio.run(play())
        with psycopg.connect(schema) as connection:
            ((content,),) = connection.execute("SELECT content FROM state ORDER BY number DESC LIMIT 1").fetchall()
            arrays = dict(np.load(io.BytesIO(content)))
            arrays["about"] = json.dumps(json.loads(str(arrays["about"])) | {"version": "0.2.0"})
            del arrays["counts"]
            np.savez(older := io.BytesIO(), **arrays)
            digest = hashlib.sha256(older.getvalue()).digest()
            connection.execute("UPDATE state SET content = %b, sha256 = %b", (older.getvalue(), digest))
        return told

    def test_the_first_server_learns_the_journal_anew(self, served: Any, schema: str) -> None:
        async def play() -> None:
            async with (
                serving(served, Path(), Postgres(schema)) as one,
                serving(served, Path(), Postgres(schema)) as two,
            ):
                assert one.office.desks["shop"].version == two.office.desks["shop"].version == 30
                assert one.office.desks["shop"].ledger.totals["decisions"] == 30
                assert np.any(one.office.desks["shop"].learner.weights)
                await one.feedback(await two.decide([1.0, 0.5]), 1)
                until = time.monotonic() + 10
                while {each.office.desks["shop"].version for each in (one, two)} != {31}:
                    assert time.monotonic() < until
                    await asyncio.sleep(0.05)

        asyncio.run(play())

    def test_while_others_serve_it_is_refused(self, served: Any, schema: str, opened: Open) -> None:
        elected(opened())

        async def play() -> None:
            async with serving(served, Path(), Postgres(schema)):
                pass

        with pytest.raises(InputError, match=r"version 0.2.0.*; or stop all servers of that version"):
            asyncio.run(play())
