"""A learner by its class, as users of other libraries name it: built with its settings, asked for its estimate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fliptron.learners.base import Learner
from fliptron.learners.fliptron import Fliptron
from fliptron.noise.estimate import Estimate
from fliptron.refusals import InputError, shown


def build(kind: type[Learner] | None, n_classes: int, n_features: int, settings: Mapping[str, Any]) -> Learner:
    """A learner of a class of ours; None: a `Fliptron`."""
    kind = Fliptron if kind is None else kind
    if not (isinstance(kind, type) and issubclass(kind, Learner)):
        raise InputError(f"learner is {kind!r}; one of our classes, such as Fliptron, is expected")
    try:
        return kind(n_classes=n_classes, n_features=n_features, **settings)
    except TypeError as error:
        raise InputError(f"{kind.__name__} cannot be built ({error})") from None


def with_seed(settings: Mapping[str, Any] | None, seed: int) -> dict[str, Any]:
    """The settings of a learner, and a seed unless they have one."""
    if not isinstance(settings, Mapping | None):
        raise InputError(f"settings is {shown(settings)}; names and values, such as {{'gamma': 0.1}}, are expected")
    return {"seed": seed, **(settings or {})}


def estimate_of(learner: Any, kind: type[Learner]) -> Estimate:
    """What a learner of such a class has found out about the noise."""
    if not hasattr(kind, "estimate"):
        raise InputError(f"a {kind.__name__} does not estimate the noise; a Fliptron does")
    found: Estimate = learner.estimate()
    return found
