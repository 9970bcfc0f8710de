"""How code is compiled: with which options, kept where, and called how."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import platformdirs

VECTOR = {"reassoc", "nsz", "contract"}
"""Sums may be reordered into vector lanes and fused; NaN and infinity keep their meaning."""

LOOP: Any = {"_nrt": False, "nogil": True}
"""Options of a loop over rounds. Its rows are borrowed, not counted: counting is atomic, and waits until all that was
written before is in the cache, at 10×64 a fifth of a round."""

STEP: Any = {"_nrt": False, "forceinline": True}
"""Options of a step of a round. It borrows the arrays of a state and allocates none, so it counts no
references (an atomic count for each array touched cost a quarter of a round at 10×64); and it melts into
the loop that calls it (passing a state of three arrays from call to call cost another sixth)."""


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function on first use, and keep the machine code for the next process."""

    def decorate(function: Callable[..., Any]) -> Any:
        config: Any = numba.config
        usual, config.CACHE_DIR = config.CACHE_DIR, _FOLDER
        try:
            return numba.njit(cache=bool(_FOLDER), **options)(function)
        finally:
            config.CACHE_DIR = usual

    return decorate


def entry(function: Any, *example: Any) -> Callable[..., Any]:
    """Machine code for arguments like these, without Numba's type check at every call.

    The check costs more than a round at 10×64; `arrays` vouches for the types instead.
    """
    if not hasattr(function, "overloads"):  # compilation is switched off
        return function  # type: ignore[no-any-return]
    signature = tuple(map(numba.typeof, example))
    function.compile(signature)
    return function.overloads[signature].entry_point  # type: ignore[no-any-return]


def _cache_folder(keep: int = 8) -> str:
    """A folder for this very source, or nothing where none can be written.

    Numba notices an edit only in the file of the function it looks up, and would go on using an old copy of a
    step from another. The folders longest unused are removed.
    """
    package = Path(__file__).parents[1]
    digest = hashlib.sha256(numba.__version__.encode())
    for path in sorted(package.rglob("*.py")):
        digest.update(path.read_bytes())
    base = Path(os.environ.get("NUMBA_CACHE_DIR") or platformdirs.user_cache_dir("fliptron"), "compiled")
    folder = base / digest.hexdigest()[:16]
    try:
        new = not folder.exists()
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            os.utime(folder)
        if new:
            latest_first = sorted(base.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
            for old in latest_first[keep:]:
                shutil.rmtree(old, ignore_errors=True)
    except FileNotFoundError:  # another process tidied up at the same moment
        pass
    except OSError:  # nowhere to write: compile anew in every process
        return ""
    return str(folder)


_FOLDER = _cache_folder()
