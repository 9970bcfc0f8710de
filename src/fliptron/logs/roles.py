"""Which column of a log says what: as told, or guessed from its name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fliptron.arrays import Array
from fliptron.encoding.records import is_missing
from fliptron.refusals import InputError
from fliptron.tables import NAMES, literal, quoted

NOT_FEATURES = ("best", "row", "_event", "_time", "_delay", "_source", "_verified")
"""Columns that logs of ours have besides; those with an underscore come from the service."""
DEBIASED = ("rho0", "beta", "h", "weighted")
"""Columns that a debiased log has besides, all of them; each tells the bit."""
_RIGHT = (
    *("1", "1.0", "true", "t", "yes", "y", "click", "clicked", "right", "correct", "success", "converted"),
    *("accepted", "accept", "thumbs up", "up", "like", "liked"),
)
_WRONG = (
    *("0", "0.0", "false", "f", "no", "n", "no click", "noclick", "not clicked", "none", "wrong", "incorrect"),
    *("failure", "rejected", "reject", "sent back", "thumbs down", "down", "dislike", "disliked"),
)


def not_features(given: Sequence[str]) -> tuple[str, ...]:
    """Columns of a table that are no features unless somebody says so, given the names of all."""
    return (*NOT_FEATURES, *DEBIASED) if set(DEBIASED) <= set(given) else NOT_FEATURES


def assign(
    given: Sequence[str],
    told: Mapping[str, str | None],
    known: Mapping[str, str] | None = None,
    features: Sequence[str] = (),
) -> dict[str, str]:
    """The column of every role that has one.

    Parameters
    ----------
    given
        The names of the columns.
    told
        The column of a role, where somebody said it.
    known
        The column of every role, by a file that leaves nothing to guess.
    features
        Columns that somebody says describe the round: only label and bit are guessed to be among them, and refused.
    """
    found = {role: name for role, name in told.items() if name is not None}
    for role, name in found.items():
        if name not in given:
            raise InputError(f"the log has no column {name!r}, which was to be its {role}; it has {', '.join(given)}")
    if known is not None:
        roles = _once(dict(known) | found)
        if roles["label"] != known["label"]:  # the greedy label goes by the file's names
            roles = {role: name for role, name in roles.items() if role not in ("greedy", "margin") or role in found}
        return roles
    lower = {name.lower(): name for name in reversed(given)}
    for role, names in NAMES.items():
        taken = {*found.values(), *(() if role in ("label", "bit") else features)}
        free = [lower[name] for name in names if name in lower and lower[name] not in taken]
        if role not in found and free:
            found[role] = free[0]
    for role in ("label", "bit"):
        if role not in found:
            what = "the label that was played" if role == "label" else "what came back, right or wrong"
            both = next((lower[name] for name in NAMES[role] if lower.get(name) in found.values()), None)
            if both is not None:
                other = next(each for each, name in found.items() if name == both)
                raise InputError(
                    f"column {both!r} is to be the log's {other}, and no other is called as its {role} is: say which "
                    f"one holds {what}; it has {', '.join(given)}"
                )
            raise InputError(
                f"no column of the log is called {', '.join(NAMES[role][:4])} or the like: say which one holds {what}; "
                f"it has {', '.join(given)}"
            )
    return _once(found)


def _once(roles: dict[str, str]) -> dict[str, str]:
    twice = {name for name in roles.values() if list(roles.values()).count(name) > 1}
    if twice:
        raise InputError(f"column {twice.pop()!r} cannot have two roles in a log")
    return roles


def check_features(names: Sequence[str], given: Sequence[str], taken: set[str]) -> None:
    """Refuse features that are no columns, or that have a role."""
    for name in names:
        if name not in given:
            raise InputError(f"the log has no column {name!r}; it has {', '.join(given)}")
        if name in taken:
            raise InputError(f"column {name!r} cannot be a feature: it has another role in the log")


def check_others(names: Sequence[str], given: Sequence[str], roles: Mapping[str, str]) -> None:
    """Refuse choices of other policies that are no columns, or that have a role; to play greedily is another policy."""
    for name in names:
        if name not in given:
            raise InputError(f"the log has no column {name!r} of a policy's choices; it has {', '.join(given)}")
        role = next((role for role, each in roles.items() if each == name and role != "greedy"), None)
        if role is not None:
            raise InputError(
                f"column {name!r} is the log's {role}; one that says what another policy would have played is expected"
            )


def bits_of(name: str, values: Array, start: int) -> Array:
    """A column of bits as 0 and 1: numbers, truth values, or words such as click and no."""
    words = values.tolist()
    try:
        known = {word: _bit(word) for word in set(words)}
    except TypeError:
        raise InputError(f"column {name!r} holds lists or the like; 0 or 1 is expected") from None
    if None in known.values():
        at = next(i for i, word in enumerate(words) if known[word] is None)
        what = "nothing" if is_missing(words[at]) else repr(words[at])
        raise InputError(
            f"column {name!r} holds {what} in row {start + at}; 0 or 1, true or false, click or no is expected"
        )
    return np.array([known[word] for word in words], dtype=np.int64)


def _bit(word: Any) -> int | None:
    if is_missing(word):
        return None
    text = str(word).strip().lower().replace("_", " ")
    return 1 if text in _RIGHT else 0 if text in _WRONG else None


def is_one(name: str) -> str:
    """How a query asks whether a bit is 1, by the same words."""
    words = ", ".join(map(literal, _RIGHT))
    text = f"trim(CAST({quoted(name)} AS VARCHAR), ' \"')"
    return f"coalesce(TRY_CAST({text} AS DOUBLE) = 1, replace(lower({text}), '_', ' ') IN ({words}), false)"


def numbers_of(name: str, values: Array, start: int, low: float, high: float, allowed: str) -> Array:
    """A column of numbers within bounds."""
    try:
        found = values.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        found = np.array([_as_float(value) for value in values.tolist()])
    good = (found >= low) & (found <= high)
    if not good.all():
        at = int(np.argmin(good))
        what = "nothing" if is_missing(values[at]) else repr(values.tolist()[at])
        raise InputError(f"column {name!r} holds {what} in row {start + at}; {allowed} is expected")
    return found


def _as_float(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return np.nan
