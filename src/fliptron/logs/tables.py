"""Tables of rounds in files, CSV or Parquet: what an operator has, and what a simulation writes."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fliptron.arrays import Array
from fliptron.output import whole_file
from fliptron.refusals import InputError, path_of
from fliptron.rounds import Rounds
from fliptron.tables import TableFile, connected, duckdb, literal, said

REQUIRED = ("label", "greedy", "probability", "bit")
_FORMATS = {".csv": "csv", ".parquet": "parquet"}


def read_log(path: str | os.PathLike[str]) -> Rounds:
    """Read a log of rounds.

    Parameters
    ----------
    path
        A ``.csv`` or ``.parquet`` file, one row per round in the order they were played, with columns `label`,
        `greedy`, `probability` and `bit`, and either `margin` or the examples as `x0`, `x1`, … Other columns are
        ignored.
    """
    path = path_of(path)
    _format(path)
    if path.is_dir():
        raise InputError(f"{path} is not a file")
    file = TableFile(glob.escape(str(path)))
    wanted, examples = _wanted(path, file.columns)
    parts = list(file.batches(wanted))
    columns = {
        name: np.concatenate([part.columns[name] for part in parts]) if parts else np.empty(0) for name in wanted
    }
    if columns["bit"].size == 0:
        raise InputError(f"{path} holds no rounds; at least one is expected")
    for name in wanted:
        if columns[name].dtype.kind not in "biuf":
            raise InputError(f"{path}: column {name!r} holds something that is not a number")
        if np.isnan(columns[name].astype(np.float64)).any():
            raise InputError(f"{path}: column {name!r} has empty cells; every round needs a value")
    plain: dict[str, Any] = {name: np.asarray(columns[name]) for name in wanted}
    X = np.column_stack([plain[name] for name in examples]) if examples else None
    try:
        return Rounds.of(**{name: plain[name] for name in REQUIRED}, margin=plain.get("margin"), X=X)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def write_log(path: str | os.PathLike[str], rounds: Rounds) -> None:
    """Write a log of rounds, whole or not at all. The true labels are not in it.

    Parameters
    ----------
    path
        A ``.csv`` or ``.parquet`` file.
    rounds
        Such as `trace.log`. Examples become columns `x0`, `x1`, …
    """
    if not isinstance(rounds, Rounds):
        raise InputError(f"the rounds are a {type(rounds).__name__}; rounds such as trace.log are expected")
    columns = rounds.columns()
    X = columns.pop("X", None)
    write_table(path_of(path), columns | ({} if X is None else {f"x{j}": X[:, j] for j in range(X.shape[1])}))


def write_table(path: Path, columns: Mapping[str, Array]) -> None:
    """Write columns to a ``.csv`` or ``.parquet`` file, whole or not at all."""
    import pandas as pd  # noqa: PLC0415  # slow to load

    kind, engine = _format(path), duckdb()
    frame = pd.DataFrame(columns)  # noqa: F841  # read by the query
    with whole_file(path) as part, connected() as database:
        try:
            database.execute(f"COPY (SELECT * FROM frame) TO {literal(part)} (FORMAT {kind})")
        except engine.Error as error:
            raise InputError(f"{path} cannot be written ({said(error)})") from None


def join_tables(path: Path, parts: list[str]) -> None:
    """Write Parquet files with the same columns as one, whole or not at all."""
    engine = duckdb()
    with whole_file(path) as part, connected() as database:
        try:
            query = f"COPY (SELECT * FROM read_parquet(?, union_by_name = true)) TO {literal(part)} (FORMAT parquet)"
            database.execute(query, [[glob.escape(each) for each in parts]])
        except engine.Error as error:
            raise InputError(f"{path} cannot be written ({said(error)})") from None


def _wanted(path: Path, given: list[str]) -> tuple[list[str], list[str]]:
    """The columns to read of those there are, and which of them are examples."""
    missing = [name for name in REQUIRED if name not in given]
    if missing:
        raise InputError(f"{path} has no column {missing[0]!r}; {', '.join(REQUIRED)} are expected")
    if "margin" in given:
        return [*REQUIRED, "margin"], []
    examples = sorted((name for name in given if re.fullmatch(r"x\d+", name)), key=lambda name: int(name[1:]))
    if not examples:
        raise InputError(f"{path} has neither a column 'margin' nor columns x0, x1, …; one of them is expected")
    return [*REQUIRED, *examples], examples


def _format(path: Path) -> str:
    kind = _FORMATS.get(path.suffix.lower())
    if kind is None:
        raise InputError(f"{path} ends in {path.suffix!r}; .csv or .parquet is expected")
    return kind
