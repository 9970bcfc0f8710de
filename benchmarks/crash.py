"""Is anything that was acknowledged ever lost, or learnt twice, when the server is killed?

python benchmarks/crash.py [kills] [seed]

A server is started on loopback, asked by several connections at once, with late, doubled and contradicting feedback,
killed with SIGKILL at a random moment, and started again on its journal, so many times. After each start: every
decision and every bit that was acknowledged must be there as it was; no bit may be learnt twice; and the model must be,
to the last bit, what the killed one was (asked just before, every third time) and what a replay of the whole journal
from the first state gives (at the end).
"""

from __future__ import annotations

import asyncio
import io
import json
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import apsw
import numpy as np
from asking import Connection, Process, Refused

from fliptron.service.desk import Desk
from fliptron.service.settings import read_settings
from fliptron.service.sqlite import Journal
from fliptron.service.tokens import new_token

SETTINGS = """
store = "{store}"
[models.now]
labels = ["a", "b", "c", "d"]
{now}
[models.later]
labels = [0, 1, 2]
features = 8
silence = "negative"
wait = {wait}
[[tokens]]
name = "drill"
sha256 = "{digest}"
scopes = ["decide", "feedback", "admin"]
"""
"""Of both drills."""
_NOW = 'schema = { age = "number", city = "category", page = "many" }'
_CONNECTIONS = 6
_KEYS = 10**5  # some come twice
LABELS: dict[str, list[Any]] = {"now": ["a", "b", "c", "d"], "later": [0, 1, 2]}
"""Of the models in both drills."""


class Book:
    """What clients were told, which must never be taken back."""

    def __init__(self) -> None:
        self.decisions: dict[tuple[str, str], Any] = {}
        self.keys: dict[tuple[str, str], Any] = {}
        self.bits: dict[tuple[str, str], int] = {}
        self.sent: dict[tuple[str, str], int] = {}
        self.counts = dict.fromkeys(("decisions", "accepted", "duplicate", "late", "kills", "compared"), 0)

    def decided(self, model: str, key: str | None, answer: Any) -> None:
        event = (model, answer["event_id"])
        known = self.decisions.setdefault(event, answer)
        assert known == answer, f"{event} was {known}, and is {answer}"
        if key is not None:
            assert self.keys.setdefault((model, key), answer) == answer, f"key {key} gave two decisions"
        self.counts["decisions"] += 1

    def heard(self, event: tuple[str, str], bit: int, status: str) -> None:
        self.counts[status] += 1
        if status == "accepted":
            assert event not in self.bits, f"{event} was accepted twice"
            self.bits[event] = bit
        elif status == "duplicate":
            assert self.sent[event] > 1, f"{event} is no duplicate"

    async def round(
        self, connection: Connection, model: str, features: Any, rng: random.Random, mine: list[Any]
    ) -> None:
        """Ask for a decision, with a key or without, send bits for this one or earlier ones, some twice, and write down
        the answers."""
        key = f"k{rng.randrange(_KEYS)}" if rng.random() < 0.3 else None
        answer = await connection.call("decide", {"features": features, **({"key": key} if key else {})})
        self.decided(model, key, answer)
        mine.append((model, answer["event_id"]))
        for _ in range(rng.choice((0, 1, 1, 2))):
            event = mine[-1 - min(int(rng.expovariate(0.1)), len(mine) - 1)]
            bit = rng.randrange(2)
            self.sent[event] = self.sent.get(event, 0) + 1
            told = await connection.call("feedback", {"event_id": event[1], "bit": bit})
            self.heard(event, bit, told["status"])

    def check(self, rows: dict[int, tuple[int, float]], bits: dict[int, int]) -> None:
        """Hold the journal's labels and probabilities, and its bits, against what clients were told."""
        for (model, event), answer in self.decisions.items():
            label, probability = rows.get(_number(event), (0, None))
            found = LABELS[model][label], probability
            assert found == (answer["label"], answer["probability"]), f"decision {event} is lost, or another"
        for (_, event), bit in self.bits.items():
            assert bits.get(_number(event)) == bit, f"the bit of {event} is lost"


def _number(event: str) -> int:
    return int(event.split("-", maxsplit=1)[0], 16)


async def _client(book: Book, port: int, token: str, model: str, rng: random.Random, stop: float) -> None:
    try:
        connection = await Connection(port, token, model).open()
        mine = [event for event in book.decisions if event[0] == model][-200:]
        while time.monotonic() < stop:
            features: Any = [rng.gauss(0, 1) for _ in range(8)]
            if model == "now":
                features = {"age": rng.randint(1, 90), "city": rng.choice("xyz"), "page": f"p{rng.randrange(500)}"}
            await book.round(connection, model, features, rng, mine)
    except (OSError, asyncio.IncompleteReadError):  # it was killed
        return
    except Refused as refused:
        raise SystemExit(f"refused: {refused}") from None


async def _load(book: Book, server: Process, token: str, rng: random.Random, seconds: float, compare: bool) -> Any:
    stop = time.monotonic() + seconds
    asking = [
        asyncio.create_task(
            _client(book, server.port, token, model, random.Random(rng.random()), stop + 9 * (not compare))
        )
        for model in ("now", "later")
        for _ in range(_CONNECTIONS // 2)
    ]
    if not compare:
        await asyncio.sleep(seconds)
        server.kill()
        await asyncio.gather(*asking)
        return None
    await asyncio.gather(*asking)
    state = await _state(server, token)
    server.kill()
    return state


async def _state(server: Process, token: str) -> Any:
    connection = await Connection(server.port, token, "now").open()
    content = await connection.get(b"model.npz")
    connection.close()
    return _arrays(content)


def _arrays(content: bytes) -> dict[str, Any]:
    with np.load(io.BytesIO(content)) as saved:
        service = json.loads(saved["service"].tobytes())
        told = {name: saved[name].tobytes() for name in saved.files if name not in ("about", "service")}
        return told | {"version": service["version"], "sources": service["sources"]}


def check(path: Path, book: Book) -> None:
    """Hold a journal that nobody uses against what clients were told."""
    journal = Journal(path)
    numbers = {model.name: model.number for model in journal.models()}
    database = apsw.Connection(str(path))
    decisions: Any = database.execute("SELECT seq, label, probability FROM decision").fetchall()
    book.check(
        {seq: (label, p) for seq, label, p in decisions}, dict(database.execute("SELECT seq, bit FROM feedback"))
    )
    twice = database.execute(
        "SELECT count(*) FROM (SELECT seq FROM applied GROUP BY seq, kind HAVING count(*) > 1)"
    ).get
    assert twice == 0, f"{twice} bits were learnt twice"
    learnt = "SELECT count(*) FROM feedback JOIN decision USING (seq) WHERE model = ? AND NOT late AND usable"
    applied = "SELECT count(*) FROM applied WHERE model = ?"
    now = numbers["now"]
    assert database.execute(learnt, (now,)).get == database.execute(applied, (now,)).get, "accepted is not applied"
    assert database.execute("PRAGMA integrity_check").get == "ok"
    database.close()
    journal.close()


def replayed(path: Path, settings: Any) -> None:
    """Replay the whole journal from the first state of each model."""
    journal = Journal(path)
    for model in settings.models:
        told = Desk.opened(model, journal).digest()
        number = journal.open_model(model.name, b"").number
        journal.write([journal.snapshots(number)[-1]])
        assert Desk.opened(model, journal).digest() == told, f"{model.name} is not its replay"
    journal.close()


def main(kills: int, seed: int) -> None:
    rng, book = random.Random(seed), Book()
    token, kept = new_token("drill", ("decide", "feedback", "admin"))
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        path, told = Path(folder) / "journal.db", Path(folder) / "drill.toml"
        told.write_text(SETTINGS.format(store=path, now=_NOW, wait=0.4, digest=kept.digest.hex()))
        ready, state = [], None
        for at in range(kills):
            server = Process(told)
            ready.append(server.seconds)
            if state is not None:
                found = asyncio.run(_state(server, token))
                assert found == state, f"start {at} is another model: {[k for k in state if state[k] != found[k]]}"
                book.counts["compared"] += 1
            state = asyncio.run(_load(book, server, token, rng, rng.uniform(0.1, 1.2), at % 3 == 2))
            book.counts["kills"] += 1
            if at % 10 == 9 or at == kills - 1:
                check(path, book)
                print(f"{at + 1} kills: {book.counts}", flush=True)
        server = Process(told)
        assert server.stop() == 0, "the last server did not end well"
        check(path, book)
        replayed(path, read_settings(told))
        ready.sort()
        print(
            f"{kills} kills, {book.counts['decisions']:,} decisions and {book.counts['accepted']:,} bits acknowledged: "
            f"0 lost, 0 learnt twice, every state equal to its replay; ready after "
            f"{ready[len(ready) // 2]:.1f} s in the median ({time.monotonic() - began:.0f} s in all)"
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200, int(sys.argv[2]) if len(sys.argv) > 2 else 1)
