"""Features and labels that turn up on the way: a learner that has grown is one that was born as large."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from conftest import LEARNERS, NOT_GROWING
from fliptron import Decision, Fliptron, InputError, Newtron, RidgeRegression
from fliptron.adapters import places
from fliptron.adapters.chances import chance_of
from fliptron.adapters.growing import Growing, widen
from fliptron.learners.memory import at_most

GROW = ["Banditron", "RCNBF", "BPA", "SOBA", "RidgeRegression", "Confidit", "Fliptron", "Fliptron-diagonal", "RCINE"]


def play(learner: Any, d: Any, rounds: Any, seed: Any) -> Any:
    """Rounds on examples of d numbers, with zeros where the learner has more places."""
    random, played = np.random.default_rng(seed), []
    for _ in range(rounds):
        truth, x = int(random.integers(3)), np.zeros(learner.n_features)
        x[:d] = np.eye(3, d)[truth] + 0.1 * random.normal(size=d)
        played.append(learner.decide(x))
        learner.learn(x, played[-1], int(played[-1].label == truth))
    return played


@pytest.mark.parametrize("name", GROW)
def test_a_widened_learner_is_one_that_was_born_wide(name: Any) -> None:
    narrow, wide = (LEARNERS[name](n_classes=3, n_features=d, seed=1) for d in (4, 9))
    early = play(narrow, 4, 150, 0)
    widen(narrow, 9)
    assert [d.label for d in early] == [d.label for d in play(wide, 4, 150, 0)]
    assert [d.label for d in play(narrow, 9, 150, 1)] == [d.label for d in play(wide, 9, 150, 1)]
    assert np.allclose(narrow.weights, wide.weights, atol=1e-9)
    assert narrow.params == wide.params


def test_a_learner_that_cannot_be_widened_is_refused_and_goes_on() -> None:
    learner = LEARNERS["Newtron-full"](n_classes=3, n_features=4, seed=1)
    play(learner, 4, 20, 0)
    twin = copy.deepcopy(learner)
    with pytest.raises(InputError, match="a Newtron cannot take new features"):
        widen(learner, 9)
    assert play(learner, 4, 50, 1) == play(twin, 4, 50, 1)


def test_covariances_that_grow_too_large_keep_their_diagonals() -> None:
    learner = Fliptron(n_classes=3, n_features=40, seed=1)
    play(learner, 40, 200, 0)
    learner.decide(np.ones(40), eligible=[0, 1])
    variances = np.diagonal(learner.state.covariance, axis1=1, axis2=2).copy()
    widen(learner, 1000)
    assert learner.state.covariance.shape == (3, 1000)
    assert np.array_equal(learner.state.covariance[:, :40], variances)
    hits = [d.label == d.greedy for d in play(learner, 40, 200, 1)]
    assert np.mean(hits) > 0.8
    assert learner.decide(np.ones(1000), eligible=[1]).label == 1


def test_a_widening_for_which_there_is_no_room_changes_nothing() -> None:
    learner = Fliptron(n_classes=3, n_features=4, form="full", seed=1)
    play(learner, 4, 20, 0)
    twin = copy.deepcopy(learner)
    with pytest.raises(InputError, match="is allowed: use form='diagonal'"):
        widen(learner, 10**6)
    assert play(learner, 4, 50, 1) == play(twin, 4, 50, 1)


def test_a_label_for_which_there_is_no_room_is_not_added() -> None:
    learner = Fliptron(n_classes=2, n_features=600, form="full", seed=1)
    with at_most(0), pytest.raises(InputError, match="is allowed"):  # noqa: PT012  # one of them is too many
        for _ in range(20):
            learner.add_label()
    assert learner.n_classes == learner.scores(np.ones((1, 600))).shape[1] < 20
    assert learner.decide(np.ones(600), eligible=[1]).label == 1


def test_every_other_learner_takes_a_new_label() -> None:
    fixed = {type(each).__name__ for make in LEARNERS.values() if not (each := make(n_classes=2, n_features=1)).grows}
    assert sorted(fixed) == NOT_GROWING


class TestRows:
    def test_names_words_and_gaps(self) -> None:
        known = Growing(None, None, 0).places
        row = known.row({"b": 2, "a": 1.5, "city": "Rome", "gone": None, "yes": True})
        assert row[0] == 1.0
        assert sorted(row[row != 0]) == [1.0, 1.0, 1.0, 1.5, 2.0]
        assert np.array_equal(row, known.row({"yes": True, "city": "Rome", "a": 1.5, "b": 2}))
        other = known.row({"b": 2, "a": 1.5, "city": "Oslo", "yes": True})
        assert (row != other).sum() == 2
        unknown = known.row({"b": 2, "new": 7.0}, grow=False)
        assert sorted(unknown[unknown != 0]) == [1.0, 2.0]
        assert 7.0 in known.row({"b": 2, "new": 7.0})

    def test_the_order_of_names_makes_no_difference(self) -> None:
        one, other = Growing(None, None, 0).places, Growing(None, None, 0).places
        x = {name: float(i) for i, name in enumerate("fedcba")}
        assert np.array_equal(one.row(x), other.row(dict(sorted(x.items()))))

    def test_sequences_and_nothing(self) -> None:
        known = Growing(None, None, 0, constant=False).places
        row = known.row((3.0, 4.0))
        assert sorted(row[row != 0]) == [3.0, 4.0]
        assert not known.row(None).any()

    def test_a_word_that_spells_a_number_is_a_word(self) -> None:
        known = Growing(None, None, 0).places
        assert 80331.0 not in known.row({"zip": "80331"})

    def test_more_names_than_places_share_them(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(places, "MOST", 16)
        known = Growing(None, None, 0).places
        row = known.row({f"x{i}": 1.0 for i in range(40)})
        assert row.size == known.width == 16
        assert row.sum() == 41.0
        assert np.array_equal(row, known.row({f"x{i}": 1.0 for i in range(40)}))

    @pytest.mark.parametrize("odd", ["word", 5, object()])
    def test_what_is_no_example_is_refused(self, odd: Any) -> None:
        with pytest.raises(InputError, match=f"is of type {type(odd).__name__}; a dict"):
            Growing(None, None, 0).places.row(odd)

    @pytest.mark.parametrize("odd", [[1, 2], {"a": 1}, object()])
    def test_what_is_neither_number_nor_word_is_refused(self, odd: Any) -> None:
        with pytest.raises(InputError, match="is neither a number nor a word"):
            Growing(None, None, 0).places.row({"x": odd})

    def test_places_that_a_learner_cannot_take_are_not_given(self) -> None:
        known = Growing(Newtron, {"form": "full"}, 0)
        known.number("a"), known.number("b")
        with pytest.raises(InputError, match="cannot take new features"):
            known.places.row({f"x{i}": 1.0 for i in range(20)})
        assert known.learner.n_features == known.places.width == known.places.row({"x0": 1.0}).size

    @pytest.mark.parametrize("x", [(1.0, 10**400), {"x": -(10**400)}])
    def test_a_number_too_large_for_a_float_is_refused(self, x: Any) -> None:
        with pytest.raises(InputError, match=r"a number has 1329 bits; at most 1e\+30 is allowed"):
            Growing(None, None, 0).places.row(x)

    def test_what_is_not_finite_is_refused(self) -> None:
        known = Growing(None, None, 0)
        known.number("a"), known.number("b")
        known.places.row({"x": 1.0})
        assert np.isfinite(known.scores({"x": 1.0})).all()
        with pytest.raises(InputError, match="feature 'x' is nan; a finite number is expected"):
            known.scores({"x": np.nan})


def test_scores_are_those_of_the_learner_also_after_it_has_grown() -> None:
    known = Growing(RidgeRegression, {"gamma": 0.2}, 0)
    random = np.random.default_rng(0)
    for size in (3, 12, 30):
        known.number(f"label {size}"), known.number(f"another {size}")
        for _ in range(30):
            x = dict(enumerate(random.normal(size=size).tolist()))
            row = known.places.row(x)
            known.learner.learn(row, known.learner.decide(row), 1)
            assert np.array_equal(known.scores(x), known.learner.scores(row[None])[0])
    again = pickle.loads(pickle.dumps(known))
    assert np.array_equal(again.scores(x), known.scores(x))
    assert known.outside(1, x) == Decision(1, int(known.scores(x).argmax()), 1.0)


def test_a_wrong_learner_or_setting_is_refused_at_once() -> None:
    with pytest.raises(InputError, match="learner is 'Fliptron'; one of our classes"):
        Growing("Fliptron", None, 0)
    with pytest.raises(InputError, match="settings is 'abc'; names and values"):
        Growing(None, "abc", 0)
    with pytest.raises(InputError, match="gamma is 2"):
        Growing(None, {"gamma": 2}, 0)
    with pytest.raises(InputError, match="RidgeRegression does not estimate the noise"):
        Growing(RidgeRegression, None, 0).estimate()
    with pytest.raises(InputError, match="before there are two labels"):
        Growing(None, None, 0).estimate()


NAMES = ["b", "a", "d", "c"]


@pytest.mark.parametrize("constant", [True, False])
def test_the_quick_way_to_a_row_and_the_others_agree(constant: bool) -> None:
    """The first example is looked up name by name; from then on, one that has all names is not."""
    known = Growing(Fliptron, {}, 0, constant=constant).places
    first = known.row({name: i + 1.0 for i, name in enumerate(NAMES)})
    assert first.tolist() == [constant, 2.0, 1.0, 4.0, 3.0, 0.0, 0.0, 0.0]  # by name, whatever the order
    assert np.array_equal(known.row({"a": 2, "b": True, "c": 4.0, "d": np.float32(3)}), first)
    assert known.row({"a": 2.0, "d": 3.0}).tolist() == [constant, 2.0, 0.0, 0.0, 3.0, 0.0, 0.0, 0.0]
    assert known.row({"a": 2.0, "b": None, "c": 4.0, "d": 3.0}).tolist()[:5] == [constant, 2.0, 0.0, 4.0, 3.0]
    assert known.row({"a": 2.0, "z": 9.0, "c": 4.0, "d": 3.0}, grow=False).tolist()[:5] == [constant, 2, 0, 4, 3]
    assert known.row({"a": 2.0, "z": 9.0, "c": 4.0, "d": "x"}).tolist() == [constant, 2, 0, 4, 0, 1, 9, 0]
    again = pickle.loads(pickle.dumps(known))
    assert np.array_equal(again.row({"a": 1.0}), known.row({"a": 1.0}))


def test_values_in_a_sequence_stand_in_its_order() -> None:
    known = Growing(Fliptron, {}, 0).places
    for values in (tuple(range(12)), [*range(12)], (*range(11), 5.5), tuple(np.arange(12.0))):
        row = known.row(values)
        assert row[:13].tolist() == [1.0, *map(float, values)]
        assert row.size == known.width
    assert known.row((7.0, 8.0))[:4].tolist() == [1.0, 7.0, 8.0, 0.0]
    assert known.row(tuple(range(20)))[1:21].tolist() == [*map(float, range(20))]
    with pytest.raises(InputError, match="is neither a number nor a word"):
        known.row((*range(19), [1]))


@pytest.mark.parametrize("name", ["Fliptron", "BPA", "Confidit", "Gappletron", "Newtron", "RDUE", "Separable"])
def test_the_chance_of_every_label_is_known_before_it_is_drawn(name: Any) -> None:
    learner, random = LEARNERS[name](n_classes=4, n_features=4, seed=1), np.random.default_rng(0)
    for t in range(300):
        truth, x = int(random.integers(4)), random.normal(size=4)
        x[truth] += 2.0
        chances = [chance_of(learner, x, label, None) for label in range(4)]
        decision = learner.decide(x)
        assert chances[decision.label] == pytest.approx(decision.probability, abs=1e-12)
        assert sum(chances) == pytest.approx(1.0, abs=1e-9)
        assert learner.rounds == t + 1
        learner.learn(x, decision, int(decision.label == truth))
