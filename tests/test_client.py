"""The Python client, against a real server on a real socket."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fliptron import InputError
from fliptron.service.app import App
from fliptron.service.client import Client, ServiceError
from fliptron.service.settings import ModelSettings
from served import served
from serving import TEXT, generator, record, settings, shop

Served = tuple[str, App]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    rows = ModelSettings(name="rows", labels=("a", "b", "c"), features=4)
    with served(settings(shop(), rows), tmp_path_factory.mktemp("client") / "journal.db") as found:
        yield found


def test_a_decision_its_feedback_and_what_is_known(service: Served) -> None:
    with Client(service[0], TEXT, model="shop") as client:
        answer = client.decide({"age": 31, "city": "Rome"}, eligible=["hats", "bags"], source="web")
        assert answer.label in ("hats", "bags")
        assert 0.0 < answer.probability <= 1.0
        assert [client.feedback(answer.event_id, 1), client.feedback(answer.event_id, 0)] == ["accepted", "duplicate"]
        assert client.feedback(answer.event_id, True, verified=True) == "accepted"
        assert client.estimate()["rounds"] >= 1


def test_the_same_key_is_the_same_decision(service: Served) -> None:
    with Client(service[0], TEXT, model="shop") as client:
        first, second = (client.decide({"age": 40, "city": "Oslo"}, key="order 7") for _ in range(2))
        assert first == second
        assert client.decide({"age": 40, "city": "Oslo"}).event_id != first.event_id


def test_batches_longer_than_a_call_may_be(service: Served) -> None:
    random = generator()
    asks = [{"features": record(random), "source": f"site {i % 3}"} for i in range(1100)]
    with Client(service[0], TEXT, model="shop", timeout=30.0) as client:
        answers = client.decide_many(asks)
        assert len({answer.event_id for answer in answers}) == len(asks)
        bits: list[dict[str, Any]] = [
            {"event_id": each.event_id, "bit": int(i % 3 == 0)} for i, each in enumerate(answers)
        ]
        assert client.feedback_many([*bits, {"event_id": "1-0000000000000000", "bit": 1}]) == [
            *["accepted"] * len(bits),
            "unknown",
        ]
        assert client.decide_many([]) == []


def test_rows_of_an_array(service: Served) -> None:
    with Client(service[0], TEXT, model="rows") as client:
        answers = client.decide_many(np.random.default_rng(0).normal(size=(1200, 4)), source="lab")
        assert len(answers) == 1200
        assert {answer.label for answer in answers} <= {"a", "b", "c"}
        assert client.decide(np.zeros(4) + 1.0).label in "abc"
        with pytest.raises(InputError, match="rows of x are expected"):
            client.decide_many(np.zeros(4))


@pytest.mark.parametrize(
    ("model", "token", "status", "words"),
    [("shop", "ft_wrong", 401, "a known one"), ("no such", TEXT, 404, "no such"), ("shop", TEXT, 422, "age")],
    ids=["token", "model", "record"],
)
def test_a_refusal_is_one_error_with_the_service_s_sentence(
    service: Served, model: Any, token: Any, status: Any, words: Any
) -> None:
    with Client(service[0], token, model=model) as client, pytest.raises(ServiceError, match=words) as caught:
        client.decide({"age": "old", "city": "Rome"})
    assert caught.value.status == status


def test_what_is_no_json_is_refused_before_it_is_sent(service: Served) -> None:
    with Client(service[0], TEXT, model="shop") as client:
        with pytest.raises(InputError, match="None, and not NaN"):
            client.decide({"age": float("nan"), "city": "Rome"})
        with pytest.raises(InputError, match="does not fit"):
            client.decide_many([{"featurs": {}}])
        with pytest.raises(ServiceError, match="bit"):
            client.feedback("1-0000000000000000", 0.7)
        with pytest.raises(ServiceError, match=r"2 .*bit.*; 0 or 1 is expected"):
            client.feedback("1-0000000000000000", 2)


@pytest.mark.parametrize(
    "wrong",
    [{"address": "127.0.0.1:8000"}, {"address": "ftp://host"}, {"token": "a\nb"}, {"timeout": 0}, {"attempts": 0}],
)
def test_nonsense_is_refused_at_once(wrong: Any) -> None:
    told = {"address": "http://127.0.0.1:8000", "token": "ft_x", "model": "shop"} | wrong
    with pytest.raises(InputError):
        Client(told.pop("address"), told.pop("token"), **told)


def test_several_threads_share_a_client(service: Served) -> None:
    found: list[str] = []
    with Client(service[0], TEXT, model="shop", timeout=30.0) as client:

        def ask() -> None:
            for _ in range(20):
                found.append(client.decide({"age": 50, "city": "Rome"}).event_id)

        threads = [threading.Thread(target=ask) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(set(found)) == 120


class Lossy(threading.Thread):
    """Hands on to a server, but loses the answers to the first calls: the worst that a network does."""

    def __init__(self, address: str, lost: int) -> None:
        super().__init__(daemon=True)
        host, port = address.removeprefix("http://").split(":")
        self._to, self._lost, self.seen = (host, int(port)), lost, 0
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def run(self) -> None:
        while True:
            try:
                client, _ = self._socket.accept()
            except OSError:
                return
            with client, socket.create_connection(self._to) as server:
                while request := client.recv(65536):  # the header, and the body in the same piece or the next
                    server.sendall(request)
                    if not request.endswith(b"}"):
                        continue
                    answer = b""
                    while not answer.endswith((b"}", b"]")):
                        answer += server.recv(65536)
                    self.seen += 1
                    if self.seen <= self._lost:
                        break
                    client.sendall(answer)

    def close(self) -> None:
        self._socket.close()


def test_a_lost_answer_is_asked_for_again_and_nothing_happens_twice(service: Served) -> None:
    address, app = service
    assert app.office is not None
    ledger = app.office.desks["shop"].ledger
    before = dict(ledger.totals)
    proxy = Lossy(address, lost=2)
    proxy.start()
    with Client(proxy.address, TEXT, model="shop") as client:
        answer = client.decide({"age": 20, "city": "Oslo"})
        assert client.feedback(answer.event_id, 1) == "accepted"
    proxy.close()
    assert proxy.seen == 4
    assert ledger.totals["decisions"] == before["decisions"] + 1
    assert ledger.totals["accepted"] == before["accepted"] + 1


def test_rows_without_keys_are_not_sent_twice(service: Served) -> None:
    address, app = service
    assert app.office is not None
    ledger = app.office.desks["rows"].ledger
    before = ledger.totals["decisions"]
    proxy = Lossy(address, lost=1)
    proxy.start()
    with Client(proxy.address, TEXT, model="rows") as client, pytest.raises(ServiceError, match="decisions"):
        client.decide_many(np.ones((3, 4)))
    proxy.close()
    assert ledger.totals["decisions"] == before + 3


def test_nobody_there_and_nobody_who_answers(service: Served) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with Client(address, TEXT, model="shop", timeout=0.1, attempts=2) as client:
            with pytest.raises(ServiceError, match=r"longer than the timeout, 2 time") as caught:
                client.decide({"age": 1, "city": "Rome"})
            assert caught.value.status is None
    with Client(address, TEXT, model="shop", attempts=1) as client, pytest.raises(ServiceError, match="refused"):
        client.decide({"age": 1, "city": "Rome"})


def test_a_client_outlives_a_restart_of_the_service(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    with served(settings(shop()), path) as (address, _):
        client = Client(address, TEXT, model="shop", attempts=8)
        first = client.decide({"age": 30, "city": "Rome"}, key="once")
    later = threading.Event()

    def again() -> None:
        with served(settings(shop()), path, int(address.rsplit(":", 1)[1])):
            later.wait(30.0)

    thread = threading.Thread(target=again)
    thread.start()
    try:
        assert client.decide({"age": 30, "city": "Rome"}, key="once") == first
        assert client.feedback(first.event_id, 1) == "accepted"
    finally:
        later.set()
        thread.join()
        client.close()
