"""The service does what its own description says, whatever is sent."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
import schemathesis
import uvicorn
from hypothesis import HealthCheck, Phase
from hypothesis import settings as effort
from schemathesis.specs.openapi.checks import positive_data_acceptance

from fliptron.service.app import App
from fliptron.service.openapi import openapi
from fliptron.service.settings import ModelSettings
from fliptron.service.sqlite import Journal
from serving import TEXT, settings, shop

EACH = int(os.environ.get("FLIPTRON_CASES", "100"))
"""Cases per call of the API, at most; those without a body have few. 420 makes more than 2,000, in a minute or more."""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server on loopback, in a thread of its own."""
    path: Path = tmp_path_factory.mktemp("served") / "journal.db"
    models = (shop(), ModelSettings(name="x", labels=(0, 1), features=3))
    app = App(settings(*models), lambda: Journal(path))
    config = uvicorn.Config(app, port=0, log_level="critical", lifespan="on", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve()))
    thread.start()
    while not server.started:
        threading.Event().wait(0.02)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join()


@pytest.fixture(scope="module")
def session() -> Iterator[Any]:
    with requests.Session() as opened:
        yield opened


schema = schemathesis.openapi.from_dict(openapi(["shop", "x"])).exclude(path_regex="/live$")  # which never ends


@schema.auth()
class Bearer:
    """Puts the token in; schemathesis also tries without."""

    def get(self, case: Any, context: Any) -> str:
        return TEXT

    def set(self, case: Any, data: str, context: Any) -> None:
        case.headers = {**(case.headers or {}), "Authorization": f"Bearer {data}"}


@schema.parametrize()
@effort(
    max_examples=EACH,
    deadline=None,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
    database=None,
    derandomize=True,
)
def test_every_answer_is_as_described(case: Any, address: str, session: Any) -> None:
    # What features a model takes depends on the model, and no schema of the body says that.
    known = not case.path.endswith(("/decide", "/decisions"))
    case.call_and_validate(
        base_url=address, session=session, excluded_checks=[] if known else [positive_data_acceptance]
    )


def test_the_description_names_every_call() -> None:
    told = openapi(["shop"])
    assert told["openapi"] == "3.1.0"
    assert {path.rpartition("/")[2] for path in told["paths"]} == {
        "decide", "decisions", "feedback", "feedbacks", "estimate", "live", "history", "sources", "export.parquet",
        "model.npz", "models", "metrics", "healthz", "readyz",
    }  # fmt: skip
