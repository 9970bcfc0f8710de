"""What a snapshot holds: a model's file, and what the service keeps besides."""

from __future__ import annotations

import os
import platform
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec
import numba
import numpy as np

from fliptron.learners import files
from fliptron.learners.base import Learner
from fliptron.policy import Policy
from fliptron.refusals import InputError

_decode = msgspec.json.Decoder().decode


def loaded(content: bytes) -> tuple[Policy | Learner, dict[str, Any]]:
    """A model, and what is said about it, from the bytes of a snapshot."""
    with _file(content) as path:
        about = _about(path)
        return _kind(about).load(path), about


def unlearnt(content: bytes) -> tuple[Policy | Learner, dict[str, Any]]:
    """The same for the snapshot of another version, whose learner may be made otherwise: it has learnt nothing."""
    with _file(content) as path:
        about = _about(path)
        return _kind(about).unlearnt(path), about


def is_of_another_version(content: bytes) -> bool:
    """Whether another version wrote a snapshot."""
    with _file(content) as path, files.opened(path) as saved:
        return bool(saved.advice)


def labels_of(content: bytes) -> tuple[Any, ...]:
    """The labels of a model, from the bytes of a snapshot; of whatever version its learner is."""
    with _file(content) as path:
        about = _about(path)
    return tuple(about["policy"]["labels"] if "policy" in about else about["names"])


@contextmanager
def _file(content: bytes) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="fliptron-") as folder:
        path = Path(folder) / "model.npz"
        path.touch(0o600)
        path.write_bytes(content)
        try:
            yield path
        except InputError as error:
            raise InputError(str(error).replace(str(path), "the model's last state")) from None


def _kind(about: dict[str, Any]) -> type[Policy] | type[Learner]:
    return Policy if "policy" in about else Learner


def _about(path: Path) -> dict[str, Any]:
    with files.opened(path) as saved:
        about, service = saved.more, saved.kept("service")
    return about if service is None else about | {"service": _decode(service)}


def fingerprint() -> str:
    """What the last digits of a replay depend on: versions, compiler and processor."""
    processor = os.environ.get("NUMBA_CPU_NAME") or _processor()
    return f"fliptron {version('fliptron')}, numba {numba.__version__}, numpy {np.__version__}, {processor}"


def _processor() -> str:
    import llvmlite.binding as llvm  # noqa: PLC0415  # loaded by Numba anyway

    return f"{llvm.get_host_cpu_name()}, {platform.machine()}"
