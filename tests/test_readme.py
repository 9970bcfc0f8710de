"""The README's Python runs, and says what it prints; the site's front page says the same."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

README = Path(__file__).parents[1] / "README.md"
INDEX = README.parent / "docs" / "index.md"


def test_the_readmes_python_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    simulated, served = re.findall(r"```python\n(.*?)```", README.read_text(), re.S)
    names: dict[str, Any] = {}
    exec(simulated, names)
    promised = re.search(r"print\(trace.error\) +# ([0-9.]+)", simulated).group(1)
    printed, estimate = capsys.readouterr().out.splitlines()
    assert f"{float(printed):.3f}" == promised
    rates = re.search(r"rho0 .*, rho1 [^]]*]", estimate).group()
    assert rates in simulated
    assert f"# {promised}, " in INDEX.read_text()
    assert rates in INDEX.read_text()
    exec(served, names)
    assert names["choice"].label in ("hats", "shoes")
