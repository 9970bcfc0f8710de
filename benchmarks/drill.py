"""Does a reproduction that is killed again and again end as one that was left alone?

python benchmarks/drill.py [kills] [seconds between them, at most]

The reproduction of scale smoke is started, killed with SIGKILL at random moments, started again, at last left alone.
Its runs and tables must equal those of one that nobody killed.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd

from fliptron.results import Results

_BESIDE = ["seconds"]  # all that two runs may differ in
_ALONE = ("cost.csv", "made.csv")  # tables of what it cost, and by which command
_COMMAND = [sys.executable, "-m", "fliptron", "reproduce", "--scale", "smoke"]


def main(kills: int, most: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        alone, killed = Path(folder) / "alone", Path(folder) / "killed"
        _reproduce(alone).wait()
        lost = random.Random(1)
        for _ in range(kills):
            process = _reproduce(killed)
            time.sleep(lost.uniform(1.0, most))
            over = process.poll() is not None
            process.kill()
            process.wait()
            there = len(Results(killed / "results").done())
            print(f"killed with {there} runs kept" if not over else f"over, with {there} runs")
        if _reproduce(killed).wait():
            raise SystemExit("the last start failed")
        runs = [Results(each / "results").load().sort_values("id", ignore_index=True) for each in (alone, killed)]
        pd.testing.assert_frame_equal(*(each.drop(columns=_BESIDE) for each in runs))
        for path in sorted((alone / "tables").glob("*.csv")):
            same = path.name in _ALONE or path.read_bytes() == (killed / "tables" / path.name).read_bytes()
            if not same:
                raise SystemExit(f"{path.name} differs")
        print(f"{len(runs[0])} runs and all tables are equal after {kills} kills")


def _reproduce(folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([*_COMMAND, "--out", str(folder)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 6, float(sys.argv[2]) if len(sys.argv) > 2 else 12.0)
