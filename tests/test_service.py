"""The decision service: what it answers, what it keeps, and what it learns."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import socket
import time
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher

from fliptron import Banditron, Fliptron, InputError, Policy
from fliptron.service.desk import Desk
from fliptron.service.settings import ModelSettings
from fliptron.service.sqlite import Journal
from served import served
from serving import SHOP, TEXT, Client, flipped, generator, record, run, serving, settings, shop, wanted


def test_a_stream_through_http_is_the_same_through_the_library(tmp_path: Path) -> None:
    """Equal decisions to the last digit, bits late and out of order; the library is given x as the journal keeps it."""

    async def through_http() -> list[Any]:
        async with serving(settings(shop(seed=3)), tmp_path / "journal.db") as client:
            random, waiting, found = generator(1), [], []
            for _ in range(600):
                shown = record(random)
                answer = await client.decide(shown)
                found.append((answer["label"], answer["greedy"], answer["probability"]))
                waiting.append((answer, flipped(answer["label"] == wanted(shown), random)))
                while waiting and random.random() < 0.6:
                    event, bit = waiting.pop(int(random.integers(len(waiting))))
                    assert await client.feedback(event, bit) == "accepted"
            return found

    def through_the_library() -> list[Any]:
        made = Policy(SHOP["labels"], shop()._schema(), seed=3, gamma=0.01)
        random, waiting, found = generator(1), [], []
        for _ in range(600):
            shown = record(random)
            x = made.encoder.encode(shown).astype(np.float32).astype(np.float64)
            decision = made.learner.decide(x)
            label = made.labels[decision.label]
            found.append((label, made.labels[decision.greedy], decision.probability))
            waiting.append((x, decision, flipped(label == wanted(shown), random)))
            while waiting and random.random() < 0.6:
                made.learner.learn(*waiting.pop(int(random.integers(len(waiting)))))
        return found

    assert asyncio.run(through_http()) == through_the_library()


async def traffic(client: Client, random: Any, rounds: int, **more: Any) -> None:
    waiting: list[Any] = []
    for _ in range(rounds):
        shown = record(random)
        if random.random() < 0.05:
            more = more | {"eligible": ["hats", "bags"]}
        answer = await client.decide(shown, source=f"s{random.integers(4)}", **more)
        more.pop("eligible", None)
        waiting.append((answer, flipped(answer["label"] == wanted(shown), random)))
        while waiting and random.random() < 0.5:
            event, bit = waiting.pop(int(random.integers(len(waiting))))
            await client.feedback(event, bit)
            if random.random() < 0.05:
                await client.feedback(event, 1 - bit)
            if random.random() < 0.05:
                await client.feedback(event, int(random.integers(2)), verified=True)


@pytest.mark.parametrize("kind", [Fliptron, Banditron])
@pytest.mark.parametrize("more", [{}, {"schema": {"age": "number", "city": "many"}}])
def test_a_new_start_is_the_same_model_from_snapshot_or_from_nothing(tmp_path: Path, kind: Any, more: Any) -> None:
    gamma = {"learner": kind.__name__, "gamma": 0.1}

    async def play() -> str:
        async with serving(settings(shop(**gamma, **more)), tmp_path / "journal.db") as client:
            await traffic(client, generator(2), 150)
            desk = client.office.desks["shop"]
            client.office._keep(desk)
            await traffic(client, generator(3), 150)
            desk._since = 0  # no last snapshot: the journal alone must do
            return desk.digest()

    told = asyncio.run(play())
    journal = Journal(tmp_path / "journal.db")
    assert Desk.opened(shop(**gamma, **more), journal).digest() == told
    first = journal.snapshots(1)[-1]
    journal.write([first])  # the oldest state is now the newest: everything is replayed
    desk = Desk.opened(shop(**gamma, **more), journal)
    assert first.seq == 0
    assert desk.digest() == told
    journal.close()


def test_a_start_replays_no_more_than_a_snapshot_leaves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long the journal: a crash right before a snapshot is due leaves the most."""
    monkeypatch.setattr("fliptron.service.model._OFTEN", 100)

    async def play() -> str:
        async with serving(settings(shop()), tmp_path / "journal.db") as client:
            desk = client.office.desks["shop"]
            while desk.seq < 300 or not 95 <= desk._since < 100:
                await traffic(client, generator(desk.seq), 1)
            desk._since = 0  # no last snapshot
            return desk.digest()

    told = asyncio.run(play())
    journal, replayed = Journal(tmp_path / "journal.db"), []
    assert len(journal.rows(1, 0, 10_000)) >= 300
    learn = Desk.learn

    def watched(desk: Desk, lesson: Any) -> None:
        replayed.append(lesson)
        learn(desk, lesson)

    monkeypatch.setattr(Desk, "learn", watched)
    desk = Desk.opened(shop(), journal)
    assert desk.digest() == told
    assert 0 < len(replayed) < desk._since <= 100
    journal.close()


@pytest.mark.parametrize("kind", [Fliptron, Banditron])
@pytest.mark.parametrize("more", [{}, {"schema": {"age": "number", "city": "many"}}, {"apprentice": True}])
def test_nothing_is_compiled_while_somebody_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: Any, more: Any
) -> None:
    """Compiling takes seconds, the first time on a machine."""
    told = shop(learner=kind.__name__, gamma=0.1, **more)
    baseline = {"baseline": "hats"} if "apprentice" in more else {}

    async def play() -> None:
        async with serving(settings(told), tmp_path / "journal.db") as client:
            compiled: list[Any] = []
            monkeypatch.setattr(Dispatcher, "compile", lambda self, signature: compiled.append(self))
            monkeypatch.setattr("fliptron.service.sources._FIRST", 5)
            await traffic(client, generator(2), 60, **baseline)
            for call in ("estimate", "model.npz", "sources", "history"):
                assert (await client.ask("GET", f"/v1/models/shop/{call}"))[0] == 200
            if kind is Fliptron:
                assert any(each["bits"] for each in client.office.desks["shop"].sources.shown())
            assert compiled == []

    run(play())


class SickFile(apsw.VFSFile):
    """A file on a disk that fails when it is told to."""

    ill: dict[str, type[Exception]] = {}  # noqa: RUF012  # of all files

    def __init__(self, name: Any, flags: Any) -> None:
        super().__init__("unix", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:
        if "write" in self.ill:
            raise self.ill["write"]("no more")
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:
        if "sync" in self.ill:
            raise self.ill["sync"]("cannot sync")
        super().xSync(flags)


class Sick(apsw.VFS):
    def __init__(self) -> None:
        super().__init__("sick", base="unix")

    def xOpen(self, name: Any, flags: Any) -> Any:
        return SickFile(name, flags)


@pytest.mark.parametrize(
    ("ill", "status"),
    [({"write": apsw.FullError}, 507), ({"write": apsw.ReadOnlyError}, 503), ({"sync": apsw.IOError}, 503)],
    ids=["full", "read-only", "EIO"],
)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_sick_disk_gives_no_answer_and_leaves_no_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ill: Any, status: Any
) -> None:
    async def play() -> None:
        journal = Journal(tmp_path / "journal.db", vfs="sick")
        async with serving(settings(shop()), tmp_path, journal) as client:
            random = generator(0)
            await traffic(client, random, 30)
            event = await client.decide(record(random))
            monkeypatch.setattr(SickFile, "ill", ill)
            asked = [client.ask("POST", "/v1/models/shop/decide", {"features": record(random)}) for _ in range(20)]
            told = [client.ask("POST", "/v1/models/shop/feedback", {"event_id": event["event_id"], "bit": 1})]
            found = await asyncio.gather(*asked, *told)
            assert {got for got, _, _ in found} <= {503, status}
            assert found[0][0] == status
            assert found[0][2]["retry-after"] == "1"
            monkeypatch.setattr(SickFile, "ill", {})
            assert await client.feedback(event, 1) == "accepted"
            await traffic(client, random, 30)
            desk = client.office.desks["shop"]
            live = desk.digest()
            assert desk.learner.rounds == desk.ledger.totals["decisions"]
            assert Desk.opened(shop(), journal).digest() == live

    sick = Sick()
    asyncio.run(play())
    sick.unregister()


def test_too_many_waiting_are_refused(tmp_path: Path) -> None:
    async def play() -> None:
        async with serving(settings(shop(), queue=8), tmp_path / "journal.db") as client:
            asked = [client.ask("POST", "/v1/models/shop/decide", {"features": {}}) for _ in range(40)]
            found = await asyncio.gather(*asked)
            assert sorted({status for status, _, _ in found}) == [200, 503]
            assert all(headers.get("retry-after") for status, _, headers in found if status == 503)
            assert (await client.post("shop", "decisions", {"decisions": [{"features": {}}] * 9}, 503))["status"] == 503
            desk = client.office.desks["shop"]
            assert desk.learner.rounds == desk.ledger.totals["decisions"]

    run(play())


def test_the_same_key_is_the_same_decision(tmp_path: Path) -> None:
    async def play() -> None:
        async with serving(settings(shop()), tmp_path / "journal.db") as client:
            both = await asyncio.gather(*(client.decide({"age": age}, key="k") for age in (1, 2)))
            later = await client.decide({"age": 3}, key="k")
            many = await client.post(
                "shop", "decisions", {"decisions": [{"features": {}, "key": key} for key in ("k", "a", "a", "b")]}
            )
            assert both[0] == both[1] == later == many[0]
            assert many[1] == many[2] != many[3]
            assert client.office.desks["shop"].learner.rounds == 3

    run(play())


def test_many_words_may_have_more_places() -> None:
    told = {"page": {"kind": "many", "buckets": 4096}, "city": "many"}
    policy: Any = ModelSettings(name="m", labels=("a", "b"), schema=told).build()
    assert [column.buckets for column in policy.encoder.schema.columns] == [4096, 256]
    for bad in (0, "few", 2**20):
        with pytest.raises(InputError, match="the places of many values"):
            ModelSettings(name="m", labels=("a", "b"), schema={"page": {"kind": "many", "buckets": bad}}).build()


def test_many_at_once_are_what_one_after_the_other_are(tmp_path: Path) -> None:
    model = ModelSettings(name="m", labels=("a", "b", "c"), features=5, seed=4)
    X = generator(0).normal(size=(40, 5)).astype(np.float32)

    async def play(name: str, how: str) -> Any:
        async with serving(settings(model), tmp_path / name) as client:
            if how == "one":
                found = [await client.decide(x.tolist(), "m") for x in X]
            elif how == "list":
                asks = [{"features": x.tolist()} for x in X]
                found = await client.post("m", "decisions", {"decisions": asks})
            else:
                found = await client.post("m", "decisions", {"x": base64.b64encode(X.tobytes()).decode()})
            told = [{"event_id": each["event_id"], "bit": at % 2} for at, each in enumerate(found)]
            told += [told[0], {"event_id": "1-0000000000000000", "bit": 1}]
            statuses = await client.post("m", "feedbacks", {"feedbacks": told})
            assert [each["status"] for each in statuses] == ["accepted"] * 40 + ["duplicate", "unknown"]
            return [(each["label"], each["probability"]) for each in found], client.office.desks["m"].digest()

    one, listed, packed = (asyncio.run(play(f"{how}.db", how)) for how in ("one", "list", "packed"))
    assert one == listed == packed


def test_an_apprentice_plays_what_it_is_told_and_learns(tmp_path: Path) -> None:
    async def play() -> None:
        async with serving(settings(shop(apprentice=True)), tmp_path / "journal.db") as client:
            random, agreed = generator(5), []
            for _ in range(600):
                shown = record(random)
                mine = str(random.choice(SHOP["labels"]))
                answer = await client.decide(shown, baseline=mine)
                assert (answer["label"], answer["probability"]) == (mine, 1.0)
                agreed.append(answer["greedy"] == wanted(shown))
                await client.feedback(answer, int(mine == wanted(shown)))
            assert np.mean(agreed[400:]) > 0.8
            await client.post("shop", "decide", {"features": {}}, 422)
            assert client.office.live(client.office.desks["shop"]).agreement is not None

    run(play())


def test_what_an_operator_reads(tmp_path: Path) -> None:
    async def play() -> None:
        async with serving(settings(shop()), tmp_path / "journal.db") as client:
            await traffic(client, generator(1), 120)
            status, noise, _ = await client.ask("GET", "/v1/models/shop/estimate")
            assert (status, noise["verdict"]) == (200, "not identified")
            assert noise["rho0"]["low"] <= noise["rho0"]["high"]
            _, models, _ = await client.ask("GET", "/v1/models")
            assert models[0]["labels"] == list(SHOP["labels"])
            _, text, _ = await client.ask("GET", "/metrics")
            assert b'fliptron_decisions_total{model="shop"} 120\n' in text
            _, content, _ = await client.ask("GET", "/v1/models/shop/model.npz")
            (tmp_path / "copy.npz").write_bytes(content)
            assert Policy.load(tmp_path / "copy.npz").labels == SHOP["labels"]
            live = client.office.live(client.office.desks["shop"])
            assert live.decisions == 120
            assert sum(each.share for each in live.labels) == pytest.approx(1.0)
            assert live.delay["p50"] is not None

    run(play())


def test_many_models_leave_time_for_answers_while_they_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An estimate takes its time; nobody waits for those of all models."""
    seen: list[int] = []

    async def play() -> None:
        told = [ModelSettings(name=f"m{at}", labels=(0, 1), features=1) for at in range(30)]
        async with serving(settings(*told), tmp_path / "journal.db") as client:
            shown: list[str] = []
            real = client.office.live
            monkeypatch.setattr("fliptron.service.office.point_of", lambda desk, now: shown.append(desk.name))

            def live(desk: Desk) -> Any:
                shown.append(desk.name)
                return real(desk)

            monkeypatch.setattr(client.office, "live", live)
            for desk in client.office.desks.values():
                monkeypatch.setattr(desk.ledger.history, "add", lambda point: None)
            for work in (client.office._show(), client.ask("GET", "/metrics")):
                shown.clear()
                task = asyncio.create_task(work)
                while not task.done():
                    before = len(shown)
                    await asyncio.sleep(0)
                    seen.append(len(shown) - before)
                assert len(shown) >= 30

    run(play())
    assert max(seen) <= 2


def test_live_numbers_come_every_second(tmp_path: Path) -> None:
    async def play() -> None:
        async with serving(settings(shop()), tmp_path / "journal.db") as client:
            queue = client.office.watch(client.office.desks["shop"])
            await client.decide({})
            first = await asyncio.wait_for(queue.get(), 3)
            second = await asyncio.wait_for(queue.get(), 3)
            assert first.decisions == 1
            assert first.decisions_per_second == 1.0
            assert second.decisions_per_second == 0.0
            assert 0.5 < second.time - first.time < 2.0
            assert json.dumps(first.noise.verdict)

    run(play())


def test_clients_that_leave_in_the_midst_or_do_not_wait(tmp_path: Path) -> None:
    """Half a body decides nothing; an answer that nobody reads is kept; answers to a pipeline come in its order."""

    def request(key: str) -> bytes:
        body = json.dumps({"features": {"age": 30}, "key": key}).encode()
        head = f"POST /v1/models/shop/decide HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {TEXT}\r\n"
        return head.encode() + b"content-length: %d\r\n\r\n" % len(body) + body

    with served(settings(shop()), tmp_path / "journal.db") as (address, app):
        port = int(address.rpartition(":")[2])

        def connected() -> socket.socket:
            return socket.create_connection(("127.0.0.1", port), timeout=10)

        for at in range(10):
            with connected() as leaving:
                leaving.sendall(request("half")[:-5])
            with connected() as leaving:
                leaving.sendall(request(f"unread {at}"))
        with connected() as eager:
            eager.sendall(b"".join(request(f"pipe {at}") for at in range(20)))
            told = b""
            while told.count(b"event_id") < 20 or not told.endswith(b"}"):
                told += eager.recv(2**16)
        assert app.office is not None
        store = app.office.store
        assert store.find_key(1, "half") is None
        while any(store.find_key(1, f"unread {at}") is None for at in range(10)):
            time.sleep(0.02)
        events = [int(each, 16) for each in re.findall(rb'"event_id":"([0-9a-f]+)-', told)]
        assert events == sorted(events)
        assert [store.find_key(1, f"pipe {at}").seq for at in range(20)] == events
