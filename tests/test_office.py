"""What the service does by the clock, and what it does when something in it has failed."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from fliptron.service.office import Office
from fliptron.service.sqlite import Journal
from serving import serving, settings, shop


def test_an_error_by_the_clock_is_logged_and_the_clock_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def play() -> None:
        async with serving(settings(shop()), tmp_path / "journal.db") as client:
            desk = client.office.desks["shop"]
            with monkeypatch.context() as patch:
                patch.setattr(Office, "_settle", lambda office, desk: 1 / 0)
                while "what is due could not be done" not in caplog.text:
                    await asyncio.sleep(0.02)
                await asyncio.sleep(0.15)
            desk.sources.suspects.append("bot")
            while "bot" not in client.office.store.flagged(desk.number):
                await asyncio.sleep(0.02)

    asyncio.run(asyncio.wait_for(play(), 20))
    assert caplog.text.count("what is due could not be done") == 1


def test_a_state_that_may_differ_from_the_journal_is_not_kept(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def play() -> int:
        async with serving(settings(shop()), tmp_path / "journal.db") as client:
            office, desk = client.office, client.office.desks["shop"]
            await client.feedback(await client.decide({"age": 30}), 1)
            office.clerk.submit([], lambda outcomes: 1 / 0, lambda error: None)
            while not office.clerk.broken:
                await asyncio.sleep(0.02)
            assert desk.is_changed
            return int(office.store.snapshots(desk.number)[0].position)

    before = asyncio.run(asyncio.wait_for(play(), 20))
    assert "could not be taken in" in caplog.text
    journal = Journal(tmp_path / "journal.db", alone=False)
    try:
        assert journal.snapshots(journal.models()[0].number)[0].position == before
    finally:
        journal.close()
