"""Objects show themselves: short in a terminal, a table in a notebook, a frame, a picture."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fliptron import Dataset, Fliptron, InputError, LeastMeanSquares, Policy, audit, load, simulate


@pytest.fixture(scope="module")
def trace(digits: Any) -> Any:
    learner = LeastMeanSquares(n_classes=10, n_features=64, gamma=0.1)
    return simulate(learner, digits, rates=(0.2, 0.4), rounds=20_000, log=True)


def test_a_trace(trace: Any) -> None:
    assert repr(trace).startswith("Trace(LeastMeanSquares on digits, rates (0.2, 0.4), seed 0: error 0.")
    assert len(repr(trace)) < 120
    assert "<table>" in trace._repr_html_()
    frame = trace.to_frame()
    assert frame.rounds.iloc[-1] == 20_000
    assert frame.error.iloc[-1] == trace.error
    assert trace.plot().axes[0].get_xlabel() == "rounds"


def test_an_estimate(trace: Any) -> None:
    found = audit(trace.log)
    assert repr(found).startswith(f"Estimate({found.verdict}: rho0 0.")
    assert found.to_frame().loc["rho1", "low"] == found.intervals["rho1"][0]
    assert "95 % interval" in found._repr_html_()
    assert found.plot().axes[0].get_ylabel() == "mean bit"
    assert found.with_exploration(0.01, 10) > found.with_exploration(0.1, 10)


def test_learners_data_sets_and_policies(digits: Any) -> None:
    assert "half_life" in Fliptron(n_classes=2, n_features=2)._repr_html_()
    assert len(repr(digits)) < 100
    assert "<td>0</td>" in digits._repr_html_()
    policy = Policy(["<hats>", "shoes"], [{"age": 3, "city": "Rome"}])
    assert "&lt;hats&gt;" in policy._repr_html_()
    assert "category of 1: Rome" in policy._repr_html_()
    assert "encoded" in repr(Dataset.of_records([{"a": 1}, {"a": 2}], [0, 1]))


def test_a_data_set_is_a_frame(digits: Any) -> None:
    frame = digits.to_frame()
    assert frame.shape == (1797, 65)
    np.testing.assert_array_equal(frame.drop(columns="y").to_numpy(), digits.X)
    assert frame["y"].tolist() == digits.y.tolist()
    bytes_of = load("digits", dtype="uint8").to_frame()
    np.testing.assert_allclose(bytes_of["x20"], frame["x20"], rtol=1e-6)
    named = Dataset.of_records([{"a": 1.5}, {"a": 2.5}], ["hats", "bags"]).to_frame()
    assert (named["x1"].tolist(), named["y"].tolist()) == ([1.5, 2.5], ["hats", "bags"])
    with pytest.raises(InputError, match="digits is sparse; a data set with dense rows is expected"):
        load("digits", dtype="sparse").to_frame()
