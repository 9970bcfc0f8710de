"""Golden traces: the first 3,000 rounds of every learner on digits, as they were when checked by hand.

A change here is a change of results; run this file (`python tests/test_golden.py`) to accept it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fliptron
from fliptron.experiments.roster import PEERS, ROSTER, build, effective, settings

GOLDEN = Path(__file__).with_name("golden.json")


def trace(name: Any) -> Any:
    digits = fliptron.load("digits")
    gamma = {"gamma": 0.2} if "gamma" in settings(name) else {}
    params = effective(name, "digits", rates=(0.2, 0.4), dtype="float64", **gamma)
    learner = build(name, digits, seed=1, **params)
    run = fliptron.simulate(learner, digits, rates=(0.2, 0.4), rounds=3000 if name != "SOBA-full" else 500, seed=2)
    return {
        "mistakes": run.mistakes.tolist(),
        "greedy_mistakes": run.greedy_mistakes.tolist(),
        "positives": run.positives.tolist(),
    }


OURS = [name for name in ROSTER if name not in PEERS]


@pytest.mark.parametrize("name", OURS)
def test_trace_is_golden(name: Any) -> None:
    found, golden = trace(name), json.loads(GOLDEN.read_text())[name]
    greedy = np.subtract(found.pop("greedy_mistakes"), golden.pop("greedy_mistakes"))
    assert found == golden
    assert (
        np.abs(greedy).max() <= 1
    )  # of scores that are equal but for rounding, another processor may hold another best


if __name__ == "__main__":
    GOLDEN.write_text(json.dumps({name: trace(name) for name in OURS}) + "\n")
