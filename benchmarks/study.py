"""How a study goes from its plan to its table.

    python benchmarks/study.py              # which studies there are
    python benchmarks/study.py drift        # play what is missing of one, and write its table

A study is a module in `benchmarks/studies`. Its first line says what is asked. It has

- `specs(runs)`: the runs that are wanted, given those that are there. It is asked again after they have been played,
  until it wants no more: settings are chosen from some runs, and others then go by them;
- `write(runs, docs)`: tables and pictures from all of its runs, into a folder; their paths;
- `play_one(spec)`, where a run is not a plain one. Its id then also depends on what this function is made from.

Runs are kept in `out/studies/NAME`; what is there is not played again, and a table is written only from all of them.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

import pandas as pd

from fliptron import InputError, source
from fliptron.cli.playing import play_with_progress
from fliptron.experiments.plan import Spec
from fliptron.results import Results

HERE = Path(__file__).resolve().parent
NAMES = sorted(path.stem for path in (HERE / "studies").glob("*.py"))
_OURS = HERE, HERE / "studies", HERE.parent / "tests"
_PLAIN = (bool, int, float, str, tuple, range)


@dataclass(frozen=True)
class StudySpec(Spec):
    """A run that a study plays in its own way."""

    study: str = ""
    """A digest of that way."""

    @cached_property
    def code(self) -> str:
        """A digest of all the code that plays it."""
        return f"{super().code}-{self.study}"


def find(name: str) -> ModuleType:
    """A study by name."""
    if name not in NAMES:
        raise InputError(f"{name!r} is not a study; one of {', '.join(NAMES)} is expected")
    return import_module(f"studies.{name}")


def plan(study: ModuleType, runs: pd.DataFrame) -> list[Spec]:
    """The runs that a study wants, given those that are there."""
    specs: list[Spec] = study.specs(runs)
    if not hasattr(study, "play_one"):
        return specs
    way = digest(study.play_one)
    return [StudySpec(**{each.name: getattr(spec, each.name) for each in fields(Spec)}, study=way) for spec in specs]


def carry_out(name: str, results: Results, docs: Path, play: Callable[..., int] | None) -> list[Path]:
    """Play what is missing, unless there is nobody to `play`, and write what comes of it."""
    study = find(name)
    how = getattr(study, "play_one", None)
    runs, known = results.load().head(0), set()
    while True:
        specs = plan(study, runs)
        wanted = {spec.id for spec in specs}
        if play is not None:
            play(specs, results, title=name, how=how)
        runs = results.load()
        runs = runs[runs.id.isin(wanted)]
        if len(runs) < len(wanted):
            raise InputError(f"{len(wanted) - len(runs)} of {len(wanted)} runs are missing; nothing is written")
        if wanted == known:
            return study.write(runs, docs)
        known = wanted


def digest(function: Callable[..., object]) -> str:
    """What a function is made from: itself, and the functions, constants and modules of ours that it reaches.

    How runs are built and stored is left out, and comments too.
    """
    parts: dict[str, str] = {}
    waiting = [getattr(function, "py_func", function)]
    while waiting:
        each = waiting.pop()
        parts[each.__qualname__] = ast.dump(ast.parse(textwrap.dedent(inspect.getsource(each))))
        for name in _names(each.__code__):
            value = each.__globals__.get(name)
            value = getattr(value, "py_func", value)  # of a compiled function
            home = str(getattr(value, "__module__", ""))
            if isinstance(value, _PLAIN):
                parts[name] = repr(value)
            elif home.startswith("fliptron.") and not home.startswith("fliptron.experiments"):
                parts[home] = _package(home)
            elif isinstance(value, FunctionType) and Path(value.__code__.co_filename).resolve().parent in _OURS:
                waiting += [value] if value.__qualname__ not in parts else []
    return hashlib.sha256(repr(sorted(parts.items())).encode()).hexdigest()[:16]


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _names(inner)


@cache
def _package(module: str) -> str:
    return source.digest(module)


def send_by_value() -> None:
    """Let workers of a cluster have the code of studies, which they cannot import."""
    import cloudpickle

    for module in list(sys.modules.values()):
        if module.__name__ != "__main__" and Path(getattr(module, "__file__", None) or "/").resolve().parent in _OURS:
            cloudpickle.register_pickle_by_value(module)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="?", help="of the study; without one they are listed")
    parser.add_argument("--jobs", type=int, help="runs at a time; as many as there are cores unless given")
    parser.add_argument("--cluster", metavar="ADDRESS", help="of a Dask scheduler, whose workers then play")
    parser.add_argument("--only-write", action="store_true", help="play nothing")
    options = parser.parse_args()
    if options.name is None:
        for name in NAMES:
            print(f"{name:<10}{(find(name).__doc__ or '').splitlines()[0]}")
        return

    def play(*arguments: object, **how: object) -> int:
        if options.cluster is not None:
            send_by_value()
        return play_with_progress(*arguments, jobs=options.jobs, cluster=options.cluster, **how)

    try:
        results = Results(Path("out/studies") / options.name)
        paths = carry_out(options.name, results, Path("docs"), None if options.only_write else play)
    except InputError as error:
        print(f"Error: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit("Stopped. What had finished is kept; the same command goes on from there.")
    for path in paths:
        print(path)


if __name__ == "__main__":
    main()
