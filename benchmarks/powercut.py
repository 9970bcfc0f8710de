"""Is anything that was acknowledged lost when the power fails?

python benchmarks/powercut.py [cuts] [seed]

The journal writes to a disk of our own, which keeps apart what was synced and what was only written. At random moments
the power fails: of the writes since the last sync of each file some are there, some are not, and some are there in part
(by sectors of 512 bytes), in any order. Each disk that is left behind must open, be whole, and hold every entry that
was acknowledged. The same with synchronous=NORMAL must lose some; else the disk would prove nothing.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import apsw

from fliptron.service.sqlite import Journal
from fliptron.service.store import Decided, Heard, Keep, Settle

_SECTOR = 512
_PER_DISK = 50
_PAGES = 25  # of the log, after which it is written back: often, since that is where an order of syncs could be wrong


class Content:
    """A file: what is written, what of it is synced, and what has been done since."""

    def __init__(self) -> None:
        self.now, self.synced = bytearray(), b""
        self.since: list[tuple[int, bytes | None]] = []

    def after_a_cut(self, rng: random.Random) -> bytes:
        """What may be found when the power is back."""
        found, share = bytearray(self.synced), rng.choice((0.0, 0.1, 0.5, 0.9, 1.0))
        for at, data in sorted(self.since, key=lambda _: rng.random()) if rng.random() < 0.5 else self.since:
            if rng.random() > share:
                continue
            if data is None:
                del found[at:]
                continue
            kept = data
            if rng.random() < 0.3:
                sectors = -(-len(data) // _SECTOR)
                kept = data[: rng.randrange(sectors + 1) * _SECTOR]
            found.extend(bytes(max(at - len(found), 0)))
            found[at : at + len(kept)] = kept
        return bytes(found)


class Open:
    """A file that SQLite has opened."""

    def __init__(self, disk: Disk, content: Content) -> None:
        self._disk, self._content = disk, content

    def xRead(self, amount: int, offset: int) -> bytes:
        return bytes(self._content.now[offset : offset + amount])

    def xWrite(self, data: bytes, offset: int) -> None:
        now = self._content.now
        now.extend(bytes(max(offset - len(now), 0)))
        now[offset : offset + len(data)] = data
        self._content.since.append((offset, bytes(data)))
        self._disk.moved()

    def xTruncate(self, size: int) -> None:
        del self._content.now[size:]
        self._content.since.append((size, None))
        self._disk.moved()

    def xSync(self, flags: int) -> None:
        self._disk.moved()
        self._content.synced, self._content.since = bytes(self._content.now), []
        self._disk.moved()

    def xFileSize(self) -> int:
        return len(self._content.now)

    def xSectorSize(self) -> int:
        return _SECTOR

    def xDeviceCharacteristics(self) -> int:
        return apsw.SQLITE_IOCAP_POWERSAFE_OVERWRITE  # as SQLite takes every disk to be

    def xFileControl(self, op: int, pointer: int) -> bool:
        return False

    def xLock(self, level: int) -> None:
        """Nobody else is here."""

    def xUnlock(self, level: int) -> None:
        """Nobody else is here."""

    def xCheckReservedLock(self) -> bool:
        return False

    def xClose(self) -> None:
        """It stays on the disk."""


class Disk(apsw.VFS):
    """A disk whose power fails at moments drawn beforehand."""

    def __init__(self, name: str, rng: random.Random, cuts: set[int]) -> None:
        self.files: dict[str, Content] = {}
        self._rng, self._cuts, self._moves = rng, cuts, 0
        self.acknowledged: list[Any] = []
        self.left: list[tuple[dict[str, bytes], int]] = []
        super().__init__(name, base="")

    def moved(self) -> None:
        self._moves += 1
        if self._moves in self._cuts:
            files = {name: content.after_a_cut(self._rng) for name, content in self.files.items()}
            self.left.append((files, len(self.acknowledged)))

    def xOpen(self, name: Any, flags: Any) -> Any:
        path = name.filename() if isinstance(name, apsw.URIFilename) else str(name)
        return Open(self, self.files.setdefault(path, Content()))

    def xDelete(self, name: str, sync: bool) -> None:
        self.files.pop(name, None)

    def xAccess(self, name: str, flags: int) -> bool:
        return name in self.files

    def xFullPathname(self, name: str) -> str:
        return name


def played(name: str, rng: random.Random, cuts: set[int], synchronous: str) -> Disk:
    """A journal's life on a disk; what clients were told is in the order they were told it."""
    disk = Disk(name, rng, cuts)
    journal = Journal("/journal.db", synchronous=synchronous, vfs=name)
    journal._writer.execute(f"PRAGMA wal_autocheckpoint = {_PAGES}")
    journal.open_model("m", b"{}")
    seqs: list[int] = []
    for turn in range(60):
        entries: list[Any] = [
            Decided(1, turn, 1.0 * turn, 9.0, 1, 0, 0.5, rng.randbytes(rng.choice((16, 256, 3000))), key=f"{turn}.{at}")
            for at in range(rng.randrange(1, 5))
        ]
        entries += [Heard(1, rng.choice(seqs), 2.0, rng.randrange(2), learn=rng.random() < 0.8) for _ in seqs[:3]]
        if turn % 9 == 8:
            entries += [Settle(1, seqs[-3:]), Keep(1, turn, seqs[-1], rng.randbytes(20_000), "drill")]
        outcomes = journal.write(entries)
        for entry, outcome in zip(entries, outcomes, strict=True):
            if isinstance(entry, Decided):
                seqs.append(outcome.seq)  # type: ignore[union-attr]
            disk.acknowledged.append((entry, outcome))
    journal.close()
    disk.unregister()
    return disk


def lost(files: dict[str, bytes], told: list[Any], folder: Path) -> int:
    """How many acknowledged entries a disk has lost; raises if it is not whole."""
    for each in folder.iterdir():
        each.unlink()
    for name, content in files.items():
        (folder / Path(name).name).write_bytes(content)
    if not told and not files.get("/journal.db"):
        return 0
    journal = Journal(folder / "journal.db")
    try:
        verdict = journal._reader.execute("PRAGMA integrity_check").get
        if verdict != "ok":
            raise SystemExit(f"the journal is damaged: {verdict}")
        bits = dict(journal._reader.execute("SELECT seq, bit FROM feedback"))
        applied = set(journal._reader.execute("SELECT seq, kind FROM applied"))
        missing = 0
        for entry, outcome in told:
            if isinstance(entry, Decided):
                row = journal.find(1, outcome.seq)
                missing += row is None or (row.key, row.x) != (entry.key, entry.x)
            elif isinstance(entry, Heard) and outcome.status == "accepted":
                missing += bits.get(entry.seq) != entry.bit
                missing += outcome.position is not None and (entry.seq, 0) not in applied
            elif isinstance(entry, Settle):
                missing += any((each.seq, 0) not in applied for each in outcome)
        return missing
    finally:
        journal.close()


def drill(cuts: int, seed: int, synchronous: str) -> tuple[int, int, int]:
    """Cuts, disks that lost something, and entries lost."""
    rng, done, bad, entries = random.Random(seed), 0, 0, 0
    moves = 1700  # of a disk's life, about
    with tempfile.TemporaryDirectory() as folder:
        while done < cuts:
            chosen = {rng.randrange(40, moves) for _ in range(_PER_DISK)}
            disk = played(f"drill{synchronous}{seed}{done}", rng, chosen, synchronous)
            for files, count in disk.left[: cuts - done]:
                missing = lost(files, disk.acknowledged[:count], Path(folder))
                bad, entries, done = bad + (missing > 0), entries + missing, done + 1
    return done, bad, entries


def main(cuts: int, seed: int) -> None:
    began = time.monotonic()
    done, bad, _ = drill(cuts, seed, "FULL")
    print(f"synchronous=FULL: {done} power cuts, {bad} disks lost something acknowledged, 0 damaged", flush=True)
    control, worse, gone = drill(max(cuts // 5, 20), seed, "NORMAL")
    print(f"synchronous=NORMAL, the control: {control} power cuts, {worse} disks lost something, {gone} entries in all")
    print(f"{time.monotonic() - began:.0f} s")
    if bad or not worse:
        raise SystemExit("that is not as it should be")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000, int(sys.argv[2]) if len(sys.argv) > 2 else 1)
