"""What a snapshot holds: a model's file, and what the service keeps besides."""

from __future__ import annotations

import os
import platform
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec
import numba
import numpy as np

from fliptron.learners import files
from fliptron.learners.base import Learner
from fliptron.policy import Policy

_decode = msgspec.json.Decoder().decode


def loaded(content: bytes) -> tuple[Policy | Learner, dict[str, Any]]:
    """A model, and what is said about it, from the bytes of a snapshot."""
    with tempfile.TemporaryDirectory(prefix="fliptron-") as folder:
        path = Path(folder) / "model.npz"
        path.touch(0o600)
        path.write_bytes(content)
        with files.opened(path) as saved:
            about, service = saved.more, saved.kept("service")
        if service is not None:
            about["service"] = _decode(service)
        found: Policy | Learner = Policy.load(path) if "policy" in about else Learner.load(path)
        return found, about


def fingerprint() -> str:
    """What the last digits of a replay depend on: versions, compiler and processor."""
    processor = os.environ.get("NUMBA_CPU_NAME") or _processor()
    return f"fliptron {version('fliptron')}, numba {numba.__version__}, numpy {np.__version__}, {processor}"


def _processor() -> str:
    import llvmlite.binding as llvm  # noqa: PLC0415  # loaded by Numba anyway

    return f"{llvm.get_host_cpu_name()}, {platform.machine()}"
