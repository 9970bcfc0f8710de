"""Columns that tell what was played or what came back are no features, whatever they are called."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from click.testing import CliRunner

from fliptron import InputError, Log, RidgeRegression, audit, evaluate, learn_log, load
from fliptron.balance import Balance
from fliptron.cli.group import commands as main
from fliptron.logs.tables import write_table

N = 3000
NAMES = np.array(["bags", "hats", "wigs"])


def columns(n: int = N, ones: float = 1.0) -> dict[str, Any]:
    """Rounds of an old policy that explores; clicks are rarer the smaller `ones` is."""
    random = np.random.default_rng(3)
    x = random.normal(size=(n, 2))
    best, old = (x[:, 0] > 0).astype(int) + (x[:, 1] > 0.7), (x[:, 0] > 0.3).astype(int)
    shown = np.where(random.random(n) < 0.3, random.integers(0, 3, n), old)
    clicked = random.random(n) < np.where(shown == best, 0.6, 0.1) * ones
    return {
        "age": x[:, 0],
        "income": x[:, 1],
        "shown": NAMES[shown],
        "propensity": np.where(shown == old, 0.8, 0.1),
        "clicked": clicked.astype(int),
        "old": NAMES[old],
        "always": np.full(n, "hats"),
    }


def spent(table: Any) -> Any:
    return table["clicked"] * np.random.default_rng(0).uniform(5, 50, N).round(2)


def at(table: Any) -> Any:
    moments = np.array([f"{i // 60 % 24:02d}:{i % 60:02d}:00" for i in range(N)], dtype=object)
    return np.where(table["clicked"] == 1, moments, np.array(None))


LEAKS: dict[str, Callable[[Any], Any]] = {
    "converted": lambda table: table["clicked"],
    "thanks": lambda table: np.where(table["clicked"] == 1, "yes please", "no thanks"),
    "missed": lambda table: 1 - table["clicked"],
    "stars": lambda table: np.where(table["clicked"] == 1, np.arange(N) % 3 + 3, np.arange(N) % 2),
    "revenue": spent,
    "when": at,
    "offer": lambda table: table["shown"],
    "article": lambda table: [f"{name}-{i % 40}" for i, name in enumerate(table["shown"])],
    "offer_id": lambda table: np.array([33, 11, 22])[np.searchsorted(NAMES, table["shown"])],
}


@pytest.mark.parametrize("name", LEAKS)
@pytest.mark.parametrize(("kind", "ones"), [("parquet", 1.0), ("csv", 0.02), ("jsonl", 1.0)])
def test_a_column_that_tells_too_much_is_left_out_and_named(tmp_path: Path, name: str, kind: str, ones: float) -> None:
    table = columns(ones=ones)
    table[name] = LEAKS[name](table)
    path = tmp_path / f"log.{kind}"
    if kind == "jsonl":
        pd.DataFrame(table).to_json(path, orient="records", lines=True)
    else:
        write_table(path, table)
    log = Log(path, others=["old"])
    assert log.features == ["age", "income", "always"]
    assert log.describe().splitlines()[-1].endswith(f": {name}")
    if name == "converted":
        assert "called as what comes back is" in log.describe()
    with pytest.raises(InputError, match=f"column '{name}' .* in every round.*, so it can neither describe a round"):
        Log(path, features=["age", name])


def test_what_a_policy_goes_by_is_no_leak(tmp_path: Path) -> None:
    """Each segment is shown one offer, for certain or nearly so; and no value comes twice."""
    random = np.random.default_rng(0)
    segment = random.integers(0, 9, N)
    table = {"segment": segment, "x": random.random(N), "label": NAMES[segment % 3], "bit": random.integers(0, 2, N)}
    for n, probability in ((N, np.ones(N)), (N, np.full(N, 0.9999)), (15, np.full(N, 0.5))):
        columns = {name: values[:n] for name, values in (table | {"probability": probability}).items()}
        write_table(tmp_path / "log.parquet", columns)
        assert Log(tmp_path / "log.parquet").features == ["segment", "x"]


def test_what_only_goes_along_with_the_bit_stays(tmp_path: Path) -> None:
    table = columns()
    table["converted"] = np.where(np.arange(N) == 2900, 1 - table["clicked"], table["clicked"])
    table["visits"] = np.arange(N) % 7
    write_table(tmp_path / "log.parquet", table)
    assert Log(tmp_path / "log.parquet").features == ["age", "income", "old", "always", "visits"]
    asked = Log(tmp_path / "log.parquet", features=["age", "converted"])
    assert asked.features == ["age", "converted"]
    write_table(tmp_path / "few.parquet", {name: values[:15] for name, values in table.items()})
    assert Log(tmp_path / "few.parquet", features=["age", "converted"]).features == ["age", "converted"]


def test_an_evaluation_is_the_same_with_a_copy_of_the_bit_and_warns_of_what_is_nearly_one(tmp_path: Path) -> None:
    table = columns(20_000)
    write_table(tmp_path / "a.parquet", table)
    write_table(tmp_path / "b.parquet", table | {"converted": table["clicked"]})
    nearly = np.where(np.arange(20_000) == 19_000, 1 - table["clicked"], table["clicked"])
    write_table(tmp_path / "c.parquet", table | {"nearly": nearly})
    found = [
        evaluate(Log(tmp_path / f"{name}.parquet", others=["old", "always"]), {"old": "old", "always": "always"})
        for name in "abc"
    ]
    assert found[0].values == found[1].values
    assert found[0].warnings == ()
    assert "which should agree: a feature may tell what was played or what came back" in found[2].warnings[0]
    told = CliRunner().invoke(
        main, ["evaluate", str(tmp_path / "c.parquet"), "--policy", "always", "--out", str(tmp_path)]
    )
    assert "Warning: The mean bit of always is" in " ".join(told.stdout.split())


def test_probabilities_and_features_that_do_not_fit_the_labels_identify_nothing(tmp_path: Path) -> None:
    table = columns(20_000)
    shares = dict(zip(*np.unique(table["shown"], return_counts=True), strict=True))
    random = np.random.default_rng(1)
    prices = np.array([10, 20, 30])[np.searchsorted(NAMES, table["shown"])] + random.normal(0, 3, 20_000)
    logs = {
        "": {},
        "'(bags|hats|wigs)' was played .* times in a round": {"propensity": np.roll(table["propensity"], 1)},
        "^columns .*'age'.* differ by": {"propensity": [shares[each] / 20_000 for each in table["shown"]]},
        "^column 'price' differs": {"price": prices},
        "^column 'score' differs": {"score": table["propensity"] + random.normal(0, 0.02, 20_000)},
    }
    for at, (words, wrong) in enumerate(logs.items()):
        path = tmp_path / f"{at}.parquet"
        write_table(path, table | wrong)
        found = audit(Log(path))
        assert (found.verdict == "not identified") == bool(words)
        assert re.search(words, found.reason)
    judged = evaluate(Log(tmp_path / "3.parquet", others=["always"]), {"always": "always"})
    assert judged.values["always"].accuracy is None
    assert "column 'price' differs" in judged.differences[0].doubt


def test_sparse_rows_tell_the_same_as_dense_ones() -> None:
    random = np.random.default_rng(2)
    label, leak = random.integers(0, 3, 5000), random.normal(size=5000)
    X = np.column_stack([np.ones(5000), leak + label, leak]) / 7
    doubts = []
    for rows in (X, sp.csr_array(X)):
        balance = Balance(["a", "b", "c"], ["", "late", "early"])
        for part in (slice(0, 0), slice(0, 2000), slice(2000, None)):
            balance.add(rows[part], label[part], np.full(5000, 1 / 3)[part])
        doubts.append(balance.doubt)
    assert doubts[0] == doubts[1]
    assert doubts[0].startswith("column 'late' differs by the label that was played")


def test_a_policy_does_not_learn_the_label_from_its_number(tmp_path: Path) -> None:
    table = columns() | {"propensity": np.full(N, 1 / 3)}
    table["offer_id"] = LEAKS["offer_id"](table)
    write_table(tmp_path / "log.parquet", table)
    policy = learn_log(Log(tmp_path / "log.parquet"), RidgeRegression, gamma=0.1)
    assert "offer_id" not in policy.encoder.schema.kinds


def test_a_tables_label_in_other_words_is_no_feature(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    age, city = random.integers(18, 80, 200), random.choice(["Rome", "Oslo"], 200)
    segment = np.where(age > 40, "old", city)
    number = np.array([{"old": 3, "Rome": 7, "Oslo": 9}[each] for each in segment])
    table = {"age": age, "city": city, "seg2": segment, "segid": number, "segment": segment}
    for path in (tmp_path / "a.csv", tmp_path / "a.parquet"):
        write_table(path, table)
        data = load(path)
        assert data.encoder is not None
        assert data.encoder.schema.kinds == {"age": "number", "city": "category", "seg2": "unused", "segid": "unused"}
        with pytest.raises(InputError, match="column 'segid' holds the label in other words in every row"):
            load(path, kinds={"segid": "category"})
    run = ["run", "--dataset", str(tmp_path / "a.csv"), "--rounds", "200", "--seeds", "1", "--out", str(tmp_path / "o")]
    told = CliRunner().invoke(main, [*run, "--learner", "RidgeRegression"])
    assert "or the label in other words): seg2, segid" in " ".join(told.stderr.split())
    write_table(tmp_path / "b.parquet", {"seg2": segment, "segment": segment})
    with pytest.raises(InputError, match="every other column holds the label in other words"):
        load(tmp_path / "b.parquet")
