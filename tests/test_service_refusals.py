"""What the service refuses, in one sentence and one shape: bodies, names, tokens, settings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fliptron import InputError
from fliptron.service.desk import Desk
from fliptron.service.settings import ModelSettings, read_settings
from fliptron.service.sqlite import Journal
from fliptron.service.tokens import new_token
from serving import run, serving, settings, shop


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
    (b'{"features": {"Age": 1, "City": "Rome"}}', 422),  # age and city are the columns
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


_SMALL = "[models.m]\nlabels = ['a', 'b']\nfeatures = 2"


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
    assert found.store == str(tmp_path / "j.db")  # beside the settings, wherever the server was started
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
        (f"tokens = 3\n{_SMALL}", "tokens must be tables"),
        (f"host = 3\n{_SMALL}", "host is 3; a word"),
        (f"store = ''\n{_SMALL}", "store is ''; a word"),
        ("[models.m]\nfile = 3", "file of model 'm' is 3; a path"),
        ("[models.m]\nlabels = ['a', 'b']\nschema = 3", "schema of model 'm' is 3; a table"),
        (f"{_SMALL}\noptions = 3", "options of model 'm' is 3; a table"),
        ("[models.m]\nfeatures = 2\nlabels = ['a', 'a']", "two or more different"),
        ("[models.m]\nfeatures = 2\nlabels = [1, true]", "two or more different"),
        ("[models.m]\nfeatures = 2\nlabels = [['a'], 'b']", "cannot be a label"),
        ("[models.m]\nfeatures = 2\nlabels = [nan, 1]", "cannot be a label"),
        ("[models.m]\nfeatures = 2\nlabels = 'ab'", "a list of them is expected"),
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
    assert [model.name for model in journal.models()] == ["shop", "x"]  # what was refused is not there
    journal.close()


def test_a_long_value_is_not_sent_back_whole(tmp_path: Path) -> None:
    async def play() -> None:
        long = "x" * 60_000
        async with serving(settings(shop()), tmp_path / "journal.db") as client:
            for body in (
                {"features": {"age": long}},
                {"features": {}, "eligible": [long]},
                {"features": {}, long: 1},
            ):
                told = (await client.post("shop", "decide", body, 422))["error"]
                assert len(told) < 1010

    run(play())


def test_numbers_that_float32_cannot_hold_are_refused(tmp_path: Path) -> None:
    async def play() -> None:
        async with serving(settings(ModelSettings(name="m", labels=(0, 1), features=2)), tmp_path / "j.db") as client:
            for x, told in (
                ([1.0, -1e39], "x holds -inf at column 1; finite values are expected, and a length of at most 1e+30"),
                ([1.0], "features are 1 numbers; 2 are expected"),
                ([1.0] * 3, "features are 3 numbers; 2 are expected"),
            ):
                assert (await client.post("m", "decide", {"features": x}, 422))["error"] == told
            assert (await client.decide([1e29, 1e-60], "m"))["label"] in (0, 1)
            assert client.office.desks["m"].learner.rounds == 1

    run(play())
