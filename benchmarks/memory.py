"""Memory and speed of reading logs that do not fit in memory: benchmarks/results/memory.md.

    python benchmarks/memory.py 1e7 1e8
    python benchmarks/memory.py 1e6 Fliptron

`estimate`, and `learn` of LeastMeanSquares or of a learner that is named, each run in a process of their own, whose
peak is what the system says it was. The logs are made in `out/memory`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tabular import save, table

FOLDER = Path("out/memory")
RESULT = Path(__file__).parent / "results/memory.md"
_MAKE = """
SELECT chr(97 + (hash(i) % 6)::INT) AS label, chr(97 + (hash(i + 1) % 6)::INT) AS greedy, 0.2::FLOAT AS probability,
    (hash(i + 2) % 3 = 0)::TINYINT AS bit, ((hash(i + 3) % 1000) / 1000)::FLOAT AS margin,
    ((hash(i + 4) % 1000) / 10)::FLOAT AS age, 'city ' || (hash(i + 5) % 8) AS city
FROM range({rows}) AS rows(i)
"""
_TRY = """
import json, resource, sys, time
import fliptron
from fliptron import Log, audit, learn_log
began = time.perf_counter()
log = Log(sys.argv[1], features=["age", "city"])
audit(log) if sys.argv[2] == "estimate" else learn_log(log, getattr(fliptron, sys.argv[3]))
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
    learner = next((each for each in sys.argv[1:] if not each[0].isdigit()), "LeastMeanSquares")
    sizes = [int(float(each)) for each in sys.argv[1:] if each != learner] or [10**6, 10**7]
    rows = []
    for size in sizes:
        for what in ("estimate", "learn"):
            command = [sys.executable, "-c", _TRY, str(made(size)), what, learner]
            seconds, peak = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            rows.append([f"{size:,}", what, f"{seconds:.1f}", f"{size / seconds / 1e6:.2f}", f"{peak:.0f}"])
            print(*rows[-1], flush=True)
    text = f"""# Logs larger than memory

A log of six labels with margins, a number and a word per row, read from Parquet in batches. `learn` is of
{learner}. Made by `python benchmarks/memory.py {" ".join(sys.argv[1:])}`.

{table(["rows", "what", "seconds", "million rows per second", "peak in MiB"], rows)}"""
    print(save(RESULT, text))


if __name__ == "__main__":
    main()
