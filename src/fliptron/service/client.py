"""How a program asks the service: a small client on Python's own HTTP.

>>> from fliptron.service.client import Client
>>> client = Client("http://127.0.0.1:8000", "ft_token", model="shop")
>>> answer = client.decide({"age": 31, "city": "Rome"})  # doctest: +SKIP
>>> client.feedback(answer.event_id, 1)  # doctest: +SKIP
'accepted'
"""

from __future__ import annotations

import base64
import http.client
import json
import random
import ssl
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

import numpy as np

from fliptron.refusals import InputError, real, whole

MOST = 1000
"""Decisions or bits in one call; longer lists are sent in parts."""
_REFUSED_FOR_NOW = (503, 507)  # nothing was written; the same call may be repeated
_IDLE = 3.0  # seconds after which a kept connection is not trusted: a server closes idle ones


class ServiceError(Exception):
    """The service refused, or could not be reached, in spite of all attempts.

    Parameters
    ----------
    message
        One sentence.
    status
        That of HTTP; None if there was no answer.
    """

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class Answer(NamedTuple):
    """A decision."""

    event_id: str
    """What to send with the feedback."""
    label: Any
    """The label to play."""
    greedy: Any
    """The label thought best."""
    probability: float
    """With which the label to play was drawn."""
    model_version: int
    """How many bits and audits the model had learnt from."""


class Client:
    """Asks one model of a service. Several threads may share a client.

    A call that fails for want of an answer is repeated: a decision with the same key, so that it is made once; feedback
    as it is, since the first bit of an event wins (the second attempt may then say "duplicate" of what the first did).

    Parameters
    ----------
    address
        Such as http://127.0.0.1:8000.
    token
        One that allows what is called.
    model
        Its name.
    timeout
        Seconds, above 0, that one attempt may take.
    attempts
        How often a call is tried, at least 1. The pause is .1 s, then twice as long each time, up to 2 s.
    """

    def __init__(self, address: str, token: str, *, model: str, timeout: float = 5.0, attempts: int = 5) -> None:
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise InputError(f"the address is {address!r}; one such as http://127.0.0.1:8000 is expected")
        if not token.isascii() or not token.isprintable():
            raise InputError("the token holds what no token holds; one such as the service printed is expected")
        self._secure, self._host, self._port = parts.scheme == "https", parts.hostname, parts.port
        self._path = f"{parts.path.rstrip('/')}/v1/models/{quote(model, safe='')}/"
        self.timeout = real("timeout", timeout, 0.0, 1e6, open_below=True)
        self.attempts = whole("attempts", attempts, 1)
        self._headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
        self._free: list[tuple[float, http.client.HTTPConnection]] = []
        self._lock = threading.Lock()

    def decide(
        self,
        features: Mapping[str, Any] | Sequence[float],
        *,
        eligible: Iterable[Any] | None = None,
        key: str | None = None,
        source: str | None = None,
        baseline: Any = None,
    ) -> Answer:
        """Which label to play.

        Parameters
        ----------
        features
            A record of names and values; or the numbers of x, where the model has no schema.
        eligible
            The labels that may be played this time; all unless given.
        key
            Yours; the same key gives the same decision. Made up unless given.
        source
            Who asks: a site, a device.
        baseline
            For an apprentice: the label that you play.
        """
        return Answer(**self._call("decide", _ask(features, eligible, key, source, baseline)))

    def decide_many(self, asks: Iterable[Mapping[str, Any]] | Any, *, source: str | None = None) -> list[Answer]:
        """The same for many at once.

        Parameters
        ----------
        asks
            Arguments of `decide` by name, a mapping each, with at least "features"; or an array of rows of x, which is
            faster. Rows have no keys, so a call with them is repeated only if the service surely did not decide.
        source
            Who asks, for rows of an array.
        """
        if isinstance(asks, np.ndarray):
            rows = np.ascontiguousarray(asks, "<f4")
            if rows.ndim != 2:
                raise InputError(f"the array has shape {rows.shape}; rows of x are expected")
            found = []
            for part in _parts(rows):
                body = {"x": base64.b64encode(part.tobytes()).decode()} | ({} if source is None else {"source": source})
                found += self._call("decisions", body, once=True)
            return [Answer(**each) for each in found]
        found, made = [], [_made(_ask, each) for each in asks]
        for part in _parts(made):
            found += self._call("decisions", {"decisions": part})
        return [Answer(**each) for each in found]

    def feedback(self, event_id: str, bit: int, *, source: str | None = None, verified: bool = False) -> str:
        """What came back: "accepted", "duplicate" or "late".

        Parameters
        ----------
        event_id
            Of the decision.
        bit
            1: the label was right, as far as can be told; 0: it was wrong.
        source
            Who says so; the source of the decision unless given.
        verified
            Whether the bit is certain: somebody checked.
        """
        return str(self._call("feedback", _bit(event_id, bit, source, verified))["status"])

    def feedback_many(self, bits: Iterable[Mapping[str, Any]]) -> list[str]:
        """The same for many at once; of an event that is not known, "unknown".

        Parameters
        ----------
        bits
            Arguments of `feedback` by name, a mapping each.
        """
        found: list[Any] = []
        for part in _parts([_made(_bit, each) for each in bits]):
            found += self._call("feedbacks", {"feedbacks": part})
        return [str(each["status"]) for each in found]

    def estimate(self) -> dict[str, Any]:
        """How noisy the bits are, and the true accuracy; needs a token with scope admin."""
        found: dict[str, Any] = self._call("estimate", None)
        return found

    def close(self) -> None:
        """Let go of all connections."""
        with self._lock:
            free, self._free = self._free, []
        for _, connection in free:
            connection.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _call(self, name: str, body: Any, *, once: bool = False) -> Any:
        content = None if body is None else _json(body)
        pause = 0.1
        for attempt in range(1, self.attempts + 1):
            connection = None
            try:
                connection = self._connection()
                status, headers, answer = self._exchange(connection, name, content)
            except (OSError, http.client.HTTPException) as error:
                if connection is not None:
                    connection.close()
                if attempt == self.attempts or (once and connection is not None):  # it may have arrived
                    told = "took longer than the timeout" if isinstance(error, TimeoutError) else f"failed ({error!r})"
                    raise ServiceError(f"{name}: the service at {self._host} {told}, {attempt} time(s)") from error
                wait = pause
            else:
                if status == 200:
                    return answer
                if status not in _REFUSED_FOR_NOW or attempt == self.attempts:
                    raise ServiceError(_sentence(answer, status), status)
                after = headers.get("retry-after", "")
                wait = min(float(after), 10.0) if after.isdecimal() else pause
            time.sleep(wait * random.uniform(0.75, 1.25))
            pause = min(2.0 * pause, 2.0)
        raise AssertionError

    def _exchange(self, connection: Any, name: str, content: bytes | None) -> tuple[int, Any, Any]:
        method = "GET" if content is None else "POST"
        connection.request(method, self._path + name, content, self._headers)
        response = connection.getresponse()
        found = response.read()
        if response.will_close:
            connection.close()
        else:
            with self._lock:
                self._free.append((time.monotonic(), connection))
        try:
            answer = json.loads(found)
        except ValueError:
            if response.status == 200:
                raise ServiceError(f"{name}: the answer is not JSON; is this a Fliptron service?", 200) from None
            answer = None
        return response.status, response.headers, answer

    def _connection(self) -> http.client.HTTPConnection:
        with self._lock:
            while self._free:
                since, connection = self._free.pop()
                if time.monotonic() - since < _IDLE:
                    return connection
                connection.close()
        connection = (
            http.client.HTTPSConnection(
                self._host, self._port, timeout=self.timeout, context=ssl.create_default_context()
            )
            if self._secure
            else http.client.HTTPConnection(self._host, self._port, timeout=self.timeout)
        )
        connection.connect()
        return connection


def _ask(features: Any, eligible: Any = None, key: str | None = None, source: Any = None, baseline: Any = None) -> Any:
    told = {"eligible": None if eligible is None else list(eligible), "source": source, "baseline": baseline}
    values = dict(features) if isinstance(features, Mapping) else list(features)
    made = {"features": values, "key": key or uuid.uuid4().hex}
    return made | {name: value for name, value in told.items() if value is not None}


def _bit(event_id: str, bit: int, source: str | None = None, verified: bool = False) -> Any:
    made: dict[str, Any] = {"event_id": event_id, "bit": int(bit) if bit in (0, 1) else bit}
    return made | ({} if source is None else {"source": source}) | ({"verified": True} if verified else {})


def _made(make: Callable[..., Any], given: Mapping[str, Any]) -> Any:
    try:
        return make(**given)
    except TypeError as error:
        raise InputError(f"an entry of the list does not fit: {error}") from None


def _parts(items: Any) -> Any:
    return (items[start : start + MOST] for start in range(0, len(items), MOST))


def _json(body: Any) -> bytes:
    try:
        return json.dumps(body, allow_nan=False, default=_plain).encode()
    except (TypeError, ValueError) as error:
        raise InputError(f"the call cannot be written as JSON ({error}); a gap is None, and not NaN") from None


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} is neither number nor text")


def _sentence(answer: Any, status: int) -> str:
    if isinstance(answer, dict) and isinstance(answer.get("error"), str):
        return str(answer["error"])
    return f"the service answered with status {status}, and no reason"
