"""Compiled code is kept by what it is made from, and a damaged file heals."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numba
import pytest

from fliptron import source
from fliptron.kernels.compiling import Kept

# For these versions what `kernels/compiling.py` and `kernels/registers.py` use of Numba's inside was seen to work. With
# another one: run the whole suite and `make bench`, then add it here.
SEEN = ("0.68",)

PLAY = """
    import fliptron
    from fliptron import Banditron, Dataset, simulate
    learner = Banditron(n_classes=3, n_features=2, gamma=0.3, seed=1)
    trace = simulate(learner, Dataset.of([[1.0, 2.0], [2.0, 1.0], [0.0, 1.0]], [0, 1, 2]), rounds=50)
    learner.learn([1.0, 2.0], learner.decide([1.0, 2.0]), 1)
    print(trace.error, learner.weights.tolist())
"""


def test_the_version_of_numba_was_seen_to_work() -> None:
    assert numba.__version__.startswith(SEEN), f"Numba {numba.__version__} is new here; see the comment above"


@pytest.fixture
def kept(tmp_path: Path) -> Any:
    def play() -> Any:
        environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(PLAY)], env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout

    return play, tmp_path / "code"


def times(folder: Any) -> Any:
    return {path.name: path.stat().st_mtime_ns for path in folder.glob("*.code")}


def test_what_is_kept_is_used_and_what_is_damaged_is_made_again(kept: Any) -> None:
    play, folder = kept
    first = play()
    files = sorted(folder.glob("*.code"))
    assert {re.sub("-.*", "", path.name) for path in files} >= {"play", "decide_one", "learn_one", "tally"}
    contents = {path: path.read_bytes() for path in files}
    assert play() == first
    assert {path: path.read_bytes() for path in sorted(folder.glob("*.code"))} == contents
    for at, path in enumerate(files):  # truncated, emptied, one byte turned, another file's content
        damaged = bytearray(contents[path])
        damaged[len(damaged) // 2] ^= 0xFF
        path.write_bytes([contents[path][:-100], b"", bytes(damaged), b"\x80\x04nonsense" * 99][at % 4])
    assert play() == first
    for path in files:
        assert len(path.read_bytes()) > 1000


def test_a_folder_that_cannot_be_written_is_no_harm(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PLAY)],
        env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "file")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]


def path_of(function: Any, *types: Any, edited: Any = ()) -> Any:
    """Where compiled code would be kept after an edit of some modules."""

    class Target:
        def magic_tuple(self) -> Any:
            return ("this", "machine")

    meaning = source._meaning
    source._total.cache_clear()
    try:
        vars(source)["_meaning"] = lambda each: b"edited" if each in edited else meaning(each)
        return Kept(function, source._PACKAGE)._path(types, Target())
    finally:
        vars(source)["_meaning"] = meaning
        source._total.cache_clear()


def test_the_name_holds_what_it_is_made_from() -> None:
    from fliptron import RCNBF, RidgeRegression
    from fliptron.kernels import game

    rcnbf, ridge = (numba.typeof(kind(n_classes=2, n_features=2, **more).state) for kind, more in (
        (RCNBF, {"rates": (0.1, 0.1)}), (RidgeRegression, {})))  # fmt: skip
    function = vars(game)["play"].py_func
    assert path_of(function, rcnbf) != path_of(function, ridge)
    for module, concerned in (
        ("fliptron.kernels.vectors", (True, True)),
        ("fliptron.learners.rcnbf", (True, False)),
        ("fliptron.kernels.factors", (False, True)),
        ("fliptron.cli.run", (False, False)),
        ("fliptron.learners.base", (False, False)),
        ("fliptron.learners.player", (False, False)),
        ("fliptron.report.page", (False, False)),
    ):
        changed = tuple(
            path_of(function, state) != path_of(function, state, edited=(module,)) for state in (rcnbf, ridge)
        )
        assert changed == concerned, module


def test_a_text_is_parsed_once_for_all_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text, other = b"import json\nfrom fliptron.rounds import Rates, Trace\nx = 1\n", b"x = 2\n"
    first = source.Notes()
    first.keep_in(tmp_path / "sources")
    told = first.of(text)
    assert told[0] == [["json"], ["fliptron.rounds", "Rates", "Trace"]]
    first.keep()
    first.keep()
    assert [path.name for path in tmp_path.iterdir()] == ["sources"]
    later = source.Notes()
    later.keep_in(tmp_path / "sources")
    with monkeypatch.context() as patch:
        patch.setattr("ast.parse", None)
        assert later.of(text) == told
        with pytest.raises(TypeError):
            later.of(other)
        patch.setattr("sys.version", "another")
        with pytest.raises(TypeError):
            later.of(text)
    content = bytearray((tmp_path / "sources").read_bytes())
    content[content.index(told[1].encode())] ^= 1  # another digit: it would be another meaning
    (tmp_path / "sources").write_bytes(content)
    damaged = source.Notes()
    damaged.keep_in(tmp_path / "sources")
    assert damaged.of(text) == told


def test_a_users_state_is_not_kept() -> None:
    from typing import NamedTuple

    import numpy as np

    from fliptron.kernels import game

    class Theirs(NamedTuple):
        W: np.ndarray

    assert path_of(vars(game)["play"].py_func, numba.typeof(Theirs(np.zeros((2, 2))))) is None


def test_a_part_of_a_step_refuses_to_be_called_from_python() -> None:
    import numpy as np

    from fliptron.kernels import vectors

    with pytest.raises(TypeError):
        vars(vectors)["argmax"](np.ones(3), -1)


def test_a_step_may_print(capfd: pytest.CaptureFixture[str]) -> None:
    from typing import NamedTuple

    import numpy as np

    from fliptron.kernels import loop

    class Loud(NamedTuple):
        W: np.ndarray
        scores: np.ndarray

    @loop.learns(Loud)
    def _(state: Any, x: Any, label: int, greedy: int, probability: float, feedback: int) -> None:
        print("learns", feedback)  # noqa: T201

    state, one = Loud(np.zeros((2, 1)), np.zeros(2)), np.ones(1)
    zero = np.zeros(1, np.int64)
    loop.replay(state, one[None], zero, zero, one, zero + 1, 0, 1, zero, one, np.zeros((0, 1)))
    assert capfd.readouterr().out == "learns 1\n"


def test_what_may_not_be_written_to_is_no_reason_to_compile_again() -> None:
    import numpy as np

    from fliptron import Banditron
    from fliptron.kernels import loop

    made, frozen = [], np.ones(2)
    frozen.flags.writeable = False
    for x in (np.ones(2), frozen):
        learner = Banditron(n_classes=3, n_features=2)
        learner.learn(x, learner.decide(x), 1)
        learner.scores(x[None])
        made.append([len(vars(loop)[name].overloads) for name in ("decide_one", "learn_one", "score_all")])
    assert made[0] == made[1]
