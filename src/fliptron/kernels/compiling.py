"""How code is compiled: with which options, kept where, and called how. The one door to Numba's inside.

Parts of Numba outside its public interface are used here and in `registers.py` alone: the options `_nrt` and
`forceinline`, a dispatcher's `_cache` and `overloads`, `entry_point`, how a compiled function is taken apart and put
together, and when machine code is made of it.
`tests/test_compiling.py` names the versions for which all this was seen to work.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import pickle
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import numba
import numba.extending
import platformdirs
from numba.core import codegen, compiler
from numba.core.caching import NullCache
from numba.core.serialize import dumps

from fliptron import source

_dumps: Any = dumps
_rebuild: Any = compiler.CompileResult._rebuild
_Library: Any = codegen.JITCodeLibrary
_Compiler: Any = compiler.Compiler
_njit: Any = numba.njit
_REFUSAL: Any = ctypes.cast(ctypes.pythonapi.PyErr_BadArgument, ctypes.c_void_p).value
Function = TypeVar("Function", bound=Callable[..., Any])

VECTOR = {"reassoc", "nsz", "contract"}
"""Sums may be reordered into vector lanes and fused; NaN and infinity keep their meaning."""

LOOP: Any = {"_nrt": False, "nogil": True}
"""Options of a loop over rounds. Its rows are borrowed, not counted: counting is atomic, and waits until all that was
written before is in the cache, at 10×64 a fifth of a round."""

STEP: Any = {"_nrt": False, "forceinline": True}
"""Options of a step of a round. It borrows the arrays of a state and allocates none, so it counts no
references (an atomic count for each array touched cost a quarter of a round at 10×64); and it melts into
the loop that calls it (passing a state of three arrays from call to call cost another sixth)."""

_PLAIN = ("fliptron.learners.base", "fliptron.learners.files")  # not compiled
_KEPT = 3000  # files of compiled code, of some 80 kB; all learners for all kinds of rows make about a thousand


class Melted(_Library):  # type: ignore[misc]
    """Code that others take in whole: optimised, but no machine code is made of it, which nobody would call.

    Making it took a fifth of all compiling.
    """

    def _finalize_final_module(self) -> None:
        self._verify_declare_only_symbols()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """What Python would call: a refusal, a TypeError."""
        return _REFUSAL

    @property
    def codegen(self) -> Any:
        """Who is told where the environment is: there is no place for it here."""
        return self

    def set_env(self, name: str, environment: Any) -> None:
        """Nothing; `Whole` does it in the code that took this in."""


class Part(_Compiler):  # type: ignore[misc]
    """How a function is compiled that is called from compiled code alone."""

    def __init__(self, typing: Any, target: Any, library: Any, *others: Any) -> None:
        super().__init__(typing, target, library or Melted(target.codegen(), "part"), *others)


class Whole(_Compiler):  # type: ignore[misc]
    """How others are: with the environments of all that they took in, which a `print` in a step needs."""

    def compile_extra(self, function: Any) -> Any:
        """Compile it."""
        result = super().compile_extra(function)
        for each in result._find_referenced_environments():
            result.codegen.set_env(each.env_name, each)
        return result


WHOLE: Any = {"pipeline_class": Whole, "no_cfunc_wrapper": True}
PART: Any = STEP | {"pipeline_class": Part, "no_cpython_wrapper": True}
"""Options of a part of a step: Python cannot call it."""


def compiled(**options: Any) -> Callable[[Function], Function]:
    """Compile a function on first use, and keep the machine code for the next process."""

    def decorate(function: Function) -> Function:
        dispatcher = _njit(**WHOLE | options)(function)
        is_whole = options.get("pipeline_class") is not Part  # the others are kept in their callers
        if is_whole and hasattr(dispatcher, "_cache") and _FOLDER is not None and _is_ours(function.__module__):
            dispatcher._cache = Kept(function, _FOLDER)
        found: Any = dispatcher
        return found

    return decorate


def overload(function: Callable[..., Any], **options: Any) -> Callable[[Function], Function]:
    """Declare what a function is in compiled code, by the types of its arguments."""

    def decorate(typing: Function) -> Function:
        @functools.wraps(typing)
        def bare(*types: Any) -> Any:
            found = typing(*types)
            found.__annotations__ = {}  # Numba compares them with those of the function that chose
            return found

        typing.__annotations__ = bare.__annotations__ = {}
        declare: Any = numba.extending.overload(function, jit_options=WHOLE | PART | options)
        declare(bare)
        return typing

    return decorate


def intrinsic(*, prefer_literal: bool = False) -> Callable[[Function], Function]:
    """Declare a function that writes its instructions itself."""
    declare: Any = numba.extending.intrinsic
    return declare(prefer_literal=prefer_literal)


def entry(function: Any, *example: Any) -> Callable[..., Any]:
    """Machine code for arguments like these, without Numba's type check at every call.

    The check costs more than a round at 10×64; `arrays` vouches for the types instead. Whether an array may be written
    to makes no difference to machine code, so it is made once for both.
    """
    if not hasattr(function, "overloads"):  # compilation is switched off
        plain: Callable[..., Any] = function
        return plain
    signature = tuple(map(_writable, map(numba.typeof, example)))
    if signature not in function.overloads:
        function.compile(signature)
    found: Callable[..., Any] = function.overloads[signature].entry_point
    return found


def _writable(form: Any) -> Any:
    return form.copy(readonly=False) if isinstance(form, numba.types.Array) else form


class Kept(NullCache):
    """Compiled code of one function, one file for each signature, named by all that it was made from.

    Numba's own cache looks only at the file of the function itself: it goes on using an old copy of a step from another
    file, and compiles anew for a comment. And it trusts what it reads. Here a name holds a digest of the code that the
    function and the types of its arguments come from, and a file starts with a digest of the rest: a damaged one is
    removed, and made again.
    """

    def __init__(self, function: Callable[..., Any], folder: Path) -> None:
        self._function, self._folder = function, folder

    @property
    def cache_path(self) -> str:
        """The folder."""
        return str(self._folder)

    def load_overload(self, signature: Any, target: Any) -> Any:
        """The compiled function, or None."""
        target.refresh()
        path, content = self._path(signature, target.codegen()), b""
        if path is None:
            return None
        with suppress(OSError):
            content = path.read_bytes()
            os.utime(path)
        try:
            if content and hashlib.sha256(content[32:]).digest() == content[:32]:
                return _rebuild(target, *pickle.loads(content[32:]))
        except Exception:  # whatever another version of Numba, Python or a library makes of it
            pass
        if content:
            with suppress(OSError):
                path.unlink()
        return None

    def save_overload(self, signature: Any, result: Any) -> None:
        """Keep a compiled function; where nothing can be written, nothing is kept."""
        path = self._path(signature, result.codegen)
        if path is None or result.lifted or result.library.has_dynamic_globals:
            return
        content: bytes = _dumps(result._reduce())
        with suppress(OSError):
            with tempfile.NamedTemporaryFile(dir=self._folder, suffix=".tmp", delete=False) as file:
                file.write(hashlib.sha256(content).digest() + content)
            os.replace(file.name, path)

    def _path(self, signature: Any, codegen: Any) -> Path | None:
        """Where it is kept; nowhere if a user's state is among the types, whose steps may change unseen."""
        modules = {self._function.__module__, *_modules(signature)}
        if not all(map(_is_ours, modules)):
            return None
        made_from = (
            source.digest(*sorted(modules), without=_PLAIN),
            self._function.__module__,
            self._function.__qualname__,
            hashlib.sha256(self._function.__code__.co_code).hexdigest(),
            str(signature),
            codegen.magic_tuple(),
            numba.__version__,
            sys.version,
        )
        name = hashlib.sha256(repr(made_from).encode()).hexdigest()[:32]
        return self._folder / f"{self._function.__name__}-{name}.code"


def _is_ours(module: str) -> bool:
    return module.startswith("fliptron.")


def _modules(types: Any) -> Iterator[str]:
    """Where the named tuples among types, and within them, come from: their steps are declared beside them."""
    for each in getattr(types, "args", types):
        if hasattr(each, "instance_class"):
            yield each.instance_class.__module__
        if hasattr(each, "types"):
            yield from _modules(each.types)


def _folder() -> Path | None:
    """Where compiled code is kept, tidied; None where nothing can be written."""
    folder = Path(os.environ.get("NUMBA_CACHE_DIR") or platformdirs.user_cache_dir("fliptron"), "code")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
        with os.scandir(folder) as entries:
            there = [each for each in entries if each.is_file()]
        if len(there) > _KEPT:  # those longest unused go
            there.sort(key=lambda each: each.stat().st_mtime, reverse=True)
            for old in there[_KEPT // 2 :]:
                os.unlink(old)
    except FileNotFoundError:  # another process tidied up at the same moment
        pass
    except OSError:
        return None
    return folder


_FOLDER = _folder()
if _FOLDER is not None:
    source.keep_in(_FOLDER / "sources")
