"""River's own suite on our classifier; our policy among its bandits keeps the decision of every pull."""

from __future__ import annotations

import random
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest
from river import bandit, checks, datasets, evaluate, metrics, preprocessing, stats
from river.preprocessing import TargetStandardScaler

from conftest import LEARNERS, NOT_GROWING
from fliptron import RDUE, Fliptron, InputError, Perceptron, RidgeRegression, load, simulate
from fliptron.adapters import river as adapter
from fliptron.adapters.river import NoisyBanditClassifier, NoisyBanditPolicy
from fliptron.experiments.adapted import ThroughRiver

CHECKS = list(checks.yield_checks(NoisyBanditClassifier()))
ARMS = ["left", "right", "up"]


@pytest.mark.parametrize("check", CHECKS, ids=[f"{i}-{check.__name__}" for i, check in enumerate(CHECKS)])
def test_every_check_of_river_passes(check: Any) -> None:
    random.seed(0)
    check(NoisyBanditClassifier())


def test_none_of_its_checks_is_skipped() -> None:
    model = NoisyBanditClassifier()
    assert len(CHECKS) >= 56
    assert not model._unit_test_skips()
    assert any(check.__name__ == "check_seeding_is_idempotent" for check in CHECKS)


def test_it_says_which_learners_cannot_take_labels_one_by_one() -> None:
    told = " ".join((NoisyBanditClassifier.__doc__ or "").split())
    assert all(f"`{name}`" in told for name in NOT_GROWING)
    model = NoisyBanditClassifier(RDUE, {"gamma": 0.3}, seed=1)
    for y in "abab":
        model.learn_one({"x": 1.0}, y)
    with pytest.raises(InputError, match="RDUE cannot take a new label"):
        model.learn_one({"x": 1.0}, "c")


@pytest.mark.parametrize("delay", [None, 20])
def test_progressive_validation_also_with_delay(delay: Any) -> None:
    model = preprocessing.StandardScaler() | NoisyBanditClassifier(rates=(0.05, 0.1), seed=1)
    found = evaluate.progressive_val_score(
        datasets.ImageSegments().take(1000), model, metrics.Accuracy(), moment=None, delay=delay
    )
    assert found.get() > 0.6  # one in seven by chance


def test_the_classifier_plays_rounds_behind_its_channel() -> None:
    """One is told the truth, the other noisy bits, and finds out how noisy they are."""
    rows = [({"x": float(i % 3 == 0), "y": float(i % 3 == 1)}, ARMS[i % 3]) for i in range(6000)]
    told, noisy = (
        NoisyBanditClassifier(Perceptron, seed=1),
        NoisyBanditClassifier(settings={"gamma": 0.3}, rates=(0.1, 0.3), seed=1),
    )
    for x, y in rows:
        told.learn_one(x, y)
        noisy.learn_one(x, y)
    for x, y in rows[:3]:
        assert told.predict_one(x) == noisy.predict_one(x) == y
        assert sum(noisy.predict_proba_one(x).values()) == pytest.approx(1.0)
    rates = noisy.estimate().rates
    assert rates.rho0 == pytest.approx(0.1, abs=0.06)
    assert rates.rho1 == pytest.approx(0.3, abs=0.06)


class TestPolicy:
    def test_it_plays_as_the_learner_itself_would(self) -> None:
        """Dicts, growing places and kept decisions change nothing: the very rounds of `simulate`."""
        data = load("iris")
        ours = simulate(Fliptron(n_classes=3, n_features=4, seed=2), data, rates=(0.2, 0.4), rounds=600, seed=2)
        through = simulate(ThroughRiver(n_classes=3, n_features=4, seed=2), data, rates=(0.2, 0.4), rounds=600, seed=2)
        assert through.mistakes.tolist() == ours.mistakes.tolist()

    def test_late_rewards_in_any_order_find_their_pulls(self) -> None:
        contexts = [{"x": float(i), "word": "ab"[i % 2]} for i in range(40)]
        prompt, late = NoisyBanditPolicy(seed=4), NoisyBanditPolicy(seed=4)
        learner = prompt._growing
        kept = []
        for policy in (prompt, late):
            arms = [policy.pull(ARMS, context) for context in contexts]
            kept.append(arms)
        assert kept[0] == kept[1]
        decisions = {key: list(each) for key, each in late._waiting.items()}
        assert sum(map(len, decisions.values())) == 40
        for i in random.Random(0).sample(range(40), 40):
            late.update(kept[1][i], dict(contexts[i]), i % 2)  # another object, equal
        assert not late._waiting
        for i in random.Random(0).sample(range(40), 40):
            row = learner.places.row(contexts[i])
            label = learner.number(kept[0][i])
            ((decision, _),) = decisions[adapter._key(label, row)]
            learner.learner.learn(row, decision, i % 2)
        assert np.array_equal(learner.learner.weights, late._growing.learner.weights)

    def test_a_prompt_reward_belongs_to_the_pull_just_made_and_a_late_one_to_the_oldest(self) -> None:
        """Where pulls without rewards wait, as in an evaluation on a log, they must not be taken for this one."""
        policy, context = NoisyBanditPolicy(RidgeRegression, {"gamma": 0.2}, seed=4), {"x": 1.0}
        twin = RidgeRegression(n_classes=len(ARMS), n_features=2, gamma=0.2, seed=4)
        x = np.array([1.0, 1.0])
        waiting: dict[Any, list[Any]] = {arm: [] for arm in ARMS}
        for t in range(300):
            same = dict(context)
            arm, decision = policy.pull(ARMS, same), twin.decide(x)
            assert arm == ARMS[decision.label]
            waiting[arm].append(decision)
            if t % 3 == 0:
                policy.update(arm, same, t % 2)
                twin.learn(x, waiting[arm].pop(), t % 2)
            if t % 3 == 1 and waiting[ARMS[t % 2]]:
                policy.update(ARMS[t % 2], dict(context), t % 2)
                twin.learn(x, waiting[ARMS[t % 2]].pop(0), t % 2)
        assert len({decision.probability for each in waiting.values() for decision in each}) > 1
        assert np.array_equal(policy._growing.learner.weights, twin.weights)

    def test_a_second_reward_for_one_context_is_that_of_the_oldest_pull(self) -> None:
        policy, context = NoisyBanditPolicy(seed=4), {"x": 1.0}
        for _ in range(30):
            policy.pull(ARMS, {"x": 1.0})
        arm = policy.pull(ARMS, context)
        (kept,) = [each for key, each in policy._waiting.items() if key[0] == ARMS.index(arm)]
        waited = list(kept)
        assert len(waited) > 2
        policy.update(arm, context, 1)
        assert list(kept) == waited[:-1]
        policy.update(arm, context, 1)
        assert list(kept) == waited[1:-1]

    def test_a_pull_of_some_of_the_arms_is_learnt_as_one(self) -> None:
        """The right arm may have been missing, so it must not count in the account of the noise."""
        policy = NoisyBanditPolicy(seed=3)
        policy.pull(ARMS, {"x": 0.0, "y": 0.0})
        learner = Fliptron(n_classes=len(ARMS), n_features=3, seed=3)
        learner.decide(np.array([1.0, 0.0, 0.0]))
        for t, (a, b) in enumerate(np.random.default_rng(0).standard_normal((300, 2)).tolist()):
            some = [0, 1 + t % (len(ARMS) - 1)] if t % 2 else None
            arm = policy.pull([ARMS[i] for i in some] if some else ARMS, {"x": a, "y": b})
            x = np.array([1.0, a, b])
            decision = learner.decide(x, some)
            assert arm == ARMS[decision.label]
            policy.update(arm, {"x": a, "y": b}, t % 2)
            learner.learn(x, decision, t % 2, eligible=some)
        for name, array in learner._arrays().items():
            assert np.array_equal(policy._growing.learner._arrays()[name], array, equal_nan=True), name

    @pytest.mark.parametrize("name", NOT_GROWING)
    def test_learners_that_cannot_grow_have_all_arms_of_the_first_list(self, name: Any) -> None:
        policy = NoisyBanditPolicy(LEARNERS[name].func, LEARNERS[name].keywords, seed=1)
        for t in range(30):
            context = {"x": t % 3 - 1.0, "y": 0.5}
            policy.update(policy.pull(ARMS, context), context, t % 2)
        assert policy._growing.learner.n_classes == len(ARMS)

    def test_names_that_turn_up_between_pull_and_reward_lose_nothing(self) -> None:
        policy = NoisyBanditPolicy(seed=1)
        early = {"x": 0.5}
        arm = policy.pull(ARMS, early)
        many = {f"n{i}": 1.0 for i in range(50)}
        policy.update(policy.pull(ARMS, many), many, 1)
        policy.update(arm, early, 0)
        assert not policy._waiting

    def test_pulls_without_rewards_do_not_pile_up(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(adapter, "WAITING", 10)
        policy = NoisyBanditPolicy(seed=1)
        for i in range(100):
            policy.pull(ARMS, {"x": float(i)})
            policy.pull(ARMS, {"x": 0.0})
        assert sum(map(len, policy._waiting.values())) <= 11 * 10

    def test_arms_may_come_and_go(self) -> None:
        policy = NoisyBanditPolicy(seed=1)
        assert policy.pull(["only"], {"x": 1.0}) == "only"
        policy.update("only", {"x": 1.0}, 1)
        for i in range(200):
            some = [["only", "left"], ["left", "right", "up"], ["up"]][i % 3]
            context = {"x": i % 7 / 7}
            arm = policy.pull(some, context)
            assert arm in some
            policy.update(arm, context, i % 2)
        assert {*policy.ranking} == {"only", *ARMS}

    def test_a_burn_in_pulls_every_arm_first(self) -> None:
        policy = NoisyBanditPolicy(burn_in=2, seed=1)
        pulled = []
        for _ in range(6):
            pulled.append(policy.pull(ARMS, {"x": 1.0}))
            policy.update(pulled[-1], {"x": 1.0}, 1)
        assert sorted(pulled) == sorted(ARMS * 2)
        assert not policy._waiting

    def test_a_scaler_is_for_what_measures_and_not_for_the_learner(self) -> None:
        scaled, plain = (NoisyBanditPolicy(reward_scaler=each, seed=1) for each in (TargetStandardScaler(None), None))
        for t in range(60):
            for policy in (scaled, plain):
                context = {"x": t % 3 - 1.0}
                policy.update(policy.pull(ARMS, context), context, int(t % 4 == 0))
        assert np.array_equal(scaled._growing.learner.weights, plain._growing.learner.weights)
        measured: Any = [[each.get() for each in policy._rewards.values()] for policy in (scaled, plain)]
        assert min(measured[0]) < 0 <= min(measured[1])

    def test_river_evaluates_and_clones_it(self) -> None:
        rng = random.Random(1)
        history = []
        for _ in range(3000):
            x, arm = {"x": rng.random(), "one": 1.0}, rng.choice(ARMS)
            history.append((ARMS, x, arm, int((arm == ARMS[int(x["x"] * 3)]) ^ (rng.random() < 0.1))))
        policy = NoisyBanditPolicy(RidgeRegression, {"gamma": 0.1}, reward_obj=stats.Mean(), seed=3)
        fresh = policy.clone()
        total: Any
        total, used = bandit.evaluate_offline(policy, history)
        assert 800 < used < 1200
        assert total.get() / used > 0.5
        assert fresh._growing.learner is None
        assert fresh._get_params()["settings"] == {"gamma": 0.1}

    def test_what_is_no_bit_is_refused_and_the_pull_waits_on(self) -> None:
        policy = NoisyBanditPolicy(seed=1)
        context = {"x": 1.0}
        arm = policy.pull(ARMS, context)
        with pytest.raises(InputError, match=r"feedback is 0\.5; 0 or 1 is expected"):
            policy.update(arm, context, 0.5)
        assert policy._n == 0
        policy.update(arm, context, True)
        assert not policy._waiting

    def test_refusals(self) -> None:
        with pytest.raises(InputError, match="learns from true labels"):
            NoisyBanditPolicy(Perceptron)
        with pytest.raises(InputError, match="there are no arms"):
            NoisyBanditPolicy().pull([], {"x": 1.0})
        classifier, policy = NoisyBanditClassifier(seed=1), NoisyBanditPolicy(seed=1)
        for y in ("a", "b"):
            classifier.learn_one({"x": 1.0, "y": 2.0}, y)
        for call in (
            lambda: classifier.learn_one({"x": 1.0, "y": float("nan")}, "a"),
            lambda: classifier.predict_one({"x": 1.0, "y": float("nan")}),
            lambda: policy.pull(ARMS, {"x": 1.0, "y": float("nan")}),
        ):
            with pytest.raises(InputError, match="feature 'y' is nan; a finite number is expected"):
                call()
        with pytest.raises(InputError, match="seed is -1"):
            NoisyBanditClassifier(seed=-1)
        with pytest.raises(InputError, match=r"rho0 \+ rho1 is 1"):
            NoisyBanditClassifier(rates=(0.5, 0.5))


def kept(model: Any) -> Any:
    """What a model remembers of names."""
    growing = model._growing
    return [*growing.labels], {**growing.places._places}, growing.learner and growing.learner.n_classes


def test_nothing_stays_of_a_call_that_is_refused() -> None:
    classifier, policy = NoisyBanditClassifier(seed=1), NoisyBanditPolicy(seed=1)
    context, nan = {"x": 1.0, "y": 2.0}, cast("Any", np.nan)
    for y in ("a", "b"):
        classifier.learn_one(context, y)
    policy.pull(ARMS, context)
    before = kept(classifier), kept(policy)
    for call, words in (
        (lambda: NoisyBanditClassifier().learn_one({"x": nan}, "w"), "feature 'x' is nan"),
        (lambda: classifier.learn_one({"x": nan, "y": 1.0}, "w"), "feature 'x' is nan"),
        (lambda: classifier.learn_one({"new": float("inf"), "y": 1.0}, "a"), "feature 'new' is inf"),
        (lambda: classifier.learn_one({"new": 1e200}, "w"), r"the example has length 1e\+200; at most 1e\+30"),
        (lambda: classifier.learn_one({"x": 1.0, "new": [1, 2]}, "w"), r"\[1, 2\] is neither a number nor a word"),
        (lambda: policy.update("new", {"new": 1.0}, 7), "feedback is 7; 0 or 1 is expected"),
        (lambda: policy.update("new", context, 7), "feedback is 7; 0 or 1 is expected"),
        (lambda: policy.update("up", {"new": 1.0}, 7), "feedback is 7; 0 or 1 is expected"),
        (lambda: policy.pull(["new", "newer"], {"x": nan, "y": 1.0}), "feature 'x' is nan"),
        (lambda: policy.pull(["new", nan], context), "a label is nan, which is missing"),
        (lambda: classifier.learn_one(context, nan), "a label is nan, which is missing; a name or a number"),
        (lambda: classifier.learn_one(context, pd.NA), "a label is <NA>, which is missing"),
        (lambda: classifier.learn_one(context, None), "a label is None, which is missing"),
        (lambda: classifier.learn_one(context, ["x"]), r"the label is \['x'\]; what may be a key of a dict"),
        (lambda: policy.update("new", {"new": 1.0}), "0 rewards are given; one, the bit, is expected"),
        (lambda: policy.update("new", {"new": 1.0}, 1, 0), "2 rewards are given; one, the bit, is expected"),
    ):
        with pytest.raises(InputError, match=words):
            call()
        assert (kept(classifier), kept(policy)) == before
