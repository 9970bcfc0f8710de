"""Tables of rounds in files, CSV or Parquet: what an operator has, and what a simulation writes."""

from __future__ import annotations

import glob
import os
import re
from pathlib import Path
from typing import Any

import numpy as np

from fliptron.output import whole_file
from fliptron.refusals import InputError, missing
from fliptron.rounds import Rounds

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
    duckdb = _duckdb()
    path = Path(path)
    kind = _format(path)
    if not path.is_file():
        raise InputError(f"{path} {'is not a file' if path.exists() else 'does not exist'}")
    # The whole file tells a column's type, and a * in its name is only a *.
    source = f"read_{kind}(?{', sample_size = -1' if kind == 'csv' else ''})"
    try:
        with duckdb.connect() as database:
            given = database.execute(f"SELECT * FROM {source} LIMIT 0", [glob.escape(str(path))]).fetchnumpy()
            wanted, examples = _wanted(path, list(given))
            names = ", ".join(f'"{name}"' for name in wanted)
            columns = database.execute(f"SELECT {names} FROM {source}", [glob.escape(str(path))]).fetchnumpy()
    except duckdb.Error as error:
        raise InputError(f"{path} cannot be read as {kind} ({str(error).splitlines()[0]})") from None
    if columns["bit"].size == 0:
        raise InputError(f"{path} holds no rounds; at least one is expected")
    for name in wanted:
        if np.ma.is_masked(columns[name]):
            raise InputError(f"{path}: column {name!r} has empty cells; every round needs a value")
        if columns[name].dtype.kind not in "biuf":
            raise InputError(f"{path}: column {name!r} holds something that is not a number")
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
    duckdb = _duckdb()
    path = Path(path)
    kind = _format(path)
    columns = rounds.columns()
    X = columns.pop("X", None)
    columns |= {} if X is None else {f"x{j}": X[:, j] for j in range(X.shape[1])}
    with whole_file(path) as part, duckdb.connect() as database:
        target = str(part).replace("'", "''")
        try:
            database.execute(f"COPY (SELECT * FROM columns) TO '{target}' (FORMAT {kind})")
        except duckdb.Error as error:
            raise InputError(f"{path} cannot be written ({str(error).splitlines()[0]})") from None


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


def _duckdb() -> Any:
    try:
        import duckdb  # noqa: PLC0415  # slow to load
    except ImportError:
        raise missing("DuckDB, which reads and writes tables,", "lab") from None
    return duckdb


def _format(path: Path) -> str:
    kind = _FORMATS.get(path.suffix.lower())
    if kind is None:
        raise InputError(f"{path} ends in {path.suffix!r}; .csv or .parquet is expected")
    return kind
