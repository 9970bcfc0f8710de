"""The store of results: Parquet parts in a folder, one row a run, read with SQL."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd

from fliptron.arrays import InputError
from fliptron.output import make_folder, whole_file

_TYPES = {
    "id": "VARCHAR",
    "dataset": "VARCHAR",
    "rho0": "DOUBLE",
    "rho1": "DOUBLE",
    "stream": "VARCHAR",
    "learner": "VARCHAR",
    "params": "VARCHAR",  # JSON
    "rounds": "BIGINT",
    "seed": "BIGINT",
    "error": "DOUBLE",
    "greedy_error": "DOUBLE",
    "mean_bit": "DOUBLE",
    "rho0_hat": "DOUBLE",
    "rho1_hat": "DOUBLE",
    "verdict": "VARCHAR",
    "seconds": "DOUBLE",
    "checkpoints": "BIGINT[]",
    "mistakes": "BIGINT[]",
    "greedy_mistakes": "BIGINT[]",
    "data_sha256": "VARCHAR",
    "version": "VARCHAR",
    "failure": "VARCHAR",  # what went wrong; empty for a run that finished
}
_RUNS = """
CREATE VIEW parts AS SELECT * FROM read_parquet(?, union_by_name = true);
CREATE VIEW runs AS SELECT * EXCLUDE failure FROM parts WHERE failure IS NULL
    QUALIFY row_number() OVER (PARTITION BY id) = 1;
CREATE VIEW failures AS SELECT * FROM parts WHERE failure IS NOT NULL AND id NOT IN (SELECT id FROM runs)
    QUALIFY row_number() OVER (PARTITION BY id) = 1;
CREATE VIEW curves AS SELECT * EXCLUDE (wrong, greedy_wrong),
    wrong / rounds AS error, greedy_wrong / rounds AS greedy_error
    FROM (SELECT * EXCLUDE (checkpoints, mistakes, greedy_mistakes, rounds, error, greedy_error),
        unnest(checkpoints) AS rounds, unnest(mistakes) AS wrong, unnest(greedy_mistakes) AS greedy_wrong FROM runs);
"""
_MANY = 50
_EMPTY = ", ".join(f"NULL::{kind} AS {name}" for name, kind in _TYPES.items())


class Results:
    """What runs have left in a folder. A part is written whole or not at all, by one process.

    SQL sees three tables: `runs`, one row a finished run; `curves`, one row a run and checkpoint; `failures`.

    >>> Results("nowhere").sql("SELECT count(*) AS n FROM runs").n[0]
    np.int64(0)
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def append(self, rows: list[dict[str, Any]]) -> None:
        """Keep the rows of some runs as one more part."""
        frame = pd.DataFrame({name: [row.get(name) for row in rows] for name in _TYPES})  # noqa: F841  # found by name
        columns = ", ".join(f"CAST({name} AS {kind}) AS {name}" for name, kind in _TYPES.items())
        path = make_folder(self.folder) / f"{rows[0]['id']}-{uuid.uuid4().hex[:8]}.parquet"
        with whole_file(path) as part, duckdb.connect() as database:
            target = str(part).replace("'", "''")
            database.execute(f"COPY (SELECT {columns} FROM frame) TO '{target}' (FORMAT parquet)")

    def compact(self) -> None:
        """Merge many parts into one: first written whole, then the old ones removed. A row kept twice counts once."""
        parts = sorted(self.folder.glob("*.parquet"))
        if len(parts) < _MANY:
            return
        with whole_file(self.folder / f"merged-{uuid.uuid4().hex[:8]}.parquet") as merged, duckdb.connect() as database:
            target = str(merged).replace("'", "''")
            database.execute(f"COPY (SELECT * FROM read_parquet({_listed(parts)})) TO '{target}' (FORMAT parquet)")
        for part in parts:
            part.unlink()

    def sql(self, query: str) -> pd.DataFrame:
        """The answer to a query over `runs`, `curves` and `failures`."""
        parts = sorted(self.folder.glob("*.parquet"))
        with duckdb.connect() as database:
            try:
                self._views(database, parts)
                answer = database.execute(query)
                if answer.description is None:
                    raise InputError("this query has no answer; a SELECT is expected")
                return answer.df()
            except duckdb.Error as error:
                raise InputError(f"this query cannot be answered: {str(error).splitlines()[0]}") from None

    def load(self) -> pd.DataFrame:
        """Every finished run, tidy: one row a run."""
        return self.sql("SELECT * FROM runs ORDER BY dataset, rho0, rho1, learner, params, seed")

    def done(self) -> set[str]:
        """Ids of the runs that have finished."""
        return set(self.sql("SELECT id FROM runs")["id"])

    @staticmethod
    def _views(database: duckdb.DuckDBPyConnection, parts: list[Path]) -> None:
        if parts:
            text = _RUNS.replace("read_parquet(?", f"read_parquet({_listed(parts)}")
        else:
            text = _RUNS.replace("SELECT * FROM read_parquet(?, union_by_name = true)", f"SELECT {_EMPTY} LIMIT 0")
        for statement in text.strip().split(";\n"):
            database.execute(statement)


def _listed(parts: list[Path]) -> str:
    """Paths as a list in SQL."""
    return "[" + ", ".join("'" + str(part).replace("'", "''") + "'" for part in parts) + "]"
