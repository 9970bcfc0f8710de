"""Products and waves of pairs of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fliptron import Dataset, Fliptron, simulate
from fliptron.encoding.curves import LENGTH, MOST, WAVES, draw, room_for
from fliptron.encoding.encoder import Encoder
from fliptron.encoding.schema import Schema


@pytest.mark.parametrize(("numbers", "count"), [(1, MOST), (10, MOST), (11, 130), (22, 317), (23, MOST), (200, MOST)])
def test_all_products_are_there_where_they_are_few(numbers: Any, count: Any) -> None:
    assert room_for(2, numbers + 2, numbers) == count
    curves = draw(numbers, count)
    products = count - curves.phases.size
    found = {tuple(sorted(pair)) for pair in curves.pairs[:products].tolist()}
    assert len(found) == products
    if numbers <= 22:
        assert len(found) == numbers * (numbers + 1) // 2
        assert curves.phases.size >= WAVES
    else:
        assert products == count // 2


def test_where_there_is_less_room_there_are_fewer() -> None:
    counts = [room_for(K, 25, 22) for K in (2, 4, 26, 50, 120, 500)]
    assert counts == sorted(counts, reverse=True)
    assert all(K * (25 + count) ** 2 <= 2**19 for K, count in zip((4, 26, 50), counts[1:4], strict=True))
    assert counts[-1] == 0


def test_where_not_all_products_fit_waves_make_room_for_them() -> None:
    for count in (100, 140, 200, 316, 317):
        curves = draw(22, count)
        assert count - curves.phases.size == max(count // 2, count - WAVES)
    assert draw(23, 200).phases.size == 100


def test_a_product_is_as_long_among_253_as_among_64() -> None:
    random = np.random.default_rng(0)
    for numbers in (10, 22):
        X = random.standard_normal((4000, numbers))
        encoder = Encoder.of(Schema.infer(X), 2)
        rows = encoder.encode_all(X)
        products = rows[1000:, -len(encoder.curves.pairs) :][:, : numbers * (numbers + 1) // 2]
        straight = rows[1000:, : 1 + numbers]
        each = np.sqrt((products**2).mean() / (straight**2).sum(axis=1).mean())
        assert each == pytest.approx(LENGTH / np.sqrt(min(products.shape[1], WAVES)), rel=0.1)


def test_the_product_that_matters_is_found_among_twenty_columns_of_noise() -> None:
    random = np.random.default_rng(1)
    X = random.uniform(-1, 1, (8000, 22))
    y, errors = (X[:, 3] * X[:, 17] > 0).astype(int), {}
    for curves in (0, "auto"):
        data = Dataset.of_records(X, y, name="xor", curves=curves)
        learner = Fliptron(n_classes=2, n_features=data.n_features, seed=1)
        errors[curves] = simulate(learner, data, rates=(0.1, 0.1), rounds=30_000, seed=1).error
    assert errors["auto"] < 0.4 * errors[0]
