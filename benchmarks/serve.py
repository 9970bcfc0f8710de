"""What durability costs: the service beside the same application without storage, and beside one commit per request.

python benchmarks/serve.py [requests] [repeats]

Servers run side by side, each in a process of its own, on loopback; a client with 64 connections asks one after the
other in turn, and medians of the turns are compared. A shared machine moves all of them: read the ratios. What a
request costs the server in processor time, all its threads together, is shown too: it tells work from waiting.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import uvicorn
import uvloop
from asking import used

from fliptron.service import clerk, model, office
from fliptron.service.app import App
from fliptron.service.settings import SCOPES, ModelSettings, Settings
from fliptron.service.sqlite import Journal
from fliptron.service.store import Decided, Heard, Kept, Taken, Token
from fliptron.service.tokens import new_token

CONNECTIONS = 64
SLOW = 0.004
BATCH = 100
_MODEL = ModelSettings(name="digits", labels=tuple(range(10)), features=64)
_KINDS = ("bare", "durable", "alone", "slow", "slow alone")


class Bare(Journal):
    """Keeps nothing, not even states: numbers decisions, and takes every bit for the first."""

    def write(self, entries: Sequence[Any]) -> list[Any]:
        found: list[Any] = []
        for entry in entries:
            if type(entry) is Decided:
                self._seq += 1
                found.append(Taken(self._seq))
            elif type(entry) is Heard:
                self._position += 1
                found.append(Kept("accepted", self._position))
            else:
                found.append(None)
        return found


class Slow(Journal):
    """A disk that takes four milliseconds more to sync."""

    def write(self, entries: Sequence[Any]) -> list[Any]:
        found = super().write(entries)
        time.sleep(SLOW)
        return found


class Straight(clerk.Clerk):
    """Writes at once, in the event loop: for a store that keeps nothing."""

    def submit(self, entries: Any, done: Any, failed: Any) -> None:
        done(self.store.write(entries))


def serve(kind: str, path: str, digest: str) -> None:
    """Be one of the servers; prints its port."""
    if kind.endswith("alone"):
        clerk.MOST = 1
    if kind == "bare":
        office.Clerk, model._OFTEN = Straight, sys.maxsize  # type: ignore[misc]
    made = {"bare": Bare, "slow": Slow, "slow alone": Slow}.get(kind, Journal)
    settings = Settings(models=(_MODEL,), tokens=(Token("bench", bytes.fromhex(digest), SCOPES),))
    config = uvicorn.Config(
        App(settings, lambda: made(path)), loop="uvloop", http="httptools", lifespan="on", log_level="warning",
        access_log=False, server_header=False, date_header=False, port=0,
    )  # fmt: skip

    class Server(uvicorn.Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            print(self.servers[0].sockets[0].getsockname()[1], flush=True)

    Server(config).run()


class Asker(asyncio.Protocol):
    """One connection that asks again and again."""

    def __init__(self, load: Load) -> None:
        self._load, self._buffer = load, b""

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self.ask()

    def ask(self) -> None:
        self._began = time.perf_counter()
        self._transport.write(self._load.next())

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head = self._buffer.find(b"\r\n\r\n")
        if head < 0:
            return
        at = self._buffer.find(b"content-length: ") + 16
        length = int(self._buffer[at : self._buffer.find(b"\r", at)])
        if len(self._buffer) < head + 4 + length:
            return
        if not self._buffer.startswith(b"HTTP/1.1 200"):
            raise SystemExit(self._buffer)
        body, self._buffer = self._buffer[head + 4 :], b""
        if self._load.took(time.perf_counter() - self._began, body):
            self.ask()
        else:
            self._transport.close()


class Load:
    """So many requests of one kind."""

    def __init__(self, kind: str, token: str, requests: int) -> None:
        rng = np.random.default_rng(0)
        self._kind, self._left, self._token = kind, requests, token.encode()
        X = rng.normal(size=(200, 64)).astype(np.float32).round(4)
        self._asks = [self._request(b"decide", {"features": [round(float(v), 4) for v in x]}) for x in X]
        many = {"decisions": [{"features": [round(float(v), 4) for v in x]} for x in X[:BATCH]]}
        self._many = self._request(b"decisions", many)
        self._events: list[bytes] = []
        self.times: list[float] = []
        self.asked = 0
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def _request(self, call: bytes, body: Any) -> bytes:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        head = (
            b"POST /v1/models/digits/%s HTTP/1.1\r\nhost: x\r\nauthorization: Bearer %s\r\ncontent-length: %d\r\n\r\n"
        )
        return head % (call, self._token, len(content)) + content

    def next(self) -> bytes:
        self.asked += 1
        if self._kind == "many":
            return self._many
        if self._kind == "mix" and self._events:
            bit = b"1" if self.asked % 3 else b"0"
            return self._request(b"feedback", b'{"event_id":"%s","bit":%s}' % (self._events.pop(), bit))
        return self._asks[self.asked % len(self._asks)]

    def took(self, seconds: float, body: bytes) -> bool:
        self.times.append(seconds)
        if self._kind == "mix" and body.startswith(b'{"event_id'):
            self._events.append(body[13 : body.index(b'"', 13)])
        if len(self.times) >= self._left and not self.over.done():
            self.over.set_result(None)
        return self.asked < self._left


async def turn(port: int, kind: str, token: str, requests: int) -> tuple[float, float]:
    """Requests per second, and the 99th percentile of their times in milliseconds."""
    load = Load(kind, token, requests)
    loop = asyncio.get_running_loop()
    began = time.perf_counter()
    for _ in range(min(CONNECTIONS, requests)):
        await loop.create_connection(lambda: Asker(load), "127.0.0.1", port)
    await load.over
    seconds = time.perf_counter() - began
    return len(load.times) / seconds, float(np.quantile(load.times, 0.99)) * 1000


def main(requests: int, repeats: int) -> None:
    token, kept = new_token("bench", SCOPES)
    turns: list[tuple[str, str, float]] = [
        ("bare", "decide", 1), ("durable", "decide", 1), ("bare", "mix", 1), ("durable", "mix", 1),
        ("alone", "decide", 0.5), ("slow", "decide", 1), ("slow alone", "decide", 0.1), ("durable", "many", 0.05),
    ]  # fmt: skip
    found: dict[tuple[str, str], list[tuple[float, float, float]]] = {(server, kind): [] for server, kind, _ in turns}
    with tempfile.TemporaryDirectory(dir=os.environ.get("FLIPTRON_BENCH")) as folder:
        servers = {}
        for kind in _KINDS:
            command = [sys.executable, __file__, "--serve", kind, str(Path(folder) / f"{kind}.db"), kept.digest.hex()]
            servers[kind] = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            ports = {kind: int(server.stdout.readline()) for kind, server in servers.items()}  # type: ignore[union-attr]
            for at in range(repeats + 1):
                for server, kind, share in turns:
                    count = max(int(requests * share * (0.1 if at == 0 else 1)), CONNECTIONS)
                    before = used(servers[server].pid)
                    told = uvloop.run(turn(ports[server], kind, token, count))
                    if at > 0:  # the first turn warms up
                        found[server, kind].append((*told, (used(servers[server].pid) - before) / count * 1e6))
        finally:
            for server in servers.values():
                server.kill()
                server.wait()
    rates, slowest, work = (
        {name: statistics.median(each[at] for each in told) for name, told in found.items()} for at in range(3)
    )
    for name, rate in rates.items():
        told = f"{rate:8,.0f} requests/s   99 % within {slowest[name]:6.1f} ms   processor {work[name]:6,.0f} µs each"
        print(f"{name[0]:11s} {name[1]:7s} {told}")
    durable = rates["durable", "decide"]
    many = rates["durable", "many"] * BATCH
    shown = [
        ("durable decide ÷ without storage", durable / rates["bare", "decide"], ">= 0.6"),
        ("durable decide+feedback ÷ without storage", rates["durable", "mix"] / rates["bare", "mix"], ">= 0.55"),
        ("durable decide ÷ commit per request", durable / rates["alone", "decide"], ">= 4"),
        ("the same, fdatasync 4 ms slower", rates["slow", "decide"] / rates["slow alone", "decide"], ">= 15"),
        ("100 decisions per request ÷ one", many / durable, ">= 4"),
        ("99th percentile of the mix ÷ without storage", slowest["durable", "mix"] / slowest["bare", "mix"], "<= 4"),
    ]
    for name, ratio, bar in shown:
        print(f"{name:48s} {ratio:6.2f}   ({bar})")
    print(f"durable decisions/s, 100 per request: {many:,.0f}")
    each = work["durable", "many"] / BATCH
    print(f"processor time of one decision ÷ one of 100 per request: {work['durable', 'decide'] / each:.2f}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(*sys.argv[2:5])
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000, int(sys.argv[2]) if len(sys.argv) > 2 else 5)
