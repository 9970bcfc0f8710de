"""Plans: ids, grids, and files that are refused with line and field."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fliptron import InputError
from fliptron.experiments.plan import Spec, grid, read_plan

GOOD = """\
[[grid]]
datasets = ["digits", "iris"]
rates = [[0.2, 0.4], [0.0, 0.0]]
rounds = 1000
seeds = 3
learners.RCNBF.gamma = [0.1, 0.2]
learners.Fliptron = {}

[[grid]]
datasets = ["digits"]
rates = [[0.2, 0.4]]
rounds = 1000
seeds = [7]
order = "shuffle"
[grid.learners.SOBA]
gamma = 0.1
form = "diagonal"
"""


def written(tmp_path: Path, text: Any) -> Any:
    path = tmp_path / "plan.toml"
    path.write_text(text)
    return path


def test_a_plan_is_every_combination(tmp_path: Path) -> None:
    specs = read_plan(written(tmp_path, GOOD))
    assert len(specs) == 2 * 2 * 3 * 3 + 1
    assert specs[-1] == Spec("digits", (0.2, 0.4), "SOBA", 1000, 7, {"gamma": 0.1, "form": "diagonal"}, "shuffle")
    assert len({spec.id for spec in specs}) == len(specs)


def test_a_plan_names_the_column_of_labels(tmp_path: Path) -> None:
    spec = read_plan(written(tmp_path, GOOD.replace('order = "shuffle"', 'label = "kind"\nencode = true')))[-1]
    assert (spec.label, spec.encode) == ("kind", True)
    with pytest.raises(InputError, match=r"field 'label': 3 will not do; the name of a column is expected"):
        read_plan(written(tmp_path, GOOD.replace('order = "shuffle"', "label = 3")))


def test_an_id_depends_on_all_that_decides_the_numbers_and_nothing_else() -> None:
    base = {"datasets": ["digits"], "rates": [(0.2, 0.4)], "learners": {"RCNBF": {"gamma": [0.1]}}}
    (first,) = grid(**base, rounds=1000, seeds=[0])
    assert grid(**base, rounds=1000, seeds=[0])[0].id == first.id
    changed = [
        grid(**base, rounds=2000, seeds=[0]),
        grid(**base, rounds=1000, seeds=[1]),
        grid(**base, rounds=1000, seeds=[0], order="file"),
        grid(**base | {"datasets": ["iris"]}, rounds=1000, seeds=[0]),
        grid(**base | {"rates": [(0.2, 0.3)]}, rounds=1000, seeds=[0]),
        grid(**base | {"learners": {"RCNBF": {"gamma": [0.2]}}}, rounds=1000, seeds=[0]),
        grid(**base | {"learners": {"RCINE": {"gamma": [0.1]}}}, rounds=1000, seeds=[0]),
    ]
    assert len({first.id, *(specs[0].id for specs in changed)}) == 8


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("learners.Fliptron = {}", "learners.Flipper = {}", 7, "field 'learners.Flipper': unknown learner; one of"),
        ("learners.Fliptron = {}", "learners.Fliptron = 3", 7, "a table of parameters is expected"),
        ("gamma = [0.1, 0.2]", "gama = [0.1]", 6, "field 'learners.RCNBF.gama': unknown; one of gamma, rates"),
        ("gamma = [0.1, 0.2]", "gamma = [0.1, 2.0]", 6, "gamma is 2"),
        ("rounds = 1000", "rounds = 0.5", 4, "field 'rounds': rounds is 0.5"),
        ("rounds = 1000", "rounds = 1e30", 4, "rounds is 1"),
        ("seeds = 3", "seeds = [4611686018427387904]", 5, "a number of seeds or a list"),
        ("seeds = 3\n", "seeds = 3\nrows = 5\n", 6, "none for digits, iris, which has the rows it has, is expected"),
        ("seeds = 3", "seeds = 0", 5, "a number of seeds or a list of them is expected"),
        ("seeds = 3", "seeds = [-1]", 5, "a number of seeds or a list of them is expected"),
        ("gamma = [0.1, 0.2]", "gamma = []", 6, "field 'learners.RCNBF.gamma': [] will not do"),
        ('form = "diagonal"', 'form = "half"', 17, "'diagonal' or 'full' is expected"),
        ("seeds = 3", 'seeds = ["a"]', 5, "a number of seeds or a list of them is expected"),
        ('["digits", "iris"]', '["digit"]', 2, "'digit' is neither a data set"),
        ('["digits", "iris"]', '"digits"', 2, "a list of names is expected"),
        ("[0.0, 0.0]]", "[0.6, 0.6]]", 3, "rho0 + rho1 is 1.2"),
        ("[0.0, 0.0]]", "[0.6]]", 3, "field 'rates'"),
        ('order = "shuffle"', 'order = "random"', 14, "field 'order': 'random' will not do"),
        ("seeds = 3\n", "", 1, "field 'seeds': missing"),
        ("seeds = 3\n", "seeds = 3\nspeed = 1\n", 6, "field 'speed': unknown"),
        ("seeds = [7]", "seeds = [7, 7]", 15, "seed 7 is already in grid 2"),
        ("[[grid]]\ndatasets", "title = 1\n[[grid]]\ndatasets", 1, "field 'title'"),
    ],
)
def test_a_bad_plan_is_refused_with_line_and_field(tmp_path: Path, old: Any, new: Any, line: Any, words: Any) -> None:
    assert old in GOOD
    with pytest.raises(InputError) as refusal:
        read_plan(written(tmp_path, GOOD.replace(old, new, 1)))
    assert words in str(refusal.value)
    assert f"plan.toml, line {line}, " in str(refusal.value)


def test_what_is_not_toml_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not TOML: Expected"):
        read_plan(written(tmp_path, "[[grid"))
    with pytest.raises(InputError, match="cannot be read"):
        read_plan(tmp_path / "none.toml")
    with pytest.raises(InputError, match="one or more \\[\\[grid\\]\\] tables"):
        read_plan(written(tmp_path, ""))
