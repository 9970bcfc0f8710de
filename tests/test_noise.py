"""The noise estimators: plateaus, NREst as published, RCINE, and the true accuracy."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from fliptron import RCINE, RCNBF, Banditron, InputError, LeastMeanSquares, Plateaus, RidgeRegression, audit, simulate
from fliptron.noise import Estimate, Window
from fliptron.noise.estimate import BETA_FLOOR, possible
from fliptron.rounds import Rates

K = 5


def rounds(n, rates=(0.2, 0.4), *, seed=0, accuracy=0.8, certain=0.3, gamma=0.2, n_classes=K):
    """Columns of a log whose greedy label is surely right on the share `certain` of largest margins."""
    random = np.random.default_rng(seed)
    margin, truth = random.random(n), random.integers(n_classes, size=n)
    right = (margin > 1 - certain) | (random.random(n) < (accuracy - certain) / (1 - certain))
    greedy = np.where(right, truth, (truth + random.integers(1, n_classes, size=n)) % n_classes)
    label = np.where(random.random(n) < gamma, random.integers(n_classes, size=n), greedy)
    probability = gamma / n_classes + (1 - gamma) * (label == greedy)
    u = random.random(n)
    bit = np.where(label == truth, u >= rates[1], u < rates[0]).astype(int)
    columns = {"label": label, "greedy": greedy, "probability": probability, "bit": bit, "margin": margin}
    return columns, truth


def plateaus(columns, n_classes=K, **settings):
    estimator = Plateaus(n_classes=n_classes, **settings)
    estimator.observe(**columns)
    return estimator.estimate()


def smooth(n, k, *, seed=0, n_classes=10, rates=(0.2, 0.4), gamma=0.1):
    """Columns of a log whose accuracy rises smoothly with the margin m, as 1 − 0.6·e^(−k·m), and never is 1."""
    random = np.random.default_rng(seed)
    margin, truth = random.random(n), random.integers(n_classes, size=n)
    right = random.random(n) < 1 - 0.6 * np.exp(-k * margin)
    greedy = np.where(right, truth, (truth + random.integers(1, n_classes, size=n)) % n_classes)
    label = np.where(random.random(n) < gamma, random.integers(n_classes, size=n), greedy)
    probability = gamma / n_classes + (1 - gamma) * (label == greedy)
    u = random.random(n)
    bit = np.where(label == truth, u >= rates[1], u < rates[0]).astype(int)
    return {"label": label, "greedy": greedy, "probability": probability, "bit": bit, "margin": margin}


def glue(*parts):
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


class TestPlateaus:
    @pytest.mark.parametrize("rates", [(0.0, 0.0), (0.15, 0.15), (0.2, 0.4), (0.4, 0.2), (0.4, 0.4)])
    @pytest.mark.parametrize("n_classes", [2, 5, 50])
    def test_rates_are_found(self, rates, n_classes):
        columns, truth = rounds(200_000, rates, n_classes=n_classes)
        found = plateaus(columns, n_classes)
        assert found.verdict == "identified"
        assert found.rates == pytest.approx(rates, abs=0.015)
        assert found.accuracy == pytest.approx(np.mean(columns["label"] == truth), abs=0.05)
        assert found.greedy_accuracy == pytest.approx(np.mean(columns["greedy"] == truth), abs=0.05)

    def test_intervals_cover(self):
        hits = np.zeros(5)
        for seed in range(100):
            columns, truth = rounds(60_000, seed=seed)
            found = plateaus(columns)
            truths = (0.2, 0.4, 0.4, np.mean(columns["label"] == truth), np.mean(columns["greedy"] == truth))
            hits += [low <= true <= high for true, (low, high) in zip(truths, found.intervals.values(), strict=True)]
        assert (hits >= 88).all()  # of 100; a sound 95 % interval has fewer once in a thousand times

    @pytest.mark.parametrize(("k", "n"), [(4, 50_000), (4, 200_000), (8, 200_000)])
    def test_intervals_cover_where_no_round_is_quite_certain(self, k, n):
        found = [plateaus(smooth(n, k, seed=seed), 10).intervals for seed in range(30)]
        for name, true in (("rho0", 0.2), ("rho1", 0.4)):
            assert sum(each[name][0] <= true <= each[name][1] for each in found) >= 25

    def test_a_curve_that_rises_to_its_end_is_not_called_level(self):
        verdicts = [plateaus(smooth(200_000, 2, seed=seed), 10).verdict for seed in range(10)]
        assert verdicts.count("weakly identified") >= 7

    def test_a_narrow_plateau_is_found(self):
        columns, _ = rounds(400_000, certain=0.07, accuracy=0.6)
        found = plateaus(columns)
        assert found.rates.rho1 == pytest.approx(0.4, abs=0.03)
        assert found.details["confident_share"] == 0.05

    def test_early_rounds_do_not_spoil_the_plateau(self):
        early = rounds(60_000, accuracy=0.3, certain=0.0, seed=1)[0]
        found = plateaus(glue(early, rounds(200_000, seed=2)[0]))
        assert found.rates == pytest.approx((0.2, 0.4), abs=0.015)

    @pytest.mark.parametrize("margin", [np.zeros, lambda n: np.repeat([0.0, 1.0], n // 2)])
    def test_margins_that_tell_nothing_apart_identify_nothing(self, margin):
        columns, _ = rounds(100_000)
        assert plateaus(columns | {"margin": margin(100_000)}).verdict == "not identified"

    def test_a_number_of_labels_that_does_not_fit_is_noticed(self):
        columns, _ = rounds(50_000)
        found = plateaus(columns, n_classes=50)
        assert found.verdict == "not identified"
        assert "1/probability averages" in found.reason
        certain = columns | {"probability": np.ones(50_000)}
        assert plateaus(certain).verdict == "not identified"

    def test_intervals_shrink_as_the_root_of_the_rounds(self):
        def width(n):
            low, high = plateaus(rounds(n, seed=1)[0]).intervals["rho0"]
            return high - low

        assert width(1_600_000) == pytest.approx(width(100_000) / 4, rel=0.15)

    def test_names_of_labels_do_not_matter(self):
        columns, _ = rounds(20_000)
        names = np.random.default_rng(1).permutation(K)
        renamed = columns | {each: names[columns[each]] for each in ("label", "greedy")}
        assert plateaus(renamed).rates == plateaus(columns).rates

    def test_order_within_a_window_does_not_matter(self):
        columns, _ = rounds(20_000)
        order = np.concatenate(
            [start + np.random.default_rng(start).permutation(5000) for start in range(0, 20_000, 5000)]
        )
        shuffled = {name: column[order] for name, column in columns.items()}
        assert plateaus(shuffled).rates == pytest.approx(plateaus(columns).rates, abs=1e-12)

    def test_rounds_may_come_one_by_one(self):
        columns, _ = rounds(1200)
        streamed = Plateaus(n_classes=K, window=500)
        for i in range(1200):
            streamed.observe(**{name: column[i] for name, column in columns.items()})
        assert streamed.estimate().rates == plateaus(columns, window=500).rates
        assert streamed.estimate().rates == plateaus(columns, window=500).rates  # asking changes nothing

    def test_probabilities_may_vary(self):
        early, _ = rounds(100_000, gamma=0.5, accuracy=0.4, seed=1)
        late, _ = rounds(100_000, gamma=0.05, accuracy=0.9, seed=2)
        both = glue(early, late)
        assert plateaus(both).rates == pytest.approx((0.2, 0.4), abs=0.015)

    def test_a_channel_that_changes_is_followed_with_a_half_life(self):
        before, _ = rounds(200_000, (0.1, 0.1), seed=1)
        after, _ = rounds(100_000, (0.3, 0.3), seed=2)
        both = glue(before, after)
        assert plateaus(both, half_life=20_000).rates == pytest.approx((0.3, 0.3), abs=0.03)
        assert plateaus(both).rates.rho0 < 0.22

    def test_a_learner_that_knows_nothing_is_not_identified(self):
        columns, _ = rounds(50_000, accuracy=1 / K, certain=0.0)
        found = plateaus(columns)
        assert found.verdict == "not identified"
        assert found.accuracy is None
        low, high = found.intervals["rho1"]
        assert low <= 0.4 <= high
        assert found.intervals["beta"][1] >= 0.4

    def test_a_learner_that_still_improves_is_weakly_identified_and_its_interval_holds(self):
        parts = [rounds(5000, accuracy=a, certain=0.0, seed=i)[0] for i, a in enumerate(np.linspace(0.3, 0.7, 8))]
        for settings in ({}, {"half_life": 20_000}):
            found = plateaus(glue(*parts), **settings)
            assert found.verdict == "weakly identified"
            assert found.rates.rho1 > 0.45  # over-stated, the benign side
            for name, true in (("rho0", 0.2), ("rho1", 0.4), ("beta", 0.4)):
                assert found.intervals[name][0] <= true <= found.intervals[name][1]
            assert found.intervals["beta"][0] > 0

    def test_what_fades_counts_for_less(self):
        """With weights f^i on windows of n rounds, n·(1 + f)/(1 − f) rounds are left in the long run."""
        columns, _ = rounds(400_000)
        found = plateaus(columns, half_life=20_000)
        fade = 0.5 ** (5000 / 20_000)
        explored = np.mean(columns["label"] != columns["greedy"])
        assert found.details["explored"] == pytest.approx(explored * 5000 * (1 + fade) / (1 - fade), rel=0.1)
        assert found.details["rounds"] == 400_000

    def test_a_short_tail_changes_no_verdict(self):
        columns, _ = rounds(15_001)
        whole = {name: column[:15_000] for name, column in columns.items()}
        assert plateaus(columns).verdict == plateaus(whole).verdict == "weakly identified"

    @pytest.mark.parametrize("bit", [0, 1])
    def test_equal_bits_give_a_verdict_and_no_nan(self, bit):
        columns, _ = rounds(20_000)
        found = plateaus(columns | {"bit": np.full(20_000, bit)})
        assert found.verdict == "not identified"
        assert np.isfinite(list(found.intervals.values())).all()
        assert found.rates.beta >= BETA_FLOOR - 1e-12

    def test_one_label_only_gives_a_verdict(self):
        columns, _ = rounds(20_000)
        one = columns | {"label": np.zeros(20_000, int), "greedy": np.zeros(20_000, int)}
        found = plateaus(one)
        assert found.verdict == "not identified"
        assert "only 0 rounds played another label" in found.reason

    def test_few_rounds_give_a_verdict(self):
        for n in (1, 5, 100, 1000):
            columns, _ = rounds(n)
            found = plateaus(columns)
            assert found.verdict != "identified"
            assert np.isfinite([*found.rates, *np.ravel(list(found.intervals.values()))]).all()

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"probability": np.zeros(100)}, "probability is 0 in round 0; above 0 and at most 1"),
            ({"probability": np.full(100, 1.5)}, "probability is 1.5"),
            ({"bit": np.full(100, 2)}, "bit is 2 in round 0; 0 or 1"),
            ({"bit": np.full(100, np.nan)}, "bit is nan in round 0; finite"),
            ({"label": np.full(100, K)}, f"label is {K} in round 0; a whole number from 0 to {K - 1}"),
            ({"margin": np.full(100, np.inf)}, "margin is inf"),
            ({"margin": np.zeros(99)}, r"\[99, 100\] rounds"),
            ({"bit": ["yes"] * 100}, "bit holds something that is not a number"),
        ],
    )
    def test_bad_columns_are_refused(self, change, words):
        columns, _ = rounds(100)
        with pytest.raises(InputError, match=words):
            plateaus(columns | change)


class TestTrueAccuracy:
    def test_doubt_in_the_rates_is_carried(self):
        found = plateaus(rounds(100_000)[0])
        value, (low, high) = found.true_accuracy(0.5)
        assert value == pytest.approx((0.5 - found.rates.rho0) / found.beta)
        ends = [
            (0.5 - rho0) / (1 - rho0 - rho1)
            for rho0, rho1 in zip(*map(found.intervals.get, ("rho0", "rho1")), strict=True)
        ]
        assert low < value < high
        assert high - low > 0.3 * abs(ends[1] - ends[0])

    def test_without_intervals_nothing_is_claimed(self):
        bare = Estimate(Rates(0.2, 0.4), "weakly identified", "no interval")
        assert bare.true_accuracy(0.5) == (pytest.approx(0.75), (0.0, 1.0))
        with pytest.raises(InputError, match="not identified"):
            Estimate(Rates(0.2, 0.4), "not identified", "why").true_accuracy(0.5)

    @pytest.mark.parametrize(("bit", "variance"), [(np.nan, 0.0), (7.0, 0.0), (0.5, -1.0)])
    def test_bad_means_are_refused(self, bit, variance):
        with pytest.raises(InputError):
            plateaus(rounds(100_000)[0]).true_accuracy(bit, variance)

    def test_another_policy_is_valued_from_the_same_log(self):
        covered = 0
        for seed in range(40):
            columns, truth = rounds(100_000, seed=seed)
            found = plateaus(columns)
            other = np.where(np.random.default_rng(seed).random(100_000) < 0.5, truth, (truth + 1) % K)
            log = Window.of(n_classes=K, **columns)
            value, (low, high) = found.policy_accuracy(log, other)
            covered += low <= np.mean(other == truth) <= high
            assert abs(value - 0.5) < 0.3
        assert covered >= 33

    def test_a_random_policy_is_right_one_time_in_k(self):
        columns, _ = rounds(100_000)
        value, (low, high) = plateaus(columns).policy_accuracy(
            Window.of(n_classes=K, **columns), np.full(100_000, 1 / K)
        )
        assert low < 1 / K < high
        assert value == pytest.approx(1 / K, abs=0.05)

    def test_bad_choices_are_refused(self):
        columns, _ = rounds(1000)
        log = Window.of(n_classes=K, **columns)
        found = plateaus(rounds(100_000)[0])
        with pytest.raises(InputError, match="one entry for each of 1000 rounds"):
            found.policy_accuracy(log, np.zeros(10, int))
        with pytest.raises(InputError, match="none of the labels"):
            found.policy_accuracy(log, np.zeros(1000))
        for bad in (np.full(1000, 3.0), np.full(1000, -0.5), np.full(1000, np.nan), ["a"] * 1000):
            with pytest.raises(InputError, match="neither a whole number"):
                found.policy_accuracy(log, bad)

    def test_one_matching_round_says_little(self):
        columns, _ = rounds(100_000)
        first = {name: column[:1] for name, column in columns.items()}
        _, (low, high) = plateaus(columns).policy_accuracy(Window.of(n_classes=K, **first), first["label"])
        assert high - low > 0.5


@pytest.mark.parametrize("rates", [(0.7, 0.7), (-0.1, 0.3), (1.2, -0.4), (0.0, 0.0), (0.5, 0.6), (0.0, 1.2)])
def test_possible_rates_are_possible(rates):
    rho0, rho1 = possible(*rates)
    assert rho0 >= 0
    assert rho1 >= 0
    assert rho0 + rho1 <= 1 - BETA_FLOOR + 1e-12


class TestRCINE:
    def test_with_plateaus_it_is_as_good_as_rcnbf_with_the_true_rates(self, digits):
        rates = (0.2, 0.4)
        for seed in range(2):
            learner = RCINE(n_classes=10, n_features=64, gamma=0.2, seed=seed)
            told = RCNBF(n_classes=10, n_features=64, gamma=0.2, rates=rates, seed=seed)
            errors = [simulate(one, digits, rates=rates, rounds=300_000, seed=seed).error for one in (learner, told)]
            assert errors[0] < 1.1 * errors[1]
            assert learner.rates == pytest.approx(rates, abs=0.05)

    def test_estimates_are_recorded_every_refresh(self, digits):
        learner = RCINE(n_classes=10, n_features=64, refresh=2000)
        trace = simulate(learner, digits, rates=(0.2, 0.4), rounds=9000)
        assert [at for at, _ in trace.estimates] == [2000, 4000, 6000, 8000]
        assert all(isinstance(found, Estimate) for _, found in trace.estimates)

    def test_an_estimate_that_cannot_be_trusted_is_not_taken(self, digits):
        answers = iter(
            [
                Estimate(Rates(0.1, 0.2), "identified", "good"),
                Estimate(Rates(0.3, 0.3), "not identified", "bad"),
                Estimate(Rates(0.49, 0.49), "weakly identified", "beta below the floor"),
            ]
        )

        class Scripted:
            needs_rows = True
            seen = cleared = 0

            def absorb(self, window):
                self.seen += window.rounds
                assert window.X.shape == (1000, 64)

            def estimate(self):
                return next(answers)

            def clear(self):
                self.cleared += 1

        scripted = Scripted()
        learner = RCINE(n_classes=10, n_features=64, estimator=scripted, refresh=1000, pooled=False)
        simulate(learner, digits, rates=(0.1, 0.2), rounds=3000)
        assert learner.rates == (0.1, 0.2)
        assert (scripted.seen, scripted.cleared) == (3000, 3)
        with pytest.raises(InputError, match="holds an object that a file cannot"):
            learner.save("never.npz")

    def test_the_window_holds_the_rounds_as_they_were(self, small, small_sparse):
        windows = []

        class Keeper:
            needs_rows = True

            def absorb(self, window):
                windows.append(window)

            def estimate(self):
                return Estimate(Rates(0.0, 0.0), "not identified", "")

            def clear(self):
                pass

        for data in (small, small_sparse):
            learner = RCINE(n_classes=3, n_features=5, estimator=Keeper(), refresh=300)
            log = simulate(learner, data, rates=(0.2, 0.2), rounds=700, log=True).log
            for window, start in zip(windows[-2:], (0, 300), strict=True):
                part = slice(start, start + 300)
                np.testing.assert_allclose(window.X, small.X[log.row[part]], atol=1e-6)
                for name in ("label", "greedy", "probability", "bit", "margin"):
                    np.testing.assert_allclose(getattr(window, name), getattr(log, name)[part], atol=1e-12)

    @pytest.mark.parametrize("refresh", [5003, 12_007])
    def test_any_refresh_makes_windows_of_a_sound_length(self, digits, refresh):
        learner = RCINE(n_classes=10, n_features=64, refresh=refresh)
        trace = simulate(learner, digits, rates=(0.2, 0.4), rounds=3 * refresh)
        assert [at for at, _ in trace.estimates] == [refresh, 2 * refresh, 3 * refresh]
        assert trace.estimates[-1][1].details["rounds"] == 3 * refresh
        assert learner.state.columns.shape[0] > 2400
        again = simulate(learner, digits, rates=(0.2, 0.4), rounds=refresh)
        assert [at for at, _ in again.estimates] == [4 * refresh]

    def test_names_of_estimators(self):
        with pytest.raises(InputError, match="'plateaus', 'nrest', or 'nrest:'"):
            RCINE(n_classes=3, n_features=2, estimator="guess")
        with pytest.raises(InputError, match="refresh is 10"):
            RCINE(n_classes=3, n_features=2, refresh=10)
        with pytest.raises(InputError, match="beta_floor is nan"):
            RCINE(n_classes=3, n_features=2, beta_floor=np.nan)


class TestAudit:
    def test_with_margins_and_with_examples(self, digits):
        learner = LeastMeanSquares(n_classes=10, n_features=64, gamma=0.1, seed=1)
        log = simulate(learner, digits, rates=(0.2, 0.4), rounds=100_000, seed=1, log=True).log
        from fliptron.logs import Log

        truth = np.mean(log.label == digits.y[log.row])
        kept = {name: getattr(log, name) for name in ("label", "greedy", "probability", "bit")}
        for each in (log, Log(**kept, margin=None, X=16.0 * digits.X[log.row])):
            found = audit(each)
            assert found.rates == pytest.approx((0.2, 0.4), abs=0.02)
            low, high = found.intervals["accuracy"]
            assert low <= truth <= high

    def test_replay_learns_what_play_learnt(self, digits):
        from fliptron.kernels.loop import replay

        first, second = (RidgeRegression(n_classes=10, n_features=64, gamma=0.1) for _ in range(2))
        log = simulate(first, digits, rates=(0.2, 0.4), rounds=3000, log=True).log
        best, margin = np.empty(3000, dtype=np.int64), np.empty(3000)
        columns = (log.label, log.greedy, log.probability, log.bit.astype(np.int64))
        replay(second.state, digits.X[log.row], *columns, best, margin)
        np.testing.assert_array_equal(first.weights, second.weights)
        np.testing.assert_array_equal(best, log.greedy)
        np.testing.assert_array_equal(margin, log.margin)


class TestNREst:
    @pytest.fixture(autouse=True)
    def _torch(self):
        pytest.importorskip("torch", reason="PyTorch is an optional extra")

    @staticmethod
    def window(n, wrong, rates=(0.15, 0.15), seed=0):
        """Rounds whose x tells at once whether the label was right: the network's easiest case."""
        random = np.random.default_rng(seed)
        label = random.integers(3, size=n)
        right = random.random(n) >= wrong
        X = np.eye(3)[np.where(right, label, (label + random.integers(1, 3, size=n)) % 3)] + 0.05 * random.normal(
            size=(n, 3)
        )
        u = random.random(n)
        bit = np.where(right, u >= rates[1], u < rates[0])
        fixed = {"greedy": label, "probability": np.full(n, 0.5), "margin": np.zeros(n)}
        return Window.of(n_classes=3, label=label, bit=bit, X=X, **fixed)

    @staticmethod
    def nrest(**settings):
        from fliptron.noise.published import NREst

        return NREst(**({"n_classes": 3, "hidden": (32, 32), "epochs": 20, "seed": 1} | settings))

    @pytest.mark.parametrize("settings", [{}, {"examples": "counterfactual"}])
    def test_rates_are_found_when_many_rows_are_wrong(self, settings):
        estimator = self.nrest(**settings)
        estimator.absorb(self.window(12_000, wrong=0.5))
        found = estimator.estimate()
        assert found.rates == pytest.approx((0.15, 0.15), abs=0.06)
        assert len(found.details["perfect"]) == (3 if settings else 2)
        assert 0 < found.details["validation_loss"] < 0.7

    def test_it_collapses_when_few_rows_are_wrong_and_the_plateaus_do_not(self):
        """Fewer than 11 % wrong rows: the 89th percentile of p(bit 0) lands among the right ones."""
        estimator = self.nrest()
        estimator.absorb(self.window(12_000, wrong=0.05))
        assert estimator.estimate().rates.rho0 > 0.5  # the truth is 0.15
        columns, _ = rounds(50_000, (0.15, 0.15), accuracy=0.99, certain=0.9, gamma=0.05)
        assert plateaus(columns).rates == pytest.approx((0.15, 0.15), abs=0.03)

    def test_it_collapses_when_nearly_all_rows_are_wrong(self):
        estimator = self.nrest()
        estimator.absorb(self.window(12_000, wrong=0.95))
        assert estimator.estimate().rates.rho1 > 0.5  # the truth is 0.15

    def test_the_best_epoch_is_kept(self):
        losses = []
        estimator = self.nrest(epochs=8, learning_rate=0.3, progress=lambda *told: losses.append(told[2]))
        estimator.absorb(self.window(2000, wrong=0.5))
        details = estimator.estimate().details
        assert details["validation_loss"] == min(losses)
        assert details["epoch"] == 1 + int(np.argmin(losses))

    def test_rows_are_scaled_and_labels_encoded(self):
        window = self.window(2000, wrong=0.5)
        found = []
        for size in (1.0, 10.0):
            estimator = self.nrest(epochs=2)
            estimator.absorb(Window(*window.columns(), size * window.X))
            found.append(estimator.estimate().rates)
        assert found[0] == pytest.approx(found[1], abs=1e-5)
        labels = np.array([0, 2])
        np.testing.assert_array_equal(self.nrest()._encode(labels), [[1, 0, 0], [0, 0, 1]])
        np.testing.assert_array_equal(self.nrest(label="integer")._encode(labels), [[0], [2]])

    def test_a_perfect_example_is_the_largest_below_the_percentile(self):
        from fliptron.noise.published import _perfect

        q = np.arange(10) / 10.0  # the 89th percentile, taken higher, is 0.9
        assert _perfect(q, 89.0) == 8
        assert _perfect(q, 80.0) == 7

    def test_bad_rows_are_refused(self):
        window = self.window(2000, wrong=0.5)
        columns = dict(zip(("label", "greedy", "probability", "bit", "best", "margin"), window.columns(), strict=True))
        X = np.array(window.X)
        X[3, 1] = np.nan
        with pytest.raises(InputError, match="nan at row 3, column 1"):
            Window.of(n_classes=3, X=X, **columns)
        with pytest.raises(InputError, match=r"\[10, 2000\] rounds"):
            Window.of(n_classes=3, X=np.ones((10, 3)), **columns)

    def test_the_same_seed_gives_the_same_rates(self):
        found = []
        for _ in range(2):
            estimator = self.nrest(epochs=2)
            estimator.absorb(self.window(2000, wrong=0.5))
            found.append(estimator.estimate().rates)
        assert found[0] == found[1]

    def test_progress_is_told_and_can_stop_it(self):
        told = []

        def stop_at_three(epoch, epochs, loss):
            told.append((epoch, epochs, loss))
            return epoch == 3

        estimator = self.nrest(progress=stop_at_three)
        estimator.absorb(self.window(2000, wrong=0.5))
        estimator.estimate()
        assert [(epoch, epochs) for epoch, epochs, _ in told] == [(1, 20), (2, 20), (3, 20)]

    def test_steps_are_those_of_autograd_and_adagrad(self):
        import torch

        from fliptron.noise.published import Network

        network = Network([6, 8, 4, 2], 0.3, np.random.default_rng(0))
        layers = [torch.nn.Linear(a, b) for a, b in ((6, 8), (8, 4), (4, 2))]
        for (W, bias), layer in zip(network._layers, layers, strict=True):
            layer.weight.data, layer.bias.data = W.T.clone(), bias.clone()
        parameters = [p for layer in layers for p in layer.parameters()]
        optimizer = torch.optim.Adagrad(parameters, lr=0.01, eps=1e-6)
        masks = []
        drawn = network._mask
        network._mask = lambda shape: masks.append(drawn(shape)) or masks[-1]
        for _ in range(10):
            masks.clear()
            X, y = torch.randn(16, 6), torch.randint(0, 2, (16,))
            network.step(X, torch.nn.functional.one_hot(y, 2).float(), 0.01, 1e-6)
            hidden = X
            for layer, mask in zip(layers[:-1], masks, strict=True):
                hidden = torch.relu(layer(hidden)) * mask
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(layers[-1](hidden), y).backward()
            optimizer.step()
        for (W, bias), layer in zip(network._layers, layers, strict=True):
            torch.testing.assert_close(W, layer.weight.data.T, rtol=1e-4, atol=1e-6)
            torch.testing.assert_close(bias, layer.bias.data, rtol=1e-4, atol=1e-6)

    def test_inside_rcine_it_is_algorithm_2(self, small):
        learner = RCINE(n_classes=3, n_features=5, estimator=self.nrest(epochs=2), refresh=600, pooled=False)
        trace = simulate(learner, small, rates=(0.2, 0.2), rounds=1300)
        assert [at for at, _ in trace.estimates] == [600, 1200]

    def test_integer_labels_and_bad_settings(self):
        estimator = self.nrest(label="integer", epochs=1)
        estimator.absorb(self.window(2000, wrong=0.5))
        assert 0 <= estimator.estimate().rates.rho0 < 1
        for settings, words in (
            ({"label": "text"}, "'one-hot' or 'integer'"),
            ({"examples": "all"}, "'visited' or 'counterfactual'"),
            ({"percentile": 101}, "percentile is 101"),
            ({"epochs": 0}, "epochs is 0"),
        ):
            with pytest.raises(InputError, match=words):
                self.nrest(**settings)
        few = self.nrest()
        few.absorb(self.window(100, wrong=0.5))
        with pytest.raises(InputError, match="100 rounds; at least 256"):
            few.estimate()
        with pytest.raises(InputError, match="no window"):
            self.nrest().estimate()


def test_without_pytorch_nrest_says_what_to_install(monkeypatch):
    from fliptron.noise.published import NREst

    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(InputError, match=r"pip install 'fliptron\[torch\]'"):
        NREst(n_classes=3)
    assert Banditron(n_classes=3, n_features=2).decide([1.0, 0.0]).label in range(3)
