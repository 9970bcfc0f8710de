"""How input is refused: one sentence that names the value and what is allowed."""

from __future__ import annotations

import math
import numbers
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

_LONG = 200  # characters of a value that are still read, and bits of a number


class InputError(ValueError):
    """Input that is not allowed. The message names the value and says what is allowed; a kind of `ValueError`."""


def shown(value: Any) -> str:
    """A value as a sentence quotes it: in full if it is short."""
    if isinstance(value, int) and value.bit_length() > _LONG:
        return f"a whole number of {value.bit_length()} bits"
    text = str(value) if isinstance(value, numbers.Number) else repr(value)
    return text if len(text) <= _LONG else f"{text[: _LONG - 20]}… ({len(text)} characters)"


def whole(name: str, value: Any, least: int, most: int | None = None) -> int:
    """A whole number within bounds."""
    allowed = f"a whole number of at least {least}" + ("" if most is None else f" and at most {most}")
    fits = isinstance(value, numbers.Integral) or (isinstance(value, numbers.Real) and float(value).is_integer())
    if isinstance(value, bool) or not fits:
        raise InputError(f"{name} is {shown(value)}; {allowed} is expected")
    number = int(value)
    if number < least or (most is not None and number > most):
        raise InputError(f"{name} is {shown(value)}; {allowed} is expected")
    return number


def real(name: str, value: Any, least: float, most: float = math.inf, *, open_below: bool = False) -> float:
    """A finite real number within bounds."""
    kind = "above" if open_below else "of at least"
    allowed = f"a number {kind} {least:g}" + ("" if most == math.inf else f" and at most {most:g}")
    try:
        number = float(value) if isinstance(value, numbers.Real) and not isinstance(value, bool) else math.nan
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise InputError(f"{name} is {shown(value)}; {allowed} is expected")
    if number < least or number > most or (open_below and number == least):
        raise InputError(f"{name} is {shown(value)}; {allowed} is expected")
    return number


def one_of(name: str, value: Any, allowed: Iterable[str]) -> str:
    """One of some words."""
    words = list(allowed)
    if not isinstance(value, str) or value not in words:
        *most, last = (repr(word) for word in words)
        raise InputError(f"{name} is {shown(value)}; {', '.join(most)} or {last} is expected")
    return value


def path_of(value: Any) -> Path:
    """The path of a file, if it can be one."""
    if not isinstance(value, str | os.PathLike):
        raise InputError(f"the path is {shown(value)}; the name of a file is expected")
    return Path(value)


def names_of(what: str, value: Any) -> list[str]:
    """A list of names."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise InputError(f"{what} is {shown(value)}; a list of names is expected")
    return list(value)


def mapping_of(what: str, value: Any) -> dict[Any, Any]:
    """A dict, or nothing for None."""
    if value is not None and not isinstance(value, Mapping):
        raise InputError(f"{what} is {shown(value)}; a dict is expected")
    return dict(value or {})


def named(labels: Sequence[Any], most: int = 8) -> str:
    """Labels, or names, in a sentence."""
    first = ", ".join(map(shown, labels[:most]))
    return first if len(labels) <= most else f"{first} and {len(labels) - most} more"


def missing(what: str, extra: str, error: ImportError | None = None) -> InputError:
    """What to install when an optional part is not there, or is there and lacks something, as an old version may."""
    if error is None or (isinstance(error, ModuleNotFoundError) and "." not in str(error.name)):
        return InputError(f"{what} is not installed; get it with: pip install 'fliptron[{extra}]'")
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415  # seldom wanted

    try:
        found = f"{what} {version(what)}"
    except PackageNotFoundError:
        found = what
    return InputError(
        f"{found} lacks what is needed here ({error.msg}); get another version with: pip install -U 'fliptron[{extra}]'"
    )
