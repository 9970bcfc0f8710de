"""How a body is read: capped while it comes, and JSON in which no name stands twice."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec.structs import astuple

from fliptron.service.messages import Refusal


async def read_body(receive: Any, most: int) -> bytes:
    """The body of a request; refused as soon as it is longer than it may be."""
    message = await receive()
    body: bytes = message.get("body", b"")
    if not message.get("more_body") and len(body) <= most:
        return body
    parts, size = [body], len(body)
    while size <= most and message.get("more_body"):
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Refusal(400, "the body ended early")
        parts.append(message.get("body", b""))
        size += len(parts[-1])
    if size > most:
        raise Refusal(413, f"the body is longer than {most:,} bytes, which is the most here", {"connection": "close"})
    return b"".join(parts)


def decoder(shape: type) -> Callable[[bytes], Any]:
    """What makes an object of a kind from JSON, or refuses."""
    decode: Callable[[bytes], Any] = msgspec.json.Decoder(shape).decode

    def decoded(body: bytes) -> Any:
        found = decode(body)
        if b"\\" in body or body.count(b'"') != 2 * _strings(found):
            json.loads(body, object_pairs_hook=_once)
        return found

    return decoded


def _strings(value: Any) -> int:
    """How many strings JSON needs for a value at least: names and words. More are in a body that says a name twice."""
    kind = type(value)
    if kind is list:
        return sum(map(_strings, value)) if value and type(value[0]) is not float else 0
    if kind is dict:
        return len(value) + sum(type(each) is str for each in value.values())
    if kind is str:
        return 1
    if isinstance(value, msgspec.Struct):
        found = 0
        for each, default in zip(astuple(value), _defaults(kind), strict=True):
            if each is not default:
                found += 1 + _strings(each)
        return found
    return 0


_DEFAULTS: dict[type, tuple[Any, ...]] = {}


def _defaults(kind: Any) -> tuple[Any, ...]:
    found = _DEFAULTS.get(kind)
    if found is None:
        given = kind.__struct_defaults__
        found = _DEFAULTS[kind] = (*[msgspec.NODEFAULT] * (len(kind.__struct_fields__) - len(given)), *given)
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(name for at, (name, _) in enumerate(pairs) if name in dict(pairs[:at]))
        raise Refusal(400, f"the name {twice[:40]!r} stands twice in an object; once is expected")
    return found
