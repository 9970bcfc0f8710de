"""Learners of other libraries among ours: they learn, repeat themselves, and take late bits."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fliptron import Dataset, Decision, InputError, load, simulate
from fliptron.checks import repeats_itself
from fliptron.experiments.plan import grid, read_plan
from fliptron.experiments.roster import PEERS, ROSTER, build, effective

NEW = [name for name in PEERS if name != "VowpalWabbit"]
SETTINGS: dict[str, dict[str, Any]] = {"Coba-SquareCB": {"strength": 100.0}, "Bayesian-LinTS": {"beta": 4.0}}


def easy() -> Any:
    random = np.random.default_rng(0)
    y = random.integers(3, size=300)
    return Dataset.of(np.eye(3, 4)[y] + 0.05 * random.normal(size=(300, 4)), y, name="easy")


@pytest.mark.parametrize("name", NEW)
def test_a_peer_learns_an_easy_thing(name: Any) -> None:
    data = easy()
    params = effective(name, "easy", rates=(0.0, 0.0), dtype="float64", **SETTINGS.get(name, {}))
    trace = simulate(build(name, data, seed=1, **params), data, rounds=400, seed=1)
    late = (trace.mistakes[-1] - np.interp(200, trace.rounds, trace.mistakes)) / 200
    assert late < 0.2
    assert trace.params["n_classes"] == 3


@pytest.mark.parametrize("name", NEW)
def test_a_peer_obeys_what_can_be_asked_of_it(name: Any) -> None:
    make = partial(ROSTER[name], **SETTINGS.get(name, {}))
    repeats_itself(make)
    learner = make(n_classes=4, n_features=6, seed=1)
    x = np.ones(6)
    decisions = [learner.decide(x * i) for i in range(3)]
    for i in (2, 0, 1):
        learner.learn(x * i, Decision(*decisions[i]), i % 2)
    with pytest.raises(ValueError, match="features; 6 are expected"):
        learner.decide(x[:-1])


def test_sparse_rows_are_taken_too() -> None:
    import scipy.sparse as sp

    learner = ROSTER["River-LinUCB"](n_classes=2, n_features=3)
    learner.learn(sp.csr_array([[0.0, 1.0, 0.0]]), learner.decide(sp.csr_array([[0.0, 1.0, 0.0]])), 1)


@pytest.mark.parametrize(
    ("name", "setting", "words"),
    [
        ("River-LinUCB", {"beta": 0.0}, "beta is 0.0; a number above 0"),
        ("Coba-LinUCB", {"kind": "LinOFUL"}, "kind is 'LinOFUL'; 'LinUCB', 'LinTS' or 'SquareCB' is expected"),
        ("Bayesian-LinTS", {"policy": "greedy"}, "policy is 'greedy'; 'Thompson' or 'UCB' is expected"),
    ],
)
def test_wrong_settings_are_refused(name: Any, setting: Any, words: Any) -> None:
    with pytest.raises(InputError, match=words):
        ROSTER[name](n_classes=2, n_features=2, **setting)


def test_a_plan_knows_the_version_of_a_peer() -> None:
    for name, package in PEERS.items():
        (spec,) = grid(datasets=["iris"], rates=[(0, 0)], learners={name: {}}, rounds=10, seeds=[0])
        assert not spec.code.endswith("none"), package


def test_the_plan_of_the_docs_names_them_all(tmp_path: Path) -> None:
    page = Path(__file__).parents[1] / "docs/adapters.md"
    (learners,) = re.findall(r"```toml\n(.*?)```", page.read_text(encoding="utf-8"), re.S)
    head = '[[grid]]\ndatasets = ["iris"]\nrates = [[0.0, 0.0]]\nrounds = 10\nseeds = 1\n'
    (tmp_path / "plan.toml").write_text(head + learners)
    found = {spec.learner for spec in read_plan(tmp_path / "plan.toml")}
    assert found == {name for name in NEW if "Fliptron" not in name}


def test_ours_through_an_adapter_is_ours() -> None:
    data = load("iris")
    errors = {
        name: simulate(ROSTER[name](n_classes=3, n_features=4, seed=1), data, rounds=300, seed=1).mistakes.tolist()
        for name in ("Fliptron", "River-Fliptron", "Coba-Fliptron")
    }
    assert errors["Fliptron"] == errors["River-Fliptron"] == errors["Coba-Fliptron"]
