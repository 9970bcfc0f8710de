"""RCINE: estimates on time, guarded, and with any estimator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fliptron import RCINE, RCNBF, AnytimeRCNBF, InputError, simulate, theory
from fliptron.noise.estimate import Estimate
from fliptron.rounds import Rates


class TestRCINE:
    def test_with_plateaus_it_is_as_good_as_rcnbf_with_the_true_rates(self, digits: Any) -> None:
        rates = (0.2, 0.4)
        for seed in range(2):
            learner = RCINE(n_classes=10, n_features=64, gamma=0.2, seed=seed)
            told = RCNBF(n_classes=10, n_features=64, gamma=0.2, rates=rates, seed=seed)
            errors = [simulate(one, digits, rates=rates, rounds=300_000, seed=seed).error for one in (learner, told)]
            assert errors[0] < 1.1 * errors[1]
            assert learner.rates == pytest.approx(rates, abs=0.05)

    def test_estimates_are_recorded_every_refresh(self, digits: Any) -> None:
        learner = RCINE(n_classes=10, n_features=64, refresh=2000)
        trace = simulate(learner, digits, rates=(0.2, 0.4), rounds=9000)
        assert [at for at, _ in trace.estimates] == [2000, 4000, 6000, 8000]
        assert all(isinstance(found, Estimate) for _, found in trace.estimates)

    def test_an_estimate_is_left_or_moved_where_it_cannot_be_trusted(self, digits: Any) -> None:
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

            def absorb(self, window: Any) -> None:
                self.seen += len(window)
                assert window.X.shape == (1000, 64)

            def estimate(self) -> Any:
                return next(answers)

            def clear(self) -> None:
                self.cleared += 1

        scripted = Scripted()
        learner = RCINE(n_classes=10, n_features=64, estimator=scripted, refresh=1000, pooled=False)
        simulate(learner, digits, rates=(0.1, 0.2), rounds=3000)
        assert learner.rates == pytest.approx(
            (0.475, 0.475)
        )  # the third, moved to a β of 0.05; the second left no trace
        assert (scripted.seen, scripted.cleared) == (3000, 3)
        with pytest.raises(InputError, match="holds an object that a file cannot"):
            learner.save("never.npz")

    def test_the_window_holds_the_rounds_as_they_were(self, small: Any, small_sparse: Any) -> None:
        windows = []

        class Keeper:
            needs_rows = True

            def absorb(self, window: Any) -> None:
                windows.append(window)

            def estimate(self) -> Any:
                return Estimate(Rates(0.0, 0.0), "not identified", "")

            def clear(self) -> None:
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
    def test_any_refresh_makes_windows_of_a_sound_length(self, digits: Any, refresh: Any) -> None:
        learner = RCINE(n_classes=10, n_features=64, refresh=refresh)
        trace = simulate(learner, digits, rates=(0.2, 0.4), rounds=3 * refresh)
        assert [at for at, _ in trace.estimates] == [refresh, 2 * refresh, 3 * refresh]
        assert trace.estimates[-1][1].details["rounds"] == 3 * refresh
        assert learner.state.label.shape[0] > 2400
        again = simulate(learner, digits, rates=(0.2, 0.4), rounds=refresh)
        assert [at for at, _ in again.estimates] == [4 * refresh]

    def test_names_of_estimators(self) -> None:
        with pytest.raises(InputError, match="'plateaus', 'nrest' or 'nrest-one-hot'"):
            RCINE(n_classes=3, n_features=2, estimator="guess")
        with pytest.raises(InputError, match="refresh is 10"):
            RCINE(n_classes=3, n_features=2, refresh=10)
        with pytest.raises(InputError, match="beta_floor is nan"):
            RCINE(n_classes=3, n_features=2, beta_floor=np.nan)


def test_anytime_explores_by_the_rates_it_last_estimated(digits: Any, tmp_path: Path) -> None:
    learner = AnytimeRCNBF(n_classes=10, n_features=64, seed=1)
    simulate(learner, digits, rates=(0.2, 0.4), rounds=40_000, seed=1)
    assert learner.rates.rho0 > 0.1
    wanted = theory.anytime(n_classes=10, rates=learner.rates, complexity=learner.complexity)
    assert tuple(learner.turn[:3]) == wanted.steps
    learner.save(tmp_path / "learner.npz")
    again = AnytimeRCNBF.load(tmp_path / "learner.npz")
    assert again.gamma == learner.gamma == wanted.plain
    x = digits.X[0]
    assert again.decide(x) == learner.decide(x)
