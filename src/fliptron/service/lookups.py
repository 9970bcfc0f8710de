"""What a store is asked, whichever database it is in: the same questions, and what their answers mean."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from math import nan
from types import ModuleType
from typing import Any

from fliptron.service.store import Flag, Keep, Lesson, Model, Row, Token, lesson_of, token_of, undamaged

_BATCH = 1000


class Lookups(ABC):
    """The look-ups of a journal; see `fliptron.service.store` for what they promise."""

    words: ModuleType
    """Statements in the words of the database."""

    @abstractmethod
    def _read(self, query: str, values: Any = ()) -> list[Any]:
        """All that a query gives; a question mark stands for each value. Any thread may call it."""

    def models(self) -> list[Model]:
        """All models."""
        return [Model(*each) for each in self._read("SELECT number, name, about FROM model ORDER BY number")]

    def find(self, model: int, seq: int) -> Row | None:
        """One decision."""
        return self._row("seq = ?", model, seq) if 0 <= seq < 2**63 else None

    def find_key(self, model: int, key: str) -> Row | None:
        """The decision with a key."""
        return self._row("key = ?", model, key)

    def _row(self, where: str, model: int, value: Any) -> Row | None:
        found = self._read(f"SELECT {self.words.COLUMNS} FROM decision WHERE model = ? AND {where}", (model, value))
        return Row(*found[0]) if found else None

    def snapshots(self, model: int) -> list[Keep]:
        """The states that are kept, the newest first; one that was damaged is left out."""
        return undamaged(model, self._read(self.words.STATES, (model,)))

    def rows(self, model: int, after: int, limit: int) -> list[Row]:
        """Decisions with seq > after, in order."""
        query = f"SELECT {self.words.COLUMNS} FROM decision WHERE model = ? AND seq > ? ORDER BY seq LIMIT ?"
        return [Row(*each) for each in self._read(query, (model, after, limit))]

    def lessons(self, model: int, after: int) -> Iterator[Lesson]:
        """What was learnt at positions > after, in order."""
        while True:
            found = self._read(self.words.LESSONS, (model, after, _BATCH))
            for each in found:
                lesson = lesson_of(Row(*each[:14]), *each[14:])
                yield lesson
                after = lesson.applied.position
            if len(found) < _BATCH:
                return

    def flags(self, model: int) -> list[Flag]:
        """Every time that a source went into quarantine, or out of it, in order."""
        return [_flag(model, *each) for each in self._read(self.words.FLAGS, (model,))]

    def flagged(self, model: int) -> dict[str, Flag]:
        """The last word on every source that was ever in quarantine."""
        return {each[0]: _flag(model, *each) for each in self._read(self.words.FLAGGED, (model,))}

    def export(self, model: int) -> Iterator[list[tuple[Row, int, float, int | None]]]:
        """Decisions whose bit was learnt, in order, with bit, its time and the auditor's bit, batch by batch."""
        after = 0
        while found := self._read(self.words.EXPORT, (model, after, _BATCH)):
            after = found[-1][13]
            yield [(Row(*e[:14]), e[14], nan if e[15] is None else e[15], e[16]) for e in found]

    def tokens(self) -> list[Token]:
        """All tokens."""
        return [token_of(*each) for each in self._read("SELECT name, digest, scopes, models FROM token ORDER BY name")]


def _flag(model: int, source: str, quarantined: int, *more: Any) -> Flag:
    return Flag(model, source, bool(quarantined), *more)
