"""How drills and measurements ask the service: one connection over loopback, as little of our own work as possible."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HOST = "127.0.0.1"


def used(pid: int) -> float:
    """Seconds of processor time that a process has used so far."""
    told = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(told[11]) + int(told[12])) / os.sysconf("SC_CLK_TCK")


class Refused(Exception):  # noqa: N818
    """An answer that is no success."""

    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(f"{status}: {body[:200]!r}")
        self.status = status


class Connection:
    """One connection, kept open."""

    def __init__(self, port: int, token: str, model: str) -> None:
        self._port, self._token, self._model = port, token.encode(), model.encode()
        self._reader: Any = None

    async def open(self) -> Connection:
        self._reader, self._writer = await asyncio.open_connection(HOST, self._port)
        return self

    def close(self) -> None:
        self._writer.close()

    async def post(self, call: bytes, body: bytes) -> bytes:
        return await self._ask(b"POST", call, body)

    async def get(self, call: bytes) -> bytes:
        return await self._ask(b"GET", call, b"")

    async def _ask(self, method: bytes, call: bytes, body: bytes) -> bytes:
        head = b"%s /v1/models/%s/%s HTTP/1.1\r\nhost: x\r\nauthorization: Bearer %s\r\ncontent-length: %d\r\n\r\n"
        self._writer.write(head % (method, self._model, call, self._token, len(body)) + body)
        told: bytes = await self._reader.readuntil(b"\r\n\r\n")
        at = told.lower().index(b"content-length:")
        content: bytes = await self._reader.readexactly(int(told[at + 15 : told.index(b"\r", at)]))
        status = int(told[9:12])
        if status != 200:
            raise Refused(status, content)
        return content

    async def call(self, name: str, body: Any) -> Any:
        return json.loads(await self.post(name.encode(), json.dumps(body).encode()))


class Process:
    """`fliptron serve` in a process of its own."""

    def __init__(self, settings: Path, *more: str, environment: dict[str, str] | None = None) -> None:
        command = [sys.executable, "-m", "fliptron", "serve", str(settings), "--port", "0", *more]
        began = time.monotonic()
        self._process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(environment or {})},
            text=True,
        )
        self.said = ""
        assert self._process.stdout is not None
        while "Serving" not in self.said:
            line = self._process.stdout.readline()
            if not line:
                raise SystemExit(f"the server did not start: {self.said}")
            self.said += line
        self.seconds = time.monotonic() - began
        self.port = int(re.findall(r"127\.0\.0\.1:(\d+)", self.said)[0])
        self.pid = self._process.pid

    def kill(self) -> str:
        """What it said before, since it was ready."""
        self._process.send_signal(signal.SIGKILL)
        assert self._process.stdout is not None
        said = self._process.stdout.read()
        self._end()
        return said

    def stop(self) -> int:
        self._process.send_signal(signal.SIGINT)
        return self._end()

    def _end(self) -> int:
        code = self._process.wait(30)
        assert self._process.stdout is not None
        self._process.stdout.close()
        return code
