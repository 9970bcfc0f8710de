"""How the service is started: store, first token, server."""

from __future__ import annotations

import gc
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import uvicorn

from fliptron.refusals import InputError
from fliptron.service.app import App
from fliptron.service.settings import SCOPES, Settings, in_database
from fliptron.service.sqlite import Journal
from fliptron.service.store import Store, StoreError
from fliptron.service.tokens import new_token


def open_store(address: str) -> Store:
    """The journal at a path, or the database at an address."""
    if in_database(address):
        try:
            from fliptron.service.postgres import Postgres  # noqa: PLC0415
        except ImportError:
            raise InputError("a journal in PostgreSQL needs psycopg: `pip install 'fliptron[postgres]'`") from None
        return Postgres(address)
    return Journal(address)


def run(
    settings: Settings,
    say: Callable[[str], Any],
    *,
    started: Callable[[App, str], Any] | None = None,
    stopping: Callable[[], Any] | None = None,
) -> None:
    """Serve until told to stop.

    Parameters
    ----------
    settings
        What, and where.
    say
        Called with sentences for the operator.
    started
        Called with the application and its address, once it answers.
    stopping
        Called when it is told to stop, while it still answers.
    """
    with _listen(settings.host, settings.port) as listening:
        if not in_database(settings.store) and not os.path.exists(settings.store):
            for model in settings.models:
                model.build()  # one that is refused leaves no journal behind, and no token
        app = App(settings, lambda: _with_token(open_store(settings.store), settings, say))
        gc.disable()  # what is made until it answers stays
        try:
            app.prepare()
        except StoreError as error:
            raise InputError(str(error)) from None
        finally:
            gc.freeze()
            gc.enable()
        host, port = listening.getsockname()[:2]
        address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        names = ", ".join(model.name for model in settings.models)

        def ready() -> None:
            say(f"Serving {names} at {address} (Ctrl-C stops)")
            if started is not None:
                started(app, address)

        def ending() -> None:
            if app.office is not None:
                app.office.stop_watching()
            if stopping is not None:
                stopping()

        server = _Server(
            uvicorn.Config(
                app, loop="uvloop", http="httptools", lifespan="on", log_level="warning", access_log=False,
                server_header=False, date_header=False, timeout_graceful_shutdown=5,
            ),
            ready,
            ending,
        )  # fmt: skip
        with suppress(KeyboardInterrupt):  # Ctrl-C is how it ends: by then everything is written
            server.run(sockets=[listening])


def _with_token(store: Store, settings: Settings, say: Callable[[str], Any]) -> Store:
    """See that there is a token at all."""
    if not settings.tokens and not store.tokens():
        text, token = new_token("first", SCOPES)
        store.add_token(token)
        say(f"Token for everything, shown this once: {text}")
    return store


class _Server(uvicorn.Server):
    """Says when it is ready, and when it stops."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], Any], ending: Callable[[], Any]) -> None:
        super().__init__(config)
        self._tell, self._ending = ready, ending

    async def startup(self, sockets: Any = None) -> None:
        """Listen, and say so."""
        await super().startup(sockets)
        if self.started:
            self._tell()

    async def shutdown(self, sockets: Any = None) -> None:
        """Let go of those who only watch, and end."""
        self._ending()
        await super().shutdown(sockets)


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        raise InputError(f"{host}:{port} cannot be listened at ({error.strerror})") from None
    return listening
