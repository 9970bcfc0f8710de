"""The store: honest ids, a schema, and folders that are damaged, foreign, shared or full."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest

from fliptron import InputError, source
from fliptron.experiments import plan, roster
from fliptron.experiments.plan import Spec
from fliptron.experiments.runner import about, play
from fliptron.results import SCHEMA, Results, Run

SPECS = [Spec("iris", (0.2, 0.4), "RCNBF", 100, seed, {"gamma": 0.1}) for seed in range(3)]


@pytest.fixture
def store(tmp_path: Path) -> Any:
    results = Results(tmp_path / "store")
    for spec in SPECS:  # a part for each
        assert play([spec], results, jobs=1) == 0
    return results


class TestIds:
    def test_a_changed_default_is_another_run(self, monkeypatch: pytest.MonkeyPatch) -> None:
        spec = Spec("iris", (0.2, 0.4), "LeastMeanSquares", 100, 0)
        before = spec.id

        def other(
            *,
            n_classes: Any,
            n_features: Any,
            gamma: Any = 0.01,
            step: Any = 0.3,
            dtype: Any = "float64",
            seed: Any = 0,
        ) -> Any:
            return None

        other.__module__ = "fliptron.learners.regression"
        monkeypatch.setitem(roster.ROSTER, "LeastMeanSquares", other)
        assert Spec("iris", (0.2, 0.4), "LeastMeanSquares", 100, 0).id != before

    def test_a_default_that_is_spelt_out_is_the_same_run(self) -> None:
        plain = Spec("iris", (0.2, 0.4), "RCNBF", 100, 0)
        assert plain.id == Spec("iris", (0.2, 0.4), "RCNBF", 100, 0, {"gamma": 0.2}).id
        assert plain.effective == {"gamma": 0.2, "rates": [0.2, 0.4], "dtype": "float64"}

    @pytest.mark.parametrize(
        ("module", "learners"),
        [
            ("learners.rcnbf", {"RCNBF", "RCINE", "Banditron"}),
            ("learners.regression", {"RidgeRegression"}),
            ("kernels.factors", {"RidgeRegression"}),
            ("learners.fliptron", {"Fliptron"}),
            ("kernels.loop", {"RCNBF", "RCINE", "Banditron", "RidgeRegression", "Fliptron"}),
            ("noise.plateaus", {"RCINE", "Fliptron"}),
            ("datasets.files", {"RCNBF", "RCINE", "Banditron", "RidgeRegression", "Fliptron"}),
            ("datasets.synthetic", set()),
            ("cli.run", set()),
            ("report.page", set()),
            ("learners.files", set()),
            ("output", set()),
        ],
    )
    def test_an_edit_is_another_run_of_the_learners_it_concerns(
        self, module: Any, learners: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        names = ("RCNBF", "RCINE", "Banditron", "RidgeRegression", "Fliptron")
        before = {name: Spec("iris", (0.2, 0.4), name, 100, 0).id for name in names}
        meaning = source._meaning
        monkeypatch.setattr(
            source, "_meaning", lambda each: b"edited" if each == f"fliptron.{module}" else meaning(each)
        )
        source._total.cache_clear()
        after = {name: Spec("iris", (0.2, 0.4), name, 100, 0).id for name in names}
        source._total.cache_clear()
        assert {name for name in names if before[name] != after[name]} == learners

    def test_comments_and_docstrings_do_not_matter(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        versions = ["x = 1\n", '"""Doc."""\n\nx = 1  # one\n', "x = 2\n"]
        found = []
        for text in versions:
            (tmp_path / "thing.py").write_text(text)
            source._text.cache_clear()
            monkeypatch.setattr(source, "_path", lambda module: tmp_path / "thing.py")
            found.append(source._meaning("fliptron.thing"))
        source._text.cache_clear()
        assert found[0] == found[1] != found[2]

    def test_data_counts_by_its_content(self, tmp_path: Path) -> None:
        path = tmp_path / "d.csv"
        path.write_text("1,2,a\n2,1,b\n")
        before = Spec(str(path), (0.0, 0.0), "RCNBF", 10, 0).id
        path.write_text("1,2,a\n2,2,b\n")
        assert Spec(str(path), (0.0, 0.0), "RCNBF", 10, 0).id != before
        assert len({Spec("iris", (0.0, 0.0), "RCNBF", 10, 0, raw=raw, dtype=dtype).id
                    for raw in (True, False) for dtype in ("float64", "float32")}) == 4  # fmt: skip

    def test_a_stale_result_is_not_reported(self, store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(plan, "_code", lambda learner: "another digest")
        again = [Spec(**asdict(spec)) for spec in SPECS]
        assert not {spec.id for spec in again} & store.done()


class TestSchema:
    def test_fields_are_columns(self, store: Any) -> None:
        with duckdb.connect() as database:
            (part, *_) = store.folder.glob("*.parquet")
            columns = database.execute(f"DESCRIBE SELECT * FROM '{part}'").df()
        assert list(columns.column_name) == [field.name for field in fields(Run)] == list(SCHEMA)
        assert dict(zip(columns.column_name, columns.column_type, strict=True)) == SCHEMA

    def test_runs_come_back_as_they_were(self, store: Any) -> None:
        runs = store.runs([spec.id for spec in reversed(SPECS)])
        assert [run.seed for run in runs] == [2, 1, 0]
        assert runs[0].params == SPECS[0].effective
        assert runs[0].errors[-1] == runs[0].error

    def test_an_unknown_key_is_an_error(self) -> None:
        with pytest.raises(TypeError, match="eror"):
            about(SPECS[0], eror=0.1)

    def test_parameters_are_a_query_away(self, store: Any) -> None:
        assert store.sql("SELECT DISTINCT (params->>'gamma')::DOUBLE AS gamma FROM runs").gamma.tolist() == [0.1]


class TestFolders:
    def test_a_damaged_part_is_left_alone_and_its_runs_are_played_again(self, store: Any) -> None:
        parts = sorted(store.folder.glob("*.parquet"))
        parts[0].write_bytes(parts[0].read_bytes()[:-20])
        assert len(store.done()) == 2
        (told,) = store.ignored
        assert told == f"{parts[0].name} is damaged"
        assert play(SPECS, store, jobs=1) == 0
        assert len(store.done()) == 3

    def test_foreign_files_are_not_runs(self, store: Any) -> None:
        pd.DataFrame({"id": ["x"], "error": [0.0], "failure": [None]}).to_csv(store.folder / "x.csv")
        with duckdb.connect() as database:
            database.execute(
                f"COPY (SELECT 'x' AS id, 0.5 AS error) TO '{store.folder / 'x.parquet'}' (FORMAT parquet)"
            )
        (store.folder / "y.parquet").write_text("nothing of the kind")
        assert len(store.done()) == 3
        assert sorted(store.ignored) == ["x.parquet does not hold runs", "y.parquet is damaged"]

    def test_two_drivers_are_one_too_many(self, store: Any) -> None:
        with store.driven():
            code = f"""
                from fliptron.results import Results
                with Results({str(store.folder)!r}).driven():
                    pass
            """
            done = subprocess.run(
                [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False
            )
            assert f"process {os.getpid()} is playing into {store.folder}" in done.stderr
        with store.driven():
            pass

    def test_who_drives_removes_what_a_killed_driver_left(self, store: Any) -> None:
        (store.folder / ".0123-4567.parquet.here.1.89abcdef.part").write_bytes(b"half of a par")
        with store.driven():
            assert not list(store.folder.glob(".*.part"))
        assert len(store.done()) == 3

    def test_reading_while_another_process_merges(self, store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        real, calls = store._parts, []

        def outdated() -> Any:
            calls.append(1)
            return ([store.folder / "merged-away.parquet"], []) if len(calls) < 3 else real()

        monkeypatch.setattr(store, "_parts", outdated)
        assert len(store.done()) == 3

    def test_a_folder_that_cannot_be_written_is_one_sentence(self, store: Any) -> None:
        if os.geteuid() == 0:
            limited = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
        else:
            limited = ""
            store.folder.chmod(0o500)
        code = f"""
            import signal
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            {limited}
            from fliptron.experiments.plan import Spec
            from fliptron.experiments.runner import about
            from fliptron.results import Results
            run = about(Spec("iris", (0.2, 0.4), "RCNBF", 100, 9), checkpoints=list(range(9999)))
            Results({str(store.folder)!r}).append([run])
        """
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code).strip()], capture_output=True, text=True, check=False
        )
        store.folder.chmod(0o700)
        assert "InputError" in done.stderr.splitlines()[-1]
        assert "cannot be written" in done.stderr.splitlines()[-1]
        assert not [each for each in store.folder.iterdir() if each.name.endswith(".part")]


class TestSql:
    @pytest.mark.parametrize(
        "query",
        [
            "COPY runs TO '{folder}/stolen.csv'",
            "SELECT * FROM read_csv('/etc/passwd')",
            "SELECT * FROM '{folder}/secret.csv'",
            "SELECT content FROM read_text('/etc/hostname')",
            "ATTACH '{folder}/other.db'",
            "SET enable_external_access = true",
            "INSTALL httpfs",
            "EXPORT DATABASE '{folder}/all'",
            "SELECT 1; COPY runs TO '{folder}/stolen.csv'",
            "CREATE TABLE x AS SELECT * FROM read_parquet('{folder}/*.parquet')",
        ],
    )
    def test_nothing_else_can_be_read_or_written(self, store: Any, query: Any) -> None:
        (store.folder / "secret.csv").write_text("a,b\n1,2\n")
        before = sorted(store.folder.iterdir())
        with pytest.raises(InputError, match=r"cannot be answered|asks nothing"):
            store.sql(query.format(folder=store.folder))
        assert sorted(store.folder.iterdir()) == before

    def test_a_second_query_is_not_answered_in_place_of_the_first(self, store: Any) -> None:
        with pytest.raises(InputError, match="is 2 queries; one SELECT"):
            store.sql("SELECT 1; SELECT 2")
        assert len(store.sql("SELECT 1;")) == 1

    def test_changes_do_not_last(self, store: Any) -> None:
        with pytest.raises(InputError):
            store.sql("DELETE FROM runs")
        assert len(store.load()) == 3

    @pytest.mark.parametrize("query", ["", "  \n", ";"])
    def test_no_query_is_refused(self, store: Any, query: Any) -> None:
        with pytest.raises(InputError, match=r"a SELECT is expected"):
            store.sql(query)


def test_plans_say_all_that_run_can(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(
        '[[grid]]\ndatasets = ["synsep"]\nrates = [[0.1, 0.1]]\nrounds = 50\nseeds = 1\n'
        'order = "file"\nraw = true\ndtype = "uint8"\nrows = 300\nlearners.RCNBF = {}\n'
    )
    (spec,) = plan.read_plan(tmp_path / "plan.toml")
    assert (spec.order, spec.raw, spec.dtype, spec.rows) == ("file", True, "uint8", 300)
    assert spec.effective["dtype"] == "float32"
    results = Results(tmp_path / "store")
    assert play([spec], results) == 0
    (run,) = results.runs([spec.id])
    assert run.options == {"raw": True, "dtype": "uint8", "rows": 300}
    assert json.loads(results.load().params[0])["dtype"] == "float32"
