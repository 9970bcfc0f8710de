"""What no feedback means: a bit 0 at the deadline, or nothing; and what becomes of bits when that changes."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from fliptron.service.desk import Desk
from fliptron.service.sqlite import Journal
from fliptron.service.store import Settle
from serving import Client, run, serving, settings, shop


def test_silence_is_learnt_at_the_deadline_in_the_order_of_decisions(tmp_path: Path) -> None:
    model = shop(silence="negative", wait=0.3)

    async def play() -> None:
        async with serving(settings(model), tmp_path / "journal.db") as client:
            desk = client.office.desks["shop"]
            events = [await client.decide({"age": age}) for age in range(6)]
            assert await client.feedback(events[4], 1) == "accepted"
            assert await client.feedback(events[1], 1) == "accepted"
            assert desk.version == 0
            while desk.version < 6:
                await asyncio.sleep(0.02)
            assert await client.feedback(events[2], 1) == "late"
            assert await client.feedback(events[1], 0) == "duplicate"
            found = [(each.applied.seq, each.applied.bit) for each in client.office.store.lessons(1, 0)]
            assert found == [(1, 0), (2, 1), (3, 0), (4, 0), (5, 1), (6, 0)]
            assert client.office.live(desk).noise.in_time == pytest.approx(2 / 3)
            told = desk.digest()
            assert Desk.opened(model, client.office.store).digest() == told
            await client.decide({"age": 9})
        journal = Journal(tmp_path / "journal.db")
        assert len(list(journal.lessons(1, 0))) in (6, 7)
        journal.close()
        await asyncio.sleep(0.35)
        async with serving(settings(model), tmp_path / "journal.db") as client:
            desk = client.office.desks["shop"]
            while desk.version < 7:
                await asyncio.sleep(0.02)

    run(play())


def test_a_clock_that_is_set_back_stops_no_deadline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = shop(silence="negative", wait=0.2)

    async def play(ahead: float) -> None:
        real = time.time
        with monkeypatch.context() as patch:
            patch.setattr("fliptron.service.office.time.time", lambda: real() + ahead)
            async with serving(settings(told), tmp_path / "journal.db") as client:
                await client.decide({"age": 30})
                ahead -= 5000.0  # now it is set back
                await client.decide({"age": 30})
                desk = client.office.desks["shop"]
                while desk.settled < desk.seq:
                    await asyncio.sleep(0.02)

    run(asyncio.wait_for(play(10_000.0), 10))
    run(asyncio.wait_for(play(0.0), 10))  # and again, while it was away


def test_silence_that_begins_to_count_does_so_with_the_next_decision(tmp_path: Path) -> None:
    async def play(silence: Any, seconds: float) -> Any:
        async with serving(settings(shop(silence=silence, wait=0.1)), tmp_path / "journal.db") as client:
            await client.decide({"age": 30})
            await asyncio.sleep(seconds)
            return [each.applied.seq for each in client.office.store.lessons(1, 0)]

    assert asyncio.run(play("ignore", 0.2)) == []
    assert asyncio.run(play("negative", 0.0)) == []
    assert asyncio.run(play("negative", 0.5)) == [2, 3]


async def told_before(client: Client) -> list[Any]:
    """Six decisions, of which the fifth and the second get a bit; nothing is learnt yet."""
    events = [await client.decide({"age": age}) for age in range(6)]
    assert await client.feedback(events[4], 1) == "accepted"
    assert await client.feedback(events[1], 1) == "accepted"
    assert client.office.desks["shop"].version == 0
    return events


def learnt(store: Any) -> list[tuple[int, int | None]]:
    return [(each.applied.seq, each.applied.bit) for each in store.lessons(1, 0)]


def test_bits_that_waited_are_learnt_when_silence_ceases_to_count(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"

    async def play() -> None:
        async with serving(settings(shop(silence="negative", wait=60)), path) as client:
            events = await told_before(client)
        journal = Journal(path)  # as if killed after a part of them was learnt
        journal.write([Settle(1, [1, 2, 3], silence=False)])
        journal.close()
        async with serving(settings(shop(wait=60)), path) as client:
            assert learnt(client.office.store) == [(2, 1), (5, 1)]
            assert client.office.desks["shop"].version == 2
            assert await client.feedback(events[1], 0) == "duplicate"
            assert await client.feedback(events[0], 0) == "accepted"
            assert learnt(client.office.store) == [(2, 1), (5, 1), (1, 0)]
            told = client.office.desks["shop"].digest()
            assert Desk.opened(shop(wait=60), client.office.store).digest() == told
            client.office.store.write([client.office.store.snapshots(1)[-1]])
            assert Desk.opened(shop(wait=60), client.office.store).digest() == told

    run(play())


def test_bits_that_waited_are_learnt_once_on_a_shared_store(schema: str) -> None:
    from fliptron.service.postgres import Postgres

    async def play() -> None:
        async with serving(settings(shop(silence="negative", wait=3)), Path(), Postgres(schema)) as client:
            events = await told_before(client)
            while client.office.live(client.office.desks["shop"]).feedback < 2:
                await asyncio.sleep(0.05)
            assert await client.feedback(events[2], 0) == "accepted"  # perhaps not taken in before the end
        async with serving(settings(shop(wait=60)), Path(), Postgres(schema)) as client:
            assert await client.feedback(events[1], 0) == "duplicate"
            assert await client.feedback(events[0], 0) == "accepted"
            assert await client.feedback(await client.decide({"age": 9}), 1) == "accepted"
            while client.office.desks["shop"].version < 5:
                await asyncio.sleep(0.05)
            await asyncio.sleep(0.5)
            found = learnt(client.office.store)
            assert sorted(found) == [(1, 0), (2, 1), (3, 0), (5, 1), (7, 1)]
            assert found.index((2, 1)) < found.index((5, 1))

    run(asyncio.wait_for(play(), 30))
