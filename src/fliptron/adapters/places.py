"""Where the values of an example stand in a row: a name gets its place when it first turns up."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping
from math import hypot, isfinite
from operator import itemgetter
from struct import Struct, error
from typing import Any
from zlib import crc32

import numpy as np

from fliptron.arrays import LONGEST, Array
from fliptron.refusals import InputError, shown

MOST = 4096
"""The most places; names that turn up later share those that are there, by their hash."""
_STEP = 8


class Places:
    """Makes rows of dicts or sequences of numbers and words.

    A number stands at the place of its name, which is its position in a sequence; a word makes a place of its own,
    which holds 1; None is not there.

    Parameters
    ----------
    longest
        The greatest length of an example.
    constant
        Whether place 0 holds the constant 1, or 0.
    widen
        Told of a new width before any row has it; it may refuse.
    """

    def __init__(self, longest: float, constant: bool, widen: Callable[[int], None]) -> None:
        self._longest, self._widen = longest, widen
        self._places: dict[Any, int] = {}
        self._all: Callable[[Any], Any] = tuple
        self._pack: Any = None
        self._named = self._counted = -1  # values of a mapping, and of a sequence, that fill every place
        self.width = _STEP
        """How many places a row has."""
        self._blank = np.zeros(self.width)
        self._blank[0] = bool(constant)

    def row(self, x: Any, *, grow: bool = True) -> Array:
        """An example as the learner reads it.

        Parameters
        ----------
        x
            A mapping of names and values, a list or tuple of values, or None.
        grow
            Whether new names get places; they are ignored otherwise.
        """
        kind = type(x)
        by_position = kind is tuple or kind is list
        if not (by_position or kind is dict):
            x = _pairs(x)
        if len(x) == (self._counted if by_position else self._named):  # most often: a number for every place
            row = self._blank.copy()
            try:  # quicker than NumPy's own, and takes no word for a number
                self._pack(row, 8, *(x if by_position else self._all(x)))
                return row
            except (KeyError, error):
                pass
        return self._placed(x, grow)

    def fit(self, x: Any) -> None:
        """Give the names of the first example places, and have no others: what is not there costs no time."""
        self.row(x)
        if self._places:
            self.width = len(self._places) + 1
            self._blank = self._blank[: self.width].copy()

    def check(self, x: Any) -> None:
        """Refuse an example that no learner would take; none of its names gets a place."""
        self._check_length(*_entries(_pairs(x).items()))

    def _check_length(self, names: list[Any], numbers: Iterable[float]) -> None:
        """Refuse an example that no learner would take."""
        length = hypot(*numbers)
        if not length <= self._longest:
            refuse_values(dict(zip(names, numbers, strict=True)))
            raise InputError(f"the example has length {length:g}; at most {self._longest:g} is allowed")

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_pack": None, "_named": -1, "_counted": -1}

    def _placed(self, x: Any, grow: bool) -> Array:
        """An example whose names are looked up one by one."""
        by_position = not isinstance(x, dict)
        named = _pairs(x)
        try:
            row = self._blank.copy()
            row[[self._places[name] for name in named]] = array("d", named.values())
        except (KeyError, TypeError, OverflowError):
            row = self._slowly(named, grow, by_position)
        n = len(self._places)
        if len(named) == n > 1 and self._named < 0:
            self._all, self._pack, self._named = itemgetter(*self._places), Struct(f"{n}d").pack_into, n
            self._counted = n if [*self._places] == [*range(n)] else -1
        return row

    def _place(self, name: Any) -> int:
        at = self._places.get(name) or len(self._places) + 1
        if at <= len(self._places):
            return at
        if at >= MOST:
            return 1 + crc32(repr(name).encode()) % (MOST - 1)
        if at >= self.width:
            width = min(-(-max(at + 1, self.width * 5 // 4) // _STEP) * _STEP, MOST)
            self._widen(width)
            self.width, self._blank = width, np.append(self._blank, np.zeros(width - self._blank.size))
        self._places[name] = at
        self._named = self._counted = -1
        return at

    def _slowly(self, named: dict[Any, Any], grow: bool, by_position: bool) -> Array:
        """Words, gaps, names without a place, or more names than places."""
        names, numbers = _entries(named.items(), None if grow else self._places)
        at: list[Any] = [*map(self._places.get, names)]
        if None in at:
            self._check_length(names, numbers)
            if not by_position:
                names, numbers = _entries(sorted(named.items(), key=_in_words))
            at = [*map(self._place, names)]
        row = self._blank.copy()
        if len({*at}) == len(at):
            row[at] = numbers
        else:  # some share a place
            np.add.at(row, at, numbers)
        return row


def _pairs(x: Any) -> dict[Any, Any]:
    """The names and values of an example."""
    if type(x) is tuple or type(x) is list:
        return dict(enumerate(x))
    try:
        return x if type(x) is dict else {} if x is None else dict(x)
    except (TypeError, ValueError):
        kind = type(x).__name__
        raise InputError(f"the example is of type {kind}; a dict of names and values, or a list, is expected") from None


def _entries(pairs: Iterable[tuple[Any, Any]], among: Any = None) -> tuple[list[Any], array[float]]:
    """What has a place, and the number there; only among some names, unless that is None."""
    names, values = [], []
    for name, value in pairs:
        if value is None:
            continue
        place, number = ((name, value), 1.0) if isinstance(value, str) else (name, value)
        if among is None or place in among:
            names.append(place)
            values.append(number)
    try:
        return names, array("d", values)
    except OverflowError:
        bits = max(value.bit_length() for value in values if isinstance(value, int))
        raise InputError(f"a number has {bits} bits; at most {LONGEST[8]:g} is allowed") from None
    except TypeError:
        odd = next(value for value in values if not _is_number(value))
        raise InputError(f"{shown(odd)} is neither a number nor a word") from None


def _is_number(value: Any) -> bool:
    try:
        array("d", [value])
    except (TypeError, OverflowError) as wrong:
        return isinstance(wrong, OverflowError)
    return True


def refuse_values(x: Any) -> None:
    """Name the feature that no learner can take; nothing, if there is none."""
    for name, value in x.items() if isinstance(x, Mapping) else enumerate(x) if isinstance(x, list | tuple) else ():
        if isinstance(value, float) and not isfinite(value):
            raise InputError(f"feature {name!r} is {value}; a finite number is expected") from None


def _in_words(pair: tuple[Any, Any]) -> str:
    """What new names are put in order by, of whatever kind they are."""
    return repr(pair[0])
