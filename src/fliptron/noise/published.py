"""NREst as published: a network learns p(bit | x, label), and its surest rows give the rates.

The network sees (x, ỹ) and predicts the bit through a softmax of two outputs. The "perfect example" of a bit is the row
whose predicted probability of that bit is the highest below a percentile. The probability of the other bit there is a
rate: ρ̂0 = q(bit 1) at the perfect example of bit 0, and ρ̂1 = q(bit 0) at the perfect example of bit 1.

Where the text and the authors' code differ there is a switch. The default follows the code, which made the tables, with
one exception: the label enters one-hot, as in the text, since a network can hardly read the code's integer. RCINE's
"nrest" has the integer too.

    label       "one-hot" (text) or "integer" (code)
    examples    "visited": rows as played (code); "counterfactual": a perfect x for each class, tried with
                every label (text)
    percentile  89, and 94 for SynSep (text and code)
    epochs      70, and 20 for USPS in the code

Even a perfect network gives wrong rates when fewer than 11 % or more than 89 % of the rows are truly wrong: the
percentile then lands among rows of the other kind. A good classifier is exactly that case. "counterfactual" fails where
a class has fewer than 11 % of the rows, as each of ten balanced classes has: its perfect example then belongs to
another class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fliptron.arrays import Array
from fliptron.noise.estimate import Estimate, possible
from fliptron.refusals import InputError, missing, one_of, real, whole
from fliptron.rounds import Rounds

if TYPE_CHECKING:
    from torch import Tensor

Progress = Callable[[int, int, float], object]
"""Called after each epoch with epoch, epochs and validation loss; a true answer stops the training."""

NETWORKS: dict[str, dict[str, Any]] = {
    "optdigits": {"hidden": (128, 128), "dropout": 0.2},
    "digits": {"hidden": (128, 128), "dropout": 0.2},
    "mnist": {"hidden": (128, 128), "dropout": 0.2},
    "usps": {"hidden": (32, 256, 32), "dropout": 0.2, "epochs": 20},
    "fashion-mnist": {"hidden": (32, 128, 32), "dropout": 0.2},
    "fashion-features": {"hidden": (32, 128, 32), "dropout": 0.2},
    "iris": {"hidden": (32, 32), "dropout": 0.2},
    "synsep": {"hidden": (48, 48), "dropout": 0.3, "percentile": 94.0},
    "synnonsep": {"hidden": (48, 48), "dropout": 0.3, "percentile": 94.0},
}
"""The paper's network for each data set, and the epochs that its code has for USPS."""


class NREst:
    """The paper's noise-rate estimator, trained on one window of rounds. Needs PyTorch.

    A network learns the probability q of the bit from example and label. The "perfect example" of a bit is the row
    whose probability of that bit is the highest below a percentile. ρ̂0 is q(bit 1) at the perfect example of bit 0,
    and ρ̂1 is q(bit 0) at the perfect example of bit 1. 90 % of the rows are used; a tenth of these only chooses the
    epoch of least loss.

    Parameters
    ----------
    n_classes
        K ≥ 2.
    hidden
        Sizes of the layers of rectified units, each at least 1. `NREst.for_dataset` has the paper's.
    dropout
        The share of units dropped after each layer, from 0 to 0.99.
    label
        How the label enters the network: "one-hot", as in the paper's text, or "integer", as in its code.
    examples
        "visited" looks for perfect examples among the rounds as they were played, as the code does. "counterfactual"
        looks for one example per class, tried with every label, as the text says.
    percentile
        From 50 to 100. In the paper 89, and 94 for SynSep.
    epochs
        At least 1. In the paper 70; its code has 20 for USPS.
    batch
        Rows per step of Adagrad, at least 1.
    learning_rate, epsilon
        Of Adagrad, above 0.
    unit_norm
        Scale rows to length 1 before they enter the network, as the code does.
    seed
        Of splits, initial weights, batches and dropout.
    progress
        Called after each epoch with epoch, epochs and validation loss. If it returns something true, training stops,
        and the best epoch so far is used.

    References
    ----------
    Agarwal & Manwani (2021), Algorithm 3 and Theorem 2.
    """

    needs_rows = True

    def __init__(
        self,
        *,
        n_classes: int,
        hidden: tuple[int, ...] = (128, 128),
        dropout: float = 0.2,
        label: Literal["one-hot", "integer"] = "one-hot",
        examples: Literal["visited", "counterfactual"] = "visited",
        percentile: float = 89.0,
        epochs: int = 70,
        batch: int = 128,
        learning_rate: float = 0.01,
        epsilon: float = 1e-6,
        unit_norm: bool = True,
        seed: int = 0,
        progress: Progress | None = None,
    ) -> None:
        self.n_classes = whole("n_classes", n_classes, 2)
        self.hidden = tuple(whole("hidden", size, 1) for size in hidden)
        self.dropout = real("dropout", dropout, 0.0, 0.99)
        self.label = one_of("label", label, ("one-hot", "integer"))
        self.examples = one_of("examples", examples, ("visited", "counterfactual"))
        self.percentile = real("percentile", percentile, 50.0, 100.0)
        self.epochs = whole("epochs", epochs, 1)
        self.batch = whole("batch", batch, 1)
        self.learning_rate = real("learning_rate", learning_rate, 0.0, open_below=True)
        self.epsilon = real("epsilon", epsilon, 0.0, open_below=True)
        self.unit_norm = bool(unit_norm)
        self.seed = whole("seed", seed, 0)
        self.progress = progress
        self._window: Rounds | None = None
        _torch()

    @classmethod
    def for_dataset(cls, name: str, *, n_classes: int, **changes: Any) -> NREst:
        """The paper's network for a data set.

        Parameters
        ----------
        name
            A data set of the paper, such as "iris".
        n_classes
            K ≥ 2.
        changes
            Other parameters of `NREst`, which replace the paper's.
        """
        if name not in NETWORKS:
            raise InputError(f"the paper has no network for {name!r}; one of {', '.join(NETWORKS)} is expected")
        return cls(n_classes=n_classes, **(NETWORKS[name] | changes))

    def absorb(self, rounds: Rounds) -> None:
        """Keep a window of rounds with X; the next one replaces it, as in the paper."""
        self._window = rounds

    def clear(self) -> None:
        """Forget the window."""
        self._window = None

    def estimate(self) -> Estimate:
        """Train on the window and read the rates."""
        window = self._window
        if window is None or window.X is None:
            raise InputError("NREst has no window with X to train on")
        if len(window) < 2 * self.batch:
            raise InputError(f"NREst has {len(window)} rounds; at least {2 * self.batch} are needed to train")
        X: Array = np.asarray(window.X, dtype=np.float32)
        if self.unit_norm:
            norms = np.linalg.norm(X, axis=1, keepdims=True)
            X = X / np.where(norms > 0, norms, np.float32(1))
        order = np.random.default_rng([self.seed, 1]).permutation(len(window))
        kept = order[: len(window) - len(window) // 10]  # the rest is the test tenth
        train, validation = kept[: kept.size - kept.size // 10], kept[kept.size - kept.size // 10 :]
        inputs = np.hstack([X, self._encode(window.label)])
        with _one_thread(), _torch().inference_mode():
            network, loss, epoch = self._train(inputs, window.bit.astype(np.int64), train, validation)
            rates, perfect = self._read(network.predict, X[kept], inputs[kept])
        details = {
            "validation_loss": loss,
            "epoch": epoch,
            "rounds": len(window),
            "perfect": kept[perfect],
        }
        if not np.isfinite(loss):
            return Estimate(possible(*rates), "not identified", "the network did not learn", details=details)
        return Estimate(possible(*rates), "weakly identified", "NREst gives no interval", details=details)

    def _encode(self, label: Array) -> Array:
        if self.label == "integer":
            return label[:, None].astype(np.float32)
        return np.eye(self.n_classes, dtype=np.float32)[label]

    def _train(self, inputs: Array, bits: Array, train: Array, validation: Array) -> tuple[Network, float, int]:
        """Adagrad with dropout; the weights of the epoch of least validation loss."""
        torch = _torch()
        random = np.random.Generator(np.random.SFC64([self.seed, 2]))
        network = Network([inputs.shape[1], *self.hidden, 2], self.dropout, random)
        X, targets = torch.from_numpy(inputs), torch.from_numpy(np.eye(2, dtype=np.float32)[bits])
        best, best_loss, best_epoch = network.weights.clone(), np.inf, 0
        for epoch in range(1, self.epochs + 1):
            rows = torch.from_numpy(train[random.permutation(train.size)])
            for batch in zip(X[rows].split(self.batch), targets[rows].split(self.batch), strict=True):
                network.step(*batch, self.learning_rate, self.epsilon)
            loss = network.loss(X[validation], targets[validation])
            if loss < best_loss:
                best, best_loss, best_epoch = network.weights.clone(), loss, epoch
            if self.progress is not None and self.progress(epoch, self.epochs, loss):
                break
        network.weights.copy_(best)
        return network, best_loss, best_epoch

    def _read(self, predict: Callable[[Array], Array], X: Array, inputs: Array) -> tuple[tuple[float, float], Array]:
        """The rates, and the rows that were the perfect examples."""
        if self.examples == "visited":
            q = predict(inputs)
            perfect = np.array([_perfect(q[:, bit], self.percentile) for bit in (0, 1)])
            return (float(q[perfect[0], 1]), float(q[perfect[1], 0])), perfect
        K = self.n_classes
        labels = np.arange(K)
        q = np.column_stack([predict(np.hstack([X, self._encode(np.full(X.shape[0], each))]))[:, 1] for each in labels])
        perfect = np.array([_perfect(q[:, each], self.percentile) for each in labels])
        at = q[perfect]  # row k: the perfect example of class k, tried with every label
        return (float(at[~np.eye(K, dtype=bool)].mean()), float(1 - at[labels, labels].mean())), perfect


class Network:
    """Layers of rectified units with dropout and a softmax, trained by Adagrad.

    All weights lie in one vector, and so do all gradients: the optimiser is three operations, and the backward
    pass, written out, is one product per layer. The result is that of a loop with autograd, in less time.
    """

    def __init__(self, sizes: list[int], dropout: float, random: np.random.Generator) -> None:
        torch = _torch()
        self._torch, self._random, self._dropout = torch, random, dropout
        self._scale = np.float32(1 / (1 - dropout))
        shapes: list[tuple[int, ...]] = [shape for a, b in pairwise(sizes) for shape in ((a, b), (b,))]
        total = sum(int(np.prod(shape)) for shape in shapes)
        self.weights, self._gradients, self._squares = (torch.zeros(total) for _ in range(3))
        self._layers, self._slopes = (_views(vector, shapes) for vector in (self.weights, self._gradients))
        for W, _ in self._layers:  # He's initial weights
            normal = random.standard_normal(W.shape, dtype=np.float32)
            W.copy_(torch.from_numpy(normal * np.float32(np.sqrt(2 / W.shape[0]))))

    def step(self, X: Tensor, targets: Tensor, learning_rate: float, epsilon: float) -> None:
        """One step of Adagrad on the cross-entropy of a batch."""
        torch, inputs = self._torch, [X]
        for W, bias in self._layers[:-1]:
            hidden = torch.addmm(bias, inputs[-1], W).relu_()
            inputs.append(hidden.mul_(self._mask(hidden.shape)))
        W, bias = self._layers[-1]
        slope = torch.softmax(torch.addmm(bias, inputs[-1], W), dim=1).sub_(targets).div_(X.shape[0])
        ones = torch.ones((1, X.shape[0]))
        for layer in range(len(self._layers) - 1, -1, -1):
            W_slope, bias_slope = self._slopes[layer]
            torch.mm(inputs[layer].T, slope, out=W_slope)
            torch.mm(ones, slope, out=bias_slope[None])
            if layer:  # a unit passes the slope on where it was neither cut off nor dropped
                slope = torch.mm(slope, self._layers[layer][0].T).mul_(inputs[layer].sign_().mul_(float(self._scale)))
        self._squares.addcmul_(self._gradients, self._gradients)
        self.weights.addcdiv_(self._gradients, self._squares.sqrt().add_(epsilon), value=-learning_rate)

    def loss(self, X: Tensor, targets: Tensor) -> float:
        """Mean cross-entropy, without dropout."""
        return float(self._torch.nn.functional.cross_entropy(self._logits(X), targets))

    def predict(self, inputs: Array) -> Array:
        """p(bit 0) and p(bit 1) of every row."""
        logits = self._logits(self._torch.from_numpy(np.ascontiguousarray(inputs)))
        return np.asarray(self._torch.softmax(logits, dim=1).numpy())

    def _logits(self, X: Tensor) -> Tensor:
        for W, bias in self._layers[:-1]:
            X = self._torch.addmm(bias, X, W).relu_()
        W, bias = self._layers[-1]
        logits: Tensor = self._torch.addmm(bias, X, W)
        return logits

    def _mask(self, shape: tuple[int, ...]) -> Tensor:
        """0 with the probability of dropout, 1/(1 − p) otherwise."""
        drawn = self._random.integers(0, 2**16, size=shape, dtype=np.uint16)
        kept: Tensor = self._torch.from_numpy((drawn >= round(self._dropout * 2**16)) * self._scale)
        return kept


@contextmanager
def _one_thread() -> Iterator[None]:
    """Batches this small lose more to waiting for a second thread than they gain by it."""
    torch = _torch()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _views(vector: Tensor, shapes: list[tuple[int, ...]]) -> list[tuple[Tensor, Tensor]]:
    sizes = [int(np.prod(shape)) for shape in shapes]
    pieces: Any = vector.split(sizes)
    parts = [piece.view(shape) for piece, shape in zip(pieces, shapes, strict=True)]
    return list(zip(parts[::2], parts[1::2], strict=True))


def _perfect(q: Array, percentile: float) -> int:
    """The row of the largest value strictly below the percentile."""
    threshold = np.percentile(q, percentile, method="higher")
    return int(np.argmax(np.where(q >= threshold, -np.inf, q)))


def _torch() -> Any:
    try:
        import torch
    except ImportError:
        raise missing("PyTorch, which NREst trains with,", "torch") from None
    return torch
