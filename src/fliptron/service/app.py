"""The service over HTTP: the four hot calls by hand, everything else by Starlette.

Under `/v1/models/{m}/`, with a bearer token (scope in brackets); bodies and answers are those of
`fliptron.service.messages` and `fliptron.service.live`, errors always `{"error": "one sentence", "status": 422}`:

- POST `decide` [decide]: `Ask` → `Answer`; POST `decisions` [decide]: `AskMany` → a list of `Answer`;
- POST `feedback` [feedback]: `Feedback` → `Received`; POST `feedbacks` [feedback]: `FeedbackMany` → a list of them;
- GET `estimate` [admin]: `Noise`; GET `live` [admin]: server-sent events, `data:` one `Live` as JSON, per second;
- GET `history` [admin]: `Past`; GET `sources` [admin]: a list of `Source`; POST `sources` [admin]: `Quarantine`;
- GET `export.parquet` [admin]; GET `model.npz` [admin].

Besides: GET `/v1/models` [admin], `/metrics` [admin], `/openapi.json`, `/healthz` (the process lives), `/readyz` (it
decides), and `/`, the page, which `fliptron.service.front` opens for those who log in.

Every answer that is not an error was made after the journal had synced what it speaks of.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast

import msgspec
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response, StreamingResponse
from starlette.routing import Route

from fliptron.refusals import InputError
from fliptron.service.bodies import decoder, read_body
from fliptron.service.desk import Desk
from fliptron.service.export import export
from fliptron.service.front import Front
from fliptron.service.live import noise_of
from fliptron.service.messages import (
    BATCH_BODY,
    BODY,
    Ask,
    AskMany,
    Error,
    Feedback,
    FeedbackMany,
    ModelShown,
    Quarantine,
    Refusal,
)
from fliptron.service.metrics import metrics
from fliptron.service.office import Office
from fliptron.service.openapi import openapi
from fliptron.service.replica import Replica, Seats
from fliptron.service.settings import Settings
from fliptron.service.store import Store, StoreError, Token
from fliptron.service.tokens import Tokens

_JSON = (b"content-type", b"application/json")
_encode = msgspec.json.Encoder().encode
_log = logging.getLogger("fliptron.service")
_LONGEST = 1000  # characters of an error
_METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"]
Call = Callable[[Office, Desk, Any], Awaitable[Any]]
Handler = Callable[[Request], Awaitable[Response]]


class App:
    """An ASGI application.

    Parameters
    ----------
    settings
        What is served.
    store
        Opens the store when the server starts.
    """

    def __init__(self, settings: Settings, store: Callable[[], Store]) -> None:
        self._settings, self._open = settings, store
        self.office: Office | None = None
        """Everything that lives; None before the start."""
        self.tokens = Tokens(settings.tokens)
        self.front = Front()
        """The page's door."""
        self._prepared: Callable[[], Office] | None = None
        self._hot: dict[str, tuple[str, str, Any, Call, int]] = {}
        for model in settings.models:
            for name, scope, shape, call, most in _CALLS:
                self._hot[f"/v1/models/{model.name}/{name}"] = (model.name, scope, decoder(shape), call, most)
        self._rest = Starlette(
            routes=self._routes(),
            lifespan=self._lifespan,
            exception_handlers=dict.fromkeys(
                (Refusal, HTTPException, InputError, StoreError, msgspec.MsgspecError, RecursionError, Exception),
                self._refused,  # what is not named before Exception is also raised again, for the server's log
            ),
        )  # fmt: skip

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request."""
        hot = self._hot.get(scope["path"]) if scope["type"] == "http" else None
        if hot is None or scope["method"] != "POST" or self.office is None:
            await self._rest(scope, receive, send)
            return
        name, needed, decode, call, most = hot
        headers: Iterable[tuple[bytes, bytes]] = ()
        try:
            self.tokens.check(self.tokens.of(scope["headers"]), needed, name)
            answer = await call(self.office, self.office.desks[name], decode(await read_body(receive, most)))
            status, body = 200, _encode(answer)
        except Exception as error:
            status, body, told = refused(error)
            headers = [(key.encode(), value.encode()) for key, value in told.items()]
        length = (b"content-length", b"%d" % len(body))
        await send({"type": "http.response.start", "status": status, "headers": [_JSON, length, *headers]})
        await send({"type": "http.response.body", "body": body})

    def prepare(self) -> Callable[[], Office]:
        """Open the store and the models, which may be refused; the server's start goes on from there."""
        store = self._open()
        try:
            self.tokens = self.front.tokens = Tokens([*self._settings.tokens, *store.tokens()])
            self.front.key = store.secret
            self._prepared = self._opened(store)
        except BaseException:
            store.close()
            raise
        return self._prepared

    def _opened(self, store: Store) -> Callable[[], Office]:
        models, most = self._settings.models, self._settings.queue
        if store.shared:
            return partial(Replica, Seats(models, cast(Any, store)), most)
        return partial(Office, store, [Desk.opened(each, store) for each in models], most)

    @asynccontextmanager
    async def _lifespan(self, _: Any) -> AsyncIterator[None]:
        prepared, self._prepared = self._prepared or self.prepare(), None
        self.office = prepared()
        try:
            yield
        finally:
            office, self.office = self.office, None
            await office.close()

    def _routes(self) -> list[Any]:
        top = "/v1/models/{model}/"
        calls: dict[str, tuple[Handler, tuple[str, ...]]] = {
            "/healthz": (self._healthz, ("GET",)),
            "/readyz": (self._readyz, ("GET",)),
            "/metrics": (self._metrics, ("GET",)),
            "/openapi.json": (self._openapi, ("GET",)),
            "/v1/models": (self._models, ("GET",)),
            f"{top}estimate": (self._estimate, ("GET",)),
            f"{top}live": (self._live, ("GET",)),
            f"{top}history": (self._history, ("GET",)),
            f"{top}export.parquet": (self._export, ("GET",)),
            f"{top}model.npz": (self._model, ("GET",)),
            f"{top}sources": (self._sources, ("GET", "POST")),
            **{f"{top}{name}": (self._no_model, ("POST",)) for name, *_ in _CALLS},
        }
        routes: list[Any] = [Route(path, _only(call, ways), methods=_METHODS) for path, (call, ways) in calls.items()]
        routes.append(Route("/v1/{rest:path}", self._nothing, methods=_METHODS))
        return [*routes, *self.front.routes()]

    def _ready(self) -> Office:
        if self.office is None:
            raise Refusal(503, "the service is not ready yet; try again in a second")
        return self.office

    def _desk(self, request: Request, scope: str) -> tuple[Office, Desk]:
        self.allowed(request, scope, request.path_params["model"])
        office = self._ready()
        desk = office.desks.get(request.path_params["model"])
        if desk is None:
            raise Refusal(404, f"no model is called {request.path_params['model']!r}")
        return office, desk

    def allowed(self, request: Request, scope: str, model: str | None = None) -> Token:
        """The token of a request, by its header or the page's cookie; refuses what it does not allow."""
        token = self.tokens.of(request.headers.raw) or self.front.of(request)
        return self.tokens.check(token, scope, model)

    async def _nothing(self, request: Request) -> Response:
        raise Refusal(404, f"there is nothing at {request.url.path[:100]!r}; /openapi.json says what there is")

    async def _no_model(self, request: Request) -> Response:
        self._ready()
        self.allowed(request, "decide")
        raise Refusal(404, f"no model is called {request.path_params['model']!r}")

    async def _healthz(self, request: Request) -> Response:
        return _answered({"status": "alive"})

    async def _readyz(self, request: Request) -> Response:
        self._ready()
        return _answered({"status": "ready"})

    async def _models(self, request: Request) -> Response:
        self.allowed(request, "admin")
        desks = self._ready().desks.values()
        return _answered([
            ModelShown(desk.name, type(desk.learner).__name__, desk.labels, desk.version) for desk in desks
        ])  # fmt: skip

    async def _metrics(self, request: Request) -> Response:
        self.allowed(request, "admin")
        office = self._ready()
        told = metrics(await office.lives(), office.clerk.commits, office.clerk.failures)
        return Response(told, media_type="text/plain; version=0.0.4")

    async def _openapi(self, request: Request) -> Response:
        return _answered(openapi([model.name for model in self._settings.models]))

    async def _export(self, request: Request) -> Response:
        office, desk = self._desk(request, "admin")
        folder = tempfile.mkdtemp(prefix="fliptron-")
        path, clean = Path(folder) / f"{desk.name}.parquet", BackgroundTask(shutil.rmtree, folder, ignore_errors=True)
        try:
            await asyncio.to_thread(export, office.store, desk.number, desk.labels, path)
        except BaseException as error:
            shutil.rmtree(folder, ignore_errors=True)
            if isinstance(error, InputError):  # there is nothing yet, or no DuckDB
                raise Refusal(409, str(error)) from None
            raise
        media = "application/vnd.apache.parquet"
        return FileResponse(path, filename=path.name, media_type=media, background=clean)

    async def _model(self, request: Request) -> Response:
        _, desk = self._desk(request, "admin")
        name = f'attachment; filename="{desk.name}.npz"'
        return Response(desk.content(), media_type="application/octet-stream", headers={"content-disposition": name})

    async def _estimate(self, request: Request) -> Response:
        _, desk = self._desk(request, "admin")
        return _answered(noise_of(desk))

    async def _history(self, request: Request) -> Response:
        _, desk = self._desk(request, "admin")
        return _answered(desk.ledger.history.past())

    async def _live(self, request: Request) -> Response:
        office, desk = self._desk(request, "admin")

        async def events() -> AsyncIterator[bytes]:
            queue = office.watch(desk)
            try:
                yield b"data: " + _encode(office.live(desk)) + b"\n\n"
                while self.office is not None:
                    try:
                        live = await asyncio.wait_for(queue.get(), 5.0)
                    except TimeoutError:
                        yield b": still here\n\n"
                        continue
                    if live is None:
                        return
                    yield b"data: " + _encode(live) + b"\n\n"
            finally:
                office.unwatch(desk, queue)

        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        return StreamingResponse(events(), media_type="text/event-stream", headers=headers)

    async def _sources(self, request: Request) -> Response:
        office, desk = self._desk(request, "admin")
        if request.method == "POST":
            body = decoder(Quarantine)(await read_body(request.receive, BODY))
            await office.quarantine(desk, body.source, body.quarantined, body.reason)
        return _answered(desk.sources.shown())

    async def _refused(self, request: Request, error: Exception) -> Response:
        status, body, headers = refused(error)
        return Response(body, status, headers, "application/json")


def _only(call: Handler, methods: tuple[str, ...]) -> Handler:
    """A call that refuses other methods in our shape."""

    async def answer(request: Request) -> Response:
        if request.method not in methods:
            allowed = {"allow": ", ".join(methods)}
            raise Refusal(405, f"{request.method} does not fit here; {' or '.join(methods)} is expected", allowed)
        return await call(request)

    return answer


def refused(error: Exception) -> tuple[int, bytes, dict[str, str]]:
    """Status, body and headers of what went wrong."""
    headers: dict[str, str] = {}
    match error:
        case Refusal():
            status, message, headers = error.status, error.message, error.headers
        case InputError():
            status, message = 422, str(error)
        case StoreError():
            status, message, headers = error.status, str(error), {"retry-after": "1"}
        case msgspec.ValidationError():
            status, message = 422, f"the body does not fit: {error}"
            if "enum value" in message:  # of requests, only a bit has so few
                message += "; 0 or 1 is expected"
        case msgspec.DecodeError() | RecursionError():
            status, message = 400, f"the body is not JSON as expected: {error}"
        case HTTPException():
            status, message = error.status_code, f"{error.detail}; /openapi.json says what there is"
            headers = dict(error.headers or {})
        case _:
            _log.error("a request failed", exc_info=error)
            status, message = 500, "something went wrong here; the server's log says what"
    if len(message) > _LONGEST:  # it may quote what was sent
        message = f"{message[: _LONGEST // 2]} … {message[-_LONGEST // 2 :]}"
    return status, _encode(Error(message, status)), headers


def _answered(value: Any) -> Response:
    return Response(_encode(value), media_type="application/json", headers={"cache-control": "no-store"})


async def _feedbacks(office: Office, desk: Desk, body: FeedbackMany) -> Any:
    return await office.feedback_many(desk, body.feedbacks)


_CALLS: tuple[tuple[str, str, type, Call, int], ...] = (
    ("decide", "decide", Ask, Office.decide, BODY),
    ("decisions", "decide", AskMany, Office.decide_many, BATCH_BODY),
    ("feedback", "feedback", Feedback, Office.feedback, BODY),
    ("feedbacks", "feedback", FeedbackMany, _feedbacks, BATCH_BODY),
)
