"""What earlier versions wrote is opened, or refused in one sentence that says what to do.

`tests/data/VERSION.zip` holds what the code of that version left behind: learners that played 50 rounds on iris, a part
of a results folder and, since there is a service, its journal. Those of 0.1.0 are of commit 98ff8e4, the last of that
version; those of 0.2.0.dev0 of 5696b01, the first of 0.2, and its journal of c7921c0, whose form was not released; all
of 0.2.0 of 81c5445.

    python tests/test_upgrade.py    # keeps what this version leaves behind, for the tests of the next
"""

from __future__ import annotations

import asyncio
import itertools
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest

import fliptron
from fliptron import InputError, Learner, Log, load, simulate
from fliptron.experiments.plan import Spec
from fliptron.experiments.runner import play
from fliptron.results import Results
from fliptron.service.desk import Desk
from fliptron.service.export import exported
from fliptron.service.settings import ModelSettings
from fliptron.service.sqlite import Journal
from serving import serving, settings

DATA = Path(__file__).parent / "data"
OPENED = {
    "0.1.0": {"BPA", "Banditron", "LeastMeanSquares", "Perceptron", "RCNBF"},
    "0.2.0.dev0": {
        "BPA", "Banditron", "Confidit", "LeastMeanSquares", "Perceptron", "RCNBF", "RidgeRegression", "SOBA",
    },
    "0.2.0": {
        "AveragedRCNBF", "BPA", "Banditron", "Confidit", "LeastMeanSquares", "Perceptron", "RCINE", "RCNBF",
        "RidgeRegression", "SOBA",
    },
}  # fmt: skip
"""The learners of each version that go on today; CHANGELOG.md says so."""
SETTINGS: dict[str, Any] = {
    "RCINE": {"refresh": 300},
    "RCNBF": {"rates": (0.2, 0.4)},
    "AveragedRCNBF": {"rates": (0.2, 0.4)},
    "SOBA": {"gamma": 0.1},
}
LEARNERS = sorted({*OPENED["0.2.0.dev0"], "AveragedRCNBF", "Fliptron", "RCINE"})


@pytest.fixture(params=OPENED)
def left(request: Any, tmp_path: Path) -> Path:
    """A folder with what a version left behind, by its name."""
    with zipfile.ZipFile(DATA / f"{request.param}.zip") as kept:
        kept.extractall(tmp_path / request.param)
    return tmp_path / str(request.param)


def test_a_learner_goes_on_or_its_refusal_says_what_to_do(left: Path) -> None:
    version, x = "0.1" if left.name == "0.1.0" else left.name, np.ones(4)
    for name in LEARNERS:
        path = left / f"{name}.npz"
        if name in OPENED[left.name]:
            learner = Learner.load(path)
            assert learner.rounds == 50
            assert np.any(learner.weights)
            learner.learn(x, learner.decide(x), 1)
            continue
        with pytest.raises(InputError) as refused:
            Learner.load(path)
        assert str(refused.value).startswith(f"{path} is not a saved {name}")
        advice = f"; it was saved by version {version}: train it anew with this one, or open it with that one"
        assert str(refused.value).endswith(advice)


def test_results_are_read_or_named_and_played_again(left: Path) -> None:
    results = Results(left / "results")
    (part,) = results.folder.glob("*.parquet")
    if left.name == "0.1.0":
        assert results.ignored == [f"{part.name} holds runs of another version, which are to be played again"]
        assert play([_spec()], results, jobs=1) == 0
        assert len(results.load()) == 1
        assert part.is_file()
    else:
        assert results.ignored == []
        (run,) = results.load().itertuples()
        assert (run.learner, run.rounds, run.version) == ("RCNBF", 100, left.name)


def _spec() -> Spec:
    return Spec("iris", (0.2, 0.4), "RCNBF", 100, 0, {"gamma": 0.1})


async def _visits(path: Path, rounds: int) -> tuple[int, int]:
    """Let visitors come, each of whom answers; the model's version before, and after a new start."""
    told = settings(ModelSettings(name="shop", labels=("hats", "shoes"), features=2))
    async with serving(told, path) as client:
        before = client.office.desks["shop"].version
        for t in range(rounds):
            answer = await client.decide([1.0, t / rounds])
            await client.feedback(answer, t % 2)
    async with serving(told, path) as client:
        return before, client.office.desks["shop"].version


def _numbers(**more: Any) -> ModelSettings:
    """A model of twelve numbers, for which 0.2 drew fewer curves than there are today; silence is a bit."""
    schema = {f"n{i}": "number" for i in range(12)}
    told = {"labels": ("hats", "shoes"), "schema": schema, "silence": "negative", "wait": 1000.0}
    return ModelSettings(name="numbers", **(told | more))


async def _shoppers(path: Path, rounds: int, model: ModelSettings) -> Desk:
    """Let visitors come, of whom every other one answers; what the model is after a new start."""
    random = np.random.default_rng(rounds)
    async with serving(settings(model), path) as client:
        for t in range(rounds):
            answer = await client.decide({f"n{i}": random.standard_normal() for i in range(12)}, "numbers")
            if t % 2:
                await client.feedback(answer, 1, "numbers")
    async with serving(settings(model), path) as client:
        return client.office.desks["numbers"]


def test_a_journal_of_another_form_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    with zipfile.ZipFile(DATA / "0.2.0.dev0.zip") as kept:
        path = Path(kept.extract("journal.db", tmp_path))
    before = path.read_bytes()
    with pytest.raises(InputError) as refused:
        Journal(path)
    advice = "not of format 2: serve it with the version that wrote it"
    assert str(refused.value) == f"{path} holds a journal of another version, {advice}"
    assert path.read_bytes() == before


def test_a_journal_goes_on_although_its_learner_is_of_another_version(tmp_path: Path, caplog: Any) -> None:
    with zipfile.ZipFile(DATA / "0.2.0.zip") as kept:
        path = Path(kept.extract("journal.db", tmp_path))
    with exported(str(path), Log) as log:
        assert log.labels == ("hats", "shoes")
    assert asyncio.run(_visits(path, 5)) == (20, 25)
    assert [each.getMessage() for each in caplog.records if each.levelname == "WARNING"] == [
        "The last state of model shop is of another version: its journal is learnt anew"
    ]


class TestJournalOfNumbers:
    """20 decisions of 0.2.0 on records of 12 numbers; 10 were answered, and silence will be a bit when it is time."""

    @pytest.fixture
    def journal(self, tmp_path: Path) -> Path:
        with zipfile.ZipFile(DATA / "0.2.0.zip") as kept:
            return Path(kept.extract("numbers.db", tmp_path))

    def test_it_goes_on_with_the_curves_that_it_has(self, journal: Path) -> None:
        desk = asyncio.run(_shoppers(journal, 6, _numbers()))
        assert desk.ledger.totals["decisions"] == 26
        assert desk.learner.n_features == 154  # a new one would have 168
        assert desk.encoder is not None
        assert desk.encoder.moments[0, 0] == 26

    def test_what_silence_meant_is_not_forgotten(self, journal: Path) -> None:
        desk = asyncio.run(_shoppers(journal, 0, _numbers(silence="ignore")))
        assert desk.version == 10  # the bits that waited; the ten that were silent are none

    @pytest.mark.parametrize(
        "more", [{"labels": ("shoes", "hats")}, {"labels": ("a", "b", "c")}, {"learner": "Banditron"}]
    )
    def test_settings_of_another_model_are_refused(self, journal: Path, more: Any) -> None:
        before = journal.read_bytes()
        with pytest.raises(InputError, match=r"the journal's model 'numbers' (has the labels|is a Fliptron)"):
            asyncio.run(_shoppers(journal, 0, _numbers(**more)))
        assert journal.read_bytes() == before


def test_a_database_of_something_else_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    other = apsw.Connection(str(path))
    other.execute("CREATE TABLE mine (a)")
    other.close()
    before = path.read_bytes()
    with pytest.raises(InputError, match="is a database of something else; a journal, or a new name, is expected"):
        Journal(path)
    assert path.read_bytes() == before


def main() -> None:
    """Keep what this version leaves behind."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        for each in LEARNERS:
            learner = getattr(fliptron, each)(n_classes=3, n_features=4, seed=1, **SETTINGS.get(each, {}))
            simulate(learner, load("iris"), rates=(0.2, 0.4), rounds=50, seed=1)
            learner.save(folder / f"{each}.npz")
        play([_spec()], Results(folder / "results"), jobs=1)
        asyncio.run(_visits(folder / "journal.db", 20))
        asyncio.run(_shoppers(folder / "numbers.db", 20, _numbers()))
        for name, beside in itertools.product(("journal", "numbers"), ("-lock", "-wal", "-shm")):
            (folder / f"{name}.db{beside}").unlink(missing_ok=True)
        (folder / "results/.driver").unlink(missing_ok=True)
        kept = shutil.make_archive(str(DATA / fliptron.__version__), "zip", folder)
    sys.stdout.write(f"{kept}\n")


if __name__ == "__main__":
    main()
