"""Rounds in which not all labels could be played: only a `Fliptron` has to know."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fliptron.learners.base import Learner
from fliptron.learners.filtering import ORDINARY, SOME
from fliptron.learners.fliptron import Fliptron
from fliptron.rounds import Decision


def learn_among(learner: Learner, x: Any, decision: Decision, feedback: int, eligible: list[int] | None) -> None:
    """Learn from a bit, whichever learner it is, and whichever labels could be played (None: all)."""
    more = {"eligible": eligible} if eligible is not None and isinstance(learner, Fliptron) else {}
    learner.learn(x, decision, feedback, **more)


@contextmanager
def among_some(learner: Learner) -> Iterator[None]:
    """A context in which a learner, whichever it is, replays rounds in which not all labels could be played."""
    with learner.held():
        if isinstance(learner, Fliptron):
            learner.state.fresh[SOME] = True
        try:
            yield
        finally:
            if isinstance(learner, Fliptron):
                learner.state.fresh[SOME:] = ORDINARY
