"""How a study goes from its plan to its table.

A study is a module in `benchmarks/studies`. Its first line says what is asked. It has

- `specs(runs)`: the runs it wants, given those that are there. It is asked again after they have been played, until it
  wants no more: settings are chosen from some runs, and others then go by them;
- `write(runs, docs)`: writes tables and pictures from all of its runs into a folder; their paths;
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
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType

import pandas as pd

from fliptron import InputError, source
from fliptron.cli.playing import play_with_progress
from fliptron.experiments.plan import Spec
from fliptron.results import Results

HERE = Path(__file__).resolve().parent
NAMES = sorted(path.stem for path in (HERE / "studies").glob("*.py"))
_OURS = HERE, HERE / "studies", HERE.parent / "tests"


@dataclass(frozen=True)
class StudySpec(Spec):
    """A run that a study plays in its own way."""

    way: str = ""
    """A digest of the learner's code, and of that way."""

    @property
    def code(self) -> str:
        """A digest of all the code that plays it."""
        return self.way


def find(name: str) -> ModuleType:
    if name not in NAMES:
        raise InputError(f"{name!r} is not a study; one of {', '.join(NAMES)} is expected")
    return import_module(f"studies.{name}")


def plan(study: ModuleType, runs: pd.DataFrame) -> list[Spec]:
    specs: list[Spec] = study.specs(runs)
    if not hasattr(study, "play_one"):
        return specs
    way = digest(study.play_one)
    names = [each.name for each in fields(Spec)]
    return [StudySpec(*(getattr(spec, name) for name in names), way=f"{spec.code}-{way}") for spec in specs]


def carry_out(name: str, results: Results, docs: Path, play: Callable[..., int] | None) -> list[Path]:
    """Play what is missing, unless there is nobody to `play`, and write what comes of it."""
    study = find(name)
    runs, known = results.load().head(0), set()
    while True:
        specs = plan(study, runs)
        wanted = {spec.id for spec in specs}
        if play is not None:
            play(specs, results, title=name, how=getattr(study, "play_one", None))
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
    waiting = [function]
    while waiting:
        each = waiting.pop()
        tree = ast.parse(textwrap.dedent(inspect.getsource(each)))
        parts[each.__qualname__] = ast.dump(tree)
        for name in {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}:
            value = each.__globals__.get(name)
            value = getattr(value, "py_func", value)  # of a compiled function
            home = str(getattr(value, "__module__", ""))
            if isinstance(value, bool | int | float | str | tuple | range):
                parts[name] = repr(value)
            elif home.startswith("fliptron.") and not home.startswith("fliptron.experiments"):
                parts[home] = source.digest(home)
            elif isinstance(value, FunctionType) and _is_ours(sys.modules[home]) and value.__qualname__ not in parts:
                waiting.append(value)
    return hashlib.sha256(repr(sorted(parts.items())).encode()).hexdigest()[:16]


def _is_ours(module: ModuleType) -> bool:
    return Path(getattr(module, "__file__", None) or "/").resolve().parent in _OURS


def play_on(cluster: str, *arguments: object, **how: object) -> int:
    """Play on a cluster, whose workers cannot import what is here and are sent it."""
    import cloudpickle

    for name, module in list(sys.modules.items()):
        if name != "__main__" and _is_ours(module):  # that one is sent anyway
            cloudpickle.register_pickle_by_value(module)
    return play_with_progress(*arguments, cluster=cluster, **how)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="?", help="of the study; without one they are listed")
    parser.add_argument("--jobs", type=int, help="runs at a time; as many as there are cores unless given")
    parser.add_argument("--cluster", metavar="ADDRESS", help="of a Dask scheduler, whose workers then play")
    parser.add_argument("--only-write", action="store_true", help="play nothing")
    options = parser.parse_args()
    if options.name is None:
        print("\n".join(f"{name:<10}{(find(name).__doc__ or '').splitlines()[0]}" for name in NAMES))
        return
    play = partial(play_on, options.cluster) if options.cluster else partial(play_with_progress, jobs=options.jobs)
    try:
        results = Results(Path("out/studies") / options.name)
        print(*carry_out(options.name, results, Path("docs"), None if options.only_write else play), sep="\n")
    except InputError as error:
        print(f"Error: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit("Stopped. What had finished is kept; the same command goes on from there.")


if __name__ == "__main__":
    main()
