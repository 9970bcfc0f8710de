"""Learners in files: an `.npz` of plain arrays and a line of JSON; no pickle, nothing read that was not expected."""

from __future__ import annotations

import io
import json
import os
import re
import sys
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

import numpy as np

from fliptron.arrays import Array
from fliptron.kernels.loop import DECIDED
from fliptron.learners.memory import at_most
from fliptron.refusals import InputError, whole

if TYPE_CHECKING:
    from fliptron.learners.base import Learner

Found = TypeVar("Found", bound="Learner")
FORMAT = 2
"""1 was version 0.1's, which named our classes without their package and did not keep the layout."""
_ABOUT = 2**24  # bytes of the line of JSON, four to a character
_LARGEST = 1e130  # of a number in a file: more than any update makes of what is admitted
_KINDS: dict[str, type[Learner]] = {}


def register(kind: type[Learner]) -> None:
    """Make a class known to `load`, by its full name."""
    _KINDS[_name(kind)] = kind


def _name(kind: type) -> str:
    """`fliptron.Banditron` for ours, which may move within the package; module and name for a user's."""
    ours = kind.__module__.startswith("fliptron.")
    return f"fliptron.{kind.__qualname__}" if ours else f"{kind.__module__}.{kind.__qualname__}"


def _version() -> str:
    return str(sys.modules["fliptron"].__version__)  # an import would reach all that the package knows


def packed(
    kind: type[Learner],
    params: Mapping[str, Any],
    rounds: int,
    layout: str | None,
    arrays: Mapping[str, Array],
    more: Mapping[str, Any],
) -> bytes:
    """The content of a file: a learner, and what somebody else wants to keep beside it."""
    about = {"format": FORMAT, "version": _version(), "learner": _name(kind), "params": params}
    about |= {"rounds": rounds, "layout": layout, **more}
    try:
        text = json.dumps(about)
    except TypeError:
        raise InputError(f"{kind.__name__} holds an object that a file cannot: {dict(params)}") from None
    if 4 * len(text) > _ABOUT:
        raise InputError(f"names and values of {len(text):,} characters cannot be saved; at most {_ABOUT // 4:,} can")
    content = io.BytesIO()
    np.savez(content, allow_pickle=False, about=text, **arrays)
    return content.getvalue()


def load(wanted: type[Found], path: Path, *, learnt: bool = True) -> Found:
    """The learner that a file holds, of the class that is wanted or below it; as it was born, unless `learnt`.

    Only what it has learnt depends on the version that saved it.
    """
    with opened(path) as saved:
        learner: Found
        with at_most(saved.size):
            learner = saved.build(saved.kind(wanted))
        learner.turn[DECIDED] = saved.rounds
        learner.arrange(saved.layout)
        for name, array in learner._arrays().items() if learnt else ():
            low, high = learner._bounds().get(name, (-_LARGEST, _LARGEST))
            array[...] = saved.array(name, array, low, high)
        flaw = learner._flaw() if learnt else ""
        if flaw:
            raise InputError(f"{path} is not a saved {type(learner).__name__}: {flaw}")
    return learner


@contextmanager
def opened(path: Path) -> Iterator[Saved]:
    """A saved learner, open for reading. Whatever a damaged or foreign file can raise becomes one sentence."""
    try:
        with path.open("rb") as file, zipfile.ZipFile(file) as members:
            yield Saved(path, members)
    except InputError:
        raise
    except FileNotFoundError:
        raise InputError(f"{path} does not exist") from None
    except Exception as error:
        raise InputError(f"{path} is not a saved learner ({' '.join(str(error).split())})") from None


def is_saved(path: Path) -> bool:
    """Whether a file is one of a saved learner, of whatever version, and not just any `.npz`."""
    try:
        with zipfile.ZipFile(path) as members:
            return "about.npy" in members.namelist()
    except (OSError, ValueError, zipfile.BadZipFile):
        return False


class Saved:
    """A file that may hold a learner. Nothing in it is compressed: a small file cannot become a large learner."""

    def __init__(self, path: Path, members: zipfile.ZipFile) -> None:
        self._path, self._members = path, members
        self.size = os.path.getsize(path)
        about: Any = None
        if "about.npy" in members.namelist():
            text = self._read("about")
            about = json.loads(str(text)) if text.dtype.kind == "U" and text.nbytes <= _ABOUT else None
        needed = {"format", "learner", "params", "rounds"}
        if not isinstance(about, dict) or not needed <= set(about) or about["format"] not in (1, FORMAT):
            raise InputError(f"{path} is not a saved learner of format {FORMAT}")
        if not isinstance(about["params"], dict):
            raise InputError(f"{path} is not a saved learner: its params are {about['params']!r}")
        self.rounds = whole(f"{path}: rounds", about["rounds"], 0, 2**52)
        self.layout = about.get("layout")
        if self.layout not in (None, "by label", "by feature"):
            raise InputError(f"{path}: layout is {self.layout!r}; 'by label' or 'by feature' is expected")
        self.more: dict[str, Any] = about
        self._about, old = about, about["format"] == 1
        self._called = ("fliptron." if old else "") + str(about["learner"])
        self.version = "0.1" if old else str(about.get("version", "0.2.0.dev0"))
        advice = f"; it was saved by version {self.version}: train it anew with this one, or open it with that one"
        self.advice = "" if self.version == _version() else advice
        """What to do, if another version saved it."""

    def kind(self, wanted: type[Learner]) -> type[Learner]:
        """Its class, which must be the one wanted or below it."""
        package, _, name = self._called.rpartition(".")
        if package == "fliptron":  # ours are loaded when they are asked for
            getattr(sys.modules[package], name, None)
        found = _KINDS.get(self._called)
        if found is None:
            raise InputError(f"{self._path} holds a {self._called}, which is not known here; import its module first")
        if not issubclass(found, wanted):
            raise InputError(f"{self._path} holds a {self._called.rpartition('.')[2]}; a {wanted.__name__} is expected")
        return found

    def build(self, kind: type[Any]) -> Any:
        """A fresh learner with the same parameters; its weights' size is compared with the file's before it is made."""
        params = self._about["params"]
        if "W.npy" in self._members.namelist():
            shape, _ = self._head("W")
            if list(shape) != [params.get("n_classes"), params.get("n_features")]:
                raise self._refusal("W", "is missing or misshapen")
        try:
            return kind(**params)
        except (TypeError, InputError) as error:
            raise InputError(f"{self._path} is not a saved {kind.__name__} ({error}){self.advice}") from None

    def array(self, name: str, like: Array, low: float, high: float) -> Array:
        """An array of the same shape and type, every value finite and within bounds."""
        if f"{name}.npy" not in self._members.namelist():
            raise self._refusal(name, "is missing or misshapen")
        shape, dtype = self._head(name)
        if shape != like.shape or dtype != like.dtype:
            raise self._refusal(name, "is missing or misshapen")
        assert dtype.kind not in "iu" or abs(high) < 2**63, f"{name} holds whole numbers without bounds"
        stored = self._read(name)
        if not np.isfinite(stored).all():
            raise self._refusal(name, "is not finite")
        if not ((stored >= np.float64(low)) & (stored <= np.float64(high))).all():
            raise self._refusal(name, f"holds a value outside {low:g} to {high:g}")
        return stored

    def kept(self, name: str) -> bytes | None:
        """What somebody else keeps in the file, as an array of bytes; None if it is not there."""
        if f"{name}.npy" not in self._members.namelist():
            return None
        if self._head(name)[1] != np.uint8:
            raise self._refusal(name, "is no array of bytes")
        return self._read(name).tobytes()

    def _refusal(self, name: str, why: str) -> InputError:
        kind = self._called.rpartition(".")[2]
        return InputError(f"{self._path} is not a saved {kind}: array {name!r} {why}{self.advice}")

    def _head(self, name: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
        """Shape and type of an array, which is not read."""
        member = self._members.getinfo(f"{name}.npy")
        if member.compress_type != zipfile.ZIP_STORED or member.file_size > self.size:
            raise self._refusal(name, "is compressed")
        with self._members.open(member) as file:
            shape, _, dtype = _header(file)
        if int(np.prod(shape, dtype=object)) * dtype.itemsize > self.size:
            raise self._refusal(name, "is missing or misshapen")
        return shape, dtype

    def _read(self, name: str) -> Array:
        if name == "about":
            member = self._members.getinfo("about.npy")
            if member.compress_type != zipfile.ZIP_STORED or member.file_size > min(self.size, _ABOUT):
                raise InputError(f"{self._path} is not a saved learner of format {FORMAT}")
        with self._members.open(f"{name}.npy") as file:
            shape, by_columns, dtype = _header(file)
            return np.frombuffer(file.read(), dtype).reshape(shape, order="F" if by_columns else "C")


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether it is stored by columns, and type of the array that follows, by the first lines of an `.npy` file.

    NumPy's own reader parses them as Python, which fails now and then when several threads do it at once (a fault of
    Python 3.11). `save` writes few of the forms that Python would allow, and no others are read.
    """
    magic = file.read(8)
    if magic[:6] != b"\x93NUMPY" or magic[6:] not in (b"\x01\x00", b"\x02\x00"):
        raise ValueError("an array of it does not begin as one")
    size = int.from_bytes(file.read(2 if magic[6] == 1 else 4), "little")
    found = _HEADER.fullmatch(file.read(min(size, 2**16)))
    if found is None:
        raise ValueError("an array of it has a header that is not known")
    descr, order, sizes = (group.decode() for group in found.groups())
    shape = tuple(int(each) for each in sizes.split(",") if each.strip())
    return shape, order == "True", np.dtype(descr)


_HEADER = re.compile(
    rb"\{'descr': '([<>|=]?[biufU]\d+)', 'fortran_order': (True|False), 'shape': \(([\d, ]*)\), \}\s*", re.ASCII
)
