"""Made-up logs whose noise, accuracy and certainty are known."""

from __future__ import annotations

from typing import Any

import numpy as np

from fliptron import Plateaus

K = 5


def rounds(
    n: Any,
    rates: Any = (0.2, 0.4),
    *,
    seed: Any = 0,
    accuracy: Any = 0.8,
    certain: Any = 0.3,
    gamma: Any = 0.2,
    n_classes: Any = K,
) -> Any:
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


def plateaus(columns: Any, n_classes: Any = K, **settings: Any) -> Any:
    estimator = Plateaus(n_classes=n_classes, **settings)
    estimator.observe(**columns)
    return estimator.estimate()


def smooth(n: Any, k: Any, *, seed: Any = 0, n_classes: Any = 10, rates: Any = (0.2, 0.4), gamma: Any = 0.1) -> Any:
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


def glue(*parts: Any) -> Any:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
