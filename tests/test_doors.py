"""The doors: what is loaded, what is installed, and how the command line ends when the world is unkind."""

from __future__ import annotations

import ast
import os
import resource
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import fliptron
from fliptron.cli.group import COMMANDS, commands

PLAN = '[[grid]]\ndatasets = ["iris"]\nrates = [[0.2, 0.4]]\nrounds = 100\nseeds = 1\nlearners.RCNBF = {}\n'


def python(code: Any, **options: Any) -> Any:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False, **options
    )


def cpu(*command: Any) -> Any:
    """The least CPU seconds of several runs of a command."""
    found = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *command], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(found)


class TestLoading:
    def test_help_and_version_cost_no_more_than_three_numpys(self) -> None:
        numpy = cpu("-c", "import numpy")
        for word in ("--help", "--version"):
            assert cpu("-m", "fliptron", word) < 3 * numpy

    def test_importing_loads_nothing_else(self) -> None:
        told = python("import sys, fliptron; print([m for m in sys.modules if m.split('.')[0] in ('numpy', 'numba')])")
        assert told.stdout.strip() == "[]"

    def test_listing_data_loads_no_laboratory(self) -> None:
        heavy = ("numba", "matplotlib", "pandas", "duckdb", "sklearn", "torch")
        code = f"""
            import sys
            sys.argv = ["fliptron", "data", "--json"]
            from fliptron.cli import main
            try:
                main()
            except SystemExit:
                print([name for name in {heavy!r} if name in sys.modules], file=sys.stderr)
        """
        assert python(code).stderr.strip() == "[]"

    def test_a_server_loads_no_client_and_no_laboratory(self) -> None:
        heavy = (
            "fliptron.service.client",
            "scipy.special",
            "scipy.sparse",
            "matplotlib",
            "pandas",
            "duckdb",
            "sklearn",
            "psycopg",
        )
        told = python(f"import sys, fliptron.cli.serve; print([name for name in {heavy!r} if name in sys.modules])")
        assert told.stdout.strip() == "[]"

    def test_every_name_is_there_and_every_command(self) -> None:
        for name in fliptron.__all__:
            assert getattr(fliptron, name).__name__ == name
        assert set(fliptron.__all__) <= set(dir(fliptron))
        with pytest.raises(AttributeError, match="no attribute 'nothing'"):
            fliptron.nothing  # noqa: B018
        for name in COMMANDS:
            assert CliRunner().invoke(commands, [name, "--help"]).exit_code == 0
        assert CliRunner().invoke(commands, ["nothing"]).exit_code == 2

    def test_type_checkers_see_the_names_that_python_sees(self) -> None:
        tree = ast.parse(Path(fliptron.__file__).read_text())
        (block,) = (node for node in tree.body if isinstance(node, ast.If))
        imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
        seen = {alias.name: node.module for node in imports for alias in node.names}
        assert seen == fliptron._MODULES

    def test_a_function_keeps_its_name_when_modules_are_loaded(self) -> None:
        told = python(
            "import fliptron.simulation, fliptron.auditing, fliptron; print(fliptron.simulate, fliptron.audit)"
        )
        assert "<function simulate" in told.stdout
        assert "<function audit" in told.stdout


class TestExtras:
    BLOCK = """
        import sys
        class Gone:
            def find_spec(self, name, path=None, target=None):
                if name.split(".")[0] in {names!r}:
                    raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
        sys.meta_path.insert(0, Gone())
    """
    LAB = ("click", "duckdb", "h5py", "matplotlib", "pandas", "pooch", "rich", "sklearn")

    def without(self, names: Any, code: Any) -> Any:
        return python(textwrap.dedent(self.BLOCK.format(names=names)) + textwrap.dedent(code))

    def test_a_learner_needs_the_core_only(self, tmp_path: Path) -> None:
        done = self.without((*self.LAB, "torch", "distributed", "vowpalwabbit"), f"""
            import numpy as np
            from fliptron import Dataset, Fliptron, Learner, audit, check_learner, simulate
            learner = Fliptron(n_classes=3, n_features=4, seed=1)
            x = np.ones(4)
            learner.learn(x, learner.decide(x), 1)
            learner.save({str(tmp_path / "l.npz")!r})
            assert Learner.load({str(tmp_path / "l.npz")!r}).decide(x) == learner.decide(x)
            data = Dataset.of(np.eye(4)[:3], [0, 1, 2])
            log = simulate(learner, data, rates=(0.1, 0.1), rounds=2000, log=True).log
            print(audit(log).verdict, learner.estimate().verdict)
        """)  # fmt: skip
        assert done.returncode == 0, done.stderr

    @pytest.mark.parametrize(
        ("code", "words"),
        [
            ("from fliptron import load; load('digits')", "pip install 'fliptron[lab]'"),
            ("from fliptron import read_log; read_log('x.csv')", "pip install 'fliptron[lab]'"),
            ("import fliptron.results", "pip install 'fliptron[lab]'"),
            ("from fliptron import NREst; NREst(n_classes=3, hidden=(4,))", "pip install 'fliptron[torch]'"),
            ("from fliptron.experiments.vowpal import VowpalWabbit; VowpalWabbit(n_classes=2, n_features=2)",
             "pip install 'fliptron[peers]'"),
            ("import fliptron.adapters.sklearn", "scikit-learn is not installed"),
            ("import fliptron.adapters.river", "river is not installed; get it with: pip install 'fliptron[peers]'"),
            ("import fliptron.adapters.coba", "coba is not installed; get it with: pip install 'fliptron[peers]'"),
            ("from fliptron.experiments.peers import RiverLinUCB as R; R(n_classes=2, n_features=2)", "river is not"),
            ("from fliptron.experiments.peers import CobaLearner as C; C(n_classes=2, n_features=2)", "coba is not"),
            ("from fliptron.experiments.peers import BayesianBandits as B; B(n_classes=2, n_features=2)",
             "bayesianbandits is not installed"),
        ],
    )  # fmt: skip
    def test_a_missing_extra_is_named_in_one_sentence(self, code: Any, words: Any) -> None:
        done = self.without((*self.LAB, "torch", "vowpalwabbit", "river", "coba", "bayesianbandits"), code)
        assert words in done.stderr.splitlines()[-1]
        assert "InputError" in done.stderr.splitlines()[-1]

    @pytest.mark.parametrize(
        ("library", "inside", "name"),
        [("sklearn", "sklearn.utils.validation", "validate_data"), ("river", "river.bandit.base", None),
         ("coba", "coba.primitives", "DiscreteReward")],
    )  # fmt: skip
    def test_a_version_that_lacks_something_is_named(self, library: str, inside: str, name: str | None) -> None:
        """Such as scikit-learn before 1.6, which has no `validate_data`."""
        if name is None:
            code = self.BLOCK.format(names=()).replace('name.split(".")[0] in ()', f"name == {inside!r}")
        else:
            code = f"import {inside} as inside; del inside.{name}"
        done = python(textwrap.dedent(code) + f"\nimport fliptron.adapters.{library}")
        package = {"sklearn": "scikit-learn"}.get(library, library)
        told = done.stderr.splitlines()[-1]
        assert f"InputError: {package} {version(package)} lacks what is needed here (" in told
        assert "get another version with: pip install -U 'fliptron[" in told

    @pytest.mark.parametrize("gone", [("click",), ("rich",), ("duckdb", "pandas"), ("matplotlib",)])
    def test_the_command_line_says_what_it_lacks(self, gone: Any) -> None:
        done = self.without(gone, "import sys; sys.argv = ['fliptron', 'run']; from fliptron.cli import main; main()")
        assert done.returncode == 2
        assert "pip install 'fliptron[lab]'" in done.stderr
        assert "Traceback" not in done.stderr


class TestUnkindWorld:
    @pytest.mark.parametrize("module", ["fliptron.cli.group", "fliptron.cli.run"])
    def test_ctrl_c_while_loading(self, module: Any) -> None:
        code = f"""
            import os, signal, sys
            class Slow:
                def find_spec(self, name, path=None, target=None):
                    if name == {module!r}:
                        os.kill(os.getpid(), signal.SIGINT)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            sys.meta_path.insert(0, Slow())
            sys.argv = ["fliptron", "run"]
            from fliptron.cli import main
            main()
        """
        done = python(code)
        assert (done.returncode, done.stderr.strip()) == (130, "Interrupted.")

    @pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
    @pytest.mark.parametrize(
        "words", [["--help"], ["data"], ["data", "--json"], ["advise", "--rounds", "9", "--classes", "3"]]
    )
    def test_a_full_device(self, words: Any) -> None:
        with open("/dev/full", "w") as full:
            done = subprocess.run(
                [sys.executable, "-m", "fliptron", *words], stdout=full, stderr=subprocess.PIPE, text=True, check=False
            )
        assert done.returncode == 1
        assert done.stderr.strip() == "Error: the output cannot be written (No space left on device)"

    def test_a_reader_who_leaves(self) -> None:
        done = subprocess.run(
            f"{sys.executable} -m fliptron data --json | head -c 1",
            shell=True,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stderr == ""

    def test_names_from_files_are_only_names(self, tmp_path: Path) -> None:
        for name in (r"$\frac$.csv", "[red]x.csv", "[bold].csv", "${a}$.csv", "<b>&.csv"):
            path = tmp_path / name
            path.write_text("1,2,a\n2,1,b\n" * 5)
            arguments = ["run", "--dataset", str(path), "--learner", "Banditron", "--rounds", "50", "--seeds", "2"]
            result = CliRunner().invoke(commands, [*arguments, "--out", str(tmp_path / "out")])
            assert result.exit_code == 0, result.output
            assert path.stem in result.stdout
            page = (tmp_path / "out" / "report.html").read_text()
            assert "<b>&" not in page

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (
                ["run", "--dataset", "synsep", "--rows", "1e12"],
                "rows is 1000000000000; a whole number of at least 1 and",
            ),
            (["results", "--folder", ".", "--sql", ""], "the query is empty"),
            (["results", "--folder", "nowhere"], "nowhere is not a folder with results; `play` makes"),
            (["run", "--cluster", "tcp://x", "--log"], "a cluster's workers keep no logs"),
        ],
    )
    def test_what_cannot_be_is_one_sentence(self, arguments: Any, words: Any, tmp_path: Path) -> None:
        result = CliRunner().invoke(
            commands, [*arguments, *(["--out", str(tmp_path)] if arguments[0] == "run" else [])]
        )
        assert result.exit_code == 2
        assert words in result.stderr

    def test_a_quantity_as_label_is_asked_about(self, tmp_path: Path) -> None:
        lines = [f"{i % 7},{i % 5},{i * 1.37:.2f}" for i in range(300)]
        (tmp_path / "prices.csv").write_text("\n".join(lines))
        result = CliRunner().invoke(
            commands, ["run", "--dataset", str(tmp_path / "prices.csv"), "--out", str(tmp_path)]
        )
        assert result.exit_code == 2
        assert "is this a quantity to predict?" in result.stderr

    @pytest.mark.parametrize("greeting", [b"", b"SSH-2.0-OpenSSH_9.2\r\n", b"HTTP/1.1 400 Bad Request\r\n\r\n", None])
    def test_a_port_that_is_not_dask(self, greeting: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A server that hangs up, that talks of something else, or that says nothing at all."""
        pytest.importorskip("distributed")
        monkeypatch.setattr("fliptron.cluster._PATIENCE", 2.0)
        (tmp_path / "plan.toml").write_text(PLAN)
        with socket.create_server(("127.0.0.1", 0)) as server:

            def answer() -> None:
                there, _ = server.accept()
                if greeting is None:
                    time.sleep(4.0)
                else:
                    there.sendall(greeting)
                there.close()

            threading.Thread(target=answer, daemon=True).start()
            address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
            began = time.monotonic()
            result = CliRunner().invoke(
                commands, ["play", str(tmp_path / "plan.toml"), "--out", str(tmp_path / "o"), "--cluster", address]
            )
        assert time.monotonic() - began < 15
        assert result.exit_code == 2
        assert f"at {address}" in result.stderr

    def test_ctrl_c_in_the_middle_of_a_plan(self, tmp_path: Path) -> None:
        (tmp_path / "plan.toml").write_text(
            PLAN.replace("rounds = 100\n", "rounds = 400_000\n").replace("= 1\n", "= 60\n")
        )
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "fliptron",
                "play",
                str(tmp_path / "plan.toml"),
                "--out",
                str(tmp_path / "o"),
                "--jobs",
                "1",
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509  # else ignored in a background job
        )
        end = time.monotonic() + 60
        while not list((tmp_path / "o").glob("*.parquet")) and time.monotonic() < end:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)
        assert process.returncode == 130
        assert "finished runs are kept; the same command goes on from here" in told
        assert "Traceback" not in told
