"""NREst as published: its steps, its switches, and where it breaks."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from fliptron import RCINE, Banditron, InputError, simulate
from fliptron.rounds import Rounds
from made_up import plateaus, rounds


class TestNREst:
    @pytest.fixture(autouse=True)
    def _torch(self) -> None:
        pytest.importorskip("torch", reason="PyTorch is an optional extra")

    @staticmethod
    def window(n: Any, wrong: Any, rates: Any = (0.15, 0.15), seed: Any = 0) -> Any:
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
        return Rounds.of(n_classes=3, label=label, bit=bit, X=X, **fixed)

    @staticmethod
    def nrest(**settings: Any) -> Any:
        from fliptron.noise.published import NREst

        return NREst(**({"n_classes": 3, "hidden": (32, 32), "epochs": 20, "seed": 1} | settings))

    @pytest.mark.parametrize("settings", [{}, {"examples": "counterfactual"}])
    def test_rates_are_found_when_many_rows_are_wrong(self, settings: Any) -> None:
        estimator = self.nrest(**settings)
        estimator.absorb(self.window(12_000, wrong=0.5))
        found = estimator.estimate()
        assert found.rates == pytest.approx((0.15, 0.15), abs=0.06)
        assert len(found.details["perfect"]) == (3 if settings else 2)
        assert 0 < found.details["validation_loss"] < 0.7

    def test_it_collapses_when_few_rows_are_wrong_and_the_plateaus_do_not(self) -> None:
        """Fewer than 11 % wrong rows: the 89th percentile of p(bit 0) lands among the right ones."""
        estimator = self.nrest()
        estimator.absorb(self.window(12_000, wrong=0.05))
        assert estimator.estimate().rates.rho0 > 0.5  # the truth is 0.15
        columns, _ = rounds(50_000, (0.15, 0.15), accuracy=0.99, certain=0.9, gamma=0.05)
        assert plateaus(columns).rates == pytest.approx((0.15, 0.15), abs=0.03)

    def test_it_collapses_when_nearly_all_rows_are_wrong(self) -> None:
        estimator = self.nrest()
        estimator.absorb(self.window(12_000, wrong=0.95))
        assert estimator.estimate().rates.rho1 > 0.5  # the truth is 0.15

    def test_the_best_epoch_is_kept(self) -> None:
        losses = []
        estimator = self.nrest(epochs=8, learning_rate=0.3, progress=lambda *told: losses.append(told[2]))
        estimator.absorb(self.window(2000, wrong=0.5))
        details = estimator.estimate().details
        assert details["validation_loss"] == min(losses)
        assert details["epoch"] == 1 + int(np.argmin(losses))

    def test_rows_are_scaled_and_labels_encoded(self) -> None:
        window = self.window(2000, wrong=0.5)
        found = []
        for size in (1.0, 10.0):
            estimator = self.nrest(epochs=2)
            estimator.absorb(replace(window, X=size * window.X))
            found.append(estimator.estimate().rates)
        assert found[0] == pytest.approx(found[1], abs=1e-5)
        labels = np.array([0, 2])
        np.testing.assert_array_equal(self.nrest()._encode(labels), [[1, 0, 0], [0, 0, 1]])
        np.testing.assert_array_equal(self.nrest(label="integer")._encode(labels), [[0], [2]])

    def test_a_perfect_example_is_the_largest_below_the_percentile(self) -> None:
        from fliptron.noise.published import _perfect

        q = np.arange(10) / 10.0  # the 89th percentile, taken higher, is 0.9
        assert _perfect(q, 89.0) == 8
        assert _perfect(q, 80.0) == 7

    def test_bad_rows_are_refused(self) -> None:
        window = self.window(2000, wrong=0.5)
        columns = {name: column for name, column in window.columns().items() if name != "X"}
        X = np.array(window.X)
        X[3, 1] = np.nan
        with pytest.raises(InputError, match="nan at row 3, column 1"):
            Rounds.of(n_classes=3, X=X, **columns)
        with pytest.raises(InputError, match=r"\[10, 2000\] rounds"):
            Rounds.of(n_classes=3, X=np.ones((10, 3)), **columns)
        with pytest.raises(InputError, match="X is sparse; a dense matrix of examples is expected"):
            Rounds.of(n_classes=3, X=sp.csr_array(np.ones((2000, 3))), **columns)

    def test_the_same_seed_gives_the_same_rates(self) -> None:
        found = []
        for _ in range(2):
            estimator = self.nrest(epochs=2)
            estimator.absorb(self.window(2000, wrong=0.5))
            found.append(estimator.estimate().rates)
        assert found[0] == found[1]

    def test_progress_is_told_and_can_stop_it(self) -> None:
        told = []

        def stop_at_three(epoch: Any, epochs: Any, loss: Any) -> Any:
            told.append((epoch, epochs, loss))
            return epoch == 3

        estimator = self.nrest(progress=stop_at_three)
        estimator.absorb(self.window(2000, wrong=0.5))
        estimator.estimate()
        assert [(epoch, epochs) for epoch, epochs, _ in told] == [(1, 20), (2, 20), (3, 20)]

    def test_steps_are_those_of_autograd_and_adagrad(self) -> None:
        import torch

        from fliptron.noise.published import Network

        network = Network([6, 8, 4, 2], 0.3, np.random.default_rng(0))
        layers = [torch.nn.Linear(a, b) for a, b in ((6, 8), (8, 4), (4, 2))]
        for (W, bias), layer in zip(network._layers, layers, strict=True):
            layer.weight.data, layer.bias.data = W.T.clone(), bias.clone()
        parameters = [p for layer in layers for p in layer.parameters()]
        optimizer = torch.optim.Adagrad(parameters, lr=0.01, eps=1e-6)
        masks: list[Any] = []
        drawn = network._mask

        def remembered(shape: Any) -> Any:
            masks.append(drawn(shape))
            return masks[-1]

        vars(network)["_mask"] = remembered
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

    def test_inside_rcine_it_is_algorithm_2(self, small: Any) -> None:
        learner = RCINE(n_classes=3, n_features=5, estimator=self.nrest(epochs=2), refresh=600, pooled=False)
        trace = simulate(learner, small, rates=(0.2, 0.2), rounds=1300)
        assert [at for at, _ in trace.estimates] == [600, 1200]

    def test_integer_labels_and_bad_settings(self) -> None:
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


def test_without_pytorch_nrest_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    from fliptron.noise.published import NREst

    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(InputError, match=r"pip install 'fliptron\[torch\]'"):
        NREst(n_classes=3)
    assert Banditron(n_classes=3, n_features=2).decide([1.0, 0.0]).label in range(3)
