"""Short forms of the drills: `make crash` has the long ones."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

DRILLS = Path(__file__).parents[1] / "benchmarks"


@pytest.mark.parametrize(("drill", "times"), [("crash.py", 3), ("powercut.py", 100)])
def test_nothing_that_was_acknowledged_is_lost(drill: Any, times: Any) -> None:
    command = [sys.executable, str(DRILLS / drill), str(times)]
    told = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=dict(os.environ))
    assert told.returncode == 0, told.stdout + told.stderr
    assert " 0 lost" in told.stdout or " 0 disks lost" in told.stdout


def test_a_short_soak_makes_no_error() -> None:
    command = [sys.executable, str(DRILLS / "soak.py"), "0.08", "100"]
    told = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=dict(os.environ))
    assert told.returncode == 0, told.stdout + told.stderr
    assert "| errors | 0 |" in told.stdout
    assert int(told.stdout.partition("| requests | ")[2].split()[0].replace(",", "")) > 50
