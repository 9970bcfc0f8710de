"""What it costs to make x from a record of ten mixed columns, beside river's pipeline and scikit-learn's transformer.

    make bench NAME=encoding

All are timed in turn in one process, and the least of several turns is taken, which is the least disturbed.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from fliptron import Encoder, Schema
from tabular import save, table

ROWS, TURNS = 20_000, 7


def visitors() -> pd.DataFrame:
    """Six numbers (one with gaps), a truth value, two columns of few words and one of many."""
    random = np.random.default_rng(0)
    frame = pd.DataFrame({f"number {j}": random.normal(10, 3, ROWS) for j in range(6)})
    frame.loc[::7, "number 0"] = np.nan
    frame["member"] = random.random(ROWS) < 0.3
    frame["city"] = random.choice(["Bern", "Lima", "Oslo", "Paris", "Rome"], ROWS)
    frame["segment"] = random.choice(list("abcdef"), ROWS)
    frame["page"] = [f"page {i}" for i in random.integers(0, 500, ROWS)]
    return frame


def ours(frame: pd.DataFrame, curves: int = 0) -> tuple[Callable[[], object], Callable[[], object]]:
    """All at once, and one dict at a time."""
    schema, records = Schema.infer(frame), frame.to_dict("records")[:2000]
    many, one = Encoder(schema, curves=curves), Encoder(schema, curves=curves)
    return lambda: many.encode_all(frame), lambda: [one.encode(record) for record in records]


def rivers(frame: pd.DataFrame) -> Callable[[], object]:
    from river import compose, preprocessing

    words, numbers = ["city", "segment", "page"], [name for name in frame if frame[name].dtype.kind in "fb"]
    pipeline = (compose.Select(*numbers) | preprocessing.StandardScaler()) + (
        compose.Select(*words) | preprocessing.OneHotEncoder()
    )
    records = frame.fillna(0.0).to_dict("records")[:2000]

    def turn() -> None:
        for record in records:
            pipeline.learn_one(record)
            pipeline.transform_one(record)

    return turn


def scikits(frame: pd.DataFrame) -> tuple[Callable[[], object], Callable[[], object]]:
    from sklearn.compose import ColumnTransformer
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    words, numbers = ["city", "segment", "page"], [name for name in frame if frame[name].dtype.kind in "fb"]
    transformer = ColumnTransformer([("n", StandardScaler(), numbers), ("w", OneHotEncoder(), words)]).fit(frame)
    rows = [frame.iloc[i : i + 1] for i in range(200)]
    return lambda: transformer.transform(frame), lambda: [transformer.transform(row) for row in rows]


def main() -> None:
    warnings.simplefilter("ignore")
    frame = visitors()
    dense = frame.drop(columns="page")
    batch, one = ours(frame)
    batch_dense, one_dense = ours(dense)
    batch_bent, one_bent = ours(dense, 128)
    fitted, row = scikits(frame)
    tried = {
        "ours, a table at once": (batch, ROWS),
        "ours, one dict": (one, 2000),
        "ours without the column of many words, a table at once": (batch_dense, ROWS),
        "ours without it, one dict": (one_dense, 2000),
        "ours without it, with 128 curves, a table at once": (batch_bent, ROWS),
        "ours without it, with 128 curves, one dict": (one_bent, 2000),
        "river (scaler and one-hot encoder), one dict": (rivers(frame), 2000),
        "scikit-learn (ColumnTransformer, fitted beforehand), a table at once": (fitted, ROWS),
        "scikit-learn, a frame of one row": (row, 200),
    }
    for turn, _ in tried.values():
        turn()  # compiled, and warm
    least = dict.fromkeys(tried, np.inf)
    for _ in range(TURNS):
        for name, (turn, count) in tried.items():
            began = time.perf_counter()
            turn()
            least[name] = min(least[name], (time.perf_counter() - began) / count * 1e6)
    rows = [[name, f"{value:.1f}"] for name, value in least.items()]
    text = f"""# What encoding costs

µs per record of ten columns: six numbers (one with gaps), a truth value, two columns of few words and one of 500. The
least of {TURNS} turns, all in one process. Made by `make bench NAME=encoding`.

{table(["", "µs per record"], rows)}"""
    print(text)
    save(Path("benchmarks/results/encoding.md"), text)


if __name__ == "__main__":
    main()
