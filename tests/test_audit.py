"""What a log tells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fliptron import InputError, LeastMeanSquares, Log, RidgeRegression, Rounds, audit, evaluate, learn_log, simulate
from fliptron.logs.tables import write_table


def test_without_probabilities_the_mean_bit_still_bounds_the_rates(tmp_path: Path) -> None:
    rows = "".join(f"{20 + i % 37},{'ab'[i % 2]},{int(i % 4 == 0)}\n" for i in range(4000))
    (tmp_path / "log.csv").write_text("age,shown,clicked\n" + rows)
    found = audit(Log(tmp_path / "log.csv"))
    assert found.verdict == "not identified"
    assert found.intervals["rho0"] == pytest.approx((0.0, 0.25), abs=0.015)
    assert found.intervals["rho1"] == pytest.approx((0.0, 0.75), abs=0.015)
    assert min(found.intervals[name][1] - 0.25 for name in ("rho0", "accuracy", "beta")) > 0.0
    assert "ρ0 is at most the mean bit" in found.reason


class TestAudit:
    def test_with_margins_and_with_examples(self, digits: Any) -> None:
        learner = LeastMeanSquares(n_classes=10, n_features=64, gamma=0.1, seed=1)
        log = simulate(learner, digits, rates=(0.2, 0.4), rounds=100_000, seed=1, log=True).log
        truth = np.mean(log.label == digits.y[log.row])
        kept = {name: getattr(log, name) for name in ("label", "greedy", "probability", "bit")}
        for each in (log, Rounds(**kept, X=16.0 * digits.X[log.row])):
            found = audit(each)
            assert found.rates == pytest.approx((0.2, 0.4), abs=0.02)
            low, high = found.intervals["accuracy"]
            assert low <= truth <= high

    def test_how_examples_lie_in_memory_does_not_matter(self, digits: Any) -> None:
        learner = LeastMeanSquares(n_classes=10, n_features=64, gamma=0.1, seed=1)
        log = simulate(learner, digits, rates=(0.2, 0.4), rounds=5000, seed=1, log=True).log
        kept = {name: getattr(log, name) for name in ("label", "greedy", "probability", "bit")}
        X = digits.X[log.row]
        one, other = (audit(Rounds(**kept, X=each)) for each in (X, np.asfortranarray(X)))
        assert one.rates == other.rates

    def test_replay_learns_what_play_learnt(self, digits: Any) -> None:
        first, second = (RidgeRegression(n_classes=10, n_features=64, gamma=0.1) for _ in range(2))
        log = simulate(first, digits, rates=(0.2, 0.4), rounds=3000, log=True).log
        best, margin = second.replay(digits.X[log.row], log)
        assert second.rounds == 3000
        np.testing.assert_array_equal(first.weights, second.weights)
        np.testing.assert_array_equal(best, log.greedy)
        np.testing.assert_array_equal(margin, log.margin)


class TestLabelsThatComeAndGo:
    """No policy is judged by rounds in which it could not play what it wanted."""

    def log(self, path: Path, absent: Any, n: int = 20_000) -> tuple[Log, float]:
        """A log of three labels, the third of which is absent in some rounds; and how often "good" is right."""
        random = np.random.default_rng(0)
        x, there = random.normal(size=(n, 2)), ~absent(np.arange(n) / n)
        wanted = np.where(x[:, 0] > 0.5, 2, (x[:, 1] > 0).astype(int))
        old = np.where(there & (x[:, 1] > 1), 2, (x[:, 1] > 0.3).astype(int))
        played = np.where(random.random(n) < 0.3, random.integers(0, 2 + there), old)
        right = np.where(random.random(n) < 0.1, 0, wanted)
        names = np.array(["bags", "hats", "wigs"], dtype=object)
        columns = {"x": x[:, 0], "y": x[:, 1], "label": names[played], "good": names[right]}
        columns["probability"] = 0.3 / (2 + there) + 0.7 * (played == old)
        columns["bit"] = (random.random(n) < np.where(played == wanted, 0.7, 0.1)).astype(int)
        write_table(path, columns)
        return Log(path, others=["good"]), float(np.mean((right == wanted)[there]))

    @pytest.mark.parametrize("early", [True, False])
    def test_only_rounds_in_which_all_labels_were_in_play_count(self, tmp_path: Path, early: bool) -> None:
        log, truth = self.log(tmp_path / "log.parquet", (lambda t: t < 0.2) if early else (lambda t: t >= 0.8))
        start, stop = log.span[:2]
        assert log.describe().splitlines()[-1] == (
            f"count for no rates and no values: rounds 0 to {start - 1:,}, before 'wigs' was ever played"
            if early
            else f"count for no rates and no values: rounds from {stop:,} on, after 'wigs' last was"
        )
        found = evaluate(log, {"good": "good"})
        assert found.noise.intervals == audit(Log(tmp_path / "log.parquet", others=["good"])).intervals
        assert found.values["good"].rounds == stop - start == pytest.approx(16_000, abs=100)
        accuracy = found.values["good"].accuracy
        assert accuracy is not None
        low, high = accuracy["dr"][1]
        assert low <= truth <= high
        for noise in (found.noise, learn_log(log).estimate()):
            low, high = noise.intervals["rho0"]
            assert low <= 0.1 <= high

    def test_rare_labels_come_late_by_chance(self, tmp_path: Path) -> None:
        columns = {"label": np.arange(1000) % 500, "bit": np.arange(1000) % 2, "x": np.arange(1000) * 0.37 % 1}
        columns["label"][-2:] = 600
        write_table(tmp_path / "log.parquet", columns)
        log = Log(tmp_path / "log.parquet")
        assert log.span[:2] == (0, 1000)
        assert "count for no rates" not in log.describe()

    def test_a_label_that_a_policy_has_learnt_not_to_play_is_in_play(self, tmp_path: Path) -> None:
        random, n = np.random.default_rng(0), 3000
        x, early = random.random(n), np.arange(n) < 1000
        columns = {
            "label": np.where(early, random.integers(0, 3, n), x < 0.5),
            "probability": np.where(early, 1 / 3, 0.999),
        }
        columns |= {"bit": columns["label"] == (x < 0.5), "x": x}
        write_table(tmp_path / "log.parquet", columns)
        assert Log(tmp_path / "log.parquet").span[:2] == (0, n)

    def test_a_log_in_the_order_of_its_labels_says_nothing(self, tmp_path: Path) -> None:
        log, _ = self.log(tmp_path / "log.parquet", lambda t: t < 0.0, 2000)
        table = next(log.batches())
        order = np.argsort(table.rounds.label, kind="stable")
        columns = {name: values[order] for name, values in table.records.columns.items()} | {
            name: getattr(table.rounds, name)[order] for name in ("label", "probability", "bit")
        }
        write_table(tmp_path / "sorted.parquet", columns | {"label": columns["label"].astype(str), "nth": order})
        found = audit(Log(tmp_path / "sorted.parquet"))
        assert found.verdict == "not identified"
        assert "the labels were never all in play (rounds 0 to " in found.reason
        with pytest.raises(InputError, match="not in the order they were played, unless a column is named"):
            evaluate(Log(tmp_path / "sorted.parquet"), {})
        assert audit(Log(tmp_path / "sorted.parquet", time="nth")).verdict != "not identified"
