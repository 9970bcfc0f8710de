"""How soon is a server ready again after a crash, with a million events in its journal?

python benchmarks/ready.py [events]

A journal is filled as a server would fill it (Fliptron, 10 labels, 64 numbers; snapshots as they fall due), until the
next snapshot is due and has not been written: a crash then leaves the most to be replayed. A server is started on it
five times, each time killed; once before, so that its bytecode is there, as that of an installed package is. Seconds
are from the start of the process to its first answer; processor time is what a machine of its own would take.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np
from asking import Connection, Process, used

from fliptron.service.desk import Desk
from fliptron.service.messages import Ask, Feedback
from fliptron.service.settings import read_settings
from fliptron.service.sqlite import Journal
from fliptron.service.tokens import new_token

_SETTINGS = """
store = "{folder}/journal.db"
[models.digits]
labels = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
features = 64
[[tokens]]
name = "drill"
sha256 = "{digest}"
scopes = ["decide"]
"""
_BATCH = 500


def fill(told: Path, events: int) -> str:
    """Play so many events into the journal; a checksum of the model."""
    (settings,) = read_settings(told).models
    journal = Journal(read_settings(told).store)
    desk, random = Desk.opened(settings, journal), np.random.default_rng(1)
    start = 0
    while start < events or not desk.is_due:
        if desk.is_due:
            journal.write([desk.snapshot()])
        X = random.normal(size=(_BATCH, 64)).astype(np.float32)
        entries = list(desk.ask_rows(X, [Ask([])] * _BATCH, 1.0 + start))
        answers = [desk.taken(entry, outcome) for entry, outcome in zip(entries, journal.write(entries), strict=True)]
        told_ = [Feedback(answer.event_id, int(answer.label == 3)) for answer in answers]  # type: ignore[arg-type]
        heard = [desk.hear(each, 2.0 + start, journal.find) for each in told_]
        for (entry, row), outcome in zip(heard, journal.write([entry for entry, _ in heard]), strict=True):
            desk.kept(entry, row, outcome, journal.lessons)
        start += _BATCH
    print(f"{start:,} events; {desk._since:,} decisions and lessons since the last snapshot", flush=True)
    journal.close()
    return desk.digest()


async def ask(server: Process, token: str) -> None:
    connection = await Connection(server.port, token, "digits").open()
    await connection.call("decide", {"features": [0.5] * 64})
    connection.close()


def main(events: int) -> None:
    token, kept = new_token("drill", ("decide",))
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder) / "ready.toml"
        told.write_text(_SETTINGS.format(folder=folder, digest=kept.digest.hex()))
        digest = fill(told, events)
        journal = Journal(read_settings(told).store)
        began = time.process_time()
        found = Desk.opened(read_settings(told).models[0], journal).digest()
        print(f"opened in {time.process_time() - began:.2f} s of processor time; the same model: {found == digest}")
        journal.close()
        waits, works = [], []
        kept_code = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": f"{folder}/bytecode"}
        Process(told, environment=kept_code).kill()
        for _ in range(5):
            began = time.monotonic()
            server = Process(told, environment=kept_code)
            asyncio.run(ask(server, token))
            seconds = time.monotonic() - began
            works.append(used(server.pid))
            server.kill()
            waits.append(seconds)
            print(f"first answer after {seconds:.2f} s, of which processor time {works[-1]:.2f} s", flush=True)
        print(f"in the median {median(waits):.2f} s, of which processor time {median(works):.2f} s")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
