"""The flagship: what it promises beyond the rules for all learners."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from fliptron import Confidit, Dataset, Fliptron, InputError, Rates, RidgeRegression, Rounds, load, simulate
from fliptron.kernels.loop import ALL_ELIGIBLE
from fliptron.learners import axes
from fliptron.learners.channel import NEXT, PLAYED
from fliptron.learners.filtering import reach, share

NOISE = ((0.0, 0.0), (0.2, 0.4), (0.4, 0.2))


def error(learner: Any, data: Any, rates: Any, rounds: Any, seed: Any) -> Any:
    return simulate(learner, data, rates=rates, rounds=rounds, seed=seed).error


@pytest.mark.parametrize("rates", NOISE)
def test_it_beats_the_other_regressions_without_being_told_or_tuned(rates: Any, digits: Any) -> None:
    errors = {
        kind: np.mean([error(kind(n_classes=10, n_features=64, seed=s), digits, rates, 30_000, s) for s in range(3)])
        for kind in (Fliptron, Confidit, RidgeRegression)
    }
    assert errors[Fliptron] < 0.85 * min(errors[Confidit], errors[RidgeRegression])


# Rare clicks, clicks on almost everything, and in between: far from the settings of the paper.
PLANE = ((0.0, 0.9), (0.02, 0.92), (0.1, 0.8), (0.4, 0.4), (0.8, 0.0))


@pytest.mark.parametrize("rates", PLANE)
def test_it_is_nearly_as_good_as_if_it_were_told_the_rates(rates: Any, digits: Any) -> None:
    def mean(given: Any) -> Any:
        made = (Fliptron(n_classes=10, n_features=64, rates=given, seed=s) for s in range(3))
        return np.mean([error(learner, digits, rates, 50_000, learner.seed) for learner in made])

    told, untold = mean(rates), mean(None)
    assert untold < 1.6 * told


@pytest.mark.parametrize("K", [2, 6, 30])
def test_rare_clicks_teach_it_whatever_the_number_of_labels(K: Any) -> None:
    random = np.random.default_rng(3)
    X = np.c_[random.normal(size=(4000, 8)), np.ones(4000)]
    data = Dataset.of(X / np.linalg.norm(X, axis=1)[:, None], (X @ random.normal(size=(9, K))).argmax(axis=1))
    learner = Fliptron(n_classes=data.n_classes, n_features=9, seed=1)
    trace = simulate(learner, data, rates=(0.02, 0.8), rounds=100_000, seed=1)
    late = np.diff(trace.mistakes[[-8, -1]])[0] / np.diff(trace.rounds[[-8, -1]])[0]
    assert late < (0.1 if K < 30 else 0.6)


def flipped_by_class(digits: Any, learner: Any, seed: Any, rounds: Any) -> Any:
    """Its error where ρ1 grows with the class from 0 to .6, and ρ0 falls from .3 to 0."""
    random, wrong = np.random.default_rng(seed), 0
    rho0, rho1 = np.linspace(0.3, 0, 10), np.linspace(0, 0.6, 10)
    for _ in range(rounds):
        row = random.integers(digits.n_rows)
        x, y = digits.X[row], digits.y[row]
        decision = learner.decide(x)
        right = decision.label == y
        wrong += not right
        learner.learn(x, decision, int(random.random() >= rho1[y] if right else random.random() < rho0[y]))
    return wrong / rounds


def test_flips_that_depend_on_the_class_are_learnt_too(digits: Any) -> None:
    ours, theirs = (
        np.mean([flipped_by_class(digits, kind(n_classes=10, n_features=64, seed=s), s, 30_000) for s in range(2)])
        for kind in (Fliptron, Confidit)
    )
    assert ours < theirs


@pytest.mark.parametrize("rates", [(0.0, 0.0), (0.2, 0.4), (0.0, 0.8)])
def test_what_it_calls_identified_covers(rates: Any, digits: Any) -> None:
    covered, verdicts = [], []
    for seed in range(6):
        learner = Fliptron(n_classes=10, n_features=64, gamma=0.02, seed=seed)
        trace = simulate(learner, digits, rates=rates, rounds=60_000, seed=seed)
        estimate = learner.estimate()
        verdicts.append(estimate.verdict)
        assert estimate.rates == learner.rates
        truths = {"rho0": rates[0], "rho1": rates[1], "accuracy": 1 - trace.error}
        covered += [
            estimate.intervals[name][0] - 1e-9 <= true <= estimate.intervals[name][1] for name, true in truths.items()
        ]
    assert np.mean(covered) > 0.85
    assert verdicts.count("identified") >= 4


def test_naming_every_label_as_eligible_is_naming_none(digits: Any) -> None:
    one, other = (Fliptron(n_classes=10, n_features=64, seed=1) for _ in range(2))
    for t in range(200):
        x, bit = digits.X[t], t % 2
        one.learn(x, one.decide(x), bit)
        other.learn(x, other.decide(x), bit, eligible=range(10))
    assert all(np.array_equal(array, other._arrays()[name]) for name, array in one._arrays().items())


def test_rows_of_zeros_count_for_the_accuracy() -> None:
    random = np.random.default_rng(1)
    X = random.standard_normal((3000, 6))
    y = (X @ random.standard_normal((6, 5))).argmax(axis=1)
    X[random.random(3000) < 1 / 3] = 0.0
    learner = Fliptron(n_classes=5, n_features=6, gamma=0.05, seed=1)
    trace = simulate(learner, Dataset.of(X, y, classes=tuple(range(5))), rates=(0.1, 0.2), rounds=40_000, seed=1)
    low, high = learner.estimate().intervals["accuracy"]
    assert low <= 1 - trace.error <= high


def test_told_rates_do_not_keep_it_from_noticing_that_the_data_changed(digits: Any) -> None:
    learner = Fliptron(n_classes=10, n_features=64, rates=(0.1, 0.1), seed=0)
    simulate(learner, digits, rates=(0.1, 0.1), rounds=10_000, seed=0)
    assert learner.alarms == []
    moved = Dataset.of(digits.X, (digits.y + 3) % 10)
    assert error(learner, moved, (0.1, 0.1), 10_000, 1) < 0.1
    assert [alarm.kind for alarm in learner.alarms] == ["data"]


def test_forgetting_with_fewer_directions_than_axes() -> None:
    random = np.random.default_rng(0)
    X = random.standard_normal((20, 300))
    learner = Fliptron(n_classes=10, n_features=300, half_life=20_000, seed=1)
    for t in range(3000):
        learner.learn(X[t % 20], learner.decide(X[t % 20]), t % 3 == 0)
    assert learner.kept == "axes"
    assert np.isfinite(learner.weights).all()


def test_only_eligible_labels_are_played_with_the_probability_stated(digits: Any) -> None:
    learner = Fliptron(n_classes=10, n_features=64, gamma=0.1, seed=1)
    simulate(learner, digits, rates=(0.1, 0.1), rounds=300, seed=1)
    x, eligible = digits.X[7], [1, 4, 8]
    decisions = [learner.decide(x, eligible=eligible) for _ in range(6000)]
    for label in eligible:
        stated = {d.probability for d in decisions if d.label == label}
        assert len(stated) <= 1
        share = np.mean([d.label == label for d in decisions])
        assert share == pytest.approx(stated.pop() if stated else 0.0, abs=0.03)
    assert {d.label for d in decisions} <= set(eligible)
    assert {d.greedy for d in decisions} <= set(eligible)
    assert tuple(learner.decide(x, eligible=[5])) == pytest.approx((5, 5, 1.0))


def test_rounds_with_few_eligible_labels_teach_and_stay_out_of_the_account(digits: Any) -> None:
    learner, random, right = Fliptron(n_classes=10, n_features=64, gamma=0.02, seed=1), np.random.default_rng(1), 0
    for t in range(12_000):
        row = random.integers(digits.n_rows)
        x, y = digits.X[row], digits.y[row]
        eligible = random.choice(10, size=4, replace=False) if t % 2 else None
        decision = learner.decide(x, eligible)
        bit = int((decision.label == y) ^ (random.random() < 0.1))
        learner.learn(x, decision, bit, eligible=eligible)
        right += t >= 10_000 and eligible is None and decision.label == y
    assert right > 900
    assert learner.estimate().details["rounds"] == 12_000
    assert learner.estimate().rates == pytest.approx((0.1, 0.1), abs=0.06)
    assert learner.state.fresh[1] == 0


def test_before_it_knows_the_noise_it_says_so() -> None:
    estimate = Fliptron(n_classes=3, n_features=2).estimate()
    assert estimate.verdict == "not identified"
    assert estimate.intervals["rho0"] == (0.0, 1.0)
    with pytest.raises(InputError, match="not identified"):
        estimate.true_accuracy(0.5)


def test_the_first_rounds_are_uniform_and_the_rest_explores_plausible_labels_only(digits: Any) -> None:
    learner = Fliptron(n_classes=10, n_features=64, gamma=0.0, seed=1)
    log = simulate(learner, digits, rates=(0.1, 0.1), rounds=20_000, seed=1, log=True).log
    uniform = int(np.argmax(log.probability != 0.1))
    assert log.bit[:uniform].sum() == 5  # five ones and more zeros by then
    assert (log.probability[uniform + 1 :] != 0.1).mean() > 0.99
    late = slice(10_000, None)
    assert 0 < np.mean(log.label[late] != log.greedy[late]) < 0.05


def test_the_shares_of_all_labels_sum_to_one() -> None:
    random = np.random.default_rng(0)
    for K in (2, 3, 10, 50):
        scores, widths = random.normal(size=K), random.exponential(size=K)
        shares = [share(scores, widths, label, ALL_ELIGIBLE) for label in range(K)]
        assert sum(shares) == pytest.approx(1.0, abs=1e-12)
        z = random.random(20_000)
        played = np.bincount((scores + z[:, None] * widths).argmax(axis=1), minlength=K)
        np.testing.assert_allclose(played / z.size, shares, atol=0.02)


def test_optimism_falls_as_the_bits_tell_more_and_returns_when_the_world_changes(digits: Any) -> None:
    later = Dataset.of(digits.X, (digits.y + 3) % 10, name="permuted")
    learner, forgetful = (Fliptron(n_classes=10, n_features=64, half_life=each, seed=1) for each in (None, 1000))

    def reaches(learner: Any) -> Any:
        return np.array([reach(learner.state.counts, learner.state.labels, label) for label in range(10)])

    assert (reaches(learner) == 2.5).all()
    for each in (learner, forgetful):
        simulate(each, digits, rates=(0.1, 0.2), rounds=20_000, seed=1)
    assert 0.5 < reaches(learner).max() < 0.75 < reaches(forgetful).min() < 2.5
    while not learner.alarms:
        simulate(learner, later, rates=(0.1, 0.2), rounds=100, seed=2)
    assert reaches(learner).min() > 1.5


def test_it_is_more_optimistic_about_labels_that_it_hardly_played() -> None:
    data = Dataset.of(np.eye(4)[[0, 1, 2] * 100], np.array([0, 1, 2] * 100), classes=(0, 1, 2, 3))
    learner = Fliptron(n_classes=4, n_features=4, seed=1)
    simulate(learner, data, rates=(0.2, 0.2), rounds=5000, seed=1)
    reaches = [reach(learner.state.counts, learner.state.labels, label) for label in range(4)]
    assert max(reaches[:3]) < 0.8
    assert reaches[3] > 1.2


def test_labels_that_were_overlooked_begin_anew_and_are_found() -> None:
    """Where clicks are rare, some labels lose the first rounds to others; no class stays lost for it."""
    data = load("digits")
    lost = 0
    for seed in range(8):
        learner = Fliptron(n_classes=10, n_features=64, seed=seed)
        simulate(learner, data, rates=(0.01, 0.95), rounds=150_000, seed=seed)
        right = learner.predict(data.X) == data.y
        lost += sum(right[data.y == label].mean() < 0.5 for label in range(10))
    assert lost <= 1


def test_a_label_that_others_hardly_play_is_not_overlooked(digits: Any) -> None:
    """Whose log it is does not matter: what counts is of what the learner is sure."""
    random, learner = np.random.default_rng(1), Fliptron(n_classes=10, n_features=64, seed=1)
    P = np.append(np.full(9, (1 - 0.01) / 9), 0.01)
    row = random.integers(digits.n_rows, size=60_000)
    label = random.choice(10, size=row.size, p=P)
    bit = (label == digits.y[row]) ^ (random.random(row.size) < 0.1)
    learner.replay(digits.X[row], Rounds.of(label=label, greedy=label, probability=P[label], bit=bit))
    assert learner.state.counts[NEXT] > 60_000
    assert learner.state.labels[:, PLAYED].sum() > 59_000  # no label has begun anew since the first look
    assert (learner.predict(digits.X) == digits.y).mean() > 0.9


@pytest.mark.parametrize("half_life", [None, 2000])
def test_it_looks_for_overlooked_labels_again_and_again(half_life: Any, digits: Any) -> None:
    learner, looks = Fliptron(n_classes=10, n_features=64, half_life=half_life, seed=1), set()
    for seed in range(40):
        simulate(learner, digits, rates=(0.2, 0.4), rounds=1000, seed=seed)
        looks.add(learner.state.counts[NEXT])
    gaps = np.diff(sorted(looks - {0.0}))
    assert gaps.size >= (1 if half_life is None else 3)
    if half_life is not None:
        assert gaps.max() <= 4 * half_life + 1


def test_a_label_that_is_never_right_is_left_alone(digits: Any) -> None:
    seen = digits.y < 8
    data = Dataset.of(digits.X[seen], digits.y[seen], classes=tuple(range(10)))
    learner = Fliptron(n_classes=10, n_features=64, seed=1)
    simulate(learner, data, rates=(0.2, 0.4), rounds=60_000, seed=1)
    assert learner.state.counts[NEXT] > 0  # it has looked
    played = learner.state.labels[:, PLAYED]
    assert played.sum() == 60_000  # no label has begun anew
    assert played[8:].max() < 600


@pytest.mark.parametrize(
    ("form", "times"), [("full", 1024.0), ("full", 2.0**80), ("full", 2.0**-80), ("axes", 2.0**80)]
)
def test_the_length_of_x_does_not_matter(form: Any, times: Any, digits: Any) -> None:
    """Nor where its square is no number in float32, in which covariances are kept."""
    long, traces = Dataset.of(digits.X * times, digits.y, name="long"), []
    for data in (digits, long):
        learner = Fliptron(n_classes=10, n_features=64, form=form, seed=1)
        traces.append(simulate(learner, data, rates=(0.2, 0.4), rounds=5000, seed=1).mistakes)
        np.testing.assert_allclose(learner.chances(data.X[:50]).sum(axis=1), 1.0)
    np.testing.assert_array_equal(*traces)


class TestChances:
    @pytest.mark.parametrize("form", ["full", "axes", "diagonal"])
    def test_they_sum_to_one_whatever_the_length_and_keep_the_order_of_scores(self, form: Any, digits: Any) -> None:
        learner, X = Fliptron(n_classes=10, n_features=64, form=form, seed=1), digits.X[:300]
        nothing = learner.chances(X)
        np.testing.assert_allclose(nothing, 0.1, atol=1e-12)
        simulate(learner, digits, rates=(0.2, 0.4), rounds=3000, seed=1)
        chances = learner.chances(X)
        np.testing.assert_allclose(chances.sum(axis=1), 1.0, rtol=1e-12)
        np.testing.assert_array_equal(chances.argmax(axis=1), learner.predict(X))
        np.testing.assert_allclose(learner.chances(1000.0 * X), chances, rtol=1e-3, atol=1e-6)
        np.testing.assert_allclose(learner.chances(sp.csr_array(X)), chances, rtol=1e-3, atol=1e-6)
        np.testing.assert_array_equal(learner.chances(np.zeros((2, 64))), np.full((2, 10), 0.1))

    @pytest.mark.parametrize(("rates", "rounds", "most"), [((0.2, 0.4), 20_000, 0.35), ((0.02, 0.92), 40_000, 0.8)])
    def test_they_are_about_as_often_right_as_they_say(self, rates: Any, rounds: Any, most: Any, digits: Any) -> None:
        kept = np.arange(digits.n_rows) % 4 > 0
        learner, later = Fliptron(n_classes=10, n_features=64, seed=1), digits.X[~kept]
        data = Dataset.of(digits.X[kept], digits.y[kept], name="most of them")
        simulate(learner, data, rates=rates, rounds=rounds, seed=1)
        chances, truth = learner.chances(later), digits.y[~kept]
        loss = -np.log(chances[np.arange(len(truth)), truth]).mean()
        assert loss < most < np.log(10)
        assert abs(chances.max(axis=1).mean() - (chances.argmax(axis=1) == truth).mean()) < 0.25

    def test_asking_changes_nothing(self, digits: Any) -> None:
        asked, other = (Fliptron(n_classes=10, n_features=64, seed=1) for _ in range(2))
        for x in digits.X[:300]:
            for each in (asked, other):
                decision = each.decide(x)
                each.chances(digits.X[:3]) if each is asked else None
                each.learn(x, decision, int(x[20] > 0.1))
        np.testing.assert_array_equal(asked.weights, other.weights)

    def test_others_tell_the_softmax_of_their_scores(self, digits: Any) -> None:
        learner = RidgeRegression(n_classes=10, n_features=64, seed=1)
        simulate(learner, digits, rates=(0.2, 0.4), rounds=2000, seed=1)
        chances = learner.chances(digits.X)
        np.testing.assert_allclose(chances.sum(axis=1), 1.0)
        np.testing.assert_array_equal(chances.argmax(axis=1), learner.predict(digits.X))


def test_late_feedback_in_any_order_teaches_too(digits: Any) -> None:
    learner, random, right = Fliptron(n_classes=10, n_features=64, seed=1), np.random.default_rng(1), 0
    waiting: deque[Any] = deque()
    for t in range(8000):
        row = random.integers(digits.n_rows)
        x, y = digits.X[row], digits.y[row]
        decision = learner.decide(x)
        right += t >= 7000 and decision.label == y
        waiting.append((x, decision, int((decision.label == y) ^ (random.random() < 0.15))))
        if len(waiting) > 200:
            waiting.rotate(int(random.integers(200)))
            learner.learn(*waiting.popleft())
    assert right > 900


@pytest.mark.parametrize(("K", "d"), [(2, 4), (100, 40), (5, 20_000)])
def test_it_takes_few_and_many_labels_and_features(K: Any, d: Any) -> None:
    random = np.random.default_rng(0)
    y = random.integers(K, size=3000)
    prototypes: Any = sp.random_array((K, d), density=min(1.0, 20 / d), rng=random, format="csr")
    X = sp.csr_array(prototypes[y] + 0.1 * sp.random_array((3000, d), density=min(1.0, 5 / d), rng=random))
    data = Dataset.of(X, y, name="made")
    learner = Fliptron(n_classes=K, n_features=d, seed=0)
    trace = simulate(learner, data, rates=(0.02, 0.1), rounds=80_000, seed=0)
    late = np.diff(trace.mistakes[[-10, -1]])[0] / np.diff(trace.rounds[[-10, -1]])[0]
    assert late < 0.05
    assert learner.kept == ("full" if K * d * d <= 2**19 else "diagonal")


def blurred(d: Any, n: Any = 2000) -> Any:
    """Five classes of examples whose features are mixtures of a few hidden ones, and some noise."""
    random = np.random.default_rng(d)
    hidden = random.normal(size=(n, 12)) * np.linspace(3.0, 0.5, 12)
    y = (hidden @ random.normal(size=(12, 5))).argmax(axis=1)
    X = hidden @ random.normal(size=(12, d)) / np.sqrt(12) + 0.3 * random.normal(size=(n, d))
    return Dataset.of(X, y, name="blurred")


class TestAxes:
    def test_it_errs_less_than_a_diagonal_belief_where_features_hang_together(self) -> None:
        data, errors = blurred(400), {}
        for form in ("axes", "diagonal"):
            learner = Fliptron(n_classes=5, n_features=400, form=form, seed=1)
            errors[form] = simulate(learner, data, rates=(0.2, 0.4), rounds=20_000, seed=1).error
        assert errors["axes"] < 0.8 * errors["diagonal"]

    def test_it_does_not_err_more_where_they_do_not(self) -> None:
        random = np.random.default_rng(3)
        X = random.normal(size=(2000, 300))
        data, errors = Dataset.of(X, X[:, :4].argmax(axis=1), name="round"), {}
        for form in ("axes", "diagonal"):
            made = (Fliptron(n_classes=4, n_features=300, form=form, seed=s) for s in range(3))
            runs = [simulate(each, data, rates=(0.1, 0.1), rounds=10_000, seed=s).error for s, each in enumerate(made)]
            errors[form] = np.mean(runs)
        assert errors["axes"] < 1.1 * errors["diagonal"]

    def test_the_first_example_says_whether_there_are_axes(self) -> None:
        data = blurred(400, n=50)
        for X, kept in ((data.X, "axes"), (sp.csr_array(data.X), "diagonal")):
            learner = Fliptron(n_classes=5, n_features=400, seed=1)
            simulate(learner, Dataset.of(X, data.y, name="blurred"), rounds=100)
            assert learner.kept == kept
            assert learner.state.W.flags.f_contiguous == (kept == "diagonal")  # by feature

    def test_a_label_that_is_added_before_the_first_example_leaves_that_open(self) -> None:
        rows = sp.csr_array(np.eye(3, 400))
        for made, kept in ((rows, "diagonal"), (rows.toarray(), "axes")):
            learner = Fliptron(n_classes=4, n_features=400, seed=1)
            learner.add_label()
            twin = Fliptron(n_classes=5, n_features=400, seed=1)
            for t in range(30):
                x = made[[t % 3]] if kept == "diagonal" else made[t % 3]
                decision = learner.decide(x)
                assert decision == twin.decide(x)
                for each in (learner, twin):
                    each.learn(x, decision, t % 2)
            assert (learner.kept, learner.params) == (kept, twin.params)

    def test_a_turn_changes_no_score_by_much_and_no_weight_is_lost(self) -> None:
        data = blurred(200)
        learner = Fliptron(n_classes=5, n_features=200, form="axes", seed=1)
        simulate(learner, data, rates=(0.1, 0.1), rounds=2000, seed=1)
        before = learner.scores(data.X[:50])
        np.testing.assert_allclose(data.X[:50] @ learner.weights.T, before, rtol=1e-3, atol=1e-3)
        axes.turn(learner.state)
        np.testing.assert_allclose(learner.scores(data.X[:50]), before, rtol=1e-3, atol=1e-3)
        V = learner.state.axes.astype(float)
        np.testing.assert_allclose(V @ V.T, np.eye(len(V)), atol=1e-5)

    def test_examples_that_are_all_alike_leave_room_for_those_that_come(self) -> None:
        X = np.vstack([np.tile(np.eye(1, 80), (700, 1)), np.random.default_rng(0).normal(size=(700, 80))])
        learner = Fliptron(n_classes=2, n_features=80, form="axes", seed=1)
        simulate(learner, Dataset.of(X, np.arange(1400) % 2, name="late"), rounds=600, order="file")
        assert learner.state.taken[axes.FOUND] == 1
        simulate(learner, Dataset.of(X[700:], np.arange(700) % 2, name="late"), rounds=4000)
        assert learner.state.taken[axes.FOUND] > 0.9 * axes.AXES


def test_after_a_permutation_it_recovers_as_fast_as_a_fresh_start(digits: Any) -> None:
    """Rounds until the error of 1,000 rounds is within 1.5 times of what it was before the labels were permuted."""
    permuted = Dataset.of(digits.X, (digits.y + 3) % 10, name="permuted")
    rates = (0.2, 0.3)
    known: list[Any] = []
    fresh: list[Any] = []
    for seed in range(3):
        learner = Fliptron(n_classes=10, n_features=64, half_life=100_000, seed=seed)
        before = simulate(learner, digits, rates=rates, rounds=20_000, seed=seed)
        level = np.diff(before.mistakes[np.searchsorted(before.rounds, [10_000, 20_000])])[0] / 10_000
        beginner = Fliptron(n_classes=10, n_features=64, half_life=100_000, seed=seed)
        for each, times in ((learner, known), (beginner, fresh)):
            log = simulate(each, permuted, rates=rates, rounds=30_000, seed=seed + 100, log=True).log
            wrong = np.cumsum(log.label != permuted.y[log.row])
            recent = (wrong[1000:] - wrong[:-1000]) / 1000
            assert (recent <= 1.5 * level).any()
            times.append(1000 + np.argmax(recent <= 1.5 * level))
    assert np.mean(known) <= 1.15 * np.mean(fresh)  # three seeds; the study of drift has ten


@pytest.mark.parametrize("half_life", [None, 20_000])
def test_a_jump_of_the_noise_is_told_from_one_of_the_data(half_life: Any, digits: Any) -> None:
    learner = Fliptron(n_classes=10, n_features=64, half_life=half_life, seed=0)
    simulate(learner, digits, rates=(0.0, 0.0), rounds=20_000, seed=0)
    assert learner.alarms == []
    after = simulate(learner, digits, rates=(0.4, 0.4), rounds=20_000, seed=100)
    assert after.error < 0.1
    assert {alarm.kind for alarm in learner.alarms} == {"noise"}
    assert 20_000 < learner.alarms[0].round < 20_500
    permuted = Dataset.of(digits.X, (digits.y + 3) % 10, name="permuted")
    simulate(learner, permuted, rates=(0.4, 0.4), rounds=20_000, seed=200)
    assert learner.alarms[-1].kind == "data"
    assert learner.alarms[-1].strength > 4


@pytest.mark.parametrize("seed", [904, 906, 919])
def test_the_first_bits_after_a_jump_of_the_noise_do_not_decide(seed: int, digits: Any) -> None:
    """A few flipped bits in a row look like other data; more of them do not."""
    learner = Fliptron(n_classes=10, n_features=64, seed=seed)
    simulate(learner, digits, rates=(0.0, 0.0), rounds=15_000, seed=seed)
    simulate(learner, digits, rates=(0.4, 0.4), rounds=5000, seed=seed + 100)
    assert {alarm.kind for alarm in learner.alarms} == {"noise"}


def test_clicks_that_become_rarer_are_not_taken_for_other_data(digits: Any) -> None:
    """Sure labels are then hardly above chance; of these seeds two of three took them for wrong, and learnt anew."""
    restarts = 0
    for seed in (0, 7, 11):
        learner = Fliptron(n_classes=10, n_features=64, seed=seed)
        simulate(learner, digits, rates=(0.02, 0.8), rounds=40_000, seed=seed)
        simulate(learner, digits, rates=(0.05, 0.9), rounds=10_000, seed=seed + 1000)
        assert learner.alarms[0].kind == "noise"
        restarts += any(alarm.kind == "data" for alarm in learner.alarms)
    assert restarts <= 1


@pytest.mark.parametrize(("rates", "rounds"), [((0.0, 0.0), 3000), ((0.4, 0.2), 30_000)])
def test_no_label_stays_lost(rates: Any, rounds: Any) -> None:
    """Iris: in one run of ten a label is never played after the first hundred rounds, as another is right half of the
    time in its place. These seeds cover a dozen such runs."""
    iris, alarms = load("iris"), 0
    for seed in range(100):
        learner = Fliptron(n_classes=3, n_features=4, seed=seed)
        simulate(learner, iris, rates=rates, rounds=rounds, seed=seed)
        assert (learner.predict(iris.X) != iris.y).mean() < 0.2
        alarms += {alarm.kind for alarm in learner.alarms} == {"lost"}
    assert 5 <= alarms <= 25


def test_a_label_that_was_lost_is_found_by_the_loop_and_one_by_one_alike() -> None:
    iris = load("iris")
    loop, single = (Fliptron(n_classes=3, n_features=4, seed=26) for _ in range(2))
    log = simulate(loop, iris, rates=(0.0, 0.0), rounds=300, seed=26, log=True).log
    for row, bit in zip(log.row, log.bit, strict=True):
        single.learn(iris.X[row], single.decide(iris.X[row]), int(bit))
    assert [alarm.kind for alarm in loop.alarms] == ["lost"]
    assert single.alarms == loop.alarms
    np.testing.assert_array_equal(single.weights, loop.weights)


@pytest.mark.parametrize("form", ["full", "axes", "diagonal"])
def test_only_a_lost_label_and_the_one_that_stood_in_learn_anew(form: Any) -> None:
    iris = load("iris")
    for seed in range(200):
        learner = Fliptron(n_classes=3, n_features=4, form=form, seed=seed)
        random = np.random.default_rng(seed)
        for row in random.integers(len(iris.y), size=300):
            before, decision = learner.weights, learner.decide(iris.X[row])
            learner.learn(iris.X[row], decision, int(decision.label == iris.y[row]))
            if learner.alarms:
                break
        if [alarm.kind for alarm in learner.alarms] == ["lost"]:
            break
    after = learner.weights
    anew = ~after.any(axis=1)
    assert anew.sum() == 2
    assert anew[decision.label]  # it stood in
    np.testing.assert_allclose(after[~anew], before[~anew], rtol=0.5)  # the last bit moved that one too


def test_a_jump_in_the_channel_is_followed(digits: Any) -> None:
    found = []
    for seed in range(4):
        learner = Fliptron(n_classes=10, n_features=64, half_life=5000, seed=seed)
        simulate(learner, digits, rates=(0.05, 0.05), rounds=20_000, seed=seed)
        simulate(learner, digits, rates=(0.3, 0.3), rounds=60_000, seed=seed + 100)
        found.append(learner.rates)
    np.testing.assert_allclose(np.mean(found, axis=0), (0.3, 0.3), atol=0.08)


def test_what_it_cannot_be_is_refused() -> None:
    with pytest.raises(InputError, match="form is 'sketch'; 'auto', 'full', 'axes' or 'diagonal' is expected"):
        Fliptron(n_classes=3, n_features=2, form="sketch")
    with pytest.raises(InputError, match="half_life is 10"):
        Fliptron(n_classes=3, n_features=2, half_life=10)
    with pytest.raises(InputError, match="use form='diagonal'"):
        Fliptron(n_classes=10, n_features=40_000, form="full")
    with pytest.raises(InputError, match=r"1 - rho0 - rho1 is 1\.1e-16; at least 1e-09 is expected"):
        Fliptron(n_classes=3, n_features=2, rates=(1 - 2**-53, 0.0))
    assert isinstance(Fliptron(n_classes=3, n_features=2).rates, Rates)
