"""The journal as a log: one row per decision whose bit is known, with the columns that `Log` looks for."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from fliptron.logs.roles import NOT_FEATURES
from fliptron.output import whole_file
from fliptron.refusals import InputError
from fliptron.service.snapshots import labels_of
from fliptron.service.sqlite import Journal
from fliptron.service.store import Row, Store
from fliptron.tables import NAMES, connected, duckdb, literal, said

_OURS = ("label", "greedy", "probability", "bit", "margin")
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


def export(store: Store, model: int, labels: tuple[Any, ...], path: str | os.PathLike[str]) -> int:
    """Write a model's rounds to a Parquet file, whole or not at all; memory does not grow with their number.

    Columns are `label`, `greedy`, `probability`, `bit` and, where every decision has one, `margin`; `_event` (the
    number of the decision), `_time`, `_delay` in seconds, `_source` and `_verified` (what an auditor found); and the
    features under their own names, x0, x1, … where there is no schema. A feature that is called as one of ours, or as
    something that a log's reader would take for one, gets an underscore behind its name.

    Parameters
    ----------
    store, model
        The journal, and the model's number in it.
    labels
        What the model's labels are called.
    path
        The file.

    Returns
    -------
    int
        How many rounds there are.
    """
    engine = duckdb()
    taken = {*_OURS, *NOT_FEATURES, *(name for names in NAMES.values() for name in names)}
    count, margins = 0, True
    with tempfile.TemporaryDirectory(prefix="fliptron-") as folder:
        lines = Path(folder) / "rounds.jsonl"
        with lines.open("wb") as file:
            for batch in store.export(model):
                for row, bit, when, audit in batch:
                    told = {
                        "label": labels[row.label], "greedy": labels[row.greedy], "probability": row.probability,
                        "bit": bit, "margin": row.margin, "_event": row.seq, "_time": row.time,
                        "_delay": None if math.isnan(when) else when - row.time, "_source": row.source,
                        "_verified": audit,
                    }  # fmt: skip
                    margins &= row.margin is not None
                    for name, value in _features(row).items():
                        told[name + "_" if name.lower() in taken else name] = value
                    file.write(_encode(told) + b"\n")
                    count += 1
        if not count:
            raise InputError("no decision has a bit yet, so there is nothing to export")
        columns = "*" if margins else "* EXCLUDE (margin)"
        with whole_file(Path(path)) as part, connected() as database:
            read = "read_json(?, format = 'newline_delimited', sample_size = -1, maximum_depth = 1)"
            try:
                database.execute(
                    f"COPY (SELECT {columns} FROM {read}) TO {literal(part)} (FORMAT parquet)", [str(lines)]
                )
            except engine.Error as error:
                raise InputError(f"{path} cannot be written ({said(error)})") from None
    return count


def _features(row: Row) -> dict[str, Any]:
    if row.record is not None:
        found: dict[str, Any] = _decode(row.record)
        return found
    return {f"x{j}": value for j, value in enumerate(np.frombuffer(row.x, np.float32).tolist())}


def is_journal(source: str) -> bool:
    """Whether a log's name is that of a journal: a file that ends in .db, with a model's name behind a colon or not."""
    return _split(source)[0].is_file()


def _split(source: str) -> tuple[Path, str | None]:
    name, mark, model = source.rpartition(":")
    if mark and name.endswith(".db"):
        return Path(name), model
    return (Path(source) if source.endswith(".db") else Path("/dev/null/none")), None


@contextmanager
def exported(source: str, then: Callable[[str], Any] = str) -> Iterator[Any]:
    """A journal as a Parquet file that is there as long as the context lasts; also while a server writes to it.

    Parameters
    ----------
    source
        The journal's file; ``journal.db:shop`` where it has several models.
    then
        What to make of the file's name.
    """
    path, wanted = _split(source)
    journal = Journal(path, alone=False)
    try:
        names = [each for each in journal.models() if journal.snapshots(each.number)]  # the others never got ready
        if not names:
            raise InputError(f"{path} has no model yet, so there is nothing to read")
        chosen = wanted or (names[0].name if len(names) == 1 else None)
        model = next((each for each in names if each.name == chosen), None)
        if model is None:
            known = ", ".join(each.name for each in names)
            raise InputError(f"{path} has the models {known}; say which one, such as {path}:{names[0].name}")
        labels = labels_of(journal.snapshots(model.number)[0].content)
        with tempfile.TemporaryDirectory(prefix="fliptron-") as folder:
            file = Path(folder) / f"{model.name}.parquet"
            export(journal, model.number, labels, file)
            yield then(str(file))
    finally:
        journal.close()
