"""What a piece of the package's own code is: a digest that changes when its meaning does.

It covers a module and whatever it imports from the package, without comments, docstrings and layout. Compiled code is
kept by it, and a stored result is known by it.
"""

from __future__ import annotations

import ast
import hashlib
import threading
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).parent
_ONE_AT_A_TIME = threading.Lock()  # two threads that parse at once confuse Python 3.11


def digest(*modules: str, without: Collection[str] = ()) -> str:
    """The digest of modules by name, and of what they import; `without` some that do not matter."""
    return _total(modules, frozenset(without))


@cache
def _total(modules: tuple[str, ...], without: frozenset[str]) -> str:
    total = hashlib.sha256()
    for module in sorted(_reached(modules, without)):
        total.update(module.encode() + _meaning(module))
    return total.hexdigest()


def _reached(modules: tuple[str, ...], without: frozenset[str]) -> set[str]:
    found: set[str] = set()
    waiting = list(modules)
    while waiting:
        module = waiting.pop()
        if module not in found and module not in without and _path(module) is not None:
            found.add(module)
            waiting += _imports(module)
    return found


def _path(module: str) -> Path | None:
    first, *rest = module.split(".")
    if first != _PACKAGE.name:
        return None
    base = _PACKAGE.joinpath(*rest)
    return next((path for path in (base.with_suffix(".py"), base / "__init__.py") if rest and path.is_file()), None)


@cache
def _tree(module: str) -> ast.Module:
    path = _path(module)
    with _ONE_AT_A_TIME:
        return ast.parse("" if path is None else path.read_text(encoding="utf-8"))


@cache
def _imports(module: str) -> tuple[str, ...]:
    return tuple(_imported(_tree(module)))


def _imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            below = [f"{node.module}.{name.name}" for name in node.names]
            yield from [each for each in below if _path(each)] or [node.module]
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)):
            yield from _imported(node)


@cache
def _meaning(module: str) -> bytes:
    given = _tree(module)
    with _ONE_AT_A_TIME:
        tree = ast.parse(ast.unparse(given))
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [  # type: ignore[attr-defined]
                each for each in body if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))
            ]
    with _ONE_AT_A_TIME:
        return hashlib.sha256(ast.dump(tree).encode()).digest()
