"""Tables and logs as other programs write them: time zones, long numbers, commas, parts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from fliptron import Log
from fliptron.cli.group import commands as main


def rounds(n: int = 8) -> list[dict[str, Any]]:
    return [
        {"age": 20 + 7 * i % 11, "shown": ("hats", "bags")[i % 2], "propensity": 0.5, "clicked": i % 3 % 2}
        for i in range(n)
    ]


def written(path: Path, rows: Any, sep: str = ",", **options: Any) -> Path:
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif path.suffix == ".parquet":
        duckdb.read_csv(str(written(path.with_suffix(".tmp"), rows, sep))).write_parquet(str(path))
    else:
        pd.DataFrame(rows).to_csv(path, index=False, sep=sep, **options)
    return path


def refusal(*arguments: Any, given: str | None = None) -> str:
    result = CliRunner().invoke(main, [str(each) for each in arguments], input=given)
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output
    return result.stderr


class TestTimeZones:
    @pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet"])
    @pytest.mark.parametrize("zone", ["Z", "+02:00"])
    def test_a_moment_is_one_wherever_its_clock_hangs(self, tmp_path: Path, name: str, zone: str) -> None:
        when = [f"2026-01-01T{10 + i}:00:00{zone}" for i in range(8)]
        rows = [{"when": moment} | row for moment, row in zip(when, rounds(), strict=True)]
        log = Log(written(tmp_path / name, rows), time="when", features=["age"])
        assert next(log.batches()).rounds.bit.tolist() == [row["clicked"] for row in rows]
        log = Log(tmp_path / name)
        column = next(log.batches()).records.columns["when"]
        first = np.datetime64("2026-01-01T10:00:00" if zone == "Z" else "2026-01-01T08:00:00")
        assert column[0] == first
        assert log.schema is not None
        assert log.schema.kinds["when"] == "clock"


def test_labels_of_thirty_digits_are_told_apart(tmp_path: Path) -> None:
    rows = [row | {"shown": 10**30 + i % 2} for i, row in enumerate(rounds())]
    log = Log(written(tmp_path / "a.csv", rows))
    assert log.labels == (str(10**30), str(10**30 + 1))
    assert next(log.batches()).rounds.label.tolist() == [0, 1] * 4
