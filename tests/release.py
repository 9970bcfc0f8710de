"""Can this be released? `make release-check` says so, in sentences.

The source archive is built, and the wheel from it; both are looked through, and the wheel is installed and played with
in an environment of its own for every Python that is supported and found: on PATH, or among those of pyenv.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PYTHONS = ("3.11", "3.12", "3.13")
PAGE = "src/fliptron/service/page"
SOURCES = ("CHANGELOG.md", "CITATION.cff", "LICENSE", "README.md", "pyproject.toml", "tests/played.py")
_INSTALL = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")


def versions(root: Path) -> dict[str, tuple[str, ...]]:
    """What each file says of this version: its number and, where it has one, the date."""
    says = {
        "src/fliptron/__init__.py": r'^__version__ = "(.+)"',
        "CITATION.cff": r"^version: (.+)\ndate-released: (.+)",
        "CHANGELOG.md": r"^## (\S+) \((\S+)\)",
    }
    found = {}
    for name, pattern in says.items():
        match = re.search(pattern, (root / name).read_text("utf-8"), re.MULTILINE)
        found[name] = match.groups() if match else ("nothing",)
    return found


def disagreements(root: Path) -> Iterator[str]:
    """Where the files do not say the same, or not what a release says."""
    found = versions(root)
    (number,) = found["src/fliptron/__init__.py"]
    if not re.fullmatch(r"\d+\.\d+\.\d+", number):
        yield f"the version is {number}; three numbers are expected of a release"
    for name in ("CITATION.cff", "CHANGELOG.md"):
        if found[name][0] != number:
            yield f"{name} says version {found[name][0]}, and the package {number}"
    if found["CITATION.cff"][1:] != found["CHANGELOG.md"][1:]:
        yield f"CITATION.cff is of {found['CITATION.cff'][1:]}, and CHANGELOG.md of {found['CHANGELOG.md'][1:]}"
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    told = [each.rpartition(" ")[2] for each in project["classifiers"] if " :: 3." in each]
    if "version" not in project["dynamic"] or told != list(PYTHONS):
        yield f"pyproject.toml has a version of its own, or is not for Python {', '.join(PYTHONS)}"


def wheel_flaws(names: Iterable[str], page: Iterable[str]) -> Iterator[str]:
    """What is in a wheel and should not be, and the other way round."""
    there = set(names)
    wanted = {"fliptron/__init__.py", "fliptron/py.typed", *(f"fliptron/service/page/{each}" for each in page)}
    yield from (f"{name} is not in the wheel" for name in sorted(wanted - there))
    for name in sorted(there - wanted):
        ours = name.startswith("fliptron/") and name.endswith(".py")
        if not ours and not re.match(r"fliptron-[^/]+\.dist-info/", name):
            yield f"{name} is in the wheel; only the package is expected"


def source_flaws(names: Iterable[str]) -> Iterator[str]:
    """The same for a source archive, whose paths begin with its own name."""
    there = {name.partition("/")[2] for name in names}
    yield from (f"{name} is not in the source archive" for name in SOURCES if name not in there)
    for name in sorted(there):
        if name.split("/")[0] in (".git", ".venv", "out"):
            yield f"{name} is in the source archive"


def pythons() -> Iterator[tuple[str, str | None]]:
    """Each Python that is supported, and the program, if it is here."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for version in PYTHONS:
        candidates = [shutil.which(f"python{version}"), *pyenv.glob(f"{version}.*/bin/python")]
        yield version, next((str(each) for each in candidates if each and _is(str(each), version)), None)


def _is(program: str, version: str) -> bool:
    """Whether it runs, and is what it is called: what pyenv puts on PATH may be neither."""
    code = "import sys, venv; print('%d.%d' % sys.version_info[:2])"
    done = subprocess.run([program, "-c", code], capture_output=True, text=True, check=False)
    return done.returncode == 0 and done.stdout.strip() == version


def _run(*command: object) -> str:
    done = subprocess.run(list(map(str, command)), cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{done.stdout}{done.stderr}\nThis went wrong: {' '.join(map(str, command))}")
    return done.stdout.strip()


def _say(sentence: str) -> None:
    sys.stdout.write(f"{sentence}\n")
    sys.stdout.flush()


def main() -> None:
    """Build, look, install and play."""
    out = ROOT / "out/release"
    shutil.rmtree(out, ignore_errors=True)
    _run(sys.executable, "-m", "venv", out / "tools")
    tools = out / "tools/bin/python"
    _run(tools, *_INSTALL, "build", "twine")
    _run(tools, "-m", "build", "--outdir", out / "dist", ROOT)
    (wheel,), (archive,) = (out / "dist").glob("*.whl"), (out / "dist").glob("*.tar.gz")
    page = [str(path.relative_to(ROOT / PAGE)) for path in (ROOT / PAGE).rglob("*") if path.is_file()]
    ((number,), *_) = versions(ROOT).values()
    flaws = list(disagreements(ROOT))
    flaws += [f"{each.name} is not of version {number}" for each in (wheel, archive) if f"-{number}" not in each.name]
    with zipfile.ZipFile(wheel) as packed:
        flaws += wheel_flaws(packed.namelist(), page)
    with tarfile.open(archive) as packed_source:
        flaws += source_flaws(each.name for each in packed_source.getmembers() if each.isfile())
    for flaw in flaws:
        _say(f"Not yet: {flaw}.")
    if flaws:
        raise SystemExit(1)
    _say(f"All files say {number}. {wheel.name} ({wheel.stat().st_size / 1e6:.1f} MB) holds the package and no more.")
    _run(tools, "-m", "twine", "check", "--strict", wheel, archive)
    _say("The metadata of both archives is in order.")
    missing = []
    for version, program in pythons():
        if program is None:
            missing.append(version)
            continue
        _run(program, "-m", "venv", out / version)
        python = out / version / "bin/python"
        _run(python, *_INSTALL, "-c", ROOT / "constraints.txt", wheel)
        _say(f"Python {version}: {_run(python, '-I', ROOT / 'tests/played.py')}.")
    for version in missing:
        _say(f"Python {version}: not found here, so not tried.")
    if len(missing) == len(PYTHONS):
        raise SystemExit("Not yet: the wheel was tried on no Python.")
    _say(f"Fit to be released: {out / 'dist'}")


if __name__ == "__main__":
    main()
