"""What a piece of the package's own code is: a digest that changes when its meaning does.

It covers a module and whatever it imports from the package, without comments, docstrings and layout. Compiled code is
kept by it, and a stored result is known by it.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import sys
import tempfile
import threading
from collections.abc import Collection, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

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
    _NOTES.keep()
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


@cache
def _path(module: str) -> Path | None:
    first, *rest = module.split(".")
    if first != _PACKAGE.name:
        return None
    base = _PACKAGE.joinpath(*rest)
    return next((path for path in (base.with_suffix(".py"), base / "__init__.py") if rest and path.is_file()), None)


@cache
def _text(module: str) -> bytes:
    path = _path(module)
    return b"" if path is None else path.read_bytes()


def _imports(module: str) -> Iterator[str]:
    for base, *names in _NOTES.of(_text(module))[0]:
        below = [f"{base}.{name}" for name in names]
        yield from [each for each in below if _path(each)] or [base]


def _meaning(module: str) -> bytes:
    return bytes.fromhex(_NOTES.of(_text(module))[1])


class Notes:
    """What each text imports and means. To parse them all takes as long as half a second, so it is kept in a file.

    Notes go by the whole text and by Python's version; so they are never old, and a damaged file is as good as none.
    """

    def __init__(self) -> None:
        self._notes: dict[str, Any] = {}
        self._path: Path | None = None
        self._is_new = False

    def keep_in(self, path: Path) -> None:
        """Read the notes of earlier processes, and from now on keep ours beside them."""
        self._path = path
        with suppress(OSError, ValueError):
            content = path.read_bytes()
            if hashlib.sha256(content[32:]).digest() == content[:32]:
                self._notes = json.loads(content[32:]) | self._notes

    def of(self, text: bytes) -> tuple[list[list[str]], str]:
        """Modules that a text imports, each with the names that it takes from there; and a digest of what it means."""
        name = hashlib.sha256(sys.version.encode() + text).hexdigest()
        found = self._notes.get(name)
        if found is None:
            with _ONE_AT_A_TIME:
                tree = ast.parse(text)
            found = self._notes[name] = [[list(each) for each in _imported(tree)], _digest(tree)]
            self._is_new = True
        return found[0], found[1]

    def keep(self) -> None:
        """Write new notes, if they can be written."""
        if not self._is_new or self._path is None:
            return
        self._is_new = False
        content = json.dumps(dict(list(self._notes.items())[-_MOST:])).encode()
        with suppress(OSError):
            with tempfile.NamedTemporaryFile(dir=self._path.parent, suffix=".tmp", delete=False) as file:
                file.write(hashlib.sha256(content).digest() + content)
            os.replace(file.name, self._path)


_MOST = 500  # notes: those of several versions of the package
_NOTES = Notes()
keep_in = _NOTES.keep_in


def _imported(tree: ast.AST) -> Iterator[tuple[str, ...]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module, *(name.name for name in node.names)
        elif isinstance(node, ast.Import):
            yield from ((name.name,) for name in node.names)
        elif not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)):
            yield from _imported(node)


def _digest(given: ast.Module) -> str:
    with _ONE_AT_A_TIME:
        tree = ast.parse(ast.unparse(given))
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [  # type: ignore[attr-defined]
                each for each in body if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))
            ]
    with _ONE_AT_A_TIME:
        return hashlib.sha256(ast.dump(tree).encode()).hexdigest()
