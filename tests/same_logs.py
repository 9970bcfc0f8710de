"""All that logs say, and whether two of them say the same."""

from __future__ import annotations

from typing import Any

import numpy as np

from fliptron import Log, Rounds
from fliptron.encoding.records import is_missing


def whole(log: Log) -> tuple[dict[str, list[Any]], Rounds, list[Any]]:
    """Records, rounds and tags of a log."""
    batches = list(log.batches())
    records = {
        name: [None if is_missing(each) else each for batch in batches for each in batch.records.columns[name].tolist()]
        for name in log.features
    }
    tags = [tag for batch in batches if batch.tags is not None for tag in batch.tags.tolist()]
    return records, Rounds.join([batch.rounds for batch in batches]), tags


def check_same(first: Log, second: Log, *, without: tuple[str, ...] = ()) -> None:
    """Two logs say the same, to the last digit."""
    assert first.labels == second.labels
    assert set(first.features) == set(second.features)
    (records, rounds, _), (again, played, _) = whole(first), whole(second)
    for name, values in records.items():
        assert again[name] == [each.isoformat() if hasattr(each, "isoformat") else each for each in values], name
    for name, column in rounds.columns().items():
        if name not in without:
            np.testing.assert_array_equal(column, played.columns()[name])
