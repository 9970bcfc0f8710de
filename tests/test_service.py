"""The decision service: what it answers, what it keeps, and what it learns."""

from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher

from fliptron import Banditron, Fliptron, InputError, Policy
from fliptron.service.desk import Desk
from fliptron.service.settings import ModelSettings, read_settings
from fliptron.service.sqlite import Journal
from fliptron.service.tokens import new_token
from serving import SHOP, Client, flipped, generator, record, run, serving, settings, shop, wanted


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
    monkeypatch.setattr("fliptron.service.desk._OFTEN", 100)

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


def test_one_bad_row_of_many_refuses_all_and_leaves_no_trace(tmp_path: Path) -> None:
    async def play() -> None:
        async with serving(settings(shop()), tmp_path / "journal.db") as client:
            await client.decide({"age": 30})
            before = client.office.desks["shop"].encoder.moments.copy()
            bad = {"decisions": [{"features": {"age": 1}}, {"features": {"age": "x"}}]}
            answer = await client.post("shop", "decisions", bad, 422)
            assert answer["error"].startswith("decision 1: column 'age' holds 'x'")
            assert (client.office.desks["shop"].encoder.moments == before).all()
            assert client.office.desks["shop"].learner.rounds == 1

    run(play())


REFUSED = [
    (b"", 400),
    (b"{", 400),
    (b"[]", 422),
    (b"\xff", 400),
    (b'{"features": {}, "features": {}}', 400),
    (b'{"features": {"age": 1, "age": 2}}', 400),
    (b'{"features": {"a\\u0067e": 1, "age": 2}}', 400),
    (b'{"features": {"age": NaN}}', 400),
    (b'{"features": {"age": 1e999}}', 422),
    (b'{"features": {"age": [1]}}', 422),
    (b'{"features": {}, "unknown": 1}', 422),
    (b'{"features": [1, true]}', 422),
    (b'{"features": [1]}', 422),
    (b'{"features": {}, "eligible": []}', 422),
    (b'{"features": {}, "eligible": ["boots"]}', 422),
    (b'{"features": {}, "key": ""}', 422),
    (b'{"features": {}, "key": "' + b"k" * 201 + b'"}', 422),
    (b'{"features": {}, "source": "a\\u0000b"}', 422),
    (b'{"features": {}, "baseline": "hats"}', 422),
    (b'{"features": {"a": ' + b"[" * 5000 + b"]" * 5000 + b"}}", 422),
    (b'{"features": {"age": "' + b"x" * 70_000 + b'"}}', 413),
]


def test_what_is_odd_gets_one_sentence_in_one_shape(tmp_path: Path) -> None:
    async def play() -> None:
        async with serving(settings(shop()), tmp_path / "journal.db") as client:
            for body, status in REFUSED:
                got, answer, _ = await client.ask("POST", "/v1/models/shop/decide", body)
                assert (got, answer["status"]) == (status, status), (body[:60], answer)
                assert set(answer) == {"error", "status"}
            for told in (
                {"bit": 1},
                {"event_id": "1", "bit": 2},
                {"event_id": "1", "bit": True},
                {"event_id": 1, "bit": 1},
            ):
                await client.post("shop", "feedback", told, 422)
            event = await client.decide({})
            number, _, code = event["event_id"].partition("-")
            forged = f"{number}-{'0' * len(code)}"
            for name in (forged, f"{int(number, 16) + 1:x}-{code}", "", "-", "ff" * 40, "1-é", code):
                assert (await client.post("shop", "feedback", {"event_id": name, "bit": 1}, 404))["status"] == 404
            got, answer, _ = await client.ask("POST", "/v1/models/boots/decide", {})
            assert (got, set(answer)) == (404, {"error", "status"})
            assert client.office.desks["shop"].learner.rounds == 1

    run(play())


@pytest.mark.parametrize("name", ["a\n", "\n", "a\nb", "a\r", "a\x00", "a\x7f", "", "k" * 201, 5, None])
def test_names_have_no_control_characters_nor_a_new_line_at_their_end(tmp_path: Path, name: Any) -> None:
    async def play() -> None:
        async with serving(settings(shop()), tmp_path / "journal.db") as client:
            if name is not None:  # which is as if it were left out
                for more in ({"key": name}, {"source": name}):
                    await client.post("shop", "decide", {"features": {}} | more, 422)
                    await client.post("shop", "decisions", {"decisions": [{"features": {}} | more]}, 422)
                await client.post("shop", "feedback", {"event_id": "1", "bit": 1, "source": name}, 422)
            for more in ({"source": name}, {"source": "a", "reason": name}):
                await client.post("shop", "sources", {"quarantined": True} | more, 422)
            assert client.office.desks["shop"].learner.rounds == 0

    run(play())
    with pytest.raises(InputError, match="a token is called"):
        new_token(name, ["decide"])
    told = tmp_path / "told.toml"
    quoted = json.dumps(name) if name is not None else "[]"
    if name != "a\x7f":  # which TOML itself refuses
        token = f"[[tokens]]\nname = {quoted}\nsha256 = '{'0' * 64}'\nscopes = ['decide']"
        told.write_text(f"[models.m]\nfile = 'x.npz'\n{token}")
        with pytest.raises(InputError, match="a token is called"):
            read_settings(told)
    if isinstance(name, str):
        with pytest.raises(InputError, match="a model is called"):
            shop(name)


def test_a_body_is_cut_off_as_it_comes(tmp_path: Path) -> None:
    async def play() -> None:
        async with serving(settings(shop()), tmp_path / "journal.db") as client:
            parts = [b" " * 10_000] * 100
            got, _, headers = await client.ask("POST", "/v1/models/shop/decide", chunks=parts)
            assert (got, headers["connection"]) == (413, "close")
            got, _, _ = await client.ask("POST", "/v1/models/shop/decide", chunks=[b'{"features"', b":{}", b"}"])
            assert got == 200

    run(play())


def test_tokens_allow_what_their_scopes_say(tmp_path: Path) -> None:
    asker, kept = new_token("asker", ["decide"], ("shop",))
    told = settings(shop(), shop("other"))
    told = type(told)(models=told.models, tokens=(*told.tokens, kept))

    async def play() -> None:
        async with serving(told, tmp_path / "journal.db") as client:
            path = "/v1/models/{}/{}"
            for model, call, token, status in (
                ("shop", "decide", asker, 200), ("other", "decide", asker, 403), ("shop", "feedback", asker, 403),
                ("shop", "decide", "ft_wrong", 401), ("shop", "decide", None, 401),
            ):  # fmt: skip
                got, _, headers = await client.ask("POST", path.format(model, call), {"features": {}}, token=token)
                assert got == status, (model, call, token)
                assert (status == 401) == ("www-authenticate" in headers)
            for call in ("estimate", "live", "sources", "export.parquet", "model.npz"):
                assert (await client.ask("GET", path.format("shop", call), token=asker))[0] == 403
            assert (await client.ask("GET", "/metrics", token=asker))[0] == 403
            assert (await client.ask("GET", "/healthz", token=None))[0] == 200
        content = b"".join(each.read_bytes() for each in tmp_path.iterdir())
        assert asker.encode() not in content

    run(play())


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


def test_settings_are_read_and_refused(tmp_path: Path) -> None:
    path = tmp_path / "shop.toml"
    _, kept = new_token("web", ["decide"])
    path.write_text(
        'store = "j.db"\nport = 9000\n[models.shop]\nlabels = ["a", "b"]\nfeatures = 3\nwait = 5\n'
        'silence = "negative"\n'
        f'[[tokens]]\nname = "web"\nsha256 = "{kept.digest.hex()}"\nscopes = ["decide"]\n'
    )
    found = read_settings(path)
    assert (found.port, found.models[0].wait, found.tokens) == (9000, 5, (kept,))
    assert found.models[0].build().gamma == 0.01
    for text, sentence in (
        ("models = 3", "must be tables"),
        ("[models.shop]\nlabels = [1, 2]", "needs a file"),
        ("[models.'a b']\nfile = 'x.npz'", "up to 64 letters"),
        ("[models.m]\nfile = 'x.npz'\ncolour = 1", "'colour'"),
        ("[models.m]\nfile = 'x.npz'\nsilence = 'negative'", "has no wait"),
        ("[models.m]\nfile = 'x.npz'\nsilence = 'loud'", "'ignore' or 'negative'"),
        ("[models.m]\nfile = 'x.npz'\n[[tokens]]\nname = 'a'", "sha256"),
        (
            f"[models.m]\nfile = 'x.npz'\n[[tokens]]\nname = 'a'\nsha256 = '{'0' * 64}'\nscopes = []\nmodels = ['n']",
            "is for the model 'n'",
        ),
        ("port = 3", "at least one"),
        ("port =", "is not TOML"),
    ):
        path.write_text(text)
        with pytest.raises(InputError, match=sentence):
            read_settings(path)


def test_the_journal_goes_on_only_with_the_same_model(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.db")
    Desk.opened(shop(), journal)
    with pytest.raises(InputError, match="has the labels"):
        Desk.opened(shop(labels=("a", "b")), journal)
    with pytest.raises(InputError, match="has another schema"):
        Desk.opened(shop(schema={"age": "number"}), journal)
    with pytest.raises(InputError, match="has a schema, the settings 3 features"):
        Desk.opened(shop(schema=None, features=3), journal)
    Desk.opened(shop("x", schema=None, features=3), journal)
    with pytest.raises(InputError, match="has 3 features, the settings 4"):
        Desk.opened(shop("x", schema=None, features=4), journal)
    with pytest.raises(InputError, match="has another schema"):
        Desk.opened(shop("x"), journal)
    with pytest.raises(InputError, match="is a Fliptron"):
        Desk.opened(shop(learner="Banditron", gamma=0.1), journal)
    with pytest.raises(InputError, match="one such as Fliptron"):
        Desk.opened(shop("new", learner="Perceptron"), journal)
    journal.close()


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
