"""The labels of a log: which could be played, and a column of them as numbers."""

from __future__ import annotations

import decimal
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from fliptron.arrays import Array
from fliptron.encoding.records import is_missing, word_of
from fliptron.refusals import InputError
from fliptron.rounds import MOST_CLASSES
from fliptron.tables import TableFile, from_json, quoted

_EXACT = 2.0**53  # beyond it floats do not tell every whole number from the next


def labels_in(name: str, file: TableFile, given: Any = None) -> tuple[Any, ...]:
    """The labels that could be played: those that somebody named, or all that a column of the file holds."""
    return as_names(_found(name, file) if given is None else _as_in_file(given, name, file))


def as_names(labels: Any) -> tuple[Any, ...]:
    """Labels that somebody named, or that were found: two or more, each once."""
    try:
        found = tuple(plain(label) for label in labels)
        different = len(set(found))
    except TypeError:
        raise InputError(f"labels are {labels!r}; a list of words or numbers is expected") from None
    if isinstance(labels, str) or len(found) < 2 or different < len(found) or any(map(is_missing, found)):
        raise InputError(f"labels are {list(found)}; two or more, each once and none empty, are expected")
    return found


def labels_of(name: str, values: Array, start: int, numbers: Mapping[Any, int], *, gaps: bool = False) -> Array:
    """A column of labels as their numbers; 1 is "1" if no label is 1 itself. Gaps, if there may be some, are −1."""
    texts = {word_of(label): number for label, number in reversed(list(numbers.items()))}
    try:
        words = [plain(word) for word in values.tolist()]
        known = {
            word: numbers.get(word, -1 if is_missing(word) else texts.get(word_of(word), -1)) for word in set(words)
        }
    except TypeError:
        raise InputError(f"column {name!r} holds lists or the like; words or numbers are expected as labels") from None
    found = np.array([known[word] for word in words], dtype=np.int64)
    odd = found < 0
    if gaps and odd.any():
        odd &= [not is_missing(word) for word in words]
    if odd.any():
        at = int(np.argmax(odd))
        what = "nothing" if is_missing(words[at]) else repr(words[at])
        shown = ", ".join(repr(label) for label in list(numbers)[:8]) + (" and more" if len(numbers) > 8 else "")
        raise InputError(f"column {name!r} holds {what} in row {start + at}; one of {shown} is expected")
    return found


def plain(label: Any) -> Any:
    """A label as people write it: 3 for 3.0, and a word for a date."""
    if isinstance(label, float | decimal.Decimal) and math.isfinite(label) and label == int(label):
        return int(label)
    if label is None or isinstance(label, str | int | float):
        return label
    return float(label) if isinstance(label, decimal.Decimal) else word_of(label)


def _found(name: str, file: TableFile) -> list[Any]:
    """The labels that were played, where nobody has named those that could be."""
    labels = _played(name, file)
    if len(labels) > 1000:
        raise InputError(
            f"column {name!r} holds {len(labels):,} different labels; at most 1,000 are taken without being "
            "given as labels"
        )
    if len(labels) < 2:
        raise InputError(
            f"column {name!r} holds {len(labels)} label; two or more are expected: give all that could be "
            "played as labels"
        )
    return sorted(labels, key=lambda each: (isinstance(each, str), each))


def _played(name: str, file: TableFile) -> set[Any]:
    """The labels that the file has."""
    found = file.rows(f"SELECT DISTINCT {quoted(name)} FROM {{}} LIMIT {MOST_CLASSES + 1}")
    try:
        values = [from_json(row[0]) if name in file.mixed else row[0] for row in found]
        labels = {plain(value) for value in values if not is_missing(value)}
    except TypeError:
        raise InputError(f"column {name!r} holds lists or the like; words or numbers are expected as labels") from None
    words = {label for label in labels if isinstance(label, str)}
    labels = words | {label for label in labels if word_of(label) not in words}  # 1 and "1" are one label
    long = [label for label in labels if file.kinds[name] == "DOUBLE" and abs(float(label)) >= _EXACT]
    if long:
        raise InputError(
            f"column {name!r} holds {float(long[0]):.15g}, and numbers so large are not told from the next ones; "
            "at most 2**53, or words, are expected as labels"
        )
    return labels


def _as_in_file(labels: Any, name: str, file: TableFile) -> Any:
    """Labels that somebody wrote as words, as the numbers that the file has."""
    if isinstance(labels, str) or not any(isinstance(label, str) for label in labels):
        return labels
    played = _played(name, file)
    known = {word_of(label): label for label in played}
    numbers = all(not isinstance(label, str) for label in played)
    return [
        known.get(label, _number(label) if numbers else label) if isinstance(label, str) else label for label in labels
    ]


def _number(word: str) -> Any:
    """The number that a word spells, or the word."""
    try:
        found = plain(float(word))
    except (ValueError, OverflowError):
        return word
    return found if word_of(found) == word else word
