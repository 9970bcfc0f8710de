"""Vowpal Wabbit's text: an event per line (cb), or several lines with the features of every action (adf).

A line is `label tag|namespace feature feature:value |namespace …`, and the label of the action that was played is
`action:cost:probability`. In cb the actions are numbers from 1 on. In adf an event is a line `shared |…` with the
context and a line for each action, one of which has a label; an empty line ends it.

`name=word` becomes a column of words, `name:value` one of numbers, and `name` alone is the number 1. An action of adf
goes by its tag; or by its word, if `name=word` is all it has; or by all of its features. Marks that a name cannot hold
(blank, `:`, `|`, `=` in names, `%`) are written as `%` and two digits.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple

from fliptron.logs.events import Event, column_of, number_of, place_of, probability_of, put
from fliptron.refusals import InputError
from fliptron.rounds import MOST_CLASSES

ACTION, NAME = "action", "label"
"""The namespace and the feature that name an action in what is written."""
_ESCAPED = {mark: f"%{ord(mark):02X}" for mark in "% \t\n\r:|="}
_PLAIN = {code: mark for mark, code in _ESCAPED.items()}
_MARKS, _IN_WORDS, _CODES = re.compile("[% \t\n\r:|=]"), re.compile("[% \t\n\r:|]"), re.compile("|".join(_PLAIN))
_BLANKS = re.compile("[ \t]+")


class Line(NamedTuple):
    """One line."""

    where: str
    label: list[str]
    """What stands before the tag: `shared`, or costs of actions."""
    tag: str | None
    features: tuple[tuple[str, str, float], ...]
    """Namespace, name and value of each."""
    text: str = ""
    """All of it."""

    @property
    def shared(self) -> bool:
        """Whether it describes the context of all actions."""
        return self.label == ["shared"]


def parse(where: str, text: str) -> Line:
    """Read a line.

    Parameters
    ----------
    where
        What it is called in messages.
    text
        The line without its end.
    """
    before, bar, rest = text.partition("|")
    label, tag = _label_and_tag(before, bar)
    try:
        return Line(where, label, tag, _features(rest) if bar else (), text)
    except InputError as error:
        raise InputError(f"{where} {error}") from None


def _label_and_tag(before: str, bar: str) -> tuple[list[str], str | None]:
    """What stands before the first |."""
    label = [word for word in _BLANKS.split(before) if word]
    if label and (label[-1].startswith("'") or (bar and not before.endswith((" ", "\t")))):
        return label, plain(label.pop().removeprefix("'"))
    return label, None


@lru_cache(maxsize=4096)  # the lines of actions are few, and come again and again
def _features(text: str) -> tuple[tuple[str, str, float], ...]:
    """What stands behind the first |."""
    found = []
    for part in text.split("|"):
        name, *words = _BLANKS.split(part)
        namespace, colon, weight = name.partition(":")
        scale = _value(f"namespace {namespace!r} with weight", weight) if colon else 1.0
        for word in words:
            if word:
                feature, colon, value = word.partition(":")
                number = _value(f"feature {feature!r} with value", value) if colon else 1.0
                found.append((namespace, feature, number * scale))
    return tuple(found)


def _value(what: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(f"has {what} {text!r}; a finite number is expected")
    return value


def events(lines: Iterable[tuple[str, str]]) -> Iterator[Event]:
    """The events of a file, cb or adf, which its first lines tell: an event of adf has one cost.

    Lines of cb without a cost are left out, since Vowpal Wabbit learns nothing from them.

    Parameters
    ----------
    lines
        Each with what it is called in messages.
    """
    parsed = ((where, parse(where, text) if text.strip() else None) for where, text in lines)
    head: list[tuple[str, Line | None]] = []
    costs = 0
    for each in parsed:
        _, line = each
        if line is None and not head:
            continue
        head.append(each)
        costs += line is not None and bool(line.label)
        if line is None or line.shared or costs == 2:  # the first event of adf ends, or this is none
            break
    if not head:
        return
    block = [line for _, line in head if line is not None]
    several = block[0].shared or (costs < 2 and (len(block) > 1 or not block[0].label))
    yield from (_many if several else _single)(chain(head, parsed))


def _single(lines: Iterable[tuple[str, Line | None]]) -> Iterator[Event]:
    for where, line in lines:
        if line is None or (not line.label and ":" not in (line.tag or "")):  # nothing to learn from
            continue
        action, cost, probability = _cost_in(line)
        among = tuple(str(_numbered(where, word.partition(":")[0])) for word in line.label)
        number = _numbered(where, action)
        yield Event(
            where, str(number), number, cost, probability, _record(line), among,
            tag=line.tag, form="vw-cb", text=line.text,
        )  # fmt: skip


def _numbered(where: str, action: str) -> int:
    if not action.isdecimal() or len(action) > 7 or not 1 <= int(action) <= MOST_CLASSES:
        raise InputError(f"{where} has action {action!r}; a whole number from 1 to {MOST_CLASSES:,} is expected")
    return int(action)


def _many(lines: Iterable[tuple[str, Line | None]]) -> Iterator[Event]:
    block: list[Line] = []
    shared: bool | None = None
    known: dict[tuple[str, ...], tuple[str, ...]] = {}  # so that the names of equal lists are one object
    for _, line in chain(lines, [("", None)]):
        if line is not None:
            if line.shared and block:
                raise InputError(
                    f"{line.where} is shared in the midst of an event; an empty line before it is expected"
                )
            block.append(line)
        elif block:
            if shared is not None and block[0].shared != shared:
                raise InputError(f"{block[0].where} begins an event {'without' if shared else 'with'} a shared line, "
                                 f"and those before it {'have' if shared else 'lack'} one")  # fmt: skip
            shared = block[0].shared
            yield _event(block, known)
            block = []


def _event(block: list[Line], known: dict[tuple[str, ...], tuple[str, ...]]) -> Event:
    actions = block[1:] if block[0].shared else block
    where = block[0].where
    played = [at for at, line in enumerate(actions) if line.label]
    if not played:
        raise InputError(f"{where} begins an event without a cost; action:cost:probability is expected in one line")
    if len(played) > 1:
        raise InputError(f"{actions[played[1]].where} has a second cost in one event; one is expected")
    line = actions[played[0]]
    _, cost, probability = _cost_in(line)
    names = tuple(name_of(each) for each in actions)
    twice = next((at for at, name in enumerate(names) if names.index(name) < at), None)
    if twice is not None:
        raise InputError(
            f"{actions[twice].where} has action {names[twice]!r} twice in one event; each once is expected"
        )
    names = known.setdefault(names, names) if len(known) < 1000 else names
    record = _record(block[0]) if block[0].shared else {}
    tag = block[0].tag if block[0].shared else None
    return Event(
        where, names[played[0]], played[0] + 1, cost, probability, record, names,
        tag=tag, form="vw", text="\n".join(each.text for each in block),
        rich=any(each.tag and each.features for each in actions),
    )  # fmt: skip


def _cost_in(line: Line) -> tuple[str, float, float]:
    """Action, cost and probability of the one action that was played."""
    told = [word for word in line.label if ":" in word]
    if not told:
        raise InputError(f"{line.where} has no cost; action:cost:probability before a blank and a | is expected")
    if len(told) > 1:
        raise InputError(f"{line.where} has two costs, {told[0]} and {told[1]}; one is expected")
    parts = told[0].split(":")
    if len(parts) != 3:
        raise InputError(f"{line.where} has label {told[0]!r}; action:cost:probability is expected")
    return parts[0], number_of(line.where, "cost", parts[1]), probability_of(line.where, parts[2])


def _record(line: Line) -> dict[str, Any]:
    record: dict[str, Any] = {}
    for namespace, feature, value in line.features:
        name, mark, word = feature.partition("=")
        if not name or not mark or value != 1.0:
            put(record, line.where, _column(namespace, feature), value)
        else:
            put(record, line.where, _column(namespace, name), _truth.get(word, plain(word)))
    return record


_truth: Mapping[str, Any] = {"true": True, "false": False}


def name_of(line: Line) -> str:
    """What an action of adf goes by."""
    if line.tag:
        return line.tag
    if len(line.features) == 1:
        _, feature, value = line.features[0]
        _, mark, word = feature.partition("=")
        if mark and word and value == 1.0:
            return plain(word)
    if not line.features:
        raise InputError(f"{line.where} describes an action by nothing; a tag or a feature is expected")
    return "|" + " |".join(f"{namespace} {feature}:{value!r}" for namespace, feature, value in line.features)


def plain(text: str) -> str:
    """What was meant by an escaped word."""
    return _CODES.sub(lambda found: _PLAIN[found[0]], text) if "%" in text else text


def word(text: str, *, name: bool = False) -> str:
    """A word as a feature's name, or as what follows the = in it."""
    return (_MARKS if name else _IN_WORDS).sub(lambda found: _ESCAPED[found[0]], text)


def features_text(record: Mapping[str, Any]) -> str:
    """A record as namespaces and features, from the first | on."""
    spaces: dict[str, list[str]] = {}
    for column, value in record.items():
        namespace, name = _written(column)
        told = f"{name}:{value!r}" if isinstance(value, float) else f"{name}={_said(value)}"
        spaces.setdefault(namespace, []).append(told)
    return " ".join(f"|{namespace} {' '.join(told)}" for namespace, told in spaces.items()) or "|"


@lru_cache(maxsize=4096)
def _written(column: str) -> tuple[str, str]:
    namespace, name = place_of(column)
    return word(namespace, name=True), word(name, name=True)


@lru_cache(maxsize=4096)
def _column(namespace: str, name: str) -> str:
    return column_of(plain(namespace), plain(name))


def _said(value: Any) -> str:
    return word(value) if isinstance(value, str) else ("true" if value else "false")


def action_text(name: str) -> str:
    """An action of adf: its name, or the features that are its name."""
    if name.startswith("|"):
        try:
            again = parse("", name)
            if name_of(again) == name and not again.label:
                return name
        except InputError:
            pass
    return f"|{ACTION} {NAME}={word(name)}"


def relabelled(text: str, cost: float | None, probability: float | None) -> str:
    """An event as it was written, with another cost or probability; None: as it is.

    Parameters
    ----------
    text
        Its lines.
    cost, probability
        Those of the action that was played.
    """
    lines = text.split("\n")
    for at, line in enumerate(lines):
        before, bar, _ = line.partition("|")
        word = next((each for each in _label_and_tag(before, bar)[0] if ":" in each), None)
        if word is not None:
            action, *told = word.split(":")
            new = [old if want is None or float(old) == want else repr(want)
                   for old, want in zip(told, (cost, probability), strict=True)]  # fmt: skip
            lines[at] = line.replace(word, ":".join([action, *new]), 1)
            break
    return "\n".join(lines)


def cb_text(event: Event) -> str:
    """An event in one line."""
    tag = "" if event.tag is None else f"'{word(event.tag)}"
    return f"{event.position}:{event.cost!r}:{event.probability!r} {tag}{features_text(event.record)}\n"


def adf_text(event: Event, actions: Iterable[str]) -> str:
    """An event in a line for the context and one for each action, given their texts.

    Parameters
    ----------
    event
        What happened.
    actions
        The text of every action, in the order of the event's list.
    """
    tag = "" if event.tag is None else f"'{word(event.tag)}"
    lines = [f"shared {tag}{features_text(event.record)}", *actions]
    lines[event.position] = f"0:{event.cost!r}:{event.probability!r} {lines[event.position]}"
    return "\n".join(lines) + "\n\n"
