"""What `make release-check` would find; the building and installing it does itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import release

FILES = ("src/fliptron/__init__.py", "CITATION.cff", "CHANGELOG.md", "pyproject.toml")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text((release.ROOT / name).read_text())
    return tmp_path


def test_all_files_say_one_version_and_date() -> None:
    assert list(release.disagreements(release.ROOT)) == []


@pytest.mark.parametrize(
    ("name", "old", "new", "told"),
    [
        ("CITATION.cff", "\nversion: ", "\nversion: 9.", "CITATION.cff says version 9."),
        ("CITATION.cff", "date-released: ", "date-released: 1", "CITATION.cff is of ('12"),
        ("CHANGELOG.md", "## ", "## 9.", "CHANGELOG.md says version 9."),
        ("CHANGELOG.md", "\n## ", "\n# ", "CHANGELOG.md says version "),
        ("src/fliptron/__init__.py", '__version__ = "', '__version__ = "dev', "the version is dev"),
        ("pyproject.toml", "Python :: 3.13", "Python :: 3.14", "pyproject.toml has a version of its own, or is not"),
    ],
)
def test_what_does_not_agree_is_said(copy: Path, name: str, old: str, new: str, told: str) -> None:
    path = copy / name
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new, 1))
    assert next(release.disagreements(copy)).startswith(told)


GOOD = ["fliptron/__init__.py", "fliptron/py.typed", "fliptron/service/page/page.js", "fliptron-1.dist-info/METADATA"]


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (GOOD, []),
        (GOOD[:1] + GOOD[2:], ["fliptron/py.typed is not in the wheel"]),
        (GOOD[:2] + GOOD[3:], ["fliptron/service/page/page.js is not in the wheel"]),
        ([*GOOD, "tests/played.py"], ["tests/played.py is in the wheel; only the package is expected"]),
        ([*GOOD, "fliptron/mnist.npz"], ["fliptron/mnist.npz is in the wheel; only the package is expected"]),
    ],
)
def test_a_wheel_holds_the_package_and_no_more(names: Any, told: Any) -> None:
    assert list(release.wheel_flaws(names, ["page.js"])) == told


def test_a_source_archive_can_be_built_and_tested() -> None:
    good = [f"fliptron-1/{name}" for name in release.SOURCES]
    assert list(release.source_flaws(good)) == []
    assert list(release.source_flaws([*good[1:], "fliptron-1/out/x"])) == [
        "CHANGELOG.md is not in the source archive",
        "out/x is in the source archive",
    ]


def test_a_python_that_is_not_here_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    shim = tmp_path / "python3.12"  # as pyenv has it for a version that is not switched on
    shim.write_text("#!/bin/sh\nexit 127\n")
    shim.chmod(0o755)
    assert dict(release.pythons()) == {"3.11": None, "3.12": None, "3.13": None}
