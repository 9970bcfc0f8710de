"""Plateaus: rates, intervals, verdicts, and the true accuracy behind the bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fliptron import InputError, Plateaus
from fliptron.noise.estimate import BETA_FLOOR, Estimate, possible
from fliptron.rounds import Rates, Rounds
from made_up import K, glue, plateaus, rounds, smooth


class TestPlateaus:
    @pytest.mark.parametrize("rates", [(0.0, 0.0), (0.15, 0.15), (0.2, 0.4), (0.4, 0.2), (0.4, 0.4)])
    @pytest.mark.parametrize("n_classes", [2, 5, 50])
    def test_rates_are_found(self, rates: Any, n_classes: Any) -> None:
        columns, truth = rounds(200_000, rates, n_classes=n_classes)
        found = plateaus(columns, n_classes)
        assert found.verdict == "identified"
        assert found.rates == pytest.approx(rates, abs=0.015)
        assert found.accuracy == pytest.approx(np.mean(columns["label"] == truth), abs=0.05)
        assert found.greedy_accuracy == pytest.approx(np.mean(columns["greedy"] == truth), abs=0.05)

    def test_intervals_cover(self) -> None:
        hits = np.zeros(5)
        for seed in range(100):
            columns, truth = rounds(60_000, seed=seed)
            found = plateaus(columns)
            truths = (0.2, 0.4, 0.4, np.mean(columns["label"] == truth), np.mean(columns["greedy"] == truth))
            hits += [low <= true <= high for true, (low, high) in zip(truths, found.intervals.values(), strict=True)]
        assert (hits >= 88).all()  # of 100; a sound 95 % interval has fewer once in a thousand times

    @pytest.mark.parametrize(("k", "n"), [(4, 50_000), (4, 200_000), (8, 200_000)])
    def test_intervals_cover_where_no_round_is_quite_certain(self, k: Any, n: Any) -> None:
        found = [plateaus(smooth(n, k, seed=seed), 10).intervals for seed in range(30)]
        for name, true in (("rho0", 0.2), ("rho1", 0.4)):
            assert sum(each[name][0] <= true <= each[name][1] for each in found) >= 25

    def test_a_curve_that_rises_to_its_end_is_not_called_level(self) -> None:
        verdicts = [plateaus(smooth(200_000, 2, seed=seed), 10).verdict for seed in range(10)]
        assert verdicts.count("weakly identified") >= 7

    def test_a_narrow_plateau_is_found(self) -> None:
        columns, _ = rounds(400_000, certain=0.07, accuracy=0.6)
        found = plateaus(columns)
        assert found.rates.rho1 == pytest.approx(0.4, abs=0.03)
        assert found.details["confident_share"] == 0.05

    def test_early_rounds_do_not_spoil_the_plateau(self) -> None:
        early = rounds(60_000, accuracy=0.3, certain=0.0, seed=1)[0]
        found = plateaus(glue(early, rounds(200_000, seed=2)[0]))
        assert found.rates == pytest.approx((0.2, 0.4), abs=0.015)

    @pytest.mark.parametrize("margin", [np.zeros, lambda n: np.repeat([0.0, 1.0], n // 2)])
    def test_margins_that_tell_nothing_apart_identify_nothing(self, margin: Any) -> None:
        columns, _ = rounds(100_000)
        assert plateaus(columns | {"margin": margin(100_000)}).verdict == "not identified"

    def test_a_number_of_labels_that_does_not_fit_is_noticed(self) -> None:
        columns, _ = rounds(50_000)
        found = plateaus(columns, n_classes=50)
        assert found.verdict == "not identified"
        assert "1/probability averages" in found.reason
        certain = columns | {"probability": np.ones(50_000)}
        assert plateaus(certain).verdict == "not identified"

    def test_intervals_shrink_as_the_root_of_the_rounds(self) -> None:
        def width(n: Any) -> Any:
            low, high = plateaus(rounds(n, seed=1)[0]).intervals["rho0"]
            return high - low

        assert width(1_600_000) == pytest.approx(width(100_000) / 4, rel=0.15)

    def test_names_of_labels_do_not_matter(self) -> None:
        columns, _ = rounds(20_000)
        names = np.random.default_rng(1).permutation(K)
        renamed = columns | {each: names[columns[each]] for each in ("label", "greedy")}
        assert plateaus(renamed).rates == plateaus(columns).rates

    def test_order_within_a_window_does_not_matter(self) -> None:
        columns, _ = rounds(20_000)
        order = np.concatenate(
            [start + np.random.default_rng(start).permutation(5000) for start in range(0, 20_000, 5000)]
        )
        shuffled = {name: column[order] for name, column in columns.items()}
        assert plateaus(shuffled).rates == pytest.approx(plateaus(columns).rates, abs=1e-12)

    def test_rounds_may_come_one_by_one(self) -> None:
        columns, _ = rounds(1200)
        streamed = Plateaus(n_classes=K, window=500)
        for i in range(1200):
            streamed.observe(**{name: column[i] for name, column in columns.items()})
        assert streamed.estimate().rates == plateaus(columns, window=500).rates
        assert streamed.estimate().rates == plateaus(columns, window=500).rates  # asking changes nothing

    def test_probabilities_may_vary(self) -> None:
        early, _ = rounds(100_000, gamma=0.5, accuracy=0.4, seed=1)
        late, _ = rounds(100_000, gamma=0.05, accuracy=0.9, seed=2)
        both = glue(early, late)
        assert plateaus(both).rates == pytest.approx((0.2, 0.4), abs=0.015)

    def test_a_channel_that_changes_is_followed_with_a_half_life(self) -> None:
        before, _ = rounds(200_000, (0.1, 0.1), seed=1)
        after, _ = rounds(100_000, (0.3, 0.3), seed=2)
        both = glue(before, after)
        assert plateaus(both, half_life=20_000).rates == pytest.approx((0.3, 0.3), abs=0.03)
        assert plateaus(both).rates.rho0 < 0.22

    def test_a_learner_that_knows_nothing_is_not_identified(self) -> None:
        columns, _ = rounds(50_000, accuracy=1 / K, certain=0.0)
        found = plateaus(columns)
        assert found.verdict == "not identified"
        assert found.accuracy is None
        low, high = found.intervals["rho1"]
        assert low <= 0.4 <= high
        assert found.intervals["beta"][1] >= 0.4

    def test_a_learner_that_still_improves_is_weakly_identified_and_its_interval_holds(self) -> None:
        parts = [rounds(5000, accuracy=a, certain=0.0, seed=i)[0] for i, a in enumerate(np.linspace(0.3, 0.7, 8))]
        for settings in ({}, {"half_life": 20_000}):
            found = plateaus(glue(*parts), **settings)
            assert found.verdict == "weakly identified"
            assert found.rates.rho1 > 0.45  # over-stated, the benign side
            for name, true in (("rho0", 0.2), ("rho1", 0.4), ("beta", 0.4)):
                assert found.intervals[name][0] <= true <= found.intervals[name][1]
            assert found.intervals["beta"][0] > 0

    def test_what_fades_counts_for_less(self) -> None:
        """With weights f^i on windows of n rounds, n·(1 + f)/(1 − f) rounds are left in the long run."""
        columns, _ = rounds(400_000)
        found = plateaus(columns, half_life=20_000)
        fade = 0.5 ** (5000 / 20_000)
        explored = np.mean(columns["label"] != columns["greedy"])
        assert found.details["not_greedy"] == pytest.approx(explored * 5000 * (1 + fade) / (1 - fade), rel=0.1)
        assert found.details["rounds"] == 400_000

    def test_a_short_tail_changes_no_verdict(self) -> None:
        columns, _ = rounds(15_001)
        whole = {name: column[:15_000] for name, column in columns.items()}
        assert plateaus(columns).verdict == plateaus(whole).verdict == "weakly identified"

    @pytest.mark.parametrize("bit", [0, 1])
    def test_equal_bits_give_a_verdict_and_no_nan(self, bit: Any) -> None:
        columns, _ = rounds(20_000)
        found = plateaus(columns | {"bit": np.full(20_000, bit)})
        assert found.verdict == "not identified"
        assert np.isfinite(list(found.intervals.values())).all()
        assert found.rates.beta >= BETA_FLOOR - 1e-12

    def test_one_label_only_gives_a_verdict(self) -> None:
        columns, _ = rounds(20_000)
        one = columns | {"label": np.zeros(20_000, int), "greedy": np.zeros(20_000, int)}
        found = plateaus(one)
        assert found.verdict == "not identified"
        assert "only 0 rounds played another label" in found.reason

    def test_few_rounds_give_a_verdict(self) -> None:
        for n in (1, 5, 100, 1000):
            columns, _ = rounds(n)
            found = plateaus(columns)
            assert found.verdict != "identified"
            assert np.isfinite([*found.rates, *np.ravel(list(found.intervals.values()))]).all()

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"probability": np.zeros(100)}, "probability is 0 in round 0; at least 1e-30 and at most 1"),
            ({"probability": np.full(100, 1.5)}, "probability is 1.5"),
            ({"bit": np.full(100, 2)}, "bit is 2 in round 0; 0 or 1"),
            ({"bit": np.full(100, np.nan)}, "bit is nan in round 0; finite"),
            ({"label": np.full(100, K)}, f"label is {K} in round 0; a whole number from 0 to {K - 1}"),
            ({"margin": np.full(100, np.inf)}, "margin is inf"),
            ({"margin": np.zeros(99)}, r"\[99, 100\] rounds"),
            ({"bit": ["yes"] * 100}, "bit holds something that is not a number"),
        ],
    )
    def test_bad_columns_are_refused(self, change: Any, words: Any) -> None:
        columns, _ = rounds(100)
        with pytest.raises(InputError, match=words):
            plateaus(columns | change)


class TestTrueAccuracy:
    def test_doubt_in_the_rates_is_carried(self) -> None:
        found = plateaus(rounds(100_000)[0])
        value, (low, high) = found.true_accuracy(0.5)
        assert value == pytest.approx((0.5 - found.rates.rho0) / found.beta)
        ends = [
            (0.5 - rho0) / (1 - rho0 - rho1)
            for rho0, rho1 in zip(*map(found.intervals.get, ("rho0", "rho1")), strict=True)
        ]
        assert low < value < high
        assert high - low > 0.3 * abs(ends[1] - ends[0])

    def test_without_intervals_nothing_is_claimed(self) -> None:
        bare = Estimate(Rates(0.2, 0.4), "weakly identified", "no interval")
        value, interval = bare.true_accuracy(0.5)
        assert value == pytest.approx(0.75)
        assert interval == (0.0, 1.0)
        with pytest.raises(InputError, match="not identified"):
            Estimate(Rates(0.2, 0.4), "not identified", "why").true_accuracy(0.5)

    @pytest.mark.parametrize(("bit", "variance"), [(np.nan, 0.0), (7.0, 0.0), (0.5, -1.0)])
    def test_bad_means_are_refused(self, bit: Any, variance: Any) -> None:
        with pytest.raises(InputError):
            plateaus(rounds(100_000)[0]).true_accuracy(bit, variance)

    def test_another_policy_is_valued_from_the_same_log(self) -> None:
        covered = 0
        for seed in range(40):
            columns, truth = rounds(100_000, seed=seed)
            found = plateaus(columns)
            other = np.where(np.random.default_rng(seed).random(100_000) < 0.5, truth, (truth + 1) % K)
            log = Rounds.of(n_classes=K, **columns)
            value, (low, high) = found.policy_accuracy(log, other)
            covered += low <= np.mean(other == truth) <= high
            assert abs(value - 0.5) < 0.3
        assert covered >= 33

    def test_a_random_policy_is_right_one_time_in_k(self) -> None:
        columns, _ = rounds(100_000)
        value, (low, high) = plateaus(columns).policy_accuracy(
            Rounds.of(n_classes=K, **columns), np.full(100_000, 1 / K)
        )
        assert low < 1 / K < high
        assert value == pytest.approx(1 / K, abs=0.05)

    def test_bad_choices_are_refused(self) -> None:
        columns, _ = rounds(1000)
        log = Rounds.of(n_classes=K, **columns)
        found = plateaus(rounds(100_000)[0])
        with pytest.raises(InputError, match="one entry for each of 1000 rounds"):
            found.policy_accuracy(log, np.zeros(10, int))
        with pytest.raises(InputError, match="none of the labels"):
            found.policy_accuracy(log, np.zeros(1000))
        for bad in (np.full(1000, 3.0), np.full(1000, -0.5), np.full(1000, np.nan), ["a"] * 1000):
            with pytest.raises(InputError, match="neither a whole number"):
                found.policy_accuracy(log, bad)

    def test_one_matching_round_says_little(self) -> None:
        columns, _ = rounds(100_000)
        first = {name: column[:1] for name, column in columns.items()}
        _, (low, high) = plateaus(columns).policy_accuracy(Rounds.of(n_classes=K, **first), first["label"])
        assert high - low > 0.5


@pytest.mark.parametrize("rates", [(0.7, 0.7), (-0.1, 0.3), (1.2, -0.4), (0.0, 0.0), (0.5, 0.6), (0.0, 1.2)])
def test_possible_rates_are_possible(rates: Any) -> None:
    rho0, rho1 = possible(*rates)
    assert rho0 >= 0
    assert rho1 >= 0
    assert rho0 + rho1 <= 1 - BETA_FLOOR + 1e-12
