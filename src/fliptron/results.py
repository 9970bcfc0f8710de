"""The store of results: Parquet parts in a folder, one row per run, read with SQL."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

import numpy as np

from fliptron.arrays import Array
from fliptron.output import make_folder, whole_file
from fliptron.refusals import InputError, missing
from fliptron.tables import connected, literal, said

try:
    import duckdb
    import pandas as pd
except ImportError as error:
    raise missing(f"{error.name}, which results are kept with,", "lab") from None

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_MARK = "runs, format 2"
_OLD = {"id", "learner", "greedy_error", "data_sha256"}  # what the runs of version 0.1 are known by: they have no mark
_MANY = 50
_ASK = (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN)


@dataclass(frozen=True, slots=True)
class Run:
    """One run and what came of it. Its fields are the columns of the store."""

    id: str
    """What the run is known by; see `Spec.id`."""
    dataset: str
    """The name of the data set, or the path of a file."""
    rho0: float
    """P(bit 1 | wrong label), the true rate."""
    rho1: float
    """P(bit 0 | right label), the true rate."""
    stream: str
    """The order of rows: "resample", "shuffle" or "file"."""
    learner: str
    """The name of the learner."""
    params: dict[str, Any]
    """Every parameter that was in effect, defaults too. In SQL it is a JSON object: ``params->>'gamma'``."""
    rounds: int
    """How many rounds were played."""
    seed: int
    """The seed of rows, flips and learner."""
    code: str
    """A digest of the code that played it."""
    version: str
    """The version of Fliptron."""
    options: dict[str, Any] = field(default_factory=dict)
    """How the data was read: raw, dtype, rows."""
    error: float | None = None
    """The share of rounds whose played label was wrong."""
    greedy_error: float | None = None
    """The share of rounds whose greedy label was wrong."""
    mean_bit: float | None = None
    """The share of bits that were 1."""
    rho0_hat: float | None = None
    """The learner's last estimate of ρ0 that was identified, at least weakly."""
    rho1_hat: float | None = None
    """The same for ρ1."""
    intervals: dict[str, Any] = field(default_factory=dict)
    """95 % intervals of the last estimate, by name."""
    verdict: str | None = None
    """The verdict of the last estimate."""
    seconds: float | None = None
    """How long it took."""
    checkpoints: list[int] = field(default_factory=list)
    """The rounds at which mistakes were counted."""
    mistakes: list[int] = field(default_factory=list)
    """Wrong played labels up to each checkpoint."""
    greedy_mistakes: list[int] = field(default_factory=list)
    """Wrong greedy labels up to each checkpoint."""
    details: dict[str, Any] = field(default_factory=dict)
    """What else a study measured."""
    data_sha256: str | None = None
    """The checksum of the data."""
    failure: str | None = None
    """What went wrong; None for a run that finished."""

    @property
    def errors(self) -> Array:
        """Error of the played label up to each checkpoint."""
        return np.asarray(np.array(self.mistakes) / np.array(self.checkpoints))

    @property
    def greedy_errors(self) -> Array:
        """Error of the greedy label up to each checkpoint."""
        return np.asarray(np.array(self.greedy_mistakes) / np.array(self.checkpoints))


_KINDS = {
    "str": "VARCHAR",
    "float": "DOUBLE",
    "int": "BIGINT",
    "list[int]": "BIGINT[]",
    "dict[str, typing.Any]": "JSON",
}
_HINTS = {
    name: str(hint).removesuffix(" | None").removeprefix("<class '").removesuffix("'>")
    for name, hint in get_type_hints(Run).items()
}
SCHEMA = {each.name: _KINDS[_HINTS[each.name]] for each in fields(Run)}
"""SQL types of the columns."""
_JSON = [name for name, kind in SCHEMA.items() if kind == "JSON"]
_VIEWS = """
CREATE VIEW runs AS SELECT * EXCLUDE failure FROM parts WHERE failure IS NULL
    QUALIFY row_number() OVER (PARTITION BY id) = 1;
CREATE VIEW failures AS SELECT * FROM parts WHERE failure IS NOT NULL AND id NOT IN (SELECT id FROM runs)
    QUALIFY row_number() OVER (PARTITION BY id) = 1;
CREATE VIEW curves AS SELECT * EXCLUDE (wrong, greedy_wrong),
    wrong / rounds AS error, greedy_wrong / rounds AS greedy_error
    FROM (SELECT * EXCLUDE (checkpoints, mistakes, greedy_mistakes, rounds, error, greedy_error),
        unnest(checkpoints) AS rounds, unnest(mistakes) AS wrong, unnest(greedy_mistakes) AS greedy_wrong FROM runs);
SET enable_external_access = false;
SET lock_configuration = true;
"""


class Results:
    """What runs have left in a folder. A part is written whole or not at all; one process at a time plays into it.

    SQL sees three tables: `runs`, one row per finished run; `curves`, one row per run and checkpoint; `failures`. It
    can change nothing, and reads no other file. Parts that are damaged, and Parquet files that are not ours, are left
    alone and listed in `ignored`; runs lost with a damaged part are played again.

    >>> Results("nowhere").sql("SELECT count(*) AS n FROM runs").n[0]
    np.int64(0)
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def append(self, runs: Sequence[Run]) -> None:
        """Keep some runs as one more part."""
        rows = [asdict(run) for run in runs]
        for row in rows:
            row |= {name: json.dumps(row[name], sort_keys=True) for name in _JSON}
        frame = pd.DataFrame({name: [row[name] for row in rows] for name in SCHEMA})
        columns = ", ".join(f"CAST({name} AS {kind}) AS {name}" for name, kind in SCHEMA.items())
        with connected() as database:
            database.register("given", frame)
            self._write(database, f"SELECT {columns} FROM given", f"{runs[0].id}-{uuid.uuid4().hex[:8]}")

    def compact(self) -> None:
        """Merge many parts into one. The old ones are removed once it is written; a run kept twice counts once."""
        parts, _ = self._parts()
        if len(parts) < _MANY:
            return
        with connected() as database:
            self._write(database, f"SELECT * FROM read_parquet({_listed(parts)})", f"merged-{uuid.uuid4().hex[:8]}")
        for part in parts:
            part.unlink()

    def sql(self, query: str) -> pd.DataFrame:
        """The answer to a query over `runs`, `curves` and `failures`."""
        if not query.strip():
            raise InputError("the query is empty; a SELECT is expected")
        with connected() as database:
            self._read(database)
            try:
                asked = database.extract_statements(query)
                if any(each.type not in _ASK for each in asked):
                    raise InputError("this query asks nothing; a SELECT is expected")
                if len(asked) > 1:
                    raise InputError(f"the query is {len(asked)} queries; one SELECT is expected")
                answer = database.execute(query)
                if answer is None or answer.description is None:
                    raise InputError("this query has no answer; a SELECT is expected")
                return answer.df()
            except duckdb.Error as error:
                raise InputError(f"this query cannot be answered: {said(error)}") from None

    def load(self) -> pd.DataFrame:
        """Every finished run as a data frame, one row per run."""
        return self.sql("SELECT * FROM runs ORDER BY dataset, rho0, rho1, learner, params, seed")

    def runs(self, ids: Sequence[str]) -> list[Run]:
        """Runs by id, in the order asked for; those that are not there are left out."""
        frame = self.load().set_index("id")
        found = []
        for each in ids:
            if each in frame.index:
                row = {name: _plain(value) for name, value in frame.loc[each].items()} | {"id": each}
                found.append(Run(**row | {name: json.loads(row[name]) for name in _JSON}))
        return found

    def done(self) -> set[str]:
        """Ids of the runs that have finished."""
        return set(self.sql("SELECT id FROM runs")["id"])

    @property
    def ignored(self) -> list[str]:
        """Parquet files in the folder that are damaged or not ours, each with the reason."""
        return self._parts()[1]

    @contextmanager
    def driven(self) -> Iterator[None]:
        """Hold the folder for one process that plays into it; another is refused."""
        path = make_folder(self.folder) / ".driver"
        try:
            import fcntl  # noqa: PLC0415  # not on every system
        except ImportError:
            yield
            return
        with path.open("a+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                file.seek(0)
                raise InputError(f"process {file.read().strip() or '?'} is playing into {self.folder}") from None
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
            for left in self.folder.glob(".*.parquet.*.part"):  # by one that was killed: who plays is alone here
                left.unlink(missing_ok=True)
            yield

    def _read(self, database: DuckDBPyConnection) -> None:
        """Everything into memory, and then the doors are closed."""
        for attempt in range(20):  # another process may merge parts while they are being read
            parts, _ = self._parts()
            columns = ", ".join(f"NULL::{kind} AS {name}" for name, kind in SCHEMA.items())
            source = f"SELECT * FROM read_parquet({_listed(parts)})" if parts else f"SELECT {columns} LIMIT 0"
            try:
                database.execute(f"CREATE TABLE parts AS {source}")
                break
            except duckdb.Error as error:
                why = said(error)
                if attempt == 19:
                    raise InputError(f"{self.folder} cannot be read ({why})") from None
        database.execute(_VIEWS)

    def _parts(self) -> tuple[list[Path], list[str]]:
        good, bad = [], []
        for path in sorted(self.folder.glob("*.parquet")):
            try:
                about = path.stat()
            except OSError:
                continue
            flaw = _flaw(path, about.st_size, about.st_mtime_ns)
            if flaw:
                bad.append(f"{path.name} {flaw}")
            else:
                good.append(path)
        return good, bad

    def _write(self, database: DuckDBPyConnection, query: str, name: str) -> None:
        path = make_folder(self.folder) / f"{name}.parquet"
        with whole_file(path) as part:
            options = f"FORMAT parquet, KV_METADATA {{fliptron: '{_MARK}'}}"
            try:
                database.execute(f"COPY ({query}) TO {literal(part)} ({options})")
            except duckdb.Error as error:
                raise InputError(f"{path} cannot be written ({said(error)})") from None


@lru_cache(maxsize=4096)
def _flaw(path: Path, size: int, changed: int) -> str:
    """What is wrong with a part of this size and time; nothing for one of ours that is whole."""
    try:
        with connected() as database:
            found = database.execute(
                f"SELECT decode(value) FROM parquet_kv_metadata({literal(path)}) WHERE decode(key) = 'fliptron'"
            ).fetchall()
            if found != [(_MARK,)]:
                columns = database.execute(f"SELECT * FROM read_parquet({literal(path)}) LIMIT 0").df().columns
                ours = bool(found) or set(columns) >= _OLD
                return "holds runs of another version, which are to be played again" if ours else "does not hold runs"
            database.execute(f"SELECT count(id), count(failure) FROM read_parquet({literal(path)})").fetchall()
    except duckdb.Error:
        return "is damaged"
    return ""


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and np.isnan(value) else value


def _listed(parts: list[Path]) -> str:
    """Paths as a list in SQL."""
    return "[" + ", ".join(map(literal, parts)) + "]"
