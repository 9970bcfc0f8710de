"""The decision service's JSON (`--dsjson` of Vowpal Wabbit, the logs of Personalizer): an event per line.

The context is `c` without its `_multi`, which lists the actions; `_label_Action` is the one that was played (1 is the
first), and `_label_cost` and `_label_probability` are its cost and probability. Where `p` is there, the probabilities
of all actions in the order of `a`, the one that is likelier than any other is the greedy label. Two keys are our own,
`_greedy` (a number like `_label_Action`) and `_margin`; Vowpal Wabbit passes over them, as over every name that begins
with `_`, which is why such names are written with `%5F` instead.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NoReturn

from fliptron.logs.events import TIE, Event, column_of, number_of, place_of, probability_of, put
from fliptron.logs.vowpal import ACTION, NAME
from fliptron.refusals import InputError

_SEVERAL = ("_slots", "_outcomes")
_LOW = "%5F"  # a _ that a name begins with
_NUMBER = r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?"


def events(lines: Iterable[tuple[str, str]]) -> Iterator[Event]:
    """The events of a file.

    What Vowpal Wabbit does not learn from is left out: events with `_skipLearn`, rewards and activations that found no
    event to belong to, which have an `EventId` and no `c`, and lines that begin with #.

    Parameters
    ----------
    lines
        Each with what it is called in messages.
    """
    known: dict[str, tuple[tuple[str, ...], bool]] = {}  # names of lists of actions, which seldom change
    for where, text in lines:
        if text.strip() and not text.lstrip().startswith("#"):
            event = _object(where, "the line", _parsed(where, text))
            alone = "EventId" in event and "c" not in event and "_label_cost" not in event
            if event.get("_skipLearn") is not True and not alone:
                yield _event(where, event, known)._replace(form="dsjson", text=text)


def _event(where: str, event: dict[str, Any], known: dict[str, tuple[tuple[str, ...], bool]]) -> Event:
    context = dict(_object(where, "c", event.get("c")))
    if any(key in each for key in _SEVERAL for each in (event, context)):
        raise InputError(f"{where} has slots; one action per event is expected")
    listed = context.pop("_multi", None)
    if not isinstance(listed, list) or not listed:
        raise InputError(f"{where} has no list of actions _multi in c; one is expected")
    if "_label_cost" not in event:
        raise InputError(f"{where} has no _label_cost; an event with a cost is expected")
    cost = number_of(where, "cost", event["_label_cost"])
    at = event.get("_label_Action")
    if at is None and "_labelIndex" in event:
        at = _place(where, "_labelIndex", event["_labelIndex"], len(listed), first=0) + 1
    position = _place(where, "_label_Action", at, len(listed))
    order = event.get("a", list(range(1, len(listed) + 1)))
    chances = event.get("p")
    greedy = None
    if chances is not None:
        if not isinstance(chances, list) or not isinstance(order, list) or len(chances) != len(order) or not order:
            raise InputError(
                f"{where} has p {chances!r} for the actions {order!r}; one probability for each is expected"
            )
        values = [number_of(where, "p with", each) for each in chances]
        first, *others = sorted(range(len(values)), key=lambda at: -values[at])
        if not others or values[first] - values[others[0]] > TIE:
            greedy = _place(where, "a with", order[first], len(listed))
        if "_label_probability" not in event and position in order:
            event["_label_probability"] = values[order.index(position)]
    if "_greedy" in event:
        greedy = _place(where, "_greedy", event["_greedy"], len(listed))
    probability = probability_of(where, event.get("_label_probability"))
    names, rich = _names(where, listed, known)
    record: dict[str, Any] = {}
    _flatten(record, where, "", context)
    margin = event.get("_margin")
    tag = event.get("EventId")
    return Event(
        where, names[position - 1], position, cost, probability, record, names,
        greedy=None if greedy is None else names[greedy - 1],
        margin=None if margin is None else number_of(where, "_margin", margin),
        tag=tag if isinstance(tag, str) and tag else None,
        rich=rich,
    )  # fmt: skip


def _names(
    where: str, listed: list[Any], known: dict[str, tuple[tuple[str, ...], bool]]
) -> tuple[tuple[str, ...], bool]:
    """What the actions go by, and whether one has features besides."""
    text = json.dumps(listed)
    if text in known:
        return known[text]
    names = tuple(_name(where, each) for each in listed)
    twice = next((name for at, name in enumerate(names) if names.index(name) < at), None)
    if twice is not None:
        raise InputError(f"{where} has action {twice!r} twice; each once is expected")
    rich = any(each.get("_tag") and len(each) > 1 for each in listed)
    if len(known) < 1000:
        known[text] = names, rich
    return names, rich


def _name(where: str, action: Any) -> str:
    """What an action goes by: its tag; its word, if that is all it has; or all of it."""
    features = _object(where, "an action", action)
    tag = features.get("_tag")
    if isinstance(tag, str) and tag:
        return tag
    inner: Any = features
    while isinstance(inner, dict) and len(inner) == 1:
        (inner,) = inner.values()
    if isinstance(inner, str) and inner:
        return inner
    if not features:
        raise InputError(f"{where} describes an action by nothing; a tag or a feature is expected")
    return json.dumps(features, ensure_ascii=False, separators=(",", ":"))


def _flatten(record: dict[str, Any], where: str, namespace: str, value: dict[str, Any]) -> None:
    for written, each in value.items():
        key = f"_{written.removeprefix(_LOW)}" if written.startswith(_LOW) else written
        if written == "_text":
            for word in str(each).split():
                put(record, where, column_of(namespace, word), 1.0)
        elif written.startswith("_"):
            continue
        elif isinstance(each, dict):
            _flatten(record, where, f"{namespace}.{key}" if namespace else key, each)
        elif isinstance(each, list):
            inner = f"{namespace}.{key}" if namespace else key
            for at, one in enumerate(each):
                if isinstance(one, dict):
                    _flatten(record, where, inner, one)
                elif isinstance(one, str):
                    put(record, where, column_of(inner, one), 1.0)
                else:
                    put(record, where, column_of(inner, str(at)), number_of(where, f"{inner!r} with", one))
        else:
            kept = each if each is None or isinstance(each, str | bool) else number_of(where, f"{key!r} with", each)
            put(record, where, column_of(namespace, key), None if kept == "" else kept)


def _parsed(where: str, text: str) -> Any:
    def refuse(constant: str) -> NoReturn:
        raise InputError(f"{where} holds {constant}; a finite number is expected")

    try:
        found = json.loads(text, parse_constant=refuse)
        if "\\ud" in text.lower():
            json.dumps(found, ensure_ascii=False).encode()
        return found
    except UnicodeEncodeError:
        raise InputError(f"{where} holds half of a character; whole ones are expected") from None
    except RecursionError:
        raise InputError(f"{where} is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise InputError(f"{where} is not JSON ({error.msg} at character {error.colno})") from None


def _object(where: str, what: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        told = "nothing" if value is None else json.dumps(value)[:40]
        raise InputError(f"{where}: {what} is {told}; an object with names and values is expected")
    return value


def _place(where: str, what: str, value: Any, n: int, first: int = 1) -> int:
    last = n - 1 + first
    if isinstance(value, bool) or not isinstance(value, int) or not first <= value <= last:
        raise InputError(f"{where} has {what} {value!r}; a whole number from {first} to {last} is expected")
    return value


def relabelled(text: str, cost: float | None, probability: float | None) -> str:
    """An event as it was written, with another cost or probability; None: as it is.

    Parameters
    ----------
    text
        Its line.
    cost, probability
        Those of the action that was played.
    """
    event = json.loads(text)
    for key, value in (("_label_cost", cost), ("_label_probability", probability)):
        if value is None or (event.get(key) is not None and float(event[key]) == value):
            continue
        event[key] = value
        again, times = re.subn(rf'("{key}"\s*:\s*){_NUMBER}', rf"\g<1>{value!r}", text)
        same = times == 1 and json.loads(again) == event  # so that all else is as it was written, blanks too
        text = again if same else json.dumps(event, ensure_ascii=False, allow_nan=False)
    return text


def text_of(event: Event, actions: Sequence[Any]) -> str:
    """An event in one line.

    Parameters
    ----------
    event
        What happened.
    actions
        The features of every action, in the order of the event's list.
    """
    context: dict[str, Any] = {}
    for column, value in event.record.items():
        namespace, name = (_LOW + each[1:] if each.startswith("_") else each for each in place_of(column))
        context.setdefault(namespace, {})[name] = value
    told: dict[str, Any] = {
        "_label_cost": event.cost,
        "_label_probability": event.probability,
        "_label_Action": event.position,
        "_labelIndex": event.position - 1,
        **({} if event.tag is None else {"EventId": event.tag}),
        **({} if event.greedy is None else {"_greedy": event.among.index(event.greedy) + 1}),
        **({} if event.margin is None else {"_margin": event.margin}),
        "a": [event.position, *(at for at in range(1, len(actions) + 1) if at != event.position)],
        "c": {**context, "_multi": list(actions)},
    }
    return json.dumps(told, ensure_ascii=False, allow_nan=False) + "\n"


def action_object(name: str) -> Any:
    """An action by its name, or by the features that are its name."""
    if name.startswith("{"):
        try:
            again = json.loads(name)
            if isinstance(again, dict) and _name("", again) == name:
                return again
        except (InputError, ValueError):
            pass
    return {ACTION: {NAME: name}}
