"""Memory and speed of reading logs that do not fit in memory: `estimate` and `learn`, from 10⁶ rows on.

    python benchmarks/memory.py 1e6 1e7 1e8

Each is a process of its own, whose peak is what the system says it was. The logs are made in `out/memory`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

FOLDER = Path("out/memory")
_MAKE = """
SELECT chr(97 + (hash(i) % 6)::INT) AS label, chr(97 + (hash(i + 1) % 6)::INT) AS greedy, 0.2::FLOAT AS probability,
    (hash(i + 2) % 3 = 0)::TINYINT AS bit, ((hash(i + 3) % 1000) / 1000)::FLOAT AS margin,
    ((hash(i + 4) % 1000) / 10)::FLOAT AS age, 'city ' || (hash(i + 5) % 8) AS city
FROM range({rows}) AS rows(i)
"""
_TRY = """
import json, resource, sys, time
from fliptron import LeastMeanSquares, Log, audit, learn_log
began = time.perf_counter()
log = Log(sys.argv[1], features=["age", "city"])
audit(log) if sys.argv[2] == "estimate" else learn_log(log, LeastMeanSquares)
print(json.dumps([time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))
"""


def made(rows: int) -> Path:
    import duckdb

    path = FOLDER / f"{rows}.parquet"
    if not path.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        duckdb.sql(f"COPY ({_MAKE.format(rows=rows)}) TO '{path}' (FORMAT parquet)")
    return path


def main() -> None:
    print(f"{'rows':>12} {'what':>9} {'seconds':>9} {'M rows/s':>9} {'peak MiB':>9}")
    for rows in [int(float(each)) for each in sys.argv[1:]] or [10**6, 10**7]:
        for what in ("estimate", "learn"):
            command = [sys.executable, "-c", _TRY, str(made(rows)), what]
            seconds, peak = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            print(f"{rows:>12,} {what:>9} {seconds:>9.1f} {rows / seconds / 1e6:>9.2f} {peak:>9.0f}", flush=True)


if __name__ == "__main__":
    main()
