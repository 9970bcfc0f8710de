"""How x and labels are kept: as bytes of float32 and int32."""

from __future__ import annotations

from typing import Any

import numpy as np

from fliptron.arrays import SparseRow
from fliptron.learners.base import Learner


def pack(x: Any, dtype: str) -> tuple[Any, bytes]:
    """x rounded to float32, in the learner's precision; and its bytes."""
    if isinstance(x, SparseRow):
        small = x.values.astype(np.float32)
        return SparseRow(x.indices, small.astype(dtype)), x.indices.tobytes() + small.tobytes()
    small = x.astype(np.float32)
    return small.astype(dtype), small.tobytes()


def unpack(packed: bytes, sparse: bool, learner: Learner) -> Any:
    """x from bytes."""
    if not sparse:
        return np.frombuffer(packed, np.float32).astype(learner._dtype)
    half = len(packed) // 2
    values = np.frombuffer(packed, np.float32, offset=half).astype(learner._dtype)
    return SparseRow(np.frombuffer(packed[:half], np.int32).copy(), values)


def eligible_of(packed: bytes | None) -> Any:
    """Labels from bytes."""
    if packed is None:
        return None
    return memoryview(packed).cast("i").tolist()
