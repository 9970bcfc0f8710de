"""Does a server that is asked all kinds of things for half an hour make errors, grow, or let its log grow?

python benchmarks/soak.py [minutes] [requests per second]

One server on loopback with three models (one with a schema and sources, one where silence is a bit, one with 64
numbers) is asked at a steady pace: decisions alone and many at once, with keys that come again; feedback early, late,
doubled and contradicting; audits; estimates, sources, the model's file; exports; and somebody watches the page. First
it is warmed up: as many decisions as a server remembers, and one of everything. Memory is what the operating system
says that the process holds, the median of a twentieth of the time at both ends.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from asking import HOST, Connection, Process, Refused

from fliptron.service.tokens import new_token

MOST_MEMORY = 1.05
"""Memory at the end, as a multiple of that after the warm-up."""
MOST_LOG = 128 * 2**20
"""Bytes of the write-ahead log: SQLite cuts it to half of this, but not while somebody reads an export."""
LONG = 5.0
"""Minutes without which nothing is said of memory."""
_SETTINGS = """
store = "{folder}/journal.db"
[models.shop]
labels = ["bags", "hats", "shoes"]
schema = {{ age = "number", city = "category", page = "many" }}
[models.silent]
labels = [0, 1, 2, 3]
features = 8
silence = "negative"
wait = 3
[models.digits]
labels = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
features = 64
wait = 60
[[tokens]]
name = "soak"
sha256 = "{digest}"
scopes = ["decide", "feedback", "admin"]
"""
_CONNECTIONS = 12
_REMEMBERED = 20_000  # decisions of a model whose feedback needs no look-up: until then a server grows
_WIDTH = {"silent": 8, "digits": 64}


class Soak:
    """One server, those who ask it, and what they saw."""

    def __init__(self, server: Process, token: str, seed: int = 1) -> None:
        self._server, self._token, self._rng = server, token, random.Random(seed)
        self.counts: Counter[str] = Counter()
        self.errors: list[str] = []
        self.times: list[float] = []
        self.seen = 0
        """Seconds that the watcher was told of."""

    async def open(self, model: str) -> Connection:
        return await Connection(self._server.port, self._token, model).open()

    def features(self, model: str, rng: random.Random) -> Any:
        if model == "shop":
            return {"age": rng.randint(1, 90), "city": rng.choice("xyz"), "page": f"p{rng.randrange(300)}"}
        return [round(rng.gauss(0, 1), 4) for _ in range(_WIDTH[model])]

    async def warm_up(self, decisions: int) -> None:
        """Everything once, and as many decisions as a server remembers."""
        for model in ("shop", *_WIDTH):
            connection = await self.open(model)
            for start in range(0, decisions, 500):
                asks = [
                    {"features": self.features(model, self._rng), "source": f"s{at % 50}"}
                    for at in range(min(500, decisions - start))
                ]
                answers = await connection.call("decisions", {"decisions": asks})
                bits = [{"event_id": each["event_id"], "bit": self._rng.randrange(2)} for each in answers]
                await connection.call("feedbacks", {"feedbacks": bits})
            connection.close()
            await self._read(model, b"model.npz", b"estimate", b"history", b"sources")
        await self._read("shop", b"export.parquet")

    async def _read(self, model: str, *calls: bytes) -> None:
        connection = await self.open(model)
        for call in calls:
            await self._timed(call.decode(), connection.get(call))
        connection.close()

    async def _timed(self, name: str, call: Awaitable[Any]) -> Any:
        began = time.monotonic()
        found = await call
        self.times.append(time.monotonic() - began)
        self.counts[name] += 1
        return found

    async def ask(self, model: str, until: float, pause: float) -> None:
        """One connection that asks at its own pace; if an answer takes long, it catches up."""
        rng = random.Random(self._rng.random())
        mine: deque[str] = deque(maxlen=5000)
        connection, due = await self.open(model), time.monotonic() + pause * rng.random()
        while time.monotonic() < until:
            await asyncio.sleep(max(due - time.monotonic(), 0.0))
            due = max(due + pause, time.monotonic() - 1.0)
            try:
                await self._one(connection, model, rng, mine)
            except Exception as error:  # whatever it is, it is counted, and the others go on
                self.errors.append(f"{model}: {type(error).__name__} {error}")
                if not isinstance(error, Refused):
                    connection = await self.open(model)
        connection.close()

    async def _one(self, connection: Connection, model: str, rng: random.Random, mine: deque[str]) -> None:
        kind = rng.random()
        if kind < 0.45 or not mine:
            ask: dict[str, Any] = {"features": self.features(model, rng)}
            ask |= {"key": f"k{rng.randrange(10**5)}"} if rng.random() < 0.2 else {}
            ask |= {"source": f"s{rng.randrange(50)}"} if rng.random() < 0.5 else {}
            mine.append((await self._timed("decide", connection.call("decide", ask)))["event_id"])
        elif kind < 0.47:
            asks = [{"features": self.features(model, rng)} for _ in range(10)]
            found = await self._timed("decisions", connection.call("decisions", {"decisions": asks}))
            mine.extend(each["event_id"] for each in found)
        elif kind < 0.95:
            old = rng.random() < 0.05  # it may be late, or there already
            event = mine[rng.randrange(len(mine))] if old else mine[-1 - min(int(rng.expovariate(0.1)), len(mine) - 1)]
            told = {"event_id": event, "bit": rng.randrange(2), "verified": rng.random() < 0.01}
            found = await self._timed("feedback", connection.call("feedback", told))
            self.counts[found["status"]] += 1
        elif kind < 0.97:
            bits = [{"event_id": rng.choice(mine), "bit": rng.randrange(2)} for _ in range(10)]
            await self._timed("feedbacks", connection.call("feedbacks", {"feedbacks": bits}))
        else:
            call = rng.choice((b"estimate", b"history", b"sources", b"model.npz"))
            await self._timed(call.decode(), connection.get(call))

    async def watch(self, until: float) -> None:
        """Somebody who has the page open."""
        reader, writer = await asyncio.open_connection(HOST, self._server.port, limit=2**20)
        writer.write(
            b"GET /v1/models/shop/live HTTP/1.1\r\nhost: x\r\nauthorization: Bearer %s\r\n\r\n" % self._token.encode()
        )
        while time.monotonic() < until:
            line = await asyncio.wait_for(reader.readline(), 10)
            if not line:
                self.errors.append("the watcher was sent away")
                return
            self.seen += line.startswith(b"data: ")
        writer.close()

    async def export(self, until: float, often: float) -> None:
        while time.monotonic() + often < until:
            await asyncio.sleep(often)
            try:
                await self._read("shop", b"export.parquet")
            except Exception as error:
                self.errors.append(f"export: {type(error).__name__} {error}")

    async def every_second(self, until: float, look: Callable[[], None]) -> None:
        while time.monotonic() < until:
            look()
            await asyncio.sleep(1.0)

    async def run(self, seconds: float, rate: float, look: Callable[[], None]) -> None:
        """Ask so many requests per second, for so long."""
        until, models = time.monotonic() + seconds, ("shop", *_WIDTH)
        async with asyncio.TaskGroup() as tasks:
            for at in range(_CONNECTIONS):
                tasks.create_task(self.ask(models[at % 3], until, _CONNECTIONS / rate))
            tasks.create_task(self.watch(until))
            tasks.create_task(self.export(until, seconds / 6))
            tasks.create_task(self.every_second(until, look))


def memory_of(pid: int) -> int:
    """Bytes that a process holds."""
    told = Path(f"/proc/{pid}/status").read_text()
    return int(told.partition("VmRSS:")[2].split()[0]) * 1024


def main(minutes: float, rate: float) -> int:
    token, kept = new_token("soak", ("decide", "feedback", "admin"))
    memory: list[int] = []
    log = 0
    with tempfile.TemporaryDirectory() as folder:
        told, journal = Path(folder) / "soak.toml", Path(folder) / "journal.db"
        told.write_text(_SETTINGS.format(folder=folder, digest=kept.digest.hex()))
        server = Process(told)
        soak = Soak(server, token)

        def look() -> None:
            nonlocal log
            memory.append(memory_of(server.pid))
            log = max(log, Path(f"{journal}-wal").stat().st_size)

        try:
            asyncio.run(soak.warm_up(_REMEMBERED if minutes >= LONG else 500))
            soak.counts.clear()
            soak.times.clear()
            asyncio.run(soak.run(60 * minutes, rate, look))
        finally:
            said = server.kill()
        size = journal.stat().st_size
    if said:
        soak.errors.append(f"the server said: {said[:500]}")
    part = max(len(memory) // 20, 1)
    start, end = statistics.median(memory[:part]), statistics.median(memory[-part:])
    requests = len(soak.times)
    soak.times.sort()
    rows = [
        ("requests", f"{requests:,} in {minutes:g} minutes"),
        ("errors", f"{len(soak.errors)}"),
        ("half within, 99 % within", f"{1e3 * soak.times[requests // 2]:.1f} ms, "
         f"{1e3 * soak.times[requests * 99 // 100]:.1f} ms"),
        ("bits accepted, late, doubled",
         ", ".join(f"{soak.counts[name]:,}" for name in ("accepted", "late", "duplicate"))),
        ("seconds that a watcher saw", f"{soak.seen:,}"),
        ("memory after the warm-up, at the end", f"{start / 2**20:.0f} MiB, {end / 2**20:.0f} MiB "
         f"({100 * (end / start - 1):+.1f} %)"),
        ("most memory", f"{max(memory) / 2**20:.0f} MiB"),
        ("largest write-ahead log", f"{log / 2**20:.0f} MiB"),
        ("journal at the end", f"{size / 2**20:.0f} MiB"),
    ]  # fmt: skip
    for name, value in rows:
        print(f"| {name} | {value} |")
    for error in soak.errors[:10]:
        print(error)
    grown = minutes >= LONG and end > MOST_MEMORY * start
    return int(bool(soak.errors) or grown or log > MOST_LOG)


if __name__ == "__main__":
    sys.exit(
        main(float(sys.argv[1]) if len(sys.argv) > 1 else 30.0, float(sys.argv[2]) if len(sys.argv) > 2 else 300.0)
    )
