"""The service without sockets: an application that runs in a test's own event loop."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np

from fliptron.service.app import App
from fliptron.service.office import Office
from fliptron.service.settings import SCOPES, ModelSettings, Settings
from fliptron.service.sqlite import Journal
from fliptron.service.tokens import new_token

TEXT, TOKEN = new_token("tests", SCOPES)
SHOP: dict[str, Any] = {
    "labels": ("bags", "hats", "shoes"),
    "schema": {"age": "number", "city": {"kind": "category", "values": ["Oslo", "Rome"]}},
}


def settings(*models: ModelSettings, **more: Any) -> Settings:
    return Settings(models=models, tokens=(TOKEN,), **more)


def shop(name: str = "shop", **more: Any) -> ModelSettings:
    return ModelSettings(name=name, **(SHOP | more))


def record(random: Any) -> dict[str, Any]:
    return {"age": float(random.integers(18, 80)), "city": str(random.choice(["Rome", "Oslo", "Bern"]))}


def run(test: Any) -> None:
    asyncio.run(test)


class Client:
    """Asks an application as a server would."""

    def __init__(self, app: App) -> None:
        self.app = app

    @property
    def office(self) -> Office:
        assert self.app.office is not None
        return self.app.office

    async def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        token: str | None = TEXT,
        chunks: Iterable[bytes] | None = None,
    ) -> tuple[int, Any, dict[str, str]]:
        """Status, what the body says, and the headers."""
        content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        parts = list(chunks) if chunks is not None else [content]
        headers = [(b"host", b"test")] + ([] if token is None else [(b"authorization", f"Bearer {token}".encode())])
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "path": path,
            "raw_path": path.encode(), "query_string": b"", "root_path": "", "scheme": "http", "headers": headers,
            "client": ("127.0.0.1", 1), "server": ("test", 80),
        }  # fmt: skip
        sent: list[Any] = []

        async def receive() -> Any:
            if not parts:
                return {"type": "http.disconnect"}
            return {"type": "http.request", "body": parts.pop(0), "more_body": bool(parts)}

        async def send(message: Any) -> None:
            sent.append(message)

        await self.app(scope, receive, send)
        told = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        found = b"".join(message.get("body", b"") for message in sent[1:])
        plain = json.loads(found) if told.get("content-type", "").startswith("application/json") else found
        return sent[0]["status"], plain, told

    async def post(self, model: str, call: str, body: Any, status: int = 200) -> Any:
        got, answer, _ = await self.ask("POST", f"/v1/models/{model}/{call}", body)
        assert got == status, answer
        return answer

    async def decide(self, features: Any, model: str = "shop", **more: Any) -> Any:
        return await self.post(model, "decide", {"features": features} | more)

    async def feedback(self, event: Any, bit: int, model: str = "shop", **more: Any) -> str:
        event_id = event if isinstance(event, str) else event["event_id"]
        found: str = (await self.post(model, "feedback", {"event_id": event_id, "bit": bit} | more))["status"]
        return found


@asynccontextmanager
async def serving(told: Settings, path: Path, journal: Any = None) -> AsyncIterator[Client]:
    """An application that has started, on the journal at a path."""
    app = App(told, lambda: journal or Journal(path))
    async with app._lifespan(None):
        yield Client(app)


def wanted(shown: dict[str, Any]) -> str:
    return "hats" if shown["city"] == "Rome" else "shoes" if shown["age"] > 50 else "bags"


def flipped(right: bool, random: Any, rates: tuple[float, float] = (0.1, 0.3)) -> int:
    return int(right != (random.random() < rates[1 if right else 0]))


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)
