"""The gate for examples: malformed sparse arrays in every form SciPy has, and values out of bounds."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from fliptron import Banditron, Dataset, InputError


def broken():
    """Sparse arrays whose insides point outside, as a bug or an attacker makes them."""
    for kind in (sp.csc_array, sp.csr_array, sp.csc_matrix, sp.csr_matrix, sp.bsr_array):
        for index in (10**6, 2**30, -1, -(2**30)):
            each = kind(np.eye(3, 4))
            each.indices[1] = index
            yield f"{kind.__name__} index {index}", each
        each = kind(np.eye(3, 4))
        each.indptr[1] = 10**6
        yield f"{kind.__name__} indptr", each
        each = kind(np.eye(3, 4))
        each.indptr[0] = 2
        yield f"{kind.__name__} start", each
    for kind in (sp.coo_array, sp.coo_matrix):
        for axis in (0, 1):
            for index in (10**6, -1, 2**30):
                each = kind(np.eye(3, 4))
                each.coords[axis][0] = index
                yield f"{kind.__name__} axis {axis} index {index}", each
    each = sp.lil_array(np.eye(3, 4))
    each.rows[0][0] = 10**6
    yield "lil", each
    each = sp.dok_array(np.eye(3, 4))
    each._dict[0, 10**6] = 1.0
    yield "dok", each


@pytest.mark.parametrize(("name", "X"), list(broken()), ids=lambda each: each if isinstance(each, str) else "")
def test_indices_that_point_outside_are_refused_everywhere(name, X):
    learner = Banditron(n_classes=3, n_features=4)
    for call in (
        learner.predict,
        learner.scores,
        lambda X: Dataset.of(X, [0, 1, 2]),
        lambda X: Dataset.of(X, [0, 1, 2], dtype="uint8"),
    ):
        with warnings.catch_warnings(), pytest.raises(InputError):
            warnings.simplefilter("ignore")
            call(X)


def test_one_sparse_row_with_an_index_outside_is_refused():
    learner = Banditron(n_classes=3, n_features=4)
    for kind in (sp.coo_array, sp.csc_array):
        x = kind(np.ones((1, 4)))
        (x.coords[1] if kind is sp.coo_array else x.indices)[0] = 10**6
        for call in (learner.decide, lambda x: learner.learn(x, (0, 0, 0.5), 1)):
            with pytest.raises(InputError, match="not well formed"):
                call(x)


@pytest.mark.parametrize(
    "kind", [sp.csr_array, sp.csc_array, sp.coo_array, sp.lil_array, sp.dok_array, sp.dia_array, sp.bsr_array]
)
def test_every_sparse_form_says_the_same(kind):
    X = np.array([[0.0, 2.0, 0.0], [1.0, 0.0, 3.0], [0.0, 0.0, 0.5]])
    plain, sparse = Dataset.of(sp.csr_array(X), [0, 1, 2]), Dataset.of(kind(X), [0, 1, 2])
    np.testing.assert_array_equal(plain.X.data, sparse.X.data)
    np.testing.assert_array_equal(plain.X.indices, sparse.X.indices)


@pytest.mark.parametrize(
    ("x", "words"),
    [
        ([1e31, 0.0], r"x holds 1e\+31 at column 0; finite values are expected, and a length of at most 1e\+30"),
        ([0.0, np.nan], "x holds nan at column 1; finite values are expected"),
        ([9e29, 9e29], r"x has length 1.27279e\+30; at most 1e\+30 is allowed"),
    ],
)
def test_the_sentence_names_value_place_and_bound(x, words):
    learner = Banditron(n_classes=3, n_features=2)
    for call in (learner.decide, lambda x: learner.learn(x, (0, 0, 0.5), 1), lambda x: learner.decide(np.array(x))):
        with pytest.raises(InputError, match=words):
            call(x)
    with pytest.raises(
        InputError, match=words.replace("x holds", "X holds").replace("x has", "X has").split(" at ")[0].split(";")[0]
    ):
        learner.predict([x])


def test_a_quantity_is_not_taken_for_classes():
    random = np.random.default_rng(0)
    X = random.normal(size=(400, 3))
    for y in (random.normal(size=400), random.integers(300, size=400)):
        with pytest.raises(InputError, match="is this a quantity to predict"):
            Dataset.of(X, y)
    assert Dataset.of(X, random.integers(40, size=400)).n_classes == 40
    assert Dataset.of(X, np.array([f"id {i}" for i in range(400)])).n_classes == 400
