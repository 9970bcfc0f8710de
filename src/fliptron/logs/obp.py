"""Open Bandit Pipeline's `bandit_feedback`: a dict of arrays, also kept in an .npz file.

`action`, `reward` and `pscore` are the label, the bit and the probability; `context` is a matrix. The action of `pi_b`,
where that is there, that is likelier than any other is the greedy label. In what is written here `context_names` says
what the columns are: `city=Rome` is 1 where the city is Rome, and `age=` where the age is not known; and `labels` names
the actions.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fliptron.arrays import Array
from fliptron.logs.events import TIE, Event, column_of, probability_of
from fliptron.refusals import InputError, whole
from fliptron.tables import BATCH

_NEEDED = ("n_rounds", "n_actions", "action", "reward", "pscore", "context")
_MOST_WORDS = 1000


def load_feedback(path: str | Path) -> dict[str, Any]:
    """The dict that an .npz file holds; nothing in it is run.

    Parameters
    ----------
    path
        What `numpy.savez` wrote of a `bandit_feedback`, without keys that are None.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] if file[name].ndim else file[name].item() for name in file.files}
    except (OSError, TypeError, ValueError, EOFError, AttributeError, zipfile.BadZipFile) as error:
        raise InputError(f"{path} cannot be read as arrays ({str(error).splitlines()[0]})") from None


def events(name: str, feedback: Mapping[str, Any]) -> Iterator[Event]:
    """The events of a `bandit_feedback`.

    Parameters
    ----------
    name
        What it is called in messages.
    feedback
        The dict.
    """
    for key in _NEEDED:
        if feedback.get(key) is None:
            raise InputError(f"{name} has no {key!r}; {', '.join(_NEEDED)} are expected in a bandit_feedback")
    n = whole(f"n_rounds of {name}", feedback["n_rounds"], 1)
    K = whole(f"n_actions of {name}", feedback["n_actions"], 2)
    columns = {key: _column(name, key, feedback[key], n) for key in ("action", "reward", "pscore")}
    if feedback.get("position") is not None and _column(name, "position", feedback["position"], n).any():
        raise InputError(f"{name} has positions above 0; one action per round is expected, all at position 0")
    action = columns["action"]
    _check_actions(name, "action", action, 0, K - 1)
    context = _matrix(name, "context", feedback["context"], n)
    greedy = feedback.get("greedy")
    if feedback.get("pi_b") is not None:
        chances = np.asarray(feedback["pi_b"], dtype=np.float64)
        if chances.shape[:2] != (n, K):
            raise InputError(f"{name}: pi_b has shape {chances.shape}; ({n}, {K}, 1) is expected")
        chances = chances.reshape(n, K, -1)[:, :, 0]
        tied = (chances > chances.max(axis=1, keepdims=True) - TIE).sum(axis=1) > 1
        greedy = np.where(tied, -1, chances.argmax(axis=1)) if greedy is None else greedy
    given = {"greedy": greedy, "margin": feedback.get("margin")}
    more = {key: _column(name, key, each, n) for key, each in given.items() if each is not None}
    if "greedy" in more:
        _check_actions(name, "greedy", more["greedy"], -1, K - 1)  # −1 where it is not known
    labels = _listed(name, "labels", feedback.get("labels"), [str(r) for r in range(K)])
    names = _listed(name, "context_names", feedback.get("context_names"), [f"x{j}" for j in range(context.shape[1])])
    tags = _listed(name, "tag", feedback.get("tag"), [""] * n)
    return _events(name, columns, context, more, labels, names, tags)


def _events(
    name: str,
    columns: Mapping[str, Array],
    context: Array,
    more: Mapping[str, Array],
    labels: Sequence[str],
    names: Sequence[str],
    tags: Sequence[str],
) -> Iterator[Event]:
    parts = (each.partition("=") for each in names)
    splits = [(column_of("", base), mark, word) for base, mark, word in parts]
    among, n = tuple(labels), len(context)
    for start in range(0, n, BATCH):
        stop = min(start + BATCH, n)
        rows = context[start:stop].tolist()
        told = {key: each[start:stop].tolist() for key, each in {**columns, **more}.items()}
        for i, row in enumerate(rows):
            where = f"{name}: round {start + i}"
            record: dict[str, Any] = {}
            missing = {
                base for (base, mark, word), value in zip(splits, row, strict=True) if mark and not word and value
            }
            for (base, mark, word), value in zip(splits, row, strict=True):
                if not mark and base not in missing and not np.isnan(value):
                    record[base] = value
                elif mark and word and value:
                    record[base] = {"true": True, "false": False}.get(word, word)
            action = int(told["action"][i])
            yield Event(
                where, among[action], action + 1, 0.0 - told["reward"][i], probability_of(where, told["pscore"][i]),
                record, among,
                greedy=among[int(told["greedy"][i])] if "greedy" in told and told["greedy"][i] >= 0 else None,
                margin=told["margin"][i] if "margin" in told else None,
                tag=tags[start + i] or None,
            )  # fmt: skip


def beyond(*feedbacks: Mapping[str, Any]) -> tuple[str, ...]:
    """What is in some of these that a log has no place for.

    Parameters
    ----------
    feedbacks
        Dicts, each a `bandit_feedback`.
    """
    known = {*_NEEDED, "position", "greedy", "margin", "labels", "context_names", "tag", "left_out"}
    more = dict.fromkeys(key for each in feedbacks for key, value in each.items() if value is not None)
    plain = "action_context" in more and all(_says_nothing(each.get("action_context")) for each in feedbacks)
    return tuple(key for key in more if key not in known and not (key == "action_context" and plain))


def _says_nothing(action_context: Any) -> bool:
    """Whether features of actions are only which one it is."""
    found = np.asarray(action_context)
    return found.ndim == 2 and found.shape[0] == found.shape[1] and bool((found == np.eye(len(found))).all())


def feedback_of(events: Sequence[Event], labels: Sequence[Any]) -> dict[str, Any]:
    """A `bandit_feedback` of events.

    Parameters
    ----------
    events
        All of them: the dict holds its arrays in memory.
    labels
        The labels that could be played.
    """
    n, K, names = len(events), len(labels), [str(label) for label in labels]
    numbers = {name: r for r, name in enumerate(names)}
    found: dict[str, Any] = {
        "n_rounds": n,
        "n_actions": K,
        "action": np.array([numbers[event.label] for event in events]),
        "position": np.zeros(n, dtype=np.int64),
        "reward": np.array([0.0 - event.cost for event in events]),
        "pscore": np.array([event.probability for event in events]),
        "action_context": np.eye(K),
        "labels": np.array(names),
    }
    matrix, columns, left_out = _context(events)
    found |= {"context": matrix, "context_names": np.array(columns, dtype=np.str_)}
    if left_out:
        found["left_out"] = np.array(left_out)
    if any(event.greedy is not None for event in events):
        found["greedy"] = np.array([-1 if event.greedy is None else numbers[event.greedy] for event in events])
    if events[0].margin is not None:
        found["margin"] = np.array([event.margin for event in events])
    if any(event.tag for event in events):
        found["tag"] = np.array([event.tag or "" for event in events])
    return found


def _context(events: Sequence[Event]) -> tuple[Array, list[str], list[str]]:
    """Records as numbers: those they have, and a column for each word, each truth value and each kind of gap.

    Then the names of these columns, and of those of the records that hold too many words to have one for each.
    """
    kinds: dict[str, dict[str, None]] = {}
    numbers: dict[str, int] = {}
    for event in events:
        for name, value in event.record.items():
            words = kinds.setdefault(name, {})
            if isinstance(value, float):
                numbers[name] = numbers.get(name, 0) + 1
            else:
                words[_word(value)] = None
    left_out = [name for name, words in kinds.items() if len(words) > _MOST_WORDS]
    for name in left_out:
        del kinds[name]
    columns = [column for name in kinds for column in _columns(name, kinds[name], numbers.get(name, 0), len(events))]
    if len(columns) * len(events) > 2**28:
        size = f"{len(events):,} rounds of {len(columns):,} numbers"
        raise InputError(f"{size} are too many for a bandit_feedback, which is held in memory")
    at = {column: j for j, column in enumerate(columns)}
    matrix = np.zeros((len(events), len(columns)))
    for i, event in enumerate(events):
        for name, words in kinds.items():
            value = event.record.get(name)
            if isinstance(value, float):
                matrix[i, at[name]] = value
            elif value is not None:
                matrix[i, at[f"{name}={_word(value)}"]] = 1.0
            elif not words:
                matrix[i, at[f"{name}="]] = 1.0
    return matrix, columns, left_out


def _columns(name: str, words: Mapping[str, None], numbers: int, n: int) -> list[str]:
    """The columns that one column of records becomes."""
    if "=" in name:
        raise InputError(f"column {name!r} has a = in its name, by which words are told apart in a bandit_feedback")
    if words and numbers:
        raise InputError(f"column {name!r} holds numbers and words; a bandit_feedback has room for either")
    return [f"{name}={word}" for word in words] or ([name] if numbers == n else [name, f"{name}="])


def _word(value: Any) -> str:
    return value if isinstance(value, str) else ("true" if value else "false")


def _column(name: str, key: str, values: Any, n: int) -> Array:
    try:
        found = np.asarray(values).astype(np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name}: {key} holds something that is not a number") from None
    if found.shape != (n,):
        raise InputError(f"{name}: {key} has shape {found.shape}; ({n},) is expected")
    if not np.isfinite(found).all():
        at = int(np.argmin(np.isfinite(found)))
        raise InputError(f"{name}: {key} is {found[at]} in round {at}; a finite number is expected")
    return found


def _check_actions(name: str, key: str, values: Array, low: int, high: int) -> None:
    good = (values == np.floor(values)) & (values >= low) & (values <= high)
    if not good.all():
        at = int(np.argmin(good))
        raise InputError(
            f"{name}: {key} is {values[at]:g} in round {at}; a whole number from {low} to {high} is expected"
        )


def _matrix(name: str, key: str, values: Any, n: int) -> Array:
    try:
        found = np.asarray(values).astype(np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name}: {key} holds something that is not a number") from None
    if found.ndim != 2 or len(found) != n:
        raise InputError(f"{name}: {key} has shape {found.shape}; {n} rows of numbers are expected")
    bad = np.isinf(found).any(axis=1)
    if bad.any():
        raise InputError(f"{name}: {key} holds an infinite number in round {int(np.argmax(bad))}")
    return found


def _listed(name: str, key: str, values: Any, otherwise: list[str]) -> list[str]:
    found = otherwise if values is None else [str(each) for each in np.asarray(values).tolist()]
    if len(found) != len(otherwise) or (key != "tag" and len(set(found)) < len(found)):
        raise InputError(f"{name}: {key} has {len(found)} names; {len(otherwise)}, each once, are expected")
    return found
