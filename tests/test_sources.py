"""Sources that lie are found, honest ones are left alone, and a quarantine can be ended."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fliptron import Fliptron
from fliptron.service.copies import Original
from fliptron.service.desk import Desk
from fliptron.service.snapshots import loaded
from fliptron.service.sources import LIMIT, MOST, Sources, _of, expected
from fliptron.service.sqlite import Journal
from serving import Client, flipped, generator, record, serving, settings, shop, wanted

SPOILT = 0.2  # of all bits are inverted: what the learner takes for the channel


def judged(bits: Any, rates: tuple[float, float], rounds: int, seed: int) -> int | None:
    """After how many bits a source is flagged, among honest ones; `bits` makes its bits from honest ones."""
    random, sources = generator(seed), Sources()
    for other in range(10):
        sources.weigh(f"other{other}", 0.5, *rates, 0)
    low, high = (rate + SPOILT * (1 - 2 * rate) for rate in (rates[0], 1 - rates[1]))
    for at in range(rounds):
        q = float(random.choice([0.1, 0.5, 0.9, 0.98], p=[0.1, 0.1, 0.2, 0.6]))
        honest = flipped(random.random() < q, random, rates)
        sources.weigh("it", q, low, high - low, bits(honest, random))
        if sources.suspects:
            return at + 1
    return None


LIES = {
    "inverts": lambda bit, random: 1 - bit,
    "always 1": lambda bit, random: 1,
    "never 1": lambda bit, random: 0,
}


@pytest.mark.parametrize("rates", [(0.05, 0.1), (0.02, 0.4)])
@pytest.mark.parametrize("lie", ["inverts", "never 1"])
def test_liars_are_found_soon(lie: Any, rates: Any) -> None:
    found = [judged(LIES[lie], rates, 300, seed) for seed in range(10)]
    assert None not in found
    assert np.median(found) < 120


def test_a_machine_that_clicks_everything_is_found_where_clicks_are_rare() -> None:
    assert max(judged(LIES["always 1"], (0.02, 0.9), 300, seed) or 999 for seed in range(10)) < 100


@pytest.mark.parametrize("rates", [(0.05, 0.1), (0.2, 0.4), (0.02, 0.9)])
def test_honest_sources_are_left_alone(rates: Any) -> None:
    assert [judged(lambda bit, _: bit, rates, 400, seed) for seed in range(20)] == [None] * 20


def test_honest_evidence_is_a_supermartingale() -> None:
    """Exactly: from any state, the ratio by the channel's own likelihood does not grow on the average."""
    random = generator(8)
    sources, p = Sources(), 0.3 + 0.4 * 0.9
    for _ in range(40):
        sources.weigh("it", 0.9, 0.3, 0.4, int(random.random() < p))
    state = sources._evidence["it"].copy()

    def ratio(bit: int) -> float:
        again = Sources()
        again._evidence["it"] = state.copy()
        again.weigh("it", 0.9, 0.3, 0.4, bit)
        return float(np.exp(_of(again._evidence["it"])))

    assert p * ratio(1) + (1 - p) * ratio(0) <= np.exp(_of(state)) * (1 + 1e-12)


def test_a_source_that_begins_to_lie_is_found() -> None:
    def turned(bit: int, random: Any, count: list[int] = [0]) -> int:  # noqa: B006
        count[0] += 1
        return bit if count[0] <= 1500 else 1 - bit

    found = judged(turned, (0.05, 0.1), 2300, 3)
    assert found is not None
    assert 1500 < found <= 2200  # a new account begins after 2,000 bits


def test_the_table_of_liars_is_made() -> None:
    import sources as table  # type: ignore[import-not-found]

    found = table.play("digits", (0.02, 0.9), "invert every bit", 40, 3)
    assert len(found.liars) > 10
    assert found.honest_flagged == 0


def test_where_all_look_odd_the_channel_has_changed_and_nobody_is_flagged() -> None:
    sources = Sources()
    for _ in range(100):
        for name in "abcdef":
            sources.weigh(name, 0.98, 0.05, 0.85, 0)
    assert sources.suspects == []
    assert sources.shown()[0]["evidence"] > 1.0


def test_a_quarantine_keeps_bits_from_being_learnt_until_it_ends(tmp_path: Path) -> None:
    async def play() -> None:
        async with serving(settings(shop()), tmp_path / "journal.db") as client:
            desk = client.office.desks["shop"]
            random = generator(1)
            while desk.version < 1000 and not desk.sources.is_quarantined("bot"):
                shown = record(random)
                source = str(random.choice(["bot", *"abcdefgh"]))
                answer = await client.decide(shown, source=source)
                right = answer["label"] == wanted(shown)
                await client.feedback(
                    answer, 1 - int(right) if source == "bot" else flipped(right, random, (0.02, 0.05))
                )
            assert desk.sources.is_quarantined("bot")
            before = desk.version
            event = await client.decide({"age": 30}, source="bot")
            assert await client.feedback(event, 1) == "accepted"
            assert desk.version == before
            live = client.office.live(desk)
            (bot,) = [each for each in live.sources if each.quarantined]
            assert (bot.source, live.unusable) == ("bot", 1)
            assert "do not fit" in str(bot.reason)
            assert bot.evidence * LIMIT >= LIMIT
            told = desk.digest()
            again = Desk.opened(shop(), client.office.store)
            assert again.digest() == told
            assert again.sources.is_quarantined("bot")
            shown_ = await client.post("shop", "sources", {"source": "bot", "quarantined": False})
            assert not any(each["quarantined"] for each in shown_)
            event = await client.decide({"age": 31}, source="bot")
            assert await client.feedback(event, 1) == "accepted"
            assert desk.version == before + 1
            again = Desk.opened(shop(), client.office.store)
            assert again.sources.suspects == []  # a new start does not put it back
            assert not again.sources.is_quarantined("bot")
            await client.post("shop", "sources", {"source": "a", "quarantined": True, "reason": "I know them"})
            assert Desk.opened(shop(), client.office.store).sources.is_quarantined("a")

    asyncio.run(play())


def test_a_new_start_knows_what_was_learnt_since_a_source_was_let_out(tmp_path: Path) -> None:
    """Evidence begins anew when a source is let out, in a replay at the same place among the lessons."""

    async def play() -> None:
        async with serving(settings(shop()), tmp_path / "journal.db") as client:
            desk, random = client.office.desks["shop"], generator(4)

            async def some(count: int) -> None:
                for at in range(count):
                    shown = record(random)
                    answer = await client.decide(shown, source="ab"[at % 2])
                    await client.feedback(answer, flipped(answer["label"] == wanted(shown), random))

            await some(600)
            for quarantined in (True, False, True, False):
                await client.post("shop", "sources", {"source": "a", "quarantined": quarantined})
                await some(30)
            told = desk.digest()
            assert 10 < desk.sources._evidence["a"][-1] < 40  # its bits since it was let out
            assert Desk.opened(shop(), client.office.store).digest() == told
            client.office._keep(desk)
            await some(30)
            assert Desk.opened(shop(), client.office.store).digest() == desk.digest() != told

    asyncio.run(play())


def test_a_quarantine_that_the_disk_refused_is_written_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def play() -> None:
        async with serving(settings(shop()), tmp_path / "journal.db") as client:
            office, desk = client.office, client.office.desks["shop"]
            with monkeypatch.context() as patch:
                patch.setattr(Journal, "write", lambda journal, entries: 1 / 0)
                desk.sources.suspects.append("bot")
                while not office.clerk.failures:
                    await asyncio.sleep(0.02)
                assert desk.sources.is_quarantined("bot")
            while "bot" not in office.store.flagged(desk.number):
                await asyncio.sleep(0.02)
            await asyncio.sleep(0.15)
            assert len(office.store.flags(desk.number)) == 1

    asyncio.run(asyncio.wait_for(play(), 20))


async def settled(client: Client, shown: Any, clicks: Any) -> Any:
    """Decide for some sources, click for some, and wait until all deadlines have passed; the live numbers."""
    office, desk = client.office, client.office.desks["shop"]
    for source in shown:
        answer = await client.decide({"age": 30}, source=source)
        if source in clicks:
            await client.feedback(answer, 1, **({"source": "web"} if source == "bot" else {}))
    seq = max(row.seq for row in office.store.rows(desk.number, 0, 1000))
    while not any(each.applied.seq == seq for each in office.store.lessons(desk.number, 0)):
        await asyncio.sleep(0.02)
    await asyncio.sleep(0.3 if office.store.shared else 0.0)  # until copies know
    return office.live(office.desks["shop"])


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_neither_bits_nor_silence_of_a_quarantined_source_are_learnt(kind: Any, tmp_path: Path, request: Any) -> None:
    model = shop(silence="negative", wait=0.2)
    address = request.getfixturevalue("schema") if kind == "postgres" else None

    def opened() -> Any:
        from fliptron.service.postgres import Postgres  # where there is none, the other store is tested

        return Postgres(address)

    async def play() -> Any:
        journal = None if address is None else opened()
        async with serving(settings(model), tmp_path / "journal.db", journal) as client:
            store, found = client.office.store, []
            await client.post("shop", "sources", {"source": "bot", "quarantined": True})
            live = await settled(client, ["good", "bot", "bot", "good", "bad"], ["bot", "bad"])
            found.append((live.version, live.unusable))
            await client.post("shop", "sources", {"source": "bot", "quarantined": False})
            live = await settled(client, ["bot", "good"], [])
            found.append((live.version, live.unusable))
            assert [each.applied.bit for each in store.lessons(1, 0)] == [0, None, None, 0, 1, 0, 0]
            if address is None:
                desk = client.office.desks["shop"]
                first = store.snapshots(1)[-1]
                again = Desk.opened(model, store)
                assert again.digest() == desk.digest()
                assert again.ledger.totals["unusable"] == 2
                store.write([first])  # the whole of learning
                assert Desk.opened(model, store).digest() == desk.digest()
            else:
                newest, *_, first = store.snapshots(1)
                replayed, _ = loaded(first.content)
                desk = Original(model, 1, store.secret, replayed)
                for lesson in store.lessons(1, 0):
                    desk.learn(lesson)
                live_, about = loaded(newest.content)
                assert about["service"]["version"] == desk.version
                for name, array in live_.learner._arrays().items():
                    assert (desk.learner._arrays()[name] == array).all()
            return found

    assert asyncio.run(asyncio.wait_for(play(), 60)) == [(3, 2), (5, 2)]


def test_where_silence_is_a_bit_honest_sources_that_send_only_clicks_are_left_alone(tmp_path: Path) -> None:
    async def play() -> Any:
        told = shop(silence="negative", wait=0.2)
        async with serving(settings(told), tmp_path / "journal.db") as client:
            random, desk = generator(2), client.office.desks["shop"]
            for _ in range(1500):
                shown = record(random)
                answer = await client.decide(shown, source=str(random.choice(list("abc"))))
                if flipped(answer["label"] == wanted(shown), random, (0.1, 0.4)):
                    await client.feedback(answer, 1)
            while desk.settled < desk.seq:
                await asyncio.sleep(0.05)
            return desk.sources.shown()

    found = asyncio.run(play())
    assert sum(each["bits"] for each in found) == 1000  # judging begins with the 501st
    assert max(each["evidence"] for each in found) < 0.5


def test_ten_thousand_sources_are_kept_and_shown(tmp_path: Path) -> None:
    """As many as evidence is kept of, with the longest names."""
    journal = Journal(tmp_path / "journal.db")
    desk = Desk.opened(shop(), journal)
    for at in range(MOST + 10):
        desk.sources.weigh(f"{at:06d}" + "😀" * 194, 0.9, 0.1, 0.8, at % 7 > 0)
    desk.sources.weigh("liar", 0.9, 0.1, 0.8, 0)
    desk.sources.weigh("liar", 0.9, 0.1, 0.8, 0)
    assert desk.sources.shown()[0]["source"] == "liar"
    assert len(desk.sources.shown()) == 20
    journal.write([desk.snapshot()])
    found = Desk.opened(shop(), journal)
    assert found.sources.plain() == desk.sources.plain()
    assert len(found.sources.plain()["evidence"]) == MOST
    assert found.digest() == desk.digest()
    journal.close()


def test_a_row_of_zeros_says_nothing_of_a_source() -> None:
    learner = Fliptron(n_classes=4, n_features=3)
    q, rho0, beta = expected(learner.state, np.zeros(3), 1)
    assert q == 0.25
    assert 0.0 < rho0 < rho0 + beta < 1.0
