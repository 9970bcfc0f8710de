"""Records → x."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fliptron import Dataset, InputError, RidgeRegression, simulate
from fliptron.arrays import SparseRow
from fliptron.encoding.encoder import Encoder
from fliptron.encoding.records import Table
from fliptron.encoding.schema import Schema


def visitors(n: Any = 400, seed: Any = 0) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": random.normal(40, 10, n),
            "income": random.lognormal(10, 1, n),
            "city": random.choice(["Rome", "Oslo", "Bern"], n),
            "user": [f"u{i}" for i in random.integers(0, 90, n)],
            "member": random.random(n) < 0.1,
            "when": pd.Timestamp("2026-01-01") + pd.to_timedelta(random.integers(0, 10**7, n), "s"),
            "children": pd.array(random.integers(0, 4, n), dtype="Int64"),
            "segment": pd.Categorical(random.choice(list("abc"), n)),
        }
    )
    frame.loc[::7, "age"], frame.loc[::11, "city"], frame.loc[::5, "children"] = np.nan, None, pd.NA
    return frame


def dense(x: Any, d: Any) -> Any:
    if not isinstance(x, SparseRow):
        return x
    row = np.zeros(d)
    row[x.indices] = x.values
    return row


class TestSchema:
    def test_what_the_first_rows_show(self) -> None:
        kinds = Schema.infer(visitors()).kinds
        assert kinds == {
            "age": "number",
            "income": "number",
            "city": "category",
            "user": "many",
            "member": "boolean",
            "when": "time",
            "children": "number",
            "segment": "category",
        }

    def test_words_that_are_numbers_times_or_names_of_rows(self) -> None:
        rows = [{"n": str(i % 60), "t": f"2026-01-{i % 28 + 1:02}", "id": f"r{i}", "gap": "NA" if i % 3 else "1"}
                for i in range(200)]  # fmt: skip
        assert Schema.infer(rows).kinds == {"n": "number", "t": "time", "id": "unused", "gap": "number"}

    def test_clocks_and_counters(self) -> None:
        rows = [{"at": f"2026-01-{i // 24 + 1:02}T{i % 24:02}:00", "id": 7 * i, "rise": i / 7} for i in range(200)]
        schema = Schema.infer(rows)
        assert schema.kinds == {"at": "clock", "id": "unused", "rise": "number"}
        encoder = Encoder(schema)
        encoder.encode_all(rows)
        noon, night = (encoder.encode({"at": f"2030-06-01T{hour}:00"}, update=False) for hour in (12, "00"))
        assert (noon != night).any()

    def test_it_can_be_told_and_kept(self) -> None:
        schema = Schema.infer(visitors(), {"age": "category", "user": "unused"})
        assert schema.kinds["age"] == "category"
        assert Schema.plain(schema.to_plain()) == schema

    def test_many_words_have_places_enough(self) -> None:
        random = np.random.default_rng(0)
        rows = [{"word": f"w{random.integers(800)}"} for _ in range(1000)]
        schema = Schema.infer(rows)
        assert Schema.plain(schema.to_plain()) == schema
        encoder = Encoder(schema)
        places = [int(encoder.encode({"word": f"w{k}"}).indices[-1]) for k in range(800)]
        assert len(set(places)) > 0.9 * 800
        assert Encoder(Schema.infer(rows[:40])).n_features < encoder.n_features / 8

    @pytest.mark.parametrize(
        ("records", "given", "words"),
        [
            ([], {}, "no records"),
            ([{"a": [1, 2]}], {}, "column 'a' holds a list in row 0; words and numbers"),
            ([{"a": 1}, {"a": "x"}, {"a": 2}], {}, "column 'a' holds 'x' in row 1 among numbers"),
            ([{"a": 1}], {"b": "number"}, "a kind is given for column 'b', which is not there"),
            ([{"a": 1}], {"a": "word"}, "the kind of column 'a' is 'word'"),
            ([{"a": None}], {}, "no column holds a value"),
            ([3], {}, "record 0 is a int"),
            ("text", {}, "records are a str"),
        ],
    )
    def test_what_is_refused(self, records: Any, given: Any, words: Any) -> None:
        with pytest.raises(InputError, match=words):
            Schema.infer(records, given)

    def test_two_columns_of_one_name_are_refused(self) -> None:
        with pytest.raises(InputError, match="two columns 'a'"):
            Table.of(pd.DataFrame([[1, 2]], columns=["a", "a"]))


class TestEncoder:
    @pytest.mark.parametrize("without", [[], ["user"]])
    def test_one_by_one_or_all_at_once_is_the_same(self, without: Any) -> None:
        frame = visitors().drop(columns=without)
        schema = Schema.infer(frame)
        alone, together, parts = (Encoder(schema, curves=20) for _ in range(3))
        assert alone.sparse == (not without)
        one = np.array([dense(alone.encode(record), alone.n_features) for record in frame.to_dict("records")])
        many = together.encode_all(frame)
        apart = [parts.encode_all(frame[:130]), parts.encode_all(frame[130:])]
        whole = [each.toarray() if alone.sparse else each for each in (many, *apart)]
        np.testing.assert_array_equal(one, whole[0])
        np.testing.assert_array_equal(one, np.vstack(whole[1:]))
        np.testing.assert_array_equal(alone.moments, together.moments)
        np.testing.assert_allclose((one**2).sum(axis=1), 1.0)

    def test_numbers_are_centred_and_scaled_by_what_came_before(self) -> None:
        X = np.random.default_rng(0).normal(50, 9, (300, 2)) * [1.0, 1e6]
        encoded = Encoder(Schema.infer(X)).encode_all(X)
        scaled = encoded[:, 1:3] / encoded[:, :1]
        for t in (1, 20, 299):
            so_far = X[: t + 1]
            np.testing.assert_allclose(scaled[t], (X[t] - so_far.mean(axis=0)) / so_far.std(axis=0), rtol=1e-8)

    def test_the_frame_is_held_until_a_column_strays(self) -> None:
        X = np.random.default_rng(3).normal(50, 9, (40_000, 1))
        X[20_000:] += 20
        encoder = Encoder(Schema.infer(X))
        encoded = encoder.encode_all(X)
        scaled = encoded[:, 1] / encoded[:, 0]
        held, moved = (np.polyfit(X[part, 0], scaled[part], 1) for part in (slice(1000, 20_000), slice(39_000, 40_000)))
        np.testing.assert_allclose(held, [1 / X[:1000].std(), -X[:1000].mean() / X[:1000].std()], rtol=1e-6)
        np.testing.assert_allclose(np.polyval(held, X[1000:20_000, 0]), scaled[1000:20_000], atol=1e-9)
        assert moved[0] < held[0] / 1.1

    def test_the_scale_of_a_column_does_not_matter(self) -> None:
        X = np.random.default_rng(1).normal(size=(200, 3))
        one, other = (Encoder(Schema.infer(each)).encode_all(each) for each in (X, X * [1e-3, 1e3, 7] + 100))
        np.testing.assert_allclose(one, other, atol=1e-6)

    def test_what_is_new_or_gone_breaks_nothing(self) -> None:
        encoder = Encoder(Schema.infer(visitors().drop(columns="user")))
        for record in ({}, {"city": "Atlantis", "age": 3}, {"unheard_of": 1, "city": 17}, {"age": None}):
            x = encoder.encode(record)
            assert x.shape == (encoder.n_features,)
            assert np.isfinite(x).all()
        known, new = encoder.encode({"city": "Rome"}), encoder.encode({"city": "Atlantis"})
        assert (known != new).any()

    @pytest.mark.parametrize(("row", "wild"), [(500, 1e9), (7, 1e9), (2, -1e25), (0, 1e308), (1, -1e308), (29, 1e100)])
    def test_one_wild_value_does_not_set_the_scale(self, row: Any, wild: Any) -> None:
        X = np.random.default_rng(2).normal(size=(3000, 1))
        X[row] = wild
        encoder = Encoder(Schema.infer(X))
        encoded = encoder.encode_all(X)
        assert np.isfinite(encoded).all()
        assert np.std(encoded[2000:, 1] / encoded[2000:, 0]) > 0.5

    def test_a_look_without_update_changes_nothing(self) -> None:
        frame = visitors()
        encoder = Encoder(Schema.infer(frame))
        encoder.encode_all(frame)
        before = encoder.moments.copy()
        encoder.encode_all(frame[:50], update=False)
        encoder.encode(frame.to_dict("records")[0], update=False)
        np.testing.assert_array_equal(encoder.moments, before)

    def test_two_halves_merge_into_the_whole(self) -> None:
        frame = visitors(1000)
        schema = Schema.infer(frame)
        whole, first, second = (Encoder(schema, curves=20) for _ in range(3))
        whole.encode_all(frame)
        first.encode_all(frame[:300])
        second.encode_all(frame[300:])
        first.merge(second)
        np.testing.assert_allclose(first.moments[:, :10], whole.moments[:, :10], rtol=1e-6)
        long, frame = Encoder(schema), visitors(1500)
        long.encode_all(frame)
        held = long.moments[3:].copy()
        long.merge(whole)
        np.testing.assert_array_equal(long.moments[3:], held)
        with pytest.raises(InputError, match="another schema"):
            first.merge(Encoder(Schema.infer([{"a": 1}])))

    def test_times_in_any_form_are_the_same(self) -> None:
        forms = [datetime.datetime(2026, 3, 1, 12), "2026-03-01T12:00:00", np.datetime64("2026-03-01T12:00:00")]
        schema = Schema.infer([{"t": "2026-01-01"}, {"t": "2026-02-01"}])
        rows = [Encoder(schema).encode({"t": form}) for form in forms]
        np.testing.assert_array_equal(rows[0], rows[1])
        np.testing.assert_array_equal(rows[0], rows[2])

    @pytest.mark.parametrize(
        ("record", "words"),
        [
            ({"age": "abc"}, "column 'age' holds 'abc'; a finite number is expected"),
            ({"age": float("inf")}, "column 'age' holds inf; a finite number"),
            ({"when": "noon"}, "column 'when' holds 'noon'; a time such as"),
            ([1, 2], "the record is a list"),
        ],
    )
    def test_what_is_refused(self, record: Any, words: Any) -> None:
        encoder = Encoder(Schema.infer(visitors()))
        with pytest.raises(InputError, match=words):
            encoder.encode(record)
        assert not encoder.moments.any()

    def test_the_row_of_a_bad_value_is_named(self) -> None:
        encoder = Encoder(Schema.infer([{"a": 1}]))
        with pytest.raises(InputError, match="column 'a' holds 'x' in row 2; a finite number"):
            encoder.encode_all([{"a": 1}, {"a": 2}, {"a": "x"}])

    @settings(max_examples=50, deadline=None)
    @given(st.lists(st.dictionaries(st.sampled_from("abc"), st.floats(-1e200, 1e200) | st.none()), min_size=1))
    def test_any_numbers_give_a_finite_row(self, records: Any) -> None:
        encoder = Encoder(Schema.infer([{"a": 1.0, "b": 2.0}]))
        X = encoder.encode_all(records)
        assert np.isfinite(X).all()
        np.testing.assert_array_equal(X[-1], [Encoder.encode(encoder, records[-1], update=False)][0])


class TestSimulation:
    def test_blocks_and_engines_do_not_matter(self) -> None:
        frame = visitors(300).drop(columns="user")
        data = Dataset.of_records(frame, (frame.income > 20_000).to_numpy())
        errors = [
            simulate(RidgeRegression(n_classes=2, n_features=data.n_features, gamma=0.1), data, rates=(0.1, 0.2),
                     rounds=2000, block=block, engine=engine).mistakes
            for block, engine in ((8192, "auto"), (97, "auto"), (8192, "python"))
        ]  # fmt: skip
        np.testing.assert_array_equal(errors[0], errors[1])
        np.testing.assert_array_equal(errors[0], errors[2])

    def test_scales_and_offsets_do_no_harm(self) -> None:
        random = np.random.default_rng(3)
        X = random.normal(size=(2000, 4))
        y = (X @ random.normal(size=(4, 3))).argmax(axis=1)
        learner = {"n_classes": 3, "gamma": 0.05}
        errors = []
        for each in (X, X * [1e3, 1e-3, 1, 50] + 100):
            data = Dataset.of_records(each, y)
            made = RidgeRegression(n_features=data.n_features, **learner)
            errors.append(simulate(made, data, rates=(0.2, 0.2), rounds=10_000).error)
        assert errors[1] == pytest.approx(errors[0], rel=0.02)
        assert errors[0] < 0.25
