"""Is anything lost, learnt twice, or learnt by two, when processes and their database are killed and paused?

python benchmarks/crash_postgres.py [kills] [seed]

Three servers share one PostgreSQL on this machine and are asked by several connections each, with doubled,
contradicting and late feedback that goes to other servers than the decision did. In turn the server that learns, one
that does not, and the database are killed with SIGKILL, and the server that learns is stopped (SIGSTOP) until another
has taken over, and woken up. At the end: every decision and bit that was acknowledged is there; what was accepted was
applied, once; no epoch was applied after a higher one; and each model is, to the last bit, what its first state and
`applied` give. How long it took until somebody learnt again is
printed.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import time
from typing import Any

from asking import Connection, Process, Refused

from crash import SETTINGS, Book
from database import Database
from fliptron.service.copies import Original
from fliptron.service.postgres import Postgres
from fliptron.service.settings import read_settings
from fliptron.service.snapshots import loaded
from fliptron.service.tokens import new_token

KINDS = "learner", "pause", "replica", "database"
LONGEST = 2.0
"""Seconds within which another process must learn."""
_MODELS = "now", "later"
_PAUSE = 0.02  # seconds between two calls of a client: the load is bounded, so that the time is what is measured


class Drill:
    """Servers, their database, and clients who write down what they were told."""

    def __init__(self, database: Database, count: int, seed: int) -> None:
        self.database, self.book, self.rng = database, Book(), random.Random(seed)
        self.token, kept = new_token("drill", ("decide", "feedback", "admin"))
        self.settings = database.folder / "drill.toml"
        self.settings.write_text(
            SETTINGS.format(store=database.address(), now="features = 8", wait=0.5, digest=kept.digest.hex())
        )
        self.servers: list[Process | None] = [None] * count
        self.over = False
        self.took: dict[str, list[float]] = {kind: [] for kind in KINDS}
        self.troubles = 0

    async def run(self, kills: list[str]) -> None:
        """Kill and pause under load, and then wait until everything is taken in."""
        await asyncio.gather(*(self._start(at) for at in range(len(self.servers))))
        async with asyncio.TaskGroup() as tasks:
            for model in _MODELS:
                for at in range(3):
                    tasks.create_task(self._client(model, at))
            for at, kind in enumerate(kills):
                await asyncio.sleep(self.rng.uniform(0.5, 1.5))
                while sum(server is not None for server in self.servers) < 2:
                    await asyncio.sleep(0.1)
                killed = await getattr(self, f"_{kind}")()
                if killed is not None and at < len(kills) - 1:
                    tasks.create_task(self._start(killed))
                if at % 10 == 9:
                    print(f"{at + 1} kills: {self.book.counts}", flush=True)
            self.over = True
        until = time.monotonic() + 30
        while self._ask("SELECT count(*) FROM inbox")[0][0]:
            assert time.monotonic() < until, f"not taken in: {self._ask('SELECT * FROM inbox LIMIT 5')}"
            await asyncio.sleep(0.1)
        for at, server in enumerate(self.servers):
            if server is not None:
                assert server.stop() == 0, "a server did not end well"
                self.servers[at] = None

    def clear(self) -> None:
        """Leave no server behind; what they said last, if anything went wrong."""
        for server in filter(None, self.servers):
            os.kill(server.pid, signal.SIGCONT)
            print(server.kill() or "", flush=True)

    async def _start(self, at: int) -> None:
        while self.servers[at] is None:
            try:
                self.servers[at] = await asyncio.to_thread(Process, self.settings)
            except SystemExit as refused:  # the database was killed just then: whoever starts servers tries again
                if "the database cannot be" not in str(refused):
                    raise
                self.troubles += 1

    def _ask(self, query: str, *values: Any) -> list[Any]:
        with self.database.connect() as connection:
            found: list[Any] = connection.execute(query, values).fetchall()
            return found

    async def _holder(self) -> tuple[int, int]:
        """The epoch, and the server that learns, once it is one that has started."""
        while True:
            ((epoch, holder),) = self._ask("SELECT epoch, holder FROM office")
            for at, server in enumerate(self.servers):
                if server is not None and server.pid == int(holder.split()[1]):
                    return epoch, at
            await asyncio.sleep(0.1)

    async def _learning(self, epoch: int, kind: str, began: float) -> None:
        """Wait until something was learnt in a higher epoch."""
        while not self._ask("SELECT FROM applied WHERE epoch > %s LIMIT 1", epoch):
            assert time.monotonic() - began < 30, f"after {kind}: nobody learns"
            await asyncio.sleep(0.02)
        self.took[kind].append(time.monotonic() - began)

    async def _learner(self) -> int:
        epoch, at = await self._holder()
        await self._kill(at)
        await self._learning(epoch, "learner", time.monotonic())
        return at

    async def _replica(self) -> int:
        _, holder = await self._holder()
        at = self.rng.choice([at for at, server in enumerate(self.servers) if server is not None and at != holder])
        await self._kill(at)
        return at

    async def _kill(self, at: int) -> None:
        server, self.servers[at] = self.servers[at], None
        assert server is not None
        await asyncio.to_thread(server.kill)
        self.book.counts["kills"] += 1

    async def _pause(self) -> None:
        epoch, at = await self._holder()
        server = self.servers[at]
        assert server is not None
        os.kill(server.pid, signal.SIGSTOP)
        try:
            await self._learning(epoch, "pause", time.monotonic())
            await asyncio.sleep(0.3)
        finally:
            os.kill(server.pid, signal.SIGCONT)
        await asyncio.sleep(0.5)  # what it had begun, it would end now
        self.book.counts["kills"] += 1

    async def _database(self) -> None:
        ((epoch,),) = self._ask("SELECT epoch FROM office")
        await asyncio.to_thread(self.database.kill)
        await asyncio.to_thread(self.database.start)
        self.book.counts["kills"] += 1
        await self._learning(epoch, "database", time.monotonic())

    async def _client(self, model: str, first: int) -> None:
        rng, mine = random.Random(self.rng.random()), []
        at = first
        while not self.over:
            server = self.servers[at % len(self.servers)]
            at += 1
            if server is None:
                await asyncio.sleep(_PAUSE)
                continue
            try:
                connection = await asyncio.wait_for(Connection(server.port, self.token, model).open(), 1)
                try:
                    for _ in range(10):
                        await asyncio.wait_for(self._round(connection, model, rng, mine), 1)
                        await asyncio.sleep(_PAUSE)
                finally:
                    connection.close()
                continue
            except (OSError, asyncio.IncompleteReadError, TimeoutError):  # killed or paused
                self.troubles += 1
            except Refused as refused:
                if refused.status != 503:
                    raise
                self.troubles += 1
            await asyncio.sleep(10 * _PAUSE)

    async def _round(self, connection: Connection, model: str, rng: random.Random, mine: list[Any]) -> None:
        await self.book.round(connection, model, [rng.gauss(0, 1) for _ in range(8)], rng, mine)

    def check(self) -> None:
        """Hold the database against what clients were told, and the models against what was applied."""
        rows = {seq: (label, p) for seq, label, p in self._ask("SELECT seq, label, probability FROM decision")}
        self.book.check(rows, dict(self._ask("SELECT seq, bit FROM feedback")))
        store = Postgres(self.database.address())
        numbers = {model.name: model.number for model in store.models()}
        due = {
            "now": "SELECT seq, bit FROM feedback JOIN decision USING (seq) WHERE model = %s AND NOT late",
            "later": "SELECT seq, CASE WHEN late = false THEN bit ELSE 0 END "
            "FROM decision LEFT JOIN feedback USING (seq) WHERE model = %s",
        }
        for model in read_settings(self.settings).models:
            number = numbers[model.name]
            applied = self._ask("SELECT position, seq, bit, epoch FROM applied WHERE model = %s ORDER BY 1", number)
            assert [each[0] for each in applied] == list(range(1, len(applied) + 1)), "a step of learning is missing"
            epochs = [each[3] for each in applied]
            assert epochs == sorted(epochs), "an old epoch was applied after a newer one"
            told = sorted(self._ask(due[model.name], number))
            assert sorted((seq, bit) for _, seq, bit, _ in applied) == told, f"{model.name}: applied is not accepted"
            self._replay(model, number, store)
        store.close()

    def _replay(self, model: Any, number: int, store: Postgres) -> None:
        newest, *_, first = store.snapshots(number)
        policy, about = loaded(first.content)
        desk = Original(model, number, store.secret, policy)
        desk._restore(about["service"], first)
        for lesson in store.lessons(number, 0):
            desk.learn(lesson)
        found, about = loaded(newest.content)
        assert about["service"]["version"] == desk.version
        for name, array in found._arrays().items():  # type: ignore[union-attr]
            assert (desk.learner._arrays()[name] == array).all(), f"{model.name}: {name} is not its replay"


def drill(database: Database, kills: list[str], *, servers: int = 3, seed: int = 1, longest: float = LONGEST) -> Drill:
    """Run it, check everything, and return what was seen."""
    done = Drill(database, servers, seed)
    try:
        asyncio.run(done.run(kills))
    finally:
        done.clear()
    done.check()
    for kind, took in done.took.items():
        if took:
            took.sort()
            print(f"{kind}: learning again after {took[len(took) // 2]:.2f} s in the median, {took[-1]:.2f} s at most")
        assert all(each <= longest for each in took), f"after {kind} nobody learnt for {max(took):.2f} s"
    return done


def main(kills: int, seed: int) -> None:
    began = time.monotonic()
    database = Database(fsync=True)
    try:
        done = drill(database, [KINDS[at % len(KINDS)] for at in range(kills)], seed=seed)
    finally:
        database.close()
    counts = done.book.counts
    print(
        f"{kills} kills and pauses, {counts['decisions']:,} decisions and {counts['accepted']:,} bits acknowledged, "
        f"{done.troubles:,} calls failed: 0 lost, applied = accepted, no old epoch after a newer one, every model "
        f"equal to its replay ({time.monotonic() - began:.0f} s in all)"
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 50, int(sys.argv[2]) if len(sys.argv) > 2 else 1)
