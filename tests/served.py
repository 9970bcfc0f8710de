"""The service on a socket: a real server in a thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from fliptron.service.app import App
from fliptron.service.serving import _listen
from fliptron.service.settings import Settings
from fliptron.service.sqlite import Journal


@contextmanager
def served(told: Settings, path: Path, port: int = 0) -> Iterator[tuple[str, App]]:
    """The address of a service that answers, and its application."""
    app, listening = App(told, lambda: Journal(path)), _listen("127.0.0.1", port)
    server = uvicorn.Server(uvicorn.Config(app, lifespan="on", log_level="warning", timeout_graceful_shutdown=2))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        while not server.started and thread.is_alive():
            thread.join(0.02)
        assert server.started
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", app
    finally:
        if app.office is not None:
            app.office.stop_watching()
        server.should_exit = True
        thread.join(20.0)
        listening.close()
        assert not thread.is_alive()
